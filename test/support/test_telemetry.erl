%% Loads the stand-in for the library telemetry, which is part of the example for mix, and makes events with it.
-module(test_telemetry).

-export([load/0, unload/0, modules/0, is_traced/0, wrong/0, works/1]).

%% Loads it, also again: the new code has no trace patterns.
load() ->
    {module, telemetry} = code:load_binary(telemetry, "telemetry.beam", code()),
    _ = code:purge(telemetry),
    ok.

%% Beside the source of this module: the node may have a library that was built elsewhere.
code() ->
    Tests = filename:dirname(filename:dirname(proplists:get_value(source, module_info(compile)))),
    {ok, telemetry, Code} = compile:file(filename:join(Tests, "../examples/mix/telemetry/src/telemetry"),
                                         [binary, report]),
    Code.

%% The stand-in and this module, for a node that has neither on its path.
modules() ->
    {?MODULE, Code, _} = code:get_object_code(?MODULE),
    [{telemetry, code()}, {?MODULE, Code}].

%% Whether the function has a pattern; on OTP 27 and later, in the session of the application.
is_traced() ->
    Traced = {telemetry, execute, 3},
    case erlang:function_exported(trace, session_info, 1) of
        true -> lists:any(fun(Session) -> apply(trace, info, [Session, Traced, traced]) =/= {traced, false} end,
                          [Session || Session = {dyntrace_autotracer, _} <- apply(trace, session_info, [all])]);
        false -> erlang:trace_info(Traced, traced) =/= {traced, false}
    end.

unload() ->
    _ = code:delete(telemetry),
    _ = code:purge(telemetry),
    ok.

%% Arguments that execute/3 does not accept.
wrong() ->
    [{[], #{}, #{}}, {name, #{}, #{}}, {[name], 17, #{}}, {[name], [{duration, 1}], #{}}, {[name], #{}, no_map},
     {[name], #{duration => 1}, [a | b]}].

%% Makes spans, every third of which raises an exception. Returns what a handler sees, in order: {Name, ns, Metadata}.
works(Number) ->
    Self = self(),
    Names = [[shop, order, Suffix] || Suffix <- [stop, exception]],
    Handler = fun(Name, #{duration := Native}, Metadata, _) ->
                      Self ! {?MODULE, {Name, erlang:convert_time_unit(Native, native, nanosecond), Metadata}}
              end,
    ok = telemetry:attach_many(?MODULE, Names, Handler, none),
    _ = [work(N) || N <- lists:seq(1, Number)],
    ok = telemetry:detach(?MODULE),
    [receive {?MODULE, Event} -> Event end || _ <- lists:seq(1, Number)].

work(N) ->
    Route = <<"/orders/", (integer_to_binary(N rem 2))/binary>>,
    Fails = N rem 3 =:= 0,
    try telemetry:span([shop, order], #{route => Route},
                       fun() ->
                               case Fails of
                                   true -> error({no_stock, N});
                                   false -> {done, #{route => Route, status => 200}}
                               end
                       end) of
        done when not Fails -> ok
    catch
        error:{no_stock, N} when Fails -> ok
    end.
