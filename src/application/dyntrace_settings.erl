%% @private Settings and state that outlive the autotracer and its supervisor, in a table that belongs to the process
%% that started the application.
-module(dyntrace_settings).

-export([new/0, put/2, get/2]).

-type key() :: config | following | tracing | patterns | message_patterns | gc_flag | port_names | dumps.
%% `config', `following': from dyntrace:follow/1 and unfollow/0. `tracing': whether an autotracer has set any tracing.
%% `patterns': the functions with a trace pattern of ours (before OTP 27). `message_patterns': the message patterns that
%% may be ours (before OTP 27). `gc_flag': the bit of the flag, and the trace session with which it was measured.
%% `port_names': how many atoms were created for port names. `dumps': the number of the last dump.

%% The table outlives an upgrade from or to any version, so its name must never change. A worker that does not find the
%% table fails when it persists a setting, and so does its supervisor.
-define(TABLE, dyntrace_kept).

%% Creates the table, which ends with the calling process.
-spec new() -> ok.
new() ->
    ?TABLE = ets:new(?TABLE, [named_table, public]),
    ok.

%% Raises badarg without the table.
-spec put(key(), term()) -> ok.
put(Key, Value) ->
    true = ets:insert(?TABLE, {Key, Value}),
    ok.

%% Without the application, the table does not exist, and the default is returned.
-spec get(key(), Default) -> term() | Default.
get(Key, Default) ->
    try ets:lookup_element(?TABLE, Key, 2)
    catch error:badarg -> Default
    end.
