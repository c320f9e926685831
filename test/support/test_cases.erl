%% Causes the events of each probe, and computes the expected events with Erlang's own functions.
%%
%% Every case runs on the traced node, switches on the trace flags that its events need,
%% causes them, and returns the events that a consumer must receive, in order:
%% [{Probe, #{Field => binary() | integer()}}]. The expected values come from Erlang's own
%% functions (pid_to_list/1, process_info/2, another tracer), never from this library.
-module(test_cases).

-export([probes/0, probes/1, run/1, comparable/1, traced/2, traced_pid/2, traced_pid/3, text/1, text_of/1, location/1]).
-export([identity/1, fail/2, length_of/1, outer/1, caller/0, sum/2, collected/0, waits/0]).
%% For test_erlang_cases
-export([annotations/1, collected_alike/0, exchanges/1, get_value/2, messages/0, no_patterns/0, received/0]).

-define(TRACER, {tracer, dyntrace, []}).

%% The cases by probe: together they cover every probe that the tracer or an annotation fires, and every trace tag.
%% sources_SUITE has the probes that the application reports.
probes() ->
    [process_spawn, process_link, process_exit, process_register, process_scheduled,
     port_open, port_exit, port_link, port_scheduled,
     function_call, function_return, function_exception,
     message_send, message_receive, function_arguments, function_value, function_reason, function_duration,
     message_delivery,
     file_call, file_return, telemetry_event,
     gc_minor_start, gc_minor_end, gc_major_start, gc_major_end,
     seq_trace_send, seq_trace_receive, seq_trace_print,
     user_mark, user_span_start, user_span_stop, user_trace_s1, user_trace_i4s4, user_trace_n]
    ++ test_port_cases:drivers() ++ test_erlang_cases:probes().

%% The probes of this backend.
probes(Backend) ->
    Others = [Name || #{name := Name, backends := Backends} <- dyntrace:probes(), not lists:member(Backend, Backends)],
    [Probe || Probe <- probes(), not lists:member(Probe, Others), Backend =:= usdt orelse Probe =/= user_trace__n42].

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
    %% An unlink is also a signal: the tracee has handled it once it answers.
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
         1 = test_trace:trace(Pid, true, [procs, ?TRACER]),
         Pid ! go,
         receive {'DOWN', Ref, process, Pid, _} -> ok end,
         {process_exit, #{pid => text(Pid), reason => Text}}
     end || {Exit, Text} <- Reasons];

run(process_register) ->
    {Pid, Port} =
        traced([procs], fun() ->
                                register(test_name, self()),
                                unregister(test_name),
                                Port = open_port({spawn, "cat"}, []),
                                1 = test_trace:trace(Port, true, [ports, ?TRACER]),
                                register('dt port', Port),
                                unregister('dt port'),
                                port_close(Port),
                                Port
                        end),
    [{process_register, #{pid => text(Who), name => Name, type => Type}}
     || {Who, Name, Type} <- [{Pid, <<"test_name">>, <<"register">>}, {Pid, <<"test_name">>, <<"unregister">>},
                              {Port, <<"'dt port'">>, <<"register">>}, {Port, <<"'dt port'">>, <<"unregister">>}]];

%% A consumer receives the same events for one process as a process tracer receives for another process that does the
%% same.
run(process_scheduled) ->
    Flags = [running, exiting],
    Expected = fun(Pid) ->
                       [{process_scheduled, #{pid => text(Pid), entry => location(Where), type => atom_to_binary(Tag)}}
                        || {trace, _, Tag, Where} <- process_traced(Flags, fun waits/0)]
               end,
    Pid = traced_pid(Flags, fun waits/0),
    Expected(Pid);

run(port_open) ->
    {Owner, Port, _} = port_life([ports]),
    [{port_open, #{pid => text(Owner), driver => <<"cat">>, port => text(Port)}}];

run(port_exit) ->
    {_, Port, _} = port_life([ports]),
    [{port_exit, #{port => text(Port), reason => <<"normal">>}}];

run(port_link) ->
    {Owner, Port, _} = port_life([ports]),
    %% Opening a port links the port to the process that opens it.
    [{port_link, #{from => text(Owner), to => text(Port), type => Type}}
     || Type <- [<<"link">>, <<"unlink">>, <<"link">>]];

run(port_scheduled) ->
    {_, Port, Reported} = on_one_scheduler(fun() -> port_life([running_ports]) end),
    [Event || {trace, _, Tag, Where} <- Reported,
              Event <- comparable({port_scheduled,
                                   #{port => text(Port), entry => location(Where), type => atom_to_binary(Tag)}})];

run(function_call) ->
    _ = test_trace:trace_pattern({?MODULE, identity, 1}, true, [local]),
    _ = test_trace:trace_pattern({lists, seq, 2}, true, []),
    {Pid1, _} = traced([call], fun() -> ?MODULE:identity(1), lists:seq(1, 3) end),
    {Pid2, _} = traced([call, arity], fun() -> ?MODULE:identity(1) end),
    no_patterns(),
    [{function_call, #{pid => text(Pid), entry => Entry, depth => 0}}
     || {Pid, Entry} <- [{Pid1, <<"test_cases:identity/1">>}, {Pid1, <<"lists:seq/2">>},
                         {Pid2, <<"test_cases:identity/1">>}]];

run(function_return) ->
    Matches = [{[{'_', [], [{return_trace}]}], [call]},
               {[{'_', [], [{exception_trace}]}], [call]},
               {true, [call, return_to]}],
    [{function_return, #{pid => text(Pid), entry => Entry, depth => 0}}
     || {Match, Flags} <- Matches,
        Pid <- [begin
                    _ = test_trace:trace_pattern({?MODULE, outer, 1}, Match, [local]),
                    _ = test_trace:trace_pattern({?MODULE, identity, 1}, Match, [local]),
                    {Traced, _} = traced(Flags, fun ?MODULE:caller/0),
                    no_patterns(),
                    Traced
                end],
        %% `return_to' names the function that the call returns to: outer/1 calls identity/1, caller/0 calls outer/1.
        Entry <- case Match of
                     true -> [<<"test_cases:outer/1">>, <<"test_cases:caller/0">>];
                     _ -> [<<"test_cases:identity/1">>, <<"test_cases:outer/1">>]
                 end];

run(function_exception) ->
    _ = test_trace:trace_pattern({?MODULE, fail, 2}, [{'_', [], [{exception_trace}]}], [local]),
    Classes = [error, exit, throw],
    {Pid, _} = traced([call],
                      fun() -> [try ?MODULE:fail(Class, oops) catch Class:oops -> ok end || Class <- Classes] end),
    no_patterns(),
    [{function_exception, #{pid => text(Pid), entry => <<"test_cases:fail/2">>, class => atom_to_binary(Class)}}
     || Class <- Classes];

%% Arguments are shown as a list, even if they could be a string.
run(function_arguments) ->
    [1 = test_trace:trace_pattern({?MODULE, Function, Arity}, true, [local])
     || {Function, Arity} <- [{identity, 1}, {sum, 2}, {caller, 0}, {outer, 1}]],
    Calls = [{identity, [Term]} || Term <- [$t, "tea", {self(), make_ref()}, [], <<0>>]]
        ++ [{sum, [$t, $e]}, {caller, []}],
    {Pid, _} = traced([call], fun() -> [apply(?MODULE, Function, Args) || {Function, Args} <- Calls] end),
    {_, _} = traced([call, arity], fun() -> ?MODULE:identity(1) end),
    no_patterns(),
    [{function_arguments, #{pid => text(Pid), entry => location({?MODULE, Function, Args}),
                            arguments => iolist_to_binary(["[", lists:join(",", [text_of(Arg) || Arg <- Args]), "]"])}}
     || {Function, Args} <- Calls ++ [{outer, [1]}, {identity, [1]}]];

%% Without `return_to'.
run(function_value) ->
    Values = [17, "tea", {ok, self()}, [], <<"bytes">>],
    Matches = [{[{'_', [], [{return_trace}]}], [call]},
               {[{'_', [], [{exception_trace}]}], [call, arity]},
               {true, [call, return_to]}],
    Pids = [begin
                _ = test_trace:trace_pattern({?MODULE, identity, 1}, Match, [local]),
                {Pid, _} = traced(Flags, fun() -> [?MODULE:identity(Value) || Value <- Values] end),
                no_patterns(),
                Pid
            end || {Match, Flags} <- Matches],
    [{function_value, #{pid => text(Pid), entry => <<"test_cases:identity/1">>, value => text_of(Value)}}
     || Pid <- lists:droplast(Pids), Value <- Values];

%% Only for functions of prim_file. The name is the first argument, if that is a name.
run(file_call) ->
    Functions = [{read_file, 1}, {open, 2}, {close, 1}],
    [1 = test_trace:trace_pattern({prim_file, F, A}, true, [local]) || {F, A} <- Functions],
    1 = test_trace:trace_pattern({?MODULE, identity, 1}, true, [local]),
    Names = ["/no/such file", <<"/no/such/file">>],
    {Pid, _} = traced([call], fun() ->
                                      ?MODULE:identity("/no/such"),
                                      [{error, enoent} = prim_file:read_file(Name) || Name <- Names],
                                      {ok, Null} = prim_file:open("/dev/null", [read]),
                                      ok = prim_file:close(Null),
                                      {error, badarg} = prim_file:read_file(no_name)
                              end),
    no_patterns(),
    [{file_call, #{pid => text(Pid), entry => location({prim_file, F, A}), file => File}}
     || {F, A, File} <- [{read_file, 1, text_of(Name)} || Name <- Names]
            ++ [{open, 2, <<"\"/dev/null\"">>}, {close, 1, <<>>}, {read_file, 1, <<>>}]];

run(file_return) ->
    [1 = test_trace:trace_pattern({prim_file, F, A}, [{'_', [], [{exception_trace}]}], [local])
     || {F, A} <- [{read_file, 1}, {open, 2}, {read, 2}, {close, 1}]],
    {Pid, _} = traced([call], fun() ->
                                      {error, enoent} = prim_file:read_file("/no/such"),
                                      {ok, Null} = prim_file:open("/dev/null", [read]),
                                      eof = prim_file:read(Null, 1),
                                      ok = prim_file:close(Null),
                                      try prim_file:read(no_file, 1)
                                      catch error:function_clause -> ok
                                      end
                              end),
    no_patterns(),
    [{file_return, #{pid => text(Pid), entry => location({prim_file, F, A}), result => Result}}
     || {F, A, Result} <- [{read_file, 1, <<"enoent">>}, {open, 2, <<"ok">>}, {read, 2, <<"eof">>},
                           {close, 1, <<"ok">>}, {read, 2, <<"error">>}]];

%% Wrong arguments make no event. A name or a duration of another type makes one.
run(telemetry_event) ->
    ok = test_telemetry:load(),
    1 = test_trace:trace_pattern({telemetry, execute, 3}, true, [local]),
    Conn = maps:from_list([{N, lists:seq(1, 100)} || N <- lists:seq(1, 1000)]),
    Calls = [{[shop, order, stop], #{duration => 17}, #{route => <<"/orders/:id">>, status => 200, user => "secret"}},
             {[shop, repo, query], #{total_time => 18, idle_time => 1}, #{query => <<"SELECT 1">>, source => "orders"}},
             {['Elixir.Shop', 'with space', 'kö', '日'], #{}, Conn#{conn => #{status => 404, method => "GET"}}},
             {[shop | order], #{duration => -1}, #{conn => no_map, reason => #{}}},
             {[1, "two", three], #{duration => soon}, #{}},
             {lists:duplicate(20, a), #{duration => 1 bsl 70}, #{}}],
    {Pid, _} = traced([call], fun() ->
                                      [ok = telemetry:execute(Name, Measured, Meta) || {Name, Measured, Meta} <- Calls],
                                      [try telemetry:execute(Name, Measured, Meta) of
                                           ok -> error({accepted, Name, Measured, Meta})
                                       catch
                                           error:function_clause -> ok
                                       end || {Name, Measured, Meta} <- test_telemetry:wrong()],
                                      ok = telemetry:execute([the, 'end'], #{})
                              end),
    no_patterns(),
    ok = test_telemetry:unload(),
    Names = [<<"shop.order.stop">>, <<"shop.repo.query">>, <<"Elixir.Shop.with space.kö.日"/utf8>>, <<"shop">>,
             <<"_._.three">>, iolist_to_binary(lists:join(".", lists:duplicate(20, "a"))), <<"the.end">>],
    Metadata = [<<"#{route=><<\"/orders/:id\">>,status=>200}">>,
                <<"#{source=>\"orders\",query=><<\"SELECT 1\">>}">>, <<"#{method=>\"GET\",status=>404}">>,
                <<"#{reason=>#{}}">>, <<"#{}">>, <<"#{}">>, <<"#{}">>],
    [{telemetry_event, #{pid => text(Pid), name => Name, duration => Duration, measurements => text_of(Measured),
                         metadata => Meta}}
     || {{Measured, Duration}, {Name, Meta}} <-
            lists:zip(lists:zip([M || {_, M, _} <- Calls] ++ [#{}], [17, 18, -1, -1, -1, -1, -1]),
                      lists:zip(Names, Metadata))];

run(function_reason) ->
    _ = test_trace:trace_pattern({?MODULE, fail, 2}, [{'_', [], [{exception_trace}]}], [local]),
    Raised = [{error, badarg}, {exit, {shutdown, "because"}}, {throw, self()}, {throw, {error, <<"bytes">>}}],
    {Pid, _} = traced([call],
                      fun() -> [try ?MODULE:fail(Class, Reason) catch Class:_ -> ok end || {Class, Reason} <- Raised]
                      end),
    no_patterns(),
    [{function_reason, #{pid => text(Pid), entry => <<"test_cases:fail/2">>, class => atom_to_binary(Class),
                         reason => text_of(Reason)}}
     || {Class, Reason} <- Raised];

%% Of calls within each other, each has a duration; of a recursion, only the innermost. snapshots_SUITE compares the
%% duration.
run(function_duration) ->
    [1 = test_trace:trace_pattern({?MODULE, Function, Arity}, [{'_', [], [{exception_trace}]}], [local])
     || {Function, Arity} <- [{identity, 1}, {outer, 1}, {caller, 0}, {length_of, 1}, {fail, 2}]],
    {Pid, _} = traced([call], fun() ->
                                      [[1]] = ?MODULE:caller(),
                                      3 = ?MODULE:length_of([a, b, c]),
                                      try ?MODULE:fail(throw, oops) catch throw:oops -> ok end
                              end),
    no_patterns(),
    [{function_duration, #{pid => text(Pid), entry => Entry, class => Class}}
     || {Entry, Class} <- [{<<"test_cases:identity/1">>, <<"return">>}, {<<"test_cases:outer/1">>, <<"return">>},
                           {<<"test_cases:caller/0">>, <<"return">>}, {<<"test_cases:length_of/1">>, <<"return">>},
                           {<<"test_cases:fail/2">>, <<"throw">>}]];

run(message_send) ->
    {Dead, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Dead, _} -> ok end,
    Alias = alias(),
    true = unalias(Alias),
    Receivers = [self(), test_registered, {test_registered, node()}, Dead, Alias, make_ref()],
    true = register(test_registered, spawn(fun() -> receive stop -> ok end end)),
    ok = test_port_cases:load(output),
    {Pid, {Port, Driver}} =
        traced([send], fun() ->
                               Port = open_port({spawn, "cat"}, []),
                               Port ! {self(), {command, <<"x">>}},
                               receive {Port, {data, _}} -> ok end,
                               [To ! {hello, N} || {N, To} <- lists:zip(lists:seq(1, length(Receivers)), Receivers)],
                               true = port_close(Port),
                               {Port, test_port_cases:answering()}
                       end),
    ok = test_driver:unload(output),
    receive {hello, 1} -> ok end,
    test_registered ! stop,
    Command = iolist_to_binary(["{", text(Pid), ",{command,<<\"x\">>}}"]),
    [{message_send, #{from => text(Pid), to => text(Port), message => Command}}
     | [{message_send, #{from => text(Pid), to => text(To),
                         message => iolist_to_binary(io_lib:format("{hello,~b}", [N]))}}
        || {N, To} <- lists:zip(lists:seq(1, length(Receivers)), Receivers)]]
        ++ [{message_send, #{from => text(Pid), to => text(Driver), message => text_of({Pid, {connect, Pid}})}},
            {message_send, #{from => text(Driver), to => text(Pid), message => text_of({Driver, connected})}}];

run(message_receive) ->
    [{message_receive, #{to => text(To), message => text_of(Message)}} || {To, Message} <- received()];

%% The first and the last message have no sender, because the match specification is missing or has another result. A
%% port needs no match specification. delivery_SUITE has the messages of other nodes.
run(message_delivery) ->
    Here = atom_to_binary(node()),
    {Pid, {Other, Port}} =
        traced([], fun() ->
                           Port = open_port({spawn, "cat"}, [binary]),
                           1 = test_trace:trace(self(), true, ['receive', ?TRACER]),
                           self() ! no_senders_yet,
                           receive no_senders_yet -> ok end,
                           _ = test_trace:trace_pattern('receive', dyntrace:sender_pattern(), []),
                           self() ! {note, "to self"},
                           receive {note, _} -> ok end,
                           To = self(),
                           Other = spawn(fun() -> To ! {self(), 'from another'} end),
                           receive {Other, _} -> ok end,
                           1 = test_trace:trace(Port, true, ['receive', ?TRACER]),
                           Port ! {self(), {command, <<"x">>}},
                           receive {Port, {data, _}} -> ok end,
                           1 = test_trace:trace(Port, false, ['receive']),
                           _ = erlang:send_after(1, self(), tick),
                           receive tick -> ok end,
                           _ = test_trace:trace_pattern('receive', [{['_', '$1', '_'], [], [{message, {{'$1'}}}]}], []),
                           self() ! not_a_pair,
                           receive not_a_pair -> ok end,
                           _ = test_trace:trace_pattern('receive', true, []),
                           true = port_close(Port),
                           {Other, Port}
                   end),
    [{message_delivery, #{to => text(To), from => From, node => Node, message => text_of(Message)}}
     || {To, From, Node, Message} <- [{Pid, text(Pid), Here, {note, "to self"}},
                                      {Pid, text(Other), Here, {Other, 'from another'}},
                                      {Port, text(Pid), <<>>, {Pid, {command, <<"x">>}}},
                                      {Pid, text(Port), Here, {Port, {data, <<"x">>}}},
                                      {Pid, <<>>, <<"clock_service">>, tick}]];

run(gc_minor_start) -> collections(gc_minor_start, need);
run(gc_minor_end) -> collections(gc_minor_end, reclaimed);
run(gc_major_start) -> collections(gc_major_start, need);
run(gc_major_end) -> collections(gc_major_end, reclaimed);

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
    seq_messages(seq_trace_receive, 'receive');

%% -- Annotations --------------------------------------------------------------------------

run(user_mark) ->
    [begin
         true = case Args of
                    [Name, Text] -> dyntrace:mark(Name, Text);
                    [Name, Value, Text] -> dyntrace:mark(Name, Value, Text)
                end,
         {user_mark, #{pid => text(self()), name => NameIs, value => ValueIs, text => TextIs}}
     end || {Args, NameIs, ValueIs, TextIs} <-
                [{[checkout, "one"], <<"checkout">>, 0, <<"one">>},
                 {["checkout", -17, <<"two">>], <<"checkout">>, -17, <<"two">>},
                 {['no plain Atom', (1 bsl 63) - 1, []], <<"no plain Atom">>, (1 bsl 63) - 1, <<>>},
                 {['日本', 1 bsl 64, [$s, [<<"mörgås"/utf8>>, 8364 | <<"!">>]]], <<"日本"/utf8>>, 0, <<"smörgås€!"/utf8>>},
                 {['Ã¥', 0, "Ã¥"], <<"Ã¥"/utf8>>, 0, <<"å"/utf8>>},
                 {['åäö', -(1 bsl 63), "åäö"], <<"åäö"/utf8>>, -(1 bsl 63), <<"åäö"/utf8>>}]];

run(user_span_start) ->
    [{user_span_start, Span} || Span <- spans()];
run(user_span_stop) ->
    [{user_span_stop, Span#{outcome => Outcome}}
     || {Span, Outcome} <- lists:zip(spans(), [<<"ok">>, <<"error">>, <<"exit">>, <<"throw">>])];

run(user_trace_s1) ->
    [{user_trace_s1, Fields} || Fields <- messages()];
run(user_trace_i4s4) ->
    [{user_trace_i4s4, Fields} || {_, Fields} <- annotations(fun(Args) -> apply(dyntrace, p, Args) end)];
run(user_trace_n) ->
    [{user_trace_n, Fields#{label => N}}
     || {N, Fields} <- annotations(fun(Args) -> apply(dyntrace, pn, [length(Args) | Args]) end)];

run(Probe) ->
    test_erlang_cases:run(Probe).

%% -- Traced functions --------------------------------------------------------------------

identity(X) ->
    X.

sum(X, Y) ->
    X + Y.

outer(X) ->
    [?MODULE:identity(X)].

caller() ->
    [?MODULE:outer(1)].

length_of([]) ->
    0;
length_of([_ | Rest]) ->
    1 + length_of(Rest).

fail(Class, Reason) ->
    erlang:raise(Class, Reason, []).

%% Produces a known amount of garbage, so every process that runs it collects in the same way.
collected() ->
    _ = [lists:seq(1, 1000) || _ <- lists:seq(1, 5)],
    true = erlang:garbage_collect(self(), [{type, minor}]),
    true = erlang:garbage_collect(self(), [{type, major}]),
    ok.

%% Yields its scheduler at known points.
waits() ->
    receive after 5 -> ok end,
    exit(done).

%% -- Causing events -----------------------------------------------------------------------

%% Runs Fun in a new process that dyntrace traces until Fun returns.
traced(Flags, Fun) ->
    Self = self(),
    {Pid, _} = start(fun() ->
                             Result = Fun(),
                             1 = test_trace:trace(self(), false, [all]),
                             Self ! {self(), Result}
                     end, [?TRACER | Flags]),
    receive {Pid, Result} -> {Pid, Result} end.

%% Runs Fun in a separate process that dyntrace traces to its end.
traced_pid(Flags, Fun) ->
    traced_pid(Flags, Fun, []).

traced_pid(Flags, Fun, State) ->
    {Pid, Ref} = start(Fun, [{tracer, dyntrace, State} | Flags]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    delivered(Pid),
    Pid.

%% The events that a process tracer receives for the same Fun.
process_traced(Flags, Fun) ->
    {Pid, Ref} = start(Fun, [{tracer, self()} | Flags]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    delivered(Pid),
    trace_messages(Pid).

%% A process that waits until it is traced, and then runs Fun.
start(Fun, TraceOptions) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> Fun() end end),
    waiting = until_waiting(Pid),
    1 = test_trace:trace(Pid, true, TraceOptions),
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

trace_messages(Who) ->
    receive Message when element(1, Message) =:= trace, element(2, Message) =:= Who -> [Message | trace_messages(Who)]
    after 0 -> []
    end.

%% A process opens a port, sends to it, unlinks, links and closes it. dyntrace traces that port. Also returns the events
%% that a process tracer receives for another port of that kind.
port_life(Flags) ->
    {Owner, Port} = port_life(Flags, ?TRACER),
    {_, Other} = port_life(Flags, {tracer, self()}),
    _ = delivered(Other),
    {Owner, Port, trace_messages(Other)}.

port_life(Flags, Tracer) ->
    Self = self(),
    0 = test_trace:trace(new_ports, true, [Tracer | Flags]),
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
            0 = test_trace:trace(new_ports, false, [Tracer | Flags]),
            receive {'DOWN', Ref, process, Owner, _} -> {Owner, Port} end
    end.

%% The VM names the operation only if it calls the port immediately. That is not the case while another scheduler still
%% runs the port after the process has received the port's input.
on_one_scheduler(Fun) ->
    Online = erlang:system_flag(schedulers_online, 1),
    try Fun()
    after
        1 = erlang:system_flag(schedulers_online, Online)
    end.

no_patterns() ->
    _ = test_trace:trace_pattern({'_', '_', '_'}, false, []),
    _ = test_trace:trace_pattern({'_', '_', '_'}, false, [local]),
    ok.

seq_traced(Fun) ->
    Old = seq_trace:set_system_tracer({dyntrace, []}),
    try Fun()
    after
        seq_trace:set_token([]),
        seq_trace:set_system_tracer(Old)
    end.

%% One message to a process and one back. The token's serial counts both, and its previous serial is that of the last
%% message that the sender received. Returns {From, To, Message, Label, Previous, Current}.
exchanges(Flag) ->
    exchange(Flag, 23) ++ exchange(Flag, {a, "label"}).

exchange(Flag, Label) ->
    Self = self(),
    Echo = spawn(fun() -> receive {From, Text} -> From ! {echo, Text} end end),
    Began = seq_traced(fun() ->
                               _ = seq_trace:set_token(label, Label),
                               _ = seq_trace:set_token(serial, {0, 7}),
                               _ = seq_trace:set_token(Flag, true),
                               {serial, {_, Began}} = seq_trace:get_token(serial),
                               Echo ! {self(), "hi"},
                               receive {echo, "hi"} -> Began end
                       end),
    [{Self, Echo, {Self, "hi"}, Label, 0, Began + 1}, {Echo, Self, {echo, "hi"}, Label, Began + 1, Began + 2}].

seq_messages(Probe, Flag) ->
    [{Probe, #{label => text_of(Label), from => text(From), to => text(To), previous => Previous,
               current => Current, message => text_of(Message)}}
     || {From, To, Message, Label, Previous, Current} <- exchanges(Flag)].

%% Messages that a process and a port receive, except one that a match specification filters out: {To, Message}.
received() ->
    {Pid, Port} =
        traced([], fun() ->
                           Port = open_port({spawn, "cat"}, []),
                           [1 = test_trace:trace(Who, true, ['receive', ?TRACER]) || Who <- [self(), Port]],
                           _ = test_trace:trace_pattern('receive',
                                                        [{['_', '_', '$1'], [{'=/=', '$1',
                                                                              {const, {note, "not to see"}}}], []}],
                                                                              []),
                           self() ! {note, "not to see"},
                           self() ! {note, "to self"},
                           [receive {note, _} -> ok end || _ <- [1, 2]],
                           _ = test_trace:trace_pattern('receive', true, []),
                           receive never -> ok after 1 -> ok end,
                           Port ! {self(), close},
                           receive {Port, closed} -> Port end
                   end),
    [{Pid, {note, "to self"}}, {Pid, timeout}, {Port, {Pid, close}}, {Pid, {Port, closed}}].

%% The events that a process tracer receives for a process that collects like the traced process.
collected_alike() ->
    Flags = [garbage_collection],
    Pid = traced_pid(Flags, fun collected/0),
    {Pid, [{Tag, Info} || {trace, _, Tag, Info} <- process_traced(Flags, fun collected/0)]}.

collections(Probe, Amount) ->
    {Pid, Reported} = collected_alike(),
    [{Probe, maps:merge(#{pid => text(Pid), Amount => get_value(wordsize, Info),
                          heap => get_value(heap_block_size, Info), old_heap => get_value(old_heap_block_size, Info)},
                        binaries(Amount, Info))}
     || {Tag, Info} <- Reported, Tag =:= Probe].

binaries(need, _) -> #{};
binaries(reclaimed, Info) -> #{binaries => get_value(bin_vheap_size, Info) + get_value(bin_old_vheap_size, Info)}.

%% -- Annotating -----------------------------------------------------------------------------

%% Removes values that can't be predicted, which annotation_SUITE checks; and how often a port is scheduled for its
%% input, and whether for a command, because that varies.
comparable({port_scheduled, #{entry := Entry}}) when Entry =:= <<"undefined">>; Entry =:= <<"command">> -> [];
comparable(Event = {telemetry_event, _}) -> [Event];
comparable({Probe, Fields}) -> [{Probe, maps:without([id, duration], Fields)}].

%% Spans with each kind of end.
spans() ->
    returned = dyntrace:span(checkout, fun() -> returned end),
    [try dyntrace:span(<<"checkout">>, fun() -> erlang:raise(Class, oops, []) end)
     catch Class:oops -> ok
     end || Class <- [error, exit, throw]],
    lists:duplicate(4, #{pid => text(self()), name => <<"checkout">>}).

messages() ->
    [begin
         true = dyntrace:user_trace_s1(Message),
         #{message => Text}
     end || {Message, Text} <- [{"checkpoint", <<"checkpoint">>}, {[], <<>>}, {not_a_string, null}, {[a], null},
                                {7, null}, {[<<"io">>, "data", [[] | <<"!">>]], <<"iodata!">>},
                                {<<"a", 0, "b">>, <<"a\x{FFFD}b"/utf8>>}]].

%% Each arity, arguments that count as missing, and a tag: {Arity, Fields}. Empty strings are avoided, because after 16
%% events babeltrace 2.0.4 shows the value of an earlier event for them.
annotations(Annotate) ->
    Rows = [{[], [0, 0, 0, 0], [null, null, null, null]},
            {[1], [1, 0, 0, 0], [null, null, null, null]},
            {["a"], [0, 0, 0, 0], [<<"a">>, null, null, null]},
            {[1, -2], [1, -2, 0, 0], [null, null, null, null]},
            {[1, "a"], [1, 0, 0, 0], [<<"a">>, null, null, null]},
            {[<<"a">>, ["b", $c]], [0, 0, 0, 0], [<<"a">>, <<"bc">>, null, null]},
            {[1, 2, 3], [1, 2, 3, 0], [null, null, null, null]},
            {["a", "b", "c"], [0, 0, 0, 0], [<<"a">>, <<"b">>, <<"c">>, null]},
            {[1, 2, 3, 4], [1, 2, 3, 4], [null, null, null, null]},
            {["a", "b", "c", "d"], [0, 0, 0, 0], [<<"a">>, <<"b">>, <<"c">>, <<"d">>]},
            {[1, 2, 3, 4, "a"], [1, 2, 3, 4], [<<"a">>, null, null, null]},
            {[1, 2, 3, 4, "a", "b"], [1, 2, 3, 4], [<<"a">>, <<"b">>, null, null]},
            {[1, 2, 3, 4, "a", "b", "c"], [1, 2, 3, 4], [<<"a">>, <<"b">>, <<"c">>, null]},
            {[1, 2, 3, 4, "a", "b", "c", "d"], [1, 2, 3, 4], [<<"a">>, <<"b">>, <<"c">>, <<"d">>]},
            {[-(1 bsl 63), (1 bsl 63) - 1, 1 bsl 63, undef, {no, string}, "c"],
             [-(1 bsl 63), (1 bsl 63) - 1, 0, 0], [null, null, <<"c">>, null]}],
    [begin
         _ = dyntrace:put_tag(Tag),
         true = Annotate(Args),
         _ = dyntrace:put_tag(undefined),
         Names = [proc, user_tag, i1, i2, i3, i4, s1, s2, s3, s4],
         {length(Args), maps:from_list(lists:zip(Names, [text(self()), TagIs | Integers] ++ Strings))}
     end || {Tag, TagIs} <- [{undefined, null}, {"the tåg", <<"the tåg"/utf8>>}], {Args, Integers, Strings} <- Rows].

%% -- Expected values ------------------------------------------------------------------------

text(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
text(Port) when is_port(Port) -> list_to_binary(port_to_list(Port));
text(Ref) when is_reference(Ref) -> list_to_binary(ref_to_list(Ref));
text(Name) when is_atom(Name) -> unicode:characters_to_binary(io_lib:format("~tw", [Name]));
text({Name, Node}) -> iolist_to_binary(["{", text(Name), ",", text(Node), "}"]).

%% The text of a term, for terms that %T writes like ~tw and ~tp.
text_of(Term) when is_pid(Term); is_port(Term); is_reference(Term); is_atom(Term) -> text(Term);
text_of(Tuple) when is_tuple(Tuple) ->
    iolist_to_binary(["{", lists:join(",", [text_of(Element) || Element <- tuple_to_list(Tuple)]), "}"]);
text_of(Map) when is_map(Map) ->
    Pairs = [[text_of(Key), "=>", text_of(Value)] || {Key, Value} <- maps:to_list(Map)],
    iolist_to_binary(["#{", lists:join(",", Pairs), "}"]);
text_of(Term) -> unicode:characters_to_binary(io_lib:format("~tp", [Term])).

location({M, F, A}) when is_list(A) -> location({M, F, length(A)});
location({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~tw:~tw/~b", [M, F, A]));
location(0) -> <<"undefined">>;
location(Callback) -> text(Callback).

get_value(Key, Info) ->
    {Key, Value} = lists:keyfind(Key, 1, Info),
    Value.
