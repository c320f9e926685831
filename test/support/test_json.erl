%% Runs the host's command with --json. Its output is in a file, without the messages on standard error.
-module(test_json).

-export([missing/0, start/3, finish/1, validate/2, validated/1]).

-record(json, {command, file}).

%% The missing requirement, or false.
missing() ->
    test_shell:run("/usr/bin/python3 -c 'import jsonschema'", []) =/= {0, <<>>}
        andalso "jsonschema is not installed (Debian: python3-jsonschema)".

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
