%% The speed and memory use of the viewer when it reads recordings, compared with babeltrace2's own sinks.
-module(dyntrace_bench_viewer).

-export([viewer/1]).

%% An exchange has about ten events: a million in all. DYNTRACE_BENCH_EXCHANGES sets another number.
-define(EXCHANGES, 100000).

-define(SINKS, ["sink.utils.counter", "sink.text.pretty", "sink.dyntrace.report", "sink.dyntrace.perfetto",
                "sink.dyntrace.html", "sink.dyntrace.rows"]).

-spec viewer(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
viewer(#{folder := Folder, daemon := Daemon}) ->
    Exchanges = list_to_integer(os:getenv("DYNTRACE_BENCH_EXCHANGES", integer_to_list(?EXCHANGES))),
    Long = recorded(Folder, "long", fun(Path) -> dyntrace_bench_recordings:exchanges(Exchanges, Path, Daemon) end),
    Crowd = recorded(Folder, "crowd", fun(Path) -> dyntrace_bench_recordings:crowded(100000, Path, Daemon) end),
    Rows = [{Sink, [measure(Sink, Recording, Folder) || Recording <- [Long, Crowd]]} || Sink <- ?SINKS],
    [ok = file:del_dir_r(Path) || {Path, _} <- [Long, Crowd]],
    {{"Pictures of recordings",
      ["Millions of events per second of CPU time, and peak memory, of babeltrace2 with each sink. Recorded were 200 "
       "processes that exchange requests and replies: ", millions(element(2, Long)), " million events of messages, "
       "scheduling and garbage collections; and 100,000 live processes, each with two requests and replies: ",
       millions(element(2, Crowd)), " million events."],
      ["sink", "events", "memory", "100,000 processes: events", "memory"],
      [[["`", Sink, "`"] | lists:append([[io_lib:format("~.2f", [PerUs]), [integer_to_list(Mb), " MB"]]
                                         || {PerUs, Mb} <- Figures])] || {Sink, Figures} <- Rows]},
     #{}}.

%% {Folder, number of events}
recorded(Folder, Name, Record) ->
    Path = filename:join(filename:absname(Folder), Name),
    ok = Record(Path),
    {0, Output} = test_shell:run("babeltrace2 '~ts' --component=sink.utils.counter --params=step=+0", [Path]),
    {match, [Count]} = re:run(Output, "(\\d+) Event messages", [{capture, all_but_first, list}]),
    nomatch = re:run(Output, "[1-9]\\d* Discarded"),
    {Path, list_to_integer(Count)}.

%% {Millions of events per second of CPU time, peak memory in MB}
measure(Sink, {Path, Count}, Folder) ->
    File = filename:join(filename:absname(Folder), "picture"),
    Params = case Sink of
                 "sink.utils.counter" -> "step=+0";
                 "sink.text.pretty" -> "path=\"/dev/null\"";
                 _ -> ["path=\"", File, "\""]
             end,
    {0, Output} = test_shell:run("/usr/bin/python3 bench/peak.py babeltrace2 --plugin-path='~ts' '~ts' "
                                 "--component=s:~s --params='~ts'", [test_viewer:plugin(), Path, Sink, Params]),
    _ = file:delete(File),
    [Seconds, Kb] = string:lexemes(lists:last(string:lexemes(Output, "\n")), " "),
    {Count / binary_to_float(Seconds) / 1.0e6, binary_to_integer(Kb) div 1000}.

millions(Count) ->
    io_lib:format("~.1f", [Count / 1.0e6]).
