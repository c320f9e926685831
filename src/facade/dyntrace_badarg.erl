%% @private Errors of the functions of `dyntrace': badarg that names the wrong argument, as in OTP.
-module(dyntrace_badarg).

-export([raise/4, format_error/2]).

%% Raises as that function of `dyntrace', which must make this call as a tail call: the stack then starts with its
%% caller.
-spec raise(Function :: atom(), Args :: [term()], Position :: pos_integer(), Why :: iolist()) -> no_return().
raise(Function, Args, Position, Why) ->
    Callers = try error(here)
              catch error:here:Stack -> tl(Stack)
              end,
    Info = #{module => ?MODULE, cause => #{Position => Why}},
    erlang:raise(error, badarg, [{dyntrace, Function, Args, [{error_info, Info}]} | Callers]).

%% Called by the shell to explain the error.
-spec format_error(term(), [tuple()]) -> #{pos_integer() => iolist()}.
format_error(badarg, [{_, _, _, Location} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Location, #{}), #{});
format_error(_, _) ->
    #{}.
