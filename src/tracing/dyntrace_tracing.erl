%% @private Switches tracing on and off, in six parts: match specifications of sent messages and of received messages,
%% trace flags of processes, trace flags of ports, calls, sequential tracing.
%%
%% A part is set when its requirements change, or when the VM's state differs from the state after it was set: another
%% tool has cleared it or has released it, or code was reloaded. Otherwise it is not set again. How flags and patterns
%% are set depends on the release: {@link dyntrace_session} and {@link dyntrace_global} implement the callbacks below.
-module(dyntrace_tracing).

-export([new/0, update/3, clear/1, close/1, clear_leftover/1, untraced/1, in_place/1, withheld/1]).

-export_type([tracing/0]).

%% Before OTP 27 the specs of seq_trace lack tracer modules.
-dialyzer({no_match, [system_tracer/0, set_system_tracer/2]}).

-type part() :: event() | processes | ports | calls | seq_trace.

-type event() :: send | 'receive'.

-type change() :: {pid(), Clear :: all | [atom()], Set :: [atom()]}.
%% A process, and the trace flags to clear and to set.

-export_type([change/0, event/0]).

%%% -- The callbacks of dyntrace_session and dyntrace_global -----------------------------
%%
%% Clear and Set are the trace flags to clear and to set. The callbacks raise badarg where the VM does, unless stated
%% otherwise.

-type handle() :: term().

%% Called before the first flag is set.
-callback open() -> handle().

%% Whether the handle can still be used.
-callback is_open(handle()) -> boolean().

%% Clears all flags, the message patterns and the patterns of these functions; the handle stays open.
-callback clear(handle(), [dyntrace_trace_pattern:pattern()]) -> ok.

%% Called after clear/2.
-callback close(handle()) -> ok.

%% Clears all tracing of an earlier worker, whose handle is lost.
-callback clear_leftover() -> ok.

%% A term that changes when another tool changes these flags or takes the tracer.
-callback snapshot(handle(), process | port) -> term().

%% Returns the approximate number of processes that are not traced because they have another tracer.
-callback processes(handle(), all | new | existing, Clear :: [atom()], Set :: [atom()]) ->
    Untraced :: non_neg_integer().

%% For single processes; `all' clears all of our flags. `taken': the process has another tracer. `gone': it has exited.
%% `unknown': it has not answered in time, and is unchanged. The processes are asked in parallel. Never raises.
-callback named(handle(), [change()]) -> [{change(), set | taken | gone | unknown}].

-callback ports(handle(), all | new | existing, Clear :: [atom()], Set :: [atom()]) -> ok.

%% Sets the match specifications of these functions; `false' clears their patterns. If several patterns match a
%% function, the last one applies.
-callback functions(handle(), [{dyntrace_trace_pattern:pattern(), boolean() | dyntrace_match_spec:match_spec()}]) -> ok.

%% Sets the match specification of messages, in place of ours, unless another tool has set one; `none' clears ours.
-callback messages(handle(), event(), none | dyntrace_match_spec:match_spec()) -> ok.

%% The current match specification of messages: ours; that of another tool, which may equal this one (`same'); or none.
-callback of_messages(handle(), event(), none | dyntrace_match_spec:match_spec()) -> ours | same | other | none.

%% Whether the first function of the pattern is traced; `none': no loaded function matches.
-callback is_traced(handle(), dyntrace_trace_pattern:pattern()) -> boolean() | none.

%% Stops tracing the worker itself, so that its polling does not cause events.
-callback exclude(handle(), pid()) -> ok.

%%% -- State -----------------------------------------------------------------------------

-record(tracing, {backend :: module(),
                  handle = none :: none | {open, handle()},
                  %% The requirements when the part was set, and the result of snapshot/4 afterwards.
                  parts :: #{part() => {Required :: term(), Snapshot :: term()}},
                  %% The processes with configured names, and the pending changes of those that have not answered.
                  named = [] :: [pid()],
                  pending = [] :: [change()],
                  functions = [] :: [dyntrace_trace_pattern:pattern()],
                  senders = false :: boolean(),
                  untraced = 0 :: non_neg_integer()}).

-opaque tracing() :: #tracing{}.

%% The order matters: the match specifications of messages are set before messages are traced.
-define(PARTS, [send, 'receive', processes, ports, calls, seq_trace]).

-spec new() -> tracing().
new() ->
    new(backend()).

new(Backend) ->
    #tracing{backend = Backend, parts = nothing_set()}.

nothing_set() ->
    maps:map(fun(_, None) -> {None, nothing} end, none()).

none() ->
    maps:with(?PARTS, (dyntrace_trace_flags:none())#{send => none, 'receive' => none}).

%% The implied functions are traced by patterns, like others.
calls(#{calls := none, implied := []}) -> none;
calls(#{calls := Calls, implied := Implied}) -> {Calls, Implied}.

calls_implied(none) -> {none, []};
calls_implied(Required) -> Required.

backend() ->
    case erlang:function_exported(trace, session_create, 3) of
        true -> dyntrace_session;
        false -> dyntrace_global
    end.

%% Sets the parts that differ from the requirements. Returns the failures; the next call retries those parts.
-spec update(tracing(), dyntrace_trace_flags:required(), dyntrace_config:config()) -> {tracing(), [Failure :: term()]}.
update(Tracing, Required, Config) ->
    Messages = maps:from_list([{Event, dyntrace_match_spec:for_messages(Event, Required, Config)}
                               || Event <- [send, 'receive']]),
    Parts = maps:with(?PARTS, maps:merge(Required#{calls := calls(Required)}, Messages)),
    case Parts =:= none() of
        true -> {cleared(Tracing), []};
        false ->
            Opened = opened(Tracing),
            update_parts(Opened#tracing{senders = maps:get(senders, Required)}, Parts, Config)
    end.

%% Clears once: while nothing is required, the VM is not called.
cleared(Tracing) ->
    case is_clear(Tracing) of
        true -> Tracing;
        false -> clear(Tracing)
    end.

is_clear(#tracing{parts = Parts}) ->
    Parts =:= nothing_set().

opened(Tracing = #tracing{backend = Backend, handle = {open, Handle}}) ->
    case Backend:is_open(Handle) of
        true -> activated(Tracing);
        false -> opened(new(Backend))
    end;
opened(Tracing = #tracing{backend = Backend}) ->
    Active = activated(Tracing),
    Active#tracing{handle = {open, Backend:open()}}.

activated(Tracing) ->
    ok = dyntrace_settings:put(tracing, true),
    ok = dyntrace:set_active(true),
    Tracing.

update_parts(Tracing, Required, Config) ->
    lists:foldl(fun(Part, {Before, Failures}) ->
                        try {update_part(Part, maps:get(Part, Required), Before, Config), Failures}
                        catch Class:Reason:Stack ->
                                {forget(Part, Before), [{Part, Class, Reason, Stack} | Failures]}
                        end
                end, {Tracing, []}, ?PARTS).

update_part(Part, Required, Tracing = #tracing{parts = Parts}, Config) ->
    Old = maps:get(Part, Parts, unknown),
    case {Required, snapshot(Part, Required, Tracing, Config)} of
        Old ->
            retry(Part, Tracing);
        _ ->
            Set = set(Part, old_required(Old), Required, Tracing, Config),
            Set#tracing{parts = Parts#{Part => {Required, snapshot(Part, Required, Set, Config)}}}
    end.

%% Retries the processes that have not answered.
retry(processes, Tracing = #tracing{pending = [_ | _]}) -> changed(Tracing);
retry(_, Tracing) -> Tracing.

old_required({Required, _Snapshot}) -> Required;
old_required(unknown) -> unknown.

%% After a failure the state of the part is unknown: it may have been set partially.
forget(Part, Tracing = #tracing{parts = Parts}) ->
    Tracing#tracing{parts = maps:remove(Part, Parts)}.

%% Clears all that the application has set.
-spec clear(tracing()) -> tracing().
clear(Tracing = #tracing{handle = none}) ->
    Tracing;
clear(#tracing{backend = Backend, handle = {open, Handle}, functions = Functions}) ->
    ok = dyntrace:set_active(false),
    ok = clear_system_tracer(),
    ok = hold(dyntrace_trace_flags:groups(dyntrace_trace_flags:all(process))),
    ok = Backend:clear(Handle, Functions),
    ok = dyntrace:hold([]),
    ok = dyntrace_settings:put(tracing, false),
    (new(Backend))#tracing{handle = {open, Handle}}.

%% Clears and closes; the state must not be used afterwards.
-spec close(tracing()) -> ok.
close(Tracing) ->
    case clear(Tracing) of
        #tracing{handle = none} -> ok;
        #tracing{backend = Backend, handle = {open, Handle}} -> Backend:close(Handle)
    end.

%% Clears the flags and patterns of a worker that was killed. Unknown: whether to clear if dyntrace_settings has no
%% entry.
-spec clear_leftover(Unknown :: boolean()) -> ok.
clear_leftover(Unknown) ->
    case dyntrace_settings:get(tracing, Unknown) of
        true ->
            ok = dyntrace:set_active(false),
            ok = clear_system_tracer(),
            ok = (backend()):clear_leftover(),
            dyntrace_settings:put(tracing, false);
        false ->
            ok
    end.

%% The approximate number of processes that are not traced because they have another tracer.
-spec untraced(tracing()) -> non_neg_integer().
untraced(#tracing{untraced = Untraced, pending = Pending}) ->
    Untraced + length(Pending).

%% The tracing that is set now.
-spec in_place(tracing()) -> #{part() | dyntrace_trace_pattern:implied() | senders => term()}.
in_place(#tracing{parts = Parts, senders = Senders}) ->
    Others = #{calls := InPlace} = maps:without([send, 'receive'], maps:merge(none(), maps:map(fun in_place/2, Parts))),
    {Calls, Implied} = calls_implied(InPlace),
    {_, Received} = maps:get('receive', Parts, {none, unknown}),
    maps:merge(Others#{calls := Calls, senders => Senders andalso lists:member(Received, [ours, same])},
               maps:from_list([{Of, lists:member(Of, Implied)} || Of <- dyntrace_trace_pattern:implied()])).

in_place(seq_trace, {Required, Snapshot}) -> Required andalso Snapshot =:= ours;
in_place(_, {Required, _}) -> Required.

%% The match specifications that cannot be set because of another tool.
-spec withheld(tracing()) -> #{event() => Why :: string()}.
withheld(#tracing{parts = Parts}) ->
    maps:from_list([{Event, "another tracer has set a match specification; before OTP 27 there is one per node"}
                    || {Event, {_, other}} <- maps:to_list(maps:with([send, 'receive'], Parts))]).

%% -- The parts -------------------------------------------------------------------------

%% The VM's state of a part. For a part that is not required the VM is not called.
snapshot(_, None, _, _) when None =:= []; None =:= none; None =:= false ->
    nothing;
snapshot(processes, _, #tracing{backend = Backend, handle = {open, Handle}}, #{processes := Which}) ->
    case is_list(Which) of
        true -> {Backend:snapshot(Handle, process), with_name(Which)};
        false -> Backend:snapshot(Handle, process)
    end;
snapshot(ports, _, #tracing{backend = Backend, handle = {open, Handle}}, _) ->
    Backend:snapshot(Handle, port);
snapshot(calls, _, #tracing{backend = Backend, handle = {open, Handle}}, #{functions := Functions}) ->
    [{dyntrace_trace_pattern:version(Pattern), Backend:is_traced(Handle, Pattern)}
     || Pattern <- dyntrace_trace_pattern:patterns(Functions)];
snapshot(Event, Spec, #tracing{backend = Backend, handle = {open, Handle}}, _) when Event =:= send;
                                                                                    Event =:= 'receive' ->
    Backend:of_messages(Handle, Event, Spec);
snapshot(seq_trace, true, _, _) ->
    system_tracer().

set(processes, Old, New, Tracing = #tracing{named = Before}, #{processes := Names}) when is_list(Names) ->
    #tracing{backend = Backend, handle = {open, Handle}} = Tracing,
    Now = [Pid || New =/= [], Pid <- with_name(Names)],
    ok = Backend:exclude(Handle, self()),
    Changes = [{Pid, all, []} || Pid <- Before -- Now] ++ [{Pid, to_clear(process, Old, New), New} || Pid <- Now],
    changed(Tracing#tracing{named = Now, untraced = 0, pending = Changes});
set(processes, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, #{processes := Which}) ->
    %% The worker has the flags of all processes until it clears its own. It runs meanwhile, and the end of that run
    %% would not be traced. A sensitive process makes no trace events.
    Sensitive = process_flag(sensitive, true),
    %% Until all processes have the flags, a process without them may receive a message from one with them.
    ok = hold(dyntrace_trace_flags:groups(New) -- dyntrace_trace_flags:groups(known(Old))),
    try
        Untraced = Backend:processes(Handle, Which, to_clear(process, Old, New), New),
        ok = Backend:exclude(Handle, self()),
        Tracing#tracing{untraced = Untraced}
    after
        dyntrace:hold([]),
        process_flag(sensitive, Sensitive)
    end;
set(ports, _, _, Tracing, #{ports := none}) ->
    Tracing;
set(ports, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, #{ports := Which}) ->
    ok = Backend:ports(Handle, Which, to_clear(port, Old, New), New),
    Tracing;
set(calls, _, Required, Tracing = #tracing{backend = Backend, handle = {open, Handle}, functions = Before},
    #{functions := Functions}) ->
    {Calls, _} = calls_implied(Required),
    Patterns = dyntrace_trace_pattern:patterns(Functions),
    %% Before the first call.
    ok = dyntrace:set_implied_functions(dyntrace_trace_pattern:implied_alone(Functions)),
    ok = Backend:functions(Handle, [{Gone, false} || Gone <- Before -- Patterns]
                           ++ dyntrace_trace_pattern:for_calls(Functions, Calls)),
    Tracing#tracing{functions = Patterns};
set(Event, _, Spec, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, _) when Event =:= send;
                                                                                           Event =:= 'receive' ->
    ok = Backend:messages(Handle, Event, Spec),
    Tracing;
set(seq_trace, _, Required, Tracing, _) ->
    ok = set_system_tracer(Required, system_tracer()),
    Tracing.

changed(Tracing = #tracing{backend = Backend, handle = {open, Handle}, pending = Changes, untraced = Untraced}) ->
    Results = Backend:named(Handle, Changes),
    Tracing#tracing{pending = [Change || {Change, unknown} <- Results],
                    untraced = Untraced + length([taken || {_, taken} <- Results])}.

%% Only while flags are set or cleared in slices.
hold(Groups) ->
    dyntrace:hold([Group || dyntrace_walk:is_long(), Group <- Groups]).

known(unknown) -> [];
known(Old) -> Old.

to_clear(Kind, unknown, New) -> dyntrace_trace_flags:all(Kind) -- New;
to_clear(_, Old, New) -> Old -- New.

%% The processes that have one of the names, except the worker.
with_name(Names) ->
    lists:usort([Pid || Name <- Names, Pid <- [whereis(Name)], is_pid(Pid), Pid =/= self()]).

%% -- Sequential tracing ----------------------------------------------------------------

%% The system tracer of another tool is not replaced until that tool clears it.
set_system_tracer(true, none) -> _ = seq_trace:set_system_tracer(dyntrace_trace_flags:tracer()), ok;
set_system_tracer(false, ours) -> _ = seq_trace:set_system_tracer(false), ok;
set_system_tracer(_, _) -> ok.

clear_system_tracer() ->
    set_system_tracer(false, system_tracer()).

system_tracer() ->
    Ours = dyntrace_trace_flags:tracer(),
    case seq_trace:get_system_tracer() of
        Ours -> ours;
        false -> none;
        _ -> other
    end.
