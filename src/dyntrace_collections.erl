%% @private Whether garbage collections may be traced: from OTP 27 on, two trace sessions (that of `erlang:trace/3' is one)
%% that both trace the collections of a process end the VM, which frees the event after the first of them.
%%
%% So nobody else may have the flag: neither for processes to come, which each session tells, nor for one that is there.
%% That takes a look at every process. `process_info(Pid, trace)' has the flags of all sessions, and for a process that is
%% not just running it is read without a signal; the few others answer when they are scheduled. A process of its own looks
%% at them, so that nobody waits for that.
-module(dyntrace_collections).

-export([new/0, stop/1, may_trace/1]).

-export_type([state/0]).

%% Sessions are there from OTP 27 on.
-ignore_xref([{trace, session_create, 3}, {trace, session_destroy, 1}, {trace, session_info, 1}, {trace, info, 3},
              {trace, process, 4}]).

-define(FLAG, garbage_collection).

%% Long enough for most nodes, so that a consumer need not wait for the next poll.
-define(ANSWER_MS, 50).

%% Until it is looked again, where somebody else had the flag.
-define(RETRY_MS, 5000).

-opaque state() :: idle | {looking, pid(), reference()} | free | {taken, Since :: integer()}.

-spec new() -> state().
new() ->
    idle.

%% It is not needed any more.
-spec stop(state()) -> state().
stop({looking, Pid, Ref}) ->
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    idle;
stop(_) ->
    idle.

%% To be asked at each poll at which the flag is needed, also when it is set: somebody else may come later.
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
    {Pid, Ref} = spawn_monitor(fun() -> exit({taken, is_taken()}) end),
    answer({looking, Pid, Ref}, ?ANSWER_MS);
answer(State = {looking, _, _}) ->
    answer(State, 0);
answer(State = {taken, Since}) ->
    case now_ms() >= Since + ?RETRY_MS of
        true -> answer(idle);
        false -> {false, State}
    end.

answer(State = {looking, Pid, Ref}, Wait) ->
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

%% -- Looking -----------------------------------------------------------------------------

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

%% Which of the flags it is, shows a process that gets it, and that collects nothing.
bit() ->
    Session = apply(trace, session_create, [?MODULE, self(), []]),
    {Pid, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    {trace, Before} = process_info(Pid, trace),
    1 = apply(trace, process, [Session, Pid, true, [?FLAG]]),
    {trace, After} = process_info(Pid, trace),
    true = apply(trace, session_destroy, [Session]),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> After band bnot Before end.
