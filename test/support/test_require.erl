%% Skips the calling suite, group or case, with a reason, if the machine lacks something. In CI it fails instead,
%% because everything can be installed there.
-module(test_require).

-export([tool/2, first/1]).

%% Returns the configuration, or throws the term that Common Test treats as a skip.
tool(false, Config) ->
    Config;
tool(Missing, _Config) ->
    Reason = lists:flatten(Missing),
    ct:pal("SKIPPED: ~ts", [Reason]),
    case os:getenv("CI") of
        "true" -> ct:fail("not in CI: ~ts", [Reason]);
        _ -> throw({skip, Reason})
    end.

%% The first missing requirement, or false.
first([]) -> false;
first([Missing | Rest]) ->
    case Missing() of
        false -> first(Rest);
        Reason -> Reason
    end.
