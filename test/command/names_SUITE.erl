%% Names for each program of the host command, also if another program has attached to the same probes before. The
%% kernel counts a place only once, so the later program requests names through a different probe.
-module(names_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [asking/1]).
-import(test_command, [interrupted/1]).

%% How processes of busy/0 appear in any output: by a registered name, an initial call, a label.
-define(NAMES, ["names_named", "names_SUITE:busy/1", "{orders,17}"]).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [tops, exact_tops, scripts, profiles, recorder, all_taken, number_of_the_user].

init_per_suite(Config) ->
    NotRoot = fun() -> os:cmd("id -u") =/= "0\n" andalso "not root" end,
    _ = test_require:tool(test_require:first([NotRoot, fun test_bpftrace:missing/0]), Config),
    Config.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    _ = Case =:= recorder andalso test_require:tool(test_lttng:missing(), Config),
    Node = test_node:start(),
    ok = test_node:call(Node, fun() ->
                                      ok = test_node:started([{interval, 20}, {sample_interval, 200}]),
                                      busy()
                              end),
    [{node, Node}, {os_pid, test_node:os_pid(Node)} | Config].

end_per_testcase(_, Config) ->
    test_wait:until("no consumer is attached", [], fun() -> call(Config, fun dyntrace:listeners/0) end),
    test_node:stop(?config(node, Config)).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).

%% On the node: processes that work, before any program attaches.
busy() ->
    Self = self(),
    _ = [spawn(fun() -> Named(), Self ! here, ?MODULE:busy(0) end)
         || Named <- [fun() -> register(names_named, self()) end,
                      fun() -> put(process_name, {orders, 17}) end]],
    _ = [receive here -> ok end || _ <- [1, 2]],
    _ = proc_lib:spawn(?MODULE, busy, [0]),
    ok.

busy(N) ->
    _ = lists:seq(1, 1000),
    receive after 20 -> busy(N + 1) end.

%% Before OTP 27, only processes of proc_lib have labels in their dictionaries, so this one has no label there.
names() ->
    case erlang:system_info(otp_release) >= "27" of
        true -> ?NAMES;
        false -> lists:droplast(?NAMES)
    end.

until_named(Command) ->
    [ok = test_command:await("<[0-9.]+> " ++ quoted(Name), Command) || Name <- names()],
    ok.

named_top(Config) ->
    Top = test_command:start(["top", ?config(os_pid, Config), "--rows", "100"]),
    ok = until_named(Top),
    Top.

quoted(Name) ->
    re:replace(Name, "[{}]", "\\\\&", [global, {return, list}]).

%% Three at once. Each requests names once, and the programs attached before list no process twice.
tops(Config) ->
    Tops = [named_top(Config) || _ <- [1, 2, 3]],
    ?assertEqual(3, length(asking(Config))),
    [begin
         Frames = string:split(interrupted(Top), "dyntrace top ", all),
         [begin
              {match, Pids} = re:run(Frame, "  (<[0-9.]+>)", [global, {capture, all_but_first, list}]),
              ?assertEqual(lists:sort(Pids), lists:usort(Pids))
          end || Frame <- Frames, re:run(Frame, "<[0-9.]+>") =/= nomatch]
     end || Top <- Tops].

%% The sums of the first program count each message once: those sent before, while and after the second one attaches.
exact_tops(Config) ->
    First = test_command:start(["top", ?config(os_pid, Config), "--exact", "--rows", "100", "--sort", "sent"]),
    ok = until_named(First),
    Talker = call(Config, fun talker/0),
    talk(300, Talker, Config),
    Second = test_command:start(["top", ?config(os_pid, Config), "--exact", "--rows", "100", "--sort", "sent"]),
    test_wait:until("the second one attaches", 2, fun() -> length(asking(Config)) end),
    talk(500, Talker, Config),
    ok = until_named(Second),
    talk(200, Talker, Config),
    [ok = test_command:await("names_talker[\\s\\S]*dyntrace top [\\s\\S]*dyntrace top", Top) || Top <- [First, Second]],
    %% bpftrace prints a map and then clears it. On a busy machine, it loses some messages between the two.
    All = sent(interrupted(First)),
    ?assert(All >= 900 andalso All =< 1000, All),
    Later = sent(interrupted(Second)),
    ?assert(Later >= 100 andalso Later =< 700, Later).

%% On the node: sends as many messages as requested.
talker() ->
    Sink = spawn(fun Sink() -> receive _ -> Sink() end end),
    spawn(fun() -> register(names_talker, self()), talker(Sink) end).

talker(Sink) ->
    receive
        {From, Count} ->
            [Sink ! N || N <- lists:seq(1, Count)],
            From ! talked,
            talker(Sink)
    end.

talk(Count, Talker, Config) ->
    %% The reply to the caller is a message, too.
    call(Config, fun() -> Talker ! {self(), Count - 1}, receive talked -> ok end end).

%% The third of six columns (run time, dirty I/O, sent), over all frames.
sent(Output) ->
    {match, Rows} = re:run(Output, "^ +\\d+ +\\d+ +(\\d+) +\\d+ +\\d+ +\\d+  <[\\d.]+> names_talker$",
                           [global, multiline, {capture, all_but_first, list}]),
    lists:sum([list_to_integer(Sent) || [Sent] <- Rows]).

%% The same script runs twice. Both instances have names of existing processes, and count each message once.
scripts(Config) ->
    Talker = call(Config, fun talker/0),
    Scripts = [begin
                   Script = test_command:start(["run", "who_talks", ?config(os_pid, Config)]),
                   ok = test_command:await("-- messages in the last", Script),
                   Script
               end || _ <- [1, 2]],
    talk(400, Talker, Config),
    [begin
         ok = test_command:await("names_talker", Script),
         Output = interrupted(Script),
         {match, Rows} = re:run(Output, "^@sent\\[<[\\d.]+>, names_talker, [^]]*\\]: (\\d+)$",
                                [global, multiline, {capture, all_but_first, list}]),
         ?assertEqual(400, lists:sum([list_to_integer(Sent) || [Sent] <- Rows]), Output),
         %% The command prints the number of the probe that it has chosen.
         ?assertMatch({match, _}, re:run(Output, "who_talks\\.bt on .*/dyntrace\\.so, arguments \\d+;"))
     end || Script <- Scripts].

%% Two profiles at the same time.
profiles(Config) ->
    call(Config, fun() -> spawn(fun() -> register(names_hot, self()), hot(0) end) end),
    First = test_command:start(["profile", ?config(os_pid, Config), "--seconds", "300", "--hz", "997"]),
    ok = test_command:await("sampling ", First),
    {0, Second} = test_command:run(["profile", ?config(os_pid, Config), "--seconds", "2", "--hz", "997"]),
    ?assertMatch({match, _}, re:run(Second, "<[0-9.]+> names_hot"), Second),
    ?assertMatch({match, _}, re:run(interrupted(First), "<[0-9.]+> names_hot")).

%% Works for about a millisecond per turn.
hot(N) ->
    _ = lists:seq(1, 100000),
    receive after 50 -> hot(N + 1) end.

%% Two programs run beside an LTTng flight recorder that has enabled the probes of names before them.
recorder(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "flight"),
    Recorder = test_command:start(["record", ?config(os_pid, Config), "--snapshot", "--full", "-o", Folder]),
    ok = test_command:await("\\d\\.\\d s\n", Recorder),
    test_wait:until("it records", fun(Count) -> Count > 0 end,
                    fun() -> length([Name || #{name := Name, backends := [lttng]} <-
                                                 call(Config, fun dyntrace:listeners/0)]) end),
    Tops = [named_top(Config) || _ <- [1, 2]],
    _ = [interrupted(Top) || Top <- Tops],
    _ = interrupted(Recorder),
    ok.

%% All probes are taken: the program says so and continues.
all_taken(Config) ->
    Library = call(Config, fun() -> maps:get(library, dyntrace:info()) end),
    [Row] = [Count || #{name := dump_wanted, row := Count} <- dyntrace:probes()],
    Probes = [list_to_atom("dump_wanted" ++ Number)
              || Number <- ["" | [integer_to_list(N) || N <- lists:seq(1, Row - 1)]]],
    Consumer = test_bpftrace:start(Library, Probes),
    test_wait:until("all are taken", lists:seq(0, Row - 1), fun() -> asking(Config) end),
    ?assertEqual(lists:sort(Probes), lists:sort([Name || #{name := Name} <- call(Config, fun dyntrace:listeners/0)])),
    %% No other tracer is attached to the probes of names, so the program still gets names.
    Top = named_top(Config),
    ?assertMatch({match, _}, re:run(interrupted(Top), "has 30 tracers that request names, which is the maximum")),
    _ = test_bpftrace:stop(Consumer).

%% A number given by the user is not replaced.
number_of_the_user(Config) ->
    Script = test_command:start(["run", "who_talks", ?config(os_pid, Config), "--", "21"]),
    test_wait:until("the probe is taken", [21], fun() -> asking(Config) end),
    ?assertMatch({match, _}, re:run(interrupted(Script), "/dyntrace\\.so, arguments 21;")).
