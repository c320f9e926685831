%% The VM's own events: the messages of the system monitor as values, and the ownership of the system monitor.
-module(vm_events_SUITE).

-include("../support/suite.hrl").

-define(DEADLINE_MS, 60000).

-import(test_autotracer, [start/2, attach/2, following/1, call/2, text/2, with_two_nodes/3, with_two_nodes/4,
                          until_following/3, until_worker_after/2, keep_log/1, logged/1]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [as_the_vm_says, for_lttng, thresholds, less_than_required, unsupported, busy_port, busy_connection,
     busy_connection_with_tls, nodes_for_lttng, another_system_monitor, withheld_is_reported,
     too_many_busy_ports, worker_killed, consumer_killed, unanswering_port, unanswering_ports]
        ++ [another_session || {module, trace} <- [code:ensure_loaded(trace)],
                               erlang:function_exported(trace, system, 3)].

init_per_suite(Config) ->
    test_require:tool(test_lttng:missing(), Config).

end_per_suite(_) -> ok.

%% -- Values --------------------------------------------------------------------------------

%% Thresholds that the events below exceed.
low() ->
    [{interval, 10}, {long_gc, 1}, {long_schedule, 20}, {large_heap, 100000}, {long_message_queue, {10, 100}}].

as_the_vm_says(Config) ->
    start(low(), Config),
    Probes = probes(Config),
    Consumer = attach(Probes, Config),
    until_following(sources, [system_monitor], Config),
    {Events, Reported} = happened(Config),
    [test_bpftrace:await(Consumer, fun(Event) -> Event =:= Awaited end) || Awaited <- Reported],
    ?assertEqual(lists:sort(Reported), of_ours(Events, test_bpftrace:stop(Consumer))),
    until_following(sources, [], Config),
    ?assertEqual([], call(Config, fun test_autotracer:monitored/0)).

for_lttng(Config) ->
    start(low(), Config),
    {Session, Stop} = recording(probes(Config), Config),
    until_following(sources, [system_monitor], Config),
    {Events, Reported} = happened(Config),
    %% The worker fires an event before the next message.
    _ = call(Config, fun() -> sys:get_state(dyntrace_autotracer) end),
    ?assertEqual(lists:sort(Reported), of_ours(Events, test_lttng:stop(Session))),
    Stop(),
    until_following(sources, [], Config).

%% A recording session, and a function that ends its daemon.
recording(Probes, Config) ->
    Daemon = test_lttng:start_daemon(),
    Session = test_lttng:start(Daemon, Probes),
    test_wait:until("the session enables the probes", lists:sort(Probes),
                    fun() -> lists:sort([Name || #{name := Name} <- call(Config, fun dyntrace:listeners/0)]) end),
    {Session, fun() -> test_lttng:stop_daemon(Daemon) end}.

probes(Config) ->
    [vm_long_gc, vm_long_schedule, vm_large_heap | [vm_long_message_queue || has_long_queues(Config)]].

has_long_queues(Config) ->
    release(Config) >= 27.

release(Config) ->
    list_to_integer(call(Config, fun() -> erlang:system_info(otp_release) end)).

%% Causes the events. Returns the texts of the processes and ports concerned, and the events that the VM's messages to
%% the worker describe.
happened(Config) ->
    Folder = test_driver:build(?config(priv_dir, Config)),
    HasLongQueues = has_long_queues(Config),
    {Ids, Expected} =
        call(Config, fun() ->
                             ok = test_driver:load(Folder, output),
                             {Ids, Messages} = messages_of(fun happen/0, HasLongQueues),
                             {[test_cases:text(Id) || Id <- Ids],
                              [expected(Message) || Message = {monitor, Id, _, _} <- Messages, lists:member(Id, Ids)]}
                     end),
    Reported = lists:usort([Probe || {Probe, _} <- Expected]),
    ?assertEqual(lists:sort(probes(Config)), Reported),
    ct:pal("~p", [Expected]),
    %% Values that the test itself knows.
    [_, Port, Sleeper | _] = Ids,
    ?assertMatch([#{duration := Ms, started := <<"timeout">>, stopped := <<>>}] when Ms >= 40,
                 [Fields || {vm_long_schedule, Fields = #{id := Id}} <- Expected, Id =:= Port]),
    ?assertMatch([#{duration := Ms, started := <<"vm_events_SUITE:sleeps/1">>,
                    stopped := <<"vm_events_SUITE:slept/0">>}] when Ms >= 40,
                 [Fields || {vm_long_schedule, Fields = #{id := Id}} <- Expected, Id =:= Sleeper]),
    ?assertEqual([Type || HasLongQueues, Type <- [<<"long">>, <<"short">>]],
                 [Type || {vm_long_message_queue, #{type := Type}} <- Expected]),
    {Ids, Expected}.

of_ours(Ids, Events) ->
    lists:sort([Event || Event = {_, Fields} <- Events, Id <- [maps:get(id, Fields, maps:get(pid, Fields, none))],
                         lists:member(Id, Ids)]).

%% On the node: the event that a message of the system monitor describes.
expected({monitor, Pid, long_gc, Info}) ->
    {vm_long_gc, (heap(Info))#{pid => test_cases:text(Pid), duration => proplists:get_value(timeout, Info)}};
expected({monitor, Pid, large_heap, Info}) ->
    {vm_large_heap, (heap(Info))#{pid => test_cases:text(Pid)}};
expected({monitor, Pid, long_message_queue, IsLong}) ->
    {vm_long_message_queue, #{pid => test_cases:text(Pid), type => case IsLong of true -> <<"long">>;
                                                                                  false -> <<"short">> end}};
expected({monitor, Id, long_schedule, Info}) ->
    {In, Out} = case lists:keyfind(port_op, 1, Info) of
                    {_, Op} -> {atom_to_binary(Op), <<>>};
                    false -> {mfa(proplists:get_value(in, Info)), mfa(proplists:get_value(out, Info))}
                end,
    {vm_long_schedule, #{id => test_cases:text(Id), duration => proplists:get_value(timeout, Info), started => In,
                         stopped => Out}}.

heap(Info) ->
    #{heap => proplists:get_value(heap_block_size, Info), old_heap => proplists:get_value(old_heap_block_size, Info),
      fragments => proplists:get_value(mbuf_size, Info)}.

mfa({M, F, A}) -> iolist_to_binary(io_lib:format("~p:~p/~b", [M, F, A]));
mfa(undefined) -> <<"undefined">>.

%% On the node: the processes and ports for which Fun causes events, and the messages that the worker has received
%% meanwhile. A thread of the VM sends them, perhaps late.
messages_of(Fun, HasLongQueues) ->
    Self = self(),
    Debug = fun(Ref, {in, Message}, _) -> Self ! {Ref, Message}, Ref;
               (Ref, _, _) -> Ref
            end,
    Ref = make_ref(),
    ok = sys:install(dyntrace_autotracer, {?MODULE, Debug, Ref}),
    Ids = [Collector, Port, Sleeper, Reader] = Fun(),
    Messages = received(Ref, [{Collector, long_gc}, {Collector, large_heap}, {Port, long_schedule},
                              {Sleeper, long_schedule}]
                        ++ [{Reader, long_message_queue} || HasLongQueues, _ <- [long, short]]),
    ok = sys:remove(dyntrace_autotracer, ?MODULE),
    {Ids, Messages ++ received(Ref)}.

%% Waits for these messages. Other messages arrive all the time, so there is one deadline for all.
received(Ref, Awaited) ->
    received(Ref, Awaited, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

received(_, [], _) ->
    [];
received(Ref, Awaited, Deadline) ->
    receive {Ref, Message} -> [Message | received(Ref, Awaited -- [of_monitor(Message)], Deadline)]
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            error({not_reported, Awaited, test_autotracer:monitored(), dyntrace:info()})
    end.

of_monitor({monitor, Id, Event, _}) -> {Id, Event};
of_monitor(_) -> none.

received(Ref) ->
    receive {Ref, Message} -> [Message | received(Ref)]
    after 0 -> []
    end.

%% On the node: a process whose collections are long and leave a large heap, a port and a process that occupy their
%% schedulers, and a process with waiting messages.
happen() ->
    Self = self(),
    Port = test_driver:open(output),
    [Collector, Sleeper, Reader] =
        [spawn(?MODULE, Function, [Argument])
         || {Function, Argument} <- [{collects, Self}, {sleeps, Self}, {waits, Self}]],
    Collector ! go,
    ok = awaited({Collector, collected}),
    ok = test_driver:sleep_later(Port, 50),
    ok = awaited({Port, {data, <<"timeout">>}}),
    %% The port's turn is over when the port answers.
    _ = erlang:port_info(Port),
    Sleeper ! go,
    test_wait:until("it has slept", {current_function, {?MODULE, slept, 0}},
                    fun() -> process_info(Sleeper, current_function) end),
    %% Waits until the process is scheduled out.
    test_wait:until("it waits", {status, waiting}, fun() -> process_info(Sleeper, status) end),
    [Reader ! message || _ <- lists:seq(1, 200)],
    Reader ! go,
    ok = awaited({Reader, has_read}),
    [exit(Pid, kill) || Pid <- [Collector, Sleeper, Reader]],
    true = port_close(Port),
    [Collector, Port, Sleeper, Reader].

awaited(Message) ->
    receive Message -> ok after ?DEADLINE_MS -> error({not_come, Message}) end.

collects(To) ->
    receive go -> ok end,
    List = lists:seq(1, 2000000),
    true = erlang:garbage_collect(),
    To ! {self(), collected},
    receive stop -> hd(List) end.

%% In its own port: while another scheduler uses a port, the VM defers a control, and the process only waits.
sleeps(_) ->
    receive go -> ok = test_driver:sleep(test_driver:open(output), 50) end,
    slept().

slept() ->
    receive stop -> ok end.

%% Reads its messages after the others have arrived.
waits(To) ->
    receive go -> ok end,
    reads(),
    To ! {self(), has_read},
    receive stop -> ok end.

reads() ->
    receive message -> reads() after 0 -> ok end.

%% -- Settings of the system monitor -----------------------------------------------------------

%% follow/1 with other thresholds changes the VM's settings. It raises a threshold that is too low; polls set nothing.
thresholds(Config) ->
    start([{interval, 10}, {long_gc, 17}], Config),
    Consumer = attach([vm_long_gc, vm_large_heap, vm_busy_port], Config),
    until_monitored([busy_port, {large_heap, 10000000}, {long_gc, 17}], Config),
    ok = call(Config, fun() -> dyntrace:follow(#{interval => 10, long_gc => 18, large_heap => 1000}) end),
    ?assertMatch([busy_port, {large_heap, Raised}, {long_gc, 18}] when Raised > 1000,
                 call(Config, fun test_autotracer:monitored/0)),
    ?assertEqual([], call(Config, fun set_in_polls/0)),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    ?assertEqual([], call(Config, fun test_autotracer:monitored/0)).

%% Starts the application, and attaches to probes of the system monitor.
observed(Probes, Config) ->
    start([{interval, 10}], Config),
    Consumer = attach(Probes, Config),
    until_following(sources, [system_monitor], Config),
    Consumer.

%% The worker may have polled before the consumer has attached all probes.
until_monitored(Events, Config) ->
    test_wait:until("these events are set", Events, fun() -> call(Config, fun test_autotracer:monitored/0) end).

%% On the node: the calls that set something during some polls.
set_in_polls() ->
    Worker = whereis(dyntrace_autotracer),
    Functions = [{erlang, system_monitor, 2}, {erlang, system_monitor, 1}, {trace, system, 3}],
    _ = [erlang:trace_pattern(Function, true, []) || Function <- Functions],
    _ = erlang:trace_pattern({dyntrace, listeners, 0}, true, []),
    1 = erlang:trace(Worker, true, [call]),
    Calls = [receive {trace, Worker, call, {M, F, _}} -> {M, F} end || _ <- lists:seq(1, 5)],
    1 = erlang:trace(Worker, false, [call]),
    [Call || Call <- Calls, Call =/= {dyntrace, listeners}].

%% Each probe sets only its own event.
less_than_required(Config) ->
    start([{interval, 10}], Config),
    [begin
         Consumer = attach([Probe], Config),
         until_following(sources, [system_monitor], Config),
         until_monitored([Event], Config),
         _ = test_bpftrace:stop(Consumer),
         until_following(sources, [], Config),
         ?assertEqual([], call(Config, fun test_autotracer:monitored/0))
     end || {Probe, Event} <- [{vm_busy_port, busy_port}, {port__busy, busy_port}, {vm_busy_dist_port, busy_dist_port},
                               {vm_long_gc, {long_gc, 100}}, {vm_large_heap, {large_heap, 10000000}},
                               {vm_long_schedule, {long_schedule, 100}}]
                ++ [{vm_long_message_queue, {long_message_queue, {1000, 10000}}} || has_long_queues(Config)]],
    %% A probe that is not allowed.
    ok = call(Config, fun() -> dyntrace:follow(#{interval => 10, probes => [vm_busy_port]}) end),
    Consumer = attach([vm_long_gc, vm_busy_port], Config),
    until_following(sources, [system_monitor], Config),
    until_monitored([busy_port], Config),
    _ = test_bpftrace:stop(Consumer).

%% Before OTP 27, the VM does not report long message queues; the other events are observed. Nothing is logged about it.
unsupported(Config) ->
    keep_log(Config),
    Consumer = observed([vm_long_message_queue, vm_busy_port], Config),
    case has_long_queues(Config) of
        true ->
            ?assertEqual(#{}, maps:get(withheld, following(Config)));
        false ->
            until_following(withheld, #{vm_long_message_queue => "requires OTP 27 or later"}, Config),
            until_monitored([busy_port], Config)
    end,
    ?assertEqual([], logged(Config)),
    _ = test_bpftrace:stop(Consumer),
    until_following(withheld, #{}, Config).

%% -- Busy ports ----------------------------------------------------------------------------

%% A program does not read its standard input. A process that sends it more than the port accepts is suspended.
busy_port(Config) ->
    Consumer = observed([port__busy, vm_busy_port], Config),
    with_suspended_writer(fun(Port, Writer) ->
                                  Text = text(Port, Config),
                                  Expected = [{port__busy, #{port => Text}},
                                              {vm_busy_port, #{pid => text(Writer, Config), port => Text}}],
                                  [test_bpftrace:await(Consumer, fun(Event) -> Event =:= Each end) || Each <- Expected],
                                  ?assertEqual({status, suspended},
                                               call(Config, fun() -> process_info(Writer, status) end))
                          end, Config),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    ?assertEqual([], call(Config, fun test_autotracer:monitored/0)).

%% The VM writes queued data before it ends, so the program has to end first.
with_suspended_writer(Fun, Config) ->
    {Port, Writer, Program} = call(Config, fun suspended_writer/0),
    try Fun(Port, Writer)
    after "" = os:cmd("kill " ++ integer_to_list(Program))
    end.

%% On the node.
suspended_writer() ->
    Self = self(),
    Writer = spawn(fun() ->
                           Port = open_port({spawn_executable, "/bin/sleep"}, [{args, ["600"]}]),
                           Self ! {self(), Port, erlang:port_info(Port, os_pid)},
                           write(Port)
                   end),
    receive {Writer, Port, {os_pid, Program}} -> {Port, Writer, Program} end.

write(Port) ->
    true = port_command(Port, binary:copy(<<"data">>, 100000)),
    write(Port).

%% The other node is stopped by a signal, so that the connection accepts no more data.
busy_connection(Config) ->
    Controller = with_two_nodes(["+zdbbl", "1"], fun connection/2, Config),
    ?assert(is_port(Controller)).

%% The connection is controlled by a process, not by a port.
busy_connection_with_tls(Config) ->
    Controller = with_two_nodes(["+zdbbl", "1"], with_tls(Config), fun connection/2, Config),
    ?assert(is_pid(Controller)).

%% Arguments of erl for distribution over TLS, with the test's own certificate.
with_tls(Config) ->
    Folder = ?config(priv_dir, Config),
    %% The default digest is SHA-1, which OTP 27 rejects.
    Strong = [{digest, sha256}, {key, {namedCurve, secp256r1}}],
    Chain = #{root => Strong, intermediates => [], peer => Strong},
    #{server_config := Made} = public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {KeyType, Key} = proplists:get_value(key, Made),
    Pem = [begin
               File = filename:join(Folder, atom_to_list(Option) ++ ".pem"),
               ok = file:write_file(File, public_key:pem_encode([{Type, Der, not_encrypted}])),
               {Option, File}
           end || {Option, Type, Der} <- [{certfile, 'Certificate', proplists:get_value(cert, Made)},
                                          {keyfile, KeyType, Key}]],
    Options = filename:join(Folder, "tls.config"),
    Unverified = {verify, verify_none},
    ok = file:write_file(Options, io_lib:format("~p.~n", [[{server, [Unverified | Pem]}, {client, [Unverified]}]])),
    ["-proto_dist", "inet_tls", "-ssl_dist_optfile", Options].

connection(Other, Config) ->
    OsPid = test_node:os_pid(Other),
    Sink = peer:call(Other, erlang, spawn, [test_autotracer, sink, []]),
    Consumer = observed([dist__port_busy, vm_busy_dist_port], Config),
    until_monitored([busy_dist_port], Config),
    Controller = call(Config, fun() ->
                                      true = net_kernel:connect_node('b@127.0.0.1'),
                                      proplists:get_value('b@127.0.0.1', erlang:system_info(dist_ctrl))
                              end),
    {0, _} = test_shell:run("kill -STOP ~s", [OsPid]),
    Writer = call(Config, fun() -> spawn(fun() -> send_forever(Sink) end) end),
    Text = text(Writer, Config),
    Seen = [test_bpftrace:await(Consumer, fun({Of, #{pid := Pid}}) -> {Of, Pid} =:= {Probe, Text} end)
            || Probe <- [dist__port_busy, vm_busy_dist_port]],
    true = call(Config, fun() -> exit(Writer, kill) end),
    {0, _} = test_shell:run("kill -CONT ~s", [OsPid]),
    ControllerText = text(Controller, Config),
    ?assertEqual([{dist__port_busy, #{node => <<"'a@127.0.0.1'">>, remote_node => <<"'b@127.0.0.1'">>, pid => Text,
                                      port => case is_port(Controller) of
                                                  true -> ControllerText;
                                                  false -> <<>>
                                              end}},
                  {vm_busy_dist_port, #{pid => Text, port => ControllerText, node => <<"'b@127.0.0.1'">>}}], Seen),
    _ = test_bpftrace:stop(Consumer),
    Controller.

send_forever(Sink) ->
    Sink ! binary:copy(<<"data">>, 10000),
    send_forever(Sink).

%% -- Nodes ---------------------------------------------------------------------------------

%% A node that connects and ends, and a hidden one that disconnects; sources_SUITE tests more of this with bpftrace.
nodes_for_lttng(Config) ->
    test_node:with_epmd(
      fun(Epmd) ->
              test_autotracer:with_node(test_node:named("a", Epmd), fun(Ours) -> came_and_went(Epmd, Ours) end, Config)
      end).

came_and_went(Epmd, Config) ->
    start([{interval, 10}], Config),
    {Session, Stop} = recording([node_up, node_down], Config),
    until_following(sources, [nodes], Config),
    Visible = test_node:named("b", Epmd),
    Hidden = test_node:named("c", Epmd, ["-hidden"]),
    true = call(Config, fun() -> net_kernel:connect_node('b@127.0.0.1') end),
    test_node:stop(Visible),
    test_autotracer:until_nodes(visible, [], Config),
    true = call(Config, fun() -> net_kernel:connect_node('c@127.0.0.1') end),
    true = call(Config, fun() -> erlang:disconnect_node('c@127.0.0.1') end),
    test_autotracer:until_nodes(hidden, [], Config),
    test_node:stop(Hidden),
    _ = call(Config, fun() -> sys:get_state(dyntrace_autotracer) end),
    Events = test_lttng:stop(Session),
    Stop(),
    [B, C] = [#{node => <<"'", Name, "@127.0.0.1'">>} || Name <- "bc"],
    ?assertEqual([{node_up, B#{type => <<"visible">>}},
                  {node_down, B#{type => <<"visible">>, reason => <<"connection_closed">>}},
                  {node_up, C#{type => <<"hidden">>}},
                  {node_down, C#{type => <<"hidden">>, reason => <<"disconnect">>}}], Events).

%% -- Another system monitor ------------------------------------------------------------------

%% Before OTP 28, another process that is the system monitor, or becomes it later, remains the system monitor. In OTP 28
%% and later, both get their events.
another_system_monitor(Config) ->
    keep_log(Config),
    start([{interval, 10}], Config),
    First = become_system_monitor(Config),
    Consumer = attach([port__busy, dist__port_busy], Config),
    until_beside(First, Config),
    call(Config, fun() -> exit(First, kill) end),
    until_following(sources, [system_monitor], Config),
    ?assertEqual(#{}, maps:get(withheld, following(Config))),
    until_monitored([busy_dist_port, busy_port], Config),
    Second = become_system_monitor(Config),
    until_beside(Second, Config),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    until_following(withheld, #{}, Config),
    %% The log has each of them only once, also if a consumer attaches again.
    Again = attach([port__busy], Config),
    until_beside(Second, Config),
    _ = test_bpftrace:stop(Again),
    until_following(sources, [], Config),
    case call(Config, fun() -> erlang:function_exported(trace, system, 3) end) of
        true -> ?assertEqual([], logged(Config));
        false -> ?assertMatch([{warning, _, [system_monitor, _]}, {warning, _, [system_monitor, _]}], logged(Config))
    end,
    ?assertEqual({Second, [busy_port]}, call(Config, fun erlang:system_monitor/0)).

%% Each consumer is notified of what it lacks, except what the release does not support or an option switches off.
withheld_is_reported(Config) ->
    start([{interval, 10}, {call_budget, 1000}, {functions, [{test_called, often, 2}]}], Config),
    {module, test_called} = call(Config, fun() -> code:ensure_loaded(test_called) end),
    Other = become_system_monitor(Config),
    First = attach([withheld, vm_busy_port, vm_long_message_queue, log, function_call], Config),
    until_following(calls, call, Config),
    Stop = call(Config, fun() ->
                                [Calls, Stop] = [counters:new(1, []) || _ <- [calls, stop]],
                                _ = spawn(test_called, often, [Calls, Stop]),
                                Stop
                        end),
    Expected = [{<<"call">>, <<"test_called:often/2">>} |
                [{<<"system_monitor">>, call(Config, fun() -> list_to_binary(pid_to_list(Other)) end)}
                 || not has_sessions(Config)]],
    Second = attach([withheld], Config),
    [begin
         {withheld, #{why := Why}} = test_bpftrace:await(Consumer, fun(Event) -> is_about(What, Event) end),
         ?assertMatch({{_, _}, _}, {binary:match(Why, Named), Why})
     end || Consumer <- [First, Second], {What, Named} <- Expected],
    ok = call(Config, fun() -> counters:put(Stop, 1, 1) end),
    _ = test_bpftrace:stop(Second),
    ?assertEqual([What || {What, _} <- Expected],
                 lists:usort([What || {withheld, #{what := What}} <- test_bpftrace:stop(First)])
                 -- [<<"all_events">>, <<"earlier_events">>]).

is_about(What, {withheld, #{what := What}}) -> true;
is_about(_, _) -> false.

%% Whether the system monitor has sessions: OTP 28 and later.
has_sessions(Config) ->
    call(Config, fun() -> _ = code:ensure_loaded(trace), erlang:function_exported(trace, system, 3) end).

become_system_monitor(Config) ->
    call(Config, fun() ->
                         Pid = spawn(fun test_autotracer:sink/0),
                         _ = erlang:system_monitor(Pid, [busy_port]),
                         Pid
                 end).

until_beside(Other, Config) ->
    case has_sessions(Config) of
        true ->
            until_following(sources, [system_monitor], Config);
        false ->
            until_following(withheld, fun(#{system_monitor := Why}) -> string:find(Why, pid_to_list(Other)) =/= nomatch;
                                         (_) -> false
                                      end, Config),
            ?assertEqual([], maps:get(sources, following(Config)))
    end,
    ?assertEqual({Other, [busy_port]}, call(Config, fun erlang:system_monitor/0)).

%% In OTP 28 and later, the session of another tool keeps its settings.
another_session(Config) ->
    Set = fun(Session) -> call(Config, fun() -> apply(trace, info, [Session, system, all]) end) end,
    Session = call(Config, fun() ->
                                   Self = self(),
                                   Owner = spawn(fun() ->
                                                         Sink = spawn(fun test_autotracer:sink/0),
                                                         Session = apply(trace, session_create, [other, Sink, []]),
                                                         ok = apply(trace, system, [Session, long_gc, 5]),
                                                         Self ! {self(), element(2, Session)},
                                                         receive stop -> Session end
                                                 end),
                                   receive {Owner, Weak} -> Weak end
                           end),
    ?assertEqual({system, [{long_gc, 5}]}, Set(Session)),
    Consumer = observed([vm_long_gc, vm_busy_port], Config),
    until_monitored([busy_port, {long_gc, 100}], Config),
    ?assertEqual({system, [{long_gc, 5}]}, Set(Session)),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    ?assertEqual({system, [{long_gc, 5}]}, Set(Session)).

%% A flood of suspended processes: the source pauses, with one line in the log, and then continues.
too_many_busy_ports(Config) ->
    Folder = test_driver:build(?config(priv_dir, Config)),
    keep_log(Config),
    Consumer = observed([port__busy], Config),
    Flood = call(Config, fun() -> spawn(fun() -> flood(Folder) end) end),
    until_following(withheld, fun(Withheld) -> is_map_key(system_monitor, Withheld) end, Config),
    %% Each pause ends after a second, and the flood starts the next one.
    test_autotracer:until_unmonitored(Config),
    ok = call(Config, fun() -> stopped(Flood) end),
    %% The worker has handled the rest of the flood.
    _ = call(Config, fun() -> sys:get_state(dyntrace_autotracer) end),
    until_following(withheld, #{}, Config),
    until_following(sources, [system_monitor], Config),
    [{warning, _, ["too many events of the system monitor" ++ Which]}] = logged(Config),
    ?assertNotEqual(nomatch, string:find(Which, "the probes port__busy pause")),
    with_suspended_writer(fun(Port, _) ->
                                  Text = text(Port, Config),
                                  test_bpftrace:await(Consumer, fun({port__busy, #{port := Of}}) -> Of =:= Text end)
                          end, Config),
    _ = test_bpftrace:stop(Consumer).

%% On the node: a thousand processes write to a port that is busy repeatedly.
flood(Folder) ->
    ok = test_driver:load(Folder, output),
    Port = test_driver:open(output),
    Drain = spawn_link(fun test_autotracer:sink/0),
    true = erlang:port_connect(Port, Drain),
    Writers = [spawn_link(fun() -> write_little(Port) end) || _ <- lists:seq(1, 1000)],
    busy_and_not(Port, Writers).

%% Ends the flood with all processes linked to it.
stopped(Flood) ->
    {links, Links} = process_info(Flood, links),
    Monitors = [monitor(process, Pid) || Pid <- [Flood | Links], is_pid(Pid)],
    true = exit(Flood, kill),
    [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    ok.

busy_and_not(Port, Writers) ->
    ok = test_driver:busy(Port, true),
    true = erlang:yield(),
    ok = test_driver:busy(Port, false),
    busy_and_not(Port, Writers).

write_little(Port) ->
    true = port_command(Port, "data"),
    write_little(Port).

%% -- Ends ----------------------------------------------------------------------------------

worker_killed(Config) ->
    Consumer = observed([vm_long_gc, vm_busy_port], Config),
    [begin
         First = call(Config, fun() -> Pid = whereis(dyntrace_autotracer), exit(Pid, kill), Pid end),
         until_worker_after(First, Config),
         until_following(sources, [system_monitor], Config),
         until_monitored([busy_port, {long_gc, 100}], Config)
     end || _ <- [1, 2]],
    %% Nothing is left when no other worker follows.
    call(Config, fun() -> exit(whereis(dyntrace_sup), kill) end),
    test_autotracer:until_unmonitored(Config),
    _ = test_bpftrace:stop(Consumer).

consumer_killed(Config) ->
    Consumer = observed([vm_long_schedule, vm_large_heap], Config),
    ok = test_bpftrace:kill(Consumer),
    until_following(sources, [], Config),
    ?assertEqual([], call(Config, fun test_autotracer:monitored/0)).

%% -- Ports that do not answer ----------------------------------------------------------------

%% The application asks the ports for their names. One port does not answer for six seconds, because its driver occupies
%% it and its scheduler: a process waits for it, and the ports before and after it are asked. The source runs on another
%% scheduler, without the application, because the application's tracing would wait for all schedulers.
unanswering_port(Config) ->
    Folder = test_driver:build(?config(priv_dir, Config)),
    Consumer = attach([driver__control], Config),
    {Ports, Ms} = call(Config, fun() -> polled_beside_a_stuck_port(Folder) end),
    ?assert(Ms < 6000, Ms),
    ct:pal("~b ms until the others were asked", [Ms]),
    [test_bpftrace:await(Consumer, fun({_, #{port := Of, port_name := Name}}) ->
                                           {Of, Name} =:= {Text, <<"test_output_drv">>}
                                   end) || Text <- [text(Port, Config) || Port <- Ports]],
    _ = test_bpftrace:stop(Consumer).

%% At most ten processes wait for ports. If an eleventh port does not answer, the process that has waited longest is
%% killed. The process that asks is linked to it, and goes on.
unanswering_ports(Config) ->
    Most = 10,
    Ports = lists:seq(1, Most + 1),
    Waiting = call(Config, fun() ->
                                   Asker = dyntrace_port_asker:new(fun(_, _) -> receive never -> ok end end),
                                   until_idle(dyntrace_port_asker:ask(Ports, Asker))
                           end),
    ?assertEqual(lists:reverse(tl(Ports)), Waiting).

until_idle(Asker) ->
    case dyntrace_port_asker:poll(Asker, 100) of
        Polled = {asker, _, none, Waiting} -> ok = dyntrace_port_asker:stop(Polled), [Port || {Port, _} <- Waiting];
        Polled -> until_idle(Polled)
    end.

%% On the node: the ports, which have each executed a control, and the time until the answers of the others.
polled_beside_a_stuck_port(Folder) ->
    Self = self(),
    %% Modules are loaded first, because loading one waits for every scheduler.
    _ = [{module, _} = code:ensure_loaded(Module)
         || Module <- [dyntrace_ports, dyntrace_port_asker, dyntrace_settings, test_wait, tools_SUITE]],
    ok = test_driver:load(Folder, output),
    ok = dyntrace_settings:new(),
    Poller = spawn_opt(?MODULE, polls_ports, [Self], [link, {scheduler, 2}]),
    Opener = spawn_opt(?MODULE, opens_ports, [Poller], [link, {scheduler, 1}]),
    receive {Poller, Result} -> unlink(Opener), exit(Opener, kill), Result end.

%% The ports' turns are on the scheduler of the process that opens them.
opens_ports(Poller) ->
    Ports = [_, Stuck, _] = [test_driver:open(output) || _ <- [1, 2, 3]],
    _ = [1 = erlang:trace(Port, true, ['receive', running_ports, {tracer, dyntrace, []}]) || Port <- Ports],
    ok = test_driver:sleep_later(Stuck, 6000),
    Poller ! {ports, Ports},
    test_autotracer:sink().

polls_ports(To) ->
    _ = process_flag(trap_exit, true),
    Ports = [_, Stuck, _] = receive {ports, Opened} -> Opened end,
    Began = erlang:monotonic_time(millisecond),
    ok = tools_SUITE:spin(50000),
    {on, State} = dyntrace_ports:on([], #{ports => all}),
    Asked = until_asked(Stuck, State),
    [<<"data">> = test_driver:echo(Port, "data") || Port <- Ports, Port =/= Stuck],
    Ms = erlang:monotonic_time(millisecond) - Began,
    Answered = until_answered(Asked),
    <<"data">> = test_driver:echo(Stuck, "data"),
    ok = dyntrace_ports:off(Answered),
    To ! {self(), {Ports, Ms}}.

%% Waits until a process waits for that port and no other port is being asked.
until_asked(Stuck, State) ->
    polled_until({"a process waits for", Stuck}, fun({asker, _, none, [{Port, _}]}) -> Port =:= Stuck; (_) -> false end,
                 State).

until_answered(State) ->
    polled_until("no port is asked", fun({asker, _, Asking, Waiting}) -> {Asking, Waiting} =:= {none, []} end, State).

polled_until(What, Is, State) ->
    _ = put(polled, State),
    ok = test_wait:until(What, Is, fun() ->
                                           {on, New} = dyntrace_ports:poll([], get(polled)),
                                           _ = put(polled, New),
                                           New
                                   end),
    erase(polled).
