%% A service of a Debian package in a place of its own, run by its package's user as its package's script runs it.
%%
%%     System = packaged:start(packaged_rabbitmq, []),
%%     ok = packaged:load(System),
%%     "ok" = packaged:eval(System, "fault:plant(burn)."),
%%     packaged:stop(System).
%%
%% The module has what differs from service to service.
-module(packaged).

-export([start/2, stop/1, load/1, place/1, os_pid/1, eval/2, ctl/2, client/2, ebin/0]).

-type system() :: {module(), place:place()}.
-type service() :: #{host := string(), user := string(), folders := [file:filename()], % as place:start/3 takes them
                     node := string(),
                     port := pos_integer(),   % its clients connect there
                     serves := [string()],    % arguments of its tool, which succeeds when it serves
                     client := string(),      % a program of this folder
                     daily := [string()],     % its arguments for a load that nothing is wrong with
                     storm := [string()]}.    % and for one that opens connection after connection

%% What the machine lacks for it, or false.
-callback missing() -> false | string().
-callback service() -> service().
%% Starts it there, with further settings of the module's kind, and does not wait for it.
-callback launch(place:place(), Settings :: term()) -> ok.
%% The command line of its tool.
-callback tool(place:place()) -> iodata().
%% Loads dyntrace, as users of a running service do it.
-callback load(system()) -> ok.

%% Returns when it serves.
-spec start(module(), Settings :: term()) -> system().
start(Module, Settings) ->
    #{host := Host, user := User, folders := Folders, serves := Args} = Module:service(),
    Place = place:start(Host, User, Folders),
    System = {Module, Place},
    try
        ok = Module:launch(Place, Settings),
        ok = test_wait:until(Host ++ " serves", fun({Status, _}) -> Status =:= 0 end,
                             fun() -> ctl(System, Args) end),
        System
    catch
        Class:Reason:Stack ->
            {_, Log} = test_shell:run("~s sh -c 'tail -n 50 ~s/*'", [place:as_root(Place), lists:last(Folders)]),
            place:stop(Place),
            erlang:raise(Class, {Reason, Log}, Stack)
    end.

stop({_, Place}) ->
    place:stop(Place).

load(System = {Module, _}) ->
    Module:load(System).

place({_, Place}) ->
    Place.

%% The number of the node's process.
os_pid(System) ->
    string:trim(eval(System, "os:getpid()."), both, "\"").

%% What expressions return, as text.
eval({Module, Place}, Expressions) ->
    #{node := Node} = Module:service(),
    place:eval(Place, Node, Expressions).

%% {Exit status, Output} of its tool.
ctl({Module, Place}, Args) ->
    {Status, Output} = test_shell:run("~s~ts", [Module:tool(Place), [[" ", test_command:quoted(Arg)] || Arg <- Args]]),
    {Status, unicode:characters_to_list(Output)}.

%% Starts a client of it.
client({Module, Place}, Args) ->
    #{client := Program} = Module:service(),
    client:start(place:as_root(Place), Program, Args).

%% The folder of the application.
ebin() ->
    filename:absname(filename:dirname(code:which(dyntrace))).
