%% The page of sink.dyntrace.html in Chromium: its contents agree with the report's JSON, it works when a reader sorts,
%% filters, zooms and selects, by mouse and by keyboard, and it executes nothing from a recording.
%%
%% test_page:check/3 fails if a page sends a request, logs an error or violates its policy.
-module(page_SUITE).

-include("../support/suite.hrl").

-define(MS, 1000000).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [template, empty, numbers, prints_report, nodes, limits, fair, bars, folds, folds_ports, unfolds, unfolds_few,
     counters, few_messages, hostile_recording, other_events, params, tables, timeline, sequence, flame, profile,
     hostile, smooth, themes].

init_per_suite(Config) ->
    test_page:with_browser(test_require:tool(test_page:missing(), Config)).

end_per_suite(Config) ->
    test_page:without_browser(Config).

%% -- The template ------------------------------------------------------------------------------------

template(_) ->
    {ok, Page} = file:read_file(test_page:template()),
    ?assert(byte_size(Page) < 300000),
    [?assertNotEqual({Needed, nomatch}, {Needed, binary:match(Page, Needed)})
     || Needed <- [<<"@DATA@">>, <<"default-src 'none'">>, <<"The MIT License">>]],
    [?assertEqual({Bad, nomatch}, {Bad, re:run(Page, Bad)})
     || Bad <- ["<script[^>]* src=", "<link[^>]* href=\"(?!data:,)", "@import", "url\\(", "innerHTML", "eval\\("]].

empty(Config) ->
    #{<<"when">> := <<"This page holds no recording.">>} = test_page:check(empty, [test_page:template()], Config).

%% -- Pages of recordings --------------------------------------------------------------------------------

%% Clients call a server ten times each; each request runs 1 ms. One client crashes.
story(Hostile) ->
    Server = "<0.100.0>",
    Clients = ["<0.10" ++ integer_to_list(N) ++ ".0>" || N <- lists:seq(1, 4)],
    Named = [{1, process_identity, #{pid => Pid, parent => "<0.9.0>", initial => "shop:init/1", name => Name,
                                     label => "", node => "shop@host"}}
             || {Pid, Name} <- [{Server, "shop_db" ++ Hostile} | [{Client, ""} || Client <- Clients]]],
    Calls = [call(Server, Client, (Round * 4 + N) * 10 * ?MS)
             || Round <- lists:seq(0, 9), {N, Client} <- lists:enumerate(Clients)],
    Crash = [{500 * ?MS, process_exit, #{pid => hd(Clients), reason => "{badmatch,oops}" ++ Hostile}},
             {510 * ?MS, log, #{pid => Server, level => "error", text => "it is over" ++ Hostile}}],
    lists:append([Named, lists:append(Calls), Crash]).

call(Server, Client, At) ->
    Request = io_lib:format("{'$gen_call',{~s,[alias|#Ref<0.1.2.~b>]},{get,~b}}", [Client, At, At]),
    Reply = io_lib:format("{[alias|#Ref<0.1.2.~b>],{ok,~b}}", [At, At]),
    Message = fun(Text) -> lists:flatten(Text) end,
    [{At, process_scheduled, #{pid => Client, entry => "shop:run/0", type => "in"}},
     {At + 1000, message_send, #{from => Client, to => Server, message => Message(Request)}},
     {At + 2000, message_delivery, #{to => Server, from => Client, node => "shop@host", message => Message(Request)}},
     {At + 3000, process_scheduled, #{pid => Client, entry => "gen:do_call/4", type => "out"}},
     {At + 4000, process_scheduled, #{pid => Server, entry => "gen_server:loop/7", type => "in"}},
     {At + ?MS, message_send, #{from => Server, to => Client, message => Message(Reply)}},
     {At + ?MS + 1000, message_delivery, #{to => Client, from => Server, node => "shop@host",
                                           message => Message(Reply)}},
     {At + ?MS + 4000, process_scheduled, #{pid => Server, entry => "gen_server:loop/7", type => "out"}}].

%% The page's tables have the same contents as the report.
numbers(Config) ->
    Trace = test_viewer:make(story(""), Config),
    Report = test_viewer:json(report, [{format, "json"}], [Trace]),
    File = test_page:make(Trace, [{title, "A story"}], Config),
    Page = test_page:check(page, [File], Config),
    #{<<"recording">> := #{<<"events">> := Events}} = Report,
    #{<<"title">> := <<"A story">>, <<"heading">> := <<"A story">>, <<"tables">> := Tables, <<"labels">> := Labels,
      <<"facts">> := #{<<"Events">> := Shown}} = Page,
    ?assertEqual(Events, number(Shown)),
    ?assertEqual([Text || #{<<"text">> := Text} <- maps:get(<<"findings">>, Report)], maps:get(<<"findings">>, Page)),
    Next = lists:uniq([Next || #{<<"next">> := Next} <- maps:get(<<"findings">>, Report)]),
    ?assertEqual([<<"Next: ", (binary:replace(One, <<"`">>, <<>>, [global]))/binary>> || One <- Next],
                 maps:get(<<"next">>, Page)),
    [same_rows(Key, Names, Report, Tables)
     || {Key, Names} <- [{<<"processes">>, #{<<"Sent">> => <<"sent">>, <<"Received">> => <<"received">>}},
                         {<<"talks">>, #{<<"Messages">> => <<"messages">>}},
                         {<<"server_calls">>, #{<<"Calls">> => <<"count">>}}]],
    %% Nothing timed out, failed or was inferred, so these columns are missing.
    #{<<"talks">> := #{<<"heads">> := [<<"From">>, <<"To">>, <<"Messages">>]}} = Tables,
    #{<<"server_calls">> := #{<<"heads">> := Heads}} = Tables,
    ?assertEqual([], [Head || Head <- [<<"Timeouts">>, <<"Failed">>], lists:member(Head, Heads)]),
    #{<<"exits">> := #{<<"rows">> := [[_, _, <<"{badmatch,oops}">> | _]]}} = Tables,
    #{<<"log">> := #{<<"rows">> := [[_, <<"error">> | _]]}} = Tables,
    ?assert(lists:any(fun(Label) -> binary:match(Label, <<"shop_db">>) =/= nomatch end, Labels)),
    ?assert(maps:get(<<"colours">>, Page) > 50),
    #{<<"range">> := #{<<"begin">> := 0, <<"end">> := End}} = Page,
    ?assert(End > 400 * ?MS).

%% The sink prints the report in the same pass, unless the page itself goes to standard output.
prints_report(Config) ->
    Trace = test_viewer:make(story(""), Config),
    File = filename:join(?config(priv_dir, Config), "with-report.html"),
    {0, Report} = test_viewer:view(report, [{path, "-"}, {format, "json"}], [Trace]),
    ?assertEqual({0, Report}, test_viewer:view(html, [{path, File}, {report, true}], [Trace])),
    {ok, Page} = file:read_file(File),
    {ok, Alone} = file:read_file(test_page:make(Trace, [], Config)),
    ?assertEqual(Alone, Page),
    {1, Error} = test_viewer:view(html, [{path, "-"}, {report, true}], [Trace]),
    ?assertMatch({match, _}, re:run(Error, "report=yes needs the path of a file")).

%% Columns, given by title, equal the report's fields, in any order of rows.
same_rows(Key, Names, Report, Tables) ->
    [?assertEqual({Key, Field, lists:sort([maps:get(Field, Row) || Row <- maps:get(Key, Report)])},
                  {Key, Field, lists:sort([number(Cell) || Cell <- column(Title, maps:get(Key, Tables))])})
     || {Title, Field} <- maps:to_list(Names)].

column(Title, #{<<"heads">> := Heads, <<"rows">> := Rows}) ->
    Nth = length(lists:takewhile(fun(Head) -> Head =/= Title end, Heads)) + 1,
    [lists:nth(Nth, Row) || Row <- Rows].

number(<<"–"/utf8>>) -> null;
number(Text) -> binary_to_integer(<< <<Char>> || <<Char/utf8>> <= Text, Char >= $0, Char =< $9 >>).

%% Two VMs use the same pids. Rows have the number of their node, which the page's head explains. The sequence begins
%% with the processes that exchange the most messages, although a port sends more.
nodes(Config) ->
    Ticks = [{N * 1000, message_send, #{from => "#Port<0.5>", to => "<0.100.0>", message => "tick"}}
             || N <- lists:seq(1, 99)],
    Events = [{At + Vpid, Probe, Fields, #{vpid => Vpid, vtid => Vpid}}
              || {At, Probe, Fields} <- Ticks ++ story(""), Vpid <- [17, 18]],
    #{<<"when">> := When, <<"labels">> := Labels, <<"tables">> := Tables, <<"sequence">> := Sequence} =
        test_page:check(page, [test_page:make(test_viewer:make(lists:keysort(1, Events), Config), [], Config)], Config),
    ?assertMatch({_, _}, binary:match(When, <<"1: shop@host, OS process 17"/utf8>>)),
    ?assertMatch({_, _}, binary:match(When, <<"2: shop@host, OS process 18"/utf8>>)),
    ?assertEqual([<<"shop_db<0.100.0> 1">>, <<"shop_db<0.100.0> 2">>],
                 lists:sort([Label || Label = <<"shop_db", _/binary>> <- Labels])),
    ?assertEqual([<<"1">>, <<"2">>], lists:usort(column(<<"Node">>, maps:get(<<"processes">>, Tables)))),
    ?assertMatch([<<"shop:init/1 <0.10", _/binary>>, <<"shop_db <0.100.0>">>], lists:sort(Sequence)).

%% The recording exceeds the limits: the page has less, and says so.
limits(Config) ->
    Many = [event(N, Kind) || N <- lists:seq(1, 3000), Kind <- [in, out]],
    Trace = test_viewer:make(Many, Config),
    File = test_page:make(Trace, [{processes, 5}, {intervals, 200}, {messages, 0}], Config),
    #{<<"timeline">> := Timeline = #{<<"summary">> := Summary}} = data(File),
    #{<<"processes">> := 10, <<"rows">> := 5, <<"intervals_kept">> := Kept, <<"merged">> := Merged} = Summary,
    ?assert(Kept =< 200),
    ?assert(Merged > 1000),
    Rows = [Process || Process = #{<<"intervals">> := _} <- maps:get(<<"processes">>, Timeline)],
    ?assertEqual(Kept, lists:sum([length(maps:get(<<"intervals">>, Row)) div 5 || Row <- Rows])),
    %% Merged or not, the run times of a process add up.
    [?assert(abs(ran(maps:get(<<"intervals">>, Row)) - 300 * 20000) < 300 * 4000) || Row <- Rows],
    Page = test_page:check(page, [File], Config),
    ?assertEqual(5, length(maps:get(<<"labels">>, Page))).

%% A process that collects garbage endlessly takes neither the page's space nor the detail of other rows.
fair(Config) ->
    Hot = [{1, process_scheduled, #{pid => "<0.99.0>", entry => "a:b/1", type => "in"}} |
           [{Begin * 10000 + Ns, Probe, #{pid => "<0.99.0>"}}
            || Begin <- lists:seq(1, 12000), {Ns, Probe} <- [{1000, gc_minor_start}, {6000, gc_minor_end}]]],
    Calm = [{N * ?MS + Ns, process_scheduled, #{pid => pid(P), entry => "a:b/1", type => Type}}
            || N <- lists:seq(1, 120), P <- lists:seq(1, 4),
               {Ns, Type} <- [{P * 50000, "in"}, {P * 50000 + 20000, "out"}]],
    Trace = test_viewer:make(lists:keysort(1, Hot ++ Calm), Config),
    #{<<"timeline">> := #{<<"summary">> := Summary, <<"processes">> := Processes}} =
        data(test_page:make(Trace, [{intervals, 200}], Config)),
    #{<<"intervals">> := Seen, <<"intervals_kept">> := Kept, <<"rows">> := 5} = Summary,
    ?assert(Seen > 20000),
    ?assert(Kept =< 200),
    Sizes = [{Show, length(Of) div 5} || #{<<"show">> := Show, <<"intervals">> := Of} <- Processes],
    [?assert(Size >= 15, Sizes) || {_, Size} <- Sizes],
    [?assert(Size =< 80, Sizes) || {_, Size} <- Sizes].

%% Bars of many short intervals are as high as their share, and a single one stays visible.
bars(Config) ->
    Page = fun(Runs) ->
                   Turns = [{N * 500000 + At, process_scheduled, #{pid => "<0.99.0>", entry => "a:b/1", type => Type}}
                            || N <- lists:seq(1, 4000), Ran <- [Runs(N)], Ran > 0,
                               {At, Type} <- [{0, "in"}, {Ran, "out"}]],
                   Last = {2001 * ?MS, process_exit, #{pid => "<0.99.0>", reason => "normal"}},
                   #{<<"running">> := Pixels} =
                       test_page:check(page, [test_page:make(test_viewer:make(Turns ++ [Last], Config), [], Config)],
                                       Config),
                   Pixels
           end,
    Seldom = Page(fun(_) -> 3500 end),
    Half = Page(fun(_) -> 250000 end),
    Once = Page(fun(1) -> 3500; (2000) -> 3500; (_) -> 0 end),
    ?assert(Half > 3000, {Half, Seldom, Once}),
    ?assert(Seldom * 50 < Half, {Half, Seldom, Once}),
    ?assert(Once >= 4, {Half, Seldom, Once}).

%% Workers that crash and are restarted share one row; the one that still runs has its own.
folds(Config) ->
    Trace = test_viewer:make(lists:append([oven(N, 100 * ?MS * N) || N <- lists:seq(1, 20)]) ++
                                 lists:sublist(oven(21, 2100 * ?MS), 4), Config),
    File = test_page:make(Trace, [], Config),
    #{<<"timeline">> := #{<<"summary">> := Summary, <<"processes">> := Processes}} = data(File),
    ?assertMatch(#{<<"folds">> := 1, <<"folded">> := 20, <<"processes">> := 22}, Summary),
    [#{<<"members">> := 20, <<"show">> := <<"shop_oven × 20"/utf8>>, <<"intervals">> := Intervals}] =
        [Row || Row = #{<<"members">> := _} <- Processes],
    ?assertEqual(20 * 2 * ?MS, ran(Intervals)),
    %% Their crashes are marks on that row.
    ?assertEqual(20, length([1 || #{<<"fold">> := Index} <- Processes,
                                  maps:is_key(<<"members">>, lists:nth(Index + 1, Processes))])),
    #{<<"labels">> := Labels, <<"tables">> := #{<<"exits">> := #{<<"rows">> := Crashes}}} =
        test_page:check(page, [File], Config),
    ?assertEqual([<<"shop_oven × 20"/utf8>>, <<"shop_oven<0.221.0>">>],
                 lists:sort([Label || Label = <<"shop_oven", _/binary>> <- Labels])),
    ?assertEqual(20, length(Crashes)).

%% Connections of one driver, each with different addresses.
folds_ports(Config) ->
    Port = fun(N) -> lists:flatten(io_lib:format("#Port<0.~b>", [N])) end,
    Name = fun(N) -> lists:flatten(io_lib:format("tcp_inet 127.0.0.1:5672 <-> 127.0.0.1:~b", [50000 + N])) end,
    Life = fun(N) ->
                   [{N * ?MS, port_open, #{pid => "<0.9.0>", driver => "tcp_inet", port => Port(N)}},
                    {N * ?MS + 1, port_identity, #{port => Port(N), owner => "<0.9.0>", name => Name(N)}},
                    {N * ?MS + 2, port_scheduled, #{port => Port(N), entry => "command", type => "in"}},
                    {N * ?MS + 9, port_scheduled, #{port => Port(N), entry => "command", type => "out"}},
                    {N * ?MS + 9, port_exit, #{port => Port(N), reason => "normal"}}]
           end,
    Trace = test_viewer:make(lists:flatmap(Life, lists:seq(1, 20)), Config),
    #{<<"timeline">> := #{<<"processes">> := Processes}} = data(test_page:make(Trace, [], Config)),
    ?assertEqual([<<"tcp_inet × 20"/utf8>>], [Show || #{<<"members">> := 20, <<"show">> := Show} <- Processes]).

%% A reader unfolds a row, by mouse and by keyboard, and folds it again. The unfolded rows are the processes that
%% crashed and those that ran longest, in the order of their start, each with its own intervals and exit.
unfolds(Config) ->
    Trace = test_viewer:make(ovens(30), Config),
    File = test_page:make(Trace, [], Config),
    Unfolded = [1 | lists:seq(12, 30)],
    #{<<"timeline">> := #{<<"processes">> := Processes}} = data(File),
    ?assertEqual([{oven_pid(N), N * 100000} || N <- Unfolded],
                 lists:sort([{binary_to_list(Pid), ran(Intervals)}
                             || #{<<"fold">> := 0, <<"pid">> := Pid, <<"intervals">> := Intervals} <- Processes])),
    #{<<"steps">> := Steps, <<"tip">> := Tip, <<"exits">> := Exits} = test_page:check(folds, [File], Config),
    Head = <<"shop_oven × 30"/utf8>>,
    Below = [list_to_binary(["shop_oven", oven_pid(N)]) || N <- Unfolded],
    Open = [<<Head/binary, "20 of 30">> | Below],
    Expected = #{<<"folded">> => [Head], <<"clicked">> => Open, <<"again">> => [Head], <<"enter">> => Open,
                 <<"chosen">> => [hd(Open), hd(Below)], <<"all">> => Open, <<"space">> => [Head]},
    Seen = fun(Step, Keys) -> [Step | [maps:get(Key, maps:get(Step, Steps)) || Key <- Keys]] end,
    [?assertEqual([Step, Labels, length(Labels)], Seen(Step, [<<"labels">>, <<"rows">>]))
     || {Step, Labels} <- maps:to_list(Expected)],
    [?assertEqual([Step, <<"30 processes">>, [atom_to_binary(Labels =/= [Head])]],
                  Seen(Step, [<<"corner">>, <<"expanded">>]))
     || {Step, Labels} <- maps:to_list(maps:remove(<<"chosen">>, Expected))],
    [?assertEqual([Step, <<"Rows of the processes of ", Head/binary>>], Seen(Step, [<<"focus">>]))
     || Step <- [<<"clicked">>, <<"again">>, <<"enter">>, <<"space">>]],
    ?assertMatch(<<"shop_oven <0.201.0>", _/binary>>, Tip),
    ?assertEqual([<<"shop_oven <0.201.0>">>], Exits).

%% The page's limit of intervals holds for all rows together, however many can be unfolded.
unfolds_few(Config) ->
    Trace = test_viewer:make(ovens(30), Config),
    #{<<"timeline">> := #{<<"summary">> := Summary, <<"processes">> := Processes}} =
        data(test_page:make(Trace, [{intervals, 100}], Config)),
    Rows = [{maps:is_key(<<"fold">>, Process), length(Intervals) div 5}
            || Process = #{<<"intervals">> := Intervals} <- Processes],
    #{<<"intervals_kept">> := Kept} = Summary,
    ?assertEqual(Kept, lists:sum([Size || {_, Size} <- Rows])),
    ?assert(Kept =< 100),
    ?assertEqual(20, length([Size || {true, Size} <- Rows, Size > 0])),
    ?assert(lists:sum([Size || {true, Size} <- Rows]) =< 25).

%% Each process runs longer than the one before; the first one crashes. The recording then continues for the same time.
ovens(Number) ->
    Reason = fun(1) -> "{badmatch,bread}";
                (_) -> "normal"
             end,
    lists:flatmap(fun(N) -> oven(N, 100 * ?MS * N, N * 100000, Reason(N)) end, lists:seq(1, Number)) ++
        [{200 * ?MS * Number, process_spawn, #{pid => "<0.9.0>", parent => "<0.1.0>", entry => "shop:sup/0"}}].

oven(N, At) ->
    oven(N, At, 2 * ?MS, "{badmatch,bread}").

oven(N, At, Runs, Reason) ->
    Pid = oven_pid(N),
    Scheduled = fun(After, Type) ->
                        {At + 2000 + After, process_scheduled, #{pid => Pid, entry => "shop:oven/0", type => Type}}
                end,
    [{At, process_spawn, #{pid => Pid, parent => "<0.9.0>", entry => "shop:oven/0"}},
     {At + 1000, process_register, #{pid => Pid, name => "shop_oven", type => "register"}},
     Scheduled(0, "in"), Scheduled(Runs, "out"),
     {At + 5 * ?MS, process_exit, #{pid => Pid, reason => Reason}}].

oven_pid(N) ->
    lists:flatten(io_lib:format("<0.~b.0>", [200 + N])).

%% Levels are shown as they are, totals per second, and the schedulers' utilization as a mean. The most important charts
%% come first.
counters(Config) ->
    Second = 1000 * ?MS,
    Sample = fun(At, Values) ->
                     [{At + N, vm_counter, #{name => Name, value => Value, unit => Unit}}
                      || {N, {Name, Unit, Value}} <- lists:enumerate(Values)]
             end,
    Of = fun(Atoms, Reductions, Queue, One, Two) ->
                 [{"atoms", "number", Atoms}, {"reductions", "number", Reductions}, {"run_queue", "number", Queue},
                  {"run_queue_1", "number", Queue}, {"scheduler_utilization_1", "per mille", One},
                  {"scheduler_utilization_2", "per mille", Two}, {"cpu_throttled", "microseconds", Reductions}]
         end,
    Trace = test_viewer:make(call("<0.9.0>", "<0.10.0>", 0) ++ Sample(Second, Of(7, 1000, 3, 100, 300)) ++
                                 Sample(3 * Second, Of(7, 5000, 1, 0, 1000)), Config),
    File = test_page:make(Trace, [], Config),
    #{<<"counters">> := [#{<<"times">> := [_, _], <<"of">> := Sampled}]} = data(File),
    ?assertEqual(#{<<"atoms">> => [7, 7], <<"cpu_throttled">> => [1000, 5000], <<"reductions">> => [1000, 5000],
                   <<"run_queue">> => [3, 1],
                   <<"scheduler_utilization">> => [200, 500]}, Sampled),
    #{<<"tables">> := #{<<"counters">> := Table}, <<"charts">> := Charts} = test_page:check(page, [File], Config),
    ?assertEqual([<<"run_queue">>, <<"run_queue_1">>, <<"scheduler_utilization_1">>, <<"scheduler_utilization_2">>,
                  <<"reductions">>, <<"atoms">>, <<"cpu_throttled">>], column(<<"Counter">>, Table)),
    ?assertEqual([<<"2\x{202f}000"/utf8>>, <<"2\x{202f}000"/utf8>>],
                 column(<<"Per second">>, Table) -- lists:duplicate(5, <<"–"/utf8>>)),
    ?assertEqual([<<"Run queues">>, <<"Utilization of schedulers, %">>, <<"Processes, on average">>,
                  <<"Events per second">>, <<"Reductions per second">>], Charts).

%% The page has as many messages as requested, even if that is few, and the slowest are among them.
few_messages(Config) ->
    Took = fun(1000) -> 40;
              (_) -> 5
           end,
    Trace = test_viewer:make([Event || N <- lists:seq(1, 2000), Event <- message(N, N * 100, Took(N))], Config),
    [begin
         #{<<"timeline">> := #{<<"messages">> := Messages, <<"summary">> := Summary}} =
             data(test_page:make(Trace, [{messages, Most}], Config)),
         #{<<"messages">> := 2000, <<"messages_kept">> := Kept} = Summary,
         ?assert(Kept =< Most),
         ?assert(Kept >= Most * 9 div 10, {Most, Kept}),
         ?assertEqual({Most, 40}, {Most, lists:max(took(Messages))})
     end || Most <- [2, 7, 100, 249, 250, 300, 1999, 2000]].

message(N, Sent, Took) ->
    Message = #{from => "<0.100.0>", to => "<0.101.0>", message => integer_to_list(N)},
    [{Sent, message_send, Message}, {Sent + Took, message_delivery, Message#{node => "shop@host"}}].

took([_, _, Sent, Delivered, _, _, _ | Rest]) -> [Delivered - Sent | took(Rest)];
took([]) -> [].

event(N, in) -> {N * 50000, process_scheduled, #{pid => pid(N), entry => "a:b/1", type => "in"}};
event(N, out) -> {N * 50000 + 20000, process_scheduled, #{pid => pid(N), entry => "a:b/1", type => "out"}}.

pid(N) -> lists:flatten(io_lib:format("<0.~b.0>", [100 + N rem 10])).

%% The run time of a lane: state 3 is running, state 6 is merged, with a share per mille.
ran([_, Length, 3, _, _ | Rest]) -> Length + ran(Rest);
ran([_, Length, 6, _, Share | Rest]) -> Length * Share div 1000 + ran(Rest);
ran([_, _, _, _, _ | Rest]) -> ran(Rest);
ran([]) -> 0.

data(File) ->
    {ok, Page} = file:read_file(File),
    {match, [Json]} = re:run(Page, "<script type=\"application/json\" id=\"data\">(.*?)</script>",
                             [dotall, {capture, all_but_first, binary}]),
    ok = file:write_file(File ++ ".json", Json),
    test_viewer:decode(File ++ ".json").

hostile_recording(Config) ->
    Trace = test_viewer:make(story("</script><script>window.broken=1</script><!-- " ++ [16#202e, 7]), Config),
    Page = test_page:check(page, [test_page:make(Trace, [], Config)], Config),
    #{<<"log">> := #{<<"rows">> := [Row]}} = maps:get(<<"tables">>, Page),
    ?assertMatch({_, _}, binary:match(lists:last(Row), <<"it is over</script><script>window.broken=1</script>">>)),
    ?assertMatch({_, _}, binary:match(lists:last(Row), <<"\\x{202e}">>)).

%% An event of a probe without a meaning of its own is a mark with the probe's name and fields.
other_events(Config) ->
    Event = {1000, "erlang:process__hibernate", #{p => "<0.9.0>", mfa => "erlang:hibernate/3"}},
    Trace = test_viewer:make([Event], Config),
    #{<<"timeline">> := #{<<"marks">> := [_, _, Kind, Text], <<"strings">> := Strings}} =
        data(test_page:make(Trace, [], Config)),
    ?assertEqual([<<"process__hibernate">>, <<"p: <0.9.0>, mfa: erlang:hibernate/3">>],
                 [lists:nth(N + 1, Strings) || N <- [Kind, Text]]).

params(Config) ->
    Trace = test_viewer:make(story(""), Config),
    Dir = ?config(priv_dir, Config),
    [begin
         {Status, Output} = test_viewer:view(html, Params, [Trace]),
         ?assertNotEqual(0, Status),
         ?assertMatch({_, _}, binary:match(Output, Named))
     end || {Params, Named} <- [{[], <<"path">>},
                                {[{path, filename:join(Dir, "no/such/folder.html")}], <<"no/such/folder.html">>},
                                {[{path, filename:join(Dir, "never.html")}, {processes, 0}], <<"processes">>}]],
    ?assertEqual([], filelib:wildcard(filename:join(Dir, "never.html*"))).

%% -- Use by a reader --------------------------------------------------------------------------------------

made_up(Check, Config) ->
    made_up(Check, [], Config).

made_up(Check, Args, Config) ->
    test_page:check(Check, [test_page:template(), ?config(priv_dir, Config) | Args], Config).

tables(Config) ->
    #{<<"first">> := #{<<"sort">> := [<<"Messages">>, <<"descending">>], <<"column">> := First},
      <<"clicked">> := #{<<"sort">> := [<<"Messages">>, <<"ascending">>], <<"column">> := Clicked},
      <<"pressed">> := #{<<"sort">> := [<<"From">>, <<"ascending">>], <<"column">> := Pressed},
      <<"filtered">> := #{<<"column">> := [<<"shop_cart <0.91.0>">>], <<"count">> := <<"1 of 40">>},
      <<"shown">> := #{<<"begin">> := Begin, <<"end">> := End},
      <<"chosen">> := #{<<"talks">> := [<<"shop_cart <0.91.0>">>], <<"chip">> := <<"Only shop_cart", _/binary>>,
                        <<"pressed">> := [_]},
      <<"focus">> := <<"solid">>} = made_up(tables, Config),
    ?assertEqual(First, lists:reverse(lists:sort(fun(A, B) -> number(A) =< number(B) end, First))),
    ?assertEqual(Clicked, lists:sort(fun(A, B) -> number(A) =< number(B) end, Clicked)),
    ?assertMatch(<<"code_server", _/binary>>, hd(Pressed)),
    %% The time of an exit, 6.2 s, is within the timeline's range, which was 10 s.
    ?assert(Begin < 6200 * ?MS),
    ?assert(End > 6200 * ?MS),
    ?assert(End - Begin < 1000 * ?MS).

timeline(Config) ->
    #{<<"steps">> := Steps, <<"label">> := Label, <<"tip">> := Tip,
      <<"alternative">> := [[<<"shop_db", _/binary>> | Shares]]} = made_up(timeline, Config),
    Range = fun(Step) ->
                    #{<<"begin">> := Begin, <<"end">> := End} = maps:get(Step, Steps),
                    {Begin, End - Begin}
            end,
    Whole = {0, 10000 * ?MS},
    ?assertEqual([Whole, Whole, Whole], [Range(Step) || Step <- [<<"whole">>, <<"wheel_alone">>, <<"home">>]]),
    {Zoomed, Length} = Range(<<"ctrl_wheel">>),
    ?assert(Length < 5000 * ?MS),
    {Dragged, _} = Range(<<"dragged">>),
    ?assert(Dragged < Zoomed),
    {Plus, Half} = Range(<<"plus">>),
    ?assert(abs(Half * 2 - Length) < 1000),
    {Right, _} = Range(<<"right">>),
    ?assert(Right > Plus),
    ?assertMatch(#{<<"messages">> := 0}, maps:get(<<"whole">>, Steps)),
    ?assertMatch(#{<<"messages">> := Arrows} when Arrows > 0, maps:get(<<"near">>, Steps)),
    ?assertMatch(#{<<"rows">> := 1}, maps:get(<<"filtered">>, Steps)),
    ?assertMatch({_, _}, binary:match(Label, <<"Timeline of 40 processes">>)),
    ?assertMatch(<<"shop_db", _/binary>>, Tip),
    ?assertEqual(5, length(Shares)).

sequence(Config) ->
    #{<<"first">> := #{<<"heads">> := [_, _], <<"arrows">> := 120},
      <<"call">> := #{<<"said">> := <<"The call took ", _/binary>>, <<"texts">> := [Request | _]}} =
        made_up(sequence, Config),
    ?assertEqual(<<"call {select,orders}">>, Request).

flame(Config) ->
    #{<<"whole">> := [[<<"all: 5.00", _/binary>>, Width], [Shown, _] | _], <<"focused">> := Focused,
      <<"zoomed">> := [_, [Zoomed, Width] | _]} = made_up(flame, Config),
    ?assertEqual([Shown, Shown], [Focused, Zoomed]).

%% The processes of one kind are one, or single ones. Frames have the tone of their change. A function that calls itself
%% counts once in its total time.
profile(Config) ->
    #{<<"merged">> := [[All, Pale], [Workers, Pale], [Outer, Pale], [Inner, Red], [Shop, Pale]], <<"single">> := Single,
      <<"found">> := Found, <<"rows">> := Rows} = made_up(profile, Config),
    [?assertMatch({match, _}, re:run(Said, Pattern, [unicode]), {Said, Pattern})
     || {Said, Pattern} <- [{All, "^all: 10\\.0.s, 100.%; own 0; 0\\.0 points$"},
                            {Workers, "^work:init/1 \\(3 processes\\): 6\\.00.s, 60.%; own 0; 0\\.0 points$"},
                            {Outer, "^work:loop/1: 6\\.00.s, 60.%; own 3\\.00.s; 0\\.0 points$"},
                            {Inner, "^work:loop/1: 3\\.00.s, 30.%; own 3\\.00.s; \\+30\\.0 points$"},
                            {Shop, "^<0.9.0> shop: 4\\.00.s, 40.%; own 4\\.00.s; 0\\.0 points$"},
                            {Found, "^6 frames shown, 60.% of the time$"}]],
    ?assertNotEqual(Red, Pale),
    ?assertEqual(11, length(Single)),
    ?assertMatch([[<<"work:loop/1">>, <<"6.00", _/binary>>, <<"6.00", _/binary>>, <<"0.0">>],
                  [<<"<0.9.0> shop">>, <<"4.00", _/binary>>, <<"4.00", _/binary>>, <<"0.0">>],
                  [<<"work:gone/0">>, <<"0", _/binary>>, <<"0", _/binary>>, <<"-20.0">>]], Rows).

%% Every text of the recording is a script, or 10 kB long, or changes the text direction.
hostile(Config) ->
    #{<<"broken">> := null, <<"scripts">> := 2, <<"images">> := 0, <<"title">> := Title, <<"log">> := Log,
      <<"wide">> := Wide} = made_up(hostile, Config),
    Script = <<"</script><script>window.broken=1</script>">>,
    [?assertMatch({_, _}, binary:match(Text, Script)) || Text <- [Title | Log]],
    [?assertMatch({_, _}, binary:match(Title, Shown)) || Shown <- [<<"\\x{2028}\\x{202e}">>, <<"␇"/utf8>>]],
    ?assert(Wide =< 0).

%% 50,000 intervals. Times depend on the machine, so they are only reported and checked for their order of magnitude.
smooth(Config) ->
    #{<<"median_ms">> := Median, <<"longest_ms">> := Longest} = made_up(smooth, ["50000"], Config),
    ct:comment("frames of 50,000 intervals: median ~p ms, longest ~p ms", [Median, Longest]),
    ?assert(Median < 200).

themes(Config) ->
    #{<<"light">> := #{<<"theme">> := <<"light">>, <<"first">> := [255, 255, 255], <<"colours">> := Light},
      <<"dark">> := #{<<"before">> := #{<<"theme">> := <<"dark">>, <<"first">> := [Dark | _]},
                      <<"after">> := #{<<"theme">> := <<"light">>, <<"first">> := [255, 255, 255]}},
      <<"phone">> := #{<<"wide">> := Wide}} = made_up(themes, Config),
    ?assert(Light > 100),
    ?assert(Dark < 40),
    ?assert(Wide =< 0).
