%% The sink `otlp' and `dyntrace view --otlp': OpenTelemetry's own messages read the spans of a request through two
%% nodes, and have the values that Erlang reports.
-module(otlp_SUITE).

-include("../support/suite.hrl").

-define(B, 'b@127.0.0.1').
-define(SLEEP_MS, 20).
%% The values of `kind' and of `status'.
-define(INTERNAL, 1).
-define(SERVER, 2).
-define(CLIENT, 3).
-define(CONSUMER, 5).
-define(ERROR, 2).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [{group, recorded}, long_span, late_telemetry, late_message, unreported_receives, equal_tokens, deferred,
     many_spans, nothing].

groups() ->
    [{recorded, [], [processes_and_nodes, labeled, durations, outcomes, resources, ids, truncated, sent]}].

init_per_suite(Config) ->
    Npm = fun() -> test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch("otlp") end,
    test_require:tool(test_require:first([Npm, fun test_viewer:missing/0, fun test_lttng:missing/0]), Config).

end_per_suite(_) -> ok.

init_per_group(recorded, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "recording"),
    Story = test_recording:make(Folder, #{named => ["a", "b"], before => fun prepare/1},
                                fun([Node, _]) -> test_node:call(Node, fun story/0) end),
    [{folder, Folder}, {story, Story}, {spans, spans(Folder, Config)} | Config].

end_per_group(_, _) -> ok.

%% -- The story -------------------------------------------------------------------------------------

%% A customer calls the shop, which calls the database of the other node.
prepare([One, Other]) ->
    [ok = test_node:call(Node, fun test_telemetry:load/0) || Node <- [One, Other]],
    {ok, _} = test_node:call(Other, fun() -> start_server(otlp_db) end),
    test_node:call(One, fun() ->
                                pong = net_adm:ping(?B),
                                [{ok, _} = start_server(Name) || Name <- [otlp_shop, otlp_mail, otlp_till]]
                        end).

start_server(Name) ->
    gen_server:start({local, Name}, ?MODULE, Name, []).

%% The shop notes the durations that a handler of telemetry sees.
init(otlp_shop) ->
    Note = fun(_, #{duration := Native}, _, _) ->
                   put(durations, get(durations) ++ [erlang:convert_time_unit(Native, native, nanosecond)])
           end,
    put(durations, []),
    {ok, telemetry:attach(?MODULE, [shop, order, stop], Note, none)};
init(_) ->
    {ok, no_state}.

handle_call({buy, Number}, _, State) ->
    Route = #{route => <<"/orders/:id">>},
    5 = telemetry:span([shop, order], Route, fun() -> {gen_server:call({otlp_db, ?B}, {price, Number}), Route} end),
    {reply, {paid, Number}, State};
handle_call({price, _}, _, State) ->
    timer:sleep(?SLEEP_MS),
    {reply, 5, State};
handle_call(durations, _, State) ->
    {reply, get(durations), State};
handle_call(silence, _, State) ->
    {noreply, State};
handle_call(break, _, State) ->
    {stop, normal, State}.

handle_cast(_, State) ->
    {noreply, State}.

story() ->
    Self = self(),
    Customer = spawn(fun() -> Self ! {self(), customer()}, receive stop -> ok end end),
    receive {Customer, Story} -> Story end.

customer() ->
    true = register(otlp_customer, self()),
    Before = os:system_time(nanosecond),
    Checkout = fun() -> gen_server:call(otlp_shop, {buy, 17}) end,
    {Us, {paid, 17}} = timer:tc(fun() -> dyntrace:span(checkout, Checkout) end),
    error = try dyntrace:span(refund, fun() -> error(closed) end) catch error:closed -> error end,
    timeout = try gen_server:call(otlp_mail, silence, 50) catch exit:{timeout, _} -> timeout end,
    down = try gen_server:call(otlp_till, break) catch exit:{normal, _} -> down end,
    _ = [seq_trace:set_token(Name, Value) || {Name, Value} <- [{label, order_18}, {send, true}, {'receive', true}]],
    {paid, 18} = gen_server:call(otlp_shop, {buy, 18}),
    ok = gen_server:cast(otlp_mail, {mail, 18}),
    _ = seq_trace:set_token([]),
    [First, Second] = gen_server:call(otlp_shop, durations),
    Self = self(),
    _ = spawn(fun() -> dyntrace:span(endless, fun() -> Self ! begun, receive stop -> ok end end) end),
    receive begun -> ok end,
    #{before => Before, then => os:system_time(nanosecond), checkout_ns => Us * 1000, orders_ns => [First, Second],
      customer => text(self()), shop => text(whereis(otlp_shop)), mail => text(whereis(otlp_mail)),
      db => rpc:call(?B, erlang, apply, [fun() -> text(whereis(otlp_db)) end, []]),
      os_pid => list_to_binary(os:getpid())}.

text(Pid) -> list_to_binary(pid_to_list(Pid)).

%% -- What was recorded -------------------------------------------------------------------------------

%% The parents lead from the database, on the other node, to the annotation.
processes_and_nodes(Config) ->
    #{customer := Customer, shop := Shop, db := Db} = ?config(story, Config),
    ?assertEqual([{<<"checkout">>, ?INTERNAL, <<"a@127.0.0.1">>, Customer, <<"otlp_customer">>},
                  {<<"otlp_shop/buy">>, ?CLIENT, <<"a@127.0.0.1">>, Customer, <<"otlp_customer">>},
                  {<<"otlp_shop/buy">>, ?SERVER, <<"a@127.0.0.1">>, Shop, <<"otlp_shop">>},
                  {<<"shop.order /orders/:id">>, ?INTERNAL, <<"a@127.0.0.1">>, Shop, <<"otlp_shop">>},
                  {<<"otlp_db/price">>, ?CLIENT, <<"a@127.0.0.1">>, Shop, <<"otlp_shop">>},
                  {<<"otlp_db/price">>, ?SERVER, <<"b@127.0.0.1">>, Db, <<"otlp_db">>}],
                 path(<<"{price,17}">>, Config)),
    ?assertMatch(#{<<"rpc.system.name">> := <<"erlang">>, <<"rpc.method">> := <<"otlp_db/price">>,
                   <<"erlang.reply">> := <<"5">>, <<"erlang.peer.pid">> := Db,
                   <<"erlang.peer.node">> := <<"b@127.0.0.1">>}, attributes(call(<<"{price,17}">>, Config))).

%% A label of seq_trace makes a trace, also of messages that are not calls.
labeled(Config) ->
    #{mail := Mail} = ?config(story, Config),
    [{<<"request order_18">>, ?INTERNAL, _, _, _} | Rest] = path(<<"{price,18}">>, Config),
    ?assertEqual(tl(path(<<"{price,17}">>, Config)), Rest),
    [Root] = named(<<"request order_18">>, Config),
    [Cast] = named(<<"otlp_mail/mail">>, Config),
    ?assertEqual({id(Root), ?CONSUMER, trace(Root)}, {parent(Cast), maps:get(<<"kind">>, Cast), trace(Cast)}),
    ?assertMatch(#{<<"erlang.process.pid">> := Mail, <<"erlang.message">> := <<"{'$gen_cast',{mail,18}}">>},
                 attributes(Cast)),
    ?assertEqual(#{trace(Root) => [<<"request order_18">>], trace(call(<<"{price,17}">>, Config)) => [<<"checkout">>]},
                 maps:from_list([{Trace, [maps:get(<<"name">>, Span) || Span <- ?config(spans, Config),
                                                                        trace(Span) =:= Trace, parent(Span) =:= none]}
                                 || Trace <- [trace(Root), trace(call(<<"{price,17}">>, Config))]])).

%% Telemetry has the durations that its handlers see; the annotation has not more than the program has measured.
durations(Config) ->
    #{before := Before, then := Then, checkout_ns := Measured, orders_ns := Orders} = ?config(story, Config),
    ?assertEqual(Orders, [Ns || {_, Ns} <- lists:sort([{start(Span), ns(Span)}
                                                       || Span <- named(<<"shop.order /orders/:id">>, Config)])]),
    [Checkout] = named(<<"checkout">>, Config),
    Call = call(<<"{price,17}">>, Config),
    ?assert(Measured >= ns(Checkout), {Measured, Checkout}),
    ?assert(ns(Checkout) >= ns(Call), {Checkout, Call}),
    ?assert(ns(Call) >= ?SLEEP_MS * 1000000, Call),
    %% LTTng's description of its clock is less exact than the clock.
    Off = 100000000,
    [?assert(start(Span) > Before - Off andalso start(Span) < Then + Off, {Before, Then, Span})
     || Span <- [Checkout, Call]].

%% Errors have a status and a type. A span without an end is marked, and so is a server that has not replied.
outcomes(Config) ->
    Outcomes = [{maps:get(<<"name">>, Span), maps:get(<<"kind">>, Span),
                 maps:get(<<"status">>, Span, none), maps:get(<<"error.type">>, attributes(Span), none),
                 maps:get(<<"dyntrace.open">>, attributes(Span), false)}
                || Name <- [<<"checkout">>, <<"refund">>, <<"endless">>, <<"otlp_mail/silence">>,
                            <<"otlp_till/break">>],
                   Span <- named(Name, Config)],
    Failed = fun(Type) -> #{<<"code">> => ?ERROR, <<"message">> => Type} end,
    ?assertEqual(lists:sort([{<<"checkout">>, ?INTERNAL, none, none, false},
                             {<<"refund">>, ?INTERNAL, Failed(<<"error">>), <<"error">>, false},
                             {<<"endless">>, ?INTERNAL, none, none, true},
                             {<<"otlp_mail/silence">>, ?CLIENT, Failed(<<"timeout">>), <<"timeout">>, false},
                             {<<"otlp_mail/silence">>, ?SERVER, none, none, true},
                             {<<"otlp_till/break">>, ?CLIENT, Failed(<<"down">>), <<"down">>, false},
                             {<<"otlp_till/break">>, ?SERVER, Failed(<<"down">>), <<"down">>, false}]),
                 lists:sort(Outcomes)).

resources(Config) ->
    Host = list_to_binary(net_adm:localhost()),
    OsPid = maps:get(os_pid, ?config(story, Config)),
    Release = list_to_binary("Erlang/OTP " ++ erlang:system_info(otp_release)),
    #{<<"resource">> := Resource, <<"scope">> := Scope} = call(<<"{price,17}">>, Config),
    ?assertMatch(#{<<"name">> := <<"dyntrace">>}, Scope),
    ?assertMatch(#{<<"service.name">> := <<"a">>, <<"service.instance.id">> := <<"a@127.0.0.1">>,
                   <<"process.pid">> := OsPid, <<"process.runtime.name">> := <<"BEAM">>,
                   <<"process.runtime.description">> := Release}, Resource),
    ?assertEqual(hd(binary:split(Host, <<".">>)), hd(binary:split(maps:get(<<"host.name">>, Resource), <<".">>))).

%% Ids are unique, every parent is in the same trace, and the same recording has the same ids.
ids(Config) ->
    Spans = ?config(spans, Config),
    Traces = maps:from_list([{id(Span), trace(Span)} || Span <- Spans]),
    ?assertEqual(length(Spans), map_size(Traces)),
    [?assertEqual(trace(Span), maps:get(parent(Span), Traces), Span) || Span <- Spans, parent(Span) =/= none],
    ?assertEqual(Spans, spans(?config(folder, Config), Config)).

%% Of a damaged recording, the output is complete or absent.
truncated(Config) ->
    Copy = filename:join(?config(priv_dir, Config), "truncated"),
    {0, _} = test_shell:run("cp -r '~ts' '~ts'", [?config(folder, Config), Copy]),
    Streams = [File || File <- filelib:wildcard(Copy ++ "/**/*_[0-9]*"), filelib:is_regular(File)],
    [_ | _] = Streams,
    [{0, _} = test_shell:run("truncate --size=-~b '~ts'", [filelib:file_size(File) div 3, File]) || File <- Streams],
    File = filename:join(?config(priv_dir, Config), "truncated.otlp.json"),
    case test_viewer:view(otlp, [{path, File}], [Copy]) of
        {0, _} -> ?assert(is_list(read(File)));
        {_, _} -> ?assertNot(filelib:is_file(File))
    end.

%% A collector receives the same spans as the file has.
sent(Config) ->
    Port = integer_to_list(test_node:free_port()),
    Url = "http://127.0.0.1:" ++ Port,
    File = filename:join(?config(priv_dir, Config), "received.json"),
    Collector = test_command:launch(lists:flatten([receiver(), Port, " > '", File, "'"])),
    test_wait:until("the collector listens", fun() -> is_open(list_to_integer(Port)) end),
    {0, Output} = test_command:run(["view", ?config(folder, Config), "--otlp", Url ++ "/"]),
    Spans = ?config(spans, Config),
    ?assertEqual(lists:flatten(io_lib:format("sent ~b spans to ~ts/v1/traces~n", [length(Spans), Url])),
                 binary_to_list(Output)),
    ?assertEqual(Spans, test_viewer:decode(File)),
    ok = test_command:signal("TERM", Collector),
    _ = test_command:finish(Collector).

is_open(Port) ->
    case gen_tcp:connect({127, 0, 0, 1}, Port, []) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, Why} -> Why
    end.

%% -- Known content -------------------------------------------------------------------------------------

-define(A, "<0.90.0>").
-define(C, "<0.91.0>").

%% A span has the earlier spans of its process as children; those that overlap it have no parent.
long_span(Config) ->
    Trace = trace_of([span(1000, start, 1, "outer"), span(1500, start, 2, "over"), span(2000, start, 3, "inner"),
                      span(3000, stop, 3, "inner"), span(4000, stop, 1, "outer"), span(5000, stop, 2, "over")], Config),
    ?assertEqual([{<<"inner">>, <<"outer">>, <<"2000">>, <<"3000">>}, {<<"outer">>, none, <<"1000">>, <<"4000">>},
                  {<<"over">>, none, <<"1500">>, <<"5000">>}], lists:sort(known(spans(Trace, Config)))).

%% An event of telemetry that was reported 800 us after the program had measured its duration of 1000 us.
late_telemetry(Config) ->
    Trace = trace_of([span(1000000, start, 1, "before"), span(8000000, stop, 1, "before"),
                      span(8200000, start, 2, "within"), span(9100000, stop, 2, "within"),
                      {10000000, telemetry_event, #{pid => ?C, name => "order.stop", duration => 1000000}}], Config),
    ?assertEqual([{<<"before">>, none, <<"1000000">>, <<"8000000">>},
                  {<<"order">>, none, <<"9000000">>, <<"10000000">>},
                  {<<"within">>, <<"order">>, <<"8200000">>, <<"9100000">>}], lists:sort(known(spans(Trace, Config)))).

%% A message that was sent before a span, but delivered during it, does not hide earlier children of the span.
late_message(Config) ->
    Cast = "{'$gen_cast',{mail,17}}",
    Token = (message(?C, ?A, Cast))#{label => "order", current => 1},
    Trace = trace_of([{1000, seq_trace_send, Token}, {1010, message_send, message(?C, ?A, Cast)},
                      span(2000, start, 1, "outer"), span(3000, start, 2, "inner"), span(4000, stop, 2, "inner"),
                      {5000, message_delivery, message(?C, ?A, Cast)}, span(6000, stop, 1, "outer")], Config),
    ?assertEqual([{<<"inner">>, <<"outer">>, <<"3000">>, <<"4000">>}, {<<"outer">>, none, <<"2000">>, <<"6000">>},
                  {<<"process/mail">>, <<"request order">>, <<"1000">>, <<"5000">>},
                  {<<"request order">>, none, <<"1000">>, <<"5000">>}], lists:sort(known(spans(Trace, Config)))).

%% Two messages are received in one run, but seq_trace reports only the second. The run shows that the first one was
%% delivered. If nothing shows it, the span lasts until the receiver exits or the recording ends.
unreported_receives(Config) ->
    Casts = ["{'$gen_cast',{" ++ Name ++ ",17}}" || Name <- ["order", "mail", "bill"]],
    [Order, Mail, Bill] = [fun(Time, Event) ->
                                   {Time, Event, (message(?C, ?A, Cast))#{label => "order", current => N}}
                           end || {N, Cast} <- lists:enumerate(Casts)],
    Sends = [Order(1000, seq_trace_send), in(1100, ?A), Order(1200, seq_trace_receive), out(1300, ?A),
             Mail(2000, seq_trace_send), Bill(3000, seq_trace_send)],
    Known = fun(Events) ->
                    [{Name, Begin, End, maps:get(<<"dyntrace.open">>, attributes(Span), false)}
                     || Span <- spans(trace_of(Sends ++ Events, Config), Config),
                        {<<"process/", Name/binary>>, _, Begin, End} <- known([Span])]
            end,
    ?assertEqual([{<<"bill">>, <<"3000">>, <<"5000">>, false}, {<<"mail">>, <<"2000">>, <<"4000">>, false},
                  {<<"order">>, <<"1000">>, <<"1100">>, false}],
                 lists:sort(Known([in(4000, ?A), Bill(5000, seq_trace_receive), out(6000, ?A)]))),
    Exit = {4000, process_exit, #{pid => ?A, reason => "normal"}},
    ?assertEqual([{<<"bill">>, <<"3000">>, <<"4000">>, true}, {<<"mail">>, <<"2000">>, <<"4000">>, true},
                  {<<"order">>, <<"1000">>, <<"1100">>, false}], lists:sort(Known([Exit, in(9000, ?C)]))),
    ?assertEqual([{<<"bill">>, <<"3000">>, <<"9000">>, true}, {<<"mail">>, <<"2000">>, <<"9000">>, true},
                  {<<"order">>, <<"1000">>, <<"1100">>, false}], lists:sort(Known([in(9000, ?C)]))).

%% The counter of a process has restarted, and two messages with the same token are received in one run.
equal_tokens(Config) ->
    [First, Second] = [fun(Time, Event) -> {Time, Event, (message(?C, ?A, Cast))#{label => "order", current => 1}} end
                       || Cast <- ["{'$gen_cast',{order,17}}", "{'$gen_cast',{mail,17}}"]],
    Trace = trace_of([First(1000, seq_trace_send), Second(2000, seq_trace_send), First(3000, seq_trace_receive),
                      Second(4000, seq_trace_receive)], Config),
    ?assertEqual([{<<"process/mail">>, <<"request order">>, <<"2000">>, <<"4000">>},
                  {<<"process/order">>, <<"request order">>, <<"1000">>, <<"3000">>},
                  {<<"request order">>, none, <<"1000">>, <<"4000">>}], lists:sort(known(spans(Trace, Config)))).

%% A server that leaves the reply to later works for others meanwhile: their calls are not part of the first.
deferred(Config) ->
    First = "{'$gen_call',{<0.90.0>,[alias|#Ref<0.1.2.3>]},{get,17}}",
    Trace = trace_of([in(100000, ?A), {1000000, message_send, message(?A, ?C, First)}, in(2000000, ?C),
                      {2010000, message_delivery, message(?A, ?C, First)}, out(3000000, ?C), in(20000000, ?C),
                      span(21000000, start, 1, "other"), span(22000000, stop, 1, "other"),
                      {23000000, message_send, message(?C, ?A, "{[alias|#Ref<0.1.2.3>],ok}")}, out(24000000, ?C)],
                     Config),
    ?assertEqual([{<<"other">>, none, <<"21000000">>, <<"22000000">>},
                  {<<"process/get">>, none, <<"1000000">>, <<"23000000">>},
                  {<<"process/get">>, <<"process/get">>, <<"2010000">>, <<"23000000">>}],
                 lists:sort(known(spans(Trace, Config)))).

%% Spans beyond the limit are written as they come, in lines of bounded length.
many_spans(Config) ->
    Number = 21000,
    Trace = trace_of([span(N * 10 + At, Event, N, "job")
                      || N <- lists:seq(1, Number), {At, Event} <- [{0, start}, {5, stop}]], Config),
    File = filename:join(?config(priv_dir, Config), "many.otlp.json"),
    {0, _} = test_viewer:view(otlp, [{path, File}], [Trace]),
    {ok, Text} = file:read_file(File),
    ?assertEqual(Number, length(binary:matches(Text, <<"\"spanId\":">>))),
    ?assert(lists:max([byte_size(Line) || Line <- binary:split(Text, <<"\n">>, [global])]) < 100000).

nothing(Config) ->
    File = filename:join(?config(priv_dir, Config), "nothing.otlp.json"),
    {0, Output} = test_viewer:view(otlp, [{path, File}], [trace_of([in(1000, ?A)], Config)]),
    ?assertMatch({match, _}, re:run(Output, "nothing to show: the recording has no calls of servers")),
    ?assertEqual({ok, <<"{\"resourceSpans\":[\n]}\n">>}, file:read_file(File)).

trace_of(Events, Config) -> test_viewer:make(Events, Config).
span(Time, start, Id, Name) -> {Time, user_span_start, #{pid => ?C, name => Name, id => Id}};
span(Time, stop, Id, Name) -> {Time, user_span_stop, #{pid => ?C, name => Name, id => Id, outcome => "ok"}}.
in(Time, Pid) -> {Time, process_scheduled, #{pid => Pid, entry => "gen_server:loop/7", type => "in"}}.
out(Time, Pid) -> {Time, process_scheduled, #{pid => Pid, entry => "gen_server:loop/7", type => "out"}}.
message(From, To, Text) -> #{from => From, to => To, message => Text}.

%% {Name, name of the parent, begin, end}
known(Spans) ->
    Names = maps:from_list([{id(Span), maps:get(<<"name">>, Span)} || Span <- Spans]),
    [{maps:get(<<"name">>, Span), maps:get(parent(Span), Names, none), maps:get(<<"startTimeUnixNano">>, Span),
      maps:get(<<"endTimeUnixNano">>, Span)} || Span <- Spans].

%% -- Helpers ---------------------------------------------------------------------------------------------

receiver() ->
    io_lib:format("node '~ts/test/support/otlp/receiver.mjs' '~ts' ", [test_shell:project(), test_npm:modules("otlp")]).

spans(Folder, Config) ->
    File = filename:join(?config(priv_dir, Config), "spans.otlp.json"),
    {0, _} = test_viewer:view(otlp, [{path, File}], [Folder]),
    read(File).

%% The spans of a file, as OpenTelemetry's messages have them.
read(File) ->
    Read = File ++ ".read",
    {0, <<>>} = test_shell:run("~ts '~ts' 2>&1 > '~ts'", [receiver(), File, Read]),
    test_viewer:decode(Read).

named(Name, Config) ->
    [Span || #{<<"name">> := Found} = Span <- ?config(spans, Config), Found =:= Name].

%% The client span of a call.
call(Request, Config) ->
    [Call] = [Span || Span <- ?config(spans, Config), #{<<"erlang.request">> := Of} <- [attributes(Span)],
                      Of =:= Request],
    Call.

%% From the root to the server's span of a call.
path(Request, Config) ->
    Client = id(call(Request, Config)),
    [Server] = [Span || Span <- ?config(spans, Config), parent(Span) =:= Client],
    above(Server, maps:from_list([{id(Span), Span} || Span <- ?config(spans, Config)]), []).

above(#{<<"name">> := Name, <<"kind">> := Kind, <<"resource">> := Resource} = Span, All, Below) ->
    #{<<"service.instance.id">> := Node} = Resource,
    #{<<"erlang.process.pid">> := Pid} = Attributes = attributes(Span),
    Path = [{Name, Kind, Node, Pid, maps:get(<<"erlang.process.registered_name">>, Attributes, none)} | Below],
    case parent(Span) of
        none -> Path;
        Parent -> above(maps:get(Parent, All), All, Path)
    end.

id(#{<<"spanId">> := Id}) -> Id.
trace(#{<<"traceId">> := Id}) -> Id.
parent(Span) -> maps:get(<<"parentSpanId">>, Span, none).
attributes(#{<<"attributes">> := Attributes}) -> Attributes.
start(#{<<"startTimeUnixNano">> := Time}) -> binary_to_integer(Time).
ns(#{<<"endTimeUnixNano">> := End} = Span) -> binary_to_integer(End) - start(Span).
