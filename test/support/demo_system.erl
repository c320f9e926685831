%% A small live system: a supervisor with workers that call, send, spawn, crash and are restarted, a port, and a
%% socket. Each worker pauses between two rounds; without a pause the system generates load. The system counts its
%% actions, so that they can be compared with the events.
-module(demo_system).
%% This module is a supervisor and its gen_server. It declares neither behaviour: they share a callback's name.

-export([start/1, start/2, stop/1, counted/0, rounds_done/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export([clerk/0, worker/2, order/1, customer/1, gambler/1, roll/1, typist/1, listener/1, caller/1]).

-type pause() :: non_neg_integer().   % milliseconds
-type rounds() :: pos_integer() | infinity.
-type plan() :: {pause(), rounds()}.
-type deed() :: orders | rolls | crashes | ports | connections.

-define(DEEDS, [orders, rolls, crashes, ports, connections]).

%% A roll loses if its number is a multiple of this one.
-define(UNLUCKY, 3).

-spec start(pause()) -> pid().
start(Pause) ->
    start(Pause, infinity).

%% The workers idle after this number of rounds.
-spec start(pause(), rounds()) -> pid().
start(Pause, Rounds) ->
    ok = persistent_term:put(?MODULE, counters:new(length(?DEEDS), [])),
    {ok, Supervisor} = supervisor:start_link({local, demo_sup}, ?MODULE, {supervisor, {Pause, Rounds}}),
    Supervisor.

%% How often each action was done after the last start.
-spec counted() -> #{deed() => non_neg_integer()}.
counted() ->
    maps:from_list([{Deed, count(Deed)} || Deed <- ?DEEDS]).

%% Whether all workers have finished their rounds.
-spec rounds_done(pos_integer()) -> boolean().
rounds_done(Rounds) ->
    lists:all(fun(Deed) -> count(Deed) >= Rounds end, ?DEEDS -- [crashes]).

-spec stop(pid()) -> ok.
stop(Supervisor) ->
    Ref = monitor(process, Supervisor),
    unlink(Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, Supervisor, _} -> ok end.

%% -- The tree --------------------------------------------------------------------------

init({supervisor, Plan}) ->
    Workers = [#{id => clerk, start => {?MODULE, clerk, []}} |
               [#{id => Worker, start => {?MODULE, worker, [Worker, Plan]}}
                || Worker <- [customer, gambler, typist, listener, caller]]],
    {ok, {#{strategy => one_for_one, intensity => 1000000, period => 1}, Workers}};
init(clerk) ->
    {ok, 0}.

worker(Worker, Plan) ->
    {ok, proc_lib:spawn_link(?MODULE, Worker, [Plan])}.

%% -- The clerk answers the customer ----------------------------------------------------

clerk() ->
    gen_server:start_link({local, demo_clerk}, ?MODULE, clerk, []).

handle_call({order, What}, _From, Orders) ->
    {reply, {ok, What, Orders + 1}, Orders + 1}.

handle_cast({thanks, _}, Orders) ->
    {noreply, Orders}.

-spec customer(plan()) -> no_return().
customer(Plan) ->
    true = register(demo_customer, self()),
    rounds(orders, Plan, fun() ->
                                 {ok, _, Number} = gen_server:call(demo_clerk, {order, "tea"}),
                                 ok = order(Number)
                         end).

%% Each order has a separate short-lived process, which produces some garbage.
order(Number) ->
    {_, Ref} = spawn_monitor(fun() ->
                                     _ = lists:sum(lists:seq(1, 2000)),
                                     gen_server:cast(demo_clerk, {thanks, Number})
                             end),
    receive {'DOWN', Ref, process, _, normal} -> ok end.

%% -- The gambler crashes, and is restarted -----------------------------------------------

-spec gambler(plan()) -> no_return().
gambler(Plan) ->
    true = register(demo_gambler, self()),
    rounds(rolls, Plan, fun() -> roll(count(rolls) + 1) end).

%% Exits with a reason for which the supervisor restarts it without logging an error.
roll(Number) when Number rem ?UNLUCKY =:= 0 ->
    did(rolls),
    did(crashes),
    exit({shutdown, bad_luck});
roll(Number) ->
    Number rem ?UNLUCKY.

%% -- The typist has a port -----------------------------------------------------------------

-spec typist(plan()) -> no_return().
typist(Plan) ->
    true = register(demo_typist, self()),
    rounds(ports, Plan, fun() ->
                                Port = open_port({spawn, "cat"}, [stream]),
                                true = port_command(Port, "typed"),
                                receive {Port, {data, _}} -> ok end,
                                true = port_close(Port)
                        end).

%% -- The listener and the caller talk over a socket -----------------------------------------

-spec listener(plan()) -> no_return().
listener(_Plan) ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, loopback}, {active, false}]),
    true = register(demo_listener, self()),
    accept(Listen).

accept(Listen) ->
    receive
        {where, From} ->
            {ok, Port} = inet:port(Listen),
            From ! {here, Port},
            {ok, Socket} = gen_tcp:accept(Listen),
            {ok, Line} = gen_tcp:recv(Socket, 0),
            ok = gen_tcp:send(Socket, lists:reverse(Line)),
            ok = gen_tcp:close(Socket),
            accept(Listen)
    end.

-spec caller(plan()) -> no_return().
caller(Plan) ->
    true = register(demo_caller, self()),
    rounds(connections, Plan, fun connect/0).

connect() ->
    case whereis(demo_listener) of
        undefined -> % not yet
            pause(1),
            connect();
        Listener ->
            Listener ! {where, self()},
            receive {here, Port} -> ok end,
            {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{active, true}]),
            ok = gen_tcp:send(Socket, "hello"),
            receive {tcp, Socket, "olleh"} -> ok end,
            receive {tcp_closed, Socket} -> ok end
    end.

%% -- Rounds -----------------------------------------------------------------------------------

%% In Erlang's term order, each number is less than the atom `infinity'.
rounds(Deed, {_, Rounds} = Plan, Round) ->
    case count(Deed) < Rounds of
        true -> another(Deed, Plan, Round);
        false -> receive after infinity -> ok end
    end.

another(Deed, {Pause, _} = Plan, Round) ->
    pause(Pause),
    _ = Round(),
    did(Deed),
    rounds(Deed, Plan, Round).

did(Deed) ->
    counters:add(persistent_term:get(?MODULE), index(Deed), 1).

count(Deed) ->
    counters:get(persistent_term:get(?MODULE), index(Deed)).

index(Deed) ->
    length(lists:takewhile(fun(Other) -> Other =/= Deed end, ?DEEDS)) + 1.

pause(Pause) ->
    receive after Pause -> ok end.
