%% The probe message_delivery, whose senders come from a match specification that the application sets; and match
%% specifications of users.
-module(delivery_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, detach/2, following/1, call/2, text/2, with_two_nodes/3, until_traced/1,
                          until_untraced/1, until_following/3, until_pattern/3, until_worker_after/2, keep_log/1,
                          logged/1, infos/2, badarg_of_follow/2]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [{group, usdt}, {group, lttng}, while_required, beside_other_probes, worker_killed, worker_killed_for_good,
     bad_match_specifications, filters_of_configuration, results_of_filters, returns_of_some_calls,
     patterns_that_overlap]
        ++ [Case || not test_trace:has_sessions(),
                    Case <- [pattern_of_another_tool, same_pattern_of_another_tool, pattern_cleared_by_another_tool,
                             filter_of_another_tool, shared_trace_messages]]
        ++ [Case || test_trace:has_sessions(), Case <- [pattern_of_another_session]].

groups() ->
    [{Backend, [senders, polls, no_senders, filter_of_sends, filter_of_receives, filter_of_calls]}
     || Backend <- [usdt, lttng]].

init_per_suite(Config) -> Config.

end_per_suite(_) -> ok.

init_per_group(lttng, Config) ->
    [{backend, lttng} | test_require:tool(test_lttng:missing(), Config)];
init_per_group(usdt, Config) ->
    [{backend, usdt} | Config].

end_per_group(_, _) -> ok.

init_per_testcase(_, Config) ->
    case ?config(backend, Config) of
        lttng -> [{daemon, test_lttng:start_daemon()} | Config];
        _ -> Config
    end.

end_per_testcase(_, Config) ->
    ?config(daemon, Config) =:= undefined orelse test_lttng:stop_daemon(?config(daemon, Config)),
    ok.

%% -- A consumer of either backend --------------------------------------------------------------

consumer(Probes, Config) ->
    case ?config(backend, Config) of
        usdt ->
            attach(Probes, Config);
        lttng ->
            Daemon = ?config(daemon, Config),
            OsPid = test_node:os_pid(?config(node, Config)),
            test_wait:until("the daemon knows the node",
                            fun() -> test_lttng:tracepoints(Daemon, OsPid) =/= [] end),
            test_lttng:start(Daemon, Probes)
    end.

%% The events up to the last one: the message `last', or the return from test_cases:location/1.
events(Consumer, Config) ->
    ok = await(Consumer, fun is_last/1, Config),
    case ?config(backend, Config) of
        usdt -> test_bpftrace:stop(Consumer);
        lttng -> test_lttng:stop(Consumer)
    end.

%% message_delivery fires after message_receive.
is_last({Probe, #{message := Message}}) -> Message =:= <<"last">> andalso Probe =/= message_receive;
is_last({Probe, #{entry := Entry}}) -> {Probe, Entry} =:= {function_return, <<"test_cases:location/1">>}.

%% An event that bpftrace has not read when it is stopped is lost. LTTng records before the traced process continues.
await(Consumer, IsAwaited, Config) ->
    _ = ?config(backend, Config) =:= usdt andalso test_bpftrace:await(Consumer, IsAwaited),
    ok.

%% -- Senders -----------------------------------------------------------------------------------

%% The senders are a process, a port, a timer, another node, and the VM, which answers a question about memory.
%% message_receive fires for the same messages.
senders(Config) ->
    with_two_nodes([], fun(Other, Ours) -> senders(Other, Ours) end, Config).

senders(Other, Config) ->
    start([{interval, 10}], Config),
    Consumer = consumer([message_delivery, message_receive], Config),
    until_following(senders, true, Config),
    {To, From, Port} = call(Config, fun receiver_and_senders/0),
    true = test_node:call(Other, fun() -> net_kernel:connect_node('a@127.0.0.1') end),
    test_node:call(Other, fun() ->
                                  {test_receiver, 'a@127.0.0.1'} ! from_b,
                                  answered(memory, {test_receiver, 'a@127.0.0.1'})
                          end),
    call(Config, fun() -> answered(memory, test_receiver), ended(test_receiver) end),
    Events = events(Consumer, Config),
    Mine = [Event || {message_delivery, Event = #{to := Of}} <- Events, Of =:= To],
    Node = <<"'a@127.0.0.1'">>,
    Expected = [{From, Node, <<"from_a">>}, {Port, Node, iolist_to_binary(["{", Port, ",{data,<<\"x\">>}}"])},
                {<<>>, <<"clock_service">>, <<"tick">>}, {<<>>, <<"'b@127.0.0.1'">>, <<"from_b">>}],
    Seen = [{S, N, M} || #{from := S, node := N, message := M} <- Mine],
    ?assertEqual([], Expected -- Seen),
    ?assertEqual([Row || Row <- Seen, lists:member(Row, Expected)], Expected),
    ?assertMatch([_ | _], [M || {<<>>, <<"system">>, M} <- Seen]),
    ?assertEqual([M || {message_receive, #{to := Of, message := M}} <- Events, Of =:= To], [M || {_, _, M} <- Seen]),
    until_following(senders, false, Config).

%% On the node: the texts of a receiver and of its senders, in this order: a process, a port, a timer.
receiver_and_senders() ->
    Self = self(),
    To = spawn(fun() ->
                       true = register(test_receiver, self()),
                       Self ! {self(), open_port({spawn, "cat"}, [binary])},
                       receiver(Self)
               end),
    Port = receive {To, Opened} -> Opened end,
    From = spawn(fun() -> To ! from_a end),
    receive {To, from_a} -> ok end,
    Port ! {To, {command, <<"x">>}},
    receive {To, {Port, {data, <<"x">>}}} -> ok end,
    _ = erlang:send_after(1, To, tick),
    receive {To, tick} -> ok end,
    {test_cases:text(To), test_cases:text(From), test_cases:text(Port)}.

%% Sends Observer the messages that it receives, in order.
receiver(Observer) ->
    receive
        {From, memory} -> _ = erlang:memory(), From ! {self(), memory}, receiver(Observer);
        last -> ok;
        Message -> Observer ! {self(), Message}, receiver(Observer)
    end.

answered(Question, Receiver) ->
    Receiver ! {self(), Question},
    receive {_, Question} -> ok end.

ended(Receiver) ->
    Monitor = monitor(process, Receiver),
    Receiver ! last,
    receive {'DOWN', Monitor, process, _, normal} -> ok end.

%% While process_scheduled is enabled, a timeout is left out if the process has already run in the same turn, that is,
%% if it has sent a message or had another timeout. If message_receive is enabled, every timeout is reported.
polls(Config) ->
    All = [<<"first">>, <<"timeout">>, <<"timeout">>, <<"timeout">>, <<"timeout">>, <<"last">>],
    start([{interval, 10}], Config),
    Some = [<<"first">>, <<"timeout">>, <<"timeout">>, <<"timeout">>, <<"last">>],
    Waited = [<<"first">>, <<"timeout">>, <<"timeout">>, <<"last">>],
    [?assertEqual({Probes, Expected}, {Probes, delivered_to_poller(Probes, Config)})
     || {Probes, Expected} <- [{[message_delivery, process_scheduled], Some},
                               {[message_delivery, process_scheduled, message_send], Waited},
                               {[message_delivery], All},
                               {[message_delivery, process_scheduled, message_receive], All}]].

delivered_to_poller(Probes, Config) ->
    Consumer = consumer(Probes, Config),
    until_following(senders, true, Config),
    HasTurns = lists:member(process_scheduled, Probes),
    HasSends = lists:member(message_send, Probes),
    Has = fun(Flag, Flags) -> lists:member(Flag, Flags) end,
    until_following(processes, fun(Flags) -> {Has(running, Flags), Has(send, Flags)} =:= {HasTurns, HasSends} end,
                    Config),
    To = call(Config, fun() ->
                              Self = self(),
                              Poller = spawn(fun() -> polls_and_waits(Self) end),
                              Poller ! first,
                              receive {Poller, polled} -> ok end,
                              ok = ended(Poller),
                              test_cases:text(Poller)
                      end),
    Events = events(Consumer, Config),
    until_untraced(Config),
    [Message || {message_delivery, #{to := Of, message := Message}} <- Events, Of =:= To].

%% Waits for each message, and for one that never arrives. The message `timeout' of a process is not a timeout.
polls_and_waits(Observer) ->
    receive first -> ok end,
    Observer ! {self(), polls},
    receive none -> ok after 0 -> ok end,
    receive none -> ok after 20 -> ok end,
    receive none -> ok after 0 -> ok end,
    self() ! timeout,
    receive timeout -> ok end,
    Observer ! {self(), polled},
    receive last -> ok end.

%% If the trace flags are set by hand, without the match specification or with a different result, message_delivery does
%% not fire, and no event counts as undecoded (see test_autotracer).
no_senders(Config) ->
    Consumer = consumer([message_delivery, message_receive], Config),
    test_wait:until("both are enabled", 2, fun() -> length(call(Config, fun dyntrace:listeners/0)) end),
    To = call(Config, fun() ->
                              {module, _} = code:ensure_loaded(test_autotracer),
                              Pid = spawn(fun test_autotracer:sink/0),
                              1 = erlang:trace(Pid, true, ['receive', {tracer, dyntrace, []}]),
                              Results = ['$1', {{'$1'}}, {{'$1', '$2', '$2'}}, {{'$2', '$1'}}, {{'$3', undefined}},
                                         true, {{'$1', 17}}, [1, 2], [], 1],
                              Specs = [true | [[{['$1', '$2', '$3'], [], [{message, Result}]}] || Result <- Results]],
                              [begin
                                   _ = erlang:trace_pattern('receive', Spec, []),
                                   Pid ! {N},
                                   {links, []} = process_info(Pid, links)
                               end || {N, Spec} <- lists:zip(lists:seq(1, length(Specs)), Specs)],
                              _ = erlang:trace_pattern('receive', dyntrace:sender_pattern(), []),
                              Pid ! last,
                              {links, []} = process_info(Pid, links),
                              _ = erlang:trace_pattern('receive', true, []),
                              test_cases:text(Pid)
                      end),
    Events = events(Consumer, Config),
    ?assertEqual([<<"last">>], [M || {message_delivery, #{to := Of, message := M}} <- Events, Of =:= To]),
    ?assertEqual([iolist_to_binary(io_lib:format("{~b}", [N])) || N <- lists:seq(1, 11)] ++ [<<"last">>],
                 [M || {message_receive, #{to := Of, message := M}} <- Events, Of =:= To]).

%% The match specification is set only while the probe has a consumer.
while_required(Config) ->
    start([{interval, 10}], Config),
    ?assertEqual(true, of_messages('receive', Config)),
    Receives = attach([message_receive, message__receive], Config),
    until_traced(Config),
    ?assertEqual(true, of_messages('receive', Config)),
    ?assertMatch(#{senders := false}, following(Config)),
    [begin
         Consumer = attach([message_delivery], Config),
         until_messages('receive', sender_pattern(Config), Config),
         until_following(senders, true, Config),
         _ = test_bpftrace:stop(Consumer),
         until_messages('receive', true, Config),
         until_following(senders, false, Config)
     end || _ <- [1, 2]],
    detach(Receives, Config),
    Again = attach([message_delivery], Config),
    until_messages('receive', sender_pattern(Config), Config),
    ok = call(Config, fun dyntrace:unfollow/0),
    ?assertEqual(true, of_messages('receive', Config)),
    _ = test_bpftrace:stop(Again).

%% The other probes of the same event fire as before, with the same arguments.
beside_other_probes(Config) ->
    start([{interval, 10}], Config),
    Probes = [message_receive, message__receive, message__queued, message_send],
    Others = attach(Probes, Config),
    until_following(processes, fun(Flags) -> ['receive', send] -- Flags =:= [] end, Config),
    Before = exchange(Config),
    Consumer = attach([message_delivery], Config),
    until_following(senders, true, Config),
    Beside = exchange(Config),
    Counts = fun(Events) -> [{Probe, To, count(Probe, To, Events)} || Probe <- Probes, To <- [Before, Beside]] end,
    Expected = [{Probe, To, 100} || Probe <- Probes, To <- [Before, Beside]],
    test_wait:until("all events", Expected, fun() -> Counts(test_bpftrace:events(Others)) end),
    ?assertEqual(Expected, Counts(test_bpftrace:stop(Others))),
    _ = test_bpftrace:stop(Consumer).

count(Probe, To, Events) ->
    length([P || {P, Fields} <- Events, P =:= Probe, of_receiver(Fields) =:= To]).

of_receiver(#{to := To}) -> To;
of_receiver(#{receiver := To}) -> To.

%% A hundred messages to a process; returns its text.
exchange(Config) ->
    call(Config, fun() ->
                         Self = self(),
                         To = spawn(fun Loop() -> receive stop -> Self ! stopped; _ -> Loop() end end),
                         spawn(fun() -> [To ! {n, N} || N <- lists:seq(1, 99)], To ! stop end),
                         receive stopped -> test_cases:text(To) end
                 end).

%% -- Killed workers ----------------------------------------------------------------------------

%% The next worker takes over the match specifications, and clears them when they are no longer required.
worker_killed(Config) ->
    Filter = [{['_', '$1'], [{is_atom, '$1'}], []}],
    start([{interval, 10}, {send, Filter}], Config),
    Consumer = attach([message_delivery, message_send], Config),
    until_messages('receive', sender_pattern(Config), Config),
    until_messages(send, Filter, Config),
    Worker = call(Config, fun() -> whereis(dyntrace_autotracer) end),
    call(Config, fun() -> exit(whereis(dyntrace_autotracer), kill) end),
    until_worker_after(Worker, Config),
    until_messages('receive', sender_pattern(Config), Config),
    until_messages(send, Filter, Config),
    until_following(senders, true, Config),
    _ = test_bpftrace:stop(Consumer),
    until_messages('receive', true, Config),
    until_messages(send, true, Config).

worker_killed_for_good(Config) ->
    start([{interval, 10}, {'receive', [{['_', '_', last], [], []}]}], Config),
    Consumer = attach([message_delivery], Config),
    until_messages('receive', fun(Spec) -> Spec =/= true end, Config),
    call(Config, fun() -> exit(whereis(dyntrace_sup), kill) end),
    until_messages('receive', true, Config),
    test_autotracer:until_off(Config),
    _ = test_bpftrace:stop(Consumer).

%% -- Beside other tools, before OTP 27 ------------------------------------------------------------

%% The match specification of another tool is kept, and the messages that it passes have events.
pattern_of_another_tool(Config) ->
    keep_log(Config),
    start([{interval, 10}], Config),
    Theirs = [{['_', '_', '$1'], [{'=/=', '$1', unwanted}], []}],
    call(Config, fun() -> erlang:trace_pattern('receive', Theirs, []) end),
    Consumer = attach([message_delivery, message_receive], Config),
    until_withheld('receive', Config),
    ?assertMatch(#{senders := false, processes := ['receive']}, following(Config)),
    ?assertEqual(Theirs, of_messages('receive', Config)),
    ?assertMatch([{warning, "dyntrace: the match specification of ~s is not set: ~s", ['receive', _]}], logged(Config)),
    call(Config, fun() -> erlang:trace_pattern('receive', true, []) end),
    until_following(senders, true, Config),
    ?assertEqual(#{}, maps:get(withheld, following(Config))),
    ?assertEqual(sender_pattern(Config), of_messages('receive', Config)),
    %% The tool sets it again.
    call(Config, fun() -> erlang:trace_pattern('receive', Theirs, []) end),
    until_withheld('receive', Config),
    detach(Consumer, Config),
    ?assertEqual(Theirs, of_messages('receive', Config)).

%% An equal match specification that was set by hand is used, and is not ours to clear.
same_pattern_of_another_tool(Config) ->
    start([{interval, 10}], Config),
    call(Config, fun() -> erlang:trace_pattern('receive', dyntrace:sender_pattern(), []) end),
    Consumer = attach([message_delivery], Config),
    until_following(senders, true, Config),
    ?assertEqual(#{}, maps:get(withheld, following(Config))),
    detach(Consumer, Config),
    ?assertEqual(sender_pattern(Config), of_messages('receive', Config)).

pattern_cleared_by_another_tool(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([message_delivery], Config),
    [begin
         until_messages('receive', sender_pattern(Config), Config),
         until_following(senders, true, Config),
         call(Config, fun() -> erlang:trace_pattern('receive', true, []) end)
     end || _ <- lists:seq(1, 3)],
    until_messages('receive', sender_pattern(Config), Config),
    _ = test_bpftrace:stop(Consumer),
    until_messages('receive', true, Config).

filter_of_another_tool(Config) ->
    start([{interval, 10}, {send, [{['_', hello], [], []}]}], Config),
    Theirs = [{['_', '$1'], [{is_atom, '$1'}], []}],
    call(Config, fun() -> erlang:trace_pattern(send, Theirs, []) end),
    Consumer = attach([message_send], Config),
    until_withheld(send, Config),
    call(Config, fun() -> erlang:trace_pattern(send, true, []) end),
    until_messages(send, [{['_', hello], [], []}], Config),
    until_following(withheld, #{}, Config),
    _ = test_bpftrace:stop(Consumer),
    until_messages(send, true, Config).

%% While the probe is enabled, the trace messages of another tracer also have the sender, as sender_pattern/0 describes.
shared_trace_messages(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([message_delivery], Config),
    until_following(senders, true, Config),
    ?assertMatch([{trace, _, 'receive', hello, {nonode@nohost, _}}], call(Config, fun traced_hello/0)),
    _ = test_bpftrace:stop(Consumer),
    until_messages('receive', true, Config),
    ?assertMatch([{trace, _, 'receive', hello}], call(Config, fun traced_hello/0)).

traced_hello() ->
    Self = self(),
    Pid = spawn(fun() -> receive hello -> Self ! done end end),
    _ = erlang:trace(Pid, false, [all, {tracer, dyntrace, dyntrace_autotracer}]),
    1 = erlang:trace(Pid, true, ['receive']),
    Pid ! hello,
    receive done -> ok end,
    Ref = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Ref} -> ok end,
    traced().

traced() ->
    receive Event when element(1, Event) =:= trace -> [Event | traced()] after 0 -> [] end.

%% In OTP 27 and later, each session has its own.
pattern_of_another_session(Config) ->
    start([{interval, 10}, {send, [{['_', hello], [], []}]}], Config),
    Theirs = [{['_', '_', wanted], [], []}],
    call(Config, fun() -> erlang:trace_pattern('receive', Theirs, []), erlang:trace_pattern(send, false, []) end),
    Consumer = attach([message_delivery, message_send], Config),
    until_following(senders, true, Config),
    ?assertEqual(#{}, maps:get(withheld, following(Config))),
    ?assertEqual([Theirs, sender_pattern(Config)], call(Config, fun() -> specs('receive') end)),
    ?assertEqual([false, [{['_', hello], [], []}]], call(Config, fun() -> specs(send) end)),
    ?assertMatch([_], call(Config, fun traced_wanted/0)),
    detach(Consumer, Config),
    ?assertEqual([Theirs, true], call(Config, fun() -> specs('receive') end)),
    ?assertEqual([false, true], call(Config, fun() -> specs(send) end)).

%% The trace messages of erlang:trace/3: the message that passes its match specification, without a sender.
traced_wanted() ->
    Self = self(),
    Pid = spawn(fun() -> receive wanted -> Self ! done end end),
    1 = erlang:trace(Pid, true, ['receive']),
    Pid ! unwanted,
    Pid ! wanted,
    receive done -> ok end,
    Ref = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Ref} -> ok end,
    [Event || Event = {trace, _, 'receive', wanted} <- traced()].

%% -- Filters -----------------------------------------------------------------------------------

%% Messages to one process, by name and by pid; and messages of more than ten elements.
filter_of_sends(Config) ->
    start([{interval, 10}], Config),
    ok = call(Config, fun() ->
                              Shop = spawn(fun test_autotracer:sink/0),
                              true = register(shop, Shop),
                              dyntrace:follow(#{send => [{[shop, '_'], [], []}, {[Shop, '_'], [], []},
                                                         {['_', '$1'], [{'>', {length, '$1'}, 10}], []},
                                                         {['_', '$1'], [{'>', {size, '$1'}, 10}], []},
                                                         {['_', last], [], []}]})
                      end),
    Consumer = consumer([message_send], Config),
    until_messages(send, fun is_list/1, Config),
    From = call(Config, fun() ->
                                Other = spawn(fun test_autotracer:sink/0),
                                Text = test_cases:text(self()),
                                Shop = whereis(shop),
                                [begin
                                     shop ! {order, N}, Shop ! {pid, N}, Other ! {other, N},
                                     Other ! lists:seq(1, N), Other ! list_to_tuple(lists:seq(1, N))
                                 end || N <- lists:seq(1, 20)],
                                Other ! last,
                                Text
                        end),
    Sent = [{To, M} || {message_send, #{from := Of, to := To, message := M}} <- events(Consumer, Config), Of =:= From],
    Shop = text_of_name(shop, Config),
    ?assertEqual([iolist_to_binary(io_lib:format("{order,~b}", [N])) || N <- lists:seq(1, 20)],
                 [M || {<<"shop">>, M} <- Sent]),
    ?assertEqual([iolist_to_binary(io_lib:format("{pid,~b}", [N])) || N <- lists:seq(1, 20)],
                 [M || {To, M} <- Sent, To =:= Shop]),
    ?assertEqual(20, length([M || {To, M = <<C, _/binary>>} <- Sent, To =/= Shop, To =/= <<"shop">>,
                                  lists:member(C, "[{")])),
    ?assertEqual(61, length(Sent)).

text_of_name(Name, Config) ->
    call(Config, fun() -> test_cases:text(whereis(Name)) end).

%% A filter together with the senders: messages of one process, and `last'.
filter_of_receives(Config) ->
    start([{interval, 10}], Config),
    {From, To} =
        call(Config, fun() ->
                             From = spawn(fun forwarder/0),
                             To = spawn(fun test_autotracer:sink/0),
                             ok = dyntrace:follow(#{'receive' => [{['_', From, '_'], [], []},
                                                                  {['_', '_', last], [], []}]}),
                             {From, To}
                     end),
    Consumer = consumer([message_delivery, message_receive], Config),
    until_following(senders, true, Config),
    call(Config, fun() ->
                         [begin From ! {To, {mine, N}}, To ! {others, N} end || N <- lists:seq(1, 20)],
                         From ! {To, last},
                         From ! {self(), done},
                         receive done -> ok end,
                         %% The receiver has received everything that was sent before.
                         {links, []} = process_info(To, links)
                 end),
    ok = await(Consumer, fun({Probe, #{message := Message}}) -> {Probe, Message} =:= {message_receive, <<"done">>} end,
               Config),
    Events = events(Consumer, Config),
    [FromText, ToText] = [text(Pid, Config) || Pid <- [From, To]],
    Expected = [iolist_to_binary(io_lib:format("{mine,~b}", [N])) || N <- lists:seq(1, 20)] ++ [<<"last">>],
    ?assertEqual([{FromText, M} || M <- Expected],
                 [{F, M} || {message_delivery, #{to := T, from := F, message := M}} <- Events, T =:= ToText]),
    ?assertEqual(Expected, [M || {message_receive, #{to := T, message := M}} <- Events, T =:= ToText]),
    %% No other message arrives, except this test's `done'. Ports have no filter.
    ?assertEqual([<<"done">>], [M || {message_receive, #{to := T = <<"<", _/binary>>, message := M}} <- Events,
                                     T =/= ToText]).

forwarder() ->
    receive {To, Message} -> To ! Message, forwarder() end.

%% Calls with a certain first argument, and only their returns.
filter_of_calls(Config) ->
    start([{interval, 10}], Config),
    Functions = [{{test_cases, identity, 1}, [{[42], [], []}, {['$1'], [{is_atom, '$1'}], []}]},
                 {test_cases, location, 1}],
    ok = call(Config, fun() ->
                              {module, test_cases} = code:ensure_loaded(test_cases),
                              dyntrace:follow(#{functions => Functions})
                      end),
    Consumer = consumer([function_call, function_return], Config),
    until_following(calls, return, Config),
    Pid = call(Config, fun() ->
                               [N = test_cases:identity(N) || N <- lists:seq(1, 100)],
                               _ = test_cases:identity("42"),
                               _ = test_cases:identity(last),
                               _ = test_cases:location(0),
                               test_cases:text(self())
                       end),
    Events = events(Consumer, Config),
    Entries = [<<"test_cases:identity/1">>, <<"test_cases:identity/1">>, <<"test_cases:location/1">>],
    ?assertEqual([{Probe, Entry} || Entry <- Entries, Probe <- [function_call, function_return]],
                 [{Probe, Entry} || {Probe, #{pid := Of, entry := Entry}} <- Events, Of =:= Pid]).

%% Actions that probes require are added to the body; others are removed.
returns_of_some_calls(Config) ->
    Mfa = {test_cases, identity, 1},
    start([{interval, 10}, {functions, [{Mfa, [{[42], [], [{return_trace}]}, {[43], [], [{message, {caller}}]}]}]}],
          Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Calls = attach([function_call], Config),
    until_pattern(Mfa, [{[42], [], []}, {[43], [], [{message, {caller}}]}], Config),
    Returns = attach([function_return], Config),
    until_pattern(Mfa, [{[42], [], [{return_trace}]}, {[43], [], [{message, {caller}}, {return_trace}]}], Config),
    Exceptions = attach([function_exception], Config),
    until_pattern(Mfa, [{[42], [], [{exception_trace}]}, {[43], [], [{message, {caller}}, {exception_trace}]}], Config),
    _ = test_bpftrace:stop(Exceptions),
    _ = test_bpftrace:stop(Returns),
    until_pattern(Mfa, [{[42], [], []}, {[43], [], [{message, {caller}}]}], Config),
    _ = test_bpftrace:stop(Calls),
    until_pattern(Mfa, false, Config).

%% The last pattern applies.
patterns_that_overlap(Config) ->
    Functions = [{test_cases, '_', '_'}, {{test_cases, identity, 1}, [{[42], [], []}]}],
    start([{interval, 10}, {functions, Functions}], Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Calls = attach([function_call], Config),
    until_pattern({test_cases, identity, 1}, [{[42], [], []}], Config),
    until_pattern({test_cases, fail, 2}, [], Config),
    _ = test_bpftrace:stop(Calls),
    [until_pattern(Mfa, false, Config) || Mfa <- [{test_cases, identity, 1}, {test_cases, fail, 2}]].

%% A clause with its own result keeps it: the event has no sender, unless the result is one.
results_of_filters(Config) ->
    Own = {['_', '_', none], [], [{message, true}]},
    Dropped = {['_', '_', dropped], [], [{message, false}]},
    start([{interval, 10}, {'receive', [Own, Dropped, {'_', [], []}]}], Config),
    Consumer = attach([message_delivery, message_receive], Config),
    until_following(senders, true, Config),
    Sender = {message, {{{hd, '$_'}, {hd, {tl, '$_'}}}}},
    ?assertEqual([Own, Dropped, {'_', [], [Sender]}], of_messages('receive', Config)),
    {To, From} = call(Config, fun() ->
                                      Pid = spawn(fun test_autotracer:sink/0),
                                      [Pid ! Message || Message <- [none, dropped, other, last]],
                                      {links, []} = process_info(Pid, links),
                                      {test_cases:text(Pid), test_cases:text(self())}
                              end),
    Events = events(Consumer, [{backend, usdt} | Config]),
    ?assertEqual([{From, <<"other">>}, {From, <<"last">>}],
                 [{F, M} || {message_delivery, #{to := T, from := F, message := M}} <- Events, T =:= To]),
    ?assertEqual([<<"none">>, <<"other">>, <<"last">>],
                 [M || {message_receive, #{to := T, message := M}} <- Events, T =:= To]).

%% The filters are in the application's configuration. They apply only to the flags' events, so message_receive has all.
filters_of_configuration(Config) ->
    start([{interval, 10}, {send, [{['_', last], [], []}]}], Config),
    Consumer = attach([message_send, message_receive], Config),
    until_messages(send, [{['_', last], [], []}], Config),
    ?assertEqual(true, of_messages('receive', Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{send => true}) end),
    ?assertEqual(true, of_messages(send, Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{}) end),
    ?assertEqual([{['_', last], [], []}], of_messages(send, Config)),
    _ = test_bpftrace:stop(Consumer),
    until_messages(send, true, Config).

%% The error names the option, and says what is wrong.
bad_match_specifications(Config) ->
    start([], Config),
    Clause = fun(Body) -> [{['_', '_'], [], Body}] end,
    Refused = [{trace, [send], []}, {trace, self(), [], [send]}, {enable_trace, send}, {disable_trace, send},
               {silent, true}, {set_seq_token, label, 1}, {set_tcw, 1}, {process_dump}, {display, x}],
    [begin
         Says = badarg_of_follow(Options, Config),
         ?assertMatch({_, _}, binary:match(Says, <<"*** argument 1: ", Named/binary, ": ">>), {Options, Says}),
         ?assertMatch({_, _}, binary:match(Says, Why), {Options, Says})
     end || {Options, Named, Why} <-
                [{#{send => false}, <<"send">>, <<"true or a match specification">>},
                 {#{send => []}, <<"send">>, <<"not a list of 1 to 100 clauses">>},
                 {#{send => lists:duplicate(101, {'_', [], []})}, <<"send">>, <<"not a list of 1 to 100">>},
                 {#{send => [{'_', [], []} | x]}, <<"send">>, <<"not a list of 1 to 100">>},
                 {#{send => [{'_', [true | x], []}]}, <<"send">>, <<"not a list of 1 to 100">>},
                 {#{send => [{['_', '_', '_'], [], []}]}, <<"send">>, <<"[Receiver, Message]">>},
                 {#{send => [{['_' | '_'], [], []}]}, <<"send">>, <<"[Receiver, Message]">>},
                 {#{'receive' => [{['_', '_'], [], []}]}, <<"'receive'">>, <<"[Node, Sender, Message]">>},
                 {#{'receive' => [{['_', '_', '$1'], [{oops, '$1'}], []}]}, <<"'receive'">>,
                  <<"Function oops/1 does_not_exist.">>},
                 {#{'receive' => [{['_', '_', '_'], [], ['$1']}]}, <<"'receive'">>, <<"$1 is unbound">>},
                 {#{send => [{oops, [], []}]}, <<"send">>, <<"head">>},
                 {#{functions => [{{lists, seq, 2}, [{['_'], [], []}]}]}, <<"functions">>,
                  <<"{lists,seq,2}: the head ['_'] is not a list of 2 elements">>},
                 {#{functions => [{lists, seq, 2}, {{lists, map, '_'}, oops}]}, <<"functions">>,
                  <<"{lists,map,'_'}: not a list of 1 to 100">>},
                 {#{functions => [{{lists, seq, 300}, [{'_', [], []}]}]}, <<"functions">>, <<"a list of">>},
                 {#{functions => [{{lists, seq, 2}, [{'_', [], [{silent, true}]}]}]}, <<"functions">>,
                  <<"the action silent is not allowed">>},
                 {#{send => Clause([{message, {silent, true}}])}, <<"send">>, <<"silent is not allowed">>},
                 {#{send => Clause([#{a => {silent, true}}])}, <<"send">>, <<"silent is not allowed">>},
                 {#{send => Clause([{message, {caller}}])}, <<"send">>, <<"caller is not allowed">>},
                 {#{send => Clause(lists:seq(1, 10000))}, <<"send">>, <<"larger than 10000 words">>}]
                ++ [{#{send => Clause([Action])}, <<"send">>,
                     <<"the action ", (atom_to_binary(element(1, Action)))/binary, " is not allowed">>}
                    || Action <- Refused]],
    %% These are terms, not actions.
    ok = call(Config, fun() ->
                              dyntrace:follow(#{send => Clause([{message, {{silent, true}}},
                                                                {message, {const, {trace}}}]),
                                                'receive' => [{'$1', [], []}, {'_', [], []}],
                                                functions => [{{lists, '_', '_'}, [{['$1'], [], []}, {'_', [], []}]}]})
                      end),
    ?assertMatch({error, {bad_config, 'receive', _, "true or a match specification" ++ _}},
                 call(Config, fun() -> dyntrace_config:check([{'receive', none}]) end)).

%% -- What is set -------------------------------------------------------------------------------

sender_pattern(Config) ->
    call(Config, fun dyntrace:sender_pattern/0).

%% The match specification of messages: in OTP 27 and later that of our session, if there is one.
of_messages(Event, Config) ->
    lists:last(call(Config, fun() -> specs(Event) end)).

%% On the node: the match specification of each session, that of erlang:trace/3 first.
specs(Event) ->
    %% `dyntrace_autotracer' sorts before `legacy'.
    lists:reverse([Spec || {match_spec, Spec} <- infos(Event, match_spec)]).

until_messages(Event, Expected, Config) ->
    test_wait:until({"match specification of", Event}, Expected, fun() -> of_messages(Event, Config) end).

until_withheld(Event, Config) ->
    until_following(withheld, fun(Withheld) -> is_map_key(Event, Withheld) end, Config).
