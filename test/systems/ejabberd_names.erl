%% Names of ejabberd's sessions, for the option `labels' of dyntrace, because their processes do not note their owners.
-module(ejabberd_names).

-export([sessions/0]).

%% A #session{} of ejabberd_sm begins with sid, {Time, Pid}, and usr, {User, Server, Resource}.
sessions() ->
    [{Pid, [User, "@", Server, "/", Resource]}
     || Session <- ejabberd_sm:dirty_get_my_sessions_list(),
        {_, Pid} <- [element(2, Session)], {User, Server, Resource} <- [element(3, Session)]].
