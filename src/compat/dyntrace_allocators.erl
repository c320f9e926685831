%% @private The source of the probes `carrier_*': compares the carriers of all allocators with those of the last sample.
%%
%% It calls `erlang:system_info({allocator, A})' for each allocator, which waits until every scheduler has answered.
-module(dyntrace_allocators).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).
%% Samples
-export([sample/0, events/2]).

-export_type([sample/0, carriers/0, event/0]).

-type carriers() :: {Carriers :: non_neg_integer(), Size :: non_neg_integer(),
                     Blocks :: non_neg_integer(), BlocksSize :: non_neg_integer()}.
%% Sizes in bytes.

-type sample() :: #{{Allocator :: atom(), Instance :: non_neg_integer()} =>
                        {Multiblock :: carriers(), Pooled :: carriers(), Singleblock :: carriers()}}.

-type event() :: {carrier_create | carrier_destroy | carrier_pool_put | carrier_pool_get, Values :: tuple()}.
%% The values of the probe's fields.

%% -- Samples ---------------------------------------------------------------------------

%% The carriers of each instance of each allocator.
-spec sample() -> sample().
sample() ->
    lists:foldl(fun(Allocator, Sample) ->
                        maps:merge(Sample, of_instances(Allocator, erlang:system_info({allocator, Allocator})))
                end, #{}, erlang:system_info(alloc_util_allocators)).

%% The value is `false' for a disabled allocator (`+Mea false').
of_instances(Allocator, Instances) when is_list(Instances) ->
    maps:from_list([{{Allocator, Instance}, {carriers(mbcs, Info), carriers(mbcs_pool, Info), carriers(sbcs, Info)}}
                    || {instance, Instance, Info} <- Instances, lists:keymember(mbcs, 1, Info)]);
of_instances(_, _) ->
    #{}.

%% An instance that does not share carriers has no pool.
carriers(Kind, Info) ->
    Carriers = proplists:get_value(Kind, Info, []),
    {Blocks, BlocksSize} = blocks(proplists:get_value(blocks, Carriers, [])),
    {current(carriers, Carriers), current(carriers_size, Carriers), Blocks, BlocksSize}.

%% Blocks are listed by allocator: a carrier from the pool may contain blocks of several.
blocks(ByAllocator) ->
    {lists:sum([current(count, Blocks) || {_, Blocks} <- ByAllocator]),
     lists:sum([current(size, Blocks) || {_, Blocks} <- ByAllocator])}.

%% {Key, Now} or {Key, Now, MaxSinceLastCall, MaxEver}.
current(Key, List) ->
    case lists:keyfind(Key, 1, List) of
        false -> 0;
        Found -> element(2, Found)
    end.

%% One event per net change between two samples.
-spec events(Before :: sample(), Now :: sample()) -> [event()].
events(Before, Now) ->
    lists:append([changes(Key, Was, Is)
                  || {Key, Is} <- lists:sort(maps:to_list(Now)), #{Key := Was} <- [Before], Was =/= Is]).

%% A carrier in the pool is still a carrier of its instance.
changes({Allocator, Instance}, {Mbc, Pool, Sbc}, {NewMbc, NewPool, NewSbc}) ->
    Of = fun(Size) -> [Allocator, Instance, Size] end,
    Totals = tuple_to_list(NewMbc) ++ tuple_to_list(NewSbc),
    [{Probe, list_to_tuple(Of(abs(Change)) ++ Rest)}
     || {Change, Shrunk, Grown, Rest} <-
            [{bytes(NewPool) - bytes(Pool), carrier_pool_get, carrier_pool_put, []},
             {bytes(NewMbc) + bytes(NewPool) - bytes(Mbc) - bytes(Pool), carrier_destroy, carrier_create, Totals},
             {bytes(NewSbc) - bytes(Sbc), carrier_destroy, carrier_create, Totals}],
        Change =/= 0,
        Probe <- [if Change < 0 -> Shrunk; true -> Grown end]].

bytes({_, Size, _, _}) -> Size.

%% -- The callback ----------------------------------------------------------------------

report(none) ->
    report(#{});
report(Before) ->
    Now = sample(),
    _ = [ok = dyntrace:report(Probe, Values) || {Probe, Values} <- events(Before, Now)],
    Now.
