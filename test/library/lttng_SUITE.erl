%% Records the tracepoints with a real session daemon: each tracepoint, and each field's value.
-module(lttng_SUITE).

-include("../support/suite.hrl").

-define(TRACER, {tracer, dyntrace, []}).

%% A channel that keeps only the last events of a flood, because reading all of it takes seconds.
-define(SMALL, "--subbuf-size=16k --num-subbuf=4 --tracefile-size=64k --tracefile-count=1").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [each_alone, listed, types_as_declared, both_backends, enabled_and_disabled_while_running,
     session_destroyed_while_tracing,
     reloaded, upgraded, second_provider_of_the_name,
     foreign_provider_of_the_name, buffers_full, {group, daemons}, {group, hangs}, {group, machines},
     {group, providers}].

groups() ->
    [{daemons, [], [daemon_starts_later, daemon_killed, unprivileged, threads_ended]},
     {hangs, [], [daemon_hangs, daemon_hangs_and_is_killed, daemon_hangs_with_a_full_queue,
                  halts_beside_a_hung_daemon, reloaded_beside_a_hung_daemon, upgraded_beside_a_hung_daemon]},
     {machines, [], [fresh_for_root, fresh_for_nobody, fresh_for_nobody_and_root, wait_file_that_is_there,
                     shm_read_only, shm_read_only_with_roots_file, shm_full, shm_has_a_fifo, shm_has_a_link,
                     shm_has_anothers_file]},
     {providers, [], [provider_missing, provider_foreign, provider_of_another_build, no_lttng_at_run_time]}].

probes() ->
    test_cases:probes(lttng).

init_per_suite(Config) ->
    test_require:tool(test_lttng:missing(), Config).

end_per_suite(_) -> ok.

init_per_testcase(_, Config) ->
    [{node, test_node:start()} | Config].

end_per_testcase(_, Config) ->
    Node = ?config(node, Config),
    #{undecoded := Undecoded} = test_node:call(Node, fun dyntrace:info/0),
    test_node:stop(Node),
    case map_size(Undecoded) of
        0 -> ok;
        _ -> {fail, {undecoded, Undecoded}}
    end.

%% -- Events --------------------------------------------------------------------------------

each_alone() ->
    [{timetrap, {minutes, 15}}].

%% Each probe is enabled, fires and is disabled again, while no other one is enabled. One session records them all,
%% because making one takes longer than the test of a probe.
each_alone(Config) ->
    with_daemon(fun(Daemon) ->
                        Session = start(Daemon, [], Config),
                        Expected = [alone(Probe, Session, Config) || Probe <- probes()],
                        Events = test_lttng:stop(Session),
                        [?assertEqual({Probe, [lttng_event(Event) || Event <- Run]},
                                      {Probe, lists:append([test_cases:comparable(Event)
                                                            || {Name, _} = Event <- Events, Name =:= Probe])})
                         || {Probe, Run} <- Expected],
                        ?assertEqual([], [Name || {Name, _} <- Events, not lists:member(Name, probes())])
                end).

alone(Probe, Session, Config) ->
    ok = test_lttng:enable(Session, Probe),
    until_listeners([Probe], Config),
    Expected = run(Probe, Config),
    ok = test_lttng:disable(Session, Probe),
    until_listeners([], Config),
    {Probe, Expected}.

%% In LTTng, the port's field in port_scheduled is named pid, and NULL is "(null)".
lttng_event({port_scheduled, Fields}) ->
    {Port, Others} = maps:take(port, Fields),
    {port_scheduled, Others#{pid => Port}};
lttng_event({Probe, Fields}) ->
    {Probe, maps:map(fun(_, null) -> <<"(null)">>; (_, Value) -> Value end, Fields)}.

listed(Config) ->
    with_daemon(fun(Daemon) ->
                        _ = all_listeners(Config),
                        until_known(Daemon, Config),
                        ?assertEqual(lists:sort([atom_to_binary(Name) || #{name := Name} <- described()]),
                                     tracepoints(Daemon, Config))
                end).

%% Names, order and types of the fields in the trace's metadata.
types_as_declared(Config) ->
    with_daemon(fun(Daemon) ->
                        Names = [Name || #{name := Name} <- described()],
                        Session = start(Daemon, Names, Config),
                        {0, _} = test_lttng:lttng(Daemon, "stop ~s", [test_lttng:name(Session)]),
                        Declared = test_lttng:declared(test_lttng:folder(Session)),
                        ok = test_lttng:destroy(Session),
                        Described = [{Name, [{lttng_name(Name, Field), Type}
                                             || #{name := Field, type := Type} <- Fields]}
                                     || #{name := Name, fields := Fields} <- described()],
                        ?assertEqual(lists:sort(Described), Declared)
                end).

%% The catalogue's probes that are tracepoints.
described() ->
    [Probe || Probe = #{backends := Backends} <- dyntrace:probes(), lists:member(lttng, Backends)].

lttng_name(port_scheduled, port) -> pid;
lttng_name(_, Field) -> Field.

%% Both backends report the same events with the same values.
both_backends(Config) ->
    test_require:tool(test_bpftrace:missing(), Config),
    #{library := Library} = test_node:call(?config(node, Config), fun dyntrace:info/0),
    Both = [Probe || Probe <- probes(), lists:member(Probe, test_cases:probes(usdt))],
    Consumer = test_bpftrace:start(Library, Both, #{located => true}),
    {_, Events} = recorded(Both, Config,
                           fun() ->
                                   ?assertEqual([[lttng, usdt]],
                                                lists:usort([lists:sort(Backends)
                                                             || #{backends := Backends} <- all_listeners(Config)])),
                                   Expected = [run(Probe, Config) || Probe <- Both],
                                   [begin
                                        Last = [lists:last(Es)],
                                        test_bpftrace:await(Consumer, fun(E) -> test_cases:comparable(E) =:= Last end)
                                    end || Es <- Expected]
                           end),
    Seen = [lttng_event(Event) || Event <- test_bpftrace:stop(Consumer)],
    ?assertEqual(lists:sort(Seen), lists:sort(Events)).

enabled_and_disabled_while_running(Config) ->
    with_daemon(
      fun(Daemon) ->
              Pid = test_node:call(?config(node, Config), fun sender/0),
              Session = start(Daemon, [process_exit], Config),
              send(before, Pid, Config),
              ok = test_lttng:enable(Session, message_send),
              until_listeners([process_exit, message_send], Config),
              send(enabled, Pid, Config),
              ok = test_lttng:disable(Session, message_send),
              until_listeners([process_exit], Config),
              ?assertEqual(discard,
                           test_node:call(?config(node, Config), fun() -> dyntrace:enabled_send(send, [], self()) end)),
              send('after', Pid, Config),
              ?assertMatch([{message_send, #{message := <<"enabled">>}}], test_lttng:stop(Session))
      end).

session_destroyed_while_tracing(Config) ->
    with_daemon(
      fun(Daemon) ->
              Pid = test_node:call(?config(node, Config), fun flooder/0),
              First = start(Daemon, [message_send], Config),
              ok = test_lttng:destroy(First),
              until_listeners([], Config),
              Second = start(Daemon, [message_send], Config, #{channel => ?SMALL}),
              goes_on(Pid, Config),
              has_flood(test_lttng:stop(Second))
      end).

%% The messages may include an answer to goes_on/2.
has_flood(Events) ->
    ?assert(lists:member(<<"flood">>, [Message || {message_send, #{message := Message}} <- Events])).

%% -- Loading the provider -----------------------------------------------------------------------

%% The module is reloaded during a session: its tracepoints are registered once, and record.
reloaded(Config) ->
    with_daemon(
      fun(Daemon) ->
              Session = start(Daemon, [message_send], Config),
              Pid = test_node:call(?config(node, Config), fun sender/0),
              test_node:call(?config(node, Config), fun() -> [{module, _} = l(dyntrace) || _ <- lists:seq(1, 3)] end),
              send(again, Pid, Config),
              ?assertEqual(length(described()), length(tracepoints(Daemon, Config))),
              ?assertMatch([{message_send, #{message := <<"again">>}}], test_lttng:stop(Session))
      end).

%% Another version of the library, from another folder, uses the provider that is already loaded.
upgraded(Config) ->
    New = copy(Config, "upgraded/dyntrace"),
    with_daemon(
      fun(Daemon) ->
              Session = start(Daemon, [message_send], Config),
              Library = test_node:call(?config(node, Config),
                                     fun() ->
                                             true = code:replace_path(dyntrace, filename:join(New, "ebin")),
                                             {module, _} = l(dyntrace),
                                             maps:get(library, dyntrace:info())
                                     end),
              ?assertEqual(filename:join([New, "priv", "dyntrace.so"]), Library),
              %% An upgrade does not wait for the thread that finds the provider.
              until_available(?config(node, Config)),
              Pid = test_node:call(?config(node, Config), fun sender/0),
              send(upgraded, Pid, Config),
              ?assertEqual(length(described()), length(tracepoints(Daemon, Config))),
              ?assertMatch([{message_send, #{message := <<"upgraded">>}}], test_lttng:stop(Session))
      end).

%% The provider of another build is already in the process: it is used, and each event is recorded once.
second_provider_of_the_name(Config) ->
    Other = filename:join(copy(Config, "other"), "priv/dyntrace_lttng.so"),
    Node = test_node:start(#{env => [{"LD_PRELOAD", Other}]}),
    with_daemon(
      fun(Daemon) ->
              In = [{node, Node}],
              Session = start(Daemon, [message_send], In),
              Library = list_to_binary(Other),
              until_available(Node),
              ?assertMatch(#{backends := #{lttng := available}, lttng_library := Library},
                           test_node:call(Node, fun dyntrace:info/0)),
              Pid = test_node:call(Node, fun sender/0),
              send(once, Pid, In),
              ?assertMatch([{message_send, #{message := <<"once">>}}], test_lttng:stop(Session))
      end),
    test_node:stop(Node).

%% As in a VM that was built with LTTng and has loaded its own dyntrace, a provider of this name exists, with other
%% arguments. The VM keeps running, this library's provider is not loaded, and info/0 names the other one.
foreign_provider_of_the_name(Config) ->
    Folder = ?config(priv_dir, Config),
    Source = filename:join(?config(data_dir, Config), "foreign_provider.c"),
    Foreign = filename:join(Folder, "libforeign.so"),
    {0, _} = test_shell:run("cp '~ts' '~ts' && "
                            "cd '~ts' && cc -shared -fPIC -I. -o '~ts' foreign_provider.c -llttng-ust",
                            [Source, Folder, Folder, Foreign]),
    Node = test_node:start(#{env => [{"LD_PRELOAD", Foreign}]}),
    Why = iolist_to_binary(["org_erlang_dyntrace is provided by ", Foreign]),
    with_daemon(
      fun(Daemon) ->
              test_wait:until("who provides", {missing, Why}, fun() -> lttng_of(Node) end),
              ?assertMatch(#{backends := #{usdt := available}, lttng_library := undefined},
                           test_node:call(Node, fun dyntrace:info/0)),
              Session = test_lttng:start(Daemon, [message_send]),
              test_wait:until("the foreign tracepoint", [<<"message_send">>],
                              fun() ->
                                      test_lttng:tracepoints(Daemon, test_node:os_pid(Node), "org_erlang_dyntrace")
                              end),
              Pid = test_node:call(Node, fun sender/0),
              send(not_ours, Pid, [{node, Node}]),
              ?assertEqual([], test_lttng:stop(Session))
      end),
    test_node:stop(Node).

%% Two sub-buffers of one page each, and a flood: LTTng counts every event that it does not record, and the VM never
%% waits.
buffers_full(Config) ->
    Count = 50000,
    with_daemon(
      fun(Daemon) ->
              Session = start(Daemon, [message_send], Config,
                              #{channel => "--subbuf-size=4k --num-subbuf=2 --discard"}),
              Us = test_node:call(?config(node, Config),
                                fun() ->
                                        {Pid, Us} = test_cases:traced([send], fun() -> flood(Count) end),
                                        true = is_pid(Pid),
                                        Us
                                end),
              {0, _} = test_lttng:lttng(Daemon, "stop ~s", [test_lttng:name(Session)]),
              Folder = test_lttng:folder(Session),
              {Recorded, Lost} = {length(test_lttng:read(Folder)), test_lttng:discarded(Folder)},
              ok = test_lttng:destroy(Session),
              ct:pal("~b recorded, ~b lost, ~b us", [Recorded, Lost, Us]),
              ?assert(Lost > 0),
              ?assertEqual(Count, Recorded + Lost)
      end).

flood(Count) ->
    Dead = dead(),
    Began = erlang:monotonic_time(microsecond),
    lists:foreach(fun(N) -> Dead ! N end, lists:seq(1, Count)),
    erlang:monotonic_time(microsecond) - Began.

%% A process that has ended, so that messages to it do not pile up.
dead() ->
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> Pid end.

%% -- Daemons --------------------------------------------------------------------------------------

%% No daemon when the module loads: the tracepoints appear when one starts.
daemon_starts_later(Config) ->
    until_available(?config(node, Config)),
    with_daemon(fun(Daemon) ->
                        test_wait:until("all tracepoints", length(described()),
                                        fun() -> length(tracepoints(Daemon, Config)) end),
                        Session = start(Daemon, [message_send], Config),
                        Pid = test_node:call(?config(node, Config), fun sender/0),
                        send(later, Pid, Config),
                        ?assertMatch([{message_send, #{message := <<"later">>}}], test_lttng:stop(Session))
                end).

daemon_killed(Config) ->
    First = test_lttng:start_daemon(),
    Pid = test_node:call(?config(node, Config), fun flooder/0),
    _ = start(First, [message_send], Config),
    ok = test_lttng:kill_daemon(First),
    goes_on(Pid, Config),
    until_listeners([], Config),
    with_daemon(fun(Daemon) ->
                        Session = start(Daemon, [message_send], Config, #{channel => ?SMALL}),
                        goes_on(Pid, Config),
                        has_flood(test_lttng:stop(Session))
                end).

%% An unprivileged user with a separate daemon.
unprivileged(Config) ->
    as_nobody(Config, fun(User) ->
                              recorded_as_user(start_node(User, []), User)
                      end).

%% Threads of LTTng's library that have ended. They never end on their own, so the test removes the name that identifies
%% them.
threads_ended(Config) ->
    Node = ?config(node, Config),
    ?assertEqual(available, lttng_of(Node)),
    Renamed = test_node:call(Node,
                           fun() ->
                                   [ok = file:write_file(File, "another")
                                    || File <- filelib:wildcard("/proc/self/task/*/comm"),
                                       {ok, Name} <- [file:read_file(File)],
                                       binary:longest_common_suffix([Name, <<"-ust\n">>]) =:= 5]
                           end),
    ?assert(length(Renamed) >= 1),
    ?assertMatch({missing, <<_, " of ", _, " threads of LTTng's library have ended", _/binary>>}, lttng_of(Node)).

%% -- Daemons that do not answer ------------------------------------------------------------------

%% LTTng's own timeout is set to infinite, so that no test depends on it.
-define(FOR_EVER, [{"LTTNG_UST_REGISTER_TIMEOUT", "-1"}]).

with_hung_daemon(Fun) ->
    with_daemon(fun(Daemon) ->
                        ok = test_lttng:signal_daemon(Daemon, "STOP"),
                        try Fun(Daemon)
                        after test_lttng:signal_daemon(Daemon, "CONT")
                        end
                end).

is_waiting(Node) ->
    {missing, Why} = lttng_of(Node),
    ?assertMatch(<<"waiting: the session daemon at /var/run/lttng/lttng-ust-sock-", _/binary>>, Why),
    true.

%% The module is loaded, info/0 reports the wait, and other libraries can be loaded. LTTng is available when the daemon
%% answers again.
daemon_hangs(Config) ->
    with_hung_daemon(fun(Daemon) ->
                             Node = test_node:start(#{env => ?FOR_EVER}),
                             Enabled = test_node:call(Node, fun() -> dyntrace:enabled(trace_status, [], self()) end),
                             ?assertEqual(trace, Enabled),
                             ?assertMatch(#{backends := #{usdt := available}},
                                          test_node:call(Node, fun dyntrace:info/0)),
                             true = is_waiting(Node),
                             ?assertEqual({module, crypto},
                                          test_node:call(Node, fun() -> code:ensure_loaded(crypto) end)),
                             ok = test_lttng:signal_daemon(Daemon, "CONT"),
                             until_available(Node),
                             In = [{node, Node} | Config],
                             Session = start(Daemon, [message_send], In),
                             Pid = test_node:call(Node, fun sender/0),
                             send(awake, Pid, In),
                             ?assertMatch([{message_send, #{message := <<"awake">>}}], test_lttng:stop(Session)),
                             test_node:stop(Node)
                     end).

daemon_hangs_and_is_killed(Config) ->
    Hung = test_lttng:start_daemon(),
    ok = test_lttng:signal_daemon(Hung, "STOP"),
    Node = test_node:start(#{env => ?FOR_EVER}),
    true = is_waiting(Node),
    ok = test_lttng:kill_daemon(Hung),
    until_available(Node),
    with_daemon(fun(Daemon) ->
                        In = [{node, Node} | Config],
                        Session = start(Daemon, [message_send], In),
                        Pid = test_node:call(Node, fun sender/0),
                        send(another, Pid, In),
                        ?assertMatch([{message_send, #{message := <<"another">>}}], test_lttng:stop(Session))
                end),
    test_node:stop(Node).

%% The daemon accepts no more connections: the socket's queue is full.
daemon_hangs_with_a_full_queue(_) ->
    %% A socket's path has 107 bytes at most.
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-queue-" ++ os:getpid()),
    "/dev/shm/lttng-ust-wait-" ++ Number = wait_file_of_root(),
    Socket = filename:join([Home, ".lttng", "lttng-ust-sock-" ++ Number]),
    ok = filelib:ensure_dir(Socket),
    {ok, Listen} = gen_tcp:listen(0, [{ifaddr, {local, Socket}}, {backlog, 0}]),
    %% With a backlog of 0, one connection fills the queue.
    {ok, Queued} = gen_tcp:connect({local, Socket}, 0, [local]),
    Node = test_node:start(#{env => [{"LTTNG_HOME", Home} | ?FOR_EVER]}),
    Why = iolist_to_binary(["waiting: the session daemon at ", Socket, " does not answer"]),
    test_wait:until({"LTTng is missing,", Why},
                    fun({missing, Says}) -> binary:longest_common_prefix([Says, Why]) =:= byte_size(Why) end,
                    fun() -> lttng_of(Node) end),
    ?assertEqual({module, crypto}, test_node:call(Node, fun() -> code:ensure_loaded(crypto) end)),
    [ok = gen_tcp:close(S) || S <- [Listen, Queued]],
    until_available(Node),
    test_node:stop(Node),
    ok = file:del_dir_r(Home).

halts_beside_a_hung_daemon(_) ->
    with_hung_daemon(fun(_) ->
                             Node = test_node:start(#{env => ?FOR_EVER}),
                             Proc = "/proc/" ++ test_node:os_pid(Node),
                             _ = lttng_of(Node),
                             %% The node may end before it answers.
                             try test_node:call(Node, fun() -> spawn(fun halt/0), ok end) catch exit:_ -> ok end,
                             test_wait:until({"no more of", Proc}, false, fun() -> filelib:is_dir(Proc) end)
                     end).

%% An upgrade of the library stops all schedulers, so it must not wait for 50 ms like a load does. The test takes the
%% shortest of several times, because the machine may be busy.
reloaded_beside_a_hung_daemon(_) ->
    with_hung_daemon(fun(_) ->
                             Node = test_node:start(#{env => ?FOR_EVER}),
                             Reload = fun() -> {module, _} = l(dyntrace) end,
                             _ = lttng_of(Node),
                             Us = test_node:call(Node,
                                                 fun() -> [element(1, timer:tc(Reload)) || _ <- lists:seq(1, 10)] end),
                             ct:pal("reloaded in ~p us", [Us]),
                             ?assert(lists:min(Us) < 50000),
                             test_node:stop(Node)
                     end).

%% Several versions of the library wait for one daemon; one provider is loaded.
upgraded_beside_a_hung_daemon(Config) ->
    Copies = [copy(Config, "hung-" ++ integer_to_list(N) ++ "/dyntrace") || N <- lists:seq(1, 5)],
    with_hung_daemon(
      fun(Daemon) ->
              Node = test_node:start(),
              In = [{node, Node} | Config],
              true = is_waiting(Node),
              test_node:call(Node, fun() ->
                                         [begin
                                              true = code:replace_path(dyntrace, filename:join(Copy, "ebin")),
                                              {module, _} = l(dyntrace)
                                          end || Copy <- Copies]
                                 end),
              true = is_waiting(Node),
              ok = test_lttng:signal_daemon(Daemon, "CONT"),
              until_available(Node),
              Session = start(Daemon, [message_send], In),
              ?assertEqual(length(described()), length(tracepoints(Daemon, In))),
              Pid = test_node:call(Node, fun sender/0),
              send(once, Pid, In),
              ?assertMatch([{message_send, #{message := <<"once">>}}], test_lttng:stop(Session)),
              test_node:stop(Node)
      end).

%% -- Machines ----------------------------------------------------------------------------------------
%%
%% A test's machine has its own /dev/shm and /run/lttng, without files of LTTng. A command prepares them before the node
%% starts.

%% The node starts before the daemon, as at boot or in a container.
fresh_for_root(Config) ->
    as_root(Config, fun(User) -> recorded_as_user(start_node(User, []), User) end).

fresh_for_nobody(Config) ->
    as_nobody(Config, fun(User) -> recorded_as_user(start_node(User, []), User) end).

%% Root's daemon uses the file that a user's node has created.
fresh_for_nobody_and_root(Config) ->
    as_nobody(Config, fun(User) -> recorded_as_user(start_node(User, []), User#{command := []}) end).

%% An earlier LTTng process left its files without a daemon, or ended before it set their size.
wait_file_that_is_there(Config) ->
    [as_nobody(Config, fun(User) ->
                               Node = start_node(User,
                                                 ["for f in ", wait_files(), "; do ", Make,
                                                  "; chown nobody $f; chmod 640 $f; done"]),
                               recorded_as_user(Node, User)
                       end) || Make <- ["truncate --size=4096 $f", ": >$f"]].

shm_read_only(Config) ->
    as_nobody(Config, fun(User) ->
                              Node = start_node(User, "mount -o remount,ro /dev/shm"),
                              says(<<"/dev/shm/lttng-ust-wait-">>, <<"Read-only file system">>, Node),
                              {0, _} = in_machine(Node, "mount -o remount,rw /dev/shm"),
                              {module, _} = test_node:call(Node, fun() -> l(dyntrace) end),
                              recorded_as_user(Node, User)
                      end).

%% As in a container with the host's /dev/shm, the files of root's daemon exist.
shm_read_only_with_roots_file(Config) ->
    Make = ["truncate --size=4096 ", wait_file_of_root(), " && mount -o remount,ro /dev/shm"],
    as_nobody(Config, fun(User) ->
                              Node = start_node(User, Make),
                              says(<<"only root's session daemon can record">>, <<"Read-only file system">>, Node),
                              test_node:stop(Node)
                      end),
    as_root(Config, fun(User) ->
                            Node = start_node(User, Make),
                            ?assertEqual(available, lttng_of(Node)),
                            test_node:stop(Node)
                    end).

%% LTTng's library would read a file that has no page, which raises SIGBUS.
shm_full(Config) ->
    as_root(Config, fun(User) ->
                            Node = start_node(User, ["mount -o remount,size=64k /dev/shm; "
                                                     "for f in ", wait_files(), "; do truncate --size=4096 $f; done; "
                                                     "head -c 100000 /dev/zero >/dev/shm/full 2>/dev/null"]),
                            says(<<"/dev/shm/lttng-ust-wait-">>, <<"no space left">>, Node),
                            {0, _} = in_machine(Node, "rm /dev/shm/full; mount -o remount,size=512m /dev/shm"),
                            {module, _} = test_node:call(Node, fun() -> l(dyntrace) end),
                            recorded_as_user(Node, User)
                    end).

%% LTTng's library would wait for a writer, and hold the dynamic linker's lock.
shm_has_a_fifo(Config) ->
    as_root(Config, fun(User) ->
                            Node = start_node(User, ["mkfifo ", wait_file_of_root()]),
                            says(<<"/dev/shm/lttng-ust-wait-">>, <<"not a regular file">>, Node),
                            ?assertEqual({module, crypto},
                                         test_node:call(Node, fun() -> code:ensure_loaded(crypto) end)),
                            test_node:stop(Node)
                    end).

%% No file is created or written at the target of a link.
shm_has_a_link(Config) ->
    as_root(Config, fun(User) ->
                            Node = start_node(User, ["ln -s /dev/shm/victim ", wait_file_of_root()]),
                            says(<<"/dev/shm/lttng-ust-wait-">>, <<"symbolic links">>, Node),
                            ?assertMatch({0, <<"lttng-ust-wait-", _/binary>>}, in_machine(Node, "ls /dev/shm")),
                            test_node:stop(Node)
                    end).

shm_has_anothers_file(Config) ->
    as_nobody(Config, fun(User) ->
                              Node = start_node(User, ["for f in ", wait_files(), "; do truncate --size=4096 $f; done; "
                                                       "chmod 644 /dev/shm/*"]),
                              says(<<"only root's session daemon can record">>, <<"belongs to another user">>, Node),
                              test_node:stop(Node)
                      end).

says(What, Why, Node) ->
    {missing, Text} = lttng_of(Node),
    ?assertMatch({_, _}, binary:match(Text, What), Text),
    ?assertMatch({_, _}, binary:match(Text, Why), Text).

%% The name of the installed LTTng's wait file: it contains the number of the ABI, which is in LTTng's library.
wait_file_of_root() ->
    {0, Name} = test_shell:run("grep -aoE 'lttng-ust-wait-[0-9]+' "
                               "\"$(ldconfig -p | sed -n 's/.*liblttng-ust.so.1 .*=> //p' | head -1)\" | head -1", []),
    "/dev/shm/" ++ string:trim(binary_to_list(Name)).

wait_files() ->
    [[wait_file_of_root(), User, " "] || User <- ["", "-0", "-$(id -u nobody)"]].

%% A user: the prefix that runs a command as this user, and a code path that the user can read.
as_root(Config, Fun) ->
    test_require:tool(os:cmd("id -u") =/= "0\n" andalso "not root", Config),
    Fun(#{command => [], paths => [Path || Path <- code:get_path(), test_node:is_ours(Path)]}).

as_nobody(Config, Fun) ->
    test_require:tool(os:find_executable("setpriv") =:= false andalso "setpriv is not installed", Config),
    App = copy(Config, "dyntrace"),
    %% A folder that the user can read, unlike the tests' own.
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-home-" ++ os:getpid()),
    Tests = filename:dirname(filename:dirname(code:which(?MODULE))),
    {0, _} = test_shell:run("mkdir -p '~ts' && cp -R '~ts' '~ts' '~ts/' && chown -R nobody '~ts'",
                          [Home, App, Tests, Home, Home]),
    try Fun(#{command => ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", "HOME=" ++ Home],
              paths => [filename:join(Home, Folder) || Folder <- ["dyntrace/ebin", "test/library", "test/support"]]})
    after file:del_dir_r(Home)
    end.

%% A node of this user, on a machine that root has prepared with this command.
start_node(#{command := Command, paths := Paths}, Prepare) ->
    Machine = ["mount -t tmpfs -o mode=1777 tmpfs /dev/shm && "
               "mkdir -p /run/lttng && mount -t tmpfs tmpfs /run/lttng || exit; ", Prepare, "\nexec \"$@\""],
    Node = test_node:start(#{exec => {os:find_executable("unshare"),
                                    ["--mount", "--propagation", "private", "sh", "-c", lists:flatten(Machine),
                                     "sh"] ++ Command ++
                                        [os:find_executable("erl")]},
                           paths => Paths}),
    _ = lttng_of(Node),
    Node.

%% A daemon and a session of this user record the node's events.
recorded_as_user(Node, #{command := Command}) ->
    try
        until_available(Node),
        Daemon = test_lttng:start_daemon(lists:flatten(lists:join(" ", [on_machine(Node) | Command]))),
        try
            Session = start(Daemon, [message_send], [{node, Node}]),
            Pid = test_node:call(Node, fun sender/0),
            send(mine, Pid, [{node, Node}]),
            ?assertMatch([{message_send, #{message := <<"mine">>}}], test_lttng:stop(Session))
        after
            test_lttng:stop_daemon(Daemon)
        end
    after
        test_node:stop(Node)
    end.

on_machine(Node) ->
    "nsenter --mount --root --wd --target " ++ test_node:os_pid(Node).

in_machine(Node, Command) ->
    test_shell:run("~s sh -c '~s'", [on_machine(Node), Command]).

%% -- Missing providers ----------------------------------------------------------------------------

provider_missing(Config) ->
    lttng_missing(Config, fun(File) -> ok = file:delete(File) end, <<"not built">>).

provider_foreign(Config) ->
    lttng_missing(Config, fun(File) -> ok = file:write_file(File, "not a library\n") end, <<"dyntrace_lttng.so">>).

%% A library without the provider.
provider_of_another_build(Config) ->
    lttng_missing(Config,
                  fun(File) ->
                          ok = file:delete(File),
                          {ok, _} = file:copy(filename:join(filename:dirname(File), "dyntrace.so"), File)
                  end, <<"not a provider of dyntrace">>).

no_lttng_at_run_time(Config) ->
    lttng_missing(Config,
                  fun(File) ->
                          {0, _} = test_shell:run("cd '~ts' && echo 'int f(void) { return 0; }' > none.c && "
                                                  "cc -shared -fPIC none.c -o libno-such-lttng-ust.so && "
                                                  "rm -f '~ts' && cc -shared -fPIC none.c -o '~ts' "
                                                  "-Wl,--no-as-needed -L. -lno-such-lttng-ust && "
                                                  "rm libno-such-lttng-ust.so",
                                                  [filename:dirname(File), File, File])
                  end, <<"libno-such-lttng-ust.so">>).

%% The module is loaded, USDT is available, and info/0 says why LTTng is not.
lttng_missing(Config, Break, Says) ->
    Folder = copy(Config, "dyntrace"),
    Break(filename:join([Folder, "priv", "dyntrace_lttng.so"])),
    Node = test_node:start(#{args => ["-pa", filename:join(Folder, "ebin")]}),
    ?assertMatch(#{backends := #{usdt := available}}, test_node:call(Node, fun dyntrace:info/0)),
    {missing, Why} = lttng_of(Node),
    test_node:stop(Node),
    ?assertMatch({_, _}, binary:match(Why, Says), Why).

%% -- Helpers -----------------------------------------------------------------------------------------

with_daemon(Fun) ->
    Daemon = test_lttng:start_daemon(),
    try Fun(Daemon)
    after test_lttng:stop_daemon(Daemon)
    end.

%% A session whose tracepoints are enabled in the node.
start(Daemon, Probes, Config) ->
    start(Daemon, Probes, Config, #{}).

start(Daemon, Probes, Config, Options) ->
    %% The node registers before the session starts. In a node that registers later, tracepoints are enabled slightly
    %% before they record.
    _ = test_node:call(?config(node, Config), fun dyntrace:info/0),
    until_known(Daemon, Config),
    Session = test_lttng:start(Daemon, Probes, Options),
    until_listeners(Probes, Config),
    Session.

recorded(Probes, Config, Fun) ->
    with_daemon(fun(Daemon) ->
                        Session = start(Daemon, Probes, Config),
                        Result = Fun(),
                        {Result, test_lttng:stop(Session)}
                end).

run(Probe, Config) ->
    test_node:call(?config(node, Config), fun() -> test_cases:run(Probe) end).

all_listeners(Config) ->
    test_node:call(?config(node, Config), fun dyntrace:listeners/0).

listeners(Config) ->
    [Name || #{name := Name, backends := Backends} <- all_listeners(Config), lists:member(lttng, Backends)].

until_listeners(Probes, Config) ->
    test_wait:until("LTTng's enabled tracepoints", lists:sort(Probes), fun() -> lists:sort(listeners(Config)) end).

%% The daemon lists the node's tracepoints.
until_known(Daemon, Config) ->
    test_wait:until("the daemon knows the node",
                    fun() -> tracepoints(Daemon, Config) =/= [] orelse test_lttng:lttng(Daemon, "list -u", []) end).

%% On a busy machine, loading the provider takes longer than the module waits for it.
until_available(Node) ->
    test_wait:until("the provider is loaded", available, fun() -> lttng_of(Node) end).

%% The state of LTTng, once the provider is no longer being loaded.
lttng_of(Node) ->
    Now = fun() -> maps:get(lttng, maps:get(backends, test_node:call(Node, fun dyntrace:info/0))) end,
    test_wait:until("the provider is loaded, or can't be", fun(Seen) -> Seen =/= {missing, <<"being loaded">>} end,
                    Now),
    Now().

tracepoints(Daemon, Config) ->
    lists:sort(test_lttng:tracepoints(Daemon, test_node:os_pid(?config(node, Config)))).

sender() -> usdt_SUITE:sender().

send(Message, Pid, Config) -> usdt_SUITE:send(Message, Pid, Config).

%% On the node: a traced process that sends endlessly, and counts its messages.
flooder() ->
    Dead = dead(),
    Pid = spawn(fun() -> flood_on(Dead, 0) end),
    1 = test_trace:trace(Pid, true, [send, ?TRACER]),
    Pid.

flood_on(Dead, N) ->
    Dead ! flood,
    receive {how_many, From} -> From ! {sent, N} after 0 -> ok end,
    flood_on(Dead, N + 1).

goes_on(Pid, Config) ->
    Sent = fun() ->
                   test_node:call(?config(node, Config),
                                  fun() -> Pid ! {how_many, self()}, receive {sent, N} -> N end end)
           end,
    Began = Sent(),
    test_wait:until({sent_more_than, Began + 1000}, fun(Now) -> Now > Began + 1000 end, Sent).

copy(Config, Name) ->
    dyntrace_SUITE:copy(Config, Name).

l(Module) ->
    code:purge(Module),
    code:load_file(Module).
