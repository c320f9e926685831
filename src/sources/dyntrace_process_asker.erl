%% @private Asks processes for items of process_info/2 that they must answer themselves, and waits for a limited time.
%%
%% One process asks all in turn. If a process does not answer, because it is in a long NIF, the asking process goes on
%% waiting for it, and the others are not asked this time. That process is not asked again until it has answered.
-module(dyntrace_process_asker).

-export([new/0, ask/3]).
%% The asking process
-export([asking/3]).

-export_type([asker/0, answers/0]).

%% How long all answers together may take, and how many asking processes may wait for one that does not answer.
-define(ANSWERS_MS, 50).
-define(MAX_STUCK, 4).

%% The asking processes, and the process for which each one waits; the latest first.
-opaque asker() :: [{Asking :: pid(), pid()}].

-type answers() :: #{pid() => undefined | [Value :: term()]}.
%% `undefined' for a process that has exited. Processes that have not answered in time are absent.

-spec new() -> asker().
new() ->
    [].

%% The values are in the order of the items.
-spec ask([pid()], [atom()], asker()) -> {answers(), asker()}.
ask(Pids, Items, Asker) ->
    Stuck = [Waits || Waits = {Asking, _} <- Asker, is_process_alive(Asking)],
    case [Pid || Pid <- Pids, not lists:keymember(Pid, 2, Stuck)] of
        [] ->
            {#{}, Stuck};
        Free ->
            Asking = spawn_link(?MODULE, asking, [self(), Free, Items]),
            Timer = erlang:start_timer(?ANSWERS_MS, self(), Asking),
            {Answers, Left} = answers(Free, Asking, Timer, #{}),
            {Answers, bounded([{Asking, Pid} || Pid <- lists:sublist(Left, 1)] ++ Stuck)}
    end.

bounded(Stuck) when length(Stuck) =< ?MAX_STUCK ->
    Stuck;
bounded(Stuck) ->
    {Asking, _} = lists:last(Stuck),
    true = unlink(Asking),
    true = exit(Asking, kill),
    lists:droplast(Stuck).

%% A sensitive process makes no trace events.
-spec asking(pid(), [pid()], [atom()]) -> ok.
asking(To, Pids, Items) ->
    _ = process_flag(sensitive, true),
    lists:foreach(fun(Pid) -> To ! {answer, self(), process_info(Pid, Items)} end, Pids).

%% Also returns the processes that have not answered. The caller ignores late answers.
answers([], _, Timer, Answers) ->
    _ = erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    {Answers, []};
answers([Pid | Pids], Asking, Timer, Answers) ->
    receive
        {answer, Asking, undefined} ->
            answers(Pids, Asking, Timer, Answers#{Pid => undefined});
        {answer, Asking, Values} ->
            answers(Pids, Asking, Timer, Answers#{Pid => [Value || {_, Value} <- Values]});
        {timeout, Timer, Asking} ->
            {Answers, [Pid | Pids]}
    end.
