%% Sample recordings for trying out the viewer, and large ones for the bench:
%%
%%     erl -noinput -pa ... -s test_samples main -extra FOLDER [NAME...]
-module(test_samples).

-export([main/0, names/0, make/2, exchanges/3, crowded/3]).
%% On a node.
-export([exchange/2, answer/0, crowd/1, member/0]).

main() ->
    [Folder | Chosen] = init:get_plain_arguments(),
    [io:format("~s: ~p ms~n", [Name, element(1, timer:tc(fun() -> make(Name, Folder) end)) div 1000])
     || Name <- names(), Chosen =:= [] orelse lists:member(atom_to_list(Name), Chosen)],
    halt(0).

names() ->
    [demo, noctx, lost, gen_server, two, middle, big, crowd].

%% Makes the sample in a subfolder with its name.
make(Name, Folder) ->
    Path = filename:join(Folder, Name),
    _ = file:del_dir_r(Path),
    sample(Name, Path).

sample(demo, Path) ->
    test_recording:make(Path, #{env => demo_env()}, fun run_demo/1);
sample(noctx, Path) ->
    test_recording:make(Path, #{env => demo_env(), contexts => []}, fun run_demo/1);
sample(lost, Path) ->
    test_recording:make(Path, #{env => demo_env(), channel => "--subbuf-size=8k --num-subbuf=2 --switch-timer=200000"},
                        fun([Node]) ->
                                run_demo([Node]),
                                call(Node, fun() -> exchange(4, 5000) end)
                        end);
sample(gen_server, Path) ->
    test_recording:make(Path, #{env => [{functions, test_shop:functions()}, {log, notice}]},
                        fun([Node]) -> call(Node, fun test_shop:run/0) end);
sample(two, Path) ->
    test_recording:make(Path, #{env => demo_env(), nodes => 2}, fun run_demo/1);
sample(middle, Path) ->
    test_recording:make(Path, #{env => demo_env(),
                                before => fun([Node]) -> call(Node, fun start_forever/0), timer:sleep(1000) end},
                        fun(_) -> timer:sleep(1500) end);
sample(big, Path) ->
    exchanges(300000, Path, undefined);
sample(crowd, Path) ->
    crowded(100000, Path, undefined).

%% About ten events per exchange: a request and a reply are sent and arrive, and two processes are scheduled.
exchanges(Count, Path, Daemon) ->
    large(Path, Daemon, fun() -> exchange(100, Count div 100) end).

%% Count processes that exist at the same time.
crowded(Count, Path, Daemon) ->
    large(Path, Daemon, fun() -> crowd(Count) end).

large(Path, Daemon, Fun) ->
    test_recording:make(Path, #{daemon => Daemon,
                                channel => "--subbuf-size=32M --num-subbuf=8",
                                probes => [process_spawn, process_exit, process_register, process_scheduled,
                                           process_identity, message_send, message_receive, message_delivery,
                                           gc_minor_start, gc_minor_end, gc_major_start, gc_major_end]},
                        fun([Node]) -> call(Node, Fun) end).

demo_env() ->
    [{functions, [{demo_system, Function, '_'} || Function <- [order, roll, handle_call, handle_cast, connect]]},
     {sample_interval, 200}, {log, notice}].

%% The supervisor ends with the process that has started it.
start_forever() ->
    spawn(fun() -> demo_system:start(5), receive after infinity -> ok end end).

%% Forty rounds of each worker, on all nodes at once.
run_demo(Nodes) ->
    Self = self(),
    Runs = [spawn_link(fun() -> call(Node, fun() -> rounds(20, 40) end), Self ! {self(), done} end) || Node <- Nodes],
    [receive {Run, done} -> ok end || Run <- Runs],
    ok.

rounds(Pause, Rounds) ->
    System = demo_system:start(Pause, Rounds),
    ok = test_wait:until("the rounds are done", fun() -> demo_system:rounds_done(Rounds) end),
    demo_system:stop(System).

call(Node, Fun) ->
    test_node:call(Node, Fun, 900000).

%% Clients that run at the same time, each with its own server and Count exchanges.
exchange(Clients, Count) ->
    Mine = [spawn_monitor(fun() ->
                                  Server = spawn_link(?MODULE, answer, []),
                                  [begin
                                       Server ! {self(), {question, N}},
                                       receive {Server, _} -> ok end
                                   end || N <- lists:seq(1, Count)]
                          end) || _ <- lists:seq(1, Clients)],
    [receive {'DOWN', Ref, process, Pid, _} -> ok end || {Pid, Ref} <- Mine],
    ok.

answer() ->
    receive {From, {question, N}} -> From ! {self(), {answer, N}}, answer() end.

%% Count processes that exist at the same time; each gets a message and answers it.
crowd(Count) ->
    Members = [spawn_link(?MODULE, member, []) || _ <- lists:seq(1, Count)],
    [begin
         [Member ! {self(), hello} || Member <- Members],
         [receive {Member, hello} -> ok end || Member <- Members]
     end || _ <- [1, 2]],
    timer:sleep(2000),
    [begin unlink(Member), exit(Member, shutdown) end || Member <- Members],
    ok.

member() ->
    receive {From, hello} -> From ! {self(), hello}, member() end.
