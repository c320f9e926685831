%% npm packages for the tests: those of test/support/FOLDER/packages, which tools/npm stores below _build.
-module(test_npm).

-export([missing/0, folder/1, modules/0, modules/1, fetch/0, fetch/1]).

%% The missing requirement, or false.
missing() ->
    case [Tool || Tool <- ["node", "npm"], os:find_executable(Tool) =:= false] of
        [] -> false;
        Missing -> lists:flatten(lists:join(", ", Missing)) ++ " not installed"
    end.

%% The folder of a package.
-spec folder(string()) -> file:filename().
folder(Package) ->
    filename:join(modules(), Package).

%% The folder of all packages, by default of those for the viewer's tests; FOLDER is a folder of test/support.
-spec modules() -> file:filename().
modules() ->
    modules("viewer").

-spec modules(string()) -> file:filename().
modules(Folder) ->
    filename:join([test_shell:project(), "_build/npm/test-support-" ++ Folder, "node_modules"]).

%% Fetches the packages unless those of this list are present. Returns false, or the reason for a failure.
-spec fetch() -> false | string().
fetch() ->
    fetch("viewer").

-spec fetch(string()) -> false | string().
fetch(Folder) ->
    case test_shell:run("cd '~ts' && tools/npm test/support/~ts", [test_shell:project(), Folder]) of
        {0, _} -> false;
        {_, Output} -> "npm could not fetch the packages: " ++ unicode:characters_to_list(Output)
    end.
