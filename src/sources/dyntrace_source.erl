%% @private The behaviour of sources, which observe what trace events do not show, while a consumer of a probe requires
%% it. A source reports its events with `dyntrace:report/2', or passes additional data to the library.
%%
%% The callbacks run in the autotracer. They must not block: a source that has to ask the schedulers or other processes
%% does so in a separate process, linked to the autotracer. A failure of a callback is logged, and the source is
%% switched on again at the next poll.
-module(dyntrace_source).

-export_type([name/0, state/0, result/0]).

-type name() :: atom().

-type state() :: term().

-type result() :: {on, state()} | {partly, #{Probe :: atom() => Why :: string()}, state()}
                | {paused, Why :: string(), state()} | {withheld, Why :: string()} | {unconfigured, Why :: string()}.
%% `partly': it is on, but cannot observe the events of these probes. `paused': it observes nothing for a while.
%% `withheld': another process or tool occupies a resource that it needs. `unconfigured': an option switches it off, so
%% no warning is logged. After the last two, the next poll calls on/2.

%% Enabled: the enabled probes among those that the application may fire.
-callback on(Enabled :: [atom()], dyntrace_config:config()) -> result().

%% At each poll while it is on or paused.
-callback poll(Enabled :: [atom()], state()) -> result().

%% A message to the autotracer that it does not handle itself.
-callback message(term(), state()) -> state().

%% Removes all that the source has set up.
-callback off(state()) -> ok.
