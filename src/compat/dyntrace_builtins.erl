%% @private The lists of BIFs and NIFs, for the library: a trace event does not show whether the called function is one.
%% The library gets both lists when it is loaded, and updates while a consumer of calls is attached and code is loaded.
-module(dyntrace_builtins).
-behaviour(dyntrace_source).

-export([lists/0]).
-export([on/2, poll/2, message/2, off/1]).

%% A reloaded module, and NIFs that are loaded after their module, do not change the list of modules. Therefore the NIFs
%% are read at least this often. With a thousand modules that takes 0.2 ms, the list of modules 0.05.
-define(READ_AGAIN_MS, 1000).

-record(state, {modules :: [module()],
                lists :: {[mfa()], [mfa()]},
                read_ms :: integer()}).

%% {Bifs, Nifs}.
-spec lists() -> {[mfa()], [mfa()]}.
lists() ->
    {bifs(), nifs(erlang:loaded())}.

%% Loading code does not change the BIFs. The list lacks three for which erlang:is_builtin/3 returns true: the compiler
%% has instructions for them, but a fun can call them.
bifs() ->
    [{erlang, apply, 2}, {erlang, apply, 3}, {erlang, yield, 0} | erlang:system_info(snifs)].

nifs(Modules) ->
    [{Module, Function, Arity} || Module <- Modules, {Function, Arity} <- nifs_of(Module)].

nifs_of(Module) ->
    try erlang:get_module_info(Module, nifs)
    catch error:badarg -> [] % it was unloaded meanwhile
    end.

%% -- The source --------------------------------------------------------------------------

on(_, _) ->
    Modules = erlang:loaded(),
    {on, given(#state{modules = Modules, lists = {bifs(), nifs(Modules)}, read_ms = now_ms()})}.

poll(_, State = #state{modules = Modules, lists = {Bifs, Nifs}, read_ms = ReadMs}) ->
    Now = now_ms(),
    case erlang:loaded() of
        Modules when Now - ReadMs < ?READ_AGAIN_MS ->
            {on, State};
        Loaded ->
            Read = State#state{modules = Loaded, read_ms = Now},
            case nifs(Loaded) of
                Nifs -> {on, Read};
                Others -> {on, given(Read#state{lists = {Bifs, Others}})}
            end
    end.

message(_, State) ->
    State.

%% The library's lists stay correct until code is loaded.
off(_) ->
    ok.

given(State = #state{lists = {Bifs, Nifs}}) ->
    case dyntrace:set_builtins(Bifs, Nifs) of
        0 -> ok;
        LeftOut -> logger:warning("dyntrace: too many NIFs: calls of ~b count as calls of Erlang code", [LeftOut])
    end,
    State.

now_ms() ->
    erlang:monotonic_time(millisecond).
