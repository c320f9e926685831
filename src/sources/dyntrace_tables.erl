%% @private The source of `table_sample': the ETS tables that use the most memory.
%%
%% The memory of a table is read without its owner. A table with decentralized counters answers only after all
%% schedulers have made progress, so a sample of many such tables takes long, but costs little.
-module(dyntrace_tables).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).

%% How many tables a sample reports, and how much memory they have at least.
-define(LARGEST, 10).
-define(LEAST_BYTES, 100000).

%% The list of all tables takes seven words each, and reading them a microsecond. A node with more is not sampled.
-define(MOST, 5000).

%% Tables per batch, with a pause after each.
-define(BATCH, 250).

%% Before: the time of the last sample.
report(Before) ->
    dyntrace_sampler:if_due(Before, Before, fun sample/1).

sample(Now) ->
    _ = [ok = report_table(Table, Bytes) || erlang:system_info(ets_count) =< ?MOST,
                                            {Bytes, Table} <- largest(read(ets:all(), 1))],
    Now.

read([], _) ->
    [];
read([Table | Tables], N) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    case bytes(Table) of
        Bytes when Bytes >= ?LEAST_BYTES -> [{Bytes, Table} | read(Tables, N + 1)];
        _ -> read(Tables, N + 1)
    end.

%% 0 if the table has been deleted.
bytes(Table) ->
    case ets:info(Table, memory) of
        undefined -> 0;
        Words -> Words * erlang:system_info(wordsize)
    end.

largest(Sizes) ->
    lists:sublist(lists:reverse(lists:keysort(1, Sizes)), ?LARGEST).

%% The other values are undefined if the table has been deleted meanwhile.
report_table(Table, Bytes) ->
    case {ets:info(Table, owner), ets:info(Table, name), ets:info(Table, size)} of
        {Owner, Name, Size} when is_pid(Owner), Name =/= undefined, is_integer(Size) ->
            dyntrace:report(table_sample, {Owner, identifier(Table), Name, Bytes, Size});
        _ ->
            ok
    end.

identifier(Table) when is_atom(Table) -> Table;
identifier(Table) -> lists:flatten(io_lib:write(Table)).
