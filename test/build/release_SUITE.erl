%% Releases from tarballs, by each tool that makes them: unpacked in another folder, after the folder of the build is
%% deleted. Each boots in both modes, has this module, and fires the probes that a consumer is attached to.
-module(release_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

-define(MODES, ["interactive", "embedded"]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [rebar3, rebar3_without_runtime_tools, rebar3_start_script, mix, mix_without_runtime_tools, systools,
     systools_without_runtime_tools].

init_per_suite(Config) ->
    test_require:tool(test_bpftrace:missing(), Config).

end_per_suite(_) ->
    ok.

%% Sources to build, and a folder to unpack. Not in the suite's own folder, since bpftrace can't read a path with an @.
init_per_testcase(Test, Config) ->
    Work = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["dyntrace-release-", os:getpid(), "-", Test])),
    {Sources, Release} = {filename:join(Work, "sources"), filename:join(Work, "release")},
    [ok = filelib:ensure_path(Folder) || Folder <- [Sources, Release]],
    {0, _} = test_shell:run("cd '~ts' && cp -R c_src viewer src tools priv rebar.config examples '~ts'",
                            [test_shell:project(), Sources]),
    {0, _} = test_shell:run("cd '~ts' && rm -rf c_src/obj viewer/obj priv/*.so priv/beam", [Sources]),
    [{work, Work}, {folder, Sources}, {release, Release} | Config].

end_per_testcase(_, Config) ->
    ok = file:del_dir_r(?config(work, Config)).

%% -- Tests ---------------------------------------------------------------------------------

rebar3(Config) ->
    examples_SUITE:needs_runtime_tools(Config),
    rebar3("", Config),
    boots(Config).

rebar3_without_runtime_tools(Config) ->
    rebar3("s/shop, runtime_tools, sasl/shop, sasl/", Config),
    boots(Config).

%% Started by the release's own script, which names the node.
rebar3_start_script(Config) ->
    rebar3("", Config),
    Release = ?config(release, Config),
    Epmd = {Number, _} = test_node:start_epmd(),
    {0, Says} = test_shell:run("cd / && ERL_EPMD_PORT=~s '~ts/bin/shop' foreground -noinput -eval '"
                               "io:format(\"answers ~~w ~~ts~~n\", "
                               "[dyntrace:available(), maps:get(library, dyntrace:info())]), init:stop().' 2>&1",
                               [Number, Release]),
    test_node:stop_epmd(Epmd),
    ?assertMatch({_, _}, binary:match(Says, unicode:characters_to_binary(["answers true ", library(Release), "\n"])),
                 Says).

rebar3(Edit, Config) ->
    Shop = examples_SUITE:rebar3_shop(Config),
    {0, _} = test_shell:run("cd '~ts' && sed -i '~s' rebar.config && rebar3 as prod tar", [Shop, Edit]),
    unpack(filename:join(Shop, "_build/prod/rel/shop/*.tar.gz"), Config).

mix(Config) ->
    examples_SUITE:needs_runtime_tools(Config),
    mix("", Config),
    boots(Config).

mix_without_runtime_tools(Config) ->
    mix("s/:logger, :runtime_tools/:logger/", Config),
    boots(Config).

mix(Edit, Config) ->
    Shop = examples_SUITE:mix_shop(Config),
    {0, _} = test_shell:run("cd '~ts' && sed -i '~s' mix.exs", [Shop, Edit]),
    {0, _} = examples_SUITE:mix("MIX_ENV=prod mix release", [], Shop),
    unpack(filename:join(Shop, "_build/prod/*.tar.gz"), Config).

systools(Config) ->
    examples_SUITE:needs_runtime_tools(Config),
    systools([runtime_tools], Config),
    boots(Config).

systools_without_runtime_tools(Config) ->
    systools([], Config),
    boots(Config).

%% OTP's module is on the code path before this one.
systools(Others, Config) ->
    Sources = ?config(folder, Config),
    {0, _} = test_shell:run("cd '~ts' && rebar3 compile", [Sources]),
    Ebin = filename:join(Sources, "_build/default/lib/dyntrace/ebin"),
    Rel = filename:join(Sources, "shop"),
    Apps = [{App, version(App)} || App <- [kernel, stdlib, sasl | Others]] ++ [{dyntrace, "0.1.0"}],
    ok = file:write_file(Rel ++ ".rel",
                         io_lib:format("~p.~n",
                                       [{release, {"shop", "1.0.0"}, {erts, erlang:system_info(version)}, Apps}])),
    ok = systools:make_script(Rel, [{path, [Ebin]}, {outdir, Sources}]),
    ok = systools:make_tar(Rel, [{path, [Ebin]}, {outdir, Sources}, {erts, code:root_dir()}]),
    unpack(Rel ++ ".tar.gz", Config).

version(App) ->
    {ok, [{application, App, Keys}]} = file:consult(code:where_is_file(lists:concat([App, ".app"]))),
    proplists:get_value(vsn, Keys).

%% -- Helpers -------------------------------------------------------------------------------

unpack(Tar, Config) ->
    {0, _} = test_shell:run("tar xzf ~ts -C '~ts'", [Tar, ?config(release, Config)]),
    ok = file:del_dir_r(?config(folder, Config)).

boots(Config) ->
    [boots(Mode, ?config(release, Config)) || Mode <- ?MODES].

boots(Mode, Release) ->
    Node = start(Mode, Release),
    Library = library(Release),
    ?assertMatch({#{version := "0.1.0", library := Library, backends := #{usdt := available}}, Mode},
                 {peer:call(Node, dyntrace, info, []), Mode}),
    ?assertMatch([_ | _], peer:call(Node, dyntrace, probes, [])),
    fires(Library, Node),
    by_its_name(Release, Node),
    ok = test_node:stop(Node).

%% With the release's own runtime system and boot file. Nothing else is on the code path.
start(Mode, Release) ->
    Erts = filename:join([Release, "erts-" ++ erlang:system_info(version), "bin"]),
    test_node:start(#{exec => filename:join(Erts, "erlexec"), paths => [],
                    env => [{"ROOTDIR", Release}, {"BINDIR", Erts}, {"EMU", "beam"}, {"RELEASE_ROOT", Release},
                            {"RELEASE_NAME", "shop"}, {"RELEASE_VSN", "1.0.0"}],
                    args => ["-mode", Mode, "-boot", filename:join(Release, "releases/1.0.0/start"),
                             "-boot_var", "RELEASE_LIB", filename:join(Release, "lib")]}).

library(Release) ->
    filename:join(Release, "lib/dyntrace-0.1.0/priv/dyntrace.so").

%% A consumer attaches to the library's path; the application sets the trace flags.
fires(Library, Node) ->
    Consumer = test_bpftrace:start_script(["usdt:", Library,
                                           ":org_erlang_dyntrace:message_send { printf(\"%s\\n\", str(arg2)); }"], #{}),
    test_wait:until("messages are traced", fun traced/1, fun() -> peer:call(Node, dyntrace, info, []) end),
    test_wait:until("a line of the message", fun(Lines) -> lists:member(<<"sent_by_somebody_else">>, Lines) end,
                    fun() ->
                            sent_by_somebody_else = peer:call(Node, erlang, send, [init, sent_by_somebody_else]),
                            test_bpftrace:lines(Consumer)
                    end),
    _ = test_bpftrace:stop_script(Consumer).

traced(#{following := #{processes := Flags}}) -> lists:member(send, Flags);
traced(_) -> false.

%% Loading the module by its name loads this module, not that of runtime_tools.
by_its_name(Release, Node) ->
    true = peer:call(Node, code, soft_purge, [dyntrace]),
    {module, dyntrace} = peer:call(Node, code, load_file, [dyntrace]),
    File = peer:call(Node, code, which, [dyntrace]),
    ?assert(lists:prefix(filename:join(Release, "lib/dyntrace-0.1.0"), File), File),
    Library = library(Release),
    ?assertMatch(#{library := Library}, peer:call(Node, dyntrace, info, [])).
