"""`dyntrace top --exact`: counts every event. The kernel adds them up; the node pays for each event."""
import collections
from typing import Counter, Dict, List, Optional

from dyntrace_command.common.columns import COUNTED
from dyntrace_command.node.node import Node
from dyntrace_command.top.frames import Frames
from dyntrace_command.tracers.bpftrace import Line

# Processes that bpftrace prints per column and second, the busiest ones.
MOST = 200


class Counted(Frames):
    """The sums of the events since the previous frame."""

    program = "names+event_sums"
    words = {"MOST": str(MOST)}
    columns = COUNTED
    keys = {"r": "run", "i": "io", "s": "sent", "m": "received", "g": "gc"}
    help = "q quits; sort by: r run time, i dirty I/O, s sent, m received, g GC"

    def __init__(self, node: Node, sort: Optional[str]) -> None:
        super().__init__(node, sort)
        # The frame being received, and the last complete one.
        self.coming: Dict[str, Dict[str, int]] = {}
        self.maps: Dict[str, Dict[str, int]] = {}
        self.is_whole = False

    def take(self, line: Line) -> None:
        self.coming.update(line.maps)
        self.seen |= any(line.maps.values()) or self.names.learn(line.fields)
        if line.fields == ["frame"]:
            self.seconds += 1
            self.maps, self.coming, self.is_whole = self.coming, {}, True

    def whole(self) -> bool:
        is_whole, self.is_whole = self.is_whole, False
        return is_whole

    def lines(self, rows: int) -> List[str]:
        total: Counter[str] = collections.Counter(self.maps.get("all", {}))
        maps = {name: values for name, values in self.maps.items() if name != "all"}
        more = "or more " if any(len(values) == MOST for values in maps.values()) else ""
        pids = {pid for values in maps.values() for pid in values}

        def value(name: str, pid: str) -> int:
            return maps.get(name, {}).get(pid, 0)

        lines = self.head(f"{len(pids)} {more}processes: run {total['run'] / 1000:.0f} ms, "
                          f"dirty I/O {total['io'] / 1000:.0f} ms, {total['sent']} messages sent, "
                          f"{total['received']} received, GC {total['gc'] / 1000:.0f} ms")
        for pid in sorted(pids, key=lambda pid: (-value(self.sort, pid), -value("run", pid), pid))[:rows]:
            numbers = "".join(f"{value(name, pid):>10}" for name in self.columns)
            lines.append(f"{numbers}  {self.names.show(pid)}")
        return lines
