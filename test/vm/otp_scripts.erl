%% The probes of the provider `erlang` that the example scripts of OTP's runtime_tools name, with the number of
%% arguments that each script reads.
-module(otp_scripts).

-export([missing/2]).

-type tool() :: dtrace | systemtap.

%% For each script, the probes that the tool's listing, with their numbers of arguments, lacks or has with fewer
%% arguments. Scripts that lack nothing are left out.
-spec missing(tool(), Listed :: #{Probe :: atom() => Arguments :: non_neg_integer()}) ->
          [{Script :: string(), [Probe :: atom()]}].
missing(Tool, Listed) ->
    [{Script, Missing} || {Script, Probes} <- scripts(Tool),
                          Missing <- [[Probe || {Probe, Count} <- Probes, maps:get(Probe, Listed, 0) < Count]],
                          Missing =/= []].

scripts(dtrace) ->
    [{Name, Probes ++ only_in_d(Name)} || {Name, Probes} <- scripts()];
scripts(systemtap) ->
    scripts().

only_in_d("driver1") -> [{driver__event, 3}];
only_in_d(_) -> [].

scripts() ->
    [{"dist", [{dist__monitor, 5}, {dist__port_busy, 4}, {dist__output, 4}, {dist__outputv, 4},
               {process__scheduled, 1}]},
     {"driver1", [{driver__init, 4}, {driver__start, 3}, {driver__stop, 3}, {driver__finish, 1}, {driver__flush, 3},
                  {driver__output, 4}, {driver__outputv, 4}, {driver__control, 5}, {driver__call, 5},
                  {driver__ready_input, 3}, {driver__ready_output, 3}, {driver__timeout, 3}, {driver__ready_async, 3},
                  {driver__process_exit, 3}, {driver__stop_select, 1}]},
     {"function-calls", [{local__function__entry, 3}, {global__function__entry, 3}, {function__return, 3},
                         {bif__entry, 2}, {bif__return, 2}, {nif__entry, 2}, {nif__return, 2}]},
     {"garbage-collection", [{gc_major__start, 2}, {gc_minor__start, 2}, {gc_major__end, 2}]},
     {"memory1", [{copy__struct, 1}, {copy__object, 2}, {process__heap_grow, 3}, {process__heap_shrink, 3}]},
     {"messages", [{message__send, 6}, {message__send__remote, 7}, {message__queued, 6}, {message__receive, 6}]},
     {"port1", [{port__open, 3}, {port__command, 4}, {port__control, 4}, {port__exit, 4}, {port__connect, 4},
                {port__busy, 1}, {port__not_busy, 1}, {aio_pool__add, 2}, {aio_pool__get, 2}]},
     {"process-scheduling", [{process__scheduled, 2}, {process__unscheduled, 1}, {process__hibernate, 2}]},
     {"spawn-exit", [{process__spawn, 2}, {process__exit, 2}, {process__exit_signal, 3},
                     {process__exit_signal__remote, 4}]},
     {"user-probe", [{user_trace__s1, 1}, {user_trace__i4s4, 10}]},
     {"user-probe-n", [{user_trace__n0, 10}, {user_trace__n1, 10}]}].
