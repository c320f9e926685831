"""Decides which steps belong to a request without a token, and when the request is over.

The program `next` prints candidate steps, separately for each CPU, so they arrive in any order. They are processed here
in the order of their times. A message belongs to the request if it was sent by one of its processes, after that process
had received one of its messages. A receipt belongs to it only with its message, which excludes messages that were
already in the mailbox. An answer to a call outside the request does not belong to it either.

The request is over when the function has returned, every message has been received, and no process is working on one. A
process works on a message until it sends one itself, as an answer or to continue. The receiver of a cast need not send
anything, so its end cannot be observed: the request therefore also ends after a long time without a step. A busy server
does other things later, which would otherwise be counted as part of the request.
"""
import collections
import re
from typing import Callable, Counter, Dict, List, NamedTuple, Optional, Set

from dyntrace_command.recording.request_timeline import Step

# The reference of a call, in the request and in its answer. Truncated text has no complete reference.
CALL = re.compile(r"^{'\$gen_call',{<[\d.]+>,(?:\[alias\|)?(#Ref<[\d.]+>)")
ANSWER = re.compile(r"^{(?:\[alias\|)?(#Ref<[\d.]+>)")

# After the return, the request is over when nothing happens for GAP_TIMES the time that it has taken so far, but at
# least GAP_NS.
GAP_TIMES, GAP_NS = 10, 100 * 1000 * 1000


class Request(NamedTuple):
    """The steps of a request, and its state: the function has returned; the request is over."""
    steps: List[Step]
    has_returned: bool = False
    is_over: bool = False


class Inference:
    """Processes the steps in the order of their times."""

    def __init__(self) -> None:
        # Processes whose messages belong to the request; those that are working on a message; the references of calls.
        self.members: Set[str] = set()
        self.busy: Set[str] = set()
        self.calls: Set[str] = set()
        # Messages that have not been received yet.
        self.under_way: Counter[object] = collections.Counter()
        self.root: Optional[str] = None
        self.has_returned = False

    def belongs(self, step: Step) -> bool:
        """Processes a step and returns whether it belongs to the request."""
        return step.kind in self.KINDS and self.KINDS[step.kind](self, step)

    def of_call(self, step: Step) -> bool:
        """The first call begins the request."""
        if self.root is not None:
            return False
        self.root = step.source
        self.members.add(step.source)
        return True

    def of_send(self, step: Step) -> bool:
        """A send by a process of the request belongs to it, unless it answers a call from outside."""
        call, answer = CALL.match(step.text), ANSWER.match(step.text)
        if step.source not in self.members or answer and answer.group(1) not in self.calls:
            return False
        if call:
            self.calls.add(call.group(1))
        self.under_way[step.message()] += 1
        self.busy.discard(step.source)
        return True

    def of_receive(self, step: Step) -> bool:
        """The receiver works on the message."""
        if self.under_way[step.message()] == 0:
            return False
        self.under_way[step.message()] -= 1
        self.members.add(step.target)
        self.busy.add(step.target)
        return True

    def of_return(self, step: Step) -> bool:
        """From now on, the process belongs to the request only if it receives another of its messages."""
        if self.has_returned:
            return False
        self.has_returned = True
        self.members.discard(step.source)
        self.busy.discard(step.source)
        return True

    KINDS: "Dict[str, Callable[[Inference, Step], bool]]" = {
        "call": of_call, "send": of_send, "receive": of_receive, "return": of_return}

    def is_over(self) -> bool:
        """Returns whether no message is under way and no process is working."""
        working = self.busy if self.has_returned else {"the function"}
        return not working and not any(self.under_way.values())


def inferred(steps: List[Step]) -> Request:
    """Returns the request found in these steps."""
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
    """Returns whether nothing has happened for a long time."""
    began, last = steps[0].ns, steps[-1].ns
    return now - last > max(GAP_NS, GAP_TIMES * (last - began))
