%% Runs the host's command with --json on the shop of docs/night.md. Its output is in a file, without the messages on
%% standard error.
-module(test_json).

-export([with_shop/1, snapshots/1, missing/0, start/3, finish/1, validate/2, validated/1]).

-record(json, {command, file}).

%% The missing requirement, or false.
missing() ->
    test_shell:run("/usr/bin/python3 -c 'import jsonschema'", []) =/= {0, <<>>}
        andalso "jsonschema is not installed (Debian: python3-jsonschema)".

%% The configuration of a suite with a node in which the shop runs.
with_shop(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    _ = test_require:tool(test_require:first([NotRoot, fun test_bpftrace:missing/0, fun test_lttng:missing/0,
                                              fun test_viewer:missing/0]), Config),
    Node = test_node:start(),
    ok = test_node:call(Node, fun() ->
                                      ok = test_node:started([{functions, test_command_shop:functions()}]),
                                      test_command_shop:start()
                              end),
    [{node, Node}, {os_pid, test_node:os_pid(Node)} | Config].

%% A folder with a snapshot.
snapshots(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "snapshots"),
    Snapshot = filename:join(Folder, "20261129-105500-crash"),
    ok = filelib:ensure_path(filename:join(Snapshot, "recording")),
    ok = file:write_file(filename:join(Snapshot, "cause.json"),
                         "{\"cause\": \"crash\", \"node\": \"shop\", \"time\": 1795949700.25, \"text\": \"it\", "
                         "\"more\": 3}"),
    Folder.

%% Starts the command; Name is that of the file.
start(Name, Args, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([Name, ".json"])),
    Line = ["'", test_command:path(), "'", [[" ", test_command:quoted(Arg)] || Arg <- Args ++ ["--json"]],
            " > '", File, "'"],
    #json{command = test_command:launch(lists:flatten(["sh -c ", test_command:quoted(Line)])), file = File}.

%% {Exit status, Documents}: a document, or one per line.
finish(#json{command = Command, file = File}) ->
    {Status, _} = test_command:finish(Command),
    {ok, Text} = file:read_file(File),
    case binary:split(Text, <<"\n">>, [global, trim_all]) of
        [<<"{">> | _] -> {Status, [test_viewer:decode(File)]};
        Lines -> {Status, test_viewer:decode_all([line(File, N, Line) || {N, Line} <- lists:enumerate(Lines)])}
    end.

line(File, N, Line) ->
    Path = lists:concat([File, ".", N]),
    ok = file:write_file(Path, Line),
    Path.

%% The documents conform to a schema.
validate(Schema, #json{file = File}) ->
    validated([Schema, File]).

%% Runs validate_json.py with these arguments.
validated(Args) ->
    Schemas = filename:join(test_command:package(), "dyntrace_command/common/schemas"),
    case test_shell:run("/usr/bin/python3 '~ts/test/support/validate_json.py' '~ts'~ts",
                        [test_shell:project(), Schemas, [[" '", Arg, "'"] || Arg <- Args]]) of
        {0, <<>>} -> ok;
        Failed -> Failed
    end.
