%% A stand-in for the library of this name, so that the example builds without hex: the same functions and results, by
%% its documentation. Handlers are kept in a persistent term.
-module(telemetry).

-export([attach/4, attach_many/4, detach/1, list_handlers/1, execute/2, execute/3, span/3]).

-type event_name() :: [atom(), ...].
-type handler_function() :: fun((event_name(), Measurements :: map(), Metadata :: map(), Config :: term()) -> term()).

-export_type([event_name/0, handler_function/0]).

-spec attach(Id :: term(), event_name(), handler_function(), Config :: term()) -> ok | {error, already_exists}.
attach(Id, Name, Function, Config) ->
    attach_many(Id, [Name], Function, Config).

-spec attach_many(Id :: term(), [event_name()], handler_function(), Config :: term()) -> ok | {error, already_exists}.
attach_many(Id, Names, Function, Config) when is_function(Function, 4) ->
    case lists:keymember(Id, 1, handlers()) of
        true -> {error, already_exists};
        false -> persistent_term:put(?MODULE, [{Id, Name, Function, Config} || Name <- Names] ++ handlers())
    end.

-spec detach(Id :: term()) -> ok | {error, not_found}.
detach(Id) ->
    case lists:keymember(Id, 1, handlers()) of
        true -> persistent_term:put(?MODULE, [Handler || Handler <- handlers(), element(1, Handler) =/= Id]);
        false -> {error, not_found}
    end.

-spec list_handlers(Prefix :: [atom()]) -> [map()].
list_handlers(Prefix) ->
    [#{id => Id, event_name => Name, function => Function, config => Config}
     || {Id, Name, Function, Config} <- handlers(), lists:prefix(Prefix, Name)].

-spec execute(event_name(), Measurements :: map()) -> ok.
execute(Name, Measurements) ->
    execute(Name, Measurements, #{}).

%% A handler that fails is detached.
-spec execute(event_name(), Measurements :: map(), Metadata :: map()) -> ok.
execute([_ | _] = Name, Measurements, Metadata) when is_map(Measurements), is_map(Metadata) ->
    _ = [try Function(Name, Measurements, Metadata, Config)
         catch _:_ -> detach(Id)
         end || {Id, Of, Function, Config} <- handlers(), Of =:= Name],
    ok.

-spec span(Prefix :: event_name(), Metadata :: map(),
           fun(() -> {Result, StopMetadata :: map()} | {Result, Measurements :: map(), StopMetadata :: map()})) ->
          Result.
span(Prefix, Metadata, Function) ->
    Start = erlang:monotonic_time(),
    Context = make_ref(),
    With = fun(Map) -> maps:merge(#{telemetry_span_context => Context}, Map) end,
    Ended = fun(More) ->
                    Stop = erlang:monotonic_time(),
                    More#{duration => Stop - Start, monotonic_time => Stop}
            end,
    ok = execute(Prefix ++ [start], #{monotonic_time => Start, system_time => erlang:system_time()}, With(Metadata)),
    try Function() of
        {Result, StopMetadata} ->
            ok = execute(Prefix ++ [stop], Ended(#{}), With(StopMetadata)),
            Result;
        {Result, Measurements, StopMetadata} ->
            ok = execute(Prefix ++ [stop], Ended(Measurements), With(StopMetadata)),
            Result
    catch
        Class:Reason:Stack ->
            Exception = Metadata#{kind => Class, reason => Reason, stacktrace => Stack},
            ok = execute(Prefix ++ [exception], Ended(#{}), With(Exception)),
            erlang:raise(Class, Reason, Stack)
    end.

handlers() ->
    persistent_term:get(?MODULE, []).
