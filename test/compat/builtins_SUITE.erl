%% Which calls are calls of BIFs, of NIFs, and of other functions: each fires only the probes of its kind.
-module(builtins_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, detach/2, call/2, until_pattern/3, until_following/3, until_untraced/1,
                          keep_log/1, logged/1]).

-define(ENTRIES, [bif__entry, nif__entry, global__function__entry]).
-define(CALLS, ?ENTRIES ++ [bif__return, nif__return, function__return]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [bifs_are_builtins, each_kind, return_trace, by_the_application, loaded_later, loaded_again, lists_change, too_many,
     other_terms].

%% -- Tests -------------------------------------------------------------------------------

%% The list of BIFs agrees with erlang:is_builtin/3.
bifs_are_builtins(Config) ->
    {Listed, Builtins} =
        call(Config, fun() ->
                             {Bifs, _} = dyntrace_builtins:lists(),
                             Modules = lists:usort([Module || {Module, _, _} <- Bifs]),
                             {module, _} = lists:foldl(fun(Module, _) -> code:ensure_loaded(Module) end, none, Modules),
                             {[Bif || Bif = {Module, _, _} <- Bifs, erlang:module_loaded(Module)],
                              [{M, F, A} || {M, _} <- code:all_loaded(), {F, A} <- M:module_info(exports),
                                            erlang:is_builtin(M, F, A)]}
                     end),
    ?assertEqual([], Builtins -- Listed),
    ?assertEqual([], [Mfa || Mfa = {M, F, A} <- Listed, not call(Config, fun() -> erlang:is_builtin(M, F, A) end)]).

%% An exception also ends a call of a BIF or NIF.
each_kind(Config) ->
    Consumer = attach(?CALLS, Config),
    {Pid, Calls} = called([{exception_trace}], Config),
    Expected = lists:append([[event(Kind, entry, Pid, Mfa)] ++ [event(Kind, return, Pid, Mfa)
                                                                || Kind =/= function orelse Ends =:= returns]
                             || {Kind, Mfa, Ends} <- Calls]),
    until_seen(Expected, Consumer),
    ?assertEqual(lists:sort(Expected), lists:sort(test_bpftrace:stop(Consumer))).

%% The VM reports exceptions only with {exception_trace}.
return_trace(Config) ->
    Consumer = attach(?CALLS, Config),
    {Pid, Calls} = called([{return_trace}], Config),
    Expected = lists:append([[event(Kind, entry, Pid, Mfa)] ++ [event(Kind, return, Pid, Mfa) || Ends =:= returns]
                             || {Kind, Mfa, Ends} <- Calls]),
    until_seen(Expected, Consumer),
    ?assertEqual(lists:sort(Expected), lists:sort(test_bpftrace:stop(Consumer))).

%% BIFs, NIFs and functions of Erlang code in the application's configuration.
by_the_application(Config) ->
    start([{functions, [{erlang, md5, '_'}, {lists, reverse, 2}, {prim_file, '_', '_'}]}], Config),
    Consumer = attach(?CALLS, Config),
    until_following(calls, exception, Config),
    Pid = call(Config, fun() ->
                               Self = self(),
                               Pid = spawn(fun() -> _ = calls(), Self ! {self(), done} end),
                               receive {Pid, done} -> test_cases:text(Pid) end
                       end),
    Expected = [event(Kind, At, Pid, Mfa)
                || {Kind, Mfa, _} <- kinds() ++ [{function, {prim_file, get_cwd, 0}, returns}],
                   lists:member(Mfa, [{erlang, md5, 1}, {lists, reverse, 2}, {prim_file, get_cwd_nif, 0},
                                      {prim_file, get_cwd, 0}]),
                   At <- [entry, return]],
    until_seen(Expected, Consumer),
    %% prim_file has helpers, which differ between releases.
    Events = [Event || Event = {_, #{p := P, mfa := Mfa}} <- test_bpftrace:stop(Consumer), P =:= Pid,
                       lists:member(Event, Expected) orelse binary:match(Mfa, <<"prim_file">>) =:= nomatch],
    ?assertEqual(lists:sort(Expected), lists:sort(Events)),
    until_untraced(Config).

%% A NIF library that is loaded after the consumer has attached.
loaded_later(Config) ->
    start([{interval, 20}, {functions, [{crypto, hash_nif, 2}]}], Config),
    ?assertNot(call(Config, fun() -> erlang:module_loaded(crypto) end)),
    Consumer = attach([nif__entry, nif__return], Config),
    until_following(calls, exception, Config),
    until_following(sources, [builtins], Config),
    call(Config, fun() -> {module, crypto} = code:ensure_loaded(crypto) end),
    until_pattern({crypto, hash_nif, 2}, [{'_', [], [{exception_trace}]}], Config),
    until_kind([nif__entry, nif__return], <<"crypto:hash_nif/2">>, fun() -> crypto:hash(md5, "a") end, Consumer,
               Config),
    detach(Consumer, Config).

%% A function that is a NIF in one version of its module, and Erlang code in the others.
loaded_again(Config) ->
    Library = filename:join(?config(priv_dir, Config), "test_builtin"),
    {0, _} = test_shell:run("cc -shared -fPIC -isystem '~ts' -o '~ts.so' '~ts' 2>&1",
                            [filename:join([code:root_dir(), "usr", "include"]), Library,
                             filename:join(?config(data_dir, Config), "test_builtin.c")]),
    start([{interval, 20}, {functions, [{test_builtin, value, 0}]}], Config),
    Consumer = attach(?ENTRIES, Config),
    until_following(calls, call, Config),
    lists:foreach(fun({Value, Kind}) ->
                          call(Config, fun() -> load(version(Value, Library)) end),
                          until_pattern({test_builtin, value, 0}, [], Config),
                          Seen = length(test_bpftrace:events(Consumer)),
                          until_last([Kind], <<"test_builtin:value/0">>,
                                     fun() -> Value = test_builtin:value() end, Seen, Consumer, Config)
                  end, [{1, global__function__entry}, {2, nif__entry}, {3, global__function__entry}, {2, nif__entry}]),
    _ = test_bpftrace:stop(Consumer).

%% While the lists change, a function that is in all of them keeps its kind.
lists_change(Config) ->
    Consumer = counting(?ENTRIES, ?config(library, Config)),
    {Fired, Changes} = call(Config, fun() -> fired_while_lists_change(200000) end),
    Lines = test_bpftrace:stop_script(Consumer),
    ?assertEqual([Fired, 0, 0], [counted(Probe, Lines) || Probe <- [bif__entry, nif__entry, global__function__entry]]),
    ?assert(Changes > 10, Changes).

%% The lists hold a limited number of functions; the rest count as ordinary functions, and the log says so.
too_many(Config) ->
    keep_log(Config),
    Mfas = [{test, f, 0} | [{test, list_to_atom("f" ++ integer_to_list(N)), N rem 256} || N <- lists:seq(1, 4999)]],
    {LeftOut, First, Last} =
        call(Config, fun() ->
                             LeftOut = dyntrace:set_builtins([], Mfas),
                             {LeftOut, hd(Mfas), lists:last(Mfas)}
                     end),
    ?assertEqual(5000 - 4096, LeftOut),
    Consumer = attach(?ENTRIES, Config),
    call(Config, fun() -> [fire(1, Mfa) || Mfa <- [First, Last]] end),
    until_seen_kinds([nif__entry, global__function__entry], Consumer),
    _ = test_bpftrace:stop(Consumer),
    call(Config, fun() ->
                         State = {state, [], {Mfas, []}, erlang:monotonic_time(millisecond)},
                         {on, _} = dyntrace_builtins:poll([], State),
                         ok
                 end),
    ?assertMatch([{warning, "dyntrace: too many NIFs" ++ _, [Left]}] when Left > 5000 - 4096, logged(Config)).

%% Other terms do not change the lists.
other_terms(Config) ->
    Consumer = attach(?ENTRIES, Config),
    call(Config, fun() ->
                         [badarg = try dyntrace:set_builtins(Bifs, Nifs) catch error:badarg -> badarg end
                          || {Bifs, Nifs} <- [{none, []}, {[], [none]}, {[{lists, reverse}], []},
                                              {[{lists, reverse, 256}], []}, {[{lists, reverse, -1}], []},
                                              {[{lists, "reverse", 2}], []}, {[{1, reverse, 2}], []},
                                              {[{test, f, 0} | tail], []}]],
                         fire(1, {lists, reverse, 2}),
                         fire(1, {test, f, 0})
                 end),
    until_seen_kinds([bif__entry, global__function__entry], Consumer),
    _ = test_bpftrace:stop(Consumer).

%% -- On the node ---------------------------------------------------------------------------

%% Traced calls of each kind: BIFs of two modules, by apply, by a fun, from within their module and as a tail call; a
%% NIF that is not exported; exceptions.
calls() ->
    _ = erlang:md5("a"),
    _ = apply(erlang, test_cases:identity(md5), ["a"]),
    _ = (test_cases:identity(fun erlang:md5/1))("a"),
    _ = try erlang:md5(test_cases:identity(not_iodata)) catch error:badarg -> ok end,
    _ = lists:reverse([1, 2], test_cases:identity([])),
    _ = lists:reverse([1, 2, 3]),
    {ok, _} = prim_file:get_cwd(),
    _ = try prim_buffer:size(test_cases:identity(no_buffer)) catch error:badarg -> ok end,
    _ = try test_cases:fail(error, oops) catch error:oops -> ok end,
    lists:reverse([1, 2], []).

%% The kind of each call.
kinds() ->
    Identity = {function, {test_cases, identity, 1}, returns},
    Md5 = {bif, {erlang, md5, 1}, returns},
    Reverse = {bif, {lists, reverse, 2}, returns},
    [Md5, Identity, Md5, Identity, Md5, Identity, {bif, {erlang, md5, 1}, raises}, Identity, Reverse, Reverse,
     {nif, {prim_file, get_cwd_nif, 0}, returns}, Identity, {nif, {prim_buffer, size, 1}, raises},
     {function, {test_cases, fail, 2}, raises}, Reverse].

called(Actions, Config) ->
    Pid = call(Config, fun() ->
                               {module, _} = code:ensure_loaded(test_cases),
                               [1 = test_trace:trace_pattern(Mfa, [{'_', [], Actions}], [local])
                                || Mfa <- lists:usort([Mfa || {_, Mfa, _} <- kinds()])],
                               {Pid, _} = test_cases:traced([call], fun ?MODULE:calls/0),
                               Pid
                       end),
    {test_cases:text(Pid), kinds()}.

%% Fires the probe of an entry, as the VM does for a traced call.
fire(0, _) -> ok;
fire(N, Mfa) ->
    ok = dyntrace:trace_call(call, [], self(), Mfa, #{}),
    fire(N - 1, Mfa).

%% All schedulers fire calls of a BIF. Returns how many, and how often the lists changed meanwhile.
fired_while_lists_change(Calls) ->
    Mfa = {lists, reverse, 2},
    Others = [{test, list_to_atom("f" ++ integer_to_list(N)), 1} || N <- lists:seq(1, 2000)],
    Writer = spawn_link(fun() -> write(Mfa, Others, 0) end),
    Readers = [spawn_monitor(fun() -> fire(Calls, Mfa) end) || _ <- lists:seq(1, erlang:system_info(schedulers))],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Readers],
    Writer ! {self(), stop},
    receive {Writer, Changes} -> {Calls * length(Readers), Changes} end.

%% Writes lists with few and with many functions, with the BIF at different positions.
write(Mfa, Others, N) ->
    0 = dyntrace:set_builtins([Mfa], []),
    0 = dyntrace:set_builtins(Others ++ [Mfa], []),
    receive {From, stop} -> From ! {self(), N + 2}
    after 0 -> write(Mfa, Others, N + 2)
    end.

%% Versions of the module test_builtin; version 2 has a NIF.
version(Value, Library) ->
    Call = fun(M, F, Args) ->
                   {call, 1, {remote, 1, {atom, 1, M}, {atom, 1, F}}, Args}
           end,
    OnLoad = Call(erlang, load_nif, [{string, 1, Library}, {integer, 1, 0}]),
    Function = fun(Name, Body) -> {function, 1, Name, 0, [{clause, 1, [], [], [Body]}]} end,
    Forms = [{attribute, 1, module, test_builtin}, {attribute, 1, export, [{value, 0}]}]
        ++ [{attribute, 1, on_load, {on_load, 0}} || Value =:= 2]
        ++ [Function(on_load, OnLoad) || Value =:= 2]
        ++ [Function(value, case Value of
                                2 -> Call(erlang, nif_error, [{atom, 1, not_loaded}]);
                                _ -> {integer, 1, Value}
                            end)],
    {ok, test_builtin, Code} = compile:forms(Forms, []),
    Code.

load(Code) ->
    _ = code:purge(test_builtin),
    {module, test_builtin} = code:load_binary(test_builtin, "test_builtin", Code).

%% -- Helpers -------------------------------------------------------------------------------

%% A consumer that counts the events of these probes and prints the events of one. A path with an `@' has to be an
%% argument.
counting(Probes, Library) ->
    Counts = [["usdt:$1:erlang:", atom_to_list(Probe), " { @[\"", atom_to_list(Probe), "\"] = count(); }\n"]
              || Probe <- Probes],
    test_bpftrace:start_script(Counts, #{args => [Library]}).

counted(Probe, Lines) ->
    tools_SUITE:sum(Lines, ["@[", atom_to_list(Probe), "]"]).

event(Kind, At, Pid, Mfa) ->
    Fields = #{p => Pid, mfa => test_cases:location(Mfa)},
    case {Kind, At} of
        {function, entry} -> {global__function__entry, Fields#{depth => 0}};
        {function, return} -> {function__return, Fields#{depth => 0}};
        {bif, entry} -> {bif__entry, Fields};
        {bif, return} -> {bif__return, Fields};
        {nif, entry} -> {nif__entry, Fields};
        {nif, return} -> {nif__return, Fields}
    end.

until_seen(Expected, Consumer) ->
    test_wait:until("all expected events", [], fun() -> Expected -- test_bpftrace:events(Consumer) end).

until_seen_kinds(Probes, Consumer) ->
    test_wait:until("one event of each probe", Probes,
                    fun() -> [Probe || {Probe, _} <- test_bpftrace:events(Consumer)] end).

%% Calls until these probes have fired for the function.
until_kind(Probes, Mfa, Call, Consumer, Config) ->
    test_wait:until({Probes, Mfa}, Probes,
                    fun() ->
                            _ = call(Config, Call),
                            Seen = [Probe || {Probe, #{mfa := M}} <- test_bpftrace:events(Consumer), M =:= Mfa],
                            [Probe || Probe <- Probes, lists:member(Probe, Seen)]
                    end).

%% Calls until the last of the new events, after the first ones, is from that probe.
until_last(Probes, Mfa, Call, After, Consumer, Config) ->
    test_wait:until({"last", Probes, Mfa}, Probes,
                    fun() ->
                            _ = call(Config, Call),
                            Events = lists:nthtail(After, test_bpftrace:events(Consumer)),
                            Seen = [Probe || {Probe, #{mfa := M}} <- Events, M =:= Mfa],
                            lists:nthtail(max(0, length(Seen) - 1), Seen)
                    end).
