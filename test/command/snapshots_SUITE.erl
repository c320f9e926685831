%% A flight recorder that writes automatically, `dyntrace record --snapshot --when': each cause, an event storm, a node
%% that comes back, a full disk, a daemon that is killed, the node of another user.
-module(snapshots_SUITE).

-include("../support/suite.hrl").

%% Cases with a node and a session daemon of another user.
-define(IS_OF_NOBODY(Case), Case =:= another_user; Case =:= hostile_user; Case =:= hostile_folder;
                            Case =:= hostile_snapshot).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [causes, on_demand, ends, storm_and_restart, full_disk_and_lost_daemon, another_user, hostile_user, hostile_folder,
     hostile_snapshot, wrong_filter].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    Missing = test_require:first([NotRoot, fun test_lttng:missing/0, fun test_viewer:missing/0]),
    _ = test_require:tool(Missing, Config),
    Config.

end_per_suite(_) -> ok.

%% That user's node would also register with root's daemon.
init_per_testcase(Case, Config) when ?IS_OF_NOBODY(Case) ->
    Config;
init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Folder),
    Daemon = test_lttng:start_daemon(),
    WithEpmd = [{epmd, test_node:start_epmd()} | Config],
    [{folder, Folder}, {daemon, Daemon}, {node, started(WithEpmd)} | WithEpmd].

end_per_testcase(Case, _) when ?IS_OF_NOBODY(Case) ->
    ok;
end_per_testcase(Case, Config) ->
    Node = ?config(node, Config),
    _ = [test_node:stop(Node) || is_process_alive(Node)],
    test_wait:until("the node has gone, whose name the next one has", nomatch,
                    fun() -> {_, Nodes} = test_command:run(["nodes"]), string:find(Nodes, full_name()) end),
    test_node:stop_epmd(?config(epmd, Config)),
    %% This case kills the daemon itself.
    Case =:= full_disk_and_lost_daemon orelse test_lttng:stop_daemon(?config(daemon, Config)).

started(Config) ->
    Node = test_node:named(name(), ?config(epmd, Config)),
    Env = [{interval, 50}, {log, error}, {functions, [{?MODULE, wait_for, 1}]}, {long_gc, 50},
           {long_schedule, 200}, {long_message_queue, {10, 100}}],
    ok = test_node:call(Node, fun() -> test_node:started(Env) end),
    Node.

%% -- Causes ----------------------------------------------------------------------------------------

%% {Name of the snapshots, argument of --when, regex for a line of the recording, action on the node}
happenings(Drivers) ->
    [{"crash", "crash", "crash_report: .*boom", fun() -> spawn(fun() -> error({boom, on_purpose}) end) end},
     {"error", "error", "log: .*something broke", fun() -> logger:error("something broke") end},
     {"long_gc", "long_gc", "vm_long_gc: ", fun collect/0},
     {"long_schedule", "long_schedule", "vm_long_schedule: .*timeout",
      fun() ->
              ok = test_driver:load(Drivers, output),
              Port = test_driver:open(output),
              ok = test_driver:sleep_later(Port, 400),
              receive {Port, {data, <<"timeout">>}} -> port_close(Port) end
      end},
     {"busy_port", "busy_port", "vm_busy_port: ", fun write/0},
     {"mark-cache_miss", "mark:cache_miss", "user_mark: .*cache_miss", fun() -> dyntrace:mark("cache_miss", "") end},
     {"process_register", "process_register /name == \"night_clerk\"/", "process_register: .*night_clerk",
      fun() -> register(night_clerk, self()) end},
     {"call-snapshots_SUITE_wait_for-1", "call:snapshots_SUITE:wait_for/1 > 300ms",
      "function_duration: .*\"snapshots_SUITE:wait_for/1\", duration = [4-9]\\d{8}, class = \"return\"",
      fun() -> [?MODULE:wait_for(Ms) || Ms <- [1, 400, 2]] end},
     {"queue", "queue > 150 for 1s", "process_sample: .*queue = 199", fun() -> wait_with(199) end},
     {"processes", "processes > 400 for 1s", "vm_counter: .*\"processes\", value = [45]\\d\\d",
      fun() -> [spawn(fun() -> receive after 30000 -> ok end end) || _ <- lists:seq(1, 400)] end}].

%% A traced function.
wait_for(Ms) ->
    receive after Ms -> ok end.

%% Messages in a queue that is not read for a while.
wait_with(Messages) ->
    Reader = spawn(fun() -> receive after 30000 -> ok end end),
    [Reader ! N || N <- lists:seq(1, Messages)].

long_queue() ->
    {"long_queue", "long_queue", "vm_long_message_queue: .*\"long\"",
     fun() -> Reader = spawn(fun() -> receive stop -> ok end end), [Reader ! N || N <- lists:seq(1, 200)] end}.

collect() ->
    spawn(fun() -> List = lists:seq(1, 8000000), true = erlang:garbage_collect(), hd(List) end).

write() ->
    spawn(fun() ->
                  Port = open_port({spawn_executable, "/bin/sleep"}, [{args, ["5"]}]),
                  [port_command(Port, binary:copy(<<"data">>, 100000)) || _ <- lists:seq(1, 100)]
          end).

%% Each cause has a recorder that writes once, at that cause and at no other. One recorder has a cause that does not
%% happen. They start one after the other, because the daemon of LTTng 2.16 crashed twice when ten set triggers at once.
causes(Config) ->
    Drivers = test_driver:build(?config(priv_dir, Config)),
    Causes = happenings(Drivers) ++ [long_queue() || has_long_queues(Config)],
    Recorders = [{Cause, recording(Name, Word, Config)} || Cause = {Name, Word, _, _} <- Causes],
    Idle = recording("idle", "mark:never", Config),
    Silent = recording("silence", "silence > 3s", Config),
    until_following(Config),
    ?assertEqual([], written_by(Idle) ++ [Name || {{Name, _, _, _}, Recorder} <- Recorders,
                                                  written_by(Recorder) =/= []]),
    [call(Config, Happens) || {_, _, _, Happens} <- Causes],
    [has_cause(Name, Line, until_written(1, Recorder)) || {{Name, _, Line, _}, Recorder} <- Recorders],
    [Calls] = [Recorder || {{"call-" ++ _, _, _, _}, Recorder} <- Recorders],
    ?assertEqual(1, long_calls(hd(until_written(1, Calls)))),
    %% The stacks of a level show the kind of which there are many.
    [Many] = [Recorder || {{"processes", _, _, _}, Recorder} <- Recorders],
    {ok, Stacks} = file:read_file(filename:join(hd(until_written(1, Many)), "stacks.txt")),
    ?assertMatch({match, _}, re:run(Stacks, "^400 waiting.*:.*\\n    snapshots_SUITE:", [multiline])),
    ?assertEqual([], written_by(Idle)),
    %% The node hangs. Its samples have arrived: the snapshot `processes` took two.
    ?assertEqual([], written_by(Silent)),
    OsPid = test_node:os_pid(?config(node, Config)),
    signal("STOP", OsPid),
    try
        Written = until_written(1, Silent),
        has_cause("silence", "vm_counter: ", Written),
        has_stacks(OsPid, hd(Written))
    after signal("CONT", OsPid)
    end,
    {0, _} = ended("INT", Silent),
    %% A signal requests a snapshot, and so does the program.
    {_, Asked} = Idle,
    ok = test_command:signal("USR1", Asked),
    ?assertMatch([#{<<"cause">> := "asked"}], [cause_of(One) || One <- until_written(1, Idle)]),
    {0, _} = ended("INT", Idle),
    Requested = recording("requested", "mark:never", Config),
    test_wait:until("the mark is enabled", true,
                    fun() -> call(Config, fun() -> dyntrace:snapshot("out of tea") end) end),
    has_cause("snapshot", "user_mark: .*out of tea", until_written(1, Requested)),
    [{0, _} = ended("INT", Recorder) || Recorder <- [Requested | [Recorder || {_, Recorder} <- Recorders]]],
    ?assertEqual(<<>>, triggers(Config)).

has_cause(Name, Line, [Snapshot]) ->
    ?assertMatch({match, _}, re:run(filename:basename(Snapshot), "^\\d{8}-\\d{6}-" ++ Name ++ "$")),
    Node = list_to_binary(full_name()),
    ?assertMatch(#{<<"cause">> := Name, <<"node">> := Node}, cause_of(Snapshot)),
    {0, Events} = test_shell:run("babeltrace2 '~ts'", [Snapshot]),
    ?assertMatch({match, _}, re:run(Events, Line), Name).

%% How many calls a snapshot has: only those that are causes are recorded.
long_calls(Snapshot) ->
    {0, Events} = test_shell:run("babeltrace2 '~ts'", [Snapshot]),
    length(string:split(Events, "function_duration: ", all)) - 1.

%% The node does not run while its stacks are read.
has_stacks(OsPid, Snapshot) ->
    {ok, Stacks} = file:read_file(filename:join(Snapshot, "stacks.txt")),
    Head = unicode:characters_to_binary(["stacks of ", full_name(), " (", OsPid, "): "]),
    ?assertEqual({match, [Head]},
                 re:run(Stacks, "^stacks of .*: (?=\\d+ processes$)", [multiline, {capture, first, binary}])),
    ?assertMatch({match, _}, re:run(Stacks, "^\\d+ waiting.*: .*\\n    gen_server:loop/\\d", [multiline])),
    {0, Viewed} = test_command:run(["view", Snapshot]),
    ?assertMatch({match, _}, re:run(Viewed, "^stacks of .* at that time: .*/stacks[.]txt$", [multiline])).

has_long_queues(Config) ->
    call(Config, fun() -> list_to_integer(erlang:system_info(otp_release)) >= 27 end).

%% -- Tracing on demand -----------------------------------------------------------------------------

%% No process is traced until the cause, and none after the snapshot. The second crash is recorded in full. Processes
%% that are sampled have names, although they were spawned without trace flags.
on_demand(Config) ->
    Recorder = {_, Command} = recorder("on_demand", ["--when", "crash"], Config),
    ok = test_command:await("processes are traced only for 5 s after a cause", Command),
    until_recorded(crash_report, Config),
    ?assertEqual([], traced(Config)),
    Busy = call(Config, fun() -> named_later(night_watch) end),
    test_wait:until("it is sampled", true, fun() -> call(Config, fun() -> is_sampled(night_watch) end) end),
    call(Config, fun() -> crash({boom, first}) end),
    test_wait:until("processes are traced", true, fun() -> lists:member(procs, traced(Config)) end),
    call(Config, fun() -> crash({boom, second}) end),
    [Snapshot] = until_written(1, Recorder),
    test_wait:until("no process is traced", [], fun() -> traced(Config) end),
    ?assertMatch(#{<<"cause">> := "crash"}, cause_of(Snapshot)),
    {0, Text} = test_command:run(["view", Snapshot]),
    ?assertMatch({match, _}, re:run(Text, "crash in .*: <[0-9.]+> snapshots_SUITE:\\S+ {{boom,first},"), Text),
    ?assertMatch({match, _}, re:run(Text, "\n  high +<[0-9.]+> snapshots_SUITE:.* crashed: {{boom,first},"), Text),
    ?assertMatch({match, _}, re:run(Text, "\nProcesses were traced for \\d[.]\\d+ s of it; ")),
    #{<<"recording">> := #{<<"seconds">> := Seconds, <<"untraced_ns">> := Untraced}, <<"exits">> := Exits,
      <<"processes">> := Processes} = test_viewer:json(report, [{format, "json"}], [Snapshot]),
    ?assert(Untraced > 0 andalso Untraced < Seconds * 1.0e9 - 3.0e9, {Untraced, Seconds}),
    ?assertMatch([_], [Exit || #{<<"reason">> := <<"{{boom,second},", _/binary>>} = Exit <- Exits]),
    BusyText = call(Config, fun() -> test_cases:text(Busy) end),
    ?assertMatch([<<"night_watch">>], [Name || #{<<"process">> := #{<<"pid">> := Pid, <<"name">> := Name}} <- Processes,
                                               Pid =:= BusyText]),
    %% A request is traced, too; the end of the recorder does not wait.
    ok = test_command:signal("USR1", Command),
    test_wait:until("processes are traced again", true, fun() -> lists:member(procs, traced(Config)) end),
    {0, _} = ended("INT", Recorder),
    ?assertEqual(["asked", "crash"], lists:sort([maps:get(<<"cause">>, cause_of(One)) || One <- written_by(Recorder)])).

%% On the node: a process that is busy, and has a name.
named_later(Name) ->
    Self = self(),
    Pid = spawn(fun() -> true = register(Name, self()), Self ! {self(), named}, work() end),
    receive {Pid, named} -> Pid end.

work() ->
    _ = lists:sum(lists:seq(1, 10000)),
    receive after 5 -> work() end.

crash(Reason) ->
    proc_lib:spawn(fun() -> error(Reason) end).

is_sampled(Name) ->
    #{following := #{sources := Sources}} = dyntrace:info(),
    lists:member(process_samples, Sources) andalso element(2, process_info(whereis(Name), reductions)) > 8000000.

traced(Config) ->
    #{following := #{processes := Flags}} = call(Config, fun dyntrace:info/0),
    Flags.

until_recorded(Probe, Config) ->
    test_wait:until("the probe is enabled", true,
                    fun() -> lists:member(Probe, call(Config, fun() -> [Name || #{name := Name} <- dyntrace:listeners()]
                                                              end)) end).

%% -- Ends ------------------------------------------------------------------------------------------

%% The snapshot says how the node ended, and has its last events: all that the node has counted in a file.
ends(Config) ->
    Broken = fun(Node) -> later(Node, fun() -> erlang:halt("out of tea") end) end,
    [ended_node(Name, End, How, IsFailure, Config)
     || {Name, End, How, IsFailure} <-
            [{"kill", fun(Node) -> signal("KILL", test_node:os_pid(Node)) end, "killed by SIGKILL", true},
             {"segv", fun(Node) -> signal("SEGV", test_node:os_pid(Node)) end, "killed by SIGSEGV", true},
             {"slogan", Broken, "exited with status 1; its crash dump: out of tea", true},
             {"stop", fun(Node) -> later(Node, fun init:stop/0) end, "exited with status 0", false}]].

ended_node(Name, End, How, IsFailure, Config) ->
    Path = filename:join(?config(folder, Config), Name),
    [Folder, Dump, Ticks] = [Path ++ Suffix || Suffix <- ["", ".dump", ".ticks"]],
    Node = test_node:start(#{env => [{"ERL_CRASH_DUMP", Dump}, {"ERL_CRASH_DUMP_SECONDS", "-1"}]}),
    ok = test_node:call(Node, fun() -> test_node:started([{interval, 50}]) end),
    Command = test_command:start(["record", test_node:os_pid(Node), "--snapshot", "--when", "end", "-o", Folder]),
    ok = test_command:await("kept in memory", Command),
    until_recorded(user_mark, [{node, Node}]),
    test_node:call(Node, fun() -> spawn(fun() -> {ok, File} = file:open(Ticks, [write, raw]), tick(File) end) end),
    test_wait:until("it has counted", true, fun() -> counted(Ticks) >= 20 end),
    _ = End(Node),
    {0, Output} = test_command:finish(Command),
    Known = test_command:known_end(How),
    ?assertMatch({match, _}, re:run(Output, "has ended, " ++ Known ++ "; it has no name"), Output),
    [Snapshot] = written(Folder),
    Text = list_to_binary(Known),
    ?assertMatch(#{<<"cause">> := "end", <<"text">> := Text}, cause_of(Snapshot)),
    {0, Events} = test_shell:run("babeltrace2 '~ts' | grep -c ' user_mark:\\|:user_mark: '", [Snapshot]),
    ?assert(binary_to_integer(string:trim(Events)) >= counted(Ticks), {Events, counted(Ticks)}),
    {0, Report} = test_command:run(["view", Snapshot]),
    Finding = "\n  high +nonode@nohost ended: " ++ Known,
    ?assertEqual(IsFailure, re:run(Report, Finding) =/= nomatch, Report).

%% After the answer to this call.
later(Node, Fun) ->
    test_node:call(Node, fun() -> spawn(fun() -> receive after 100 -> Fun() end end) end).

signal(Name, OsPid) ->
    {0, _} = test_shell:run("kill -~s ~s", [Name, OsPid]).

tick(File) ->
    true = dyntrace:mark("tick", ""),
    ok = file:write(File, "\n"),
    receive after 5 -> tick(File) end.

counted(Ticks) ->
    case file:read_file(Ticks) of
        {ok, Lines} -> byte_size(Lines);
        {error, enoent} -> 0
    end.

%% -- Storms ----------------------------------------------------------------------------------------

%% A thousand crashes in a second cause one snapshot; the others are counted. The recorder outlives its shell, and
%% records the node again when it has come back. If the recorder is killed, nothing is left.
storm_and_restart(Config) ->
    Folder = filename:join(?config(folder, Config), "snapshots"),
    {0, Said} = test_command:run(["record", full_name(), "--snapshot", "--full", "--when", "crash", "--keep", "1",
                                  "--detach", "-o", Folder]),
    {match, [OsPid]} = re:run(Said, "in the background: process (\\d+)", [{capture, all_but_first, list}]),
    until_following(Config),
    call(Config, fun() -> [spawn(fun() -> exit({boom, N}) end) || N <- lists:seq(1, 3000)] end),
    test_wait:until("the others are counted", match,
                    fun() ->
                            case written(Folder) of
                                [One] -> #{<<"more">> := More} = cause_of(One), More >= 1000 andalso match;
                                Other -> Other
                            end
                    end),
    [First] = written(Folder),
    {0, Listed} = test_command:run(["snapshot", "--list", "-o", Folder]),
    ?assertMatch({match, _}, re:run(Listed, "  crash  night\\d+@127.0.0.1  more than 1000  .*> {boom,\\d+}\n")),
    ?assertMatch({match, _}, re:run(Listed, "a recorder writes into ")),
    {0, Report} = test_command:run(["view", First]),
    ?assertMatch({match, _}, re:run(Report, "^[-0-9]+ [0-9:.]+  crash in night\\d+@127.0.0.1: <[0-9.]+> {boom,\\d+}, "
                                            "\\d{1,3}\\.\\d+ s after the first event\n"), Report),
    ?assertMatch({match, _}, re:run(Report, "^Findings", [multiline])),
    Page = filename:join(?config(folder, Config), "night.html"),
    {0, Viewed} = test_command:run(["view", First, "-o", Page]),
    ?assertMatch({match, _}, re:run(Viewed, "page at that time: file://.*/night[.]html#t=[0-9]+[.]\\d+,[0-9.]+\n")),
    test_node:stop(?config(node, Config)),
    Again = [{node, started(Config)} | Config],
    try
        await_log("is back, and recorded again", Folder),
        until_following(Again),
        %% The snapshot of the end of the node has taken the place of the first one.
        OfCrashes = fun() -> [One || One <- written(Folder), One =/= First, lists:suffix("-crash", One)] end,
        test_wait:until("a snapshot of the second crash", true,
                        fun() ->
                                call(Again, fun() -> spawn(fun() -> exit(boom_again) end) end),
                                OfCrashes() =/= []
                        end),
        {0, Later} = test_command:run(["view", hd(OfCrashes())]),
        ?assertMatch({match, _}, re:run(Later, "boom_again")),
        {0, _} = test_shell:run("kill -9 ~s", [OsPid]),
        %% `lttng list' fails if a session is removed while it lists it.
        test_wait:until("triggers and session have gone", {<<>>, 0, nomatch},
                        fun() ->
                                {Status, Sessions} = test_lttng:lttng(?config(daemon, Config), "list", []),
                                {triggers(Config), Status, string:find(Sessions, "dyntrace-" ++ OsPid)}
                        end),
        {0, Idle} = test_command:run(["snapshot", "--list", "-o", Folder]),
        ?assertMatch({match, _}, re:run(Idle, "no recorder writes into "))
    after
        test_node:stop(?config(node, Again))
    end.

%% -- Failures and attacks --------------------------------------------------------------------------

%% A full disk is reported once, and the recorder continues. The end of the daemon ends the recorder, but not the node.
full_disk_and_lost_daemon(Config) ->
    Disk = filename:join(?config(folder, Config), "disk"),
    ok = filelib:ensure_path(Disk),
    %% A snapshot may have 64 MB per CPU.
    SizeMB = 100 + 68 * erlang:system_info(logical_processors_online),
    {0, _} = test_shell:run("mount -t tmpfs -o size=~bM tmpfs '~ts'", [SizeMB, Disk]),
    try
        Command = test_command:start(["record", full_name(), "--snapshot", "--full", "--when", "crash", "--when",
                                      "long_queue", "-o", Disk ++ "/snapshots"]),
        ok = test_command:await("kept in memory", Command),
        {1, Second} = test_command:run(["record", full_name(), "--snapshot", "--when", "crash", "-o",
                                        Disk ++ "/snapshots"]),
        ?assertMatch({match, _}, re:run(Second, "another recorder writes into ")),
        until_following(Config),
        {0, _} = test_shell:run("head -c ~bM /dev/zero > '~ts/other'", [SizeMB - 15, Disk]),
        call(Config, fun() -> spawn(fun() -> exit(boom) end) end),
        ok = test_command:await("no snapshot of crash, nor of later causes\n.*MB free\n  next: ", Command),
        ?assertEqual([], written(Disk ++ "/snapshots")),
        ok = file:delete(Disk ++ "/other"),
        test_wait:until("there is room again", 1,
                        fun() ->
                                call(Config, fun() -> spawn(fun() -> exit(boom) end) end),
                                length(written(Disk ++ "/snapshots"))
                        end),
        %% By now, the command has reported what it can't detect.
        has_long_queues(Config) orelse
            test_command:await("can't trace vm_long_message_queue: requires OTP 27 or later\n", Command),
        ok = test_lttng:kill_daemon(?config(daemon, Config)),
        {1, Output} = test_command:finish(Command),
        ?assertMatch({match, _}, re:run(Output, "the session daemon has ended, .*snapshots remain\n  next: ")),
        ?assertEqual([1], [length(binary:matches(Output, <<"nor of later causes">>))]),
        ok = call(Config, fun() -> [spawn(fun() -> exit(boom) end) || _ <- lists:seq(1, 100)], ok end)
    after
        test_shell:run("umount -l '~ts'", [Disk])
    end.

%% Root records a node of the user `nobody', whose daemon writes into a folder that it may not read.
another_user(_) ->
    with_node_of_nobody(fun recorded_for_another_user/2).

with_node_of_nobody(Fun) ->
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-snapshots-" ++ os:getpid()),
    Options = test_command:copy_for_nobody(Home ++ "/home"),
    Daemon = test_lttng:start_daemon(test_command:as_nobody(Home ++ "/home")),
    Node = test_node:start(Options),
    try
        {ok, _} = peer:call(Node, application, ensure_all_started, [dyntrace]),
        Fun(Home, Node)
    after
        [test_node:stop(Node) || is_process_alive(Node)],
        test_lttng:stop_daemon(Daemon),
        file:del_dir_r(Home)
    end.

recorded_for_another_user(Home, Node) ->
    Folder = Home ++ "/snapshots",
    Command = test_command:start(["record", test_node:os_pid(Node), "--snapshot", "--when", "mark:hello", "-o",
                                  Folder]),
    ok = test_command:await("kept in memory", Command),
    %% The recorder's session does not become that user's current one.
    ?assertEqual(false, filelib:is_file(Home ++ "/home/.lttngrc")),
    marked(Node),
    test_wait:until("a snapshot is written", 1, fun() -> length(written(Folder)) end),
    %% A node without a name can't come back.
    test_node:stop(Node),
    {0, _} = test_command:finish(Command),
    [Snapshot] = [Path || Path <- written(Folder), lists:suffix("-mark-hello", Path)],
    {0, Modes} = test_shell:run("cd '~ts' && stat -c '%U %a' .. . cause.json recording", [Snapshot]),
    ?assertEqual(<<"root 711\nroot 711\nroot 600\nnobody 700\n">>, Modes),
    {0, Report} = test_command:run(["view", Snapshot]),
    ?assertMatch({match, _}, re:run(Report, "mark-hello in nonode@nohost: <[0-9.]+> hello, ")).

%% The user of the node takes over the output of programs that run as that user: root's command ends, and uses little
%% memory.
hostile_user(_) ->
    with_node_of_nobody(
      fun(Home, Node) ->
              OsPid = test_node:os_pid(Node),
              Record = fun(Name, Args) -> ["record", OsPid, "-o", filename:join(Home, Name) | Args] end,
              When = ["--snapshot", "--when", "mark:hello"],
              Listener = "notifications of LTTng triggers",
              %% The output of `lttng' is flooded.
              Flood = take_over("/lttng", "flood", Home),
              {_, Flooded} = test_command:run(peak(), Record("flooded", ["--seconds", "1"])),
              ?assertEqual(true, took(Flood)),
              ?assert(peak_of(Flooded) < 200000, Flooded),
              stop(Flood),
              %% The program that LTTng notifies is stopped before it is ready, and its output is kept open: one signal
              %% still ends the recorder.
              Held = take_over(Listener, "hold", Home),
              Waiting = test_command:start(Record("held", When)),
              test_wait:until("its output is taken", true, fun() -> took(Held) end),
              ok = test_command:signal("INT", Waiting),
              {130, _} = test_command:finish(Waiting),
              stop(Held),
              %% The program is flooded, or killed with its output kept open, while the recorder works.
              [begin
                   Command = test_command:start(peak(), Record(Act, When)),
                   ok = test_command:await("kept in memory", Command),
                   Taken = take_over(Listener, Act, Home),
                   test_wait:until("its output is taken", true, fun() -> took(Taken) end),
                   Act =:= "kill" orelse test_shell:run("pkill -INT -P ~b", [test_command:os_pid(Command)]),
                   {Status, Output} = test_command:finish(Command),
                   ?assertEqual(Expected, Status, Output),
                   ?assertMatch({match, _}, re:run(Output, Said)),
                   ?assert(peak_of(Output) < 200000, Output),
                   stop(Taken)
               end || {Act, Expected, Said} <- [{"flood", 0, "kept in memory"},
                                                {"kill", 1, "receives LTTng's notifications was killed"}]]
      end).

%% The user of the node fills the folder of the recording with an endless search: the command ends on time and at the
%% first signal. The recording can be viewed, unless the folder can't be searched.
hostile_folder(_) ->
    Deep = "more than 20 levels of folders",
    %% Which of the search's three limits is reached first depends on the machine.
    Many = "it has more (than 100000 files|files )",
    with_node_of_nobody(
      fun(Home, Node) ->
              [begin
                   Folder = filename:join(Home, Act),
                   Attack = attack(Folder, Act, Home),
                   Command = test_command:start(within(90), ["record", test_node:os_pid(Node), "-o", Folder | Time]),
                   done(Attack),
                   Time =/= [] orelse marked(Node),
                   Time =/= [] orelse interrupt(Command),
                   {Status, Output} = test_command:finish(Command),
                   ?assertEqual({0, Act}, {Status, Act}, Output),
                   ?assertMatch({match, _}, re:run(Output, Recorded), Output),
                   {Viewed, View} = test_command:run(within(90), ["view", Folder]),
                   ?assertEqual({ViewStatus, Act}, {Viewed, Act}, View),
                   ?assertMatch({match, _}, re:run(View, Said, [multiline]), View),
                   port_close(Attack)
               end || {Act, Time, Recorded, ViewStatus, Said} <-
                          [{"links", [], "recorded: \\d+ events, lost ", 0,
                            "^dyntrace: left out of .*\\(a (link|pipe)\\).*\n(?s:.*)^Findings"},
                           {"deep", [], "are not counted: .* " ++ Deep ++ "\n(?s:.*)recorded: ", 1,
                            Deep ++ "\n  next: "},
                           {"many", ["--seconds", "8"], "are not counted: .* " ++ Many, 1, Many ++ ".*\n  next: "}]],
              report_of_hostile_folder(Home, Node)
      end).

marked(Node) ->
    test_wait:until("it is marked", true, fun() -> peer:call(Node, dyntrace, mark, ["hello", ""]) end).

report_of_hostile_folder(Home, Node) ->
    Report = filename:join(Home, "page.txt"),
    Attack = attack(filename:join(Home, "tmp/dyntrace-*/recording"), "links", Home),
    {0, Output} = test_command:run([within(90), " env TMPDIR=", temporary(Home)],
                                   ["report", test_node:os_pid(Node), "--seconds", "8", "-o", Report]),
    done(Attack),
    port_close(Attack),
    ?assertMatch({match, _}, re:run(Output, "recorded: \\d+ events"), Output),
    {ok, Page} = file:read_file(Report),
    ?assertMatch({match, _}, re:run(Page, "^Findings")),
    ?assertEqual([], filelib:wildcard("dyntrace-*", temporary(Home))).

%% The user of a recorder fills the folder of its snapshot: files that can't be packed are left out, and named.
hostile_snapshot(_) ->
    with_node_of_nobody(
      fun(Home, Node) ->
              Recorder = test_command:start(["record", test_node:os_pid(Node), "--snapshot", "-o", Home ++ "/memory"]),
              ok = test_command:await("are kept in memory", Recorder),
              {0, Sessions} = test_shell:run("~ts lttng --no-sessiond list", [test_command:as_nobody(Home ++ "/home")]),
              {match, [Session]} = re:run(Sessions, "dyntrace-[-\\w]+", [{capture, first, list}]),
              Attack = attack(filename:join(Home, "tmp/dyntrace-*/0-" ++ Session), "packed", Home),
              Folder = filename:join(Home, "collected"),
              Prefix = [within(60), " env TMPDIR=", temporary(Home)],
              {0, Output} = test_command:run(Prefix, ["snapshot", "-o", Folder]),
              done(Attack),
              port_close(Attack),
              ?assertMatch({match, _}, re:run(Output, "left out of the snapshot of dyntrace-.*[.]hidden \\("), Output),
              ?assertMatch({match, _}, re:run(Output, "large \\(its name is too long, or its size"), Output),
              ?assertMatch({match, _}, re:run(Output, "link \\(a link\\)"), Output),
              ?assertEqual([], filelib:wildcard("*/*/{link,.hidden,large}", Folder)),
              {0, View} = test_command:run(["view", Folder]),
              ?assertMatch({match, _}, re:run(View, "^Findings")),
              _ = test_command:signal("INT", Recorder),
              _ = test_command:finish(Recorder)
      end).

within(Seconds) ->
    io_lib:format("timeout --foreground --signal=KILL ~b", [Seconds]).

%% The folder for the command's temporary folders, where the attack expects them.
temporary(Home) ->
    Folder = filename:join(Home, "tmp"),
    ok = filelib:ensure_path(Folder),
    Folder.

%% A program that runs as `nobody' and fills a folder once that user owns it.
attack(Pattern, Act, Home) ->
    Program = filename:join(Home, "hostile_folder.py"),
    {0, _} = test_shell:run("install -m 644 '~ts/test/support/attacks/hostile_folder.py' '~ts'",
                            [test_shell:project(), Program]),
    _ = temporary(Home),
    open_port({spawn, lists:flatten([test_command:as_nobody(Home ++ "/home"), " /usr/bin/python3 -IS ", Program, " ",
                                     test_command:quoted(Pattern), " ", Act])}, [{line, 200}, exit_status]).

done(Attack) ->
    receive
        {Attack, {data, {eol, "done"}}} -> ok;
        {Attack, {exit_status, Status}} -> error({attack_ended, Status})
    after 60000 -> error(attack_is_not_done)
    end.

%% Interrupts the command, not the wrapper that limits its time.
interrupt(Command) ->
    {0, _} = test_shell:run("pkill -INT -P ~b", [test_command:os_pid(Command)]).

%% A program that runs as `nobody' and waits for the word in a command line.
take_over(Word, Act, Home) ->
    File = filename:join([Home, "home", Act]),
    _ = file:delete(File),
    Program = filename:join(Home, "takeover.py"),
    {0, _} = test_shell:run("install -m 644 '~ts/test/command/takeover.py' '~ts'", [test_shell:project(), Program]),
    Line = lists:flatten([test_command:as_nobody(Home ++ "/home"), " /usr/bin/python3 -IS ",
                          lists:join(" ", [test_command:quoted(Arg) || Arg <- [Program, Word, Act, "100", File]])]),
    Port = open_port({spawn, Line}, [exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    {File, OsPid}.

took({File, _}) ->
    {ok, <<"took">>} =:= file:read_file(File).

stop({_, OsPid}) ->
    test_shell:run("kill -9 ~b", [OsPid]).

%% The prefix of a command. It prints the peak memory, in kB, of the command and its programs.
peak() ->
    "python3 -c " ++ test_command:quoted(
      "import resource, signal, subprocess, sys\n"
      "done = subprocess.call(sys.argv[1:])\n"
      "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
      "sys.exit(done)").

peak_of(Output) ->
    {match, [Peak]} = re:run(Output, "peak (\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Peak).

%% LTTng's message is printed, and nothing is left.
wrong_filter(Config) ->
    Folder = filename:join(?config(folder, Config), "snapshots"),
    {1, Output} = test_command:run(["record", full_name(), "--snapshot", "--when", "log /level == /", "--detach", "-o",
                                    Folder]),
    ?assertMatch({match, _}, re:run(Output, "add-trigger.*failed: .*")),
    ?assertEqual({[], <<>>}, {written(Folder), triggers(Config)}).

%% -- Helpers ---------------------------------------------------------------------------------------

%% Nodes of a concurrent run have other names.
name() ->
    "night" ++ os:getpid().

full_name() ->
    name() ++ "@127.0.0.1".

recorder(Name, Args, Config) ->
    Folder = filename:join(?config(folder, Config), Name),
    {Folder, test_command:start(["record", full_name(), "--snapshot", "-o", Folder | Args])}.

recording(Name, Cause, Config) ->
    Recorder = {_, Command} = recorder(Name, ["--when", Cause], Config),
    ok = test_command:await("kept in memory", Command),
    Recorder.

ended(Signal, {_, Command}) ->
    ok = test_command:signal(Signal, Command),
    test_command:finish(Command).

written_by({Folder, _}) ->
    written(Folder).

%% The complete snapshots of a folder.
written(Folder) ->
    [filename:dirname(Cause) || Cause <- filelib:wildcard(filename:join(Folder, "*/cause.json"))].

until_written(Count, Recorder = {Folder, _}) ->
    test_wait:until({"snapshots are written", Folder}, Count, fun() -> length(written_by(Recorder)) end),
    written_by(Recorder).

cause_of(Snapshot) ->
    #{<<"cause">> := Cause} = Said = test_viewer:decode(filename:join(Snapshot, "cause.json")),
    Said#{<<"cause">> := binary_to_list(Cause)}.

triggers(Config) ->
    {0, Listed} = test_lttng:lttng(?config(daemon, Config), "list-triggers", []),
    Listed.

until_following(Config) ->
    test_wait:until("the node traces", true,
                    fun() ->
                            call(Config, fun() -> case dyntrace:info() of
                                                      #{following := #{processes := [_ | _]}} -> true;
                                                      #{following := Other} -> Other
                                                  end end)
                    end).

await_log(Regex, Folder) ->
    test_wait:until({"the log has", Regex}, true,
                    fun() ->
                            {ok, Log} = file:read_file(filename:join(Folder, "recorder.log")),
                            re:run(Log, Regex) =/= nomatch orelse Log
                    end).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
