%% Writes the results.
-module(dyntrace_bench_results).

-export([write/2, replace/2, earlier/2, table/1, line/1]).

-spec write(file:filename(), [dyntrace_bench_figures:table() | binary()]) -> ok.
write(Results, Tables) ->
    file:write_file(Results, [head() | [table(Table) || Table <- Tables]]).

%% Replaces the sections of these tables in a file.
-spec replace(file:filename(), [dyntrace_bench_figures:table()]) -> ok.
replace(File, Tables) ->
    {ok, Before} = file:read_file(File),
    file:write_file(File, lists:foldl(fun replaced/2, Before, Tables)).

%% A new section is appended. It has a date of its own, because the others are of an earlier run.
replaced({Title, About, Head, Rows}, Text) ->
    {Before, _, After} = divided(Title, Text),
    Dated = ["Measured on ", line("date -u +%Y-%m-%d"), ". ", About],
    iolist_to_binary([Before, table({Title, Dated, Head, Rows}), After]).

%% The section of a file that was measured in another run, with a note about that; empty if it or the file is missing.
-spec earlier(file:filename(), string()) -> binary().
earlier(File, Title) ->
    case file:read_file(File) of
        {ok, Text} ->
            {_, Section, _} = divided(Title, Text),
            re:replace(Section, "^(## .*\n\n)(Of an earlier run\\. )?", "\\1Of an earlier run. ", [{return, binary}]);
        {error, enoent} ->
            <<>>
    end.

%% The text before the section, the section, which ends where the next one begins, and the text after it.
divided(Title, Text) ->
    Sections = re:split(Text, "^(?=## )", [multiline]),
    Heading = unicode:characters_to_binary(["## ", Title, "\n"]),
    {Before, From} = lists:splitwith(fun(Section) -> binary:longest_common_prefix([Section, Heading])
                                                         < byte_size(Heading) end, Sections),
    {Found, After} = lists:split(min(1, length(From)), From),
    {iolist_to_binary(Before), iolist_to_binary(Found), iolist_to_binary(After)}.

head() ->
    VM = io_lib:format("~b schedulers; Erlang/OTP ~s, ERTS ~s, ~s",
                       [erlang:system_info(What) || What <- [schedulers_online, otp_release, version, emu_flavor]]),
    Lines = [line("sed -n 's/^model name.*: //p' /proc/cpuinfo"), VM, line("uname -sr | sed 's/-.*//'"),
             line("lttng --version"), line("bpftrace --version"), line("date -u +%Y-%m-%d")],
    ["# What it costs\n\n"
     "Written by `make bench`. Figures are medians of rounds, unless stated otherwise; compare them only within a "
     "table.\n\n",
     [["- ", Line, "\n"] || Line <- Lines], "\n"].

%% The first line that a command prints.
-spec line(string()) -> binary().
line(Command) ->
    {0, Output} = test_shell:run(Command, []),
    hd(binary:split(Output, <<"\n">>)).

%% The text of a table, which may already be formatted.
-spec table(dyntrace_bench_figures:table() | binary()) -> iodata().
table(Written) when is_binary(Written) ->
    Written;
table({Title, About, Head, Rows}) ->
    ["## ", Title, "\n\n", About, "\n\n",
     row(Head), row(["---" | ["---:" || _ <- tl(Head)]]), [row(Row) || Row <- Rows], "\n"].

row(Cells) -> ["| ", lists:join(" | ", Cells), " |\n"].
