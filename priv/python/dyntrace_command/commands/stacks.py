"""`dyntrace stacks`: what the schedulers of a node run, and the stacks of all its processes.

It reads the node's memory, so it works while the node answers no request.
"""
import argparse
from typing import Any, Dict

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import say
from dyntrace_command.node.node import Node, find_node
from dyntrace_command.node.stack_text import notes, shown, stacks_of


def stacks(options: argparse.Namespace) -> None:
    """Prints the stacks of a node."""
    node = find_node(options.node)
    found = stacks_of(node, options.process)
    if options.process and not found["groups"]:
        if found["unread"]:
            say(f"dyntrace: {found['unread']} processes could not be read")
        raise Failure("no_process", process=options.process, node=node.show())
    if options.json:
        put(as_json(found, node))
    else:
        print("\n".join(shown(found, node, options.process)))
    for note in notes(found):
        say(f"dyntrace: {note}")


def as_json(found: Dict[str, Any], node: Node) -> Dict[str, Any]:
    """Returns the object that --json prints; its keys are an interface."""
    for one in [*found["schedulers"], *found["groups"]]:
        one["frames"] = [{"function": name, "file": file or None, "line": line or None, "times": times}
                         for name, file, line, times in one["frames"]]
    for group in found["groups"]:
        group["servers"] = [{"pid": pid, "name": name or None, "count": count} for pid, name, count in group["servers"]]
    return {"node": node.node, "pid": node.pid, **{key: value for key, value in found.items() if key != "frames"}}
