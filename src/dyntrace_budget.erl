%% @private A budget of trace events a second. The library counts them and answers `discard' past it, which
%% still costs the VM's question; so whoever looks switches tracing off then, for a second.
-module(dyntrace_budget).

-export([new/1, look/1, info/1]).

-export_type([budget/0]).

-define(SECOND, 1000).

%% `seen' is the library's count of skipped events at the last look, `first' at the beginning. A spell of
%% too many events goes from a pause to a second without one.
-record(budget, {events, until, paused = false, in_spell = false, pauses = 0, seen, first}).

-opaque budget() :: #budget{}.

-spec new(pos_integer() | infinity) -> budget().
new(Events) ->
    Skipped = dyntrace:skipped(),
    refill(#budget{events = Events, seen = Skipped, first = Skipped}).

-spec look(budget()) -> budget().
look(Budget = #budget{events = infinity}) ->
    Budget;
look(Budget = #budget{paused = Paused, until = Until, seen = Seen}) ->
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

%% Since the budget is there: how many pauses, and how many events the library skipped before one began.
-spec info(budget()) -> #{paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
info(#budget{paused = Paused, pauses = Pauses, seen = Seen, first = First}) ->
    #{paused => Paused, pauses => Pauses, skipped => Seen - First}.

now_ms() ->
    erlang:monotonic_time(millisecond).
