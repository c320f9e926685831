%% Faults that are planted in a third-party node: this module is loaded there. small_system uses keep/1.
%%
%%     fault:plant(burn), ..., fault:remove().
%%
%% An owner process holds everything that belongs to a fault; the processes are linked to it and end with it.
-module(fault).

-behaviour(gen_server).

-export([plant/1, keep/1, remove/0]).
-export([init/1, handle_call/3, handle_cast/2, start_server/2, start_flaky/0]).

-define(OWNER, planted_fault).

%% Returns when the fault is in place.
-spec plant(burn | server | consumer | crashes | heap | suspended | journal | {suspended, Name :: atom()} | crash
            | logged_error | overload | many_processes) -> ok.
plant(Kind) ->
    keep(fun() -> start(Kind) end).

%% Calls a function in the process that owns what it starts, until remove/0.
-spec keep(fun(() -> ok)) -> ok.
keep(Start) ->
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
                                         true = register(?OWNER, self()),
                                         %% Otherwise crashes are reported to the short-lived node of the calling tool.
                                         true = group_leader(whereis(user), self()),
                                         ok = Start(),
                                         Self ! {self(), planted},
                                         receive remove -> exit(shutdown) end
                                 end),
    receive
        {Owner, planted} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, Owner, Reason} -> error(Reason)
    end.

-spec remove() -> ok.
remove() ->
    Ref = monitor(process, ?OWNER),
    ?OWNER ! remove,
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% A process that computes endlessly.
start(burn) ->
    named(invoice_batch, fun() -> burn(1) end);
%% A server that needs 10 ms for each request, and eight processes that call it continuously.
start(server) ->
    {ok, _} = start_server(license_server, 10),
    [_ = spawn_link(fun() -> call(license_server) end) || _ <- lists:seq(1, 8)],
    ok;
%% A process that crashes 20 ms after each start, under a supervisor that does not give up.
start(crashes) ->
    {ok, _} = supervisor:start_link({local, flaky_sup}, ?MODULE, supervisor),
    ok;
%% A process with about 320 MB of data: it grew before the recording, and keeps working.
start(heap) ->
    named(session_cache, fun() -> grown(lists:seq(1, 20000000)) end);
%% A process that needs 20 ms per message, and gets one every 2 ms.
start(consumer) ->
    ok = named(mail_sorter, fun sort/0),
    _ = spawn_link(fun() -> every(2, fun() -> mail_sorter ! {mail, "a letter"} end) end),
    ok;
%% A suspended process, with messages for it.
start(suspended) ->
    ok = named(mail_relay, fun idle/0),
    true = erlang:suspend_process(whereis(mail_relay)),
    _ = spawn_link(fun() -> every(5, fun() -> mail_relay ! {mail, "a letter"} end) end),
    ok;

%% A process of the system, suspended until the fault is removed.
start({suspended, Name}) ->
    true = erlang:suspend_process(whereis(Name)),
    ok;

%% A process that writes to a slow device: a pipe whose reader takes 4 kB every 50 ms.
start(journal) ->
    Pipe = "journal.pipe",
    "" = os:cmd("mkfifo " ++ Pipe),
    Reader = open_port({spawn, "sh -c 'exec < " ++ Pipe ++ "; rm " ++ Pipe ++ "; "
                               "while [ \"$(head -c 4096)\" ]; do sleep 0.05; done'"}, [out]),
    true = is_port(Reader),
    named(mail_journal, fun() ->
                                {ok, File} = file:open(Pipe, [raw, append]),
                                write(File, binary:copy(<<"a letter">>, 512))
                        end);

%% A worker that crashes once.
start(crash) ->
    {Pid, Ref} = spawn_monitor(proc_lib, init_p, [self(), [], fun() -> crash(tray_2) end]),
    receive {'DOWN', Ref, process, Pid, _} -> ok end;
start(logged_error) ->
    logger:error("the payment gateway refused card ~b", [17]);
%% More processes that compute endlessly than a small machine has schedulers.
start(overload) ->
    lists:foreach(fun(N) -> ok = named(list_to_atom("invoice_batch_" ++ integer_to_list(N)), fun() -> burn(N) end) end,
                  lists:seq(1, 12));
%% Some 400 processes per second that never end.
start(many_processes) ->
    named(front_desk, fun() -> every(5, fun() -> [spawn_link(fun visitor/0) || _ <- "ab"] end) end).

named(Name, Fun) ->
    Owner = self(),
    Pid = spawn_link(fun() -> true = register(Name, self()), Owner ! {self(), named}, Fun() end),
    receive {Pid, named} -> ok end.

burn(N) ->
    burn((N * 1103515245 + 12345) band 16#7fffffff).

call(Server) ->
    ok = gen_server:call(Server, check),
    call(Server).

crash(Tray) ->
    true = register(label_printer, self()),
    error({no_paper, Tray}).

visitor() ->
    receive leave -> ok end.

grown(Data) ->
    every(20, fun() -> true = hd(Data) =:= 1 end).

every(Ms, Fun) ->
    receive after Ms -> _ = Fun(), every(Ms, Fun) end.

write(File, Data) ->
    ok = file:write(File, Data),
    write(File, Data).

sort() ->
    receive {mail, _} -> receive after 20 -> sort() end end.

idle() ->
    receive _ -> idle() end.

%% -- Behaviours ------------------------------------------------------------------------------

start_server(Name, Ms) ->
    gen_server:start_link({local, Name}, ?MODULE, Ms, []).

start_flaky() ->
    {ok, proc_lib:spawn_link(fun() -> true = register(ldap_pool, self()), receive after 20 -> exit(no_ldap) end end)}.

init(supervisor) ->
    {ok, {#{intensity => 1000, period => 1}, [#{id => ldap_pool, start => {?MODULE, start_flaky, []}}]}};
init(Ms) when is_integer(Ms) ->
    {ok, Ms}.

handle_call(check, _, Ms) ->
    Until = erlang:monotonic_time(millisecond) + Ms,
    {reply, busy_until(Until), Ms}.

handle_cast(_, Ms) -> {noreply, Ms}.

busy_until(Until) ->
    case erlang:monotonic_time(millisecond) < Until of
        true -> busy_until(Until);
        false -> ok
    end.
