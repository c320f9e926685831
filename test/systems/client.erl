%% A client of a service: a Python program that prints `ready', works until it reads a line or has finished its work,
%% and then prints its counts.
%%
%%     Client = client:start(place:as_root(Place), "amqp.py", ["orders", "rate=100"]),
%%     #{"published" := Published} = client:stop(Client).
%%
%% The client also ends with this VM, because its standard input is closed then.
-module(client).

-export([start/3, stop/1, finish/1]).

-define(DEADLINE_MS, 120000).

%% Returns when the client is ready. A separate process keeps the client, because a suite's init and end run in
%% different processes.
start(Prefix, Script, Args) ->
    Self = self(),
    {Keeper, Ref} = spawn_monitor(fun() -> keep(Prefix, Script, Args, Self) end),
    receive
        {Keeper, ready} -> demonitor(Ref, [flush]), Keeper;
        {'DOWN', Ref, process, Keeper, Reason} -> error({no_client, Reason})
    end.

%% Stops the client and returns its counts.
stop(Keeper) -> ask(Keeper, stop).

%% The counts of a client that ends on its own.
finish(Keeper) -> ask(Keeper, finish).

ask(Keeper, How) ->
    Ref = monitor(process, Keeper),
    Keeper ! {How, self()},
    receive
        {Keeper, Counts} -> demonitor(Ref, [flush]), Counts;
        {'DOWN', Ref, process, Keeper, Reason} -> error({no_client, Reason})
    end.

keep(Prefix, Script, Args, Owner) ->
    File = filename:join([test_shell:project(), "test/systems", Script]),
    [Program | Before] = string:lexemes(Prefix, " "),
    Port = open_port({spawn_executable, os:find_executable(Program)},
                     [{args, Before ++ ["/usr/bin/python3", "-B", File | Args]}, {line, 1000}, exit_status,
                      stderr_to_stdout]),
    _ = lines_until("ready", Port, []),
    Owner ! {self(), ready},
    receive
        {stop, From} -> true = port_command(Port, "stop\n"), From ! {self(), counts(Port)};
        {finish, From} -> From ! {self(), counts(Port)}
    end.

counts(Port) ->
    Lines = lines_until("end", Port, []),
    maps:from_list([{Name, list_to_integer(Count)} || [Name, Count] <- [string:lexemes(Line, " ") || Line <- Lines]]).

lines_until(Last, Port, Lines) ->
    receive
        {Port, {data, {eol, Last}}} -> lists:reverse(Lines);
        {Port, {data, {_, Line}}} -> lines_until(Last, Port, [Line | Lines]);
        {Port, {exit_status, Status}} -> error({client_ended, Status, lists:reverse(Lines)})
    after ?DEADLINE_MS ->
        error({client_silent, lists:reverse(Lines)})
    end.
