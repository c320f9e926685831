%% @private Looks a few times a second who listens, and has traced what they listen to.
-module(dyntrace_follower).
-behaviour(gen_server).

-export([start_link/1, follow/1, unfollow/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {config, tracing, needs, budget, timer}).

-spec start_link(dyntrace_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% From now on by that configuration; returns when what is listened to now is traced.
-spec follow(dyntrace_config:config()) -> ok.
follow(Config) ->
    gen_server:call(?MODULE, {follow, Config}, infinity).

-spec unfollow() -> ok.
unfollow() ->
    gen_server:call(?MODULE, unfollow, infinity).

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
    {ok, restart(Config, #state{tracing = dyntrace_tracing:open(), needs = dyntrace_needs:nothing()})}.

handle_call({follow, Config}, _From, State) ->
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

restart(Config = #{follow := Follow, budget := Events, text := Text}, State) ->
    ok = dyntrace:show(Text),
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

look(State = #state{config = Config, tracing = Tracing, needs = Old, budget = OldBudget}) ->
    #{interval := Interval, processes := Processes} = Config,
    Budget = dyntrace_budget:look(OldBudget),
    New = needs(Budget, Config),
    %% A name may be another process's by now.
    New =:= Old andalso is_atom(Processes) orelse dyntrace_tracing:set(Tracing, Old, New, Config),
    New =:= Old andalso Budget =:= OldBudget andalso info() =/= off orelse tell(New, Budget, Tracing),
    State#state{needs = New, budget = Budget, timer = erlang:send_after(Interval, self(), look)}.

needs(Budget, #{probes := Served, functions := Functions}) ->
    case dyntrace_budget:info(Budget) of
        #{paused := true} -> dyntrace_needs:nothing();
        #{paused := false} -> with_versions(dyntrace_needs:of_listeners(dyntrace:listeners(), Served), Functions)
    end.

with_versions(Needs = #{calls := none}, _) -> Needs;
with_versions(Needs, Functions) -> Needs#{versions := dyntrace_tracing:versions(Functions)}.

tell(Needs, Budget, Tracing) ->
    Untraced = case Needs =:= dyntrace_needs:nothing() of
                   true -> 0;
                   false -> dyntrace_tracing:untraced(Tracing)
               end,
    tell(maps:merge(maps:without([versions], Needs), (dyntrace_budget:info(Budget))#{untraced => Untraced})).

tell(Following) ->
    true = ets:insert(?MODULE, {following, Following}).
