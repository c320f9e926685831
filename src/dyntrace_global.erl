%% @private Trace flags and patterns before OTP 27, where a process has one tracer, and a function one pattern.
%%
%% The tracer has a state of its own: the VM takes `{dyntrace, dyntrace_autotracer}' for another one than `{dyntrace, []}',
%% and sets and clears flags that are given with it only where no other tracer is.
%%
%% Flags of all processes are set and cleared by one call each, which stops the schedulers for the time of a walk over the
%% process table. Asking processes one by one takes signals, and a busy process answers when it next runs.
%%
%% These releases have a fault: such a call does not wait for dirty schedulers, and a process that runs on one may follow
%% a pointer to a tracer that the call has just freed. So no call here takes a tracer away from all processes:
%%
%%   - Every traced process gets the flag `ports' before other flags are cleared, and keeps it. That flag has no meaning
%%     for a process, but a process with a flag keeps its tracer. It is called the anchor below.
%%   - The tracer and the anchor go when the process is next scheduled: the VM asks the tracer for its `trace_status', and
%%     the library answers `remove' while the application traces nothing (dyntrace:set_active/1) or the worker is dead.
-module(dyntrace_global).
-behaviour(dyntrace_tracing).

-export([open/0, clear/2, close/1, clear_left/0, is_open/1, seen/2]).
-export([processes/4, named/2, ports/4, functions/3, is_traced/2, spare/2]).
%% The function of a process that asks another one.
-export([tell_tracer/1]).

%% The specs of erlang:trace_info/2 know no tracer modules before OTP 27.
-dialyzer({no_match, [class/1, new/1]}).

%% See above. For a port the flag has its usual meaning.
-define(ANCHOR, ports).

%% How long a process may take to say which tracer it has.
-define(ANSWER_MS, 50).

open() ->
    global.

is_open(global) ->
    true.

clear(global, _Functions) ->
    clear_left().

close(global) ->
    ok.

clear_left() ->
    _ = processes(global, all, dyntrace_trace_flags:flags(process), []),
    ok = free(self()),
    ok = ports(global, all, dyntrace_trace_flags:flags(port), []),
    clear_patterns().

%% The worker itself has the anchor as a sample: when another tool clears the flags of all processes, it clears that too.
seen(global, process) -> {tracer_of(self()), new(new_processes)};
seen(global, port) -> {tracer_of(self()), new(new_ports)}.

new(Which) ->
    {flags, Flags} = erlang:trace_info(Which, flags),
    case tracer_of(Which) of
        ours -> {ours, lists:sort(Flags)};
        Class -> Class
    end.

-spec tracer_of(pid() | port() | new_processes | new_ports) -> ours | none | other.
tracer_of(Whom) ->
    class(erlang:trace_info(Whom, tracer)).

class({tracer, []}) -> none;
class({tracer, Tracer}) ->
    case dyntrace_trace_flags:tracer() of
        Tracer -> ours;
        _ -> other
    end;
class(undefined) -> none.

trace(Whom, On, Flags) ->
    {Module, State} = dyntrace_trace_flags:tracer(),
    erlang:trace(Whom, On, [{tracer, Module, State} | Flags]).

%% -- Processes --------------------------------------------------------------------------

%% The count is approximate, since processes start and exit meanwhile.
processes(global, Whom, Gone, New) ->
    ok = those_to_come(Whom, new_processes, Gone, New),
    those_there(Whom, Gone, New).

those_there(new, _, _) ->
    0;
those_there(_, Gone, New) ->
    _ = [clear_there(Gone) || Gone =/= []],
    case New of
        [] -> 0;
        _ -> set_there(New)
    end.

clear_there(Gone) ->
    _ = trace(existing_processes, true, [?ANCHOR, hd(Gone)]),
    trace(existing_processes, false, Gone).

set_there(New) ->
    Before = erlang:system_info(process_count),
    Set = trace(existing_processes, true, [?ANCHOR | New]),
    max(0, min(Before, erlang:system_info(process_count)) - Set).

%% New processes have one tracer too, but erlang:trace/3 replaces it and clears its flags without a check.
those_to_come(existing, _, _, _) ->
    ok;
those_to_come(_, Which, Gone, New) ->
    case tracer_of(Which) of
        other ->
            ok;
        _ ->
            _ = [trace(Which, false, Gone) || Gone =/= []],
            _ = [trace(Which, true, New) || New =/= []],
            ok
    end.

%% erlang:trace/3 of a single process that has another tracer logs an error, so the process is asked before.
%% The VM logs an error about each single process that has another tracer, so each is asked before; all at the same time, for a
%% busy process answers when it next runs.
named(global, Changes) ->
    Deadline = now_ms() + ?ANSWER_MS,
    Asking = [{Change, spawn_opt(?MODULE, tell_tracer, [Pid], [monitor, {priority, high}])} || Change = {Pid, _, _} <- Changes],
    [{Change, changed(Change, answer(Process, Deadline))} || {Change, Process} <- Asking].

changed(_, other) -> taken;
changed(_, unknown) -> unknown;
changed({Pid, all, New}, Class) -> changed({Pid, [?ANCHOR | dyntrace_trace_flags:flags(process)], New}, Class);
changed({Pid, Gone, New}, _) -> switch(Pid, Gone, [?ANCHOR || New =/= []] ++ New).

switch(Pid, Gone, New) ->
    try
        _ = [trace(Pid, false, Gone) || Gone =/= []],
        _ = [trace(Pid, true, New) || New =/= []],
        set
    catch
        error:badarg -> gone
    end.

answer({Pid, Ref}, Deadline) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} -> heard(Reason)
    after max(0, Deadline - now_ms()) ->
            true = exit(Pid, kill),
            receive {'DOWN', Ref, process, Pid, Reason} -> heard(Reason) end
    end.

heard({tracer, Class}) -> Class;
heard(_) -> unknown.

now_ms() ->
    erlang:monotonic_time(millisecond).

-spec tell_tracer(pid()) -> no_return().
tell_tracer(Pid) ->
    exit({tracer, tracer_of(Pid)}).

%% The worker keeps the anchor: see seen/2.
spare(global, Pid) ->
    case tracer_of(Pid) of
        other ->
            ok;
        _ ->
            _ = switch(Pid, dyntrace_trace_flags:flags(process), [?ANCHOR]),
            ok
    end.

free(Pid) ->
    _ = tracer_of(Pid) =:= other orelse changed({Pid, all, []}, none),
    ok.

%% -- Ports ------------------------------------------------------------------------------

ports(global, Whom, Gone, New) ->
    ok = those_to_come(Whom, new_ports, Gone, New),
    lists:foreach(fun(Port) -> port(Port, Gone, New) end, [Port || Whom =/= new, Port <- erlang:ports()]).

%% Ports answer at once.
port(Port, Gone, New) ->
    case tracer_of(Port) of
        other -> ok;
        _ -> switch(Port, Gone, New)
    end.

%% -- Calls ------------------------------------------------------------------------------

functions(global, _, false) ->
    clear_patterns();
functions(global, Patterns, Match) ->
    Ours = ours(),
    Free = [Mfa || Pattern <- Patterns, Mfa <- dyntrace_trace_pattern:of_pattern(Pattern), lists:member(Mfa, Ours) orelse not has_pattern(Mfa)],
    %% Persisted first, so that clear_left/0 finds the patterns of a worker that is killed in between.
    ok = dyntrace_settings:put(patterns, {Match, Free}),
    _ = [erlang:trace_pattern(Mfa, Match, [local]) || Mfa <- Free],
    ok.

clear_patterns() ->
    _ = [erlang:trace_pattern(Mfa, false, [local]) || Mfa <- ours()],
    dyntrace_settings:put(patterns, {false, []}).

%% The functions whose pattern is still as it was set here: another tool's pattern is not ours to clear.
ours() ->
    {Match, Mfas} = dyntrace_settings:get(patterns, {false, []}),
    [Mfa || Mfa <- Mfas, erlang:trace_info(Mfa, match_spec) =:= {match_spec, told(Match)}].

%% The match specification as erlang:trace_info/2 returns it.
told(true) -> [];
told(Match) -> Match.

has_pattern(Mfa) ->
    erlang:trace_info(Mfa, traced) =/= {traced, false}.

is_traced(global, Pattern) ->
    case dyntrace_trace_pattern:first(Pattern) of
        none -> none;
        First -> has_pattern(First)
    end.
