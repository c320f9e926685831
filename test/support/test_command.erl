%% The host command, priv/bin/dyntrace, run as a user would run it.
%%
%%     {0, Output} = test_command:run(["nodes", "--json"]),
%%     Command = test_command:start(["record", OsPid]),
%%     ok = test_command:await("recording", Command),
%%     ok = test_command:signal("INT", Command),
%%     {0, Output} = test_command:finish(Command).
%%
%% Standard output and standard error are merged. A prefix precedes the command: `setpriv ...', `env ...'.
-module(test_command).

-export([path/0, package/0, run/1, run/2, start/1, start/2, launch/1, os_pid/1, await/2, type/2, signal/2, finish/1]).
-export([terminal/1, interrupted/1, as_nobody/1, copy_for_nobody/1, known_end/1, quoted/1, listed/0, listed/1,
         node_of/2]).

-define(DEADLINE_S, 120).

-record(command, {port, os_pid, owner}).

path() ->
    in_priv("bin/dyntrace").

%% The folder that the program imports its Python package from.
package() ->
    in_priv("python").

in_priv(Path) ->
    filename:join([filename:dirname(filename:dirname(code:which(dyntrace))), "priv", Path]).

%% {Exit status, Output}
run(Args) ->
    run("", Args).

run(Prefix, Args) ->
    finish(start(Prefix, Args)).

start(Args) ->
    start("", Args).

start(Prefix, Args) ->
    launch(lists:flatten([Prefix, " ", quoted(path()), [[" ", quoted(Arg)] || Arg <- Args]])).

os_pid(#command{os_pid = OsPid}) ->
    OsPid.

%% Runs the command on a new terminal; type/2 types on it.
terminal(Args) ->
    Command = lists:flatten([quoted(path()), [[" ", quoted(Arg)] || Arg <- Args]]),
    launch(lists:flatten(["script -qefc ", quoted("stty rows 30 cols 120; exec " ++ Command), " /dev/null"])).

%% Starts another command, a line for the shell. A separate process collects the output.
launch(Line) ->
    Owner = self(),
    Keeper = spawn_link(fun() -> keep(Line, Owner) end),
    receive {Keeper, OsPid} -> #command{port = Keeper, os_pid = OsPid, owner = Owner} end.

keep(Line, Owner) ->
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "exec " ++ Line]}, binary, exit_status,
                                                     stderr_to_stdout]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Owner ! {self(), OsPid},
    collect(Port, <<>>).

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> ended({Status, Output});
        {type, Keys} -> true = port_command(Port, Keys), collect(Port, Output);
        {ask, From} -> From ! {self(), running, Output}, collect(Port, Output)
    end.

ended({Status, Output}) ->
    receive
        {type, _} -> ended({Status, Output});
        {ask, From} -> From ! {self(), Status, Output}, ended({Status, Output});
        stop -> ok
    end.

ask(#command{port = Keeper}) ->
    Keeper ! {ask, self()},
    receive {Keeper, Status, Output} -> {Status, Output} end.

%% Interrupts the command by SIGINT and returns its output.
interrupted(Command) ->
    ok = signal("INT", Command),
    {0, Output} = finish(Command),
    Output.

%% Waits until the output matches.
await(Regex, Command) ->
    test_wait:until({"the command prints", Regex},
                    fun({_, Output}) -> re:run(Output, Regex, [unicode]) =/= nomatch end,
                    fun() ->
                            case ask(Command) of
                                {running, _} = Asked -> Asked;
                                {Status, Output} ->
                                    re:run(Output, Regex, [unicode]) =/= nomatch orelse error({ended, Status, Output}),
                                    {Status, Output}
                            end
                    end).

type(Keys, #command{port = Keeper}) ->
    Keeper ! {type, Keys},
    ok.

signal(Signal, #command{os_pid = OsPid}) ->
    {0, _} = test_shell:run("kill -~s ~b", [Signal, OsPid]),
    ok.

%% Waits until the command ends.
finish(Command = #command{port = Keeper}) ->
    test_wait:until("the command ends", fun({Status, _}) -> is_integer(Status) end, fun() -> ask(Command) end),
    Result = ask(Command),
    unlink(Keeper),
    Keeper ! stop,
    Result.

%% How a node ended, as far as the kernel says so.
known_end(How) ->
    case os:version() >= {6, 15, 0} of
        true -> How;
        false -> re:replace(How, "^(killed by \\w+|exited with status \\d+)", "the kernel does not say how",
                            [{return, list}])
    end.

%% The text, quoted for a shell.
quoted(Text) ->
    ["'", string:replace(unicode:characters_to_list(Text), "'", "'\\''", all), "'"].

%% The prefix of commands that run as an unprivileged user with this home folder.
as_nobody(Home) ->
    "setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=" ++ Home.

%% Copies the application into this home folder of the user. Returns the options of a node of the user with the copy.
copy_for_nobody(Home) ->
    App = filename:dirname(filename:dirname(code:which(dyntrace))),
    {0, _} = test_shell:run("mkdir -p -m 755 '~ts/dyntrace' && cp -RL '~ts/ebin' '~ts/priv' '~ts/dyntrace' && "
                            "chown -R nobody '~ts'", [Home, App, App, Home, Home]),
    Args = tl(string:lexemes(as_nobody(Home), " ")) ++ [os:find_executable("erl")],
    #{exec => {os:find_executable("setpriv"), Args}, paths => [Home ++ "/dyntrace/ebin"]}.

%% The output of `dyntrace nodes --json' about one node, or about all.
listed(OsPid) ->
    node_of(OsPid, listed()).

listed() ->
    {0, Json} = run(["nodes", "--json"]),
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-nodes-" ++ os:getpid()),
    ok = file:write_file(File, Json),
    #{<<"nodes">> := Listed} = test_viewer:decode(File),
    ok = file:delete(File),
    Listed.

node_of(OsPid, Listed) ->
    [Node] = [Node || #{<<"pid">> := Pid} = Node <- Listed, Pid =:= list_to_integer(OsPid)],
    Node.
