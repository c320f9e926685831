%% The probe process_sample: the processes with the largest queue, heap and reductions, compared with Erlang's own data.
-module(process_samples_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, call/2, until_following/3]).

-define(PROBE, process_sample).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [long_queue, large_heap, busy, named, suspended, in_native_function, of_many, no_signal_without_need, waits,
     waits_for_lock, no_waits, lttng].

%% -- Values --------------------------------------------------------------------------------

long_queue(Config) ->
    Pid = call(Config, fun() -> with_queue(12345) end),
    sampled(Pid, #{queue => 12345, state => <<"waiting">>, reductions => 0}, Config).

large_heap(Config) ->
    Pid = call(Config, fun() -> made(fun() -> lists:seq(1, 1000000) end) end),
    sampled(Pid, #{queue => 0, state => <<"waiting">>, reductions => 0}, Config).

%% The work between two samples is at most the work between a reading before the first and one after the second.
busy(Config) ->
    Pid = call(Config, fun() -> spawn(fun count/0) end),
    Text = call(Config, fun() -> test_cases:text(Pid) end),
    start([{interval, 10}], Config),
    Before = call(Config, fun() -> reductions(Pid) end),
    Consumer = attach([?PROBE], Config),
    Samples = fun() -> [Sample || {_, Sample = #{pid := Of, reductions := More}} <- test_bpftrace:events(Consumer),
                                  Of =:= Text, More > 0] end,
    ok = test_wait:until("two samples", fun() -> length(Samples()) >= 2 end),
    After = call(Config, fun() -> reductions(Pid) end),
    [#{reductions := First, queue := 0, entry := Function}, #{reductions := Second} | _] = Samples(),
    ?assert(First + Second =< After - Before, {First, Second, After - Before}),
    ?assert(First > 100000, First),
    ?assertMatch(<<"process_samples_SUITE:", _/binary>>, Function),
    _ = test_bpftrace:stop(Consumer).

count() -> count(1000).

count(0) -> count();
count(N) -> count(N - 1).

%% A process that was spawned after the dump has a name when it is sampled, and no trace flag is set.
named(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([?PROBE, process_named, dump_end], Config),
    _ = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= dump_end end),
    Pid = call(Config, fun() -> proc_lib:spawn(fun() -> true = register(late_counter, self()), count() end) end),
    Text = call(Config, fun() -> test_cases:text(Pid) end),
    Initial = call(Config, fun() ->
                                   {Module, Function, Arity} = proc_lib:translate_initial_call(Pid),
                                   iolist_to_binary(io_lib:format("~p:~p/~b", [Module, Function, Arity]))
                           end),
    _ = test_bpftrace:await(Consumer, fun(Event) -> Event =:= {process_named, #{pid => Text, initial => Initial,
                                                                                name => <<"late_counter">>,
                                                                                label => <<>>}} end),
    ?assertMatch(#{processes := []}, call(Config, fun dyntrace_autotracer:info/0)),
    true = call(Config, fun() -> exit(Pid, kill) end),
    _ = test_bpftrace:stop(Consumer).

%% A process that is suspended while messages wait is reported.
suspended(Config) ->
    {Pid, _} = call(Config, fun() ->
                                    Pid = with_queue(100),
                                    Suspender = spawn(fun() -> erlang:suspend_process(Pid), sleep() end),
                                    {Pid, Suspender}
                            end),
    sampled(Pid, #{queue => 100, state => <<"suspended">>}, Config).

%% A process that does not leave a native function on a dirty scheduler, because the FIFO has no writer.
in_native_function(Config) ->
    Fifo = filename:join(?config(priv_dir, Config), "fifo"),
    "" = os:cmd("mkfifo " ++ Fifo),
    Pid = call(Config, fun() -> spawn(fun() -> file:open(Fifo, [raw, read]) end) end),
    test_wait:until("the native function", {current_function, {prim_file, open_nif, 2}},
                    fun() -> call(Config, fun() -> process_info(Pid, current_function) end) end),
    Expected = #{queue => 0, state => <<"running">>, reductions => 0, entry => <<"prim_file:open_nif/2">>},
    try sampled(Pid, Expected, Config)
    after os:cmd(": > " ++ Fifo)
    end.

%% There are more processes than one sample reads. The leading process is read last.
of_many(Config) ->
    call(Config, fun() -> [spawn(fun sleep/0) || _ <- lists:seq(1, 12000)] end),
    Pid = call(Config, fun() -> with_queue(500) end),
    sampled(Pid, #{queue => 500, state => <<"waiting">>, reductions => 0}, Config).

%% Of processes that do not run, those that are reported are asked once, and once more for their monitors if they have
%% messages; others never. A request costs one reduction.
no_signal_without_need(Config) ->
    Pids = call(Config, fun() -> [made(fun() -> nothing end) || _ <- lists:seq(1, 100)] end),
    Led = call(Config, fun() -> with_queue(1000) end),
    Before = call(Config, fun() -> [reductions(Pid) || Pid <- [Led | Pids]] end),
    sampled(Led, #{queue => 1000}, Config),
    After = call(Config, fun() -> [reductions(Pid) || Pid <- [Led | Pids]] end),
    [OfLed | Others] = lists:zipwith(fun(A, B) -> B - A end, Before, After),
    %% The third request is the test's own.
    ?assertEqual(3, OfLed),
    ?assert(length([Pid || Pid <- Others, Pid > 0]) =< 20, Others).

%% Front calls the holder of a socket, which has messages, and is called itself.
waits(Config) ->
    Pids = [Front, Holder | _] =
        call(Config, fun() ->
                             Holder = spawn(fun() ->
                                                    {ok, Listener} = gen_tcp:listen(0, [{active, false}]),
                                                    {ok, Port} = inet:port(Listener),
                                                    {ok, Socket} = gen_tcp:connect("localhost", Port,
                                                                                   [{active, false}]),
                                                    gen_tcp:recv(Socket, 0)
                                            end),
                             Front = caller(Holder, sleep),
                             [Front, Holder | [caller(Front, sleep) || _ <- lists:seq(1, 3)]]
                     end),
    Text = fun(Pid) -> call(Config, fun() -> test_cases:text(Pid) end) end,
    start([{interval, 10}], Config),
    Consumer = attach([process_wait], Config),
    Waits = fun(Pid) -> [Wait || {process_wait, Wait = #{pid := Of}} <- test_bpftrace:events(Consumer),
                                 Of =:= Pid] end,
    ok = test_wait:until("both wait", fun() -> Waits(Text(Holder)) =/= [] andalso Waits(Text(Front)) =/= [] end),
    ?assertMatch(#{kind := <<"call">>, callers := 3}, lists:last(Waits(Text(Front)))),
    ?assertEqual(Text(Holder), maps:get(target, lists:last(Waits(Text(Front))))),
    ?assertMatch(#{kind := <<"socket">>, target := <<>>, callers := 1},
                 lists:last(Waits(Text(Holder)))),
    _ = test_bpftrace:stop(Consumer),
    call(Config, fun() -> [true = exit(Pid, kill) || Pid <- Pids] end).

%% Two processes without messages wait for a lock, which another one holds. There are more idle processes than one
%% sample reads; none is asked more than once.
waits_for_lock(Config) ->
    Lock = fun() -> global:set_lock({?MODULE, self()}) end,
    [Holder | Waiters] = Pids = call(Config, fun() -> [locks(Lock), spawn(Lock), spawn(Lock)] end),
    Idle = call(Config, fun() -> [spawn(fun sleep/0) || _ <- lists:seq(1, 6000)] end),
    ok = test_wait:until("all wait", 6000,
                         fun() -> call(Config, fun() -> length([1 || Pid <- Idle, process_info(Pid, status) =:=
                                                                                      {status, waiting}]) end) end),
    Before = call(Config, fun() -> [reductions(Pid) || Pid <- Idle] end),
    Text = fun(Pid) -> call(Config, fun() -> test_cases:text(Pid) end) end,
    start([{interval, 10}], Config),
    Consumer = attach([process_wait], Config),
    [_ = test_bpftrace:await(Consumer, fun(Event) -> Event =:= {process_wait, #{pid => Text(Waiter), kind => <<"lock">>,
                                                                                target => Text(Holder), callers => 0}}
                                       end)
     || Waiter <- Waiters],
    ok = test_autotracer:until_sampled(4, Config),
    _ = test_bpftrace:stop(Consumer),
    After = call(Config, fun() -> [reductions(Pid) || Pid <- Idle] end),
    ?assertEqual([], [N || N <- lists:zipwith(fun(A, B) -> A - B end, After, Before), N > 1]),
    call(Config, fun() -> [true = exit(Pid, kill) || Pid <- Pids ++ Idle] end).

locks(Lock) ->
    made(fun() -> true = Lock() end).

%% It has messages, and another process monitors it and calls a third one. Neither is called by a process that waits.
no_waits(Config) ->
    {Pid, Idle} = call(Config, fun() ->
                                       Idle = spawn(fun sleep/0),
                                       Pid = with_queue(50),
                                       _ = spawn(fun() ->
                                                         monitor(process, Pid),
                                                         gen_server:call(Idle, x, infinity)
                                                 end),
                                       {test_cases:text(Pid), test_cases:text(Idle)}
                               end),
    start([{interval, 10}], Config),
    Consumer = attach([?PROBE, process_wait], Config),
    Samples = fun() -> [Of || {?PROBE, #{pid := Of}} <- test_bpftrace:events(Consumer), Of =:= Pid] end,
    ok = test_wait:until("four samples", fun() -> length(Samples()) >= 4 end),
    ?assertEqual([], [Wait || {process_wait, Wait = #{pid := Of}} <- test_bpftrace:stop(Consumer),
                              lists:member(Of, [Pid, Idle])]).

lttng(Config) ->
    _ = test_require:tool(test_lttng:missing(), Config),
    Daemon = test_lttng:start_daemon(),
    try
        lttng_SUITE:until_known(Daemon, Config),
        Pid = call(Config, fun() -> with_queue(321) end),
        start([{interval, 10}], Config),
        Session = test_lttng:start(Daemon, [?PROBE]),
        until_following(sources, [process_samples], Config),
        test_autotracer:until_sampled(3, Config),
        Text = call(Config, fun() -> test_cases:text(Pid) end),
        [Sample | _] = [Fields || {?PROBE, Fields = #{pid := Of}} <- test_lttng:stop(Session), Of =:= Text],
        ?assertMatch(#{queue := 321, state := <<"waiting">>, entry := <<"process_samples_SUITE:sleep/0">>}, Sample)
    after
        test_lttng:stop_daemon(Daemon)
    end.

%% -- Helpers -------------------------------------------------------------------------------

%% The process is sampled at least twice with these values, and with its own answer.
sampled(Pid, Expected, Config) ->
    {Text, Memory, Function} =
        call(Config, fun() ->
                             [{memory, Memory}, {current_function, Function}] =
                                 process_info(Pid, [memory, current_function]),
                             {test_cases:text(Pid), Memory, test_cases:location(Function)}
                     end),
    start([{interval, 10}], Config),
    Consumer = attach([?PROBE], Config),
    Samples = fun(Events) -> [Fields || {_, Fields = #{pid := Of}} <- Events, Of =:= Text] end,
    ok = test_wait:until("two samples", fun() -> length(Samples(test_bpftrace:events(Consumer))) >= 2 end),
    All = Expected#{memory => Memory, entry => Function},
    [?assertEqual(All, maps:with(maps:keys(All), Sample)) || Sample <- Samples(test_bpftrace:stop(Consumer))],
    until_following(sources, [], Config).

%% On the node, as the functions below.
with_queue(Length) ->
    Pid = spawn(fun sleep/0),
    [Pid ! N || N <- lists:seq(1, Length)],
    Pid.

%% A process that calls Server, and has a message of its own.
caller(Server, Message) ->
    Pid = spawn(fun() -> gen_server:call(Server, x, infinity) end),
    Pid ! Message,
    Pid.

%% A process that has made something, keeps it, and has stopped running.
made(Make) ->
    Self = self(),
    Pid = spawn(fun() ->
                        Made = Make(),
                        Self ! {self(), made},
                        sleep(),
                        Made
                end),
    receive {Pid, made} -> ok end,
    ok = test_wait:until("it waits", fun() -> process_info(Pid, status) =:= {status, waiting} end),
    Pid.

sleep() ->
    receive never -> ok end.

reductions(Pid) ->
    {reductions, Reductions} = process_info(Pid, reductions),
    Reductions.
