%% `dyntrace profile': shares, names and call paths of known work, on nodes without any flag, with and without dyntrace.
-module(profile_SUITE).

-include("../support/suite.hrl").

%% A sampling rate for cases that measure shares. The load works only part of the time.
-define(OFTEN, ["--hz", "997"]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [shares, known_paths, frame_pointers, known_work, tables, files, native, untraced, reloaded, wall, two_nodes,
     container, node_ends, wrong_arguments].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    test_require:tool(test_require:first([NotRoot, fun test_bpftrace:missing/0]), Config).

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), atom_to_list(Case)),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

end_per_testcase(_, _) -> ok.

%% Shares are within 5 points, and each path is complete, from the process to the loop.
shares(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    Stacks = profiled(Node, Config, ["--seconds", "6" | ?OFTEN]),
    test_node:stop(Node),
    Ours = [Stack || Name <- names(), Stack <- of_process(Name, Stacks)],
    [?assertMatch({_, _, Distance} when Distance =< 5,
                  {Name, Share, abs(share(of_process(Name, Stacks), Ours) - Share)})
     || {Name, Share} <- lists:zip(names(), [60, 30, 10])],
    [begin
         ?assertMatch({_, Most} when Most > 90, {Name, share([Stack || Stack <- Own, is_known_path(Stack)], Own)})
     end || Name <- names(), Own <- [of_process(Name, Stacks)]].

%% Without dyntrace in the node. Each path begins with the function that the process began with, and goes through the
%% known functions, whatever the process does at its end.
known_paths(Config) ->
    Node = bare(),
    _ = test_node:call(Node, fun test_profile_load:paths/0),
    File = filename:join(?config(folder, Config), "profile.folded"),
    {0, Output} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "5" | ?OFTEN]),
    Stacks = profiled(Node, Config, ["--seconds", "5" | ?OFTEN]),
    test_node:stop(Node),
    ct:log("~ts ~ts", [File, Output]),
    {match, [Missing]} = re:run(Output, "stacks: .* last saved, (\\d+\\.\\d) % missing$",
                                [multiline, {capture, [1], list}]),
    ?assertMatch(Share when Share =< 5, list_to_float(Missing)),
    [?assertMatch({match, _}, re:run(Output, "^" ++ Row ++ " +\\d+\\.\\d\\d s +\\d+\\.\\d %$", [multiline]))
     || Row <- ["Erlang code", "garbage collection", "BIFs", "NIFs"]],
    have_known_paths(Stacks).

have_known_paths(Stacks) ->
    [begin
         Own = of_process(Name, Stacks),
         Right = [Stack || Stack = {[_ | Frames], _} <- Own, begins(Path, Frames), is_at(Inner, Stack)],
         ?assertMatch({Name, Most} when Most > 90, {Name, share(Right, Own)})
     end || {Name, Path, Inner} <-
         [{"profile_deep", lists:duplicate(60, "test_profile_load:deep/2"), ""},
          {"profile_tail", ["test_profile_load:inner/2"], ""},
          {"profile_handler", ["test_profile_load:handler/1"], ""},
          {"profile_map", ["test_profile_load:job/1"], "maps:|test_profile_load:"}]].

%% On a VM whose frames have pointers. These are on the stacks, too, and are not functions. The VM has always saved the
%% top of a stack.
frame_pointers(Config) ->
    Node = started(["+JPperf", "true"]),
    OsPid = test_node:os_pid(Node),
    try
        _ = test_node:call(Node, fun test_profile_load:paths/0),
        Stacks = profiled(Node, Config, ["--seconds", "4" | ?OFTEN]),
        have_known_paths(Stacks),
        Ours = [Stack || Name <- ["profile_deep", "profile_tail", "profile_handler", "profile_map", "profile_hash"],
                         Stack <- of_process(Name, Stacks)],
        ?assertEqual([], [Stack || Stack = {Frames, _} <- Ours, lists:member("[unknown code]", Frames)]),
        ?assert(share([Stack || Stack = {Frames, _} <- Ours, lists:any(fun is_last_saved/1, Frames)], Ours) < 1)
    after
        test_node:stop(Node),
        [file:delete(lists:append(["/tmp/", Prefix, OsPid, Suffix]))
         || {Prefix, Suffix} <- [{"perf-", ".map"}, {"jit-", ".dump"}]]
    end.

is_last_saved(Frame) ->
    lists:suffix(" (last saved)", Frame).

%% By how much a share may differ: by up to 3 points on an idle machine. Beside other tests, caches and page faults cost
%% one kind of work more than another, at different times.
-define(POINTS, 7).
%% One profile of an idle machine has as many samples; a busy machine needs several profiles.
-define(SAMPLES, 6000).
-define(PROFILES, 4).

%% Of work of many kinds, with and without dyntrace in the node: shares are those of the VM's own account, nearly all
%% paths begin with the function that the process began with, and go through the functions of the work.
known_work(Config) ->
    [begin
         Node = Start(),
         _ = test_node:call(Node, fun test_known_work:start/0),
         Stacks = sampled(Node, Config, ?PROFILES, []),
         Used = test_node:call(Node, fun test_known_work:used/0),
         test_node:stop(Node),
         is_known_work(Used, Stacks)
     end || Start <- [fun bare/0, fun() -> started([]) end]].

sampled(Node, Config, Left, Before) ->
    Stacks = Before ++ profiled(Node, Config, ["--seconds", "8" | ?OFTEN]),
    case samples(Stacks) of
        Number when Number < ?SAMPLES, Left > 1 -> sampled(Node, Config, Left - 1, Stacks);
        _ -> Stacks
    end.

is_known_work(Used, Stacks) ->
    Sum = lists:sum([Ms || {_, Ms} <- Used]),
    Known = [{Name, 100 * Ms / Sum, of_process(atom_to_list(Name), Stacks)} || {Name, Ms} <- Used],
    Ours = lists:append([Own || {_, _, Own} <- Known]),
    Complete = share([Stack || Stack = {[_, "test_known_work:turns/2" | _], _} <- Ours], Ours),
    Found = [{Name, Share, share(Own, Ours), share([Stack || Stack <- Own, is_at(path_of(Name), Stack)], Own)}
             || {Name, Share, Own} <- Known],
    ct:log("complete: ~.2f % of ~b samples~n~p", [Complete, samples(Ours), Found]),
    ?assert(Complete >= 98),
    [?assertMatch({{_, _, _, Right}, Least} when abs(Share - Sampled) =< ?POINTS andalso Right >= Least,
                  {One, least(Name)})
     || One = {Name, Share, Sampled, _} <- Found].

%% A collection moves the stack, which is then missing. Beside other tests, collections take a larger share; on an idle
%% machine, all are above 90.
least(known_collects) -> 80;
least(_) -> 85.

%% The call path of a kind of work.
path_of(known_again) ->
    "\ntest_known_work:turn/2\ntest_known_again:run/2\ntest_known_work:spent/2\ntest_known_work:repeated/2\n"
        "test_known_again:'-run/2-fun-0-'/0";
path_of(known_bignum) ->
    %% Arithmetic with big integers is C code: the innermost functions may be those of an earlier call.
    "\ntest_known_work:turns/2\ntest_known_work:turn/2\ntest_known_work:(spent/2|job/1)";
path_of(Name) ->
    ["\ntest_known_work:turns/2\ntest_known_work:turn/2\ntest_known_work:spent/2\ntest_known_work:repeated/2\n",
     case Name of
         known_deep -> "(test_known_work:deep/1(\n|$)){200}";
         %% Functions that made a tail call are not on the stack.
         known_tail -> "test_known_work:'-job/1-fun-[0-9]+-'/0";
         known_bif -> "(.*\\n)*test_known_work:hash/1";
         known_nif -> "(.*\\n)*crypto:hash";
         known_dirty -> "(.*\\n)*crypto:pbkdf2_hmac(_nif)?/5";
         known_collects -> "(.*\\n)*test_known_work:collected/1";
         known_map -> "(.*\\n)*test_known_work:map/1";
         known_binary -> "(.*\\n)*test_known_work:inverted/1";
         known_handler -> "(.*\\n)*test_known_work:handler/1"
     end].

%% The functions are on the path, in this order, after those of the loop.
begins(Functions, Frames) ->
    lists:prefix(Functions, lists:dropwhile(fun(Frame) -> Frame =/= hd(Functions) end, Frames))
        andalso hd(Frames) =:= "test_profile_load:work/1".

names() ->
    ["profile_heavy", "profile_middle", "profile_light"].

%% A function that has just been entered is shown without its caller.
is_known_path({[_ | Frames], _}) ->
    lists:prefix(["test_profile_load:turns/2", "test_profile_load:repeated/1", "test_profile_load:inner/2"],
                 Frames -- ["test_profile_load:outer/1"]).

%% Tables on the terminal, of all processes and of one.
tables(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    Before = test_node:cpu_ticks(test_node:os_pid(Node)),
    {0, Output} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "4" | ?OFTEN]),
    Ran = (test_node:cpu_ticks(test_node:os_pid(Node)) - Before) / 100,
    {0, OfOne} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "2", "--process", "profile_light"
                                   | ?OFTEN]),
    {5, OfNone} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "1", "--process", "nobody"]),
    test_node:stop(Node),
    printed("^[56]\\d\\.\\d % +\\d+\\.\\d\\d s +<[0-9.]+> profile_heavy +test_profile_load:turns/2 > "
            "test_profile_load:repeated/1 > test_profile_load:outer/1 > test_profile_load:inner/2 ", Output),
    %% Six tenths of the work. The node also works before the first sample and after the last one.
    {match, [Seconds]} = re:run(Output, "% +(\\d+\\.\\d\\d) s +<[0-9.]+> profile_heavy ",
                                [{capture, all_but_first, list}]),
    ?assertMatch({Share, _, _} when Share > 0.05 andalso Share < 0.8, {list_to_float(Seconds) / Ran, Seconds, Ran}),
    printed("^\\d\\d\\.\\d % +\\d+\\.\\d % +test_profile_load:inner/2 +<[0-9.]+> profile_heavy > ", Output),
    %% A frame that is in all samples has no row.
    printed("^\\d\\.\\d % +\\d\\d\\.\\d % +test_profile_load:(turns/2|repeated/1|outer/1)$", Output),
    printed("^100\\.0 % +\\d\\.\\d\\d s +<[0-9.]+> profile_light ", OfOne),
    nomatch = re:run(OfOne, "profile_heavy"),
    printed("used no CPU within 1 s", OfNone).

%% Each format has the same samples, of work whose names do not end a script element.
files(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    [begin
         File = filename:join(?config(folder, Config), "profile" ++ Extension),
         {0, Output} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "2", "-o", File | ?OFTEN]),
         printed("^" ++ File ++ "$", Output),
         {ok, Text} = file:read_file(File),
         ?assertMatch({{match, _}, _}, {re:run(Text, Pattern, [dotall]), Text})
     end || {Extension, Pattern} <- [{".html", "^<!doctype html>.*\"flame\": {\"name\": \"\".*profile_heavy.*"
                                               "test_profile_load:inner/2.*</html>\n$"},
                                     {".speedscope.json", "speedscope.app/file-format-schema.json.*"
                                                          "test_profile_load:inner/2.*\"unit\": \"nanoseconds\""},
                                     {".pftrace", "test_profile_load:inner/2.*profile_heavy"}]],
    compared(Node, Config),
    test_node:stop(Node).

%% pprof shows functions with their lines. Two profiles of the same work are nearly the same.
compared(Node, Config) ->
    [Folded, Pprof] = [filename:join(?config(folder, Config), Name) || Name <- ["old.folded", "new.pb.gz"]],
    {0, _} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "2", "-o", Folded | ?OFTEN]),
    {0, Output} = test_command:run(["profile", test_node:os_pid(Node), "--seconds", "2", "-o", Pprof, "--compare",
                                    Folded | ?OFTEN]),
    printed("^OWN +TOTAL +WAS +IS +FUNCTION$", Output),
    case os:find_executable("go") of
        false -> ok;
        _ ->
            {0, Lines} = test_shell:run("go tool pprof -top -lines -nodecount=200 '~ts' 2> /dev/null", [Pprof]),
            Line = integer_to_list(call_line("= inner(Count, 0)")),
            printed("test_profile_load:outer/1 .*test_profile_load.erl:" ++ Line, Lines)
    end,
    {1, None} = test_command:run(["profile", test_node:os_pid(Node), "--compare", Pprof]),
    printed("new.pb.gz is not a profile: a line has no number of samples", None).

%% The first line of the load with this text.
call_line(Text) ->
    {ok, Source} = file:read_file(filename:join(test_shell:project(), "test/support/test_profile_load.erl")),
    Before = hd(binary:split(Source, list_to_binary(Text))),
    length(binary:matches(Before, <<"\n">>)) + 1.

%% Waiting processes count, too, and are those of one path.
wall(Config) ->
    Node = bare(),
    ok = test_node:call(Node, fun test_stuck_system:deadlock/0),
    File = filename:join(?config(folder, Config), "wall.folded"),
    {0, Output} = test_command:run(["profile", test_node:os_pid(Node), "--wall", "--seconds", "1"]),
    printed("^[\\d.]+ +waiting +proc_lib:init_p_do_apply/3 > gen_server:loop/\\d$", Output),
    {0, _} = test_command:run(["profile", test_node:os_pid(Node), "--wall", "--seconds", "1", "-o", File]),
    {ok, Text} = file:read_file(File),
    printed("^\\[waiting\\];.*test_stuck_system:handle_cast/2;gen_server:call/3;gen:do_call/4 \\d+$", Text),
    test_node:stop(Node).

%% Work in a NIF, on a dirty scheduler, and in garbage collection, which have names although the VM is stripped.
native(Config) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:native/0),
    Stacks = profiled(Node, Config, ["--seconds", "4" | ?OFTEN]),
    test_node:stop(Node),
    [?assertMatch({_, Most} when Most > 80, {Name, share([Stack || Stack <- Own, is_at(Pattern, Stack)], Own)})
     || {Name, Pattern} <- [{"profile_nif", "(?s)test_profile_load:.*crypto:hash.*(libcrypto|libc\\.so)"},
                            {"profile_dirty", "(?s)test_profile_load:.*crypto:pbkdf2_hmac(_nif)?/5.*"
                                              "(libcrypto|libc\\.so)"},
                            {"profile_gc", "(?s)test_profile_load:.*" ++ collector()}],
        Own <- [of_process(Name, Stacks)]].

%% A collection on request runs as a task of the scheduler, which calls the collector's static functions.
collector() ->
    case erlang:system_info(otp_release) >= "27" of
        true -> "(\\[garbage collection\\]|static function \\[beam.smp\\])";
        false -> "\\[garbage collection\\]"
    end.

is_at(Pattern, {Frames, _}) ->
    re:run(lists:join("\n", Frames), Pattern) =/= nomatch.

%% The command reads what the VM runs from its memory. Names arrive without any trace flag, and the command says nothing
%% about tracing. A process that is spawned meanwhile also has its name.
untraced(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    Command = test_command:start(["profile", test_node:os_pid(Node), "--seconds", "3"]),
    ok = test_command:await("sampling nonode@nohost", Command),
    _ = test_node:call(Node, fun test_profile_load:late/0),
    #{processes := Flags} = test_node:call(Node, fun dyntrace_autotracer:info/0),
    {0, Output} = test_command:finish(Command),
    test_node:stop(Node),
    ?assertEqual([], Flags),
    printed("<[0-9.]+> profile_late +", Output),
    nomatch = re:run(Output, "is traced while it is sampled").

%% Code that is loaded and purged meanwhile. The names of other code remain, and no sample has a wrong one.
reloaded(Config) ->
    Node = bare(),
    _ = test_node:call(Node, fun() -> test_stuck_system:spin(), test_stuck_system:reloading(), ok end),
    Stacks = profiled(Node, Config, ["--seconds", "3" | ?OFTEN]),
    test_node:stop(Node),
    Spin = of_process("stuck_spin", Stacks),
    ?assertMatch(Most when Most > 90, share([Stack || Stack = {[_, "test_stuck_system:spins/1" | _], _} <- Spin],
                                            Spin)),
    Loader = of_process("stuck_loader", Stacks),
    ?assertMatch(Most when Most > 90, share([Stack || Stack = {[_, "test_stuck_system:loads/0" | _], _} <- Loader],
                                            Loader)).

%% Of two nodes that share the library, only one is sampled.
two_nodes(Config) ->
    Nodes = [One, Other] = [started([]) || _ <- [one, other]],
    _ = test_node:call(Other, fun test_profile_load:shares/0),
    _ = test_node:call(One, fun test_profile_load:native/0),
    Stacks = profiled(One, Config, ["--seconds", "3" | ?OFTEN]),
    lists:foreach(fun test_node:stop/1, Nodes),
    %% A busy machine leaves few samples, so any of its processes will do.
    ?assertNotEqual([], [Stack || Name <- ["profile_nif", "profile_dirty", "profile_gc"],
                                  Stack <- of_process(Name, Stacks)]),
    [?assertEqual([], of_process(Name, Stacks)) || Name <- names()].

%% A node in another PID namespace, with its own /tmp.
container(Config) ->
    %% The project may be below /tmp.
    Own = "mount --bind \"$0\" /mnt && mount -t tmpfs tmpfs /tmp && mkdir -p \"$0\" && mount --bind /mnt \"$0\" && "
        "exec \"$@\"",
    Exec = {os:find_executable("unshare"), ["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", Own,
                                            test_shell:project(), os:find_executable("erl")]},
    Name = "boxed_profile_" ++ os:getpid(),
    Node = started([{exec, Exec}], ["-sname", Name, "-start_epmd", "false", "-erl_epmd_port",
                                    integer_to_list(test_node:free_port())]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    ?assertMatch(OsPid when OsPid < 100, list_to_integer(test_node:os_pid(Node))),
    Stacks = profiled_of(Name, Config, ["--seconds", "4" | ?OFTEN]),
    test_node:stop(Node),
    Heavy = of_process("profile_heavy", Stacks),
    ?assertMatch(Most when Most > 75, share([Stack || Stack <- Heavy, is_known_path(Stack)], Heavy)).

%% Samples until the node ended are shown, with the names of its code.
node_ends(_) ->
    Node = started([]),
    _ = test_node:call(Node, fun test_profile_load:shares/0),
    OsPid = test_node:os_pid(Node),
    Command = test_command:start(["profile", OsPid, "--seconds", "100"]),
    ok = test_command:await("sampling nonode@nohost", Command),
    Before = test_node:cpu_ticks(OsPid),
    test_wait:until("it has worked", true, fun() -> test_node:cpu_ticks(OsPid) - Before > 50 end),
    {0, _} = test_shell:run("kill -KILL ~s", [OsPid]),
    {0, Output} = test_command:finish(Command),
    printed("ended during the sampling", Output),
    printed("profile_heavy", Output).

wrong_arguments(_) ->
    [begin
         {2, Output} = test_command:run(["profile" | Args]),
         printed(Pattern, Output)
     end || {Args, Pattern} <- [{["-o", "x.pdf"], "must end in one of .html .folded .speedscope.json"},
                                {["-o", "x.json"], "invalid file name: 'x.json', must end in one of .html .folded "},
                                {["--hz", "0"], "must be a number from 1 to 1000"},
                                {["--hz", "2000"], "must be a number from 1 to 1000"},
                                {["--seconds", "never"], "invalid number of seconds"}]].

%% -- Helpers ------------------------------------------------------------------------------------

%% A node without dyntrace.
bare() ->
    Ours = [Path || Path <- code:get_path(), test_node:is_ours(Path), filename:basename(Path) =/= "ebin"],
    test_node:start(#{paths => Ours}).

started(Args) ->
    started([], Args).

started(Options, Args) ->
    Node = test_node:start(maps:from_list([{args, Args} | Options])),
    ok = test_node:call(Node, fun() -> {ok, _} = application:ensure_all_started(dyntrace), ok end),
    Node.

%% [{Frames, Samples}] of a profile written as folded stacks.
profiled(Node, Config, Args) ->
    profiled_of(test_node:os_pid(Node), Config, Args).

profiled_of(Name, Config, Args) ->
    File = filename:join(?config(folder, Config), "profile.folded"),
    {0, Output} = test_command:run(["profile", Name, "-o", File | Args]),
    ct:log("~ts", [Output]),
    {ok, Text} = file:read_file(File),
    Lines = string:split(string:trim(unicode:characters_to_list(Text), trailing, "\n"), "\n", all),
    ct:log("~ts", [lists:join("\n", Lines)]),
    [{string:split(Frames, ";", all), list_to_integer(Count)}
     || Line <- Lines, [Frames, Count] <- [string:split(Line, " ", trailing)]].

of_process(Name, Stacks) ->
    [Stack || Stack = {[Process | _], _} <- Stacks, lists:suffix(" " ++ Name, Process)].

%% In percent.
share(Part, Whole) ->
    100 * samples(Part) / samples(Whole).

samples(Stacks) ->
    lists:sum([Count || {_, Count} <- Stacks]).

printed(Pattern, Output) ->
    ?assertMatch({{match, _}, _}, {re:run(Output, Pattern, [multiline, unicode]), Output}).
