%% @doc Checks the configuration of the application.
%%
%% ```
%% {dyntrace, [{follow, true},          % false: only after dyntrace:follow/1
%%             {processes, all},        % all | new | existing | [Name]
%%             {ports, all},            % all | new | existing | none
%%             {functions, []},         % [{Module, Function | '_', Arity | '_'}]
%%             {probes, all},           % all | [Name]: the probes that the application's tracing may fire
%%             {interval, 250},         % milliseconds between two polls for attached consumers
%%             {sample_interval, 1000}, % milliseconds between two samples of the allocators, for the probes carrier_*
%%             {budget, infinity},      % trace events per second; after that many, tracing pauses
%%             {text, full}]}           % full | shape: only the structure of terms, not their contents
%% '''
-module(dyntrace_config).

-export([check/1]).

-export_type([config/0, error/0]).

-type config() :: #{follow := boolean(),
                    processes := all | new | existing | [atom()],
                    ports := all | new | existing | none,
                    functions := [dyntrace_trace_pattern:pattern()],
                    probes := all | [atom()],
                    interval := pos_integer(),
                    sample_interval := pos_integer(),
                    budget := pos_integer() | infinity,
                    text := full | shape}.

-type error() :: {bad_config, Key :: term(), Value :: term(), MustBe :: string()}.

%% Adds the defaults above for options that are not given.
-spec check(term()) -> {ok, config()} | {error, error()}.
check(Options) when is_map(Options) ->
    check(maps:to_list(Options));
check(Options) ->
    case is_list_of(fun is_pair/1, infinity, Options) of
        true -> check_pairs([Option || Option = {Key, _} <- Options, Key =/= included_applications]);
        false -> {error, {bad_config, options, Options, "a map, or a list of {Option, Value}"}}
    end.

check_pairs(Given) ->
    case [bad(Key, Value) || {Key, Value} <- Given, not is_good(Key, Value)] of
        [] -> {ok, maps:merge(defaults(), maps:from_list(Given))};
        [First | _] -> {error, First}
    end.

bad(Key, Value) ->
    {bad_config, Key, Value, maps:get(Key, must_be(), "no such option; there are: " ++ options())}.

options() ->
    lists:append(lists:join(", ", [atom_to_list(Key) || Key <- maps:keys(defaults())])).

%% The most names or functions; the longest interval, an hour; the largest budget.
-define(MAX_NAMES, 1000).
-define(MAX_INTERVAL, 3600000).
-define(MAX_BUDGET, ((1 bsl 62) - 1)).

defaults() ->
    #{follow => true, processes => all, ports => all, functions => [], probes => all, interval => 250,
      sample_interval => 1000, budget => infinity, text => full}.

must_be() ->
    #{follow => "true or false",
      processes => text("all, new, existing or a list of registered names, ~b at most", [?MAX_NAMES]),
      ports => "all, new, existing or none",
      functions => text("a list of {Module, Function, Arity}, with '_' for any function or arity, ~b at most",
                        [?MAX_NAMES]),
      probes => "all or a list of names of probes, as in dyntrace:probes()",
      interval => milliseconds(),
      sample_interval => milliseconds(),
      budget => text("events per second, 1 to ~b, or infinity", [?MAX_BUDGET]),
      text => "full or shape"}.

milliseconds() ->
    text("milliseconds, 10 to ~b", [?MAX_INTERVAL]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

is_good(follow, Value) -> is_boolean(Value);
is_good(processes, Value) -> is_some(Value) orelse is_names(Value);
is_good(ports, Value) -> Value =:= none orelse is_some(Value);
is_good(functions, Value) -> is_list_of(fun is_pattern/1, ?MAX_NAMES, Value);
is_good(probes, Value) -> Value =:= all orelse is_names(Value) andalso are_probes(Value, dyntrace:probes());
is_good(interval, Value) -> is_interval(Value);
is_good(sample_interval, Value) -> is_interval(Value);
is_good(budget, Value) -> Value =:= infinity orelse is_integer(Value) andalso Value >= 1 andalso Value =< ?MAX_BUDGET;
is_good(text, Value) -> Value =:= full orelse Value =:= shape;
is_good(_, _) -> false.

is_pair(Option) -> is_tuple(Option) andalso tuple_size(Option) =:= 2.

is_some(Value) -> lists:member(Value, [all, new, existing]).

is_interval(Value) -> is_integer(Value) andalso Value >= 10 andalso Value =< ?MAX_INTERVAL.

is_names(Value) -> is_list_of(fun is_atom/1, ?MAX_NAMES, Value).

%% A proper list of at most Most elements, each of which is good.
is_list_of(_, _, []) -> true;
is_list_of(_, 0, _) -> false;
is_list_of(Is, Most, [Head | Tail]) -> Is(Head) andalso is_list_of(Is, less(Most), Tail);
is_list_of(_, _, _) -> false.

less(infinity) -> infinity;
less(Most) -> Most - 1.

is_pattern({M, F, A}) ->
    is_atom(M) andalso M =/= '_' andalso is_atom(F) andalso is_any_arity(A);
is_pattern(_) ->
    false.

is_any_arity('_') -> true;
is_any_arity(A) -> is_integer(A) andalso A >= 0 andalso A =< 255.

%% Without the library there are no probes to compare with.
are_probes(_, []) -> true;
are_probes(Names, Probes) -> Names -- [Name || #{name := Name} <- Probes] =:= [].
