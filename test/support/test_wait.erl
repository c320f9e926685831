%% Waits for a condition, with a deadline. A timeout's error has the awaited and the last seen value:
%%
%%     test_wait:until("the consumer has detached", [], fun dyntrace:listeners/0)
%%     ** exception error: {not_in_time,"the consumer has detached",
%%                                      [{expected,[]},{seen,[#{name => message_send, ...}]}]}
-module(test_wait).

-export([until/2, until/3]).

-define(DEADLINE_MS, 60000).
%% Polls often at first, then less, because the function may start a program.
-define(FIRST_POLL_MS, 2).
-define(LAST_POLL_MS, 20).

%% Waits until Fun returns true. Any other result is reported as seen.
-spec until(What :: term(), fun(() -> term())) -> ok.
until(What, Fun) ->
    poll(What, fun(Seen) -> Seen =:= true end, Fun, []).

%% Waits until Fun returns Expected or, if Expected is a function, a value for which Expected returns true.
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
