%% The latency of requests while everything is recorded: not the average, but the percentiles up to the slowest.
-module(dyntrace_bench_latency).

-export([latency/1]).

%% A gen_server that replies.
-export([init/1, handle_call/3, handle_cast/2]).

-import(dyntrace_bench_figures, [in_turn/2, percentile/2, count/1]).

-define(REQUESTS, 50000).
-define(PERCENTILES, [50, 99, 99.9]).

-spec latency(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
latency(Consumers) ->
    Tracers = [untraced, floor, lttng, process],
    Timed = fun(Tracer) ->
                    dyntrace_bench_tracers:with(
                      Tracer, Consumers,
                      fun(With) ->
                              [{{Name, {Tracer, Percent}}, Ns} || {Name, Answerer, Request} <- requests(),
                                                                  {Percent, Ns} <- timed(Answerer, Request, With)]
                      end)
            end,
    Ns = in_turn(Tracers, Timed),
    {{"Requests while everything is recorded",
      io_lib:format("Microseconds from a request until its answer, of ~s requests in a row between two processes that "
                    "are traced with ~0p. A round's percentile, and of all rounds the median.",
                    [count(?REQUESTS), dyntrace_bench_ops:flags()]),
      ["request, tracer" | [io_lib:format("p~w", [Percent]) || Percent <- ?PERCENTILES]],
      [[[Name, ", ", dyntrace_bench_tracers:title(Tracer)]
        | [io_lib:format("~.1f", [maps:get({Name, {Tracer, Percent}}, Ns) / 1000]) || Percent <- ?PERCENTILES]]
       || {Name, _, _} <- requests(), Tracer <- Tracers]},
     Ns}.

requests() ->
    [{"ping-pong", fun() -> spawn(fun pong/0) end, fun ping/1},
     {"`gen_server:call/2`",
      fun() -> {ok, Server} = gen_server:start(?MODULE, [], []), Server end,
      fun(Server) -> gen_server:call(Server, request) end}].

%% [{Percentile, nanoseconds}]. The times are stored outside the heap, which would be collected meanwhile.
timed(Answerer, Request, With) ->
    Times = atomics:new(?REQUESTS, []),
    Answering = Answerer(),
    {Asking, Ref} = spawn_monitor(fun() -> receive go -> ok = ask(?REQUESTS, Request, Answering, Times) end end),
    [ok = dyntrace_bench_tracers:trace(Pid, dyntrace_bench_ops:flags(), With) || Pid <- [Asking, Answering]],
    Asking ! go,
    normal = dyntrace_bench_figures:ended(Asking, Ref),
    exit(Answering, kill),
    Sorted = lists:sort([atomics:get(Times, N) || N <- lists:seq(1, ?REQUESTS)]),
    [{Percent, percentile(Percent, Sorted)} || Percent <- ?PERCENTILES].

ask(0, _, _, _) ->
    ok;
ask(N, Request, Answering, Times) ->
    Began = erlang:monotonic_time(nanosecond),
    _ = Request(Answering),
    ok = atomics:put(Times, N, erlang:monotonic_time(nanosecond) - Began),
    ask(N - 1, Request, Answering, Times).

ping(Pong) ->
    Pong ! {ping, self()},
    receive pong -> ok end.

pong() ->
    receive {ping, From} -> From ! pong, pong() end.

init(_) -> {ok, none}.
handle_call(request, _, State) -> {reply, ok, State}.
handle_cast(_, State) -> {noreply, State}.
