%% The tables of the application's own work: it polls for consumers, sets trace flags, takes samples, and dumps the
%% identities of processes.
-module(dyntrace_bench_polling).

-export([polling/1, following/1, identities/1]).

%% For hibernating processes.
-export([sleep/0]).

-import(dyntrace_bench_figures, [rounds/0, median/1, count/1]).

-define(WINDOW_MS, 1000).
-define(SETTLED_MS, 500).
-define(TURNS_MS, 100).

-type measured() :: {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.

%% -- Continuous work -------------------------------------------------------------------------

%% Beside idle processes, so that all CPU time is that of the application and of the VM itself.
-spec polling(dyntrace_bench_tracers:consumers()) -> measured().
polling(Consumers) ->
    Amounts = [10, 100000],
    Figures = maps:from_list(lists:append([beside(Amount, fun() -> polled(Amount, Consumers) end)
                                           || Amount <- Amounts])),
    {{"What polls and samples",
      io_lib:format(
        "CPU time of the node, per mille of one CPU over ~b ms, and the longest delay of a timer in another process, "
        "in microseconds, beside that many hibernating processes. Measured once. A timer is up to a millisecond late "
        "by itself. The baseline is the same node without the application. Consumers are LTTng sessions. Dumps have a "
        "table of their own.",
        [?WINDOW_MS]),
      ["the application" | lists:append([[[count(Amount), " processes: CPU"], "delay"] || Amount <- Amounts])],
      [[Title | lists:append([[io_lib:format("~.1f", [maps:get({Row, {cpu, Amount}}, Figures)]),
                               count(maps:get({Row, {delay, Amount}}, Figures))] || Amount <- Amounts])]
       || {Row, Title, _, _} <- states()]},
     Figures}.

%% {Row, Title, the application's options, the probes that LTTng enables}
states() ->
    [{none, "is not started", none, []},
     {idle, "polls, no consumer", #{}, []},
     {attached, "traces all processes for `message_send`", #{}, [message_send]},
     {counters, "samples `vm_counter` every second", #{sample_interval => 1000}, [vm_counter]},
     {allocators, "samples allocators every second (`carrier_*`)", #{sample_interval => 1000},
      [carrier_create, carrier_destroy]}].

beside(Amount, Fun) ->
    Idle = [spawn_monitor(fun sleep/0) || _ <- lists:seq(1, Amount)],
    try Fun()
    after ended(Idle)
    end.

%% Kills these processes, and waits for their ends, so that the next measurement is not affected.
ended(Processes) ->
    [exit(Pid, kill) || {Pid, _} <- Processes],
    [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Processes],
    ok.

polled(Amount, Consumers) ->
    [{{Row, {What, Amount}}, in_state(State, Consumers, Measure)}
     || State = {Row, _, _, _} <- states(),
        {What, Measure} <- [{cpu, fun() -> cpu(?WINDOW_MS) end}, {delay, fun() -> delay(?WINDOW_MS) end}]].

in_state({none, _, none, []}, _, Measure) ->
    Measure();
in_state({_, _, Options, Probes}, Consumers, Measure) ->
    {ok, _} = application:ensure_all_started(dyntrace),
    ok = dyntrace:follow(Options),
    try attached(Probes, Consumers, fun() -> receive after ?SETTLED_MS -> Measure() end end)
    after ok = application:stop(dyntrace)
    end.

attached([], _, Fun) -> Fun();
attached(Probes, Consumers, Fun) -> dyntrace_bench_tracers:with_probes(Probes, Consumers, Fun).

%% Per mille of a CPU.
cpu(Window) ->
    {Before, Began} = {cpu_ns(), erlang:monotonic_time(nanosecond)},
    receive after Window -> ok end,
    {After, Ended} = {cpu_ns(), erlang:monotonic_time(nanosecond)},
    %% Threads that have ended are not included.
    Spent = lists:sum([Ns - maps:get(Task, Before, 0) || {Task, Ns} <- maps:to_list(After)]),
    true = Spent > 0,
    1000 * Spent / (Ended - Began).

%% The CPU time of each thread of this VM, in user mode and in the kernel.
cpu_ns() ->
    {ok, Tasks} = file:list_dir("/proc/self/task"),
    maps:from_list([{Task, binary_to_integer(hd(binary:split(Stat, <<" ">>)))}
                    || Task <- Tasks, {ok, Stat} <- [file:read_file(["/proc/self/task/", Task, "/schedstat"])]]).

%% Not measured at the same time, because timers take CPU time themselves.
delay(Window) ->
    {Delay, ok} = longest_turn(fun() -> receive after Window -> ok end end),
    float(Delay).

%% -- Following consumers ---------------------------------------------------------------------

%% The time to set and clear the application's flags, beside busy or many processes, and the delay of another process.
%% It uses follow/1 and unfollow/0, which return when the flags are set or cleared.
-spec following(dyntrace_bench_tracers:consumers()) -> measured().
following(Consumers) ->
    Beside = [{"10 idle", fun sleep/0, 10}, {"100 busy", fun busy/0, 100}, {"1,000 busy", fun busy/0, 1000},
              {"100,000 idle", fun sleep/0, 100000}],
    Figures = maps:from_list(lists:append([followed(Name, Run, Amount, Consumers) || {Name, Run, Amount} <- Beside])),
    Columns = [{on, "flags on"}, {off, "flags off"},
               {turn, "timer delay, before"}, {turn_meanwhile, "timer delay, meanwhile"}],
    {{"Attach and leave",
      "Microseconds that `dyntrace:follow/1` and `unfollow/0` take to set and clear all trace flags beside that many "
      "processes, the busy ones at low priority; and the largest delay of a timer in another process.",
      ["processes" | [Title || {_, Title} <- Columns]],
      [[Name | [count(maps:get({Name, Column}, Figures)) || {Column, _} <- Columns]] || {Name, _, _} <- Beside]},
     Figures}.

followed(Name, Run, Amount, Consumers) ->
    Others = [spawn_opt(Run, [monitor, {priority, low}]) || _ <- lists:seq(1, Amount)],
    {ok, _} = application:ensure_all_started(dyntrace),
    ok = dyntrace:unfollow(),
    Figures = dyntrace_bench_tracers:with(lttng, Consumers, fun(_) -> on_off_and_turns() end),
    ok = application:stop(dyntrace),
    ok = ended(Others),
    [{{Name, Column}, float(Figure)} || {Column, Figure} <- Figures].

on_off_and_turns() ->
    {Turn, _} = longest_turn(fun() -> receive after ?TURNS_MS -> [] end end),
    {Meanwhile, Times} = longest_turn(fun() -> [on_and_off() || _ <- rounds()] end),
    {On, Off} = lists:unzip(Times),
    [{on, median(On)}, {off, median(Off)}, {turn, Turn}, {turn_meanwhile, Meanwhile}].

on_and_off() ->
    {On, ok} = timer:tc(fun() -> dyntrace:follow(#{}) end),
    {Off, ok} = timer:tc(fun dyntrace:unfollow/0),
    {On, Off}.

longest_turn(Fun) ->
    {Turns, Ref} = spawn_monitor(fun() -> exit({longest, lists:max(waits([]))}) end),
    Result = Fun(),
    Turns ! stop,
    {longest, Longest} = dyntrace_bench_figures:ended(Turns, Ref),
    {Longest, Result}.

%% The delays of one-millisecond timers.
waits(Waits) ->
    Began = erlang:monotonic_time(microsecond),
    receive stop -> [late(Began) | Waits]
    after 1 -> waits([late(Began) | Waits])
    end.

%% A scheduler that was blocked finds the message before the timer.
late(Began) ->
    max(0, erlang:monotonic_time(microsecond) - Began - 1000).

%% -- Dumps of identities -----------------------------------------------------------------------

-spec identities(dyntrace_bench_tracers:consumers()) -> measured().
identities(Consumers) ->
    Beside = [{"1,000 idle", 1000, 0}, {"100,000 idle, 1,000 busy", 100000, 1000}],
    Figures = maps:from_list(lists:append([dumped(Name, Idle, Busy, Consumers) || {Name, Idle, Busy} <- Beside])),
    Columns = [{dump, "a dump, ms"}, {reductions, "reductions"}, {answered, "all have answered, ms"},
               {turn, "timer delay, before"}, {turn_meanwhile, "during a dump"},
               {turn_asked, "while they are asked"}],
    {{"Dumps of identities",
      "A dump that LTTng records, beside that many hibernating processes of `proc_lib`, and busy ones at low priority; "
      "the reductions of the application meanwhile. Then each process is asked once for its initial call; beside many "
      "busy ones this takes long, and was not awaited (-). And the largest delay, in microseconds, of a timer in "
      "another process.",
      ["processes" | [Title || {_, Title} <- Columns]],
      [[Name | [shown(maps:get({Name, Column}, Figures)) || {Column, _} <- Columns]] || {Name, _, _} <- Beside]},
     Figures}.

-define(ASKED_MS, 2000).

shown(none) -> "-";
shown(Number) -> count(Number).

dumped(Name, Idle, Busy, Consumers) ->
    Others = [{Pid, monitor(process, Pid)}
              || Pid <- [proc_lib:spawn(?MODULE, sleep, []) || _ <- lists:seq(1, Idle)]]
        ++ [spawn_opt(fun busy/0, [monitor, {priority, low}]) || _ <- lists:seq(1, Busy)],
    {ok, _} = application:ensure_all_started(dyntrace),
    ok = dyntrace:follow(#{processes => [nobody], ports => none, interval => 10}),
    _ = process_flag(priority, high),
    {Turn, _} = longest_turn(fun() -> receive after ?ASKED_MS -> [] end end),
    First = dyntrace_settings:get(dumps, 0),
    Figures = dyntrace_bench_tracers:with({lttng, process_identity}, Consumers,
                                          fun(_) -> dump_and_answers(First, Busy) end),
    _ = process_flag(priority, normal),
    ok = application:stop(dyntrace),
    ok = ended(Others),
    [{{Name, Column}, Figure} || {Column, Figure} <- [{turn, Turn} | Figures]].

%% A dump that is requested during another one starts when that one is over. So the time between two starts is measured.
dump_and_answers(First, Busy) ->
    Began = now_ms(),
    {Meanwhile, {Dump, Reductions}} =
        longest_turn(fun() ->
                             {Start, Before} = dump_after(First),
                             {Next, After} = dump_after(First + 1),
                             {Next - Start, After - Before}
                     end),
    {Asked, Answered} =
        longest_turn(fun() ->
                             case Busy of
                                 0 -> ok = test_wait:until("all have answered", fun is_idle/0), now_ms() - Began;
                                 _ -> receive after ?ASKED_MS -> none end
                             end
                     end),
    [{dump, Dump}, {reductions, Reductions}, {answered, Answered}, {turn_meanwhile, Meanwhile}, {turn_asked, Asked}].

%% Requests a dump, and returns when it starts, with the reductions until then.
dump_after(Number) ->
    ok = test_wait:until("a dump", fun() -> dyntrace_settings:get(dumps, 0) > Number end),
    ok = dyntrace:dump(),
    ok = test_wait:until("another dump", fun() -> dyntrace_settings:get(dumps, 0) > Number + 1 end),
    {now_ms(), reductions()}.

now_ms() -> erlang:monotonic_time(millisecond).

dumper() ->
    [Dumper] = [Pid || Pid <- element(2, process_info(whereis(dyntrace_autotracer), links)), is_pid(Pid),
                       process_info(Pid, initial_call) =:= {initial_call, {dyntrace_identities, dumper, 2}}],
    Dumper.

is_idle() ->
    process_info(dumper(), current_function) =:= {current_function, {erlang, hibernate, 3}}.

%% The reductions of the dumper and its helpers.
reductions() ->
    Dumper = dumper(),
    {links, Links} = process_info(Dumper, links),
    lists:sum([element(2, process_info(Pid, reductions)) || Pid <- [Dumper | Links -- [whereis(dyntrace_autotracer)]]]).

busy() -> busy().

sleep() -> erlang:hibernate(?MODULE, sleep, []).
