%% @private The source of `process_sample': the processes with the longest queues, the largest heaps and the most
%% reductions.
%%
%% No tracer is told of a queue that grows. What tells it is read without a signal: it wakes no process, and takes less
%% than a microsecond on an idle node. A sample reads a part of the processes, so that it costs the same on every node;
%% a node of 100,000 processes is read once in 20 samples. Those that lead stay watched, and are read each time.
%%
%% Memory and function are answered by the process itself. So only those that are reported are asked, and again when
%% they have run. A process that does not answer at once, in a long native function, is reported without its function.
-module(dyntrace_process_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).
%% The process that asks
-export([asker/2]).

%% How many lead by each of the three.
-define(LEADING, 10).

%% How many processes a sample reads, in batches, with a pause after each. A batch takes 0.1 ms, some 1 ms beside busy
%% processes. After each pause a scheduler wakes, and waits busily before it sleeps again: that costs more than the
%% reading.
-define(PART, 5000).
-define(BATCH, 250).
-define(PAUSE_MS, 1).

%% With a shorter interval of samples, processes are read no more often than that.
-define(LEAST_MS, 900).

%% How long a sample waits for answers, and how many askers may wait for a process that does not answer.
-define(ANSWERS_MS, 50).
-define(MAX_STUCK, 4).

%% Read without a signal; asked.
-define(READ, [message_queue_len, heap_size, reductions, status]).
-define(ASKED, [memory, current_function, message_queue_len, reductions]).

-record(seen, {queue, heap, reductions, status,
               %% Reductions since the sample before, without our question; 0 when it is read for the first time.
               more = 0,
               questions = 0 :: 0 | 1,
               %% What it has answered last.
               answer = none :: none | {Memory :: non_neg_integer(), mfa(), Queue :: non_neg_integer(),
                                        Reductions :: non_neg_integer()}}).

-type seen() :: #seen{}.

-record(samples, {at :: undefined | integer(),
                  %% Processes of this round that are left.
                  rest = [] :: [pid()],
                  %% Those that lead, and those of the last part, which tell by now what they have done since.
                  watched = #{} :: #{pid() => seen()},
                  part = #{} :: #{pid() => seen()},
                  %% Askers, and the process that each one waits for.
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

%% Not the sampler itself.
sample(State = #samples{rest = Rest, watched = Watched, part = Before, stuck = Stuck}) ->
    Known = maps:merge(Before, Watched),
    Again = read(maps:keys(Known), Known),
    {Next, Left} = part(Rest),
    Part = read([Pid || Pid <- Next, not is_map_key(Pid, Known), Pid =/= self()], #{}),
    Seen = maps:merge(Part, Again),
    {Leading, Waiting} = asked(leading(Seen),
                               [Waits || Waits = {Asker, _} <- Stuck, is_process_alive(Asker)]),
    _ = [told(Pid, Leads) || {Pid, Leads} <- maps:to_list(Leading)],
    IsWhole = Rest =:= [] andalso Left =:= [],
    State#samples{rest = Left, watched = Leading, part = watched_once(IsWhole, Part, Seen), stuck = Waiting}.

%% Where one part is the whole node, all tell each time what they have done.
watched_once(true, _, Seen) -> Seen;
watched_once(false, Part, _) -> Part.

told(Pid, #seen{queue = Queue, heap = Heap, more = More, status = Status, answer = Answer}) ->
    {Memory, Function} = case Answer of
                             none -> {Heap * erlang:system_info(wordsize), []};
                             {Bytes, Mfa, _, _} -> {Bytes, Mfa}
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
    _ = N rem ?BATCH =:= 0 andalso receive after ?PAUSE_MS -> ok end,
    case process_info(Pid, ?READ) of
        undefined -> read(Pids, N + 1, Before);
        Info -> [{Pid, seen(Info, maps:get(Pid, Before, none))} | read(Pids, N + 1, Before)]
    end.

seen([{_, Queue}, {_, Heap}, {_, Reductions}, {_, Status}], Before) ->
    Seen = #seen{queue = Queue, heap = Heap, reductions = Reductions, status = Status},
    case Before of
        none -> Seen;
        #seen{reductions = Earlier, questions = Questions, answer = Answer} ->
            Seen#seen{more = max(0, Reductions - Earlier - Questions), answer = Answer}
    end.

%% -- Leading ---------------------------------------------------------------------------

leading(Seen) ->
    List = maps:to_list(Seen),
    maps:with(lists:usort(lists:append([most(Field, List) || Field <- [#seen.queue, #seen.heap, #seen.more]])), Seen).

most(Field, List) ->
    Sorted = lists:reverse(lists:keysort(1, [{element(Field, Seen), Pid} || {Pid, Seen} <- List,
                                                                            element(Field, Seen) > 0])),
    [Pid || {_, Pid} <- lists:sublist(Sorted, ?LEADING)].

%% -- Asking ----------------------------------------------------------------------------

%% Adds the answers that are there in time. One process asks all in turn; when one of these does not answer, the asker
%% is left to wait for it, and nobody asks that one again meanwhile.
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

%% A question is one reduction.
has_run(#seen{queue = Queue, reductions = Reductions, answer = {_, _, Queue, Then}}) -> Reductions > Then + 1;
has_run(_) -> true.

%% A sensitive process makes no trace events.
-spec asker(pid(), [pid()]) -> ok.
asker(To, Pids) ->
    _ = process_flag(sensitive, true),
    lists:foreach(fun(Pid) -> To ! {answer, self(), process_info(Pid, ?ASKED)} end, Pids).

%% With those that have not answered. What comes too late is ignored by the sampler.
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
