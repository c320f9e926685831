%% Causes the events of the provider erlang, and computes the expected events: like test_cases, for these probes.
-module(test_erlang_cases).

-export([probes/0, run/1]).

-import(test_cases, [collected_alike/0, exchanges/1, get_value/2, location/1, no_patterns/0, received/0, text/1,
                     text_of/1, traced/2, traced_pid/2, traced_pid/3]).

%% In the order of the catalogue.
probes() ->
    [message__send, message__send__remote, message__queued, message__receive,
     process__spawn, process__exit, process__exit_signal,
     process__scheduled, process__unscheduled, process__hibernate,
     process__heap_grow, process__heap_shrink,
     gc_major__start, gc_minor__start, gc_major__end, gc_minor__end,
     global__function__entry, function__return, bif__entry, bif__return, nif__entry, nif__return] ++
    test_port_cases:probes() ++
    [process__exit_signal__remote, trace, trace_seq, user_trace__s1, user_trace__i4s4, user_trace__n42].

run(message__send) ->
    To = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
    Terms = sized(),
    ok = test_port_cases:load(output),
    {Pid, Driver} = traced([send], fun() -> [To ! Term || Term <- Terms], test_port_cases:answering() end),
    ok = test_driver:unload(output),
    Tokens = [{text(From), text(Receiver), erts_debug:flat_size(Message), label(Label), Previous, Current}
              || {From, Receiver, Message, Label, Previous, Current} <- exchanges(send)],
    To ! stop,
    [{message__send, #{sender => From, receiver => Receiver, size => Size,
                       label => Label, previous => Previous, current => Current}}
     || {From, Receiver, Size, Label, Previous, Current} <-
            [{text(From), text(Receiver), erts_debug:flat_size(Term), 0, 0, 0}
             || {From, Receiver, Term} <- [{Pid, To, Term} || Term <- Terms]
                    ++ [{Pid, Driver, {Pid, {connect, Pid}}}, {Driver, Pid, {Driver, connected}}]] ++ Tokens];

%% A single node sends to no other node. usdt_SUITE:remote_receivers/1 has two nodes.
run(message__send__remote) ->
    Far = far(),
    [ok = dyntrace:trace_send(send, [], self(), Message, #{extra => To})
     || {To, Message} <- [{Far, hello}, {{name, 'far@a-host'}, {hello, "you"}}, {{name, node()}, no}, {self(), no},
                          {name, no}]],
    [{message__send__remote, #{sender => text(self()), node_name => <<"'far@a-host'">>, receiver => To,
                               size => Size, label => 0, previous => 0, current => 0}}
     || {To, Size} <- [{text(Far), 0}, {<<"{name,'far@a-host'}">>, 3 + 6}]];

run(message__queued) ->
    [{message__queued, #{receiver => text(To), size => erts_debug:flat_size(Message), queue_len => 0,
                         label => 0, previous => 0, current => 0}} || {To, Message} <- received()];

run(message__receive) ->
    Received = [{To, Message, 0, 0, 0} || {To, Message} <- received()],
    Tokens = [{To, Message, label(Label), Previous, Current}
              || {_, To, Message, Label, Previous, Current} <- exchanges('receive')],
    [{message__receive, #{receiver => text(To), size => erts_debug:flat_size(Message), queue_len => 0,
                          label => Label, previous => Previous, current => Current}}
     || {To, Message, Label, Previous, Current} <- Received ++ Tokens];

run(process__spawn) ->
    [{process__spawn, #{p => P, mfa => Mfa}}
     || {process_spawn, #{pid := P, entry := Mfa}} <- test_cases:run(process_spawn)];

run(process__exit) ->
    [{process__exit, #{p => P, reason => Reason}}
     || {process_exit, #{pid := P, reason := Reason}} <- test_cases:run(process_exit)];

run(process__exit_signal) ->
    {Pid, Others} =
        traced(['receive'], fun() ->
                                    process_flag(trap_exit, true),
                                    [begin
                                         Other = spawn_link(fun() -> exit({over, N}) end),
                                         receive {'EXIT', Other, {over, N}} -> {Other, N} end
                                     end || N <- [1, 2]]
                            end),
    [{process__exit_signal, #{sender => text(Other), receiver => text(Pid),
                              reason => iolist_to_binary(io_lib:format("{over,~b}", [N]))}}
     || {Other, N} <- Others];

%% sources_SUITE tests this with two nodes.
run(process__exit_signal__remote) ->
    Far = far(),
    [ok = dyntrace:trace_receive('receive', [], self(), {'EXIT', From, {over, "it"}}, #{}) || From <- [self(), Far]],
    [{process__exit_signal__remote, #{sender => text(Far), node_name => <<"'far@a-host'">>, receiver => text(self()),
                                      reason => <<"{over,\"it\"}">>, label => 0, previous => 0, current => 0}}];

run(process__scheduled) ->
    [{process__scheduled, #{p => P, mfa => Mfa}}
     || {_, #{pid := P, entry := Mfa, type := <<"in", _/binary>>}} <- test_cases:run(process_scheduled)];

run(process__unscheduled) ->
    [{process__unscheduled, #{p => P}}
     || {_, #{pid := P, type := <<"out", _/binary>>}} <- test_cases:run(process_scheduled)];

run(process__hibernate) ->
    Pid = traced_pid([running], fun() ->
                                    _ = erlang:send_after(5, self(), wake),
                                    erlang:hibernate(erlang, self, [])
                            end),
    [{process__hibernate, #{p => text(Pid), mfa => <<"erlang:hibernate/3">>}}];

run(process__heap_grow) ->
    [{process__heap_grow, Heap} || Heap = #{old_size := Old, new_size := New} <- heaps(), New > Old];
run(process__heap_shrink) ->
    [{process__heap_shrink, Heap} || Heap = #{old_size := Old, new_size := New} <- heaps(), New < Old];

run(gc_minor__start) -> erlang_collections(gc_minor__start, gc_minor_start, need);
run(gc_minor__end) -> erlang_collections(gc_minor__end, gc_minor_end, reclaimed);
run(gc_major__start) -> erlang_collections(gc_major__start, gc_major_start, need);
run(gc_major__end) -> erlang_collections(gc_major__end, gc_major_end, reclaimed);

run(global__function__entry) ->
    [{global__function__entry, #{p => P, mfa => Mfa, depth => 0}}
     || {_, #{pid := P, entry := Mfa}} <- test_cases:run(function_call)];

%% This probe never fires.
run(local__function__entry) ->
    _ = test_cases:run(function_call),
    [];

run(bif__entry) -> builtin_calls(bif__entry, [{erlang, md5, 1}, {lists, reverse, 2}]);
run(bif__return) -> builtin_calls(bif__return, [{erlang, md5, 1}, {lists, reverse, 2}]);
run(nif__entry) -> builtin_calls(nif__entry, [{prim_file, get_cwd_nif, 0}]);
run(nif__return) -> builtin_calls(nif__return, [{prim_file, get_cwd_nif, 0}]);

run(function__return) ->
    Match = [{'_', [], [{return_trace}]}],
    _ = test_trace:trace_pattern({test_cases, outer, 1}, Match, [local]),
    _ = test_trace:trace_pattern({test_cases, identity, 1}, Match, [local]),
    {Pid, _} = traced([call, return_to], fun test_cases:caller/0),
    no_patterns(),
    [{function__return, #{p => text(Pid), mfa => Mfa, depth => 0}}
     || Mfa <- [<<"test_cases:identity/1">>, <<"test_cases:outer/1">>]];

run(trace) ->
    Other = spawn(fun() -> receive stop -> ok end end),
    Pid = traced_pid([send, procs], fun() ->
                                        true = link(Other),
                                        true = unlink(Other),
                                        Other ! {stop, "it"},
                                        exit({all, done})
                                end, {a, "state"}),
    Other ! stop,
    [{trace, #{p => text(Pid), event => Event, state => <<"{a,\"state\"}">>, arg1 => Arg1, arg2 => Arg2}}
     || {Event, Arg1, Arg2} <- [{<<"link">>, text(Other), <<>>}, {<<"unlink">>, text(Other), <<>>},
                                {<<"send">>, <<"{stop,\"it\"}">>, text(Other)}, {<<"exit">>, <<"{all,done}">>, <<>>}]];

run(trace_seq) ->
    [{trace_seq, #{state => <<"[]">>, label => text_of(Label),
                   seq_info => iolist_to_binary(io_lib:format("{send,{~b,~b},~ts,~ts,~ts}",
                                                              [Previous, Current, text(From), text(To),
                                                               text_of(Message)]))}}
     || {From, To, Message, Label, Previous, Current} <- exchanges(send)];

run(user_trace__s1) ->
    [{user_trace__s1, Fields} || Fields <- test_cases:messages()];
run(user_trace__i4s4) ->
    [{user_trace__i4s4, Fields} || {_, Fields} <- test_cases:annotations(fun(Args) -> apply(dyntrace, p, Args) end)];
run(user_trace__n42) ->
    [{user_trace__n42, Fields}
     || {_, Fields} <- test_cases:annotations(fun(Args) -> apply(dyntrace, pn, [42 | Args]) end)];

run(Probe) ->
    test_port_cases:run(Probe).

%% -- Helpers ------------------------------------------------------------------------------

%% Calls two BIFs, a NIF and Erlang code, all traced. The probe must have events for these functions.
builtin_calls(Probe, Mfas) ->
    [1 = test_trace:trace_pattern(Mfa, [{'_', [], [{exception_trace}]}], [local])
     || Mfa <- [{erlang, md5, 1}, {lists, reverse, 2}, {prim_file, get_cwd_nif, 0}, {test_cases, identity, 1}]],
    {Pid, _} = traced([call], fun() ->
                                      _ = erlang:md5("a"),
                                      _ = lists:reverse([1, 2], test_cases:identity([])),
                                      prim_file:get_cwd()
                              end),
    no_patterns(),
    [{Probe, #{p => text(Pid), mfa => location(Mfa)}} || Mfa <- Mfas].

%% The same label, as the probes of the provider erlang show it.
label(Label) when is_integer(Label) -> Label;
label(_) -> -(1 bsl 31).

%% A process of another node.
far() ->
    binary_to_term(<<131, 88, 119, 10, "far@a-host", 17:32, 0:32, 1:32>>).

%% Terms of the types that occur in messages.
sized() ->
    [an_atom, 0, (1 bsl 59) - 1, 1 bsl 59, -(1 bsl 59), -(1 bsl 59) - 1, 1 bsl 63, -(1 bsl 63), (1 bsl 64) - 1, 1.5,
     [], [1], [a | b], "a string", [[1, [2.0]], [3]], lists:seq(1, 400), {}, {1}, {a, {b, "c"}, [d]},
     list_to_tuple(lists:seq(1, 300)),
     #{}, #{a => 1}, #{a => "1", {b} => #{c => [1.5]}}, maps:from_list([{N, N} || N <- lists:seq(1, 32)]),
     <<>>, <<"a">>, binary:copy(<<"a">>, 8), binary:copy(<<"a">>, 9), binary:copy(<<"a">>, 64),
     binary:copy(<<"a">>, 65),
     binary:copy(<<"a">>, 100000), self(), make_ref(), hd(erlang:ports()),
     {self(), make_ref(), {request, #{id => 17, body => <<"hello">>}}}].

erlang_collections(Probe, Tag, Amount) ->
    {Pid, Reported} = collected_alike(),
    [{Probe, #{p => text(Pid), Amount => get_value(wordsize, Info)}} || {T, Info} <- Reported, T =:= Tag].

%% The heap before and after each collection.
heaps() ->
    {Pid, Reported} = collected_alike(),
    [#{p => text(Pid), old_size => Old, new_size => New}
     || {Old, New} <- pairs([get_value(heap_block_size, Info) || {_, Info} <- Reported])].

pairs([Start, End | Rest]) -> [{Start, End} | pairs(Rest)];
pairs([]) -> [].
