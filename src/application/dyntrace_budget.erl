%% @private A budget of trace events per second. The library counts the events, and returns `discard' when the budget
%% is spent. That still costs one call of `enabled' per event, so the worker, which polls the count, then switches
%% tracing off for one second.
-module(dyntrace_budget).

-export([new/1, poll/1, info/1, withheld/1]).

-export_type([budget/0]).

-define(SECOND, 1000).

%% An overload begins with a pause, and ends after a second without skipped events. Its beginning and its end are
%% logged.
-record(budget, {events,
                 %% When the pause ends, or the budget is replenished.
                 until,
                 paused = false,
                 overloaded = false,
                 pauses = 0,
                 %% The library's count of skipped events: at the last poll, and when the budget was created.
                 skipped,
                 skipped_before}).

-opaque budget() :: #budget{}.

%% Events per second.
-spec new(pos_integer() | infinity) -> budget().
new(Events) ->
    Skipped = dyntrace:skipped(),
    refill(#budget{events = Events, skipped = Skipped, skipped_before = Skipped}).

%% Called at each poll of the worker: begins a pause, ends it, or replenishes the budget.
-spec poll(budget()) -> budget().
poll(Budget = #budget{events = infinity}) ->
    Budget;
poll(Budget = #budget{paused = Paused, until = Until, skipped = Before}) ->
    Skipped = dyntrace:skipped(),
    case now_ms() >= Until of
        _ when not Paused, Skipped > Before -> pause(Budget#budget{skipped = Skipped});
        true when Paused -> refill(Budget#budget{paused = false, skipped = Skipped});
        true -> refill(calm(Budget));
        false -> Budget
    end.

refill(Budget = #budget{events = Events}) ->
    ok = dyntrace:set_budget(Events),
    Budget#budget{until = now_ms() + ?SECOND}.

pause(Budget = #budget{pauses = Pauses, overloaded = Overloaded, events = Events}) ->
    Overloaded orelse logger:warning("dyntrace: more than ~b trace events per second: tracing pauses for one second "
                                     "whenever the budget is spent", [Events]),
    Budget#budget{paused = true, overloaded = true, pauses = Pauses + 1, until = now_ms() + ?SECOND}.

calm(Budget = #budget{overloaded = false}) ->
    Budget;
calm(Budget = #budget{events = Events}) ->
    logger:notice("dyntrace: fewer than ~b trace events per second again: ~0p", [Events, info(Budget)]),
    Budget#budget{overloaded = false}.

%% After new/1: how many pauses, and how many events the library skipped before they began.
-spec info(budget()) -> #{paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
info(#budget{paused = Paused, pauses = Pauses, skipped = Skipped, skipped_before = Before}) ->
    #{paused => Paused, pauses => Pauses, skipped => Skipped - Before}.

%% Marks in recordings that the events of a pause are missing.
-spec withheld(budget()) -> #{all_events => string()}.
withheld(#budget{paused = false}) ->
    #{};
withheld(#budget{paused = true, events = Events}) ->
    #{all_events => lists:flatten(io_lib:format("more than ~b trace events per second, the budget: tracing pauses for "
                                                "one second", [Events]))}.

now_ms() ->
    erlang:monotonic_time(millisecond).
