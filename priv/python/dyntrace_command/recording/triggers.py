"""LTTng triggers: they notify of events that are a cause.

The session daemon notifies, and this command takes the snapshot: LTTng's action `snapshot-session` has no limit per
time, no names and no end. An event rule applies to all programs of the user, so its filter selects the node's process.
Still, LTTng enables the event in all of them, so the user's other nodes set its trace flags, too.
"""
import contextlib
import json
import os
import select
import sys
import time
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.events import full_name
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import last_lines
from dyntrace_command.common.trigger_causes import Cause
from dyntrace_command.host.children import Guard
from dyntrace_command.host.execution import NO_ANSWER, PIECE, Started, until
from dyntrace_command.host.tools import tool
from dyntrace_command.node.node import Node
from dyntrace_command.tracers import notifications
from dyntrace_command.tracers.lttng import ANSWERS_S, Lttng

# The maximum length of a line of the program's output, to which that user's other programs can write.
LINE_MOST = 10000
READY = b"null\n"
# Seconds between two reads of the output, of at most PIECE bytes.
READ_S = 0.05

REMOVE = 'names=$1; shift; for name in $names; do "$@" remove-trigger "$name"; done'


class Fired(NamedTuple):
    """A cause that fired in a node, its fields as a text without contents, and unchanged."""
    cause: Cause
    node: Node
    text: str
    fields: Sequence[str] = ()


class Triggers:
    """A trigger for each cause and node. No trigger is left, however this command ends."""

    def __init__(self, daemon: Lttng, name: str, causes: Sequence[Cause], count: int) -> None:
        self.daemon, self.causes = daemon, causes
        # Stops `set` early when it returns True.
        self.is_interrupted: Callable[[], bool] = bool
        self.names = [f"{name}-{number}" for number in range(len(causes) * count)]
        self.of: List[Tuple[Cause, Node]] = []
        self.guard = Guard(daemon.program("/bin/sh", "-c", REMOVE, "remove", " ".join(self.names), tool("lttng"),
                                           "--no-sessiond"))
        self.listener: Optional[Started] = None
        self.output, self.read = -1, 0.0
        self.are_set = self.hangs = False
        self.rest = b""

    def set(self, nodes: Sequence[Node]) -> None:
        """Replaces the triggers by triggers for these nodes."""
        self.remove()
        filters = {node: of_node(node) for node in nodes}
        self.of = [(cause, node) for cause in self.causes for node in nodes if filters[node]]
        self.are_set = True
        for name, (cause, node) in zip(self.names, self.of):
            self.daemon.do("add-trigger", f"--name={name}", "--condition=event-rule-matches", "--type=user",
                           f"--name={full_name(cause.event)}",
                           f"--filter={filters[node]}{f' && ({cause.filter})' if cause.filter else ''}",
                           *(f"--capture={field}" for field in cause.fields), "--action=notify")
        self.listen()

    def listen(self) -> None:
        """Starts the program that receives the notifications."""
        with open(notifications.__file__, encoding="utf-8") as file:
            source = file.read()
        # Another user may not be able to run the Python of this command, so the program is looked up in PATH.
        python = "python3" if self.daemon.identity else sys.executable
        self.output, writing = os.pipe()
        try:
            self.listener = Started(self.daemon.program(python, "-IS", "-c", source, *self.names[:len(self.of)]),
                                    writing, writing)
        finally:
            os.close(writing)
        data = self.read_until_ready()
        printed, is_ready, self.rest = data.partition(READY)
        if not is_ready:
            self.stop_listening()
            if self.is_interrupted():
                raise KeyboardInterrupt
            raise Failure("lttng", tool="lttng add-trigger", output=last_lines(printed.decode("utf-8", "replace")))

    def read_until_ready(self) -> bytes:
        """Returns the program's output until it is ready, it ends, or the time is over."""
        data, deadline = b"", time.monotonic() + ANSWERS_S
        while READY not in data and len(data) < PIECE and time.monotonic() < deadline and not self.is_interrupted():
            has_ended = self.has_ended()
            if select.select([self.output], [], [], READ_S)[0]:
                piece = os.read(self.output, PIECE)
                has_ended = not piece
                data += piece
            if has_ended:
                break
        return data

    def has_ended(self) -> bool:
        """Returns whether the program has ended, with the daemon or because its user killed it."""
        return self.listener is not None and self.listener.has_ended()

    def streams(self) -> List[int]:
        """Returns the streams to select on. The list is empty shortly after each read, so that endless output costs
        little time."""
        return [self.output] if self.listener and time.monotonic() - self.read >= READ_S else []

    def fired(self) -> List[Fired]:
        """Returns the causes that fired since the last call; raises Failure if the daemon or the program has ended."""
        self.read = time.monotonic()
        data = b""
        if select.select([self.output], [], [], 0)[0]:
            data = os.read(self.output, PIECE)
        elif not self.has_ended():
            return []
        if data == b"":
            is_killed = self.listener and until(self.has_ended, 1) and (self.listener.status or 0) < 0
            raise Failure("recorder_listener_gone" if is_killed else "recorder_daemon_gone")
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.rest = self.rest[:LINE_MOST]
        return [fired for fired in map(self.parsed, lines) if fired]

    def parsed(self, line: bytes) -> Optional[Fired]:
        """Parses a line; returns None if it is invalid. Any program of that user may have written it."""
        with contextlib.suppress(ValueError, TypeError, IndexError, RecursionError):
            name, texts = json.loads(line.decode())
            cause, node = self.of[self.names.index(name)]
            return Fired(cause, node, cause.text(texts)[:LINE_MOST], texts)
        return None

    def pause(self) -> None:
        """Removes the triggers until they are set again, and with them their cost for the node. The end of the daemon
        is still noticed."""
        if self.are_set:
            self.are_set = False
            # If the daemon does not answer, one attempt is enough.
            self.hangs = any(self.daemon.attempt("remove-trigger", name)[0] == NO_ANSWER
                             for name in self.names[:len(self.of)])

    def remove(self) -> None:
        """Removes the triggers, and ends the program."""
        self.pause()
        self.stop_listening()

    def stop_listening(self) -> None:
        """Ends the program."""
        if self.listener:
            self.listener.end()
            os.close(self.output)
            self.listener, self.rest = None, b""

    def end(self) -> None:
        """Removes the triggers for good."""
        self.remove()
        if self.hangs:
            # The guard removes them when the daemon answers again.
            self.guard.act()
        else:
            self.guard.release()


def of_node(node: Node) -> str:
    """Returns a filter for the events of one process, or an empty text if it has ended. Its number in its container
    need not be unique."""
    with contextlib.suppress(OSError):
        kernel = (node.process.namespace("pid") or "").strip("pid:[]")
        return f"$ctx.vpid == {node.process.inner_pid()}" + (f" && $ctx.pid_ns == {kernel}" if kernel else "")
    return ""
