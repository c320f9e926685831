%% The sink `perfetto': Perfetto's trace processor reads each trace without errors and answers SQL queries; protoc shows
%% which fields that version does not know.
-module(perfetto_SUITE).

-include("../support/suite.hrl").

-import(test_viewer, [in/3, out/3, send/4, receipt/3, delivery/4, call/3, return/3]).

-define(WHERE, #{vpid => 17, vtid => 18, procname => "1_scheduler"}).
-define(A, "<0.90.0>").
-define(B, "<0.91.0>").
%% A text as a table returns it.
-define(b(Text), (list_to_binary(Text))).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [{group, known}, {group, bytes}, {group, recorded}, {group, any}, profile].

groups() ->
    [{known, [], [schedulers, states, without_waiting, messages, inferred_messages, unmatched_messages,
                  without_messages, without_texts, calls, entered_before, entered_in_a_gap, server_calls, spans,
                  telemetry, requests, spawns, exits, pid_used_again, kinds, thinned, nothing, instants, other_events,
                  counters, lost, nodes_of_one_pid, groups, ports]},
     {bytes, [], [known_fields, flows_twice, order_of_processes, harmless_texts, invalid_utf8, names_are_bounded]},
     {recorded, [], [story, documented]},
     {any, [], [random_events, many_processes]}].

init_per_suite(Config) ->
    test_require:tool(test_perfetto:missing(), Config).

end_per_suite(_) -> ok.

%% The story of test_shop is recorded once.
init_per_group(recorded, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "story"),
    _ = test_recording:make(Folder, #{env => [{functions, test_shop:functions()}]},
                            fun([Node]) -> test_node:call(Node, fun test_shop:run/0) end),
    [{picture, test_perfetto:make(Folder, [])} | Config];
init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% -- A profile of the command --------------------------------------------------------------------

%% The samples of a profile are at the right second, with their stacks, per process.
profile(Config) ->
    File = filename:join(?config(priv_dir, Config), "profile.pftrace"),
    Script = "import collections, sys\n"
        "from dyntrace_command.profiling.perfetto_trace import callstacks\n"
        "from dyntrace_command.profiling.sample_paths import Path\n"
        "till = ('<0.90.0> till', '<0.90.0>')\n"
        "found = {Path(*till, ('shop:pay/1', 'lists:sort/1')): 60, Path(*till, ('shop:pay/1', 'f [kernel]'), 1): 30,\n"
        "         Path('[polling for I/O]', '', (), 1): 10}\n"
        "open(sys.argv[1], 'wb').write(callstacks(collections.Counter(found), 'shop@host'))\n",
    {0, <<>>} = test_shell:run("PYTHONPATH=~s python3 -B -c ~s ~s",
                               [test_command:quoted(Text) || Text <- [test_command:package(), Script, File]]),
    Columns = "count(*), s.ts / 1000000000, t.name, p.name, f.name, parent.name from perf_sample s "
        "join thread t using(utid) join process p using(upid) "
        "join stack_profile_callsite c on s.callsite_id = c.id join stack_profile_frame f on c.frame_id = f.id "
        "left join stack_profile_callsite above on c.parent_id = above.id "
        "left join stack_profile_frame parent on above.frame_id = parent.id",
    ?assertEqual([[60, 0, ?b(?A " till"), <<"shop@host">>, <<"lists:sort/1">>, <<"shop:pay/1">>],
                  [30, 1, ?b(?A " till"), <<"shop@host">>, <<"f [kernel]">>, <<"shop:pay/1">>],
                  [10, 1, <<"[polling for I/O]">>, <<"shop@host">>, <<"[polling for I/O]">>, null]],
                 test_perfetto:rows(File, ["select ", Columns, " group by 2, 3, 5 order by 1 desc"])).

%% -- Known content -------------------------------------------------------------------------------

%% Which process each scheduler ran, with begin and end.
schedulers(Config) ->
    File = trace([in(1000, ?A, "shop:init/1"), out(3000, ?A, "shop:loop/1"),
                  in(4000, ?B, "till:loop/1"), out(5000, ?B, "till:loop/1"),
                  in(6000, ?A, "shop:loop/1"), out(9000, ?A, "shop:loop/1")], Config),
    [[Scheduler]] = rows(File, "select distinct track from $slice where category = 'schedule'"),
    ?assertMatch({match, _}, re:run(Scheduler, "scheduler|18")),
    ?assertEqual([[1000, 2000, ?b(?A), <<"shop:init/1">>], [4000, 1000, ?b(?B), <<"till:loop/1">>],
                  [6000, 3000, ?b(?A), <<"shop:loop/1">>]],
                 rows(File, "select ts, dur, name, extract_arg(arg_set_id, 'debug.in') from $slice "
                            "where category = 'schedule' order by ts")).

%% The intervals between runs: waiting, with the function in which the process waits.
states(Config) ->
    File = trace([in(1000, ?A, "a:b/1"), out(3000, ?A, "a:c/1"), in(6000, ?A, "a:c/1"),
                  event(6500, gc_minor_start, #{pid => ?A}),
                  event(7000, gc_minor_end, #{pid => ?A, reclaimed => 17}),
                  out(9000, ?A, "a:c/1")], Config),
    ?assertEqual([[1000, 2000, <<"running">>, null], [3000, 3000, <<"waiting">>, <<"a:c/1">>],
                  [6000, 500, <<"running">>, null], [6500, 500, <<"collecting">>, null],
                  [7000, 2000, <<"running">>, null]],
                 rows(File, "select ts, dur, name, extract_arg(arg_set_id, 'debug.out') from $slice "
                            "where category = 'state' and track = '<0.90.0>' and dur > 0 order by ts")),
    ?assertEqual([[17]], rows(File, "select extract_arg(arg_set_id, 'debug.reclaimed_words') from $slice "
                                    "where name = 'collecting' and track = '<0.90.0>'")).

without_waiting(Config) ->
    File = trace([in(1000, ?A, "a:b/1"), out(3000, ?A, "a:c/1"), in(6000, ?A, "a:c/1"), out(9000, ?A, "a:c/1")],
                 [{waiting, false}], Config),
    ?assertEqual([[<<"running">>]], rows(File, "select distinct name from $slice where category = 'state'")).

%% A delivery names the sender: an arrow leads to it from the send.
messages(Config) ->
    File = trace([send(1000, ?A, ?B, "{job,1}"), delivery(2000, ?A, ?B, "{job,1}")], Config),
    ?assertEqual([[1000, <<"{job,1}">>, 2000, <<"{job,1}">>]], rows(File, flows())),
    ?assertEqual([[?b(?A), ?b(?B), <<"{job,1}">>, <<"sender">>, null],
                  %% The arrow leads to the event that has the whole text.
                  [?b(?A), ?b(?B), null, <<"sender">>, null]], rows(File, message_args())),
    ?assertEqual([[1000, 1], [2000, 0]],
                 rows(File, "select ts, cast(value as int) from counter c join counter_track t on c.track_id = t.id "
                            "where name = 'mailbox' order by ts")).

%% Without deliveries, messages are matched by order and text, and marked as such.
inferred_messages(Config) ->
    File = trace([send(1000, ?A, ?B, "{job,1}"), send(1500, ?A, ?B, "{job,2}"), receipt(2000, ?B, "{job,1}"),
                  receipt(2500, ?B, "{job,2}"), receipt(3000, ?A, "end")], Config),
    ?assertEqual([[1000, <<"{job,1}">>, 2000, <<"{job,1}">>], [1500, <<"{job,2}">>, 2500, <<"{job,2}">>]],
                 rows(File, flows())),
    ?assertEqual([[<<"order">>, 1, 4]],
                 rows(File, "select extract_arg(arg_set_id, 'debug.matched') m, extract_arg(arg_set_id, "
                            "'debug.inferred'), count(*) from $slice where category = 'message' and m = 'order' "
                            "group by 1, 2")).

%% A send or a delivery alone is an event without an arrow.
unmatched_messages(Config) ->
    File = trace([send(1000, ?A, ?B, "{job,1}"), delivery(2000, ?B, ?A, "other")], Config),
    ?assertEqual([], rows(File, flows())),
    ?assertEqual([[1000, <<"not">>], [2000, <<"not">>]],
                 rows(File, "select ts, extract_arg(arg_set_id, 'debug.matched') from $slice "
                            "where category = 'message' order by ts")).

without_messages(Config) ->
    File = trace([send(1000, ?A, ?B, "{job,1}"), delivery(2000, ?A, ?B, "{job,1}"), in(3000, ?A, "a:b/1")],
                 [{messages, false}], Config),
    ?assertEqual([[0, 0]], rows(File, "select (select count(*) from $slice where category = 'message'), "
                                      "(select count(*) from counter)")).

without_texts(Config) ->
    File = trace([send(1000, ?A, ?B, "{secret,1}"), delivery(2000, ?A, ?B, "{secret,1}")] ++ calls_of("secret"),
                 [{text, false}], Config),
    ?assertMatch([[_, _, _, _]], rows(File, flows())),
    {ok, Bytes} = file:read_file(File),
    ?assertEqual(nomatch, binary:match(Bytes, <<"secret">>)).

calls_of(Text) ->
    [call(3000, ?A, "a:b/1"),
     event(3000, function_arguments, #{pid => ?A, entry => "a:b/1", arguments => "[" ++ Text ++ "]"}),
     event(4000, function_value, #{pid => ?A, entry => "a:b/1", value => Text}), return(4000, ?A, "a:b/1")].

%% Nested slices, with how each call was left. The first return shows that returns are recorded.
calls(Config) ->
    File = trace([call(100, ?A, "a:first/0"), return(200, ?A, "a:first/0"),
                  call(1000, ?A, "a:outer/1"), call(2000, ?A, "a:inner/2"), return(4000, ?A, "a:inner/2"),
                  call(5000, ?A, "a:raises/0"),
                  event(6000, function_exception, #{pid => ?A, entry => "a:raises/0", class => "error"}),
                  return(9000, ?A, "a:outer/1")], Config),
    ?assertEqual([[<<"a:outer/1">>, 1000, 8000, 0, <<"return">>, 5000, null],
                  [<<"a:inner/2">>, 2000, 2000, 1, <<"return">>, 2000, null],
                  [<<"a:raises/0">>, 5000, 1000, 1, <<"exception">>, 1000, <<"error">>]],
                 rows(File, "select name, ts, dur, depth, extract_arg(arg_set_id, 'debug.left'), "
                            "extract_arg(arg_set_id, 'debug.own_ns'), extract_arg(arg_set_id, 'debug.class') "
                            "from $slice where category = 'call' and ts >= 1000 order by ts")).

%% Returns from functions that were entered before the recording: their slices enclose all later calls of the process.
entered_before(Config) ->
    File = trace([call(1000, ?A, "a:inner/1"), return(2000, ?A, "a:inner/1"), return(3000, ?A, "a:middle/1"),
                  call(4000, ?A, "a:inner/1"), return(5000, ?A, "a:inner/1"), return(6000, ?A, "a:outer/1")], Config),
    ?assertEqual([[<<"a:outer/1">>, 6000, 0, 1], [<<"a:middle/1">>, 3000, 1, 1], [<<"a:inner/1">>, 2000, 2, null],
                  [<<"a:inner/1">>, 5000, 1, null]],
                 rows(File, "select name, ts + dur, depth, extract_arg(arg_set_id, 'debug.inferred') from $slice "
                            "where category = 'call' order by ts, depth")).

%% A function that was entered while events were lost does not enclose earlier calls.
entered_in_a_gap(Config) ->
    File = trace([call(1000, ?A, "a:early/1"), return(2000, ?A, "a:early/1"), #{time => 3000, lost => 5},
                  call(5000, ?A, "a:inner/1"), return(6000, ?A, "a:inner/1"), return(7000, ?A, "a:outer/1")], Config),
    [[Begin, 7000, 1]] = rows(File, "select ts, ts + dur, extract_arg(arg_set_id, 'debug.inferred') from $slice "
                                    "where name = 'a:outer/1'"),
    ?assert(Begin >= 2000),
    ?assertEqual([[1000, 0]], rows(File, "select ts, depth from $slice where name = 'a:early/1'")).

%% The slices of caller and server are joined by an arrow.
server_calls(Config) ->
    Request = "{'$gen_call',{<0.90.0>,[alias|#Ref<0.1.2.3>]},{get,17}}", Reply = "{[alias|#Ref<0.1.2.3>],ok}",
    File = trace([in(1000, ?A, "a:b/1"), send(2000, ?A, ?B, Request), delivery(2100, ?A, ?B, Request),
                  out(2500, ?A, "gen:do_call/4"),
                  in(4000, ?B, "gen_server:loop/7"), send(5000, ?B, ?A, Reply), delivery(5100, ?B, ?A, Reply),
                  out(6000, ?B, "gen_server:loop/7"), in(7000, ?A, "gen:do_call/4"), out(8000, ?A, "a:b/1")], Config),
    ?assertEqual([[<<"server calls">>, 2000, 3000, <<"{get,17}">>, <<"reply">>, 100],
                  [<<"requests">>, 4000, 1000, <<"{get,17}">>, null, null]],
                 rows(File, "select track, ts, dur, extract_arg(arg_set_id, 'debug.request'), "
                            "extract_arg(arg_set_id, 'debug.outcome'), extract_arg(arg_set_id, 'debug.delivered_ns') "
                            "from $slice where category = 'server_call' order by ts")),
    ?assertEqual([[2000, 4000]], [[Out, In] || [Out, _, In, _] <- rows(File, flows("server_call"))]).

%% Overlapping spans have separate tracks; nested spans share one.
spans(Config) ->
    Start = fun(Time, Id, Name) -> event(Time, user_span_start, #{pid => ?A, name => Name, id => Id}) end,
    Stop = fun(Time, Id, Name, Duration) ->
                   event(Time, user_span_stop, #{pid => ?A, name => Name, id => Id, duration => Duration,
                                                 outcome => "ok"})
           end,
    File = trace([Start(1000, 1, "order"), Start(2000, 2, "pay"), Stop(3000, 2, "pay", 1000),
                  Start(4000, 3, "send"), Stop(5000, 1, "order", 4000), Stop(6000, 3, "send", 2000)], Config),
    ?assertEqual([[<<"order">>, 1000, 4000, 0, <<"ok">>], [<<"pay">>, 2000, 1000, 1, <<"ok">>],
                  [<<"send">>, 4000, 2000, 0, <<"ok">>]],
                 rows(File, "select name, ts, dur, depth, extract_arg(arg_set_id, 'debug.outcome') from $slice "
                            "where category = 'span' order by ts")),
    ?assertEqual([[2]], rows(File, "select count(distinct track_id) from $slice where category = 'span'")).

%% Spans of telemetry begin before their events. An event without a duration is an instant.
telemetry(Config) ->
    Event = fun(Time, Name, Duration, Metadata) ->
                    event(Time, telemetry_event, #{pid => ?A, name => Name, duration => Duration,
                                                   measurements => "#{}", metadata => Metadata})
            end,
    File = trace([Event(1000, "shop.order.start", -1, "#{route=><<\"/orders\">>}"),
                  Event(2000, "shop.repo.query", 500, "#{source=><<\"orders\">>,query=><<\"SELECT 1\">>}"),
                  Event(3000, "shop.order.exception", 2000, "#{route=><<\"/orders\">>,kind=>throw}"),
                  Event(4000, "vm.memory", -1, "#{}")], Config),
    ?assertEqual([[<<"shop.order /orders">>, 1000, 2000, <<"throw">>, <<"#{route=><<7 bytes>>,kind=>throw}">>],
                  [<<"shop.repo.query orders">>, 1500, 500, <<"ok">>, <<"#{source=><<6 bytes>>,query=><<8 bytes>>}">>]],
                 rows(File, "select name, ts, dur, extract_arg(arg_set_id, 'debug.outcome'), "
                            "extract_arg(arg_set_id, 'debug.metadata') from $slice where category = 'span' "
                            "order by ts")),
    ?assertEqual([[4000, <<"vm.memory">>]], rows(File, "select ts, name from $slice where category = 'event'")).

%% An arrow leads from the parent to the child's first slice; without such a slice, no arrow is drawn.
spawns(Config) ->
    Spawn = fun(Time, Pid) -> event(Time, process_spawn, #{pid => Pid, parent => ?A, entry => "a:b/1"}) end,
    File = trace([in(500, ?A, "a:a/1"), Spawn(1000, ?B), in(2000, ?B, "a:b/1"), out(3000, ?B, "a:b/1"),
                  Spawn(4000, "<0.92.0>"), out(5000, ?A, "a:a/1")], Config),
    [[1000, <<"spawn">>, First, _]] = rows(File, flows("spawn")),
    ?assert(First =< 2000),
    ?assertEqual([[1000], [4000]], rows(File, "select ts from $slice where category = 'spawn' order by ts")).

exits(Config) ->
    File = trace([in(1000, ?A, "a:b/1"), event(2000, process_link, #{from => ?A, to => ?B, type => "link"}),
                  event(3000, process_exit, #{pid => ?A, reason => "{badmatch,1}"}),
                  event(4000, process_exit, #{pid => ?B, reason => "normal"})], Config),
    ?assertEqual([[3000, <<"crash">>, <<"{badmatch,1}">>, ?b(?B)], [4000, <<"exit">>, <<"normal">>]],
                 [[Cell || Cell <- Row, Cell =/= null]
                  || Row <- rows(File, "select ts, name, extract_arg(arg_set_id, 'debug.reason'), "
                                       "extract_arg(arg_set_id, 'debug.linked') from $slice "
                                       "where category = 'exit' order by ts")]).

%% The second process with the same pid has its own track.
pid_used_again(Config) ->
    Life = fun(Time) ->
                   [event(Time, process_spawn, #{pid => ?B, parent => ?A, entry => "a:b/1"}),
                    in(Time + 1000, ?B, "a:b/1"), event(Time + 2000, process_exit, #{pid => ?B, reason => "normal"})]
           end,
    File = trace(Life(1000) ++ Life(10000) ++ Life(20000), Config),
    Tracks = rows(File, "select distinct track from $slice where category = 'state'"),
    ?assertEqual(["", " #2", " #3"],
                 lists:sort([[Char || Match <- [re:run(Track, " #\\d$", [{capture, first, list}])],
                                      {match, [Text]} <- [Match], Char <- Text] || [Track] <- Tracks])).

%% Short-lived processes of one kind are below a track that counts them, unless they are few.
kinds(Config) ->
    Life = fun(N, Entry) ->
                   Pid = lists:flatten(io_lib:format("<0.~b.0>", [200 + N])),
                   [event(N * 10000, process_spawn, #{pid => Pid, parent => ?A, entry => Entry}),
                    in(N * 10000 + 1000, Pid, Entry), out(N * 10000 + 2000, Pid, Entry),
                    event(N * 10000 + 3000, process_exit, #{pid => Pid, reason => "normal"})]
           end,
    File = trace(lists:append([Life(N, "a:worker/0") || N <- lists:seq(1, 9)] ++
                                  [Life(N, "a:other/0") || N <- lists:seq(10, 12)]), Config),
    Tracks = tracks(File),
    %% protoc writes "×" as its bytes.
    [{Kind, {<<"a:worker/0 \\303\\227 9">>, _}}] =
        [Track || Track = {_, {Name, _}} <- Tracks, binary:match(Name, <<"\\303\\227">>) =/= nomatch],
    ?assertEqual(9, length([1 || {_, {_, Above}} <- Tracks, Above =:= Kind])).

%% Of very many intervals, those too short to be visible are merged into one, which says what it contains. No time is
%% lost.
thinned(Config) ->
    Count = 30000,
    Events = lists:append([[in(N * 10000, ?A, "a:b/1"), out(N * 10000 + 1000, ?A, "a:c/1")]
                           || N <- lists:seq(1, Count)]),
    File = trace([in(100, ?B, "a:b/1"), out(1100, ?B, "a:b/1")] ++ Events, Config),
    [[[Whole, Ran]], [[Merged, Held, Within]]] =
        all_rows(File, ["select count(*), sum(dur) from $slice where category = 'state' and name = 'running' "
                        "and track = '<0.90.0>'",
                        "select count(*), sum(extract_arg(arg_set_id, 'debug.count')), "
                        "sum(extract_arg(arg_set_id, 'debug.running_ns')) from $slice "
                        "where category = 'state' and name = 'short intervals'"]),
    ?assertEqual(Count * 1000, Ran + Within),
    ?assert(Whole >= 5000, Whole),
    ?assert(Whole + Merged < Count * 9 div 10, {Whole, Merged}),
    ?assert(Held > Merged),
    ?assertMatch([_], [1 || Packet <- test_perfetto:packets(File),
                            binary:match(Packet, <<"short intervals are merged">>) =/= nomatch]).

nothing(Config) ->
    File = filename:join(?config(priv_dir, Config), "nothing.pftrace"),
    {0, Said} = test_viewer:view(perfetto, [{path, File}], [test_viewer:make([{1, "other:event", #{}}], Config)]),
    ?assertMatch({_, _}, binary:match(Said, <<"nothing to show: the recording has no events of dyntrace">>)).

instants(Config) ->
    File = trace([event(1000, log, #{pid => ?A, level => "warning", text => "It's late."}),
                  event(2000, user_mark, #{pid => ?A, name => "cache_miss", value => 17, text => "user 4711"}),
                  event(3000, vm_long_gc, #{pid => ?A, duration => 120}),
                  event(4000, process_register, #{pid => ?A, name => "shop", type => "register"})], Config),
    ?assertEqual([[1000, <<"log">>, <<"warning: It's late.">>], [2000, <<"marks">>, <<"cache_miss">>],
                  [3000, <<"VM events">>, <<"vm_long_gc">>], [4000, <<"events">>, <<"register">>]],
                 rows(File, "select ts, track, name from $slice order by ts")),
    ?assertEqual([[17, <<"user 4711">>]],
                 rows(File, "select extract_arg(arg_set_id, 'debug.value'), extract_arg(arg_set_id, 'debug.text') "
                            "from $slice where name = 'cache_miss'")).

%% A probe without a meaning of its own has the probe's name and fields.
other_events(Config) ->
    File = trace([event(1000, "erlang:process__hibernate", #{p => ?A, mfa => "erlang:hibernate/3"}),
                  event(2000, "erlang:copy__struct", #{size => 17})], Config),
    ?assertEqual([[1000, <<"events">>, <<"process__hibernate">>], [2000, <<"VM events">>, <<"copy__struct">>]],
                 rows(File, "select ts, track, name from $slice order by ts")),
    ?assertEqual([[<<"erlang:hibernate/3">>, null], [null, 17]],
                 rows(File, "select extract_arg(arg_set_id, 'debug.mfa'), extract_arg(arg_set_id, 'debug.size') "
                            "from $slice order by ts")).

counters(Config) ->
    Sample = fun(Time, Value) ->
                     event(Time, vm_counter, #{name => "memory_binary", value => Value, unit => "bytes"})
             end,
    File = trace([Sample(1000, 17), Sample(2000, 4711)], Config),
    ?assertEqual([[1000, 17, <<"bytes">>], [2000, 4711, <<"bytes">>]],
                 rows(File, "select ts, cast(value as int), unit from counter c join counter_track t "
                            "on c.track_id = t.id where t.name = 'memory_binary' order by ts")).

%% The messages of a request are on a track with its label while they are in flight.
requests(Config) ->
    Token = fun(Ns, Probe, From, To, Serial) ->
                    event(Ns, Probe, #{label => "{shop,17}", from => From, to => To, previous => Serial - 1,
                                       current => Serial, message => "{job,1}"})
            end,
    File = trace([in(500, ?A, "a:b/1"), in(600, ?B, "a:b/1"),
                  send(1000, ?A, ?B, "{job,1}"), Token(1001, seq_trace_send, ?A, ?B, 1),
                  delivery(2000, ?A, ?B, "{job,1}"), Token(2500, seq_trace_receive, ?A, ?B, 1),
                  send(3000, ?B, ?A, "{job,2}"), delivery(3500, ?B, ?A, "{job,2}")], Config),
    Name = unicode:characters_to_binary(?A ++ " → " ++ ?B ++ "  {job,1}"),
    ?assertEqual([[<<"request {shop,17}">>, 1000, 1000, Name, <<"sender">>]],
                 rows(File, "select track, ts, dur, name, extract_arg(arg_set_id, 'debug.matched') from $slice "
                            "where category = 'request'")).

lost(Config) ->
    File = trace([in(1000, ?A, "a:b/1"), #{time => 2000, lost => 12}, in(3000, ?A, "a:b/1"), out(4000, ?A, "a:b/1")],
                 Config),
    ?assertEqual([[1000, 1000, <<"LOST 12 events (gap)">>, 12]],
                 rows(File, "select ts, dur, name, extract_arg(arg_set_id, 'debug.count') from $slice "
                            "where category = 'lost'")).

%% Two containers use the same numbers: Perfetto has two processes.
nodes_of_one_pid(Config) ->
    Node = fun(Trace, Time) -> {Time, process_scheduled, #{pid => ?A, entry => "a:b/1", type => "in"},
                                #{trace => Trace}} end,
    File = trace([#{environment => #{hostname => "one", vpid => 17}, trace => 0},
                  #{environment => #{hostname => "other", vpid => 17}, trace => 1},
                  Node(0, 1000), Node(1, 2000), Node(0, 3000), Node(1, 4000)], Config),
    ?assertMatch([[2, 2]], rows(File, "select count(distinct pid), count(distinct name) from process where pid > 0")).

%% Processes are grouped below the nearest named ancestor.
groups(Config) ->
    File = trace([event(1000, process_register, #{pid => ?A, name => "shop_sup", type => "register"}),
                  event(2000, process_spawn, #{pid => ?B, parent => ?A, entry => "a:b/1"}),
                  in(3000, ?B, "a:b/1"), out(4000, ?B, "a:b/1")], Config),
    Tracks = tracks(File),
    {B, Parent} = hd([{Name, Above} || {_, {Name, Above}} <- Tracks, binary:match(Name, ?b(?B)) =/= nomatch]),
    ?assertMatch({<<"shop_sup", _/binary>>, _}, proplists:get_value(Parent, Tracks), B).

ports(Config) ->
    Port = "#Port<0.5>",
    File = trace([event(1000, port_open, #{pid => ?A, driver => "tcp_inet", port => Port}),
                  event(2000, port_scheduled, #{port => Port, entry => "command", type => "in"}),
                  event(3000, port_scheduled, #{port => Port, entry => "command", type => "out"}),
                  event(4000, port_exit, #{port => Port, reason => "normal"})], Config),
    Tracks = tracks(File),
    [Above] = lists:usort([Above || {_, {Name, Above}} <- Tracks, binary:match(Name, <<"#Port<0.5>">>) =/= nomatch]),
    ?assertMatch({<<"ports">>, _}, proplists:get_value(Above, Tracks)).

%% -- Bytes -----------------------------------------------------------------------------------------

%% protoc shows unknown fields as numbers.
known_fields(Config) ->
    [?assertEqual(nomatch, re:run(Packet, "^\\s*\\d+[: ]", [multiline]), Packet)
     || Packet <- test_perfetto:packets(everything(Config))].

%% Current versions of Perfetto read one pair of fields, old versions the other.
flows_twice(Config) ->
    Packets = [Packet || Packet <- test_perfetto:packets(everything(Config)),
                         binary:match(Packet, <<"flow_ids">>) =/= nomatch],
    ?assertNotEqual([], Packets),
    [?assertEqual(numbers(Packet, Field ++ "_old"), numbers(Packet, Field), Packet)
     || Packet <- Packets, Field <- ["flow_ids", "terminating_flow_ids"]],
    Ends = fun(Field) -> lists:sort(lists:append([numbers(Packet, Field) || Packet <- Packets])) end,
    ?assertEqual(Ends("flow_ids"), Ends("terminating_flow_ids")),
    ?assertEqual(Ends("flow_ids"), lists:usort(Ends("flow_ids"))).

%% The busiest process comes first, by rank.
order_of_processes(Config) ->
    File = trace([in(1000, ?A, "a:b/1"), out(2000000, ?A, "a:b/1"), in(3000000, ?B, "a:b/1"),
                  out(9000000, ?B, "a:b/1")], Config),
    Rank = fun(Pid) ->
                   [[Rank]] = [numbers(Packet, "sibling_order_rank")
                               || Packet <- test_perfetto:packets(File),
                                  re:run(Packet, "track_descriptor \\{\\s+uuid: \\d+\\s+(parent_uuid: \\d+\\s+)?"
                                                 "name: \"" ++ Pid ++ "\"") =/= nomatch],
                   Rank
           end,
    ?assert(Rank(?B) < Rank(?A)).

%% Control characters and characters that change the text direction are escaped; other characters are unchanged.
harmless_texts(Config) ->
    File = trace([send(1000, ?A, ?B, <<"a", 27, "[2J", 7, "\n\t", 127, 16#9b/utf8, 16#202e/utf8>>),
                  send(2000, ?A, ?B, <<"</script>'\"\\ ", 16#e4/utf8, 16#1f600/utf8>>),
                  send(3000, ?A, ?B, binary:copy(<<16#1f600/utf8>>, 300))], Config),
    [[Control], [Plain], [Long]] =
        rows(File, "select extract_arg(arg_set_id, 'debug.text') from $slice where category = 'message' order by ts"),
    ?assertEqual(<<"a\\\\x1b[2J\\\\x07\\\\n\\\\t\\\\x7f\\\\xc2\\\\x9b\\\\xe2\\\\x80\\\\xae">>, Control),
    ?assertEqual(<<"</script>'\"\\\\ ", 16#e4/utf8, 16#1f600/utf8>>, Plain),
    ?assertMatch({match, _}, re:run(Long, <<"^", 16#1f600/utf8, "+", 16#2026/utf8, "$">>, [unicode])).

%% A recording may contain any bytes.
invalid_utf8(Config) ->
    Recording = test_viewer:make([where(send(1000, ?A, ?B, "bytes ABC"))], Config),
    [Stream] = [File || File <- filelib:wildcard(filename:join(Recording, "**/channel*")), filelib:is_regular(File)],
    {ok, Bytes} = file:read_file(Stream),
    ok = file:write_file(Stream, binary:replace(Bytes, <<"bytes ABC">>, <<"bytes ", 255, 16#c3, 16#28>>, [global])),
    File = test_perfetto:make(Recording, []),
    ?assertEqual([[<<"bytes \\\\xff\\\\xc3(">>]], rows(File, "select name from $slice where category = 'message'")).

%% After so many names, the tables of the writer and the reader are reset, and the names stay correct.
names_are_bounded(Config) ->
    Count = 110000,
    Mark = fun(Time, N) ->
                   event(1000 * Time, user_mark, #{pid => ?A, name => io_lib:format("mark ~b", [N]), value => N})
           end,
    File = trace([Mark(N, N) || N <- lists:seq(1, Count)] ++ [Mark(Count + 1, 1), Mark(Count + 2, Count)], Config),
    Cleared = [Packet || Packet <- test_perfetto:packets(File),
                         binary:match(Packet, <<"sequence_flags: 3\n">>) =/= nomatch],
    ?assertEqual(2, length(Cleared)),
    ?assertEqual([[[Count]], [[0]]],
                 all_rows(File, ["select count(distinct name) from slice where category = 'mark'",
                                 "select count(*) from slice where category = 'mark' and "
                                 "name != 'mark ' || extract_arg(arg_set_id, 'debug.value')"])).

%% -- A recorded story ------------------------------------------------------------------------------

story(Config) ->
    File = ?config(picture, Config),
    sound(File),
    [[Messages, Flows, Runs]] = rows(File, "select (select count(*) from $slice where category = 'message'), "
                                           "(select count(*) from flow), "
                                           "(select count(*) from $slice where category = 'schedule')"),
    ?assert(Messages > 100 andalso Flows > 50 andalso Runs > 100, {Messages, Flows, Runs}).

%% The queries of the document, verbatim: they return the columns that it shows, and at least one row.
documented(Config) ->
    {ok, Page} = file:read_file(filename:join(test_shell:project(), "docs/perfetto.md")),
    {match, Queries} = re:run(Page, "^```sql\\n(.*?)^```\\n\\n```text\\n(.*?)\\n",
                              [global, multiline, dotall, {capture, all_but_first, binary}]),
    ?assertEqual(5, length(Queries)),
    [?assertMatch({Columns, [_ | _]},
                  begin
                      [Names | Rows] = test_perfetto:query(?config(picture, Config), Sql),
                      {Names, Rows}
                  end, Sql)
     || [Sql, Shown] <- Queries, Columns <- [re:split(Shown, " +")]].

%% -- Any recording ---------------------------------------------------------------------------------

%% Random events of a few processes, so that they interact: returns without calls, processes that run after their exit,
%% lost events.
random_events(Config) ->
    Seed = os:getenv("DYNTRACE_SEED", "17"),
    _ = rand:seed(exsss, list_to_integer(Seed)),
    [begin
         File = trace([random_event(1000 * N) || N <- lists:seq(1, 1000)], Config),
         sound(File)
     end || _ <- lists:seq(1, 5)].

random_event(Time) ->
    Pid = random([?A, ?B, "<0.92.0>"]),
    Other = random([?A, ?B, "<0.92.0>", "shop"]),
    Entry = random(["a:b/1", "a:c/2", "a:d/3"]),
    Text = random(["one", "{'$gen_call',{<0.90.0>,#Ref<0.1.2.3>},get}", "{#Ref<0.1.2.3>,ok}"]),
    %% Some events have the same time.
    At = Time - random([0, 0, 1000]),
    case rand:uniform(17) of
        1 -> #{time => Time, lost => rand:uniform(20)};
        2 -> event(At, process_spawn, #{pid => Pid, parent => Other, entry => Entry});
        3 -> event(At, process_exit, #{pid => Pid, reason => Text});
        N when N < 6 -> in(At, Pid, Entry);
        N when N < 8 -> out(At, Pid, Entry);
        8 -> event(At, gc_minor_start, #{pid => Pid});
        9 -> event(At, gc_minor_end, #{pid => Pid});
        10 -> call(At, Pid, Entry);
        11 -> return(At, Pid, Entry);
        12 -> event(At, function_exception, #{pid => Pid, entry => Entry, class => "error"});
        13 -> send(At, Pid, Other, Text);
        14 -> delivery(At, Other, Pid, Text);
        15 -> receipt(At, Pid, Text);
        16 -> event(At, user_span_start, #{pid => Pid, name => "span", id => rand:uniform(5)});
        17 -> event(At, user_span_stop, #{pid => Pid, name => "span", id => rand:uniform(5),
                                          duration => rand:uniform(Time), outcome => "ok"})
    end.

random(List) ->
    lists:nth(rand:uniform(length(List)), List).

many_processes(Config) ->
    Count = 100000,
    Pid = fun(N) -> io_lib:format("<0.~b.~b>", [N rem 32768, N div 32768]) end,
    File = trace([event(1000 * N, process_spawn, #{pid => Pid(N), parent => "<0.9.0>", entry => "a:b/1"})
                  || N <- lists:seq(10, Count + 9)], Config),
    %% They have done nothing that their own tracks could show.
    ?assertEqual([[Count, 1]], rows(File, "select count(*), count(distinct track_id) from $slice")).

%% Properties of every trace.
sound(File) ->
    Packets = test_perfetto:packets(File),
    Types = fun(Type) -> length([P || P <- Packets, binary:match(P, Type) =/= nomatch]) end,
    Begins = Types(<<"TYPE_SLICE_BEGIN">>),
    [Unfinished, Outside, Overlapping, Slices, Flows] =
        test_perfetto:all_rows(
          File,
          %% Unfinished slices would have the duration -1.
          ["select (select count(*) from slice where dur < 0), (select count(*) from slice where ts < 0)",
           %% Slices of a track nest: each is within its parent, and siblings do not overlap.
           "select c.id, c.name, p.name from slice c join slice p on c.parent_id = p.id "
           "where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur limit 3",
           "select name, ts, next from (select name, ts, dur, lead(ts) over (partition by "
           "track_id, depth order by ts, id) next from slice) where ts + dur > next limit 3",
           "select count(*) from slice",
           %% Time does not run backwards.
           "select count(*) from flow f join slice o on f.slice_out = o.id "
           "join slice i on f.slice_in = i.id where o.ts <= i.ts"]),
    ?assertEqual([[0, 0]], Unfinished),
    ?assertEqual([], Outside),
    ?assertEqual([], Overlapping),
    %% Each end matches a begin: there are as many ends as begins.
    ?assertEqual(Begins, Types(<<"TYPE_SLICE_END">>)),
    ?assertEqual([[Begins + Types(<<"TYPE_INSTANT">>)]], Slices),
    %% Every flow has two ends.
    ?assertEqual([[length(lists:append([numbers(P, "flow_ids") || P <- Packets]))]], Flows).

%% -- Helpers -----------------------------------------------------------------------------------------

trace(Events, Config) ->
    trace(Events, [], Config).

trace(Events, Params, Config) ->
    test_perfetto:make(test_viewer:make(lists:map(fun where/1, Events), Config), Params).

where({Time, Probe, Fields}) -> {Time, Probe, Fields, ?WHERE};
where(Other) -> Other.

event(Time, Probe, Fields) -> {Time, Probe, Fields}.

%% Replaces $slice by the slices with the names of their tracks.
rows(File, Sql) ->
    [Rows] = all_rows(File, [Sql]),
    Rows.

all_rows(File, Sqls) ->
    test_perfetto:all_rows(File, [binary:replace(iolist_to_binary(Sql), <<"$slice">>,
                                                 <<"(select s.*, t.name track from slice s join track t "
                                                   "on s.track_id = t.id)">>, [global]) || Sql <- Sqls]).

%% The ends of each flow.
flows() ->
    flows("message").

flows(Category) ->
    ["select o.ts, o.name, i.ts, i.name from flow f join slice o on f.slice_out = o.id "
     "join slice i on f.slice_in = i.id where o.category = '", Category, "' order by o.ts"].

message_args() ->
    ["select ", lists:join(", ", [["extract_arg(arg_set_id, 'debug.", Arg, "')"]
                                  || Arg <- ["from", "to", "text", "matched", "inferred"]]),
     " from $slice where category = 'message' order by ts"].

%% A trace with every kind of event.
everything(Config) ->
    trace([in(1000, ?A, "a:b/1"), event(1100, process_spawn, #{pid => ?B, parent => ?A, entry => "a:b/1"}),
           send(1200, ?A, ?B, "{job,1}"), delivery(1300, ?A, ?B, "{job,1}"),
           event(1400, process_register, #{pid => ?A, name => "shop", type => "register"}),
           out(2000, ?A, "a:b/1"), in(2100, ?B, "a:b/1"), call(2200, ?B, "a:c/1"), return(2300, ?B, "a:c/1"),
           event(2400, vm_counter, #{name => "run_queue", value => 3, unit => "number"}),
           event(2500, log, #{pid => ?B, level => "error", text => "late"}),
           event(2600, user_span_start, #{pid => ?B, name => "pay", id => 1}),
           event(2700, user_span_stop, #{pid => ?B, name => "pay", id => 1, duration => 100, outcome => "ok"}),
           event(2800, process_exit, #{pid => ?B, reason => "{bad,job}"}), #{time => 3000, lost => 5},
           in(4000, ?A, "a:b/1"), out(5000, ?A, "a:b/1")], Config).

%% The numbers of a field in the text form of a packet.
numbers(Packet, Field) ->
    case re:run(Packet, "^\\s*" ++ Field ++ ": (-?\\d+)$", [multiline, global, {capture, all_but_first, binary}]) of
        {match, Found} -> [binary_to_integer(Number) || [Number] <- Found];
        nomatch -> []
    end.

%% [{Uuid, {Name, Parent's uuid}}]
tracks(File) ->
    [{Uuid, {Name, Parent}}
     || Packet <- test_perfetto:packets(File), [Uuid] <- [numbers(Packet, "uuid")],
        {match, [Name]} <- [re:run(Packet, "^    name: \"(.*)\"$", [multiline, {capture, all_but_first, binary}])],
        Parent <- numbers(Packet, "parent_uuid")].
