%% A flight recorder that stays on: a RabbitMQ under load, with incidents at random times. Each should have its
%% snapshot, with the culprit inside. With MINUTES=9, there are three incidents.
-module(dyntrace_bench_incidents).

-export([incidents/1, title/1]).

-import(dyntrace_bench_figures, [medians/1, percentile/2, count/1, percent/1]).

-define(SEED, 2026).
%% In an hour.
-define(INCIDENTS, 20).
%% The recorder writes at most one snapshot in ten seconds, some seconds after the cause.
-define(APART_MS, 40000).
-define(ALONE_MS, 120000).
-define(MESSAGES, 10000).

-type figure() :: {Key :: term(), number()}.

%% A part of the load.
-record(part, {began :: integer(), ended :: integer(), figures :: [figure()] | failed}).

%% An incident, the snapshot that it caused, and the time until it was written.
-record(incident, {kind :: atom(), began :: integer(), ended :: integer(), ms :: integer() | none,
                   snapshot :: file:filename() | none}).

-spec title(incidents) -> string().
title(incidents) -> "Incidents of a real system".

-spec incidents(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
incidents(#{folder := Folder}) ->
    [error({not_measured, Missing}) || Missing <- [packaged_rabbitmq:missing()], Missing =/= false],
    Minutes = list_to_integer(os:getenv("MINUTES", "60")),
    _ = rand:seed(exsss, ?SEED),
    Snapshots = filename:join(filename:absname(Folder), "incidents"),
    System = packaged:start(packaged_rabbitmq, [packaged_rabbitmq:started_with()]),
    try
        ok = prepared(System),
        Before = loaded(System, fun() -> timer:sleep(?ALONE_MS) end),
        {Parts, {Incidents, Costs}} = loaded(System, fun() -> recorded(System, Snapshots, Minutes) end),
        After = loaded(System, fun() -> timer:sleep(?ALONE_MS) end),
        table(Minutes, Incidents, Costs, element(1, Before) ++ element(1, After), Parts, snapshots(Snapshots))
    after
        packaged:stop(System),
        file:del_dir_r(Snapshots)
    end.

%% -- The incidents ---------------------------------------------------------------------------

%% {Kind, how it is caused, the cause of the snapshot, what the snapshot says of it}
kinds() ->
    [{crash, fun plant/2, "crash", "label_printer.*no_paper"},
     {logged_error, fun plant/2, "error", "the payment gateway refused card"},
     {overload, fun plant/2, "run_queue", "invoice_batch_"},
     {heap, fun plant/2, "memory", "session_cache"},
     {consumer, fun plant/2, "queue", "mail_sorter"},
     {many_processes, fun plant/2, "processes", "fault:visitor"},
     {silence, fun stopped/2, "silence", "no samples for "},
     {killed, fun killed/2, "end", "killed by SIGKILL"}].

causes() ->
    lists:append([["--when", Cause] || Cause <- ["crash", "error", "run_queue > 8 for 3s", "memory > 400MB for 3s",
                                                 "queue > 2000 for 3s", "processes > 5000 for 3s", "silence > 5s"]]).

%% Returns how to end the incident.
plant(Kind, System) ->
    "ok" = packaged:eval(System, lists:concat(["fault:plant(", Kind, ")."])),
    fun() -> "ok" = packaged:eval(System, "fault:remove()."), ok end.

stopped(_, System) ->
    OsPid = packaged:os_pid(System),
    ok = signal("STOP", OsPid),
    fun() -> signal("CONT", OsPid) end.

killed(_, System) ->
    ok = signal("KILL", packaged:os_pid(System)),
    fun() -> ok = packaged:restart(System, [packaged_rabbitmq:started_with()]), prepared(System) end.

signal(Signal, OsPid) ->
    {0, _} = test_shell:run("kill -~s ~s", [Signal, OsPid]),
    ok.

prepared(System) ->
    File = filename:absname(filename:rootname(code:which(fault))),
    "{module, fault}" = packaged:eval(System, "code:load_abs(\"" ++ File ++ "\")."),
    ok.

recorded(System, Folder, Minutes) ->
    Number = max(1, ?INCIDENTS * Minutes div 60),
    Recorder = test_command:start(["record", packaged:os_pid(System), "--snapshot", "-o", Folder,
                                   "--at-most", "100/hour", "--keep", "100" | causes()]),
    ok = test_command:await("are kept in memory", Recorder),
    {Began, Daemons} = {now_ms(), ticks(daemons())},
    SlotMs = Minutes * 60000 div Number,
    Incidents = [incident(Kind, Began + N * SlotMs + rand:uniform(SlotMs - ?APART_MS), System, Folder)
                 || {N, Kind} <- lists:enumerate(0, shuffled(Number))],
    ok = sleep_until(Began + Minutes * 60000),
    Seconds = (now_ms() - Began) / 1000,
    Own = tree(test_command:os_pid(Recorder)),
    Costs = [{seconds, Seconds},
             {recorder_cpu, ticks(Own) / 100 / Seconds}, {recorder_mb, megabytes(Own)},
             {daemon_cpu, (ticks(daemons()) - Daemons) / 100 / Seconds}, {daemon_mb, megabytes(daemons())}],
    Output = test_command:interrupted(Recorder),
    io:format("~ts", [Output]),
    {Incidents, Costs}.

%% Each kind about as often as the others.
shuffled(Number) ->
    Kinds = lists:sublist(lists:append(lists:duplicate(1 + Number div length(kinds()), kinds())), Number),
    [Kind || {_, Kind} <- lists:sort([{rand:uniform(), Kind} || Kind <- Kinds])].

incident({Kind, Cause, Name, _}, At, System, Folder) ->
    ok = sleep_until(At),
    Known = names(Folder),
    Began = now_ms(),
    End = Cause(Kind, System),
    Found = awaited(Name, Known, Folder, Began + ?APART_MS),
    Ms = case Found of none -> none; _ -> now_ms() - Began end,
    ok = End(),
    io:format("~s: ~w, ~p ms, ~ts~n", [calendar:system_time_to_rfc3339(os:system_time(second)), Kind, Ms, Found]),
    #incident{kind = Kind, began = Began, ended = now_ms(), ms = Ms, snapshot = Found}.

%% The path of a new snapshot of this cause.
awaited(Cause, Known, Folder, Deadline) ->
    New = [Name || Name <- names(Folder) -- Known, re:run(Name, "-" ++ Cause ++ "([^a-z].*)?$") =/= nomatch],
    case {New, now_ms() < Deadline} of
        {[Name | _], _} -> filename:join(Folder, Name);
        {[], true} -> timer:sleep(100), awaited(Cause, Known, Folder, Deadline);
        {[], false} -> none
    end.

names(Folder) ->
    [filename:basename(Path) || Path <- snapshots(Folder)].

%% A snapshot without this file is being written.
snapshots(Folder) ->
    [filename:dirname(File) || File <- filelib:wildcard(filename:join(Folder, "2*-*/cause.json"))].

%% What a user reads of a snapshot: its report, and its stacks, if it has some.
text(none) -> "";
text(Snapshot) ->
    {0, Report} = test_command:run(["view", Snapshot]),
    case file:read_file(filename:join(Snapshot, "stacks.txt")) of
        {ok, Stacks} -> <<Report/binary, Stacks/binary>>;
        {error, enoent} -> Report
    end.

%% -- The load --------------------------------------------------------------------------------

%% The parts of the load while the function runs, and its result.
loaded(System, Fun) ->
    Self = self(),
    Load = spawn_link(fun() -> load(System, [], Self) end),
    Result = Fun(),
    Load ! stop,
    receive {Load, Parts} -> {Parts, Result} end.

load(System, Parts, Owner) ->
    receive
        stop -> Owner ! {self(), Parts}
    after 0 ->
        {Began, Figures} = {now_ms(), figures(System)},
        load(System, [#part{began = Began, ended = now_ms(), figures = Figures} | Parts], Owner)
    end.

%% A client fails if the server ends.
figures(System) ->
    #{work := Work} = dyntrace_bench_subjects:rabbitmq(),
    try
        OsPid = packaged:os_pid(System),
        Run = Work(?MESSAGES, System),
        Before = dyntrace_bench_system:cpu_us(OsPid),
        {Us, ok} = timer:tc(Run),
        [{cpu, (dyntrace_bench_system:cpu_us(OsPid) - Before) / ?MESSAGES}, {rate, ?MESSAGES * 1.0e6 / Us}]
    catch
        error:_ -> timer:sleep(1000), failed
    end.

%% -- Costs of the recorder -------------------------------------------------------------------

daemons() ->
    {_, Pids} = test_shell:run("pgrep ^lttng-", []),
    string:lexemes(binary_to_list(Pids), "\n").

%% A process and its descendants.
tree(OsPid) ->
    {_, Children} = test_shell:run("pgrep -P ~s", [lists:concat([OsPid])]),
    [lists:concat([OsPid]) | lists:append([tree(Child) || Child <- string:lexemes(binary_to_list(Children), "\n")])].

%% The CPU time in ticks of 10 ms, with that of children that have ended.
ticks(OsPids) ->
    lists:sum([lists:sum(lists:sublist(fields(OsPid), 11, 4)) || OsPid <- OsPids]).

%% Of /proc/PID/stat, without the first three: pid, name and state.
fields(OsPid) ->
    {0, Text} = test_shell:run("sed 's/.*) [A-Z] //' /proc/~s/stat", [OsPid]),
    [list_to_integer(Field) || Field <- string:lexemes(string:trim(binary_to_list(Text)), " ")].

%% The memory without LTTng's buffers, which are shared.
megabytes(OsPids) ->
    lists:sum([begin
                   {0, Text} = test_shell:run("sed -n 's/^RssAnon:\\s*\\([0-9]*\\) kB/\\1/p' /proc/~s/status", [OsPid]),
                   binary_to_integer(string:trim(Text)) / 1000
               end || OsPid <- OsPids]).

%% -- The table -------------------------------------------------------------------------------

table(Minutes, Incidents, Costs, Alone, Parts, All) ->
    Texts = [{Incident, text(Incident#incident.snapshot)} || Incident <- Incidents],
    Quiet = [Part || Part <- Parts, not lists:any(fun(Incident) -> overlap(Part, Incident) end, Incidents)],
    [Without, With] = [medians([Figure || #part{figures = Figures} <- Some, Figures =/= failed, Figure <- Figures])
                       || Some <- [Alone, Quiet]],
    Of = fun(What) -> percent(maps:get(What, With) / maps:get(What, Without)) end,
    Cost = maps:from_list(Costs),
    Messages = ?MESSAGES * length([Part || Part = #part{figures = [_ | _]} <- Parts]),
    Planned = [Incident || Incident <- Incidents, Incident#incident.snapshot =/= none],
    {{title(incidents),
      io_lib:format(
        "Debian's RabbitMQ, for ~b minutes with one client that publishes and one that consumes, both as fast as they "
        "can, and `dyntrace record --snapshot`; ~b incidents at random times. It delivered ~s messages, ~s per second "
        "with the incidents. In the parts without an incident it took ~s of the CPU time per message, and delivered "
        "~s of the messages per second, compared with parts of ~s messages before and afterwards, without a "
        "recorder. The recorder took ~.1f % of a CPU and ~s MB at the end, the session daemon and its consumer ~.1f % "
        "and ~s MB without the buffers. ~b snapshots were written, ~b of them for other causes than these incidents.",
        [Minutes, length(Incidents), count(Messages), count(Messages / maps:get(seconds, Cost)), Of(cpu), Of(rate),
         count(?MESSAGES), 100 * maps:get(recorder_cpu, Cost), count(maps:get(recorder_mb, Cost)),
         100 * maps:get(daemon_cpu, Cost), count(maps:get(daemon_mb, Cost)), length(All),
         length(All) - length(Planned)]),
      ["incident, cause", "planted", "snapshots", "that name the culprit", "seconds until written, at most"],
      [[[string:replace(atom_to_list(Kind), "_", " ", all), ", `", Cause, "`"] | row(Kind, Regex, Texts)]
       || {Kind, _, Cause, Regex} <- kinds()]},
     maps:merge(Cost, maps:from_list([{{Row, What}, Value} || {Row, Figures} <- [{without, Without}, {with, With}],
                                                              {What, Value} <- maps:to_list(Figures)]))}.

row(Kind, Regex, Texts) ->
    Planted = [{Incident, Text} || {Incident = #incident{kind = Of}, Text} <- Texts, Of =:= Kind],
    Ms = lists:sort([Ms || {#incident{ms = Ms}, _} <- Planted, is_integer(Ms)]),
    Named = [named || {_, Text} <- Planted, re:run(Text, Regex, [unicode, dotall]) =/= nomatch],
    [count(length(Planted)), count(length(Ms)), count(length(Named)),
     case Ms of [] -> "-"; _ -> io_lib:format("~.1f", [percentile(100, Ms) / 1000]) end].

overlap(#part{began = From, ended = To}, #incident{began = Began, ended = Ended}) ->
    From < Ended andalso Began < To.

sleep_until(At) ->
    timer:sleep(max(0, At - now_ms())).

now_ms() ->
    erlang:monotonic_time(millisecond).
