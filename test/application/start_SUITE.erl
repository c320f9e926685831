%% The application is permanent in a node's boot file, but can't work: the node runs, the log has one error, and
%% `info/0' gives the reason. Other cases load OTP's module, or a module without a file, before this one.
-module(start_SUITE).

-include_lib("kernel/include/file.hrl").
-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [library_missing, library_noexec, library_of_another_machine, library_comes_back, module_missing, config_refused,
     otp_module_only, otp_module_first, cover_compiled, library_replaced].

%% Each test has a boot file, and a copy of the application in a folder whose name is not the application's.
init_per_testcase(Test, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Test)),
    Dir = filename:join(Folder, "traces"),
    ok = filelib:ensure_path(Dir),
    Built = filename:dirname(filename:dirname(code:which(dyntrace))),
    {0, _} = test_shell:run("cp -RL '~ts/ebin' '~ts/priv' '~ts'", [Built, Built, Dir]),
    [{folder, Folder}, {dir, Dir}, {boot, boot(Folder, Dir)} | Config].

end_per_testcase(_, _) -> ok.

%% OTP's runtime_tools, if installed, is before this application, and embedded mode loads its module first.
boot(Folder, Dir) ->
    Apps = [kernel, stdlib] ++ [runtime_tools || has_runtime_tools()] ++ [dyntrace],
    Ebin = filename:join(Dir, "ebin"),
    Rel = filename:join(Folder, "node"),
    Versions = [{App, version(App, Ebin)} || App <- Apps],
    ok = file:write_file(Rel ++ ".rel",
                         io_lib:format("~p.~n",
                                       [{release, {"node", "1"}, {erts, erlang:system_info(version)}, Versions}])),
    ok = systools:make_script(Rel, [local, {path, [Ebin]}, {outdir, Folder}]),
    Rel.

version(dyntrace, Ebin) -> version(filename:join(Ebin, "dyntrace.app"));
version(App, _) -> version(code:where_is_file(lists:concat([App, ".app"]))).

version(File) ->
    {ok, [{application, _, Keys}]} = file:consult(File),
    proplists:get_value(vsn, Keys).

has_runtime_tools() ->
    code:lib_dir(runtime_tools) =/= {error, bad_name}.

%% -- A start that cannot work ----------------------------------------------------------------

library_missing(Config) ->
    ok = file:delete(library(Config)),
    can_not_work(start(Config), [library(Config), "No such file"], Config).

library_noexec(Config) ->
    Mounts = os:cmd("unshare --mount sh -c 'mount -t tmpfs none /mnt && echo works' 2>&1"),
    test_require:tool(Mounts =/= "works\n" andalso "no namespace of mounts can be made here", []),
    Priv = filename:dirname(library(Config)),
    ok = file:rename(library(Config), filename:join(?config(folder, Config), "dyntrace.so")),
    Script = io_lib:format("mount -t tmpfs -o noexec none '~ts' && cp '~ts/dyntrace.so' '~ts' && exec erl \"$@\"",
                           [Priv, ?config(folder, Config), Priv]),
    Node = start(#{exec => {os:find_executable("unshare"), ["--mount", "sh", "-c", lists:flatten(Script), "sh"]}},
                 Config),
    can_not_work(Node, [library(Config), "failed to map segment", "noexec?"], Config).

library_of_another_machine(Config) ->
    CC = "aarch64-linux-gnu-gcc",
    test_require:tool(os:find_executable(CC) =:= false andalso CC ++ " is not installed", []),
    {0, _} = test_shell:run("~s -shared -o '~ts' -x c /dev/null", [CC, library(Config)]),
    can_not_work(start(Config), [library(Config), "built for another machine?"], Config).

%% OTP's module is loaded, or no module at all.
module_missing(Config) ->
    {0, _} = test_shell:run("cd '~ts' && rm ebin/dyntrace.beam priv/beam/dyntrace.beam", [?config(dir, Config)]),
    Node = start(Config),
    [Error] = errors(Node, Config),
    ?assertMatch({match, _}, re:run(Error, "^error dyntrace: no event will be traced: its module")),
    is_running(Node),
    test_node:stop(Node).

%% One error in the log has all Parts, and so has info/0. Nothing is traced, and no call raises an exception.
can_not_work(Node, Parts, Config) ->
    is_running(Node),
    [Error] = errors(Node, Config),
    #{backends := #{usdt := {missing, Why}, lttng := {missing, Why}}, library := undefined,
      following := off} = peer:call(Node, dyntrace, info, []),
    [?assertNotEqual(nomatch, string:find(Text, Part), Part)
     || Text <- [Error, unicode:characters_to_list(Why)], Part <- Parts],
    ?assertEqual({error, unicode:characters_to_list(Why)}, peer:call(Node, dyntrace, follow, [#{}])),
    ?assertEqual([Error], errors(Node, Config)),
    ?assertEqual(ok, peer:call(Node, dyntrace, unfollow, [])),
    ?assertEqual({ok, nonode@nohost},
                 {peer:call(Node, dyntrace_app, pause, []),
                  peer:call(Node, dyntrace, span, [name, fun erlang:node/0])}),
    test_node:stop(Node).

is_running(Node) ->
    ?assert(lists:keymember(dyntrace, 1, peer:call(Node, application, which_applications, []))),
    ?assertEqual(undefined, peer:call(Node, erlang, whereis, [dyntrace_autotracer])).

%% Once the cause is removed, it is enough to load the module and to follow.
library_comes_back(Config) ->
    ok = file:rename(library(Config), library(Config) ++ ".away"),
    Node = start(Config),
    is_running(Node),
    ok = file:rename(library(Config) ++ ".away", library(Config)),
    {module, dyntrace} = peer:call(Node, c, l, [dyntrace]),
    ?assertEqual(ok, peer:call(Node, dyntrace, follow, [#{}])),
    ?assertMatch(#{following := #{processes := []}}, peer:call(Node, dyntrace, info, [])),
    test_node:stop(Node).

%% Only the configuration prevents the start.
config_refused(Config) ->
    Node = start(#{args => ["-boot", "start_clean", "-pa", filename:join(?config(dir, Config), "ebin"), "-dyntrace",
                            "budget", "none"]}, Config),
    ?assertMatch({error, {dyntrace, {{bad_config, budget, none, _}, _}}},
                 peer:call(Node, application, ensure_all_started, [dyntrace])),
    test_node:stop(Node).

%% -- Other modules named dyntrace ------------------------------------------------------------------

%% README's first command fails with OTP's module, which the VM accepts as a tracer. The second command finds this
%% module behind OTP's on the code path, or reports that it is missing.
otp_module_only(Config) ->
    test_require:tool(not has_runtime_tools() andalso "erlang-runtime-tools is not installed", []),
    Without = start(#{args => ["-boot", "start_clean"]}, Config),
    ?assertError(undef, peer:call(Without, dyntrace, info, [])),
    ?assert(is_integer(peer:call(Without, erlang, trace, [new_processes, true, [send, {tracer, dyntrace, []}]]))),
    ?assertMatch({error, {dyntrace, {"no such file or directory", _}}},
                 peer:call(Without, application, ensure_all_started, [dyntrace])),
    test_node:stop(Without),
    Behind = start(#{args => ["-boot", "start_clean", "-pz", filename:join(?config(dir, Config), "ebin")]}, Config),
    ?assertError(undef, peer:call(Behind, dyntrace, info, [])),
    ?assertEqual({ok, [dyntrace]}, peer:call(Behind, application, ensure_all_started, [dyntrace])),
    works(Behind, Config),
    {module, dyntrace} = peer:call(Behind, c, l, [dyntrace]),
    works(Behind, Config),
    test_node:stop(Behind).

%% The library is found beside this module, regardless of the folder's name, and never in runtime_tools.
otp_module_first(Config) ->
    test_require:tool(not has_runtime_tools() andalso "erlang-runtime-tools is not installed", []),
    Node = start(Config),
    works(Node, Config),
    ?assertEqual([], errors(Node, Config)),
    ?assertMatch({match, _},
                 re:run(log(Node, Config),
                        "dyntrace: loaded .*/traces/ebin/dyntrace.beam in place of .*/runtime_tools-")),
    %% Reloads the module by its name, which is on the code path twice.
    {module, dyntrace} = peer:call(Node, c, l, [dyntrace]),
    works(Node, Config),
    test_node:stop(Node).

works(Node, Config) ->
    Library = library(Config),
    ?assertMatch(#{library := Library, backends := #{usdt := available}, following := #{}},
                 peer:call(Node, dyntrace, info, [])).

%% A tool has loaded modules of the application; these have no file.
cover_compiled(Config) ->
    Ebin = filename:join(?config(dir, Config), "ebin"),
    Node = start(#{args => ["-boot", "start_clean", "-pa", Ebin, "-pa", filename:dirname(code:which(cover))]}, Config),
    [{ok, Module} = peer:call(Node, cover, compile_beam, [filename:join(Ebin, atom_to_list(Module))])
     || Module <- [dyntrace, dyntrace_app, dyntrace_module]],
    ?assertEqual({ok, [dyntrace]}, peer:call(Node, application, ensure_all_started, [dyntrace])),
    works(Node, Config),
    %% The application does not replace the module that the tool uses for counting.
    ?assertEqual({file, cover_compiled}, peer:call(Node, code, is_loaded, [dyntrace])),
    test_node:stop(Node).

%% -- Rebuilt -------------------------------------------------------------------------------------

%% `make' replaces the library while a node runs: the path has a new file, which the node has not mapped. info/0 reports
%% that until the module is loaded again.
library_replaced(Config) ->
    Node = start(Config),
    works(Node, Config),
    [begin
         {0, _} = test_shell:run("cp '~ts' '~ts.new' && mv '~ts.new' '~ts'", lists:duplicate(4, library(Config))),
         ?assertNot(is_mapped(Node, Config)),
         #{backends := #{usdt := {missing, Why}}} = peer:call(Node, dyntrace, info, []),
         ?assertMatch({_, _}, binary:match(Why, <<"reload the module">>)),
         [begin
              {module, dyntrace} = peer:call(Node, c, l, [dyntrace]),
              works(Node, Config),
              ?assert(is_mapped(Node, Config))
          end || _ <- [once, again]]
     end || _ <- [first, second]],
    ?assertEqual(3, length(mapped(Node))),
    ok = file:delete(library(Config)),
    ?assertMatch(#{backends := #{usdt := {missing, _}}}, peer:call(Node, dyntrace, info, [])),
    test_node:stop(Node).

%% The node has mapped the file at the library's path.
is_mapped(Node, Config) ->
    {ok, #file_info{inode = Number}} = file:read_file_info(library(Config)),
    lists:member(Number, mapped(Node)).

%% The inodes of the mapped files with this name.
mapped(Node) ->
    {0, Lines} = test_shell:run("awk '/ r-xp .*\\/priv\\/dyntrace.so/ { print $5 }' /proc/~s/maps",
                                [test_node:os_pid(Node)]),
    [binary_to_integer(Number) || Number <- binary:split(Lines, <<"\n">>, [global, trim_all])].

%% -- Helpers -------------------------------------------------------------------------------------

start(Config) ->
    start(#{}, Config).

%% Starts a node with its own log: one line per event, beginning with the level.
start(Options, Config) ->
    Handler = {handler, default, logger_std_h, #{config => #{file => log_file(Config)},
                                                 formatter => {logger_formatter,
                                                               #{single_line => true,
                                                                 template => [level, " ", msg, "\n"]}}}},
    Args = maps:get(args, Options, ["-mode", "embedded", "-boot", ?config(boot, Config)]),
    test_node:start(Options#{paths => [],
                             args => Args ++ ["-kernel", "logger", lists:flatten(io_lib:format("~0p", [[Handler]]))]}).

log_file(Config) ->
    filename:join(?config(folder, Config), "log").

errors(Node, Config) ->
    [unicode:characters_to_list(Line)
     || Line = <<"error ", _/binary>> <- binary:split(log(Node, Config), <<"\n">>, [global])].

log(Node, Config) ->
    ok = peer:call(Node, logger_std_h, filesync, [default]),
    {ok, Log} = file:read_file(log_file(Config)),
    Log.

library(Config) ->
    filename:join([?config(dir, Config), "priv", "dyntrace.so"]).
