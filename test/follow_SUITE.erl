%% The application: attaching is all that it takes, and leaving leaves nothing behind.
-module(follow_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [nothing_is_done_in_erlang, flags_follow_each_consumer, every_probe_has_its_flags, consumer_killed, functions,
     named_processes, only_some_probes, sequential_tracing, other_tracers_keep_theirs, dbg_meanwhile, worker_killed, application_stopped,
     by_hand, bad_configuration, attached_again_and_again].

init_per_suite(Config) ->
    dt_require:tool(dt_bpftrace:missing(), Config).

end_per_suite(_) ->
    ok.

init_per_testcase(_, Config) ->
    Node = dt_node:start(),
    #{library := Library} = dt_node:call(Node, fun dyntrace:info/0),
    [{node, Node}, {library, Library} | Config].

end_per_testcase(_, Config) ->
    Node = ?config(node, Config),
    #{undecoded := Undecoded} = dt_node:call(Node, fun dyntrace:info/0),
    dt_node:stop(Node),
    case map_size(Undecoded) of
        0 -> ok;
        _ -> {fail, {undecoded, Undecoded}}
    end.

%% -- Following ---------------------------------------------------------------------------

%% The application runs; somebody attaches, and reads what old and new processes do.
nothing_is_done_in_erlang(Config) ->
    start(Config),
    Old = call(Config, fun() -> spawn(fun answer/0) end),
    ?assertEqual([], traced(Old, Config)),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    New = call(Config, fun() -> spawn(fun answer/0) end),
    [ask(Pid, Config) || Pid <- [Old, New]],
    Texts = [call(Config, fun() -> dt_cases:text(Pid) end) || Pid <- [Old, New]],
    [dt_bpftrace:await(Consumer, fun({message_send, #{from := From, message := Message}}) -> From =:= Text andalso Message =:= <<"answer">> end)
     || Text <- Texts],
    ?assertEqual([send], traced(Old, Config)),
    _ = dt_bpftrace:stop(Consumer),
    until_untraced(Config),
    [?assertEqual([], traced(Pid, Config)) || Pid <- [Old, New, new]].

flags_follow_each_consumer(Config) ->
    start(Config),
    Pid = call(Config, fun() -> spawn(fun answer/0) end),
    Sends = attach([message_send], Config),
    until(fun() -> traced(Pid, Config) =:= [send] end),
    Exits = attach([process_exit], Config),
    until(fun() -> traced(Pid, Config) =:= [procs, send] end),
    _ = dt_bpftrace:stop(Sends),
    until(fun() -> traced(Pid, Config) =:= [procs] end),
    _ = dt_bpftrace:stop(Exits),
    until(fun() -> traced(Pid, Config) =:= [] end).

%% What each probe needs, by what the catalogue says that feeds it.
every_probe_has_its_flags(Config) ->
    Needs = call(Config, fun() -> [{Name, dyntrace_needs:of_listeners([#{provider => P, name => Name, backends => [usdt]}], all)}
                                   || #{provider := P, name := Name} <- dyntrace:probes()] end),
    Of = fun(Name) -> #{processes := Processes, ports := Ports, calls := Calls, seq_trace := Seq} = proplists:get_value(Name, Needs), {Processes, Ports, Calls, Seq} end,
    ?assertEqual({[send], [send], none, false}, Of(message_send)),
    ?assertEqual({[send], [send], none, true}, Of(message__send)),
    ?assertEqual({['receive'], ['receive'], none, false}, Of(message_receive)),
    ?assertEqual({[procs], [], none, false}, Of(process_spawn)),
    ?assertEqual({[procs], [ports], none, false}, Of(process_register)),
    ?assertEqual({[exiting, running], [], none, false}, Of(process_scheduled)),
    ?assertEqual({[running], [], none, false}, Of(process__hibernate)),
    ?assertEqual({[], [exiting, running_ports], none, false}, Of(port_scheduled)),
    ?assertEqual({[], [ports], none, false}, Of(port_open)),
    ?assertEqual({[call], [], call, false}, Of(function_call)),
    ?assertEqual({[call], [], return, false}, Of(function_return)),
    ?assertEqual({[call], [], exception, false}, Of(function_exception)),
    ?assertEqual({[garbage_collection], [], none, false}, Of(gc_major_end)),
    ?assertEqual({[], [], none, true}, Of(seq_trace_send)),
    ?assertEqual({[], [], none, false}, Of(user_mark)),
    ?assertEqual({[call, exiting, garbage_collection, procs, 'receive', running, send],
                  [exiting, ports, 'receive', running_ports, send], exception, false}, Of(trace)),
    %% A probe that is fed by a trace event has flags, an annotation has none.
    Nothing = call(Config, fun dyntrace_needs:nothing/0),
    [?assertEqual(Events =:= [], proplists:get_value(Name, Needs) =:= Nothing, Name) || #{name := Name, events := Events} <- dyntrace:probes()].

consumer_killed(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    ok = dt_bpftrace:kill(Consumer),
    until_untraced(Config),
    ?assertEqual([], traced(new, Config)).

%% -- What is traced ------------------------------------------------------------------------

functions(Config) ->
    start([{functions, [{dt_cases, identity, 1}, {dt_cases, fail, '_'}, {lists, seq, '_'}]}], Config),
    Calls = attach([function_call], Config),
    until(fun() -> of_function({dt_cases, identity, 1}, Config) =:= [] end),
    Exceptions = attach([function_exception], Config),
    until(fun() -> of_function({dt_cases, identity, 1}, Config) =:= [{'_', [], [{exception_trace}]}] end),
    Text = call(Config, fun() ->
                                Self = self(),
                                Pid = spawn(fun() ->
                                                    _ = dt_cases:identity(1),
                                                    _ = try dt_cases:fail(throw, oops) catch throw:oops -> caught end,
                                                    Self ! {self(), done}
                                            end),
                                receive {Pid, done} -> dt_cases:text(Pid) end
                        end),
    dt_bpftrace:await(Calls, fun({_, #{entry := Entry, pid := Pid}}) -> Pid =:= Text andalso Entry =:= <<"dt_cases:identity/1">> end),
    dt_bpftrace:await(Exceptions, fun({_, #{entry := Entry, class := Class}}) -> Entry =:= <<"dt_cases:fail/2">> andalso Class =:= <<"throw">> end),
    _ = dt_bpftrace:stop(Exceptions),
    until(fun() -> of_function({dt_cases, identity, 1}, Config) =:= [] end),
    _ = dt_bpftrace:stop(Calls),
    until(fun() -> of_function({dt_cases, identity, 1}, Config) =:= false end),
    [?assertEqual(false, of_function(Mfa, Config)) || Mfa <- [{dt_cases, fail, 2}, {lists, seq, 2}, {lists, seq, 3}]].

named_processes(Config) ->
    start([{processes, [dt_followed]}, {ports, none}], Config),
    {Named, Other} = call(Config, fun() ->
                                          Named = spawn(fun answer/0),
                                          true = register(dt_followed, Named),
                                          {Named, spawn(fun answer/0)}
                                  end),
    Consumer = attach([message_send], Config),
    until(fun() -> traced(Named, Config) =:= [send] end),
    ?assertEqual({[], []}, {traced(Other, Config), traced(new, Config)}),
    Next = call(Config, fun() ->
                                true = unregister(dt_followed),
                                Next = spawn(fun answer/0),
                                true = register(dt_followed, Next),
                                Next
                        end),
    until(fun() -> traced(Next, Config) =:= [send] end),
    _ = dt_bpftrace:stop(Consumer),
    until(fun() -> traced(Next, Config) =:= [] end).

only_some_probes(Config) ->
    start([{probes, [process_exit]}], Config),
    Consumer = attach([message_send, process_exit], Config),
    until(fun() -> traced(new, Config) =:= [procs] end),
    _ = dt_bpftrace:stop(Consumer),
    until_untraced(Config).

sequential_tracing(Config) ->
    start(Config),
    Consumer = attach([seq_trace_print], Config),
    until(fun() -> call(Config, fun seq_trace:get_system_tracer/0) =/= false end),
    call(Config, fun() ->
                         _ = seq_trace:set_token(print, true),
                         ok = seq_trace:print(0, found),
                         _ = seq_trace:set_token([])
                 end),
    dt_bpftrace:await(Consumer, fun({_, #{message := Message}}) -> Message =:= <<"found">> end),
    _ = dt_bpftrace:stop(Consumer),
    until(fun() -> call(Config, fun seq_trace:get_system_tracer/0) =:= false end).

%% -- Others who trace ------------------------------------------------------------------------

%% A process that somebody traces stays theirs, with their flags; so do the processes to come, and a
%% function with a pattern.
other_tracers_keep_theirs(Config) ->
    start([{functions, [{dt_cases, identity, 1}]}], Config),
    {Theirs, Free} =
        call(Config, fun() ->
                             {module, _} = code:ensure_loaded(dt_cases),
                             Tracer = spawn(fun answer/0),
                             Theirs = spawn(fun answer/0),
                             1 = erlang:trace(Theirs, true, ['receive', {tracer, Tracer}]),
                             Free = spawn(fun answer/0),
                             _ = erlang:trace(new_processes, true, [procs, {tracer, Tracer}]),
                             1 = erlang:trace_pattern({dt_cases, identity, 1}, [{['_'], [], [{message, theirs}]}], [local]),
                             {Theirs, Free}
                     end),
    Before = of_function({dt_cases, identity, 1}, Config),
    Consumer = attach([message_send, function_return], Config),
    until_traced(Config),
    ?assertEqual(['receive'], traced(Theirs, Config)),
    ?assertEqual([procs], traced(new_processes, Config)),
    ?assertEqual(Before, of_function({dt_cases, identity, 1}, Config)),
    #{untraced := Untraced} = following(Config),
    ?assertEqual(not sessions(Config), Untraced >= 1),
    _ = dt_bpftrace:stop(Consumer),
    until_untraced(Config),
    ?assertEqual({['receive'], [procs]}, {traced(Theirs, Config), traced(new_processes, Config)}),
    ?assertEqual(Before, of_function({dt_cases, identity, 1}, Config)),
    ?assertEqual([], traced(Free, Config)).

dbg_meanwhile(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    Seen = call(Config, fun() ->
                                Self = self(),
                                {ok, _} = dbg:tracer(process, {fun(Message, _) -> Self ! {dbg, Message} end, none}),
                                Pid = spawn(fun() -> receive go -> dt_cases:identity(17) end end),
                                %% Traced by us already, so before OTP 27 the one who traces must let it go.
                                _ = erlang:trace(Pid, false, [send, {tracer, dyntrace, dyntrace_follower}]),
                                {ok, _} = dbg:p(Pid, [c]),
                                {ok, _} = dbg:tpl(dt_cases, identity, 1, []),
                                Pid ! go,
                                receive {dbg, {trace, Pid, call, Call}} -> Call end
                        end),
    ?assertEqual({dt_cases, identity, [17]}, Seen),
    _ = dt_bpftrace:stop(Consumer),
    until_untraced(Config),
    call(Config, fun() -> dbg:stop() end).

%% -- Ends ------------------------------------------------------------------------------------

%% A worker that is killed has no time to clear up: the next one does, and follows on.
worker_killed(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    First = call(Config, fun() -> Pid = whereis(dyntrace_follower), exit(Pid, kill), Pid end),
    until(fun() -> not lists:member(call(Config, fun() -> whereis(dyntrace_follower) end), [First, undefined]) end),
    until_traced(Config),
    _ = dt_bpftrace:stop(Consumer),
    until_untraced(Config),
    ?assertEqual([], traced(new, Config)).

application_stopped(Config) ->
    start(Config),
    Consumer = attach([message_send, seq_trace_send, function_call], Config),
    until_traced(Config),
    ok = call(Config, fun() -> application:stop(dyntrace) end),
    ?assertEqual({[], off, false}, {traced(new, Config), following(Config), call(Config, fun seq_trace:get_system_tracer/0)}),
    _ = dt_bpftrace:stop(Consumer).

by_hand(Config) ->
    Consumer = attach([message_send, process_exit], Config),
    ok = call(Config, fun() -> dyntrace:follow(#{probes => [message_send]}) end),
    ?assertEqual([send], traced(new, Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{probes => [process_exit]}) end),
    ?assertEqual([procs], traced(new, Config)),
    ok = call(Config, fun dyntrace:unfollow/0),
    ?assertEqual({[], off}, {traced(new, Config), following(Config)}),
    ok = call(Config, fun() -> dyntrace:follow(#{}) end),
    ?assertEqual([procs, send], traced(new, Config)),
    ok = call(Config, fun dyntrace:unfollow/0),
    _ = dt_bpftrace:stop(Consumer).

bad_configuration(Config) ->
    [begin
         ?assertMatch({error, {{bad_config, Key, Value, _}, _}},
                      call(Config, fun() ->
                                           _ = application:load(dyntrace),
                                           ok = application:set_env(dyntrace, Key, Value),
                                           Answer = application:start(dyntrace),
                                           ok = application:unset_env(dyntrace, Key),
                                           Answer
                                   end)),
         Says = call(Config, fun() ->
                                     try dyntrace:follow(#{Key => Value})
                                     catch error:badarg:Stack -> unicode:characters_to_binary(erl_error:format_exception(error, badarg, Stack))
                                     end
                             end),
         ?assertMatch({_, _}, binary:match(Says, iolist_to_binary(["*** argument 1: ", atom_to_list(Key), ": "])), Says)
     end || {Key, Value} <- [{follow, maybe_so}, {processes, some}, {processes, ["name"]}, {ports, []}, {functions, [lists]},
                             {functions, [{'_', '_', '_'}]}, {probes, [no_such_probe]}, {interval, 0}, {intervall, 250}]].

%% By consumers that are killed each time.
attached_again_and_again(Config) ->
    start([{interval, 10}], Config),
    Pid = call(Config, fun() -> spawn(fun answer/0) end),
    [begin
         Consumer = attach([message_send], Config),
         until(fun() -> traced(Pid, Config) =:= [send] end),
         ok = dt_bpftrace:kill(Consumer),
         until(fun() -> traced(Pid, Config) =:= [] end)
     end || _ <- lists:seq(1, 10)],
    ask(Pid, Config).

%% -- Helpers -----------------------------------------------------------------------------------

start(Config) ->
    start([], Config).

start(Env, Config) ->
    {ok, _} = call(Config, fun() ->
                                   _ = application:load(dyntrace),
                                   [ok = application:set_env(dyntrace, Key, Value) || {Key, Value} <- Env],
                                   application:ensure_all_started(dyntrace)
                           end).

%% On the node: a process that answers.
answer() ->
    receive {From, question} -> From ! answer, answer() end.

ask(Pid, Config) ->
    call(Config, fun() -> Pid ! {self(), question}, receive answer -> answer end end).

attach(Probes, Config) ->
    dt_bpftrace:start(?config(library, Config), Probes).

following(Config) ->
    maps:get(following, call(Config, fun dyntrace:info/0)).

until_traced(Config) ->
    until(fun() -> is_map(following(Config)) andalso following(Config) =/= nothing() end).

until_untraced(Config) ->
    until(fun() -> following(Config) =:= nothing() end).

nothing() ->
    (dyntrace_needs:nothing())#{untraced => 0}.

until(Fun) ->
    dt_wait:until(Fun).

sessions(Config) ->
    call(Config, fun() -> _ = code:ensure_loaded(trace), erlang:function_exported(trace, session_create, 3) end).

%% The flags of a process, or of those to come; in any session.
traced(Who, Config) ->
    call(Config, fun() -> lists:sort(flags(Who)) end).

flags(Who) ->
    lists:append([Flags || {flags, Flags} <- infos(Who, flags)]).

%% The match specification of a function, or false.
of_function(Mfa, Config) ->
    call(Config, fun() -> lists:last([false | [Spec || {match_spec, Spec} <- infos(Mfa, match_spec), Spec =/= false]]) end).

%% What each trace session has of that, the one that erlang:trace/3 works in among them.
infos(What, Key) ->
    _ = code:ensure_loaded(trace),
    Sessions = case erlang:function_exported(trace, session_info, 1) of
                   true -> lists:usort([{legacy, default} | apply(trace, session_info, [all])]);
                   false -> [{legacy, default}]
               end,
    [case Session of
         {legacy, default} -> erlang:trace_info(What, Key);
         _ -> apply(trace, info, [Session, What, Key])
     end || Session <- Sessions].

call(Config, Fun) ->
    dt_node:call(?config(node, Config), Fun).
