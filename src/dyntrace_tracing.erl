%% @private Switching trace flags on and off, so that nobody else's tracing notices.
%%
%% From OTP 27 on that is a trace session. Before, it is a tracer with a state of its own: the VM takes
%% `{dyntrace, dyntrace_follower}' for another tracer than `{dyntrace, []}', and flags that are
%% given with it are set, and cleared, only where no other tracer is.
-module(dyntrace_tracing).

-export([open/0, close/1, set/4, versions/2, untraced/1]).

-export_type([tracing/0, versions/0]).

%% Sessions are there from OTP 27 on.
-ignore_xref([{trace, session_create, 3}, {trace, session_destroy, 1}, {trace, process, 4}, {trace, port, 4},
              {trace, function, 4}, {trace, info, 3}]).

%% The specs of erlang:trace_info/2 and seq_trace:get_system_tracer/0 know no tracer modules before OTP 27.
-dialyzer({no_match, [is_taken/1, clear_system_tracer/0]}).

-type tracing() :: {session, term()} | global.

-type versions() :: [MD5 :: binary() | reference() | none].
%% Of the code of some functions; a reference, each time another one: they are not traced; `none': there
%% are none.

-define(STATE, dyntrace_follower).
-define(TRACER, {tracer, dyntrace, ?STATE}).
-define(PROCESS_FLAGS, [send, 'receive', procs, call, running, exiting, garbage_collection]).
-define(PORT_FLAGS, [send, 'receive', ports, running_ports, exiting]).

%% What a worker that crashed has left is cleared.
-spec open() -> tracing().
open() ->
    ok = clear_system_tracer(),
    _ = code:ensure_loaded(trace),
    case erlang:function_exported(trace, session_create, 3) of
        true ->
            {session, apply(trace, session_create, [dyntrace, {dyntrace, ?STATE}, []])};
        false ->
            ok = clear_global(),
            global
    end.

-spec close(tracing()) -> ok.
close({session, Session}) ->
    _ = apply(trace, session_destroy, [Session]),
    clear_system_tracer();
close(global) ->
    ok = clear_global(),
    clear_system_tracer().

clear_global() ->
    ok = process(global, all, false, ?PROCESS_FLAGS),
    ok = port(global, all, false, ?PORT_FLAGS),
    clear_patterns().

%% From what is traced now to what is needed.
-spec set(tracing(), dyntrace_needs:needs(), dyntrace_needs:needs(), dyntrace_config:config()) -> ok.
set(Tracing, Old, New, Config = #{processes := Processes, ports := Ports}) ->
    set_calls(Tracing, Old, New, Config),
    switch(Tracing, process, Processes, maps:get(processes, Old), maps:get(processes, New)),
    switch(Tracing, port, Ports, maps:get(ports, Old), maps:get(ports, New)),
    %% The worker does not tell of its own looking.
    process(Tracing, self(), false, maps:get(processes, New)),
    set_seq_trace(maps:get(seq_trace, Old), maps:get(seq_trace, New)).

%% Who has one of the names now, and who had it and is not to be traced any more.
switch(Tracing, process, Names, Old, New) when is_list(Names) ->
    Were = dyntrace_kept:get(named, []),
    Are = [Pid || New =/= [], Name <- Names, Pid <- [whereis(Name)], is_pid(Pid)],
    [process(Tracing, Pid, false, ?PROCESS_FLAGS) || Pid <- Were -- Are],
    [switch(Tracing, process, Pid, Old, New) || Pid <- Are],
    dyntrace_kept:put(named, Are);
switch(Tracing, Kind, Whom, Old, New) ->
    flags(Tracing, Kind, Whom, false, Old -- New),
    flags(Tracing, Kind, Whom, true, New).

flags(_, _, _, _, []) -> ok;
flags(_, _, none, _, _) -> ok;
flags(Tracing, process, Whom, On, Flags) -> process(Tracing, Whom, On, Flags);
flags(Tracing, port, Whom, On, Flags) -> port(Tracing, Whom, On, Flags).

process({session, Session}, Whom, On, Flags) ->
    quietly(fun() -> apply(trace, process, [Session, Whom, On, Flags]) end);
process(global, Whom, On, Flags) when is_atom(Whom) ->
    ok = those_to_come(Whom, new_processes, On, Flags),
    those_there(Whom, processes(), On, Flags);
process(global, Pid, On, Flags) ->
    trace(Pid, On, Flags).

port({session, Session}, Whom, On, Flags) ->
    quietly(fun() -> apply(trace, port, [Session, Whom, On, Flags]) end);
port(global, Whom, On, Flags) ->
    ok = those_to_come(Whom, new_ports, On, Flags),
    those_there(Whom, erlang:ports(), On, Flags).

%% They have one tracer as well, but nothing is in the way of who sets or clears another's flags.
those_to_come(existing, _, _, _) -> ok;
those_to_come(_, New, On, Flags) -> is_taken(New) orelse trace(New, On, Flags), ok.

%% One by one: given `all' or `existing', VMs before OTP 27 do not wait for the processes on dirty schedulers,
%% and crash when a tracer is taken away from one of those at the wrong moment.
those_there(new, _, _, _) -> ok;
those_there(_, Tracees, On, Flags) -> lists:foreach(fun(Tracee) -> trace(Tracee, On, Flags) end, Tracees).

trace(Whom, On, Flags) ->
    quietly(fun() -> erlang:trace(Whom, On, [?TRACER | Flags]) end).

is_taken(New) ->
    case erlang:trace_info(New, tracer) of
        {tracer, []} -> false;
        {tracer, {dyntrace, ?STATE}} -> false;
        _ -> true
    end.

%% badarg: a process that is gone, or has another tracer, which keeps it.
quietly(Trace) ->
    try _ = Trace(), ok
    catch error:badarg -> ok
    end.

%% How many processes have another tracer, which leaves them untraced here.
-spec untraced(tracing()) -> non_neg_integer().
untraced({session, _}) ->
    0;
untraced(global) ->
    length([Pid || Pid <- processes(), {tracer, Tracer} <- [erlang:trace_info(Pid, tracer)],
                   Tracer =/= [], Tracer =/= {dyntrace, ?STATE}]).

%% -- Calls ---------------------------------------------------------------------------

set_calls(_, #{calls := Same, versions := Same2}, #{calls := Same, versions := Same2}, _) ->
    ok;
set_calls({session, Session}, _, #{calls := Calls}, #{functions := Functions}) ->
    [quietly(fun() -> apply(trace, function, [Session, Mfa, match(Calls), [local]]) end) || Mfa <- Functions],
    ok;
set_calls(global, _, #{calls := none}, _) ->
    clear_patterns();
set_calls(global, _, #{calls := Calls}, #{functions := Functions}) ->
    Ours = patterns(),
    Free = [Mfa || Pattern <- Functions, Mfa <- functions(Pattern), lists:member(Mfa, Ours) orelse is_untraced(Mfa)],
    _ = [erlang:trace_pattern(Mfa, match(Calls), [local]) || Mfa <- Free],
    dyntrace_kept:put(patterns, {match(Calls), Free}).

clear_patterns() ->
    _ = [erlang:trace_pattern(Mfa, false, [local]) || Mfa <- patterns()],
    dyntrace_kept:put(patterns, {false, []}).

%% Those that are still as they were set.
patterns() ->
    {Match, Mfas} = dyntrace_kept:get(patterns, {false, []}),
    [Mfa || Mfa <- Mfas, erlang:trace_info(Mfa, match_spec) =:= {match_spec, told(Match)}].

%% As the VM tells of it.
told(true) -> [];
told(Match) -> Match.

match(none) -> false;
match(call) -> true;
match(return) -> [{'_', [], [{return_trace}]}];
match(exception) -> [{'_', [], [{exception_trace}]}].

%% A pattern somebody else has set stays theirs.
is_untraced(Mfa) ->
    erlang:trace_info(Mfa, traced) =:= {traced, false}.

functions({Module, Function, Arity}) ->
    [{Module, F, A} || erlang:module_loaded(Module), {F, A} <- erlang:get_module_info(Module, functions),
                       Function =:= '_' orelse F =:= Function, Arity =:= '_' orelse A =:= Arity].

%% New code of a module has no patterns, so each version is another need; the same code that is loaded anew has none
%% either.
-spec versions(tracing(), [mfa() | {module(), atom(), '_'}]) -> versions().
versions(Tracing, Functions) ->
    [case functions(Pattern) of
         [] -> none;
         [First = {Module, _, _} | _] ->
             case is_traced(Tracing, First) of
                 true -> erlang:get_module_info(Module, md5);
                 false -> make_ref()
             end
     end || Pattern <- Functions].

is_traced({session, Session}, Mfa) -> apply(trace, info, [Session, Mfa, traced]) =/= {traced, false};
is_traced(global, Mfa) -> not is_untraced(Mfa).

%% -- Sequential tracing ----------------------------------------------------------------

set_seq_trace(Same, Same) ->
    ok;
set_seq_trace(false, true) ->
    case seq_trace:get_system_tracer() of
        false -> _ = seq_trace:set_system_tracer({dyntrace, ?STATE}), ok;
        _ -> ok
    end;
set_seq_trace(true, false) ->
    clear_system_tracer().

clear_system_tracer() ->
    case seq_trace:get_system_tracer() of
        {dyntrace, ?STATE} -> _ = seq_trace:set_system_tracer(false), ok;
        _ -> ok
    end.
