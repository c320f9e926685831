%% The bench measures something, and leaves nothing behind when it is killed.
-module(bench_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [tables, earlier, unknown_table, over, figures, summary, killed, killed_beside_a_daemon, killed_while_it_records].

init_per_suite(Config) ->
    _ = [test_require:tool(Missing, Config)
         || Missing <- [test_lttng:missing(), test_bpftrace:missing()]],
    Built = filename:join(?config(priv_dir, Config), "bench"),
    {0, _} = test_shell:run("make -C '~ts' bench-built BENCH='~ts' 2>&1", [test_shell:project(), Built]),
    %% Last in the path, because it also has the test helpers, and a helper loaded from there finds no suites above it.
    true = code:add_pathz(Built),
    [{built, Built} | Config].

end_per_suite(Config) ->
    true = code:del_path(?config(built, Config)).

%% Measures tables that take a few seconds. They replace only their own sections.
tables(Config) ->
    Results = filename:join(?config(priv_dir, Config), "results.md"),
    ok = file:write_file(Results, "# What it costs\n\n## Annotations\n\nstale\n\n## Others\n\nkept\n\n"),
    Bench = bench(Results, "annotations latency", Config),
    {0, Output} = test_shell:run("cd '~ts' && ~ts", [test_shell:project(), Bench]),
    {ok, Text} = file:read_file(Results),
    ?assertMatch({match, _}, re:run(Output, "^annotations: \\d+ s$", [multiline])),
    ?assertEqual([<<"Annotations">>, <<"Others">>, <<"Requests while everything is recorded">>],
                 [Title || [Title] <- matches(Text, "^## (.*)$")]),
    ?assertEqual([[]], [[] || [_] <- matches(Text, "^(kept)$")]),
    ?assertEqual([], matches(Text, "^(stale)$")),
    %% An empty NIF costs less than an annotation that LTTng records.
    [[Empty, _], [_, Recorded]] = [matched(Text, "^\\| " ++ Row ++ " \\| ([0-9.,]+) \\| ([0-9.,]+) \\|$")
                                   || Row <- ["an empty NIF of four arguments", "`p\\(1, 2, 3, 4\\)`"]],
    ?assert(0 < Empty andalso Empty < Recorded),
    %% Percentiles increase.
    [begin
         Numbers = lists:duplicate(3, " \\| ([0-9.,]+)"),
         [P50, P99, P999] = matched(Text, ["^\\| ", Request, ", LTTng", Numbers, " \\|$"]),
         ?assert(0 < P50 andalso P50 =< P99 andalso P99 =< P999)
     end || Request <- ["ping-pong", "`gen_server:call/2`"]].

%% A whole run keeps earlier figures that it did not measure, and says so once.
earlier(Config) ->
    File = filename:join(?config(priv_dir, Config), "earlier.md"),
    ok = file:write_file(File, "# What it costs\n\n## Annotations\n\nNs.\n\n| a |\n\n## Others\n\nkept\n\n"),
    Kept = <<"## Annotations\n\nOf an earlier run. Ns.\n\n| a |\n\n">>,
    ?assertEqual(Kept, dyntrace_bench_results:earlier(File, "Annotations")),
    ok = file:write_file(File, [<<"# What it costs\n\n">>, Kept]),
    ?assertEqual(Kept, dyntrace_bench_results:earlier(File, "Annotations")),
    [?assertEqual(<<>>, dyntrace_bench_results:earlier(Name, Title))
     || {Name, Title} <- [{File, "Annotation"}, {File, "Others"}, {File ++ ".none", "Annotations"}]].

%% An operation that takes longer than the time limit.
over(_) ->
    Slow = #{name => "slow", flags => [], events => 1,
             new => fun() -> fun() -> receive after 1500 -> ok end end end},
    Quick = Slow#{new => fun() -> fun() -> ok end end},
    ?assertEqual(<<"> 1 s">>, iolist_to_binary(dyntrace_bench_figures:ns(dyntrace_bench_ops:measure(Slow, none)))),
    ?assert(dyntrace_bench_ops:measure(Quick, none) < 1.0e6),
    Broken = Slow#{new => fun() -> fun() -> exit(broken) end end},
    ?assertError(broken, dyntrace_bench_ops:measure(Broken, none)).

figures(_) ->
    Sorted = lists:seq(1, 1000),
    ?assertEqual([500, 990, 999, 1000, 1],
                 [dyntrace_bench_figures:percentile(Percent, Sorted) || Percent <- [50, 99, 99.9, 100, 0]]),
    ?assertEqual(#{a => 2, b => 7}, dyntrace_bench_figures:medians([{a, 3}, {b, 7}, {a, 1}, {a, 2}])),
    ?assertEqual([{7.0, 0.0}, {2.0, 1.0}],
                 [dyntrace_bench_figures:mean_and_error(Values) || Values <- [[7, 7, 7], [1, 3]]]),
    ?assertEqual(["9.5", "1,234,567", "-12"],
                 [lists:flatten(Text) || Text <- [dyntrace_bench_figures:ns(9.5), dyntrace_bench_figures:ns(1234567.2),
                                                  dyntrace_bench_figures:count(-12)]]).

%% Nine lines. A figure above the time limit is shown as such.
summary(_) ->
    Call = "`gen_server:call/2`",
    Names = [Name || #{name := Name} <- [dyntrace_bench_ops:large() | dyntrace_bench_ops:table()]],
    Tracers = [{untraced, 100.0}, {floor, 200.0}, {discard, 180.0}, {no_consumer, 189.0}, {lttng, 310.0},
               {process, 600.0}, {file, 900.0}],
    Events = maps:from_list([{{Name, Tracer}, Ns} || Name <- Names, {Tracer, Ns} <- Tracers]),
    Otp = maps:from_list([{{Name, Tracer}, Ns}
                          || Name <- Names, {Tracer, Ns} <- [{untraced, 100.0}, {otp, dyntrace_bench_figures:over()}]]),
    Figures = #{events => Events,
                annotations => #{{"`p(1, 2, 3, 4)`", no_consumer} => 18.0,
                                 {"an empty NIF of four arguments", no_consumer} => 10.0},
                hostile => #{{"funs", lttng} => 2180.0, {"funs", floor} => 180.0},
                latency => #{{Call, {lttng, 99.9}} => 900.0, {Call, {untraced, 99.9}} => 300.0,
                             {Call, {process, 99.9}} => 1800.0}},
    {"Summary", _, _, Rows} = dyntrace_bench_summary:table(Figures, Otp),
    Texts = [[unicode:characters_to_list(Cell) || Cell <- Row] || Row <- Rows],
    ?assertEqual(9, length(Texts)),
    [?assertEqual(Expected, lists:nth(N, Texts))
     || {N, Expected} <- [{1, ["a small send recorded by LTTng, of the floor", "1.55", "at most 1.55, met"]},
                          {5, ["`p/4` without a consumer, of an empty NIF", "1.80", "at most 1.50, **not met**"]},
                          {8, ["a small send, in ns above an untraced one",
                               "dyntrace, to LTTng 210, OTP's own, to LTTng > 1 s, to a process 500, "
                               "dbg, to a file 800", ""]}]],
    {"Summary", _, _, Without} = dyntrace_bench_summary:table(Figures, none),
    ?assertEqual(<<"dyntrace, to LTTng 210, to a process 500, dbg, to a file 800">>,
                 iolist_to_binary(lists:nth(2, lists:nth(8, Without)))).

unknown_table(Config) ->
    {Status, Output} = test_shell:run("~ts", [bench("unwritten.md", "event", Config)]),
    ?assert(Status =/= 0),
    ?assertMatch({match, _}, re:run(Output, "no_such_table,\"event\"")).

%% The session daemon that the bench has started ends with it.
killed(Config) ->
    case test_shell:run("lttng --no-sessiond list", []) of
        {0, _} ->
            test_require:tool("a session daemon runs already", Config);
        _ ->
            Session = kill_bench(Config),
            ok = test_wait:until("the daemon has ended", fun({Status, _}) -> Status =/= 0 end, Session)
    end.

%% A session daemon that ran before keeps running, without the bench's session.
killed_beside_a_daemon(Config) ->
    Daemon = test_lttng:start_daemon(),
    Session = kill_bench(Config),
    ok = test_wait:until("its session has ended", {0, nomatch}, Session),
    test_lttng:stop_daemon(Daemon).

%% A recording node is killed: its recording is deleted.
killed_while_it_records(_) ->
    Daemon = test_lttng:start_daemon(),
    Node = test_node:start(),
    Folder = test_node:call(Node, fun() -> test_lttng:folder(test_lttng:start(Daemon, [message_send])) end),
    ?assert(filelib:is_dir(Folder)),
    {0, _} = test_shell:run("kill -KILL ~s", [test_node:os_pid(Node)]),
    ok = test_wait:until("its recording is gone", false, fun() -> filelib:is_dir(Folder) end),
    test_lttng:stop_daemon(Daemon).

kill_bench(Config) ->
    Results = filename:join(?config(priv_dir, Config), "killed.md"),
    ok = file:write_file(Results, ""),
    Command = lists:flatten(["exec ", bench(Results, "latency", Config)]),
    Bench = open_port({spawn_executable, "/bin/sh"},
                      [{args, ["-c", Command]}, {cd, test_shell:project()}, exit_status, binary]),
    {os_pid, OsPid} = erlang:port_info(Bench, os_pid),
    Session = fun() -> session_of(OsPid) end,
    ok = test_wait:until("the bench has a session", {0, match},
                         fun() ->
                                 receive
                                     {Bench, {exit_status, Status}} ->
                                         error({bench_ended, Status, test_shell:said(Bench)})
                                 after 0 -> Session()
                                 end
                         end),
    {0, _} = test_shell:run("kill -KILL ~b", [OsPid]),
    receive {Bench, {exit_status, 128 + 9}} -> Session
    after 10000 -> error({bench_goes_on, test_shell:said(Bench)})
    end.

%% {Status, whether this process has a session}
session_of(OsPid) ->
    {Status, Output} = test_shell:run("lttng --no-sessiond list", []),
    {Status, re:run(Output, io_lib:format("dyntrace-~b-", [OsPid]), [{capture, none}])}.

bench(Results, Tables, Config) ->
    Built = ?config(built, Config),
    App = filename:dirname(code:which(dyntrace)),
    io_lib:format("env ERL_CRASH_DUMP_SECONDS=0 erl -noinput -pa '~ts' -pa '~ts' -s dyntrace_bench main "
                  "-extra '~ts' '~ts' ~ts 2>&1",
                  [App, Built, Built, Results, Tables]).

matches(Text, Pattern) ->
    case re:run(Text, Pattern, [global, multiline, {capture, all_but_first, binary}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

%% The numbers in a row.
matched(Text, Pattern) ->
    [Numbers] = matches(Text, Pattern),
    [number(binary_to_list(Number) -- ",,,") || Number <- Numbers].

number(Text) ->
    try list_to_float(Text)
    catch error:badarg -> float(list_to_integer(Text))
    end.
