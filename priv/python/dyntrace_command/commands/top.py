"""`dyntrace top`: the busiest processes of a node, live, each second."""
import argparse
import collections
import select
import time
from typing import Counter, Dict, List, Optional

from dyntrace_command.bpftrace import Bpftrace, Line, Names
from dyntrace_command.children import Interrupted
from dyntrace_command.columns import COLUMNS, KEYS
from dyntrace_command.failures import Failure
from dyntrace_command.node import Node, pick
from dyntrace_command.recording import PATIENCE
from dyntrace_command.terminal import Screen

# Processes that bpftrace prints per column and second, the busiest ones.
MOST = 200

# The node tells names within a second, or not at all.
NAMELESS_FRAMES = 2

HELP = "q quits; sort by: r run time, i dirty I/O, s sent, m received, g GC"


class Top:
    """What top shows: a frame per second, of what has come since the one before."""

    def __init__(self, node: Node, sort: str) -> None:
        self.node, self.sort = node, sort
        self.names = Names()
        self.maps: Dict[str, Dict[str, int]] = {}
        self.frames = 0
        self.seen = False

    def take(self, line: Line) -> bool:
        """Takes a line of bpftrace; returns true at the end of a frame."""
        self.maps.update(line.maps)
        self.seen |= bool(line.maps) or self.names.learn(line.fields)
        if line.fields != ["frame"]:
            return False
        self.frames += 1
        if self.names.of or self.frames > NAMELESS_FRAMES:
            return True
        # The next second's rows have names.
        self.maps.clear()
        return False

    def frame(self, rows: int, width: Optional[int]) -> List[str]:
        """Returns the frame's lines. The next one begins empty."""
        maps, self.maps = self.maps, {}
        total: Counter[str] = collections.Counter(maps.pop("all", {}))
        more = "or more " if any(len(values) == MOST for values in maps.values()) else ""
        pids = {pid for values in maps.values() for pid in values}
        lines = [f"dyntrace top  {self.node.show()}  {time.strftime('%H:%M:%S')}  "
                 f"{len(pids)} {more}processes: run {total['run'] / 1000:.0f} ms, "
                 f"dirty I/O {total['io'] / 1000:.0f} ms, {total['sent']} messages sent, "
                 f"{total['received']} received, GC {total['gc'] / 1000:.0f} ms",
                 "".join(f"{title:>10}" for title in COLUMNS.values()) + "  PROCESS"]
        for pid in sorted(pids, key=lambda pid: (-value(maps, self.sort, pid), -value(maps, "run", pid), pid))[:rows]:
            numbers = "".join(f"{value(maps, name, pid):>10}" for name in COLUMNS)
            lines.append(f"{numbers}  {self.names.show(pid)}")
        return [line[:width] if width else line for line in lines]


def value(maps: Dict[str, Dict[str, int]], name: str, pid: str) -> int:
    """Returns the number of a process in a map."""
    return maps.get(name, {}).get(pid, 0)


def top(options: argparse.Namespace) -> None:
    """Shows frames until q, Ctrl-C or the end of the time."""
    node = pick(options.node)
    with Bpftrace(node, "top", MOST=str(MOST)) as bpftrace, Interrupted() as interrupted, \
            Screen(options.rows, HELP) as screen:
        shown = Top(node, options.sort)
        # From the first frame on: bpftrace takes seconds to attach.
        end = None
        while not interrupted.happened.is_set() and (end is None or time.monotonic() < end):
            if end is None and options.seconds and shown.frames:
                end = time.monotonic() + options.seconds
            ready, _, _ = select.select([bpftrace, *screen.keys()], [], [], 0.2)
            if bpftrace in ready:
                for line in bpftrace.lines():
                    if shown.take(line):
                        screen.show(shown.frame)
            if not node.lives():
                raise Failure("node_gone", pid=node.pid, name=node.node)
            if shown.frames > PATIENCE and not shown.seen:
                raise Failure("not_started", seconds=PATIENCE)
            if len(ready) > (bpftrace in ready):
                key = screen.key()
                if key == "q":
                    break
                shown.sort = KEYS.get(key, shown.sort)
