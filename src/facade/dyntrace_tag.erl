%% @doc The tag of a process, which its annotations carry.
%%
%% OTP stores tags in the VM, but a stock VM is built without them. Here a process's own tag is in its dictionary. While
%% the tag is spread, it is also the label of a sequential trace token whose flags are all off. The VM then sends the
%% token along with every message, and the receiver has it until it receives a message without a token. The token does
%% not cause any tracing.
%%
%% A process has one token. A token that the program has set is not replaced; messages then do not carry the tag.
-module(dyntrace_tag).

-export([put/1, get/0, get_data/0, spread/1, restore/1, is_data/1]).
-compile({no_auto_import, [get/0]}).

-export_type([tag/0, data/0]).

-type tag() :: binary() | undefined.

-type data() :: true | {Flags :: non_neg_integer(), binary() | []}.
%% The argument of {@link restore/1}: `true' if the process had no tag.

%% Keys of the process dictionary: the process's own tag, and whether it is spread.
-define(TAG, '$dyntrace_tag').
-define(SPREADING, '$dyntrace_spreading').

%% Flags of data(): the tag is the process's own; it is spread.
-define(OWN, 1).
-define(SPREAD, 2).

%% Returns the previous tag. If the process spreads its tag, messages carry the new one from now on.
%% With `undefined' they no longer carry its own tag, but still carry a tag that the process has received.
-spec put(tag()) -> tag().
put(Tag) ->
    Old = set_own(Tag),
    case get(?SPREADING) of
        true when Tag =:= undefined, Old =:= undefined -> ok;
        true -> send_along(Tag);
        undefined -> ok
    end,
    Old.

%% The process's own tag.
-spec get() -> tag().
get() ->
    get(?TAG).

%% The tag of get/0 or, without one, the tag received with the last message.
-spec get_data() -> tag().
get_data() ->
    case {get(?TAG), token()} of
        {undefined, {ours, Received}} -> Received;
        {Own, _} -> Own
    end.

%% Switches spreading on or off. Returns the previous state, for restore/1.
-spec spread(boolean()) -> data().
spread(Spread) ->
    Before = data(),
    set_spreading(Spread),
    Before.

%% Restores the state that spread/1 returned, in this process or in another one.
-spec restore(data()) -> true.
restore(true) ->
    restore({0, []});
restore({Flags, Data}) ->
    Tag = case Data of
              [] -> undefined;
              _ -> Data
          end,
    _ = set_own(case Flags band ?OWN of
                    0 -> undefined;
                    _ -> Tag
                end),
    case Flags band ?SPREAD of
        0 -> set_spreading(false);
        _ -> set_spreading(true, Tag)
    end,
    true.

%% Whether it is a valid argument of restore/1.
-spec is_data(term()) -> boolean().
is_data(true) -> true;
is_data({Flags, []}) -> is_integer(Flags);
is_data({Flags, Tag}) -> is_integer(Flags) andalso is_binary(Tag);
is_data(_) -> false.

%%% -- State ---------------------------------------------------------------------------

data() ->
    Own = case get(?TAG) of
              undefined -> 0;
              _ -> ?OWN
          end,
    Spread = case {get(?SPREADING), token()} of
                 {undefined, {ours, _}} -> ?SPREAD;
                 {undefined, _} -> 0;
                 {true, _} -> ?SPREAD
             end,
    case {Own bor Spread, get_data()} of
        {0, _} -> true;
        {Flags, undefined} -> {Flags, []};
        {Flags, Tag} -> {Flags, Tag}
    end.

set_own(undefined) ->
    erase(?TAG);
set_own(Tag) ->
    put(?TAG, Tag).

set_spreading(true) ->
    set_spreading(true, get_data());
set_spreading(false) ->
    _ = erase(?SPREADING),
    send_along(undefined).

set_spreading(true, Tag) ->
    _ = put(?SPREADING, true),
    send_along(Tag).

%%% -- The token -----------------------------------------------------------------------

%% No token, ours with the tag in it, or one that the program has set.
token() ->
    case process_info(self(), sequential_trace_token) of
        {_, []} -> none;
        {_, {_Flags, {?TAG, Tag}, _Serial, _From, _Previous}} -> {ours, Tag};
        {_, _} -> theirs
    end.

send_along(Tag) ->
    case {token(), Tag} of
        {theirs, _} -> ok;
        {none, undefined} -> ok;
        {_, undefined} -> _ = seq_trace:set_token([]), ok;
        {_, _} -> _ = seq_trace:set_token(label, {?TAG, Tag}), ok
    end.
