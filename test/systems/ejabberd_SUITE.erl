%% Debian's ejabberd under load: recordings of it agree with its own counts and names.
-module(ejabberd_SUITE).

-include("../support/suite.hrl").

-define(COUNT, 50).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [counts, names, loaded_at_start, loaded_by_host].

init_per_suite(Config) ->
    _ = test_require:tool(packaged_ejabberd:missing(), Config),
    Daemon = observed:start_daemon(),
    [{daemon, Daemon}, {system, observed:start(packaged_ejabberd)} | Config].

end_per_suite(Config) ->
    packaged:stop(?config(system, Config)),
    observed:stop(?config(daemon, Config)).

%% A harmless background load, except in cases that count messages.
init_per_testcase(Case, Config) when Case =:= counts; Case =:= loaded_at_start; Case =:= loaded_by_host ->
    Config;
init_per_testcase(_, Config) ->
    #{daily := Daily} = packaged_ejabberd:service(),
    [{load, packaged:client(?config(system, Config), Daily)} | Config].

end_per_testcase(_, Config) ->
    [#{"sent" := _} = client:stop(Load) || {load, Load} <- Config],
    ok.

%% -- Truth -----------------------------------------------------------------------------------

%% Each message of the clients is seen once as it is parsed, and once on its way to the receiver's process.
counts(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "counted_of_ejabberd"),
    System = ?config(system, Config),
    Counts = observed:recorded(System, Folder,
                               fun() ->
                                       client:finish(packaged:client(System, ["counted", "pairs=2",
                                                                     lists:concat(["count=", ?COUNT])]))
                               end),
    ?assertEqual(#{"sent" => 2 * ?COUNT, "delivered" => 2 * ?COUNT, "connections" => 4}, Counts),
    Received = [Message || {message_delivery, #{message := Message}} <- test_lttng:read(Folder)],
    [?assertEqual(2 * ?COUNT, length([of_client || Message <- Received, string:prefix(Message, Begin) =/= nomatch]))
     || Begin <- ["{'$gen_event',{xmlstreamelement,{xmlel,<<\"message\">>,", "{route,{message,"]].

%% Sessions are shown by the names that ejabberdctl lists.
names(Config) ->
    #{<<"processes">> := Processes} = observed:report(?config(system, Config), Config),
    {0, Listed} = packaged:ctl(?config(system, Config), ["connected_users"]),
    Users = [list_to_binary(["\"", User, "\""]) || User <- string:lexemes(Listed, "\n")],
    ?assertMatch([_, _, _, _, _, _], Users),
    ?assertEqual(lists:sort(Users), lists:sort([Label || #{<<"label">> := Label} <- Processes,
                                                         string:find(Label, "@localhost/") =/= nomatch])).

%% The application starts together with the server, by an option of the server.
loaded_at_start(_) ->
    System = packaged:start(packaged_ejabberd, packaged_ejabberd:started_with()),
    try ok = test_wait:until("LTTng's part is loaded, and the option is set",
                             "{available, {ok, {ejabberd_names, sessions}}}",
                             fun() ->
                                     packaged:eval(System, "case catch dyntrace:info() of "
                                                           "    #{backends := #{lttng := Lttng}} -> "
                                                           "        {Lttng, "
                                                           "         application:get_env(dyntrace, labels)}; "
                                                           "    NotYet -> NotYet "
                                                           "end.")
                             end)
    after packaged:stop(System)
    end.

%% `dyntrace report --load' loads the library into the running server.
loaded_by_host(_) ->
    observed:loaded_by_host(packaged_ejabberd).
