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
        {ok, Config} ->
            ok = dyntrace_kept:new(),
            supervisor:start_link({local, ?SUPERVISOR}, ?MODULE, Config);
        {error, Why} -> {error, Why}
    end.

%% The process that has started the application comes here, also when the supervisor was killed or has given up: what
%% such workers have left is cleared.
stop(_State) ->
    dyntrace_tracing:clear_left(false).

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

%% OTP's runtime_tools has a module of the same name, and may be loaded, or come first on the code path. Ours is
%% beside this one.
load_ours() ->
    Ours = filename:join(filename:dirname(filename:absname(code:which(?MODULE))), "dyntrace"),
    File = Ours ++ ".beam",
    case code:is_loaded(dyntrace) of
        {file, There} ->
            case filename:absname(There) of
                File -> ok;
                Other -> load(Ours, Other)
            end;
        false ->
            load(Ours, filename:absname(code:which(dyntrace)))
    end.

%% From its file: embedded mode loads no module by its name.
load(Ours, Other) ->
    _ = code:purge(dyntrace),
    {module, dyntrace} = code:load_abs(Ours),
    File = code:which(dyntrace),
    _ = File =:= Other orelse logger:notice("dyntrace: loaded ~ts in place of ~ts", [File, Other]),
    ok.

init(Config) ->
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, [worker(Config)]}}.

worker(Config) ->
    #{id => ?WORKER, start => {?WORKER, start_link, [Config]}}.
