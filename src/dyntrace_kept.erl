%% @private What outlives a worker: a table of the supervisor's.
-module(dyntrace_kept).

-export([new/0, put/2, get/2]).

-type key() :: config | patterns | named.

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

-spec put(key(), term()) -> ok.
put(Key, Value) ->
    true = ets:insert(?MODULE, {Key, Value}),
    ok.

-spec get(key(), Default) -> term() | Default.
get(Key, Default) ->
    case ets:lookup(?MODULE, Key) of
        [{Key, Value}] -> Value;
        [] -> Default
    end.
