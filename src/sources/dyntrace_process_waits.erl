%% @private Finds what stopped processes wait for if they have messages in their queues or wait for a lock of `global',
%% and how many processes wait for them: the probe `process_wait' of dyntrace_process_samples.
%%
%%     price_cache  in gen:do_call/4, 6 messages   monitors  stock_index        waits for it
%%     <0.95.0>     in gen:do_call/4               monitors  price_cache only   is one of its callers
%%
%% `gen' monitors the called process until the reply, and so do other functions that wait for one process. Such a target
%% is sampled from then on, so a chain of waits becomes known by one process per sample.
%%
%% Only a few processes are asked, again only after they have run, and only if they have few monitors: listing 3,000
%% monitors takes a few milliseconds.
-module(dyntrace_process_waits).

-export([new/0, awaited/1, report/3, other_memory/3, lock_holders/0, is_in_lock/1]).

-export_type([waits/0, stopped/0]).

%% Of how many monitors at most each one's process is sampled, because it may be the target.
-define(MOST_MONITORS, 8).
%% How many processes are sampled because others wait for them.
-define(MOST_AWAITED, 20).
%% How many processes are asked in a sample whether they call one of these.
-define(MOST_CALLERS, 100).
%% The bytes that a message in a queue takes apart from its contents; a monitor takes about as much.
-define(MESSAGE_BYTES, 88).
%% Bytes of monitors, links and whatever else is not on the heap.
-define(MOST_OTHER_MEMORY, 256 * 1024).
%% How many locks are read.
-define(MOST_LOCKS, 8).

%% In waits of these kinds, the process monitors the target.
-define(MONITORS(Kind), (Kind =:= call orelse Kind =:= io orelse Kind =:= file)).

-type stopped() :: #{function := mfa(), queue := non_neg_integer(), is_still := boolean(), is_suspended := boolean(),
                     more := non_neg_integer(), other_memory := integer()}.
%% A process in samples. `more': reductions since the previous one.

-record(wait, {queue = 0 :: non_neg_integer(),
               kind :: atom(),
               target = [] :: [] | pid() | {atom(), node()},
               callers = 0 :: non_neg_integer(),
               %% The local processes that it may wait for.
               awaited = [] :: [pid()]}).

-opaque waits() :: #{pid() => #wait{}}.

-spec new() -> waits().
new() ->
    #{}.

%% The processes to sample because others wait for them.
-spec awaited(waits()) -> [pid()].
awaited(Waits) ->
    Awaited = lists:append([Pids || #wait{awaited = Pids} <- maps:values(Waits)]),
    lists:sublist(lists:usort(Awaited), ?MOST_AWAITED).

%% The memory of a process apart from its heap and its queue.
-spec other_memory(Bytes :: non_neg_integer(), HeapWords :: non_neg_integer(), Queue :: non_neg_integer()) -> integer().
other_memory(Bytes, HeapWords, Queue) ->
    Bytes - HeapWords * erlang:system_info(wordsize) - Queue * ?MESSAGE_BYTES.

%% Also returns how many requests each process has got.
-spec report(#{pid() => stopped()}, waits(), dyntrace_process_asker:asker()) ->
          {#{pid() => pos_integer()}, waits(), dyntrace_process_asker:asker()}.
report(Stopped, Waits, Asker) ->
    Awaited = awaited(Waits),
    Waiting = maps:filter(fun(Pid, Of) -> waits(Of, lists:member(Pid, Awaited)) end, Stopped),
    Known = maps:filter(fun(Pid, #wait{queue = Queue, kind = Kind}) ->
                                case Waiting of
                                    #{Pid := #{more := 0, queue := Queue}} -> Kind =/= lock;
                                    _ -> false
                                end
                        end, Waits),
    {Asked, Found, New} = find(maps:without(maps:keys(Known), Waiting), Asker),
    All = maps:merge(Known, Found),
    _ = [report_wait(Pid, Wait) || {Pid, Wait} <- maps:to_list(All)],
    {Asked, All, New}.

%% A process that tries to get a lock runs now and then.
waits(Of = #{is_still := IsStill, queue := Queue, is_suspended := IsSuspended}, IsAwaited) ->
    kind(Of) =:= lock orelse IsStill andalso (Queue > 0 orelse IsSuspended orelse IsAwaited).

report_wait(_, #wait{kind = none, callers = 0}) ->
    ok;
report_wait(Pid, #wait{kind = Kind, target = Target, callers = Callers}) ->
    ok = dyntrace:report(process_wait, {Pid, text(Kind), Target, Callers}).

text(none) -> "";
text(Kind) -> atom_to_list(Kind).

%% -- Places ----------------------------------------------------------------------------

%% What a process waits for in a function in which it handles no messages. An idle process waits in other functions, and
%% an acceptor in prim_inet:accept0.
kind(#{function := {Module, Function, _}}) -> kind(Module, Function).

kind(gen, do_call) -> call;
kind(erpc, call) -> call;
kind(rpc, _) -> call;
kind('Elixir.Task', await) -> call;
kind(io, wait_io_mon_reply) -> io;
kind(file_io_server, do_start) -> file;
kind(prim_file, _) -> file;
kind(global, random_sleep) -> lock;
kind(proc_lib, Function) when Function =:= sync_start; Function =:= sync_start_link; Function =:= sync_start_monitor;
                              Function =:= sync_wait; Function =:= sync_wait_mon -> start;
kind(prim_inet, Function) when Function =/= accept0 -> socket;
kind(socket, Function) when Function =/= accept, Function =/= accept_deadline -> socket;
kind(_, _) -> none.

%% -- Targets -----------------------------------------------------------------------------

find(Waiting, Asker) ->
    Small = [Pid || {Pid, #{other_memory := Bytes}} <- maps:to_list(Waiting), Bytes =< ?MOST_OTHER_MEMORY],
    {Answers, Asking} = dyntrace_process_asker:ask(Small, [monitors, monitored_by], Asker),
    {Asked, Callers, New} = callers([{Pid, By} || {Pid, [_, By]} <- maps:to_list(Answers)], Asking),
    Holders = case lists:any(fun(Of) -> kind(Of) =:= lock end, maps:values(Waiting)) of
                  true -> lock_holders();
                  false -> []
              end,
    Found = maps:map(fun(Pid, Of) ->
                             Wait = target(kind(Of), monitored(maps:get(Pid, Answers, undefined)), Holders -- [Pid]),
                             Wait#wait{queue = maps:get(queue, Of), callers = maps:get(Pid, Callers, 0)}
                     end, Waiting),
    {lists:foldl(fun count/2, Asked, maps:keys(Answers)), Found, New}.

count(Pid, Counts) ->
    maps:update_with(Pid, fun(N) -> N + 1 end, 1, Counts).

monitored(undefined) -> [];
monitored([Monitors, _]) -> lists:usort([local(Process) || {process, Process} <- Monitors]).

local({Name, Node}) when Node =:= node() ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> Pid;
        _ -> {Name, Node}
    end;
local(Process) ->
    Process.

%% If it monitors several, each may be the target. A recorded call may show which one is.
target(lock, _, [Holder]) -> found(lock, Holder, [Holder]);
target(Kind, [Process], _) when ?MONITORS(Kind) -> found(Kind, Process, [Process]);
target(Kind, Monitored, _) when ?MONITORS(Kind), length(Monitored) =< ?MOST_MONITORS -> found(Kind, [], Monitored);
target(Kind, _, _) -> #wait{kind = Kind}.

found(Kind, Target, Awaited) ->
    #wait{kind = Kind, target = Target, awaited = [Pid || Pid <- Awaited, is_pid(Pid), node(Pid) =:= node()]}.

%% The processes that hold locks of `global'; none if there are many locks.
-spec lock_holders() -> [pid()].
lock_holders() ->
    try ets:info(global_locks, size) =< ?MOST_LOCKS andalso ets:tab2list(global_locks) of
        false -> [];
        Locks -> lists:usort([Pid || {_, _, Holders} <- Locks, is_list(Holders), {Pid, _} <- Holders, is_pid(Pid)])
    catch error:badarg -> []
    end.

%% Whether a process in this function waits until it tries again to get a lock of `global'.
-spec is_in_lock(mfa()) -> boolean().
is_in_lock({Module, Function, _}) ->
    kind(Module, Function) =:= lock.

%% -- Callers -----------------------------------------------------------------------------

%% A caller monitors only the process that it calls. Counts at most MOST_CALLERS.
callers(By, Asker) ->
    Pids = lists:sublist(lists:usort([Pid || {_, Monitors} <- By, Pid <- Monitors, is_pid(Pid), node(Pid) =:= node()]),
                         ?MOST_CALLERS),
    {Places, Asking} = dyntrace_process_asker:ask(Pids, [current_function, memory, total_heap_size, message_queue_len],
                                                  Asker),
    Calling = [Pid || {Pid, [Function, Memory, Words, Queue]} <- maps:to_list(Places),
                      kind(#{function => Function}) =:= call, other_memory(Memory, Words, Queue) =< ?MOST_OTHER_MEMORY],
    {Answers, New} = dyntrace_process_asker:ask(Calling, [monitors], Asking),
    Servers = [local(Server) || [[{process, Server}]] <- maps:values(Answers)],
    {lists:foldl(fun count/2, #{}, maps:keys(Places) ++ maps:keys(Answers)),
     lists:foldl(fun count/2, #{}, Servers), New}.
