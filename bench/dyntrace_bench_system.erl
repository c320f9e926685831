%% The cost of observing a real system: the CPU time of Debian's RabbitMQ per message.
-module(dyntrace_bench_system).

-export([system/1, reports/1]).

-import(dyntrace_bench_figures, [in_turn/3, count/1, percent/1]).

-define(ROUNDS, 10).
-define(MESSAGES, 2000).
%% In each round, a report traces and pauses several times.
-define(REPORTED, 20000).

-spec system(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
system(Consumers) ->
    table("A real system", states(), ?MESSAGES, Consumers).

-spec reports(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
reports(Consumers) ->
    table("A report of a real system", reported_states(), ?REPORTED, Consumers).

table(Title, States, Messages, #{folder := Folder}) ->
    Recorded = filename:join(filename:absname(Folder), "recorded"),
    {About, Figures} = case packaged_rabbitmq:missing() of
                           false -> {about(Messages), figures(States, Messages, Recorded)};
                           Missing -> not_measured(Missing)
                       end,
    {{Title, About,
      ["RabbitMQ is", "us of CPU per message", "of untouched", "messages per second", "of untouched"],
      [[Of | lists:append([[count(Figure(Row)), percent(Figure(Row) / Figure(untouched))]
                           || What <- [cpu, rate],
                              Figure <- [fun(Which) -> maps:get({Which, What}, Figures) end]])]
       || {Row, Of, _} <- States, map_size(Figures) > 0]},
     Figures}.

not_measured(Missing) ->
    io:format("system: NOT MEASURED: ~ts~n", [Missing]),
    {["**Not measured**: ", Missing, "."], #{}}.

about(Messages) ->
    io_lib:format("Debian's RabbitMQ: one client publishes and waits for the confirmation of each message, another one "
                  "consumes. ~s messages, ~b times, alternating with the other rows. CPU time is that of the server's "
                  "process. ~s messages before them are not counted, because the node then dumps its names for a "
                  "command that has just started, which takes some 50 ms of CPU time.",
                  [count(Messages), ?ROUNDS, count(?MESSAGES)]).

%% {Row, Title, the command that observes it}
states() ->
    Long = ["--seconds", "600"],
    [{untouched, "untouched", none},
     {loaded, "loaded, no consumer", none},
     {samples, "sampled: `dyntrace record --events samples,counters`",
      ["record", "--events", "samples,counters", "-o"]},
     {top, "watched by `dyntrace top`", ["top" | Long]},
     {exact, "watched by `dyntrace top --exact`", ["top", "--exact" | Long]},
     {profile, "sampled by `dyntrace profile`", ["profile" | Long]},
     {record, "recorded by `dyntrace record`", ["record", "-o"]},
     {recorder, "recorded in memory by `dyntrace record --snapshot --when crash`",
      ["record", "--snapshot", "--when", "crash", "-o"]},
     {full_recorder, "the same with `--full`", ["record", "--snapshot", "--full", "--when", "crash", "-o"]}].

reported_states() ->
    Report = ["report", "-o", "-", "--seconds", "600"],
    [{untouched, "untouched", none},
     {report, "recorded by `dyntrace report`", Report},
     {full_report, "the same with `--full`", Report ++ ["--full"]}].

%% Two servers, because a loaded library may have lasting effects.
figures(States, Messages, Folder) ->
    Untouched = packaged:start(packaged_rabbitmq, []),
    try
        Loaded = packaged:start(packaged_rabbitmq, []),
        try
            ok = packaged:load(Loaded),
            in_turn(?ROUNDS, States, fun(State) -> in_state(State, Messages, Untouched, Loaded, Folder) end)
        after packaged:stop(Loaded)
        end
    after packaged:stop(Untouched)
    end.

in_state({untouched, _, none}, Messages, Untouched, _, _) ->
    published(untouched, Messages, Untouched);
in_state({loaded, _, none}, Messages, _, Loaded, _) ->
    published(loaded, Messages, Loaded);
in_state({Row, _, Args}, Messages, _, Loaded, Folder) ->
    OsPid = packaged:os_pid(Loaded),
    %% A process that queries the node is itself a node, and a report of several nodes records more.
    ok = observed:alone(OsPid),
    Command = test_command:start(command(Args, OsPid, Folder)),
    ok = test_command:await(".", Command),
    ok = observed:followed(Loaded),
    Figures = published(Row, Messages, Loaded),
    ok = test_command:signal("INT", Command),
    {_, _} = test_command:finish(Command),
    ok = test_wait:until("no consumer is attached", "off", fun() -> observed:following(Loaded) end),
    _ = file:del_dir_r(Folder),
    Figures.

command(["record" | Args], OsPid, Folder) -> ["record", OsPid | Args] ++ [Folder];
command([Name | Args], OsPid, _) -> [Name, OsPid | Args].

published(Row, Messages, System) ->
    OsPid = packaged:os_pid(System),
    _ = publish(?MESSAGES, System),
    Before = cpu_us(OsPid),
    Took = publish(Messages, System),
    [{{Row, cpu}, (cpu_us(OsPid) - Before) / Messages}, {{Row, rate}, Messages * 1.0e6 / Took}].

%% The duration in microseconds.
publish(Messages, System) ->
    Client = packaged:client(System, ["bench", "rate=1000000", lists:concat(["count=", Messages])]),
    Began = erlang:monotonic_time(microsecond),
    #{"published" := Messages, "delivered" := Messages} = client:finish(Client),
    erlang:monotonic_time(microsecond) - Began.

%% The sum of its threads: their times are in ns, that of the process is in ticks of 10 ms.
cpu_us(OsPid) ->
    Files = [_ | _] = filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/schedstat"),
    %% A thread may end meanwhile.
    Read = [Times || File <- Files, {ok, Times} <- [file:read_file(File)]],
    lists:sum([binary_to_integer(hd(binary:split(Times, <<" ">>))) || Times <- Read]) / 1000.
