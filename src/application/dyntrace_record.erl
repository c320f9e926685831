%% @private A recording of this node, made by the host command, `priv/bin/dyntrace', which runs beside the VM.
-module(dyntrace_record).

-export([check/1, run/1]).

-export_type([options/0]).

-type options() :: #{seconds => number(), to => file:filename_all(), events => [atom()]}.

-define(SECONDS, 10).

%% Why the options are wrong, or ok.
-spec check(term()) -> ok | {error, Why :: iolist()}.
check(Options) when is_map(Options) ->
    case [Error || Option <- maps:to_list(Options), {error, _} = Error <- [check_option(Option)]] of
        [] -> ok;
        [Error | _] -> Error
    end;
check(_) ->
    {error, "not a map"}.

check_option({seconds, Seconds}) when is_number(Seconds), Seconds > 0, Seconds =< 86400 -> ok;
check_option({seconds, _}) -> {error, "seconds: must be a number above 0, at most 86400"};
check_option({to, To}) ->
    is_true(fun() -> is_binary(unicode:characters_to_binary(To)) andalso To =/= "" andalso To =/= <<>> end,
            "to: must be a file name");
check_option({events, Events}) ->
    is_true(fun() -> lists:all(fun is_atom/1, Events) end, "events: must be a list of atoms");
check_option({Key, _}) ->
    {error, io_lib:format("~0tp: no such option; options: seconds, to, events", [Key])}.

%% A check raises for a value of another type.
is_true(Check, MustBe) ->
    try Check() of
        true -> ok;
        false -> {error, MustBe}
    catch
        error:_ -> {error, MustBe}
    end.

%% The file or folder that was written, or the cause and the next step, as the command prints them.
-spec run(options()) -> {ok, file:filename()} | {error, Printed :: binary()}.
run(Options) ->
    %% A separate process gets the port's messages, even if the caller traps exits.
    Caller = self(),
    Tag = make_ref(),
    {Pid, Ref} = spawn_monitor(fun() -> Caller ! {Tag, run_command(Options)} end),
    receive
        {Tag, Result} -> _ = demonitor(Ref, [flush]), Result;
        {'DOWN', Ref, process, Pid, Reason} -> {error, unicode:characters_to_binary(io_lib:format("~0tp", [Reason]))}
    end.

run_command(Options) ->
    case code:priv_dir(dyntrace) of
        {error, _} ->
            {error, <<"the application's folder is unknown">>};
        Priv ->
            To = filename:absname(to(maps:get(to, Options, default_file()))),
            Port = open_port({spawn_executable, filename:join([Priv, "bin", "dyntrace"])},
                             [{args, args(To, Options)}, exit_status, stderr_to_stdout, binary]),
            collect(Port, To, [])
    end.

to(To) ->
    unicode:characters_to_list(To).

default_file() ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:local_time(),
    lists:flatten(io_lib:format("~s-~4..0b~2..0b~2..0b-~2..0b~2..0b~2..0b.html",
                                [node(), Year, Month, Day, Hour, Minute, Second])).

%% A name with an extension is an output file; a name without is the folder of a recording.
args(To, Options) ->
    Command = case filename:extension(To) of
                  "" -> "record";
                  _ -> "report"
              end,
    [Command, os:getpid(), "--seconds", lists:flatten(io_lib:format("~w", [maps:get(seconds, Options, ?SECONDS)])),
     "-o", To
     | case maps:get(events, Options, []) of
           [] -> [];
           Events -> ["--events", lists:flatten(lists:join(",", [atom_to_list(Event) || Event <- Events]))]
       end].

collect(Port, To, Printed) ->
    receive
        {Port, {data, Data}} -> collect(Port, To, [Data | Printed]);
        {Port, {exit_status, 0}} -> {ok, To};
        {Port, {exit_status, _}} -> {error, last_lines(iolist_to_binary(lists:reverse(Printed)))}
    end.

%% The cause and the next step are the last lines.
last_lines(Printed) ->
    case binary:match(Printed, <<"dyntrace: ">>) of
        nomatch -> Printed;
        {At, _} -> binary:part(Printed, At, byte_size(Printed) - At)
    end.
