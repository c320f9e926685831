%% Runs the application on a separate node: starts it, attaches consumers, and reads the flags and patterns that are
%% set.
%%
%% As a Common Test hook, it puts such a node and its library into the configuration of each test of a suite:
%%
%%     suite() -> [{ct_hooks, [test_autotracer]}].
-module(test_autotracer).

-include_lib("stdlib/include/assert.hrl").

-export([start/1, start/2, attach/2, detach/2, following/1, asking/1, call/2, text/2, answer_of/2, badarg_of_follow/2]).
-export([with_node/3, with_two_nodes/3, with_two_nodes/4]).
-export([until_traced/1, until_untraced/1, until_following/3, until_off/1, until_unmonitored/1, until_flags/3,
         until_pattern/3, until_system_tracer/2, until_nodes/3, until_logged/2, until_worker_after/2, until_sampled/2]).
-export([traced/2, flags/1, of_function/2, keep_log/1, logged/1, errors/1, log/2]).
%% On the node.
-export([answer/0, sink/0, flood/1, infos/2, monitored/0]).
%% The hook.
-export([init/2, pre_init_per_suite/3, pre_init_per_testcase/4, post_end_per_testcase/5]).

%% -- The hook ------------------------------------------------------------------------------------

init(_, _) ->
    {ok, no_state}.

pre_init_per_suite(_, Config, State) ->
    {try test_require:tool(test_bpftrace:missing(), Config)
     catch throw:Skip -> Skip
     end, State}.

pre_init_per_testcase(_, _, Config, State) ->
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    {[{node, Node}, {library, Library} | Config], State}.

%% A test also fails if an event could not be decoded.
post_end_per_testcase(_, _, Config, Result, State) ->
    Node = configured(node, Config),
    #{undecoded := Undecoded} = test_node:call(Node, fun dyntrace:info/0),
    test_node:stop(Node),
    case map_size(Undecoded) of
        0 -> {Result, State};
        _ -> {{fail, {undecoded, Undecoded}}, State}
    end.

configured(Key, Config) ->
    {Key, Value} = lists:keyfind(Key, 1, Config),
    Value.

%% -- The application -------------------------------------------------------------------------------

start(Config) ->
    start([], Config).

start(Env, Config) ->
    {ok, _} = call(Config, fun() ->
                                   _ = application:load(dyntrace),
                                   [ok = application:set_env(dyntrace, Key, Value) || {Key, Value} <- Env],
                                   application:ensure_all_started(dyntrace)
                           end).

attach(Probes, Config) ->
    test_bpftrace:start(configured(library, Config), Probes).

%% Stops the last consumer, and waits until nothing is traced.
detach(Consumer, Config) ->
    _ = test_bpftrace:stop(Consumer),
    until_untraced(Config).

following(Config) ->
    maps:get(following, call(Config, fun dyntrace:info/0)).

%% The numbers of the dump probes to which a consumer is attached.
asking(Config) ->
    lists:sort([Number || {dump_wanted, usdt, Number} <- call(Config, fun() -> dyntrace:consumers([dump_wanted]) end)]).

call(Config, Fun) ->
    test_node:call(configured(node, Config), Fun).

%% The text of a term, as the node writes it.
text(Term, Config) ->
    call(Config, fun() -> test_cases:text(Term) end).

%% The shell's message for follow/1 with a wrong option.
badarg_of_follow(Options, Config) ->
    call(Config, fun() ->
                         try dyntrace:follow(Options)
                         catch
                             error:badarg:Stack ->
                                 unicode:characters_to_binary(erl_error:format_exception(error, badarg, Stack))
                         end
                 end).

%% -- Other nodes -----------------------------------------------------------------------------------

%% Uses this node instead of the node in the test's configuration.
with_node(Node, Fun, Config) ->
    try
        Result = Fun([{node, Node} | Config]),
        #{undecoded := Undecoded} = test_node:call(Node, fun dyntrace:info/0),
        ?assertEqual(#{}, Undecoded),
        Result
    after
        test_node:stop(Node)
    end.

%% Runs a@127.0.0.1, which is traced, and b@127.0.0.1.
with_two_nodes(Args, Fun, Config) ->
    with_two_nodes(Args, [], Fun, Config).

%% The same, with arguments for a, and for both.
with_two_nodes(Args, ForBoth, Fun, Config) ->
    test_node:with_epmd(fun(Epmd) -> with_two_nodes_of(Epmd, Args, ForBoth, Fun, Config) end).

with_two_nodes_of(Epmd, Args, ForBoth, Fun, Config) ->
    Other = test_node:named("b", Epmd, ForBoth),
    try with_node(test_node:named("a", Epmd, Args ++ ForBoth), fun(Ours) -> Fun(Other, Ours) end, Config)
    after test_node:stop(Other)
    end.

%% -- Processes of the node -------------------------------------------------------------------------

answer() ->
    receive {From, question} -> From ! answer, answer() end.

answer_of(Pid, Config) ->
    call(Config, fun() -> Pid ! {self(), question}, receive answer -> answer end end).

sink() -> receive _ -> sink() end.

flood(Sink) -> Sink ! flood, flood(Sink).

%% -- Waiting ---------------------------------------------------------------------------------------

until_traced(Config) ->
    test_wait:until("tracing is on", fun(On) -> not lists:member(On, [off, nothing]) end,
                    fun() -> switched_on(Config) end).

until_untraced(Config) ->
    test_wait:until("tracing is off", nothing, fun() -> switched_on(Config) end).

switched_on(Config) ->
    case following(Config) of
        #{processes := [], ports := [], calls := none, files := false, seq_trace := false} -> nothing;
        Following -> Following
    end.

%% Waits until Key has the expected value in `following` of dyntrace:info/0. A timeout shows all of `following`.
until_following(Key, Expected, Config) ->
    IsExpected = if is_function(Expected) -> Expected;
                    true -> fun(Value) -> Value =:= Expected end
                 end,
    test_wait:until({Key, Expected}, fun(#{Key := Value}) -> IsExpected(Value); (_) -> false end,
                    fun() -> following(Config) end).

%% Waits until no consumer is followed.
until_off(Config) ->
    test_wait:until("the application follows no consumers", off, fun() -> following(Config) end).

%% Waits until there is no system monitor, neither the application's nor one without a session.
until_unmonitored(Config) ->
    test_wait:until("no system monitor", {[], undefined},
                    fun() -> {call(Config, fun monitored/0), call(Config, fun erlang:system_monitor/0)} end).

until_flags(Who, Flags, Config) ->
    test_wait:until({"trace flags of", Who}, Flags, fun() -> traced(Who, Config) end).

until_pattern(Mfa, Pattern, Config) ->
    test_wait:until({"pattern of", Mfa}, Pattern, fun() -> of_function(Mfa, Config) end).

until_system_tracer(Tracer, Config) ->
    test_wait:until("the system tracer", Tracer, fun() -> call(Config, fun seq_trace:get_system_tracer/0) end).

until_logged(Count, Config) ->
    test_wait:until({Count, "lines in the log"}, fun(Lines) -> length(Lines) =:= Count end,
                    fun() -> logged(Config) end).

until_nodes(Type, Nodes, Config) ->
    test_wait:until({Type, "nodes"}, Nodes, fun() -> call(Config, fun() -> nodes(Type) end) end).

until_worker_after(First, Config) ->
    test_wait:until({"another worker than", First}, fun(Worker) -> not lists:member(Worker, [First, undefined]) end,
                    fun() -> call(Config, fun() -> whereis(dyntrace_autotracer) end) end).

%% Waits until that many samples have begun after the call.
until_sampled(Count, Config) ->
    Before = samples(Config),
    test_wait:until({Count, "samples"}, fun(Now) -> Now - Before >= Count end, fun() -> samples(Config) end).

samples(Config) ->
    call(Config, fun() ->
                         Worker = tuple_to_list(sys:get_state(dyntrace_autotracer)),
                         {sources, Results, _, _} = lists:keyfind(sources, 1, Worker),
                         lists:sum([dyntrace_sampler:samples(State)
                                    || {Name, {on, State}} <- maps:to_list(Results),
                                       lists:member(Name, [allocators, counters, port_samples, process_samples,
                                                           socket_samples, tables])])
                 end).

%% -- Flags and patterns ----------------------------------------------------------------------------

%% The flags of a process, or of new processes, in all sessions.
traced(Who, Config) ->
    call(Config, fun() -> lists:sort(flags(Who)) end).

%% The flags without the anchor, which has no meaning for a process (dyntrace_global).
flags(Who) ->
    Flags = lists:append([Flags || {flags, Flags} <- infos(Who, flags)]),
    case is_pid(Who) of
        true -> Flags -- [ports];
        false -> Flags
    end.

%% The match specification of a function, or false.
of_function(Mfa, Config) ->
    call(Config, fun() ->
                         lists:last([false | [Spec || {match_spec, Spec} <- infos(Mfa, match_spec), Spec =/= false]])
                 end).

%% The answer of each trace session, including that of erlang:trace/3. It does not make the code server look for a
%% module that the release lacks, because that takes long beside busy processes, and tests poll this.
infos(What, Key) ->
    Sessions = case test_trace:has_sessions() of
                   true -> lists:usort([{legacy, default} | apply(trace, session_info, [all])]);
                   false -> [{legacy, default}]
               end,
    [case Session of
         {legacy, default} -> erlang:trace_info(What, Key);
         _ -> info_of(Session, What, Key)
     end || Session <- Sessions].

%% A session that was left meanwhile has nothing set.
info_of(Session, What, Key) ->
    try apply(trace, info, [Session, What, Key])
    catch
        error:badarg:Stack ->
            [{trace, info, _, Location} | _] = Stack,
            case proplists:get_value(error_info, Location) of
                #{cause := session} -> {Key, []};
                _ -> erlang:raise(error, badarg, Stack)
            end
    end.

%% On the node: the application's settings of the system monitor.
monitored() ->
    _ = test_trace:has_sessions() andalso code:ensure_loaded(trace),
    Worker = whereis(dyntrace_autotracer),
    case {erlang:function_exported(trace, system, 3), erlang:system_monitor()} of
        {true, _} ->
            lists:sort(lists:append([Events || Session <- apply(trace, session_info, [all]),
                                               element(1, Session) =:= dyntrace_system_monitor,
                                               {system, Events} <- [info_of(Session, system, all)]]));
        {false, {Worker, Events}} -> lists:sort(Events);
        {false, _} -> []
    end.

%% -- The log ---------------------------------------------------------------------------------------

%% Collects the node's log from this call on.
keep_log(Config) ->
    call(Config, fun() ->
                         Self = self(),
                         Keeper = spawn(fun() ->
                                                test_log = ets:new(test_log, [named_table, public, ordered_set]),
                                                Self ! {self(), kept},
                                                receive stop -> ok end
                                        end),
                         receive {Keeper, kept} -> ok end,
                         ok = logger:add_handler(test_log, ?MODULE, #{})
                 end).

log(#{level := Level, msg := {Format, Args}}, _) when is_list(Args) ->
    ets:insert(test_log, {erlang:unique_integer([monotonic]), {Level, Format, Args}});
log(#{level := Level, msg := Message}, _) ->
    ets:insert(test_log, {erlang:unique_integer([monotonic]), {Level, Message, []}}).

%% The application's own lines.
logged(Config) ->
    [Line || {_, Line = {_, "dyntrace: " ++ _, _}} <- call(Config, fun() -> ets:tab2list(test_log) end)].

%% Errors of any origin.
errors(Config) ->
    [Line || {_, Line = {error, _, _}} <- call(Config, fun() -> ets:tab2list(test_log) end)].
