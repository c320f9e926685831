%% @private Data from the dictionaries of processes: the initial call, as proc_lib translates it, and a label, which is
%% that of proc_lib (from OTP 27 on) or, without one, the value of the first existing key of `label_keys'.
%%
%% A process answers such a request itself, so it is woken and scheduled. Therefore each process is asked only once, by
%% processes that wait for the answers, at a rate of some thousand per second. A table caches the answers until a dump
%% no longer finds the process.
-module(dyntrace_initial_calls).

-export([new/1, of_process/4, message/2, is_idle/1, purge/2, purge/1]).
%% A process
-export([asker/2]).

-export_type([calls/0, purge/0, identity/0]).

%% Together the askers ask at most ASKERS * 1000 / PAUSE_MS processes per second.
-define(ASKERS, 20).
-define(PAUSE_MS, 4).

%% Before OTP 26.2 a process copies its whole dictionary, whose size is unknown; it may be most of the heap. The copy
%% takes at most the time and memory of a major collection of that process. Processes with a heap larger than FAT_HEAP,
%% in words, are asked one at a time; those with a heap larger than MAX_HEAP are not asked.
-define(FAT_HEAP, 1000000).
-define(MAX_HEAP, 125000000).

%% While the trace flag `running' is set, an answer leaves a hibernating process with a heap of 2 kB instead of 0.2 kB,
%% until it hibernates again. Then at most this many processes are asked.
-define(MOST_BESIDE_RUNNING, 10000).

%% A larger label, in words without its binaries, is not passed on: its text would be cut anyway.
-define(MAX_WORDS, 100000).

%% A larger label, in bytes with its binaries, is reported once, but not cached.
-define(MAX_LABEL, 8000).

-define(CUT, '...').

-define(PROC_LIB, {proc_lib, init_p, _}).

-type initial() :: mfa().
-type identity() :: {initial(), Label :: term()}.
%% The label of a process without one is ''.

-record(calls, {table :: ets:tid(),
                idle :: [pid()],
                waiting = [] :: [pid()],
                %% Processes with a large heap, which are asked last, and the asker that asks one of them.
                fat = [] :: [pid()],
                fat_asker = none :: none | pid(),
                %% Whether all processes are asked, because they may have labels.
                all :: boolean()}).

-opaque calls() :: #calls{}.

-opaque purge() :: {Dump :: pos_integer(), ets:tid(), Continuation :: term()}.

%% Called by the process to which the askers send their answers. They are linked to it.
-spec new(LabelKeys :: [atom()]) -> calls().
new(LabelKeys) ->
    Items = items(LabelKeys),
    To = self(),
    Askers = [spawn_opt(?MODULE, asker, [Items, To], [link, {priority, high}, {fullsweep_after, 0}])
              || _ <- lists:seq(1, ?ASKERS)],
    #calls{table = ets:new(?MODULE, [private]), idle = Askers, all = lists:member(label, Items)}.

%% The cached data of the process. Missing data arrives later, as an answer. `once' is for calls outside a dump: the
%% answer is not cached, because only dumps remove the data of processes that have ended.
-spec of_process(pid(), initial(), Dump :: pos_integer() | once, calls()) -> {initial(), Label :: term(), calls()}.
of_process(Pid, Call, Dump, Calls = #calls{table = Table}) ->
    case ets:lookup(Table, Pid) of
        [{_, Known, Label, _}] ->
            _ = [true = ets:update_element(Table, Pid, {4, Dump}) || Dump =/= once],
            {known(Known, Call), Label, Calls};
        [] ->
            {Call, '', to_ask(Pid, Call, Dump, Calls)}
    end.

known(unknown, Call) -> Call;
known(Known, _) -> Known.

to_ask(Pid, Call, Dump, Calls = #calls{table = Table, waiting = Waiting}) ->
    case has_notes(Call, Calls) andalso may_ask(Table) of
        true -> ask(noted(Table, Pid, Dump, Calls#calls{waiting = [Pid | Waiting]}));
        false -> Calls
    end.

has_notes(?PROC_LIB, _) -> true;
has_notes(_, #calls{all = All}) -> All.

may_ask(Table) ->
    ets:info(Table, size) < ?MOST_BESIDE_RUNNING orelse
        case dyntrace_autotracer:info() of
            #{processes := Flags} -> not lists:member(running, Flags);
            off -> true
        end.

noted(Table, Pid, Dump, Calls) ->
    true = ets:insert(Table, {Pid, unknown, '', Dump}),
    Calls.

ask(Calls = #calls{idle = [Asker | Idle], waiting = [Pid | Waiting]}) ->
    Asker ! {ask, Pid, ?FAT_HEAP},
    ask(Calls#calls{idle = Idle, waiting = Waiting});
ask(Calls = #calls{idle = [Asker | Idle], fat = [Pid | Fat], fat_asker = none}) ->
    Asker ! {ask, Pid, ?MAX_HEAP},
    Calls#calls{idle = Idle, fat = Fat, fat_asker = Asker};
ask(Calls) ->
    Calls.

%% Handles the answer of an asker; `ignored': the message is not an answer.
-spec message(term(), calls()) -> {answer, pid(), identity(), calls()} | {no_answer, calls()} | ignored.
message({?MODULE, Asker, Pid, Answer}, Calls = #calls{table = Table, idle = Idle, fat = Fat, fat_asker = FatAsker}) ->
    FatAsks = case FatAsker of
                  Asker -> none;
                  _ -> FatAsker
              end,
    ToAsk = [Pid || Answer =:= too_fat, Asker =/= FatAsker],
    _ = [true = ets:match_delete(Table, {Pid, '_', '_', once}) || ToAsk =:= []],
    answered(Pid, Answer, ask(Calls#calls{idle = [Asker | Idle], fat = ToAsk ++ Fat, fat_asker = FatAsks}));
message(_, _) ->
    ignored.

answered(_, too_fat, Calls) ->
    {no_answer, Calls};
answered(Pid, Answer, Calls = #calls{table = Table}) ->
    case {Answer, process_info(Pid, initial_call)} of
        {{unknown, ''}, _} ->
            {no_answer, Calls};
        {_, undefined} ->
            {no_answer, Calls};
        {{Known, Label}, {initial_call, Call}} ->
            _ = ets:update_element(Table, Pid, [{2, Known}, {3, cached(Label)}]),
            {answer, Pid, {known(Known, Call), Label}, Calls}
    end.

cached(Label) ->
    case erlang:external_size(Label) > ?MAX_LABEL of
        true -> ?CUT;
        false -> Label
    end.

%% Whether all pending requests have been answered.
-spec is_idle(calls()) -> boolean().
is_idle(#calls{idle = Idle, waiting = Waiting, fat = Fat}) ->
    Waiting =:= [] andalso Fat =:= [] andalso length(Idle) =:= ?ASKERS.

%% Removes, batch by batch, the processes that a dump has not found.
-spec purge(Dump :: pos_integer(), calls()) -> purge().
purge(Dump, #calls{table = Table}) ->
    {Dump, Table, start}.

-define(BATCH, 100).

%% Removes one batch.
-spec purge(purge()) -> purge() | done.
purge({Dump, Table, start}) ->
    true = ets:safe_fixtable(Table, true),
    purged(Dump, Table, ets:select(Table, [{{'$1', '_', '_', '$2'}, [], [{{'$1', '$2'}}]}], ?BATCH));
purge({Dump, Table, Continuation}) ->
    purged(Dump, Table, ets:select(Continuation)).

purged(_, Table, '$end_of_table') ->
    true = ets:safe_fixtable(Table, false),
    done;
purged(Dump, Table, {Processes, Continuation}) ->
    _ = [ets:delete(Table, Pid) || {Pid, Seen} <- Processes, Seen < Dump],
    {Dump, Table, Continuation}.

%% -- The askers ------------------------------------------------------------------------

%% The items of process_info/2 that this release supports: single dictionary keys from OTP 26.2 on, the label from
%% OTP 27 on.
items(LabelKeys) ->
    Keys = ['$initial_call' | LabelKeys],
    Dictionary = case is_item({dictionary, '$initial_call'}) of
                     true -> [{dictionary, Key} || Key <- Keys];
                     false -> [{dictionary, Keys}]
                 end,
    [label || is_item(label)] ++ Dictionary.

is_item(Item) ->
    try is_tuple(process_info(self(), Item))
    catch error:badarg -> false
    end.

%% A sensitive process makes no trace events.
-spec asker(Items :: [term()], pid()) -> no_return().
asker(Items, To) ->
    _ = process_flag(sensitive, true),
    asking(Items, To).

asking(Items, To) ->
    receive
        {ask, Pid, MaxHeap} ->
            To ! {?MODULE, self(), Pid, asked(Items, Pid, MaxHeap)},
            %% The dictionary of another process is garbage.
            true = erlang:garbage_collect(),
            receive after ?PAUSE_MS -> asking(Items, To) end
    end.

asked([{dictionary, Keys}], Pid, MaxHeap) when is_list(Keys) ->
    case process_info(Pid, total_heap_size) of
        {total_heap_size, Words} when Words > MaxHeap -> too_fat;
        _ -> noted(Keys, process_info(Pid, dictionary))
    end;
asked(Items, Pid, _) ->
    case process_info(Pid, Items) of
        undefined -> {unknown, ''};
        [{label, Label} | Values] -> answer(values(Values), [Label]);
        Values -> answer(values(Values), [])
    end.

noted(Keys, {dictionary, Dictionary}) -> answer([value(Key, Dictionary) || Key <- Keys], []);
noted(_, undefined) -> {unknown, ''}.

value(Key, Dictionary) ->
    case lists:keyfind(Key, 1, Dictionary) of
        {_, Value} -> Value;
        false -> undefined
    end.

values(Values) ->
    [Value || {_, Value} <- Values].

answer([Initial | Noted], Labels) ->
    {initial(Initial), label(Labels ++ Noted)}.

%% Programs can store any term there.
initial({M, F, A}) when is_atom(M), is_atom(F), is_integer(A), A >= 0, A =< 255 -> {M, F, A};
initial({M, F, Args}) when is_atom(M), is_atom(F), is_list(Args) -> initial({M, F, arity(Args, 0)});
initial(_) -> unknown.

arity([_ | Rest], N) when N < 256 -> arity(Rest, N + 1);
arity([], N) -> N;
arity(_, _) -> none.

label([undefined | Labels]) -> label(Labels);
label([Label | _]) ->
    case erts_debug:flat_size(Label) > ?MAX_WORDS of
        true -> ?CUT;
        false -> Label
    end;
label([]) ->
    ''.
