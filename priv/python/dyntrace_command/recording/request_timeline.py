"""A request as a timeline: its steps in the order of their times, which process waited and which worked."""
import collections
import re
from typing import Callable, DefaultDict, Dict, List, NamedTuple, Optional, Tuple

from dyntrace_command.common.tables import rows
from dyntrace_command.common.terminal import clean
from dyntrace_command.tracers.bpftrace import STRING_BYTES, Names


class Step(NamedTuple):
    """An event of a request, as the programs `label` and `next` print it. `serial` is 0 without a token."""
    kind: str
    ns: int
    source: str
    target: str
    serial: int
    text: str

    def message(self) -> Tuple[str, object]:
        """Returns what identifies a message both where it is sent and where it is received. At the sender, the receiver
        may be a name or an alias, and more of the text is known."""
        return self.source, self.serial or self.text.encode()[:STRING_BYTES]


def step_of(fields: List[str]) -> Optional[Step]:
    """Parses a printed line; returns None if it is not a step."""
    if len(fields) < len(Step._fields):
        return None
    kind, ns, source, target, serial, *text = fields
    # A malicious library may emit tabs in any field.
    if kind not in Timeline.LINES and kind != "more" or not (ns.isdecimal() and serial.isdecimal()):
        return None
    if kind == "send" and serial == "0" and len(text) > 1:
        # The second piece belongs to this message only if the first one is full.
        text = ["".join(text[:2]) if len(text[0].encode()) == STRING_BYTES else text[0]]
    return Step(kind, int(ns), source, target, int(serial), "\t".join(text))


def from_its_begin(steps: List[Step]) -> List[Step]:
    """Sorts by time, and drops receipts before the first message: they belong to a request that had already begun."""
    steps = sorted(steps, key=lambda step: step.ns)
    first = next((at for at, step in enumerate(steps) if step.kind != "receive"), 0)
    return steps[first:]


def whole_texts(steps: List[Step]) -> List[Step]:
    """Returns the steps, each text joined with its second piece."""
    more = {(step.source, step.serial): step.text for step in steps if step.kind == "more"}
    return [step._replace(text=step.text + more.get((step.source, step.serial), ""))
            if step.kind == "send" and len(step.text.encode()) == STRING_BYTES else step
            for step in steps if step.kind != "more"]


# Messages of OTP's behaviours: patterns, and the words for them.
OTP_MESSAGES = [(re.compile(pattern, re.ASCII), word) for word, pattern in rows("otp_messages")]


def readable(text: str) -> str:
    """Returns a message without the wrapper of OTP's behaviours."""
    for pattern, word in OTP_MESSAGES:
        found = pattern.match(text)
        if found:
            return f"{word} {clean(found.group(1)) or '...'}"
    return clean(text)


class Line(NamedTuple):
    """A step's line: the ns that its process waited or worked, how deep in the request it is, and the step, whose
    target is the receiver if that is known."""
    waited: Optional[int]
    worked: Optional[int]
    depth: int
    text: str
    step: Step


class Timeline:
    """Follows the steps: which process waits or works, since when, and how deep in the request it is."""

    def __init__(self, names: Names, steps: List[Step]) -> None:
        self.names = names
        # At the sender, the receiver may be a name or an alias.
        self.receivers: DefaultDict[object, List[str]] = collections.defaultdict(list)
        for step in steps:
            if step.kind == "receive":
                self.receivers[step.message()].append(step.target)
        # Times, in ns, of messages that have not been received yet.
        self.sent: DefaultDict[object, List[int]] = collections.defaultdict(list)
        # By process: the time since which it works, in ns; its depth; the ns that it has waited and worked.
        self.working: Dict[str, int] = {}
        self.depth: Dict[str, int] = {}
        self.waited: Dict[str, int] = {}
        self.worked: Dict[str, int] = {}

    def add(self, step: Step) -> Line:
        """Returns the step's line."""
        return self.LINES[step.kind](self, step)

    def of_send(self, step: Step) -> Line:
        """The sender has worked until now."""
        depth = self.depth.setdefault(step.source, 0)
        self.sent[step.message()].append(step.ns)
        receivers = self.receivers[step.message()]
        target = receivers.pop(0) if receivers else step.target
        self.depth.setdefault(target, depth + 1)
        return Line(None, self.works(step.source, step.ns), depth,
                    f"{self.names.show(step.source)} -> {self.names.show(target)}: {readable(step.text)}",
                    step._replace(target=target))

    def of_receive(self, step: Step) -> Line:
        """The message has waited until now, and the receiver starts to work."""
        depth = self.depth.setdefault(step.target, self.depth.get(step.source, 0) + 1)
        sent_at = self.sent[step.message()][:1]
        del self.sent[step.message()][:1]
        waited = step.ns - sent_at[0] if sent_at else None
        self.working[step.target] = step.ns
        self.waited[step.target] = self.waited.get(step.target, 0) + (waited or 0)
        unseen = "" if sent_at else f" from {self.names.show(step.source)}: {readable(step.text)} (send not seen)"
        return Line(waited, None, depth, f"{self.names.show(step.target)} receives{unseen}", step)

    def of_print(self, step: Step) -> Line:
        """`seq_trace:print`."""
        return Line(None, self.works(step.source, step.ns), self.depth.setdefault(step.source, 0),
                    f"{self.names.show(step.source)} says {clean(step.text)}", step)

    def of_call(self, step: Step) -> Line:
        """The request begins."""
        self.working[step.source] = step.ns
        return Line(None, None, self.depth.setdefault(step.source, 0),
                    f"{self.names.show(step.source)} calls {clean(step.text)}", step)

    def of_return(self, step: Step) -> Line:
        """The request ends."""
        return Line(None, self.works(step.source, step.ns), 0,
                    f"{self.names.show(step.source)} returns from {clean(step.text)}", step)

    LINES: "Dict[str, Callable[[Timeline, Step], Line]]" = {
        "send": of_send, "receive": of_receive, "print": of_print, "call": of_call, "return": of_return}

    def works(self, pid: str, now: int) -> Optional[int]:
        """Returns the ns since the process received a message or made its previous step; None if neither was seen."""
        since = self.working.get(pid)
        self.working[pid] = now
        if since is None:
            return None
        self.worked[pid] = self.worked.get(pid, 0) + now - since
        return now - since

    def totals(self) -> List[Tuple[int, int, str]]:
        """Returns [(waited, worked, process)], the longest first."""
        pids = list(dict.fromkeys([*self.waited, *self.worked]))
        return sorted(((self.waited.get(pid, 0), self.worked.get(pid, 0), pid) for pid in pids),
                      key=lambda total: -(total[0] + total[1]))


# Lines about missing steps.
MISSING_MOST = 5


def unreceived(steps: List[Step]) -> List[Step]:
    """Returns the messages that were sent, but whose receipt is not among the steps."""
    received = collections.Counter(step.message() for step in steps if step.kind == "receive")
    found = []
    for step in steps:
        if step.kind == "send":
            received[step.message()] -= 1
            found += [step] if received[step.message()] < 0 else []
    return found


def missing(steps: List[Step], names: Names) -> List[str]:
    """Returns lines about steps whose end was not seen: a message that still waits, went to another node or was not
    delivered, and a function that has not returned."""
    found = [f"{names.show(step.source)} -> {names.show(step.target)}: {readable(step.text)}: not received"
             for step in unreceived(steps)]
    kinds = {step.kind: step for step in steps}
    if "call" in kinds and "return" not in kinds:
        found.append(f"{names.show(kinds['call'].source)} has not returned from {clean(kinds['call'].text)}")
    more = len(found) - MISSING_MOST
    return found[:MISSING_MOST] + ([f"and {more} more"] if more > 0 else [])


def timeline_as_json(steps: List[Step], names: Names) -> Dict[str, object]:
    """Returns the same as `show_timeline` as values."""
    timeline = Timeline(names, steps)
    return {
        "steps": [{"kind": line.step.kind, "at_ns": line.step.ns - steps[0].ns, "waited_ns": line.waited,
                   "worked_ns": line.worked, "depth": line.depth, "source": names.as_json(line.step.source),
                   "target": names.as_json(line.step.target) if line.step.kind in ("send", "receive") else None,
                   "text": readable(line.step.text)} for line in map(timeline.add, steps)],
        "unfinished": missing(steps, names),
        "totals": [{"process": names.as_json(pid), "waited_ns": waited, "worked_ns": worked}
                   for waited, worked, pid in timeline.totals()]}


def show_timeline(steps: List[Step], names: Names, inferred: bool) -> str:
    """Returns a line per step, then what is missing, then the sums per process."""
    timeline = Timeline(names, steps)
    mark = "  (inferred: no token of seq_trace)" if inferred else ""
    lines = [f"{'at us':>10}{'waited':>10}{'worked':>10}{mark}"]
    for line in map(timeline.add, steps):
        lines.append(f"{microseconds(line.step.ns - steps[0].ns)}{microseconds(line.waited)}"
                     f"{microseconds(line.worked)}  {'  ' * line.depth}{line.text}")
    left = missing(steps, names)
    lines += [*(["", "unfinished at the end:"] if left else []), *(f"  {line}" for line in left)]
    lines += ["", f"{'waited':>10}{'worked':>10}  total, us"]
    lines += [f"{microseconds(waited)}{microseconds(worked)}  {names.show(pid)}"
              for waited, worked, pid in timeline.totals()]
    return "\n".join(lines)


def microseconds(ns: Optional[int]) -> str:
    """Returns a cell of ten characters."""
    return f"{'' if ns is None else ns // 1000:>10}"
