"""A flight recorder that writes by itself: it keeps the latest events of some nodes in memory, and writes them when a
cause fires.

It is bounded whatever the nodes do: so many snapshots in an hour, so many on the disk, and after a thousand matches
without a snapshot the triggers are gone until the next one may be written. It waits for nodes to come back, but not for
the session daemon, whose end loses the events: whatever started this command may start it again.
"""
import contextlib
import select
import sys
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean, may_read_terminal, say
from dyntrace_command.common.trigger_causes import Cause, is_recorded
from dyntrace_command.common.trigger_rate import AtMost, Rate
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.files import RESERVE, check_room
from dyntrace_command.node.node import Node, nodes, status_now
from dyntrace_command.recording.session import Session, Wanted
from dyntrace_command.recording.snapshots import COUNTED_MOST, Place, Snapshot, snapshots
from dyntrace_command.recording.triggers import Fired, Triggers
from dyntrace_command.tracers.lttng import daemon_of

# Signals interrupt no select (PEP 475), so this is how long they wait.
STEP_S = 0.2
POLL_S = 1
# Seconds in which a node that has ended is looked for at each poll, then between two looks: each reads all of /proc.
SOON_S, SELDOM_S = 10, 5
# A node that can trace what is wanted does so after this time.
FOLLOWS_S = 6

NAMELESS = ("nonode@nohost", "?")

# The cause of a snapshot that somebody has asked for.
ASKED = "asked"


class When(NamedTuple):
    """When to write: the causes, how often at most, and how many snapshots are kept."""
    causes: Sequence[Cause]
    at_most: AtMost
    keep: int


def keep_recording(chosen: Sequence[Node], wanted: Wanted, when: When, seconds: Optional[float],
                   ready: Callable[[], None]) -> None:
    """Records until a signal, or for that many seconds. `ready` is called once triggers are set."""
    assert wanted.folder
    place = Place(wanted.folder, when.keep)
    with place.alone(), Interrupted() as interrupted, daemon_of(chosen) as daemon:
        place.open_to(daemon.uid)
        with Session(daemon, chosen, wanted) as session:
            check_room(place.path, session.buffers + RESERVE)
            triggers = Triggers(daemon, session.name, when.causes, len(chosen))
            triggers.is_interrupted = interrupted.happened.is_set
            try:
                triggers.set(session.nodes)
                recorder = Recorder(session, triggers, place, when)
                say(recorder.introduction())
                ready()
                recorder.run(interrupted, seconds)
            finally:
                triggers.end()


class Recorder:
    """A session of LTTng in memory, with its triggers and its folder."""

    def __init__(self, session: Session, triggers: Triggers, place: Place, when: When) -> None:
        self.session, self.triggers, self.place, self.when = session, triggers, place, when
        self.rate = Rate(when.at_most, [one.time for one in snapshots(place.path)])
        self.last: Optional[Snapshot] = None
        self.refused = ""
        self.more = 0
        self.missing: List[Node] = []
        self.gone = 0
        # When a node has ended, and when it was looked for.
        self.ended = self.sought = 0.0
        # The nodes that have not said yet that they trace, and since when they are recorded.
        self.unsure: Dict[Node, float] = {node: time.monotonic() for node in session.nodes}

    def introduction(self) -> str:
        """Returns what it does, as a sentence."""
        names = ", ".join(node.show() for node in self.session.nodes)
        causes = ", ".join(cause.name for cause in self.when.causes)
        return f"the latest events of {names} are kept in memory; written to {self.place.path} at each: {causes}"

    def run(self, interrupted: Interrupted, seconds: Optional[float]) -> None:
        """Writes snapshots until a signal, until the time is over, or until no node is left."""
        began = polled = time.monotonic()
        while not interrupted.happened.is_set() and self.gone < len(self.session.nodes) \
                and (seconds is None or time.monotonic() - began < seconds):
            terminal = [0] if may_read_terminal() else []
            ready, _, _ = select.select(self.triggers.streams() + terminal, [], [], STEP_S)
            if 0 in ready and not sys.stdin.readline():
                return
            if 0 in ready or interrupted.snapshot.is_set():
                interrupted.snapshot.clear()
                self.write(ASKED, self.session.nodes[0].node, "")
            # What stops a service may stop the program that the daemon notifies, too.
            if set(ready) - {0} and not interrupted.happened.is_set():
                for fired in self.triggers.fired():
                    self.note(fired)
            if time.monotonic() - polled >= POLL_S:
                polled = time.monotonic()
                self.poll()
        self.save_count()

    def note(self, fired: Fired) -> None:
        """Writes, or counts if it may not."""
        if self.rate.allows(time.time()):
            self.write(fired.cause.name, fired.node.node, fired.text)
            return
        self.more += 1
        if self.more >= COUNTED_MOST:
            self.triggers.pause()

    def write(self, cause: str, node: str, text: str) -> None:
        """Writes a snapshot. A full disk ends nothing: the next cause may find room."""
        self.save_count()
        now, self.last, self.more = time.time(), None, 0
        self.rate.tries(now)
        try:
            check_room(self.place.path, self.session.buffers + RESERVE)
            with self.place.begun(cause, clean(node), now, clean(text)) as snapshot:
                self.session.take_snapshot(snapshot.recording())
                snapshot.save()
        except (Failure, OSError) as failure:
            self.refuse(cause, failure)
            return
        self.last, self.refused = snapshot, ""
        self.rate.took(now)
        self.place.prune()
        tell(f"{snapshot.show()}\n  {snapshot.path}")
        if self.rate.is_spent():
            tell(f"  no more until the oldest does not count any more: at most {self.when.at_most.show()}")

    def refuse(self, cause: str, failure: Exception) -> None:
        """Says, once, why nothing is written."""
        key, text = (failure.key, failure.text) if isinstance(failure, Failure) else (str(failure), str(failure))
        if key != self.refused:
            tell(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  no snapshot of {cause}, nor of what follows\n{text}")
        self.refused = key

    def save_count(self) -> None:
        """Writes down how many matches the last snapshot stands for."""
        if self.last and self.more != self.last.more:
            self.last = self.last._replace(more=self.more)
            with contextlib.suppress(OSError):
                self.last.save()

    def poll(self) -> None:
        """Looks after nodes that end, come back, or do not trace, and sets triggers again that a storm has ended."""
        self.save_count()
        now = time.monotonic()
        if self.triggers.has_ended():
            # Its output may be kept open by another program.
            self.triggers.fired()
        for node in self.session.nodes_that_ended():
            self.unsure.pop(node, None)
            if node.node in NAMELESS:
                self.gone += 1
                tell(f"dyntrace: {node.show()} has ended, and has no name by which it could be found again")
            else:
                self.missing.append(node)
                self.ended = now
                tell(f"dyntrace: {node.show()} has ended; it is recorded again when it is back")
        if self.missing and (now - self.ended < SOON_S or now - self.sought >= SELDOM_S):
            self.sought = now
            self.find_again()
        if not self.triggers.are_set and self.rate.allows(time.time()):
            self.triggers.set(self.session.nodes)
        for node, began in list(self.unsure.items()):
            if now - began > FOLLOWS_S:
                del self.unsure[node]
                self.tell_untraced(node)

    def find_again(self) -> None:
        """Records nodes of the same name and user in place of those that have ended."""
        found = {(node.node, node.user): node for node in nodes() if node.has_lttng and node.status.name()}
        back = [(old, found[old.node, old.user]) for old in self.missing if (old.node, old.user) in found]
        for old, new in back:
            self.missing.remove(old)
            self.session.exchange(old, new)
        if back:
            self.triggers.set(self.session.nodes)
        for _, new in back:
            self.unsure[new] = time.monotonic()
            tell(f"dyntrace: {new.show()} is back, and recorded again")

    def tell_untraced(self, node: Node) -> None:
        """Says which causes the node can't notice."""
        status = status_now(node)
        if status.said("following") == "off":
            tell(f"dyntrace: {node.show()} traces nothing: in the node, type `dyntrace:follow(#{{}}).`")
        events = [cause.event for cause in self.when.causes]
        lines = status.withheld(["withheld"]) + [line for line in status.withheld(["usual"])
                                                 if is_recorded(line.split(":")[0], events)]
        for line in lines:
            tell(f"dyntrace: {node.show()} can't trace {line}")


def tell(text: str) -> None:
    """Prints a message, into a file on a disk that may be full."""
    with contextlib.suppress(OSError):
        say(text)
