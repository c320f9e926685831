%% Measures what an event costs, compared with other tracers. `make bench` prints the tables and writes them to a file.
-module(dyntrace_bench).

-export([main/0, otp/0]).

-define(OTP, "otp.md").

-define(TABLES, [events, messages, ports, parts, annotations, throughput, processes, sizes, hostile, turns, following,
                 identities, viewer]).

%% Makes all tables, or only the named ones, which then replace their sections of the results.
main() ->
    [Folder, Results | Names] = init:get_plain_arguments(),
    ok = dyntrace_floor:load(filename:join(Folder, "dyntrace_floor")),
    ok = logger:set_primary_config(level, error),
    %% A thread loads the provider; its tracepoints are listed after that.
    ok = test_wait:until("the provider is loaded", available,
                         fun() -> maps:get(lttng, maps:get(backends, dyntrace:info())) end),
    Consumers = dyntrace_bench_tracers:start(Folder),
    try
        Tables = [run(Table, Consumers) || Table <- named(Names)],
        #{undecoded := Undecoded} = dyntrace:info(),
        0 = map_size(Undecoded),
        ok = write(Names, Tables, Results, Folder)
    after dyntrace_bench_tracers:stop(Consumers)
    end,
    io:format("Written to ~ts~n", [Results]),
    halt().

named([]) -> ?TABLES;
named(Names) -> [Table || Table <- ?TABLES, lists:member(atom_to_list(Table), Names)].

write([], Tables, Results, Folder) ->
    Figures = maps:from_list([{Name, F} || {Name, _, F} <- Tables]),
    file:write_file(Results, [head(), say(table(targets(Figures))), [table(Table) || {_, Table, _} <- Tables],
                              of_otp(Folder)]);
write(_, Tables, Results, _) ->
    {ok, Before} = file:read_file(Results),
    file:write_file(Results, lists:foldl(fun({_, Table, _}, Text) -> replaced(Table, Text) end, Before, Tables)).

%% A section ends where the next one begins. A new section is appended.
replaced(Table = {Title, _, _, _}, Text) ->
    Section = unicode:characters_to_binary(table(Table)),
    case binary:split(Text, unicode:characters_to_binary(["## ", Title, "\n"])) of
        [Before, After] ->
            Rest = case binary:split(After, <<"\n## ">>) of
                       [_, Next] -> ["## ", Next];
                       [_] -> []
                   end,
            iolist_to_binary([Before, Section, Rest]);
        [_] ->
            iolist_to_binary([Text, Section])
    end.

%% In a VM that was built with LTTng: measures its own tracer, and stores the table for main/0.
otp() ->
    [Folder] = init:get_plain_arguments(),
    lttng = erlang:system_info(dynamic_trace),
    ok = dyntrace_floor:load(filename:join(Folder, "dyntrace_floor")),
    {module, dyntrace} = code:ensure_loaded(dyntrace),
    Consumers = dyntrace_bench_tracers:start(Folder),
    try
        {Table, _} = dyntrace_bench_tables:otp(Consumers),
        ok = file:write_file(filename:join(Folder, ?OTP), say(table(Table)))
    after dyntrace_bench_tracers:stop(Consumers)
    end,
    halt().

of_otp(Folder) ->
    case file:read_file(filename:join(Folder, ?OTP)) of
        {ok, Table} -> Table;
        {error, enoent} -> ""
    end.

run(Name, Consumers) ->
    {Table, Figures} = dyntrace_bench_tables:Name(Consumers),
    _ = say(table(Table)),
    {Name, Table, Figures}.

%% -- Targets -------------------------------------------------------------------------------

%% {What, at most, measured}.
targets(#{events := Events, annotations := Annotations, hostile := Hostile}) ->
    Of = fun(Figures, Row, Column) -> maps:get({Row, Column}, Figures) end,
    Ratio = fun(Figures, {Row1, Column1}, {Row2, Column2}) ->
                    Of(Figures, Row1, Column1) / Of(Figures, Row2, Column2)
            end,
    Small = "send of a small tuple",
    List = "send of a list of 10,000 integers",
    Binary = "send of a binary of 1 MB",
    AboveFloor = [Of(Hostile, Row, lttng) - Of(Hostile, Row, floor) || {Row, lttng} <- maps:keys(Hostile)],
    Targets =
        [{"a call recorded by LTTng, of the floor", 1.55, Ratio(Events, {"call", lttng}, {"call", floor})},
         {"a small send recorded by LTTng, of the floor", 1.55, Ratio(Events, {Small, lttng}, {Small, floor})},
         {"a call without a consumer, of `discard`", 1.05, Ratio(Events, {"call", no_consumer}, {"call", discard})},
         {"a small send without a consumer, of `discard`", 1.05, Ratio(Events, {Small, no_consumer}, {Small, discard})},
         {"a list of 10,000 recorded, of the small send", 1.3, Ratio(Events, {List, lttng}, {Small, lttng})},
         {"a binary of 1 MB recorded, of the small send", 1.3, Ratio(Events, {Binary, lttng}, {Small, lttng})},
         {"the worst term's cost above the floor, in us", 5.0, lists:max(AboveFloor) / 1000},
         {"`p/4` without a consumer, of an empty NIF", 1.5,
          Ratio(Annotations, {"`p(1, 2, 3, 4)`", no_consumer}, {"an empty NIF of four arguments", no_consumer})}],
    {"Targets", "Ratios of the tables below.", ["what", "at most", "measured", ""],
     [[What, io_lib:format("~.2f", [Most]), io_lib:format("~.2f", [Is]),
       case Is =< Most of true -> "met"; false -> "**not met**" end]
      || {What, Most, Is} <- Targets]}.

%% -- Text ----------------------------------------------------------------------------------

head() ->
    VM = io_lib:format("~b schedulers; Erlang/OTP ~s, ERTS ~s, ~s",
                       [erlang:system_info(What) || What <- [schedulers_online, otp_release, version, emu_flavor]]),
    Lines = [first("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1"), VM,
             first("uname -sr"), first("lttng --version"), first("bpftrace --version"), first("date -u +%Y-%m-%d")],
    ["# What it costs\n\nWritten by `make bench`. Figures are medians; compare them only within a table.\n\n",
     [["- ", Line, "\n"] || Line <- Lines], "\n"].

first(Command) ->
    {0, Output} = test_shell:run(Command, []),
    hd(binary:split(Output, <<"\n">>)).

table({Title, About, Head, Rows}) ->
    ["## ", Title, "\n\n", About, "\n\n",
     row(Head), row(["---" | ["---:" || _ <- tl(Head)]]), [row(Row) || Row <- Rows], "\n"].

row(Cells) -> ["| ", lists:join(" | ", Cells), " |\n"].

say(Text) -> io:put_chars(Text), Text.
