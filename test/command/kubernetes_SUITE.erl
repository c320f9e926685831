%% Checks the manifests of docs/kubernetes against Kubernetes' schemas, and the packages of its Dockerfile. No cluster
%% runs them.
-module(kubernetes_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [dockerfile, {group, schema}].

groups() ->
    [{schema, [], [collector, debug_pod, application, unknown_field, missing_field, wrong_type, wrong_kind]}].

%% All manifests are checked at once.
init_per_group(schema, Config) ->
    _ = test_require:tool(test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch("kubernetes"),
                          Config),
    {Names, Manifests} = lists:unzip([{Name, read(File)} || {Name, File} <- files()] ++
                                     [{Name, altered(Right, Wrong)} || {Name, Right, Wrong} <- faults()]),
    [{checked, maps:from_list(lists:zip(Names, check(Manifests, Config)))} | Config].

end_per_group(_, _) -> ok.

%% The Dockerfile installs packages that debian/control describes.
dockerfile(_) ->
    {match, Installed} = re:run(read("Dockerfile"), "/tmp/([a-z0-9-]+)_", [global, {capture, all_but_first, binary}]),
    {ok, Control} = file:read_file(filename:join(test_shell:project(), "debian/control")),
    {match, Described} = re:run(Control, "^Package: (.*)$", [global, multiline, {capture, all_but_first, binary}]),
    ?assertEqual([[<<"dyntrace">>], [<<"babeltrace2-plugin-dyntrace">>]], Installed),
    ?assertEqual([], Installed -- Described).

files() ->
    [{collector, "collector.yaml"}, {debug_pod, "debug-pod.yaml"}, {application, "application.yaml"}].

collector(Config) ->
    ?assertEqual([{"Namespace", []}, {"PersistentVolumeClaim", []}, {"Deployment", []}, {"Service", []},
                  {"NetworkPolicy", []}],
                 checked(collector, Config)).

debug_pod(Config) -> ?assertEqual([{"Pod", []}], checked(debug_pod, Config)).
application(Config) -> ?assertEqual([{"Deployment", []}], checked(application, Config)).

%% Each fault is inserted into debug-pod.yaml.
faults() ->
    [{unknown_field, "hostPID:", "hostPid:"}, {missing_field, "- name: dyntrace\n", "- tty: true\n"},
     {wrong_type, "hostPID: true", "hostPID: \"yes\""}, {wrong_kind, "kind: Pod", "kind: Pot"}].

%% Faults that Kubernetes would refuse are detected.
unknown_field(Config) -> refused(unknown_field, "'\"hostPid\"' does not exist in type 'IPodSpec'", Config).
missing_field(Config) -> refused(missing_field, "must have required property name", Config).
wrong_type(Config) -> refused(wrong_type, "data/spec/hostPID must be boolean", Config).
wrong_kind(Config) -> refused(wrong_kind, "Cannot find module", Config).

refused(Fault, Because, Config) ->
    [{_, Reasons}] = checked(Fault, Config),
    ?assertNotEqual(nomatch, string:find(lists:join("\n", Reasons), Because), Reasons).

altered(Right, Wrong) ->
    Manifest = read("debug-pod.yaml"),
    ?assertMatch([_, _], string:split(Manifest, Right, all)),
    string:replace(Manifest, Right, Wrong).

checked(Name, Config) ->
    maps:get(Name, ?config(checked, Config)).

read(Name) ->
    {ok, Text} = file:read_file(filename:join([test_shell:project(), "docs/kubernetes", Name])),
    Text.

%% For each manifest: [{Kind, [error]}].
check(Manifests, Config) ->
    Folder = ?config(priv_dir, Config),
    Files = [filename:join(Folder, lists:concat([N, ".yaml"])) || N <- lists:seq(1, length(Manifests))],
    [ok = file:write_file(File, Manifest) || {File, Manifest} <- lists:zip(Files, Manifests)],
    Checked = filename:join(Folder, "checked.json"),
    {0, _} = test_shell:run("node '~ts' '~ts' ~ts > '~ts'",
                            [filename:join(test_shell:project(), "test/support/kubernetes/check.mjs"),
                             test_npm:modules("kubernetes"), [["'", File, "' "] || File <- Files], Checked]),
    [[{binary_to_list(Kind), [unicode:characters_to_list(Reason) || Reason <- Wrong]}
      || #{<<"kind">> := Kind, <<"wrong">> := Wrong} <- Documents] || Documents <- test_viewer:decode(Checked)].
