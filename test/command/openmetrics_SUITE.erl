%% `dyntrace top --openmetrics` on the shop of docs/night.md: promtool checks the metrics, and Prometheus scrapes them.
-module(openmetrics_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [printed, scraped].

init_per_suite(Config) ->
    Missing = os:find_executable("promtool") =:= false andalso "promtool is not installed (Debian: prometheus)",
    test_json:with_shop(test_require:tool(Missing, Config)).

end_per_suite(Config) ->
    test_node:stop(?config(node, Config)).

%% Without --listen, it prints one sample.
printed(Config) ->
    {0, Output} = test_command:run(["top", ?config(os_pid, Config), "--openmetrics", "--rows", "3"]),
    ?assertMatch({match, _}, re:run(Output, "\n# TYPE dyntrace_reductions counter\ndyntrace_reductions_total{")),
    ?assertMatch({match, _}, re:run(Output, "\n# EOF\n$")),
    %% The busiest one is first; as many names as rows.
    {match, Names} = re:run(Output, "^dyntrace_process_reductions{.*name=\"([^\"]*)\"}",
                            [global, multiline, {capture, all_but_first, list}]),
    ?assertMatch([["shop_cook"], _, _], Names).

scraped(Config) ->
    Endpoint = "127.0.0.1:" ++ integer_to_list(test_node:free_port()),
    Top = test_command:start(["top", ?config(os_pid, Config), "--openmetrics", "--rows", "50", "--listen", Endpoint]),
    Metrics = filename:join(?config(priv_dir, Config), "metrics"),
    test_wait:until("there is a sample", ok, fun() ->
                                                     case fetched([Endpoint, "/metrics"]) of
                                                         {0, Text} -> file:write_file(Metrics, Text);
                                                         {_, Why} -> Why
                                                     end
                                             end),
    ?assertEqual({0, <<>>}, test_shell:run("promtool check metrics < '~ts' 2>&1", [Metrics])),
    {1, Refused} = fetched([Endpoint, "/"]),
    ?assertMatch({match, _}, re:run(Refused, "404: not found; the metrics are at /metrics")),
    {1, Taken} = test_command:run(["top", ?config(os_pid, Config), "--openmetrics", "--listen", Endpoint]),
    ?assertMatch({match, _}, re:run(Taken, "can't listen on port \\d+ of 127.0.0.1: Address already in use\n  next: ")),
    with_prometheus(Endpoint, Config, fun asked/2),
    _ = test_command:interrupted(Top).

%% Prometheus has the values that Erlang has, and has read them as OpenMetrics: the older format has other names.
asked(Prometheus, Config) ->
    Limit = call(Config, fun() -> erlang:system_info(process_limit) end),
    test_wait:until("the limit of processes", [Limit],
                    fun() -> values(Prometheus, "dyntrace_limit{of=\"processes\"}") end),
    First = messages(Config),
    test_wait:until("the queue of the archive", fun([Queue]) -> Queue >= First; (_) -> false end,
                    fun() -> values(Prometheus, "dyntrace_process_message_queue_length{name=\"shop_archive\"}") end),
    [Queue] = values(Prometheus, "dyntrace_process_message_queue_length{name=\"shop_archive\"}"),
    ?assert(Queue =< messages(Config)),
    ?assertEqual([1], values(Prometheus, "up")),
    {0, Described} = fetched([Prometheus, "/api/v1/metadata?metric=dyntrace_reductions"]),
    ?assertMatch({match, _}, re:run(Described, "\"type\":\"counter\"")).

messages(Config) ->
    {message_queue_len, Count} = call(Config, fun() -> process_info(whereis(shop_archive), message_queue_len) end),
    Count.

with_prometheus(Endpoint, Config, Fun) ->
    Folder = filename:join(?config(priv_dir, Config), "prometheus"),
    ok = filelib:ensure_path(Folder),
    File = filename:join(Folder, "prometheus.yml"),
    ok = file:write_file(File, ["scrape_configs:\n  - job_name: dyntrace\n    scrape_interval: 1s\n"
                                "    static_configs:\n      - targets: ['", Endpoint, "']\n"]),
    Prometheus = "127.0.0.1:" ++ integer_to_list(test_node:free_port()),
    Command = test_command:launch(lists:flatten(["prometheus --config.file='", File, "' --storage.tsdb.path='", Folder,
                                                 "' --web.listen-address=", Prometheus])),
    try
        Fun(Prometheus, Config)
    after
        ok = test_command:signal("TERM", Command),
        test_command:finish(Command)
    end.

%% The values of a query.
values(Prometheus, Query) ->
    {_, Answer} = fetched([Prometheus, "/api/v1/query?query=", uri_string:quote(Query)]),
    {match, Values} = match(re:run(Answer, "\"value\":\\[[\\d.]+,\"(\\d+)\"\\]",
                                   [global, {capture, all_but_first, list}])),
    [list_to_integer(Value) || [Value] <- Values].

match(nomatch) -> {match, []};
match(Match) -> Match.

%% {Exit status, Body or error}
fetched(Url) ->
    Program = "import sys, urllib.error, urllib.request\n"
        "try:\n"
        "    print(urllib.request.urlopen(\"http://\" + sys.argv[1], timeout=10).read().decode(), end=\"\")\n"
        "except OSError as error:\n"
        "    sys.exit(str(error))\n",
    test_shell:run("python3 -c '~ts' '~ts' 2>&1", [Program, Url]).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
