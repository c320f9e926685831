%% The tables. Each one is made in one run: several rounds measure all columns in turn, and the table has the medians.
-module(dyntrace_bench_tables).

-export([events/1, messages/1, ports/1, parts/1, otp/1, annotations/1, throughput/1, processes/1, sizes/1, hostile/1,
         turns/1, following/1, identities/1, viewer/1]).

%% For hibernating processes.
-export([sleep/0]).

-export_type([table/0, figures/0]).

-define(ROUNDS, 7).
-define(LOAD_MS, 1000).
-define(TURNS_MS, 100).
-define(LOAD_FLAGS, [send, 'receive', procs, call, running, exiting, garbage_collection]).

-type table() :: {Title :: string(), About :: string(), Head :: [string()], Rows :: [[iodata()]]}.

-type figures() :: #{{Row :: term(), Column :: term()} => float()}.

%% -- One event -----------------------------------------------------------------------------

-spec events(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
events(Consumers) ->
    events("One operation, traced", [untraced, floor, discard, no_consumer, lttng, bpftrace, process, file], Consumers).

%% The same with OTP's tracer, in a VM that was built with LTTng.
-spec otp(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
otp(Consumers) ->
    Title = "One operation, traced by OTP's own tracer on OTP " ++ erlang:system_info(otp_release),
    events(Title, [untraced, floor, otp], Consumers).

events(Title, Tracers, Consumers) ->
    operations(Title,
               "Nanoseconds per operation with its trace events, in a process that is traced with that flag. Floor: a "
               "tracer whose NIFs do nothing. `discard`: a tracer that answers `discard`. Messages are shared terms, "
               "so sending copies nothing. To a process: one that drops all trace messages. To a file: by "
               "`dbg:trace_port/2`.",
               "operation (flag)", dyntrace_bench_ops:table(), Tracers, Consumers).

%% A row per operation, a column per tracer.
operations(Title, About, Column, Ops, Tracers, Consumers) ->
    Ns = medians([Figure || _ <- rounds(), Tracer <- Tracers, Figure <- under(Tracer, Ops, Consumers)]),
    {{Title, About,
      [Column | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
      [[Name | [ns(maps:get({Name, Tracer}, Ns)) || Tracer <- Tracers]] || #{name := Name} <- Ops]},
     Ns}.

under(Tracer, Ops, Consumers) ->
    dyntrace_bench_tracers:with(Tracer, Consumers,
                                fun(With) ->
                                        [{{Name, Tracer}, dyntrace_bench_ops:measure(Op, With)}
                                         || Op = #{name := Name} <- Ops]
                                end).

%% -- A message received --------------------------------------------------------------------

-spec messages(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
messages(Consumers) ->
    Measured = operations("A message received, by match specifications",
                          "Nanoseconds per message that a process sends to itself, traced with 'receive' by a match "
                          "specification of messages. Each tracepoint is attached alone: without a sender in the "
                          "result, `message_delivery` does not fire.",
                          "match specification", dyntrace_bench_ops:messages(),
                          [untraced, floor, no_consumer, {lttng, message_receive}, {lttng, message_delivery}],
                          Consumers),
    _ = erlang:trace_pattern('receive', true, []),
    Measured.

%% -- One request of a port -----------------------------------------------------------------

-spec ports(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
ports(Consumers = #{folder := Folder}) ->
    ok = test_driver:load(test_driver:build(Folder), output),
    Measured = operations("One request of a port",
                          "Nanoseconds per request of a process to a port, which is traced with 'receive'. The port's "
                          "driver sends a command's data back in a message, and returns that of a control. Each "
                          "tracepoint is attached alone: the request that it does not record makes an event too.",
                          "operation", dyntrace_bench_ops:ports(),
                          [untraced, floor, discard, no_consumer, {lttng, driver_output}, {lttng, driver_control}],
                          Consumers),
    ok = test_driver:unload(output),
    Measured.

%% -- Where the time goes --------------------------------------------------------------------

%% The share of each library in the CPU time of operations that LTTng records.
-spec parts(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
parts(Consumers = #{folder := Folder}) ->
    Names = ["call", "send of a small tuple", "send of a list of 10,000 integers"],
    Ops = [Op || Op = #{name := Name} <- dyntrace_bench_ops:table(), lists:member(Name, Names)],
    Whose = ["the VM", "dyntrace", "LTTng", "the C library, the kernel"],
    Parts = dyntrace_bench_tracers:with(
              lttng, Consumers,
              fun(With) -> [{Name, sampled(Op, With, Folder)} || Op = #{name := Name} <- Ops] end),
    Figures = maps:from_list(
                [{{Name, Who}, lists:sum([Percent || {Library, Percent} <- Samples, whose(Library) =:= Who])}
                 || {Name, Samples} <- Parts, Who <- Whose]),
    {{"Where the time goes",
      "Percent of the time of an operation recorded by LTTng, as `perf record -e cpu-clock` samples it.",
      ["operation" | Whose],
      [[Name | [io_lib:format("~.1f", [maps:get({Name, Who}, Figures)]) || Who <- Whose]] || #{name := Name} <- Ops]},
     Figures}.

sampled(Op, With, Folder) ->
    Data = filename:join(Folder, "perf.data"),
    Busy = spawn(fun() -> repeat(fun() -> dyntrace_bench_ops:measure(Op, With) end) end),
    {0, _} = test_shell:run("perf record -q -e cpu-clock -o '~ts' -p ~s -- sleep 3", [Data, os:getpid()]),
    exit(Busy, kill),
    {0, Report} = test_shell:run("perf report -i '~ts' --sort dso --stdio 2>/dev/null", [Data]),
    {match, Lines} = re:run(Report, "^ +([0-9.]+)% +(\\S+)", [global, multiline, {capture, all_but_first, list}]),
    [{Library, list_to_float(Percent)} || [Percent, Library] <- Lines].

repeat(Fun) ->
    _ = Fun(),
    repeat(Fun).

%% The JIT's code is in memfd:vmem. LTTng reads the time from the vdso. dyntrace gets a thread's table from the loader.
whose(Library) ->
    Owners = [{"beam", "the VM"}, {"memfd:vmem", "the VM"}, {"dyntrace.so", "dyntrace"}, {"ld-linux", "dyntrace"},
              {"liblttng", "LTTng"}, {"dyntrace_lttng", "LTTng"}, {"[vdso]", "LTTng"}],
    hd([Owner || {Prefix, Owner} <- Owners, lists:prefix(Prefix, Library)] ++ ["the C library, the kernel"]).

%% -- Annotations ---------------------------------------------------------------------------

-spec annotations(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
annotations(Consumers) ->
    Calls = [{"an empty NIF of four arguments", fun() -> dyntrace_floor:nif(1, 2, 3, 4) end},
             {"`p(1, 2, 3, 4)`", fun() -> dyntrace:p(1, 2, 3, 4) end},
             {"`p(1, \"a string\")`", fun() -> dyntrace:p(1, "a string") end},
             {"`mark(orders, 17, <<\"a string\">>)`", fun() -> dyntrace:mark(orders, 17, <<"a string">>) end},
             {"a fun's call", fun() -> (fun called/0)() end},
             {"`span(checkout, Fun)`", fun() -> dyntrace:span(checkout, fun called/0) end}],
    Tracers = [no_consumer, lttng],
    Repeated = fun(Tracer) ->
                       dyntrace_bench_tracers:with(
                         Tracer, Consumers, fun(_) -> [{{Name, Tracer}, repeated(Fun)} || {Name, Fun} <- Calls] end)
               end,
    Ns = medians([Figure || _ <- rounds(), Tracer <- Tracers, Figure <- Repeated(Tracer)]),
    {{"Annotations", "Nanoseconds per call.",
      ["call" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
      [[Name | [ns(maps:get({Name, Tracer}, Ns)) || Tracer <- Tracers]] || {Name, _} <- Calls]},
     Ns}.

called() -> ok.

repeated(Fun) ->
    dyntrace_bench_ops:measure(#{name => "annotation", flags => [], events => 1, times => 500000, written => 1,
                                 new => fun() -> Fun end}, none).

%% -- The node ------------------------------------------------------------------------------

%% Pairs of processes that play ping-pong, all of them traced with all flags.
-spec throughput(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
throughput(Consumers) ->
    Tracers = [untraced, no_consumer, lttng, process],
    Pairs = 2 * erlang:system_info(schedulers_online),
    Loaded = fun(Tracer) ->
                     dyntrace_bench_tracers:with(
                       Tracer, Consumers, fun(With) -> loaded(Tracer, Pairs, ?LOAD_FLAGS, With) end)
             end,
    Figures = medians([Figure || _ <- rounds(), Tracer <- Tracers, Figure <- Loaded(Tracer)]),
    {{"The node",
      lists:flatten(io_lib:format("~b pairs of processes play ping-pong, each traced with ~0p.", [Pairs, ?LOAD_FLAGS])),
      ["tracer", "messages per second", "of untraced", lists:concat(["the tracer's memory after ", ?LOAD_MS, " ms"])],
      [[dyntrace_bench_tracers:title(Tracer), count(maps:get({rate, Tracer}, Figures)),
        percent(maps:get({rate, Tracer}, Figures) / maps:get({rate, untraced}, Figures)),
        bytes(maps:get({memory, Tracer}, Figures))] || Tracer <- Tracers]},
     Figures}.

loaded(Tracer, Pairs, Flags, With) ->
    Rate = load_of(Pairs, Flags, With),
    [{{rate, Tracer}, Rate}, {{memory, Tracer}, memory(With)}].

memory({fires, [{tracer, Pid}]}) -> float(element(2, process_info(Pid, memory)));
memory(_) -> 0.0.

%% Messages per second.
load_of(Pairs, Flags, With) ->
    Counters = counters:new(Pairs, [write_concurrency]),
    Pids = lists:append([begin
                             Pong = spawn(fun Loop() -> receive {ping, From} -> From ! pong, Loop() end end),
                             [spawn(fun() -> receive go -> ping(Pong, N, Counters) end end), Pong]
                         end || N <- lists:seq(1, Pairs)]),
    [ok = dyntrace_bench_tracers:trace(Pid, Flags, With) || Pid <- Pids],
    Began = erlang:monotonic_time(microsecond),
    [Pid ! go || Pid <- Pids],
    receive after ?LOAD_MS -> ok end,
    Count = lists:sum([counters:get(Counters, N) || N <- lists:seq(1, Pairs)]),
    Took = erlang:monotonic_time(microsecond) - Began,
    Refs = [begin Ref = monitor(process, Pid), exit(Pid, kill), Ref end || Pid <- Pids],
    [receive {'DOWN', Ref, _, _, _} -> ok end || Ref <- Refs],
    2 * Count * 1.0e6 / Took.

ping(Pong, N, Counters) ->
    Pong ! {ping, self()},
    receive pong -> ok end,
    counters:add(Counters, N, 1),
    ping(Pong, N, Counters).

%% -- How it grows --------------------------------------------------------------------------

-spec processes(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
processes(Consumers) ->
    Tracers = [untraced, floor, lttng],
    Amounts = [2, 10, 100, 1000],
    Loads = fun(With) -> [{Amount, load_of(Amount div 2, [send], With)} || Amount <- Amounts] end,
    Figures = medians([{{Amount, Tracer}, Rate}
                       || _ <- rounds(), Tracer <- Tracers,
                          {Amount, Rate} <- dyntrace_bench_tracers:with(Tracer, Consumers, Loads)]),
    {{"Traced processes",
      "Messages per second of that many processes, in pairs that play ping-pong, traced with `send`.",
      ["processes" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]] ++ ["LTTng, of floor"],
      [[integer_to_list(Amount) | [count(maps:get({Amount, Tracer}, Figures)) || Tracer <- Tracers]]
       ++ [percent(maps:get({Amount, lttng}, Figures) / maps:get({Amount, floor}, Figures))] || Amount <- Amounts]},
     Figures}.

-spec sizes(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
sizes(Consumers) ->
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => {Kind, Size}, times => 100000}
           || Size <- [1, 10, 100, 1000, 10000, 100000, 1000000],
              {Kind, Term} <- [{"list of integers", lists:seq(1, Size)},
                               {"binary of text", binary:copy(<<"a">>, Size)},
                               {"binary of bytes", binary:copy(<<1>>, Size)}]],
    {Ns, Rows} = beside_floor(Ops, fun({Kind, Size}) -> [Kind, integer_to_list(Size)] end, Consumers),
    {{"Sizes of messages", "Nanoseconds per send of a term with that many elements or bytes.",
      ["term", "size", "floor", "LTTng", "LTTng / floor", "above the floor"], Rows}, Ns}.

-spec hostile(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
hostile(Consumers) ->
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => Name, times => 10000} || {Name, Term, _} <- test_hostile:terms()],
    {Ns, Rows} = beside_floor(Ops, fun(Name) -> [Name] end, Consumers),
    {{"Hostile terms", "Nanoseconds per send.",
      ["term", "floor", "LTTng", "LTTng / floor", "above the floor"], Rows}, Ns}.

beside_floor(Ops, Label, Consumers) ->
    Ns = medians([Figure || _ <- rounds(), Tracer <- [floor, lttng], Figure <- under(Tracer, Ops, Consumers)]),
    {Ns, [begin
              [Floor, Recorded] = [maps:get({Name, Tracer}, Ns) || Tracer <- [floor, lttng]],
              Label(Name) ++ [ns(Floor), ns(Recorded), ratio(Recorded / Floor), ns(Recorded - Floor)]
          end || #{name := Name} <- Ops]}.

%% How long a process that is ready to run waits, beside others that send such terms as fast as they can.
-spec turns(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
turns(Consumers) ->
    Tracers = [untraced, floor, lttng],
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => Name}
           || {Name, Term, _} <- [{"a small tuple", {order, 17}, <<>>} | test_hostile:terms()]],
    Turns = fun(Tracer) ->
                    dyntrace_bench_tracers:with(
                      Tracer, Consumers,
                      fun(With) -> [{{Name, Tracer}, turn_beside(Op, With)} || Op = #{name := Name} <- Ops] end)
            end,
    Us = medians([Figure || _ <- rounds(), Tracer <- Tracers, Figure <- Turns(Tracer)]),
    {{"Others' turns",
      lists:concat(["Microseconds until a process that is ready to run runs, while four processes per scheduler send "
                    "the term: the median of all waits in ", ?TURNS_MS, " ms."]),
      ["term" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
      [[Name | [count(maps:get({Name, Tracer}, Us)) || Tracer <- Tracers]] || #{name := Name} <- Ops]},
     Us}.

turn_beside(#{new := New, flags := Flags}, With) ->
    Do = New(),
    Busy = [spawn_monitor(fun() -> receive go -> repeat(Do) end end)
            || _ <- lists:seq(1, 4 * erlang:system_info(schedulers_online))],
    [begin
         ok = dyntrace_bench_tracers:trace(Pid, Flags, With),
         Pid ! go
     end || {Pid, _} <- Busy],
    Deadline = erlang:monotonic_time(microsecond) + 1000 * ?TURNS_MS,
    {Waits, Ref} = spawn_monitor(fun() -> exit({median, median(turns_until(Deadline, []))}) end),
    Turn = receive {'DOWN', Ref, process, Waits, {median, Median}} -> Median end,
    [begin
         exit(Pid, kill),
         receive {'DOWN', Killed, process, Pid, killed} -> ok end
     end || {Pid, Killed} <- Busy],
    float(Turn).

turns_until(Deadline, Turns) ->
    Began = erlang:monotonic_time(microsecond),
    erlang:yield(),
    case erlang:monotonic_time(microsecond) of
        Now when Now > Deadline -> [Now - Began | Turns];
        Now -> turns_until(Deadline, [Now - Began | Turns])
    end.

%% -- Following consumers ---------------------------------------------------------------------

%% The time to set and clear the application's flags, beside busy or many processes, and the delay of another process.
%% It is done by hand: these calls return when the flags are set or cleared.
-spec following(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
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
    Others = [spawn_opt(Run, [{priority, low}]) || _ <- lists:seq(1, Amount)],
    {ok, _} = application:ensure_all_started(dyntrace),
    ok = dyntrace:unfollow(),
    Figures = dyntrace_bench_tracers:with(lttng, Consumers, fun(_) -> on_off_and_turns() end),
    ok = application:stop(dyntrace),
    [exit(Pid, kill) || Pid <- Others],
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
    receive {'DOWN', Ref, process, Turns, {longest, Longest}} -> {Longest, Result} end.

%% The delays of timers of a millisecond.
waits(Waits) ->
    Began = erlang:monotonic_time(microsecond),
    receive stop -> [0 | Waits]
    after 1 -> waits([max(0, erlang:monotonic_time(microsecond) - Began - 1000) | Waits])
    end.

%% -- Dumps of identities -----------------------------------------------------------------------

-spec identities(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
identities(Consumers) ->
    Beside = [{"10 idle", 10, 0}, {"1,000 idle", 1000, 0}, {"1,000 idle, 1,000 busy", 1000, 1000},
              {"100,000 idle", 100000, 0}, {"100,000 idle, 1,000 busy", 100000, 1000}],
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

-define(ASKED_MS, 3000).

shown(none) -> "-";
shown(Number) -> count(Number).

dumped(Name, Idle, Busy, Consumers) ->
    Others = [proc_lib:spawn(?MODULE, sleep, []) || _ <- lists:seq(1, Idle)]
        ++ [spawn_opt(fun busy/0, [{priority, low}]) || _ <- lists:seq(1, Busy)],
    {ok, _} = application:ensure_all_started(dyntrace),
    ok = dyntrace:follow(#{processes => [nobody], ports => none, interval => 10}),
    _ = process_flag(priority, high),
    {Turn, _} = longest_turn(fun() -> receive after ?ASKED_MS -> [] end end),
    First = dyntrace_settings:get(dumps, 0),
    Figures = dyntrace_bench_tracers:with({lttng, process_identity}, Consumers,
                                          fun(_) -> dump_and_answers(First, Busy) end),
    _ = process_flag(priority, normal),
    ok = application:stop(dyntrace),
    [exit(Pid, kill) || Pid <- Others],
    [{{Name, Column}, Figure} || {Column, Figure} <- [{turn, Turn} | Figures]].

%% A dump that is asked for during another one starts when that one is over. So the time between two starts is measured.
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

%% Asks for one, and returns when it starts, with the reductions until then.
dump_after(Number) ->
    ok = test_wait:until("a dump", fun() -> dyntrace_settings:get(dumps, 0) > Number end),
    ok = dyntrace:dump(),
    ok = test_wait:until("another dump", fun() -> dyntrace_settings:get(dumps, 0) > Number + 1 end),
    {now_ms(), reductions()}.

now_ms() -> erlang:monotonic_time(millisecond).

dumper() ->
    [Dumper] = [Pid || Pid <- element(2, process_info(whereis(dyntrace_autotracer), links)), is_pid(Pid),
                       process_info(Pid, initial_call) =:= {initial_call, {dyntrace_identities, dumper, 1}}],
    Dumper.

is_idle() ->
    process_info(dumper(), current_function) =:= {current_function, {erlang, hibernate, 3}}.

%% Of the dumper and its helpers since they were started.
reductions() ->
    Dumper = dumper(),
    {links, Links} = process_info(Dumper, links),
    lists:sum([element(2, process_info(Pid, reductions)) || Pid <- [Dumper | Links -- [whereis(dyntrace_autotracer)]]]).

busy() -> busy().

sleep() -> erlang:hibernate(?MODULE, sleep, []).

%% -- The viewer ----------------------------------------------------------------------------

-spec viewer(dyntrace_bench_tracers:consumers()) -> {table(), figures()}.
viewer(Consumers) ->
    dyntrace_bench_viewer:table(Consumers).

%% -- Helpers -------------------------------------------------------------------------------

rounds() -> lists:seq(1, ?ROUNDS).

medians(Figures) ->
    maps:map(fun(_, Values) -> median(Values) end,
             maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Value}) -> Value end, Figures)).

median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

ns(Ns) when Ns < 100 -> io_lib:format("~.1f", [Ns]);
ns(Ns) -> count(Ns).

ratio(Ratio) -> io_lib:format("~.2f", [Ratio]).
percent(Ratio) -> io_lib:format("~b %", [round(100 * Ratio)]).

bytes(Bytes) when Bytes == 0 -> "";
bytes(Bytes) -> io_lib:format("~.1f MB", [Bytes / 1.0e6]).

%% With a comma before each group of three digits.
count(Number) -> thousands(integer_to_list(round(Number))).

thousands("-" ++ Digits) -> "-" ++ thousands(Digits);
thousands(Digits) when length(Digits) > 3 ->
    {Before, Last} = lists:split(length(Digits) - 3, Digits),
    thousands(Before) ++ "," ++ Last;
thousands(Digits) -> Digits.
