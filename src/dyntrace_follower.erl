%% @private Looks a few times a second who listens, and has traced what they listen to.
-module(dyntrace_follower).
-behaviour(gen_server).

-export([start_link/1, follow/1, unfollow/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {config, tracing, needs, budget, timer, failed = false}).

-spec start_link(dyntrace_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% From now on by that configuration; returns when what is listened to now is traced.
-spec follow(dyntrace_config:config()) -> ok.
follow(Config) ->
    gen_server:call(?MODULE, {follow, Config}, infinity).

%% Also if there is no worker at this moment: the next one does not follow then.
-spec unfollow() -> ok.
unfollow() ->
    ok = dyntrace_kept:put(config, off),
    try gen_server:call(?MODULE, unfollow, infinity)
    catch exit:{noproc, _} -> ok
    end.

%% What is traced now, or `off'; read from a table, so that asking waits for nobody.
-spec info() -> off | dyntrace:following().
info() ->
    try ets:lookup_element(?MODULE, following, 2)
    catch error:badarg -> off
    end.

%% -- The worker ------------------------------------------------------------------------

init(Config) ->
    _ = process_flag(trap_exit, true),
    ?MODULE = ets:new(?MODULE, [named_table, protected]),
    {ok, restart(in_force(Config), #state{tracing = dyntrace_tracing:open(), needs = dyntrace_needs:nothing()})}.

%% What an earlier worker was told by hand holds on; it may be of another version.
in_force(Config) ->
    case dyntrace_kept:get(config, Config) of
        off ->
            Config#{follow := false};
        Kept ->
            case dyntrace_config:check(Kept) of
                {ok, Checked} -> Checked;
                {error, _} -> Config
            end
    end.

handle_call({follow, Config}, _From, State) ->
    ok = dyntrace_kept:put(config, Config#{follow => true}),
    {reply, ok, restart(Config#{follow => true}, stopped(State))};
handle_call(unfollow, _From, State) ->
    {reply, ok, stopped(State)}.

handle_cast(_, State) ->
    {noreply, State}.

handle_info(look, State) ->
    {noreply, look(State)};
handle_info(_, State) ->
    {noreply, State}.

terminate(_, #state{tracing = Tracing}) ->
    dyntrace_tracing:close(Tracing).

%% -- Following -------------------------------------------------------------------------

restart(Config = #{follow := Follow, budget := Events, text := Text, probes := Probes}, State) ->
    ok = dyntrace:show(Text),
    ok = dyntrace:serve(Probes),
    New = State#state{config = Config, budget = dyntrace_budget:new(Events)},
    case Follow of
        true -> look(New);
        false -> tell(off), New
    end.

stopped(State = #state{needs = Needs, timer = Timer}) ->
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    receive look -> ok after 0 -> ok end,
    Nothing = dyntrace_needs:nothing(),
    Needs =:= Nothing orelse dyntrace_tracing:set(State#state.tracing, Needs, Nothing, State#state.config),
    ok = dyntrace:set_budget(infinity),
    tell(off),
    State#state{needs = Nothing, timer = undefined}.

%% Nothing that goes wrong here may end the worker, and with it a permanent application and its node: it is logged once,
%% and tried again.
look(State = #state{config = #{interval := Interval}, failed = Failed}) ->
    Timer = erlang:send_after(Interval, self(), look),
    try (looked(State))#state{timer = Timer, failed = false}
    catch Class:Reason:Stack ->
            Failed orelse logger:error("dyntrace: can't look who listens: ~0p", [{Class, Reason, Stack}]),
            State#state{timer = Timer, failed = true}
    end.

looked(State = #state{config = Config, tracing = Tracing, needs = Old, budget = OldBudget}) ->
    #{processes := Processes} = Config,
    Budget = dyntrace_budget:look(OldBudget),
    New = needs(Budget, Config, Tracing),
    %% A name may be another process's by now.
    New =:= Old andalso is_atom(Processes) orelse dyntrace_tracing:set(Tracing, Old, New, Config),
    New =:= Old andalso Budget =:= OldBudget andalso info() =/= off orelse tell(New, Budget, Tracing),
    State#state{needs = New, budget = Budget}.

needs(Budget, #{probes := Served, functions := Functions}, Tracing) ->
    case dyntrace_budget:info(Budget) of
        #{paused := true} -> dyntrace_needs:nothing();
        #{paused := false} -> with_versions(dyntrace_needs:of_listeners(dyntrace:listeners(), Served), Functions, Tracing)
    end.

with_versions(Needs = #{calls := none}, _, _) -> Needs;
with_versions(Needs, Functions, Tracing) -> Needs#{versions := dyntrace_tracing:versions(Tracing, Functions)}.

tell(Needs, Budget, Tracing) ->
    Untraced = case Needs =:= dyntrace_needs:nothing() of
                   true -> 0;
                   false -> dyntrace_tracing:untraced(Tracing)
               end,
    tell(maps:merge(maps:without([versions], Needs), (dyntrace_budget:info(Budget))#{untraced => Untraced})).

tell(Following) ->
    true = ets:insert(?MODULE, {following, Following}).
