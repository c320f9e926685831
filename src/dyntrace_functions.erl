%% @private The functions whose calls are traced: what a configured {Module, Function, Arity} stands for, and the match
%% specification that yields what the consumers want of a call.
-module(dyntrace_functions).

-export([match/1, of_pattern/1, first/1, version/1]).

-type pattern() :: {module(), Function :: atom(), arity() | '_'}.
%% '_' is any function, or any arity.

-export_type([pattern/0]).

-spec match(dyntrace_needs:calls()) -> boolean() | [tuple()].
match(none) -> false;
match(call) -> true;
match(return) -> [{'_', [], [{return_trace}]}];
match(exception) -> [{'_', [], [{exception_trace}]}].

%% Of code that is loaded.
-spec of_pattern(pattern()) -> [mfa()].
of_pattern({Module, Function, Arity}) ->
    [{Module, F, A} || erlang:module_loaded(Module), {F, A} <- erlang:get_module_info(Module, functions),
                       Function =:= '_' orelse F =:= Function, Arity =:= '_' orelse A =:= Arity].

-spec first(pattern()) -> mfa() | none.
first(Pattern) ->
    case of_pattern(Pattern) of
        [] -> none;
        [First | _] -> First
    end.

%% New code of a module has no patterns, and neither has the same code that is loaded anew: for that, somebody has to
%% look whether the first function is traced.
-spec version(pattern()) -> MD5 :: binary() | none.
version({Module, _, _}) ->
    case erlang:module_loaded(Module) of
        true -> erlang:get_module_info(Module, md5);
        false -> none
    end.
