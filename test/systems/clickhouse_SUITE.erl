%% Two servers of ClickHouse, a cluster: the definitions and queries of docs/rows.md and docs/fleet.md.
-module(clickhouse_SUITE).

-include("../support/suite.hrl").

-define(SERVER, "/usr/sbin/clickhouse-server").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [cluster].

init_per_suite(Config) ->
    test_require:tool(test_require:first([fun test_viewer:missing/0, fun missing/0]), Config).

missing() ->
    not filelib:is_file(?SERVER) andalso "not installed (Debian 12): clickhouse-server, clickhouse-client".

end_per_suite(_) -> ok.

%% Rows that are loaded by one server are on both; either one finds what test_fleet knows.
cluster(Config) ->
    {Rows, [Count, Nodes, Since]} = test_fleet:make(Config),
    {ok, Lines} = file:read_file(Rows),
    Ports = [One, Other] = free_ports(2),
    Servers = [start(Port, Ports, Config) || Port <- Ports],
    try
        [test_wait:until("the server answers", {0, <<"1\n">>}, fun() -> query("SELECT 1", Port) end) || Port <- Ports],
        [{0, <<>>} = query(test_fleet:documented(Doc, Regex), Port)
         || Port <- Ports, {Doc, Regex} <- [{"rows.md", "CREATE TABLE rows.*?;"},
                                            {"fleet.md", "CREATE TABLE fleet.*?;"}]],
        {0, <<>>} = client(One, ["INSERT INTO fleet FORMAT JSONEachRow"], [" < '", Rows, "'"]),
        All = integer_to_binary(length(binary:split(Lines, <<"\n">>, [global, trim]))),
        test_wait:until("the other server has all rows", {0, <<All/binary, "\n">>},
                        fun() -> query("SELECT count() FROM fleet", Other) end),
        Known = iolist_to_binary(["\t", integer_to_list(Count), "\t['", lists:join("','", Nodes), "']\t", Since, "\n"]),
        [begin
             ?assertEqual({0, <<"crashes", Known/binary>>}, query(documented("SELECT rule, uniq.*?;"), Port)),
             ?assertEqual({0, <<"crash", Known/binary>>}, query(documented("SELECT cause, count\\(\\) .*?;"), Port)),
             ?assertNotEqual({0, <<"0\n">>}, query("SELECT count() FROM rows", Port))
         end || Port <- Ports]
    after
        [{0, <<>>} = test_shell:run("kill ~b", [OsPid])
         || Server <- Servers, {os_pid, OsPid} <- [erlang:port_info(Server, os_pid)]]
    end.

documented(Regex) ->
    test_fleet:documented("fleet.md", Regex).

%% -- Servers -------------------------------------------------------------------------------------------------

free_ports(Count) ->
    Sockets = [begin {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]), Socket end
               || _ <- lists:seq(1, Count)],
    [begin
         {ok, Port} = inet:port(Socket),
         ok = gen_tcp:close(Socket),
         Port
     end || Socket <- Sockets].

start(Port, Ports, Config) ->
    File = filename:join(?config(priv_dir, Config), lists:concat(["server-", Port, ".xml"])),
    Data = filename:rootname(File) ++ "/",
    ok = filelib:ensure_path(Data ++ "tmp"),
    Shards = [["<shard><replica><host>127.0.0.1</host><port>", integer_to_list(Of), "</port></replica></shard>"]
              || Of <- Ports],
    ok = file:write_file(File, ["<yandex><logger><level>warning</level><console>1</console></logger><tcp_port>",
                                integer_to_list(Port), "</tcp_port><listen_host>127.0.0.1</listen_host>"
                                "<mark_cache_size>5000000</mark_cache_size><path>", Data, "</path><tmp_path>", Data,
                                "tmp/</tmp_path><users_config>/etc/clickhouse-server/users.xml</users_config>"
                                "<default_profile>default</default_profile>"
                                "<default_database>default</default_database>"
                                "<remote_servers><fleet>", Shards, "</fleet></remote_servers></yandex>"]),
    open_port({spawn_executable, ?SERVER},
              [{args, ["--config-file=" ++ File]}, stderr_to_stdout, binary]).

%% {Exit status, Output}
query(Sql, Port) ->
    client(Port, [string:trim(Sql, trailing, ";")], "").

client(Port, Sql, Input) ->
    test_shell:run("clickhouse-client --host 127.0.0.1 --port ~b --query ~ts~ts",
                   [Port, test_command:quoted(Sql), Input]).
