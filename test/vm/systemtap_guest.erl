%% SystemTap in the virtual machine: how to run each script of priv/systemtap/scripts, and the expected lines.
-module(systemtap_guest).

-behaviour(guest).

-include_lib("stdlib/include/assert.hrl").

-export([scripts/0, others/0, command/1, listening/1, check/3]).

-import(guest, [matches/2, text/1, quoted/1, at_least/3]).

%% Each script, with its program and probes.
scripts() ->
    [{spawn_exit, spawn_exit, [process_exit, process_spawn]},
     {scheduling, scheduling, [process_scheduled]},
     {messages, messages, [message__send]},
     {calls, calls, [function_call, function_exception, function_return]},
     {bif_latency, bif_latency, [bif__entry, bif__return, nif__entry, nif__return]},
     {ports, ports, [driver__output, driver__outputv, driver__ready_input, port__exit, port__open]},
     {gc, gc, [gc_major_end, gc_major_start, gc_minor_end, gc_minor_start]},
     {user_probes, user_probes, [user_mark, user_span_stop, user_trace__i4s4, user_trace__n42, user_trace__s1]},
     {process_trace, process_trace,
      [message__queued, message__receive, message__send, process__exit, process__exit_signal, process__hibernate,
       process__scheduled, process__spawn, process__unscheduled]},
     {nodes, nodes, [dist__monitor]},
     {messages_as_stapusr, messages, [message__send]}].

others() -> [].

%% Runs as root or, as docs/systemtap.md describes, as a member of stapusr with a module that root has installed.
command(messages_as_stapusr) ->
    {"setpriv", ["--reuid=nobody", "--regid=nogroup", "--groups=stapusr", "staprun", "-x", os:getpid(), "messages"]};
command(Script) ->
    {"staprun", ["-x", os:getpid(), filename:join("vm", atom_to_list(Script) ++ ".ko")]}.

%% build_guest makes each script print this when its handlers run.
listening(Line) -> Line =:= <<"listening">>.

%% -- Lines of the scripts ---------------------------------------------------------------------

check(spawn_exit, Lines, {Parent, Children}) ->
    [begin
         ?assert(lists:member(iolist_to_binary(["spawn ", text(Pid), " by ", text(Parent), " in erlang:apply/2"]),
                              Lines)),
         [Us] = matches(Lines, ["^exit  ", quoted(Pid), " after (\\d+) us: ", quoted(Reason), "$"]),
         ?assert(binary_to_integer(Us) >= 20000)
     end || {Pid, Reason} <- Children],
    ok;
check(scheduling, [Header | Lines], {Pid, _}) ->
    <<" ran     us  process, last stopped in">> = Header,
    [Ran, Us] = matches(Lines, ["^ *(\\d+) +(\\d+)  ", quoted(Pid), " guest_programs:nap/1$"]),
    ?assert(binary_to_integer(Ran) >= 10),
    ?assert(binary_to_integer(Us) > 0),
    ok;
check(messages_as_stapusr, Lines, Facts) ->
    check(messages, Lines, Facts);
check(messages, [Header | Lines], {From, To, Count, Words}) ->
    <<"messages  words  from -> to">> = Header,
    ?assertEqual([iolist_to_binary(io_lib:format("~8b ~6b  ~s -> ~s", [Count, Words, text(From), text(To)]))], Lines),
    ok;
check(calls, Lines, _) ->
    ?assert(lists:member(<<"guest_programs:nap_long/1: 5 calls, 0 exceptions; us to return:">>, Lines)),
    ?assert(lists:member(<<"guest_programs:fails/0: 2 calls, 2 exceptions; us to return:">>, Lines)),
    at_least(16384, 5, Lines);
check(bif_latency, [Header | Lines], _) ->
    <<"kind   calls     us  worst  function">> = Header,
    ?assertEqual([<<"2">>, <<"20">>, <<"3">>],
                 lists:append([matches(Lines, ["^", Kind, " +(\\d+) +\\d+ +\\d+  ", Mfa, "$"])
                               || {Kind, Mfa} <- [{"BIF", "erlang:md5/1"}, {"BIF", "lists:reverse/2"},
                                                  {"NIF", "prim_file:get_cwd_nif/0"}]])),
    ?assertEqual(3, length(Lines));
%% Each line comes back before the next one is written, so each is a separate input.
check(ports, Lines, {Pid, _, Count, Bytes}) ->
    ?assertEqual([<<"  opens   exits  inputs  name">>,
                  iolist_to_binary(io_lib:format("~7b ~7b ~7b  cat", [1, 1, Count])),
                  <<"commands      bytes  name, process">>,
                  iolist_to_binary(io_lib:format("~8b ~10b  cat, ~s", [Count, Bytes, text(Pid)]))], Lines),
    ok;
check(gc, [Header | Lines], {Pid, Minor, Major}) ->
    <<"minor major     us    words  process">> = Header,
    [Minors, Majors, Us, Words] = matches(Lines, ["^ *(\\d+) +(\\d+) +(\\d+) +(\\d+)  ", quoted(Pid), "$"]),
    ?assertEqual({Minor, Major}, {binary_to_integer(Minors), binary_to_integer(Majors)}),
    ?assert(binary_to_integer(Us) > 0),
    ?assert(binary_to_integer(Words) > 20000),
    ok;
check(user_probes, Lines, Pid) ->
    ?assertEqual([<<"message: checkpoint">>,
                  iolist_to_binary([text(Pid), " [request 12] 7 -8 0 0 'one' 'two' '' ''"]),
                  iolist_to_binary([text(Pid), " [request 12] label 42: 1 2 0 0"]),
                  iolist_to_binary([text(Pid), " mark cache_miss 17: user 4711"]),
                  <<"checkout, ok: us">>], lists:sublist(Lines, 5)),
    at_least(16384, 5, Lines);
check(nodes, Lines, Reason) ->
    Here = "'guest@127.0.0.1'",
    ?assertEqual([iolist_to_binary([Here, " nodeup ", Here, " visible []"]),
                  iolist_to_binary([Here, " nodedown ", Here, " visible ", atom_to_list(Reason)])],
                 [Text || Line <- Lines,
                          {match, [Text]} <- [re:run(Line, "^\\w+ \\w+ .*:\\d\\d \\d+  (.*)$",
                                                     [{capture, all_but_first, binary}])]]),
    ok;
check(process_trace, [<<"%">> | Lines], {Pid, Child, Sleeper, Self}) ->
    Events = [tl(tl(binary:split(Line, <<"|">>, [global]))) || Line <- Lines],
    [?assert(lists:member(Expected, Events), Expected)
     || Expected <- [[<<"spawn">>, text(Child), <<"erlang:apply/2">>],
                     [<<"exit_signal">>, text(Child), text(Pid), <<"over">>],
                     [<<"queued">>, text(Pid), <<"4">>, <<"0">>, <<"0">>, <<"0">>, <<"0">>],
                     [<<"receive">>, text(Pid), <<"4">>, <<"0">>, <<"0">>, <<"0">>, <<"0">>],
                     [<<"send">>, text(Pid), text(Pid), integer_to_binary(erts_debug:flat_size({note, 1})), <<"0">>,
                      <<"0">>, <<"0">>],
                     [<<"send">>, text(Pid), text(Self), integer_to_binary(erts_debug:flat_size({Pid, sent})), <<"0">>,
                      <<"0">>, <<"0">>],
                     [<<"hibernate">>, text(Sleeper), <<"erlang:hibernate/3">>],
                     [<<"exit">>, text(Sleeper), <<"normal">>]]],
    [?assert(lists:any(fun([What, Who | _]) -> What =:= Kind andalso Who =:= text(Pid) end, Events), Kind)
     || Kind <- [<<"schedule">>, <<"unschedule">>]],
    ok.
