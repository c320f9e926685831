%% Reads the probes with a real bpftrace: each probe, and each argument's value.
-module(usdt_SUITE).

-include("../support/suite.hrl").

-define(TRACER, {tracer, dyntrace, []}).

suite() ->
    [{timetrap, {minutes, 6}}].

%% Runs with another OTP or with sanitizers leave out each_alone, because bpftrace compiles a script for each probe.
all() ->
    [each_alone || os:getenv("DYNTRACE_EACH_ALONE", "yes") =:= "yes"]
    ++ [all_together, attached_after_tracing_began, detached_and_attached_again, one_node_only, two_consumers,
        no_consumer, consumer_killed, every_tag_by_hand, max_heap_size, overdrawn_budget, missed_calls, calls_at_once,
        remote_receivers, port_of_another_node, terms_of_every_type, long_texts_are_cut, hostile_calls, long_names].

%% A group per probe, for a test of that probe only.
groups() ->
    [{Probe, [], [alone]} || Probe <- probes()].

probes() ->
    test_cases:probes(usdt).

init_per_group(Probe, Config) ->
    [{probe, Probe} | Config].

end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    test_require:tool(test_bpftrace:missing(), Config).

end_per_suite(_) -> ok.

init_per_testcase(_, Config) ->
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    [{node, Node}, {library, Library} | Config].

%% A test fails if an event could not be decoded, regardless of its other checks.
end_per_testcase(_, Config) ->
    Node = ?config(node, Config),
    Info = test_node:call(Node, fun dyntrace:info/0),
    test_node:stop(Node),
    case Info of
        #{undecoded := Undecoded} when map_size(Undecoded) =:= 0 -> ok;
        _ -> {fail, Info}
    end.

%% -- Attaching -----------------------------------------------------------------------------

alone(Config) ->
    alone(?config(probe, Config), Config).

%% A consumer of one probe receives all of its events.
alone(Probe, Config) ->
    Consumer = attach([Probe], Config),
    ?assertEqual([Probe], listeners(Config)),
    Expected = run(Probe, Config),
    await_all(Expected, Consumer),
    ?assertEqual(Expected, stop(Consumer)),
    ?assertEqual([], listeners(Config)).

each_alone() ->
    [{timetrap, {minutes, 15}}].

%% lttng_SUITE has the probes of both backends, because LTTng takes less time.
each_alone(Config) ->
    [alone(Probe, Config) || Probe <- probes() -- test_cases:probes(lttng)].

all_together(Config) ->
    Consumer = attach_to_all(probes(), Config),
    ?assertEqual(probes(), listeners(Config)),
    Expected = [run(Probe, Config) || Probe <- probes()],
    await_all(lists:append(Expected), Consumer),
    ?assertEqual([], lists:append(Expected) -- stop(Consumer)).

%% A consumer that attaches later receives events of processes that were traced before.
attached_after_tracing_began(Config) ->
    Pid = test_node:call(?config(node, Config), fun sender/0),
    send(before, Pid, Config),
    Consumer = attach([message_send], Config),
    send('after', Pid, Config),
    await_message(<<"after">>, Consumer),
    ?assertMatch([{message_send, #{message := <<"after">>}}], test_bpftrace:stop(Consumer)).

detached_and_attached_again(Config) ->
    Pid = test_node:call(?config(node, Config), fun sender/0),
    [begin
         Consumer = attach([message_send], Config),
         ?assertEqual([message_send], listeners(Config)),
         send({round, Round}, Pid, Config),
         await_message(Text, Consumer),
         ?assertMatch([{message_send, #{message := Text}}], test_bpftrace:stop(Consumer)),
         ?assertEqual([], listeners(Config)),
         ?assertEqual(discard, enabled_send(Config)),
         send(unwanted, Pid, Config)
     end || {Round, Text} <- [{1, <<"{round,1}">>}, {2, <<"{round,2}">>}, {3, <<"{round,3}">>}]].

%% bpftrace -p reads one process: the same library in another node is another process.
one_node_only(Config) ->
    Other = test_node:start(),
    Mine = test_node:call(?config(node, Config), fun sender/0),
    Others = test_node:call(Other, fun sender/0),
    Consumer = test_bpftrace:start(?config(library, Config), [message_send],
                                 #{os_pid => test_node:os_pid(?config(node, Config))}),
    send(other, Others, [{node, Other}]),
    send(mine, Mine, Config),
    await_message(<<"mine">>, Consumer),
    %% bpftrace 0.27 reports each event twice with -p.
    ?assertMatch([{message_send, #{message := <<"mine">>}}], lists:usort(test_bpftrace:stop(Consumer))),
    test_node:stop(Other).

two_consumers(Config) ->
    Pid = test_node:call(?config(node, Config), fun sender/0),
    First = attach([message_send, process_exit], Config),
    Second = attach([message_send], Config),
    send(both, Pid, Config),
    [await_message(<<"both">>, Consumer) || Consumer <- [First, Second]],
    ?assertMatch([{message_send, #{message := <<"both">>}}], test_bpftrace:stop(Second)),
    ?assertEqual([process_exit, message_send], listeners(Config)),
    send(one, Pid, Config),
    await_message(<<"one">>, First),
    ?assertMatch([{_, #{message := <<"both">>}}, {_, #{message := <<"one">>}}], test_bpftrace:stop(First)),
    ?assertEqual([], listeners(Config)).

%% Everything is traced, but no consumer is attached: no probe fires, no message is sent, memory does not grow.
no_consumer(Config) ->
    Fed = [Probe || #{name := Probe, events := [_ | _]} <- dyntrace:probes()],
    Run = fun() -> [test_cases:run(Probe) || Probe <- test_cases:probes(), lists:member(Probe, Fed)] end,
    {Before, After, Mailboxes} =
        test_node:call(?config(node, Config),
                     fun() ->
                             Run(),
                             Memory = fun() -> erlang:garbage_collect(), erlang:memory(system) end,
                             Before = Memory(),
                             Pid = sender(),
                             [begin Pid ! {send, self(), N}, receive N -> ok end end
                              || N <- lists:seq(1, 100000)],
                             Run(),
                             {Before, Memory(),
                              [Length || P <- processes() -- [self()],
                                         {message_queue_len, Length} <- [process_info(P, message_queue_len)]]}
                     end),
    ?assertEqual([], listeners(Config)),
    ?assertEqual(discard, enabled_send(Config)),
    ?assert(After - Before < 1000000, {grown_by, After - Before}),
    ?assertEqual(0, lists:sum(Mailboxes)).

%% A consumer is killed before it can detach: the VM keeps running, and the next consumer can attach.
consumer_killed(Config) ->
    Pid = test_node:call(?config(node, Config), fun sender/0),
    First = attach([message_send], Config),
    send(first, Pid, Config),
    await_message(<<"first">>, First),
    ok = test_bpftrace:kill(First),
    test_wait:until("no consumer is attached", [], fun() -> listeners(Config) end),
    send(unwanted, Pid, Config),
    Second = attach([message_send], Config),
    send(second, Pid, Config),
    await_message(<<"second">>, Second),
    ?assertMatch([{_, #{message := <<"second">>}}], test_bpftrace:stop(Second)).

%% Each trace tag of each group, also rare ones, fires the probes that the catalogue lists, through every callback. The
%% arguments make each probe of the tag fire, except those of others_by_hand/0.
every_tag_by_hand(Config) ->
    %% The application also reports identities; their cases are in identity_SUITE.
    Consumer = attach_to_all(probes() ++ [process_identity, port_identity], Config),
    Others = others_by_hand(),
    Feeds = [{{Group, Tag}, Probe} || #{name := Probe, events := Events} <- dyntrace:probes(),
                                      not lists:member(Probe, Others), #{group := Group, tag := Tag} <- Events],
    Tags = lists:usort([Of || {Of = {_, Tag}, _} <- Feeds, Tag =/= any]),
    test_node:call(?config(node, Config),
                 fun() ->
                         [begin
                              {Callback, Enabled, Args} = by_hand(Group, Tag),
                              trace = apply(dyntrace, Enabled, lists:sublist(Args, 3)),
                              ok = apply(dyntrace, Callback, Args),
                              trace = apply(dyntrace, enabled, lists:sublist(Args, 3)),
                              ok = apply(dyntrace, trace, Args)
                          end || {Group, Tag} <- Tags],
                         true = dyntrace:mark(the_end, "")
                 end),
    Fired = [Probe || {Group, Tag} <- Tags, {{G, T}, Probe} <- Feeds, G =:= Group, T =:= Tag orelse T =:= any],
    test_wait:until("all events", [],
                    fun() ->
                            [user_mark | Fired ++ Fired] -- [Probe || {Probe, _} <- test_bpftrace:events(Consumer)]
                    end),
    Events = [Event || Event = {Probe, _} <- test_bpftrace:stop(Consumer),
              not lists:member(Probe, [user_mark | Others])],
    ?assertEqual(lists:sort(Fired ++ Fired), lists:sort([Probe || {Probe, _} <- Events])),
    Types = lists:usort([{Probe, Type} || {Probe, #{type := Type}} <- Events]),
    ?assertEqual(lists:sort([{Probe, Type} || Probe <- [process_link, port_link], Type <- [<<"link">>, <<"unlink">>]] ++
                                [{process_register, Type} || Type <- [<<"register">>, <<"unregister">>]] ++
                                [{Probe, Type} || Probe <- [process_scheduled, port_scheduled],
                                                  Type <- [<<"in">>, <<"out">>, <<"in_exiting">>, <<"out_exiting">>,
                                                           <<"out_exited">>]]),
                 Types).

%% Probes that fire for only one of the shapes of a tag's events, or after a comparison with an earlier event; and
%% probes of modules with a group of their own, whose events also belong to the group of calls.
others_by_hand() ->
    [process_current, function_duration, file_call, file_return, telemetry_event, process__heap_grow,
     process__heap_shrink, process__exit_signal__remote, bif__entry, bif__return, nif__entry, nif__return
     | test_port_cases:probes() ++ test_port_cases:drivers()]
        -- [port__open, driver__start].

%% A callback's arguments, of the right shape for the tag.
by_hand(seq_trace, Tag) ->
    {trace, enabled, [seq_trace, [], 17, {Tag, {1, 2}, self(), {a_name, 'far@a-host'}, message}, #{}]};
by_hand(Group, Tag) ->
    Port = hd(erlang:ports()),
    {Callbacks, Tracee} = case Group of
                              port_send -> {send, Port};
                              port_receive -> {'receive', Port};
                              _ when Group =:= ports; Group =:= running_ports -> {Group, Port};
                              _ -> {Group, self()}
                          end,
    Mfa = {lists, seq, [1, 2]},
    {Term, Extra} = case Group of
                        procs when Tag =:= register; Tag =:= unregister -> {a_name, none};
                        ports when Tag =:= register; Tag =:= unregister -> {a_name, none};
                        procs -> {self(), Mfa};
                        ports -> {self(), cat};
                        running_procs -> {{erlang, hibernate, 3}, none};
                        running_ports -> {command, none};
                        call -> {Mfa, {error, badarg}};
                        garbage_collection -> {[{Key, 1} || Key <- [wordsize, heap_block_size, old_heap_block_size,
                                                                    bin_vheap_size, bin_old_vheap_size]],
                                               none};
                        send -> {message, {a_name, 'far@a-host'}};
                        port_send -> {message, {a_name, 'far@a-host'}};
                        port_receive -> {{self(), close}, none};
                        'receive' -> {{'EXIT', self(), reason}, none}
                    end,
    Name = atom_to_list(Callbacks),
    Options = #{extra => Extra, match_spec_result => {node(), self()}},
    {list_to_atom("trace_" ++ Name), list_to_atom("enabled_" ++ Name), [Tag, [], Tracee, Term, Options]}.

%% A process exceeds its maximum heap size: the tag fires the probe for every event, and is not unknown.
max_heap_size(Config) ->
    Consumer = attach([trace], Config),
    Text = test_node:call(?config(node, Config),
                        fun() ->
                                Grow = fun Grow(List) -> Grow([List | List]) end,
                                {Pid, Ref} = spawn_opt(fun() -> receive go -> Grow([]) end end,
                                                       [monitor, {max_heap_size,
                                                                  #{size => 10000, kill => true,
                                                                    error_logger => false}}]),
                                1 = test_trace:trace(Pid, true, [garbage_collection, ?TRACER]),
                                Pid ! go,
                                receive {'DOWN', Ref, process, Pid, killed} -> test_cases:text(Pid) end
                        end),
    {trace, #{arg1 := Info}} =
        test_bpftrace:await(Consumer, fun({_, #{p := P, event := Event}}) ->
                                              P =:= Text andalso Event =:= <<"gc_max_heap_size">>
                                      end),
    ?assertMatch({_, _}, binary:match(Info, <<"heap_block_size">>)),
    _ = test_bpftrace:stop(Consumer).

%% When the budget is overdrawn, `enabled' returns `discard', so the VM makes no event. Events for which the VM has not
%% called `enabled' do not fire. Each counts once. Events without a consumer, and those of another tracer, do not count.
overdrawn_budget(Config) ->
    Consumer = attach([message_send, function_return], Config),
    Ask = fun(Group, Tag) -> apply(dyntrace, list_to_atom("enabled_" ++ Group), [Tag, dyntrace_autotracer, self()]) end,
    Send = fun(Term) -> dyntrace:trace_send(send, dyntrace_autotracer, self(), Term, #{extra => self()}) end,
    Return = fun() ->
                     dyntrace:trace_call(return_from, dyntrace_autotracer, self(), {lists, seq, 2}, #{extra => []})
             end,
    Skipped = fun(Fun) -> Before = dyntrace:skipped(), Answer = Fun(), {Answer, dyntrace:skipped() - Before} end,
    Answers = test_node:call(?config(node, Config),
                 fun() ->
                         %% The application's tracer is alive as long as its worker.
                         _ = dyntrace:claim(),
                         ok = dyntrace:set_active(true),
                         %% The largest budget that the configuration allows.
                         ok = dyntrace:set_budget(1 bsl 62 - 1),
                         Large = Skipped(fun() -> {Ask("send", send), Send(large)} end),
                         ok = dyntrace:set_budget(2),
                         Within = Skipped(fun() -> [{Ask("send", send), Send(N)} || N <- [1, 2]] end),
                         Past = [Skipped(fun() -> Ask(Group, Tag) end)
                                 || {Group, Tag} <- [{"send", send}, {"call", call}, {"procs", exit}]],
                         Seq = Skipped(fun() -> dyntrace:enabled(send, dyntrace_autotracer, self()) end),
                         Status = Skipped(fun() -> dyntrace:enabled(trace_status, dyntrace_autotracer, self()) end),
                         Unasked = Skipped(fun() -> {Return(), Send(late)} end),
                         Others = Skipped(fun() ->
                                                  {dyntrace:enabled_send(send, [], self()),
                                                   dyntrace:trace_send(send, [], self(), others, #{extra => self()})}
                                          end),
                         ok = dyntrace:set_budget(infinity),
                         Infinite = Skipped(fun() -> {Ask("send", send), Send(infinite)} end),
                         ok = dyntrace:set_active(false),
                         remove = dyntrace:enabled(trace_status, dyntrace_autotracer, self()),
                         {Large, Within, Past, Seq, Status, Unasked, Others, Infinite}
                 end),
    ?assertEqual({{{trace, ok}, 0}, {[{trace, ok}, {trace, ok}], 0},
                  [{discard, 1}, {discard, 1}, {discard, 0}], {discard, 1}, {trace, 0},
                  {{ok, ok}, 2}, {{trace, ok}, 0}, {{trace, ok}, 0}}, Answers),
    Sent = [<<"large">>, <<"1">>, <<"2">>, <<"others">>, <<"infinite">>],
    [await_message(Text, Consumer) || Text <- Sent],
    ?assertEqual(Sent, [maps:get(message, Event) || {message_send, Event} <- test_bpftrace:stop(Consumer)]).

%% An event of a call is missing, because the budget is spent or the probe is not enabled. Its return has no duration:
%% that of an earlier call would be too long.
missed_calls(Config) ->
    Consumer = attach([function_duration], Config),
    calls([{call, a}, {budget, 0}, {return, a}, {call, a}, {budget, infinity}, {return, a}, {call, b}, {call, c},
           {return, c}], [1], Config),
    ok = await_call(c, 1, Consumer),
    ?assertEqual([<<"shop:c/1">>], entries(Consumer)),
    Others = attach([function_arguments], Config),
    calls([{call, b}], [1], Config),
    _ = test_bpftrace:stop(Others),
    Last = attach([function_duration], Config),
    calls([{return, b}, {call, d}, {return, d}], [1], Config),
    ok = await_call(d, 1, Last),
    ?assertEqual([<<"shop:d/1">>], entries(Last)).

%% Calls of many processes do not replace each other. They return a few at a time, because the consumer loses events of
%% a burst.
calls_at_once(Config) ->
    Consumer = attach([function_duration], Config),
    calls([{call, many}], lists:seq(1, 3000), Config),
    [begin
         calls([{return, many}], lists:seq(First, First + 199), Config),
         calls([{call, last}, {return, last}], [First], Config),
         ok = await_call(last, First, Consumer)
     end || First <- lists:seq(1, 3000, 200)],
    ?assertMatch(Number when Number > 2950, length([Entry || Entry <- entries(Consumer), Entry =:= <<"shop:many/1">>])).

%% Each step in each of these processes.
calls(Steps, Numbers, Config) ->
    Mfa = fun(Function) -> {shop, Function, 1} end,
    test_node:call(?config(node, Config),
                   fun() ->
                           Step = fun({budget, Events}, _) -> dyntrace:set_budget(Events);
                                     ({call, F}, Pid) ->
                                          dyntrace:trace_call(call, dyntrace_autotracer, Pid, Mfa(F), #{});
                                     ({return, F}, Pid) ->
                                          dyntrace:trace_call(return_from, dyntrace_autotracer, Pid, Mfa(F),
                                                              #{extra => ok})
                                  end,
                           [ok = Step(One, pid_of(N)) || One <- Steps, N <- Numbers],
                           ok
                   end).

pid_of(Number) ->
    list_to_pid("<0." ++ integer_to_list(Number) ++ ".0>").

await_call(Function, Number, Consumer) ->
    Last = {<<"shop:", (atom_to_binary(Function))/binary, "/1">>, list_to_binary(pid_to_list(pid_of(Number)))},
    _ = test_bpftrace:await(Consumer, fun({_, #{entry := Entry, pid := Pid}}) -> {Entry, Pid} =:= Last end),
    ok.

entries(Consumer) ->
    [Entry || {function_duration, #{entry := Entry}} <- test_bpftrace:stop(Consumer)].

%% Receivers on another node: a pid and a name.
remote_receivers(Config) ->
    Epmd = test_node:start_epmd(),
    [Here, There] = [test_node:named(Name, Epmd) || Name <- ["here", "there-and-far"]],
    Echo = test_node:call(There, fun() ->
                                       Echo = spawn(fun Loop() -> receive {From, N} -> From ! N, Loop() end end),
                                       true = register('an echo', Echo),
                                       Echo
                               end),
    Consumer = attach([message_send, message__send__remote], Config),
    Expected = test_node:call(Here, fun() ->
                                          To = [Echo, {'an echo', 'there-and-far@127.0.0.1'}],
                                          pong = net_adm:ping(node(Echo)),
                                          Ask = fun(T) -> T ! {self(), go}, receive go -> ok end end,
                                          {Pid, _} = test_cases:traced([send], fun() -> [Ask(T) || T <- To] end),
                                          lists:append([sent_there(Pid, T) || T <- To])
                                  end),
    await_all(Expected, Consumer),
    ?assertEqual(Expected, test_bpftrace:stop(Consumer)),
    [test_node:stop(Node) || Node <- [Here, There]],
    test_node:stop_epmd(Epmd).

%% On the node: the events of Pid's message {Pid, go} to a receiver on the other node.
sent_there(Pid, To) ->
    [From, Receiver] = [test_cases:text(Each) || Each <- [Pid, To]],
    [{message_send, #{from => From, to => Receiver, message => <<"{", From/binary, ",go}">>}},
     {message__send__remote, #{sender => From, node_name => <<"'there-and-far@127.0.0.1'">>, receiver => Receiver,
                               size => erts_debug:flat_size({Pid, go}), label => 0, previous => 0, current => 0}}].

%% The callbacks may get any tracee. The library asks the application only about local ports: a port of another node is
%% a term on a heap.
port_of_another_node(Config) ->
    Far = binary_to_term(<<131, 89, 119, 8, "far@host", 17:32, 1:32>>),
    Consumer = attach([driver__flush], Config),
    {Asked, Texts} =
        test_node:call(?config(node, Config),
                       fun() ->
                               Ports = [_, Local] = [Far, hd(erlang:ports())],
                               [ok = dyntrace:trace_running_ports(in, [], Port, flush, #{}) || Port <- Ports],
                               {dyntrace:take_unknown_ports() =:= [Local], [test_cases:text(Port) || Port <- Ports]}
                       end),
    ?assert(Asked),
    Expected = [{driver__flush, #{process => <<>>, port => Text, port_name => <<>>}} || Text <- Texts],
    await_all(Expected, Consumer),
    ?assertEqual(Expected, stop(Consumer)).

%% -- Texts -----------------------------------------------------------------------------------

terms_of_every_type(Config) ->
    Terms = test_node:call(?config(node, Config), fun terms/0),
    ?assertEqual([Text || {_, Text} <- Terms], messages([Term || {Term, _} <- Terms], Config)).

%% On the node: terms with their texts; pids and ports with Erlang's texts.
terms() ->
    Port = hd(erlang:ports()),
    Ref = make_ref(),
    [{an_atom, <<"an_atom">>}, {'Quoted Atom', <<"'Quoted Atom'">>}, {[], <<"[]">>}, {{}, <<"{}">>},
     {'åäö', <<"åäö"/utf8>>}, {'日本', <<"'日本'"/utf8>>},
     {0, <<"0">>}, {-17, <<"-17">>}, {1 bsl 64, <<"18446744073709551616">>},
     {-(1 bsl 100), <<"-1267650600228229401496703205376">>},
     {1.5, <<"1.500000e+00">>}, {-0.0, <<"-0.000000e+00">>},
     {self(), test_cases:text(self())}, {Port, test_cases:text(Port)}, {Ref, test_cases:text(Ref)},
     {"a string", <<"\"a string\"">>}, {"line\n", <<"\"line\\n\"">>}, {[229, 228], <<"\"åä\""/utf8>>},
     {[1, 2, 300], <<"[1,2,300]">>}, {[a | b], <<"[a|b]">>}, {[[[]]], <<"[[[]]]">>},
     {<<>>, <<"<<>>">>}, {<<"bytes">>, <<"<<\"bytes\">>">>}, {<<0, 255>>, <<"<<0,255>>">>},
     {<<1, 2:3>>, <<"<<1,2:3>>">>},
     {{a, {b, [c]}}, <<"{a,{b,[c]}}">>}, {#{}, <<"#{}">>}, {#{key => "value"}, <<"#{key=>\"value\"}">>},
     {fun lists:sort/1, <<"fun lists:sort/1">>}].

long_texts_are_cut(Config) ->
    Whole = lists:duplicate(254, $x),
    Letters = lists:duplicate(200, 'å'),
    [Fits, OneMore, Numbers, Bytes, Atoms, Deep] =
        messages([Whole, Whole ++ "x", lists:seq(1000, 100000), binary:copy(<<"y">>, 1000000), Letters,
                  lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, 100000))], Config),
    ?assertEqual(iolist_to_binary(["\"", Whole, "\""]), Fits),
    ?assertEqual(iolist_to_binary(["\"", lists:duplicate(252, $x), "..."]), OneMore),
    ?assertEqual(cut(io_lib:format("~w", [lists:seq(1000, 1100)])), Numbers),
    ?assertEqual(iolist_to_binary(["<<\"", lists:duplicate(250, $y), "..."]), Bytes),
    ?assertEqual(iolist_to_binary([lists:duplicate(253, ${), "..."]), Deep),
    %% 'å' and a comma are three bytes: a cut at byte 253 would split the 84th å.
    ?assertEqual(<<"[", (binary:copy(<<"å,"/utf8>>, 84))/binary, "...">>, Atoms).

%% Arguments, values and reasons that are expensive to write without bounds. The last list is longer than any call's.
hostile_calls(Config) ->
    Consumer = attach([function_arguments, function_value, function_reason, user_mark], Config),
    Begins = test_node:call(?config(node, Config), fun hostile_calls_made/0),
    Texts = [{function_arguments, <<"[", Text/binary>>} || Text <- Begins]
        ++ [{function_value, Text} || Text <- Begins] ++ [{function_reason, Text} || Text <- Begins],
    test_wait:until("all calls' events", fun(Count) -> Count > length(Texts) end,
                    fun() -> length(texts_of_calls(test_bpftrace:events(Consumer))) end),
    _ = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= user_mark end),
    Got = texts_of_calls(test_bpftrace:stop(Consumer)),
    ?assertEqual(length(Texts) + 1, length(Got)),
    {Many, Others} = lists:partition(fun({_, Text}) -> string:prefix(Text, "[x,x,") =/= nomatch end, Got),
    ?assertMatch([{function_arguments, _}], Many),
    [?assertEqual({Probe, Begin}, {Got1, binary:part(Text, 0, min(byte_size(Begin), byte_size(Text)))})
     || {{Probe, Begin}, {Got1, Text}} <- lists:zip(Texts, Others)],
    [?assert(byte_size(Text) =< 256) || {_, Text} <- Got].

texts_of_calls(Events) ->
    [{Probe, Text} || Name <- [function_arguments, function_value, function_reason], {Probe, Event} <- Events,
                      Probe =:= Name, Key <- [arguments, value, reason], {ok, Text} <- [maps:find(Key, Event)]].

%% The terms are made where they are used, because copying them takes seconds.
hostile_calls_made() ->
    {module, test_cases} = code:ensure_loaded(test_cases),
    1 = test_trace:trace_pattern({test_cases, identity, 1}, [{'_', [], [{return_trace}]}], [local]),
    {_, Begins} = test_cases:traced([call], fun hostile_terms_passed/0),
    1 = test_trace:trace_pattern({test_cases, identity, 1}, false, [local]),
    ok = dyntrace:trace_call(call, [], self(), {a, b, lists:duplicate(300, x) ++ improper}, #{}),
    true = dyntrace:mark(the_end, ""),
    Begins.

hostile_terms_passed() ->
    Hostile = test_hostile:terms() ++ [{"improper", [1 | 2], <<"[1|2]">>}],
    [begin test_cases:identity(T), ok end || {_, T, _} <- Hostile],
    [ok = dyntrace:trace_call(exception_from, [], self(), {test_cases, fail, 2}, #{extra => {throw, T}})
     || {_, T, _} <- Hostile],
    [Begins || {_, _, Begins} <- Hostile].

cut(Text) ->
    <<(binary:part(iolist_to_binary(Text), 0, 253))/binary, "...">>.

%% The longest names that Erlang allows arrive complete: 255 characters of four bytes, of two bytes, and of escapes.
long_names(Config) ->
    Consumer = test_bpftrace:start(?config(library, Config),
                                 [message_send, process_spawn, process_register, function_call], #{longest => 2100}),
    Expected = test_node:call(?config(node, Config), fun long_names_used/0),
    await_all(Expected, Consumer),
    ?assertEqual(Expected, test_bpftrace:stop(Consumer)).

long_names_used() ->
    [Clefs, Letters, Escapes] = [list_to_atom(lists:duplicate(255, C)) || C <- [16#1D11E, $å, $\n]],
    %% The longest name that the file of a module can hold and the compiler accepts.
    Module = list_to_atom("M" ++ lists:duplicate(127, $å)),
    Function = list_to_atom(lists:duplicate(63, 16#1D11E)),
    {ok, Module, Code} =
        compile:forms([{attribute, 1, module, Module}, {attribute, 1, export, [{Function, 0}]},
                       {function, 1, Function, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}], []),
    {module, Module} = code:load_binary(Module, "", Code),
    1 = test_trace:trace_pattern({Module, Function, 0}, true, []),
    true = register('end', spawn(fun() -> receive hello -> ok end end)),
    ok = logger:set_primary_config(level, none),
    {Pid, Spawned} =
        test_cases:traced([procs, call, send],
                        fun() ->
                                true = register(Escapes, self()),
                                [To ! hello || To <- [{Letters, node()}, 'end', Escapes]],
                                Module:Function(),
                                Spawned = spawn(Clefs, Letters, [1, 2]),
                                true = unregister(Escapes),
                                Spawned
                        end),
    Me = test_cases:text(Pid),
    Registered = #{pid => Me, name => test_cases:text(Escapes), type => <<"register">>},
    Sent = #{from => Me, message => <<"hello">>},
    [{process_register, Registered},
     {message_send, Sent#{to => test_cases:text({Letters, node()})}},
     {message_send, Sent#{to => <<"'end'">>}},
     {message_send, Sent#{to => test_cases:text(Escapes)}},
     {function_call, #{pid => Me, entry => test_cases:location({Module, Function, 0}), depth => 0}},
     {process_spawn, #{pid => test_cases:text(Spawned), parent => Me,
                       entry => test_cases:location({Clefs, Letters, 2})}},
     {process_register, Registered#{type := <<"unregister">>}}].

%% -- Helpers -----------------------------------------------------------------------------------

attach(Probes, Config) ->
    test_bpftrace:start(?config(library, Config), Probes).

%% The case of each probe reads its arguments as arg0 and so on. A script of all probes does not, because that takes
%% bpftrace seconds. So does reading more of each string than these tests have.
attach_to_all(Probes, Config) ->
    test_bpftrace:start(?config(library, Config), Probes, #{located => true, longest => 100}).

listeners(Config) ->
    [Name || #{name := Name, backends := [usdt]} <- test_node:call(?config(node, Config), fun dyntrace:listeners/0)].

enabled_send(Config) ->
    test_node:call(?config(node, Config), fun() -> dyntrace:enabled_send(send, [], self()) end).

run(Probe, Config) ->
    test_node:call(?config(node, Config), fun() -> test_cases:run(Probe) end).

%% Waits for each of the events, as often as expected: bpftrace prints the events of one CPU after those of another.
await_all(Expected, Consumer) ->
    test_wait:until("all expected events", [], fun() -> Expected -- comparable(test_bpftrace:events(Consumer)) end).

stop(Consumer) ->
    comparable(test_bpftrace:stop(Consumer)).

comparable(Events) ->
    lists:flatmap(fun test_cases:comparable/1, Events).

await_message(Text, Consumer) ->
    test_bpftrace:await(Consumer, fun({_, #{message := Message}}) -> Message =:= Text; (_) -> false end).

%% On the node: a traced process that sends messages on request.
sender() ->
    Pid = spawn(fun Loop() -> receive {send, To, Message} -> To ! Message, Loop() end end),
    1 = test_trace:trace(Pid, true, [send, ?TRACER]),
    Pid.

%% Returns when the message has been sent.
send(Message, Pid, Config) ->
    test_node:call(?config(node, Config),
                 fun() -> Pid ! {send, self(), Message}, receive Message -> Message end end).

%% The text of each message in its event.
messages(Messages, Config) ->
    Pid = test_node:call(?config(node, Config), fun sender/0),
    Consumer = attach([message_send], Config),
    [send(Message, Pid, Config) || Message <- Messages],
    test_wait:until("all messages", length(Messages), fun() -> length(test_bpftrace:events(Consumer)) end),
    [Text || {message_send, #{message := Text}} <- test_bpftrace:stop(Consumer)].
