%% Figures of repeated measurements, and their texts.
-module(dyntrace_bench_figures).

-export([in_turn/2, in_turn/3, medians/1, mean_and_error/1, percentile/2, over/0, above/2, ended/2]).
-export([ns/1, count/1, ratio/1, percent/1]).

-export_type([table/0, figures/0]).

-type table() :: {Title :: string(), About :: iodata(), Head :: [string()], Rows :: [[iodata()]]}.

-type figures() :: #{{Row :: term(), Column :: term()} => number() | {Mean :: float(), Error :: float()} | none}.

-define(ROUNDS, 5).

%% The maximal time of a measurement.
-define(ENDED_MS, 120000).

%% The medians of the function's figures for each column, in several rounds. Each round begins with another column, so
%% that no column is always measured after the same one.
-spec in_turn([Column], fun((Column) -> [{Key, number()}])) -> #{Key => number()}.
in_turn(Columns, Measure) -> in_turn(?ROUNDS, Columns, Measure).

%% The same, with this number of rounds.
-spec in_turn(pos_integer(), [Column], fun((Column) -> [{Key, number()}])) -> #{Key => number()}.
in_turn(Rounds, Columns, Measure) ->
    medians([Figure || Round <- lists:seq(1, Rounds), Column <- rotated(Round rem length(Columns), Columns),
                       Figure <- Measure(Column)]).

rotated(N, Columns) ->
    {First, Rest} = lists:split(N, Columns),
    Rest ++ First.

-spec medians([{Key, number()}]) -> #{Key => number()}.
medians(Figures) ->
    maps:map(fun(_, Values) -> percentile(50, lists:sort(Values)) end,
             maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Value}) -> Value end, Figures)).

%% The mean of independent values, and its standard error.
-spec mean_and_error([number(), ...]) -> {float(), float()}.
mean_and_error(Values) ->
    Count = length(Values),
    Mean = lists:sum(Values) / Count,
    {Mean, math:sqrt(lists:sum([(Value - Mean) * (Value - Mean) || Value <- Values]) / max(1, Count - 1) / Count)}.

%% The smallest of the sorted values that this percentage of them does not exceed.
-spec percentile(number(), [number(), ...]) -> number().
percentile(Percent, Sorted) -> lists:nth(max(1, ceil(length(Sorted) * Percent / 100)), Sorted).

%% In nanoseconds: the figure of an operation that takes longer, which is not awaited.
-spec over() -> float().
over() -> 1.0e9.

-spec above(number(), number()) -> number().
above(Ns, Base) ->
    case Ns < over() of
        true -> Ns - Base;
        false -> over()
    end.

%% The exit reason of a monitored process, which contains its measurement. The caller's match fails for any other
%% reason, and for a process that hangs.
-spec ended(pid(), reference()) -> term().
ended(Pid, Ref) ->
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason
    after ?ENDED_MS -> error({still_measures, Pid})
    end.

%% -- Texts ---------------------------------------------------------------------------------

-spec ns(number()) -> iodata().
ns(Ns) ->
    case Ns < over() of
        true when Ns < 100 -> io_lib:format("~.1f", [float(Ns)]);
        true -> count(Ns);
        false -> "> 1 s"
    end.

%% With a comma before each group of three digits.
-spec count(number()) -> iodata().
count(Number) -> thousands(integer_to_list(round(Number))).

thousands("-" ++ Digits) -> "-" ++ thousands(Digits);
thousands(Digits) when length(Digits) > 3 ->
    {Before, Last} = lists:split(length(Digits) - 3, Digits),
    thousands(Before) ++ "," ++ Last;
thousands(Digits) -> Digits.

-spec ratio(number()) -> iodata().
ratio(Ratio) -> io_lib:format("~.2f", [Ratio]).

-spec percent(number()) -> iodata().
percent(Ratio) -> io_lib:format("~b %", [round(100 * Ratio)]).
