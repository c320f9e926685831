"""`dyntrace top --exact`: counts every event. The kernel adds them up; the node pays for each event."""
import collections
from typing import Any, Counter, Dict, List, Optional, Set

from dyntrace_command.common.columns import COUNTED
from dyntrace_command.node.node import Node
from dyntrace_command.top.frames import Frames
from dyntrace_command.tracers.bpftrace import Line

# Processes that bpftrace prints per column and second, the busiest ones.
MOST = 200

# The columns as keys of JSON.
KEYS = {"run": "run_us", "io": "dirty_io_us", "sent": "sent", "received": "received", "gc": "gc_us", "gcs": "gcs"}


class Counted(Frames):
    """The sums of the events since the previous frame."""

    program = "names+event_sums"
    words = {"MOST": str(MOST)}
    columns = COUNTED
    keys = {"r": "run", "i": "io", "s": "sent", "m": "received", "g": "gc"}
    help = "q quits; sort by: r run time, i dirty I/O, s sent, m received, g GC"

    def __init__(self, node: Node, sort: Optional[str], own: bool) -> None:
        super().__init__(node, sort, own)
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

    def count_of(self, name: str, pid: str) -> int:
        """Returns a value of a process."""
        return self.maps.get(name, {}).get(pid, 0)

    def seen_pids(self) -> Set[str]:
        """Returns the processes that the frame has."""
        return {pid for name, values in self.maps.items() if name != "all" for pid in values}

    def is_cut(self) -> bool:
        """Returns whether the frame may lack processes."""
        return any(len(values) == MOST for name, values in self.maps.items() if name != "all")

    def leading(self, rows: int) -> List[str]:
        """Returns the first processes."""
        return sorted(filter(self.is_shown, self.seen_pids()),
                      key=lambda pid: (-self.count_of(self.sort, pid), -self.count_of("run", pid), pid))[:rows]

    def lines(self, rows: int) -> List[str]:
        total: Counter[str] = collections.Counter(self.maps.get("all", {}))
        lines = self.head(f"{len(self.seen_pids())} {'or more ' if self.is_cut() else ''}processes: "
                          f"run {total['run'] / 1000:.0f} ms, "
                          f"dirty I/O {total['io'] / 1000:.0f} ms, {total['sent']} messages sent, "
                          f"{total['received']} received, GC {total['gc'] / 1000:.0f} ms")
        for pid in self.leading(rows):
            numbers = "".join(f"{self.count_of(name, pid):>10}" for name in self.columns)
            lines.append(f"{numbers}  {self.names.show(pid)}")
        return lines

    def values(self, rows: int) -> Dict[str, Any]:
        return {"exact": True, "active_processes": len(self.seen_pids()), "more_processes": self.is_cut(),
                "totals": {key: self.count_of("all", name) for name, key in KEYS.items() if name != "gcs"},
                "processes": [{**self.names.as_json(pid),
                               **{key: self.count_of(name, pid) for name, key in KEYS.items()}}
                              for pid in self.leading(rows)]}
