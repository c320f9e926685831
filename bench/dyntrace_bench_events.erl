%% The tables of the costs of events. Each table is made in one run: several rounds measure all columns in turn, and the
%% table has the medians.
-module(dyntrace_bench_events).

-export([events/1, otp/1, otp_title/0, annotations/1, hostile/1, telemetry/1]).

-import(dyntrace_bench_figures, [in_turn/2, over/0, above/2, ns/1, ratio/1]).

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

%% -- Telemetry ------------------------------------------------------------------------------

%% Each call is one event. The metadata is persistent, so it is not copied.
-spec telemetry(dyntrace_bench_tracers:consumers()) -> measured().
telemetry(Consumers) ->
    ok = test_telemetry:load(),
    Small = #{route => <<"/orders/:id">>, status => 200},
    Ops = [(executes(Metadata))#{name => Name}
           || {Name, Metadata} <- [{"two keys", Small},
                                   {"the same, and a value of 10 MB", Small#{assigns => lists:seq(1, 625000)}},
                                   {"the same, and 200,000 keys (10 MB)",
                                    maps:merge(maps:from_list([{N, [N]} || N <- lists:seq(1, 200000)]), Small)}]],
    Tracers = [untraced, floor, no_consumer, lttng],
    Ns = in_turn(Tracers, fun(Tracer) -> under(Tracer, Ops, Consumers) end),
    ok = test_telemetry:unload(),
    {{"Telemetry",
      "Nanoseconds per `telemetry:execute/3` without handlers, by its metadata. The function is a stand-in for that of "
      "the library.",
      ["metadata" | [dyntrace_bench_tracers:title(Tracer) || Tracer <- Tracers]], rows(Ops, Tracers, Ns)},
     Ns}.

executes(Metadata) ->
    Key = {?MODULE, make_ref()},
    ok = persistent_term:put(Key, Metadata),
    #{name => "telemetry", flags => [call], events => 1,
      new => fun() ->
                     _ = erlang:trace_pattern({telemetry, execute, 3}, true, [local]),
                     Shared = persistent_term:get(Key),
                     fun() -> telemetry:execute([shop, order, stop], #{duration => 1250000}, Shared) end
             end}.
