%% A small system of an ordinary node, healthy and with one fault at a time: a report names the fault first, and a
%% healthy load that resembles a fault has no serious finding.
-module(small_system_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [healthy, jobs, late, idle_pool, large_binaries, busy, chain, burn, terms, copies, formatting].

init_per_suite(Config) ->
    Daemon = observed:start_daemon(),
    Node = test_node:start(),
    ok = test_node:call(Node, fun() -> test_node:started([]) end),
    ok = test_node:call(Node, fun small_system:start/0),
    [{daemon, Daemon}, {node, Node} | Config].

end_per_suite(Config) ->
    test_node:stop(?config(node, Config)),
    observed:stop(?config(daemon, Config)).

%% -- Healthy ---------------------------------------------------------------------------------

healthy(Config) -> ?assertEqual([], observed:serious(report(Config))).
jobs(Config) -> silent(jobs, Config).
late(Config) -> silent(late, Config).
idle_pool(Config) -> silent(idle_pool, Config).
large_binaries(Config) -> silent(large_binaries, Config).

%% These processes run all the time. No more of them compute than there are schedulers. On a busy machine others wait.
busy(Config) ->
    observed:check_others(["> erlang:apply/2 ran for (over )?\\d+ % of the (recording|time)",
                           " waited for \\d+ % of that time.* \\(inferred\\)$"], during(busy, Config)).

silent(Kind, Config) ->
    ?assertEqual([], observed:serious(during(Kind, Config))).

%% -- Faults ----------------------------------------------------------------------------------

%% The last server of a chain is the cause. The servers before it wait for it.
chain(Config) ->
    Report = #{<<"findings">> := Findings} = during(chain, Config),
    observed:check(["> ledger: callers waited .* for its work", "> cash_desk: callers waited "], Report),
    ?assertMatch([_], [Text || #{<<"text">> := Text, <<"severity">> := <<"low">>} <- Findings,
                               re:run(Text, "> cash_desk: callers waited .* waiting for <.*> ledger(;|$)")
                                   =/= nomatch]).

%% The processes that compute are named, not the servers that wait for a scheduler.
burn(Config) ->
    observed:check(["the schedulers are \\d+ % busy on average, .* by \\d processes like <.*> erlang:apply/2: ",
                    "ran for (over )?\\d+ % of the (recording|time)"], during(burn, Config)).

%% The process that changes a persistent term uses next to no time. All others search their heaps.
terms(Config) ->
    observed:check(["> price_reload replaced or erased persistent terms \\d+ times", " waited .* for a scheduler"],
                   during(terms, Config)).

%% The sender copies the message, and other processes may have to wait for its scheduler. The receiver collects it.
copies(Config) ->
    observed:check(["> order_export sent \\d+ messages to <.*> archive, with up to \\d+\\.\\d MB of data: ",
                    "> (stock|prices): callers waited .* while it waited for a scheduler, "], during(copies, Config)).

%% A process that makes text of its state looks like one that is busy, collects and grows.
formatting(Config) ->
    observed:check(["> event_store formatted a large term as text for "], during(formatting, Config)).

during(Kind, Config) ->
    Node = ?config(node, Config),
    ok = test_node:call(Node, fun() -> small_system:plant(Kind) end),
    try report(Config)
    after ok = test_node:call(Node, fun fault:remove/0)
    end.

report(Config) ->
    observed:report_of(test_node:os_pid(?config(node, Config)), Config).
