%% Waiting for what will be true, with a deadline.
-module(dt_wait).

-export([until/1]).

-define(DEADLINE_MS, 30000).

-spec until(fun(() -> boolean())) -> ok.
until(Fun) ->
    until(Fun, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

until(Fun, Deadline) ->
    case {Fun(), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, true} -> receive after 1 -> until(Fun, Deadline) end;
        {false, false} -> error({never_true, Fun})
    end.
