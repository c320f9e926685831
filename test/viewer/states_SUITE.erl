%% States, threads, mailboxes and rates in the viewer's model of a recording of a live node, compared with the VM's own
%% data: status, current function and queue from `process_info/2', and the times that processes measured.
-module(states_SUITE).

-include("../support/suite.hrl").

-define(CONNECTIONS, 20).
-define(MESSAGES, 10).
-define(DIRTY_MS, 200).
-define(LARGE, 100000).
-define(LATE_MS, 500).
-define(SALE_MS, 5).

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [a_sleeper, a_suspended_writer, dirty_schedulers, an_acceptor, answers_by_messages, a_rate].

init_per_suite(Config) ->
    case test_require:tool(test_viewer:missing(), Config) of
        Skipped when is_tuple(Skipped) -> Skipped;
        _ ->
            Folder = filename:join(?config(priv_dir, Config), "states"),
            On = fun(Fun) -> fun([Node]) -> test_node:call(Node, Fun) end end,
            %% With a budget, the probe `cost_limit' does not pause tracing.
            Facts = test_recording:make(Folder, #{before => On(fun start_seller/0), env => [{budget, 1000000}]},
                                        On(fun story/0)),
            Lines = [binary_to_list(Line) || Line <- test_viewer:lines(model, [], [Folder])],
            %% In Config, they would be copied for each case, which takes the test server too long on a busy machine.
            persistent_term:put(?MODULE, Lines),
            [{facts, Facts}, {report, test_viewer:json(report, [{format, "json"}], [Folder])} | Config]
    end.

end_per_suite(_) ->
    persistent_term:erase(?MODULE),
    ok.

%% -- On the node ---------------------------------------------------------------------------------

%% Name => the VM's data about the process at the end, and what the process noted.
story() ->
    test_wait:until("the flags are set that the seller delays", true,
                    fun() -> maps:get(processes, dyntrace_autotracer:info()) =/= [] end),
    Others = maps:merge(waiters(), maps:merge(on_dirty_schedulers(), connections())),
    seller ! {report, self()},
    receive {sold, Sold} -> Others#{seller => Sold} end.

%% A process that marks each of its sends. When the recording begins, it keeps the worker from setting trace flags for a
%% while.
start_seller() ->
    Sink = spawn(fun sink/0),
    Parent = self(),
    register(seller, spawn(fun() ->
                                   Worker = whereis(dyntrace_autotracer),
                                   true = erlang:suspend_process(Worker),
                                   Parent ! suspended,
                                   test_wait:until("marks are recorded", true, fun() -> is_enabled(user_mark) end),
                                   Begin = erlang:monotonic_time(millisecond),
                                   Sold = sell(Sink, Begin, 0, Begin + ?LATE_MS),
                                   true = erlang:resume_process(Worker),
                                   sell(Sink, Begin, Sold, infinity)
                           end)),
    receive suspended -> ok end.

is_enabled(Probe) ->
    lists:any(fun(#{name := Name}) -> Name =:= Probe end, dyntrace:listeners()).

sink() ->
    receive _ -> sink() end.

%% One per SALE_MS; if it was delayed, it makes up for that.
sell(_, Begin, Sold, Until) when Begin + Sold * ?SALE_MS >= Until ->
    Sold;
sell(Sink, Begin, Sold, Until) ->
    _ = dyntrace:mark("sold", ""),
    Sink ! sold,
    receive
        {report, To} ->
            Ms = erlang:monotonic_time(millisecond) - Begin,
            To ! {sold, #{pid => pid_to_list(self()), sent => Sold + 1, ms => Ms}}
    after max(0, Begin + (Sold + 1) * ?SALE_MS - erlang:monotonic_time(millisecond)) -> ok
    end,
    sell(Sink, Begin, Sold + 1, Until).

facts(Pid) ->
    {status, Status} = process_info(Pid, status),
    {current_function, {M, F, A}} = process_info(Pid, current_function),
    {message_queue_len, Queue} = process_info(Pid, message_queue_len),
    #{pid => pid_to_list(Pid), status => Status, function => lists:flatten(io_lib:format("~s:~s/~b", [M, F, A])),
      queue => Queue}.

%% A sleeping process and one whose port is busy get messages that neither receives before the recording ends.
waiters() ->
    {Ours, Theirs} = socket_pair(),
    Sleeper = spawn(fun() -> timer:sleep(infinity) end),
    Writer = spawn(fun() -> receive go -> write(Ours) end end),
    Writer ! go,
    test_wait:until("the sleeper sleeps", "timer:sleep/1", fun() -> maps:get(function, facts(Sleeper)) end),
    test_wait:until("the writer is suspended", suspended, fun() -> maps:get(status, facts(Writer)) end),
    [begin Sleeper ! N, Writer ! N, timer:sleep(10) end || N <- lists:seq(1, ?MESSAGES)],
    Found = #{sleeper => facts(Sleeper), writer => facts(Writer)},
    ok = drain(Theirs, Writer),
    Found.

write(Port) ->
    port_command(Port, binary:copy(<<0>>, ?LARGE)),
    receive last -> ok after 0 -> write(Port) end.

%% Reads until the writer continues and ends.
drain(Socket, Writer) ->
    Writer ! last,
    Ref = monitor(process, Writer),
    read(Socket, Ref).

read(Socket, Ref) ->
    {ok, _} = gen_tcp:recv(Socket, 0),
    receive {'DOWN', Ref, process, _, normal} -> ok after 0 -> read(Socket, Ref) end.

socket_pair() ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listening),
    {ok, Theirs} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {active, false}]),
    {ok, Ours} = gen_tcp:accept(Listening),
    {Ours, Theirs}.

on_dirty_schedulers() ->
    erts_debug:set_internal_state(available_internal_state, true),
    maps:from_list([{Kind, #{pid => pid_to_list(ended(fun() -> erts_debug:Kind(wait, ?DIRTY_MS) end))}}
                    || Kind <- [dirty_io, dirty_cpu]]).

%% The process that ran Fun.
ended(Fun) ->
    {Pid, Ref} = spawn_monitor(Fun),
    receive {'DOWN', Ref, process, Pid, normal} -> Pid end.

%% A server that hands each connection over, and a process that controls its port by messages.
connections() ->
    {ok, Listening} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listening),
    Self = self(),
    Acceptor = spawn(fun() -> accept(Listening, ?CONNECTIONS), Self ! accepted, receive stop -> ok end end),
    Sockets = [begin
                   {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {active, false}]),
                   {ok, <<"hello">>} = gen_tcp:recv(Socket, 5),
                   Socket
               end || _ <- lists:seq(1, ?CONNECTIONS)],
    receive accepted -> ok end,
    Asker = spawn(fun() -> ask(Self), Self ! asked, receive stop -> ok end end),
    receive asked -> ok end,
    Found = #{acceptor => facts(Acceptor), asker => facts(Asker)},
    [gen_tcp:close(Socket) || Socket <- Sockets],
    Found.

accept(_, 0) ->
    ok;
accept(Listening, More) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    Handler = spawn(fun() -> receive go -> handle(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Handler),
    Handler ! go,
    accept(Listening, More - 1).

handle(Socket) ->
    ok = gen_tcp:send(Socket, "hello"),
    {error, closed} = gen_tcp:recv(Socket, 1).

ask(Other) ->
    Given = open_port({spawn, "cat"}, []),
    Given ! {self(), {connect, Other}},
    receive {Given, connected} -> unlink(Given) end,
    Closed = open_port({spawn, "cat"}, []),
    Closed ! {self(), close},
    receive {Closed, closed} -> ok end.

%% -- Cases ---------------------------------------------------------------------------------------

%% A message does not end the sleep, so the process never waits for a scheduler. Each message is in flight until the VM
%% moves it to the mailbox: OTP 25 moves all of them in process_info/2, OTP 29 one by one.
a_sleeper(Config) ->
    #{pid := Pid, status := waiting, function := "timer:sleep/1", queue := ?MESSAGES} = fact(sleeper, Config),
    ?assertEqual([], runnable_in(Pid, "timer:sleep/1")),
    #{<<"mailbox_max">> := InFlight} = reported(sleeper, Config),
    ?assert(InFlight >= 1 andalso InFlight =< ?MESSAGES, InFlight).

%% Messages arrive while the process is suspended, in OTP 25 together with the port's answers. It continues when the
%% port is no longer busy.
a_suspended_writer(Config) ->
    #{pid := Pid, status := suspended, function := Function, queue := Queue} = fact(writer, Config),
    ?assert(Queue >= ?MESSAGES, Queue),
    ?assertMatch([_ | _], intervals(Pid, "waiting", Function)),
    ?assertEqual([], runnable_in(Pid, Function)).

%% Both processes wait for the same time. For the scheduler, one of them occupies a CPU.
dirty_schedulers(Config) ->
    #{<<"run_ns">> := Ran, <<"dirty_cpu_ns">> := 0, <<"dirty_io_ns">> := Io} = reported(dirty_io, Config),
    ?assert(Io >= ?DIRTY_MS * 1000000 andalso Ran < Io, {Io, Ran}),
    #{<<"run_ns">> := All, <<"dirty_cpu_ns">> := Cpu, <<"dirty_io_ns">> := 0} = reported(dirty_cpu, Config),
    ?assert(Cpu >= ?DIRTY_MS * 1000000 andalso Cpu =< All, {Cpu, All}).

%% Each port answers the call that hands it over; the answer is not a message.
an_acceptor(Config) ->
    #{pid := Pid, queue := 0} = fact(acceptor, Config),
    Reported = [Line || Line <- lines(), is_about(Pid, Line), kind(Line) =:= "mailbox"],
    ?assert(length(Reported) >= ?CONNECTIONS, Reported),
    ?assertEqual(0, mailbox(Pid)).

answers_by_messages(Config) ->
    #{pid := Pid, queue := 0} = fact(asker, Config),
    Delivered = [Line || Line <- lines(), kind(Line) =:= "delivered",
                         lists:prefix(Pid ++ "#", value("to", Line)),
                         re:run(value("text", Line), "^\"{#Port<[0-9.]+>,(connected|closed)}\"$") =/= nomatch],
    ?assertEqual(2, length(Delivered)),
    ?assertEqual(0, mailbox(Pid)).

%% A recording that begins before trace flags are set: rates are those of the traced time.
a_rate(Config) ->
    #{sent := Sent, ms := Ms} = fact(seller, Config),
    #{<<"recording">> := #{<<"nodes">> := [#{<<"traced_ns">> := TracedNs}], <<"untraced_ns">> := UntracedNs}} =
        ?config(report, Config),
    #{<<"sent">> := Recorded} = reported(seller, Config),
    ?assert(UntracedNs >= ?LATE_MS * 1000000, UntracedNs),
    [Counted, Reported] = [1000 * Sent / Ms, 1.0e9 * Recorded / TracedNs],
    ?assert(abs(Reported / Counted - 1) < 0.05, {Counted, Reported}).

%% -- Lines of the model --------------------------------------------------------------------------

fact(Name, Config) ->
    maps:get(Name, ?config(facts, Config)).

reported(Name, Config) ->
    #{pid := Pid} = fact(Name, Config),
    [Row] = [Row || Row = #{<<"process">> := #{<<"pid">> := Its}} <- maps:get(<<"processes">>, ?config(report, Config)),
                    binary_to_list(Its) =:= Pid],
    Row.

lines() ->
    persistent_term:get(?MODULE).

runnable_in(Pid, Function) ->
    intervals(Pid, "runnable", Function).

intervals(Pid, State, Function) ->
    [Line || Line <- lines(), kind(Line) =:= "interval", is_about(Pid, Line),
             value("state", Line) =:= State, value("out", Line) =:= "\"" ++ Function ++ "\""].

%% The mailbox's length at the end of the recording.
mailbox(Pid) ->
    lists:foldl(fun(Line, Length) ->
                        case kind(Line) =:= "mailbox" andalso is_about(Pid, Line) of
                            true -> list_to_integer(value("messages", Line));
                            false -> Length
                        end
                end, 0, before_end(lines())).

%% Leaves out the end, where messages in flight are reported as gone.
before_end(Lines) ->
    End = hd(lists:last([string:lexemes(Line, " ") || Line <- Lines, kind(Line) =:= "process_gone"])),
    [Line || Line <- Lines, hd(string:lexemes(Line, " ")) =/= End].

kind(Line) ->
    lists:nth(2, string:lexemes(Line, " ")).

is_about(Pid, Line) ->
    lists:prefix(Pid ++ "#", value("process", Line)).

value(Key, Line) ->
    case re:run(Line, " " ++ Key ++ "=(\"(\\\\.|[^\"\\\\])*\"|[^ ]*)", [{capture, [1], list}]) of
        {match, [Text]} -> Text;
        nomatch -> ""
    end.
