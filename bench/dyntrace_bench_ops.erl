%% The measured operations, which a process repeats, and the trace flags that yield their events.
-module(dyntrace_bench_ops).

-export([table/0, large/0, flags/0, sends/1, measure/2, called/1]).

-export_type([op/0]).

-type op() :: #{name := term(),
                flags := [atom()],
                events := pos_integer(),           % per operation
                new := fun(() -> fun(() -> term()))}.

%% An operation is repeated for this time.
-define(MEASURED_NS, 20000000).

%% The maximal time of the first execution of an operation.
-define(FIRST_MS, 1000).

-spec table() -> [op()].
table() ->
    [#{name => "call", flags => [call], events => 1, new => fun calls/0},
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

%% Calls one function, which is the only traced one.
calls() ->
    1 = erlang:trace_pattern({?MODULE, called, 1}, true, [local]),
    fun() -> ?MODULE:called(1) end.

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
measure(#{flags := Flags, new := New}, Tracer) ->
    Caller = self(),
    {Pid, Ref} = spawn_opt(fun() ->
                                   Do = New(),
                                   receive go -> ok end,
                                   _ = Do(),
                                   Caller ! {begun, self()},
                                   exit({took, timed(Do)})
                           end, [monitor, {min_heap_size, 10000}]),
    until_waiting(Pid),
    ok = dyntrace_bench_tracers:trace(Pid, Flags, Tracer),
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

timed(Do) ->
    timed(Do, 1, 0, erlang:monotonic_time(nanosecond)).

%% In batches, because reading the time takes as long as a short operation.
timed(Do, Batch, Before, Began) ->
    ok = repeat(Batch, Do),
    case erlang:monotonic_time(nanosecond) - Began of
        Ns when Ns < ?MEASURED_NS -> timed(Do, 2 * Batch, Before + Batch, Began);
        Ns -> Ns / (Before + Batch)
    end.

repeat(0, _) -> ok;
repeat(N, Do) -> _ = Do(), repeat(N - 1, Do).

until_waiting(Pid) ->
    case process_info(Pid, status) of
        {status, waiting} -> ok;
        {status, _} -> erlang:yield(), until_waiting(Pid)
    end.
