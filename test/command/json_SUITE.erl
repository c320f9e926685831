%% What the host's command prints with --json: it conforms to the schemas, and its values are those of a real node, the
%% shop of docs/night.md.
-module(json_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [commands, errors, documented].

init_per_suite(Config) ->
    test_json:with_shop(test_require:tool(test_json:missing(), Config)).

end_per_suite(Config) ->
    test_node:stop(?config(node, Config)).

%% All commands at the same time.
commands(Config) ->
    OsPid = ?config(os_pid, Config),
    Rows = ["--rows", "200", "--seconds", "3"],
    Started = [{Name, Args, test_json:start(Name, Args, Config)} || {Name, Args} <- [
        {nodes, ["nodes"]},
        {scripts, ["run"]},
        {run, ["run", "exits", OsPid, "--seconds", "10"]},
        {top, ["top", OsPid | Rows]},
        {exact, ["top", OsPid, "--exact" | Rows]},
        {profile, ["profile", OsPid, "--seconds", "3"]},
        {wall, ["profile", OsPid, "--wall", "--seconds", "1"]},
        {stacks, ["stacks", OsPid]},
        {request, ["request", OsPid, "--next", "test_command_shop:buy"]},
        {report, ["report", OsPid, "--seconds", "3"]},
        {snapshot, ["snapshot", "--list", "-o", test_json:snapshots(Config)]}]],
    [begin
         {0, Documents} = test_json:finish(Command),
         ok = test_json:validate(schema(Args), Command),
         ?assertEqual({Name, true}, {Name, is_of_shop(Name, Documents, Config)}, Documents)
     end || {Name, Args, Command} <- Started].

schema([Name | _]) -> Name.

%% Whether the values are those of the shop.
is_of_shop(nodes, [#{<<"nodes">> := Nodes}], Config) ->
    #{<<"otp">> := <<Otp:2/binary, _/binary>>, <<"load">> := null} =
        test_command:node_of(?config(os_pid, Config), Nodes),
    Otp =:= list_to_binary(erlang:system_info(otp_release));
is_of_shop(scripts, [#{<<"scripts">> := Scripts}], _) ->
    lists:member(<<"exits">>, [Name || #{<<"name">> := Name} <- Scripts]);
is_of_shop(run, Lines, _) ->
    [] =/= [Count || #{<<"type">> := <<"map">>, <<"data">> := #{<<"@exits">> := #{<<"{burnt,bread}">> := Count}}}
                         <- Lines];
is_of_shop(top, Lines, Config) ->
    Cook = pid(shop_cook, Config),
    Seen = [Process || #{<<"exact">> := false, <<"processes">> := Processes} <- Lines,
                       #{<<"pid">> := Pid} = Process <- Processes, Pid =:= Cook],
    length(Lines) >= 2 andalso
        lists:any(fun(#{<<"name">> := Name, <<"reductions">> := Reductions, <<"memory_bytes">> := Memory}) ->
                          Name =:= <<"shop_cook">> andalso Reductions > 100000 andalso Memory > 1000
                  end, Seen);
is_of_shop(exact, Lines, _) ->
    %% The oven is not among those of each second.
    lists:any(fun(#{<<"exact">> := true, <<"totals">> := #{<<"run_us">> := All}, <<"processes">> := Processes}) ->
                      [] =/= [Run || #{<<"name">> := <<"shop_cook">>, <<"run_us">> := Run} <- Processes, 3 * Run > All]
              end, Lines);
is_of_shop(profile, [#{<<"samples">> := All, <<"processes">> := [First | _]} = Profile], Config) ->
    #{<<"process">> := Process, <<"samples">> := Samples, <<"path">> := [Cook | _]} = First,
    #{<<"samples_per_second">> := 99, <<"more_processes">> := 0, <<"changes">> := []} = Profile,
    Process =:= <<(pid(shop_cook, Config))/binary, " shop_cook">> andalso Samples =< All
        andalso Cook =:= <<"test_command_shop:cook/0">>;
is_of_shop(wall, [#{<<"snapshots">> := Snapshots, <<"paths">> := Paths}], _) ->
    Snapshots > 0 andalso
        lists:any(fun(#{<<"path">> := Path}) -> lists:member(<<"test_command_shop:archive/0">>, Path) end, Paths);
is_of_shop(stacks, [#{<<"groups">> := Groups, <<"schedulers">> := Schedulers}], Config) ->
    Archive = pid(shop_archive, Config),
    [] =/= [Queue || #{<<"pids">> := Pids, <<"queue">> := Queue} <- Groups, lists:member(Archive, Pids), Queue > 0]
        andalso length([Normal || #{<<"kind">> := <<"scheduler">>} = Normal <- Schedulers])
        =:= test_node:call(?config(node, Config), fun() -> erlang:system_info(schedulers) end);
is_of_shop(request, [#{<<"inferred">> := true, <<"steps">> := [First | _], <<"totals">> := [_ | _]}], _) ->
    #{<<"kind">> := <<"call">>, <<"at_ns">> := 0, <<"text">> := <<"test_command_shop:buy/1">>} = First,
    true;
is_of_shop(report, [#{<<"recording">> := #{<<"nodes">> := [#{<<"os_pid">> := OsPid}]}, <<"processes">> := Processes}],
           Config) ->
    integer_to_list(OsPid) =:= ?config(os_pid, Config) andalso
        lists:member(pid(shop_cook, Config), [Pid || #{<<"process">> := #{<<"pid">> := Pid}} <- Processes]);
is_of_shop(snapshot, [#{<<"folders">> := [#{<<"snapshots">> := [Snapshot], <<"recorder_runs">> := false}]}], _) ->
    #{<<"time_ns">> := 1795949700250000000, <<"cause">> := <<"crash">>, <<"more">> := 3, <<"text">> := <<"it">>} =
        Snapshot,
    true;
is_of_shop(_, _, _) ->
    false.

pid(Name, Config) ->
    test_node:call(?config(node, Config), fun() -> list_to_binary(pid_to_list(whereis(Name))) end).

%% A command that fails prints an error with its exit status, in place of its result.
errors(Config) ->
    [begin
         Command = test_json:start(error, Args, Config),
         {Status, [#{<<"error">> := Error}]} = test_json:finish(Command),
         ok = test_json:validate("error", Command),
         #{<<"exit_status">> := Status, <<"name">> := Name, <<"cause">> := Cause, <<"next">> := <<_/binary>>} = Error,
         ?assertMatch({match, _}, re:run(Cause, Text))
     end || {Args, Status, Name, Text} <- [
        {["top", "no_such_shop"], 5, <<"no_such_node">>, "no_such_shop"},
        {["stacks"], 2, <<"wrong_arguments">>, "required: NODE"},
        {["report", "-o", "x.html"], 2, <<"wrong_arguments">>, "--json excludes -o"},
        {["run", "no_such_script"], 4, <<"no_script">>, "no_such_script"},
        {["request", ?config(os_pid, Config), "no_such_label", "--seconds", "1"], 5, <<"no_request">>,
         "no_such_label"}]].

%% The examples of the page conform to the schemas.
documented(_) ->
    ok = test_json:validated([filename:join(test_shell:project(), "docs/json.md")]).
