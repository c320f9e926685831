%% @private Trace flags and patterns before OTP 27, where a process has one tracer and a function one pattern.
%%
%% The application's tracer has a distinct state: for the VM, `{dyntrace, dyntrace_autotracer}' is a different tracer
%% from `{dyntrace, []}'. A call with a tracer sets and clears flags only for processes that have no other tracer.
%%
%% Flags of all processes are set and cleared by one call each, which stops the schedulers for a walk over the process
%% table. Reading the tracer of one process takes a signal, which a busy process answers when it next runs.
%%
%% These releases have a bug: such a call does not wait for dirty schedulers, and a process that runs on one may
%% dereference a tracer that the call has just freed. So no call here removes the tracer of all processes:
%%
%%   - Every traced process gets the flag `ports' before other flags are cleared, and keeps it. That flag has no meaning
%%     for a process, but a process with a flag keeps its tracer. It is called the anchor below.
%%   - The tracer and the anchor are removed when the process is next scheduled: the VM asks the tracer for its
%%     `trace_status', and the library answers `remove' while the application traces nothing (dyntrace:set_active/1)
%%     or the worker is dead.
-module(dyntrace_global).
-behaviour(dyntrace_tracing).

-export([open/0, clear/2, close/1, clear_leftover/0, is_open/1, snapshot/2]).
-export([processes/4, named/2, ports/4, functions/2, is_traced/2, exclude/2]).
-export([messages/3, of_messages/3]).
%% For spawn_opt/4.
-export([exit_tracer_of/1, anchor_all/1]).

%% Before OTP 27 the specs of erlang:trace_info/2 lack tracer modules.
-dialyzer({no_match, [class/1, flags_for/1]}).

%% See above. For a port the flag has its usual meaning.
-define(ANCHOR, ports).

%% See anchor/1.
-define(ANCHORED_PER_MS, 50).

%% How long to wait for processes to return their tracer.
-define(ANSWER_MS, 50).

open() ->
    global.

is_open(global) ->
    true.

clear(global, _Functions) ->
    clear_leftover().

close(global) ->
    ok.

clear_leftover() ->
    _ = processes(global, all, dyntrace_trace_flags:all(process), []),
    ok = remove_tracer(self()),
    ok = ports(global, all, dyntrace_trace_flags:all(port), []),
    _ = [messages(global, Event, none) || Event <- [send, 'receive']],
    clear_patterns().

%% The worker has the anchor itself, as a probe: a tool that clears the flags of all processes also clears that one.
snapshot(global, process) -> {tracer_of(self()), flags_for(new_processes)};
snapshot(global, port) -> {tracer_of(self()), flags_for(new_ports)}.

flags_for(New) ->
    {flags, Flags} = erlang:trace_info(New, flags),
    case tracer_of(New) of
        ours -> {ours, lists:sort(Flags)};
        Class -> Class
    end.

-spec tracer_of(pid() | port() | new_processes | new_ports) -> ours | none | other.
tracer_of(Which) ->
    class(erlang:trace_info(Which, tracer)).

class({tracer, []}) -> none;
class({tracer, Tracer}) ->
    case dyntrace_trace_flags:tracer() of
        Tracer -> ours;
        _ -> other
    end;
class(undefined) -> none.

trace(Which, On, Flags) ->
    {Module, State} = dyntrace_trace_flags:tracer(),
    erlang:trace(Which, On, [{tracer, Module, State} | Flags]).

%% -- Processes --------------------------------------------------------------------------

%% The count is approximate, because processes start and exit meanwhile.
processes(global, Which, Clear, Set) ->
    ok = switch_new(Which, new_processes, Clear, Set),
    switch_existing(Which, Clear, Set).

switch_existing(new, _, _) ->
    0;
switch_existing(_, Clear, Set) ->
    _ = [clear_existing(Clear) || Clear =/= []],
    case Set of
        [] -> 0;
        _ -> set_existing(Set)
    end.

clear_existing(Clear) ->
    _ = trace(existing_processes, true, [?ANCHOR, hd(Clear)]),
    ok = dyntrace_walk:pause(),
    trace(existing_processes, false, Clear).

set_existing(Set) ->
    _ = [ok = anchor(erlang:system_info(process_count)) || dyntrace_walk:is_long(), tracer_of(self()) =/= ours],
    Before = erlang:system_info(process_count),
    Traced = trace(existing_processes, true, [?ANCHOR | Set]),
    max(0, min(Before, erlang:system_info(process_count)) - Traced).

%% The first flag of a process takes three times as long as others, because the VM allocates its tracer. So on a large
%% node, the untraced processes first get the anchor one by one, in slices. A separate process sets it, because a
%% running process returns its flags only when it next runs. Processes that do not get the anchor in time are traced,
%% too.
anchor(Count) ->
    {Pid, Ref} = spawn_opt(?MODULE, anchor_all, [self()], [link, monitor, {priority, high}]),
    receive {'DOWN', Ref, process, Pid, _} -> ok
    after Count div ?ANCHORED_PER_MS -> true = exit(Pid, kill), receive {'DOWN', Ref, process, Pid, _} -> ok end
    end,
    receive {'EXIT', Pid, _} -> ok end.

-spec anchor_all(Worker :: pid()) -> ok.
anchor_all(Worker) ->
    _ = process_flag(sensitive, true),
    dyntrace_walk:all(fun(Pid) -> [switch(Pid, [], [?ANCHOR]) || Pid =/= Worker, is_untraced(Pid)] end).

%% erlang:trace/3 of a process that has another tracer logs an error.
is_untraced(Pid) ->
    process_info(Pid, trace) =:= {trace, 0}.

%% New processes also have one tracer, but erlang:trace/3 replaces it and clears its flags without a check.
switch_new(existing, _, _, _) ->
    ok;
switch_new(_, New, Clear, Set) ->
    case tracer_of(New) of
        other ->
            ok;
        _ ->
            _ = [trace(New, false, Clear) || Clear =/= []],
            _ = [trace(New, true, Set) || Set =/= []],
            ok
    end.

%% erlang:trace/3 of a single process that has another tracer logs an error. So the tracer of each process is read
%% before. All are requested at the same time, because a busy process answers when it next runs.
named(global, Changes) ->
    Deadline = now_ms() + ?ANSWER_MS,
    Options = [monitor, {priority, high}],
    Asking = [{Change, spawn_opt(?MODULE, exit_tracer_of, [Pid], Options)} || Change = {Pid, _, _} <- Changes],
    [{Change, changed(Change, answer(Process, Deadline))} || {Change, Process} <- Asking].

changed(_, other) -> taken;
changed(_, unknown) -> unknown;
changed({Pid, all, Set}, Class) -> changed({Pid, [?ANCHOR | dyntrace_trace_flags:all(process)], Set}, Class);
changed({Pid, Clear, Set}, _) -> switch(Pid, Clear, [?ANCHOR || Set =/= []] ++ Set).

switch(Pid, Clear, Set) ->
    try
        _ = [trace(Pid, false, Clear) || Clear =/= []],
        _ = [trace(Pid, true, Set) || Set =/= []],
        set
    catch
        error:badarg -> gone
    end.

answer({Pid, Ref}, Deadline) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} -> class_in(Reason)
    after max(0, Deadline - now_ms()) ->
            true = exit(Pid, kill),
            receive {'DOWN', Ref, process, Pid, Reason} -> class_in(Reason) end
    end.

class_in({tracer, Class}) -> Class;
class_in(_) -> unknown.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% The process that reads the tracer of one process, which may take long.
-spec exit_tracer_of(pid()) -> no_return().
exit_tracer_of(Pid) ->
    exit({tracer, tracer_of(Pid)}).

%% The worker keeps the anchor: see snapshot/2.
exclude(global, Pid) ->
    case tracer_of(Pid) of
        other ->
            ok;
        _ ->
            _ = switch(Pid, dyntrace_trace_flags:all(process), [?ANCHOR]),
            ok
    end.

remove_tracer(Pid) ->
    case tracer_of(Pid) of
        other ->
            ok;
        _ ->
            _ = changed({Pid, all, []}, none),
            ok
    end.

%% -- Ports ------------------------------------------------------------------------------

ports(global, Which, Clear, Set) ->
    ok = switch_new(Which, new_ports, Clear, Set),
    lists:foreach(fun(Port) -> port(Port, Clear, Set) end, [Port || Which =/= new, Port <- erlang:ports()]).

%% Ports answer at once.
port(Port, Clear, Set) ->
    case tracer_of(Port) of
        other -> ok;
        _ -> switch(Port, Clear, Set)
    end.

%% -- Calls ------------------------------------------------------------------------------

functions(global, Patterns) ->
    Ours = ours(),
    Free = [{Mfa, Spec} || {Mfa, Spec} <- maps:to_list(dyntrace_trace_pattern:by_function(Patterns)), Spec =/= false,
                           is_map_key(Mfa, Ours) orelse not has_pattern(Mfa)],
    %% Persisted first, together with the previous ones, so that clear_leftover/0 finds all patterns if the worker is
    %% killed in between.
    ok = dyntrace_settings:put(patterns, Free ++ maps:to_list(Ours)),
    _ = [erlang:trace_pattern(Mfa, false, [local]) || Mfa <- maps:keys(maps:without([Mfa || {Mfa, _} <- Free], Ours))],
    %% Patterns that are already set are skipped: each call waits for all schedulers, 20 ms on a busy node.
    _ = [erlang:trace_pattern(Mfa, Spec, [local]) || {Mfa, Spec} <- Free, maps:get(Mfa, Ours, none) =/= Spec],
    dyntrace_settings:put(patterns, Free).

clear_patterns() ->
    _ = [erlang:trace_pattern(Mfa, false, [local]) || Mfa <- maps:keys(ours())],
    dyntrace_settings:put(patterns, []).

%% The functions whose pattern is still as it was set here. Patterns of other tools are not cleared.
ours() ->
    maps:from_list([{Mfa, Spec} || {Mfa, Spec} <- dyntrace_settings:get(patterns, []),
                                   erlang:trace_info(Mfa, match_spec) =:=
                                       {match_spec, dyntrace_trace_pattern:as_returned(Spec)}]).

has_pattern(Mfa) ->
    erlang:trace_info(Mfa, traced) =/= {traced, false}.

is_traced(global, Pattern) ->
    case dyntrace_trace_pattern:first(Pattern) of
        none -> none;
        First -> has_pattern(First)
    end.

%% -- Messages -----------------------------------------------------------------------------

%% Persisted first, together with the previous pattern, as in functions/2.
messages(global, Event, Spec) ->
    Ours = of_event(Event),
    case of_messages(global, Event, Spec) of
        State when State =:= other; State =:= same ->
            ok;
        none when Spec =:= none ->
            persist(Event, []);
        _ ->
            ok = persist(Event, [Spec | Ours]),
            _ = erlang:trace_pattern(Event, as_given(Spec), []),
            persist(Event, [Spec])
    end.

as_given(none) -> true;
as_given(Spec) -> Spec.

%% Without a match specification the VM returns `true'.
of_messages(global, Event, Spec) ->
    case erlang:trace_info(Event, match_spec) of
        {match_spec, true} -> none;
        {match_spec, Present} ->
            case lists:member(Present, of_event(Event)) of
                true -> ours;
                false when Present =:= Spec -> same;
                false -> other
            end
    end.

of_event(Event) ->
    maps:get(Event, dyntrace_settings:get(message_patterns, #{}), []).

persist(Event, Specs) ->
    Persisted = dyntrace_settings:get(message_patterns, #{}),
    dyntrace_settings:put(message_patterns, Persisted#{Event => [Spec || Spec <- Specs, Spec =/= none]}).
