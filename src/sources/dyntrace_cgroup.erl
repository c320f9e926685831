%% @private The CPU quotas and memory limits that apply to the node: those of its cgroup and of the cgroups above it.
%%
%% The functions take the contents of /proc/self/cgroup, and a function that reads a file, which is
%% dyntrace:kernel_file/1.
-module(dyntrace_cgroup).

-export([folders/2, cpu/2, memory/2]).

-export_type([folder/0]).

-type folder() :: {v1 | v2, Path :: binary()}.
%% A folder of a cgroup, of version 1 or 2.

-type read() :: fun((Path :: binary()) -> binary() | undefined).

-define(MOUNTED, "/sys/fs/cgroup").

%% The maximum number of folders.
-define(MOST, 16).

%% Version 1 reports a number of this size, in bytes, if there is no memory limit.
-define(NO_LIMIT, 1 bsl 60).

%% The folder of the cgroup of this controller (`cpu', `memory') and those above it. In a container, the cgroup's path
%% may be that of the host: then only the last folder exists, which is that of the container.
-spec folders(binary() | undefined, Controller :: binary()) -> [folder()].
folders(undefined, _) ->
    [];
folders(Cgroups, Controller) ->
    Lines = [Fields || Line <- binary:split(Cgroups, <<"\n">>, [global]), Fields <- fields(Line)],
    V1 = [{v1, <<?MOUNTED "/", Controllers/binary>>, Path}
          || {Controllers, Path} <- Lines, lists:member(Controller, binary:split(Controllers, <<",">>, [global]))],
    case V1 ++ [{v2, <<?MOUNTED>>, Path} || {<<>>, Path} <- Lines] of
        [{Version, Root, Path} | _] -> [{Version, Folder} || Folder <- lists:sublist(up(Root, names(Path)), ?MOST)];
        [] -> []
    end.

%% A line is `Number:Controllers:Path'; version 2 has no controllers.
fields(Line) ->
    [{Controllers, Path} || [_, Rest] <- [binary:split(Line, <<":">>)],
                            [Controllers, Path] <- [binary:split(Rest, <<":">>)]].

names(Path) ->
    binary:split(Path, <<"/">>, [global, trim_all]).

%% A cgroup that is outside of the process's namespace has a path with "..".
up(Root, Names) ->
    Below = fun(Name, [Folder | _] = Folders) -> [<<Folder/binary, "/", Name/binary>> | Folders] end,
    case lists:member(<<"..">>, Names) of
        true -> [];
        false -> lists:foldl(Below, [Root], Names)
    end.

%% The smallest quota, in thousandths of a CPU, and for how many microseconds quotas have stopped CPUs. These are added
%% up because a cgroup that is stopped by the quota of another one does not use up its own.
-spec cpu([folder()], read()) -> #{quota => non_neg_integer(), throttled => non_neg_integer()}.
cpu(Folders, Read) ->
    Found = [{Quota, Time} || Folder <- Folders, Quota <- quota(Folder, Read), Time <- throttled(Folder, Read)],
    case lists:unzip(Found) of
        {[], []} -> #{};
        {Quotas, Times} -> #{quota => lists:min(Quotas), throttled => lists:sum(Times)}
    end.

%% The smallest memory limit or, if that is less, the memory of the host, in bytes; undefined if neither is known.
-spec memory([folder()], read()) -> non_neg_integer() | undefined.
memory(Folders, Read) ->
    case of_host(Read) ++ [Bytes || Folder <- Folders, Bytes <- limit(Folder, Read)] of
        [] -> undefined;
        Limits -> lists:min(Limits)
    end.

of_host(Read) ->
    case words(Read(<<"/proc/meminfo">>)) of
        [<<"MemTotal:">>, KiloBytes | _] -> [1024 * Number || Number <- number(KiloBytes)];
        _ -> []
    end.

limit({v1, Folder}, Read) ->
    [Bytes || Bytes <- numbers(<<Folder/binary, "/memory.limit_in_bytes">>, Read), Bytes < ?NO_LIMIT];
limit({v2, Folder}, Read) -> numbers(<<Folder/binary, "/memory.max">>, Read).

quota({v1, Folder}, Read) ->
    [Quota * 1000 div Period || [Quota] <- [numbers(<<Folder/binary, "/cpu.cfs_quota_us">>, Read)], Quota > 0,
                                [Period] <- [numbers(<<Folder/binary, "/cpu.cfs_period_us">>, Read)], Period > 0];
quota({v2, Folder}, Read) ->
    [Quota * 1000 div Period || [Quota, Period] <- [numbers(<<Folder/binary, "/cpu.max">>, Read)], Period > 0].

throttled({v1, Folder}, Read) -> [Ns div 1000 || Ns <- value(<<"throttled_time">>, stat(Folder, Read))];
throttled({v2, Folder}, Read) -> value(<<"throttled_usec">>, stat(Folder, Read)).

stat(Folder, Read) ->
    words(Read(<<Folder/binary, "/cpu.stat">>)).

value(Name, [Name, Value | _]) -> number(Value);
value(Name, [_, _ | Rest]) -> value(Name, Rest);
value(_, _) -> [].

%% Without a quota or limit, the first word is `max'.
numbers(Path, Read) ->
    lists:append([number(Word) || Word <- words(Read(Path))]).

words(undefined) -> [];
words(Text) -> binary:split(Text, [<<" ">>, <<"\n">>], [global, trim_all]).

number(Word) ->
    case string:to_integer(Word) of
        {Number, <<>>} when is_integer(Number) -> [Number];
        _ -> []
    end.
