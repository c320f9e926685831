%% Debian's RabbitMQ in a place of its own, run by its package's user as its package's script runs it.
%%
%%     System = packaged_rabbitmq:start([]),
%%     ok = packaged_rabbitmq:load(System),
%%     "ok" = packaged_rabbitmq:eval(System, "fault:burn().").
-module(packaged_rabbitmq).

-export([missing/0, start/1, stop/1, place/1, load/1, eval/2, os_pid/1, ctl/2, rows/2, started_with/0]).

-define(NODE, "rabbit@localhost").
-define(SERVER, "/usr/sbin/rabbitmq-server").
-define(CTL, "/usr/sbin/rabbitmqctl").

-record(rabbitmq, {place, os_pid}).

missing() ->
    case {place:missing([?SERVER]), test_shell:run("/usr/bin/python3 -c 'import pika'", [])} of
        {false, {0, _}} -> false;
        {false, _} -> "python3-pika is not installed";
        {Missing, _} -> Missing
    end.

%% With further variables of the environment, "NAME=value". Returns when it serves.
start(Variables) ->
    Place = place:start("rabbit", "rabbitmq", ["/var/lib/rabbitmq", "/var/log/rabbitmq"]),
    try
        Settings = [[" ", test_command:quoted(Variable)] || Variable <- Variables],
        {0, _} = test_shell:run("~s~ts setsid ~s >/dev/null 2>&1 &", [prefix(Place), Settings, ?SERVER]),
        System = #rabbitmq{place = Place},
        ok = test_wait:until("RabbitMQ serves", fun({Status, _}) -> Status =:= 0 end,
                             fun() -> ctl(System, ["await_startup", "--timeout", "50"]) end),
        System#rabbitmq{os_pid = string:trim(eval(System, "os:getpid()."), both, "\"")}
    catch
        Class:Reason:Stack ->
            {_, Log} = test_shell:run("~s sh -c 'tail -n 50 /var/log/rabbitmq/*'", [place:as_root(Place)]),
            place:stop(Place),
            erlang:raise(Class, {Reason, Log}, Stack)
    end.

prefix(Place) ->
    place:as_user(Place) ++ " RABBITMQ_NODENAME=" ++ ?NODE.

stop(#rabbitmq{place = Place}) ->
    place:stop(Place).

place(#rabbitmq{place = Place}) ->
    Place.

%% The number of the node's process.
os_pid(#rabbitmq{os_pid = OsPid}) ->
    OsPid.

%% {Exit status, Output}
ctl(#rabbitmq{place = Place}, Args) ->
    {Status, Output} = test_shell:run("~s ~s --quiet~ts", [prefix(Place), ?CTL, [[" ", test_command:quoted(Arg)]
                                                                                 || Arg <- Args]]),
    {Status, unicode:characters_to_list(Output)}.

%% What expressions return, as text.
eval(#rabbitmq{place = Place}, Expressions) ->
    place:eval(Place, ?NODE, Expressions).

%% As users of a running node do it.
load(System) ->
    {0, "{ok," ++ _} = ctl(System, ["eval", "code:add_pathz(\"" ++ ebin() ++ "\"), "
                                    "application:ensure_all_started(dyntrace)."]),
    ok.

%% The variable that starts the application with the server.
started_with() ->
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-pa " ++ ebin() ++ " -eval application:ensure_all_started(dyntrace).".

ebin() ->
    filename:absname(filename:dirname(code:which(dyntrace))).

%% The columns of `rabbitmqctl list_...', a list per row.
rows(System, [List | Columns]) ->
    {0, Output} = ctl(System, [List, "--no-table-headers" | Columns]),
    [string:split(Line, "\t", all) || Line <- string:lexemes(Output, "\n")].
