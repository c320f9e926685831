%% What makes each probe's events happen, and what Erlang says of them.
%%
%% Every case runs on the traced node, switches on the trace flags that its events need,
%% makes them happen, and returns the events that a consumer must have got, in order:
%% [{Probe, #{Field => binary() | integer()}}]. The expected values come from Erlang's own
%% functions (pid_to_list/1, process_info/2, another tracer), never from this library.
-module(dt_cases).

-export([probes/0, run/1, traced/2, text/1, location/1]).
-export([identity/1, fail/2, outer/1, caller/0, collected/0, waits/0]).

-define(TRACER, {tracer, dyntrace, []}).

%% The cases by probe: together they cover every probe and every trace tag.
probes() ->
    [process_spawn, process_link, process_exit, process_register, process_scheduled,
     port_open, port_exit, port_link, port_scheduled,
     function_call, function_return, function_exception,
     message_send, message_receive,
     gc_minor_start, gc_minor_end, gc_major_start, gc_major_end,
     seq_trace_send, seq_trace_receive, seq_trace_print].

run(process_spawn) ->
    {Parent, {Mfa, Fun}} =
        traced([procs], fun() ->
                                Mfa = spawn(lists, seq, [1, 2]),
                                Fun = spawn_link(fun() -> ok end),
                                {Mfa, Fun}
                        end),
    [{process_spawn, #{pid => text(Mfa), parent => text(Parent), entry => <<"lists:seq/2">>}},
     {process_spawn, #{pid => text(Fun), parent => text(Parent), entry => <<"erlang:apply/2">>}}];

run(process_link) ->
    Other = spawn(fun() -> receive stop -> ok end end),
    LinkTo = fun(To, Answer) -> spawn(fun() -> link(To), unlink(To), Answer ! linked end) end,
    {Pid, Stranger} =
        traced([procs], fun() ->
                                link(Other),
                                unlink(Other),
                                Stranger = LinkTo(self(), self()),
                                receive linked -> Stranger end
                        end),
    %% An unlink is a signal as well: the tracee has seen it when it has answered.
    Other ! stop,
    [{process_link, #{from => text(From), to => text(To), type => Type}}
     || {From, To, Type} <- [{Pid, Other, <<"link">>}, {Pid, Other, <<"unlink">>},
                             {Stranger, Pid, <<"link">>}, {Stranger, Pid, <<"unlink">>}]];

run(process_exit) ->
    Reasons = [{fun() -> ok end, <<"normal">>},
               {fun() -> exit({shutdown, [1, "two"]}) end, <<"{shutdown,[1,\"two\"]}">>},
               {fun() -> exit(kill) end, <<"kill">>}],
    [begin
         {Pid, Ref} = spawn_monitor(fun() -> receive go -> Exit() end end),
         1 = erlang:trace(Pid, true, [procs, ?TRACER]),
         Pid ! go,
         receive {'DOWN', Ref, process, Pid, _} -> ok end,
         {process_exit, #{pid => text(Pid), reason => Text}}
     end || {Exit, Text} <- Reasons];

run(process_register) ->
    {Pid, Port} =
        traced([procs], fun() ->
                                register(dt_name, self()),
                                unregister(dt_name),
                                Port = open_port({spawn, "cat"}, []),
                                1 = erlang:trace(Port, true, [ports, ?TRACER]),
                                register('dt port', Port),
                                unregister('dt port'),
                                port_close(Port),
                                Port
                        end),
    [{process_register, #{pid => text(Who), name => Name, type => Type}}
     || {Who, Name, Type} <- [{Pid, <<"dt_name">>, <<"register">>}, {Pid, <<"dt_name">>, <<"unregister">>},
                              {Port, <<"'dt port'">>, <<"register">>}, {Port, <<"'dt port'">>, <<"unregister">>}]];

%% What a process tracer is told of one process, a consumer must be told of another that
%% does the same.
run(process_scheduled) ->
    Flags = [running, exiting],
    Tell = fun(Pid) ->
                   [{process_scheduled, #{pid => text(Pid), entry => location(Where), type => atom_to_binary(Tag)}}
                    || {trace, _, Tag, Where} <- process_traced(Flags, fun waits/0)]
           end,
    Pid = untold(Flags, fun waits/0),
    Tell(Pid);

run(port_open) ->
    {Owner, Port, _} = port_life([ports]),
    [{port_open, #{pid => text(Owner), driver => <<"cat">>, port => text(Port)}}];

run(port_exit) ->
    {_, Port, _} = port_life([ports]),
    [{port_exit, #{port => text(Port), reason => <<"normal">>}}];

run(port_link) ->
    {Owner, Port, _} = port_life([ports]),
    %% Opening a port links the opener to it.
    [{port_link, #{from => text(Owner), to => text(Port), type => Type}}
     || Type <- [<<"link">>, <<"unlink">>, <<"link">>]];

run(port_scheduled) ->
    {_, Port, Told} = port_life([running_ports]),
    [{port_scheduled, #{port => text(Port), entry => location(Where), type => atom_to_binary(Tag)}}
     || {trace, _, Tag, Where} <- Told];

run(function_call) ->
    _ = erlang:trace_pattern({?MODULE, identity, 1}, true, [local]),
    _ = erlang:trace_pattern({lists, seq, 2}, true, []),
    {Pid1, _} = traced([call], fun() -> ?MODULE:identity(1), lists:seq(1, 3) end),
    {Pid2, _} = traced([call, arity], fun() -> ?MODULE:identity(1) end),
    no_patterns(),
    [{function_call, #{pid => text(Pid), entry => Entry, depth => 0}}
     || {Pid, Entry} <- [{Pid1, <<"dt_cases:identity/1">>}, {Pid1, <<"lists:seq/2">>},
                         {Pid2, <<"dt_cases:identity/1">>}]];

run(function_return) ->
    Matches = [{[{'_', [], [{return_trace}]}], [call]},
               {[{'_', [], [{exception_trace}]}], [call]},
               {true, [call, return_to]}],
    [{function_return, #{pid => text(Pid), entry => Entry, depth => 0}}
     || {Match, Flags} <- Matches,
        Pid <- [begin
                    _ = erlang:trace_pattern({?MODULE, outer, 1}, Match, [local]),
                    _ = erlang:trace_pattern({?MODULE, identity, 1}, Match, [local]),
                    {Traced, _} = traced(Flags, fun ?MODULE:caller/0),
                    no_patterns(),
                    Traced
                end],
        %% `return_to` names where to: outer/1 calls identity/1, caller/0 calls outer/1.
        Entry <- case Match of
                     true -> [<<"dt_cases:outer/1">>, <<"dt_cases:caller/0">>];
                     _ -> [<<"dt_cases:identity/1">>, <<"dt_cases:outer/1">>]
                 end];

run(function_exception) ->
    _ = erlang:trace_pattern({?MODULE, fail, 2}, [{'_', [], [{exception_trace}]}], [local]),
    Classes = [error, exit, throw],
    {Pid, _} = traced([call], fun() -> [try ?MODULE:fail(Class, oops) catch Class:oops -> ok end || Class <- Classes] end),
    no_patterns(),
    [{function_exception, #{pid => text(Pid), entry => <<"dt_cases:fail/2">>, class => atom_to_binary(Class)}}
     || Class <- Classes];

run(message_send) ->
    {Dead, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Dead, _} -> ok end,
    Alias = alias(),
    true = unalias(Alias),
    Receivers = [self(), dt_registered, {dt_registered, node()}, Dead, Alias, make_ref()],
    true = register(dt_registered, spawn(fun() -> receive stop -> ok end end)),
    {Pid, Port} =
        traced([send], fun() ->
                               Port = open_port({spawn, "cat"}, []),
                               Port ! {self(), {command, <<"x">>}},
                               receive {Port, {data, _}} -> ok end,
                               [To ! {hello, N} || {N, To} <- lists:zip(lists:seq(1, length(Receivers)), Receivers)],
                               true = port_close(Port),
                               Port
                       end),
    receive {hello, 1} -> ok end,
    dt_registered ! stop,
    [{message_send, #{from => text(Pid), to => text(Port), message => iolist_to_binary(["{", text(Pid), ",{command,<<\"x\">>}}"])}}
     | [{message_send, #{from => text(Pid), to => text(To), message => iolist_to_binary(io_lib:format("{hello,~b}", [N]))}}
        || {N, To} <- lists:zip(lists:seq(1, length(Receivers)), Receivers)]];

run(message_receive) ->
    {Pid, Port} =
        traced([], fun() ->
                           Port = open_port({spawn, "cat"}, []),
                           [1 = erlang:trace(Who, true, ['receive', ?TRACER]) || Who <- [self(), Port]],
                           self() ! {note, "to self"},
                           receive {note, _} -> ok end,
                           receive never -> ok after 1 -> ok end,
                           Port ! {self(), close},
                           receive {Port, closed} -> Port end
                   end),
    [{message_receive, #{to => text(To), message => iolist_to_binary(Message)}}
     || {To, Message} <- [{Pid, "{note,\"to self\"}"}, {Pid, "timeout"},
                          {Port, ["{", text(Pid), ",close}"]},
                          {Pid, ["{", text(Port), ",closed}"]}]];

run(Gc) when Gc =:= gc_minor_start; Gc =:= gc_minor_end; Gc =:= gc_major_start; Gc =:= gc_major_end ->
    Flags = [garbage_collection],
    Pid = untold(Flags, fun collected/0),
    Amount = case Gc of
                 gc_minor_start -> need;
                 gc_major_start -> need;
                 _ -> reclaimed
             end,
    [{Gc, #{pid => text(Pid), Amount => get_value(wordsize, Info),
            heap => get_value(heap_block_size, Info), old_heap => get_value(old_heap_block_size, Info)}}
     || {trace, _, Tag, Info} <- process_traced(Flags, fun collected/0), Tag =:= Gc];

run(seq_trace_print) ->
    Self = self(),
    seq_traced(fun() ->
                       _ = seq_trace:set_token(label, 17),
                       _ = seq_trace:set_token(print, true),
                       _ = seq_trace:set_token(serial, {3, 5}),
                       ok = seq_trace:print(17, {checkpoint, 1}),
                       _ = seq_trace:set_token(label, {a, "label"}),
                       ok = seq_trace:print({a, "label"}, two)
               end),
    [{seq_trace_print, #{label => Label, from => text(Self), previous => Previous, current => Current,
                         message => Message}}
     || {Label, Previous, Current, Message} <- [{<<"17">>, 3, 6, <<"{checkpoint,1}">>},
                                                {<<"{a,\"label\"}">>, 3, 7, <<"two">>}]];

run(seq_trace_send) ->
    seq_messages(seq_trace_send, send);
run(seq_trace_receive) ->
    seq_messages(seq_trace_receive, 'receive').

%% -- Functions that are traced -----------------------------------------------------------

identity(X) ->
    X.

outer(X) ->
    [?MODULE:identity(X)].

caller() ->
    [?MODULE:outer(1)].

fail(Class, Reason) ->
    erlang:raise(Class, Reason, []).

%% A body with garbage of a known kind; every process that runs it collects alike.
collected() ->
    _ = [lists:seq(1, 1000) || _ <- lists:seq(1, 5)],
    true = erlang:garbage_collect(self(), [{type, minor}]),
    true = erlang:garbage_collect(self(), [{type, major}]),
    ok.

%% A body that gives up its scheduler where it says.
waits() ->
    receive after 5 -> ok end,
    exit(done).

%% -- Making it happen ---------------------------------------------------------------------

%% Runs Fun in a new process that is traced by dyntrace, until it returns.
traced(Flags, Fun) ->
    Self = self(),
    {Pid, _} = start(fun() ->
                             Result = Fun(),
                             1 = erlang:trace(self(), false, [all]),
                             Self ! {self(), Result}
                     end, [?TRACER | Flags]),
    receive {Pid, Result} -> {Pid, Result} end.

%% Runs Fun in a process of its own, traced by dyntrace, to its end.
untold(Flags, Fun) ->
    {Pid, Ref} = start(Fun, [?TRACER | Flags]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    delivered(Pid),
    Pid.

%% What a process tracer is told of the same.
process_traced(Flags, Fun) ->
    {Pid, Ref} = start(Fun, [{tracer, self()} | Flags]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    delivered(Pid),
    told(Pid).

%% A process that waits until it is traced, then runs Fun.
start(Fun, TraceOptions) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> Fun() end end),
    waiting = until_waiting(Pid),
    1 = erlang:trace(Pid, true, TraceOptions),
    Pid ! go,
    {Pid, Ref}.

until_waiting(Pid) ->
    case process_info(Pid, status) of
        {status, waiting} -> waiting;
        {status, _} -> erlang:yield(), until_waiting(Pid)
    end.

delivered(Pid) ->
    Ref = erlang:trace_delivered(all),
    receive {trace_delivered, all, Ref} -> Pid end.

told(Who) ->
    receive Message when element(1, Message) =:= trace, element(2, Message) =:= Who -> [Message | told(Who)]
    after 0 -> []
    end.

%% A port that is opened, talked to, unlinked, linked and closed by a process of its own. Its
%% trace flags go to dyntrace; what a process tracer is told of another such port is
%% returned as well.
port_life(Flags) ->
    {Owner, Port} = port_life(Flags, ?TRACER),
    {_, Other} = port_life(Flags, {tracer, self()}),
    _ = delivered(Other),
    {Owner, Port, told(Other)}.

port_life(Flags, Tracer) ->
    Self = self(),
    0 = erlang:trace(new_ports, true, [Tracer | Flags]),
    {Owner, Ref} =
        spawn_monitor(fun() ->
                              Port = open_port({spawn, "cat"}, []),
                              true = port_command(Port, <<"x">>),
                              receive {Port, {data, _}} -> ok end,
                              true = unlink(Port),
                              true = link(Port),
                              true = port_close(Port),
                              Self ! {self(), Port}
                      end),
    receive
        {Owner, Port} ->
            0 = erlang:trace(new_ports, false, [all]),
            receive {'DOWN', Ref, process, Owner, _} -> {Owner, Port} end
    end.

no_patterns() ->
    _ = erlang:trace_pattern({'_', '_', '_'}, false, []),
    _ = erlang:trace_pattern({'_', '_', '_'}, false, [local]),
    ok.

seq_traced(Fun) ->
    Old = seq_trace:set_system_tracer({dyntrace, []}),
    try Fun()
    after
        seq_trace:set_token([]),
        seq_trace:set_system_tracer(Old)
    end.

%% There and back: the token's serial counts on, and the previous one is that of the
%% message which the sender last received.
seq_messages(Probe, Flag) ->
    Self = self(),
    Echo = spawn(fun() -> receive {From, Text} -> From ! {echo, Text} end end),
    seq_traced(fun() ->
                       _ = seq_trace:set_token(label, 23),
                       _ = seq_trace:set_token(serial, {0, 7}),
                       _ = seq_trace:set_token(Flag, true),
                       Echo ! {self(), "hi"},
                       receive {echo, "hi"} -> ok end
               end),
    [{Probe, #{label => <<"23">>, from => text(From), to => text(To), previous => Previous,
               current => Current, message => iolist_to_binary(Message)}}
     || {From, To, Previous, Current, Message} <-
            [{Self, Echo, 0, 8, ["{", text(Self), ",\"hi\"}"]},
             {Echo, Self, 8, 9, "{echo,\"hi\"}"}]].

%% -- What Erlang says -----------------------------------------------------------------------

text(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
text(Port) when is_port(Port) -> list_to_binary(port_to_list(Port));
text(Ref) when is_reference(Ref) -> list_to_binary(ref_to_list(Ref));
text(Name) when is_atom(Name) -> unicode:characters_to_binary(io_lib:format("~tw", [Name]));
text({Name, Node}) -> iolist_to_binary(["{", text(Name), ",", text(Node), "}"]).

location({M, F, A}) when is_list(A) -> location({M, F, length(A)});
location({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~tw:~tw/~b", [M, F, A]));
location(0) -> <<"undefined">>;
location(Callback) -> text(Callback).

get_value(Key, Info) ->
    {Key, Value} = lists:keyfind(Key, 1, Info),
    Value.
