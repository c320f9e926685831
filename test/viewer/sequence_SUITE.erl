%% The sink `sequence': its diagrams, and how Mermaid reads them.
-module(sequence_SUITE).

-include("../support/suite.hrl").

-import(test_viewer, [identity/3, send/4, delivery/4]).

-define(A, "<0.90.0>").
-define(B, "<0.91.0>").
-define(C, "<0.92.0>").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [diagram, one_process, between_processes, label, times, limit, gen_server, dead, nothing, parameters,
     {group, mermaid}].

groups() ->
    [{mermaid, [], [read_by_mermaid, hostile_texts]}].

init_per_suite(Config) ->
    test_require:tool(test_viewer:missing(), Config).

end_per_suite(_) -> ok.

init_per_group(mermaid, Config) ->
    test_require:tool(test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch(), Config).

end_per_group(_, _) -> ok.

%% Messages are in the order of the sends; inferred ones are dashed; an exit is a note.
diagram(Config) ->
    ?assertEqual(["sequenceDiagram",
                  "    participant p1 as shop_db #60;0.90.0#62;",
                  "    participant p2 as shop#58;init/1 #60;0.91.0#62;",
                  "    participant p3 as shop#58;init/1 #60;0.92.0#62;",
                  "    p1->>p2: {get,1}",
                  "    p2->>p1: {ok,1}",
                  "    p2-->>p3: other inferred",
                  "    Note over p2: exits#58; normal"],
                 lines([], trace(Config))).

one_process(Config) ->
    ?assertEqual([{"p1", "->>", "p2"}, {"p2", "->>", "p1"}], arrows([{processes, "shop_db"}], trace(Config))).

between_processes(Config) ->
    ?assertEqual([{"p1", "->>", "p2"}, {"p2", "->>", "p1"}], arrows([{processes, "shop_db," ?B}], trace(Config))),
    ?assertEqual([{"p1", "-->>", "p2"}], arrows([{processes, ?C ", " ?B}], trace(Config))),
    ?assertEqual([], arrows([{processes, ?A "," ?C}], trace(Config))).

label(Config) ->
    Traced = [{seq_trace_send,
               #{label => "17", from => ?A, to => ?B, previous => 0, current => 1, message => "{job,1}"}},
              {message_send, #{from => ?A, to => ?B, message => "{job,1}"}},
              {seq_trace_receive,
               #{label => "17", from => ?A, to => ?B, previous => 0, current => 1, message => "{job,1}"}},
              {message_send, #{from => ?B, to => ?A, message => "done"}}],
    Trace = test_viewer:make([{1000 * N, Event, Fields}
                              || {N, {Event, Fields}} <- lists:zip([1, 2, 3, 4], Traced)], Config),
    ?assertMatch([_], arrows([{label, "17"}], Trace)),
    ?assertEqual([], arrows([{label, "18"}], Trace)).

times(Config) ->
    Trace = test_viewer:make([send(N * 1000000000, ?A, ?B, "m" ++ integer_to_list(N)) || N <- lists:seq(1, 9)], Config),
    Texts = fun(Params) -> [lists:last(Line) || Line <- lines(Params, Trace), string:find(Line, "->>") =/= nomatch] end,
    ?assertEqual("3456789", Texts([{from, "2"}])),
    ?assertEqual("345", Texts([{from, "2"}, {to, "4"}])),
    ?assertEqual("12", Texts([{to, "1.5"}])).

%% The first messages are shown, with the number of the remaining ones.
limit(Config) ->
    Trace = test_viewer:make([send(N * 1000, ?A, ?B, "m" ++ integer_to_list(N)) || N <- lists:seq(1, 1000)], Config),
    Lines = lines([{limit, 3}], Trace),
    ?assertEqual(["    p1->>p2: m1", "    p1->>p2: m2", "    p1->>p2: m3",
                  "    Note over p1,p2: 997 later messages are left out"], lists:nthtail(length(Lines) - 4, Lines)),
    ?assertEqual(200, length(arrows([], Trace))).

%% Messages are shown without the wrapper of OTP's behaviours; cut ones, too.
gen_server(Config) ->
    Texts = ["{'$gen_call',{<0.90.0>,[alias|#Ref<0.0.0.1>]},{get,17}}", "{'$gen_cast',stop}",
             "{[[alias|#Ref<0.0.0.1>]|{a,1}],{ok,1}}", "{system,{<0.90.0>,#Ref<0.0.0.1>},get_state}",
             "{'$gen_call',{<0.90.0>,[alias|#Ref<0.0.", "{'$gen_cast',{put,\"aaa..."],
    Trace = test_viewer:make([send(1000 * N, ?A, ?B, Text) || {N, Text} <- lists:enumerate(Texts)], Config),
    ?assertEqual(["call {get,17}", "cast stop", "reply {ok,1}", "system get_state", "call ...", "cast {put,#34;aaa..."],
                 [Text || "    p1->>p2: " ++ Text <- lines([], Trace)]).

dead(Config) ->
    Trace = test_viewer:make([{1000, process_spawn, #{pid => ?B, parent => ?A, entry => "a:b/1"}},
                              {2000, process_exit, #{pid => ?B, reason => "normal"}}, send(3000, ?A, ?B, "hello")],
                             Config),
    ?assertMatch([_], [Line || Line <- lines([], Trace), re:run(Line, "p[12]-xp[12]: hello$") =/= nomatch]).

%% An empty diagram says why it is empty, and so does the terminal.
nothing(Config) ->
    ?assertMatch(["dyntrace: nothing to show: no message matches the parameters" ++ _, "sequenceDiagram",
                  "    participant p1 as nothing to show", "    Note over p1: no message matches" ++ _],
                 lines([{processes, "nobody"}], trace(Config))),
    Silent = test_viewer:make([identity(1000, ?A, "shop_db")], Config),
    ?assertMatch(["dyntrace: nothing to show: no messages were recorded" ++ _ | _], lines([], Silent)).

parameters(Config) ->
    [begin
         {Status, Output} = test_viewer:view(sequence, [Param], [trace(Config)]),
         ?assertNotEqual(0, Status),
         ?assertNotEqual(nomatch, string:find(Output, "parameter " ++ atom_to_list(element(1, Param))))
     end || Param <- [{limit, 0}, {from, "soon"}, {to, "-1"}]].

%% -- Mermaid's parser -------------------------------------------------------------------------------

read_by_mermaid(Config) ->
    ?assertEqual(#{<<"type">> => <<"sequence">>,
                   <<"participants">> => [<<"shop_db <0.90.0>">>, <<"shop:init/1 <0.91.0>">>,
                                          <<"shop:init/1 <0.92.0>">>],
                   <<"steps">> => [step(<<"SOLID">>, <<"p1">>, <<"p2">>, <<"{get,1}">>),
                                   step(<<"SOLID">>, <<"p2">>, <<"p1">>, <<"{ok,1}">>),
                                   step(<<"DOTTED">>, <<"p2">>, <<"p3">>, <<"other inferred">>),
                                   step(<<"NOTE">>, <<"p2">>, <<"p2">>, <<"exits: normal">>)]},
                 mermaid(trace(Config), Config)).

step(Line, From, To, Text) ->
    #{<<"line">> => Line, <<"from">> => From, <<"to">> => To, <<"text">> => Text}.

%% Whatever text a program sends, Mermaid reads one message with that text.
hostile_texts(Config) ->
    Texts = ["a;b#c", "</script><img src=x onerror=alert(1)>", "%%{init: {}}%%", "end", "wrap:x", "$$x^2$$", "#59;",
             "`code`", "a->>b: c", "{\"key\",\"value\"}", "@{ \"type\": \"actor\" }", "---", "\\n", "<br/>",
             [16#E9, $\s, 16#1F600]],
    Trace = test_viewer:make([send(1000 * N, ?A, ?B, Text)
                              || {N, Text} <- lists:zip(lists:seq(1, length(Texts)), Texts)]
                             ++ [send(90000, ?A, ?B, "line\nbreak\tand\e[31mred"),
                                 send(91000, ?A, ?B, lists:duplicate(200, $x))], Config),
    #{<<"steps">> := Steps} = mermaid(Trace, Config),
    ?assertEqual([unicode:characters_to_binary(Text) || Text <- Texts]
                 ++ [<<"line break and [31mred">>, <<(binary:copy(<<"x">>, 80))/binary, "...">>],
                 [Text || #{<<"text">> := Text} <- Steps]).

mermaid(Trace, Config) ->
    File = filename:join(?config(priv_dir, Config), integer_to_list(erlang:unique_integer([positive])) ++ ".mmd"),
    {0, _} = test_viewer:view(sequence, [{path, File}], [Trace]),
    Read = File ++ ".json",
    {0, _} = test_shell:run("node '~ts' '~ts' < '~ts' > '~ts'",
                            [filename:join(test_shell:project(), "test/support/viewer/mermaid.mjs"),
                             test_npm:folder("mermaid"), File, Read]),
    test_viewer:decode(Read).

%% -- Events --------------------------------------------------------------------------------------

trace(Config) ->
    test_viewer:make([identity(1000, ?A, "shop_db"), identity(1000, ?B, ""), identity(1000, ?C, ""),
                      send(2000, ?A, ?B, "{get,1}"), delivery(2100, ?A, ?B, "{get,1}"),
                      send(3000, ?B, ?A, "{ok,1}"), delivery(3100, ?B, ?A, "{ok,1}"),
                      send(4000, ?B, ?C, "other"), {4100, message_receive, #{to => ?C, message => "other"}},
                      {5000, process_exit, #{pid => ?B, reason => "normal"}}], Config).

lines(Params, Trace) ->
    [unicode:characters_to_list(Line) || Line <- test_viewer:lines(sequence, Params, [Trace])].

%% {From, Arrow, To}
arrows(Params, Trace) ->
    [list_to_tuple(Parts) || Line <- lines(Params, Trace),
                             {match, Parts} <- [re:run(Line, "^ +(p\\d+)(-+(?:>>|x))(p\\d+): ",
                                                       [{capture, all_but_first, list}])]].
