%% @doc A stock Erlang VM's trace events for the system's tracers.
%%
%% This is a tracer module, made of NIFs, for `erlang:trace/3':
%%
%% ```
%% 1> l(dyntrace).
%% 2> erlang:trace(all, true, [send, {tracer, dyntrace, []}]).
%% '''
%%
%% From then on each event of those trace flags is a probe that bpftrace, perf,
%% SystemTap or gdb can attach to. An event that nobody is attached for costs the VM's
%% question whether it is wanted, and nothing more. The probes with their arguments are in
%% docs/PROBES.md, and in {@link probes/0}.
%%
%% The callbacks follow the contract of `erl_tracer' in ERTS. They are right for any
%% arguments, never raise, and are not meant to be called by hand.
-module(dyntrace).

-on_load(on_load/0).

%% The facade
-export([available/0, probes/0, listeners/0, info/0]).

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

%% Exported so that the compiler takes it for what the library makes of it
-export([nif_info/0]).

-nifs(?TRACER).
-nifs([probes/0, listeners/0, nif_info/0]).

%% Where on_load/0 leaves {loaded, Path} or {missing, Why}.
-define(LIBRARY, {?MODULE, library}).

-export_type([backend/0, probe/0, field/0, event/0, listener/0, info/0]).

%%% -- Types ---------------------------------------------------------------------------

-type backend() :: usdt | lttng.
%% A way out of the VM.

-type field() :: #{name := atom(),
                   type := string | uint32 | uint64,
                   doc := binary(),
                   example := binary() | non_neg_integer(),
                   unit => binary(),
                   max_bytes => pos_integer()}.
%% One argument of a probe. A number has a `unit'; a string that may be cut has
%% `max_bytes', and ends in `...' when it was.

-type event() :: #{group := atom(), tag := atom(), flags := binary()}.
%% A trace event that feeds a probe: its callback's group, its tag, and the trace flags
%% (and whatever else it takes) that make the VM yield it.

-type probe() :: #{provider := atom(),
                   name := atom(),
                   doc := binary(),
                   fields := [field()],
                   events := [event()]}.

-type listener() :: #{provider := atom(), name := atom(), backends := [backend()]}.

-type info() :: #{version := string() | undefined,
                  library := file:filename() | undefined,
                  lttng_library := binary() | undefined,
                  backends := #{backend() => available | {missing, binary()}},
                  undecoded := #{atom() => pos_integer()}}.

%%% -- The facade ----------------------------------------------------------------------

%% @doc Whether a system tracer can see this VM at all: the library is loaded and has a
%% backend. `info/0' says what is missing.
-spec available() -> boolean().
available() ->
    lists:member(available, maps:values(maps:get(backends, info()))).

%% @doc The probes in the order of the catalogue, with their arguments in the order of
%% the probe's. Empty without the library.
-spec probes() -> [probe()].
probes() ->
    [].

%% @doc The probes that somebody is attached to at this moment, and through which
%% backends.
-spec listeners() -> [listener()].
listeners() ->
    [].

%% @doc What is there and, where something is not, why.
%%
%% `library' is the path that tracers attach to, `lttng_library' that of what provides the
%% tracepoints of LTTng. `undecoded' counts, by probe, the trace
%% events that had another shape than this version knows, and were skipped; `unknown'
%% those of another tag. It is empty when all is well.
-spec info() -> info().
info() ->
    Library = case persistent_term:get(?LIBRARY) of
                  {loaded, Path} -> Path;
                  {missing, _} -> undefined
              end,
    maps:merge(#{version => version(), library => Library}, ?MODULE:nif_info()).

%% @private The part of info/0 that the library knows.
-spec nif_info() -> #{backends := #{backend() => available | {missing, binary()}},
                      undecoded := #{atom() => pos_integer()},
                      lttng_library := binary() | undefined}.
nif_info() ->
    Missing = persistent_term:get(?LIBRARY),
    #{backends => #{usdt => Missing, lttng => Missing}, undecoded => #{}, lttng_library => undefined}.

version() ->
    _ = application:load(?MODULE),
    case application:get_key(?MODULE, vsn) of
        {ok, Version} -> Version;
        undefined -> undefined
    end.

%%% -- The tracer ----------------------------------------------------------------------

-type answer() :: trace | discard | remove.
-type tracee() :: pid() | port() | undefined.
-type opts() :: #{extra => term(), match_spec_result => term(),
                  scheduler_id => non_neg_integer(), timestamp => atom()}.

%% @doc Whether anybody is attached to a probe that events of this tag feed. `trace_status' is
%% always answered `trace': a tracer may attach later.
-spec enabled(Tag :: atom(), State :: term(), tracee()) -> answer().
enabled(_, _, _) -> discard.

%% @doc One event: fires the probes that it feeds and that somebody is attached to.
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

%% The module loads in any case: without the library the functions above answer.
on_load() ->
    Library = filename:absname(filename:join(priv_dir(), "dyntrace.so")),
    Provider = filename:join(filename:dirname(Library), "dyntrace_lttng.so"),
    LoadInfo = {reserved_words(), unicode:characters_to_binary(Provider)},
    persistent_term:put(?LIBRARY, case erlang:load_nif(filename:rootname(Library), LoadInfo) of
                                      ok -> {loaded, Library};
                                      {error, {_, Text}} -> {missing, unicode:characters_to_binary(Text)}
                                  end).

%% The application's folder or, where the code path has none with our library, the one beside
%% the module. Not that one first: while another version of the module is being
%% replaced, it is that version's.
priv_dir() ->
    case code:priv_dir(?MODULE) of
        Dir when is_list(Dir) ->
            case filelib:is_regular(filename:join(Dir, "dyntrace.so")) of
                true -> Dir;
                false -> beside(code:which(?MODULE), Dir)
            end;
        {error, bad_name} ->
            beside(code:which(?MODULE), "priv")
    end.

beside(Module, _) when is_list(Module) ->
    filename:join(filename:dirname(filename:dirname(Module)), "priv");
beside(_, Default) ->
    Default.

%% The words that Erlang writes in quotes when they are atoms; which of them are
%% reserved depends on the release.
reserved_words() ->
    [Word || Word <- ['after', 'and', 'andalso', 'band', 'begin', 'bnot', 'bor', 'bsl', 'bsr', 'bxor',
                      'case', 'catch', 'cond', 'div', 'else', 'end', 'fun', 'if', 'let', 'maybe',
                      'not', 'of', 'or', 'orelse', 'receive', 'rem', 'try', 'when', 'xor'],
             is_quoted(Word)].

is_quoted(Word) ->
    hd(lists:flatten(io_lib:write_atom(Word))) =:= $'.
