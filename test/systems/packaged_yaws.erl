%% Debian's yaws with a static page, a dynamic one and a websocket, and a tsung that loads it in the same place.
-module(packaged_yaws).
-behaviour(packaged).

-export([missing/0, service/0, launch/2, tool/1, load/1]).
-export([launch_tsung/1, eval_tsung/2]).
%% The websocket, in yaws.
-export([handle_message/1]).

-define(LOGS, "/var/log/yaws").
-define(YAWS, "/usr/bin/yaws").
-define(TSUNG, "/usr/bin/tsung").

missing() ->
    place:missing([?YAWS, ?TSUNG]).

service() ->
    #{host => "web", user => "yaws", folders => ["/var/cache/yaws", ?LOGS], node => "yaws@localhost", port => 8080,
      serves => ["--status"], client => "", daily => [], storm => []}.

launch(Place, _) ->
    [place:write(Place, Name, Text) || {Name, Text} <- files()],
    place:launch(Place, [?YAWS, "--id", "shop", "--conf", "yaws.conf", "--sname", "yaws@localhost", "--daemon",
                         "--erlarg", "-pa " ++ filename:dirname(code:which(?MODULE))], ?LOGS).

files() ->
    [{"yaws.conf", "logdir = " ?LOGS "\n"
                   "<server localhost>\nport = 8080\nlisten = 127.0.0.1\ndocroot = /var/cache/yaws\n</server>\n"},
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

%% Two users per second; each one reads pages, or speaks through a websocket, for half a minute.
launch_tsung({?MODULE, Place}) ->
    ok = place:write(Place, "tsung.xml", users()),
    place:launch(Place, [?TSUNG, "-I", "127.0.0.1", "-f", "tsung.xml", "-l", ?LOGS "/tsung", "start"], ?LOGS).

users() ->
    Repeated = fun(Requests) -> ["<for from='1' to='60' var='i'>", Requests, "<thinktime value='0.5'/></for>"] end,
    ["<?xml version='1.0'?><!DOCTYPE tsung SYSTEM '/usr/share/tsung/tsung-1.0.dtd'><tsung loglevel='warning'>"
     "<clients><client host='localhost' use_controller_vm='true' maxusers='1000'/></clients>"
     "<servers><server host='127.0.0.1' port='8080' type='tcp'/></servers>"
     "<load><arrivalphase phase='1' duration='10' unit='minute'><users arrivalrate='2' unit='second'/></arrivalphase>"
     "</load><sessions><session name='pages' probability='50' type='ts_http'>",
     Repeated([["<request><http url='/", Page, "' method='GET'/></request>"]
               || Page <- ["static.html", "dynamic.yaws"]]),
     "</session><session name='sockets' probability='50' type='ts_websocket'>"
     "<request><websocket type='connect' path='/socket.yaws'/></request>",
     Repeated("<request><websocket type='message'>hello</websocket></request>"),
     "<request><websocket type='close'/></request></session></sessions></tsung>\n"].

eval_tsung({?MODULE, Place}, Expressions) ->
    place:eval_at(Place, "-c tsung -name tsung_controller@127.0.0.1", Expressions).
