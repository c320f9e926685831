%% Debian's ejabberd under load, as it is and with one fault at a time: what is said of it is true.
-module(ejabberd_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

-define(COUNT, 50).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [counts, names, loaded_at_start, loaded_by_host, healthy, storm, burn, server, consumer, crashes, heap, suspended].

init_per_suite(Config) ->
    _ = test_require:tool(packaged_ejabberd:missing(), Config),
    Daemon = observed:start_daemon(),
    System = packaged_ejabberd:start(""),
    ok = packaged_ejabberd:load(System),
    ok = observed:prepare({packaged_ejabberd, System}),
    [{0, _} = packaged_ejabberd:ctl(System, ["register", User, "localhost", "secret"]) || User <- ["alice", "bob"]],
    [{daemon, Daemon}, {system, {packaged_ejabberd, System}} | Config].

end_per_suite(Config) ->
    {packaged_ejabberd, System} = ?config(system, Config),
    packaged_ejabberd:stop(System),
    observed:stop_daemon(?config(daemon, Config)).

%% A load that nothing is wrong with, beside each fault.
init_per_testcase(Case, Config) when Case =:= counts; Case =:= loaded_at_start; Case =:= loaded_by_host ->
    Config;
init_per_testcase(_, Config) ->
    [{load, client(?config(system, Config), ["daily", "pairs=3", "rate=10"])} | Config].

end_per_testcase(_, Config) ->
    [#{"sent" := _} = client:stop(Load) || {load, Load} <- Config],
    ok.

client({packaged_ejabberd, System}, Args) ->
    client:start(place:as_root(packaged_ejabberd:place(System)), "xmpp.py", Args).

%% -- Truth -----------------------------------------------------------------------------------

%% Each message of the clients, as it was parsed, and on its way to the receiver's process.
counts(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "counted_of_ejabberd"),
    System = ?config(system, Config),
    Counts = observed:recorded(System, Folder,
                               fun() ->
                                       client:finish(client(System, ["counted", "pairs=2",
                                                                     lists:concat(["count=", ?COUNT])]))
                               end),
    ?assertEqual(#{"sent" => 2 * ?COUNT, "delivered" => 2 * ?COUNT, "connections" => 4}, Counts),
    Received = [Message || {message_receive, #{message := Message}} <- test_lttng:read(Folder)],
    [?assertEqual(2 * ?COUNT, length([of_client || Message <- Received, string:prefix(Message, Begin) =/= nomatch]))
     || Begin <- ["{'$gen_event',{xmlstreamelement,{xmlel,<<\"message\">>,", "{route,{message,"]].

%% Sessions are shown by the names that ejabberdctl lists.
names(Config) ->
    #{<<"processes">> := Processes} = observed:report(?config(system, Config), Config),
    {packaged_ejabberd, System} = ?config(system, Config),
    {0, Listed} = packaged_ejabberd:ctl(System, ["connected_users"]),
    Users = [list_to_binary(["\"", User, "\""]) || User <- string:lexemes(Listed, "\n")],
    ?assertMatch([_, _, _, _, _, _], Users),
    ?assertEqual(lists:sort(Users), lists:sort([Label || #{<<"label">> := Label} <- Processes,
                                                         string:find(Label, "@localhost/") =/= nomatch])).

%% It runs as soon as the server does, with its option.
loaded_at_start(_) ->
    System = packaged_ejabberd:start(packaged_ejabberd:started_with()),
    try ok = test_wait:until("LTTng's part is loaded, and the option is set",
                             "{available, {ok, {ejabberd_names, sessions}}}",
                             fun() ->
                                     packaged_ejabberd:eval(System, "case catch dyntrace:info() of "
                                                                    "    #{backends := #{lttng := Lttng}} -> "
                                                                    "        {Lttng, "
                                                                    "         application:get_env(dyntrace, labels)}; "
                                                                    "    NotYet -> NotYet "
                                                                    "end.")
                             end)
    after packaged_ejabberd:stop(System)
    end.

%% By `dyntrace report --load', while it runs.
loaded_by_host(_) ->
    System = packaged_ejabberd:start(""),
    try observed:loaded_by_host({packaged_ejabberd, System})
    after packaged_ejabberd:stop(System)
    end.

%% -- Findings --------------------------------------------------------------------------------

healthy(Config) ->
    ?assertEqual([], observed:serious(observed:report(?config(system, Config), Config))).

%% Clients that open a connection for each message: none of their processes has crashed.
storm(Config) ->
    Client = client(?config(system, Config), ["storm", "pairs=3", "rate=10", "storm=1"]),
    Report = observed:report(?config(system, Config), Config),
    #{"connections" := Connections} = client:stop(Client),
    ?assert(Connections > 50),
    observed:check_others(["connections lived at most"], Report).

burn(Config) -> found(burn, ["invoice_batch ran for \\d+ % of the recording"], Config).
server(Config) -> found(server, ["license_server: callers waited", "license_server ran for"], Config).
crashes(Config) -> found(crashes, ["ldap_pool crashed \\d+ times in .* by .* flaky_sup", "crashed: no_ldap"], Config).
heap(Config) -> found(heap, ["session_cache has \\d+ MB of memory", "session_cache"], Config).
consumer(Config) -> found(consumer, ["mail_sorter: its queue grew by \\d+ messages per second"], Config).
suspended(Config) -> found(suspended, ["mail_relay"], Config).

found(Kind, Expected, Config) ->
    observed:check(Expected, observed:during(Kind, ?config(system, Config), Config)).
