%% What all cases of a suite or group need, such as a daemon, in a process of its own: init and end run in different
%% processes, and a daemon ends with the process that started it.
-module(test_keeper).

-export([start/2, start_daemon/0, stop/1]).

%% Root's session daemon.
start_daemon() ->
    start(fun test_lttng:start_daemon/0, fun test_lttng:stop_daemon/1).

start(Start, Stop) ->
    Self = self(),
    {Keeper, Ref} = spawn_monitor(fun() ->
                                          Started = Start(),
                                          Self ! {self(), runs},
                                          receive stop -> Stop(Started) end
                                  end),
    receive
        {Keeper, runs} -> demonitor(Ref, [flush]), Keeper;
        {'DOWN', Ref, process, Keeper, Reason} -> error(Reason)
    end.

stop(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, normal} -> ok end.
