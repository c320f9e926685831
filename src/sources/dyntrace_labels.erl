%% @private Labels that a user's function returns, for processes whose dictionaries have none: the option `labels'.
%%
%% The function is foreign code: it may raise, never return, or return any term. So a separate process calls it, with
%% limits of time and memory, and truncates the result. Another process monitors that one, and kills it after the time
%% limit or when the caller has ended. Calls are never concurrent.
-module(dyntrace_labels).

-export([new/1, ask/1, message/2, label/3, problem/1]).
%% The processes
-export([watch/2, call/1]).

-export_type([labels/0]).

-define(LIMIT_MS, 2000).
-define(MAX_WORDS, 10000000).

%% More pairs, and more characters of a text, are left out.
-define(MAX_PAIRS, 100000).
-define(MAX_TEXT, 128).

%% The depth and length to which a reason is printed.
-define(DEPTH, 20).
-define(MAX_WHY, 200).

-record(labels, {function :: none | {module(), atom()},
                 watcher = none :: none | pid(),
                 texts = #{} :: #{pid() => string() | binary()},
                 %% How many calls were due, how many failed or could not be made, and the last reason.
                 calls = 0 :: non_neg_integer(),
                 failed = 0 :: non_neg_integer(),
                 why = "" :: string()}).

-opaque labels() :: #labels{}.

%% The value of the option `labels'.
-spec new(none | {module(), atom()}) -> labels().
new(Function) ->
    #labels{function = Function}.

%% Calls the function. `asked': a message will follow. `ready': no message will follow.
-spec ask(labels()) -> {asked | ready, labels()}.
ask(Labels = #labels{function = none}) ->
    {ready, Labels};
ask(Labels = #labels{function = Function, watcher = Watcher, calls = Calls}) ->
    Asked = Labels#labels{calls = Calls + 1},
    case is_pid(Watcher) andalso is_process_alive(Watcher) of
        true ->
            {ready, failed("the previous call has not ended", Asked)};
        false ->
            {asked, Asked#labels{watcher = spawn_opt(?MODULE, watch, [self(), Function], [link])}}
    end.

%% The answer, which may be a failure. A failure does not remove the previous texts.
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

%% The label of a process: the one in its dictionary or, if that is '', the function's.
-spec label(pid(), Noted :: term(), labels()) -> term().
label(Pid, '', #labels{texts = Texts}) -> maps:get(Pid, Texts, '');
label(_, Noted, _) -> Noted.

%% How often the function has failed, and the last reason.
-spec problem(labels()) -> none | string().
problem(#labels{failed = 0}) ->
    none;
problem(#labels{function = {Module, Function}, calls = Calls, failed = Failed, why = Why}) ->
    text("~tw:~tw/0 has failed ~b of ~b times, last: ~ts", [Module, Function, Failed, Calls, Why]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

%% -- The watching process ------------------------------------------------------------------

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
            %% A NIF cannot be interrupted.
            receive {'EXIT', _, _} -> ok end
    end.

answer(Asker, Answer) ->
    Asker ! {?MODULE, self(), Answer},
    ok.

why(Class, Reason) ->
    lists:sublist(text("~w: ~0tP", [Class, Reason, ?DEPTH]), ?MAX_WHY).

%% -- The calling process ---------------------------------------------------------------------

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

%% The beginning of a string, a binary, or a list of both, as io_lib:format/2 returns it.
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

%% From UTF-8, which may be cut, or bytes.
decoded(Text) ->
    case unicode:characters_to_list(Text) of
        {incomplete, Begin, _} -> Begin;
        {error, _, _} -> binary_to_list(Text);
        Whole -> Whole
    end.

%% A list with other characters would be printed as numbers.
string(Text) ->
    case io_lib:printable_latin1_list(Text) of
        true -> Text;
        false -> iolist_to_binary(unicode:characters_to_binary(Text))
    end.
