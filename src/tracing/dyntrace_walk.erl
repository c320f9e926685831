%% @private Visits many processes or ports in slices, with a pause after each slice.
%%
%% A call for all processes, such as erlang:trace(existing, ...), stops every scheduler until it has visited the last
%% one. The callers of this module have a high priority, so without the pauses they would occupy one scheduler.
-module(dyntrace_walk).

-export([is_long/0, all/1, split/2, pause/0, pause/2]).

%% A slice takes less than a millisecond, or a few milliseconds if the CPUs are busy.
-define(SLICE, 500).
-define(PAUSE_MS, 1).

%% For fewer processes, one call sets all flags, in a few milliseconds at most.
-define(MANY, 5000).

%% Whether there are so many processes that they have to be visited in slices.
-spec is_long() -> boolean().
is_long() ->
    erlang:system_info(process_count) > ?MANY.

each(Visit, Items) ->
    _ = lists:foldl(fun(Item, N) ->
                            ok = pause(N, ?SLICE),
                            _ = Visit(Item),
                            N + 1
                    end, 1, Items),
    ok.

%% Visits every process except the caller, including those that were being created when the walk began. Afterwards, it
%% collects the list of all processes as garbage.
-spec all(fun((pid()) -> term())) -> ok.
all(Visit) ->
    Processes = lists:usort(processes()),
    ok = each(Visit, ordsets:del_element(self(), Processes)),
    ok = each(Visit, ordsets:subtract(lists:usort(processes()), ordsets:add_element(self(), Processes))),
    _ = [erlang:garbage_collect() || length(Processes) > ?SLICE],
    ok.

%% The first items, as many as the part has at most, and the others.
-spec split(Part :: non_neg_integer(), [Item]) -> {[Item], [Item]}.
split(Part, Items) ->
    lists:split(min(Part, length(Items)), Items).

%% Called before the Nth item; pauses after each slice.
-spec pause(N :: pos_integer(), Slice :: pos_integer()) -> ok.
pause(N, Slice) when N rem Slice =:= 0 -> pause();
pause(_, _) -> ok.

%% Lets other processes of the scheduler run.
-spec pause() -> ok.
pause() ->
    receive after ?PAUSE_MS -> ok end.
