%% @private The native library of the module `dyntrace': its file, what it is given when it is loaded, and why it
%% can't be loaded or be attached to.
%%
%% The call of erlang:load_nif/2 is in `dyntrace', since a module can load only its own NIFs.
-module(dyntrace_library).

-include_lib("kernel/include/file.hrl").

-export([find/0, nif_path/1, load_info/1, loaded/2]).
-export([check_mapped/2, attach_command/1, show/1]).

-export_type([file/0, state/0]).

-type identity() :: {Device :: non_neg_integer(), Inode :: non_neg_integer()} | file:posix() | badarg.
%% Of a file, or why it can't be read.

-opaque file() :: #{path := file:filename(), identity := identity(), replaced := non_neg_integer()}.
%% `replaced': how many other files this VM has loaded as the library before.

-type state() :: {loaded, file:filename()} | {missing, Why :: binary()}.

-type backends() :: #{dyntrace:backend() => available | {missing, binary()}}.

%% The file that is mapped, as {identity(), Replaced}. In the name of the module `dyntrace', as below, since the entries
%% outlive an upgrade.
-define(MAPPED, {dyntrace, mapped}).

%% The argument of show/1.
-define(TEXT, {dyntrace, text}).

%% -- Loading -------------------------------------------------------------------------------

%% The library's file, whether it exists or not.
-spec find() -> file().
find() ->
    Path = path(),
    Identity = identity(Path),
    #{path => Path, identity => Identity, replaced => replaced(Identity, persistent_term:get(?MAPPED, none))}.

replaced(_, none) -> 0;
replaced(Identity, {Identity, Replaced}) -> Replaced;
replaced(_, {_Other, Replaced}) -> Replaced + 1.

%% The path for erlang:load_nif/2, which appends the extension. For a path that the dynamic linker has opened before,
%% it takes the file that is mapped, even if that was replaced (by `make'). It opens a path that is spelled
%% differently, and compares the files.
-spec nif_path(file()) -> file:filename().
nif_path(#{path := Path, replaced := Replaced}) ->
    filename:dirname(Path) ++ lists:append(lists:duplicate(Replaced, "/.")) ++ "/" ++ filename:basename(Path, ".so").

%% The argument of the library's load: see start() in dyntrace_nif.c.
-spec load_info(file()) -> tuple().
load_info(#{path := Path}) ->
    {Least, Greatest} = integers(),
    {reserved_words(), sizes(), Least, Greatest, text(), dyntrace_builtins:lists(),
     unicode:characters_to_binary(filename:dirname(Path))}.

%% The result of the load.
-spec loaded(file(), ok | {error, {atom(), string()}}) -> state().
loaded(#{path := Path, identity := Identity, replaced := Replaced}, ok) ->
    ok = persistent_term:put(?MAPPED, {Identity, Replaced}),
    {loaded, Path};
loaded(#{identity := Identity}, {error, {_, Why}}) ->
    {missing, printed("~ts~ts", [Why, hint(Why, Identity)])}.

%% The dynamic linker has one message for a file that does not exist and for one of another machine.
hint(_, enoent) -> "";
hint(Why, _) ->
    Hints = [{"failed to map segment", " (is its file system mounted noexec?)"},
             {"No such file", " (it is there: was it built for another machine?)"}],
    hd([Hint || {Part, Hint} <- Hints, string:find(Why, Part) =/= nomatch] ++ [""]).

printed(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% The inode of a mapped file is not used for another one.
-spec identity(file:filename()) -> identity().
identity(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, Why} -> Why
    end.

%% -- For tracers ---------------------------------------------------------------------------

%% A tracer that attaches by the path opens the file that is there now. If that is not the one that is mapped, USDT is
%% missing.
-spec check_mapped(file:filename(), backends()) -> backends().
check_mapped(Path, Backends) ->
    {Mapped, _} = persistent_term:get(?MAPPED),
    case identity(Path) of
        Now when Now =:= Mapped; is_atom(Now), Now =/= enoent -> Backends;
        _ -> Backends#{usdt := {missing, printed("~ts is not the file that is loaded (built again, or removed): "
                                                 "load the module again, and attach again", [Path])}}
    end.

%% A command line for root. Its paths are below /proc/PID/root, so that it also works outside the container.
-spec attach_command(file:filename()) -> string().
attach_command(Path) ->
    Root = ["/proc/", os:getpid(), "/root"],
    Script = filename:join([filename:dirname(Path), "bpftrace", "who_talks.bt"]),
    lists:flatten(["bpftrace ", Root, Script, " ", Root, Path]).

%% -- Where the file is ---------------------------------------------------------------------

%% In the priv folder of the module that comes first on the code path (it may be OTP's), or in that of the application.
%% Not in that of the loaded module: during an upgrade it belongs to the old version.
path() ->
    Files = [filename:join(Dir, "dyntrace.so") || Dir <- priv_dirs()],
    filename:absname(case [File || File <- Files, filelib:is_regular(File)] of
                         [File | _] -> File;
                         [] -> lists:last(["dyntrace.so" | Files])
                     end).

%% The application's folder comes last: without any library, the error names that folder.
priv_dirs() ->
    Beams = [code:where_is_file("dyntrace.beam"), code:where_is_file("dyntrace_app.beam"), code:which(dyntrace_app)],
    [Dir || Beam <- Beams, is_list(Beam), Dir <- beside(filename:dirname(Beam))]
        ++ [Dir || Dir <- [code:priv_dir(dyntrace)], is_list(Dir)].

%% For ebin, its sibling priv. For priv/beam, where systools packs the module in releases, priv itself as well.
beside(Folder) ->
    Above = filename:dirname(filename:absname(Folder)),
    [filename:join(Above, "priv") | [Above || filename:basename(Folder) =:= "beam"]].

%% -- Calibration: what differs between releases of OTP ---------------------------------------

%% The words that Erlang writes in quotes when they are atoms; which of them are reserved depends on the release.
reserved_words() ->
    [Word || Word <- ['after', 'and', 'andalso', 'band', 'begin', 'bnot', 'bor', 'bsl', 'bsr', 'bxor',
                      'case', 'catch', 'cond', 'div', 'else', 'end', 'fun', 'if', 'let', 'maybe',
                      'not', 'of', 'or', 'orelse', 'receive', 'rem', 'try', 'when', 'xor'],
             is_quoted(Word)].

is_quoted(Word) ->
    hd(lists:flatten(io_lib:write_atom(Word))) =:= $'.

%% The bounds of the integers whose text may be shown whole: DT_TERM_MAX digits.
integers() ->
    Power = fun Power(0) -> 1; Power(N) -> 10 * Power(N - 1) end,
    {-Power(256), Power(256)}.

%% Sizes on a heap, in words: the header of a heap binary, an off-heap binary, a bitstring, a reference, a fun, a pid of
%% another node.
sizes() ->
    External = binary_to_term(<<131, 88, 119, 1, $n, 1:32, 0:32, 1:32>>),
    Header = erts_debug:flat_size(binary:copy(<<0>>)) - 1,
    Terms = [binary:copy(<<0>>, 65), <<(binary:copy(<<0>>))/binary, 1:3>>, make_ref(), fun() -> ok end, External],
    list_to_tuple([Header | [erts_debug:flat_size(Term) || Term <- Terms]]).

%% -- The setting `text' --------------------------------------------------------------------

%% Sets whether texts show terms in full or only their shape, in the library that is loaded and in all that are loaded
%% later.
-spec show(full | shape) -> ok.
show(Text) ->
    ok = persistent_term:put(?TEXT, Text),
    dyntrace:show_nif(Text).

%% As show/1 has said or as configured, whether the application runs or not. A value that is not valid shows shapes, so
%% that contents stay hidden.
text() ->
    case persistent_term:get(?TEXT, none) of
        none -> configured_text();
        Text -> Text
    end.

%% The environment has the values of sys.config once the application is loaded.
configured_text() ->
    _ = whereis(application_controller) =/= undefined andalso application:load(dyntrace),
    case application:get_env(dyntrace, text) of
        undefined -> full;
        {ok, full} -> full;
        {ok, _} -> shape
    end.
