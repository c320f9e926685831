%% @private The application: it makes sure that the module `dyntrace' is ours, and has one worker, which
%% follows whoever listens.
-module(dyntrace_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
-export([pause/0, resume/0]).
-export([init/1]).

-define(SUPERVISOR, dyntrace_sup).
-define(WORKER, dyntrace_follower).

start(_Type, _Args) ->
    ok = load_ours(),
    case dyntrace_config:check(application:get_all_env(dyntrace)) of
        {ok, Config} -> supervisor:start_link({local, ?SUPERVISOR}, ?MODULE, Config);
        {error, Why} -> {error, Why}
    end.

stop(_State) ->
    ok.

%% What the appup does before and after it loads new code, also where the application does not run.
pause() ->
    while_running(fun() ->
                          ok = supervisor:terminate_child(?SUPERVISOR, ?WORKER),
                          ok = supervisor:delete_child(?SUPERVISOR, ?WORKER)
                  end).

resume() ->
    ok = load_ours(),
    while_running(fun() ->
                          {ok, Config} = dyntrace_config:check(application:get_all_env(dyntrace)),
                          {ok, _} = supervisor:start_child(?SUPERVISOR, worker(Config)),
                          ok
                  end).

while_running(Fun) ->
    case whereis(?SUPERVISOR) of
        undefined -> ok;
        _ -> Fun()
    end.

%% OTP's runtime_tools has a module of the same name, and may come first on the code path. Ours is
%% beside this one. (Embedded mode loads no module by its name, but from a file it does.)
load_ours() ->
    Ours = filename:absname("dyntrace", filename:dirname(filename:absname(code:which(?MODULE)))),
    File = Ours ++ ".beam",
    Other = code:which(dyntrace),
    case filename:absname(Other) of
        File ->
            {module, dyntrace} = code:ensure_loaded(dyntrace),
            ok;
        _ ->
            _ = code:purge(dyntrace),
            {module, dyntrace} = code:load_abs(Ours),
            logger:notice("dyntrace: loaded ~ts in place of ~tp", [File, Other])
    end.

init(Config) ->
    ok = dyntrace_tracing:new_table(),
    {ok, {#{strategy => one_for_one}, [worker(Config)]}}.

worker(Config) ->
    #{id => ?WORKER, start => {?WORKER, start_link, [Config]}}.
