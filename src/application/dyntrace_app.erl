%% @private The application: makes sure that the module `dyntrace' is ours, and starts one worker, dyntrace_autotracer.
%%
%% The start fails only for an invalid configuration, because a permanent application that does not start ends its node.
%% If the library or our module cannot be loaded, no worker is started, and one error is logged.
-module(dyntrace_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
-export([pause/0, resume/0, work/0]).
-export([init/1]).

-define(SUPERVISOR, dyntrace_sup).
-define(WORKER, dyntrace_autotracer).

start(_Type, _Args) ->
    ok = dyntrace_settings:new(),
    case worker() of
        {error, Refused = {bad_config, _, _, _}} ->
            {error, Refused};
        Worker ->
            {ok, Supervisor} = supervisor:start_link({local, ?SUPERVISOR}, ?MODULE, []),
            _ = logged(started(Worker)),
            {ok, Supervisor}
    end.

%% Clears the trace flags and the logger handler of workers that could not do so. Called in the process that started the
%% application, also after the supervisor was killed or has given up.
stop(_State) ->
    ok = dyntrace_log:remove_leftover(),
    dyntrace_tracing:clear_leftover(false).

%% Called by the appup before it loads new code, also if the application does not run; resume/0 is called afterwards.
-spec pause() -> ok.
pause() ->
    if_running(fun() ->
                       _ = supervisor:terminate_child(?SUPERVISOR, ?WORKER),
                       _ = supervisor:delete_child(?SUPERVISOR, ?WORKER),
                       ok
               end).

%% Never raises: an upgrade instruction that fails restarts the node.
-spec resume() -> ok | {error, term()}.
resume() ->
    Worker = worker(),
    logged(if_running(fun() -> started(Worker) end)).

%% Starts the worker if it does not run: the reason why it could not start may no longer exist.
-spec work() -> ok | {error, term()}.
work() ->
    case whereis(?WORKER) of
        undefined -> if_running(fun() -> started(worker()) end);
        _ -> ok
    end.

if_running(Fun) ->
    case whereis(?SUPERVISOR) of
        undefined -> ok;
        _ -> Fun()
    end.

%% The worker's child specification, or why it cannot be started.
worker() ->
    case dyntrace_module:load() of
        ok -> configured(dyntrace_config:check(application:get_all_env(dyntrace)));
        {error, Why} -> {error, Why}
    end.

configured({error, Refused}) ->
    {error, Refused};
configured({ok, Config}) ->
    case dyntrace:library() of
        {loaded, _} -> {ok, #{id => ?WORKER, start => {?WORKER, start_link, [Config]}}};
        {missing, Why} -> {error, unicode:characters_to_list(Why)}
    end.

started({error, Why}) ->
    {error, Why};
started({ok, Worker}) ->
    case supervisor:start_child(?SUPERVISOR, Worker) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        {error, Why} -> {error, Why}
    end.

logged(ok) ->
    ok;
logged({error, Why}) ->
    logger:error("dyntrace: no event will be traced: ~ts", [text(Why)]),
    {error, Why}.

text(Why) when is_list(Why) -> Why;
text(Why) -> io_lib:format("~0tp", [Why]).

init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, []}}.
