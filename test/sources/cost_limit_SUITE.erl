%% The probe cost_limit: while it is enabled, tracing pauses when it has cost too much.
-module(cost_limit_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, detach/2, following/1, call/2, until_flags/3, until_following/3,
                          traced/2]).

-define(OPTIONS, #{budget => infinity, functions => []}).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [lengths, pauses, beside_consumers, with_options].

%% After a second in which the node has used a second of CPU time without tracing, and with 100 processes: 5 % of that
%% is 50 ms per second. 25,000 events cost 75 ms, and flags of 100 processes 0.4 ms.
lengths(_) ->
    Pause = fun(Events, Processes, CpuMs) -> dyntrace_cost_limit:pause(Events, Processes, 1000, CpuMs) end,
    ?assertEqual(508, Pause(25000, 100, 1075)),
    %% The node does nothing else: 1 % of a CPU is 10 ms per second.
    ?assertEqual(6540, Pause(25000, 100, 75)),
    %% 3,300 events cost as much, whatever the number of processes is.
    ?assertEqual(0, Pause(3300, 100000, 10)),
    ?assertEqual(0, Pause(0, 100, 0)),
    %% Too short to be worth it, so tracing goes on for a while; as long as allowed.
    ?assertEqual(208, Pause(20000, 100, 1060)),
    ?assertEqual(15000, Pause(25000, 200000, 1075)).

%% Pauses have no trace events, and the other sources go on. The events are those that LTTng has recorded.
pauses(Config) ->
    _ = test_require:tool(test_lttng:missing(), Config),
    lttng_SUITE:with_daemon(
      fun(Daemon) ->
              start([{interval, 20}, {sample_interval, 100}], Config),
              Flood = call(Config, fun() -> spawn(fun() -> test_autotracer:flood(spawn(fun test_autotracer:sink/0)) end)
                                   end),
              Session = lttng_SUITE:start(Daemon, [message_send, withheld, vm_counter, cost_limit], Config),
              until_flags(Flood, [send], Config),
              until_following(paused, true, Config),
              ?assertEqual([], traced(Flood, Config)),
              until_flags(Flood, [send], Config),
              until_following(paused, true, Config),
              ?assertEqual(0, maps:get(pauses, following(Config))),
              true = call(Config, fun() -> exit(Flood, kill) end),
              [{Limit, Traced}, {_, AfterPause} | _] = parts(test_lttng:stop(Session)),
              #{events := Events, traced := TracedNs, pause := PauseNs} = Limit,
              ?assert(PauseNs >= 500000000, Limit),
              ?assert(TracedNs >= 500000000, Limit),
              %% The pause of a node that does nothing else is the longest one.
              Longest = 1000000 * dyntrace_cost_limit:pause(Events, 2 * processes(Config), TracedNs div 1000000, 0),
              ?assert(PauseNs =< Longest, {Limit, Longest}),
              %% The flood goes on until its flags are cleared.
              Sends = length([send || {message_send, _} <- Traced]),
              ?assert(abs(Sends - Events) < Events div 20, {Sends, Limit}),
              {Until, Paused} = lists:splitwith(fun({Name, _}) -> Name =/= withheld end, AfterPause),
              ?assert(length(Until) < Events div 20, {length(Until), Limit}),
              {Withheld, _} = lists:splitwith(fun({Name, _}) -> Name =/= message_send end, Paused),
              ?assertEqual([<<"their trace flags were not set">>, <<"tracing pauses to limit its cost">>],
                           lists:usort([Why || {withheld, #{what := <<"all_events">>, why := Why}} <- Withheld])),
              ?assert(lists:keymember(vm_counter, 1, Withheld))
      end).

processes(Config) ->
    call(Config, fun() -> erlang:system_info(process_count) end).

%% Each event cost_limit with the events between the one before and it, then those after the last one.
parts(Events) ->
    parts(Events, [], []).

parts([], Since, Parts) ->
    lists:reverse([{none, lists:reverse(Since)} | Parts]);
parts([{cost_limit, Limit} | Later], Since, Parts) ->
    parts(Later, [], [{Limit, lists:reverse(Since)} | Parts]);
parts([Event | Later], Since, Parts) ->
    parts(Later, [Event | Since], Parts).

%% Other consumers of trace events get all events, whether they were attached before or after.
beside_consumers(Config) ->
    start([{interval, 20}], Config),
    On = fun() -> call(Config, fun() -> dyntrace_cost_limit:on([], ?OPTIONS) end) end,
    {on, Window} = On(),
    ?assertNotEqual(unlimited, Window),
    Consumer = attach([message_send], Config),
    until_flags(new, [send], Config),
    ?assertEqual({on, unlimited}, On()),
    ?assertEqual({on, unlimited}, call(Config, fun() -> dyntrace_cost_limit:poll([message_send], Window) end)),
    detach(Consumer, Config).

%% With a budget, the budget pauses tracing. The patterns of functions take long to set and to clear.
with_options(Config) ->
    [?assertEqual({on, unlimited}, call(Config, fun() -> dyntrace_cost_limit:on([], Options) end))
     || Options <- [#{budget => 1000, functions => []},
                    #{budget => infinity, functions => [{lists, '_', '_'}]}]].
