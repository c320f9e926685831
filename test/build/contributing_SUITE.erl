%% Follows recipes of CONTRIBUTING.md in a copy of the project, with the code of their examples.
-module(contributing_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [sink, subcommand, script].

init_per_testcase(Case, Config) ->
    Missing = case Case of
                  sink -> fun test_viewer:missing/0;
                  script -> fun test_bpftrace:missing/0;
                  subcommand -> fun() -> false end
              end,
    _ = test_require:tool(Missing(), Config),
    %% Not in the suite's own folder, because bpftrace can't read a path with an @.
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["dyntrace-", Case, "-", os:getpid()])),
    ok = filelib:ensure_path(Folder),
    {0, _} = test_shell:run("cd '~ts' && cp -R c_src viewer src tools priv '~ts' && rm -rf '~ts/viewer/obj'",
                            [test_shell:project(), Folder, Folder]),
    [{folder, Folder} | Config].

end_per_testcase(_, Config) ->
    ok = file:del_dir_r(?config(folder, Config)).

%% The sink counts the messages that each process has sent.
sink(Config) ->
    [Row, Source] = examples("Add a sink"),
    edit("viewer/sinks.def", "#undef SINK\n", [Row, "#undef SINK\n"], Config),
    edit("tools/layers.awk", " viewer/dump\\n", " viewer/dump viewer/talkers\\n", Config),
    write("viewer/talkers/sink.c", Source, Config),
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

%% -- Helpers -------------------------------------------------------------------------------

%% The blocks of code in a recipe, which are indented because they belong to the steps of a list.
examples(Title) ->
    {ok, Page} = file:read_file(filename:join(test_shell:project(), "CONTRIBUTING.md")),
    [_, Section] = binary:split(Page, iolist_to_binary(["\n## ", Title, "\n"])),
    [Recipe | _] = binary:split(Section, <<"\n## ">>),
    {match, Blocks} = re:run(Recipe, "^   ```\\w+\n(.*?)^   ```$",
                             [global, multiline, dotall, {capture, all_but_first, binary}]),
    [re:replace(Block, "^   ", "", [global, multiline, {return, binary}]) || [Block] <- Blocks].

write(Name, Text, Config) ->
    File = filename:join(?config(folder, Config), Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Text).

%% Replaces a text that the file has once.
edit(Name, Old, New, Config) ->
    {ok, Text} = file:read_file(filename:join(?config(folder, Config), Name)),
    [Before, After] = binary:split(Text, iolist_to_binary(Old), [global]),
    write(Name, [Before, New, After], Config).

run(Command, Config) ->
    test_shell:run("cd '~ts' && { ~ts; } 2>&1", [?config(folder, Config), Command]).

lines(Output) ->
    binary:split(Output, <<"\n">>, [global, trim_all]).
