%% Builds the packages of a release, and uses them: Debian's packages, the tarballs, the hex package. The Debian
%% packages are unpacked; debian_SUITE installs them.
-module(packages_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [{group, debian}, {group, tarball}, {group, hex}].

groups() ->
    [{debian, [], [debian_control, debian_command, debian_plugin, debian_application, debian_unit, debian_upgrade]},
     {tarball, [], [checksums, reproducible, builds, in_place, emulated, stacks_of_emulated]},
     {hex, [], [hex_layout, rebar3, mix, prebuilt, no_library]}].

init_per_group(debian, Config) ->
    Missing = [Tool || Tool <- ["dh", "dh_python3", "lintian", "musl-gcc", "zsh"], os:find_executable(Tool) =:= false],
    _ = test_require:tool(Missing =/= [] andalso lists:join(", ", Missing ++ ["not installed"]), Config),
    Files = debian_SUITE:built_here(),
    Root = folder("debian", Config),
    [{0, _} = run("dpkg-deb -x '~ts' '~ts'", [File, Root]) || File <- Files],
    [{packages, Files}, {root, Root} | Config];
init_per_group(tarball, Config) ->
    Missing = [Tool || Tool <- ["aarch64-linux-gnu-gcc", "musl-gcc"], os:find_executable(Tool) =:= false],
    _ = test_require:tool(Missing =/= [] andalso lists:join(", ", Missing ++ ["not installed"]), Config),
    {0, _} = run("make -C '~ts' dist", [test_shell:project()]),
    Root = folder("a tarball", Config),
    {0, _} = run("tar xzf '~ts' -C '~ts'", [tarball("x86_64"), Root]),
    [{root, filename:join(Root, name("x86_64"))} | Config];
init_per_group(hex, Config) ->
    Root = folder("hex", Config),
    {0, _} = run("make -C '~ts' hex && tar xf '~ts' -C '~ts' && cd '~ts' && mkdir contents && "
                 "tar xzf contents.tar.gz -C contents", [test_shell:project(), in_project(hex_package()), Root, Root]),
    [{root, Root} | Config].

end_per_group(_, _) -> ok.

init_per_testcase(Test, Config) ->
    [{folder, folder(atom_to_list(Test), Config)} | Config].

end_per_testcase(_, _) -> ok.

%% -- Debian --------------------------------------------------------------------------------------

%% Each package has this release's version, and what it depends on.
debian_control(Config) ->
    Fields = fun(File) ->
                     [begin
                          {0, Value} = run("dpkg-deb -f '~ts' ~s", [File, Field]),
                          string:trim(Value)
                      end || Field <- ["Package", "Version", "Depends", "Recommends"]]
             end,
    Version = list_to_binary(test_shell:version()),
    [[<<"babeltrace2-plugin-dyntrace">>, Version, OfPlugin, <<>>],
     [<<"dyntrace">>, Version, OfCommand, Recommended],
     [<<"erlang-dyntrace">>, Version, OfLibrary, <<>>]] =
        lists:sort([Fields(File) || File <- ?config(packages, Config)]),
    ?assertEqual(<<"babeltrace2, babeltrace2-plugin-dyntrace (= ", Version/binary, "), bpftrace, lttng-tools">>,
                 Recommended),
    ?assertMatch({match, _}, re:run(OfPlugin, "libbabeltrace2-0 .*libglib2\\.0-0")),
    ?assertMatch({match, _}, re:run(OfCommand, "\\bpython3\\b")),
    ?assertEqual(nomatch, re:run(OfCommand, "erlang|python3\\.")),
    ?assertMatch({match, _}, re:run(OfLibrary, ["erlang-abi \\(= .*erlang-base \\(>= 1:",
                                                erlang:system_info(otp_release), "\\..*libc6 .*liblttng-ust1"])).

debian_command(Config) ->
    Root = ?config(root, Config),
    {0, Version} = run("'~ts/usr/bin/dyntrace' --version", [Root]),
    ?assertEqual(iolist_to_binary(["dyntrace ", test_shell:version(), "\n"]), Version),
    {0, Scripts} = run("'~ts/usr/bin/dyntrace' run", [Root]),
    ?assertMatch({match, _}, re:run(Scripts, "^exits ", [multiline])),
    {0, Manual} = run("zcat '~ts/usr/share/man/man1/dyntrace.1.gz'", [Root]),
    ?assertMatch({match, _}, re:run(Manual, ["\\.TH DYNTRACE 1 .* \"dyntrace ", test_shell:version(), "\""])),
    {0, Bash} = run("bash -c '. \"$0\"; COMP_WORDS=(dyntrace re); COMP_CWORD=1; _dyntrace; echo ${COMPREPLY[*]}' "
                    "'~ts/usr/share/bash-completion/completions/dyntrace'", [Root]),
    ?assertEqual(<<"record relay report request\n">>, Bash),
    Commands = zsh("command", "", Config),
    ?assert(lists:member(<<"report:record for ten seconds, then write a page with findings">>, Commands), Commands),
    Arguments = zsh("rest", "report", Config),
    ?assert(lists:member(<<"*:NODE:_dyntrace_nodes">>, Arguments), Arguments),
    ?assert(lists:member(<<"--seconds[how long to record (default\\: 10)]:N:">>, Arguments), Arguments),
    %% What Python compiles is made at the installation.
    ?assertEqual([], filelib:wildcard(Root ++ "/usr/lib/dyntrace/python/**/*.pyc")),
    ?assertEqual(["dyntrace.so", "dyntrace_lttng.so", "dyntrace_lttng_otp.so"], libraries(Root, machine() ++ "-gnu")),
    ?assertEqual(["dyntrace.so"], libraries(Root, machine() ++ "-musl")).

%% What the completion passes to zsh's functions for a command, in a state of zsh's parser.
zsh(State, Command, Config) ->
    {0, Says} = run("zsh -f -c 'compdef() {}; _describe() { print -rl -- ${(P)2} }; "
                    "_arguments() { if [ \"$1\" = -C ]; then state=$asked; else print -rl -- \"$@\"; fi }; "
                    "asked=$1 words=($2); . $3/usr/share/zsh/vendor-completions/_dyntrace' zsh ~s '~s' '~ts'",
                    [State, Command, ?config(root, Config)]),
    string:lexemes(Says, "\n").

libraries(Root, Target) ->
    Folder = filename:join([Root, "usr/lib/dyntrace/builds", Target]),
    [filename:basename(File) || File <- filelib:wildcard(Folder ++ "/*")].

machine() ->
    string:trim(os:cmd("uname -m")).

%% babeltrace2 finds the plugin in its own folder, and the plugin its template.
debian_plugin(Config) ->
    [Plugin] = filelib:wildcard(?config(root, Config)
                                ++ "/usr/lib/*/babeltrace2/plugins/babeltrace-plugin-dyntrace.so"),
    Recording = test_viewer:make([{1000, process_spawn, #{pid => "<0.9.0>", parent => "<0.1.0>"}}], Config),
    Page = filename:join(?config(folder, Config), "page.html"),
    {0, _} = run("babeltrace2 --plugin-path='~ts' '~ts' --component=sink.dyntrace.html --params='path=\"~ts\"'",
                 [filename:dirname(Plugin), Recording, Page]),
    {ok, Html} = file:read_file(Page),
    ?assertMatch({match, _}, re:run(Html, "<title>")).

%% The application of Debian's Erlang, which has no other path.
debian_application(Config) ->
    Application = ?config(root, Config) ++ "/usr/lib/erlang/lib/dyntrace-" ++ test_shell:version(),
    ?assertEqual(["beam", "bpftrace", "dyntrace.so", "dyntrace_lttng.so", "dyntrace_lttng_otp.so"],
                 lists:sort(element(2, {ok, _} = file:list_dir(Application ++ "/priv")))),
    ?assertEqual([true, Application ++ "/priv/dyntrace.so", available], asked(Application)).

%% The recorder's unit names the installed command.
debian_unit(Config) ->
    {ok, Unit} = file:read_file(?config(root, Config) ++ "/usr/lib/systemd/system/dyntrace-recorder@.service"),
    ?assertMatch({match, [<<"/usr/bin/dyntrace record %i --snapshot $RECORD -o %S/dyntrace/%i">>]},
                 re:run(Unit, "^ExecStart=(.*)$", [multiline, {capture, all_but_first, binary}])).

%% debian/changelog has this release's version.
debian_upgrade(_) ->
    {0, Version} = run("dpkg-parsechangelog -l '~ts' -S Version", [in_project("debian/changelog")]),
    ?assertEqual(list_to_binary(test_shell:version() ++ "\n"), Version).

%% -- The tarballs --------------------------------------------------------------------------------

checksums(_) ->
    {0, Says} = run("cd '~ts' && LC_ALL=C sha256sum -c dyntrace-~s.sha256", [in_project("_build/dist"),
                                                                             test_shell:version()]),
    ?assertEqual(iolist_to_binary([[name(Machine), ".tar.gz: OK\n"] || Machine <- ["aarch64", "x86_64"]]), Says).

%% Another build, in another folder, has the same bytes.
reproducible(Config) ->
    {0, _} = run("cd '~ts' && tools/dist '~ts'", [test_shell:project(), ?config(folder, Config)]),
    [?assertEqual(file:read_file(tarball(Machine)),
                  file:read_file(filename:join(?config(folder, Config), name(Machine) ++ ".tar.gz")), Machine)
     || Machine <- ["x86_64", "aarch64"]].

%% Each build is for its machine, needs only its C library (and LTTng) beside the dynamic linker, and has the probes.
builds(Config) ->
    {0, Listed} = run("tar tzf '~ts' | grep -F .so | sort", [tarball("aarch64")]),
    ?assertEqual([iolist_to_binary([name("aarch64"), "/lib/dyntrace/", File])
                  || File <- ["babeltrace2/babeltrace-plugin-dyntrace.so"
                              | ["builds/" ++ Machine ++ File || Machine <- ["aarch64", "x86_64"],
                                                                 File <- ["-gnu/dyntrace.so", "-gnu/dyntrace_lttng.so",
                                                                          "-gnu/dyntrace_lttng_otp.so",
                                                                          "-musl/dyntrace.so"]]]],
                 string:lexemes(Listed, "\n")),
    Root = folder("of arm64", Config),
    {0, _} = run("tar xzf '~ts' -C '~ts'", [tarball("aarch64"), Root]),
    Libraries = filename:join([Root, name("aarch64"), "lib/dyntrace"]),
    Names = length(catalogue_SUITE:usdt_names()),
    [begin
         File = filename:join([Libraries, "builds", Target, "dyntrace.so"]),
         ?assertEqual({Machine, Needed, Names}, {machine(File), needed(File), notes(File)}, Target)
     end || {Target, Machine, Needed} <- [{"x86_64-gnu", <<"Advanced Micro Devices X86-64">>, [<<"libc.so.6">>]},
                                          {"x86_64-musl", <<"Advanced Micro Devices X86-64">>, [<<"libc.so">>]},
                                          {"aarch64-gnu", <<"AArch64">>, [<<"libc.so.6">>]},
                                          {"aarch64-musl", <<"AArch64">>, [<<"libc.so">>]}]],
    ?assertEqual([<<"libc.so.6">>, <<"liblttng-ust.so.1">>],
                 needed(Libraries ++ "/builds/aarch64-gnu/dyntrace_lttng.so")),
    Plugin = filename:join(Libraries, "babeltrace2/babeltrace-plugin-dyntrace.so"),
    ?assertEqual(<<"AArch64">>, machine(Plugin)),
    ?assertEqual([<<"libbabeltrace2.so.0">>, <<"libc.so.6">>, <<"libglib-2.0.so.0">>],
                 needed(Plugin) -- [<<"libm.so.6">>]),
    %% docs/installation.md names the version of glibc.
    {0, Versions} = run("LC_ALL=C readelf -W --version-info '~ts'/builds/*-gnu/*.so '~ts' | grep -o 'GLIBC_[0-9.]*' | "
                        "sort -V | tail -1", [Libraries, Plugin]),
    ?assertEqual(<<"GLIBC_2.34\n">>, Versions).

machine(File) ->
    {0, Header} = run("LC_ALL=C readelf -h '~ts'", [File]),
    {match, [Machine]} = re:run(Header, "Machine: +(.*)", [{capture, all_but_first, binary}]),
    Machine.

needed(File) ->
    {0, Dynamic} = run("LC_ALL=C readelf -d '~ts'", [File]),
    {match, Found} = re:run(Dynamic, "\\(NEEDED\\).*\\[(.*)\\]", [global, {capture, all_but_first, binary}]),
    lists:sort([Library || [Library] <- Found, string:prefix(Library, "ld-linux") =:= nomatch]).

notes(File) ->
    {0, Count} = run("LC_ALL=C readelf -n '~ts' | grep -c NT_STAPSDT", [File]),
    binary_to_integer(string:trim(Count)).

%% The unpacked command loads its library into a plain node, and makes a page.
in_place(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    _ = test_require:tool(test_require:first([NotRoot, fun test_lttng:missing/0, fun test_viewer:missing/0]), Config),
    {Number, _} = Epmd = test_node:start_epmd(),
    Node = test_node:start(#{paths => [], args => ["-start_epmd", "false", "-sname", "plain"],
                             env => [{"ERL_EPMD_PORT", Number}]}),
    %% The node has no modules of the tests.
    {ok, _} = peer:call(Node, timer, apply_interval, [10, erlang, spawn, [erlang, hd, [[1]]]]),
    Page = filename:join(?config(folder, Config), "plain.html"),
    {0, Says} = run("cd '~ts' && ./dyntrace report ~s --load --seconds 2 -o '~ts'",
                    [?config(root, Config), test_node:os_pid(Node), Page]),
    ?assertMatch({match, _}, re:run(Says, "^recorded: [1-9]\\d* events, lost 0", [multiline])),
    {ok, Html} = file:read_file(Page),
    ?assertMatch({match, _}, re:run(Html, "plain@")),
    test_node:stop(Node),
    test_node:stop_epmd(Epmd).

%% The library for arm64 and glibc works in an emulated VM: this machine's LTTng records its events.
emulated(Config) ->
    NoEmulator = fun() -> os:find_executable("qemu-aarch64-static") =:= false andalso "no qemu-aarch64-static" end,
    _ = test_require:tool(test_require:first([NoEmulator, fun test_lttng:missing/0]), Config),
    Folder = ?config(folder, Config),
    Project = test_shell:project(),
    {0, _} = run("cd '~ts' && tar xzf '~ts' && mkdir -p dyntrace/priv && mv ~s/lib/dyntrace/builds dyntrace/priv/ && "
                 "cp -R '~ts/_build/default/lib/dyntrace/ebin' dyntrace/ && "
                 "'~ts/tools/arm64_erl'",
                 [Folder, tarball("aarch64"), name("aarch64"), Project, Project]),
    Daemon = test_lttng:start_daemon(),
    %% Its events have another alignment, so it can't share buffers with this VM.
    Session = test_lttng:start(Daemon, [message_send], #{channel => "--buffers-pid"}),
    Program = "{ok, _} = application:ensure_all_started(dyntrace), "
              "Await = fun Await() -> dyntrace:listeners() =/= [] orelse begin timer:sleep(10), Await() end end, "
              "true = Await(), 1 = erlang:trace(self(), true, [send, {tracer, dyntrace, []}]), "
              "self() ! {sent, 1.5, [a | b]}, "
              "#{library := Library, backends := Backends, undecoded := Undecoded} = dyntrace:info(), "
              "io:format(\"~~0p.~~n\", [{Library, Backends, Undecoded, length(dyntrace:probes())}]), halt().",
    {0, Says} = run("cd / && '~ts/tools/arm64_erl' -noinput -pa '~ts/dyntrace/ebin' -eval ~ts",
                    [Project, Folder, test_command:quoted(io_lib:format(Program, []))]),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Says)),
    ?assertEqual({ok, {Folder ++ "/dyntrace/priv/builds/aarch64-gnu/dyntrace.so",
                       #{lttng => available, usdt => available}, #{}, length(dyntrace:probes())}},
                 erl_parse:parse_term(Tokens)),
    Sent = [Message || {message_send, #{message := Message}} <- test_lttng:stop(Session)],
    ?assert(lists:member(<<"{sent,1.500000e+00,[a|b]}">>, Sent), Sent),
    test_lttng:stop_daemon(Daemon).

%% The command reads the stacks of a VM for arm64, in an emulator.
stacks_of_emulated(Config) ->
    NoEmulator = fun() -> os:find_executable("qemu-aarch64-static") =:= false andalso "no qemu-aarch64-static" end,
    _ = test_require:tool(NoEmulator(), Config),
    {0, _} = run("'~ts'", [in_project("tools/arm64_erl")]),
    Spin = "Spin = fun(F) -> F(F) end, [spawn(fun() -> Spin(Spin) end) || _ <- [1, 2, 3]].",
    Command = test_command:launch(["'", in_project("tools/arm64_erl"), "' -noinput -eval '", Spin, "'"]),
    File = filename:join(?config(folder, Config), "stacks.json"),
    Taken = fun() -> emulated_stacks(test_command:os_pid(Command), File) end,
    %% One process runs and the others wait for the only scheduler.
    Queues = fun(#{<<"schedulers">> := Schedulers}) ->
                     [Queue || #{<<"kind">> := <<"scheduler">>, <<"queue">> := Queue} <- Schedulers]
             end,
    test_wait:until(working, fun(Found) -> Queues(Found) =:= [2] end, Taken),
    #{<<"groups">> := Groups, <<"unread">> := Unread, <<"inconsistent">> := Inconsistent} = Taken(),
    {0, _} = run("kill -9 ~b", [test_command:os_pid(Command)]),
    _ = test_command:finish(Command),
    %% The processes that run in turn may change while they are read.
    ?assertMatch({0, Changed} when Changed =< 3, {Unread, Inconsistent}),
    [Server] = [Frames || #{<<"names">> := Names, <<"frames">> := Frames} <- Groups, lists:member(<<"logger">>, Names)],
    ?assertMatch([[<<"gen_server:loop/7">>, <<"gen_server.erl">>, _, 1],
                  [<<"proc_lib:init_p_do_apply/3">>, <<"proc_lib.erl">>, _, 1]], Server).

%% One without schedulers if it can't be read, as while the VM starts.
emulated_stacks(OsPid, File) ->
    case test_shell:run("PYTHONPATH='~ts' /usr/bin/python3 '~ts' ~b > '~ts' 2> /dev/null",
                        [test_command:package(), in_project("test/command/emulated.py"), OsPid, File]) of
        {0, _} -> test_viewer:decode(File);
        {_, _} -> #{<<"schedulers">> => []}
    end.

tarball(Machine) ->
    in_project("_build/dist/" ++ name(Machine) ++ ".tar.gz").

name(Machine) ->
    "dyntrace-" ++ test_shell:version() ++ "-linux-" ++ Machine.

%% -- hex -----------------------------------------------------------------------------------------

%% Version 3 of hex's layout; the checksum covers the other files.
hex_layout(Config) ->
    [Version, Checksum, Metadata, Contents] =
        [element(2, {ok, _} = file:read_file(filename:join(?config(root, Config), File)))
         || File <- ["VERSION", "CHECKSUM", "metadata.config", "contents.tar.gz"]],
    ?assertEqual(<<"3">>, Version),
    ?assertEqual(crypto:hash(sha256, [Version, Metadata, Contents]), binary:decode_hex(Checksum)),
    {ok, Terms} = file:consult(filename:join(?config(root, Config), "metadata.config")),
    [?assertEqual({Key, Value}, lists:keyfind(Key, 1, Terms))
     || {Key, Value} <- [{<<"name">>, <<"dyntrace">>}, {<<"version">>, list_to_binary(test_shell:version())},
                         {<<"licenses">>, [<<"Apache-2.0">>]}, {<<"requirements">>, []},
                         {<<"build_tools">>, [<<"rebar3">>]}]],
    {_, Listed} = lists:keyfind(<<"files">>, 1, Terms),
    {ok, Files} = erl_tar:table({binary, Contents}, [compressed]),
    ?assertEqual(lists:sort([binary_to_list(File) || File <- Listed]), lists:sort(Files)),
    %% Nothing that a build has made.
    ?assertEqual([], [File || File <- Files, Made <- [".so", ".o", ".pyc", ".beam", "priv/bpftrace"],
                              string:find(File, Made) =/= nomatch]).

%% A new project with rebar3. The library is built, and not the plugin.
rebar3(Config) ->
    {0, Says} = rebar3("", Config),
    Dependency = dependency(Config),
    ?assertEqual(nomatch, re:run(Says, "plugin|babeltrace2")),
    ?assertNot(filelib:is_file(Dependency ++ "/priv/babeltrace2")),
    ?assert(filelib:is_regular(Dependency ++ "/priv/bpftrace/who_talks.bt")),
    Built = ?config(folder, Config) ++ "/_build/default/checkouts/dyntrace",
    ?assertEqual([true, Built ++ "/priv/dyntrace.so", available], asked(Built)).

rebar3(Environment, Config) ->
    ok = new_project(Config),
    compiled(Environment, Config).

new_project(Config) ->
    Folder = ?config(folder, Config),
    ok = filelib:ensure_path(Folder ++ "/src"),
    ok = filelib:ensure_path(Folder ++ "/_checkouts"),
    {0, _} = run("cp -R '~ts/contents' '~ts'", [?config(root, Config), dependency(Config)]),
    ok = file:write_file(Folder ++ "/rebar.config", "{deps, [dyntrace]}.\n"),
    ok = file:write_file(Folder ++ "/src/app.app.src",
                         "{application, app, [{vsn, \"1\"}, {applications, [dyntrace]}]}.\n").

compiled(Environment, Config) ->
    run("cd '~ts' && ~ts rebar3 compile", [?config(folder, Config), Environment]).

dependency(Config) ->
    ?config(folder, Config) ++ "/_checkouts/dyntrace".

mix(Config) ->
    test_require:tool(os:find_executable("mix") =:= false andalso "mix is not installed (Debian: elixir)", Config),
    Folder = ?config(folder, Config),
    Dependency = Folder ++ "/dyntrace",
    {0, _} = run("cp -R '~ts/contents' '~ts'", [?config(root, Config), Dependency]),
    ok = file:write_file(Folder ++ "/mix.exs",
                         "defmodule App.MixProject do\n  use Mix.Project\n"
                         "  def project, do: [app: :app, version: \"1.0.0\", deps: [{:dyntrace, path: \"dyntrace\", "
                         "manager: :rebar3}]]\nend\n"),
    {0, Says} = run("cd '~ts' && MIX_REBAR3='~ts' LC_ALL=C.UTF-8 mix run -e '~ts'",
                    [Folder, os:find_executable("rebar3"),
                     "IO.puts(\"answers #{:dyntrace.available()} #{:dyntrace.info()[:library]}\")"]),
    Answer = ["answers true ", Folder, "/_build/dev/lib/dyntrace/priv/dyntrace.so\n"],
    ?assertMatch({_, _}, binary:match(Says, unicode:characters_to_binary(Answer)), Says),
    ?assertNot(filelib:is_file(Dependency ++ "/priv/babeltrace2")).

%% Without a C compiler, a prebuilt library is used.
prebuilt(Config) ->
    ok = new_project(Config),
    Target = machine() ++ "-gnu",
    Builds = dependency(Config) ++ "/priv/builds/" ++ Target,
    ok = filelib:ensure_path(Builds),
    {0, _} = run("cp '~ts'/priv/*.so '~ts'", [test_shell:project(), Builds]),
    {0, Says} = compiled(no_compiler(Config), Config),
    ?assertMatch({match, _}, re:run(Says, "dyntrace: no C compiler .*\n.*the prebuilt library in priv/builds/" ++ Target
                                    ++ " is used")),
    Built = ?config(folder, Config) ++ "/_build/default/checkouts/dyntrace",
    ?assertEqual([true, Built ++ "/priv/builds/" ++ Target ++ "/dyntrace.so", available], asked(Built)),
    %% The command beside the node finds the application by that path.
    ?assert(filelib:is_regular(Built ++ "/priv/bpftrace/who_talks.bt")).

%% Without a prebuilt library either, the application starts, and reports why it has no backend.
no_library(Config) ->
    {0, Says} = rebar3(no_compiler(Config), Config),
    ?assertMatch({match, _}, re:run(Says, "dyntrace: no prebuilt library in priv/builds/")),
    [false, undefined, {missing, Why}] = asked(?config(folder, Config) ++ "/_build/default/checkouts/dyntrace"),
    ?assertMatch({match, _}, re:run(Why, "/priv/dyntrace\\.so.*No such file")).

%% A path with all programs but the C compilers.
no_compiler(Config) ->
    Bin = ?config(folder, Config) ++ "/bin",
    {0, _} = run("mkdir '~ts' && ln -s /usr/bin/* '~ts' && rm -f '~ts'/cc '~ts'/gcc* '~ts'/clang*",
                 [Bin, Bin, Bin, Bin, Bin]),
    ["env PATH='", Bin, "'"].

hex_package() ->
    "_build/hex/dyntrace-" ++ test_shell:version() ++ ".tar".

%% -- Helpers -------------------------------------------------------------------------------------

%% Whether an application has a backend, its library, and the state of USDT.
asked(Application) ->
    Program = "ok = logger:set_primary_config(level, none), {ok, _} = application:ensure_all_started(dyntrace), "
              "#{library := File, backends := #{usdt := Usdt}} = dyntrace:info(), "
              "io:format(\"~~0p.~~n\", [[dyntrace:available(), File, Usdt]]), halt().",
    {0, Says} = run("cd / && erl -noinput -pa '~ts/ebin' -eval '" ++ Program ++ "'", [Application]),
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Says)),
    {ok, Answer} = erl_parse:parse_term(Tokens),
    Answer.

folder(Name, Config) ->
    Folder = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_path(Folder),
    Folder.

in_project(Path) ->
    filename:join(test_shell:project(), Path).

%% Runs a command, and prints what it says if it fails.
run(Format, Args) ->
    case test_shell:run(Format, Args) of
        {0, _} = Done -> Done;
        {Status, Says} -> ct:pal("~b~n~ts", [Status, Says]), {Status, Says}
    end.
