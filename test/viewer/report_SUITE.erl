%% The sink `report': every number for small recordings with known content, as JSON; and the text for terminals.
-module(report_SUITE).

-include("../support/suite.hrl").

-import(test_viewer, [identity/3, identity/4, exited/3, in/3, out/3, send/4, receipt/3, delivery/4, call/3, return/3]).

-define(A, "<0.90.0>").
-define(B, "<0.91.0>").
-define(C, "<0.92.0>").
-define(D, "<0.93.0>").
-define(MS, 1000000).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [recording, untraced, flags_set_late, totals, servers, run_times, dirty_schedulers, collections, stretched,
     messages, samples, output, unknown_is_null, token_is_no_delivery, dead, owner_of_a_socket, crashes, quantiles,
     recursion, exceptions, server_calls, calls_by_kind, spans, telemetry, telemetry_parts, counters, log,
     other_events, load, findings, lost_comes_first, memory_is_bounded, others_in_text, rows_are_bounded,
     circle_of_parents, text, narrow_text, wide_text, text_of_counters, text_of_nodes, text_is_harmless, elixir,
     elixir_tasks, no_lives, parameters].

init_per_suite(Config) ->
    test_require:tool(test_viewer:missing(), Config).

end_per_suite(_) -> ok.

recording(Config) ->
    #{<<"version">> := 1, <<"recording">> := Recording} =
        report([identity(1000, ?A, "shop_db"), send(2000, ?A, ?B, "hello"), in(1500001000, ?A, "shop:loop/1")], Config),
    ?assertMatch(#{<<"events">> := 3, <<"skipped">> := 0, <<"begin">> := 1000, <<"end">> := 1500001000,
                   <<"seconds">> := 1.5, <<"lost_events">> := 0, <<"lost">> := [],
                   <<"nodes">> := [#{<<"node">> := <<"shop@host">>, <<"processes">> := 2}]}, Recording).

%% Processes are not traced from the last event of a trace flag before the probe `withheld' to the next one. Shares are
%% those of the other time.
untraced(Config) ->
    Events = [identity(0, ?A, "shop_db"), not_traced(1000 * ?MS),
              in(2000 * ?MS, ?A, "shop:loop/1"), out(2900 * ?MS, ?A, "shop:loop/1"), in(3000 * ?MS, ?B, "shop:run/0"),
              not_traced(4000 * ?MS), not_traced(5000 * ?MS)],
    Busy = fun(Of) -> [Text || #{<<"rule">> := <<"busy_process">>, <<"text">> := Text} <- Of] end,
    #{<<"recording">> := Recording, <<"findings">> := Findings} = report(Events, Config),
    ?assertMatch(#{<<"seconds">> := 5.0, <<"untraced_ns">> := 4000000000}, Recording),
    %% A node that is started again is another node. Neither is traced in the second between them.
    Again = [{At + 6000 * ?MS, Probe, Fields, #{vpid => 18, vtid => 18}} || {At, Probe, Fields} <- Events],
    #{<<"recording">> := Both} = report(Events ++ Again, Config),
    ?assertMatch(#{<<"seconds">> := 11.0, <<"untraced_ns">> := 9000000000}, Both),
    ?assertEqual([<<"<0.90.0> shop_db ran for 90 % of the time in which processes were traced">>], Busy(Findings)),
    #{<<"recording">> := Traced, <<"findings">> := Others} = report([Event || Event <- Events,
                                                                              element(2, Event) =/= withheld], Config),
    ?assertMatch(#{<<"seconds">> := 3.0, <<"untraced_ns">> := 0}, Traced),
    ?assertEqual([], Busy(Others)),
    %% A rule that needs a recording of a second needs half a second in which processes were traced.
    Window = fun(Ms) ->
                     #{<<"findings">> := InWindow} =
                         report([identity(0, ?A, "shop_db"), not_traced(1000 * ?MS), in(2000 * ?MS, ?A, "shop:loop/1"),
                                 out((2000 + Ms) * ?MS, ?A, "shop:loop/1"), not_traced(4000 * ?MS)], Config),
                     Busy(InWindow)
             end,
    ?assertEqual([<<"<0.90.0> shop_db ran for 100 % of the time in which processes were traced">>], Window(500)),
    ?assertEqual([], Window(499)).

%% A recording begins before the trace flags are set, with an annotation or another event that does not need them. The
%% traced time begins when they are set, or with the first trace event if that is earlier; for each node separately.
flags_set_late(Config) ->
    Begin = {0, user_span_start, #{pid => ?A, name => "sell", id => 1}},
    Flags = fun(At, What) -> {At * ?MS, withheld, #{what => What, why => "their trace flags were not set"}} end,
    [Before, After] = [Flags(400, "all_events"), Flags(500, "earlier_events")],
    Sends = [send(At * ?MS, ?A, ?B, "sold") || At <- lists:seq(600, 2500, 100)],
    End = {2500 * ?MS, vm_counter, #{name => "processes", unit => "processes", value => 40}},
    Traced = fun(Events) ->
                     #{<<"recording">> := #{<<"nodes">> := Nodes}, <<"findings">> := Findings} = report(Events, Config),
                     ?assertEqual([], [Finding || #{<<"rule">> := <<"withheld">>} = Finding <- Findings]),
                     [Ns div ?MS || #{<<"traced_ns">> := Ns} <- Nodes]
             end,
    %% Of a busy node, of a node that is idle for a time, of one that is idle all the time.
    Busy = [Begin, Before, in(450 * ?MS, ?A, "shop:loop/1"), After, Sends],
    ?assertEqual([2050], Traced(Busy)),
    ?assertEqual([2000], Traced([Begin, Before, After, Sends])),
    ?assertEqual([2000], Traced([Begin, Before, After, End])),
    %% A second consumer's recording of a traced node; reports of an earlier library, or lost ones.
    ?assertEqual([2500], Traced([Begin, Sends])),
    ?assertEqual([1900], Traced([Begin, Before, Sends])),
    ?assertEqual([2500], Traced([Begin, After, Sends])),
    %% The flags are set again after a pause.
    ?assertEqual([1400], Traced([Begin, Before, After, send(600 * ?MS, ?A, ?B, "sold"), not_traced(900 * ?MS),
                                 Flags(1200, "earlier_events"), End])),
    Other = [{At, Probe, Fields, #{vpid => 18, vtid => 18}} || {At, Probe, Fields} <- lists:flatten([Begin, Sends])],
    ?assertEqual([2050, 2500], Traced(lists:keysort(1, lists:flatten([Busy, Other])))),
    %% Nothing that was traced is missing.
    #{<<"findings">> := [_ | _] = Findings} =
        report([Begin, Before, After, [send(600 * ?MS + N, ?A, ?B, "sold") || N <- lists:seq(1, 1000)],
                delivery(700 * ?MS, ?A, ?B, "sold")], Config),
    ?assertMatch([_], [Text || #{<<"rule">> := <<"in_flight">>, <<"text">> := Text} <- Findings]),
    [_, Line | _] = lists:dropwhile(fun(Of) -> string:prefix(Of, "Recording: ") =:= nomatch end,
                                    text([Begin, Before, After, Sends], [], Config)),
    ?assertMatch(<<"Processes were traced for 2.00 s of it; ", _/binary>>, Line).

%% The sends of all processes of a name, and how evenly they are spread over the traced time: eight slices of 500 ms.
totals(Config) ->
    Sends = fun(From, To) -> [send(At * ?MS, Shop, ?D, "sold") || N <- lists:seq(From, To), At <- [N * 100],
                                                                  Shop <- [lists:nth(1 + N rem 2, [?A, ?B])]] end,
    Sample = fun(At, Memory, Queue) -> {At * ?MS, process_sample, #{pid => ?A, memory => Memory, queue => Queue}} end,
    Report = report([identity(0, ?A, ""), identity(0, ?B, ""), identity(0, ?C, "shop_db"), Sends(1, 20),
                     not_traced(2050 * ?MS), Sends(40, 58), Sample(5801, 1000, 3), Sample(5802, 3000, 0),
                     Sends(59, 60)], Config),
    #{<<"recording">> := #{<<"nodes">> := [#{<<"traced_ns">> := 4000000000}]}} = Report,
    #{<<"sent">> := 41, <<"sent_deviation">> := Deviation, <<"received">> := null, <<"received_deviation">> := null,
      <<"run_ns">> := null, <<"samples">> := 2, <<"memory_mean_bytes">> := Mean, <<"memory_max_bytes">> := 3000,
      <<"queue_mean">> := 1.5, <<"queue_max">> := 3} = total(<<"shop:init/1">>, Report),
    ?assertEqual(2000, round(Mean)),
    %% Of 4, 5, 5, 5, 6, 5, 5 and 6: the last event belongs to the last slice.
    ?assert(abs(Deviation - math:sqrt(8 * 2.875 / 7)) < 0.001, Deviation),
    %% All sends in the same slice; a process that does not send; a recording that is too short.
    Burst = report([identity(0, ?A, ""), identity(0, ?C, "shop_db"), [send(50 * ?MS, ?A, ?C, "sold")
                                                                      || _ <- lists:seq(1, 10)],
                    in(4000 * ?MS, ?C, "shop:loop/1")], Config),
    #{<<"sent">> := 10, <<"sent_deviation">> := Ten} = total(<<"shop:init/1">>, Burst),
    ?assert(abs(Ten - 10) < 0.001, Ten),
    ?assertMatch(#{<<"sent">> := 0, <<"sent_deviation">> := 0}, total(<<"shop_db">>, Burst)),
    %% All sends at the end, after eight whole slices of 500 ms: the last slice has 1.4 times their length.
    End = report([identity(0, ?A, ""), [send(4100 * ?MS, ?A, ?C, "sold") || _ <- lists:seq(1, 10)],
                  in(4200 * ?MS, ?C, "shop:loop/1")], Config),
    #{<<"sent">> := 10, <<"sent_deviation">> := Late} = total(<<"shop:init/1">>, End),
    ?assert(abs(Late - 8.4515) < 0.001, Late),
    Short = report([identity(0, ?A, ""), send(100 * ?MS, ?A, ?C, "sold")], Config),
    ?assertMatch(#{<<"sent">> := 1, <<"sent_deviation">> := null}, total(<<"shop:init/1">>, Short)).

total(Name, Report) ->
    [Total] = [Total || #{<<"name">> := Of} = Total <- rows(totals, Report), Of =:= Name],
    Total.

%% Calls to all servers of a kind, and the limits of the median.
servers(Config) ->
    Took = fun(N) -> 1000 * N end,
    Call = fun(N, Server) ->
                   At = N * ?MS,
                   [send(At, ?B, Server, format("{'$gen_call',{~s,#Ref<0.0.0.~b>},get}", [?B, N])),
                    send(At + Took(N), Server, ?B, format("{#Ref<0.0.0.~b>,ok}", [N]))]
           end,
    Report = report([identity(0, ?A, "", "shop_cart:init/1"), identity(0, ?C, "", "shop_cart:init/1"),
                     identity(0, ?B, ""),
                     [Call(N, lists:nth(1 + N rem 2, [?A, ?C])) || N <- lists:seq(1, 100)]], Config),
    [#{<<"server">> := <<"shop_cart:init/1">>, <<"request">> := <<"get">>, <<"count">> := 100, <<"durations">> := 100,
       <<"p50_ns">> := Median, <<"p50_lower_ns">> := Lower, <<"p50_upper_ns">> := Upper, <<"p99_upper_ns">> := null}] =
        rows(servers, Report),
    %% The ranks 50, 35 and 65.
    [?assert(abs(Ns - Took(Rank)) =< Took(Rank) div 64, {Ns, Rank})
     || {Ns, Rank} <- [{Median, 50}, {Lower, 35}, {Upper, 65}]].

not_traced(At) -> {At, withheld, #{what => "all_events", why => "no consumer requests them"}}.

%% The process runs twice. The send makes it runnable 1000 ns before the second run.
run_times(Config) ->
    Report = report([identity(1000, ?A, "shop_db"),
                     in(2000, ?A, "shop:init/1"), out(3000, ?A, "shop:loop/1"),
                     send(5000, ?B, ?A, "go"), delivery(5500, ?B, ?A, "go"),
                     in(6000, ?A, "shop:loop/1"), out(7000, ?A, "shop:loop/1"),
                     in(10000, ?A, "shop:loop/1"), out(10000, ?A, "shop:loop/1")], Config),
    ?assertMatch(#{<<"run_ns">> := 2000, <<"runnable_ns">> := 1000, <<"longest_wait_ns">> := 1000,
                   <<"longest_wait_at">> := 5000, <<"waiting_ns">> := 5000}, process(?A, Report)),
    #{<<"waits">> := [Wait | _]} = Report,
    ?assertMatch(#{<<"time">> := 5000, <<"ns">> := 1000, <<"function">> := <<"shop:loop/1">>, <<"inferred">> := true},
                 Wait).

collections(Config) ->
    Report = report([in(1000, ?A, "shop:init/1"),
                     {2000, gc_minor_start, #{pid => ?A, need => 0, heap => 610, old_heap => 0}},
                     {2500, gc_minor_end, #{pid => ?A, reclaimed => 120, heap => 1598, old_heap => 10}},
                     {4000, gc_major_start, #{pid => ?A, need => 0, heap => 1598, old_heap => 10}},
                     {6000, gc_major_end, #{pid => ?A, reclaimed => 240, heap => 4185, old_heap => 0}},
                     out(7000, ?A, "shop:loop/1")], Config),
    ?assertMatch(#{<<"collecting_ns">> := 2500, <<"collections">> := 2, <<"run_ns">> := 3500}, process(?A, Report)),
    ?assertMatch(#{<<"collections">> := [#{<<"ns">> := 2000, <<"is_major">> := true, <<"reclaimed_words">> := 240,
                                           <<"heap_words">> := 4185, <<"time">> := 4000},
                                         #{<<"ns">> := 500, <<"is_major">> := false, <<"reclaimed_words">> := 120,
                                           <<"heap_words">> := 1608}]}, Report).

%% On a dirty I/O scheduler, a process mostly waits for files, which does not count as CPU time.
dirty_schedulers(Config) ->
    On = fun({Ns, Probe, Fields}, Vtid, Thread) ->
                 {Ns, Probe, Fields, #{vpid => 17, vtid => Vtid, procname => Thread}}
         end,
    Run = fun(From, To, Vtid, Thread) ->
                  [On(in(From, ?A, "shop:write/1"), Vtid, Thread), On(out(To, ?A, "shop:write/1"), Vtid, Thread)]
          end,
    Events = [On(identity(0, ?A, "shop_db"), 1, "1_scheduler"), Run(1 * ?MS, 2 * ?MS, 1, "1_scheduler"),
              Run(2 * ?MS, 992 * ?MS, 2, "1_dirty_io_sche"), Run(992 * ?MS, 1000 * ?MS, 3, "1_dirty_cpu_sch")],
    Report = report(Events, Config),
    ?assertMatch(#{<<"run_ns">> := 9 * ?MS, <<"dirty_cpu_ns">> := 8 * ?MS, <<"dirty_io_ns">> := 990 * ?MS},
                 process(?A, Report)),
    ?assertMatch([#{<<"rule">> := <<"file_io">>}], rows(findings, Report)),
    #{<<"load">> := #{<<"step_ns">> := Step, <<"nodes">> := [Load]}} = Report,
    Sum = fun(Key) -> round(lists:sum(maps:get(Key, Load)) * Step / ?MS / 10) end,
    ?assertEqual({1, 99}, {Sum(<<"run">>), Sum(<<"dirty_io">>)}),
    ?assertEqual([["process", "initial", "call", "dirty", "I/O", "ran", "incl.", "dirty", "CPU"],
                  ["<0.90.0>", "shop_db", "shop:init/1", "990", "ms", "9.00", "ms", "8.00", "ms"]],
                 [words(Line) || Line <- table("Processes by time on dirty", text(Events, [], Config))]).

%% The thread may have lost the CPU. The report shows that, and has no finding about garbage collection.
stretched(Config) ->
    Events = [in(0, ?A, "shop:init/1"),
              {1 * ?MS, gc_minor_start, #{pid => ?A, need => 0, heap => 609, old_heap => 0}},
              {238 * ?MS, gc_minor_end, #{pid => ?A, reclaimed => 20, heap => 609, old_heap => 0}},
              out(240 * ?MS, ?A, "shop:loop/1")],
    Report = report(Events, Config),
    ?assertMatch([#{<<"ns">> := 237 * ?MS, <<"is_stretched">> := true}], rows(collections, Report)),
    ?assertMatch(#{<<"collecting_ns">> := 1123800, <<"collections">> := 1}, process(?A, Report)),
    ?assertEqual([], [Finding || #{<<"text">> := Text} = Finding <- rows(findings, Report),
                                 re:run(Text, "garbage collection") =/= nomatch, severity(Finding) =/= <<"low">>]),
    Large = [case Event of
                 {At, Probe, #{heap := 609} = Fields} -> {At, Probe, Fields#{heap := 3000000}};
                 _ -> Event
             end || Event <- Events],
    ?assertMatch([#{<<"severity">> := <<"high">>, <<"about">> := <<"collections">>} | _],
                 rows(findings, report(Large, Config))).

severity(#{<<"severity">> := Severity}) -> Severity.

messages(Config) ->
    Exchange = [[send(1000 + N, ?A, ?B, "m"), delivery(1001 + N, ?A, ?B, "m")] || N <- lists:seq(0, 18, 2)],
    Report = report([Exchange, send(2000, ?B, ?A, "answer"), delivery(2010, ?B, ?A, "answer"),
                     send(3000, ?A, ?C, "other"), receipt(3010, ?C, "other")], Config),
    ?assertMatch(#{<<"sent">> := 11, <<"received">> := 1}, process(?A, Report)),
    ?assertMatch(#{<<"sent">> := 1, <<"received">> := 10, <<"mailbox_max">> := 1}, process(?B, Report)),
    ?assertEqual([{?A, ?B, 10, 0}, {?A, ?C, 1, 1}, {?B, ?A, 1, 0}],
                 lists:sort([{pid(From), pid(To), Messages, Inferred}
                             || #{<<"from">> := From, <<"to">> := To, <<"messages">> := Messages,
                                  <<"inferred">> := Inferred} <- rows(talks, Report)])).

%% The actual length of a queue, next to the number of messages in flight.
samples(Config) ->
    Sample = fun(At, Queue, Memory) ->
                     {At, process_sample, #{pid => ?A, queue => Queue, memory => Memory, reductions => 10,
                                            entry => "shop:loop/1", state => "running"}}
             end,
    Events = [identity(1000, ?A, "shop_db"), send(2000, ?B, ?A, "m"), delivery(2100, ?B, ?A, "m"),
              in(3000, ?A, "shop:loop/1"), Sample(4000, 17, 56120448), Sample(5000, 9, 2600),
              out(6000, ?A, "shop:loop/1")],
    Report = report(Events, Config),
    ?assertMatch(#{<<"mailbox_max">> := 1, <<"queue_max">> := 17, <<"memory_max">> := 56120448}, process(?A, Report)),
    ?assertMatch(#{<<"queue_max">> := null, <<"memory_max">> := null}, process(?B, Report)),
    [Heads, Row] = table("Processes by run time", text(Events, [], Config)),
    ?assertEqual(["in", "flight", "queue", "memory"], lists:nthtail(length(words(Heads)) - 4, words(Heads))),
    ?assertEqual(["1", "17", "56.1", "MB"], lists:nthtail(length(words(Row)) - 4, words(Row))).

%% The data that processes write to a port.
output(Config) ->
    Write = fun(At, Probe, Bytes) ->
                    {At, Probe, #{pid => ?A, port => "#Port<0.5>", driver => "tcp_inet", bytes => Bytes}}
            end,
    #{<<"ports">> := [Port]} =
        report([{1000, port_open, #{pid => ?A, driver => "tcp_inet", port => "#Port<0.5>"}},
                Write(2000, "org_erlang_otp:driver_output", 7), Write(3000, "org_erlang_otp:driver_outputv", 10)],
               Config),
    ?assertMatch(#{<<"bytes_out">> := 17, <<"driver">> := <<"tcp_inet">>}, Port).

%% Values that the recording does not have are null, not 0.
unknown_is_null(Config) ->
    Report = report([send(1000, ?A, ?B, "m"), send(2000, ?A, ?B, "m")], Config),
    ?assertMatch(#{<<"sent">> := 2, <<"received">> := null, <<"run_ns">> := null, <<"collecting_ns">> := null,
                   <<"collections">> := null, <<"mailbox_max">> := null, <<"longest_wait_ns">> := null,
                   <<"began">> := null, <<"ended">> := null}, process(?A, Report)),
    ?assertMatch(#{<<"load">> := #{<<"nodes">> := [#{<<"run">> := null, <<"collecting">> := null,
                                                     <<"calls">> := null}]}}, Report),
    #{<<"recording">> := #{<<"kinds">> := Kinds}} = Report,
    ?assertEqual([<<"sends">>], Kinds).

%% seq_trace shows when a message arrived, but does not show other arrivals.
token_is_no_delivery(Config) ->
    Token = fun(At, Probe) ->
                    {At, Probe, #{label => "17", from => ?A, to => ?B, previous => 0, current => 1, message => "m"}}
            end,
    Report = report([send(1000, ?A, ?B, "m"), Token(1001, seq_trace_send), in(1500, ?B, "shop:loop/1"),
                     Token(2000, seq_trace_receive), send(3000, ?A, ?B, "m"), out(4000, ?B, "shop:loop/1")], Config),
    ?assertMatch(#{<<"received">> := null, <<"mailbox_max">> := null}, process(?B, Report)),
    #{<<"recording">> := #{<<"kinds">> := Kinds}} = Report,
    ?assertEqual([<<"scheduling">>, <<"sends">>], lists:sort(Kinds)).

dead(Config) ->
    Report = report([spawned(1000, ?B, ?A), exited(2000, ?B, "normal"),
                     send(3000, ?A, ?B, "{hello,1}"), send(3500, ?A, ?B, "{hello,2}")], Config),
    ?assertMatch([#{<<"messages">> := 2, <<"example">> := <<"{hello,1}">>}], rows(dead, Report)),
    ?assertEqual([{?A, ?B}], [{pid(From), pid(To)} || #{<<"from">> := From, <<"to">> := To} <- rows(dead, Report)]),
    ?assertEqual([], rows(talks, Report)).

%% A socket that a listening port has accepted belongs to the process that gets it.
owner_of_a_socket(Config) ->
    [Listener, Socket] = ["#Port<0.5>", "#Port<0.6>"],
    Identity = fun(At, Port, Owner) ->
                       {At, port_identity, #{port => Port, owner => Owner, name => "tcp_inet", os_pid => 0}}
               end,
    Report = report([Identity(0, Listener, ?A),
                     send(10, Listener, ?B, "{inet_async," ++ Listener ++ ",7,{ok," ++ Socket ++ "}}"),
                     Identity(20, Socket, ?B), send(30, ?B, Socket, "{<0.91.0>,{command,hello}}")], Config),
    ?assertEqual([{Listener, ?A}, {Socket, ?B}],
                 lists:sort([{pid(Port), pid(Owner)}
                             || #{<<"port">> := Port, <<"owner">> := Owner} <- rows(ports, Report)])).

crashes(Config) ->
    Report = report([spawned(1000, ?B, ?A), spawned(1100, ?C, ?A),
                     {1500, process_link, #{from => ?A, to => ?B, type => "link"}},
                     exited(2000, ?C, "shutdown"), exited(3000, ?B, "{badmatch,[]}")], Config),
    [#{<<"process">> := B, <<"time">> := 3000, <<"reason">> := <<"{badmatch,[]}">>, <<"linked">> := [A]}] =
        rows(exits, Report),
    ?assertEqual({?B, ?A}, {pid(B), pid(A)}),
    ?assertMatch([#{<<"severity">> := <<"high">>, <<"about">> := <<"exits">>} | _], rows(findings, Report)).

%% 1000 calls that take 1 to 1000 us, in random order. Quantiles are within 1 %; count, total and maximum are exact.
quantiles(Config) ->
    {_, Events} = lists:foldl(fun(N, {At, Calls}) ->
                                      Us = N * 379 rem 1000 + 1,
                                      {At + Us * 1000 + 10, [Calls, call(At, ?A, "shop:get/1"),
                                                             return(At + Us * 1000, ?A, "shop:get/1")]}
                              end, {1000, []}, lists:seq(1, 1000)),
    [Row] = rows(calls, report(Events, Config)),
    ?assertMatch(#{<<"entry">> := <<"shop:get/1">>, <<"count">> := 1000, <<"total_ns">> := 500500000,
                   <<"own_ns">> := 500500000, <<"max_ns">> := 1000000, <<"exceptions">> := 0}, Row),
    about(500000, maps:get(<<"p50_ns">>, Row)),
    about(990000, maps:get(<<"p99_ns">>, Row)).

about(Exact, Shown) ->
    ?assert(abs(Shown - Exact) =< Exact / 100, {Exact, Shown}).

%% The total counts only the outermost call. Once a function has returned, calls are expected to return.
recursion(Config) ->
    Report = report([call(500, ?B, "shop:warm/0"), return(600, ?B, "shop:warm/0"),
                     call(1000, ?A, "shop:walk/1"), call(2000, ?A, "shop:walk/1"), call(2500, ?A, "shop:leaf/0"),
                     return(3500, ?A, "shop:leaf/0"), return(4000, ?A, "shop:walk/1"),
                     return(6000, ?A, "shop:walk/1")], Config),
    ?assertEqual([{<<"shop:leaf/0">>, 1, 1000, 1000}, {<<"shop:walk/1">>, 2, 5000, 4000}],
                 lists:sort([{Entry, Count, Total, Own} || #{<<"entry">> := Entry, <<"count">> := Count,
                                                              <<"total_ns">> := Total, <<"own_ns">> := Own}
                                                               <- rows(calls, Report), Entry =/= <<"shop:warm/0">>])).

exceptions(Config) ->
    Report = report([[call(N * 100, ?A, "shop:pay/1"),
                      case N rem 2 of
                          0 -> return(N * 100 + 50, ?A, "shop:pay/1");
                          1 -> {N * 100 + 50, function_exception,
                                #{pid => ?A, entry => "shop:pay/1", class => "error"}}
                      end] || N <- lists:seq(10, 49)], Config),
    ?assertMatch([#{<<"count">> := 40, <<"exceptions">> := 20}], rows(calls, Report)),
    ?assertMatch([#{<<"severity">> := <<"low">>, <<"about">> := <<"calls">>,
                    <<"text">> := <<"shop:pay/1: 20 of 40 calls ended with an exception">>}], rows(findings, Report)).

%% Two clients call at the same time, with 1 ms of work each, so the second request waits 1 ms in the mailbox.
server_calls(Config) ->
    Request = fun(Client, N) -> lists:flatten(io_lib:format("{'$gen_call',{~s,#Ref<0.0.0.~b>},{get,~b}}",
                                                            [Client, N, N])) end,
    Reply = fun(N) -> lists:flatten(io_lib:format("{#Ref<0.0.0.~b>,ok}", [N])) end,
    Report = report([identity(1000, ?A, "shop_db"), identity(1000, ?B, ""), identity(1000, ?C, ""),
                     send(?MS, ?B, ?A, Request(?B, 1)), delivery(?MS, ?B, ?A, Request(?B, 1)),
                     in(?MS, ?A, "gen_server:loop/7"),
                     send(?MS + 100, ?C, ?A, Request(?C, 2)), delivery(?MS + 100, ?C, ?A, Request(?C, 2)),
                     send(2 * ?MS, ?A, ?B, Reply(1)), delivery(2 * ?MS, ?A, ?B, Reply(1)),
                     out(2 * ?MS, ?A, "gen_server:loop/7"), in(2 * ?MS + 10, ?A, "gen_server:loop/7"),
                     send(3 * ?MS, ?A, ?C, Reply(2)), delivery(3 * ?MS, ?A, ?C, Reply(2)),
                     out(3 * ?MS + 10, ?A, "gen_server:loop/7")], Config),
    [Row] = rows(server_calls, Report),
    ?assertMatch(#{<<"request">> := <<"{get,_}">>, <<"example">> := <<"{get,1}">>, <<"count">> := 2,
                   <<"max_ns">> := 1999900, <<"timeouts">> := 0, <<"downs">> := 0,
                   <<"server">> := #{<<"name">> := <<"shop_db">>},
                   <<"caller">> := #{<<"number">> := null, <<"pid">> := <<>>, <<"show">> := <<"shop:init/1">>}}, Row),
    about(?MS, maps:get(<<"p50_ns">>, Row)).

%% The calls of processes whose names follow, and calls of many short-lived servers: each kind has one row. A server
%% that has ended by itself keeps its own row.
calls_by_kind(Config) ->
    Call = fun(At, Id, Client, Server) ->
                   [send(At, Client, Server, format("{'$gen_call',{~s,#Ref<0.0.0.~b>},get}", [Client, Id])),
                    in(At + 10, Server, "gen_server:loop/7"),
                    send(At + 1000, Server, Client, format("{#Ref<0.0.0.~b>,ok}", [Id])),
                    out(At + 1010, Server, "gen_server:loop/7")]
           end,
    Cart = fun(N, Pid) ->
                   At = N * ?MS,
                   Client = format("<0.~b.0>", [500 + N]),
                   [{At, process_spawn, #{pid => Pid, parent => ?A, entry => "proc_lib:init_p/5"}},
                    {At, process_identity, #{pid => Pid, parent => ?A, initial => "shop_cart:init/1", name => "",
                                             label => "", node => "shop@host"}},
                    Call(At + 10, N, Client, Pid), exited(At + 5000, Pid, "normal"),
                    {At + 6000, process_identity, #{pid => Client, parent => ?A, initial => "shop_client:run/0",
                                                    name => "", label => "", node => "shop@host"}}]
           end,
    Carts = fun(Number) ->
                    Report = report([[Cart(N, format("<0.~b.0>", [100 + N])) || N <- lists:seq(1, Number)],
                                     identity(90 * ?MS, ?A, "shop_sup")], Config),
                    lists:sort([{maps:get(<<"show">>, Caller), maps:get(<<"show">>, Server), Count}
                                || #{<<"caller">> := Caller, <<"server">> := Server,
                                     <<"count">> := Count} <- rows(server_calls, Report)])
            end,
    ?assertEqual([{<<"shop_client:run/0">>, <<"shop_cart:init/1">>, 20}], Carts(20)),
    ?assertEqual([{<<"shop_client:run/0 <0.501.0>">>, <<"shop_cart:init/1 <0.101.0>">>, 1},
                  {<<"shop_client:run/0 <0.502.0>">>, <<"shop_cart:init/1 <0.102.0>">>, 1}], Carts(2)).

spans(Config) ->
    Span = fun(At, Id, Ns, Outcome) ->
                   [{At, user_span_start, #{pid => ?A, name => "checkout", id => Id}},
                    {At + Ns, user_span_stop, #{pid => ?A, name => "checkout", id => Id, duration => Ns,
                                                outcome => Outcome}}]
           end,
    Report = report([Span(1000, 1, 100, "ok"), Span(2000, 2, 120, "error"), Span(3000, 3, 127, "ok")], Config),
    ?assertMatch([#{<<"name">> := <<"checkout">>, <<"count">> := 3, <<"p50_ns">> := 120, <<"max_ns">> := 127,
                    <<"failed">> := 1}], rows(spans, Report)).

%% Kinds have the route, table, module or queue in their name, if that is a name. Starts do not count.
telemetry(Config) ->
    Event = fun(At, Name, Ns, Metadata) ->
                    {At, telemetry_event, #{pid => ?A, name => Name, duration => Ns, measurements => "#{}",
                                            metadata => Metadata}}
            end,
    Kinds = [{"#{route=><<\"/orders/:id\">>,status=>200}", " /orders/:id"}, {"#{source=>\"orders\"}", " orders"},
             {"#{worker=>'Elixir.Shop.Mail',queue=>mail}", " Shop.Mail"}, {"#{queue=>mail}", " mail"},
             {"#{source=>nil,queue=>mail}", ""}, {"#{route=>{binary,11}}", ""}, {"#{status=>200,route=>a}", ""},
             {"#{route=><<\"a b\">>}", ""}, {"#{route=><<\"a\\\"b\">>}", ""}, {"#{route=><<1,2>>}", ""},
             {"#{route=><<\"cut...", ""}, {"#{route=>", ""}, {"#{route", ""}, {"#{routes=>a}", ""}, {"#", ""},
             {"", ""}],
    Report = report([Event(0, "shop.order.start", -1, "#{}"), Event(10, "vm.memory", -1, "#{}")]
                    ++ [Event(1000 * N, lists:concat(["kind", N, case N rem 2 of 0 -> ".stop"; 1 -> ".exception" end]),
                              100 + N, Metadata)
                        || {N, {Metadata, _}} <- lists:enumerate(Kinds)]
                    ++ [Event(50000, "kind2.stop", 1000, "#{source=>\"orders\"}")], Config),
    ?assertEqual([{"kind2 orders", 2, 1102, 0} |
                  lists:reverse([{lists:concat(["kind", N, Name]), 1, 100 + N, N rem 2}
                                 || {N, {_, Name}} <- lists:enumerate(Kinds), N =/= 2])] ++ [{"vm.memory", 1, null, 0}],
                 [{binary_to_list(Name), Count, Total, Failed}
                  || #{<<"name">> := Name, <<"count">> := Count, <<"total_ns">> := Total,
                       <<"failed">> := Failed} <- rows(telemetry, Report)]).

%% What takes the time of requests: queries, not the span around them, and not what other processes do meanwhile. The
%% begins of spans are late, because their events follow their ends.
telemetry_parts(Config) ->
    Event = fun(Pid, At, Name, Ms, Metadata) ->
                    {round(At * ?MS), telemetry_event, #{pid => Pid, name => Name, duration => round(Ms * ?MS),
                                                         measurements => "#{}", metadata => Metadata}}
            end,
    Query = fun(Pid, At, Ms) -> Event(Pid, At, "shop.repo.query", Ms, "#{source=><<\"orders\">>}") end,
    Order = fun(At, Ms) -> Event(?A, At + Ms + 0.01, "shop.order.stop", Ms, "#{route=><<\"/orders/:id\">>}") end,
    Request = fun(At) ->
                      [Query(?A, At + 30, 30), Query(?B, At + 40, 20), Query(?A, At + 70, 30),
                       Event(?A, At + 95, "shop.dispatch.stop", 90, "#{}"), Order(At, 100), Query(?A, At + 150, 20)]
              end,
    Requests = [Request(N * 200) || N <- lists:seq(1, 3)],
    ?assertEqual([{<<"shop.dispatch">>, [{<<"shop.repo.query orders">>, 180 * ?MS}]},
                  {<<"shop.order /orders/:id">>, [{<<"shop.dispatch">>, 90 * ?MS},
                                                  {<<"shop.repo.query orders">>, 180 * ?MS}]},
                  {<<"shop.repo.query orders">>, []}], parts(report(Requests, Config))),
    [Row] = [Line || Line <- text(Requests, [], Config), string:find(Line, "shop.order ") =/= nomatch],
    ?assertMatch({match, _}, re:run(Row, " 60 % +shop.repo.query orders$")),
    %% A thousand short queries in a request; two requests of a hundred are slow.
    ?assertEqual([{<<"shop.order /orders/:id">>, [{<<"shop.repo.query orders">>, 50 * ?MS}]},
                  {<<"shop.repo.query orders">>, []}],
                 parts(report([[Query(?A, 1000 + N * 0.1, 0.05) || N <- lists:seq(1, 1000)], Order(1000, 101)],
                              Config))),
    #{<<"findings">> := Findings} = report([[Query(?A, N * 1000 + Ms / 2, Ms / 2), Order(N * 1000, Ms)]
                                            || {N, Ms} <- lists:enumerate([600, 600 | lists:duplicate(98, 4)])],
                                           Config),
    ?assertEqual([<<"shop.order /orders/:id: 100 calls, median 4.01 ms, 99th percentile 600 ms; 50 % of their time in "
                    "shop.repo.query orders">>],
                 [Text || #{<<"rule">> := <<"slow_telemetry">>, <<"text">> := Text} <- Findings]).

parts(Report) ->
    lists:sort([{Name, lists:sort([{Part, Ns} || #{<<"name">> := Part, <<"total_ns">> := Ns} <- Parts])}
                || #{<<"name">> := Name, <<"parts">> := Parts} <- rows(telemetry, Report)]).

counters(Config) ->
    Report = report([{N, vm_counter, #{name => "run_queue", value => Value, unit => "number"}}
                     || {N, Value} <- [{1000, 3}, {2000, 17}, {3000, 0}, {4000, 5}]], Config),
    ?assertMatch([#{<<"name">> := <<"run_queue">>, <<"unit">> := <<"number">>, <<"min">> := 0, <<"max">> := 17,
                    <<"last">> := 5}], rows(counters, Report)).

log(Config) ->
    Report = report([{1000, log, #{pid => ?A, level => "error", text => "Supervisor"}}], Config),
    [#{<<"process">> := A, <<"time">> := 1000, <<"level">> := <<"error">>, <<"text">> := <<"Supervisor">>}] =
        rows(log, Report),
    ?assertEqual(?A, pid(A)),
    ?assertMatch([#{<<"about">> := <<"log">>, <<"process">> := #{<<"pid">> := <<?A>>},
                    <<"text">> := <<"the log has 1 line of level error or above, by <0.90.0>: Supervisor">>}],
                 rows(findings, Report)).

%% Events of a probe without a table of its own, with the names of its fields.
other_events(Config) ->
    Events = [{1000, log, #{pid => ?A, level => "notice", text => "Supervisor"}},
              {2000, "erlang:process__hibernate", #{p => ?A, mfa => "erlang:hibernate/3"}}],
    Report = report(Events, Config),
    [#{<<"process">> := A, <<"time">> := 2000, <<"event">> := <<"process__hibernate">>,
       <<"fields">> := <<"p: <0.90.0>, mfa: erlang:hibernate/3">>}] = rows(others, Report),
    ?assertEqual(?A, pid(A)),
    ?assertMatch(#{<<"recording">> := #{<<"kinds">> := [<<"log">>, <<"other events">>]}}, Report),
    ?assertMatch([_, <<"0.000001  process__hibernate  <0.90.0>  p: <0.90.0>, mfa: erlang:hibernate/3">>],
                 [string:trim(Line) || Line <- table("Other events", text(Events, [], Config))]).

%% The steps add up to the events, regardless of their length.
load(Config) ->
    Report = report([[in(N * 1000000, ?A, "a:b/1"), send(N * 1000000 + 10, ?A, ?B, "m"),
                      out(N * 1000000 + 250000, ?A, "a:b/1")] || N <- lists:seq(1, 2000)], Config),
    #{<<"load">> := #{<<"begin">> := 1000000, <<"step_ns">> := Step,
                      <<"nodes">> := [#{<<"run">> := Run, <<"sent">> := Sent}]}} = Report,
    ?assert(length(Run) =< 300),
    ?assert(length(Run) >= 150),
    ?assertEqual(2000, lists:sum(Sent)),
    Length = 2000 * 1000000 - 750000,
    ?assert(abs(lists:sum(lists:droplast(Run)) * Step + lists:last(Run) * (Length - Step * (length(Run) - 1))
                - 2000 * 250000) < 2000 * 250000 / 1000).

%% One process receives nearly all messages.
findings(Config) ->
    Report = report([identity(1000, ?A, "shop_db"),
                     [[send(2000 + N, From, To, "m"), delivery(2000 + N, From, To, "m")]
                      || N <- lists:seq(1, 1000), {From, To} <- [case N rem 10 of
                                                                    0 -> {?A, ?B};
                                                                    _ -> {?B, ?A}
                                                                end]]], Config),
    ?assertMatch([#{<<"about">> := <<"talks">>, <<"text">> := <<"<0.90.0> shop_db received 90 % of all messages">>,
                    <<"process">> := #{<<"name">> := <<"shop_db">>}}], rows(findings, Report)).

lost_comes_first(Config) ->
    Report = report([spawned(1000, ?B, ?A), exited(1100, ?B, "{badmatch,[]}"), #{time => 2000, lost => 12},
                     in(3000, ?A, "a:b/1")], Config),
    [#{<<"severity">> := <<"high">>, <<"text">> := <<"12 events were lost", _/binary>>} | _] = rows(findings, Report),
    ?assertMatch(#{<<"recording">> := #{<<"lost_events">> := 12, <<"lost">> := [#{<<"count">> := 12}]}}, Report).

%% Of many processes, those with the largest numbers are listed; the others are summed.
memory_is_bounded(Config) ->
    Count = 30000,
    Life = fun(N) ->
                   At = N * 1000,
                   Pid = io_lib:format("<0.~b.0>", [N + 100]),
                   [spawned(At, Pid, ?A), in(At + 1, Pid, "a:b/1"), send(At + 2, Pid, ?A, "m"),
                    delivery(At + 3, Pid, ?A, "m"), exited(At + 10 + N rem 500, Pid, "normal")]
           end,
    Report = report([Life(N) || N <- lists:seq(1, Count)], Config),
    #{<<"processes">> := Processes, <<"left_out">> := #{<<"processes">> := Others}} = Report,
    ?assert(length(Processes) =< 3000),
    ?assertEqual(Count + 1, length(Processes) + maps:get(<<"count">>, Others)),
    ?assertEqual(Count, lists:sum([maps:get(<<"sent">>, Process) || Process <- Processes])
                 + maps:get(<<"sent">>, Others)),
    ?assertMatch(#{<<"received">> := Count}, process(?A, Report)),
    %% The processes have the same initial call: their messages became one row when the table was full.
    Talks = rows(talks, Report),
    ?assert(length(Talks) =< 8192),
    ?assertEqual(Count, lists:sum([Messages || #{<<"messages">> := Messages} <- Talks])),
    ?assertMatch([#{<<"from">> := #{<<"number">> := null, <<"show">> := <<"a:b/1">>}} | _], Talks).

%% In the text, the sums of the other processes have only recorded quantities.
others_in_text(Config) ->
    Life = fun(N) ->
                   At = N * 1000,
                   Pid = io_lib:format("<0.~b.0>", [N + 100]),
                   [spawned(At, Pid, ?A), in(At + 1, Pid, "a:b/1"), send(At + 2, Pid, ?B, "m"),
                    exited(At + 10 + N rem 500, Pid, "normal")]
           end,
    Lines = text([Life(N) || N <- lists:seq(1, 6000)], [], Config),
    [Others] = [Line || Line = <<"Other processes", _/binary>> <- Lines],
    {match, [Count, Sent]} = re:run(Others, "^Other processes, low in all tables: (\\d+); together they ran "
                                    "[^,]+, sent (\\d+) messages\\.$", [{capture, all_but_first, list}]),
    ?assertEqual(Count, Sent).

%% A contradictory recording: the processes are each other's parents.
circle_of_parents(Config) ->
    Identity = fun(At, Pid, Parent) ->
                       {_, Probe, Fields} = identity(At, Pid, ""),
                       {At, Probe, Fields#{parent := Parent}}
               end,
    Report = report([spawned(0, ?A, ?B), Identity(10, ?A, ?C), spawned(20, ?B, ?A), Identity(30, ?B, ?D),
                     spawned(40, ?C, ?B), Identity(50, ?C, ?D), spawned(60, ?D, ?C), exited(70, ?B, "normal"),
                     exited(80, ?A, "normal")], Config),
    Parents = [maps:get(<<"parent">>, process(Pid, Report)) || Pid <- [?A, ?B, ?C, ?D]],
    ?assertMatch([#{<<"pid">> := <<?B>>}, #{<<"pid">> := <<?D>>}, #{<<"pid">> := <<?B>>}, null], Parents).

%% All reasons and names differ.
rows_are_bounded(Config) ->
    Life = fun(N) ->
                   Pid = io_lib:format("<0.~b.0>", [N + 100]),
                   [spawned(N * 100, Pid, ?A), exited(N * 100 + 1, Pid, io_lib:format("{badmatch,~b}", [N]))]
           end,
    Report = report([Life(N) || N <- lists:seq(1, 3000)], Config),
    ?assertEqual(1000, length(rows(exits, Report))),
    #{<<"left_out">> := #{<<"exits">> := 2000}} = Report.

text(Config) ->
    Lines = text([identity(1000, ?A, "shop_db"), in(2000, ?A, "shop:init/1"), out(1502000, ?A, "shop:loop/1"),
                  call(1600000, ?A, "shop:" ++ lists:duplicate(200, $x) ++ "/1"),
                  send(1700000, ?A, ?B, "m")], [{width, 120}], Config),
    [?assert(string:length(Line) =< 120, Line) || Line <- Lines],
    ?assertMatch([<<"Findings: none">> | _], Lines),
    ?assert(lists:any(fun(Line) -> re:run(Line, "<0.90.0> shop_db +shop:init/1 +1.50 ms", [unicode]) =/= nomatch end,
                      Lines)).

%% If the columns do not fit, the request is shortened first, then the caller's initial call: a pid is never cut. There
%% is no column for failures, because nothing has failed.
narrow_text(Config) ->
    Lines = long_names([{width, 120}], Config),
    [Heads, Row] = table("Calls of gen_servers", Lines),
    ?assertEqual(["caller", "server", "request", "calls", "p50", "max", "mailbox", "work"], words(Heads)),
    ?assertEqual(120, string:length(Row)),
    ?assertMatch(["<0.91.0>", "shop_c" ++ _, "shop_db", "{rrrrrrrrrrr...", "1" | _], words(Row)).

%% Without a terminal, nothing is truncated.
wide_text(Config) ->
    [_, Row] = table("Calls of gen_servers", long_names([], Config)),
    ?assertMatch(["<0.91.0>", "shop_" ++ Initial, "shop_db", "{" ++ Request, "1" | _]
                 when length(Initial) =:= 87 andalso length(Request) =:= 71, words(Row)).

long_names(Params, Config) ->
    Request = "{'$gen_call',{<0.91.0>,#Ref<0.0.0.1>},{" ++ lists:duplicate(68, $r) ++ ",1}}",
    Initial = "shop_" ++ lists:duplicate(80, $c) ++ ":init/1",
    text([identity(1000, ?A, "shop_db"),
          {1000, process_identity, #{pid => ?B, initial => Initial, node => "shop@host"}},
          send(2000, ?B, ?A, Request), delivery(2000, ?B, ?A, Request), in(2100, ?A, "gen_server:loop/7"),
          send(3000, ?A, ?B, "{#Ref<0.0.0.1>,ok}")], Params, Config).

%% Counters have their units; counters that were always 0 are left out. Those of single schedulers come last, and only
%% their number is limited.
text_of_counters(Config) ->
    Lines = text([{1000, vm_counter, #{name => Name, value => Value, unit => Unit}}
                  || {Name, Value, Unit} <- [{"run_queue_10", 3, "number"}, {"run_queue_2", 4, "number"},
                                             {"dirty_io_utilization_1", 0, "per mille"}, {"memory_ets", 5000, "bytes"},
                                             {"gc_reclaimed", 1000, "words"},
                                             {"scheduler_utilization_1", 17, "per mille"}]], [{top, 1}], Config),
    ?assertEqual([["counter", "min", "max", "last"],
                  ["gc_reclaimed", "8.00", "kB", "8.00", "kB", "8.00", "kB"],
                  ["memory_ets", "5.00", "kB", "5.00", "kB", "5.00", "kB"]],
                 [words(Line)
                  || Line <- table("Counters of the VM, without those that were always 0 (2 of 5)", Lines)]).

%% With several nodes, tables have the number of the node, and findings its name.
text_of_nodes(Config) ->
    On = fun(Vpid) -> #{vpid => Vpid, vtid => Vpid} end,
    Events = [[{Ns, process_identity, #{pid => ?A, name => "shop", node => Node}, On(Vpid)},
               {Ns + 1000, process_scheduled, #{pid => ?A, entry => "a:b/1", type => "in"}, On(Vpid)},
               {Ns + 2000 + Ns, process_scheduled, #{pid => ?A, entry => "a:b/1", type => "out"}, On(Vpid)},
               {Ns + 3000 + Ns, process_exit, #{pid => ?A, reason => "oops"}, On(Vpid)}]
              || {Ns, Node, Vpid} <- [{1000, "one@host", 17}, {100000, "two@host", 18}]],
    Lines = text(Events, [], Config),
    ?assertMatch([["node", "process", "ran" | _], ["2", "<0.90.0>", "shop", "101", _ | _],
                  ["1", "<0.90.0>", "shop", "2.00", _ | _]],
                 [words(Line) || Line <- table("Processes by run time", Lines)]),
    ?assert(lists:member(<<"  high    <0.90.0> shop of one@host and 1 more crashed: oops">>, Lines)).

%% No text moves the terminal's cursor.
text_is_harmless(Config) ->
    Reason = "\e[2Jred\r\n\x{9b}31m\x{202e}" ++ [16#1F600],
    Events = [identity(1000, ?B, "shop"), exited(2000, ?B, Reason),
              {3000, log, #{pid => ?A, level => "error", text => Reason}}],
    Lines = text(Events, [], Config),
    Text = unicode:characters_to_list(lists:join("\n", Lines)),
    ?assertEqual([], [Char || Char <- Text, Char =/= $\n, (Char < 32) or (Char >= 127) and (Char < 160)
                                  or (Char =:= 16#202E)]),
    ?assertNotEqual(nomatch, string:find(Text, "\\x1b[2Jred")),
    Whole = unicode:characters_to_binary(Reason),
    ?assertMatch([#{<<"reason">> := Whole}], rows(exits, report(Events, Config))).

%% Names and terms of an Elixir node are in Elixir's spelling, those of another node in Erlang's. A server has one row,
%% however its name became known.
elixir(Config) ->
    Request = "{'$gen_call',{<0.91.0>,#Ref<0.0.0.1>},{pay,<<\"tea\">>,'Elixir.Shop.Cash'}}",
    Erlang = "{noproc,{'Elixir.GenServer',call,['Elixir.Shop.Cash',pay]}}",
    Reason = "{#{'__exception__'=>true,'__struct__'=>'Elixir.ArgumentError',message=>no_tea},"
             "[{'Elixir.Shop.Cart','-add/2-fun-0-',2,[{file,\"lib/cart.ex\"},{line,17}]},{shop,pay,1,[]}]}",
    Of = fun(Sup, Exit) ->
                 report([identity(10, ?A, "Shop.Till"), identity(10, ?B, ""),
                         {20, process_register, #{pid => ?A, name => "'Elixir.Shop.Till'", type => "register"}},
                         send(2000, ?B, "'Elixir.Shop.Till'", Request), delivery(2000, ?B, ?A, Request),
                         in(2100, ?A, "'Elixir.Shop.Till':handle/1"), send(3000, ?A, ?B, "{#Ref<0.0.0.1>,ok}"),
                         out(3100, ?A, "'Elixir.Shop.Till':loop/1"), send(4000, ?B, "'Elixir.Shop.Gone'", "{put,[]}"),
                         exited(5000, ?A, Exit),
                         send(6000, ?B, "'Elixir.Shop.Till'", "{put,[{a,1}]}"), identity(7000, ?C, Sup)], Config)
         end,
    Shown = fun(Report) ->
                    #{<<"findings">> := Findings, <<"exits">> := [#{<<"reason">> := Exit}],
                      <<"server_calls">> := [#{<<"server">> := #{<<"name">> := Server}, <<"request">> := Shape,
                                               <<"example">> := Example}]} = Report,
                    [Crash] = [Text || #{<<"rule">> := <<"crashes">>, <<"text">> := Text} <- Findings],
                    ?assertNotEqual(nomatch, string:find(Crash, Exit)),
                    {Server, Shape, Example, Exit}
            end,
    ?assertEqual({<<"Shop.Till">>, <<"{:pay, _, _}">>, <<"{:pay, \"tea\", Shop.Cash}">>,
                  <<"{%ArgumentError{message: :no_tea}, [{Shop.Cart, :\"-add/2-fun-0-\", 2, "
                    "[file: ~c\"lib/cart.ex\", line: 17]}, {:shop, :pay, 1, []}]}">>}, Shown(Of("elixir_sup", Reason))),
    ?assertMatch({<<"Shop.Till">>, <<"{pay,_,_}">>, <<"{pay,<<\"tea\">>,'Elixir.Shop.Cash'}">>,
                  <<"{noproc,{'Elixir.GenServer',call,['Elixir.Shop.Cash',pay]}}">>}, Shown(Of("other_sup", Erlang))).

%% An awaited task gets its function in its first message.
elixir_tasks(Config) ->
    Task = fun(At, Pid, Call) ->
                   Message = "{<0.90.0>,#Ref<0.0.0.1>,<0.90.0>,[<0.90.0>]," ++ Call ++ "}",
                   [{At, process_spawn, #{pid => Pid, parent => ?B, entry => "proc_lib:init_p/5"}},
                    {At + 1, process_identity, #{pid => Pid, parent => ?B, initial => "Task.Supervised.reply/2",
                                                 name => "", label => "", node => "shop@host"}},
                    send(At + 2, ?A, Pid, Message), in(At + 3, Pid, "a:b/1"), exited(At + 9, Pid, "normal")]
           end,
    Report = report([identity(0, ?A, "Shop.Till"), identity(0, ?B, "Shop.Tasks", "supervisor:Task.Supervisor/1"),
                     [Task(N * 100, format("<0.~b.0>", [100 + N]), Call)
                      || {N, Call} <- [{1, "{erlang,apply,[#Fun<Elixir.Shop.Cart.3.61>,[]]}"},
                                       {2, "{'Elixir.Shop.Cart',add,[17,{a,[b]}]}"}, {3, "{shop,run,[]}"},
                                       {4, "{shop,run,[<<..."}]],
                     %% Not awaited.
                     {500, process_spawn, #{pid => "<0.105.0>", parent => ?B, entry => "shop:run/2"}},
                     send(510, ?B, ?A, "{[alias|#Ref<0.0.0.2>],{ok,<0.105.0>}}")], Config),
    ?assertEqual([{<<"#Fun<Shop.Cart.3.61>">>, <<"#Fun<Shop.Cart.3.61> for Shop.Till">>},
                  {<<"Shop.Cart.add/2">>, <<"Shop.Cart.add/2 for Shop.Till">>},
                  {<<"shop:run/0">>, <<"shop:run/0 for Shop.Till">>},
                  {<<"Task.Supervised.reply/2">>, <<>>}, {<<"shop:run/2">>, <<"shop:run/2 for Shop.Till">>}],
                 [{Initial, Label} || N <- [1, 2, 3, 4, 5],
                                      #{<<"initial">> := Initial, <<"label">> := Label}
                                          <- [process(format("<0.~b.0>", [100 + N]), Report)]]).

%% No process started or ended, which the recording would show.
no_lives(Config) ->
    Trace = test_viewer:make([in(1000, ?A, "a:b/1")], Config),
    Kinds = fun() ->
                    Report = test_viewer:json(report, [{format, "json"}], [Trace]),
                    #{<<"recording">> := #{<<"kinds">> := Kinds}} = Report,
                    [Kind || Kind <- Kinds, lists:member(Kind, [<<"spawns">>, <<"exits">>])]
            end,
    ?assertEqual([], Kinds()),
    [Metadata] = filelib:wildcard(filename:join([Trace, "**", "metadata"])),
    [ok = file:write_file(Metadata, format("event { name = \"org_erlang_dyntrace:~s\"; id = ~b; stream_id = 0; "
                                           "fields := struct { string pid; string ~s; }; };\n", [Name, Id, Field]),
                          [append])
     || {Name, Id, Field} <- [{process_spawn, 90, parent}, {process_exit, 91, reason}]],
    ?assertEqual([<<"exits">>, <<"spawns">>], lists:sort(Kinds())).

parameters(Config) ->
    Trace = test_viewer:make([in(1000, ?A, "a:b/1")], Config),
    [begin
         {Status, Output} = test_viewer:view(report, Params, [Trace]),
         ?assertNotEqual(0, Status),
         ?assertNotEqual(nomatch, string:find(Output, Name), Output)
     end || {Name, Params} <- [{"format", [{format, "xml"}]}, {"top", [{top, 0}]},
                               {"/nowhere", [{path, "/nowhere/at/all"}]}]],
    %% Paths that can't be files are refused before the recording is read, which may take long.
    [begin
         {Status, Output} = test_viewer:view(report, [{path, Path}], [Trace]),
         ?assertNotEqual(0, Status),
         ?assertMatch({match, _}, re:run(Output, "parameter path has to be")),
         ?assertEqual(nomatch, re:run(Output, "consume"))
     end || Path <- ["", Trace]],
    ?assertNot(filelib:is_file(Trace ++ ".part")),
    Many = [[in(N * 1000, Pid, "a:b/1"), out(N * 1000 + 10, Pid, "a:b/1")]
            || N <- lists:seq(1, 50), Pid <- [io_lib:format("<0.~b.0>", [N])]],
    Rows = fun(Lines) -> length([Line || Line <- Lines, re:run(Line, "^  <0\\.", []) =/= nomatch]) end,
    ?assertEqual(20, Rows(text(Many, [], Config))),
    ?assertEqual(7, Rows(text(Many, [{top, 7}], Config))).

%% -- Events --------------------------------------------------------------------------------------

spawned(At, Pid, Parent) -> {At, process_spawn, #{pid => Pid, parent => Parent, entry => "a:b/1"}}.

report(Events, Config) ->
    test_viewer:json(report, [{format, "json"}], [test_viewer:make(lists:flatten(Events), Config)]).

text(Events, Params, Config) ->
    test_viewer:lines(report, Params, [test_viewer:make(lists:flatten(Events), Config)]).

%% The indented lines below the title that begins with this text.
table(Title, Lines) ->
    [_ | Below] = lists:dropwhile(fun(Line) -> string:prefix(Line, Title) =:= nomatch end, Lines),
    lists:takewhile(fun(Line) -> string:prefix(Line, "  ") =/= nomatch end, Below).

format(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

words(Line) ->
    string:lexemes(unicode:characters_to_list(Line), " ").

rows(Table, Report) ->
    maps:get(atom_to_binary(Table), Report).

process(Pid, Report) ->
    [Row] = [Row || Row = #{<<"process">> := Process} <- rows(processes, Report), pid(Process) =:= Pid],
    Row.

pid(#{<<"pid">> := Pid}) -> binary_to_list(Pid).
