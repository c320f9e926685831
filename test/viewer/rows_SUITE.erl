%% The sink `rows', read by DuckDB from npm: the rows of a recorded story, compared with what Erlang knows of it; the
%% columns, compared with their table; and the rows of the recordings of 50 nodes.
-module(rows_SUITE).

-include("../support/suite.hrl").

-define(A, "<0.90.0>").
-define(B, "<0.91.0>").
-define(REQUEST, "{'$gen_call',{<0.90.0>,[alias|#Ref<0.1.2.3>]},{get,17}}").
-define(REPLY, "{[alias|#Ref<0.1.2.3>],ok}").
%% A text as a query returns it.
-define(b(Text), (list_to_binary(Text))).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [{group, story}, columns, values, late_name, fleet].

groups() ->
    [{story, [], [processes, messages, calls, spans, findings, command, snapshot, without_duckdb]}].

init_per_suite(Config) ->
    Npm = fun() -> test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch("rows") end,
    Missing = test_require:first([fun test_viewer:missing/0, fun test_lttng:missing/0, Npm]),
    with_duckdb(test_require:tool(Missing, Config)).

end_per_suite(_) -> ok.

%% The program `duckdb', which is not in Debian.
with_duckdb(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "bin"),
    Program = filename:join(Folder, "duckdb"),
    ok = filelib:ensure_dir(Program),
    ok = file:write_file(Program, ["#!/bin/sh\nexec node '", test_shell:project(), "/test/support/rows/duckdb.mjs' '",
                                   test_npm:modules("rows"), "' \"$@\"\n"]),
    ok = file:change_mode(Program, 8#755),
    [{duckdb, Program} | Config].

%% The story of test_shop is recorded once.
init_per_group(story, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "story"),
    Story = test_recording:make(Folder, #{env => [{functions, test_shop:functions()}]},
                                fun([Node]) -> test_node:call(Node, fun test_shop:run/0) end),
    [{trace, Folder}, {story, Story}, {rows, test_fleet:rows(Folder, [], Config)} | Config].

end_per_group(_, _) -> ok.

%% -- A story ---------------------------------------------------------------------------------------------

%% Each spawn with its parent, the processes of a kind, and exits.
processes(Config) ->
    #{spawned := Spawned, exited := Exited} = ?config(story, Config),
    [Spawns, Customers, Exits] =
        queries(["select peer, process from rows where kind = 'process' and spawned and entity = 'process'",
                 "select count(*), count(distinct name), min(exit), max(exit), min(duration_ns) > 0 from rows "
                 "where kind = 'process' and initial_call = 'test_shop:customer/1'",
                 "select process, text from rows where kind = 'process' and exit is not null"], Config),
    ?assertEqual([], [[Parent, Pid] || {Parent, Pid} <- Spawned] -- Spawns),
    ?assertEqual([[8, 8, <<"orderly">>, <<"orderly">>, true]], Customers),
    ?assertEqual([], [[Pid, Reason] || {Pid, Reason} <- Exited] -- Exits).

messages(Config) ->
    #{sent := Sent, dead := Dead} = ?config(story, Config),
    [Counts, Late] = queries(["select process, peer, count(*), count(*) filter (dead) from rows "
                              "where kind = 'message' and text not like '''$gen%' group by all",
                              "select count(*) from rows where kind = 'message' and duration_ns < 0"], Config),
    Found = maps:from_list([{{From, To}, {All, ToDead}} || [From, To, All, ToDead] <- Counts]),
    [?assertEqual({Pair, Count}, {Pair, element(1, maps:get(Pair, Found))}) || {Pair, Count} <- maps:to_list(Sent),
                                                                              not is_map_key(Pair, Dead)],
    [?assertEqual({Pair, Count}, {Pair, element(2, maps:get(Pair, Found))}) || {Pair, Count} <- maps:to_list(Dead)],
    ?assertEqual([[0]], Late).

%% Function calls; calls of servers take no longer than their callers measured.
calls(Config) ->
    #{functions := Functions, raised := Raised, called := Called} = ?config(story, Config),
    [Counts, Servers] =
        queries(["select function, count(*), count(*) filter (outcome = 'exception') from rows "
                 "where kind = 'call' group by all",
                 "select c.process, p.name, c.outcome, c.duration_ns from rows c join rows p on "
                 "p.kind = 'process' and p.process_number = c.peer_number where c.kind = 'server_call' and "
                 "p.name like 'shop_%' order by c.time_ns"], Config),
    ?assertEqual(lists:sort([[Mfa, Count, maps:get(Mfa, Raised, 0)] || {{_, Mfa}, Count} <- maps:to_list(Functions)]),
                 lists:sort(Counts)),
    Known = [{Caller, atom_to_binary(Server), atom_to_binary(Outcome), Us * 1000}
             || {Caller, Server, Outcome, Us} <- Called],
    Found = [list_to_tuple(Row) || Row <- Servers],
    Keys = fun(All) -> lists:sort([{Caller, Server, Outcome} || {Caller, Server, Outcome, _} <- All]) end,
    ?assertEqual({[], []}, {Keys(Known) -- Keys(Found), Keys(Found) -- Keys(Known)}),
    %% The calls of a process are in order in both.
    [?assert(Ns < Most + 1000, {Caller, Server, Ns, Most})
     || Caller <- lists:usort([element(1, Call) || Call <- Known]),
        {{_, Server, reply, Most}, {_, Server, <<"reply">>, Ns}}
            <- lists:zip([Call || Call <- Known, element(1, Call) =:= Caller],
                         [Call || Call <- Found, element(1, Call) =:= Caller])].

spans(Config) ->
    #{spans := Spans} = ?config(story, Config),
    [Found] = queries(["select process, span, outcome, duration_ns >= 5000000, telemetry from rows "
                       "where kind = 'span' order by time_ns"], Config),
    ?assertEqual([[Pid, atom_to_binary(Name), atom_to_binary(Outcome), Name =:= checkout, false]
                  || {Pid, Name, Outcome} <- Spans], Found).

%% The same as in the report, with the node and its release.
findings(Config) ->
    #{<<"findings">> := Findings, <<"recording">> := #{<<"nodes">> := [#{<<"node">> := Node, <<"otp">> := Otp}]}} =
        test_viewer:json(report, [{format, "json"}], [?config(trace, Config)]),
    [Rows, Others] = queries(["select rule, severity, text, process, process_number from rows where kind = 'finding'",
                              "select distinct node, otp from rows"], Config),
    ?assertEqual([[Rule, Severity, Text | case Process of
                                              null -> [null, null];
                                              #{<<"pid">> := Pid, <<"number">> := Number} -> [Pid, Number]
                                          end]
                  || #{<<"rule">> := Rule, <<"severity">> := Severity, <<"text">> := Text, <<"process">> := Process}
                         <- Findings], Rows),
    ?assertMatch([_ | _], [Rule || [<<"crashes">> = Rule | _] <- Rows]),
    ?assertEqual([[Node, Otp]], Others).

%% The command writes the same rows, also as Parquet with the types of the table.
command(Config) ->
    Folder = ?config(trace, Config),
    Parquet = Folder ++ ".parquet", Lines = Folder ++ ".of-command.jsonl",
    Path = ["env PATH='", filename:dirname(?config(duckdb, Config)), "':\"$PATH\""],
    {0, Printed} = test_command:run(Path, ["view", Folder, "-o", Parquet, "--recording", "it's", "--release", "1.4"]),
    ?assertEqual([Parquet], string:lexemes(binary_to_list(Printed), "\n")),
    {0, _} = test_command:run(["view", Folder, "-o", Lines]),
    [Same, Names, Described] =
        queries([["select count(*) from (select * exclude (recording, release) from '", Parquet, "' except all ",
                  "select * exclude (recording, release) from rows)"],
                 ["select recording, release, (count(*) = (select count(*) from rows)) from '", Parquet,
                  "' group by all"],
                 ["describe select * from '", Parquet, "'"]], Config),
    ?assertEqual([[0]], Same),
    ?assertEqual([[<<"it's">>, <<"1.4">>, true]], Names),
    ?assertEqual([{Name, duckdb_type(Type)} || {Name, Type, _} <- table()],
                 [{Name, Type} || [Name, Type | _] <- Described]),
    ?assertEqual([[[list_to_binary(Folder)]]],
                 queries([["select distinct recording from '", Lines, "'"]], Config)),
    {2, Wrong} = test_command:run(["view", Folder, "-o", Lines, "--rows", "17"]),
    ?assertMatch({match, _}, re:run(Wrong, "\\.jsonl has --recording, --release")).

%% The cause of a snapshot is a row of its node.
snapshot(Config) ->
    Snapshot = filename:join(?config(priv_dir, Config), "20261129-105500-crash"),
    Output = Snapshot ++ ".jsonl",
    ok = filelib:ensure_path(Snapshot),
    {0, _} = test_shell:run("cp -r '~ts' '~ts/recording'", [?config(trace, Config), Snapshot]),
    ok = file:write_file(filename:join(Snapshot, "cause.json"),
                         "{\"cause\": \"crash\", \"node\": \"nonode@nohost\", \"time\": 1795949700.25, "
                         "\"text\": \"{burnt,bread}\\t\", \"more\": 3}"),
    {0, _} = test_command:run(["view", Snapshot, "-o", Output]),
    Otp = list_to_binary(erlang:system_info(otp_release)),
    ?assertMatch([[[<<"nonode@nohost">>, Otp, <<"1795949700250000000">>, <<"crash">>, <<"{burnt,bread}", _/binary>>]]],
                 queries([["select node, otp, time_ns, cause, text from '", Output, "' where kind = 'snapshot'"]],
                         Config)).

%% The message says what to install; nothing is written.
without_duckdb(Config) ->
    Output = ?config(trace, Config) ++ ".absent.parquet",
    Path = filename:join(?config(priv_dir, Config), "empty"),
    ok = filelib:ensure_path(Path),
    {0, Babeltrace2} = test_shell:run("command -v babeltrace2 | tr -d '\\n'", []),
    ok = file:make_symlink(Babeltrace2, filename:join(Path, "babeltrace2")),
    {4, Printed} = test_command:run(["env PATH='", Path, "':/usr/bin:/bin"],
                                    ["view", ?config(trace, Config), "-o", Output]),
    ?assertMatch({match, _}, re:run(Printed, "DuckDB.* is not installed\n  next: install the program `duckdb`")),
    ?assertEqual({error, enoent}, file:read_file_info(Output)).

%% -- Columns ---------------------------------------------------------------------------------------------

%% Each kind of row has the columns of the table, and only those.
columns(Config) ->
    Params = [{recording, "everything"}, {release, "1.4"}],
    Rows = test_fleet:rows(test_viewer:make(everything(), Config), Params, Config),
    [Found] = queries([["select distinct json->>'$.kind', unnest(json_keys(json)) from read_ndjson_objects('", Rows,
                        "')"]], Config),
    Kinds = lists:usort([Kind || [Kind, _] <- Found]),
    Table = [[Kind, Column] || {Column, _, Of} <- table(), Kind <- Kinds,
                               Of =:= <<"*">> orelse lists:member(Kind, binary:split(Of, <<" ">>, [global]))],
    %% A snapshot is a row of the command.
    ?assertEqual(11 - 1, length(Kinds)),
    ?assertEqual({[], []}, {Table -- Found, Found -- Table}).

%% {Name, type, kinds}
table() ->
    {ok, Text} = file:read_file(filename:join(test_command:package(), "dyntrace_command/common/row_columns.tsv")),
    [begin
         [Name, Type, Kinds, _] = binary:split(Line, <<"\t">>, [global]),
         {Name, Type, Kinds}
     end || Line = <<First, _/binary>> <- binary:split(Text, <<"\n">>, [global]), First =/= $#].

duckdb_type(<<"text">>) -> <<"VARCHAR">>;
duckdb_type(<<"integer">>) -> <<"BIGINT">>;
duckdb_type(<<"boolean">>) -> <<"BOOLEAN">>.

%% A recording that has each column.
everything() ->
    Port = "#Port<0.5>",
    [event(100, node_identity, #{node => "shop@one", prefix => "0", otp => "27", os_pid => 17}),
     event(200, process_identity, #{pid => ?A, parent => "<0.1.0>", initial => "shop:init/1", name => "shop",
                                    label => "{shop,1}"}),
     event(300, process_spawn, #{pid => ?B, parent => ?A, entry => "shop:till/1"}),
     event(310, process_register, #{pid => ?B, name => "till", type => "register"}),
     event(400, port_open, #{pid => ?A, driver => "tcp_inet", port => Port})]
        ++ known() ++
        [event(20000, telemetry_event, #{pid => ?A, name => "shop.order.stop", duration => 500,
                                         measurements => "#{}", metadata => "#{route=>a}"}),
         event(21000, process_sample, #{pid => ?A, queue => 17, memory => 4711, reductions => 5,
                                        entry => "a:b/1", state => "waiting"}),
         event(22000, vm_counter, #{name => "memory_binary", value => 17, unit => "bytes"}),
         token(23001, seq_trace_send, 1), token(23500, seq_trace_receive, 1),
         #{time => 23550, lost => 12}, in(23560, ?A, "a:b/1"),
         on_other(event(23600, node_identity, #{node => "shop@other", prefix => "0", otp => "27", os_pid => 18})),
         event(23700, node_identity, #{node => "shop@other", prefix => "9001", otp => "27", os_pid => 18}),
         send(24000, ?A, "<9001.99.0>", ?REQUEST), on_other(in(24100, "<0.99.0>", "a:b/1")),
         event(24900, process_identity, #{pid => ?B, initial => "shop:till/1", name => "till", label => "{till,1}"}),
         event(25000, process_exit, #{pid => ?B, reason => "{badmatch,[]}"})].

%% Intervals, calls, a call of a server, a span. The first return shows that returns are recorded.
known() ->
    [event(500, function_call, #{pid => ?A, entry => "a:first/0"}),
     event(600, function_return, #{pid => ?A, entry => "a:first/0"}),
     in(1000, ?A, "a:b/1"),
     event(1100, function_call, #{pid => ?A, entry => "a:b/1"}),
     event(1200, function_call, #{pid => ?A, entry => "a:c/1"}),
     event(1300, function_exception, #{pid => ?A, entry => "a:c/1", class => "error"}),
     event(1600, function_return, #{pid => ?A, entry => "a:b/1"}),
     event(1700, gc_major_start, #{pid => ?A}),
     event(1900, gc_major_end, #{pid => ?A, reclaimed => 17, heap => 100, old_heap => 200}),
     send(2000, ?A, ?B, ?REQUEST), delivery(2100, ?A, ?B, ?REQUEST), out(2500, ?A, "gen:do_call/4"),
     in(4000, ?B, "gen_server:loop/7"), send(5000, ?B, ?A, ?REPLY), delivery(5100, ?B, ?A, ?REPLY),
     out(6000, ?B, "gen_server:loop/7"), in(7000, ?A, "gen:do_call/4"),
     event(7100, user_span_start, #{pid => ?A, name => "order", id => 1}),
     event(7400, user_span_stop, #{pid => ?A, name => "order", id => 1, duration => 300, outcome => "ok"}),
     out(8000, ?A, "a:b/1")].

%% Durations and sizes are those of the events.
values(Config) ->
    Rows = test_fleet:rows(test_viewer:make(known(), Config), [], Config),
    Read = fun(Columns, Where) -> ["select ", Columns, " from rows where ", Where, " order by time_ns, depth"] end,
    [Calls, Collections, Runs, ServerCalls, Spans, Messages] =
        queries([Read("function, time_ns, duration_ns, own_ns, depth, outcome, class",
                      "kind = 'call' and time_ns > 1000"),
                 Read("duration_ns, major, reclaimed_bytes, heap_bytes, old_heap_bytes", "state = 'collecting'"),
                 Read("process, duration_ns", "state = 'running'"),
                 Read("process, peer, duration_ns, queued_ns, served_ns, outcome, text", "kind = 'server_call'"),
                 Read("span, time_ns, duration_ns, outcome, telemetry", "kind = 'span'"),
                 Read("process, peer, duration_ns, matched, inferred, dead", "kind = 'message'")],
                [{rows, Rows} | Config]),
    ?assertEqual([[<<"a:b/1">>, 1100, 500, 400, 0, <<"return">>, null],
                  [<<"a:c/1">>, 1200, 100, 100, 1, <<"exception">>, <<"error">>]], Calls),
    ?assertEqual([[200, true, 136, 800, 1600]], Collections),
    ?assertEqual([?b(?A), ?b(?A), ?b(?B), ?b(?A)], [Pid || [Pid, _] <- Runs]),
    ?assertEqual([700, 600, 2000, 1000], [Ns || [_, Ns] <- Runs]),
    ?assertEqual([[?b(?A), ?b(?B), 3000, 1900, 1000, <<"reply">>, <<"{get,17}">>]], ServerCalls),
    ?assertEqual([[<<"order">>, 7100, 300, <<"ok">>, false]], Spans),
    ?assertEqual([[?b(?A), ?b(?B), 100, <<"sender">>, false, false],
                  [?b(?B), ?b(?A), 100, <<"sender">>, false, false]], Messages).

%% Rows before the identity of the node have its name, too.
late_name(Config) ->
    Identity = #{node => "shop@one", prefix => "0", otp => "27", os_pid => 17},
    Trace = test_viewer:make([in(1000, ?A, "a:b/1"), out(2000, ?A, "a:b/1"), event(3000, node_identity, Identity)],
                             Config),
    Rows = test_fleet:rows(Trace, [], Config),
    ?assertEqual([[[<<"shop@one">>, <<"27">>]]],
                 queries(["select distinct node, otp from rows"], [{rows, Rows} | Config])).

%% -- A fleet ---------------------------------------------------------------------------------------------

%% The queries of docs/fleet.md find what test_fleet knows.
fleet(Config) ->
    {Rows, Known} = test_fleet:make(Config),
    ?assertEqual([[[<<"crashes">> | Known]], [[<<"crash">> | Known]]],
                 queries([test_fleet:documented("fleet.md", Regex) || Regex <- ["SELECT rule.*?;", "SELECT cause.*?;"]],
                         [{rows, Rows} | Config])).

%% -- Helpers ---------------------------------------------------------------------------------------------

event(Ns, Probe, Fields) -> {Ns, Probe, Fields, #{vpid => 17, vtid => 18, procname => "1_scheduler"}}.
on_other({Ns, Probe, Fields, Where}) -> {Ns, Probe, Fields, Where#{vpid => 18, vtid => 19}}.
in(Ns, Pid, Entry) -> event(Ns, process_scheduled, #{pid => Pid, entry => Entry, type => "in"}).
out(Ns, Pid, Entry) -> event(Ns, process_scheduled, #{pid => Pid, entry => Entry, type => "out"}).
send(Ns, From, To, Text) -> event(Ns, message_send, #{from => From, to => To, message => Text}).
delivery(Ns, From, To, Text) -> event(Ns, message_delivery, #{from => From, to => To, message => Text}).
token(Ns, Probe, Serial) ->
    event(Ns, Probe, #{label => "17", from => ?A, to => ?B, previous => Serial - 1, current => Serial, message => "m"}).

%% The rows that each query returns, from the view `rows' of docs/rows.md.
queries(Queries, Config) ->
    View = case proplists:get_value(rows, Config) of
               undefined -> [];
               File -> [string:replace(test_fleet:documented("rows.md", "CREATE VIEW rows.*?;"), "rows/*.jsonl", File)]
           end,
    Output = filename:join(?config(priv_dir, Config), "queried.json"),
    {0, _} = test_shell:run("'~ts'~ts > '~ts'", [?config(duckdb, Config),
                                                 [[" -c ", test_command:quoted(Query)] || Query <- View ++ Queries],
                                                 Output]),
    lists:nthtail(length(View), test_viewer:decode(Output)).
