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
%%             {log, {error, shape}},   % off | Level | {Level, shape}: the lowest level that fires the probe log
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
                    log := off | logger:level() | {logger:level(), shape},
                    log_limit := pos_integer(),
                    long_gc := pos_integer(),
                    long_schedule := pos_integer(),
                    large_heap := pos_integer(),
                    long_message_queue := {Short :: non_neg_integer(), Long :: pos_integer()},
                    budget := pos_integer() | infinity,
                    call_budget := pos_integer() | infinity,
                    text := full | shape}.

-type error() :: {bad_config, Key :: term(), Value :: term(), MustBe :: string()}.

%% Returns the options with the defaults of those that are not given, or the first wrong one.
-spec check(term()) -> {ok, config()} | {error, error()}.
check(Options) when is_map(Options) ->
    check(maps:to_list(Options));
check(Options) ->
    case is_list_of(fun is_pair/1, infinity, Options) of
        true -> check_pairs([Option || Option = {Key, _} <- Options, Key =/= included_applications]);
        false -> {error, {bad_config, options, Options, "a map, or a list of {Option, Value}"}}
    end.

check_pairs(Given) ->
    Table = options(),
    case lists:append([bad(Key, Value, lists:keyfind(Key, 1, Table)) || {Key, Value} <- Given]) of
        [] ->
            Defaults = maps:from_list([{Key, Default} || {Key, Default, _, _} <- Table]),
            {ok, maps:merge(Defaults, maps:from_list(Given))};
        [First | _] -> {error, First}
    end.

bad(Key, Value, {Key, _, IsGood, MustBe}) ->
    case IsGood(Value) of
        true -> [];
        false -> [{bad_config, Key, Value, MustBe ++ why(Key, Value)}]
    end;
bad(Key, Value, false) ->
    Names = lists:join(", ", lists:sort([atom_to_list(Name) || {Name, _, _, _} <- options()])),
    [{bad_config, Key, Value, "no such option; options: " ++ lists:append(Names)}].

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

%% The maximum number of names or functions; the shortest and the longest interval, an hour; the longest time between
%% dumps, a day, in seconds; the maximum number of keys that each process is asked for; the largest budget; the maximum
%% number of logger's events; the largest number that a 32-bit VM takes as a threshold.
-define(MAX_NAMES, 1000).
-define(MIN_INTERVAL, 10).
-define(MAX_INTERVAL, 3600000).
-define(MAX_DUMP, 86400).
-define(MAX_LABEL_KEYS, 16).
-define(MAX_LOGGED, 10000).
-define(MAX_THRESHOLD, ((1 bsl 27) - 1)).
-define(MAX_BUDGET, ((1 bsl 62) - 1)).

%% {Option, Default, whether a value is allowed, what it must be}
options() ->
    [{follow, true, fun is_boolean/1, "true or false"},
     {processes, all, fun(Value) -> is_some(Value) orelse is_names(Value) end,
      text("all, new, existing or a list of registered names, ~b at most", [?MAX_NAMES])},
     {ports, all, fun(Value) -> Value =:= none orelse is_some(Value) end, "all, new, existing or none"},
     {functions, [], fun(Value) -> is_list_of(fun is_traced/1, ?MAX_NAMES, Value) end,
      text("a list of {Module, Function, Arity}, with '_' for any function or arity, or of "
           "{{Module, Function, Arity}, MatchSpec}, ~b at most", [?MAX_NAMES])},
     {send, true, fun(Value) -> is_spec(send, Value) end, "true or a match specification of [Receiver, Message]"},
     {'receive', true, fun(Value) -> is_spec('receive', Value) end,
      "true or a match specification of [Node, Sender, Message]"},
     {probes, all, fun(Value) -> Value =:= all orelse is_names(Value) andalso are_probes(Value, dyntrace:probes()) end,
      "all or a list of names of probes, as in dyntrace:probes()"},
     {interval, 250, within(?MIN_INTERVAL, ?MAX_INTERVAL), milliseconds(?MIN_INTERVAL)},
     {sample_interval, 1000, within(?MIN_INTERVAL, ?MAX_INTERVAL), milliseconds(?MIN_INTERVAL)},
     {dump, never, within(1, ?MAX_DUMP, never), text("never, or seconds, 1 to ~b", [?MAX_DUMP])},
     {label_keys, ['$process_label', process_name],
      fun(Value) -> is_list_of(fun is_atom/1, ?MAX_LABEL_KEYS, Value) end,
      text("a list of keys of process dictionaries, atoms, ~b at most", [?MAX_LABEL_KEYS])},
     {labels, none, fun is_labels/1, "none or {Module, Function}"},
     {log, {error, shape}, fun is_log/1, "off, a level of logger, or {Level, shape}"},
     {log_limit, 100, within(1, ?MAX_LOGGED), text("events per second, 1 to ~b", [?MAX_LOGGED])},
     {long_gc, 100, within(1, ?MAX_INTERVAL), milliseconds(1)},
     {long_schedule, 100, within(1, ?MAX_INTERVAL), milliseconds(1)},
     {large_heap, 10000000, within(1, ?MAX_THRESHOLD), text("words, 1 to ~b", [?MAX_THRESHOLD])},
     {long_message_queue, {1000, 10000}, fun is_queue/1,
      text("{Short, Long}, numbers of messages, Short < Long =< ~b", [?MAX_THRESHOLD])},
     {budget, infinity, within(1, ?MAX_BUDGET, infinity),
      text("events per second, 1 to ~b, or infinity", [?MAX_BUDGET])},
     {call_budget, 20000, within(1, ?MAX_BUDGET, infinity),
      text("calls per second, 1 to ~b, or infinity", [?MAX_BUDGET])},
     {text, full, fun(Value) -> lists:member(Value, [full, shape]) end, "full or shape"}].

milliseconds(Least) ->
    text("milliseconds, ~b to ~b", [Least, ?MAX_INTERVAL]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

is_spec(Key, Value) -> Value =:= true orelse dyntrace_match_spec:problem(Key, Value) =:= none.

is_log({Level, shape}) -> lists:member(Level, levels());
is_log(Value) -> lists:member(Value, [off | levels()]).

is_labels({Module, Function}) -> is_atom(Module) andalso is_atom(Function);
is_labels(Value) -> Value =:= none.

is_queue({Short, Long}) -> is_within(1, ?MAX_THRESHOLD, Long) andalso is_within(0, Long - 1, Short);
is_queue(_) -> false.

within(Least, Most) -> fun(Value) -> is_within(Least, Most, Value) end.

%% A number, or this atom.
within(Least, Most, Atom) -> fun(Value) -> Value =:= Atom orelse is_within(Least, Most, Value) end.

is_pair(Option) -> is_tuple(Option) andalso tuple_size(Option) =:= 2.

is_some(Value) -> lists:member(Value, [all, new, existing]).

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

%% Without the library, the probes are unknown.
are_probes(_, []) -> true;
are_probes(Names, Probes) -> Names -- [Name || #{name := Name} <- Probes] =:= [].
