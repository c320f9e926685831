%% @private Whether the trace flag `garbage_collection' may be set. From OTP 27 on the VM crashes when two trace
%% sessions (erlang:trace/3 uses one) trace the garbage collections of a process, because it frees the event after the
%% first session.
%%
%% So no other session may have the flag, neither for new processes nor for any existing one. A session returns its
%% flags for new processes; existing processes have to be checked one by one. process_info(Pid, trace) returns the
%% flags of all sessions. It reads them without a signal, except from a running process, which has to answer one.
%% Therefore a separate process reads them asynchronously.
-module(dyntrace_gc_flag).

-export([new/0, stop/1, may_set/1, message/2]).

-export_type([state/0]).

%% OTP 27 and later have sessions.
-ignore_xref([{trace, session_create, 3}, {trace, session_info, 1}, {trace, info, 3},
              {trace, process, 4}]).

-define(FLAG, garbage_collection).

%% Long enough for most nodes, so that a consumer need not wait for the next poll.
-define(ANSWER_MS, 50).

%% If another session had the flag: the time until the processes are checked again.
-define(RETRY_MS, 5000).

-opaque state() :: idle | {checking, pid(), reference()} | free | {taken, Since :: integer()}.

%% No other session has been searched for yet.
-spec new() -> state().
new() ->
    idle.

%% Called when the flag is no longer required.
-spec stop(state()) -> state().
stop({checking, Pid, Ref}) ->
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    idle;
stop(_) ->
    idle.

%% Called at each poll at which the flag is required, also while it is set: another session may set it later.
-spec may_set(state()) -> {boolean(), state()}.
may_set(State) ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> answer(State);
        false -> {true, State}
    end.

%% Takes a message that the worker got between two polls: the result of a check that took longer than ?ANSWER_MS, or
%% another message.
-spec message(Message :: term(), state()) -> {checked, state()} | unknown.
message({'DOWN', Ref, process, Pid, Result}, {checking, Pid, Ref}) -> {checked, checked(Result)};
message(_, _) -> unknown.

answer(free) ->
    case is_taken_for_new() of
        true -> {false, taken()};
        false -> {true, free}
    end;
answer(idle) ->
    {Pid, Ref} = spawn_monitor(fun exit_checked/0),
    receive
        {'DOWN', Ref, process, Pid, Result} ->
            Checked = checked(Result),
            {Checked =:= free, Checked}
    after ?ANSWER_MS ->
            {false, {checking, Pid, Ref}}
    end;
answer(State = {checking, _, _}) ->
    {false, State};
answer(State = {taken, Since}) ->
    case now_ms() >= Since + ?RETRY_MS of
        true -> answer(idle);
        false -> {false, State}
    end.

checked({taken, false}) -> free;
checked(_) -> taken().

taken() ->
    {taken, now_ms()}.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% -- Checking ----------------------------------------------------------------------------

-spec exit_checked() -> no_return().
exit_checked() ->
    exit({taken, is_taken()}).

is_taken() ->
    is_taken_for_new() orelse is_set(bit(), processes()).

is_taken_for_new() ->
    lists:any(fun has_flag/1, [Session || Session <- apply(trace, session_info, [all]),
                                          not dyntrace_session:is_ours(Session)]).

has_flag(Session) ->
    try apply(trace, info, [Session, new_processes, flags]) of
        {flags, Flags} -> lists:member(?FLAG, Flags)
    catch
        %% The session has just been destroyed.
        error:badarg -> false
    end.

is_set(Bit, Processes) ->
    lists:any(fun(Pid) ->
                      case process_info(Pid, trace) of
                          {trace, Flags} -> Flags band Bit =/= 0;
                          undefined -> false
                      end
              end, Processes).

%% The flag's bit in process_info(Pid, trace), which is undocumented: it is determined by setting the flag for a process
%% of our own. The session for that is created once, and stored to keep it alive: to destroy a session, the VM signals
%% every process.
bit() ->
    case dyntrace_settings:get(gc_flag, none) of
        {Bit, _Session} ->
            Bit;
        none ->
            Session = apply(trace, session_create, [?MODULE, self(), []]),
            Bit = bit(Session),
            ok = dyntrace_settings:put(gc_flag, {Bit, Session}),
            Bit
    end.

bit(Session) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    {trace, Before} = process_info(Pid, trace),
    1 = apply(trace, process, [Session, Pid, true, [?FLAG]]),
    {trace, After} = process_info(Pid, trace),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> After band bnot Before end.
