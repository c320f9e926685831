%% @private Labels that a function of the user's returns, for processes whose dictionaries have none: the option
%% `labels'.
%%
%% The function is foreign code: it may raise, take for ever, or return anything. So a process of its own calls it, with
%% a limit of time and of memory, and keeps no more of the result than its bounds allow. Another process watches that
%% one, and ends it when the time is over or when the caller has ended. It is never called twice at once.
-module(dyntrace_labels).

-export([new/1, ask/1, message/2, label/3, problem/1]).
%% The processes
-export([watch/2, call/1]).

-export_type([labels/0]).

-define(LIMIT_MS, 2000).
-define(MAX_WORDS, 10000000).

%% Further pairs, and further characters of a text, are left out.
-define(MAX_PAIRS, 100000).
-define(MAX_TEXT, 128).

%% How deep, and how long, a reason is shown.
-define(DEPTH, 20).
-define(MAX_WHY, 200).

-record(labels, {function :: none | {module(), atom()},
                 watcher = none :: none | pid(),
                 texts = #{} :: #{pid() => string() | binary()},
                 %% How often it was to be called, and could not be or has failed; and why it did last.
                 calls = 0 :: non_neg_integer(),
                 failed = 0 :: non_neg_integer(),
                 why = "" :: string()}).

-opaque labels() :: #labels{}.

-spec new(none | {module(), atom()}) -> labels().
new(Function) ->
    #labels{function = Function}.

%% Calls the function. `asked': a message will come. `ready': none will.
-spec ask(labels()) -> {asked | ready, labels()}.
ask(Labels = #labels{function = none}) ->
    {ready, Labels};
ask(Labels = #labels{function = Function, watcher = Watcher, calls = Calls}) ->
    Asked = Labels#labels{calls = Calls + 1},
    case is_pid(Watcher) andalso is_process_alive(Watcher) of
        true ->
            {ready, failed("it has not ended since", Asked)};
        false ->
            {asked, Asked#labels{watcher = spawn_opt(?MODULE, watch, [self(), Function], [link])}}
    end.

%% The answer, a failure included. Texts that were there before a failure stay.
-spec message(term(), labels()) -> {ready, labels()} | ignored.
message({?MODULE, Watcher, Answer}, Labels = #labels{watcher = Watcher}) ->
    {ready, case Answer of
                {texts, Texts, 0} -> Labels#labels{texts = Texts};
                {texts, Texts, Bad} -> failed(text("~b elements of its result are not {Pid, Text}", [Bad]),
                                              Labels#labels{texts = Texts});
                {failed, Why} -> failed(Why, Labels)
            end};
message(_, _) ->
    ignored.

failed(Why, Labels = #labels{failed = Failed}) ->
    Labels#labels{failed = Failed + 1, why = Why}.

%% The label of a process that has noted that one, or none, which is ''.
-spec label(pid(), Noted :: term(), labels()) -> term().
label(Pid, '', #labels{texts = Texts}) -> maps:get(Pid, Texts, '');
label(_, Noted, _) -> Noted.

%% What is wrong, with how often.
-spec problem(labels()) -> none | string().
problem(#labels{failed = 0}) ->
    none;
problem(#labels{function = {Module, Function}, calls = Calls, failed = Failed, why = Why}) ->
    text("~tw:~tw/0 has failed ~b of ~b times, last: ~ts", [Module, Function, Failed, Calls, Why]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

%% -- The process that watches --------------------------------------------------------------

%% Sensitive processes make no trace events.
-spec watch(pid(), {module(), atom()}) -> ok.
watch(Asker, Function) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(sensitive, true),
    MaxHeap = {max_heap_size, #{size => ?MAX_WORDS, kill => true, error_logger => false}},
    Called = spawn_opt(?MODULE, call, [Function], [link, MaxHeap]),
    receive
        {'EXIT', Asker, _} -> true = exit(Called, kill), ok;
        {'EXIT', Called, {?MODULE, Answer}} -> answer(Asker, Answer);
        {'EXIT', Called, killed} -> answer(Asker, {failed, text("it takes more than ~b words", [?MAX_WORDS])});
        {'EXIT', Called, Reason} -> answer(Asker, {failed, why(exit, Reason)})
    after ?LIMIT_MS ->
            true = exit(Called, kill),
            answer(Asker, {failed, text("it takes longer than ~b ms", [?LIMIT_MS])}),
            %% A native function ends when it likes.
            receive {'EXIT', _, _} -> ok end
    end.

answer(Asker, Answer) ->
    Asker ! {?MODULE, self(), Answer},
    ok.

why(Class, Reason) ->
    lists:sublist(text("~w: ~0tP", [Class, Reason, ?DEPTH]), ?MAX_WHY).

%% -- The process that calls ------------------------------------------------------------------

%% An error must not be logged at each dump.
-spec call({module(), atom()}) -> no_return().
call({Module, Function}) ->
    _ = process_flag(sensitive, true),
    exit({?MODULE, try texts(Module:Function(), ?MAX_PAIRS, #{}, 0)
                   catch Class:Reason -> {failed, why(Class, Reason)}
                   end}).

texts([Pair | Pairs], Left, Texts, Bad) when Left > 0 ->
    case shown(Pair) of
        {Pid, Text} -> texts(Pairs, Left - 1, Texts#{Pid => Text}, Bad);
        bad -> texts(Pairs, Left - 1, Texts, Bad + 1)
    end;
texts(Rest, Left, Texts, Bad) when Rest =:= []; Left =:= 0 ->
    {texts, Texts, Bad};
texts(_, _, Texts, Bad) ->
    {texts, Texts, Bad + 1}.

shown({Pid, Text}) when is_pid(Pid), node(Pid) =:= node() ->
    try {Pid, bounded(Text)}
    catch error:_ -> bad
    end;
shown(_) ->
    bad.

%% The beginning of a string, a binary, or a list of both, as io_lib:format/2 makes it.
bounded(Text) ->
    string(lists:reverse(chars([Text], ?MAX_TEXT, []))).

chars([], _, Chars) -> Chars;
chars(_, 0, Chars) -> Chars;
chars([[] | Rest], Left, Chars) -> chars(Rest, Left, Chars);
chars([Char | Rest], Left, Chars) when is_integer(Char) -> chars(Rest, Left - 1, [Char | Chars]);
chars([[First | Others] | Rest], Left, Chars) when is_list(Others); is_binary(Others) ->
    chars([First, Others | Rest], Left, Chars);
chars([Text | Rest], Left, Chars) when is_binary(Text) ->
    Begin = lists:sublist(decoded(binary:part(Text, 0, min(byte_size(Text), 4 * Left))), Left),
    chars(Rest, Left - length(Begin), lists:reverse(Begin, Chars)).

%% Of UTF-8 that is cut, or bytes.
decoded(Text) ->
    case unicode:characters_to_list(Text) of
        {incomplete, Begin, _} -> Begin;
        {error, _, _} -> binary_to_list(Text);
        Whole -> Whole
    end.

%% A list of other characters would be shown as numbers.
string(Text) ->
    case io_lib:printable_latin1_list(Text) of
        true -> Text;
        false -> iolist_to_binary(unicode:characters_to_binary(Text))
    end.
