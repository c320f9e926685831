%% A Common Test hook that ends the nodes that a failed test case has left. Later cases would see their events, because
%% consumers attach to all nodes that map the library's file.
-module(test_leftovers).

-export([init/2, pre_init_per_testcase/4, post_end_per_testcase/5]).
-export([started/1]).

-define(NODES, ?MODULE).

init(_, _) ->
    ?NODES = ets:new(?NODES, [named_table, public]),
    {ok, none}.

%% Registers a node that has started: `Node` is the process that controls it.
started(Node) ->
    _ = [ets:insert(?NODES, {Node}) || ets:info(?NODES) =/= undefined],
    ok.

%% Nodes that exist before the case belong to the suite or to its group.
pre_init_per_testcase(_Suite, _Case, Config, State) ->
    true = ets:delete_all_objects(?NODES),
    {Config, State}.

post_end_per_testcase(_Suite, _Case, _Config, Result, State) ->
    [ended(Node) || {Node} <- ets:tab2list(?NODES)],
    {Result, State}.

%% Closes the node's standard input, which ends it.
ended(Node) ->
    Monitor = monitor(process, Node),
    true = exit(Node, kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end.
