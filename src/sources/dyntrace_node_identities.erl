%% @private The identities of this node and the connected ones.
%%
%% The number that prefixes the pids of another node is available locally. Its release and its operating system process
%% are not: a separate process asks for them once per connection.
-module(dyntrace_node_identities).

-export([new/0, report_all/1, message/2]).

-export_type([nodes/0]).

-define(OPTIONS, [{node_type, all}]).

%% How long another node may take to answer.
-define(ANSWER_MS, 5000).

-type answer() :: {Otp :: string(), OsPid :: non_neg_integer()}.

%% A node that has not answered has the reference of the request.
-opaque nodes() :: #{node() => answer() | reference()}.

%% Called by the process that gets the messages: connections of nodes, and answers. Monitoring nodes is a flag of that
%% process.
-spec new() -> nodes().
new() ->
    ok = net_kernel:monitor_nodes(true, ?OPTIONS),
    #{}.

%% Reports this node and all connected nodes, including hidden ones.
-spec report_all(nodes()) -> nodes().
report_all(Nodes) ->
    lists:foldl(fun report/2, Nodes, [node() | nodes(connected)]).

report(Node, Nodes) when Node =:= node() ->
    ok = dyntrace:report(node_identity, {Node, "0", erlang:system_info(otp_release), list_to_integer(os:getpid())}),
    Nodes;
report(Node, Nodes) ->
    Known = maps:get(Node, Nodes, unknown),
    report_identity(Node, Known),
    case Known of
        unknown -> Nodes#{Node => ask(Node)};
        _ -> Nodes
    end.

report_identity(Node, {Otp, OsPid}) -> ok = dyntrace:report(node_identity, {Node, prefix(Node), Otp, OsPid});
report_identity(Node, _) -> report_identity(Node, {"", 0}).

%% Reports nodes that connect and nodes that answer; ignores other messages.
-spec message(term(), nodes()) -> nodes().
message({nodeup, Node, _}, Nodes) ->
    report(Node, maps:remove(Node, Nodes));
message({nodedown, Node, _}, Nodes) ->
    maps:remove(Node, Nodes);
message({?MODULE, Ref, Node, Answer}, Nodes) ->
    case Nodes of
        #{Node := Ref} -> report_identity(Node, Answer), Nodes#{Node := Answer};
        #{} -> Nodes
    end;
message(_, Nodes) ->
    Nodes.

%% A pid's text begins with the number of its node, so any pid of that node shows it.
prefix(Node) ->
    <<131, Name/binary>> = term_to_binary(Node),
    "<" ++ Pid = pid_to_list(binary_to_term(<<131, 88, Name/binary, 0:32, 0:32, 0:32>>)),
    lists:takewhile(fun(Char) -> Char =/= $. end, Pid).

%% A node that does not answer, or is not an Erlang VM, is not asked again.
ask(Node) ->
    To = self(),
    Ref = make_ref(),
    _ = spawn_link(fun() ->
                           _ = process_flag(sensitive, true),
                           _ = [To ! {?MODULE, Ref, Node, Answer} || Answer <- asked(Node)],
                           ok
                   end),
    Ref.

%% The request must not reconnect to a node that has just disconnected.
asked(Node) ->
    try
        true = lists:member(Node, nodes(connected)),
        [Otp, OsPid] = erpc:call(Node, lists, zipwith3,
                                 [fun erlang:apply/3, [erlang, os], [system_info, getpid], [[otp_release], []]],
                                 ?ANSWER_MS),
        [{unicode:characters_to_list(Otp), list_to_integer(OsPid)}]
    catch
        _:_ -> []
    end.
