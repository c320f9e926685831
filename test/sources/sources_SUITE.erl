%% Events that the application observes without trace events, and reports by itself. Exit signals of other nodes, which
%% are trace events, are tested here because they need two nodes.
-module(sources_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, following/1, call/2, text/2, with_node/3, with_two_nodes/3,
                          until_following/3, until_nodes/3, until_worker_after/2, keep_log/1, logged/1,
                          until_logged/2]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [nodes_that_connect_and_part, drivers, exit_signals_of_another_node, switched_on_and_off, bad_messages,
     fails_again_and_again, worker_killed, supervisor_killed].

%% -- Nodes ---------------------------------------------------------------------------------

%% A node starts its distribution while the consumer is attached, connects to a visible and a hidden node, and stops.
%% The events match the messages that a process on the node gets.
nodes_that_connect_and_part(Config) ->
    test_node:with_epmd(
      fun(Epmd) -> with_node(test_node:nameless(Epmd), fun(Ours) -> parted(Epmd, Ours) end, Config) end).

parted(Epmd, Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([dist__monitor, node_up, node_down], Config),
    until_following(sources, [nodes], Config),
    Monitor = call(Config, fun() ->
                                   Self = self(),
                                   Pid = spawn(fun() ->
                                                       ok = net_kernel:monitor_nodes(true, [{node_type, all},
                                                                                            nodedown_reason]),
                                                       Self ! {self(), monitors},
                                                       receive stop -> ok end
                                               end),
                                   receive {Pid, monitors} -> Pid end
                           end),
    ok = call(Config, fun() -> distributed('a@127.0.0.1') end),
    Visible = test_node:named("b", Epmd),
    Hidden = test_node:named("c", Epmd, ["-hidden"]),
    true = call(Config, fun() -> net_kernel:connect_node('b@127.0.0.1') end),
    true = call(Config, fun() -> erlang:disconnect_node('b@127.0.0.1') end),
    true = call(Config, fun() -> net_kernel:connect_node('c@127.0.0.1') end),
    until_nodes(hidden, ['c@127.0.0.1'], Config),
    true = call(Config, fun() -> net_kernel:connect_node('b@127.0.0.1') end),
    test_node:stop(Visible),
    until_nodes(visible, [], Config),
    ok = call(Config, fun net_kernel:stop/0),
    test_node:stop(Hidden),
    test_bpftrace:await(Consumer, fun({Probe, Fields}) ->
                                          {Probe, maps:get(node, Fields)} =:= {node_down, <<"'a@127.0.0.1'">>}
                                  end),
    Messages = call(Config, fun() -> element(2, process_info(Monitor, messages)) end),
    Expected = [#{node => <<"'a@127.0.0.1'">>, what => test_cases:text(What), monitored_node => test_cases:text(Node),
                  type => test_cases:text(proplists:get_value(node_type, Info)),
                  reason => reason(Info)}
                || {What, Node, Info} <- Messages],
    ?assertEqual([<<"[]">>, <<"connection_closed">>, <<"disconnect">>, <<"net_kernel_terminated">>],
                 lists:usort([Reason || #{reason := Reason} <- Expected])),
    ?assertEqual([<<"hidden">>],
                 lists:usort([Type || #{monitored_node := <<"'c@127.0.0.1'">>, type := Type} <- Expected])),
    Events = test_bpftrace:stop(Consumer),
    ?assertEqual(Expected, [Event || {dist__monitor, Event} <- Events]),
    ?assertEqual([case What of
                      <<"nodeup">> -> {node_up, #{node => Node, type => Type}};
                      <<"nodedown">> -> {node_down, #{node => Node, type => Type, reason => Reason}}
                  end || #{what := What, monitored_node := Node, type := Type, reason := Reason} <- Expected],
                 [Event || Event = {Probe, _} <- Events, Probe =/= dist__monitor]),
    until_following(sources, [], Config),
    %% The worker no longer gets messages.
    ?assertEqual([], call(Config, fun() -> received_by_worker(fun() -> ok = distributed('d@127.0.0.1') end) end)).

reason(Info) ->
    case lists:keyfind(nodedown_reason, 1, Info) of
        {_, Reason} -> test_cases:text(Reason);
        false -> <<"[]">>
    end.

%% On the node: messages about nodes that the worker has received when Fun has returned.
received_by_worker(Fun) ->
    Worker = whereis(dyntrace_autotracer),
    1 = erlang:trace(Worker, true, ['receive']),
    Fun(),
    _ = sys:get_state(Worker),
    1 = erlang:trace(Worker, false, ['receive']),
    Ref = erlang:trace_delivered(Worker),
    receive {trace_delivered, Worker, Ref} -> ok end,
    [Message || Message <- test_trace:received(), lists:member(element(1, Message), [nodeup, nodedown])].

%% -- Drivers -------------------------------------------------------------------------------

%% A driver that is unloaded while it has a port is really unloaded when that port is closed.
drivers(Config) ->
    Folder = test_driver:build(?config(priv_dir, Config)),
    start([{interval, 10}], Config),
    Consumer = attach([driver__init, driver__finish], Config),
    until_following(sources, [drivers], Config),
    %% The drivers have been listed once.
    until_looked(Config),
    Loader = call(Config, fun() -> spawn(fun work/0) end),
    Does = fun(Fun) -> call(Config, fun() -> worked(Loader, Fun) end) end,
    %% If loaded like this, the driver keeps its ports when it is unloaded.
    ok = Does(fun() -> erl_ddll:load(Folder, test_driver:name(output)) end),
    ?assertEqual({driver__init, #{name => <<"test_output_drv">>, major => 0, minor => 0, flags => 0}},
                 driver_event(driver__init, output, Consumer)),
    ok = Does(fun() -> test_driver:load(Folder, outputv) end),
    _ = driver_event(driver__init, outputv, Consumer),
    Port = Does(fun() -> test_driver:open(output) end),
    ok = Does(fun() -> erl_ddll:unload(test_driver:name(output)) end),
    ?assert(lists:member(test_driver:name(output), Does(fun loaded/0))),
    %% A driver that was loaded twice.
    ok = Does(fun() -> test_driver:load(Folder, outputv) end),
    ok = Does(fun() -> erl_ddll:unload(test_driver:name(outputv)) end),
    ?assert(lists:member(test_driver:name(outputv), Does(fun loaded/0))),
    ok = Does(fun() -> test_driver:unload(outputv) end),
    ?assertEqual({driver__finish, #{name => <<"test_outputv_drv">>}}, driver_event(driver__finish, outputv, Consumer)),
    true = Does(fun() -> port_close(Port) end),
    _ = driver_event(driver__finish, output, Consumer),
    ?assertEqual([{driver__init, <<"test_output_drv">>}, {driver__init, <<"test_outputv_drv">>},
                  {driver__finish, <<"test_outputv_drv">>}, {driver__finish, <<"test_output_drv">>}],
                 [{Probe, Name} || {Probe, #{name := Name}} <- test_bpftrace:stop(Consumer)]),
    until_following(sources, [], Config),
    until_no_looker(Config).

driver_event(Probe, Kind, Consumer) ->
    Name = list_to_binary(test_driver:name(Kind)),
    test_bpftrace:await(Consumer, fun({Of, #{name := Driver}}) -> {Of, Driver} =:= {Probe, Name} end).

until_looked(Config) ->
    test_wait:until("the drivers that were there before", fun({on, State}) -> is_list(element(4, State)) end,
                    fun() -> source(drivers, Config) end).

%% A source in the worker's state, or off.
source(Name, Config) ->
    State = call(Config, fun() -> tuple_to_list(sys:get_state(dyntrace_autotracer)) end),
    case [Source || {sources, #{Name := Source}, _, _} <- State] of
        [Source] -> Source;
        [] -> off
    end.

until_no_looker(Config) ->
    test_wait:until("the process that looks has ended", [],
                    fun() ->
                            call(Config, fun() ->
                                                 [Pid || Pid <- processes(),
                                                         {current_function, {dyntrace_drivers, _, _}}
                                                             <- [process_info(Pid, current_function)]]
                                         end)
                    end).

%% On the node.
loaded() ->
    {ok, Names} = erl_ddll:loaded_drivers(),
    Names.

%% On the node: a process that runs functions, because a driver is loaded for the process that loads it.
work() ->
    receive {From, Fun} -> From ! {self(), Fun()}, work() end.

worked(Worker, Fun) ->
    Worker ! {self(), Fun},
    receive {Worker, Result} -> Result end.

%% -- Exit signals --------------------------------------------------------------------------

%% An exit signal from another node has the node's name; one from this node does not fire the probe.
exit_signals_of_another_node(Config) ->
    with_two_nodes([], fun exit_signals/2, Config).

exit_signals(Other, Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([process__exit_signal__remote, process__exit_signal], Config),
    test_autotracer:until_flags(new, ['receive'], Config),
    Far = peer:call(Other, erlang, spawn, [test_autotracer, sink, []]),
    {Near, Receiver} =
        call(Config, fun() ->
                             Self = self(),
                             Near = spawn(fun test_autotracer:sink/0),
                             Receiver = spawn(fun() ->
                                                      _ = process_flag(trap_exit, true),
                                                      [link(Pid) || Pid <- [Near, Far]],
                                                      true = exit(Near, {near, 1}),
                                                      receive {'EXIT', Near, _} -> ok end,
                                                      true = exit(Far, {far, 2}),
                                                      receive {'EXIT', Far, _} -> ok end,
                                                      Self ! {self(), ended}
                                              end),
                             receive {Receiver, ended} -> {Near, Receiver} end
                     end),
    [NearText, FarText, ReceiverText] = [text(Pid, Config) || Pid <- [Near, Far, Receiver]],
    _ = test_bpftrace:await(Consumer, fun({Probe, #{receiver := To}}) ->
                                              {Probe, To} =:= {process__exit_signal__remote, ReceiverText}
                                      end),
    Expected = #{sender => FarText, node_name => <<"'b@127.0.0.1'">>, receiver => ReceiverText, reason => <<"{far,2}">>,
                 label => 0, previous => 0, current => 0},
    ?assertEqual(lists:sort([{process__exit_signal, #{sender => NearText, receiver => ReceiverText,
                                                      reason => <<"{near,1}">>}},
                             {process__exit_signal, maps:with([sender, receiver, reason], Expected)},
                             {process__exit_signal__remote, Expected}]),
                 lists:sort([Event || Event = {_, #{receiver := To}} <- test_bpftrace:stop(Consumer),
                                      To =:= ReceiverText])).

%% -- Ends ----------------------------------------------------------------------------------

%% A message that looks like one of the runtime system does not end the worker.
bad_messages(Config) ->
    keep_log(Config),
    start([{interval, 10}], Config),
    Consumer = attach([dist__monitor, port__busy, driver__init], Config),
    until_following(sources, [drivers, nodes, system_monitor], Config),
    Worker = call(Config, fun() -> whereis(dyntrace_autotracer) end),
    Bad = [{nodeup, 1, []}, {nodedown, 'b@127.0.0.1', improper}, {monitor, 1, busy_port, {}}],
    [begin
         call(Config, fun() -> Worker ! Message end),
         until_logged(Count, Config),
         [test_wait:until({Source, "is on again"}, fun({on, _}) -> true; (off) -> false end,
                          fun() -> source(Source, Config) end) || Source <- [drivers, nodes, system_monitor]]
     end || {Count, Message} <- lists:zip(lists:seq(1, length(Bad)), Bad)],
    call(Config, fun() ->
                         [Worker ! Message || Message <- [hello, {dyntrace_drivers, self(), []}, {'EXIT', self(), oops},
                                                          {monitor, self(), long_gc, []}]]
                 end),
    ?assertEqual([nodes, nodes, system_monitor],
                 [Source || {error, "dyntrace: ~s failed" ++ _, [Source | _]} <- logged(Config)]),
    ?assertEqual(Worker, call(Config, fun() -> _ = sys:get_state(Worker), whereis(dyntrace_autotracer) end)),
    _ = test_bpftrace:stop(Consumer).

%% A failure is logged once, until the source has been on from one poll to the next without a failure.
fails_again_and_again(Config) ->
    keep_log(Config),
    call(Config, fun() ->
                         {ok, Options} = dyntrace_config:check([]),
                         Required = (dyntrace_trace_flags:none())#{sources := [nodes]},
                         Poll = fun(Sources) ->
                                        {New, []} = dyntrace_sources:update(Sources, Required, [node_up], Options),
                                        [nodes] = dyntrace_sources:on(New),
                                        New
                                end,
                         Fail = fun(Sources) ->
                                        New = dyntrace_sources:message({nodeup, 1, []}, Sources),
                                        [] = dyntrace_sources:on(New),
                                        New
                                end,
                         Once = Fail(Poll(dyntrace_sources:new())),
                         Again = lists:foldl(fun(_, Sources) -> Fail(Poll(Sources)) end, Once, [1, 2, 3]),
                         Fail(Poll(Poll(Again)))
                 end),
    ?assertMatch([{error, "dyntrace: ~s failed" ++ _, [nodes | _]}, {error, "dyntrace: ~s failed" ++ _, [nodes | _]}],
                 logged(Config)).

switched_on_and_off(Config) ->
    start([{interval, 10}], Config),
    [begin
         Consumer = attach([Probe], Config),
         until_following(sources, [Source], Config),
         ?assertMatch(#{processes := [], ports := []}, following(Config)),
         ok = test_bpftrace:kill(Consumer),
         until_following(sources, [], Config)
     end || {Probe, Source} <- [{dist__monitor, nodes}, {dist__port_busy, system_monitor}, {port__busy, system_monitor},
                                {driver__init, drivers}, {driver__finish, drivers}, {node_up, nodes},
                                {node_down, nodes}, {vm_busy_port, system_monitor}, {vm_busy_dist_port, system_monitor},
                                {vm_long_gc, system_monitor}, {vm_large_heap, system_monitor},
                                {vm_long_schedule, system_monitor}, {vm_long_message_queue, system_monitor}]],
    ok = call(Config, fun() -> dyntrace:follow(#{probes => [process_exit]}) end),
    Consumer = attach([port__busy, process_exit], Config),
    test_autotracer:until_traced(Config),
    ?assertEqual([], maps:get(sources, following(Config))),
    _ = test_bpftrace:stop(Consumer).

worker_killed(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([dist__monitor, dist__port_busy, port__busy, driver__init], Config),
    All = [drivers, nodes, system_monitor],
    until_following(sources, All, Config),
    [begin
         First = call(Config, fun() -> Pid = whereis(dyntrace_autotracer), exit(Pid, kill), Pid end),
         until_worker_after(First, Config),
         until_following(sources, All, Config),
         ?assertEqual([busy_dist_port, busy_port], call(Config, fun test_autotracer:monitored/0))
     end || _ <- [1, 2]],
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    until_no_looker(Config).

supervisor_killed(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([dist__monitor, dist__port_busy, port__busy, driver__init], Config),
    until_following(sources, [drivers, nodes, system_monitor], Config),
    call(Config, fun() -> exit(whereis(dyntrace_sup), kill) end),
    test_wait:until("the application has ended", fun(Running) -> not lists:keymember(dyntrace, 1, Running) end,
                    fun() -> call(Config, fun application:which_applications/0) end),
    test_autotracer:until_unmonitored(Config),
    until_no_looker(Config),
    _ = test_bpftrace:stop(Consumer).

%% -- Helpers -------------------------------------------------------------------------------

%% On the node.
distributed(Name) ->
    {ok, _} = net_kernel:start(Name, #{name_domain => longnames}),
    ok.
