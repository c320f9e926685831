%% Runs the scripts of priv/bpftrace and the commands of docs/perf.md, and compares the output with known behaviour.
-module(tools_SUITE).

-include("../support/suite.hrl").

-define(TRACER, {tracer, dyntrace, []}).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [every_script_is_here, usage, no_such_library, who_talks, who_sent, messages, names_of_many, names_come_later,
     calls, call_latency, no_calls, bif_latency, files, ports, cpu, cpu_or_disk, memory, gc_pauses, run_queue,
     spawn_rate, exits, dead_letters, spans, nodes, vm_events, in_a_container, page_bpftrace, page_perf, page_gdb,
     page_bcc].

init_per_suite(Config) ->
    test_require:tool(test_bpftrace:missing(), Config).

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Needs = maps:get(Case, #{page_perf => "perf", page_gdb => "gdb", page_bcc => "tplist-bpfcc"}, "bpftrace"),
    _ = test_require:tool(os:find_executable(Needs) =:= false andalso Needs ++ " is not installed", Config),
    _ = test_require:tool(Case =:= page_perf andalso not filelib:is_dir("/sys/kernel/tracing/events")
                          andalso "perf has no tracefs: as root, mount -t tracefs tracefs /sys/kernel/tracing", Config),
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    [{node, Node}, {library, Library} | Config].

end_per_testcase(_, Config) ->
    #{undecoded := Undecoded} = test_node:call(?config(node, Config), fun dyntrace:info/0),
    test_node:stop(?config(node, Config)),
    case map_size(Undecoded) of
        0 -> ok;
        _ -> {fail, {undecoded, Undecoded}}
    end.

%% Each script has a case, and is generated from the sources.
every_script_is_here(_) ->
    Sources = filelib:wildcard(filename:join(test_shell:project(), "scripts/*.bt")),
    ?assertEqual([filename:basename(File, ".bt") || File <- Sources] -- ["names"], names()),
    ?assertEqual([], [Name || Name <- names(), not lists:member(list_to_atom(Name), all())]).

%% Without the library's path, or with a wrong one, each script prints its usage.
usage(_) -> ends_with_usage("", "").

no_such_library(_) -> ends_with_usage("/no/such/dyntrace.so", "/no/such/dyntrace\\.so.*\n.*").

ends_with_usage(Argument, Before) ->
    [begin
         {Status, Says} = test_shell:run("cd '~ts' && bpftrace ~ts.bt ~ts 2>&1", [scripts(), Name, Argument]),
         ?assertNotEqual(0, Status),
         ?assertMatch({match, _}, re:run(Says, [Before, "usage: bpftrace ", Name, "\\.bt LIBRARY"]), {Name, Says})
     end || Name <- names()].

names() ->
    [filename:basename(File, ".bt") || File <- filelib:wildcard(filename:join(scripts(), "*.bt"))].

%% -- The scripts -----------------------------------------------------------------------------

who_talks(Config) ->
    {Lines, {From, To}} =
        script(who_talks, Config,
               fun() ->
                       To = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
                       true = register(listener, To),
                       identity(To, "shop_db:init/1", "listener"),
                       {From, _} = test_cases:traced([send], fun() ->
                                                                     [begin To ! hello, listener ! hello end
                                                                      || _ <- lists:seq(1, 20)]
                                                             end),
                       To ! stop,
                       {test_cases:text(From), test_cases:text(To)}
               end),
    ?assertEqual(20, sum(Lines, ["@sent[", From, ", , ", To, ", listener]"])),
    ?assertEqual(20, sum(Lines, ["@sent[", From, ", , listener, ]"])).

%% On the node: reports the identity of a process to the scripts, as the application does.
identity(Pid, Initial, Name) ->
    ok = dyntrace:report(process_identity, {test_cases:text(Pid), "", Initial, Name, '', "a_node"}).

%% Calls that return and calls that end in each kind of exception, with their durations; and more calls than are
%% printed.
calls(Config) ->
    {Lines, Pid} =
        script(calls, Config,
               fun() ->
                       1 = test_trace:trace_pattern({?MODULE, sell, 2}, [{'_', [], [{exception_trace}]}], [local]),
                       {Pid, _} = test_cases:traced([call], fun() ->
                                                                    identity(self(), "shop_clerk:init/1", ""),
                                                                    [try ?MODULE:sell(How, "tea") catch _:_ -> ok end
                                                                     || How <- [slow, 65, error, exit, throw]]
                                                            end),
                       {_, _} = test_cases:traced([call], fun() -> [?MODULE:sell(N, many) || N <- lists:seq(1, 2000)]
                                                          end),
                       test_cases:text(Pid)
               end,
               fun(Now) -> length(ended(Now)) + left(Now) =:= 2005 end),
    Ended = ended(Lines),
    Expected = [binary_to_list(Pid) ++ "  tools_SUITE:sell/2 " ++ Text
                || Text <- ["[slow,\"tea\"] -> sold", "[65,\"tea\"] -> {ok,65}", "[error,\"tea\"] error: {no,\"tea\"}",
                            "[exit,\"tea\"] exit: {shutdown,\"tea\"}", "[throw,\"tea\"] throw: \"tea\""]],
    ?assertEqual(Expected, [Text || {_, Text} <- Ended, lists:member(Text, Expected)]),
    {Us, _} = lists:keyfind(hd(Expected), 2, Ended),
    ?assert(Us >= 20000 andalso Us < 10000000, Us),
    ?assert(lists:any(fun(Line) -> has(Line, <<Pid/binary, " is shop_clerk:init/1">>) end, Lines), Lines),
    Left = left(Lines),
    ?assertEqual({2005, true}, {length(Ended) + Left, Left > 1000}).

%% The printed calls, each with its duration.
ended(Lines) ->
    [{list_to_integer(Us), Text} || Line <- Lines, {match, [Us, Text]} <- [matched(Line, "^ *(\\d+) us  (.*)$")]].

%% The number of calls that are not printed.
left(Lines) ->
    lists:sum([list_to_integer(N)
               || Line <- Lines, {match, [N]} <- [matched(Line, "^ +and (\\d+) calls more in this second$")]]).

matched(Line, Pattern) ->
    re:run(Line, Pattern, [{capture, all_but_first, list}]).

sell(slow, _) -> nap(20), sold;
sell(error, What) -> error({no, What});
sell(exit, What) -> exit({shutdown, What});
sell(throw, What) -> throw(What);
sell(N, _) -> {ok, N}.

%% Messages of a process and of a timer.
who_sent(Config) ->
    {Lines, {From, To}} =
        script(who_sent, Config,
               fun() ->
                       Self = self(),
                       To = spawn(fun Loop() -> receive stop -> ok; Message -> Self ! Message, Loop() end end),
                       _ = test_trace:trace_pattern('receive', dyntrace:sender_pattern(), []),
                       1 = test_trace:trace(To, true, ['receive', ?TRACER]),
                       From = spawn(fun() -> [To ! hello || _ <- lists:seq(1, 20)] end),
                       [receive hello -> ok end || _ <- lists:seq(1, 20)],
                       [begin
                            _ = erlang:send_after(1, To, tick),
                            receive tick -> ok end
                        end || _ <- lists:seq(1, 5)],
                       _ = test_trace:trace_pattern('receive', true, []),
                       To ! stop,
                       {test_cases:text(From), test_cases:text(To)}
               end),
    ?assertEqual(20, sum(Lines, ["@received[", To, ", , ", From, ", ]"])),
    ?assertEqual(5, sum(Lines, ["@received[", To, ", , , clock_service]"])).

call_latency(Config) ->
    {Lines, ok} =
        script(call_latency, Config,
               fun() ->
                       [1 = test_trace:trace_pattern({?MODULE, F, 1}, [{'_', [], [{exception_trace}]}], [local])
                        || F <- [nap, fails]],
                       {_, _} = test_cases:traced([call], fun() ->
                                                                [?MODULE:nap(20) || _ <- lists:seq(1, 5)],
                                                                [try ?MODULE:fails(N) catch error:_ -> ok end
                                                                 || N <- [1, 2]]
                                                        end),
                       ok
               end),
    ?assertEqual(5, at_least(16 * 1024, histogram("@us[tools_SUITE:nap/1]", Lines))),
    ?assertEqual(5, at_least(0, histogram("@us[tools_SUITE:nap/1]", Lines))),
    ?assertEqual(2, sum(Lines, "@exceptions[tools_SUITE:fails/1]")).

%% No functions are configured: the script prints what to do, and stops printing it after the first call.
no_calls(Config) ->
    Silent = test_bpftrace:start_file(filename:join(scripts(), "call_latency.bt"), [?config(library, Config)]),
    Meanwhile = [<<"No call yet.">>, <<"dyntrace:follow(#{functions => [{my_mod, '_', '_'}]})">>,
                 <<"shows `calls` in `following`">>],
    test_wait:until("no call yet", [],
                    fun() ->
                            Now = test_bpftrace:lines(Silent),
                            [Says || Says <- Meanwhile, not lists:any(fun(Line) -> has(Line, Says) end, Now)]
                    end),
    Lines = test_bpftrace:stop_script(Silent),
    ?assert(lists:any(fun(Line) -> has(Line, <<"No call was seen">>) end, Lines), Lines),
    {Traced, _} = script(call_latency, Config,
                         fun() ->
                                 1 = test_trace:trace_pattern({?MODULE, nap, 1}, [{'_', [], [{exception_trace}]}],
                                                              [local]),
                                 test_cases:traced([call], fun() -> ?MODULE:nap(1) end)
                         end),
    ?assertNot(lists:any(fun(Line) -> has(Line, <<"No call was seen">>) end, Traced)).

%% Short and long BIFs, one that raises, a NIF, and a function of Erlang code: the number of calls, and their durations
%% as the caller measured them.
bif_latency(Config) ->
    {Lines, Took} =
        script(bif_latency, Config,
               fun() ->
                       Large = binary:copy(<<"dyntrace">>, 1 bsl 20),
                       [1 = test_trace:trace_pattern(Mfa, [{'_', [], [{exception_trace}]}], [local])
                        || Mfa <- [{erlang, md5, 1}, {lists, reverse, 2}, {prim_file, get_cwd_nif, 0},
                                   {?MODULE, nap, 1}]],
                       {_, Took} = test_cases:traced([call], fun() ->
                                                                     Us = md5_us(Large),
                                                                     [lists:reverse([N], []) || N <- lists:seq(1, 20)],
                                                                     [{ok, _} = prim_file:get_cwd()
                                                                      || _ <- lists:seq(1, 3)],
                                                                     try erlang:md5(not_iodata)
                                                                     catch error:badarg -> ?MODULE:nap(1)
                                                                     end,
                                                                     Us
                                                             end),
                       Took
               end),
    Calls = fun(Key) -> at_least(0, histogram(Key, Lines)) end,
    ?assertEqual({2, 20, 3}, {Calls("@bif_us[erlang:md5/1]"), Calls("@bif_us[lists:reverse/2]"),
                              Calls("@nif_us[prim_file:get_cwd_nif/0]")}),
    Us = sum(Lines, "@total_us[erlang:md5/1]"),
    ?assert(Us > Took div 2 andalso Us < Took + 10000, {Us, Took}),
    %% The function of Erlang code is not listed.
    ?assertEqual(3, length([Key || {Key, _} <- counts(Lines)])).

md5_us(Binary) ->
    Began = erlang:monotonic_time(microsecond),
    _ = erlang:md5(Binary),
    erlang:monotonic_time(microsecond) - Began.

%% The application traces the functions; nothing is configured on the node.
files(Config) ->
    Node = ?config(node, Config),
    Path = filename:join(?config(priv_dir, Config), "files"),
    {ok, _} = test_node:call(Node, fun() -> application:ensure_all_started(dyntrace) end),
    %% bpftrace attaches to one probe after another: a process has a name only if its spawn is traced, too.
    IsTraced = fun() ->
                       #{files := Files, processes := Flags} = maps:get(following, dyntrace:info()),
                       Files andalso lists:member(procs, Flags)
               end,
    {Lines, Pid} =
        script(files, Config,
               fun() -> test_wait:until("files and spawns are traced", IsTraced) end,
               fun() ->
                       {Pid, Ref} = spawn_monitor(?MODULE, writes, [Path]),
                       receive {'DOWN', Ref, process, Pid, normal} -> test_cases:text(Pid) end
               end,
               fun(_) -> true end),
    Key = fun(Map, Function) -> ["@", Map, "[prim_file:", Function, ", ", Pid, ", tools_SUITE:writes/1]"] end,
    [?assertEqual(Count, sum(Lines, Key("calls", Function)), {Function, Lines})
     || {Function, Count} <- [{"open/2", 1}, {"write/2", 20}, {"sync/1", 20}, {"close/1", 1}, {"read_file/1", 3}]],
    ?assert(at_least(0, histogram("@us[prim_file:sync/1]", Lines)) >= 20, Lines),
    Worst = sum(Lines, Key("worst_us", "sync/1")),
    ?assert(Worst > 0 andalso Worst < 10000000, Worst),
    ?assert(sum(Lines, "@failed[prim_file:read_file/1, enoent]") >= 3, Lines),
    ?assertEqual([], [Line || Line <- Lines, has(Line, <<", ok]">>) orelse has(Line, <<", eof]">>)]).

writes(Path) ->
    {ok, File} = prim_file:open(Path, [write]),
    [begin
         ok = prim_file:write(File, <<"line">>),
         ok = prim_file:sync(File)
     end || _ <- lists:seq(1, 20)],
    ok = prim_file:close(File),
    [{error, enoent} = prim_file:read_file([Path, ".not"]) || _ <- lists:seq(1, 3)].

%% A port of the test driver and sockets of both kinds: the data that Erlang has written to them and read from them.
ports(Config) ->
    {Lines, Outputs} =
        script(ports, Config,
               fun() -> test_port_cases:run(driver__output) ++ test_port_cases:run(driver__outputv) end),
    ?assertEqual(4, length(Outputs)),
    [begin
         Key = ["[", Name, ", ", Process, ", ]"],
         ?assertEqual({1, Bytes}, {sum(Lines, ["@commands", Key]), sum(Lines, ["@bytes", Key])}, {Name, Process})
     end || {_, #{process := Process, port_name := Name, bytes := Bytes}} <- Outputs],
    Counts = fun(Map) -> [sum(Lines, [Map, "[", Name, "]"])
                          || Name <- ["tcp_inet", "udp_inet", "test_output_drv", "test_outputv_drv"]]
             end,
    %% The listener has a connection, an accepted socket has data. No event reports that an accepted socket is opened.
    ?assertEqual([2, 1, 1, 1], Counts("@opens")),
    ?assertEqual([2, 1, 0, 0], Counts("@inputs")),
    %% The sockets are closed untraced.
    ?assertEqual([0, 0, 1, 1], Counts("@exits")).

%% One process computes, another sleeps: their time on a scheduler is at most their lifetime.
cpu(Config) ->
    {Lines, {{Busy, Took}, {Idle, _}}} =
        script(cpu, Config,
               fun() ->
                       [Busy, Idle] = [begin
                                           {Pid, {Us, ok}} =
                                               test_cases:traced([running, exiting],
                                                                 fun() ->
                                                                         identity(self(), "shop:init/1", Name),
                                                                         timer:tc(?MODULE, Function, [Argument])
                                                                 end),
                                           {test_cases:text(Pid), Us}
                                       end || {Name, Function, Argument} <- [{"shop_db", spin, 2000000},
                                                                             {"", nap, 1000}]],
                       {Busy, Idle}
               end),
    Us = sum(Lines, ["@process_us[", Busy, ", shop_db]"]),
    %% bpftrace loses counts between printing and clearing a map, which may be far apart on a busy machine.
    ?assert(Us > Took div 2 andalso Us < Took + 100000, {Us, Took}),
    ?assert(sum(Lines, ["@process_us[", Idle, ", shop:init/1]"]) < 100000),
    Spun = sum(Lines, "@function_us[tools_SUITE:spin/2]"),
    ?assert(Spun > Us * 8 div 10 andalso Spun =< Us, {Spun, Us}).

%% A process that waits on a dirty I/O scheduler uses no CPU; on a dirty CPU scheduler it does.
cpu_or_disk(Config) ->
    Dirty = fun(Kind, Name) ->
                    test_cases:traced([running, exiting],
                                      fun() ->
                                              identity(self(), "shop:init/1", Name),
                                              erts_debug:Kind(wait, 500)
                                      end)
            end,
    Was = erts_debug:set_internal_state(available_internal_state, true),
    {Lines, [Disk, Cpu]} =
        script(cpu, Config,
               fun() ->
                       [test_cases:text(Pid) || {Pid, _} <- [Dirty(dirty_io, "shop_log"), Dirty(dirty_cpu, "shop_db")]]
               end),
    _ = Was orelse erts_debug:set_internal_state(available_internal_state, false),
    ?assert(sum(Lines, ["@dirty_io_us[", Disk, ", shop_log]"]) >= 500000, Lines),
    ?assert(sum(Lines, ["@process_us[", Disk, ", shop_log]"]) < 100000, Lines),
    ?assert(sum(Lines, ["@process_us[", Cpu, ", shop_db]"]) >= 500000, Lines),
    ?assertEqual(0, sum(Lines, ["@dirty_io_us[", Cpu, ", shop_db]"])).

%% Spends this many microseconds in one function.
spin(Us) -> spin(Us, erlang:monotonic_time(microsecond)).

spin(Us, Began) ->
    case erlang:monotonic_time(microsecond) - Began < Us of
        true -> spin(Us, Began);
        false -> ok
    end.

messages(Config) ->
    {Lines, {From, To}} =
        script(messages, Config,
               fun() ->
                       To = spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end),
                       1 = test_trace:trace(To, true, ['receive', procs, ?TRACER]),
                       true = register(listener, To),
                       {From, _} = test_cases:traced([send], fun() ->
                                                                     [begin To ! hello, listener ! hello end
                                                                      || _ <- lists:seq(1, 20)]
                                                             end),
                       Monitor = monitor(process, To),
                       To ! stop,
                       receive {'DOWN', Monitor, process, To, normal} -> ok end,
                       {test_cases:text(From), test_cases:text(To)}
               end),
    ?assertEqual(40, sum(Lines, ["@sent[", From, ", ]"])),
    %% The last one is the collection that ends the process.
    ?assertEqual(41, sum(Lines, ["@received[", To, ", listener]"])).

%% More names at once than a bpftrace map has entries: the last processes have no names, but each message is counted.
names_of_many(Config) ->
    {Lines, {From, First, Last}} =
        script(who_talks, Config,
               fun() ->
                       Many = [spawn(fun Loop() -> receive stop -> ok; _ -> Loop() end end)
                               || _ <- lists:seq(1, 10000)],
                       [identity(Pid, "shop_cart:init/1", "") || Pid <- Many],
                       persistent_term:put(test_many, Many)
               end,
               fun() ->
                       Many = persistent_term:get(test_many),
                       [First, Last] = [hd(Many), lists:last(Many)],
                       {From, _} = test_cases:traced([send], fun() -> [begin First ! hello, Last ! hello end
                                                                       || _ <- lists:seq(1, 20)] end),
                       [Pid ! stop || Pid <- Many],
                       {test_cases:text(From), test_cases:text(First), test_cases:text(Last)}
               end,
               fun(_) -> true end),
    ?assertEqual(20, sum(Lines, ["@sent[", From, ", , ", First, ", shop_cart:init/1]"])),
    ?assertEqual(20, sum(Lines, ["@sent[", From, ", , ", Last, ", ]"])).

%% Names arrive in a dump, after some events: from the end of the dump, a process has one row, with its name. The title
%% of the last rows says that they do not cover a whole second.
names_come_later(Config) ->
    {Lines, {To, Counted}} =
        script(messages, Config,
               fun() ->
                       To = spawn(fun Loop() -> receive {From, Ref} -> From ! Ref, Loop() end end),
                       1 = test_trace:trace(To, true, ['receive', ?TRACER]),
                       Ask = fun(_) -> Ref = make_ref(), To ! {self(), Ref}, receive Ref -> ok end end,
                       lists:foreach(Ask, lists:seq(1, 7)),
                       ok = dyntrace:report(dump_start, {1, 1}),
                       lists:foreach(Ask, lists:seq(1, 7)),
                       identity(To, "shop_db:init/1", ""),
                       ok = dyntrace:report(dump_end, {1, 1}),
                       persistent_term:put(test_named, {To, Ask}),
                       ok
               end,
               fun() ->
                       {To, Ask} = persistent_term:get(test_named),
                       lists:foreach(Ask, lists:seq(1, 20)),
                       {test_cases:text(To), 20}
               end,
               fun(_) -> true end),
    Received = fun(Name) -> sum(Lines, ["@received[", To, ", ", Name, "]"]) end,
    ?assertEqual({Counted, 0}, {Received("shop_db:init/1"), Received("")}),
    Titles = [Line || <<"-- ", _/binary>> = Line <- Lines],
    [?assertMatch({match, _}, re:run(Title, "^-- messages in the last \\d+ ms$")) || Title <- lists:droplast(Titles)],
    ?assertEqual(<<"-- messages since the last block, until the end">>, lists:last(Titles)).

%% The heap's size after a collection equals Erlang's.
memory(Config) ->
    Consumer = test_bpftrace:start_file(filename:join(scripts(), "memory.bt"), [?config(library, Config)]),
    {Pid, Small, Large} =
        test_node:call(?config(node, Config),
                     fun() ->
                             Self = self(),
                             Pid = spawn(fun() ->
                                                 receive traced -> ok end,
                                                 Small = heaps(),
                                                 List = lists:seq(1, 200000),
                                                 Large = heaps(),
                                                 Self ! {self(), Small, Large},
                                                 receive {stop, _} -> List end
                                         end),
                             identity(Pid, "shop_db:init/1", ""),
                             1 = test_trace:trace(Pid, true, [garbage_collection, ?TRACER]),
                             Pid ! traced,
                             receive {Pid, Small, Large} -> {test_cases:text(Pid), Small, Large} end
                     end),
    Lines = test_bpftrace:stop_script(Consumer),
    ?assert(Large >= 200000 * 16 div 1024, Large),
    Last = fun(Map) ->
                   Named = iolist_to_binary([Map, "[", Pid, ", shop_db:init/1]"]),
                   lists:last([Kb || {Key, Kb} <- counts(Lines), Key =:= Named])
           end,
    ?assertEqual({Large, Large - Small}, {Last("@heap_kb"), Last("@grown_kb")}).

%% The size of the calling process's heaps after a collection, in KiB.
heaps() ->
    true = erlang:garbage_collect(),
    {_, Info} = process_info(self(), garbage_collection_info),
    (proplists:get_value(heap_block_size, Info) + proplists:get_value(old_heap_block_size, Info))
        * erlang:system_info(wordsize) div 1024.

has(Line, What) ->
    binary:match(Line, What) =/= nomatch.

nap(Ms) -> receive after Ms -> ok end.

fails(Reason) -> error(Reason).

gc_pauses(Config) ->
    {Lines, {Pid, Minor, Major}} =
        script(gc_pauses, Config,
               fun() ->
                       Ends = fun(Probe) -> [Fields || {_, Fields} <- test_cases:run(Probe)] end,
                       Minors = Ends(gc_minor_end),
                       Majors = Ends(gc_major_end),
                       {maps:get(pid, hd(Majors)), length(Minors), length(Majors)}
               end),
    %% Each of the two runs has collections of both kinds, and both runs collect equally often.
    ?assertEqual(2 * Minor, at_least(0, histogram("@minor_us", Lines))),
    ?assertEqual(2 * Major, at_least(0, histogram("@major_us", Lines))),
    {Worst, Total} = {sum(Lines, ["@worst_us[", Pid, ", ]"]), sum(Lines, ["@total_us[", Pid, ", ]"])},
    ?assert(Worst =< Total, {Worst, Total}),
    ?assert(Total > 0 andalso Total < 1000000, Total).

%% Two processes send a message back and forth: each message wakes one.
run_queue(Config) ->
    Count = 50,
    {Lines, {Ping, Pong}} =
        script(run_queue, Config,
               fun() ->
                       Pong = spawn(fun Loop() -> receive {ball, From} -> From ! ball, Loop() end end),
                       identity(Pong, "shop:pong/0", "pong"),
                       1 = test_trace:trace(Pong, true, [send, running, ?TRACER]),
                       {Ping, _} = test_cases:traced([send, running],
                                                   fun() ->
                                                           [begin
                                                                Pong ! {ball, self()},
                                                                receive ball -> ok end,
                                                                receive after 2 -> ok end
                                                            end || _ <- lists:seq(1, Count)]
                                                   end),
                       {test_cases:text(Ping), test_cases:text(Pong)}
               end),
    Waits = at_least(0, histogram("@wait_us", Lines)),
    ?assert(Waits >= Count, Waits),
    [begin
         Us = sum(Lines, ["@worst_us[", Pid, ", ", Name, "]"]),
         ?assert(Us > 0 andalso Us < 10000000, {Name, Us})
     end || {Pid, Name} <- [{Ping, ""}, {Pong, "pong"}]].

spawn_rate(Config) ->
    {Lines, ok} =
        script(spawn_rate, Config,
               fun() ->
                       _ = test_cases:traced([procs, set_on_spawn],
                                             fun() ->
                                                     [spawn(lists, seq, [1, N]) || N <- lists:seq(1, 30)]
                                                         ++ [spawn(fun() -> ok end)]
                                                         ++ [proc_lib:spawn(lists, reverse, [[N]]) || N <- [1, 2, 3]]
                                             end),
                       ok
               end),
    ?assertEqual(30, sum(Lines, "@spawned[lists:seq/2]")),
    ?assertEqual(3, sum(Lines, "@spawned[lists:reverse/1]")),
    ?assertEqual([], [Line || Line = <<"@spawned[proc_lib", _/binary>> <- Lines]),
    ?assertEqual(1, sum(Lines, "@spawned[erlang:apply/2]")).

exits(Config) ->
    {Lines, ok} =
        script(exits, Config,
               fun() ->
                       [test_cases:traced_pid([procs], fun() -> exit(Reason) end, [])
                        || Reason <- [normal, normal, {shutdown, timeout}]],
                       ok
               end),
    ?assertEqual({2, 1}, {sum(Lines, "@exits[normal]"), sum(Lines, "@exits[{shutdown,timeout}]")}).

dead_letters(Config) ->
    {Lines, {From, Dead}} =
        script(dead_letters, Config,
               fun() ->
                       Dead = lttng_SUITE:dead(),
                       identity(Dead, "shop_db:init/1", "shop_db"),
                       Alive = spawn(fun() -> receive stop -> ok end end),
                       {From, _} = test_cases:traced([send], fun() ->
                                                                     [begin Dead ! lost, Alive ! arrives end
                                                                      || _ <- lists:seq(1, 25)]
                                                             end),
                       Alive ! stop,
                       {test_cases:text(From), test_cases:text(Dead)}
               end),
    ?assertEqual([25], [N || {_, N} <- counts(Lines)]),
    ?assertEqual(25, sum(Lines, ["@lost[", From, ", , ", Dead, ", shop_db]"])).

spans(Config) ->
    {Lines, ok} =
        script(spans, Config,
               fun() ->
                       [ok = dyntrace:span(checkout, fun() -> nap(20) end) || _ <- lists:seq(1, 5)],
                       try dyntrace:span(checkout, fun() -> fails(card) end) catch error:card -> ok end
               end),
    ?assertEqual(5, at_least(16 * 1024, histogram("@us[checkout, ok]", Lines))),
    ?assertEqual(1, at_least(0, histogram("@us[checkout, error]", Lines))).

%% The application reports these events. The node starts its distribution, and another one connects and ends.
nodes(Config) ->
    Epmd = test_node:start_epmd(),
    Node = test_node:nameless(Epmd),
    {ok, _} = test_node:call(Node, fun() -> application:ensure_all_started(dyntrace) end),
    Consumer = test_bpftrace:start_file(filename:join(scripts(), "nodes.bt"), [?config(library, Config)]),
    test_wait:until("the source", #{following => [nodes]},
                    fun() ->
                            #{following := #{sources := Sources}} = test_node:call(Node, fun dyntrace:info/0),
                            #{following => Sources}
                    end),
    {ok, _} = test_node:call(Node, fun() -> net_kernel:start('here@127.0.0.1', #{name_domain => longnames}) end),
    There = test_node:named("there", Epmd),
    true = test_node:call(Node, fun() -> net_kernel:connect_node('there@127.0.0.1') end),
    test_node:stop(There),
    test_wait:until("no node", [], fun() -> test_node:call(Node, fun erlang:nodes/0) end),
    ok = test_node:call(Node, fun net_kernel:stop/0),
    test_wait:until("four lines", fun(Lines) -> length(Lines) =:= 4 end,
                    fun() -> node_lines(test_bpftrace:lines(Consumer)) end),
    ?assertEqual([<<"'here@127.0.0.1' nodeup 'here@127.0.0.1' visible []">>,
                  <<"'here@127.0.0.1' nodeup 'there@127.0.0.1' visible []">>,
                  <<"'here@127.0.0.1' nodedown 'there@127.0.0.1' visible connection_closed">>,
                  <<"'here@127.0.0.1' nodedown 'here@127.0.0.1' visible net_kernel_terminated">>],
                 node_lines(test_bpftrace:stop_script(Consumer))),
    test_node:stop(Node),
    test_node:stop_epmd(Epmd).

%% One event of each kind that a single node can cause, with its line.
vm_events(Config) ->
    test_autotracer:start(vm_events_SUITE:low(), Config),
    Node = ?config(node, Config),
    Consumer = test_bpftrace:start_file(filename:join(scripts(), "vm_events.bt"), [?config(library, Config)]),
    test_wait:until("all events are set", [busy_dist_port, busy_port, {large_heap, 100000}, {long_gc, 1},
                                           {long_schedule, 20}],
                    fun() ->
                            Set = test_node:call(Node, fun test_autotracer:monitored/0),
                            lists:keydelete(long_message_queue, 1, Set)
                    end),
    {Texts, Events} = vm_events_SUITE:happened(Config),
    Ids = lists:zip(Texts, ["vm_events_SUITE:collects/1", "", "vm_events_SUITE:sleeps/1", "vm_events_SUITE:waits/1"]),
    Suspended = vm_events_SUITE:with_suspended_writer(
                  fun(Port, Writer) ->
                          Line = test_node:call(Node, fun() -> [["busy_port ", test_cases:text(Writer), " "],
                                                                [" ", test_cases:text(Port)]]
                                                      end),
                          [Begin, End] = [iolist_to_binary(Part) || Part <- Line],
                          test_wait:until("a suspended process",
                                          fun(Lines) -> lists:any(fun(L) -> is_between(Begin, End, L) end, Lines) end,
                                          fun() -> node_lines(test_bpftrace:lines(Consumer)) end)
                  end, Config),
    ?assertEqual(ok, Suspended),
    Expected = lists:sort([vm_line(Event, Ids) || Event <- Events]),
    test_wait:until("the events' lines", [], fun() -> Expected -- node_lines(test_bpftrace:lines(Consumer)) end),
    Lines = node_lines(test_bpftrace:stop_script(Consumer)),
    ?assertEqual(Expected, lists:sort([Line || Line <- Lines, [_, Id | _] <- [binary:split(Line, <<" ">>, [global])],
                                               lists:keymember(Id, 1, Ids)])).

is_between(Begin, End, Line) ->
    binary:longest_common_prefix([Begin, Line]) =:= byte_size(Begin) andalso
        binary:longest_common_suffix([End, Line]) =:= byte_size(End).

vm_line({vm_long_gc, #{pid := Pid, duration := Ms, heap := Heap, old_heap := Old}}, Ids) ->
    vm_line("long_gc ~s ~s ~b ms, heap ~b + ~b words", Pid, [Ms, Heap, Old], Ids);
vm_line({vm_large_heap, #{pid := Pid, heap := Heap, old_heap := Old}}, Ids) ->
    vm_line("large_heap ~s ~s ~b + ~b words", Pid, [Heap, Old], Ids);
vm_line({vm_long_schedule, #{id := Id, duration := Ms, started := In, stopped := Out}}, Ids) ->
    vm_line("long_schedule ~s ~s ~b ms, from ~s to ~s", Id, [Ms, In, Out], Ids);
vm_line({vm_long_message_queue, #{pid := Pid, type := Type}}, Ids) ->
    vm_line("message_queue ~s ~s ~s", Pid, [Type], Ids).

vm_line(Format, Id, Values, Ids) ->
    {_, Name} = lists:keyfind(Id, 1, Ids),
    iolist_to_binary(io_lib:format(Format, [Id, Name | Values])).

%% bpftrace may end after the time of a line when it is interrupted.
node_lines(Lines) ->
    [Text || Line <- Lines, {match, [Text]} <- [re:run(Line, "^\\d\\d:\\d\\d:\\d\\d  (.+)$",
                                                      [{capture, all_but_first, binary}])]].

%% -- In a container ----------------------------------------------------------------------------

%% A node whose files are visible only below its root: the command that info/0 shows works from outside.
in_a_container(Config) ->
    test_require:tool(os:find_executable("unshare") =:= false andalso "unshare is not installed", Config),
    Build = filename:dirname(filename:dirname(code:which(dyntrace))),
    Inside = "mount -t tmpfs tmpfs /mnt && cp -RL '" ++ Build ++ "/ebin' '" ++ Build ++ "/priv' /mnt && exec \"$@\"",
    Node = test_node:start(#{exec => {os:find_executable("unshare"),
                                      ["--mount", "sh", "-c", Inside, "sh", os:find_executable("erl")]},
                             paths => ["/mnt/ebin" | test_node:test_paths()]}),
    #{library := "/mnt/priv/dyntrace.so", attach := Attach} = test_node:call(Node, fun dyntrace:info/0),
    ["bpftrace", Script, Library] = string:lexemes(Attach, " "),
    ?assertNot(filelib:is_file("/mnt/priv/dyntrace.so")),
    Consumer = test_bpftrace:start_file(Script, [Library]),
    test_node:call(Node, fun() ->
                               Dead = lttng_SUITE:dead(),
                               test_cases:traced([send], fun() -> [Dead ! hello || _ <- lists:seq(1, 7)] end)
                       end),
    test_wait:until("seven messages are counted", 7,
                    fun() -> lists:sum([N || {_, N} <- counts(test_bpftrace:lines(Consumer))]) end),
    _ = test_bpftrace:stop_script(Consumer),
    test_node:stop(Node).

%% -- The page ------------------------------------------------------------------------------------

page_bpftrace(Config) ->
    Output = page("bpftrace", Config),
    [?assertMatch({_, _}, binary:match(Output, Line), Output)
     || Line <- [<<"@exits[{shutdown,0}]: 3\n">>, <<"@exits[{shutdown,1}]: 3\n">>]].

%% perf is attached some time before it records. Earlier events are not in its file. The events that it defines belong
%% to the kernel and have the same names for all users, so no other test may define them meanwhile.
page_perf(Config) ->
    Output = test_shell:locked("/sys/kernel/tracing/uprobe_events",
                               fun() ->
                                       forget_probes(),
                                       try page("perf", Config)
                                       after forget_probes()
                                       end
                               end),
    ?assertMatch({_, _}, binary:match(Output, <<"sdt_org_erlang_dyntrace:user_span_start ">>), Output),
    Values = numbers(Output, "user_mark: .* arg3=(\\d+) "),
    ?assertEqual(lists:seq(121 - length(Values), 120), Values),
    ?assert(length(Values) >= 5, Values),
    [Busy] = numbers(Output, "\n [^\n]*user_span_stop: .* arg4=(\\d+) "),
    ?assert(Busy > 0 andalso Busy < 3000000000, Busy),
    ?assertMatch({match, _}, re:run(Output, "cpu-clock")),
    Slow = numbers(Output, "slow .*user_span_stop: .* arg4=(\\d+) "),
    ?assert(length(Slow) >= 5 andalso length(Slow) =< 20, Slow),
    [?assert(Ns >= 100000000, Slow) || Ns <- Slow].

%% Deletes the perf events that an unfinished page left defined.
forget_probes() ->
    _ = test_shell:run("perf probe -q -d 'sdt_org_erlang_dyntrace:*'; "
                       "rm -f /tmp/dyntrace-perf.data /tmp/dyntrace-slow.data", []),
    ok.

page_gdb(Config) ->
    Output = page("gdb", Config),
    ?assertMatch({match, _},
                 re:run(Output, ["stap +erlang +user_trace__i4s4 +0x[0-9a-f]+ +0x[0-9a-f]+ +",
                                 ?config(library, Config)]), Output).

page_bcc(Config) ->
    Output = page("bcc", Config),
    [?assertMatch({match, _}, re:run(Output, ["org_erlang_dyntrace:?'?", Probe]), Output)
     || Probe <- ["message_send", "message_receive"]].

numbers(Output, Pattern) ->
    case re:run(Output, Pattern, [global, {capture, all_but_first, list}]) of
        {match, Groups} -> [list_to_integer(N) || [N] <- Groups];
        nomatch -> []
    end.

%% perf's cache and files belong to the test. An Erlang block waits until a consumer is attached.
page(Title, Config) ->
    Node = ?config(node, Config),
    IsAttached = fun() -> test_node:call(Node, fun dyntrace:listeners/0) =/= [] end,
    test_recipe:run("docs/perf.md", Title, Node,
                    #{env => [{"LIB", ?config(library, Config)}, {"PID", test_node:os_pid(Node)},
                              {"HOME", ?config(priv_dir, Config)}],
                      ready => fun() -> test_wait:until("a consumer is attached", IsAttached) end}).

%% -- Reading bpftrace's output ---------------------------------------------------------------------

%% Runs a script while Fun is called on the node. Returns the script's lines, and Fun's result.
script(Name, Config, Fun) ->
    script(Name, Config, Fun, fun(_) -> true end).

%% The script is stopped when its lines are complete. If it counts in maps, it is stopped when Fun has returned.
script(Name, Config, Fun, AreWhole) ->
    script(Name, Config, fun() -> ok end, Fun, AreWhole).

%% Prepare is called before Fun, and may take long.
script(Name, Config, Prepare, Fun, AreWhole) ->
    File = filename:join(scripts(), atom_to_list(Name) ++ ".bt"),
    Consumer = test_bpftrace:start_file(File, [?config(library, Config)]),
    ok = test_node:call(?config(node, Config), Prepare),
    until_cleared(File, Consumer),
    Known = test_node:call(?config(node, Config), Fun),
    test_wait:until("all lines", AreWhole, fun() -> test_bpftrace:lines(Consumer) end),
    until_cleared(File, Consumer),
    {test_bpftrace:stop_script(Consumer), Known}.

%% The script prints its maps each second after a title, and then clears them. bpftrace loses counts between printing
%% and clearing, and prints them twice if it is stopped in between. So Fun is called, and the script is stopped, just
%% after it has cleared them, which takes bpftrace a while on a busy machine.
until_cleared(File, Consumer) ->
    {ok, Script} = file:read_file(File),
    case binary:match(Script, <<"printf(\"\\n-- ">>) of
        {_, _} ->
            Printed = fun() -> length([Line || Line = <<"-- ", _/binary>> <- test_bpftrace:lines(Consumer)]) end,
            Before = Printed(),
            test_wait:until("another print of the script", fun(Now) -> Now > Before end, Printed),
            timer:sleep(500);
        nomatch ->
            ok
    end.

scripts() ->
    filename:join(test_shell:project(), "priv/bpftrace").

%% "@name[key]: 17"
counts(Lines) ->
    [{Key, binary_to_integer(Count)}
     || Line <- Lines, {match,
                        [Key, Count]} <- [re:run(Line, "^(@[^:]*.*): (\\d+)$", [{capture, all_but_first, binary}])]].

sum(Lines, Key) ->
    Named = iolist_to_binary(Key),
    lists:sum([Count || {K, Count} <- counts(Lines), K =:= Named]).

%% The rows under "@name[key]: ", each as {Least, Count}.
histogram(Key, Lines) ->
    Title = iolist_to_binary([Key, ":"]),
    case lists:dropwhile(fun(Line) -> string:trim(Line, trailing) =/= Title end, Lines) of
        [_ | Rest] -> rows(Rest);
        [] -> []
    end.

rows([<<"[", _/binary>> = Row | Rest]) ->
    {match, [Least, Unit, Count]} = re:run(Row, "^\\[(\\d+)([KMG]?)(?:\\]|, .*\\)) +(\\d+) \\|",
                                           [{capture, all_but_first, list}]),
    [{list_to_integer(Least) * maps:get(Unit, #{"" => 1, "K" => 1 bsl 10, "M" => 1 bsl 20, "G" => 1 bsl 30}),
      list_to_integer(Count)} | rows(Rest)];
rows(_) ->
    [].

at_least(Least, Rows) ->
    lists:sum([Count || {From, Count} <- Rows, From >= Least]).
