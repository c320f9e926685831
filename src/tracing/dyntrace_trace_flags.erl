%% @private The trace flags, the other tracing and the sources that enabled probes require. They depend only on the
%% catalogue.
-module(dyntrace_trace_flags).

-export([none/0, table/1, for_enabled/2, all/1, groups/1, tracer/0, more/2]).

-export_type([required/0, calls/0, table/0]).

-type calls() :: none | call | return | exception.
%% The events of a call that are required: each value includes those to its left.

-type required() :: #{processes := [atom()], ports := [atom()], calls := calls(),
                      implied := [dyntrace_trace_pattern:implied()], seq_trace := boolean(), senders := boolean(),
                      sources := [dyntrace_source:name()]}.
%% `processes', `ports': their trace flags, sorted; `sources' are sorted, too. `calls': for the configured functions.
%% `implied': the functions that are traced although they are not configured, sorted. `senders': whether received
%% messages must include their senders.

-type table() :: #{Probe :: atom() => required()}.

%% No requirements.
-spec none() -> required().
none() ->
    #{processes => [], ports => [], calls => none, implied => [], seq_trace => false, senders => false, sources => []}.

%% The application's tracer. Because of its state, the VM distinguishes it from {dyntrace, []}, which users set
%% themselves.
-spec tracer() -> {module(), atom()}.
tracer() ->
    {dyntrace, dyntrace_autotracer}.

%% Every flag that the application sets for a process, or for a port.
-spec all(process | port) -> [atom()].
all(process) -> [send, 'receive', procs, call, running, exiting, garbage_collection];
all(port) -> [send, 'receive', ports, running_ports, exiting].

%% The groups of the process events that these flags cause.
-spec groups([atom()]) -> [atom()].
groups(Flags) ->
    lists:usort([group(Flag) || Flag <- Flags]).

group(running) -> running_procs;
group(exiting) -> running_procs;
group(Flag) -> Flag.

%% The requirements of each allowed probe. The table is made once per configuration, because the catalogue is constant.
-spec table(all | [atom()]) -> table().
table(Allowed) ->
    maps:from_list([{Name, for_probe(Probe)} || Probe = #{name := Name} <- dyntrace:probes(),
                                                Allowed =:= all orelse lists:member(Name, Allowed)]).

for_probe(Probe = #{name := Name, events := Fed, asks := Asked}) ->
    Events = [{Group, Tag} || #{group := Group, tag := Tag} <- Fed ++ Asked],
    #{sources => lists:usort(sources(Probe)),
      processes => lists:usort(lists:append([flags(process, Event) || Event <- Events])),
      ports => lists:usort(lists:append([flags(port, Event) || Event <- Events])),
      calls => lists:foldl(fun more/2, none, [calls(Event) || Event <- Events]),
      implied => [Group || Group <- dyntrace_trace_pattern:implied(), lists:keymember(Group, 1, Events)],
      seq_trace => lists:keymember(seq_trace, 1, Events),
      senders => Name =:= message_delivery}.

%% The combined requirements of these probes. A labeled probe has no events; its name with a label is not in the table.
-spec for_enabled([dyntrace:listener()], table()) -> required().
for_enabled(Probes, Table) ->
    lists:foldl(fun(#{name := Name}, Required) -> both(maps:get(Name, Table, none()), Required) end, none(), Probes).

both(#{processes := Processes, ports := Ports, calls := Calls, implied := Implied, seq_trace := SeqTrace,
       senders := Senders, sources := Sources},
     #{processes := Processes2, ports := Ports2, calls := Calls2, implied := Implied2, seq_trace := SeqTrace2,
       senders := Senders2, sources := Sources2}) ->
    #{processes => lists:umerge(Processes, Processes2),
      ports => lists:umerge(Ports, Ports2),
      calls => more(Calls, Calls2),
      implied => lists:umerge(Implied, Implied2),
      seq_trace => SeqTrace orelse SeqTrace2,
      senders => Senders orelse Senders2,
      sources => lists:umerge(Sources, Sources2)}.

%% The source of the events themselves; the source of port names and owners, if the probe asks for other events of
%% ports; and the source of the lists of BIFs and NIFs, by which the provider erlang distinguishes calls.
sources(Probe = #{provider := Provider, events := Events, asks := Asks}) ->
    [maps:get(source, Probe) || is_map_key(source, Probe)]
        ++ [ports || #{group := ports} <- Asks]
        ++ [builtins || Provider =:= erlang, #{group := call} <- Events].

%% The flags that yield an event {Group, Tag} of a process, or of a port.
flags(process, {procs, _}) -> [procs];
flags(process, {running_procs, Tag}) -> [running | exiting(Tag)];
flags(process, {call, _}) -> [call];
flags(process, {files, _}) -> [call];
flags(process, {telemetry, _}) -> [call];
flags(process, {garbage_collection, _}) -> [garbage_collection];
flags(port, {ports, Tag}) when Tag =/= 'receive' -> [ports];
flags(port, {running_ports, Tag}) -> [running_ports | exiting(Tag)];
flags(process, {send, _}) -> [send];
flags(process, {'receive', _}) -> ['receive'];
flags(port, {ports, 'receive'}) -> ['receive'];
flags(port, {port_send, _}) -> [send];
flags(port, {port_receive, _}) -> ['receive'];
flags(_, _) -> [].

exiting(Tag) ->
    [exiting || lists:member(Tag, [in_exiting, out_exiting, out_exited, any])].

%% return_to is not required: each return would be reported twice.
calls({call, call}) -> call;
calls({call, return_from}) -> return;
calls({call, exception_from}) -> exception;
calls({call, any}) -> exception;
calls(_) -> none.

%% The calls that include those of both.
-spec more(calls(), calls()) -> calls().
more(A, B) ->
    case rank(A) > rank(B) of
        true -> A;
        false -> B
    end.

rank(none) -> 0;
rank(call) -> 1;
rank(return) -> 2;
rank(exception) -> 3.
