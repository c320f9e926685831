%% An isolated place for a packaged service: its own network, host name and mounts. Empty folders cover the package's
%% folders, so the service runs with its defaults, as the user of its package, and does not touch the machine's own
%% data.
%%
%%     Place = place:start("rabbit", "rabbitmq", ["/var/lib/rabbitmq", "/var/log/rabbitmq"]),
%%     {0, _} = test_shell:run("~s rabbitmqctl status", [place:as_user(Place)]),
%%     place:stop(Place).
%%
%% Programs in the place end with it, and with this VM in any case: the keeper, a shell, reads from the VM until then.
-module(place).

-export([missing/1, start/3, launch/3, write/3, stop/1, as_user/1, as_root/1, is_up/2, eval/3,
         eval_at/3]).

-record(place, {keeper, os_pid, user, home}).

-type place() :: #place{}.
-export_type([place/0]).

%% Kills all processes in the same network namespace, by pid. The shell's own children have ended by then.
-define(END,
        "left=yes; "
        "while [ $left ]; do "
        "    left=; "
        "    for process in /proc/[0-9]*; do "
        "        pid=${process#/proc/}; "
        "        [ $pid != $$ ] && [ $process/ns/net -ef /proc/$$/ns/net ] && kill -KILL $pid && left=yes; "
        "    done; "
        "done 2>/dev/null").

%% The services' systemd units require epmd. A node that has to start its own can't register if that comes up too late.
-define(EPMD, "setpriv --reuid=epmd --regid=epmd --clear-groups epmd -daemon && "
              "timeout 30 sh -c 'until epmd -names; do sleep 0.05; done' >/dev/null 2>&1").

%% The environment of services that the system starts.
-define(ENVIRONMENT, "PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8").

%% What the machine lacks for these programs, or false.
missing(Programs) ->
    Tools = [Tool || Tool <- ["unshare", "nsenter", "setpriv", "ip", "erl_call" | Programs],
                     os:find_executable(Tool) =:= false],
    case {os:cmd("id -u"), Tools, test_viewer:missing()} of
        {"0\n", [], false} -> no_namespaces();
        {"0\n", [], Missing} -> Missing;
        {"0\n", _, _} -> lists:flatten(lists:join(", ", Tools)) ++ " not installed";
        _ -> "not root"
    end.

no_namespaces() ->
    case test_shell:run("unshare --net --uts --mount sh -c 'hostname tried && mount -t tmpfs tmpfs /mnt'", []) of
        {0, _} -> false;
        {_, Output} -> "no namespaces: " ++ binary_to_list(Output)
    end.

%% The first folder is the user's home. A separate process keeps the place, because a suite's init and end run in
%% different processes.
-spec start(Host :: string(), User :: string(), Folders :: [file:filename()]) -> place().
start(Host, User, Folders) ->
    Self = self(),
    {Keeper, Ref} = spawn_monitor(fun() -> keep(script(Host, User, Folders), Self) end),
    receive
        {Keeper, OsPid} ->
            demonitor(Ref, [flush]),
            #place{keeper = Keeper, os_pid = OsPid, user = User, home = hd(Folders)};
        {'DOWN', Ref, process, Keeper, Reason} ->
            error({no_place, Reason})
    end.

script(Host, User, Folders) ->
    Mounts = [["mount -t tmpfs -o mode=755 tmpfs ", Folder, " && chown ", User, ": ", Folder,
               " && "] || Folder <- Folders],
    lists:flatten(["hostname ", Host, " && ip link set lo up && ", Mounts, ?EPMD " && echo up && read -r line; "
                   ?END]).

keep(Script, Owner) ->
    Port = open_port({spawn_executable, os:find_executable("unshare")},
                     [{args, ["--net", "--uts", "--mount", "--propagation", "private", "sh", "-c", Script]}, binary,
                      exit_status, stderr_to_stdout]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    receive
        {Port, {data, <<"up\n">>}} -> Owner ! {self(), OsPid};
        {Port, Other} -> error(Other)
    end,
    receive stop -> true = port_command(Port, "stop\n") end,
    receive {Port, {exit_status, _}} -> ok end.

%% Ends all programs in the place.
stop(#place{keeper = Keeper}) ->
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, normal} -> ok end.

%% Runs a program in the place, as its user, and does not wait for it. Its output and exit status are written next to
%% its logs.
-spec launch(place(), Command :: [string()], Logs :: file:filename()) -> ok.
launch(Place, Command, Logs) ->
    Quoted = lists:join(" ", [test_command:quoted(Word) || Word <- Command]),
    Line = io_lib:format("exec > ~s/launched 2>&1; ~ts; echo ended with $?", [Logs, Quoted]),
    %% Otherwise the server, and a tool that starts at the same time, both create the cookie, and one of them fails.
    {0, _} = test_shell:run("~s sh -c 'test -e .erlang.cookie || (umask 277 && echo secret > .erlang.cookie)'",
                            [as_user(Place)]),
    {0, _} = test_shell:run("~s setsid sh -c ~ts >/dev/null 2>&1 &", [as_user(Place), test_command:quoted(Line)]),
    ok.

%% Writes a file in the home folder.
-spec write(place(), file:filename(), iodata()) -> ok.
write(Place, Name, Text) ->
    {0, _} = test_shell:run("printf %s ~ts | ~s tee ~s >/dev/null",
                            [test_command:quoted(lists:flatten(Text)), as_user(Place), Name]),
    ok.

%% The prefix of commands in the place, run by its user in the home folder.
as_user(Place = #place{user = User, home = Home}) ->
    lists:flatten([as_root(Place), " setpriv --reuid=", User, " --regid=", User, " --init-groups "
                   "env -i -C ", Home, " HOME=", Home, " ", ?ENVIRONMENT]).

as_root(#place{os_pid = OsPid}) ->
    lists:flatten(["nsenter --target=", integer_to_list(OsPid), " --net --uts --mount --root"]).

%% The results of expressions on a node in the place, as text. The node's own tools need seconds for that, or lack it.
eval(Place, Node, Expressions) ->
    eval_at(Place, "-sname " ++ Node, Expressions).

%% The same on a node with these options of erl_call.
eval_at(Place, Options, Expressions) ->
    {0, Output} = test_shell:run("echo ~ts | ~s erl_call ~s -e",
                                 [test_command:quoted(Expressions), as_user(Place), Options]),
    {match, [Result]} = re:run(Output, "^{ok, (.*)}$", [{capture, all_but_first, list}, dotall]),
    Result.

%% Whether the node answers.
is_up(Place, Options) ->
    {Status, _} = test_shell:run("~s erl_call ~s -a 'erlang node'", [as_user(Place), Options]),
    Status =:= 0.
