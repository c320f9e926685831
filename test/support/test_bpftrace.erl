%% A real bpftrace as a consumer: starts bpftrace, waits until it is attached, and reads its events.
%%
%%     Consumer = test_bpftrace:start(Library, [message_send]),
%%     ...send a message...
%%     {message_send, #{to := To}} = test_bpftrace:await(Consumer, fun(Event) -> ... end),
%%     Events = test_bpftrace:stop(Consumer).
%%
%% An event is {Probe, #{Field => binary() | integer() | null}}. Its fields are those of the
%% catalogue, `dyntrace:probes()`; null is a NULL pointer. Events are in the order of their time.
-module(test_bpftrace).
-behaviour(gen_server).

-export([missing/0, described/1, start/2, start/3, start_script/2, start_file/2, os_pid/1, await/2, await/3, events/1,
         lines/1, in_time/1, stop/1, stop_script/1, kill/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(DEADLINE, 300000).

%% A signal is sent again after this time until bpftrace reacts.
-define(AGAIN_MS, 5000).

%% At detach, the kernel waits for each probe until no process is in it. That takes long on a busy machine.
-define(DETACH_DEADLINE, 150000).

%% bpftrace reads a string into the 512 bytes of BPF stack, so a long one is read in pieces.
-define(PIECE, 100).

%% The greatest length of a text. Each further piece takes bpftrace time to compile.
-define(LONGEST, 300).

%% Newer versions of bpftrace mark a string as cut if it fills its buffer.
-define(STRLEN, 104).

%% bpftrace's default for the length of strings. The project's scripts use no larger buffers.
-define(DEFAULT_STRLEN, 64).

%% The script ends on its own after this time, in case bpftrace misses the signal when its VM ends: see AGAIN_MS.
-define(LIFETIME_S, 600).

-record(state, {port, os_pid, probes = #{}, attached = [], parts = #{}, events = [], lines = [],
                waiting = [], stopping = [], exited = false}).

%% Why bpftrace can't be used here, or false.
missing() ->
    case os:find_executable("bpftrace") of
        false ->
            "bpftrace is not installed";
        Path ->
            case os:cmd("'" ++ Path ++ "' -e 'BEGIN { printf(\"works\\n\"); exit(); }' 2>&1; echo") of
                Output -> case string:find(Output, "works") of
                              nomatch -> "bpftrace does not work here: " ++ string:trim(Output) ++ no_tracefs(Output);
                              _ -> false
                          end
            end
    end.

%% Newer versions end without a tracefs, and do not report that cause.
no_tracefs(Output) ->
    case re:run(Output, "/sys/kernel/(tracing|debug)/.*No such file") of
        {match, _} -> "\n  No tracefs is mounted. As root: mount -t tracefs tracefs /sys/kernel/tracing";
        nomatch -> ""
    end.

start(Library, Probes) ->
    start(Library, Probes, #{}).

%% Options: `longest`, the bytes to read of each string (300 by default); `os_pid`, to attach to one process; `located`,
%% true to read each argument from the location in its note. Scripts of many probes need that: for each arg0 in a
%% script, bpftrace reads the notes of the whole library again.
start(Library, Probes, Options) ->
    Numbered = maps:from_list([{N, described(Probe)} || {N, Probe} <- lists:zip(lists:seq(1, length(Probes)), Probes)]),
    Pieces = (maps:get(longest, Options, ?LONGEST) + ?PIECE - 1) div ?PIECE,
    Argument = case Options of
                   #{located := true} -> fun(_, Operand) -> located(Operand) end;
                   #{} -> fun argument/2
               end,
    Operands = operands(Library),
    Script = [probe_script(Library, N, Described, maps:get(maps:get(name, Described), Operands), Argument, Pieces)
              || {N, Described} <- maps:to_list(Numbered)],
    start_script(Script, Options#{probes => Numbered}).

%% A probe's description in the catalogue. A labeled probe is named with its label, a probe of an array with its number.
described(Probe) ->
    Base = string:trim(atom_to_list(Probe), trailing, "0123456789"),
    [Described] = [D || D = #{name := Of} <- dyntrace:probes(),
                        Of =:= Probe orelse
                            (is_map_key(labels, D) orelse is_map_key(row, D)) andalso Base =:= atom_to_list(Of)],
    Described#{name := Probe}.

%% The operands in each probe's note: "8@48(%rdi)".
operands(Library) ->
    {0, Output} = test_shell:run("LC_ALL=C readelf -n '~ts'", [Library]),
    {match, Notes} = re:run(Output, "Name: (\\S+)\\s+Location: .*\\s+Arguments: (.*)",
                            [global, {capture, all_but_first, list}]),
    maps:from_list([{list_to_atom(Name), string:lexemes(Arguments, " ")} || [Name, Arguments] <- Notes]).

%% Starts any script. lines/1 returns its output. `strlen' is the length of strings that it reads. Returns when its
%% probes are attached. bpftrace ends when the caller ends.
start_script(Script, Options) ->
    {ok, Consumer} = gen_server:start(?MODULE, {self(), Script, Options}, []),
    ok = gen_server:call(Consumer, attached, ?DEADLINE),
    Consumer.

%% Starts one of the project's scripts from its file, with these arguments.
start_file(File, Args) ->
    {ok, Script} = file:read_file(File),
    start_script(Script, #{args => Args, strlen => ?DEFAULT_STRLEN}).

os_pid(Consumer) ->
    gen_server:call(Consumer, os_pid).

%% The first event, past or future, for which Fun returns true.
await(Consumer, Fun) ->
    await(Consumer, Fun, ?DEADLINE).

await(Consumer, Fun, Deadline) ->
    try gen_server:call(Consumer, {await, Fun}, Deadline)
    catch exit:{timeout, _} -> error({no_such_event, events(Consumer)})
    end.

events(Consumer) ->
    gen_server:call(Consumer, events).

lines(Consumer) ->
    gen_server:call(Consumer, lines).

%% The lines that begin with a time, printed by printf("%llu %s\n", nsecs, ...), sorted by that time. Lines arrive in
%% the order of the per-CPU buffers.
in_time(Lines) ->
    Timed = [{binary_to_integer(Time), Text}
             || Line <- Lines,
                {match, [Time, Text]} <- [re:run(Line, "^(\\d+) (.*)$", [{capture, all_but_first, binary}])]],
    [Text || {_, Text} <- lists:keysort(1, Timed)].

%% Detaches by SIGINT, and returns all recorded events.
stop(Consumer) ->
    {Events, _} = signal(Consumer, "INT"),
    Events.

%% The same for a script. Returns all lines that it printed, including those of its END.
stop_script(Consumer) ->
    {_, Lines} = signal(Consumer, "INT"),
    Lines.

%% Kills bpftrace, as the kernel does when memory is short.
kill(Consumer) ->
    {_, _} = signal(Consumer, "KILL"),
    ok.

signal(Consumer, Signal) ->
    {Events, Lines} = gen_server:call(Consumer, {stop, Signal}, ?DETACH_DEADLINE),
    gen_server:stop(Consumer),
    [] = [Line || Line <- Lines, binary:match(Line, <<"Lost ">>) =/= nomatch],
    {Events, Lines}.

%% -- The script ------------------------------------------------------------------------

%% One line per number, and one per piece of a string. Each begins with time, thread and probe, which identify the
%% event.
probe_script(Library, N, #{provider := Provider, name := Probe, fields := Fields}, Operands, Argument, Pieces) ->
    Numbered = lists:zip3(lists:seq(0, length(Fields) - 1), Fields, Operands),
    ["usdt:", Library, ":", atom_to_list(Provider), ":", atom_to_list(Probe), " {\n",
     "  $t = nsecs;\n",
     [field_script(N, I, Type, Argument(I, Operand), Pieces) || {I, #{type := Type}, Operand} <- Numbered],
     io_lib:format("  printf(\"@@ %llu %d ~b ~b 0 \\n\", $t, tid);\n}\n", [N, length(Fields)])].

field_script(N, I, string, Argument, Pieces) ->
    ["  $s = ", Argument, ";\n",
     [io_lib:format("  printf(\"@@ %llu %d ~b ~b ~b %d %s\\n\", $t, tid, $s != 0, str($s + ~b, ~b));\n",
                    [N, I, K, K * ?PIECE, ?PIECE + 1]) || K <- lists:seq(0, Pieces - 1)]];
field_script(N, I, Type, Argument, _Pieces) ->
    {Format, Cast} = case Type of
                         int32 -> {"%d", "(int32)"};
                         int64 -> {"%lld", "(int64)"};
                         uint32 -> {"%llu", ""};
                         uint64 -> {"%llu", ""}
                     end,
    io_lib:format("  printf(\"@@ %llu %d ~b ~b 0 ~s\\n\", $t, tid, ~s~s);\n", [N, I, Format, Cast, Argument]).

%% bpftrace before 0.27 has no arg6 and above, so these arguments are read from the location in their note.
argument(I, _) when I < 6 ->
    "arg" ++ integer_to_list(I);
argument(_, Operand) ->
    located(Operand).

located(Operand) ->
    Type = fun(Size) -> maps:get(Size, #{"8" => "uint64", "-8" => "int64", "4" => "uint32", "-4" => "int32"}) end,
    case re:run(Operand, "^(-?\\d)@(-?\\d*)(\\(?)%(\\w+)", [{capture, all_but_first, list}]) of
        {match, [Size, Offset, "(", Register]} -> io_lib:format("(*(~s*)uptr(reg(\"~s\") + (~s)))",
                                                                [Type(Size), register_name(Register), offset(Offset)]);
        {match, [Size, "", "", Register]} -> io_lib:format("(~s)reg(\"~s\")", [Type(Size), register_name(Register)])
    end.

offset("") -> "0";
offset(Offset) -> Offset.

%% bpftrace's name of a register. It has only whole registers: ax for rax and eax, r10 for r10d.
register_name([Width, First | Rest]) when First >= $a, Width =:= $r orelse Width =:= $e -> [First | Rest];
register_name(Name) -> string:trim(Name, trailing, "d").

%% -- The process that owns the port ----------------------------------------------------

init({Owner, Script, Options}) ->
    _ = monitor(process, Owner),
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "dyntrace-" ++ os:getpid() ++ "-" ++
                             integer_to_list(erlang:unique_integer([positive])) ++ ".bt"),
    ok = file:write_file(File, [Script, io_lib:format("interval:s:~b { exit(); }~n", [?LIFETIME_S])]),
    Pid = case Options of
              #{os_pid := OsPid} -> ["-p", OsPid];
              #{} -> []
          end,
    %% A bpftrace that outlives a killed VM would keep the probes enabled.
    Port = open_port({spawn_executable, os:find_executable("setpriv")},
                     [{args, ["--pdeathsig", "INT", "bpftrace", "-B", "line"] ++ Pid ++ [File] ++
                           maps:get(args, Options, [])},
                      {line, 4096}, binary, exit_status, stderr_to_stdout,
                      {env, [{"__BPFTRACE_NOTIFY_PROBES_ATTACHED", "1"},
                             {"BPFTRACE_STRLEN", integer_to_list(maps:get(strlen, Options, ?STRLEN))},
                             {"BPFTRACE_PERF_RB_PAGES", "1024"}]}]),
    {os_pid, OsPid1} = erlang:port_info(Port, os_pid),
    {ok, #state{port = Port, os_pid = OsPid1, probes = maps:get(probes, Options, #{}),
                attached = {waiting, File, []}}}.

handle_call(attached, From, State = #state{attached = {waiting, File, Calls}}) ->
    {noreply, State#state{attached = {waiting, File, [From | Calls]}}};
handle_call(attached, _From, State) ->
    {reply, ok, State};
handle_call(os_pid, _From, State) ->
    {reply, State#state.os_pid, State};
handle_call(events, _From, State) ->
    {reply, in_order(State), State};
handle_call(lines, _From, State) ->
    {reply, lists:reverse(State#state.lines), State};
handle_call({await, Fun}, From, State) ->
    {noreply, State#state{waiting = unserved([{Fun, From}], in_order(State)) ++ State#state.waiting}};
handle_call({stop, _}, _From, State = #state{exited = true}) ->
    {reply, result(State), State};
handle_call({stop, Signal}, From, State) ->
    ok = send_signal(Signal, State),
    _ = erlang:send_after(?AGAIN_MS, self(), {again, Signal}),
    {noreply, State#state{stopping = [From | State#state.stopping]}}.

handle_cast(_, State) -> {noreply, State}.

handle_info({Port, {data, {_, Line}}}, State = #state{port = Port}) ->
    {noreply, line(Line, State)};
handle_info({Port, {exit_status, Status}}, State = #state{port = Port}) ->
    case State#state.attached of
        {waiting, _, _} -> {stop, {bpftrace_failed, Status, lists:reverse(State#state.lines)},
                             State#state{exited = true}};
        attached ->
            [gen_server:reply(From, result(State)) || From <- State#state.stopping],
            {noreply, State#state{exited = true, stopping = []}}
    end;
handle_info({again, _}, State = #state{exited = true}) ->
    {noreply, State};
handle_info({again, Signal}, State) ->
    catches_interrupts(State) andalso send_signal(Signal, State),
    _ = erlang:send_after(?AGAIN_MS, self(), {again, Signal}),
    {noreply, State};
handle_info({'DOWN', _, process, _Owner, _}, State) ->
    {stop, normal, State};
handle_info(_, State) -> {noreply, State}.

terminate(_, #state{exited = true}) ->
    ok;
terminate(_, State) ->
    %% The owner has ended. If bpftrace stayed attached, other tests would see a consumer.
    send_signal("KILL", State).

%% If bpftrace has ended meanwhile, it needs no signal: its exit status is on the way.
send_signal(Signal, #state{os_pid = OsPid}) ->
    Output = os:cmd("kill -" ++ Signal ++ " " ++ integer_to_list(OsPid)),
    true = Output =:= "" orelse string:find(Output, "No such process") =/= nomatch,
    ok.

%% As long as bpftrace has a handler for SIGINT, its loop has not been interrupted. bpftrace misses a SIGINT that
%% arrives outside of its wait.
catches_interrupts(#state{os_pid = OsPid}) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/status") of
        {ok, Status} ->
            {match, [Caught]} = re:run(Status, "SigCgt:\\s+([0-9a-f]+)", [{capture, all_but_first, list}]),
            list_to_integer(Caught, 16) band 2#10 =/= 0;
        {error, _} -> false
    end.

result(State) ->
    {in_order(State), lists:reverse(State#state.lines)}.

line(<<"__BPFTRACE_NOTIFY_PROBES_ATTACHED">>, State = #state{attached = {waiting, File, Calls}}) ->
    ok = file:delete(File),
    [gen_server:reply(From, ok) || From <- Calls],
    State#state{attached = attached};
line(<<"@@ ", Part/binary>>, State) ->
    [Time, Tid, N, I, K | Text] = binary:split(Part, <<" ">>, [global]),
    part({binary_to_integer(Time), Tid, binary_to_integer(N)},
         {binary_to_integer(I), binary_to_integer(K)}, iolist_to_binary(lists:join(" ", Text)), State);
line(Line, State = #state{lines = Lines}) ->
    State#state{lines = [Line | Lines]}.

part(Key = {_, _, N}, Index = {I, _}, Text, State = #state{parts = Parts, probes = Probes}) ->
    #{name := Probe, fields := Fields} = maps:get(N, Probes),
    Mine = maps:put(Index, Text, maps:get(Key, Parts, #{})),
    case length(Fields) of
        I ->
            Event = {Probe, maps:from_list([value(J, Field, Mine) || {J, Field} <- numbered(Fields)])},
            State#state{parts = maps:remove(Key, Parts), events = [{Key, Event} | State#state.events],
                        waiting = unserved(State#state.waiting, [Event])};
        _ ->
            State#state{parts = Parts#{Key => Mine}}
    end.

numbered(List) ->
    lists:zip(lists:seq(0, length(List) - 1), List).

value(I, #{name := Name, type := string}, Parts) ->
    case Parts of
        #{{I, 0} := <<"0 ", _/binary>>} -> {Name, null};
        #{} -> {Name, iolist_to_binary(pieces(I, 0, Parts))}
    end;
value(I, #{name := Name}, Parts) ->
    {Name, binary_to_integer(maps:get({I, 0}, Parts))}.

%% A piece that is not full is the last one. Bytes after it do not belong to the string.
pieces(I, K, Parts) ->
    case Parts of
        #{{I, K} := <<"1 ", Text:?PIECE/binary, _/binary>>} -> [Text | pieces(I, K + 1, Parts)];
        #{{I, K} := <<"1 ", Text/binary>>} -> [Text];
        #{} -> []
    end.

%% The waiting callers for which no event matches. There may be very many events, so each is examined once.
unserved(Waiting, Events) ->
    [W || W = {Fun, From} <- Waiting, not served(Fun, From, Events)].

served(Fun, From, Events) ->
    case lists:search(Fun, Events) of
        {value, Event} -> gen_server:reply(From, Event), true;
        false -> false
    end.

in_order(#state{events = Events}) ->
    [Event || {_, Event} <- lists:keysort(1, Events)].
