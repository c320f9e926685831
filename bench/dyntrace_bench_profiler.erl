%% The cost of `dyntrace profile' at its default rate, for stacks of typical depths, as the kernel accounts for the
%% programs of bpftrace.
-module(dyntrace_bench_profiler).

-export([profiler/1]).
%% On the node.
-export([work/1]).

-import(dyntrace_bench_figures, [in_turn/3, ratio/1, count/1]).

-define(ROUNDS, 3).
-define(DEPTHS, [10, 30, 60]).
%% Milliseconds of a measurement, and those between the first sample and the measurement.
-define(MS, 5000).
-define(WARM_MS, 2500).
%% The kernel accounts for BPF programs while this is 1.
-define(SWITCH, "/proc/sys/kernel/bpf_stats_enabled").

-spec profiler(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
profiler(_) ->
    Before = written("1"),
    Node = test_node:start(),
    Figures = try in_turn(?ROUNDS, ?DEPTHS, fun(Depth) -> measured(Node, Depth) end)
              after
                  test_node:stop(Node),
                  written(Before)
              end,
    {{"The profiler", about(),
      ["frames of the stack", "us per sample", "% of the CPU"],
      [[integer_to_list(Depth), count(maps:get({Depth, us}, Figures)), ratio(maps:get({Depth, percent}, Figures))]
       || Depth <- ?DEPTHS]},
     Figures}.

about() ->
    io_lib:format("A process that always works, sampled by `dyntrace profile` at 99 Hz: the time that the programs of "
                  "bpftrace take in the kernel, for which the node's thread waits. Medians of ~b rounds of ~b s.",
                  [?ROUNDS, ?MS div 1000]).

%% Returns the value before.
written(Value) ->
    {ok, Before} = file:read_file(?SWITCH),
    ok = file:write_file(?SWITCH, Value),
    Before.

%% Only the samples of the working thread take long, and there are 99 per second of these.
measured(Node, Depth) ->
    Worker = test_node:call(Node, fun() -> spawn(?MODULE, work, [Depth - 1]) end),
    Command = test_command:start(["profile", test_node:os_pid(Node), "--seconds", "600"]),
    ok = test_command:await("sampling", Command),
    timer:sleep(?WARM_MS),
    {Before, Began} = {kernel_ns(Command), erlang:monotonic_time(nanosecond)},
    timer:sleep(?MS),
    Share = (kernel_ns(Command) - Before) / (erlang:monotonic_time(nanosecond) - Began),
    _ = test_command:interrupted(Command),
    true = test_node:call(Node, fun() -> exit(Worker, kill) end),
    [{{Depth, percent}, 100 * Share}, {{Depth, us}, 1.0e6 * Share / 99}].

%% Below that many frames.
work(0) -> steps(0);
work(Depth) -> 1 + work(Depth - 1).

steps(Count) -> steps(Count + 1).

%% The time of the programs that the command's bpftrace has open.
kernel_ns(Command) ->
    {0, Found} = test_shell:run("pgrep -P ~b -x bpftrace", [test_command:os_pid(Command)]),
    [Bpftrace] = string:lexemes(unicode:characters_to_list(Found), "\n"),
    Files = filelib:wildcard("/proc/" ++ Bpftrace ++ "/fdinfo/*"),
    Texts = [Text || File <- Files, {ok, Text} <- [file:read_file(File)]],
    lists:sum([binary_to_integer(Ns) || Text <- Texts,
                                        {match, [Ns]} <- [re:run(Text, "run_time_ns:\\s+(\\d+)",
                                                                 [{capture, all_but_first, binary}])]]).
