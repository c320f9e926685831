%% @private What is traced now, in four parts, and from there to what is needed.
%%
%% A part is set when the need for it changes, or when what the VM shows of it is not what it showed after it was set:
%% somebody else has cleared it, has left it free, or code was loaded anew. Otherwise nothing is set again. How flags and
%% patterns are set differs between releases: {@link dyntrace_session} and {@link dyntrace_global} have the same functions.
-module(dyntrace_tracing).

-export([new/0, update/3, clear/1, close/1, clear_left/1, untraced/1, set/1]).

-export_type([tracing/0, processes/0]).

%% The specs of seq_trace know no tracer modules before OTP 27.
-dialyzer({no_match, system_tracer/0}).

-type processes() :: all | new | existing | [atom()].

-type part() :: processes | ports | calls | seq_trace.

-record(tracing, {backend :: module(),
                  handle = none :: none | {open, term()},
                  %% What each part was set to, and what the VM then showed of it.
                  parts :: #{part() => {Need :: term(), Seen :: term()}},
                  named = [] :: [pid()],
                  functions = [] :: [dyntrace_functions:pattern()],
                  untraced = 0 :: non_neg_integer()}).

-opaque tracing() :: #tracing{}.

-define(PARTS, [processes, ports, calls, seq_trace]).

%% Whatever is called while something is traced is loaded now: the code server has to wait for its turn on a busy node.
-spec new() -> tracing().
new() ->
    _ = [code:ensure_loaded(Module) || Module <- [trace, seq_trace, dyntrace_session, dyntrace_global, dyntrace_functions, dyntrace_collections]],
    new(backend()).

new(Backend) ->
    #tracing{backend = Backend, parts = nothing()}.

nothing() ->
    maps:map(fun(_, Nothing) -> {Nothing, nothing} end, dyntrace_needs:nothing()).

backend() ->
    case erlang:function_exported(trace, session_create, 3) of
        true -> dyntrace_session;
        false -> dyntrace_global
    end.

%% Sets what is needed and is not so. What fails is what the caller gets to know; the next call tries it again.
-spec update(tracing(), dyntrace_needs:needs(), dyntrace_config:config()) -> {tracing(), [Failure :: term()]}.
update(Tracing, Needs, Config) ->
    case {Needs =:= dyntrace_needs:nothing(), Tracing} of
        {true, _} -> {cleared(Tracing), []};
        {false, _} -> update_parts(opened(Tracing), Needs, Config)
    end.

%% Once: there is nothing to be looked at while nothing is needed.
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
    ok = dyntrace_kept:put(tracing, true),
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
            Tracing;
        _ ->
            Set = set(Part, old_need(Old), Need, Tracing, Config),
            Set#tracing{parts = Parts#{Part => {Need, seen(Part, Need, Set, Config)}}}
    end.

old_need({Need, _Seen}) -> Need;
old_need(unknown) -> unknown.

%% What it is now is not known: half of it may have been set.
forget(Part, Tracing = #tracing{parts = Parts}) ->
    Tracing#tracing{parts = maps:remove(Part, Parts)}.

%% Nothing is traced by the application any more.
-spec clear(tracing()) -> tracing().
clear(Tracing = #tracing{handle = none}) ->
    Tracing;
clear(#tracing{backend = Backend, handle = {open, Handle}, functions = Functions}) ->
    ok = dyntrace:set_active(false),
    ok = clear_system_tracer(),
    ok = Backend:clear(Handle, Functions),
    ok = dyntrace_kept:put(tracing, false),
    (new(Backend))#tracing{handle = {open, Handle}}.

%% The same, for ever.
-spec close(tracing()) -> ok.
close(Tracing) ->
    case clear(Tracing) of
        #tracing{handle = none} -> ok;
        #tracing{backend = Backend, handle = {open, Handle}} -> Backend:close(Handle)
    end.

%% The same for what a worker has left that had no time to clear it; where nothing is known of that, as the caller says.
-spec clear_left(Unknown :: boolean()) -> ok.
clear_left(Unknown) ->
    case dyntrace_kept:get(tracing, Unknown) of
        true ->
            ok = dyntrace:set_active(false),
            ok = clear_system_tracer(),
            ok = (backend()):clear_left(),
            dyntrace_kept:put(tracing, false);
        false ->
            ok
    end.

%% How many processes are not traced, since they have another tracer.
-spec untraced(tracing()) -> non_neg_integer().
untraced(#tracing{untraced = Untraced}) ->
    Untraced.

%% What is set now of what was needed.
-spec set(tracing()) -> dyntrace_needs:needs().
set(#tracing{parts = Parts}) ->
    maps:merge(dyntrace_needs:nothing(), maps:map(fun is_set/2, Parts)).

is_set(seq_trace, {Need, Seen}) -> Need andalso Seen =:= ours;
is_set(_, {Need, _}) -> Need.

%% -- The parts -------------------------------------------------------------------------

%% Of what is not needed, nothing is looked at.
seen(_, Nothing, _, _) when Nothing =:= []; Nothing =:= none; Nothing =:= false ->
    nothing;
seen(processes, _, #tracing{backend = Backend, handle = {open, Handle}}, #{processes := Names}) when is_list(Names) ->
    {Backend:seen(Handle, process), having(Names)};
seen(processes, _, #tracing{backend = Backend, handle = {open, Handle}}, _) ->
    Backend:seen(Handle, process);
seen(ports, _, #tracing{backend = Backend, handle = {open, Handle}}, _) ->
    Backend:seen(Handle, port);
seen(calls, _, #tracing{backend = Backend, handle = {open, Handle}}, #{functions := Functions}) ->
    [{dyntrace_functions:version(Function), Backend:is_traced(Handle, Function)} || Function <- Functions];
seen(seq_trace, true, _, _) ->
    system_tracer().

set(processes, Old, New, Tracing = #tracing{backend = Backend, handle = {open, Handle}, named = Were}, #{processes := Names}) when is_list(Names) ->
    Are = [Pid || New =/= [], Pid <- having(Names)],
    _ = [Backend:process(Handle, Pid, all, []) || Pid <- Were -- Are],
    Set = [Backend:process(Handle, Pid, gone(process, Old, New), New) || Pid <- Are],
    ok = Backend:spare(Handle, self()),
    Tracing#tracing{named = Are, untraced = length([taken || taken <- Set])};
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
    ok = Backend:functions(Handle, Functions, dyntrace_functions:match(Calls)),
    Tracing#tracing{functions = Functions};
set(seq_trace, _, Need, Tracing, _) ->
    ok = set_system_tracer(Need, system_tracer()),
    Tracing.

gone(Kind, unknown, New) -> dyntrace_needs:flags(Kind) -- New;
gone(_, Old, New) -> Old -- New.

%% The processes that have one of the names.
having(Names) ->
    lists:usort([Pid || Name <- Names, Pid <- [whereis(Name)], is_pid(Pid)]).

%% -- Sequential tracing ----------------------------------------------------------------

%% Somebody else's stays until they clear it.
set_system_tracer(true, none) -> _ = seq_trace:set_system_tracer(dyntrace_needs:tracer()), ok;
set_system_tracer(false, ours) -> _ = seq_trace:set_system_tracer(false), ok;
set_system_tracer(_, _) -> ok.

clear_system_tracer() ->
    set_system_tracer(false, system_tracer()).

system_tracer() ->
    Ours = dyntrace_needs:tracer(),
    case seq_trace:get_system_tracer() of
        Ours -> ours;
        false -> none;
        _ -> other
    end.
