%% What it costs to observe real systems: the CPU time of their VM per message, and the messages per second.
-module(dyntrace_bench_system).

-export([system/1, systems/1, title/1, cpu_us/1]).

-import(dyntrace_bench_figures, [medians/1, standard_error/1, count/1]).

-define(ROUNDS, 10).

-type result() :: {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.

-spec title(system | systems) -> string().
title(system) -> "A real system";
title(systems) -> "Recorders and reports of several systems".

%% Each way to observe a RabbitMQ.
-spec system(dyntrace_bench_tracers:consumers()) -> result().
system(Consumers) ->
    Subject = #{messages := Messages} = dyntrace_bench_subjects:rabbitmq(),
    Figures = figures(states(), Subject#{parts := 1}, Consumers),
    {{title(system),
      [missing([Subject]),
       io_lib:format("Debian's RabbitMQ: one client publishes and waits for the confirmation of each message, another "
                     "one consumes. ~s messages, ~b times. CPU time is that of the server's process. ~s",
                     [count(Messages), ?ROUNDS, how_compared()])],
      ["RabbitMQ is", "us of CPU per message", "of untouched", "messages per second", "of untouched"],
      [[Of | lists:append([[count(maps:get({Row, What}, Figures)),
                            percent(Row, What, Figures)] || What <- [cpu, rate]])]
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
       io_lib:format("CPU time per message, and messages per second; those of the system without dyntrace are 100 %. "
                     "The medians of ~b rounds. ~s The last two systems do nothing but send messages.",
                     [?ROUNDS, how_compared()])],
      ["system", "us of CPU, messages per second", "`record --snapshot --when crash`", "the same with `--full`",
       "`report`"],
      [[Title, [io_lib:format("~.2f", [float(maps:get({untouched, cpu}, Figures))]), ", ",
                count(maps:get({untouched, rate}, Figures))]
        | [lists:join(", ", [percent(Row, What, Figures) || What <- [cpu, rate]]) || Row <- tl(Rows)]]
       || {Title, Figures} <- Measured, map_size(Figures) > 0]},
     maps:from_list([{{Title, Key}, Value} || {Title, Figures} <- Measured, {Key, Value} <- maps:to_list(Figures)])}.

how_compared() ->
    "A second system without dyntrace did the same work by turns; percentages are relative to it, and to the same "
    "comparison before the first system had loaded dyntrace, with their standard errors. What a command does when it "
    "starts is not counted: the node then dumps its names, which takes some 50 ms of CPU time.".

percent(untouched, _, _) ->
    "100 %";
percent(Row, What, Figures) ->
    [Ratio, Error] = [maps:get({Row, {Of, What}}, Figures) || Of <- [relative, error]],
    io_lib:format("~b ± ~b %", [round(100 * Ratio), ceil(100 * Error)]).

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
%% never equally fast. So each part of the work is done by the observed system and then by another one, and the ratio is
%% related to that before the first one loaded the library.
figures(_, #{missing := Missing}, _) when Missing =/= false ->
    #{};
figures([{untouched, _, none} | States], Subject = #{start := Start, load := Load, stop := Stop},
        #{folder := Folder}) ->
    Recorded = filename:join(filename:absname(Folder), "recorded"),
    Systems = [Start(), Start()],
    try
        _ = in_round(Subject, Systems),
        Before = in_rounds(untouched, Subject, Systems),
        ok = Load(hd(Systems)),
        of_untouched(maps:from_list([Figure || State <- States, Figure <- in_state(State, Subject, Systems, Recorded)]),
                     maps:from_list(Before))
    after lists:foreach(Stop, Systems)
    end.

%% Errors are relative to the ratios.
of_untouched(Figures, Before) ->
    Untouched = fun(Key) -> maps:get({untouched, Key}, Before) end,
    maps:merge(Before,
               maps:map(fun({_, Key = {relative, _}}, Ratio) -> Ratio / Untouched(Key);
                           ({_, Key = {error, _}}, Error) -> math:sqrt(Error * Error + math:pow(Untouched(Key), 2));
                           (_, Value) -> Value
                        end, Figures)).

in_state({Row, _, none}, Subject, Systems, _) ->
    in_rounds(Row, Subject, Systems);
in_state({Row, _, [Name | Args]}, Subject = #{os_pid := OsPidOf, following := Following},
         Systems = [Observed, _], Folder) ->
    OsPid = OsPidOf(Observed),
    %% A process that queries the node is itself a node, and a report of several nodes records more.
    ok = observed:alone(OsPid),
    Command = test_command:start([Name, OsPid | [case Arg of folder -> Folder; _ -> Arg end || Arg <- Args]]),
    ok = test_command:await(".", Command),
    ok = observed:settled(fun() -> Following(Observed) end),
    Figures = in_rounds(Row, Subject, Systems),
    ok = test_command:signal("INT", Command),
    {_, _} = test_command:finish(Command),
    ok = test_wait:until("no consumer is attached", "off", fun() -> Following(Observed) end),
    _ = file:del_dir_r(Folder),
    Figures.

in_rounds(Row, Subject, Systems = [Observed, _]) ->
    %% Not counted: names are dumped for a command that has just started.
    _ = in_part(Subject, Observed),
    Rounds = [Figure || _ <- lists:seq(1, ?ROUNDS), Figure <- in_round(Subject, Systems)],
    Medians = medians(Rounds),
    Errors = [{{error, What}, standard_error(proplists:get_all_values(Key, Rounds)) / maps:get(Key, Medians)}
              || Key = {relative, What} <- maps:keys(Medians)],
    [{{Row, What}, Value} || {What, Value} <- maps:to_list(Medians) ++ Errors].

in_round(Subject = #{messages := Messages, parts := Parts}, Systems) ->
    Took = [[in_part(Subject, System) || System <- Systems] || _ <- lists:seq(1, Parts)],
    [[Cpu, Us], [OtherCpu, OtherUs]] = lists:foldl(fun added/2, [[0, 0], [0, 0]], Took),
    [{cpu, Cpu / Messages / Parts}, {rate, 1.0e6 * Messages * Parts / Us},
     {{relative, cpu}, Cpu / OtherCpu}, {{relative, rate}, OtherUs / Us}].

added(Part, Sums) -> lists:zipwith(fun(Of, Sum) -> lists:zipwith(fun erlang:'+'/2, Of, Sum) end, Part, Sums).

%% The CPU time of the system, and the time that passed.
in_part(#{messages := Messages, os_pid := OsPidOf, work := Work}, System) ->
    Run = Work(Messages, System),
    OsPid = OsPidOf(System),
    Before = cpu_us(OsPid),
    {Us, ok} = timer:tc(Run),
    [cpu_us(OsPid) - Before, Us].

%% The CPU time of a process, as the sum of its threads: their times are in ns, that of the process in ticks of 10 ms.
-spec cpu_us(OsPid :: string()) -> float().
cpu_us(OsPid) ->
    Files = [_ | _] = filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/schedstat"),
    %% A thread may end meanwhile.
    Read = [Times || File <- Files, {ok, Times} <- [file:read_file(File)]],
    lists:sum([binary_to_integer(hd(binary:split(Times, <<" ">>))) || Times <- Read]) / 1000.
