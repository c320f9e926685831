%% @private A budget of calls per second, so that a trace pattern that matches too much does not stop the node: an event
%% takes many times as long as the call of a small function.
%%
%% The library counts the calls of each function, and drops call events when the budget is spent. At its next poll the
%% worker clears the trace patterns of the functions that were called most. They stay cleared until no consumer of calls
%% is attached, or until the next configuration. Tracing of the other functions continues.
-module(dyntrace_call_budget).

-export([new/1, poll/2, functions/2, withheld/1]).

-export_type([budget/0]).

-define(SECOND, 1000).

%% How many of the cleared functions a message names.
-define(NAMED, 20).

-record(budget, {calls :: pos_integer() | infinity,
                 %% Whether a consumer of calls was attached at the last poll.
                 required = false :: boolean(),
                 %% When the current second began.
                 since :: integer(),
                 %% The calls in it.
                 counts = #{} :: counts(),
                 cleared = #{} :: counts()}).

%% `others': functions that do not fit into the library's table.
-type counts() :: #{mfa() | others => pos_integer()}.

-opaque budget() :: #budget{}.

%% Calls per second.
-spec new(pos_integer() | infinity) -> budget().
new(Calls) ->
    _ = dyntrace:take_calls(),
    next(#budget{calls = Calls, since = now_ms()}).

%% Required: whether a consumer of calls is attached.
-spec poll(budget(), Required :: boolean()) -> budget().
poll(Budget = #budget{calls = infinity}, _) ->
    Budget;
poll(Budget = #budget{required = false}, false) ->
    Budget;
poll(#budget{calls = Calls}, false) ->
    new(Calls);
%% Discards calls that were counted after the last poll for the previous consumer.
poll(#budget{calls = Calls, required = false}, true) ->
    (new(Calls))#budget{required = true};
%% A function that was cleared at the last poll was counted until then.
poll(Budget = #budget{calls = Calls, since = Since, counts = Before, cleared = Cleared}, true) ->
    Counts = maps:without(maps:keys(Cleared), added(Before, dyntrace:take_calls())),
    Ms = now_ms() - Since,
    case total(Counts) of
        Total when Total >= Calls -> next(cleared(Counts, Calls * min(Ms, ?SECOND) div ?SECOND, Budget));
        _ when Ms >= ?SECOND -> next(Budget);
        Total ->
            ok = dyntrace:set_call_budget(Calls - Total),
            Budget#budget{counts = Counts}
    end.

next(Budget = #budget{calls = Calls}) ->
    ok = dyntrace:set_call_budget(Calls),
    Budget#budget{since = now_ms(), counts = #{}}.

added(Counts, {Functions, Others}) ->
    lists:foldl(fun({Function, Count}, Sum) -> maps:update_with(Function, fun(N) -> N + Count end, Count, Sum) end,
                Counts, [{others, Others} || Others > 0] ++ Functions).

total(Counts) ->
    lists:sum(maps:values(Counts)).

%% The functions that were called most: at least one, and so many that the others had at most `Most' calls.
cleared(Counts, Most, Budget = #budget{calls = Calls, cleared = Before}) ->
    [First | Rest] = lists:reverse(lists:keysort(2, maps:to_list(Counts))),
    Cleared = maps:from_list([First | busiest(Rest, total(maps:from_list(Rest)), Most)]),
    ok = warn_first(Before, reason(Calls, Cleared)),
    Budget#budget{cleared = maps:merge(Before, Cleared)}.

%% Only the first functions are logged; info/0 also lists the later ones.
warn_first(Before, Reason) when map_size(Before) =:= 0 -> logger:warning("dyntrace: ~ts", [Reason]);
warn_first(_, _) -> ok.

busiest([First = {_, Count} | Rest], Total, Most) when Total > Most -> [First | busiest(Rest, Total - Count, Most)];
busiest(_, _, _) -> [].

%% The configured functions without the cleared ones.
-spec functions(budget(), [dyntrace_trace_pattern:traced()]) -> [dyntrace_trace_pattern:traced()].
functions(#budget{cleared = #{others := _}}, Functions) ->
    [{Pattern, false} || Pattern <- dyntrace_trace_pattern:patterns(Functions)];
functions(#budget{cleared = Cleared}, Functions) ->
    Functions ++ [{Function, false} || Function <- lists:sort(maps:keys(Cleared))].

%% Makes a recording show that it lacks calls of the cleared functions.
-spec withheld(budget()) -> #{call => Why :: string()}.
withheld(#budget{cleared = Cleared}) when map_size(Cleared) =:= 0 -> #{};
withheld(#budget{calls = Calls, cleared = Cleared}) -> #{call => reason(Calls, Cleared)}.

reason(Calls, Cleared) ->
    Named = lists:sublist(lists:reverse(lists:keysort(2, maps:to_list(Cleared))), ?NAMED),
    More = case map_size(Cleared) - length(Named) of
               0 -> "";
               Count -> text(" and ~b more", [Count])
           end,
    text("more than ~b calls per second; no longer traced: ~ts~s",
         [Calls, lists:join(", ", [named(Function) || Function <- Named]), More]).

named({others, Count}) -> text("any function (~b calls of more functions than can be counted)", [Count]);
named({{M, F, A}, Count}) -> text("~tw:~tw/~b (~b calls)", [M, F, A, Count]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

now_ms() ->
    erlang:monotonic_time(millisecond).
