%% A real LTTng as a consumer: a session daemon, its sessions, and their recordings.
%%
%%     Daemon = test_lttng:start_daemon(),
%%     Session = test_lttng:start(Daemon, [message_send]),
%%     ...send a message when dyntrace:listeners/0 has the probe...
%%     [{message_send, #{to := To}}] = test_lttng:stop(Session).
%%
%% Events have the form of those of test_bpftrace. A daemon that already runs is used and left running; a daemon that
%% was started here ends with the process that started it. If this VM is killed, its sessions and daemons end.
-module(test_lttng).

-export([tools_missing/0, reader_missing/0, missing/0, start_daemon/0, start_daemon/1, stop_daemon/1, kill_daemon/1,
         signal_daemon/2, start/2, start/3, enable/2, disable/2, stop/1, finish/1, text/1, read/1, declared/1,
         discarded/1, balance/2, folder/1, name/1, destroy/1, lttng/3, tracepoints/2, tracepoints/3, home/1]).

-define(DEADLINE_MS, 20000).

-record(daemon, {os_pid, keeper, prefix = ""}).
-record(session, {daemon, name, folder, event = "", guard}).

%% The LTTng tools that are missing here, or false.
tools_missing() ->
    not_installed(["lttng", "lttng-sessiond", "babeltrace2"]).

not_installed(Tools) ->
    case [Tool || Tool <- Tools, os:find_executable(Tool) =:= false] of
        [] -> false;
        Missing -> lists:flatten(lists:join(", ", Missing)) ++ " not installed"
    end.

%% The requirement of read/1 that is missing here, or false. read/1 does not need LTTng.
reader_missing() ->
    case {not_installed(["babeltrace2"]), test_shell:run("/usr/bin/python3 -c 'import bt2'", [])} of
        {false, {0, _}} -> false;
        {false, _} -> "python3-bt2 is not installed";
        {Missing, _} -> Missing
    end.

%% The requirement of recording and reading that is missing here, or false.
missing() ->
    test_require:first([fun tools_missing/0, fun reader_missing/0]).

%% -- Daemons ---------------------------------------------------------------------------------

start_daemon() ->
    start_daemon("").

%% Commands run with Prefix, for example as another user: `setpriv ...`, `env ...`.
start_daemon(Prefix) ->
    case answers(Prefix) of
        true ->
            #daemon{prefix = Prefix};
        _ ->
            Self = self(),
            {Keeper, _} = spawn_monitor(fun() -> keep_daemon(Prefix, Self) end),
            receive
                {Keeper, OsPid} -> #daemon{os_pid = OsPid, keeper = Keeper, prefix = Prefix};
                {'DOWN', _, process, Keeper, Reason} -> error({no_session_daemon, Reason})
            end
    end.

keep_daemon(Prefix, Owner) ->
    Ref = monitor(process, Owner),
    {Port, OsPid, Guard} = launch(Prefix, erlang:monotonic_time(millisecond) + ?DEADLINE_MS),
    Owner ! {self(), OsPid},
    ok = keep(Port, OsPid, Ref),
    release(Guard).

%% A daemon that ends still holds its place briefly after it has stopped answering. Another daemon then exits at once,
%% and is started again.
launch(Prefix, Deadline) ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "exec " ++ Prefix ++ " lttng-sessiond --no-kernel"]}, binary, stderr_to_stdout,
                      exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Guard = guard("kill -CONT ~b; kill ~b", [OsPid, OsPid]),
    test_wait:until("the session daemon answers", true, fun() -> has_ended(Port) orelse answers(Prefix) end),
    case {has_ended(Port), erlang:monotonic_time(millisecond) < Deadline} of
        {false, _} -> {Port, OsPid, Guard};
        {true, true} -> release(Guard), launch(Prefix, Deadline);
        {true, false} -> error({session_daemon_ends, test_shell:said(Port)})
    end.

has_ended(Port) ->
    erlang:port_info(Port) =:= undefined.

answers(Prefix) ->
    case test_shell:run("~s lttng --no-sessiond list", [Prefix]) of
        {0, _} -> true;
        Failed -> Failed
    end.

%% A shell that runs the command when this VM has ended for any reason: its standard input is closed then.
guard(Format, Args) ->
    Script = ["trap '' INT TERM HUP; read released || { ", io_lib:format(Format, Args), "; } >/dev/null 2>&1"],
    Self = self(),
    Guard = spawn(fun() ->
                          Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script]}, exit_status]),
                          Self ! {self(), watches},
                          receive release -> true = port_command(Port, "released\n") end,
                          receive {Port, {exit_status, _}} -> ok end
                  end),
    receive {Guard, watches} -> Guard end.

release(Guard) ->
    Ref = monitor(process, Guard),
    Guard ! release,
    receive {'DOWN', Ref, process, Guard, _} -> ok end.

keep(Port, OsPid, Ref) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, {data, _}} -> keep(Port, OsPid, Ref);
        stop -> signal(OsPid, "TERM"), keep(Port, OsPid, Ref);
        {'DOWN', Ref, process, _, _} -> signal(OsPid, "CONT"), signal(OsPid, "TERM"), keep(Port, OsPid, Ref)
    end.

%% Ends a daemon that start_daemon started, and waits for its end.
stop_daemon(#daemon{keeper = undefined}) ->
    ok;
stop_daemon(#daemon{keeper = Keeper}) ->
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, _} -> ok end.

kill_daemon(Daemon = #daemon{keeper = Keeper}) ->
    Ref = monitor(process, Keeper),
    ok = signal_daemon(Daemon, "KILL"),
    receive {'DOWN', Ref, process, Keeper, _} -> ok end.

%% A stopped daemon must not answer anything, but on a busy machine its threads keep running until the kernel has
%% stopped each of them. It answers `lttng' before it listens for nodes, which treat a daemon that does not listen as
%% absent.
signal_daemon(#daemon{os_pid = OsPid}, "STOP") when is_integer(OsPid) ->
    ok = test_wait:until("the daemon listens for nodes", fun() -> listens(OsPid) end),
    signal(OsPid, "STOP"),
    ok = test_wait:until("the daemon's threads have stopped", ["T"], fun() -> thread_states(OsPid) end);
signal_daemon(#daemon{os_pid = OsPid}, Signal) when is_integer(OsPid) ->
    signal(OsPid, Signal).

%% Whether the daemon has a listening socket (__SO_ACCEPTCON) for nodes. It checks the daemon's own descriptors, because
%% other tests, isolated from this one, have a socket with the same path.
listens(OsPid) ->
    Proc = lists:concat(["/proc/", OsPid]),
    Open = [Socket || File <- filelib:wildcard(Proc ++ "/fd/*"), {ok, "socket:" ++ Socket} <- [file:read_link(File)]],
    {ok, Sockets} = file:read_file(Proc ++ "/net/unix"),
    Rows = [string:lexemes(Row, " ") || Row <- string:lexemes(binary_to_list(Sockets), "\n")],
    lists:any(fun([_, _, _, "00010000", _, _, Number, Path]) ->
                      lists:member("[" ++ Number ++ "]", Open) andalso
                          string:find(Path, "/lttng-ust-sock-") =/= nomatch;
                 (_) ->
                      false
              end, Rows).

thread_states(OsPid) ->
    Files = filelib:wildcard(lists:concat(["/proc/", OsPid, "/task/*/status"])),
    lists:usort([State || File <- Files, {ok, Status} <- [file:read_file(File)],
                          {match, [State]} <- [re:run(Status, "\nState:\t(\\w)", [{capture, all_but_first, list}])]]).

signal(OsPid, Signal) ->
    _ = test_shell:run("kill -~s ~b", [Signal, OsPid]),
    ok.

%% -- Sessions --------------------------------------------------------------------------------

start(Daemon, Probes) ->
    start(Daemon, Probes, #{}).

%% Options: `channel`, options of `lttng enable-channel`; `event`, options of `lttng enable-event`;
%% `create`, options of `lttng create` in place of its output folder; `vpid`, the only process to
%% record.
start(Daemon, Probes, Options) ->
    Name = io_lib:format("dyntrace-~s-~b", [os:getpid(), erlang:unique_integer([positive])]),
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    Event = maps:get(event, Options, ""),
    Session = #session{daemon = Daemon, name = lists:flatten(Name), folder = Folder, event = Event},
    %% Before the session exists, because this VM may be killed as soon as it does.
    Guard = guard("timeout 50 ~s lttng --no-sessiond destroy ~s; rm -rf '~ts'", [Daemon#daemon.prefix, Name, Folder]),
    {0, _} = lttng(Daemon, "create ~s ~s", [Name, maps:get(create, Options, "--output=" ++ Folder)]),
    {0, _} = lttng(Daemon, "enable-channel -u -s ~s ~s channel",
                   [Name, maps:get(channel, Options, "--subbuf-size=1M --num-subbuf=8")]),
    Events = lists:join(",", [io_lib:format("~s:~s", [provider(Probe), Probe]) || Probe <- Probes]),
    [{0, _} = lttng(Daemon, "enable-event -u -s ~s -c channel '~s' ~s", [Name, Events, Event]) || Probes =/= []],
    [{0, _} = lttng(Daemon, "add-context -u -s ~s -c channel -t ~s", [Name, Context])
     || Context <- maps:get(contexts, Options, [])],
    [{0, _} = lttng(Daemon, "track -u -s ~s --vpid=~s", [Name, Vpid]) || #{vpid := Vpid} <- [Options]],
    {0, _} = lttng(Daemon, "start ~s", [Name]),
    Session#session{guard = Guard}.

%% Enables the probe in a running session.
enable(Session = #session{event = Event}, Probe) -> switch("enable", Session, Probe, Event).
disable(Session, Probe) -> switch("disable", Session, Probe, "").

switch(How, #session{daemon = Daemon, name = Name}, Probe, Options) ->
    {0, _} = lttng(Daemon, "~s-event -u -s ~s -c channel '~s:~s' ~s", [How, Name, provider(Probe), Probe, Options]),
    ok.

%% A pattern for several names belongs to the first provider. OTP's own `dyntrace` has no catalogue.
provider('*') ->
    org_erlang_dyntrace;
provider(Probe) ->
    hd([Provider || #{name := Name, provider := Provider} <- dyntrace:probes(), Name =:= Probe]
       ++ [org_erlang_dyntrace]).

folder(#session{folder = Folder}) ->
    Folder.

name(#session{name = Name}) ->
    Name.

%% Stops and destroys the session; returns its events.
stop(Session = #session{daemon = Daemon, name = Name, folder = Folder}) ->
    {0, _} = lttng(Daemon, "stop ~s", [Name]),
    Events = read(Folder),
    ok = destroy(Session),
    Events.

%% The same, without reading the recording: it stays in the folder that `create` names.
finish(#session{daemon = Daemon, name = Name, guard = Guard}) ->
    {0, _} = lttng(Daemon, "stop ~s", [Name]),
    {0, _} = lttng(Daemon, "destroy ~s", [Name]),
    release(Guard).

destroy(#session{daemon = Daemon, name = Name, folder = Folder, guard = Guard}) ->
    {0, _} = lttng(Daemon, "destroy ~s", [Name]),
    _ = file:del_dir_r(Folder),
    release(Guard).

lttng(#daemon{prefix = Prefix}, Format, Args) ->
    test_shell:run("~s lttng --no-sessiond " ++ Format, [Prefix | Args]).

%% Makes the folder an LTTNG_HOME with its own current session and the daemon of the user.
home(Folder) ->
    ok = filelib:ensure_path(Folder),
    Daemons = filename:join(os:getenv("LTTNG_HOME", os:getenv("HOME")), ".lttng"),
    ok = file:make_symlink(Daemons, filename:join(Folder, ".lttng")),
    Folder.

%% The tracepoints that a process has registered, of both providers or of one, with repetitions. `lttng list` begins
%% each process with "PID: 17 - Name: ..." or, in 2.15 and later, "Process 17: ...".
tracepoints(Daemon, OsPid) ->
    tracepoints(Daemon, OsPid, "org_erlang_(?:dyntrace|otp)").

tracepoints(Daemon, OsPid, Provider) ->
    {0, Output} = lttng(Daemon, "list -u", []),
    [Name || Part <- re:split(Output, "(?:PID: |Process )(?=[0-9])"),
             re:run(Part, "^" ++ OsPid ++ "\\b") =/= nomatch,
             {match, Names} <- [re:run(Part, [Provider, ":(\\w+)"], [global, {capture, all_but_first, binary}])],
             [Name] <- Names].

%% -- Recordings ---------------------------------------------------------------------------------

read(Folder) ->
    [{Name, maps:from_list([{Field, Value} || {Field, _, Value} <- Fields])} || {Name, Fields} <- lines(Folder)].

%% Stops and destroys the session; returns its events as lines of babeltrace2.
text(Session = #session{daemon = Daemon, name = Name, folder = Folder}) ->
    {0, _} = lttng(Daemon, "stop ~s", [Name]),
    {0, Text} = test_shell:run("babeltrace2 --no-delta --names=payload '~ts' 2>&1", [Folder]),
    ok = destroy(Session),
    binary:split(Text, <<"\n">>, [global, trim_all]).

%% The fields with their types, in order, of each event that the trace declares, that is, of each enabled event.
declared(Folder) ->
    lists:usort([{binary_to_atom(Name), [declared_field(Field) || Field <- Fields]}
                 || Line <- raw("--declared", Folder), [Name | Fields] <- [binary:split(Line, <<"\t">>, [global])]]).

declared_field(Field) ->
    [Name, Type] = binary:split(Field, <<":">>),
    {binary_to_atom(Name), binary_to_atom(Type)}.

%% How many events LTTng reports as discarded.
discarded(Folder) ->
    [<<"#discarded">>, Count] = binary:split(lists:last(raw(Folder)), <<"\t">>),
    binary_to_integer(Count).

%% The counts {Recorded, Lost} of a stopped session of message_send. Each message in Sent, a text, is recorded or
%% counted as lost. Recorded messages are in order, and there are no others. Otherwise raises an error with the
%% difference.
balance(Sent, #session{folder = Folder}) ->
    Recorded = [Message || {message_send, #{message := Message}} <- read(Folder)],
    Lost = discarded(Folder),
    case {without(Recorded, Sent), length(Sent) - length(Recorded)} of
        {[], Lost} -> {length(Recorded), Lost};
        {Extra, _} -> error({unbalanced, [{sent, length(Sent)}, {recorded, length(Recorded)}, {lost, Lost},
                                          {extra_or_out_of_order, lists:sublist(Extra, 10)}]})
    end.

%% [] if the first list is a subsequence of the second; otherwise its elements from the first mismatch on.
without([Same | Recorded], [Same | Sent]) -> without(Recorded, Sent);
without([], _) -> [];
without(Recorded, [_ | Sent]) -> without(Recorded, Sent);
without(Recorded, []) -> Recorded.

lines(Folder) ->
    [{binary_to_atom(Name), [field(Field) || Field <- Fields]}
     || Line <- lists:droplast(raw(Folder)), [Name | Fields] <- [binary:split(Line, <<"\t">>, [global])]].

raw(Folder) ->
    raw("", Folder).

raw(Option, Folder) ->
    {0, Output} = test_shell:run("/usr/bin/python3 '~ts' ~s '~ts' 2>&1",
                                 [filename:join(test_shell:project(), "test/support/read_ctf.py"), Option, Folder]),
    binary:split(Output, <<"\n">>, [global, trim_all]).

field(Field) ->
    [Name, Type, Value] = binary:split(Field, <<":">>, [global]),
    {binary_to_atom(Name), binary_to_atom(Type), case Type of
                                                     <<"string">> -> binary:decode_hex(Value);
                                                     _ -> binary_to_integer(Value)
                                                 end}.
