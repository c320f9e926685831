%% Services of Debian's packages under load, healthy or with one fault at a time: all findings are true, also while root
%% and the service's user run flight recorders.
-module(faults_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [{group, packaged_rabbitmq}, {group, packaged_ejabberd}].

groups() ->
    [{packaged_rabbitmq, [], [backlog | twice()]}, {packaged_ejabberd, [], twice()}].

%% With recorders, only what they could hide or add: connections, crashes, and nothing.
twice() ->
    [{alone, [], cases()}, {among_recorders, [], [healthy, storm, crashes]}].

cases() ->
    [healthy, storm, burn, server, consumer, crashes, heap, suspended, journal].

init_per_suite(Config) ->
    [{daemon, observed:start_daemon()} | Config].

end_per_suite(Config) ->
    observed:stop(?config(daemon, Config)).

init_per_group(alone, Config) ->
    Config;
init_per_group(among_recorders, Config) ->
    [{recorders, observed:start_recorders(?config(system, Config), ?config(priv_dir, Config))} | Config];
%% A harmless load runs next to each fault.
init_per_group(Module, Config) ->
    _ = test_require:tool(Module:missing(), Config),
    System = observed:start(Module),
    #{daily := Daily} = Module:service(),
    [{system, System}, {daily, packaged:client(System, Daily)} | Config].

end_per_group(alone, _) ->
    ok;
end_per_group(among_recorders, Config) ->
    observed:stop(?config(recorders, Config));
end_per_group(_, Config) ->
    #{"connections" := _} = client:stop(?config(daily, Config)),
    packaged:stop(?config(system, Config)).

healthy(Config) ->
    ?assertEqual([], observed:serious(observed:report(?config(system, Config), Config))).

%% -- Clients -----------------------------------------------------------------------------------

%% Clients open one connection after another: none of their processes, and no call of `erpc', may be reported as
%% crashed.
storm(Config) ->
    System = {Module, _} = ?config(system, Config),
    #{storm := Args, port := Port} = Module:service(),
    {Report, #{"connections" := Connections}} = observed:beside(Args, System, Config),
    ?assert(Connections > 300),
    observed:check([lists:concat(["\\d+ of \\d+ connections lived at most 500 ms, \\d+ per second: accepted by .* "
                                  "tcp_inet .*:", Port, "$"]),
                    %% Also found on a slow machine: the supervisor starts a process each time, which starts others.
                    "ejabberd_c2s_sup: callers waited", "callers waited [1-4]\\d\\.\\d ms ",
                    %% RabbitMQ logs children that it shuts down in the wrong order.
                    "the log has \\d+ lines? of level error .*rabbit_channel_sup"], Report).

%% A consumer of RabbitMQ is slower than its producers, so its queue keeps the messages and its heap grows. On a machine
%% that is busy with other work, there may be too few collections to detect the growth; then only their cost is
%% reported.
backlog(Config) ->
    {Report, _} = observed:beside(["slow_q", "producers=2", "consumers=1", "rate=1500", "work=20"],
                                  ?config(system, Config), Config),
    observed:check(["queue,<<\"slow_q\">>"], Report).

%% -- Planted faults ----------------------------------------------------------------------------

%% The expected text of one of the first findings, and of further true findings.
burn(Config) -> found(burn, ["invoice_batch ran for (over )?\\d+ % of the (recording|time)"], Config).
server(Config) -> found(server, ["license_server: callers waited", "license_server ran for"], Config).
consumer(Config) -> found(consumer, ["mail_sorter: its queue grew by \\d+ messages per second"], Config).
crashes(Config) -> found(crashes, ["ldap_pool restarted \\d+ times in .* by .* flaky_sup: no_ldap",
                                         "the log has \\d+ lines of level error or above"], Config).
heap(Config) -> found(heap, ["session_cache uses \\d+ MB of memory", "session_cache"], Config).
suspended(Config) -> found(suspended, ["mail_relay made no progress for .* \\(suspended\\)"], Config).
journal(Config) -> found(journal, ["mail_journal waited for files for (over )?\\d+ % of the (recording|time)"], Config).

found(Kind, Expected, Config) ->
    observed:check(Expected, observed:during(Kind, ?config(system, Config), Config)).
