%% `dyntrace load', `unload' and `report --load' on nodes that are not prepared for it. Afterwards, they are as before.
-module(unprepared_SUITE).

-include("../support/suite.hrl").

-define(COOKIE, "its_cookie").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [embedded, interactive, consumer, module_of_otp, fixed_port, cookie_of_home, cookie_of_environment, wrong_cookie,
     is_hidden, said_of_nodes, no_distribution, tls, prepared, other_users, of_nobody, container, no_place, seccomp,
     rebar3_release, mix_release, musl, ended, ends_meanwhile, interrupted_twice, busy, report, report_of_prepared,
     report_of_telemetry].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    Missing = test_require:first([NotRoot, fun test_bpftrace:missing/0, fun test_lttng:missing/0,
                                  fun test_viewer:missing/0]),
    _ = test_require:tool(Missing, Config),
    Config.

end_per_suite(_) -> ok.

%% Each case has its own epmd, and leaves no folder behind.
init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder}, {epmd, test_node:start_epmd()} | Config].

end_per_testcase(_, Config) ->
    test_node:stop_epmd(?config(epmd, Config)).

%% A node without this build on its path.
bare(Config, Args) ->
    bare(Config, Args, []).

bare(Config, Args, Env) ->
    {Number, _} = ?config(epmd, Config),
    test_node:start(#{paths => [], args => ["-start_epmd", "false" | Args], env => [{"ERL_EPMD_PORT", Number} | Env]}).

named(Config, Args) ->
    bare(Config, ["-sname", "unprepared", "-setcookie", ?COOKIE | Args]).

%% -- What is left --------------------------------------------------------------------------------

%% Embedded mode loads no modules on demand, so the state is identical down to the last module.
embedded(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    Before = state(Node),
    Folder = load(Node),
    ?assertMatch({_, _, _}, lists:keyfind(dyntrace, 1, call(Node, application, which_applications, []))),
    ?assert(filelib:is_dir(Folder)),
    unload(Node),
    ?assertNot(filelib:is_dir(Folder)),
    ?assertEqual(Before, state(Node)),
    %% Loads again, with the old library still mapped.
    _ = load(Node),
    ?assertMatch({loaded, _}, call(Node, dyntrace, library, [])),
    unload(Node),
    ?assertEqual(Before, state(Node)),
    test_node:stop(Node).

%% Modules that are loaded on demand in this mode belong to OTP.
interactive(Config) ->
    Node = bare(Config, ["-name", "unprepared@127.0.0.1", "-setcookie", ?COOKIE]),
    Before = #{modules := Modules} = state(Node),
    _ = load(Node),
    unload(Node),
    After = #{modules := Now} = state(Node),
    ?assertEqual(maps:remove(modules, Before), maps:remove(modules, After)),
    ?assertEqual([], [Module || Module <- Now -- Modules, lists:prefix("dyntrace", atom_to_list(Module))]),
    test_node:stop(Node).

%% Unloads while a consumer is attached and the node traces for it.
consumer(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    Before = state(Node),
    Folder = load(Node),
    [Library] = filelib:wildcard(Folder ++ "/*/priv/dyntrace.so"),
    Consumer = test_bpftrace:start(Library, [process_spawn, file_call]),
    test_wait:until("flags and patterns are set", fun is_traced/1, fun() -> state(Node) end),
    unload(Node),
    ?assertEqual(Before, state(Node)),
    _ = test_bpftrace:stop(Consumer),
    test_node:stop(Node).

%% On OTP 27 and later, the node traces in a separate trace session.
is_traced(#{flags := Flags, patterns := Patterns, sessions := Sessions}) ->
    Flags =/= [[]] andalso lists:any(fun({all, Set}) -> is_list(Set); (_) -> false end, Patterns)
        orelse length(Sessions) > 1.

%% The module `dyntrace' of OTP's runtime_tools is restored.
module_of_otp(Config) ->
    Node = named(Config, []),
    {module, dyntrace} = call(Node, code, ensure_loaded, [dyntrace]),
    Otp = call(Node, dyntrace, module_info, [md5]),
    File = call(Node, code, is_loaded, [dyntrace]),
    _ = load(Node),
    ?assertMatch(#{version := _}, call(Node, dyntrace, info, [])),
    unload(Node),
    ?assertEqual({Otp, File}, {call(Node, dyntrace, module_info, [md5]), call(Node, code, is_loaded, [dyntrace])}),
    test_node:stop(Node).

%% -- Connecting to the node ----------------------------------------------------------------------

%% epmd does not know the node, and its distribution socket is not its only one.
fixed_port(Config) ->
    Port = integer_to_list(test_node:free_port()),
    Node = bare(Config, ["-name", "unprepared@127.0.0.1", "-setcookie", ?COOKIE, "-erl_epmd_port", Port]),
    {ok, _} = call(Node, application, ensure_all_started, [inets]),
    {ok, _} = call(Node, inets, start, [httpd, [{port, 0}, {server_name, "x"}, {server_root, "/tmp"},
                                                {document_root, "/tmp"}]]),
    _ = load(Node),
    unload(Node),
    test_node:stop(Node).

%% The cookie is in a file of the home folder.
cookie_of_home(Config) ->
    Home = ?config(folder, Config),
    File = filename:join(Home, ".erlang.cookie"),
    ok = file:write_file(File, "ofhome\n"),
    ok = file:change_mode(File, 8#400),
    Node = bare(Config, ["-sname", "unprepared"], [{"HOME", Home}]),
    ofhome = call(Node, erlang, get_cookie, []),
    _ = load(Node),
    unload(Node),
    test_node:stop(Node).

%% A release's script passes the cookie on; here the node sets it itself.
cookie_of_environment(Config) ->
    Node = bare(Config, ["-sname", "unprepared"], [{"RELEASE_COOKIE", "ofrelease"}, {"HOME", ?config(folder, Config)}]),
    true = call(Node, erlang, set_cookie, [ofrelease]),
    _ = load(Node),
    unload(Node),
    test_node:stop(Node).

%% Neither the wrong cookie nor the right one is printed.
wrong_cookie(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    true = call(Node, erlang, set_cookie, ['sosecret']),
    Before = state(Node),
    Output = refused(3, ["load", test_node:os_pid(Node)], "rejects the cookies from its arguments"),
    ?assertEqual(nomatch, re:run(Output, "sosecret|" ?COOKIE)),
    ?assertEqual(Before, state(Node)),
    test_node:stop(Node).

is_hidden(Config) ->
    Node = named(Config, []),
    _ = load(Node),
    ?assertEqual([], call(Node, erlang, nodes, [])),
    test_wait:until("the connection is gone", [], fun() -> call(Node, erlang, nodes, [hidden]) end),
    unload(Node),
    test_node:stop(Node).

%% -- Nodes that can't be loaded or unloaded ------------------------------------------------------

said_of_nodes(Config) ->
    [Node, Mute] = [named(Config, []), bare(Config, [])],
    [Pid, MutePid] = [test_node:os_pid(One) || One <- [Node, Mute]],
    {0, Text} = test_command:run(["nodes"]),
    ?assertMatch({match, _}, re:run(Text, ["`dyntrace load` can load it into .*\\b", Pid, "\\b"])),
    ?assertMatch({match, _}, re:run(Text, ["`dyntrace load` can't: process ", MutePid, " .*has no distribution"])),
    ?assertMatch(#{<<"possible">> := true, <<"why">> := null}, as_json(Pid)),
    ?assertMatch(#{<<"possible">> := false, <<"why">> := <<"process ", _/binary>>}, as_json(MutePid)),
    _ = load(Node),
    ?assertEqual(null, as_json(Pid)),
    unload(Node),
    ?assertMatch(#{<<"possible">> := true}, as_json(Pid)),
    [test_node:stop(One) || One <- [Node, Mute]].

as_json(Pid) ->
    maps:get(<<"load">>, test_command:listed(Pid)).

no_distribution(Config) ->
    Node = bare(Config, []),
    _ = refused(5, ["load", test_node:os_pid(Node)], "has no distribution"),
    test_node:stop(Node).

%% The node has no name, because it has no certificate either.
tls(Config) ->
    Node = bare(Config, ["-proto_dist", "inet_tls"]),
    _ = refused(5, ["load", test_node:os_pid(Node)], "uses distribution over TLS"),
    test_node:stop(Node).

%% Refused for a node that already has dyntrace, in any way, and for unloading from one that does not have it.
prepared(Config) ->
    Node = named(Config, []),
    Pid = test_node:os_pid(Node),
    _ = refused(5, ["unload", Pid], "has not loaded dyntrace"),
    _ = load(Node),
    _ = refused(5, ["load", Pid], "has already loaded the library into process "),
    unload(Node),
    true = call(Node, code, add_patha, [filename:dirname(code:which(dyntrace))]),
    _ = refused(5, ["load", Pid], "has dyntrace on its own code path"),
    {ok, _} = call(Node, application, ensure_all_started, [dyntrace]),
    _ = refused(5, ["unload", Pid], "was not loaded by `dyntrace load`"),
    ?assertMatch(#{version := _}, call(Node, dyntrace, info, [])),
    test_node:stop(Node).

other_users(Config) ->
    Node = named(Config, []),
    {3, Output} = test_command:run(test_command:as_nobody(?config(folder, Config)), ["load", test_node:os_pid(Node)]),
    ?assertMatch({match, _}, re:run(Output, "belongs to root, and you are nobody")),
    test_node:stop(Node).

%% Root and the user `nobody' load into a node of `nobody'. The folder belongs to the node's user.
of_nobody(Config) ->
    {Number, _} = ?config(epmd, Config),
    Nobody = test_command:as_nobody("/nonexistent"),
    Started = started("ofnobody", [Nobody, " ERL_EPMD_PORT=", Number]),
    {_, Pid} = Started,
    [begin
         {0, Loaded} = test_command:run(Prefix, ["load", Pid]),
         {match, [Folder]} = re:run(Loaded, "from its folder (\\S+)", [{capture, all_but_first, list}]),
         ?assertEqual({0, <<"700 nobody\n">>}, test_shell:run("stat -c '%a %U' ~ts", [Folder])),
         {0, _} = test_command:run(Prefix, ["unload", Pid]),
         ?assertNot(filelib:is_dir(Folder))
     end || Prefix <- ["", Nobody]],
    kill(Started).

%% The node has its own namespaces and its own /tmp, and no file outside is changed.
container(_) ->
    Started = boxed("mount -t tmpfs tmpfs /tmp"),
    {_, Pid} = Started,
    Inside = "/proc/" ++ Pid ++ "/root",
    {0, Loaded} = test_command:run(["load", Pid]),
    {match, [Folder]} = re:run(Loaded, "boxed@box .* from its folder (\\S+)", [{capture, all_but_first, list}]),
    ?assertNot(filelib:is_dir(Folder)),
    ?assertEqual({0, <<"700 nobody\n">>}, test_shell:run("stat -c '%a %U' ~ts~ts", [Inside, Folder])),
    {0, Text} = test_command:run(["nodes"]),
    Row = ["^", Pid, " +nobody +yes +boxed@box +\\S+ +", test_shell:version()],
    ?assertMatch({match, _}, re:run(Text, Row, [multiline])),
    {0, _} = test_command:run(["unload", Pid]),
    ?assertEqual({ok, []}, file:list_dir(Inside ++ "/tmp")),
    kill(Started).

%% No folder can hold the library, each for a different reason.
no_place(_) ->
    Started = boxed("mount -t tmpfs -o noexec tmpfs /tmp && mount -t tmpfs -o ro tmpfs /var/tmp && "
                    "mount -t tmpfs -o size=1M tmpfs /dev/shm && mount -t tmpfs -o noexec tmpfs /run"),
    {_, Pid} = Started,
    _ = refused(5, ["load", Pid], "/tmp: its file system is mounted noexec; /var/tmp: its file system is read-only; "
                    "/dev/shm: it has 1.0 MB free; /run: its file system is mounted noexec"),
    {0, Text} = test_command:run(["nodes"]),
    ?assertMatch({match, _}, re:run(Text, ["can't: no folder of process ", Pid, " .*noexec"])),
    kill(Started).

%% A seccomp filter forbids the node to map the library as code.
seccomp(Config) ->
    {Number, _} = ?config(epmd, Config),
    Support = filename:join(test_shell:project(), "test/support"),
    Library = filename:join([test_shell:project(), "priv", "dyntrace.so"]),
    Started = started("filtered", ["env ERL_EPMD_PORT=", Number, " ", Support, "/seccomp.py ", Library]),
    {_, Pid} = Started,
    _ = refused(1, ["load", Pid], "can't load the library: .*failed to map segment"),
    ?assertEqual([], folders(Pid)),
    kill(Started).

%% Releases run their own runtime system, in embedded mode, with their own scripts.
rebar3_release(Config) ->
    _ = test_require:tool(os:find_executable("rebar3") =:= false andalso "rebar3 not installed", Config),
    of_release([{"src/bare.app.src", "{application, bare, [{vsn, \"1.0.0\"}, {applications, [kernel, stdlib]}]}.\n"},
                {"vm.args", "-name bare@127.0.0.1\n-setcookie " ?COOKIE "\n"},
                {"rebar.config", "{relx, [{release, {bare, \"1.0.0\"}, [bare, sasl]}, {mode, prod},\n"
                                 "        {include_erts, true}, {vm_args, \"vm.args\"}]}.\n"}],
               "rebar3 release", "_build/default/rel/bare/bin/bare foreground -noinput", Config).

%% Mix has generated the cookie.
mix_release(Config) ->
    _ = test_require:tool(os:find_executable("mix") =:= false andalso "mix is not installed (Debian: elixir)", Config),
    of_release([{"mix.exs", "defmodule Bare.MixProject do\n"
                            "  use Mix.Project\n"
                            "  def project, do: [app: :bare, version: \"1.0.0\"]\n"
                            "end\n"}],
               "LC_ALL=C.UTF-8 MIX_ENV=prod mix release",
               "env RELEASE_DISTRIBUTION=name RELEASE_NODE=bare@127.0.0.1 _build/prod/rel/bare/bin/bare start", Config).

of_release(Files, Build, Start, Config) ->
    Folder = ?config(folder, Config),
    [begin
         File = filename:join(Folder, Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Text)
     end || {Name, Text} <- Files],
    {0, _} = test_shell:run("cd '~ts' && ~ts", [Folder, Build]),
    {Number, _} = ?config(epmd, Config),
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{cd, Folder}, {args, ["-c", "exec " ++ Start]}, {env, [{"ERL_EPMD_PORT", Number}]}, exit_status]),
    %% The release runs once its node is listed under its own name.
    test_wait:until("it can be loaded", fun(Seen) -> Seen =/= none end, fun loadable/0),
    Pid = loadable(),
    {0, Output} = test_command:run(["report", Pid, "--load", "--seconds", "2", "-o", "-"]),
    ?assertMatch({match, _}, re:run(Output, "^Processes by run time", [multiline])),
    ?assertEqual([], folders(Pid)),
    kill({Port, Pid}),
    receive {Port, {exit_status, _}} -> ok end.

loadable() ->
    {_, Nodes} = test_command:run(["nodes"]),
    Row = re:run(Nodes, "^(\\d+) .* bare@127.0.0.1 ", [multiline, {capture, all_but_first, list}]),
    Loadable = re:run(Nodes, "can load it into (.*)$", [multiline, {capture, all_but_first, list}]),
    case {Row, Loadable} of
        {{match, [Pid]}, {match, [Pids]}} ->
            hd([Pid || lists:member(Pid, string:lexemes(Pids, ", "))] ++ [none]);
        _ ->
            none
    end.

%% The musl build is found, and musl's own dynamic linker loads it into a musl program that only exports functions with
%% the VM's names. A glibc node does not get this build.
musl(Config) ->
    _ = test_require:tool(os:find_executable("musl-gcc") =:= false andalso "musl-gcc not installed", Config),
    Folder = ?config(folder, Config),
    Build = Folder ++ "/priv/builds/musl",
    {0, _} = test_shell:run("make -C '~ts' musl MUSL='~ts/musl' MUSL_BUILD='~ts'",
                            [test_shell:project(), Folder, Build]),
    Library = Build ++ "/dyntrace.so",
    {0, Names} = test_shell:run("nm -D --undefined-only '~ts' | awk '$2 ~~ /^enif_/ { print $2 }'", [Library]),
    Stubs = [["void ", Name, "(void) {}\n"] || Name <- binary:split(Names, <<"\n">>, [global, trim_all])],
    ok = file:write_file(Folder ++ "/vm.c",
                         ["#include <dlfcn.h>\n", Stubs,
                          "int main(int n, char **args) {"
                          "    void *library = n == 2 ? dlopen(args[1], RTLD_NOW) : 0;"
                          "    return !library || !dlsym(library, \"nif_init\");"
                          "}\n"]),
    {0, _} = test_shell:run("cd '~ts' && musl-gcc -rdynamic -o vm vm.c && ./vm '~ts'", [Folder, Library]),
    {0, _} = test_shell:run("cp -R '~ts' '~ts/python' && mkdir -p '~ts/bin' '~ts/ebin' && cp '~ts' '~ts/bin' && "
                            "cp '~ts/dyntrace.app' '~ts/ebin'",
                            [test_command:package(), Folder ++ "/priv", Folder ++ "/priv", Folder ++ "/priv",
                             test_command:path(), Folder ++ "/priv", filename:dirname(code:which(dyntrace)),
                             Folder ++ "/priv"]),
    Node = named(Config, []),
    {4, Output} = test_shell:run("'~ts/priv/bin/dyntrace' load ~s", [Folder, test_node:os_pid(Node)]),
    ?assertMatch({match, _}, re:run(Output, "requires a build for glibc on (\\S+); this host has: musl on \\1\n")),
    test_node:stop(Node).

boxed(Mounts) ->
    Nobody = test_command:as_nobody("/nonexistent"),
    started("boxed", ["unshare --net --uts --mount --pid --mount-proc --fork --kill-child sh -c '", Mounts,
                      " && ip link set lo up && hostname box && cd / && exec \"$@\"' sh ", Nobody]).

%% Starts a node by a command; it ends with the case. Returns {Port, OS pid}.
started(Name, Prefix) ->
    Line = [Prefix, " erl -noshell -sname ", Name, " -setcookie ", ?COOKIE,
            " -eval 'io:format(\"up~n\"), _ = io:get_line([]), halt().'"],
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "exec " ++ lists:flatten(Line)]}, {line, 200},
                                                     stderr_to_stdout]),
    receive {Port, {data, {eol, "up"}}} -> ok end,
    {0, Nodes} = test_command:run(["nodes"]),
    {match, [Pid]} = re:run(Nodes, ["^(\\d+) .* ", Name, "@"], [multiline, {capture, all_but_first, list}]),
    {Port, Pid}.

%% The port closes when the program ends.
kill({_, Pid}) ->
    {0, _} = test_shell:run("kill -KILL ~ts", [Pid]).

%% The node's folder is removed when another node is loaded.
ended(Config) ->
    Node = named(Config, []),
    Pid = test_node:os_pid(Node),
    Folder = load(Node),
    true = unlink(Node),
    {0, _} = test_shell:run("kill -KILL ~ts", [Pid]),
    test_wait:until("the node has ended", false, fun() -> filelib:is_dir("/proc/" ++ Pid) end),
    ?assert(filelib:is_dir(Folder)),
    Other = named(Config, []),
    _ = load(Other),
    ?assertNot(filelib:is_dir(Folder)),
    unload(Other),
    test_node:stop(Other).

%% The application's start hangs while the node ends.
ends_meanwhile(Config) ->
    Node = named(Config, []),
    Pid = test_node:os_pid(Node),
    ok = call(Node, sys, suspend, [application_controller]),
    Command = test_command:start(["load", Pid]),
    test_wait:until("the files are there", fun(Folders) -> Folders =/= [] end, fun() -> folders(Pid) end),
    true = unlink(Node),
    {0, _} = test_shell:run("kill -KILL ~ts", [Pid]),
    {5, Output} = test_command:finish(Command),
    ?assertMatch({match, _}, re:run(Output, "has ended")),
    ?assertEqual([], folders(Pid)).

%% The application's start hangs. A second signal ends the command, and the node is as before. While the command is
%% alive, the node would refuse the connection of the process that unloads the library.
interrupted_twice(Config) ->
    Node = named(Config, []),
    Pid = test_node:os_pid(Node),
    ok = call(Node, sys, suspend, [application_controller]),
    Command = test_command:start(["load", Pid]),
    test_wait:until("the files are there", fun(Folders) -> Folders =/= [] end, fun() -> folders(Pid) end),
    ok = test_command:signal("INT", Command),
    ok = test_command:await("still ending; a second Ctrl-C ends it at once", Command),
    ok = test_command:signal("INT", Command),
    ?assertMatch({130, _}, test_command:finish(Command)),
    ok = call(Node, sys, resume, [application_controller]),
    test_wait:until("its folder is removed", [], fun() -> folders(Pid) end),
    ?assertEqual(false, call(Node, code, is_loaded, [dyntrace_app])),
    _ = load(Node),
    unload(Node),
    test_node:stop(Node).

%% The node's processes never wait. Modules that can't be purged in time are counted.
busy(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    {?MODULE, Code, File} = code:get_object_code(?MODULE),
    {module, ?MODULE} = call(Node, code, load_binary, [?MODULE, File, Code]),
    Before = state(Node),
    Busy = call(Node, ?MODULE, spinning, [1000]),
    _ = load(Node),
    unload(Node),
    ?assertEqual(1000, call(Node, ?MODULE, killed, [Busy])),
    %% A reply to the command that comes too late makes the node look up its host's address.
    After = #{registered := Registered} = state(Node),
    ?assertEqual(Before, After#{registered := Registered -- [inet_gethost_native, inet_gethost_native_sup]}),
    test_node:stop(Node).

spinning(Count) ->
    [spawn(?MODULE, spin, []) || _ <- lists:seq(1, Count)].

spin() ->
    spin().

%% Kills the processes and returns how many of them were alive.
killed(Processes) ->
    length([exit(Process, kill) || Process <- Processes, is_process_alive(Process)]).

%% -- dyntrace report --load ----------------------------------------------------------------------

report(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    Before = state(Node),
    Pid = test_node:os_pid(Node),
    {ok, _} = call(Node, timer, apply_interval, [10, erlang, spawn, [erlang, hd, [[1]]]]),
    WithTimer = state(Node),
    {0, Output} = test_command:run(["report", Pid, "--load", "--seconds", "3", "-o", "-"]),
    ?assertMatch({match, _}, re:run(Output, "^Processes by run time", [multiline])),
    %% The command's own connection does not count as another node.
    ?assertMatch({match, _}, re:run(Output, "^Recorded: .*sends", [multiline])),
    ?assertEqual(nomatch, re:run(Output, "^Recorded: .*deliveries", [multiline])),
    ?assertNotEqual(Before, WithTimer),
    ?assertEqual(WithTimer, state(Node)),
    test_node:stop(Node).

report_of_prepared(Config) ->
    {2, _} = test_command:run(["report", "--load"]),
    Node = named(Config, []),
    _ = load(Node),
    {0, _} = test_command:run(["report", test_node:os_pid(Node), "--load", "--seconds", "2", "-o", "-"]),
    ?assertMatch(#{version := _}, call(Node, dyntrace, info, [])),
    unload(Node),
    test_node:stop(Node).

%% The report has the telemetry that the program itself counts, also of a module that is loaded while it is recorded.
report_of_telemetry(Config) ->
    Node = named(Config, ["-mode", "embedded"]),
    Before = state(Node),
    File = filename:join(?config(folder, Config), "report.json"),
    Report = test_command:start(["report", test_node:os_pid(Node), "--load", "--seconds", "6", "-o", File]),
    test_wait:until("telemetry is traced", true,
                    fun() ->
                            try call(Node, dyntrace, info, []) of
                                #{following := Following} -> is_map(Following) andalso maps:get(telemetry, Following)
                            catch _:_ -> not_loaded
                            end
                    end),
    [{module, Module} = call(Node, code, load_binary, [Module, "", Code])
     || {Module, Code} <- test_telemetry:modules()],
    test_wait:until("the module is traced", true, fun() -> call(Node, test_telemetry, is_traced, []) end),
    Spans = call(Node, test_telemetry, works, [60]),
    {0, _} = test_command:finish(Report),
    Rows = [{Name, Count, Ns, Failed}
            || #{<<"name">> := Name, <<"count">> := Count, <<"total_ns">> := Ns,
                 <<"failed">> := Failed} <- maps:get(<<"telemetry">>, test_viewer:decode(File))],
    %% The metadata of the exception has the route, too.
    Expected = [begin
                    Of = [{Name, Ns} || {Name, Ns, #{route := R}} <- Spans, R =:= Route],
                    {<<"shop.order ", Route/binary>>, length(Of), lists:sum([Ns || {_, Ns} <- Of]),
                     length([failed || {[shop, order, exception], _} <- Of])}
                end || Route <- [<<"/orders/0">>, <<"/orders/1">>]],
    ?assertEqual(Expected, lists:sort(Rows)),
    _ = [{true, false} = {call(Node, code, delete, [Module]), call(Node, code, purge, [Module])}
         || {Module, _} <- test_telemetry:modules()],
    true = call(Node, persistent_term, erase, [telemetry]),
    ?assertEqual(Before, state(Node)),
    test_node:stop(Node).

%% -- Helpers -------------------------------------------------------------------------------------

call(Node, Module, Function, Args) ->
    peer:call(Node, Module, Function, Args, 120000).

%% Returns the folder that the command prints.
load(Node) ->
    Pid = test_node:os_pid(Node),
    {0, Output} = test_command:run(["load", Pid]),
    {match, [Folder]} = re:run(Output, "has loaded dyntrace from its folder (\\S+)", [{capture, all_but_first, list}]),
    Folder.

unload(Node) ->
    {0, Output} = test_command:run(["unload", test_node:os_pid(Node)]),
    ?assertMatch({match, _}, re:run(Output, "has unloaded dyntrace; its folder \\S+ is removed")).

refused(Status, Args, Reason) ->
    {Status, Output} = test_command:run(Args),
    ?assertMatch({match, _}, re:run(Output, Reason)),
    Output.

folders(Pid) ->
    filelib:wildcard("/tmp/dyntrace-load-" ++ Pid ++ "-*").

%% Everything that a load or a recording changes in a node.
state(Node) ->
    Processes = call(Node, erlang, processes, []),
    HasSessions = call(Node, code, ensure_loaded, [trace]) =:= {module, trace},
    #{sessions => [Session || HasSessions, Session <- call(Node, trace, session_info, [all])],
      path => call(Node, code, get_path, []),
      applications => call(Node, application, which_applications, []),
      known => lists:sort([Name || {Name, _, _} <- call(Node, application, loaded_applications, [])]),
      modules => lists:sort([Module || {Module, _} <- call(Node, code, all_loaded, [])]),
      registered => lists:sort(call(Node, erlang, registered, [])),
      handlers => call(Node, logger, get_handler_ids, []),
      terms => lists:sort([Key || {{dyntrace, _} = Key, _} <- call(Node, persistent_term, get, [])]),
      monitor => call(Node, erlang, system_monitor, []),
      flags => lists:usort([Flags || Process <- [new | Processes],
                                     {flags, Flags} <- [call(Node, erlang, trace_info, [Process, flags])]]),
      patterns => [call(Node, erlang, trace_info, [What, Item])
                   || {What, Item} <- [{on_load, all}, {send, match_spec}, {'receive', match_spec},
                                       {{prim_file, open, 2}, all}, {{prim_file, read, 2}, all}]]}.
