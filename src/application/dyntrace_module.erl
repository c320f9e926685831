%% @private Makes sure that the module `dyntrace' is ours. OTP's runtime_tools has a module of the same name, which
%% may already be loaded or be first on the code path.
-module(dyntrace_module).

-export([load/0]).

%% Loads ours unless it is loaded, and puts its folder first on the code path, so that a later load by name gets the
%% same file. An error persists until the installed files change.
-spec load() -> ok | {error, Why :: string()}.
load() ->
    case {file(), is_ours()} of
        {{ok, File}, _} -> _ = first_on_path(File), load(File, loaded());
        {none, true} -> ok;
        {none, false} -> {error, "its module `dyntrace` is not in " ++ lists:append(lists:join(", ", folders()))}
    end.

load(File, {from, File}) ->
    ok;
load(File, Loaded) ->
    case Loaded =:= without_file andalso is_ours() of
        true -> ok;
        false -> replace(File, Loaded)
    end.

%% By its file, because embedded mode does not load modules by name.
replace(File, Loaded) ->
    _ = code:purge(dyntrace),
    case code:load_abs(filename:rootname(File)) of
        {module, dyntrace} ->
            ok = notice_replaced(Loaded, File);
        {error, Why} ->
            {error, lists:flatten(io_lib:format("~ts cannot be loaded: ~0p", [File, Why]))}
    end.

notice_replaced(none, _) -> ok;
notice_replaced(Loaded, File) -> logger:notice("dyntrace: loaded ~ts in place of ~ts", [File, described(Loaded)]).

described({from, File}) -> File;
described(without_file) -> "a module without a file".

%% -- The loaded module ---------------------------------------------------------------------

%% A cover-compiled module has no file.
loaded() ->
    case code:is_loaded(dyntrace) of
        {file, File} when is_list(File), File =/= [] -> {from, filename:absname(File)};
        {file, _} -> without_file;
        false -> none
    end.

%% OTP's module has no info/0.
is_ours() ->
    erlang:function_exported(dyntrace, info, 0).

%% -- The folder of our module --------------------------------------------------------------

file() ->
    case [File || Folder <- folders(), File <- [filename:join(Folder, "dyntrace.beam")], is_file(File)] of
        [File | _] -> {ok, File};
        [] -> none
    end.

%% Uses the code server's file reader, which also reads archives.
is_file(File) ->
    erl_prim_loader:read_file_info(File) =/= error.

%% The folder of this module (ebin) or, in a release made by systools, priv/beam, which has a copy of the file.
folders() ->
    Here = filename:dirname(here()),
    [Here, filename:join([filename:dirname(Here), "priv", "beam"])].

here() ->
    case code:which(?MODULE) of
        File when is_list(File) -> filename:absname(File);
        _CoverCompiled -> on_path()
    end.

on_path() ->
    case code:where_is_file("dyntrace_module.beam") of
        File when is_list(File) -> filename:absname(File);
        non_existing -> filename:absname("dyntrace_module.beam")
    end.

first_on_path(File) ->
    First = code:where_is_file("dyntrace.beam"),
    is_list(First) andalso filename:absname(First) =:= File orelse code:add_patha(filename:dirname(File)).
