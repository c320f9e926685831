%% @doc A stock Erlang VM's trace events for the system's tracers.
%%
%% This is a tracer module, made of NIFs, for `erlang:trace/3':
%%
%% ```
%% 1> dyntrace:info().
%% 2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).
%% '''
%%
%% From then on each event of those trace flags is a probe that bpftrace, perf, SystemTap or gdb can attach to. Until
%% a consumer attaches, an event costs one call of `enabled'. The probes with their arguments are in docs/PROBES.md, and
%% in {@link probes/0}. OTP's runtime_tools has a module of the same name. If that one is loaded, the first command is
%% an error; the second succeeds, and no event comes.
%%
%% The callbacks follow the contract of `erl_tracer' in ERTS. They are right for any arguments, never raise, and are not
%% meant to be called by hand.
-module(dyntrace).

-include("dyntrace_annotation.hrl").

-on_load(on_load/0).

%% The facade
-export([available/0, probes/0, listeners/0, info/0]).

%% Attach-driven tracing
-export([follow/1, unfollow/0, dump/0, sender_pattern/0, record/1]).

%% Annotations
-export([mark/2, mark/3, span/2, request/2]).
-export([p/0, p/1, p/2, p/3, p/4, p/5, p/6, p/7, p/8]).
-export([pn/1, pn/2, pn/3, pn/4, pn/5, pn/6, pn/7, pn/8, pn/9]).
-export([user_trace_s1/1, user_trace_i4s4/9, user_trace_n/10]).
-export([put_tag/1, get_tag/0, get_tag_data/0, spread_tag/1, restore_tag/1]).

%% The tracer: what the VM calls
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

%% NIFs for the application alone. They are exported, so that the compiler does not optimize by the results of their
%% Erlang versions.
-define(INTERNAL, [nif_info/0, consumers/1, show_nif/1,
                   allow/1, set_budget/1, skipped/0, claim/0, set_active/1, report/2, set_builtins/2,
                   set_call_budget/1, take_calls/0, set_file_functions/1, set_status/1,
                   layout_candidates/0, layout_candidates_dirty/0, layout_word/1,
                   set_port/3, take_unknown_ports/0, count_ports/0,
                   wants_i4s4/0, wants_n/1, wants_mark/0, wants_span/0,
                   user_trace_n_nif/10, user_mark/3, user_span_start/2, user_span_stop/4]).
-export(?INTERNAL).

%% For the application
-export([library/0]).

-nifs(?TRACER).
-nifs(?INTERNAL).
-nifs([probes/0, listeners/0, user_trace_s1/1, user_trace_i4s4/9]).

%% The persistent term that on_load/0 writes: whether the library is loaded.
-define(LIBRARY, {?MODULE, library}).

-export_type([backend/0, probe/0, field/0, event/0, listener/0, info/0]).
-export_type([following/0]).
-export_type([arg/0, label/0, name/0, text/0]).

%%% -- Types ---------------------------------------------------------------------------

-type backend() :: usdt | lttng.
%% A way for events out of the VM.

-type field() :: #{name := atom(),
                   type := string | int32 | int64 | uint32 | uint64,
                   doc := binary(),
                   example := binary() | integer(),
                   unit => binary(),
                   max_bytes => pos_integer()}.
%% One argument of a probe. A number has a `unit'. A string that may be cut has `max_bytes', and ends in `...' when it
%% was.

-type event() :: #{group := atom(), tag := atom(), flags := binary()}.
%% A trace event that feeds a probe: the group of its callback, its tag, and the trace flags (and match specifications)
%% that make the VM produce it. The group `files' is the calls of `prim_file', a part of the group `call'. The tag `any'
%% stands for all tags of the group.

-type probe() :: #{provider := atom(),
                   name := atom(),
                   doc := binary(),
                   backends := [backend()],
                   fields := [field()],
                   kind := told | derived | never,
                   events := [event()],
                   asks := [event()],
                   source => dyntrace_source:name(),
                   differs => binary(),
                   labels => pos_integer(),
                   row => pos_integer()}.
%% `kind': whether the VM tells a tracer of the event, other events tell of it, or nothing does. `asks': events that
%% the VM must yield, too, for what the probe shows. `source': the application observes the event itself. `differs':
%% what the probe lacks, compared with a VM that was built with USDT. An entry with `labels' stands for that many
%% probes, named by `name' and a number from 0 on; one with `row', too, of which the first one has no number. The
%% `events' of annotations are empty.

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
                       functions := [dyntrace_trace_pattern:pattern()], files := boolean(), seq_trace := boolean(),
                       senders := boolean(), sources := [dyntrace_source:name()],
                       untraced := non_neg_integer(), withheld := #{atom() => string()},
                       paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
%% `processes', `ports': the trace flags that are set. `calls': which events of a call are traced, of the configured
%% `functions'. `files': whether the functions of `prim_file' are traced for the probes of files. `seq_trace': whether
%% the application is the system tracer. `senders': whether received messages come with their senders. `sources': what
%% else is observed. `untraced': about how many processes are not traced, since they have another tracer. `withheld':
%% trace flags, match specifications (`send', `receive'), sources and probes that are required but not set, with the
%% reason. `paused', `pauses', `skipped': of the budget, whether tracing pauses now, how often it has paused, and how
%% many trace events were skipped before a pause began.

%%% -- The facade ----------------------------------------------------------------------

%% @doc Whether a system tracer can see this VM at all: the library is loaded and has a backend. If not, `info/0' has
%% the reason.
-spec available() -> boolean().
available() ->
    #{backends := Backends} = ?MODULE:nif_info(),
    lists:member(available, maps:values(Backends)).

%% @doc The probes, in the order of the catalogue, and the arguments of each, in its order. Empty without the library.
-spec probes() -> [probe()].
probes() ->
    without_library([]).

%% @doc The probes that are enabled now, because a consumer is attached, and in which backends. Empty without the
%% library.
-spec listeners() -> [listener()].
listeners() ->
    without_library([]).

%% @doc Which backends are available and, for those that are not, why.
%%
%% `library' is the path that tracers attach to. If the file was replaced (built again), this VM still has the old one
%% mapped, and `usdt' is missing until the module is loaded again. `lttng_library' is the path of the library that
%% provides LTTng's tracepoints of `org_erlang_dyntrace'; `lttng_providers' says whether each provider is available: a
%% VM that was built with LTTng has `org_erlang_otp' itself. `attach' is a bpftrace command line for root. Its paths are
%% below `/proc/PID/root', so it also works outside the container of this VM, with the PID that the process has there.
%% `following' is the tracing that the application has switched on; `off' where it does not run or does not follow
%% consumers. `undecoded' counts, by probe, trace events of a shape that this version can't decode; `unknown' those of
%% an unknown tag. It is empty when all is well.
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

%% @private Where the library is, or why it is not loaded.
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
%% configuration ({@link dyntrace_config}); an option that is not given is as configured. Raises `badarg' for an option
%% that is not valid.
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

%% Calls the application controller only if it has to: on a busy node its answer takes long.
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
    _ = whereis(dyntrace_sup) =/= undefined orelse application:load(?MODULE),
    maps:from_list(application:get_all_env(?MODULE)).

follow_by(Config, ok) -> dyntrace_autotracer:follow(Config);
follow_by(_, Error) -> Error.

%% @doc Switches attach-driven tracing off: clears the trace flags that it has set, and sets none until
%% {@link follow/1}.
-spec unfollow() -> ok.
unfollow() ->
    case whereis(dyntrace_sup) of
        undefined -> ok;
        _ -> dyntrace_autotracer:unfollow()
    end.

%% @doc Asks for a dump: who all processes, ports and nodes are, as the probes `process_identity', `port_identity' and
%% `node_identity', between `dump_start' and `dump_end'. Returns at once. A dump is made of itself when one of these
%% probes becomes enabled, when a further session of LTTng records it, and when a tracer of USDT attaches to one of the
%% row `dump_wanted'. While no such probe is enabled it does nothing. `not_started': the application does not run, or
%% has no worker.
-spec dump() -> ok | {error, not_started}.
dump() ->
    dyntrace_autotracer:dump().

%% @doc Records this node with LTTng for `seconds' (10), and returns the file or folder that was written. It runs the
%% command `dyntrace' of this application beside the VM, as the VM's user, and waits for its end. `to' is a file whose
%% extension names the kind of picture (`.html', `.pftrace', `.txt', `.json', `.folded', `.mmd') or, without an
%% extension, a folder for the recording; without `to' it is a page named after node and time. `events' are groups of
%% events, such as `[messages, gc]'. An error is what the command prints: a cause and the next step. It requires Python,
%% lttng-tools and babeltrace2 where the VM runs; the application has to follow consumers. Raises `badarg' for an option
%% that is not valid.
-spec record(#{seconds => number(), to => file:filename_all(), events => [atom()]}) ->
          {ok, file:filename()} | {error, binary()}.
record(Options) ->
    case dyntrace_record:check(Options) of
        ok -> dyntrace_record:run(Options);
        {error, Why} -> dyntrace_badarg:raise(record, [Options], 1, Why)
    end.

%% @doc The match specification by which the probe `message_delivery' learns a message's sender. The application sets
%% it while that probe is enabled; by hand, it is for `erlang:trace_pattern('receive', dyntrace:sender_pattern(), [])',
%% or from OTP 27 on `trace:recv/3'. Before OTP 27 it is the whole node's: the trace messages of every tracer of
%% `'receive'' get a last element, `{Node, Sender}'.
-spec sender_pattern() -> dyntrace_match_spec:match_spec().
sender_pattern() ->
    [{['$1', '$2', '_'], [], [{message, {{'$1', '$2'}}}]}].

%%% -- Annotations ---------------------------------------------------------------------
%%
%% Guards check the arguments, so whether a call raises does not depend on attached consumers. Then one NIF call returns
%% whether the probe is enabled; if not, no tag is fetched and no text is made.

-type text() :: iodata() | unicode:chardata().
%% Sent whole up to 1,024 bytes; a longer text is cut as terms are. Bytes that are not UTF-8 are read as Latin-1; a NUL
%% becomes U+FFFD.

-type name() :: atom() | text().

-type arg() :: integer() | text() | term().
%% An integer of 64 bits or a string. Any other term counts as missing: 0, or NULL (in LTTng `"(null)"').

-type label() :: 0..?MAX_LABEL.

%% @equiv mark(Name, 0, Text)
-spec mark(name(), text()) -> boolean().
mark(Name, Text) when ?IS_NAME(Name), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, 0, Text);
mark(Name, Text) ->
    dyntrace_annotation:bad(mark, [Name, Text]).

%% @doc Fires the probe `user_mark': something of that name happened, with a value that consumers can add up or put into
%% a histogram. Returns whether the probe was enabled.
-spec mark(name(), integer(), text()) -> boolean().
mark(Name, Value, Text) when ?IS_NAME(Name), is_integer(Value), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, Value, Text);
mark(Name, Value, Text) ->
    dyntrace_annotation:bad(mark, [Name, Value, Text]).

%% @doc Calls the fun between the probes `user_span_start' and `user_span_stop'. The second one has the time between
%% them in nanoseconds, and how the fun ended. Returns or raises what the fun returns or raises.
-spec span(name(), fun(() -> Result)) -> Result.
span(Name, Fun) when ?IS_NAME(Name), is_function(Fun, 0) ->
    case wants_span() of
        false -> Fun();
        true -> timed(Name, Fun)
    end;
span(Name, Fun) ->
    dyntrace_annotation:bad(span, [Name, Fun]).

%% In this module, because the fun may run for long: the appup purges the old code of other modules at once, and kills
%% the processes that still run it.
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

%% @doc Calls the fun with a token of `seq_trace' of that label. In recordings all that the fun causes is one request:
%% the messages that it sends, those that their receivers send on, also to other nodes, and the answers. Afterwards the
%% process has the token again that it had before. Returns or raises what the fun returns or raises.
%%
%% The token says that sends, receives and `seq_trace:print' are traced; they are if a consumer of the probes
%% `seq_trace_send', `seq_trace_receive' or `seq_trace_print' is attached and the application runs, or another system
%% tracer does. A process that receives a message of the request has the token until it receives a message without one;
%% all that it sends until then belongs to the request. In recordings labels are texts; the command
%% `dyntrace request LABEL' follows one live. Raises `badarg' if the second argument is not a fun without arguments.
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
%% the tag may be one that came with a message.
-spec p() -> boolean().
p() ->
    wants_i4s4() andalso fire_i4s4([]).
-spec p(arg()) -> boolean().
p(A) ->
    wants_i4s4() andalso fire_i4s4([A]).
-spec p(arg(), arg()) -> boolean().
p(A, B) when ?PLACED(A, B) ->
    wants_i4s4() andalso fire_i4s4([A, B]);
p(A, B) ->
    dyntrace_annotation:bad(p, [A, B]).
-spec p(arg(), arg(), arg()) -> boolean().
p(A, B, C) when ?PLACED(A, B, C) ->
    wants_i4s4() andalso fire_i4s4([A, B, C]);
p(A, B, C) ->
    dyntrace_annotation:bad(p, [A, B, C]).
-spec p(arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D) when ?PLACED(A, B, C, D) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D]);
p(A, B, C, D) ->
    dyntrace_annotation:bad(p, [A, B, C, D]).
-spec p(arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E) when ?PLACED(A, B, C, D, E) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D, E]);
p(A, B, C, D, E) ->
    dyntrace_annotation:bad(p, [A, B, C, D, E]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F) when ?PLACED(A, B, C, D, E, F) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F]);
p(A, B, C, D, E, F) ->
    dyntrace_annotation:bad(p, [A, B, C, D, E, F]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G) when ?PLACED(A, B, C, D, E, F, G) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G]);
p(A, B, C, D, E, F, G) ->
    dyntrace_annotation:bad(p, [A, B, C, D, E, F, G]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G, H) when ?PLACED(A, B, C, D, E, F, G, H) ->
    wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G, H]);
p(A, B, C, D, E, F, G, H) ->
    dyntrace_annotation:bad(p, [A, B, C, D, E, F, G, H]).

%% @doc As {@link p/8}, for the probe `user_trace__n<Label>' (in LTTng `user_trace_n', with the label as a field).
%% Raises `badarg' for a label out of range.
-spec pn(label()) -> boolean().
pn(Label) when ?IS_LABEL(Label) ->
    wants_n(Label) andalso fire_n([Label]);
pn(Label) ->
    dyntrace_annotation:bad(pn, [Label]).
-spec pn(label(), arg()) -> boolean().
pn(Label, A) when ?IS_LABEL(Label) ->
    wants_n(Label) andalso fire_n([Label, A]);
pn(Label, A) ->
    dyntrace_annotation:bad(pn, [Label, A]).
-spec pn(label(), arg(), arg()) -> boolean().
pn(Label, A, B) when ?IS_LABEL(Label), ?PLACED(A, B) ->
    wants_n(Label) andalso fire_n([Label, A, B]);
pn(Label, A, B) ->
    dyntrace_annotation:bad(pn, [Label, A, B]).
-spec pn(label(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C) when ?IS_LABEL(Label), ?PLACED(A, B, C) ->
    wants_n(Label) andalso fire_n([Label, A, B, C]);
pn(Label, A, B, C) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C]).
-spec pn(label(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D) when ?IS_LABEL(Label), ?PLACED(A, B, C, D) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D]);
pn(Label, A, B, C, D) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C, D]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E]);
pn(Label, A, B, C, D, E) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C, D, E]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F]);
pn(Label, A, B, C, D, E, F) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G]);
pn(Label, A, B, C, D, E, F, G) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F, G]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G, H) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G, H) ->
    wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G, H]);
pn(Label, A, B, C, D, E, F, G, H) ->
    dyntrace_annotation:bad(pn, [Label, A, B, C, D, E, F, G, H]).

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

%% @doc Gives the process a tag, which its annotations carry; `undefined' takes the tag away. Returns the tag that the
%% process had.
-spec put_tag(undefined | text()) -> binary() | undefined.
put_tag(undefined) ->
    dyntrace_tag:put(undefined);
put_tag(Tag) ->
    case dyntrace_annotation:utf8(Tag) of
        {ok, Binary} -> dyntrace_tag:put(Binary);
        {error, _} -> dyntrace_annotation:bad(put_tag, [Tag])
    end.

%% @doc The tag that {@link put_tag/1} gave the process.
-spec get_tag() -> binary() | undefined.
get_tag() ->
    dyntrace_tag:get().

%% @doc The tag of {@link get_tag/0} or, without one, the tag of the message that the process received last.
-spec get_tag_data() -> binary() | undefined.
get_tag_data() ->
    dyntrace_tag:get_data().

%% @doc Sets whether the tag travels with the messages that the process sends from now on, as a sequential trace token
%% does: the receiver has the tag, and sends it along, until it receives a message without a tag. A process that has a
%% token of its own, set by `seq_trace', keeps that token, and its tag does not travel. Returns the argument for
%% {@link restore_tag/1}.
-spec spread_tag(boolean()) -> dyntrace_tag:data().
spread_tag(Spread) when is_boolean(Spread) ->
    dyntrace_tag:spread(Spread);
spread_tag(Spread) ->
    dyntrace_annotation:bad(spread_tag, [Spread]).

%% @doc Restores the tag and its spreading as they were before {@link spread_tag/1}.
-spec restore_tag(dyntrace_tag:data()) -> true.
restore_tag(Data) ->
    case dyntrace_tag:is_data(Data) of
        true -> dyntrace_tag:restore(Data);
        false -> dyntrace_annotation:bad(restore_tag, [Data])
    end.

%%% -- NIFs for the application alone --------------------------------------------------

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
%% @private How many trace events were skipped for lack of budget, since the library was loaded.
-spec skipped() -> non_neg_integer().
skipped() -> without_library(0).
%% @private Makes the caller the application's worker. Returns the worker before it, `undefined' if this library had
%% none; without a library, the caller.
-spec claim() -> undefined | pid().
claim() -> without_library(self()).
%% @private Sets whether the worker has set any tracing. If not, or when the worker is dead, processes drop its tracer
%% when they are scheduled.
-spec set_active(boolean()) -> ok.
set_active(_) -> without_library(ok).
%% @private The functions that are BIFs, and those that are NIFs; all others count as functions of Erlang code. Returns
%% how many of them were left out, since there was no room for so many.
-spec set_builtins(Bifs :: [mfa()], Nifs :: [mfa()]) -> LeftOut :: non_neg_integer().
set_builtins(_, _) -> without_library(0).

%% @private Fires a probe that has a source, see {@link dyntrace_source}. Values: one for each field, in their order.
-spec report(Probe :: atom(), Values :: tuple()) -> ok.
report(_, _) -> without_library(ok).

%% @private Tells the library what trace events do not show of a port.
-spec set_port(port(), Name :: atom(), Owner :: pid()) -> ok.
set_port(_, _, _) -> without_library(ok).

%% @private The ports of which the library has seen events but no name. Each is returned once.
-spec take_unknown_ports() -> [port()].
take_unknown_ports() -> without_library([]).

%% @private How many ports the library knows.
-spec count_ports() -> non_neg_integer().
count_ports() -> without_library(0).
%% @private The text that the host's command reads: see status.h.
-spec set_status(binary()) -> ok.
set_status(_) -> without_library(ok).

%% @private Where the process that runs this may stand in the memory of its scheduler, see layout.h. The library does
%% not know it on each platform.
-spec layout_candidates() -> {[{Slot :: non_neg_integer(), Current :: non_neg_integer()}],
                              {Frame :: non_neg_integer(), [Address :: non_neg_integer()]}} | undefined.
layout_candidates() -> without_library(undefined).

%% @private The same on a dirty scheduler, which has no frames of the process.
-spec layout_candidates_dirty() -> {[{Slot :: non_neg_integer(), Current :: non_neg_integer()}],
                                    {Frame :: non_neg_integer(), [Address :: non_neg_integer()]}} | undefined.
layout_candidates_dirty() -> without_library(undefined).

%% @private The word by which the VM holds a pid of this node.
-spec layout_word(pid()) -> non_neg_integer().
layout_word(_) -> without_library(0).

%% @private Sets how many more events of calls the application's tracer may make.
-spec set_call_budget(non_neg_integer() | infinity) -> ok.
set_call_budget(_) -> without_library(ok).

%% @private How often each function was called since the last time; last, the calls of functions for which the library
%% has no room. Nothing is counted while the budget is infinite.
-spec take_calls() -> {[{mfa(), Count :: pos_integer()}], non_neg_integer()}.
take_calls() -> without_library({[], 0}).

%% @private The functions of `prim_file' that are traced for the probes of files alone.
-spec set_file_functions([{Function :: atom(), arity()}]) -> ok.
set_file_functions(_) -> without_library(ok).

%% @private The consumers that are attached to these probes. An identity is one of those of its probe and backend; of
%% more than 64, some have none. Tracers of USDT are counted as far as the kernel counts them (Linux: once per place, so
%% mostly as one): the first one is 1. Of a row of probes, the numbers of those that are enabled. LTTng's sessions have
%% identities of their own.
-spec consumers([Probe :: atom()]) -> [{Probe :: atom(), backend(), Identity :: non_neg_integer()}].
consumers(_) -> without_library([]).
%% @private Whether the probe is enabled, as the next three functions.
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
%% @private Fires the probe, and returns whether it was enabled, as the next three functions.
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

%% The answer of a NIF without the library. It is read from a persistent term that does not exist: from a plain value
%% dialyzer would conclude that no NIF returns anything else.
without_library(Answer) ->
    persistent_term:get({?MODULE, without_library}, Answer).

%%% -- The tracer ----------------------------------------------------------------------

-type answer() :: trace | discard | remove.
-type tracee() :: pid() | port() | undefined.
-type opts() :: #{extra => term(), match_spec_result => term(),
                  scheduler_id => non_neg_integer(), timestamp => atom()}.

%% @doc Whether a probe that this tag feeds is enabled. The answer to `trace_status' is `trace', since a consumer may
%% attach later; for the application's tracer it is `remove' while the application traces nothing or its worker is dead.
-spec enabled(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled(_, _, _) -> discard.

%% @doc One event: fires the enabled probes that it feeds.
-spec trace(Tag :: atom(), State :: term(), tracee() | term(), term(), opts()) -> ok.
trace(_, _, _, _, _) -> ok.

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

%% The module loads in any case: without the library, the Erlang versions of the NIFs answer.
on_load() ->
    _ = [is_at_hand(Module) || Module <- [dyntrace_annotation, dyntrace_badarg, dyntrace_tag]],
    persistent_term:put(?LIBRARY, load_library([Module || Module <- [dyntrace_library, dyntrace_builtins],
                                                          not is_at_hand(Module)])).

%% Embedded mode loads no module when it is called. The boot file of a release with the application has loaded its
%% modules. On other nodes this module may be loaded by hand, and then loads those that it calls; after a build, by
%% `l(dyntrace)', also those that were built with it.
is_at_hand(Module) ->
    is_current(Module, code:is_loaded(Module)) orelse code:load_file(Module) =:= {module, Module}
        orelse erlang:module_loaded(Module).

%% Whether the loaded code is that of the file on the code path. Cover-compiled code has no file.
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
