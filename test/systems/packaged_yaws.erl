%% Debian's yaws with a static page, a dynamic one and a websocket, and a tsung with slaves that loads it in the same
%% place.
-module(packaged_yaws).
-behaviour(packaged).

-export([missing/0, service/0, launch/2, tool/1, load/1]).
-export([launch_tsung/1, controller/0, slaves/0, eval_tsung/3]).
%% The websocket, in yaws.
-export([handle_message/1]).

-define(HOME, "/var/cache/yaws").
-define(LOGS, "/var/log/yaws").
-define(YAWS, "/usr/bin/yaws").
-define(TSUNG, "/usr/bin/tsung").

missing() ->
    place:missing([?YAWS, ?TSUNG]).

service() ->
    #{host => "web", user => "yaws", folders => [?HOME, ?LOGS], node => "yaws@localhost", port => 8080,
      serves => ["--status"], client => "", daily => [], storm => []}.

launch(Place, _) ->
    [place:write(Place, Name, Text) || {Name, Text} <- files()],
    place:launch(Place, [?YAWS, "--id", "shop", "--conf", "yaws.conf", "--sname", "yaws@localhost", "--daemon",
                         "--erlarg", "-pa " ++ filename:dirname(code:which(?MODULE))], ?LOGS).

files() ->
    [{"yaws.conf", "logdir = " ?LOGS "\n"
                   "<server localhost>\nport = 8080\nlisten = 127.0.0.1\ndocroot = " ?HOME "\n</server>\n"},
     {"static.html", lists:duplicate(2000, $x)},
     {"dynamic.yaws", "<erl>out(_) -> {html, integer_to_list(lists:sum(lists:seq(1, 1000)))}.</erl>\n"},
     {"socket.yaws", "<erl>out(_) -> {websocket, packaged_yaws, []}.</erl>\n"}].

handle_message({text, Text}) -> {reply, {text, Text}};
handle_message({close, _, _}) -> {close, normal}.

tool(Place) ->
    [place:as_user(Place), " " ?YAWS " --id shop"].

%% The host's command loads it.
load(_) ->
    ok.

%% -- Tsung -----------------------------------------------------------------------------------

%% The controller starts slaves through a remote shell if their host is not its own.
-define(CONTROLLER_HOST, "127.0.0.1").
-define(SLAVE_HOST, "127.0.0.2").
-define(REMOTE_SHELL, ?HOME "/remote_shell").

%% Two users per second, half of them on each slave. Each user reads pages, or speaks through a websocket, for half a
%% minute.
launch_tsung({?MODULE, Place}) ->
    ok = place:write(Place, "tsung.xml", users()),
    ok = place:write(Place, ?REMOTE_SHELL, "#!/bin/sh\n# Runs the command here, for any host.\nshift\nexec \"$@\"\n"),
    {0, _} = test_shell:run("~s chmod +x ~s", [place:as_user(Place), ?REMOTE_SHELL]),
    place:launch(Place, [?TSUNG, "-I", ?CONTROLLER_HOST, "-r", ?REMOTE_SHELL, "-f", "tsung.xml",
                         "-l", ?LOGS "/tsung", "start"], ?LOGS).

%% The names of tsung's nodes.
controller() -> "tsung_controller@" ?CONTROLLER_HOST.
slaves() -> ["tsung0@" ?SLAVE_HOST, "tsung1@" ?SLAVE_HOST].

users() ->
    Repeated = fun(Requests) -> ["<for from='1' to='60' var='i'>", Requests, "<thinktime value='0.5'/></for>"] end,
    ["<?xml version='1.0'?><!DOCTYPE tsung SYSTEM '/usr/share/tsung/tsung-1.0.dtd'><tsung loglevel='warning'>"
     "<clients><client host='" ?SLAVE_HOST "' cpu='2' maxusers='1000'/></clients>"
     "<servers><server host='127.0.0.1' port='8080' type='tcp'/></servers>"
     "<load><arrivalphase phase='1' duration='10' unit='minute'><users arrivalrate='2' unit='second'/></arrivalphase>"
     "</load><sessions><session name='pages' probability='50' type='ts_http'>",
     Repeated([["<request><http url='/", Page, "' method='GET'/></request>"]
               || Page <- ["static.html", "dynamic.yaws"]]),
     "</session><session name='sockets' probability='50' type='ts_websocket'>"
     "<request><websocket type='connect' path='/socket.yaws'/></request>",
     Repeated("<request><websocket type='message'>hello</websocket></request>"),
     "<request><websocket type='close'/></request></session></sessions></tsung>\n"].

eval_tsung({?MODULE, Place}, Node, Expressions) ->
    place:eval_at(Place, "-c tsung -name " ++ Node, Expressions).
