%% A stock Erlang node to trace. It runs beside the test's own node and is controlled through its standard input and
%% output, so that its crash does not end the test run.
-module(test_node).

-export([start/0, start/1, stop/1, os_pid/1, cpu_ticks/1, call/2, call/3, is_ours/1, test_paths/0]).
%% On the node.
-export([started/1]).
-export([start_epmd/0, stop_epmd/1, with_epmd/1, free_port/0, named/2, named/3, nameless/1]).

-define(DEADLINE, 180000).

start() ->
    start(#{}).

%% Options are those of peer:start/1, and `paths`: the code path in place of this build's.
start(Options = #{}) ->
    Ours = [Path || Path <- code:get_path(), is_ours(Path)],
    Paths = lists:append([["-pa", Path] || Path <- maps:get(paths, Options, Ours)]),
    {ok, Node, _} =
        peer:start(maps:merge(maps:remove(paths, Options), #{connection => standard_io, wait_boot => ?DEADLINE,
                                         env => [{"ERL_CRASH_DUMP_SECONDS",
                                                  "0"} | preloaded(maps:get(env, Options, []))],
                                         args => Paths ++ maps:get(args, Options, [])})),
    ok = test_leftovers:started(Node),
    Node.

%% Preloads the runtime that a library built with sanitizers requires, before other libraries. Programs that tests start
%% run without it.
preloaded(Env) ->
    case os:getenv("DYNTRACE_PRELOAD") of
        false -> Env;
        Sanitizers -> lists:keystore("LD_PRELOAD", 1, Env,
                                     {"LD_PRELOAD", Sanitizers ++ " " ++ proplists:get_value("LD_PRELOAD", Env, "")})
    end.

%% The node gets this build's folders; its own OTP is already on its path.
is_ours(Path) ->
    not lists:prefix(code:lib_dir(), Path) andalso filelib:is_dir(Path).

%% The folders of the suites and of the helpers.
test_paths() ->
    Tests = filename:dirname(filename:dirname(code:which(?MODULE))),
    [Folder || Folder <- filelib:wildcard(filename:join(Tests, "*")), filelib:is_dir(Folder)].

stop(Node) ->
    peer:stop(Node).

os_pid(Node) ->
    peer:call(Node, os, getpid, []).

%% Runs Fun on the node.
call(Node, Fun) ->
    call(Node, Fun, ?DEADLINE).

call(Node, Fun, Deadline) ->
    peer:call(Node, erlang, apply, [Fun, []], Deadline).

%% Starts the application with these options, and keeps its log off the terminal.
started(Env) ->
    _ = logger:remove_handler(default),
    _ = application:load(dyntrace),
    [ok = application:set_env(dyntrace, Key, Value) || {Key, Value} <- Env],
    {ok, _} = application:ensure_all_started(dyntrace),
    ok.

%% The CPU time of an OS process, in the kernel's ticks of 10 ms. The fields come after the process's name, which may
%% contain blanks.
cpu_ticks(OsPid) ->
    {ok, Stat} = file:read_file("/proc/" ++ OsPid ++ "/stat"),
    [_, Fields] = string:split(Stat, ")", trailing),
    lists:sum([binary_to_integer(lists:nth(N, string:lexemes(Fields, " "))) || N <- [12, 13]]).

%% Connected nodes require names and an epmd. They use a separate epmd, not the machine's, which ends with the test.
start_epmd() ->
    Number = integer_to_list(free_port()),
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "epmd -d -port " ++ Number ++ " -address 127.0.0.1 & read end; kill $!"]},
                      stderr_to_stdout]),
    %% epmd's first output says that it runs.
    receive {Port, {data, _}} -> {Number, Port} end.

stop_epmd({_, Port}) ->
    true = port_close(Port).

free_port() ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listen),
    ok = gen_tcp:close(Listen),
    Number.

with_epmd(Fun) ->
    Epmd = start_epmd(),
    try Fun(Epmd)
    after stop_epmd(Epmd)
    end.

named(Name, Epmd) ->
    named(Name, Epmd, []).

%% A named node with further arguments of erl.
named(Name, Epmd, Args) ->
    near(Epmd, ["-name", Name ++ "@127.0.0.1" | Args]).

%% A node without a name, which can start its distribution itself.
nameless(Epmd) ->
    near(Epmd, []).

near({EpmdNumber, _}, Args) ->
    start(#{env => [{"ERL_EPMD_PORT", EpmdNumber}], args => ["-start_epmd", "false", "-setcookie", "dyntrace" | Args]}).
