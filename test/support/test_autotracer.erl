%% The application on a node of its own: starts it, attaches consumers, reads the flags and patterns that are set then.
-module(test_autotracer).

-export([start_node/1, stop_node/1, start/1, start/2, attach/2, following/1, until_traced/1, until_untraced/1, until_worker_after/2,
         until_flags/3, until_pattern/3, until/1, call/2]).
-export([traced/2, flags/1, of_function/2, keep_log/1, logged/1, errors/1, log/2, ask/2]).
%% On the node.
-export([answer/0, infos/2]).

%% Adds the node and its library to the test's configuration.
start_node(Config) ->
    Node = test_node:start(),
    #{library := Library} = test_node:call(Node, fun dyntrace:info/0),
    [{node, Node}, {library, Library} | Config].

%% A test fails at its end if an event could not be decoded.
stop_node(Config) ->
    Node = configured(node, Config),
    #{undecoded := Undecoded} = test_node:call(Node, fun dyntrace:info/0),
    test_node:stop(Node),
    case map_size(Undecoded) of
        0 -> ok;
        _ -> {fail, {undecoded, Undecoded}}
    end.

%% Collects the node's log from now on.
keep_log(Config) ->
    call(Config, fun() ->
                         Self = self(),
                         Keeper = spawn(fun() -> dt_log = ets:new(dt_log, [named_table, public, ordered_set]), Self ! {self(), kept}, receive stop -> ok end end),
                         receive {Keeper, kept} -> ok end,
                         ok = logger:add_handler(dt_log, ?MODULE, #{})
                 end).

log(#{level := Level, msg := {Format, Args}}, _) when is_list(Args) ->
    ets:insert(dt_log, {erlang:unique_integer([monotonic]), {Level, Format, Args}});
log(#{level := Level, msg := Message}, _) ->
    ets:insert(dt_log, {erlang:unique_integer([monotonic]), {Level, Message, []}}).

logged(Config) ->
    [Line || {_, Line = {_, "dyntrace: " ++ _, _}} <- call(Config, fun() -> ets:tab2list(dt_log) end)].

%% Errors of any origin.
errors(Config) ->
    [Line || {_, Line = {error, _, _}} <- call(Config, fun() -> ets:tab2list(dt_log) end)].

start(Config) ->
    start([], Config).

start(Env, Config) ->
    {ok, _} = call(Config, fun() ->
                                   _ = application:load(dyntrace),
                                   [ok = application:set_env(dyntrace, Key, Value) || {Key, Value} <- Env],
                                   application:ensure_all_started(dyntrace)
                           end).

%% On the node: a process that answers.
answer() ->
    receive {From, question} -> From ! answer, answer() end.

ask(Pid, Config) ->
    call(Config, fun() -> Pid ! {self(), question}, receive answer -> answer end end).

attach(Probes, Config) ->
    test_bpftrace:start(configured(library, Config), Probes).

following(Config) ->
    maps:get(following, call(Config, fun dyntrace:info/0)).

until_traced(Config) ->
    test_wait:until("tracing is on", fun() -> On = switched_on(Config), not lists:member(On, [off, nothing]) orelse On end).

until_untraced(Config) ->
    test_wait:until("tracing is off", nothing, fun() -> switched_on(Config) end).

until_worker_after(First, Config) ->
    test_wait:until("another worker", fun() -> Pid = call(Config, fun() -> whereis(dyntrace_follower) end), not lists:member(Pid, [First, undefined]) orelse Pid end).

until_flags(Who, Flags, Config) ->
    test_wait:until({"trace flags of", Who}, Flags, fun() -> traced(Who, Config) end).

until_pattern(Mfa, Pattern, Config) ->
    test_wait:until({"pattern of", Mfa}, Pattern, fun() -> of_function(Mfa, Config) end).

switched_on(Config) ->
    case following(Config) of
        #{processes := [], ports := [], calls := none, seq_trace := false} -> nothing;
        Following -> Following
    end.

until(Fun) ->
    test_wait:until(Fun).

%% The flags of a process, or of new processes, in all sessions.
traced(Who, Config) ->
    call(Config, fun() -> lists:sort(flags(Who)) end).

%% Without the anchor, which has no meaning for a process (dyntrace_global).
flags(Who) ->
    Flags = lists:append([Flags || {flags, Flags} <- infos(Who, flags)]),
    case is_pid(Who) of
        true -> Flags -- [ports];
        false -> Flags
    end.

%% The match specification of a function, or false.
of_function(Mfa, Config) ->
    call(Config, fun() -> lists:last([false | [Spec || {match_spec, Spec} <- infos(Mfa, match_spec), Spec =/= false]]) end).

%% The answer of each trace session, that of erlang:trace/3 included.
infos(What, Key) ->
    _ = code:ensure_loaded(trace),
    Sessions = case erlang:function_exported(trace, session_info, 1) of
                   true -> lists:usort([{legacy, default} | apply(trace, session_info, [all])]);
                   false -> [{legacy, default}]
               end,
    [case Session of
         {legacy, default} -> erlang:trace_info(What, Key);
         _ -> apply(trace, info, [Session, What, Key])
     end || Session <- Sessions].

call(Config, Fun) ->
    test_node:call(configured(node, Config), Fun).

configured(Key, Config) ->
    {Key, Value} = lists:keyfind(Key, 1, Config),
    Value.
