"""`dyntrace top`: shows the busiest processes of a node live, each second."""
import argparse
import functools
import select
import time
from typing import Dict, Optional, Type

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import Screen, say
from dyntrace_command.host.children import Interrupted
from dyntrace_command.node.node import Node, pick
from dyntrace_command.node.why_untraced import untraced
from dyntrace_command.recording.recording import PATIENCE
from dyntrace_command.top.frames import Frames
from dyntrace_command.top.from_events import Counted
from dyntrace_command.top.from_samples import Sampled
from dyntrace_command.top.metrics import Metrics
from dyntrace_command.top.metrics_server import Endpoint, MetricsServer, url
from dyntrace_command.tracers.bpftrace import Bpftrace

# By --exact.
KINDS: Dict[bool, Type[Frames]] = {False: Sampled, True: Counted}


class Table(Screen):
    """Shows frames as a table."""

    # Whether there is nothing more to show.
    is_over = False

    def put(self, frames: Frames) -> None:
        """Shows the frame that is due."""
        self.show(frames.lines)


class Lines(Table):
    """Does not draw on a terminal."""

    def __init__(self, rows: Optional[int], help_line: str) -> None:
        super().__init__(rows, help_line)
        self.terminal = self.keyboard = False


class JsonLines(Lines):
    """Prints a line of JSON per frame."""

    def put(self, frames: Frames) -> None:
        put(frames.as_json(self.rows or self.ROWS), is_line=True)


class Exporter(Lines):
    """Prints the first frame as metrics, or serves the latest one."""

    def __init__(self, node: Node, rows: Optional[int], endpoint: Optional[Endpoint]) -> None:
        super().__init__(rows, "")
        self.metrics = Metrics(node.node, rows or self.ROWS)
        self.server = MetricsServer(endpoint) if endpoint else None
        if endpoint:
            say(f"serving {url(endpoint)} for {node.show()}; Ctrl-C ends")
            if not endpoint[0].is_loopback:
                say(f"dyntrace: anyone who can connect to {endpoint[0]} can read the names and the load of processes; "
                    "connections are neither encrypted nor authenticated")

    def put(self, frames: Frames) -> None:
        assert isinstance(frames, Sampled)
        if self.server:
            self.server.update(functools.partial(self.metrics.text, frames))
        else:
            print(self.metrics.text(frames, True), end="")
            self.is_over = True


def output_of(options: argparse.Namespace, node: Node, kind: Type[Frames]) -> Table:
    """Returns what shows the frames."""
    if options.openmetrics:
        return Exporter(node, options.rows, options.listen)
    return (JsonLines if options.json else Table)(options.rows, kind.help)


def top(options: argparse.Namespace) -> None:
    """Shows frames until q, Ctrl-C, or until the time is over."""
    node = pick(options.node)
    kind = KINDS[options.exact]
    screen = output_of(options, node, kind)
    with Bpftrace(node, kind.program, **kind.words) as bpftrace, Interrupted() as interrupted, screen as _:
        frames = kind(node, options.sort, options.own)
        # The time starts with the first frame: bpftrace takes seconds to attach.
        end = None
        while not interrupted.happened.is_set() and not screen.is_over and (end is None or time.monotonic() < end):
            if end is None and options.seconds and frames.count:
                end = time.monotonic() + options.seconds
            ready, _, _ = select.select([bpftrace, *screen.keys()], [], [], 0.2)
            for line in bpftrace.lines() if bpftrace in ready else []:
                frames.take(line)
                if frames.due():
                    screen.put(frames)
            if frames.due():
                screen.put(frames)
            if not node.lives():
                raise Failure("node_gone", pid=node.pid, name=node.node)
            if frames.seconds > PATIENCE and not frames.seen:
                raise untraced(node, PATIENCE)
            if len(ready) > (bpftrace in ready):
                key = screen.key()
                if key == "q":
                    break
                frames.press(key)
