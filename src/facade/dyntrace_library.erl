%% @private The native library of the module `dyntrace': its file, its load argument, and why it cannot be loaded or
%% attached to.
%%
%% The call of erlang:load_nif/2 is in `dyntrace', because a module can only load its own NIFs.
-module(dyntrace_library).

-include_lib("kernel/include/file.hrl").

-export([find/0, nif_path/1, load_info/1, loaded/2]).
-export([check_mapped/2, attach_command/1, show/1, text/0]).

-export_type([file/0, state/0]).

-type identity() :: {Device :: non_neg_integer(), Inode :: non_neg_integer()} | file:posix() | badarg.
%% Of a file, or why it cannot be read.

-opaque file() :: #{path := file:filename(), identity := identity(), replaced := non_neg_integer()}.
%% `replaced': how many other files this VM has already loaded as the library.

-type state() :: {loaded, file:filename()} | {missing, Why :: binary()}.

-type backends() :: #{dyntrace:backend() => available | {missing, binary()}}.

%% The file that is mapped, as {identity(), Replaced}. This key and the next one contain `dyntrace', not the name of
%% this module, because the entries outlive an upgrade.
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

%% The path for erlang:load_nif/2, which appends the extension. For a path that it has opened before, the dynamic linker
%% returns the mapped file, even if the file was replaced (by `make'). If the path is spelled differently, it opens the
%% file and compares it with the mapped ones.
-spec nif_path(file()) -> file:filename().
nif_path(#{path := Path, replaced := Replaced}) ->
    filename:dirname(Path) ++ lists:append(lists:duplicate(Replaced, "/.")) ++ "/" ++ filename:basename(Path, ".so").

%% The argument of the library's load: see start() in dyntrace_nif.c.
-spec load_info(file()) -> tuple().
load_info(#{path := Path}) ->
    {Least, Greatest} = integers(),
    {reserved_words(), sizes(), Least, Greatest, text(), dyntrace_builtins:lists(),
     unicode:characters_to_binary(filename:dirname(Path)), erlang:convert_time_unit(1, second, native)}.

%% The result of the load.
-spec loaded(file(), ok | {error, {atom(), string()}}) -> state().
loaded(#{path := Path, identity := Identity, replaced := Replaced}, ok) ->
    ok = persistent_term:put(?MAPPED, {Identity, Replaced}),
    {loaded, Path};
loaded(#{identity := Identity}, {error, {_, Why}}) ->
    {missing, printed("~ts~ts", [Why, hint(Why, Identity)])}.

%% The dynamic linker has the same message for a file that does not exist and for one of another architecture.
hint(_, enoent) -> "";
hint(Why, _) ->
    Hints = [{"failed to map segment", " (is its file system mounted noexec?)"},
             {"No such file", " (the file exists: was it built for another machine?)"}],
    hd([Hint || {Part, Hint} <- Hints, string:find(Why, Part) =/= nomatch] ++ [""]).

printed(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% While a file is mapped, its inode is not reused for another file.
-spec identity(file:filename()) -> identity().
identity(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, Why} -> Why
    end.

%% -- For tracers ---------------------------------------------------------------------------

%% A tracer that attaches by path opens the file that is there now. If that is not the mapped file, USDT is missing.
-spec check_mapped(file:filename(), backends()) -> backends().
check_mapped(Path, Backends) ->
    {Mapped, _} = persistent_term:get(?MAPPED),
    case identity(Path) of
        Now when Now =:= Mapped; is_atom(Now), Now =/= enoent -> Backends;
        _ -> Backends#{usdt := {missing, printed("~ts is not the file that is loaded (it was rebuilt or removed): "
                                                 "reload the module and attach again", [Path])}}
    end.

%% A command line for root. Its paths are below /proc/PID/root, so that it also works outside the container.
-spec attach_command(file:filename()) -> string().
attach_command(Path) ->
    Root = ["/proc/", os:getpid(), "/root"],
    Script = filename:join([priv_of(filename:dirname(Path)), "bpftrace", "who_talks.bt"]),
    lists:flatten(["bpftrace ", Root, Script, " ", Root, Path]).

%% The priv folder of a library in priv or priv/builds/TARGET.
priv_of(Folder) ->
    Above = filename:dirname(Folder),
    case filename:basename(Above) of
        "builds" -> filename:dirname(Above);
        _ -> Folder
    end.

%% -- The path of the file ------------------------------------------------------------------

%% In the priv folder of the module that is first on the code path (it may be OTP's), or in that of the application.
%% Not in that of the loaded module, which belongs to the old version during an upgrade. A library that was built there
%% takes precedence over the prebuilt one for this VM's machine and C library.
path() ->
    Dirs = priv_dirs(),
    Files = [filename:join(Dir, File) || Dir <- Dirs, File <- ["dyntrace.so", prebuilt()]],
    filename:absname(case [File || File <- Files, filelib:is_regular(File)] of
                         [File | _] -> File;
                         [] -> lists:last(["dyntrace.so" | [filename:join(Dir, "dyntrace.so") || Dir <- Dirs]])
                     end).

%% "x86_64-pc-linux-gnu" is the target x86_64-gnu; that of Alpine's VM is x86_64-musl.
prebuilt() ->
    Words = string:lexemes(erlang:system_info(system_architecture), "-"),
    filename:join(["builds", hd(Words) ++ "-" ++ lists:last(Words), "dyntrace.so"]).

%% The application's folder is last: if the library does not exist, the error names that folder.
priv_dirs() ->
    Beams = [code:where_is_file("dyntrace.beam"), code:where_is_file("dyntrace_app.beam"), code:which(dyntrace_app)],
    [Dir || Beam <- Beams, is_list(Beam), Dir <- beside(filename:dirname(Beam))]
        ++ [Dir || Dir <- [code:priv_dir(dyntrace)], is_list(Dir)].

%% For ebin, its sibling priv. For priv/beam, from which systools packs the module into releases, also priv itself.
beside(Folder) ->
    Above = filename:dirname(filename:absname(Folder)),
    [filename:join(Above, "priv") | [Above || filename:basename(Folder) =:= "beam"]].

%% -- Calibration: differences between OTP releases -------------------------------------------

%% The words that Erlang quotes as atoms; which of them are reserved depends on the release.
reserved_words() ->
    [Word || Word <- ['after', 'and', 'andalso', 'band', 'begin', 'bnot', 'bor', 'bsl', 'bsr', 'bxor',
                      'case', 'catch', 'cond', 'div', 'else', 'end', 'fun', 'if', 'let', 'maybe',
                      'not', 'of', 'or', 'orelse', 'receive', 'rem', 'try', 'when', 'xor'],
             is_quoted(Word)].

is_quoted(Word) ->
    hd(lists:flatten(io_lib:write_atom(Word))) =:= $'.

%% The bounds of the integers whose text is not cut: DT_TERM_MAX digits.
integers() ->
    Power = fun Power(0) -> 1; Power(N) -> 10 * Power(N - 1) end,
    {-Power(256), Power(256)}.

%% Heap sizes in words: the header of a heap binary, an off-heap binary, a bitstring, a reference, a fun, a pid of
%% another node.
sizes() ->
    External = binary_to_term(<<131, 88, 119, 1, $n, 1:32, 0:32, 1:32>>),
    Header = erts_debug:flat_size(binary:copy(<<0>>)) - 1,
    Terms = [binary:copy(<<0>>, 65), <<(binary:copy(<<0>>))/binary, 1:3>>, make_ref(), fun() -> ok end, External],
    list_to_tuple([Header | [erts_debug:flat_size(Term) || Term <- Terms]]).

%% -- The setting `text' --------------------------------------------------------------------

%% Sets whether texts show terms in full or only their shape, in the loaded library and in those that are loaded later.
-spec show(full | shape) -> ok.
show(Text) ->
    ok = persistent_term:put(?TEXT, Text),
    dyntrace:show_nif(Text).

%% The value of show/1 or of the configuration, whether or not the application runs. An invalid value shows shapes, so
%% that contents stay hidden.
-spec text() -> full | shape.
text() ->
    case persistent_term:get(?TEXT, none) of
        none -> configured_text();
        Text -> Text
    end.

%% The environment has the values of sys.config once the application is loaded.
configured_text() ->
    ok = load_application(whereis(application_controller)),
    case application:get_env(dyntrace, text) of
        undefined -> full;
        {ok, full} -> full;
        {ok, _} -> shape
    end.

load_application(undefined) ->
    ok;
load_application(_) ->
    _ = application:load(dyntrace),
    ok.
