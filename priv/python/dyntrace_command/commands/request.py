"""`dyntrace request`: follows one request through processes, as a timeline.

With a seq_trace token the timeline is exact, because the token travels with the messages. Without one, the request is
inferred from the call of a function (request_inference.py).
"""
import argparse
import select
import time
from typing import Callable, Dict, List, NamedTuple, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.functions import ANY
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import say
from dyntrace_command.host.children import Interrupted
from dyntrace_command.node.node import Node, pick
from dyntrace_command.recording.request_inference import Request, inferred
from dyntrace_command.recording.request_timeline import (Step, from_its_begin, show_timeline, step_of,
                                                         timeline_as_json, whole_texts)
from dyntrace_command.tracers.bpftrace import Bpftrace, Names, begins_with, text

# A request has ended after QUIET_S seconds without a message. Events of other CPUs arrive within SETTLED_S. A label
# that is reused has no end, so a request is shown after STEPS_MOST events. Its steps are among TAKEN_MOST events.
QUIET_S = 2
SETTLED_S = 0.5
STEPS_MOST = 400
# bpftrace takes seconds to attach on a busy host, and the program up to five more until it is ready.
READY_S = 30
TAKEN_MOST = 10 * STEPS_MOST


class Awaited(NamedTuple):
    """The request to wait for: the bpftrace program with its placeholders, a function that finds the request among the
    steps, a description, and the failure if there is none."""
    program: str
    words: Dict[str, str]
    found: Callable[[List[Step]], Request]
    name: str
    key: str
    values: Dict[str, str]


def awaited(options: argparse.Namespace) -> Awaited:
    """Returns the request that the arguments select."""
    if options.next:
        name = options.next.show()
        entry = begins_with("arg1", f"{name}/") if options.next.arity == ANY else f'str(arg1) == "{text(name)}"'
        return Awaited("names+candidate_messages", {"ENTRY": entry}, inferred, f"a call of {name}", "no_call",
                       {"function": name, "term": options.next.erlang()})
    return Awaited("names+token_messages", {"LABEL": text(options.label)}, exact,
                   f"messages with the label {options.label}", "no_request", {"label": options.label})


def exact(steps: List[Step]) -> Request:
    """Returns the request with a token: all steps so far. No event marks its end."""
    return Request(from_its_begin(whole_texts(steps)), has_returned=True)


def request(options: argparse.Namespace) -> None:
    """Shows the next request."""
    node = pick(options.node)
    wanted, names = awaited(options), Names()
    steps, waited = collect(node, wanted, names, options.seconds)
    if not steps and not node.lives():
        raise Failure("node_gone", pid=node.pid, name=node.node)
    if not steps:
        raise Failure(wanted.key, **wanted.values, seconds=f"{waited:.0f}")
    is_inferred, is_cut = options.next is not None, len(steps) == STEPS_MOST
    if options.json:
        put({"node": node.node, "pid": node.pid, "inferred": is_inferred, "cut": is_cut,
             **timeline_as_json(steps, names)})
    else:
        print(show_timeline(steps, names, is_inferred))
    if is_cut:
        say(f"dyntrace: only the first {STEPS_MOST} events of the request are shown")


def collect(node: Node, wanted: Awaited, names: Names, seconds: float) -> Tuple[List[Step], float]:
    """Returns the steps of the request once it has ended, and for how many seconds bpftrace was ready."""
    taken: List[Step] = []
    found = Request([])
    with Bpftrace(node, wanted.program, **wanted.words) as bpftrace, Interrupted() as interrupted:
        is_ready = False
        ready = last = time.monotonic()
        while not interrupted.happened.is_set() and node.lives() \
                and time.monotonic() - last < patience(found, names, seconds) + (0 if is_ready else READY_S):
            if not select.select([bpftrace], [], [], 0.1)[0]:
                continue
            lines = [line.fields for line in bpftrace.lines()]
            if ["ready"] in lines and not is_ready:
                say(f"waiting for {wanted.name} in {node.show()}; Ctrl-C ends")
                is_ready, ready = True, time.monotonic()
                last = ready
            steps = [step_of(fields) for fields in lines if not names.learn(fields)]
            taken += [step for step in steps if step][:TAKEN_MOST - len(taken)]
            now = wanted.found(taken)
            if now != found:
                found, last = now, time.monotonic()
            if len(found.steps) >= STEPS_MOST:
                break
        waited = time.monotonic() - ready if is_ready else 0
    if bpftrace.lost:
        say(f"dyntrace: bpftrace has lost {bpftrace.lost} events; some may belong to this request")
    return found.steps[:STEPS_MOST], waited


def patience(found: Request, names: Names, seconds: float) -> float:
    """Returns how many seconds to wait for another step of the request, or for its names, which the node emits when it
    begins to follow."""
    if not found.steps:
        return seconds
    if not found.has_returned:
        return max(seconds, QUIET_S)
    return SETTLED_S if found.is_over and knows(names, found.steps) else QUIET_S


def knows(names: Names, steps: List[Step]) -> bool:
    """Returns whether all names are known."""
    return all(pid in names.of for step in steps for pid in (step.source, step.target) if pid.startswith("<"))
