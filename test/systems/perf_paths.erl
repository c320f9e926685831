%% The Erlang paths of samples of a VM with `+JPperf true': those of perf, which follows the VM's frame pointers, and
%% those of `dyntrace profile'.
%%
%% A path has the functions from the process's first one to the innermost one. Shared code of the VM is in it only if it
%% was running, as `dyntrace profile' shows it. Samples without Erlang functions have no path.
-module(perf_paths).

-export([start/0, stop/1, sampled/4, of_perf/1, of_profile/1, in_erlang/1, whole/1, samples/1, own/1, total/1,
         functions/1]).

-export_type([paths/0, counts/0]).

%% `inner': whether Erlang code was running, or C code that it had called. `is_whole': whether the path begins with the
%% process's first function.
-type path() :: #{functions := [binary()], inner := erlang | c, is_whole := boolean()}.
-type paths() :: #{path() => Samples :: pos_integer()}.
-type counts() :: #{Name :: binary() | [binary()] => Samples :: pos_integer()}.

%% RabbitMQ with frame pointers, and a client that waits for the confirmation of each message.
-spec start() -> {packaged:system(), Client :: pid()}.
start() ->
    System = packaged:start(packaged_rabbitmq, ["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+JPperf true"]),
    {System, packaged:client(System, ["bench", "rate=1000000"])}.

%% Also deletes the files that the VM has written for perf.
-spec stop({packaged:system(), Client :: pid()}) -> ok.
stop({System, Client}) ->
    OsPid = packaged:os_pid(System),
    _ = client:stop(Client),
    packaged:stop(System),
    _ = [file:delete(lists:append(["/tmp/", Before, OsPid, After]))
         || {Before, After} <- [{"perf-", ".map"}, {"jit-", ".dump"}]],
    ok.

%% What perf and dyntrace find in a system in the same seconds. Files are in the folder.
-spec sampled(packaged:system(), file:filename(), pos_integer(), pos_integer()) -> {Perf :: paths(), Ours :: paths()}.
sampled(System, Folder, Hertz, Seconds) ->
    OsPid = packaged:os_pid(System),
    [Profile, Recorded] = [filename:join(filename:absname(Folder), Name) || Name <- ["profile.folded", "perf.data"]],
    Command = test_command:start(["profile", OsPid, "--hz", integer_to_list(Hertz), "--seconds",
                                  integer_to_list(Seconds), "-o", Profile]),
    ok = test_command:await("sampling", Command),
    %% In the place, where the VM has written the names of its functions. Forced, because the VM's user owns that file.
    Place = place:as_root(packaged:place(System)),
    {0, _} = test_shell:run("~s perf record -q -e cpu-clock -F ~b --call-graph=fp -p ~s -o ~ts sleep ~b",
                            [Place, Hertz, OsPid, Recorded, Seconds]),
    {0, _} = test_command:finish(Command),
    {0, Text} = test_shell:run("~s perf script --force -i ~ts -F comm,ip,sym 2>/dev/null", [Place, Recorded]),
    {ok, Folded} = file:read_file(Profile),
    {of_perf(Text), of_profile(Folded)}.

%% The paths in the output of `perf script -F comm,ip,sym'.
-spec of_perf(binary()) -> paths().
of_perf(Text) ->
    counts([{perf_path(string:lexemes(Lines, "\n")), 1} || Lines <- binary:split(Text, <<"\n\n">>, [global])]).

%% A line of the program's name, and a line of each frame, the innermost first.
perf_path([_ | Frames]) ->
    Names = [lists:nth(2, binary:split(string:trim(Frame), <<" ">>)) || Frame <- Frames],
    Erlang = [Name || <<"$", Name/binary>> <- Names],
    {Outer, IsWhole} = case lists:reverse(Erlang) of
                           [<<"erts_beamasm:normal_exit/0">> | Rest] -> {Rest, true};
                           Rest -> {Rest, false}
                       end,
    Inner = case Names of
                [<<"$", _/binary>> | _] -> erlang;
                _ -> c
            end,
    path(Outer, Inner, IsWhole);
perf_path([]) ->
    none.

%% The paths in a file of `dyntrace profile -o NAME.folded'.
-spec of_profile(binary()) -> paths().
of_profile(Text) ->
    counts([profile_path(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])]).

profile_path(Line) ->
    {Stack, Count} = split_last(Line, " "),
    [Root | Frames] = binary:split(Stack, <<";">>, [global]),
    Erlang = lists:takewhile(fun(Frame) -> not is_native(Frame) end, Frames),
    Inner = case Erlang of
                Frames -> erlang;
                _ -> c
            end,
    IsProcess = binary:first(Root) =:= $<,
    {path(if IsProcess -> Erlang; true -> [] end, Inner, not lists:member(<<"[no stack]">>, Erlang)),
     binary_to_integer(Count)}.

%% Frames that are not Erlang's.
is_native(Frame) ->
    re:run(Frame, "\\]$") =/= nomatch andalso re:run(Frame, "^[^ ]+ \\[code of the VM\\]$") =:= nomatch.

split_last(Text, Separator) ->
    [Before, After] = string:split(Text, Separator, trailing),
    {Before, After}.

%% Shared code is called global::NAME by perf, and NAME [code of the VM] by dyntrace.
path([], _, _) ->
    none;
path(Functions, Inner, IsWhole) ->
    {Outer, [Last]} = lists:split(length(Functions) - 1, [exact(Function) || Function <- Functions]),
    #{functions => [Function || Function <- Outer, not is_shared(Function)]
          ++ [Last || Inner =:= erlang orelse not is_shared(Last)],
      inner => Inner, is_whole => IsWhole}.

exact(<<"global::", Name/binary>>) -> <<Name/binary, " [code of the VM]">>;
exact(Name) -> hd(binary:split(Name, [<<" (last saved)">>, <<"-CodeInfoPrologue">>])).

is_shared(Function) ->
    binary:match(Function, <<" [code of the VM]">>) =/= nomatch.

counts(Counted) ->
    lists:foldl(fun({none, _}, Counts) -> Counts;
                   ({Path, Count}, Counts) -> maps:update_with(Path, fun(Before) -> Before + Count end, Count, Counts)
                end, #{}, Counted).

%% The samples in which Erlang code was running.
-spec in_erlang(paths()) -> paths().
in_erlang(Paths) ->
    maps:filter(fun(#{inner := Inner}, _) -> Inner =:= erlang end, Paths).

-spec whole(paths()) -> paths().
whole(Paths) ->
    maps:filter(fun(#{is_whole := IsWhole}, _) -> IsWhole end, Paths).

-spec samples(paths()) -> non_neg_integer().
samples(Paths) ->
    lists:sum(maps:values(Paths)).

%% The samples of each innermost function, of each function and what it called, and of each path.
-spec own(paths()) -> counts().
own(Paths) -> by(fun(Functions) -> [lists:last(Functions)] end, Paths).

-spec total(paths()) -> counts().
total(Paths) -> by(fun lists:usort/1, Paths).

-spec functions(paths()) -> counts().
functions(Paths) -> by(fun(Functions) -> [Functions] end, Paths).

by(Names, Paths) ->
    counts([{Name, Count} || {#{functions := Functions}, Count} <- maps:to_list(Paths), Functions =/= [],
                             Name <- Names(Functions)]).
