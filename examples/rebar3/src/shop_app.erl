-module(shop_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

start(_Type, _Args) ->
    supervisor:start_link(?MODULE, []).

stop(_State) ->
    ok.

init([]) ->
    {ok, {#{}, [#{id => shop, start => {shop, start_link, []}}]}}.
