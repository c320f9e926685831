%% Hosts on this machine: each has a network, a host name, a user and a session daemon of its own. A collector is
%% connected with all of them by a bridge.
%%
%%     Cluster = test_cluster:start(["anna", "bert"], Folder),
%%     Node = test_cluster:node("anna", Cluster),
%%     Command = test_command:start(test_cluster:on("anna", Cluster), ["record", ...]),
%%     test_cluster:stop(Cluster).
%%
%% A host is a process that keeps its namespaces; they go away with it. As nothing is mounted or named, nothing is left.
-module(test_cluster).

-export([missing/0, start/2, stop/1, hosts/1, on/2, collector/1, address/2, node/2, start_node/2, os_pid/2, kill_node/2,
         call/3, link/3, daemon/2, set_clock/2, clock_offset/1]).

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

%% Their daemons run; nodes do not yet. A process of its own keeps them: a suite starts and ends in different ones.
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

%% LTTng's sockets have short paths only.
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

%% As root, in a host's network.
ip(Host, Args) -> ip(Host, Args, []).
ip(#host{os_pid = OsPid}, Format, Args) ->
    {0, _} = test_shell:run("nsenter --target=~b --net ip " ++ Format, [OsPid | Args]),
    ok.

%% Ends all that runs there. The folders of users go too.
stop(Cluster) ->
    Hosts = [Host || Host = #host{daemon = Daemon} <- maps:values(Cluster), Daemon =/= undefined],
    [stop_node(Node) || #host{node = Node} <- Hosts, Node =/= undefined],
    [test_lttng:stop_daemon(Daemon) || #host{daemon = Daemon} <- Hosts],
    [Keeper ! stop || #host{name = ?COLLECTOR, keeper = Keeper} <- maps:values(Cluster)],
    [_ = file:del_dir_r(Home) || #host{home = Home} <- Hosts],
    ok.

%% A test may have killed it.
stop_node(Node) ->
    try test_node:stop(Node)
    catch _:_ -> gone
    end.

hosts(Cluster) ->
    lists:sort(maps:keys(Cluster)) -- [?COLLECTOR].

%% The prefix of commands on a host, of its user; on the collector, of root.
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

%% A distributed node of the host's user, on which the application runs. All nodes listen on the same port, each on its
%% own host, so there is no epmd.
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

%% Its node ends as if the machine had taken it.
kill_node(Name, Cluster) ->
    OsPid = os_pid(Name, Cluster),
    {0, _} = test_shell:run("kill -KILL ~s", [OsPid]),
    Cluster#{Name := (maps:get(Name, Cluster))#host{node = undefined}}.

%% The host's network: up or down.
link(Name, State, Cluster) ->
    ip(maps:get(?COLLECTOR, Cluster), "link set ~s ~s", [Name, State]).

%% -- Clocks of recordings ------------------------------------------------------------------------

%% When the clock of a recording began, in ns; no_offset: the description is not of CTF 1.8.
clock_offset(Folder) ->
    case described(Folder) of
        {_, Metadata, {At, Size}} -> binary_to_integer(binary:part(Metadata, At, Size));
        no_offset -> no_offset
    end.

%% By a text of the same length.
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
