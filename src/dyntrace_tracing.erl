%% @private Switching trace flags on and off, so that nobody else's tracing notices.
%%
%% From OTP 27 on that is a trace session. Before, it is a tracer with a state of its own: the VM takes
%% `{dyntrace, dyntrace_follower}' for another tracer than `{dyntrace, []}', and flags that are
%% given with it are set, and cleared, only where no other tracer is.
-module(dyntrace_tracing).

-export([open/0, close/1, set/4, untraced/1]).

-export_type([tracing/0]).

%% Sessions are there from OTP 27 on.
-ignore_xref([{trace, session_create, 3}, {trace, session_destroy, 1}, {trace, process, 4}, {trace, port, 4},
              {trace, function, 4}]).

%% The specs of erlang:trace_info/2 and seq_trace:get_system_tracer/0 know no tracer modules before OTP 27.
-dialyzer({no_match, [is_taken/1, clear_system_tracer/0]}).

-type tracing() :: {session, term()} | global.

-define(STATE, dyntrace_follower).
-define(TRACER, {tracer, dyntrace, ?STATE}).
-define(ALL_FLAGS, [send, 'receive', procs, ports, call, running, running_ports, exiting, garbage_collection]).

%% What a worker that crashed has left is cleared.
-spec open() -> tracing().
open() ->
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
    _ = erlang:trace(all, false, [?TRACER | ?ALL_FLAGS]),
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

switch(Tracing, Kind, Whom, Old, New) ->
    flags(Tracing, Kind, Whom, false, Old -- New),
    flags(Tracing, Kind, Whom, true, New).

flags(_, _, _, _, []) -> ok;
flags(_, _, none, _, _) -> ok;
flags(Tracing, process, Names, On, Flags) when is_list(Names) ->
    [process(Tracing, Pid, On, Flags) || Name <- Names, Pid <- [whereis(Name)], is_pid(Pid)],
    ok;
flags(Tracing, process, Whom, On, Flags) -> process(Tracing, Whom, On, Flags);
flags(Tracing, port, Whom, On, Flags) -> port(Tracing, Whom, On, Flags).

process({session, Session}, Whom, On, Flags) ->
    quietly(fun() -> apply(trace, process, [Session, Whom, On, Flags]) end);
process(global, Whom, On, Flags) ->
    trace(Whom, On, Flags, #{all => [processes], new => [new_processes], existing => [existing_processes]}, new_processes).

port({session, Session}, Whom, On, Flags) ->
    quietly(fun() -> apply(trace, port, [Session, Whom, On, Flags]) end);
port(global, Whom, On, Flags) ->
    trace(Whom, On, Flags, #{all => [ports], new => [new_ports], existing => [existing_ports]}, new_ports).

%% Those to come have one tracer as well: where it is somebody else's, `all' is the existing ones.
trace(Whom, On, Flags, Names, New) when is_atom(Whom) ->
    [Name] = maps:get(case Whom =/= existing andalso On andalso is_taken(New) of
                          true -> existing;
                          false -> Whom
                      end, Names),
    quietly(fun() -> erlang:trace(Name, On, [?TRACER | Flags]) end);
trace(Pid, On, Flags, _, _) ->
    quietly(fun() -> erlang:trace(Pid, On, [?TRACER | Flags]) end).

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

set_calls(_, #{calls := Same}, #{calls := Same}, _) ->
    ok;
set_calls({session, Session}, _, #{calls := Calls}, #{functions := Functions}) ->
    [quietly(fun() -> apply(trace, function, [Session, Mfa, match(Calls), [local]]) end) || Mfa <- Functions],
    ok;
set_calls(global, _, #{calls := none}, _) ->
    clear_patterns();
set_calls(global, _, #{calls := Calls}, #{functions := Functions}) ->
    Ours = persistent_term:get({?MODULE, patterns}, []),
    Free = [Mfa || Pattern <- Functions, Mfa <- functions(Pattern), lists:member(Mfa, Ours) orelse is_untraced(Mfa)],
    _ = [erlang:trace_pattern(Mfa, match(Calls), [local]) || Mfa <- Free],
    persistent_term:put({?MODULE, patterns}, Free).

clear_patterns() ->
    [_ = erlang:trace_pattern(Mfa, false, [local]) || Mfa <- persistent_term:get({?MODULE, patterns}, [])],
    _ = persistent_term:erase({?MODULE, patterns}),
    ok.

match(none) -> false;
match(call) -> true;
match(return) -> [{'_', [], [{return_trace}]}];
match(exception) -> [{'_', [], [{exception_trace}]}].

%% A pattern somebody else has set stays theirs.
is_untraced(Mfa) ->
    erlang:trace_info(Mfa, traced) =:= {traced, false}.

functions({Module, Function, Arity}) ->
    _ = code:ensure_loaded(Module),
    try Module:module_info(functions) of
        All -> [{Module, F, A} || {F, A} <- All, Function =:= '_' orelse F =:= Function, Arity =:= '_' orelse A =:= Arity]
    catch
        error:undef -> []
    end.

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
