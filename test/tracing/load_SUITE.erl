%% Traces a whole VM under load: it keeps working, and every event is decoded.
-module(load_SUITE).

-include("../support/suite.hrl").

-define(ORDERS, 300).

-define(FREQUENT, [process_scheduled, port_scheduled, message_send, message_receive, message__queued, function_call,
                   function_return, gc_minor_start, process_spawn, process_exit]).

%% Ports that stay open while others open and close.
-define(LIVE_PORTS, 100).

%% The number of ports that a process opens and closes, one after the other.
-define(BATCH, 1000).

%% The memory in bytes by which a node may grow during the test.
-define(GROWTH, 4 bsl 20).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [everything_traced, reloaded_meanwhile, consumer_killed_meanwhile, purged_while_attached, ports_open_and_close].

init_per_suite(Config) ->
    test_require:tool(test_bpftrace:missing(), Config).

end_per_suite(_) -> ok.

%% This case runs without the load, because no other process may open ports.
init_per_testcase(ports_open_and_close, Config) ->
    Node = test_node:start(),
    [{node, Node}, {os_pid, test_node:os_pid(Node)} | Config];
init_per_testcase(_, Config) ->
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    System = test_node:call(Node, fun start/0),
    [{node, Node}, {os_pid, test_node:os_pid(Node)}, {library, Library}, {system, System} | Config].

%% A case that ran into its timetrap may have left the node stopped.
end_per_testcase(_, Config) ->
    _ = test_shell:run("kill -CONT ~s", [?config(os_pid, Config)]),
    test_node:stop(?config(node, Config)).

%% Traces `all` with all flags until each probe has had an event and hundreds of orders are done: no event is undecoded,
%% and the numbered messages arrive once and in order.
everything_traced(Config) ->
    Consumer = count(Config),
    Began = orders(Config),
    test_wait:until("an event of each probe", [], fun() -> probes() -- seen(Consumer) end),
    progresses(Began, ?ORDERS, Config),
    Done = orders(Config) - Began,
    Sent = numbered(Config),
    healthy(Config),
    Counts = counts(arrive(Sent, Consumer, Config)),
    ct:pal("~b orders; events: ~p", [Done, Counts]),
    ?assertEqual(lists:sort(probes()), lists:sort(maps:keys(Counts))),
    %% An order is a call, its reply, a spawned process and its cast.
    ?assert(maps:get(process_spawn, Counts) >= Done),
    ?assert(maps:get(message_send, Counts) >= 3 * Done).

reloaded_meanwhile(Config) ->
    Reloads = list_to_integer(os:getenv("DYNTRACE_RELOADS", "10")),
    Consumer = count(Config),
    Began = orders(Config),
    Reload = fun() ->
                     code:purge(dyntrace),
                     {module, dyntrace} = code:load_file(dyntrace)
             end,
    Sent = numbered(Reloads, Reload, Config),
    healthy(Config),
    progresses(Began, Config),
    arrive(Sent, Consumer, Config).

%% A consumer of the most frequent probes attaches under load, and is killed. Another one detaches under load.
consumer_killed_meanwhile(Config) ->
    Began = orders(Config),
    ok = test_bpftrace:kill(count(?FREQUENT, Config)),
    progresses(Began, Config),
    test_wait:until("no consumer is attached", [], fun() -> call(Config, fun dyntrace:listeners/0) end),
    healthy(Config),
    Consumer = while_stopped(Config, fun() -> count(?FREQUENT, Config) end),
    Sent = numbered(Config),
    arrived(Sent, Consumer),
    ?assertEqual(Sent, numbers(test_bpftrace:stop_script(Consumer))).

%% The module is deleted and loaded again while tracees refer to it.
purged_while_attached(Config) ->
    Began = orders(Config),
    call(Config, fun() ->
                         true = code:delete(dyntrace),
                         code:purge(dyntrace),
                         {module, dyntrace} = code:ensure_loaded(dyntrace)
                 end),
    ok = call(Config, fun trace_all/0),
    Consumer = count(Config),
    Sent = numbered(Config),
    progresses(Began, Config),
    healthy(Config),
    arrive(Sent, Consumer, Config).

%% The table of ports contains only open ports, however many there have been, and neither the VM's memory nor that of
%% the process grows. It learns of closed ports from an event that port__exit requires and port__open does not.
ports_open_and_close(Config) ->
    Count = list_to_integer(os:getenv("DYNTRACE_PORTS", "100000")),
    Folder = test_driver:build(?config(priv_dir, Config)),
    #{library := Library} = call(Config, fun dyntrace:info/0),
    Consumer = test_bpftrace:start_script(["usdt:", Library, ":erlang:port__open { @opens = count(); }\n",
                                           "usdt:", Library, ":erlang:port__exit { @exits = count(); }\n"], #{}),
    {Known, Open, Growth} = test_node:call(?config(node, Config), fun() -> opened_and_closed(Folder, Count) end,
                                           infinity),
    Lines = test_bpftrace:stop_script(Consumer),
    ct:pal("~b ports; the table has ~b, ~b are open; growth: ~p", [Count, Known, Open, Growth]),
    Opened = integer_to_binary(Count + Count div 10 + ?LIVE_PORTS),
    [?assert(lists:member(<<Name/binary, Opened/binary>>, Lines), Lines) || Name <- [<<"@opens: ">>, <<"@exits: ">>]],
    ?assert(Known >= ?LIVE_PORTS andalso Known =< Open, {Known, Open}),
    %% A sanitizer, which nodes preload, keeps freed memory.
    [?assert(Bytes < ?GROWTH, Growth) || os:getenv("DYNTRACE_PRELOAD") =:= false, Bytes <- maps:values(Growth)].

%% On the node. Returns the number of ports in the table, the number of open ports, and the growth of memory.
opened_and_closed(Folder, Count) ->
    ok = test_driver:load(Folder, output),
    0 = test_trace:trace(new_ports, true, [{tracer, dyntrace, []}, ports]),
    Live = [test_driver:open(output) || _ <- lists:seq(1, ?LIVE_PORTS)],
    ok = open_and_close(Count div 10),
    Before = memory(),
    ok = open_and_close(Count),
    After = memory(),
    Known = dyntrace:count_ports(),
    Open = length(erlang:ports()),
    [true = port_close(Port) || Port <- Live],
    {Known, Open, maps:map(fun(What, Bytes) -> Bytes - maps:get(What, Before) end, After)}.

%% A process that only opens ports does not fetch the signals of closed ports, and grows. So each process is
%% short-lived.
open_and_close(Count) ->
    Opens = fun() -> [true = port_close(test_driver:open(output)) || _ <- lists:seq(1, ?BATCH)] end,
    [begin
         {Pid, Ref} = spawn_monitor(Opens),
         receive {'DOWN', Ref, process, Pid, normal} -> ok end
     end || _ <- lists:seq(1, Count div ?BATCH)],
    ok.

memory() ->
    _ = [erlang:garbage_collect(Pid) || Pid <- processes()],
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Status, "VmRSS:\\s+(\\d+) kB", [{capture, all_but_first, binary}]),
    #{system => erlang:memory(system), resident => binary_to_integer(Kb) * 1024}.

%% -- The load -------------------------------------------------------------------------------------

%% On the node: the demo's system at full speed, every process and port traced with all flags, and a
%% process with a sequential trace token.
start() ->
    Self = self(),
    ok = logger:set_primary_config(level, none),
    Keeper = spawn(fun() ->
                           System = demo_system:start(0),
                           Self ! {self(), System},
                           receive never -> ok end
                   end),
    receive {Keeper, System} -> System end,
    ok = test_telemetry:load(),
    [spawn(fun ?MODULE:Worker/0) || Worker <- [sequential, sleeper, annotator, talker]],
    true = register(test_sink, spawn(fun sink/0)),
    ok = trace_all(),
    System.

trace_all() ->
    _ = test_trace:trace_pattern({demo_system, '_', '_'}, true, [local]),
    %% Functions that call themselves endlessly are left out, because their stack would grow.
    _ = [test_trace:trace_pattern({demo_system, Function, 1}, [{'_', [], [{exception_trace}]}], [local])
         || Function <- [order, roll]],
    _ = [test_trace:trace_pattern(Builtin, [{'_', [], [{return_trace}]}], [local])
         || Builtin <- [{erlang, md5, 1}, {prim_file, get_cwd_nif, 0}]],
    _ = test_trace:trace_pattern({telemetry, execute, 3}, true, [local]),
    _ = test_trace:trace_pattern('receive', dyntrace:sender_pattern(), []),
    Flags = [send, 'receive', procs, ports, call, return_to, running, running_ports, exiting, garbage_collection],
    _ = test_trace:trace(all, true, [{tracer, dyntrace, []} | Flags]),
    _ = seq_trace:set_system_tracer({dyntrace, []}),
    ok.

%% Receives the numbered messages.
sink() ->
    receive _ -> sink() end.

sequential() ->
    _ = [seq_trace:set_token(Flag, true) || Flag <- [send, 'receive', print]],
    ok = seq_trace:print(0, round),
    true = register(test_round, self()),
    true = unregister(test_round),
    self() ! round,
    receive round -> ok end,
    seq_trace:set_token([]),
    receive after 1 -> sequential() end.

%% Hibernates, and traps the exit of the process that wakes it.
sleeper() ->
    _ = process_flag(trap_exit, true),
    Self = self(),
    _ = spawn_link(fun() -> receive after 1 -> Self ! wake end end),
    erlang:hibernate(?MODULE, woken, []).

woken() ->
    receive wake -> ok end,
    receive {'EXIT', _, normal} -> sleeper() end.

annotator() ->
    _ = dyntrace:user_trace_s1("round"),
    _ = dyntrace:p(1, "round"),
    _ = dyntrace:pn(42, 1, "round"),
    _ = dyntrace:mark(round, 1, "round"),
    ok = dyntrace:span(round, fun() -> receive after 1 -> ok end end),
    annotator().

%% Opens, uses and closes sockets, and calls a BIF, a NIF and telemetry.
talker() ->
    {ok, Socket} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, true}]),
    {ok, Number} = inet:port(Socket),
    ok = gen_udp:send(Socket, {127, 0, 0, 1}, Number, "round"),
    receive {udp, Socket, _, _, <<"round">>} -> ok end,
    ok = gen_udp:close(Socket),
    16 = byte_size(erlang:md5("round")),
    {ok, _} = prim_file:get_cwd(),
    ok = telemetry:execute([round, stop], #{duration => 1}, #{}),
    talker().

%% All probes except those of other nodes, because there is no other node, and those of drivers that a datagram socket
%% does not call.
probes() ->
    test_cases:probes(usdt) -- [message__send__remote, process__exit_signal__remote, port__connect, driver__flush,
                                driver__outputv, driver__call, driver__timeout, driver__ready_output].

%% The number of orders that the clerk has taken: the progress of the load.
orders(Config) ->
    call(Config, fun() -> sys:get_state(demo_clerk) end).

progresses(Began, Config) ->
    progresses(Began, 100, Config).

progresses(Began, By, Config) ->
    test_wait:until({more_orders_than, Began + By}, fun(Orders) -> Orders > Began + By end,
                    fun() -> orders(Config) end).

healthy(Config) ->
    ?assertMatch(#{undecoded := Undecoded} when map_size(Undecoded) =:= 0, call(Config, fun dyntrace:info/0)).

numbered(Config) ->
    numbered(100, fun() -> ok end, Config).

%% On the node: a new process sends Count messages to the sink, and calls Between before each. Returns their texts.
numbered(Count, Between, Config) ->
    call(Config, fun() ->
                         {Pid, Ref} = spawn_monitor(fun() ->
                                                            [begin Between(), test_sink ! {numbered, N} end
                                                             || N <- lists:seq(1, Count)]
                                                    end),
                         receive {'DOWN', Ref, process, Pid, normal} -> ok end
                 end),
    [iolist_to_binary(io_lib:format("{numbered,~b}", [N])) || N <- lists:seq(1, Count)].

%% Each message arrives once, in order. bpftrace drops unread events when it is interrupted, so the messages are awaited
%% first. Returns the lines that bpftrace printed.
arrive(Sent, Consumer, Config) ->
    arrived(Sent, Consumer),
    Lines = ended(Consumer, Config),
    ?assertEqual(Sent, numbers(Lines)),
    Lines.

arrived(Sent, Consumer) ->
    test_wait:until("all numbered messages", [], fun() -> Sent -- numbers(test_bpftrace:lines(Consumer)) end).

numbers(Lines) ->
    test_bpftrace:in_time(Lines).

%% -- Counting in the kernel --------------------------------------------------------------------------

%% Attaches to all probes. The node is stopped meanwhile, because attaching takes bpftrace seconds, in which the load
%% would keep the CPUs busy.
count(Config) ->
    while_stopped(Config, fun() -> count(probes(), Config) end).

%% A script that prints the name of each probe at its first event, and the numbered messages.
count(Probes, Config) ->
    Library = ?config(library, Config),
    Counters = [io_lib:format("usdt:~ts:~s:~s { @[\"~s\"] = count(); "
                              "if (@seen[~b] == 0) { @seen[~b] = 1; printf(\"seen ~s\\n\"); } }\n",
                              [Library, Provider, Probe, Probe, N, N, Probe])
                || {N, Probe} <- lists:zip(lists:seq(1, length(Probes)), Probes),
                   #{provider := Provider} <- [test_bpftrace:described(Probe)]],
    Messages = ["usdt:", Library, ":org_erlang_dyntrace:message_send /str(arg1) == \"test_sink\"/ ",
                "{ printf(\"%llu %s\\n\", nsecs, str(arg2)); }\n"],
    test_bpftrace:start_script([Counters, Messages, "END { clear(@seen); }\n"], #{}).

seen(Consumer) ->
    [binary_to_existing_atom(Probe) || <<"seen ", Probe/binary>> <- test_bpftrace:lines(Consumer)].

%% Ends the consumer. The node is stopped meanwhile, because a tracer that detaches waits for processes that are in its
%% probes. Returns the lines that the consumer printed.
ended(Consumer, Config) ->
    while_stopped(Config, fun() -> test_bpftrace:stop_script(Consumer) end).

%% bpftrace prints its maps when it ends: "@[message_send]: 17".
counts(Lines) ->
    maps:from_list([{binary_to_existing_atom(Name), binary_to_integer(Count)}
                    || Line <- Lines,
                       {match, [Name, Count]} <- [re:run(Line, "^@\\[(\\w+)\\]: (\\d+)",
                                                         [{capture, all_but_first, binary}])]]).

while_stopped(Config, Fun) ->
    ok = signal("STOP", Config),
    try Fun()
    after signal("CONT", Config)
    end.

signal(Signal, Config) ->
    {0, _} = test_shell:run("kill -~s ~s", [Signal, ?config(os_pid, Config)]),
    ok.

%% -- Helpers -------------------------------------------------------------------------------------------

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
