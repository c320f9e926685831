%% Pages of sink.dyntrace.html in a browser: test/support/viewer/page.mjs opens them and acts like a reader.
-module(test_page).

-export([missing/0, with_browser/1, without_browser/1, template/0, check/3, make/3]).

-define(DEADLINE_MS, 60000).

%% The missing requirement, or false.
missing() ->
    test_require:first([fun test_viewer:missing/0, fun test_npm:missing/0,
                        fun browser_missing/0, fun test_npm:fetch/0]).

browser_missing() ->
    os:find_executable("chromium") =:= false andalso "chromium is not installed".

%% One browser for all checks with this configuration, because starting one takes longer than most checks. A separate
%% process owns it.
with_browser(Config) ->
    Suite = self(),
    Script = filename:join(test_shell:project(), "test/support/viewer/running.mjs"),
    Owner = spawn(fun() ->
                          Port = open_port({spawn_executable, os:find_executable("node")},
                                           [{args, [Script, test_npm:modules()]}, {line, 1000}, exit_status]),
                          receive {Port, {data, {eol, Address}}} -> Suite ! {self(), Address} end,
                          receive {stop, From} -> true = port_command(Port, "\n") end,
                          receive {Port, {exit_status, 0}} -> From ! {self(), stopped} end
                  end),
    receive {Owner, Address} -> [{browser, {Owner, Address}} | Config]
    after ?DEADLINE_MS -> error(no_browser)
    end.

without_browser(Config) ->
    {browser, {Owner, _}} = lists:keyfind(browser, 1, Config),
    Owner ! {stop, self()},
    receive {Owner, stopped} -> ok after ?DEADLINE_MS -> error(browser_runs) end.

template() ->
    filename:join(test_viewer:plugin(), "page.html").

%% The observations of page.mjs, as a term. This function also checks what no page may do: send a request, log an error,
%% violate its policy.
check(Check, Args, Config) ->
    {priv_dir, Dir} = lists:keyfind(priv_dir, 1, Config),
    File = filename:join(Dir, atom_to_list(Check) ++ ".json"),
    Script = filename:join(test_shell:project(), "test/support/viewer/page.mjs"),
    {browser, {_, Browser}} = lists:keyfind(browser, 1, Config),
    case test_shell:run("cd '~ts' && BROWSER='~ts' timeout 150 node '~ts' '~ts' ~s ~ts > '~ts'",
                        [Dir, Browser, Script, test_npm:modules(), Check, [["'", Arg, "' "] || Arg <- Args], File]) of
        {0, _} -> innocent(Check, test_viewer:decode(File));
        Failed -> error({Check, Failed})
    end.

innocent(Check, Seen) ->
    case [{Requests, Errors} || {Requests, Errors} <- innocence(Seen), Requests ++ Errors =/= []] of
        [] -> Seen;
        Guilty -> error({Check, Guilty})
    end.

innocence(#{<<"requests">> := Requests, <<"errors">> := Errors}) -> [{Requests, Errors}];
innocence(Several) -> lists:append([innocence(Seen) || Seen <- maps:values(Several)]).

%% The sink's page for a trace.
make(Trace, Params, Config) ->
    {priv_dir, Dir} = lists:keyfind(priv_dir, 1, Config),
    File = filename:join(Dir, "page-" ++ integer_to_list(erlang:unique_integer([positive])) ++ ".html"),
    {0, _} = test_viewer:view(html, [{path, File} | Params], [Trace]),
    File.
