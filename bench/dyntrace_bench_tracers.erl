%% The tracers that receive the events: the columns of the tables.
-module(dyntrace_bench_tracers).

-export([start/1, stop/1, with/3, trace/3, title/1]).

-export_type([name/0, tracer/0, consumers/0]).

-type name() :: untraced | floor | discard | no_consumer | lttng | bpftrace | process | file | otp.

-type tracer() :: none | {by, [term()]}.
%% Includes the option of erlang:trace/3 that names the tracer.

-type consumers() :: #{folder := file:filename(), daemon := term(), session := term()}.

-spec title(name()) -> string().
title(untraced) -> "untraced";
title(floor) -> "floor";
title(discard) -> "`discard`";
title(no_consumer) -> "no consumer";
title(lttng) -> "LTTng";
title(bpftrace) -> "bpftrace";
title(process) -> "to a process";
title(file) -> "`dbg`, to a file";
title(otp) -> "OTP's tracer, LTTng".

%% A snapshot session: its buffers retain the latest events; no event is written to disk, and no new event is lost.
-spec start(file:filename()) -> consumers().
start(Folder) ->
    Daemon = test_lttng:start_daemon(),
    #{folder => Folder, daemon => Daemon,
      session => test_lttng:start(Daemon, [], #{create => "--snapshot", channel => "--subbuf-size=1M --num-subbuf=4"})}.

-spec stop(consumers()) -> ok.
stop(#{daemon := Daemon, session := Session}) ->
    ok = test_lttng:destroy(Session),
    test_lttng:stop_daemon(Daemon).

-spec with(name(), consumers(), fun((tracer()) -> Result)) -> Result.
with(untraced, _, Fun) ->
    Fun(none);
with(floor, _, Fun) ->
    Fun({by, [{tracer, dyntrace_floor, trace}]});
with(discard, _, Fun) ->
    Fun({by, [{tracer, dyntrace_floor, discard}]});
with(no_consumer, _, Fun) ->
    [] = dyntrace:listeners(),
    Fun({by, [{tracer, dyntrace, []}]});
with(lttng, #{session := Session}, Fun) ->
    ok = test_lttng:enable(Session, '*'),
    ok = test_wait:until("LTTng is attached", fun() -> listens(lttng) end),
    try Fun({by, [{tracer, dyntrace, []}]})
    after
        ok = test_lttng:disable(Session, '*'),
        ok = test_wait:until("LTTng has detached", false, fun() -> listens(lttng) end)
    end;
with(bpftrace, _, Fun) ->
    #{library := Library} = dyntrace:info(),
    Names = [Name || #{provider := org_erlang_dyntrace, name := Name, events := [_ | _]} <- dyntrace:probes()],
    Probes = lists:join($,, [["usdt:", Library, ":org_erlang_dyntrace:", atom_to_list(Name)] || Name <- Names]),
    Consumer = test_bpftrace:start_script([Probes, " { @[probe] = count(); }"], #{}),
    ok = test_wait:until("bpftrace is attached", fun() -> listens(usdt) end),
    try Fun({by, [{tracer, dyntrace, []}]})
    after _ = test_bpftrace:stop_script(Consumer)
    end;
with(process, _, Fun) ->
    {Pid, Ref} = spawn_monitor(fun Drop() -> receive _ -> Drop() end end),
    try Fun({by, [{tracer, Pid}]})
    after
        exit(Pid, kill),
        killed = dyntrace_bench_figures:ended(Pid, Ref)
    end;
with(file, #{folder := Folder}, Fun) ->
    File = filename:join(Folder, "dbg.trace"),
    Port = (dbg:trace_port(file, File))(),
    try Fun({by, [{tracer, Port}]})
    after
        true = port_close(Port),
        ok = file:delete(File)
    end;
with(otp, #{daemon := Daemon, session := Session}, Fun) ->
    ok = test_lttng:enable(Session, '*'),
    ok = test_wait:until("tracepoints", fun(Names) -> Names =/= [] end,
                         fun() -> test_lttng:tracepoints(Daemon, os:getpid()) end),
    try Fun({by, [{tracer, dyntrace, []}]})
    after ok = test_lttng:disable(Session, '*')
    end.

listens(Backend) ->
    lists:any(fun(#{backends := Backends}) -> lists:member(Backend, Backends) end, dyntrace:listeners()).

-spec trace(pid() | port() | all | new, [atom()], tracer()) -> ok.
trace(_, _, none) -> ok;
trace(Whom, Flags, {_, Options}) -> _ = erlang:trace(Whom, true, Flags ++ Options), ok.
