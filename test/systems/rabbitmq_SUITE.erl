%% Debian's RabbitMQ under load: recordings of it agree with its own counts and names.
-module(rabbitmq_SUITE).

-include("../support/suite.hrl").

-define(QUEUE, "orders").
-define(COUNT, 200).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [counts, names, loaded_at_start, loaded_by_host, names_among_recorders, as_perf].

init_per_suite(Config) ->
    _ = test_require:tool(packaged_rabbitmq:missing(), Config),
    Daemon = observed:start_daemon(),
    [{daemon, Daemon}, {system, observed:start(packaged_rabbitmq)} | Config].

end_per_suite(Config) ->
    packaged:stop(?config(system, Config)),
    observed:stop(?config(daemon, Config)).

%% A harmless background load, except in cases that count messages.
init_per_testcase(Case, Config) when Case =:= counts; Case =:= loaded_at_start; Case =:= loaded_by_host;
                                     Case =:= as_perf ->
    Config;
init_per_testcase(_, Config) ->
    #{daily := Daily} = packaged_rabbitmq:service(),
    [{load, packaged:client(?config(system, Config), Daily)} | Config].

end_per_testcase(_, Config) ->
    [#{"published" := _} = client:stop(Load) || {load, Load} <- Config],
    ok.

rows(List, Columns, Config) ->
    packaged_rabbitmq:rows(?config(system, Config), [List | Columns]).

%% -- Truth -----------------------------------------------------------------------------------

%% Each message of the clients is seen once from a channel to its queue and once from the queue to a channel.
counts(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "counted_of_rabbitmq"),
    System = ?config(system, Config),
    Counts = observed:recorded(System, Folder,
                               fun() ->
                                       client:finish(packaged:client(System, ["counted", "producers=2", "consumers=2",
                                                                     "rate=100", lists:concat(["count=", ?COUNT])]))
                               end),
    ?assertEqual(#{"published" => 2 * ?COUNT, "delivered" => 2 * ?COUNT, "connections" => 5}, Counts),
    [Queue] = [pid_of(Pid) || ["counted", Pid] <- rows("list_queues", ["name", "pid"], Config)],
    Sends = [Send || {message_send, Send} <- test_lttng:read(Folder)],
    ?assertEqual(2 * ?COUNT, length([to || #{to := To, message := <<"{'$gen_cast',{deliver,{delivery,", _/binary>>}
                                               <- Sends, To =:= Queue])),
    ?assertEqual(2 * ?COUNT, length([from || #{from := From, message := Message} <- Sends, From =:= Queue,
                                             re:run(Message, "^{'\\$gen_cast',{queue_event,{resource,<<\"/\">>,queue,"
                                                    "<<\"counted\">>},{deliver,") =/= nomatch])).

%% As the VM itself writes the pid: <rabbit@localhost.1795557590.717.0> is <0.717.0>.
pid_of(Pid) ->
    re:replace(Pid, "^<.*\\.(\\d+\\.\\d+)>$", "<0.\\1>", [{return, binary}]).

%% Queues and connections are shown by the names that rabbitmqctl lists.
names(Config) ->
    #{<<"processes">> := Processes} = observed:report(?config(system, Config), Config),
    Shown = maps:from_list([{Pid, Show} || #{<<"process">> := #{<<"pid">> := Pid, <<"show">> := Show}} <- Processes]),
    Queues = [{pid_of(Pid), ["queue,<<\"", Name, "\">>"]}
              || [Name = ?QUEUE, Pid] <- rows("list_queues", ["name", "pid"], Config)],
    Connections = [{pid_of(Pid), Name} || [Name, Pid] <- rows("list_connections", ["name", "pid"], Config)],
    ?assertMatch({[_], [_, _, _, _, _, _]}, {Queues, Connections}),
    [?assertNotEqual(nomatch, binary:match(maps:get(Pid, Shown), iolist_to_binary(Name)), Shown)
     || {Pid, Name} <- Queues ++ Connections].

%% A third consumer also gets the names.
names_among_recorders(Config) ->
    Recorders = observed:start_recorders(?config(system, Config), ?config(priv_dir, Config)),
    try names(Config)
    after observed:stop(Recorders)
    end.

%% The application starts together with the server.
loaded_at_start(_) ->
    System = packaged:start(packaged_rabbitmq, [packaged_rabbitmq:started_with()]),
    try ok = test_wait:until("LTTng's part is loaded", "available",
                             fun() ->
                                     packaged:eval(System, "case catch dyntrace:info() of "
                                                           "    #{backends := #{lttng := Lttng}} -> Lttng; "
                                                           "    NotYet -> NotYet "
                                                           "end.")
                             end)
    after packaged:stop(System)
    end.

%% `dyntrace report --load' loads the library into the running server.
loaded_by_host(_) ->
    observed:loaded_by_host(packaged_rabbitmq).

%% A profile has the same frequent functions as perf, which follows the frame pointers of a VM that has them, and whole
%% paths. Paths are not compared, because perf omits the caller of a function without a frame of its own.
as_perf(Config) ->
    _ = test_require:tool(os:find_executable("perf") =:= false andalso "perf is not installed", Config),
    Started = {System, _} = perf_paths:start(),
    Both = try perf_paths:sampled(System, ?config(priv_dir, Config), 999, 5)
           after perf_paths:stop(Started)
           end,
    [OfPerf, OfOurs] = Erlang = [perf_paths:in_erlang(Paths) || Paths <- tuple_to_list(Both)],
    Samples = [perf_paths:samples(Paths) || Paths <- Erlang],
    ct:log("~p", [Samples]),
    [?assertMatch({true, _}, {perf_paths:samples(perf_paths:whole(Paths)) >= 0.95 * Of, Of})
     || {Paths, Of} <- lists:zip(Erlang, Samples)],
    [?assertMatch({_, [Perf, Ours], true}, {Name, [Perf, Ours], are_close(Shares, Samples)})
     || Count <- [fun perf_paths:own/1, fun perf_paths:total/1],
        {Name, InPerf} <- maps:to_list(Count(OfPerf)), InPerf * 20 > hd(Samples),
        Shares = [Perf, Ours] <- [[InPerf / hd(Samples), maps:get(Name, Count(OfOurs), 0) / lists:last(Samples)]]].

%% Two shares differ by at most four standard errors and some points for the callers that perf omits.
are_close([A, B], [OfA, OfB]) ->
    Share = (A * OfA + B * OfB) / (OfA + OfB),
    abs(A - B) =< 0.03 + 4 * math:sqrt(Share * (1 - min(Share, 1.0)) * (1 / OfA + 1 / OfB)).
