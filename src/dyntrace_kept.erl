%% @private What outlives a worker, and the supervisor: a table of the process that the application was started in.
-module(dyntrace_kept).

-export([new/0, put/2, get/2]).

-type key() :: config | following | tracing | patterns.
%% What was said by hand: the configuration, and whether to follow it. Whether a worker has something traced, and the
%% functions with a pattern of ours.

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

-spec put(key(), term()) -> ok.
put(Key, Value) ->
    true = ets:insert(?MODULE, {Key, Value}),
    ok.

%% The default also where there is no table: the application does not run.
-spec get(key(), Default) -> term() | Default.
get(Key, Default) ->
    try ets:lookup_element(?MODULE, Key, 2)
    catch error:badarg -> Default
    end.
