%% `dyntrace mcp', used by the protocol's own client from npm, on the shop of docs/night.md.
-module(mcp_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [tools].

init_per_suite(Config) ->
    Npm = fun() -> test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch("mcp") end,
    test_json:with_shop(test_require:tool(Npm(), Config)).

end_per_suite(Config) ->
    test_node:stop(?config(node, Config)).

%% Each tool returns values of the shop. Errors are results; a cancelled tool leaves nothing in the node.
tools(Config) ->
    OsPid = ?config(os_pid, Config),
    File = filename:join(?config(priv_dir, Config), "results.json"),
    {0, _} = test_shell:run("node '~ts/test/support/mcp/client.mjs' '~ts' '~ts' ~s '~ts' > '~ts'",
                            [test_shell:project(), test_npm:modules("mcp"), test_command:path(), OsPid,
                             test_json:snapshots(Config), File]),
    #{<<"tools">> := Tools, <<"results">> := Results} = test_viewer:decode(File),
    Names = [<<"nodes">>, <<"stacks">>, <<"profile">>, <<"top">>, <<"report">>, <<"request">>, <<"snapshot_list">>],
    ?assertEqual(lists:sort([<<"compare">> | Names]), lists:sort(Tools)),
    [begin
         #{<<"isError">> := false, <<"structuredContent">> := Value} = maps:get(Name, Results),
         ?assertEqual({Name, true}, {Name, is_of_shop(Name, Value, OsPid)}, Value)
     end || Name <- Names],
    ?assertMatch(#{<<"isError">> := true,
                   <<"content">> := [#{<<"text">> := <<"{\"error\": {\"exit_status\": 5, ", _/binary>>}]},
                 maps:get(<<"failed">>, Results)),
    #{<<"isError">> := true, <<"content">> := [#{<<"text">> := NoRecording}]} = maps:get(<<"compare">>, Results),
    ?assertMatch({match, _}, re:run(NoRecording, "\"no_recording\"")),
    ?assertMatch(#{<<"isError">> := true, <<"content">> := [#{<<"text">> := <<"seconds must be between 0 and 40">>}]},
                 maps:get(<<"invalid">>, Results)),
    ?assertMatch(#{<<"code">> := -32602}, maps:get(<<"unknown">>, Results)),
    ?assertMatch(#{<<"code">> := _}, maps:get(<<"cancelled">>, Results)),
    ?assertMatch(#{<<"isError">> := false}, maps:get(<<"after">>, Results)),
    test_wait:until("no consumer is attached", [],
                    fun() -> test_node:call(?config(node, Config), fun dyntrace:listeners/0) end).

is_of_shop(<<"nodes">>, #{<<"nodes">> := Nodes}, OsPid) ->
    [] =/= [Node || #{<<"pid">> := Pid} = Node <- Nodes, integer_to_list(Pid) =:= OsPid];
is_of_shop(<<"top">>, #{<<"frames">> := [#{<<"pid">> := Pid, <<"processes">> := Processes} | _]}, OsPid) ->
    integer_to_list(Pid) =:= OsPid andalso length(Processes) =:= 5;
is_of_shop(<<"report">>, #{<<"recording">> := #{<<"nodes">> := [#{<<"os_pid">> := Pid}]}, <<"processes">> := Processes},
           OsPid) ->
    integer_to_list(Pid) =:= OsPid andalso length(Processes) =< 50;
is_of_shop(<<"request">>, #{<<"steps">> := [#{<<"text">> := Text} | _]}, _) ->
    Text =:= <<"test_command_shop:buy/1">>;
is_of_shop(<<"snapshot_list">>, #{<<"folders">> := [#{<<"snapshots">> := [#{<<"cause">> := Cause}]}]}, _) ->
    Cause =:= <<"crash">>;
is_of_shop(_, #{<<"pid">> := Pid}, OsPid) ->
    integer_to_list(Pid) =:= OsPid.
