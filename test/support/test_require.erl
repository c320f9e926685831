%% Skips what calls it, a suite, group or case, with a reason if the machine lacks something. In CI it fails instead,
%% since everything can be installed there.
-module(test_require).

-export([tool/2, first/1]).

%% Returns the configuration, or throws what Common Test takes for a skip.
tool(false, Config) ->
    Config;
tool(Missing, _Config) ->
    Reason = lists:flatten(Missing),
    ct:pal("SKIPPED: ~ts", [Reason]),
    case os:getenv("CI") of
        "true" -> ct:fail("not in CI: ~ts", [Reason]);
        _ -> throw({skip, Reason})
    end.

%% The first thing that is missing, or false.
first([]) -> false;
first([Missing | Rest]) ->
    case Missing() of
        false -> first(Rest);
        Reason -> Reason
    end.
