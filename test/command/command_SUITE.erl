%% The host command `dyntrace', used as people use it, on real nodes, as root and as an unprivileged user; and its
%% failures.
-module(command_SUITE).

-include("../support/suite.hrl").

%% A process of the report, with its name and its initial call.
-define(NAMED, "^  <[0-9.]+> [a-z_0-9]+ +[a-z_]+:[a-z_]+/\\d").
-define(OWN_PROCESSES, "unshare --pid --mount-proc --fork --kill-child").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [nodes, late_name, own_name, no_nodes, several_nodes, other_user, scripts, run_script, script_arguments,
     withheld, one_of_two, later_node, later_node_in_a_namespace, top, top_exact, top_on_a_terminal, request,
     request_through_processes, next_request, next_request_of_casts, default_report, unprivileged, failures,
     without_tracefs, hostile_path, hostile_epmd, hostile_folder, scripts_of_a_node, killed, stopped, interrupted_twice,
     old_python, from_the_node_without_python, from_the_node_wrongly, wrong_arguments, help, versions, installed,
     {group, with_a_daemon}].

%% A case outside this group may start a daemon for its recording. Nodes register with such a daemon only after seconds.
groups() ->
    [{with_a_daemon, [],
      [consumers, container, recording, recording_of_two, no_session_is_left, snapshot, groups_of_events, functions,
       current_session_stays, report, report_alone, report_connected, from_the_node, remarks, not_started,
       disk_full, disk_fills, hostile_names, node_ends, streams, night]}].

init_per_group(with_a_daemon, Config) ->
    [{keeper, test_keeper:start_daemon()} | Config].

end_per_group(with_a_daemon, Config) ->
    test_keeper:stop(?config(keeper, Config)).

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    Missing = test_require:first([NotRoot, fun test_bpftrace:missing/0, fun test_lttng:missing/0,
                                  fun test_viewer:missing/0]),
    _ = test_require:tool(Missing, Config),
    Node = traced_node(),
    [{node, Node}, {os_pid, test_node:os_pid(Node)} | Config].

end_per_suite(Config) ->
    test_node:stop(?config(node, Config)).

%% All cases share the node; a case that breaks its node starts another one. Each case has a folder for its commands.
init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

%% No consumer of the case's commands is left.
end_per_testcase(_, Config) ->
    test_wait:until("no consumer is attached", [], fun() -> call(Config, fun dyntrace:listeners/0) end).

traced_node() ->
    Node = test_node:start(),
    ok = test_node:call(Node, fun() -> test_node:started([{functions, [{?MODULE, paid, 1}]}]) end),
    Node.

%% -- dyntrace nodes ------------------------------------------------------------------------------

%% The output agrees with Erlang's own data.
nodes(Config) ->
    Plain = test_node:start(),
    [PlainPid, OsPid] = [test_node:os_pid(Node) || Node <- [Plain, ?config(node, Config)]],
    Listed = test_command:listed(),
    test_node:stop(Plain),
    Info = call(Config, fun() ->
                                #{version := Version, library := Library} = dyntrace:info(),
                                #{release => list_to_binary(erlang:system_info(otp_release)), node => node(),
                                  version => list_to_binary(Version), library => list_to_binary(Library)}
                        end),
    #{release := Release, node := nonode@nohost, version := Version, library := Library} = Info,
    #{<<"node">> := <<"nonode@nohost">>, <<"otp">> := Otp, <<"version">> := Version, <<"library">> := Mapped,
      <<"container">> := null, <<"user">> := <<"root">>, <<"unknown">> := Unknown,
      <<"consumers">> := #{<<"usdt">> := [], <<"lttng">> := []}} = test_command:node_of(OsPid, Listed),
    ?assertEqual(#{}, Unknown),
    ?assertMatch({Release, _}, {hd(binary:split(Otp, <<".">>)), Otp}),
    ?assertEqual(identity(Library), identity(Mapped)),
    ?assertMatch(#{<<"library">> := null, <<"version">> := null, <<"consumers">> := null},
                 test_command:node_of(PlainPid, Listed)),
    {0, Text} = test_command:run(["nodes"]),
    ?assertMatch({match, _}, re:run(Text, ["^", OsPid, " +root +- +nonode@nohost +", Otp, " +", Version, " +-$"],
                                    [multiline])).

identity(File) ->
    {ok, Info} = file:read_file_info(File),
    {element(11, Info), element(12, Info)}.

%% The command lists the same enabled probes as the node itself.
consumers(Config) ->
    OsPid = ?config(os_pid, Config),
    Consumer = test_bpftrace:start(call(Config, fun() -> maps:get(library, dyntrace:info()) end),
                                   [message_send, process_exit]),
    Enabled = lists:sort([iolist_to_binary(io_lib:format("~s:~s", [Provider, Name]))
                          || #{provider := Provider, name := Name} <- call(Config, fun dyntrace:listeners/0)]),
    ?assertEqual(2, length(Enabled)),
    #{<<"consumers">> := #{<<"usdt">> := Seen}} = test_command:listed(OsPid),
    ?assertEqual(Enabled, Seen),
    _ = test_bpftrace:stop(Consumer),
    ?assertMatch(#{<<"consumers">> := #{<<"usdt">> := []}}, test_command:listed(OsPid)),
    Daemon = test_lttng:start_daemon(),
    Session = test_lttng:start(Daemon, [message_send]),
    test_wait:until("LTTng's buffers are there", [<<"root">>],
                    fun() ->
                            #{<<"consumers">> := #{<<"lttng">> := Users}} = test_command:listed(OsPid),
                            Users
                    end),
    ok = test_lttng:finish(Session),
    test_wait:until("they have gone", [],
                    fun() ->
                            #{<<"consumers">> := #{<<"lttng">> := Users}} = test_command:listed(OsPid),
                            Users
                    end),
    test_lttng:stop_daemon(Daemon).

%% One node has its name on its command line, another starts its distribution later.
late_name(_) ->
    test_node:with_epmd(
      fun(Epmd) ->
              Named = test_node:named("command_early", Epmd),
              Late = test_node:nameless(Epmd),
              {ok, _} = test_node:call(Late, fun() -> net_kernel:start([command_late, shortnames]) end),
              %% Neither has loaded the library. The command line of the first one also has the name of the host.
              [begin
                   Name = test_node:call(Node, fun() -> atom_to_binary(node()) end),
                   ?assertMatch(#{<<"node">> := Name, <<"guessed">> := IsGuess},
                                test_command:listed(test_node:os_pid(Node))),
                   {0, Text} = test_command:run(["nodes"]),
                   ?assertMatch({match, _}, re:run(Text, [" ", Name, Mark, " +", "\\d"]))
               end || {Node, IsGuess, Mark} <- [{Named, false, ""}, {Late, true, " \\(guess\\)"}]],
              [test_node:stop(Node) || Node <- [Named, Late]]
      end).

%% A node starts its distribution later, under a name that neither its command line nor epmd has. The command takes the
%% name from the node's application. Once the application has stopped, its data is ignored.
own_name(_) ->
    test_node:with_epmd(
      fun(Epmd) ->
              Node = test_node:nameless(Epmd),
              OsPid = test_node:os_pid(Node),
              ok = test_node:call(Node, fun() ->
                                                {ok, _} = application:ensure_all_started(dyntrace),
                                                {ok, _} = net_kernel:start(['command_own@127.0.0.1', longnames]),
                                                ok
                                        end),
              Name = test_node:call(Node, fun() -> atom_to_binary(node()) end),
              test_wait:until("the node's own name", {Name, <<"on">>},
                              fun() ->
                                      #{<<"node">> := Info, <<"following">> := Following} = test_command:listed(OsPid),
                                      {Info, Following}
                              end),
              {0, Listed} = test_command:run(["nodes"]),
              ?assertMatch({match, _}, re:run(Listed, [OsPid, " .* ", Name, " "])),
              ok = test_node:call(Node, fun() -> application:stop(dyntrace) end),
              ?assertMatch(#{<<"guessed">> := true, <<"following">> := null}, test_command:listed(OsPid)),
              test_node:stop(Node)
      end).

%% A node with its own PID namespace, mounts and host name.
container(Config) ->
    Name = "boxed_" ++ os:getpid(),
    Whole = list_to_binary(Name ++ "@crate"),
    Exec = {os:find_executable("unshare"),
            ["--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c", "hostname crate; exec \"$@\"",
             "sh", os:find_executable("erl")]},
    Node = test_node:start(#{exec => Exec, args => ["-sname", Name, "-start_epmd", "false",
                                                    "-erl_epmd_port", integer_to_list(test_node:free_port())]}),
    ok = test_node:call(Node, fun() -> test_node:started([]) end),
    ?assertEqual(Whole, test_node:call(Node, fun() -> atom_to_binary(node()) end)),
    [#{<<"pid">> := Pid, <<"container">> := Container, <<"version">> := Version}] =
        [Listed || #{<<"node">> := Seen} = Listed <- test_command:listed(), Seen =:= Whole],
    ?assertNotEqual(null, Container),
    ?assertEqual(list_to_binary(call(Config, fun() -> maps:get(version, dyntrace:info()) end)), Version),
    %% It can be recorded and observed from outside, also by its name.
    Folder = filename:join(?config(folder, Config), "boxed"),
    {0, _} = test_command:run(["record", Name, "--seconds", "1", "-o", Folder]),
    #{<<"recording">> := #{<<"nodes">> := [#{<<"node">> := Whole}]}} = report_of(Folder),
    names_of_top(Node, integer_to_list(Pid)),
    is_counted_alone(integer_to_list(Pid), Node, ?config(node, Config)),
    test_node:stop(Node).

%% A process that existed before the command started has its name.
names_of_top(Node, OsPid) ->
    test_node:call(Node, fun() -> spawn(fun() -> register(command_ticker, self()), tick() end) end),
    Top = test_command:start(["top", OsPid, "--rows", "50"]),
    ok = test_command:await("<[0-9.]+> command_ticker", Top),
    _ = test_command:interrupted(Top).

tick() ->
    receive after 50 -> tick() end.

no_nodes(_) ->
    {5, Output} = test_command:run(?OWN_PROCESSES, ["nodes"]),
    ?assertMatch({match, _}, re:run(Output, "no Erlang VM is visible in /proc on this host.*\n  next: start the node")).

%% In a PID namespace that contains only two nodes.
several_nodes(_) ->
    Erl = "erl -noinput -pa " ++ filename:dirname(code:which(dyntrace)) ++
        " -eval 'application:ensure_all_started(dyntrace), io:put_chars(\"up\\n\")' ",
    Script = io_lib:format("(~ts & ~ts &) | { read a; read b; '~ts' report; echo status $?; kill -9 -1; }",
                           [Erl, Erl, test_command:path()]),
    {_, Output} = test_shell:run("~s sh -c ~ts", [?OWN_PROCESSES, test_command:quoted(Script)]),
    ?assertMatch({match, _}, re:run(Output, "several nodes have dyntrace: .*, .*\n  next: name one: "
                                    "`dyntrace report [0-9]+`\nstatus 5", [dotall])).

%% Root's node: its process is listed, and the output says what is unknown.
other_user(Config) ->
    OsPid = ?config(os_pid, Config),
    {0, Nodes} = test_command:run(as_nobody(Config), ["nodes"]),
    ?assertMatch({match, _}, re:run(Nodes, ["^", OsPid, " +root +\\? +nonode@nohost +\\S+ +\\? +\\?$"], [multiline])),
    ?assertMatch({match, _}, re:run(Nodes, ["^\\? of .*\\b", OsPid, "\\b.*: only its user and root may read it$"],
                                    [multiline])),
    [begin
         {3, Failed} = test_command:run(as_nobody(Config), [Command, OsPid]),
         ?assertMatch({match, _}, re:run(Failed, ["process ", OsPid, " belongs to root, and you are nobody\n"
                                                  "  next: .*sudo dyntrace ", Command, " ", OsPid]))
     end || Command <- ["record", "report"]].

as_nobody(Config) ->
    as_nobody_in(?config(folder, Config)).

as_nobody_in(_Folder) ->
    test_command:as_nobody("/nonexistent").

%% -- dyntrace run --------------------------------------------------------------------------------

%% Lists each shipped script with the first line of its comment.
scripts(_) ->
    {0, Output} = test_command:run(["run"]),
    Files = filelib:wildcard(filename:join([test_shell:project(), "priv/bpftrace", "*.bt"])),
    Lines = [begin
                 {ok, Text} = file:read_file(File),
                 {match, [Sentence]} = re:run(Text, "^ \\* (.*)$", [multiline, {capture, all_but_first, binary}]),
                 {list_to_binary(filename:basename(File, ".bt")), Sentence}
             end || File <- lists:sort(Files)],
    Listed = [list_to_tuple(binary:split(Line, <<" ">>)) || Line <- binary:split(Output, <<"\n">>, [global, trim])],
    ?assertEqual(Lines, [{Name, string:trim(Rest)} || {Name, Rest} <- Listed]).

%% Seven exits, counted by reason.
run_script(Config) ->
    Command = test_command:start(["run", "exits", ?config(os_pid, Config)]),
    ok = test_command:await("Counting exits", Command),
    until_traced(Config),
    call(Config, fun() -> exits(7, for_the_command) end),
    ?assertMatch({match, [<<"7">>]}, re:run(test_command:interrupted(Command), "@exits\\[for_the_command\\]: (\\d+)",
                                            [{capture, all_but_first, binary}])).

exits(Count, Reason) ->
    [receive {'DOWN', Ref, process, _, Reason} -> ok end
     || _ <- lists:seq(1, Count), {_, Ref} <- [spawn_monitor(fun() -> exit(Reason) end)]],
    ok.

%% Arguments after -- are passed to the script.
script_arguments(Config) ->
    Script = filename:join(?config(folder, Config), "mine.bt"),
    ok = file:write_file(Script, "BEGIN { printf(\"arguments: %s %d\\n\", str($2), $3); exit(); }\n"
                         "usdt:$1:org_erlang_dyntrace:user_mark { exit(); }\n"),
    {0, Output} = test_command:run(["run", Script, ?config(os_pid, Config), "--", "tea", "17"]),
    ?assertMatch({match, _}, re:run(Output, "arguments: tea 17")),
    {4, NoScript} = test_command:run(["run", "no_such_script", ?config(os_pid, Config)]),
    ?assertMatch({match, _}, re:run(NoScript, "no such script: no_such_script\n  next: `dyntrace run` lists")).

%% The node reports what it can't trace for the script, and the output has this next to the script's results.
withheld(Config) ->
    Monitor = call(Config, fun() ->
                                   Pid = spawn(fun() -> receive stop -> ok end end),
                                   _ = erlang:system_monitor(Pid, [busy_port]),
                                   Pid
                           end),
    Command = test_command:start(["run", "vm_events", ?config(os_pid, Config)]),
    ok = test_command:await("Waiting for the VM's events", Command),
    Text = call(Config, fun() -> pid_to_list(Monitor) end),
    case call(Config, fun() -> erlang:system_info(otp_release) end) >= "28" of
        true -> ok;
        false -> ok = test_command:await("can't trace system_monitor: " ++ Text ++ " is the system monitor", Command)
    end,
    Output = test_command:interrupted(Command),
    %% Messages of bpftrace that do not concern the results are left out.
    ?assertEqual(nomatch, re:run(Output, "RLIMIT_MEMLOCK|No such file")),
    call(Config, fun() -> exit(Monitor, kill) end).

%% Two nodes share the library's file: only the exits of one are counted.
one_of_two(Config) ->
    Other = test_node:start(),
    ok = test_node:call(Other, fun() -> test_node:started([]) end),
    is_counted_alone(?config(os_pid, Config), ?config(node, Config), Other),
    test_node:stop(Other).

is_counted_alone(OsPid, Node, Other) ->
    Command = test_command:start(["run", "exits", OsPid]),
    ok = test_command:await("Counting exits", Command),
    until_traced([{node, Node}]),
    _ = test_node:call(Other, fun() -> exits(3, of_the_other) end),
    _ = test_node:call(Node, fun() -> exits(3, of_the_one) end),
    Output = test_command:interrupted(Command),
    ?assertMatch({match, _}, re:run(Output, "of_the_one\\]: 3\n")),
    ?assertEqual(nomatch, re:run(Output, "of_the_other")).

%% A node with the same library starts while another one is observed.
later_node(Config) ->
    Start = fun() -> test_node:start() end,
    is_observed_alone("", ?config(os_pid, Config), ?config(node, Config), Start, fun test_command:signal/2, Config).

%% The same, with commands and nodes in a separate PID namespace.
later_node_in_a_namespace(Config) ->
    Name = "observed_" ++ os:getpid(),
    Node = test_node:start(#{exec => {os:find_executable("unshare"),
                                      ["--pid", "--mount-proc", "--fork", "--kill-child", os:find_executable("erl")]},
                             args => ["-sname", Name, "-start_epmd", "false",
                                      "-erl_epmd_port", integer_to_list(test_node:free_port())]}),
    ok = test_node:call(Node, fun() -> test_node:started([]) end),
    Whole = test_node:call(Node, fun() -> atom_to_binary(node()) end),
    [Pid] = [Pid || #{<<"node">> := Seen, <<"pid">> := Pid} <- test_command:listed(), Seen =:= Whole],
    %% The tests may run in a chroot.
    {ok, Folder} = file:get_cwd(),
    Enter = ["--target", integer_to_list(Pid), "--pid", "--mount", "--root", "--wd=" ++ Folder],
    Start = fun() -> test_node:start(#{exec => {os:find_executable("nsenter"), Enter ++ [os:find_executable("erl")]}})
            end,
    %% nsenter does not forward signals.
    Signal = fun(Signal, Command) ->
                     {0, _} = test_shell:run("kill -~s $(pgrep -P ~b)", [Signal, test_command:os_pid(Command)]),
                     ok
             end,
    is_observed_alone(["nsenter ", lists:join(" ", Enter)], test_node:os_pid(Node), Node, Start, Signal, Config),
    test_node:stop(Node).

%% Commands that observe one node show nothing of another one that starts later, although the kernel enables its probes.
is_observed_alone(Prefix, OsPid, Node, Start, Signal, Config) ->
    Script = filename:join(?config(folder, Config), "registered.bt"),
    ok = file:write_file(Script, "BEGIN { printf(\"begun\\n\"); }\nusdt:$1:org_erlang_dyntrace:process_register "
                         "/str(arg2) == \"register\"/ { printf(\"registered %s\\n\", str(arg1)); }\n"),
    Top = "command_of_the_one[\\s\\S]*dyntrace top [\\s\\S]*dyntrace top ",
    Commands = [{test_command:start(Prefix, Args), Begins, Shows}
                || {Args, Begins, Shows} <- [{["top", OsPid, "--rows", "500"], "dyntrace top ", Top},
                                             {["top", OsPid, "--exact", "--rows", "500"], "dyntrace top ", Top},
                                             {["run", Script, OsPid], "begun", "registered command_of_the_one"},
                                             {["run", "exits", OsPid], "Counting exits", ""}]],
    [ok = test_command:await(Begins, Command) || {Command, Begins, _} <- Commands],
    until_traced([{node, Node}]),
    Other = Start(),
    ok = test_node:call(Other, fun() -> test_node:started([]) end),
    until_traced([{node, Other}]),
    ok = test_node:call(Other, fun() -> works(command_of_the_other) end),
    ok = test_node:call(Node, fun() -> works(command_of_the_one) end),
    [ok = test_command:await(Shows, Command) || {Command, _, Shows} <- Commands],
    [ok = Signal("INT", Command) || {Command, _, _} <- Commands],
    Outputs = [begin {0, Output} = test_command:finish(Command), Output end || {Command, _, _} <- Commands],
    [?assertEqual(nomatch, re:run(Output, "of_the_other"), Output) || Output <- Outputs],
    ?assertMatch({match, _}, re:run(lists:last(Outputs), "@exits\\[command_of_the_one\\]: 3\n")),
    _ = test_node:call(Node, fun() -> exit(whereis(command_of_the_one), kill) end),
    test_node:stop(Other).

%% A named process that keeps running, and three processes that exit with its name as the reason.
works(Name) ->
    Owner = self(),
    _ = spawn(fun() -> true = register(Name, self()), Owner ! registered, tick() end),
    receive registered -> exits(3, Name) end.

%% -- dyntrace record -----------------------------------------------------------------------------

%% Messages, calls and exits match Erlang's counts. Only the owner can read the files.
recording(Config) ->
    Folder = filename:join(?config(folder, Config), "shop"),
    {Notes, Output} = recorded(["-o", Folder], Config, fun test_shop:run/0),
    views(Folder, Config),
    ?assertMatch({match, _}, re:run(Output, "recording nonode@nohost \\(\\d+\\): until Ctrl-C\n")),
    ?assertMatch({match, _}, re:run(Output, "^ +\\d+\\.\\d s  lost 0 events  [\\d.]+ k?B$", [multiline])),
    {match, [Events]} = re:run(Output, "^recorded: (\\d+) events, lost 0, ", [multiline,
                                                                              {capture, all_but_first, binary}]),
    ?assertMatch({match, _}, re:run(Output, ["^\\Q", Folder, "\\E$"], [multiline])),
    #{<<"recording">> := #{<<"events">> := Counted, <<"lost_events">> := 0, <<"nodes">> := [_]},
      <<"server_calls">> := Calls, <<"processes">> := Processes} = report_of(Folder),
    ?assertEqual(binary_to_integer(Events), Counted),
    Takes = [Call || Call = {_, shop_stock, reply, _} <- maps:get(called, Notes)],
    ?assertEqual(length(Takes), lists:sum([Count || #{<<"server">> := #{<<"name">> := <<"shop_stock">>},
                                                      <<"count">> := Count} <- Calls])),
    Named = [Name || #{<<"process">> := #{<<"name">> := Name}} <- Processes],
    [?assert(lists:member(atom_to_binary(Name), Named)) || {_, Name} <- maps:get(named, Notes)],
    ?assertMatch({ok, _}, file:read_file_info(Folder)),
    {0, Mode} = test_shell:run("stat -c %a '~ts'", [Folder]),
    ?assertEqual(<<"700\n">>, Mode),
    {1, Exists} = test_command:run(["record", ?config(os_pid, Config), "-o", Folder, "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(Exists, "exists and is not empty\n  next: name another folder")).

%% Runs Fun on the node while the command records it, then sends SIGINT.
recorded(Args, Config, Fun) ->
    Command = test_command:start(["record", ?config(os_pid, Config) | Args]),
    ok = test_command:await("  lost 0 events", Command),
    until_traced(Config),
    Result = call(Config, Fun),
    Output = test_command:interrupted(Command),
    {Result, Output}.

report_of(Folder) ->
    File = Folder ++ "-report.json",
    {0, Shown} = test_command:run(["view", Folder, "-o", File]),
    ?assertEqual(list_to_binary([File, "\n"]), Shown),
    test_viewer:decode(File).

%% Waits until the application has set its trace flags and they no longer change.
until_traced(Config) ->
    test_wait:until("the application follows the consumer",
                    fun() ->
                            First = call(Config, fun following/0),
                            receive after 300 -> ok end,
                            First =/= off andalso First =:= call(Config, fun following/0) orelse First
                    end).

following() ->
    case dyntrace:listeners() of
        [] -> off;
        _ -> maps:with([processes, ports, calls, seq_trace, senders, sources], maps:get(following, dyntrace:info()))
    end.

%% Both nodes are recorded, but not the third one that the daemon knows. A report can be of several nodes, too.
recording_of_two(Config) ->
    [Other, Third] = [test_node:start() || _ <- [1, 2]],
    [ok = test_node:call(Node, fun() -> test_node:started([]) end) || Node <- [Other, Third]],
    Folder = filename:join(?config(folder, Config), "two"),
    Pids = [?config(os_pid, Config), test_node:os_pid(Other)],
    {0, _} = test_command:run(["record", "--seconds", "1", "-o", Folder | Pids]),
    File = filename:join(?config(folder, Config), "two.json"),
    {0, Output} = test_command:run(["report", "--seconds", "1", "-o", File, hd(Pids) | Pids]),
    %% There may be deliveries between them.
    ?assertEqual(nomatch, re:run(Output, "message deliveries are inferred")),
    [?assertEqual(lists:sort([list_to_integer(Pid) || Pid <- Pids]),
                  lists:sort([Pid || #{<<"os_pid">> := Pid} <- Nodes]))
     || #{<<"recording">> := #{<<"nodes">> := Nodes}} <- [report_of(Folder), test_viewer:decode(File)]],
    [test_node:stop(Node) || Node <- [Other, Third]].

%% Four commands at once on one node. However a command ends, its session is removed and its recording is complete.
no_session_is_left(Config) ->
    Daemon = test_lttng:start_daemon(),
    Commands = [{Signal, Folder, test_command:start(["record", ?config(os_pid, Config), "-o", Folder])}
                || Signal <- ["INT", "TERM", "HUP", "KILL"],
                   Folder <- [filename:join(?config(folder, Config), Signal)]],
    [ok = test_command:await("  lost 0 events", Command) || {_, _, Command} <- Commands],
    OsPids = [test_command:os_pid(Command) || {_, _, Command} <- Commands],
    ?assertEqual(4, sessions(OsPids, Daemon)),
    [ok = test_command:signal(Signal, Command) || {Signal, _, Command} <- Commands],
    [begin
         {Status, _} = test_command:finish(Command),
         ?assertEqual({Signal =:= "KILL", Signal}, {Status =/= 0, Signal})
     end || {Signal, _, Command} <- Commands],
    test_wait:until("the sessions have gone", 0, fun() -> sessions(OsPids, Daemon) end),
    [?assertMatch(#{<<"recording">> := #{<<"events">> := Events}} when Events > 0, report_of(Folder), Signal)
     || {Signal, Folder, _} <- Commands],
    test_lttng:stop_daemon(Daemon).

%% The sessions of these commands. A session name contains the command's pid.
sessions(OsPids, Daemon) ->
    {0, Listed} = test_lttng:lttng(Daemon, "--mi=xml list", []),
    length([OsPid || OsPid <- OsPids, string:find(Listed, io_lib:format("<name>dyntrace-~b-", [OsPid])) =/= nomatch]).

%% SIGUSR1 writes what is in memory, and so does the end of the recording.
snapshot(Config) ->
    Folder = filename:join(?config(folder, Config), "flight"),
    Command = test_command:start(["record", ?config(os_pid, Config), "--snapshot", "--full", "-o", Folder]),
    ok = test_command:await("\\d\\.\\d s\n", Command),
    until_traced(Config),
    call(Config, fun() -> exits(5, {badmatch, before_the_snapshot}) end),
    ok = test_command:signal("USR1", Command),
    ok = test_command:await("snapshot written to", Command),
    %% Seconds with few events must not push it out of the buffers.
    ok = test_command:await(" [6-9]\\.\\d s\n", Command),
    ?assertMatch([_], filelib:wildcard(filename:join(Folder, "snapshot-*"))),
    _ = test_command:interrupted(Command),
    [First, Second] = lists:sort(filelib:wildcard(filename:join(Folder, "snapshot-*"))),
    {0, Text} = test_command:run(["view", First]),
    ?assertMatch({match, _}, re:run(Text, "before_the_snapshot")),
    ?assertMatch({match, _}, re:run(Text, ?NAMED, [multiline])),
    %% Events from long before the end are there, with names of processes that existed before the recording.
    #{<<"exits">> := Exits, <<"processes">> := Processes} = report_of(Second),
    ?assertEqual(5, length([Exit || #{<<"reason">> := <<"{badmatch,before_the_snapshot}">>} = Exit <- Exits])),
    Names = [Name || #{<<"process">> := #{<<"name">> := Name}} <- Processes],
    ?assert(lists:member(<<"application_controller">>, Names), Names).

groups_of_events(Config) ->
    Folder = filename:join(?config(folder, Config), "gc"),
    {_, _} = recorded(["-o", Folder, "--events", "gc,requests"], Config,
                      fun() -> [erlang:garbage_collect() || _ <- [1, 2, 3]] end),
    #{<<"recording">> := #{<<"kinds">> := Kinds}} = report_of(Folder),
    ?assert(lists:member(<<"collections">>, Kinds)),
    ?assertNot(lists:member(<<"scheduling">>, Kinds)),
    ?assertNot(lists:member(<<"sends">>, Kinds)).

%% Records some of the functions that the node traces. For other functions, the command fails at once and says what to
%% type.
functions(Config) ->
    ok = call(Config, fun() -> dyntrace:follow(#{functions => [{?MODULE, paid, 1}, {lists, '_', '_'}]}) end),
    Folder = filename:join(?config(folder, Config), "calls"),
    {_, _} = recorded(["-o", Folder, "--events", "log", "--functions", "lists:seq,lists:max/1,command_SUITE:_/1"],
                      Config,
                      fun() ->
                              _ = [lists:max(lists:seq(1, N)) || N <- [5, 6, 7]],
                              _ = [lists:min([1, 2]), ?MODULE:paid({cast, self()})],
                              ok
                      end),
    #{<<"calls">> := Calls} = report_of(Folder),
    ?assertEqual([{<<"command_SUITE:paid/1">>, 1}, {<<"lists:max/1">>, 3}, {<<"lists:seq/2">>, 3}],
                 lists:sort([{Function, Count} || #{<<"entry">> := Function, <<"count">> := Count} <- Calls])),
    [begin
         Args = [Command, ?config(os_pid, Config), "--functions", "shop:pay/2,lists:_,shop:_"],
         {5, Refused} = test_command:run(Args),
         ?assertMatch({match, _}, re:run(Refused, "traces command_SUITE:paid/1, lists:_, not shop:pay/2, shop:_; .*\n"
                                         "  next: .*`dyntrace:follow\\(#{functions => \\[{shop, pay, 2}, "
                                         "{lists, '_', '_'}, {shop, '_', '_'}\\]}\\)"))
     end || Command <- ["record", "report"]],
    ok = call(Config, fun() -> dyntrace:follow(#{functions => [{?MODULE, paid, 1}]}) end).

%% The current session of a direct LTTng user stays.
current_session_stays(Config) ->
    Home = "env LTTNG_HOME=" ++ test_command:quoted(test_lttng:home(filename:join(?config(folder, Config), "home"))),
    Daemon = test_lttng:start_daemon(Home),
    Mine = "mine-" ++ os:getpid(),
    {0, _} = test_lttng:lttng(Daemon, "create ~s --output='~ts'", [Mine, filename:join(?config(folder, Config), "m")]),
    {0, _} = test_command:run(Home, ["record", ?config(os_pid, Config), "--seconds", "1", "-o",
                                     filename:join(?config(folder, Config), "other")]),
    {0, Status} = test_lttng:lttng(Daemon, "status", []),
    ?assertMatch({match, _}, re:run(Status, Mine)),
    {0, _} = test_lttng:lttng(Daemon, "destroy ~s", [Mine]),
    test_lttng:stop_daemon(Daemon).

%% The output says what a recording lacks before its numbers: names that the node does not report, functions that are
%% called too often.
remarks(Config) ->
    Node = test_node:start(),
    ok = test_node:call(Node, fun() -> test_node:started([{functions, [{?MODULE, often, 1}]}, {call_budget, 1000},
                                                {probes, [process_scheduled, function_call]}])
                              end),
    Folder = filename:join(?config(folder, Config), "bare"),
    Command = test_command:start(["record", test_node:os_pid(Node), "-o", Folder]),
    ok = test_command:await("  lost \\d+ events", Command),
    until_traced([{node, Node}]),
    test_node:call(Node, fun() -> spawn(fun() -> often(0) end) end),
    test_wait:until("the function is cleared", true,
                    fun() ->
                            #{following := #{withheld := Withheld}} = test_node:call(Node, fun dyntrace:info/0),
                            is_map_key(call, Withheld)
                    end),
    Output = test_command:interrupted(Command),
    ?assertMatch({match, _}, re:run(Output, "the recording has no names of processes.*\n  next: .*process_identity\n"
                                    "nonode@nohost \\(\\d+\\) could not trace call: .*command_SUITE:often/1.*\n"
                                    "recorded: \\d+ events")),
    {0, Viewed} = test_command:run(["view", Folder]),
    ?assertMatch({match, _}, re:run(Viewed, "^dyntrace: the recording has no names of processes.*\n"
                                    "  next: .*process_identity$", [multiline])),
    test_node:stop(Node).

often(N) ->
    N rem 100 =:= 0 andalso receive after 1 -> ok end,
    ?MODULE:often(N + 1).

%% -- Pictures ------------------------------------------------------------------------------------

%% The extension selects the output format; each file begins as its format requires.
views(Folder, Config) ->
    [begin
         File = Folder ++ Extension,
         {0, _} = test_command:run(["view", Folder, "-o", File]),
         {ok, Picture} = file:read_file(File),
         ?assertMatch({match, _}, re:run(Picture, ["\\A", Begin], [dotall]), Extension),
         {0, Mode} = test_shell:run("stat -c %a '~ts'", [File]),
         ?assertEqual(<<"600\n">>, Mode)
     end || {Extension, Begin} <- [{".html", "(?i)<!doctype html>"}, {".txt", "Findings"}, {".json", "{"},
                                   {".mmd", "sequenceDiagram"}, {".pftrace", "."}, {".folded", ""}]],
    {0, Terminal} = test_command:run(["view", Folder]),
    {ok, Written} = file:read_file(Folder ++ ".txt"),
    ?assertEqual(Written, Terminal),
    {1, None} = test_command:run(["view", ?config(priv_dir, Config) ++ "/nothing"]),
    ?assertMatch({match, _}, re:run(None, "no such folder: .*/nothing\n  next: ")).

%% A crash during the recording is in the findings and on the page.
report(Config) ->
    Page = filename:join(?config(folder, Config), "page.html"),
    Kept = filename:join(?config(folder, Config), "kept"),
    Command = test_command:start(["report", ?config(os_pid, Config), "--seconds", "100", "-o", Page, "--keep", Kept]),
    ok = test_command:await("  lost 0 events", Command),
    until_traced(Config),
    call(Config, fun() -> exits(3, {{burnt, bread}, [{oven, bake, 1, []}]}) end),
    Output = test_command:interrupted(Command),
    %% The same findings as in the report, before the page's name.
    {0, Report} = test_command:run(["view", Kept]),
    {match, [Findings]} = re:run(Report, "^Findings\n(  .*\n)+", [multiline, {capture, first, binary}]),
    ?assertMatch({match, _}, re:run(Findings, "high .*crashed:\\s+{{burnt,bread},\\s*\\[{oven,bake,1"), Report),
    ?assertMatch([_, _], string:split(Output, Findings)),
    ?assertMatch({match, _}, re:run(Output, ["^\\Q", Page, "\\E$"], [multiline])),
    {ok, Html} = file:read_file(Page),
    ?assertMatch({match, _}, re:run(Html, "nonode@nohost, 20")),
    ?assertMatch({match, _}, re:run(Html, "{burnt,bread}")),
    ?assertMatch(#{<<"recording">> := _}, report_of(Kept)).

%% Deliveries are not recorded for a node without other nodes. Calls must end as Erlang saw them end: with a reply, with
%% a timeout that is caught, or with noproc.
report_alone(Config) ->
    File = filename:join(?config(folder, Config), "alone.json"),
    Command = test_command:start(["report", ?config(os_pid, Config), "--seconds", "100", "-o", File]),
    ok = test_command:await("  lost 0 events", Command),
    until_traced(Config),
    ?assertEqual([cost_limit, message_send], messages_of(fun(Fun) -> call(Config, Fun) end)),
    Answered = call(Config, fun() -> asked(20, answer) end),
    ByTimer = call(Config, fun() -> asked(10, timer) end),
    Late = call(Config, fun() -> asked(10, late) end),
    NoProcess = call(Config, fun() -> asked(5, exit) end),
    ?assertEqual([{20, ok}, {10, ok}, {10, timeout}, {5, noproc}], [Answered, ByTimer, Late, NoProcess]),
    _ = test_command:interrupted(Command),
    #{<<"server_calls">> := Calls, <<"processes">> := Processes} = test_viewer:decode(File),
    Sum = fun(Key, Request) ->
                  lists:sum([maps:get(Key, Row) || Row = #{<<"request">> := Of} <- Calls, Of =:= Request])
          end,
    ?assertEqual([{23, 0, 0}, {10, 0, 0}, {10, 10, 0}, {5, 0, 5}],
                 [{Sum(<<"count">>, Request), Sum(<<"timeouts">>, Request), Sum(<<"downs">>, Request)}
                  || Request <- [<<"answer">>, <<"timer">>, <<"late">>, <<"exit">>]]),
    ?assertEqual([null], lists:usort([Received || #{<<"received">> := Received} <- Processes])).

%% A hidden node also counts as connected.
report_connected(_) ->
    test_node:with_epmd(
      fun(Epmd) ->
              Node = test_node:named("shop", Epmd),
              Hidden = test_node:named("shell", Epmd, ["-hidden"]),
              ok = test_node:call(Node, fun() -> test_node:started([]) end),
              ok = test_wait:until("the node says that it is alone", true, fun() -> is_alone(Node) end),
              true = test_node:call(Node, fun() -> net_kernel:connect_node('shell@127.0.0.1') end),
              ok = test_wait:until("the node says that it is not alone", false, fun() -> is_alone(Node) end),
              ?assertEqual([cost_limit, message_delivery, message_send], reported(Node, [])),
              ?assertEqual([message_delivery, message_send], reported(Node, ["--full"])),
              %% Now the application does not watch connections.
              ok = test_node:call(Node, fun dyntrace:unfollow/0),
              ok = test_wait:until("the node says nothing of that", null, fun() -> is_alone(Node) end),
              [ok = test_node:stop(Each) || Each <- [Node, Hidden]]
      end).

is_alone(Node) ->
    #{<<"alone">> := IsAlone} = test_command:listed(test_node:os_pid(Node)),
    IsAlone.

%% Those of the message probes and `cost_limit' that a report of the node enables.
reported(Node, Options) ->
    Command = test_command:start(["report", test_node:os_pid(Node), "--seconds", "100", "-o", "-" | Options]),
    ok = test_command:await("  lost 0 events", Command),
    Probes = messages_of(fun(Fun) -> test_node:call(Node, Fun) end),
    _ = test_command:interrupted(Command),
    Probes.

messages_of(Call) ->
    lists:sort(Call(fun() -> [Probe || #{name := Probe} <- dyntrace:listeners(),
                                       lists:member(Probe, [message_send, message_delivery, cost_limit])] end)).

%% Sequential calls by one process: how many there were, and how they ended.
asked(Count, Request) ->
    Server = spawn(fun Serve() ->
                           receive {'$gen_call', From, answer} -> gen_server:reply(From, ok);
                                   {'$gen_call', {Pid, Tag}, timer} -> erlang:send_after(2, Pid, {Tag, ok});
                                   {'$gen_call', _, late} -> timer:sleep(40)
                           end,
                           Serve()
                   end),
    Request =:= exit andalso begin
                                 Ref = monitor(process, Server),
                                 exit(Server, kill),
                                 receive {'DOWN', Ref, _, _, _} -> ok end
                             end,
    %% After one answer, the viewer knows where the server waits for requests.
    _ = is_process_alive(Server) andalso (ok = gen_server:call(Server, answer)),
    Ends = [try gen_server:call(Server, Request, 20)
            catch exit:{Why, {gen_server, call, _}} -> receive after 1 -> Why end
            end || _ <- lists:seq(1, Count)],
    exit(Server, kill),
    [End] = lists:usort(Ends),
    {length(Ends), End}.

%% Writes a page named by node and time while it counts the events, and leaves no other file in the folder.
default_report(Config) ->
    {0, Output} = test_command:run("env -C '" ++ ?config(folder, Config) ++ "'",
                                   ["report", ?config(os_pid, Config), "--seconds", "1"]),
    [Page] = filelib:wildcard("*", ?config(folder, Config)),
    ?assertMatch({match, _}, re:run(Page, ["^", ?config(os_pid, Config), "-\\d{8}-\\d{6}\\.html$"])),
    {match, [Events]} = re:run(Output, "recorded: (\\d+) events.*\nFindings.*\n(?: .*\n)*.*/\\Q" ++ Page ++ "\\E\n$",
                               [{capture, all_but_first, binary}]),
    {ok, Html} = file:read_file(filename:join(?config(folder, Config), Page)),
    ?assertNotEqual(nomatch, binary:match(Html, <<"\"recording\":{\"events\":", Events/binary, ",">>)).

%% -- dyntrace top --------------------------------------------------------------------------------

%% Samples agree with process_info/2, and together they count each reduction once. No process is traced for sends.
top(Config) ->
    Node = ?config(node, Config),
    Worker = call(Config, fun() ->
                                  spawn(fun() ->
                                                register(command_worker, self()),
                                                receive go -> ok end,
                                                [erlang:bump_reductions(2000) || _ <- lists:seq(1, 1000)],
                                                receive stop -> ok end
                                        end)
                          end),
    Stuck = call(Config, fun() -> spawn(fun() -> register(command_stuck, self()), receive never -> ok end end) end),
    Command = test_command:start(["top", ?config(os_pid, Config), "--rows", "100", "--sort", "queue"]),
    %% The second sample is the first one with differences.
    ok = test_command:await("\\d+ reductions\n", Command),
    Before = test_node:call(Node, fun() -> process_info(Worker, reductions) end),
    call(Config, fun() -> Worker ! go, [Stuck ! N || N <- lists:seq(1, 500)] end),
    ok = test_command:await(" 500 .*command_stuck[\\s\\S]*dyntrace top", Command),
    ?assertEqual({flags, []}, call(Config, fun() -> {flags, [send || {_, Flags} <- [erlang:trace_info(Stuck, flags)],
                                                                     lists:member(send, Flags)]} end)),
    call(Config, fun() -> [Stuck ! N || N <- lists:seq(501, 600)] end),
    ok = test_command:await(" 600 .*command_stuck[\\s\\S]*dyntrace top", Command),
    Output = test_command:interrupted(Command),
    [{memory, Memory}, {status, Status}, {current_function, {M, F, A}}] =
        call(Config, fun() -> process_info(Stuck, [memory, status, current_function]) end),
    Queues = rows_of_top("command_stuck", Output),
    ?assertMatch([_, _ | _], Queues),
    ?assertEqual([list_to_integer(Queue) || [_, Queue | _] <- Queues],
                 lists:sort([list_to_integer(Queue) || [_, Queue | _] <- Queues])),
    ?assertEqual(["600", lists:flatten(io_lib:format("~.1f kB", [Memory / 1000])),
                  atom_to_list(Status), lists:flatten(io_lib:format("~w:~w/~b", [M, F, A]))],
                 [lists:nth(N, lists:last(Queues)) || N <- [2, 3, 5, 6]]),
    ?assert(lists:any(fun([_, _, _, Growth | _]) -> hd(Growth) =:= $+ end, Queues)),
    {reductions, Earlier} = Before,
    {reductions, Later} = call(Config, fun() -> process_info(Worker, reductions) end),
    Shown = lists:sum([list_to_integer(Reductions) || [Reductions | _] <- rows_of_top("command_worker", Output)]),
    ?assert(Shown >= 2000000 andalso Shown =< Later - Earlier, {Shown, Later - Earlier}),
    %% The first line of a frame agrees with the node's counters.
    ?assertMatch({match, _}, re:run(Output, "dyntrace top .*  \\d+ processes, schedulers \\d+ %, run queue \\d+, "
                                    "memory [\\d.]+ MB, \\d+ reductions\n")),
    call(Config, fun() -> [exit(Pid, kill) || Pid <- [Worker, Stuck]] end).

%% For each row of a process: reductions, queue, memory, growth, state, function.
rows_of_top(Name, Output) ->
    Row = "^ *(\\d+) +(\\d+) +([\\d.]+ k?M?B) +([-+]?[\\d.]+ k?M?B)  <[\\d.]+> " ++ Name ++ " +(\\w+) (\\S+)$",
    case re:run(Output, Row, [global, multiline, {capture, all_but_first, list}]) of
        {match, Rows} -> Rows;
        nomatch -> []
    end.

%% All frames together count each message once, with names.
top_exact(Config) ->
    Command = test_command:start(["top", ?config(os_pid, Config), "--exact", "--rows", "100", "--sort", "sent"]),
    ok = test_command:await("dyntrace top +nonode@nohost", Command),
    until_traced(Config),
    call(Config, fun() -> crowd(300), chatter(1000) end),
    ok = test_command:await("command_chatter[\\s\\S]*dyntrace top [\\s\\S]*dyntrace top", Command),
    %% Called later, because the process would not be among the top rows beside so many processes that send.
    call(Config, fun() -> disk(300) end),
    ok = test_command:await("command_disk[\\s\\S]*dyntrace top", Command),
    Output = test_command:interrupted(Command),
    %% The sums include processes that are not printed.
    {match, Totals} = re:run(Output, "(\\d+) messages sent", [global, {capture, all_but_first, list}]),
    ?assert(lists:sum([list_to_integer(Sent) || [Sent] <- Totals]) >= 1300),
    ?assertMatch({match, _}, re:run(Output, "\\d+ or more processes: run")),
    ?assertMatch([Ran, 0, 1000, _, Gc, Gcs] when Ran > 0 andalso Gc > 0 andalso Gcs >= 10,
                 sums_of_top("command_chatter", Output)),
    ?assertMatch([Ran, Io | _] when Ran < 100000 andalso Io >= 300000, sums_of_top("command_disk", Output)).

%% The columns of a process, summed over all frames.
sums_of_top(Name, Output) ->
    Columns = "^ +(\\d+) +(\\d+) +(\\d+) +(\\d+) +(\\d+) +(\\d+)  <[\\d.]+> " ++ Name ++ "$",
    {match, Rows} = re:run(Output, Columns, [global, multiline, {capture, all_but_first, list}]),
    [lists:sum([list_to_integer(lists:nth(N, Row)) || Row <- Rows]) || N <- lists:seq(1, 6)].

%% A named process waits for Ms milliseconds on a dirty I/O scheduler.
disk(Ms) ->
    Was = erts_debug:set_internal_state(available_internal_state, true),
    {_, Ref} = spawn_monitor(fun() ->
                                     register(command_disk, self()),
                                     erts_debug:dirty_io(wait, Ms)
                             end),
    receive {'DOWN', Ref, process, _, normal} -> ok end,
    Was orelse erts_debug:set_internal_state(available_internal_state, false).

%% Count processes, each of which sends one message.
crowd(Count) ->
    Owner = self(),
    _ = [spawn(fun() -> Owner ! here end) || _ <- lists:seq(1, Count)],
    [receive here -> ok end || _ <- lists:seq(1, Count)].

%% A named process sends Count messages and collects its garbage ten times.
chatter(Count) ->
    Sink = spawn(fun Sink() -> receive stop -> ok; _ -> Sink() end end),
    {_, Ref} = spawn_monitor(fun() ->
                                     register(command_chatter, self()),
                                     [Sink ! N || N <- lists:seq(1, Count)],
                                     [erlang:garbage_collect() || _ <- lists:seq(1, 10)]
                             end),
    receive {'DOWN', Ref, process, _, normal} -> ok end,
    Sink ! stop,
    ok.

%% The screen is redrawn in place; m sorts, q quits and restores the terminal.
top_on_a_terminal(Config) ->
    Command = test_command:terminal(["top", ?config(os_pid, Config)]),
    ok = test_command:await("dyntrace top  nonode@nohost", Command),
    ok = test_command:await("q quits; sort by", Command),
    ok = test_command:type("m", Command),
    ok = test_command:await("dyntrace top[\\s\\S]*dyntrace top", Command),
    ok = test_command:type("q", Command),
    {0, Output} = test_command:finish(Command),
    ?assertMatch({match, _}, re:run(Output, "\e\\[\\?1049h.*\e\\[\\?1049l", [dotall])),
    test_wait:until("the flags are off", [], fun() -> call(Config, fun dyntrace:listeners/0) end).

%% -- dyntrace request ----------------------------------------------------------------------------

%% The request waits behind another one, which takes 60 ms, and itself takes 30 ms.
request(Config) ->
    Command = test_command:start(["request", ?config(os_pid, Config), "17"]),
    ok = test_command:await("waiting for messages with the label 17", Command),
    until_traced(Config),
    call(Config, fun() -> ask_busy_server(fun(Server) -> with_token(17, fun() -> ask(Server, 30) end) end) end),
    {0, Output} = test_command:finish(Command),
    {Waited, Worked} = of_server(Output),
    ?assert(Waited >= 30000, Output),
    ?assert(Worked >= 30000 andalso Worked < 60000, Output),
    ?assertMatch({match, _}, re:run(Output, "command_client -> <[\\d.]+> command_server: {<[\\d.]+>,{pay,30}}")),
    ?assertMatch({match, _}, re:run(Output, "command_client receives")),
    {5, None} = test_command:run(["request", ?config(os_pid, Config), "18", "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(None, "no message with the label 18 .*\n  next: "
                                    ".*seq_trace:set_token\\(label, 18\\)")).

%% A request waits 50 ms in the second of three processes. The first one also calls seq_trace:print/2.
request_through_processes(Config) ->
    {Works, Pays} = call(Config, fun() ->
                                         Pays = spawn(?MODULE, pay, []),
                                         {spawn(?MODULE, order, [Pays]), Pays}
                                 end),
    Command = test_command:start(["request", ?config(os_pid, Config), "19"]),
    ok = test_command:await("waiting for messages with the label 19", Command),
    until_traced(Config),
    Asks = call(Config, fun() ->
                                {Asks, Ref} = spawn_monitor(?MODULE, buy, [Works]),
                                receive {'DOWN', Ref, process, Asks, normal} -> Asks end
                        end),
    {0, Output} = test_command:finish(Command),
    {match, Rows} = re:run(Output, "^[ \\d]{10}[ \\d]{10}([ \\d]{10})  ( *<.*)$",
                           [global, multiline, {capture, all_but_first, list}]),
    {Asking, Working, Paying} =
        call(Config, fun() -> {pid_to_list(Asks), pid_to_list(Works), pid_to_list(Pays)} end),
    ?assertEqual([Asking ++ " -> " ++ Working ++ ": {order," ++ Asking ++ "}",
                  "  " ++ Working ++ " receives",
                  "  " ++ Working ++ " -> " ++ Paying ++ ": {pay," ++ Asking ++ "}",
                  "    " ++ Paying ++ " receives",
                  "    " ++ Paying ++ " -> " ++ Asking ++ ": paid",
                  Asking ++ " receives",
                  Asking ++ " says \"is done\""],
                 [re:replace(Text, "> ?command_SUITE:\\w+/\\d", ">", [global, {return, list}]) || [_, Text] <- Rows],
                 Output),
    ?assertMatch({match, _}, re:run(Output, [Working, " command_SUITE:order/1 receives\n"])),
    [Work, Pay, Ask] = [list_to_integer(string:trim(Us)) || [Us, _] <- Rows, string:trim(Us) =/= ""],
    ?assert(Work >= 50000 andalso Pay < 50000 andalso Ask < 50000, Output).

buy(Works) ->
    [seq_trace:set_token(Flag, Value)
     || {Flag, Value} <- [{label, 19}, {send, true}, {'receive', true}, {print, true}]],
    Works ! {order, self()},
    receive paid -> ok end,
    _ = seq_trace:print(19, "is done"),
    seq_trace:set_token([]).

order(Pays) ->
    receive {order, Who} -> receive after 50 -> Pays ! {pay, Who} end end.

pay() ->
    receive {pay, Who} -> Who ! paid end.

%% The microseconds in the last lines.
of_server(Output) ->
    {match, [Waited, Worked]} = re:run(Output, "^ +(\\d+) +(\\d+)  <[\\d.]+> command_server$",
                                       [multiline, {capture, all_but_first, list}]),
    {list_to_integer(Waited), list_to_integer(Worked)}.

ask_busy_server(Fun) ->
    Server = spawn(fun server/0),
    register(command_server, Server),
    register(command_client, self()),
    First = spawn_monitor(fun() -> ask(Server, 60) end),
    receive after 10 -> ok end,
    Result = Fun(Server),
    receive {'DOWN', _, process, Pid, _} when Pid =:= element(1, First) -> ok end,
    unregister(command_client),
    exit(Server, kill),
    Result.

%% A server that takes as many milliseconds as the request says.
server() ->
    receive {From, {pay, Ms}} -> receive after Ms -> From ! {self(), paid} end end,
    server().

ask(Server, Ms) ->
    Server ! {self(), {pay, Ms}},
    receive {Server, paid} -> ok end.

with_token(Label, Fun) ->
    [seq_trace:set_token(Key, Value) || {Key, Value} <- [{label, Label}, {send, true}, {'receive', true}]],
    Result = Fun(),
    seq_trace:set_token([]),
    Result.

%% Without a token, the request is inferred from the call of a traced function and the messages after it.
next_request(Config) ->
    Command = test_command:start(["request", ?config(os_pid, Config), "--next", "command_SUITE:paid/1"]),
    ok = test_command:await("waiting for a call of command_SUITE:paid/1", Command),
    until_traced(Config),
    ok = call(Config, fun() -> ask_idle_server(fun paid/1) end),
    {0, Output} = test_command:finish(Command),
    ?assertMatch({match, _}, re:run(Output, "inferred")),
    ?assertMatch({match, _}, re:run(Output, "command_client calls command_SUITE:paid/1\n[^$]*"
                                    "command_client -> .*{pay,40}[^$]*command_server receives\n[^$]*"
                                    "command_client receives\n[^$]*returns from command_SUITE:paid/1")),
    {_, Worked} = of_server(Output),
    ?assert(Worked >= 40000 andalso Worked < 80000, Output),
    {5, None} = test_command:run(["request", ?config(os_pid, Config), "--next", "shop:pay", "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(None, "no call of shop:pay .*\n  next: .*"
                                    "dyntrace:follow\\(#{functions => \\[{shop, pay, '_'}\\]}\\)")).

paid({cast, Server}) ->
    Server ! store,
    ok;
paid(Server) ->
    ok = ask(Server, 40),
    ok.

%% The function returns at once, but its effects continue in other processes.
next_request_of_casts(Config) ->
    Command = test_command:start(["request", ?config(os_pid, Config), "--next", "command_SUITE:paid"]),
    ok = test_command:await("waiting for a call of command_SUITE:paid", Command),
    until_traced(Config),
    ok = call(Config, fun() ->
                              Last = spawn(fun() -> receive done -> ok end, receive after infinity -> ok end end),
                              Between = spawn(fun() -> receive store -> receive after 30 -> Last ! done end end end),
                              ok = paid({cast, Between}),
                              receive after 100 -> exit(Last, kill), ok end
                      end),
    {0, Output} = test_command:finish(Command),
    ?assertMatch({match, _}, re:run(Output, "-> <[\\d.]+>.*: store\n[^$]*returns from command_SUITE:paid/1\n[^$]*"
                                    "<[\\d.]+>.* -> <[\\d.]+>.*: done\n[^$]*receives\n")),
    ?assertEqual(nomatch, re:run(Output, "not seen")).

ask_idle_server(Fun) ->
    Server = spawn(fun server/0),
    register(command_server, Server),
    register(command_client, self()),
    ok = Fun(Server),
    unregister(command_client),
    exit(Server, kill),
    ok.

%% -- An unprivileged user ------------------------------------------------------------------------

%% An unprivileged user records and views a node of the same user, with a new daemon. Other users can't read the files.
unprivileged(_) ->
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-command-" ++ os:getpid()),
    Prefix = test_command:as_nobody(Home),
    Node = test_node:start(test_command:copy_for_nobody(Home)),
    try
        OsPid = test_node:os_pid(Node),
        {ok, _} = peer:call(Node, application, ensure_all_started, [dyntrace]),
        {0, Output} = test_shell:run("~s ~ts/dyntrace/priv/bin/dyntrace record ~s --seconds 3 -o '~ts/rec' 2>&1",
                                     [Prefix, Home, OsPid, Home]),
        ?assertMatch({match, _}, re:run(Output, "^recorded: [1-9]\\d* events, lost 0", [multiline]), Output),
        {0, Report} = test_shell:run("~s ~ts/dyntrace/priv/bin/dyntrace view '~ts/rec'", [Prefix, Home, Home]),
        ?assertMatch({match, _}, re:run(Report, ?NAMED, [multiline])),
        {0, Mode} = test_shell:run("stat -c '%U %a' '~ts/rec'", [Home]),
        ?assertEqual(<<"nobody 700\n">>, Mode),
        %% The daemon that the command started has ended.
        ?assertEqual([], test_shell:os_pids("lttng-sessiond", "HOME=" ++ Home)),
        {3, Top} = test_shell:run("~s ~ts/dyntrace/priv/bin/dyntrace top ~s", [Prefix, Home, OsPid]),
        ?assertMatch({match, _}, re:run(Top, "bpftrace needs root, and you are nobody\n  next: run `sudo dyntrace top"))
    after
        test_node:stop(Node),
        file:del_dir_r(Home)
    end.

%% -- Failures ------------------------------------------------------------------------------------

%% Each environment lacks something. Checks the exit status, the cause and the next step.
failures(Config) ->
    OsPid = ?config(os_pid, Config),
    Folder = ?config(folder, Config),
    Plain = test_node:start(),
    all_fail(
      [{Status, Place, [case Arg of os_pid -> OsPid; _ -> Arg end || Arg <- Args], Text}
       || {Status, Place, Args, Text} <-
            [{4, [no_tracefs(), " ", old(Folder ++ "/later", "bpftrace", "bpftrace v0.27.0")], ["top", os_pid],
              "tracefs is not mounted.*\n  next: as root: `mount -t tracefs"},
             {3, here("mount -t tmpfs tmpfs /sys/kernel/security; "
                      "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown"),
              ["run", "exits", os_pid],
              "kernel is locked down.*\n  next: use LTTng"},
             {4, without(Folder, "bpftrace"), ["top", os_pid], "bpftrace is not installed.*\n  next: install"},
             {4, without(Folder, "lttng"), ["record", os_pid],
              "lttng is not installed.*\n  next: install.* lttng-tools"},
             {4, without(Folder, "babeltrace2"), ["report", os_pid], "babeltrace2 is not installed"},
             {4, old(Folder, "bpftrace", "bpftrace v0.9.4"), ["top", os_pid],
              "bpftrace 0\\.9 is too old: 0\\.17 or later.*\n  next: install a later bpftrace"},
             {4, old(Folder, "lttng", "'\"$0\"' (LTTng Trace Control) 2.9.1 - X"), ["record", os_pid],
              "lttng 2\\.9 is too old: 2\\.13"},
             {1, without_daemon(Folder), ["record", os_pid, "-o", Folder ++ "/none"],
              "session daemon can't be started: I can't start\n  next: start it by hand"},
             {6, here("mount -t tmpfs -o size=1M tmpfs /dev/shm"), ["record", os_pid, "-o", Folder ++ "/small"],
              "/dev/shm has .* free, too little.*\n  next: free some space"},
             {4, here("mount -t tmpfs tmpfs /dev; mknod /dev/null c 1 3"), ["record", os_pid, "-o", Folder ++ "/bare"],
              "there is no /dev/shm.*\n  next: as root: `mkdir"},
             {1, "", ["record", os_pid, "-o", "/proc/nowhere"], "can't be written.*\n  next: write elsewhere"},
             %% The check comes before the recording, which would take long.
             {1, "", ["report", os_pid, "--seconds", "9999", "-o", "/nowhere/page.html"],
              "^dyntrace: /nowhere/page.html can't be written: there is no folder /nowhere\n  next: write elsewhere"},
             {1, ["env -C '", Folder, "' ", here("mount -o bind,ro . . && cd \"$PWD\"")],
              ["report", os_pid, "--seconds", "9999"],
              "^dyntrace: .* can't be written: Read-only file system\n  next: write elsewhere: `-o FILE`"},
             {5, "", ["record", "nobody_has_this_name"],
              "no Erlang VM matches nobody_has_this_name\n  next: `dyntrace nodes"},
             {5, "", ["report", test_node:os_pid(Plain)],
              "has not loaded dyntrace's library\n  next: run `dyntrace load .*`; or in the node"}]]),
    test_node:stop(Plain),
    Alone = filename:join(Folder, "alone"),
    copy_alone(Alone),
    {0, _} = test_shell:run("mkdir '~ts/rec' && echo 'trace {};' > '~ts/rec/metadata'", [Alone, Alone]),
    {4, NoPlugin} = test_shell:run("'~ts/bin/dyntrace' view '~ts/rec'", [Alone, Alone]),
    ?assertMatch({match, _}, re:run(NoPlugin, "the plugin for babeltrace2 is not in .*\n  next: build")),
    {4, NoScripts} = test_shell:run("'~ts/bin/dyntrace' run", [Alone]),
    ?assertMatch({match, _}, re:run(NoScripts, "no scripts in .*\n  next: ")).

%% Copies the program with its package, but nothing else of priv.
copy_alone(Folder) ->
    {0, _} = test_shell:run("mkdir -p '~ts/bin' && cp '~ts' '~ts/bin' && cp -R '~ts' '~ts'",
                            [Folder, test_command:path(), Folder, test_command:package(), Folder]).

%% Runs all cases in parallel.
all_fail(Cases) ->
    Commands = [{Status, Args, Text, test_command:start(Place, Args)} || {Status, Place, Args, Text} <- Cases],
    [begin
         {Seen, Output} = test_command:finish(Command),
         ?assertEqual({Status, Args}, {Seen, Args}, Output),
         ?assertMatch({match, _}, re:run(Output, Text), Output)
     end || {Status, Args, Text, Command} <- Commands].

%% Later versions of bpftrace don't start without tracefs.
without_tracefs(Config) ->
    {Started, _} = test_shell:run([no_tracefs(), " bpftrace -e 'BEGIN { exit(); }' 2>&1"], []),
    {Status, Output} = test_command:run(no_tracefs(), ["run", "exits", ?config(os_pid, Config), "--seconds", "1"]),
    ?assertEqual(case Started of 0 -> 0; _ -> 4 end, Status, Output).

no_tracefs() ->
    here("umount -l /sys/kernel/tracing 2>/dev/null; mount -t tmpfs tmpfs /sys/kernel/debug").

%% A separate mount namespace: file systems that are mounted there are not visible outside.
here(Prepare) ->
    ["unshare --mount --propagation private sh -c ", test_command:quoted(Prepare ++ "; exec \"$@\""), " sh"].

%% All tools of this machine except one.
without(Folder, Tool) ->
    ["env PATH=", tools(Folder, Tool)].

tools(Folder, Tool) ->
    tools(Folder, Tool, "without-").

tools(Folder, Tool, Prefix) ->
    Place = filename:join(Folder, Prefix ++ Tool),
    {0, _} = test_shell:run("mkdir -p '~ts'; for t in python3 env sh nsenter setpriv bpftrace lttng "
                            "lttng-sessiond babeltrace2; do p=$(command -v $t) && [ $t != ~s ] && "
                            "ln -sf $p '~ts'/; done; ln -sf /usr/bin/python3 '~ts'/python3",
                            [Place, Tool, Place, Place]),
    Place.

old(Folder, Tool, Version) ->
    faked(Folder, Tool, "echo '" ++ Version ++ "'").

faked(Folder, Tool, Script) ->
    Place = tools(Folder, Tool, "another-1.0-"),
    File = filename:join(Place, Tool),
    ok = file:write_file(File, ["#!/bin/sh\n", Script, "\n"]),
    ok = file:change_mode(File, 8#755),
    ["env PATH=", Place].

%% An environment in which no daemon runs and none can be started.
without_daemon(Folder) ->
    [here("mount -t tmpfs tmpfs /run/lttng"), " ",
     faked(Folder, "lttng-sessiond", "[ \"$1\" = --version ] && { echo 2.13; exit; }; echo \"I can't start\"; exit 1")].

%% The library is loaded, but the application is not started.
not_started(Config) ->
    Node = test_node:start(),
    #{library := _} = test_node:call(Node, fun dyntrace:info/0),
    Folder = filename:join(?config(folder, Config), "none"),
    OsPid = test_node:os_pid(Node),
    all_fail([{5, "", Args, "the application dyntrace has not started in the node.*\n  next: in the node, type "
               "`application:ensure_all_started\\(dyntrace\\)"}
              || Args <- [["record", OsPid, "-o", Folder], ["top", OsPid],
                          ["record", OsPid, "-o", Folder ++ "2", "--seconds", "2"]]]),
    ?assertNot(filelib:is_file(Folder ++ "2")),
    ?assertNot(filelib:is_file(Folder)),
    test_node:stop(Node).

disk_full(Config) ->
    Disk = filename:join(?config(folder, Config), "disk"),
    ok = filelib:ensure_path(Disk),
    {6, Output} = test_command:run(here("mount -t tmpfs -o size=20M tmpfs '" ++ Disk ++ "'"),
                                   ["record", ?config(os_pid, Config), "-o", Disk ++ "/rec"]),
    ?assertMatch({match, _}, re:run(Output, ": [\\d.]+ MB free\n  next: free some space there, or record elsewhere")).

%% The disk fills during a recording, which is complete up to then.
disk_fills(Config) ->
    Disk = filename:join(?config(folder, Config), "disk"),
    ok = filelib:ensure_path(Disk),
    {0, _} = test_shell:run("mount -t tmpfs -o size=80M tmpfs '~ts'", [Disk]),
    try
        Command = test_command:start(["record", ?config(os_pid, Config), "-o", Disk ++ "/rec"]),
        ok = test_command:await("  lost 0 events", Command),
        until_traced(Config),
        {0, _} = test_shell:run("head -c 60000000 /dev/zero > '~ts/other'", [Disk]),
        {6, Output} = test_command:finish(Command),
        ?assertMatch({match, _}, re:run(Output, "free; the recording ends here and is complete until now\n  next: ")),
        ok = file:delete(Disk ++ "/other"),
        ?assertMatch(#{<<"recording">> := #{<<"events">> := Events}} when Events > 0, report_of(Disk ++ "/rec"))
    after
        test_shell:run("umount -l '~ts'", [Disk])
    end.

%% -- Malicious input -------------------------------------------------------------------------------

%% A process name must not send control characters to the terminal.
hostile_names(Config) ->
    Command = test_command:start(["top", ?config(os_pid, Config), "--rows", "100"]),
    ok = test_command:await("dyntrace top", Command),
    until_traced(Config),
    Hostile = call(Config, fun() ->
                                   Loop = fun Loop() -> receive _ -> Loop() end end,
                                   Pid = spawn(fun() -> receive go -> Loop() end end),
                                   register('command\e[31m', Pid),
                                   [Pid ! N || N <- lists:seq(1, 100)],
                                   Pid
                           end),
    ok = test_command:await("> .*command.*31m", Command),
    call(Config, fun() -> Hostile ! go end),
    Output = test_command:interrupted(Command),
    ?assertEqual(nomatch, re:run(Output, "\e\\[31m")),
    Folder = filename:join(?config(folder, Config), "names"),
    {_, _} = recorded(["-o", Folder], Config, fun() -> [Hostile ! N || N <- lists:seq(1, 100)] end),
    {0, Report} = test_command:run(["view", Folder]),
    ?assertMatch({match, _}, re:run(Report, "command.*31m")),
    ?assertEqual(nomatch, re:run(Report, "\e")),
    call(Config, fun() -> exit(Hostile, kill) end).

%% The library's path contains syntax of bpftrace and of the shell, and control characters of the terminal.
hostile_path(Config) ->
    Evil = "a \":q:r { } BEGIN { exit(); } usdt:*?[x]$1'; touch pwned; \e[31m",
    App = filename:dirname(filename:dirname(code:which(dyntrace))),
    Copy = filename:join([?config(folder, Config), Evil, "dyntrace"]),
    ok = filelib:ensure_path(Copy),
    {0, _} = test_shell:run("cp -RL '~ts/ebin' '~ts/priv' ~ts/", [App, App, test_command:quoted(Copy)]),
    Node = test_node:start(#{paths => [Copy ++ "/ebin" | test_node:test_paths()]}),
    {ok, _} = peer:call(Node, application, ensure_all_started, [dyntrace]),
    OsPid = test_node:os_pid(Node),
    #{<<"library">> := Library, <<"consumers">> := #{<<"usdt">> := []}} = test_command:listed(OsPid),
    ?assertEqual(list_to_binary(Copy ++ "/priv/dyntrace.so"), Library),
    names_of_top(Node, OsPid),
    Place = "env -C '" ++ ?config(folder, Config) ++ "'",
    {0, Exits} = test_command:run(Place, ["run", "exits", OsPid, "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(Exits, "Counting exits")),
    ?assertEqual(nomatch, re:run(Exits, "\e")),
    %% With a second node, and with the command in another mount namespace.
    Other = test_node:start(#{paths => [Copy ++ "/ebin" | test_node:test_paths()]}),
    {ok, _} = peer:call(Other, application, ensure_all_started, [dyntrace]),
    {0, Odd} = test_command:run([Place, " ", here("true")], ["run", "exits", OsPid, "--seconds", "1"]),
    ?assertMatch({match, _}, re:run(Odd, "Counting exits")),
    test_node:stop(Other),
    ?assertNot(filelib:is_file(filename:join(?config(folder, Config), "pwned"))),
    test_node:stop(Node).

%% Another program may answer in place of epmd, with endless output.
hostile_epmd(_) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Epmd} = inet:port(Listen),
    Nodes = [Node || Port <- ["no number", "999999", integer_to_list(Epmd)],
                     Node <- [test_node:start(#{env => [{"ERL_EPMD_PORT", Port}]})]],
    Own = [test_node:call(Node, fun listening/0) || Node <- Nodes],
    Answerer = spawn_link(fun() -> answer(Listen, ["name \e[31mevil at port ", integer_to_list(lists:last(Own)), "\n"])
                          end),
    ok = gen_tcp:controlling_process(Listen, Answerer),
    Began = erlang:monotonic_time(second),
    {0, Text} = test_command:run(["nodes"]),
    ?assert(erlang:monotonic_time(second) - Began < 20),
    ?assertEqual(nomatch, re:run(Text, "\e")),
    Listed = test_command:listed(),
    [Unknown, None, Evil] = Nodes,
    ?assertEqual([<<"nonode@nohost">>, <<"nonode@nohost">>], [named(Node, Listed) || Node <- [Unknown, None]]),
    %% The command gives up on a node that does not answer in time.
    test_wait:until("its name is the answer", <<"\\x1b[31mevil@">>,
                    fun() -> re:replace(named(Evil, test_command:listed()), "(?<=@).*", "", [{return, binary}]) end),
    unlink(Answerer),
    exit(Answerer, kill),
    [test_node:stop(Node) || Node <- Nodes].

named(Node, Listed) ->
    maps:get(<<"node">>, test_command:node_of(test_node:os_pid(Node), Listed)).

listening() ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    ok = gen_tcp:controlling_process(Listen, whereis(init)),
    {ok, Port} = inet:port(Listen),
    Port.

answer(Listen, Names) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    endlessly(Socket, [<<0:32>>, Names]),
    answer(Listen, Names).

endlessly(Socket, Piece) ->
    case gen_tcp:send(Socket, Piece) of
        ok -> receive after 50 -> endlessly(Socket, ".") end;
        {error, _} -> gen_tcp:close(Socket)
    end.

%% Another user has made the folder, or a link at the path that the command writes to.
hostile_folder(Config) ->
    [Theirs, Link, Real, Page, Secret] =
        [filename:join(?config(folder, Config), Name) || Name <- ["theirs", "link", "real", "page.txt", "secret"]],
    {0, _} = test_shell:run("mkdir '~ts' '~ts' && chown nobody '~ts' && ln -s real '~ts' && echo kept > '~ts' && "
                            "ln -s secret '~ts.part'", [Theirs, Real, Theirs, Link, Secret, Page]),
    Record = fun(Folder) -> test_command:run(["record", ?config(os_pid, Config), "--seconds", "1", "-o", Folder]) end,
    {3, Belongs} = Record(Theirs),
    ?assertMatch({match, _}, re:run(Belongs, "theirs belongs to nobody, .*\n  next: name a folder that does not")),
    {1, Linked} = Record(Link),
    ?assertMatch({match, _}, re:run(Linked, "link can't be written")),
    {0, _} = Record(Real),
    {0, _} = test_command:run(["view", Real, "-o", Page]),
    ?assertEqual({ok, <<"kept\n">>}, file:read_file(Secret)).

%% Root does not run a script from the folder of a node's library.
scripts_of_a_node(Config) ->
    Alone = filename:join(?config(folder, Config), "alone"),
    copy_alone(Alone),
    {4, NoScripts} = test_shell:run("'~ts/bin/dyntrace' run exits ~ts 2>&1", [Alone, ?config(os_pid, Config)]),
    ?assertMatch({match, _}, re:run(NoScripts, "no scripts in .*\n  next: ")).

%% -- Interruptions ----------------------------------------------------------------------------------

%% A killed command leaves no daemon, session, consumer or temporary folder.
killed(Config) ->
    [begin
         Command = started_in_folder(watching(Name, ?config(os_pid, Config), Args), Config),
         ok = test_command:await(Text, Command),
         ok = test_command:signal("KILL", Command),
         {Killed, _} = test_command:finish(Command),
         ?assertEqual({137, Name}, {Killed, Name}),
         nothing_is_left(Name, Config)
     end || {Name, Args, Text} <- [{"report", [], "recording nonode"}, {"report", [], "  lost 0 events"},
                                   {"record", ["-o", "kept"], "recording nonode"}, {"top", [], "dyntrace top"},
                                   {"request", ["17"], "waiting for"}, {"run", ["exits"], "Counting exits"}]].

%% Starts a command in the folder of the case, in which it makes its temporary folder, too.
started_in_folder(Args, Config) ->
    Folder = ?config(folder, Config),
    test_command:start("env -C '" ++ Folder ++ "' TMPDIR='" ++ Folder ++ "'", Args).

nothing_is_left(Name, Config) ->
    test_wait:until({"no consumer is left", Name}, [], fun() -> call(Config, fun dyntrace:listeners/0) end),
    test_wait:until({"no daemon is left", Name}, 1,
                    fun() -> element(1, test_shell:run("lttng --no-sessiond list 2>&1", [])) end),
    Folder = ?config(folder, Config),
    test_wait:until({"no folder is left", Name}, [], fun() -> filelib:wildcard("dyntrace-*", Folder) end).

watching("run", OsPid, Args) -> ["run" | Args] ++ [OsPid];
watching(Name, OsPid, Args) -> [Name, OsPid | Args].

%% A stopped node does not make commands wait. A recording in progress ends as usual, and so does its daemon, which
%% waits for the node.
stopped(Config) ->
    Node = traced_node(),
    OsPid = test_node:os_pid(Node),
    Folder = filename:join(?config(folder, Config), "stopped"),
    Command = test_command:start(["record", OsPid, "-o", Folder]),
    ok = test_command:await("  lost 0 events", Command),
    {0, _} = test_shell:run("kill -STOP ~s", [OsPid]),
    try
        all_fail([{5, "", watching(Name, OsPid, Args),
                   "process \\d+ \\(nonode@nohost\\) is stopped by .*\n  next: .*kill -CONT"}
                  || {Name, Args} <- [{"top", []}, {"record", []}, {"report", []}, {"request", ["17"]},
                                      {"run", ["exits"]}]]),
        _ = test_command:interrupted(Command),
        ?assertMatch(#{<<"recording">> := #{<<"events">> := Events}} when Events > 0, report_of(Folder)),
        ?assertMatch({1, _}, test_shell:run("lttng --no-sessiond list 2>&1", []))
    after
        test_shell:run("kill -CONT ~s", [OsPid]),
        test_node:stop(Node)
    end.

%% The session daemon stops answering while commands record: a second signal ends them at once, with the status that
%% shells expect. Sessions, daemon and temporary folders are gone as soon as the daemon runs again.
interrupted_twice(Config) ->
    [begin
         Command = started_in_folder(watching(Name, ?config(os_pid, Config), Args), Config),
         ok = test_command:await("  lost 0 events|kept in memory", Command),
         {0, Daemons} = test_shell:run("pgrep -x 'lttng-sessiond|lttng-consumerd'", []),
         Signal = fun(Which) -> test_shell:run("kill -~s ~s", [Which, string:replace(Daemons, "\n", " ", all)]) end,
         _ = Signal("STOP"),
         try
             ok = test_command:signal(First, Command),
             ok = test_command:await("still ending; a second Ctrl-C ends it at once", Command),
             ok = test_command:signal(Second, Command),
             {Ended, _} = test_command:finish(Command),
             ?assertEqual({Status, Name}, {Ended, Name})
         after
             Signal("CONT")
         end,
         nothing_is_left(Name, Config)
     end || {Name, Args, First, Second, Status} <-
                [{"report", [], "INT", "INT", 130}, {"record", ["-o", "kept"], "TERM", "TERM", 143},
                 {"record", ["--snapshot", "--when", "crash", "-o", "snapshots"], "INT", "TERM", 143}]].

%% The node is killed while five commands observe it: they end, and what was recorded until then is complete.
node_ends(Config) ->
    How = test_command:known_end("killed by SIGKILL"),
    Node = traced_node(),
    OsPid = test_node:os_pid(Node),
    [Folder, Page] = [filename:join(?config(folder, Config), Name) || Name <- ["until_its_end", "page.txt"]],
    Commands = [{Expected, Text, test_command:start(watching(Name, OsPid, Args))}
                || {Name, Args, Expected, Text} <-
                       [{"record", ["-o", Folder], 0,
                         "nonode@nohost \\(\\d+\\) has ended after [\\d.]+ s, " ++ How ++ "; "},
                        {"report", ["--seconds", "100", "-o", Page], 0,
                         How ++ "; the recording has its events until then"},
                        {"top", [], 5, "process \\d+ \\(nonode@nohost\\) has ended\n  next: `dyntrace nodes"},
                        {"request", ["17"], 5, "process \\d+ \\(nonode@nohost\\) has ended"},
                        {"run", ["exits"], 0, "nonode@nohost \\(\\d+\\) has ended"}]],
    [ok = test_command:await("  lost 0 events|dyntrace top|waiting for|Counting exits", Command)
     || {_, _, Command} <- Commands],
    {0, _} = test_shell:run("kill -KILL ~s", [OsPid]),
    [begin
         {Status, Output} = test_command:finish(Command),
         ?assertEqual({Expected, Text}, {Status, Text}, Output),
         ?assertMatch({match, _}, re:run(Output, Text))
     end || {Expected, Text, Command} <- Commands],
    Pid = list_to_integer(OsPid),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [#{<<"os_pid">> := Pid}]}}, report_of(Folder)),
    {ok, Report} = file:read_file(Page),
    ?assertMatch({match, _}, re:run(Report, "\n  high +nonode@nohost \\(\\d+\\) ended: " ++ How)).

%% Streams that are closed or full, a terminal without cursor control, encodings that lack the characters.
streams(Config) ->
    Nodes = test_command:quoted(test_command:path()) ++ " nodes",
    [?assertMatch({{Status, _}, _}, {test_shell:run(Line, []), Line})
     || {Status, Line} <- [{0, Nodes ++ " >&-"}, {0, Nodes ++ " <&- >&- 2>&-"}, {1, Nodes ++ " >/dev/full"},
                           {0, Nodes ++ " | true"}]],
    Folder = filename:join(?config(folder, Config), "full"),
    {0, _} = test_command:run(["record", ?config(os_pid, Config), "--seconds", "1", "-o", Folder]),
    {1, Full} = test_shell:run([test_command:quoted(test_command:path()), " view ", Folder, " > /dev/full"], []),
    ?assertMatch({match, _}, re:run(Full, "standard output can't be written: no space left\n  next: ")),
    {0, Head} = test_shell:run([test_command:quoted(test_command:path()), " view ", Folder, " | head -1"], []),
    ?assertMatch({match, _}, re:run(Head, "^Findings.*\n$")),
    ?assertMatch({match, _}, re:run(element(2, test_shell:run(Nodes ++ " <&- 2>&-", [])), "^PID +USER")),
    [?assertMatch({{0, _}, _}, {test_command:run("env LC_ALL=" ++ Locale ++ " PYTHONUTF8=0 PYTHONCOERCECLOCALE=0",
                                                 [Name | Args]), Locale})
     || Locale <- ["C", "nowhere.ISO-8859-1"],
        {Name, Args} <- [{"nodes", []}, {"record", [?config(os_pid, Config), "--seconds", "1", "-o",
                                                    filename:join([?config(folder, Config), "straße-" ++ Locale])]}]],
    Top = [test_command:quoted(test_command:path()), " top ", ?config(os_pid, Config), " --seconds 1"],
    {0, Dumb} = test_shell:run("TERM=dumb script -qefc ~ts /dev/null </dev/null", [test_command:quoted(Top)]),
    ?assertMatch({match, _}, re:run(Dumb, "dyntrace top  nonode@nohost")),
    ?assertEqual(nomatch, re:run(Dumb, "\e")).

%% Hosts may have Python 3.6. Later versions must not print warnings either.
old_python(Config) ->
    Parse = "import ast, sys\n"
        "for file in sys.argv[1:]:\n"
        "    ast.parse(open(file).read(), file, feature_version=(3, 6))\n",
    ?assertEqual({0, <<>>},
                 test_shell:run("find '~ts' '~ts' -name '*.py' -o -name dyntrace | xargs -d '\\n' python3 -c ~ts 2>&1",
                                [test_command:path(), test_command:package(), test_command:quoted(Parse)])),
    %% Python warns of some faults only when it compiles a file.
    {0, Output} = test_shell:run("python3 -IS -X pycache_prefix='~ts/none' -W error ~ts nodes 2>&1",
                                 [?config(folder, Config), test_command:quoted(test_command:path())]),
    ?assertEqual(nomatch, re:run(Output, "Warning")).

%% -- dyntrace:record/1 ---------------------------------------------------------------------------

%% The extension selects the output format; without one, the recording is kept.
from_the_node(Config) ->
    OsPid = list_to_integer(?config(os_pid, Config)),
    [File, Folder] = [filename:join(?config(folder, Config), Name) || Name <- ["report.json", "recording"]],
    ?assertEqual({ok, File}, call(Config, fun() -> dyntrace:record(#{seconds => 1, to => File}) end)),
    #{<<"recording">> := #{<<"nodes">> := [#{<<"os_pid">> := OsPid}], <<"events">> := Events}} =
        test_viewer:decode(File),
    ?assert(Events > 0),
    ?assertEqual({ok, Folder}, call(Config, fun() -> dyntrace:record(#{seconds => 0.5, to => list_to_binary(Folder),
                                                                       events => [gc, messages]}) end)),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [#{<<"os_pid">> := OsPid}]}}, report_of(Folder)),
    {error, Exists} = call(Config, fun() -> dyntrace:record(#{seconds => 1, to => Folder}) end),
    ?assertMatch({match, _}, re:run(Exists, "^dyntrace: .*exists and is not empty\n  next: ")).

%% The error is the one of the operating system.
from_the_node_without_python(_) ->
    Node = traced_node(),
    Result = test_node:call(Node, fun() -> true = os:putenv("PATH", "/nowhere"), dyntrace:record(#{seconds => 1}) end),
    ?assertMatch({error, <<_, _/binary>>}, Result),
    test_node:stop(Node).

from_the_node_wrongly(Config) ->
    [begin
         Text = call(Config, fun() ->
                                     try dyntrace:record(Options)
                                     catch error:badarg:Stack -> erl_error:format_exception(error, badarg, Stack)
                                     end
                             end),
         ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Text), Why))
     end || {Options, Why} <- [{#{seconds => 0}, "seconds: must be a number above 0"},
                               {#{seconds => soon}, "seconds: "},
                               {#{to => 17}, "to: must be a file name"}, {#{to => ""}, "to: "},
                               {#{events => gc}, "events: "}, {#{events => ["gc"]}, "events: must be a list of atoms"},
                               {#{events => [gc | no_list]}, "events: "},
                               {#{form => page}, "form: no such option"}, {[], "not a map"}]].

%% -- The command line ----------------------------------------------------------------------------

wrong_arguments(_) ->
    [begin
         {Status, Output} = test_command:run(Args),
         ?assertEqual({2, Args}, {Status, Args}),
         ?assertMatch({match, _}, re:run(Output, ["^usage: dyntrace[\\s\\S]*error: .*", Named]), Args)
     end || {Args, Named} <-
                [{[], "COMMAND"}, {["fly"], "fly"},
                 {["record", "--seconds", "soon"], "invalid number of seconds: 'soon'"},
                 {["record", "--seconds", "-1"], "-1"},
                 {["record", "--events", "all_of_them"], "invalid group: 'all_of_them'"},
                 {["record", "--functions", "shop:pay/1,pay"], "'pay', must be MODULE:FUNCTION/ARITY"},
                 {["record", "--to", "host"], "invalid relay URL: 'host'"}, {["view"], "FOLDER"},
                 {["record", "--to", "net://host:65536"], "invalid relay URL"},
                 {["snapshot", "--ssh", "", "host"], "invalid command"},
                 {["snapshot", "--ssh", "'", "host"], "invalid command"},
                 {["snapshot", "-o", "-", "host"], "only without HOST"},
                 {["snapshot", "--list", "host"], "--list takes neither HOST"},
                 {["record", "--snapshot", "--when", "crashes"], "'crashes', must be one of crash, error"},
                 {["record", "--when", "crash"], "--when requires --snapshot"},
                 {["record", "--full"], "--full requires --snapshot"},
                 {["record", "--snapshot", "--keep", "2"], "require --when"},
                 {["record", "--snapshot", "--when", "crash", "--at-most", "2/week"], "'2/week', must be N/hour"},
                 {["snapshot", "--", "-oevil@host"], "invalid host name"},
                 {["view", "x", "-o", "x.pdf"], "'x.pdf', must end in one of .html"},
                 {["report", "-o", "x"], "'x'"}, {["request"], "LABEL"},
                 {["request", "1", "2", "--next", "a:b"], "LABEL"},
                 {["request", "--next", "a"], "'a', must be MODULE:FUNCTION/ARITY"}, {["top", "--rows", "0"], "'0'"},
                 {["top", "--sort", "size"], "size"},
                 {["top", "--sort", "sent"], "sent works only with --exact"},
                 {["top", "--exact", "--sort", "queue"], "queue works only without --exact"},
                 {["nodes", "--jsno"], "jsno"}]].

help(_) ->
    {0, Help} = test_command:run(["--help"]),
    {match, Names} = re:run(Help, "^    ([a-z]+) ", [global, multiline, {capture, all_but_first, list}]),
    ?assert(length(Names) >= 12),
    [begin
         {0, Of} = test_command:run([Name, "--help"]),
         ?assertMatch({match, _}, re:run(Of, ["^usage: dyntrace ", Name]))
     end || [Name] <- Names].

%% The command, the application, the plugin and the changelog state the version of src/dyntrace.app.src.
versions(Config) ->
    Version = test_shell:version(),
    ?assertEqual({0, printed(Version)}, test_command:run(["--version"])),
    ?assertMatch(#{version := Version}, call(Config, fun dyntrace:info/0)),
    {0, Plugin} = test_shell:run("babeltrace2 --plugin-path='~ts/priv/babeltrace2' list-plugins",
                                 [test_shell:project()]),
    ?assertEqual({match, [Version]},
                 re:run(Plugin, "^dyntrace:\\n(?:  .*\\n)*?  Version: (.*)$",
                        [multiline, {capture, all_but_first, list}])),
    {ok, Changes} = file:read_file(filename:join(test_shell:project(), "CHANGELOG.md")),
    ?assertEqual({match, [Version]},
                 re:run(Changes, "^## \\[(\\d.*)\\] - \\d{4}-\\d\\d-\\d\\d$",
                        [multiline, {capture, all_but_first, list}])).

printed(Version) ->
    list_to_binary(["dyntrace ", Version, "\n"]).

installed(Config) ->
    Prefix = filename:join(?config(folder, Config), "usr"),
    {0, _} = test_shell:run("make -C '~ts' install PREFIX='~ts'", [test_shell:project(), Prefix]),
    {0, Scripts} = test_shell:run("'~ts/bin/dyntrace' run", [Prefix]),
    ?assertMatch({match, _}, re:run(Scripts, "^exits ", [multiline])),
    Version = test_shell:version(),
    ?assertEqual({0, printed(Version)}, test_shell:run("'~ts/bin/dyntrace' --version", [Prefix])),
    %% The installed modules are compiled.
    ?assertMatch([_], filelib:wildcard(Prefix ++ "/lib/dyntrace/python/dyntrace_command/cli/__pycache__/main.*.pyc")),
    {ok, Manual} = file:read_file(Prefix ++ "/share/man/man1/dyntrace.1"),
    ?assertMatch({match, _}, re:run(Manual, "^\\.SS dyntrace nodes", [multiline])),
    ?assertMatch({match, _}, re:run(Manual, [".TH DYNTRACE 1 [-\\d]+ \"dyntrace ", Version, "\" "])),
    {0, Completed} = test_shell:run("bash -c '. \"$0\"; COMP_WORDS=(dyntrace re); COMP_CWORD=1; _dyntrace; "
                                    "echo ${COMPREPLY[*]}' '~ts/share/bash-completion/completions/dyntrace'", [Prefix]),
    ?assertEqual(<<"record relay report request\n">>, Completed).

%% Each command of docs/night.md works on the shop of that page. Commands that run until Ctrl-C end after some seconds.
night(Config) ->
    {ok, Page} = file:read_file(filename:join(test_shell:project(), "docs/night.md")),
    {match, Lines} = re:run(Page, "^\\$ dyntrace (.*)$", [global, multiline, {capture, all_but_first, list}]),
    ?assert(length(Lines) >= 10),
    Commands = [string:lexemes(Line, " ") || [Line] <- Lines],
    ok = call(Config, fun test_command_shop:start/0),
    ok = call(Config, fun() -> dyntrace:follow(#{functions => test_command_shop:functions()}) end),
    Ours = [Command || Command <- Commands, not lists:member("office", Command)],
    {Views, Watchers} = lists:partition(fun([Name | _]) -> Name =:= "view" end, Ours),
    {First, Second} = lists:split(length(Watchers) div 2, Watchers),
    [all_work(Some, Config) || Some <- [First, Second, Views]],
    ok = call(Config, fun test_command_shop:stop/0).

%% Runs all commands in parallel. The duration of a script begins when the first probe of any tracer is attached, and
%% attaching a dozen scripts takes longer than that duration.
all_work(Commands, Config) ->
    Place = "env -C '" ++ ?config(folder, Config) ++ "'",
    [begin
         {Status, Output} = test_command:finish(Started),
         ?assertEqual({0, Command}, {Status, Command}, Output)
     end || {Command, Started} <- [{Command, test_command:start(Place, shortened(Command, Config))}
                                   || Command <- Commands]].

shortened([Name | Args], Config) ->
    Named = [case Arg of "shop" -> ?config(os_pid, Config); _ -> Arg end || Arg <- Args],
    Ends = ["top", "profile", "record", "report"],
    case lists:member(Name, Ends) andalso not lists:member("--seconds", Args) of
        true -> [Name | Named] ++ ["--seconds", "4"];
        %% The last option wins. A bpftrace that is ended while it attaches fails.
        false when Name =:= "run" -> [Name | Named] ++ ["--seconds", "15"];
        false -> [Name | Named]
    end.

%% -- Helpers -------------------------------------------------------------------------------------

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
