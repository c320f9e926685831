%% A small live system: a supervisor with workers that call, send, spawn, crash and are
%% restarted, a port, and a socket. Between two rounds each worker pauses as long as told;
%% with no pause it is a load.
-module(demo_system).
%% Both a supervisor and its gen_server: behaviours that share a callback's name can't be
%% declared together.

-export([start/1, stop/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export([clerk/0, worker/2, order/1, customer/1, gambler/1, roll/1, typist/1, listener/1, caller/1]).

-type pause() :: non_neg_integer().   % milliseconds

-spec start(pause()) -> pid().
start(Pause) ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {supervisor, Pause}),
    Supervisor.

-spec stop(pid()) -> ok.
stop(Supervisor) ->
    Ref = monitor(process, Supervisor),
    unlink(Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, Supervisor, _} -> ok end.

%% -- The tree --------------------------------------------------------------------------

init({supervisor, Pause}) ->
    Workers = [#{id => clerk, start => {?MODULE, clerk, []}} |
               [#{id => Worker, start => {?MODULE, worker, [Worker, Pause]}}
                || Worker <- [customer, gambler, typist, listener, caller]]],
    {ok, {#{strategy => one_for_one, intensity => 1000000, period => 1}, Workers}};
init(clerk) ->
    {ok, 0}.

worker(Worker, Pause) ->
    {ok, proc_lib:spawn_link(?MODULE, Worker, [Pause])}.

%% -- The clerk answers the customer ----------------------------------------------------

clerk() ->
    gen_server:start_link({local, demo_clerk}, ?MODULE, clerk, []).

handle_call({order, What}, _From, Orders) ->
    {reply, {ok, What, Orders + 1}, Orders + 1}.

handle_cast({thanks, _}, Orders) ->
    {noreply, Orders}.

customer(Pause) ->
    {ok, _, Number} = gen_server:call(demo_clerk, {order, "tea"}),
    ok = order(Number),
    pause(Pause),
    customer(Pause).

%% A short-lived process for each order, with some garbage.
order(Number) ->
    {_, Ref} = spawn_monitor(fun() ->
                                     _ = lists:sum(lists:seq(1, 2000)),
                                     gen_server:cast(demo_clerk, {thanks, Number})
                             end),
    receive {'DOWN', Ref, process, _, normal} -> ok end.

%% -- The gambler crashes, and is restarted -----------------------------------------------

gambler(Pause) ->
    pause(Pause),
    roll(rand:uniform(6)),
    gambler(Pause).

%% Ends as a child that the supervisor takes for crashed, without an error report.
roll(1) -> exit({shutdown, bad_luck});
roll(Eyes) -> Eyes.

%% -- The typist has a port -----------------------------------------------------------------

typist(Pause) ->
    Port = open_port({spawn, "cat"}, [stream]),
    true = port_command(Port, "typed"),
    receive {Port, {data, _}} -> ok end,
    true = port_close(Port),
    pause(2 * Pause),
    typist(Pause).

%% -- The listener and the caller talk over a socket -----------------------------------------

listener(Pause) ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, loopback}, {active, false}]),
    true = register(demo_listener, self()),
    accept(Listen, Pause).

accept(Listen, Pause) ->
    receive
        {where, From} ->
            {ok, Port} = inet:port(Listen),
            From ! {here, Port},
            {ok, Socket} = gen_tcp:accept(Listen),
            {ok, Line} = gen_tcp:recv(Socket, 0),
            ok = gen_tcp:send(Socket, lists:reverse(Line)),
            ok = gen_tcp:close(Socket),
            accept(Listen, Pause)
    end.

caller(Pause) ->
    pause(Pause),
    case whereis(demo_listener) of
        undefined ->
            caller(Pause);
        Listener ->
            Listener ! {where, self()},
            receive {here, Port} -> ok end,
            {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{active, true}]),
            ok = gen_tcp:send(Socket, "hello"),
            receive {tcp, Socket, "olleh"} -> ok end,
            receive {tcp_closed, Socket} -> ok end,
            caller(Pause)
    end.

pause(Pause) ->
    receive after Pause -> ok end.
