%% Follows recipes of CONTRIBUTING.md in a copy of the project, with the code of their examples.
-module(contributing_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 8}}].

all() ->
    [probe, sink, subcommand, script].

init_per_testcase(Case, Config) ->
    Missing = case Case of
                  probe -> fun() -> test_require:first([fun test_lttng:missing/0, fun test_viewer:missing/0]) end;
                  sink -> fun test_viewer:missing/0;
                  script -> fun test_bpftrace:missing/0;
                  subcommand -> fun() -> false end
              end,
    _ = test_require:tool(Missing(), Config),
    %% Not in the suite's own folder, because bpftrace can't read a path with an @.
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["dyntrace-", Case, "-", os:getpid()])),
    {0, _} = case Case of
                 probe ->
                     test_shell:run("'~ts/tools/copy' '~ts'", [test_shell:project(), Folder]);
                 _ ->
                     ok = filelib:ensure_path(Folder),
                     test_shell:run("cd '~ts' && cp -R c_src viewer src tools priv '~ts' && rm -rf '~ts/viewer/obj'",
                                    [test_shell:project(), Folder, Folder])
             end,
    [{folder, Folder} | Config].

end_per_testcase(_, Config) ->
    ok = file:del_dir_r(?config(folder, Config)).

%% Both probes are in the catalogue, are recorded by `dyntrace record', and are shown with their fields.
probe(Config) ->
    [Traced, Route, Decoder, _Test, Observed, Source, Row] = examples("Add a probe"),
    Catalogue = "/* clang-format on */\n",
    edit("c_src/catalogue/probes.def", Catalogue, [Traced, "\n", Observed, "\n", Catalogue], Config),
    edit("c_src/sources/routes.def", "\nGROUP(procs)\n", ["\nGROUP(procs)\n", Route], Config),
    edit("src/sources/dyntrace_sources.erl", "modules() ->\n    #{", ["modules() ->\n    #{", Row], Config),
    write("src/sources/dyntrace_atoms.erl", Source, Config),
    Decoders = "c_src/sources/decode.c",
    write(Decoders, [contents(in_copy(Decoders, Config)), "\n", Decoder], Config),
    {0, _} = run("make -j4 CFLAGS=-O0 docs", Config),
    Recording = in_copy("recording", Config),
    Expected = [{<<"process_started">>, _, Started}, {<<"atoms_grown">>, null, _}] = recorded(Recording, Config),
    #{<<"others">> := Rows} = test_viewer:decode(viewed(".json", Recording, Config)),
    Seen = [{Event, process(Process), Fields}
            || #{<<"event">> := Event, <<"process">> := Process, <<"fields">> := Fields} <- Rows],
    ?assertEqual([], Expected -- Seen),
    Page = contents(viewed(".html", Recording, Config)),
    [?assertMatch({_, _}, binary:match(Page, in_page(Text)), Text)
     || {Event, _, Fields} <- Expected, Text <- [Event, Fields]],
    Trace = contents(viewed(".pftrace", Recording, Config)),
    [?assertMatch({_, _}, binary:match(Trace, Text), Text)
     || Text <- [<<"process_started">>, lists:last(binary:split(Started, <<"call: ">>)), <<"atoms_grown">>]],
    {0, Report} = test_command:run(of_copy(Config), ["view", Recording]),
    ?assertMatch({match, _}, re:run(Report, "^Other events.*\n.*\n( .*\n)*? .*process_started ", [multiline])).

%% The sink counts the messages that each process has sent.
sink(Config) ->
    [Row, Source] = examples("Add a sink"),
    edit("viewer/sinks.def", "#undef SINK\n", [Row, "#undef SINK\n"], Config),
    edit("tools/layers.awk", " viewer/dump\\n", " viewer/dump viewer/talkers\\n", Config),
    write("viewer/talkers/talkers_sink.c", Source, Config),
    ?assertEqual({0, <<>>}, run("tools/includes .", Config)),
    {0, _} = run("make -C viewer", Config),
    Send = fun(Ns, From) -> {Ns, message_send, #{from => From, to => "<0.9.0>", message => "hello"}} end,
    Recording = test_viewer:make([Send(10, "<0.1.0>"), Send(20, "<0.2.0>"), Send(30, "<0.1.0>")], Config),
    {0, Counts} = run(["babeltrace2 --plugin-path=priv/babeltrace2 '", Recording,
                       "' --component=sink.dyntrace.talkers 2>/dev/null"], Config),
    ?assertEqual([<<"0 <0.9.0>">>, <<"1 <0.2.0>">>, <<"2 <0.1.0>">>], lists:sort(lines(Counts))).

%% The subcommand prints when the process of a node was started, as the kernel counts.
subcommand(Config) ->
    [Module, Row] = examples("Add a subcommand"),
    Package = "priv/python/dyntrace_command/",
    write(Package ++ "commands/uptime.py", Module, Config),
    edit(Package ++ "cli/subcommands.py", "\nSUBCOMMANDS = {\n", ["\nSUBCOMMANDS = {\n", Row], Config),
    ?assertEqual({0, <<>>}, run(["tools/imports ", Package], Config)),
    {0, Help} = run("priv/bin/dyntrace --help", Config),
    ?assertMatch({match, _}, re:run(Help, "^    uptime +print when", [multiline])),
    Node = test_node:start(),
    OsPid = test_node:os_pid(Node),
    #{} = test_node:call(Node, fun dyntrace:info/0),
    {ok, Stat} = file:read_file(["/proc/", OsPid, "/stat"]),
    %% The first word after the program's name is the third field of proc(5); the start is the 22nd.
    Began = lists:nth(20, string:lexemes(lists:last(binary:split(Stat, <<") ">>, [global])), " ")),
    Printed = run(["priv/bin/dyntrace uptime ", OsPid], Config),
    test_node:stop(Node),
    ?assertEqual({0, iolist_to_binary(["nonode@nohost (", OsPid, "): ", Began, "\n"])}, Printed).

%% The script counts exits. It is listed, and prints its usage, as tools_SUITE demands of each script.
script(Config) ->
    [Script] = examples("Add a script"),
    write("priv/bpftrace/deaths.bt", Script, Config),
    {0, Listed} = run("priv/bin/dyntrace run", Config),
    ?assertMatch({match, _}, re:run(Listed, "^deaths +\\w.*reason", [multiline])),
    {Status, Usage} = run("cd priv/bpftrace && bpftrace deaths.bt", Config),
    ?assertMatch({true, {match, _}}, {Status =/= 0, re:run(Usage, "usage: bpftrace deaths\\.bt LIBRARY")}),
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    Consumer = test_bpftrace:start_file(filename:join(?config(folder, Config), "priv/bpftrace/deaths.bt"), [Library]),
    _ = test_node:call(Node, fun() ->
                                     [test_cases:traced_pid([procs], fun() -> exit(Reason) end, [])
                                      || Reason <- [normal, normal, {shutdown, timeout}]]
                             end),
    Lines = test_bpftrace:stop_script(Consumer),
    test_node:stop(Node),
    [?assert(lists:member(Line, Lines), {Line, Lines})
     || Line <- [<<"@exits[normal]: 2">>, <<"@exits[{shutdown,timeout}]: 1">>]].

%% -- The recorded probes ------------------------------------------------------------------

%% Records a node that uses the copy. Returns what a report must have: event, process, fields.
recorded(Recording, Config) ->
    Node = test_node:start(#{paths => [in_copy("_build/default/lib/dyntrace/ebin", Config) | test_node:test_paths()]}),
    try
        ok = test_node:call(Node, fun() -> test_node:started([]) end),
        Groups = test_node:call(Node, fun() -> maps:from_list([{Name, Of} || #{name := Name, event_groups := Of}
                                                                                 <- dyntrace:probes()]) end),
        ?assertMatch(#{process_started := [lives], atoms_grown := [vm]}, Groups),
        Command = test_command:start(of_copy(Config), ["record", test_node:os_pid(Node), "-o", Recording]),
        ok = test_command:await("  lost 0 events", Command),
        ok = test_wait:until("the application follows the recording", fun() -> test_node:call(Node, fun follows/0) end),
        Expected = test_node:call(Node, fun happen/0),
        _ = test_command:interrupted(Command),
        Expected
    after
        test_node:stop(Node)
    end.

follows() ->
    case maps:get(following, dyntrace:info()) of
        #{processes := Flags, sources := Sources} -> lists:member(procs, Flags) andalso lists:member(atoms, Sources);
        off -> false
    end.

happen() ->
    Pid = pid_to_list(spawn(lists, seq, [1, 2])),
    Before = atoms(),
    _ = [list_to_atom("contributed_" ++ integer_to_list(N)) || N <- lists:seq(1, 1000)],
    ok = test_wait:until("the source has reported", fun() -> atoms() > Before end),
    [{<<"process_started">>, list_to_binary(Pid),
      iolist_to_binary(["pid: ", Pid, ", parent: ", pid_to_list(self()), ", call: {lists,seq,[1,2]}"])},
     {<<"atoms_grown">>, null, iolist_to_binary(["count: ", integer_to_list(atoms())])}].

%% The state of the source: the number of atoms that it has reported last.
atoms() ->
    [Count] = [Count || {sources, #{atoms := {on, Count}}, _, _} <- tuple_to_list(sys:get_state(dyntrace_autotracer))],
    Count.

viewed(Extension, Recording, Config) ->
    File = Recording ++ Extension,
    {0, _} = test_command:run(of_copy(Config), ["view", Recording, "-o", File]),
    File.

%% A text as the page's JSON has it.
in_page(Text) ->
    lists:foldl(fun({Char, Escaped}, Before) -> binary:replace(Before, Char, Escaped, [global]) end, Text,
                [{<<"<">>, <<"\\u003c">>}, {<<">">>, <<"\\u003e">>}]).

%% A prefix that runs the copy's command instead of this build's.
of_copy(Config) ->
    ["sh -c ", test_command:quoted(["shift; exec '", in_copy("priv/bin/dyntrace", Config), "' \"$@\""]), " sh"].

process(null) -> null;
process(#{<<"pid">> := Pid}) -> Pid.

%% -- Helpers -------------------------------------------------------------------------------

%% The blocks of code in a recipe, which are indented because they belong to the steps of a list.
examples(Title) ->
    Page = contents(filename:join(test_shell:project(), "CONTRIBUTING.md")),
    [_, Section] = binary:split(Page, iolist_to_binary(["\n## ", Title, "\n"])),
    [Recipe | _] = binary:split(Section, <<"\n## ">>),
    {match, Blocks} = re:run(Recipe, "^   ```\\w+\n(.*?)^   ```$",
                             [global, multiline, dotall, {capture, all_but_first, binary}]),
    [re:replace(Block, "^   ", "", [global, multiline, {return, binary}]) || [Block] <- Blocks].

in_copy(Name, Config) ->
    filename:join(?config(folder, Config), Name).

contents(File) ->
    {ok, Contents} = file:read_file(File),
    Contents.

write(Name, Text, Config) ->
    File = in_copy(Name, Config),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text).

%% Replaces a text that the file has once.
edit(Name, Old, New, Config) ->
    [Before, After] = binary:split(contents(in_copy(Name, Config)), iolist_to_binary(Old), [global]),
    write(Name, [Before, New, After], Config).

run(Command, Config) ->
    test_shell:run("cd '~ts' && { ~ts; } 2>&1", [?config(folder, Config), Command]).

lines(Output) ->
    binary:split(Output, <<"\n">>, [global, trim_all]).
