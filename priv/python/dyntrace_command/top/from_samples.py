"""`dyntrace top`: the node's counters and its own samples of the top processes. Only name events are traced, so
watching costs a busy node almost nothing."""
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from dyntrace_command.common.columns import SAMPLED
from dyntrace_command.common.terminal import clean, size
from dyntrace_command.node.node import Node
from dyntrace_command.top.frames import Frames
from dyntrace_command.tracers.bpftrace import Line

# The events of a sample arrive together. A sample is complete when no event has arrived for QUIET seconds, and after
# LONGEST seconds in any case. Counter events are ignored for this, because they may arrive more often than samples of
# processes.
QUIET, LONGEST = 0.2, 2

# Characters of a process with its name; a longer one pushes the last columns out of alignment.
WIDEST = 50

# A node has a few counters per scheduler.
COUNTERS_MOST = 10000


class Process(NamedTuple):
    """A process in a sample; `growth` is the growth of its memory since the previous sample, if it was in that one."""
    reductions: int
    queue: int
    memory: int
    growth: int
    state: str
    function: str


class Sampled(Frames):
    """The latest sample of the top processes."""

    program = "names+process_samples"
    columns = SAMPLED
    keys = {"r": "reductions", "l": "queue", "m": "memory", "g": "growth"}
    help = "q quits; sort by: r reductions, l queue length, m memory, g growth"

    def __init__(self, node: Node, sort: Optional[str], own: bool) -> None:
        super().__init__(node, sort, own)
        # The sample being received, the last complete one, and the counters; the reductions of the last two samples.
        self.coming: Dict[str, Process] = {}
        self.processes: Dict[str, Process] = {}
        self.counters: Dict[str, int] = {}
        self.reductions: Optional[int] = None
        self.before: Optional[int] = None
        self.first = self.latest = 0.0

    def take(self, line: Line) -> None:
        kind, *values = line.fields or [""]
        if self.names.learn(line.fields):
            self.seen = True
        elif kind == "second":
            self.seconds += 1
        elif kind == "counter" and len(values) == 2 \
                and (values[0] in self.counters or len(self.counters) < COUNTERS_MOST):
            self.counters[values[0]] = int(values[1])
            self.seen = True
        elif kind == "sample" and len(values) == 6:
            pid, queue, memory, reductions, function, state = values
            self.arrived()
            before = self.processes.get(pid)
            self.coming[pid] = Process(int(reductions), int(queue), int(memory),
                                       int(memory) - before.memory if before else 0, state, function)

    def arrived(self) -> None:
        """Records that an event of a sample has arrived."""
        self.seen = True
        self.latest = time.monotonic()
        if not self.coming:
            self.first = self.latest

    def whole(self) -> bool:
        if not self.coming or time.monotonic() < min(self.latest + QUIET, self.first + LONGEST):
            return False
        is_first = not self.processes
        self.processes, self.coming = self.coming, {}
        self.before, self.reductions = self.reductions, self.counters.get("reductions")
        # The first sample of a node has no reductions, because it has no previous sample.
        return not is_first or any(process.reductions for process in self.processes.values())

    def leading(self, rows: int) -> List[Tuple[str, Process]]:
        """Returns the first processes."""
        column = list(self.columns).index(self.sort)
        found = sorted(self.processes.items(), key=lambda item: (-int(item[1][column]), -item[1].reductions, item[0]))
        return [(pid, process) for pid, process in found if self.is_shown(pid)][:rows]

    def values(self, rows: int) -> Dict[str, Any]:
        return {"exact": False, "totals": self.totals(), "processes": [
            {**self.names.as_json(pid), "reductions": process.reductions, "queue": process.queue,
             "memory_bytes": process.memory, "growth_bytes": process.growth, "state": process.state,
             "function": process.function} for pid, process in self.leading(rows)]}

    def lines(self, rows: int) -> List[str]:
        lines = self.head(", ".join(self.node_state()))
        shown = [(self.names.show(pid), process) for pid, process in self.leading(rows)]
        width = min(WIDEST, max((len(name) for name, _ in shown), default=0))
        for name, process in shown:
            growth = ("-" if process.growth < 0 else "+" if process.growth else "") + size(abs(process.growth))
            lines.append(f"{process.reductions:>10}{process.queue:>10}{size(process.memory):>10}{growth:>10}  "
                         f"{name:<{width}}  {clean(process.state)} {clean(process.function)}".rstrip())
        return lines

    def totals(self) -> Dict[str, Any]:
        """Returns the state of the whole node, from the counters that have arrived; None is unknown."""
        counters = self.counters
        used = [value for name, value in counters.items() if name.startswith("scheduler_utilization_")]
        has_grown = self.reductions is not None and self.before is not None and self.reductions >= self.before
        return {"processes": counters.get("processes"),
                "schedulers_percent": sum(used) / len(used) / 10 if used else None,
                "run_queue": counters.get("run_queue"), "memory_bytes": counters.get("memory_total"),
                "reductions": (self.reductions or 0) - (self.before or 0) if has_grown else None}

    def node_state(self) -> List[str]:
        """Returns the same as texts."""
        shown = {"processes": "{} processes", "schedulers_percent": "schedulers {:.0f} %", "run_queue": "run queue {}",
                 "memory_bytes": "memory {}", "reductions": "{} reductions"}
        return [shown[key].format(size(value) if key == "memory_bytes" else value)
                for key, value in self.totals().items() if value is not None]
