%% Annotations, except their fields in each arity, which test_cases checks.
-module(annotation_SUITE).

-include("../../src/facade/dyntrace_annotation.hrl").
-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [no_consumer, without_library, wrong_arguments, wrong_arguments_when_wanted,
     spans, a_span_inside_another, requests, a_request_ends, long_strings, hostile_strings,
     tags, tags_travel, tags_travel_to_nodes, tokens_of_the_program, spread_tag_taken_away, spreading_is_restored,
     every_label, past_the_sixth_argument, sizes_are_bounded, any_arguments_when_wanted].

init_per_testcase(Case, Config) ->
    Needs = case lists:member(Case, [every_label, past_the_sixth_argument]) of
                true -> test_gdb:missing();
                false -> test_bpftrace:missing()
            end,
    _ = test_require:tool(Needs, Config),
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    [{node, Node}, {library, Library} | Config].

end_per_testcase(_, Config) ->
    test_node:stop(?config(node, Config)).

%% -- Off -----------------------------------------------------------------------------------

no_consumer(Config) ->
    ?assertEqual([false], call(Config, fun answers/0)),
    ?assertEqual({result, 17}, call(Config, fun() -> dyntrace:span(off, fun() -> {result, 17} end) end)).

%% Without the library, each call returns the same as with it, and does nothing.
without_library(Config) ->
    Folder = dyntrace_SUITE:copy(Config, "dyntrace"),
    ok = file:delete(filename:join([Folder, "priv", "dyntrace.so"])),
    Node = dyntrace_SUITE:node_with(Folder),
    ?assertEqual([false], test_node:call(Node, fun answers/0)),
    ?assertEqual({{result, 17}, undefined, <<"tag">>},
                 test_node:call(Node, fun() -> {dyntrace:span(off, fun() -> {result, 17} end),
                                              dyntrace:put_tag("tag"), dyntrace:get_tag_data()} end)),
    wrong_arguments([{node, Node}]),
    test_node:stop(Node).

%% The results of all annotation calls.
answers() ->
    Args = [1, 2, 3, 4, "a", "b", "c", "d"],
    lists:usort([apply(dyntrace, p, lists:sublist(Args, N)) || N <- lists:seq(0, 8)] ++
                    [apply(dyntrace, pn, [0 | lists:sublist(Args, N)]) || N <- lists:seq(0, 8)] ++
                    [dyntrace:user_trace_s1("a"), apply(dyntrace, user_trace_i4s4, [undefined | Args]),
                     apply(dyntrace, user_trace_n, [950, <<"tag">> | Args]),
                     dyntrace:mark(a, "b"), dyntrace:mark("a", 1, <<"b">>)]).

%% -- Errors --------------------------------------------------------------------------------

%% {Function, Arguments, the argument that the shell's error message names}
wrong() ->
    [{p, ["a", 1], 2, "an integer after a string"},
     {p, [1, undef, 1], 3, "an integer after a string"},
     {p, [1, 2, 3, 4, 5], 5, "a fifth integer"},
     {p, ["a", "b", "c", "d", "e"], 5, "a fifth string"},
     {p, [1, "a", "b", "c", "d", "e"], 6, "a fifth string"},
     {p, [1, 2, 3, 4, "a", "b", "c", 1], 8, "an integer after a string"},
     {p, [1, 2, 3, "a", "b", "c", "d", "e"], 8, "a fifth string"},
     {pn, [-1], 1, "not an integer from 0 to 950"},
     {pn, [951], 1, "not an integer from 0 to 950"},
     {pn, ["a", 1], 1, "not an integer from 0 to 950"},
     {pn, [7, "a", 1], 3, "an integer after a string"},
     {pn, [7, 1, 2, 3, 4, 5, "a", "b", "c"], 6, "a fifth integer"},
     {user_trace_n, [951, undefined, 1, 2, 3, 4, "a", "b", "c", "d"], 1, "not an integer from 0 to 950"},
     {mark, [17, "a"], 1, "neither an atom nor a string"},
     {mark, [a, 17], 2, "not a string"},
     {mark, [{a}, 17, "a"], 1, "neither an atom nor a string"},
     {mark, [a, 1.5, "a"], 2, "not an integer"},
     {mark, [a, 1, b], 3, "not a string"},
     {span, [a, b], 2, "not a fun without arguments"},
     {span, [1, fun() -> ok end], 1, "neither an atom nor a string"},
     {request, [4711, fun(_) -> ok end], 2, "not a fun without arguments"},
     {put_tag, [17], 1, "not a string"},
     {put_tag, [<<255>>], 1, "not a string in UTF-8"},
     {spread_tag, [maybe_so], 1, "not a boolean"},
     {restore_tag, [false], 1, "not a value returned by spread_tag/1"}].

wrong_arguments(Config) ->
    [begin
         Says = call(Config, fun() -> shell_says(Function, Args) end),
         ?assertMatch({Function, Position, _}, {Function, Position, match(Why, Says, Function, Args, Position)})
     end || {Function, Args, Position, Why} <- wrong()].

match(Why, Says, Function, Args, Position) ->
    Expected = iolist_to_binary(io_lib:format("*** argument ~b: ~s", [Position, Why])),
    ?assertMatch({_, _}, binary:match(Says, Expected), {Function, Args, Says}),
    ?assertMatch({_, _}, binary:match(Says,
                                      iolist_to_binary(io_lib:format("in function  dyntrace:~s/~b",
                                                                     [Function, length(Args)])))).

shell_says(Function, Args) ->
    try apply(dyntrace, Function, Args) of
        Result -> iolist_to_binary(io_lib:format("~p", [Result]))
    catch
        error:badarg:Stack -> unicode:characters_to_binary(erl_error:format_exception(error, badarg, Stack))
    end.

%% Whether a call raises does not depend on attached consumers.
wrong_arguments_when_wanted(Config) ->
    Consumer = attach([user_mark, user_span_start, user_trace__i4s4, user_trace__n7], Config),
    wrong_arguments(Config),
    ?assertEqual([], test_bpftrace:stop(Consumer)).

%% -- Spans ---------------------------------------------------------------------------------

%% Start and stop have the same id; reading Erlang's clock around the span confirms the duration.
spans(Config) ->
    Consumer = attach([user_span_start, user_span_stop], Config),
    {Outcomes, Around} =
        call(Config, fun() ->
                             Began = erlang:monotonic_time(nanosecond),
                             Outcomes = [try dyntrace:span(work, fun() -> receive after 20 -> End() end end)
                                         catch Class:Reason:Stack -> {Class, Reason, element(2, hd(Stack))}
                                         end || End <- [fun() -> done end, fun() -> ?MODULE:fails(error) end,
                                                        fun() -> ?MODULE:fails(exit) end,
                                                        fun() -> ?MODULE:fails(throw) end]],
                             {Outcomes, erlang:monotonic_time(nanosecond) - Began}
                     end),
    ?assertEqual([done | [{Class, oops, fails} || Class <- [error, exit, throw]]], Outcomes),
    _ = test_bpftrace:await(Consumer, fun({_, Fields}) -> maps:get(outcome, Fields, no) =:= <<"throw">> end),
    Events = test_bpftrace:stop(Consumer),
    ?assertMatch([{user_span_start, #{id := A}}, {user_span_stop, #{id := A, outcome := <<"ok">>}},
                  {user_span_start, #{id := B}}, {user_span_stop, #{id := B, outcome := <<"error">>}},
                  {user_span_start, #{id := C}}, {user_span_stop, #{id := C, outcome := <<"exit">>}},
                  {user_span_start, #{id := D}}, {user_span_stop, #{id := D, outcome := <<"throw">>}}], Events),
    ?assertEqual(4, length(lists:usort([Id || {_, #{id := Id}} <- Events]))),
    Durations = [Ns || {_, #{duration := Ns}} <- Events],
    [?assert(Ns >= 20000000, Ns) || Ns <- Durations],
    ?assert(lists:sum(Durations) =< Around, {Durations, Around}).

fails(Class) ->
    erlang:raise(Class, oops, [{?MODULE, fails, 1, []}]).

%% Messages that the fun sends, and their replies, have the label; messages before and after have none.
requests(Config) ->
    Consumer = attach([seq_trace_send, seq_trace_receive, user_mark], Config),
    {Asks, Answers} =
        call(Config, fun() ->
                             _ = seq_trace:set_system_tracer({dyntrace, []}),
                             Server = spawn(fun Serve() -> receive {From, Text} -> From ! Text, Serve() end end),
                             Ask = fun(Text) -> Server ! {self(), Text}, receive Text -> Text end end,
                             before = Ask(before),
                             answer = dyntrace:request({shop, 17}, fun() -> Ask(within), answer end),
                             later = Ask(later),
                             _ = dyntrace:mark(done, ""),
                             {list_to_binary(pid_to_list(self())), list_to_binary(pid_to_list(Server))}
                     end),
    _ = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= user_mark end),
    Traced = [{Probe, Label, From, To}
              || {Probe, #{label := Label, from := From, to := To}} <- test_bpftrace:stop(Consumer)],
    Label = <<"{shop,17}">>,
    ?assertEqual([{seq_trace_send, Label, Asks, Answers}, {seq_trace_receive, Label, Asks, Answers},
                  {seq_trace_send, Label, Answers, Asks}, {seq_trace_receive, Label, Answers, Asks}],
                 Traced).

%% However the request ends, the previous token is restored; requests may be nested.
a_request_ends(Config) ->
    Token = fun() -> case seq_trace:get_token() of [] -> []; _ -> seq_trace:get_token(label) end end,
    ?assertEqual({{result, {label, inner}, {label, outer}}, []},
                 call(Config, fun() ->
                                      {dyntrace:request(outer, fun() ->
                                                                       Inner = dyntrace:request(inner, Token),
                                                                       {result, Inner, Token()}
                                                               end), Token()}
                              end)),
    ?assertEqual([{error, oops, []}, {exit, oops, []}, {throw, oops, []}],
                 call(Config, fun() ->
                                      [try dyntrace:request(ends, fun() -> erlang:Class(oops) end)
                                       catch Class:Reason -> {Class, Reason, Token()}
                                       end || Class <- [error, exit, throw]]
                              end)),
    %% A token that the program has set is unchanged.
    ?assertEqual([{label, mine}, {send, false}, {timestamp, true}],
                 call(Config, fun() ->
                                      [seq_trace:set_token(Key, Value) || {Key, Value} <- [{label, mine},
                                                                                           {timestamp, true}]],
                                      ok = dyntrace:request(ours, fun() -> ok end),
                                      Kept = [seq_trace:get_token(Key) || Key <- [label, send, timestamp]],
                                      _ = seq_trace:set_token([]),
                                      Kept
                              end)).

a_span_inside_another(Config) ->
    Consumer = attach([user_span_start, user_span_stop], Config),
    inner = call(Config, fun() -> dyntrace:span(outer, fun() -> dyntrace:span(inner, fun() -> inner end) end) end),
    _ = test_bpftrace:await(Consumer,
                            fun({Probe, #{name := Name}}) -> Probe =:= user_span_stop andalso Name =:= <<"outer">> end),
    [{_, #{id := Outer}}, {_, #{id := Inner}}, {user_span_stop, #{id := Inner, duration := Short}},
     {user_span_stop, #{id := Outer, duration := Long}}] = test_bpftrace:stop(Consumer),
    ?assert(Short =< Long, {Short, Long}).

%% -- Strings --------------------------------------------------------------------------------

long_strings(Config) ->
    ?assertEqual([binary:copy(<<"x">>, 1024), cut(binary:copy(<<"x">>, 1021)), cut(binary:copy(<<"x">>, 1021)),
                  cut(binary:copy(<<"å"/utf8>>, 510)), binary:copy(<<16#FFFD/utf8>>, 300),
                  cut(binary:copy(<<"y">>, 1021))],
                 sent(fun() ->
                              [binary:copy(<<"x">>, 1024), binary:copy(<<"x">>, 1025), lists:duplicate(1000000, $x),
                               lists:duplicate(600, $å), binary:copy(<<0>>, 300), binary:copy(<<"y">>, 100000000)]
                      end, Config)).

cut(Text) ->
    <<Text/binary, "...">>.

%% Nested iodata: the walk is bounded, and the field is always valid text.
hostile_strings(Config) ->
    Digits = fun() -> lists:foldl(fun(N, Acc) -> [Acc, integer_to_list(N rem 10)] end, [], lists:seq(1, 200)) end,
    ?assertEqual([iolist_to_binary(Digits()), <<"...">>, <<"...">>, <<"abc...">>, null, null, null, null, null,
                  <<"ok tail">>, <<"😀λ"/utf8>>, <<"😀"/utf8>>, <<"Ã"/utf8>>],
                 sent(fun() ->
                              [Digits(), lists:foldl(fun(_, Acc) -> [Acc, "x"] end, "in", lists:seq(1, 100000)),
                               lists:duplicate(1000000, []), ["abc" | lists:duplicate(1000000, <<>>)],
                               ["abc", 16#D800], ["abc", 16#110000], ["abc", -1], [$a | $b], <<1:3>>,
                               ["ok" | <<" tail">>], [16#1F600, 955], [<<16#F0, 16#9F>>, <<16#98, 16#80>>], <<16#C3>>]
                      end, Config)).

%% The texts in the events of these strings, which are made on the node.
sent(Strings, Config) ->
    Consumer = test_bpftrace:start(?config(library, Config), [user_trace__s1], #{longest => 1100}),
    [] = call(Config, fun() ->
                              [String || String <- Strings() ++ ["the end"], true =/= dyntrace:user_trace_s1(String)]
                      end),
    _ = test_bpftrace:await(Consumer, fun({_, #{message := Message}}) -> Message =:= <<"the end">> end),
    [Text || {_, #{message := Text}} <- test_bpftrace:stop(Consumer), Text =/= <<"the end">>].

%% -- Tags -----------------------------------------------------------------------------------

tags(Config) ->
    ?assertEqual({undefined, undefined, undefined, <<"one">>, <<"one">>, <<"one">>, <<"zwö"/utf8>>,
                  undefined, undefined},
                 call(Config, fun() ->
                                      {dyntrace:get_tag(), dyntrace:get_tag_data(),
                                       dyntrace:put_tag("one"), dyntrace:get_tag(), dyntrace:get_tag_data(),
                                       dyntrace:put_tag([<<"zw">>, $ö]), dyntrace:put_tag(undefined),
                                       dyntrace:get_tag(), seq_token()}
                              end)).

seq_token() ->
    case seq_trace:get_token() of
        [] -> undefined;
        Token -> Token
    end.

%% A chain of processes: each passes on the tag of the first one, and their annotations have it. A message without the
%% tag removes it.
tags_travel(Config) ->
    Consumer = attach([user_trace__i4s4], Config),
    Answers =
        call(Config, fun() ->
                             Self = self(),
                             Last = spawn(fun() -> tagged_server(Self) end),
                             First = spawn(fun() -> tagged_server(Last) end),
                             _ = dyntrace:put_tag("request 12"),
                             First ! {1, kept},
                             Untagged = receive {2, kept, []} -> plain end,
                             {1, <<"request 12">>} = dyntrace:spread_tag(true),
                             First ! {1, travels},
                             Travelled = receive {2, travels, Tags} -> Tags end,
                             _ = dyntrace:spread_tag(false),
                             First ! {1, over},
                             receive {2, over, []} -> {Untagged, Travelled, dyntrace:get_tag()} end
                     end),
    ?assertEqual({plain, [<<"request 12">>, <<"request 12">>], <<"request 12">>}, Answers),
    _ = test_bpftrace:await(Consumer, fun({_, #{i1 := I, s1 := S}}) -> I =:= 2 andalso S =:= <<"over">> end),
    ?assertEqual([{1, <<"kept">>, null}, {2, <<"kept">>, null},
                  {1, <<"travels">>, <<"request 12">>}, {2, <<"travels">>, <<"request 12">>},
                  {1, <<"over">>, null}, {2, <<"over">>, null}],
                 [{N, What, Tag} || {_, #{i1 := N, s1 := What, user_tag := Tag}} <- test_bpftrace:stop(Consumer)]).

%% Annotates with the tag that it received, then sends the tag to the next process.
tagged_server(Next) ->
    receive
        {N, What} ->
            true = dyntrace:p(N, atom_to_list(What)),
            Next ! {N + 1, What, [Tag || Tag <- [dyntrace:get_tag_data()], Tag =/= undefined]};
        {N, What, Tags} ->
            true = dyntrace:p(N, atom_to_list(What)),
            Next ! {N, What, Tags ++ [Tag || Tag <- [dyntrace:get_tag_data()], Tag =/= undefined]}
    end,
    undefined = dyntrace:get_tag(),
    tagged_server(Next).

tags_travel_to_nodes(_) ->
    Epmd = test_node:start_epmd(),
    [Here, There] = [test_node:named(Name, Epmd) || Name <- ["here", "there"]],
    Server = test_node:call(There, fun() ->
                                         {module, _} = code:ensure_loaded(dyntrace_tag),
                                         spawn(fun() ->
                                                       receive
                                                           {From, go} -> From ! {dyntrace:get_tag_data(), node()}
                                                       end
                                               end)
                                 end),
    Answer = test_node:call(Here, fun() ->
                                        _ = dyntrace:put_tag("from here"),
                                        true = net_kernel:connect_node(node(Server)),
                                        _ = dyntrace:spread_tag(true),
                                        Server ! {self(), go},
                                        receive {Tag, Node} -> {Tag, Node, dyntrace:get_tag_data()} end
                                end),
    ?assertEqual({<<"from here">>, 'there@127.0.0.1', <<"from here">>}, Answer),
    [test_node:stop(Node) || Node <- [Here, There]],
    test_node:stop_epmd(Epmd).

%% A sequential trace token of the program is unchanged, regardless of what happens to tags.
tokens_of_the_program(Config) ->
    {Before, After, Received} =
        call(Config, fun() ->
                             %% Loading the module sends messages, and the token counts messages.
                             {module, _} = code:ensure_loaded(dyntrace_tag),
                             _ = seq_trace:set_token(label, 17),
                             Before = seq_trace:get_token(),
                             _ = dyntrace:put_tag("tag"),
                             Old = dyntrace:spread_tag(true),
                             _ = dyntrace:put_tag("other"),
                             _ = dyntrace:spread_tag(false),
                             true = dyntrace:restore_tag(Old),
                             _ = dyntrace:spread_tag(true),
                             After = seq_trace:get_token(),
                             Self = self(),
                             Pid = spawn(fun() ->
                                                 receive
                                                     go -> Self ! {seq_trace:get_token(label), dyntrace:get_tag_data()}
                                                 end
                                         end),
                             Pid ! go,
                             receive Received -> {Before, After, Received} end
                     end),
    ?assertEqual(Before, After),
    ?assertEqual({{label, 17}, undefined}, Received).

%% A removed tag is not passed on. A process can't remove a tag that it received and that has spread.
spread_tag_taken_away(Config) ->
    ?assertEqual({<<"one">>, undefined, undefined, {tag, <<"two">>}, []},
                 call(Config, fun() ->
                                      undefined = dyntrace:put_tag("one"),
                                      _ = dyntrace:spread_tag(true),
                                      One = dyntrace:put_tag(undefined),
                                      {Tag, Data} = {dyntrace:get_tag(), dyntrace:get_tag_data()},
                                      NoToken = seq_trace:get_token(),
                                      Self = self(),
                                      Receiver = spawn(fun() ->
                                                               receive go -> ok end,
                                                               _ = dyntrace:spread_tag(true),
                                                               undefined = dyntrace:put_tag(undefined),
                                                               Self ! {tag, dyntrace:get_tag_data()}
                                                       end),
                                      undefined = dyntrace:put_tag("two"),
                                      Receiver ! go,
                                      Received = receive Answer = {tag, _} -> Answer end,
                                      _ = dyntrace:spread_tag(false),
                                      {One, Tag, Data, Received, NoToken}
                              end)).

spreading_is_restored(Config) ->
    ?assertEqual([{true, [], <<"a">>, <<"a">>},
                  {{1, <<"a">>}, ours, <<"a">>, <<"a">>},
                  {{3, <<"a">>}, [], <<"a">>, <<"a">>},
                  {restored, ours, <<"a">>, <<"a">>},
                  {nothing, [], undefined, undefined}],
                 call(Config, fun() ->
                                      State = fun(Answer) ->
                                                      Token = case seq_trace:get_token(label) of
                                                                  [] -> [];
                                                                  {label, _} -> ours
                                                              end,
                                                      {Answer, Token, dyntrace:get_tag(), dyntrace:get_tag_data()}
                                              end,
                                      Nothing = dyntrace:spread_tag(false),
                                      _ = dyntrace:put_tag("a"),
                                      One = State(Nothing),
                                      Two = State(dyntrace:spread_tag(true)),
                                      Spread = dyntrace:spread_tag(false),
                                      Three = State(Spread),
                                      true = dyntrace:restore_tag(Spread),
                                      Four = State(restored),
                                      true = dyntrace:restore_tag(Nothing),
                                      [One, Two, Three, Four, State(nothing)]
                              end)).

%% -- What bpftrace can't show ------------------------------------------------------------------

every_label(Config) ->
    ?assertEqual([?MAX_LABEL + 1], [Labels || #{labels := Labels} <- dyntrace:probes()]),
    %% This many labels, always including the first and the last one.
    Count = list_to_integer(os:getenv("DYNTRACE_LABELS", integer_to_list(?MAX_LABEL + 1))),
    Labels = lists:seq(0, Count - 2) ++ [?MAX_LABEL],
    Probes = [{erlang, probe(Label), "%ld %s", ["$_probe_arg2", "(char*)$_probe_arg6"]} || Label <- Labels],
    Fire = fun() ->
                   Fired = call(Config, fun() -> lists:usort([dyntrace:pn(Label, Label, "s") || Label <- Labels]) end),
                   ?assertEqual([true], Fired)
           end,
    ?assertEqual([iolist_to_binary(io_lib:format("~s ~b s", [probe(Label), Label])) || Label <- Labels],
                 test_gdb:trace(test_node:os_pid(?config(node, Config)), Probes, Fire)).

probe(Label) ->
    list_to_atom("user_trace__n" ++ integer_to_list(Label)).

past_the_sixth_argument(Config) ->
    Arguments = [{"%s", "(char*)$_probe_arg0"}, {"%s", "(char*)$_probe_arg1"},
                 {"%ld", "$_probe_arg2"}, {"%ld", "$_probe_arg3"}, {"%ld", "$_probe_arg4"}, {"%ld", "$_probe_arg5"},
                 {"%s", "(char*)$_probe_arg6"}, {"%s", "(char*)$_probe_arg7"}, {"%s", "(char*)$_probe_arg8"},
                 {"%ld", "$_probe_arg9"}],
    {Formats, Values} = lists:unzip(Arguments),
    Node = ?config(node, Config),
    Fire = fun() -> true = call(Config, fun() ->
                                                _ = dyntrace:put_tag(test_cases:text(self())),
                                                dyntrace:p(1, -2, 3, -(1 bsl 63), "one", "two", "three")
                                        end) end,
    [Line] = test_gdb:trace(test_node:os_pid(Node), [{erlang, user_trace__i4s4, lists:join(" ", Formats), Values}],
                            Fire),
    %% Without arguments, the tag is the process, and a missing string is NULL.
    [<<"user_trace__i4s4">>, Self, Self | Others] = binary:split(Line, <<" ">>, [global]),
    ?assertEqual([<<"1">>, <<"-2">>, <<"3">>, <<"-9223372036854775808">>, <<"one">>, <<"two">>, <<"three">>, <<"0">>],
                 Others).

%% -- Sizes ------------------------------------------------------------------------------------

%% Beyond the limits, the size is smaller than that of erts_debug:flat_size/1, and is computed in little time.
sizes_are_bounded(Config) ->
    Consumer = attach([message__send], Config),
    Flat = call(Config, fun() ->
                                Deep = lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, 1000)),
                                Terms = [lists:seq(1, 100000), Deep,
                                         maps:from_list([{N, [N]} || N <- lists:seq(1, 1000)]),
                                         1 bsl 100000, list_to_tuple(lists:seq(1, 5000)), the_end],
                                To = spawn(fun Loop() -> receive the_end -> ok; _ -> Loop() end end),
                                _ = test_cases:traced([send], fun() -> [To ! Term || Term <- Terms] end),
                                [erts_debug:flat_size(Term) || Term <- Terms]
                        end),
    _ = test_bpftrace:await(Consumer, fun({_, #{size := Size}}) -> Size =:= 0 end),
    Sizes = [Size || {_, #{size := Size}} <- test_bpftrace:stop(Consumer)],
    ?assertEqual([1998, 100, 2004, 3, 5001, 0], Sizes),
    [?assert(Size =< Words, {Size, Words}) || {Size, Words} <- lists:zip(Sizes, Flat)].

%% -- Anything --------------------------------------------------------------------------------

%% With all probes enabled, the callbacks and the annotations' NIFs accept any terms.
any_arguments_when_wanted(Config) ->
    Probes = [test_bpftrace:described(Probe) || Probe <- test_cases:probes(usdt)],
    Script = [["usdt:", ?config(library, Config), ":", atom_to_list(Provider), ":", atom_to_list(Name),
               " { @[\"", atom_to_list(Name), "\"] = count(); }\n"]
              || #{provider := Provider, name := Name} <- Probes],
    Consumer = test_bpftrace:start_script(Script, #{}),
    call(Config, fun dyntrace_SUITE:trace_with_any_arguments/0),
    call(Config, fun() ->
                         [?assert(is_boolean(apply(dyntrace, F, lists:duplicate(Arity, Term))))
                          || {F, Arity} <- [{user_trace_s1, 1}, {user_trace_i4s4, 9}, {user_trace_n_nif, 10},
                                            {user_mark, 3}, {user_span_start, 2}, {user_span_stop, 4}, {wants_n, 1}],
                             Term <- dyntrace_SUITE:any_terms()]
                 end),
    #{undecoded := Undecoded} = call(Config, fun dyntrace:info/0),
    ?assert(lists:sum(maps:values(Undecoded)) > 0),
    Lines = test_bpftrace:stop_script(Consumer),
    CountOf = fun(Name) ->
                      Prefix = ["@[", atom_to_list(Name), "]: "],
                      lists:search(fun(Line) -> string:prefix(Line, Prefix) =/= nomatch end, Lines)
              end,
    [?assertMatch({value, _}, CountOf(Name), Name)
     || Name <- [trace, trace_seq, user_trace__s1, user_trace__i4s4, user_mark, user_span_start, user_span_stop]].

%% -- Helpers ----------------------------------------------------------------------------------

attach(Probes, Config) ->
    test_bpftrace:start(?config(library, Config), Probes).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
