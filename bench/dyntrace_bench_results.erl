%% Writes what was measured: a first table, a summary and a chart, then the other tables.
-module(dyntrace_bench_results).

-export([write/2, replace/2, table/1, line/1]).

-spec write(file:filename(), #{first := dyntrace_bench_figures:table(), summary := dyntrace_bench_figures:table(),
                               chart := file:filename(), tables := [dyntrace_bench_figures:table()]}) -> ok.
write(Results, #{first := First, summary := Summary, chart := Chart, tables := Tables}) ->
    Picture = ["![Nanoseconds per trace event, by tracer, on a logarithmic scale](", filename:basename(Chart), ")\n\n"],
    file:write_file(Results, [head(), table(First), table(Summary), Picture, [table(Table) || Table <- Tables]]).

%% Replaces the sections of these tables in a file.
-spec replace(file:filename(), [dyntrace_bench_figures:table()]) -> ok.
replace(File, Tables) ->
    {ok, Before} = file:read_file(File),
    file:write_file(File, lists:foldl(fun replaced/2, Before, Tables)).

%% A section ends where the next one begins. A new section is appended.
replaced(Table = {Title, _, _, _}, Text) ->
    Section = unicode:characters_to_binary(table(Table)),
    case binary:split(Text, unicode:characters_to_binary(["\n## ", Title, "\n"])) of
        [Before, After] ->
            Rest = case binary:split(After, <<"\n## ">>) of
                       [_, Next] -> ["## ", Next];
                       [_] -> []
                   end,
            iolist_to_binary([Before, "\n", Section, Rest]);
        [_] ->
            iolist_to_binary([Text, Section])
    end.

head() ->
    VM = io_lib:format("~b schedulers; Erlang/OTP ~s, ERTS ~s, ~s",
                       [erlang:system_info(What) || What <- [schedulers_online, otp_release, version, emu_flavor]]),
    Lines = [line("sed -n 's/^model name.*: //p' /proc/cpuinfo"), VM, line("uname -sr"), line("lttng --version"),
             line("bpftrace --version"), line("date -u +%Y-%m-%d")],
    ["# What it costs\n\n"
     "Written by `make bench`. Figures are medians of rounds, unless told otherwise; compare them only within a "
     "table.\n\n",
     [["- ", Line, "\n"] || Line <- Lines], "\n"].

%% The first line that a command prints.
-spec line(string()) -> binary().
line(Command) ->
    {0, Output} = test_shell:run(Command, []),
    hd(binary:split(Output, <<"\n">>)).

-spec table(dyntrace_bench_figures:table()) -> iodata().
table({Title, About, Head, Rows}) ->
    ["## ", Title, "\n\n", About, "\n\n",
     row(Head), row(["---" | ["---:" || _ <- tl(Head)]]), [row(Row) || Row <- Rows], "\n"].

row(Cells) -> ["| ", lists:join(" | ", Cells), " |\n"].
