%% @private The source of `port_sample': the ports with the most data in their output queues.
%%
%% A driver keeps what it cannot write in the queue of its port: the other side of the connection, or the program, does
%% not read. A sample reads only a part of the ports, and again those that had data in the sample before.
%%
%% A port answers when its driver lets it. One that does not delays only this source.
-module(dyntrace_port_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).

%% How many ports a sample reports, and how many it reads, in batches, with a pause after each.
-define(LARGEST, 10).
-define(PART, 1000).
-define(BATCH, 250).

%% The minimum time between two samples, even if the interval is shorter.
-define(LEAST_MS, 900).

-record(samples, {at :: undefined | integer(),
                  %% The remaining ports of this round.
                  rest = [] :: [port()],
                  %% The ports that had data: how much, and how much had been written to them since they were opened.
                  queued = #{} :: #{port() => {Queue :: pos_integer(), Written :: non_neg_integer()}}}).

report(none) ->
    report(#samples{});
report(State = #samples{at = At}) ->
    Now = erlang:monotonic_time(millisecond),
    case is_integer(At) andalso Now - At < ?LEAST_MS of
        true -> State;
        false -> sample(State#samples{at = Now})
    end.

sample(State = #samples{rest = Rest, queued = Before}) ->
    {Part, Left} = part(Rest),
    Queued = maps:from_list(read(lists:usort(maps:keys(Before) ++ Part), 1)),
    Again = [{Queue, Port, Queue0 + Written - Written0 - Queue}
             || {Port, {Queue, Written}} <- maps:to_list(Queued), {Queue0, Written0} <- before(Port, Before)],
    _ = [ok = report_port(Port, Queue, max(0, Sent))
         || {Queue, Port, Sent} <- lists:sublist(lists:reverse(lists:sort(Again)), ?LARGEST)],
    State#samples{rest = Left, queued = Queued}.

before(Port, Before) ->
    case Before of
        #{Port := Read} -> [Read];
        _ -> []
    end.

part([]) -> split(erlang:ports());
part(Rest) -> split(Rest).

split(Ports) ->
    lists:split(min(?PART, length(Ports)), Ports).

%% Only ports with data.
read([], _) ->
    [];
read([Port | Ports], N) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    case erlang:port_info(Port, output) of
        {output, Written} ->
            case erlang:port_info(Port, queue_size) of
                {queue_size, Queue} when Queue > 0 -> [{Port, {Queue, Written}} | read(Ports, N + 1)];
                _ -> read(Ports, N + 1)
            end;
        undefined ->
            read(Ports, N + 1)
    end.

report_port(Port, Queue, Sent) ->
    case erlang:port_info(Port, connected) of
        {connected, Owner} -> dyntrace:report(port_sample, {Port, Owner, Queue, Sent});
        undefined -> ok
    end.
