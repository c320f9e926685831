%% @private Looks a few times a second who listens, and has traced what they listen to.
-module(dyntrace_follower).
-behaviour(gen_server).

-export([start_link/1, follow/1, unfollow/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-record(state, {config, tracing, needs, timer}).

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

restart(Config = #{follow := true}, State) ->
    look(State#state{config = Config});
restart(Config, State) ->
    tell(off),
    State#state{config = Config}.

stopped(State = #state{needs = Needs, timer = Timer}) ->
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    receive look -> ok after 0 -> ok end,
    Nothing = dyntrace_needs:nothing(),
    Needs =:= Nothing orelse dyntrace_tracing:set(State#state.tracing, Needs, Nothing, State#state.config),
    tell(off),
    State#state{needs = Nothing, timer = undefined}.

look(State = #state{config = #{probes := Served, interval := Interval, processes := Processes}, needs = Old}) ->
    New = dyntrace_needs:of_listeners(dyntrace:listeners(), Served),
    %% A name may be another process's by now.
    New =:= Old andalso is_atom(Processes) orelse set(Old, New, State),
    New =:= Old andalso info() =/= off orelse tell(New, State),
    State#state{needs = New, timer = erlang:send_after(Interval, self(), look)}.

set(Old, New, #state{tracing = Tracing, config = Config}) ->
    dyntrace_tracing:set(Tracing, Old, New, Config).

tell(Needs, #state{tracing = Tracing}) ->
    Untraced = case Needs =:= dyntrace_needs:nothing() of
                   true -> 0;
                   false -> dyntrace_tracing:untraced(Tracing)
               end,
    tell(Needs#{untraced => Untraced}).

tell(Following) ->
    true = ets:insert(?MODULE, {following, Following}).
