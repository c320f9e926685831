%% Debian's RabbitMQ.
-module(packaged_rabbitmq).
-behaviour(packaged).

-export([missing/0, service/0, launch/2, tool/1, load/1, rows/2, started_with/0]).

-define(NODE, "rabbit@localhost").
-define(NODENAME, "RABBITMQ_NODENAME=" ?NODE).
-define(LOGS, "/var/log/rabbitmq").
-define(SERVER, "/usr/sbin/rabbitmq-server").
-define(CTL, "/usr/sbin/rabbitmqctl").

missing() ->
    case {place:missing([?SERVER]), test_shell:run("/usr/bin/python3 -c 'import pika'", [])} of
        {false, {0, _}} -> false;
        {false, _} -> "python3-pika is not installed";
        {Missing, _} -> Missing
    end.

service() ->
    #{host => "rabbit", user => "rabbitmq", folders => ["/var/lib/rabbitmq", ?LOGS], node => ?NODE,
      port => 5672,
      serves => ["await_startup", "--timeout", "50"],
      client => "amqp.py",
      daily => ["orders", "producers=3", "consumers=3", "rate=30"],
      storm => ["storm_q", "producers=3", "rate=40", "storm=1"]}.

%% Settings: environment variables, "NAME=value".
launch(Place, Variables) ->
    place:launch(Place, ["env", ?NODENAME | Variables] ++ [?SERVER], ?LOGS).

tool(Place) ->
    [prefix(Place), " " ?CTL " --quiet"].

prefix(Place) ->
    place:as_user(Place) ++ " " ++ ?NODENAME.

load(System) ->
    {0, "{ok," ++ _} = packaged:ctl(System, ["eval", "code:add_pathz(\"" ++ packaged:ebin() ++ "\"), "
                                             "application:ensure_all_started(dyntrace)."]),
    ok.

%% The variable that starts the application together with the server.
started_with() ->
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-pa " ++ packaged:ebin() ++
        " -eval application:ensure_all_started(dyntrace).".

%% The columns of `rabbitmqctl list_...', one list per row.
rows(System, [List | Columns]) ->
    {0, Output} = packaged:ctl(System, [List, "--no-table-headers" | Columns]),
    [string:split(Line, "\t", all) || Line <- string:lexemes(Output, "\n")].
