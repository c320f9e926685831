%% `make check-systemtap`: SystemTap's scripts and tapset, in a virtual machine, since SystemTap requires a kernel that
%% loads its modules.
-module(systemtap_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).
-compile(nowarn_export_all).

-define(RELEASE, "forky").
-define(PACKAGES, "linux-image-amd64 linux-headers-amd64 systemtap systemtap-sdt-dev gcc libc6-dev make "
                  "erlang-base erlang-dev kmod busybox-static").
-define(BOOT_S, 600).

suite() ->
    [{timetrap, {minutes, 25}}].

all() ->
    [marks_are_listed, tapset_is_listed, scripts_are_all_run | [Script || {Script, _} <- systemtap_guest:scripts()]].

init_per_suite(Config) ->
    {_, Id} = test_shell:run("id -u", []),
    Missing = [Tool || Tool <- ["debootstrap", "qemu-system-x86_64", "unshare"], os:find_executable(Tool) =:= false],
    case test_require:tool(Id =/= <<"0\n">> andalso "SystemTap's virtual machine needs root"
                         orelse Missing =/= [] andalso lists:join(", ", Missing) ++ " not installed", Config) of
        {skip, Why} -> {skip, Why};
        _ -> prepare([{folder, folder()} | Config])
    end.

end_per_suite(_) ->
    ok.

%% An archive that can't be reached does not fail the suite, even in CI.
prepare(Config) ->
    case tool("debian ~s install ~s", [?RELEASE, ?PACKAGES]) of
        {0, _} ->
            Scripts = lists:join(" ", [atom_to_list(Script) || {Script, _} <- systemtap_guest:scripts()]),
            {0, _} = tool("debian ~s run test/vm/build_guest ~s", [?RELEASE, Scripts]),
            {Status, Console} = tool("vm ~s ~b 'cd /dyntrace && "
                                     "erl -noinput -pa ebin -run systemtap_guest main vm vm/results'",
                                     [?RELEASE, ?BOOT_S]),
            ct:pal("~ts", [Console]),
            ?assertEqual(0, Status),
            Config;
        {_, Output} ->
            ct:pal("SKIPPED: no folder of Debian ~s:~n~ts", [?RELEASE, Output]),
            {skip, "no folder of Debian " ?RELEASE ": its archive can't be reached"}
    end.

%% -- Tests -----------------------------------------------------------------------------------

marks_are_listed(Config) ->
    {match, Marks} = re:run(read("marks", Config), "mark\\(\"(\\w+)\"\\)", [global, {capture, all_but_first, binary}]),
    ?assertEqual(lists:sort(catalogue_SUITE:usdt_names()), lists:sort(lists:append(Marks))).

%% Each probe with its fields as variables, of the right type.
tapset_is_listed(Config) ->
    Listed = maps:from_list([{hd(binary:split(Line, <<" ">>)), Line}
                             || Line <- binary:split(read("probes", Config), <<"\n">>, [global, trim_all])]),
    [begin
         Line = maps:get(iolist_to_binary([prefix(Provider), atom_to_list(Name)]), Listed),
         [?assertMatch({_, _}, binary:match(Line, variable(Field)), {Line, Field}) || Field <- Fields]
     end || #{provider := Provider, name := Name, fields := Fields, backends := Backends} <- dyntrace:probes(),
     lists:member(usdt, Backends)].

prefix(org_erlang_dyntrace) -> "dyntrace.";
prefix(erlang) -> "dyntrace.erlang.".

variable(#{name := Name, type := string}) -> iolist_to_binary([" ", atom_to_list(Name), ":string"]);
variable(#{name := Name}) -> iolist_to_binary([" ", atom_to_list(Name), ":long"]).

scripts_are_all_run(_) ->
    Files = filelib:wildcard(filename:join(test_shell:project(), "priv/systemtap/scripts/*.stp")),
    Run = [atom_to_list(Script) || {Script, _} <- systemtap_guest:scripts()],
    ?assertEqual([], [filename:basename(File, ".stp") || File <- Files] -- Run).

spawn_exit(Config) -> result(spawn_exit, Config).
scheduling(Config) -> result(scheduling, Config).
messages(Config) -> result(messages, Config).
calls(Config) -> result(calls, Config).
gc(Config) -> result(gc, Config).
user_probes(Config) -> result(user_probes, Config).
process_trace(Config) -> result(process_trace, Config).
messages_as_stapusr(Config) -> result(messages_as_stapusr, Config).

result(Script, Config) ->
    {ok, Results} = file:consult(filename:join(?config(folder, Config), "dyntrace/vm/results")),
    ?assertEqual(ok, proplists:get_value(Script, Results)).

%% -- Helpers ---------------------------------------------------------------------------------

read(File, Config) ->
    {ok, Text} = file:read_file(filename:join([?config(folder, Config), "dyntrace/vm", File])),
    Text.

folder() ->
    {0, Folder} = tool("debian ~s folder", [?RELEASE]),
    binary_to_list(string:trim(Folder)).

tool(Format, Args) ->
    test_shell:run("'~ts/tools/'" ++ Format ++ " 2>&1", [test_shell:project() | Args]).
