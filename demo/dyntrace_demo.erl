%% `make demo`: LTTng records a small live system. The demo prints the recorded events as a story, sums them up, and
%% renders the recording. With VERBOSE=1 it prints every event.
%% This module has the names of the system's processes and functions; everything else comes from the events.
-module(dyntrace_demo).

-export([main/0]).

-define(FOLDER, "_build/demo").
-define(PAUSE_MS, 2).
-define(ROUNDS, 60).
%% The number of lines of the story that are printed.
-define(LINES, 100).

-type nanoseconds() :: non_neg_integer().
-type event() :: {nanoseconds(), Probe :: binary(), #{Field :: binary() => binary()}}.

-record(story, {names = #{} :: #{binary() => binary()},       % pid or alias => registered name
                began = #{} :: #{term() => nanoseconds()},    % an open interval => its begin
                took = #{} :: #{term() => [nanoseconds()]},   % a kind of interval => the durations
                lines = [] :: [iodata()]}).                   % the last one first

main() ->
    ok = io:setopts([{encoding, unicode}]),
    halt(case test_require:first([fun test_lttng:tools_missing/0, fun test_viewer:missing/0]) of
             false -> demo(), 0;
             Missing -> io:format("~nThe demo can't record or render: ~ts.~n", [Missing]), 1
         end).

demo() ->
    Recording = filename:absname(filename:join(?FOLDER, "recording")),
    _ = file:del_dir_r(Recording),
    io:format("~nLTTng records a node of stock OTP ~s. A customer calls a clerk and spawns a process for each~n"
              "order, a gambler crashes at each third roll and is restarted, a typist has a port, a caller and a~n"
              "listener have a socket. ~b rounds of each; VERBOSE=1 prints all events.~n~n",
              [erlang:system_info(otp_release), ?ROUNDS]),
    Env = [{functions, [{demo_system, Function, '_'} || Function <- [order, roll, connect, handle_call, handle_cast]]},
           {sample_interval, 200}, {log, notice}],
    Counted = test_recording:make(Recording, #{env => Env, before => fun load/1},
                                  fun([Node]) -> test_node:call(Node, fun rounds/0) end),
    {0, Text} = test_shell:run("babeltrace2 --clock-seconds --no-delta --names=payload '~ts' 2>&1", [Recording]),
    Events = lists:append([event(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim_all])]),
    Story = lists:foldl(fun narrate/2, #story{}, Events),
    case os:getenv("VERBOSE", "0") of
        Off when Off =:= ""; Off =:= "0" -> print(lists:reverse(Story#story.lines), element(1, hd(Events)));
        _ -> io:put_chars(Text)
    end,
    io:format("~n~b events. Their summary:~n~n", [length(Events)]),
    summary(Story),
    io:format("~nThe system's own count: ~b orders, ~b rolls, ~b crashes, ~b ports, ~b connections.~n",
              [maps:get(Deed, Counted) || Deed <- [orders, rolls, crashes, ports, connections]]),
    look_at(Recording).

%% Calls of a module that is loaded later are not traced before the next poll.
load([Node]) ->
    {module, demo_system} = test_node:call(Node, fun() -> code:ensure_loaded(demo_system) end).

%% On the node.
rounds() ->
    System = demo_system:start(?PAUSE_MS, ?ROUNDS),
    ok = test_wait:until("the rounds are done", fun() -> demo_system:rounds_done(?ROUNDS) end),
    ok = demo_system:stop(System),
    demo_system:counted().

%% -- Events: the lines of babeltrace2 -------------------------------------------------------------

-spec event(binary()) -> [event()].
event(Line) ->
    case re:run(Line, "^\\[(\\d+)\\.(\\d{9})\\].* org_erlang_dyntrace:(\\w+):(.*)$",
                [{capture, all_but_first, binary}]) of
        {match, [Seconds, Ns, Probe, Fields]} ->
            {match, Values} = re:run(Fields, "(\\w+) = (?:\"((?:[^\"\\\\]|\\\\.)*)\"|(-?\\d+))",
                                     [global, {capture, all_but_first, binary}]),
            [{binary_to_integer(<<Seconds/binary, Ns/binary>>), Probe,
              maps:from_list([{Name, re:replace(Value, "\\\\(.)", "\\1", [global, {return, binary}])}
                              || [Name | Value] <- Values])}];
        nomatch -> []
    end.

%% -- The story --------------------------------------------------------------------------------------

-spec narrate(event(), #story{}) -> #story{}.
narrate({Ns, <<"process_register">>, #{<<"pid">> := Pid, <<"name">> := Name, <<"type">> := <<"register">>}}, Story) ->
    Named = Story#story{names = (Story#story.names)#{Pid => Name}},
    {After, Next} = took(restart, Name, Ns, Named),
    line(Ns, [show(Pid, Next), " starts", [" again" || After =/= []], After], Next);
narrate({Ns, <<"process_spawn">>, #{<<"pid">> := Pid, <<"parent">> := Parent, <<"entry">> := Entry}}, Story) ->
    case name(Parent, Story) of
        <<"demo_customer">> ->
            line(Ns, [show(Parent, Story), " spawns ", Pid, " in ", Entry], began({process, Pid}, Ns, Story));
        _ -> Story
    end;
narrate({Ns, <<"process_exit">>, #{<<"pid">> := Pid, <<"reason">> := Reason}}, Story) ->
    {After, Next} = took(process, {process, Pid}, Ns, Story),
    case name(Pid, Story) of
        none when After =:= [] -> Next;
        <<"demo_gambler">> = Name when Reason =/= <<"shutdown">> ->
            line(Ns, [show(Pid, Story), " crashes: ", Reason], began(Name, Ns, adds({crash, Reason}, 0, Next)));
        _ -> line(Ns, [show(Pid, Story), " exits", After, ": ", Reason], Next)
    end;
narrate({Ns, <<"function_call">>, #{<<"pid">> := Pid, <<"entry">> := Function}}, Story) ->
    began({Pid, Function}, Ns, Story);
narrate({Ns, Ends, #{<<"pid">> := Pid, <<"entry">> := Function} = Fields}, Story)
  when (Ends =:= <<"function_return">> orelse Ends =:= <<"function_exception">>)
       andalso (Function =:= <<"demo_system:order/1">> orelse Function =:= <<"demo_system:roll/1">>) ->
    {After, Next} = took(Function, {Pid, Function}, Ns, Story),
    How = case Fields of
              #{<<"class">> := Class} -> [" ends by ", Class];
              #{} -> " returns"
          end,
    line(Ns, [show(Pid, Story), ": ", Function, How, After], Next);
narrate({Ns, <<"port_open">>, #{<<"pid">> := Pid, <<"driver">> := Driver, <<"port">> := Port}}, Story) ->
    Line = [show(Pid, Story), " opens ", Port, ", ", Driver],
    case {name(Pid, Story), Driver} of
        {<<"demo_typist">>, _} -> line(Ns, Line, adds(port, 0, Story));
        {<<"demo_caller">>, <<"tcp_inet">>} -> line(Ns, Line, adds(connection, 0, Story));
        _ -> Story
    end;
%% A call to a gen_server contains an alias of the caller; the reply is sent to the alias.
narrate({Ns, <<"message_send">>, #{<<"from">> := From, <<"to">> := To, <<"message">> := Message}}, Story) ->
    {Sender, Receiver} = {name(From, Story), name(To, Story)},
    {After, Next} = case re:run(Message, "^{'\\$gen_call',{[^,]+,\\[alias\\|(#Ref<[0-9.]+>)",
                                [{capture, all_but_first, binary}]) of
                        {match, [Alias]} ->
                            {[], began(Alias, Ns, Story#story{names = (Story#story.names)#{Alias => Sender}})};
                        nomatch -> took({answer, Sender}, To, Ns, Story)
                    end,
    case Sender =:= none orelse Receiver =:= none of
        true -> Next;
        false ->
            Short = re:replace(Message, "#Ref<[0-9.]+>", "#Ref<..>", [global]),
            line(Ns, [Sender, " -> ", Receiver, ": ", Short, After], Next)
    end;
narrate({Ns, <<"gc_", Rest/binary>>, #{<<"pid">> := Pid}}, Story) ->
    case Rest of
        <<_:5/binary, "_start">> -> began({gc, Pid}, Ns, Story);
        <<_:5/binary, "_end">> -> element(2, took(gc, {gc, Pid}, Ns, Story))
    end;
narrate(_, Story) ->
    Story.

%% The registered name of a pid or of an alias's owner. If the sender used a name, that name.
name(<<First, _/binary>> = Id, #story{names = Names}) when First =:= $<; First =:= $# -> maps:get(Id, Names, none);
name(Name, _) -> Name.

show(Pid, Story) ->
    [[[Name, " "] || Name <- [name(Pid, Story)], Name =/= none], Pid].

line(Ns, Line, Story) ->
    Story#story{lines = [{Ns, Line} | Story#story.lines]}.

began(Interval, Ns, Story) ->
    Story#story{began = (Story#story.began)#{Interval => Ns}}.

%% The duration as text; empty if the begin was not recorded.
took(Kind, Interval, Ns, Story) ->
    case maps:take(Interval, Story#story.began) of
        {Began, Rest} -> {[", after ", time(Ns - Began)], adds(Kind, Ns - Began, Story#story{began = Rest})};
        error -> {[], Story}
    end.

adds(Kind, Time, Story = #story{took = Took}) ->
    Story#story{took = Took#{Kind => [Time | maps:get(Kind, Took, [])]}}.

%% -- Printing -----------------------------------------------------------------------------------------

print(Lines, Began) ->
    [io:format("~8.3f  ~ts~n", [(Ns - Began) / 1.0e9, Line]) || {Ns, Line} <- lists:sublist(Lines, ?LINES)],
    io:format("... and ~b more lines~n", [max(0, length(Lines) - ?LINES)]).

summary(#story{took = Took}) ->
    Of = fun(Kind) -> maps:get(Kind, Took, []) end,
    Crashes = [{Reason, length(Times)} || {{crash, Reason}, Times} <- maps:to_list(Took)],
    says("clerk", "answers in ~s (~b calls)", both(Of({answer, <<"demo_clerk">>}))),
    says("customer", "orders live ~s (~b orders)", both(Of(process))),
    says("gambler", "~b rolls, crashed ~b times: ~ts; up again after ~s",
         [length(Of(<<"demo_system:roll/1">>)), lists:sum([Count || {_, Count} <- Crashes]),
          lists:join(", ", [Reason || {Reason, _} <- Crashes]), median(Of(restart))]),
    says("typist", "~b ports", [length(Of(port))]),
    says("caller", "~b connections", [length(Of(connection))]),
    says("all", "~s in a garbage collection (~b), at most ~s", both(Of(gc)) ++ [time(lists:max([0 | Of(gc)]))]).

says(Who, Format, Args) ->
    io:format("  ~-10s " ++ Format ++ "~n", [Who | Args]).

both(Times) ->
    [median(Times), length(Times)].

median([]) -> "no time";
median(Times) -> time(lists:nth((length(Times) + 1) div 2, lists:sort(Times))).

time(Ns) when Ns < 10000000 -> io_lib:format("~b us", [Ns div 1000]);
time(Ns) -> io_lib:format("~b ms", [Ns div 1000000]).

look_at(Recording) ->
    {0, Report} = test_viewer:view(report, [], [Recording]),
    Findings = lists:sublist(binary:split(Report, <<"\n\n">>, [global]), 2),
    io:format("~nThe report of the viewer begins with:~n~n~ts~n", [lists:join("\n\n", Findings)]),
    [Page, Trace] = [filename:absname(filename:join(?FOLDER, Name)) || Name <- ["demo.html", "demo.pftrace"]],
    [{0, _} = test_viewer:view(Sink, [{path, File}], [Recording]) || {Sink, File} <- [{html, Page}, {perfetto, Trace}]],
    io:format("~nLook at it:~n~n"
              "  ~ts~n      a page with everything, for any browser~n"
              "  ~ts~n      for https://ui.perfetto.dev, which reads it in the browser~n"
              "  babeltrace2 --plugin-path=~ts \\~n              ~ts --component=sink.dyntrace.report~n"
              "      the whole report~n~n"
              "docs/pictures.md says how to record your own node, and what else there is.~n",
              [Page, Trace, test_viewer:plugin(), Recording]).
