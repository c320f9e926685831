%% @private The source of `socket_sample': the processes that own the most sockets of the module `socket'.
%%
%% Such a socket is neither a port nor a process, so no other event shows that a process does not close its sockets.
%% Each sample requests the list of all sockets from the registry of `socket', and reads the owners of new ones.
-module(dyntrace_socket_samples).
-behaviour(dyntrace_sampler).

%% The callback of dyntrace_sampler
-export([report/1]).

%% How many processes a sample reports, and how many sockets they own at least.
-define(LARGEST, 10).
-define(LEAST, 50).

%% A node with more sockets is not sampled: the list of all takes up to a millisecond per thousand.
-define(MOST, 10000).

%% How many new sockets a sample reads, in batches with a pause after each. The owner of one takes 8 us. While some are
%% unread, nothing is reported, because their number would look like growth.
-define(PART, 1000).
-define(BATCH, 100).

-record(samples, {at :: undefined | integer(),
                  owners = #{} :: #{socket:socket() => {Read :: pos_integer(), Owner :: pid()}},
                  %% How many sockets have been read.
                  read = 0 :: non_neg_integer()}).

report(none) ->
    report(#samples{});
report(State = #samples{at = At}) ->
    dyntrace_sampler:if_due(At, State, fun(Now) -> sample(State#samples{at = Now}) end).

sample(State = #samples{owners = Owners, read = Before}) ->
    case sockets() of
        Count when Count >= ?LEAST, Count =< ?MOST ->
            {Known, New} = known(socket:which_sockets(), Owners, #{}, []),
            {Part, Unread} = dyntrace_walk:split(?PART, New),
            All = maps:merge(Known, maps:from_list(read(Part, Before + 1))),
            _ = [ok = report_owners(All) || Unread =:= []],
            State#samples{owners = All, read = Before + length(Part)};
        _ ->
            State#samples{owners = #{}}
    end.

%% Without a request to another process. A node that uses no sockets may not have loaded the module; without support by
%% the VM, the module's functions raise notsup.
sockets() ->
    try erlang:module_loaded(socket) andalso socket:info() of
        #{counters := #{num_sockets := Count}} -> Count;
        _ -> 0
    catch
        error:_ -> 0
    end.

%% The sockets whose owners are known, and those that are new.
known([], _, Known, New) ->
    {Known, New};
known([Socket | Sockets], Owners, Known, New) ->
    case Owners of
        #{Socket := Owner} -> known(Sockets, Owners, Known#{Socket => Owner}, New);
        #{} -> known(Sockets, Owners, Known, [Socket | New])
    end.

%% A socket that has just been closed has no owner.
read([], _) ->
    [];
read([Socket | Sockets], N) ->
    ok = dyntrace_walk:pause(N, ?BATCH),
    [{Socket, {N, Owner}} || #{owner := Owner} <- [socket:info(Socket)], is_pid(Owner)] ++ read(Sockets, N + 1).

%% Of each, the socket that was read last.
report_owners(Owners) ->
    Sums = maps:fold(fun sum/3, #{}, Owners),
    Most = [{Count, Owner, Socket} || {Owner, {Count, _, Socket}} <- maps:to_list(Sums), Count >= ?LEAST],
    {Largest, _} = dyntrace_walk:split(?LARGEST, lists:reverse(lists:keysort(1, Most))),
    lists:foreach(fun({Count, Owner, Socket}) -> dyntrace:report(socket_sample, {Owner, Count, name(Socket)}) end,
                  Largest).

sum(Socket, {Read, Owner}, Sums) ->
    case Sums of
        #{Owner := {Count, Last, _}} when Read > Last -> Sums#{Owner := {Count + 1, Read, Socket}};
        #{Owner := {Count, Last, Newest}} -> Sums#{Owner := {Count + 1, Last, Newest}};
        #{} -> Sums#{Owner => {1, Read, Socket}}
    end.

%% Addresses are contents, which `shape' hides.
name(Socket) ->
    Name = protocol(socket:info(Socket)),
    case dyntrace_library:text() of
        full -> dyntrace_port_asker:with_addresses(Socket, Name, fun sockname/1, fun peername/1);
        shape -> Name
    end.

%% A local socket has no protocol; `socket' would call it `ip'. A protocol without a name is a number.
protocol(#{domain := local}) -> "local";
protocol(#{protocol := Number}) when is_integer(Number) -> "protocol " ++ integer_to_list(Number);
protocol(#{protocol := Protocol}) -> atom_to_list(Protocol).

sockname(Socket) -> endpoint(socket:sockname(Socket)).

peername(Socket) -> endpoint(socket:peername(Socket)).

%% As the functions of `inet' return it.
endpoint({ok, #{addr := Ip, port := Port}}) -> {ok, {Ip, Port}};
endpoint({ok, #{path := Path}}) -> {ok, {local, Path}};
endpoint(Other) -> Other.
