%% @private The source of `dist__monitor', `node_up' and `node_down': nodes that connect and disconnect.
%%
%% Monitoring nodes is a flag of the process: the call does not wait for net_kernel, and the flag stays set while the
%% distribution starts and stops.
-module(dyntrace_nodes).
-behaviour(dyntrace_source).

-export([on/2, poll/2, message/2, off/1]).

-define(OPTIONS, [{node_type, all}, nodedown_reason]).

%% The state is this node's name: when the distribution stops, the node loses its name before the worker gets the
%% messages.
on(_, _) ->
    ok = net_kernel:monitor_nodes(true, ?OPTIONS),
    {on, node()}.

poll(_, _) ->
    {on, node()}.

message({What, Node, Info}, Before) when What =:= nodeup; What =:= nodedown ->
    This = this(node(), Before),
    Type = proplists:get_value(node_type, Info),
    Reason = proplists:get_value(nodedown_reason, Info, []),
    ok = dyntrace:report(dist__monitor, {This, What, Node, Type, Reason}),
    ok = report(What, Node, Type, Reason),
    This;
message(_, This) ->
    This.

report(nodeup, Node, Type, _) -> dyntrace:report(node_up, {Node, Type});
report(nodedown, Node, Type, Reason) -> dyntrace:report(node_down, {Node, Type, Reason}).

this(nonode@nohost, Before) -> Before;
this(Now, _) -> Now.

%% Messages that have already arrived are ignored later.
off(_) ->
    ok = net_kernel:monitor_nodes(false, ?OPTIONS).
