%% DTrace in the virtual machine: how to run each script of priv/dtrace, the expected lines, and the commands of
%% docs/dtrace.md.
-module(dtrace_guest).

-behaviour(guest).

-include_lib("stdlib/include/assert.hrl").

-export([scripts/0, others/0, command/1, listening/1, check/3]).

-import(guest, [matches/2, text/1, quoted/1, at_least/3]).

%% Each script, with its program and probes.
scripts() ->
    [{messages, messages, [message__send]},
     {processes, spawn_exit, [process_exit, process_spawn]},
     {calls, calls, [function_call, function_exception, function_return]},
     {gc, gc, [gc_major__end, gc_major__start, gc_minor__end, gc_minor__start]},
     {scheduling, scheduling, [process__scheduled, process__unscheduled]},
     {ports, ports, [driver__output, driver__outputv, port__exit, port__open]},
     {annotations, user_probes, [user_mark, user_span_stop, user_trace__i4s4, user_trace__n42, user_trace__s1]}].

others() -> [{list, fun list/0}, {page, fun page/0}].

command(Script) ->
    {"/usr/sbin/dtrace", options() ++ ["-s", filename:join("priv/dtrace", atom_to_list(Script) ++ ".d")]}.

%% docs/dtrace.md explains `syslibdir`; build_guest makes the folder.
options() -> ["-x", "syslibdir=/dyntrace/vm/dtrace", "-p", os:getpid()].

%% Each script's first line is printed when its handlers run.
listening(Line) -> binary:longest_common_suffix([Line, <<"... Ctrl-C ends.">>]) =:= 16.

%% -- Lines of the scripts ---------------------------------------------------------------------

check(messages, Lines, {From, To, Count, Words}) ->
    ?assertEqual([<<"messages    words  from -> to">>,
                  iolist_to_binary(io_lib:format("~8b ~8b  ~s -> ~s", [Count, Words, text(From), text(To)]))],
                 printed(Lines));
check(processes, Lines, {Parent, Children}) ->
    [begin
         ?assert(lists:member(iolist_to_binary(["spawn ", text(Pid), " by ", text(Parent), " in erlang:apply/2"]),
                              Lines)),
         [Us] = matches(Lines, ["^exit  ", quoted(Pid), " after (\\d+) us: ", quoted(Reason), "$"]),
         ?assert(binary_to_integer(Us) >= 20000),
         [<<"1">>] = matches(Lines, ["^ *(\\d+)  ", quoted(Reason), "$"])
     end || {Pid, Reason} <- Children],
    ok;
check(calls, Lines, _) ->
    [<<"5">>, <<"0">>] = matches(Lines, "^ *(\\d+) +(\\d+)  guest_programs:nap_long/1$"),
    [<<"2">>, <<"2">>] = matches(Lines, "^ *(\\d+) +(\\d+)  guest_programs:fails/0$"),
    at_least(16384, 5, Lines);
check(gc, Lines, {Pid, Minor, Major}) ->
    [Us, Minors, Majors, Words] = matches(Lines, ["^ *(\\d+) +(\\d+) +(\\d+) +(\\d+)  ", quoted(Pid), "$"]),
    ?assertEqual({Minor, Major}, {binary_to_integer(Minors), binary_to_integer(Majors)}),
    ?assert(binary_to_integer(Us) > 0),
    ?assert(binary_to_integer(Words) > 20000),
    ok;
check(scheduling, Lines, {Pid, _}) ->
    [Us, Runs] = matches(Lines, ["^ *(\\d+) +(\\d+)  ", quoted(Pid), "$"]),
    ?assert(binary_to_integer(Us) > 0),
    ?assert(binary_to_integer(Runs) >= 10),
    at_least(0, binary_to_integer(Runs), Lines);
check(ports, Lines, {Owner, Port, Writes, Bytes}) ->
    ?assert(lists:member(iolist_to_binary(["open  ", text(Port), " by ", text(Owner), ": cat"]), Lines)),
    [_] = matches(Lines, ["^close ", quoted(Port), " \\(cat\\) after (\\d+) us: normal$"]),
    ?assertEqual([integer_to_binary(Bytes), integer_to_binary(Writes)],
                 matches(Lines, ["^ *(\\d+) +(\\d+)  ", quoted(Port), " \\(cat\\)$"])),
    ok;
check(annotations, Lines, Pid) ->
    ?assertEqual([<<"message: checkpoint">>,
                  iolist_to_binary([text(Pid), " [request 12] 7 -8 0 0 'one' 'two' '' ''"]),
                  iolist_to_binary([text(Pid), " [request 12] label 42: 1 2 0 0"]),
                  iolist_to_binary([text(Pid), " mark cache_miss 17: user 4711"]),
                  <<"us of spans:">>,
                  <<"  checkout, ok">>], lists:sublist(printed(Lines), 6)),
    at_least(16384, 5, Lines).

%% The lines with text, without trailing blanks.
printed(Lines) ->
    [Text || Line <- Lines, Text <- [string:trim(Line, trailing)], Text =/= <<>>].

%% -- The provider's probes, for dtrace_SUITE ----------------------------------------------------

list() ->
    {0, Listed} = test_shell:run("/usr/sbin/dtrace ~s -lv -P 'erlang$target'", [lists:join(" ", options())]),
    file:write_file("vm/dtrace_probes", Listed).

%% -- The commands of docs/dtrace.md ---------------------------------------------------------------

page() ->
    Node = test_node:start(),
    {_, _} = test_node:call(Node, fun() -> code:ensure_loaded(dyntrace) end),
    Pid = test_node:os_pid(Node),
    Recipe = fun(Title) ->
                     test_recipe:run("docs/dtrace.md", Title, Node,
                                     #{env => [{"PID", Pid}, {"DTRACE", "/usr/sbin/dtrace -x syslibdir=/tmp/dtrace"}]})
             end,
    [?assertMatch({match, _}, re:run(Recipe(Title), [string:replace(Pattern, "PID", Pid)]), Title)
     || {Title, Pattern} <- page_output()],
    test_node:stop(Node).

page_output() ->
    [{"Before the first script", "erlangPID +dyntrace\\.so +\\w+ message-send\n(.*\n)+.*args\\[5\\]: int"},
     {"A first script", "\n<[0-9.]+> -> shop, 3 words\n"},
     {"Predicates and aggregations", "{order,tea} +[0-9]+\n(.*\n)+.*\\|@+ +[0-9]+ *\n"},
     {"Scripts", "\n +[0-9]+ +[0-9]+  <[0-9.]+> -> shop\n"}].
