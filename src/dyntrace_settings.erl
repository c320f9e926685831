%% @private State that outlives the worker and the supervisor: a table that belongs to the process that started the
%% application.
-module(dyntrace_settings).

-export([new/0, put/2, get/2]).

-type key() :: config | following | tracing | patterns | collections.
%% `config', `following': from dyntrace:follow/1 and unfollow/0. `tracing': whether a worker has anything traced.
%% `patterns': the functions with a trace pattern of ours (before OTP 27). `collections': the flag's bit, and the session that told it.

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ok.

-spec put(key(), term()) -> ok.
put(Key, Value) ->
    true = ets:insert(?MODULE, {Key, Value}),
    ok.

%% Without a table, where the application does not run, the default.
-spec get(key(), Default) -> term() | Default.
get(Key, Default) ->
    try ets:lookup_element(?MODULE, Key, 2)
    catch error:badarg -> Default
    end.
