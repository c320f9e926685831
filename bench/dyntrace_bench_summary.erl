%% A summary of nine lines.
-module(dyntrace_bench_summary).

-export([table/2]).

-import(dyntrace_bench_figures, [ns/1, ratio/1]).

-define(SMALL, "send of a small tuple").
-define(LIST, "send of a list of 10,000 integers").

%% The figures of all tables, and of OTP's own tracer, if it was measured.
-spec table(#{atom() => dyntrace_bench_figures:figures()}, dyntrace_bench_figures:figures() | none) ->
          dyntrace_bench_figures:table().
table(Figures, Otp) ->
    #{events := Events, annotations := Annotations, hostile := Hostile, latency := Latency} = Figures,
    Ratio = fun(Of, {Row1, Column1}, {Row2, Column2}) ->
                    maps:get({Row1, Column1}, Of) / maps:get({Row2, Column2}, Of)
            end,
    AboveFloor = [dyntrace_bench_figures:above(Ns, maps:get({Row, floor}, Hostile))
                  || {{Row, lttng}, Ns} <- maps:to_list(Hostile)],
    Bounded = [{"a small send recorded by LTTng, of the floor", Ratio(Events, {?SMALL, lttng}, {?SMALL, floor}), 1.55},
               {"a list of 10,000 recorded, of the small send", Ratio(Events, {?LIST, lttng}, {?SMALL, lttng}), 1.6},
               {"a binary of 1 MB recorded, of the small send",
                Ratio(Events, {"send of a binary of 1 MB", lttng}, {?SMALL, lttng}), 1.3},
               {"a small send without a consumer, of `discard`",
                Ratio(Events, {?SMALL, no_consumer}, {?SMALL, discard}), 1.05},
               {"`p/4` without a consumer, of an empty NIF",
                Ratio(Annotations, {"`p(1, 2, 3, 4)`", no_consumer},
                      {"an empty NIF of four arguments", no_consumer}), 1.5},
               {"the worst term above the floor, in us", lists:max(AboveFloor) / 1000, 5.0}],
    Latest = fun(Tracer) -> ratio(maps:get({"`gen_server:call/2`", {Tracer, 99.9}}, Latency) / 1000) end,
    Unbounded = [{"a call recorded by LTTng twice, `function_call` and `function_arguments`, of the floor",
                  ratio(Ratio(Events, {"call", lttng}, {"call", floor}))},
                 {"a small send, in ns above an untraced one",
                  lists:join(", ", [[Whose, " ", ns(above(?SMALL, Tracer, Ns))]
                                    || {Whose, Tracer, Ns} <- tracers(Events, Otp)])},
                 {"p99.9 of `gen_server:call/2`, all recorded, in us",
                  [Latest(lttng), "; untraced ", Latest(untraced), ", to a process ", Latest(process)]}],
    {"Summary", "Of the tables below.", ["what", "measured", "aim"],
     [[What, ratio(Is), ["at most ", ratio(Most), case Is =< Most of true -> ", met"; false -> ", **not met**" end]]
      || {What, Is, Most} <- Bounded]
     ++ [[What, Is, ""] || {What, Is} <- Unbounded]}.

%% The tracers that report whole events, with their figures.
tracers(Events, Otp) ->
    [{"dyntrace, to LTTng", lttng, Events}] ++ [{"OTP's own, to LTTng", otp, Otp} || Otp =/= none]
        ++ [{"to a process", process, Events}, {"dbg, to a file", file, Events}].

above(Op, Tracer, Figures) ->
    dyntrace_bench_figures:above(maps:get({Op, Tracer}, Figures), maps:get({Op, untraced}, Figures)).
