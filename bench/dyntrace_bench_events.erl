%% The tables of the costs of events. Each table is made in one run: several rounds measure all columns in turn, and the
%% table has the medians.
-module(dyntrace_bench_events).

-export([events/1, parts/1, otp/1, otp_title/0, annotations/1, hostile/1, turns/1]).

-import(dyntrace_bench_figures, [in_turn/2, median/1, over/0, above/2, ns/1, count/1, ratio/1]).

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

%% A row per operation, a column per tracer.
events(Title, Ops, Tracers, Consumers) ->
    Ns = in_turn(Tracers, fun(Tracer) -> under(Tracer, Ops, Consumers) end),
    {{Title,
      "Nanoseconds per operation with its trace events, in a process that is traced with that flag. Floor: a tracer "
      "whose NIFs do nothing. `discard`: a tracer that answers `discard`. Messages are shared terms, so sending copies "
      "nothing. To a process: one that drops all trace messages; what it does is not in the figure. To a file: by "
      "`dbg:trace_port/2`.",
      ["operation (flag)" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]],
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

%% -- Unusual terms ------------------------------------------------------------------------

-spec hostile(dyntrace_bench_tracers:consumers()) -> measured().
hostile(Consumers) ->
    Ops = [(dyntrace_bench_ops:sends(Term))#{name => Name} || {Name, Term, _} <- test_hostile:terms()],
    Ns = in_turn([floor, lttng], fun(Tracer) -> under(Tracer, Ops, Consumers) end),
    {{"Hostile terms", "Nanoseconds per send.",
      ["term", "floor", "LTTng", "LTTng / floor", "above the floor"],
      [begin
           [Floor, Recorded] = [maps:get({Name, Tracer}, Ns) || Tracer <- [floor, lttng]],
           Ratio = case Recorded < over() of true -> ratio(Recorded / Floor); false -> "-" end,
           [Name, ns(Floor), ns(Recorded), Ratio, ns(above(Recorded, Floor))]
       end || #{name := Name} <- Ops]},
     Ns}.

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
