%% @private Switches tracing on and off, in four parts: trace flags of processes, those of ports, calls, sequential tracing.
%%
%% A part is set when the need for it changes, or when the VM no longer shows it as it did after it was set: another tool
%% has cleared it or has left it free, or code was loaded anew. Otherwise nothing is set again. How flags and patterns are
%% set differs between releases: {@link dyntrace_session} and {@link dyntrace_global} implement the callbacks below.
-module(dyntrace_tracing).

-export([new/0, update/3, clear/1, close/1, clear_left/1, untraced/1, set/1]).

-export_type([tracing/0]).

%% The specs of seq_trace know no tracer modules before OTP 27.
-dialyzer({no_match, [system_tracer/0, set_system_tracer/2]}).

-type part() :: processes | ports | calls | seq_trace.

-type change() :: {pid(), Gone :: all | [atom()], New :: [atom()]}.
%% The trace flags to clear and to set of a process.

-export_type([change/0]).

%%% -- The callbacks of dyntrace_session and dyntrace_global -----------------------------
%%
%% Gone are the trace flags to clear, New those to set. They raise badarg where the VM does, unless said otherwise.

-type handle() :: term().

%% Before the first flag is set.
-callback open() -> handle().

%% Whether the handle can still be used.
-callback is_open(handle()) -> boolean().

%% Clears all flags and the patterns of these functions; the handle stays open.
-callback clear(handle(), [dyntrace_trace_pattern:pattern()]) -> ok.

%% After clear/2.
-callback close(handle()) -> ok.

%% Clears all that an earlier worker has set, whose handle is lost.
-callback clear_left() -> ok.

%% A term that changes when another tool changes these flags or takes the tracer.
-callback seen(handle(), process | port) -> term().

%% Returns about how many processes are not traced, since they have another tracer.
-callback processes(handle(), all | new | existing, Gone :: [atom()], New :: [atom()]) -> Untraced :: non_neg_integer().

%% For single processes; `all' clears every flag of ours. `taken': it has another tracer. `gone': it has exited.
%% `unknown': it has not answered in time, and is unchanged. The time is one for all of them. Raises nothing.
-callback named(handle(), [change()]) -> [{change(), set | taken | gone | unknown}].

-callback ports(handle(), all | new | existing, Gone :: [atom()], New :: [atom()]) -> ok.

%% Sets this match specification for these functions; `false' clears their patterns.
-callback functions(handle(), [dyntrace_trace_pattern:pattern()], boolean() | [tuple()]) -> ok.

%% Whether the first function of the pattern is traced; `none': no loaded function matches.
-callback is_traced(handle(), dyntrace_trace_pattern:pattern()) -> boolean() | none.

%% Stops tracing the worker itself, so that its polling makes no events.
-callback spare(handle(), pid()) -> ok.

%%% -- State -----------------------------------------------------------------------------

-record(tracing, {backend :: module(),
                  handle = none :: none | {open, handle()},
                  %% The need that each part was set to, and what seen/4 then returned.
                  parts :: #{part() => {Need :: term(), Seen :: term()}},
                  %% Of names: who has them, and changes of processes that have not answered yet.
                  named = [] :: [pid()],
                  pending = [] :: [change()],
                  functions = [] :: [dyntrace_trace_pattern:pattern()],
                  untraced = 0 :: non_neg_integer()}).

-opaque tracing() :: #tracing{}.

-define(PARTS, [processes, ports, calls, seq_trace]).

%% Loads every module that is called while something is traced: later, on a busy node, the code server would have to wait.
-spec new() -> tracing().
new() ->
    _ = [code:ensure_loaded(Module) || Module <- [trace, seq_trace, dyntrace_session, dyntrace_global, dyntrace_trace_pattern, dyntrace_gc_flag]],
    new(backend()).

new(Backend) ->
    #tracing{backend = Backend, parts = nothing()}.

nothing() ->
    maps:map(fun(_, Nothing) -> {Nothing, nothing} end, dyntrace_trace_flags:nothing()).

backend() ->
    case erlang:function_exported(trace, session_create, 3) of
        true -> dyntrace_session;
        false -> dyntrace_global
    end.

%% Sets the parts that differ from what is needed. Returns the failures; the next call tries those parts again.
-spec update(tracing(), dyntrace_trace_flags:needs(), dyntrace_config:config()) -> {tracing(), [Failure :: term()]}.
update(Tracing, Needs, Config) ->
    case {Needs =:= dyntrace_trace_flags:nothing(), Tracing} of
        {true, _} -> {cleared(Tracing), []};
        {false, _} -> update_parts(opened(Tracing), Needs, Config)
    end.

%% Once: while nothing is needed, the VM is not asked.
cleared(Tracing) ->
    case is_clear(Tracing) of
        true -> Tracing;
        false -> clear(Tracing)
    end.

is_clear(#tracing{parts = Parts}) ->
    Parts =:= nothing().

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

update_parts(Tracing, Needs, Config) ->
    lists:foldl(fun(Part, {Before, Failures}) ->
                        try {update_part(Part, maps:get(Part, Needs), Before, Config), Failures}
                        catch Class:Reason:Stack ->
                                {forget(Part, Before), [{Part, Class, Reason, Stack} | Failures]}
                        end
                end, {Tracing, []}, ?PARTS).

update_part(Part, Need, Tracing = #tracing{parts = Parts}, Config) ->
    Old = maps:get(Part, Parts, unknown),
    case {Need, seen(Part, Need, Tracing, Config)} of
        Old ->
            retry(Part, Tracing);
        _ ->
            Set = set(Part, old_need(Old), Need, Tracing, Config),
            Set#tracing{parts = Parts#{Part => {Need, seen(Part, Need, Set, Config)}}}
    end.

%% Processes that have not answered are asked again.
retry(processes, Tracing = #tracing{pending = [_ | _]}) -> changed(Tracing);
retry(_, Tracing) -> Tracing.

old_need({Need, _Seen}) -> Need;
old_need(unknown) -> unknown.

%% The part's state is unknown after a failure: half of it may have been set.
forget(Part, Tracing = #tracing{parts = Parts}) ->
    Tracing#tracing{parts = maps:remove(Part, Parts)}.

%% Clears all that the application has set.
-spec clear(tracing()) -> tracing().
clear(Tracing = #tracing{handle = none}) ->
    Tracing;
clear(#tracing{backend = Backend, handle = {open, Handle}, functions = Functions}) ->
    ok = dyntrace:set_active(false),
    ok = clear_system_tracer(),
    ok = Backend:clear(Handle, Functions),
    ok = dyntrace_settings:put(tracing, false),
    (new(Backend))#tracing{handle = {open, Handle}}.

%% The same; the state must not be used afterwards.
-spec close(tracing()) -> ok.
close(Tracing) ->
    case clear(Tracing) of
        #tracing{handle = none} -> ok;
        #tracing{backend = Backend, handle = {open, Handle}} -> Backend:close(Handle)
    end.

%% Clears the flags and patterns of a worker that was killed. Unknown: whether to clear where dyntrace_settings has no entry.
-spec clear_left(Unknown :: boolean()) -> ok.
clear_left(Unknown) ->
    case dyntrace_settings:get(tracing, Unknown) of
        true ->
            ok = dyntrace:set_active(false),
            ok = clear_system_tracer(),
            ok = (backend()):clear_left(),
            dyntrace_settings:put(tracing, false);
        false ->
            ok
    end.

%% About how many processes are not traced, since they have another tracer.
-spec untraced(tracing()) -> non_neg_integer().
untraced(#tracing{untraced = Untraced, pending = Pending}) ->
    Untraced + length(Pending).

%% The part of the last needs that is set now.
-spec set(tracing()) -> dyntrace_trace_flags:needs().
set(#tracing{parts = Parts}) ->
    maps:merge(dyntrace_trace_flags:nothing(), maps:map(fun is_set/2, Parts)).

is_set(seq_trace, {Need, Seen}) -> Need andalso Seen =:= ours;
is_set(_, {Need, _}) -> Need.

%% -- The parts -------------------------------------------------------------------------

%% What the VM shows of a part. A part that is not needed is not asked about.
seen(_, Nothing, _, _) when Nothing =:= []; Nothing =:= none; Nothing =:= false ->
    nothing;
seen(processes, _, #tracing{backend = Backend, handle = {open, Handle}}, #{processes := Names}) when is_list(Names) ->
    {Backend:seen(Handle, process), having(Names)};
seen(processes, _, #tracing{backend = Backend, handle = {open, Handle}}, _) ->
    Backend:seen(Handle, process);
seen(ports, _, #tracing{backend = Backend, handle = {open, Handle}}, _) ->
    Backend:seen(Handle, port);
seen(calls, _, #tracing{backend = Backend, handle = {open, Handle}}, #{functions := Functions}) ->
    [{dyntrace_trace_pattern:version(Function), Backend:is_traced(Handle, Function)} || Function <- Functions];
seen(seq_trace, true, _, _) ->
    system_tracer().

set(processes, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}, named = Were}, #{processes := Names})
  when is_list(Names) ->
    Are = [Pid || New =/= [], Pid <- having(Names)],
    ok = Backend:spare(Handle, self()),
    changed(Tracing#tracing{named = Are, untraced = 0,
                            pending = [{Pid, all, []} || Pid <- Were -- Are] ++ [{Pid, gone(process, Old, New), New} || Pid <- Are]});
set(processes, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, #{processes := Whom}) ->
    Untraced = Backend:processes(Handle, Whom, gone(process, Old, New), New),
    ok = Backend:spare(Handle, self()),
    Tracing#tracing{untraced = Untraced};
set(ports, _, _, Tracing, #{ports := none}) ->
    Tracing;
set(ports, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, #{ports := Whom}) ->
    ok = Backend:ports(Handle, Whom, gone(port, Old, New), New),
    Tracing;
set(calls, _, Calls, Tracing = #tracing{backend = Backend, handle = {open, Handle}}, #{functions := Functions}) ->
    ok = Backend:functions(Handle, Functions, dyntrace_trace_pattern:match(Calls)),
    Tracing#tracing{functions = Functions};
set(seq_trace, _, Need, Tracing, _) ->
    ok = set_system_tracer(Need, system_tracer()),
    Tracing.

changed(Tracing = #tracing{backend = Backend, handle = {open, Handle}, pending = Changes, untraced = Taken}) ->
    Results = Backend:named(Handle, Changes),
    Tracing#tracing{pending = [Change || {Change, unknown} <- Results], untraced = Taken + length([taken || {_, taken} <- Results])}.

gone(Kind, unknown, New) -> dyntrace_trace_flags:flags(Kind) -- New;
gone(_, Old, New) -> Old -- New.

%% The processes that have one of the names, without the worker.
having(Names) ->
    lists:usort([Pid || Name <- Names, Pid <- [whereis(Name)], is_pid(Pid), Pid =/= self()]).

%% -- Sequential tracing ----------------------------------------------------------------

%% The system tracer of another tool stays until that tool clears it.
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
