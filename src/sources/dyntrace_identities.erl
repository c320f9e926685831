%% @private The source of the identity probes: makes dumps, which report the identities of all processes, ports and
%% nodes.
%%
%% A separate process makes them, the dumper, linked to the autotracer. It has a high priority, so that it does not wait
%% behind a thousand runnable processes, and works in small batches with a pause after each, so that it holds a
%% scheduler for a fraction of a millisecond at a time. A dump that is requested during another one is made after it.
-module(dyntrace_identities).
-behaviour(dyntrace_source).

%% The callbacks of dyntrace_source
-export([on/2, poll/2, message/2, off/1]).
%% For dyntrace_autotracer
-export([dump_message/0]).
%% For dyntrace_process_samples
-export([report_sampled/1]).
%% Processes
-export([dumper/2, run/1, ports/2]).

-define(PROBES, [port_identity, node_identity, dump_start, dump_end | ?OF_PROCESSES]).
-define(OF_PROCESSES, [process_identity, process_named]).

%% The probe array that requests dumps. It does not require a source: on its own it has no effect.
-define(ROW, dump_wanted).

%% A batch takes a fraction of a millisecond; the pause lets consumers catch up.
-define(BATCH, 100).
-define(PAUSE_MS, 1).

%% A port answers when its driver is idle. A dump does not wait longer for ports that do not answer.
-define(PORTS_MS, 5000).

%% How often the process that reports the ports checks whether one of them does not answer.
-define(POLL_MS, 100).

%% The VM reports neither accepted sockets nor the addresses to which sockets connect. Therefore new ports are reported
%% once per second while a consumer is attached: at most MOST_NEW at a time, on nodes with at most MOST_PORTS ports.
-define(NEW_PORTS_MS, 1000).
-define(MOST_NEW, 200).
-define(MOST_PORTS, 20000).

%% The depth to which terms are printed in the log.
-define(DEPTH, 40).

%% The time between the enabling of a probe and that of the next one, or until bpftrace receives its events.
-define(SETTLED_MS, 200).

%% The minimum time between two starts of the dumper.
-define(AGAIN_MS, 1000).

%% -- The callbacks ---------------------------------------------------------------------

-type consumer() :: {Probe :: atom(), dyntrace:backend(), Identity :: non_neg_integer()}.

-record(source, {every :: never | pos_integer(),
                 label_keys :: [atom()],
                 labels :: none | {module(), atom()},
                 text :: full | shape,
                 dumper :: pid() | none,
                 started :: integer(),
                 %% The probes that may be fired.
                 allowed :: all | [atom()],
                 %% Why the last dumper has ended.
                 ended = none :: term(),
                 %% Why the function of the option `labels' fails.
                 problem = none :: none | string(),
                 %% The consumers of identity probes and of the probe array at the last poll.
                 attached :: [consumer()],
                 %% Requests a dump.
                 timer = none :: none | reference()}).

on(Enabled, #{dump := Every, label_keys := LabelKeys, labels := Labels, text := Text, probes := Allowed}) ->
    {on, started(#source{every = Every, label_keys = LabelKeys, labels = Labels, text = Text, allowed = Allowed,
                         dumper = none, started = 0, attached = attached(Enabled)})}.

%% Each new consumer triggers a dump. If the probe was already enabled, LTTng sessions can still be distinguished. For
%% USDT the kernel counts a probe site once, so a tracer also attaches to a probe of the array.
poll(Enabled, State = #source{problem = Problem}) ->
    case {Problem, polled(Enabled, State)} of
        {none, New} -> {on, New};
        {_, New} -> {partly, #{labels => Problem}, New}
    end.

polled(Enabled, State = #source{dumper = none, started = Started}) ->
    case now_ms() - Started >= ?AGAIN_MS of
        true -> started(State#source{attached = attached(Enabled)});
        false -> State
    end;
polled(Enabled, State = #source{attached = Before}) ->
    Attached = attached(Enabled),
    New = State#source{attached = Attached},
    case Attached -- Before of
        [] -> New;
        _ -> ask(New)
    end.

%% The autotracer handles the message after its poll. By then new processes are traced, so each process is either in the
%% dump or reported when it is spawned.
ask(State = #source{timer = Timer}) ->
    ok = cancel(Timer),
    State#source{timer = erlang:send_after(?SETTLED_MS, self(), dump_message())}.

cancel(none) ->
    ok;
cancel(Timer) ->
    _ = erlang:cancel_timer(Timer, [{async, true}, {info, false}]),
    ok.

%% Reports the identities of processes that were not in the previous sample. They may have been spawned after the last
%% dump, without the trace flag that would report them.
-spec report_sampled([pid()]) -> ok.
report_sampled(Pids) ->
    case Pids =/= [] andalso dyntrace:consumers([process_named]) =/= [] andalso whereis(dyntrace_autotracer) of
        Worker when is_pid(Worker) -> Worker ! {?MODULE, {sampled, Pids}}, ok;
        _ -> ok
    end.

%% The message to the autotracer that requests a dump.
-spec dump_message() -> term().
dump_message() ->
    {?MODULE, dump}.

message({?MODULE, dump}, State = #source{dumper = Dumper}) when is_pid(Dumper) ->
    Dumper ! dump,
    State;
message({?MODULE, Sampled = {sampled, _}}, State = #source{dumper = Dumper}) when is_pid(Dumper) ->
    Dumper ! Sampled,
    State;
message({?MODULE, Dumper, {labels, Problem}}, State = #source{dumper = Dumper}) ->
    State#source{problem = Problem};
message({'EXIT', Dumper, Why}, State = #source{dumper = Dumper}) ->
    State#source{dumper = none, ended = Why};
message(_, State) ->
    State.

%% The processes started by the dumper are linked to it.
off(#source{dumper = none}) ->
    ok;
off(#source{dumper = Dumper}) ->
    true = unlink(Dumper),
    true = exit(Dumper, kill),
    ok.

started(State) ->
    Dumper = spawn_opt(?MODULE, dumper, [self(), State], [link, {priority, high}]),
    ask(State#source{dumper = Dumper, started = now_ms()}).

attached(Enabled) ->
    dyntrace:consumers([?ROW | ours(Enabled)]).

ours(Enabled) ->
    [Name || Name <- Enabled, lists:member(Name, ?PROBES)].

now_ms() ->
    erlang:monotonic_time(millisecond).

%% -- The dumper ------------------------------------------------------------------------

-record(dump, {id :: pos_integer(),
               count = 0 :: non_neg_integer(),
               %% The remaining processes.
               rest = [] :: [pid()],
               %% The deadline for ports.
               until :: integer()}).

-record(dumper, {source :: pid(),
                 every :: never | pos_integer(),
                 allowed :: all | [atom()],
                 %% Why the previous dumper has ended, until this one has made a dump.
                 ended :: term(),
                 phase = idle :: idle | asking | #dump{} | {purge, dyntrace_initial_calls:purge()},
                 again = false :: boolean(),
                 %% The process identity probes that were enabled when the dump started.
                 probes = [] :: [atom()],
                 %% The process that reports the ports, and whether it is doing so.
                 ports :: pid(),
                 is_reporting = false :: boolean(),
                 calls :: dyntrace_initial_calls:calls(),
                 labels :: dyntrace_labels:labels(),
                 %% At the start of the dump.
                 registries :: dyntrace_registries:registries(),
                 nodes :: dyntrace_node_identities:nodes()}).

%% A sensitive process makes no trace events.
-spec dumper(pid(), #source{}) -> no_return().
dumper(Source, #source{every = Every, label_keys = Keys, labels = Labels, text = Text, allowed = Allowed,
                       ended = Ended}) ->
    _ = process_flag(sensitive, true),
    alarmed(Every),
    run(#dumper{source = Source, every = Every, allowed = Allowed, ended = Ended,
                calls = dyntrace_initial_calls:new(Keys), labels = dyntrace_labels:new(Labels),
                registries = dyntrace_registries:new(), nodes = dyntrace_node_identities:new(),
                ports = spawn_opt(?MODULE, ports, [self(), Text], [link, {priority, high}])}).

%% Between dumps it hibernates, because the list of processes has become garbage. A failure ends it; a repeated one is
%% not logged.
-spec run(#dumper{}) -> no_return().
run(State = #dumper{ended = Ended}) ->
    try until_idle(State) of
        Idle -> erlang:hibernate(?MODULE, run, [Idle#dumper{ended = none}])
    catch
        Class:Reason:Stack ->
            Failure = {failed, Class, Reason},
            ok = log_failure(Failure, Ended, Stack),
            exit(Failure)
    end.

%% The dumper that ended before has logged the same failure. The stack may contain the list of all processes.
log_failure(Failure, Failure, _) -> ok;
log_failure({failed, Class, Reason}, _, Stack) ->
    logger:error("dyntrace: cannot dump identities: ~0P", [{Class, Reason, Stack}, ?DEPTH]).

until_idle(State) ->
    New = #dumper{phase = Phase, calls = Calls} = receive Message -> handle(Message, State) end,
    case Phase =:= idle andalso dyntrace_initial_calls:is_idle(Calls) of
        true -> New;
        false -> until_idle(New)
    end.

handle(dump, State = #dumper{phase = idle}) ->
    ask_labels(State);
handle(dump, State) ->
    State#dumper{again = true};
handle({sampled, Pids}, State) ->
    report_sampled(Pids, State);
handle({timeout, _, every}, State = #dumper{every = Every}) ->
    alarmed(Every),
    handle(dump, State);
handle({timeout, _, next}, State = #dumper{phase = Phase}) ->
    next(Phase, State);
handle({reported_ports, Ports}, State = #dumper{ports = Ports}) ->
    State#dumper{is_reporting = false};
handle(Message, State = #dumper{calls = Calls, labels = Labels}) ->
    case dyntrace_initial_calls:message(Message, Calls) of
        {answer, Pid, Identity, New} ->
            _ = report_again(Pid, Identity, State),
            State#dumper{calls = New};
        {no_answer, New} ->
            State#dumper{calls = New};
        ignored ->
            handle(dyntrace_labels:message(Message, Labels), Message, State)
    end.

handle(ignored, Message, State = #dumper{nodes = Nodes}) ->
    State#dumper{nodes = dyntrace_node_identities:message(Message, Nodes)};
handle(Answer = {ready, _}, _, State) ->
    ask_labels(Answer, State).

alarmed(never) -> ok;
alarmed(Seconds) -> _ = erlang:start_timer(1000 * Seconds, self(), every), ok.

%% -- A dump ----------------------------------------------------------------------------

%% The dump waits for the labels, for a limited time, so that each process is reported once, with its label.
ask_labels(State = #dumper{labels = Labels, allowed = Allowed}) ->
    case of_processes(enabled(Allowed)) of
        [_ | _] -> ask_labels(dyntrace_labels:ask(Labels), State);
        [] -> start_dump(State)
    end.

of_processes(Enabled) ->
    [Name || Name <- Enabled, lists:member(Name, ?OF_PROCESSES)].

ask_labels({asked, Labels}, State) ->
    State#dumper{phase = asking, labels = Labels};
ask_labels({ready, Labels}, State = #dumper{source = Source}) ->
    ok = report_problem(dyntrace_labels:problem(Labels), Source),
    start_dump(State#dumper{labels = Labels}).

report_problem(none, _) ->
    ok;
report_problem(Problem, Source) ->
    Source ! {?MODULE, self(), {labels, Problem}},
    ok.

%% LTTng enables the probes of a session one by one: there is no dump before one of them has something to report.
start_dump(State = #dumper{allowed = Allowed}) ->
    case enabled(Allowed) -- [dump_start, dump_end] of
        [] -> State#dumper{phase = idle, again = false};
        Enabled -> start_dump(Enabled, State)
    end.

%% The probes that are enabled now: the autotracer's last poll may be an interval ago.
enabled(Allowed) ->
    ours([Name || #{name := Name} <- dyntrace:listeners(), Allowed =:= all orelse lists:member(Name, Allowed)]).

start_dump(Enabled, State = #dumper{nodes = Nodes, ports = Ports, is_reporting = IsReporting}) ->
    Id = dyntrace_settings:get(dumps, 0) + 1,
    ok = dyntrace_settings:put(dumps, Id),
    Probes = of_processes(Enabled),
    Processes = [Pid || Probes =/= [], Pid <- processes()],
    ok = dyntrace:report(dump_start, {Id, length(Processes)}),
    ReportPorts = not IsReporting andalso lists:member(port_identity, Enabled),
    _ = [Ports ! report || ReportPorts],
    Reported = case lists:member(node_identity, Enabled) of
                   true -> dyntrace_node_identities:report_all(Nodes);
                   false -> Nodes
               end,
    paused(State#dumper{phase = #dump{id = Id, rest = Processes, until = now_ms() + ?PORTS_MS}, nodes = Reported,
                        probes = Probes, registries = dyntrace_registries:new(),
                        is_reporting = IsReporting orelse ReportPorts, again = false}).

paused(State) ->
    _ = erlang:start_timer(?PAUSE_MS, self(), next),
    State.

next(Dump = #dump{rest = [], id = Id, count = Count, until = Until},
     State = #dumper{calls = Calls, is_reporting = IsReporting}) ->
    case not IsReporting orelse now_ms() >= Until of
        true ->
            ok = dyntrace:report(dump_end, {Id, Count}),
            paused(State#dumper{phase = {purge, dyntrace_initial_calls:purge(Id, Calls)}});
        false ->
            paused(State#dumper{phase = Dump})
    end;
next(Dump = #dump{rest = Rest}, State) ->
    batch(?BATCH, Rest, Dump, State);
next({purge, Purge}, State = #dumper{again = Again}) ->
    case dyntrace_initial_calls:purge(Purge) of
        done when Again -> ask_labels(State#dumper{phase = idle});
        done -> State#dumper{phase = idle};
        More -> paused(State#dumper{phase = {purge, More}})
    end.

batch(N, [Pid | Rest], Dump = #dump{id = Id, count = Count}, State) when N > 0 ->
    case report_process(Pid, Id, State) of
        {reported, New} -> batch(N - 1, Rest, Dump#dump{count = Count + 1}, New);
        gone -> batch(N - 1, Rest, Dump, State)
    end;
batch(_, Rest, Dump, State) ->
    paused(State#dumper{phase = Dump#dump{rest = Rest}}).

report_process(Pid, Id, State = #dumper{calls = Calls}) ->
    case cheap(Pid) of
        {Parent, Call, Name} ->
            {Initial, Label, New} = dyntrace_initial_calls:of_process(Pid, Call, Id, Calls),
            report_identity(Pid, Parent, Initial, Name, Label, State),
            {reported, State#dumper{calls = New}};
        gone ->
            gone
    end.

%% Nothing before the first dump, which reports all processes.
report_sampled(_, State = #dumper{probes = []}) ->
    State;
report_sampled(Pids, State) ->
    lists:foldl(fun(Pid, Before) ->
                        case report_process(Pid, once, Before) of
                            {reported, After} -> After;
                            gone -> Before
                        end
                end, State, Pids).

%% Items that the VM reads without a signal to the process: no process is woken, and it takes a microsecond even on a
%% busy node.
cheap(Pid) ->
    case process_info(Pid, [parent, initial_call, registered_name]) of
        undefined ->
            gone;
        [{parent, Parent}, {initial_call, Call}, {registered_name, Name}] ->
            {or_empty(Parent), Call, Name}
    end.

or_empty(undefined) -> [];
or_empty(Parent) -> Parent.

report_again(Pid, {Initial, Label}, State) ->
    case cheap(Pid) of
        {Parent, _, Name} -> report_identity(Pid, Parent, Initial, Name, Label, State);
        gone -> ok
    end.

%% Name is [] for a process without a name.
report_identity(Pid, Parent, Initial, Name, Noted, State = #dumper{probes = Probes}) ->
    Label = label(Pid, Name, Noted, State),
    _ = [ok = dyntrace:report(process_identity, {Pid, Parent, Initial, Name, Label, node()})
         || lists:member(process_identity, Probes)],
    _ = [ok = dyntrace:report(process_named, {Pid, Initial, Name, Label}) || lists:member(process_named, Probes)],
    ok.

label(Pid, Name, Noted, #dumper{labels = Labels, registries = Registries}) ->
    case dyntrace_labels:label(Pid, Noted, Labels) of
        '' when Name =:= [] -> dyntrace_registries:label(Pid, Registries);
        Label -> Label
    end.

%% -- Ports -----------------------------------------------------------------------------

%% A separate process waits for the ports' answers. `known': the ports that existed at the last check, sorted.
-record(ports, {dumper :: pid(),
                asker :: dyntrace_port_asker:asker(),
                known = [] :: [port()]}).

%% The process that reports ports.
-spec ports(Dumper :: pid(), full | shape) -> no_return().
ports(Dumper, Text) ->
    _ = process_flag(sensitive, true),
    Report = fun(Port, N) -> report_port(Port, N, Text) end,
    report_ports(#ports{dumper = Dumper, asker = dyntrace_port_asker:new(Report)}).

report_ports(State = #ports{dumper = Dumper}) ->
    receive
        report ->
            Now = lists:sort(erlang:ports()),
            Asked = ask_ports(Now, State#ports{known = Now}),
            Dumper ! {reported_ports, self()},
            report_ports(Asked)
    after ?NEW_PORTS_MS ->
            report_ports(ask_new(State))
    end.

ask_new(State = #ports{known = Known}) ->
    case dyntrace:consumers([port_identity]) =/= [] andalso erlang:system_info(port_count) =< ?MOST_PORTS of
        true ->
            Now = lists:sort(erlang:ports()),
            New = ordsets:subtract(Now, Known),
            {Next, Left} = lists:split(min(?MOST_NEW, length(New)), New),
            ask_ports(Next, State#ports{known = ordsets:subtract(Now, Left)});
        false ->
            State
    end.

ask_ports([], State) -> State;
ask_ports(Ports, State = #ports{asker = Asker}) ->
    State#ports{asker = until_asked(dyntrace_port_asker:ask(Ports, Asker))}.

until_asked(Asker) ->
    case dyntrace_port_asker:is_idle(Asker) of
        true -> Asker;
        false -> until_asked(dyntrace_port_asker:poll(Asker, ?POLL_MS))
    end.

%% Addresses are contents, which `shape' hides.
report_port(Port, N, Text) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    case dyntrace_port_asker:info(Port) of
        {Owner, Name, OsPid} -> ok = dyntrace:report(port_identity, {Port, Owner, shown(Port, Name, Text), OsPid});
        closed -> ok
    end.

shown(_, Name, shape) -> Name;
shown(Port, Name, full) -> dyntrace_port_asker:with_addresses(Port, Name).
