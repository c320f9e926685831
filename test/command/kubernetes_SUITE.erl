%% The manifests of docs/kubernetes against Kubernetes' schemas; the packages of its Dockerfile. No cluster runs them.
-module(kubernetes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [dockerfile, {group, schema}].

groups() ->
    [{schema, [], [collector, debug_pod, application, unknown_field, missing_field, wrong_type, wrong_kind]}].

init_per_group(schema, Config) ->
    test_require:tool(test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch("kubernetes"),
                      Config).

end_per_group(_, _) ->
    ok.

%% tools/deps knows each need that it names.
dockerfile(_) ->
    Text = read("Dockerfile"),
    {match, Calls} = re:run(Text, "(?:RUN|&&) tools/deps ([^&\\\\]+)", [global, {capture, all_but_first, list}]),
    ?assertEqual(2, length(Calls)),
    {ok, Table} = file:read_file(filename:join(test_shell:project(), "tools/deps")),
    [?assertMatch({match, _}, re:run(Table, "^ +\\Q" ++ Need ++ "\\E +\\S+ +\\S+$", [multiline]))
     || [Call] <- Calls, Need <- string:lexemes(Call, " \n")].

collector(Config) ->
    ?assertEqual([{"Namespace", []}, {"PersistentVolumeClaim", []}, {"Deployment", []}, {"Service", []},
                  {"NetworkPolicy", []}],
                 check(read("collector.yaml"), Config)).

debug_pod(Config) -> ?assertEqual([{"Pod", []}], check(read("debug-pod.yaml"), Config)).
application(Config) -> ?assertEqual([{"Deployment", []}], check(read("application.yaml"), Config)).

%% What Kubernetes would refuse is found.
unknown_field(Config) -> refused("hostPID:", "hostPid:", "'\"hostPid\"' does not exist in type 'IPodSpec'", Config).
missing_field(Config) -> refused("- name: dyntrace\n", "- tty: true\n", "must have required property name", Config).
wrong_type(Config) -> refused("hostPID: true", "hostPID: \"yes\"", "data/spec/hostPID must be boolean", Config).
wrong_kind(Config) -> refused("kind: Pod", "kind: Pot", "Cannot find module", Config).

refused(Right, Wrong, Because, Config) ->
    Manifest = read("debug-pod.yaml"),
    ?assertMatch([_, _], string:split(Manifest, Right, all)),
    [{_, Reasons}] = check(string:replace(Manifest, Right, Wrong), Config),
    ?assertNotEqual(nomatch, string:find(lists:join("\n", Reasons), Because), Reasons).

read(Name) ->
    {ok, Text} = file:read_file(filename:join([test_shell:project(), "docs/kubernetes", Name])),
    Text.

%% [{Kind, [what is wrong]}]
check(Manifest, Config) ->
    File = filename:join(?config(priv_dir, Config), integer_to_list(erlang:unique_integer([positive])) ++ ".yaml"),
    ok = file:write_file(File, Manifest),
    {0, _} = test_shell:run("node '~ts' '~ts' < '~ts' > '~ts.json'",
                            [filename:join(test_shell:project(), "test/support/kubernetes/check.mjs"),
                             test_npm:modules("kubernetes"), File, File]),
    [{binary_to_list(Kind), [unicode:characters_to_list(Reason) || Reason <- Wrong]}
     || #{<<"kind">> := Kind, <<"wrong">> := Wrong} <- test_viewer:decode(File ++ ".json")].
