%% `make check-vm`: DTrace's scripts, the commands of docs/dtrace.md, and the probes that scripts for a rebuilt VM name,
%% in a virtual machine, because DTrace requires a kernel with BTF and uprobes.
-module(dtrace_SUITE).

-include("../support/suite.hrl").

suite() ->
    [{timetrap, {minutes, 45}}].

all() ->
    [scripts_are_all_run, example_scripts, page | [Script || {Script, _, _} <- dtrace_guest:scripts()]].

init_per_suite(Config) -> vm:boot(Config).

end_per_suite(_) -> ok.

scripts_are_all_run(_) ->
    Files = filelib:wildcard(filename:join(test_shell:project(), "priv/dtrace/*.d")),
    ?assertEqual(lists:sort([filename:basename(File, ".d") || File <- Files]),
                 lists:sort([atom_to_list(Script) || {Script, _, _} <- dtrace_guest:scripts()])).

%% DTrace finds each probe of OTP's example scripts, with as many arguments as they read.
example_scripts(Config) ->
    vm:result(dtrace_guest, list, Config),
    Listed = listed(vm:read("dtrace_probes", Config)),
    ?assertEqual([], otp_scripts:missing(dtrace, Listed)).

%% Each probe with the number of its arguments, from dtrace's listing:
%%
%%      4502 erlang1164       dyntrace.so                fire_message__send message-send
%%             Argument Types
%%                     args[0]: uint64_t
listed(Text) ->
    {Probes, _} = lists:foldl(fun(Line, {Probes, Current}) ->
                                      case re:run(Line, "^ *\\d+ +erlang\\d+ .* ([^ ]+) *$", [{capture, [1], list}]) of
                                          {match, [Name]} -> {Probes#{in_c(Name) => 0}, in_c(Name)};
                                          nomatch -> {argument(Line, Current, Probes), Current}
                                      end
                              end, {#{}, none}, binary:split(Text, <<"\n">>, [global])),
    Probes.

argument(Line, Probe, Probes) ->
    case re:run(Line, "args\\[(\\d+)\\]:", [{capture, [1], list}]) of
        {match, [N]} -> Probes#{Probe := list_to_integer(N) + 1};
        nomatch -> Probes
    end.

in_c(Name) -> list_to_atom(lists:flatten(string:replace(Name, "-", "__", all))).

page(Config) -> vm:result(dtrace_guest, page, Config).

messages(Config) -> vm:result(dtrace_guest, messages, Config).
processes(Config) -> vm:result(dtrace_guest, processes, Config).
calls(Config) -> vm:result(dtrace_guest, calls, Config).
gc(Config) -> vm:result(dtrace_guest, gc, Config).
scheduling(Config) -> vm:result(dtrace_guest, scheduling, Config).
ports(Config) -> vm:result(dtrace_guest, ports, Config).
annotations(Config) -> vm:result(dtrace_guest, annotations, Config).
