%% Attacks by an unprivileged user on the command run by root: the programs of test/support/attacks. Each case shows
%% that root does nothing that this user could not do, is not kept waiting, and gets no false answer.
-module(attacks_SUITE).

-include("../support/suite.hrl").

%% The command must end within this many seconds, regardless of what a process does.
-define(ENDS_S, 12).
-define(AS_NOBODY, "setpriv --reuid=nobody --regid=nogroup --clear-groups").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [set_user_id, socket_of_another_user, temporary_files, memory_that_hangs, slow_epmds, epmd_port_that_is_no_number,
     blocked_dirty_io, no_descriptors].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    _ = test_require:tool(test_require:first([NotRoot, fun test_lttng:missing/0]), Config),
    %% The user of the attacks can't read the folders of the test.
    Folder = string:trim(os:cmd("mktemp -d /tmp/dyntrace-attacks-XXXXXX")),
    {0, _} = test_shell:run("cp '~ts'/*.py '~ts' && chmod -R a+rX '~ts' && mkdir -m 777 '~ts/home'",
                            [filename:join(test_shell:project(), "test/support/attacks"), Folder, Folder, Folder]),
    [{attacks, Folder} | Config].

end_per_suite(Config) ->
    {0, _} = test_shell:run("rm -rf '~ts'", [?config(attacks, Config)]),
    ok.

%% -- Root's rights -------------------------------------------------------------------------------

%% A set-user-ID program has root's rights, but its user's arguments, environment and descriptors. The command would
%% authenticate to that user's socket with root's cookie.
set_user_id(Config) ->
    Attack = attack(Config, ?AS_NOBODY, "set_user_id.py", [in_home(Config, "cookie"), "/usr/bin/passwd"]),
    OsPid = said(Attack),
    {0, Nodes} = run(["nodes"]),
    ?assertEqual(nomatch, re:run(Nodes, ["^", OsPid, " "], [multiline])),
    [{5, _} = run([Command, OsPid]) || Command <- ["load", "unload"]],
    ?assertEqual([], test_shell:said(Attack)),
    stop(Attack).

%% The process looks like root's in every way, but its socket was made by another user, who may also accept on it.
socket_of_another_user(Config) ->
    Attack = attack(Config, "", "inherited_socket.py", []),
    OsPid = said(Attack),
    %% The command would otherwise connect to it.
    {0, Nodes} = run(["nodes"]),
    ?assertMatch({match, _}, re:run(Nodes, ["^", OsPid, " +root .*not loaded"], [multiline])),
    {5, Text} = run(["load", OsPid]),
    ?assertMatch({match, _}, re:run(Text, "has no distribution")),
    ?assertEqual([], test_shell:said(Attack)),
    stop(Attack).

%% Another user could replace the temporary files of root's command and of the programs that it runs.
temporary_files(Config) ->
    {3, Text} = test_command:run(["env TMPDIR=", in_home(Config, "")], ["nodes"]),
    ?assertMatch({match, _}, re:run(Text, "next: `unset TMPDIR`")).

%% -- Waiting -------------------------------------------------------------------------------------

%% The memory of the process is on a FUSE file system whose server does not answer. A read of /proc/PID/mem would not
%% return, not even on SIGKILL.
memory_that_hangs(Config) ->
    case test_shell:run("grep -q 'nodev.fuse$' /proc/filesystems && unshare --user true", []) of
        {0, _} -> memory_that_hangs_by_fuse(Config);
        {_, _} -> {skip, "this kernel has no FUSE, or no namespaces of users"}
    end.

memory_that_hangs_by_fuse(Config) ->
    Library = in_home(Config, "dyntrace.so"),
    Own = filename:join([filename:dirname(filename:dirname(code:which(dyntrace))), "priv", "dyntrace.so"]),
    {0, _} = test_shell:run("cp -L '~ts' '~ts' && chmod 644 '~ts'", [Own, Library, Library]),
    {0, Offset} = test_shell:run("PYTHONPATH='~ts' python3 -c 'from dyntrace_command.host.elf import *; "
                                 "print(read_status_address(open(\"~ts\", \"rb\").read()), end=\"\")'",
                                 [test_command:package(), Library]),
    %% A device that this user may open, in a mount namespace that ends with the attack.
    Mount = "mount -t tmpfs none /mnt && mkdir -m 777 /mnt/folder && mknod -m 666 /mnt/fuse c 10 229 && "
        "mount --bind /mnt/fuse /dev/fuse && exec \"$@\"",
    Prefix = ["unshare --mount sh -c ", test_command:quoted(Mount), " sh ", ?AS_NOBODY,
              " unshare --user --map-root-user --mount"],
    Attack = attack(Config, Prefix, "hanging_fuse.py", ["/mnt/folder", Library, binary_to_list(Offset)]),
    OsPid = said(Attack),
    Node = test_node:start(),
    Own1 = test_node:os_pid(Node),
    {0, Nodes} = run(["nodes"]),
    ?assertMatch({match, _}, re:run(Nodes, ["^", OsPid, " +nobody .*\\?"], [multiline])),
    ?assertMatch({match, _}, re:run(Nodes, ["^", Own1, " +root .*not loaded"], [multiline])),
    {5, Other} = run(["report", Own1]),
    ?assertMatch({match, _}, re:run(Other, "has not loaded dyntrace's library")),
    %% None of the command's children is left, not even one that the kernel does not let end.
    ?assertEqual({1, <<>>}, test_shell:run("ps -eo ppid=,stat=,args= | grep '^ *1 *D.*dyntrace'", [])),
    test_node:stop(Node),
    stop(Attack).

%% All epmds together share one deadline.
slow_epmds(Config) ->
    Attack = attack(Config, ?AS_NOBODY, "slow_epmds.py", ["30"]),
    "ready" = said(Attack),
    {0, Nodes} = run(["nodes"]),
    {match, Rows} = re:run(Nodes, "^\\d+ +nobody .*", [multiline, global, {capture, first, binary}]),
    ?assertEqual(30, length(Rows)),
    %% Unknown data is reported as unknown.
    ?assertMatch({match, _}, re:run(Nodes, "^\\? of .*: the epmd at port \\d+ does not answer$", [multiline])),
    stop(Attack).

%% -- Reported causes -----------------------------------------------------------------------------

epmd_port_that_is_no_number(_) ->
    Node = test_node:start(#{paths => [], env => [{"ERL_EPMD_PORT", "x"}]}),
    _ = test_node:call(Node, fun erlang:node/0),
    OsPid = test_node:os_pid(Node),
    [begin
         {Status, Text} = run([Command, OsPid]),
         ?assert(Status > 0),
         ?assertMatch({match, _}, re:run(Text, "^dyntrace: process .*\n  next: ")),
         ?assertEqual(nomatch, re:run(Text, "Traceback"))
     end || Command <- ["load", "unload", "report"]],
    test_node:stop(Node).

%% A node whose dirty I/O schedulers all wait for a pipe can't read files, and so can't load code.
blocked_dirty_io(Config) ->
    Pipe = in_home(Config, "pipe"),
    {0, _} = test_shell:run("mkfifo '~ts'", [Pipe]),
    Epmd = test_node:start_epmd(),
    Node = test_node:named("attacks_blocked", Epmd, ["+SDio", "2"]),
    ok = test_node:call(Node, fun() ->
                                      [spawn(file, open, [Pipe, [read, raw]]) || _ <- lists:seq(1, 4)],
                                      ok
                              end),
    test_wait:until("jobs wait for a dirty I/O scheduler", true,
                    fun() ->
                            test_node:call(Node, fun() -> lists:last(statistics(run_queue_lengths_all)) > 0 end)
                    end),
    {1, Text} = run(["load", test_node:os_pid(Node)], 60),
    ?assertMatch({match, _}, re:run(Text, "all of its 2 dirty I/O schedulers are blocked in the kernel \\([a-z_]+\\)")),
    {0, _} = test_shell:run("for n in 1 2 3 4; do timeout 5 sh -c ': > \"~ts\"'; done; true", [Pipe]),
    test_node:stop(Node),
    test_node:stop_epmd(Epmd).

%% A node that can't open any file can't open the tracer's buffers.
no_descriptors(Config) ->
    Daemon = test_lttng:start_daemon(),
    Node = test_node:start(),
    ok = test_node:call(Node, fun() -> test_node:started([]) end),
    OsPid = test_node:os_pid(Node),
    {0, _} = test_shell:run("prlimit --pid ~ts --nofile=$(ls /proc/~ts/fd | wc -l):", [OsPid, OsPid]),
    {5, Text} = run(["record", OsPid, "--seconds", "1", "-o", filename:join(?config(priv_dir, Config), "none")], 60),
    ?assertMatch({match, _}, re:run(Text, ["process ", OsPid, " .* has no free file descriptor"])),
    test_node:stop(Node),
    test_lttng:stop_daemon(Daemon).

%% -- Helpers -------------------------------------------------------------------------------------

%% Runs the command, which must end in time.
run(Args) ->
    run(Args, ?ENDS_S).

run(Args, Seconds) ->
    {Status, Output} = test_command:run(io_lib:format("timeout --kill-after=1 ~b", [Seconds]), Args),
    Status =/= 124 andalso Status =/= 137 orelse error({not_ended, Args, Output}),
    {Status, Output}.

%% Starts a program of test/support/attacks. It ends when its standard input is closed.
attack(Config, Prefix, Program, Args) ->
    Line = lists:flatten(["exec ", Prefix, " /usr/bin/python3 ", filename:join(?config(attacks, Config), Program),
                          [[" ", test_command:quoted(Arg)] || Arg <- Args]]),
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Line]}, {line, 200}, exit_status, stderr_to_stdout]).

said(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> Line;
        {Port, {exit_status, Status}} -> error({attack_ended, Status, test_shell:said(Port)})
    after 60000 -> error(attack_says_nothing)
    end.

%% The program's processes end with it.
stop(Port) ->
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    true = port_close(Port),
    test_wait:until("the attack has ended", {1, <<>>},
                    fun() -> test_shell:run("kill -0 ~b 2>/dev/null", [OsPid]) end).

in_home(Config, Name) ->
    filename:join([?config(attacks, Config), "home", Name]).
