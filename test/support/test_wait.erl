%% Waiting for a condition, with a deadline. A timeout's error says what was waited for and what was seen last:
%%
%%     test_wait:until("the consumer has detached", [], fun dyntrace:listeners/0)
%%     ** exception error: {not_in_time,"the consumer has detached",[{expected,[]},{seen,[#{name => message_send, ...}]}]}
-module(test_wait).

-export([until/1, until/2, until/3]).

-define(DEADLINE_MS, 60000).
-define(POLL_MS, 2).

%% Until Fun returns true.
-spec until(fun(() -> boolean())) -> ok.
until(Fun) ->
    until(Fun, Fun).

%% Until Fun returns true; anything else that it returns is what it saw instead.
-spec until(What :: term(), fun(() -> term())) -> ok.
until(What, Fun) ->
    poll(What, true, Fun, []).

%% Until Fun returns that.
-spec until(What :: term(), Expected :: term(), fun(() -> term())) -> ok.
until(What, Expected, Fun) ->
    poll(What, Expected, Fun, [{expected, Expected}]).

poll(What, Expected, Fun, Details) ->
    poll(What, Expected, Fun, Details, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

poll(What, Expected, Fun, Details, Deadline) ->
    case {Fun(), erlang:monotonic_time(millisecond) < Deadline} of
        {Expected, _} -> ok;
        {_, true} -> receive after ?POLL_MS -> poll(What, Expected, Fun, Details, Deadline) end;
        {Seen, false} -> error({not_in_time, What, Details ++ [{seen, Seen}]})
    end.
