%% @private Polls a few times a second for consumers, and has traced what they are attached to.
-module(dyntrace_follower).
-behaviour(gen_server).

-export([start_link/1, follow/1, unfollow/0, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% `table': what each probe needs; `failed': the failures that the log has; `withheld': trace flags that are needed and not
%% set, with the reason.
-record(state, {config, table, tracing, budget, collections, withheld = #{}, timer, failed = []}).

-define(COLLECTIONS, garbage_collection).

-spec start_link(dyntrace_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% From now on by that configuration; returns when what is enabled now is traced.
-spec follow(dyntrace_config:config()) -> ok.
follow(Config) ->
    gen_server:call(?MODULE, {follow, Config}, infinity).

%% Also if there is no worker at this moment: the next one does not follow then.
-spec unfollow() -> ok.
unfollow() ->
    ok = dyntrace_kept:put(following, false),
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

%% Its work is short, and must not wait until a thousand busy processes have had their turn.
init(Config) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(priority, high),
    ?MODULE = ets:new(?MODULE, [named_table, protected]),
    ok = dyntrace_tracing:clear_left(dyntrace:claim() =/= undefined),
    {ok, restart(in_force(Config), #state{tracing = dyntrace_tracing:new(), collections = dyntrace_collections:new()})}.

%% What an earlier worker was told by hand holds on; it may be of another version.
in_force(Config) ->
    Kept = dyntrace_kept:get(config, Config),
    InForce = case dyntrace_config:check(Kept) of
                  {ok, Checked} -> Checked;
                  {error, _} -> Config
              end,
    InForce#{follow := dyntrace_kept:get(following, maps:get(follow, InForce))}.

handle_call({follow, Config}, _From, State) ->
    ok = dyntrace_kept:put(config, Config#{follow => true}),
    ok = dyntrace_kept:put(following, true),
    {reply, ok, restart(Config#{follow => true}, stopped(State))};
handle_call(unfollow, _From, State) ->
    {reply, ok, stopped(State)}.

handle_cast(_, State) ->
    {noreply, State}.

handle_info({timeout, Timer, poll}, State = #state{timer = Timer}) ->
    {noreply, poll(State)};
handle_info(_, State) ->
    {noreply, State}.

terminate(_, #state{tracing = Tracing}) ->
    dyntrace_tracing:close(Tracing).

%% -- Following -------------------------------------------------------------------------

restart(Config = #{follow := Follow}, State) ->
    New = State#state{config = Config},
    case Follow of
        true -> poll(configured(New));
        false -> tell(off), configured(New)
    end.

%% What the library is told: it may be another one than at the last poll.
configured(State = #state{config = #{budget := Events, text := Text, probes := Probes}}) ->
    ok = dyntrace:show(Text),
    ok = dyntrace:serve(Probes),
    State#state{budget = dyntrace_budget:new(Events), table = dyntrace_needs:table(Probes)}.

stopped(State = #state{tracing = Tracing, collections = Collections, timer = Timer}) ->
    %% Otherwise it may wait for a scheduler's whole queue. A timeout that is on its way is of no timer that counts.
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    ok = dyntrace:set_budget(infinity),
    tell(off),
    State#state{tracing = dyntrace_tracing:clear(Tracing), collections = dyntrace_collections:stop(Collections), timer = undefined}.

%% Nothing that goes wrong here may end the worker, and with it a permanent application and its node: it is logged once,
%% and tried again.
poll(State = #state{config = #{interval := Interval}}) ->
    Timer = erlang:start_timer(Interval, self(), poll),
    {New, Failures} = try polled(State)
                      catch Class:Reason:Stack -> {State, [{poll, Class, Reason, Stack}]}
                      end,
    logged(Failures, New#state{timer = Timer}).

logged(Failures, State = #state{failed = Logged}) ->
    What = [{Part, Class, Reason} || {Part, Class, Reason, _} <- Failures],
    _ = What =:= Logged orelse [logger:error("dyntrace: can't trace what consumers are attached to: ~0p", [Failure]) || Failure <- Failures],
    State#state{failed = What}.

polled(State) ->
    Mine = mine(State),
    #state{config = Config, table = Table, budget = Budget} = Mine,
    Polled = dyntrace_budget:look(Budget),
    {Needs, Allowed} = allowed(needs(Polled, Table), Mine),
    {Tracing, Failures} = dyntrace_tracing:update(Mine#state.tracing, Needs, Config),
    New = Allowed#state{budget = Polled, tracing = Tracing},
    told(New),
    {New, Failures}.

%% A library that has been loaded meanwhile, in place of the one that was told, knows of no worker.
mine(State) ->
    case dyntrace:claim() of
        Self when Self =:= self() -> State;
        _ -> configured(State#state{tracing = dyntrace_tracing:clear(State#state.tracing)})
    end.

needs(Budget, Table) ->
    case dyntrace_budget:info(Budget) of
        #{paused := true} -> dyntrace_needs:nothing();
        #{paused := false} -> dyntrace_needs:of_listeners(dyntrace:listeners(), Table)
    end.

%% Without the trace flags that would harm the node.
allowed(Needs = #{processes := Flags}, State = #state{collections = Collections}) ->
    case lists:member(?COLLECTIONS, Flags) andalso dyntrace_collections:may_trace(Collections) of
        false -> {Needs, withheld(false, State#state{collections = dyntrace_collections:stop(Collections)})};
        {true, New} -> {Needs, withheld(false, State#state{collections = New})};
        {false, New} -> {Needs#{processes := Flags -- [?COLLECTIONS]}, withheld(true, State#state{collections = New})}
    end.

withheld(false, State) ->
    State#state{withheld = #{}};
withheld(true, State = #state{withheld = Withheld}) ->
    Why = "another tracer or trace session has it, and the VM does not survive two (OTP 27 and later)",
    _ = map_size(Withheld) > 0 orelse logger:warning("dyntrace: ~s is not traced: ~s", [?COLLECTIONS, Why]),
    State#state{withheld = #{?COLLECTIONS => Why}}.

told(#state{budget = Budget, tracing = Tracing, withheld = Withheld}) ->
    Following = maps:merge(dyntrace_tracing:set(Tracing),
                           (dyntrace_budget:info(Budget))#{untraced => dyntrace_tracing:untraced(Tracing), withheld => Withheld}),
    info() =:= Following orelse tell(Following).

tell(Following) ->
    true = ets:insert(?MODULE, {following, Following}).
