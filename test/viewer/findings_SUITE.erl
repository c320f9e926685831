%% The rules of the findings: a recording for each rule, and recordings of real, healthy nodes.
-module(findings_SUITE).

-include("../support/suite.hrl").

-import(test_viewer, [identity/3, identity/4, identity/5, exited/3, in/3, out/3, send/4, receipt/3, delivery/4,
                      call/3]).

-define(A, "<0.90.0>").
-define(B, "<0.91.0>").
-define(C, "<0.92.0>").
-define(D, "<0.93.0>").
-define(MS, 1000000).
-define(S, 1000000000).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [rules, refused_locks, not_found, gave_up_and_back, gave_up_at_the_end, frequent_error, formatting,
     terms_by_inference, copied_argument, storm_at_a_listener, suspended_first, stuck, not_stuck,
     loop_is_reported_once, results, crash_reports, kinds_of_crashes, worst_crashes_first, throttled_node,
     files_or_ports, ends_of_otp, parts_of_calls, chain, few_calls, next_is_said_once, idle_node, nodes_that_call,
     grows_at_the_end, grows_untraced, past_memory, exhausted, computing, stacks, planted, planted_waits, timed_out,
     busy_without_deliveries, timers].

init_per_suite(Config) ->
    test_require:tool(test_viewer:missing(), Config).

end_per_suite(_) -> ok.

%% Each rule finds its example of docs/findings.md.
rules(Config) ->
    {ok, Doc} = file:read_file(filename:join(test_shell:project(), "docs/findings.md")),
    {match, Documented} = re:run(Doc, "^## (\\w+)\n.*\n\n    (.*)$",
                                 [multiline, global, {capture, all_but_first, list}]),
    Found = [{atom_to_list(Rule), [lists:concat([Severity, "  ", Text]) || {Severity, Text} <- found(Rule, Report)]}
             || {{Rule, _}, Report} <- with_reports(fun({_, Events}) -> Events end, cases(), Config)],
    ?assertEqual(lists:sort([{Rule, Example} || [Rule, Example] <- Documented]),
                 lists:sort([{Rule, Text} || {Rule, Texts} <- Found, Text <- lists:sublist(Texts, 1)])).

%% {Rule, events}; or parameters of the sink and events.
cases() ->
    [{lost_events,
      [in(1000, ?A), #{time => 2000, lost => 12}, in(3000, ?A)]},
     {no_events,
      [{50, "other:function", #{pid => ?A}}]},
     {withheld,
      [in(1000, ?A) | [{N, withheld, #{what => "system_monitor", why => "<0.99.0> is the system monitor"}}
                       || N <- [2000, 3000]]]},
     {node_ended,
      {[{ended, "shop@host (8) ended: killed by SIGKILL\nbar@host (9) ended: exited with status 1"}], [in(0, ?A)]}},
     {node_stopped,
      [in(0, ?A), {2 * ?S, withheld, #{what => "all_events", why => "the node is shutting down"}}]},
     {cpu_quota, throttled(800000)},
     {exhausted_schedulers, blocked_files()},
     {held_scheduler, held([0, 2], 600)},
     {starved_processes, starved()},
     {gave_up, gave_up()},
     {restarts, crash_loop()},
     {crashes, [spawned(0, ?B, ?A), exited(10, ?B, "{badmatch,[]}")]},
     {purges, purged(true)},
     {formatting, formats(0)},
     {large_messages,
      copies(60, 3000000)},
     {large_objects,
      inserts(3, 24, 2)},
     {persistent_terms, searches("persistent_term:put/2", 200)},
     {timed_out_calls,
      [identity(0, ?A, "shop_db"), request(10, ?B, 1),
       {40, process_scheduled, #{pid => ?B, entry => "gen:do_call/4", type => "in"}}, receipt(50, ?B, "timeout"),
       reply(60, ?B, 1)]},
     {slow_server,
      [identity(0, ?A, "shop_db"), calls(12, 15 * ?MS)]},
     {saturated_server,
      [identity(0, ?A, "code_server"), asked(4, 1200)]},
     {lock_waits, locks(4, 500, "granted")},
     {selective_receive,
      [system(25), selective("prim_inet:do_sendto/4", "running")]},
     {growing_queue,
      [identity(0, ?A, "shop_db") | [sample(N * ?S, ?A, 100 + 310 * N, 56120448, 1000, "waiting")
                                     || N <- lists:seq(0, 4)]]},
     {stuck_process,
      [identity(0, ?A, "shop_db") | [sample(N * ?S, ?A, 1, 2600, 0, "suspended") || N <- lists:seq(0, 9)]]},
     {long_queue,
      [identity(0, ?A, "shop_db"), sample(?S, ?A, 91293, 2600, 1000, "running")]},
     {in_flight,
      [identity(0, ?A, "shop_db"), [send(N, ?B, ?A, "m") || N <- lists:seq(1, 1000)], delivery(2000, ?B, ?A, "m")]},
     {busy_receiver,
      [identity(0, ?A, "shop_db"),
       [[send(N, From, To, "m"), delivery(N, From, To, "m")]
        || N <- lists:seq(1, 1000), {From, To} <- [case N rem 10 of
                                                      0 -> {?A, ?B};
                                                      _ -> {?B, ?A}
                                                  end]]]},
     {failed_calls,
      [identity(0, ?A, "shop_db"), request(10, ?B, 1),
       delivery(20, ?A, ?B, "{'DOWN',#Ref<0.0.0.1>,process,<0.90.0>,noproc}")]},
     {dead_messages,
      [spawned(0, ?B, ?A), exited(10, ?B, "normal"), send(20, ?A, ?B, "m"), send(30, ?A, ?B, "m")]},
     {growing_heap,
      [identity(0, ?A, "shop_db"), grown([1000, 1000, 1400, 1700, 2000, 2000])]},
     {large_process,
      [identity(0, ?A, "shop_db"), sample(?S, ?A, 3, 512000000, 1000, "running")]},
     {long_collection,
      [identity(0, ?A, "shop_db"), collection(?MS, ?A, 20 * ?MS, 1000000)]},
     {collecting,
      [identity(0, ?A, "shop_db"), in(0, ?A), collection(100 * ?MS, ?A, 100 * ?MS, 10000000), out(400 * ?MS, ?A)]},
     {growing_off_heap,
      [identity(0, ?A, "shop_db"), collected(1, 1, 0), grows_off_heap([1, 2, 3, 4, 5, 6])]},
     {idle_memory,
      [identity(0, ?A, "shop_sup"), idle(290, 610000, 0)]},
     {process_limit,
      [identity(0, ?A, "shop_sup"), started_per_second(100),
       [exited(?S + N, pid(N), "normal") || N <- lists:seq(1, 10)],
       levels("processes", [100, 200, 300, 400, 500, 600, 700]), counter(0, "process_limit", 9000)]},
     {port_limit,
      [opened(), levels("ports", [10, 30, 50, 70, 90, 110]), counter(0, "port_limit", 65536)]},
     {file_limit, open_files(1024)},
     {atom_limit,
      [levels("atoms", [900000]), counter(0, "atom_limit", 1048576)]},
     {growing_table,
      [identity(0, ?A, "session_cache"), tables([2, 4, 6, 8, 10, 12])]},
     {growing_memory,
      [identity(0, ?A, "shop_db"), binaries(3), levels("memory_total", megabytes([50, 55, 60, 65, 70])),
       levels("memory_processes", megabytes([20, 21, 20, 22, 20])),
       levels("memory_binary", megabytes([10, 15, 20, 25, 30])), counter(0, "memory_limit", 512000000)]},
     {busy_process,
      [identity(0, ?A, "shop_db"), in(0, ?A), out(810 * ?MS, ?A), in(?S, ?B)]},
     {timers,
      [alone() | ticks(?A, 600)]},
     {file_io,
      [on(Thread, Event) || {Thread, Event} <- [{"1_scheduler", identity(0, ?A, "shop_db")},
                                                {"1_dirty_io_sche", in(0, ?A)}, {"1_dirty_io_sche", out(600 * ?MS, ?A)},
                                                {"1_scheduler", in(?S, ?B)}]]},
     {busy_schedulers,
      [[spawned(0, Pid, ?C) || Pid <- [?A, pid(7)]], in(0, pid(7)), out(10 * ?MS, pid(7)), waiting(20 * ?MS),
       counter(?S, "scheduler_utilization_1", 930), counter(?S, "dirty_io_utilization_1", 0)]},
     {lost_cpu,
      [identity(0, ?A, "shop_db"), collection(?MS, ?A, 237 * ?MS, 609)]},
     {long_wait,
      [spawned(0, ?A, ?C), waiting(200 * ?MS)]},
     {log_errors,
      [logged(0, "error", "Supervisor")]},
     {alarms,
      [logged(N, "warning", "memory resource limit alarm set on node rabbit@host. *** Publishers will be blocked until "
                            "this alarm clears ***") || N <- [0, 10]]},
     {warnings, [logged(0, "warning", "queue 7 is slow"),
                                                                      logged(9, "warning", "queue 12 is slow")]},
     {long_schedules,
      [identity(0, ?A, "shop_db") | [{At, vm_long_schedule, #{id => ?A, duration => Ms, started => From,
                                                              stopped => "shop:hash/1"}}
                                     || {At, Ms, From} <- [{1, 300, "pay:run/1"}, {2, 700, "gen_server:loop/7"}]]]},
     {reported_collections,
      [identity(0, ?A, "shop_db"), {10, vm_long_gc, #{pid => ?A, duration => 120, heap => 2000000, old_heap => 0,
                                                      fragments => 0}}]},
     {large_heaps,
      [identity(0, ?A, "shop_db"), {10, vm_large_heap, #{pid => ?A, heap => 1000000, old_heap => 10000000,
                                                         fragments => 0}}]},
     {blocked_ports, [identity(0, ?A, "shop_db"), port_identity(0, "#Port<0.5>", ?A, "tcp_inet"),
                                      queues("#Port<0.5>", 9000, [0, 0, 0, 0])]},
     {busy_ports,
      [identity(0, ?A, "shop_db"), {10, vm_busy_port, #{pid => ?A, port => "#Port<0.5>"}}]},
     {reported_queues,
      [identity(0, ?A, "shop_db") | [{N, vm_long_message_queue, #{pid => ?A, type => Type}}
                                     || {N, Type} <- [{10, "long"}, {20, "short"}]]]},
     {nodes_down,
      [down("worker@host", "visible", "net_tick_timeout")]},
     {failed_spans,
      [{0, user_span_start, #{pid => ?A, name => "pay", id => 1}},
       {9, user_span_stop, #{pid => ?A, name => "pay", id => 1, duration => 9, outcome => "error"}}]},
     {failed_telemetry, [telemetry(N * ?MS, lists:nth(1 + N rem 2, ["stop", "exception"]), ?MS)
                         || N <- lists:seq(1, 20)]},
     {slow_telemetry, queries(98, 600)},
     {short_connections, connections(20)},
     {short_lives, lives(100)},
     {exceptions, exceptions(10)},
     {traced_calls,
      [in(0, ?A), [[call(N * 1000, ?A), {N * 1000 + 500, function_return, #{pid => ?A, entry => "shop:pay/1",
                                                                          depth => 0}}] || N <- lists:seq(1, 50000)],
       out(50 * ?MS, ?A)]}].

%% A request of a route that ends now, and other telemetry.
telemetry(Time, Suffix, Ns) ->
    telemetry(Time, "shop.order." ++ Suffix, "route=><<\"/orders/:id\">>", Ns).

telemetry(Time, Name, Metadata, Ns) ->
    {Time, telemetry_event, #{pid => ?A, name => Name, duration => Ns, measurements => "#{}",
                              metadata => "#{" ++ Metadata ++ "}"}}.

%% Fast queries, and two slow ones.
queries(Fast, SlowMs) ->
    [telemetry(?S + N * ?MS, "shop.repo.query", "source=><<\"orders\">>", Ns)
     || {N, Ns} <- lists:enumerate(lists:duplicate(Fast, 3 * ?MS) ++ [SlowMs * ?MS, SlowMs * ?MS])].

%% A lock that is refused again and again, without long waits.
refused_locks(Config) ->
    ?assertMatch([{medium, "<0.90.0> mnesia_locker: 0.0 processes waited for locks on average (inferred), and 20 of 20 "
                           "requests made a transaction start again; " ++ _}],
                 found(lock_waits, report(locks(4, 1, "{not_granted,{cyclic,shop@host}}"), Config))).

%% Recordings that resemble a finding without being one, of each rule.
not_found(Config) ->
    ?assertEqual(lists:usort([Rule || {Rule, _} <- cases()]), lists:usort([Rule || {Rule, _} <- similar()])),
    [?assertEqual([], found(Rule, Report), Rule)
     || {{Rule, _}, Report} <- with_reports(fun({_, Events}) -> Events end, similar(), Config)].

%% {Rule, events}.
similar() ->
    [%% The recording is complete, has other events as well, and the node did not end.
     {lost_events, [in(1000, ?A), in(3000, ?A)]},
     {no_events, [in(0, ?A), {50, "other:function", #{pid => ?A}}]},
     {node_ended, {[{ended, ""}], [in(0, ?A)]}},
     %% Suspended without an event of the system monitor; a long queue that has samples.
     {busy_ports, [sample(N * ?S, ?A, 0, 2600, 0, State) || {N, State} <- [{0, "suspended"}, {1, "waiting"}]]},
     {reported_queues, [sample(?S, ?A, 91293, 2600, 1000, "running"),
                        {10, vm_long_message_queue, #{pid => ?A, type => "long"}}]},
     %% Without an event of the system monitor.
     {large_heaps, [collection(?MS, ?A, 20 * ?MS, 11000000)]},
     {long_schedules, [in(0, ?A), out(300 * ?MS, ?A)]},
     %% Just below the limits.
     {busy_process, [in(0, ?A), out(690 * ?MS, ?A), in(?S, ?B)]},
     {file_io, [on(Thread, Event) || {Thread, Event} <- [{"1_dirty_io_sche", in(0, ?A)},
                                                         {"1_dirty_io_sche", out(490 * ?MS, ?A)},
                                                         {"1_scheduler", in(?S, ?B)}]]},
     {large_process, [sample(?S, ?A, 3, 49000000, 1000, "running")]},
     {long_queue, [sample(?S, ?A, 999, 2600, 1000, "running")]},
     {short_connections, connections(9)},
     {short_lives, lives(49)},
     {exceptions, exceptions(9)},
     {traced_calls, [in(0, ?A), [call(N * 1000, ?A) || N <- lists:seq(1, 99999)], out(50 * ?MS, ?A)]},
     {slow_server, [identity(0, ?A, "shop_db"), calls(12, 9 * ?MS)]},
     {port_limit, [levels("ports", [10, 12, 14, 16, 18, 20]), counter(0, "port_limit", 65536)]},
     %% A large heap takes long to collect; two receivers share the messages; the call, the span and the message reach
     %% their ends; the caller gets its late reply; the log has no errors, and one warning.
     {lost_cpu, [collection(?MS, ?A, 237 * ?MS, 40000000)]},
     {busy_receiver, [[send(N, ?C, To, "m"), delivery(N, ?C, To, "m")]
                      || N <- lists:seq(1, 1000), To <- [?A, ?B, ?D]]},
     {failed_calls, [identity(0, ?A, "shop_db"), request(10, ?B, 1), reply(20, ?B, 1)]},
     {failed_spans, [{0, user_span_start, #{pid => ?A, name => "pay", id => 1}},
                     {9, user_span_stop, #{pid => ?A, name => "pay", id => 1, duration => 9, outcome => "ok"}}]},
     %% Few of many; the slowest of few, or not slow enough; slow by design; a slow job.
     {failed_telemetry, [telemetry(N * ?MS, case N rem 11 of 0 -> "exception"; _ -> "stop" end, ?MS)
                         || N <- lists:seq(1, 200)]},
     {failed_telemetry, [telemetry(N * ?MS, "exception", ?MS) || N <- lists:seq(1, 9)]},
     {slow_telemetry, queries(97, 600)},
     {slow_telemetry, queries(98, 490)},
     {slow_telemetry, [telemetry(N * ?S, "stop", ?S) || N <- lists:seq(1, 200)]},
     {slow_telemetry, [telemetry(N * ?S, "shop.job.stop", "worker=>'Elixir.Shop.Mail'", ?S * (1 + N div 190))
                       || N <- lists:seq(1, 200)]},
     {dead_messages, [spawned(0, ?B, ?A), send(20, ?A, ?B, "m"), exited(30, ?B, "normal")]},
     {timed_out_calls, [identity(0, ?A, "shop_db"), request(10, ?B, 1), reply(6 * ?S, ?B, 1),
                        receipt(6 * ?S, ?B, "m")]},
     {log_errors, [logged(0, "warning", "Supervisor")]},
     {warnings, [logged(0, "notice", "queue 7 is slow")]},
     {busy_schedulers, [waiting(20 * ?MS), counter(?S, "scheduler_utilization_1", 40)]},
     {busy_schedulers, [waiting(20 * ?MS)]},
     %% As many processes as schedulers; one of three often waits, or ran for short; schedulers that are not
     %% busy; a short time.
     {busy_schedulers, computing([1000, 1000, 0], 1)},
     {busy_schedulers, [computing([700, 700, 600], 1), [sample(N * ?S, pid(3), 0, 2600, 900, "waiting")
                                                         || N <- lists:seq(1, 3)]]},
     {busy_schedulers, computing([990, 980, 20], 1)},
     {busy_schedulers, [computing([700, 700, 600], 1) | [counter(N * ?S, "scheduler_utilization_2", 0)
                                                                || N <- lists:seq(1, 6)]]},
     {busy_schedulers, [Event || Event <- lists:flatten(computing([700, 700, 600], 1)), at(Event) < 3 * ?S]},
     %% A run queue that samples explain, or that is long for short.
     {busy_schedulers, computing([1000, 1000], 6)},
     {busy_schedulers, [computing([1000, 1000], 1), [counter(N * ?S, "run_queue", 90) || N <- [1, 3, 5]]]},
     {long_collection, [collection(?MS, ?A, 237 * ?MS, 609)]},
     {reported_collections, [{10, vm_long_gc, #{pid => ?A, duration => 237, heap => 609, old_heap => 0,
                                                fragments => 0}}]},
     %% The heap was as large before, but full of garbage: the live data has not grown.
     {growing_heap, [grown([1000, 1000, 1200, 1400, 1600, 1000, 1000])]},
     {growing_heap, [[collected(N, Words, 600) || {N, Words} <- lists:enumerate([1000, 1000, 1400, 1700, 2000,
                                                                                2000])]]},
     %% It uses much memory once, for a while.
     {growing_heap, [grown([1000, 1000, 2000, 2000, 2000])]},
     %% It had work to do, and has finished it.
     {growing_heap, [spawned(0, ?A, ?B), grown([1000, 1000, 1400, 1700, 2000, 2000]),
                     exited(5 * ?S, ?A, "normal")]},
     {growing_heap, [grown([1000, 1000, 1400, 1700, 2000, 2000]), in(10 * ?S, ?B), out(11 * ?S, ?B)]},
     %% The growth is its queue.
     {growing_heap, [grown([1000, 1000, 1400, 1700, 2000, 2000]), sample(?S, ?A, 5000, 2600, 1000, "running")]},
     %% Its heap grows, which is the finding.
     {long_collection, [grown([1000, 1000, 1400, 1700, 2000, 2000]), collected(7, 2000, 0, 20 * ?MS)]},
     {collecting, [grown([1000, 1000, 1400, 1700, 2000, 2000]), in(5 * ?S, ?A),
                   collected(7, 2000, 0, 300 * ?MS), out(6 * ?S, ?A)]},
     %% Its heap explains its memory.
     {growing_off_heap, [collected(1, 500, 0), grows_off_heap([1, 2, 3, 4, 5, 6])]},
     %% It has all the monitors that it needs.
     {growing_off_heap, [collected(1, 1, 0), grows_off_heap([1, 3, 5, 6, 6, 6, 6, 6])]},
     %% The memory may be that of its messages.
     {growing_off_heap, [collected(1, 1, 0), grows_off_heap([1, 2, 3, 4, 5, 6]),
                         sample(7 * ?S, ?A, 500, 7000000, 1000, "waiting")]},
     %% No collection shows what its heap has.
     {growing_off_heap, [grows_off_heap([1, 2, 3, 4, 5, 6])]},
     %% They run; other processes may have the memory; one of them has it.
     {idle_memory, idle(290, 610000, 17)},
     {idle_memory, idle(200, 610000, 0)},
     {idle_memory, [idle(290, 610000, 0), sample(2 * ?S, ?B, 0, 100000000, 0, "waiting")]},
     %% A pool that fills, and is full; a busy node whose number goes up and down; a slow growth.
     {process_limit, limited([100, 300, 500, 700, 900, 910, 910, 910, 910])},
     {process_limit, limited([700, 800, 750, 850, 800, 900, 850, 950])},
     {process_limit, limited([700, 701, 702, 703, 704, 705, 706])},
     %% The limit is far away; a pool that is full; and one that is almost as large as reported ones.
     {file_limit, open_files(1048576)},
     {file_limit, [levels("open_files", [600, 700, 800, 800, 800, 800, 800, 800]),
                   counter(0, "open_files_limit", 1024)]},
     {file_limit, [levels("open_files", [819]), counter(0, "open_files_limit", 1024)]},
     %% Stopped for 9 %; without a quota; for a short time; by schedulers of which nothing is known.
     {cpu_quota, throttled(180000)},
     {cpu_quota, throttled(0)},
     {cpu_quota, [levels("cpu_throttled", [0, 900000]), levels("scheduler_utilization_1", [900, 900])]},
     {cpu_quota, levels("cpu_throttled", [0, 900000, 1800000, 2700000])},
     %% Code is loaded at once.
     {process_limit, limited([700, 701, 702, 1703, 1704, 1705])},
     %% Too short to say.
     {process_limit, limited([100, 200, 300, 400])},
     %% A node that starts, and loads its modules.
     {atom_limit, [levels("atoms", [10000, 13000, 16000, 19000, 22000]), counter(0, "atom_limit", 1048576),
                   levels("memory_code", megabytes([4, 6, 8, 10, 12]))]},
     {growing_memory, [levels("memory_total", megabytes([20, 23, 26, 29, 33])),
                       levels("memory_code", megabytes([4, 6, 8, 10, 12]))]},
     %% A cache that reaches its size, garbage, and growth that another finding explains.
     {growing_memory, [levels("memory_total", megabytes([50, 60, 70, 75, 77, 78, 78, 78, 78]))]},
     %% A cache that reaches its size, a large table that grows a little, and one that is emptied.
     {growing_table, [tables([2, 4, 6, 8, 10, 11, 11, 11])]},
     {growing_table, [tables([120, 121, 122, 123, 124, 125])]},
     {growing_table, [tables([2, 4, 6, 8, 2, 4, 6, 8])]},
     {growing_memory, [levels("memory_total", megabytes([50, 55, 60, 65, 70])), tables([2, 6, 11, 16, 21]),
                       levels("memory_ets", megabytes([2, 6, 11, 16, 21]))]},
     {growing_memory, [levels("memory_total", megabytes([50, 55, 60, 52, 57, 62, 54, 59]))]},
     {growing_memory, [levels("memory_total", megabytes([50, 55, 60, 65, 70])),
                       grown([500, 500, 1400, 1700, 2000, 2000]),
                       levels("memory_processes", megabytes([20, 25, 30, 35, 40]))]},
     {nodes_down, [down("tool@host", "hidden", "connection_closed")]},
     {alarms, [logged(0, "warning", "memory resource limit alarm cleared on node rabbit@host")]},
     {node_stopped, [in(0, ?A), {?S, withheld, #{what => "all_events",
                                                 why => "the application has stopped tracing"}}]},
     {withheld, [in(0, ?A), {?S, withheld, #{what => "all_events", why => "the node is shutting down"}}]},
     %% A free scheduler; no process that waits; a short time.
     {exhausted_schedulers, [blocked_files() | [counter(2500 * ?MS, "dirty_io_utilization_2", 600)]]},
     {exhausted_schedulers, [Event || Event <- lists:flatten(blocked_files()), not is_waiting(Event)]},
     {exhausted_schedulers, [Event || Event <- lists:flatten(blocked_files()), at(Event) < 3 * ?S]},
     %% A few shorter runs; a single run in a long recording; a long run on a dirty scheduler, or of a process
     %% that the VM reports, or on a thread that the host delays.
     {held_scheduler, held([0, 2, 3], 400)},
     {held_scheduler, [held([0], 600), sample(7 * ?S, ?B, 0, 2600, 1000, "waiting")]},
     {held_scheduler, [held("1_dirty_cpu_sche", [0, 2], 1500), held("erts_dios_1", [4], 1500)]},
     {held_scheduler, [held([0, 2], 600), on("1_scheduler", {3 * ?S, vm_long_schedule,
                                                             #{id => ?A, duration => 600, started => "pay:run/1",
                                                               stopped => "pay:run/1"}})]},
     {held_scheduler, [held([0, 2], 600), collection(?S, ?B, 700 * ?MS, 609)]},
     %% It answers, so it is on a dirty scheduler.
     {held_scheduler, [sample(N * ?S, ?A, 0, 2600, 0, "running") || N <- lists:seq(0, 4)]},
     %% The schedulers are idle; the process runs between the samples; no process runs all the time.
     {starved_processes, [starved() | [counter(N * ?S, "scheduler_utilization_1", 0) || N <- lists:seq(5, 9)]]},
     {starved_processes, [case Event of
                              {_, process_sample, Of} -> setelement(3, Event, Of#{reductions => 200});
                              _ -> Event
                          end || Event <- lists:flatten(starved())]},
     {starved_processes, [Event || Event <- lists:flatten(starved()),
                                   element(2, Event) =/= process_scheduled]},
     %% The child is restarted and comes back; the supervisor is shut down in order.
     {gave_up, [crash_loop(), logged(5500 * ?MS, "error", report_of("child_terminated", "econnrefused")),
                exited(6 * ?S, ?A, "shutdown")]},
     %% Its child, a supervisor, has given up.
     {gave_up, [identity(0, ?A, "shop_sup", "supervisor:shop_sup/1"),
                logged(?S, "error", report_of("child_terminated", "reached_max_restart_intensity")),
                exited(6 * ?S, ?A, "shutdown")]},
     %% Five processes that run at the same time: none of them is a restart.
     {purges, purged(false)},
     %% They ran no old code; another process killed them afterwards.
     {purges, [identity(0, ?A, "erts_code_purger"), started(1, pid(1), ?B), purge(10, 20, true),
               exited(30, pid(1), "killed")]},
     %% Two purges at once: which one killed it is unknown.
     {purges, [started(1, pid(1), ?B), send(12, ?B, ?A, "{purge,other,<0.91.0>,#Ref<0.0.0.2>}"), purged(true)]},
     %% A purge is the cause.
     {crashes, purged(true)},
     {restarts, [[spawned(N, pid(N), ?A) || N <- lists:seq(1, 5)],
                 [exited(?S + N, pid(N), "econnrefused") || N <- lists:seq(1, 5)]]},
     %% Large binaries, which are not copied; a delay by the host; a message that explains a part of the time;
     %% a single copy.
     {large_messages, copies(60, 46)},
     {large_messages, copies(60, 0)},
     {large_messages, copies(60, 200000)},
     {large_messages, [Event || Event <- lists:flatten(copies(60, 3000000)), at(Event) < 2 * ?S]},
     {long_wait, copies(60, 3000000)},
     %% Many small objects; short runs.
     {large_objects, inserts(3, 24, 2000)},
     {large_objects, inserts(2, 24, 2)},
     %% The same after purges of code; few processes; a new configuration; processes that collect by themselves.
     {persistent_terms, [searches("shop:init/1", 200), identity(0, ?D, "erts_code_purger"),
                         [send(N * ?S, ?B, ?D, "{purge,shop,<0.91.0>,#Ref<0.0.0.1>}")
                          || N <- lists:seq(1, 4)]]},
     {persistent_terms, searches("persistent_term:put/2", 40)},
     {persistent_terms, [Event || Event <- lists:flatten(searches("persistent_term:put/2", 200)),
                                  at(Event) < 3 * ?S]},
     {persistent_terms, [[collection(N * ?S + M * 100, pid(M), 90, 5000) || N <- lists:seq(1, 4),
                                                                           M <- lists:seq(1, 100)],
                         send(0, ?A, ?B, "m"), counter(0, "processes", 200)]},
     %% A process that formats many small terms, and sends or writes each; and a short time.
     {formatting, [formats(0), [send(N * ?S div 4, ?A, ?B, "m") || N <- lists:seq(0, 12)]]},
     {formatting, [formats(0), [runs(N * ?S div 4 + 10 * ?MS - 1, ?A, "shop:write/2", 0)
                                || N <- lists:seq(0, 12)]]},
     {formatting, [Event || Event <- lists:flatten(formats(0)), at(Event) < 900 * ?MS]},
     %% Its queue gets longer and shorter.
     {growing_queue, [sample(N * ?S, ?A, 1000 + 1000 * (N rem 2) + N, 2600, 1000, "running")
                      || N <- lists:seq(0, 7)]},
     %% It is suspended, which is the finding.
     {growing_queue, suspended()},
     {long_wait, suspended()},
     %% A few messages that are never received; and a process that works.
     %% Fewer wakes; a connected node may have sent the messages; the process was preempted, or computes; a sender.
     {timers, [alone() | ticks(?A, 450)]},
     {timers, [levels("connected_nodes", [0, 1]), levels("reductions", [0, 0]) | ticks(?A, 600)]},
     {timers, ticks(?A, 600)},
     {timers, [alone(), levels("scheduler_utilization_1", [900, 900]) | ticks(?A, 600)]},
     {timers, [alone(), levels("reductions", [0, 4000000]) | ticks(?A, 600)]},
     {timers, [alone(), #{time => ?S, lost => 1} | ticks(?A, 600)]},
     {timers, [alone(), identity(0, ?B, "timer_server") | [send(At, ?B, ?A, "{#Ref<0.1.2.3>,ok}") || At <- ticks()]]},
     {timers, [alone(), [send(N * ?MS, ?B, ?A, "tick") || N <- lists:seq(1, 1000)]
               | ticks(?A, 600)]},
     {timers, [alone() | [ticks(pid(N), 40) || N <- lists:seq(1, 100)]]},
     %% The other side reads slowly, has read just now, or the connection was closed.
     {blocked_ports, queues("#Port<0.5>", 9000000, [0, 0, 2000, 0])},
     {blocked_ports, queues("#Port<0.5>", 9000000, [0, 0, 0, 0, 0, 2000])},
     {blocked_ports, [queues("#Port<0.5>", 9000000, [0, 0, 0, 0]), in(9 * ?S, ?A)]},
     {blocked_ports, [queues("#Port<0.5>", 9000000, [0, 0, 0, 0]),
                      {4 * ?S, port_exit, #{port => "#Port<0.5>", reason => "normal"}}]},
     {stuck_process, [sample(N * ?S, ?A, 5, 2600, 0, "waiting") || N <- lists:seq(0, 9)]},
     {stuck_process, [sample(N * ?S, ?A, 500, 2600, 1000, "waiting") || N <- lists:seq(0, 9)]},
     %% It happens to be suspended briefly at each sample.
     {stuck_process, [sample(N * ?S, ?A, 500, 2600, 400, "suspended") || N <- lists:seq(0, 9)]},
     {stuck_process, [[sample(N * ?S, ?A, 500, 2600, 30, "suspended"), send(N * ?S + 20, ?A, ?B, "m")]
                      || N <- lists:seq(0, 9)]},
     %% Its calls keep it as busy, but hardly a caller waits for another one.
     {saturated_server, [identity(0, ?A, "code_server"), asked(2, 1200)]},
     %% Four callers wait for few calls.
     {saturated_server, [identity(0, ?A, "code_server"), asked(4, 40)]},
     %% They wait for short.
     {lock_waits, locks(4, 100, "granted")},
     %% Few transactions start again.
     {lock_waits, locks(3, 10, "{not_granted,{cyclic,shop@host}}")},
     %% It has as many messages, but OTP 26 does not search them; it works on each; it waits.
     {selective_receive, [system(26), selective("prim_inet:do_sendto/4", "running")]},
     {selective_receive, [system(25), selective("shop_db:handle/2", "running")]},
     {selective_receive, [system(25), selective("prim_inet:recv0/3", "waiting")]},
     {in_flight, [[send(N, ?B, ?A, "m") || N <- lists:seq(1, 1000)], delivery(2000, ?B, "#Port<0.5>", "m")]},
     {in_flight, [[send(N, ?B, ?A, "m") || N <- lists:seq(1, 1000)], sample(1500, ?A, 2, 2600, 1000, "running"),
                  delivery(2000, ?B, ?A, "m")]},
     %% While processes were not traced, another one may have got the name.
     {in_flight, [[send(N, ?B, ?A, "m") || N <- lists:seq(1, 1000)], delivery(2000, ?B, ?A, "m"),
                  {3000, withheld, #{what => "all_events", why => "no consumer requests them"}}]}].

%% Processes that the VM preempts: their events do not show that they wait.
computing(Config) ->
    Busy = "the schedulers are 100 % busy on average, 100 % of it by ",
    ?assertEqual([{medium, Busy ++ "3 processes like <0.101.0> pay:run/1: 3 processes ran or could run in at least "
                                   "80 % of their samples, on 2 schedulers"},
                  {medium, Busy ++ "2 processes like <0.101.0> pay:run/1: 7 or more processes and ports were in the "
                                   "run queues in at least 80 % of the samples"}],
                 [Found || Report <- reports([computing([700, 700, 600], 1), computing([1000, 1000], 7)], Config),
                           Found <- found(busy_schedulers, Report)]).

%% While a quota stops the node, its processes seem to run and to wait: none of them is the cause, nor is the host.
throttled_node(Config) ->
    Runs = [[in(N * ?S, ?A), out(N * ?S + 900 * ?MS, ?A)] || N <- lists:seq(0, 8)],
    %% Of one node, whose scheduler is certain.
    Report = fun(Us, Busy, Events) ->
                     report([case Event of
                                 {_, _, _} -> on("1_scheduler", Event);
                                 _ -> Event
                             end || Event <- lists:flatten([quota(Us, Busy), Events])], Config)
             end,
    Found = fun(Rule, Us, Busy, Events) -> found(Rule, Report(Us, Busy, Events)) end,
    [?assertMatch({Rule, [{Severity, _}], Throttled}, {Rule, Found(Rule, 180000, Busy, Events),
                                                       [S || {S, _} <- Found(Rule, 800000, Busy, Events)]})
     || {Rule, Busy, Severity, Throttled, Events} <-
            [{busy_process, 910, medium, [], Runs},
             {busy_schedulers, 910, medium, [], waiting(20 * ?MS)},
             {long_wait, 100, low, [], waiting(200 * ?MS)},
             {lost_cpu, 910, low, [], collection(?MS, ?A, 237 * ?MS, 609)},
             {held_scheduler, 910, medium, [], held([0, 2], 600)},
             {starved_processes, 910, high, [], starved(2)},
             {long_schedules, 910, medium, [low], {3, vm_long_schedule, #{id => ?A, duration => 700,
                                                                          started => "pay:run/1",
                                                                          stopped => "pay:run/1"}}},
             %% Without the stops, they would be as long.
             {held_scheduler, 910, high, [high], held([0, 3], 2500)},
             {starved_processes, 910, high, [high], starved(4)}]],
    ?assertMatch([#{<<"rule">> := <<"cpu_quota">>} | _],
                 maps:get(<<"findings">>, Report(800000, 910, [held([0, 3], 2500), starved(4)]))).

%% After five minutes, as in a flight recorder: a level that has always been lower, and one that rises and falls.
grows_at_the_end(Config) ->
    Rises = [100 + 40 * N || N <- lists:seq(1, 20)],
    Limits = [found(process_limit, Report)
              || Report <- reports([limited(lists:duplicate(300, 100) ++ Rises),
                                    limited(lists:append([[100 | Rises] || _ <- lists:seq(1, 15)]))], Config)],
    ?assertEqual([[{high, "processes: 32 more per second for 25.0 s, 900 of at most 10000: at this rate, full in 5 "
                          "minutes"}], []], Limits).

%% Processes were traced in two of ten seconds: then those that are started and remain are the growth; not if some end,
%% because their number may be constant.
grows_untraced(Config) ->
    Counters = limited([1000 + 100 * N || N <- lists:seq(0, 10)]),
    Traced = [spawned(8 * ?S + N * 10 * ?MS, pid(N), ?A) || N <- lists:seq(1, 200)],
    Recording = fun(More) ->
                        lists:keysort(1, lists:flatten([identity(0, ?A, "front_desk"), Counters, Traced, More,
                                                        exited(9 * ?S, ?C, "normal"),
                                                        [{N * ?S + 1, withheld, #{what => "all_events", why => "none"}}
                                                         || N <- lists:seq(0, 7)]]))
                end,
    [Remain, End] = [found(process_limit, Report)
                     || Report <- reports([Recording([]),
                                           Recording([exited(10 * ?S + N, pid(N), "normal")
                                                      || N <- lists:seq(1, 40)])], Config)],
    Grows = "processes: 100 more per second for 10.0 s, 2000 of at most 10000: at this rate, full in 80 s",
    ?assertEqual([[{high, Grows ++ "; most are pay:run/1, started by <0.90.0> front_desk: 200 started, 0 ended"}],
                  [{high, Grows}]], [Remain, End]).

%% A process that is no longer sampled, while others are; and one in the last samples of a node that hangs.
past_memory(Config) ->
    Large = [sample(N * ?S, ?A, 0, 512000000, 1000, "waiting") || N <- lists:seq(1, 3)],
    Others = [sample(N * ?S, ?B, 0, 2600, 900, "waiting") || N <- lists:seq(1, 9)],
    Found = [found(large_process, Report)
             || Report <- reports([lists:keysort(1, Large ++ Others), Large ++ [in(60 * ?S, ?B)]], Config)],
    ?assertMatch([[], [{high, "<0.90.0> " ++ _}]], Found).

%% A socket is both. The limit that is reached first is reported.
files_or_ports(Config) ->
    Found = fun(Files, Ports) ->
                    Report = report([open_files(Files), levels("ports", [10, 30, 50, 70, 90, 110]),
                                     counter(0, "port_limit", Ports)], Config),
                    [Rule || Rule <- [file_limit, port_limit], found(Rule, Report) =/= []]
            end,
    ?assertEqual([file_limit], Found(1024, 65536)),
    ?assertEqual([port_limit], Found(1024, 128)),
    %% The culprits of sockets of the module `socket', and of files, which have processes.
    Culprit = fun(Events) ->
                      [{high, Text}] = found(file_limit, report([tl(open_files(1024)), Events], Config)),
                      [_, Shown] = string:split(Text, "full in 6 s"),
                      Shown
              end,
    ?assertEqual("; most are sockets of <0.90.0> uploads: 100 more, 160 in all, for example tcp 10.0.0.4:1 <-> "
                 "10.0.0.9:80",
                 Culprit([identity(0, ?A, "uploads"), sockets(?B, [50, 50, 50, 50, 60, 60]),
                          sockets(?A, [60, 80, 100, 120, 140, 160])])),
    ?assertEqual("", Culprit([identity(0, ?A, "uploads"), sockets(?A, [60, 60, 60, 60, 60, 80])])),
    ?assertEqual("; processes grew as well; most are pay:run/1, started by <0.90.0> uploads: 60 started, 0 ended",
                 Culprit([identity(0, ?A, "uploads"), [spawned(N * ?MS, pid(N), ?A) || N <- lists:seq(1, 60)]])),
    ?assertEqual("; processes grew as well; most are pay:run/1, started by <0.90.0> file_server_2, which <0.91.0> "
                 "writer called 40 times: 60 started, 0 ended",
                 Culprit([identity(0, ?A, "file_server_2"), identity(0, ?B, "writer"), calls(40, ?MS),
                          [spawned(N * ?MS, pid(N), ?A) || N <- lists:seq(1, 60)]])),
    %% Full, without growth.
    Limit = counter(0, "open_files_limit", 1024),
    Full = fun(Open) -> found(file_limit, report([levels("open_files", [Open]), Limit], Config)) end,
    [?assertEqual([{Severity, Text}], Full(Open))
     || {Open, Severity, Text} <- [{820, medium, "open files: 820 of at most 1024"},
                                   {1023, high, "open files: 1023 of at most 1024"}]].

%% The supervisor and its other child are started again.
gave_up_and_back(Config) ->
    Report = report([gave_up(), identity(0, ?C, "shop_sup", "supervisor:shop_sup/1"),
                     started(3200 * ?MS, "<0.93.0>", ?C, "supervisor:pay_sup/1"),
                     named(3210 * ?MS, "<0.93.0>", "pay_sup", "register"),
                     started(3220 * ?MS, "<0.94.0>", "<0.93.0>", "pay_ledger:init/1"),
                     named(3230 * ?MS, "<0.94.0>", "pay_ledger", "register"), in(4 * ?S, ?C)], Config),
    ?assertEqual([{medium, "<0.90.0> pay_sup gave up 3.05 s into the recording: its child pay_gateway <0.103.0> "
                           "crashed too often, last with gateway_down; terminated pay_ledger <0.91.0>; it was started "
                           "again"}],
                 found(gave_up, Report)).

%% The recording ends before the supervisor could be started again.
gave_up_at_the_end(Config) ->
    Report = report([Event || Event <- lists:flatten(gave_up()), at(Event) < 4 * ?S], Config),
    [{high, Text}] = found(gave_up, Report),
    ?assertMatch({match, _}, re:run(Text, "; terminated pay_ledger <0.91.0>$"), Text).

%% A crash report explains the time, memory, collections and queue of its process.
formatting(Config) ->
    Events = [formats(5 * ?S), collection(6 * ?S, ?A, 300 * ?MS, 10000000), in(10 * ?S, ?B)],
    Text = "<0.90.0> shop_db formatted a large term as text for 3.00 s, with up to 97.0 MB of memory, while 20 "
           "messages waited",
    ?assertEqual([{high, Text ++ ", as for a crash report of its state and messages"}],
                 found(all, report(Events, Config))),
    [?assertEqual([{high, Text ++ Why}], found(formatting, report([Events, Event], Config)))
     || {Why, Event} <- [{": its crash report, because it has crashed", exited(9 * ?S, ?A, "badarg")},
                         {": an error that it logged, such as its crash report", logged(4 * ?S, "error", "crash")}]].

%% The most frequent error is shown.
frequent_error(Config) ->
    Log = fun(Texts) ->
                  found(log_errors, report([logged(N, "error", Text) || {N, Text} <- lists:enumerate(Texts)], Config))
          end,
    [?assertEqual([{medium, Text}], Log(Texts))
     || {Text, Texts} <-
            [{"the log has 3 lines of level error or above, all by <0.90.0>; 2 times: queue 7 is lost",
              ["no disk", "queue 7 is lost", "queue 12 is lost"]},
             {"the log has 2 lines of level error or above, all by <0.90.0>: queue 7 is lost",
              ["queue 7 is lost", "queue 12 is lost"]},
             {"the log has 2 lines of level error or above, all by <0.90.0>; the first: no disk",
              ["no disk", "queue 7 is lost"]}]].

%% While the process is suspended, the VM moves messages to its queue, which uses reductions.
suspended_first(Config) ->
    Report = report(suspended(), Config),
    ?assertMatch([#{<<"rule">> := <<"stuck_process">>}], severe(Report)),
    ?assertEqual([{high, "<0.90.0> made no progress for 9.00 s (suspended) in pay:run/1, with 9010 messages in its "
                         "queue"}],
                 found(stuck_process, Report)).

%% The last process of a chain is the cause. In a circle, each one is.
stuck(Config) ->
    Found = fun(Events) -> found(stuck_process, report([identity(0, ?A, "shop_db"), identity(0, ?B, "shop_front"),
                                                        identity(0, ?C, "shop_web"), send(0, ?D, ?D, "m"),
                                                        Events], Config)) end,
    Front = stopped(?B, "gen:do_call/4", [1, 1, 1, 1], {"call", ?A, 2}),
    Circle = [stopped(?A, "gen:do_call/4", [6, 6, 6, 6], {"call", ?B, 6}), Front],
    ?assertEqual([{high, "deadlock for 3.00 s (since before the recording): <0.90.0> shop_db waits for <0.91.0> "
                         "shop_front, which waits for <0.90.0> shop_db; 6 callers wait"}], Found(Circle)),
    ?assertEqual([{high, "deadlock for 3.00 s (since before the recording): <0.90.0> shop_db waits for <0.91.0> "
                         "shop_front, which waits for <0.90.0> shop_db; behind it wait <0.92.0> shop_web; "
                         "5 callers wait"}],
                 Found([Circle, stopped(?C, "gen:do_call/4", [1, 1, 1, 1], {"call", ?A, 0})])),
    %% It waits for itself, by way of a hostile recording; and a circle that does not include the first process.
    ?assertMatch([{medium, "<0.91.0> shop_front made no progress for 3.00 s (since" ++ _}],
                 Found([stopped(?B, "gen:do_call/4", [1, 1, 1, 1], {"call", ?B, 2})])),
    Socket = stopped(?A, "prim_inet:recv0/3", [0, 0, 0, 0], {"socket", "", 1}),
    ?assertEqual([{high, "<0.90.0> shop_db made no progress for 3.00 s in prim_inet:recv0/3, waiting for a socket; "
                         "behind it wait <0.91.0> shop_front, <0.92.0> shop_web; 4 callers wait"}],
                 Found([Socket, Front, stopped(?C, "gen:do_call/4", [3, 3, 3, 3], {"call", ?B, 3})])),
    %% Of several processes that it monitors, a recorded call shows which one it waits for.
    ?assertEqual([{high, "<0.90.0> shop_db made no progress for 3.00 s in prim_inet:recv0/3, waiting for a socket; "
                         "behind it wait <0.91.0> shop_front; 3 callers wait"}],
                 Found([Socket, request(1, ?B, 7), stopped(?B, "gen:do_call/4", [1, 1, 1, 1], {"call", "", 2})])),
    %% The server may reply later. A remote server has no samples.
    ?assertEqual([{medium, "<0.91.0> shop_front made no progress for 3.00 s (since before the recording) in "
                           "gen:do_call/4, waiting for a reply of <0.90.0> shop_db, with 1 message in its queue; 2 "
                           "callers wait"}],
                 Found([Front, stopped(?A, "gen_server:loop/7", [0, 0, 0, 0], {"", "", 1})])),
    ?assertMatch([{medium, "<0.91.0> shop_front made no progress for 3.00 s (since before the recording) in "
                           "gen:do_call/4, waiting for a reply of {db,other@host}, with 1 message in its queue; 2 "
                           "callers wait"}],
                 Found([stopped(?B, "gen:do_call/4", [1, 1, 1, 1], {"call", "{db,other@host}", 2})])),
    %% No caller is known, but the queue grows, and each message wakes the process.
    ?assertMatch([{medium, "<0.90.0> shop_db" ++ _}],
                 Found([[sample(N * ?S, ?A, 1 + N, 0, min(N, 1) * 9, "waiting", "prim_inet:recv0/3")
                         || N <- lists:seq(0, 3)] | waits(?A, {"socket", "", 0})])),
    %% `sys:suspend' has suspended it: each message wakes it, and it collects garbage twice.
    ?assertMatch([{medium, "<0.90.0> shop_db made no progress for 3.00 s in sys:suspend_loop/6, with 41 messages in "
                           "its queue; 1 caller waits"}],
                 Found([[[sample(N * ?S, ?A, 11 + 10 * N, 8000, min(N, 1) * 90 + N rem 2 * 100, "waiting",
                                 "sys:suspend_loop/6"), [collection(N * ?S + 20, ?A, 9, 800) || N rem 2 =:= 0]]
                         || N <- lists:seq(0, 3)] | waits(?A, {"", "", 1})])),
    %% It tries to get the lock now and then; its holder works.
    ?assertEqual([{high, "<0.90.0> shop_db holds a lock of `global`: others have waited for it for 3.00 s; behind it "
                         "wait <0.91.0> shop_front; 2 callers wait"}],
                 Found([[sample(N * ?S, ?B, 2, 0, 500, "waiting", "global:random_sleep/1") || N <- lists:seq(0, 4)],
                        waits(?B, {"lock", ?A, 2}), waits(4, ?B, {"lock", ?A, 2})])),
    %% The same without messages or callers.
    ?assertEqual([{low, "<0.90.0> shop_db holds a lock of `global`: others have waited for it for 3.00 s; behind it "
                        "wait <0.91.0> shop_front"}],
                 Found([[sample(N * ?S, ?B, 0, 0, 500, "waiting", "global:random_sleep/1") || N <- lists:seq(0, 4)],
                        waits(?B, {"lock", ?A, 0}), waits(4, ?B, {"lock", ?A, 0})])),
    ?assertEqual([{medium, "<0.90.0> shop_db and 2 more made no progress for 3.00 s (suspended) in pay:run/1"}],
                 Found([sample(N * ?S, Pid, 0, 0, 0, "suspended") || N <- lists:seq(0, 3), Pid <- [?A, ?B, ?C]])).

%% What processes did at the end, which the command passes to the viewer.
stacks(Config) ->
    Busy = [identity(0, ?A, "shop_db"), in(0, ?A), out(810 * ?MS, ?A), in(?S, ?B)],
    Queue = [identity(0, ?A, "shop_db") | [sample(N * ?S, ?A, 100 + 310 * N, 56120448, 1000, "waiting")
                                           || N <- lists:seq(0, 4)]],
    Circle = [send(0, ?D, ?D, "m"), stopped(?A, "gen:do_call/4", [6, 6, 6, 6], {"call", ?B, 6}),
              stopped(?B, "gen:do_call/4", [1, 1, 1, 1], {"call", ?A, 2}), identity(0, ?A, "shop_db")],
    Text = fun(Rule, Events, Lines) ->
                   [{_, Text}] = found(Rule, report(on_node(8, Events, Lines), Config)),
                   Text
           end,
    Ran = {"shop@host", "8", "ran", "ran functions called from pay:run/1 (pay.erl:41) in 38 of 40 samples", ?A},
    Runs = {"shop@host", "8", "runs", "ran pay:sum/1", ?C ++ " " ++ ?A},
    Waits = {"shop@host", "8", "waits", "waited in gen:do_call/4, called from pay:run/1 (pay.erl:17)",
             ?A ++ " " ++ ?B},
    %% Of a busy process, what it ran. A stack in which it waits does not explain anything.
    None = Text(busy_process, Busy, []),
    ?assertEqual(None ++ "; near the end of the recording, <0.90.0> ran functions called from pay:run/1 (pay.erl:41) "
                 "in 38 of 40 samples", Text(busy_process, Busy, [Waits, Runs, Ran])),
    ?assertEqual(None ++ "; at the end of the recording, <0.90.0> ran pay:sum/1",
                 Text(busy_process, Busy, [Waits, Runs])),
    ?assertEqual(None, Text(busy_process, Busy, [Waits])),
    Grows = Text(growing_queue, Queue, []),
    At = "; at the end of the recording, <0.90.0> waited in gen:do_call/4, called from pay:run/1 (pay.erl:17)",
    ?assertEqual(Grows ++ At, Text(growing_queue, Queue, [Waits])),
    %% Both members of a circle.
    ?assertEqual(Text(stuck_process, Circle, []) ++ At ++ ", <0.91.0> waited in gen:do_call/4, called from pay:run/1 "
                 "(pay.erl:17)", Text(stuck_process, Circle, [Waits])),
    %% Another node, process number or process; invalid lines.
    [?assertEqual(Grows, Text(growing_queue, Queue, Lines))
     || Lines <- [[setelement(1, Waits, "shop@host2")], [setelement(1, Waits, "shop@hos")], [setelement(1, Waits, "")],
                  [setelement(2, Waits, "9")], [setelement(3, Waits, "sleeps")], [setelement(5, Waits, "<0.900.0>")],
                  [setelement(5, Waits, "")], [{""}, {"shop@host", "8"}, {"shop@host", "8", "waits", ?A}]]],
    %% Two nodes of that name and number, as in two containers.
    {Params, Events} = on_node(8, Queue, [Waits]),
    Twins = [#{trace => 1, environment => #{hostname => "other"}}
             | [{Time, Probe, Fields, Where#{trace => N}} || {Time, Probe, Fields, Where} <- Events, N <- [0, 1]]],
    Both = found(growing_queue, report({Params, Twins}, Config)),
    ?assertEqual([nomatch, nomatch], [re:run(Of, "at the end") || {high, Of} <- Both]),
    %% Hostile texts stay texts.
    Hostile = setelement(4, Waits, "waited in \e[31m</script><b>\\\"x\\\""),
    ?assertEqual(Grows ++ "; at the end of the recording, <0.90.0> waited in \e[31m</script><b>\"x\"",
                 Text(growing_queue, Queue, [Hostile])),
    Trace = test_viewer:make(Events, Config),
    [{stacks, Lines}] = element(1, on_node(8, Queue, [Hostile])),
    {0, Report} = test_viewer:view(report, [{stacks, Lines}], [Trace]),
    ?assertEqual({nomatch, match}, {re:run(Report, "\e"), re:run(Report, "waited\\s+in\\s+\\\\x1b\\[31m</script><b>",
                                                                   [{capture, none}])}),
    Page = Trace ++ ".html",
    {0, _} = test_viewer:view(html, [{stacks, Lines}, {path, Page}], [Trace]),
    {ok, Html} = file:read_file(Page),
    ?assertEqual({nomatch, match}, {re:run(Html, "</script><b>"), re:run(Html, "waited in ", [{capture, none}])}).

%% A recording of a node with this process number, and the lines about its processes.
on_node(OsPid, Events, Lines) ->
    {_, Sorted} = recording(Events),
    Fields = [lists:join("\t", tuple_to_list(Line)) || Line <- Lines],
    {[{stacks, lists:flatten(lists:join("\n", Fields))}],
     [{At, Probe, Of, #{vpid => OsPid}} || {At, Probe, Of} <- Sorted]}.

%% Healthy processes that resemble stuck ones.
not_stuck(Config) ->
    [?assertEqual({N, []}, {N, found(stuck_process, report([in(0, ?D), out(1, ?D), Events], Config))})
     || {N, Events} <- lists:enumerate(
            [%% A long call that ends.
             [stopped(?A, "gen:do_call/4", [2, 2, 2, 2], {"call", ?B, 2}), sample(4 * ?S, ?A, 0, 0, 900, "waiting")],
             %% The same at the end of a longer recording, whose samples no longer show the process.
             [stopped(?A, "gen:do_call/4", [2, 2, 2, 2], {"call", ?B, 2}), in(8 * ?S, ?D)],
             %% Messages that it does not receive, without callers.
             stopped(?A, "shop:loop/1", [3, 3, 3, 3], {"", "", 0}),
             stopped(?A, "gen:do_call/4", [3, 3, 3, 3], {"call", ?B, 0}),
             stopped(?A, "prim_inet:recv0/3", [1, 1, 1, 1], {"socket", "", 0}),
             %% A server that replies later.
             stopped(?A, "gen_server:loop/7", [0, 0, 0, 0], {"", "", 200}),
             %% It takes messages, as fast as they come, and sends requests.
             [[sample(N * ?S, ?A, 1 + 20 * N, 0, 150, "waiting", "gen:do_call/4"), send(N * ?S + 1, ?A, ?B, "m")]
              || N <- lists:seq(0, 4)] ++ waits(?A, {"call", ?B, 5}),
             %% It handles each tenth message without a reply, and collects garbage rarely.
             [[sample(N * ?S, ?A, 11 + 10 * N, 8000, min(N, 1) * 190, "waiting", "gen:do_call/4"),
               [collection(N * ?S + 20, ?A, 9, 800) || N =:= 1]] || N <- lists:seq(0, 4)]
             ++ waits(?A, {"call", ?B, 5}),
             %% Its queue gets shorter.
             stopped(?A, "gen:do_call/4", [9, 7, 5, 3], {"call", ?B, 3}),
             %% It is idle, and has got its first message just now.
             stopped(?A, "gen:do_call/4", [0, 0, 1, 1], {"call", ?B, 1}),
             %% The lock goes from one to the other.
             [[sample(N * ?S, ?B, 2, 0, 500, "waiting", "global:random_sleep/1") || N <- lists:seq(0, 4)]
              | [waits(N, ?B, {"lock", pid(N), 2}) || N <- lists:seq(1, 4)]],
             %% It has waited for two seconds.
             [[sample(N * ?S, ?B, 0, 0, 500, "waiting", "global:random_sleep/1") || N <- lists:seq(2, 4)]
              | [waits(N, ?B, {"lock", ?A, 0}) || N <- lists:seq(2, 4)]]])].

%% No event reports that an accepted socket was opened; the message to the accepting process does. Some sockets are
%% asked for their addresses while they are open.
storm_at_a_listener(Config) ->
    Address = "tcp_inet [::]:5672",
    Accepted = [[send(N * 10 * ?MS, port(0), ?A, "{inet_async," ++ port(0) ++ ",7,{ok," ++ port(N) ++ "}}"),
                 [port_identity(N * 10 * ?MS + 1, port(N), ?B, Address ++ " <-> [::1]:" ++ integer_to_list(40000 + N))
                  || N rem 2 =:= 0],
                 {N * 10 * ?MS + 9 * ?MS, port_exit, #{port => port(N), reason => "normal"}}] || N <- lists:seq(1, 99)],
    Report = report([port_identity(0, port(0), ?B, Address), Accepted, in(?S, ?A)], Config),
    ?assertEqual([{medium, "99 of 99 connections lived at most 500 ms, 99 per second: accepted by #Port<0.100> "
                           "tcp_inet [::]:5672"}], found(short_connections, Report)).

%% The crashes of a restart loop are not separate findings, nor is the crash of a process whose start is not recorded.
%% Other crashes are.
loop_is_reported_once(Config) ->
    Report = report([crash_loop(), exited(2, ?B, "econnrefused"), named(3, ?B, "ldap_pool", "unregister"),
                     started(4, ?C, ?A), exited(5, ?C, "econnrefused")], Config),
    ?assertMatch([_], found(restarts, Report)),
    ?assertEqual([{high, "<0.92.0> pay:run/1 crashed: econnrefused"}], found(crashes, Report)),
    Different = report([crash_loop(), started(6 * ?S, ?C, ?A), named(6 * ?S + 1, ?C, "ldap_pool", "register"),
                        exited(7 * ?S, ?C, "timeout")], Config),
    ?assertEqual([{high, "ldap_pool restarted 6 times in 7.00 s by <0.90.0> flaky_sup: econnrefused, and other "
                         "reasons"}], found(restarts, Different)),
    ?assertEqual([], found(crashes, Different)).

%% The exit reason of a process is its result if no link, supervisor, stack trace or error says otherwise.
results(Config) ->
    Link = fun(N) -> {N + 50, process_link, #{from => pid(N), to => ?A, type => "link"}} end,
    Results = [[[spawned(N, pid(N), ?A), exited(N + 100, pid(N), Reason)]
                || {N, Reason} <- lists:enumerate(["{result,17,2}", "{ok,shop,<<70,79,82>>}", "ok", "stopped",
                                                   "{error,{price,missing,[]}}", "killed"])],
               %% The parent traps exits.
               [[spawned(N, pid(N), ?A), Link(N), exited(N + 100, pid(N), "{done,1}")] || N <- [11, 12, 13, 14, 15]],
               %% It started before the recording.
               in(20, pid(20)), exited(120, pid(20), "{done,1}")],
    ?assertEqual([], found(all, report([Results, named(0, ?A, "job_runner", "register")], Config))),
    Crashed = fun(Events) -> found(crashes, report([Results, Events], Config)) end,
    ?assertMatch([{high, "<0.131.0> pay:run/1 crashed: {done,2}; 1 linked process ended with it"}],
                 Crashed([spawned(1, pid(31), ?C), Link(31), exited(200, pid(31), "{done,2}"),
                          exited(210, ?A, "{done,2}")])),
    [?assertMatch([{high, "<0.130.0> pay:run/1 crashed: " ++ _}],
                  Crashed([spawned(30, pid(30), ?A), exited(200, pid(30), Reason)]), Reason)
     || Reason <- ["badarg", "{badmatch,no}", "{{case_clause,1},[...", "{{nocatch,no},[{shop,pay,1,[]}]}",
                   "{no,[{shop,pay,[17],[]}]}", "{noproc,{gen_server,call,[shop,pay]}}",
                   "{#{'__exception__'=>true,'__struct__'=>'Elixir.A...", "#{message=>[],'__exception__'=>true}"]],
    ?assertEqual([], Crashed([spawned(30, pid(30), ?A), exited(200, pid(30), "#{error=>#{'__exception__'=>true}}")])),
    %% It belongs to a supervisor, or has a registered name.
    Earlier = [in(20, pid(40)), exited(200, pid(40), "killed")],
    ?assertEqual([], Crashed(Earlier)),
    [?assertMatch([{high, "<0.140.0> " ++ _}], Crashed([Known, Earlier]))
     || Known <- [[identity(10, ?B, "shop_sup", "supervisor:shop/1"), identity(11, pid(40), "", "shop:init/1", ?B)],
                  identity(10, pid(40), "shop_db")]].

%% The crash report of a process that is not traced is a crash. While it is traced, its exit is one.
crash_reports(Config) ->
    Untraced = {10, withheld, #{what => "all_events", why => "no consumer requests them"}},
    Reported = fun(At, Reason) -> {At, crash_report, #{pid => ?B, initial => "shop_oven:init/1", name => "shop_oven",
                                                       reason => Reason, text => "crasher: ..."}} end,
    Reason = "{burnt,[{shop_oven,bake,1,[{line,7}]}]}",
    Crashes = [{high, "<0.91.0> shop_oven crashed: " ++ Reason}],
    Found = [found(crashes, Report)
             || Report <- reports([[in(0, ?A), Untraced, Reported(20, Reason)],
                                   %% For example of a failed request: its process goes on.
                                   [in(0, ?A), Untraced, Reported(20, "")],
                                   [in(0, ?A), Reported(20, Reason)],
                                   [in(0, ?A), Reported(20, Reason), exited(30, ?B, Reason)]], Config)],
    ?assertEqual([Crashes, [], [], Crashes], Found).

%% The same kind: reasons that differ only in data.
kinds_of_crashes(Config) ->
    Stack = fun(Data, Line) -> lists:concat(["{{badmatch,", Data, "},[{shop,pay,1,[{line,", Line, "}]}]}"]) end,
    Reasons = ["{noproc,#Ref<0.1.2.3>,<0.7.0>}", "{noproc,#Ref<0.1.2.4>,<0.8.0>}", "{noproc,#Port<0.5>,<0.8.0>}",
               "badarg", Stack(1, 7), Stack(1, 8)
               | [Stack(Data, 7) || Data <- ["-1.5e-3", "<<6 bytes>>", "0"]]],
    Report = report([[started(N, pid(N), ?A), exited(N + 100, pid(N), Reason)]
                     || {N, Reason} <- lists:enumerate(Reasons)], Config),
    ?assertEqual([{high, "<0.105.0> pay:run/1 and 3 more with the same initial call crashed: "
                         "{{badmatch,_},[{shop,pay,1,[{line,7}]}]}"},
                  {high, "<0.101.0> pay:run/1 and 1 more with the same initial call crashed: {noproc,#Ref<..>,<..>}"},
                  {high, "<0.103.0> pay:run/1 crashed: {noproc,#Port<0.5>,<0.8.0>}"},
                  {medium, "2 more kinds of crashes"}], found(crashes, Report)).

%% The order is: crashes that took other processes down, crashes that led to restarts, then by number.
worst_crashes_first(Config) ->
    Report = report([[started(N, pid(N), ?A) || N <- lists:seq(1, 6)],
                     [exited(100 + N, pid(N), "often") || N <- [1, 2]],
                     {200, process_link, #{from => pid(4), to => pid(5), type => "link"}},
                     exited(300, pid(4), "once"), exited(310, pid(5), "once")], Config),
    ?assertEqual([{high, "<0.104.0> pay:run/1 and 1 more with the same initial call crashed: once; "
                         "1 linked process ended with them"},
                  {high, "<0.101.0> pay:run/1 and 1 more with the same initial call crashed: often"}],
                 found(crashes, Report)).

ends_of_otp(Config) ->
    Ends = [{"erts_internal:spawn_init/1", "{#Ref<0.1.2.3>,return,60}", false},
            {"erts_internal:dist_spawn_init/1", "{#Ref<0.1.2.3>,throw,oops}", false},
            {"erts_internal:dist_spawn_init/1", "{#Ref<0.1.2.3>,error,badarith,[]}", false},
            {"erts_internal:dist_spawn_init/1", "{#Ref<0.1.2.3>,exit,oops}", false},
            {"erts_internal:dist_spawn_init/1", "badarith", true},
            {"erts_internal:spawn_init/1", "{reference(),return,integer()}", false},
            {"erts_internal:spawn_init/1", "{#Ref<0.1.2.3>,returns,60}", true},
            {"shop:init/1", "{#Ref<0.1.2.3>,return,60}", true},
            {"#Fun<file_io_server.0.125668607>", "enoent", false},
            {"#Fun<file_io_server.0.125668607>", "badarg", true},
            {"shop:init/1", "enoent", true},
            {"inet_tcp_dist:do_accept/7", "connection_closed", false},
            {"inet_tcp_dist:do_setup/6", "disconnect", false},
            {"inet_tcp_dist:do_setup/7", "remarked", false},
            {"dist_util:setup_timer/2", "remarked", false},
            {"inet_tcp_dist:do_setup/6", "net_tick_timeout", true},
            {"inet_tcp_dist:do_setup/6", "tcp_closed", false},
            {"inet_tcp_dist:do_setup/6", "tcp_closed_by_us", true},
            {"shop:init/1", "connection_closed", true},
            {"#Fun<global.16.112854349>", "killed", false},
            {"shop:init/1", "killed", true},
            {"shop:init/1", "{shutdown,{failed,1}}", false},
            {"shop:init/1", "{shutdown}", true},
            {"shop:init/1", "shutdown_failed", true}],
    %% The recording does not have this process's initial call.
    Unknown = exited(90, pid(90), "{#Ref<0.1.2.3>,return,60}"),
    Report = report([[[started(N, pid(N), ?A, Initial),
                       exited(100 + N, pid(N), Reason)] || {N, {Initial, Reason, _}} <- lists:enumerate(Ends)],
                     Unknown], Config),
    ?assertEqual([{Initial, Reason} || {Initial, Reason, true} <- Ends],
                 [{binary_to_list(Initial), binary_to_list(Reason)}
                  || #{<<"process">> := #{<<"show">> := Show}, <<"reason">> := Reason} <- maps:get(<<"exits">>, Report),
                     Initial <- [hd(binary:split(Show, <<" ">>))]]).

%% Servers that are not slow: one that replies later, and one that has too little CPU.
parts_of_calls(Config) ->
    Loop = fun(At, Type) -> {At, process_scheduled, #{pid => ?A, entry => "gen_server:loop/7", type => Type}} end,
    %% The server takes each call after Wait, and works for 10 us. Until the reply it waits in its loop.
    Calls = fun(Wait, Deferred) ->
                    [begin
                         At = N * 500 * ?MS,
                         Stop = At + Wait + 10000,
                         [request(At, ?B, N), Loop(At + Wait, "in"), Loop(Stop, "out"),
                          Loop(Stop + Deferred, "in"), reply(Stop + Deferred + 1, ?B, N),
                          Loop(Stop + Deferred + 2, "out")]
                     end || N <- lists:seq(1, 20)]
            end,
    Found = fun(Wait, Deferred) ->
                    found(slow_server, report([identity(0, ?A, "shop_db"), Loop(1, "in"), Loop(2, "out"),
                                               Calls(Wait, Deferred)], Config))
            end,
    ?assertEqual([], Found(10000, 400 * ?MS)),
    ?assertEqual([{low, "<0.90.0> shop_db: callers waited 44.0 ms (median of 20 calls): 0 in its mailbox, 44.0 ms "
                        "while it waited for a scheduler, 10.0 µs for its work, 1 ns until it replied later (median "
                        "of each, inferred)"}], Found(44 * ?MS, 0)).

%% The last server of a chain is the cause.
chain(Config) ->
    Run = fun(At, Pid, Type, In) -> {At, process_scheduled, #{pid => Pid, entry => In, type => Type}} end,
    Call = fun(From, Ref) ->
                   lists:flatten(io_lib:format("{'$gen_call',{~s,#Ref<0.0.0.~b>},get}", [From, Ref]))
           end,
    Reply = fun(Ref) -> lists:flatten(io_lib:format("{#Ref<0.0.0.~b>,ok}", [Ref])) end,
    Calls = [begin
                 At = N * 100 * ?MS,
                 Done = At + 15 * ?MS,
                 [send(At, ?B, ?A, Call(?B, N)), Run(At + 1, ?A, "in", "gen_server:loop/7"),
                  send(At + 2, ?A, ?C, Call(?A, 1000 + N)), Run(At + 3, ?A, "out", "gen:do_call/4"),
                  Run(At + 3, ?C, "in", "gen_server:loop/7"), send(Done, ?C, ?A, Reply(1000 + N)),
                  Run(Done + 1, ?C, "out", "gen_server:loop/7"), Run(Done + 2, ?A, "in", "gen:do_call/4"),
                  send(Done + 3, ?A, ?B, Reply(N)), Run(Done + 4, ?A, "out", "gen_server:loop/7")]
             end || N <- lists:seq(1, 12)],
    Report = report([identity(0, ?A, "fs_front"), identity(0, ?C, "fs_db"), Calls], Config),
    [{high, "<0.92.0> fs_db: callers waited 15.0 ms" ++ _}, {low, "<0.90.0> fs_front: callers waited " ++ Front}] =
        found(slow_server, Report),
    ?assertNotEqual(nomatch, string:find(Front, "; most of its work is waiting for <0.92.0> fs_db")).

%% A few calls have no percentile.
few_calls(Config) ->
    Few = report([identity(0, ?A, "shop_db"), calls(99, ?MS)], Config),
    ?assertMatch([#{<<"count">> := 99, <<"p99_ns">> := null, <<"max_ns">> := ?MS, <<"worked_p99_ns">> := null,
                    <<"worked_max_ns">> := ?MS}], maps:get(<<"server_calls">>, Few)),
    Enough = report([identity(0, ?A, "shop_db"), calls(100, ?MS)], Config),
    ?assertMatch([#{<<"count">> := 100, <<"p99_ns">> := P99}] when is_integer(P99),
                 maps:get(<<"server_calls">>, Enough)),
    Once = fun(Ms) -> found(slow_server, report([identity(0, ?A, "shop_db"), calls(1, Ms * ?MS)], Config)) end,
    ?assertEqual([{low, "<0.90.0> shop_db: callers waited 150 ms (the longest of 1 call): 0 in its mailbox, "
                        "150 ms for its work (the longest of each, inferred)"}], Once(150)),
    ?assertEqual([], Once(15)).

%% The text has the next step only at the first finding of a rule.
next_is_said_once(Config) ->
    Lines = test_viewer:lines(report, [], [test_viewer:make(lists:flatten(
                [started(0, ?B, ?A), exited(10, ?B, "one"), started(20, ?C, ?A), exited(30, ?C, "two")]), Config)]),
    ?assertEqual([<<"  high    <0.91.0> pay:run/1 crashed: one">>,
                  <<"          next: see the linked processes in the table of crashes; `dyntrace run exits`">>,
                  <<"  high    <0.92.0> pay:run/1 crashed: two">>], lists:sublist(Lines, 2, 3)).

%% -- Real nodes ----------------------------------------------------------------------------------

idle_node(Config) ->
    Folder = folder("idle", Config),
    ok = test_recording:make(Folder, fun(Node) -> sampled(Node, 5) end),
    Report = test_viewer:json(report, [{format, "json"}], [Folder]),
    #{<<"recording">> := #{<<"kinds">> := Kinds}} = Report,
    [?assert(lists:member(Kind, Kinds), {Kind, Kinds}) || Kind <- [<<"samples">>, <<"counters">>, <<"scheduling">>]],
    ?assertEqual([], [Finding || Finding <- severe(Report), not is_of_machine(Finding)]),
    %% The application's worker traces every process except itself, and leaves no run without an end.
    ?assertMatch([null], [Run || #{<<"process">> := #{<<"name">> := <<"dyntrace_autotracer">>}, <<"run_ns">> := Run}
                                     <- maps:get(<<"processes">>, Report)]).

%% Two nodes that call each other, and a third one that connects and leaves.
nodes_that_call(Config) ->
    Folder = folder("calling", Config),
    ok = test_recording:make(Folder, #{named => ["one", "other"]}, fun(Nodes) -> call_each_other(Nodes) end),
    Found = severe(test_viewer:json(report, [{format, "json"}], [Folder])),
    %% On a busy machine, modules of inets load slowly.
    IsCodeServer = fun(#{<<"text">> := Text}) -> string:find(Text, "code_server of") =/= nomatch end,
    ?assertEqual([], [Finding || Finding <- Found, not is_of_machine(Finding), not IsCodeServer(Finding)]).

%% On a busy machine, a collection of a large heap may wait for a CPU: here, of the process that loads the test's code.
is_of_machine(#{<<"rule">> := Rule}) ->
    Rule =:= <<"long_collection">>.

call_each_other([One, Other]) ->
    Name = test_node:call(Other, fun() -> node() end),
    Mine = test_node:call(One, fun() -> node() end),
    test_node:call(One, fun() ->
                                pong = net_adm:ping(Name),
                                Name = erpc:call(Name, erlang, node, []),
                                Name = rpc:call(Name, erlang, node, []),
                                {[Mine, Name], []} = rpc:multicall([Mine, Name], erlang, node, []),
                                {badrpc, {'EXIT', {badarith, _}}} = rpc:call(Name, erlang, '+', [1, a]),
                                oops = try erpc:call(Name, erlang, throw, [oops]) catch throw:Thrown -> Thrown end,
                                [{ok, Mine}, {ok, Name}] = erpc:multicall([Mine, Name], erlang, node, []),
                                ok = application:start(inets),
                                ok = application:stop(inets),
                                true = erlang:disconnect_node(Name),
                                pong = net_adm:ping(Name),
                                ok
                        end),
    test_node:call(Other, fun() -> true = erlang:disconnect_node(Mine), ok end).

%% Processes of one kind, messages of the timer server, and recorded deliveries.
timers(Config) ->
    ?assertEqual([{low, "100 processes like <0.101.0> session_mgr: 6000 times per second, a wait ended without a "
                        "recorded message: timers, signals or a NIF (inferred)"}],
                 found(timers, report([alone() | [ticks(pid(N), 60) || N <- lists:seq(1, 100)]], Config))),
    ?assertEqual([{low, "<0.90.0> session_mgr: 600 times per second, a wait ended without a recorded message: timers, "
                        "signals or a NIF (inferred)"}],
                 found(timers, report([alone(), ticks(?A, 1), identity(0, ?B, "timer_server")
                                       | [send(At, ?B, ?A, "tick") || At <- ticks()]], Config))),
    ?assertEqual([{medium, "<0.90.0> session_mgr: timers sent 600 messages per second"}],
                 found(timers, report([ticks(?A, 1)
                                       | [{At, message_delivery, #{from => "", to => ?A, node => "clock_service",
                                                                   message => "tick"}} || At <- ticks()]], Config))).

%% Uses the events that the command records by default. The caller polls its mailbox, and receives other messages and
%% signals while it waits for the reply, also when its timeout has expired and other processes keep it from running.
timed_out(Config) ->
    Folder = folder("timed_out", Config),
    Probes = [message_send, message_delivery, process_scheduled, process_identity, process_register],
    ok = test_recording:make(Folder, #{probes => Probes}, fun([Node]) -> test_node:call(Node, fun call_in_vain/0) end),
    #{<<"server_calls">> := Calls} = test_viewer:json(report, [{format, "json"}], [Folder]),
    ?assertEqual([{30, 0}, {30, 30}],
                 lists:sort([{Count, Timeouts} || #{<<"server">> := #{<<"name">> := <<"vain">>},
                                                    <<"count">> := Count, <<"timeouts">> := Timeouts} <- Calls])).

%% On the node: every second call has no reply.
call_in_vain() ->
    Caller = self(),
    Server = named(vain, fun Loop() ->
                                 receive
                                     {'$gen_call', From, reply} -> gen_server:reply(From, ok), Loop();
                                     {'$gen_call', _, none} -> Loop()
                                 end
                         end),
    Poller = spawn(fun Loop() ->
                           receive stop -> ok
                           after 1 -> Caller ! poll, erlang:process_info(Caller, current_function), Loop()
                           end
                   end),
    Busy = [spawn(fun Loop() -> lists:seq(1, 3000), Loop() end)
            || _ <- lists:seq(1, 2 * erlang:system_info(schedulers))],
    [begin
         polled(),
         {timeout, _} = try gen_server:call(Server, none, 5) catch exit:Reason -> Reason end,
         polled(),
         ok = gen_server:call(Server, reply)
     end || _ <- lists:seq(1, 30)],
    Poller ! stop,
    [true = exit(Pid, kill) || Pid <- [Server | Busy]],
    ok.

polled() ->
    receive poll -> polled()
    after 0 -> ok
    end.

%% FIFOs without a writer occupy all dirty I/O schedulers of a node, so a file is not read. Meanwhile a supervisor
%% gives up. If it first needs a module that is not loaded, it gives up only at the end of the recording.
exhausted(Config) ->
    Folder = folder("exhausted", Config),
    Fifos = [folder("fifo" ++ integer_to_list(N), Config) || N <- lists:seq(1, 10)],
    "" = os:cmd(lists:join(" ", ["mkfifo" | Fifos])),
    ok = test_recording:make(Folder, fun(Node) ->
                                             try test_node:call(Node, fun() -> occupy(Fifos) end)
                                             after [os:cmd(": > " ++ Fifo) || Fifo <- Fifos]
                                             end,
                                             test_wait:until("the supervisor has given up", undefined,
                                                             fun() -> whereis_on(Node, gives_up) end)
                                     end),
    Report = test_viewer:json(report, [{format, "json"}], [Folder]),
    [{high, Busy}] = found(exhausted_schedulers, Report),
    ?assertMatch({match, _}, re:run(Busy, "^all 10 dirty I/O schedulers were busy for .* and up to [12] process(es)? "
                                          "waited for one, among them .* reader; they were in prim_file:open_nif/2, "
                                          "by <[0-9.]+> tail_\\d+, <.* and 7 more$"), Busy),
    [{high, GaveUp}] = found(gave_up, Report),
    ?assertMatch({match, _}, re:run(GaveUp, "^<[0-9.]+> gives_up gave up .*: its child .* crashed too often, last with "
                                            "no_gateway(; it was not started again)?$"), GaveUp).

whereis_on(Node, Name) ->
    test_node:call(Node, fun() -> whereis(Name) end).

%% Runs on the node for seven seconds. The modules are loaded first, because that needs files.
occupy(Fifos) ->
    {ok, _} = read_file(),
    10 = erlang:system_info(dirty_io_schedulers),
    [named(list_to_atom("tail_" ++ integer_to_list(N)), fun() -> file:open(Fifo, [raw, read]) end)
     || {N, Fifo} <- lists:enumerate(Fifos)],
    receive after 1000 -> ok end,
    _ = named(reader, fun read_file/0),
    _ = named(owner, fun() ->
                             {ok, Supervisor} = supervisor:start_link({local, gives_up}, ?MODULE, []),
                             true = unlink(Supervisor),
                             receive stop -> ok end
                     end),
    receive after 6000 -> ok end.

read_file() ->
    file:read_file_info("/", [raw]).

init([]) ->
    {ok, {#{}, [#{id => gateway, start => {?MODULE, start_gateway, []}}]}}.

start_gateway() ->
    {ok, proc_lib:spawn_link(fun() -> receive after 300 -> exit(no_gateway) end end)}.

%% Each planted fault is found under the name of its process.
planted(Config) ->
    Folder = folder("planted", Config),
    ok = test_recording:make(Folder, fun(Node) -> test_node:call(Node, fun plant/0) end),
    Report = test_viewer:json(report, [{format, "json"}], [Folder]),
    [?assertMatch([Name], [Found || #{<<"rule">> := Of, <<"process">> := #{<<"name">> := Found}}
                                        <- maps:get(<<"findings">>, Report), Of =:= Rule], Rule)
     || {Rule, Name} <- [{<<"growing_queue">>, <<"slow">>}, {<<"stuck_process">>, <<"stuck">>},
                         {<<"large_process">>, <<"fat">>}, {<<"process_limit">>, <<"leaky">>},
                         {<<"growing_table">>, <<"cache">>}]],
    ?assertMatch([#{<<"text">> := <<"flaky restarted ", _/binary>>}],
                 [Finding || Finding = #{<<"rule">> := <<"restarts">>} <- maps:get(<<"findings">>, Report)]).

%% Runs on the node for eight seconds.
plant() ->
    Slow = named(slow, fun() -> receive stop -> ok end end),
    Stuck = named(stuck, fun Loop() -> receive _ -> Loop() end end),
    Self = self(),
    Fat = named(fat, fun() ->
                             List = lists:seq(1, 8000000),
                             Self ! large,
                             receive stop -> length(List) end
                     end),
    receive large -> ok end,
    %% These two grow until the node is stopped.
    _ = named(leaky, fun Loop() -> [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 5)],
                                   receive after 100 -> Loop() end end),
    _ = named(cache, fun() -> cache(ets:new(sessions, []), 0) end),
    Keeper = spawn(fun() -> process_flag(trap_exit, true), keep(none) end),
    true = erlang:suspend_process(Stuck),
    [Stuck ! N || N <- lists:seq(1, 200)],
    ok = send(Slow, 80),
    [exit(Pid, kill) || Pid <- [Keeper, Slow, Stuck, Fat]],
    ok.

%% Processes that wait for others, by their names, beside healthy ones.
planted_waits(Config) ->
    Folder = folder("planted_waits", Config),
    ok = test_recording:make(Folder, fun(Node) -> test_node:call(Node, fun plant_waits/0) end),
    Report = test_viewer:json(report, [{format, "json"}], [Folder]),
    Found = [unicode:characters_to_list(Text) || {_, Text} <- found(stuck_process, Report)],
    Expected = ["deadlock for .* prices waits for .* stock, which waits for .* prices; 5 callers wait",
                " shop_db made no progress .* in prim_inet:recv0/3, waiting for a socket, with 2 messages in its "
                "queue; behind it wait .* shop_front; 4 callers wait",
                " locker .*in timer:sleep/1 holds a lock of `global`: .*; behind it wait .* locked; 2 callers wait"],
    ?assertEqual(length(Expected), length(Found), Found),
    [?assertMatch({_, [_]}, {One, [Text || Text <- Found, re:run(Text, One) =/= nomatch]}, Found) || One <- Expected].

%% Runs on the node for eight seconds.
plant_waits() ->
    Call = fun(Server) -> fun() -> gen_server:call(Server, get, infinity) end end,
    Serve = fun(Name, Fun) -> named(Name, fun() -> serve(Fun) end) end,
    Callers = fun(Server, N) -> [spawn(Call(Server)) || _ <- lists:seq(1, N)] end,
    Self = self(),
    _ = spawn(fun() ->
                      {ok, Socket} = gen_tcp:listen(0, [{active, false}]),
                      Self ! inet:port(Socket),
                      timer:sleep(infinity)
              end),
    Port = receive {ok, Opened} -> Opened end,
    {ok, Listener} = gen_tcp:listen(0, [{active, false}]),
    Silent = fun() ->
                     {ok, Socket} = gen_tcp:connect("127.0.0.1", Port, [{active, false}]),
                     gen_tcp:recv(Socket, 0)
             end,
    Lock = fun() -> global:set_lock({shop, self()}) end,
    _ = [Serve(prices, Call(stock)), Serve(stock, Call(prices)), Serve(shop_db, Silent),
         Serve(shop_front, Call(shop_db)), named(locker, fun() -> Lock(), timer:sleep(infinity) end)],
    [Name ! work || Name <- [prices, stock]],
    [spawn(Call(shop_db)) || _ <- [1, 2]],
    timer:sleep(200),
    _ = Serve(locked, Lock),
    Acceptor = named(acceptor, fun() -> gen_tcp:accept(Listener) end),
    _ = named(pool, fun() -> receive never -> ok end end),
    Healthy = [named(connection, Silent),
               named(source, fun Take() -> receive _ -> Take() end end),
               named(consumer, Call(source)),
               named(manager, fun() -> monitor(process, pool), (Call(source))() end),
               Serve(report, fun() -> timer:sleep(2500) end)],
    %% Samples have ten processes with messages: those of the faults, and these.
    [Pid ! stray || Pid <- Healthy],
    _ = [Callers(Server, N) || {Server, N} <- [{prices, 5}, {shop_front, 2}, {locked, 2}, {report, 2}]],
    timer:sleep(8000),
    %% The listener ends with this process: the VM then has no message for the acceptor, and no term for the tracer.
    exit(Acceptor, kill),
    ok.

%% Does the same for each message, and then replies.
serve(Fun) ->
    receive
        {'$gen_call', From, _} -> Fun(), gen_server:reply(From, ok);
        work -> Fun();
        _ -> ok
    end,
    serve(Fun).

named(Name, Fun) ->
    Pid = spawn(Fun),
    true = register(Name, Pid),
    Pid.

%% Sends 50 messages every tenth of a second.
send(_, 0) ->
    ok;
send(Slow, Rounds) ->
    [Slow ! N || N <- lists:seq(1, 50)],
    receive after 100 -> send(Slow, Rounds - 1) end.

cache(Table, N) ->
    true = ets:insert(Table, [{N + I, lists:seq(1, 100)} || I <- lists:seq(1, 100)]),
    receive after 100 -> cache(Table, N + 100) end.

%% Restarts the process again and again, as a supervisor does.
keep(_) ->
    Child = spawn_link(fun() -> register(flaky, self()), receive after 300 -> exit(no_database) end end),
    receive {'EXIT', Child, Reason} -> keep(Reason) end.

%% Waits until that many samples have been taken.
sampled(Node, Samples) ->
    test_node:call(Node, fun() -> timer:sleep(Samples * 1000) end).

severe(#{<<"findings">> := Findings}) ->
    [Finding || Finding = #{<<"severity">> := Severity} <- Findings, Severity =/= <<"low">>].

folder(Name, Config) ->
    filename:join(?config(priv_dir, Config), Name).

%% -- Events --------------------------------------------------------------------------------------

pid(N) -> "<0." ++ integer_to_list(100 + N) ++ ".0>".
port(N) -> "#Port<0." ++ integer_to_list(100 + N) ++ ">".

spawned(At, Pid, Parent) -> {At, process_spawn, #{pid => Pid, parent => Parent, entry => "pay:run/1"}}.
%% By proc_lib, as OTP's behaviours are.
started(At, Pid, Parent) -> started(At, Pid, Parent, "pay:run/1").
started(At, Pid, Parent, Initial) ->
    [{At, process_spawn, #{pid => Pid, parent => Parent, entry => "proc_lib:init_p/5"}},
     identity(At, Pid, "", Initial, Parent)].
port_identity(At, Port, Owner, Name) ->
    {At, port_identity, #{port => Port, owner => Owner, name => Name, os_pid => 0}}.
named(At, Pid, Name, Type) -> {At, process_register, #{pid => Pid, name => Name, type => Type}}.
in(At, Pid) -> in(At, Pid, "pay:run/1").
out(At, Pid) -> out(At, Pid, "pay:run/1").
on(Thread, {At, Probe, Fields}) ->
    {At, Probe, Fields, #{vpid => 17, vtid => erlang:phash2(Thread), procname => Thread}}.
call(At, Pid) -> call(At, Pid, "shop:pay/1").
logged(At, Level, Text) -> {At, log, #{pid => ?A, level => Level, text => Text}}.
counter(At, Name, Value) -> {At, vm_counter, #{name => Name, value => Value, unit => "per mille"}}.
%% One sample per second.
levels(Name, Values) -> [counter(N * ?S, Name, Value) || {N, Value} <- lists:enumerate(0, Values)].
limited(Processes) -> [levels("processes", Processes), counter(0, "process_limit", 10000)].
megabytes(Values) -> [Value * 1000000 || Value <- Values].
started_per_second(PerSecond) ->
    [spawned(N * (?S div PerSecond), pid(N), ?A) || N <- lists:seq(1, 6 * PerSecond)].
grows_off_heap(Megabytes) ->
    [sample(N * ?S, ?A, 0, Memory, 1000, "waiting") || {N, Memory} <- lists:enumerate(megabytes(Megabytes))].
tables(Megabytes) ->
    [{N * ?S, table_sample, #{pid => ?A, table => "#Ref<0.1.2.3>", name => "sessions", memory => Memory,
                              objects => (N + 1) * 100}}
     || {N, Memory} <- lists:enumerate(0, megabytes(Megabytes))].
sockets(Owner, Numbers) ->
    [{N * ?S, socket_sample, #{pid => Owner, sockets => Number, name => "tcp 10.0.0.4:1 <-> 10.0.0.9:80"}}
     || {N, Number} <- lists:enumerate(0, Numbers)].
%% Of 300 processes of 600 kB each, as many have the same parent; one has samples.
idle(Count, Memory, Reductions) ->
    [[spawned(N, pid(N), ?A) || N <- lists:seq(1, Count)],
     [sample(N * ?S, pid(1), 0, Memory, Reductions, "waiting") || N <- [1, 2, 3]],
     [counter(3 * ?S, Name, Value) || {Name, Value} <- [{"processes", 300}, {"memory_processes", 180000000},
                                                        {"memory_total", 220000000}]]].
down(Node, Type, Reason) -> {10, node_down, #{node => Node, type => Type, reason => Reason}}.

sample(At, Pid, Queue, Memory, Reductions, State) ->
    sample(At, Pid, Queue, Memory, Reductions, State, "pay:run/1").
sample(At, Pid, Queue, Memory, Reductions, State, In) ->
    {At, process_sample, #{pid => Pid, queue => Queue, memory => Memory, reductions => Reductions, entry => In,
                           state => State}}.

%% So many connections, or processes, in a second, which live briefly.
connections(Count) ->
    [identity(0, ?A, "listener"),
     [[{N * 50 * ?MS, port_open, #{pid => ?A, driver => "tcp_inet", port => port(N)}},
       {N * 50 * ?MS + 10 * ?MS, port_exit, #{port => port(N), reason => "normal"}}] || N <- lists:seq(0, Count - 1)],
     in(?S, ?A)].
lives(Count) ->
    [identity(0, ?A, "listener"), [[spawned(N * 10 * ?MS, pid(N), ?A), exited(N * 10 * ?MS + ?MS, pid(N), "normal")]
                                   || N <- lists:seq(0, Count - 1)], in(?S, ?A)].

exceptions(Count) ->
    [[call(N * 10, ?A), {N * 10 + 1, function_exception, #{pid => ?A, entry => "shop:pay/1", class => "error"}}]
     || N <- lists:seq(1, Count)].

%% A node without connections and preemptions.
alone() ->
    [levels("connected_nodes", [0, 0]), levels("reductions", [0, 0])].

ticks() ->
    [N * ?S div 600 || N <- lists:seq(1, 1200)].

%% A process that runs so many times per second for two seconds, beside one that sends messages.
ticks(Pid, PerSecond) ->
    Every = ?S div PerSecond,
    [identity(0, Pid, "session_mgr"), send(0, ?C, ?D, "m"), in(2 * ?S, ?D)
     | [[in(N * Every, Pid), out(N * Every + 10000, Pid)] || N <- lists:seq(0, 2 * PerSecond)]].

%% A port with one sample per second, before which so many bytes have left its queue.
queues(Port, Queue, Sent) ->
    [{N * ?S, port_sample, #{port => Port, pid => ?A, queue => Queue, sent => Bytes}}
     || {N, Bytes} <- lists:enumerate(0, Sent)].

%% A process without a reduction, which has these messages in one sample per second.
stopped(Pid, In, Queues, Wait) ->
    [[sample(N * ?S, Pid, Queue, 0, 0, "waiting", In) || {N, Queue} <- lists:enumerate(0, Queues)]
     | waits(Pid, Wait)].

waits(Pid, Wait) ->
    [waits(N, Pid, Wait) || N <- lists:seq(1, 3)].
waits(N, Pid, {Kind, Target, Callers}) ->
    {N * ?S, process_wait, #{pid => Pid, kind => Kind, target => Target, callers => Callers}}.

%% A process that receives 1,000 messages per second while suspended, and moves them to its queue on request. For every
%% second sample, that takes a garbage collection.
suspended() ->
    [in(0, ?A), out(10, ?A)
     | [[sample(N * ?S, ?A, 10 + 1000 * N, 2600, min(N, 1) * 7 + N rem 2 * 30, "suspended"),
         send(N * ?S + 20, ?B, ?A, "m"), delivery(N * ?S + 20, ?B, ?A, "m"), in(N * ?S + ?S - 20, ?A),
         out(N * ?S + ?S - 10, ?A)]
        || N <- lists:seq(0, 9)]].

crash_loop() ->
    [identity(0, ?A, "flaky_sup") | [[started(N * ?S, pid(N), ?A), named(N * ?S + 10, pid(N), "ldap_pool", "register"),
                                      exited(N * ?S + ?S div 2, pid(N), "econnrefused")] || N <- lists:seq(0, 5)]].

%% Two processes occupy all dirty I/O schedulers since before the recording. The loader waits for one.
blocked_files() ->
    [identity(0, ?A, "tail_1"), identity(0, ?B, "tail_2"), identity(0, ?C, "loader"),
     [[counter(N * ?S, "dirty_io_utilization_1", 1000), counter(N * ?S, "dirty_io_utilization_2", 1000),
       counter(N * ?S, "scheduler_utilization_1", 20), counter(N * ?S, "run_queue_dirty_io", 1),
       [sample_in("prim_file:open_nif/2", sample(N * ?S, Pid, 0, 2600, 0, "running")) || Pid <- [?A, ?B]],
       sample(N * ?S, ?C, 0, 2600, 0, "runnable")] || N <- lists:seq(1, 5)]].

is_waiting({_, vm_counter, #{name := Name, value := 1}}) -> Name =:= "run_queue_dirty_io";
is_waiting(_) -> false.

%% Process A runs without a pause from these seconds on, for some ms.
held(Seconds, Ms) ->
    held("1_scheduler", Seconds, Ms).
held(Thread, Seconds, Ms) ->
    [on(Thread, identity(0, ?A, "shop_hash"))
     | [[on(Thread, in(Second * ?S, ?A)), on(Thread, out(Second * ?S + Ms * ?MS, ?A))] || Second <- Seconds]].

%% A quota stops two schedulers for so many microseconds per second, in sum. One is busy, the other as the value says.
quota(Us, Busy) ->
    [[counter(N * ?S, "cpu_throttled", 5000000 + N * Us), counter(N * ?S, "cpu_quota", 500),
      counter(N * ?S, "scheduler_utilization_1", 930), counter(N * ?S, "scheduler_utilization_2", Busy)]
     || N <- lists:seq(0, 8)].

%% Processes that run for so many ms per second on two busy schedulers and are runnable between, and the run queue.
computing(Ms, Queue) ->
    Pids = [{pid(I), I, For * ?MS - 9} || {I, For} <- lists:enumerate(Ms), For > 0],
    [[spawned(0, Pid, ?C) || {Pid, _, _} <- Pids]
     | [[counter(N * ?S, "scheduler_utilization_1", 1000), counter(N * ?S, "scheduler_utilization_2", 1000),
         counter(N * ?S, "run_queue", Queue),
         [[in(N * ?S + I, Pid), out(N * ?S + I + Ns, Pid), sample(N * ?S, Pid, 0, 2600, 900, "runnable")]
          || {Pid, I, Ns} <- Pids]] || N <- lists:seq(1, 6)]].

%% The same while two processes run. Another scheduler is offline.
throttled(Us) ->
    [quota(Us, 910), counter(?S, "scheduler_utilization_3", 0), [spawned(0, Pid, ?C) || Pid <- [?A, pid(7)]],
     [[in(N * ?S, Pid), out(N * ?S + 300 * ?MS + I, Pid)]
      || N <- lists:seq(0, 7), {I, Pid} <- [{1, ?A}, {0, pid(7)}]]].

%% Twenty sockets per second.
%% Connections that are opened, one of them with its addresses.
opened() ->
    [identity(0, ?A, "shop_pool"),
     [{N * 50 * ?MS, port_open, #{pid => ?A, driver => "tcp_inet", port => port(N)}} || N <- lists:seq(0, 99)],
     port_identity(?MS, port(0), ?A, "tcp_inet 10.0.0.4:3518 <-> 10.0.0.9:5432")].

open_files(Limit) ->
    [opened(), levels("open_files", [810, 830, 850, 870, 890, 910]), counter(0, "open_files_limit", Limit)].

%% Process A runs most of the time, B and C do not get a scheduler.
starved() ->
    starved(4).
starved(Seconds) ->
    [identity(0, ?A, "crunch"), identity(0, ?B, "house"),
     [[in(N * ?S, ?A), out(N * ?S + 900 * ?MS, ?A), counter(N * ?S, "scheduler_utilization_1", 1000),
       [sample_in("", sample(N * ?S, Pid, 0, 2600, 0, "runnable"))
        || {Pid, Until} <- [{?B, Seconds}, {?C, Seconds - 1}], N =< Until]]
      || N <- lists:seq(1, 8)]].

sample_in(Entry, {At, process_sample, Fields}) -> {At, process_sample, Fields#{entry => Entry}}.

%% A child crashes three times, which its supervisor reports before it terminates the other child and itself.
gave_up() ->
    [identity(0, ?A, "pay_sup", "supervisor:pay_sup/1", ?C), identity(0, ?B, "pay_ledger", "pay_ledger:init/1", ?A),
     [[started(N * ?S, pid(N), ?A), named(N * ?S + 10, pid(N), "pay_gateway", "register"),
       exited(N * ?S + 40 * ?MS, pid(N), "gateway_down")] || N <- lists:seq(1, 3)],
     logged(3050 * ?MS, "error", report_of("shutdown", "reached_max_restart_intensity")),
     exited(3060 * ?MS, ?B, "shutdown"), exited(3070 * ?MS, ?A, "shutdown"), in(4 * ?S, ?C)].

%% Process A runs so many times for 40 ms. It has a table of so many megabytes.
inserts(Times, Megabytes, Objects) ->
    [on("1_scheduler", Event)
     || Event <- lists:flatten([identity(0, ?A, "shop_db"),
                                {?S, table_sample, #{pid => ?A, table => "#Ref<0.1.2.3>", name => "sessions",
                                                     memory => Megabytes * 1000000, objects => Objects}},
                                [[in(N * ?S, ?A), out(N * ?S + 40 * ?MS, ?A)] || N <- lists:seq(1, Times)]])].

%% Process A is suspended once per second, in this function first. Then the VM searches all processes.
searches(Function, Processes) ->
    Events = fun(At, Pid, Places) -> [{At + Ns, process_scheduled, #{pid => Pid, entry => Entry, type => Type}}
                                      || {Ns, Type, Entry} <- Places] end,
    Trap = "erlang:bif_return_trap/2",
    Loop = "erts_literal_area_collector:msg_loop/4",
    [identity(0, ?A, "conf_reload"), identity(0, ?C, "", "erts_literal_area_collector:start/0"), send(0, ?A, ?B, "m"),
     counter(0, "processes", Processes), in(5 * ?S, ?B),
     [[Events(N * ?S, ?A, [{0, "in", "timer:sleep/1"}, {10, "out", Function}, {20, "in", Function}, {30, "out", Trap},
                           {40, "in", Trap}, {50, "out", "timer:sleep/1"}]),
       Events(N * ?S, ?C, [{60, "in", Loop}, {70, "out", Trap}, {80, "in", Trap}, {90, "out", Loop},
                           {20 * ?MS + 80, "in", "erts_literal_area_collector:release_area_switch/0"},
                           {20 * ?MS + 90, "out", Loop}])] || N <- lists:seq(1, 4)]].

%% Without a view into its functions, the process that ran before is the culprit, if it is always the same.
terms_by_inference(Config) ->
    Found = fun(Events) -> [{medium, Text}] = found(persistent_terms, report(Events, Config)), Text end,
    Events = searches("shop:init/1", 200),
    ?assertMatch("<0.90.0> conf_reload replaced or erased persistent terms 4 times (inferred): " ++ _, Found(Events)),
    ?assertMatch("several processes replaced or erased persistent terms 4 times (inferred): " ++ _,
                 Found([case Event of
                            {At, process_scheduled, Of = #{pid := ?A}} when At > 2500 * ?MS ->
                                {At, process_scheduled, Of#{pid => ?B}};
                            _ -> Event
                        end || Event <- lists:flatten(Events)])).

%% Process A sends two messages to B, each in the last of so many milliseconds of a run. B gets so many words.
copies(Ms, Words) ->
    [on("1_scheduler", identity(0, ?A, "shop_db")),
     [[on("1_scheduler", Event) || Event <- [in(At, ?A), send(At + 10, ?A, ?B, "m"), out(At + 10 + Ms * ?MS, ?A)]]
      ++ [on("2_scheduler", Event)
          || Event <- [in(At + Ms * ?MS, ?B),
                       {At + Ms * ?MS, gc_major_start, #{pid => ?B, need => 0, heap => 233, old_heap => 0}},
                       {At + Ms * ?MS + 9, gc_major_end, #{pid => ?B, reclaimed => Words, heap => 233, old_heap => 0,
                                                           binaries => 3000000}},
                       out(At + Ms * ?MS + 20, ?B)]]
      || At <- [?S, 2 * ?S]]].

%% The argument of a new process, which its first collection shows.
copied_argument(Config) ->
    Events = [identity(0, ?A, "shop_db"),
              [[in(N * ?S, ?A), spawned(N * ?S + 40 * ?MS, pid(N), ?A), out(N * ?S + 41 * ?MS, ?A),
                {N * ?S + 50 * ?MS, gc_major_start, #{pid => pid(N), need => 0, heap => 3000000, old_heap => 0}},
                {N * ?S + 90 * ?MS, gc_major_end, #{pid => pid(N), reclaimed => 2900000, heap => 100000,
                                                    old_heap => 0}}] || N <- [1, 2, 3]]],
    ?assertEqual([{medium, "<0.90.0> shop_db started 3 pay:run/1 with up to 24.0 MB of data: it copied each for up to "
                           "40.0 ms without a pause, 120 ms in total (inferred)"}],
                 found(large_messages, report(Events, Config))),
    ?assertEqual([], found(long_collection, report(Events, Config))).

%% Process A formats from this time on, for three seconds.
formats(At) ->
    [identity(0, ?A, "shop_db"), send(0, ?A, ?B, "m"),
     [[runs(At + N * 10 * ?MS, ?A, case N rem 3 of 0 -> "lists:reverse/1"; _ -> "io_lib_pretty:pp/4" end, 10 * ?MS - 1)]
      || N <- lists:seq(1, 300)],
     sample(At + ?S, ?A, 20, 97000000, 1000000, "running", "io_lib_pretty:pp/4")].

runs(At, Pid, Entry, Ns) ->
    [{Time, process_scheduled, #{pid => Pid, entry => Entry, type => Type}}
     || {Time, Type} <- [{At, "in"}, {At + Ns, "out"}]].

%% As a supervisor logs it.
report_of(Context, Reason) ->
    "Supervisor: {local,pay_sup}. Context: " ++ Context ++ ". Reason: " ++ Reason ++ ". Offender: id=w,pid=<0.103.0>.".

%% A major collection of a heap with Words words.
collection(At, Pid, Ns, Words) ->
    [{At, gc_major_start, #{pid => Pid, need => 0, heap => Words, old_heap => 0}},
     {At + Ns, gc_major_end, #{pid => Pid, reclaimed => Words, heap => 0, old_heap => 0}}].

%% Major collections of heaps of these sizes, in thousands of words, all live.
grown(Thousands) ->
    [collected(N, Words, 0) || {N, Words} <- lists:enumerate(Thousands)].

collected(N, Words, Reclaimed) ->
    collected(N, Words, Reclaimed, 1).

collected(N, Words, Reclaimed, Ns) ->
    At = N * 800 * ?MS,
    [{At, gc_major_start, #{pid => ?A, need => 0, heap => Words * 1000, old_heap => 0}},
     {At + Ns, gc_major_end, #{pid => ?A, reclaimed => Reclaimed * 1000, heap => Words * 1000, old_heap => 0}}].

%% A collection that leaves so many million words of binaries.
binaries(Millions) ->
    [Start, {At, gc_major_end, Fields}] = collected(1, 1, 0),
    [Start, {At, gc_major_end, Fields#{binaries => Millions * 1000000}}].

%% Process A runs for as long as it has waited before while runnable.
waiting(Ns) ->
    [in(0, ?A), out(10, ?A), send(10, ?B, ?A, "go"), delivery(10, ?B, ?A, "go"), in(10 + Ns, ?A),
     out(10 + 2 * Ns, ?A)].

%% Calls from B to A, one after the other.
request(At, From, N) ->
    send(At, From, ?A, lists:flatten(io_lib:format("{'$gen_call',{~s,#Ref<0.0.0.~b>},{get,~b}}", [From, N, N]))).
reply(At, To, N) ->
    send(At, ?A, To, lists:flatten(io_lib:format("{#Ref<0.0.0.~b>,ok}", [N]))).

calls(Count, Ns) ->
    [begin
         {_, _, #{message := Message}} = Request = request(N * 2 * Ns, ?B, N),
         [Request, delivery(N * 2 * Ns, ?B, ?A, Message), in(N * 2 * Ns, ?A), reply(N * 2 * Ns + Ns, ?B, N),
          out(N * 2 * Ns + Ns, ?A)]
     end || N <- lists:seq(1, Count)].

%% So many processes call code_server all the time; a call takes it one millisecond.
asked(Callers, Calls) ->
    Request = fun(Ms, Caller) ->
                      send(Ms * ?MS, pid(Caller), ?A, "{code_call," ++ pid(Caller) ++ ",{ensure_loaded,shop_metrics}}")
              end,
    [in(?MS - 1, ?A), [identity(0, pid(Caller), "web_" ++ integer_to_list(Caller)) || Caller <- lists:seq(1, Callers)],
     [Request(1, Caller) || Caller <- lists:seq(1, Callers)],
     [[send((N + 1) * ?MS, ?A, pid(N rem Callers + 1), "{code_server,[]}"),
       [Request(N + 1, N rem Callers + 1) || N =< Calls - Callers]] || N <- lists:seq(1, Calls)],
     out((Calls + 1) * ?MS + 1, ?A)].

%% Two workers, a purge that kills them or not, and their exits.
purged(Kills) ->
    [identity(0, ?A, "erts_code_purger"), [started(N, pid(N), ?B) || N <- [1, 2]], purge(10, 20, Kills),
     exited(15, pid(1), "killed"), exited(16, pid(2), "killed")].

purge(From, Until, Kills) ->
    [send(From, ?B, ?A, "{purge,month_report_mod,<0.91.0>,#Ref<0.0.0.1>}"),
     send(Until, ?A, ?B, lists:flatten(io_lib:format("{reply,purge,{true,~p},#Ref<0.0.0.1>}", [Kills])))].

%% So many tellers ask for a lock every second; they get it so many milliseconds later.
locks(Tellers, Ms, Reply) ->
    Loop = fun(At, Type) -> {At, process_scheduled, #{pid => ?A, entry => "mnesia_locker:loop/1", type => Type}} end,
    [identity(0, ?A, "mnesia_locker"),
     [identity(0, pid(N), "teller_" ++ integer_to_list(N)) || N <- lists:seq(1, Tellers)],
     [[Loop(At, "in"), Loop(At + 10, "out"), Loop(At + Ms * ?MS - 1, "in"),
       [[send(At - N, pid(N), ?A, lists:concat(["{", pid(N), ",{write,{tid,1,", pid(N), "},{account,7}}}"])),
         send(At + Ms * ?MS, ?A, pid(N), "{mnesia_locker,shop@host," ++ Reply ++ "}")] || N <- lists:seq(1, Tellers)],
       Loop(At + Ms * ?MS + 1, "out")] || At <- [Second * ?S || Second <- lists:seq(1, 5)]],
     in(1, ?B), out(6 * ?S, ?B)].

system(Otp) ->
    {0, node_identity, #{node => "shop@host", prefix => "0", otp => integer_to_list(Otp), os_pid => 4711}}.

%% A process with a long queue that runs for four of five seconds.
selective(Entry, State) ->
    [identity(0, ?A, "statsd"), in(0, ?A), out(4 * ?S, ?A), in(5 * ?S, ?B)
     | [{N * ?S, process_sample, #{pid => ?A, queue => 199034, memory => 17500000, reductions => 26000000,
                                   entry => Entry, state => State}} || N <- lists:seq(1, 4)]].

%% Without recorded deliveries, messages count as soon as their receiver has run.
busy_without_deliveries(Config) ->
    Sends = [send(N, From, To, "m") || N <- lists:seq(1, 1000),
                                       {From, To} <- [case N rem 10 of 0 -> {?A, ?B}; _ -> {?B, ?A} end]],
    ?assertEqual([{low, "<0.90.0> shop_db received 90 % of all messages"}],
                 found(busy_receiver, report([identity(0, ?A, "shop_db"), Sends,
                                              [[in(At, Pid), out(At + 1, Pid)]
                                               || {At, Pid} <- [{1001, ?A}, {1003, ?B}]]], Config))).

%% The events may be in any order.
report(Events, Config) ->
    hd(reports([Events], Config)).

reports(Recordings, Config) ->
    test_viewer:jsons(report, [recording(Events) || Events <- Recordings], Config).

%% {Case, Report} of each case.
with_reports(Events, Cases, Config) ->
    lists:zip(Cases, reports(lists:map(Events, Cases), Config)).

recording({Params, Events}) ->
    {[{format, "json"} | Params], Events};
recording(Events) ->
    Sorted = [Event || {_, Event} <- lists:keysort(1, [{at(Event), Event} || Event <- lists:flatten(Events)])],
    {[{format, "json"}], Sorted}.

at(#{time := At}) -> At;
at(Event) -> element(1, Event).

found(Rule, #{<<"findings">> := Findings}) ->
    [{binary_to_atom(Severity), unicode:characters_to_list(Text)}
     || #{<<"rule">> := Name, <<"severity">> := Severity, <<"text">> := Text} <- Findings,
        Rule =:= all orelse Name =:= atom_to_binary(Rule)].
