%% @private The source of `process_sample': the processes with the longest queues, the largest heaps and the most
%% reductions, suspended ones, those that are stuck (in a native function, or runnable without getting a scheduler), and
%% targets of waits. Also the source of `process_wait', which names these targets.
%%
%% The VM has no trace event for a growing queue. The lengths are read without signals: that does not wake the
%% processes, and takes less than a microsecond each on an idle node. A sample reads only a part of the processes, so
%% that it costs the same on every node; on a node with 100,000 processes, 20 samples read all of them. The leaders are
%% read in each sample.
%%
%% A process must itself answer a request for its memory and function. So only the reported processes are asked, and
%% asked again only after they have run. A process that does not answer at once, because it is in a long NIF, is
%% reported without its function. dyntrace_process_waits asks those that have stopped with messages in their queues.
%% While a process holds a lock of `global' in consecutive samples, idle processes are asked for their functions, once
%% unless they run, to find those that wait for the lock.
-module(dyntrace_process_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).

%% How many leaders there are in each of the three rankings, how many suspended processes, and how many stuck ones: more
%% than the dirty I/O schedulers of a default node.
-define(LEADING, 10).
-define(STILL, 20).

%% How many processes a sample reads, in batches, with a pause after each. A batch takes 0.1 ms, or about 1 ms beside
%% busy processes. After each pause a scheduler wakes, and busy-waits before it sleeps again, which costs more than the
%% reading itself.
-define(PART, 5000).
-define(BATCH, 250).

%% How many idle processes a sample asks whether they wait for a lock, and how many are asked while one is held.
-define(ASKED_FOR_LOCK, 250).
-define(MOST_ASKED_FOR_LOCK, 20000).

%% Items that are read without a signal, and items that the process answers.
-define(READ, [message_queue_len, heap_size, reductions, status]).
-define(ASKED, [memory, current_function, message_queue_len, total_heap_size]).

%% A waiting process that is woken, by a message that it does not take or by a request, uses up to nine reductions.
-define(REDUCTIONS_TO_WAKE, 9).

-record(seen, {queue, heap, reductions, status,
               %% Reductions since the previous sample, without our requests; 0 in the first sample.
               more = 0,
               %% The samples in a row in which it was running or runnable, without a reduction since the sample before.
               still = 0,
               questions = 0 :: non_neg_integer(),
               %% Has taken no message since the previous sample, as far as known.
               is_still = false :: boolean(),
               %% Its last answer.
               answer = none :: none | {Memory :: non_neg_integer(), mfa(), Queue :: non_neg_integer(),
                                        HeapWords :: non_neg_integer()}}).

-type seen() :: #seen{}.

-record(samples, {at :: undefined | integer(),
                  %% The remaining processes of this round.
                  rest = [] :: [pid()],
                  %% The leaders, and the processes of the last part, whose reductions can be compared in this sample.
                  watched = #{} :: #{pid() => seen()},
                  part = #{} :: #{pid() => seen()},
                  asker = dyntrace_process_asker:new() :: dyntrace_process_asker:asker(),
                  %% The processes that held locks of `global' in the last sample.
                  holders = [] :: [pid()],
                  %% The idle processes that have been asked since then whether they wait for a lock.
                  asked_for_lock = #{} :: #{pid() => []},
                  waits = dyntrace_process_waits:new() :: dyntrace_process_waits:waits()}).

%% -- The callback ----------------------------------------------------------------------

report(none) ->
    report(#samples{});
report(State = #samples{at = At}) ->
    dyntrace_sampler:if_due(At, State, fun(Now) -> sample(State#samples{at = Now}) end).

%% Leaves out the sampler itself.
sample(State = #samples{rest = Rest, watched = Watched, part = Before, asker = Asker, waits = Waits,
                        holders = Earlier, asked_for_lock = AskedBefore}) ->
    Known = maps:merge(Before, Watched),
    Awaited = dyntrace_process_waits:awaited(Waits),
    Again = read(lists:usort(Awaited ++ maps:keys(Known)), Known),
    {Next, Left} = part(Rest),
    Part = read([Pid || Pid <- Next, not is_map_key(Pid, Again), Pid =/= self()], #{}),
    Holders = dyntrace_process_waits:lock_holders(),
    ForLock = case lists:any(fun(Pid) -> lists:member(Pid, Earlier) end, Holders) of
                  true -> AskedBefore;
                  false -> none
              end,
    {Seen, Leading, AskedForLock, Asking} = led(Awaited, maps:merge(Part, Again), ForLock, Asker),
    ok = dyntrace_identities:report_sampled(maps:keys(maps:without(maps:keys(Watched), Leading))),
    _ = [report_sample(Pid, Leads) || {Pid, Leads} <- maps:to_list(Leading)],
    {Asked, New, AskingStill} = dyntrace_process_waits:report(stopped(Leading), Waits, Asking),
    IsWhole = Rest =:= [] andalso Left =:= [],
    State#samples{rest = Left, watched = counted(Asked, Leading), asker = AskingStill, waits = New, holders = Holders,
                  asked_for_lock = AskedForLock,
                  part = counted(Asked, watched_once(IsWhole, maps:with(maps:keys(Part), Seen), Seen))}.

%% If one part contains all processes of the node, each sample compares all of them.
watched_once(true, _, Seen) -> Seen;
watched_once(false, Part, _) -> Part.

%% A process that has run since its answer may be in another function now. If it has answered in this sample, it has
%% been asked.
report_sample(Pid, Seen = #seen{queue = Queue, heap = Heap, more = More, status = Status, answer = Answer,
                                questions = Asked}) ->
    {Memory, Function} = case Answer of
                             none -> {Heap * erlang:system_info(wordsize), []};
                             {Bytes, Mfa, _, _} when Asked > 0 -> {Bytes, Mfa};
                             {Bytes, Mfa, _, _} -> {Bytes, case has_run(Seen) of true -> []; false -> Mfa end}
                         end,
    ok = dyntrace:report(process_sample, {Pid, Queue, Memory, More, Function, Status}).

%% -- Reading ---------------------------------------------------------------------------

part([]) -> dyntrace_walk:split(?PART, erlang:processes());
part(Rest) -> dyntrace_walk:split(?PART, Rest).

read(Pids, Before) ->
    maps:from_list(read(Pids, 1, Before)).

read([], _, _) ->
    [];
read([Pid | Pids], N, Before) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    case process_info(Pid, ?READ) of
        undefined -> read(Pids, N + 1, Before);
        Info -> [{Pid, seen(Info, maps:get(Pid, Before, none))} | read(Pids, N + 1, Before)]
    end.

seen([{_, Queue}, {_, Heap}, {_, Reductions}, {_, Status}], Before) ->
    Seen = #seen{queue = Queue, heap = Heap, reductions = Reductions, status = Status},
    case Before of
        none -> Seen;
        #seen{reductions = Earlier, questions = Questions, answer = Answer, queue = Shorter} ->
            More = max(0, Reductions - Earlier - Questions),
            Seen#seen{more = More, still = still(More, Status, Before), answer = Answer,
                      is_still = is_still(Status, More, Queue - Shorter)}
    end.

still(0, Now, #seen{status = Earlier, still = Samples})
  when Now =:= running orelse Now =:= runnable, Earlier =:= running orelse Earlier =:= runnable ->
    Samples + 1;
still(_, _, _) ->
    0.

%% A process that runs a native function on a dirty scheduler is running, and uses no reductions.
is_still(running, More, _) -> More =:= 0;
is_still(Status, More, Added) when Status =:= waiting; Status =:= suspended ->
    Added >= 0 andalso More =< ?REDUCTIONS_TO_WAKE * (Added + 1);
is_still(_, _, _) -> false.

%% -- Leading ---------------------------------------------------------------------------

%% All processes and the leaders, with the answers that arrive in time, and the processes that have been asked whether
%% they wait for a lock.
led(Awaited, All, AskedForLock, Asker) ->
    {Leaders, Asking} = asked(leading(Awaited, All), Asker),
    StillIdle = still_idle(AskedForLock, All),
    {Idle, New} = asked(idle(StillIdle, maps:without(maps:keys(Leaders), All)), Asking),
    {maps:merge(All, Idle), maps:merge(Leaders, maps:filter(fun is_in_lock/2, Idle)), now_asked(StillIdle, Idle), New}.

leading(Awaited, Seen) ->
    List = maps:to_list(Seen),
    Locked = lists:sublist(maps:keys(maps:filter(fun is_in_lock/2, Seen)), ?LEADING),
    Suspended = lists:sublist([Pid || {Pid, #seen{status = suspended}} <- List], ?LEADING),
    Rankings = [{#seen.queue, ?LEADING}, {#seen.heap, ?LEADING}, {#seen.more, ?LEADING}, {#seen.still, ?STILL}],
    Most = lists:append([most(Field, Count, List) || {Field, Count} <- Rankings]),
    maps:with(lists:usort(Awaited ++ Locked ++ Suspended ++ Most), Seen).

%% It waited for a lock when it last answered.
is_in_lock(_, #seen{answer = {_, Function, _, _}}) -> dyntrace_process_waits:is_in_lock(Function);
is_in_lock(_, #seen{answer = none}) -> false.

%% Without those that have run: they may wait for a lock now.
still_idle(none, _) -> none;
still_idle(Asked, All) -> maps:without([Pid || {Pid, #seen{more = More}} <- maps:to_list(All), More > 0], Asked).

%% Processes that have not run since the previous sample and have not been asked.
idle(Asked, Seen) when is_map(Asked), map_size(Asked) < ?MOST_ASKED_FOR_LOCK ->
    Idle = [Pid || {Pid, #seen{status = waiting, more = 0}} <- maps:to_list(Seen), not is_map_key(Pid, Asked)],
    maps:with(lists:sublist(Idle, ?ASKED_FOR_LOCK), Seen);
idle(_, _) ->
    #{}.

now_asked(none, _) -> #{};
now_asked(Asked, Idle) -> maps:merge(Asked, maps:map(fun(_, _) -> [] end, Idle)).

most(Field, Count, List) ->
    Sorted = lists:reverse(lists:keysort(1, [{element(Field, Seen), Pid} || {Pid, Seen} <- List,
                                                                            element(Field, Seen) > 0])),
    [Pid || {_, Pid} <- lists:sublist(Sorted, Count)].

%% -- Asking ----------------------------------------------------------------------------

%% Adds the answers that arrive in time.
asked(Leading, Asker) ->
    {Answers, New} = dyntrace_process_asker:ask([Pid || {Pid, Seen} <- maps:to_list(Leading), has_run(Seen)], ?ASKED,
                                                Asker),
    {maps:fold(fun answered/3, Leading, Answers), New}.

%% Whether it may have run since its last answer.
has_run(#seen{queue = Queue, more = 0, answer = {_, _, Queue, _}}) -> false;
has_run(_) -> true.

answered(Pid, undefined, Leading) ->
    maps:remove(Pid, Leading);
%% A request costs one reduction.
answered(Pid, Values, Leading) ->
    #{Pid := Seen} = Leading,
    Leading#{Pid := Seen#seen{answer = list_to_tuple(Values), questions = 1}}.

%% -- Processes that have stopped ----------------------------------------------------------

%% Those whose function is known, with that function.
stopped(Leading) ->
    maps:from_list([{Pid, #{function => Function, queue => Queue, more => More, is_still => IsStill,
                            is_suspended => Status =:= suspended,
                            other_memory => dyntrace_process_waits:other_memory(Memory, Words, Length)}}
                    || {Pid, #seen{queue = Queue, more = More, status = Status, is_still = IsStill,
                                   answer = {Memory, Function, Length, Words}}} <- maps:to_list(Leading)]).

%% Adds the requests of dyntrace_process_waits.
counted(Asked, Seen) ->
    Add = fun(Pid, Of = #seen{questions = Before}) -> Of#seen{questions = Before + maps:get(Pid, Asked)} end,
    maps:merge(Seen, maps:map(Add, maps:with(maps:keys(Asked), Seen))).
