%% A NIF that occupies a normal scheduler.
-module(test_stuck_nif).

-export([build/1, load/1, hang/1]).

-nifs([hang/1]).

%% Builds the library in that folder; returns the argument of load/1.
build(Folder) ->
    Library = filename:join(Folder, "test_stuck_nif"),
    {0, _} = test_shell:run("cd '~ts' && ${CC:-cc} -O2 -Wall -Wextra -Werror -shared -fPIC -isystem '~ts' -o '~ts.so' "
                            "test/support/stuck_nif/test_stuck_nif.c",
                            [test_shell:project(), filename:join([code:root_dir(), "usr", "include"]), Library]),
    Library.

load(Library) ->
    erlang:load_nif(Library, 0).

%% Returns after that many milliseconds.
hang(_) -> erlang:nif_error(not_loaded).
