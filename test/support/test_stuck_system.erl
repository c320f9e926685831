%% Systems that hang in known places, for stack dumps.
-module(test_stuck_system).
-behaviour(gen_server).

-export([fifo/2, nif/2, deadlock/0, suspended/0, reloading/0, spin/0, spin_first/0, sort/0]).
-export([init/1, handle_call/3, handle_cast/2]).
%% Called with a module prefix, so that each frame is known.
-export([opened/1, stuck/1, queued/0, sorts/1]).

%% Processes that block in `open' of a FIFO, as many as there are dirty I/O schedulers.
fifo(Path, Count) ->
    [spawn(fun() -> opened(Path) end) || _ <- lists:seq(1, Count)].

opened(Path) ->
    {error, Why} = file:open(Path, [read, raw]),
    exit(Why).

%% A process that occupies its normal scheduler for that many milliseconds, soon after the caller has gone on.
nif(Library, Ms) ->
    ok = test_stuck_nif:load(Library),
    spawn(fun() -> receive after 500 -> stuck(Ms) end end).

stuck(Ms) ->
    ok = test_stuck_nif:hang(Ms),
    stuck(0).

%% Two servers that call each other without a timeout.
deadlock() ->
    [{ok, _} = gen_server:start({local, Name}, ?MODULE, Other, [])
     || {Name, Other} <- [{stuck_stock, stuck_cart}, {stuck_cart, stuck_stock}]],
    ok = gen_server:cast(stuck_stock, ask),
    gen_server:cast(stuck_cart, ask).

init(Other) -> {ok, Other}.

handle_call(asked, _, Other) -> {reply, ok, Other}.

handle_cast(ask, Other) ->
    receive after 50 -> ok end,
    ok = gen_server:call(Other, asked, infinity),
    {noreply, Other}.

%% A process that another one has suspended, with three messages in its queue.
suspended() ->
    Pid = spawn(fun() -> true = register(stuck_suspended, self()), queued() end),
    _ = [Pid ! {message, N} || N <- [1, 2, 3]],
    spawn(fun() -> true = erlang:suspend_process(Pid), receive stop -> ok end end).

queued() ->
    receive stop -> ok end,
    queued().

%% A process that loads a module again and again.
reloading() ->
    spawn(fun() -> true = register(stuck_loader, self()), loads() end).

loads() ->
    _ = code:purge(test_profile_load),
    {module, _} = code:load_file(test_profile_load),
    loads().

%% A process that runs Erlang code.
spin() ->
    spawn(fun() -> true = register(stuck_spin, self()), spins(0) end).

%% A process that sorts the same list again and again.
sort() ->
    List = [N * 7919 rem 10007 || N <- lists:seq(1, 5000)],
    spawn(fun() -> true = register(stuck_sort, self()), ?MODULE:sorts(List) end).

sorts(List) ->
    Sorted = lists:sort(List),
    true = length(Sorted) > 0,
    sorts(List).

%% The same with the highest priority: no other process runs on its scheduler.
spin_first() ->
    spawn_opt(fun() -> true = register(stuck_spin, self()), spins(0) end, [{priority, max}]).

spins(N) -> spins(N bxor 1).
