%% Debian's ejabberd in a place of its own, run by its package's user as its package's script runs it, with the
%% configuration of its package.
%%
%%     System = packaged_ejabberd:start(""),
%%     ok = packaged_ejabberd:load(System),
%%     "ok" = packaged_ejabberd:eval(System, "fault:plant(burn).").
-module(packaged_ejabberd).

-export([missing/0, start/1, stop/1, place/1, load/1, eval/2, os_pid/1, ctl/2, started_with/0]).

-define(CTL, "/usr/sbin/ejabberdctl").
-define(NODE, "ejabberd@localhost").
-define(SETTINGS, "/etc/default/ejabberd").

-record(ejabberd, {place, os_pid}).

missing() ->
    place:missing([?CTL]).

%% With further lines of the package's settings. Returns when it serves.
start(Lines) ->
    Place = place:start("ejabberd", "ejabberd", ["/var/lib/ejabberd", "/var/log/ejabberd"]),
    System = #ejabberd{place = Place},
    try
        %% Its folder for the file of its pid exists only where systemd has made it.
        {0, _} = test_shell:run("(cat ~s && echo EJABBERD_PID_PATH=ejabberd.pid && echo ~ts) | ~s tee ctl.cfg",
                                [?SETTINGS, test_command:quoted(Lines), place:as_user(Place)]),
        {0, _} = test_shell:run("~s setsid ~s --ctl-config ctl.cfg foreground > /dev/null 2>&1 &",
                                [place:as_user(Place), ?CTL]),
        ok = test_wait:until("ejabberd serves", fun({Status, _}) -> Status =:= 0 end,
                             fun() -> ctl(System, ["status"]) end),
        System#ejabberd{os_pid = string:trim(eval(System, "os:getpid()."), both, "\"")}
    catch
        Class:Reason:Stack ->
            {_, Log} = test_shell:run("~s sh -c 'tail -n 50 /var/log/ejabberd/*'", [place:as_root(Place)]),
            place:stop(Place),
            erlang:raise(Class, {Reason, Log}, Stack)
    end.

stop(#ejabberd{place = Place}) ->
    place:stop(Place).

place(#ejabberd{place = Place}) ->
    Place.

%% The number of the node's process.
os_pid(#ejabberd{os_pid = OsPid}) ->
    OsPid.

%% {Exit status, Output}
ctl(#ejabberd{place = Place}, Args) ->
    {Status, Output} = test_shell:run("~s ~s~ts", [place:as_user(Place), ?CTL, [[" ", test_command:quoted(Arg)]
                                                                               || Arg <- Args]]),
    {Status, unicode:characters_to_list(Output)}.

%% What expressions return, as text.
eval(#ejabberd{place = Place}, Expressions) ->
    place:eval(Place, ?NODE, Expressions).

%% As users of a running node do it, with names of its sessions.
load(System) ->
    "{ok, " ++ _ = eval(System, lists:concat(["code:add_pathz(\"", ebin(), "\"), {module, _} = code:load_abs(\"",
                                              filename:rootname(code:which(ejabberd_names)), "\"), "
                                              "ok = application:load(dyntrace), "
                                              "ok = application:set_env(dyntrace, labels, {ejabberd_names, sessions}), "
                                              "application:ensure_all_started(dyntrace)."])),
    ok.

%% The line of the settings that starts the application with the server.
started_with() ->
    lists:concat(["ERL_OPTIONS=\"$ERL_OPTIONS -pa ", ebin(), " ", filename:dirname(code:which(ejabberd_names)),
                  " -dyntrace labels {ejabberd_names,sessions} -eval application:ensure_all_started(dyntrace).\""]).

ebin() ->
    filename:absname(filename:dirname(code:which(dyntrace))).
