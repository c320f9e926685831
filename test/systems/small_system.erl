%% A small healthy system of an ordinary node, and what is planted beside it: faults, and healthy loads that resemble
%% faults.
%%
%%     small_system:start(), small_system:plant(chain), ..., fault:remove().
%%
%% The owner process of `fault` holds everything that is planted; the processes are linked to it and end with it.
-module(small_system).

-behaviour(gen_server).

-export([start/0, plant/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Two servers with four clients that call them every 25 ms, and a process that cleans up twice per second.
-spec start() -> ok.
start() ->
    Self = self(),
    {_, Ref} = spawn_monitor(fun() ->
                                     [server(Name, #{ms => 0}) || Name <- [stock, prices]],
                                     [spawn_link(fun() -> every(25, fun order/0) end) || _ <- lists:seq(1, 4)],
                                     _ = spawn_link(fun() -> every(500, fun tidy/0) end),
                                     Self ! started,
                                     receive stop -> ok end
                             end),
    receive
        started -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    end.

order() ->
    [ok = gen_server:call(Name, get) || Name <- [stock, prices]].

tidy() ->
    lists:sort([rand:uniform() || _ <- lists:seq(1, 500)]).

%% Returns when it is in place.
-spec plant(jobs | late | idle_pool | large_binaries | busy | chain | burn | terms | copies | formatting) -> ok.
plant(Kind) ->
    fault:keep(fun() -> planted(Kind) end).

%% -- Healthy ---------------------------------------------------------------------------------

%% Jobs whose exit reason is their result, modules that are compiled and loaded, programs that run.
planted(jobs) ->
    started(job_runner, 40, fun job/0),
    started(deployer, 1000, fun deploy/0),
    started(program_runner, 300, fun() -> "" = os:cmd("true") end);
%% A server that answers after 300 ms without working or blocking in the meantime.
planted(late) ->
    server(waiting_room, #{later => 300}),
    clients(waiting_room, 5);
%% Workers that wait for work, and one that gets some.
planted(idle_pool) ->
    [First | _] = [spawn_link(fun work/0) || _ <- lists:seq(1, 50)],
    started(dispatcher, 100, fun() -> First ! work end);
%% As many workers as with `terms', which collect by themselves, and messages as large as those of `copies' that the VM
%% does not copy.
planted(large_binaries) ->
    _ = [spawn_link(fun() -> every(500, fun() -> erlang:garbage_collect() end) end) || _ <- lists:seq(1, 200)],
    started(archive, fun archive/0),
    Binary = binary:copy(<<0>>, 25000000),
    started(order_export, 500, fun() -> archive ! {orders, Binary} end);
%% As many processes as schedulers compute endlessly: they need not wait.
planted(busy) ->
    burners(erlang:system_info(schedulers_online));

%% -- Faults ----------------------------------------------------------------------------------

%% Clients call a server that calls another one, which needs 15 ms per request.
planted(chain) ->
    server(ledger, #{ms => 15}),
    server(cash_desk, #{asks => ledger}),
    clients(cash_desk, 5);
%% Two more processes than schedulers compute endlessly.
planted(burn) ->
    burners(erlang:system_info(schedulers_online) + 2);
%% Workers with some data use a persistent term, which is replaced again and again.
planted(terms) ->
    ok = reload(),
    _ = [spawn_link(fun() -> use_term(lists:seq(1, 20000)) end) || _ <- lists:seq(1, 200)],
    started(price_reload, 300, fun reload/0);
%% A term of a few kB, which shares its parts, has 25 MB in a message.
planted(copies) ->
    started(archive, fun archive/0),
    started(order_export, fun() -> export(lists:foldl(fun(_, Term) -> {Term, Term} end, [1, 2], lists:seq(1, 20))) end);
%% As for a crash report.
planted(formatting) ->
    started(event_store, fun() -> format([{N, binary:copy(<<N:64>>, 8)} || N <- lists:seq(1, 50000)]) end).

reload() ->
    persistent_term:put({?MODULE, prices}, maps:from_list([{N, rand:uniform()} || N <- lists:seq(1, 2000)])).

use_term(Data) ->
    2000 = map_size(persistent_term:get({?MODULE, prices})),
    receive after 20 -> use_term(Data) end.

archive() ->
    receive {orders, _} -> true = erlang:garbage_collect(), archive() end.

export(Orders) ->
    receive after 500 -> archive ! {orders, Orders}, export(Orders) end.

format(Events) ->
    _ = io_lib:format("~p", [Events]),
    format(Events).

server(Name, How) ->
    {ok, _} = gen_server:start_link({local, Name}, ?MODULE, How, []),
    ok.

clients(Server, Count) ->
    [spawn_link(fun() -> every(0, fun() -> ok = gen_server:call(Server, get) end) end) || _ <- lists:seq(1, Count)],
    ok.

started(Name, Ms, Fun) ->
    started(Name, fun() -> every(Ms, Fun) end).

started(Name, Loop) ->
    Owner = self(),
    Pid = spawn_link(fun() -> true = register(Name, self()), Owner ! {self(), started}, Loop() end),
    receive {Pid, started} -> ok end.

every(Ms, Fun) ->
    receive after Ms -> _ = Fun(), every(Ms, Fun) end.

job() ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({priced, rand:uniform(1000)}) end),
    receive {'DOWN', Ref, process, Pid, {priced, _}} -> ok end.

deploy() ->
    Forms = [{attribute, 1, module, deployed}, {attribute, 1, export, [{version, 0}]},
             {function, 1, version, 0, [{clause, 1, [], [], [{integer, 1, erlang:unique_integer([positive])}]}]}],
    {ok, deployed, Binary} = compile:forms(Forms),
    {module, deployed} = code:load_binary(deployed, "deployed.erl", Binary),
    code:purge(deployed).

burners(Count) ->
    [spawn_link(fun() -> burn(1) end) || _ <- lists:seq(1, Count)],
    ok.

burn(N) ->
    burn((N * 1103515245 + 12345) band 16#7fffffff).

work() ->
    receive work -> _ = tidy(), work() end.

%% -- The servers -----------------------------------------------------------------------------

init(How) ->
    {ok, How}.

handle_call(get, From, How = #{later := Ms}) ->
    _ = erlang:send_after(Ms, self(), {answer, From}),
    {noreply, How};
handle_call(get, _, How = #{asks := Server}) ->
    {reply, gen_server:call(Server, get), How};
handle_call(get, _, How = #{ms := Ms}) ->
    {reply, receive after Ms -> ok end, How}.

handle_cast(_, How) ->
    {noreply, How}.

handle_info({answer, From}, How) ->
    gen_server:reply(From, ok),
    {noreply, How}.
