%% Random terms of every type, to be written as texts.
-module(test_terms).

-include_lib("proper/include/proper.hrl").

-export([any_kind/0, any_float/0, secret/0, rows/0]).

%% Terms that %T writes differently are left out: strings with characters from 160 to 255, which it writes as single
%% bytes, lists of integers that would be such characters, and maps of more than 32 keys, whose internal form it writes.
any_kind() ->
    Leaf = leaf(),
    ?SIZED(Size, kind(Size, Leaf)).

kind(0, Leaf) ->
    Leaf;
kind(Size, Leaf) ->
    Smaller = ?LAZY(kind(Size div 3, Leaf)),
    frequency([{3, Leaf},
               {2, list(Smaller)},
               {1, ?LET({Head, Tail}, {non_empty(list(Smaller)), Leaf}, Head ++ Tail)},
               {2, ?LET(List, list(Smaller), list_to_tuple(List))},
               {1, ?LET(Pairs, list({Smaller, Smaller}), maps:from_list(lists:sublist(Pairs, 32)))}]).

leaf() ->
    oneof([oneof([ok, a_name, '', 'A', 'div', 'a b', 'å', '日本', 'a@b', 'a\nb', 'a\'b', 'Ÿ',
                  list_to_atom(lists:duplicate(255, 16#1D11E))]),
           ?SUCHTHAT(I, oneof([integer(), large_integer()]), I < 160 orelse I > 255),
           any_float(),
           binary(), bitstring(), list(range(0, 159)), list(oneof([range(0, 159), range(256, 300)])), ascii(),
           ?LET(Text, ascii(), list_to_binary(Text)),
           ?LET({Text, More}, {ascii(), range(0, 127)}, Text ++ [More]),
           oneof([fun lists:map/2, fun 'a b':'c d'/3, fun() -> ok end, fun() -> self() end]),
           ?LAZY(make_ref()), ?LAZY(self()), ?LAZY(spawn(fun() -> ok end)), ?LAZY(hd(erlang:ports())),
           external()]).

%% Lists and tuples, also long, improper and nested ones, of one-word terms and some others.
rows() ->
    Element = frequency([{12, word()}, {1, leaf()}, {1, list(word())}]),
    ?SIZED(Size, row(oneof([1, 1, 1, 2, 20, 300]), Size div 3, Element)).

row(Times, Size, Element) ->
    ?LET({Row, Last, Kind, N}, {list(nested(Size, Element)), Element, oneof([list, list, tuple, improper]), Times},
         as(Kind, lists:append(lists:duplicate(N, Row)), Last)).

nested(0, Element) ->
    Element;
nested(Size, Element) ->
    frequency([{8, Element}, {1, ?LAZY(row(1, Size div 3, Element))}]).

as(list, Row, _) -> Row;
as(tuple, Row, _) -> list_to_tuple(Row);
as(improper, Row, Last) -> Row ++ Last.

%% Small integers have 60 bits, on a 32-bit VM 28. Cached texts have less than 54 bytes.
word() ->
    oneof([range(0, 255), integer(), -1, limit_of_integers(),
           ok, a_name, '', 'div', 'a b', 'å', 'a@b',
           ?LET({Size, C}, {oneof([range(48, 56), 255]), oneof([$a, $A])}, list_to_atom(lists:duplicate(Size, C))),
           ?LAZY(self()), ?LAZY(spawn(fun() -> ok end)), ?LAZY(hd(erlang:ports()))]).

limit_of_integers() ->
    ?LET({Sign, Bits, Off}, {oneof([1, -1]), oneof([27, 28, 31, 32, 59, 60, 62, 63, 64, range(0, 70)]), range(-2, 2)},
         Sign * ((1 bsl Bits) + Off)).

large_integer() ->
    ?LET({Sign, Bits, I}, {oneof([1, -1]), range(1, 1100), non_neg_integer()}, Sign * ((1 bsl Bits) + I)).

%% Floats of random bits, near powers of ten, and halfway between two texts of seven digits, exactly or almost.
any_float() ->
    oneof([float(), 0.0, -0.0,
           ?LET({Sign, Exponent, Fraction}, {range(0, 1), range(0, 2046), range(0, 1 bsl 52 - 1)},
                bits(<<Sign:1, Exponent:11, Fraction:52>>)),
           ?LET({Exponent, Off}, {range(-307, 308), range(-2, 2)},
                begin
                    <<Bits:64>> = <<(list_to_float("1.0e" ++ integer_to_list(Exponent))):64/float>>,
                    bits(<<(Bits + Off):64>>)
                end),
           ?LET({Whole, Tens}, {range(1000000, 9999999), range(-40, 40)}, (Whole + 0.5) * math:pow(10, Tens)),
           ?LET({Twice, Tens}, {range(2000000, 19999999), range(0, 10)},
                (Twice div trunc(math:pow(5, Tens)) bor 1) / (2 bsl Tens)),
           ?LET(Tiny, range(1, 1 bsl 52 - 1), bits(<<0:12, Tiny:52>>))]).

bits(<<Float/float>>) -> Float.

ascii() ->
    list(oneof([range(32, 126), 9, 10, 13, $", $\\])).

%% A pid, port or reference of another node.
external() ->
    ?LET({Kind, Name, N},
         {oneof([pid, port, reference]), oneof([<<"n@h">>, <<"far.away@127.0.0.1">>]), range(0, 1 bsl 28 - 1)},
         binary_to_term(external(Kind, <<119, (byte_size(Name)), Name/binary>>, N))).

external(pid, Node, N) -> <<131, 88, Node/binary, (N band 16#7FFF):32, 0:32, 1:32>>;
external(port, Node, N) -> <<131, 89, Node/binary, N:32, 1:32>>;
external(reference, Node, N) -> <<131, 90, 3:16, Node/binary, 1:32, (N band 16#3FFFF):32, N:32, N:32>>.

%% Terms that consist of atoms and two secrets.
secret() ->
    Leaf = oneof([<<"secret">>, "secret", 4711, 4711.0, "4711", <<"secret", 1:1>>, #{"secret" => <<"4711">>}, an_atom]),
    ?SIZED(Size, kind(Size, Leaf)).
