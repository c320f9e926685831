%% Measures the cost of an event, compared with other tracers, and the cost of the application. `make bench` writes the
%% tables to files.
-module(dyntrace_bench).

-export([main/0, otp/0]).

%% The file with the figures of a VM that was built with LTTng.
-define(OTP, "otp.figures").

-define(LTTNG_DOCUMENT, "docs/lttng.md").

%% {Name, the module that measures it}, in the order of the results.
-define(TABLES, [{system, dyntrace_bench_system}, {events, dyntrace_bench_events}, {parts, dyntrace_bench_events},
                 {latency, dyntrace_bench_latency}, {annotations, dyntrace_bench_events},
                 {hostile, dyntrace_bench_events}, {turns, dyntrace_bench_events},
                 {polling, dyntrace_bench_polling}, {following, dyntrace_bench_polling},
                 {identities, dyntrace_bench_polling}, {profile, dyntrace_bench_profile},
                 {viewer, dyntrace_bench_viewer}]).

%% Measured only if they are named, because changes of this project do not affect them.
-define(ON_REQUEST, [{settings, dyntrace_bench_settings}]).

%% Makes all tables except those on request, or only the named ones, which then replace their sections.
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
    [] = [error({not_found, Tool}) || Tool <- ["bpftrace", "perf"], os:find_executable(Tool) =:= false],
    ok = dyntrace_floor:load(filename:join(Folder, "dyntrace_floor")),
    logger:set_primary_config(level, error).

named([]) ->
    ?TABLES;
named(Names) ->
    Tables = [{atom_to_list(Name), Table} || Table = {Name, _} <- ?TABLES ++ ?ON_REQUEST],
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
                                                 | [Table || {_, Table, _} <- Others]]),
    {ok, Text} = file:read_file(Results),
    io:put_chars(["\n", Text]);
written(_, Measured, Results, _) ->
    [ok = dyntrace_bench_results:replace(case Name of settings -> ?LTTNG_DOCUMENT; _ -> Results end, [Table])
     || {Name, Table, _} <- Measured],
    io:put_chars([["\n", dyntrace_bench_results:table(Table)] || {_, Table, _} <- Measured]).

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
