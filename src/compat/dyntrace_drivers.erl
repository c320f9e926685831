%% @private The source of `driver__init' and `driver__finish': compares the loaded drivers at each poll.
%%
%% Reading the list takes 1 us. But the VM locks its list of drivers while the system loads a driver's library; a
%% process that reads it then, or opens a port, blocks its scheduler. So a separate process reads it asynchronously. If
%% a read takes long, the next one starts after it has finished.
-module(dyntrace_drivers).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).

-record(state, {looker :: pid(),
                is_asked = false :: boolean(),
                %% The names of the drivers, sorted.
                drivers = unknown :: unknown | [string()]}).

on(Enabled, _) ->
    Worker = self(),
    poll(Enabled, #state{looker = spawn_link(fun() -> look(Worker) end)}).

poll(_, State = #state{is_asked = true}) ->
    {on, State};
poll(_, State = #state{looker = Looker}) ->
    Looker ! look,
    {on, State#state{is_asked = true}}.

message({?MODULE, Looker, Now}, State = #state{looker = Looker, drivers = Before}) ->
    compare(Before, Now),
    State#state{is_asked = false, drivers = Now};
message({'EXIT', Looker, Reason}, #state{looker = Looker}) ->
    exit(Reason);
message(_, State) ->
    State.

off(#state{looker = Looker}) ->
    true = unlink(Looker),
    true = exit(Looker, kill),
    ok.

compare(unknown, _) ->
    ok;
compare(Before, Now) ->
    [ok = dyntrace:report(Probe, {Name}) || Name <- Before -- Now, Probe <- [driver__finish, driver_finish]],
    [ok = dyntrace:report(Probe, {Name, 0, 0, 0}) || Name <- Now -- Before, Probe <- [driver__init, driver_init]],
    ok.

%% A sensitive process makes no trace events.
look(Worker) ->
    _ = process_flag(sensitive, true),
    look_when_asked(Worker).

look_when_asked(Worker) ->
    receive
        look ->
            {ok, Names} = erl_ddll:loaded_drivers(),
            Worker ! {?MODULE, self(), lists:sort(Names)},
            look_when_asked(Worker)
    end.
