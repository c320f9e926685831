%% The systems under load whose cost of observation is measured.
%%
%%     #{start := Start, load := Load, work := Work} = dyntrace_bench_subjects:ping_pong(),
%%     System = Start(),
%%     ok = Load(System),
%%     Run = Work(100000, System),
%%     ok = Run().
-module(dyntrace_bench_subjects).

-export([rabbitmq/0, saturated/0, ejabberd/0, ping_pong/0, idle/0]).
%% On a node.
-export([exchanged/1, following/0]).

-export_type([subject/0]).

-type subject() ::
        #{title := string(),
          missing := false | string(),              % what the machine lacks for it
          start := fun(() -> system()),             % without dyntrace
          load := fun((system()) -> ok),
          stop := fun((system()) -> ok),
          os_pid := fun((system()) -> string()),
          following := fun((system()) -> string()), % as observed:following/1
          pauses => boolean(),                      % a report of it traces in windows (true)
          work := fun((Messages :: pos_integer(), system()) -> fun(() -> ok)),
          messages := pos_integer()}.               % of one to three seconds

%% A value of `packaged' or `test_node'.
-type system() :: term().

-define(IDLE, 100000).
-define(CONNECTIONS, 4).
-define(PAIRS, 10).

%% One client publishes and waits for the confirmation of each message, another one consumes.
-spec rabbitmq() -> subject().
rabbitmq() ->
    packaged("RabbitMQ, one producer", packaged_rabbitmq, 2000,
             fun(Messages) -> {["bench"], Messages, ["published", "delivered"]} end).

%% As many messages as its schedulers can process.
-spec saturated() -> subject().
saturated() ->
    packaged("RabbitMQ, saturated by " ++ integer_to_list(?CONNECTIONS) ++ " producers", packaged_rabbitmq, 4000,
             fun(Messages) ->
                     {["saturated", option("producers", ?CONNECTIONS), option("consumers", ?CONNECTIONS)],
                      Messages div ?CONNECTIONS, ["published", "delivered"]}
             end).

%% The server limits each connection to 3,000 bytes per second after the first 20,000.
-spec ejabberd() -> subject().
ejabberd() ->
    packaged("ejabberd, " ++ integer_to_list(?PAIRS) ++ " pairs of users", packaged_ejabberd, 3200,
             fun(Messages) -> {["bench", option("pairs", ?PAIRS)], Messages div ?PAIRS, ["sent", "delivered"]} end).

%% Arguments: the client's arguments without its number of messages, that number, and the counts that must be that of
%% all messages. The client has opened its connections when the work begins.
packaged(Title, Module, Count, Arguments) ->
    #{title => Title,
      missing => Module:missing(),
      start => fun() -> packaged:start(Module, []) end,
      load => fun packaged:load/1,
      stop => fun packaged:stop/1,
      os_pid => fun packaged:os_pid/1,
      following => fun observed:following/1,
      work => fun(Messages, System) ->
                      {Args, Each, Names} = Arguments(Messages),
                      Client = packaged:client(System, Args ++ [option("rate", 1000000), option("count", Each)]),
                      fun() ->
                              Counts = client:finish(Client),
                              [Messages = maps:get(Name, Counts) || Name <- Names],
                              ok
                      end
              end,
      messages => Count}.

option(Name, Value) -> lists:concat([Name, "=", Value]).

%% Two processes of a node that only exchange messages.
-spec ping_pong() -> subject().
ping_pong() ->
    node("two processes that exchange messages", 0).

%% The same in a node with many other processes.
-spec idle() -> subject().
idle() ->
    (node("the same beside 100,000 idle processes", ?IDLE))#{pauses => false}.

node(Title, Idle) ->
    #{title => Title,
      missing => false,
      start => fun() ->
                       Node = test_node:start(#{args => ["+P", "300000"]}),
                       ok = test_node:call(Node, fun() -> started(Idle) end),
                       Node
               end,
      load => fun(Node) -> test_node:call(Node, fun() -> test_node:started([]) end) end,
      stop => fun test_node:stop/1,
      os_pid => fun test_node:os_pid/1,
      following => fun(Node) -> test_node:call(Node, fun ?MODULE:following/0) end,
      work => fun(Messages, Node) -> fun() -> test_node:call(Node, fun() -> ?MODULE:exchanged(Messages) end) end end,
      messages => 2000000}.

%% -- On the node -----------------------------------------------------------------------------

started(Idle) ->
    _ = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, Idle)],
    ok.

-spec following() -> string().
following() ->
    case dyntrace:listeners() of
        [] -> "off";
        _ -> #{following := Following} = dyntrace:info(),
             lists:flatten(io_lib:format("~0p", [maps:with([processes, ports, senders, sources], Following)]))
    end.

%% Half of the messages are answers to the other half.
-spec exchanged(pos_integer()) -> ok.
exchanged(Messages) ->
    {Asking, Ref} = spawn_monitor(fun() -> ask(Messages div 2, spawn_link(fun answer/0)) end),
    normal = dyntrace_bench_figures:ended(Asking, Ref),
    ok.

ask(0, _) -> ok;
ask(Left, Answering) ->
    Answering ! {request, self()},
    receive reply -> ask(Left - 1, Answering) end.

answer() ->
    receive {request, From} -> From ! reply, answer() end.
