%% @private The layout: where the current process of a thread is in the VM's memory, and how the VM represents a pid. A
%% sampling program on the host reads it there, at no cost for the node. It depends on the release and the build, so it
%% is determined at run time, and used only if all cross-checks agree: see layout.h.
-module(dyntrace_layout).

-export([learn/1, text/1]).

%% For spawn_opt/4.
-export([learned/1, asked/2]).

-export_type([layout/0]).

%% `slot', `current', `frame' are in bytes; `frame' is 0 if stacks have no frames. For a pid `<0.Number.Serial>', the
%% bit positions in the VM's word, starting with the lowest bit of the number or serial.
-type layout() :: #{slot := pos_integer(), current := non_neg_integer(), frame := non_neg_integer(),
                    number := [0..63], serial := [0..63]}
                | unknown.

%% The nested calls of an asking process, which must appear in its stack frames.
-define(DEPTHS, [3, 4, 5, 6]).

%% Sends `{dyntrace_layout, layout()}' to the worker, once. Asynchronous, because dirty schedulers may be busy for a
%% long time.
-spec learn(pid()) -> pid().
learn(Worker) ->
    spawn_opt(?MODULE, learned, [Worker], [link]).

%% The line in the status.
-spec text(layout()) -> iolist().
text(#{slot := Slot, current := Current, frame := Frame, number := Number, serial := Serial}) ->
    io_lib:format("~b ~b ~b ~s ~s", [Slot, Current, Frame | [lists:join($,, [integer_to_list(Bit) || Bit <- Bits])
                                                             || Bits <- [Number, Serial]]]).

%% The process that learn/1 starts.
-spec learned(pid()) -> ok.
learned(Worker) ->
    true = is_boolean(process_flag(sensitive, true)),
    %% They live at the same time, so each has a different address.
    Asked = [spawn_opt(?MODULE, asked, [self(), Depth], [link]) || Depth <- ?DEPTHS],
    Answers = [receive {Pid, Answer} -> Answer end || Pid <- Asked],
    _ = [Pid ! stop || Pid <- Asked],
    Worker ! {?MODULE, layout(lists:append(Answers), bits(fun number/1), bits(fun serial/1), [self() | Asked])},
    ok.

%% A process that reports its possible locations from this depth of nested calls.
-spec asked(pid(), pos_integer()) -> stop.
asked(To, Depth) ->
    true = is_boolean(process_flag(sensitive, true)),
    {Found, Depth} = called(Depth),
    To ! {self(), [frames(Found, Depth), dirty(dyntrace:layout_candidates_dirty())]},
    receive stop -> stop end.

%% Not a tail call: each call has a stack frame.
called(0) ->
    {dyntrace:layout_candidates(), 0};
called(Depth) ->
    {Found, Calls} = called(Depth - 1),
    {Found, Calls + 1}.

%% The innermost frame returns to the last call, the next ones to the calls above it.
frames({Candidates, {Frame, [_ | Returns]}}, Depth) ->
    {Own, Outer} = lists:split(min(Depth, length(Returns)), Returns),
    case lists:usort(Own) of
        [Above] when length(Own) =:= Depth, Outer =/= [], hd(Outer) =/= Above -> {Candidates, Frame};
        _ -> {Candidates, 0}
    end;
frames({Candidates, _}, _) ->
    {Candidates, 0};
frames(undefined, _) ->
    {[], 0}.

dirty({Candidates, _}) -> {Candidates, any};
dirty(undefined) -> {[], any}.

%% The one location on which all answers agree.
layout(Answers, Number, Serial, Pids) ->
    [First | Others] = [ordsets:from_list(Candidates) || {Candidates, _} <- Answers],
    Same = lists:all(fun(Pid) -> shown(dyntrace:layout_word(Pid), Number, Serial) =:= pid_to_list(Pid) end, Pids),
    case lists:foldl(fun ordsets:intersection/2, First, Others) of
        [{Slot, Current}] when Same ->
            #{slot => Slot, current => Current, frame => frame(lists:usort([Frame || {_, Frame} <- Answers]) -- [any]),
              number => Number, serial => Serial};
        _ ->
            unknown
    end.

frame([Frame]) -> Frame;
frame(_) -> 0.

number(Value) -> {Value, 0}.
serial(Value) -> {0, Value}.

%% The lowest bit of the word that a bit of the value changes; higher bits may be the index by which the VM looks the
%% process up. A value that is too large for the release is not a pid.
bits(Pid) ->
    bits(Pid, 1, word({0, 0})).

bits(Pid, Value, None) when Value < 1 bsl 32 ->
    try word(Pid(Value)) bxor None of
        Changed when Changed > 0 -> [lowest(Changed, 0) | bits(Pid, Value bsl 1, None)];
        _ -> []
    catch
        error:badarg -> []
    end;
bits(_, _, _) ->
    [].

word({Number, Serial}) ->
    dyntrace:layout_word(list_to_pid(lists:flatten(io_lib:format("<0.~b.~b>", [Number, Serial])))).

lowest(Word, Bit) when Word band 1 =:= 1 -> Bit;
lowest(Word, Bit) -> lowest(Word bsr 1, Bit + 1).

shown(Word, Number, Serial) ->
    lists:flatten(io_lib:format("<0.~b.~b>", [value(Word, Number), value(Word, Serial)])).

value(Word, Bits) ->
    lists:sum([((Word bsr Bit) band 1) bsl N || {N, Bit} <- lists:zip(lists:seq(0, length(Bits) - 1), Bits)]).
