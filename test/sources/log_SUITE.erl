%% The probe log: its values compared with the output of logger's own formatter, its limits, and the handler.
-module(log_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, following/1, call/2, until_following/3]).

-define(FLOOD, 100000).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [values, hostile, long_texts, lttng, supervisor_and_crash_reports, crash_reports, crash_events, levels, shapes,
     by_default, off, flood, no_loop, nothing_left_behind, installed_and_removed, killed, slow_keeper,
     removed_by_another, another_handler_of_the_name, no_trace_events].

%% -- Values --------------------------------------------------------------------------------

%% On the node: events of all kinds, and how the default handler's formatter shows each.
logged_values() ->
    Report = #{what => started, items => [1, two, "three"]},
    One = fun(#{what := What}) -> {"it has ~p", [What]} end,
    Two = fun(#{what := What}, #{single_line := true}) -> io_lib:format("~p, on one line", [What]) end,
    Logged = [{error, {string, "a string"}, #{}},
              {warning, {string, <<"stra", 195, 159, "e\nand more">>}, #{}},
              {notice, {"a ~s with ~p~n", ["format", {1, 2}]}, #{}},
              {alert, {"~ts", ["Ω≈ç"]}, #{}},
              {critical, {report, Report}, #{}},
              {emergency, {report, maps:to_list(Report)}, #{}},
              {error, {report, Report}, #{report_cb => One}},
              {error, {report, Report}, #{report_cb => Two}},
              {error, {"~p ~s", [1]}, #{}},
              {error, {report, Report}, #{report_cb => fun(_) -> error(no_text) end}}],
    [begin
         ok = log(Level, Message, Meta),
         {atom_to_binary(Level), formatted(Level, Message, Meta)}
     end || {Level, Message, Meta} <- Logged].

log(Level, {string, String}, Meta) -> logger:log(Level, String, Meta);
log(Level, {report, Report}, Meta) -> logger:log(Level, Report, Meta);
log(Level, {Format, Args}, Meta) -> logger:log(Level, Format, Args, Meta).

formatted(Level, Message, Meta) ->
    unicode:characters_to_binary(logger_formatter:format(#{level => Level, msg => Message, meta => Meta},
                                                         #{template => [msg], single_line => true, depth => 30,
                                                           chars_limit => 1100})).

values(Config) ->
    Consumer = attached([{log, debug}], Config),
    {Pid, Expected} = call(Config, fun() -> {test_cases:text(self()), logged_values()} end),
    Logged = [{log, #{pid => Pid, level => Level, text => Text}} || {Level, Text} <- Expected],
    test_wait:until("the events", Logged,
                    fun() -> [Event || Event = {log, #{pid := Of}} <- test_bpftrace:events(Consumer), Of =:= Pid] end),
    ?assertMatch({_, #{text := <<"it has started">>}}, lists:nth(7, Logged)),
    ?assertMatch({_, #{text := <<"straße, and more"/utf8>>}}, lists:nth(2, Logged)),
    _ = test_bpftrace:stop(Consumer).

%% Events that no formatter expects still fire, in bounded time, and the handler stays.
hostile(Config) ->
    Consumer = attached([{log, debug}], Config),
    Took = call(Config, fun() ->
                                {ok, #{config := Handler}} = logger:get_handler_config(dyntrace),
                                [element(1, timer:tc(fun() ->
                                                             ok = dyntrace_log:log(#{level => error, msg => Message,
                                                                                     meta => Meta},
                                                                                   #{config => Handler})
                                                     end)) || {Message, Meta} <- hostile_events()]
                        end),
    %% The time is bounded, also on a slow machine.
    ?assertEqual([], [Time || Time <- Took, Time > 10000000]),
    test_wait:until("the events", length(Took), fun() -> length(test_bpftrace:events(Consumer)) end),
    Texts = [Text || {log, #{text := Text}} <- test_bpftrace:events(Consumer)],
    ?assertEqual(<<"a pid">>, hd(Texts)),
    ?assertEqual([], [Text || Text <- Texts, Text =:= null]),
    %% A large integer is not shown.
    ?assertEqual([<<"~p ~p">>, <<"a: {b,'_'}">>, <<"'_'">>], lists:nthtail(length(Texts) - 3, Texts)),
    %% No call raises, even if the event is malformed.
    ?assertEqual([ok, ok, ok, ok],
                 call(Config, fun() ->
                                      {ok, #{config := Handler}} = logger:get_handler_config(dyntrace),
                                      [dyntrace_log:log(Event, #{config => Of})
                                       || {Event, Of} <- [{no_event, Handler}, {#{}, Handler}, {#{}, #{}},
                                                          {#{level => 1, msg => 2, meta => 3}, Handler}]]
                              end)),
    ok = call(Config, fun() -> dyntrace_log:log(no_event, no_config) end),
    _ = test_bpftrace:stop(Consumer).

%% The events are made where they are logged, because some are large.
hostile_events() ->
    [{{string, "a pid"}, #{pid => "no pid"}}, {{string, [1, foo | bar]}, #{}},
     {{string, [16#D800, -1, 16#110000]}, #{}}, {{string, lists:duplicate(10000000, $a)}, #{}},
     {{lists:duplicate(1000000, $b), []}, #{}}, {{"~", []}, #{}}, {{"~p", improper}, #{}},
     {{"~99999999999999s", ["x"]}, #{}}, {{report, improper}, #{}}, {{report, [{a, 1} | b]}, #{}},
     {{report, maps:from_list([{N, N} || N <- lists:seq(1, 100000)])}, #{}},
     {{report, #{a => 1}}, #{report_cb => hello}},
     {{report, #{a => 1}}, #{report_cb => fun(_, _) -> [x | y] end}},
     {{report, #{a => 1}}, #{report_cb => fun(_) -> throw(no) end}},
     {{"~p", [lists:foldl(fun(_, Deep) -> [Deep] end, [], lists:seq(1, 1000000))]}, #{}},
     {{"~p", [binary:copy(<<"x">>, 10000000)]}, #{}}, {{<<255, 254>>, []}, #{}}, {no_message, #{}},
     {{"~p ~p", [lists:seq(1, 100000), 1 bsl 1000000]}, #{}}, {{report, #{a => {b, [-1 bsl 1000000]}}}, #{}},
     {{report, #{a => 1 bsl 1000000}}, #{report_cb => fun(#{a := A}) -> {"~p", [A]} end}}].

%% A text has 1,024 bytes at most, as all strings have.
long_texts(Config) ->
    start([{interval, 10}, {log, debug}], Config),
    Consumer = test_bpftrace:start(?config(library, Config), [log], #{longest => 1100}),
    until_following(sources, [log], Config),
    until_handler(Config),
    Long = lists:duplicate(3000, $x),
    call(Config, fun() ->
                         [logger:error(String) || String <- [lists:duplicate(1024, $y), Long]],
                         logger:error(Long, [])
                 end),
    test_wait:until("the events",
                    [binary:copy(<<"y">>, 1024) | [<<(binary:copy(<<"x">>, 1021))/binary, "...">> || _ <- [1, 2]]],
                    fun() -> [Text || {log, #{text := Text}} <- test_bpftrace:events(Consumer)] end),
    _ = test_bpftrace:stop(Consumer).

lttng(Config) ->
    _ = test_require:tool(test_lttng:missing(), Config),
    lttng_SUITE:with_daemon(
      fun(Daemon) ->
              start([{interval, 10}, {log, debug}], Config),
              Session = lttng_SUITE:start(Daemon, [log], Config),
              until_following(sources, [log], Config),
              until_handler(Config),
              {Pid, Expected} = call(Config, fun() -> {test_cases:text(self()), logged_values()} end),
              ?assertEqual([#{pid => Pid, level => Level, text => Text} || {Level, Text} <- Expected],
                           [Fields || {log, Fields = #{pid := Of}} <- test_lttng:stop(Session), Of =:= Pid])
      end).

%% A supervised process crashes: the reports of the process and of its supervisor.
supervisor_and_crash_reports(Config) ->
    Consumer = attached([{log, error}], Config),
    {Supervisor, Child} = call(Config, fun crashed/0),
    [SupervisorText, ChildText] = [call(Config, fun() -> test_cases:text(Pid) end) || Pid <- [Supervisor, Child]],
    {_, #{text := Crash}} = test_bpftrace:await(Consumer, fun({log, #{pid := Pid}}) -> Pid =:= ChildText end),
    {_, #{text := Report, level := <<"error">>}} =
        test_bpftrace:await(Consumer, fun({log, #{pid := Pid}}) -> Pid =:= SupervisorText end),
    ?assertMatch(<<"crasher: initial call: log_SUITE:child/0, pid: <", _/binary>>, Crash),
    [?assertMatch({_, _}, binary:match(Report, Part)) || Part <- [<<"child_terminated">>, <<"on_purpose">>, ChildText]],
    _ = test_bpftrace:stop(Consumer).

%% Of proc_lib, of the VM, and of Elixir's Logger; not those of supervisors. Their processes are not traced.
crash_reports(Config) ->
    start([{interval, 10}, {log, {error, shape}}], Config),
    Consumer = attach([crash_report], Config),
    until_handler(Config),
    {_, Child} = call(Config, fun crashed/0),
    Uncaught = call(Config, fun() -> spawn(fun() -> error(uncaught) end) end),
    Elixir = call(Config, fun() ->
                                  logger:error("GenServer terminating", #{crash_reason => {oops, []}}),
                                  logger:error("no crash"),
                                  self()
                          end),
    [ChildText, UncaughtText, ElixirText] = [call(Config, fun() -> test_cases:text(Pid) end)
                                             || Pid <- [Child, Uncaught, Elixir]],
    test_wait:until("the reports", lists:sort([ChildText, UncaughtText, ElixirText]),
                    fun() -> lists:sort([Pid || {crash_report, #{pid := Pid}} <- test_bpftrace:events(Consumer)]) end),
    ?assertMatch([], maps:get(processes, following(Config))),
    Reports = maps:from_list([{Pid, Report} || {crash_report, Report = #{pid := Pid}} <- test_bpftrace:stop(Consumer)]),
    ?assertMatch(#{ChildText := #{initial := <<"log_SUITE:child/0">>, name := <<>>,
                                  reason := <<"on_purpose">>,
                                  text := <<"crasher: initial call: log_SUITE:child/0, pid: <", _/binary>>},
                   UncaughtText := #{initial := <<>>, name := <<>>, reason := <<"{uncaught,[", _/binary>>,
                                     text := <<"Error in process ~p with exit value", _/binary>>},
                   ElixirText := #{initial := <<>>, name := <<>>, reason := <<>>, text := <<"...">>}}, Reports).

%% An event has any shape, and not all say that the process exits.
crash_events(_) ->
    Read = fun dyntrace_crash:read/1,
    Crash = fun(Info) -> #{msg => {report, #{label => {proc_lib, crash}, report => [Info, []]}}, meta => #{}} end,
    Info = fun(Class) -> [{initial_call, {shop, bake, ['Argument__1']}}, {registered_name, oven},
                          {error_info, {Class, burnt, []}}] end,
    ?assertEqual({{shop, bake, 1}, oven, {burnt, []}}, Read(Crash(Info(error)))),
    ?assertEqual({{shop, bake, 1}, oven, burnt}, Read(Crash(Info(exit)))),
    ?assertEqual({{shop, bake, 1}, oven, {{nocatch, burnt}, []}}, Read(Crash(Info(throw)))),
    ?assertEqual({<<>>, <<>>, ''}, Read(Crash([initial_call | none]))),
    Elixir = fun(Meta) -> #{msg => {string, "x"}, meta => Meta#{crash_reason => {burnt, []}}} end,
    ?assertEqual({<<>>, oven, {burnt, []}}, Read(Elixir(#{domain => [otp, elixir], registered_name => oven}))),
    ?assertEqual({<<>>, <<>>, ''}, Read(Elixir(#{domain => [elixir]}))),
    ?assertEqual(none, Read(#{msg => {string, "x"}, meta => #{}})),
    %% Frames without arguments.
    Frame = fun(Arguments, Where) -> {shop, bake, Arguments, Where} end,
    Place = [{file, "shop.erl"}, {line, 7}],
    ?assertEqual([Frame(1, Place), Frame(2, [])],
                 dyntrace_crash:frames({burnt, [Frame([secret], Place), Frame(2, [{error_info, #{}}])]})),
    [?assertEqual([], dyntrace_crash:frames(Reason))
     || Reason <- [burnt, {burnt, []}, {burnt, [Frame(1, Place) | none]}, {burnt, [{card, 4711}]}]].

%% On the node.
crashed() ->
    Self = self(),
    Supervisor = spawn(fun() ->
                               {ok, Pid} = supervisor:start_link(?MODULE, temporary),
                               true = unlink(Pid),
                               Self ! {self(), Pid}
                       end),
    Pid = receive {Supervisor, Started} -> Started end,
    {ok, Child} = supervisor:start_child(Pid, #{id => child, start => {?MODULE, start_child, []},
                                                restart => temporary}),
    Child ! crash,
    {Pid, Child}.

%% The callback of the supervisor.
init(temporary) ->
    {ok, {#{}, []}}.

start_child() ->
    {ok, proc_lib:spawn_link(?MODULE, child, [])}.

child() ->
    receive crash -> exit(on_purpose) end.

%% The handler's level, below the primary level.
levels(Config) ->
    Consumer = attached([{log, warning}], Config),
    All = fun() -> [logger:log(Level, "text") || Level <- [debug, info, notice, warning, error, critical, alert,
                                                           emergency]] end,
    Shown = fun() -> [Level || {log, #{level := Level}} <- test_bpftrace:events(Consumer)] end,
    Warning = [<<"warning">>, <<"error">>, <<"critical">>, <<"alert">>, <<"emergency">>],
    call(Config, All),
    test_wait:until("events from warning on", Warning, Shown),
    follow(#{log => debug}, Config),
    call(Config, All),
    test_wait:until("events from notice on, the primary level", Warning ++ [<<"notice">> | Warning], Shown),
    follow(#{log => emergency}, Config),
    ok = call(Config, fun() -> logger:set_primary_config(level, all) end),
    call(Config, All),
    test_wait:until("one event", Warning ++ [<<"notice">> | Warning] ++ [<<"emergency">>], Shown),
    _ = test_bpftrace:stop(Consumer).

follow(Options, Config) ->
    First = handler(Config),
    ok = call(Config, fun() -> dyntrace:follow(Options) end),
    test_wait:until("another handler", fun(Now) -> Now =/= none andalso Now =/= First end,
                    fun() -> handler(Config) end).

%% Contents are not shown.
shapes(Config) ->
    Consumer = attached([{log, debug}, {text, shape}], Config),
    call(Config, fun() ->
                         ok = logger:error("user ~p~n", [secret]),
                         ok = logger:error("secret"),
                         ok = logger:error("secret", []),
                         ok = logger:error(#{password => "secret"}),
                         ok = logger:error(#{4711 => {shop, [<<"secret">> | 17]}}),
                         ok = logger:error([{stack, [{shop, pay, 2, [{file, "secret"}, {line, 7}]},
                                                     {shop, pay, ["secret", 4711, {}], []},
                                                     {shop, pay, lists:seq(1, 300), []}]} | "secret"])
                 end),
    test_wait:until("the events",
                    [<<"user ~p~n">>, <<"...">>, <<"...">>, <<"password: '_'">>, <<"'_': {shop,['_','_']}">>,
                     <<"stack: [{shop,pay,2,[]},{shop,pay,3,[]},{shop,pay,255,[]}], '_'">>],
                    fun() -> [Text || {log, #{text := Text}} <- test_bpftrace:events(Consumer)] end),
    _ = test_bpftrace:stop(Consumer).

%% -- Limits --------------------------------------------------------------------------------

%% Errors and above, without contents.
by_default(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([log], Config),
    until_following(sources, [log], Config),
    until_handler(Config),
    ok = call(Config, fun() -> logger:warning("a warning"), logger:error("user ~p", ["secret"]) end),
    ?assertMatch({_, #{level := <<"error">>, text := <<"user ~p">>}},
                 test_bpftrace:await(Consumer, fun({log, _}) -> true end)),
    _ = test_bpftrace:stop(Consumer).

off(Config) ->
    test_autotracer:keep_log(Config),
    start([{interval, 10}, {log, off}], Config),
    Consumer = attach([log], Config),
    until_following(withheld, #{log => "the option log is off"}, Config),
    ?assertEqual({[], none}, {maps:get(sources, following(Config)), handler(Config)}),
    ?assertEqual([], test_autotracer:logged(Config)),
    ok = call(Config, fun() -> dyntrace:follow(#{log => error}) end),
    until_handler(Config),
    until_following(withheld, #{}, Config),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config).

%% Each event fires, or is counted in an event of the next second. The events that fire never exceed the limit per
%% second.
flood(Config) ->
    Limit = 50,
    start([{interval, 10}, {log, debug}, {log_limit, Limit}], Config),
    ok = call(Config, fun() -> logger:remove_handler(default) end),
    Without = call(Config, fun flooded/0),
    Consumer = test_bpftrace:start_script(["usdt:", ?config(library, Config), ":org_erlang_dyntrace:log "
                                           "{ printf(\"%llu %s\\n\", nsecs, str(arg2)); }"], #{}),
    until_following(sources, [log], Config),
    until_handler(Config),
    With = call(Config, fun flooded/0),
    ct:pal("~b events: ~b reductions without the handler, ~b with it", [?FLOOD, Without, With]),
    test_wait:until("all events", ?FLOOD, fun() -> {Shown, Counted} = counted(Consumer), length(Shown) + Counted end),
    {Times, _} = counted(Consumer),
    Windows = (lists:max(Times) - lists:min(Times)) div 1000 + 2,
    ?assert(length(Times) =< Limit * Windows, {length(Times), Windows}),
    ?assert(length(Times) >= Limit),
    %% Seconds may begin at any time, so any second can overlap two of them.
    ?assertEqual([], [Time || Time <- Times, length([T || T <- Times, T >= Time, T < Time + 1000]) > 2 * Limit]),
    %% The cost of an event that is not shown.
    ?assert(With - Without < 50 * ?FLOOD, {Without, With}),
    _ = test_bpftrace:stop_script(Consumer).

%% On the node: four processes log at the same time. Returns their reductions.
flooded() ->
    Refs = [element(2, spawn_monitor(fun() ->
                                             [logger:error("flood ~p", [N]) || N <- lists:seq(1, ?FLOOD div 4)],
                                             exit({shutdown, process_info(self(), reductions)})
                                     end)) || _ <- lists:seq(1, 4)],
    lists:sum([receive {'DOWN', Ref, process, _, {shutdown, {reductions, Count}}} -> Count end || Ref <- Refs]).

%% The times of the events in ms, and how many others were counted.
counted(Consumer) ->
    Lines = [binary:split(Line, <<" ">>) || Line <- test_bpftrace:lines(Consumer)],
    {lists:sort([binary_to_integer(Time) div 1000000 || [Time, <<"flood ", _/binary>>] <- Lines]),
     lists:sum([binary_to_integer(Count)
                || [_, Text] <- Lines,
                   {match, [Count]} <- [re:run(Text, "^dyntrace: (\\d+) events not shown$",
                                               [{capture, all_but_first, binary}])]])}.

%% Events that are logged while an event is formatted, or by the worker, are not shown; other handlers see them.
no_loop(Config) ->
    test_autotracer:keep_log(Config),
    Consumer = attached([{log, debug}], Config),
    call(Config, fun() ->
                         Loop = fun Again(_) ->
                                        ok = logger:error(#{inner => 1}, #{report_cb => Again}),
                                        {"outer", []}
                                end,
                         ok = logger:remove_handler(default),
                         ok = logger:error(#{a => 1}, #{report_cb => Loop})
                 end),
    call(Config, fun() -> whereis(dyntrace_autotracer) ! {monitor, 1, busy_port, {}} end),
    call(Config, fun() -> logger:error("last") end),
    _ = test_bpftrace:await(Consumer, fun({log, #{text := Text}}) -> Text =:= <<"last">> end),
    ?assertEqual([<<"outer">>, <<"last">>], [Text || {log, #{text := Text}} <- test_bpftrace:stop(Consumer)]).

%% The dictionary of the calling process is restored, also after a failure.
nothing_left_behind(Config) ->
    Consumer = attached([{log, debug}], Config),
    {Before, After} = call(Config, fun() ->
                                           Before = get(),
                                           ok = logger:error("text"),
                                           ok = logger:error(#{}, #{report_cb => fun(_) -> throw(no_text) end}),
                                           {Before, get()}
                                   end),
    ?assertEqual(Before, After),
    _ = test_bpftrace:stop(Consumer).

%% -- The handler ---------------------------------------------------------------------------

installed_and_removed(Config) ->
    start([{interval, 10}, {log, debug}], Config),
    ?assertEqual(none, handler(Config)),
    [begin
         Consumer = attached(Config),
         End(Consumer),
         until_no_handler(Config)
     end || End <- [fun test_bpftrace:kill/1, fun test_bpftrace:stop/1]],
    Consumer = attach([log], Config),
    [begin
         until_handler(Config),
         call(Config, Off),
         until_no_handler(Config),
         call(Config, On)
     end || {Off, On} <- [{fun() -> dyntrace:unfollow() end, fun() -> dyntrace:follow(#{}) end},
                          {fun() -> dyntrace:follow(#{log => off}) end, fun() -> dyntrace:follow(#{}) end},
                          {fun() -> dyntrace_app:pause() end, fun() -> dyntrace_app:resume() end},
                          {fun() -> application:stop(dyntrace) end, fun() -> ok end}]],
    until_no_keeper(Config),
    _ = test_bpftrace:stop(Consumer).

%% Whichever process is killed, there is one handler afterwards, or none if the application has ended.
killed(Config) ->
    Consumer = attached([{log, debug}], Config),
    Worker = fun() -> whereis(dyntrace_autotracer) end,
    [begin
         Keeper = handler(Config),
         call(Config, fun() -> [exit(Pid, kill) || Pid <- Of(Keeper)] end),
         test_wait:until("another handler", fun(Now) -> Now =/= Keeper andalso Now =/= none end,
                         fun() -> handler(Config) end),
         call(Config, fun() -> logger:error("after ~p", [Keeper]) end),
         Text = iolist_to_binary(["after ", call(Config, fun() -> pid_to_list(Keeper) end)]),
         _ = test_bpftrace:await(Consumer, fun({log, #{text := Shown}}) -> Shown =:= Text end),
         ?assertEqual(1, length([Shown || {log, #{text := Shown}} <- test_bpftrace:events(Consumer), Shown =:= Text]))
     end || Of <- [fun(Keeper) -> [Keeper] end, fun(_) -> [Worker()] end, fun(Keeper) -> [Keeper, Worker()] end]],
    Last = handler(Config),
    call(Config, fun() -> [exit(Pid, kill) || Pid <- [Last, whereis(dyntrace_autotracer), whereis(dyntrace_sup)]] end),
    until_no_handler(Config),
    until_no_keeper(Config),
    _ = test_bpftrace:stop(Consumer).

%% When the application has stopped, its master kills all processes of its group, but not a keeper that still has to
%% remove its handler.
slow_keeper(Config) ->
    Consumer = attached([{log, debug}], Config),
    Keeper = handler(Config),
    call(Config, fun() ->
                         true = erlang:suspend_process(Keeper),
                         ok = application:stop(dyntrace),
                         true = erlang:resume_process(Keeper)
                 end),
    until_no_handler(Config),
    until_no_keeper(Config),
    _ = test_bpftrace:stop(Consumer).

removed_by_another(Config) ->
    Consumer = attached([{log, debug}], Config),
    ok = call(Config, fun() -> logger:remove_handler(dyntrace) end),
    until_handler(Config),
    _ = test_bpftrace:stop(Consumer),
    until_no_handler(Config).

%% The other handler stays, and the log says once that ours is missing.
another_handler_of_the_name(Config) ->
    test_autotracer:keep_log(Config),
    ok = call(Config, fun() -> logger:add_handler(dyntrace, test_autotracer, #{level => emergency}) end),
    start([{interval, 10}, {log, debug}], Config),
    Consumer = attach([log], Config),
    until_following(withheld, #{log => "logger has another handler with the id dyntrace"}, Config),
    ?assertEqual(another, handler(Config)),
    ?assertMatch([{warning, _, _}], test_autotracer:logged(Config)),
    ok = call(Config, fun() -> logger:remove_handler(dyntrace) end),
    until_handler(Config),
    _ = test_bpftrace:stop(Consumer),
    until_no_handler(Config).

no_trace_events(Config) ->
    Log = attached([{log, debug}, {log_limit, 1}], Config),
    Consumer = attach([process_scheduled, message_send, message_receive, gc_minor_start, gc_major_start], Config),
    test_autotracer:until_traced(Config),
    Keeper = handler(Config),
    call(Config, fun() -> [logger:error("~b", [N]) || N <- lists:seq(1, 10)] end),
    _ = test_bpftrace:await(Log, fun({log, #{text := Text}}) -> re:run(Text, "^dyntrace: . events") =/= nomatch end),
    Text = call(Config, fun() -> test_cases:text(Keeper) end),
    ?assertEqual([], [Event || Event = {_, Fields} <- test_bpftrace:stop(Consumer),
                               lists:member(Text, maps:values(Fields))]),
    _ = test_bpftrace:stop(Log).

%% -- Helpers -------------------------------------------------------------------------------

attached(Env, Config) ->
    start([{interval, 10} | Env], Config),
    attached(Config).

attached(Config) ->
    Consumer = attach([log], Config),
    until_following(sources, [log], Config),
    until_handler(Config),
    Consumer.

until_handler(Config) ->
    test_wait:until("the handler", fun erlang:is_pid/1, fun() -> handler(Config) end).

until_no_handler(Config) ->
    test_wait:until("no handler", none, fun() -> handler(Config) end).

until_no_keeper(Config) ->
    test_wait:until("no process is left", [],
                    fun() ->
                            call(Config, fun() ->
                                                 [P || P <- processes(), {initial_call, {dyntrace_log, keep, 1}}
                                                                             <- [process_info(P, initial_call)]]
                                         end)
                    end).

%% The process that keeps the handler, or `none'.
handler(Config) ->
    call(Config, fun() ->
                         case logger:get_handler_config(dyntrace) of
                             {ok, #{module := dyntrace_log, config := #{keeper := Keeper}}} -> Keeper;
                             {ok, _} -> another;
                             {error, {not_found, dyntrace}} -> none
                         end
                 end).
