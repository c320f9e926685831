%% @private Trace flags and patterns from OTP 27 on: in a separate trace session, which does not affect other tracers.
%% It exists from the first consumer until the worker ends: to destroy a session, the VM signals every process. The
%% sessions of killed workers are found by name.
-module(dyntrace_session).
-behaviour(dyntrace_tracing).

-export([is_ours/1, close_all/1]).
-export([open/0, clear/2, close/1, clear_leftover/0, is_open/1, snapshot/2]).
-export([processes/4, named/2, ports/4, functions/2, is_traced/2, exclude/2]).
-export([messages/3, of_messages/3]).

%% OTP 27 and later have sessions.
-ignore_xref([{trace, session_create, 3}, {trace, session_destroy, 1}, {trace, session_info, 1}, {trace, process, 4},
              {trace, port, 4}, {trace, function, 4}, {trace, info, 3}, {trace, send, 3}, {trace, recv, 3}]).

-define(NAME, dyntrace_autotracer).

open() ->
    ok = clear_leftover(),
    apply(trace, session_create, [?NAME, dyntrace_trace_flags:tracer(), []]).

clear(Session, Functions) ->
    case is_open(Session) of
        true ->
            _ = processes(Session, all, dyntrace_trace_flags:all(process), []),
            ok = ports(Session, all, dyntrace_trace_flags:all(port), []),
            _ = [messages(Session, Event, none) || Event <- [send, 'receive']],
            functions(Session, [{Pattern, false} || Pattern <- Functions]);
        false ->
            ok
    end.

close(Session) ->
    _ = apply(trace, session_destroy, [Session]),
    ok.

clear_leftover() ->
    close_all(?NAME).

%% Closes all sessions of this name, which belong to killed workers.
-spec close_all(Name :: atom()) -> ok.
close_all(Name) ->
    lists:foreach(fun(Session) -> close(Session) end,
                  [Session || Session <- apply(trace, session_info, [all]), has_name(Name, Session)]).

%% Takes a session as returned by trace:session_info/1: {Name, Id}.
-spec is_ours(term()) -> boolean().
is_ours(Session) ->
    has_name(?NAME, Session).

has_name(Name, Session) ->
    is_tuple(Session) andalso element(1, Session) =:= Name.

%% The session may be gone: any process can destroy a session that session_info/1 lists.
is_open(Session) ->
    try apply(trace, info, [Session, new_processes, flags]) of
        {flags, _} -> true
    catch
        error:badarg -> false
    end.

%% Constant: other tools do not change the flags of our session.
snapshot(_Session, _Kind) ->
    ours.

%% Flags of many existing processes are set one by one, in slices: one call for all of them stops every scheduler, for
%% 40 ms with 100,000 processes.
processes(Session, Which, Clear, Set) ->
    ok = processes(dyntrace_walk:is_long(), Session, Which, Clear, Set),
    0.

processes(false, Session, Which, Clear, Set) ->
    switch(fun(On, Flags) -> apply(trace, process, [Session, Which, On, Flags]) end, Clear, Set);
processes(true, Session, Which, Clear, Set) ->
    _ = [ok = switch(fun(On, Flags) -> apply(trace, process, [Session, new, On, Flags]) end, Clear, Set)
         || Which =/= existing],
    _ = [ok = dyntrace_walk:all(fun(Pid) -> process(Session, {Pid, Clear, Set}) end) || Which =/= new],
    ok.

named(Session, Changes) ->
    [{Change, process(Session, Change)} || Change <- Changes].

process(Session, {Pid, all, Set}) ->
    process(Session, {Pid, dyntrace_trace_flags:all(process), Set});
process(Session, {Pid, Clear, Set}) ->
    try switch(fun(On, Flags) -> apply(trace, process, [Session, Pid, On, Flags]) end, Clear, Set) of
        ok -> set
    catch
        error:badarg -> gone
    end.

ports(Session, Which, Clear, Set) ->
    switch(fun(On, Flags) -> apply(trace, port, [Session, Which, On, Flags]) end, Clear, Set).

switch(Trace, Clear, Set) ->
    _ = [Trace(false, Clear) || Clear =/= []],
    _ = [Trace(true, Set) || Set =/= []],
    ok.

%% Patterns that are already set are skipped: each call waits for all schedulers, 20 ms on a busy node.
functions(Session, Patterns) ->
    lists:foreach(fun({Mfa, MatchSpec}) -> apply(trace, function, [Session, Mfa, MatchSpec, [local]]) end,
                  [{Mfa, MatchSpec}
                   || {Mfa, MatchSpec} <- maps:to_list(dyntrace_trace_pattern:by_function(Patterns)),
                      apply(trace, info, [Session, Mfa, match_spec]) =/=
                          {match_spec, dyntrace_trace_pattern:as_returned(MatchSpec)}]).

is_traced(Session, Pattern) ->
    case dyntrace_trace_pattern:first(Pattern) of
        none -> none;
        First -> apply(trace, info, [Session, First, traced]) =/= {traced, false}
    end.

messages(Session, Event, none) -> messages(Session, Event, true);
messages(Session, send, MatchSpec) -> pattern(send, Session, MatchSpec);
messages(Session, 'receive', MatchSpec) -> pattern(recv, Session, MatchSpec).

pattern(Function, Session, MatchSpec) ->
    _ = apply(trace, Function, [Session, MatchSpec, []]),
    ok.

%% Constant: other tools do not change the match specifications of our session.
of_messages(_Session, _Event, _MatchSpec) ->
    ours.

exclude(Session, Pid) ->
    _ = process(Session, {Pid, all, []}),
    ok.
