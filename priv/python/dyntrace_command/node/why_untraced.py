"""Why no event has arrived from a node."""
import contextlib
from typing import Any, Dict, List, Optional

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.node.node import Node, status_now
from dyntrace_command.node.stack_snapshot import read_schedulers
from dyntrace_command.node.stack_text import NAME_MOST, call_of, checked, name_of
from dyntrace_command.node.vm_structures import KINDS

# Running processes that a failure names; attempts to see them: between two turns of a process, its scheduler has none.
NAMED, ATTEMPTS = 2, 3


def untraced(node: Node, seconds: object) -> Failure:
    """Returns the failure of a node from which no event has arrived."""
    return starved(node) or held_up(node, seconds) or Failure("not_started", seconds=seconds)


def starved(node: Node) -> Optional[Failure]:
    """Returns the failure of a node that can't open any more files; None if it can, or if that is unknown."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        if node.isolated(node.inside.free_descriptors) <= 0:
            return Failure("no_descriptors", pid=node.pid, name=node.node)
    return None


def held_up(node: Node, seconds: object) -> Optional[Failure]:
    """Returns the failure of a node whose application follows consumers, by its status, but whose schedulers run other
    processes while some wait; None if none waits, or if that is unknown."""
    if status_now(node).said("following") not in ("on", "paused"):
        return None
    busy: List[Dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError, Failure):
        busy = next(filter(None, (busy_schedulers(node) for _ in range(ATTEMPTS))), [])
    if not busy:
        return None
    waiting = sum(one["queue"] for one in busy)
    runs = ", ".join(f"{clean(str(one['process'])[:NAME_MOST])}{name_of(one)}{call_of(one)}" for one in busy[:NAMED])
    return Failure("held_up", seconds=seconds, node=node.show(), pid=node.pid,
                   runs=runs + (f" and {len(busy) - NAMED} more" if len(busy) > NAMED else ""),
                   waiting="1 process" if waiting == 1 else f"{waiting} processes")


def busy_schedulers(node: Node) -> List[Dict[str, Any]]:
    """Returns the normal schedulers that run a process while others wait for them; raises OSError, ValueError or
    Failure if that can't be read."""
    return [one for one in checked(read_schedulers(node), node)["schedulers"]
            if one["kind"] == KINDS[0] and one["process"] and one["queue"] > 0]
