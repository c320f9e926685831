%% Builds the library with each compiler, and the application without rebar3; checks the messages about missing headers.
-module(build_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [cc, clang, arm64, without_rebar3, in_the_root, no_nif_header, no_compiler, no_sdt_header, no_viewer,
     missing_packages, lines_checked, column_limit, includes, circles].

%% Each test has a copy of the sources.
init_per_testcase(Test, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Test)),
    ok = filelib:ensure_path(Folder),
    %% The viewer reads tables of the host command.
    {0, _} = test_shell:run("cd '~ts' && cp -R --parents c_src viewer priv/python/dyntrace_command/common '~ts'",
                            [test_shell:project(), Folder]),
    {0, _} = test_shell:run("cd '~ts' && rm -rf c_src/obj viewer/obj", [Folder]),
    [{folder, Folder} | Config].

end_per_testcase(_, _) -> ok.

%% The viewer only has to compile, which clang-tidy does with clang.
cc(Config) -> builds("cc", fun(Settings) -> make(Settings, "CFLAGS=-O0", Config) end, Config).
clang(Config) -> builds("clang", fun(Settings) -> make_library(Settings, Config) end, Config).

%% Without the project's Makefile: the library works, and each probe has exactly one site, which depends on the
%% optimizer.
builds(CC, Make, Config) ->
    test_require:tool(os:find_executable(CC) =:= false andalso CC ++ " is not installed", []),
    {0, _} = Make("CC=" ++ CC),
    Library = filename:join([?config(folder, Config), "priv", "dyntrace.so"]),
    {0, Notes} = test_shell:run("LC_ALL=C readelf -n '~ts' | grep -c NT_STAPSDT", [Library]),
    ?assertEqual(length(catalogue_SUITE:usdt_names()), binary_to_integer(string:trim(Notes))).

%% With a cross compiler and this machine's headers. LTTng's library is replaced by a stub.
arm64(Config) ->
    CC = "aarch64-linux-gnu-gcc",
    test_require:tool(os:find_executable(CC) =:= false andalso CC ++ " is not installed", Config),
    Folder = ?config(folder, Config),
    {0, _} = test_shell:run("mkdir '~ts/stub' && ~s -shared -o '~ts/stub/liblttng-ust.so' -x c /dev/null",
                            [Folder, CC, Folder]),
    {0, _} = make_library(io_lib:format("CC=~s CPPFLAGS=\"-idirafter /usr/include -idirafter "
                                        "/usr/include/$(gcc -dumpmachine)\" LDFLAGS='-L~ts/stub' 2>&1",
                                        [CC, Folder]), Config),
    {0, Header} = test_shell:run("LC_ALL=C readelf -h '~ts/priv/dyntrace.so' '~ts/priv/dyntrace_lttng.so'",
                                 [Folder, Folder]),
    ?assertMatch({match, [_, _]}, re:run(Header, "Machine: +AArch64", [global])),
    {0, Notes} = test_shell:run("LC_ALL=C readelf -n '~ts/priv/dyntrace.so'", [Folder]),
    {match, Listed} = re:run(Notes,
                             "Name: (\\w+)\\s+Location: 0x0*[1-9a-f]\\w+, Base: \\w+, "
                             "Semaphore: 0x0*[1-9a-f]\\w+\\s+Arguments: (.*)",
                             [global, {capture, all_but_first, binary}]),
    ?assertEqual(lists:sort(catalogue_SUITE:usdt_names()), lists:sort([Name || [Name, _] <- Listed])),
    %% Each operand has a size, and is a register, memory at a register, or, for a probe array, the number.
    [?assertMatch({match, _}, re:run(Arguments, "^(-?[48]@(\\d+|[wx]\\d+|\\[x\\d+(, \\d+)?\\]) ?)+$"), Name)
     || [Name, Arguments] <- Listed].

%% Without rebar3, `make' builds the same files as rebar3, in the same folders. The demo does not require rebar3.
without_rebar3(Config) ->
    Folder = ?config(folder, Config),
    {0, _} = test_shell:run("cd '~ts' && cp -R src tools priv scripts Makefile rebar.config '~ts' && "
                            "cd '~ts' && rm -rf priv/*.so priv/bpftrace", [test_shell:project(), Folder, Folder]),
    %% With ccache, if available, because the same sources were compiled before.
    {0, _} = test_shell:run("cd '~ts' && mkdir bin && ln -s /usr/bin/* bin && rm -f bin/rebar3 && "
                            "PATH=$PWD/bin make CC=\"$(command -v ccache) cc\" 2>&1", [Folder]),
    Build = filename:join(Folder, "_build/default/lib/dyntrace"),
    Ebin = filename:dirname(code:which(dyntrace_app)),
    [?assertEqual(file:consult(filename:join(Ebin, File)), file:consult(filename:join([Build, "ebin", File])), File)
     || File <- ["dyntrace.app", "dyntrace.appup"]],
    Scripts = fun(Project) -> [{filename:basename(File), file:read_file(File)}
                               || File <- filelib:wildcard(Project ++ "/priv/bpftrace/*.bt")]
              end,
    ?assertEqual(Scripts(test_shell:project()), Scripts(Folder)),
    ?assertEqual({ok, "../../../../priv"}, file:read_link(filename:join(Build, "priv"))),
    {0, Says} = test_shell:run("erl -noinput -pa '~ts/ebin' -eval '{ok, _} = application:ensure_all_started(dyntrace), "
                               "io:format(\"~~w ~~ts\", [dyntrace:available(), maps:get(library, dyntrace:info())]), "
                               "halt().'", [Build]),
    ?assertEqual(unicode:characters_to_binary(["true ", Build, "/priv/dyntrace.so"]), Says),
    {0, Needs} = test_shell:run("cd '~ts' && make --no-print-directory --just-print deps-demo", [Folder]),
    ?assertMatch({match, _}, re:run(Needs, "tools/deps .*\\berl\\b.*\\blttng\\b")),
    ?assertEqual(nomatch, re:run(Needs, "rebar3")).

%% The project's folder is /dyntrace, as in a container. finish_ebin must not take another folder for its build.
in_the_root(Config) ->
    Root = filename:join(?config(folder, Config), "root"),
    Build = Root ++ "/dyntrace/_build/default/lib/dyntrace",
    {0, _} = test_shell:run("mkdir -p '~ts/ebin' && cd '~ts' && cp -R src tools '~ts/dyntrace' && "
                            "mkdir '~ts/dyntrace/priv' && ln -s ../../../../priv '~ts/priv'",
                            [Build, test_shell:project(), Root, Root, Build]),
    ok = file:write_file(Build ++ "/ebin/dyntrace.app", "{application,dyntrace,[{modules,[dyntrace,dyntrace_app]}]}."),
    ok = file:write_file(Build ++ "/ebin/dyntrace.beam", "a module"),
    {_, May} = test_shell:run("unshare --map-root-user --mount true 2>&1", []),
    test_require:tool(May =/= <<>> andalso May, []),
    {0, <<>>} = test_shell:run("unshare --map-root-user --mount sh -ec 'cd \"$1\"; "
                               "for d in bin lib lib64 usr; do "
                               "[ -d /$d ] || continue; mkdir $d; mount --rbind /$d $d; done; "
                               "exec env -u REBAR_CHECKOUTS_OUT_DIR -u REBAR_BARE_COMPILER_OUTPUT_DIR "
                               "REBAR_DEPS_DIR=/dyntrace/_build/default/lib "
                               "chroot . sh -c \"cd /dyntrace && tools/finish_ebin\"' sh '~ts' 2>&1", [Root]),
    ?assertEqual({ok, [{application, dyntrace, [{modules, [dyntrace_app]}]}]},
                 file:consult(Build ++ "/ebin/dyntrace.app")),
    ?assertEqual({ok, <<"a module">>}, file:read_file(Root ++ "/dyntrace/priv/beam/dyntrace.beam")).

no_nif_header(Config) ->
    says(without("erl_nif.h", Config), <<"(Debian: erlang-dev)">>, Config).

no_compiler(Config) ->
    says("CC=no-such-compiler", <<"(Debian: gcc libc6-dev)">>, Config).

%% Without USDT, the library is built, with one line that says so.
no_sdt_header(Config) ->
    {0, Output} = make(without("sys/sdt.h", Config) ++ " VIEWER=no", Config),
    ?assertMatch([_], [Line
                       || Line <- lines(Output), binary:match(Line, <<"(Debian: systemtap-sdt-dev)">>) =/= nomatch]).

%% `make lint' names each line that is longer than .editorconfig allows, in characters, or ends in blanks. Files that
%% Git ignores and Markdown lines that can't be wrapped may be longer.
lines_checked(Config) ->
    Folder = filename:join(?config(folder, Config), "project"),
    {X, Y} = {lists:duplicate(21, $x), lists:duplicate(11, $y)},
    ok = filelib:ensure_path(Folder),
    ok = file:write_file(filename:join(Folder, "no_text"), <<16#ff, (list_to_binary(X))/binary>>),
    Files = [{".editorconfig", ["root = true\n[*]\nmax_line_length = 20\ntrim_trailing_whitespace = true\n"
                                "[*.{c,h}]\nmax_line_length = 10\n"
                                "[{src/table.def,generated.md,.editorconfig}]\nmax_line_length = off\n"
                                "[*.svg]\ntrim_trailing_whitespace = false\n"]},
             {"blanks.md", ["short \n", "```sh\nshort\t\n```\n"]},
             {"blanks.svg", "short \n"},
             {"exact.erl", lists:duplicate(20, 16#e9)},
             {"long.erl", ["short\n", lists:duplicate(21, 16#e9), "\nshort\n"]},
             {"src/long.c", [Y, "\n"]},
             {"src/table.def", X},
             {"generated.md", X},
             {"_build/long.erl", X}, {"c_src/obj/long.d", X},
             {"page.md", ["a b ", X, "\n| a row ", X, " |\n- ", X, "\n", X, "\n```sh\na b ", X, "\n```\n", X, " b\n"]}],
    [begin
         ok = filelib:ensure_dir(filename:join(Folder, File)),
         ok = file:write_file(filename:join(Folder, File), unicode:characters_to_binary(Text))
     end || {File, Text} <- Files],
    Check = filename:join(test_shell:project(), "tools/lines"),
    {1, Says} = test_shell:run("'~ts' '~ts'", [Check, Folder]),
    ?assertEqual([<<"blanks.md:1: the line ends in blanks">>,
                  <<"blanks.md:3: the line ends in blanks">>,
                  <<"long.erl:2: the line has 21 characters, at most 20 are allowed">>,
                  <<"page.md:1: the line has 25 characters, at most 20 are allowed">>,
                  <<"page.md:8: the line has 23 characters, at most 20 are allowed">>,
                  <<"src/long.c:1: the line has 11 characters, at most 10 are allowed">>], lines(Says)),
    [ok = file:delete(filename:join(Folder, File)) || File <- ["blanks.md", "long.erl", "page.md", "src/long.c"]],
    ?assertEqual({0, <<>>}, test_shell:run("'~ts' '~ts'", [Check, Folder])).

%% Without its libraries, the babeltrace2 plugin is left out with a message, and everything else is built. The library
%% contains nothing of the plugin.
no_viewer(Config) ->
    {0, Says} = make("PKG_CONFIG=false 2>&1", Config),
    ?assertMatch({match, _}, re:run(Says, "dyntrace: building without the plugin of babeltrace2, no babeltrace2")),
    Priv = filename:join(?config(folder, Config), "priv"),
    ?assertEqual([], filelib:wildcard(filename:join(Priv, "babeltrace2/*.so"))),
    {0, Symbols} = test_shell:run("nm '~ts/dyntrace.so'", [Priv]),
    ?assertEqual(nomatch, binary:match(Symbols, <<"dt_model">>)).

%% clang-format and .editorconfig have the same limit for C.
column_limit(_) ->
    [Settings, Format] = [element(2, {ok, _} = file:read_file(filename:join(test_shell:project(), File)))
                          || File <- [".editorconfig", ".clang-format"]],
    {match, [Limit]} = re:run(Settings, "^\\[\\*\\.\\{c,h\\}\\]\nmax_line_length = (\\d+)$",
                              [multiline, {capture, [1], binary}]),
    ?assertMatch({match, [Limit]}, re:run(Format, "^ColumnLimit: (\\d+)$", [multiline, {capture, [1], binary}])).

%% A user who lacks packages and may not install them gets the command to type, and nothing is started.
missing_packages(Config) ->
    Bin = filename:join(?config(priv_dir, Config), "bin"),
    ok = filelib:ensure_path(Bin),
    [ok = file:make_symlink(os:find_executable(Tool), filename:join(Bin, Tool))
     || Tool <- ["sh", "id", "awk", "printf", "tr", "apt-get"]],
    User = case os:cmd("id -u") of
               "0\n" -> "setpriv --reuid 65534 --regid 65534 --clear-groups ";
               _ -> ""
           end,
    {1, Says} = test_shell:run("chmod 755 '~ts' && ~s env -i PATH='~ts' '~ts/tools/deps' bpftrace libbabeltrace2 lttng "
                               "2>&1", [Bin, User, Bin, test_shell:project()]),
    ?assertEqual([<<"Packages are missing. Type as root:">>,
                  <<"    apt-get update && apt-get install --no-install-recommends bpftrace libbabeltrace2-dev "
                    "pkg-config lttng-tools">>],
                 lines(Says)).

%% A folder of C sources includes only headers of folders before it.
includes(Config) ->
    Sources = ?config(folder, Config),
    Program = filename:join(test_shell:project(), "tools/includes"),
    Check = fun() -> test_shell:run("'~ts' '~ts'", [Program, Sources]) end,
    ?assertEqual({0, <<>>}, Check()),
    [begin
         ok = filelib:ensure_dir(filename:join(Sources, File)),
         ok = file:write_file(filename:join(Sources, File), Text)
     end || {File, Text} <- [{"c_src/text/back.h",
                              "#include \"text/text.h\"\n  # include \"sources/gate.h\"\n#include <string.h>\n"},
                             {"c_src/catalogue/short.c", "#include \"event.h\"\n"},
                             {"c_src/sources/last.def", "#include \"describe.h\"\n"},
                             {"c_src/elsewhere/new.c", "#include \"text/text.h\"\n"},
                             {"viewer/flame/apart.c", "#include \"catalogue/event.h\"\n#include \"text/text.h\"\n"
                              "#include \"sequence/sequence.h\"\n#include \"model/parts.h\"\n"},
                             {"viewer/flame/hidden.c", "#include <report/text.h>\n"
                              "#include \"stacks/../report/text.h\"\n#include <stdlib.h>\n"}]],
    {Status, Says} = Check(),
    ?assertNotEqual(0, Status),
    ?assertEqual([<<"c_src/catalogue/short.c:1: \"event.h\" is not a path from c_src">>,
                  <<"c_src/elsewhere/new.c:1: it is in no layer">>,
                  <<"c_src/sources/last.def:1: c_src/sources includes from c_src/describe, "
                    "which is in a higher layer">>,
                  <<"c_src/text/back.h:2: c_src/text includes from c_src/sources, which is in a higher layer">>,
                  <<"viewer/flame/apart.c:2: \"text/text.h\" is not a public header of c_src: catalogue/event.h "
                    "catalogue/probes.def catalogue/telemetry_keys.def ">>,
                  <<"viewer/flame/apart.c:3: viewer/flame includes from viewer/sequence, which is in the same layer">>,
                  <<"viewer/flame/apart.c:4: \"model/parts.h\" is not a public header of viewer/model: "
                    "model/model.h ">>,
                  <<"viewer/flame/hidden.c:1: viewer/flame includes from viewer/report, which is in the same layer">>,
                  <<"viewer/flame/hidden.c:2: \"stacks/../report/text.h\" is not a plain path">>], lines(Says)).

%% Objects use only objects of lower layers, and there are no cycles.
circles(Config) ->
    Folder = ?config(folder, Config),
    Objects = ["obj/flame/a", "obj/flame/b", "obj/report/c", "obj/shared/d"],
    Check = fun(Named) -> test_shell:run("cd '~ts' && '~ts/tools/circles' viewer ~ts 2>&1",
                                         [Folder, test_shell:project(), lists:join(" ", Named)]) end,
    Calls = fun(Calls) ->
                    [begin
                         ok = filelib:ensure_dir(filename:join(Folder, From)),
                         ok = file:write_file(filename:join(Folder, From ++ ".c"),
                                              ["void ", To, "(void);\nvoid ", filename:basename(From), "(void) { ", To,
                                               "(); }\n"])
                     end || {From, To} <- lists:zip(Objects, Calls)],
                    {0, _} = test_shell:run("cd '~ts' && for o in ~ts; do cc -c -o $o.o $o.c || exit; done",
                                            [Folder, lists:join(" ", Objects)]),
                    Check([Object ++ ".o" || Object <- Objects])
            end,
    ?assertEqual({0, <<>>}, Calls(["b", "d", "d", "abort"])),
    ?assertMatch({1, <<"tsort: -: input contains a loop:\n", _/binary>>}, Calls(["b", "a", "d", "abort"])),
    ?assertEqual({1, <<"obj/flame/b.o uses obj/report/c.o, which is not below it\n">>},
                 Calls(["b", "c", "d", "abort"])),
    ?assertMatch({1, <<"obj/shared/d.o uses obj/flame/a.o, which is not below it\n", _/binary>>},
                 Calls(["b", "d", "d", "a"])),
    ?assertMatch({2, <<"tools/circles: no objects\n">>}, Check([])),
    {Missing, _} = Check(["obj/flame/none.o"]),
    ?assertNotEqual(0, Missing).

%% A compiler that reports this header as missing when the Makefile checks for it.
without(Header, Config) ->
    CC = filename:join(?config(folder, Config), "cc"),
    ok = file:write_file(CC, ["#!/bin/sh\n"
                              "case \" $* \" in\n"
                              "*' -E '*) source=$(cat)\n"
                              "    case $source in *'<", Header, ">'*) exit 1 ;; esac\n"
                              "    printf '%s\\n' \"$source\" | exec cc \"$@\" ;;\n"
                              "esac\n"
                              "exec cc \"$@\"\n"]),
    ok = file:change_mode(CC, 8#755),
    "CC='" ++ CC ++ "'".

%% make fails, with one line that dyntrace prints.
says(Settings, What, Config) ->
    {Status, Output} = make(Settings, Config),
    ?assertNotEqual(0, Status),
    ?assertMatch([_], [Line || Line <- lines(Output), binary:match(Line, What) =/= nomatch,
                               binary:match(Line, <<"dyntrace: ">>) =/= nomatch]).

%% Builds the library, then the viewer.
make(Settings, Config) ->
    make(Settings, "", Config).

make_library(Settings, Config) ->
    test_shell:run("make --no-print-directory -C '~ts/c_src' ~ts", [?config(folder, Config), Settings]).

make(Settings, OfViewer, Config) ->
    test_shell:run("cd '~ts' && make --no-print-directory -C c_src ~ts && make --no-print-directory -C viewer ~ts ~ts",
                   [?config(folder, Config), Settings, Settings, OfViewer]).

lines(Output) ->
    binary:split(Output, <<"\n">>, [global, trim_all]).
