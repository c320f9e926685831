%% @private The source of `log' and `crash_report': logger events, from a logger handler with the id `dyntrace'.
%%
%% Installing and removing a handler are calls to logger, which may block. So a separate process does that: the keeper,
%% linked to the autotracer. It removes the handler before it ends, also if the autotracer was killed. A handler whose
%% keeper was killed reports nothing; the next keeper removes it, or the application when it stops. A process that
%% removes a handler leaves the application's group, because the master of a stopped application kills all processes
%% whose group leader it is.
%%
%% The handler's log/2 runs in the process that logs. Its work is bounded by the limit of events per second and by the
%% limit of each text, and it never raises.
-module(dyntrace_log).
-behaviour(dyntrace_source).

%% The callbacks of dyntrace_source
-export([on/2, poll/2, message/2, off/1]).
%% The callback of a logger handler
-export([log/2]).
%% The keeper
-export([keep/1]).
-export([remove_leftover/0]).

%% The id of the handler.
-define(ID, dyntrace).

%% The maximum length of a text: DT_STRING_MAX and a few more characters, so that the library notices that it must cut.
-define(CHARS, 1100).

%% The depth to which terms in a text are printed.
-define(DEPTH, 30).

%% The maximum number of characters of a format, and of keys of a report, for the formatter.
-define(MAX_LENGTH, 2000).

%% The maximum number of list cells of a string that are read.
-define(STEPS, 8192).

%% The maximum number of terms of a report whose shape is shown.
-define(TERMS, 500).

-define(MAX_ARITY, 255).

%% Converting a large integer to digits takes quadratic time, regardless of the limit of the text.
-define(MAX_INTEGER, (1 bsl 8192)).

-define(IS_CHARACTER(C), is_integer(C) andalso C >= 0 andalso
                         (C < 16#D800 orelse C > 16#DFFF andalso C =< 16#10FFFF)).

-define(SECOND, 1000).

%% Set in the process dictionary while an event is converted to text: a function of the event may log, too.
-define(IS_INSIDE, '$dyntrace_log').

-type handler() :: #{keeper := pid(), worker := pid(), limit := pos_integer(), count := atomics:atomics_ref(),
                     text := full | shape}.
%% The configuration for log/2. `count': events in this second, including those above the limit.

%% -- The callbacks ---------------------------------------------------------------------

on(_, #{log := off}) ->
    {unconfigured, "the option log is off"};
on(Enabled, Config = #{log := {Level, Text}}) ->
    on(Enabled, Config#{log := Level, text := Text});
on(_, #{log := Level, log_limit := Limit, text := Text}) ->
    case installed() of
        unknown -> {withheld, "logger has another handler with the id dyntrace"};
        _ -> start({Level, #{worker => self(), limit => Limit, text => Text}})
    end.

start(Of) ->
    {on, {spawn_link(?MODULE, keep, [Of]), Of}}.

poll(_, State) ->
    {on, State}.

%% The keeper ends only if it is killed.
message({'EXIT', Keeper, _}, {Keeper, Of}) ->
    {on, State} = start(Of),
    State;
message(_, State) ->
    State.

%% The handler is removed asynchronously.
off({Keeper, _}) ->
    true = unlink(Keeper),
    Keeper ! {?MODULE, stop},
    ok.

%% -- The keeper --------------------------------------------------------------------------

%% A sensitive process makes no trace events.
-spec keep({logger:level(), #{worker := pid(), limit := pos_integer(), text := full | shape}}) -> no_return().
keep({Level, Of = #{worker := Worker}}) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(sensitive, true),
    ok = leave_group(),
    Handler = Of#{keeper => self(), count => atomics:new(1, [])},
    ok = install(Level, Handler),
    keep(Worker, Level, Handler).

%% Once per second: resets the count, and installs the handler if another process has removed it.
keep(Worker, Level, Handler) ->
    Timer = erlang:start_timer(?SECOND, self(), second),
    case wait(Worker, Timer) of
        second ->
            ok = next_second(Handler),
            ok = install(Level, Handler),
            keep(Worker, Level, Handler);
        stop ->
            ok = remove(self())
    end.

wait(Worker, Timer) ->
    receive
        {timeout, Timer, second} -> second;
        {?MODULE, stop} -> stop;
        {'EXIT', Worker, _} -> stop;
        _ -> wait(Worker, Timer)
    end.

next_second(#{count := Count, limit := Limit}) ->
    case atomics:exchange(Count, 1, 0) - Limit of
        More when More > 0 ->
            Text = io_lib:format("dyntrace: ~b events not shown", [More]),
            ok = dyntrace:report(log, {self(), warning, Text});
        _ ->
            ok
    end.

%% A failure is retried in a second. The keeper of another worker, or the previous one of this worker, is about to end.
install(Level, Handler = #{keeper := Keeper}) ->
    case installed() of
        Keeper -> ok;
        none -> add(Level, Handler);
        unknown -> ok;
        Other -> await(Other), remove(Other), install_after(Other, Level, Handler)
    end.

install_after(Other, Level, Handler) ->
    case installed() of
        Other -> ok;
        _ -> install(Level, Handler)
    end.

await(Other) ->
    Ref = monitor(process, Other),
    receive {'DOWN', Ref, process, Other, _} -> ok
    after ?SECOND -> true = demonitor(Ref, [flush]), ok
    end.

add(Level, Handler) ->
    tried(fun() -> logger:add_handler(?ID, ?MODULE, #{level => Level, filter_default => log, filters => [],
                                                      config => Handler})
          end).

%% Processes that it spawns afterwards are outside the group, too.
leave_group() ->
    true = group_leader(whereis(init), self()),
    ok.

%% Removes the handler of this keeper.
remove(Keeper) ->
    case installed() of
        Keeper -> tried(fun() -> logger:remove_handler(?ID) end);
        _ -> ok
    end.

%% Calls logger and ignores a failure: another process may have been faster, or logger is busy or terminating.
tried(Call) ->
    _ = try Call()
        catch _:Reason -> {error, Reason}
        end,
    ok.

%% The keeper of the installed handler. `unknown': the id belongs to another application, whose handler is left alone.
installed() ->
    case logger:get_handler_config(?ID) of
        {ok, #{module := ?MODULE, config := #{keeper := Keeper}}} -> Keeper;
        {ok, _} -> unknown;
        {error, _} -> none
    end.

%% @doc Removes the handler of a keeper that was killed, asynchronously.
%% The caller leaves the application's group.
-spec remove_leftover() -> ok.
remove_leftover() ->
    case installed() of
        Keeper when is_pid(Keeper) ->
            ok = leave_group(),
            remove_unless(is_process_alive(Keeper), Keeper);
        _ ->
            ok
    end.

remove_unless(true, _) ->
    ok;
remove_unless(false, Keeper) ->
    _ = spawn(fun() -> remove(Keeper) end),
    ok.

%% -- The handler -------------------------------------------------------------------------

%% Runs in the process that logs. Logger removes a handler that raises, and logs an error.
-spec log(logger:log_event(), logger:handler_config()) -> ok.
log(Event, #{config := Handler}) ->
    try wants(Handler) andalso report(Event, Handler)
    catch _:_ -> ok
    end,
    ok;
log(_, _) ->
    ok.

%% The cheapest checks come first.
-spec wants(handler()) -> boolean().
wants(#{keeper := Keeper, worker := Worker, limit := Limit, count := Count}) ->
    self() =/= Keeper andalso self() =/= Worker
        andalso get(?IS_INSIDE) =:= undefined
        andalso atomics:add_get(Count, 1, 1) =< Limit
        andalso is_process_alive(Keeper)
        andalso [] =/= [Name || #{name := Name} <- dyntrace:listeners(), Name =:= log orelse Name =:= crash_report].

report(Event = #{level := Level}, #{text := Show}) ->
    _ = put(?IS_INSIDE, true),
    try
        Pid = pid(Event),
        Text = text(Event, Show),
        %% First, because a flight recorder names its snapshot after the first cause.
        ok = report_crash(dyntrace_crash:read(Event), Show, Pid, Text),
        dyntrace:report(log, {Pid, Level, Text})
    after
        erase(?IS_INSIDE)
    end.

report_crash(none, _, _, _) ->
    ok;
report_crash({Initial, Name, Reason}, shape, Pid, Text) ->
    Hidden = case dyntrace_crash:frames(Reason) of
                 [] -> hidden(Reason);
                 Frames -> {hidden(element(1, Reason)), Frames}
             end,
    report_crash({Initial, Name, Hidden}, full, Pid, Text);
report_crash({Initial, Name, Reason}, full, Pid, Text) ->
    dyntrace:report(crash_report, {Pid, Initial, Name, Reason, Text}).

%% A program can set the metadata `pid' to any term. In an event from another node it is a pid of that node.
pid(#{meta := #{pid := Pid}}) when is_pid(Pid) -> Pid;
pid(_) -> self().

%% -- Texts -------------------------------------------------------------------------------

%% The text of an event from logger's formatter, on one line. Its length is bounded; the library cuts it.
-spec text(logger:log_event(), full | shape) -> unicode:unicode_binary().
text(Event = #{msg := Message}, shape) ->
    text(Event#{msg := shape(Message)}, full);
text(Event, full) ->
    unicode:characters_to_binary(characters(full_text(Event))).

full_text(Event = #{msg := Message}) ->
    case has_large_integer(Message) of
        true -> full_text(Event#{msg := shape(Message)});
        false -> tried_text(Event)
    end.

tried_text(Event = #{msg := Message}) ->
    try formatted(Event)
    catch _:_ -> io_lib:format("~0tP", [Message, ?DEPTH], [{chars_limit, ?CHARS}])
    end.

formatted(Event = #{msg := Message, meta := Meta}) ->
    Short = Event#{msg := short(Message, Meta), meta := maps:with([report_cb], Meta)},
    logger_formatter:format(Short, #{template => [msg], single_line => true, depth => ?DEPTH, chars_limit => ?CHARS}).

%% Only the format and the outline of a report: arguments and strings are contents.
shape({Format, [_ | _]}) when is_list(Format); is_binary(Format) -> {string, Format};
shape({report, Report}) -> {report, hidden(Report)};
shape(_) -> {string, "..."}.

hidden(Term) -> element(1, outline(Term, ?TERMS)).

%% The term without contents: with `_' for all data except atoms, identifiers, funs and the frames of stack traces.
%% Also returns how many more terms may be shown.
outline(_, 0) ->
    {'_', 0};
outline({Module, Function, Arity, Location}, More)
  when is_atom(Module), is_atom(Function), Location =:= [] orelse element(1, hd(Location)) =:= file
       orelse element(1, hd(Location)) =:= error_info ->
    {{Module, Function, arity(Arity, 0), []}, More - 1};
outline(Tuple, More) when is_tuple(Tuple), tuple_size(Tuple) =< More ->
    {Outlines, Rest} = lists:mapfoldl(fun outline/2, More - 1, tuple_to_list(Tuple)),
    {list_to_tuple(Outlines), Rest};
outline([Head | Tail], More) when not is_integer(Head) ->
    {First, Rest} = outline(Head, More - 1),
    {Others, Left} = outline(Tail, Rest),
    {[First | tail(Others)], Left};
outline(Map, More) when is_map(Map), map_size(Map) =< More ->
    {Pairs, Rest} = lists:mapfoldl(fun outline/2, More - 1, maps:to_list(Map)),
    {maps:from_list(Pairs), Rest};
outline(Term, More) when is_atom(Term); is_pid(Term); is_reference(Term); is_port(Term); is_function(Term);
                         Term =:= [] ->
    {Term, More - 1};
outline(_, More) ->
    {'_', More - 1}.

%% Lists stay proper: functions that format reports require it.
tail(List) when is_list(List) -> List;
tail(_) -> ['_'].

%% A failed call has its arguments instead of the arity.
arity(Arity, 0) when is_integer(Arity), Arity >= 0, Arity =< ?MAX_ARITY -> Arity;
arity([_ | Args], Before) when Before < ?MAX_ARITY -> arity(Args, Before + 1);
arity(_, Before) -> Before.

%% The formatter truncates the arguments of a format, but not a string, a format or the keys of a report.
short({string, String}, _) ->
    {string, characters(String)};
short({report, Report}, Meta) when not is_map_key(report_cb, Meta) ->
    case is_large(Report) of
        true -> {"~0tp", [Report]};
        false -> {report, Report}
    end;
short(Message = {report, _}, _) ->
    Message;
short({Format, Args}, _) ->
    case is_large(Format) of
        true -> {string, characters(Format)};
        false -> {Format, Args}
    end.

%% Checks only the first terms of each part, because others do not fit into the text.
has_large_integer(Term) ->
    has_large_integer(queue:from_list([{term, Term}]), ?MAX_LENGTH).

has_large_integer(_, 0) ->
    false;
has_large_integer(Queue, More) ->
    case queue:out(Queue) of
        {{value, {term, Term}}, _} when is_integer(Term), abs(Term) > ?MAX_INTEGER -> true;
        {{value, First}, Rest} -> has_large_integer(lists:foldl(fun queue:in/2, Rest, parts(First)), More - 1);
        {empty, _} -> false
    end.

%% The next subterms of a term, and the rest.
parts({term, [Head | Tail]}) -> [{term, Head}, {term, Tail}];
parts({term, Tuple}) when is_tuple(Tuple) -> parts({elements, Tuple, 1});
parts({term, Map}) when is_map(Map) -> parts({pairs, maps:iterator(Map)});
parts({elements, Tuple, N}) when N =< tuple_size(Tuple) -> [{term, element(N, Tuple)}, {elements, Tuple, N + 1}];
parts({pairs, Iterator}) ->
    case maps:next(Iterator) of
        {Key, Value, Next} -> [{term, Key}, {term, Value}, {pairs, Next}];
        none -> []
    end;
parts(_) -> [].

is_large(Map) when is_map(Map) -> map_size(Map) > ?MAX_LENGTH;
is_large(Binary) when is_binary(Binary) -> byte_size(Binary) > ?MAX_LENGTH;
is_large(List) -> is_longer(List, ?MAX_LENGTH).

is_longer(_, -1) -> true;
is_longer([_ | Tail], Most) -> is_longer(Tail, Most - 1);
is_longer(_, _) -> false.

%% The first characters of chardata, in a bounded number of steps. Bytes that are not UTF-8 are read as Latin-1; any
%% other element that is not a character becomes U+FFFD.
characters(Chardata) ->
    characters([Chardata], ?STEPS, ?CHARS).

characters([], _, _) -> [];
characters(_, 0, _) -> [];
characters(_, _, 0) -> [];
characters([[] | Rest], Steps, Chars) -> characters(Rest, Steps - 1, Chars);
characters([<<>> | Rest], Steps, Chars) -> characters(Rest, Steps - 1, Chars);
characters([[First | Tail] | Rest], Steps, Chars) -> characters([First, Tail | Rest], Steps - 1, Chars);
characters([<<C/utf8, Tail/binary>> | Rest], Steps, Chars) -> [C | characters([Tail | Rest], Steps, Chars - 1)];
characters([<<Byte, Tail/bits>> | Rest], Steps, Chars) -> [Byte | characters([Tail | Rest], Steps, Chars - 1)];
characters([C | Rest], Steps, Chars) when ?IS_CHARACTER(C) -> [C | characters(Rest, Steps, Chars - 1)];
characters([_ | Rest], Steps, Chars) -> [16#FFFD | characters(Rest, Steps, Chars - 1)].
