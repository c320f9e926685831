%% Runs in the virtual machine of test/vm: each script of SystemTap and DTrace together with the program that it
%% watches, with its lines compared with Erlang's own data, and the commands of docs/dtrace.md.
%%
%% main([Results]): the file for the results, one {{Tool, Script}, ok | {failed, Text}} each.
-module(guest).

-export([main/1, tools/0]).
-export([matches/2, text/1, quoted/1, at_least/3]).

-include_lib("stdlib/include/assert.hrl").

-define(DEADLINE_MS, 300000).

-callback scripts() -> [{Script :: atom(), Program :: atom(), Probes :: [atom()]}].
-callback command(Script :: atom()) -> {file:filename(), [string()]}.
%% Whether the line says that the script's handlers run.
-callback listening(Line :: binary()) -> boolean().
%% Other checks, without a script.
-callback others() -> [{Name :: atom(), fun(() -> ok)}].
-callback check(Script :: atom(), Lines :: [binary()], Facts :: term()) -> ok.

main([Results]) ->
    true = dyntrace:available(),
    Outcomes = [{{Tool, Script}, run(Tool, Script, Program, Probes)}
                || Tool <- tools(), {Script, Program, Probes} <- Tool:scripts()]
        ++ [{{Tool, Check}, outcome(Fun, [])} || Tool <- tools(), {Check, Fun} <- Tool:others()],
    ok = file:write_file(Results, [io_lib:format("~p.~n", [Outcome]) || Outcome <- Outcomes]),
    halt().

tools() -> [systemtap_guest, dtrace_guest].

run(Tool, Script, Program, Probes) ->
    {Command, Args} = Tool:command(Script),
    Port = open_port({spawn_executable, os:find_executable(Command)},
                     [{args, Args}, {line, 1000}, binary, exit_status, stderr_to_stdout]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    try
        Header = listening(Tool, Port, []),
        ok = test_wait:until({Script, "is attached"}, Probes,
                             fun() -> lists:sort([Name || #{name := Name} <- dyntrace:listeners()]) end),
        Facts = guest_programs:run(Program),
        Lines = Header ++ stop(Port, Pid),
        outcome(fun() -> Tool:check(Script, Lines, Facts) end, Lines)
    catch
        error:Broken -> failed(Broken, stop(Port, Pid))
    end.

outcome(Fun, Lines) ->
    try ok = Fun()
    catch error:Why:Where -> failed({Why, Where}, Lines)
    end.

%% As text, because a pid can't be read back.
failed(Why, Lines) ->
    {failed, lists:flatten(io_lib:format("~p~n~p", [Why, Lines]))}.

%% Returns the lines before the line that says that the handlers run.
listening(Tool, Port, Lines) ->
    receive
        {Port, {data, {_, Line}}} ->
            case Tool:listening(Line) of
                true -> lists:reverse(Lines);
                false -> listening(Tool, Port, [Line | Lines])
            end;
        Ended = {Port, {exit_status, Status}} ->
            self() ! Ended,
            error({script_ended, Status, lists:reverse(Lines)})
    after ?DEADLINE_MS -> error({not_listening, lists:reverse(Lines)})
    end.

stop(Port, Pid) ->
    _ = os:cmd("kill -INT " ++ integer_to_list(Pid)),
    lines(Port).

%% All lines until the command ends.
lines(Port) ->
    receive
        {Port, {data, {_, Line}}} -> [Line | lines(Port)];
        {Port, {exit_status, _}} -> []
    after ?DEADLINE_MS -> [<<"the script does not end">>]
    end.

%% -- Lines ------------------------------------------------------------------------------------

%% The sum of the histograms' counts for that value and above: " 16384 |@@@@@    5".
at_least(Value, Count, Lines) ->
    Counts = [{binary_to_integer(V), binary_to_integer(C)}
              || Line <- Lines,
                 {match, [V, C]} <- [re:run(Line, "^ *(\\d+) \\|[@ ]* (\\d+) *$", [{capture, all_but_first, binary}])]],
    ?assertEqual(Count, lists:sum([C || {V, C} <- Counts, V >= Value])),
    ok.

matches(Lines, Pattern) ->
    [Groups] = [Groups || Line <- Lines,
                {match, Groups} <- [re:run(Line, Pattern, [{capture, all_but_first, binary}])]],
    Groups.

text(Pid) when is_pid(Pid) -> list_to_binary(pid_to_list(Pid));
text(Port) when is_port(Port) -> list_to_binary(port_to_list(Port)).

%% The text as a regular expression.
quoted(Id) when is_pid(Id); is_port(Id) -> text(Id);
quoted(Reason) -> re:replace(io_lib:format("~p", [Reason]), "[{}\\[\\]]", "\\\\&", [global, {return, binary}]).
