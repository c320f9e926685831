%% Makes texts without a probe, with the library's own sources in a NIF library for tests.
-module(test_text_nif).

-export([build/1, load/1, counted/0]).
-export([text/1, text_dirty_cpu/1, text_dirty_io/1, arguments/1, id/1, string/1, dotted/1, runtime/1, duration/1,
         work/1, steps/1, reads/0, ways/3, show/1]).

-nifs([text/1, text_dirty_cpu/1, text_dirty_io/1, arguments/1, id/1, string/1, dotted/1, runtime/1, duration/1, work/1,
       steps/1, reads/0, ways/3, show/1]).

%% The library's sources that make texts.
-define(SOURCES, "c_src/text/*.c").

%% Builds the library in that folder. Returns the argument of load/1.
build(Folder) ->
    Library = filename:join(Folder, "test_text_nif"),
    Sources = filelib:wildcard(?SOURCES, test_shell:project())
        ++ filelib:wildcard("test/support/text_nif/*.c", test_shell:project()),
    {0, _} = test_shell:run("cd '~ts' && ${CC:-cc} -std=gnu11 ${DYNTRACE_TEST_CFLAGS:--O2 -g} -Wall -Wextra -Werror "
                            "-shared -fPIC -isystem '~ts' -Ic_src -o '~ts.so' ~ts ~ts",
                            [test_shell:project(), filename:join([code:root_dir(), "usr", "include"]), Library,
                             lists:join(" ", ["-Wl,--wrap=" ++ Function || Function <- counted()]),
                             lists:join(" ", Sources)]),
    Library.

%% The functions of erl_nif whose calls are counted as work.
counted() ->
    {ok, Work} = file:read_file(filename:join(test_shell:project(), "test/support/text_nif/test_work.c")),
    {match, Counted} = re:run(Work, "(?:^COUNTED\\(|^int __wrap_)(enif_\\w+).*[^{]$",
                              [global, multiline, {capture, all_but_first, list}]),
    lists:append(Counted).

load(Library) ->
    {Reserved, _, Least, Greatest, _, _, _, _} = dyntrace_library:load_info(dyntrace_library:find()),
    case erlang:load_nif(Library, {Reserved, Least, Greatest}) of
        {error, {reload, _}} -> ok; % another suite has loaded it
        Loaded -> Loaded
    end.

%% The text of a term, and the text of an identifier (`none' for other terms).
text(_) -> erlang:nif_error(not_loaded).
id(_) -> erlang:nif_error(not_loaded).

%% The text of a call's arguments.
arguments(_) -> erlang:nif_error(not_loaded).

%% The same on the other kinds of threads.
text_dirty_cpu(_) -> erlang:nif_error(not_loaded).
text_dirty_io(_) -> erlang:nif_error(not_loaded).

%% The text of a string in an annotation.
string(_) -> erlang:nif_error(not_loaded).

%% The text of a list of names.
dotted(_) -> erlang:nif_error(not_loaded).

%% The text that the runtime's %T makes of a term.
runtime(_) -> erlang:nif_error(not_loaded).

%% The time that the text of a term takes, in nanoseconds.
duration(_) -> erlang:nif_error(not_loaded).

%% The number of steps for the text of a term: calls of erl_nif functions that read terms, and bytes that the runtime
%% writes or copies. In work/1, each list cell and integer is read by a call.
work(_) -> erlang:nif_error(not_loaded).
steps(_) -> erlang:nif_error(not_loaded).

%% How lists and small integers are read: {direct | calls, direct | calls}.
reads() -> erlang:nif_error(not_loaded).

%% The texts of a term, or of a call's arguments, with Room bytes left in the buffer: read by calls, read directly, and
%% read directly with its words cached. `none' if the buffer is too small.
ways(_Room, _TextOrArguments, _Term) -> erlang:nif_error(not_loaded).

%% Sets how all later texts show terms: full | shape.
show(_) -> erlang:nif_error(not_loaded).
