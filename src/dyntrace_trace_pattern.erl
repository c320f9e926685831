%% @private The functions whose calls are traced: the functions that a configured {Module, Function, Arity} matches, and
%% the match specification that yields the events that consumers need of a call.
-module(dyntrace_trace_pattern).

-export([match/1, of_pattern/1, first/1, version/1]).

-type pattern() :: {module(), Function :: atom(), arity() | '_'}.
%% '_' is any function, or any arity.

-export_type([pattern/0]).

-spec match(dyntrace_trace_flags:calls()) -> boolean() | [tuple()].
match(none) -> false;
match(call) -> true;
match(return) -> [{'_', [], [{return_trace}]}];
match(exception) -> [{'_', [], [{exception_trace}]}].

%% The functions that match, in code that is loaded.
-spec of_pattern(pattern()) -> [mfa()].
of_pattern({Module, Function, Arity}) ->
    [{Module, F, A} || erlang:module_loaded(Module), {F, A} <- erlang:get_module_info(Module, functions),
                       Function =:= '_' orelse F =:= Function, Arity =:= '_' orelse A =:= Arity].

%% One of them, as a sample.
-spec first(pattern()) -> mfa() | none.
first(Pattern) ->
    case of_pattern(Pattern) of
        [] -> none;
        [First | _] -> First
    end.

%% The version of the module that is loaded. New code has no trace patterns. Nor has the same code after it was loaded
%% anew, which has the same version: for that case the caller checks whether first/1 is traced.
-spec version(pattern()) -> MD5 :: binary() | none.
version({Module, _, _}) ->
    case erlang:module_loaded(Module) of
        true -> erlang:get_module_info(Module, md5);
        false -> none
    end.
