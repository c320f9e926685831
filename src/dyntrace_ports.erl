%% @private The names and owners of ports, which most of their trace events do not show. The library learns them from
%% the events of ports that are opened and accepted while they are traced. This source asks the VM about the others:
%% about all when a consumer attaches, then about those that the library has seen and does not know.
%%
%% erlang:port_info/1 is answered by the port, so a process of its own asks. A port that is traced shows such a question
%% as an `info' in its scheduling; the first questions therefore come before the tracing.
-module(dyntrace_ports).
-behaviour(dyntrace_source).

-export([on/1, poll/1, message/2, off/1]).

%% How long the tracing waits for the first answers: long enough for about 10,000 ports.
-define(ANSWER_MS, 50).

%% The names that the application makes atoms of, at most, while the node lives. The VM itself makes an atom of the name
%% of each port that is opened while `ports' are traced.
-define(MAX_NAMES, 1000).

on(#{ports := none}) ->
    {on, none};
on(_) ->
    {on, waited(ask(erlang:ports()), ?ANSWER_MS)}.

poll(none) ->
    {on, none};
poll(Asking) ->
    {on, case waited(Asking, 0) of
             idle -> ask(lists:usort(dyntrace:take_unknown_ports()));
             Still -> Still
         end}.

message(_, Asking) ->
    Asking.

off({Pid, Ref}) ->
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    ok;
off(_) ->
    ok.

ask([]) -> idle;
ask(Ports) -> spawn_opt(fun() -> asked(Ports) end, [link, monitor]).

%% A sensitive process makes no trace events.
asked(Ports) ->
    _ = process_flag(sensitive, true),
    lists:foreach(fun tell/1, Ports).

waited({Pid, Ref}, Wait) ->
    receive {'DOWN', Ref, process, Pid, _} -> idle
    after Wait -> {Pid, Ref}
    end;
waited(idle, _) ->
    idle.

tell(Port) ->
    case erlang:port_info(Port) of
        undefined ->
            ok;
        Info ->
            {name, Name} = lists:keyfind(name, 1, Info),
            {connected, Owner} = lists:keyfind(connected, 1, Info),
            dyntrace:set_port(Port, atom_of(Name), Owner)
    end.

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
