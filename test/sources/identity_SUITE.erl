%% The identities of processes, ports and nodes: the events of spawns and opened ports, and dumps. Values are compared
%% with Erlang's own.
-module(identity_SUITE).

-include("../support/suite.hrl").

-import(test_autotracer, [start/2, attach/2, asking/1, call/2, until_following/3, until_worker_after/2]).

-define(PROBES, [process_identity, port_identity, node_identity, dump_start, dump_end]).

%% Pids that belong to no process.
-define(NO_PIDS, [<<"<0.32767.8191>">>, <<"<0.268435455.4294967295>">>]).

suite() ->
    [{timetrap, {minutes, 6}}, {ct_hooks, [test_autotracer]}].

all() ->
    [spawned_processes, processes_in_a_dump, without_flags, labels, noted_labels, keys_in_registries,
     fat_processes, hostile_notes,
     labels_of_a_function, function_of_labels_fails, ports, sockets, addresses_are_contents, nodes, no_consumer,
     second_session, second_tracer, tracers_in_the_row, row_alone, storm_of_attaches, every_second,
     dump_during_a_dump, budget_is_spent, hibernating_processes, recorded_from_the_middle, consumer_killed,
     worker_killed, dumper_killed, attach_cycles].

%% -- Processes -------------------------------------------------------------------------------

%% The initial call comes from the arguments of the spawn.
spawned_processes(Config) ->
    start([{interval, 10}], Config),
    ok = call(Config, fun silent/0),
    Consumer = attach([process_identity], Config),
    until_following(processes, [procs], Config),
    until_idle(Config),
    Spawn = fun() -> behaviours() ++ funs() ++ tasks() ++ hostile() end,
    {Parent, Node, Spawned} = call(Config, fun() -> {self(), node(), Spawn()} end),
    Expected = [{test_cases:text(Pid), #{pid => test_cases:text(Pid), parent => parent(By, Parent), initial => Initial,
                                         name => <<>>, label => <<>>, node => test_cases:text(Node)}}
                || {Pid, By, Initial} <- Spawned],
    [test_bpftrace:await(Consumer, fun({_, #{pid := Pid}}) -> Pid =:= Awaited end) || {Awaited, _} <- Expected],
    Events = test_bpftrace:stop(Consumer),
    [?assertEqual([Identity], [Event || {process_identity, Event = #{pid := Of}} <- Events, Of =:= Pid])
     || {Pid, Identity} <- Expected],
    until_following(sources, [], Config).

parent(self, Parent) -> test_cases:text(Parent);
parent(By, _) -> test_cases:text(By).

silent() ->
    logger:set_primary_config(level, none).

%% On the node: processes whose initial call proc_lib translates.
behaviours() ->
    ok = made('Elixir.Shop.Cart'),
    {ok, Server} = gen_server:start(?MODULE, {ok, []}, []),
    {ok, Named} = gen_server:start({local, test_named}, ?MODULE, {ok, []}, []),
    {ok, Machine} = gen_statem:start(?MODULE, {ok, state, []}, []),
    {ok, Manager} = gen_event:start(),
    {ok, NamedManager} = gen_event:start({local, test_manager}),
    {ok, Supervisor} = supervisor:start_link(?MODULE, {ok, {#{}, []}}),
    {ok, NamedSupervisor} = supervisor:start_link({local, test_sup}, ?MODULE, {ok, {#{}, []}}),
    {ok, Bridge} = supervisor_bridge:start_link(?MODULE, bridge),
    {ok, Alias} = gen_server:start('Elixir.Shop.Cart', {ok, []}, []),
    {ok, AliasSupervisor} = supervisor:start_link('Elixir.Shop.Cart', {ok, {#{}, []}}),
    _ = [unlink(Pid) || Pid <- [Supervisor, NamedSupervisor, Bridge, AliasSupervisor]],
    Plain = proc_lib:spawn(timer, sleep, [infinity]),
    Pids = [Server, Named, Machine, Manager, NamedManager, Supervisor, NamedSupervisor, Bridge, Plain],
    [{Pid, self, test_cases:location(proc_lib:translate_initial_call(Pid))} || Pid <- Pids]
        ++ [{Alias, self, <<"Shop.Cart.init/1">>}, {AliasSupervisor, self, <<"supervisor:Shop.Cart/1">>}].

%% A module with init(Result) -> Result.
made(Module) ->
    {ok, Module, Code} =
        compile:forms([{attribute, 1, module, Module}, {attribute, 1, export, [{init, 1}, {loop, 0}, {made_fun, 0}]},
                       {function, 1, made_fun, 0,
                        [{clause, 1, [], [], [{'fun', 1, {clauses, [{clause, 1, [], [], [{call, 1, {atom, 1, loop},
                                                                                         []}]}]}}]}]},
                       {function, 1, init, 1, [{clause, 1, [{var, 1, 'Result'}], [], [{var, 1, 'Result'}]}]},
                       {function, 1, loop, 0, [{clause, 1, [], [], [{'receive', 1, [{clause, 1, [{atom, 1, stop}], [],
                                                                                    [{atom, 1, ok}]}]}]}]}]),
    {module, Module} = code:load_binary(Module, "made", Code),
    ok.

init(bridge) -> {ok, spawn_link(timer, sleep, [infinity]), []};
init(Result) -> Result.

terminate(_, _) -> ok.

callback_mode() -> handle_event_function.

%% On the node.
funs() ->
    Sleep = fun() -> timer:sleep(infinity) end,
    ByName = fun ?MODULE:sleep/0,
    Alias = fun 'Elixir.Shop.Cart':loop/0,
    OfElixir = 'Elixir.Shop.Cart':made_fun(),
    [{spawn(Sleep), self, list_to_binary(erlang:fun_to_list(Sleep))},
     {proc_lib:spawn(Sleep), self, list_to_binary(erlang:fun_to_list(Sleep))},
     {spawn(ByName), self, <<"identity_SUITE:sleep/0">>},
     {spawn(OfElixir), self, list_to_binary(string:replace(erlang:fun_to_list(OfElixir), "<Elixir.", "<"))},
     {spawn(Alias), self, <<"Shop.Cart.loop/0">>},
     {spawn('Elixir.Shop.Cart', loop, []), self, <<"Shop.Cart.loop/0">>},
     {spawn(?MODULE, sleep, []), self, <<"identity_SUITE:sleep/0">>}].

%% On the node: as Elixir's Task.Supervisor starts tasks without a reply. They end at once, without that module.
tasks() ->
    Fun = fun() -> ok end,
    [{spawn(proc_lib, init_p, [self(), [], 'Elixir.Task.Supervised', noreply, [{node(), self(), self()}, [], Call]]),
      self, Initial}
     || {Call, Initial} <- [{{'Elixir.Shop.Cart', loop, []}, <<"Shop.Cart.loop/0">>},
                            {{erlang, apply, [Fun, []]}, list_to_binary(erlang:fun_to_list(Fun))}]].

sleep() -> timer:sleep(infinity).

%% On the node: arguments that look like those of proc_lib.
hostile() ->
    Long = lists:seq(1, 100000),
    [{spawn(M, F, Args), self, Initial}
     || {M, F, Args, Initial} <-
            [{proc_lib, init_p, [self(), [], gen, init_it, Long], <<"gen:init_it/...">>},
             {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, a | b]], <<"proc_lib:init_p/5">>},
             {proc_lib, init_p, [self(), [], gen, init_it, not_a_list], <<"proc_lib:init_p/5">>},
             {proc_lib, init_p, [self(), [], gen, init_it, [gen_server]], <<"gen:init_it/1">>},
             {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, a, b, supervisor, {1, 2, 3}, []]],
              <<"supervisor:init/1">>},
             {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, a, b, "module", c, d]], <<"gen:init_it/6">>},
             {proc_lib, init_p, [self(), [], 1, 2, []], <<"proc_lib:init_p/5">>},
             {proc_lib, init_p, [self(), [], 'Elixir.Task.Supervised', reply, [a, b]],
              <<"Task.Supervised.reply/2">>},
             {proc_lib, init_p, [self(), [], 'Elixir.Task.Supervised', noreply, [a, b, {1, 2, 3}]],
              <<"Task.Supervised.noreply/3">>},
             {proc_lib, init_p, [self(), [], not_a_fun], <<"proc_lib:init_p/3">>},
             {proc_lib, init_p, Long, <<"proc_lib:init_p/...">>},
             {erlang, apply, [not_a_fun, Long], <<"erlang:apply/2">>},
             {'Elixir.\x{e9}\x{3b1}', '\'Elixir.A\'', [],
              <<"\x{e9}\x{3b1}.'\\'Elixir.A\\''/0"/utf8>>}]].

%% The dump that is made when the consumer attaches contains all processes of the node.
processes_in_a_dump(Config) ->
    start([{interval, 10}], Config),
    ok = call(Config, fun silent/0),
    Spawned = call(Config, fun() -> [Pid || {Pid, _, _} <- behaviours() ++ funs()] end),
    Consumer = attach([process_identity, dump_end], Config),
    Expected = call(Config, fun identities/0),
    ?assertEqual([], [Pid || Pid <- Spawned, not is_map_key(test_cases:text(Pid), Expected)]),
    ?assertMatch(#{initial := <<"Shop.Cart.init/1">>}, maps:get(test_cases:text(lists:nth(10, Spawned)), Expected)),
    until_reported(Expected, fun() -> reported(Consumer) end),
    {dump_end, #{processes := Count}} = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= dump_end end),
    _ = test_bpftrace:stop(Consumer),
    ?assert(Count >= maps:size(Expected), {Count, Expected}),
    until_following(sources, [], Config).

%% A consumer of names alone sets no trace flag.
without_flags(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([process_named, dump_end], Config),
    {Pid, Identities} = call(Config, fun() -> {whereis(kernel_sup), identities()} end),
    Expected = maps:with([pid, initial, name, label], maps:get(test_cases:text(Pid), Identities)),
    ?assertMatch(#{name := <<"kernel_sup">>}, Expected),
    _ = test_bpftrace:await(Consumer, fun(Event) -> Event =:= {process_named, Expected} end),
    {dump_end, _} = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= dump_end end),
    ?assertMatch(#{sources := [identities], processes := []}, call(Config, fun dyntrace_autotracer:info/0)),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config).

until_reported(Expected, Reported) ->
    test_wait:until("each process is reported", #{},
                    fun() ->
                            Now = Reported(),
                            maps:filter(fun(Pid, Identity) -> maps:get(Pid, Now, none) =/= Identity end, Expected)
                    end).

%% The last identity of each process.
reported(Consumer) ->
    last(test_bpftrace:events(Consumer)).

last(Events) ->
    maps:from_list([{Pid, Event} || {process_identity, Event = #{pid := Pid}} <- Events]).

%% On the node: Erlang's data about each process, except those of the application.
identities() ->
    Worker = whereis(dyntrace_autotracer),
    maps:from_list([{test_cases:text(Pid), identity(Pid, Parent)}
                    || Pid <- processes(), Pid =/= self(),
                       {parent, Parent} <- [process_info(Pid, parent)],
                       not lists:member(Worker, [Parent | above(Parent)])]).

above(undefined) -> [];
above(Parent) -> [Above || {parent, Above} <- [process_info(Parent, parent)]].

identity(Pid, Parent) ->
    {initial_call, Call} = process_info(Pid, initial_call),
    {dictionary, Noted} = process_info(Pid, dictionary),
    %% In OTP 27 and later, the notes of all processes are read.
    Initial = case element(1, Call) =:= proc_lib
                  orelse lists:keymember('$initial_call', 1, Noted) andalso test_trace:has_sessions() of
                  true -> proc_lib:translate_initial_call(Pid);
                  false -> Call
              end,
    #{pid => test_cases:text(Pid), parent => or_empty(Parent), initial => spelled(Initial), name => name(Pid),
      label => label(Pid), node => test_cases:text(node())}.

or_empty(undefined) -> <<>>;
or_empty(Pid) -> test_cases:text(Pid).

spelled({supervisor, 'Elixir.Shop.Cart', 1}) -> <<"supervisor:Shop.Cart/1">>;
spelled({'Elixir.Shop.Cart', F, A}) -> iolist_to_binary(io_lib:format("Shop.Cart.~tw/~b", [F, A]));
spelled(Location) -> test_cases:location(Location).

name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> test_cases:text(Name);
        [] -> <<>>
    end.

label(Pid) ->
    case erlang:function_exported(proc_lib, get_label, 1) andalso apply(proc_lib, get_label, [Pid]) of
        None when None =:= false; None =:= undefined -> <<>>;
        Label -> test_cases:text_of(Label)
    end.

%% Labels of processes spawned by proc_lib, and of others.
labels(Config) ->
    case call(Config, fun() -> erlang:function_exported(proc_lib, set_label, 1) end) of
        false ->
            {skip, "labels are there from OTP 27 on"};
        true ->
            start([{interval, 10}], Config),
            Label = {cart, [4711]},
            Labeled = call(Config, fun() ->
                                           Self = self(),
                                           Work = fun() ->
                                                          apply(proc_lib, set_label, [Label]),
                                                          Self ! {self(), labeled},
                                                          sleep()
                                                  end,
                                           Pids = [spawn(Work), proc_lib:spawn(Work)],
                                           [receive {Pid, labeled} -> test_cases:text(Pid) end || Pid <- Pids]
                                   end),
            Consumer = attach([process_identity], Config),
            until_reported(maps:with(Labeled, call(Config, fun identities/0)), fun() -> reported(Consumer) end),
            ?assertEqual([<<"{cart,[4711]}">>],
                         lists:usort([maps:get(label, maps:get(Pid, reported(Consumer))) || Pid <- Labeled])),
            _ = test_bpftrace:stop(Consumer)
    end.

%% Notes of programs in the dictionaries of their processes: the first configured key that is present counts.
noted_labels(Config) ->
    start([{interval, 10}, {label_keys, [first_key, process_name]}], Config),
    Queue = {rabbit_amqqueue_process, {resource, <<"/">>, queue, <<"orders">>}},
    Noted = [{Queue, [{process_name, Queue}]},
             {"a", [{process_name, "b"}, {first_key, "a"}]},
             {'', [{other_key, Queue}]}],
    Expected = call(Config, fun() -> [{test_cases:text(noting(Notes)), Label} || {Label, Notes} <- Noted] end),
    Consumer = attach([process_identity], Config),
    until_reported(maps:from_list([{Pid, label_text(Label)} || {Pid, Label} <- Expected]),
                   fun() -> maps:map(fun(_, #{label := Label}) -> Label end, reported(Consumer)) end),
    _ = test_bpftrace:stop(Consumer).

label_text('') -> <<>>;
label_text(Label) -> test_cases:text_of(Label).

%% On the node: a process that has these notes in its dictionary.
noting(Notes) ->
    Self = self(),
    Pid = proc_lib:spawn(fun() ->
                                 _ = [put(Key, Value) || {Key, Value} <- Notes],
                                 Self ! {self(), noted},
                                 sleep()
                         end),
    receive {Pid, noted} -> Pid end.

%% Only a process without a name and with a single key has a label.
keys_in_registries(Config) ->
    _ = test_require:tool(os:find_executable("elixir") =:= false andalso "elixir is not installed", Config),
    {0, Folder} = test_shell:run("elixir -e 'IO.puts(:code.lib_dir(:elixir, :ebin))'", []),
    start([{interval, 10}], Config),
    Pids = call(Config, fun() -> with_keys(string:trim(unicode:characters_to_list(Folder))) end),
    Expected = [<<"{'Elixir.Shop.Carts',{cart,17}}">>, <<"{'Elixir.Shop.Users',<<\"eve\">>}">>, <<>>, <<>>, <<>>, <<>>],
    Consumer = attach([process_identity], Config),
    until_reported(maps:from_list(lists:zip(Pids, Expected)),
                   fun() -> maps:map(fun(_, #{label := Label}) -> Label end, reported(Consumer)) end),
    _ = test_bpftrace:stop(Consumer).

%% On the node: with one key in two registries, in two registries at once, with two keys, with a large key, with a name.
with_keys(Folder) ->
    true = code:add_pathz(Folder),
    {ok, _} = application:ensure_all_started(elixir),
    Self = self(),
    _ = spawn(fun() ->
                      [{ok, _} = 'Elixir.Registry':start_link([{keys, Keys}, {name, Name}, {partitions, Partitions}])
                       || {Name, Keys, Partitions} <- [{'Elixir.Shop.Carts', unique, 3},
                                                       {'Elixir.Shop.Users', unique, 1},
                                                       {'Elixir.Shop.Topics', duplicate, 1}]],
                      Self ! started,
                      sleep()
              end),
    receive started -> ok end,
    [test_cases:text(with_keys(Keys, Name))
     || {Keys, Name} <- [{[{'Elixir.Shop.Carts', {cart, 17}}, {'Elixir.Shop.Topics', news}], none},
                         {[{'Elixir.Shop.Users', <<"eve">>}], none},
                         {[{'Elixir.Shop.Carts', {cart, 18}}, {'Elixir.Shop.Users', <<"bob">>}], none},
                         {[{'Elixir.Shop.Carts', {cart, N}} || N <- lists:seq(19, 30)], none},
                         {[{'Elixir.Shop.Carts', lists:seq(1, 10000)}], none},
                         {[{'Elixir.Shop.Carts', {cart, 31}}], named_cart}]].

with_keys(Keys, Name) ->
    Self = self(),
    Pid = spawn(fun() ->
                        [{ok, _} = 'Elixir.Registry':register(Registry, Key, []) || {Registry, Key} <- Keys],
                        Name =:= none orelse register(Name, self()),
                        Self ! {self(), registered},
                        sleep()
                end),
    receive {Pid, registered} -> Pid end.

%% The process with the largest heap also has its label.
fat_processes(Config) ->
    start([{interval, 10}], Config),
    Pids = call(Config, fun() -> [test_cases:text(fat(Words, N)) || {N, Words} <- [{1, 3000000}, {2, 5000000}, {3, 10}]]
                        end),
    Consumer = attach([process_identity], Config),
    until_reported(maps:from_list(lists:zip(Pids, [<<"{fat,1}">>, <<"{fat,2}">>, <<"{fat,3}">>])),
                   fun() -> maps:map(fun(_, #{label := Label}) -> Label end, reported(Consumer)) end),
    _ = test_bpftrace:stop(Consumer).

%% On the node.
fat(Words, N) ->
    Self = self(),
    Pid = proc_lib:spawn(fun() ->
                                 _ = put(process_name, {fat, N}),
                                 List = lists:seq(1, Words div 2),
                                 Self ! {self(), fat},
                                 sleep(),
                                 lists:sum(List)
                         end),
    receive {Pid, fat} -> Pid end.

%% The dump ends, and each process has a label, regardless of what the notes contain.
hostile_notes(Config) ->
    start([{interval, 10}], Config),
    Notes = [fun() -> lists:seq(1, 1000000) end, fun() -> deep(30000) end, fun() -> [a | b] end,
             fun() -> binary:copy(<<0>>, 10000000) end, fun() -> [1046, 1048] end,
             fun() -> #{self() => make_ref()} end, fun() -> <<1:3>> end, fun() -> fun erlang:self/0 end,
             fun() -> 1 bsl 100000 end, fun() -> "\e[31m\n\0" end],
    Pids = call(Config, fun() -> [test_cases:text(noting([{process_name, Note()}])) || Note <- Notes] end),
    Consumer = attach([process_identity, dump_end], Config),
    Labels = fun() ->
                     [Label || Pid <- Pids, #{label := Label} <- [maps:get(Pid, reported(Consumer), #{})],
                               Label =/= <<>>]
             end,
    test_wait:until("all have labels", length(Pids), fun() -> length(Labels()) end),
    _ = test_bpftrace:await(Consumer, fun({Probe, _}) -> Probe =:= dump_end end),
    First = Labels(),
    ?assertMatch([<<"'...'">>, <<"{30000,{29999,", _/binary>>, <<"[a|b]">> | _], First),
    ?assertEqual([], [Label || Label <- First, Byte <- binary_to_list(Label), Byte < 32]),
    _ = test_bpftrace:stop(Consumer).

deep(0) -> [];
deep(N) -> {N, deep(N - 1)}.

%% A function of the program returns the labels of processes whose dictionaries do not have them. Texts are bounded, and
%% all arrive in one event.
labels_of_a_function(Config) ->
    start([{interval, 10}, {labels, {?MODULE, given_labels}}], Config),
    Texts = [{"queue orders", <<"\"queue orders\"">>}, {<<"queue bills">>, <<"\"queue bills\"">>},
             {io_lib:format("queue ~s", [<<"offers">>]), <<"\"queue offers\"">>},
             {lists:duplicate(1000, $x), iolist_to_binary([$", lists:duplicate(128, $x), $"])},
             {unicode:characters_to_binary([1046]), <<"<<208,150>>">>}],
    Expected = call(Config, fun() ->
                                    Pids = [spawn(fun sleep/0) || _ <- Texts],
                                    Noted = noting([{process_name, known}]),
                                    given([{Noted, "unknown"} | lists:zip(Pids, [Text || {Text, _} <- Texts])]),
                                    maps:from_list([{test_cases:text(Noted), <<"known">>}
                                                    | lists:zip([test_cases:text(Pid) || Pid <- Pids],
                                                                [Shown || {_, Shown} <- Texts])])
                            end),
    Consumer = attach([process_identity], Config),
    Labels = fun() -> maps:map(fun(_, #{label := Label}) -> Label end, reported(Consumer)) end,
    until_reported(Expected, Labels),
    _ = test_bpftrace:stop(Consumer).

%% On the node: Labels is the result of the function, or a fun that it calls.
given(Labels) ->
    persistent_term:put(?MODULE, Labels).

given_labels() ->
    case persistent_term:get(?MODULE) of
        Fun when is_function(Fun) -> Fun();
        Labels -> Labels
    end.

%% Dumps continue regardless of what the function does, and info() reports the error. Two calls never run at the same
%% time.
function_of_labels_fails(Config) ->
    start([{interval, 10}, {labels, {?MODULE, given_labels}}], Config),
    call(Config, fun() -> persistent_term:put(calls, counters:new(1, [])) end),
    Fails = [{fun() -> error(oops) end, "error: oops"},
             {fun() -> exit(kill) end, "exit: kill"},
             {fun() -> [] ++ improper end, "1 elements of its result are not {Pid, Text}"},
             {fun() -> [{self(), [a]}, {self(), [1 | 2]}, {a, "b"}, c, {self(), "fine"}] end,
              "4 elements of its result are not {Pid, Text}"},
             {fun() -> erlang:make_tuple(12000000, []) end, "it takes more than 10000000 words"},
             {fun() -> counters:add(persistent_term:get(calls), 1, 1), receive never -> ok end end,
              "it takes longer than 2000 ms"}],
    call(Config, fun() -> given([]) end),
    Consumer = attach([process_identity, dump_end], Config),
    Ends = fun() -> length([ended || {dump_end, _} <- test_bpftrace:events(Consumer)]) end,
    test_wait:until("the first dump", fun() -> Ends() >= 1 end),
    ?assertEqual(#{}, maps:get(withheld, test_autotracer:following(Config))),
    [begin
         call(Config, fun() -> given(Fun) end),
         until_reported(Why, Ends, Config)
     end || {Fun, Why} <- Fails],
    ?assertEqual(1, call(Config, fun() -> counters:get(persistent_term:get(calls), 1) end)),
    _ = test_bpftrace:stop(Consumer).

%% After a dump. On a loaded machine, a function that needs much memory may at first take too long.
until_reported(Why, Ends, Config) ->
    #{withheld := Before} = test_autotracer:following(Config),
    Dumps = Ends(),
    ok = call(Config, fun dyntrace:dump/0),
    test_wait:until({"a dump", Why}, fun() -> Ends() > Dumps end),
    until_following(withheld, fun(Withheld) -> Withheld =/= Before end, Config),
    #{withheld := #{labels := Text}} = test_autotracer:following(Config),
    case lists:suffix(", last: " ++ Why, Text) of
        true -> ok;
        false ->
            ?assert(lists:suffix("it takes longer than 2000 ms", Text), {Why, Text}),
            until_reported(Why, Ends, Config)
    end.

%% -- Ports -----------------------------------------------------------------------------------

%% Existing ports, including a program; then a new port, which the next dump completes.
ports(Config) ->
    start([{interval, 10}], Config),
    Before = call(Config, fun() -> kept(fun() -> open_port({spawn_executable, "/bin/cat"}, []) end) end),
    Socket = call(Config, fun() -> kept(fun() -> {ok, S} = gen_udp:open(0), S end) end),
    Consumer = attach([port_identity], Config),
    Expected = call(Config, fun port_identities/0),
    ?assertEqual([], [Port || Port <- [Before, Socket], not is_map_key(test_cases:text(Port), Expected)]),
    #{os_pid := Program} = maps:get(test_cases:text(Before), Expected),
    ?assert(Program > 0),
    until_reported(Expected, fun() -> reported_ports(Consumer) end),
    until_following(ports, [ports], Config),
    New = call(Config, fun() -> kept(fun() -> open_port({spawn_executable, "/bin/cat"}, []) end) end),
    Completed = maps:get(test_cases:text(New), call(Config, fun port_identities/0)),
    until_reported(#{test_cases:text(New) => Completed#{os_pid := 0}}, fun() -> reported_ports(Consumer) end),
    ok = call(Config, fun dyntrace:dump/0),
    until_reported(#{test_cases:text(New) => Completed}, fun() -> reported_ports(Consumer) end),
    _ = test_bpftrace:stop(Consumer).

%% On the node: a process that opens a port and keeps it open.
kept(Open) ->
    Self = self(),
    Pid = spawn(fun() -> Self ! {self(), Open()}, sleep() end),
    receive {Pid, Port} -> Port end.

reported_ports(Consumer) ->
    maps:from_list([{Port, Event} || {port_identity, Event = #{port := Port}} <- test_bpftrace:events(Consumer)]).

%% Both ends of a connection, a listener and sockets of other kinds. Connections that are accepted or opened after the
%% dump are reported, too.
sockets(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([port_identity], Config),
    _ = test_bpftrace:await(Consumer, fun({port_identity, _}) -> true end),
    Expected = call(Config, fun() -> [kept(fun() -> sockets_of(Kind) end) || Kind <- [v4, v6, unix, udp]]
                            end),
    Names = maps:from_list([{test_cases:text(Port), Name} || {Port, Name} <- lists:append(Expected)]),
    until_reported(Names, fun() -> names(Consumer) end),
    ?assertEqual([], [Name || Name <- maps:values(Names), byte_size(Name) > 63]),
    _ = test_bpftrace:stop(Consumer).

names(Consumer) ->
    maps:map(fun(_, #{name := Name}) -> Name end, reported_ports(Consumer)).

%% On the node: ports with their expected names.
sockets_of(udp) ->
    {ok, S} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(S),
    [{S, text("udp_inet 127.0.0.1:~b", [Number])}];
sockets_of(unix) ->
    %% The path is longer than the shown text. The system allows 107 bytes of it.
    Path = lists:flatten(["/tmp/dyntrace-", os:getpid(), lists:duplicate(60, $s)]),
    {Listener, Client, Accepted} = connected({local, Path}, 0, [local]),
    ok = file:delete(Path),
    Cut = fun(Most) -> End = (Most - 2) * 2 div 3, string:slice(Path, 0, Most - 2 - End) ++ ".."
                           ++ string:slice(Path, length(Path) - End)
          end,
    [{Listener, text("tcp_inet ~s", [Cut(54)])}, {Accepted, text("tcp_inet ~s", [Cut(54)])},
     {Client, text("tcp_inet <-> ~s", [Cut(50)])}];
sockets_of(Kind) ->
    {Ip, Options, Shown} = case Kind of
                               v4 -> {{127, 0, 0, 1}, [], "127.0.0.1"};
                               v6 -> {{0, 0, 0, 0, 0, 0, 0, 1}, [inet6], "[::1]"}
                           end,
    {Listener, Client, Accepted} = connected(Ip, 0, Options),
    {ok, Number} = inet:port(Listener),
    {ok, ClientNumber} = inet:port(Client),
    [{Listener, text("tcp_inet ~s:~b", [Shown, Number])},
     {Client, text("tcp_inet ~s:~b <-> ~s:~b", [Shown, ClientNumber, Shown, Number])},
     {Accepted, text("tcp_inet ~s:~b <-> ~s:~b", [Shown, Number, Shown, ClientNumber])}].

connected(Address, Number, Options) ->
    {ok, Listener} = gen_tcp:listen(Number, [{ip, Address} | Options]),
    {ok, Bound} = inet:port(Listener),
    {ok, Client} = gen_tcp:connect(Address, if is_integer(Bound) -> Bound; true -> 0 end, Options),
    {ok, Accepted} = gen_tcp:accept(Listener),
    {Listener, Client, Accepted}.

text(Format, Args) ->
    iolist_to_binary(io_lib:format(Format, Args)).

addresses_are_contents(Config) ->
    start([{interval, 10}, {text, shape}], Config),
    Socket = call(Config, fun() -> kept(fun() -> {ok, S} = gen_udp:open(0), S end) end),
    Consumer = attach([port_identity], Config),
    until_reported(#{test_cases:text(Socket) => <<"udp_inet">>}, fun() -> names(Consumer) end),
    _ = test_bpftrace:stop(Consumer).

%% On the node.
port_identities() ->
    maps:from_list([{test_cases:text(Port), #{port => test_cases:text(Port), owner => test_cases:text(Owner),
                                              name => named(Port, Name), os_pid => os_pid(Port)}}
                    || Port <- erlang:ports(), {connected, Owner} <- [erlang:port_info(Port, connected)],
                       {name, Name} <- [erlang:port_info(Port, name)]]).

%% A socket that is not connected.
named(Port, "udp_inet") ->
    {ok, Number} = inet:port(Port),
    text("udp_inet 0.0.0.0:~b", [Number]);
named(_, Name) ->
    list_to_binary(Name).

os_pid(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, OsPid} when is_integer(OsPid) -> OsPid;
        _ -> 0
    end.

%% -- Nodes -----------------------------------------------------------------------------------

%% A visible and a hidden node are connected before the consumer attaches, another one after that.
nodes(Config) ->
    Epmd = test_node:start_epmd(),
    [Ours, Visible, Hidden, Later] = All = [test_node:named("a", Epmd), test_node:named("b", Epmd),
                                            test_node:named("c", Epmd, ["-hidden"]), test_node:named("d", Epmd)],
    try
        nodes(Ours, Visible, Hidden, Later, lists:keystore(node, 1, Config, {node, Ours}))
    after
        [test_node:stop(Node) || Node <- All],
        test_node:stop_epmd(Epmd)
    end.

nodes(Ours, Visible, Hidden, Later, Config) ->
    start([{interval, 10}], Config),
    [true = call(Config, fun() -> net_kernel:connect_node(Node) end) || Node <- ['b@127.0.0.1', 'c@127.0.0.1']],
    Consumer = attach([node_identity], Config),
    Reported = fun() ->
                       maps:from_list([{Node, Event} || {_, Event = #{node := Node}} <- test_bpftrace:events(Consumer)])
               end,
    Expected = [node_identity('a@127.0.0.1', Ours, Config), node_identity('b@127.0.0.1', Visible, Config),
                node_identity('c@127.0.0.1', Hidden, Config)],
    until_reported(maps:from_list(Expected), Reported),
    true = call(Config, fun() -> net_kernel:connect_node('d@127.0.0.1') end),
    until_reported(maps:from_list([node_identity('d@127.0.0.1', Later, Config)]), Reported),
    %% Each connection is asked only once.
    Asked = length(test_bpftrace:events(Consumer)),
    ok = call(Config, fun dyntrace:dump/0),
    test_wait:until("another dump", Asked + 4, fun() -> length(test_bpftrace:events(Consumer)) end),
    ?assertEqual([], [Event || {_, Event = #{otp := <<>>}} <- lists:nthtail(Asked, test_bpftrace:events(Consumer))]),
    _ = test_bpftrace:stop(Consumer).

%% The number before the first dot in pids of that node.
node_identity(Name, Node, Config) ->
    Pid = call(Config, fun() -> test_cases:text(rpc:call(Name, erlang, whereis, [init])) end),
    {match, [Prefix]} = re:run(Pid, "^<(\\d+)\\.", [{capture, all_but_first, binary}]),
    {test_cases:text(Name), #{node => test_cases:text(Name), prefix => Prefix,
                              otp => list_to_binary(test_node:call(Node, fun() -> erlang:system_info(otp_release) end)),
                              os_pid => list_to_integer(test_node:os_pid(Node))}}.

%% -- Dumps -------------------------------------------------------------------------------------

no_consumer(Config) ->
    ?assertEqual({error, not_started}, call(Config, fun dyntrace:dump/0)),
    start([{interval, 10}], Config),
    ?assertEqual(ok, call(Config, fun dyntrace:dump/0)),
    ok = call(Config, fun dyntrace:unfollow/0),
    ?assertEqual(ok, call(Config, fun dyntrace:dump/0)),
    ?assertEqual(off, test_autotracer:following(Config)).

%% Each LTTng session gets a dump, although the first one has already enabled the probes. The end of a session causes no
%% dump.
second_session(Config) ->
    with_lttng(fun(Daemon) ->
                       start([{interval, 10}], Config),
                       First = session(Daemon, Config),
                       Expected = call(Config, fun identities/0),
                       Before = dumps(Config),
                       Second = test_lttng:start(Daemon, ?PROBES),
                       until_dumps(Before + 1, Config),
                       Third = test_lttng:start(Daemon, [dump_start]),
                       until_dumps(Before + 2, Config),
                       _ = test_lttng:stop(Third),
                       until_consumers([{Probe, 2} || Probe <- ?PROBES], Config),
                       [begin
                            Events = test_lttng:stop(Session),
                            ok = whole(Events),
                            Reported = last(Events),
                            ?assertEqual([], [{Identity, maps:get(Pid, Reported, none)}
                                              || {Pid, Identity} <- maps:to_list(Expected),
                                                 maps:get(Pid, Reported, none) =/= Identity])
                        end || Session <- [Second, First]],
                       until_following(sources, [], Config)
               end, Config).

%% The second bpftrace increments a counter that is not zero.
second_tracer(Config) ->
    start([{interval, 10}], Config),
    First = attach([process_identity], Config),
    until_dumps(1, Config),
    Before = dumps(Config),
    %% The probe that the node checks is attached last, as in each program that prints names.
    Second = attach([dump_end, process_identity], Config),
    until_dumps(Before + 1, Config),
    Expected = call(Config, fun identities/0),
    until_reported(Expected, fun() -> reported(Second) end),
    _ = test_bpftrace:stop(First),
    until_consumers([{process_identity, 1}, {dump_end, 1}], Config),
    ?assertEqual(Before + 1, dumps(Config)),
    _ = test_bpftrace:stop(Second),
    until_following(sources, [], Config).

%% Tracers of the same probes: the kernel counts only the first one at shared places, and each tracer at its probe of
%% the array. Each tracer gets all names. Tracers that attached before get them again, between the start and the end of
%% a dump, and nothing else.
tracers_in_the_row(Config) ->
    start([{interval, 10}], Config),
    Probes = [process_identity, port_identity, dump_start, dump_end],
    Tracers = lists:foldl(fun(Wanted, Before) ->
                                  Dumps = dumps(Config),
                                  Consumer = attach([Wanted | Probes], Config),
                                  until_dumps(Dumps + 1, Config),
                                  until_reported(call(Config, fun identities/0), fun() -> reported(Consumer) end),
                                  Before ++ [Consumer]
                          end, [], [dump_wanted, dump_wanted1, dump_wanted29]),
    ?assertEqual([0, 1, 29], asking(Config)),
    %% The first tracer attaches its probes one by one.
    ?assert(dumps(Config) =< 4, dumps(Config)),
    until_idle(Config),
    _ = [ok = whole(lists:dropwhile(fun({Probe, _}) -> Probe =/= dump_start end, test_bpftrace:events(Tracer)))
         || Tracer <- Tracers],
    %% A tracer that detaches causes no dump, and its probe is free for the next one.
    Dumps = dumps(Config),
    _ = test_bpftrace:stop(lists:nth(2, Tracers)),
    test_wait:until("it has detached", [0, 29], fun() -> asking(Config) end),
    ok = polled(Config),
    ?assertEqual(Dumps, dumps(Config)),
    Next = attach([dump_wanted1 | Probes], Config),
    until_dumps(Dumps + 1, Config),
    until_reported(call(Config, fun identities/0), fun() -> reported(Next) end),
    _ = [test_bpftrace:stop(Tracer) || Tracer <- [Next | Tracers], Tracer =/= lists:nth(2, Tracers)],
    until_following(sources, [], Config).

%% Returns after two polls that began after the call: each starts a timer.
polled(Config) ->
    [begin
         Before = call(Config, fun worker/0),
         test_wait:until("a poll", fun(Now) -> Now =/= Before end, fun() -> call(Config, fun worker/0) end)
     end || _ <- [1, 2]],
    ok.

%% On the node.
worker() -> sys:get_state(dyntrace_autotracer).

%% A tracer that attaches only to a dump probe causes no dump: nothing is traced or observed for it, but it is listed.
row_alone(Config) ->
    start([{interval, 10}], Config),
    Consumer = attach([dump_wanted7], Config),
    test_wait:until("it is attached", [7], fun() -> asking(Config) end),
    ok = polled(Config),
    ?assertEqual([#{provider => org_erlang_dyntrace, name => dump_wanted7, backends => [usdt]}],
                 call(Config, fun dyntrace:listeners/0)),
    ?assertMatch(#{processes := [], ports := [], calls := none, seq_trace := false, senders := false, sources := []},
                 test_autotracer:following(Config)),
    ?assertEqual({0, []}, {dumps(Config), call(Config, fun dumpers/0)}),
    ?assertEqual([], test_bpftrace:stop(Consumer)).

%% Sessions that attach during a dump share the next one, and each gets the identities of all processes.
storm_of_attaches(Config) ->
    with_lttng(fun(Daemon) ->
                       start([{interval, 10}], Config),
                       First = session(Daemon, Config),
                       Expected = call(Config, fun identities/0),
                       Before = dumps(Config),
                       Suspender = call(Config, fun suspender/0),
                       Sessions = [test_lttng:start(Daemon, ?PROBES) || _ <- lists:seq(1, 8)],
                       until_consumers([{Probe, 9} || Probe <- ?PROBES], Config),
                       true = call(Config, fun() -> exit(Suspender, kill) end),
                       until_dumps(Before + 1, Config),
                       [begin
                            Reported = last(test_lttng:stop(Session)),
                            ?assertEqual(#{}, maps:filter(fun(Pid, Identity) ->
                                                                  maps:get(Pid, Reported, none) =/= Identity
                                                          end, Expected))
                        end || Session <- [First | Sessions]],
                       %% One dump for the first session, one for those that attached during it, and one for those that
                       %% had just attached by then.
                       ?assert(dumps(Config) =< Before + 3),
                       until_following(sources, [], Config)
               end, Config).

%% On the node: suspends the dumper as long as it exists.
suspender() ->
    Self = self(),
    Suspender = spawn(fun() ->
                              Self ! {self(), [true = erlang:suspend_process(Dumper) || Dumper <- dumpers()]},
                              sleep()
                      end),
    receive {Suspender, [true]} -> Suspender end.

%% Returns when at least that many dumps are complete.
until_dumps(Count, Config) ->
    ok = test_wait:until("dumps", fun() -> dumps(Config) >= Count end),
    until_idle(Config).

until_consumers(Expected, Config) ->
    test_wait:until("consumers", lists:sort(Expected),
                    fun() -> call(Config, fun() -> consumers(?PROBES) end) end).

%% On the node: the number of consumers of each probe, without probes that have none.
consumers(Probes) ->
    Ids = dyntrace:consumers(Probes),
    ?assertEqual(length(Ids), length(lists:usort(Ids))),
    lists:sort([{Probe, Count} || Probe <- Probes,
                                  Count <- [length([Id || Id <- Ids, element(1, Id) =:= Probe])], Count > 0]).

with_lttng(Fun, Config) ->
    _ = test_require:tool(test_lttng:missing(), Config),
    Daemon = test_lttng:start_daemon(),
    try
        lttng_SUITE:until_known(Daemon, Config),
        Fun(Daemon)
    after
        test_lttng:stop_daemon(Daemon)
    end.

%% Returns when a dump is complete and all processes have answered.
session(Daemon, Config) ->
    Session = test_lttng:start(Daemon, ?PROBES),
    until_following(sources, [identities], Config),
    until_idle(Config),
    Session.

until_idle(Config) ->
    test_wait:until("the dumper is idle", fun() -> call(Config, fun is_idle/0) end).

%% On the node: a dumper hibernates when a dump is complete and all processes have answered.
is_idle() ->
    Dumpers = dumpers(),
    dyntrace_settings:get(dumps, 0) > 0 andalso Dumpers =/= []
        andalso lists:all(fun(Dumper) ->
                                  process_info(Dumper, current_function) =:= {current_function, {erlang, hibernate, 3}}
                          end, Dumpers).

dumpers() ->
    [Pid || Pid <- processes(), process_info(Pid, initial_call) =:= {initial_call, {dyntrace_identities, dumper, 2}}].

dumps(Config) ->
    call(Config, fun() -> dyntrace_settings:get(dumps, 0) end).

%% Starts and ends alternate, and a dump has as many processes as it says.
whole(Events) ->
    whole(Events, none).

whole([{dump_start, #{id := Id}} | Events], none) -> whole(Events, {Id, 0});
whole([{process_identity, _} | Events], {Id, Count}) -> whole(Events, {Id, Count + 1});
whole([{dump_end, #{id := Id, processes := Count}} | Events], {Id, Seen}) when Seen >= Count -> whole(Events, none);
whole([{Probe, _} | Events], State) when Probe =/= dump_start, Probe =/= dump_end -> whole(Events, State);
whole([], none) -> ok.

is_whole(Events) ->
    try whole(Events) =:= ok
    catch error:function_clause -> false
    end.

every_second(Config) ->
    start([{interval, 10}, {dump, 1}], Config),
    Consumer = attach([dump_start, node_identity], Config),
    test_wait:until("three dumps", fun(Count) -> Count >= 3 end,
                    fun() -> length([Id || {dump_start, #{id := Id}} <- test_bpftrace:events(Consumer)]) end),
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    Dumps = dumps(Config),
    ok = call(Config, fun dyntrace:dump/0),
    ?assertEqual(Dumps, dumps(Config)).

%% Any number of requests during a dump causes one more dump, because the dumper finds all of them queued behind the
%% first one. The consumer attaches before the application starts, which causes one dump for all its probes.
dump_during_a_dump(Config) ->
    Consumer = attach(?PROBES, Config),
    start([{interval, 10}], Config),
    until_following(sources, [identities], Config),
    until_idle(Config),
    call(Config, fun() -> [spawn(?MODULE, sleep, []) || _ <- lists:seq(1, 300)] end),
    Before = dumps(Config),
    call(Config, fun() ->
                         [Dumper] = dumpers(),
                         true = erlang:suspend_process(Dumper),
                         [ok = dyntrace:dump() || _ <- lists:seq(1, 101)],
                         %% When the worker answers, it has passed the requests on.
                         _ = sys:get_state(dyntrace_autotracer),
                         true = erlang:resume_process(Dumper)
                 end),
    test_wait:until("one more dump", fun(Dumps) -> Dumps >= Before + 2 end, fun() -> dumps(Config) end),
    until_idle(Config),
    ?assertEqual(Before + 2, dumps(Config)),
    test_wait:until("all dumps", {lists:seq(1, Before + 2), true},
                    fun() ->
                            Events = test_bpftrace:events(Consumer),
                            {[Id || {dump_end, #{id := Id}} <- Events], is_whole(Events)}
                    end),
    ok = whole(test_bpftrace:stop(Consumer)).

%% A dump does not use the budget, and continues while tracing pauses.
budget_is_spent(Config) ->
    start([{interval, 10}, {budget, 10}], Config),
    ok = call(Config, fun silent/0),
    call(Config, fun() -> [spawn(?MODULE, sleep, []) || _ <- lists:seq(1, 1000)] end),
    Consumer = attach([message_send, process_identity, dump_end], Config),
    Expected = call(Config, fun identities/0),
    call(Config, fun() -> spawn(fun() -> test_autotracer:flood(spawn(fun test_autotracer:sink/0)) end) end),
    test_wait:until("a pause", fun(Pauses) -> Pauses > 0 end,
                    fun() -> maps:get(pauses, test_autotracer:following(Config)) end),
    until_reported(Expected, fun() -> reported(Consumer) end),
    _ = test_bpftrace:stop(Consumer).

%% -- What a dump does to processes ---------------------------------------------------------------

%% Processes are asked once. After that they still hibernate, with the same heap; later dumps do not wake them.
hibernating_processes(Config) ->
    start([{interval, 10}, {processes, [test_absent]}], Config),
    Pids = call(Config, fun() -> [proc_lib:spawn(?MODULE, hibernated, []) || _ <- lists:seq(1, 100)] end),
    Hibernate = fun() -> [Pid || Pid <- Pids, process_info(Pid, current_function) =/=
                                     {current_function, {erlang, hibernate, 3}}] end,
    test_wait:until("all hibernate", [], fun() -> call(Config, Hibernate) end),
    Heaps = fun() -> [process_info(Pid, [total_heap_size, status, current_function]) || Pid <- Pids] end,
    Before = call(Config, Heaps),
    Consumer = attach(?PROBES, Config),
    Expected = call(Config, fun() -> maps:with([test_cases:text(Pid) || Pid <- Pids], identities()) end),
    ?assertEqual(100, maps:size(Expected)),
    until_reported(Expected, fun() -> reported(Consumer) end),
    until_idle(Config),
    ?assertEqual(Before, call(Config, Heaps)),
    Woken = call(Config, fun() -> woken_by_dump(Pids) end),
    ?assertEqual([], Woken),
    _ = test_bpftrace:stop(Consumer).

hibernated() ->
    _ = put(large, lists:seq(1, 1000)),
    erlang:hibernate(?MODULE, sleep, []).

%% On the node: the processes that are scheduled while another dump is made.
woken_by_dump(Pids) ->
    [1 = erlang:trace(Pid, true, [running]) || Pid <- Pids],
    until_quiet(),
    Before = dyntrace_settings:get(dumps, 0),
    ok = dyntrace:dump(),
    ok = test_wait:until("a dump", fun() -> dyntrace_settings:get(dumps, 0) > Before end),
    ok = test_wait:until("its end", fun is_idle/0),
    Ref = erlang:trace_delivered(all),
    receive {trace_delivered, all, Ref} -> ok end,
    Woken = scheduled(),
    [erlang:trace(Pid, false, [running]) || Pid <- Pids],
    Woken.

%% After answering, the processes run a moment longer.
until_quiet() ->
    receive {trace, _, _, _} -> until_quiet() after 100 -> ok end.

scheduled() ->
    receive {trace, Pid, in, _} -> [Pid | scheduled()]; {trace, _, out, _} -> scheduled() after 0 -> [] end.

%% A node under load that has not had a dump: each process in the trace has a name, unless it ends before the dump.
recorded_from_the_middle(Config) ->
    with_lttng(fun(Daemon) ->
                       call(Config, fun() ->
                                            Self = self(),
                                            Pid = spawn(fun() -> demo_system:start(10), Self ! started, sleep() end),
                                            receive started -> Pid end
                                    end),
                       start([{interval, 10}], Config),
                       Others = [message_send, message_receive, process_link, process_exit],
                       Session = test_lttng:start(Daemon, Others ++ ?PROBES),
                       until_following(sources, [identities], Config),
                       until_idle(Config),
                       Began = call(Config, fun() -> sys:get_state(demo_clerk) end),
                       test_wait:until("some orders", fun(Orders) -> Orders > Began + 100 end,
                                       fun() -> call(Config, fun() -> sys:get_state(demo_clerk) end) end),
                       Events = test_lttng:stop(Session),
                       Seen = lists:usort([Pid || {Probe, Event} <- Events, not lists:member(Probe, ?PROBES),
                                                  Pid = <<"<0.", _/binary>> <- maps:values(Event)]),
                       ?assert(length(Seen) > 100),
                       ?assertEqual([], Seen -- (maps:keys(last(Events)) ++ exited_during_a_dump(Events) ++ ?NO_PIDS))
               end, Config).

exited_during_a_dump(Events) ->
    Last = length([dump || {dump_end, _} <- Events]),
    {_, Exited} = lists:foldl(fun({dump_end, _}, {N, Pids}) -> {N + 1, Pids};
                                 ({process_exit, #{pid := Pid}}, {N, Pids}) when N < Last -> {N, [Pid | Pids]};
                                 (_, State) -> State
                              end, {0, []}, Events),
    Exited.

%% -- Leftovers ------------------------------------------------------------------------------------

consumer_killed(Config) ->
    start([{interval, 10}], Config),
    Before = call(Config, fun left/0),
    call(Config, fun() -> register(test_many, spawn(fun many/0)) end),
    Consumer = attach(?PROBES, Config),
    test_wait:until("a dump", fun() -> dumps(Config) > 0 end),
    ok = test_bpftrace:kill(Consumer),
    until_following(sources, [], Config),
    call(Config, fun() -> exit(whereis(test_many), kill) end),
    until_left(Before, Config).

%% Many processes, so that a dump takes its time.
many() ->
    _ = [spawn_link(?MODULE, sleep, []) || _ <- lists:seq(1, 500)],
    sleep().

%% On the node: everything that a dumper could leave behind.
left() ->
    #{processes => erlang:system_info(process_count), tables => length(ets:all()), ports => length(erlang:ports()),
      links => case whereis(dyntrace_autotracer) of
                   undefined -> none;
                   Worker -> length(element(2, process_info(Worker, links)))
               end}.

until_left(Before, Config) ->
    test_wait:until("nothing is left", Before, fun() -> call(Config, fun left/0) end).

worker_killed(Config) ->
    start([{interval, 10}], Config),
    Before = call(Config, fun left/0),
    call(Config, fun() -> register(test_many, spawn(fun many/0)) end),
    Consumer = attach(?PROBES, Config),
    [begin
         First = call(Config, fun() ->
                                      ok = test_wait:until("a dumper", fun() -> dumpers() =/= [] end),
                                      Worker = whereis(dyntrace_autotracer),
                                      true = exit(Worker, kill),
                                      Worker
                              end),
         until_worker_after(First, Config),
         until_following(sources, [identities], Config),
         test_wait:until("one dumper", 1, fun() -> call(Config, fun() -> length(dumpers()) end) end)
     end || _ <- [1, 2, 3]],
    ok = test_bpftrace:kill(Consumer),
    call(Config, fun() -> exit(whereis(test_many), kill) end),
    until_left(Before, Config).

dumper_killed(Config) ->
    start([{interval, 10}], Config),
    Before = call(Config, fun left/0),
    Consumer = attach(?PROBES, Config),
    until_following(sources, [identities], Config),
    [begin
         until_idle(Config),
         Dumps = dumps(Config),
         call(Config, fun() -> [exit(Pid, kill) || Pid <- dumpers()] end),
         test_wait:until("a dump of another dumper", fun() -> dumps(Config) > Dumps end)
     end || _ <- [1, 2]],
    _ = test_bpftrace:stop(Consumer),
    until_following(sources, [], Config),
    until_left(Before, Config).

attach_cycles(Config) ->
    Times = list_to_integer(os:getenv("DYNTRACE_ATTACHES", "200")),
    with_lttng(fun(Daemon) ->
                       start([{interval, 10}], Config),
                       Session = session(Daemon, Config),
                       _ = [ok = test_lttng:disable(Session, Probe) || Probe <- ?PROBES],
                       until_following(sources, [], Config),
                       Before = call(Config, fun left/0),
                       Memory = call(Config, fun memory/0),
                       [begin
                            Dumps = dumps(Config),
                            ok = test_lttng:enable(Session, process_identity),
                            test_wait:until("a dump", fun() -> dumps(Config) > Dumps end),
                            ok = test_lttng:disable(Session, process_identity),
                            until_following(sources, [], Config)
                        end || _ <- lists:seq(1, Times)],
                       until_left(Before, Config),
                       Growth = call(Config, fun memory/0) - Memory,
                       ct:pal("~b cycles; the memory has grown by ~b bytes", [Times, Growth]),
                       ?assert(Growth < 4 bsl 20, Growth),
                       ?assert(dumps(Config) >= Times),
                       ok = test_lttng:destroy(Session)
               end, Config).

memory() ->
    _ = [erlang:garbage_collect(Pid) || Pid <- processes()],
    erlang:memory(total).
