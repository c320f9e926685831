%% @private Calls erlang:port_info/1 for one port after another. The port itself answers, and its driver may delay that
%% for any time. So a separate process asks; when a port does not answer, that process goes on waiting for it, and
%% another process asks the remaining ports.
%%
%% The processes are linked to the caller, which polls.
-module(dyntrace_port_asker).

-export([new/1, ask/2, poll/2, is_idle/1, info/1, with_addresses/2, with_addresses/4, stop/1]).

-export_type([asker/0]).

%% How long a port may delay the remaining ones, and how many processes may wait for such ports.
-define(PORT_MS, 1000).
-define(MAX_STUCK, 10).

-record(asking, {pid, monitor,
                 %% The ports that the process asks, and how many it has asked.
                 ports :: [port()],
                 asked = counters:new(1, []),
                 %% How many it had asked at the time `since', in ms.
                 seen = 0,
                 since = now_ms()}).

-record(asker, {asks :: fun((port(), N :: pos_integer()) -> term()),
                asking = none :: none | #asking{},
                %% The processes that wait for a port, latest first.
                stuck = [] :: [{port(), pid()}]}).

-opaque asker() :: #asker{}.

%% Asks is called for each port, which is the Nth port of the asking process, and calls info/1.
-spec new(Asks :: fun((port(), N :: pos_integer()) -> term())) -> asker().
new(Asks) ->
    #asker{asks = Asks}.

%% The asker must be idle. A port for which a process still waits is not asked again.
-spec ask([port()], asker()) -> asker().
ask(Ports, Asker = #asker{asking = none, stuck = Stuck, asks = Asks}) ->
    case [Port || Port <- Ports, not lists:keymember(Port, 1, Stuck)] of
        [] ->
            Asker;
        ToAsk ->
            New = #asking{ports = ToAsk},
            {Pid, Ref} = spawn_opt(fun() -> asked(Asks, ToAsk, New#asking.asked) end, [link, monitor]),
            Asker#asker{asking = New#asking{pid = Pid, monitor = Ref}}
    end.

%% Waits up to Wait ms until all ports have been asked, and skips to the next ports if one does not answer.
-spec poll(asker(), Wait :: non_neg_integer()) -> asker().
poll(Asker = #asker{stuck = Stuck}, Wait) ->
    gone_on(answered(Asker#asker{stuck = [Waiting || Waiting = {_, Pid} <- Stuck, is_process_alive(Pid)]}, Wait)).

%% Whether all ports have been asked; some may not have answered yet.
-spec is_idle(asker()) -> boolean().
is_idle(#asker{asking = Asking}) ->
    Asking =:= none.

%% The answer of a port. OsPid is 0 if the port has no operating system process.
-spec info(port()) -> {Owner :: pid(), Name :: string(), OsPid :: non_neg_integer()} | closed.
info(Port) ->
    case erlang:port_info(Port) of
        undefined -> closed;
        Info -> {value(connected, Info), value(name, Info), os_pid(value(os_pid, Info))}
    end.

%% Socket drivers.
-define(SOCKETS, ["tcp_inet", "udp_inet"]).

%% bpftrace reads 63 bytes of a text by default.
-define(MAX_NAME, 63).

%% Between the addresses of both ends.
-define(ARROW, " <-> ").

%% The name of a port and, for a socket, its addresses: `tcp_inet 127.0.0.1:5672 <-> 127.0.0.1:59732', the local one
%% first. The VM does not report which end has connected. The port itself answers, as for info/1.
-spec with_addresses(port(), Name :: string()) -> string().
with_addresses(Port, Name) ->
    case lists:member(Name, ?SOCKETS) of
        true -> with_addresses(Port, Name, fun inet:sockname/1, fun inet:peername/1);
        false -> Name
    end.

%% The same for any socket, by functions that return its addresses as those of `inet' do.
-spec with_addresses(Socket, Name :: string(), Own :: fun((Socket) -> Address), Peer :: fun((Socket) -> Address)) ->
          string() when Address :: {ok, term()} | {error, term()}.
with_addresses(Socket, Name, Own, Peer) ->
    joined(Name, address(Own, Socket), address(Peer, Socket)).

joined(Name, "", "") ->
    Name;
joined(Name, Own, "") ->
    Name ++ " " ++ cut(Own, ?MAX_NAME - length(Name) - 1);
%% A local socket that has connected without a path of its own.
joined(Name, "", Peer) ->
    Name ++ ?ARROW ++ cut(Peer, ?MAX_NAME - length(Name) - length(?ARROW));
joined(Name, Own, Peer) ->
    Most = (?MAX_NAME - length(Name) - 1 - length(?ARROW)) div 2,
    Name ++ " " ++ cut(Own, Most) ++ ?ARROW ++ cut(Peer, Most).

%% Cut in the middle, because two addresses of one network differ at their ends.
cut(Text, Most) when length(Text) =< Most ->
    Text;
cut(Text, Most) ->
    End = (Most - 2) * 2 div 3,
    lists:sublist(Text, Most - 2 - End) ++ ".." ++ lists:nthtail(length(Text) - End, Text).

%% Empty if it has no address. The port of an external program may have a driver's name; then the call raises badarg.
address(Ask, Port) ->
    try Ask(Port) of
        {ok, {Ip, Number}} when is_tuple(Ip), Number > 0 -> ip(Ip, inet:ntoa(Ip)) ++ [$: | integer_to_list(Number)];
        {ok, {local, Path}} when is_binary(Path) -> [printable(Byte) || <<Byte>> <= Path];
        _ -> ""
    catch
        _:_ -> ""
    end.

ip(Ip, Text) when tuple_size(Ip) =:= 8 -> "[" ++ Text ++ "]";
ip(_, Text) -> Text.

printable(Byte) when Byte > $\s, Byte < 127 -> Byte;
printable(_) -> $?.

value(Key, Info) ->
    proplists:get_value(Key, Info).

os_pid(undefined) -> 0;
os_pid(OsPid) -> OsPid.

%% Ends all processes, also those that wait for a port.
-spec stop(asker()) -> ok.
stop(#asker{asking = Asking, stuck = Stuck}) ->
    _ = [true = demonitor(Ref, [flush]) || #asking{monitor = Ref} <- [Asking]],
    lists:foreach(fun kill/1, [Pid || #asking{pid = Pid} <- [Asking]] ++ [Pid || {_, Pid} <- Stuck]).

%% The link would end a caller that does not trap exits.
kill(Pid) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    ok.

%% -- The asking process ----------------------------------------------------------------

%% A sensitive process makes no trace events.
asked(Asks, Ports, Asked) ->
    _ = process_flag(sensitive, true),
    lists:foldl(fun(Port, N) ->
                        ok = check_stop(),
                        _ = Asks(Port, N),
                        counters:add(Asked, 1, 1),
                        N + 1
                end, 1, Ports).

%% Ends this process if another one asks the remaining ports.
check_stop() ->
    receive stop -> exit(normal)
    after 0 -> ok
    end.

%% -- Its caller ------------------------------------------------------------------------

answered(Asker = #asker{asking = #asking{monitor = Ref}}, Wait) ->
    receive {'DOWN', Ref, process, _, _} -> Asker#asker{asking = none}
    after Wait -> Asker
    end;
answered(Asker, _) ->
    Asker.

gone_on(Asker = #asker{asking = none}) ->
    Asker;
gone_on(Asker = #asker{asking = Asking = #asking{seen = Seen, since = Since}}) ->
    case {counters:get(Asking#asking.asked, 1), now_ms() - Since} of
        {Seen, Past} when Past > ?PORT_MS -> without(lists:nthtail(Seen, Asking#asking.ports), Asker);
        {Seen, _} -> Asker;
        {More, _} -> Asker#asker{asking = Asking#asking{seen = More, since = now_ms()}}
    end.

without([Port | Others], Asker = #asker{asking = #asking{pid = Pid, monitor = Ref}, stuck = Stuck}) ->
    Pid ! stop,
    true = demonitor(Ref, [flush]),
    {Kept, TooMany} = lists:split(min(length(Stuck), ?MAX_STUCK - 1), Stuck),
    ok = lists:foreach(fun({_, Longest}) -> kill(Longest) end, TooMany),
    ask(Others, Asker#asker{asking = none, stuck = [{Port, Pid} | Kept]});
without([], Asker) ->
    Asker.

now_ms() ->
    erlang:monotonic_time(millisecond).
