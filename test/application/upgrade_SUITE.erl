%% An appup loads another version of the library into a node under load, with consumers attached before and after.
-module(upgrade_SUITE).

-include("../support/suite.hrl").

-define(NEXT, "99.0.0").
-define(MESSAGES, 200).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [appup_names_all, up_and_down_followed, up_and_down_packed, up_and_down_by_hand, not_started].

%% Two builds in one folder, as releases have them.
init_per_suite(Config) ->
    %% Not in the suite's own folder, because bpftrace can't read a path with an @.
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-upgrade-" ++ os:getpid()),
    This = test_shell:version(),
    Dirs = [{Version, build(Version, This, Folder)} || Version <- [This, ?NEXT]],
    test_require:tool(test_bpftrace:missing(), [{folder, Folder}, {this, This}, {dirs, Dirs} | Config]).

end_per_suite(Config) ->
    ok = file:del_dir_r(?config(folder, Config)).

%% A copy of this build with that version.
build(Version, This, Folder) ->
    Dir = filename:join([Folder, "lib", "dyntrace-" ++ Version]),
    Built = filename:dirname(filename:dirname(code:which(dyntrace))),
    {0, _} = test_shell:run("mkdir -p '~ts' && cp -RL '~ts/ebin' '~ts/priv' '~ts' && cd '~ts/ebin' && "
                            "sed -i 's/\"~ts\"/\"~ts\"/' dyntrace.appup dyntrace.app",
                            [Dir, Built, Built, Dir, Dir, This, Version]),
    %% As systools packs it: the modules that the application lists, and all of priv.
    {0, _} = test_shell:run("mkdir -p '~ts' && cp -R '~ts' '~ts' && rm '~ts/ebin/dyntrace.beam'",
                            [filename:dirname(packed(Dir)), Dir, packed(Dir), packed(Dir)]),
    Dir.

packed(Dir) ->
    filename:join([filename:dirname(filename:dirname(Dir)), "packed", filename:basename(Dir)]).

%% Configured by the command line, because the application of another version does not have settings made by hand.
init_per_testcase(Test = up_and_down_packed, Config) ->
    start(Test, [{dirs, [{Version, packed(Dir)} || {Version, Dir} <- ?config(dirs, Config)]} | Config]);
init_per_testcase(Test, Config) ->
    start(Test, Config).

start(Test, Config) ->
    This = dir(this, Config),
    Follow = atom_to_list(lists:member(Test, [up_and_down_followed, up_and_down_packed])),
    Node = test_node:start(#{args => ["-dyntrace", "follow", Follow],
                           paths => [filename:join(This, "ebin") | test_node:test_paths()]}),
    {ok, _} = test_node:call(Node, fun() -> application:ensure_all_started(sasl) end),
    ok = test_node:call(Node, fun() -> logger:set_primary_config(level, error) end),
    [{node, Node}, {sink, test_node:call(Node, fun() -> spawn(follow_SUITE, sink, []) end)} | Config].

end_per_testcase(_, Config) ->
    test_node:stop(?config(node, Config)).

%% -- Tests ---------------------------------------------------------------------------------

appup_names_all(Config) ->
    Ebin = filename:join(dir(this, Config), "ebin"),
    {ok, [{application, dyntrace, Keys}]} = file:consult(filename:join(Ebin, "dyntrace.app")),
    {ok, [{Version, [{_, Up}], [{_, Down}]}]} = file:consult(filename:join(Ebin, "dyntrace.appup")),
    ?assertEqual(proplists:get_value(vsn, Keys), Version),
    [?assertEqual(lists:sort(proplists:get_value(modules, Keys)),
                  lists:sort([element(2, Load) || Load <- Instructions, element(1, Load) =:= load_module]))
     || Instructions <- [Up, Down]].

%% The worker sets all flags again when a consumer attaches to the new library. A consumer of the old library does not
%% disturb the load and its node.
up_and_down_followed(Config) ->
    up_and_down(fun() -> ok end, Config).

%% This module is not in the folder of the others, and its folder is found again.
up_and_down_packed(Config) ->
    up_and_down_followed(Config).

%% Tracing that was set by hand stays, and the VM calls the new code.
up_and_down_by_hand(Config) ->
    up_and_down(fun() -> test_trace:trace(all, true, [send, {tracer, dyntrace, []}]) end, Config).

up_and_down(Trace, Config) ->
    call(Config, fun() ->
                         {ok, _} = application:ensure_all_started(dyntrace),
                         Trace()
                 end),
    Load = call(Config, fun() -> [spawn(follow_SUITE, Player, []) || Player <- [play, play, read_files]] end),
    Attached = attach(this, Config),
    numbered(Attached, Config),
    {This, Next} = {dir(this, Config), dir(next, Config)},
    {ok, _} = call(Config, fun() -> release_handler:upgrade_app(dyntrace, Next) end),
    Upgraded = numbered_at(next, Config),
    {ok, _} = call(Config, fun() -> release_handler:downgrade_app(dyntrace, ?config(this, Config), This) end),
    Downgraded = numbered_at(this, Config),
    ?assertEqual([true], lists:usort(call(Config, fun() -> [is_process_alive(Pid) || Pid <- Load] end))),
    _ = [test_bpftrace:stop_script(Consumer) || Consumer <- [Attached, Upgraded, Downgraded]],
    ok.

%% The appup starts nothing on a node where the application does not run.
not_started(Config) ->
    ?assertEqual({ok, ok, undefined},
                 call(Config, fun() -> {dyntrace_app:pause(), dyntrace_app:resume(), whereis(dyntrace_sup)} end)),
    is_at(this, Config).

%% -- Helpers ---------------------------------------------------------------------------------

%% All modules have that version, and a consumer that attaches to its library receives every event.
numbered_at(Which, Config) ->
    is_at(Which, Config),
    Consumer = attach(Which, Config),
    numbered(Consumer, Config),
    Consumer.

is_at(Which, Config) ->
    Dir = dir(Which, Config),
    Version = filename:basename(Dir),
    #{version := V, library := Library, undecoded := Undecoded} = call(Config, fun dyntrace:info/0),
    ?assertEqual({Version, filename:join([Dir, "priv", "dyntrace.so"]), #{}}, {"dyntrace-" ++ V, Library, Undecoded}),
    [?assert(lists:prefix(Dir ++ "/", call(Config, fun() -> code:which(Module) end)), Module)
     || Module <- [dyntrace, dyntrace_app, dyntrace_autotracer, dyntrace_tag]].

%% Returns when the consumer is attached and its probes are traced. It prints only the messages to the sink.
attach(Which, Config) ->
    Library = filename:join([dir(Which, Config), "priv", "dyntrace.so"]),
    Consumer = test_bpftrace:start_script(["usdt:", Library, ":org_erlang_dyntrace:message_send "
                                           "/str(arg1) == \"", test_cases:text(?config(sink, Config)), "\"/ "
                                           "{ printf(\"%llu %s\\n\", nsecs, str(arg2)); }"], #{}),
    test_wait:until("sends are traced",
                    fun() -> Flags = test_autotracer:traced(new, Config), lists:member(send, Flags) orelse Flags end),
    Consumer.

%% Each message of a new process arrives.
numbered(Consumer, Config) ->
    Sink = ?config(sink, Config),
    Texts = call(Config, fun() ->
                                 {Pid, Ref} = spawn_monitor(fun() ->
                                                                    [Sink ! {numbered, self(), N}
                                                                     || N <- lists:seq(1, ?MESSAGES)]
                                                            end),
                                 receive {'DOWN', Ref, process, Pid, normal} -> ok end,
                                 [iolist_to_binary(["{numbered,", pid_to_list(Pid), $,, integer_to_list(N), $}])
                                  || N <- lists:seq(1, ?MESSAGES)]
                         end),
    Mine = fun() ->
                   [Text || Text <- test_bpftrace:in_time(test_bpftrace:lines(Consumer)), lists:member(Text, Texts)]
           end,
    test_wait:until("messages that have not arrived", [], fun() -> Texts -- Mine() end),
    ?assertEqual(Texts, Mine()).

dir(this, Config) -> proplists:get_value(?config(this, Config), ?config(dirs, Config));
dir(next, Config) -> proplists:get_value(?NEXT, ?config(dirs, Config)).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
