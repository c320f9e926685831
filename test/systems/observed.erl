%% What dyntrace reports about a system, when it is run on the host like an operator runs it.
%%
%% A system is a value of `packaged'.
-module(observed).

-export([start_daemon/0, start_recorders/2, stop/1, start/1, loaded_by_host/1, followed/1, settled/1, following/1,
         alone/1, recorded/3, report/2, report_of/2, report_of/3, beside/3, during/3, serious/1, check/2,
         check_others/2]).

-include_lib("stdlib/include/assert.hrl").

-define(SECONDS, 6).
%% The expected finding must be among this many first ones.
-define(FIRST, 3).

%% Root's session daemon.
start_daemon() ->
    test_keeper:start_daemon().

%% Flight recorders of root and of the service's user, in Folder and in the user's home.
start_recorders(System = {Module, _}, Folder) ->
    OsPid = packaged:os_pid(System),
    OfRoot = filename:join(Folder, lists:concat([Module, "_", erlang:unique_integer([positive])])),
    test_keeper:start(fun() ->
                              Started = [test_command:start(Prefix, ["record", OsPid, "--snapshot", "-o", In])
                                         || {Prefix, In} <- [{"", OfRoot},
                                                             {place:as_user(packaged:place(System)), "of_user"}]],
                              [ok = test_command:await("are kept in memory", Recorder) || Recorder <- Started],
                              Started
                      end,
                      fun(Recorders) ->
                              [ok = test_command:signal("INT", Recorder) || Recorder <- Recorders],
                              [{0, _} = test_command:finish(Recorder) || Recorder <- Recorders]
                      end).

stop(Keeper) ->
    test_keeper:stop(Keeper).

%% A service with dyntrace and the module `fault'.
start(Module) ->
    System = packaged:start(Module, []),
    ok = packaged:load(System),
    File = filename:rootname(code:which(fault)),
    "{module, fault}" = packaged:eval(System, "code:load_abs(\"" ++ File ++ "\")."),
    System.

%% The system is not prepared: one command loads the library, records, and leaves nothing behind.
loaded_by_host(Module) ->
    System = packaged:start(Module, []),
    try
        "{non_existing, false}" = loaded(System),
        {0, Output} = test_command:run(["report", packaged:os_pid(System), "--load", "--seconds", "3", "-o", "-"]),
        ?assertMatch({match, _}, re:run(Output, "^Processes by run time", [multiline])),
        "{non_existing, false}" = loaded(System)
    after
        packaged:stop(System)
    end.

loaded(System) ->
    packaged:eval(System, "{code:which(dyntrace_app), "
                          "lists:keymember(dyntrace, 1, application:loaded_applications())}.").

%% Records into the folder while Fun runs, and returns Fun's result. Fun starts when the trace flags are set.
recorded(System, Folder, Fun) ->
    Command = test_command:start(["record", packaged:os_pid(System), "-o", Folder]),
    ok = test_command:await("  lost 0 events", Command),
    ok = followed(System),
    Result = Fun(),
    Output = test_command:interrupted(Command),
    ?assertMatch({match, _}, re:run(Output, "^recorded: \\d+ events, lost 0, ", [multiline])),
    Result.

%% Returns when the trace flags for the consumers are set.
followed(System) ->
    settled(fun() -> following(System) end).

%% The same for a function that returns the text of following/1.
settled(Following) ->
    test_wait:until("the application follows its consumers",
                    fun() ->
                            First = Following(),
                            First =/= "off" andalso First =:= Following() orelse First
                    end).

%% What the system follows, as text; "off" without consumers.
following(System) ->
    packaged:eval(System, "case dyntrace:listeners() of "
                       "    [] -> off; "
                       "    _ -> maps:with([processes, ports, senders, sources], maps:get(following, dyntrace:info())) "
                       "end.").

%% Returns when the node says that it has no connected nodes, because packaged:eval/2 connects to it.
alone(OsPid) ->
    test_wait:until("the node is alone", true, fun() -> is_alone(OsPid) end).

is_alone(OsPid) ->
    #{<<"alone">> := IsAlone} = test_command:listed(OsPid),
    IsAlone.

%% The report as a map. The output of `dyntrace report' is in the log of the test.
report(System, Config) ->
    OsPid = packaged:os_pid(System),
    ok = alone(OsPid),
    report_of(OsPid, Config).

report_of(OsPid, Config) ->
    report_of(OsPid, [], Config).

%% With further options of `dyntrace report'.
report_of(OsPid, Options, Config) ->
    {priv_dir, Folder} = lists:keyfind(priv_dir, 1, Config),
    File = filename:join(Folder, lists:concat(["report-", erlang:unique_integer([positive]), ".json"])),
    {0, Output} = test_command:run(["report", OsPid, "-o", File, "--seconds", integer_to_list(?SECONDS) | Options]),
    ct:pal("~ts", [Output]),
    test_viewer:decode(File).

%% The report of a system with a fault of module `fault'.
during(Kind, System, Config) ->
    "ok" = packaged:eval(System, lists:concat(["fault:plant(", Kind, ")."])),
    try report(System, Config)
    after "ok" = packaged:eval(System, "fault:remove().")
    end.

%% The report of a system under the load of a client with these arguments, and the counts of the client.
beside(Args, System, Config) ->
    Client = packaged:client(System, Args),
    Report = report(System, Config),
    {Report, client:stop(Client)}.

%% The texts of the serious findings.
serious(#{<<"findings">> := Findings}) ->
    [Text || #{<<"severity">> := Severity, <<"text">> := Text} <- Findings, Severity =/= <<"low">>].

%% One of the first findings matches the first expression. Findings that match the other expressions are true, too, and
%% do not count as one of the first; nor do those about a machine that is busy with other tests, or about the system
%% monitor that another recorder of the test has taken. All other serious findings match one of the expressions.
check([Expected | Others] = True, Report = #{<<"findings">> := Findings}) ->
    Uncounted = ["^the node is short of CPU: ", "^the schedulers are \\d+ % busy", " waited .* for a scheduler",
                 "^system_monitor could not be traced: " | Others],
    Texts = [Text || #{<<"text">> := Text} <- Findings,
                     matches(Text, Expected) orelse not lists:any(fun(Regex) -> matches(Text, Regex) end, Uncounted)],
    First = lists:sublist(Texts, ?FIRST),
    ?assert(lists:any(fun(Text) -> matches(Text, Expected) end, First), First),
    check_others(True, Report).

%% Every serious finding matches one of the expressions.
check_others(True, Report) ->
    ?assertEqual([], [Text || Text <- serious(Report), not lists:any(fun(Regex) -> matches(Text, Regex) end, True)]).

matches(Text, Regex) ->
    re:run(Text, Regex, [unicode]) =/= nomatch.
