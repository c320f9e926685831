%% The provider org_erlang_otp: its tracepoints, the libraries that provide them, and the samples of the allocators.
-module(otp_provider_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [both_listed, fields, {group, samples}, {group, carriers}, {group, others}].

groups() ->
    [{samples, [], [sample_as_the_vm_says, net_changes, unknown_shapes]},
     {carriers, [], [created_and_destroyed, sampling_follows_consumers, sampler_killed, worker_killed]},
     {others, [], [vm_with_the_provider, program_with_the_provider, other_build_has_it, upgraded_from_one_provider,
                   upgraded_while_a_daemon_hangs]}].

init_per_suite(Config) ->
    test_require:tool(test_lttng:missing(), Config).

end_per_suite(_) -> ok.

init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% -- The tracepoints -----------------------------------------------------------------------------

%% The types are those of OTP's header: `int`, `unsigned int`, and 64 bits for `size_t` and `unsigned long`.
tracepoints() ->
    Port = [{pid, string}, {port, string}, {driver, string}],
    Command = Port ++ [{command, uint32}, {bytes, uint64}],
    Pool = [{type, string}, {instance, int32}, {size, uint64}],
    Totals = [{Name, uint64} || Name <- [mbc_carriers, mbc_carriers_size, mbc_blocks, mbc_blocks_size,
                                         sbc_carriers, sbc_carriers_size, sbc_blocks, sbc_blocks_size]],
    [{carrier_create, Pool ++ Totals}, {carrier_destroy, Pool ++ Totals}, {carrier_pool_get, Pool},
     {carrier_pool_put, Pool}, {driver_call, Command}, {driver_control, Command}, {driver_finish, [{driver, string}]},
     {driver_flush, Port}, {driver_init, [{driver, string}, {major, int32}, {minor, int32}, {flags, int32}]},
     {driver_output, Port ++ [{bytes, uint64}]}, {driver_outputv, Port ++ [{bytes, uint64}]},
     {driver_process_exit, Port}, {driver_ready_async, Port}, {driver_ready_input, Port}, {driver_ready_output, Port},
     {driver_start, [{pid, string}, {driver, string}, {port, string}]}, {driver_stop, Port},
     {driver_stop_select, [{driver, string}]}, {driver_timeout, Port}].

both_listed(_) ->
    with_node(
      fun(Daemon, Node) ->
              ?assertEqual([atom_to_binary(Name) || {Name, _} <- tracepoints()],
                           listed(Daemon, Node, "org_erlang_otp")),
              ?assertEqual(lists:sort([atom_to_binary(Name)
                                       || #{name := Name, provider := org_erlang_dyntrace, backends := Backends}
                                              <- dyntrace:probes(), lists:member(lttng, Backends)]),
                           listed(Daemon, Node, "org_erlang_dyntrace"))
      end).

fields(_) ->
    with_node(fun(Daemon, Node) ->
                      Session = start(Daemon, [Name || {Name, _} <- tracepoints()], Node),
                      {0, _} = test_lttng:lttng(Daemon, "stop ~s", [test_lttng:name(Session)]),
                      Declared = test_lttng:declared(test_lttng:folder(Session)),
                      ok = test_lttng:destroy(Session),
                      ?assertEqual(tracepoints(), Declared)
              end).

%% -- Samples ---------------------------------------------------------------------------------------

%% A sample agrees with the VM's sizes. Allocators that change meanwhile are read again. The node does nothing else,
%% because a VM that runs tests may change some allocators continuously.
sample_as_the_vm_says(_) ->
    Node = test_node:start(),
    _ = test_node:call(Node, fun sampled_as_the_vm_says/0),
    test_node:stop(Node).

sampled_as_the_vm_says() ->
    [test_wait:until({Allocator, "is sampled as the VM says"},
                     fun() ->
                             Before = sizes(Allocator),
                             Sampled = sampled(Allocator, dyntrace_allocators:sample()),
                             case sizes(Allocator) of
                                 Before -> Sampled =:= Before orelse {Sampled, Before};
                                 _ -> changed
                             end
                     end)
     || Allocator <- [ets_alloc, literal_alloc, std_alloc, ll_alloc, sl_alloc, driver_alloc, fix_alloc]],
    ?assertEqual(lists:sort(erlang:system_info(alloc_util_allocators)),
                 lists:usort([Allocator || {Allocator, _} <- maps:keys(dyntrace_allocators:sample())])).

sampled(Allocator, Sample) ->
    [{Instance, [{Size, BlocksSize} || {_, Size, _, BlocksSize} <- tuple_to_list(Carriers)]}
     || {{A, Instance}, Carriers} <- lists:sort(maps:to_list(Sample)), A =:= Allocator].

sizes(Allocator) ->
    [{Instance, [sizes_of(proplists:get_value(Kind, Info, [])) || Kind <- [mbcs, mbcs_pool, sbcs]]}
     || {instance, Instance, Info} <- lists:sort(erlang:system_info({allocator_sizes, Allocator}))].

sizes_of(Carriers) ->
    {first(carriers_size, Carriers),
     lists:sum([first(size, Blocks) || {_, Blocks} <- proplists:get_value(blocks, Carriers, [])])}.

first(Key, List) ->
    case lists:keyfind(Key, 1, List) of
        false -> 0;
        Found -> element(2, Found)
    end.

net_changes(_) ->
    Key = {ets_alloc, 3},
    Is = fun(Mbc, Pool, Sbc) -> #{Key => {Mbc, Pool, Sbc}, {ll_alloc, 0} => {{1, 10, 1, 5}, none(), none()}} end,
    Was = Is({2, 200, 9, 150}, none(), {1, 50, 1, 40}),
    Changes = fun(Now) -> dyntrace_allocators:events(Was, Now) end,
    ?assertEqual([], Changes(Was)),
    ?assertEqual([], Changes(Is({2, 200, 8, 140}, none(), {1, 50, 1, 45}))),
    ?assertEqual([{carrier_create, {ets_alloc, 3, 100, 3, 300, 9, 150, 1, 50, 1, 40}}],
                 Changes(Is({3, 300, 9, 150}, none(), {1, 50, 1, 40}))),
    ?assertEqual([{carrier_destroy, {ets_alloc, 3, 200, 0, 0, 0, 0, 2, 90, 2, 70}},
                  {carrier_create, {ets_alloc, 3, 40, 0, 0, 0, 0, 2, 90, 2, 70}}],
                 Changes(Is(none(), none(), {2, 90, 2, 70}))),
    %% A carrier goes to the pool and comes back; another instance takes one.
    Pooled = Is({1, 120, 5, 90}, {1, 80, 4, 60}, {1, 50, 1, 40}),
    ?assertEqual([{carrier_pool_put, {ets_alloc, 3, 80}}], Changes(Pooled)),
    ?assertEqual([{carrier_pool_get, {ets_alloc, 3, 80}}], dyntrace_allocators:events(Pooled, Was)),
    ?assertEqual([{carrier_pool_get, {ets_alloc, 3, 80}},
                  {carrier_destroy, {ets_alloc, 3, 80, 1, 120, 5, 90, 1, 50, 1, 40}}],
                 dyntrace_allocators:events(Pooled, Is({1, 120, 5, 90}, none(), {1, 50, 1, 40}))),
    %% Without an earlier sample, nothing has changed.
    ?assertEqual([], dyntrace_allocators:events(#{}, Was)).

none() -> {0, 0, 0, 0}.

%% Each event has values that its probe accepts.
unknown_shapes(_) ->
    Sample = dyntrace_allocators:sample(),
    Empty = maps:map(fun(_, _) -> {none(), none(), none()} end, Sample),
    Events = dyntrace_allocators:events(Empty, Sample) ++ dyntrace_allocators:events(Sample, Empty),
    [?assertEqual(ok, dyntrace:report(Probe, Values)) || {Probe, Values} <- Events],
    ?assert(length(Events) > 2).

%% -- Carriers --------------------------------------------------------------------------------------

%% A table creates carriers, and drops them. Each event's size accounts for the difference between the carriers before
%% and after it, and the last totals of an instance agree with the VM.
created_and_destroyed(_) ->
    with_node(
      fun(Daemon, Node) ->
              application_on(Node, #{sample_interval => 10}),
              Session = start(Daemon, probes(), Node),
              until_sampled(Node),
              Table = test_node:call(Node, fun load/0),
              until_sampled(Node),
              Full = test_node:call(Node, fun ets_carriers/0),
              test_node:call(Node, fun() -> true = ets:delete(Table) end),
              %% Blocks of other schedulers are freed later.
              test_wait:until("the table's memory is free", fun(Free) -> Free > 20000000 end,
                              fun() -> bytes(Full) - bytes(test_node:call(Node, fun ets_carriers/0)) end),
              until_sampled(Node),
              Empty = test_node:call(Node, fun ets_carriers/0),
              Events = [{Probe, Fields} || {Probe, Fields = #{type := <<"ets_alloc">>}} <- test_lttng:stop(Session)],
              ?assert(lists:sum([sign(Event) || Event <- Events, sign(Event) > 0]) > 20000000, Events),
              ?assert(lists:sum([sign(Event) || Event <- Events, sign(Event) < 0]) < -20000000, Events),
              Instances = lists:usort([Instance || {_, #{instance := Instance}} <- Events]),
              [begin
                   Mine = [Event || Event = {_, #{instance := I}} <- Events, I =:= Instance],
                   ok = leads_on(Mine),
                   Seen = [totals(Fields) || {Probe, Fields} <- Mine, is_map_key(mbc_carriers, Fields),
                                             Probe =/= carrier_pool_put],
                   ?assert(lists:member(maps:get(Instance, Full), Seen) orelse
                           maps:get(Instance, Full) =:= maps:get(Instance, Empty), {Instance, Full, Mine}),
                   ?assertEqual(maps:get(Instance, Empty), lists:last(Seen), Mine)
               end || Instance <- Instances]
      end).

probes() ->
    [carrier_create, carrier_destroy, carrier_pool_put, carrier_pool_get].

%% On the node: a permanent table of at least 24 MB.
load() ->
    Self = self(),
    _ = spawn(fun() ->
                      Table = ets:new(load, [public]),
                      [true = ets:insert(Table, {N, binary_to_list(binary:copy(<<0>>, 30))})
                       || N <- lists:seq(1, 50000)],
                      Self ! {loaded, Table},
                      receive stop -> ok end
              end),
    receive {loaded, Table} -> Table end.

%% The number and size of the carriers of each instance, according to the VM.
ets_carriers() ->
    maps:from_list([{Instance, [Value || Kind <- [mbcs, sbcs], Key <- [carriers, carriers_size],
                                         Value <- [first(Key, proplists:get_value(Kind, Info))]]}
                    || {instance, Instance, Info} <- erlang:system_info({allocator, ets_alloc})]).

bytes(Carriers) ->
    lists:sum([MbcSize + SbcSize || [_, MbcSize, _, SbcSize] <- maps:values(Carriers)]).

totals(#{mbc_carriers := Mbc, mbc_carriers_size := MbcSize, sbc_carriers := Sbc, sbc_carriers_size := SbcSize}) ->
    [Mbc, MbcSize, Sbc, SbcSize].

sign({carrier_create, #{size := Size}}) -> Size;
sign({carrier_destroy, #{size := Size}}) -> -Size;
sign(_) -> 0.

%% If an instance uses no pool, its totals change by the sizes.
leads_on(Events) ->
    case lists:all(fun({Probe, _}) -> lists:member(Probe, [carrier_create, carrier_destroy]) end, Events) of
        true -> leads_on(tl(Events), hd(Events));
        false -> ok
    end.

leads_on([], _) -> ok;
leads_on([Event = {_, Fields} | Rest], {_, Before}) ->
    Sizes = fun(#{mbc_carriers_size := Mbc, sbc_carriers_size := Sbc}) -> Mbc + Sbc end,
    %% Changes of multiblock and singleblock carriers in one sample have the same totals.
    ?assert(totals(Fields) =:= totals(Before) orelse Sizes(Fields) - Sizes(Before) =:= sign(Event), {Before, Event}),
    leads_on(Rest, Event).

sampling_follows_consumers(_) ->
    with_node(
      fun(Daemon, Node) ->
              application_on(Node, #{sample_interval => 10}),
              ?assertEqual([], samplers(Node)),
              Session = start(Daemon, [carrier_pool_get], Node),
              until_sampled(Node),
              ?assertMatch([_], samplers(Node)),
              ?assertMatch(#{sources := [allocators]}, following(Node)),
              ok = test_lttng:destroy(Session),
              test_wait:until("no process takes samples", [], fun() -> samplers(Node) end),
              test_wait:until("no source", [], fun() -> maps:get(sources, following(Node)) end)
      end).

sampler_killed(_) ->
    another_samples_after_kill_of(fun(Sampler) -> Sampler end).

worker_killed(_) ->
    another_samples_after_kill_of(fun(_) -> whereis(dyntrace_autotracer) end).

another_samples_after_kill_of(Of) ->
    with_node(
      fun(Daemon, Node) ->
              application_on(Node, #{sample_interval => 10}),
              Session = start(Daemon, [carrier_create], Node),
              until_sampled(Node),
              [Sampler] = samplers(Node),
              test_node:call(Node, fun() -> exit(Of(Sampler), kill) end),
              test_wait:until("one other sampler", fun([Other]) -> Other =/= Sampler; (_) -> false end,
                              fun() -> samplers(Node) end),
              until_sampled(Node),
              ok = test_lttng:destroy(Session)
      end).

application_on(Node, Options) ->
    ok = test_node:call(Node, fun() -> dyntrace:follow(Options#{interval => 10}) end).

following(Node) ->
    maps:get(following, test_node:call(Node, fun dyntrace:info/0)).

samplers(Node) ->
    test_node:call(Node, fun() ->
                                 [P || P <- processes(),
                                       {initial_call, {dyntrace_sampler, sampled, 1}}
                                           <- [process_info(P, initial_call)]]
                         end).

%% Returns when a whole sample has been taken after the call.
until_sampled(Node) ->
    test_wait:until("one process samples", fun(Samplers) -> length(Samplers) =:= 1 end, fun() -> samplers(Node) end),
    test_autotracer:until_sampled(2, [{node, Node}]).

%% -- Other libraries with the provider -------------------------------------------------------------

%% The VM's own tracepoints record each event once, and the application does not sample.
vm_with_the_provider(Config) ->
    Library = compiled("vm_provider.c", "libvm.so", "-shared -fPIC", "-llttng-ust -pthread", Config),
    Fired = filename:join(?config(priv_dir, Config), "fired"),
    Node = test_node:start(#{env => [{"LD_PRELOAD", Library}, {"VM_FIRED", Fired}]}),
    Why = iolist_to_binary(["org_erlang_otp is provided by ", Library]),
    with_daemon(
      fun(Daemon) ->
              test_wait:until("who provides", #{org_erlang_dyntrace => available, org_erlang_otp => {missing, Why}},
                              fun() -> providers(Node) end),
              ?assertMatch(#{backends := #{lttng := available}}, test_node:call(Node, fun dyntrace:info/0)),
              application_on(Node, #{sample_interval => 10}),
              until_known(Daemon, Node),
              ?assertEqual([<<"carrier_pool_put">>], listed(Daemon, Node, "org_erlang_otp")),
              Session = test_lttng:start(Daemon, [carrier_pool_put, message_send]),
              test_wait:until("LTTng's enabled tracepoints", [message_send], fun() -> listeners(Node) end),
              %% The VM writes its number of events, and then this file.
              test_wait:until("the VM has fired", fun() -> filelib:is_regular(Fired) end),
              ?assertEqual([], samplers(Node)),
              ?assertEqual([#{type => <<"the_vm">>, instance => N, size => 1} || N <- lists:seq(0, 99)],
                           [Fields || {carrier_pool_put, Fields} <- test_lttng:stop(Session)])
      end),
    test_node:stop(Node).

%% The main program, which has no name for the dynamic linker, has the provider.
program_with_the_provider(Config) ->
    Include = filename:join(test_shell:project(), "c_src"),
    Find = filename:join(Include, "backends/lttng/find_provider.c"),
    Flags = ["-rdynamic -I'", Include, "'"],
    Own = compiled("vm_provider.c", "own.o", "-c -fPIC", "", Config),
    With = compiled("program.c", "with", Flags, ["'", Find, "' '", Own, "' -llttng-ust -pthread -ldl"], Config),
    Without = compiled("program.c", "without", Flags, ["'", Find, "' -ldl"], Config),
    ?assertEqual({0, <<"org_erlang_otp: the VM itself\norg_erlang_dyntrace: nothing\n">>},
                 test_shell:run("'~ts' org_erlang_otp org_erlang_dyntrace", [With])),
    ?assertEqual({0, <<"org_erlang_otp: nothing\n">>}, test_shell:run("'~ts' org_erlang_otp", [Without])),
    %% Our provider is recognized also in a program that has the other one.
    #{library := Library} = dyntrace:info(),
    Ours = filename:join(filename:dirname(Library), "dyntrace_lttng_otp.so"),
    ?assertEqual({0, iolist_to_binary(["org_erlang_otp: ", Ours, " (ours)\norg_erlang_dyntrace: nothing\n"])},
                 test_shell:run("LD_PRELOAD='~ts' '~ts' org_erlang_otp org_erlang_dyntrace", [Ours, Without])).

%% The library of another build is already in the process: it is used, and each event is recorded once.
other_build_has_it(Config) ->
    Other = filename:join(dyntrace_SUITE:copy(Config, "other"), "priv/dyntrace_lttng_otp.so"),
    Node = test_node:start(#{env => [{"LD_PRELOAD", Other}]}),
    with_daemon(fun(Daemon) -> ok = reports_once(Daemon, Node) end),
    test_node:stop(Node).

%% A version without the provider is loaded, with a session, and upgraded.
upgraded_from_one_provider(Config) ->
    [Old, New] = [dyntrace_SUITE:copy(Config, Name) || Name <- ["one/dyntrace", "two/dyntrace"]],
    Node = node_without_the_provider(Old),
    with_daemon(
      fun(Daemon) ->
              until_known(Daemon, Node),
              ?assertEqual([], listed(Daemon, Node, "org_erlang_otp")),
              upgrade(Node, New),
              available = until_loaded(Node),
              ?assertEqual(list_to_binary(filename:join(Old, "priv/dyntrace_lttng.so")),
                           maps:get(lttng_library, test_node:call(Node, fun dyntrace:info/0))),
              ok = reports_once(Daemon, Node)
      end),
    test_node:stop(Node).

%% The library of the second provider is not loaded until the daemon answers; other libraries are.
upgraded_while_a_daemon_hangs(Config) ->
    [Old, New] = [dyntrace_SUITE:copy(Config, Name) || Name <- ["hung-one/dyntrace", "hung-two/dyntrace"]],
    Node = node_without_the_provider(Old),
    with_daemon(
      fun(Daemon) ->
              until_known(Daemon, Node),
              ok = test_lttng:signal_daemon(Daemon, "STOP"),
              try
                  upgrade(Node, New),
                  test_wait:until("it waits", fun({missing, <<"waiting: ", _/binary>>}) -> true; (_) -> false end,
                                  fun() -> maps:get(org_erlang_otp, providers(Node)) end),
                  ?assertEqual({module, crypto}, test_node:call(Node, fun() -> code:ensure_loaded(crypto) end))
              after
                  test_lttng:signal_daemon(Daemon, "CONT")
              end,
              available = until_loaded(Node),
              ok = reports_once(Daemon, Node)
      end),
    test_node:stop(Node).

%% Like a version from before the provider.
node_without_the_provider(Old) ->
    ok = file:delete(filename:join(Old, "priv/dyntrace_lttng_otp.so")),
    Node = test_node:start(#{args => ["-pa", filename:join(Old, "ebin")]}),
    {missing, <<"not built", _/binary>>} = until_loaded(Node),
    Node.

upgrade(Node, New) ->
    test_node:call(Node, fun() ->
                                 true = code:replace_path(dyntrace, filename:join(New, "ebin")),
                                 _ = code:purge(dyntrace),
                                 {module, dyntrace} = code:load_file(dyntrace)
                         end).

reports_once(Daemon, Node) ->
    Session = start(Daemon, [carrier_pool_put, message_send], Node),
    Pid = test_node:call(Node, fun usdt_SUITE:sender/0),
    test_node:call(Node, fun() -> ok = dyntrace:report(carrier_pool_put, {ets_alloc, 7, 1 bsl 40}) end),
    usdt_SUITE:send(once, Pid, [{node, Node}]),
    ?assertMatch([{carrier_pool_put, #{type := <<"ets_alloc">>, instance := 7, size := 1 bsl 40}},
                  {message_send, #{message := <<"once">>}}], test_lttng:stop(Session)),
    ok.

compiled(Source, Target, Flags, Libraries, Config) ->
    Folder = ?config(data_dir, Config),
    Output = filename:join(?config(priv_dir, Config), Target),
    {0, _} = test_shell:run("cd '~ts' && cc -Wall -Werror -I. ~ts -o '~ts' ~ts ~ts",
                            [Folder, Flags, Output, Source, Libraries]),
    Output.

%% -- Helpers ---------------------------------------------------------------------------------------

with_daemon(Fun) ->
    lttng_SUITE:with_daemon(Fun).

with_node(Fun) ->
    Node = test_node:start(),
    try
        with_daemon(fun(Daemon) ->
                            available = until_loaded(Node),
                            until_known(Daemon, Node),
                            Fun(Daemon, Node)
                    end)
    after test_node:stop(Node)
    end.

start(Daemon, Probes, Node) ->
    lttng_SUITE:start(Daemon, Probes, [{node, Node}]).

until_known(Daemon, Node) ->
    lttng_SUITE:until_known(Daemon, [{node, Node}]).

listed(Daemon, Node, Provider) ->
    lists:sort(test_lttng:tracepoints(Daemon, test_node:os_pid(Node), Provider)).

listeners(Node) ->
    lttng_SUITE:listeners([{node, Node}]).

providers(Node) ->
    maps:get(lttng_providers, test_node:call(Node, fun dyntrace:info/0)).

%% The state of this provider, once it is no longer being loaded.
until_loaded(Node) ->
    Now = fun() -> maps:get(org_erlang_otp, providers(Node)) end,
    test_wait:until("the provider is loaded, or can't be",
                    fun({missing, <<"being loaded">>}) -> false;
                       ({missing, <<"waiting", _/binary>>}) -> false;
                       (_) -> true
                    end, Now),
    Now().
