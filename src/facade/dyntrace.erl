%% @doc Makes the trace events of a stock Erlang VM available to system tracers.
%%
%% This is a tracer module for `erlang:trace/3', implemented as NIFs:
%%
%% ```
%% 1> dyntrace:info().
%% 2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).
%% '''
%%
%% From then on, each event of those trace flags fires a probe that bpftrace, perf, SystemTap or gdb can attach to.
%% While no consumer is attached, an event costs one call of `enabled'. docs/PROBES.md and {@link probes/0} list the
%% probes and their arguments. OTP's runtime_tools has a module of the same name. If that module is loaded, the first
%% command fails; the second succeeds, but no event is traced.
%%
%% The callbacks follow the contract of `erl_tracer' in ERTS. They accept any arguments, never raise, and are not
%% meant to be called directly.
-module(dyntrace).

-include("dyntrace_annotation.hrl").

-on_load(on_load/0).

%% The facade
-export([available/0, probes/0, listeners/0, info/0]).

%% Attach-driven tracing
-export([follow/1, unfollow/0, dump/0, sender_pattern/0, record/1]).

%% Annotations
-export([mark/2, mark/3, snapshot/1, span/2, request/2]).
-export([p/0, p/1, p/2, p/3, p/4, p/5, p/6, p/7, p/8]).
-export([pn/1, pn/2, pn/3, pn/4, pn/5, pn/6, pn/7, pn/8, pn/9]).
-export([user_trace_s1/1, user_trace_i4s4/9, user_trace_n/10]).
-export([put_tag/1, get_tag/0, get_tag_data/0, spread_tag/1, restore_tag/1]).

%% The tracer's callbacks
-define(TRACER, [enabled/3, trace/5,
                 enabled_procs/3, trace_procs/5,
                 enabled_ports/3, trace_ports/5,
                 enabled_running_procs/3, trace_running_procs/5,
                 enabled_running_ports/3, trace_running_ports/5,
                 enabled_call/3, trace_call/5,
                 enabled_send/3, trace_send/5,
                 enabled_receive/3, trace_receive/5,
                 enabled_garbage_collection/3, trace_garbage_collection/5]).
-export(?TRACER).

%% NIFs that only the application calls. They are exported to keep the compiler from optimizing calls according to the
%% results of their Erlang stubs.
-define(INTERNAL, [nif_info/0, consumers/1, show_nif/1,
                   allow/1, set_budget/1, budget_left/0, skipped/0, claim/0, set_active/1, hold/1, report/2,
                   set_builtins/2, set_call_budget/1, take_calls/0, set_implied_functions/1, set_status/1,
                   open_files/0, kernel_file/1,
                   set_port/3, take_unknown_ports/0, count_ports/0,
                   wants_i4s4/0, wants_n/1, wants_mark/0, wants_span/0,
                   user_trace_n_nif/10, user_mark/3, user_span_start/2, user_span_stop/4]).
-export(?INTERNAL).

%% For the application
-export([library/0]).

-nifs(?TRACER).
-nifs(?INTERNAL).
-nifs([probes/0, listeners/0, user_trace_s1/1, user_trace_i4s4/9]).

%% The persistent term in which on_load/0 stores whether the library is loaded.
-define(LIBRARY, {?MODULE, library}).

-export_type([backend/0, probe/0, field/0, event/0, listener/0, info/0]).
-export_type([following/0]).
-export_type([arg/0, label/0, name/0, text/0]).

%%% -- Types ---------------------------------------------------------------------------

-type backend() :: usdt | lttng.
%% A mechanism that exports events from the VM.

-type field() :: #{name := atom(),
                   type := string | int32 | int64 | uint32 | uint64,
                   doc := binary(),
                   example := binary() | integer(),
                   unit => binary(),
                   max_bytes => pos_integer()}.
%% One argument of a probe. A number has a `unit'. A string that may be cut has `max_bytes'; a cut string ends in `...'.

-type event() :: #{group := atom(), tag := atom(), flags := binary()}.
%% A trace event that feeds a probe: the group of its callback, its tag, and the trace flags (and match specifications)
%% that make the VM produce it. The groups `files' and `telemetry', parts of the group `call', contain the calls of
%% `prim_file' and `telemetry'. The tag `any' matches all tags of the group.

-type probe() :: #{provider := atom(),
                   name := atom(),
                   doc := binary(),
                   backends := [backend()],
                   event_groups := [atom()],
                   fields := [field()],
                   kind := reported | derived | never,
                   events := [event()],
                   asks := [event()],
                   source => dyntrace_source:name(),
                   differs => binary(),
                   labels => pos_integer(),
                   row => pos_integer()}.
%% `event_groups': the groups of `dyntrace record --events' that the LTTng event belongs to; `names' and `lives' are
%% recorded always. `kind': `reported' if the VM reports the event to tracers, `derived' if dyntrace infers it from
%% other events, `never' if the probe never fires. `asks': further events that the probe's arguments require. `source':
%% the part of the application that observes the event. `differs': what the probe lacks, compared with a VM that was
%% built with USDT. An entry with `labels' describes that many probes, named `name' and a number, starting at 0. An
%% entry with `row' describes a probe array; the name of its first probe has no number. The `events' of annotations are
%% empty.

-type listener() :: #{provider := atom(), name := atom(), backends := [backend()]}.
%% An enabled probe, and the backends that it is enabled in.

-type info() :: #{version := string() | undefined,
                  library := file:filename() | undefined,
                  lttng_library := binary() | undefined,
                  lttng_providers := #{atom() => available | {missing, binary()}},
                  attach := string() | undefined,
                  following := off | following(),
                  backends := #{backend() => available | {missing, binary()}},
                  undecoded := #{atom() => pos_integer()}}.

-type following() :: #{processes := [atom()], ports := [atom()], calls := dyntrace_trace_flags:calls(),
                       functions := [dyntrace_trace_pattern:pattern()], files := boolean(),
                       telemetry := boolean(), seq_trace := boolean(), senders := boolean(),
                       sources := [dyntrace_source:name()],
                       untraced := non_neg_integer(), withheld := #{atom() => string()},
                       paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
%% `processes', `ports': the trace flags that are set. `calls': which events of a call are traced, for the configured
%% `functions'. `files', `telemetry': whether the functions of `prim_file', and `telemetry:execute/3', are traced for
%% their probes. `seq_trace': whether the application is the system tracer. `senders': whether received messages come
%% with their senders. `sources': the active sources. `untraced': the approximate number of processes that are not
%% traced because they have another tracer.
%% `withheld': trace flags, match specifications (`send', `receive'), sources and probes that are required but not set,
%% with the reason. `paused', `pauses', `skipped': whether tracing pauses now, because of the budget or of the probe
%% `cost_limit'; how often the budget has paused it, and how many trace events were skipped before these pauses began.

%%% -- The facade ----------------------------------------------------------------------

%% @doc Whether a system tracer can attach to this VM: the library is loaded and a backend is available. If not,
%% `info/0' has the reason.
-spec available() -> boolean().
available() ->
    #{backends := Backends} = ?MODULE:nif_info(),
    lists:member(available, maps:values(Backends)).

%% @doc The probes, in the order of the catalogue, with their arguments. Empty without the library.
-spec probes() -> [probe()].
probes() ->
    without_library([]).

%% @doc The probes that are enabled now because a consumer is attached, and their enabled backends. Empty without the
%% library.
-spec listeners() -> [listener()].
listeners() ->
    without_library([]).

%% @doc Which backends are available, and why the others are not.
%%
%% `library' is the path that tracers attach to; a prebuilt library is in `priv/builds'. If the file was replaced
%% (rebuilt), this VM still has the old one mapped, and `usdt' is missing until the module is reloaded. `lttng_library'
%% is the path of the library that provides the LTTng tracepoints of `org_erlang_dyntrace'. `lttng_providers' says
%% whether each provider is available; a VM that was built with LTTng provides `org_erlang_otp' itself. `attach' is a
%% bpftrace command line for root. Its paths are below `/proc/PID/root', so it also works outside the container of this
%% VM, with the PID that the process has there. `following' is the tracing that the application has switched on, or
%% `off' if the application does not run or does not follow consumers. `undecoded' counts, by probe, the trace events of
%% a shape that this version cannot decode; the key `unknown' counts those of an unknown tag or without a term. It
%% should be empty.
-spec info() -> info().
info() ->
    #{backends := Backends} = NifInfo = ?MODULE:nif_info(),
    Info = NifInfo#{version => version(), following => dyntrace_autotracer:info()},
    case library() of
        {loaded, Path} ->
            Info#{library => Path,
                  attach => dyntrace_library:attach_command(Path),
                  backends := dyntrace_library:check_mapped(Path, Backends)};
        {missing, _} ->
            Info#{library => undefined, attach => undefined}
    end.

%% @private The path of the library, or why it is not loaded.
-spec library() -> dyntrace_library:state().
library() ->
    persistent_term:get(?LIBRARY).

%% @private The part of info/0 that the library returns.
-spec nif_info() -> #{backends := #{backend() => available | {missing, binary()}},
                      undecoded := #{atom() => pos_integer()},
                      lttng_library := binary() | undefined,
                      lttng_providers := #{atom() => available | {missing, binary()}}}.
nif_info() ->
    Missing = library(),
    #{backends => #{usdt => Missing, lttng => Missing}, undecoded => #{}, lttng_library => undefined,
      lttng_providers => #{}}.

version() ->
    case application:get_key(?MODULE, vsn) of
        {ok, Version} -> Version;
        undefined -> loaded_version(application:load(?MODULE))
    end.

loaded_version(ok) -> version();
loaded_version({error, _}) -> undefined.

%%% -- Attach-driven tracing -----------------------------------------------------------

%% @doc Switches attach-driven tracing on: the application sets the trace flags that feed enabled probes, and clears
%% them when the last consumer detaches. Starts the application if it does not run. The options are those of its
%% configuration ({@link dyntrace_config}); the configuration supplies the options that are not given. Raises `badarg'
%% for an invalid option.
-spec follow(#{atom() => term()}) -> ok | {error, term()}.
follow(Options) when is_map(Options) ->
    case dyntrace_config:check(maps:merge(configured(), Options)) of
        {ok, Config} ->
            case started() of
                ok -> follow_by(Config, dyntrace_app:work());
                {error, Why} -> {error, Why}
            end;
        {error, {bad_config, Key, _, MustBe}} ->
            dyntrace_badarg:raise(follow, [Options], 1, io_lib:format("~0tp: ~ts", [Key, MustBe]))
    end;
follow(Options) ->
    dyntrace_badarg:raise(follow, [Options], 1, "not a map").

%% Avoids calling the application controller, which is slow to reply on a busy node.
started() ->
    case whereis(dyntrace_sup) of
        undefined ->
            case application:ensure_all_started(?MODULE) of
                {ok, _} -> ok;
                {error, Why} -> {error, Why}
            end;
        _ ->
            ok
    end.

configured() ->
    ok = load_application(whereis(dyntrace_sup)),
    maps:from_list(application:get_all_env(?MODULE)).

load_application(undefined) ->
    _ = application:load(?MODULE),
    ok;
load_application(_) ->
    ok.

follow_by(Config, ok) -> dyntrace_autotracer:follow(Config);
follow_by(_, Error) -> Error.

%% @doc Switches attach-driven tracing off until the next {@link follow/1}, and clears the trace flags that it has set.
-spec unfollow() -> ok.
unfollow() ->
    case whereis(dyntrace_sup) of
        undefined -> ok;
        _ -> dyntrace_autotracer:unfollow()
    end.

%% @doc Requests a dump of the identities of all processes, ports and nodes: it fires `process_identity',
%% `port_identity' and `node_identity' between `dump_start' and `dump_end'. Returns at once. Does nothing while none of
%% these probes is enabled. The application also makes a dump when one of them becomes enabled, when another LTTng
%% session records it, and when a USDT tracer attaches to a probe of the array `dump_wanted'. `not_started': the
%% application does not run, or has no worker.
-spec dump() -> ok | {error, not_started}.
dump() ->
    dyntrace_autotracer:dump().

%% @doc Records this node with LTTng for `seconds' (10), and returns the path of the file or folder that was written. It
%% runs the command `dyntrace' of this application as the VM's user, on the VM's host or in its container, and waits for
%% it to end. `to' is a file whose extension selects the output format (`.html', `.pftrace', `.txt', `.json', `.folded',
%% `.mmd') or, without an extension, a folder for the recording; the default is a page named after node and time.
%% `events' are event groups, such as `[messages, gc]'. An error contains the output of the command: a cause and the
%% next step. Python, lttng-tools and babeltrace2 must be installed where the VM runs, and the application must follow
%% consumers. Raises `badarg' for an invalid option.
-spec record(#{seconds => number(), to => file:filename_all(), events => [atom()]}) ->
          {ok, file:filename()} | {error, binary()}.
record(Options) ->
    case dyntrace_record:check(Options) of
        ok -> dyntrace_record:run(Options);
        {error, Why} -> dyntrace_badarg:raise(record, [Options], 1, Why)
    end.

%% @doc The match specification from which the probe `message_delivery' gets the sender of a message. The application
%% sets it while that probe is enabled. To set it manually, call
%% `erlang:trace_pattern('receive', dyntrace:sender_pattern(), [])' or, from OTP 27 on, `trace:recv/3'. Before OTP 27 it
%% applies to the whole node: the trace messages of every tracer of `'receive'' get another last element,
%% `{Node, Sender}'.
-spec sender_pattern() -> dyntrace_match_spec:match_spec().
sender_pattern() ->
    [{['$1', '$2', '_'], [], [{message, {{'$1', '$2'}}}]}].

%%% -- Annotations ---------------------------------------------------------------------
%%
%% Guards check the arguments, so whether a call raises does not depend on attached consumers. Then one NIF call returns
%% whether the probe is enabled. If it is not, the tag is not read and no text is made.

-type text() :: iodata() | unicode:chardata().
%% Up to 1,024 bytes; a longer text is cut and ends in `...'. Bytes that are not UTF-8 are read as Latin-1; NUL becomes
%% U+FFFD.

-type name() :: atom() | text().

-type arg() :: integer() | text() | term().
%% A 64-bit integer or a string. Any other term counts as missing: 0, or NULL (in LTTng `"(null)"').

-type label() :: 0..?MAX_LABEL.

%% @equiv mark(Name, 0, Text)
-spec mark(name(), text()) -> boolean().
mark(Name, Text) when ?IS_NAME(Name), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, 0, Text);
mark(Name, Text) ->
    dyntrace_annotation:bad(mark, [Name, Text]).

%% @doc Fires the probe `user_mark', which marks an event of that name. Consumers can sum the value or put it into a
%% histogram. Returns whether the probe was enabled.
-spec mark(name(), integer(), text()) -> boolean().
mark(Name, Value, Text) when ?IS_NAME(Name), is_integer(Value), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, Value, Text);
mark(Name, Value, Text) ->
    dyntrace_annotation:bad(mark, [Name, Value, Text]).

%% @doc Requests a snapshot from each flight recorder with causes, within its limits (docs/recorder.md). Fires
%% `user_mark' with the name `snapshot'. Returns whether the probe was enabled, as it is while a recorder runs.
-spec snapshot(Reason :: text()) -> boolean().
snapshot(Reason) when ?IS_TEXT(Reason) ->
    mark("snapshot", 0, Reason);
snapshot(Reason) ->
    dyntrace_annotation:bad(snapshot, [Reason]).

%% @doc Fires `user_span_start', calls the fun, and fires `user_span_stop' with the duration in nanoseconds and the
%% outcome of the call. Returns the result of the fun, or raises its exception.
-spec span(name(), fun(() -> Result)) -> Result.
span(Name, Fun) when ?IS_NAME(Name), is_function(Fun, 0) ->
    case wants_span() of
        false -> Fun();
        true -> timed(Name, Fun)
    end;
span(Name, Fun) ->
    dyntrace_annotation:bad(span, [Name, Fun]).

%% In this module because the fun may run for a long time: the appup purges the old code of other modules at once, and
%% kills the processes that still run it.
timed(Name, Fun) ->
    Id = erlang:unique_integer([positive]),
    _ = user_span_start(Name, Id),
    Start = erlang:monotonic_time(),
    try Fun() of
        Result ->
            _ = stop(Name, Id, Start, ok),
            Result
    catch
        Class:Reason:Stack ->
            _ = stop(Name, Id, Start, Class),
            erlang:raise(Class, Reason, Stack)
    end.

stop(Name, Id, Start, Outcome) ->
    Duration = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond),
    user_span_stop(Name, Id, Duration, Outcome).

%% @doc Calls the fun with a `seq_trace' token of that label. In recordings, everything that the fun causes is one
%% request: the messages that it sends, the messages that their receivers send in turn, also to other nodes, and the
%% replies. Afterwards the previous token of the process is restored. Returns the result of the fun, or raises its
%% exception.
%%
%% The token enables tracing of sends, receives and `seq_trace:print'. They are traced if the application runs and a
%% consumer of the probes `seq_trace_send', `seq_trace_receive' or `seq_trace_print' is attached, or if there is another
%% system tracer. A process that receives a message of the request keeps the token until it receives a message without
%% one; all messages that it sends until then belong to the request. In recordings, labels are texts; the command
%% `dyntrace request LABEL' follows a request live. Raises `badarg' if the second argument is not a fun without
%% arguments.
-spec request(Label :: term(), fun(() -> Result)) -> Result.
request(Label, Fun) when is_function(Fun, 0) ->
    Before = seq_trace:get_token(),
    _ = seq_trace:set_token([]),
    _ = [seq_trace:set_token(Key, Value) || {Key, Value} <- [{label, Label}, {send, true}, {'receive', true},
                                                             {print, true}]],
    try Fun()
    after seq_trace:set_token(Before)
    end;
request(Label, Fun) ->
    dyntrace_annotation:bad(request, [Label, Fun]).

%% @doc Fires the probe `user_trace__i4s4' (in LTTng `user_trace_i4s4'): up to four integers, then up to four strings,
%% with the calling process and its tag. Returns whether the probe was enabled. The contract is that of OTP's
%% `dyntrace', with two differences: an integer after a string raises `badarg', as does a fifth integer or string; and
%% the tag may be one received with a message.
-spec p() -> boolean().
p() -> wants_i4s4() andalso fire_i4s4([]).
-spec p(arg()) -> boolean().
p(A) -> wants_i4s4() andalso fire_i4s4([A]).
-spec p(arg(), arg()) -> boolean().
p(A, B) when ?PLACED(A, B) -> wants_i4s4() andalso fire_i4s4([A, B]);
p(A, B) -> dyntrace_annotation:bad(p, [A, B]).
-spec p(arg(), arg(), arg()) -> boolean().
p(A, B, C) when ?PLACED(A, B, C) -> wants_i4s4() andalso fire_i4s4([A, B, C]);
p(A, B, C) -> dyntrace_annotation:bad(p, [A, B, C]).
-spec p(arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D) when ?PLACED(A, B, C, D) -> wants_i4s4() andalso fire_i4s4([A, B, C, D]);
p(A, B, C, D) -> dyntrace_annotation:bad(p, [A, B, C, D]).
-spec p(arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E) when ?PLACED(A, B, C, D, E) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E]);
p(A, B, C, D, E) -> dyntrace_annotation:bad(p, [A, B, C, D, E]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F) when ?PLACED(A, B, C, D, E, F) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F]);
p(A, B, C, D, E, F) -> dyntrace_annotation:bad(p, [A, B, C, D, E, F]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G) when ?PLACED(A, B, C, D, E, F, G) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G]);
p(A, B, C, D, E, F, G) -> dyntrace_annotation:bad(p, [A, B, C, D, E, F, G]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G, H) when ?PLACED(A, B, C, D, E, F, G, H) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G, H]);
p(A, B, C, D, E, F, G, H) -> dyntrace_annotation:bad(p, [A, B, C, D, E, F, G, H]).

%% @doc Like {@link p/8}, for the probe `user_trace__n<Label>' (in LTTng `user_trace_n', with the label as a field).
%% Raises `badarg' for a label out of range.
-spec pn(label()) -> boolean().
pn(Label) when ?IS_LABEL(Label) -> wants_n(Label) andalso fire_n([Label]);
pn(Label) -> dyntrace_annotation:bad(pn, [Label]).
-spec pn(label(), arg()) -> boolean().
pn(Label, A) when ?IS_LABEL(Label) -> wants_n(Label) andalso fire_n([Label, A]);
pn(Label, A) -> dyntrace_annotation:bad(pn, [Label, A]).
-spec pn(label(), arg(), arg()) -> boolean().
pn(Label, A, B) when ?IS_LABEL(Label), ?PLACED(A, B) -> wants_n(Label) andalso fire_n([Label, A, B]);
pn(Label, A, B) -> dyntrace_annotation:bad(pn, [Label, A, B]).
-spec pn(label(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C) when ?IS_LABEL(Label), ?PLACED(A, B, C) -> wants_n(Label) andalso fire_n([Label, A, B, C]);
pn(Label, A, B, C) -> dyntrace_annotation:bad(pn, [Label, A, B, C]).
-spec pn(label(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D) when ?IS_LABEL(Label), ?PLACED(A, B, C, D) -> wants_n(Label) andalso fire_n([Label, A, B, C, D]);
pn(Label, A, B, C, D) -> dyntrace_annotation:bad(pn, [Label, A, B, C, D]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E]);
pn(Label, A, B, C, D, E) -> dyntrace_annotation:bad(pn, [Label, A, B, C, D, E]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F]);
pn(Label, A, B, C, D, E, F) -> dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G]);
pn(Label, A, B, C, D, E, F, G) -> dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F, G]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G, H) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G, H) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G, H]);
pn(Label, A, B, C, D, E, F, G, H) -> dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F, G, H]).

%% @doc Fires the probe `user_trace__s1' (in LTTng `user_trace_s1').
-spec user_trace_s1(text() | term()) -> boolean().
user_trace_s1(_Message) -> false.

%% @doc The NIF behind {@link p/8}, with the tag as the first argument. An argument of another type counts as missing.
-spec user_trace_i4s4(binary() | undefined, arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) ->
          boolean().
user_trace_i4s4(_Tag, _I1, _I2, _I3, _I4, _S1, _S2, _S3, _S4) -> false.

%% @doc The same for {@link pn/9}.
-spec user_trace_n(label(), binary() | undefined, arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) ->
          boolean().
user_trace_n(Label, Tag, I1, I2, I3, I4, S1, S2, S3, S4) when ?IS_LABEL(Label) ->
    user_trace_n_nif(Label, Tag, I1, I2, I3, I4, S1, S2, S3, S4);
user_trace_n(Label, Tag, I1, I2, I3, I4, S1, S2, S3, S4) ->
    dyntrace_annotation:bad(user_trace_n, [Label, Tag, I1, I2, I3, I4, S1, S2, S3, S4]).

fire_i4s4(Args) ->
    apply(fun ?MODULE:user_trace_i4s4/9, [get_tag_data() | dyntrace_annotation:placed(Args)]).

fire_n([Label | Args]) ->
    apply(fun ?MODULE:user_trace_n_nif/10, [Label, get_tag_data() | dyntrace_annotation:placed(Args)]).

%% @doc Sets the tag of the process, which its annotations carry; `undefined' removes it. Returns the previous tag.
-spec put_tag(undefined | text()) -> binary() | undefined.
put_tag(undefined) ->
    dyntrace_tag:put(undefined);
put_tag(Tag) ->
    case dyntrace_annotation:utf8(Tag) of
        {ok, Binary} -> dyntrace_tag:put(Binary);
        {error, _} -> dyntrace_annotation:bad(put_tag, [Tag])
    end.

%% @doc The tag that {@link put_tag/1} has set for the process.
-spec get_tag() -> binary() | undefined.
get_tag() ->
    dyntrace_tag:get().

%% @doc The tag of {@link get_tag/0} or, without one, the tag of the message that the process received last.
-spec get_tag_data() -> binary() | undefined.
get_tag_data() ->
    dyntrace_tag:get_data().

%% @doc Sets whether the messages that the process sends from now on carry its tag, like a sequential trace token: the
%% receiver has the tag, and passes it on, until it receives a message without a tag. A process that has a token set by
%% `seq_trace' keeps that token, and its messages do not carry the tag. Returns the argument for {@link restore_tag/1}.
-spec spread_tag(boolean()) -> dyntrace_tag:data().
spread_tag(Spread) when is_boolean(Spread) ->
    dyntrace_tag:spread(Spread);
spread_tag(Spread) ->
    dyntrace_annotation:bad(spread_tag, [Spread]).

%% @doc Restores the tag, and whether it is spread, as before {@link spread_tag/1}.
-spec restore_tag(dyntrace_tag:data()) -> true.
restore_tag(Data) ->
    case dyntrace_tag:is_data(Data) of
        true -> dyntrace_tag:restore(Data);
        false -> dyntrace_annotation:bad(restore_tag, [Data])
    end.

%%% -- NIFs that only the application calls --------------------------------------------

%% @private Sets whether the texts of the loaded library show terms in full or only their shape: see
%% dyntrace_library:show/1.
-spec show_nif(full | shape) -> ok.
show_nif(_) -> without_library(ok).
%% @private Sets the probes that the application's tracer may fire.
-spec allow(all | [atom()]) -> ok.
allow(_) -> without_library(ok).
%% @private Sets how many more trace events may be fired for the application.
-spec set_budget(non_neg_integer() | infinity) -> ok.
set_budget(_) -> without_library(ok).
%% @private How many trace events are left of the budget that was set last.
-spec budget_left() -> integer().
budget_left() -> without_library(0).
%% @private How many trace events the budget has skipped after the library was loaded.
-spec skipped() -> non_neg_integer().
skipped() -> without_library(0).
%% @private Makes the caller the application's worker. Returns the previous worker, or `undefined' if this library had
%% none; without a library, the caller.
-spec claim() -> undefined | pid().
claim() -> without_library(self()).
%% @private Sets whether the worker has set any tracing. If not, or if the worker is dead, processes remove its tracer
%% when they are scheduled.
-spec set_active(boolean()) -> ok.
set_active(_) -> without_library(ok).
%% @private Discards the events of these groups, and of no others, until the next call. Groups of ports have separate
%% names.
-spec hold(Groups :: [atom()]) -> ok.
hold(_) -> without_library(ok).
%% @private Sets the lists of BIFs and NIFs; all other functions count as Erlang code. Returns how many entries were
%% left out because the library's table is full.
-spec set_builtins(Bifs :: [mfa()], Nifs :: [mfa()]) -> LeftOut :: non_neg_integer().
set_builtins(_, _) -> without_library(0).

%% @private Fires a probe that has a source, see {@link dyntrace_source}. Values: one per field, in order.
-spec report(Probe :: atom(), Values :: tuple()) -> ok.
report(_, _) -> without_library(ok).

%% @private Sets the name and owner of a port, which trace events do not contain.
-spec set_port(port(), Name :: atom(), Owner :: pid()) -> ok.
set_port(_, _, _) -> without_library(ok).

%% @private The ports for which the library has seen events but has no name. Each is returned once.
-spec take_unknown_ports() -> [port()].
take_unknown_ports() -> without_library([]).

%% @private How many ports the library has in its table.
-spec count_ports() -> non_neg_integer().
count_ports() -> without_library(0).
%% @private Sets the text that the host command reads: see status.h.
-spec set_status(binary()) -> ok.
set_status(_) -> without_library(ok).

%% @private The open file descriptors of the node, and how many it may have: see resources.h. Like the next function, it
%% uses no dirty scheduler.
-spec open_files() -> {Open :: pos_integer() | undefined, Limit :: non_neg_integer() | undefined}.
open_files() -> without_library({undefined, undefined}).

%% @private The contents of a file below `/proc/self' or `/sys/fs/cgroup', at most 4 kB.
-spec kernel_file(Path :: binary()) -> binary() | undefined.
kernel_file(_) -> without_library(undefined).

%% @private Sets how many more call events the application's tracer may make.
-spec set_call_budget(non_neg_integer() | infinity) -> ok.
set_call_budget(_) -> without_library(ok).

%% @private How often each function was called after the previous take_calls/0, and the number of calls of functions
%% that did not fit into the library's table. Nothing is counted while the budget is infinite.
-spec take_calls() -> {[{mfa(), Count :: pos_integer()}], non_neg_integer()}.
take_calls() -> without_library({[], 0}).

%% @private Sets the functions that are traced only for the probes of their module: for files, for telemetry.
-spec set_implied_functions([mfa()]) -> ok.
set_implied_functions(_) -> without_library(ok).

%% @private The consumers that are attached to these probes. An identity is unique within its probe and backend; if
%% there are more than 64, some consumers have none. Identities of USDT tracers are numbers from 1 to the kernel's count
%% (Linux counts once per probe site, so usually there is one). For a probe array, they are the indexes of the enabled
%% probes. Each LTTng session has its own identity.
-spec consumers([Probe :: atom()]) -> [{Probe :: atom(), backend(), Identity :: non_neg_integer()}].
consumers(_) -> without_library([]).
%% @private Whether the probe is enabled. The next three functions do the same.
-spec wants_i4s4() -> boolean().
wants_i4s4() -> without_library(false).
%% @private
-spec wants_n(label()) -> boolean().
wants_n(_Label) -> without_library(false).
%% @private
-spec wants_mark() -> boolean().
wants_mark() -> without_library(false).
%% @private
-spec wants_span() -> boolean().
wants_span() -> without_library(false).
%% @private Fires the probe, and returns whether it was enabled. The next three functions do the same.
-spec user_trace_n_nif(label(), binary() | undefined, arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) ->
          boolean().
user_trace_n_nif(_, _, _, _, _, _, _, _, _, _) -> without_library(false).
%% @private
-spec user_mark(name(), integer(), text()) -> boolean().
user_mark(_, _, _) -> without_library(false).
%% @private
-spec user_span_start(name(), Id :: integer()) -> boolean().
user_span_start(_, _) -> without_library(false).
%% @private
-spec user_span_stop(name(), Id :: integer(), Nanoseconds :: integer(), ok | error | exit | throw) -> boolean().
user_span_stop(_, _, _, _) -> without_library(false).

%% The result of a NIF without the library. It is the default for a persistent term that does not exist: given a plain
%% value, dialyzer would conclude that the NIF never returns anything else.
without_library(Answer) ->
    persistent_term:get({?MODULE, without_library}, Answer).

%%% -- The tracer ----------------------------------------------------------------------

-type answer() :: trace | discard | remove.
-type tracee() :: pid() | port() | undefined.
-type opts() :: #{extra => term(), match_spec_result => term(),
                  scheduler_id => non_neg_integer(), timestamp => atom()}.

%% @doc Whether a probe that this tag feeds is enabled. The answer to `trace_status' is `trace', because a consumer may
%% attach later; for the application's tracer it is `remove' while the application traces nothing or its worker is dead.
-spec enabled(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled(_, _, _) -> discard.

%% @doc Fires the enabled probes that the event feeds.
-spec trace(Tag :: atom(), State :: term(), tracee() | term(), term(), opts()) -> ok.
trace(_, _, _, _, _) -> ok.

%% The same two callbacks for each group of trace events.
-spec enabled_procs(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_procs(_, _, _) -> discard.

-spec trace_procs(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_procs(_, _, _, _, _) -> ok.

-spec enabled_ports(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_ports(_, _, _) -> discard.

-spec trace_ports(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_ports(_, _, _, _, _) -> ok.

-spec enabled_running_procs(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_running_procs(_, _, _) -> discard.

-spec trace_running_procs(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_running_procs(_, _, _, _, _) -> ok.

-spec enabled_running_ports(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_running_ports(_, _, _) -> discard.

-spec trace_running_ports(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_running_ports(_, _, _, _, _) -> ok.

-spec enabled_call(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_call(_, _, _) -> discard.

-spec trace_call(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_call(_, _, _, _, _) -> ok.

-spec enabled_send(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_send(_, _, _) -> discard.

-spec trace_send(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_send(_, _, _, _, _) -> ok.

-spec enabled_receive(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_receive(_, _, _) -> discard.

-spec trace_receive(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_receive(_, _, _, _, _) -> ok.

-spec enabled_garbage_collection(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled_garbage_collection(_, _, _) -> discard.

-spec trace_garbage_collection(Tag :: atom(), State :: term(), tracee(), term(), opts()) -> ok.
trace_garbage_collection(_, _, _, _, _) -> ok.

%%% -- Loading -------------------------------------------------------------------------

%% The module also loads without the library: then the Erlang stubs of the NIFs are called.
on_load() ->
    _ = [is_at_hand(Module) || Module <- [dyntrace_annotation, dyntrace_badarg, dyntrace_tag]],
    persistent_term:put(?LIBRARY, load_library([Module || Module <- [dyntrace_library, dyntrace_builtins],
                                                          not is_at_hand(Module)])).

%% In embedded mode a call does not load a module. In a release with the application, the boot file has loaded its
%% modules. On other nodes this module may be loaded manually, and then loads the modules that it calls; `l(dyntrace)'
%% after a build also reloads those that were built with it.
is_at_hand(Module) ->
    is_current(Module, code:is_loaded(Module)) orelse code:load_file(Module) =:= {module, Module}
        orelse erlang:module_loaded(Module).

%% Whether the loaded code equals the file on the code path. Cover-compiled code has no file.
is_current(Module, {file, File}) when is_list(File) ->
    case code:get_object_code(Module) of
        {Module, Code, _} -> beam_lib:md5(Code) =:= {ok, {Module, erlang:get_module_info(Module, md5)}};
        error -> true
    end;
is_current(_, Loaded) ->
    Loaded =/= false.

load_library([]) ->
    File = dyntrace_library:find(),
    dyntrace_library:loaded(File, erlang:load_nif(dyntrace_library:nif_path(File), dyntrace_library:load_info(File)));
load_library([Module | _]) ->
    {missing, <<"the module ", (atom_to_binary(Module))/binary, " is not on the code path">>}.
