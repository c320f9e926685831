%% `make demo`: traces a small live system as one would do it in the shell, and prints its
%% events as a system tracer sees them.
-module(dyntrace_demo).

-export([main/0]).

-define(SECONDS, 6).
-define(PAUSE_MS, 700).
-define(FLAGS, [procs, ports, send, 'receive', call, garbage_collection]).

main() ->
    halt(case dt_bpftrace:missing() of
             false -> run(), 0;
             Missing -> explain(Missing), 1
         end).

run() ->
    ok = logger:set_primary_config(level, none),
    #{library := Library} = dyntrace:info(),
    Probes = dyntrace:probes(),
    Names = [Name || #{name := Name} <- Probes],
    header(Library),
    Consumer = dt_bpftrace:start_script([script(Library, Probe) || Probe <- Probes],
                                        #{on_line => fun print/1, strlen => 64}),
    Names = [Name || #{name := Name} <- dyntrace:listeners()],
    {module, demo_system} = code:ensure_loaded(demo_system),
    Functions = erlang:trace_pattern({demo_system, '_', '_'}, [{'_', [], [{exception_trace}]}], [local]),
    true = Functions > 0,
    0 = erlang:trace(new, true, [{tracer, dyntrace, []} | ?FLAGS]),
    System = demo_system:start(?PAUSE_MS),
    receive after ?SECONDS * 1000 -> ok end,
    ok = demo_system:stop(System),
    _ = erlang:trace(all, false, [all]),
    Lines = dt_bpftrace:stop_script(Consumer),
    footer(Library, Names, [Line || {event, Line} <- lists:map(fun event/1, Lines)]).

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

header(Library) ->
    io:format(
      "~ndyntrace: a stock Erlang VM (OTP ~s, ERTS ~s), traced by bpftrace.~n~n"
      "  What runs    a supervisor with workers that call, send, spawn, crash and are~n"
      "               restarted, a port and a socket, for ~b seconds~n"
      "  Traced by    erlang:trace(new, true, [~s, {tracer, dyntrace, []}])~n"
      "  Probes in    ~ts~n~n"
      "  Seconds       Probe              Arguments~n",
      [erlang:system_info(otp_release), erlang:system_info(version), ?SECONDS,
       lists:join(", ", [io_lib:format("~w", [Flag]) || Flag <- ?FLAGS]), Library]).

footer(Library, Names, Lines) ->
    Counts = [{Name, length([Line || Line <- Lines, probe_of(Line) =:= atom_to_binary(Name)])} || Name <- Names],
    io:format("~n~b events:~n~n", [length(Lines)]),
    [io:format("  ~-18s ~6b~n", [Name, Count]) || {Name, Count} <- Counts, Count > 0],
    io:format(
      "~nNext, with your own node. In its shell:~n~n"
      "  1> l(dyntrace).~n"
      "  2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).~n~n"
      "and in a terminal, as root:~n~n"
      "  bpftrace -e 'usdt:~ts:org_erlang_dyntrace:message_send~n"
      "    { printf(\"%s -> %s  %s\\n\", str(arg0), str(arg1), str(arg2)); }'~n~n"
      "README.md has the rest, docs/PROBES.md every probe.~n", [Library]).

probe_of(Line) ->
    [_Time, Probe | _] = re:split(string:trim(Line), " +"),
    Probe.

explain(Missing) ->
    io:format(
      "~nThe demo prints what a system tracer sees of this VM, and none can be used here:~n~n"
      "  ~ts~n~n"
      "bpftrace needs root (CAP_BPF and CAP_PERFMON) and a kernel with BPF and uprobes: try~n"
      "`sudo make demo`, outside of a container that withholds them. The library itself is~n"
      "built and loads without any of that.~n", [Missing]).
