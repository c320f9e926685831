%% The probe vm_counter: each counter compared with Erlang's own value, and the process that samples.
-module(counters_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, call/2, until_following/3, until_sampled/2]).

-define(MB, 1000000).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [documented, levels, totals, memory, schedulers, dirty_schedulers, open_files, blocked_files, blocked_node,
     cgroups, cpu_quota, memory_limit, lttng, at_intervals, held_up, no_trace_events, without_memory,
     switched_on_and_off, killed, others_measure_schedulers, large_values].

%% -- Values --------------------------------------------------------------------------------

%% The table in the documentation, compared with the names and units of a sample.
documented(Config) ->
    {ok, Text} = file:read_file(filename:join(test_shell:project(), "docs/counters.md")),
    {match, Rows} = re:run(Text, "^\\| `(\\w+)` \\| ([\\w ]+) \\| (\\w+) \\|", [global, multiline,
                                                                       {capture, all_but_first, list}]),
    Table = [{Name, Unit, Kind} || [Name, Unit, Kind] <- Rows],
    ?assertEqual([{Name, Unit, atom_to_list(Kind)} || {Name, Unit, Kind, _, _} <- dyntrace_counters:counters()],
                 [Row || Row = {Name, _, _} <- Table, lists:suffix("_N", Name) =:= false]),
    %% A scheduler that is offline has a run queue, but no utilization.
    _ = call(Config, fun() -> erlang:system_flag(schedulers_online, 1) end),
    Samples = sampled([], fun(_) -> ok end, Config),
    Names = fun(Name) -> re:replace(Name, "_\\d+$", "_N", [{return, list}]) end,
    Documented = lists:usort([{Name, Unit} || {Name, Unit, _} <- Table]),
    Sampled = lists:usort([{Names(Name), binary_to_list(Unit)}
                           || {vm_counter, #{name := Name, unit := Unit}} <- lists:append(Samples)]),
    ?assertEqual([], Sampled -- Documented),
    %% These are left out where there is no quota, or where the kernel does not count open files.
    ?assertEqual([], [Name || {Name, _} <- Documented -- Sampled,
                              not lists:member(Name, ["cpu_quota", "cpu_throttled", "open_files"])]),
    Count = fun(Item) -> call(Config, fun() -> erlang:system_info(Item) end) end,
    ?assertEqual([{"dirty_cpu_utilization", Count(dirty_cpu_schedulers)},
                  {"dirty_io_utilization", Count(dirty_io_schedulers)},
                  {"run_queue", Count(schedulers)},
                  {"scheduler_utilization", 1}],
                 [{Kind, numbered(Kind, lists:last(Samples))}
                  || Kind <- ["dirty_cpu_utilization", "dirty_io_utilization", "run_queue", "scheduler_utilization"]]).

%% The last N for which there is a name Kind_N; all names from 1 to N exist.
numbered(Kind, Sample) ->
    Numbers = lists:sort([binary_to_integer(N) || {_, #{name := Name}} <- Sample,
                                                  {match, [N]} <- [re:run(Name, "^" ++ Kind ++ "_(\\d+)$",
                                                                          [{capture, all_but_first, binary}])]]),
    ?assertEqual(lists:seq(1, length(Numbers)), Numbers),
    length(Numbers).

levels(Config) ->
    Consumer = counting([{sample_interval, 200}], Config),
    Levels = [{<<"processes">>, process_count}, {<<"ports">>, port_count}, {<<"ets_tables">>, ets_count},
              {<<"atoms">>, atom_count}],
    until_level(Levels, Consumer, Config),
    Was = said(Levels, Config),
    Owner = call(Config, fun() -> made(101, 7) end),
    until_level(Levels, Consumer, Config),
    Is = said(Levels, Config),
    ?assertEqual([102, 7, 101, 101], lists:zipwith(fun(A, B) -> B - A end, Was, Is)),
    true = call(Config, fun() -> exit(Owner, kill) end),
    until_level(Levels, Consumer, Config),
    _ = test_bpftrace:stop(Consumer).

%% Values without the process that makes the call.
said(Levels, Config) ->
    call(Config, fun() ->
                         [erlang:system_info(Item) - length([one || Item =:= process_count]) || {_, Item} <- Levels]
                 end).

%% On the node: a permanent process with Count tables, processes and atoms, and Ports ports.
made(Count, Ports) ->
    Self = self(),
    Owner = spawn(fun() ->
                          [ets:new(test, []) || _ <- lists:seq(1, Count)],
                          [spawn_link(fun test_autotracer:sink/0) || _ <- lists:seq(1, Count)],
                          [_ = list_to_atom("counters_SUITE " ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
                          [open_port({spawn, "cat"}, []) || _ <- lists:seq(1, Ports)],
                          Self ! {self(), made},
                          receive stop -> ok end
                  end),
    receive {Owner, made} -> Owner end.

%% A sample has the values that the VM reports.
until_level(Levels, Consumer, Config) ->
    test_wait:until("the levels that Erlang says",
                    fun() ->
                            Sample = values(lists:last(samples(Consumer))),
                            Sampled = [maps:get(Name, Sample) || {Name, _} <- Levels],
                            case said(Levels, Config) of
                                Sampled -> true;
                                Said -> {Said, Sampled}
                            end
                    end).

%% A sample taken between two readings has values between theirs. A table that is created after the first reading marks
%% the samples that were taken after it.
totals(Config) ->
    Consumer = counting([{sample_interval, 200}], Config),
    Port = call(Config, fun() -> owned_port() end),
    First = call(Config, fun read/0),
    Marked = after_mark(Consumer, Config),
    between(First, Marked, call(Config, fun read/0)),
    call(Config, fun() ->
                         [true = erlang:garbage_collect() || _ <- lists:seq(1, 200)],
                         true = port_command(Port, binary:copy(<<"x">>, ?MB))
                 end),
    test_wait:until("a program's output",
                    fun() -> input(call(Config, fun read/0)) - input(First) >= ?MB end),
    Second = call(Config, fun read/0),
    Later = after_mark(Consumer, Config),
    between(Second, Later, call(Config, fun read/0)),
    [?assert(maps:get(Name, Later) - maps:get(Name, First) >= Least, {Name, First, Later})
     || {Name, Least} <- [{<<"gc_count">>, 200}, {<<"io_input">>, ?MB}, {<<"io_output">>, ?MB},
                          {<<"context_switches">>, 10}, {<<"reductions">>, 1000}]],
    %% No total ever decreases.
    Samples = [values(Sample) || Sample <- samples(Consumer)],
    [?assertEqual(lists:sort(Values), Values)
     || Name <- maps:keys(First), Values <- [[maps:get(Name, Sample) || Sample <- Samples]]],
    _ = test_bpftrace:stop(Consumer).

input(#{<<"io_input">> := Bytes}) -> Bytes.

%% On the node: Erlang's own totals.
read() ->
    {Reductions, _} = erlang:statistics(reductions),
    {Switches, 0} = erlang:statistics(context_switches),
    {Count, Words, 0} = erlang:statistics(garbage_collection),
    {{input, Input}, {output, Output}} = erlang:statistics(io),
    #{<<"reductions">> => Reductions, <<"context_switches">> => Switches, <<"gc_count">> => Count,
      <<"gc_reclaimed">> => Words, <<"io_input">> => Input, <<"io_output">> => Output}.

%% On the node: a port whose program echoes its input, owned by a permanent process.
owned_port() ->
    Self = self(),
    Owner = spawn(fun() -> Self ! {self(), open_port({spawn, "cat"}, [binary])}, test_autotracer:sink() end),
    receive {Owner, Port} -> Port end.

after_mark(Consumer, Config) ->
    _ = call(Config, fun() -> made(1, 0) end),
    Tables = call(Config, fun() -> erlang:system_info(ets_count) end),
    IsMarked = fun(Sample) -> #{<<"ets_tables">> := Count} = values(Sample), Count >= Tables end,
    %% Searches from the end, because an earlier sample may have tables that no longer exist.
    After = fun() -> lists:reverse(lists:takewhile(IsMarked, lists:reverse(samples(Consumer)))) end,
    test_wait:until("two samples after the mark", fun(Samples) -> length(Samples) >= 2 end, After),
    values(lists:nth(2, After())).

between(Before, Sample, After) ->
    [?assert(maps:get(Name, Before) =< Value andalso Value =< maps:get(Name, After), {Name, Before, Value, After})
     || Name <- maps:keys(Before), Value <- [maps:get(Name, Sample)]].

memory(Config) ->
    Consumer = counting([{sample_interval, 200}], Config),
    Quiet = [atom, code, ets],
    test_wait:until("the memory that Erlang says",
                    fun() ->
                            Sample = values(lists:last(samples(Consumer))),
                            Sampled = [maps:get(of_memory(Kind), Sample) || Kind <- Quiet],
                            case call(Config, fun() -> [erlang:memory(Kind) || Kind <- Quiet] end) of
                                Sampled -> true;
                                Said -> {Said, Sampled}
                            end
                    end),
    Before = after_mark(Consumer, Config),
    Keeper = call(Config, fun() ->
                                  spawn(fun() -> kept(binary:copy(<<"x">>, 55 * ?MB), lists:seq(1, 6 * ?MB)) end)
                          end),
    %% The growth may be less than the retained size, because other memory is freed meanwhile.
    test_wait:until("the memory has grown",
                    fun() ->
                            Grown = after_mark(Consumer, Config),
                            By = fun(Kind) ->
                                         maps:get(of_memory(Kind), Grown) - maps:get(of_memory(Kind), Before)
                                 end,
                            [] =:= [Kind || {Kind, Bytes} <- [{binary, 50 * ?MB}, {processes, 80 * ?MB},
                                                              {processes_used, 80 * ?MB}, {system, 50 * ?MB},
                                                              {total, 130 * ?MB}],
                                            By(Kind) < Bytes]
                                orelse {Before, Grown}
                    end),
    [?assertEqual(maps:get(of_memory(processes), Sample) + maps:get(of_memory(system), Sample),
                  maps:get(of_memory(total), Sample)) || Sample <- [values(Sample) || Sample <- samples(Consumer)]],
    true = call(Config, fun() -> exit(Keeper, kill) end),
    _ = test_bpftrace:stop(Consumer).

of_memory(Kind) -> iolist_to_binary(["memory_", atom_to_list(Kind)]).

kept(Binary, List) ->
    receive stop -> {Binary, List} end.

%% More busy processes than schedulers: all schedulers are active, and the others wait.
schedulers(Config) ->
    Consumer = counting([{sample_interval, 200}], Config),
    Busy = call(Config, fun() -> [spawn(fun busy/0) || _ <- lists:seq(1, 100)] end),
    test_wait:until("the schedulers are active",
                    fun() ->
                            Sample = values(lists:last(samples(Consumer))),
                            Queued = maps:get(<<"run_queue">>, Sample),
                            Active = of_kind("scheduler_utilization_\\d+", Sample),
                            (Queued > 80 andalso length([A || A <- Active, A > 900]) =:= length(Active))
                                orelse {Queued, Active}
                    end),
    call(Config, fun() -> [exit(Pid, kill) || Pid <- Busy] end),
    test_wait:until("the queues are empty",
                    fun() -> maps:get(<<"run_queue">>, values(lists:last(samples(Consumer)))) < 20 end),
    Samples = [values(Sample) || Sample <- samples(Consumer)],
    ?assertEqual([], [Sample || Sample <- Samples,
                                maps:get(<<"run_queue">>, Sample) =/= lists:sum(of_kind("run_queue_\\d+", Sample))]),
    ?assertEqual([], [Value || Sample <- Samples, Value <- of_kind(".*_utilization_\\d+", Sample),
                               Value < 0 orelse Value > 1000]),
    _ = test_bpftrace:stop(Consumer).

busy() -> busy().

of_kind(Regex, Sample) ->
    [Value || {Name, Value} <- maps:to_list(Sample), re:run(Name, "^" ++ Regex ++ "$") =/= nomatch].

dirty_schedulers(Config) ->
    Consumer = counting([{sample_interval, 200}], Config),
    [begin
         Count = call(Config, fun() -> erlang:system_info(Item) end),
         Pids = call(Config, fun() -> [spawn(fun() -> erts_debug:Function(wait, 3000) end)
                                       || _ <- lists:seq(1, 2 * Count)] end),
         test_wait:until({Kind, "schedulers are active"},
                         fun() ->
                                 lists:any(fun(Sample) ->
                                                   Active = of_kind(Kind ++ "_utilization_\\d+", Sample),
                                                   Active =/= [] andalso lists:min(Active) > 900
                                                       andalso maps:get(Queue, Sample) =:= Count
                                           end, [values(Sample) || Sample <- samples(Consumer)])
                         end),
         call(Config, fun() -> [exit(Pid, kill) || Pid <- Pids] end)
     end || {Item, Function, Kind, Queue} <- [{dirty_cpu_schedulers_online, dirty_cpu, "dirty_cpu",
                                               <<"run_queue_dirty_cpu">>},
                                              {dirty_io_schedulers, dirty_io, "dirty_io", <<"run_queue_dirty_io">>}]],
    _ = test_bpftrace:stop(Consumer).

%% The open files are those that the kernel lists, and the limit is that of `ulimit'.
open_files(Config) ->
    Node = limited("ulimit -Sn 300", []),
    _ = test_node:call(Node, fun() ->
                                     Self = self(),
                                     Owner = spawn(fun() ->
                                                           Open = fun(_) -> file:open("/dev/null", [read, raw]) end,
                                                           Files = lists:map(Open, lists:seq(1, 100)),
                                                           Self ! {self(), opened},
                                                           receive stop -> Files end
                                                   end),
                                     receive {Owner, opened} -> ok end
                             end),
    ?assert(length(fds(Node)) > 100),
    ?assertEqual({expected_files(length(fds(Node))), 300}, files_of(sample_on(Node))),
    test_node:stop(Node),
    Config.

fds(Node) ->
    {ok, Fds} = file:list_dir("/proc/" ++ test_node:os_pid(Node) ++ "/fd"),
    Fds.

expected_files(Count) ->
    case os:version() >= {6, 2, 0} of
        true -> Count;
        false -> undefined
    end.

files_of(Sample) ->
    {maps:get("open_files", Sample, undefined), maps:get("open_files_limit", Sample, undefined)}.

%% While a FIFO blocks the only dirty I/O scheduler, the node still has all counters.
blocked_files(Config) ->
    Node = limited("ulimit -Sn 300", ["+SDio", "1"]),
    Fifo = filename:join(?config(priv_dir, Config), "fifo"),
    {0, _} = test_shell:run("mkfifo '~ts'", [Fifo]),
    _ = sample_on(Node),
    _ = test_node:call(Node, fun() -> [spawn(fun() -> file:open(Fifo, [read, raw]) end) || _ <- [1, 2]] end),
    Waiting = fun() -> lists:last(erlang:statistics(run_queue_lengths_all)) end,
    test_wait:until("a process waits for the dirty I/O scheduler", 1, fun() -> test_node:call(Node, Waiting) end),
    %% The open that is blocked has a descriptor already, which the kernel does not list yet.
    Expected = {expected_files(length(fds(Node)) + 1), 300},
    test_wait:until("one open is blocked", Expected, fun() -> files_of(sample_on(Node)) end),
    ?assertMatch(#{"run_queue_dirty_io" := 1}, sample_on(Node)),
    %% Both opens return.
    {ok, Opened} = file:open(Fifo, [read, write, raw]),
    test_node:stop(Node),
    ok = file:close(Opened),
    Config.

%% All dirty I/O schedulers are blocked before a consumer attaches, so the node can't load code.
blocked_node(Config) ->
    Fifo = filename:join(?config(priv_dir, Config), "fifo_of_node"),
    {0, _} = test_shell:run("mkfifo '~ts'", [Fifo]),
    start([{sample_interval, 200}], Config),
    Pids = call(Config, fun() -> [spawn(fun() -> file:open(Fifo, [read, raw]) end)
                                  || _ <- lists:seq(0, erlang:system_info(dirty_io_schedulers))] end),
    Waiting = fun() -> lists:last(erlang:statistics(run_queue_lengths_all)) end,
    try
        test_wait:until("a process waits for a dirty I/O scheduler", 1, fun() -> call(Config, Waiting) end),
        Consumer = attach([vm_counter, process_sample], Config),
        [test_bpftrace:await(Consumer, fun({vm_counter, #{name := Counter, value := 1000}}) -> Counter =:= Name;
                                          (_) -> false
                                       end)
         || N <- lists:seq(1, length(Pids) - 1),
            Name <- [<<"dirty_io_utilization_", (integer_to_binary(N))/binary>>]],
        Texts = [test_cases:text(Pid) || Pid <- Pids],
        {process_sample, _} =
            test_bpftrace:await(Consumer, fun({process_sample, #{pid := Text}}) -> lists:member(Text, Texts);
                                             (_) -> false
                                          end),
        _ = test_bpftrace:stop(Consumer)
    after
        {ok, Opened} = file:open(Fifo, [read, write, raw]),
        ok = test_wait:until("all opens have returned", 0, fun() -> call(Config, Waiting) end),
        ok = file:close(Opened)
    end.

%% A node that is started by a shell after a command.
limited(Command, Args) ->
    test_node:start(#{exec => {"/bin/sh", ["-c", Command ++ " && exec erl \"$@\"", "sh"]}, args => Args}).

sample_on(Node) ->
    test_node:call(Node, fun() ->
                                 _ = erlang:system_flag(scheduler_wall_time, true),
                                 {Values, _} = dyntrace_counters:sample(none),
                                 maps:from_list([{Name, Value} || {Name, Value, _} <- Values])
                         end).

%% The folders of cgroups, and what their files say.
cgroups(Config) ->
    V1 = <<"4:memory:/a\n3:cpu,cpuacct:/docker/4:7\n0::/">>,
    ?assertEqual([{v1, <<"/sys/fs/cgroup/cpu,cpuacct/docker/4:7">>}, {v1, <<"/sys/fs/cgroup/cpu,cpuacct/docker">>},
                  {v1, <<"/sys/fs/cgroup/cpu,cpuacct">>}], dyntrace_cgroup:folders(V1, <<"cpu">>)),
    V2 = dyntrace_cgroup:folders(<<"0::/system.slice/shop.service\n">>, <<"cpu">>),
    ?assertEqual([{v2, <<"/sys/fs/cgroup/system.slice/shop.service">>}, {v2, <<"/sys/fs/cgroup/system.slice">>},
                  {v2, <<"/sys/fs/cgroup">>}], V2),
    ?assertEqual([{v2, <<"/sys/fs/cgroup">>}], dyntrace_cgroup:folders(<<"0::/\n">>, <<"cpu">>)),
    [?assertEqual([], dyntrace_cgroup:folders(Cgroups, <<"cpu">>))
     || Cgroups <- [undefined, <<>>, <<"0::/../shop\n">>, <<"7:cpuset:/\n">>, <<"0:">>]],
    Deep = iolist_to_binary(["0::", lists:duplicate(100, "/a")]),
    ?assertEqual(16, length(dyntrace_cgroup:folders(Deep, <<"cpu">>))),
    Service = fun(Max, Stat) -> cpu_of(V2, #{<<"/system.slice/shop.service/cpu.max">> => Max,
                                             <<"/system.slice/shop.service/cpu.stat">> => Stat}) end,
    Stat = <<"usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 4200\n">>,
    ?assertEqual(#{quota => 500, throttled => 4200}, Service(<<"50000 100000\n">>, Stat)),
    [?assertEqual(#{}, Service(Max, Text))
     || {Max, Text} <- [{<<"max 100000\n">>, Stat}, {<<"50000 100000\n">>, <<"usage_usec 7\n">>}, {undefined, Stat},
                        {<<"50000 0\n">>, Stat}, {<<"50000 100000\n">>, undefined}]],
    %% Of several quotas, the smallest counts, and the times are added up.
    ?assertEqual(#{quota => 500, throttled => 4205},
                 cpu_of(V2, #{<<"/system.slice/shop.service/cpu.max">> => <<"50000 100000\n">>,
                              <<"/system.slice/shop.service/cpu.stat">> => Stat,
                              <<"/system.slice/cpu.max">> => <<"200000 100000\n">>,
                              <<"/system.slice/cpu.stat">> => <<"throttled_usec 5\n">>})),
    %% In a container, only the last folder exists.
    OfContainer = fun(Quota) -> cpu_of(dyntrace_cgroup:folders(V1, <<"cpu">>),
                                       #{<<"/cpu,cpuacct/cpu.cfs_quota_us">> => Quota,
                                         <<"/cpu,cpuacct/cpu.cfs_period_us">> => <<"100000\n">>,
                                         <<"/cpu,cpuacct/cpu.stat">> => <<"nr_throttled 3\nthrottled_time 4200999\n">>})
                  end,
    ?assertEqual(#{quota => 1500, throttled => 4200}, OfContainer(<<"150000\n">>)),
    ?assertEqual(#{}, OfContainer(<<"-1\n">>)),
    %% The library reads files of the kernel, and no others.
    ?assertEqual([<<"beam.smp\n">>, undefined, undefined, undefined, undefined],
                 [call(Config, fun() -> dyntrace:kernel_file(Path) end)
                  || Path <- [<<"/proc/self/comm">>, <<"/proc/self/no_such_file">>, <<"/etc/passwd">>,
                              <<"/proc/self/../../etc/passwd">>, <<"/proc/self/comm", 0>>]]).

cpu_of(Folders, Files) ->
    dyntrace_cgroup:cpu(Folders, fun(<<"/sys/fs/cgroup", Path/binary>>) -> maps:get(Path, Files, undefined) end).

%% A node in a cgroup that allows it a fifth of a CPU.
cpu_quota(Config) ->
    case cgroup() of
        {skip, Why} ->
            ct:pal("SKIPPED: ~ts", [Why]),
            {skip, Why};
        Cgroup ->
            try cpu_quota(Cgroup, Config)
            after test_wait:until("the cgroup is removed", ok, fun() -> file:del_dir(Cgroup) end)
            end
    end.

cpu_quota(Cgroup, Config) ->
    Node = ?config(node, Config),
    Busy = test_node:call(Node, fun() -> spawn(fun busy/0) end),
    ok = file:write_file(Cgroup ++ "/cgroup.procs", test_node:os_pid(Node), [raw]),
    test_wait:until("the node has been stopped for 300 ms", fun(Us) -> Us > 300000 end, fun() -> throttled(Cgroup) end),
    Before = throttled(Cgroup),
    Sample = #{"cpu_throttled" := Us} = sample_on(Node),
    ?assertMatch(#{"cpu_quota" := 200}, Sample),
    ?assert(Before =< Us andalso Us =< throttled(Cgroup), {Before, Us}),
    true = test_node:call(Node, fun() -> exit(Busy, kill) end),
    ok = file:write_file(filename:dirname(Cgroup) ++ "/cgroup.procs", test_node:os_pid(Node), [raw]).

%% The limits of cgroups, and the memory of the host.
memory_limit(Config) ->
    Of = fun(Cgroups, Files) ->
                 dyntrace_cgroup:memory(dyntrace_cgroup:folders(Cgroups, <<"memory">>),
                                        fun(<<"/sys/fs/cgroup", Path/binary>>) -> maps:get(Path, Files, undefined);
                                           (<<"/proc/meminfo">>) -> undefined
                                        end)
         end,
    ?assertEqual(300000, Of(<<"0::/shop/node\n">>, #{<<"/shop/node/memory.max">> => <<"max\n">>,
                                                     <<"/shop/memory.max">> => <<"300000\n">>,
                                                     <<"/memory.max">> => <<"400000\n">>})),
    V1 = <<"4:cpu:/\n5:memory:/shop\n">>,
    V1Limit = fun(Text) -> Of(V1, #{<<"/memory/shop/memory.limit_in_bytes">> => Text}) end,
    ?assertEqual([300000, undefined, undefined],
                 [V1Limit(Text) || Text <- [<<"300000\n">>, <<"9223372036854771712\n">>, undefined]]),
    %% The command reads it as well.
    Node = ?config(node, Config),
    {0, Says} = test_shell:run("PYTHONPATH='~ts' /usr/bin/python3 -c 'from dyntrace_command.host.cgroups import "
                               "memory_limit; from dyntrace_command.host.process import Process; "
                               "print(int(memory_limit(Process(~s))))'",
                               [test_command:package(), test_node:os_pid(Node)]),
    Said = binary_to_integer(string:trim(Says)),
    ?assertMatch(#{"memory_limit" := Limit} when Limit =:= Said, sample_on(Node)).

%% In microseconds; version 1 has nanoseconds.
throttled(Cgroup) ->
    {ok, Stat} = file:read_file(Cgroup ++ "/cpu.stat"),
    {match, [Unit, Time]} = re:run(Stat, "throttled_(time|usec) (\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Time) div maps:get(Unit, #{"time" => 1000, "usec" => 1}).

%% A new cgroup with a quota.
cgroup() ->
    cgroup([{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"}, {"/sys/fs/cgroup", "cpu.max", "20000 100000"}], []).

cgroup([], Tried) ->
    {skip, lists:flatten(io_lib:format("no cgroup with a CPU quota can be made here: ~0p", [Tried]))};
cgroup([{Root, File, Quota} | Rest], Tried) ->
    Folder = Root ++ "/dyntrace_" ++ os:getpid(),
    case limit_cpu(file:make_dir(Folder), filename:join(Folder, File), Quota) of
        ok -> Folder;
        Error -> cgroup(Rest, [{Folder, File, Error, file:del_dir(Folder)} | Tried])
    end.

%% In a folder of another file system, the file would be a new one.
limit_cpu(ok, File, Quota) ->
    case filelib:is_regular(File) of
        true -> file:write_file(File, Quota, [raw]);
        false -> enoent
    end;
limit_cpu(Error, _, _) ->
    Error.

%% A value of each counter, recorded by LTTng.
lttng(Config) ->
    _ = test_require:tool(test_lttng:missing(), Config),
    lttng_SUITE:with_daemon(
      fun(Daemon) ->
              start([{interval, 10}, {sample_interval, 50}], Config),
              _ = call(Config, fun() -> made(5, 1) end),
              Session = lttng_SUITE:start(Daemon, [vm_counter], Config),
              until_following(sources, [counters], Config),
              until_sampled(3, Config),
              Before = call(Config, fun read/0),
              until_sampled(3, Config),
              Counts = call(Config, fun() -> [erlang:system_info(Item) || Item <- [port_count, ets_count]] end),
              After = call(Config, fun read/0),
              Samples = [values(Sample) || Sample <- by_sample(test_lttng:stop(Session))],
              ?assert(lists:any(fun(Sample) ->
                                        lists:all(fun(Name) ->
                                                          Value = maps:get(Name, Sample),
                                                          maps:get(Name, Before) =< Value
                                                              andalso Value =< maps:get(Name, After)
                                                  end, maps:keys(Before))
                                end, Samples), {Before, After, Samples}),
              Last = lists:last(Samples),
              ?assertEqual(Counts, [maps:get(Name, Last) || Name <- [<<"ports">>, <<"ets_tables">>]]),
              ?assertEqual(maps:get(<<"memory_processes">>, Last) + maps:get(<<"memory_system">>, Last),
                           maps:get(<<"memory_total">>, Last))
      end).

%% -- Times ---------------------------------------------------------------------------------

%% One sample per interval, on time if the machine is.
at_intervals(Config) ->
    start([{interval, 10}, {sample_interval, 200}], Config),
    Consumer = timed(Config),
    until_following(sources, [counters], Config),
    Times = until_times(16, Consumer),
    {Passed, Samples} = {lists:last(Times) - hd(Times), length(Times)},
    ?assert(Samples =< Passed div 200 + 2, {Passed, Samples}),
    ?assertEqual([], [{A, B} || {A, B} <- lists:zip(lists:droplast(Times), tl(Times)), B =< A]),
    ?assert(2 * Samples >= Passed div 200, {Passed, Samples}),
    _ = test_bpftrace:stop_script(Consumer).

%% A delayed process does not catch up on the samples that it has missed.
held_up(Config) ->
    start([{interval, 10}, {sample_interval, 200}], Config),
    Consumer = timed(Config),
    until_following(sources, [counters], Config),
    Before = length(until_times(3, Consumer)),
    call(Config, fun() ->
                         [Sampler] = samplers(),
                         true = erlang:suspend_process(Sampler),
                         receive after 2500 -> ok end,
                         true = erlang:resume_process(Sampler)
                 end),
    Times = until_times(Before + 6, Consumer),
    Gaps = lists:zipwith(fun(A, B) -> B - A end, lists:droplast(Times), tl(Times)),
    {_, [Longest | After]} = lists:splitwith(fun(Gap) -> Gap < 2000 end, Gaps),
    ?assert(Longest >= 2000),
    %% The first sample is late, the next ones are on time.
    ?assert(lists:sum(After) >= (length(After) - 1) * 180, Gaps),
    _ = test_bpftrace:stop_script(Consumer).

%% Prints the time of each sample, in ms.
timed(Config) ->
    test_bpftrace:start_script(["usdt:", ?config(library, Config), ":org_erlang_dyntrace:vm_counter "
                                "/str(arg0) == \"processes\"/ { printf(\"%llu sample\\n\", nsecs); }"], #{}).

until_times(Count, Consumer) ->
    Times = fun() ->
                    [binary_to_integer(Time) div ?MB || Line <- test_bpftrace:lines(Consumer),
                                                        [Time, <<"sample">>] <- [binary:split(Line, <<" ">>)]]
            end,
    test_wait:until({Count, "samples"}, fun(Seen) -> length(Seen) >= Count end, Times),
    lists:sort(Times()).

%% -- The process that samples --------------------------------------------------------------

%% While all processes are traced, the sampler's work causes no event. If it starts meanwhile, only its start has
%% events: its link, its first turn, and the answer to its call that measures the schedulers.
no_trace_events(Config) ->
    Counters = counting([{sample_interval, 20}], Config),
    until_sampled(2, Config),
    Probes = [process_scheduled, process_spawn, message_send, message_receive, process_link, gc_minor_start,
              gc_major_start],
    Consumer = attach(Probes, Config),
    test_autotracer:until_traced(Config),
    [First] = call(Config, fun samplers/0),
    until_sampled(10, Config),
    true = call(Config, fun() -> exit(First, kill) end),
    test_wait:until("another process samples", fun([Other]) -> Other =/= First; (_) -> false end,
                    fun() -> call(Config, fun samplers/0) end),
    [Second] = call(Config, fun samplers/0),
    until_sampled(10, Config),
    Sink = call(Config, fun() -> spawn(fun test_autotracer:sink/0) end),
    call(Config, fun() -> Sink ! last end),
    _ = test_bpftrace:await(Consumer, fun({Probe, Fields}) ->
                                              {Probe, maps:get(message, Fields, none)} =:= {message_send, <<"last">>}
                                      end),
    Events = test_bpftrace:stop(Consumer),
    Of = fun(Pid) ->
                 Text = call(Config, fun() -> test_cases:text(Pid) end),
                 [Event || Event = {_, Fields} <- Events, lists:member(Text, maps:values(Fields))]
         end,
    ?assertEqual([], Of(First)),
    [?assert(length([Probe || {Probe, _} <- Of(Second), Probe =:= Which]) =< Most, Of(Second))
     || {Which, Most} <- [{process_scheduled, 1}, {process_spawn, 0}, {message_send, 1}, {message_receive, 0},
                          {process_link, 1}, {gc_minor_start, 0}, {gc_major_start, 0}]],
    _ = test_bpftrace:stop(Counters).

%% On a node that does not know its memory, the other counters are sampled.
without_memory(Config) ->
    Node = test_node:start(#{args => ["+Mea", "min"]}),
    Values = test_node:call(Node, fun() ->
                                          _ = erlang:system_flag(scheduler_wall_time, true),
                                          element(1, dyntrace_counters:sample(none))
                                  end),
    ?assertEqual(error, try test_node:call(Node, fun() -> erlang:memory() end) catch error:_ -> error end),
    ?assertEqual(["memory_limit"], [Name || {Name = "memory" ++ _, _, _} <- Values]),
    ?assert(lists:keymember("run_queue", 1, Values)),
    test_node:stop(Node),
    Config.

switched_on_and_off(Config) ->
    start([{interval, 10}, {sample_interval, 20}], Config),
    ?assertEqual({[], false}, state(Config)),
    [begin
         Consumer = attach([vm_counter], Config),
         until_measuring(1, Config),
         Off(Consumer, Config),
         until_not_measuring(Config)
     end || Off <- [fun(Consumer, _) -> test_bpftrace:kill(Consumer) end,
                    fun(Consumer, _) -> test_bpftrace:stop(Consumer) end]],
    Consumer = attach([vm_counter], Config),
    [begin
         until_measuring(1, Config),
         call(Config, Off),
         until_not_measuring(Config),
         call(Config, On)
     end || {Off, On} <- [{fun() -> dyntrace:unfollow() end, fun() -> dyntrace:follow(#{}) end},
                          {fun() -> dyntrace_app:pause() end, fun() -> dyntrace_app:resume() end},
                          {fun() -> dyntrace:follow(#{probes => [process_exit]}) end,
                           fun() -> dyntrace:follow(#{probes => all}) end},
                          {fun() -> application:stop(dyntrace) end, fun() -> ok end}]],
    _ = test_bpftrace:stop(Consumer).

%% Whichever process is killed, one process samples afterwards.
killed(Config) ->
    start([{interval, 10}, {sample_interval, 20}], Config),
    Consumer = attach([vm_counter], Config),
    until_measuring(1, Config),
    [begin
         [Sampler] = call(Config, fun samplers/0),
         call(Config, fun() -> exit(Of(Sampler), kill) end),
         test_wait:until("another process samples", fun([Other]) -> Other =/= Sampler; (_) -> false end,
                         fun() -> call(Config, fun samplers/0) end),
         until_measuring(1, Config),
         until_sampled(2, Config)
     end || Of <- [fun(Sampler) -> Sampler end, fun(_) -> whereis(dyntrace_autotracer) end]],
    call(Config, fun() -> exit(whereis(dyntrace_sup), kill) end),
    until_not_measuring(Config),
    _ = test_bpftrace:stop(Consumer).

%% The scheduler times are measured as long as any process needs them.
others_measure_schedulers(Config) ->
    start([{interval, 10}, {sample_interval, 20}], Config),
    Other = call(Config, fun() ->
                                 Self = self(),
                                 Pid = spawn(fun() ->
                                                     false = erlang:system_flag(scheduler_wall_time, true),
                                                     Self ! {self(), measures},
                                                     receive stop -> ok end
                                             end),
                                 receive {Pid, measures} -> Pid end
                         end),
    Consumer = attach([vm_counter], Config),
    until_measuring(1, Config),
    _ = test_bpftrace:stop(Consumer),
    test_wait:until("the process has ended", {[], true}, fun() -> state(Config) end),
    call(Config, fun() -> Other ! stop end),
    until_not_measuring(Config).

%% The largest value of the field, and names of any length.
large_values(Config) ->
    Consumer = attach([vm_counter], Config),
    Values = [(1 bsl 63) - 1, -(1 bsl 63), 0],
    [ok = call(Config, fun() -> dyntrace:report(vm_counter, {"test", Value, "bytes"}) end) || Value <- Values],
    test_wait:until("the events", Values,
                    fun() -> [Value || {vm_counter, #{value := Value}} <- test_bpftrace:events(Consumer)] end),
    ?assertEqual(badarg, call(Config, fun() ->
                                              try dyntrace:report(vm_counter, {"test", 1 bsl 63, "bytes"})
                                              catch error:badarg -> badarg
                                              end
                                      end)),
    _ = test_bpftrace:stop(Consumer).

until_measuring(Count, Config) ->
    test_wait:until("the application samples", fun({Samplers, IsOn}) -> IsOn andalso length(Samplers) =:= Count end,
                    fun() -> state(Config) end).

until_not_measuring(Config) ->
    test_wait:until("no process takes samples", {[], false}, fun() -> state(Config) end).

%% The sampling processes, and whether the VM measures the scheduler times.
state(Config) ->
    call(Config, fun() -> {samplers(), erlang:statistics(scheduler_wall_time) =/= undefined} end).

%% On the node.
samplers() ->
    [P || P <- processes(), {initial_call, {dyntrace_sampler, sampled, 1}} <- [process_info(P, initial_call)]].

%% -- Samples -------------------------------------------------------------------------------

%% Attaches, calls Fun, and returns the complete samples with utilization that arrived meanwhile.
sampled(Env, Fun, Config) ->
    Consumer = counting([{sample_interval, 100} | Env], Config),
    Fun(Consumer),
    _ = samples(Consumer),
    by_sample(test_bpftrace:stop(Consumer)).

%% Starts the application, and attaches to the counters.
counting(Env, Config) ->
    start([{interval, 10} | Env], Config),
    Consumer = attach([vm_counter], Config),
    until_following(sources, [counters], Config),
    Consumer.

%% All complete samples of the consumer except the first one; at least one.
samples(Consumer) ->
    Samples = fun() -> by_sample(test_bpftrace:events(Consumer)) end,
    test_wait:until("two samples", fun(Whole) -> length(Whole) >= 2 end, Samples),
    Samples().

%% The events grouped by sample, without the first sample, which has no utilization, and the last one, which may be
%% incomplete.
by_sample(Events) ->
    case split([Event || Event = {vm_counter, _} <- Events], []) of
        [_, _ | _] = Samples -> tl(lists:droplast(Samples));
        _ -> []
    end.

split([], Samples) ->
    lists:reverse([lists:reverse(Sample) || Sample <- Samples]);
split([Event = {_, #{name := <<"processes">>}} | Rest], Samples) ->
    split(Rest, [[Event] | Samples]);
split([Event | Rest], [Sample | Samples]) ->
    split(Rest, [[Event | Sample] | Samples]);
split([_ | Rest], []) ->
    split(Rest, []).

values(Sample) ->
    maps:from_list([{Name, Value} || {vm_counter, #{name := Name, value := Value}} <- Sample]).
