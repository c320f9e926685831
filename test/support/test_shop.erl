%% A small system whose story is recorded: servers and their customers, timeouts, crashes, messages to dead processes,
%% calls, spans. Each process notes its actions in a table, which causes no trace events. run/0 returns these notes,
%% which a view of the recording has to agree with.
-module(test_shop).
-behaviour(gen_server).

-export([run/0, functions/0]).
%% Processes and traced functions.
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export([customer/1, hasty/0, oven/0, helper/0, keeper/1, sink/0, collector/0, cook/0, unlucky/0, cart/0, typist/0]).
-export([price/1, discount/1, refund/1]).

-define(CUSTOMERS, 8).
-define(TAKES, 20).
-define(PAYS, 2).
-define(TICKS, 100).
-define(COLLECTIONS, 5).
-define(DEAD, 7).
-define(PRICES, 12).

-type notes() :: #{spawned := [{Parent :: binary(), Pid :: binary()}],
                   exited := [{Pid :: binary(), Reason :: binary()}],
                   named := [{Pid :: binary(), Name :: atom()}],
                   sent := #{{From :: binary(), To :: binary() | atom()} => pos_integer()},
                   called := [{Caller :: binary(), Server :: atom(), reply | timeout | down, Us :: non_neg_integer()}],
                   collected := #{Pid :: binary() => pos_integer()},
                   functions := #{{Pid :: binary(), Mfa :: binary()} => pos_integer()},
                   raised := #{Mfa :: binary() => pos_integer()},
                   spans := [{Pid :: binary(), Name :: atom(), Outcome :: ok | error}],
                   marks := pos_integer(),
                   dead := #{{From :: binary(), To :: binary()} => pos_integer()}}.

%% The functions whose calls the application has to trace.
functions() ->
    [{?MODULE, price, 1}, {?MODULE, discount, 1}, {?MODULE, refund, 1}].

-spec run() -> notes().
run() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, duplicate_bag]),
    Me = self(),
    note(named, {text(Me), shop}),
    true = register(shop, Me),
    Servers = [server(Name) || Name <- [shop_stock, shop_till, shop_till_2]],
    Customers = [spawn_noted(?MODULE, customer, [N]) || N <- lists:seq(1, ?CUSTOMERS)],
    [await(Customer) || Customer <- Customers],
    [await(spawn_noted(?MODULE, Function, [])) || Function <- [hasty, unlucky, collector, cook, cart, typist]],
    ok = crash(),
    ok = ticks(),
    ok = to_the_dead(),
    [ok = gen_server:stop(Server) || Server <- Servers],
    [note(exited, {text(Server), <<"normal">>}) || Server <- Servers],
    true = unregister(shop),
    notes().

%% -- Servers -----------------------------------------------------------------------------

server(Name) ->
    {ok, Pid} = gen_server:start({local, Name}, ?MODULE, Name, []),
    note(spawned, {text(self()), text(Pid)}),
    note(named, {text(Pid), Name}),
    Pid.

init(Name) ->
    {ok, Name}.

handle_call({take, _What}, _From, State) ->
    {reply, ok, State};
handle_call({pay, Ms}, _From, State) ->
    timer:sleep(Ms),
    {reply, {paid, Ms}, State};
handle_call(break, _From, State) ->
    {stop, {broken, State}, State}.

handle_cast({thanks, _}, State) ->
    {noreply, State}.

handle_info(_, State) -> {noreply, State}.

call(Server, Request, Timeout) ->
    Began = erlang:monotonic_time(microsecond),
    Outcome = try gen_server:call(Server, Request, Timeout) of
                  _ -> reply
              catch
                  exit:{timeout, _} -> timeout;
                  exit:_ -> down
              end,
    note(called, {text(self()), Server, Outcome, erlang:monotonic_time(microsecond) - Began}).

%% -- Customers -----------------------------------------------------------------------------

%% The stock answers at once. All customers pay at one slow till, so its callers queue.
customer(Number) ->
    Name = list_to_atom("shop_customer_" ++ integer_to_list(Number)),
    true = register(Name, self()),
    note(named, {text(self()), Name}),
    [call(shop_stock, {take, tea}, 5000) || _ <- lists:seq(1, ?TAKES)],
    [call(shop_till, {pay, 5}, 5000) || _ <- lists:seq(1, ?PAYS)],
    gen_server:cast(shop_stock, {thanks, Number}),
    note_exit(normal).

%% The customer does not wait for the till.
hasty() ->
    call(shop_till, {pay, 100}, 20),
    timer:sleep(120),
    note_exit(normal).

%% The second till crashes during the call.
unlucky() ->
    {ok, Till} = gen_server:start({local, shop_old_till}, ?MODULE, shop_old_till, []),
    note(spawned, {text(self()), text(Till)}),
    note(named, {text(Till), shop_old_till}),
    call(shop_old_till, break, 5000),
    note(exited, {text(Till), <<"{broken,shop_old_till}">>}),
    note_exit(normal).

%% -- Crashes -----------------------------------------------------------------------------------

%% The oven's crash also ends a linked helper; the keeper traps exits.
crash() ->
    Keeper = spawn_noted(?MODULE, keeper, [self()]),
    receive {Keeper, started} -> ok end,
    Keeper ! bake,
    await(Keeper),
    ok.

keeper(Shop) ->
    process_flag(trap_exit, true),
    Oven = spawn_noted(?MODULE, oven, []),
    true = link(Oven),
    Shop ! {self(), started},
    receive bake -> ok end,
    Oven ! bake,
    receive {'EXIT', Oven, {burnt, bread}} -> ok end,
    note_exit(normal).

oven() ->
    true = register(shop_oven, self()),
    note(named, {text(self()), shop_oven}),
    Helper = spawn_noted(?MODULE, helper, []),
    true = link(Helper),
    receive bake -> ok end,
    note(exited, {text(Helper), <<"{burnt,bread}">>}),
    note_exit({burnt, bread}).

helper() ->
    receive after infinity -> ok end.

%% -- Messages ------------------------------------------------------------------------------------

ticks() ->
    Sink = spawn_noted(?MODULE, sink, []),
    [Sink ! {tick, N} || N <- lists:seq(1, ?TICKS)],
    note(sent, {text(self()), text(Sink), ?TICKS}),
    Sink ! stop,
    note(sent, {text(self()), text(Sink), 1}),
    await(Sink).

sink() ->
    receive
        {tick, _} -> sink();
        stop -> note_exit(normal)
    end.

to_the_dead() ->
    Dead = spawn_noted(?MODULE, sink, []),
    Dead ! stop,
    note(sent, {text(self()), text(Dead), 1}),
    ok = await(Dead),
    [Dead ! {hello, N} || N <- lists:seq(1, ?DEAD)],
    note(dead, {text(self()), text(Dead), ?DEAD}),
    ok.

%% -- Work ----------------------------------------------------------------------------------------

collector() ->
    [true = erlang:garbage_collect() || _ <- lists:seq(1, ?COLLECTIONS)],
    note(collected, {text(self()), ?COLLECTIONS}),
    note_exit(normal).

%% Calls; one function calls another as its last action, and one fails.
cook() ->
    [price(N) || N <- lists:seq(1, ?PRICES)],
    failed = try refund(none) catch error:no_money -> failed end,
    [note(functions, {text(self()), Mfa, Count})
     || {Mfa, Count} <- [{<<"test_shop:price/1">>, ?PRICES}, {<<"test_shop:discount/1">>, ?PRICES},
                         {<<"test_shop:refund/1">>, 1}]],
    note(raised, {<<"test_shop:refund/1">>, 1}),
    note_exit(normal).

price(N) ->
    _ = lists:sum(lists:seq(1, 1000)),
    discount(N).

discount(N) ->
    _ = lists:sum(lists:seq(1, 5000)),
    N - 1.

refund(_) ->
    error(no_money).

%% Spans, marks and a sequential trace.
cart() ->
    ok = dyntrace:span(checkout, fun() -> timer:sleep(5) end),
    failed = try dyntrace:span(payment, fun() -> error(declined) end) catch error:declined -> failed end,
    note(spans, {text(self()), checkout, ok}),
    note(spans, {text(self()), payment, error}),
    [dyntrace:mark(cache_miss, N, "a </script> in a text") || N <- [1, 2, 3]],
    note(marks, 3),
    Old = seq_trace:set_token(label, 17),
    [seq_trace:set_token(Flag, true) || Flag <- [send, 'receive']],
    call(shop_stock, {take, coffee}, 5000),
    call(shop_till_2, {pay, 1}, 5000),
    seq_trace:set_token([]),
    _ = Old,
    note_exit(normal).

typist() ->
    Port = open_port({spawn, "cat"}, [stream]),
    true = port_command(Port, "typed"),
    receive {Port, {data, _}} -> ok end,
    true = port_close(Port),
    note_exit(normal).

%% -- Notes ---------------------------------------------------------------------------------------

spawn_noted(Module, Function, Args) ->
    Pid = spawn(Module, Function, Args),
    note(spawned, {text(self()), text(Pid)}),
    Pid.

-spec note_exit(term()) -> no_return().
note_exit(Reason) ->
    note(exited, {text(self()), text(Reason)}),
    exit(Reason).

await(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

note(Key, What) ->
    true = ets:insert(?MODULE, {Key, What}),
    ok.

notes() ->
    Of = fun(Key) -> [What || {_, What} <- ets:lookup(?MODULE, Key)] end,
    Notes = #{spawned => Of(spawned), exited => Of(exited), named => Of(named), called => Of(called),
              spans => Of(spans), marks => lists:sum(Of(marks)),
              sent => sums([{{From, To}, N} || {From, To, N} <- Of(sent)]),
              dead => sums([{{From, To}, N} || {From, To, N} <- Of(dead)]),
              functions => sums([{{Pid, Mfa}, N} || {Pid, Mfa, N} <- Of(functions)]),
              raised => maps:from_list(Of(raised)), collected => maps:from_list(Of(collected))},
    true = ets:delete(?MODULE),
    Notes.

sums(Pairs) ->
    lists:foldl(fun({Key, N}, Sums) -> maps:update_with(Key, fun(Sum) -> Sum + N end, N, Sums) end, #{}, Pairs).

text(Term) ->
    test_cases:text(Term).
