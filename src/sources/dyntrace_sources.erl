%% @private The sources of the autotracer: switches them on and off as the enabled probes require.
-module(dyntrace_sources).

-export([new/0, update/4, message/2, stop/1, on/1, withheld/1, is_paused/1]).

-export_type([sources/0]).

-record(sources, {results = #{} :: #{dyntrace_source:name() => dyntrace_source:result()},
                  %% The failures that were logged, until the source handles messages from one poll to the next.
                  failed = #{} :: #{dyntrace_source:name() => {Class :: atom(), Reason :: term()}},
                  %% The logged reasons why sources were withheld. They are kept while sources are off, so that a reason
                  %% is not logged again whenever a consumer attaches.
                  logged = #{} :: #{dyntrace_source:name() => Why :: string()}}).

-opaque sources() :: #sources{}.

%% The modules of the sources; {dyntrace_sampler, Module} takes samples.
modules() ->
    #{allocators => {dyntrace_sampler, dyntrace_allocators},
      builtins => dyntrace_builtins,
      cost_limit => dyntrace_cost_limit,
      counters => {dyntrace_sampler, dyntrace_counters},
      drivers => dyntrace_drivers,
      identities => dyntrace_identities,
      log => dyntrace_log,
      nodes => dyntrace_nodes,
      port_samples => {dyntrace_sampler, dyntrace_port_samples},
      ports => dyntrace_ports,
      process_samples => {dyntrace_sampler, dyntrace_process_samples},
      socket_samples => {dyntrace_sampler, dyntrace_socket_samples},
      system_monitor => dyntrace_system_monitor,
      tables => {dyntrace_sampler, dyntrace_tables},
      withheld => dyntrace_withheld}.

module(Name) ->
    case maps:get(Name, modules()) of
        {Sampler, _} -> Sampler;
        Module -> Module
    end.

switch_on(Name, Enabled, Config) ->
    case maps:get(Name, modules()) of
        {Sampler, Source} -> Sampler:on(Source, Config);
        Module -> Module:on(Enabled, Config)
    end.

%% Also removes what a killed worker has left.
-spec new() -> sources().
new() ->
    ok = dyntrace_log:remove_leftover(),
    #sources{}.

%% Also returns the failures. The next call retries those sources.
-spec update(sources(), dyntrace_trace_flags:required(), Enabled :: [atom()], dyntrace_config:config()) ->
          {sources(), [Failure :: term()]}.
update(Sources = #sources{results = Results, failed = Failed}, #{sources := Required}, Enabled, Config) ->
    _ = off(maps:without(Required, Results)),
    {New, Failures} =
        lists:foldl(fun(Name, {Before, Failures}) ->
                            try {Before#{Name => polled(Name, Before, Enabled, Config)}, Failures}
                            catch Class:Reason:Stack ->
                                    _ = off(maps:with([Name], Before)),
                                    {maps:remove(Name, Before), [{Name, Class, Reason, Stack} | Failures]}
                            end
                    end, {maps:with(Required, Results), []}, Required),
    {logged(Sources#sources{results = New, failed = maps:without(maps:keys(Results), Failed)}), Failures}.

polled(Name, Results, Enabled, Config) ->
    Before = maps:get(Name, Results, none),
    case is_set_up(Before) of
        false -> switch_on(Name, Enabled, Config);
        true -> (module(Name)):poll(Enabled, state(Before))
    end.

%% Probes that this release does not support are not logged; info/0 has them.
logged(Sources = #sources{results = Results, logged = Before}) ->
    Now = maps:from_list([{Name, Why} || {Name, {withheld, Why}} <- maps:to_list(Results)]),
    _ = [logger:warning("dyntrace: ~s is not observed: ~ts", [Name, Why])
         || {Name, Why} <- maps:to_list(Now), maps:get(Name, Before, none) =/= Why],
    Sources#sources{logged = maps:merge(Before, Now)}.

%% Passes the message to every active source: each recognizes its own messages.
-spec message(term(), sources()) -> sources().
message(Message, Sources = #sources{results = Results}) ->
    maps:fold(fun(Name, Result, Before) -> handle(Name, Result, Message, Before) end, Sources,
              maps:filter(fun(_, Result) -> is_set_up(Result) end, Results)).

handle(Name, Result, Message, Sources = #sources{results = Results, failed = Failed}) ->
    try setelement(tuple_size(Result), Result, (module(Name)):message(Message, state(Result))) of
        New -> Sources#sources{results = Results#{Name := New}}
    catch
        Class:Reason:Stack ->
            Failure = {Class, Reason},
            ok = log_failure(Failure, maps:get(Name, Failed, none), Name, Stack),
            _ = off(maps:with([Name], Results)),
            Sources#sources{results = maps:remove(Name, Results), failed = Failed#{Name => Failure}}
    end.

log_failure(Failure, Failure, _, _) -> ok;
log_failure({Class, Reason}, _, Name, Stack) ->
    logger:error("dyntrace: ~s failed: ~0p", [Name, {Class, Reason, Stack}]).

state(Result) ->
    element(tuple_size(Result), Result).

%% Whether the source `cost_limit' pauses tracing.
-spec is_paused(sources()) -> boolean().
is_paused(#sources{results = #{cost_limit := Result}}) -> dyntrace_cost_limit:is_paused(state(Result));
is_paused(_) -> false.

%% Switches all sources off.
-spec stop(sources()) -> sources().
stop(Sources = #sources{results = Results}) ->
    _ = off(Results),
    Sources#sources{results = #{}, failed = #{}}.

off(Results) ->
    [try (module(Name)):off(state(Result))
     catch Class:Reason -> logger:error("dyntrace: cannot switch ~s off: ~0p", [Name, {Class, Reason}])
     end || {Name, Result} <- maps:to_list(Results), is_set_up(Result)].

is_set_up(none) -> false;
is_set_up({withheld, _}) -> false;
is_set_up({unconfigured, _}) -> false;
is_set_up(_) -> true.

%% The sources that are on, sorted.
-spec on(sources()) -> [dyntrace_source:name()].
on(#sources{results = Results}) ->
    lists:sort([Name || {Name, Result} <- maps:to_list(Results), lists:member(element(1, Result), [on, partly])]).

%% The sources that are withheld, paused or not configured, and the probes of others that cannot be observed.
-spec withheld(sources()) -> #{Source :: dyntrace_source:name() | Probe :: atom() => Why :: string()}.
withheld(#sources{results = Results}) ->
    maps:from_list(lists:append([why(Name, Result) || {Name, Result} <- maps:to_list(Results)])).

why(Name, {paused, Why, _}) -> [{Name, Why}];
why(Name, {unconfigured, Why}) -> [{Name, Why}];
why(Name, {withheld, Why}) -> [{Name, Why}];
why(_, {partly, Probes, _}) -> maps:to_list(Probes);
why(_, _) -> [].
