%% The probe port_sample: the ports with data in their output queues, compared with Erlang's own data.
-module(port_samples_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, call/2]).

-define(PROBE, port_sample).

%% What a connection sends, and how much of it is read first: so little that the kernel's buffers do not take the rest.
-define(BYTES, 20000000).
-define(FIRST_BYTES, 4000000).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [connection, largest].

%% The other side of a connection reads nothing at first, then a part, and then the rest of what has been sent.
connection(Config) ->
    Consumer = sampled(Config),
    {Sender, Port, Reader} = call(Config, fun connected/0),
    {Text, Owner} = call(Config, fun() -> {test_cases:text(Port), test_cases:text(Sender)} end),
    Samples = fun() -> [Sample || Sample = #{port := Of} <- samples(Consumer), Of =:= Text] end,
    Queue = fun() -> call(Config, fun() -> info(Port, queue_size) end) end,
    ok = test_wait:until("a sample without progress", fun({Sample, Expected}) -> Sample =:= Expected end,
                         fun() -> {lists:last([none | Samples()]),
                                   #{port => Text, pid => Owner, queue => Queue(), sent => 0}} end),
    read(Reader, ?FIRST_BYTES, Config),
    ok = test_wait:until("a sample with progress",
                         fun(#{queue := Left, sent := Sent}) -> Left > 0 andalso Sent > 0 end,
                         fun() -> lists:last(Samples()) end),
    read(Reader, ?BYTES - ?FIRST_BYTES, Config),
    ok = test_wait:until("its queue is empty", 0, Queue),
    ok = test_autotracer:until_sampled(3, Config),
    [First | Later] = Samples(),
    %% Nothing is written meanwhile: what has left it is no longer in the queue.
    _ = lists:foldl(fun(Sample = #{queue := Left, sent := Sent}, #{queue := Before}) ->
                            ?assertEqual(Before - Left, Sent),
                            Sample
                    end, First, Later),
    ok = test_autotracer:until_sampled(3, Config),
    ?assertEqual([First | Later], Samples()),
    [true = call(Config, fun() -> exit(Pid, kill) end) || Pid <- [Sender, Reader]],
    _ = test_bpftrace:stop(Consumer).

%% Of more ports with data, those with most data have samples, until they are closed.
largest(Config) ->
    All = call(Config, fun() -> [connected() || _ <- lists:seq(1, 12)] end),
    Consumer = sampled(Config),
    ok = until_longest([Port || {_, Port, _} <- All], Consumer, Config),
    #{port := Closed} = lists:last(samples(Consumer)),
    Left = call(Config, fun() ->
                                {[{_, _, Reader}], Left} =
                                    lists:partition(fun({_, Port, _}) -> test_cases:text(Port) =:= Closed end, All),
                                true = exit(Reader, kill),
                                [Port || {_, Port, _} <- Left]
                        end),
    ok = until_longest(Left, Consumer, Config),
    [true = call(Config, fun() -> exit(Pid, kill) end) || {Sender, _, Reader} <- All, Pid <- [Sender, Reader]],
    _ = test_bpftrace:stop(Consumer).

%% Waits until the last ten samples are those of the ten longest queues.
until_longest(Ports, Consumer, Config) ->
    Longest = fun() ->
                      Sorted = lists:sort([{info(Port, queue_size), Port} || Port <- Ports]),
                      [test_cases:text(Port) || {_, Port} <- lists:nthtail(length(Ports) - 10, Sorted)]
              end,
    test_wait:until("samples of the ten longest queues", fun({Sampled, Expected}) -> Sampled =:= Expected end,
                    fun() ->
                            Sampled = [Of || #{port := Of} <- samples(Consumer)],
                            {lists:sort(lists:sublist(lists:reverse(Sampled), 10)), lists:sort(call(Config, Longest))}
                    end).

read(Reader, Bytes, Config) ->
    call(Config, fun() -> Reader ! {read, Bytes, self()}, receive {Reader, read} -> ok end end).

sampled(Config) ->
    start([{interval, 10}], Config),
    attach([?PROBE], Config).

samples(Consumer) ->
    [Sample || {?PROBE, Sample} <- test_bpftrace:events(Consumer)].

%% -- On the node -----------------------------------------------------------------------------

info(Port, Item) ->
    {Item, Value} = erlang:port_info(Port, Item),
    Value.

%% The owner of a connection, in whose queue data waits, the connection, and the process at the other side.
connected() ->
    Self = self(),
    {ok, Listener} = gen_tcp:listen(0, [{active, false}, binary, {ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listener),
    Reader = spawn(fun() -> {ok, Socket} = gen_tcp:accept(Listener), Self ! accepted, reads(Socket) end),
    Sender = spawn(fun() ->
                           {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number, [{high_watermark, 100000000}]),
                           ok = gen_tcp:send(Socket, <<0:(8 * ?BYTES)>>),
                           Self ! {self(), Socket},
                           receive never -> ok end
                   end),
    receive accepted -> ok end,
    ok = gen_tcp:controlling_process(Listener, Reader),
    receive {Sender, Port} -> {Sender, Port, Reader} end.

reads(Socket) ->
    receive {read, Bytes, From} -> {ok, _} = read(Socket, Bytes), From ! {self(), read} end,
    reads(Socket).

read(_, 0) -> {ok, all};
read(Socket, Left) ->
    {ok, Data} = gen_tcp:recv(Socket, min(Left, 1000000)),
    read(Socket, Left - byte_size(Data)).
