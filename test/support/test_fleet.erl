%% The rows of 50 recordings: of ten nodes, one for each of five releases. Processes of every third node crash from the
%% third release on, for which the recorder wrote a snapshot.
-module(test_fleet).

-export([make/1, rows/3, documented/2]).

-define(RELEASES, 5).
-define(NODES, 10).
-define(SINCE, 3).

%% A file with all rows; and of the crashes their number, their nodes, and the first release.
-spec make(ct_suite:ct_config()) -> {file:filename(), [integer() | [binary()] | binary()]}.
make(Config) ->
    Recordings = [{Release, Node, Release >= ?SINCE andalso Node rem 3 =:= 0}
                  || Release <- lists:seq(1, ?RELEASES), Node <- lists:seq(0, ?NODES - 1)],
    Folders = test_viewer:make_all(lists:map(fun events/1, Recordings), Config),
    Parts = [rows(Folder, params(Folder, Recording), Config) || {Folder, Recording} <- lists:zip(Folders, Recordings)],
    All = filename:join(proplists:get_value(priv_dir, Config), "fleet.jsonl"),
    {0, <<>>} = test_shell:run("cat~ts > '~ts'", [[[" '", Part, "'"] || Part <- Parts], All]),
    Crashed = [list_to_binary(name(Node)) || {_, Node, true} <- Recordings],
    {All, [length(Crashed), lists:usort(Crashed), list_to_binary(release(?SINCE))]}.

events({Release, Node, Crashes}) ->
    At = Release * 1000000,
    Where = #{vpid => 17, vtid => 18, procname => "1_scheduler"},
    [{At, node_identity, #{node => name(Node), prefix => "0", otp => "27", os_pid => 17}, Where},
     {At + 1000, process_spawn, #{pid => "<0.91.0>", parent => "<0.90.0>", entry => "shop:till/1"}, Where} |
     [{At + 2000, process_exit, #{pid => "<0.91.0>", reason => "{badmatch,[]}"}, Where} || Crashes]].

params(Folder, {Release, Node, Crashes}) ->
    [{recording, Folder}, {release, release(Release)} |
     [{snapshots, lists:concat([Release * 1000000 + 2000, "\tcrash\t", name(Node), "\tit"])} || Crashes]].

release(Release) -> lists:concat(["1.", Release]).
name(Node) -> lists:concat(["shop@web", Node]).

%% The file with the rows of a recording.
-spec rows(file:filename(), [{atom(), term()}], ct_suite:ct_config()) -> file:filename().
rows(Trace, Params, Config) ->
    Name = io_lib:format("rows-~b.jsonl", [erlang:unique_integer([positive])]),
    File = filename:join(proplists:get_value(priv_dir, Config), Name),
    {0, _} = test_viewer:view(rows, [{path, File} | Params], [Trace]),
    unicode:characters_to_list(File).

%% The part of a document that the regex matches.
-spec documented(file:filename(), string()) -> string().
documented(Doc, Regex) ->
    {ok, Text} = file:read_file(filename:join([test_shell:project(), "docs", Doc])),
    {match, [Found]} = re:run(Text, Regex, [dotall, {capture, first, list}]),
    Found.
