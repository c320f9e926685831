%% @private The crash of a process, as a logger event describes it: a report of proc_lib, of Elixir's Logger, which
%% replaces those of OTP and of the VM, or of the VM.
-module(dyntrace_crash).

-export([read/1, frames/1]).

-export_type([crash/0]).

-type crash() :: {Initial :: mfa() | <<>>, Name :: atom() | <<>>, Reason :: term()}.
%% The reason is '' if the event does not say how the process exits, or whether it does.

%% Of a list in an event, more elements are not read: frames, arguments, characters of a file name.
-define(MOST, 255).

%% An event may have any shape.
-spec read(logger:log_event()) -> none | crash().
read(Event) ->
    try crash(Event)
    catch _:_ -> {<<>>, <<>>, ''}
    end.

crash(#{msg := {report, #{label := {proc_lib, crash}, report := [Info | _]}}}) ->
    {initial_call, Initial} = lists:keyfind(initial_call, 1, Info),
    {registered_name, Name} = lists:keyfind(registered_name, 1, Info),
    {error_info, {Class, Reason, Stack}} = lists:keyfind(error_info, 1, Info),
    {function(Initial), name(Name), exit_reason(Class, Reason, Stack)};
%% A program may log a crash_reason for a process that goes on: web servers do so after a failed request.
crash(#{meta := Meta = #{crash_reason := Reason}}) ->
    Exit = case Meta of
               #{domain := [otp | _]} -> Reason;
               _ -> ''
           end,
    {<<>>, name(maps:get(registered_name, Meta, [])), Exit};
crash(#{msg := {"Error in process " ++ _, Args}, meta := #{error_logger := #{emulator := true}}}) ->
    {<<>>, <<>>, lists:last(Args)};
crash(_) ->
    none.

exit_reason(error, Reason, Stack) -> {Reason, Stack};
exit_reason(throw, Value, Stack) -> {{nocatch, Value}, Stack};
exit_reason(exit, Reason, _) -> Reason.

%% Unknown arguments are listed as atoms.
function({Module, Function, Arguments}) -> {Module, Function, arity(Arguments)};
function(Fun) when is_function(Fun) ->
    [{module, Module}, {name, Name}, {arity, Arity}] = [erlang:fun_info(Fun, Key) || Key <- [module, name, arity]],
    {Module, Name, Arity};
function(_) -> <<>>.

name(Name) when is_atom(Name) -> Name;
name(_) -> <<>>.

%% The frames of an exit reason with a stack trace, without the arguments of the failed call; none without one.
-spec frames(Reason :: term()) -> [{module(), atom(), arity(), [{file, string()} | {line, pos_integer()}]}].
frames({_, Stack = [_ | _]}) ->
    try [frame(Frame) || Frame <- first(Stack)]
    catch _:_ -> []
    end;
frames(_) ->
    [].

frame({Module, Function, Arguments, Where}) when is_atom(Module), is_atom(Function) ->
    {Module, Function, arity(Arguments), [Place || Place <- first(Where), is_place(Place)]}.

arity(Arguments) when is_list(Arguments) -> length(first(Arguments));
arity(Arity) when is_integer(Arity) -> Arity.

is_place({file, File}) -> io_lib:printable_unicode_list(first(File));
is_place({line, Line}) -> is_integer(Line);
is_place(_) -> false.

first(List) -> lists:sublist(List, ?MOST).
