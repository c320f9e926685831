"""A wall-clock profile: the stacks of all processes, including waiting ones, sampled from the VM's memory."""
import collections
import contextlib
import time
from typing import Any, Counter, Dict, List, NamedTuple, Sequence, Tuple

from dyntrace_command.common.terminal import clean, plural
from dyntrace_command.host.children import Interrupted
from dyntrace_command.node.node import Node
from dyntrace_command.node.stack_snapshot import read_snapshot
from dyntrace_command.profiling.profile_tables import JSON_ROWS, ends, stack_kinds, stacks_as_json
from dyntrace_command.profiling.sample_paths import OTHERS, Frame, Located

# Seconds between snapshots, at least; and the pause after each, as a multiple of the time that it took: the command
# uses at most a tenth of a CPU.
PERIOD_S, PAUSE = 0.25, 9
# Distinct paths that are kept; frames of each, and repetitions of a frame.
KEPT_MOST, FRAMES_MOST, REPEATED_MOST = 20000, 1000, 100
# Rows of the table.
ROWS = 20


class Waiting(NamedTuple):
    """The snapshots of a node: how often each path was seen, how many snapshots were taken in how many seconds, and how
    many processes a snapshot misses on average because their memory could not be read, or not in time."""
    of: "Counter[Located]"
    snapshots: int
    seconds: float
    unread: int


def sample_all(node: Node, seconds: float, has_seconds: bool = False) -> Waiting:
    """Takes snapshots for some seconds, until Ctrl-C, or until the node ends; raises OSError or ValueError if its
    memory can't be read. `has_seconds`: the paths of each second are counted separately."""
    found: Counter[Located] = collections.Counter()
    began, snapshots, unread = time.monotonic(), 0, 0
    with Interrupted() as interrupted:
        while not interrupted.happened.is_set() and node.lives():
            start = time.monotonic()
            try:
                snapshot = read_snapshot(node)
            except (OSError, ValueError):
                if snapshots == 0 or node.lives():
                    raise
                break
            with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError):
                add(found, snapshot, int(start - began) if has_seconds else 0)
                unread += int(snapshot["unread"])
                snapshots += 1
            took = time.monotonic() - start
            left = began + seconds - time.monotonic()
            if left <= 0 or interrupted.happened.wait(min(left, max(PERIOD_S - took, PAUSE * took))):
                break
    if snapshots == 0:
        raise ValueError("no snapshot was taken")
    return Waiting(found, snapshots, max(time.monotonic() - began, 0.001), round(unread / snapshots))


def add(found: "Counter[Located]", snapshot: Any, second: int) -> None:
    """Counts the processes of a snapshot."""
    left_out = int(snapshot["processes"])
    for group in snapshot["groups"]:
        frames: List[Frame] = []
        for number, times in group["frames"]:
            name, file, line = snapshot["frames"][number]
            shown = min(int(times), REPEATED_MOST, FRAMES_MOST - len(frames))
            frames += [Frame(clean(str(name)), clean(str(file)), int(line))] * shown
        stack = "exact" if group["consistent"] else "last saved" if frames else "missing"
        path = Located(f"[{clean(str(group['status']))}{server_of(group)}]", "", tuple(frames[::-1]), second, "", stack)
        if path in found or len(found) < KEPT_MOST:
            found[path] += int(group["count"])
            left_out -= int(group["count"])
    if left_out > 0:
        found[Located(OTHERS, "", (), second, "", "")] += left_out


def server_of(group: Any) -> str:
    """Returns the server whose reply most processes of a group await, as text after their status; empty without one."""
    for pid, name, count in group["servers"][:1]:
        if 2 * int(count) > int(group["count"]):
            return f" for {clean(str(name or pid))}"
    return ""


class WaitingPath(NamedTuple):
    """A path: how many processes were seen on it, on average; what they do; its frames, the outermost first."""
    processes: float
    status: str
    path: Sequence[str]


def commonest(waiting: Waiting, most: int = ROWS) -> Tuple[List[WaitingPath], int]:
    """Returns the paths with the most processes, and the number of the others."""
    of: Counter[Any] = collections.Counter()
    for one, count in waiting.of.items():
        of[one.root, tuple(frame.name for frame in one.frames)] += count
    leading = sorted(of.items(), key=lambda item: (-item[1], item[0]))[:most]
    return [WaitingPath(count / waiting.snapshots, root.strip("[]"), frames)
            for (root, frames), count in leading], len(of) - len(leading)


def table(waiting: Waiting) -> List[List[str]]:
    """Returns the table, its header first."""
    rows, more = commonest(waiting)
    return [["PROCESSES", "DO", "PATH"],
            *([f"{row.processes:.1f}", row.status, " > ".join(ends(row.path))] for row in rows),
            *([["", "", plural(more, "more path")]] if more else [])]


def as_json(waiting: Waiting) -> Dict[str, Any]:
    """Returns the same as values."""
    rows, more = commonest(waiting, JSON_ROWS)
    return {"seconds": round(waiting.seconds, 3), "snapshots": waiting.snapshots,
            "unread_processes_per_snapshot": waiting.unread, "stacks": stacks_as_json(stack_kinds(waiting.of)),
            "paths": [row._asdict() for row in rows], "more_paths": more}
