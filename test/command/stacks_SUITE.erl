%% `dyntrace stacks': the stacks of nodes that hang, without their help and without dyntrace in them.
-module(stacks_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [fifo, nif, deadlock, suspended, stopped_node, reloading, running, held_up, one_process, lines, not_found].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    _ = test_require:tool(test_require:first([NotRoot, fun no_jit/0]), Config),
    Config.

end_per_suite(_) -> ok.

no_jit() ->
    erlang:system_info(emu_flavor) =/= jit andalso "no JIT".

init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

end_per_testcase(_, _) -> ok.

%% All dirty I/O schedulers wait in the kernel, and a request that needs one waits in the queue.
fifo(Config) ->
    Path = filename:join(?config(folder, Config), "fifo"),
    {0, _} = test_shell:run("mkfifo '~ts'", [Path]),
    Node = started(["+SDio", "10"]),
    _ = test_node:call(Node, fun() -> test_stuck_system:fifo(Path, 10) end),
    test_wait:until(blocked, 10, fun() -> length([One || #{<<"stays">> := true} = One <- dirty(Node)]) end),
    [begin
         ?assertMatch(#{<<"stays">> := true, <<"queue">> := 0}, One),
         ?assertMatch({match, _}, re:run(maps:get(<<"waits_in">>, One), "fifo|wait_for_partner|pipe")),
         ?assertEqual([<<"prim_file:open_nif/2">>, <<"prim_file:open/2">>], lists:sublist(functions(One), 2)),
         ?assert(lists:member(<<"test_stuck_system:opened/1">>, functions(One)))
     end || One <- dirty(Node)],
    %% The eleventh job waits for a scheduler.
    _ = test_node:call(Node, fun() -> test_stuck_system:fifo(Path, 1), ok end),
    test_wait:until(queued, [1], fun() -> lists:usort([maps:get(<<"queue">>, One) || One <- dirty(Node)]) end),
    {0, _} = test_shell:run("kill -9 ~s", [test_node:os_pid(Node)]),
    ended(Node).

%% The node answers no request until the NIFs return.
nif(Config) ->
    Library = test_stuck_nif:build(?config(folder, Config)),
    Node = started(["+S", "1"]),
    OsPid = test_node:os_pid(Node),
    _ = test_node:call(Node, fun() -> test_stuck_system:nif(Library, 600000), ok end),
    test_wait:until(stuck, [true],
                    fun() -> [maps:get(<<"stays">>, One) || One <- schedulers_of(OsPid, <<"scheduler">>)] end),
    [?assertMatch([<<"test_stuck_nif:hang/1">>, <<"test_stuck_system:stuck/1">> | _], functions(One))
     || One <- schedulers_of(OsPid, <<"scheduler">>)],
    {0, Output} = test_command:run(["stacks", OsPid]),
    printed("^scheduler 1, run queue \\d+: <[0-9.]+>, waits in the kernel \\(\\w*nanosleep\\w*\\), in the same call "
            "for at least \\d+.\\d\\d s\n    test_stuck_nif:hang/1\n"
            "    test_stuck_system:stuck/1  test_stuck_system.erl:\\d+$", Output),
    {0, _} = test_shell:run("kill -9 ~s", [OsPid]),
    ended(Node).

%% Both servers wait in the same call below their own function: one group.
deadlock(_) ->
    Node = started([]),
    ok = test_node:call(Node, fun test_stuck_system:deadlock/0),
    [Group] = deadlocked(Node),
    ?assertMatch(#{<<"status">> := <<"waiting">>, <<"count">> := 2, <<"queue">> := 2, <<"longest">> := 1,
                   <<"consistent">> := true}, Group),
    ?assertEqual([<<"stuck_cart">>, <<"stuck_stock">>], lists:sort(maps:get(<<"names">>, Group))),
    Servers = [#{<<"pid">> => list_to_binary(Pid), <<"name">> => atom_to_binary(Name), <<"count">> => 1}
               || Name <- [stuck_cart, stuck_stock],
                  Pid <- [test_node:call(Node, fun() -> pid_to_list(whereis(Name)) end)]],
    ?assertEqual(Servers, lists:sort(fun(#{<<"name">> := A}, #{<<"name">> := B}) -> A < B end,
                                     maps:get(<<"servers">>, Group))),
    ?assertMatch([<<"gen:do_call/4">>, <<"gen_server:call/3">>, <<"test_stuck_system:handle_cast/2">> | _],
                 functions(Group)),
    ?assertEqual(<<"proc_lib:init_p_do_apply/3">>, lists:last(functions(Group))),
    %% The line of the call.
    [#{<<"file">> := File, <<"line">> := Line}] =
        [Frame || Frame = #{<<"function">> := <<"test_stuck_system:handle_cast/2">>} <- maps:get(<<"frames">>, Group)],
    ?assertEqual(<<"test_stuck_system.erl">>, filename:basename(File)),
    ?assertEqual("    ok = gen_server:call(Other, asked, infinity),", source_line(Line)),
    test_node:stop(Node).

suspended(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_stuck_system:suspended/0),
    Suspended = fun() -> groups(Node, "test_stuck_system:queued/0", 1) end,
    test_wait:until(suspended, fun(Groups) -> [S || #{<<"status">> := S} <- Groups] =:= [<<"suspended">>] end,
                    Suspended),
    [Group] = Suspended(),
    ?assertMatch(#{<<"queue">> := 3, <<"names">> := [<<"stuck_suspended">>]}, Group),
    test_node:stop(Node).

%% A node that a signal has stopped is read all the same.
stopped_node(_) ->
    Node = started([]),
    ok = test_node:call(Node, fun test_stuck_system:deadlock/0),
    OsPid = test_node:os_pid(Node),
    {0, _} = test_shell:run("kill -STOP ~s", [OsPid]),
    {0, Output} = test_command:run(["stacks", OsPid]),
    {0, _} = test_shell:run("kill -CONT ~s", [OsPid]),
    printed("^stacks of .*: \\d+ processes$", Output),
    printed("^\\d+ waiting: .*\n    gen_server:loop/\\d  gen_server.erl:\\d+\n"
            "    proc_lib:init_p_do_apply/3  proc_lib.erl:\\d+$", Output),
    test_node:stop(Node).

%% The list of code changes all the time; all other stacks remain whole and named.
reloading(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun() -> test_stuck_system:reloading(), ok end),
    _ = test_node:call(Node, fun test_stuck_system:deadlock/0),
    _ = deadlocked(Node),
    [begin
         Groups = all_groups(Node),
         %% Purging makes each process runnable for a moment, so the two servers may not be in one group.
         Servers = [{Count, lists:sublist(functions(One), 3)} || One = #{<<"count">> := Count} <- Groups,
                                                                 calls(One, "test_stuck_system:handle_cast/2")],
         ?assertEqual(2, lists:sum([Count || {Count, _} <- Servers])),
         [?assertEqual([<<"gen:do_call/4">>, <<"gen_server:call/3">>, <<"test_stuck_system:handle_cast/2">>], Inner)
          || {_, Inner} <- Servers]
     end || _ <- lists:seq(1, 5)],
    %% The process that loads the module may be running, with an older stack.
    test_wait:until(loader, [true],
                    fun() ->
                            [calls(One, "test_stuck_system:loads/0")
                             || One = #{<<"names">> := [<<"stuck_loader">>]} <- all_groups(Node)]
                    end),
    test_node:stop(Node).

%% The stack of a running process is the one that it saved last.
running(_) ->
    Node = started(["+S", "1"]),
    _ = test_node:call(Node, fun() -> test_stuck_system:spin(), ok end),
    spins(test_node:os_pid(Node)),
    test_node:stop(Node).

%% Between two turns of the process, the scheduler has none.
spins(OsPid) ->
    Wanted = ["^scheduler 1, run queue \\d+: <[0-9.]+> stuck_spin, on a CPU, last saved stack$",
              "^dyntrace: \\d process(es)? (was|were) running: a running process has the stack that it saved last$"],
    test_wait:until(running, [match, match],
                    fun() ->
                            {0, Output} = test_command:run(["stacks", OsPid]),
                            [re:run(Output, Pattern, [multiline, {capture, none}]) || Pattern <- Wanted]
                    end).

%% A process with a higher priority takes the only scheduler, so nothing is traced: the report says why.
held_up(_) ->
    Node = started(["+S", "1"]),
    {ok, _} = test_node:call(Node, fun() -> application:ensure_all_started(dyntrace) end),
    OsPid = test_node:os_pid(Node),
    %% From now on, a call has no reply.
    ok = peer:cast(Node, test_stuck_system, spin_first, []),
    spins(OsPid),
    {5, Output} = test_command:run(["report", OsPid, "--seconds", "8"]),
    printed("^dyntrace: nothing was traced within \\d+ s: \\d+ process(es)? of .* \\(" ++ OsPid ++ "\\) could run but "
            "waited for a scheduler; running: <[0-9.]+> stuck_spin( in .*)?; the recording goes on$", Output),
    printed("^  next: run `dyntrace stacks " ++ OsPid ++ "` to see what the schedulers run", Output),
    {0, _} = test_shell:run("kill -9 ~s", [OsPid]),
    ended(Node).

%% By its pid, its name, and with its whole stack.
one_process(_) ->
    Node = started([]),
    Pid = test_node:call(Node, fun() ->
                                       Self = self(),
                                       Deep = spawn(fun() -> deep(1000, Self) end),
                                       receive ready -> pid_to_list(Deep) end
                               end),
    {0, Output} = test_command:run(["stacks", test_node:os_pid(Node), "--process", Pid]),
    printed("^1 waiting: " ++ Pid ++ "\n    stacks_SUITE:deep/2  stacks_SUITE.erl:\\d+\n"
            "    stacks_SUITE:deep/2  stacks_SUITE.erl:\\d+  \\(1000 times\\)$", Output),
    {0, Named} = test_command:run(["stacks", test_node:os_pid(Node), "--process", "init"]),
    printed("^1 waiting: init\n    init:loop/1$", Named),
    {5, None} = test_command:run(["stacks", test_node:os_pid(Node), "--process", "no_such_process"]),
    printed("has no process no_such_process", None),
    test_node:stop(Node).

deep(0, To) ->
    To ! ready,
    receive stop -> 0 end;
deep(N, To) ->
    1 + deep(N - 1, To).

%% Each frame has the line of its call.
lines(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_known_calls:start/0),
    Groups = fun() -> groups(Node, "test_known_calls:in_last/1", 1) end,
    test_wait:until(waiting, fun(Found) -> [S || #{<<"status">> := S} <- Found] =:= [<<"waiting">>] end, Groups),
    [#{<<"frames">> := Frames}] = Groups(),
    test_node:stop(Node),
    Calls = call_lines("test_known_calls.erl"),
    ?assertEqual(20, length(Calls)),
    Ours = [Frame || Frame = #{<<"function">> := <<"test_known_calls:", _/binary>>} <- lists:reverse(Frames)],
    %% A comprehension may have a function of its own.
    ?assertEqual(Calls, different([Line || #{<<"line">> := Line} <- Ours])),
    ?assertEqual([<<"test_known_calls.erl">>], lists:usort([filename:basename(File) || #{<<"file">> := File} <- Ours])).

different([Line, Line | Lines]) -> different([Line | Lines]);
different([Line | Lines]) -> [Line | different(Lines)];
different([]) -> [].

%% The numbers of the lines that end in % and a number.
call_lines(File) ->
    {ok, Source} = file:read_file(in_project(filename:join("test/support", File))),
    Lines = binary:split(Source, <<"\n">>, [global]),
    [Number || {Number, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines),
               re:run(Line, " % \\d+$") =/= nomatch].

in_project(Path) ->
    filename:join(test_shell:project(), Path).

not_found(_) ->
    {5, Output} = test_command:run(["stacks", "no_such_node"]),
    printed("no Erlang VM matches no_such_node", Output).

%% -- Helpers ------------------------------------------------------------------------------------

started(Args) ->
    test_node:start(#{args => Args}).

%% Waits until a killed node has ended.
ended(Node) ->
    Ref = monitor(process, Node),
    receive {'DOWN', Ref, process, Node, _} -> ok end.

printed(Pattern, Output) ->
    ?assertMatch({{match, _}, _}, {re:run(Output, Pattern, [multiline, unicode]), Output}).

snapshot(OsPid) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-stacks-" ++ os:getpid()),
    {0, _} = test_shell:run("'~ts' stacks ~s --json > '~ts' 2> /dev/null", [test_command:path(), OsPid, File]),
    Found = test_viewer:decode(File),
    ok = file:delete(File),
    Found.

dirty(Node) ->
    schedulers_of(test_node:os_pid(Node), <<"dirty I/O scheduler">>).

deadlocked(Node) ->
    Groups = fun() -> groups(Node, "test_stuck_system:handle_cast/2", 2) end,
    test_wait:until(deadlocked, fun(Found) -> length(Found) =:= 1 end, Groups),
    Groups().

schedulers_of(OsPid, Kind) ->
    [One || One = #{<<"kind">> := Same} <- maps:get(<<"schedulers">>, snapshot(OsPid)), Same =:= Kind].

all_groups(Node) ->
    maps:get(<<"groups">>, snapshot(test_node:os_pid(Node))).

%% The groups of that many processes with this function on their stack.
groups(Node, Function, Count) ->
    [Group || Group = #{<<"count">> := Found} <- all_groups(Node), Found =:= Count, calls(Group, Function)].

calls(Group, Function) ->
    lists:member(list_to_binary(Function), functions(Group)).

functions(#{<<"frames">> := Frames}) ->
    [maps:get(<<"function">>, Frame) || Frame <- Frames].

source_line(Number) ->
    {ok, Source} = file:read_file(filename:join(test_shell:project(), "test/support/test_stuck_system.erl")),
    unicode:characters_to_list(lists:nth(Number, binary:split(Source, <<"\n">>, [global]))).
