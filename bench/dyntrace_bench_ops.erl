%% The measured operations, which a process repeats, and the trace flags that yield their events.
-module(dyntrace_bench_ops).

-export([table/0, large/0, flags/0, profiled/0, messages/0, ports/0, sends/1, measure/2, called/1]).

-export_type([op/0]).

-type op() :: #{name := term(),
                flags := [atom()],
                tracee => process | port,          % the process (default), or the port that it opens
                events := pos_integer(),           % per operation
                times => pos_integer(),            % repetitions, if it is not repeated for a while
                new := fun(() -> fun(() -> term()))}.

%% An operation is repeated for this time.
-define(MEASURED_NS, 20000000).

%% The maximal time of the first execution of an operation.
-define(FIRST_MS, 1000).

-spec table() -> [op()].
table() ->
    [#{name => "call", flags => [call], events => 1, new => calls(true)},
     (sends({order, 17}))#{name => "send of a small tuple"},
     (sends(lists:seq(1, 10000)))#{name => "send of a list of 10,000 integers"},
     (sends(binary:copy(<<"a">>, 1000000)))#{name => "send of a binary of 1 MB"},
     #{name => "procs (register and unregister)", flags => [procs], events => 2, new => fun() -> fun registers/0 end},
     #{name => "running (yield)", flags => [running], events => 2, new => fun() -> fun erlang:yield/0 end},
     #{name => "garbage_collection", flags => [garbage_collection], events => 2,
       new => fun() -> fun erlang:garbage_collect/0 end}].

%% The flags of all events of a process.
-spec flags() -> [atom()].
flags() -> [send, 'receive', procs, call, running, exiting, garbage_collection].

%% A tracer that writes such a term in full takes a minute, and blocks its scheduler meanwhile.
-spec large() -> op().
large() ->
    (sends(1 bsl 4000000))#{name => "send of an integer of 500 kB"}.

%% The operations whose costs are broken down.
-spec profiled() -> [op()].
profiled() ->
    Named = maps:from_list([{Name, Op} || Op = #{name := Name} <- table()]),
    #{"call" := Call, "send of a small tuple" := Send, "send of a list of 10,000 integers" := List,
      "running (yield)" := Running, "garbage_collection" := Collection} = Named,
    [Call,
     Call#{name => "call and return", events => 2, new => calls([{'_', [], [{return_trace}]}])},
     Send,
     Send#{name => "receive of a small tuple", flags => ['receive']},
     List, Running, Collection].

%% A message that a process sends to itself, traced when received, by the match specification of messages.
-spec messages() -> [op()].
messages() ->
    Sends = #{new := New} = sends({order, 17}),
    [Sends#{name => Name, flags => ['receive'],
            new => fun() -> _ = erlang:trace_pattern('receive', Spec, []), New() end}
     || {Name, Spec} <- [{"none", true},
                         {"`dyntrace:sender_pattern()`", dyntrace:sender_pattern()},
                         {"a filter that all messages pass", [{['_', '_', '_'], [], []}]},
                         {"the same, with the senders",
                          dyntrace_match_spec:with_senders([{['_', '_', '_'], [], []}])},
                         {"a filter that no message passes", [{['_', '_', never], [], []}]}]].

%% Requests of a process to a port of the tests' driver, which must be loaded.
-spec ports() -> [op()].
ports() ->
    [#{name => Name, flags => ['receive'], tracee => port, events => 1,
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

%% Calls one function, which is the only traced one.
calls(MatchSpec) ->
    fun() ->
            1 = erlang:trace_pattern({?MODULE, called, 1}, MatchSpec, [local]),
            fun() -> ?MODULE:called(1) end
    end.

called(X) -> X.

registers() ->
    true = register(?MODULE, self()),
    unregister(?MODULE).

%% Sends the term to itself and receives it, on this node. The term is persistent, so neither the send nor the start of
%% a process copies it. It is never erased, because the VM's search for processes that use it would be measured, too.
-spec sends(term()) -> op().
sends(Term) ->
    Key = {?MODULE, make_ref()},
    ok = persistent_term:put(Key, Term),
    #{name => "send", flags => [send], events => 1,
      new => fun() ->
                     Shared = persistent_term:get(Key),
                     fun() -> self() ! Shared, receive _ -> ok end end
             end}.

%% Nanoseconds that an operation takes in a process that is traced by this tracer; over() for an operation that exceeds
%% the limit.
-spec measure(op(), dyntrace_bench_tracers:tracer()) -> float().
measure(Op = #{flags := Flags, new := New}, Tracer) ->
    Caller = self(),
    {Pid, Ref} = spawn_opt(fun() ->
                                   Do = New(),
                                   receive go -> ok end,
                                   _ = Do(),
                                   Caller ! {begun, self()},
                                   exit({took, timed(Do, Op)})
                           end, [monitor, {min_heap_size, 10000}]),
    until_waiting(Pid),
    ok = dyntrace_bench_tracers:trace(tracee(Pid, Op), Flags, Tracer),
    Pid ! go,
    receive
        {begun, Pid} ->
            {took, Ns} = dyntrace_bench_figures:ended(Pid, Ref),
            Ns;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    after ?FIRST_MS ->
        true = demonitor(Ref, [flush]),
        exit(Pid, kill),
        dyntrace_bench_figures:over()
    end.

timed(Do, #{times := Times}) ->
    Began = erlang:monotonic_time(nanosecond),
    ok = repeat(Times, Do),
    (erlang:monotonic_time(nanosecond) - Began) / Times;
timed(Do, _) ->
    timed(Do, 1, 0, erlang:monotonic_time(nanosecond)).

%% In batches, because reading the time takes as long as a short operation.
timed(Do, Batch, Before, Began) ->
    ok = repeat(Batch, Do),
    case erlang:monotonic_time(nanosecond) - Began of
        Ns when Ns < ?MEASURED_NS -> timed(Do, 2 * Batch, Before + Batch, Began);
        Ns -> Ns / (Before + Batch)
    end.

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
