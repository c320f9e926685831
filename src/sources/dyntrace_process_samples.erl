%% @private The source of `process_sample': the processes with the longest queues, the largest heaps and the most
%% reductions, and those that are stuck: in a native function, or runnable without getting a scheduler.
%%
%% The VM has no trace event for a growing queue. The lengths are read without signals: that does not wake the
%% processes, and takes less than a microsecond each on an idle node. A sample reads only a part of the processes, so
%% that it costs the same on every node; on a node with 100,000 processes, 20 samples read all of them. The leaders are
%% read in each sample.
%%
%% A process must itself answer a request for its memory and function. So only the reported processes are asked, and
%% asked again only after they have run. A process that does not answer at once, because it is in a long NIF, is
%% reported without its function.
-module(dyntrace_process_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).
%% The asking process
-export([asker/2]).

%% How many leaders there are in each ranking, and how many stuck processes: more than the dirty I/O schedulers of a
%% default node.
-define(LEADING, 10).
-define(STILL, 20).

%% How many processes a sample reads, in batches, with a pause after each. A batch takes 0.1 ms, or about 1 ms beside
%% busy processes. After each pause a scheduler wakes, and busy-waits before it sleeps again, which costs more than the
%% reading itself.
-define(PART, 5000).
-define(BATCH, 250).
-define(PAUSE_MS, 1).

%% The minimum time between two samples, even if the interval is shorter.
-define(LEAST_MS, 900).

%% How long a sample waits for answers, and how many askers may wait for a process that does not answer.
-define(ANSWERS_MS, 50).
-define(MAX_STUCK, 4).

%% Items that are read without a signal, and items that the process answers.
-define(READ, [message_queue_len, heap_size, reductions, status]).
-define(ASKED, [memory, current_function, message_queue_len, reductions]).

-record(seen, {queue, heap, reductions, status,
               %% Reductions since the previous sample, without our requests; 0 in the first sample.
               more = 0,
               %% The samples in a row in which it was running or runnable, without a reduction since the sample before.
               still = 0,
               questions = 0 :: 0 | 1,
               %% Its last answer.
               answer = none :: none | {Memory :: non_neg_integer(), mfa(), Queue :: non_neg_integer(),
                                        Reductions :: non_neg_integer()}}).

-type seen() :: #seen{}.

-record(samples, {at :: undefined | integer(),
                  %% The remaining processes of this round.
                  rest = [] :: [pid()],
                  %% The leaders, and the processes of the last part, whose reductions can be compared in this sample.
                  watched = #{} :: #{pid() => seen()},
                  part = #{} :: #{pid() => seen()},
                  %% Askers, and the process for which each one waits.
                  stuck = [] :: [{Asker :: pid(), pid()}]}).

%% -- The callback ----------------------------------------------------------------------

report(none) ->
    report(#samples{});
report(State = #samples{at = At}) ->
    Now = erlang:monotonic_time(millisecond),
    case is_integer(At) andalso Now - At < ?LEAST_MS of
        true -> State;
        false -> sample(State#samples{at = Now})
    end.

%% Leaves out the sampler itself.
sample(State = #samples{rest = Rest, watched = Watched, part = Before, stuck = Stuck}) ->
    Known = maps:merge(Before, Watched),
    Again = read(maps:keys(Known), Known),
    {Next, Left} = part(Rest),
    Part = read([Pid || Pid <- Next, not is_map_key(Pid, Known), Pid =/= self()], #{}),
    Seen = maps:merge(Part, Again),
    {Leading, Waiting} = asked(leading(Seen),
                               [Waits || Waits = {Asker, _} <- Stuck, is_process_alive(Asker)]),
    _ = [report_sample(Pid, Leads) || {Pid, Leads} <- maps:to_list(Leading)],
    IsWhole = Rest =:= [] andalso Left =:= [],
    State#samples{rest = Left, watched = Leading, part = watched_once(IsWhole, Part, Seen), stuck = Waiting}.

%% If one part contains all processes of the node, each sample compares all of them.
watched_once(true, _, Seen) -> Seen;
watched_once(false, Part, _) -> Part.

%% A process that has run since its answer may be in another function now.
report_sample(Pid, Seen = #seen{queue = Queue, heap = Heap, more = More, status = Status, answer = Answer}) ->
    {Memory, Function} = case {Answer, has_run(Seen)} of
                             {none, _} -> {Heap * erlang:system_info(wordsize), []};
                             {{Bytes, _, _, _}, true} -> {Bytes, []};
                             {{Bytes, Mfa, _, _}, false} -> {Bytes, Mfa}
                         end,
    ok = dyntrace:report(process_sample, {Pid, Queue, Memory, More, Function, Status}).

%% -- Reading ---------------------------------------------------------------------------

part([]) -> split(erlang:processes());
part(Rest) -> split(Rest).

split(Processes) ->
    lists:split(min(?PART, length(Processes)), Processes).

read(Pids, Before) ->
    maps:from_list(read(Pids, 1, Before)).

read([], _, _) ->
    [];
read([Pid | Pids], N, Before) ->
    ok = pause(N),
    case process_info(Pid, ?READ) of
        undefined -> read(Pids, N + 1, Before);
        Info -> [{Pid, seen(Info, maps:get(Pid, Before, none))} | read(Pids, N + 1, Before)]
    end.

%% Lets other processes of the scheduler run between batches.
pause(N) when N rem ?BATCH =:= 0 -> receive after ?PAUSE_MS -> ok end;
pause(_) -> ok.

seen([{_, Queue}, {_, Heap}, {_, Reductions}, {_, Status}], Before) ->
    Seen = #seen{queue = Queue, heap = Heap, reductions = Reductions, status = Status},
    case Before of
        none -> Seen;
        #seen{reductions = Earlier, questions = Questions, answer = Answer} ->
            More = max(0, Reductions - Earlier - Questions),
            Seen#seen{more = More, still = still(More, Status, Before), answer = Answer}
    end.

still(0, Now, #seen{status = Earlier, still = Samples})
  when Now =:= running orelse Now =:= runnable, Earlier =:= running orelse Earlier =:= runnable ->
    Samples + 1;
still(_, _, _) ->
    0.

%% -- Leading ---------------------------------------------------------------------------

leading(Seen) ->
    List = maps:to_list(Seen),
    Rankings = [{#seen.queue, ?LEADING}, {#seen.heap, ?LEADING}, {#seen.more, ?LEADING}, {#seen.still, ?STILL}],
    maps:with(lists:usort(lists:append([most(Field, Count, List) || {Field, Count} <- Rankings])), Seen).

most(Field, Count, List) ->
    Sorted = lists:reverse(lists:keysort(1, [{element(Field, Seen), Pid} || {Pid, Seen} <- List,
                                                                            element(Field, Seen) > 0])),
    [Pid || {_, Pid} <- lists:sublist(Sorted, Count)].

%% -- Asking ----------------------------------------------------------------------------

%% Adds the answers that arrive in time. One process asks all in turn. If a process does not answer, the asker
%% continues to wait for it, and that process is not asked again until it has answered.
asked(Leading, Stuck) ->
    case [Pid || {Pid, Seen} <- maps:to_list(Leading), has_run(Seen), not lists:keymember(Pid, 2, Stuck)] of
        [] ->
            {Leading, Stuck};
        Pids ->
            Asker = spawn_link(?MODULE, asker, [self(), Pids]),
            Timer = erlang:start_timer(?ANSWERS_MS, self(), Asker),
            {Answered, Left} = answered(Pids, Asker, Timer, Leading),
            {Answered, bounded([{Asker, Pid} || Pid <- lists:sublist(Left, 1)] ++ Stuck)}
    end.

bounded(Stuck) when length(Stuck) =< ?MAX_STUCK ->
    Stuck;
bounded(Stuck) ->
    {Asker, _} = lists:last(Stuck),
    true = unlink(Asker),
    true = exit(Asker, kill),
    lists:droplast(Stuck).

%% A request costs one reduction.
has_run(#seen{queue = Queue, reductions = Reductions, answer = {_, _, Queue, Then}}) -> Reductions > Then + 1;
has_run(_) -> true.

%% A sensitive process makes no trace events.
-spec asker(pid(), [pid()]) -> ok.
asker(To, Pids) ->
    _ = process_flag(sensitive, true),
    lists:foreach(fun(Pid) -> To ! {answer, self(), process_info(Pid, ?ASKED)} end, Pids).

%% Also returns the processes that have not answered. The sampler ignores late answers.
answered([], _, Timer, Leading) ->
    _ = erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    {Leading, []};
answered([Pid | Pids], Asker, Timer, Leading) ->
    receive
        {answer, Asker, undefined} ->
            answered(Pids, Asker, Timer, maps:remove(Pid, Leading));
        {answer, Asker, Values} ->
            Answer = list_to_tuple([Value || {_, Value} <- Values]),
            #{Pid := Seen} = Leading,
            answered(Pids, Asker, Timer, Leading#{Pid := Seen#seen{answer = Answer, questions = 1}});
        {timeout, Timer, Asker} ->
            {Leading, [Pid | Pids]}
    end.
