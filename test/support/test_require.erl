%% Skips a suite with a reason if the machine lacks something. In CI it fails instead, since everything can be installed
%% there.
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
