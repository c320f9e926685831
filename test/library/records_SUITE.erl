%% The native records of OTP 29, for which erl_nif has no getter, in texts, shapes and sizes. The module with records is
%% compiled from text here, because older releases reject its syntax.
-module(records_SUITE).

-include("../support/suite.hrl").

-define(RECORDS, test_records).
-define(MAX, 256).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [texts, shapes, large_fields, many_fields, definition_gone, made_at_run_time, events, sequential, exits, sizes,
     annotations].

init_per_suite(Config) ->
    case compile_records() of
        {ok, Code} ->
            {module, ?RECORDS} = code:load_binary(?RECORDS, "records", Code),
            ok = test_text_nif:load(test_text_nif:build(?config(priv_dir, Config))),
            [{code, Code} | Config];
        none ->
            {skip, "this release has no native records: OTP 29 has"}
    end.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    case lists:member(Case, [events, sequential, exits, sizes, annotations]) of
        true -> with_node(Config);
        false -> Config
    end.

with_node(Config) ->
    _ = test_require:tool(test_bpftrace:missing(), Config),
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    Code = ?config(code, Config),
    {module, ?RECORDS} = test_node:call(Node, fun() -> code:load_binary(?RECORDS, "records", Code) end),
    [{node, Node}, {library, Library} | Config].

%% The node is alive, and has decoded every event.
end_per_testcase(_, Config) ->
    case proplists:get_value(node, Config) of
        undefined ->
            ok;
        Node ->
            #{undecoded := Undecoded} = test_node:call(Node, fun dyntrace:info/0),
            test_node:stop(Node),
            case map_size(Undecoded) of
                0 -> ok;
                _ -> {fail, Undecoded}
            end
    end.

compile_records() ->
    Source = ["-module(", atom_to_list(?RECORDS), ").\n"
              "-export([pt/1, empty/0, quoted/1, literal/0]).\n"
              "-record #pt{x = 1, y = 2}.\n"
              "-record #empty{}.\n"
              "-record #'a record'{'Field' = 1}.\n"
              "pt(X) -> #pt{x = X}.\n"
              "empty() -> #empty{}.\n"
              "quoted(X) -> #'a record'{'Field' = X}.\n"
              "literal() -> #pt{x = {1, 2}, y = \"three\"}.\n"],
    case erl_scan:string(lists:flatten(Source)) of
        {ok, Tokens, _} ->
            Forms = [erl_parse:parse_form(Form) || Form <- forms(Tokens)],
            compiled([Form || {ok, Form} <- Forms], length(Forms));
        _ ->
            none
    end.

compiled(Forms, All) when length(Forms) < All ->
    none;
compiled(Forms, _) ->
    case compile:forms(Forms, []) of
        {ok, ?RECORDS, Code} -> {ok, Code};
        _ -> none
    end.

forms([]) ->
    [];
forms(Tokens) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    [Form ++ [Dot] | forms(Rest)].

pt(X) -> apply(?RECORDS, pt, [X]).
empty() -> apply(?RECORDS, empty, []).
quoted(X) -> apply(?RECORDS, quoted, [X]).
literal() -> apply(?RECORDS, literal, []).

%% A record at each position in a term. This is a function, because this module must compile on every release.
everywhere(R) ->
    [R, {rec, R}, [R], [a, R, b], [a | R], {R, R}, #{R => v}, #{k => R}, #{R => R}, {{{R}}}, [[[R]]],
     {R, "text", <<"bin">>, 1.5}, [{k, R} | R]].

records() ->
    [pt(3), pt(pt(pt(4))), pt([pt(1), {pt(2)}]), pt(#{pt(1) => pt(2)}), pt("text"), pt(<<"bin">>), pt(<<1:1>>),
     pt({}), pt([]), empty(), pt(empty()), quoted(an_atom), quoted('Quoted'), literal(), pt(self()), pt(make_ref()),
     pt(1.5), pt(1 bsl 70), pt(fun lists:map/2)].

%% -- Texts -------------------------------------------------------------------------------------

%% The runtime's text, or a prefix of it.
texts(_) ->
    ?assert(lists:member(test_text_nif:text(pt(3)),
                         [<<"#test_records:pt{x=3,y=2}">>, <<"#test_records:pt{y=2,x=3}">>])),
    [?assert(text_SUITE:is_text_of(Term), {Term, test_text_nif:text(Term), test_text_nif:runtime(Term)})
     || R <- records(), Term <- everywhere(R)],
    ?assertEqual(<<"{#test_records:empty{},x}">>, test_text_nif:text({empty(), x})),
    %% Many texts, on all schedulers.
    Texts = [{Term, test_text_nif:runtime(Term)} || R <- records(), Term <- everywhere(R)],
    Short = [Pair || Pair = {_, Text} <- Texts, byte_size(Text) =< ?MAX],
    Wrong = fun() -> [T || _ <- lists:seq(1, 50), {T, Text} <- Short, test_text_nif:text(T) =/= Text] end,
    Workers = [spawn_monitor(fun() -> exit({wrong, Wrong()}) end) || _ <- lists:seq(1, 8)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual({wrong, []}, Reason) end || {Pid, Ref} <- Workers].

shapes(_) ->
    Shape = fun(Term) ->
                    ok = test_text_nif:show(shape),
                    try test_text_nif:text(Term)
                    after test_text_nif:show(full)
                    end
            end,
    [?assertEqual(lists:sort(Fields), lists:sort(fields(Shape(Record))), Shape(Record))
     || {Record, Fields} <- [{pt(<<"secret">>), ["x={binary,6}", "y=integer()"]},
                             {pt("secret"), ["x={list,6}", "y=integer()"]},
                             {pt(#{secret => 1}), ["x={map,1}", "y=integer()"]},
                             {pt(<<1:1>>), ["x=bitstring()", "y=integer()"]}]],
    ?assertEqual(<<"{#test_records:empty{},{list,1}}">>, Shape({empty(), [pt(secret)]})),
    ?assertEqual(<<"#test_records:'a record'{'Field'=#test_records:'a record'{'Field'=float()}}">>,
                 Shape(quoted(quoted(1.5)))),
    [?assertEqual(nomatch, binary:match(Shape(Term), [<<"secret">>, <<"4711">>]), Shape(Term))
     || R <- [pt("secret"), pt(4711), pt(<<"secret">>), pt({1, "secret"}), pt(pt("secret")), pt(#{"secret" => 4711})],
     Term <- everywhere(R)].

fields(<<"#test_records:pt{", Rest/binary>>) ->
    re:split(binary:part(Rest, 0, byte_size(Rest) - 1), ",(?=[xy]=)", [{return, list}]).

%% The time does not depend on the contents of a field.
large_fields(_) ->
    [begin
         Text = test_text_nif:text(Term),
         ?assertMatch(<<"#test_records:pt{", _/binary>>, Text),
         ?assert(byte_size(Text) =< ?MAX),
         ?assert(test_text_nif:duration(Term) < 100000, {Name, test_text_nif:duration(Term)}),
         ct:pal("a record with ~ts: ~b ns", [Name, test_text_nif:duration(Term)])
     end || {Name, Hostile, _} <- test_hostile:terms(), Term <- [pt(Hostile)]],
    Deep = lists:foldl(fun(_, Inner) -> pt(Inner) end, x, lists:seq(1, 100000)),
    ?assert(byte_size(test_text_nif:text(Deep)) =< ?MAX).

%% More fields than fit into a text, and names with special characters.
many_fields(_) ->
    Fields = [{list_to_atom("field " ++ integer_to_list(N)), N} || N <- lists:seq(1, 1000)],
    [?assert(text_SUITE:is_text_of(created(lists:sublist(Fields, N))), N) || N <- [0, 1, 2, 10, 100, 1000]].

%% Records without a definition, and those of a deleted module, have texts like others.
definition_gone(_) ->
    {ok, Code} = compile_records(),
    Kept = [pt({kept, 1}), literal()],
    Texts = [test_text_nif:text(R) || R <- Kept],
    true = code:delete(?RECORDS),
    false = code:purge(?RECORDS),
    ?assertEqual(Texts, [test_text_nif:text(R) || R <- Kept]),
    ?assertEqual(Texts, [test_text_nif:runtime(R) || R <- Kept]),
    {module, ?RECORDS} = code:load_binary(?RECORDS, "records", Code).

made_at_run_time(_) ->
    R = created([{a, {1, 2}}, {b, "text"}]),
    [?assertEqual(test_text_nif:runtime(T), test_text_nif:text(T)) || T <- everywhere(R)],
    From = binary_to_term(term_to_binary(R)),
    ?assertEqual(test_text_nif:runtime(R), test_text_nif:text(From)).

created(Fields) ->
    apply(records, create, [no_module, a_name, Fields, #{is_exported => false}]).

%% -- Events ------------------------------------------------------------------------------------

%% Each trace event with a term, read by a consumer of its probe.
events(Config) ->
    Consumer = attach([message_send, message_receive, message__send, message__queued, trace, function_call,
                       function_exception, function__return], Config),
    Expected = call(Config, fun() ->
                                    Terms = [Term || R <- [pt(3), literal(), empty()], Term <- everywhere(R)],
                                    1 = test_trace:trace_pattern({?MODULE, identity, 1},
                                                                 [{'_', [], [{exception_trace}]}], [local]),
                                    _ = test_cases:traced([send, 'receive', call],
                                                        fun() -> [begin
                                                                      self() ! Term,
                                                                      receive Term -> ok end,
                                                                      ignored(fun() -> identity(Term) end)
                                                                  end || Term <- Terms] end),
                                    [text(Term) || Term <- Terms]
                            end),
    true = call(Config, fun() ->
                                _ = test_cases:traced([send], fun() ->
                                                                      self() ! the_end,
                                                                      receive the_end -> ok end
                                                              end),
                                true
                        end),
    _ = test_bpftrace:await(Consumer,
                            fun({P, E}) -> P =:= message_send andalso maps:get(message, E) =:= <<"the_end">> end),
    Events = test_bpftrace:stop(Consumer),
    Messages = fun(Probe) ->
                       [M || {P, #{message := M}} <- Events,
                             P =:= Probe, binary:match(M, <<"#test_records">>) =/= nomatch]
               end,
    ?assertEqual(Expected, Messages(message_send)),
    ?assertEqual(Expected, Messages(message_receive)),
    ?assertEqual(length(Expected),
                 length([x || {function_call, #{entry := <<"records_SUITE:identity/1">>}} <- Events])),
    ?assertEqual(length(Expected), length([x || {function_exception, #{class := <<"error">>}} <- Events])),
    Sent = [T || {trace, #{event := <<"send">>, arg1 := T}} <- Events],
    ?assertEqual(Expected, [T || T <- Sent, lists:member(T, Expected)]).

identity(Term) -> error(Term).

ignored(Fun) ->
    try Fun()
    catch _:_ -> ok
    end.

%% On the node: the text according to the module erlang.
text(Term) ->
    Text = unicode:characters_to_binary(erts_text(Term)),
    true = byte_size(Text) =< ?MAX,
    Text.

erts_text(Term) ->
    apply(erts_internal, term_to_string, [Term]).

%% As a label, as a message, and with print.
sequential(Config) ->
    Consumer = attach([seq_trace_send, seq_trace_receive, seq_trace_print, message__receive, trace_seq], Config),
    {Label, Message} = call(Config, fun() ->
                                  Old = seq_trace:set_system_tracer({dyntrace, []}),
                                  Self = self(),
                                  {_, Ref} = spawn_monitor(fun() ->
                                                                   [seq_trace:set_token(F, V)
                                                                    || {F, V} <- [{label, pt(label)}, {send, true},
                                                                                  {'receive', true}, {print, true}]],
                                                                   self() ! {got, pt(3)},
                                                                   receive {got, _} -> ok end,
                                                                   seq_trace:print(pt(printed)),
                                                                   Self ! done
                                                           end),
                                  receive {'DOWN', Ref, process, _, normal} -> ok end,
                                  seq_trace:set_token([]),
                                  seq_trace:set_system_tracer(Old),
                                  {text(pt(label)), text({got, pt(3)})}
                          end),
    {_, Print} = test_bpftrace:await(Consumer, fun({P, _}) -> P =:= seq_trace_print end),
    Printed = call(Config, fun() -> text(pt(printed)) end),
    ?assertMatch(#{label := Label, message := Printed}, Print),
    Events = test_bpftrace:stop(Consumer),
    ?assertMatch([_ | _], [x || {seq_trace_send, #{label := L, message := M}} <- Events, L =:= Label, M =:= Message]),
    ?assertMatch([_ | _],
                 [x || {seq_trace_receive, #{label := L, message := M}} <- Events, L =:= Label, M =:= Message]),
    ?assertMatch([_ | _], [x || {trace_seq, #{label := L}} <- Events, L =:= Label]).

%% A record as the reason of an exit, of a crash, and of a signal to a linked process that traps exits.
exits(Config) ->
    Consumer = attach([process_exit, process__exit, process__exit_signal], Config),
    Expected = call(Config, fun() ->
                             process_flag(trap_exit, true),
                             1 = test_trace:trace(self(), true, ['receive', {tracer, dyntrace, []}]),
                             logger:set_primary_config(level, none),
                             Reasons = [Term || Term <- everywhere(pt(3))],
                             [begin
                                  Pid = spawn_link(fun() -> receive go -> exit(Reason) end end),
                                  1 = test_trace:trace(Pid, true, [procs, {tracer, dyntrace, []}]),
                                  Pid ! go,
                                  receive {'EXIT', Pid, Reason} -> ok end
                              end || Reason <- Reasons],
                             1 = test_trace:trace(self(), false, ['receive']),
                             [text(Reason) || Reason <- Reasons]
                     end),
    call(Config, fun() ->
                         {Pid, Ref} = spawn_monitor(fun() -> receive go -> exit(the_end) end end),
                         1 = test_trace:trace(Pid, true, [procs, {tracer, dyntrace, []}]),
                         Pid ! go,
                         receive {'DOWN', Ref, process, Pid, _} -> ok end
                 end),
    _ = test_bpftrace:await(Consumer,
                            fun({P, E}) -> P =:= process__exit andalso maps:get(reason, E) =:= <<"the_end">> end),
    Events = test_bpftrace:stop(Consumer),
    [?assertEqual(Expected, [R || {P, #{reason := R}} <- Events, P =:= Probe, R =/= <<"the_end">>], Probe)
     || Probe <- [process_exit, process__exit, process__exit_signal]].

%% Sizes agree with erts_debug:flat_size/1; records that are too large take little time.
sizes(Config) ->
    Consumer = attach([message__send], Config),
    Expected = call(Config, fun() ->
                                    Terms = [Term || R <- [pt(3), literal(), empty(), quoted(1.5), pt(<<"bin">>)],
                                             Term <- everywhere(R)],
                                    All = Terms ++ [pt(lists:seq(1, 100000)), the_end],
                                    _ = test_cases:traced([send], fun() -> [self() ! Term || Term <- All] end),
                                    [erts_debug:flat_size(Term) || Term <- Terms]
                            end),
    _ = test_bpftrace:await(Consumer, fun({_, #{size := Size}}) -> Size =:= 0 end),
    Sizes = [Size || {_, #{size := Size}} <- test_bpftrace:stop(Consumer)],
    ?assertEqual(Expected, lists:sublist(Sizes, length(Expected))),
    [Large, 0] = lists:nthtail(length(Expected), Sizes),
    ?assert(Large > 1900 andalso Large < 2100, Large).

%% A record is not a string: as an argument, it is a caller's mistake or counts as missing, like other terms. It is not
%% a tag either.
annotations(Config) ->
    Consumer = attach([user_mark, user_trace__i4s4], Config),
    call(Config, fun() ->
                         [?assertError(badarg, F())
                          || F <- [fun() -> dyntrace:mark(pt(1), "x") end, fun() -> dyntrace:mark(a, pt(1)) end]],
                         _ = [ignored(F) || F <- [fun() -> dyntrace:mark(["a", pt(1)], "x") end,
                                                  fun() -> dyntrace:p(1, [pt(1)]) end,
                                                  fun() -> dyntrace:p([$a | pt(1)]) end,
                                                  fun() -> dyntrace:put_tag(pt(1)) end,
                                                  fun() -> dyntrace:span(pt(1), fun() -> ok end) end]],
                         true = dyntrace:mark(the_end, "")
                 end),
    _ = test_bpftrace:await(Consumer, fun({P, E}) -> P =:= user_mark andalso maps:get(name, E) =:= <<"the_end">> end),
    _ = test_bpftrace:stop(Consumer).

%% -- Helpers -----------------------------------------------------------------------------------

attach(Probes, Config) ->
    test_bpftrace:start(?config(library, Config), Probes).

call(Config, Fun) ->
    test_node:call(?config(node, Config), Fun).
