%% @private The source of `port__busy' and `dist__port_busy': the system monitor's messages, to the autotracer.
%%
%% Before OTP 28 a node has one process that gets them: another tool's stays, and keeps what it has set meanwhile. From
%% OTP 28 on, a trace session of our own gets them, too. To destroy it, the VM signals every process. So the session
%% stays in the worker's process dictionary when the source is switched off.
%%
%% A node can send more of these messages than the worker can read. After as many as the limit within a second, or as
%% soon as a tenth of it wait to be read, the source pauses for a second.
-module(dyntrace_system_monitor).
-behaviour(dyntrace_source).

-export([on/1, poll/1, message/2, off/1]).

%% OTP 28 and later.
-ignore_xref([{trace, system, 3}, {trace, session_create, 3}, {trace, info, 3}]).

%% The name of the session, and the key in the process dictionary.
-define(SESSION, dyntrace_system_monitor).

%% The probes, and the event that each requires.
-define(EVENTS, [{dist__port_busy, busy_dist_port}, {port__busy, busy_port}]).

%% Messages per second. A consumer makes each take longer: the message queue may grow long before.
-define(LIMIT, 10000).

%% After so many, the time and the message queue are looked at.
-define(STEP, 100).

-define(SECOND, 1000).

-record(state, {%% The messages since then, in ms.
                count = 0,
                since = now_ms(),
                paused = no :: no | {until, integer()},
                %% Whether it has paused within the last second in which it was on.
                is_overloaded = false,
                resumed = 0,
                %% The nodes of connections: the last answer of dist_ctrl.
                nodes = []}).

on(_) ->
    taken(#state{}).

poll(State = #state{paused = no}) ->
    taken(calm(State));
poll(State = #state{paused = {until, Until}}) ->
    case now_ms() >= Until of
        true -> taken(State#state{paused = no, count = 0, since = now_ms(), resumed = now_ms()});
        false -> {paused, too_many(), State}
    end.

taken(State) ->
    case take(required()) of
        ok -> {on, State};
        {withheld, Why} -> {withheld, Why}
    end.

%% Both events would be too many for a consumer of one of them.
required() ->
    Enabled = [Name || #{name := Name} <- dyntrace:listeners()],
    [Event || {Probe, Event} <- ?EVENTS, lists:member(Probe, Enabled)].

off(_) ->
    take([]).

%% -- Messages ----------------------------------------------------------------------------

message({monitor, Pid, Event, What}, State = #state{paused = no}) when Event =:= busy_port; Event =:= busy_dist_port ->
    counted(report(Event, What, Pid, State));
message(_, State) ->
    State.

report(busy_port, Port, _, State) ->
    ok = dyntrace:report(port__busy, {Port}),
    State;
report(busy_dist_port, Controller, Pid, State) ->
    {Node, New} = node_of(Controller, State),
    ok = dyntrace:report(dist__port_busy, {node(), port_or_empty(Controller), Node, Pid}),
    New.

%% With TLS, a process controls the connection.
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

pause(State = #state{is_overloaded = IsOverloaded}) ->
    ok = take([]),
    _ = IsOverloaded orelse logger:warning("dyntrace: ~ts", [too_many()]),
    State#state{paused = {until, now_ms() + ?SECOND}, is_overloaded = true}.

calm(State = #state{is_overloaded = true, resumed = Resumed}) ->
    State#state{is_overloaded = now_ms() - Resumed =< ?SECOND};
calm(State) ->
    State.

too_many() ->
    lists:flatten(io_lib:format("too many processes are suspended by busy ports (up to ~b per second are told): "
                                "port__busy and dist__port_busy pause for one second each time", [?LIMIT])).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% -- The system monitor ------------------------------------------------------------------

%% Sets these events.
take(Events) ->
    case erlang:function_exported(trace, system, 3) of
        true -> take_in_session(Events);
        false -> take_global(erlang:system_monitor(), Events)
    end.

take_global({Other, _}, []) when Other =/= self() ->
    ok;
take_global({Other, _}, _) when Other =/= self() ->
    {withheld, lists:flatten(io_lib:format("~w is the system monitor; before OTP 28 there is only one", [Other]))};
take_global(undefined, []) ->
    ok;
take_global({_, Set}, Events) when length(Set) =:= length(Events) ->
    case lists:sort(Set) of
        Events -> ok;
        _ -> exchange(Events)
    end;
take_global(_, Events) ->
    exchange(Events).

%% Another process may have become the system monitor since erlang:system_monitor/0 was called.
exchange(Events) ->
    case set(self(), Events) of
        Theirs = {Other, Set} when Other =/= self() -> _ = set(Other, Set), take_global(Theirs, Events);
        _ -> ok
    end.

set(_, []) ->
    erlang:system_monitor(undefined);
set(Pid, Events) ->
    try erlang:system_monitor(Pid, Events)
    catch error:badarg -> undefined % it has ended
    end.

take_in_session(Events) ->
    case {session(), Events} of
        {none, []} -> ok;
        {none, _} -> set_in_session(opened(), all(), Events);
        {{open, Session, Events}, _} -> set_in_session(Session, [], []);
        {{open, Session, Set}, _} -> set_in_session(Session, Set -- Events, Events -- Set)
    end.

set_in_session(Session, Clear, Set) ->
    [ok = apply(trace, system, [Session, Event, false]) || Event <- Clear],
    [ok = apply(trace, system, [Session, Event, true]) || Event <- Set],
    ok.

all() ->
    [Event || {_, Event} <- ?EVENTS].

%% Any process can destroy a session that session_info/1 lists.
session() ->
    Session = get(?SESSION),
    try apply(trace, info, [Session, system, all]) of
        {system, Set} -> {open, Session, lists:sort(Set)}
    catch
        error:badarg -> none
    end.

opened() ->
    %% A killed worker's lives on if another process holds its handle.
    ok = dyntrace_session:close_all(?SESSION),
    Session = apply(trace, session_create, [?SESSION, self(), []]),
    _ = put(?SESSION, Session),
    Session.
