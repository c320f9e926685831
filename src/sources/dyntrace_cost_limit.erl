%% @private The source of the probe `cost_limit', which `dyntrace report' records: while the probe is enabled, processes
%% are traced so long that this costs at most 8 % of the CPU time that the node uses without it, or 2 % of one CPU if
%% that is more. Tracing alternates with pauses. All other sources go on during a pause.
%%
%% A consumer that is attached to trace events before, or by another backend, gets all of them: nothing pauses then.
-module(dyntrace_cost_limit).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1, is_paused/1, limited/2, pause/4]).

%% A pause begins after this time, so that calls which take some time are recorded as a whole; or earlier, if it would
%% be long otherwise: a report of ten seconds should not record only the first one.
-define(TRACED_MS, 1000).
-define(EARLY_MS, 3000).

%% A shorter pause would cost more than it saves.
-define(LEAST_MS, 500).
-define(MOST_MS, 15000).

-define(PERCENT, 8).
-define(PERCENT_OF_CPU, 2).

%% The price of an event that is recorded by LTTng, and of setting and clearing the trace flags of a process: medians of
%% a busy RabbitMQ.
-define(EVENT_NS, 600).
-define(PROCESS_NS, 4000).

%% A budget that is never spent, and not infinite, so that events are counted.
-define(COUNTED, 1 bsl 60).

%% Linux shows CPU times in this unit, whatever its own ticks are.
-define(MS_PER_TICK, 10).

-record(window, {is_paused = false :: boolean(),
                 since :: integer(),
                 %% Of a pause.
                 until = 0 :: integer(),
                 cpu_ms = 0 :: non_neg_integer()}).

%% With a budget, the budget pauses tracing.
on(_, #{budget := Budget}) ->
    case Budget =:= infinity andalso not has_flags(dyntrace_autotracer:info()) of
        true -> {on, traced()};
        false -> {on, unlimited}
    end.

%% Flags that were set before belong to another consumer.
has_flags(#{processes := Flags}) -> Flags =/= [];
has_flags(off) -> false.

poll(_, unlimited) ->
    {on, unlimited};
poll(_, Window = #window{is_paused = false}) ->
    case is_alone() of
        true ->
            {on, after_traced(Window)};
        false ->
            ok = dyntrace:set_budget(infinity),
            {on, unlimited}
    end;
poll(_, Window = #window{until = Until}) ->
    case now_ms() >= Until of
        true -> {on, traced()};
        false -> {on, Window}
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

traced() ->
    ok = dyntrace:set_budget(?COUNTED),
    #window{since = now_ms(), cpu_ms = cpu_ms()}.

after_traced(Window = #window{since = Since, cpu_ms = CpuMs}) ->
    {Now, Events} = {now_ms(), ?COUNTED - dyntrace:budget_left()},
    TracedMs = max(1, Now - Since),
    case pause(Events, erlang:system_info(process_count), TracedMs, cpu_ms() - CpuMs) of
        Ms when Ms < ?EARLY_MS, TracedMs < ?TRACED_MS ->
            Window;
        0 ->
            traced();
        Ms ->
            ok = dyntrace:report(cost_limit, {Events, TracedMs * 1000000, Ms * 1000000}),
            #window{is_paused = true, since = Now, until = Now + Ms}
    end.

%% How long to pause, in milliseconds, after that many events and that much CPU time of the node within that time; 0:
%% not at all.
-spec pause(Events :: non_neg_integer(), Processes :: pos_integer(), TracedMs :: pos_integer(),
            CpuMs :: non_neg_integer()) -> non_neg_integer().
pause(Events, Processes, TracedMs, CpuMs) ->
    EventsMs = Events * ?EVENT_NS / 1000000,
    CostMs = EventsMs + Processes * ?PROCESS_NS / 1000000,
    OfCpu = ?PERCENT_OF_CPU / 100,
    OfNode = max(0, CpuMs - EventsMs) / TracedMs * ?PERCENT / 100,
    case round(CostMs / max(OfNode, OfCpu)) - TracedMs of
        Ms when EventsMs / TracedMs =< OfCpu; Ms < ?LEAST_MS -> 0;
        Ms -> min(Ms, ?MOST_MS)
    end.

%% Whether all consumers of trace events may be one: they use the same backends as the consumer of `cost_limit'.
is_alone() ->
    Enabled = dyntrace:listeners(),
    [Limited | _] = [lists:sort(Backends) || #{name := cost_limit, backends := Backends} <- Enabled] ++ [none],
    lists:all(fun(#{name := Name, backends := Backends}) ->
                      lists:sort(Backends) =:= Limited orelse not needs_flags(Name)
              end, Enabled).

needs_flags(Name) ->
    Table = dyntrace_trace_flags:table([Name]),
    is_map_key(Name, Table) andalso (dyntrace_trace_flags:none())#{sources := maps:get(sources, maps:get(Name, Table))}
        =/= maps:get(Name, Table).

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
