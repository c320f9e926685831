%% Switches tracing on and off: erlang:trace/3 and erlang:trace_pattern/3 or, if DYNTRACE_SESSIONS=true is in the
%% environment (OTP 27 and later), the same with trace sessions: trace:process/4, port/4, function/4 and recv/3.
%%
%% Arguments and results are those of the functions of erlang. A process that is a tracer has no session.
-module(test_trace).

-export([has_sessions/0, trace/3, trace_pattern/3, received/0]).

%% Whether this OTP, which the nodes also use, has trace sessions.
has_sessions() ->
    list_to_integer(erlang:system_info(otp_release)) >= 27.

trace(Who, On, Options) ->
    case {os:getenv("DYNTRACE_SESSIONS"), lists:keytake(tracer, 1, Options)} of
        {"true", false} -> in_session({dyntrace, []}, Who, On, Options);
        {"true", {value, {tracer, Module, State}, Flags}} -> in_session({Module, State}, Who, On, Flags);
        _ -> erlang:trace(Who, On, Options)
    end.

in_session(Tracer, Who, On, Flags) ->
    lists:sum([apply(trace, Function, [session(Tracer), Whom, On, Flags]) || {Function, Whom} <- called(Who)]).

%% For the tracer {dyntrace, []}: tests with other tracers set no patterns.
trace_pattern(What, Match, Options) ->
    case {os:getenv("DYNTRACE_SESSIONS"), What} of
        {"true", 'receive'} -> apply(trace, recv, [session({dyntrace, []}), Match, Options]);
        {"true", Mfa} -> apply(trace, function, [session({dyntrace, []}), Mfa, Match, Options]);
        _ -> erlang:trace_pattern(What, Match, Options)
    end.

%% The functions of the module trace, each with its first argument.
called(Pid) when is_pid(Pid) -> [{process, Pid}];
called(Port) when is_port(Port) -> [{port, Port}];
called(processes) -> [{process, all}];
called(new_processes) -> [{process, new}];
called(ports) -> [{port, all}];
called(new_ports) -> [{port, new}];
called(Both) -> [{process, Both}, {port, Both}].

%% Each tracer has one session, until the node ends. The tracer's module must be loaded.
session(Tracer) ->
    Key = {?MODULE, Tracer},
    case persistent_term:get(Key, none) of
        none ->
            {module, dyntrace} = code:ensure_loaded(dyntrace),
            Session = apply(trace, session_create, [?MODULE, Tracer, []]),
            ok = persistent_term:put(Key, Session),
            Session;
        Session ->
            Session
    end.

%% The messages that the calling process has received as a tracer.
received() ->
    receive {trace, _, 'receive', Message} -> [Message | received()] after 0 -> [] end.
