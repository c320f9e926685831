%% @private The source of samples, taken once per `sample_interval' in a separate process, because a sample waits until
%% every scheduler has answered. A module with the callback below takes the samples.
%%
%% The process is linked to the autotracer. It is sensitive, so that after its start it makes no trace events. If a
%% sample takes longer than the interval, the samples that would be due meanwhile are skipped.
-module(dyntrace_sampler).

%% The callbacks of dyntrace_source, except that the first argument of on/2 is the module instead of the enabled probes
-export([on/2, poll/2, message/2, off/1]).
-export([samples/1]).
%% For sources
-export([if_due/3]).
%% The sampling process
-export([sampled/1]).

-export_type([state/0]).

%% The minimum time between two samples of a source that calls if_due/3, even if the interval is shorter.
-define(LEAST_MS, 900).

-record(state, {source, interval, sampler,
                %% Counts the samples.
                samples}).

-opaque state() :: #state{}.

%% Takes a sample and reports its events. Before: the result of the last call; `none' in the first call and after a
%% failure.
-callback report(Before :: none | term()) -> Now :: term().

%% -- The callbacks ---------------------------------------------------------------------

-spec on(module(), dyntrace_config:config()) -> {on, state()}.
on(Source, #{sample_interval := Interval}) ->
    {on, start(#state{source = Source, interval = Interval, samples = counters:new(1, [])})}.

-spec poll(Enabled :: [atom()], state()) -> {on, state()}.
poll(_, State) ->
    {on, State}.

%% The process ends only if it is killed.
-spec message(term(), state()) -> state().
message({'EXIT', Sampler, _}, State = #state{sampler = Sampler}) ->
    start(State);
message(_, State) ->
    State.

-spec off(state()) -> ok.
off(#state{sampler = Sampler}) ->
    true = unlink(Sampler),
    true = exit(Sampler, kill),
    ok.

%% How many samples have begun. Tests need it, because the sampling process cannot be traced.
-spec samples(state()) -> non_neg_integer().
samples(#state{samples = Samples}) ->
    counters:get(Samples, 1).

%% For sources whose samples take long: takes a sample if enough time has passed since the last one, and otherwise
%% returns the state. Last is the time of the last sample, in ms of the monotonic time, or another term before the first
%% one; Sample gets the time now.
-spec if_due(Last :: integer() | undefined | none, State, Sample :: fun((Now :: integer()) -> State)) -> State.
if_due(Last, State, Sample) ->
    Now = erlang:monotonic_time(millisecond),
    case not is_integer(Last) orelse Now - Last >= ?LEAST_MS of
        true -> Sample(Now);
        false -> State
    end.

%% -- The sampling process --------------------------------------------------------------

%% Due: when the next sample is to be taken, in ms of the monotonic time.
-record(sampler, {source, interval, samples, due = undefined, before = none, failed}).

%% Each sample is garbage after the next one. High priority, because samples matter most on a busy node.
start(State = #state{source = Source, interval = Interval, samples = Samples}) ->
    Sampler = #sampler{source = Source, interval = Interval, samples = Samples},
    Options = [link, {priority, high}, {fullsweep_after, 0}],
    State#state{sampler = spawn_opt(?MODULE, sampled, [Sampler], Options)}.

%% Exported for a fully qualified call, so that a new version of this module takes over.
-spec sampled(#sampler{}) -> no_return().
sampled(State = #sampler{due = undefined}) ->
    _ = process_flag(sensitive, true),
    ?MODULE:sampled(State#sampler{due = erlang:monotonic_time(millisecond)});
sampled(State = #sampler{interval = Interval, due = Due, samples = Samples}) ->
    ok = counters:add(Samples, 1, 1),
    New = reported(State),
    Next = next(Due, Interval, erlang:monotonic_time(millisecond)),
    wait(erlang:start_timer(Next, self(), sample, [{abs, true}])),
    ?MODULE:sampled(New#sampler{due = Next}).

next(Due, Interval, Now) ->
    Due + Interval * (max(0, Now - Due) div Interval + 1).

%% A failure is logged once. The next sample then has no previous one.
reported(State = #sampler{source = Source, before = Before, failed = Failed}) ->
    try State#sampler{before = Source:report(Before), failed = undefined}
    catch
        Class:Reason ->
            Failure = {Class, Reason},
            ok = log_failure(Failure, Failed, Source),
            State#sampler{before = none, failed = Failure}
    end.

log_failure(Failure, Failure, _) -> ok;
log_failure(Failure, _, Source) -> logger:error("dyntrace: ~s cannot take a sample: ~0p", [Source, Failure]).

wait(Timer) ->
    receive
        {timeout, Timer, sample} -> ok;
        _ -> wait(Timer)
    end.
