%% Runs the recipes of docs/lttng.md and docs/pictures.md verbatim.
-module(recipes_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [first_session, filter, wanted, senders, carriers, flight_recorder, crashed, names, live, context, reading,
     pictures].

init_per_suite(Config) ->
    test_require:tool(test_lttng:missing(), Config).

end_per_suite(_) -> ok.

%% The commands run as a user, with that user's daemon and files. The files of a failed recipe are deleted with their
%% folder. Recipes use the current session without naming it, so each case has its own.
init_per_testcase(Case, Config) ->
    Node = test_node:start(),
    Daemon = test_lttng:start_daemon("env " ++ marker(Node)),
    %% As the page requires, the module is loaded and LTTng lists its tracepoints.
    _ = test_node:call(Node, fun dyntrace:info/0),
    ok = test_wait:until("the daemon knows the node",
                         fun() -> test_lttng:tracepoints(Daemon, test_node:os_pid(Node)) =/= [] end),
    Home = test_lttng:home(filename:join(?config(priv_dir, Config), Case)),
    [{node, Node}, {daemon, Daemon}, {env, [{"LTTNG_HOME", Home}]} | Config].

end_per_testcase(_, Config) ->
    Daemon = ?config(daemon, Config),
    [test_lttng:lttng(Daemon, "destroy ~s", [Session]) || Session <- sessions()],
    {0, _} = test_shell:run("rm -rf /tmp/erlang-demo /tmp/erlang-filter /tmp/erlang-flight /tmp/erlang-live* "
                            "/tmp/erlang-context /tmp/erlang-memory /tmp/erlang-names /tmp/erlang-talk "
                            "/tmp/erlang-wanted /tmp/erlang-senders /tmp/erlang-pictures* /tmp/erlang-crash* "
                            "/dev/shm/erlang-crash", []),
    test_lttng:stop_daemon(Daemon),
    test_node:stop(?config(node, Config)).

%% A variable of the environment of the case's daemons.
marker(Node) ->
    "DYNTRACE_RECIPE=" ++ test_node:os_pid(Node).

sessions() ->
    ["erlang-demo", "erlang-filter", "erlang-flight", "erlang-live", "erlang-context", "erlang-memory",
     "erlang-names", "erlang-talk", "erlang-wanted", "erlang-senders", "erlang-pictures", "erlang-crash"].

%% The output has each name that sasl registers, and each tracepoint.
first_session(Config) ->
    Output = recipe("A first session", Config),
    [?assertMatch({match, _}, re:run(Output, ["org_erlang_dyntrace:", atom_to_list(Probe), "\\b"]), Probe)
     || Probe <- test_cases:probes(lttng) -- test_port_cases:drivers()],
    Names = test_node:call(?config(node, Config),
                         fun() -> [Name || Name <- registered(), application_of(Name) =:= {ok, sasl}] end),
    ?assert(lists:member(sasl_sup, Names)),
    [begin
         Event = ["process_register: .*name = \"", atom_to_list(Name), "\", type = \"register\""],
         ?assertMatch({match, _}, re:run(Output, Event), Name)
     end || Name <- Names].

application_of(Name) ->
    application:get_application(whereis(Name)).

filter(Config) ->
    Output = recipe("Only some events", Config),
    ?assertMatch({match, _}, re:run(Output, "to = \"shop\", message = \"order\"")),
    ?assertEqual(nomatch, re:run(Output, "not_for_the_shop")).

%% Each wanted message and call arrives once, and no other.
wanted(Config) ->
    Output = recipe("Only what the VM lets pass", Config),
    Shop = test_node:call(?config(node, Config), fun() -> test_cases:text(whereis(shop)) end),
    Count = fun(Event) ->
                    case re:run(Output, Event, [global]) of
                        {match, Found} -> length(Found);
                        nomatch -> 0
                    end
            end,
    ?assertEqual([1, 1, 1, 1, 1, 1, 0],
                 [Count(Event) || Event <- ["to = \"shop\", message = \"order\"",
                                            ["to = \"", Shop, "\", message = \"order_by_pid\""],
                                            "to = \"shop\", message = \"\\[1,2,",
                                            "to = \"<[0-9.]+>\", message = \"\\[1,2,",
                                            "entry = \"lists:seq/2\"", "function_call: ", "not_wanted"]], Output).

senders(Config) ->
    Output = recipe("Who sent it", Config),
    ?assertMatch({match, _}, re:run(Output, "from = \"<[0-9.]+>\", node = \"nonode@nohost\", "
                                            "message = \"order_by_process\"")),
    ?assertMatch({match, _}, re:run(Output, "from = \"\", node = \"clock_service\", message = \"order_by_timer\"")).

%% The table's carriers: more than 20 MB are created and destroyed.
carriers(Config) ->
    Output = recipe("Memory carriers", Config),
    Sizes = fun(Event) ->
                    {match, Found} = re:run(Output, ["org_erlang_otp:", Event,
                                                     ": .*type = \"ets_alloc\", instance = \\d+, size = (\\d+),"],
                                            [global, {capture, all_but_first, binary}]),
                    lists:sum([binary_to_integer(Size) || [Size] <- Found])
            end,
    ?assert(Sizes("carrier_create") > 20000000, Output),
    ?assert(Sizes("carrier_destroy") > 20000000, Output).

flight_recorder(Config) ->
    Output = recipe("A flight recorder", Config),
    ?assertMatch({match, _}, re:run(Output, "process_exit: .*reason = \"something_went_wrong\"")).

%% The events are found again after the daemons have been killed.
crashed(Config) ->
    Output = recipe("If LTTng's daemons are killed, too", Config),
    Exit = "process_exit: .*reason = \"something_went_wrong\"",
    ?assertMatch({match, _}, re:run(Output, Exit), Output),
    [Consumer] = test_shell:os_pids("lttng-consumerd", marker(?config(node, Config))),
    {0, _} = test_shell:run("kill -KILL ~s", [Consumer]),
    ok = test_lttng:kill_daemon(?config(daemon, Config)),
    {0, Extracted} = test_shell:run("rm -rf /tmp/erlang-crashed && "
                                    "lttng-crash --extract=/tmp/erlang-crashed /dev/shm/erlang-crash/* && "
                                    "babeltrace2 /tmp/erlang-crashed", []),
    ?assertMatch({match, _}, re:run(Extracted, Exit), Extracted).

names(Config) ->
    Output = recipe("Names in a flight recorder", Config),
    ?assertMatch({match, _}, re:run(Output, "process_identity: .*initial = \"supervisor:kernel/1\", "
                                    "name = \"kernel_sup\""), Output).

%% `lttng' starts the relay daemon, which uses a fixed port, so no other test may do this at the same time.
live(Config) ->
    Variable = {"DYNTRACE_RELAY", test_node:os_pid(?config(node, Config))},
    Output = test_shell:locked("/sys/kernel/notes",
                               fun() ->
                                       try recipe("Live", [Variable], Config)
                                       after end_relay(Variable)
                                       end
                               end),
    ?assertMatch({match, _}, re:run(Output, "message_send: .*message = \"seen_live\"")).

end_relay({Name, Value}) ->
    Relays = fun() -> test_shell:os_pids("lttng-relayd", Name ++ "=" ++ Value) end,
    _ = [test_shell:run("kill ~s", [OsPid]) || OsPid <- Relays()],
    test_wait:until("the relay daemon has ended", [], Relays).

context(Config) ->
    Output = recipe("With the process and thread", Config),
    Event = ["vpid = ", test_node:os_pid(?config(node, Config)),
             ", vtid = [0-9]+, procname = \"[^\"]+\" .*with_context"],
    ?assertMatch({match, _}, re:run(Output, Event)).

%% The report counts the messages of each sender and receiver.
reading(Config) ->
    has_plugin(Config),
    Output = recipe("Reading", Config),
    ?assertMatch({match, _}, re:run(Output, "<[0-9.]+> .*\\blistener +1000\\b"), Output).

%% The report shows the started application's processes and their calls. The page and the trace exist.
pictures(Config) ->
    has_plugin(Config),
    Report = test_recipe:run("docs/pictures.md", "Record and look", ?config(node, Config),
                             #{env => ?config(env, Config)}),
    ?assertMatch({match, _}, re:run(Report, "sasl_sup"), Report),
    ?assertMatch({match, _}, re:run(Report, "supervisor:handle_call/3"), Report),
    {ok, <<"<!", _/binary>>} = file:read_file("/tmp/erlang-pictures.html"),
    ?assert(filelib:file_size("/tmp/erlang-pictures.pftrace") > 1000).

has_plugin(Config) ->
    test_require:tool(test_viewer:plugins() =:= [] andalso "the plugin is not built", Config).

recipe(Title, Config) ->
    recipe(Title, [], Config).

recipe(Title, Env, Config) ->
    test_recipe:run("docs/lttng.md", Title, ?config(node, Config), #{env => Env ++ ?config(env, Config)}).
