%% Texts of terms: equal to the runtime's, in time that depends only on the text.
-module(text_SUITE).

-include("../support/suite.hrl").

-define(MAX, 256).
-define(KEPT, 253).

%% The greatest number of steps (test_text_nif:work/1) of a text.
-define(MOST_WORK, 2000).

%% A buffer size in bytes that is large enough for every text.
-define(ROOM, 7000).

%% Terms per seed.
-define(TOGETHER, 100).

suite() ->
    [{timetrap, {minutes, 30}}].

all() ->
    [random_terms, random_floats, random_shapes, direct_reads, random_ways, rows_of_cells, words_at_the_end,
     large_maps, latin1, cut_at_every_length, long_strings, large_integers, many_names, many_threads,
     hostile_terms, all_work_is_counted, shapes, arguments, mid_byte, utf8, random_bytes,
     dotted_names].

init_per_suite(Config) ->
    Library = test_text_nif:build(?config(priv_dir, Config)),
    ok = test_text_nif:load(Library),
    [{library, Library} | Config].

end_per_suite(_) -> ok.

%% -- The runtime's text ----------------------------------------------------------------------

%% The text of a random term equals that of %T, or is a prefix of it, also among the arguments of a call. It does not
%% depend on how the term is read. The checks share the terms, because making the terms takes longer than checking them.
random_terms(_) ->
    random(test_terms:any_kind(), [fun ?MODULE:is_text_of/1, fun ?MODULE:is_argument/1, fun ?MODULE:is_same/1]).

random_floats(_) ->
    random(test_terms:any_float(), [fun ?MODULE:is_text_of/1]),
    [?assertEqual(Text, test_text_nif:text(Float))
     || {Text, Float} <- [{<<"1.797693e+308">>, 1.7976931348623157e308}, {<<"4.940656e-324">>, 5.0e-324},
                          {<<"1.000000e+07">>, 9999999.9999}, {<<"1.000000e+06">>, 1000000.5},
                          {<<"1.000002e+06">>, 1000001.5}, {<<"-0.000000e+00">>, -0.0}]].

random(Type, Checks) ->
    Seed = {erlang:phash2(make_ref()), erlang:system_time(), 0},
    ct:pal("~b cases with the seed ~0p", [cases(), Seed]),
    [begin
         {ok, Terms} = proper_gen:pick(proper_types:vector(?TOGETHER, Type), N rem 16, setelement(3, Seed, N)),
         [IsGood(Term) orelse ct:fail("case ~b of the seed ~0p, ~0p: ~0p~n~ts~n~ts",
                                      [N, Seed, IsGood, Term, test_text_nif:text(Term), test_text_nif:runtime(Term)])
          || Term <- Terms, IsGood <- Checks]
     end || N <- lists:seq(1, cases() div ?TOGETHER)].

cases() ->
    list_to_integer(os:getenv("DYNTRACE_CASES", "40000")).

is_text_of(Term) ->
    Runtime = test_text_nif:runtime(Term),
    case test_text_nif:text(Term) of
        Text when byte_size(Runtime) =< ?MAX -> Text =:= Runtime;
        Text -> is_cut_of(Text, Runtime)
    end.

%% The text is cut where it no longer fits, at a character boundary; an integer that does not fit is left out.
is_cut_of(Text, Runtime) ->
    Kept = byte_size(Text) - 3,
    case {Text, Runtime} of
        {<<Same:Kept/binary, "...">>, <<Same:Kept/binary, Rest/binary>>} ->
            Kept =< ?KEPT andalso (Kept > ?KEPT - 4 orelse digits(Rest) > ?MAX);
        _ -> false
    end.

digits(<<"-", Rest/binary>>) -> digits(Rest);
digits(<<Digit, Rest/binary>>) when Digit >= $0, Digit =< $9 -> 1 + digits(Rest);
digits(_) -> 0.

%% A map of more than 32 keys has the same text for any order of keys.
large_maps(_) ->
    Pairs = [{N, -N} || N <- lists:seq(1, 33)],
    <<"#{", Rest/binary>> = test_text_nif:text(maps:from_list(Pairs)),
    ?assertEqual(lists:sort([iolist_to_binary(io_lib:format("~b=>~b", [K, V])) || {K, V} <- Pairs]),
                 lists:sort(binary:split(binary:part(Rest, 0, byte_size(Rest) - 1), <<",">>, [global]))),
    ?assertEqual($}, binary:last(Rest)).

%% Characters that %T writes as single bytes are written as UTF-8.
latin1(_) ->
    [?assertEqual(unicode:characters_to_binary([$", C, $"]), test_text_nif:text([C])) || C <- lists:seq(160, 255)],
    ?assertEqual(<<"{\"Ã¤\",ä,<<195,164>>}"/utf8>>, test_text_nif:text({[195, 164], 'ä', <<195, 164>>})).

%% Terms of each kind, of every length around the limit.
cut_at_every_length(_) ->
    [?assert(is_text_of(Make(N)), Make(N))
     || N <- lists:seq(1, 300),
        Make <- [fun(Size) -> lists:duplicate(Size, $x) end,
                 fun(Size) -> binary:copy(<<"x">>, Size) end,
                 fun(Size) -> binary:copy(<<1>>, Size) end,
                 fun(Size) -> <<(binary:copy(<<1>>, Size))/binary, 1:1>> end,
                 fun(Size) -> lists:seq(1, Size) end,
                 fun(Size) -> list_to_tuple(lists:seq(1, Size)) end,
                 fun(Size) -> lists:duplicate(Size, 'å') end,
                 fun(Size) -> lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, Size)) end,
                 fun(Size) -> lists:foldl(fun(_, Inner) -> #{Inner => Inner} end, x, lists:seq(1, Size rem 12)) end,
                 fun(Size) -> [list_to_atom(lists:duplicate(min(255, Size), $a)), b] end,
                 fun(Size) -> lists:seq(1000, 1000 + Size) ++ improper end]].

%% Only elements that fit into the text are read: a list with a non-character among them is not a string, a list with
%% one after them is.
long_strings(_) ->
    Xs = lists:duplicate(?MAX - 3, $x),
    Text = fun(List) -> binary:part(test_text_nif:text(List), 0, 4) end,
    [?assertEqual(<<"[120">>, Text(Tail)) || Tail <- [Xs ++ [a], Xs ++ improper, Xs ++ [300]]],
    ?assertEqual(<<"\"xxx">>, Text(Xs ++ Xs ++ [a])),
    ?assertEqual(<<"<<12">>, Text(<<(list_to_binary(Xs))/binary, 0>>)),
    ?assertEqual(<<"<<\"x">>, Text(<<(list_to_binary(Xs ++ Xs))/binary, 0>>)).

large_integers(_) ->
    Power = fun(N) -> binary_to_integer(iolist_to_binary(["1", lists:duplicate(N, $0)])) end,
    [?assertEqual(test_text_nif:runtime(I), test_text_nif:text(I))
     || I <- [Power(255), -Power(254), Power(256) - 1, 1 bsl 63, 1 bsl 63 - 1, -(1 bsl 63), 1 bsl 64, 1 bsl 59,
              -(1 bsl 59) - 1]],
    [?assertEqual(<<"...">>, test_text_nif:text(I)) || I <- [Power(1000), -Power(1000), 1 bsl 1000000]],
    ?assertEqual(<<"{a,[1,...">>, test_text_nif:text({a, [1, Power(1000), 2], b})).

%% More names than two tables of a thread hold: a cached text belongs to its own term.
many_names(_) ->
    Atoms = [list_to_atom("text_" ++ integer_to_list(N)) || N <- lists:seq(1, 20000)],
    Pids = [spawn(fun() -> ok end) || _ <- lists:seq(1, 20000)],
    Ports = [open_port({spawn, "true"}, []) || _ <- lists:seq(1, 100)],
    [begin
         ?assertEqual(atom_to_binary(Atom), test_text_nif:text(Atom)),
         ?assertEqual(atom_to_binary(Atom), test_text_nif:id(Atom))
     end || _ <- [1, 2], Atom <- Atoms],
    [?assertEqual(test_cases:text(Handle), test_text_nif:text(Handle)) || _ <- [1, 2], Handle <- Pids ++ Ports],
    %% The two spellings of one atom.
    [?assertEqual({<<"div">>, <<"'div'">>, <<"'a@b'">>, <<"a@b">>},
                  {test_text_nif:text('div'), test_text_nif:id('div'), test_text_nif:text(a@b),
                   test_text_nif:id(a@b)}) || _ <- [1, 2]].

%% More names than a table holds, on all schedulers and dirty schedulers at once, by more processes than threads.
many_threads(_) ->
    on_many_threads(20).

on_many_threads(Times) ->
    Names = [{list_to_atom("thread_" ++ integer_to_list(N)), iolist_to_binary(["thread_", integer_to_list(N)])}
             || N <- lists:seq(1, 2000)],
    Pids = [{Pid, test_cases:text(Pid)} || _ <- lists:seq(1, 2000), Pid <- [spawn(fun() -> ok end)]],
    Terms = Names ++ Pids,
    Wrong = fun(Text) -> [Term || _ <- lists:seq(1, Times), {Term, Expected} <- Terms, Text(Term) =/= Expected] end,
    Workers = [spawn_monitor(fun() -> exit({wrong, Wrong(Text)}) end)
               || _ <- lists:seq(1, 2 * erlang:system_info(schedulers)),
                  Text <- [fun test_text_nif:text/1, fun test_text_nif:text_dirty_cpu/1,
                           fun test_text_nif:text_dirty_io/1]],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual({wrong, []}, Reason) end || {Pid, Ref} <- Workers].

%% -- Direct reads --------------------------------------------------------------------------------

%% Lists and small integers are read without calls of erl_nif, and words are written in sequence. Otherwise the next
%% cases would compare calls with calls.
direct_reads(_) ->
    case erlang:system_info(wordsize) of
        8 ->
            ?assertEqual({direct, direct}, test_text_nif:reads()),
            [?assert(test_text_nif:steps(Words) =< 1 andalso test_text_nif:work(Words) > 20,
                     {test_text_nif:steps(Words), test_text_nif:work(Words)})
             || Words <- [lists:seq(-500, 500), lists:duplicate(200, 1 bsl 59 - 1), lists:duplicate(200, -1 bsl 59)]];
        4 ->
            {comment, io_lib:format("32 bits: ~0p", [test_text_nif:reads()])}
    end.

%% A text does not depend on how its term is read.
random_ways(_) ->
    random(test_terms:rows(), [fun ?MODULE:is_same/1, fun ?MODULE:is_same_shape/1]).

%% A text does not depend on the location of its cells: adjacent in either direction, scattered, or in broken sequences.
rows_of_cells(_) ->
    [begin
         Numbers = [rand:uniform(256) - 1 || _ <- lists:seq(1, 300)],
         Apart = apart(Numbers, Gap),
         ?assertEqual([], differences(?ROOM, Apart)),
         Text = test_text_nif:text(Apart),
         true = erlang:garbage_collect(),
         Copy = binary_to_term(term_to_binary(Numbers)),
         ?assertEqual([Text, Text], [test_text_nif:text(List) || List <- [Apart, Copy]])
     end || _ <- lists:seq(1, 100),
            Gap <- [fun() -> 0 end, fun() -> 3 end, fun() -> rand:uniform(7) end,
                    fun() -> rand:uniform(30) div 30 end]].

%% A list of the numbers, with a gap of some words between cells.
apart(Numbers, Gap) ->
    {List, _} = lists:foldr(fun(Number, {Cells, Between}) ->
                                    {[Number | Cells], [erlang:make_tuple(Gap(), 0) | Between]}
                            end, {[], []}, Numbers),
    List.

%% The text is also the same if the buffer ends within it or soon after it.
is_same(Term) ->
    is_same(?ROOM, Term) andalso is_same(rand:uniform(400), Term).

is_same_shape(Term) ->
    in_shape(fun() -> is_same(Term) end).

is_same(Room, Term) ->
    differences(Room, Term) =:= [].

differences(Room, Term) ->
    [{What, Texts} || {What, Of} <- [{text, Term}, {arguments, [Term]}, {arguments, arguments_of(Term)}],
                      Texts <- [lists:usort(test_text_nif:ways(Room, What, Of))],
                      length(Texts) > 1 orelse Texts =:= [overrun] orelse Texts =:= [none] andalso Room =:= ?ROOM].

arguments_of(Term) when is_tuple(Term) -> tuple_to_list(Term);
arguments_of([Element | Rest]) when is_list(Rest) -> [Element | arguments_of(Rest)];
arguments_of([Element | Last]) -> [Element, Last];
arguments_of(Term) -> [Term || Term =/= []].

%% Long sequences in buffers of every size: the longest words, cached words, and words slightly too long for the cache.
words_at_the_end(_) ->
    Atoms = [list_to_atom(lists:duplicate(Size, C)) || Size <- [1, 51, 52, 53, 54, 55], C <- [$a, $A]],
    Words = [-1 bsl 59, 1 bsl 59 - 1, -1 bsl 63, 0, 255, 256, self(), hd(erlang:ports()), <<"binary">>, <<0, 255>>,
             "string", [0] | Atoms],
    Before = [list_to_atom(lists:duplicate(Size, $b)) || Size <- lists:seq(1, 53)],
    [?assertEqual([], differences(Room, Term), Room)
     || Word <- Words, Room <- lists:seq(0, 70) ++ lists:seq(250, 330),
        Term <- [[lists:nth(Room rem 53 + 1, Before) | lists:duplicate(300, Word)], lists:duplicate(300, Word),
                 lists:duplicate(2, Word) ++ Word, list_to_tuple(lists:duplicate(300, Word)),
                 [[Word, {Word, [Word]}] || _ <- lists:seq(1, 50)],
                 list_to_binary([0 | [Byte || _ <- lists:seq(1, 300), Byte <- [Word], is_integer(Byte), Byte >= 0,
                                                                      Byte < 256]])]].

%% -- Expensive terms -----------------------------------------------------------------------------

hostile_terms(_) ->
    [begin
         Text = test_text_nif:text(Term),
         ?assert(byte_size(Text) =< ?MAX),
         ?assert(byte_size(Begins) =< byte_size(Text) andalso
                 binary:part(Text, 0, byte_size(Begins)) =:= Begins, {Name, Text}),
         Work = test_text_nif:work(Term),
         ct:pal("~ts: ~b steps, ~b ns", [Name, Work, test_text_nif:duration(Term)]),
         ?assert(Work =< ?MOST_WORK, {Name, Work})
     end || {Name, Term, Begins} <- test_hostile:terms()].

%% Functions of erl_nif that take constant time; calls of all others count as work.
-define(CONSTANT, ["enif_get_local_pid", "enif_get_local_port", "enif_get_map_size", "enif_get_ulong",
                   "enif_make_sub_binary", "enif_map_iterator_create", "enif_map_iterator_destroy"] ++
            ["enif_is_" ++ Kind || Kind <- ["atom", "binary", "fun", "list", "map", "number", "pid", "port", "ref",
                                            "tuple"]]).

%% Functions that are called only when the library is loaded, or by the test's own functions.
-define(NO_TEXT, ["enif_alloc_env", "enif_binary_to_term", "enif_is_identical", "enif_vsnprintf"] ++
            ["enif_make_" ++ What
             || What <- ["atom", "badarg", "copy", "int", "list", "list_cell", "long", "new_binary", "tuple", "uint",
                         "ulong"]]).

all_work_is_counted(Config) ->
    {0, Symbols} = test_shell:run("nm -D --undefined-only '~ts.so'", [?config(library, Config)]),
    {match, Called} = re:run(Symbols, "\\benif_\\w+", [global, {capture, first, list}]),
    ?assertEqual([], lists:append(Called) -- (test_text_nif:counted() ++ ?CONSTANT ++ ?NO_TEXT)).

%% -- Shapes --------------------------------------------------------------------------------------

shapes(_) ->
    Shape = fun(Term) -> in_shape(fun() -> test_text_nif:text(Term) end) end,
    [?assertEqual(Expected, Shape(Term))
     || {Term, Expected} <- [{{order, 4711, <<"secret">>, [1, 2, 3]}, <<"{order,integer(),{binary,6},{list,3}}">>},
                             {{reply, make_ref(), self(), 1.5, #{a => b}},
                              <<"{reply,reference(),pid(),float(),{map,1}}">>},
                             {{{badmatch, "why"}, [{m, f, [secret], []}]}, <<"{{badmatch,{list,3}},{list,1}}">>},
                             {{hd(erlang:ports()), fun() -> ok end, <<1:1>>, [a | b]},
                              <<"{port(),fun(),bitstring(),{improper_list,1}}">>},
                             {[], <<"{list,0}">>}, {{}, <<"{}">>}, {'an atom', <<"'an atom'">>},
                             {lists:seq(1, 999), <<"{list,999}">>}, {lists:seq(1, 1001), <<"{list,1000...}">>},
                             {1 bsl 1000000, <<"integer()">>}]],
    %% Shapes are cut like other texts.
    ?assertMatch(<<"{{{{", _:249/binary, "...">>,
                 Shape(lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, 300)))).

%% The text of a call's arguments is a list of the arguments' texts.
arguments(_) ->
    Shape = fun(Args) -> in_shape(fun() -> test_text_nif:arguments(Args) end) end,
    [?assertEqual({Full, InShape}, {test_text_nif:arguments(Args), Shape(Args)})
     || {Args, Full, InShape} <- [{[], <<"[]">>, <<"[]">>}, {"tea", <<"[116,101,97]">>,
                                                             <<"[integer(),integer(),integer()]">>},
                                  {["tea", [1, 2]], <<"[\"tea\",[1,2]]">>, <<"[{list,3},{list,2}]">>},
                                  {[{a, <<"b">>}, 300], <<"[{a,<<\"b\">>},300]">>, <<"[{a,{binary,1}},integer()]">>}]],
    [?assert(byte_size(test_text_nif:arguments([Term])) =< ?MAX, Name) || {Name, Term, _} <- test_hostile:terms()].

is_argument(Term) ->
    Text = test_text_nif:arguments([Term, b]),
    Whole = <<"[", (test_text_nif:runtime(Term))/binary, ",b]">>,
    case byte_size(Whole) =< ?MAX of
        true -> Text =:= Whole;
        false -> is_cut_of(Text, Whole)
    end.

%% The runtime copies an unaligned binary. After one large copy, no other binary is read.
mid_byte(_) ->
    Shapes = fun(Binary) -> in_shape(fun() -> test_text_nif:text({Binary, Binary, a}) end) end,
    Bytes = binary:copy(<<"a">>, 100001),
    <<_:1, Large:100000/binary, _/bits>> = Bytes,
    <<_:1, Small:100/binary, _/bits>> = Bytes,
    ?assertEqual(<<"{{binary,100000},...">>, Shapes(Large)),
    ?assertEqual(<<"{{binary,100},{binary,100},a}">>, Shapes(Small)),
    ?assertEqual(<<"{{binary,100001},{binary,100001},a}">>, Shapes(Bytes)),
    ?assert(is_text_of(Large) andalso is_text_of(Small)),
    Work = test_text_nif:work({Large, Large, a}),
    ?assert(Work >= byte_size(Large) andalso Work =< byte_size(Large) + ?MOST_WORK, Work).

%% -- Strings -------------------------------------------------------------------------------------

%% Bytes that are not UTF-8 are Latin-1: overlong forms, surrogates, characters past U+10FFFF, cut characters.
utf8(_) ->
    [?assertEqual(<< <<C/utf8>> || <<C>> <= Bytes >>, test_text_nif:string(Bytes))
     || Bytes <- [<<16#E0, 16#80, 16#80>>, <<16#E0, 16#9F, 16#BF>>, <<16#ED, 16#A0, 16#80>>, <<16#ED, 16#BF, 16#BF>>,
                  <<16#F0, 16#80, 16#80, 16#80>>, <<16#F0, 16#8F, 16#BF, 16#BF>>, <<16#F4, 16#90, 16#80, 16#80>>,
                  <<16#F5, 16#80, 16#80, 16#80>>,
                  <<16#C0, 16#80>>, <<16#C1, 16#BF>>, <<16#80>>, <<16#FF>>, <<16#C3>>, <<16#E2, 16#82>>,
                  <<16#F0, 16#9D, 16#84>>]],
    [?assertEqual(<<C/utf8>>, test_text_nif:string(<<C/utf8>>), C)
     || C <- lists:seq(1, 16#D7FF) ++ lists:seq(16#E000, 16#10FFFF, 7) ++ [16#FFFF, 16#10000, 16#10FFFF]],
    ?assertEqual(<<"a", 16#FFFD/utf8, "b">>, test_text_nif:string(<<"a", 0, "b">>)).

%% All pairs of bytes, and random sequences of bytes that begin and end characters, are decoded as by the module
%% unicode.
random_bytes(_) ->
    [check_bytes(<<A, B>>) || A <- lists:seq(0, 255), B <- lists:seq(0, 255)],
    Edges = list_to_tuple(lists:append([[B - 1, B, B + 1]
                                        || B <- [16#20, 16#80, 16#90, 16#A0, 16#C0, 16#C2, 16#E0, 16#ED, 16#F0,
                                                 16#F4]])),
    [check_bytes(<< <<(element(rand:uniform(tuple_size(Edges)), Edges))>> || _ <- lists:seq(1, rand:uniform(12)) >>)
     || _ <- lists:seq(1, cases())].

%% Names of any length and shape.
dotted_names(_) ->
    ?assertEqual(<<"shop.order.stop">>, test_text_nif:dotted([shop, order, stop])),
    ?assertEqual(<<"kö.日.with space._._"/utf8>>, test_text_nif:dotted(['kö', '日', 'with space', 1, "list" | tail])),
    [?assertEqual(<<>>, test_text_nif:dotted(Term)) || Term <- [[], name, <<"name">>, #{}]],
    Parts = [list_to_atom("part" ++ integer_to_list(N)) || N <- lists:seq(1, 1000)],
    Whole = fun(Some) -> iolist_to_binary(lists:join(".", [atom_to_list(Part) || Part <- Some])) end,
    [?assertEqual(case byte_size(Whole(Some)) of
                      Size when Size =< 1024 -> Whole(Some);
                      _ -> <<(binary:part(Whole(Some), 0, 1021))/binary, "...">>
                  end, test_text_nif:dotted(Some), N)
     || N <- lists:seq(100, 160) ++ [1000], Some <- [lists:sublist(Parts, N)]].

check_bytes(Bytes) ->
    ?assertEqual(as_unicode(Bytes), test_text_nif:string(Bytes), Bytes).

as_unicode(<<>>) ->
    <<>>;
as_unicode(Bytes = <<First, Rest/binary>>) ->
    case [Size || Size <- lists:seq(1, min(4, byte_size(Bytes))),
                  Char <- [binary:part(Bytes, 0, Size)], unicode:characters_to_binary(Char) =:= Char] of
        _ when First =:= 0 -> <<16#FFFD/utf8, (as_unicode(Rest))/binary>>;
        [Size | _] -> <<(binary:part(Bytes, 0, Size))/binary,
                        (as_unicode(binary:part(Bytes, Size, byte_size(Bytes) - Size)))/binary>>;
        [] -> <<First/utf8, (as_unicode(Rest))/binary>>
    end.

%% A shape contains no contents of a term except its atoms.
random_shapes(_) ->
    Secrets = [<<"secret">>, <<"4711">>],
    HasNone = fun(Term) -> binary:match(test_text_nif:text(Term), Secrets) =:= nomatch end,
    in_shape(fun() -> random(test_terms:secret(), [HasNone]) end).

%% -- Helpers -------------------------------------------------------------------------------------

in_shape(Fun) ->
    ok = test_text_nif:show(shape),
    try Fun()
    after test_text_nif:show(full)
    end.
