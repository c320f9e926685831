%% @private Whether garbage collections may be traced. From OTP 27 on the VM ends when two trace sessions (that of
%% `erlang:trace/3' is one) trace the collections of a process: it frees the event after the first session.
%%
%% So no other session may have the flag, neither for new processes nor for any existing one. A session tells its flags
%% for new processes; existing processes have to be asked one by one. `process_info(Pid, trace)' has the flags of all
%% sessions. It reads them without a signal, but from a process that is running it needs one, and an answer. Therefore a
%% process of its own asks, and the worker does not wait for it.
-module(dyntrace_gc_flag).

-export([new/0, stop/1, may_trace/1]).

-export_type([state/0]).

%% Sessions are there from OTP 27 on.
-ignore_xref([{trace, session_create, 3}, {trace, session_info, 1}, {trace, info, 3},
              {trace, process, 4}]).

-define(FLAG, garbage_collection).

%% Long enough for most nodes, so that a consumer need not wait for the next poll.
-define(ANSWER_MS, 50).

%% Until the processes are asked again, after another session had the flag.
-define(RETRY_MS, 5000).

-opaque state() :: idle | {asking, pid(), reference()} | free | {taken, Since :: integer()}.

-spec new() -> state().
new() ->
    idle.

%% The flag is not needed any more.
-spec stop(state()) -> state().
stop({asking, Pid, Ref}) ->
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    idle;
stop(_) ->
    idle.

%% Called at each poll at which the flag is needed, also while it is set: another session may set it later.
-spec may_trace(state()) -> {boolean(), state()}.
may_trace(State) ->
    case erlang:function_exported(trace, session_info, 1) of
        true -> answer(State);
        false -> {true, State}
    end.

answer(free) ->
    case is_new_taken() of
        true -> {false, taken()};
        false -> {true, free}
    end;
answer(idle) ->
    {Pid, Ref} = spawn_monitor(fun tell_taken/0),
    answer({asking, Pid, Ref}, ?ANSWER_MS);
answer(State = {asking, _, _}) ->
    answer(State, 0);
answer(State = {taken, Since}) ->
    case now_ms() >= Since + ?RETRY_MS of
        true -> answer(idle);
        false -> {false, State}
    end.

answer(State = {asking, Pid, Ref}, Wait) ->
    receive
        {'DOWN', Ref, process, Pid, {taken, false}} -> {true, free};
        {'DOWN', Ref, process, Pid, _} -> {false, taken()}
    after Wait ->
            {false, State}
    end.

taken() ->
    {taken, now_ms()}.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% -- Asking ------------------------------------------------------------------------------

-spec tell_taken() -> no_return().
tell_taken() ->
    exit({taken, is_taken()}).

is_taken() ->
    is_new_taken() orelse is_on(bit(), processes()).

is_new_taken() ->
    lists:any(fun has_flag/1, [Session || Session <- apply(trace, session_info, [all]), not dyntrace_session:is_ours(Session)]).

has_flag(Session) ->
    try apply(trace, info, [Session, new_processes, flags]) of
        {flags, Flags} -> lists:member(?FLAG, Flags)
    catch
        %% It has just been destroyed.
        error:badarg -> false
    end.

is_on(Bit, Processes) ->
    lists:any(fun(Pid) ->
                      case process_info(Pid, trace) of
                          {trace, Flags} -> Flags band Bit =/= 0;
                          undefined -> false
                      end
              end, Processes).

%% The flag's bit in process_info(Pid, trace), which is not documented: set for a process of our own, it appears there. Its
%% session is kept with it, and made once: to destroy one, the VM signals every process.
bit() ->
    case dyntrace_settings:get(collections, none) of
        {Bit, _Session} ->
            Bit;
        none ->
            Session = apply(trace, session_create, [?MODULE, self(), []]),
            Bit = bit(Session),
            ok = dyntrace_settings:put(collections, {Bit, Session}),
            Bit
    end.

bit(Session) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    {trace, Before} = process_info(Pid, trace),
    1 = apply(trace, process, [Session, Pid, true, [?FLAG]]),
    {trace, After} = process_info(Pid, trace),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> After band bnot Before end.
