%% The tables of the costs of events. Each table is made in one run: several rounds measure all columns in turn, and the
%% table has the medians.
-module(dyntrace_bench_events).

-export([events/1, messages/1, ports/1, parts/1, otp/1, otp_title/0, annotations/1, throughput/1, processes/1,
         sizes/1, hostile/1, turns/1]).

-import(dyntrace_bench_figures, [in_turn/2, median/1, over/0, above/2, ns/1, count/1, ratio/1, percent/1, bytes/1]).

-define(LOAD_MS, 300).
-define(TURNS_MS, 50).
-define(PROFILE_S, 1).

-type measured() :: {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.

%% -- One event -----------------------------------------------------------------------------

-spec events(dyntrace_bench_tracers:consumers()) -> measured().
events(Consumers) ->
    Tracers = [untraced, floor, discard, no_consumer, lttng, bpftrace, process, file],
    events("One operation, traced", dyntrace_bench_ops:table() ++ [dyntrace_bench_ops:large()], Tracers, Consumers).

%% A run without that VM retains the table with this title.
-spec otp_title() -> string().
otp_title() -> "One operation, traced by OTP's own tracer".

%% The same with OTP's tracer, in a VM that was built with LTTng. A large term, which that tracer writes in full, is
%% last: it may block the VM for longer than the whole benchmark should take.
-spec otp(dyntrace_bench_tracers:consumers()) -> measured().
otp(Consumers) ->
    Title = otp_title(),
    Tracers = [untraced, floor, otp],
    {{_, About, Head, Rows}, Ns} = events(Title, dyntrace_bench_ops:table(), Tracers, Consumers),
    Large = dyntrace_bench_ops:large(),
    Once = maps:from_list(lists:append([under(Tracer, [Large], Consumers) || Tracer <- Tracers])),
    {{Title, ["OTP ", erlang:system_info(otp_release), ", built with LTTng. ", About], Head,
      Rows ++ rows([Large], Tracers, Once)},
     maps:merge(Ns, Once)}.

events(Title, Ops, Tracers, Consumers) ->
    operations(Title,
               "Nanoseconds per operation with its trace events, in a process that is traced with that flag. Floor: a "
               "tracer whose NIFs do nothing. `discard`: a tracer that answers `discard`. Messages are shared terms, "
               "so sending copies nothing. To a process: one that drops all trace messages; what it does is not in the "
               "figure. To a file: by `dbg:trace_port/2`.",
               "operation (flag)", Ops, Tracers, Consumers).

%% A row per operation, a column per tracer.
operations(Title, About, Column, Ops, Tracers, Consumers) ->
    Ns = in_turn(Tracers, fun(Tracer) -> under(Tracer, Ops, Consumers) end),
    {{Title, About,
      [Column | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
      rows(Ops, Tracers, Ns)},
     Ns}.

rows(Ops, Tracers, Ns) ->
    [[Name | [ns(maps:get({Name, Tracer}, Ns)) || Tracer <- Tracers]] || #{name := Name} <- Ops].

under(Tracer, Ops, Consumers) ->
    dyntrace_bench_tracers:with(Tracer, Consumers,
                                fun(With) ->
                                        [{{Name, Tracer}, dyntrace_bench_ops:measure(Op, With)}
                                         || Op = #{name := Name} <- Ops]
                                end).

%% -- A message received --------------------------------------------------------------------

-spec messages(dyntrace_bench_tracers:consumers()) -> measured().
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

-spec ports(dyntrace_bench_tracers:consumers()) -> measured().
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
-spec parts(dyntrace_bench_tracers:consumers()) -> measured().
parts(Consumers = #{folder := Folder}) ->
    Ops = dyntrace_bench_ops:profiled(),
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
    {0, _} = test_shell:run("perf record -q -e cpu-clock -o '~ts' -p ~s -- sleep ~b", [Data, os:getpid(), ?PROFILE_S]),
    exit(Busy, kill),
    {0, Report} = test_shell:run("perf report -i '~ts' --sort dso --stdio 2>/dev/null", [Data]),
    {match, Lines} = re:run(Report, "^ +([0-9.]+)% +(\\S+)", [global, multiline, {capture, all_but_first, list}]),
    [{Library, list_to_float(Percent)} || [Percent, Library] <- Lines].

repeat(Fun) ->
    _ = Fun(),
    repeat(Fun).

%% The JIT's code is in memfd:vmem. LTTng reads the time through the vdso. dyntrace gets a thread's table from the
%% loader.
whose(Library) ->
    Owners = [{"beam", "the VM"}, {"memfd:vmem", "the VM"}, {"dyntrace.so", "dyntrace"}, {"ld-linux", "dyntrace"},
              {"liblttng", "LTTng"}, {"dyntrace_lttng", "LTTng"}, {"[vdso]", "LTTng"}],
    hd([Owner || {Prefix, Owner} <- Owners, lists:prefix(Prefix, Library)] ++ ["the C library, the kernel"]).

%% -- Annotations ---------------------------------------------------------------------------

-spec annotations(dyntrace_bench_tracers:consumers()) -> measured().
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
    Ns = in_turn(Tracers, Repeated),
    {{"Annotations", "Nanoseconds per call.",
      ["call" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
      [[Name | [ns(maps:get({Name, Tracer}, Ns)) || Tracer <- Tracers]] || {Name, _} <- Calls]},
     Ns}.

called() -> ok.

repeated(Fun) ->
    dyntrace_bench_ops:measure(#{name => "annotation", flags => [], events => 1, new => fun() -> Fun end}, none).

%% -- The node ------------------------------------------------------------------------------

%% Pairs of processes that play ping-pong, all traced with all flags.
-spec throughput(dyntrace_bench_tracers:consumers()) -> measured().
throughput(Consumers) ->
    Tracers = [untraced, no_consumer, lttng, process],
    Pairs = 2 * erlang:system_info(schedulers_online),
    Loaded = fun(Tracer) ->
                     dyntrace_bench_tracers:with(
                       Tracer, Consumers, fun(With) -> loaded(Tracer, Pairs, dyntrace_bench_ops:flags(), With) end)
             end,
    Figures = in_turn(Tracers, Loaded),
    {{"The node",
      io_lib:format("~b pairs of processes play ping-pong, each traced with ~0p.", [Pairs, dyntrace_bench_ops:flags()]),
      ["tracer", "messages per second", "of untraced", lists:concat(["the tracer's memory after ", ?LOAD_MS, " ms"])],
      [[dyntrace_bench_tracers:title(Tracer), count(maps:get({rate, Tracer}, Figures)),
        percent(maps:get({rate, Tracer}, Figures) / maps:get({rate, untraced}, Figures)),
        bytes(maps:get({memory, Tracer}, Figures))] || Tracer <- Tracers]},
     Figures}.

loaded(Tracer, Pairs, Flags, With) ->
    Rate = load_of(Pairs, Flags, With),
    [{{rate, Tracer}, Rate}, {{memory, Tracer}, memory(With)}].

memory({by, [{tracer, Pid}]}) -> float(element(2, process_info(Pid, memory)));
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

-spec processes(dyntrace_bench_tracers:consumers()) -> measured().
processes(Consumers) ->
    Tracers = [untraced, floor, lttng],
    Amounts = [2, 1000],
    Loads = fun(Tracer) ->
                    dyntrace_bench_tracers:with(
                      Tracer, Consumers,
                      fun(With) -> [{{Amount, Tracer}, load_of(Amount div 2, [send], With)} || Amount <- Amounts] end)
            end,
    Figures = in_turn(Tracers, Loads),
    {{"Traced processes",
      "Messages per second of that many processes, in pairs that play ping-pong, traced with `send`.",
      ["processes" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]] ++ ["LTTng, of floor"],
      [[integer_to_list(Amount) | [count(maps:get({Amount, Tracer}, Figures)) || Tracer <- Tracers]]
       ++ [percent(maps:get({Amount, lttng}, Figures) / maps:get({Amount, floor}, Figures))] || Amount <- Amounts]},
     Figures}.

-spec sizes(dyntrace_bench_tracers:consumers()) -> measured().
sizes(Consumers) ->
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => {Kind, Size}}
           || Size <- [10, 1000, 100000],
              {Kind, Term} <- [{"list of integers", lists:seq(1, Size)},
                               {"binary of text", binary:copy(<<"a">>, Size)},
                               {"binary of bytes", binary:copy(<<1>>, Size)}]],
    {Ns, Rows} = beside_floor(Ops, fun({Kind, Size}) -> [Kind, integer_to_list(Size)] end, Consumers),
    {{"Sizes of messages", "Nanoseconds per send of a term with that many elements or bytes.",
      ["term", "size", "floor", "LTTng", "LTTng / floor", "above the floor"], Rows}, Ns}.

-spec hostile(dyntrace_bench_tracers:consumers()) -> measured().
hostile(Consumers) ->
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => Name} || {Name, Term, _} <- test_hostile:terms()],
    {Ns, Rows} = beside_floor(Ops, fun(Name) -> [Name] end, Consumers),
    {{"Hostile terms", "Nanoseconds per send.",
      ["term", "floor", "LTTng", "LTTng / floor", "above the floor"], Rows}, Ns}.

beside_floor(Ops, Label, Consumers) ->
    Ns = in_turn([floor, lttng], fun(Tracer) -> under(Tracer, Ops, Consumers) end),
    {Ns, [begin
              [Floor, Recorded] = [maps:get({Name, Tracer}, Ns) || Tracer <- [floor, lttng]],
              Ratio = case Recorded < over() of true -> ratio(Recorded / Floor); false -> "-" end,
              Label(Name) ++ [ns(Floor), ns(Recorded), Ratio, ns(above(Recorded, Floor))]
          end || #{name := Name} <- Ops]}.

%% The operations that block other processes for the longest time.
-define(SLOWEST, ["nested a million deep", "tuples a million deep", "list of a million empty lists",
                  "maps of 40 keys as keys"]).

%% How long a runnable process waits while others send such terms as fast as they can.
-spec turns(dyntrace_bench_tracers:consumers()) -> measured().
turns(Consumers) ->
    Tracers = [untraced, floor, lttng],
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => Name}
           || {Name, Term} <- [{"a small tuple", {order, 17}}
                               | [{Name, Term} || {Name, Term, _} <- test_hostile:terms(),
                                                  lists:member(Name, ?SLOWEST)]]],
    Turns = fun(Tracer) ->
                    dyntrace_bench_tracers:with(
                      Tracer, Consumers,
                      fun(With) -> [{{Name, Tracer}, turn_beside(Op, With)} || Op = #{name := Name} <- Ops] end)
            end,
    Us = in_turn(Tracers, Turns),
    {{"Others' turns",
      lists:concat(["Microseconds until a process that is ready to run runs, while four processes per scheduler send "
                    "the term: the median of all waits in ", ?TURNS_MS, " ms, of 25 at least."]),
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
    {median, Turn} = dyntrace_bench_figures:ended(Waits, Ref),
    [begin
         exit(Pid, kill),
         killed = dyntrace_bench_figures:ended(Pid, Killed)
     end || {Pid, Killed} <- Busy],
    float(Turn).

%% At least 25, because a turn may take long.
turns_until(Deadline, Turns) ->
    Began = erlang:monotonic_time(microsecond),
    erlang:yield(),
    case erlang:monotonic_time(microsecond) of
        Now when Now > Deadline, length(Turns) >= 25 -> [Now - Began | Turns];
        Now -> turns_until(Deadline, [Now - Began | Turns])
    end.
