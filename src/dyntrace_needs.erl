%% @private From who listens to what has to be traced: a function of the catalogue alone.
-module(dyntrace_needs).

-export([nothing/0, of_listeners/2]).

-export_type([needs/0, calls/0]).

-type calls() :: none | call | return | exception.
%% What the listeners want of a call; each of these has what stands before it.

-type needs() :: #{processes := [atom()], ports := [atom()], calls := calls(), seq_trace := boolean(),
                   versions := dyntrace_tracing:versions()}.
%% The trace flags of processes and of ports; the versions of the code whose calls those are, which
%% whoever traces them fills in.

-spec nothing() -> needs().
nothing() ->
    #{processes => [], ports => [], calls => none, seq_trace => false, versions => []}.

%% Of the listeners to those probes that may be served.
-spec of_listeners([dyntrace:listener()], all | [atom()]) -> needs().
of_listeners([], _) ->
    nothing();
of_listeners(Listeners, Served) ->
    Names = [Name || #{name := Name} <- Listeners, Served =:= all orelse lists:member(Name, Served)],
    Events = [{Group, Tag} || #{name := Name, events := Events} <- dyntrace:probes(), lists:member(Name, Names),
                              #{group := Group, tag := Tag} <- Events],
    #{processes => lists:usort(lists:append([flags(process, Event) || Event <- Events])),
      ports => lists:usort(lists:append([flags(port, Event) || Event <- Events])),
      calls => lists:foldl(fun more/2, none, [calls(Event) || Event <- Events]),
      seq_trace => lists:keymember(seq_trace, 1, Events),
      versions => []}.

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

%% return_to is not asked for: it would tell of each return twice.
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
