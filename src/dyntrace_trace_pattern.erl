%% @private Trace patterns: the functions that a configured {Module, Function, Arity} matches, and the match
%% specification that yields the required events of a call.
-module(dyntrace_trace_pattern).

-export([match_spec/1, functions/1, first/1, version/1]).

-type pattern() :: {module(), Function :: atom(), arity() | '_'}.
%% '_' is any function, or any arity.

-export_type([pattern/0]).

%% The second argument of erlang:trace_pattern/3.
-spec match_spec(dyntrace_trace_flags:calls()) -> boolean() | [tuple()].
match_spec(none) -> false;
match_spec(call) -> true;
match_spec(return) -> [{'_', [], [{return_trace}]}];
match_spec(exception) -> [{'_', [], [{exception_trace}]}].

%% The functions that match, in code that is loaded.
-spec functions(pattern()) -> [mfa()].
functions({Module, Function, Arity}) ->
    [{Module, F, A} || erlang:module_loaded(Module), {F, A} <- erlang:get_module_info(Module, functions),
                       Function =:= '_' orelse F =:= Function, Arity =:= '_' orelse A =:= Arity].

%% One of them, as a sample.
-spec first(pattern()) -> mfa() | none.
first(Pattern) ->
    case functions(Pattern) of
        [] -> none;
        [First | _] -> First
    end.

%% The version of the module that is loaded. New code has no trace patterns. Nor has the same code after it was loaded
%% anew, and its version is the same: for that case the caller checks whether first/1 is traced.
-spec version(pattern()) -> MD5 :: binary() | none.
version({Module, _, _}) ->
    case erlang:module_loaded(Module) of
        true -> erlang:get_module_info(Module, md5);
        false -> none
    end.
