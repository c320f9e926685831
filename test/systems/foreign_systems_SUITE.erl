%% Systems that do not know dyntrace, healthy or with one fault at a time, loaded and observed by the host's command:
%% yaws and a tsung with slaves that loads it, a release of an Elixir project, and two nodes with a table of Mnesia.
-module(foreign_systems_SUITE).

-include("../support/suite.hrl").

-define(HOME, "/mnt").
-define(SHOP, "shop@localhost").
-define(BRANCHES, ["north@localhost", "south@localhost"]).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [{group, web}, {group, shop}, {group, bank}].

groups() ->
    [{web, [], [yaws, yaws_with_suspended_log, tsung_controller, tsung_slaves, tsung_slave_with_slow_consumer]},
     {shop, [], [release, release_with_slow_till]},
     {bank, [], [mnesia, mnesia_with_audit]}].

init_per_suite(Config) ->
    [{daemon, observed:start_daemon()} | Config].

end_per_suite(Config) ->
    observed:stop(?config(daemon, Config)).

init_per_group(web, Config) ->
    _ = test_require:tool(packaged_yaws:missing(), Config),
    System = packaged:start(packaged_yaws, []),
    ok = packaged_yaws:launch_tsung(System),
    ok = test_wait:until("users visit", fun(Connections) -> Connections >= 10 end,
                         fun() -> list_to_integer(packaged:eval(System, "length([P || P <- erlang:ports(), "
                                                                        "erlang:port_info(P, name) =:= "
                                                                        "{name, \"tcp_inet\"}]).")) end),
    [{system, System} | Config];
init_per_group(shop, Config) ->
    Place = place("mix", "shop", Config),
    {0, _} = test_shell:run("~s sh -c 'cp -r ~ts . && cd shop && mix release --quiet'",
                            [place:as_user(Place), filename:join(test_shell:project(), "test/systems/shop")]),
    ok = place:launch(Place, ["env", "RELEASE_DISTRIBUTION=sname", "RELEASE_NODE=" ?SHOP, "RELEASE_COOKIE=secret",
                              "shop/_build/dev/rel/shop/bin/shop", "start"], ?HOME),
    ok = until_up(Place, ?SHOP),
    [{place, Place} | Config];
init_per_group(bank, Config) ->
    Place = place("erl", "bank", Config),
    [ok = place:launch(Place, ["erl", "-noinput", "-sname", Node, "-pa", filename:dirname(code:which(bank))], ?HOME)
     || Node <- ?BRANCHES],
    [ok = until_up(Place, Node) || Node <- ?BRANCHES],
    "ok" = place:eval(Place, hd(?BRANCHES), "bank:open('" ++ lists:last(?BRANCHES) ++ "')."),
    [{place, Place} | Config].

end_per_group(web, Config) ->
    packaged:stop(?config(system, Config));
end_per_group(_, Config) ->
    place:stop(?config(place, Config)).

place(Program, Host, Config) ->
    _ = test_require:tool(place:missing([Program]), Config),
    place:start(Host, "root", [?HOME]).

until_up(Place, Node) ->
    test_wait:until(Node ++ " is up", fun() -> place:is_up(Place, "-sname " ++ Node) end).

%% -- The web: a server and its clients ---------------------------------------------------------

yaws(Config) -> healthy(in_yaws(Config), Config).

%% Requests go on, and the log's messages wait.
yaws_with_suspended_log(Config) ->
    Report = during("{suspended, yaws_log}", in_yaws(Config), Config),
    observed:check(["> yaws_log made no progress for .* \\(suspended\\)", "> yaws_log: "], Report).

%% The controller runs no users, its slaves do.
tsung_controller(Config) ->
    Eval = in_tsung(packaged_yaws:controller(), Config),
    [?assertEqual("true", Eval("lists:member('" ++ Slave ++ "', nodes()).")) || Slave <- packaged_yaws:slaves()],
    ?assertEqual("undefined", Eval("whereis(ts_client_sup).")),
    healthy(Eval, Config).

tsung_slaves(Config) ->
    [begin
         Eval = in_tsung(Slave, Config),
         Users = list_to_integer(Eval("proplists:get_value(active, supervisor:count_children(ts_client_sup)).")),
         ?assert(Users > 0),
         healthy(Eval, Config)
     end || Slave <- packaged_yaws:slaves()].

tsung_slave_with_slow_consumer(Config) ->
    Report = during("consumer", in_tsung(hd(packaged_yaws:slaves()), Config), Config),
    observed:check(["mail_sorter: its queue grew by \\d+ messages per second"], Report).

in_yaws(Config) -> fun(Text) -> packaged:eval(?config(system, Config), Text) end.
in_tsung(Node, Config) -> fun(Text) -> packaged_yaws:eval_tsung(?config(system, Config), Node, Text) end.

%% -- A release of Elixir -----------------------------------------------------------------------

release(Config) -> healthy(in_shop(Config), Config).

release_with_slow_till(Config) ->
    Eval = in_shop(Config),
    "ok" = Eval("gen_server:cast('Elixir.Shop.Till', {slow, 20})."),
    observed:check(["Shop.Till: callers waited "], report(Eval, Config)).

in_shop(Config) -> fun(Text) -> place:eval(?config(place, Config), ?SHOP, Text) end.

%% -- Mnesia ------------------------------------------------------------------------------------

mnesia(Config) -> [healthy(in_branch(Node, Config), Config) || Node <- ?BRANCHES].

mnesia_with_audit(Config) ->
    Eval = in_branch(hd(?BRANCHES), Config),
    "ok" = Eval("bank:audit()."),
    observed:check(["mnesia_locker: \\d+\\.\\d processes waited for locks on average"], report(Eval, Config)).

in_branch(Node, Config) -> fun(Text) -> place:eval(?config(place, Config), Node, Text) end.

%% -- Reports -----------------------------------------------------------------------------------

healthy(Eval, Config) ->
    #{<<"findings">> := Findings} = report(Eval, Config),
    ?assertEqual([], [Text || #{<<"severity">> := <<"high">>, <<"text">> := Text} <- Findings]).

%% With a fault of module `fault'.
during(Fault, Eval, Config) ->
    "{module, fault}" = Eval("code:load_abs(\"" ++ filename:rootname(code:which(fault)) ++ "\")."),
    "ok" = Eval("fault:plant(" ++ Fault ++ ")."),
    try report(Eval, Config)
    after "ok" = Eval("fault:remove().")
    end.

report(Eval, Config) ->
    OsPid = string:trim(Eval("os:getpid()."), both, "\""),
    observed:report_of(OsPid, ["--load"], Config).
