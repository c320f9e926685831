%% npm's packages for the tests: those of test/support/viewer/package-lock.json, fetched once into _build/npm.
-module(test_npm).

-export([missing/0, folder/1, fetch/0]).

%% What is missing here, or false.
missing() ->
    case [Tool || Tool <- ["node", "npm"], os:find_executable(Tool) =:= false] of
        [] -> false;
        Missing -> lists:flatten(lists:join(", ", Missing)) ++ " not installed"
    end.

%% The folder of a package.
-spec folder(string()) -> file:filename().
folder(Package) ->
    filename:join([cache(), "node_modules", Package]).

%% Fetches the packages unless those of this lock file are there. Returns false, or why it could not.
-spec fetch() -> false | string().
fetch() ->
    Source = filename:join(test_shell:project(), "test/support/viewer"),
    case test_shell:run("cmp -s '~ts/package-lock.json' '~ts/fetched'", [Source, cache()]) of
        {0, _} ->
            false;
        _ ->
            case test_shell:run("mkdir -p '~ts' && cp '~ts/package.json' '~ts/package-lock.json' '~ts' && cd '~ts' && "
                                "npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json fetched",
                                [cache(), Source, Source, cache(), cache()]) of
                {0, _} -> false;
                {_, Output} -> "npm could not fetch the packages: " ++ unicode:characters_to_list(Output)
            end
    end.

cache() ->
    filename:join(test_shell:project(), "_build/npm").
