%% A bank with two branches: a table of Mnesia on two nodes, whose tellers transfer money between accounts.
-module(bank).

-export([open/1, audit/0]).
%% On both nodes.
-export([employ/1]).

-define(ACCOUNTS, 100).

%% Called on the first of the nodes.
-spec open(node()) -> ok.
open(Other) ->
    Nodes = [node(), Other],
    [ok = rpc:call(Node, mnesia, start, []) || Node <- Nodes],
    {ok, [Other]} = mnesia:change_config(extra_db_nodes, [Other]),
    {atomic, ok} = mnesia:create_table(account, [{ram_copies, Nodes}]),
    [ok = mnesia:dirty_write({account, N, 1000}) || N <- lists:seq(1, ?ACCOUNTS)],
    [ok = rpc:call(Node, ?MODULE, employ, [4]) || Node <- Nodes],
    ok.

-spec employ(pos_integer()) -> ok.
employ(Tellers) ->
    [named("teller_" ++ integer_to_list(N), fun transfer/0) || N <- lists:seq(1, Tellers)],
    ok.

%% The fault: most of the time, no teller gets a lock.
-spec audit() -> ok.
audit() ->
    named("auditor", fun() -> {atomic, ok} = mnesia:transaction(fun count/0), receive after 200 -> ok end end).

named(Name, Fun) ->
    _ = spawn(fun() -> true = register(list_to_atom(Name), self()), forever(Fun) end),
    ok.

forever(Fun) ->
    _ = Fun(),
    forever(Fun).

transfer() ->
    [From, To] = [rand:uniform(?ACCOUNTS) || _ <- [from, to]],
    {atomic, ok} = mnesia:transaction(fun() -> change(From, -1), change(To, 1) end),
    receive after 20 -> ok end.

change(Account, By) ->
    [{account, _, Balance}] = mnesia:wread({account, Account}),
    ok = mnesia:write({account, Account, Balance + By}).

count() ->
    _ = mnesia:read_lock_table(account),
    receive after 500 -> ok end.
