%% What a suite needs of the machine. Missing, it skips the suite with its reason; in CI it
%% fails, for there everything can be installed.
-module(test_require).

-export([tool/2]).

tool(false, Config) ->
    Config;
tool(Missing, _Config) ->
    Reason = lists:flatten(Missing),
    ct:pal("SKIPPED: ~ts", [Reason]),
    case os:getenv("CI") of
        "true" -> ct:fail("not in CI: ~ts", [Reason]);
        _ -> {skip, Reason}
    end.
