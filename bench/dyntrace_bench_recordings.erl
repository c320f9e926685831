%% Large recordings, from which the viewer makes its outputs.
-module(dyntrace_bench_recordings).

-export([exchanges/3, crowded/3]).
%% On a node.
-export([answer/0, member/0]).

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
                        fun([Node]) -> test_node:call(Node, Fun, 900000) end).

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
