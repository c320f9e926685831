%% Work with known shares of the CPU and known call paths, for profiles.
-module(test_profile_load).

-export([shares/0, native/0, late/0, paths/0]).

%% The size of one piece of work, some milliseconds: long compared with waking up and passing the work on, and short
%% enough that other load on the machine affects all processes.
-define(UNIT, 400000).
-define(ROUND_REST_MS, 80).
-define(REST_MS, 40).

%% Three processes work in turn, one at a time: 60, 30 and 10 % of the work, regardless of the machine's load. A fourth
%% one lets the node rest after each round for longer than it has worked, because samples need a high rate, not much
%% work.
shares() ->
    [Pid | _] = Pids = [spawn(fun() -> true = register(Name, self()), begins(Work) end)
                        || {Name, Work} <- [{profile_heavy, {units, 6}}, {profile_middle, {units, 3}},
                                            {profile_light, {units, 1}}, {profile_rest, rest}]],
    [From ! {next, To} || {From, To} <- lists:zip(Pids, tl(Pids) ++ [Pid])],
    Pid ! work,
    Pids.

begins({units, Units}) -> receive {next, Next} -> turns(Units, Next) end;
begins(rest) -> receive {next, Next} -> rests(Next) end.

turns(Units, Next) ->
    receive work -> ok end,
    [] = repeated(Units),
    Next ! work,
    turns(Units, Next).

rests(Next) ->
    receive work -> ok end,
    receive after ?ROUND_REST_MS -> ok end,
    Next ! work,
    rests(Next).

%% No call is a tail call, so each has a frame.
repeated(0) ->
    [];
repeated(Units) ->
    {ok, ?UNIT} = outer(?UNIT),
    repeated(Units - 1).

outer(Count) ->
    Done = inner(Count, 0),
    {ok, Done}.

inner(0, Done) ->
    Done;
inner(Count, Done) ->
    inner(Count - 1, (Done bxor 1) bxor 1 + 1).

%% One process in a NIF, one on a dirty scheduler, one that collects garbage. Each rests now and then, so that the node
%% can report their names meanwhile.
native() ->
    {ok, _} = application:ensure_all_started(crypto),
    {Live, Data} = {lists:seq(1, 100000), binary:copy(<<"dyntrace">>, 20000)},
    [spawn(fun() -> true = register(Name, self()), work(Job) end)
     || {Name, Job} <- [{profile_nif, fun() -> crypto:hash(sha512, Data) end},
                        {profile_dirty, fun() -> crypto:pbkdf2_hmac(sha512, <<"word">>, <<"salt">>, 5000, 64) end},
                        {profile_gc, fun() -> true = erlang:garbage_collect(), hd(Live) end}]].

%% Processes that end in Erlang code, BIFs, garbage collection and an exception handler, in known paths.
paths() ->
    {ok, _} = application:ensure_all_started(crypto),
    [spawn(fun() -> true = register(Name, self()), work(Job) end)
     || {Name, Job} <- [{profile_deep, fun() -> deep(60, ?UNIT div 10) end},
                        {profile_tail, fun() -> [tail(?UNIT div 10)] end},
                        {profile_handler, fun() -> [handler(?UNIT div 10)] end},
                        {profile_map, fun() -> [job(200)] end},
                        {profile_hash, fun() -> crypto:hash(sha512, <<0:80000>>) end}]].

%% Recursion that is not a tail call.
deep(0, Count) -> inner(Count, 0);
deep(Depth, Count) -> 1 + deep(Depth - 1, Count).

%% A tail call leaves no frame.
tail(Count) ->
    inner(Count, 0).

handler(Count) ->
    try
        error(Count)
    catch
        error:Count -> {ok, inner(Count, 0)}
    end.

job(Size) ->
    Map = maps:from_list([{{key, N}, N} || N <- lists:seq(1, Size)]),
    {Size, maps:fold(fun(_, N, Sum) -> N + Sum end, 0, maps:map(fun(_, N) -> N * 2 end, Map))}.

%% Another process, for a profile that is already running.
late() ->
    spawn(fun() -> true = register(profile_late, self()), work(fun() -> outer(?UNIT) end) end).

work(Job) ->
    _ = [Job() || _ <- lists:seq(1, 20)],
    receive after ?REST_MS -> ok end,
    work(Job).
