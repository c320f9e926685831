"""`dyntrace request`: one request through processes, as a timeline.

With a token of seq_trace what it shows is exact, since the token travels with the messages. Without one the request is
inferred in the kernel, from the call of a function (programs/next.bt).
"""
import argparse
import select
import time
from typing import Dict, List, NamedTuple

from dyntrace_command.bpftrace import Bpftrace, Names, begins_with, text
from dyntrace_command.children import Interrupted
from dyntrace_command.failures import Failure
from dyntrace_command.node import Node, pick
from dyntrace_command.terminal import say
from dyntrace_command.timeline import Step, from_its_begin, show_timeline, step_of, whole_texts

# Seconds without a message, after which a request has ended; and its events, after which it is shown as it is.
QUIET_S = 2
STEPS_MOST = 400


class Awaited(NamedTuple):
    """The request that is waited for: its program with the words, its name for people, the failure if none comes."""
    program: str
    words: Dict[str, str]
    name: str
    key: str
    values: Dict[str, str]


def awaited(options: argparse.Namespace) -> Awaited:
    """Returns what the arguments ask for."""
    if options.next:
        module, name = options.next.split(":", 1)
        return Awaited("next", {"ENTRY": begins_with("arg1", f"{options.next}/")}, f"a call of {options.next}",
                       "no_call", {"function": options.next, "module": module, "name": name})
    return Awaited("label", {"LABEL": text(options.label)}, f"messages with the label {options.label}",
                   "no_request", {"label": options.label})


def request(options: argparse.Namespace) -> None:
    """Shows the next request."""
    node = pick(options.node)
    wanted, names = awaited(options), Names()
    began = time.monotonic()
    steps = from_its_begin(whole_texts(collect(node, wanted, names, options.seconds)))
    if not steps and not node.lives():
        raise Failure("node_gone", pid=node.pid, name=node.node)
    if not steps:
        raise Failure(wanted.key, **wanted.values, seconds=f"{time.monotonic() - began:.0f}")
    print(show_timeline(steps, names, inferred=options.next is not None))


def collect(node: Node, wanted: Awaited, names: Names, seconds: float) -> List[Step]:
    """Returns the steps of the request once it has ended."""
    steps: List[Step] = []
    with Bpftrace(node, wanted.program, **wanted.words) as bpftrace, Interrupted() as interrupted:
        say(f"waiting for {wanted.name} in {node.show()}; Ctrl-C ends")
        last = time.monotonic()
        while not interrupted.happened.is_set() and not (has_ended(steps) and knows(names, steps)) \
                and time.monotonic() - last < (QUIET_S if steps else seconds) and node.lives():
            if not select.select([bpftrace], [], [], 0.2)[0]:
                continue
            for line in bpftrace.lines():
                step = None if names.learn(line.fields) else step_of(line.fields)
                if step and not has_ended(steps):
                    steps.append(step)
                    last = time.monotonic()
    return steps


def has_ended(steps: List[Step]) -> bool:
    """Returns whether the traced function has returned, or there are too many steps: a label that is used again and
    again has no end."""
    return len(steps) >= STEPS_MOST or any(step.kind == "return" for step in steps)


def knows(names: Names, steps: List[Step]) -> bool:
    """Returns whether all names are known. They may come after the request: the node tells them when it begins to
    follow."""
    return all(pid in names.of for step in steps for pid in (step.source, step.target) if pid.startswith("<"))
