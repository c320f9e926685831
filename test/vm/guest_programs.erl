%% Programs that the scripts trace in the virtual machine, and Erlang's own data about them.
-module(guest_programs).

-export([run/1]).
-export([nap/1, nap_long/1, fails/0, asleep/0]).

-define(TRACER, {tracer, dyntrace, []}).

run(spawn_exit) ->
    Reasons = [normal, kill, {shutdown, "why"}],
    traced([procs], fun() ->
                            [begin
                                 {Pid, Ref} = spawn_monitor(fun() -> receive after 20 -> exit(Reason) end end),
                                 1 = erlang:trace(Pid, true, [procs, ?TRACER]),
                                 receive {'DOWN', Ref, process, Pid, Reason} -> {Pid, Reason} end
                             end || Reason <- Reasons]
                    end);
run(scheduling) ->
    traced([running], fun() -> [?MODULE:nap(5) || _ <- lists:seq(1, 10)] end);
run(messages) ->
    To = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
    Messages = [{hello, [N]} || N <- lists:seq(1, 20)],
    {From, _} = traced([send], fun() -> [To ! Message || Message <- Messages] end),
    To ! stop,
    {From, To, length(Messages), lists:sum([erts_debug:flat_size(Message) || Message <- Messages])};
run(calls) ->
    [1 = erlang:trace_pattern({?MODULE, F, A}, [{'_', [], [{exception_trace}]}], [local])
     || {F, A} <- [{nap_long, 1}, {fails, 0}]],
    traced([call], fun() ->
                           [?MODULE:nap_long(20) || _ <- lists:seq(1, 5)],
                           [try ?MODULE:fails() catch error:on_purpose -> ok end || _ <- lists:seq(1, 2)]
                   end);
run(bif_latency) ->
    Large = binary:copy(<<"dyntrace">>, 1 bsl 20),
    [1 = erlang:trace_pattern(Mfa, [{'_', [], [{exception_trace}]}], [local])
     || Mfa <- [{erlang, md5, 1}, {lists, reverse, 2}, {prim_file, get_cwd_nif, 0}, {?MODULE, nap, 1}]],
    traced([call], fun() ->
                           _ = erlang:md5(Large),
                           [lists:reverse([N], []) || N <- lists:seq(1, 20)],
                           [{ok, _} = prim_file:get_cwd() || _ <- [1, 2, 3]],
                           try erlang:md5(not_iodata) catch error:badarg -> ?MODULE:nap(1) end
                   end);
run(gc) ->
    Pid = collecting(?TRACER),
    Other = collecting({tracer, self()}),
    Delivered = erlang:trace_delivered(Other),
    receive {trace_delivered, Other, Delivered} -> ok end,
    Tags = tags(Other),
    {Pid, length([1 || gc_minor_end <- Tags]), length([1 || gc_major_end <- Tags])};
run(user_probes) ->
    true = dyntrace:user_trace_s1("checkpoint"),
    _ = dyntrace:put_tag("request 12"),
    true = dyntrace:p(7, -8, "one", "two"),
    true = dyntrace:pn(42, 1, 2),
    _ = dyntrace:put_tag(undefined),
    true = dyntrace:mark(cache_miss, 17, "user 4711"),
    [slept = dyntrace:span(checkout, fun() -> receive after 20 -> slept end end) || _ <- lists:seq(1, 5)],
    self();
run(nodes) ->
    _ = os:cmd("epmd -daemon"),
    ok = dyntrace:follow(#{}),
    ok = net_kernel:monitor_nodes(true, [nodedown_reason]),
    {ok, _} = net_kernel:start('guest@127.0.0.1', #{name_domain => longnames}),
    receive {nodeup, 'guest@127.0.0.1', _} -> ok end,
    ok = net_kernel:stop(),
    receive {nodedown, 'guest@127.0.0.1', Info} -> ok end,
    ok = net_kernel:monitor_nodes(false, [nodedown_reason]),
    %% The application has received its messages.
    _ = sys:get_state(dyntrace_autotracer),
    ok = dyntrace:unfollow(),
    proplists:get_value(nodedown_reason, Info);
run(ports) ->
    0 = erlang:trace(new_ports, true, [ports, running_ports, send, 'receive', ?TRACER]),
    Port = open_port({spawn, "cat"}, [binary, {line, 100}]),
    Lines = [<<"tea">>, <<"coffee">>, <<"water">>],
    [begin
         true = port_command(Port, [Line, $\n]),
         receive {Port, {data, {eol, Line}}} -> ok end
     end || Line <- Lines],
    true = port_close(Port),
    0 = erlang:trace(new_ports, false, [all]),
    {self(), Port, length(Lines), iolist_size(Lines) + length(Lines)};
run(process_trace) ->
    Self = self(),
    Sleeper = spawn(?MODULE, asleep, []),
    {Pid, Child} = traced([send, 'receive', procs, running],
                          fun() ->
                                  process_flag(trap_exit, true),
                                  Child = spawn_link(fun() -> exit(over) end),
                                  receive {'EXIT', Child, over} -> ok end,
                                  self() ! {note, 1},
                                  receive {note, 1} -> ok end,
                                  Self ! {self(), sent},
                                  receive after 5 -> Child end
                          end),
    receive {Pid, sent} -> ok end,
    1 = erlang:trace(Sleeper, true, [running, procs, ?TRACER]),
    Ref = monitor(process, Sleeper),
    Sleeper ! sleep,
    receive {'DOWN', Ref, process, Sleeper, normal} -> ok end,
    {Pid, Child, Sleeper, Self}.

nap(Ms) -> receive after Ms -> ok end.

nap_long(Ms) -> receive after Ms -> ok end.

fails() -> error(on_purpose).

asleep() ->
    receive sleep -> ok end,
    _ = erlang:send_after(20, self(), wake),
    erlang:hibernate(erlang, self, []).

%% A process that collects a known amount of garbage, with any tracer.
collecting(Tracer) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> collect() end end),
    1 = erlang:trace(Pid, true, [garbage_collection, Tracer]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> Pid end.

collect() ->
    _ = [lists:seq(1, 1000) || _ <- lists:seq(1, 20)],
    true = erlang:garbage_collect(self(), [{type, minor}]),
    true = erlang:garbage_collect(self(), [{type, major}]),
    ok.

tags(Pid) ->
    receive {trace, Pid, Tag, _} -> [Tag | tags(Pid)]
    after 0 -> []
    end.

%% Runs Fun in a process that is traced until it returns.
traced(Flags, Fun) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                       receive go -> ok end,
                                       Result = Fun(),
                                       1 = erlang:trace(self(), false, [all]),
                                       Self ! {self(), result, Result}
                               end),
    1 = erlang:trace(Pid, true, [?TRACER | Flags]),
    Pid ! go,
    receive
        {Pid, result, Result} ->
            receive {'DOWN', Ref, process, Pid, normal} -> {Pid, Result} end;
        {'DOWN', Ref, process, Pid, Why} ->
            error({traced_process_failed, Why})
    end.
