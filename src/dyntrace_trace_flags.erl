%% @private The tracing that enabled probes need: a function of the catalogue alone.
-module(dyntrace_trace_flags).

-export([nothing/0, table/1, of_listeners/2, flags/1, tracer/0]).

-export_type([needs/0, calls/0, table/0]).

-type calls() :: none | call | return | exception.
%% The events of a call that consumers need: each value includes those to its left.

-type needs() :: #{processes := [atom()], ports := [atom()], calls := calls(), seq_trace := boolean()}.
%% The trace flags of processes and of ports, sorted.

-type table() :: #{Probe :: atom() => needs()}.

-spec nothing() -> needs().
nothing() ->
    #{processes => [], ports => [], calls => none, seq_trace => false}.

%% The application's tracer. Its state makes it, for the VM, another tracer than {dyntrace, []}, which users set by hand.
-spec tracer() -> {module(), atom()}.
tracer() ->
    {dyntrace, dyntrace_autotracer}.

%% Every flag that the application sets for a process, or for a port.
-spec flags(process | port) -> [atom()].
flags(process) -> [send, 'receive', procs, call, running, exiting, garbage_collection];
flags(port) -> [send, 'receive', ports, running_ports, exiting].

%% The needs of each probe that may be fired. Made once per configuration, since the catalogue does not change.
-spec table(all | [atom()]) -> table().
table(Allowed) ->
    maps:from_list([{Name, of_events([{Group, Tag} || #{group := Group, tag := Tag} <- Events])}
                    || #{name := Name, events := Events} <- dyntrace:probes(), Allowed =:= all orelse lists:member(Name, Allowed)]).

of_events(Events) ->
    #{processes => lists:usort(lists:append([flags(process, Event) || Event <- Events])),
      ports => lists:usort(lists:append([flags(port, Event) || Event <- Events])),
      calls => lists:foldl(fun more/2, none, [calls(Event) || Event <- Events]),
      seq_trace => lists:keymember(seq_trace, 1, Events)}.

%% A labeled probe has no events, and is not in the table by its name with a label.
-spec of_listeners([dyntrace:listener()], table()) -> needs().
of_listeners(Listeners, Table) ->
    lists:foldl(fun(#{name := Name}, Needs) -> both(maps:get(Name, Table, nothing()), Needs) end, nothing(), Listeners).

both(#{processes := Processes, ports := Ports, calls := Calls, seq_trace := SeqTrace},
     #{processes := Processes2, ports := Ports2, calls := Calls2, seq_trace := SeqTrace2}) ->
    #{processes => lists:umerge(Processes, Processes2), ports => lists:umerge(Ports, Ports2), calls => more(Calls, Calls2),
      seq_trace => SeqTrace orelse SeqTrace2}.

%% The flags that yield an event of a process, or of a port.
flags(process, {procs, _}) -> [procs];
flags(process, {running_procs, Tag}) -> [running | exiting(Tag)];
flags(process, {call, _}) -> [call];
flags(process, {garbage_collection, _}) -> [garbage_collection];
flags(port, {ports, _}) -> [ports];
flags(port, {running_ports, Tag}) -> [running_ports | exiting(Tag)];
flags(_, {send, _}) -> [send];
flags(_, {'receive', _}) -> ['receive'];
flags(_, _) -> [].

exiting(Tag) ->
    [exiting || lists:member(Tag, [in_exiting, out_exiting, out_exited, any])].

%% return_to is not needed: each return would come twice.
calls({call, call}) -> call;
calls({call, return_from}) -> return;
calls({call, exception_from}) -> exception;
calls({call, any}) -> exception;
calls(_) -> none.

more(A, B) ->
    case rank(A) > rank(B) of
        true -> A;
        false -> B
    end.

rank(none) -> 0;
rank(call) -> 1;
rank(return) -> 2;
rank(exception) -> 3.
