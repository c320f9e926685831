%% @doc A stock Erlang VM's trace events for the system's tracers.
%%
%% This is a tracer module, made of NIFs, for `erlang:trace/3':
%%
%% ```
%% 1> dyntrace:info().
%% 2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).
%% '''
%%
%% OTP's runtime_tools has a module of the same name. If that is the one loaded, the first command is an error;
%% the second succeeds, and no event comes. From then on each event of those trace flags is a probe that bpftrace,
%% perf, SystemTap or gdb can attach to. Until a consumer attaches, an event costs one call of `enabled'. The probes
%% with their arguments are in docs/PROBES.md, and in {@link probes/0}.
%%
%% The callbacks follow the contract of `erl_tracer' in ERTS. They are right for any
%% arguments, never raise, and are not meant to be called by hand.
-module(dyntrace).

-include_lib("kernel/include/file.hrl").

-on_load(on_load/0).

%% The facade
-export([available/0, probes/0, listeners/0, info/0]).

%% Attach-driven tracing
-export([follow/1, unfollow/0]).

%% Annotations
-export([mark/2, mark/3, span/2]).
-export([p/0, p/1, p/2, p/3, p/4, p/5, p/6, p/7, p/8]).
-export([pn/1, pn/2, pn/3, pn/4, pn/5, pn/6, pn/7, pn/8, pn/9]).
-export([user_trace_s1/1, user_trace_i4s4/9, user_trace_n/10]).
-export([put_tag/1, get_tag/0, get_tag_data/0, spread_tag/1, restore_tag/1]).
-export([format_error/2]).

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

%% NIFs for this module alone. Exported, so that the compiler draws no conclusions from what their Erlang versions return
-define(INTERNAL, [nif_info/0, show_nif/1, allow/1, set_budget/1, skipped/0, claim/0, set_active/1, wants_i4s4/0, wants_n/1, wants_mark/0, wants_span/0,
                   user_trace_n_nif/10, user_mark/3, user_span_start/2, user_span_stop/4]).
-export(?INTERNAL).

%% Exported for the application's worker, and for the tests
-export([show/1, load_info/1, library/0]).

-nifs(?TRACER).
-nifs(?INTERNAL).
-nifs([probes/0, listeners/0, user_trace_s1/1, user_trace_i4s4/9]).

%% Where on_load/0 leaves {loaded, Path} or {missing, Why}.
-define(LIBRARY, {?MODULE, library}).

%% Where on_load/0 leaves {File, Count}: which file is mapped, and how many were before it.
-define(MAPPED, {?MODULE, mapped}).

%% Where show/1 leaves its argument.
-define(TEXT, {?MODULE, text}).

-export_type([backend/0, probe/0, field/0, event/0, listener/0, info/0]).
-export_type([following/0]).
-export_type([arg/0, label/0, name/0, text/0]).

%%% -- Types ---------------------------------------------------------------------------

-type backend() :: usdt | lttng.
%% A way out of the VM.

-type field() :: #{name := atom(),
                   type := string | int32 | int64 | uint32 | uint64,
                   doc := binary(),
                   example := binary() | integer(),
                   unit => binary(),
                   max_bytes => pos_integer()}.
%% One argument of a probe. A number has a `unit'; a string that may be cut has
%% `max_bytes', and ends in `...' when it was.

-type event() :: #{group := atom(), tag := atom(), flags := binary()}.
%% A trace event that feeds a probe: its callback's group, its tag, and the trace flags (and match specifications)
%% that make the VM yield it. The tag `any' stands for all tags of the group.

-type probe() :: #{provider := atom(),
                   name := atom(),
                   doc := binary(),
                   backends := [backend()],
                   fields := [field()],
                   events := [event()],
                   differs => binary(),
                   labels => pos_integer()}.
%% `differs' says where a probe tells less than in a VM that was built with USDT. An entry with `labels' stands for
%% that many probes, named by `name' and a number from 0 on. The `events' of annotations are empty.

-type listener() :: #{provider := atom(), name := atom(), backends := [backend()]}.
%% An enabled probe, and the backends that it is enabled in.

-type info() :: #{version := string() | undefined,
                  library := file:filename() | undefined,
                  lttng_library := binary() | undefined,
                  attach := string() | undefined,
                  following := off | following(),
                  backends := #{backend() => available | {missing, binary()}},
                  undecoded := #{atom() => pos_integer()}}.

-type following() :: #{processes := [atom()], ports := [atom()], calls := dyntrace_trace_flags:calls(),
                       seq_trace := boolean(), untraced := non_neg_integer(), withheld := #{atom() => string()},
                       paused := boolean(), pauses := non_neg_integer(), skipped := non_neg_integer()}.
%% `processes', `ports': the trace flags that are set. `calls': which events of a call are traced. `seq_trace': whether
%% the application is the system tracer. `untraced': about how many processes are not traced, since they have another
%% tracer. `withheld': trace flags that are needed but not set, with the reason. `paused', `pauses', `skipped': of the
%% budget, whether tracing pauses now, how often it has paused, and how many trace events were skipped before a pause
%% began.

%%% -- The facade ----------------------------------------------------------------------

%% @doc Whether a system tracer can see this VM at all: the library is loaded and has a
%% backend. `info/0' says what is missing.
-spec available() -> boolean().
available() ->
    #{backends := Backends} = ?MODULE:nif_info(),
    lists:member(available, maps:values(Backends)).

%% @doc The probes, in the order of the catalogue, and the arguments of each, in its order. Empty without the library.
-spec probes() -> [probe()].
probes() ->
    without_library([]).

%% @doc The probes that are enabled now, because a consumer is attached, and in which backends. Empty without the library.
-spec listeners() -> [listener()].
listeners() ->
    without_library([]).

%% @doc Which backends are available and, for those that are not, why.
%%
%% `library' is the path that tracers attach to. If the file was replaced (built again), this VM still has the old one
%% mapped, and `usdt' is missing until the module is loaded again. `lttng_library' is the path of the library that
%% provides the tracepoints of LTTng. `attach' is a bpftrace command line for root. Its paths are below `/proc/PID/root',
%% so it also works outside the container of this VM, with the PID that the process has there. `following' is what
%% the application traces now; `off' where it does not run or does not follow. `undecoded' counts, by probe, trace
%% events of a shape that this version can't decode; `unknown' those of an unknown tag. It is empty when all is well.
-spec info() -> info().
info() ->
    Library = case library() of
                  {loaded, Path} -> Path;
                  {missing, _} -> undefined
              end,
    maps:merge(#{version => version(), library => Library, attach => attach(Library),
                 following => dyntrace_autotracer:info()}, mapped(Library, ?MODULE:nif_info())).

%% @private Where the library is, or why it is not loaded.
-spec library() -> {loaded, file:filename()} | {missing, binary()}.
library() ->
    persistent_term:get(?LIBRARY).

mapped(undefined, Info) ->
    Info;
mapped(Library, Info = #{backends := Backends}) ->
    {Mapped, _} = persistent_term:get(?MAPPED),
    case identity(Library) of
        Now when Now =:= Mapped; is_atom(Now), Now =/= enoent -> Info;
        _ -> Info#{backends := Backends#{usdt := {missing, printed("~ts is not the file that is loaded (built again, or removed): "
                                                                   "load the module again, and attach again", [Library])}}}
    end.

attach(undefined) ->
    undefined;
attach(Library) ->
    Root = ["/proc/", os:getpid(), "/root"],
    Script = filename:join([filename:dirname(Library), "bpftrace", "who_talks.bt"]),
    lists:flatten(["bpftrace ", Root, Script, " ", Root, Library]).

%% @private The part of info/0 that the library returns.
-spec nif_info() -> #{backends := #{backend() => available | {missing, binary()}},
                      undecoded := #{atom() => pos_integer()},
                      lttng_library := binary() | undefined}.
nif_info() ->
    Missing = library(),
    #{backends => #{usdt => Missing, lttng => Missing}, undecoded => #{}, lttng_library => undefined}.

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
%% configuration ({@link dyntrace_config}); an option that is not given is as configured. An option that is not valid
%% is `badarg'.
-spec follow(#{atom() => term()}) -> ok | {error, term()}.
follow(Options) when is_map(Options) ->
    case dyntrace_config:check(maps:merge(configured(), Options)) of
        {ok, Config} ->
            case started() of
                ok -> works(dyntrace_app:work(), Config);
                {error, Why} -> {error, Why}
            end;
        {error, {bad_config, Key, _, MustBe}} ->
            bad(follow, [Options], [{1, false, io_lib:format("~0tp: ~ts", [Key, MustBe])}])
    end;
follow(Options) ->
    bad(follow, [Options], [{1, false, "not a map"}]).

%% Asks the application controller only if it must: on a busy node its answer takes long.
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

%% There is no worker where the library was missing when the application was started.
works(ok, Config) -> dyntrace_autotracer:follow(Config);
works(Error, _) -> Error.

%% @doc Switches attach-driven tracing off: clears the flags that it has set, and sets none until {@link follow/1}.
-spec unfollow() -> ok.
unfollow() ->
    case whereis(dyntrace_sup) of
        undefined -> ok;
        _ -> dyntrace_autotracer:unfollow()
    end.

%%% -- Annotations ---------------------------------------------------------------------
%%
%% Guards check the arguments, so whether a call raises does not depend on attached consumers. Then one NIF call asks
%% whether the probe is enabled; if not, no tag is fetched and no text is made.

-type text() :: iodata() | unicode:chardata().
%% Sent whole up to 1,024 bytes, then cut as terms are. Bytes that are no UTF-8 are taken
%% for Latin-1; a NUL becomes U+FFFD.

-type name() :: atom() | text().

-type arg() :: integer() | text() | term().
%% An integer of 64 bits or a string. Any other term counts as missing: 0, or NULL (in LTTng `"(null)"').

-type label() :: 0..950.

-define(IS_TEXT(Text), (is_binary(Text) orelse is_list(Text))).
-define(IS_NAME(Name), (is_atom(Name) orelse ?IS_TEXT(Name))).

%% @equiv mark(Name, 0, Text)
-spec mark(name(), text()) -> boolean().
mark(Name, Text) when ?IS_NAME(Name), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, 0, Text);
mark(Name, Text) ->
    bad(mark, [Name, Text], [{1, ?IS_NAME(Name), "neither an atom nor a string"},
                             {2, false, "not a string"}]).

%% @doc Fires the probe `user_mark': something of that name happened, with a value that
%% consumers can add up or put into a histogram. Returns whether the probe was enabled.
-spec mark(name(), integer(), text()) -> boolean().
mark(Name, Value, Text) when ?IS_NAME(Name), is_integer(Value), ?IS_TEXT(Text) ->
    wants_mark() andalso user_mark(Name, Value, Text);
mark(Name, Value, Text) ->
    bad(mark, [Name, Value, Text], [{1, ?IS_NAME(Name), "neither an atom nor a string"},
                                    {2, is_integer(Value), "not an integer"},
                                    {3, false, "not a string"}]).

%% @doc Calls the fun between the probes `user_span_start' and `user_span_stop', which has the
%% time between them in nanoseconds and says how the fun ended. Returns or raises what the fun
%% does.
-spec span(name(), fun(() -> Result)) -> Result.
span(Name, Fun) when ?IS_NAME(Name), is_function(Fun, 0) ->
    case wants_span() of
        false -> Fun();
        true -> timed(Name, Fun)
    end;
span(Name, Fun) ->
    bad(span, [Name, Fun], [{1, ?IS_NAME(Name), "neither an atom nor a string"},
                            {2, false, "not a fun without arguments"}]).

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

-define(MAX_LABEL, 950).
-define(IS_LABEL(Label), is_integer(Label), Label >= 0, Label =< ?MAX_LABEL).

%% Four integers or fewer, then four others or fewer.
-define(PLACED(A, B), (is_integer(A) orelse not is_integer(B))).
-define(PLACED(A, B, C), ?PLACED(A, B), ?PLACED(B, C)).
-define(PLACED(A, B, C, D), ?PLACED(A, B, C), ?PLACED(C, D)).
-define(PLACED(A, B, C, D, E), ?PLACED(A, B, C, D), is_integer(A), not is_integer(E)).
-define(PLACED(A, B, C, D, E, F), ?PLACED(A, B, C, D, E), is_integer(B), not is_integer(F)).
-define(PLACED(A, B, C, D, E, F, G), ?PLACED(A, B, C, D, E, F), is_integer(C), not is_integer(G)).
-define(PLACED(A, B, C, D, E, F, G, H), ?PLACED(A, B, C, D, E, F, G), is_integer(D), not is_integer(H)).

%% @doc Fires the probe `user_trace__i4s4' (in LTTng `user_trace_i4s4'): up to four integers,
%% then up to four strings, with the calling process and its tag. Returns whether the probe was enabled.
%% The contract is that of OTP's `dyntrace', with two differences: an integer after a string, or a fifth of
%% either, is `badarg'; and the tag may be one that came with a message.
-spec p() -> boolean().
p() -> wants_i4s4() andalso fire_i4s4([]).
-spec p(arg()) -> boolean().
p(A) -> wants_i4s4() andalso fire_i4s4([A]).
-spec p(arg(), arg()) -> boolean().
p(A, B) when ?PLACED(A, B) -> wants_i4s4() andalso fire_i4s4([A, B]);
p(A, B) -> bad_p([A, B]).
-spec p(arg(), arg(), arg()) -> boolean().
p(A, B, C) when ?PLACED(A, B, C) -> wants_i4s4() andalso fire_i4s4([A, B, C]);
p(A, B, C) -> bad_p([A, B, C]).
-spec p(arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D) when ?PLACED(A, B, C, D) -> wants_i4s4() andalso fire_i4s4([A, B, C, D]);
p(A, B, C, D) -> bad_p([A, B, C, D]).
-spec p(arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E) when ?PLACED(A, B, C, D, E) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E]);
p(A, B, C, D, E) -> bad_p([A, B, C, D, E]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F) when ?PLACED(A, B, C, D, E, F) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F]);
p(A, B, C, D, E, F) -> bad_p([A, B, C, D, E, F]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G) when ?PLACED(A, B, C, D, E, F, G) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G]);
p(A, B, C, D, E, F, G) -> bad_p([A, B, C, D, E, F, G]).
-spec p(arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
p(A, B, C, D, E, F, G, H) when ?PLACED(A, B, C, D, E, F, G, H) -> wants_i4s4() andalso fire_i4s4([A, B, C, D, E, F, G, H]);
p(A, B, C, D, E, F, G, H) -> bad_p([A, B, C, D, E, F, G, H]).

%% @doc As {@link p/8}, for the probe `user_trace__n<Label>' (in LTTng `user_trace_n', with the label as
%% a field). A label out of range is `badarg'.
-spec pn(label()) -> boolean().
pn(Label) when ?IS_LABEL(Label) -> wants_n(Label) andalso fire_n([Label]);
pn(Label) -> bad_pn([Label]).
-spec pn(label(), arg()) -> boolean().
pn(Label, A) when ?IS_LABEL(Label) -> wants_n(Label) andalso fire_n([Label, A]);
pn(Label, A) -> bad_pn([Label, A]).
-spec pn(label(), arg(), arg()) -> boolean().
pn(Label, A, B) when ?IS_LABEL(Label), ?PLACED(A, B) -> wants_n(Label) andalso fire_n([Label, A, B]);
pn(Label, A, B) -> bad_pn([Label, A, B]).
-spec pn(label(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C) when ?IS_LABEL(Label), ?PLACED(A, B, C) -> wants_n(Label) andalso fire_n([Label, A, B, C]);
pn(Label, A, B, C) -> bad_pn([Label, A, B, C]).
-spec pn(label(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D) when ?IS_LABEL(Label), ?PLACED(A, B, C, D) -> wants_n(Label) andalso fire_n([Label, A, B, C, D]);
pn(Label, A, B, C, D) -> bad_pn([Label, A, B, C, D]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E) -> wants_n(Label) andalso fire_n([Label, A, B, C, D, E]);
pn(Label, A, B, C, D, E) -> bad_pn([Label, A, B, C, D, E]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F) -> wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F]);
pn(Label, A, B, C, D, E, F) -> bad_pn([Label, A, B, C, D, E, F]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G) -> wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G]);
pn(Label, A, B, C, D, E, F, G) -> bad_pn([Label, A, B, C, D, E, F, G]).
-spec pn(label(), arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()) -> boolean().
pn(Label, A, B, C, D, E, F, G, H) when ?IS_LABEL(Label), ?PLACED(A, B, C, D, E, F, G, H) -> wants_n(Label) andalso fire_n([Label, A, B, C, D, E, F, G, H]);
pn(Label, A, B, C, D, E, F, G, H) -> bad_pn([Label, A, B, C, D, E, F, G, H]).

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
    bad(user_trace_n, [Label, Tag, I1, I2, I3, I4, S1, S2, S3, S4], [{1, false, not_a_label()}]).

fire_i4s4(Args) ->
    apply(fun ?MODULE:user_trace_i4s4/9, [get_tag_data() | placed(Args)]).

fire_n([Label | Args]) ->
    apply(fun ?MODULE:user_trace_n_nif/10, [Label, get_tag_data() | placed(Args)]).

%% The arguments at their places among four integers and four strings.
placed(Args) ->
    {Integers, Strings} = lists:splitwith(fun is_integer/1, Args),
    four(Integers) ++ four(Strings).

four(Args) ->
    lists:sublist(Args ++ lists:duplicate(4, undefined), 4).

-spec bad_p([term()]) -> no_return().
bad_p(Args) ->
    bad(p, Args, [misplaced(Args, 1)]).

-spec bad_pn([term(), ...]) -> no_return().
bad_pn([Label | Args]) when ?IS_LABEL(Label) ->
    bad(pn, [Label | Args], [misplaced(Args, 2)]);
bad_pn(Args) ->
    bad(pn, Args, [{1, false, not_a_label()}]).

%% The first argument that is not at its place; the first of these is argument Position.
misplaced(Args, Position) ->
    {Integers, Strings} = lists:splitwith(fun is_integer/1, Args),
    case {Integers, lists:splitwith(fun(S) -> not is_integer(S) end, Strings)} of
        {[_, _, _, _, _ | _], _} -> {Position + 4, false, "a fifth integer"};
        {_, {[_, _, _, _, _ | _], _}} -> {Position + length(Integers) + 4, false, "a fifth string"};
        {_, {Before, _}} -> {Position + length(Integers) + length(Before), false, "an integer after a string"}
    end.

not_a_label() ->
    io_lib:format("not an integer from 0 to ~b", [?MAX_LABEL]).

%% @doc Gives the process a tag, which its annotations carry; `undefined' takes it away. Returns
%% the tag that it had.
-spec put_tag(undefined | text()) -> binary() | undefined.
put_tag(undefined) ->
    dyntrace_tag:put(undefined);
put_tag(Tag) ->
    try unicode:characters_to_binary(Tag) of
        Binary when is_binary(Binary) -> dyntrace_tag:put(Binary);
        _ -> bad(put_tag, [Tag], [{1, false, "not a string in UTF-8"}])
    catch
        error:badarg -> bad(put_tag, [Tag], [{1, false, "not a string"}])
    end.

%% @doc The tag that {@link put_tag/1} gave the process.
-spec get_tag() -> binary() | undefined.
get_tag() ->
    dyntrace_tag:get().

%% @doc The tag of {@link get_tag/0} or, without one, the tag that came with the message that the process received last.
-spec get_tag_data() -> binary() | undefined.
get_tag_data() ->
    dyntrace_tag:get_data().

%% @doc Whether the tag travels with the messages that the process sends from now on, as a
%% sequential trace token does: the receiver has it, and sends it along, until it
%% receives a message without. A process that has a token of its own, set by
%% `seq_trace', keeps that, and its tag does not travel. Returns the argument for {@link restore_tag/1}.
-spec spread_tag(boolean()) -> dyntrace_tag:data().
spread_tag(Spread) when is_boolean(Spread) ->
    dyntrace_tag:spread(Spread);
spread_tag(Spread) ->
    bad(spread_tag, [Spread], [{1, false, "not a boolean"}]).

%% @doc Restores the tag and its spreading as they were before {@link spread_tag/1}.
-spec restore_tag(dyntrace_tag:data()) -> true.
restore_tag(Data) ->
    case dyntrace_tag:is_data(Data) of
        true -> dyntrace_tag:restore(Data);
        false -> bad(restore_tag, [Data], [{1, false, "not what spread_tag/1 returns"}])
    end.

%% Raises badarg out of the function that the user called. The checks are {Position, IsGood, Why} of its arguments;
%% the shell shows the first that is not good.
-spec bad(atom(), [term()], [{pos_integer(), boolean(), iolist()}]) -> no_return().
bad(Function, Args, Checks) ->
    {Position, false, Why} = lists:keyfind(false, 2, Checks),
    Callers = try error(here)
              catch error:here:Stack -> tl(Stack)
              end,
    erlang:raise(error, badarg,
                 [{?MODULE, Function, Args, [{error_info, #{cause => #{Position => Why}}}]} | Callers]).

%% @private Called by the shell to explain an error of ours.
-spec format_error(term(), [tuple()]) -> #{pos_integer() => iolist()}.
format_error(badarg, [{_, _, _, Info} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Info, #{}), #{});
format_error(_, _) ->
    #{}.

%% @private Sets whether texts show terms in full or their shape. The setting is persisted: it outlives a reload.
-spec show(full | shape) -> ok.
show(Text) ->
    ok = persistent_term:put(?TEXT, Text),
    show_nif(Text).

%% @private The same, for the library that is loaded.
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
%% @private Makes the caller the application's worker. Returns the worker before it, `undefined' if this library had none;
%% without a library, the caller.
-spec claim() -> undefined | pid().
claim() -> without_library(self()).
%% @private Sets whether the worker has anything traced. If not, or when the worker is dead, processes drop its tracer
%% when they are scheduled.
-spec set_active(boolean()) -> ok.
set_active(_) -> without_library(ok).
%% @private Whether the probe is enabled; so the three that follow.
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
%% @private Fires the probe, returns whether it was enabled; so the three that follow.
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

%% The answer of a NIF without the library. It is read from a persistent term that is never put: from a plain value
%% dialyzer would conclude that code which needs another answer never runs.
without_library(Answer) ->
    persistent_term:get({?MODULE, without_library}, Answer).

%%% -- The tracer ----------------------------------------------------------------------

-type answer() :: trace | discard | remove.
-type tracee() :: pid() | port() | undefined.
-type opts() :: #{extra => term(), match_spec_result => term(),
                  scheduler_id => non_neg_integer(), timestamp => atom()}.

%% @doc Whether a probe that this tag feeds is enabled. For `trace_status' it answers `trace', since a consumer may
%% attach later; for the application's tracer, `remove' while the application traces nothing or its worker is dead.
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
    Library = library_file(),
    Provider = filename:join(filename:dirname(Library), "dyntrace_lttng.so"),
    Mapped = {File, Before} = to_map(Library),
    persistent_term:put(?LIBRARY, case erlang:load_nif(spelled(Library, Before), load_info(Provider)) of
                                      ok -> persistent_term:put(?MAPPED, Mapped), {loaded, Library};
                                      {error, {_, Why}} -> {missing, printed("~ts~ts", [Why, hint(Why, File)])}
                                  end).

%% A path under which the dynamic linker opens the file. For a path that it has opened before it takes the file that is
%% mapped, even if that was replaced (by `make'). A path that is spelled differently it opens, and compares the files.
spelled(Library, Before) ->
    filename:dirname(Library) ++ lists:append(lists:duplicate(Before, "/.")) ++ "/" ++ filename:basename(Library, ".so").

to_map(Library) ->
    File = identity(Library),
    case persistent_term:get(?MAPPED, {File, 0}) of
        {File, Before} -> {File, Before};
        {_Other, Before} -> {File, Before + 1}
    end.

%% The inode of a mapped file is not used for another one.
identity(File) ->
    case file:read_file_info(File, [raw]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, Why} -> Why
    end.

%% The dynamic linker has one message for a file that does not exist and for one of another machine.
hint(_, enoent) -> "";
hint(Why, _) ->
    Hints = [{"failed to map segment", " (is its file system mounted noexec?)"},
             {"No such file", " (it is there: was it built for another machine?)"}],
    hd([Hint || {Part, Hint} <- Hints, string:find(Why, Part) =/= nomatch] ++ [""]).

printed(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% @private The argument of the library's load: see start() in dyntrace_nif.c. Provider is the path of the LTTng provider.
-spec load_info(file:filename()) -> tuple().
load_info(Provider) ->
    {Least, Greatest} = integers(),
    {reserved_words(), sizes(), Least, Greatest, text(), unicode:characters_to_binary(Provider)}.

%% In the priv folder of the module that comes first on the code path (it may be OTP's), or in that of the application.
%% Not in that of the loaded module: during an upgrade it belongs to the old version.
library_file() ->
    Files = [filename:join(Dir, "dyntrace.so") || Dir <- priv_dirs()],
    filename:absname(case [File || File <- Files, filelib:is_regular(File)] of
                         [File | _] -> File;
                         [] -> lists:last(["dyntrace.so" | Files])
                     end).

%% The application's folder comes last: without any library, the error names that one.
priv_dirs() ->
    [Dir || Beam <- [code:where_is_file("dyntrace.beam"), code:where_is_file("dyntrace_app.beam"), code:which(dyntrace_app)],
            is_list(Beam), Dir <- beside(filename:dirname(Beam))]
        ++ [Dir || Dir <- [code:priv_dir(?MODULE)], is_list(Dir)].

%% For ebin, its sibling priv. For priv/beam, where releases that systools packs have the module, priv itself as well.
beside(Folder) ->
    Above = filename:dirname(filename:absname(Folder)),
    [filename:join(Above, "priv") | [Above || filename:basename(Folder) =:= "beam"]].

%% The words that Erlang writes in quotes when they are atoms; which of them are
%% reserved depends on the release.
reserved_words() ->
    [Word || Word <- ['after', 'and', 'andalso', 'band', 'begin', 'bnot', 'bor', 'bsl', 'bsr', 'bxor',
                      'case', 'catch', 'cond', 'div', 'else', 'end', 'fun', 'if', 'let', 'maybe',
                      'not', 'of', 'or', 'orelse', 'receive', 'rem', 'try', 'when', 'xor'],
             is_quoted(Word)].

is_quoted(Word) ->
    hd(lists:flatten(io_lib:write_atom(Word))) =:= $'.

%% The bounds of the integers whose text may be shown whole: DT_TERM_MAX digits.
integers() ->
    Power = fun Power(0) -> 1; Power(N) -> 10 * Power(N - 1) end,
    {-Power(256), Power(256)}.

%% How texts show terms: as show/1 has said, or as configured, whether the application runs or not. A value that is not
%% valid shows shapes, so that contents stay hidden.
text() ->
    case persistent_term:get(?TEXT, none) of
        none -> configured_text();
        Text -> Text
    end.

%% The environment has the values of sys.config once the application is loaded.
configured_text() ->
    _ = whereis(application_controller) =/= undefined andalso application:load(?MODULE),
    case application:get_env(?MODULE, text) of
        undefined -> full;
        {ok, full} -> full;
        {ok, _} -> shape
    end.

%% Sizes on a heap, in words, that differ between releases: the header of a heap binary, an off-heap binary,
%% a bitstring, a reference, a fun, a pid of another node.
sizes() ->
    External = binary_to_term(<<131, 88, 119, 1, $n, 1:32, 0:32, 1:32>>),
    list_to_tuple([erts_debug:flat_size(binary:copy(<<0>>)) - 1
                   | [erts_debug:flat_size(Term)
                      || Term <- [binary:copy(<<0>>, 65), <<(binary:copy(<<0>>))/binary, 1:3>>, make_ref(), fun() -> ok end, External]]]).
