%% A client of a service: a program in Python that says `ready', works until a line comes or it has done its work, and
%% says then what it has counted.
%%
%%     Client = client:start(place:as_root(Place), "amqp.py", ["orders", "rate=100"]),
%%     #{"published" := Published} = client:stop(Client).
%%
%% It ends with this VM, too: its standard input does.
-module(client).

-export([start/3, stop/1, finish/1]).

-define(DEADLINE_MS, 120000).

%% Returns when it is ready. A process of its own keeps it: a suite starts and ends in different ones.
start(Prefix, Script, Args) ->
    Self = self(),
    {Keeper, Ref} = spawn_monitor(fun() -> keep(Prefix, Script, Args, Self) end),
    receive
        {Keeper, ready} -> demonitor(Ref, [flush]), Keeper;
        {'DOWN', Ref, process, Keeper, Reason} -> error({no_client, Reason})
    end.

%% Lets it end; returns its counts.
stop(Keeper) -> ask(Keeper, stop).

%% The counts of a client that ends by itself.
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
