%% The probe socket_sample: the processes with the most sockets of the module `socket', compared with Erlang's own data.
-module(socket_samples_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, call/2]).

-define(PROBE, socket_sample).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [owners, addresses, names, shape, too_many].

%% Of twelve owners, the ten with the most sockets have samples, which follow what they open and close.
owners(Config) ->
    Owners = call(Config, fun() -> [owner(60 + N) || N <- lists:seq(1, 11)] ++ [owner(49)] end),
    Consumer = sampled(Config),
    ok = until_largest(Owners, Consumer, Config),
    ok = call(Config, fun() -> resize(hd(Owners), 40) end),
    ok = until_largest(Owners, Consumer, Config),
    ok = call(Config, fun() -> resize(lists:nth(2, Owners), -20) end),
    ok = until_largest(Owners, Consumer, Config),
    ok = stop(Owners, Config),
    ok = test_autotracer:until_sampled(6, Config),
    Last = length(samples(Consumer)),
    ok = test_autotracer:until_sampled(6, Config),
    ?assertEqual(Last, length(samples(Consumer))),
    _ = test_bpftrace:stop(Consumer).

%% Waits until the last samples are those of the ten processes with the most sockets.
until_largest(Owners, Consumer, Config) ->
    Largest = fun() ->
                      Numbers = [{length([one || Socket <- socket:which_sockets(),
                                                 maps:get(owner, socket:info(Socket)) =:= Owner]),
                                  test_cases:text(Owner)} || Owner <- Owners],
                      lists:sublist(lists:reverse(lists:sort(Numbers)), 10)
              end,
    test_wait:until("samples of the ten largest owners", fun({Sampled, Expected}) -> Sampled =:= Expected end,
                    fun() ->
                            Sampled = [{Number, Pid} || #{sockets := Number, pid := Pid} <- samples(Consumer)],
                            {lists:reverse(lists:sort(lists:sublist(lists:reverse(Sampled), 10))),
                             call(Config, Largest)}
                    end).

%% The example is the newest socket, with the addresses of both ends.
addresses(Config) ->
    Owner = call(Config, fun() -> owner(60) end),
    Consumer = sampled(Config),
    ok = test_wait:until("a sample", fun() -> samples(Consumer) =/= [] end),
    Expected = call(Config, fun() -> connected(Owner) end),
    ok = test_wait:until("its addresses", fun(Name) -> Name =:= Expected end,
                         fun() -> maps:get(name, lists:last(samples(Consumer))) end),
    ok = stop([Owner], Config),
    _ = test_bpftrace:stop(Consumer).

%% Local sockets have no protocol; a client has no path of its own. A protocol without a name has a number.
names(Config) ->
    {Name, Owner} = call(Config, fun local_clients/0),
    Raw = call(Config, fun raw/0),
    Consumer = sampled(Config),
    Expected = [{test_cases:text(Owner), iolist_to_binary(["local <-> ", Name])}
                | [{test_cases:text(Pid), <<"protocol 253 0.0.0.0:253">>} || Pid <- Raw]],
    ok = test_wait:until("both names", fun(Names) -> Expected -- Names =:= [] end,
                         fun() -> [{Pid, Sampled} || #{pid := Pid, name := Sampled} <- samples(Consumer)] end),
    ok = stop([Owner | Raw], Config),
    _ = test_bpftrace:stop(Consumer).

%% Addresses are contents.
shape(Config) ->
    Owner = call(Config, fun() -> owner(60) end),
    _ = call(Config, fun() -> connected(Owner) end),
    start([{interval, 10}, {text, shape}], Config),
    Consumer = attach([?PROBE], Config),
    ok = test_wait:until("a sample", fun() -> samples(Consumer) =/= [] end),
    ?assertEqual([], [Name || #{name := Name} <- samples(Consumer), Name =/= <<"tcp">>, Name =/= <<"udp">>]),
    ok = stop([Owner], Config),
    _ = test_bpftrace:stop(Consumer).

%% A node with very many sockets is not sampled.
too_many(Config) ->
    [Few, Many] = call(Config, fun() -> [owner(60), owner(10000)] end),
    Consumer = sampled(Config),
    ok = test_autotracer:until_sampled(6, Config),
    ?assertEqual([], samples(Consumer)),
    ok = stop([Many], Config),
    ok = test_wait:until("a sample", fun() -> samples(Consumer) =/= [] end),
    ok = stop([Few], Config),
    _ = test_bpftrace:stop(Consumer).

sampled(Config) ->
    start([{interval, 10}], Config),
    attach([?PROBE], Config).

samples(Consumer) ->
    [Sample || {?PROBE, Sample} <- test_bpftrace:events(Consumer)].

stop(Owners, Config) ->
    call(Config, fun() ->
                         Before = socket:number_of(),
                         _ = [true = exit(Owner, kill) || Owner <- Owners],
                         test_wait:until("the sockets are closed", fun() -> socket:number_of() < Before end)
                 end).

%% -- On the node -----------------------------------------------------------------------------

%% A process that owns that many sockets.
owner(Number) ->
    Self = self(),
    Owner = spawn(fun() -> owns([], Number, Self) end),
    receive {Owner, done} -> Owner end.

resize(Owner, By) ->
    Owner ! {resize, By, self()},
    receive {Owner, done} -> ok end.

owns(Sockets, More, From) when More > 0 ->
    {ok, Socket} = socket:open(inet, dgram, udp),
    owns([Socket | Sockets], More - 1, From);
owns([Socket | Sockets], More, From) when More < 0 ->
    ok = socket:close(Socket),
    owns(Sockets, More + 1, From);
owns(Sockets, 0, From) ->
    From ! {self(), done},
    receive
        {resize, By, Other} -> owns(Sockets, By, Other);
        {connect, To, Other} ->
            {ok, Socket} = socket:open(inet, stream, tcp),
            ok = socket:connect(Socket, To),
            {ok, Own} = socket:sockname(Socket),
            Other ! {self(), Own},
            owns([Socket | Sockets], 0, Other)
    end.

%% A process that owns 60 clients of a local listener, and the path of the listener.
local_clients() ->
    Path = "/tmp/dyntrace-" ++ os:getpid(),
    {Path, owning(fun() ->
                          {ok, Listener} = socket:open(local, stream),
                          Address = #{family => local, path => Path},
                          ok = socket:bind(Listener, Address),
                          ok = socket:listen(Listener, 60),
                          Clients = [connect_local(Address) || _ <- lists:seq(1, 60)],
                          ok = file:delete(Path),
                          %% The example has to be a client.
                          Other = spawn(fun() -> receive never -> ok end end),
                          ok = socket:setopt(Listener, {otp, controlling_process}, Other),
                          [Listener | Clients]
                  end)}.

connect_local(Address) ->
    {ok, Client} = socket:open(local, stream),
    ok = socket:connect(Client, Address),
    Client.

%% None if the node must not open raw sockets. 253 is reserved for experiments.
raw() ->
    case socket:open(inet, raw, 253) of
        {ok, Socket} ->
            ok = socket:close(Socket),
            [owning(fun() -> [element(2, {ok, _} = socket:open(inet, raw, 253)) || _ <- lists:seq(1, 60)] end)];
        {error, _} ->
            []
    end.

owning(Open) ->
    Self = self(),
    Owner = spawn(fun() -> owns(Open(), 0, Self) end),
    receive {Owner, done} -> Owner end.

%% Lets that process connect to a listener, and returns the text of the connection.
connected(Owner) ->
    Self = self(),
    Listener = spawn(fun() -> listens(Self) end),
    To = receive {Listener, Listening} -> Listening end,
    Owner ! {connect, To, Self},
    Own = receive {Owner, Connected} -> Connected end,
    iolist_to_binary(["tcp ", text(Own), " <-> ", text(To)]).

%% Until the process is killed, with the node.
listens(From) ->
    {ok, Listener} = socket:open(inet, stream, tcp),
    ok = socket:bind(Listener, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    ok = socket:listen(Listener),
    {ok, Address} = socket:sockname(Listener),
    From ! {self(), Address},
    receive never -> ok end.

text(#{addr := Ip, port := Port}) -> [inet:ntoa(Ip), $:, integer_to_list(Port)].
