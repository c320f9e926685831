%% Debian's ejabberd, with the configuration of its package.
-module(packaged_ejabberd).
-behaviour(packaged).

-export([missing/0, service/0, launch/2, tool/1, load/1, started_with/0]).

-define(CTL, "/usr/sbin/ejabberdctl").
-define(LOGS, "/var/log/ejabberd").
-define(SETTINGS, "/etc/default/ejabberd").

missing() ->
    place:missing([?CTL]).

service() ->
    #{host => "ejabberd", user => "ejabberd", folders => ["/var/lib/ejabberd", ?LOGS],
      node => "ejabberd@localhost",
      port => 5222,
      serves => ["status"],
      setup => [["register", User, "localhost", "secret"] || User <- ["alice", "bob"]],
      client => "xmpp.py",
      daily => ["daily", "pairs=3", "rate=10"],
      storm => ["storm", "pairs=3", "rate=40", "storm=1"]}.

%% Settings: lines for the package's settings.
launch(Place, Lines) ->
    %% The folder for its pid file exists only where systemd has made it.
    {0, _} = test_shell:run("(cat ~s && echo EJABBERD_PID_PATH=ejabberd.pid && echo ~ts) | ~s tee ctl.cfg",
                            [?SETTINGS, test_command:quoted(Lines), place:as_user(Place)]),
    place:launch(Place, [?CTL, "--ctl-config", "ctl.cfg", "foreground"], ?LOGS).

tool(Place) ->
    [place:as_user(Place), " " ?CTL].

%% With the names of its sessions.
load(System) ->
    "{ok, " ++ _ = packaged:eval(System, lists:concat(
        ["code:add_pathz(\"", packaged:ebin(), "\"), {module, _} = code:load_abs(\"",
         filename:absname(filename:rootname(code:which(ejabberd_names))), "\"), ok = application:load(dyntrace), "
         "ok = application:set_env(dyntrace, labels, {ejabberd_names, sessions}), "
         "application:ensure_all_started(dyntrace)."])),
    ok.

%% The line of the settings that starts the application with the server.
started_with() ->
    lists:concat(["ERL_OPTIONS=\"$ERL_OPTIONS -pa ", packaged:ebin(), " ",
                  filename:dirname(code:which(ejabberd_names)),
                  " -dyntrace labels {ejabberd_names,sessions} -eval application:ensure_all_started(dyntrace).\""]).
