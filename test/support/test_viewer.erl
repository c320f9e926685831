%% The viewer: babeltrace2 with the project's plugin.
%%
%%     Folder = test_viewer:make([{1000, process_spawn, #{pid => "<0.9.0>", parent => "<0.1.0>"}}, ...], Config),
%%     {0, Text} = test_viewer:view(report, [], [Folder]),
%%     #{<<"events">> := 2} = test_viewer:json(report, [{format, "json"}], [Folder]).
%%
%% If the suites run with sanitizers, babeltrace2 preloads the sanitizers' runtime.
-module(test_viewer).

-export([missing/0, plugin/0, plugins/0, make/2, make_all/2, view/3, view/4, command/4, cpu_s/2, run/2, lines/3,
         json/3, jsons/3, decode/1, decode_all/1, encode/1]).
%% Events
-export([identity/3, identity/4, identity/5, exited/3, in/3, out/3, send/4, receipt/3, delivery/4, call/3, return/3]).

-type event() :: {Ns :: integer(), Probe :: atom() | string(), Fields :: map()}
               | {Ns :: integer(), Probe :: atom() | string(), Fields :: map(), Where :: map()}
               | map(). % a line of make_trace.py

-define(DEADLINE_S, 120).

%% The missing requirement of the viewer or its tests, or false.
missing() ->
    test_require:first([fun test_lttng:reader_missing/0, fun plugin_missing/0]).

plugin_missing() ->
    plugins() =:= [] andalso "the plugin is not built: it requires libbabeltrace2-dev and pkg-config".

%% The plugin's folder.
plugin() ->
    filename:join([filename:dirname(filename:dirname(code:which(dyntrace))), "priv", "babeltrace2"]).

%% The plugin's libraries; an empty list if it was not built.
plugins() ->
    filelib:wildcard(filename:join(plugin(), "*.so")).

%% Makes a trace of these events. Where: vpid, vtid, cpu, procname, trace.
-spec make([event()], ct_suite:ct_config()) -> file:filename().
make(Events, Config) ->
    hd(make_all([Events], Config)).

%% One run of Python makes them all.
-spec make_all([[event()]], ct_suite:ct_config()) -> [file:filename()].
make_all(Traces, Config) ->
    {priv_dir, Dir} = lists:keyfind(priv_dir, 1, Config),
    Folders = [filename:join(Dir, "trace-" ++ integer_to_list(erlang:unique_integer([positive]))) || _ <- Traces],
    [ok = file:write_file(Folder ++ ".jsonl", [[encode(line(Event)), $\n] || Event <- Events])
     || {Folder, Events} <- lists:zip(Folders, Traces)],
    {0, _} = python("make_trace.py", Folders),
    Folders.

line({Ns, Probe, Fields}) -> line({Ns, Probe, Fields, #{}});
line({Ns, Probe, Fields, Where}) when is_atom(Probe) ->
    line({Ns, "org_erlang_dyntrace:" ++ atom_to_list(Probe), Fields, Where});
line({Ns, Event, Fields, Where}) -> Where#{time => Ns, event => Event, fields => Fields};
line(Line) -> Line.

%% {Exit status, Output}. Params: [{Name, String | Integer | boolean()}].
view(Sink, Params, Traces) ->
    view(Sink, Params, Traces, "").

%% The same with further options of babeltrace2. The remark about missing names is removed, because most known traces
%% have no names.
view(Sink, Params, Traces, Options) ->
    {Status, Output} = run("~ts", [command(Sink, Params, Traces, Options)]),
    Picture = re:replace(Output, "^dyntrace: the recording has no names of processes.*\n  next: .*\n", "", [multiline]),
    {Status, iolist_to_binary(Picture)}.

command(Sink, Params, Traces, Options) ->
    io_lib:format("~ts timeout ~b babeltrace2 --plugin-path='~ts' ~ts ~ts --component=v:sink.dyntrace.~s ~ts",
                  [preload(), ?DEADLINE_S, plugin(), Options, [["'", Trace, "' "] || Trace <- Traces], Sink,
                   params(Params)]).

%% The CPU time in seconds that these sinks need together, even if one fails.
cpu_s(Sinks, Trace) ->
    Commands = [[command(Sink, [{path, "/dev/null"}], [Trace], ""), "; "] || Sink <- Sinks],
    {0, Output} = run("bash -c ~ts 2>&1", [test_command:quoted(["TIMEFORMAT='%U %S'; time { ", Commands,
                                                                "true; } >/dev/null 2>&1"])]),
    lists:sum([binary_to_float(Seconds) || Seconds <- string:lexemes(Output, " \n")]).

params([]) ->
    "";
params(Params) ->
    ["--params='", lists:join(",", [[atom_to_list(Name), "=", param(Value)] || {Name, Value} <- Params]), "'"].

param(Text) when is_list(Text) -> ["\"", Text, "\""];
param(Number) when is_integer(Number) -> integer_to_list(Number);
param(Flag) -> atom_to_list(Flag).

preload() ->
    case os:getenv("DYNTRACE_PRELOAD") of
        false -> "";
        Sanitizers -> "env LD_PRELOAD='" ++ Sanitizers ++ "'"
    end.

run(Format, Args) ->
    test_shell:run(Format, Args).

lines(Sink, Params, Traces) ->
    {0, Output} = view(Sink, Params, Traces),
    binary:split(Output, <<"\n">>, [global, trim_all]).

%% The JSON that a sink writes to its parameter `path', as a term: maps have binaries as keys.
json(Sink, Params, Traces) ->
    decode(json_file(Sink, Params, Traces)).

json_file(Sink, Params, Traces) ->
    File = filename:join(filename:dirname(hd(Traces)),
                         "viewed-" ++ integer_to_list(erlang:unique_integer([positive])) ++ ".json"),
    case view(Sink, [{path, File} | Params], Traces) of
        {0, _} -> File;
        Failed -> error({no_json, Failed})
    end.

%% The JSON of each of these recordings, which are made for it.
-spec jsons(atom(), [{Params :: list(), [event()]}], ct_suite:ct_config()) -> [map()].
jsons(Sink, Recordings, Config) ->
    {Params, Events} = lists:unzip(Recordings),
    Folders = make_all(Events, Config),
    decode_all([json_file(Sink, Of, [Folder]) || {Of, Folder} <- lists:zip(Params, Folders)]).

decode(File) ->
    hd(decode_all([File])).

decode_all(Files) ->
    {0, Terms} = python("json_term.py", Files),
    binary_to_term(Terms).

python(Script, Files) ->
    run("/usr/bin/python3 '~ts'~ts", [script(Script), [[" '", File, "'"] || File <- Files]]).

script(Name) ->
    filename:join([test_shell:project(), "test/support", Name]).

%% JSON for maps, lists, texts (binaries and strings; [] is the empty string), numbers and atoms.
encode(Map) when is_map(Map) ->
    [${, lists:join($,, [[encode(text(Key)), $:, encode(Value)] || {Key, Value} <- maps:to_list(Map)]), $}];
encode(Number) when is_integer(Number) -> integer_to_list(Number);
encode(Word) when Word =:= true; Word =:= false; Word =:= null -> atom_to_list(Word);
encode(Atom) when is_atom(Atom) -> encode(text(Atom));
encode(Text) when is_binary(Text) ->
    case is_plain(Text) of
        true -> [$", Text, $"];
        false -> [$", [escape(Char) || Char <- unicode:characters_to_list(Text)], $"]
    end;
encode(List) when is_list(List) ->
    case io_lib:char_list(List) of
        true -> encode(unicode:characters_to_binary(List));
        false -> [$[, lists:join($,, [encode(Element) || Element <- List]), $]]
    end.

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) -> unicode:characters_to_binary(Text).

is_plain(<<Char, Rest/binary>>) when Char >= $\s, Char < 127, Char =/= $", Char =/= $\\ -> is_plain(Rest);
is_plain(Rest) -> Rest =:= <<>>.

escape(Char) when Char >= $\s, Char < 127, Char =/= $", Char =/= $\\ -> Char;
escape(Char) when Char < 16#10000 -> io_lib:format("\\u~4.16.0b", [Char]);
escape(Char) ->
    Rest = Char - 16#10000,
    [escape(16#D800 + (Rest bsr 10)), escape(16#DC00 + (Rest band 16#3FF))].

%% -- Events ------------------------------------------------------------------------------

identity(At, Pid, Name) -> identity(At, Pid, Name, "shop:init/1").
identity(At, Pid, Name, Initial) -> identity(At, Pid, Name, Initial, "").
identity(At, Pid, Name, Initial, Parent) ->
    {At, process_identity, #{pid => Pid, parent => Parent, initial => Initial, name => Name, label => "",
                             node => "shop@host"}}.
exited(At, Pid, Reason) -> {At, process_exit, #{pid => Pid, reason => Reason}}.
in(At, Pid, Entry) -> {At, process_scheduled, #{pid => Pid, entry => Entry, type => "in"}}.
out(At, Pid, Entry) -> {At, process_scheduled, #{pid => Pid, entry => Entry, type => "out"}}.
send(At, From, To, Message) -> {At, message_send, #{from => From, to => To, message => Message}}.
receipt(At, To, Message) -> {At, message_receive, #{to => To, message => Message}}.
delivery(At, From, To, Message) ->
    {At, message_delivery, #{from => From, to => To, node => "shop@host", message => Message}}.
call(At, Pid, Entry) -> {At, function_call, #{pid => Pid, entry => Entry, depth => 0}}.
return(At, Pid, Entry) -> {At, function_return, #{pid => Pid, entry => Entry, depth => 0}}.
