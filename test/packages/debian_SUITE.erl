%% `make check-packages`: installs the Debian packages of each release in a fresh chroot, as on a host of which they are
%% the first packages that are installed by hand. There, nodes that run without dyntrace are observed, the packages are
%% upgraded while nodes are recorded, and purged.
%%
%% The chroots have no systemd. A script in place of systemctl logs what the packages ask for.
-module(debian_SUITE).

-include("../support/suite.hrl").

-define(LATER, "99.0.0").
%% Findings about the machine, which may be busy with other tests.
-define(OF_THE_MACHINE, [<<"lost_cpu">>, <<"busy_schedulers">>, <<"long_wait">>, <<"long_schedules">>]).

suite() ->
    [{timetrap, {minutes, 15}}].

%% In CI, only the oldest release, except before a release of this project: the packages of each are built.
all() ->
    IsShort = os:getenv("CI") =:= "true" andalso os:getenv("FULL") =/= "yes",
    [{group, Release} || {Release, _} <- releases(), Release =:= bookworm orelse not IsShort].

groups() ->
    [{Release, [], [autopkgtest, report, profile, top, application, upgrade, purge]} || {Release, _} <- releases()].

%% The releases, and their OTP.
releases() ->
    [{bookworm, <<"25">>}, {trixie, <<"27">>}, {forky, <<"29">>}].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "chroots need root" end,
    Missing = fun() ->
                      Tools = [Tool || Tool <- ["debootstrap", "dpkg-deb", "dh", "dh_python3", "lintian", "musl-gcc"],
                                       os:find_executable(Tool) =:= false],
                      Tools =/= [] andalso lists:join(", ", Tools) ++ " not installed"
              end,
    test_require:tool(test_require:first([NotRoot, Missing]), Config).

end_per_suite(_) -> ok.

init_per_group(Release, Config) ->
    case build(atom_to_list(Release)) of
        {ok, Packages} -> fresh(Release, Packages, Config);
        failed -> skipped(Release)
    end.

%% Not even in CI, the tests of a release fail because its archive can't be reached.
skipped(Release) ->
    Why = lists:concat(["no chroot of Debian ", Release, ": its archive can't be reached"]),
    ct:pal("SKIPPED: ~s", [Why]),
    {skip, Why}.

end_per_group(_, Config) ->
    remove(?config(root, Config)).

%% Epmd has a port of its own, because the chroots share the host's network.
init_per_testcase(_, Config) ->
    {Number, _} = Epmd = test_node:start_epmd(),
    enter([{epmd, Epmd}, {epmd_port, Number} | Config]).

end_per_testcase(_, Config) ->
    _ = leave(Config),
    %% What a failed test has left.
    [test_shell:run("kill -KILL ~s", [OsPid]) || OsPid <- processes_in(Config)],
    test_node:stop_epmd(?config(epmd, Config)).

%% Builds the packages on their release: on this machine, or in the chroot of tools/debian.
build(Release) ->
    case os:cmd(". /etc/os-release && printf %s \"$VERSION_CODENAME\"") of
        Release ->
            {ok, built_here()};
        _ ->
            case tool("~s install make build-essential lintian ~s", [Release, build_dependencies()]) of
                {0, _} ->
                    {0, _} = tool("~s run sh -c 'make cached && PATH=/dyntrace/_build/ccache:$PATH make deb'",
                                  [Release]),
                    {0, Folder} = tool("~s folder", [Release]),
                    {ok, packages_in(string:trim(binary_to_list(Folder)) ++ "/dyntrace-packages")};
                {_, _} ->
                    failed
            end
    end.

%% The packages of this machine's release, also for packages_SUITE, are built once. lintian reports neither errors nor
%% warnings.
built_here() ->
    case persistent_term:get(?MODULE, []) of
        [] ->
            {0, _} = run("make -C '~ts' deb", [test_shell:project()]),
            ok = persistent_term:put(?MODULE, packages_in(test_shell:project())),
            built_here();
        Packages ->
            Packages
    end.

build_dependencies() ->
    {ok, Control} = file:read_file(in_project("debian/control")),
    {match, [Field]} = re:run(Control, "Build-Depends: ((?:.+,\\n)*.+)\\n", [{capture, all_but_first, list}]),
    re:replace(Field, "-compat \\([^)]*\\)|[,\\n]", "", [global, {return, list}]).

packages_in(Folder) ->
    [_, _, _] = filelib:wildcard(Folder ++ "/_build/deb/*.deb").

%% A fresh chroot in which the packages are installed.
fresh(Release, Packages, Config) ->
    {0, Project} = run("realpath '~ts'", [test_shell:project()]),
    Root = filename:join([string:trim(unicode:characters_to_list(Project)), "_build/debian", Release]),
    ok = remove(Root),
    ok = filelib:ensure_dir(Root),
    case tool("~s fresh '~ts'", [Release, Root]) of
        {0, _} -> installed(Packages, enter([{release, Release}, {root, Root} | Config]));
        {_, _} -> skipped(Release)
    end.

installed(Packages, Config) ->
    Root = ?config(root, Config),
    copy_in(Packages, Root),
    {0, _} = run("'~ts' ~s ~s '~ts/later' ~ts", [in_project("test/packages/later_version"), test_shell:version(),
                                                 ?LATER, Root, [["'", File, "' "] || File <- Packages]]),
    %% Without this, most of the time is spent on waiting for the disk.
    ok = file:write_file(Root ++ "/etc/dpkg/dpkg.cfg.d/unsafe-io", "force-unsafe-io\n"),
    {0, _} = inside(Config, "apt-get update -q || { sleep 5; apt-get update -q; }", []),
    Install = "apt-get install -q -y /first/*.deb",
    {0, _} = inside(Config, "~s || { sleep 5; ~s; }", [Install, Install]),
    ok = install_systemctl(Config),
    leave(Config).

copy_in(Packages, Root) ->
    [ok = file:make_dir(Root ++ Folder) || Folder <- ["/first", "/work"]],
    [{ok, _} = file:copy(File, Root ++ "/first/" ++ filename:basename(File)) || File <- Packages].

remove(Root) ->
    {0, _} = run("rm -rf --one-file-system '~ts'", [Root]),
    ok.

%% -- Tests -----------------------------------------------------------------------------------

%% The packages' own test.
autopkgtest(Config) ->
    copy_script("debian/tests/report", Config),
    {0, _} = inside(Config, "mkdir /work/tmp && AUTOPKGTEST_TMP=/work/tmp ERL_EPMD_PORT=~s sh /report",
                    [?config(epmd_port, Config)]).

copy_script(Path, Config) ->
    {ok, _} = file:copy(in_project(Path), ?config(root, Config) ++ "/" ++ filename:basename(Path)).

%% The report of a healthy node names it, and has no finding.
report(Config) ->
    {Node, OsPid} = start_node(Config, "baker", ""),
    {0, Says} = inside(Config, "dyntrace report ~b --load --seconds 3 --keep /work/kept -o /work/healthy.json",
                       [OsPid]),
    ?assertMatch({match, _}, re:run(Says, "^recorded: [1-9]\\d* events, lost 0", [multiline])),
    Report = json("/work/healthy.json", Config),
    ?assertEqual([], findings(Report)),
    {_, Otp} = lists:keyfind(?config(release, Config), 1, releases()),
    #{<<"recording">> := #{<<"nodes">> := [#{<<"node">> := <<"baker@", _/binary>>, <<"os_pid">> := OsPid,
                                             <<"otp">> := Otp}]}} = Report,
    #{<<"run_ns">> := Ran, <<"collections">> := Collections} = process(<<"baker">>, Report),
    ?assert(Ran > 0 andalso Collections > 0, {Ran, Collections}),
    %% babeltrace2 finds the plugin without the command.
    {0, Text} = inside(Config, "babeltrace2 /work/kept --component=sink.dyntrace.report", []),
    ?assertMatch({match, _}, re:run(Text, "^Findings: .*\n\nRecording: (?s:.*) baker@")),
    ?assertEqual([], left_in(OsPid, Config)),
    stop_node(Node).

%% The profile has the function in which the process was.
profile(Config) ->
    {Node, OsPid} = start_node(Config, "baker", ""),
    {0, _} = inside(Config, "dyntrace profile ~b --seconds 3 -o /work/healthy.folded", [OsPid]),
    {ok, Folded} = file:read_file(?config(root, Config) ++ "/work/healthy.folded"),
    ?assertMatch({match, _}, re:run(Folded, "^.*baker.*;lists:[a-z0-9_]+/\\d.* [1-9]\\d*$", [multiline])),
    stop_node(Node).

%% The busiest process is in the first row.
top(Config) ->
    {Node, OsPid} = start_node(Config, "baker", ""),
    {0, _} = inside(Config, "dyntrace load ~b", [OsPid]),
    {0, Says} = inside(Config, "dyntrace top ~b --seconds 3", [OsPid]),
    ?assertMatch({match, _}, re:run(Says, "PROCESS\n *[1-9]\\d+ +0 .*<\\d+\\.\\d+\\.\\d+> baker ")),
    {0, _} = inside(Config, "dyntrace unload ~b", [OsPid]),
    ?assertEqual([], left_in(OsPid, Config)),
    stop_node(Node).

%% Debian's Erlang finds the application.
application(Config) ->
    {Node, OsPid} = start_node(Config, "seller", "{ok, _} = application:ensure_all_started(dyntrace), "),
    #{<<"version">> := Version, <<"library">> := Library} = listed(OsPid, Config),
    ?assertEqual(test_shell:version(), binary_to_list(Version)),
    ?assertEqual("/usr/lib/erlang/lib/dyntrace-" ++ test_shell:version() ++ "/priv/dyntrace.so",
                 binary_to_list(Library)),
    stop_node(Node).

%% During an upgrade, a recording and a flight recorder continue, and the nodes are not harmed.
upgrade(Config) ->
    {Baker, OfBaker} = start_node(Config, "baker", ""),
    {Seller, OfSeller} = start_node(Config, "seller", "{ok, _} = application:ensure_all_started(dyntrace), "),
    {0, _} = inside(Config, "dyntrace load ~b", [OfBaker]),
    Recording = start(Config, "dyntrace record ~b -o /work/recording", [OfBaker]),
    Recorder = start(Config, "dyntrace record ~b --snapshot --when crash -o /work/snapshots --quiet", [OfSeller]),
    ok = test_command:await("2\\.\\d s  lost 0 events", Recording),
    ok = test_command:await("the latest events of seller@", Recorder),
    Began = erlang:system_time(nanosecond),
    {0, _} = inside(Config, "apt-get install -q -y /later/*.deb", []),
    Ended = erlang:system_time(nanosecond),
    ?assertEqual(["--system daemon-reload", "try-restart dyntrace-recorder@*.service"], asked_systemctl(Config)),
    ?assertMatch({0, <<"dyntrace " ?LATER "\n">>}, inside(Config, "dyntrace --version", [])),
    %% The new command gets a snapshot from the old recorder.
    {0, _} = inside(Config, "dyntrace snapshot -o /work/asked", []),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [#{<<"node">> := <<"seller@", _/binary>>}]}},
                 viewed("/work/asked", Config)),
    Recorded = test_command:interrupted(Recording),
    ?assertMatch({match, _}, re:run(Recorded, "^recorded: [1-9]\\d* events, lost 0", [multiline])),
    _ = test_command:interrupted(Recorder),
    Report = viewed("/work/recording", Config),
    ?assertEqual([], findings(Report)),
    #{<<"recording">> := #{<<"begin">> := First, <<"end">> := Last,
                           <<"nodes">> := [#{<<"node">> := <<"baker@", _/binary>>}]}} = Report,
    ?assert(First < Began andalso Last > Ended, {First, Began, Ended, Last}),
    ok = old_library_is_used(OfBaker, Config),
    ok = old_library_is_gone(OfSeller, Config),
    stop_node(Baker),
    stop_node(Seller),
    ?assertEqual([integer_to_list(test_command:os_pid(?config(host, Config)))], processes_in(Config)).

%% `dyntrace load` has copied the library, so the new command uses and unloads the old one.
old_library_is_used(OsPid, Config) ->
    Old = list_to_binary(test_shell:version()),
    #{<<"version">> := Old} = listed(OsPid, Config),
    {0, Says} = inside(Config, "dyntrace report ~b --seconds 2 -o -", [OsPid]),
    ?assertMatch({match, _}, re:run(Says, "^recorded: [1-9]\\d* events, lost 0", [multiline])),
    {0, _} = inside(Config, "dyntrace unload ~b", [OsPid]),
    ?assertEqual([], left_in(OsPid, Config)).

%% The upgrade has removed the application's folder, which has the version in its name. The application itself still
%% works; tracers can attach after a restart.
old_library_is_gone(OsPid, Config) ->
    {5, Says} = inside(Config, "dyntrace report ~b --seconds 2 -o -", [OsPid]),
    Failure = io_lib:format("dyntrace: the library of process ~b was removed from disk: /usr/lib/erlang/lib/dyntrace-~s"
                            "/priv/dyntrace.so\n  next: if it was upgraded, restart the node,",
                            [OsPid, test_shell:version()]),
    ?assertMatch({0, _}, binary:match(Says, iolist_to_binary(Failure))),
    {0, Nodes} = inside(Config, "dyntrace nodes", []),
    Row = io_lib:format("^~b .* seller@.* ~s \\(removed\\)", [OsPid, test_shell:version()]),
    {match, _} = re:run(Nodes, Row, [multiline]),
    ok.

%% Nothing of the packages is left, nor anything that they have made.
purge(Config) ->
    {0, Accounts} = inside(Config, "cat /etc/passwd /etc/group", []),
    {0, _} = inside(Config, "mkdir -p /var/lib/dyntrace/shop/20261128-001248-end && "
                            "cd /etc/systemd/system && mkdir -p multi-user.target.wants && "
                            "ln -s /usr/lib/systemd/system/dyntrace-recorder@.service "
                            "multi-user.target.wants/dyntrace-recorder@shop.service", []),
    {0, _} = inside(Config, "apt-get purge -q -y '*dyntrace*'", []),
    ?assertEqual(["stop dyntrace-recorder@*.service", "--system daemon-reload"], asked_systemctl(Config)),
    {0, _} = inside(Config, "rm -rf /first /later /work", []),
    ?assertEqual({0, <<>>}, inside(Config, "find / -xdev -name '*dyntrace*'", [])),
    ?assertMatch({1, _}, inside(Config, "dpkg-query -W '*dyntrace*'", [])),
    ?assertEqual({0, Accounts}, inside(Config, "cat /etc/passwd /etc/group", [])),
    ?assertEqual({0, <<>>}, inside(Config, "dpkg --audit", [])).

%% -- Nodes -----------------------------------------------------------------------------------

%% Starts a node in the chroot, which first evaluates First. It halts by itself if the test can't end it.
start_node(Config, Name, First) ->
    Program = First ++ "register(" ++ Name ++ ", self()), {ok, _} = timer:apply_after(600000, erlang, halt, []), "
              "Numbers = [N * 7919 rem 10007 || N <- lists:seq(1, 3000)], "
              "io:put_chars(\"started\\n\"), "
              "Loop = fun Loop() -> lists:sort(fun erlang:'<'/2, Numbers), timer:sleep(20), Loop() end, Loop().",
    Node = start(Config, "env ERL_EPMD_PORT=~s erl -start_epmd false -sname ~s -noinput -eval ~ts",
                 [?config(epmd_port, Config), Name, test_command:quoted(Program)]),
    ok = test_command:await("started", Node),
    {Node, test_command:os_pid(Node)}.

%% A node that was harmed does not end in order.
stop_node(Node) ->
    ok = test_command:signal("TERM", Node),
    {0, _} = test_command:finish(Node),
    ok.

%% A row of `dyntrace nodes --json`.
listed(OsPid, Config) ->
    {0, _} = inside(Config, "dyntrace nodes --json > /work/nodes.json", []),
    #{<<"nodes">> := Rows} = json("/work/nodes.json", Config),
    [Row] = [Row || #{<<"pid">> := Pid} = Row <- Rows, Pid =:= OsPid],
    Row.

%% What `dyntrace load` has left in the node or in the temporary folder. A library that was unloaded stays mapped.
left_in(OsPid, Config) ->
    #{<<"version">> := Version} = listed(OsPid, Config),
    [Version || Version =/= null] ++ filelib:wildcard(?config(root, Config) ++ "/tmp/*dyntrace*").

%% -- Reports ---------------------------------------------------------------------------------

viewed(Recording, Config) ->
    {0, _} = inside(Config, "dyntrace view ~s -o ~s.json", [Recording, Recording]),
    json(Recording ++ ".json", Config).

json(Path, Config) ->
    test_viewer:decode(?config(root, Config) ++ Path).

findings(#{<<"findings">> := Findings}) ->
    [Finding || #{<<"rule">> := Rule} = Finding <- Findings, not lists:member(Rule, ?OF_THE_MACHINE)].

process(Name, #{<<"processes">> := Processes}) ->
    [Process] = [Process || #{<<"process">> := #{<<"name">> := Found}} = Process <- Processes, Found =:= Name],
    Process.

%% -- systemctl -------------------------------------------------------------------------------

%% Makes the packages' scripts believe that systemd runs.
install_systemctl(Config) ->
    Root = ?config(root, Config),
    ok = filelib:ensure_path(Root ++ "/run/systemd/system"),
    ok = file:write_file(Root ++ "/usr/bin/systemctl", "#!/bin/sh\necho \"$*\" >>/systemctl.log\n"),
    ok = file:change_mode(Root ++ "/usr/bin/systemctl", 8#755).

%% What was asked for since the last call.
asked_systemctl(Config) ->
    Log = ?config(root, Config) ++ "/systemctl.log",
    {ok, Lines} = file:read_file(Log),
    ok = file:delete(Log),
    string:lexemes(binary_to_list(Lines), "\n").

%% -- Commands --------------------------------------------------------------------------------

%% Runs a shell command in the chroot.
inside(Config, Format, Args) ->
    run("~ts", [in_chroot(Config, Format, Args)]).

%% Starts a program there. It has the process of the test_command, so that one can send signals to it.
start(Config, Format, Args) ->
    test_command:launch(lists:flatten(in_chroot(Config, "exec " ++ Format, Args))).

in_chroot(Config, Format, Args) ->
    io_lib:format("nsenter --target ~b --mount --root --wdns=/ env HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "
                  "DEBIAN_FRONTEND=noninteractive sh -c ~ts",
                  [test_command:os_pid(?config(host, Config)), test_command:quoted(io_lib:format(Format, Args))]).

%% Starts a process in the chroot, whose mounts all commands of a test share.
enter(Config) ->
    Host = test_command:launch(lists:flatten(io_lib:format("'~ts' ~s in '~ts' sh -c 'echo entered; exec cat'",
                                                           [in_project("tools/debian"), ?config(release, Config),
                                                            ?config(root, Config)]))),
    ok = test_command:await("entered", Host),
    [{host, Host} | Config].

leave(Config) ->
    Host = ?config(host, Config),
    ok = test_command:signal("TERM", Host),
    _ = test_command:finish(Host),
    proplists:delete(host, Config).

%% The processes whose root folder is the chroot.
processes_in(Config) ->
    Root = ?config(root, Config),
    [filename:basename(filename:dirname(Link)) || Link <- filelib:wildcard("/proc/[0-9]*/root"),
                                                  file:read_link(Link) =:= {ok, Root}].

in_project(Path) ->
    filename:join(test_shell:project(), Path).

%% Runs a tool with a copy of the project of its own, in a chroot that other tests use.
tool(Format, Args) ->
    run("DYNTRACE_PART=packages '~ts' " ++ Format, [in_project("tools/debian") | Args]).

%% Prints what the command says if it fails.
run(Format, Args) ->
    case test_shell:run(Format, Args) of
        {0, _} = Done -> Done;
        {Status, Says} -> ct:pal("~b~n~ts", [Status, Says]), {Status, Says}
    end.
