"""`dyntrace top`: shows the busiest processes of a node live, each second."""
import argparse
import select
import time
from typing import Dict, Optional, Type

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import Screen
from dyntrace_command.host.children import Interrupted
from dyntrace_command.node.node import pick
from dyntrace_command.node.why_untraced import untraced
from dyntrace_command.recording.recording import PATIENCE
from dyntrace_command.top.frames import Frames
from dyntrace_command.top.from_events import Counted
from dyntrace_command.top.from_samples import Sampled
from dyntrace_command.tracers.bpftrace import Bpftrace

# By --exact.
KINDS: Dict[bool, Type[Frames]] = {False: Sampled, True: Counted}


class Table(Screen):
    """Shows frames as a table."""

    def put(self, frames: Frames) -> None:
        """Shows the frame that is due."""
        self.show(frames.lines)


class JsonLines(Table):
    """Prints a line of JSON per frame."""

    def __init__(self, rows: Optional[int], help_line: str) -> None:
        super().__init__(rows, help_line)
        self.terminal = self.keyboard = False

    def put(self, frames: Frames) -> None:
        put(frames.as_json(self.rows or self.ROWS), is_line=True)


def top(options: argparse.Namespace) -> None:
    """Shows frames until q, Ctrl-C, or until the time is over."""
    node = pick(options.node)
    kind = KINDS[options.exact]
    screen = (JsonLines if options.json else Table)(options.rows, kind.help)
    with Bpftrace(node, kind.program, **kind.words) as bpftrace, Interrupted() as interrupted, screen as _:
        frames = kind(node, options.sort, options.own)
        # The time starts with the first frame: bpftrace takes seconds to attach.
        end = None
        while not interrupted.happened.is_set() and (end is None or time.monotonic() < end):
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
