%% @private The names and owners of ports, which most of their trace events do not show. The library learns them from
%% the events of ports that are opened and accepted while they are traced. This source asks the VM about the others:
%% about all when a consumer attaches, then about those that the library has seen and does not know.
%%
%% erlang:port_info/1 is answered by the port, so a process of its own asks. A port that is traced shows such a question
%% as an `info' in its scheduling; the first questions therefore come before the tracing.
-module(dyntrace_ports).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).
%% For dyntrace_identities
-export([info/1]).

%% How long the tracing waits for the first answers: long enough for about 10,000 ports.
-define(ANSWER_MS, 50).

%% How long the others wait for the answer of a port, and how many processes wait for such ports at most.
-define(PORT_MS, 1000).
-define(MAX_STUCK, 10).

%% The names that the application makes atoms of, at most, while the node lives. The VM itself makes an atom of the name
%% of each port that is opened while `ports' are traced.
-define(MAX_NAMES, 1000).

-record(asking, {pid, monitor,
                 %% The ports that the process asks, and how many it has asked.
                 ports :: [port()],
                 asked = counters:new(1, []),
                 %% How many it had asked at that time, in ms.
                 seen = 0,
                 since = now_ms()}).

-record(state, {asking = none :: none | #asking{},
                %% The processes that wait for a port, the last one first.
                stuck = [] :: [{port(), pid()}]}).

on(_, #{ports := none}) ->
    {on, none};
on(_, _) ->
    {on, answered(ask(erlang:ports(), #state{}), ?ANSWER_MS)}.

poll(_, none) ->
    {on, none};
poll(_, State = #state{stuck = Stuck}) ->
    Waiting = State#state{stuck = [Waiting || Waiting = {_, Pid} <- Stuck, is_process_alive(Pid)]},
    {on, case answered(Waiting, 0) of
             Idle = #state{asking = none} -> ask(lists:usort(dyntrace:take_unknown_ports()), Idle);
             Asking -> gone_on(Asking)
         end}.

message(_, State) ->
    State.

off(#state{asking = Asking, stuck = Stuck}) ->
    _ = [true = demonitor(Ref, [flush]) || #asking{monitor = Ref} <- [Asking]],
    _ = [true = exit(Pid, kill) || Pid <- [Pid || #asking{pid = Pid} <- [Asking]] ++ [Pid || {_, Pid} <- Stuck]],
    ok;
off(none) ->
    ok.

%% A port that a process waits for is not asked again.
ask(Ports, State = #state{stuck = Stuck}) ->
    case [Port || Port <- Ports, not lists:keymember(Port, 1, Stuck)] of
        [] ->
            State;
        ToAsk ->
            New = #asking{ports = ToAsk},
            {Pid, Ref} = spawn_opt(fun() -> asked(ToAsk, New#asking.asked) end, [link, monitor]),
            State#state{asking = New#asking{pid = Pid, monitor = Ref}}
    end.

%% A sensitive process makes no trace events.
asked(Ports, Asked) ->
    _ = process_flag(sensitive, true),
    lists:foreach(fun(Port) -> go_on() andalso tell(Port), counters:add(Asked, 1, 1) end, Ports).

%% Until another process asks the others.
go_on() ->
    receive stop -> exit(normal)
    after 0 -> true
    end.

answered(State = #state{asking = #asking{monitor = Ref}}, Wait) ->
    receive {'DOWN', Ref, process, _, _} -> State#state{asking = none}
    after Wait -> State
    end;
answered(State, _) ->
    State.

%% A driver may hold its port for as long as it likes. Its name then comes with its answer; another process asks the
%% ports after it.
gone_on(State = #state{asking = Asking = #asking{seen = Seen, since = Since}}) ->
    case {counters:get(Asking#asking.asked, 1), now_ms() - Since} of
        {Seen, Past} when Past > ?PORT_MS -> without(lists:nthtail(Seen, Asking#asking.ports), State);
        {Seen, _} -> State;
        {More, _} -> State#state{asking = Asking#asking{seen = More, since = now_ms()}}
    end.

without([Port | Others], State = #state{asking = #asking{pid = Pid, monitor = Ref}, stuck = Stuck}) ->
    Pid ! stop,
    true = demonitor(Ref, [flush]),
    {Kept, TooMany} = lists:split(min(length(Stuck), ?MAX_STUCK - 1), Stuck),
    _ = [exit(Long, kill) || {_, Long} <- TooMany],
    ask(Others, State#state{asking = none, stuck = [{Port, Pid} | Kept]});
without([], State) ->
    State.

now_ms() ->
    erlang:monotonic_time(millisecond).

tell(Port) ->
    case info(Port) of
        {Owner, Name, _} -> dyntrace:set_port(Port, atom_of(Name), Owner);
        closed -> ok
    end.

%% The port answers, which may take long. The process of the operating system is 0 if the port has none.
-spec info(port()) -> {Owner :: pid(), Name :: string(), OsPid :: non_neg_integer()} | closed.
info(Port) ->
    case erlang:port_info(Port) of
        undefined -> closed;
        Info -> {value(connected, Info), value(name, Info), os_pid(value(os_pid, Info))}
    end.

value(Key, Info) ->
    proplists:get_value(Key, Info).

os_pid(undefined) -> 0;
os_pid(OsPid) -> OsPid.

atom_of(Long) ->
    Name = lists:sublist(Long, 255),
    try list_to_existing_atom(Name)
    catch error:badarg -> new_atom(Name, dyntrace_settings:get(port_names, 0))
    end.

new_atom(Name, Count) when Count < ?MAX_NAMES ->
    ok = dyntrace_settings:put(port_names, Count + 1),
    list_to_atom(Name);
new_atom(_, _) ->
    ''.
