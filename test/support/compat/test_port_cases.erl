%% Causes the events of ports and drivers, and computes the expected events: like test_cases, for these probes.
-module(test_port_cases).

-export([probes/0, drivers/0, run/1, load/1, answering/0]).

-import(test_cases, [text/1]).

-define(TRACER, {tracer, dyntrace, []}).
-define(FLAGS, [ports, running_ports, send, 'receive']).

%% The probes of the provider org_erlang_otp, in the order of the catalogue.
drivers() ->
    [driver_start, driver_output, driver_outputv, driver_ready_input, driver_ready_output, driver_timeout,
     driver_flush, driver_stop, driver_call, driver_control].

%% The probes of the provider erlang.
probes() ->
    [port__open, port__command, port__control, port__connect, port__exit,
     driver__start, driver__stop, driver__flush, driver__output, driver__outputv, driver__control, driver__call,
     driver__timeout, driver__ready_input, driver__ready_output].

run(Probe) ->
    case lists:member(Probe, drivers()) of
        true -> [{Probe, in_lttng(Fields)} || {_, Fields} <- events(erlang_name(Probe))];
        false -> events(Probe)
    end.

%% driver_start is driver__start of the other provider, with other field names.
erlang_name(Probe) ->
    "driver_" ++ Callback = atom_to_list(Probe),
    list_to_existing_atom("driver__" ++ Callback).

in_lttng(Fields) ->
    Names = #{process => pid, port_name => driver, name => driver},
    maps:from_list([{maps:get(Field, Names, Field), Value} || {Field, Value} <- maps:to_list(Fields)]).

events(port__open) ->
    [{port__open, #{process => text(self()), port_name => Name, port => text(Port)}} || {Port, Name} <- opened()];

events(driver__start) ->
    [{driver__start, #{process => text(self()), name => Name, port => text(Port)}} || {Port, Name} <- opened()];

events(driver__ready_input) ->
    #{listener := Listener, socket := Socket, acceptor := Acceptor, udp := Udp} = exchanged(),
    [{driver__ready_input, #{process => text(Owner), port => text(Port), port_name => Name}}
     || {Owner, Port, Name} <- [{self(), Listener, <<"tcp_inet">>}, {Acceptor, Socket, <<"tcp_inet">>},
                                {self(), Udp, <<"udp_inet">>}]];

events(driver__ready_output) ->
    #{client := Client} = exchanged(),
    [{driver__ready_output, #{process => text(self()), port => text(Client), port_name => <<"tcp_inet">>}}];

events(driver__outputv) ->
    #{client := Client, socket := Socket, acceptor := Acceptor} = exchanged(),
    Header = header(),
    [{driver__outputv, #{process => text(Sender), port => text(Port), port_name => <<"tcp_inet">>,
                         bytes => Header + Bytes}}
     || {Sender, Port, Bytes} <- [{self(), Client, 2}, {Acceptor, Socket, 6}]]
        ++ expected(driver__outputv, lived(outputv));

events(driver__stop) ->
    #{port := Port, name := Name, owner := Owner} = lived(output),
    [{driver__stop, #{process => text(Owner), name => Name, port => text(Port)}}];

events(Probe) ->
    expected(Probe, lived(output)).

%% The expected events of a probe for the life of a port.
expected(Probe, Life = #{port := Port, name := Name}) ->
    [{Probe, maps:merge(#{port => text(Port), port_name => Name}, Fields)} || Fields <- fields(Probe, Life)].

fields(port__command, #{opener := Opener}) ->
    [#{process => text(Opener), command_type => Type} || Type <- [<<"command">>, <<"connect">>, <<"close">>]];
fields(port__control, Life) ->
    [maps:without([command, bytes], Control#{command_no => Command})
     || Control = #{command := Command} <- fields(driver__control, Life)];
fields(port__connect, #{opener := Opener, owner := Owner}) ->
    [#{process => text(Opener), new_process => text(Owner)}];
fields(port__exit, #{owner := Owner}) ->
    [#{process => text(Owner), reason => <<"normal">>}];
fields(driver__flush, #{owner := Owner}) ->
    [#{process => text(Owner)}];
%% The timer of the flush has no event.
fields(driver__timeout, #{owner := Owner}) ->
    [#{process => text(Owner)}];
fields(Output, #{opener := Opener}) when Output =:= driver__output; Output =:= driver__outputv ->
    [#{process => text(Opener), bytes => 5}];
fields(driver__control, #{opener := Opener}) ->
    [#{process => text(Opener), command => Command, bytes => Bytes} || {Command, Bytes} <- [{0, 3}, {1, 1}, {2, 4}]];
fields(driver__call, #{opener := Opener}) ->
    [#{process => text(Opener), command => 7, bytes => byte_size(term_to_binary({a, "b"}))}].

%% -- Causing events -----------------------------------------------------------------------

%% Opens ports of several drivers, and returns them with their names.
opened() ->
    Program = "cat -u",
    ok = load(output),
    Ports = while_traced([ports], fun() ->
                                          Driver = test_driver:open(output),
                                          {ok, Listener} = gen_tcp:listen(0, []),
                                          [Driver, Listener, open_port({spawn, Program}, [])]
                                  end),
    Names = [name(Port) || Port <- Ports],
    closed(Ports),
    ok = test_driver:unload(output),
    lists:zip(Ports, Names).

%% A port of the test driver is opened, gets another owner, and is closed while it has data to flush.
lived(Kind) ->
    ok = load(Kind),
    Self = self(),
    {Port, Owner} =
        while_traced(?FLAGS,
                     fun() ->
                             Port = test_driver:open(Kind),
                             true = port_command(Port, "12345"),
                             receive {Port, {data, <<"12345">>}} -> ok end,
                             <<"abc">> = test_driver:echo(Port, "abc"),
                             {a, "b"} = erlang:port_call(Port, 7, {a, "b"}),
                             Owner = spawn(fun() -> receive {Port, {data, Data}} -> Self ! Data end,
                                                    receive stop -> ok end
                                           end),
                             true = port_connect(Port, Owner),
                             true = unlink(Port),
                             ok = test_driver:timer(Port, 1),
                             receive <<"timeout">> -> ok end,
                             ok = test_driver:queue(Port, "data"),
                             {Port, Owner}
                     end),
    Name = name(Port),
    true = port_close(Port),
    %% The driver can be unloaded once its port is flushed.
    ok = test_driver:unload(Kind),
    ok = test_wait:until("the driver is unloaded", false, fun() -> loaded(Kind) end),
    Owner ! stop,
    #{port => Port, name => Name, opener => Self, owner => Owner}.

loaded(Kind) ->
    {ok, Drivers} = erl_ddll:loaded_drivers(),
    lists:member(test_driver:name(Kind), Drivers).

%% A port that was traced while it returned two results, which are not messages, and sent one message. Its driver is
%% loaded.
answering() ->
    Port = test_driver:open(output),
    1 = test_trace:trace(Port, true, [send, ?TRACER]),
    <<"abc">> = test_driver:echo(Port, "abc"),
    {a, "b"} = erlang:port_call(Port, 7, {a, "b"}),
    Port ! {self(), {connect, self()}},
    receive {Port, connected} -> ok end,
    1 = test_trace:trace(Port, false, [send]),
    true = port_close(Port),
    Port.

%% A connection is accepted by another process, which answers; and a datagram arrives.
exchanged() ->
    Self = self(),
    {Ports, Acceptor} =
        while_traced(?FLAGS,
                     fun() ->
                             {ok, Listener} = gen_tcp:listen(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
                             {ok, Number} = inet:port(Listener),
                             Acceptor = spawn(fun() -> accepted(Listener, Self) end),
                             ok = test_wait:until("the process accepts", fun() -> is_accepting(Acceptor) end),
                             {ok, Client} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary, {active, false}]),
                             Socket = receive {Acceptor, S} -> S end,
                             ok = gen_tcp:send(Client, "hi"),
                             receive {Acceptor, <<"hi">>} -> ok end,
                             _ = untraced([Listener, Client, Socket]),
                             {ok, Udp} = gen_udp:open(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
                             {ok, UdpNumber} = inet:port(Udp),
                             ok = gen_udp:send(Udp, {127, 0, 0, 1}, UdpNumber, "xy"),
                             receive {udp, Udp, _, _, <<"xy">>} -> ok end,
                             _ = untraced([Udp]),
                             {#{listener => Listener, client => Client, socket => Socket, udp => Udp}, Acceptor}
                     end),
    Acceptor ! stop,
    closed(maps:values(maps:without([socket], Ports))),
    Ports#{acceptor => Acceptor}.

%% The bytes that gen_tcp gives the driver besides the data, as a process tracer sees them: none before OTP 26.
header() ->
    {ok, Listener} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listener),
    {ok, Client} = gen_tcp:connect({127, 0, 0, 1}, Number, []),
    1 = erlang:trace(Client, true, ['receive']),
    ok = gen_tcp:send(Client, "x"),
    Size = receive {trace, Client, 'receive', {_, {command, Given}}} -> iolist_size(Given) end,
    closed([Client, Listener]),
    Size - 1.

accepted(Listener, To) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    To ! {self(), Socket},
    receive {tcp, Socket, Data} ->
            ok = gen_tcp:send(Socket, "answer"),
            To ! {self(), Data}
    end,
    receive stop -> ok end.

is_accepting(Pid) ->
    case process_info(Pid, [status, current_function]) of
        [{status, waiting}, {current_function, {prim_inet, _, _}}] -> true;
        _ -> false
    end.

%% Traces the ports that Fun opens, from the moment they are opened.
while_traced(Flags, Fun) ->
    0 = test_trace:trace(new_ports, true, [?TRACER | Flags]),
    Result = Fun(),
    0 = test_trace:trace(new_ports, false, [?TRACER | Flags]),
    Result.

untraced(Ports) ->
    [test_trace:trace(Port, false, [all]) || Port <- Ports].

closed(Ports) ->
    [true = port_close(Port) || Port <- Ports].

name(Port) ->
    {name, Name} = erlang:port_info(Port, name),
    list_to_binary(Name).

%% The driver is built once per node.
load(Kind) ->
    Folder = case persistent_term:get(?MODULE, none) of
                 none -> built();
                 Built -> Built
             end,
    test_driver:load(Folder, Kind).

built() ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "dyntrace-drivers-" ++ os:getpid()),
    ok = filelib:ensure_path(Folder),
    ok = persistent_term:put(?MODULE, test_driver:build(Folder)),
    Folder.
