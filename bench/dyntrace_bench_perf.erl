%% What `dyntrace profile' and perf find in a real system in the same seconds: RabbitMQ with `+JPperf true', whose frame
%% pointers perf follows. The table of another release is that of a bench in its chroot.
-module(dyntrace_bench_perf).

-export([perf/1, earlier/1]).

-import(dyntrace_bench_figures, [count/1]).

-define(ROUNDS, 3).
-define(SECONDS, 20).
-define(HERTZ, 999).
%% Functions and paths of each kind that are listed, and paths that are compared as a whole.
-define(LISTED, 5).
-define(COMPARED, 20).

-spec perf(dyntrace_bench_tracers:consumers()) ->
          {dyntrace_bench_figures:table(), dyntrace_bench_figures:figures()}.
perf(#{folder := Folder}) ->
    {About, Rows} = case missing() of
                        false -> {about(), rows(sampled(Folder))};
                        Missing -> {["**Not measured**: ", Missing, "."], []}
                    end,
    {{title(erlang:system_info(otp_release)), About,
      ["samples in Erlang code", "perf", "`dyntrace profile`", "difference, in standard errors"], Rows},
     #{}}.

title(Release) ->
    "The profiler beside perf, on OTP " ++ Release.

%% The tables of other releases in a file. `make bench TABLES=perf' there adds them.
-spec earlier(file:filename()) -> [binary()].
earlier(Results) ->
    [dyntrace_bench_results:earlier(Results, title(Release))
     || Release <- ["27", "29"], Release =/= erlang:system_info(otp_release)].

missing() ->
    case {packaged_rabbitmq:missing(), os:find_executable("perf")} of
        {false, false} -> "perf is not installed";
        {Missing, _} -> Missing
    end.

about() ->
    io_lib:format("Debian's RabbitMQ with `+JPperf true`, while a client publishes and waits for each confirmation: ~b "
                  "rounds of ~b s, both tools at ~b Hz in the same seconds. Listed are the functions and paths with "
                  "most samples of perf; the number after a path is its rank. A difference of more than 3 standard "
                  "errors is more than chance. perf omits the caller of a function that has no frame: one that calls "
                  "nothing, or has just begun. In C code, which has no frame pointers, it finds few paths.",
                  [?ROUNDS, ?SECONDS, ?HERTZ]).

sampled(Folder) ->
    Started = {System, _} = perf_paths:start(),
    try
        [perf_paths:sampled(System, Folder, ?HERTZ, ?SECONDS) || _ <- lists:seq(1, ?ROUNDS)]
    after perf_paths:stop(Started)
    end.

rows(Rounds) ->
    {Perf, Ours} = {sum([Paths || {Paths, _} <- Rounds]), sum([Paths || {_, Paths} <- Rounds])},
    Both = [perf_paths:in_erlang(Paths) || Paths <- [Perf, Ours]],
    Samples = [perf_paths:samples(Paths) || Paths <- Both],
    [["samples" | [count(Number) || Number <- Samples]] ++ [""],
     ["with the process's first function" | [percent(perf_paths:samples(perf_paths:whole(Paths)), Of)
                                             || {Paths, Of} <- lists:zip(Both, Samples)]] ++ [""]]
        ++ [[[Title, name(Key)] | compared(Key, Counts, Samples)]
            || {Title, Of} <- [{"own time of ", fun perf_paths:own/1}, {"total time of ", fun perf_paths:total/1}],
               Counts <- [lists:map(Of, Both)], Key <- most(?LISTED, hd(Counts))]
        ++ paths([perf_paths:functions(Paths) || Paths <- Both], Samples)
        ++ [["in C code, samples with the process's first function"
             | [count(perf_paths:samples(perf_paths:whole(Paths)) - perf_paths:samples(perf_paths:whole(InErlang)))
                || {Paths, InErlang} <- lists:zip([Perf, Ours], Both)]] ++ [""]].

paths(Counts = [OfPerf, OfOurs], Samples) ->
    Ranks = [most(map_size(Of), Of) || Of <- Counts],
    [begin
         [Perf, Ours, Difference] = compared(Key, Counts, Samples),
         [["path ", name(Key)] | [[Share, " (", rank(Key, Ranked), ")"]
                                  || {Share, Ranked} <- lists:zip([Perf, Ours], Ranks)]] ++ [Difference]
     end || Key <- most(?LISTED, OfPerf)]
        ++ [[io_lib:format("the ~b hottest paths of perf, and how much of that both have", [?COMPARED]),
             percent(lists:sum([maps:get(Key, OfPerf) || Key <- most(?COMPARED, OfPerf)]), hd(Samples)),
             percent(lists:sum([min(maps:get(Key, OfPerf) * lists:last(Samples) / hd(Samples), maps:get(Key, OfOurs, 0))
                                || Key <- most(?COMPARED, OfPerf)]), lists:last(Samples)), ""]].

compared(Key, Counts, [OfPerf, OfOurs] = Samples) ->
    [Perf, Ours] = [maps:get(Key, Of, 0) || Of <- Counts],
    Share = (Perf + Ours) / (OfPerf + OfOurs),
    Error = math:sqrt(max(1.0e-9, Share * (1 - Share)) * (1 / OfPerf + 1 / OfOurs)),
    [percent(Number, Of) || {Number, Of} <- lists:zip([Perf, Ours], Samples)]
        ++ [io_lib:format("~.1f", [(Ours / OfOurs - Perf / OfPerf) / Error])].

%% The keys with the highest counts.
most(Number, Counts) ->
    lists:sublist([Key || {_, Key} <- lists:sort([{-Count, Key} || {Key, Count} <- maps:to_list(Counts)])], Number).

rank(Key, Ranked) ->
    case lists:splitwith(fun(Other) -> Other =/= Key end, Ranked) of
        {_, []} -> "none";
        {Before, _} -> integer_to_list(length(Before) + 1)
    end.

name(Functions) when is_list(Functions) -> ["`", lists:join(" > ", Functions), "`"];
name(Function) -> ["`", Function, "`"].

percent(Number, Of) -> io_lib:format("~.1f %", [100 * Number / max(1, Of)]).

sum(Maps) ->
    lists:foldl(fun(Counts, Sum) ->
                        maps:fold(fun(Key, Count, Into) -> Into#{Key => Count + maps:get(Key, Into, 0)} end,
                                  Sum, Counts)
                end, #{}, Maps).
