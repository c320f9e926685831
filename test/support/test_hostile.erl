%% Terms that are expensive to write as text without bounds.
-module(test_hostile).

-export([terms/0]).

%% {Name, Term, the first bytes of its text}
terms() ->
    Bytes = binary:copy(<<"a">>, 10000000),
    [{"nested a million deep", lists:foldl(fun(_, Inner) -> [Inner] end, [], lists:seq(1, 1000000)), <<"[[[[">>},
     {"tuples a million deep", lists:foldl(fun(_, Inner) -> {Inner} end, x, lists:seq(1, 1000000)), <<"{{{{">>},
     {"maps a hundred thousand deep", lists:foldl(fun(_, Inner) -> #{k => Inner} end, x, lists:seq(1, 100000)),
      <<"#{k=>#{k=>">>},
     {"keys a thousand deep", lists:foldl(fun(_, Inner) -> #{Inner => k} end, x, lists:seq(1, 1000)), <<"#{#{#{">>},
     {"10 MB binary of text", Bytes, <<"<<\"aaa">>},
     {"10 MB binary of bytes", binary:copy(<<1>>, 10000000), <<"<<1,1">>},
     {"10 MB bitstring", <<Bytes/binary, 1:3>>, <<"<<97,97">>},
     {"list of a million integers", lists:seq(1, 1000000), <<"[1,2,3">>},
     {"string of a million characters", lists:duplicate(1000000, $a), <<"\"aaa">>},
     {"list of a million empty lists", lists:duplicate(1000000, []), <<"[[],[]">>},
     {"integer of 1 MB", integer(), <<"...">>},
     {"negative integer of 1 MB", -integer(), <<"...">>},
     {"list of large integers", lists:duplicate(1000, 1 bsl 850), <<"[750">>},
     {"map of a million keys", maps:from_list([{N, N} || N <- lists:seq(1, 1000000)]), <<"#{">>},
     {"maps of 40 keys as keys",
      lists:foldl(fun(_, Inner) -> maps:from_list([{Inner, x} | [{N, N} || N <- lists:seq(1, 40)]]) end, x,
                  lists:seq(1, 100)), <<"#{">>},
     {"tuple of 16 million elements", erlang:make_tuple(16777215, x), <<"{x,x,">>},
     {"atoms of 255 characters of four bytes", lists:duplicate(1000, list_to_atom(lists:duplicate(255, 16#1D11E))),
      <<"['">>},
     {"funs", lists:duplicate(1000, fun() -> Bytes end), <<"[#Fun<test_hostile.">>},
     {"references", [make_ref() || _ <- lists:seq(1, 1000)], <<"[#Ref<">>},
     {"floats", [N * 1.1e-300 || N <- lists:seq(1, 1000)], <<"[1.1">>},
     {"floats halfway between two texts", [N + 0.5 || N <- lists:seq(1000000, 1000999)], <<"[1.0000">>}].

%% In OTP 27 and later, the largest integer that the VM allows.
integer() ->
    try power(8000000)
    catch error:system_limit -> power(4000000)
    end.

power(Bits) -> 1 bsl Bits.
