%% @private The application's worker: polls a few times per second for attached consumers, and switches on the tracing
%% that the enabled probes require.
-module(dyntrace_autotracer).
-behaviour(gen_server).

-export([start_link/1, follow/1, unfollow/0, info/0, dump/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(GC_FLAG, garbage_collection).

-record(state, {config,
                %% The requirements of each allowed probe.
                table,
                tracing,
                budget,
                call_budget,
                gc_flag,
                sources,
                %% Trace flags that are required but not set, with the reason.
                withheld = #{},
                timer,
                %% The status that the library shows to the host.
                status = dyntrace_status:new(),
                %% The failures that were logged last.
                failed = []}).

%% The configuration of follow/1, if there is one, takes precedence over this one.
-spec start_link(dyntrace_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% Follows consumers with that configuration from now on. Returns after the first poll: enabled probes are then traced.
-spec follow(dyntrace_config:config()) -> ok.
follow(Config) ->
    gen_server:call(?MODULE, {follow, Config}, infinity).

%% Also works while the worker does not run: the next worker reads the persisted setting.
-spec unfollow() -> ok.
unfollow() ->
    ok = dyntrace_settings:put(following, false),
    try gen_server:call(?MODULE, unfollow, infinity)
    catch exit:{noproc, _} -> ok
    end.

%% The current tracing, or `off'. It is read from a table, so the caller does not wait for the worker.
-spec info() -> off | dyntrace:following().
info() ->
    try ets:lookup_element(?MODULE, following, 2)
    catch error:badarg -> off
    end.

%% Requests a dump of identities, which is made asynchronously.
-spec dump() -> ok | {error, not_started}.
dump() ->
    try ?MODULE ! dyntrace_identities:dump_message() of
        _ -> ok
    catch
        error:badarg -> {error, not_started}
    end.

%% -- The worker ------------------------------------------------------------------------

%% High priority: a poll is short, and must not wait behind a thousand runnable processes.
init(Config) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(priority, high),
    ?MODULE = ets:new(?MODULE, [named_table, protected]),
    ok = load_modules(),
    ok = dyntrace_tracing:clear_leftover(dyntrace:claim() =/= undefined),
    New = #state{tracing = dyntrace_tracing:new(), gc_flag = dyntrace_gc_flag:new(), sources = dyntrace_sources:new()},
    {ok, restart(in_force(Config), New)}.

%% Loads all modules before anything is traced. The code server is slow on a busy node, and does not reply at all while
%% all dirty I/O schedulers are blocked. The last four are modules of OTP that may not be loaded yet.
load_modules() ->
    {ok, Modules} = application:get_key(dyntrace, modules),
    _ = [code:ensure_loaded(Module) || Module <- Modules ++ [erpc, inet, seq_trace, trace]],
    ok.

%% The configuration of follow/1 also applies to later workers. It is checked, because a worker of another version may
%% have persisted it.
in_force(Config) ->
    Persisted = dyntrace_settings:get(config, Config),
    InForce = case dyntrace_config:check(Persisted) of
                  {ok, Checked} -> Checked;
                  {error, _} -> Config
              end,
    InForce#{follow := dyntrace_settings:get(following, maps:get(follow, InForce))}.

handle_call({follow, Config}, _From, State) ->
    ok = dyntrace_settings:put(config, Config#{follow => true}),
    ok = dyntrace_settings:put(following, true),
    {reply, ok, restart(Config#{follow => true}, stopped(State))};
handle_call(unfollow, _From, State) ->
    {reply, ok, stopped(State)}.

handle_cast(_, State) ->
    {noreply, State}.

handle_info({timeout, Timer, poll}, State = #state{timer = Timer}) ->
    {noreply, poll(State)};
handle_info(Message, State = #state{gc_flag = GcFlag, sources = Sources}) ->
    {noreply, case dyntrace_gc_flag:message(Message, GcFlag) of
                  {checked, Checked} -> State#state{gc_flag = Checked};
                  unknown -> State#state{sources = dyntrace_sources:message(Message, Sources)}
              end}.

terminate(_, #state{tracing = Tracing, sources = Sources}) ->
    ok = dyntrace_status:clear(),
    %% Before the sources, as in stopped/1.
    _ = dyntrace_tracing:close(Tracing),
    _ = dyntrace_sources:stop(Sources),
    ok.

%% -- Following -------------------------------------------------------------------------

restart(Config = #{follow := Follow}, State) ->
    New = State#state{config = Config},
    case Follow of
        true -> poll(configured(New));
        false -> publish(off, configured(New))
    end.

%% Passes the settings to the library, which may have been replaced after the last poll.
configured(State = #state{config = #{budget := Events, call_budget := Calls, text := Text, probes := Probes}}) ->
    ok = dyntrace_library:show(Text),
    ok = dyntrace:allow(Probes),
    State#state{budget = dyntrace_budget:new(Events), call_budget = dyntrace_call_budget:new(Calls),
                status = dyntrace_status:new(), table = dyntrace_trace_flags:table(Probes)}.

stopped(State = #state{tracing = Tracing, gc_flag = GcFlag, sources = Sources, timer = Timer}) ->
    ok = cancel(Timer),
    ok = dyntrace:set_budget(infinity),
    ok = dyntrace:set_call_budget(infinity),
    Published = publish(off, State),
    %% Before the sources stop: one of them reports that nothing is traced from then on.
    Cleared = dyntrace_tracing:clear(Tracing),
    Published#state{tracing = Cleared, gc_flag = dyntrace_gc_flag:stop(GcFlag),
                sources = dyntrace_sources:stop(Sources), timer = undefined}.

%% Asynchronous, because the timer may belong to a busy scheduler. handle_info/2 ignores a late timeout.
cancel(undefined) ->
    ok;
cancel(Timer) ->
    _ = erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    ok.

%% A failure must not end the worker, because a permanent application would end its node. It is logged once, and the
%% next poll retries.
poll(State = #state{config = #{interval := Interval}}) ->
    Timer = erlang:start_timer(Interval, self(), poll),
    {New, Failures} = try polled(State)
                      catch Class:Reason:Stack -> {State, [{poll, Class, Reason, Stack}]}
                      end,
    logged(Failures, New#state{timer = Timer}).

%% A failure is logged once, until another one takes its place.
logged(Failures, State = #state{failed = Logged}) ->
    case [{Part, Class, Reason} || {Part, Class, Reason, _} <- Failures] of
        Logged ->
            State;
        Failed ->
            _ = [logger:error("dyntrace: cannot trace for the attached consumers: ~0p", [Failure])
                 || Failure <- Failures],
            State#state{failed = Failed}
    end.

polled(State) ->
    Claimed = claimed(State),
    #state{config = Config = #{functions := Functions}, table = Table, budget = Budget} = Claimed,
    Polled = dyntrace_budget:poll(Budget),
    Enabled = enabled(Table),
    Wanted = #{calls := Calls, implied := Implied} = dyntrace_trace_flags:for_enabled(Enabled, Table),
    CallBudget = dyntrace_call_budget:poll(Claimed#state.call_budget, Calls =/= none orelse Implied =/= []),
    %% After the configured functions: the last pattern of a function applies.
    Traced = Functions ++ Implied,
    {Required, Allowed} = allowed(required(Wanted, Polled), Claimed),
    Names = [Name || #{name := Name} <- Enabled],
    %% Before the tracing, because the first events depend on the results of sources.
    {Sources, NotObserved} = dyntrace_sources:update(Claimed#state.sources, Required, Names, Config),
    IsPaused = dyntrace_sources:is_paused(Sources),
    Limited = dyntrace_cost_limit:limited(Required, IsPaused),
    Before = Claimed#state.tracing,
    ok = dyntrace_withheld:report_begin(all_events, dyntrace_tracing:in_place(Before), Limited),
    {Tracing, NotTraced} =
        dyntrace_tracing:update(Before, Limited,
                                Config#{functions := dyntrace_call_budget:functions(CallBudget, Traced)}),
    ok = dyntrace_withheld:report_begin(earlier_events, dyntrace_tracing:in_place(Before),
                                        dyntrace_tracing:in_place(Tracing)),
    ok = dyntrace_cost_limit:report(IsPaused),
    ok = logged_withheld(dyntrace_tracing:withheld(Tracing), dyntrace_tracing:withheld(Before)),
    New = Allowed#state{budget = Polled, call_budget = CallBudget, sources = Sources, tracing = Tracing},
    {published(New), NotObserved ++ NotTraced}.

%% A library that has replaced ours after the last poll has no worker yet, and none of our settings.
claimed(State) ->
    case dyntrace:claim() of
        Self when Self =:= self() -> State;
        _ ->
            Cleared = dyntrace_tracing:clear(State#state.tracing),
            configured(State#state{tracing = Cleared, sources = dyntrace_sources:stop(State#state.sources)})
    end.

%% The enabled probes among the allowed ones.
enabled(Table) ->
    [Probe || Probe = #{name := Name} <- dyntrace:listeners(), is_map_key(Name, Table)].

%% While the budget pauses tracing, the probe `withheld' says so. A dump of identities continues, at its own limited
%% rate.
required(Wanted, Budget) ->
    case dyntrace_budget:info(Budget) of
        #{paused := true} -> (dyntrace_trace_flags:none())#{sources := [Source || Source <- [identities, withheld],
                                                                               is_for(Source, Wanted)]};
        #{paused := false} -> Wanted
    end.

is_for(Source, #{sources := Sources}) ->
    lists:member(Source, Sources).

%% The requirements without the trace flag that would harm the node.
allowed(Required = #{processes := Flags}, State = #state{gc_flag = GcFlag}) ->
    case lists:member(?GC_FLAG, Flags) andalso dyntrace_gc_flag:may_set(GcFlag) of
        false -> {Required, withheld(false, State#state{gc_flag = dyntrace_gc_flag:stop(GcFlag)})};
        {true, New} -> {Required, withheld(false, State#state{gc_flag = New})};
        {false, New} -> {Required#{processes := Flags -- [?GC_FLAG]}, withheld(true, State#state{gc_flag = New})}
    end.

withheld(false, State) ->
    State#state{withheld = #{}};
withheld(true, State = #state{withheld = Withheld}) when map_size(Withheld) > 0 ->
    State;
withheld(true, State) ->
    Why = "another tracer or trace session has set it, and a second one would crash the VM (OTP 27 and later)",
    logger:warning("dyntrace: ~s is not traced: ~s", [?GC_FLAG, Why]),
    State#state{withheld = #{?GC_FLAG => Why}}.

logged_withheld(Now, Before) ->
    [logger:warning("dyntrace: the match specification of ~s is not set: ~s", [Event, Why])
     || {Event, Why} <- maps:to_list(maps:without(maps:keys(Before), Now))],
    ok.

published(State = #state{config = #{functions := Functions}, budget = Budget, call_budget = CallBudget,
                         tracing = Tracing, sources = Sources, withheld = Withheld}) ->
    Pauses = #{paused := IsPaused} = dyntrace_budget:info(Budget),
    Following = maps:merge(dyntrace_tracing:in_place(Tracing),
                           Pauses#{paused := IsPaused orelse dyntrace_sources:is_paused(Sources),
                                   functions => dyntrace_trace_pattern:configured(Functions),
                                   untraced => dyntrace_tracing:untraced(Tracing),
                                   sources => dyntrace_sources:on(Sources),
                                   withheld => lists:foldl(fun maps:merge/2, Withheld,
                                                       [dyntrace_budget:withheld(Budget),
                                                        dyntrace_call_budget:withheld(CallBudget),
                                                        dyntrace_tracing:withheld(Tracing),
                                                        dyntrace_sources:withheld(Sources)])}),
    publish(Following, State).

%% For info/0 and for the host.
publish(Following, State = #state{status = Status}) ->
    ok = store(Following, info()),
    State#state{status = dyntrace_status:publish(Following, Status)}.

store(Following, Following) ->
    ok;
store(Following, _) ->
    true = ets:insert(?MODULE, {following, Following}),
    ok.
