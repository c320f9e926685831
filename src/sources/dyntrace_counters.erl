%% @private The source of `vm_counter': the VM's counters, one event per counter and sample.
%%
%% Memory, collections, I/O and the time of the schedulers are counted per scheduler: to read them, the VM asks every
%% scheduler and waits for its answer. The rest is read at once. Processes, tables and blocks are not iterated over.
-module(dyntrace_counters).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).
%% The counters
-export([counters/0, sample/1]).

-export_type([counter/0, value/0, sample/0]).

-type counter() :: {Name :: string(), Unit :: string(), level | total, question(),
                    Read :: fun((term()) -> integer() | undefined)}.
%% A level is the value at the time of the sample. A total is counted from the start of the node. A counter whose value
%% is undefined is left out.

-type question() :: memory | memory_limit | open_files | cgroup | nodes | {system_info | statistics, Item :: atom()}.

-type value() :: {Name :: string(), Value :: integer(), Unit :: string()}.
%% The values of the probe's fields.

-opaque sample() :: {Schedulers :: [{pos_integer(), Active :: non_neg_integer(), Time :: non_neg_integer()}],
                     {CpuCgroup :: [dyntrace_cgroup:folder()], MemoryLimit :: non_neg_integer() | undefined}}.
%% The data that the next sample needs.

%% -- The counters ----------------------------------------------------------------------

%% The counters of the node, as in docs/counters.md; per_scheduler/3 has those of single schedulers.
-spec counters() -> [counter()].
counters() ->
    [{"processes", "number", level, {system_info, process_count}, fun same/1},
     {"ports", "number", level, {system_info, port_count}, fun same/1},
     {"atoms", "number", level, {system_info, atom_count}, fun same/1},
     {"ets_tables", "number", level, {system_info, ets_count}, fun same/1},
     {"process_limit", "number", level, {system_info, process_limit}, fun same/1},
     {"port_limit", "number", level, {system_info, port_limit}, fun same/1},
     {"atom_limit", "number", level, {system_info, atom_limit}, fun same/1},
     {"connected_nodes", "number", level, nodes, fun same/1},
     {"open_files", "number", level, open_files, fun first/1},
     {"open_files_limit", "number", level, open_files, fun({_, Limit}) -> Limit end},
     {"cpu_quota", "per mille", level, cgroup, fun(Cpu) -> maps:get(quota, Cpu, undefined) end},
     {"cpu_throttled", "microseconds", total, cgroup, fun(Cpu) -> maps:get(throttled, Cpu, undefined) end},
     {"memory_limit", "bytes", level, memory_limit, fun same/1},
     {"reductions", "number", total, {statistics, reductions}, fun first/1},
     {"context_switches", "number", total, {statistics, context_switches}, fun first/1},
     {"gc_count", "number", total, {statistics, garbage_collection}, fun first/1},
     {"gc_reclaimed", "words", total, {statistics, garbage_collection}, fun({_, Words, _}) -> Words end},
     {"io_input", "bytes", total, {statistics, io}, fun({{input, Bytes}, _}) -> Bytes end},
     {"io_output", "bytes", total, {statistics, io}, fun({_, {output, Bytes}}) -> Bytes end},
     {"run_queue", "number", level, {statistics, run_queue_lengths_all}, fun normal/1},
     {"run_queue_dirty_cpu", "number", level, {statistics, run_queue_lengths_all}, fun dirty_cpu/1},
     {"run_queue_dirty_io", "number", level, {statistics, run_queue_lengths_all}, fun lists:last/1}]
        ++ [{"memory_" ++ atom_to_list(Kind), "bytes", level, memory, fun(#{Kind := Bytes}) -> Bytes end}
            || Kind <- [total, processes, processes_used, system, atom, atom_used, binary, code, ets]].

same(Value) -> Value.

first(Values) -> element(1, Values).

%% The list contains the length of each normal run queue, then those of the two dirty run queues.
normal(Lengths) -> lists:sum(lists:sublist(Lengths, length(Lengths) - 2)).

dirty_cpu(Lengths) -> lists:nth(length(Lengths) - 1, Lengths).

%% The values, and the argument of the next call. The first sample, and the first one after an interruption, has no
%% utilization.
-spec sample(none | sample()) -> {[value()], sample()}.
sample(none) ->
    Cgroups = dyntrace:kernel_file(<<"/proc/self/cgroup">>),
    MemoryLimit = dyntrace_cgroup:memory(dyntrace_cgroup:folders(Cgroups, <<"memory">>), fun dyntrace:kernel_file/1),
    sample({[], {dyntrace_cgroup:folders(Cgroups, <<"cpu">>), MemoryLimit}});
sample({Before, Host}) ->
    Counters = counters(),
    Answers = answers(lists:usort([Question || {_, _, _, Question, _} <- Counters]), Host),
    Now = lists:sort(erlang:statistics(scheduler_wall_time_all)),
    {[{Name, Value, Unit}
      || {Name, Unit, _, Question, Read} <- Counters, is_map_key(Question, Answers),
         Value <- [Read(maps:get(Question, Answers))], is_integer(Value)]
     ++ run_queues(maps:get({statistics, run_queue_lengths_all}, Answers))
     ++ utilizations(Before, Now), {Now, Host}}.

answers(Questions, Host) ->
    maps:from_list([{Question, Answer} || Question <- Questions, {ok, Answer} <- [answer(Question, Host)]]).

%% erlang:memory/0 fails if an allocator is disabled (`+Mea false').
answer(memory, _) ->
    try {ok, maps:from_list(erlang:memory())}
    catch error:notsup -> unknown
    end;
answer(open_files, _) ->
    {ok, dyntrace:open_files()};
answer(memory_limit, {_, MemoryLimit}) ->
    {ok, MemoryLimit};
answer(cgroup, {Cgroup, _}) ->
    {ok, dyntrace_cgroup:cpu(Cgroup, fun dyntrace:kernel_file/1)};
answer(nodes, _) ->
    {ok, dyntrace_status:connected()};
answer({system_info, Item}, _) ->
    {ok, erlang:system_info(Item)};
answer({statistics, Item}, _) ->
    {ok, erlang:statistics(Item)}.

run_queues(Lengths) ->
    [{"run_queue_" ++ integer_to_list(N), Length, "number"}
     || {N, Length} <- numbered(lists:sublist(Lengths, length(Lengths) - 2))].

%% The order of schedulers is: normal, dirty CPU, dirty I/O. Normal schedulers that are offline have no utilization.
utilizations(Before, Now) when length(Before) =:= length(Now) ->
    PerMille = lists:zipwith(fun per_mille/2, Before, Now),
    {Normal, Dirty} = lists:split(erlang:system_info(schedulers), PerMille),
    {DirtyCpu, DirtyIo} = lists:split(erlang:system_info(dirty_cpu_schedulers), Dirty),
    Online = lists:sublist(Normal, erlang:system_info(schedulers_online)),
    [{Kind ++ "_utilization_" ++ integer_to_list(N), Value, "per mille"}
     || {Kind, Values} <- [{"scheduler", Online}, {"dirty_cpu", DirtyCpu}, {"dirty_io", DirtyIo}],
        {N, Value} <- numbered(Values)];
utilizations(_, _) ->
    [].

per_mille({N, Active, Time}, {N, Active2, Time2}) when Time2 > Time ->
    max(0, min(1000, (Active2 - Active) * 1000 div (Time2 - Time)));
per_mille(_, _) ->
    0.

numbered(Values) ->
    lists:zip(lists:seq(1, length(Values)), Values).

%% -- The callback ----------------------------------------------------------------------

report(Before) ->
    ok = measure(get(?MODULE)),
    {Values, Now} = sample(Before),
    _ = [ok = dyntrace:report(vm_counter, {Name, bounded(Value), Unit}) || {Name, Value, Unit} <- Values],
    Now.

%% Called once per process, because the VM counts the calls. It measures scheduler times until all processes that have
%% set the flag have cleared it or ended.
measure(measuring) ->
    ok;
measure(undefined) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    _ = put(?MODULE, measuring),
    ok.

%% The field is a signed 64-bit integer. No counter reaches the limit during a node's life.
bounded(Value) ->
    min(Value, (1 bsl 63) - 1).
