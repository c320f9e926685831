%% The recipe `Add a probe' of CONTRIBUTING.md, followed as it is written, in a copy of the project.
-module(contributing_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 8}}].

all() ->
    [add_a_probe].

init_per_suite(Config) ->
    test_require:tool(test_require:first([fun test_lttng:missing/0, fun test_viewer:missing/0]), Config).

end_per_suite(_) ->
    ok.

%% Both probes are in the catalogue, recorded by `dyntrace record', and shown with their fields.
add_a_probe(Config) ->
    Copy = filename:join(?config(priv_dir, Config), "project"),
    {0, _} = test_shell:run("'~ts/tools/copy' '~ts'", [test_shell:project(), Copy]),
    ok = follow_recipe(blocks("Add a probe"), Copy),
    {0, _} = test_shell:run("cd '~ts' && make -j4 docs 2>&1", [Copy]),
    Recording = filename:join(?config(priv_dir, Config), "recording"),
    Expected = [{<<"process_started">>, _, Started}, {<<"atoms_grown">>, null, _}] = recorded(Copy, Recording),
    #{<<"others">> := Rows} = test_viewer:decode(viewed(".json", Recording, Copy)),
    Seen = [{Event, process(Process), Fields}
            || #{<<"event">> := Event, <<"process">> := Process, <<"fields">> := Fields} <- Rows],
    ?assertEqual([], Expected -- Seen),
    Page = contents(viewed(".html", Recording, Copy)),
    [?assertMatch({_, _}, binary:match(Page, in_page(Text)), Text)
     || {Event, _, Fields} <- Expected, Text <- [Event, Fields]],
    Trace = contents(viewed(".pftrace", Recording, Copy)),
    [?assertMatch({_, _}, binary:match(Trace, Text), Text)
     || Text <- [<<"process_started">>, lists:last(binary:split(Started, <<"call: ">>)), <<"atoms_grown">>]],
    {0, Report} = test_command:run(of_copy(Copy), ["view", Recording]),
    ?assertMatch({match, _}, re:run(Report, "^Other events.*\n.*\n( .*\n)*? .*process_started ", [multiline])).

%% The code blocks of a recipe, without their indentation.
blocks(Title) ->
    {ok, Text} = file:read_file(filename:join(test_shell:project(), "CONTRIBUTING.md")),
    [_, Begun] = binary:split(Text, iolist_to_binary(["\n## ", Title, "\n"])),
    [Recipe | _] = binary:split(Begun, <<"\n## ">>),
    {match, Blocks} = re:run(Recipe, "^   ```(?:c|erlang)\n(.*?)^   ```$",
                             [global, multiline, dotall, {capture, all_but_first, binary}]),
    [re:replace(Block, "^   ", "", [global, multiline, {return, binary}]) || [Block] <- Blocks].

follow_recipe([Traced, Route, Decoder, _Test, Observed, Source, Row], Copy) ->
    add([Traced, "\n", Observed, "\n"], before, "/* clang-format on */\n", "c_src/catalogue/probes.def", Copy),
    add(Route, behind, "\nGROUP(procs)\n", "c_src/sources/routes.def", Copy),
    add(["\n", Decoder], behind, "", "c_src/sources/decode.c", Copy),
    add(Row, behind, "modules() ->\n    #{", "src/sources/dyntrace_sources.erl", Copy),
    ok = file:write_file(filename:join(Copy, "src/sources/dyntrace_atoms.erl"), Source).

%% Adds the text before or behind a place that occurs once; behind "" is the end of the file.
add(Text, Where, Place, Name, Copy) ->
    File = filename:join(Copy, Name),
    [Head, Tail] = case Place of
                       "" -> [contents(File), <<>>];
                       _ -> binary:split(contents(File), list_to_binary(Place), [global])
                   end,
    ok = file:write_file(File, case Where of
                                   before -> [Head, Text, Place, Tail];
                                   behind -> [Head, Place, Text, Tail]
                               end).

%% Records a node that uses the copy. Returns what a report must have: event, process, fields.
recorded(Copy, Recording) ->
    Node = test_node:start(#{paths => [filename:join(Copy, "_build/default/lib/dyntrace/ebin")
                                       | test_node:test_paths()]}),
    try
        ok = test_node:call(Node, fun() -> test_node:started([]) end),
        Groups = test_node:call(Node, fun() -> maps:from_list([{Name, Of} || #{name := Name, event_groups := Of}
                                                                                 <- dyntrace:probes()]) end),
        ?assertMatch(#{process_started := [lives], atoms_grown := [vm]}, Groups),
        Command = test_command:start(of_copy(Copy), ["record", test_node:os_pid(Node), "-o", Recording]),
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

viewed(Extension, Recording, Copy) ->
    File = Recording ++ Extension,
    {0, _} = test_command:run(of_copy(Copy), ["view", Recording, "-o", File]),
    File.

%% A text as the page's JSON has it.
in_page(Text) ->
    lists:foldl(fun({Char, Escaped}, Before) -> binary:replace(Before, Char, Escaped, [global]) end, Text,
                [{<<"<">>, <<"\\u003c">>}, {<<">">>, <<"\\u003e">>}]).

%% A prefix that runs the copy's command instead of this build's.
of_copy(Copy) ->
    ["sh -c ", test_command:quoted(["shift; exec '", Copy, "/priv/bin/dyntrace' \"$@\""]), " sh"].

process(null) -> null;
process(#{<<"pid">> := Pid}) -> Pid.

contents(File) ->
    {ok, Contents} = file:read_file(File),
    Contents.
