%% @private The source of the probe `withheld': reports what consumers require and the application cannot trace, so that
%% a recording shows what it lacks. The report is repeated every second, for consumers that attach later and for flight
%% recorders, which overwrite old events.
-module(dyntrace_withheld).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).
%% For dyntrace_status
-export([listed/1, is_usual/1]).

%% Probes that a release does not support or that an option disables by default. They are withheld in every recording of
%% all events.
-define(USUAL, [log, vm_long_message_queue]).

-define(EVERY_MS, 1000).

-define(ANSWER_MS, 100).

%% What is withheld, sorted.
-spec listed(off | dyntrace:following()) -> [{What :: atom(), Why :: string()}].
listed(off) -> [];
listed(#{withheld := Withheld}) -> lists:sort(maps:to_list(Withheld)).

%% Whether it is withheld on every node of this release, or by default.
-spec is_usual(What :: atom()) -> boolean().
is_usual(What) ->
    lists:member(What, ?USUAL).

%% The state is the time of the last report.
on(_, _) ->
    {on, now_ms()}.

poll(_, Last) ->
    Following = dyntrace_autotracer:info(),
    case is_paused(Following) orelse now_ms() - Last >= ?EVERY_MS of
        true -> ok = report(Following), {on, now_ms()};
        false -> {on, Last}
    end.

%% A pause is reported before it ends.
is_paused(#{paused := Paused}) -> Paused;
is_paused(off) -> false.

message(_, Last) ->
    Last.

%% Called when tracing has stopped. Consumers may stay attached, and tracing may resume: their recordings then show the
%% gap. A node that shuts down has no gap.
off(_) ->
    case is_shutting_down() of
        true -> ok;
        false -> dyntrace:report(withheld, {all_events, "the application has stopped tracing"})
    end.

%% `init' does not answer while it stops the applications.
is_shutting_down() ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({status, init:get_status()}) end),
    receive
        {'DOWN', Ref, process, Pid, {status, {Status, _}}} -> Status =:= stopping
    after ?ANSWER_MS ->
            true = exit(Pid, kill),
            true = demonitor(Ref, [flush])
    end.

%% As published by the worker after its last poll.
report(Following) ->
    lists:foreach(fun({What, Why}) -> is_usual(What) orelse (ok = dyntrace:report(withheld, {What, Why})) end,
                  listed(Following)).

now_ms() ->
    erlang:monotonic_time(millisecond).
