%% Runs in a virtual machine, where SystemTap works: each script of priv/systemtap/scripts beside what it
%% is to see, and its lines compared with what Erlang knows of that.
%%
%% main([Modules, Results]): the folder of the compiled scripts, and the file for the results,
%% one {Script, ok | {failed, Why, Lines}} each.
-module(systemtap_guest).

-include_lib("stdlib/include/assert.hrl").

-export([main/1, scripts/0]).
-export([nap/1, nap_long/1, fails/0, asleep/0]).

-define(TRACER, {tracer, dyntrace, []}).
-define(DEADLINE_MS, 120000).

main([Modules, Results]) ->
    true = dyntrace:available(),
    Outcomes = [{Script, run(Modules, Script, Probes)} || {Script, Probes} <- scripts()],
    ok = file:write_file(Results, [io_lib:format("~p.~n", [Outcome]) || Outcome <- Outcomes]),
    halt().

%% Each script, with its probes.
scripts() ->
    [{spawn_exit, [process_exit, process_spawn]},
     {scheduling, [process_scheduled]},
     {messages, [message__send]},
     {calls, [function_call, function_exception, function_return]},
     {gc, [gc_major_end, gc_major_start, gc_minor_end, gc_minor_start]},
     {user_probes, [user_mark, user_span_stop, user_trace__i4s4, user_trace__n42, user_trace__s1]},
     {process_trace, [message__queued, message__receive, message__send, process__exit, process__exit_signal,
                      process__hibernate, process__scheduled, process__spawn, process__unscheduled]},
     {messages_as_stapusr, [message__send]}].

run(Modules, Script, Probes) ->
    {Command, Args} = command(Modules, Script),
    Port = open_port({spawn_executable, os:find_executable(Command)},
                     [{args, Args}, {line, 1000}, binary, exit_status, stderr_to_stdout]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    try
        Header = listening(Port, []),
        ok = until_listeners(Probes),
        Facts = happens(Script),
        Lines = Header ++ stop(Port, Pid),
        try check(Script, Lines, Facts)
        catch error:Why -> {failed, Why, Lines}
        end
    catch
        error:Broken -> {failed, Broken, stop(Port, Pid)}
    end.

%% The lines before "listening", which build_guest makes each script print when its handlers run.
listening(Port, Lines) ->
    receive
        {Port, {data, {_, <<"listening">>}}} -> lists:reverse(Lines);
        {Port, {data, {_, Line}}} -> listening(Port, [Line | Lines]);
        Ended = {Port, {exit_status, Status}} ->
            self() ! Ended,
            error({staprun_ended, Status, lists:reverse(Lines)})
    after ?DEADLINE_MS -> error({not_listening, lists:reverse(Lines)})
    end.

%% As root or, as docs/systemtap.md has it, as a member of stapusr: a module that root has installed.
command(_, messages_as_stapusr) ->
    {"setpriv", ["--reuid=nobody", "--regid=nogroup", "--groups=stapusr", "staprun", "-x", os:getpid(), "messages"]};
command(Modules, Script) ->
    {"staprun", ["-x", os:getpid(), filename:join(Modules, atom_to_list(Script) ++ ".ko")]}.

stop(Port, Pid) ->
    _ = os:cmd("kill -INT " ++ integer_to_list(Pid)),
    lines(Port).

lines(Port) ->
    receive
        {Port, {data, {_, Line}}} -> [Line | lines(Port)];
        {Port, {exit_status, _}} -> []
    after ?DEADLINE_MS -> [<<"staprun does not end">>]
    end.

until_listeners(Probes) ->
    until_listeners(Probes, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

until_listeners(Probes, Deadline) ->
    Listeners = lists:sort([Name || #{name := Name} <- dyntrace:listeners()]),
    case {Listeners, erlang:monotonic_time(millisecond) < Deadline} of
        {Probes, _} -> ok;
        {_, true} -> receive after 10 -> until_listeners(Probes, Deadline) end;
        {Others, false} -> error({listeners, #{expected => Probes, seen => Others}})
    end.

%% -- What happens, and what Erlang knows of it ------------------------------------------------

happens(spawn_exit) ->
    Reasons = [normal, kill, {shutdown, "why"}],
    traced([procs], fun() ->
                            [begin
                                 {Pid, Ref} = spawn_monitor(fun() -> receive after 20 -> exit(Reason) end end),
                                 1 = erlang:trace(Pid, true, [procs, ?TRACER]),
                                 receive {'DOWN', Ref, process, Pid, Reason} -> {Pid, Reason} end
                             end || Reason <- Reasons]
                    end);
happens(scheduling) ->
    traced([running], fun() -> [?MODULE:nap(5) || _ <- lists:seq(1, 10)] end);
happens(messages_as_stapusr) ->
    happens(messages);
happens(messages) ->
    To = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
    Messages = [{hello, [N]} || N <- lists:seq(1, 20)],
    {From, _} = traced([send], fun() -> [To ! Message || Message <- Messages] end),
    To ! stop,
    {From, To, length(Messages), lists:sum([erts_debug:flat_size(Message) || Message <- Messages])};
happens(calls) ->
    [1 = erlang:trace_pattern({?MODULE, F, A}, [{'_', [], [{exception_trace}]}], [local])
     || {F, A} <- [{nap_long, 1}, {fails, 0}]],
    traced([call], fun() ->
                           [?MODULE:nap_long(20) || _ <- lists:seq(1, 5)],
                           [try ?MODULE:fails() catch error:on_purpose -> ok end || _ <- lists:seq(1, 2)]
                   end);
happens(gc) ->
    Pid = collecting(?TRACER),
    Other = collecting({tracer, self()}),
    Delivered = erlang:trace_delivered(Other),
    receive {trace_delivered, Other, Delivered} -> ok end,
    Told = told(Other),
    {Pid, length([1 || gc_minor_end <- Told]), length([1 || gc_major_end <- Told])};
happens(user_probes) ->
    true = dyntrace:user_trace_s1("checkpoint"),
    _ = dyntrace:put_tag("request 12"),
    true = dyntrace:p(7, -8, "one", "two"),
    true = dyntrace:pn(42, 1, 2),
    _ = dyntrace:put_tag(undefined),
    true = dyntrace:mark(cache_miss, 17, "user 4711"),
    [slept = dyntrace:span(checkout, fun() -> receive after 20 -> slept end end) || _ <- lists:seq(1, 5)],
    self();
happens(process_trace) ->
    Self = self(),
    Sleeper = spawn(?MODULE, asleep, []),
    {Pid, Child} = traced([send, 'receive', procs, running],
                          fun() ->
                                  process_flag(trap_exit, true),
                                  Child = spawn_link(fun() -> exit(over) end),
                                  receive {'EXIT', Child, over} -> ok end,
                                  self() ! {note, 1},
                                  receive {note, 1} -> ok end,
                                  Self ! {self(), sent},
                                  receive after 5 -> Child end
                          end),
    receive {Pid, sent} -> ok end,
    1 = erlang:trace(Sleeper, true, [running, procs, ?TRACER]),
    Ref = monitor(process, Sleeper),
    Sleeper ! sleep,
    receive {'DOWN', Ref, process, Sleeper, normal} -> ok end,
    {Pid, Child, Sleeper, Self}.

nap(Ms) -> receive after Ms -> ok end.

nap_long(Ms) -> receive after Ms -> ok end.

fails() -> error(on_purpose).

asleep() ->
    receive sleep -> ok end,
    _ = erlang:send_after(20, self(), wake),
    erlang:hibernate(erlang, self, []).

%% A process that collects a known amount of garbage, with any tracer.
collecting(Tracer) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> collect() end end),
    1 = erlang:trace(Pid, true, [garbage_collection, Tracer]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> Pid end.

collect() ->
    _ = [lists:seq(1, 1000) || _ <- lists:seq(1, 20)],
    true = erlang:garbage_collect(self(), [{type, minor}]),
    true = erlang:garbage_collect(self(), [{type, major}]),
    ok.

told(Pid) ->
    receive {trace, Pid, Tag, _} -> [Tag | told(Pid)]
    after 0 -> []
    end.

%% Runs Fun in a process that is traced until it returns.
traced(Flags, Fun) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                       receive go -> ok end,
                                       Result = Fun(),
                                       1 = erlang:trace(self(), false, [all]),
                                       Self ! {self(), result, Result}
                               end),
    1 = erlang:trace(Pid, true, [?TRACER | Flags]),
    Pid ! go,
    receive
        {Pid, result, Result} ->
            receive {'DOWN', Ref, process, Pid, normal} -> {Pid, Result} end;
        {'DOWN', Ref, process, Pid, Why} ->
            error({traced_process_failed, Why})
    end.

%% -- What the scripts printed -----------------------------------------------------------------

check(spawn_exit, Lines, {Parent, Children}) ->
    [begin
         ?assert(lists:member(iolist_to_binary(["spawn ", text(Pid), " by ", text(Parent), " in erlang:apply/2"]),
                              Lines)),
         [Us] = matches(Lines, ["^exit  ", quoted(Pid), " after (\\d+) us: ", quoted(Reason), "$"]),
         ?assert(binary_to_integer(Us) >= 20000)
     end || {Pid, Reason} <- Children],
    ok;
check(scheduling, [Header | Lines], {Pid, _}) ->
    <<" ran     us  process, last stopped in">> = Header,
    [Ran, Us] = matches(Lines, ["^ *(\\d+) +(\\d+)  ", quoted(Pid), " systemtap_guest:nap/1$"]),
    ?assert(binary_to_integer(Ran) >= 10),
    ?assert(binary_to_integer(Us) > 0),
    ok;
check(messages_as_stapusr, Lines, Facts) ->
    check(messages, Lines, Facts);
check(messages, [Header | Lines], {From, To, Count, Words}) ->
    <<"messages  words  from -> to">> = Header,
    ?assertEqual([iolist_to_binary(io_lib:format("~8b ~6b  ~s -> ~s", [Count, Words, text(From), text(To)]))], Lines),
    ok;
check(calls, Lines, _) ->
    ?assert(lists:member(<<"systemtap_guest:nap_long/1: 5 calls, 0 exceptions; us to return:">>, Lines)),
    ?assert(lists:member(<<"systemtap_guest:fails/0: 2 calls, 2 exceptions; us to return:">>, Lines)),
    at_least(16384, 5, Lines);
check(gc, [Header | Lines], {Pid, Minor, Major}) ->
    <<"minor major     us    words  process">> = Header,
    [Minors, Majors, Us, Words] = matches(Lines, ["^ *(\\d+) +(\\d+) +(\\d+) +(\\d+)  ", quoted(Pid), "$"]),
    ?assertEqual({Minor, Major}, {binary_to_integer(Minors), binary_to_integer(Majors)}),
    ?assert(binary_to_integer(Us) > 0),
    ?assert(binary_to_integer(Words) > 20000),
    ok;
check(user_probes, Lines, Pid) ->
    ?assertEqual([<<"message: checkpoint">>,
                  iolist_to_binary([text(Pid), " [request 12] 7 -8 0 0 'one' 'two' '' ''"]),
                  iolist_to_binary([text(Pid), " [request 12] label 42: 1 2 0 0"]),
                  iolist_to_binary([text(Pid), " mark cache_miss 17: user 4711"]),
                  <<"checkout, ok: us">>], lists:sublist(Lines, 5)),
    at_least(16384, 5, Lines);
check(process_trace, [<<"%">> | Lines], {Pid, Child, Sleeper, Self}) ->
    Events = [tl(tl(binary:split(Line, <<"|">>, [global]))) || Line <- Lines],
    [?assert(lists:member(Expected, Events), Expected)
     || Expected <- [[<<"spawn">>, text(Child), <<"erlang:apply/2">>],
                     [<<"exit_signal">>, text(Child), text(Pid), <<"over">>],
                     [<<"queued">>, text(Pid), <<"4">>, <<"0">>, <<"0">>, <<"0">>, <<"0">>],
                     [<<"receive">>, text(Pid), <<"4">>, <<"0">>, <<"0">>, <<"0">>, <<"0">>],
                     [<<"send">>, text(Pid), text(Pid), integer_to_binary(erts_debug:flat_size({note, 1})), <<"0">>,
                      <<"0">>, <<"0">>],
                     [<<"send">>, text(Pid), text(Self), integer_to_binary(erts_debug:flat_size({Pid, sent})), <<"0">>,
                      <<"0">>, <<"0">>],
                     [<<"hibernate">>, text(Sleeper), <<"erlang:hibernate/3">>],
                     [<<"exit">>, text(Sleeper), <<"normal">>]]],
    [?assert(lists:any(fun([What, Who | _]) -> What =:= Kind andalso Who =:= text(Pid) end, Events), Kind)
     || Kind <- [<<"schedule">>, <<"unschedule">>]],
    ok.

%% The histogram's counts of that value and more: " 16384 |@@@@@    5".
at_least(Value, Count, Lines) ->
    Counts = [{binary_to_integer(V), binary_to_integer(C)}
              || Line <- Lines, {match,
                                 [V, C]} <- [re:run(Line, "^ *(\\d+) \\|[@ ]* (\\d+)$",
                                                    [{capture, all_but_first, binary}])]],
    ?assertEqual(Count, lists:sum([C || {V, C} <- Counts, V >= Value])),
    ok.

matches(Lines, Pattern) ->
    [Groups] = [Groups || Line <- Lines,
                {match, Groups} <- [re:run(Line, Pattern, [{capture, all_but_first, binary}])]],
    Groups.

text(Pid) ->
    list_to_binary(pid_to_list(Pid)).

%% The text as a regular expression.
quoted(Pid) when is_pid(Pid) -> text(Pid);
quoted(Reason) -> re:replace(io_lib:format("~p", [Reason]), "[{}\\[\\]]", "\\\\&", [global, {return, binary}]).
