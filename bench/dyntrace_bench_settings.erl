%% The costs of LTTng's settings for the traced process. Each is recorded to disk, from a node with the required
%% environment.
-module(dyntrace_bench_settings).

-export([settings/1]).

-import(dyntrace_bench_figures, [in_turn/3, median/1, ns/1, count/1, ratio/1]).

-define(SENDS, 150000).

-define(ROUNDS, 3).

%% Untraced and recorded sends are measured in turn, because the speed of a machine varies over time.
-define(PARTS, 10).

%% The rows with which others are compared: buffers, with no other setting.
-define(DEFAULT, "default: per user, 4 of 512 kB").
-define(SMALL, "4 sub-buffers of 16 kB").
-define(LARGE, "4 of 1 MB").
-define(LARGEST, "8 of 2 MB").

-spec settings(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
settings(#{daemon := Daemon, folder := Folder}) ->
    Plugin = filename:absname(filename:join(Folder, "lttng_plugins.so")),
    Kinds = nodes_of(Plugin),
    Nodes = maps:map(fun(_, Env) -> started(Env) end, Kinds),
    Figures = in_turn(?ROUNDS, rows(),
                      fun({Title, _, Kind, Options}) ->
                              [{{Title, Column}, Value}
                               || {Column, Value} <- sent(maps:get(Kind, Nodes), Daemon, Options)]
                      end),
    _ = maps:map(fun(_, Node) -> test_node:stop(Node) end, Nodes),
    Figure = fun(Title, Column) -> maps:get({Title, Column}, Figures) end,
    {{"What settings cost",
      io_lib:format(
        "The time of a small send that LTTng records to disk, in multiples of an untraced send (~s ns); both are\n"
        "measured alternately. Lost: the share of ~s consecutive sends, by one process at full speed, for which\n"
        "no sub-buffer was free.\n"
        "Written by `make bench TABLES=settings` on ~s.",
        [ns(Figure(?DEFAULT, untraced_ns)), count(?SENDS), dyntrace_bench_results:line("date -u +%Y-%m-%d")]),
      ["setting", "untraced sends", "compared with", "ratio", "lost"],
      [[Title, ratio(Figure(Title, sends)), Base, ratio(Figure(Title, sends) / Figure(Base, sends)),
        lost(Figure(Title, lost), Options)] || {Title, Base, _, Options} <- rows()]},
     Figures}.

%% The environments with which nodes of each kind are started.
nodes_of(Plugin) ->
    #{stock => [],
      blocking => [{"LTTNG_UST_ALLOW_BLOCKING", "1"}],
      clock => [{"LTTNG_UST_CLOCK_PLUGIN", Plugin}],
      getcpu => [{"LTTNG_UST_GETCPU_PLUGIN", Plugin}]}.

%% {Title, the row that differs only by this setting, kind of node, options of test_lttng:start/3, `sends`, `parts`}
rows() ->
    Small = "--subbuf-size=16k --num-subbuf=4",
    Large = "--subbuf-size=1M --num-subbuf=4",
    Largest = "--subbuf-size=2M --num-subbuf=8",
    [{?DEFAULT, ?DEFAULT, stock, #{channel => ""}},
     {?SMALL, ?DEFAULT, stock, #{channel => Small}},
     {?LARGE, ?DEFAULT, stock, #{channel => Large}},
     {?LARGEST, ?DEFAULT, stock, #{channel => Largest}},
     {"`--buffers-pid`, without a size: 4 of 16 kB", ?SMALL, stock, #{channel => "--buffers-pid"}},
     {"`--buffers-pid`, 4 of 1 MB", ?LARGE, stock, #{channel => "--buffers-pid " ++ Large}},
     {"`--overwrite`", ?LARGE, stock, #{channel => "--overwrite " ++ Large}},
     {"`lttng create --snapshot`", ?LARGE, stock, #{create => "--snapshot", channel => Large}},
     {"contexts `vpid`, `vtid`", ?LARGEST, stock, #{channel => Largest, contexts => [vpid, vtid]}},
     {"contexts `vpid`, `vtid`, `procname`", ?LARGEST, stock,
      #{channel => Largest, contexts => [vpid, vtid, procname]}},
     {"a filter that passes: `--filter 'to == \"*\"'`", ?LARGEST, stock,
      #{channel => Largest, event => "--filter 'to == \"*\"'"}},
     {"a filter that nothing passes: `--filter 'to == \"x\"'`", ?LARGEST, stock,
      #{channel => Largest, event => "--filter 'to == \"x\"'"}},
     {"clock plugin: the CPU's counter", ?LARGEST, clock, #{channel => Largest}},
     {"getcpu plugin: `rseq`", ?LARGEST, getcpu, #{channel => Largest}},
     {"`--blocking-timeout=inf`, allowed", ?SMALL, blocking,
      #{channel => Small ++ " --blocking-timeout=inf", sends => ?SENDS div 10, parts => 1}}].

started(Env) ->
    Node = test_node:start(#{env => Env}),
    {module, _} = peer:call(Node, code, ensure_loaded, [dyntrace_bench_ops]),
    ok = test_wait:until("the provider is loaded", available,
                         fun() -> maps:get(lttng, maps:get(backends, peer:call(Node, dyntrace, info, []))) end),
    {ok, Mapped} = peer:call(Node, file, read_file, ["/proc/self/maps"]),
    [{_, _} = binary:match(Mapped, list_to_binary(Plugin)) || {"LTTNG_UST_" ++ _, Plugin = "/" ++ _} <- Env],
    Node.

sent(Node, Daemon, Options) ->
    Session = test_lttng:start(Daemon, [message_send], Options),
    ok = test_wait:until("LTTng is attached", fun() -> peer:call(Node, dyntrace, listeners, []) =/= [] end),
    Op = peer:call(Node, dyntrace_bench_ops, sends, [{order, 17}]),
    Recorded = {by, [{tracer, dyntrace, []}]},
    _ = measured(Op#{times => sends(Options)}, Node, Recorded),
    Lost = lost_of(Session, Daemon),
    Parts = maps:get(parts, Options, ?PARTS),
    Part = Op#{times => sends(Options) div Parts},
    Pairs = [{measured(Part, Node, none), measured(Part, Node, Recorded)} || _ <- lists:seq(1, Parts)],
    ok = test_lttng:destroy(Session),
    ok = test_wait:until("LTTng has detached", [], fun() -> peer:call(Node, dyntrace, listeners, []) end),
    [{sends, median([Ns / Untraced || {Untraced, Ns} <- Pairs])},
     {untraced_ns, median([Untraced || {Untraced, _} <- Pairs])},
     {lost, Lost}].

measured(Op, Node, Tracer) -> peer:call(Node, dyntrace_bench_ops, measure, [Op, Tracer], infinity).

sends(Options) -> maps:get(sends, Options, ?SENDS).

lost_of(Session, Daemon) ->
    {0, About} = test_lttng:lttng(Daemon, "list ~s", [test_lttng:name(Session)]),
    case re:run(About, "Discarded events: (\\d+)", [{capture, all_but_first, binary}]) of
        {match, [Count]} -> binary_to_integer(Count);
        nomatch -> 0
    end.

%% Snapshot sessions never lose the newest events: they overwrite the oldest ones.
lost(_, #{create := "--snapshot"}) -> "overwrites";
lost(_, #{channel := "--overwrite" ++ _}) -> "overwrites";
lost(Lost, Options) -> io_lib:format("~.1f %", [100 * Lost / sends(Options)]).
