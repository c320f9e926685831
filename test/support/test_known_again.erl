%% Code that is loaded again while it runs.
-module(test_known_again).

-export([run/2]).

run(Load, Account) ->
    ok = Load(),
    ok = test_known_work:spent(fun() -> [steps(100000)] end, Account),
    ok.

steps(0) -> 0;
steps(Count) -> steps(Count - 1).
