"""Triggers of LTTng: they tell when a node fires an event that is a cause.

The session daemon notifies, and this command acts: LTTng's own action `snapshot-session` knows no rate by time, no
names and no end. An event rule is for all programs of the user, so its filter has the node's process. Yet the event is
enabled in all of them: the user's other nodes have its trace flags, too.
"""
import contextlib
import json
import os
import select
import subprocess
import sys
from typing import List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command import notifications
from dyntrace_command.causes import Cause
from dyntrace_command.children import Guard
from dyntrace_command.contents import hide
from dyntrace_command.failures import Failure
from dyntrace_command.lttng import ANSWERS_S, NO_ANSWER, Lttng
from dyntrace_command.node import PROVIDER, Node
from dyntrace_command.terminal import last_lines
from dyntrace_command.tools import tool

# Bytes of what the program tells.
LINE_MOST = 10000
READY = b"null\n"
# Seconds in which it ends with its standard input, which its user can prevent.
ENDS_S = 5

REMOVE = 'names=$1; shift; for name in $names; do "$@" remove-trigger "$name"; done'


class Fired(NamedTuple):
    """A cause that a node has fired, and its fields as a text without contents."""
    cause: Cause
    node: Node
    text: str


class Triggers:
    """A trigger for each cause and node, while it is set; none is left whatever ends this command."""

    def __init__(self, daemon: Lttng, name: str, causes: Sequence[Cause], count: int) -> None:
        self.daemon, self.causes = daemon, causes
        self.names = [f"{name}-{number}" for number in range(len(causes) * count)]
        self.of: List[Tuple[Cause, Node]] = []
        self.guard = Guard("/bin/sh", "-c", REMOVE, "remove", " ".join(self.names), *daemon.prefix, tool("lttng"),
                           "--no-sessiond")
        self.listener: "Optional[subprocess.Popen[bytes]]" = None
        self.are_set = self.hangs = False
        self.rest = b""

    def set(self, nodes: Sequence[Node]) -> None:
        """Sets them for these nodes in place of others."""
        self.remove()
        filters = {node: of_node(node) for node in nodes}
        self.of = [(cause, node) for cause in self.causes for node in nodes if filters[node]]
        self.are_set = True
        for name, (cause, node) in zip(self.names, self.of):
            self.daemon.do("add-trigger", f"--name={name}", "--condition=event-rule-matches", "--type=user",
                           f"--name={cause.event if ':' in cause.event else f'{PROVIDER}:{cause.event}'}",
                           f"--filter={filters[node]}{f' && ({cause.filter})' if cause.filter else ''}",
                           *(f"--capture={field}" for field in cause.fields), "--action=notify")
        self.listen()

    def listen(self) -> None:
        """Starts the program that the daemon notifies."""
        with open(notifications.__file__, encoding="utf-8") as file:
            source = file.read()
        # Another user may not be able to run the Python of this command: `env` takes the first that it can.
        python = "python3" if self.daemon.prefix else sys.executable
        command = [*self.daemon.prefix, python, "-IS", "-c", source, *self.names[:len(self.of)]]
        self.listener = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, start_new_session=True, bufsize=0,
                                         cwd=self.daemon.folder)
        assert self.listener.stdout and self.listener.stderr
        answers = select.select([self.listener.stdout], [], [], ANSWERS_S)[0]
        # A pipe has a short line at once.
        if not answers or os.read(self.listener.stdout.fileno(), len(READY)) != READY:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.listener.wait(1)
            self.listener.kill()
            raise Failure("lttng", tool="lttng add-trigger",
                          output=last_lines(self.listener.stderr.read(LINE_MOST).decode("utf-8", "replace")))
        os.set_blocking(self.listener.stdout.fileno(), False)

    def streams(self) -> List[int]:
        """Returns what to select on."""
        return [self.listener.stdout.fileno()] if self.listener and self.listener.stdout else []

    def fired(self) -> List[Fired]:
        """Returns what was fired since the last call; raises Failure if the daemon has ended."""
        data = None
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.streams()[0], 1 << 20)
        if data == b"":
            raise Failure("recorder_daemon_gone")
        *lines, self.rest = (self.rest + (data or b"")).split(b"\n")
        self.rest = self.rest[:LINE_MOST]
        return [fired for fired in map(self.told, lines) if fired]

    def told(self, line: bytes) -> Optional[Fired]:
        """Returns what a line tells; None if it can't be read. It may be another user's program that has written it."""
        with contextlib.suppress(ValueError, TypeError, IndexError, RecursionError):
            name, texts = json.loads(line.decode())
            return Fired(*self.of[self.names.index(name)], text=" ".join(map(hide, filter(None, texts)))[:LINE_MOST])
        return None

    def pause(self) -> None:
        """Removes them until they are set again: events cost the node as much as without. The end of the daemon is
        still told."""
        if self.are_set:
            self.are_set = False
            # Where the daemon does not answer, one attempt is enough.
            self.hangs = any(self.daemon.attempt("remove-trigger", name)[0] == NO_ANSWER
                             for name in self.names[:len(self.of)])

    def remove(self) -> None:
        """Removes them, and ends the program."""
        self.pause()
        if self.listener:
            for stream in (self.listener.stdin, self.listener.stdout, self.listener.stderr):
                assert stream
                stream.close()
            try:
                self.listener.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                self.listener.kill()
                self.listener.wait()
            self.listener, self.rest = None, b""

    def end(self) -> None:
        """Removes them for good."""
        self.remove()
        if self.hangs:
            # It goes on to remove them when the daemon answers again.
            self.guard.act()
        else:
            self.guard.release()


def of_node(node: Node) -> str:
    """Returns a filter for the events of one process; an empty text if it has ended. In its container it has a number
    that others may have, too."""
    with contextlib.suppress(OSError):
        kernel = (node.process.namespace("pid") or "").strip("pid:[]")
        return f"$ctx.vpid == {node.inside.inner_pid()}" + (f" && $ctx.pid_ns == {kernel}" if kernel else "")
    return ""
