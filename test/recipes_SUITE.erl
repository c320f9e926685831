%% The recipes of docs/lttng.md, run as they stand there.
-module(recipes_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [first_session, filter, flight_recorder, live, context, reading].

init_per_suite(Config) ->
    dt_require:tool(dt_lttng:missing(), Config).

end_per_suite(_) ->
    ok.

%% The commands are a user's, so the daemon and the files are where a user's would be; what is
%% left of a recipe that failed goes with its folder.
init_per_testcase(_, Config) ->
    {_, Relays} = dt_shell:run("pgrep -x lttng-relayd", []),
    Node = dt_node:start(),
    Daemon = dt_lttng:start_daemon(),
    %% As the page says, the module is loaded, and LTTng knows of it.
    _ = dt_node:call(Node, fun dyntrace:info/0),
    ok = dt_wait:until(fun() -> dt_lttng:tracepoints(Daemon, dt_node:os_pid(Node)) =/= [] end),
    [{node, Node}, {relays, Relays}, {daemon, Daemon} | Config].

end_per_testcase(_, Config) ->
    Daemon = ?config(daemon, Config),
    [dt_lttng:lttng(Daemon, "destroy ~s", [Session]) || Session <- sessions()],
    {0, _} = dt_shell:run("rm -rf /tmp/erlang-demo /tmp/erlang-filter /tmp/erlang-flight /tmp/erlang-live* /tmp/erlang-context /tmp/erlang-talk", []),
    _ = dt_shell:run("for p in $(pgrep -x lttng-relayd); do case \" ~s \" in *\" $p \"*) ;; *) kill $p ;; esac; done",
                     [[case C of $\n -> $\s; _ -> C end || C <- binary_to_list(?config(relays, Config))]]),
    dt_lttng:stop_daemon(Daemon),
    dt_node:stop(?config(node, Config)).

sessions() ->
    ["erlang-demo", "erlang-filter", "erlang-flight", "erlang-live", "erlang-context", "erlang-talk"].

%% Every name that sasl and os_mon register, and every tracepoint, is in what is printed.
first_session(Config) ->
    Output = recipe("A first session", Config),
    [?assertMatch({match, _}, re:run(Output, ["org_erlang_dyntrace:", atom_to_list(Probe), "\\b"]), Probe)
     || Probe <- dt_cases:probes(lttng)],
    Names = dt_node:call(?config(node, Config),
                         fun() -> [Name || Name <- registered(), lists:member(application_of(Name), [{ok, sasl}, {ok, os_mon}])] end),
    ?assert(lists:member(sasl_sup, Names) andalso lists:member(os_mon_sup, Names)),
    [?assertMatch({match, _}, re:run(Output, ["process_register: .*name = \"", atom_to_list(Name), "\", type = \"register\""]), Name)
     || Name <- Names].

application_of(Name) ->
    application:get_application(whereis(Name)).

filter(Config) ->
    Output = recipe("Only some events", Config),
    ?assertMatch({match, _}, re:run(Output, "to = \"shop\", message = \"order\"")),
    ?assertEqual(nomatch, re:run(Output, "not_for_the_shop")).

flight_recorder(Config) ->
    Output = recipe("A flight recorder", Config),
    ?assertMatch({match, _}, re:run(Output, "process_exit: .*reason = \"something_went_wrong\"")).

live(Config) ->
    Output = recipe("Live", Config),
    ?assertMatch({match, _}, re:run(Output, "message_send: .*message = \"seen_live\"")).

context(Config) ->
    Output = recipe("With the process and thread", Config),
    ?assertMatch({match, _}, re:run(Output, ["vpid = ", dt_node:os_pid(?config(node, Config)), ", vtid = [0-9]+, procname = \"[^\"]+\" .*with_context"])).

reading(Config) ->
    Output = recipe("Reading", Config),
    ?assertMatch({match, _}, re:run(Output, " 1000  <[0-9.]+> +listener")).

%% -- Running a page ----------------------------------------------------------------------------

%% Runs the blocks under a title, in order: `sh` in one shell each from the project's folder, `erlang` in
%% one process of the node, as its shell would. Returns what the shells printed.
recipe(Title, Config) ->
    {ok, Page} = file:read_file(filename:join(dt_shell:project(), "docs/lttng.md")),
    [_, Section] = binary:split(Page, <<"\n## ", (list_to_binary(Title))/binary, "\n">>),
    [Mine | _] = binary:split(Section, <<"\n## ">>),
    {match, Blocks} = re:run(Mine, "^```(sh|erlang)\\n(.*?)^```$", [global, multiline, dotall, {capture, all_but_first, binary}]),
    Evaluator = dt_node:call(?config(node, Config), fun() -> spawn(fun evaluator/0) end),
    Shell = open_shell(),
    Output = [run(Language, Text, Shell, Evaluator, Config) || [Language, Text] <- Blocks],
    close_shell(Shell),
    iolist_to_binary(Output).

run(<<"erlang">>, Text, _, Evaluator, Config) ->
    {done, _} = dt_node:call(?config(node, Config),
                             fun() ->
                                     Evaluator ! {evaluate, self(), binary_to_list(Text)},
                                     receive Answer -> Answer end
                             end),
    [];
run(<<"sh">>, Text, Shell, _, _) ->
    run_in(Shell, Text).

%% On the node: a process that has the shell's l/1, and is the `self()` of the recipe.
evaluator() ->
    receive
        {evaluate, From, Text} ->
            {ok, Tokens, _} = erl_scan:string(Text),
            Results = [begin
                           {ok, Expressions} = erl_parse:parse_exprs(Form),
                           {value, Value, _} = erl_eval:exprs(Expressions, [], {value, fun shell/2}),
                           Value
                       end || Form <- forms(Tokens)],
            From ! {done, Results},
            evaluator();
        _ ->
            evaluator()
    end.

shell(l, [Module]) -> c:l(Module).

forms([]) -> [];
forms(Tokens) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    [Form ++ [Dot] | forms(Rest)].

%% One shell for all blocks of a recipe: what one puts into the background, another waits for.
open_shell() ->
    open_port({spawn_executable, "/bin/sh"}, [{args, []}, {cd, dt_shell:project()}, binary, stderr_to_stdout, exit_status]).

run_in(Shell, Text) ->
    true = port_command(Shell, ["set -e\n", Text, "\necho dyntrace-block-done\n"]),
    collect(Shell, <<>>).

collect(Shell, Output) ->
    case binary:split(Output, <<"dyntrace-block-done\n">>) of
        [Mine, <<>>] -> Mine;
        _ ->
            receive
                {Shell, {data, Data}} -> collect(Shell, <<Output/binary, Data/binary>>);
                {Shell, {exit_status, Status}} -> error({shell_ended, Status, Output})
            end
    end.

close_shell(Shell) ->
    true = port_close(Shell).
