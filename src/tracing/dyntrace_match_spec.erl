%% @private User-supplied match specifications of sent messages, received messages and calls.
%%
%% The VM evaluates them inside the traced process, before it calls the tracer. So they are checked when they are
%% configured. Actions that would change the tracing or the process itself are not allowed.
-module(dyntrace_match_spec).

-export([problem/2, for_messages/3, of_calls/2]).

-export_type([match_spec/0, subject/0]).

-type match_spec() :: [{Head :: term(), Guards :: [term()], Body :: [term()]}, ...].

-type subject() :: send | 'receive' | {calls, arity() | '_'}.

-define(MAX_CLAUSES, 100).

%% In words. The VM compiles deep guards in quadratic time.
-define(MAX_SIZE, 10000).

%% Actions that change the tracing or the process, or that print.
-define(REFUSED, [trace, enable_trace, disable_trace, silent, set_seq_token, set_tcw, process_dump, display]).

%% The VM supports them for calls only.
-define(OF_CALLS, [caller, caller_line, current_stacktrace]).

%% These cause events of returns and exceptions. Enabled probes determine whether they are required.
-define(RETURNS, [{return_trace}, {exception_trace}]).

%% Why the match specification is invalid, or `none'.
-spec problem(subject(), term()) -> none | string().
problem(Subject, Spec) ->
    first([fun() -> too_large(Spec) end, fun() -> bad_form(Spec) end, fun() -> refused(Subject, Spec) end,
           fun() -> bad_heads(Subject, Spec) end, fun() -> not_compiled(Spec) end]).

first([]) ->
    none;
first([Check | Checks]) ->
    case Check() of
        none -> first(Checks);
        Problem -> Problem
    end.

too_large(Spec) ->
    case erts_debug:flat_size(Spec) > ?MAX_SIZE of
        true -> text("larger than ~b words", [?MAX_SIZE]);
        false -> none
    end.

bad_form(Spec) ->
    case is_clauses(Spec, ?MAX_CLAUSES) of
        true -> none;
        false -> text("not a list of 1 to ~b clauses {Head, Guards, Body}", [?MAX_CLAUSES])
    end.

is_clauses([Clause | Clauses], More) when More > 0 ->
    is_clause(Clause) andalso (Clauses =:= [] orelse is_clauses(Clauses, More - 1));
is_clauses(_, _) ->
    false.

%% is_list/1 is true for improper lists; length/1 fails for them.
is_clause({_, Guards, Body}) when length(Guards) >= 0, length(Body) >= 0 -> true;
is_clause(_) -> false.

refused(Subject, Spec) ->
    case [Name || {_, Guards, Body} <- Spec, Name <- functions(Guards) ++ functions(Body),
                  lists:member(Name, refused(Subject))] of
        [] -> none;
        [First | _] -> text("the action ~s is not allowed", [First])
    end.

refused({calls, _}) -> ?REFUSED;
refused(_) -> ?OF_CALLS ++ ?REFUSED.

%% The functions that an expression calls.
functions({const, _}) -> [];
functions({Tuple}) when is_tuple(Tuple) -> functions(tuple_to_list(Tuple));
functions(Call) when is_tuple(Call), tuple_size(Call) > 0 -> [element(1, Call) | functions(tl(tuple_to_list(Call)))];
functions([Head | Tail]) -> functions(Head) ++ functions(Tail);
functions(Map) when is_map(Map) -> functions(maps:keys(Map)) ++ functions(maps:values(Map));
functions(_) -> [].

%% A head of another length never matches.
bad_heads({calls, '_'}, _) ->
    none;
bad_heads(Subject, Spec) ->
    Length = head_length(Subject),
    case [Head || {Head, _, _} <- Spec, is_list(Head), catch_length(Head) =/= Length] of
        [] -> none;
        [First | _] -> text("the head ~0tp is not a list of ~s", [First, elements(Subject)])
    end.

catch_length(List) ->
    try length(List)
    catch error:badarg -> improper
    end.

head_length(send) -> 2;
head_length('receive') -> 3;
head_length({calls, Arity}) -> Arity.

elements(send) -> "two elements, [Receiver, Message]";
elements('receive') -> "three elements, [Node, Sender, Message]";
elements({calls, Arity}) -> text("~b elements, the arguments", [Arity]).

%% The empty list of arguments matches few heads. Without the actions above, a clause that matches has no effect.
not_compiled(Spec) ->
    try erlang:match_spec_test([], Spec, trace) of
        {ok, _, _, _} -> none;
        {error, Errors} -> text("~ts", [lists:join(" ", [Error || {_, Error} <- Errors])])
    catch
        error:badarg -> "not a match specification"
    end.

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

%% The match specification of messages, if one is required: the configured one, combined with that of the senders.
-spec for_messages(send | 'receive', dyntrace_trace_flags:required(), dyntrace_config:config()) ->
          none | match_spec().
for_messages(Event, #{processes := Flags, senders := Senders}, Config) ->
    case {lists:member(Event, Flags), maps:get(Event, Config), Event =:= 'receive' andalso Senders} of
        {false, _, _} -> none;
        {true, true, false} -> none;
        {true, true, true} -> dyntrace:sender_pattern();
        {true, Spec, false} -> Spec;
        {true, Spec, true} -> with_senders(Spec)
    end.

%% The same, with the sender of each message as the result. A clause that already has a result keeps it.
-spec with_senders(match_spec()) -> match_spec().
with_senders(Spec) ->
    [{Head, Guards, case lists:any(fun is_result/1, Body) of
                        true -> Body;
                        false -> Body ++ [{message, {{{hd, '$_'}, {hd, {tl, '$_'}}}}}]
                    end} || {Head, Guards, Body} <- Spec].

is_result(Action) ->
    is_tuple(Action) andalso tuple_size(Action) =:= 2 andalso element(1, Action) =:= message.

%% The second argument of erlang:trace_pattern/3, for the required events of calls. `true' matches every call.
-spec of_calls(boolean() | match_spec(), dyntrace_trace_flags:calls()) -> boolean() | match_spec().
of_calls(_, none) -> false;
of_calls(false, _) -> false;
of_calls(true, call) -> true;
of_calls(true, Calls) -> of_calls([{'_', [], []}], Calls);
of_calls(Spec, Calls) ->
    [{Head, Guards, [Action || Action <- Body, not lists:member(Action, ?RETURNS)] ++ returns(Calls)}
     || {Head, Guards, Body} <- Spec].

returns(call) -> [];
returns(return) -> [{return_trace}];
returns(exception) -> [{exception_trace}].
