%% @private The source of the probe `withheld': tells what consumers require and the application can't trace, so that a
%% recording says what it lacks. It is told again every second: a consumer that attaches later hears it, and a flight
%% recorder, which forgets old events, has it.
-module(dyntrace_withheld).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).
%% For dyntrace_status
-export([listed/1, is_usual/1]).

%% What a release can't tell, or what an option switches off by default, in each recording of all events.
-define(USUAL, [log, vm_long_message_queue]).

-define(EVERY_MS, 1000).

-spec listed(off | dyntrace:following()) -> [{What :: atom(), Why :: string()}].
listed(off) -> [];
listed(#{withheld := Withheld}) -> lists:sort(maps:to_list(Withheld)).

-spec is_usual(What :: atom()) -> boolean().
is_usual(What) ->
    lists:member(What, ?USUAL).

%% The state is the time of the last report.
on(_, _) ->
    {on, now_ms()}.

poll(_, Last) ->
    case now_ms() - Last >= ?EVERY_MS of
        true -> ok = tell(), {on, now_ms()};
        false -> {on, Last}
    end.

message(_, Last) ->
    Last.

off(_) ->
    ok.

%% As the worker has shown it after its last poll.
tell() ->
    lists:foreach(fun({What, Why}) -> is_usual(What) orelse (ok = dyntrace:report(withheld, {What, Why})) end,
                  listed(dyntrace_autotracer:info())).

now_ms() ->
    erlang:monotonic_time(millisecond).
