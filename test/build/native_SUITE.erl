%% The library as it is built on systems with native DTrace, by `dtrace -h' and `dtrace -G'. Here, SystemTap's `dtrace'
%% replaces it: it makes the same macros, and bpftrace can read their probes.
-module(native_SUITE).

-include("../support/suite.hrl").

%% DTrace for Linux also has a command with this name, in another folder.
-define(DTRACE, "/usr/bin/dtrace").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [providers, notes, exports, built_once, darwin, backends, all_together].

%% A copy of the project, in which the cases on the node build more. Not in the suite's own folder, because bpftrace
%% can't read a path with an @.
init_per_suite(Config) ->
    case missing() of
        false ->
            Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-native-" ++ os:getpid()),
            Build = filename:join(Folder, "_build/test/lib/dyntrace"),
            ok = filelib:ensure_path(Build),
            {0, _} = test_shell:run("cd '~ts' && cp -RL c_src test '~ts' && rm -rf '~ts/c_src/obj' && "
                                    "cp -RL '~ts' '~ts' && ln -s ../../../../priv '~ts/priv'",
                                    [test_shell:project(), Folder, Folder, filename:dirname(code:which(dyntrace)),
                                     Build, Build]),
            Built = [{folder, Folder}, {build, Build}, {library, filename:join(Folder, "priv/dyntrace.so")} | Config],
            {0, _} = make("SYSTEM=FreeBSD", Built),
            Built;
        Missing ->
            test_require:tool(Missing, Config)
    end.

missing() ->
    case filelib:is_regular(?DTRACE) of
        true -> test_bpftrace:missing();
        false -> "SystemTap's dtrace is not installed"
    end.

end_per_suite(Config) ->
    ok = file:del_dir_r(?config(folder, Config)).

make(Settings, Config) ->
    test_shell:run("make --no-print-directory -C '~ts/c_src' DTRACE=" ?DTRACE " ~ts 2>&1",
                   [?config(folder, Config), Settings]).

%% Each probe with the types of its arguments. D has names for at most ten.
providers(Config) ->
    {ok, Text} = file:read_file(filename:join(?config(folder, Config), "c_src/obj/dyntrace_provider.d")),
    {match, Providers} = re:run(Text, "provider (\\w+) \\{\n(.*?)\\};\n",
                                [global, dotall, {capture, all_but_first, binary}]),
    {match, Probes} = re:run(Text, "^    probe (\\w+)\\((.*)\\);$",
                             [global, multiline, {capture, all_but_first, binary}]),
    Catalogue = catalogue_SUITE:with(usdt),
    ?assertEqual(lists:usort([atom_to_binary(Provider) || #{provider := Provider} <- Catalogue]),
                 lists:sort([Provider || [Provider, _] <- Providers])),
    ?assertEqual(lists:sort([[Name, types(Fields)] || Probe = #{fields := Fields} <- Catalogue,
                                                      Name <- catalogue_SUITE:names(Probe)]),
                 lists:sort(Probes)),
    ?assertEqual([], [Name || #{name := Name, fields := Fields} <- Catalogue, length(Fields) > 10]).

types(Fields) ->
    iolist_to_binary(lists:join(", ", [type(Type) || #{type := Type} <- Fields])).

type(string) -> "char *";
type(Number) -> [atom_to_list(Number), "_t"].

notes(Config) ->
    catalogue_SUITE:notes_of(?config(library, Config)).

exports(Config) ->
    catalogue_SUITE:exports_of(?config(library, Config)).

%% `dtrace' runs only when its input has changed.
built_once(Config) ->
    {0, Nothing} = make("SYSTEM=FreeBSD", Config),
    ?assertEqual(nomatch, binary:match(Nothing, <<"dtrace ">>)),
    {0, Again} = make("--just-print --what-if=catalogue/probes.def SYSTEM=FreeBSD", Config),
    ?assertMatch({match, [[<<" -h ">>], [<<" -G ">>]]},
                 re:run(Again, "^" ?DTRACE " *( -[hG] )", [global, multiline, {capture, all_but_first, binary}])).

%% Apple's linker makes the probes: there is a header, but no additional object.
darwin(Config) ->
    {0, Commands} = make("--just-print --always-make SYSTEM=Darwin", Config),
    ?assertMatch([{_, _}, {_, _}, {_, _}, nomatch, nomatch],
                 [re:run(Commands, Part)
                  || Part <- ["dtrace +-h ", " -bundle .*/backends/dtrace\\.o ", "-DDT_NO_LTTNG", "dtrace +-G ",
                              "lttng.*\\.o"]]).

backends(Config) ->
    Node = start(Config),
    Missing = {missing, <<"only on Linux">>},
    ?assertMatch(#{backends := #{usdt := available, lttng := Missing}, lttng_library := undefined,
                   lttng_providers := #{org_erlang_dyntrace := Missing, org_erlang_otp := Missing}},
                 test_node:call(Node, fun dyntrace:info/0)),
    test_node:stop(Node).

%% Each probe is enabled while bpftrace is attached, and fires with its values.
all_together(Config) ->
    Node = start(Config),
    WithNode = [{node, Node} | Config],
    ?assertEqual([], usdt_SUITE:listeners(WithNode)),
    usdt_SUITE:all_together(WithNode),
    ?assertEqual([], usdt_SUITE:listeners(WithNode)),
    test_node:stop(Node).

start(Config) ->
    Ebin = filename:join(?config(build, Config), "ebin"),
    test_node:start(#{paths => [Ebin | test_node:test_paths()]}).
