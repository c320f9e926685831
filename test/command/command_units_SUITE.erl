%% Units of the host command: the Python tests of test/command, one file per case. They run the package in this build's
%% priv. The most important ones test the boundary of root's trust: data read from containers.
-module(command_units_SUITE).

-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    %% The tests of processes and signals take a minute on an idle machine.
    [{timetrap, {minutes, 8}}].

all() ->
    [elf, sandbox, container, memory, files, bpftrace, request, recording_contents, process_end, profile, profile_page,
     program, functions, events, outputs, external_terms, node_address, load_folder, trigger_causes, trigger_levels,
     contents, lttng, execution, children, trees, mirror, archive, bpftrace_script, bpftrace_bounds, from_parser,
     all_files_run, event_groups, vm_memory, vm_structures, c_threads, snapshot_folders, recorder, stacks,
     process_stacks, mcp, metrics, otlp, compare].

%% Includes malicious libraries.
elf(_) -> passes("test_elf").
sandbox(_) -> passes("test_sandbox").
container(_) -> passes("test_container").
memory(_) -> passes("test_memory").
%% Includes hostile memory.
vm_memory(_) -> passes("test_vm_memory").
c_threads(_) -> passes("test_c_threads").
vm_structures(_) -> passes("test_vm_structures").
files(_) -> passes("test_files").
snapshot_folders(_) -> passes("test_snapshot_folders").
recorder(_) -> passes("test_recorder").
stacks(_) -> passes("test_stacks").
%% Includes hostile texts.
process_stacks(_) -> passes("test_process_stacks").
compare(_) -> passes("test_compare").
bpftrace(_) -> passes("test_bpftrace").
bpftrace_script(_) -> passes("test_bpftrace_script").
bpftrace_bounds(_) -> passes("test_bpftrace_bounds").
request(_) -> passes("test_request").
%% Tools and messages of the Model Context Protocol.
mcp(_) -> passes("test_mcp").
%% Includes a slow client of the HTTP server.
metrics(_) -> passes("test_metrics").
%% Includes collectors that refuse, and one that does not answer.
otlp(_) -> passes("test_otlp").
recording_contents(_) -> passes("test_recording_contents").
%% Includes malicious libraries.
process_end(_) -> passes("test_process_end").
profile(_) -> passes("test_profile").
profile_page(_) -> passes("test_profile_page").
program(_) -> passes("test_program").
functions(_) -> passes("test_functions").
events(_) -> passes("test_events").
external_terms(_) -> passes("test_external_terms").
node_address(_) -> passes("test_node_address").
load_folder(_) -> passes("test_load_folder").
trigger_causes(_) -> passes("test_trigger_causes").
trigger_levels(_) -> passes("test_trigger_levels").
contents(_) -> passes("test_contents").
outputs(_) -> passes("test_outputs").
lttng(_) -> passes("test_lttng").
%% Programs that print endlessly, or that belong to another user.
execution(_) -> passes("test_execution").
children(_) -> passes("test_children").
%% Folders that another user changes at the same time.
trees(_) -> passes("test_trees").
mirror(_) -> passes("test_mirror").
archive(_) -> passes("test_archive").
%% The man page and the completion.
from_parser(_) -> passes("test_from_parser").

%% Every file has a case.
all_files_run(_) ->
    Files = [filename:basename(File, ".py") || File <- filelib:wildcard(folder() ++ "/test_*.py")],
    Cases = ["test_" ++ atom_to_list(Case) || Case <- all(), Case =/= all_files_run, Case =/= event_groups],
    [] = (Files -- Cases) ++ (Cases -- Files),
    ok.

%% The command's groups are those of the catalogue.
event_groups(_) ->
    {0, Printed} = test_shell:run("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='~ts' python3 -c '~ts'",
                                  [test_command:package(),
                                   "from dyntrace_command.common.event_groups import GROUPS\n"
                                   "from dyntrace_command.recording.session import with_provider\n"
                                   "for group, events in GROUPS.items():\n"
                                   "    for event in with_provider(events):\n"
                                   "        print(group, event)"]),
    InGroups = [iolist_to_binary(io_lib:format("~s ~s:~s", [Group, Provider, Name]))
                || #{provider := Provider, name := Name, event_groups := Groups} <- dyntrace:probes(), Group <- Groups],
    ?assertEqual(lists:sort(InGroups), lists:sort(string:lexemes(Printed, "\n"))),
    %% LTTng records what is in a group.
    ?assertEqual([], [Name || #{name := Name, backends := Backends, event_groups := Groups} <- dyntrace:probes(),
                              lists:member(lttng, Backends) =/= (Groups =/= [])]).

%% The reason names the failed tests and has all output.
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
