%% The application together with other tracers, and with tools that clear its flags or kill its worker; with many or
%% busy processes.
-module(follow_others_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/1, start/2, attach/2, detach/2, following/1, call/2, until_traced/1,
                          until_following/3, until_flags/3, until_pattern/3, until_system_tracer/2, until_logged/2,
                          traced/2, of_function/2, keep_log/1, logged/1, errors/1, badarg_of_follow/2]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [set_once, filters_set_once, names_set_once, unknown_functions_set_once, nothing_is_computed_anew,
     flags_cleared_by_another_tool, system_tracer_of_another_tool, system_tracer_cleared, half_set,
     no_word_about_other_tracers, busy_processes, idle_processes, many_processes, worker_killed_among_many,
     budget_beside_idle_processes, worker_killed_for_good, supervisor_killed, text_holds_on, bad_options]
        ++ [named_processes_that_do_not_answer || not test_trace:has_sessions()]
        ++ [Case || test_trace:has_sessions(), Case <- [collections_of_another_session, collections_of_one_process,
                                                      collections_of_processes_to_come, checked_late, handle_held,
                                                      session_destroyed]].

%% -- Nothing is set twice --------------------------------------------------------------------

set_once(Config) ->
    ?assertEqual(none, set_again([message_send, process_exit, gc_minor_end, port_open, seq_trace_send], [], Config)).

filters_set_once(Config) ->
    Filters = [{send, [{['_', '$1'], [{is_atom, '$1'}], []}]},
               {'receive', [{['_', '_', '$1'], [{is_atom, '$1'}], []}]},
               {functions, [{{lists, seq, 2}, [{[1, '_'], [], []}]},
                            {{test_no_such_module, f, 1}, [{'_', [], []}]}]}],
    Probes = [message_delivery, message_send, function_return],
    ?assertEqual(none, set_again(Probes, Filters, Config)).

names_set_once(Config) ->
    call(Config, fun() -> register(test_followed, spawn(fun test_autotracer:answer/0)) end),
    ?assertEqual(none, set_again([message_send], [{processes, [test_followed, test_nobody]}], Config)).

%% Patterns that the VM does not accept, modules that do not exist, functions that the VM does not trace.
unknown_functions_set_once(Config) ->
    ?assertEqual(none, set_again([function_call],
                                 [{functions, [{lists, '_', 2}, {test_no_such_module, '_', '_'}, {lists, no_such, 1}]}],
                                 Config)),
    Consumer = attach([function_call], Config),
    until_pattern({lists, seq, 2}, [], Config),
    ?assertEqual(false, of_function({lists, seq, 3}, Config)),
    _ = test_bpftrace:stop(Consumer).

%% Counts the calls that set or clear anything during many polls.
set_again(Probes, Env, Config) ->
    start([{interval, 10} | Env], Config),
    Consumer = attach(Probes, Config),
    until_traced(Config),
    Calls = counted([{erlang, trace, 3}, {erlang, trace_pattern, 3}, {trace, process, 4}, {trace, port, 4},
                     {trace, function, 4}, {trace, send, 3}, {trace, recv, 3},
                     {seq_trace, set_system_tracer, 1}], Config),
    _ = test_bpftrace:stop(Consumer),
    case [Mfa || {Mfa, N} <- Calls, N > 0] of
        [] -> none;
        Again -> Again
    end.

%% How often each function was called during 50 polls.
counted(Mfas, Config) ->
    call(Config, fun() ->
                         [{module, _} = code:ensure_loaded(M)
                          || {M, _, _} <- Mfas, M =/= trace orelse code:which(trace) =/= non_existing],
                         Poll = {dyntrace, claim, 0},
                         There = [Poll | [Mfa || Mfa = {M, F, A} <- Mfas, erlang:function_exported(M, F, A)]],
                         [1 = erlang:trace_pattern(Mfa, true, [call_count]) || Mfa <- There],
                         Count = fun(Mfa) -> {call_count, N} = erlang:trace_info(Mfa, call_count), N end,
                         Polls = fun(More) ->
                                         test_wait:until({polls, More}, fun(N) -> N >= More end,
                                                         fun() -> Count(Poll) end)
                                 end,
                         %% A consumer attaches one probe after another, so a poll may have seen only some of them.
                         Polls(2),
                         %% The call of restart has counted itself.
                         [erlang:trace_pattern(Mfa, restart, [call_count]) || Mfa <- There],
                         Before = [{Mfa, Count(Mfa)} || Mfa <- There],
                         Polls(50),
                         After = [{Mfa, Count(Mfa) - proplists:get_value(Mfa, Before)} || Mfa <- There, Mfa =/= Poll],
                         [erlang:trace_pattern(Mfa, false, [call_count]) || Mfa <- There],
                         After
                 end).

nothing_is_computed_anew(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    ?assertEqual([{{dyntrace, probes, 0}, 0}], counted([{dyntrace, probes, 0}], Config)),
    call(Config, fun() -> 1 = erlang:trace_pattern({dyntrace, info, 0}, true, [call_count]) end),
    ?assert(call(Config, fun dyntrace:available/0)),
    ?assertEqual({call_count, 0}, call(Config, fun() -> erlang:trace_info({dyntrace, info, 0}, call_count) end)),
    _ = test_bpftrace:stop(Consumer).

%% -- Other tools clear flags, or end -----------------------------------------------------------

%% Another tool clears all flags, as is usual after tracing by hand. The worker sets the required flags again.
flags_cleared_by_another_tool(Config) ->
    start(Config),
    Pid = call(Config, fun() -> spawn(fun test_autotracer:answer/0) end),
    Consumer = attach([message_send], Config),
    until_flags(Pid, [send], Config),
    call(Config, fun() -> erlang:trace(all, false, [all]) end),
    until_flags(Pid, [send], Config),
    until_flags(new, [send], Config),
    ?assertMatch(#{processes := [send]}, following(Config)),
    detach(Consumer, Config),
    ?assertEqual([], traced(Pid, Config)).

system_tracer_of_another_tool(Config) ->
    start(Config),
    Theirs = call(Config, fun() ->
                                  Pid = spawn(fun test_autotracer:answer/0),
                                  false = seq_trace:set_system_tracer(Pid),
                                  Pid
                          end),
    Consumer = attach([seq_trace_print, message_send], Config),
    until_traced(Config),
    ?assertEqual(Theirs, call(Config, fun seq_trace:get_system_tracer/0)),
    ?assertMatch(#{seq_trace := false, processes := [send]}, following(Config)),
    call(Config, fun() -> seq_trace:set_system_tracer(false) end),
    until_following(seq_trace, true, Config),
    ?assertEqual({dyntrace, dyntrace_autotracer}, call(Config, fun seq_trace:get_system_tracer/0)),
    detach(Consumer, Config),
    ?assertEqual(false, call(Config, fun seq_trace:get_system_tracer/0)).

system_tracer_cleared(Config) ->
    start(Config),
    Consumer = attach([seq_trace_print], Config),
    until_system_tracer({dyntrace, dyntrace_autotracer}, Config),
    call(Config, fun() -> seq_trace:set_system_tracer(false) end),
    until_system_tracer({dyntrace, dyntrace_autotracer}, Config),
    _ = test_bpftrace:stop(Consumer),
    until_system_tracer(false, Config).

%% One part of the tracing can't be set: the other parts are set, the failure is logged each time it begins, and
%% everything is cleared at the end.
half_set(Config) ->
    keep_log(Config),
    start([{functions, [{test_cases, identity, 1}]}, {interval, 10}], Config),
    call(Config, fun() -> without_match_specifications() end),
    Consumer = attach([message_send, function_call], Config),
    until_logged(1, Config),
    until_following(processes, [call, send], Config),
    ?assertEqual([call, send], traced(new, Config)),
    call(Config, fun() ->
                         _ = code:purge(dyntrace_trace_pattern),
                         {module, _} = code:load_file(dyntrace_trace_pattern)
                 end),
    until_following(calls, call, Config),
    call(Config, fun() -> without_match_specifications() end),
    detach(Consumer, Config),
    ?assertEqual([], traced(new, Config)),
    ?assertMatch([{error, _, _}, {error, _, _}], logged(Config)).

%% Loads the module without the function that makes the match specifications.
without_match_specifications() ->
    {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} =
        beam_lib:chunks(code:which(dyntrace_trace_pattern), [abstract_code]),
    Others = [case Form of
                  {attribute, Line, export, Exported} -> {attribute, Line, export, Exported -- [{for_calls, 2}]};
                  _ -> Form
              end || Form <- Forms],
    {ok, dyntrace_trace_pattern, Code} = compile:forms(Others, []),
    _ = code:purge(dyntrace_trace_pattern),
    {module, _} = code:load_binary(dyntrace_trace_pattern, "none", Code).

%% Before OTP 27, the VM logs an error when a call names a tracer other than the process's own.
no_word_about_other_tracers(Config) ->
    keep_log(Config),
    start([{budget, 100}, {interval, 10}], Config),
    Theirs = call(Config, fun() ->
                                  Tracer = spawn(fun test_autotracer:sink/0),
                                  [begin
                                       Pid = spawn(fun test_autotracer:answer/0),
                                       1 = erlang:trace(Pid, true, ['receive', {tracer, Tracer}]),
                                       Pid
                                   end || _ <- lists:seq(1, 100)]
                          end),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    Flood = flood(Config),
    until_following(pauses, fun(Pauses) -> Pauses >= 2 end, Config),
    call(Config, fun() -> exit(Flood, kill) end),
    until_following(paused, false, Config),
    %% It is the difference of two counts, between which processes may exit.
    test_trace:has_sessions() orelse until_following(untraced, fun(Untraced) -> Untraced >= 95 end, Config),
    detach(Consumer, Config),
    ?assertEqual([], errors(Config)),
    [?assertEqual(['receive'], call(Config, fun() -> element(2, erlang:trace_info(Pid, flags)) end)) || Pid <- Theirs].

%% A new process on the node floods another one.
flood(Config) ->
    call(Config, fun() ->
                         Sink = spawn(fun test_autotracer:sink/0),
                         spawn(fun() -> test_autotracer:flood(Sink) end)
                 end).

%% -- Many or busy processes --------------------------------------------------------------------

%% Setting flags, info/0 and clearing flags do not wait until a thousand busy processes have been scheduled. These
%% processes have low priority, so that they do not delay the test itself.
busy_processes(Config) ->
    start(Config),
    Busy = fun() -> [spawn_opt(fun busy/0, [{priority, low}]) || _ <- lists:seq(1, 1000)] end,
    ct:pal("us beside 1,000 busy processes: ~p", [on_and_off(Busy, Config)]).

busy() -> busy().

%% Before OTP 27, the worker first asks all processes for their tracer, all at the same time. Processes that have not
%% answered count as untraced, and are asked again. Here, no process answers until the original module is loaded.
named_processes_that_do_not_answer(Config) ->
    Names = [list_to_atom("test_named_" ++ integer_to_list(N)) || N <- lists:seq(1, 40)],
    call(Config, fun() ->
                         [true = register(Name, spawn(fun test_autotracer:answer/0)) || Name <- Names],
                         without_answers()
                 end),
    start([{processes, Names}, {interval, 10}], Config),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    until_following(untraced, 40, Config),
    ?assertMatch(#{processes := [send]}, following(Config)),
    Of = fun() -> lists:usort([traced(call(Config, fun() -> whereis(Name) end), Config) || Name <- Names]) end,
    ?assertEqual([[]], Of()),
    call(Config, fun() -> _ = code:purge(dyntrace_global), {module, _} = code:load_file(dyntrace_global) end),
    until_following(untraced, 0, Config),
    ?assertEqual([[send]], Of()),
    detach(Consumer, Config),
    ?assertEqual([[]], Of()).

without_answers() ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(dyntrace_global), [abstract_code]),
    Never = [{clause, 1, [{var, 1, '_'}], [], [{'receive', 1, [], {atom, 1, infinity}, [{atom, 1, ok}]}]}],
    Changed = [case Form of
                   {function, Line, exit_tracer_of, 1, _} -> {function, Line, exit_tracer_of, 1, Never};
                   _ -> Form
               end || Form <- Forms, element(3, Form) =/= dialyzer],
    {ok, Module, Code} = compile:forms(Changed, [nowarn_unused_function]),
    {module, Module} = code:load_binary(Module, "without answers", Code).

idle_processes(Config) ->
    start(Config),
    ok = call(Config, fun() -> [spawn(fun sleep/0) || _ <- lists:seq(1, 100000)], ok end),
    ct:pal("us beside 100,000 idle processes: ~p", [on_and_off(fun() -> [] end, Config)]).

sleep() -> erlang:hibernate(?MODULE, sleep, []).

%% The durations of follow/1 and unfollow/0, which return when the worker has set or cleared the flags. Beside starts
%% processes that exist meanwhile.
on_and_off(Beside, Config) ->
    Consumer = attach([message_send, process_exit], Config),
    until_traced(Config),
    Times = call(Config, fun() ->
                                 process_flag(priority, max),
                                 Pids = Beside(),
                                 Rounds = [off_and_on() || _ <- lists:seq(1, 10)],
                                 _ = [exit(Pid, kill) || Pid <- Pids],
                                 Rounds
                         end),
    detach(Consumer, Config),
    Times.

off_and_on() ->
    {Off, ok} = timer:tc(fun dyntrace:unfollow/0),
    {flags, []} = hd(test_autotracer:infos(new, flags)),
    off = maps:get(following, dyntrace:info()),
    {On, ok} = timer:tc(fun() -> dyntrace:follow(#{}) end),
    [send] = test_autotracer:flags(new) -- [procs],
    {On, Off}.

%% Flags of many processes are set in slices. Processes that are spawned meanwhile have them, too.
many_processes(Config) ->
    start(Config),
    Many = call(Config, fun many/0),
    Theirs = call(Config, fun() ->
                                  Tracer = spawn(fun test_autotracer:sink/0),
                                  Pids = [spawn(fun test_autotracer:answer/0) || _ <- lists:seq(1, 100)],
                                  [1 = erlang:trace(Pid, true, ['receive', {tracer, Tracer}]) || Pid <- Pids],
                                  Pids
                          end),
    Spawner = call(Config, fun() -> spawn(fun() -> spawn_more([]) end) end),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    More = call(Config, fun() -> Spawner ! {self(), stop}, receive {Spawner, Pids} -> Pids end end),
    ?assertEqual([[send]], all_flags(Many ++ More, Config)),
    ?assertEqual([['receive' | [send || test_trace:has_sessions()]]], all_flags(Theirs, Config)),
    %% It is the difference of two counts, between which processes may exit.
    test_trace:has_sessions() orelse until_following(untraced, fun(Untraced) -> Untraced >= 95 end, Config),
    Pids = [hd(Many), lists:last(Many), hd(More), lists:last(More)],
    [test_autotracer:answer_of(Pid, Config) || Pid <- Pids],
    Froms = [call(Config, fun() -> test_cases:text(Pid) end) || Pid <- Pids],
    Is = fun({message_send, #{from := From, message := Message}}) ->
                 From =:= lists:last(Froms) andalso Message =:= <<"answer">>
         end,
    test_bpftrace:await(Consumer, Is),
    Answers = [From || {message_send, #{from := From, message := <<"answer">>}} <- test_bpftrace:stop(Consumer),
                       lists:member(From, Froms)],
    ?assertEqual(lists:sort(Froms), lists:sort(Answers)),
    test_autotracer:until_untraced(Config),
    ?assertEqual([[]], all_flags(Many ++ More, Config)),
    ?assertEqual([['receive']], all_flags(Theirs, Config)).

many() ->
    [spawn(fun test_autotracer:answer/0) || _ <- lists:seq(1, 20000)].

spawn_more(Pids) ->
    receive {From, stop} -> From ! {self(), Pids}
    after 1 -> spawn_more([spawn(fun test_autotracer:answer/0) | Pids])
    end.

%% Without duplicates.
all_flags(Pids, Config) ->
    call(Config, fun() -> lists:usort([lists:sort(test_autotracer:flags(Pid)) || Pid <- Pids]) end).

%% The worker is killed while it sets the flags.
worker_killed_among_many(Config) ->
    start([{follow, false}], Config),
    Many = call(Config, fun many/0),
    Consumer = attach([message_send], Config),
    call(Config, fun() ->
                         process_flag(priority, max),
                         {_, Ref} = spawn_monitor(fun() -> dyntrace:follow(#{}) end),
                         ok = until_set(hd(Many)),
                         kill(dyntrace_autotracer),
                         receive {'DOWN', Ref, process, _, _} -> ok end
                 end),
    test_autotracer:until_worker_after(undefined, Config),
    ok = call(Config, fun dyntrace:unfollow/0),
    ?assertEqual([[]], all_flags(Many, Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{}) end),
    ?assertEqual([[send]], all_flags(Many, Config)),
    detach(Consumer, Config).

until_set(Pid) ->
    case process_info(Pid, trace) of
        {trace, 0} -> until_set(Pid);
        {trace, _} -> ok
    end.

%% A pause sends no signal to processes: hibernating processes stay asleep.
budget_beside_idle_processes(Config) ->
    start([{budget, 1000}, {interval, 20}], Config),
    Idle = call(Config, fun() -> [spawn(fun sleep/0) || _ <- lists:seq(1, 1000)] end),
    Consumer = attach([message_send], Config),
    until_traced(Config),
    Reductions = fun() -> call(Config, fun() -> [element(2, process_info(Pid, reductions)) || Pid <- Idle] end) end,
    _ = Reductions(),
    Before = Reductions(),
    Cost = [B - A || {A, B} <- lists:zip(Before, Reductions())],
    Flood = flood(Config),
    Last = Reductions(),
    until_following(pauses, fun(Pauses) -> Pauses >= 2 end, Config),
    call(Config, fun() -> exit(Flood, kill) end),
    %% The only reductions are those of process_info/2 itself.
    ?assertEqual([], [{B - A, Asked} || {A, B, Asked} <- lists:zip3(Last, Reductions(), Cost), B - A =/= Asked]),
    _ = test_bpftrace:stop(Consumer).

%% -- Killed processes------------------------------------------------------------------------------

%% A worker is killed repeatedly: the application ends, and all its flags are cleared.
worker_killed_for_good(Config) ->
    killed(fun() ->
                   [begin
                        test_wait:until("a worker, or no supervisor",
                                        fun({Worker, Sup}) -> is_pid(Worker) orelse Sup =:= undefined end,
                                        fun() -> {whereis(dyntrace_autotracer), whereis(dyntrace_sup)} end),
                        kill(dyntrace_autotracer)
                    end || _ <- lists:seq(1, 12)]
           end, Config).

supervisor_killed(Config) ->
    killed(fun() -> kill(dyntrace_sup) end, Config).

kill(Name) ->
    case whereis(Name) of
        undefined -> ok;
        Pid -> Ref = monitor(process, Pid), exit(Pid, kill), receive {'DOWN', Ref, process, Pid, _} -> ok end
    end.

killed(Kill, Config) ->
    start([{functions, [{test_cases, identity, 1}]}], Config),
    Pid = call(Config, fun() -> {module, _} = code:ensure_loaded(test_cases), spawn(fun test_autotracer:answer/0) end),
    Port = call(Config, fun() ->
                                Self = self(),
                                spawn(fun() -> Self ! open_port({spawn, "cat"}, []), receive stop -> ok end end),
                                receive P when is_port(P) -> P end
                        end),
    Consumer = attach([message_send, function_call, seq_trace_print, port_open], Config),
    until_traced(Config),
    until_flags(Pid, [call, send], Config),
    until_pattern({test_cases, identity, 1}, [], Config),
    call(Config, Kill),
    test_wait:until("the application has ended", fun(Running) -> not lists:keymember(dyntrace, 1, Running) end,
                    fun() -> call(Config, fun application:which_applications/0) end),
    test_autotracer:until_off(Config),
    until_flags(Pid, [], Config),
    test_wait:until("nothing is left", {[], [], [], false, false},
                    fun() -> {traced(new_processes, Config), traced(new_ports, Config), traced(Port, Config),
                              of_function({test_cases, identity, 1}, Config),
                              call(Config, fun seq_trace:get_system_tracer/0)}
                    end),
    %% The next start works like the first.
    start(Config),
    until_flags(Pid, [call, send], Config),
    detach(Consumer, Config).

%% The setting for texts stays in force while nothing is traced, and for the next worker.
text_holds_on(Config) ->
    start(Config),
    ok = call(Config, fun() -> dyntrace:follow(#{text => shape}) end),
    ok = call(Config, fun dyntrace:unfollow/0),
    call(Config, fun() ->
                         kill(dyntrace_autotracer),
                         test_wait:until("another worker", fun is_pid/1, fun() -> whereis(dyntrace_autotracer) end),
                         sys:get_state(dyntrace_autotracer)
                 end),
    ?assertEqual({shape, off},
                 {call(Config, fun() -> element(5, dyntrace_library:load_info(dyntrace_library:find())) end),
                  following(Config)}).

%% -- Two trace sessions, and the garbage collection ------------------------------------------------

%% Two sessions that trace garbage collections crash the node, so the other tool's session has precedence.
collections_of_another_session(Config) ->
    withheld(fun() ->
                     Tracer = spawn(fun test_autotracer:sink/0),
                     _ = erlang:trace(existing, true, [garbage_collection, {tracer, Tracer}]),
                     fun() -> erlang:trace(existing, false, [garbage_collection]) end
             end, Config).

collections_of_one_process(Config) ->
    withheld(fun() ->
                     Session = apply(trace, session_create, [test_theirs, spawn(fun test_autotracer:sink/0), []]),
                     1 = apply(trace, process, [Session, whereis(kernel_sup), true, [garbage_collection]]),
                     fun() -> apply(trace, session_destroy, [Session]) end
             end, Config).

%% Another session sets the flag after the application did. The application clears its own flag at its next poll. No
%% process may start until then.
collections_of_processes_to_come(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([gc_major_start], Config),
    until_flags(new, [garbage_collection], Config),
    Tracer = call(Config, fun() -> spawn(fun test_autotracer:sink/0) end),
    Following = call(Config, fun() ->
                                     Session = apply(trace, session_create, [test_theirs, Tracer, []]),
                                     0 = apply(trace, process, [Session, new_processes, true, [garbage_collection]]),
                                     ok = test_wait:until("a withheld flag",
                                                          fun(Withheld) -> map_size(Withheld) > 0 end,
                                                          fun() -> maps:get(withheld, dyntrace_autotracer:info()) end),
                                     true = persistent_term:put(test_theirs, Session) =:= ok,
                                     dyntrace_autotracer:info()
                             end),
    ?assertMatch(#{processes := [], withheld := #{garbage_collection := _}}, Following),
    collect(Config),
    call(Config, fun() -> apply(trace, session_destroy, [persistent_term:get(test_theirs)]) end),
    until_following(processes, [garbage_collection], Config),
    _ = test_bpftrace:stop(Consumer).

%% The worker gets the result of a slow check between two polls.
checked_late(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([gc_major_start], Config),
    until_flags(new, [garbage_collection], Config),
    _ = call(Config, fun() -> sys:replace_state(dyntrace_autotracer, fun checks_slowly/1) end),
    until_flags(new, [], Config),
    call(Config, fun() -> test_checker ! end_check end),
    until_flags(new, [garbage_collection], Config),
    _ = test_bpftrace:stop(Consumer).

%% In the worker: its state, in which no other session had the flag, with a check that has not ended.
checks_slowly(State) ->
    GcFlag = 7,
    free = element(GcFlag, State),
    {Pid, Ref} = spawn_monitor(fun() -> receive end_check -> exit({taken, false}) end end),
    true = register(test_checker, Pid),
    setelement(GcFlag, State, {checking, Pid, Ref}).

withheld(Theirs, Config) ->
    keep_log(Config),
    start([{interval, 10}], Config),
    call(Config, fun() -> persistent_term:put(test_leave, Theirs()) end),
    Consumer = attach([gc_major_start, message_send], Config),
    until_following(withheld, fun(Withheld) -> is_map_key(garbage_collection, Withheld) end, Config),
    ?assertEqual([send], maps:get(processes, following(Config))),
    ?assertMatch([{warning, "dyntrace: ~s is not traced" ++ _, [garbage_collection, _]}], logged(Config)),
    collect(Config),
    call(Config, fun() -> (persistent_term:get(test_leave))() end),
    until_following(processes, fun(Flags) -> lists:member(garbage_collection, Flags) end, Config),
    ?assertEqual(#{}, maps:get(withheld, following(Config))),
    Text = call(Config, fun() ->
                                {Pid, Ref} = spawn_monitor(fun() -> erlang:garbage_collect() end),
                                receive {'DOWN', Ref, process, Pid, normal} -> test_cases:text(Pid) end
                        end),
    test_bpftrace:await(Consumer,
                        fun({Probe, Fields}) -> Probe =:= gc_major_start andalso maps:get(pid, Fields) =:= Text end),
    _ = test_bpftrace:stop(Consumer).

%% Collects the garbage of every process.
collect(Config) ->
    call(Config, fun() -> [erlang:garbage_collect(Pid) || Pid <- processes()], ok end).

%% Another process holds the session's handle: the session does not end with its worker.
handle_held(Config) ->
    start(Config),
    Consumer = attach([gc_major_start], Config),
    until_flags(new, [garbage_collection], Config),
    call(Config, fun() ->
                         persistent_term:put(test_held, sys:get_state(dyntrace_autotracer)),
                         kill(dyntrace_autotracer)
                 end),
    test_wait:until("one session", 1, fun() -> call(Config, fun() -> length(ours()) end) end),
    until_flags(new, [garbage_collection], Config),
    collect(Config),
    ok = call(Config, fun() -> application:stop(dyntrace) end),
    ?assertEqual([], call(Config, fun ours/0)),
    _ = test_bpftrace:stop(Consumer).

ours() ->
    [Session || Session <- apply(trace, session_info, [all]), element(1, Session) =:= dyntrace_autotracer].

session_destroyed(Config) ->
    start(Config),
    Consumer = attach([message_send], Config),
    until_flags(new, [send], Config),
    [First] = call(Config, fun ours/0),
    true = call(Config, fun() -> apply(trace, session_destroy, [First]) end),
    until_flags(new, [send], Config),
    [Second] = call(Config, fun ours/0),
    ?assertNotEqual(First, Second),
    %% The session is destroyed just before the end, before the next poll.
    ok = call(Config, fun() -> true = apply(trace, session_destroy, [Second]), dyntrace:unfollow() end),
    ok = call(Config, fun() -> dyntrace:follow(#{}) end),
    ?assertEqual([send], traced(new, Config)),
    Worker = call(Config, fun() -> whereis(dyntrace_autotracer) end),
    [Third] = call(Config, fun ours/0),
    ok = call(Config, fun() -> dyntrace:follow(#{interval => 3600000}) end),
    true = call(Config, fun() -> apply(trace, session_destroy, [Third]) end),
    ok = call(Config, fun dyntrace:unfollow/0),
    ?assertEqual(Worker, call(Config, fun() -> whereis(dyntrace_autotracer) end)),
    _ = test_bpftrace:stop(Consumer),
    ok = call(Config, fun() -> application:stop(dyntrace) end),
    ?assertEqual([], call(Config, fun ours/0)).

%% -- Options ---------------------------------------------------------------------------------------

%% follow/1 raises badarg and names the option; the worker keeps running.
bad_options(Config) ->
    start(Config),
    Worker = call(Config, fun() -> whereis(dyntrace_autotracer) end),
    [begin
         Says = badarg_of_follow(Options, Config),
         ?assertMatch({_, _}, binary:match(Says, <<"*** argument 1: ", Named/binary, ": ">>), {Options, Says})
     end || {Options, Named} <- [{#{interval => 1 bsl 64}, <<"interval">>}, {#{interval => 1.0}, <<"interval">>},
                                 {#{budget => 1 bsl 64}, <<"budget">>},
                                 {#{processes => [init | rex]}, <<"processes">>},
                                 {#{functions => [{lists, seq, 2} | oops]}, <<"functions">>},
                                 {#{functions => [{lists, seq, 256}]}, <<"functions">>},
                                 {#{probes => [message_send | oops]}, <<"probes">>},
                                 {#{processes => lists:duplicate(1001, init)}, <<"processes">>},
                                 {#{"interval" => 20}, <<"\"interval\"">>},
                                 {#{{1, 2} => 20}, <<"{1,2}">>}, {#{text => none}, <<"text">>}]],
    ok = call(Config, fun() -> dyntrace:follow(#{interval => 3600000, budget => (1 bsl 62) - 1}) end),
    ok = call(Config, fun() -> dyntrace:follow(#{interval => 10}) end),
    ?assertEqual(Worker, call(Config, fun() -> whereis(dyntrace_autotracer) end)).
