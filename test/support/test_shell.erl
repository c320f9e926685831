%% Runs shell commands.
-module(test_shell).

-export([run/2, said/1, os_pids/2, locked/2, project/0, version/0]).

-define(LOCK_MS, 120000).

%% {Exit status, Output}
-spec run(io:format(), [term()]) -> {non_neg_integer(), binary()}.
run(Format, Args) ->
    Command = unicode:characters_to_binary(io_lib:format(Format, Args)),
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Command]}, binary, exit_status, stderr_to_stdout]),
    wait(Port, []).

wait(Port, Output) ->
    receive
        {Port, {data, Data}} -> wait(Port, [Data | Output]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(lists:reverse(Output))}
    end.

%% The output of a program so far.
-spec said(port()) -> [binary()].
said(Port) ->
    receive {Port, {data, Data}} -> [Data | said(Port)]
    after 0 -> []
    end.

%% The pids of a program's processes that have this variable in their environment, "NAME=value".
-spec os_pids(Program :: string(), Variable :: string()) -> [string()].
os_pids(Program, Variable) ->
    {_, Found} = run("for p in $(pgrep -x '~ts'); do "
                     "tr '\\0' '\\n' < /proc/$p/environ | grep -qxF '~ts' && echo own:$p; done", [Program, Variable]),
    [OsPid || "own:" ++ OsPid <- string:lexemes(binary_to_list(Found), "\n")].

%% Runs Fun while another OS process holds the exclusive lock of a file.
-spec locked(file:filename(), fun(() -> Result)) -> Result.
locked(File, Fun) ->
    Port = open_port({spawn_executable, "/usr/bin/flock"},
                     [{args, [File, "sh", "-c", "echo locked; read line"]}, {line, 10}, exit_status]),
    receive {Port, {data, {eol, "locked"}}} -> ok after ?LOCK_MS -> error({not_locked, File}) end,
    try Fun()
    after
        true = port_command(Port, "\n"),
        receive {Port, {exit_status, 0}} -> ok after ?LOCK_MS -> error({still_locked, File}) end
    end.

%% The project's folder, derived from that of the build: _build/test/lib/dyntrace/ebin.
-spec project() -> file:filename().
project() ->
    filename:absname(filename:join(filename:dirname(code:which(dyntrace)), "../../../../..")).

%% The project's version.
-spec version() -> string().
version() ->
    {ok, [{application, dyntrace, Keys}]} = file:consult(filename:join(project(), "src/dyntrace.app.src")),
    proplists:get_value(vsn, Keys).
