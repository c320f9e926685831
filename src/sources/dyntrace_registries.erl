%% @private Keys of Elixir's `Registry' as labels, for processes that have exactly one key and no other name.
%%
%% A registry with unique keys has a table with its name, and in each partition a table of its processes. Only these
%% tables are read, so no process is asked. Tables that do not look like those of a registry are skipped.
-module(dyntrace_registries).

-export([new/0, label/2]).

-export_type([registries/0]).

%% Further registries are skipped, and so are those with more partitions.
-define(MOST, 8).
-define(MOST_PARTITIONS, 256).

%% A process with a larger key, in bytes, has no label.
-define(MAX_KEY, 8000).

-opaque registries() :: [{Name :: atom(), Partitions :: tuple()}].
%% The tables of the processes.

%% The registries of the node.
-spec new() -> registries().
new() ->
    lists:sublist([Registry || Name <- registered(), Registry <- registry(Name)], ?MOST).

%% An error means that it is not a registry, or that it has ended.
registry(Name) ->
    try
        true = is_pid(whereis(binary_to_existing_atom(<<(atom_to_binary(Name))/binary, ".PIDPartition0">>))),
        [{_, {unique, Count, _}}] = ets:lookup(Name, -2),
        true = Count =< ?MOST_PARTITIONS,
        [{Name, list_to_tuple([processes(Name, N, Count) || N <- lists:seq(0, Count - 1)])}]
    catch
        error:_ -> []
    end.

processes(Name, 0, 1) ->
    [{_, {unique, _, _, {_, Table}, _}}] = ets:lookup(Name, -1),
    Table;
processes(Name, N, _) ->
    [{_, _, {_, Table}}] = ets:lookup(Name, N),
    Table.

%% {Registry, Key}, as in the process's name for `via'; '' if it has no key, or several.
-spec label(pid(), registries()) -> {atom(), term()} | ''.
label(Pid, Registries) ->
    case [{Name, Key} || {Name, Partitions} <- Registries, Key <- keys(Pid, Partitions)] of
        [Label = {_, Key}] ->
            case erlang:external_size(Key) > ?MAX_KEY of
                true -> '';
                false -> Label
            end;
        _ ->
            ''
    end.

%% At most two keys. The objects are {Pid, Key, Table} or, since Elixir 1.13, {Pid, Key, Table, Counter}.
keys(Pid, Partitions) ->
    Table = element(erlang:phash2(Pid, tuple_size(Partitions)) + 1, Partitions),
    try ets:select(Table, [{{Pid, '$1', '_'}, [], ['$1']}, {{Pid, '$1', '_', '_'}, [], ['$1']}], 2) of
        {Keys, _} -> Keys;
        '$end_of_table' -> []
    catch
        error:badarg -> []
    end.
