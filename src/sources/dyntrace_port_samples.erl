%% @private The source of `port_sample': the ports with the most data in their output queues.
%%
%% A driver queues what it cannot write yet, because the other side of the connection, or the program, does not read.
%% Each sample reads some of the ports, and those with the longest queues in the previous sample. `port_info' waits for
%% the port; a port that does not answer delays only this source.
-module(dyntrace_port_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).

%% How many ports a sample reports, how many it reads, in batches with a pause after each, and how many of those with
%% data the next sample reads again.
-define(LARGEST, 10).
-define(PART, 1000).
-define(BATCH, 250).
-define(RETAINED, 1000).

-record(samples, {at :: undefined | integer(),
                  %% The remaining ports of this round.
                  rest = [] :: [port()],
                  %% The ports that had data, and how many bytes had left each one at its last report, or, without
                  %% one, when data was first seen.
                  queued = #{} :: #{port() => Left :: integer()}}).

report(none) ->
    report(#samples{});
report(State = #samples{at = At}) ->
    dyntrace_sampler:if_due(At, State, fun(Now) -> sample(State#samples{at = Now}) end).

sample(State = #samples{rest = Rest, queued = Before}) ->
    {Part, Later} = part(Rest),
    Read = read(lists:usort(maps:keys(Before) ++ Part), 1),
    Queued = lists:sublist(lists:reverse(lists:sort(Read)), ?RETAINED),
    {New, Again} = lists:partition(fun({_, Port, _}) -> not is_map_key(Port, Before) end, Queued),
    {Reported, Others} = dyntrace_walk:split(?LARGEST, Again),
    _ = [ok = report_sample(Port, Queue, max(0, Left - maps:get(Port, Before))) || {Queue, Port, Left} <- Reported],
    State#samples{rest = Later,
                  queued = maps:merge(maps:with([Port || {_, Port, _} <- Others], Before),
                                      maps:from_list([{Port, Left} || {_, Port, Left} <- New ++ Reported]))}.

part([]) -> dyntrace_walk:split(?PART, erlang:ports());
part(Rest) -> dyntrace_walk:split(?PART, Rest).

%% The ports with data.
read([], _) ->
    [];
read([Port | Ports], N) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    case erlang:port_info(Port, queue_size) of
        {queue_size, Queue} when Queue > 0 -> [{Queue, Port, left(Port, Queue)} | read(Ports, N + 1)];
        _ -> read(Ports, N + 1)
    end.

%% How many bytes have left the port since it was opened: those that were written and are no longer in the queue. Only
%% the driver of a socket also counts the headers of packets, and what the distribution writes.
left(Port, Queue) ->
    case inet:getstat(Port, [send_oct]) of
        {ok, [{send_oct, Written}]} -> Written - Queue;
        {error, _} -> written(erlang:port_info(Port, output)) - Queue
    end.

written({output, Written}) -> Written;
written(undefined) -> 0.

report_sample(Port, Queue, Sent) ->
    case erlang:port_info(Port, connected) of
        {connected, Owner} -> dyntrace:report(port_sample, {Port, Owner, Queue, Sent});
        undefined -> ok
    end.
