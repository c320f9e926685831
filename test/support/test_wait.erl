%% Waiting for a condition, with a deadline. A timeout's error says what was awaited and what was seen last:
%%
%%     test_wait:until("the consumer has detached", [], fun dyntrace:listeners/0)
%%     ** exception error: {not_in_time,"the consumer has detached",
%%                                      [{expected,[]},{seen,[#{name => message_send, ...}]}]}
-module(test_wait).

-export([until/2, until/3]).

-define(DEADLINE_MS, 60000).
-define(POLL_MS, 2).

%% Until Fun returns true. Anything else that it returns is what was seen instead.
-spec until(What :: term(), fun(() -> term())) -> ok.
until(What, Fun) ->
    poll(What, fun(Seen) -> Seen =:= true end, Fun, []).

%% Until Fun returns Expected or, where that is a function, a value for which it returns true.
-spec until(What :: term(), Expected :: fun((Seen :: term()) -> boolean()) | term(), fun(() -> term())) -> ok.
until(What, IsExpected, Fun) when is_function(IsExpected, 1) ->
    poll(What, IsExpected, Fun, []);
until(What, Expected, Fun) ->
    poll(What, fun(Seen) -> Seen =:= Expected end, Fun, [{expected, Expected}]).

poll(What, IsExpected, Fun, Details) ->
    poll(What, IsExpected, Fun, Details, erlang:monotonic_time(millisecond) + ?DEADLINE_MS).

poll(What, IsExpected, Fun, Details, Deadline) ->
    Seen = Fun(),
    case {IsExpected(Seen), erlang:monotonic_time(millisecond) < Deadline} of
        {true, _} -> ok;
        {false, true} -> receive after ?POLL_MS -> poll(What, IsExpected, Fun, Details, Deadline) end;
        {false, false} -> error({not_in_time, What, Details ++ [{seen, Seen}]})
    end.
