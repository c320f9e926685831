%% @private The application: one worker that follows whoever listens.
-module(dyntrace_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
-export([init/1]).

start(_Type, _Args) ->
    case dyntrace_config:check(application:get_all_env(dyntrace)) of
        {ok, Config} -> supervisor:start_link({local, dyntrace_sup}, ?MODULE, Config);
        {error, Why} -> {error, Why}
    end.

stop(_State) ->
    ok.

init(Config) ->
    {ok, {#{strategy => one_for_one},
          [#{id => dyntrace_follower, start => {dyntrace_follower, start_link, [Config]}}]}}.
