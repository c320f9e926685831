%% The application traces what attached consumers require, and stops all of it when they detach.
-module(follow_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/1, start/2, answer_of/2, attach/2, detach/2, following/1, call/2, until_traced/1,
                          until_untraced/1, until_following/3, until_flags/3, until_pattern/3, until_system_tracer/2,
                          until_logged/2, until_worker_after/2, traced/2, flags/1, of_function/2, keep_log/1,
                          logged/1, badarg_of_follow/2]).

-define(NOT_SET, <<"their trace flags were not set">>).
%% The messages that are sent while a consumer is attached.
-define(STORM, [1, 2, 3]).
-define(STORM_MS, 900000).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [nothing_is_done_in_erlang, flags_follow_each_consumer, every_probe_has_its_flags, consumer_killed, functions,
     values_of_calls, functions_of_new_code, functions_of_the_same_code, named_processes, only_some_probes,
     sequential_tracing, other_tracers_keep_theirs, dbg_meanwhile, patterns_of_others, worker_killed,
     what_was_said_by_hand_holds, worker_that_fails, application_stopped, by_hand, as_configured, bad_configuration,
     budget, unfollowed, node_stopped, call_budget, cleared_alone, calls_of_the_consumer_before, no_generated_functions,
     files, files_beside_functions, telemetry, telemetry_beside_functions, telemetry_shapes, shapes,
     attached_again_and_again, hundreds_of_times].

%% -- Following ---------------------------------------------------------------------------

%% A consumer attaches while the application runs, and reads events of existing and of new processes.
nothing_is_done_in_erlang(Config) ->
    start(Config),
    Old = call(Config, fun() -> spawn(fun test_autotracer:answer/0) end),
    ?assertEqual([], traced(Old, Config)),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    New = call(Config, fun() -> spawn(fun test_autotracer:answer/0) end),
    [answer_of(Pid, Config) || Pid <- [Old, New]],
    Texts = [call(Config, fun() -> test_cases:text(Pid) end) || Pid <- [Old, New]],
    [test_bpftrace:await(Consumer, fun({message_send, #{from := From, message := Message}}) ->
                                           From =:= Text andalso Message =:= <<"answer">>
                                   end)
     || Text <- Texts],
    ?assertEqual([send], traced(Old, Config)),
    detach(Consumer, Config),
    [?assertEqual([], traced(Pid, Config)) || Pid <- [Old, New, new]].

flags_follow_each_consumer(Config) ->
    start(Config),
    Pid = call(Config, fun() -> spawn(fun test_autotracer:answer/0) end),
    Sends = attach([message_send], Config),
    until_flags(Pid, [send], Config),
    Exits = attach([process_exit], Config),
    until_flags(Pid, [procs, send], Config),
    _ = test_bpftrace:stop(Sends),
    until_flags(Pid, [procs], Config),
    _ = test_bpftrace:stop(Exits),
    until_flags(Pid, [], Config).

%% The trace flags that each probe requires, from the catalogue.
every_probe_has_its_flags(Config) ->
    Needs = call(Config, fun() ->
                                 Table = dyntrace_trace_flags:table(all),
                                 [{Name, dyntrace_trace_flags:for_enabled([Enabled], Table)}
                                  || #{provider := P, name := Name} <- dyntrace:probes(),
                                     Enabled <- [#{provider => P, name => Name, backends => [usdt]}]]
                         end),
    Of = fun(Name) ->
                 #{processes := Processes, ports := Ports, calls := Calls, seq_trace := Seq} =
                     proplists:get_value(Name, Needs),
                 {Processes, Ports, Calls, Seq}
         end,
    ?assertEqual({[send], [send], none, false}, Of(message_send)),
    ?assertEqual({[send], [send], none, true}, Of(message__send)),
    ?assertEqual({['receive'], ['receive'], none, false}, Of(message_receive)),
    ?assertEqual({['receive'], ['receive'], none, false}, Of(message_delivery)),
    ?assertEqual({[procs], [], none, false}, Of(process_spawn)),
    ?assertEqual({[procs], [ports], none, false}, Of(process_register)),
    ?assertEqual({[exiting, running], [], none, false}, Of(process_scheduled)),
    ?assertEqual({[running], [], none, false}, Of(process__hibernate)),
    ?assertEqual({[], [exiting, running_ports], none, false}, Of(port_scheduled)),
    ?assertEqual({[], [ports], none, false}, Of(port_open)),
    ?assertEqual({[call], [], call, false}, Of(function_call)),
    ?assertEqual({[call], [], return, false}, Of(function_return)),
    ?assertEqual({[call], [], exception, false}, Of(function_exception)),
    ?assertEqual({[call], [], call, false}, Of(function_arguments)),
    ?assertEqual({[call], [], return, false}, Of(function_value)),
    ?assertEqual({[call], [], exception, false}, Of(function_reason)),
    ?assertEqual({[call], [], exception, false}, Of(function_duration)),
    ?assertEqual({[call], [], none, false}, Of(file_call)),
    ?assertEqual({[call], [], none, false}, Of(telemetry_event)),
    ?assertEqual({[call], [], call, false}, Of(nif__entry)),
    ?assertEqual({[call], [], exception, false}, Of(bif__return)),
    ?assertEqual({[garbage_collection], [], none, false}, Of(gc_major_end)),
    ?assertEqual({[], [], none, true}, Of(seq_trace_send)),
    ?assertEqual({[], [], none, false}, Of(user_mark)),
    ?assertEqual({[call, exiting, garbage_collection, procs, 'receive', running, send],
                  [exiting, ports, 'receive', running_ports, send], exception, false}, Of(trace)),
    %% A probe of trace events requires flags, a probe that the application reports requires its source, an annotation
    %% requires nothing.
    Nothing = call(Config, fun dyntrace_trace_flags:none/0),
    [?assertEqual(Events =:= [] andalso not is_map_key(source, Probe), proplists:get_value(Name, Needs) =:= Nothing,
                  Name)
     || Probe = #{name := Name, events := Events} <- dyntrace:probes()].

consumer_killed(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    ok = test_bpftrace:kill(Consumer),
    until_untraced(Config),
    ?assertEqual([], traced(new, Config)).

%% -- What is traced ------------------------------------------------------------------------

functions(Config) ->
    start([{functions, [{test_cases, identity, 1}, {test_cases, fail, '_'}, {lists, seq, '_'}]}], Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Calls = attach([function_call], Config),
    until_following(calls, call, Config),
    ?assertEqual([], of_function({test_cases, identity, 1}, Config)),
    Exceptions = attach([function_exception], Config),
    until_following(calls, exception, Config),
    ?assertEqual([{'_', [], [{exception_trace}]}], of_function({test_cases, identity, 1}, Config)),
    Text = call(Config, fun() ->
                                Self = self(),
                                Pid = spawn(fun() ->
                                                    _ = test_cases:identity(1),
                                                    _ = try test_cases:fail(throw, oops) catch throw:oops -> caught end,
                                                    Self ! {self(), done}
                                            end),
                                receive {Pid, done} -> test_cases:text(Pid) end
                        end),
    test_bpftrace:await(Calls, fun({_, #{entry := Entry, pid := Pid}}) ->
                                       Pid =:= Text andalso Entry =:= <<"test_cases:identity/1">>
                               end),
    test_bpftrace:await(Exceptions, fun({_, #{entry := Entry, class := Class}}) ->
                                            Entry =:= <<"test_cases:fail/2">> andalso Class =:= <<"throw">>
                                    end),
    _ = test_bpftrace:stop(Exceptions),
    until_pattern({test_cases, identity, 1}, [], Config),
    _ = test_bpftrace:stop(Calls),
    until_pattern({test_cases, identity, 1}, false, Config),
    [?assertEqual(false, of_function(Mfa, Config)) || Mfa <- [{test_cases, fail, 2}, {lists, seq, 2}, {lists, seq, 3}]].

%% Each consumer adds what its probe requires to the match specification. An option determines whether contents are
%% shown.
values_of_calls(Config) ->
    start([{functions, [{test_cases, identity, 1}, {test_cases, fail, 2}]}], Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Pattern = fun() -> of_function({test_cases, identity, 1}, Config) end,
    Arguments = attach([function_arguments], Config),
    until_following(calls, call, Config),
    ?assertEqual([], Pattern()),
    Values = attach([function_value], Config),
    until_following(calls, return, Config),
    ?assertEqual([{'_', [], [{return_trace}]}], Pattern()),
    Reasons = attach([function_reason], Config),
    until_following(calls, exception, Config),
    ?assertEqual([{'_', [], [{exception_trace}]}], Pattern()),
    Consumers = [Arguments, Values, Reasons],
    ?assertEqual({<<"[{tea,\"green\"}]">>, <<"{tea,\"green\"}">>, <<"{no,<<\"milk\">>}">>},
                 values_of(Consumers, Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{text => shape, functions => [{test_cases, identity, 1},
                                                                              {test_cases, fail, 2}]}) end),
    until_following(calls, exception, Config),
    ?assertEqual({<<"[{tea,{list,5}}]">>, <<"{tea,{list,5}}">>, <<"{no,{binary,4}}">>}, values_of(Consumers, Config)),
    [_ = test_bpftrace:stop(Consumer) || Consumer <- Consumers],
    until_pattern({test_cases, identity, 1}, false, Config).

values_of([Arguments, Values, Reasons], Config) ->
    Text = call(Config, fun() ->
                                Self = self(),
                                Pid = spawn(fun() ->
                                                    _ = test_cases:identity({tea, "green"}),
                                                    _ = try test_cases:fail(throw, {no, <<"milk">>}) catch _ -> ok end,
                                                    Self ! {self(), done}
                                            end),
                                receive {Pid, done} -> test_cases:text(Pid) end
                        end),
    Await = fun(Consumer, Function) ->
                    {_, Event} = test_bpftrace:await(Consumer, fun({_, #{pid := Pid, entry := Entry}}) ->
                                                                       Pid =:= Text andalso Entry =:= Function
                                                               end),
                    Event
            end,
    #{arguments := Args} = Await(Arguments, <<"test_cases:identity/1">>),
    #{value := Value} = Await(Values, <<"test_cases:identity/1">>),
    #{reason := Reason, class := <<"throw">>} = Await(Reasons, <<"test_cases:fail/2">>),
    {Args, Value, Reason}.

%% Patterns are set when the module is loaded, and again after each load.
functions_of_new_code(Config) ->
    start([{functions, [{test_new_code, '_', '_'}]}], Config),
    Calls = attach([function_call], Config),
    until_traced(Config),
    [begin
         call(Config, fun() -> load(version(Value)) end),
         until_pattern({test_new_code, value, 0}, [], Config),
         ?assertEqual(Value, call(Config, fun() -> test_new_code:value() end)),
         test_bpftrace:await(Calls, fun({_, #{entry := Entry}}) -> Entry =:= <<"test_new_code:value/0">> end)
     end || Value <- [1, 2, 3]],
    detach(Calls, Config),
    ?assertEqual(false, of_function({test_new_code, value, 0}, Config)).

functions_of_the_same_code(Config) ->
    start([{functions, [{test_cases, identity, 1}]}], Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Calls = attach([function_call], Config),
    until_pattern({test_cases, identity, 1}, [], Config),
    call(Config, fun() -> _ = code:purge(test_cases), {module, test_cases} = code:load_file(test_cases) end),
    until_pattern({test_cases, identity, 1}, [], Config),
    detach(Calls, Config).

version(Value) ->
    Exports = {attribute, 1, export, [{value, 0}]},
    Function = {function, 1, value, 0, [{clause, 1, [], [], [{integer, 1, Value}]}]},
    {ok, test_new_code, Code} = compile:forms([{attribute, 1, module, test_new_code}, Exports, Function], []),
    Code.

load(Code) ->
    _ = code:purge(test_new_code),
    {module, test_new_code} = code:load_binary(test_new_code, "test_new_code", Code).

named_processes(Config) ->
    start([{processes, [test_followed]}, {ports, none}], Config),
    {Named, Other} = call(Config, fun() ->
                                          Named = spawn(fun test_autotracer:answer/0),
                                          true = register(test_followed, Named),
                                          {Named, spawn(fun test_autotracer:answer/0)}
                                  end),
    Consumer = attach([message_send], Config),
    until_flags(Named, [send], Config),
    ?assertEqual({[], []}, {traced(Other, Config), traced(new, Config)}),
    Next = call(Config, fun() ->
                                true = unregister(test_followed),
                                Next = spawn(fun test_autotracer:answer/0),
                                true = register(test_followed, Next),
                                Next
                        end),
    until_flags(Next, [send], Config),
    %% The process that had the name before is no longer traced.
    until_flags(Named, [], Config),
    _ = test_bpftrace:stop(Consumer),
    until_flags(Next, [], Config).

%% A probe that is not allowed does not fire, even if an allowed probe has the same trace flag.
only_some_probes(Config) ->
    start([{probes, [process_exit, message__send]}], Config),
    Consumer = attach([message_send, message__send, process_spawn, process_exit], Config),
    until_flags(new, [procs, send], Config),
    Pid = call(Config, fun() ->
                               Pid = spawn(fun test_autotracer:answer/0),
                               Pid ! {self(), question},
                               receive answer -> Pid end
                       end),
    call(Config, fun() -> exit(Pid, kill) end),
    Text = test_cases:text(Pid),
    test_bpftrace:await(Consumer,
                        fun({Probe, Fields}) -> Probe =:= process_exit andalso maps:get(pid, Fields) =:= Text end),
    test_bpftrace:await(Consumer,
                        fun({Probe, Fields}) -> Probe =:= message__send andalso maps:get(sender, Fields) =:= Text end),
    ?assertEqual([message__send, process_exit], lists:usort([Probe || {Probe, _} <- test_bpftrace:stop(Consumer)])),
    until_untraced(Config).

sequential_tracing(Config) ->
    start(Config),
    Consumer = attach([seq_trace_print], Config),
    until_system_tracer({dyntrace, dyntrace_autotracer}, Config),
    call(Config, fun() ->
                         _ = seq_trace:set_token(print, true),
                         ok = seq_trace:print(0, found),
                         _ = seq_trace:set_token([])
                 end),
    test_bpftrace:await(Consumer, fun({_, #{message := Message}}) -> Message =:= <<"found">> end),
    _ = test_bpftrace:stop(Consumer),
    until_system_tracer(false, Config).

%% -- Other tracers ---------------------------------------------------------------------------

%% A process that another tool traces keeps its tracer and flags. So do new processes, and a function keeps its pattern.
other_tracers_keep_theirs(Config) ->
    start([{functions, [{test_cases, identity, 1}]}], Config),
    {Theirs, Free} =
        call(Config, fun() ->
                             {module, _} = code:ensure_loaded(test_cases),
                             Tracer = spawn(fun test_autotracer:answer/0),
                             Theirs = spawn(fun test_autotracer:answer/0),
                             1 = erlang:trace(Theirs, true, ['receive', {tracer, Tracer}]),
                             Free = spawn(fun test_autotracer:answer/0),
                             _ = erlang:trace(new_processes, true, [procs, send, {tracer, Tracer}]),
                             1 = erlang:trace_pattern({test_cases, identity, 1}, [{['_'], [], [{message, theirs}]}],
                                                      [local]),
                             {Theirs, Free}
                     end),
    %% The flags and patterns of erlang:trace/3.
    Have = fun() -> call(Config, fun() -> [lists:sort(element(2, erlang:trace_info(Theirs, flags))),
                                           lists:sort(element(2, erlang:trace_info(new_processes, flags))),
                                           erlang:trace_info({test_cases, identity, 1}, match_spec)] end) end,
    Before = [['receive'], [procs, send], {match_spec, [{['_'], [], [{message, theirs}]}]}],
    ?assertEqual(Before, Have()),
    Consumer = attach([message_send, function_return], Config),
    until_traced(Config),
    ?assertEqual(Before, Have()),
    #{untraced := Untraced} = following(Config),
    ?assertEqual(not test_trace:has_sessions(), Untraced >= 1),
    detach(Consumer, Config),
    ?assertEqual(Before, Have()),
    ?assertEqual([], traced(Free, Config)),
    %% A worker that starts or ends does not change them.
    ok = call(Config, fun() -> application:stop(dyntrace) end),
    start(Config),
    ?assertEqual(Before, Have()).

%% Before OTP 27, a pattern that another tool sets in place of the application's is kept.
patterns_of_others(Config) ->
    start([{functions, [{test_cases, identity, 1}]}], Config),
    call(Config, fun() -> {module, _} = code:ensure_loaded(test_cases) end),
    Consumer = attach([function_call], Config),
    until_pattern({test_cases, identity, 1}, [], Config),
    Theirs = [{['_'], [], [{message, theirs}]}],
    call(Config, fun() -> 1 = erlang:trace_pattern({test_cases, identity, 1}, Theirs, [local]) end),
    detach(Consumer, Config),
    ?assertEqual({match_spec, Theirs},
                 call(Config, fun() -> erlang:trace_info({test_cases, identity, 1}, match_spec) end)).

dbg_meanwhile(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    Seen = call(Config, fun() ->
                                Self = self(),
                                {ok, _} = dbg:tracer(process, {fun(Message, _) -> Self ! {dbg, Message} end, none}),
                                Pid = spawn(fun() -> receive go -> test_cases:identity(17) end end),
                                %% The application already traces the process. Before OTP 27, another tracer must first
                                %% clear its flags.
                                _ = erlang:trace(Pid, false, [all, {tracer, dyntrace, dyntrace_autotracer}]),
                                {ok, _} = dbg:p(Pid, [c]),
                                {ok, _} = dbg:tpl(test_cases, identity, 1, []),
                                Pid ! go,
                                receive {dbg, {trace, Pid, call, Call}} -> Call end
                        end),
    ?assertEqual({test_cases, identity, [17]}, Seen),
    detach(Consumer, Config),
    call(Config, fun() -> dbg:stop() end).

%% -- Ends ------------------------------------------------------------------------------------

%% A worker that is killed can't clear its flags. The next worker clears them, and traces again.
worker_killed(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    First = call(Config, fun() -> Pid = whereis(dyntrace_autotracer), exit(Pid, kill), Pid end),
    until_worker_after(First, Config),
    until_traced(Config),
    detach(Consumer, Config),
    ?assertEqual([], traced(new, Config)).

%% The options of follow/1 and unfollow/0 also apply to the next worker.
what_was_said_by_hand_holds(Config) ->
    start(Config),
    Consumer = attach([message_send, process_exit, seq_trace_send], Config),
    until_traced(Config),
    Kill = fun() ->
                   First = call(Config, fun() -> Pid = whereis(dyntrace_autotracer), exit(Pid, kill), Pid end),
                   until_worker_after(First, Config)
           end,
    ok = call(Config, fun() -> dyntrace:follow(#{probes => [process_exit], text => shape}) end),
    Kill(),
    test_wait:until("the worker follows", fun is_map/1, fun() -> following(Config) end),
    ?assertEqual({[procs], false}, {traced(new, Config), call(Config, fun seq_trace:get_system_tracer/0)}),
    ?assertEqual(shape, call(Config, fun() -> element(5, dyntrace_library:load_info(dyntrace_library:find())) end)),
    ok = call(Config, fun dyntrace:unfollow/0),
    Kill(),
    ?assertEqual({[], off}, {traced(new, Config), following(Config)}),
    _ = test_bpftrace:stop(Consumer).

%% OTP's module is loaded in place of the application's: the worker can't poll, logs that once, and continues when it
%% can.
worker_that_fails(Config) ->
    keep_log(Config),
    start([{interval, 10}], Config),
    Worker = call(Config, fun() -> whereis(dyntrace_autotracer) end),
    call(Config, fun() ->
                         {ok, dyntrace, Other} = compile:forms([{attribute, 1, module, dyntrace}], []),
                         _ = code:purge(dyntrace),
                         {module, dyntrace} = code:load_binary(dyntrace, "other", Other)
                 end),
    until_logged(1, Config),
    call(Config, fun() -> _ = code:purge(dyntrace), {module, dyntrace} = code:load_file(dyntrace) end),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    ?assertMatch([{error, "dyntrace: cannot trace" ++ _, _}], logged(Config)),
    ?assertEqual(Worker, call(Config, fun() -> whereis(dyntrace_autotracer) end)),
    _ = test_bpftrace:stop(Consumer).

application_stopped(Config) ->
    start(Config),
    Consumer = attach([message_send, seq_trace_send, function_call], Config),
    until_traced(Config),
    ok = call(Config, fun() -> application:stop(dyntrace) end),
    ?assertEqual({[], off, false},
                 {traced(new, Config), following(Config), call(Config, fun seq_trace:get_system_tracer/0)}),
    _ = test_bpftrace:stop(Consumer).

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
    _ = test_bpftrace:stop(Consumer).

%% Options that are not given to follow/1 have their values from the application's configuration.
as_configured(Config) ->
    start([{probes, [message_send]}, {ports, none}], Config),
    Consumer = attach([message_send, process_exit], Config),
    ok = call(Config, fun() -> dyntrace:follow(#{processes => new}) end),
    ?assertEqual([send], traced(new, Config)),
    ?assertEqual([], traced(call(Config, fun() -> whereis(init) end), Config)),
    _ = test_bpftrace:stop(Consumer).

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
         Says = badarg_of_follow(#{Key => Value}, Config),
         ?assertMatch({_, _}, binary:match(Says, iolist_to_binary(["*** argument 1: ", atom_to_list(Key), ": "])), Says)
     end || {Key, Value} <- [{follow, maybe_so}, {processes, some}, {processes, ["name"]}, {ports, []},
                             {functions, [lists]}, {functions, [{'_', '_', '_'}]}, {probes, [no_such_probe]},
                             {interval, 0}, {intervall, 250}, {budget, 0}, {budget, 1.5}, {call_budget, 0},
                             {text, none}]].

%% -- Too many events -----------------------------------------------------------------------------

%% A flood of events: tracing pauses, with one line in the log, and skipped events are counted. After the flood, one
%% line says so, and consumers receive all events again.
budget(Config) ->
    keep_log(Config),
    start([{budget, 1000}, {interval, 20}], Config),
    Consumer = attach([message_send, withheld], Config),
    until_flags(new, [send], Config),
    {Flood, Sink} = call(Config, fun() ->
                                         Sink = spawn(fun test_autotracer:sink/0),
                                         {spawn(fun() -> test_autotracer:flood(Sink) end), Sink}
                                 end),
    %% Of consecutive pauses, only the first one is logged. On a busy machine, the flood may have a break.
    ok = test_wait:until("a pause that is not logged", fun({Pauses, Logged}) -> Pauses > length(Logged) end,
                         fun() -> {maps:get(pauses, following(Config)), logged(Config)} end),
    test_wait:until("paused, without flags", {true, []},
                    fun() -> {maps:get(paused, following(Config)), traced(Flood, Config)} end),
    call(Config, fun() -> exit(Flood, kill) end),
    ok = test_wait:until("fewer events are logged", fun(Lines) -> element(1, lists:last(Lines)) =:= notice end,
                         fun() -> logged(Config) end),
    #{pauses := Pauses, skipped := Skipped, paused := false} = following(Config),
    Lines = logged(Config),
    Breaks = length(Lines) div 2,
    ?assert(Pauses > Breaks andalso Skipped > 0),
    ?assertEqual(lists:append(lists:duplicate(Breaks, [warning, notice])), [Level || {Level, _, _} <- Lines]),
    ?assertMatch([{notice, "dyntrace: fewer than ~b trace events per second" ++ _,
                   [1000, #{pauses := Pauses, skipped := Skipped}]},
                  {warning, "dyntrace: more than ~b trace events per second" ++ _, [1000]} | _], lists:reverse(Lines)),
    Text = call(Config, fun() -> Sink ! {last, Sink}, test_cases:text(Sink) end),
    test_bpftrace:await(Consumer, fun({_, #{to := To, message := Message}}) ->
                                          To =:= Text andalso Message =:= <<"{last,", Text/binary, "}">>;
                                     (_) -> false
                                  end),
    %% Each second before a pause has as many events as the budget allows, and fewer if it has a break.
    Events = test_bpftrace:stop(Consumer),
    Floods = [flood || {_, #{message := <<"flood">>}} <- Events],
    ?assert(length(Floods) =< 1000 * (Pauses + Breaks), {length(Floods), Pauses, Breaks}),
    ?assert(length(Floods) > 500 * Pauses, {length(Floods), Pauses}),
    ?assertEqual([<<"more than 1000 trace events per second, the budget: tracing pauses for one second">>],
                 lists:usort([Why || {_, #{what := <<"all_events">>, why := Why}} <- Events, Why =/= ?NOT_SET])),
    until_untraced(Config).

%% A consumer that stays attached is notified that it misses the events until follow/1, and that flags are set again.
unfollowed(Config) ->
    start([{interval, 20}], Config),
    Consumer = attach([message_send, withheld], Config),
    until_flags(new, [send], Config),
    ok = call(Config, fun dyntrace:unfollow/0),
    Await = fun(Of, What, Why) ->
                    test_bpftrace:await(Of, fun(Event) -> Event =:= {withheld, #{what => What, why => Why}} end)
            end,
    Await(Consumer, <<"all_events">>, <<"the application has stopped tracing">>),
    Second = attach([withheld], Config),
    ok = call(Config, fun() -> dyntrace:follow(#{}) end),
    until_flags(new, [send], Config),
    _ = [Await(Second, What, ?NOT_SET) || What <- [<<"all_events">>, <<"earlier_events">>]],
    _ = test_bpftrace:stop(Second),
    detach(Consumer, Config).

%% The node of a consumer is shut down.
node_stopped(Config) ->
    Node = test_node:start(),
    Other = lists:keystore(node, 1, Config, {node, Node}),
    start([{interval, 20}], Other),
    Consumer = attach([message_send, withheld], Other),
    until_flags(new, [send], Other),
    ok = test_node:call(Node, fun init:stop/0),
    Why = <<"the node is shutting down">>,
    test_bpftrace:await(Consumer, fun({_, Event}) -> maps:get(why, Event, none) =:= Why end),
    _ = test_bpftrace:stop(Consumer).

%% A function of a module is called too often: its pattern is cleared and its name is reported. The other functions of
%% the module are still traced. For the next consumer, calls are counted from zero.
call_budget(Config) ->
    keep_log(Config),
    start([{functions, [{test_called, '_', '_'}]}, {call_budget, 2000}, {interval, 20}], Config),
    call(Config, fun() -> {module, test_called} = code:ensure_loaded(test_called) end),
    [begin
         Consumer = attach([function_call], Config),
         until_following(calls, call, Config),
         {Counter, Stop} = call(Config, fun called/0),
         Why = until_cleared(Config),
         ?assertMatch({match, _}, re:run(Why, "^more than 2000 calls per second; no longer traced: "
                                         "test_called:often/2 \\([0-9]+ calls\\)$"), Why),
         until_pattern({test_called, often, 2}, false, Config),
         ?assertEqual([], of_function({test_called, seldom, 1}, Config)),
         Before = seldom(test_bpftrace:events(Consumer)),
         ok = test_wait:until("more calls of the other one",
                              fun() -> seldom(test_bpftrace:events(Consumer)) > Before + 10 end),
         Called = call(Config, fun() -> counters:put(Stop, 1, 1), counters:get(Counter, 1) end),
         Often = calls_of(<<"test_called:often/2">>, test_bpftrace:stop(Consumer)),
         ?assert(Often >= 1000 andalso Often < Called div 2, {Often, Called}),
         until_following(calls, none, Config),
         ?assertEqual(#{}, maps:get(withheld, following(Config)))
     end || _ <- [first, again]],
    ?assertMatch([{warning, "dyntrace: ~ts", [_]}, {warning, "dyntrace: ~ts", [_]}], logged(Config)).

%% Setting a pattern takes long on a busy node, so the patterns of other functions are not set again.
cleared_alone(Config) ->
    start([{functions, [{Module, '_', '_'} || Module <- [test_called, test_cases]]}, {call_budget, 2000},
           {interval, 20}], Config),
    call(Config, fun() -> [{module, _} = code:ensure_loaded(Module) || Module <- [test_called, test_cases]], ok end),
    Consumer = attach([function_call], Config),
    %% The pattern of each function is set.
    until_following(calls, call, Config),
    ?assertEqual(1, call(Config, fun set_until_cleared/0)),
    _ = test_bpftrace:stop(Consumer),
    until_following(calls, none, Config).

%% On the node: the number of patterns that are set until a function is cleared.
set_until_cleared() ->
    _ = code:ensure_loaded(trace),
    Setters = [{erlang, trace_pattern, 3}, {trace, function, 4}],
    _ = [erlang:trace_pattern(Setter, true, [call_count]) || Setter <- Setters],
    {_, Stop} = called(),
    test_wait:until("a function is cleared", true,
                    fun() ->
                            #{following := #{withheld := Withheld}} = dyntrace:info(),
                            is_map_key(call, Withheld)
                    end),
    ok = counters:put(Stop, 1, 1),
    Counts = [Count || {call_count, Count} <- [erlang:trace_info(Setter, call_count) || Setter <- Setters],
                       is_integer(Count)],
    _ = [erlang:trace_pattern(Setter, false, [call_count]) || Setter <- Setters],
    %% One counted call is the test's own, which sets the second pattern.
    lists:sum(Counts) - (length(Setters) - 1).

%% A consumer detaches before the worker has read its calls: the next consumer starts from zero.
calls_of_the_consumer_before(Config) ->
    Cleared = fun(Budget) -> is_map_key(call, dyntrace_call_budget:withheld(Budget)) end,
    Flood = fun() ->
                    [ok = dyntrace:trace_call(call, dyntrace_autotracer, self(), {lists, seq, 2}, #{})
                     || _ <- lists:seq(1, 20)]
            end,
    ?assertEqual([false, false, true, false],
                 call(Config, fun() ->
                                      New = dyntrace_call_budget:new(10),
                                      _ = Flood(),
                                      Detached = dyntrace_call_budget:poll(New, false),
                                      Attached = dyntrace_call_budget:poll(Detached, true),
                                      Again = dyntrace_call_budget:poll(Attached, true),
                                      _ = Flood(),
                                      Flooded = dyntrace_call_budget:poll(Again, true),
                                      Last = dyntrace_call_budget:poll(Flooded, false),
                                      [Cleared(Budget) || Budget <- [Attached, Again, Flooded, Last]]
                              end)).

until_cleared(Config) ->
    Why = fun() -> maps:get(call, maps:get(withheld, following(Config)), none) end,
    ok = test_wait:until("a function is cleared", fun() -> Why() =/= none end),
    Why().

%% On the node.
called() ->
    Counter = counters:new(1, []),
    Stop = counters:new(1, []),
    _ = spawn(test_called, often, [Counter, Stop]),
    _ = spawn(test_called, seldom, [Stop]),
    {Counter, Stop}.

seldom(Events) ->
    calls_of(<<"test_called:seldom/1">>, Events).

calls_of(Function, Events) ->
    length([call || {function_call, #{entry := Entry}} <- Events, Entry =:= Function]).

%% '_' covers only functions of the source. Generated functions can be named.
no_generated_functions(Config) ->
    start([{functions, [{test_called, '_', '_'}]}, {interval, 20}], Config),
    Generated = call(Config, fun() ->
                                     {module, test_called} = code:ensure_loaded(test_called),
                                     [{test_called, F, A} || {F, A} <- test_called:module_info(functions),
                                                             hd(atom_to_list(F)) =:= $-]
                             end),
    ?assertMatch([_, _ | _], Generated),
    Consumer = attach([function_call], Config),
    until_following(calls, call, Config),
    ?assertEqual([], of_function({test_called, squares, 1}, Config)),
    ?assertEqual([false], lists:usort([of_function(Mfa, Config) || Mfa <- Generated])),
    ok = call(Config, fun() -> dyntrace:follow(#{functions => Generated}) end),
    ?assertEqual([[]], lists:usort([of_function(Mfa, Config) || Mfa <- Generated])),
    ?assertEqual(false, of_function({test_called, squares, 1}, Config)),
    _ = test_bpftrace:stop(Consumer).

%% Without configuration, any consumer gets file I/O events, and patterns of other tools are not changed.
files(Config) ->
    start(Config),
    Theirs = {prim_file, delete, 1},
    _ = test_trace:has_sessions() orelse call(Config, fun() -> 1 = erlang:trace_pattern(Theirs, true, [local]) end),
    Consumer = attach([file_call, file_return], Config),
    until_following(files, true, Config),
    ?assertMatch(#{calls := none, processes := [call]}, following(Config)),
    ?assertEqual([{'_', [], [{exception_trace}]}], of_function({prim_file, sync, 1}, Config)),
    ?assertEqual(test_trace:has_sessions(), of_function(Theirs, Config) =/= []),
    [?assertEqual(false, of_function(Mfa, Config)) || Mfa <- [{prim_file, is_translatable, 1}, {file, open, 2}]],
    Pid = call(Config, fun reads_no_file/0),
    Ours = fun({_, #{pid := P, entry := Entry}}) -> P =:= Pid andalso Entry =:= <<"prim_file:read_file/1">> end,
    ?assertMatch({file_call, #{file := <<"\"/no/such\"">>}}, test_bpftrace:await(Consumer, Ours)),
    _ = test_bpftrace:await(Consumer, fun(Event) -> element(1, Event) =:= file_return andalso Ours(Event) end),
    Events = [Event || Event <- test_bpftrace:stop(Consumer), Ours(Event)],
    ?assertMatch([{file_call, _}, {file_return, #{result := <<"enoent">>}}], Events),
    until_pattern({prim_file, sync, 1}, false, Config),
    until_untraced(Config).

%% On the node: a process reads a file without the file server.
reads_no_file() ->
    {Pid, Ref} = spawn_monitor(fun() -> {error, enoent} = prim_file:read_file("/no/such") end),
    receive {'DOWN', Ref, process, Pid, normal} -> test_cases:text(Pid) end.

%% A consumer of calls sees only the configured functions, and functions of files only if they are configured.
files_beside_functions(Config) ->
    start([{functions, [{test_cases, identity, 1}, {prim_file, read_file, '_'}]}], Config),
    call(Config, fun() -> {module, test_cases} = code:ensure_loaded(test_cases) end),
    Calls = attach([function_call], Config),
    until_following(calls, call, Config),
    Files = attach([file_call], Config),
    until_following(files, true, Config),
    ?assertEqual([{'_', [], [{exception_trace}]}], of_function({prim_file, open, 2}, Config)),
    ?assertEqual([], of_function({test_cases, identity, 1}, Config)),
    Pid = call(Config, fun() ->
                               Work = fun() ->
                                              {ok, Null} = prim_file:open("/dev/null", [read]),
                                              ok = prim_file:close(Null),
                                              {error, enoent} = prim_file:read_file("/no/such"),
                                              test_cases:identity(last)
                                      end,
                               {Pid, Ref} = spawn_monitor(Work),
                               receive {'DOWN', Ref, process, Pid, normal} -> test_cases:text(Pid) end
                       end),
    Entries = fun(Events) -> [Entry || {_, #{pid := P, entry := Entry}} <- Events, P =:= Pid] end,
    [_ = test_bpftrace:await(Consumer, fun({_, #{pid := P, entry := Entry}}) -> P =:= Pid andalso Entry =:= Last end)
     || {Consumer, Last} <- [{Calls, <<"test_cases:identity/1">>}, {Files, <<"prim_file:read_file/1">>}]],
    ?assertEqual([<<"prim_file:open/2">>, <<"prim_file:close/1">>, <<"prim_file:read_file/1">>],
                 Entries(test_bpftrace:stop(Files))),
    until_following(files, false, Config),
    ?assertEqual(false, of_function({prim_file, open, 2}, Config)),
    ?assertEqual([], of_function({prim_file, read_file, 1}, Config)),
    ?assertEqual([<<"prim_file:read_file/1">>, <<"test_cases:identity/1">>], Entries(test_bpftrace:stop(Calls))).

%% Without configuration, a consumer gets the events of the library telemetry, also if its module is loaded later, or
%% again: as many as the program's own handler, with the same durations. Returns are not traced.
telemetry(Config) ->
    start([{interval, 20}], Config),
    Consumer = attach([telemetry_event], Config),
    until_following(telemetry, true, Config),
    ?assertMatch(#{calls := none, files := false, processes := [call]}, following(Config)),
    Expected = lists:append([spans_after_load(30, Config) || _ <- [first, again]]),
    _ = call(Config, fun() -> spawn(telemetry, execute, [[the_end], #{}]) end),
    _ = test_bpftrace:await(Consumer, fun({_, #{name := Name}}) -> Name =:= <<"the_end">> end),
    Events = [{Name, Duration} || {_, #{name := Name, duration := Duration}} <- test_bpftrace:stop(Consumer)],
    {Starts, Others} = lists:partition(fun is_start/1, Events),
    ?assertEqual(Expected ++ [{<<"the_end">>, -1}], Others),
    ?assertEqual(lists:duplicate(length(Expected), {<<"shop.order.start">>, -1}), Starts),
    until_pattern({telemetry, execute, 3}, false, Config),
    until_untraced(Config).

%% Loads the module, and makes spans in a traced process once it is traced.
spans_after_load(Number, Config) ->
    ok = call(Config, fun test_telemetry:load/0),
    until_pattern({telemetry, execute, 3}, [], Config),
    Spans = call(Config, fun() ->
                                 {Pid, Ref} = spawn_monitor(fun() -> exit({made, test_telemetry:works(Number)}) end),
                                 receive {'DOWN', Ref, process, Pid, {made, Spans}} -> Spans end
                         end),
    [{iolist_to_binary(lists:join(".", [atom_to_list(Part) || Part <- Name])), Ns} || {Name, Ns, _} <- Spans].

is_start({Name, _}) ->
    binary:longest_common_suffix([Name, <<".start">>]) =:= length(".start").

%% A consumer of calls sees telemetry:execute/3 only if it is configured, and then also its end.
telemetry_beside_functions(Config) ->
    start(Config),
    ok = call(Config, fun test_telemetry:load/0),
    Calls = attach([function_call, function_exception], Config),
    until_following(calls, exception, Config),
    Events = attach([telemetry_event], Config),
    until_pattern({telemetry, execute, 3}, [], Config),
    _ = call(Config, fun() -> spawn(telemetry, execute, [[unconfigured], #{}]) end),
    _ = test_bpftrace:await(Events, fun({_, #{name := Name}}) -> Name =:= <<"unconfigured">> end),
    ok = call(Config, fun() -> dyntrace:follow(#{functions => [{telemetry, execute, '_'}]}) end),
    until_pattern({telemetry, execute, 3}, [{'_', [], [{exception_trace}]}], Config),
    _ = call(Config, fun() -> spawn(telemetry, execute, [[configured], #{}]) end),
    _ = test_bpftrace:await(Events, fun({_, #{name := Name}}) -> Name =:= <<"configured">> end),
    _ = test_bpftrace:await(Calls, fun({_, #{entry := Entry}}) -> Entry =:= <<"telemetry:execute/3">> end),
    ?assertEqual([<<"unconfigured">>, <<"configured">>], [Name || {_, #{name := Name}} <- test_bpftrace:stop(Events)]),
    ?assertEqual([<<"telemetry:execute/2">>, <<"telemetry:execute/3">>],
                 [Entry || {_, #{entry := Entry}} <- test_bpftrace:stop(Calls)]).

%% With `shape', telemetry has neither strings nor numbers.
telemetry_shapes(Config) ->
    start([{text, shape}], Config),
    ok = call(Config, fun test_telemetry:load/0),
    Consumer = attach([telemetry_event], Config),
    until_pattern({telemetry, execute, 3}, [], Config),
    _ = call(Config, fun() -> spawn(telemetry, execute, [[shop, stop], #{duration => 17},
                                                         #{route => <<"/secret">>, status => ok, query => "secret"}])
                     end),
    {_, Event} = test_bpftrace:await(Consumer, fun({_, #{name := Name}}) -> Name =:= <<"shop.stop">> end),
    ?assertMatch(#{duration := 17, measurements := <<"{map,1}">>,
                   metadata := <<"#{route=>{binary,7},status=>ok,query=>{list,6}}">>}, Event),
    _ = test_bpftrace:stop(Consumer).

%% An option in the configuration determines whether texts show the contents of terms. With `shape', they do not.
shapes(Config) ->
    start([{text, shape}], Config),
    Consumer = attach([message_send, process_exit], Config),
    until_flags(new, [procs, send], Config),
    Texts = fun() ->
                    Keeper = fun() -> receive {secret, From, _} -> From ! done, exit({secret, "4711"}) end end,
                    Pid = call(Config, fun() -> spawn(Keeper) end),
                    call(Config, fun() -> Pid ! {secret, self(), <<"4711">>}, receive done -> ok end end),
                    Text = call(Config, fun() -> test_cases:text(Pid) end),
                    Sent = fun({Probe, Fields}) -> Probe =:= message_send andalso maps:get(to, Fields) =:= Text end,
                    Exited = fun({Probe, Fields}) -> Probe =:= process_exit andalso maps:get(pid, Fields) =:= Text end,
                    {_, #{message := Message}} = test_bpftrace:await(Consumer, Sent),
                    {_, #{reason := Reason}} = test_bpftrace:await(Consumer, Exited),
                    {Message, Reason}
            end,
    ?assertEqual({<<"{secret,pid(),{binary,4}}">>, <<"{secret,{list,4}}">>}, Texts()),
    %% The setting also applies to tracing by hand, and after the module is reloaded.
    call(Config, fun() ->
                         ok = dyntrace:unfollow(),
                         _ = code:purge(dyntrace),
                         {module, dyntrace} = code:load_file(dyntrace),
                         _ = erlang:trace(new_processes, true, [procs, {tracer, dyntrace, []}]),
                         _ = erlang:trace(processes, true, [send, {tracer, dyntrace, []}])
                 end),
    ?assertEqual({<<"{secret,pid(),{binary,4}}">>, <<"{secret,{list,4}}">>}, Texts()),
    _ = test_bpftrace:stop(Consumer).

%% Each consumer is killed.
attached_again_and_again(Config) ->
    start([{interval, 10}], Config),
    Pid = call(Config, fun() -> spawn(fun test_autotracer:answer/0) end),
    [begin
         Consumer = attach([message_send], Config),
         until_flags(Pid, [send], Config),
         ok = test_bpftrace:kill(Consumer),
         until_flags(Pid, [], Config)
     end || _ <- lists:seq(1, 10)],
    answer_of(Pid, Config).

%% LTTng enables and disables the event in a session, under load. Messages sent while it is enabled are recorded or
%% counted as lost, and nothing else is recorded.
hundreds_of_times() ->
    [{timetrap, {minutes, 20}}].

hundreds_of_times(Config) ->
    test_require:tool(test_lttng:missing(), Config),
    start([{interval, 10}], Config),
    Daemon = test_lttng:start_daemon(),
    lttng_SUITE:until_known(Daemon, Config),
    Session = test_lttng:start(Daemon, [message_send],
                               #{channel => "--subbuf-size=4k --num-subbuf=2",
                                 event => "--filter='message == \"{storm,*\"'"}),
    Load = call(Config, fun() -> [spawn(Player) || Player <- [fun play/0, fun play/0, fun read_files/0]] end),
    Times = list_to_integer(os:getenv("DYNTRACE_ATTACHES", "200")),
    %% On the node, with a priority above that of the load.
    ok = test_node:call(?config(node, Config),
                      fun() ->
                              _ = process_flag(priority, high),
                              Flags = fun(Expected) ->
                                              test_wait:until("trace flags", Expected, fun() -> flags(new) end)
                                      end,
                              lists:foreach(fun(N) ->
                                                    Flags([send]),
                                                    storm(N),
                                                    ok = test_lttng:disable(Session, message_send),
                                                    Flags([]),
                                                    ok = test_lttng:enable(Session, message_send)
                                            end, lists:seq(1, Times))
                      end, ?STORM_MS),
    ?assertEqual([true], lists:usort(call(Config, fun() -> [is_process_alive(Pid) || Pid <- Load] end))),
    {0, _} = test_lttng:lttng(Daemon, "stop ~s", [test_lttng:name(Session)]),
    {Recorded, Lost} = test_lttng:balance([storm_text(N, Part) || N <- lists:seq(1, Times), Part <- ?STORM], Session),
    ct:pal("~b recorded, ~b lost", [Recorded, Lost]),
    test_lttng:destroy(Session),
    until_untraced(Config),
    ?assertEqual([[]], lists:usort([traced(Pid, Config) || Pid <- [new | Load]])),
    test_lttng:stop_daemon(Daemon).

%% On the node: a new process sends these messages to a process that has ended.
storm(N) ->
    Dead = lttng_SUITE:dead(),
    {Pid, Ref} = spawn_monitor(fun() -> [Dead ! {storm, N, Part} || Part <- ?STORM] end),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

storm_text(N, Part) ->
    iolist_to_binary(io_lib:format("{storm,~b,~b}", [N, Part])).

play() ->
    play(spawn(fun test_autotracer:answer/0)).

play(Other) ->
    [begin Other ! {self(), question}, receive answer -> ok end end || _ <- lists:seq(1, 100)],
    receive after 3 -> play(Other) end.

%% Uses a dirty scheduler in bursts, while flags are set and cleared hundreds of times.
read_files() ->
    [{ok, _} = file:read_file("/etc/hosts") || _ <- lists:seq(1, 100)],
    receive after 10 -> read_files() end.
