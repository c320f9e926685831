%% @private The source of the VM's own events: the messages of the system monitor to the autotracer.
%%
%% Before OTP 28 one process of a node gets them. If that is another tool's process, it is not replaced, and its
%% settings are preserved. From OTP 28 on, a trace session of our own gets them, too. To destroy a session, the VM
%% signals every process. So the session stays in the worker's process dictionary when the source is switched off.
%%
%% A node can send more of these messages than the worker can read. The source pauses for a second when the limit per
%% second is reached, or when a tenth of the limit is waiting in the message queue.
-module(dyntrace_system_monitor).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).

%% OTP 28 and later.
-ignore_xref([{trace, system, 3}, {trace, session_create, 3}, {trace, info, 3}]).

%% The name of the session, and the key in the process dictionary.
-define(SESSION, dyntrace_system_monitor).

%% The events, and the probes that each one feeds. The option with an event's name is its threshold.
-define(EVENTS, [{busy_dist_port, [dist__port_busy, vm_busy_dist_port]},
                 {busy_port, [port__busy, vm_busy_port]},
                 {large_heap, [vm_large_heap]},
                 {long_gc, [vm_long_gc]},
                 {long_message_queue, [vm_long_message_queue]},
                 {long_schedule, [vm_long_schedule]}]).

%% The first release whose VM has the event, if that is later than OTP 25.
-define(SINCE, #{long_message_queue => 27}).

%% Messages per second. Handling takes longer with a consumer, so the message queue may grow at a lower rate.
-define(LIMIT, 10000).

%% The time and the message queue are checked after this many messages.
-define(STEP, 100).

-define(SECOND, 1000).

-record(state, {config :: dyntrace_config:config(),
                %% The enabled probes that the source feeds.
                probes = [] :: [atom()],
                %% The events that are set, with their thresholds, and the settings that the VM returned for them: it
                %% raises thresholds that are too low.
                set = none :: none | {[{Event :: atom(), Threshold :: term()}], Shown :: term()},
                %% The messages after the time `since', in ms.
                count = 0,
                since = now_ms(),
                paused = no :: no | {until, integer()},
                %% Whether it paused within the last second in which it was on.
                is_overloaded = false,
                resumed = 0,
                %% The nodes of connections: the last result of system_info(dist_ctrl).
                nodes = []}).

on(Enabled, Config) ->
    poll(Enabled, #state{config = Config}).

poll(Enabled, State = #state{paused = no}) ->
    taken(calm(fed(Enabled, State)));
poll(Enabled, State = #state{paused = {until, Until}}) ->
    Fed = fed(Enabled, State),
    case now_ms() >= Until of
        true -> taken(Fed#state{paused = no, count = 0, since = now_ms(), resumed = now_ms()});
        false -> {paused, too_many(Fed), Fed}
    end.

fed(Enabled, State) ->
    State#state{probes = [Probe || {_, Probes} <- ?EVENTS, Probe <- Probes, lists:member(Probe, Enabled)]}.

taken(State = #state{probes = Enabled}) ->
    case {take(required(State), State), unsupported(Enabled)} of
        {{withheld, Why}, _} -> {withheld, Why};
        {Taken, Unsupported} when map_size(Unsupported) =:= 0 -> {on, Taken};
        {Taken, Unsupported} -> {partly, Unsupported, Taken}
    end.

%% Only the events of enabled probes: all of them could be too many for a consumer.
required(#state{config = Config, probes = Enabled}) ->
    [{Event, maps:get(Event, Config, true)}
     || {Event, Probes} <- ?EVENTS, since(Event) =< release(), Probes -- Enabled =/= Probes].

unsupported(Enabled) ->
    maps:from_list([{Probe, "requires OTP " ++ integer_to_list(since(Event)) ++ " or later"}
                    || {Event, Probes} <- ?EVENTS, since(Event) > release(), Probe <- Probes,
                       lists:member(Probe, Enabled)]).

since(Event) ->
    maps:get(Event, ?SINCE, 0).

release() ->
    list_to_integer(erlang:system_info(otp_release)).

off(State) ->
    _ = take([], State),
    ok.

%% -- Messages ----------------------------------------------------------------------------

message({monitor, Id, Event, Info}, State = #state{paused = no}) ->
    case lists:keyfind(Event, 1, ?EVENTS) of
        {_, Probes} -> counted(report(Probes, Id, Event, Info, State));
        false -> State
    end;
message(_, State) ->
    State.

report(Probes, Id, busy_dist_port, Controller, State) ->
    {Node, New} = node_of(Controller, State),
    ok = fire(Probes, Id, {Controller, Node}),
    New;
report(Probes, Id, _, Info, State) ->
    ok = fire(Probes, Id, Info),
    State.

fire(Probes, Id, Info) ->
    _ = [ok = dyntrace:report(Probe, values(Probe, Id, Info)) || Probe <- Probes],
    ok.

%% The values of a probe's fields.
values(dist__port_busy, Pid, {Controller, Node}) ->
    {node(), port_or_empty(Controller), Node, Pid};
values(vm_busy_dist_port, Pid, {Controller, Node}) ->
    {Pid, Controller, Node};
values(port__busy, _, Port) ->
    {Port};
values(vm_busy_port, Pid, Port) ->
    {Pid, Port};
values(vm_long_gc, Pid, Info) ->
    list_to_tuple([Pid, value(timeout, Info, 0) | heap(Info)]);
values(vm_large_heap, Pid, Info) ->
    list_to_tuple([Pid | heap(Info)]);
values(vm_long_schedule, Port, Info) when is_port(Port) ->
    {Port, value(timeout, Info, 0), value(port_op, Info, undefined), ""};
values(vm_long_schedule, Pid, Info) ->
    {Pid, value(timeout, Info, 0), value(in, Info, undefined), value(out, Info, undefined)};
values(vm_long_message_queue, Pid, IsLong) ->
    {Pid, case IsLong of true -> long; false -> short end}.

heap(Info) ->
    [value(Key, Info, 0) || Key <- [heap_block_size, old_heap_block_size, mbuf_size]].

%% The order of the pairs is not defined.
value(Key, Info, Default) ->
    case lists:keyfind(Key, 1, Info) of
        {_, Value} -> Value;
        false -> Default
    end.

%% Over TLS, a process controls the connection.
port_or_empty(Port) when is_port(Port) -> Port;
port_or_empty(_) -> "".

node_of(Controller, State = #state{nodes = Nodes}) ->
    case lists:keyfind(Controller, 2, Nodes) of
        {Node, _} ->
            {Node, State};
        false ->
            Now = erlang:system_info(dist_ctrl),
            {proplists:get_value(Controller, [{C, Node} || {Node, C} <- Now], ""), State#state{nodes = Now}}
    end.

%% -- Too many ----------------------------------------------------------------------------

counted(State = #state{count = Count}) when (Count + 1) rem ?STEP =/= 0 ->
    State#state{count = Count + 1};
counted(State = #state{count = Count, since = Since}) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    case now_ms() - Since of
        _ when Waiting > ?LIMIT div 10 -> pause(State);
        Past when Past > ?SECOND -> State#state{count = 0, since = now_ms()};
        _ when Count < ?LIMIT -> State#state{count = Count + 1};
        _ -> pause(State)
    end.

pause(State) ->
    Cleared = take([], State),
    ok = warn_first(State),
    Cleared#state{paused = {until, now_ms() + ?SECOND}, is_overloaded = true}.

calm(State = #state{is_overloaded = true, resumed = Resumed}) ->
    State#state{is_overloaded = now_ms() - Resumed =< ?SECOND};
calm(State) ->
    State.

%% An overload is logged once, when it begins.
warn_first(#state{is_overloaded = true}) -> ok;
warn_first(State) -> logger:warning("dyntrace: ~ts", [too_many(State)]).

too_many(#state{probes = Probes}) ->
    lists:flatten(io_lib:format("too many events of the system monitor (the limit is ~b per second): the probes ~ts "
                                "pause for one second each time",
                                [?LIMIT, lists:join(", ", [atom_to_list(Probe) || Probe <- Probes])])).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% -- The system monitor ------------------------------------------------------------------

%% Sets these events, and no others.
take(Events, State = #state{set = Set}) ->
    Way = way(),
    case shown(Way) of
        Shown when Set =:= {Events, Shown} -> State;
        Shown -> changed(exchange(Way, Shown, Events, Set), Way, Events, State)
    end.

changed(ok, Way, Events, State) -> State#state{set = {Events, shown(Way)}};
changed(Withheld, _, _, _) -> Withheld.

way() ->
    case erlang:function_exported(trace, system, 3) of
        true -> session;
        false -> global
    end.

shown(session) -> session();
shown(global) -> erlang:system_monitor().

exchange(global, Other, Events, _) ->
    exchange_global(Other, Events);
exchange(session, none, [], _) ->
    ok;
exchange(session, none, Events, _) ->
    set_in_session(opened(), all(), Events);
exchange(session, Shown = {open, Session, _}, Events, {Before, Shown}) ->
    set_in_session(Session, names(Before) -- names(Events), Events -- Before);
exchange(session, {open, Session, _}, Events, _) ->
    set_in_session(Session, all() -- names(Events), Events).

exchange_global({Other, _}, []) when Other =/= self() ->
    ok;
exchange_global({Other, _}, _) when Other =/= self() ->
    {withheld, lists:flatten(io_lib:format("~w is the system monitor; before OTP 28 there is only one", [Other]))};
exchange_global(undefined, []) ->
    ok;
exchange_global(_, Events) ->
    %% Another process may have become the system monitor since erlang:system_monitor/0 was called.
    case set(self(), [option(Event) || Event <- Events]) of
        Theirs = {Other, Set} when Other =/= self() -> _ = set(Other, Set), exchange_global(Theirs, Events);
        _ -> ok
    end.

option({Event, true}) -> Event;
option(Event) -> Event.

set(_, []) ->
    erlang:system_monitor(undefined);
set(Pid, Options) ->
    try erlang:system_monitor(Pid, Options)
    catch error:badarg when Pid =/= self() -> undefined % it has ended
    end.

set_in_session(Session, Clear, Set) ->
    [ok = apply(trace, system, [Session, Event, false]) || Event <- Clear],
    [ok = apply(trace, system, [Session, Event, Threshold]) || {Event, Threshold} <- Set],
    ok.

all() ->
    names(?EVENTS).

names(Events) ->
    [Event || {Event, _} <- Events].

%% The session may be gone: any process can destroy a session that session_info/1 lists.
session() ->
    Session = get(?SESSION),
    try apply(trace, info, [Session, system, all]) of
        {system, Set} -> {open, Session, lists:sort(Set)}
    catch
        error:badarg -> none
    end.

opened() ->
    %% The session of a killed worker survives if another process holds its handle.
    ok = dyntrace_session:close_all(?SESSION),
    Session = apply(trace, session_create, [?SESSION, self(), []]),
    _ = put(?SESSION, Session),
    Session.
