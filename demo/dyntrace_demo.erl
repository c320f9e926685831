%% `make demo`: traces a small live system as a user would in the shell, and prints its story from the events of a
%% system tracer. With VERBOSE=1 it prints every event.
-module(dyntrace_demo).

-export([main/0]).

-define(PAUSE_MS, 700).
-define(ROUNDS, 8).
-define(FLAGS, [procs, ports, send, 'receive', call, garbage_collection]).

%% bpftrace prints the events of one CPU, then those of the next one. So events are delayed for this time and sorted.
-define(HOLD_MS, 200).

main() ->
    ok = logger:set_primary_config(level, none),
    halt(case {test_bpftrace:missing(), test_lttng:tools_missing()} of
             {false, _} -> with_bpftrace(), demo_picture:make(), 0;
             {NoBpftrace, false} -> with_lttng(NoBpftrace), demo_picture:make(), 0;
             {NoBpftrace, NoLttng} -> explain(NoBpftrace, NoLttng), 1
         end).

%% Prints each event as it arrives.
with_bpftrace() ->
    #{library := Library} = dyntrace:info(),
    header("bpftrace", "as they happen"),
    {Script, Strlen} = demo_events:script(Library, traced_probes()),
    {Printer, Ref} = spawn_monitor(fun() -> hold([], 0, [], new_page()) end),
    Consumer = test_bpftrace:start_script(Script, #{on_line => fun(Line) -> Printer ! {line, Line} end,
                                                  strlen => Strlen}),
    System = live(),
    %% bpftrace drops unread events when it is interrupted.
    ok = test_wait:until("the system's exit is reported",
                         fun() -> has_exited(System, test_bpftrace:lines(Consumer)) end),
    _ = test_bpftrace:stop_script(Consumer),
    Printer ! {end_of_lines, self()},
    receive
        {Printer, Events} -> summary(Events);
        {'DOWN', Ref, process, Printer, Why} -> error(Why)
    end,
    next(["and in a terminal, as root:\n\n"
          "  bpftrace -e 'usdt:", Library, ":org_erlang_dyntrace:message_send\n"
          "    { printf(\"%s -> %s  %s\\n\", str(arg0), str(arg1), str(arg2)); }'\n"]).

%% Records, then prints: this does not require root.
with_lttng(NoBpftrace) ->
    io:format("~nbpftrace can't be used here; it needs root (try `sudo make demo`): ~ts~n", [NoBpftrace]),
    Daemon = test_lttng:start_daemon(),
    header("LTTng", "after the recording"),
    Session = test_lttng:start(Daemon, ['*']),
    test_wait:until("LTTng is attached", fun(Enabled) -> Enabled =/= [] end, fun dyntrace:listeners/0),
    _ = live(),
    Events = [Event || Line <- test_lttng:text(Session), Event <- [demo_events:from_lttng(Line)], Event =/= none],
    _ = lists:foldl(fun print/2, new_page(), Events),
    summary(Events),
    ok = test_lttng:stop_daemon(Daemon),
    next(["and in a terminal:\n\n"
          "  lttng create && lttng enable-event -u 'org_erlang_dyntrace:*' && lttng start\n"
          "  lttng stop && lttng view\n"]).

has_exited(System, Lines) ->
    Pid = list_to_binary(pid_to_list(System)),
    lists:any(fun(Line) ->
                      case demo_events:from_bpftrace(Line) of
                          {_, process_exit, #{pid := Pid}} -> true;
                          _ -> false
                      end
              end, Lines).

%% The system does its rounds while it is traced as if from the shell. Returns its supervisor's pid.
live() ->
    {module, demo_system} = code:ensure_loaded(demo_system),
    [1 = erlang:trace_pattern({demo_system, Function, 1}, [{'_', [], [{exception_trace}]}], [local])
     || Function <- [order, roll]],
    0 = erlang:trace(new, true, [{tracer, dyntrace, []} | ?FLAGS]),
    System = demo_system:start(?PAUSE_MS, ?ROUNDS),
    ok = test_wait:until("the rounds are done", fun() -> demo_system:rounds_done(?ROUNDS) end),
    ok = demo_system:stop(System),
    _ = erlang:trace(new, false, [all]),
    lists:foreach(fun untrace/1, processes()),
    System.

untrace(Pid) ->
    try erlang:trace(Pid, false, [all])
    catch error:badarg -> 0 % it has exited
    end.

%% These probes fire for the same events as others.
-define(NOT_PRINTED, [process_identity, port_identity, message_delivery, function_arguments, function_value,
                      function_reason]).

%% The probes that these flags feed. The groups of callbacks are named like the flags.
traced_probes() ->
    [Probe || Probe = #{provider := org_erlang_dyntrace, name := Name, events := Events} <- dyntrace:probes(),
              not lists:member(Name, ?NOT_PRINTED),
              lists:any(fun(#{group := Group}) -> lists:member(Group, ?FLAGS) end, Events)].

%% -- Printing ----------------------------------------------------------------------------------

%% Each tick prints the events that are older than the newest event of the previous tick. Sends all events at the end.
hold(Waiting, Limit, Printed, Page) ->
    Tick = erlang:send_after(?HOLD_MS, self(), tick),
    {Why, Events} = collect(Waiting),
    _ = erlang:cancel_timer(Tick),
    {Old, New} = lists:partition(fun({Ns, _, _}) -> Why =/= tick orelse Ns =< Limit end, lists:keysort(1, Events)),
    Next = lists:foldl(fun print/2, Page, Old),
    case Why of
        tick -> hold(New, lists:max([Limit | [Ns || {Ns, _, _} <- New]]), Old ++ Printed, Next);
        {end_of_lines, From} -> From ! {self(), lists:keysort(1, Old ++ Printed)}
    end.

collect(Events) ->
    receive
        {line, Line} ->
            case demo_events:from_bpftrace(Line) of
                none -> collect(Events);
                Event -> collect([Event | Events])
            end;
        Other ->
            {Other, Events}
    end.

%% The time of the first event, and the story so far.
new_page() ->
    {none, demo_story:new()}.

print(Event = {Ns, _, _}, {none, Story}) ->
    print(Event, {Ns, Story});
print(Event = {Ns, _, _}, {Began, Story}) ->
    {Text, Next} = demo_story:add(Event, Story),
    Line = case verbose() of
               true -> demo_events:to_line(Event, fun(Value) -> demo_story:show(Value, Next) end);
               false -> Text
           end,
    _ = [io:put_chars([io_lib:format("~8.3f  ", [(Ns - Began) / 1.0e9]), Line, $\n]) || Line =/= none],
    {Began, Next}.

verbose() ->
    not lists:member(os:getenv("VERBOSE", "0"), ["", "0"]).

header(Tracer, When) ->
    #{library := Library} = dyntrace:info(),
    io:format(
      "~ndyntrace: a stock Erlang VM (OTP ~s, ERTS ~s), traced by ~s.~n~n"
      "  The system   a supervisor with workers: a customer who calls a clerk and spawns a process for each~n"
      "               order, a gambler who crashes at each third roll and is restarted, a typist with a port,~n"
      "               a caller and a listener with a socket; ~b rounds of each~n"
      "  Traced by    erlang:trace(new, true, [~s, {tracer, dyntrace, []}])~n"
      "  Library      ~ts~n"
      "  Printed      ~s, ~s~n~n",
      [erlang:system_info(otp_release), erlang:system_info(version), Tracer, ?ROUNDS,
       lists:join(", ", [io_lib:format("~w", [Flag]) || Flag <- ?FLAGS]), Library,
       case verbose() of
           true -> "all events";
           false -> "the events of the story (VERBOSE=1 make demo: all events)"
       end, When]).

%% All numbers come from the events, except those in the last line, which the system has counted itself.
summary(Events) ->
    Story = lists:foldl(fun(Event, Before) -> element(2, demo_story:add(Event, Before)) end, demo_story:new(), Events),
    io:format("~n~b events.~n", [length(Events)]),
    verbose() andalso counts([Probe || {_, Probe, _} <- Events]),
    #{answers := Answers, processes := Processes, restarts := Restarts, crashes := Crashes, rolls := Rolls,
      collections := Collections, ports := Ports, connections := Connections} = demo_story:facts(Story),
    io:format("~nSummary of the events:~n~n"),
    says("clerk", "answers in ~s (~s)", [median(Answers), many(Answers, "call")]),
    says("customer", "~s in separate processes, which live ~s", [many(Processes, "order"), median(Processes)]),
    says("gambler", "~s, crashed ~s: ~ts; up again after ~s",
         [many(Rolls, "roll"), times(length(Crashes)), lists:join(", ", lists:usort(Crashes)), median(Restarts)]),
    says("typist", "~b ports", [Ports]),
    says("caller", "~b connections", [Connections]),
    says("all", "~s, the longest ~s", [many(Collections, "garbage collection"), time(lists:max([0 | Collections]))]),
    #{orders := Orders, rolls := Rolled, crashes := Crashed, ports := Opened, connections := Connected} =
        demo_system:counted(),
    io:format("~nThe system's own count: ~b orders, ~b rolls, ~b crashes, ~b ports, ~b connections.~n",
              [Orders, Rolled, Crashed, Opened, Connected]).

counts(Probes) ->
    [io:format("  ~-18s ~6b~n", [Name, Count])
     || #{name := Name} <- traced_probes(), Count <- [length([Probe || Probe <- Probes, Probe =:= Name])], Count > 0].

says(Who, Format, Args) ->
    io:format("  ~-10s " ++ Format ++ "~n", [Who | Args]).

many(List, What) ->
    io_lib:format("~b ~ss", [length(List), What]).

times(1) -> "once";
times(2) -> "twice";
times(N) -> io_lib:format("~b times", [N]).

median([]) ->
    "no time";
median(Times) ->
    time(lists:nth((length(Times) + 1) div 2, lists:sort(Times))).

time(Ns) when Ns < 10000000 -> io_lib:format("~b us", [Ns div 1000]);
time(Ns) -> io_lib:format("~b ms", [Ns div 1000000]).

next(Commands) ->
    io:format(
      "~nNow trace your own node. In its shell:~n~n"
      "  1> dyntrace:info().~n"
      "  2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).~n~n"
      "~ts~n"
      "See README.md, and docs/PROBES.md for all probes.~n", [Commands]).

explain(NoBpftrace, NoLttng) ->
    io:format(
      "~nThe demo prints what a system tracer sees of this VM. No tracer can be used here:~n~n"
      "  ~ts~n"
      "  ~ts~n~n"
      "LTTng needs lttng-tools and babeltrace2, but no privileges. bpftrace needs root and a kernel~n"
      "with BPF and uprobes. The library itself works without them.~n", [NoBpftrace, NoLttng]).
