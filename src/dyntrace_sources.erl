%% @private The sources of the autotracer: switches them on and off as the enabled probes require.
-module(dyntrace_sources).

-export([new/0, update/3, message/2, stop/1, on/1, withheld/1]).

-export_type([sources/0]).

-opaque sources() :: #{dyntrace_source:name() => dyntrace_source:result()}.

%% The modules of the sources. They are loaded when the worker starts: on a busy node the code server takes long to
%% answer.
modules() ->
    #{allocators => dyntrace_allocators,
      builtins => dyntrace_builtins,
      counters => dyntrace_counters,
      drivers => dyntrace_drivers,
      identities => dyntrace_identities,
      log => dyntrace_log,
      nodes => dyntrace_nodes,
      ports => dyntrace_ports,
      system_monitor => dyntrace_system_monitor}.

%% What they call.
used() ->
    [dyntrace_initial_calls, dyntrace_node_identities, erpc].

-spec new() -> sources().
new() ->
    _ = [code:ensure_loaded(Module) || Module <- maps:values(modules()) ++ used()],
    #{}.

%% Returns the failures, too. The next call tries those sources again.
-spec update(sources(), dyntrace_trace_flags:required(), dyntrace_config:config()) ->
          {sources(), [Failure :: term()]}.
update(Sources, #{sources := Required}, Config) ->
    _ = off(maps:without(Required, Sources)),
    lists:foldl(fun(Name, {Before, Failures}) ->
                        try {Before#{Name => polled(Name, Before, Config)}, Failures}
                        catch Class:Reason:Stack ->
                                _ = off(maps:with([Name], Before)),
                                {maps:remove(Name, Before), [{Name, Class, Reason, Stack} | Failures]}
                        end
                end, {maps:with(Required, Sources), []}, Required).

polled(Name, Sources, Config) ->
    Module = maps:get(Name, modules()),
    Result = case Sources of
                 #{Name := {on, State}} -> Module:poll(State);
                 #{Name := {paused, _, State}} -> Module:poll(State);
                 #{} -> Module:on(Config)
             end,
    logged(Name, Result, maps:get(Name, Sources, none)).

logged(_, Result, Result) ->
    Result;
logged(Name, Result = {withheld, Why}, _) ->
    logger:warning("dyntrace: ~s is not observed: ~s", [Name, Why]),
    Result;
logged(_, Result, _) ->
    Result.

%% To every source that is on or paused: each knows its own messages.
-spec message(term(), sources()) -> sources().
message(Message, Sources) ->
    maps:fold(fun(Name, Result, Before) -> told(Name, Result, Message, Before) end, Sources, Sources).

told(_, {withheld, _}, _, Sources) ->
    Sources;
told(Name, Result, Message, Sources) ->
    Module = maps:get(Name, modules()),
    try setelement(tuple_size(Result), Result, Module:message(Message, state(Result))) of
        New -> Sources#{Name := New}
    catch
        Class:Reason:Stack ->
            logger:error("dyntrace: ~s fails: ~0p", [Name, {Class, Reason, Stack}]),
            _ = off(maps:with([Name], Sources)),
            maps:remove(Name, Sources)
    end.

state({on, State}) -> State;
state({paused, _, State}) -> State.

-spec stop(sources()) -> sources().
stop(Sources) ->
    _ = off(Sources),
    #{}.

off(Sources) ->
    [try (maps:get(Name, modules())):off(state(Result))
     catch Class:Reason -> logger:error("dyntrace: can't switch ~s off: ~0p", [Name, {Class, Reason}])
     end || {Name, Result} <- maps:to_list(Sources), element(1, Result) =/= withheld].

%% Those that are on, sorted.
-spec on(sources()) -> [dyntrace_source:name()].
on(Sources) ->
    lists:sort([Name || {Name, {on, _}} <- maps:to_list(Sources)]).

%% Those that are withheld or paused.
-spec withheld(sources()) -> #{dyntrace_source:name() => Why :: string()}.
withheld(Sources) ->
    maps:from_list([{Name, element(2, Result)} || {Name, Result} <- maps:to_list(Sources),
                                                  element(1, Result) =/= on]).
