%% Runs the recipes of a document verbatim.
-module(test_recipe).

-export([run/4]).

%% Runs the blocks under a heading, in order: `sh' blocks in one shell from the project's folder, `erlang' blocks in one
%% process on the node, like in its shell. Returns the output of the shell. Options: `env', the shell's environment;
%% `ready', a function that is called before each block on the node.
run(File, Title, Node, Options) ->
    {ok, Page} = file:read_file(filename:join(test_shell:project(), File)),
    [_, Section] = binary:split(Page, <<"\n## ", (list_to_binary(Title))/binary, "\n">>),
    [Mine | _] = binary:split(Section, <<"\n## ">>),
    {match, Blocks} = re:run(Mine, "^```(sh|erlang)\\n(.*?)^```$",
                             [global, multiline, dotall, {capture, all_but_first, binary}]),
    Evaluator = test_node:call(Node, fun() -> spawn(fun evaluator/0) end),
    Shell = open_shell(maps:get(env, Options, [])),
    Output = [run_block(Language, Text, Shell, Evaluator, Node, Options) || [Language, Text] <- Blocks],
    close_shell(Shell),
    iolist_to_binary(Output).

run_block(<<"erlang">>, Text, _, Evaluator, Node, Options) ->
    ok = (maps:get(ready, Options, fun() -> ok end))(),
    {done, _} = test_node:call(Node,
                             fun() ->
                                     Evaluator ! {evaluate, self(), binary_to_list(Text)},
                                     receive Answer -> Answer end
                             end),
    [];
run_block(<<"sh">>, Text, Shell, _, _, _) ->
    run_in(Shell, Text).

%% On the node: the process that is `self()' in the recipe. It supports the shell's l/1.
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

%% One shell for all blocks of a recipe, because a block can wait for a background job of another one.
open_shell(Env) ->
    open_port({spawn_executable, "/bin/sh"},
              [{args, []}, {cd, test_shell:project()}, {env, Env}, binary, stderr_to_stdout, exit_status]).

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
