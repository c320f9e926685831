%% `make demo`: traces a small live system as one would do it in the shell, and prints its
%% events as a system tracer sees them.
-module(dyntrace_demo).

-export([main/0]).

-define(SECONDS, 6).
-define(PAUSE_MS, 700).
-define(FLAGS, [procs, ports, send, 'receive', call, garbage_collection]).

main() ->
    ok = logger:set_primary_config(level, none),
    halt(case {dt_bpftrace:missing(), dt_lttng:tools_missing()} of
             {false, _} -> with_bpftrace(), 0;
             {NoBpftrace, false} -> with_lttng(NoBpftrace), 0;
             {NoBpftrace, NoLttng} -> explain(NoBpftrace, NoLttng), 1
         end).

%% Prints each event when it comes.
with_bpftrace() ->
    #{library := Library} = dyntrace:info(),
    header("bpftrace", "as they happen"),
    Consumer = dt_bpftrace:start_script([script(Library, Probe) || Probe = #{provider := org_erlang_dyntrace, events := [_ | _]} <- dyntrace:probes()],
                                        #{on_line => fun print/1, strlen => 64}),
    ok = live(),
    Lines = dt_bpftrace:stop_script(Consumer),
    counts([probe_of(Line) || {event, Line} <- lists:map(fun event/1, Lines)]),
    next(["and in a terminal, as root:\n\n"
          "  bpftrace -e 'usdt:", Library, ":org_erlang_dyntrace:message_send\n"
          "    { printf(\"%s -> %s  %s\\n\", str(arg0), str(arg1), str(arg2)); }'\n"]).

%% Records, then prints: this needs no root.
with_lttng(NoBpftrace) ->
    io:format("~nNot bpftrace, which needs root (try `sudo make demo`): ~ts~n", [NoBpftrace]),
    header("LTTng", "when it is over"),
    Daemon = dt_lttng:start_daemon(),
    Session = dt_lttng:start(Daemon, ['*']),
    dt_wait:until(fun() -> dyntrace:listeners() =/= [] end),
    ok = live(),
    Lines = dt_lttng:text(Session),
    [io:put_chars([Line, $\n]) || Line <- Lines],
    counts([Probe || Line <- Lines,
                     {match, [Probe]} <- [re:run(Line, "org_erlang_dyntrace:(\\w+):", [{capture, all_but_first, binary}])]]),
    ok = dt_lttng:stop_daemon(Daemon),
    next(["and in a terminal:\n\n"
          "  lttng create && lttng enable-event -u 'org_erlang_dyntrace:*' && lttng start\n"
          "  lttng stop && lttng view\n"]).

%% The system lives for a while, traced as one would do it in the shell.
live() ->
    {module, demo_system} = code:ensure_loaded(demo_system),
    [1 = erlang:trace_pattern({demo_system, Function, 1}, [{'_', [], [{exception_trace}]}], [local])
     || Function <- [order, roll]],
    0 = erlang:trace(new, true, [{tracer, dyntrace, []} | ?FLAGS]),
    System = demo_system:start(?PAUSE_MS),
    receive after ?SECONDS * 1000 -> ok end,
    ok = demo_system:stop(System),
    _ = erlang:trace(new, false, [all]),
    lists:foreach(fun untrace/1, processes()),
    ok.

untrace(Pid) ->
    try erlang:trace(Pid, false, [all])
    catch error:badarg -> 0 % it is gone
    end.

%% -- The bpftrace script: one line an event, made from the catalogue ------------------------

script(Library, #{provider := Provider, name := Name, fields := Fields}) ->
    Numbered = lists:zip(lists:seq(0, length(Fields) - 1), Fields),
    io_lib:format("usdt:~ts:~s:~s { printf(\"%6d.%03d  ~-18s ~s\\n\", ~s~s); }\n",
                  [Library, Provider, Name, Name,
                   lists:join("  ", [[atom_to_list(Field), "=", format(Type)] || #{name := Field, type := Type} <- Fields]),
                   "elapsed / 1000000000, elapsed / 1000000 % 1000",
                   [[", ", argument(Type, I)] || {I, #{type := Type}} <- Numbered]]).

format(string) -> "%s";
format(_) -> "%lu".

argument(string, I) -> io_lib:format("str(arg~b)", [I]);
argument(_, I) -> io_lib:format("arg~b", [I]).

%% -- What is printed ---------------------------------------------------------------------------

%% An event's line begins with its time; the others are what bpftrace says of itself.
event(Line) ->
    case re:run(Line, "^ *[0-9]+\\.[0-9]{3}  ") of
        {match, _} -> {event, Line};
        nomatch -> other
    end.

print(Line) ->
    case event(Line) of
        {event, _} -> io:put_chars([Line, $\n]);
        other -> ok
    end.

header(Tracer, When) ->
    #{library := Library} = dyntrace:info(),
    io:format(
      "~ndyntrace: a stock Erlang VM (OTP ~s, ERTS ~s), traced by ~s.~n~n"
      "  What runs    a supervisor with workers that call, send, spawn, crash and are~n"
      "               restarted, a port and a socket, for ~b seconds~n"
      "  Traced by    erlang:trace(new, true, [~s, {tracer, dyntrace, []}])~n"
      "  Library      ~ts~n"
      "  Events       are printed ~s~n~n",
      [erlang:system_info(otp_release), erlang:system_info(version), Tracer, ?SECONDS,
       lists:join(", ", [io_lib:format("~w", [Flag]) || Flag <- ?FLAGS]), Library, When]).

counts(Probes) ->
    io:format("~n~b events:~n~n", [length(Probes)]),
    [io:format("  ~-18s ~6b~n", [Name, Count])
     || #{name := Name} <- dyntrace:probes(),
        Count <- [length([Probe || Probe <- Probes, Probe =:= atom_to_binary(Name)])], Count > 0].

probe_of(Line) ->
    [_Time, Probe | _] = re:split(string:trim(Line), " +"),
    Probe.

next(Commands) ->
    io:format(
      "~nNext, with your own node. In its shell:~n~n"
      "  1> l(dyntrace).~n"
      "  2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).~n~n"
      "~ts~n"
      "README.md has the rest, docs/PROBES.md every probe.~n", [Commands]).

explain(NoBpftrace, NoLttng) ->
    io:format(
      "~nThe demo prints what a system tracer sees of this VM, and none can be used here:~n~n"
      "  ~ts~n"
      "  ~ts~n~n"
      "LTTng needs no privileges, only lttng-tools and babeltrace2. bpftrace needs root and a kernel~n"
      "with BPF and uprobes. The library itself is built and loads without any of that.~n", [NoBpftrace, NoLttng]).
