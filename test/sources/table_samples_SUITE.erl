%% The probe table_sample: the largest ETS tables, compared with Erlang's own data.
-module(table_samples_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, call/2]).

-define(PROBE, table_sample).

suite() ->
    [{timetrap, {minutes, 4}}, {ct_hooks, [test_autotracer]}].

all() ->
    [largest, deleted, too_many].

%% A private table without a registered name, and a named one; small tables are left out.
largest(Config) ->
    {Owner, Tables} = call(Config, fun() -> made([{large, [private]}, {larger, [named_table]}, {small, []}]) end),
    [Large, larger, _] = Tables,
    Consumer = sampled(Config),
    Expected = call(Config, fun() ->
                                    [#{pid => test_cases:text(Owner), table => test_cases:text(Id),
                                       name => atom_to_binary(Name), objects => ets:info(Id, size),
                                       memory => ets:info(Id, memory) * erlang:system_info(wordsize)}
                                     || {Id, Name} <- [{larger, larger}, {Large, large}]]
                            end),
    ok = test_wait:until("samples of both tables",
                         fun() ->
                                 Samples = samples(Consumer),
                                 [] =:= Expected -- Samples orelse {Expected, Samples}
                         end),
    ?assertEqual([], [Name || #{name := Name} <- samples(Consumer), Name =:= <<"small">>]),
    _ = test_bpftrace:stop(Consumer).

%% Tables come and go while they are read.
deleted(Config) ->
    Churn = call(Config, fun() -> spawn(fun churn/0) end),
    Consumer = sampled(Config),
    {Owner, _} = call(Config, fun() -> made([{large, []}]) end),
    Text = call(Config, fun() -> test_cases:text(Owner) end),
    ok = test_wait:until("a sample", fun() -> [one || #{pid := Of} <- samples(Consumer), Of =:= Text] =/= [] end),
    true = call(Config, fun() -> exit(Churn, kill) end),
    _ = test_bpftrace:stop(Consumer).

%% A node with very many tables is not sampled.
too_many(Config) ->
    {Owner, _} = call(Config, fun() -> made([{large, []} | [{small, []} || _ <- lists:seq(1, 5000)]]) end),
    Consumer = sampled(Config),
    test_autotracer:until_sampled(3, Config),
    ?assertEqual([], samples(Consumer)),
    true = call(Config, fun() -> exit(Owner, kill) end),
    ok = test_wait:until("the tables are gone",
                         fun() -> call(Config, fun() -> erlang:system_info(ets_count) end) < 5000 end),
    {_, _} = call(Config, fun() -> made([{large, []}]) end),
    ok = test_wait:until("a sample", fun() -> samples(Consumer) =/= [] end),
    _ = test_bpftrace:stop(Consumer).

sampled(Config) ->
    start([{interval, 10}], Config),
    attach([?PROBE], Config).

samples(Consumer) ->
    [Sample || {?PROBE, Sample} <- test_bpftrace:events(Consumer)].

%% On the node: a permanent process with these tables, and their identifiers.
made(Tables) ->
    Self = self(),
    Owner = spawn(fun() ->
                          Self ! {self(), [made(Name, Options) || {Name, Options} <- Tables]},
                          receive stop -> ok end
                  end),
    receive {Owner, Made} -> {Owner, Made} end.

made(Name, Options) ->
    Table = ets:new(Name, Options),
    true = ets:insert(Table, [{N, Name} || N <- lists:seq(1, objects(Name))]),
    Table.

objects(large) -> 10000;
objects(larger) -> 20000;
objects(small) -> 10.

churn() ->
    [true = ets:delete(made(large, [])) || _ <- lists:seq(1, 10)],
    churn().
