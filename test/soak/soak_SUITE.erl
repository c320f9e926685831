%% `make soak`: a node under mixed load, traced with all flags, while consumers attach and detach at random and the
%% module is loaded again and again. Takes DYNTRACE_SOAK_S seconds.
-module(soak_SUITE).

-include("../support/suite.hrl").

%% The number of messages per LTTng session.
-define(NUMBERED, 2000).

-define(WARM_S, 10).

suite() ->
    [{timetrap, {hours, 2}}].

all() ->
    [soak].

init_per_suite(Config) ->
    _ = test_require:tool(test_bpftrace:missing(), Config),
    test_require:tool(test_lttng:missing(), Config).

end_per_suite(_) -> ok.

soak(Config) ->
    Seconds = list_to_integer(os:getenv("DYNTRACE_SOAK_S", "1200")),
    Node = test_node:start(),
    _ = test_node:call(Node, fun load_SUITE:start/0),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    Daemon = test_lttng:start_daemon(),
    lttng_SUITE:until_known(Daemon, [{node, Node}]),
    Until = erlang:monotonic_time(second) + Seconds,
    Warm = spawn_worker(fun() -> receive after min(?WARM_S, Seconds div 3) * 1000 -> rss(Node) end end),
    Workers = [spawn_worker(fun() -> repeat(Until, Work) end)
               || Work <- [fun() -> bpftrace(Library) end, fun() -> bpftrace(Library) end,
                           fun() -> lttng(Daemon, Node) end, fun() -> reload(Node) end]],
    Before = done(Warm),
    [Bpftrace1, Bpftrace2, Lttng, Reloads] = [done(Worker) || Worker <- Workers],
    After = rss(Node),
    {Recorded, Lost} = {lists:sum([R || {R, _} <- Lttng]), lists:sum([L || {_, L} <- Lttng])},
    Orders = test_node:call(Node, fun() -> sys:get_state(demo_clerk) end),
    ct:pal("~b s: ~b orders; bpftrace attached ~b times; ~b LTTng sessions recorded ~b and lost ~b events; ~b reloads; "
           "resident ~b kB after ~b s, ~b kB at the end",
           [Seconds, Orders, length(Bpftrace1 ++ Bpftrace2), length(Lttng), Recorded, Lost, length(Reloads), Before,
            min(?WARM_S, Seconds div 3), After]),
    ?assertEqual(#{}, maps:get(undecoded, test_node:call(Node, fun dyntrace:info/0))),
    ?assert(Orders > 0 andalso Recorded > 0),
    ?assert(After < Before * 1.2 + 20000, {grown, Before, After}),
    test_lttng:stop_daemon(Daemon),
    test_node:stop(Node),
    Config.

%% -- Concurrent activities -----------------------------------------------------------------------

%% A consumer counts the events of some probes for a while. Then it is interrupted, or killed.
bpftrace(Library) ->
    Probes = [user_mark | [Probe || Probe <- load_SUITE:probes(), rand:uniform(3) =:= 1]],
    Script = [io_lib:format("usdt:~ts:~s:~s { @[\"~s\"] = count(); }\n", [Library, Provider, Probe, Probe])
              || Probe <- Probes, #{provider := Provider} <- [test_bpftrace:described(Probe)]],
    Consumer = test_bpftrace:start_script(Script, #{}),
    nap(1000),
    case rand:uniform(2) of
        1 -> _ = test_bpftrace:stop_script(Consumer), ok;
        2 -> ok = test_bpftrace:kill(Consumer)
    end.

%% {Recorded, Lost}: counts of the numbered messages, in buffers that may be too small.
lttng(Daemon, Node) ->
    Size = lists:nth(rand:uniform(2), ["4k", "256k"]),
    Session = test_lttng:start(Daemon, [message_send],
                               #{channel => "--num-subbuf=2 --subbuf-size=" ++ Size,
                                 event => "--filter='message == \"{soak,*\"'"}),
    lttng_SUITE:until_listeners([message_send], [{node, Node}]),
    ok = test_node:call(Node, fun numbered/0),
    nap(500),
    {0, _} = test_lttng:lttng(Daemon, "stop ~s", [test_lttng:name(Session)]),
    Balance = test_lttng:balance([iolist_to_binary(io_lib:format("{soak,~b}", [N])) || N <- lists:seq(1, ?NUMBERED)],
                                 Session),
    ok = test_lttng:destroy(Session),
    Balance.

%% On the node: a traced process sends the numbered messages to a process that has ended.
numbered() ->
    Sink = spawn(fun() -> ok end),
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> [Sink ! {soak, N} || N <- lists:seq(1, ?NUMBERED)] end end),
    _ = erlang:trace(Pid, true, [send, {tracer, dyntrace, []}]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

reload(Node) ->
    nap(2000),
    {module, dyntrace} = test_node:call(Node, fun() -> code:purge(dyntrace), code:load_file(dyntrace) end).

nap(Most) ->
    receive after rand:uniform(Most) -> ok end.

%% -- Helpers -------------------------------------------------------------------------------------

spawn_worker(Fun) ->
    spawn_monitor(fun() -> exit({done, Fun()}) end).

done({Pid, Ref}) ->
    receive {'DOWN', Ref, process, Pid, {done, Results}} -> Results;
            {'DOWN', Ref, process, Pid, Reason} -> ct:fail(Reason)
    end.

repeat(Until, Work) ->
    case erlang:monotonic_time(second) < Until of
        true -> [Work() | repeat(Until, Work)];
        false -> []
    end.

%% The node's resident memory in kilobytes.
rss(Node) ->
    {ok, Status} = file:read_file("/proc/" ++ test_node:os_pid(Node) ++ "/status"),
    {match, [Kb]} = re:run(Status, "VmRSS:\\s+(\\d+) kB", [{capture, all_but_first, binary}]),
    binary_to_integer(Kb).
