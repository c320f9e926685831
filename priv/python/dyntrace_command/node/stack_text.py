"""A snapshot of the stacks of a node, checked, and its text."""
import itertools
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.terminal import clean, plural
from dyntrace_command.host.sandbox import NO_ANSWER
from dyntrace_command.node.node import Node, check_readable
from dyntrace_command.node.stack_snapshot import read_snapshot

# Groups of stacks that are printed, and frames of each if all processes are.
GROUPS, FRAMES = 40, 30
# Bounds of what the child sends: numbers; characters of a name.
NUMBER_MOST, NAME_MOST = 1 << 63, 300

Frame = Tuple[str, str, int, int]


def stacks_of(node: Node, process: str = "") -> Dict[str, Any]:
    """Returns a snapshot of the node, with frames in place of their numbers; of a single process if one is named."""
    check_readable(node)
    try:
        found = read_snapshot(node, process)
    except (OSError, ValueError) as error:
        raise Failure("no_stacks", node=node.show(), why=clean(reason(error))) from None
    return checked(found, node)


def checked(found: Any, node: Node) -> Dict[str, Any]:
    """Returns the snapshot with frames in place of their numbers. The child that made it may have sent anything: other
    numbers are numbers afterwards, and texts still have to be cleaned."""
    try:
        frames = [(clean(str(name)), clean(str(file)), int(line)) for name, file, line in found["frames"]]
        check_numbers(found, "processes", "running", "inconsistent", "unread", "more_groups")
        found["schedulers"], found["groups"] = list(found["schedulers"]), list(found["groups"])
        for one in found["schedulers"]:
            check_present(one, "kind", "process", "state", "waits_in")
            check_numbers(one, "number", "queue")
            if one["stays"]:
                one["seconds"] = float(one["seconds"])
        for one in found["groups"]:
            check_present(one, "status", "consistent")
            check_numbers(one, "count", "queue", "longest")
            one["names"], one["pids"] = list(one["names"]), list(one["pids"])
            one["servers"] = [(clean(str(pid)), clean(str(name or "")), int(count))
                              for pid, name, count in one["servers"]]
        for one in [*found["schedulers"], *found["groups"]]:
            one["frames"] = [(*frames[number], int(times)) for number, times in one["frames"]]
        return dict(found)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError):
        raise Failure("no_stacks", node=node.show(), why=NO_ANSWER) from None


def check_present(of: Dict[str, Any], *keys: str) -> None:
    """Raises KeyError if one of these values is missing."""
    missing = set(keys) - set(of)
    if missing:
        raise KeyError(*missing)


def check_numbers(of: Dict[str, Any], *keys: str) -> None:
    """Makes these values integers; raises ValueError if one is too large."""
    of.update({key: int(of[key]) for key in keys})
    if any(abs(of[key]) >= NUMBER_MOST for key in keys):
        raise ValueError("a number is too large")


def notes(found: Dict[str, Any]) -> Iterator[str]:
    """Yields what is missing, and how many stacks are uncertain."""
    if found["running"]:
        many = "1 process was" if found["running"] == 1 else f"{found['running']} processes were"
        yield f"{many} running: a running process has the stack that it saved last"
    if found["inconsistent"]:
        yield f"{found['inconsistent']} of {found['processes']} stacks changed while they were read"
    if found["unread"]:
        yield f"{found['unread']} processes could not be read"


def name_of(scheduler: Dict[str, Any]) -> str:
    """Returns the registered name of the process that a scheduler runs, after a space; empty if it has none."""
    return f" {clean(str(scheduler['name'])[:NAME_MOST])}" if scheduler.get("name") else ""


def call_of(scheduler: Dict[str, Any]) -> str:
    """Returns the call in which a scheduler stays; empty if it does not."""
    return f" in {scheduler['frames'][0][0]}" if scheduler["stays"] and scheduler["frames"] else ""


def shown(found: Dict[str, Any], node: Node, process: str = "", is_file: bool = False) -> Iterator[str]:
    """Yields the lines of the output. A file has all groups, and no hints for a terminal."""
    if not process:
        yield f"stacks of {node.show()}: {found['processes']} processes"
        yield from of_schedulers(found["schedulers"])
    groups = found["groups"][:None if process or is_file else GROUPS]
    for group in groups:
        yield ""
        yield head(group)
        if group["servers"]:
            yield f"    awaits a reply from {servers_of(group)}"
        yield from lines_of(group["frames"], None if process else FRAMES)
    more = len(found["groups"]) - len(groups) + found["more_groups"]
    if more:
        yield ""
        hint = f"; --json lists {'the largest' if found['more_groups'] else 'all'}"
        yield plural(more, "more group") + ("" if is_file else hint)


def of_schedulers(schedulers: Sequence[Dict[str, Any]]) -> Iterator[str]:
    """Yields the lines of the schedulers. Adjacent idle ones share a line."""
    for (is_idle, kind), some in itertools.groupby(schedulers, lambda one: (is_idle_one(one), one["kind"])):
        several = list(some)
        if is_idle:
            yield ""
            yield f"{plural(len(several), 'idle ' + clean(str(kind)))}, run queue {queue_of(several)}"
            continue
        for one in several:
            yield ""
            yield f"{clean(str(kind))} {one['number']}, run queue {queue_of([one])}: {work(one)}"
            yield from lines_of(one["frames"], FRAMES)


def is_idle_one(scheduler: Dict[str, Any]) -> bool:
    """Returns whether a scheduler runs no process and its thread sleeps."""
    return not scheduler["process"] and scheduler["state"] == "S"


def queue_of(schedulers: Sequence[Dict[str, Any]]) -> str:
    """Returns the length of the run queues, or ? if it is unknown. Dirty schedulers of a kind share one."""
    lengths = [one["queue"] for one in schedulers]
    is_shared = str(schedulers[0]["kind"]).startswith("dirty")
    return "?" if min(lengths) < 0 else str(max(lengths) if is_shared else sum(lengths))


def work(scheduler: Dict[str, Any]) -> str:
    """Returns what a scheduler does."""
    where = clean(str(scheduler["waits_in"])) or "?"
    thread = "on a CPU" if scheduler["state"] == "R" else f"waits in the kernel ({where})"
    if not scheduler["process"]:
        return f"no process, {thread}"
    long = f"in the same call for at least {scheduler['seconds']:.2f} s" if scheduler["stays"] else "last saved stack"
    return f"{clean(str(scheduler['process']))}{name_of(scheduler)}, {thread}, {long}"


def head(group: Dict[str, Any]) -> str:
    """Returns the line above the stack of a group."""
    names = [clean(str(name)) for name in [*group["names"], *group["pids"][len(group["names"]):]]]
    more = group["count"] - len(names)
    who = ", ".join(names) + (f" and {more} more" if more > 0 else "")
    queue = ""
    if group["queue"]:
        queue = f", {plural(group['queue'], 'message')} queued"
        queue += f", at most {group['longest']} each" if group["count"] > 1 else ""
    state = "" if group["consistent"] else " (stack changed while it was read)" if group["status"] != "running" \
        else " (last saved stack)"
    return f"{group['count']} {clean(str(group['status']))}{state}{queue}: {who}"


def servers_of(group: Dict[str, Any]) -> str:
    """Returns the processes whose replies a group awaits, each with the number of those that await it, if not all."""
    return ", ".join(f"{pid} {name}".strip() + (f" ({count})" if count < group["count"] else "")
                     for pid, name, count in group["servers"])


def lines_of(frames: Sequence[Frame], most: Optional[int]) -> List[str]:
    """Returns the lines of a stack; if there are more than `most`, the middle is left out."""
    found = [f"    {name}" + (f"  {os.path.basename(file)}:{line}" if line else "")
             + (f"  ({times} times)" if times > 1 else "") for name, file, line, times in frames]
    if most and len(found) > most:
        found[most - most // 3:-(most // 3)] = [f"    ... {plural(len(found) - most, 'more line')}"]
    return found
