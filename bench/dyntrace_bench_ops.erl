%% The measured operations, which a process repeats, and the trace flags that yield their events.
-module(dyntrace_bench_ops).

-export([table/0, messages/0, ports/0, sends/1, measure/2, called/1]).

-export_type([op/0]).

-type op() :: #{name := string(),
                flags := [atom()],
                tracee => process | port,          % the process, unless told, or the port that it opens
                events := pos_integer(),           % per operation
                times := pos_integer(),            % repetitions
                written := pos_integer(),          % repetitions with a tracer that writes each event in full
                new := fun(() -> fun(() -> term()))}.

-spec table() -> [op()].
table() ->
    [#{name => "call", flags => [call], events => 1, times => 200000, written => 200000,
       new => fun() -> fun() -> ?MODULE:called(1) end end},
     (sends({order, 17}))#{name => "send of a small tuple", written => 200000},
     (sends(lists:seq(1, 10000)))#{name => "send of a list of 10,000 integers"},
     (sends(binary:copy(<<"a">>, 1000000)))#{name => "send of a binary of 1 MB"},
     #{name => "procs (register and unregister)", flags => [procs], events => 2, times => 50000, written => 50000,
       new => fun() -> fun registers/0 end},
     #{name => "running (yield)", flags => [running], events => 2, times => 100000, written => 100000,
       new => fun() -> fun erlang:yield/0 end},
     #{name => "garbage_collection", flags => [garbage_collection], events => 2, times => 20000, written => 20000,
       new => fun() -> fun erlang:garbage_collect/0 end}].

%% A message that a process sends to itself, traced as received, by the match specification of messages.
-spec messages() -> [op()].
messages() ->
    Sends = #{new := New} = sends({order, 17}),
    [Sends#{name => Name, flags => ['receive'], written => 200000,
            new => fun() -> _ = erlang:trace_pattern('receive', Spec, []), New() end}
     || {Name, Spec} <- [{"none", true},
                         {"`dyntrace:sender_pattern()`", dyntrace:sender_pattern()},
                         {"a filter that all messages pass", [{['_', '_', '_'], [], []}]},
                         {"the same, with the senders",
                          dyntrace_match_spec:with_senders([{['_', '_', '_'], [], []}])},
                         {"a filter that no message passes", [{['_', '_', never], [], []}]}]].

%% What a process asks of a port of the tests' driver, which is loaded.
-spec ports() -> [op()].
ports() ->
    [#{name => Name, flags => ['receive'], tracee => port, events => 1, times => 100000, written => 100,
       new => fun() ->
                      Port = test_driver:open(output),
                      fun() -> Do(Port) end
              end}
     || {Name, Do} <- [{"port command", fun command/1}, {"port control", fun control/1}]].

%% The driver sends the data back.
command(Port) ->
    true = port_command(Port, <<"12345">>),
    receive {Port, {data, _}} -> ok end.

control(Port) ->
    test_driver:echo(Port, <<"12345">>).

called(X) -> X.

registers() ->
    true = register(?MODULE, self()),
    unregister(?MODULE).

%% Sends the term to itself and receives it. The term is persistent, so it is shared and the send does not copy it. It
%% is never erased: the VM's search for processes that use an erased term would be measured, too.
-spec sends(term()) -> op().
sends(Term) ->
    Key = {?MODULE, make_ref()},
    #{name => "send", flags => [send], events => 1, times => 200000, written => 100,
      new => fun() ->
                     ok = persistent_term:put(Key, Term),
                     Shared = persistent_term:get(Key),
                     fun() -> self() ! Shared, receive _ -> ok end end
             end}.

%% Nanoseconds that an operation takes in a process that is traced by this tracer.
-spec measure(op(), dyntrace_bench_tracers:tracer()) -> float().
measure(Op = #{flags := Flags, new := New}, Tracer) ->
    Times = case Tracer of
                {written, _} -> maps:get(written, Op);
                _ -> maps:get(times, Op)
            end,
    {Pid, Ref} = spawn_opt(fun() ->
                                   Do = New(),
                                   receive go -> ok end,
                                   Began = erlang:monotonic_time(nanosecond),
                                   ok = repeat(Times, Do),
                                   exit({took, (erlang:monotonic_time(nanosecond) - Began) / Times})
                           end, [monitor, {min_heap_size, 10000}]),
    until_waiting(Pid),
    ok = dyntrace_bench_tracers:trace(tracee(Pid, Op), Flags, Tracer),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, {took, Ns}} -> Ns end.

tracee(Pid, #{tracee := port}) ->
    {links, [Port]} = process_info(Pid, links),
    Port;
tracee(Pid, _) ->
    Pid.

repeat(0, _) -> ok;
repeat(N, Do) -> _ = Do(), repeat(N - 1, Do).

until_waiting(Pid) ->
    case process_info(Pid, status) of
        {status, waiting} -> ok;
        {status, _} -> erlang:yield(), until_waiting(Pid)
    end.
