%% A shop: one process takes orders. Each order is a span.
-module(shop).
-behaviour(gen_server).

-export([start_link/0, order/1]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, 0, []).

%% Returns the number of the order.
-spec order(binary()) -> pos_integer().
order(Item) ->
    dyntrace:span(order, fun() -> gen_server:call(?MODULE, {order, Item}) end).

init(Orders) ->
    {ok, Orders}.

handle_call({order, Item}, _From, Orders) ->
    _ = dyntrace:mark(sold, Orders + 1, Item),
    {reply, Orders + 1, Orders + 1}.

handle_cast(_, Orders) ->
    {noreply, Orders}.
