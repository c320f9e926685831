%% The table of profiles: the cost of the VM flag that they require, and the cost of taking samples.
-module(dyntrace_bench_profile).

-export([profile/1, figures/0]).

%% On a node.
-export([work/2, called/1]).

-import(dyntrace_bench_figures, [in_turn/3, count/1]).

-define(WINDOW_MS, 800).
-define(ROUNDS, 3).

-spec profile(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
profile(_) ->
    Figures = figures(),
    {{"What a profile costs",
      io_lib:format(
        "Operations per second of CPU time of the whole node, so that what else the machine does is not in them. The "
        "flag is `+JPperf true`; samples are those of `dyntrace profile` at 99 Hz, beside the same node without it. "
        "A node with the flag starts in ~.2f s, without it in ~.2f s, ~.2f times as long. Its map has ~s lines, ~.1f "
        "MB, when the application dyntrace has started.",
        [maps:get({start, flag}, Figures) / 1.0e6, maps:get({start, plain}, Figures) / 1.0e6,
         maps:get({start, flag}, Figures) / maps:get({start, plain}, Figures),
         count(maps:get({map, lines}, Figures)), maps:get({map, bytes}, Figures) / 1.0e6]),
      ["load", "without the flag", "with it", "ratio", "sampled", "ratio"],
      [[Title, count(Plain), count(Flag), ratio(Flag / Plain), count(Sampled), ratio(Sampled / Flag)]
       || {Load, Title} <- loads(),
          [Plain, Flag, Sampled] <- [[maps:get({Load, State}, Figures) || State <- [plain, flag, sampled]]]]},
     Figures}.

loads() ->
    [{calls, "calls of a function that does nothing else: a process per scheduler"},
     {sorts, "lists are sorted: a process per scheduler"},
     {turns, "messages, and nothing else: a pair of processes per scheduler"}].

%% Medians: the microseconds of a start, the map, and the rates of each load.
-spec figures() -> dyntrace_bench_figures:figures().
figures() ->
    Args = #{plain => [], flag => ["+JPperf", "true"]},
    Starts = in_turn(?ROUNDS, [plain, flag], fun(State) -> [{{start, State}, started(maps:get(State, Args))}] end),
    Nodes = #{flag := Flag} = maps:map(fun(_, Flags) -> node_with(Flags) end, Args),
    {ok, Map} = file:read_file("/tmp/perf-" ++ test_node:os_pid(Flag) ++ ".map"),
    Rates = in_turn(?ROUNDS, [plain, flag, sampled], fun(State) -> rates(State, Nodes) end),
    _ = maps:map(fun(_, Node) -> test_node:stop(Node) end, Nodes),
    maps:merge(maps:merge(Starts, Rates), #{{map, bytes} => byte_size(Map),
                                            {map, lines} => length(binary:matches(Map, <<"\n">>))}).

started(Args) ->
    Command = lists:flatten(["erl -noinput ", lists:join(" ", Args), " -eval 'halt().'"]),
    {Us, _} = timer:tc(fun() -> os:cmd(Command) end),
    Us.

node_with(Args) ->
    Node = test_node:start(#{args => Args}),
    ok = test_node:call(Node, fun() -> {ok, _} = application:ensure_all_started(dyntrace), ok end),
    Node.

rates(sampled, Nodes = #{flag := Node}) ->
    Command = test_command:start(["profile", test_node:os_pid(Node), "--seconds", "100"]),
    ok = test_command:await("sampling", Command),
    Rates = rates(flag, Nodes),
    ok = test_command:signal("INT", Command),
    _ = test_command:finish(Command),
    [{{Load, sampled}, Rate} || {{Load, _}, Rate} <- Rates];
rates(State, Nodes) ->
    [{{Load, State}, test_node:call(maps:get(State, Nodes), fun() -> work(Load, ?WINDOW_MS) end)}
     || {Load, _} <- loads()].

%% Operations per second of CPU time.
-spec work(calls | sorts | turns, pos_integer()) -> float().
work(Load, Ms) ->
    Done = counters:new(1, [write_concurrency]),
    Pids = lists:append([workers(Load, Done) || _ <- lists:seq(1, erlang:system_info(schedulers_online))]),
    timer:sleep(200),
    {Before, _} = {counters:get(Done, 1), erlang:statistics(runtime)},
    timer:sleep(Ms),
    {After, {_, Cpu}} = {counters:get(Done, 1), erlang:statistics(runtime)},
    _ = [exit(Pid, kill) || Pid <- Pids],
    1000 * (After - Before) / Cpu.

workers(calls, Done) ->
    [spawn(fun() -> repeated(fun() -> called(17), counters:add(Done, 1, 5167) end) end)];
workers(sorts, Done) ->
    List = [erlang:phash2(N, 1000000) || N <- lists:seq(1, 1000)],
    [spawn(fun() -> repeated(fun() -> _ = lists:sort(List), counters:add(Done, 1, 1) end) end)];
workers(turns, Done) ->
    [A, B] = [spawn(fun() -> receive {to, To} -> turns(To, Done) end end) || _ <- [a, b]],
    _ = [From ! {to, To} || {From, To} <- [{A, B}, {B, A}]],
    A ! turn,
    [A, B].

turns(To, Done) ->
    receive turn -> ok end,
    counters:add(Done, 1, 1),
    To ! turn,
    turns(To, Done).

repeated(Fun) ->
    _ = Fun(),
    repeated(Fun).

%% 5167 calls of 17.
-spec called(non_neg_integer()) -> pos_integer().
called(N) when N < 2 -> 1;
called(N) -> ?MODULE:called(N - 1) + ?MODULE:called(N - 2).

ratio(Ratio) ->
    io_lib:format("~.3f", [Ratio]).
