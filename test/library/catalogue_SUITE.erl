%% The catalogue, the built library and the documentation agree.
-module(catalogue_SUITE).

-include("../support/suite.hrl").

all() ->
    [notes, bpftrace_lists_them, documentation, files, configuration, arguments, cases_cover_it, kinds, exports,
     kinds_of_terms].

init_per_testcase(bpftrace_lists_them, Config) ->
    test_require:tool(test_bpftrace:missing(), Config);
init_per_testcase(_, Config) -> Config.

end_per_testcase(_, _) -> ok.

%% One note per probe, with one site and its own semaphore, and per argument an operand of the field's size and sign.
notes(_) ->
    notes_of(library()).

notes_of(Library) ->
    {0, Output} = test_shell:run("LC_ALL=C readelf -n '~ts'", [Library]),
    {match, Notes} = re:run(Output, "Provider: (\\S+)\\s+Name: (\\S+)\\s+Location: \\S+, Base: \\S+, "
                            "Semaphore: (0x[0-9a-f]+)\\s+Arguments: (.*)",
                            [global, {capture, all_but_first, binary}]),
    ?assertEqual(lists:sort([{atom_to_binary(Provider), Name, [width(Type) || #{type := Type} <- Fields]}
                             || Probe = #{provider := Provider, fields := Fields} <- with(usdt), Name <- names(Probe)]),
                 lists:sort([{Provider, Name, widths(Arguments)} || [Provider, Name, _, Arguments] <- Notes])),
    Semaphores = [Semaphore || [_, _, Semaphore, _] <- Notes],
    ?assertEqual(length(Notes), length(lists:usort(Semaphores))).

with(Backend) ->
    [Probe || Probe = #{backends := Backends} <- dyntrace:probes(), lists:member(Backend, Backends)].

usdt_names() ->
    [Name || Probe <- with(usdt), Name <- names(Probe)].

%% The name of a probe, or all names of a labeled probe or of a probe array.
names(#{name := Name, labels := Labels}) ->
    [iolist_to_binary([atom_to_binary(Name), integer_to_binary(Label)]) || Label <- lists:seq(0, Labels - 1)];
names(#{name := Name, row := Count}) ->
    [atom_to_binary(Name) | [iolist_to_binary([atom_to_binary(Name), integer_to_binary(Number)])
                             || Number <- lists:seq(1, Count - 1)]];
names(#{name := Name}) ->
    [atom_to_binary(Name)].

width(string) -> <<"8">>;
width(uint64) -> <<"8">>;
width(int64) -> <<"-8">>;
width(uint32) -> <<"4">>;
width(int32) -> <<"-4">>.

%% "8@%rax -4@16(%rdi)"
widths(Arguments) ->
    {match, Widths} = re:run(Arguments, "(-?\\d+)@", [global, {capture, all_but_first, binary}]),
    lists:append(Widths).

bpftrace_lists_them(_) ->
    {0, Output} = test_shell:run("bpftrace -l 'usdt:~ts:*'", [library()]),
    {match, Names} = re:run(Output, "usdt:.*:(?:org_erlang_dyntrace|erlang):(\\w+)$",
                            [global, multiline, {capture, all_but_first, binary}]),
    ?assertEqual(lists:sort(usdt_names()), lists:sort(lists:append(Names))).

documentation(_) ->
    {ok, Text} = file:read_file(filename:join(test_shell:project(), "docs/PROBES.md")),
    {match, Titles} = re:run(Text, "^### (\\w+)$", [global, multiline, {capture, all_but_first, binary}]),
    ?assertEqual(names(), lists:append(Titles)),
    {match, Arguments} = re:run(Text, "^- `(\\w+)` \\((?:string|u?int)",
                                [global, multiline, {capture, all_but_first, binary}]),
    ?assertEqual([atom_to_binary(Field) || #{fields := Fields} <- dyntrace:probes(), #{name := Field} <- Fields],
                 lists:append(Arguments)).

%% Each source begins with a comment that describes its job. The folders in the documentation are those of the tree.
files(_) ->
    Root = test_shell:project(),
    Sources = [Source || Pattern <- ["c_src/**/*.{c,h,def}", "viewer/**/*.{c,h,def}", "src/**/*.{erl,hrl}",
                                     "test/**/*.erl", "priv/python/**/*.py", "tools/*"],
                         Source <- filelib:wildcard(Pattern, Root), not is_built(Source)],
    ?assertEqual([], [Source || Source <- Sources, not has_job(filename:join(Root, Source))]),
    {ok, Text} = file:read_file(filename:join(Root, "ARCHITECTURE.md")),
    Folders = [Folder || Pattern <- ["c_src/*", "viewer/*", "src/*"], Folder <- filelib:wildcard(Pattern, Root),
                         filelib:is_dir(filename:join(Root, Folder)), not is_built(Folder ++ "/")],
    ?assertEqual([], [Folder || Folder <- Folders, re:run(Text, ["\\b", filename:basename(Folder), "/"]) =:= nomatch]).

is_built(Path) ->
    lists:any(fun(Part) -> lists:member(Part, ["obj", "__pycache__", "node_modules"]) end, filename:split(Path)).

%% A C source may have the comment in its header.
has_job(Source) ->
    Header = filename:rootname(Source) ++ ".h",
    filelib:is_dir(Source) orelse begins_with_comment(Source)
        orelse filename:extension(Source) =:= ".c" andalso filelib:is_file(Header) andalso begins_with_comment(Header).

begins_with_comment(Source) ->
    {ok, Text} = file:read_file(Source),
    re:run(Text, "\\A(#!.*\n)?(%% -\\*-.*\n|\"\":\"\n)?\\s*(/\\*|%%|\"\"\"|# |'''|//)") =/= nomatch.

%% Each key of the configuration is in the documented block, with its default.
configuration(_) ->
    {ok, Defaults} = dyntrace_config:check([]),
    Option = "^ *(?:\\{dyntrace, \\[|)\\{('?\\w+'?), (\\w+|\\[[^]]*\\]|\\{[^}]*\\})\\}",
    [Keys, Values] = [rows("docs/configuration.md", Option, N) || N <- [1, 2]],
    ?assertEqual(lists:sort(
                 [{iolist_to_binary(io_lib:format("~w", [Key])), iolist_to_binary(io_lib:format("~0p", [Value]))}
                  || {Key, Value} <- maps:to_list(Defaults)]),
                 lists:sort([{Key, re:replace(Value, " ", "", [global, {return, binary}])}
                             || {Key, Value} <- lists:zip(Keys, Values)])).

rows(File, Pattern) ->
    rows(File, Pattern, 1).

%% The matches of one part of the pattern.
rows(File, Pattern, Part) ->
    {ok, Text} = file:read_file(filename:join(test_shell:project(), File)),
    {match, Rows} = re:run(Text, Pattern, [global, multiline, {capture, [Part], binary}]),
    lists:append(Rows).

%% The order of the arguments is an interface, because scripts refer to arguments by number.
arguments(_) ->
    Annotation = [proc, user_tag, i1, i2, i3, i4, s1, s2, s3, s4],
    Token = [label, previous, current],
    Port = [pid, port, driver],
    Carrier = [type, instance, size],
    Carriers = [list_to_atom(Kind ++ What) || Kind <- ["mbc_", "sbc_"],
                                              What <- ["carriers", "carriers_size", "blocks", "blocks_size"]],
    Driver = [process, port, port_name],
    Dist = [node, port, remote_node],
    Arguments =
       [{process_spawn, [pid, parent, entry]}, {process_link, [from, to, type]}, {process_exit, [pid, reason]},
        {process_register, [pid, name, type]}, {process_scheduled, [pid, entry, type]},
        {process_current, [place]},
        {port_open, [pid, driver, port]}, {port_exit, [port, reason]}, {port_link, [from, to, type]},
        {port_scheduled, [port, entry, type]}, {function_call, [pid, entry, depth]},
        {function_return, [pid, entry, depth]}, {function_exception, [pid, entry, class]},
        {message_send, [from, to, message]}, {message_receive, [to, message]},
        {function_arguments, [pid, entry, arguments]}, {function_value, [pid, entry, value]},
        {function_reason, [pid, entry, class, reason]}, {function_duration, [pid, entry, duration, class]},
        {message_delivery, [to, from, node, message]},
        {file_call, [pid, entry, file]}, {file_return, [pid, entry, result]},
        {telemetry_event, [pid, name, duration, measurements, metadata]},
        {gc_minor_start, [pid, need, heap, old_heap]}, {gc_minor_end, [pid, reclaimed, heap, old_heap, binaries]},
        {gc_major_start, [pid, need, heap, old_heap]}, {gc_major_end, [pid, reclaimed, heap, old_heap, binaries]},
        {seq_trace_send, [label, from, to, previous, current, message]},
        {seq_trace_receive, [label, from, to, previous, current, message]},
        {seq_trace_print, [label, from, previous, current, message]},
        {process_identity, [pid, parent, initial, name, label, node]},
        {process_named, [pid, initial, name, label]}, {port_identity, [port, owner, name, os_pid]},
        {node_identity, [node, prefix, otp, os_pid]}, {dump_start, [id, processes]}, {dump_end, [id, processes]},
        {dump_wanted, [number]}, {withheld, [what, why]},
        {vm_long_gc, [pid, duration, heap, old_heap, fragments]}, {vm_long_schedule, [id, duration, started, stopped]},
        {vm_large_heap, [pid, heap, old_heap, fragments]}, {vm_busy_port, [pid, port]},
        {vm_busy_dist_port, [pid, port, node]}, {vm_long_message_queue, [pid, type]},
        {node_up, [node, type]}, {node_down, [node, type, reason]},
        {vm_counter, [name, value, unit]},
        {process_sample, [pid, queue, memory, reductions, entry, state]},
        {table_sample, [pid, table, name, memory, objects]}, {port_sample, [port, pid, queue, sent]},
        {socket_sample, [pid, sockets, name]},
        {process_wait, [pid, kind, target, callers]},
        {log, [pid, level, text]}, {crash_report, [pid, initial, name, reason, text]},
        {cost_limit, [events, traced, pause]},
        {user_mark, [pid, name, value, text]}, {user_span_start, [pid, name, id]},
        {user_span_stop, [pid, name, id, duration, outcome]},
        {user_trace_s1, [message]}, {user_trace_i4s4, Annotation}, {user_trace_n, Annotation ++ [label]},
        {driver_init, [driver, major, minor, flags]}, {driver_start, [pid, driver, port]},
        {driver_output, Port ++ [bytes]}, {driver_outputv, Port ++ [bytes]},
        {driver_ready_input, Port}, {driver_ready_output, Port}, {driver_timeout, Port},
        {driver_stop_select, [driver]}, {driver_flush, Port}, {driver_stop, Port}, {driver_process_exit, Port},
        {driver_ready_async, Port}, {driver_finish, [driver]},
        {driver_call, Port ++ [command, bytes]}, {driver_control, Port ++ [command, bytes]},
        {carrier_create, Carrier ++ Carriers}, {carrier_destroy, Carrier ++ Carriers},
        {carrier_pool_put, Carrier}, {carrier_pool_get, Carrier},
        {message__send, [sender, receiver, size | Token]},
        {message__send__remote, [sender, node_name, receiver, size | Token]},
        {message__queued, [receiver, size, queue_len | Token]}, {message__receive, [receiver, size, queue_len | Token]},
        {process__spawn, [p, mfa]}, {process__exit, [p, reason]}, {process__exit_signal, [sender, receiver, reason]},
        {process__scheduled, [p, mfa]}, {process__unscheduled, [p]}, {process__hibernate, [p, mfa]},
        {process__heap_grow, [p, old_size, new_size]}, {process__heap_shrink, [p, old_size, new_size]},
        {gc_major__start, [p, need]}, {gc_minor__start, [p, need]}, {gc_major__end, [p, reclaimed]},
        {gc_minor__end, [p, reclaimed]},
        {global__function__entry, [p, mfa, depth]}, {local__function__entry, [p, mfa, depth]},
        {function__return, [p, mfa, depth]}, {bif__entry, [p, mfa]}, {bif__return, [p, mfa]}, {nif__entry, [p, mfa]},
        {nif__return, [p, mfa]},
        {port__open, [process, port_name, port]}, {port__command, [process, port, port_name, command_type]},
        {port__control, [process, port, port_name, command_no]},
        {port__connect, [process, port, port_name, new_process]},
        {port__exit, [process, port, port_name, reason]}, {port__busy, [port]}, {port__not_busy, [port]},
        {process__port_unblocked, [p, port]},
        {driver__init, [name, major, minor, flags]}, {driver__finish, [name]},
        {driver__start, [process, name, port]}, {driver__stop, [process, name, port]}, {driver__flush, Driver},
        {driver__output, Driver ++ [bytes]}, {driver__outputv, Driver ++ [bytes]},
        {driver__control, Driver ++ [command, bytes]}, {driver__call, Driver ++ [command, bytes]},
        {driver__timeout, Driver}, {driver__ready_input, Driver}, {driver__ready_output, Driver},
        {driver__ready_async, Driver}, {driver__process_exit, Driver}, {driver__event, Driver},
        {driver__stop_select, [name]}, {aio_pool__add, [thread, queue_len]}, {aio_pool__get, [thread, queue_len]},
        {process__exit_signal__remote, [sender, node_name, receiver, reason | Token]},
        {dist__monitor, [node, what, monitored_node, type, reason]},
        {dist__port_busy, [node, port, remote_node, pid]}, {dist__port_not_busy, Dist},
        {dist__output, Dist ++ [bytes]}, {dist__outputv, Dist ++ [bytes]},
        {copy__struct, [size]}, {copy__object, [proc, size]},
        {trace, [p, event, state, arg1, arg2]}, {trace_seq, [state, label, seq_info]},
        {user_trace__s1, [message]}, {user_trace__i4s4, Annotation}, {user_trace__n, Annotation}],
    ?assertEqual(lists:sort(Arguments),
                 lists:sort([{Name, [Field || #{name := Field} <- Fields]}
                             || #{name := Name, fields := Fields} <- dyntrace:probes()])).

%% Erlang code can't know the values of process_current; profile_SUITE covers that probe.
cases_cover_it(_) ->
    Cases = [re:replace(atom_to_list(Name), "__n42$", "__n", [{return, binary}]) || Name <- test_cases:probes()],
    ?assertEqual(lists:sort([atom_to_binary(Name)
                             || Probe = #{name := Name, kind := Kind} <- dyntrace:probes(),
                                Kind =/= never, Name =/= process_current, not is_map_key(source, Probe)]),
                 lists:sort(Cases)).

%% A probe that never fires has no event or source, and says why. A derived probe says what it is derived from.
kinds(_) ->
    Probes = dyntrace:probes(),
    ?assertEqual([], [Name || Probe = #{name := Name, kind := Kind} <- Probes,
                              (Kind =:= never) =/= begin_with(<<"Never fires: ">>, Probe)
                                  orelse Kind =:= derived andalso not is_map_key(differs, Probe)]),
    ?assertEqual([], [Name || #{name := Name, kind := never, events := Events} = Probe <- Probes,
                              Events =/= [] orelse is_map_key(source, Probe)]).

begin_with(Prefix, #{differs := Text}) -> string:prefix(Text, Prefix) =/= nomatch;
begin_with(_, _) -> false.

%% The library exports only one name.
exports(_) ->
    exports_of(library()).

exports_of(Library) ->
    {0, Output} = test_shell:run("nm -D --defined-only '~ts'", [Library]),
    ?assertMatch([_, <<"T">>, <<"nif_init">>], re:split(string:trim(Output), " ")).

%% The library never calls enif_term_type, which aborts the VM for kinds of terms that are newer than its enum.
kinds_of_terms(_) ->
    {0, Symbols} = test_shell:run("nm -D --undefined-only '~ts'", [library()]),
    ?assertMatch({_, _}, binary:match(Symbols, <<"enif_get_tuple">>)),
    ?assertEqual(nomatch, binary:match(Symbols, <<"enif_term_type">>)),
    Sources = lists:append([filelib:wildcard(Folder ++ "/**/*.{c,h,def}", test_shell:project())
                            || Folder <- ["c_src", "test", "bench"]]),
    ?assert(lists:member("c_src/dyntrace_nif.c", Sources)),
    ?assertEqual([], [Source || Source <- Sources,
                                {ok, Text} <- [file:read_file(filename:join(test_shell:project(), Source))],
                                re:run(Text, "enif_term_type *\\(|ERL_NIF_TERM_TYPE_") =/= nomatch]).

names() ->
    [atom_to_binary(Name) || #{name := Name} <- dyntrace:probes()].

library() ->
    maps:get(library, dyntrace:info()).
