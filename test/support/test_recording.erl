%% Recordings: a real LTTng records stock nodes at work. The recording stays as a folder.
%%
%%     test_recording:make(Folder, fun(Node) -> ... end),
%%     test_recording:make(Folder, #{named => ["a", "b"]}, fun([One, Other]) -> ... end).
%%
%% Both functions return the function's result. On each node, the application runs and follows the recording; nothing is
%% logged to the terminal. The function starts when the trace flags are set.
-module(test_recording).

-export([make/2, make/3]).

-type options() :: #{daemon => term(),                % of test_lttng; else one for this recording
                     named => [string()],             % distributed nodes, a is a@127.0.0.1; else one without a name
                     apart => boolean(),              % each node in a separate session, into Folder/1, ...
                     probes => [atom()],              % '*' of org_erlang_dyntrace
                     channel => string(),             % options of `lttng enable-channel'
                     env => [{atom(), term()}],       % of the application
                     before => fun(([term()]) -> _)}. % runs on the nodes before the recording starts

-define(CHANNEL, "--subbuf-size=4M --num-subbuf=8").

%% By these, the viewer distinguishes schedulers and VMs.
-define(CONTEXTS, ["vpid", "vtid", "procname"]).

make(Folder, Fun) ->
    make(Folder, #{}, fun([Node]) -> Fun(Node) end).

-spec make(file:filename(), options(), fun(([term()]) -> Result)) -> Result.
make(Folder, Options, Fun) ->
    Daemon = maps:get(daemon, Options, undefined),
    case Daemon of
        undefined ->
            Mine = test_lttng:start_daemon(),
            try with_nodes(Folder, Options#{daemon => Mine}, Fun)
            after test_lttng:stop_daemon(Mine)
            end;
        _ ->
            with_nodes(Folder, Options, Fun)
    end.

with_nodes(Folder, #{named := Names} = Options, Fun) ->
    test_node:with_epmd(fun(Epmd) ->
                                on_nodes(Folder, Options, Fun, [test_node:named(Name, Epmd) || Name <- Names])
                        end);
with_nodes(Folder, Options, Fun) ->
    on_nodes(Folder, Options, Fun, [test_node:start()]).

on_nodes(Folder, Options, Fun, Nodes) ->
    try
        [ok = follow(Node, maps:get(env, Options, [])) || Node <- Nodes],
        _ = (maps:get(before, Options, fun(_) -> ok end))(Nodes),
        record(Folder, Options, Nodes, Fun)
    after
        [test_node:stop(Node) || Node <- Nodes]
    end.

follow(Node, Env) ->
    test_node:call(Node, fun() -> test_node:started(Env) end).

record(Folder, #{daemon := Daemon} = Options, Nodes, Fun) ->
    Probes = maps:get(probes, Options, ['*']),
    Sessions = [test_lttng:start(Daemon, Probes,
                                 Of#{contexts => ?CONTEXTS, channel => maps:get(channel, Options, ?CHANNEL)})
                || Of <- sessions(Folder, Options, Nodes)],
    [ok = until_traced(Node, Probes) || Node <- Nodes],
    Result = Fun(Nodes),
    [ok = test_lttng:finish(Session) || Session <- Sessions],
    Result.

sessions(Folder, #{apart := true}, Nodes) ->
    [#{create => output(filename:join(Folder, integer_to_list(N))), vpid => test_node:os_pid(Node)}
     || {N, Node} <- lists:zip(lists:seq(1, length(Nodes)), Nodes)];
sessions(Folder, _, _) ->
    [#{create => output(Folder)}].

output(Folder) -> "--output='" ++ Folder ++ "'".

%% Waits until every recorded probe is enabled, the calls are traced that these probes require, and the trace flags no
%% longer change. The session daemon enables one probe after the other.
until_traced(Node, Probes) ->
    Following = fun() -> test_node:call(Node, fun() -> following(Probes) end) end,
    test_wait:until("the application follows the recording",
                    fun() ->
                            First = Following(),
                            timer:sleep(300),
                            is_map(First) andalso First =:= Following() orelse First
                    end).

following(Probes) ->
    Enabled = dyntrace:listeners(),
    #{calls := Calls} = dyntrace_trace_flags:for_enabled(Enabled, dyntrace_trace_flags:table(all)),
    case {recorded(Probes) -- [Name || #{name := Name} <- Enabled], maps:get(following, dyntrace:info())} of
        {[], Following = #{calls := Calls}} ->
            maps:with([processes, ports, calls, senders, sources], Following);
        {Missing, Following} ->
            {Missing, Following}
    end.

recorded(['*']) ->
    [Name || #{name := Name, provider := org_erlang_dyntrace, backends := Backends} <- dyntrace:probes(),
             lists:member(lttng, Backends)];
recorded(Probes) ->
    Probes.
