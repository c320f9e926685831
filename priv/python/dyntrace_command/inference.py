"""Which steps belong to a request without a token, and when it is over.

The program `next` prints what may belong to it, and from each CPU on its own: steps come in any order. Here they are
looked at in the order of their times. A message belongs to the request if one of its processes has sent it, from when
that process had got one of its messages; a receipt only with its message, so what had waited in a mailbox before does
not. An answer to a call that is not of the request is not of it either.

The request is over when the function has returned, every message was received, and nobody works on one. A process works
on a message until it sends one itself, as an answer or to go on. Who gets a cast may send nothing for it, and nothing
tells when it has done it: a long time in which nobody of the request does anything is its end, too. A busy server does
other things later, which would be taken for the request's.
"""
import collections
import re
from typing import Callable, Counter, Dict, List, NamedTuple, Optional, Set

from dyntrace_command.timeline import Step

# The reference of a call, in the request and in its answer. A text that is cut has none.
CALL = re.compile(r"^{'\$gen_call',{<[\d.]+>,(?:\[alias\|)?(#Ref<[\d.]+>)")
ANSWER = re.compile(r"^{(?:\[alias\|)?(#Ref<[\d.]+>)")

# After the return, the request is over when nothing happens for so many times the time that it took until then, and at
# least so long.
GAP_TIMES, GAP_NS = 10, 100 * 1000 * 1000


class Request(NamedTuple):
    """The steps that belong to it, and how far it is: its function has returned; it is over."""
    steps: List[Step]
    has_returned: bool = False
    is_over: bool = False


class Inference:
    """Takes the steps in the order of their times."""

    def __init__(self) -> None:
        # Processes whose messages are of the request; those that work on a message; the references of calls.
        self.members: Set[str] = set()
        self.busy: Set[str] = set()
        self.calls: Set[str] = set()
        # Messages that are not received yet.
        self.under_way: Counter[object] = collections.Counter()
        self.root: Optional[str] = None
        self.has_returned = False

    def belongs(self, step: Step) -> bool:
        """Takes a step and returns whether it belongs to the request."""
        return step.kind in self.KINDS and self.KINDS[step.kind](self, step)

    def of_call(self, step: Step) -> bool:
        """The first one is the beginning."""
        if self.root is not None:
            return False
        self.root = step.source
        self.members.add(step.source)
        return True

    def of_send(self, step: Step) -> bool:
        """A process of the request goes on, unless it answers somebody else."""
        call, answer = CALL.match(step.text), ANSWER.match(step.text)
        if step.source not in self.members or answer and answer.group(1) not in self.calls:
            return False
        if call:
            self.calls.add(call.group(1))
        self.under_way[step.message()] += 1
        self.busy.discard(step.source)
        return True

    def of_receive(self, step: Step) -> bool:
        """The receiver works on it."""
        if self.under_way[step.message()] == 0:
            return False
        self.under_way[step.message()] -= 1
        self.members.add(step.target)
        self.busy.add(step.target)
        return True

    def of_return(self, step: Step) -> bool:
        """What its process does from now on belongs to the request only after another message of it."""
        if self.has_returned:
            return False
        self.has_returned = True
        self.members.discard(step.source)
        self.busy.discard(step.source)
        return True

    KINDS: "Dict[str, Callable[[Inference, Step], bool]]" = {
        "call": of_call, "send": of_send, "receive": of_receive, "return": of_return}

    def is_over(self) -> bool:
        """Returns whether nothing of the request is under way."""
        working = self.busy if self.has_returned else {"the function"}
        return not working and not any(self.under_way.values())


def inferred(steps: List[Step]) -> Request:
    """Returns the request that these steps have."""
    inference = Inference()
    found: List[Step] = []
    for step in sorted(steps, key=lambda step: step.ns):
        if inference.has_returned and is_gap(found, step.ns):
            return Request(found, True, True)
        if inference.belongs(step):
            found.append(step)
        if inference.is_over():
            return Request(found, True, True)
    return Request(found, inference.has_returned)


def is_gap(steps: List[Step], now: int) -> bool:
    """Returns whether nothing has happened for long."""
    began, last = steps[0].ns, steps[-1].ns
    return now - last > max(GAP_NS, GAP_TIMES * (last - began))
