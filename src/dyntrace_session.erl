%% @private Trace flags and patterns from OTP 27 on: in a trace session of the application's own, which no other tracer
%% notices. It lives from the first consumer until the worker ends: to destroy a session, the VM signals all processes.
%% Sessions that a killed worker has left are found by their name.
-module(dyntrace_session).
-behaviour(dyntrace_tracing).

-export([is_ours/1]).
-export([open/0, clear/2, close/1, clear_left/0, is_open/1, seen/2]).
-export([processes/4, named/2, ports/4, functions/3, is_traced/2, spare/2]).

%% Sessions are there from OTP 27 on.
-ignore_xref([{trace, session_create, 3}, {trace, session_destroy, 1}, {trace, session_info, 1}, {trace, process, 4},
              {trace, port, 4}, {trace, function, 4}, {trace, info, 3}]).

-define(NAME, dyntrace_autotracer).

open() ->
    ok = clear_left(),
    {dyntrace, State} = dyntrace_trace_flags:tracer(),
    apply(trace, session_create, [?NAME, {dyntrace, State}, []]).

clear(Session, Functions) ->
    case is_open(Session) of
        true ->
            _ = processes(Session, all, dyntrace_trace_flags:flags(process), []),
            ok = ports(Session, all, dyntrace_trace_flags:flags(port), []),
            functions(Session, Functions, false);
        false ->
            ok
    end.

close(Session) ->
    _ = apply(trace, session_destroy, [Session]),
    ok.

clear_left() ->
    lists:foreach(fun(Session) -> close(Session) end,
                  [Session || Session <- apply(trace, session_info, [all]), is_ours(Session)]).

%% @private For a weak handle, as trace:session_info/1 returns them: {Name, Id}.
-spec is_ours(term()) -> boolean().
is_ours(Session) ->
    is_tuple(Session) andalso element(1, Session) =:= ?NAME.

%% Any process can destroy a session that session_info/1 lists.
is_open(Session) ->
    try apply(trace, info, [Session, new_processes, flags]) of
        {flags, _} -> true
    catch
        error:badarg -> false
    end.

%% No other tool sets or clears flags of our session.
seen(_Session, _Kind) ->
    ours.

processes(Session, Whom, Gone, New) ->
    ok = switch(fun(On, Flags) -> apply(trace, process, [Session, Whom, On, Flags]) end, Gone, New),
    0.

named(Session, Changes) ->
    [{Change, process(Session, Change)} || Change <- Changes].

process(Session, {Pid, all, New}) ->
    process(Session, {Pid, dyntrace_trace_flags:flags(process), New});
process(Session, {Pid, Gone, New}) ->
    try switch(fun(On, Flags) -> apply(trace, process, [Session, Pid, On, Flags]) end, Gone, New) of
        ok -> set
    catch
        error:badarg -> gone
    end.

ports(Session, Whom, Gone, New) ->
    switch(fun(On, Flags) -> apply(trace, port, [Session, Whom, On, Flags]) end, Gone, New).

switch(Trace, Gone, New) ->
    _ = [Trace(false, Gone) || Gone =/= []],
    _ = [Trace(true, New) || New =/= []],
    ok.

functions(Session, Patterns, Match) ->
    lists:foreach(fun(Mfa) -> apply(trace, function, [Session, Mfa, Match, [local]]) end,
                  lists:append([named(Pattern) || Pattern <- Patterns])).

%% The VM takes {M, '_', '_'} but not {M, '_', Arity}: that one is expanded.
named(Pattern = {_, '_', Arity}) when is_integer(Arity) -> dyntrace_trace_pattern:of_pattern(Pattern);
named(Pattern) -> [Pattern].

is_traced(Session, Pattern) ->
    case dyntrace_trace_pattern:first(Pattern) of
        none -> none;
        First -> apply(trace, info, [Session, First, traced]) =/= {traced, false}
    end.

spare(Session, Pid) ->
    _ = process(Session, {Pid, all, []}),
    ok.
