%% Units of the host's command: the Python tests of test/command, each file as a case. They run the package in this
%% build's priv. First of all the boundary of root's trust: what is read of containers.
-module(command_units_SUITE).

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [elf, container, files, bpftrace, request, examined, program, all_files_run].

%% Those of libraries that somebody made who means ill.
elf(_) ->
    passes("test_elf").

container(_) ->
    passes("test_container").

files(_) ->
    passes("test_files").

bpftrace(_) ->
    passes("test_bpftrace").

request(_) ->
    passes("test_request").

examined(_) ->
    passes("test_examined").

program(_) ->
    passes("test_program").

%% No file is without a case.
all_files_run(_) ->
    Files = [filename:basename(File, ".py") || File <- filelib:wildcard(folder() ++ "/test_*.py")],
    Cases = ["test_" ++ atom_to_list(Case) || Case <- all(), Case =/= all_files_run],
    [] = (Files -- Cases) ++ (Cases -- Files),
    ok.

%% The failed tests are named in the reason, with all output.
passes(Module) ->
    case test_shell:run("cd '~ts' && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='~ts' python3 -m unittest ~s 2>&1",
                        [folder(), test_command:package(), Module]) of
        {0, Output} ->
            ct:log("~ts", [Output]);
        {_, Output} ->
            Failed = [Line || Line <- binary:split(Output, <<"\n">>, [global]),
                              re:run(Line, "^(?:FAIL|ERROR): ") =/= nomatch],
            ct:fail("~ts~n~n~ts", [lists:join("\n", Failed), Output])
    end.

folder() ->
    filename:join(test_shell:project(), "test/command").
