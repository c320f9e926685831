%% @doc What the application follows: its configuration, checked.
%%
%% ```
%% {dyntrace, [{follow, true},          % false: only when dyntrace:follow/1 says so
%%             {processes, all},        % all | new | existing | [Name]
%%             {ports, all},            % all | new | existing | none
%%             {functions, []},         % [{Module, Function | '_', Arity | '_'}]
%%             {probes, all},           % all | [Name]: which may be served at all
%%             {interval, 250},         % milliseconds between two looks for listeners
%%             {budget, infinity},      % trace events a second; after that many, a pause
%%             {text, full}]}           % full | shape: only the structure of terms, not their contents
%% '''
-module(dyntrace_config).

-export([check/1]).

-export_type([config/0, error/0]).

-type config() :: #{follow := boolean(),
                    processes := all | new | existing | [atom()],
                    ports := all | new | existing | none,
                    functions := [{module(), atom(), arity() | '_'}],
                    probes := all | [atom()],
                    interval := pos_integer(),
                    budget := pos_integer() | infinity,
                    text := full | shape}.

-type error() :: {bad_config, Key :: atom(), Value :: term(), MustBe :: string()}.

%% Options that are not given are as above.
-spec check([{atom(), term()}] | map()) -> {ok, config()} | {error, error()}.
check(Options) when is_map(Options) ->
    check(maps:to_list(Options));
check(Options) ->
    Given = [Option || Option = {Key, _} <- Options, Key =/= included_applications],
    case [bad(Key, Value) || {Key, Value} <- Given, not is_good(Key, Value)] of
        [] -> {ok, maps:merge(defaults(), maps:from_list(Given))};
        [First | _] -> {error, First}
    end.

bad(Key, Value) ->
    {bad_config, Key, Value, maps:get(Key, must_be(), "no such option; there are: " ++ options())}.

options() ->
    lists:append(lists:join(", ", [atom_to_list(Key) || Key <- maps:keys(defaults())])).

defaults() ->
    #{follow => true, processes => all, ports => all, functions => [], probes => all, interval => 250,
      budget => infinity, text => full}.

must_be() ->
    #{follow => "true or false",
      processes => "all, new, existing or a list of registered names",
      ports => "all, new, existing or none",
      functions => "a list of {Module, Function, Arity}, with '_' for any function or arity",
      probes => "all or a list of names of probes, as in dyntrace:probes()",
      interval => "milliseconds, 10 or more",
      budget => "events a second, 1 or more, or infinity",
      text => "full or shape"}.

is_good(follow, Value) -> is_boolean(Value);
is_good(processes, Value) -> is_some(Value) orelse is_names(Value);
is_good(ports, Value) -> Value =:= none orelse is_some(Value);
is_good(functions, Value) -> is_list(Value) andalso lists:all(fun is_function_name/1, Value);
is_good(probes, Value) -> Value =:= all orelse is_names(Value) andalso lists:all(fun is_probe/1, Value);
is_good(interval, Value) -> is_integer(Value) andalso Value >= 10;
is_good(budget, Value) -> Value =:= infinity orelse is_integer(Value) andalso Value > 0 andalso Value < 1 bsl 62;
is_good(text, Value) -> lists:member(Value, [full, shape]);
is_good(_, _) -> false.

is_some(Value) -> lists:member(Value, [all, new, existing]).

is_names(Value) -> is_list(Value) andalso lists:all(fun is_atom/1, Value).

is_function_name({M, F, A}) -> is_atom(M) andalso M =/= '_' andalso is_atom(F) andalso (A =:= '_' orelse is_integer(A) andalso A >= 0);
is_function_name(_) -> false.

%% Without the library there are no probes to name.
is_probe(Name) ->
    Probes = dyntrace:probes(),
    Probes =:= [] orelse lists:any(fun(#{name := Probe}) -> Probe =:= Name end, Probes).
