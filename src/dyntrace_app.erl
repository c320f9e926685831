%% @private The application: it makes sure that the module `dyntrace' is ours, and has one worker, which
%% follows whoever listens.
-module(dyntrace_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
-export([init/1]).

start(_Type, _Args) ->
    ok = load_ours(),
    case dyntrace_config:check(application:get_all_env(dyntrace)) of
        {ok, Config} -> supervisor:start_link({local, dyntrace_sup}, ?MODULE, Config);
        {error, Why} -> {error, Why}
    end.

stop(_State) ->
    ok.

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
    {ok, {#{strategy => one_for_one},
          [#{id => dyntrace_follower, start => {dyntrace_follower, start_link, [Config]}}]}}.
