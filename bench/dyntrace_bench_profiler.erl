%% The cost of `dyntrace profile' at its default rate, for stacks of typical depths.
-module(dyntrace_bench_profiler).

-export([profiler/1]).
%% On the node.
-export([worked/2]).

-import(dyntrace_bench_figures, [in_turn/3, ratio/1]).

-define(ROUNDS, 5).
-define(DEPTHS, [10, 60]).
%% Milliseconds of a measurement, and those between the first sample and the measurement.
-define(MS, 5000).
-define(WARM_MS, 2500).
-define(STEPS, 100000).

-spec profiler(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
profiler(_) ->
    Node = test_node:start(),
    Figures = try in_turn(?ROUNDS, [{Depth, Is} || Depth <- ?DEPTHS, Is <- [alone, sampled]],
                          fun(State) -> measured(Node, State) end)
              after test_node:stop(Node)
              end,
    {{"The profiler", about(),
      ["frames of the stack", "of the node, % of a CPU", "of the command, % of a CPU"],
      [[integer_to_list(Depth),
        hundredths(100 - 100 * maps:get({Depth, sampled}, Figures) / maps:get({Depth, alone}, Figures)),
        hundredths(maps:get({Depth, command}, Figures))] || Depth <- ?DEPTHS]},
     Figures}.

about() ->
    io_lib:format("A process that always works, sampled by `dyntrace profile` at 99 Hz. Of the node: the share of its "
                  "work that is not done meanwhile, in ~b rounds of ~b s, alternating with rounds without the command. "
                  "Of the command: its CPU time and that of its bpftrace.", [?ROUNDS, ?MS div 1000]).

hundredths(Number) -> ratio(float(Number)).

measured(Node, {Depth, alone}) ->
    [{{Depth, alone}, work(Node, Depth, ?MS)}];
measured(Node, {Depth, sampled}) ->
    Command = test_command:start(["profile", test_node:os_pid(Node), "--seconds", "600"]),
    ok = test_command:await("sampling", Command),
    _ = work(Node, Depth, ?WARM_MS),
    Before = cpu_ms(Command),
    Rate = work(Node, Depth, ?MS),
    Used = cpu_ms(Command) - Before,
    _ = test_command:interrupted(Command),
    [{{Depth, sampled}, Rate}, {{Depth, command}, 100 * Used / ?MS}].

%% Units of work per second.
work(Node, Depth, Ms) ->
    test_node:call(Node, fun() -> ?MODULE:worked(Depth - 2, Ms) end).

%% In a process of its own, below that many frames.
worked(0, Ms) ->
    Began = erlang:monotonic_time(microsecond),
    Units = units(Began + 1000 * Ms, 0),
    1.0e6 * Units / (erlang:monotonic_time(microsecond) - Began);
worked(Depth, Ms) ->
    1 * worked(Depth - 1, Ms).

units(Until, Units) ->
    0 = steps(?STEPS),
    case erlang:monotonic_time(microsecond) < Until of
        true -> units(Until, Units + 1);
        false -> Units + 1
    end.

steps(0) -> 0;
steps(Count) -> steps(Count - 1).

%% The CPU time of the command, of its children that have ended, and of its bpftrace.
cpu_ms(Command) ->
    OsPid = integer_to_list(test_command:os_pid(Command)),
    {0, Children} = test_shell:run("pgrep -P ~s", [OsPid]),
    %% utime, stime, cutime and cstime, in ticks of 10 ms. The name before them may contain blanks.
    Read = [string:lexemes(lists:last(string:split(Stat, ")", trailing)), " ")
            || Child <- [OsPid | string:lexemes(unicode:characters_to_list(Children), "\n")],
               {ok, Stat} <- [file:read_file("/proc/" ++ Child ++ "/stat")]],
    10 * lists:sum([binary_to_integer(lists:nth(N, Fields)) || Fields <- Read, N <- [12, 13, 14, 15]]).
