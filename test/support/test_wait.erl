%% Waiting for a condition, with a deadline. A timeout's error says what was awaited and what was seen last:
%%
%%     test_wait:until("the consumer has detached", [], fun dyntrace:listeners/0)
%%     ** exception error: {not_in_time,"the consumer has detached",
%%                                      [{expected,[]},{seen,[#{name => message_send, ...}]}]}
-module(test_wait).

-export([until/2, until/3]).

-define(DEADLINE_MS, 60000).
%% Often at first, then less: the function may start a program.
-define(FIRST_POLL_MS, 2).
-define(LAST_POLL_MS, 20).

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
    poll(What, IsExpected, Fun, Details, erlang:monotonic_time(millisecond)).

poll(What, IsExpected, Fun, Details, Began) ->
    Seen = Fun(),
    Waited = erlang:monotonic_time(millisecond) - Began,
    case {IsExpected(Seen), Waited < ?DEADLINE_MS} of
        {true, _} -> ok;
        {false, true} ->
            receive after min(?FIRST_POLL_MS + Waited div 20, ?LAST_POLL_MS) -> ok end,
            poll(What, IsExpected, Fun, Details, Began);
        {false, false} -> error({not_in_time, What, Details ++ [{seen, Seen}]})
    end.
