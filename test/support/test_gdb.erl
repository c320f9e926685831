%% gdb as a consumer: it reads every argument of a probe, and attaches to a thousand probes at once.
%%
%%     Lines = test_gdb:trace(OsPid, [{erlang, user_trace__n17, "%ld %s", ["$_probe_arg2", "(char*)$_probe_arg6"]}],
%%                          fun() -> ...what fires them... end).
%%
%% Returns one line per hit, in order, as binaries: the probe's name and the formatted text.
-module(test_gdb).

-export([missing/0, trace/3]).

-define(DEADLINE_MS, 120000).

%% Why gdb can't be used here, or false.
missing() ->
    os:find_executable("gdb") =:= false andalso "gdb is not installed".

%% Calls Fun when gdb is attached. Fun must fire the last probe once, as its last event.
trace(OsPid, Probes, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-" ++ os:getpid() ++ ".gdb"),
    {_, Last, _, _} = lists:last(Probes),
    ok = file:write_file(File, ["set pagination off\n", "handle all nostop noprint pass\n",
                                [breakpoint(Probe) || Probe <- Probes], "printf \"@attached\\n\"\n", "continue\n"]),
    Port = open_port({spawn_executable, os:find_executable("gdb")},
                     [{args, ["-q", "-nx", "-batch", "-p", OsPid, "-x", File]}, {line, 8192}, binary, exit_status,
                      stderr_to_stdout]),
    {os_pid, Gdb} = erlang:port_info(Port, os_pid),
    try
        _ = lines(Port, <<"attached">>, []),
        {Pid, Ref} = spawn_monitor(Fun),
        Lines = lines(Port, atom_to_binary(Last), []),
        receive {'DOWN', Ref, process, Pid, normal} -> ok end,
        Lines
    after
        _ = test_shell:run("kill -INT ~b", [Gdb]),
        exited(Port),
        ok = file:delete(File)
    end.

breakpoint({Provider, Probe, Format, Args}) ->
    io_lib:format("break -probe-stap ~s:~s\ncommands\nsilent\nprintf \"@~s ~s\\n\"~s\ncontinue\nend\n",
                  [Provider, Probe, Probe, Format, [[", ", Arg] || Arg <- Args]]).

%% Lines up to the first one of this probe.
lines(Port, Last, Lines) ->
    receive
        {Port, {data, {eol, <<"@", Line/binary>>}}} ->
            case binary:split(Line, <<" ">>) of
                [Last | _] -> lists:reverse([Line | Lines]);
                _ -> lines(Port, Last, [Line | Lines])
            end;
        {Port, {data, _}} -> lines(Port, Last, Lines);
        {Port, {exit_status, Status}} -> error({gdb_ended, Status, lists:reverse(Lines)})
    after ?DEADLINE_MS -> error({no_line, Last, lists:reverse(Lines)})
    end.

exited(Port) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, _} -> exited(Port)
    after ?DEADLINE_MS -> error(gdb_does_not_end)
    end.
