%% @private The source of the probe `cost_limit', which `dyntrace report' records: while the probe is enabled, processes
%% are traced so long that this costs about 5 % of the CPU time that the node uses without it, or 1 % of one CPU if
%% that is more. Tracing alternates with pauses. All other sources go on during a pause.
%%
%% Tracing never pauses with an option `functions', and stops pausing as soon as another consumer is attached to trace
%% events or the node has many processes: setting and clearing their flags, or the patterns of these functions,
%% would cost more than it saves.
-module(dyntrace_cost_limit).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1, is_paused/1, limited/2, report/1, pause/4]).

%% A window lasts at least TRACED_MS, so that whole calls and connections are recorded. It ends after EARLY_TRACED_MS if
%% the pause would exceed EARLY_MS otherwise: a report of ten seconds should not record only the first one.
-define(TRACED_MS, 1000).
-define(EARLY_TRACED_MS, 500).
-define(EARLY_MS, 3000).

%% A shorter pause would cost more than it saves: tracing goes on until a longer one is due.
-define(LEAST_MS, 500).
-define(MOST_MS, 15000).

-define(PERCENT, 5).
-define(PERCENT_OF_CPU, 1).

%% The price of an event that is recorded by LTTng, and of setting and clearing the trace flags of a process, in a busy
%% RabbitMQ: with all of them, a message takes some 90 us more, and has some 32 events. In a loop that does nothing
%% else, the event of sending a message costs a tenth of that.
-define(EVENT_NS, 3000).
-define(PROCESS_NS, 4000).

%% A budget that is never spent, and not infinite, so that events are counted.
-define(COUNTED, 1 bsl 60).

%% Linux shows CPU times in this unit, whatever its own ticks are.
-define(MS_PER_TICK, 10).

-record(window, {is_paused = false :: boolean(),
                 %% The probes that require trace flags.
                 probes :: [atom()],
                 since :: integer(),
                 %% Of a pause.
                 until = 0 :: integer(),
                 cpu_ms = 0 :: non_neg_integer()}).

%% With a budget, the budget pauses tracing.
on(Enabled, #{budget := infinity, functions := []}) ->
    Probes = [Name || {Name, Required} <- maps:to_list(dyntrace_trace_flags:table(all)), needs_flags(Required)],
    case not has_flags(dyntrace_autotracer:info()) andalso may_pause(Enabled, Probes) of
        true -> {on, traced(Probes)};
        false -> {on, unlimited}
    end;
on(_, _) ->
    {on, unlimited}.

%% Flags that were set before belong to another consumer.
has_flags(#{processes := Flags}) -> Flags =/= [];
has_flags(off) -> false.

poll(_, unlimited) ->
    {on, unlimited};
poll(Enabled, Window = #window{probes = Probes}) ->
    case may_pause(Enabled, Probes) of
        true ->
            {on, polled(Window)};
        false ->
            ok = dyntrace:set_budget(infinity),
            {on, unlimited}
    end.

polled(Window = #window{is_paused = true, until = Until, probes = Probes}) ->
    case now_ms() >= Until of
        true -> traced(Probes);
        false -> Window
    end;
polled(Window = #window{probes = Probes, since = Since, cpu_ms = CpuMs}) ->
    {Now, Events} = {now_ms(), ?COUNTED - dyntrace:budget_left()},
    TracedMs = max(1, Now - Since),
    case pause(Events, erlang:system_info(process_count), TracedMs, cpu_ms() - CpuMs) of
        Ms when TracedMs < ?EARLY_TRACED_MS; Ms < ?EARLY_MS, TracedMs < ?TRACED_MS ->
            Window;
        0 ->
            traced(Probes);
        Ms when Ms < ?LEAST_MS ->
            Window;
        Ms ->
            ok = dyntrace:report(cost_limit, {Events, TracedMs * 1000000, Ms * 1000000}),
            Window#window{is_paused = true, until = Now + Ms}
    end.

message(_, State) ->
    State.

off(unlimited) -> ok;
off(#window{}) -> dyntrace:set_budget(infinity).

%% Whether processes are not traced now.
-spec is_paused(dyntrace_source:state()) -> boolean().
is_paused(#window{is_paused = IsPaused}) -> IsPaused;
is_paused(_) -> false.

%% The requirements during a pause.
-spec limited(dyntrace_trace_flags:required(), IsPaused :: boolean()) -> dyntrace_trace_flags:required().
limited(Required, false) -> Required;
limited(#{sources := Sources}, true) -> (dyntrace_trace_flags:none())#{sources := Sources}.

traced(Probes) ->
    ok = dyntrace:set_budget(?COUNTED),
    #window{probes = Probes, since = now_ms(), cpu_ms = cpu_ms()}.

%% Reports a pause, when the flags are cleared and at each later poll: from the last trace event on, the states of
%% processes are unknown.
-spec report(IsPaused :: boolean()) -> ok.
report(false) -> ok;
report(true) -> dyntrace:report(withheld, {all_events, "tracing pauses to limit its cost"}).

%% How long to pause, in milliseconds, after that many events and that much CPU time of the node within that time; 0:
%% the events cost less than the limit.
-spec pause(Events :: non_neg_integer(), Processes :: pos_integer(), TracedMs :: pos_integer(),
            CpuMs :: non_neg_integer()) -> non_neg_integer().
pause(Events, Processes, TracedMs, CpuMs) ->
    EventsMs = Events * ?EVENT_NS / 1000000,
    CostMs = EventsMs + Processes * ?PROCESS_NS / 1000000,
    OfNode = max(0, CpuMs - EventsMs) / TracedMs * ?PERCENT / 100,
    case max(OfNode, ?PERCENT_OF_CPU / 100) of
        Limit when EventsMs / TracedMs =< Limit -> 0;
        Limit -> min(round(CostMs / Limit) - TracedMs, ?MOST_MS)
    end.

may_pause(Enabled, Probes) ->
    not dyntrace_walk:is_long() andalso is_alone([Name || Name <- Enabled, lists:member(Name, Probes)]).

%% Whether the consumers of `cost_limit' are the only ones of these probes. Identities of consumers are unique within a
%% probe, so only their numbers can be compared.
is_alone(Probes) ->
    All = dyntrace:consumers([cost_limit | Probes]),
    Of = fun(Probe) -> lists:sort([Backend || {Name, Backend, _} <- All, Name =:= Probe]) end,
    Own = Of(cost_limit),
    lists:all(fun(Probe) -> Of(Probe) -- Own =:= [] end, Probes).

needs_flags(Required = #{sources := Sources}) ->
    Required =/= (dyntrace_trace_flags:none())#{sources := Sources}.

%% The CPU time of the node. erlang:statistics(runtime) would change what other callers of it get.
cpu_ms() ->
    case dyntrace:kernel_file(<<"/proc/self/stat">>) of
        undefined ->
            0;
        Stat ->
            %% The name of the program is in parentheses, and may contain any character.
            [_, Numbers] = string:split(Stat, <<") ">>, trailing),
            {_, [User, System | _]} = lists:split(11, string:lexemes(Numbers, " ")),
            (binary_to_integer(User) + binary_to_integer(System)) * ?MS_PER_TICK
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
