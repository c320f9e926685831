%% Turns the events of the demo's system into a readable story and a summary. This module has the names of the
%% system's processes and functions; everything else comes from the events.
-module(demo_story).

-export([new/0, add/2, show/2, facts/1]).
-export_type([story/0, facts/0]).

-record(story, {names = #{} :: #{binary() => binary()},     % pid => the name that it has registered
                began = #{} :: #{term() => non_neg_integer()}, % an open interval => when it began
                took = #{} :: #{took() => [non_neg_integer()]}, % nanoseconds, the last one first
                exits = [] :: [binary()]}).                 % the gambler's reasons

-opaque story() :: #story{}.
-type took() :: answer | process | roll | restart | port | connection | collection.
-type facts() :: #{answers := [non_neg_integer()], processes := [non_neg_integer()], rolls := [non_neg_integer()],
                   restarts := [non_neg_integer()], collections := [non_neg_integer()],
                   ports := non_neg_integer(), connections := non_neg_integer(), crashes := [binary()]}.

-spec new() -> story().
new() ->
    #story{}.

%% The event's line, or none if the event is not part of the story.
-spec add(demo_events:event(), story()) -> {iodata() | none, story()}.
add({Ns, Probe, Fields}, Story) ->
    Known = names(Probe, Fields, Story),
    case event(Probe, Fields, Ns, Known) of
        none -> {none, Known};
        Next = #story{} -> {none, Next};
        {Line, Next} -> {Line, Next}
    end.

%% A pid with its registered name.
-spec show(binary(), story()) -> iodata().
show(Pid, #story{names = Names}) ->
    case Names of
        #{Pid := Name} -> [Name, " ", Pid];
        #{} -> Pid
    end.

%% -- The events -----------------------------------------------------------------------------------

names(process_register, #{pid := Pid, name := Name, type := <<"register">>}, Story = #story{names = Names}) ->
    Story#story{names = Names#{Pid => Name}};
names(_, _, Story) ->
    Story.

event(process_register, #{pid := Pid, name := Name, type := <<"register">>}, Ns, Story) ->
    {Time, Next} = ends({restart, Name}, restart, Ns, Story),
    {[show(Pid, Story), case Time of
                            none -> " starts";
                            _ -> [" starts again, after ", microseconds(Time)]
                        end], Next};
event(process_spawn, #{pid := Pid, parent := Parent, entry := Entry}, Ns, Story) ->
    case name(Parent, Story) of
        <<"demo_customer">> ->
            {[show(Parent, Story), " spawns ", Pid, " in ", Entry], begins({process, Pid}, Ns, Story)};
        _ -> none
    end;
event(process_exit, #{pid := Pid, reason := Reason}, Ns, Story) ->
    {Time, Next} = ends({process, Pid}, process, Ns, Story),
    case {name(Pid, Story), Reason} of
        {none, _} when Time =:= none -> none;
        {none, _} -> {[Pid, " exits after ", microseconds(Time), ": ", Reason], Next};
        {<<"demo_gambler">> = Name, _} when Reason =/= <<"shutdown">> ->
            Crashed = begins({restart, Name}, Ns, Next),
            {[show(Pid, Story), " crashes: ", Reason], Crashed#story{exits = [Reason | Crashed#story.exits]}};
        _ -> {[show(Pid, Story), " exits: ", Reason], Next}
    end;
event(function_call, #{pid := Pid, entry := Function}, Ns, Story) ->
    begins({call, Pid, Function}, Ns, Story);
event(Ends, #{pid := Pid, entry := Function} = Fields, Ns, Story)
  when Ends =:= function_return; Ends =:= function_exception ->
    What = case Function of
               <<"demo_system:roll/1">> -> roll;
               _ -> order
           end,
    {Time, Next} = ends({call, Pid, Function}, What, Ns, Story),
    How = case Fields of
              #{class := Class} -> [" ends by ", Class];
              #{} -> " returns"
          end,
    {[show(Pid, Story), ": ", Function, How, [[", after ", microseconds(Time)] || Time =/= none]], Next};
event(port_open, #{pid := Pid, driver := Driver, port := Port}, _, Story) ->
    Line = [show(Pid, Story), " opens ", Port, ", ", Driver],
    case {name(Pid, Story), Driver} of
        {<<"demo_typist">>, _} -> {Line, adds(port, 0, Story)};
        {<<"demo_caller">>, <<"tcp_inet">>} -> {Line, adds(connection, 0, Story)};
        _ -> none
    end;
event(message_send, #{from := From, to := To, message := Message}, Ns, Story) ->
    {Time, Next} = case re:run(Message, "^{'\\$gen_call',{[^,]+,\\[alias\\|(#Ref<[0-9.]+>)",
                               [{capture, all_but_first, binary}]) of
                       {match, [Alias]} -> {none, called(Alias, From, Ns, Story)};
                       nomatch -> ends({answer, To}, whose(name(From, Story)), Ns, Story)
                   end,
    case {name(From, Story), name(To, Story)} of
        {Sender, Receiver} when Sender =:= none; Receiver =:= none ->
            Next;
        {Sender, Receiver} ->
            After = [[", after ", microseconds(Time)] || Time =/= none],
            {[Sender, " -> ", Receiver, ": ", short(Message), After], Next}
    end;
event(Starts, #{pid := Pid}, Ns, Story) when Starts =:= gc_minor_start; Starts =:= gc_major_start ->
    begins({collection, Pid}, Ns, Story);
event(Ends, #{pid := Pid}, Ns, Story) when Ends =:= gc_minor_end; Ends =:= gc_major_end ->
    {_, Next} = ends({collection, Pid}, collection, Ns, Story),
    Next;
event(_, _, _, Story) ->
    Story.

%% Servers of the runtime are also called.
whose(<<"demo_clerk">>) -> answer;
whose(_) -> other_answer.

%% A call to a gen_server contains an alias of the caller; the reply is sent to the alias.
called(Alias, From, Ns, Story = #story{names = Names}) ->
    begins({answer, Alias}, Ns, case Names of
                                    #{From := Name} -> Story#story{names = Names#{Alias => Name}};
                                    #{} -> Story
                                end).

%% The registered name of a pid or of an alias's owner; if the sender used a name, that name.
name(<<First, _/binary>> = Id, #story{names = Names}) when First =:= $<; First =:= $# -> maps:get(Id, Names, none);
name(Name, _) -> Name.

%% Hides references, which readers do not need.
short(Message) ->
    re:replace(Message, "#Ref<[0-9.]+>", "#Ref<..>", [global]).

begins(What, Ns, Story = #story{began = Began}) ->
    Story#story{began = Began#{What => Ns}}.

ends(What, Kind, Ns, Story = #story{began = Began}) ->
    case maps:take(What, Began) of
        {Start, Rest} -> {Ns - Start, adds(Kind, Ns - Start, Story#story{began = Rest})};
        error -> {none, Story}
    end.

adds(Kind, Time, Story = #story{took = Took}) ->
    Story#story{took = Took#{Kind => [Time | maps:get(Kind, Took, [])]}}.

microseconds(Ns) ->
    [integer_to_list(Ns div 1000), " us"].

%% -- The summary --------------------------------------------------------------------------------------

-spec facts(story()) -> facts().
facts(#story{took = Took, exits = Exits}) ->
    All = fun(Kind) -> lists:reverse(maps:get(Kind, Took, [])) end,
    #{answers => All(answer), processes => All(process), rolls => All(roll), restarts => All(restart),
      collections => All(collection), ports => length(All(port)), connections => length(All(connection)),
      crashes => lists:reverse(Exits)}.
