"""`dyntrace nodes`: the Erlang VMs of this host, and their consumers."""
import argparse
import collections
import contextlib
from typing import DefaultDict, Dict, List, Optional, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import plural, print_table
from dyntrace_command.node.library_builds import builds
from dyntrace_command.node.loading import is_bare, obstacle
from dyntrace_command.node.node import Node, is_guessed, nodes

TITLES = ("PID", "USER", "CONTAINER", "NODE", "OTP", "DYNTRACE", "CONSUMERS")


def show_nodes(options: argparse.Namespace) -> None:
    """Prints a row per node. A value that can't be read is shown as ?, with the reason below the table."""
    # Read now, because child processes that run as other users may not be able to.
    with contextlib.suppress(Failure):
        builds()
    found = nodes(more=obstacle)
    obstacles: Dict[int, Optional[str]] = {node.pid: node.more for node in found if is_bare(node)}
    if options.json:
        put({"nodes": [{**node.as_json(), "load": load_as_json(node, obstacles)} for node in found]})
        return
    if not found:
        raise Failure("no_vm")
    print_table([TITLES] + [row(node) for node in found])
    reasons: DefaultDict[str, List[str]] = collections.defaultdict(list)
    for node in found:
        for reason in sorted(set(node.unknown.values())):
            reasons[reason].append(str(node.pid))
    for reason, pids in reasons.items():
        print(f"? of {', '.join(pids)}: {reason}")
    for node in found:
        for withheld in node.status.withheld():
            print(f"{node.show()} can't trace {withheld}")
    for node in found:
        if node.without_stacks():
            print(f"`dyntrace profile` and `dyntrace stacks` can't show Erlang functions of {node.show()}: "
                  f"{node.without_stacks()}")
    able = [str(pid) for pid, why in obstacles.items() if why is None]
    if able:
        print(f"`dyntrace load` can load it into {', '.join(able)}")
    for why in filter(None, obstacles.values()):
        print(f"`dyntrace load` can't: {why}")


def load_as_json(node: Node, obstacles: Dict[int, Optional[str]]) -> Optional[Dict[str, object]]:
    """Returns whether the library can be loaded, and if not, why; None if the node has it or that is unknown."""
    if node.pid not in obstacles:
        return None
    why = obstacles[node.pid]
    return {"possible": why is None, "why": why}


def row(node: Node) -> Tuple[str, ...]:
    """Returns the cells of a node."""
    return (str(node.pid), node.user, cell(node, "container", node.container), name_cell(node),
            cell(node, "otp", node.otp), dyntrace_cell(node), consumers_cell(node))


def cell(node: Node, field: str, value: Optional[str]) -> str:
    """Returns the value, ? if it is unknown, or - if it is empty."""
    return "?" if field in node.unknown else value or "-"


def name_cell(node: Node) -> str:
    """Returns the node's name, with a mark if it is a guess from epmd or from the host's name."""
    return f"{node.node} (guess)" if is_guessed(node) else node.node


def dyntrace_cell(node: Node) -> str:
    """Returns the version of the loaded library."""
    if node.library is None:
        return "?" if "library" in node.unknown else "not loaded"
    change = " (removed)" if node.removed else " (replaced)" if node.replaced else ""
    return cell(node, "version", node.version) + change


def consumers_cell(node: Node) -> str:
    """Returns the number of enabled probes, and the users who record the node."""
    if node.consumers is None:
        return "?" if node.unknown.keys() & {"library", "consumers"} else "-"
    count = len(node.consumers.usdt)
    parts = [f"usdt: {plural(count, 'probe')}"] if count else []
    parts += [f"lttng: session of {user}" for user in node.consumers.lttng]
    return ", ".join(parts) or "-"
