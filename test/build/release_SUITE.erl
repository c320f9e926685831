%% Releases from tarballs, made by each release tool. They are unpacked in another folder while the build's folder is
%% moved away. Each boots in both modes, has this module, and fires the probes that a consumer is attached to.
-module(release_SUITE).

-include("../support/suite.hrl").

-define(MODES, ["interactive", "embedded"]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [{group, Tool} || {Tool, _, _} <- groups()].

groups() ->
    [{rebar3, [], [rebar3, rebar3_without_runtime_tools]},
     {mix, [], [mix, mix_without_runtime_tools]},
     {systools, [], [systools, systools_without_runtime_tools]}].

init_per_suite(Config) ->
    test_require:tool(test_bpftrace:missing(), Config).

end_per_suite(_) -> ok.

%% The sources that a tool builds, with the project's libraries; in examples_SUITE, each tool makes these, too. Not in
%% the suite's own folder, because bpftrace can't read a path with an @.
init_per_group(Tool, Config) ->
    Work = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["dyntrace-release-", os:getpid(), "-", Tool])),
    Sources = filename:join(Work, "sources"),
    ok = filelib:ensure_path(Sources),
    ok = examples_SUITE:copy_built(Sources),
    [{work, Work}, {folder, Sources} | Config].

end_per_group(_, Config) ->
    ok = file:del_dir_r(?config(work, Config)).

%% A folder to unpack into.
init_per_testcase(_, Config) ->
    Release = filename:join(?config(work, Config), "release"),
    ok = filelib:ensure_path(Release),
    [{release, Release} | Config].

end_per_testcase(_, Config) ->
    _ = file:rename(moved(Config), ?config(folder, Config)),
    ok = file:del_dir_r(?config(release, Config)).

%% -- Tests ---------------------------------------------------------------------------------

%% The release is also started by its own script, which names the node.
rebar3(Config) ->
    examples_SUITE:needs_runtime_tools(Config),
    rebar3("", Config),
    boots(Config),
    Release = ?config(release, Config),
    Epmd = {Number, _} = test_node:start_epmd(),
    {0, Says} = test_shell:run("cd / && ERL_EPMD_PORT=~s '~ts/bin/shop' foreground -noinput -eval '"
                               "io:format(\"answers ~~w ~~ts~~n\", "
                               "[dyntrace:available(), maps:get(library, dyntrace:info())]), init:stop().' 2>&1",
                               [Number, Release]),
    test_node:stop_epmd(Epmd),
    ?assertMatch({_, _}, binary:match(Says, unicode:characters_to_binary(["answers true ", library(Release), "\n"])),
                 Says).

rebar3_without_runtime_tools(Config) ->
    rebar3("s/shop, runtime_tools, sasl/shop, sasl/", Config),
    boots(Config).

rebar3(Edit, Config) ->
    Shop = examples_SUITE:rebar3_shop(Config),
    {0, _} = test_shell:run("cd '~ts' && cp '~ts/examples/rebar3/rebar.config' . && sed -i '~s' rebar.config && "
                            "rm -rf _build/prod/rel && rebar3 as prod tar", [Shop, test_shell:project(), Edit]),
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
    {0, _} = test_shell:run("cd '~ts' && cp '~ts/examples/mix/mix.exs' . && sed -i '~s' mix.exs && "
                            "rm -rf _build/prod/rel", [Shop, test_shell:project(), Edit]),
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
    Apps = [{App, version(App)} || App <- [kernel, stdlib, sasl | Others]] ++ [{dyntrace, test_shell:version()}],
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

application_folder() ->
    "lib/dyntrace-" ++ test_shell:version().

unpack(Tar, Config) ->
    {0, _} = test_shell:run("tar xzf ~ts -C '~ts'", [Tar, ?config(release, Config)]),
    ok = file:rename(?config(folder, Config), moved(Config)).

moved(Config) ->
    filename:join(?config(work, Config), "moved").

%% One consumer is attached to the library that both modes use.
boots(Config) ->
    Release = ?config(release, Config),
    Library = library(Release),
    ?assert(filelib:is_regular(filename:join(filename:dirname(Library), "bpftrace/who_talks.bt"))),
    Nodes = [{Mode, start(Mode, Release)} || Mode <- ?MODES],
    Version = test_shell:version(),
    [begin
         ?assertMatch({#{version := Version, library := Library, backends := #{usdt := available}}, Mode},
                      {peer:call(Node, dyntrace, info, []), Mode}),
         ?assertMatch([_ | _], peer:call(Node, dyntrace, probes, []))
     end || {Mode, Node} <- Nodes],
    Consumer = test_bpftrace:start_script(["usdt:", Library,
                                           ":org_erlang_dyntrace:message_send { printf(\"%s\\n\", str(arg2)); }"], #{}),
    [fires(Consumer, Mode, Node) || {Mode, Node} <- Nodes],
    _ = test_bpftrace:stop_script(Consumer),
    [begin
         by_its_name(Release, Node),
         ok = test_node:stop(Node)
     end || {_, Node} <- Nodes].

%% Starts with the release's own runtime system and boot file. Nothing else is on the code path.
start(Mode, Release) ->
    Erts = filename:join([Release, "erts-" ++ erlang:system_info(version), "bin"]),
    test_node:start(#{exec => filename:join(Erts, "erlexec"), paths => [],
                    env => [{"ROOTDIR", Release}, {"BINDIR", Erts}, {"EMU", "beam"}, {"RELEASE_ROOT", Release},
                            {"RELEASE_NAME", "shop"}, {"RELEASE_VSN", "1.0.0"}],
                    args => ["-mode", Mode, "-boot", filename:join(Release, "releases/1.0.0/start"),
                             "-boot_var", "RELEASE_LIB", filename:join(Release, "lib")]}).

library(Release) ->
    filename:join([Release, application_folder(), "priv/dyntrace.so"]).

%% The application sets the trace flags for the consumer.
fires(Consumer, Mode, Node) ->
    test_wait:until("messages are traced", fun traced/1, fun() -> peer:call(Node, dyntrace, info, []) end),
    Sent = list_to_atom("sent_by_another_process_" ++ Mode),
    test_wait:until("a line of the message", fun(Lines) -> lists:member(atom_to_binary(Sent), Lines) end,
                    fun() ->
                            Sent = peer:call(Node, erlang, send, [init, Sent]),
                            test_bpftrace:lines(Consumer)
                    end).

traced(#{following := #{processes := Flags}}) -> lists:member(send, Flags);
traced(_) -> false.

%% Loading the module by its name loads this module, not that of runtime_tools.
by_its_name(Release, Node) ->
    true = peer:call(Node, code, soft_purge, [dyntrace]),
    {module, dyntrace} = peer:call(Node, code, load_file, [dyntrace]),
    File = peer:call(Node, code, which, [dyntrace]),
    ?assert(lists:prefix(filename:join(Release, application_folder()), File), File),
    Library = library(Release),
    ?assertMatch(#{library := Library}, peer:call(Node, dyntrace, info, [])).
