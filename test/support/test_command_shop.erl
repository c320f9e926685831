%% A shop with problems, for docs/night.md: its till is slow and has a queue, its cook occupies a scheduler, its oven
%% crashes, its archive gets more messages than it reads. A tester buys something every five seconds, with a seq_trace
%% token. The shop runs until it is stopped.
-module(test_command_shop).
-behaviour(gen_server).

-export([start/0, stop/0, functions/0]).
-export([init/1, handle_call/3, handle_cast/2, buy/1]).

-define(CUSTOMERS, 4).

%% The functions whose calls the application traces.
functions() ->
    [{?MODULE, buy, 1}].

start() ->
    Owner = self(),
    Shop = spawn(fun() -> open(Owner) end),
    receive {Shop, open} -> ok end.

stop() ->
    Ref = monitor(process, shop),
    shop ! close,
    receive {'DOWN', Ref, process, _, _} -> ok end.

open(Owner) ->
    register(shop, self()),
    process_flag(trap_exit, true),
    Servers = [server(Name) || Name <- [shop_stock, shop_till]],
    Others = [named(Name, Fun) || {Name, Fun} <- [{shop_cook, fun cook/0}, {shop_archive, fun archive/0},
                                                  {shop_tester, fun tester/0}]],
    Customers = [named(list_to_atom("shop_customer_" ++ integer_to_list(N)), fun() -> customer(N) end)
                 || N <- lists:seq(1, ?CUSTOMERS)],
    Owner ! {self(), open},
    bake(Servers ++ Others ++ Customers).

server(Name) ->
    {ok, Pid} = gen_server:start({local, Name}, ?MODULE, Name, []),
    Pid.

named(Name, Fun) ->
    spawn(fun() -> register(Name, self()), Fun() end).

%% An oven crashes every half second.
bake(All) ->
    receive
        close -> [exit(Pid, kill) || Pid <- All]
    after 500 ->
            spawn(fun() -> register(shop_oven, self()), exit({burnt, bread}) end),
            bake(All)
    end.

cook() ->
    _ = lists:sort([erlang:phash2(N) || N <- lists:seq(1, 20000)]),
    receive after 20 -> cook() end.

%% Reads one message per ten milliseconds.
archive() ->
    receive _ -> ok end,
    receive after 10 -> archive() end.

customer(N) ->
    paid = buy(N),
    [shop_archive ! {sold, N, Item} || Item <- [tea, bread, milk, salt]],
    receive after 50 -> customer(N) end.

tester() ->
    [seq_trace:set_token(Key, Value) || {Key, Value} <- [{label, 17}, {send, true}, {'receive', true}]],
    paid = buy(test),
    seq_trace:set_token([]),
    receive after 5000 -> tester() end.

buy(N) ->
    ok = gen_server:call(shop_stock, {take, N}),
    gen_server:call(shop_till, {pay, N}).

init(Name) ->
    {ok, Name}.

handle_call({take, _}, _, shop_stock) ->
    {reply, ok, shop_stock};
handle_call({pay, _}, _, shop_till) ->
    receive after 15 -> ok end,
    {reply, paid, shop_till}.

handle_cast(_, Name) -> {noreply, Name}.
