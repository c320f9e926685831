%% Measures the cost of an event, compared with other tracers, the cost for a real system, and the speed of the viewer.
%% `make bench` writes the tables to a file.
-module(dyntrace_bench).

-export([main/0, otp/0]).

%% The file with the figures of a VM that was built with LTTng.
-define(OTP, "otp.figures").

%% {Name, the module that measures it}, in the order of the results.
-define(TABLES, [{system, dyntrace_bench_system}, {events, dyntrace_bench_events}, {latency, dyntrace_bench_latency},
                 {annotations, dyntrace_bench_events}, {hostile, dyntrace_bench_events},
                 {telemetry, dyntrace_bench_events},
                 {pauses, dyntrace_bench_pauses}, {profiler, dyntrace_bench_profiler},
                 {perf, dyntrace_bench_perf}, {viewer, dyntrace_bench_viewer}]).

%% These take half an hour and an hour, so they are made only if they are named.
-define(LONG, [{systems, dyntrace_bench_system}, {incidents, dyntrace_bench_incidents}]).

%% Makes all tables, or only the named ones, which then replace their sections.
main() ->
    [Folder, Results | Names] = init:get_plain_arguments(),
    Tables = named(Names),
    ok = prepare(Folder),
    %% A thread loads the provider; its tracepoints are listed afterwards.
    ok = test_wait:until("the provider is loaded", available,
                         fun() -> maps:get(lttng, maps:get(backends, dyntrace:info())) end),
    Consumers = dyntrace_bench_tracers:start(Folder),
    try
        Measured = [measured(Table, Consumers) || Table <- Tables],
        #{undecoded := Undecoded} = dyntrace:info(),
        [] = [error({undecoded, Undecoded}) || map_size(Undecoded) > 0],
        ok = written(Names, Measured, Results, Folder)
    after dyntrace_bench_tracers:stop(Consumers)
    end,
    halt().

prepare(Folder) ->
    [error({not_found, "bpftrace"}) || os:find_executable("bpftrace") =:= false],
    ok = dyntrace_floor:load(filename:join(Folder, "dyntrace_floor")),
    logger:set_primary_config(level, error).

named([]) ->
    ?TABLES;
named(Names) ->
    Tables = [{atom_to_list(Name), Table} || Table = {Name, _} <- ?TABLES ++ ?LONG],
    [case lists:keyfind(Name, 1, Tables) of
         {_, Table} -> Table;
         false -> error({no_such_table, Name, [Known || {Known, _} <- Tables]})
     end || Name <- Names].

measured({Name, Module}, Consumers) ->
    {Us, {Table, Figures}} = timer:tc(fun() -> Module:Name(Consumers) end),
    io:format("~s: ~b s~n", [Name, round(Us / 1.0e6)]),
    {Name, Table, Figures}.

written([], Measured, Results, Folder) ->
    {OtpTable, Otp} = otp_figures(Folder, Results),
    Figures = maps:from_list([{Name, F} || {Name, _, F} <- Measured]),
    [{system, System, _}, {events, Events, _} | Others] = Measured,
    ok = dyntrace_bench_results:write(Results, [System, dyntrace_bench_summary:table(Figures, Otp), Events, OtpTable
                                                 | [Table || {_, Table, _} <- Others]
                                                       ++ dyntrace_bench_perf:earlier(Results)
                                                       ++ [dyntrace_bench_results:earlier(Results, Module:title(Name))
                                                           || {Name, Module} <- ?LONG]]),
    {ok, Text} = file:read_file(Results),
    io:put_chars(["\n", Text]);
written(_, Measured, Results, _) ->
    Tables = [Table || {_, Table, _} <- Measured],
    ok = dyntrace_bench_results:replace(Results, Tables),
    io:put_chars([["\n", dyntrace_bench_results:table(Table)] || Table <- Tables]).

%% -- A VM that was built with LTTng ----------------------------------------------------------

%% Measures that VM's own tracer, and stores its figures for main/0.
otp() ->
    [Folder] = init:get_plain_arguments(),
    lttng = erlang:system_info(dynamic_trace),
    ok = prepare(Folder),
    {module, dyntrace} = code:ensure_loaded(dyntrace),
    Consumers = dyntrace_bench_tracers:start(Folder),
    try
        {_, Table, Figures} = measured({otp, dyntrace_bench_events}, Consumers),
        ok = file:write_file(filename:join(Folder, ?OTP), term_to_binary({Table, Figures}))
    after dyntrace_bench_tracers:stop(Consumers)
    end,
    %% The VM may still be writing a large term.
    halt(0, [{flush, false}]).

%% If it was not measured: its previous table and no figures, because figures of different runs are not compared.
otp_figures(Folder, Results) ->
    case file:read_file(filename:join(Folder, ?OTP)) of
        {ok, Binary} -> binary_to_term(Binary);
        {error, enoent} -> {dyntrace_bench_results:earlier(Results, dyntrace_bench_events:otp_title()), none}
    end.
