%% How long a large node pauses for a command: the longest time between two ticks of a process that ticks every 10 ms.
-module(dyntrace_bench_pauses).

-export([pauses/1]).
%% On the node
-export([started/0]).

-import(dyntrace_bench_figures, [in_turn/3, count/1]).

-define(ROUNDS, 3).
-define(PROCESSES, 70000).
-define(TICK_MS, 10).
-define(OBSERVED_MS, 10000).

-spec pauses(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
pauses(#{folder := Folder}) ->
    Node = test_node:start(),
    Ticker = test_node:call(Node, fun ?MODULE:started/0),
    Ms = try in_turn(?ROUNDS, commands(), fun(Command) -> observed(Command, Node, Ticker, filename:absname(Folder)) end)
         after test_node:stop(Node)
         end,
    {{"Pauses of a large node",
      io_lib:format("~s idle processes, and one that ticks every ~b ms: the longest time between two of its ticks, "
                    "from the start of a command until nothing is traced, in ms. Medians of ~b rounds, alternating "
                    "with the other rows. `nothing` shows what other programs on the machine contribute.",
                    [count(?PROCESSES), ?TICK_MS, ?ROUNDS]),
      ["command", "longest pause, ms"],
      [[Title, count(maps:get({Title, pause}, Ms))] || {Title, _} <- commands()]},
     Ms}.

%% {Title, arguments, with the placeholders `pid' and `output' for a new folder}
commands() ->
    [{"nothing", none},
     {"`top`", ["top", pid, "--seconds", "600"]},
     {"`top --exact`", ["top", "--exact", pid, "--seconds", "600"]},
     {"`profile`", ["profile", pid, "--seconds", "600"]},
     {"`report`", ["report", pid, "-o", "-", "--seconds", "600"]},
     {"`record`", ["record", pid, "-o", output]},
     {"`record --snapshot`", ["record", "--snapshot", "--when", "crash", pid, "-o", output]},
     {"`run spawn_rate`", ["run", "spawn_rate", pid]}].

observed({Title, Args}, Node, Ticker, Folder) ->
    _ = longest(Node, Ticker),
    ok = run(Args, test_node:os_pid(Node), filename:join(Folder, "paused")),
    test_wait:until("nothing is traced", [], fun() -> flags(Node) end),
    [{{Title, pause}, longest(Node, Ticker) / 1000}].

run(none, _, _) ->
    timer:sleep(?OBSERVED_MS);
run(Args, OsPid, Output) ->
    Values = #{pid => OsPid, output => Output},
    Command = test_command:start([maps:get(Arg, Values, Arg) || Arg <- Args]),
    timer:sleep(?OBSERVED_MS),
    ok = test_command:signal("INT", Command),
    {_, _} = test_command:finish(Command),
    _ = file:del_dir_r(Output),
    ok.

flags(Node) ->
    #{following := #{processes := Flags}} = test_node:call(Node, fun dyntrace:info/0),
    Flags.

longest(Node, Ticker) ->
    test_node:call(Node, fun() -> Ticker ! {self(), longest}, receive {Ticker, Us} -> Us end end).

%% -- On the node -----------------------------------------------------------------------------

started() ->
    ok = test_node:started([]),
    _ = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, ?PROCESSES)],
    spawn(fun() -> tick(now_us(), 0) end).

%% Returns the longest time after the previous request, in microseconds.
tick(Before, Longest) ->
    Asking = receive {From, longest} -> From after ?TICK_MS -> none end,
    Now = now_us(),
    Longer = max(Longest, Now - Before),
    case Asking of
        none -> tick(Now, Longer);
        _ -> Asking ! {self(), Longer}, tick(Now, 0)
    end.

now_us() ->
    erlang:monotonic_time(microsecond).
