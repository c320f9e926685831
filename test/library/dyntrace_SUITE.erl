%% The facade, and loading the module: everything that requires no consumer.
-module(dyntrace_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [describes_itself, no_consumer, any_arguments, undecoded_is_counted, library_missing, library_foreign,
     without_application, without_backends, odd_folder, embedded_by_hand, built_again, module_alone].

init_per_testcase(_, Config) ->
    [{node, test_node:start()} | Config].

end_per_testcase(_, Config) ->
    test_node:stop(?config(node, Config)).

describes_itself(Config) ->
    lttng_SUITE:until_available(?config(node, Config)),
    {Info, Available, Vsn} =
        call(Config, fun() ->
                             {ok, [{application, dyntrace, Keys}]} =
                                 file:consult(filename:join(filename:dirname(code:which(dyntrace)), "dyntrace.app")),
                             {dyntrace:info(), dyntrace:available(), proplists:get_value(vsn, Keys)}
                     end),
    #{library := Library} = Info,
    Provider = list_to_binary(filename:join(filename:dirname(Library), "dyntrace_lttng.so")),
    Pid = test_node:os_pid(?config(node, Config)),
    Attach = lists:concat(["bpftrace /proc/", Pid, "/root", filename:dirname(Library), "/bpftrace/who_talks.bt /proc/",
                           Pid, "/root", Library]),
    ?assertEqual(#{version => Vsn, library => Library, lttng_library => Provider, attach => Attach, following => off,
                   lttng_providers => #{org_erlang_dyntrace => available, org_erlang_otp => available},
                   backends => #{usdt => available, lttng => available}, undecoded => #{}}, Info),
    ?assertEqual(absolute, filename:pathtype(Library)),
    ?assert(filelib:is_regular(Library)),
    ?assert(Available).

no_consumer(Config) ->
    ?assertEqual([], call(Config, fun dyntrace:listeners/0)),
    ?assertEqual([discard],
                 call(Config, fun() -> lists:usort([enabled(E) || #{events := Es} <- dyntrace:probes(), E <- Es]) end)),
    ?assertEqual(trace, call(Config, fun() -> dyntrace:enabled(trace_status, [], self()) end)).

enabled(#{group := seq_trace}) ->
    dyntrace:enabled(seq_trace, [], self());
enabled(#{group := Group, tag := Tag}) when Group =:= port_send; Group =:= port_receive ->
    "port_" ++ Callbacks = atom_to_list(Group),
    apply(dyntrace, list_to_atom("enabled_" ++ Callbacks), [Tag, [], hd(erlang:ports())]);
%% For a call, the VM calls `enabled' without the function.
enabled(#{group := Group, tag := Tag}) when Group =:= files; Group =:= telemetry ->
    dyntrace:enabled_call(Tag, [], self());
enabled(#{group := Group, tag := Tag}) ->
    apply(dyntrace, list_to_atom("enabled_" ++ atom_to_list(Group)), [Tag, [], self()]).

%% The callbacks also handle arguments that no VM passes.
any_arguments(Config) ->
    ?assertEqual([discard], call(Config, fun ask_with_any_arguments/0)),
    call(Config, fun trace_with_any_arguments/0).

%% On the node: what the callbacks return.
ask_with_any_arguments() ->
    lists:usort([apply(dyntrace, F, [Tag, [], Tracee])
                 || {F, 3} <- callbacks("enabled"), Tag <- tags() -- [trace_status], Tracee <- any_terms()]).

trace_with_any_arguments() ->
    Terms = any_terms(),
    Around = fun(N) -> lists:nthtail(N, Terms) ++ lists:sublist(Terms, N) end,
    [?assertEqual(ok, apply(dyntrace, F, [Tag, State, Tracee, Term, Opts]))
     || {F, 5} <- callbacks("trace"), Tag <- tags(), Tracee <- [self(), "x"],
        {State, Term, Extra} <- lists:zip3(Around(3), Terms, Around(7)), Opts <- [#{extra => Extra}, Extra]],
    ok.

tags() ->
    lists:usort([Tag || #{events := Events} <- dyntrace:probes(), #{tag := Tag} <- Events]
                ++ [seq_trace, no_such_tag, {}, 17]).

any_terms() ->
    [undefined, [], [a | b], {}, {a, b, c}, {a, b, [c | d]}, {'EXIT', self(), x}, {send, {1, 2}, a, b, c},
     {send, {1, 2}, self(), self(), c},
     17, 1.5, <<1:3>>, #{}, [{wordsize, 1}, {heap_block_size, 1 bsl 70}], self(), hd(erlang:ports()), make_ref(),
     fun() -> ok end,
     1 bsl 5000, "text", binary:copy(<<1>>, 5000)].

callbacks(Prefix) ->
    [Export || Export = {F, _} <- dyntrace:module_info(exports), lists:prefix(Prefix, atom_to_list(F))].

%% Unknown tags are counted. Events of a probe that is not enabled are not decoded.
undecoded_is_counted(Config) ->
    Undecoded = call(Config,
                     fun() ->
                             ok = dyntrace:trace_procs(of_a_later_release, [], self(), x, #{}),
                             ok = dyntrace:trace(seq_trace, [], 17, not_a_tuple, #{}),
                             ok = dyntrace:trace_procs(exit, [], not_a_pid, x, #{}),
                             ok = dyntrace:trace_procs(spawned, [], self(), self(), #{}),
                             maps:get(undecoded, dyntrace:info())
                     end),
    ?assertEqual(#{unknown => 2}, Undecoded).

%% -- Without the library, or with another ------------------------------------------------------

library_missing(Config) ->
    Folder = copy(Config, "dyntrace"),
    ok = file:delete(filename:join([Folder, "priv", "dyntrace.so"])),
    #{backends := #{usdt := {missing, Why}}} = answers_nothing(Folder),
    ?assertMatch({_, _}, binary:match(Why, <<"No such file">>)).

library_foreign(Config) ->
    Folder = copy(Config, "dyntrace"),
    ok = file:write_file(filename:join([Folder, "priv", "dyntrace.so"]), "not a library\n"),
    #{backends := #{usdt := {missing, Why}}} = answers_nothing(Folder),
    ?assertMatch({_, _}, binary:match(Why, <<"dyntrace.so">>)).

answers_nothing(Folder) ->
    Node = node_with(Folder),
    Info = test_node:call(Node, fun dyntrace:info/0),
    ?assertMatch(#{library := undefined, undecoded := Empty} when map_size(Empty) =:= 0, Info),
    ?assertEqual({false, [], [], discard, ok},
                 test_node:call(Node, fun() -> {dyntrace:available(), dyntrace:probes(), dyntrace:listeners(),
                                              dyntrace:enabled_send(send, [], self()),
                                              dyntrace:trace_send(send, [], self(), hello, #{extra => self()})} end)),
    test_node:stop(Node),
    Info.

%% The module finds the library in a priv folder whose parent does not have the application's name.
without_application(Config) ->
    loaded_from(copy(Config, "elsewhere")).

odd_folder(Config) ->
    loaded_from(copy(Config, "a folder ö/dyntrace")).

loaded_from(Folder) ->
    Node = node_with(Folder),
    Library = filename:join([Folder, "priv", "dyntrace.so"]),
    ?assertMatch(#{library := Library, backends := #{usdt := available}}, test_node:call(Node, fun dyntrace:info/0)),
    test_node:stop(Node).

%% Built without sys/sdt.h and LTTng: the probes are described, but no consumer can attach.
without_backends(Config) ->
    Folder = copy(Config, "dyntrace"),
    C = filename:join(Folder, "c_src"),
    {0, Output} = test_shell:run("make -C '~ts' USDT=no LTTNG=no VIEWER=no", [C]),
    [?assertMatch({_, _}, binary:match(Output, <<"building without ", Backend/binary>>))
     || Backend <- [<<"USDT">>, <<"LTTng">>]],
    [ok = file:delete(File) || File <- filelib:wildcard(filename:join([Folder, "priv", "dyntrace_lttng*.so"]))],
    Node = node_with(Folder),
    ?assertMatch(#{backends := #{usdt := {missing, <<"built without sys/sdt.h", _/binary>>},
                                 lttng := {missing, <<"not built", _/binary>>}}},
                 test_node:call(Node, fun dyntrace:info/0)),
    ?assertEqual({false, length(dyntrace:probes()), [], discard},
                 test_node:call(Node, fun() -> {dyntrace:available(), length(dyntrace:probes()), dyntrace:listeners(),
                                              dyntrace:enabled_send(send, [], self())} end)),
    test_node:stop(Node).

%% Embedded mode loads no module on demand, so this module loads those that its annotations call.
embedded_by_hand(_) ->
    Node = test_node:start(#{args => ["-mode", "embedded", "-boot", "start_clean"]}),
    ?assertEqual({{module, dyntrace}, true},
                 {peer:call(Node, code, load_file, [dyntrace]), peer:call(Node, dyntrace, available, [])}),
    ?assertError(badarg, peer:call(Node, dyntrace, p, ["a", 1])),
    test_node:stop(Node).

%% The library was rebuilt, with modules whose old code is loaded: `l(dyntrace)' also loads the new code.
built_again(Config) ->
    {ok, dyntrace_library, Former} = compile:forms([{attribute, 1, module, dyntrace_library}], []),
    ?assertMatch(#{backends := #{usdt := available}},
                 call(Config, fun() ->
                                      _ = code:purge(dyntrace_library),
                                      {module, _} = code:load_binary(dyntrace_library, "dyntrace_library.beam", Former),
                                      {module, _} = c:l(dyntrace),
                                      dyntrace:info()
                              end)).

%% A folder with this module but no other of the application: the module loads, and nothing is traced.
module_alone(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "alone"),
    ok = filelib:ensure_path(Folder),
    {ok, _} = file:copy(code:which(dyntrace), filename:join(Folder, "dyntrace.beam")),
    [begin
         Node = test_node:start(#{args => ["-mode", Mode, "-boot", "start_clean"], paths => [Folder]}),
         {module, dyntrace} = peer:call(Node, code, load_file, [dyntrace]),
         ?assertEqual({[], false, false, discard},
                      {peer:call(Node, dyntrace, probes, []), peer:call(Node, dyntrace, available, []),
                       peer:call(Node, dyntrace, mark, [name, "text"]),
                       peer:call(Node, dyntrace, enabled, [send, [], self()])}),
         test_node:stop(Node)
     end || Mode <- ["interactive", "embedded"]].

%% -- Helpers -------------------------------------------------------------------------------------

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).

%% A copy of the built application, in a folder with that name.
copy(Config, Name) ->
    To = filename:join(?config(priv_dir, Config), Name),
    From = filename:dirname(filename:dirname(code:which(dyntrace))),
    ok = filelib:ensure_path(To),
    {0, _} = test_shell:run("cp -RL '~ts/ebin' '~ts/priv' '~ts/c_src' '~ts'", [From, From, test_shell:project(), To]),
    To.

node_with(Folder) ->
    test_node:start(#{paths => [filename:join(Folder, "ebin") | test_node:test_paths()]}).
