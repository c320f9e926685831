%% A module whose functions are traced by `{test_called, '_', '_'}'.
-module(test_called).

-export([often/2, seldom/1, squares/1]).

%% Calls itself until it is stopped, and counts calls in the counter. It yields, because other processes share the
%% scheduler.
often(Counter, Stop) ->
    counters:add(Counter, 1, 1),
    case counters:get(Stop, 1) of
        0 -> often(Counter, Stop);
        1 -> stopped
    end.

%% Makes one call per millisecond.
seldom(Stop) ->
    timer:sleep(1),
    case counters:get(Stop, 1) of
        0 -> seldom(Stop);
        1 -> stopped
    end.

%% Uses functions that the compiler generates and that are called once per element.
squares(N) ->
    Square = fun(I) -> I * I end,
    [Square(I) || I <- lists:seq(1, N)].
