%% @doc Checks the configuration of the application.
%%
%% ```
%% {dyntrace, [{follow, true},          % false: only after dyntrace:follow/1
%%             {processes, all},        % all | new | existing | [Name]
%%             {ports, all},            % all | new | existing | none
%%             {functions, []},         % [{Module, Function | '_', Arity | '_'} | {{M, F, A}, MatchSpec}]
%%             {send, true},            % true | MatchSpec of [Receiver, Message]
%%             {'receive', true},       % true | MatchSpec of [Node, Sender, Message]
%%             {probes, all},           % all | [Name]: the probes that the application's tracing may fire
%%             {interval, 250},         % milliseconds between two polls for attached consumers
%%             {sample_interval, 1000}, % milliseconds between two samples, for the probes carrier_* and vm_counter
%%             {dump, never},           % never | seconds between two dumps of all identities
%%             {label_keys, ['$process_label', process_name]}, % process dictionary keys of labels
%%             {labels, none},          % none | {Module, Function}, which returns [{pid(), Text}]
%%             {log, off},              % off | the lowest log level for which the probe log fires
%%             {log_limit, 100},        % logged events per second
%%             {long_gc, 100},          % milliseconds: vm_long_gc
%%             {long_schedule, 100},    % milliseconds: vm_long_schedule
%%             {large_heap, 10000000},  % words: vm_large_heap
%%             {long_message_queue, {1000, 10000}}, % messages, {short again, long}: vm_long_message_queue
%%             {budget, infinity},      % trace events per second; after that many, tracing pauses
%%             {call_budget, 20000},    % traced calls per second; after that many, the busiest functions are cleared
%%             {text, full}]}           % full | shape: only the structure of terms, not their contents
%% '''
-module(dyntrace_config).

-export([check/1]).

-export_type([config/0, error/0]).

-type config() :: #{follow := boolean(),
                    processes := all | new | existing | [atom()],
                    ports := all | new | existing | none,
                    functions := [dyntrace_trace_pattern:traced()],
                    send := true | dyntrace_match_spec:match_spec(),
                    'receive' := true | dyntrace_match_spec:match_spec(),
                    probes := all | [atom()],
                    interval := pos_integer(),
                    sample_interval := pos_integer(),
                    dump := never | pos_integer(),
                    label_keys := [atom()],
                    labels := none | {module(), atom()},
                    log := off | logger:level(),
                    log_limit := pos_integer(),
                    long_gc := pos_integer(),
                    long_schedule := pos_integer(),
                    large_heap := pos_integer(),
                    long_message_queue := {Short :: non_neg_integer(), Long :: pos_integer()},
                    budget := pos_integer() | infinity,
                    call_budget := pos_integer() | infinity,
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
    {bad_config, Key, Value, maps:get(Key, must_be(), "no such option; options: " ++ options()) ++ why(Key, Value)}.

%% Why a match specification is invalid.
why(Key, Spec) when Key =:= send; Key =:= 'receive' -> "; " ++ dyntrace_match_spec:problem(Key, Spec);
why(functions, Functions) -> why_functions(Functions);
why(_, _) -> "".

why_functions([{Mfa, Spec} | Functions]) ->
    case is_pattern(Mfa) andalso problem(Mfa, Spec) of
        Problem when is_list(Problem) -> text("; ~0tp: ~ts", [Mfa, Problem]);
        _ -> why_functions(Functions)
    end;
why_functions([_ | Functions]) -> why_functions(Functions);
why_functions(_) -> "".

options() ->
    lists:append(lists:join(", ", [atom_to_list(Key) || Key <- maps:keys(defaults())])).

%% Limits: names or functions; the shortest and the longest interval (an hour, in ms); seconds between dumps (a day);
%% label keys; logger events per second; the largest threshold that a 32-bit VM accepts; the largest budget.
-define(MAX_NAMES, 1000).
-define(MIN_INTERVAL, 10).
-define(MAX_INTERVAL, 3600000).
-define(MAX_DUMP, 86400).
-define(MAX_LABEL_KEYS, 16).
-define(MAX_LOGGED, 10000).
-define(MAX_THRESHOLD, ((1 bsl 27) - 1)).
-define(MAX_BUDGET, ((1 bsl 62) - 1)).

defaults() ->
    #{follow => true, processes => all, ports => all, functions => [], send => true, 'receive' => true,
      probes => all, interval => 250, sample_interval => 1000, dump => never,
      label_keys => ['$process_label', process_name], labels => none, log => off, log_limit => 100,
      long_gc => 100, long_schedule => 100, large_heap => 10000000, long_message_queue => {1000, 10000},
      budget => infinity, call_budget => 20000, text => full}.

must_be() ->
    #{follow => "true or false",
      processes => text("all, new, existing or a list of registered names, ~b at most", [?MAX_NAMES]),
      ports => "all, new, existing or none",
      functions => text("a list of {Module, Function, Arity}, with '_' for any function or arity, or of "
                        "{{Module, Function, Arity}, MatchSpec}, ~b at most", [?MAX_NAMES]),
      send => "true or a match specification of [Receiver, Message]",
      'receive' => "true or a match specification of [Node, Sender, Message]",
      probes => "all or a list of probe names, as in dyntrace:probes()",
      interval => milliseconds(),
      sample_interval => milliseconds(),
      dump => text("never, or seconds, 1 to ~b", [?MAX_DUMP]),
      label_keys => text("a list of at most ~b atoms, which are process dictionary keys", [?MAX_LABEL_KEYS]),
      labels => "none or {Module, Function}",
      log => "off or a logger level",
      log_limit => text("events per second, 1 to ~b", [?MAX_LOGGED]),
      long_gc => milliseconds(1),
      long_schedule => milliseconds(1),
      large_heap => text("words, 1 to ~b", [?MAX_THRESHOLD]),
      long_message_queue => text("{Short, Long}, numbers of messages, Short < Long =< ~b", [?MAX_THRESHOLD]),
      budget => text("events per second, 1 to ~b, or infinity", [?MAX_BUDGET]),
      call_budget => text("calls per second, 1 to ~b, or infinity", [?MAX_BUDGET]),
      text => "full or shape"}.

milliseconds() ->
    milliseconds(?MIN_INTERVAL).

milliseconds(Least) ->
    text("milliseconds, ~b to ~b", [Least, ?MAX_INTERVAL]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

is_good(follow, Value) -> is_boolean(Value);
is_good(processes, Value) -> is_some(Value) orelse is_names(Value);
is_good(ports, Value) -> Value =:= none orelse is_some(Value);
is_good(functions, Value) -> is_list_of(fun is_traced/1, ?MAX_NAMES, Value);
is_good(Key, Value) when Key =:= send; Key =:= 'receive' ->
    Value =:= true orelse dyntrace_match_spec:problem(Key, Value) =:= none;
is_good(probes, Value) -> Value =:= all orelse is_names(Value) andalso are_probes(Value, dyntrace:probes());
is_good(interval, Value) -> is_interval(Value);
is_good(sample_interval, Value) -> is_interval(Value);
is_good(dump, Value) -> Value =:= never orelse is_within(1, ?MAX_DUMP, Value);
is_good(label_keys, Value) -> is_list_of(fun is_atom/1, ?MAX_LABEL_KEYS, Value);
is_good(labels, {Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_good(labels, Value) -> Value =:= none;
is_good(log, Value) -> Value =:= off orelse lists:member(Value, levels());
is_good(log_limit, Value) -> is_within(1, ?MAX_LOGGED, Value);
is_good(long_gc, Value) -> is_within(1, ?MAX_INTERVAL, Value);
is_good(long_schedule, Value) -> is_within(1, ?MAX_INTERVAL, Value);
is_good(large_heap, Value) -> is_within(1, ?MAX_THRESHOLD, Value);
is_good(long_message_queue, {Short, Long}) ->
    is_within(1, ?MAX_THRESHOLD, Long) andalso is_within(0, Long - 1, Short);
is_good(Key, Value) when Key =:= budget; Key =:= call_budget ->
    Value =:= infinity orelse is_within(1, ?MAX_BUDGET, Value);
is_good(text, Value) -> Value =:= full orelse Value =:= shape;
is_good(_, _) -> false.

is_pair(Option) -> is_tuple(Option) andalso tuple_size(Option) =:= 2.

is_some(Value) -> lists:member(Value, [all, new, existing]).

is_interval(Value) -> is_within(?MIN_INTERVAL, ?MAX_INTERVAL, Value).

is_within(Least, Most, Value) -> is_integer(Value) andalso Value >= Least andalso Value =< Most.

levels() -> [emergency, alert, critical, error, warning, notice, info, debug].

is_names(Value) -> is_list_of(fun is_atom/1, ?MAX_NAMES, Value).

%% A proper list of at most Most elements that satisfy Is.
is_list_of(_, _, []) -> true;
is_list_of(_, 0, _) -> false;
is_list_of(Is, Most, [Head | Tail]) -> Is(Head) andalso is_list_of(Is, less(Most), Tail);
is_list_of(_, _, _) -> false.

less(infinity) -> infinity;
less(Most) -> Most - 1.

is_traced({Mfa, Spec}) -> is_pattern(Mfa) andalso problem(Mfa, Spec) =:= none;
is_traced(Mfa) -> is_pattern(Mfa).

problem({_, _, Arity}, Spec) -> dyntrace_match_spec:problem({calls, Arity}, Spec).

is_pattern({M, F, A}) ->
    is_atom(M) andalso M =/= '_' andalso is_atom(F) andalso is_any_arity(A);
is_pattern(_) ->
    false.

is_any_arity('_') -> true;
is_any_arity(A) -> is_integer(A) andalso A >= 0 andalso A =< 255.

%% Without the library there are no probes to compare with.
are_probes(_, []) -> true;
are_probes(Names, Probes) -> Names -- [Name || #{name := Name} <- Probes] =:= [].
