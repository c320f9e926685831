%% @private The source of the probe `withheld': reports what consumers require and the application cannot trace, so that
%% a recording shows what it lacks. The report is repeated every second, for consumers that attach later and for flight
%% recorders, which overwrite old events. It also reports that no consumer requires trace flags of processes: a flight
%% recorder requests such events only for some seconds after each cause. When they are requested, it reports when the
%% trace flags are set: a recording may begin earlier, with an event that does not need them, such as an annotation.
-module(dyntrace_withheld).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).
%% For dyntrace_status
-export([listed/1, is_usual/1]).
%% For dyntrace_autotracer
-export([report_begin/3]).

%% Probes that a release does not support or that an option disables. Every recording of all events lacks them.
-define(USUAL, [log, vm_long_message_queue]).

-define(EVERY_MS, 1000).

%% The maximum time to wait for an answer of `init'.
-define(INIT_MS, 100).

%% What is withheld, sorted.
-spec listed(off | dyntrace:following()) -> [{What :: atom(), Why :: string()}].
listed(off) -> [];
listed(#{withheld := Withheld}) -> lists:sort(maps:to_list(Withheld)).

%% Whether it is withheld on every node of this release, or by an option.
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

%% Why no process is traced, other than because of what is withheld.
not_traced(#{withheld := #{all_events := _}}) -> [];
not_traced(#{paused := true}) -> [];
not_traced(#{processes := []}) -> ["no consumer requests them"];
not_traced(_) -> [].

%% A pause is reported before it ends.
is_paused(#{paused := Paused}) -> Paused;
is_paused(off) -> false.

message(_, Last) ->
    Last.

%% Called when tracing has stopped. Consumers may stay attached, and tracing may resume: their recordings then show the
%% gap.
off(_) ->
    Why = case is_node_stopping() of
              true -> "the node is shutting down";
              false -> "the application has stopped tracing"
          end,
    dyntrace:report(withheld, {all_events, Why}).

%% Called immediately before the first flags are set, with `all_events', and immediately after, with `earlier_events'.
%% The first trace event may come before the second report; an idle node has none for a time.
-spec report_begin(all_events | earlier_events, Before :: map(), Then :: map()) -> ok.
report_begin(What, #{processes := []}, #{processes := [_ | _]}) ->
    dyntrace:report(withheld, {What, "their trace flags were not set"});
report_begin(_, _, _) ->
    ok.

%% While it stops the applications, `init' answers at once.
is_node_stopping() ->
    try erpc:call(node(), init, get_status, [], ?INIT_MS) of
        {Status, _} -> Status =:= stopping
    catch
        error:{erpc, _} -> false
    end.

%% As published by the worker after its last poll.
report(Following) ->
    _ = [ok = dyntrace:report(withheld, {all_events, Why}) || Why <- not_traced(Following)],
    lists:foreach(fun({What, Why}) -> is_usual(What) orelse (ok = dyntrace:report(withheld, {What, Why})) end,
                  listed(Following)).

now_ms() ->
    erlang:monotonic_time(millisecond).
