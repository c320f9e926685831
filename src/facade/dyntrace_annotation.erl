%% @private The arguments of annotations: finds the wrong one, and puts them into the order of the probes.
-module(dyntrace_annotation).

-include("dyntrace_annotation.hrl").

-export([bad/2, placed/1, utf8/1]).

-define(NO_NAME, "neither an atom nor a string").
-define(NO_TEXT, "not a string").

%% Raises badarg, as that function of `dyntrace', for its first wrong argument.
-spec bad(Function :: atom(), Args :: [term()]) -> no_return().
bad(Function, Args) ->
    {Position, Why} = first_bad(1, checks(Function, Args)),
    dyntrace_badarg:raise(Function, Args, Position, Why).

first_bad(Position, [ok | Checks]) -> first_bad(Position + 1, Checks);
first_bad(Position, [Why | _]) -> {Position, Why}.

%% For each argument `ok', or why it is wrong.
checks(mark, [Name, Text]) -> [name(Name), text(Text)];
checks(mark, [Name, Value, Text]) -> [name(Name), check(is_integer(Value), "not an integer"), text(Text)];
checks(span, [Name, Fun]) -> [name(Name), check(is_function(Fun, 0), "not a fun without arguments")];
checks(request, [_, Fun]) -> [ok, check(is_function(Fun, 0), "not a fun without arguments")];
checks(p, Args) -> placement(Args);
checks(pn, [Label | Args]) -> [label(Label) | placement(Args)];
checks(user_trace_n, [Label | _]) -> [label(Label)];
checks(put_tag, [Tag]) -> [tag(utf8(Tag))];
checks(spread_tag, [Spread]) -> [check(is_boolean(Spread), "not a boolean")];
checks(restore_tag, [Data]) -> [check(dyntrace_tag:is_data(Data), "not a value returned by spread_tag/1")].

check(true, _) -> ok;
check(false, Why) -> Why.

name(Name) -> check(?IS_NAME(Name), ?NO_NAME).

text(Text) -> check(?IS_TEXT(Text), ?NO_TEXT).

label(Label) -> check(?IS_LABEL(Label), io_lib:format("not an integer from 0 to ~b", [?MAX_LABEL])).

tag({ok, _}) -> ok;
tag({error, Why}) -> Why.

%% Integers first, then the others, at most four of each.
placement(Args) ->
    {Integers, Others} = lists:splitwith(fun is_integer/1, Args),
    at_most_four(Integers, "a fifth integer") ++ others(Others).

others(Args) ->
    {Strings, Misplaced} = lists:splitwith(fun(Arg) -> not is_integer(Arg) end, Args),
    at_most_four(Strings, "a fifth string") ++ ["an integer after a string" || _ <- Misplaced].

at_most_four(Args, Why) ->
    lists:duplicate(min(4, length(Args)), ok) ++ lists:duplicate(max(0, length(Args) - 4), Why).

%% The arguments of p and pn at their places among four integers and four strings.
-spec placed([dyntrace:arg()]) -> [dyntrace:arg() | undefined].
placed(Args) ->
    {Integers, Strings} = lists:splitwith(fun is_integer/1, Args),
    four(Integers) ++ four(Strings).

four(Args) ->
    lists:sublist(Args ++ lists:duplicate(4, undefined), 4).

%% The string in UTF-8, or why it cannot be converted.
-spec utf8(term()) -> {ok, binary()} | {error, Why :: string()}.
utf8(Text) ->
    try unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) -> {ok, Binary};
        _ -> {error, "not a string in UTF-8"}
    catch
        error:badarg -> {error, ?NO_TEXT}
    end.
