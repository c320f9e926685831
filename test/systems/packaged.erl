%% A service from a Debian package in an isolated place, run by the package's user as the package's own script runs it.
%%
%%     System = packaged:start(packaged_rabbitmq, []),
%%     ok = packaged:load(System),
%%     "ok" = packaged:eval(System, "fault:plant(burn)."),
%%     packaged:stop(System).
%%
%% The module defines the parts that differ between services.
-module(packaged).

-export([start/2, restart/2, stop/1, load/1, place/1, os_pid/1, eval/2, ctl/2, client/2, ebin/0]).

-type system() :: {module(), place:place()}.
-type service() :: #{host := string(), user := string(), folders := [file:filename()], % as place:start/3 takes them
                     node := string(),
                     port := pos_integer(),   % its clients connect there
                     serves := [string()],    % arguments of its tool, which succeeds when it serves
                     setup => [[string()]],   % arguments of its tool, which are run once when it serves
                     client := string(),      % a program of this folder
                     daily := [string()],     % its arguments for a harmless load
                     storm := [string()]}.    % its arguments for opening one connection after another

%% What the machine lacks for the service, or false.
-callback missing() -> false | string().
-callback service() -> service().
%% Starts the service, with further settings as the module defines them, and does not wait for it.
-callback launch(place:place(), Settings :: term()) -> ok.
%% The command line of the service's tool.
-callback tool(place:place()) -> iodata().
%% Loads dyntrace, as users of a running service would.
-callback load(system()) -> ok.

%% Returns when the service is ready.
-spec start(module(), Settings :: term()) -> system().
start(Module, Settings) ->
    #{host := Host, user := User, folders := Folders} = Module:service(),
    Place = place:start(Host, User, Folders),
    System = {Module, Place},
    try
        ok = restart(System, Settings),
        [{0, _} = ctl(System, Args) || Args <- maps:get(setup, Module:service(), [])],
        System
    catch
        Class:Reason:Stack ->
            {_, Log} = test_shell:run("~s sh -c 'tail -n 50 ~s/*'", [place:as_root(Place), lists:last(Folders)]),
            place:stop(Place),
            erlang:raise(Class, {Reason, Log}, Stack)
    end.

%% Starts a service that has ended, in the same place. Returns when it is ready.
-spec restart(system(), Settings :: term()) -> ok.
restart(System = {Module, Place}, Settings) ->
    #{host := Host, serves := Args} = Module:service(),
    ok = Module:launch(Place, Settings),
    test_wait:until(Host ++ " serves", fun({Status, _}) -> Status =:= 0 end, fun() -> ctl(System, Args) end).

stop({_, Place}) ->
    place:stop(Place).

load(System = {Module, _}) ->
    Module:load(System).

place({_, Place}) ->
    Place.

%% The OS pid of the node.
os_pid(System) ->
    string:trim(eval(System, "os:getpid()."), both, "\"").

%% The results of expressions, as text.
eval({Module, Place}, Expressions) ->
    #{node := Node} = Module:service(),
    place:eval(Place, Node, Expressions).

%% {Exit status, Output} of the service's tool.
ctl({Module, Place}, Args) ->
    {Status, Output} = test_shell:run("~s~ts", [Module:tool(Place), [[" ", test_command:quoted(Arg)] || Arg <- Args]]),
    {Status, unicode:characters_to_list(Output)}.

%% Starts a client of the service.
client({Module, Place}, Args) ->
    #{client := Program} = Module:service(),
    client:start(place:as_root(Place), Program, Args).

%% The folder of the application.
ebin() ->
    filename:absname(filename:dirname(code:which(dyntrace))).
