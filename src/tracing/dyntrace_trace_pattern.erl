%% @private Trace patterns: the functions that a configured {Module, Function, Arity} matches, and the match
%% specifications that yield the required events of their calls. The functions of files have a pattern of their own,
%% which no configuration has to list.
-module(dyntrace_trace_pattern).

-export([patterns/1, configured/1, for_calls/2, functions/1, by_function/1, as_returned/1, files_alone/1, first/1,
         version/1]).

-type pattern() :: {module(), Function :: atom(), arity() | '_'} | files.
%% '_' is any function, or any arity. `files': the functions that work on files.

-type traced() :: pattern() | {pattern(), false | dyntrace_match_spec:match_spec()}.
%% Functions: all of their calls, or those that match. `false': none, though another pattern matches.

-export_type([pattern/0, traced/0]).

%% All file I/O goes through this module, which is always loaded.
-define(FILES, prim_file).

%% Its exported functions that work on no file, beside the internal ones.
-define(NO_FILES, [module_info, on_load, start, file_desc_to_ref, get_handle, is_translatable]).

-spec patterns([traced()]) -> [pattern()].
patterns(Functions) ->
    [Pattern || {Pattern, _} <- with_specs(Functions)].

%% The same without those of which no call is traced.
-spec configured([traced()]) -> [pattern()].
configured(Functions) ->
    [Pattern || {Pattern, Spec} <- with_specs(Functions), Spec =/= false].

with_specs(Functions) ->
    [case Function of
         {Pattern, Spec} -> {Pattern, Spec};
         Pattern -> {Pattern, true}
     end || Function <- Functions].

%% The match specification of each function, as the second argument of erlang:trace_pattern/3.
-spec for_calls([traced()], dyntrace_trace_flags:calls()) ->
          [{pattern(), boolean() | dyntrace_match_spec:match_spec()}].
for_calls(Functions, Calls) ->
    [{Pattern, dyntrace_match_spec:of_calls(Spec, level(Pattern, Calls))} || {Pattern, Spec} <- with_specs(Functions)].

%% A call of a file's function ends in an event, whatever else is traced.
level(files, _) -> exception;
level(_, Calls) -> Calls.

%% The functions that match, in code that is loaded. `_' matches none that the compiler has generated: the body of a
%% comprehension is called once per element.
-spec functions(pattern()) -> [mfa()].
functions(files) ->
    [{?FILES, F, A} || {F, A} <- lists:sort(erlang:get_module_info(?FILES, exports)), not lists:member(F, ?NO_FILES),
                       not lists:prefix("internal_", atom_to_list(F))];
functions({Module, Function, Arity}) ->
    [{Module, F, A} || erlang:module_loaded(Module), {F, A} <- erlang:get_module_info(Module, functions),
                       F =:= Function orelse Function =:= '_' andalso not is_generated(F),
                       Arity =:= '_' orelse A =:= Arity].

%% The last pattern of a function holds.
-spec by_function([{pattern(), Spec}]) -> #{mfa() => Spec}.
by_function(Patterns) ->
    maps:from_list([{Mfa, Spec} || {Pattern, Spec} <- Patterns, Mfa <- functions(Pattern)]).

%% The match specification of a function as the VM shows it.
-spec as_returned(boolean() | dyntrace_match_spec:match_spec()) -> false | dyntrace_match_spec:match_spec().
as_returned(true) -> [];
as_returned(Spec) -> Spec.

%% The functions of files that no other pattern matches: their calls are of no interest to consumers of calls.
-spec files_alone([traced()]) -> [{Function :: atom(), arity()}].
files_alone(Functions) ->
    Listed = [Mfa || {Pattern, Spec} <- with_specs(Functions), Pattern =/= files, Spec =/= false,
                     element(1, Pattern) =:= ?FILES, Mfa <- functions(Pattern)],
    [{F, A} || {_, F, A} <- functions(files) -- Listed].

%% Such as '-name/1-fun-0-'. Elixir has functions '-' and '--'.
is_generated(Name) ->
    case atom_to_list(Name) of
        [$- | Rest] -> lists:member($/, Rest);
        _ -> false
    end.

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
version(files) ->
    version({?FILES, '_', '_'});
version({Module, _, _}) ->
    case erlang:module_loaded(Module) of
        true -> erlang:get_module_info(Module, md5);
        false -> none
    end.
