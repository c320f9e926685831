%% `dyntrace compare` of recordings of the same system on several nodes: those without a change, and one change in each.
-module(compare_SUITE).

-include("../support/suite.hrl").

-define(TILL, '<b>till').
-define(MS, 1000000).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [same, slower, larger, more, crashes, page, not_reports].

%% All nodes are recorded at the same time, so that the machine's load is the same. One is recorded twice.
init_per_suite(Config) ->
    _ = test_require:tool(test_require:first([fun test_lttng:missing/0, fun test_viewer:missing/0,
                                              fun test_json:missing/0]), Config),
    Nodes = [{Name, started(Options)} || {Name, Options} <- [
        {base, #{}}, {other, #{}}, {slow, #{work => 7}}, {large, #{words => 2000000}}, {busy, #{sends => 2}},
        {crashing, #{reason => {badmatch, 3}}}]],
    Commands = [record(Name, Node, "5", Config) || {Name, Node} <- Nodes]
        ++ [record(long, proplists:get_value(base, Nodes), "8", Config)],
    [{0, _} = test_command:finish(Command) || Command <- Commands],
    Reports = [test_command:start(["view", path(Name, Config), "-o", report(Name, Config)])
               || Name <- [long | proplists:get_keys(Nodes)]],
    [{0, _} = test_command:finish(Command) || Command <- Reports],
    [{nodes, Nodes} | Config].

end_per_suite(Config) ->
    [test_node:stop(Node) || {_, Node} <- ?config(nodes, Config)].

record(Name, Node, Seconds, Config) ->
    test_command:start(["record", test_node:os_pid(Node), "--seconds", Seconds, "--quiet", "-o", path(Name, Config)]).

path(Name, Config) ->
    filename:join(?config(priv_dir, Config), Name).

report(Name, Config) ->
    path(Name, Config) ++ ".json".

%% -- The system ---------------------------------------------------------------------------------

%% A server with a client; a till that sends sales to a log; workers that end. Their names are those of the shop.
started(Options) ->
    Node = test_node:start(),
    ok = test_node:call(Node, fun() ->
                                      ok = test_node:started([]),
                                      system(maps:merge(#{work => 2, words => 100000, sends => 1, reason => normal},
                                                        Options))
                              end),
    Node.

system(#{work := Work, words := Words, sends := Sends, reason := Reason}) ->
    {ok, _} = gen_server:start({local, shop_db}, ?MODULE, Work, []),
    [true = register(Name, spawn(Run))
     || {Name, Run} <- [{shop_client, fun() -> client(1) end},
                        {shop_log, fun() -> log(lists:seq(1, Words div 2)) end},
                        {?TILL, fun() -> till(Sends, erlang:monotonic_time(millisecond)) end},
                        {shop_master, fun() -> master(Reason) end}]],
    ok.

init(Work) -> {ok, Work}.

handle_call({get, N}, _, Work) ->
    timer:sleep(Work),
    {reply, N, Work}.

handle_cast(_, Work) -> {noreply, Work}.

client(N) ->
    N = gen_server:call(shop_db, {get, N}),
    timer:sleep(rand:uniform(10)),
    client(N + 1).

log(Sales) ->
    receive {sale, _} -> log(Sales) end.

%% Also if the machine stops it for a while, it sends as many messages per second.
till(Sends, Time) ->
    timer:sleep(max(0, Time - erlang:monotonic_time(millisecond))),
    [shop_log ! {sale, N} || N <- lists:seq(1, Sends)],
    till(Sends, Time + 5 + rand:uniform(5)).

master(Reason) ->
    _ = spawn(?MODULE, worker, [Reason]),
    timer:sleep(20 + rand:uniform(20)),
    master(Reason).

worker(Reason) ->
    timer:sleep(5),
    exit(Reason).

%% -- Tests --------------------------------------------------------------------------------------

%% Nothing is listed for two nodes, for the same node at different lengths, and for the first recording and itself.
same(Config) ->
    [?assertMatch({A, B, #{<<"changes">> := [], <<"findings">> := [], <<"compared">> := Compared}} when Compared > 40,
                  {A, B, compared(A, B, Config)})
     || {A, B} <- [{base, other}, {other, base}, {base, long}, {long, other}, {base, base}]],
    %% The recordings themselves.
    {0, Text} = test_command:run(["compare", path(base, Config), path(other, Config)]),
    ?assertMatch({match, _}, re:run(Text, "no change beyond noise in \\d+ numbers compared\n$")).

%% The server works five ms longer per call. What timers add is the same in both.
slower(Config) ->
    Changes = #{<<"name">> := Name, <<"measure">> := Measure, <<"change">> := <<"slower">>, <<"unit">> := <<"ns">>,
                <<"factor">> := Factor, <<"before">> := Before, <<"after">> := After, <<"before_samples">> := Samples} =
        first(base, slow, Config),
    ?assertMatch({<<"shop_db {get,_}">>, <<"call_", _/binary>>}, {Name, Measure}),
    ?assert(After - Before > 4 * ?MS andalso After - Before < 7 * ?MS, Changes),
    about(Factor, After / Before),
    ?assert(Samples > 100),
    #{<<"changes">> := Back} = compared(slow, base, Config),
    ?assertMatch([_ | _], [faster || #{<<"measure">> := <<"call_", _/binary>>, <<"change">> := <<"faster">>,
                                       <<"name">> := Of} <- Back, Of =:= Name]).

%% The memory of the process is what it says itself.
larger(Config) ->
    #{<<"name">> := <<"shop_log">>, <<"measure">> := <<"memory">>, <<"change">> := <<"larger">>, <<"factor">> := Factor,
      <<"before">> := Before, <<"after">> := After} = first(base, large, Config),
    about(Before, memory(base, Config)),
    about(After, memory(large, Config)),
    about(Factor, After / Before).

memory(Name, Config) ->
    test_node:call(proplists:get_value(Name, ?config(nodes, Config)),
                   fun() -> element(2, process_info(whereis(shop_log), memory)) end).

%% Twice as many messages.
more(Config) ->
    #{<<"name">> := <<"'<b>till'">>, <<"measure">> := <<"sent">>, <<"change">> := <<"more">>, <<"factor">> := Factor} =
        first(base, busy, Config),
    about(Factor, 2.0).

crashes(Config) ->
    #{<<"measure">> := <<"crashes">>, <<"name">> := <<"compare_SUITE:worker/1">>, <<"change">> := <<"new">>,
      <<"factor">> := null, <<"before">> := Before, <<"after_samples">> := Crashes} = first(base, crashing, Config),
    ?assertEqual(0, round(Before)),
    ?assert(Crashes > 60),
    #{<<"findings">> := Findings} = compared(base, crashing, Config),
    ?assertMatch([_ | _], [Text || #{<<"change">> := <<"new">>, <<"before_severity">> := null, <<"text">> := Text}
                                       <- Findings, binary:match(Text, <<"{badmatch,3}">>) =/= nomatch]).

about(Value, Wanted) ->
    ?assert(abs(Value - Wanted) =< Wanted * 0.15, {Value, Wanted}).

%% The page has the same rows as the text. Recorded names are not markup.
page(Config) ->
    File = path("compare.html", Config),
    {0, Text} = test_command:run(["compare", report(base, Config), report(busy, Config), "-o", File]),
    ?assertMatch({match, _}, re:run(Text, "^CHANGE +WHAT +OF +BEFORE +AFTER +SAMPLES\n"
                                    "[\\d.]+x more +messages sent +'<b>till' +[\\d.]+/s +[\\d.]+/s +\\d+, \\d+\n")),
    {ok, Page} = file:read_file(File),
    ?assertMatch({match, _}, re:run(Page, "x more</td><td>messages sent</td><td>&#x27;&lt;b&gt;till&#x27;</td>")),
    ?assertEqual(nomatch, re:run(Page, "<b>|<script|javascript:")).

not_reports(Config) ->
    Base = report(base, Config),
    {ok, Text} = file:read_file(Base),
    Bad = fun(N, Contents) ->
                  File = path(lists:concat(["bad", N, ".json"]), Config),
                  ok = file:write_file(File, Contents),
                  test_command:start(["compare", Base, File])
          end,
    Started = [{Bad(N, Contents), ["bad", integer_to_list(N), ".json can't be compared: ", Why, ".*\n  next: "]}
               || {N, {Contents, Why}} <- lists:enumerate([
        {"", "it is not JSON"}, {lists:duplicate(100000, $[), "it is not JSON"},
        {binary:part(Text, 0, byte_size(Text) div 2), "it is not JSON"},
        {"{\"version\": 1e999}", "it is not JSON"}, {"[]", "it has no recording"},
        {"{\"recording\": {}}", "it has version None of the format"},
        {string:replace(Text, "\"version\":1", "\"version\":2"), "it has version 2 of the format, .* version 1"},
        {string:replace(Text, "\"totals\":", "\"tables\":"), "an earlier version of dyntrace wrote it"},
        {string:replace(Text, "\"totals\":[", "\"totals\":[7,"), "it is damaged"},
        {re:replace(Text, "\"untraced_ns\":\\d+", "\"untraced_ns\":3600000000000"), "processes were traced for"}])],
    [begin
         {1, Output} = test_command:finish(Command),
         ?assertMatch({_, {match, _}}, {Output, re:run(Output, Wanted)})
     end || {Command, Wanted} <- Started],
    {1, None} = test_command:run(["compare", Base, path("none", Config)]),
    ?assertMatch({match, _}, re:run(None, "no such folder: .*none\n  next: ")).

first(Before, After, Config) ->
    #{<<"changes">> := [First | _]} = compared(Before, After, Config),
    First.

compared(Before, After, Config) ->
    Command = test_json:start(lists:concat([Before, "-", After]),
                              ["compare", report(Before, Config), report(After, Config)], Config),
    {0, [Document]} = test_json:finish(Command),
    ok = test_json:validate("compare", Command),
    Document.
