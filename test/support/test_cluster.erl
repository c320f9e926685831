%% Hosts on this machine, each with its own network, host name, user and session daemon. A bridge connects a collector
%% with all of them.
%%
%%     Cluster = test_cluster:start(["anna", "bert"], Folder),
%%     Node = test_cluster:node("anna", Cluster),
%%     Command = test_command:start(test_cluster:on("anna", Cluster), ["record", ...]),
%%     test_cluster:stop(Cluster).
%%
%% A host is a process that holds its namespaces, which end with it. Nothing is mounted or named, so nothing is left.
-module(test_cluster).

-export([missing/0, start/2, stop/1, hosts/1, on/2, collector/1, address/2, node/2, start_node/2, os_pid/2, call/3,
         link/3, daemon/2, set_clock/2, clock_offset/1]).

-define(COLLECTOR, "collector").
-define(FIRST_UID, 47100).
-define(EPMD_PORT, "4999").

-record(host, {name, address, keeper, os_pid, uid, home, daemon, node}).

%% What the machine lacks, or false.
missing() ->
    Tools = [Tool || Tool <- ["unshare", "nsenter", "setpriv", "ip", "ss", "lttng-relayd"],
                     os:find_executable(Tool) =:= false],
    case {os:cmd("id -u"), Tools, test_require:first([fun test_lttng:missing/0, fun test_viewer:missing/0])} of
        {"0\n", [], false} -> no_namespaces();
        {"0\n", [], Missing} -> Missing;
        {"0\n", _, _} -> lists:flatten(lists:join(", ", Tools)) ++ " not installed";
        _ -> "not root"
    end.

no_namespaces() ->
    case test_shell:run("unshare --net --uts sh -c 'hostname tried && ip link add br0 type bridge && "
                        "ip link add v0 type veth peer name v1 && ip link set v0 master br0'", []) of
        {0, _} -> false;
        {_, Output} -> "no namespaces with bridges: " ++ binary_to_list(Output)
    end.

%% Starts the hosts and their daemons, but no nodes. A separate process keeps them, because a suite's init and end run
%% in different processes.
start(Names, Folder) ->
    Self = self(),
    {Keeper, Ref} = spawn_monitor(fun() -> Self ! {self(), build(Names, Folder)}, receive stop -> ok end end),
    receive
        {Keeper, Cluster} -> demonitor(Ref, [flush]), Cluster;
        {'DOWN', Ref, process, Keeper, Reason} -> error({no_cluster, Reason})
    end.

build(Names, Folder) ->
    Collector = in_namespaces(#host{name = ?COLLECTOR, address = address(1), uid = 0, home = Folder}),
    ok = ip(Collector, "link add br0 type bridge"),
    ok = ip(Collector, "addr add ~s/24 dev br0", [Collector#host.address]),
    ok = ip(Collector, "link set br0 up"),
    Hosts = [host(Number, Name, Collector) || {Number, Name} <- lists:enumerate(Names)],
    maps:from_list([{Host#host.name, Host} || Host <- [Collector | Hosts]]).

address(Number) ->
    "10.77.0." ++ integer_to_list(Number).

%% The paths of LTTng's sockets must be short.
host(Number, Name, Collector) ->
    Uid = ?FIRST_UID + Number,
    Home = filename:join("/tmp", lists:flatten(io_lib:format("dyntrace-host-~s-~b", [os:getpid(), Number]))),
    {0, _} = test_shell:run("mkdir -m 700 '~ts' && chown ~b:~b '~ts'", [Home, Uid, Uid, Home]),
    Host = in_namespaces(#host{name = Name, address = address(Number + 1), uid = Uid, home = Home}),
    ok = ip(Collector, "link add ~s type veth peer name eth0 netns ~b", [Name, Host#host.os_pid]),
    ok = ip(Collector, "link set ~s master br0 up", [Name]),
    ok = ip(Host, "addr add ~s/24 dev eth0", [Host#host.address]),
    ok = ip(Host, "link set eth0 up"),
    Host#host{daemon = test_lttng:start_daemon(prefix(Host))}.

in_namespaces(Host = #host{name = Name}) ->
    Script = "hostname " ++ Name ++ " && ip link set lo up && echo up && read end",
    Port = open_port({spawn_executable, os:find_executable("unshare")},
                     [{args, ["--net", "--uts", "sh", "-c", Script]}, binary, exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    receive {Port, {data, <<"up\n">>}} -> Host#host{keeper = self(), os_pid = OsPid} end.

%% Runs `ip' as root in a host's network.
ip(Host, Args) -> ip(Host, Args, []).
ip(#host{os_pid = OsPid}, Format, Args) ->
    {0, _} = test_shell:run("nsenter --target=~b --net ip " ++ Format, [OsPid | Args]),
    ok.

%% Ends all programs on the hosts, and removes the users' folders.
stop(Cluster) ->
    Hosts = [Host || Host = #host{daemon = Daemon} <- maps:values(Cluster), Daemon =/= undefined],
    [stop_node(Node) || #host{node = Node} <- Hosts, Node =/= undefined],
    [test_lttng:stop_daemon(Daemon) || #host{daemon = Daemon} <- Hosts],
    [Keeper ! stop || #host{name = ?COLLECTOR, keeper = Keeper} <- maps:values(Cluster)],
    [_ = file:del_dir_r(Home) || #host{home = Home} <- Hosts],
    ok.

%% A test may already have killed the node.
stop_node(Node) ->
    try test_node:stop(Node)
    catch _:_ -> gone
    end.

hosts(Cluster) ->
    lists:sort(maps:keys(Cluster)) -- [?COLLECTOR].

%% The prefix of commands on a host, run by its user; on the collector, by root.
on(Name, Cluster) ->
    prefix(maps:get(Name, Cluster)).

prefix(Host) ->
    lists:flatten(lists:join(" ", command(Host))).

command(#host{os_pid = OsPid, uid = 0}) ->
    ["nsenter", "--target=" ++ integer_to_list(OsPid), "--net", "--uts"];
command(Host = #host{uid = Uid, home = Home}) ->
    Id = integer_to_list(Uid),
    command(Host#host{uid = 0}) ++ ["setpriv", "--reuid=" ++ Id, "--regid=" ++ Id, "--clear-groups",
                                    "env", "-C", Home, "HOME=" ++ Home].

collector(Cluster) ->
    on(?COLLECTOR, Cluster).

address(Name, Cluster) ->
    (maps:get(Name, Cluster))#host.address.

daemon(Name, Cluster) ->
    (maps:get(Name, Cluster))#host.daemon.

%% A distributed node of the host's user that runs the application. All nodes listen on the same port, each on a
%% different host, so they need no epmd.
start_node(Name, Cluster) ->
    Host = maps:get(Name, Cluster),
    [Program | Args] = command(Host),
    Node = test_node:start(#{exec => {os:find_executable(Program), Args ++ [os:find_executable("erl")]},
                             args => ["-name", Name ++ "@" ++ Host#host.address, "-start_epmd", "false",
                                      "-erl_epmd_port", ?EPMD_PORT, "-setcookie", "dyntrace"]}),
    ok = test_node:call(Node, fun() ->
                                      _ = logger:remove_handler(default),
                                      {ok, _} = application:ensure_all_started(dyntrace),
                                      ok
                              end),
    Cluster#{Name := Host#host{node = Node}}.

node(Name, Cluster) ->
    (maps:get(Name, Cluster))#host.node.

os_pid(Name, Cluster) ->
    test_node:os_pid(node(Name, Cluster)).

call(Name, Cluster, Fun) ->
    test_node:call(node(Name, Cluster), Fun).

%% Switches the host's network up or down.
link(Name, State, Cluster) ->
    ip(maps:get(?COLLECTOR, Cluster), "link set ~s ~s", [Name, State]).

%% -- Clocks of recordings ------------------------------------------------------------------------

%% The start of a recording's clock, in ns; no_offset if the description is not CTF 1.8.
clock_offset(Folder) ->
    case described(Folder) of
        {_, Metadata, {At, Size}} -> binary_to_integer(binary:part(Metadata, At, Size));
        no_offset -> no_offset
    end.

%% The new text must have the same length.
set_clock(Folder, Ns) ->
    {File, Metadata, {At, Size}} = described(Folder),
    <<Before:At/binary, _:Size/binary, After/binary>> = Metadata,
    Text = integer_to_binary(Ns),
    Size = byte_size(Text),
    ok = file:write_file(File, [Before, Text, After]).

described(Folder) ->
    [File] = filelib:wildcard(filename:join(Folder, "**/metadata")),
    {ok, Metadata} = file:read_file(File),
    case re:run(Metadata, "offset = (\\d+);", [{capture, all_but_first}]) of
        {match, [Where]} -> {File, Metadata, Where};
        nomatch -> no_offset
    end.
