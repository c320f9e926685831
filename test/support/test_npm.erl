%% npm's packages for the tests: those of test/support/viewer/package-lock.json, which tools/npm keeps below _build.
-module(test_npm).

-export([missing/0, folder/1, modules/0, fetch/0]).

%% What is missing here, or false.
missing() ->
    case [Tool || Tool <- ["node", "npm"], os:find_executable(Tool) =:= false] of
        [] -> false;
        Missing -> lists:flatten(lists:join(", ", Missing)) ++ " not installed"
    end.

%% The folder of a package.
-spec folder(string()) -> file:filename().
folder(Package) ->
    filename:join(modules(), Package).

%% The folder of all packages.
-spec modules() -> file:filename().
modules() ->
    filename:join(test_shell:project(), "_build/npm/test-support-viewer/node_modules").

%% Fetches the packages unless those of this lock file are there. Returns false, or why it could not.
-spec fetch() -> false | string().
fetch() ->
    case test_shell:run("cd '~ts' && tools/npm test/support/viewer", [test_shell:project()]) of
        {0, _} -> false;
        {_, Output} -> "npm could not fetch the packages: " ++ unicode:characters_to_list(Output)
    end.
