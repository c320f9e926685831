%% @private A budget of trace events per second. The library counts them and answers `discard' when it is spent. That
%% still costs one call of `enabled' per event, so the worker, which polls the count, then switches tracing off for a
%% second.
-module(dyntrace_budget).

-export([new/1, poll/1, info/1]).

-export_type([budget/0]).

-define(SECOND, 1000).

%% `until': when the pause ends, or the budget is filled up. `seen': the library's count of skipped events at the last
%% poll, `first': when the budget was made. A spell of too many events begins with a pause, and ends with a second in
%% which no event was skipped; the log has one line for each end of it.
-record(budget, {events, until, paused = false, in_spell = false, pauses = 0, seen, first}).

-opaque budget() :: #budget{}.

-spec new(pos_integer() | infinity) -> budget().
new(Events) ->
    Skipped = dyntrace:skipped(),
    refill(#budget{events = Events, seen = Skipped, first = Skipped}).

-spec poll(budget()) -> budget().
poll(Budget = #budget{events = infinity}) ->
    Budget;
poll(Budget = #budget{paused = Paused, until = Until, seen = Seen}) ->
    Skipped = dyntrace:skipped(),
    case now_ms() >= Until of
        _ when not Paused, Skipped > Seen -> pause(Budget#budget{seen = Skipped});
        true when Paused -> refill(Budget#budget{paused = false, seen = Skipped});
        true -> refill(calm(Budget));
        false -> Budget
    end.

refill(Budget = #budget{events = Events}) ->
    ok = dyntrace:set_budget(Events),
    Budget#budget{until = now_ms() + ?SECOND}.

pause(Budget = #budget{pauses = Pauses, in_spell = InSpell, events = Events}) ->
    InSpell orelse logger:warning("dyntrace: more than ~b trace events a second: tracing pauses for a second "
                                  "whenever there are", [Events]),
    Budget#budget{paused = true, in_spell = true, pauses = Pauses + 1, until = now_ms() + ?SECOND}.

calm(Budget = #budget{in_spell = false}) ->
    Budget;
calm(Budget = #budget{events = Events}) ->
    logger:notice("dyntrace: fewer than ~b trace events a second again: ~0p", [Events, info(Budget)]),
    Budget#budget{in_spell = false}.

%% Since new/1: how many pauses, and how many events the library skipped before they began.
-spec info(budget()) -> #{paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
info(#budget{paused = Paused, pauses = Pauses, seen = Seen, first = First}) ->
    #{paused => Paused, pauses => Pauses, skipped => Seen - First}.

now_ms() ->
    erlang:monotonic_time(millisecond).
