%% The virtual machine of SystemTap's and DTrace's suites: prepared and booted once per run, for both.
-module(vm).

-export([boot/1, result/3, read/2]).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-define(RELEASE, "forky").
-define(PACKAGES, "linux-image-amd64 linux-headers-amd64 systemtap systemtap-sdt-dev dtrace gcc libc6-dev make "
                  "erlang-base erlang-dev kmod busybox-static").
-define(BOOT_S, 1800).

%% For init_per_suite. Later suites get the result of the first one.
boot(Config) ->
    case persistent_term:get(?MODULE, undefined) of
        undefined ->
            Booted = prepare(Config),
            persistent_term:put(?MODULE, Booted),
            with(Booted, Config);
        Booted ->
            with(Booted, Config)
    end.

with({folder, Folder}, Config) -> [{folder, Folder} | Config];
with(Failed, _) -> Failed.

prepare(Config) ->
    {_, Id} = test_shell:run("id -u", []),
    Missing = [Tool || Tool <- ["debootstrap", "qemu-system-x86_64", "unshare"], os:find_executable(Tool) =:= false],
    _ = test_require:tool(Id =/= <<"0\n">> andalso "the virtual machine needs root"
                          orelse Missing =/= [] andalso lists:join(", ", Missing) ++ " not installed", Config),
    install().

%% If the archive can't be reached, the suites do not fail, not even in CI.
install() ->
    case tool("debian ~s install ~s", [?RELEASE, ?PACKAGES]) of
        {0, _} -> run();
        {_, Output} ->
            ct:pal("SKIPPED: no folder of Debian ~s:~n~ts", [?RELEASE, Output]),
            {skip, "no folder of Debian " ?RELEASE ": its archive can't be reached"}
    end.

run() ->
    Scripts = lists:join(" ", [atom_to_list(Script) || {Script, _, _} <- systemtap_guest:scripts()]),
    {0, _} = tool("debian ~s run test/vm/build_guest ~s", [?RELEASE, Scripts]),
    {Status, Console} = tool("vm ~s ~b 'cd /dyntrace && erl -noinput -pa _build/default/lib/dyntrace/ebin -pa vm/ebin "
                             "-run guest main vm/results'", [?RELEASE, ?BOOT_S]),
    ct:pal("~ts", [Console]),
    case Status of
        0 -> {folder, folder()};
        _ -> {fail, {virtual_machine, Status}}
    end.

%% The guest's result for a script or another check.
result(Tool, Name, Config) ->
    {ok, Results} = file:consult(filename:join(?config(folder, Config), "dyntrace/vm/results")),
    ?assertEqual(ok, proplists:get_value({Tool, Name}, Results)).

%% A file that the guest or build_guest has written.
read(File, Config) ->
    {ok, Text} = file:read_file(filename:join([?config(folder, Config), "dyntrace/vm", File])),
    Text.

folder() ->
    {0, Folder} = tool("debian ~s folder", [?RELEASE]),
    binary_to_list(string:trim(Folder)).

tool(Format, Args) ->
    test_shell:run("'~ts/tools/'" ++ Format ++ " 2>&1", [test_shell:project() | Args]).
