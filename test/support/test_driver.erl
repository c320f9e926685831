%% Linked-in drivers for tests; driver/test_driver.c describes their behaviour.
-module(test_driver).

-export([build/1, load/2, unload/1, open/1, name/1]).
-export([echo/2, timer/2, queue/2, busy/2, sleep/2, sleep_later/2]).

-export_type([kind/0]).

-type kind() :: output | outputv.
%% How the driver gets data: in one piece, or as a vector.

%% Builds both drivers in that folder, which load/2 takes.
-spec build(file:filename()) -> file:filename().
build(Folder) ->
    _ = [{0, _} = test_shell:run("cd '~ts' && ${CC:-cc} -std=gnu11 -O2 -g -Wall -Wextra -Werror -shared -fPIC ~ts "
                                 "-isystem '~ts' -o '~ts.so' test/support/driver/test_driver.c",
                                 [test_shell:project(), flags(Kind),
                                  filename:join([code:root_dir(), "usr", "include"]),
                                  filename:join(Folder, name(Kind))])
         || Kind <- [output, outputv]],
    Folder.

flags(output) -> "";
flags(outputv) -> "-DTEST_OUTPUTV".

-spec name(kind()) -> string().
name(output) -> "test_output_drv";
name(outputv) -> "test_outputv_drv".

%% The driver stays loaded until unload/1, or until the calling process ends.
-spec load(file:filename(), kind()) -> ok.
load(Folder, Kind) ->
    ok = erl_ddll:load_driver(Folder, name(Kind)).

%% Must be called by the process that loaded the driver. Closes its ports, and waits until the driver is unloaded.
-spec unload(kind()) -> ok.
unload(Kind) ->
    ok = erl_ddll:unload_driver(name(Kind)).

-spec open(kind()) -> port().
open(Kind) ->
    open_port({spawn_driver, name(Kind)}, [binary]).

%% Returns the data.
-spec echo(port(), iodata()) -> binary().
echo(Port, Data) ->
    erlang:port_control(Port, 0, Data).

%% The port sends {Port, {data, <<"timeout">>}} after that time.
-spec timer(port(), non_neg_integer()) -> ok.
timer(Port, Milliseconds) ->
    control(Port, 1, integer_to_list(Milliseconds)).

%% Closing the port flushes what is in its queue.
-spec queue(port(), iodata()) -> ok.
queue(Port, Data) ->
    control(Port, 2, Data).

%% A process that sends data to a busy port is suspended.
-spec busy(port(), boolean()) -> ok.
busy(Port, true) ->
    control(Port, 3, []);
busy(Port, false) ->
    control(Port, 4, []).

%% The driver occupies the scheduler during the calling process's turn.
-spec sleep(port(), non_neg_integer()) -> ok.
sleep(Port, Milliseconds) ->
    control(Port, 5, integer_to_list(Milliseconds)).

%% The same in a turn of the port. Afterwards, the port sends {Port, {data, <<"timeout">>}}.
-spec sleep_later(port(), non_neg_integer()) -> ok.
sleep_later(Port, Milliseconds) ->
    control(Port, 6, integer_to_list(Milliseconds)).

control(Port, Command, Data) ->
    <<"ok">> = erlang:port_control(Port, Command, Data),
    ok.
