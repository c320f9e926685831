%% Terms to make text of: random ones of every type, and such as are meant to hurt.
-module(dt_terms).

-include_lib("proper/include/proper.hrl").

-export([any_kind/0, secret/0, hostile/0]).

%% No characters past ASCII in strings, which %T writes as single bytes, and no maps of more than
%% 32 keys, of which it writes how they are stored.
any_kind() ->
    ?SIZED(Size, kind(Size, leaf())).

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
    oneof([oneof([ok, a_name, '', 'A', 'div', 'a b', 'å', '日本', 'a@b', 'a\nb', 'a\'b', 'Ÿ', list_to_atom(lists:duplicate(255, 16#1D11E))]),
           integer(), ?LET({Sign, Bits, I}, {oneof([1, -1]), range(1, 1100), non_neg_integer()}, Sign * ((1 bsl Bits) + I)),
           float(), 0.0, -0.0,
           binary(), bitstring(), list(range(0, 159)), list(oneof([range(0, 159), range(256, 300)])), ascii(), ?LET(Text, ascii(), list_to_binary(Text)),
           ?LET({Text, More}, {ascii(), range(0, 127)}, Text ++ [More]),
           oneof([fun lists:map/2, fun 'a b':'c d'/3, fun() -> ok end, fun() -> self() end]),
           ?LAZY(make_ref()), ?LAZY(self()), ?LAZY(spawn(fun() -> ok end)), ?LAZY(hd(erlang:ports())),
           external()]).

ascii() ->
    list(oneof([range(32, 126), 9, 10, 13, $", $\\])).

%% A pid, port and reference of another node.
external() ->
    ?LET({Kind, Name, N}, {oneof([pid, port, reference]), oneof([<<"n@h">>, <<"far.away@127.0.0.1">>]), range(0, 1 bsl 28 - 1)},
         binary_to_term(external(Kind, <<119, (byte_size(Name)), Name/binary>>, N))).

external(pid, Node, N) -> <<131, 88, Node/binary, (N band 16#7FFF):32, 0:32, 1:32>>;
external(port, Node, N) -> <<131, 89, Node/binary, N:32, 1:32>>;
external(reference, Node, N) -> <<131, 90, 3:16, Node/binary, 1:32, (N band 16#3FFFF):32, N:32, N:32>>.

%% Terms of which everything but the atoms is one of two secrets.
secret() ->
    ?SIZED(Size, kind(Size, oneof([<<"secret">>, "secret", 4711, 4711.0, "4711", <<"secret", 1:1>>, #{"secret" => <<"4711">>}, an_atom]))).

%% {Name, Term, what its text begins with}
hostile() ->
    Bytes = binary:copy(<<"a">>, 10000000),
    [{"nested a million deep", lists:foldl(fun(_, Inner) -> [Inner] end, [], lists:seq(1, 1000000)), <<"[[[[">>},
     {"tuples a million deep", lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, 1000000)), <<"{{{{">>},
     {"maps a hundred thousand deep", lists:foldl(fun(_, Inner) -> #{k => Inner} end, x, lists:seq(1, 100000)), <<"#{k=>#{k=>">>},
     {"keys a thousand deep", lists:foldl(fun(_, Inner) -> #{Inner => k} end, x, lists:seq(1, 1000)), <<"#{#{#{">>},
     {"10 MB binary of text", Bytes, <<"<<\"aaa">>},
     {"10 MB binary of bytes", binary:copy(<<1>>, 10000000), <<"<<1,1">>},
     {"10 MB bitstring", <<Bytes/binary, 1:3>>, <<"<<97,97">>},
     {"list of a million integers", lists:seq(1, 1000000), <<"[1,2,3">>},
     {"string of a million characters", lists:duplicate(1000000, $a), <<"\"aaa">>},
     {"list of a million empty lists", lists:duplicate(1000000, []), <<"[[],[]">>},
     {"integer of 1 MB", 1 bsl 8000000, <<"...">>},
     {"negative integer of 1 MB", -(1 bsl 8000000), <<"...">>},
     {"list of large integers", lists:duplicate(1000, 1 bsl 850), <<"[750">>},
     {"map of a million keys", maps:from_list([{N, N} || N <- lists:seq(1, 1000000)]), <<"#{">>},
     {"maps of 40 keys as keys", lists:foldl(fun(_, Inner) -> maps:from_list([{Inner, x} | [{N, N} || N <- lists:seq(1, 40)]]) end, x, lists:seq(1, 100)), <<"#{">>},
     {"tuple of 16 million elements", erlang:make_tuple(16777215, x), <<"{x,x,">>},
     {"atoms of 255 characters of four bytes", lists:duplicate(1000, list_to_atom(lists:duplicate(255, 16#1D11E))), <<"['">>},
     {"funs", lists:duplicate(1000, fun() -> Bytes end), <<"[#Fun<dt_terms.">>},
     {"references", [make_ref() || _ <- lists:seq(1, 1000)], <<"[#Ref<">>},
     {"floats", [N * 1.1e-300 || N <- lists:seq(1, 1000)], <<"[1.1">>}].
