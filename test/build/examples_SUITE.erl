%% Builds and runs each example as its README says: with dyntrace as a dependency, and in releases.
-module(examples_SUITE).

-include("../support/suite.hrl").

%% The expressions that the tests evaluate in a running shop, in Erlang and in Elixir.
-define(ASKED,
        "io:format(\"answers ~~w ~~w ~~ts~~n\", "
        "[dyntrace:available(), shop:order(<<\"apple\">>), maps:get(library, dyntrace:info())])").
-define(ASKED_IN_ELIXIR,
        "IO.puts(\"answers #{:dyntrace.available()} #{Shop.order(\"apple\")} #{:dyntrace.info()[:library]}\")").

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [first_step_rebar3, first_step_mix, {group, rebar3}, mix, mix_release, plain, demo, demo_verbose].

%% These cases share one build.
groups() ->
    [{rebar3, [], [rebar3, rebar3_release, rebar3_release_without_erts, rebar3_release_without_runtime_tools]}].

init_per_group(rebar3, Config) ->
    Folder = filename:join([?config(priv_dir, Config), "a shop", "built"]),
    ok = copy_built(Folder),
    [{folder, Folder} | Config].

end_per_group(rebar3, Config) ->
    ok = file:del_dir_r(?config(folder, Config)).

%% Each test has a folder, in a path with a space.
init_per_testcase(Test, Config) ->
    Folder = filename:join([?config(priv_dir, Config), "a shop", atom_to_list(Test)]),
    ok = filelib:ensure_path(Folder),
    [{own, Folder} | with_sources(Test, Folder, Config)].

end_per_testcase(_, Config) ->
    {0, _} = test_shell:run("chmod -R u+w '~ts' && rm -rf '~ts'", [?config(own, Config), ?config(own, Config)]).

%% The first steps also make the libraries. The demo and the plain example run with this build.
with_sources(Test, Folder, Config) when Test =:= first_step_rebar3; Test =:= first_step_mix ->
    {0, _} = test_shell:run("cd '~ts' && cp -R c_src viewer scripts src tools priv rebar.config examples '~ts' && "
                            "cd '~ts' && "
                            "rm -rf c_src/obj viewer/obj priv/*.so priv/babeltrace2/*.so priv/bpftrace priv/beam",
                            [test_shell:project(), Folder, Folder]),
    [{folder, Folder} | Config];
with_sources(Test, Folder, Config) when Test =:= mix; Test =:= mix_release ->
    ok = copy_built(Folder),
    [{folder, Folder} | Config];
with_sources(Test, Folder, Config) when Test =:= plain; Test =:= demo; Test =:= demo_verbose ->
    {0, _} = test_shell:run("cp -R '~ts/examples' '~ts'", [test_shell:project(), Folder]),
    [{folder, Folder} | Config];
with_sources(_, _, Config) ->
    Config.

%% Copies the sources with their libraries, which make must find newer than the sources.
copy_built(Folder) ->
    ok = filelib:ensure_path(Folder),
    {0, _} = test_shell:run("cd '~ts' && cp -a c_src viewer scripts src tools priv rebar.config examples '~ts' && "
                            "rm -rf '~ts/priv/beam'", [test_shell:project(), Folder, Folder]),
    ok.

%% A new project, with the line about _checkouts from README in its rebar.config. Runs README's first command in the
%% project's shell.
first_step_rebar3(Config) ->
    App = new_project("", Config),
    ok = file:write_file(filename:join(App, "rebar.config"), readme("^  dependency: `(\\{deps, .*\\}\\.)`")),
    ok = file:write_file(filename:join(App, "src/my_app.app.src"),
                         "{application, my_app, [{vsn, \"1\"}, {applications, [kernel, stdlib]}]}.\n"),
    {0, _} = test_shell:run("cd '~ts' && mkdir _checkouts && ln -s ../../.. _checkouts/dyntrace", [App]),
    ok = file:write_file(filename:join(App, "first.escript"),
                         ["#!/usr/bin/env escript\n"
                          "main(_) -> io:format(\"script runs~n\"), ", readme("^1> (dyntrace:.*)\\."), ", "
                          "io:format(\"answers ~w 1 ~ts~n\", "
                          "[dyntrace:available(), maps:get(library, dyntrace:info())]), halt().\n"]),
    {0, Says} = rebar3_shell(App, 3),
    ?assert(filelib:is_regular(filename:join(App, "_build/default/checkouts/dyntrace/priv/bpftrace/who_talks.bt"))),
    ?assert(has(Says, answers([App, "/_build/default/checkouts/dyntrace"])), Says).

%% On OTP 25, rebar3's shell calls processes that may have ended meanwhile, and then ends before any script runs.
rebar3_shell(App, Tries) ->
    {Status, Says} = Result = test_shell:run("cd '~ts' && rebar3 shell --script first.escript 2>&1", [App]),
    case has(Says, <<"script runs">>) of
        false when Status =/= 0, Tries > 1 ->
            ct:pal("rebar3 shell ended with ~b:~n~ts", [Status, Says]),
            rebar3_shell(App, Tries - 1);
        _ ->
            Result
    end.

%% The same with mix. It starts the application, with the configuration that docs/configuration.md shows.
first_step_mix(Config) ->
    test_require:tool(os:find_executable("mix") =:= false andalso "mix is not installed (Debian: elixir)", Config),
    App = new_project("config", Config),
    {match, [Dependency]} = re:run(readme("^- \\*mix\\*: `\\{(.*)\\}`"), "(.*), git: \"URL\"",
                                   [{capture, all_but_first, binary}]),
    ok = file:write_file(filename:join(App, "mix.exs"),
                         ["defmodule MyApp.MixProject do\n  use Mix.Project\n"
                          "  def project, do: [app: :my_app, version: \"1.0.0\", deps: deps()]\n"
                          "  def application, do: []\n  defp deps, do: [{", Dependency,
                          ", path: \"../..\", manager: :rebar3}]\nend\n"]),
    ok = file:write_file(filename:join(App, "config/config.exs"),
                         ["import Config\n", documented("docs/configuration.md", "^(config :dyntrace, .*)$"), "\n"]),
    {0, Says} = mix("mix run -e '~ts'",
                    ["IO.inspect({\"following\", :dyntrace.info().following != :off, "
                     "Application.get_env(:dyntrace, :functions)})"], App),
    ?assert(has(Says, <<"{\"following\", true, [{MyApp.Prices, :_, :_}]}">>), Says).

new_project(Folder, Config) ->
    App = filename:join([?config(folder, Config), "projects", "my_app"]),
    [ok = filelib:ensure_path(filename:join(App, Sub)) || Sub <- ["src", Folder]],
    App.

readme(Line) ->
    documented("README.md", Line).

%% The part of a document's line that the pattern captures.
documented(Document, Line) ->
    {ok, Text} = file:read_file(filename:join(test_shell:project(), Document)),
    {match, [Part]} = re:run(Text, Line, [multiline, {capture, all_but_first, binary}]),
    Part.

rebar3(Config) ->
    Shop = rebar3_shop(Config),
    {0, _} = test_shell:run("cd '~ts' && rebar3 compile", [Shop]),
    {0, Says} = test_shell:run("cd '~ts' && ERL_LIBS=_build/default/checkouts:_build/default/lib erl -noinput -eval "
                             "'{ok, _} = application:ensure_all_started(shop), " ?ASKED ", halt().'", [Shop]),
    ?assertEqual(answers([Shop, "/_build/default/checkouts/dyntrace"]), Says).

rebar3_shop(Config) ->
    Shop = filename:join([?config(folder, Config), "examples", "rebar3"]),
    {0, _} = test_shell:run("cd '~ts' && mkdir -p _checkouts && ln -sfn ../../.. _checkouts/dyntrace", [Shop]),
    Shop.

%% Runs with the runtime system of the release and with that of the machine. The release also has OTP's dyntrace. In
%% embedded mode that module is loaded first; the application replaces it, and logs that. The release is read-only.
rebar3_release(Config) ->
    needs_runtime_tools(Config),
    rebar3_release("", "$PWD", fun(Mode) -> Mode =:= "embedded" end, Config).

rebar3_release_without_erts(Config) ->
    needs_runtime_tools(Config),
    rebar3_release("s/{include_erts, true}/{include_erts, false}/", code:root_dir(),
                   fun(Mode) -> Mode =:= "embedded" end, Config).

%% The release has no other dyntrace, and the module is not loaded yet.
rebar3_release_without_runtime_tools(Config) ->
    rebar3_release("s/shop, runtime_tools, sasl/shop, sasl/", "$PWD", fun(_) -> false end, Config).

rebar3_release(Edit, Root, IsReplaced, Config) ->
    %% The release's own script starts the runtime system below Root in this way.
    Erl = ["env ROOTDIR=\"$PWD\" EMU=beam BINDIR=\"", Root, "/erts-", erlang:system_info(version), "/bin\" "
           "\"", Root, "/erts-", erlang:system_info(version), "/bin/erlexec\" -boot_var SYSTEM_LIB_DIR '",
           code:root_dir(), "/lib'"],
    Shop = rebar3_shop(Config),
    Release = filename:join(?config(own, Config), "a release"),
    {0, _} = test_shell:run("cd '~ts' && cp '~ts/examples/rebar3/rebar.config' . && sed -i '~s' rebar.config && "
                            "rebar3 release && mv _build/default/rel/shop '~ts' && chmod -R a-w '~ts'",
                            [Shop, test_shell:project(), Edit, Release, Release]),
    [begin
         {0, Says} = test_shell:run("cd '~ts' && ERL_CRASH_DUMP_SECONDS=0 ~s -mode ~s "
                                    "-boot releases/1.0.0/start -config releases/1.0.0/sys "
                                    "-noinput -eval '" ?ASKED ", init:stop().' 2>&1", [Release, Erl, Mode]),
         ?assert(has(Says, answers([Release, "/lib/dyntrace-", test_shell:version()])), {Mode, Says}),
         ?assertEqual(IsReplaced(Mode), replaced(Says), {Mode, Says})
     end || Mode <- ["interactive", "embedded"]].

mix(Config) ->
    Shop = mix_shop(Config),
    {0, Says} = mix("mix run -e '~ts' -e '~ts'",
                    [?ASKED_IN_ELIXIR, "IO.inspect(Application.get_env(:dyntrace, :functions))"], Shop),
    ?assert(has(Says, answers([Shop, "/_build/dev/lib/dyntrace"])), Says),
    ?assert(has(Says, <<"[{Shop, :_, :_}]">>), Says).

%% The release runs in another folder, in embedded mode like its `start' command, without the sources, and read-only.
mix_release(Config) ->
    needs_runtime_tools(Config),
    Shop = mix_shop(Config),
    {0, _} = mix("MIX_ENV=prod mix release --path 'a release'", [], Shop),
    Release = filename:join(?config(folder, Config), "a release"),
    {0, _} = test_shell:run("mv '~ts/a release' '~ts' && rm -rf '~ts' && chmod -R a-w '~ts'",
                            [Shop, Release, Shop, Release]),
    {0, Says} = test_shell:run("RELEASE_DISTRIBUTION=none RELEASE_TMP='~ts' RELEASE_BOOT_SCRIPT_CLEAN=start "
                               "ELIXIR_ERL_OPTIONS='-mode embedded' '~ts/bin/shop' eval '~ts' 2>&1",
                               [?config(folder, Config), Release, ?ASKED_IN_ELIXIR]),
    ?assert(has(Says, answers([Release, "/lib/dyntrace-", test_shell:version()])), Says),
    ?assert(replaced(Says), Says).

mix_shop(Config) ->
    test_require:tool(os:find_executable("mix") =:= false andalso "mix is not installed (Debian: elixir)", Config),
    filename:join([?config(folder, Config), "examples", "mix"]).

%% Mix does not look for rebar3 on the path.
mix(Command, Args, Shop) ->
    test_shell:run("cd '~ts' && export MIX_REBAR3='~ts' LC_ALL=C.UTF-8 && " ++ Command ++ " 2>&1",
                 [Shop, os:find_executable("rebar3") | Args]).

plain(Config) ->
    Lib = filename:dirname(filename:dirname(filename:dirname(code:which(dyntrace)))),
    {0, Says} = test_shell:run("'~ts/examples/plain/run' '~ts' 2>&1", [?config(folder, Config), Lib]),
    ?assertMatch([_, _, _], binary:split(Says, <<"available true\n">>, [global]), Says).

%% Runs the demo like `make demo'. The summary is made from the events, and agrees with the system's own count.
demo(Config) ->
    Says = demo("", Config),
    check_summary(Says),
    %% The story has a bounded number of lines, and shows processes by name.
    Story = [Line || Line <- binary:split(Says, <<"\n">>, [global]), re:run(Line, "^ *\\d+\\.\\d{3}  ") =/= nomatch],
    ?assert(length(Story) > 50 andalso length(Story) < 150, length(Story)),
    [?assertMatch({match, _}, re:run(Says, Line), Line)
     || Line <- ["demo_customer -> demo_clerk: \\{'\\$gen_call',.*\\{order,\"tea\"\\}\\}\n",
                 "demo_gambler <[0-9.]+> crashes: \\{shutdown,bad_luck\\}\n",
                 "demo_gambler <[0-9.]+> starts again, after \\d+ [um]s\n"]],
    [?assert(filelib:is_regular(filename:join([?config(folder, Config), "_build/demo", File])), File)
     || File <- ["demo.html", "demo.pftrace"]].

demo_verbose(Config) ->
    Says = demo("VERBOSE=1", Config),
    check_summary(Says),
    {match, [Count]} = re:run(Says, "\n(\\d+) events\\. ", [{capture, all_but_first, list}]),
    {match, Lines} = re:run(Says, "\n\\[\\d+\\.\\d{9}\\] .* org_erlang_dyntrace:", [global]),
    ?assertEqual(list_to_integer(Count), length(Lines)).

demo(Settings, Config) ->
    test_require:tool(test_require:first([fun test_lttng:tools_missing/0, fun test_viewer:missing/0]), Config),
    Paths = [[" -pa '", filename:dirname(code:which(Module)), "'"] || Module <- [dyntrace, dyntrace_demo, test_lttng]],
    {0, Says} = test_shell:run("cd '~ts' && env ~s erl -noinput~ts -s dyntrace_demo main 2>&1",
                               [?config(folder, Config), Settings, Paths]),
    Says.

check_summary(Says) ->
    Number = fun(Pattern) ->
                     {match, [N]} = re:run(Says, Pattern, [{capture, all_but_first, list}]),
                     list_to_integer(N)
             end,
    Counted = [Number("own count: .*?(\\d+) " ++ What)
               || What <- ["orders", "rolls", "crashes", "ports", "connections"]],
    ?assertEqual([60, 60, 20, 60, 60], Counted),
    [?assertEqual(60, Number(Pattern), Pattern)
     || Pattern <- ["clerk +answers in \\d+ [um]s \\((\\d+) calls\\)\n",
                    "customer +orders live \\d+ [um]s \\((\\d+) orders\\)\n",
                    "gambler +(\\d+) rolls, ", "typist +(\\d+) ports\n", "caller +(\\d+) connections\n"]],
    ?assertMatch({match, _}, re:run(Says, "crashed 20 times: \\{shutdown,bad_luck\\}; up again after \\d+ [um]s\n")).

needs_runtime_tools(Config) ->
    test_require:tool(code:lib_dir(runtime_tools) =:= {error, bad_name} andalso
                      "erlang-runtime-tools is not installed", Config).

answers(Dyntrace) ->
    unicode:characters_to_binary(["answers true 1 ", Dyntrace, "/priv/dyntrace.so\n"]).

replaced(Says) ->
    has(Says, <<"dyntrace: loaded ">>) andalso has(Says, <<"in place of ">>).

has(Text, What) ->
    binary:match(Text, What) =/= nomatch.
