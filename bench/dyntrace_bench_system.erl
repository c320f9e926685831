%% What it costs to observe real systems: the CPU time of their VM per message, and the messages per second.
-module(dyntrace_bench_system).

-export([system/1, systems/1, title/1, cpu_us/1]).

-import(dyntrace_bench_figures, [medians/1, mean_and_error/1, count/1]).

-define(PAIRS, 12).

%% How much longer the parts are while `dyntrace report' records: it traces in windows, with pauses of seconds. If the
%% system stops for a second after each second, a window that begins in such a second sees few events, so it continues
%% into the next part.
-define(LONGER, 5).

-type result() :: {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.

-spec title(system | systems) -> string().
title(system) -> "A real system";
title(systems) -> "Recorders and reports of several systems".

%% Each way to observe a RabbitMQ.
-spec system(dyntrace_bench_tracers:consumers()) -> result().
system(Consumers) ->
    Subject = #{messages := Messages} = dyntrace_bench_subjects:rabbitmq(),
    Figures = figures(states(), Subject, Consumers),
    {{title(system),
      [missing([Subject]),
       io_lib:format("Debian's RabbitMQ: one client publishes and waits for the confirmation of each message, another "
                     "one consumes. A part has ~s messages. CPU time is that of the server's process. ~s",
                     [count(Messages), how_compared()])],
      ["RabbitMQ is", "us of CPU per message", "relative", "messages per second", "relative"],
      [[Of | lists:append([[count(maps:get({Row, What}, Figures)), percent(Row, What, Figures)]
                           || What <- [cpu, rate]])]
       || {Row, Of, _} <- states(), map_size(Figures) > 0]},
     Figures}.

%% The recorder and the report of several systems.
-spec systems(dyntrace_bench_tracers:consumers()) -> result().
systems(Consumers) ->
    Subjects = [dyntrace_bench_subjects:Name() || Name <- [rabbitmq, saturated, ejabberd, ping_pong, idle]],
    Rows = [untouched, loaded, recorder, full_recorder, report],
    States = [lists:keyfind(Row, 1, [reported() | states()]) || Row <- Rows],
    Measured = [{Title, measured(States, Subject, Consumers)} || Subject = #{title := Title} <- Subjects],
    {{title(systems),
      [missing(Subjects), [["**Failed**: ", Title, ". "] || {Title, failed} <- Measured],
       io_lib:format("CPU time per message, and messages per second. ~s For the report, parts are ~b times as long, "
                     "because it traces in windows. The report of a node with more than 5,000 processes traces all the "
                     "time and costs as much as `--full`, so it is not measured. The last two systems do nothing but "
                     "send messages.",
                     [how_compared(), ?LONGER])],
      ["system", "us of CPU, messages per second", "loaded, no consumer", "`record --snapshot --when crash`",
       "the same with `--full`", "`report`"],
      [[Title, [io_lib:format("~.2f", [float(maps:get({untouched, cpu}, Figures))]), ", ",
                count(maps:get({untouched, rate}, Figures))]
        | [lists:join(", ", [percent(Row, What, Figures) || is_map_key({Row, cpu}, Figures), What <- [cpu, rate]])
           || Row <- tl(Rows)]]
       || {Title, Figures} <- Measured, is_map_key({untouched, cpu}, Figures)]},
     maps:from_list([{{Title, Key}, Value}
                     || {Title, Figures} <- Measured, is_map(Figures), {Key, Value} <- maps:to_list(Figures)])}.

%% One system that fails must not cost the figures of the others.
measured(States, Subject = #{title := Title}, Consumers) ->
    Limited = [State || State = {Row, _, _} <- States, Row =/= report orelse maps:get(pauses, Subject, true)],
    Figures = try figures(Limited, Subject, Consumers)
              catch Class:Reason:Stack ->
                      io:format("FAILED: ~ts~n", [erl_error:format_exception(Class, Reason, Stack)]),
                      failed
              end,
    io:format("~ts: ~0p~n", [Title, Figures]),
    Figures.

how_compared() ->
    io_lib:format("Two such systems take turns, ~b parts each; each command observes first the one, then the other. "
                  "Percentages are relative to the unobserved system, which has the library; those of the loaded "
                  "library are relative to a system without it. They are means, with standard errors; other figures "
                  "are medians. What a command does when it starts is not counted: the node then dumps its names, "
                  "which takes some 50 ms of CPU time.", [?PAIRS]).

percent(untouched, _, _) ->
    "100 %";
percent(Row, What, Figures) ->
    {Ratio, Error} = maps:get({Row, {relative, What}}, Figures),
    unicode:characters_to_binary(io_lib:format("~b ± ~.1f %", [round(100 * Ratio), 100 * Error])).

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

%% None if the machine lacks the system. The speed of a host may change by a tenth within a minute, and two systems are
%% never equally fast. So two systems do each part of the work by turns, and a command observes first the one, then the
%% other: what differs between the systems cancels out.
figures(_, #{missing := Missing}, _) when Missing =/= false ->
    #{};
figures([{untouched, _, none}, {loaded, _, none} | Commands], Subject = #{start := Start, load := Load, stop := Stop},
        #{folder := Folder}) ->
    First = Start(),
    try
        Second = Start(),
        Systems = [First, Second],
        try
            _ = in_pairs(Subject, Systems),
            Untouched = in_pairs(Subject, Systems),
            ok = Load(First),
            Loaded = in_pairs(Subject, Systems),
            ok = Load(Second),
            Recorded = filename:join(filename:absname(Folder), "recorded"),
            maps:from_list(row(untouched, Subject, Untouched, [])
                           ++ row(loaded, Subject, Loaded, relative(Loaded, Untouched, 1))
                           ++ lists:append([observed(Command, Subject, Systems, Recorded) || Command <- Commands]))
        after Stop(Second)
        end
    after Stop(First)
    end.

%% The command has an effect on the ratio of the systems twice: at the first one, and inversely at the second one.
observed({Row, _, Command}, Each, Systems, Folder) ->
    Subject = Each#{runs => case Row of report -> ?LONGER; _ -> 1 end},
    [AtFirst, AtSecond] = [observed_by(Command, Subject, System, Systems, Folder) || System <- Systems],
    row(Row, Subject, AtFirst, relative(AtFirst, AtSecond, 2)).

observed_by([Name | Args], Subject = #{os_pid := OsPidOf, following := Following}, Observed, Systems, Folder) ->
    OsPid = OsPidOf(Observed),
    %% A process that queries the node is itself a node, and a report of several nodes records more.
    ok = observed:alone(OsPid),
    Command = test_command:start([Name, OsPid | [case Arg of folder -> Folder; _ -> Arg end || Arg <- Args]]),
    try
        ok = test_command:await(".", Command),
        ok = observed:settled(fun() -> Following(Observed) end),
        %% Not counted: names are dumped for a command that has just started.
        _ = in_part(Subject, Observed),
        in_pairs(Subject, Systems)
    after
        ok = test_command:signal("INT", Command),
        {_, _} = test_command:finish(Command),
        _ = file:del_dir_r(Folder),
        ok = test_wait:until("no consumer is attached", "off", fun() -> Following(Observed) end)
    end.

in_pairs(Subject, Systems) ->
    [[in_part(Subject, System) || System <- Systems] || _ <- lists:seq(1, ?PAIRS)].

%% The CPU time of the system, and the time that passed, per run.
in_part(Subject, System) ->
    Runs = maps:get(runs, Subject, 1),
    {Cpu, Us} = lists:unzip([in_run(Subject, System) || _ <- lists:seq(1, Runs)]),
    {lists:sum(Cpu) / Runs, lists:sum(Us) / Runs}.

in_run(#{messages := Messages, os_pid := OsPidOf, work := Work}, System) ->
    Run = Work(Messages, System),
    OsPid = OsPidOf(System),
    Before = cpu_us(OsPid),
    {Us, ok} = timer:tc(Run),
    {cpu_us(OsPid) - Before, Us}.

row(Row, #{messages := Messages}, Pairs, Relative) ->
    Medians = medians([Figure || [{Cpu, Us}, _] <- Pairs,
                                 Figure <- [{cpu, Cpu / Messages}, {rate, 1.0e6 * Messages / Us}]]),
    [{{Row, What}, Value} || {What, Value} <- maps:to_list(Medians) ++ Relative].

%% How the ratio of the first system to the second one differs between these pairs, with its standard error. The
%% difference is an effect to the power of `Times'.
relative(Pairs, Others, Times) ->
    [begin
         [{Mean, Error}, {OtherMean, OtherError}] = [mean(What, Of) || Of <- [Pairs, Others]],
         {{relative, What},
          {math:exp((Mean - OtherMean) / Times), math:sqrt(Error * Error + OtherError * OtherError) / Times}}
     end || What <- [cpu, rate]].

%% Of logarithms, so that the order of the systems does not matter.
mean(What, Pairs) ->
    mean_and_error([math:log(case What of cpu -> Cpu / OtherCpu; rate -> OtherUs / Us end)
                    || [{Cpu, Us}, {OtherCpu, OtherUs}] <- Pairs]).

%% The CPU time of a process, as the sum of its threads: their times are in ns, that of the process in ticks of 10 ms.
-spec cpu_us(OsPid :: string()) -> float().
cpu_us(OsPid) ->
    Files = [_ | _] = filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/schedstat"),
    %% A thread may end meanwhile.
    Read = [Times || File <- Files, {ok, Times} <- [file:read_file(File)]],
    lists:sum([binary_to_integer(hd(binary:split(Times, <<" ">>))) || Times <- Read]) / 1000.
