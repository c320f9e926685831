%% The viewer, end to end: the output of the sinks, compared with what Erlang knows of the recorded story; and
%% recordings that are damaged, malicious or made by other tools.
-module(viewer_SUITE).

-include("../support/suite.hrl").

%% The sinks that write a file.
-define(SINKS, [report, perfetto, html, flame, sequence, otlp, rows, model]).

%% Two nodes, as the VM writes their names.
-define(A, <<"'a@127.0.0.1'">>).
-define(B, <<"'b@127.0.0.1'">>).
-define(JOBS, 50).
-define(LABEL, 4711).
-define(BACK_NS, 250000000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [{group, story}, {group, cluster}, {group, hosts}, {group, generated}, {group, damaged}, {group, files},
     {group, files_of_others}, {group, contents}].

groups() ->
    [{story, [], [events, processes, exits, messages, dead, server_calls, functions, collections, spans, every_sink,
                  ctf_2]},
     {cluster, [], [far_talks, far_calls, far_label, far_every_sink]},
     {hosts, [], [far_talks, far_calls, far_label, clock_found, clocks_as_recorded]},
     {generated, [], [otp_recording, busy_server, two_nodes, lost, pid_used_again, many_processes]},
     {damaged, [], [truncated, metadata_damaged, absurd_clocks, no_clock, absurd_values, other_provider, empty,
                    no_trace, hostile_texts]},
     {files, [], [descriptors, two_writers]},
     {files_of_others, [], [folder_of_another, replaced_meanwhile, special_files]},
     {contents, [], [contents, shapes, long_reason]}].

init_per_suite(Config) ->
    test_require:tool(test_require:first([fun test_viewer:missing/0, fun test_lttng:missing/0]), Config).

end_per_suite(_) -> ok.

%% The story is recorded once.
init_per_group(story, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "story"),
    Story = test_recording:make(Folder, #{env => [{functions, test_shop:functions()}]},
                                fun([Node]) -> test_node:call(Node, fun test_shop:run/0) end),
    [{trace, Folder}, {story, Story}, {report, test_viewer:json(report, [{format, "json"}], [Folder])} | Config];
%% Two nodes that are connected, in one session.
init_per_group(cluster, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "cluster"),
    of_cluster(Folder, record_cluster(Folder, #{}), Config);
%% Each node is recorded in a separate session; the clock of b is set back.
init_per_group(hosts, Config) ->
    Folder = filename:join(?config(priv_dir, Config), "hosts"),
    Story = record_cluster(Folder, #{apart => true}),
    case set_back(filename:join(Folder, "2"), ?BACK_NS) of
        ok -> of_cluster(Folder, Story, Config);
        no_offset -> {skip, "the metadata of CTF 2 are not edited"}
    end;
init_per_group(files_of_others, Config) ->
    case test_shell:run("id -u", []) of
        {0, <<"0\n">>} -> Config;
        _ -> {skip, "it requires root"}
    end;
init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% -- A recorded story ----------------------------------------------------------------------------

events(Config) ->
    Read = test_lttng:read(?config(trace, Config)),
    #{<<"events">> := Events, <<"lost_events">> := 0, <<"nodes">> := [_]} = rows(recording, Config),
    ?assertEqual(length(Read), Events).

%% Each process, with its parent and its name.
processes(Config) ->
    Rows = rows(processes, Config),
    Story = ?config(story, Config),
    Parents = [{pid(Process), pid(Parent)} || #{<<"process">> := Process, <<"parent">> := Parent} <- Rows],
    [?assert(lists:member({Pid, Parent}, Parents), {Pid, Parent}) || {Parent, Pid} <- maps:get(spawned, Story)],
    Names = [{pid(Process), maps:get(<<"name">>, Process)} || #{<<"process">> := Process} <- Rows],
    [?assert(lists:member({Pid, atom_to_binary(Name)}, Names), Name) || {Pid, Name} <- maps:get(named, Story),
                                                                       Name =/= shop].

%% Crashes with their reasons, and with the processes that were linked, which are not crashes of their own.
exits(Config) ->
    #{exited := Exited, named := Named} = ?config(story, Config),
    Crashes = [{pid(Process), Reason} || #{<<"process">> := Process, <<"reason">> := Reason, <<"is_crash">> := true}
                                             <- rows(exits, Config)],
    {Oven, shop_oven} = lists:keyfind(shop_oven, 2, Named),
    [Linked] = [Linked || #{<<"process">> := Process, <<"linked">> := Linked} <- rows(exits, Config),
                          pid(Process) =:= Oven],
    [Helper] = [Pid || {Pid, <<"{burnt,bread}">>} <- Exited, Pid =/= Oven],
    ?assert(lists:member(Helper, lists:map(fun pid/1, Linked))),
    ?assertEqual(lists:sort([Exit || Exit = {Pid, Reason} <- Exited, Reason =/= <<"normal">>, Pid =/= Helper]),
                 lists:sort(Crashes)).

messages(Config) ->
    Talks = maps:from_list([{{pid(From), pid(To)}, Messages}
                            || #{<<"from">> := From, <<"to">> := To, <<"messages">> := Messages}
                                   <- rows(talks, Config)]),
    #{sent := Sent} = ?config(story, Config),
    [?assertEqual(Count, maps:get(Pair, Talks, none), Pair) || {Pair, Count} <- maps:to_list(Sent)].

dead(Config) ->
    Dead = [{{pid(From), pid(To)}, Messages}
            || #{<<"from">> := From, <<"to">> := To, <<"messages">> := Messages} <- rows(dead, Config), To =/= null],
    [?assertEqual(Count, proplists:get_value(Pair, Dead), Pair)
     || {Pair, Count} <- maps:to_list(maps:get(dead, ?config(story, Config)))].

%% Calls, timeouts and servers that exited, by server; the slowest call took no longer than its caller measured.
server_calls(Config) ->
    #{called := Called} = ?config(story, Config),
    Rows = rows(server_calls, Config),
    Longest = fun(Its) -> lists:max([0 | [Ns || #{<<"max_ns">> := Ns} <- Its, is_integer(Ns)]]) end,
    [begin
         Name = atom_to_binary(Server),
         Mine = [Row || Row = #{<<"server">> := #{<<"name">> := Of}} <- Rows, Of =:= Name],
         Sum = fun(Key) -> lists:sum([maps:get(Key, Row) || Row <- Mine]) end,
         Known = [{Outcome, Us} || {_, Of, Outcome, Us} <- Called, Of =:= Server],
         Count = fun(Outcome) -> length([Us || {Its, Us} <- Known, Its =:= Outcome]) end,
         ?assertEqual({Server, length(Known), Count(timeout), Count(down)},
                      {Server, Sum(<<"count">>), Sum(<<"timeouts">>), Sum(<<"downs">>)}),
         Slowest = 1000 * lists:max([Us || {_, Us} <- Known]),
         ?assert(Longest(Mine) =< Slowest, {Slowest, Mine})
     end || Server <- [shop_stock, shop_till, shop_till_2, shop_old_till]],
    %% Each request takes 5 ms, and the requests of the other customers are handled before it.
    ?assert(Longest([Row || Row = #{<<"server">> := #{<<"name">> := <<"shop_till">>}} <- Rows]) >= 10000000).

functions(Config) ->
    #{functions := Functions, raised := Raised} = ?config(story, Config),
    Rows = rows(calls, Config),
    [?assertEqual([{Mfa, Count, maps:get(Mfa, Raised, 0)}],
                  [{Mfa, Times, Exceptions} || #{<<"entry">> := Entry, <<"count">> := Times,
                                                 <<"exceptions">> := Exceptions} <- Rows, Entry =:= Mfa])
     || {{_, Mfa}, Count} <- maps:to_list(Functions)].

%% As many as the recording has for the process, and at least as many as it requested.
collections(Config) ->
    Read = test_lttng:read(?config(trace, Config)),
    [begin
         Recorded = length([Name || {Name, #{pid := Of}} <- Read, Of =:= Pid,
                                    Name =:= gc_minor_end orelse Name =:= gc_major_end]),
         ?assert(Recorded >= Asked),
         ?assertEqual([Recorded], [Count || #{<<"process">> := Process, <<"collections">> := Count}
                                                <- rows(processes, Config), pid(Process) =:= Pid])
     end || {Pid, Asked} <- maps:to_list(maps:get(collected, ?config(story, Config)))].

spans(Config) ->
    #{spans := Spans} = ?config(story, Config),
    ?assertEqual(lists:sort([{atom_to_binary(Name), 1, case Outcome of ok -> 0; error -> 1 end}
                             || {_, Name, Outcome} <- Spans]),
                 lists:sort([{Name, Count, Failed} || #{<<"name">> := Name, <<"count">> := Count,
                                                        <<"failed">> := Failed} <- rows(spans, Config)])).

every_sink(Config) ->
    [begin
         {Status, Output, Size} = view_to_file(Sink, ?config(trace, Config), Config),
         ?assertMatch({_, 0, Written} when Written > 0, {Sink, Status, Size}, Output)
     end || Sink <- ?SINKS].

%% LTTng 2.15 and later writes CTF 2, whose metadata is JSON behind a record separator.
ctf_2(Config) ->
    [Metadata | _] = filelib:wildcard(filename:join(?config(trace, Config), "**/metadata")),
    {ok, Text} = file:read_file(Metadata),
    {0, Version} = test_shell:run("lttng --version", []),
    {match, [Minor]} = re:run(Version, "2\\.(\\d+)", [{capture, all_but_first, list}]),
    case {Text, list_to_integer(Minor) >= 15} of
        {<<16#1e, "{", _/binary>>, true} -> events(Config);
        {_, false} -> {skip, "LTTng before 2.15 writes CTF 1.8"}
    end.

%% -- Two nodes ------------------------------------------------------------------------------------


record_cluster(Folder, Options) ->
    Connect = fun() -> pong = net_adm:ping('b@127.0.0.1') end,
    test_recording:make(Folder, Options#{named => ["a", "b"],
                                         before => fun([One, _]) -> test_node:call(One, Connect) end},
                        fun cluster/1).

of_cluster(Folder, Story, Config) ->
    [{trace, Folder}, {story, Story}, {report, test_viewer:json(report, [{format, "json"}], [Folder])} | Config].

%% Edits the description of the clock; the new text has the same length.
set_back(Folder, Ns) ->
    [File | _] = filelib:wildcard(filename:join(Folder, "**/metadata")),
    {ok, Metadata} = file:read_file(File),
    case re:run(Metadata, "offset = (\\d+);", [{capture, all_but_first}]) of
        {match, [{At, Size}]} ->
            <<Before:At/binary, Offset:Size/binary, After/binary>> = Metadata,
            Less = integer_to_binary(binary_to_integer(Offset) - Ns),
            Size = byte_size(Less),
            file:write_file(File, [Before, Less, After]);
        nomatch ->
            no_offset
    end.

%% The messages from a to b: jobs, each with an answer; calls of a gen_server by its name; and a request with a token,
%% which comes back. Pids are as their own node writes them.
cluster([One, Other]) ->
    Echo = test_node:call(Other, fun() ->
                                         Echo = spawn(fun echo/0),
                                         true = register(far_echo, Echo),
                                         {ok, _} = gen_server:start({local, far_shop}, ?MODULE, [], []),
                                         Echo
                                 end),
    Asks = test_node:call(One, fun() -> asks(Echo) end),
    #{a => pid_of(One, Asks), b => pid_of(Other, Echo)}.

pid_of(Node, Pid) -> test_node:call(Node, fun() -> list_to_binary(pid_to_list(Pid)) end).

%% The gen_server.
init([]) -> {ok, no_state}.
handle_call(price, _, State) -> {reply, 7, State}.
handle_cast(_, State) -> {noreply, State}.

echo() -> receive {From, Job} -> From ! {self(), Job}, echo() end.

asks(Echo) ->
    Self = self(),
    Asks = spawn(fun() ->
                         [begin Echo ! {self(), {job, N}}, receive {Echo, {job, N}} -> ok end end
                          || N <- lists:seq(1, ?JOBS)],
                         [7 = gen_server:call({far_shop, 'b@127.0.0.1'}, price) || _ <- lists:seq(1, 5)],
                         _ = seq_trace:set_token(label, ?LABEL),
                         _ = seq_trace:set_token(send, true),
                         _ = seq_trace:set_token('receive', true),
                         [begin {far_echo, 'b@127.0.0.1'} ! {self(), same}, receive {Echo, same} -> ok end end
                          || _ <- [1, 2, 3]],
                         _ = seq_trace:set_token([]),
                         Self ! {self(), done},
                         receive stop -> ok end
                 end),
    receive {Asks, done} -> Asks end.

far_talks(Config) ->
    #{a := A, b := B} = ?config(story, Config),
    Talks = [{node_of(From), pid(From), node_of(To), pid(To), Count, Inferred}
             || #{<<"from">> := From, <<"to">> := To, <<"messages">> := Count, <<"inferred">> := Inferred}
                    <- rows(talks, Config), is_map(From), is_map(To)],
    [?assertEqual([{?JOBS + 3, ?JOBS}], [{Count, Inferred} || {N, P, M, Q, Count, Inferred} <- Talks,
                                                             {N, P, M, Q} =:= Pair], {Pair, Talks})
     || Pair <- [{?A, A, ?B, B}, {?B, B, ?A, A}]].

far_calls(Config) ->
    #{a := A} = ?config(story, Config),
    ?assertMatch([{?B, <<"far_shop">>, 5}],
                 [{node_of(Server), maps:get(<<"name">>, Server), Count}
                  || #{<<"caller">> := Caller, <<"server">> := Server, <<"count">> := Count}
                         <- rows(server_calls, Config),
                     pid(Caller) =:= A, node_of(Caller) =:= ?A]).

far_label(Config) ->
    Lines = test_viewer:lines(sequence, [{label, integer_to_list(?LABEL)}], [?config(trace, Config)]),
    ?assertEqual(6, length([Line || Line <- Lines, binary:match(Line, <<"->>">>) =/= nomatch]), Lines),
    ?assertEqual([], [Line || Line <- Lines, binary:match(Line, <<"inferred">>) =/= nomatch]).

far_every_sink(Config) ->
    [{0, _, _} = view_to_file(Sink, ?config(trace, Config), Config) || Sink <- ?SINKS].

%% b's clock is behind by the shift, plus the difference between LTTng's descriptions of one clock.
clock_found(Config) ->
    #{<<"nodes">> := Nodes} = rows(recording, Config),
    Clocks = maps:from_list([{Node, Clock} || #{<<"node">> := Node, <<"clock">> := Clock} <- Nodes]),
    #{?A := #{<<"offset_ns">> := OfA} = A, ?B := #{<<"offset_ns">> := OfB} = B} = Clocks,
    [Uncertainty] = [Ns || #{<<"uncertainty_ns">> := Ns, <<"known">> := <<"both ways">>} <- [A, B]],
    ?assert(abs(OfB - OfA - ?BACK_NS) =< Uncertainty + 100000, Clocks),
    ?assert(Uncertainty < 10000000, Clocks).

%% By the uncorrected clocks, each message to b is sent after it was delivered. These messages are marked.
clocks_as_recorded(Config) ->
    {0, Text} = test_viewer:view(sequence, [{label, integer_to_list(?LABEL)}, {clocks, "recorded"}],
                                 [?config(trace, Config)]),
    ?assertMatch({match, [_, _, _]}, re:run(Text, "clocks differ", [global])).

node_of(#{<<"node">> := Node}) -> Node.

%% -- Generated recordings --------------------------------------------------------------------------

%% A recording like that of OTP's own tracer: no identities, deliveries or contexts.
otp_recording(Config) ->
    Trace = test_viewer:make(
              [{1000, process_scheduled, #{pid => "<0.9.0>", entry => "shop:loop/1", type => "in"}},
               {2000, process_spawn, #{pid => "<0.10.0>", parent => "<0.9.0>", entry => "shop:worker/1"}},
               {3000, message_send, #{from => "<0.9.0>", to => "<0.10.0>", message => "{job,1}"}},
               {4000, message_receive, #{to => "<0.10.0>", message => "{job,1}"}},
               {5000, function_call, #{pid => "<0.9.0>", entry => "shop:price/1", depth => 3}},
               {6000, function_return, #{pid => "<0.9.0>", entry => "shop:price/1", depth => 3}},
               {6500, process_scheduled, #{pid => "<0.9.0>", entry => "shop:loop/1", type => "out"}},
               {7000, process_exit, #{pid => "<0.10.0>", reason => "{badmatch,job}"}}], Config),
    Report = report(Trace),
    ?assertMatch(#{<<"recording">> := #{<<"events">> := 8, <<"skipped">> := 0}}, Report),
    ?assertMatch([#{<<"entry">> := <<"shop:price/1">>, <<"count">> := 1, <<"total_ns">> := 1000}],
                 maps:get(<<"calls">>, Report)),
    ?assertMatch([#{<<"messages">> := 1}], maps:get(<<"talks">>, Report)),
    ?assertMatch([#{<<"reason">> := <<"{badmatch,job}">>}], maps:get(<<"exits">>, Report)),
    ?assertEqual([5500], [Ns || #{<<"process">> := Process, <<"run_ns">> := Ns} <- maps:get(<<"processes">>, Report),
                                pid(Process) =:= <<"<0.9.0>">>]).

%% During its work, a server waits for something else: the second request is in its mailbox until the first reply.
busy_server(Config) ->
    Ask = fun(At, N) ->
                  Text = io_lib:format("{'$gen_call',{<0.~b.0>,[alias|#Ref<0.1.2.~b>]},pay}", [N, N]),
                  [{At, message_send, #{from => pid_text(N), to => "<0.9.0>", message => Text}},
                   {At + 10, message_delivery, #{to => "<0.9.0>", from => pid_text(N), message => Text}}]
          end,
    Answer = fun(At, N) ->
                     [{At, message_send, #{from => "<0.9.0>", to => io_lib:format("#Ref<0.1.2.~b>", [N]),
                                           message => io_lib:format("{[alias|#Ref<0.1.2.~b>],paid}", [N])}}]
             end,
    Run = fun(At, Type) -> [{At, process_scheduled, #{pid => "<0.9.0>", entry => "till:pay/1", type => Type}}] end,
    Names = [{0, process_register, #{pid => pid_text(N), name => Name, type => "register"}}
             || {N, Name} <- [{10, "one"}, {11, "other"}]],
    Trace = test_viewer:make(
              lists:append([Names, Run(0, "out"), Ask(1000, 10), Run(2000, "in"), Run(3000, "out"),
                            Ask(20000, 11), Run(20100, "in"), Run(20200, "out"),
                            Run(90000, "in"), Answer(100000, 10), Run(101000, "out"),
                            Run(190000, "in"), Answer(200000, 11), Run(201000, "out")]), Config),
    Near = fun(Expected, Ns) -> is_integer(Ns) andalso abs(Expected - Ns) =< Expected / 50 end,
    [Row] = [Row || Row = #{<<"caller">> := #{<<"name">> := <<"other">>}}
                        <- maps:get(<<"server_calls">>, report(Trace))],
    ?assert(Near(80000, maps:get(<<"queued_p50_ns">>, Row)), Row),
    ?assert(Near(100000, maps:get(<<"worked_p50_ns">>, Row)), Row).

%% The same pids in two VMs are different processes.
two_nodes(Config) ->
    Trace = test_viewer:make(
              [{1000 + N, message_send, #{from => "<0.9.0>", to => "<0.10.0>", message => "m"},
                #{vpid => 17 + N rem 2, vtid => 20 + N rem 2, cpu => N rem 2}} || N <- lists:seq(1, 9)], Config),
    Report = report(Trace),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [_, _]}}, Report),
    ?assertEqual([4, 5], lists:sort([Count || #{<<"messages">> := Count} <- maps:get(<<"talks">>, Report)])).

lost(Config) ->
    Trace = test_viewer:make(
              [{1000, process_scheduled, #{pid => "<0.9.0>", entry => "a:b/1", type => "in"}},
               #{time => 2000, lost => 12},
               {3000, process_scheduled, #{pid => "<0.9.0>", entry => "a:b/1", type => "in"}},
               #{time => 4000, lost => 30},
               {5000, process_scheduled, #{pid => "<0.9.0>", entry => "a:b/1", type => "out"}}], Config),
    ?assertMatch(#{<<"recording">> := #{<<"events">> := 3, <<"lost_events">> := 42, <<"lost">> := [_, _]}},
                 report(Trace)),
    [{0, _, _} = view_to_file(Sink, Trace, Config) || Sink <- ?SINKS].

%% A thousand processes share one pid.
pid_used_again(Config) ->
    Life = fun(N) ->
                   At = N * 10000,
                   [{At, process_spawn, #{pid => "<0.10.0>", parent => "<0.9.0>", entry => "a:b/1"}},
                    {At + 1000, process_scheduled, #{pid => "<0.10.0>", entry => "a:b/1", type => "in"}},
                    {At + 2000, message_send, #{from => "<0.10.0>", to => "<0.9.0>", message => "m"}},
                    {At + 3000, process_exit, #{pid => "<0.10.0>", reason => "normal"}}]
           end,
    Trace = test_viewer:make(lists:append([Life(N) || N <- lists:seq(1, 1000)]), Config),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [#{<<"processes">> := 1001}]}}, report(Trace)),
    [{0, _, _} = view_to_file(Sink, Trace, Config) || Sink <- ?SINKS].

many_processes(Config) ->
    Count = 100000,
    Pid = fun(N) -> io_lib:format("<0.~b.~b>", [N rem 32768, N div 32768]) end,
    Trace = test_viewer:make([{1000 * N, process_spawn, #{pid => Pid(N), parent => "<0.9.0>", entry => "a:b/1"}}
                              || N <- lists:seq(10, Count + 9)], Config),
    ?assertMatch(#{<<"recording">> := #{<<"nodes">> := [#{<<"processes">> := Processes}]}}
                     when Processes =:= Count + 1, report(Trace)),
    [{0, _, _} = view_to_file(Sink, Trace, Config) || Sink <- ?SINKS].

%% -- Damaged and hostile recordings ------------------------------------------------------------------

%% Event files that are truncated at any position give an error, or a view of the remaining events.
truncated(Config) ->
    Trace = small_trace(Config),
    _ = rand:seed(exsss, 17),
    [begin
         Copy = copy(Trace, Config),
         [cut(File) || File <- filelib:wildcard(filename:join(Copy, "**/channel*")), filelib:is_regular(File)],
         [no_crash(Sink, Copy, Config) || Sink <- ?SINKS]
     end || _ <- lists:seq(1, 4)].

metadata_damaged(Config) ->
    Trace = small_trace(Config),
    _ = rand:seed(exsss, 18),
    [begin
         Copy = copy(Trace, Config),
         [Metadata] = filelib:wildcard(filename:join(Copy, "**/metadata")),
         Damage(Metadata),
         [no_crash(Sink, Copy, Config) || Sink <- ?SINKS]
     end || Damage <- [fun cut/1, fun garble/1, fun(File) -> ok = file:delete(File) end]],
    %% Field types differ from the catalogue's.
    Other = test_viewer:make([#{declare => "org_erlang_dyntrace:process_spawn", fields => [entry]},
                              {1000, process_spawn, #{pid => 17, parent => 18, entry => "a:b/1"}},
                              {2000, process_exit, #{pid => "<0.9.0>", reason => "normal"}}], Config),
    [{0, _, _} = view_to_file(Sink, Other, Config) || Sink <- ?SINKS].

%% Absurd times do not make any sink work longer, because no work depends on the length of time.
absurd_clocks(Config) ->
    Trace = small_trace(Config),
    Undamaged = test_viewer:cpu_s(?SINKS, Trace),
    [begin
         Copy = copy(Trace, Config),
         [File] = filelib:wildcard(filename:join(Copy, "**/metadata")),
         {ok, Text} = file:read_file(File),
         Damaged = re:replace(Text, ["\\t", Field, " = \\d+;"], ["\t", Field, " = ", Value, ";"]),
         ?assertNotEqual(Text, iolist_to_binary(Damaged)),
         ok = file:write_file(File, Damaged),
         ?assertMatch(Cpu when Cpu < 3 * Undamaged + 1, test_viewer:cpu_s(?SINKS, Copy), {Field, Value})
     end || {Field, Value} <- [{"freq", "1"}, {"offset_s", "9223372036"}, {"offset", "9000000000000000000"}]].

%% Events without times are skipped.
no_clock(Config) ->
    Trace = filename:join(?config(priv_dir, Config), "no_clock"),
    ok = filelib:ensure_dir(filename:join(Trace, "stream")),
    ok = file:write_file(filename:join(Trace, "metadata"), <<"/* CTF 1.8 */
        typealias integer { size = 8; align = 8; signed = false; } := byte;
        typealias integer { size = 32; align = 8; signed = false; } := word;
        trace { major = 1; minor = 8; byte_order = be; packet.header := struct { word magic; byte stream_id; }; };
        stream { id = 0; event.header := struct { byte id; }; };
        event { id = 0; name = \"org_erlang_dyntrace:process_exit\"; stream_id = 0;
                fields := struct { string pid; string reason; }; };">>),
    ok = file:write_file(filename:join(Trace, "stream"),
                         <<16#C1FC1FC1:32, 0, 0, "<0.9.0>", 0, "normal", 0, 0, "<0.10.0>", 0, "normal", 0>>),
    {0, Report} = test_viewer:view(report, [], [Trace]),
    ?assertMatch({match, _}, re:run(Report, "0 events in 0.000 s, 2 others skipped"), Report),
    [no_crash(Sink, Trace, Config) || Sink <- ?SINKS].

%% Events of another provider are counted, and the output says that they are not Erlang events.
other_provider(Config) ->
    Trace = test_viewer:make([{1000 * N, "other:event", #{text => "a", number => N}} || N <- lists:seq(1, 20)], Config),
    {_, Report} = test_viewer:view(report, [], [Trace]),
    ?assertMatch({match, _}, re:run(Report, "no events|20")),
    [no_crash(Sink, Trace, Config) || Sink <- ?SINKS].

%% A session that was started and stopped at once.
empty(Config) ->
    Trace = test_viewer:make([#{declare => "org_erlang_dyntrace:process_spawn", fields => [pid]},
                              #{time => 1000, packet => true}], Config),
    [no_crash(Sink, Trace, Config) || Sink <- ?SINKS].

no_trace(Config) ->
    [begin
         {Status, Output, Size} = view_to_file(Sink, filename:join(?config(priv_dir, Config), "none"), Config),
         ?assertMatch({_, 1, 0}, {Sink, Status, Size}, Output)
     end || Sink <- ?SINKS].

%% Numbers and times up to the maximum: no sum of them ends a sink.
absurd_values(Config) ->
    Most = 16#7fffffffffffffff,
    Counters = [{N, vm_counter, #{name => Name, value => Most}}
                || N <- [1, 2], Name <- ["scheduler_1", "scheduler_2", "memory"]],
    Runs = [[{At, process_scheduled, #{pid => pid_text(N), entry => "a:b/1", type => "in"}, #{vtid => N}},
             {At + 1, process_exit, #{pid => pid_text(N), reason => "normal"}, #{vtid => N}}]
            || At <- [3, Most - 1000], N <- lists:seq(10, 30)],
    Begun = [{2, process_scheduled, #{pid => pid_text(N), entry => "a:b/1", type => "in"}, #{vtid => N}}
             || N <- lists:seq(40, 60)],
    Trace = test_viewer:make(Counters ++ Begun ++ lists:sort(lists:append(Runs)), Config),
    [no_crash(Sink, Trace, Config) || Sink <- ?SINKS].

%% -- The output file ----------------------------------------------------------------------------------

%% A file that another user has prepared beside the output is left as it is. The output belongs to root, and only root
%% can read it.
folder_of_another(Config) ->
    Trace = mark_trace(Config),
    [in_folder_of_nobody(
       fun(Folder) ->
               File = filename:join(Folder, "picture"),
               {0, _} = test_shell:run("cd '~ts' && touch picture picture.part && chmod 666 picture.part && "
                                       "chown nobody picture picture.part", [Folder]),
               {0, _} = test_viewer:run("umask 077; ~ts", [test_viewer:command(Sink, [{path, File}], [Trace], "")]),
               ?assertEqual({0, <<"picture 0 600\npicture.part 65534 666\n">>},
                            test_shell:run("cd '~ts' && stat -c '%n %u %a' *", [Folder])),
               ?assertMatch({1, _}, test_shell:run("setpriv --reuid=65534 --regid=65534 --clear-groups cat '~ts'",
                                                   [File]))
       end) || Sink <- ?SINKS].

%% The folder's owner may rename and replace the file. In that case, the sink must not report that it was written.
replaced_meanwhile(Config) ->
    Trace = small_trace(Config),
    Other = {ok, <<"of another">>},
    %% If the file is replaced just before the sink renames it, the sink renames the other one.
    [replaced_meanwhile(Sink, What, Left, Trace)
     || Sink <- [report, html], {What, Left} <- [{"file", [{error, enoent}, Other]}, {"folder", [Other]}]].

replaced_meanwhile(Sink, What, Left, Trace) ->
    Script = filename:join([test_shell:project(), "test/support/swap_file.py"]),
    Swapped = in_folder_of_nobody(
                fun(Folder) ->
                        File = filename:join(Folder, "picture"),
                        Swapper = open_port({spawn_executable, "/usr/bin/python3"},
                                            [{args, [Script, What, Folder]}, {line, 100}, exit_status]),
                        receive {Swapper, {data, {eol, "ready"}}} -> ok end,
                        {Status, Output} = test_viewer:view(Sink, [{path, File}], [Trace]),
                        {receive {Swapper, {exit_status, Swapped}} -> Swapped end, Status, Output,
                         file:read_file(File)}
                end),
    case Swapped of
        {0, Status, Output, Found} ->
            ?assertEqual({Sink, What, 1, true}, {Sink, What, Status, lists:member(Found, Left)}, {Found, Output}),
            ?assert(says(Output, "another process has replaced it"), Output);
        {3, _, _, _} ->
            replaced_meanwhile(Sink, What, Left, Trace)
    end.

%% babeltrace2 wraps lines.
says(Output, Text) ->
    Words = binary:split(Output, [<<" ">>, <<"\n">>], [global, trim_all]),
    string:find(lists:join(" ", Words), Text) =/= nomatch.

%% A pipe of another user is not opened; root's own pipe is written to directly. A link is replaced.
special_files(Config) ->
    Trace = mark_trace(Config),
    in_folder_of_nobody(
      fun(Folder) ->
              File = filename:join(Folder, "picture"),
              {0, _} = test_shell:run("mkfifo '~ts' && chown nobody '~ts'", [File, File]),
              {1, Output} = test_viewer:view(report, [{path, File}], [Trace]),
              ?assert(says(Output, "a device or a pipe of another user"), Output),
              {0, Read} = test_viewer:run("chown root '~ts'; cat '~ts' & ~ts && wait",
                                          [File, File, test_viewer:command(report, [{path, File}], [Trace], "")]),
              ?assertMatch({match, _}, re:run(Read, "Recording: ")),
              {0, _} = test_shell:run("ln -sf /dev/full '~ts'", [File]),
              {0, _} = test_viewer:view(report, [{path, File}], [Trace]),
              ?assertEqual({0, <<"regular file\n">>}, test_shell:run("stat -c %F '~ts'", [File]))
      end).

%% A sink writes to descriptors of babeltrace2, regardless of what they refer to.
descriptors(Config) ->
    Trace = mark_trace(Config),
    {0, Expected} = test_viewer:view(report, [], [Trace]),
    ?assertMatch({match, _}, re:run(Expected, "Recording: ")),
    [?assertEqual({Path, {0, Expected}},
                  {Path, without_remark(test_viewer:run("bash -c ~ts", [test_command:quoted(
                      [test_viewer:command(report, [{path, Path}], [Trace], ""), Redirected])]))})
     || {Path, Redirected} <- [{"/dev/stdout", ""}, {"/dev/stderr", ""}, {"/dev/fd/17", " 17> >(cat) | cat"},
                               {"/proc/self/fd/17", " 17>&1"}]],
    File = file_of(report, Config),
    {0, _} = test_viewer:run("~ts > '~ts' 2>/dev/null",
                             [test_viewer:command(report, [{path, "/dev/stdout"}], [Trace], ""), File]),
    ?assertEqual({ok, Expected}, file:read_file(File)),
    {0, _} = test_shell:run("test -L /dev/stdout", []).

%% Each file is complete, the last one remains, and no other file is left.
two_writers(Config) ->
    Trace = mark_trace(Config),
    [begin
         Folder = file_of(Sink, Config) ++ "-two",
         ok = file:make_dir(Folder),
         Alone = filename:join(Folder, "alone"),
         File = filename:join(Folder, "picture"),
         {0, _} = test_viewer:view(Sink, [{path, Alone}], [Trace]),
         Command = test_viewer:command(Sink, [{path, File}], [Trace], ""),
         {0, _} = test_viewer:run("~ts & ~ts && wait $!", [Command, Command]),
         ?assertEqual(file:read_file(Alone), file:read_file(File)),
         ?assertEqual({ok, ["alone", "picture"]}, sorted(file:list_dir(Folder)))
     end || Sink <- ?SINKS].

sorted({ok, Names}) -> {ok, lists:sort(Names)}.

without_remark({Status, Output}) ->
    Rest = re:replace(Output, "^dyntrace: the recording has no names.*\n  next: .*\n", "", [multiline]),
    {Status, iolist_to_binary(Rest)}.

mark_trace(Config) ->
    test_viewer:make([{0, user_mark, #{pid => "<0.9.0>", name => "x", text => "y"}}], Config).

%% Both the folder and its parent belong to the user `nobody'.
in_folder_of_nobody(Fun) ->
    {0, Above} = test_shell:run("mktemp -d /tmp/dyntrace-test-XXXXXX | tr -d '\\n'", []),
    Folder = filename:join(binary_to_list(Above), "w"),
    {0, _} = test_shell:run("mkdir '~ts' && chown nobody '~ts' '~ts'", [Folder, Folder, Above]),
    try Fun(Folder)
    after
        {0, _} = test_shell:run("rm -rf '~ts'", [Above])
    end.

%% -- Contents -------------------------------------------------------------------------------------------

-define(KEY, "{'RSAPrivateKey',<<48,130,4>>,13407807929942597}").

%% An exit reason contains the key of a process. No sink prints it unless requested. Messages of links and monitors have
%% the reason, too, and so have log and function_reason.
contents(Config) ->
    Pid = "<0.10.0>",
    Trace = test_viewer:make(
              [{1000, process_spawn, #{pid => Pid, parent => "<0.9.0>", entry => "shop:till/1"}},
               {1500, process_spawn, #{pid => "<0.11.0>", parent => "<0.9.0>", entry => "shop:till/1"}},
               {2000, function_call, #{pid => Pid, entry => "shop:price/1", depth => 1}},
               {3000, function_reason, #{pid => Pid, entry => "shop:price/1", class => "error", reason => ?KEY}},
               {4000, log, #{pid => Pid, level => "error", text => "crashed: " ?KEY}},
               {4500, node_down, #{node => "b@h", type => "visible", reason => ?KEY}},
               {5000, process_exit, #{pid => Pid, reason => ?KEY}},
               {5500, "erlang:process__exit_signal", #{sender => Pid, receiver => "<0.11.0>", reason => ?KEY}},
               {6000, message_send, #{from => Pid, to => "<0.11.0>", message => "{'EXIT'," ++ Pid ++ "," ?KEY "}"}},
               {7000, message_receive, #{to => "<0.11.0>", message => "{'EXIT'," ++ Pid ++ "," ?KEY "}"}},
               {8000, message_send, #{from => Pid, to => "<0.11.0>",
                                      message => "{'DOWN',#Ref<0.1.2.3>,process," ++ Pid ++ "," ?KEY "}"}}], Config),
    [begin
         File = file_of(Sink, Config),
         {0, _} = test_viewer:view(Sink, [{path, File} | Params], [Trace]),
         {ok, Picture} = file:read_file(File),
         Has = [binary:match(Picture, Text) =/= nomatch
                || Text <- [<<"RSAPrivateKey">>, <<"48,130">>, <<"13407807929942597">>]],
         ?assertEqual({Sink, Params, Expected}, {Sink, Params, Has})
     end || {Sink, Of} <- [{report, []}, {report, [{format, "json"}]}, {perfetto, []}, {html, []}, {sequence, []},
                           {model, []}, {rows, []}],
            {Params, Expected} <- [{Of, [true, false, false]}, {[{contents, "full"} | Of], [true, true, true]}]].

%% Each example is a line of the log.
shapes(Config) ->
    {ok, File} = file:read_file(filename:join(test_shell:project(), "test/support/contents.tsv")),
    Examples = [list_to_tuple(binary:split(Line, <<"\t">>)) || Line <- binary:split(File, <<"\n">>, [global, trim])],
    Trace = test_viewer:make([{N, log, #{pid => "<0.9.0>", level => "error", text => Text}}
                              || {N, {Text, _}} <- lists:zip(lists:seq(1, length(Examples)), Examples)], Config),
    #{<<"log">> := Log} = report(Trace),
    ?assertEqual([Shape || {_, Shape} <- Examples], [Text || #{<<"text">> := Text} <- Log]).

%% A reason is bounded, begins with the part that identifies the crash, and ends after a whole element if one is near.
long_reason(Config) ->
    Whole = lists:flatten(["{badmatch,", lists:duplicate(30, "{burnt,bread},")]),
    Trace = test_viewer:make([{1, process_exit, #{pid => "<0.9.0>", reason => Whole}}], Config),
    #{<<"exits">> := [#{<<"reason">> := Reason}]} = report(Trace),
    ?assertEqual(iolist_to_binary(["{badmatch,", lists:duplicate(10, "{burnt,bread},"), "{burnt,..."]), Reason).

%% -- Texts ----------------------------------------------------------------------------------------------

%% Texts of programs that would end a script, a string or a line, or control the terminal.
hostile_texts(Config) ->
    Texts = [<<"</script><script>document.title='executed'</script>">>, <<"\"'`$(touch executed)">>,
             <<"<img src=x onerror=alert(1)>">>, <<1, 27, "[2J", 7, 127>>, <<"a\nb\r\tc">>,
             <<16#2028/utf8, 16#202e/utf8>>,
             <<"\\u003c/script>">>, <<"{{}}%s%n%s">>, binary:copy(<<16#1f600/utf8>>, 60), <<"-->">>, <<>>],
    Events = lists:append(
               [begin
                    At = N * 10000,
                    [{At, process_spawn, #{pid => pid_text(N), parent => Text, entry => Text}},
                     {At + 1, process_register, #{pid => pid_text(N), name => Text, type => "register"}},
                     {At + 2, message_send, #{from => pid_text(N), to => Text, message => Text}},
                     {At + 3, message_receive, #{to => pid_text(N), message => Text}},
                     {At + 4, function_call, #{pid => pid_text(N), entry => Text}},
                     {At + 5, function_return, #{pid => pid_text(N), entry => Text}},
                     {At + 6, user_mark, #{pid => pid_text(N), name => Text, text => Text}},
                     {At + 7, log, #{pid => pid_text(N), level => Text, text => Text}},
                     {At + 8, process_exit, #{pid => pid_text(N), reason => Text}}]
                end || {N, Text} <- lists:zip(lists:seq(10, 9 + length(Texts)), Texts)]),
    Trace = test_viewer:make(Events, Config),
    Outputs = [begin
                   File = file_of(Sink, Config),
                   {0, _} = test_viewer:view(Sink, [{path, File}], [Trace]),
                   {ok, Output} = file:read_file(File),
                   {Sink, Output}
               end || Sink <- ?SINKS],
    [?assertEqual(nomatch, re:run(Output, "[\\x01\\x1b\\x07]"), Sink)
     || {Sink, Output} <- Outputs, not lists:member(Sink, [perfetto, model])],
    %% The page's program inserts all text as text.
    {html, Page} = lists:keyfind(html, 1, Outputs),
    ?assertEqual(nomatch, binary:match(Page, <<"</script><script>document.title">>)),
    ?assertEqual(nomatch, binary:match(Page, <<"<img src=x">>)).

%% -- Helpers -----------------------------------------------------------------------------------------

rows(Table, Config) ->
    maps:get(atom_to_binary(Table), ?config(report, Config)).

report(Trace) ->
    test_viewer:json(report, [{format, "json"}], [Trace]).

pid(null) -> none;
pid(#{<<"pid">> := Pid}) -> Pid.

pid_text(N) ->
    io_lib:format("<0.~b.0>", [N]).

file_of(Sink, Config) ->
    filename:join(?config(priv_dir, Config), io_lib:format("~s-~10..0b", [Sink, erlang:unique_integer([positive])])).

%% {Exit status, Output, the written file's size, 0 without a file}
view_to_file(Sink, Trace, Config) ->
    File = file_of(Sink, Config),
    {Status, Output} = test_viewer:view(Sink, [{path, File}], [Trace]),
    {Status, Output, filelib:file_size(File)}.

%% Produces an output file, or an error and no file.
no_crash(Sink, Trace, Config) ->
    {Status, Output, Size} = view_to_file(Sink, Trace, Config),
    ?assertEqual(nomatch, re:run(Output, "Sanitizer|runtime error:|Assertion|Aborted|dumped"), Output),
    case Status of
        0 -> ?assert(Size > 0 orelse lists:member(Sink, [flame, rows]), Sink); % a line per call or row, if any
        1 -> ?assertEqual({Sink, 0}, {Sink, Size}), ?assertMatch({match, _}, re:run(Output, "ERROR|error"), Output)
    end.

%% Two CPUs, several packets.
small_trace(Config) ->
    test_viewer:make(lists:append([small_part(N) || N <- lists:seq(1, 60)]), Config).

small_part(N) ->
    Where = #{vpid => 17, vtid => 20 + N rem 2, cpu => N rem 2},
    At = N * 10000,
    [{At, process_spawn, #{pid => pid_text(N), parent => "<0.9.0>", entry => "a:b/1"}, Where},
     {At + 1000, process_scheduled, #{pid => pid_text(N), entry => "a:b/1", type => "in"}, Where},
     {At + 2000, message_send, #{from => pid_text(N), to => "<0.9.0>", message => "m"}, Where},
     {At + 3000, process_scheduled, #{pid => pid_text(N), entry => "a:b/1", type => "out"}, Where},
     Where#{time => At + 4000, packet => true}].

copy(Trace, Config) ->
    Copy = filename:join(?config(priv_dir, Config), io_lib:format("copy-~b", [erlang:unique_integer([positive])])),
    {0, _} = test_shell:run("cp -r '~ts' '~ts'", [Trace, Copy]),
    Copy.

cut(File) ->
    {ok, Bytes} = file:read_file(File),
    ok = file:write_file(File, binary:part(Bytes, 0, rand:uniform(byte_size(Bytes)) - 1)).

garble(File) ->
    {ok, Bytes} = file:read_file(File),
    {Before, <<_, After/binary>>} = split_binary(Bytes, rand:uniform(byte_size(Bytes)) - 1),
    ok = file:write_file(File, [Before, rand:uniform(256) - 1, After]).
