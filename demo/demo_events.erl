%% Converts the events of each tracer to one form: {Nanoseconds, Probe, #{Field => binary()}}.
-module(demo_events).

-export([script/2, from_bpftrace/1, from_lttng/1, to_line/2]).
-export_type([event/0]).

-type event() :: {non_neg_integer(), atom(), #{atom() => binary()}}.

%% Bytes of a string that bpftrace reads: enough for a call's message with its reference. Three strings of 160 bytes
%% exceed bpftrace's limits.
-define(STRLEN, 120).

%% -- bpftrace: the script is generated from the catalogue; one line per event, with tabs between fields --

%% The script for these probes, and the number of bytes that bpftrace reads of a string.
-spec script(file:filename(), [dyntrace:probe()]) -> {iodata(), pos_integer()}.
script(Library, Probes) ->
    {[probe(Library, Probe) || Probe <- Probes], ?STRLEN}.

probe(Library, #{provider := Provider, name := Name, fields := Fields}) ->
    Read = [read(Type, ["arg", integer_to_list(I)])
            || {I, #{type := Type}} <- lists:zip(lists:seq(0, length(Fields) - 1), Fields)],
    ["usdt:", Library, ":", atom_to_list(Provider), ":", atom_to_list(Name),
     " { printf(\"@\\t%llu\\t", atom_to_list(Name), [["\\t", Format] || {Format, _} <- Read], "\\n\", nsecs",
     [[", ", Argument] || {_, Argument} <- Read], "); }\n"].

read(string, Arg) -> {"%s", ["str(", Arg, ")"]};
read(_, Arg) -> {"%lu", Arg}.

%% Returns none for a message of bpftrace itself.
-spec from_bpftrace(binary()) -> event() | none.
from_bpftrace(<<"@\t", Line/binary>>) ->
    [Ns, Name | Values] = binary:split(Line, <<"\t">>, [global]),
    Probe = binary_to_existing_atom(Name),
    {binary_to_integer(Ns), Probe, maps:from_list(lists:zip(fields(Probe), Values))};
from_bpftrace(_) ->
    none.

%% -- LTTng: the lines of babeltrace2 --------------------------------------------------------------------

-spec from_lttng(binary()) -> event() | none.
from_lttng(Line) ->
    case re:run(Line, "^\\[(\\d+):(\\d+):(\\d+)\\.(\\d+)\\].* org_erlang_dyntrace:(\\w+):(.*)$",
                [{capture, all_but_first, binary}]) of
        {match, [Hours, Minutes, Seconds, Ns, Name, Fields]} ->
            [H, M, S, N] = [binary_to_integer(Number) || Number <- [Hours, Minutes, Seconds, Ns]],
            {((H * 60 + M) * 60 + S) * 1000000000 + N, binary_to_existing_atom(Name), named(Fields)};
        nomatch ->
            none
    end.

named(Fields) ->
    {match, Values} = re:run(Fields, "(\\w+) = (?:\"((?:[^\"\\\\]|\\\\.)*)\"|(-?\\d+))",
                             [global, {capture, all_but_first, binary}]),
    maps:from_list([{binary_to_atom(Name), unescaped(iolist_to_binary(Value))} || [Name | Value] <- Values]).

unescaped(Value) ->
    re:replace(Value, "\\\\(.)", "\\1", [global, {return, binary}]).

%% -- One line per event ---------------------------------------------------------------------------------

%% All fields of the event. Show formats a value.
-spec to_line(event(), fun((binary()) -> iodata())) -> iodata().
to_line({_, Probe, Fields}, Show) ->
    [io_lib:format("~-18s ", [Probe]),
     lists:join("  ", [[atom_to_list(Name), "=", Show(maps:get(Name, Fields))] || Name <- fields(Probe)])].

fields(Probe) ->
    maps:get(Probe, fields()).

%% The fields of all probes. The catalogue is read once, not for each event.
fields() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Fields = maps:from_list(
                       [{Probe, [Name || #{name := Name} <- Named]}
                        || #{provider := org_erlang_dyntrace, name := Probe, fields := Named} <- dyntrace:probes()]),
            ok = persistent_term:put(?MODULE, Fields),
            Fields;
        Fields ->
            Fields
    end.
