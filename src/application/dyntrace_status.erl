%% @private The status of the node for the host command, which reads it from the library's memory without asking the
%% node.
%%
%% Lines of UTF-8, without other control characters:
%%
%% ```
%% node: shop@db1
%% version: 0.2.0
%% following: on                                           (on | paused | off)
%% connected: 2                                            (nodes, including hidden ones, except the command)
%% withheld: vm_long_gc: another process has the system monitor
%% usual: log: the option `log` is off                     (withheld on every node of this release, or by default)
%% functions: 2                                            (traced for consumers of calls; how many lines follow)
%% function: shop:price/1
%% function: shop_db:_/_
%% '''
-module(dyntrace_status).

-export([new/0, publish/2, clear/0, connected/0]).

-export_type([status/0]).

%% The names of the host command, which is connected while it loads the library: own_name() of
%% priv/python/dyntrace_command/node/node_address.py.
-define(COMMAND, ['dyntrace_load@dyntrace.invalid', 'dyntrace_load@invalid']).

-opaque status() :: none | {node(), off | dyntrace:following(), non_neg_integer()}.

%% Nothing is published yet: the library may have been replaced.
-spec new() -> status().
new() ->
    none.

%% Called at each poll: writes only what has changed.
-spec publish(off | dyntrace:following(), status()) -> status().
publish(Following, Before) ->
    case {node(), Following, connected()} of
        Before ->
            Before;
        Now ->
            ok = dyntrace:set_status(text(Now)),
            Now
    end.

%% How many other nodes are connected, apart from the host's command.
-spec connected() -> non_neg_integer().
connected() ->
    length(nodes(connected) -- ?COMMAND).

%% Called when the worker ends, because the status would become outdated, for example if the node is renamed.
-spec clear() -> ok.
clear() ->
    dyntrace:set_status(<<>>).

text({Node, Following, Connected}) ->
    Lines = [{"node", atom_to_list(Node)}, {"version", version()}, {"following", following(Following)}]
        %% Only polls update it.
        ++ [{"connected", integer_to_list(Connected)} || Following =/= off]
        ++ [{withheld_key(What), io_lib:format("~w: ~ts", [What, Why])}
            || {What, Why} <- dyntrace_withheld:listed(Following)]
        ++ functions(Following),
    unicode:characters_to_binary([[Key, ": ", in_a_line(Text), $\n] || {Key, Text} <- Lines]).

version() ->
    case application:get_key(dyntrace, vsn) of
        {ok, Version} -> Version;
        undefined -> "unknown"
    end.

following(off) -> "off";
following(#{paused := true}) -> "paused";
following(#{paused := false}) -> "on".

%% Last, because there may be many and the text is cut.
functions(off) ->
    [];
functions(#{functions := Patterns}) ->
    [{"functions", integer_to_list(length(Patterns))}
     | [{"function", io_lib:format("~ts:~ts/~ts", [part(Part) || Part <- tuple_to_list(Pattern)])}
        || Pattern <- Patterns]].

part('_') -> "_";
part(Part) -> io_lib:format("~tw", [Part]).

withheld_key(What) ->
    case dyntrace_withheld:is_usual(What) of
        true -> "usual";
        false -> "withheld"
    end.

in_a_line(Text) ->
    [case Char < $\s orelse Char =:= 127 of
         true -> $?;
         false -> Char
     end || Char <- unicode:characters_to_list(Text)].
