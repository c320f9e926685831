%% Processes that work in turn, in known call paths, each for a known CPU time by the VM's own account.
-module(test_known_work).

-export([start/0, used/0]).
%% Called with a module prefix, so that each frame is known.
-export([turns/2, spent/2]).

%% Kinds of work, with milliseconds of CPU time per round.
-define(KINDS, [{deep, 40}, {tail, 10}, {bif, 25}, {nif, 15}, {dirty, 25}, {collects, 20}, {bignum, 15}, {map, 15},
                {binary, 10}, {handler, 10}, {again, 15}]).
%% Steps of a loop, which take some tenths of a millisecond, and the depth of the recursion.
-define(STEPS, 100000).
-define(DEPTH, 200).
-define(REST_MS, 50).

%% Each process is registered as known_KIND. The last one rests, then a round begins again.
start() ->
    {ok, _} = application:ensure_all_started(crypto),
    ok = persistent_term:put(?MODULE, counters:new(length(?KINDS), [])),
    Numbered = lists:zip(lists:seq(1, length(?KINDS)), ?KINDS),
    Pids = [begun(Kind, fun() -> turn(Kind, {Number, Ms}) end) || {Number, {Kind, Ms}} <- Numbered]
        ++ [begun(rest, fun() -> receive after ?REST_MS -> ok end end)],
    [From ! {next, To} || {From, To} <- lists:zip(Pids, tl(Pids) ++ [hd(Pids)])],
    hd(Pids) ! work,
    Pids.

%% [{Name of the process, milliseconds of CPU time that it has used in its turns}]
used() ->
    Used = persistent_term:get(?MODULE),
    [{name(Kind), counters:get(Used, Number)}
     || {Number, {Kind, _}} <- lists:zip(lists:seq(1, length(?KINDS)), ?KINDS)].

name(Kind) ->
    list_to_atom("known_" ++ atom_to_list(Kind)).

begun(Kind, Turn) ->
    Options = [{fullsweep_after, 0} || Kind =:= collects],
    Pid = spawn_opt(?MODULE, turns, [Turn, none], Options),
    true = register(name(Kind), Pid),
    Pid.

turns(Turn, Next) ->
    receive
        {next, To} -> ?MODULE:turns(Turn, To);
        work ->
            ok = Turn(),
            Next ! work,
            turns(Turn, Next)
    end.

turn(again, Account) ->
    %% The work continues in code that is old by then.
    ok = loaded(),
    ok = test_known_again:run(fun loaded/0, Account);
turn(Kind, Account) ->
    ok = spent(job(Kind), Account).

%% Only one process works at a time, so the CPU time of the VM is that of its process.
spent(Job, {Number, Ms}) ->
    Before = runtime(),
    After = repeated(Job, Before + Ms),
    counters:add(persistent_term:get(?MODULE), Number, After - Before).

repeated(Job, Until) ->
    _ = Job(),
    case runtime() of
        Now when Now >= Until -> Now;
        _ -> repeated(Job, Until)
    end.

runtime() ->
    {Ms, _} = statistics(runtime),
    Ms.

job(deep) -> fun() -> deep(?DEPTH) end;
job(tail) -> fun() -> [tail(?STEPS)] end;
job(bif) -> Data = <<0:32000>>, fun() -> [hash(Data) || _ <- "some times"] end;
job(nif) -> Data = <<0:160000>>, fun() -> [crypto:hash(sha512, Data) || _ <- "some times"] end;
job(collects) -> fun() -> [collected(1000) || _ <- "some times"] end;
job(dirty) -> fun() -> [crypto:pbkdf2_hmac(sha512, <<"word">>, <<"salt">>, 500, 64)] end;
%% The compiler must not know the number.
job(bignum) -> Number = list_to_integer(lists:duplicate(6000, $7)), fun() -> [product(Number)] end;
job(map) -> fun() -> [map(200)] end;
job(binary) -> Data = binary:copy(<<"dyntrace">>, 1000), fun() -> [inverted(Data)] end;
job(handler) -> fun() -> [handler(?STEPS)] end.

%% Recursion that is not a tail call: each call has a frame.
deep(0) -> steps(?STEPS);
deep(Depth) -> 1 + deep(Depth - 1).

%% Tail calls leave no frame.
tail(Count) -> tail_too(Count).

tail_too(Count) -> steps(Count).

steps(0) -> 0;
steps(Count) -> steps(Count - 1).

hash(Data) ->
    {hashed, erlang:md5(Data)}.

%% Garbage, and a list that each collection copies.
collected(Count) ->
    Live = lists:seq(1, Count),
    Pairs = length([{N, N} || N <- Live]),
    {Pairs, hd(Live)}.

product(Number) ->
    {product, (Number * Number) rem (Number - 2)}.

map(Size) ->
    Map = maps:from_list([{{key, N}, N} || N <- lists:seq(1, Size)]),
    {Size, maps:fold(fun(_, N, Sum) -> N + Sum end, 0, maps:map(fun(_, N) -> N * 2 end, Map))}.

inverted(Data) ->
    {inverted, << <<(Byte bxor 255)>> || <<Byte>> <= Data >>}.

handler(Count) ->
    try
        error(Count)
    catch
        error:Count -> {handled, steps(Count)}
    end.

%% Loads test_known_again. No process runs its old code then.
loaded() ->
    true = code:soft_purge(test_known_again),
    {module, test_known_again} = code:load_file(test_known_again),
    ok.
