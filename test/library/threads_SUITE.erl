%% The library's threads under ThreadSanitizer: the thread that loads LTTng's provider, and the schedulers, which use
%% the tables of texts, the lists of BIFs and NIFs, the budget and the allowed probes.
%%
%% The library is built with ThreadSanitizer, and runs in a stock VM that preloads its runtime. The VM is not
%% instrumented: races in the library's own memory are reported, but not races in the VM's memory or inside functions of
%% libc (memcpy, snprintf). Each test fails if its node reports a race.
-module(threads_SUITE).

-include("../support/suite.hrl").

-nifs([race/0]).

-define(CFLAGS, "-O1 -g -fsanitize=thread").

%% The deadlock check is off, because a VM holds more locks at a time than the check can store.
-define(OPTIONS, "detect_deadlocks=0 ignore_noninstrumented_modules=1 report_signal_unsafe=0 exitcode=0").

-define(COPIES, 5).

suite() ->
    [{timetrap, {minutes, 5}}].

all() ->
    [race_is_reported, provider_waited_for, provider_loaded, tables, builtins, ports, budget_and_allowed_probes,
     everything_traced].

init_per_suite(Config) ->
    {_, Runtime} = test_shell:run("cc -print-file-name=libtsan.so", []),
    Tsan = string:trim(unicode:characters_to_list(Runtime)),
    {Fixed, Why} = test_shell:run("setarch -R true 2>&1", []),
    Missing = [["no runtime of ThreadSanitizer (Debian: libgcc-dev)"] || not filelib:is_file(Tsan)] ++
        [["addresses can't be fixed: ", Why] || Fixed =/= 0] ++ [Lttng
                                                                 || Lttng <- [test_lttng:missing()], Lttng =/= false],
    _ = test_require:tool(Missing =/= [] andalso hd(Missing), Config),
    [{tsan, Tsan}, {built, built(Config)} | Config].

end_per_suite(_) -> ok.

%% Builds the library, and the library that makes texts without probes.
built(Config) ->
    Folder = dyntrace_SUITE:copy(Config, "dyntrace"),
    {0, _} = test_shell:run("make -C '~ts/c_src' VIEWER=no CFLAGS='" ?CFLAGS "' 2>&1", [Folder]),
    true = os:putenv("DYNTRACE_TEST_CFLAGS", ?CFLAGS),
    Texts = try test_text_nif:build(?config(priv_dir, Config))
            after os:unsetenv("DYNTRACE_TEST_CFLAGS")
            end,
    #{folder => Folder, texts => Texts}.

init_per_testcase(Case, Config) ->
    Reports = filename:join(?config(priv_dir, Config), Case),
    Tsan = ?config(tsan, Config),
    #{folder := Folder} = ?config(built, Config),
    Erts = filename:join([code:root_dir(), "erts-" ++ erlang:system_info(version), "bin"]),
    %% A shell crashes with the preloaded runtime. So erlexec starts the node without a shell, and programs of the node
    %% run without the runtime.
    Node = test_node:start(#{exec => {os:find_executable("setarch"),
                                      ["-R", "env", "LD_PRELOAD=" ++ Tsan, filename:join(Erts, "erlexec")]},
                             env => [{"ROOTDIR", code:root_dir()}, {"BINDIR", Erts}, {"EMU", "beam"},
                                     {"PROGNAME", "erl"}, {"TSAN_OPTIONS", ?OPTIONS " log_path=" ++ Reports}],
                             args => ["-eval", "os:unsetenv(\"LD_PRELOAD\")."],
                             paths => [filename:join(Folder, "ebin"),
                                       filename:dirname(code:which(demo_system)) | test_node:test_paths()]}),
    %% Programs of the node, which the VM starts before its own code runs, write separate reports.
    [{node, Node}, {reports, Reports ++ "." ++ test_node:os_pid(Node)} | Config].

end_per_testcase(race_is_reported, _) ->
    ok;
end_per_testcase(_, Config) ->
    test_node:stop(?config(node, Config)),
    case reports(Config) of
        [] -> ok;
        Reports ->
            ct:pal("~ts", [lists:join("\n", Reports)]),
            {fail, {races, [Summary
                            || Report <- Reports,
                            {match, [Summary]} <- [re:run(Report, "SUMMARY: .*", [{capture, first, binary}])]]}}
    end.

%% The reports of the node.
reports(Config) ->
    [Report || {ok, Text} <- [file:read_file(?config(reports, Config))],
               Report <- binary:split(Text, <<"==================\n">>, [global, trim_all])].

%% -- Tests ---------------------------------------------------------------------------------------

%% A known race is reported, which shows that the other tests can find races.
race_is_reported(Config) ->
    Library = filename:join(?config(priv_dir, Config), "race"),
    {0, _} = test_shell:run("cc " ?CFLAGS " -shared -fPIC -isystem '~ts' -o '~ts.so' '~ts' 2>&1",
                            [filename:join([code:root_dir(), "usr", "include"]), Library,
                             filename:join(?config(data_dir, Config), "race.c")]),
    call(Config, fun() ->
                         ok = erlang:load_nif(Library, 0),
                         on_all_schedulers(1000000, fun race/0)
                 end),
    test_node:stop(?config(node, Config)),
    ?assertMatch([_ | _], [Report || Report <- reports(Config), binary:match(Report, <<"data race">>) =/= nomatch,
                                     binary:match(Report, <<"race.c:">>) =/= nomatch]).

race() -> erlang:nif_error(not_loaded).

%% The library is loaded while a session daemon hangs. Its thread waits, and loads the provider when the daemon answers.
%% Meanwhile events fire, and processes ask for the state of the provider.
provider_waited_for(Config) ->
    Daemon = test_lttng:start_daemon(),
    ok = test_lttng:signal_daemon(Daemon, "STOP"),
    Busy = call(Config, fun busy/0),
    true = lttng_SUITE:is_waiting(?config(node, Config)),
    ok = test_lttng:signal_daemon(Daemon, "CONT"),
    lttng_SUITE:until_available(?config(node, Config)),
    call(Config, fun() -> [ended(Pid) || Pid <- Busy] end),
    test_lttng:stop_daemon(Daemon).

%% Upgrades the library again and again, each time to a copy that has not loaded its provider yet, while a session
%% daemon hangs and then answers. Meanwhile events fire, and processes ask for the state of the provider.
provider_loaded(Config) ->
    #{folder := Built} = ?config(built, Config),
    Daemon = test_lttng:start_daemon(),
    _ = call(Config, fun dyntrace:info/0),
    lttng_SUITE:until_known(Daemon, Config),
    Session = test_lttng:start(Daemon, [message_send]),
    [begin
         Folder = filename:join([?config(priv_dir, Config), "copy-" ++ integer_to_list(N), "dyntrace"]),
         {0, _} = test_shell:run("mkdir '~ts' && cp -R '~ts' '~ts'", [filename:dirname(Folder), Built, Folder]),
         ok = test_lttng:signal_daemon(Daemon, "STOP"),
         Busy = call(Config, fun() ->
                                     true = code:replace_path(dyntrace, filename:join(Folder, "ebin")),
                                     code:purge(dyntrace),
                                     {module, dyntrace} = code:load_file(dyntrace),
                                     busy()
                             end),
         ok = test_lttng:signal_daemon(Daemon, "CONT"),
         lttng_SUITE:until_available(?config(node, Config)),
         lttng_SUITE:until_listeners([message_send], Config),
         call(Config, fun() -> [ended(Pid) || Pid <- Busy] end)
     end || N <- lists:seq(1, ?COPIES)],
    ?assert(length(test_lttng:stop(Session)) > 0),
    test_lttng:stop_daemon(Daemon).

%% On the node: processes that fire events, and ask for the state of the provider.
busy() ->
    [spawn(fun() ->
                   1 = erlang:trace(self(), true, [send, {tracer, dyntrace, []}]),
                   fired_and_asked()
           end) || _ <- schedulers()].

fired_and_asked() ->
    #{backends := _} = dyntrace:info(),
    _ = dyntrace:listeners(),
    _ = [self() ! {a, message, N} || N <- lists:seq(1, 100)],
    receive stop -> ok after 0 -> drop(), fired_and_asked() end.

drop() ->
    receive {a, message, _} -> drop() after 0 -> ok end.

ended(Pid) ->
    Ref = monitor(process, Pid),
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

%% More names than the tables hold, on threads of all kinds. Then the setting of the texts changes while texts are made.
tables(Config) ->
    #{texts := Texts} = ?config(built, Config),
    call(Config, fun() ->
                         ok = test_text_nif:load(Texts),
                         _ = text_SUITE:on_many_threads(2),
                         %% A persistent term is not copied to each process.
                         ok = persistent_term:put(?MODULE, [Term || {_, Term, _} <- test_hostile:terms()]),
                         on_all_schedulers(5, fun() ->
                                                      ok = test_text_nif:show(shape),
                                                      _ = [test_text_nif:Function(Term)
                                                           || Term <- persistent_term:get(?MODULE),
                                                              Function <- [text, text_dirty_cpu]],
                                                      ok = test_text_nif:show(full)
                                              end)
                 end).

%% All schedulers look a BIF up, while the lists of BIFs and NIFs change.
builtins(Config) ->
    counted(bif__entry, fun() -> element(1, builtins_SUITE:fired_while_lists_change(20000)) end, Config).

%% All schedulers open and close ports, and name each other's ports.
ports(Config) ->
    Rounds = 200,
    counted(port__exit, fun() ->
                                Flags = [ports, running_ports, send, 'receive', {tracer, dyntrace, []}],
                                0 = erlang:trace(new_ports, true, Flags),
                                ok = on_all_schedulers(Rounds, fun socket/0),
                                0 = erlang:trace(new_ports, false, Flags),
                                Rounds * length(schedulers())
                        end, Config).

socket() ->
    {ok, Socket} = gen_udp:open(0),
    _ = [dyntrace:set_port(Port, a_name, self()) || Port <- erlang:ports()],
    ok = gen_udp:close(Socket).

%% The probe has as many events as Fun says.
counted(Probe, Fun, Config) ->
    #{folder := Folder} = ?config(built, Config),
    _ = test_require:tool(test_bpftrace:missing(), Config),
    Consumer = builtins_SUITE:counting([Probe], filename:join(Folder, "priv/dyntrace.so")),
    Fired = call(Config, Fun),
    ?assertEqual(Fired, builtins_SUITE:counted(Probe, test_bpftrace:stop_script(Consumer))).

%% All schedulers send more than the budget allows, while budget, allowed probes and texts change. File probes are not
%% recorded: each change would set or clear a pattern per function, and each of these waits for all schedulers.
budget_and_allowed_probes(Config) ->
    with_session([Name || #{name := Name, provider := org_erlang_dyntrace, backends := Backends} <- dyntrace:probes(),
                          lists:member(lttng, Backends), not lists:member(Name, [file_call, file_return])],
                 fun() ->
                         test_autotracer:start([{interval, 10}, {budget, 1000}], Config),
                         test_autotracer:until_traced(Config),
                         Floods = call(Config, fun() ->
                                                       Sink = spawn(fun test_autotracer:sink/0),
                                                       [spawn(fun() -> test_autotracer:flood(Sink) end)
                                                        || _ <- schedulers()]
                                               end),
                         test_autotracer:until_following(pauses, fun(Pauses) -> Pauses >= 1 end, Config),
                         call(Config, fun() ->
                                              [ok = dyntrace:follow(#{probes => Probes, budget => Budget, text => Text})
                                               || _ <- lists:seq(1, 5),
                                                  {Probes, Budget, Text} <- [{[message_send], 100000, shape},
                                                                             {all, infinity, full}, {all, 1000, full}]]
                                      end),
                         test_autotracer:until_following(skipped, fun(Skipped) -> Skipped > 0 end, Config),
                         call(Config, fun() -> [exit(Pid, kill) || Pid <- Floods], dyntrace:unfollow() end)
                 end, Config).

%% All flags under load, recorded by LTTng.
everything_traced(Config) ->
    with_session(['*'],
                 fun() ->
                         _ = call(Config, fun load_SUITE:start/0),
                         load_SUITE:progresses(load_SUITE:orders(Config), Config),
                         load_SUITE:healthy(Config)
                 end, Config).

with_session(Probes, Fun, Config) ->
    Daemon = test_lttng:start_daemon(),
    _ = call(Config, fun dyntrace:info/0),
    lttng_SUITE:until_known(Daemon, Config),
    Session = test_lttng:start(Daemon, Probes, #{channel => "--subbuf-size=64k --num-subbuf=2"}),
    try Fun()
    after
        ok = test_lttng:destroy(Session),
        test_lttng:stop_daemon(Daemon)
    end.

%% -- On the node -----------------------------------------------------------------------------------

schedulers() ->
    lists:seq(1, 2 * erlang:system_info(schedulers)).

%% Calls Fun this many times in each of several processes, more than there are schedulers.
on_all_schedulers(Times, Fun) ->
    Workers = [spawn_monitor(fun() -> repeat(Times, Fun) end) || _ <- schedulers()],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Workers],
    ok.

repeat(0, _) -> ok;
repeat(Times, Fun) -> _ = Fun(), repeat(Times - 1, Fun).

%% -- Helpers ---------------------------------------------------------------------------------------

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
