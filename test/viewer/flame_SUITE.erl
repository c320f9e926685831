%% The sink `flame': the time of each stack, and how speedscope's own importer reads it.
-module(flame_SUITE).

-include("../support/suite.hrl").

-import(test_viewer, [identity/3, in/3, out/3, call/3, return/3]).

-define(A, "<0.90.0>").
-define(B, "<0.91.0>").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [calls, by_initial, by_none, waits, separators, parameters, nothing, tree_is_bounded, speedscope].

init_per_suite(Config) ->
    test_require:tool(test_viewer:missing(), Config).

end_per_suite(_) -> ok.

init_per_testcase(speedscope, Config) ->
    case browser_missing() of
        false -> Config;
        Missing -> test_require:tool(Missing, Config)
    end;
init_per_testcase(_, Config) -> Config.

browser_missing() ->
    case os:find_executable("chromium") of
        false -> "chromium not installed";
        _ -> test_npm:missing() =/= false andalso test_npm:missing() orelse test_npm:fetch()
    end.

end_per_testcase(_, _) -> ok.

calls(Config) ->
    ?assertEqual(["shop@host;shop:init/1 <0.91.0>;shop:get/1 500",
                  "shop@host;shop_db <0.90.0>;shop:get/1 3000",
                  "shop@host;shop_db <0.90.0>;shop:get/1;shop:find/2 1500"],
                 folded([], trace(Config))).

%% Processes with the same initial call are merged.
by_initial(Config) ->
    ?assertEqual(["shop@host;shop:init/1;shop:get/1 3500", "shop@host;shop:init/1;shop:get/1;shop:find/2 1500"],
                 folded([{by, "initial"}], trace(Config))).

by_none(Config) ->
    ?assertEqual(["shop:get/1 3500", "shop:get/1;shop:find/2 1500"], folded([{by, "none"}], trace(Config))).

%% Waits are grouped by the function in which the process stopped.
waits(Config) ->
    Trace = test_viewer:make([identity(1000, ?A, "shop_db"), in(1000, ?A), out(2000, ?A, "gen_server:loop/7"),
                              in(5000, ?A), out(6000, ?A, "shop:wait/0"), in(6500, ?A),
                              out(7000, ?A, "gen_server:loop/7"), in(7250, ?A)], Config),
    ?assertEqual(["shop@host;shop_db <0.90.0>;gen_server:loop/7 3250", "shop@host;shop_db <0.90.0>;shop:wait/0 500"],
                 folded([{what, "waits"}], Trace)).

%% A quoted atom may contain the characters that separate frames and lines.
separators(Config) ->
    Trace = test_viewer:make([identity(1000, ?A, "'a;b\nc'"), call(2000, ?A, "'x;y':f/0"),
                              return(2100, ?A, "'x;y':f/0")], Config),
    ?assertEqual(["shop@host;'a:b c' <0.90.0>;'x:y':f/0 100"], folded([], Trace)).

parameters(Config) ->
    [begin
         {Status, Output} = test_viewer:view(flame, [{Name, "else"}], [trace(Config)]),
         ?assertNotEqual(0, Status),
         ?assertNotEqual(nomatch, string:find(Output, "parameter " ++ atom_to_list(Name)))
     end || Name <- [format, what, by]].

%% Without calls or waits, the graph says so, in each format.
nothing(Config) ->
    Trace = test_viewer:make([identity(1000, ?A, "shop_db")], Config),
    File = filename:join(?config(priv_dir, Config), "nothing"),
    [begin
         {0, Said} = test_viewer:view(flame, [{path, File}, {format, Format}, {what, What}], [Trace]),
         {ok, Graph} = file:read_file(File),
         [?assertNotEqual({Format, What, nomatch}, {Format, What, string:find(Text, Why)}) || Text <- [Said, Graph]]
     end || Format <- ["folded", "speedscope"],
            {What, Why} <- [{"calls", "no functions were traced: `dyntrace profile`"},
                            {"waits", "no waits were recorded"}]],
    ?assertMatch([_, "no waits were recorded: " ++ _], folded([{what, "waits"}], Trace)).

%% There are more stacks than the limit: the rest goes to the frame "others".
tree_is_bounded(Config) ->
    Count = 40000,
    Trace = test_viewer:make([identity(1, ?A, "shop_db"), call(2, ?A, "a:f/0"), return(3, ?A, "a:f/0")
                              | lists:append([[call(N * 10, ?A, lists:concat(["a:f", N rem 20000, "/0"])),
                                               call(N * 10 + 1, ?A, lists:concat(["a:g", N, "/0"])),
                                               return(N * 10 + 3, ?A, lists:concat(["a:g", N, "/0"])),
                                               return(N * 10 + 5, ?A, lists:concat(["a:f", N rem 20000, "/0"]))]
                                              || N <- lists:seq(1, Count)])], Config),
    Lines = folded([], Trace),
    ?assert(length(Lines) =< 50000),
    ?assertEqual(5 * Count + 1, lists:sum([list_to_integer(lists:last(string:lexemes(Line, " "))) || Line <- Lines])),
    ?assertMatch([_], [Line || Line <- Lines, lists:prefix("others: the flame graph is full ", Line)]).

speedscope(Config) ->
    File = filename:join(?config(priv_dir, Config), "speedscope.json"),
    {0, _} = test_viewer:view(flame, [{format, "speedscope"}, {path, File}], [trace(Config)]),
    Read = File ++ ".read",
    {0, _} = test_shell:run("node '~ts' '~ts' '~ts' > '~ts'",
                            [filename:join(test_shell:project(), "test/support/viewer/speedscope.js"),
                             test_npm:folder("speedscope"), File, Read]),
    #{<<"title">> := Title, <<"functions">> := Functions} = test_viewer:decode(Read),
    ?assertMatch(<<"calls by own time", _/binary>>, Title),
    Times = maps:from_list([{Name, {time(Total), time(Own)}}
                            || #{<<"name">> := Name, <<"total">> := Total, <<"own">> := Own} <- Functions]),
    ?assertMatch(#{<<"shop:get/1">> := {<<"5.00µs"/utf8>>, <<"3.50µs"/utf8>>},
                   <<"shop:find/2">> := {<<"1.50µs"/utf8>>, <<"1.50µs"/utf8>>}}, Times).

%% "5.00µs (100%)"
time(Cell) ->
    hd(binary:split(Cell, <<" ">>)).

%% -- Events --------------------------------------------------------------------------------------

%% The first function of the recording returns, which shows that returns are traced.
trace(Config) ->
    test_viewer:make([identity(1000, ?A, "shop_db"), identity(1000, ?B, ""),
                      call(2000, ?B, "shop:get/1"), return(2500, ?B, "shop:get/1"),
                      call(3000, ?A, "shop:get/1"), call(4000, ?A, "shop:find/2"), return(5500, ?A, "shop:find/2"),
                      return(7500, ?A, "shop:get/1")], Config).

in(At, Pid) -> in(At, Pid, "shop:loop/1").

folded(Params, Trace) ->
    [unicode:characters_to_list(Line) || Line <- test_viewer:lines(flame, Params, [Trace])].
