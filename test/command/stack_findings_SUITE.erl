%% The findings of `dyntrace report' name the function in which a process is, from its stack at the end.
-module(stack_findings_SUITE).

-include_lib("kernel/include/file.hrl").
-include("../support/suite.hrl").

-define(SECONDS, "6").
-define(WAITED, "; at the end of the recording, <[0-9.]+> waited in gen:do_call/4, called from "
        "test_stuck_system:handle_cast/2 \\(test_stuck_system.erl:\\d+\\)").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [deadlock, busy, loop, suspended, interrupted, healthy, unprivileged].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    NoJit = fun() -> erlang:system_info(emu_flavor) =/= jit andalso "no JIT" end,
    Missing = test_require:first([NotRoot, NoJit, fun test_lttng:missing/0, fun test_viewer:missing/0]),
    _ = test_require:tool(Missing, Config),
    [{keeper, test_keeper:start_daemon()} | Config].

end_per_suite(Config) ->
    test_keeper:stop(?config(keeper, Config)).

%% Both servers wait below the function that called; a kept recording shows the same.
deadlock(Config) ->
    Node = started([]),
    ok = test_node:call(Node, fun test_stuck_system:deadlock/0),
    Folder = filename:join(?config(priv_dir, Config), "kept"),
    Report = report(Node, ["--keep", Folder], Config),
    [Text] = found(<<"stuck_process">>, Report),
    {match, [First, Line, Second]} =
        re:run(Text, "; at the end of the recording, (<[0-9.]+>) waited in gen:do_call/4, called from "
                     "test_stuck_system:handle_cast/2 \\(test_stuck_system.erl:(\\d+)\\), (<[0-9.]+>) waited in "
                     "gen:do_call/4, called from test_stuck_system:handle_cast/2 \\(test_stuck_system.erl:\\2\\)$",
               [{capture, all_but_first, list}]),
    ?assertEqual(test_node:call(Node, fun() -> lists:sort([pid_to_list(whereis(Name))
                                                           || Name <- [stuck_stock, stuck_cart]]) end),
                 lists:sort([First, Second])),
    ?assertEqual("    ok = gen_server:call(Other, asked, infinity),", source_line(Line)),
    Kept = filename:join(?config(priv_dir, Config), "kept.json"),
    {0, _} = test_command:run(["view", Folder, "-o", Kept]),
    ?assertEqual([Text], found(<<"stuck_process">>, test_viewer:decode(Kept))),
    {ok, #file_info{mode = Mode}} = file:read_file_info(filename:join(Folder, "stacks.tsv")),
    ?assertEqual(8#600, Mode band 8#777),
    test_node:stop(Node).

%% A process that sorts again and again.
busy(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun() -> test_stuck_system:sort(), ok end),
    [Text] = found(<<"busy_process">>, report(Node, [], Config)),
    {match, [Line]} =
        re:run(Text, "; near the end of the recording, <[0-9.]+> "
                     "(?:ran lists:\\w+/\\d, called from|ran functions called from|was in or below) "
                     "test_stuck_system:sorts/1 \\(test_stuck_system.erl:(\\d+)\\) in \\d+ of "
                     "\\d+ samples$", [{capture, all_but_first, list}]),
    ?assertEqual("    Sorted = lists:sort(List),", source_line(Line)),
    test_node:stop(Node).

%% A process whose stack is empty.
loop(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun() -> test_stuck_system:spin(), ok end),
    [Text] = found(<<"busy_process">>, report(Node, ["--full"], Config)),
    ?assertMatch({match, _}, re:run(Text, "; near the end of the recording, <[0-9.]+> (was last saved in|ran) "
                                          "test_stuck_system:spins/1 \\(test_stuck_system.erl:\\d+\\) in \\d+ of \\d+ "
                                          "samples$"), Text),
    test_node:stop(Node).

suspended(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_stuck_system:suspended/0),
    [Text] = found(<<"stuck_process">>, report(Node, [], Config)),
    ?assertMatch({match, _}, re:run(Text, "; at the end of the recording, <[0-9.]+> was suspended in "
                                          "test_stuck_system:queued/0 \\(test_stuck_system.erl:\\d+\\)$"), Text),
    test_node:stop(Node).

%% Ctrl-C: the stacks are read then.
interrupted(Config) ->
    Node = started([]),
    ok = test_node:call(Node, fun test_stuck_system:deadlock/0),
    File = file(Config),
    Command = test_command:start(["report", test_node:os_pid(Node), "--seconds", "100", "-o", File]),
    ok = test_command:await("  6.\\d s  lost 0 events", Command),
    _ = test_command:interrupted(Command),
    [Text] = found(<<"stuck_process">>, test_viewer:decode(File)),
    ?assertMatch({match, _}, re:run(Text, ?WAITED), Text),
    test_node:stop(Node).

healthy(Config) ->
    Node = started([]),
    ?assertEqual([], [Text || Text <- found(all, report(Node, [], Config)), re:run(Text, "the end of") =/= nomatch]),
    test_node:stop(Node).

%% A user reports on a node of its own.
unprivileged(Config) ->
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-stacks-" ++ os:getpid()),
    Options = test_command:copy_for_nobody(Home),
    {ok, _} = file:copy(code:which(test_stuck_system), Home ++ "/dyntrace/ebin/test_stuck_system.beam"),
    Node = test_node:start(Options),
    try
        {ok, _} = peer:call(Node, application, ensure_all_started, [dyntrace]),
        ok = peer:call(Node, test_stuck_system, deadlock, []),
        {0, Output} = test_shell:run("~s ~ts/dyntrace/priv/bin/dyntrace report ~s --seconds ~s "
                                     "-o '~ts/report.json' 2>&1",
                                     [test_command:as_nobody(Home), Home, test_node:os_pid(Node), ?SECONDS, Home]),
        ct:pal("~ts", [Output]),
        [Text] = found(<<"stuck_process">>, test_viewer:decode(Home ++ "/report.json")),
        ?assertMatch({match, _}, re:run(Text, ?WAITED), Text)
    after
        test_node:stop(Node),
        file:del_dir_r(Home)
    end,
    Config.

%% -- Helpers ------------------------------------------------------------------------------------

started(Args) ->
    Node = test_node:start(#{args => Args}),
    ok = test_node:call(Node, fun() -> test_node:started([]) end),
    Node.

file(Config) ->
    filename:join(?config(priv_dir, Config), lists:concat(["report-", erlang:unique_integer([positive]), ".json"])).

report(Node, Options, Config) ->
    File = file(Config),
    {0, Output} = test_command:run(["report", test_node:os_pid(Node), "--seconds", ?SECONDS, "-o", File | Options]),
    ct:pal("~ts", [Output]),
    test_viewer:decode(File).

found(Rule, #{<<"findings">> := Findings}) ->
    [unicode:characters_to_list(Text)
     || #{<<"rule">> := Of, <<"text">> := Text} <- Findings, Rule =:= all orelse Rule =:= Of].

source_line(Number) ->
    {ok, Source} = file:read_file(filename:join(test_shell:project(), "test/support/test_stuck_system.erl")),
    unicode:characters_to_list(lists:nth(list_to_integer(Number), binary:split(Source, <<"\n">>, [global]))).
