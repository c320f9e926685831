%% @private The names and owners of ports, which most of their trace events lack. The library gets them from the events
%% of ports that are opened and accepted while they are traced. For the others this source asks the VM: for all when a
%% consumer attaches, then for those that occur in events without being in the library's table.
%%
%% In the scheduling events of a traced port, such a request appears as `info'. Therefore the first requests are made
%% before tracing starts.
-module(dyntrace_ports).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).

%% How long tracing waits for the first answers: long enough for about 10,000 ports.
-define(ANSWER_MS, 50).

%% The maximum number of names that the application converts to atoms during the life of the node. The VM itself creates
%% an atom for the name of each port that is opened while `ports' are traced.
-define(MAX_NAMES, 1000).

on(_, #{ports := none}) ->
    {on, none};
on(_, _) ->
    Asker = dyntrace_port_asker:ask(erlang:ports(), dyntrace_port_asker:new(fun set_port/2)),
    {on, dyntrace_port_asker:poll(Asker, ?ANSWER_MS)}.

poll(_, none) ->
    {on, none};
poll(_, Before) ->
    Asker = dyntrace_port_asker:poll(Before, 0),
    {on, case dyntrace_port_asker:is_idle(Asker) of
             true -> dyntrace_port_asker:ask(lists:usort(dyntrace:take_unknown_ports()), Asker);
             false -> Asker
         end}.

message(_, State) ->
    State.

off(none) ->
    ok;
off(Asker) ->
    dyntrace_port_asker:stop(Asker).

set_port(Port, _) ->
    case dyntrace_port_asker:info(Port) of
        {Owner, Name, _} -> dyntrace:set_port(Port, atom_of(Name), Owner);
        closed -> ok
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
