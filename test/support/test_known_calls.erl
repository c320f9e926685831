%% A process in nested calls, from one kind of expression each. Lines with a call end in its number.
-module(test_known_calls).

-export([start/0]).
%% The outermost function.
-export([in_match/1]).

-record(held, {count, kind = call}).

start() ->
    spawn(?MODULE, in_match, [1]).

%% No call is a tail call, so each has a frame.
in_match(N) ->
    Sum = in_sum(N),    % 1
    {done, Sum}.

in_sum(N) ->
    1 + in_list(N).    % 2

in_list(N) ->
    lists:sum([in_tuple(N),    % 3
               N]).

in_tuple(N) ->
    {A, B} = {N,
              in_map(N)},    % 4
    A + B.

in_map(N) ->
    #{count := Count} = #{own => N,
                          count => in_record(N)},    % 5
    Count + N.

in_record(N) ->
    Held = #held{count = in_case(N)},    % 6
    Held#held.count + N.

in_case(N) ->
    case in_if(N) of    % 7
        0 -> 1;
        Count -> Count + N
    end.

in_if(N) ->
    if
        N > 0 ->
            in_try(N) + 1;    % 8
        true ->
            0
    end.

in_try(N) ->
    try in_handler(N) of    % 9
        Count -> Count + 1
    catch
        throw:Count -> Count
    end.

in_handler(N) ->
    try
        error(N)
    catch
        error:N ->
            in_after(N) + 1    % 10
    end.

in_after(N) ->
    try
        N + 1
    after
        in_receive(N)    % 11
    end.

in_receive(N) ->
    self() ! N,
    receive
        N ->
            in_fun_call(N) + N    % 12
    end.

called(Fun, N) ->
    1 + Fun(N).    % 13

in_fun_call(N) ->
    called(fun(Count) ->
                   in_comprehension(Count) + 1    % 14
           end, N).

in_comprehension(N) ->
    [Count] = [in_fold(Element) || Element <- [N]],    % 15
    Count + N.

in_fold(N) ->
    1 + lists:foldl(    % 16
          fun(Element, Sum) ->
                  in_binary(Element) + Sum    % 17
          end, 0, [N]).

in_binary(N) ->
    <<Count:32>> = <<(in_argument(N)):32>>,    % 18
    Count + 1.

in_argument(N) ->
    greater(N,
            in_last(N)).    % 19

greater(A, B) when A > B -> A;
greater(_, B) -> B.

in_last(N) ->
    ok = timer:sleep(infinity),    % 20
    N.
