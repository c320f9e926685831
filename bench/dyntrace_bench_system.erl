%% What it costs to observe real systems: the CPU time of their VM per message, and the messages per second.
-module(dyntrace_bench_system).

-export([system/1, systems/1, title/1, cpu_us/1]).

-import(dyntrace_bench_figures, [in_turn/3, count/1, percent/1]).

-define(ROUNDS, 10).

-type result() :: {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.

-spec title(system | systems) -> string().
title(system) -> "A real system";
title(systems) -> "Recorders and reports of several systems".

%% Each way to observe a RabbitMQ.
-spec system(dyntrace_bench_tracers:consumers()) -> result().
system(Consumers) ->
    Subject = #{messages := Messages} = dyntrace_bench_subjects:rabbitmq(),
    Figures = figures(states(), Subject#{reported => 1}, Consumers),
    {{title(system),
      [missing([Subject]),
       io_lib:format("Debian's RabbitMQ: one client publishes and waits for the confirmation of each message, another "
                     "one consumes. ~s messages, ~b times, alternating with the other rows. CPU time is that of the "
                     "server's process. ~s messages before them are not counted, because the node then dumps its "
                     "names for a command that has just started, which takes some 50 ms of CPU time.",
                     [count(Messages), ?ROUNDS, count(Messages)])],
      ["RabbitMQ is", "us of CPU per message", "of untouched", "messages per second", "of untouched"],
      [[Of | lists:append([[count(Figure(Row)), percent(Figure(Row) / Figure(untouched))]
                           || What <- [cpu, rate],
                              Figure <- [fun(Which) -> maps:get({Which, What}, Figures) end]])]
       || {Row, Of, _} <- states(), map_size(Figures) > 0]},
     Figures}.

%% The recorder and the report of several systems.
-spec systems(dyntrace_bench_tracers:consumers()) -> result().
systems(Consumers) ->
    Subjects = [dyntrace_bench_subjects:Name() || Name <- [rabbitmq, saturated, ejabberd, ping_pong, idle]],
    Rows = [untouched, recorder, full_recorder, report],
    States = [lists:keyfind(Row, 1, [reported() | states()]) || Row <- Rows],
    Measured = [begin
                    Figures = figures(States, Subject, Consumers),
                    io:format("~ts: ~0p~n", [Title, Figures]),
                    {Title, Figures}
                end || Subject = #{title := Title} <- Subjects],
    {{title(systems),
      [missing(Subjects),
       io_lib:format("CPU time per message, and messages per second; those of the same system without dyntrace are "
                     "100 %. The medians of ~b rounds, alternating with the other columns. The last two systems do "
                     "nothing but send messages.", [?ROUNDS])],
      ["system", "us of CPU, messages per second", "`record --snapshot --when crash`", "the same with `--full`",
       "`report`"],
      [[Title, [io_lib:format("~.2f", [float(maps:get({untouched, cpu}, Figures))]), ", ",
                count(maps:get({untouched, rate}, Figures))]
        | [lists:join(", ", [percent(maps:get({Row, What}, Figures) / maps:get({untouched, What}, Figures))
                             || What <- [cpu, rate]])
           || Row <- tl(Rows)]]
       || {Title, Figures} <- Measured, map_size(Figures) > 0]},
     maps:from_list([{{Title, Key}, Value} || {Title, Figures} <- Measured, {Key, Value} <- maps:to_list(Figures)])}.

missing(Subjects) ->
    Missing = [[Title, ": ", Missing] || #{title := Title, missing := Missing} <- Subjects, Missing =/= false],
    [begin
         io:format("NOT MEASURED: ~ts~n", [What]),
         ["**Not measured**: ", What, ". "]
     end || What <- Missing].

%% {Row, Title, the command that observes it}
states() ->
    Long = ["--seconds", "600"],
    [{untouched, "untouched", none},
     {loaded, "loaded, no consumer", none},
     {samples, "sampled: `dyntrace record --events samples,counters`",
      ["record", "--events", "samples,counters", "-o", folder]},
     {top, "watched by `dyntrace top`", ["top" | Long]},
     {exact, "watched by `dyntrace top --exact`", ["top", "--exact" | Long]},
     {profile, "sampled by `dyntrace profile`", ["profile" | Long]},
     {record, "recorded by `dyntrace record`", ["record", "-o", folder]},
     {recorder, "recorded in memory by `dyntrace record --snapshot --when crash`",
      ["record", "--snapshot", "--when", "crash", "-o", folder]},
     {full_recorder, "the same with `--full`", ["record", "--snapshot", "--full", "--when", "crash", "-o", folder]}].

reported() ->
    {report, "recorded by `dyntrace report`", ["report", "-o", "-", "--seconds", "600"]}.

%% None if the machine lacks the system. Two systems, because a loaded library may have lasting effects.
figures(_, #{missing := Missing}, _) when Missing =/= false ->
    #{};
figures(States, Subject = #{start := Start, load := Load, stop := Stop}, #{folder := Folder}) ->
    Untouched = Start(),
    try
        Loaded = Start(),
        try
            ok = Load(Loaded),
            Recorded = filename:join(filename:absname(Folder), "recorded"),
            in_turn(?ROUNDS, States, fun(State) -> in_state(State, Subject, Untouched, Loaded, Recorded) end)
        after Stop(Loaded)
        end
    after Stop(Untouched)
    end.

in_state({untouched, _, none}, Subject, Untouched, _, _) ->
    worked(untouched, Subject, Untouched);
in_state({Row, _, none}, Subject, _, Loaded, _) ->
    worked(Row, Subject, Loaded);
in_state({Row, _, [Name | Args]}, Subject = #{os_pid := OsPidOf, following := Following}, _, Loaded, Folder) ->
    OsPid = OsPidOf(Loaded),
    %% A process that queries the node is itself a node, and a report of several nodes records more.
    ok = observed:alone(OsPid),
    Command = test_command:start([Name, OsPid | [case Arg of folder -> Folder; _ -> Arg end || Arg <- Args]]),
    ok = test_command:await(".", Command),
    ok = observed:settled(fun() -> Following(Loaded) end),
    Figures = worked(Row, Subject, Loaded),
    ok = test_command:signal("INT", Command),
    {_, _} = test_command:finish(Command),
    ok = test_wait:until("no consumer is attached", "off", fun() -> Following(Loaded) end),
    _ = file:del_dir_r(Folder),
    Figures.

worked(Row, #{messages := Usual, reported := Reported, os_pid := OsPidOf, work := Work}, System) ->
    ok = (Work(Usual, System))(),
    {OsPid, Messages} = {OsPidOf(System), Usual * times(Row, Reported)},
    Run = Work(Messages, System),
    Before = cpu_us(OsPid),
    {Us, ok} = timer:tc(Run),
    [{{Row, cpu}, (cpu_us(OsPid) - Before) / Messages}, {{Row, rate}, Messages * 1.0e6 / Us}].

times(untouched, Reported) -> Reported;
times(report, Reported) -> Reported;
times(_, _) -> 1.

%% The CPU time of a process, as the sum of its threads: their times are in ns, that of the process in ticks of 10 ms.
-spec cpu_us(OsPid :: string()) -> float().
cpu_us(OsPid) ->
    Files = [_ | _] = filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/schedstat"),
    %% A thread may end meanwhile.
    Read = [Times || File <- Files, {ok, Times} <- [file:read_file(File)]],
    lists:sum([binary_to_integer(hd(binary:split(Times, <<" ">>))) || Times <- Read]) / 1000.
