%% The demo's last part: LTTng records the demo's system in a separate node, and the viewer renders the recording.
-module(demo_picture).

-export([make/0]).

-define(PAUSE_MS, 2).
-define(ROUNDS, 60).

%% The folder of the demo's modules.
-define(FOLDER, "_build/demo").

-spec make() -> ok.
make() ->
    case missing() of
        false -> record_and_show();
        Missing -> io:format("~nNo picture of the system: ~ts.~n", [Missing])
    end.

missing() ->
    case {test_lttng:tools_missing(), test_viewer:plugins()} of
        {false, []} -> "the viewer was built without libbabeltrace2 (Debian: libbabeltrace2-dev)";
        {Missing, _} -> Missing
    end.

record_and_show() ->
    Recording = filename:join(?FOLDER, "recording"),
    _ = file:del_dir_r(Recording),
    ok = io:setopts([{encoding, unicode}]),
    io:format("~nLTTng records the same system, ~b rounds with shorter pauses, ...", [?ROUNDS]),
    ok = test_recording:make(Recording, #{env => [{functions, traced()}, {sample_interval, 200}, {log, notice}],
                                          before => fun load/1},
                             fun([Node]) -> test_node:call(Node, fun rounds/0) end),
    {0, Report} = test_viewer:view(report, [], [Recording]),
    io:format(" and the viewer finds:~n~n~ts", [findings(Report)]),
    Page = picture(html, "demo.html", Recording),
    Trace = picture(perfetto, "demo.pftrace", Recording),
    io:format("~nLook at it:~n~n"
              "  ~ts~n"
              "      a page with everything: open it in a browser~ts~n"
              "  ~ts~n"
              "      open it at https://ui.perfetto.dev, which reads it in the browser~n"
              "  babeltrace2 --plugin-path=~ts \\~n"
              "              ~ts --component=sink.dyntrace.report~n"
              "      the whole report~n~n"
              "docs/pictures.md says how to record your own node, and what else there is.~n",
              [Page, screen(), Trace, test_viewer:plugin(), filename:absname(Recording)]).

%% Calls of a module that is loaded later are not traced before the next poll.
load([Node]) ->
    {module, demo_system} = test_node:call(Node, fun() -> code:ensure_loaded(demo_system) end).

traced() ->
    [{demo_system, Function, '_'} || Function <- [order, roll, connect, handle_call, handle_cast]].

%% On the node.
rounds() ->
    System = demo_system:start(?PAUSE_MS, ?ROUNDS),
    ok = test_wait:until("the rounds are done", fun() -> demo_system:rounds_done(?ROUNDS) end),
    demo_system:stop(System).

picture(Sink, Name, Recording) ->
    File = filename:absname(filename:join(?FOLDER, Name)),
    {0, _} = test_viewer:view(Sink, [{path, File}], [Recording]),
    File.

%% The report begins with the findings, followed by the contents of the recording.
findings(Report) ->
    [["  ", Line, $\n] || Part <- lists:sublist(binary:split(Report, <<"\n\n">>, [global]), 2),
                         Line <- binary:split(Part, <<"\n">>, [global])].

screen() ->
    case os:getenv("DISPLAY", os:getenv("WAYLAND_DISPLAY", "")) of
        "" -> ", e.g. after you have copied it to a machine with a screen";
        _ -> ""
    end.
