%% Building: with each compiler, alone, as a dependency, release, release_with_erts, and what a missing header says.
-module(build_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [gcc, clang, dependency, release, release_with_erts, no_nif_header, no_compiler, no_sdt_header].

%% Each test has a copy of the sources.
init_per_testcase(Test, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Test)),
    ok = filelib:ensure_path(Folder),
    {0, _} = dt_shell:run("cd '~ts' && cp -R c_src src tools rebar.config '~ts'", [dt_shell:project(), Folder]),
    {0, _} = dt_shell:run("rm -rf '~ts/c_src/obj'", [Folder]),
    [{folder, Folder} | Config].

end_per_testcase(_, _) ->
    ok.

gcc(Config) -> compiler("gcc", Config).
clang(Config) -> compiler("clang", Config).

%% `make -C c_src` alone: the library works, and every probe has its one site.
compiler(CC, Config) ->
    dt_require:tool(os:find_executable(CC) =:= false andalso CC ++ " is not installed", []),
    {0, _} = make("CC=" ++ CC, Config),
    Library = filename:join([?config(folder, Config), "priv", "dyntrace.so"]),
    {0, Notes} = dt_shell:run("LC_ALL=C readelf -n '~ts' | grep -c NT_STAPSDT", [Library]),
    ?assertEqual(length(catalogue_SUITE:usdt_names()), binary_to_integer(string:trim(Notes))).

%% As rebar3 takes a dependency: from the checkouts of another project.
dependency(Config) ->
    Project = project("{deps, [dyntrace]}.\n", Config),
    {0, _} = dt_shell:run("cd '~ts' && rebar3 compile", [Project]),
    {0, Says} = dt_shell:run("cd '~ts' && ERL_LIBS=_build/default/checkouts:_build/default/lib erl -noinput -eval "
                             "'io:format(\"~~w\", [dyntrace:available()]), halt().'", [Project]),
    ?assertEqual(<<"true">>, Says).

%% Releases that have OTP's dyntrace as well, with and without the runtime system in them, in a path with a space,
%% where nothing can be written: ours is the one that runs, and says that it took the other one's place.
release(Config) -> releases("false", Config).
release_with_erts(Config) -> releases("true", Config).

releases(IncludeErts, Config) ->
    dt_require:tool(code:lib_dir(runtime_tools) =:= {error, bad_name} andalso "erlang-runtime-tools is not installed", Config),
    Project = project(["{deps, [dyntrace]}.\n"
                       "{relx, [{release, {shop, \"1\"}, [project, runtime_tools, sasl]}, {dev_mode, false}, "
                       "{include_erts, ", IncludeErts, "}, {extended_start_script, false}]}.\n"], Config),
    {0, _} = dt_shell:run("cd '~ts' && rebar3 release", [Project]),
    Release = filename:join(Project, "a shop"),
    {0, _} = dt_shell:run("mv '~ts/_build/default/rel/shop' '~ts' && chmod -R a-w '~ts'", [Project, Release, Release]),
    Library = filename:join([Release, "lib", "dyntrace-0.1.0", "priv", "dyntrace.so"]),
    Erl = case IncludeErts of
              "true" ->
                  "erts-*/bin/erl";
              "false" ->
                  %% As the release's own script starts the machine's runtime system.
                  Root = code:root_dir(),
                  Bin = filename:join([Root, "erts-" ++ erlang:system_info(version), "bin"]),
                  lists:concat(["env ROOTDIR=\"$PWD\" EMU=beam BINDIR='", Bin, "' '", Bin, "/erlexec' -boot_var SYSTEM_LIB_DIR '", Root, "/lib'"])
          end,
    [begin
         {0, Says} = dt_shell:run("cd '~ts' && ERL_CRASH_DUMP_SECONDS=0 ~s -mode ~s -boot releases/1/start -noinput -eval "
                                  "'io:format(\"answers ~~w ~~ts~~n\", [dyntrace:available(), maps:get(library, dyntrace:info())]), init:stop().' 2>&1",
                                  [Release, Erl, Mode]),
         ?assertMatch({_, _}, binary:match(Says, unicode:characters_to_binary(["answers true ", Library, "\n"])), {Mode, Says}),
         %% Embedded mode has loaded OTP's at boot; in interactive mode ours comes first on this path.
         ?assertEqual(Mode =:= "embedded", has(Says, <<"dyntrace: loaded ">>) andalso has(Says, <<"in place of ">>), {Mode, Says})
     end || Mode <- ["interactive", "embedded"]],
    {0, _} = dt_shell:run("chmod -R u+w '~ts'", [Release]).

has(Text, What) ->
    binary:match(Text, What) =/= nomatch.

%% A project that has us among its checkouts.
project(RebarConfig, Config) ->
    Folder = ?config(folder, Config),
    Project = filename:join(Folder, "project"),
    Checkout = filename:join([Project, "_checkouts", "dyntrace"]),
    ok = filelib:ensure_path(filename:join(Project, "src")),
    ok = filelib:ensure_path(Checkout),
    {0, _} = dt_shell:run("cd '~ts' && cp -R c_src src tools rebar.config '~ts'", [Folder, Checkout]),
    ok = file:write_file(filename:join(Project, "rebar.config"), RebarConfig),
    ok = file:write_file(filename:join([Project, "src", "project.app.src"]),
                         "{application, project, [{vsn, \"1\"}, {applications, [kernel, stdlib, dyntrace]}]}.\n"),
    Project.

no_nif_header(Config) ->
    says(without("erl_nif.h", Config), <<"(Debian: erlang-dev)">>, Config).

no_compiler(Config) ->
    says("CC=no-such-compiler", <<"(Debian: gcc libc6-dev)">>, Config).

%% Without USDT it builds, and says so in one line.
no_sdt_header(Config) ->
    {0, Output} = make(without("sys/sdt.h", Config), Config),
    ?assertMatch([_], [Line || Line <- lines(Output), binary:match(Line, <<"(Debian: systemtap-sdt-dev)">>) =/= nomatch]).

%% A compiler that does not find a header when it is asked for it.
without(Header, Config) ->
    CC = filename:join(?config(folder, Config), "cc"),
    ok = file:write_file(CC, ["#!/bin/sh\n"
                              "case \" $* \" in\n"
                              "*' -E '*) source=$(cat)\n"
                              "    case $source in *'<", Header, ">'*) exit 1 ;; esac\n"
                              "    printf '%s\\n' \"$source\" | exec gcc \"$@\" ;;\n"
                              "esac\n"
                              "exec gcc \"$@\"\n"]),
    ok = file:change_mode(CC, 8#755),
    "CC='" ++ CC ++ "'".

%% It fails with one line of ours.
says(Settings, What, Config) ->
    {Status, Output} = make(Settings, Config),
    ?assertNotEqual(0, Status),
    ?assertMatch([_], [Line || Line <- lines(Output), binary:match(Line, What) =/= nomatch,
                               binary:match(Line, <<"dyntrace: ">>) =/= nomatch]).

make(Settings, Config) ->
    dt_shell:run("make --no-print-directory -C '~ts/c_src' ~ts", [?config(folder, Config), Settings]).

lines(Output) ->
    binary:split(Output, <<"\n">>, [global, trim_all]).
