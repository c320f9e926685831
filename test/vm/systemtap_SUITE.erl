%% `make check-vm`: SystemTap's scripts and tapset, in a virtual machine, because SystemTap requires a kernel that loads
%% its modules.
-module(systemtap_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 45}}].

all() ->
    [marks_are_listed, tapset_is_listed, example_scripts, scripts_are_all_run
     | [Script || {Script, _, _} <- systemtap_guest:scripts()]].

init_per_suite(Config) -> vm:boot(Config).

end_per_suite(_) -> ok.

%% -- Tests -----------------------------------------------------------------------------------

marks_are_listed(Config) ->
    {match, Marks} = re:run(vm:read("marks", Config), "mark\\(\"(\\w+)\"\\)",
                            [global, {capture, all_but_first, binary}]),
    ?assertEqual(lists:sort(catalogue_SUITE:usdt_names()), lists:sort(lists:append(Marks))).

%% Each probe is listed with its fields as variables of the right type.
tapset_is_listed(Config) ->
    Listed = maps:from_list([{hd(binary:split(Line, <<" ">>)), Line}
                             || Line <- binary:split(vm:read("probes", Config), <<"\n">>, [global, trim_all])]),
    [begin
         Line = maps:get(iolist_to_binary([prefix(Provider), atom_to_list(Name)]), Listed),
         [?assertMatch({_, _}, binary:match(Line, variable(Field)), {Line, Field}) || Field <- Fields]
     end || #{provider := Provider, name := Name, fields := Fields, backends := Backends} <- dyntrace:probes(),
     lists:member(usdt, Backends)].

prefix(org_erlang_dyntrace) -> "dyntrace.";
prefix(erlang) -> "dyntrace.erlang.".

variable(#{name := Name, type := string}) -> iolist_to_binary([" ", atom_to_list(Name), ":string"]);
variable(#{name := Name}) -> iolist_to_binary([" ", atom_to_list(Name), ":long"]).

%% SystemTap finds each probe of OTP's example scripts, with as many arguments as they read.
example_scripts(Config) ->
    {match, Marks} = re:run(vm:read("marks", Config), "mark\\(\"(\\w+)\"\\)(.*)",
                            [global, {capture, all_but_first, list}]),
    Listed = maps:from_list([{list_to_atom(Mark), length(string:split(Arguments, "$arg", all)) - 1}
                             || [Mark, Arguments] <- Marks]),
    ?assertEqual([], otp_scripts:missing(systemtap, Listed)).

scripts_are_all_run(_) ->
    Files = filelib:wildcard(filename:join(test_shell:project(), "priv/systemtap/scripts/*.stp")),
    Run = [atom_to_list(Script) || {Script, _, _} <- systemtap_guest:scripts()],
    ?assertEqual([], [filename:basename(File, ".stp") || File <- Files] -- Run).

spawn_exit(Config) -> result(spawn_exit, Config).
scheduling(Config) -> result(scheduling, Config).
messages(Config) -> result(messages, Config).
calls(Config) -> result(calls, Config).
bif_latency(Config) -> result(bif_latency, Config).
ports(Config) -> result(ports, Config).
gc(Config) -> result(gc, Config).
user_probes(Config) -> result(user_probes, Config).
process_trace(Config) -> result(process_trace, Config).
nodes(Config) -> result(nodes, Config).
messages_as_stapusr(Config) -> result(messages_as_stapusr, Config).

result(Script, Config) -> vm:result(systemtap_guest, Script, Config).
