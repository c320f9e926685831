"""A flight recorder with causes: it keeps the latest events of some nodes in memory, and writes a snapshot when a cause
fires.

It is bounded regardless of what the nodes do: it limits the snapshots per hour and on the disk, and after a thousand
matches without a snapshot it removes the triggers until it may write the next one. It waits for nodes that end to come
back. It ends with the session daemon, because the events in memory are lost; a service manager can start it again.
"""
import contextlib
import select
import sys
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from dyntrace_command.common.contents import hide
from dyntrace_command.common.events import matching
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.functions import Function
from dyntrace_command.common.terminal import clean, may_read_terminal, say
from dyntrace_command.common.trigger_causes import END, REQUESTED, Cause
from dyntrace_command.common.trigger_levels import HOST_MEMORY, Level, Watched
from dyntrace_command.common.trigger_rate import AtMost, Rate
from dyntrace_command.host.cgroups import memory_limit
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.files import RESERVE, check_room
from dyntrace_command.node.node import Node, check_traced, nodes, status_now
from dyntrace_command.node.stack_text import notes, shown, stacks_of
from dyntrace_command.recording.node_end import End
from dyntrace_command.recording.session import TRACED_S, Session, Wanted
from dyntrace_command.recording.snapshots import COUNTED_MOST, RecorderFolder, Snapshot, snapshots
from dyntrace_command.recording.triggers import Fired, Triggers
from dyntrace_command.tracers.lttng import daemon_of

# Signals do not interrupt select (PEP 475), so they are handled after this time.
STEP_S = 0.2
POLL_S = 1
# A node that has ended is searched for at each poll for SOON_S seconds, then every SELDOM_S: each search reads all of
# /proc.
SOON_S, SELDOM_S = 10, 5
# Seconds after which a node traces all that it can trace; after which that is checked again for calls, whose patterns
# the node clears if there are too many.
FOLLOWS_S, AGAIN_S = 6, 60

NAMELESS = ("nonode@nohost", "?")

# The events whose source has another name (dyntrace_sources.erl).
SOURCES = {"crash_report": "log"}

# The cause of a snapshot that the user requested.
ASKED = "asked"


class When(NamedTuple):
    """When to write: the causes in addition to the end of a node, the rate limit, and the number of snapshots to
    keep."""
    causes: Sequence[Cause]
    at_most: AtMost
    keep: int


def keep_recording(chosen: Sequence[Node], wanted: Wanted, when: When, seconds: Optional[float],
                   ready: Callable[[], None]) -> None:
    """Records until a signal, or for that many seconds. Calls `ready` once triggers are set."""
    assert wanted.folder
    place = RecorderFolder(wanted.folder, when.keep)
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


class Match(NamedTuple):
    """What a snapshot is written for: the cause, the node, a text, the time; and the stacks of the node, or the node
    whose stacks are read after the snapshot."""
    cause: str
    node: str
    text: str
    time: float
    stacks: str = ""
    stacks_from: Optional[Node] = None


class Recorder:
    """An LTTng session in memory, with its triggers and its folder."""

    def __init__(self, session: Session, triggers: Triggers, place: RecorderFolder, when: When) -> None:
        self.session, self.triggers, self.place, self.when = session, triggers, place, when
        earlier = snapshots(place.path)
        self.rate = Rate(when.at_most, [one.time for one in earlier if one.cause != END])
        # The last events of a node are not to be lost because of the snapshots before.
        self.rate_of_ends = Rate(when.at_most, [one.time for one in earlier if one.cause == END])
        self.last: Optional[Snapshot] = None
        self.refused = ""
        self.more = 0
        # The snapshot that is due when processes have been traced for a while, and that monotonic time.
        self.pending: Optional[Tuple[Match, float]] = None
        self.missing: List[Node] = []
        self.gone = 0
        # When the last node ended, and when nodes were last searched for.
        self.ended = self.sought = 0.0
        # The nodes whose status is to be checked, since when they are recorded, and what was said about them.
        self.unsure: Dict[Node, Tuple[float, Set[str]]] = {node: (time.monotonic(), set()) for node in session.nodes}
        self.watched: Dict[Tuple[Level, Node], Watched] = {}

    def introduction(self) -> str:
        """Returns a description, as a sentence."""
        names = ", ".join(node.show() for node in self.session.nodes)
        causes = ", ".join([*(cause.name for cause in self.when.causes if cause != REQUESTED), END])
        calls = ", ".join(function.show() for function in self.functions())
        always = f", but calls of {calls} always" if calls else ""
        only = f"\nprocesses are traced only for {TRACED_S} s after a cause{always}" \
            if self.session.wanted.traces_on_demand else ""
        return f"the latest events of {names} are kept in memory; written to {self.place.path} at each: {causes}{only}"

    def functions(self) -> List[Function]:
        """Returns the functions whose calls are causes."""
        return [cause.function for cause in self.when.causes if cause.function]

    def run(self, interrupted: Interrupted, seconds: Optional[float]) -> None:
        """Writes snapshots until a signal, until the time is over, or until no node is left."""
        began = polled = time.monotonic()
        while not interrupted.happened.is_set() and self.gone < len(self.session.nodes) \
                and (seconds is None or time.monotonic() - began < seconds):
            terminal = [0] if may_read_terminal() else []
            ends = self.session.ends()
            ready, _, _ = select.select([*self.triggers.streams(), *terminal, *ends], [], [], STEP_S)
            if 0 in ready and not sys.stdin.readline():
                break
            if 0 in ready or interrupted.snapshot.is_set():
                interrupted.snapshot.clear()
                self.begin(Match(ASKED, self.session.nodes[0].node, "", time.time()))
            # The signal that stops this command may also end the program that receives notifications.
            if set(ready) - {0, *ends} and not interrupted.happened.is_set():
                for fired in self.triggers.fired():
                    self.note(fired)
            if set(ready) & set(ends) or time.monotonic() - polled >= POLL_S:
                polled = time.monotonic()
                self.poll()
            if self.pending and time.monotonic() >= self.pending[1]:
                self.write_pending()
        self.write_pending()
        self.save_count()

    def note(self, fired: Fired) -> None:
        """Handles a notification: a match, or a sample of a level, which matches only if the level lasts."""
        level = fired.cause.level
        text = self.compared(level, fired.node, fired.fields) if level else fired.text
        if text or not level:
            self.match(fired.cause, fired.node, text)

    def match(self, cause: Cause, node: Node, text: str, hangs: bool = False) -> None:
        """Begins a snapshot, or counts the match if there is one already or the limit is reached."""
        if not self.pending and self.rate.allows(time.time()):
            self.begin(Match(cause.name, node.node, text, time.time(), stacks_from=node if cause.level else None),
                       hangs)
            return
        self.more += 1
        if self.more >= COUNTED_MOST:
            self.triggers.pause()

    def compared(self, level: Level, node: Node, fields: Sequence[str]) -> str:
        """Returns a text if a level has lasted long enough. Any program of the node's user may have written the
        fields."""
        key = level, node
        if key not in self.watched:
            is_of_host = level.quantity.limit == HOST_MEMORY
            self.watched[key] = Watched(level, memory_limit(node.process) if is_of_host else None)
        with contextlib.suppress(ValueError, TypeError):
            name, value = fields
            return hide(self.watched[key].note(name, float(value), time.monotonic()))
        return ""

    def find_silent(self) -> None:
        """Writes a snapshot for nodes whose samples do not come any more."""
        for cause in self.when.causes:
            for node in self.session.nodes:
                watched = self.watched.get((cause.level, node)) if cause.level else None
                text = watched.silent(time.monotonic()) if watched and node not in self.missing else ""
                if text:
                    self.match(cause, node, text, hangs=True)

    def begin(self, match: Match, hangs: bool = False) -> None:
        """Writes a snapshot. If processes are traced on demand, they are traced for a while first, unless the node
        hangs."""
        if self.pending:
            return
        self.restart_count()
        if self.session.wanted.traces_on_demand and not hangs and self.has_room():
            due = self.session.begin_tracing()
            stacks = stacks_text(match.stacks_from) if match.stacks_from else ""
            self.pending = match._replace(stacks=stacks), due
        else:
            self.write(match, self.rate)

    def restart_count(self) -> None:
        """Saves the number of matches after the last snapshot, and counts those after the next one."""
        self.save_count()
        self.last, self.more = None, 0

    def has_room(self) -> bool:
        """Returns whether the disk has room for a snapshot: otherwise, tracing would only cost the node."""
        with contextlib.suppress(Failure, OSError):
            self.check_room()
            return True
        return False

    def check_room(self) -> None:
        """Raises Failure if the disk has no room for a snapshot."""
        check_room(self.place.path, self.session.buffers + RESERVE)

    def write_pending(self) -> None:
        """Writes the pending snapshot, if any."""
        if self.pending:
            self.write(self.pending[0], self.rate)
            self.pending = None
            self.session.trace(False)

    def write(self, match: Match, rate: Rate) -> None:
        """Writes a snapshot. If the disk is full, the recorder continues: there may be space at the next cause."""
        now = time.time()
        rate.tries(now)
        try:
            self.check_room()
            with self.place.begun(match.cause, clean(match.node), match.time, clean(match.text)) as snapshot:
                self.session.take_snapshot(snapshot.recording())
                if match.stacks_from:
                    snapshot.save_stacks(match.stacks or stacks_text(match.stacks_from))
                snapshot.save()
        except (Failure, OSError) as failure:
            self.refuse(match.cause, failure)
            return
        self.last, self.refused = snapshot, ""
        rate.took(now)
        self.place.prune()
        announce(f"{snapshot.show()}\n  {snapshot.path}")
        if rate.is_spent():
            announce(f"  no more snapshots until the limit allows one: at most {self.when.at_most.show()}")

    def refuse(self, cause: str, failure: Exception) -> None:
        """Reports, once, why snapshots are not written."""
        key, text = (failure.key, failure.text) if isinstance(failure, Failure) else (str(failure), str(failure))
        if key != self.refused:
            announce(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  no snapshot of {cause}, nor of later causes\n{text}")
        self.refused = key

    def save_count(self) -> None:
        """Saves the number of matches after the last snapshot."""
        if self.last and self.more != self.last.more:
            self.last = self.last._replace(more=self.more)
            with contextlib.suppress(OSError):
                self.last.save()

    def poll(self) -> None:
        """Handles nodes that end, come back, or do not trace, and restores triggers that were paused."""
        self.save_count()
        now = time.monotonic()
        if self.triggers.has_ended():
            # Another program may keep its output open.
            self.triggers.fired()
        for node, end in self.session.nodes_that_ended():
            self.note_end(node, end)
        if self.missing and (now - self.ended < SOON_S or now - self.sought >= SELDOM_S):
            self.sought = now
            self.find_again()
        if self.triggers.are_set:
            self.find_silent()
        elif not self.pending and self.rate.allows(time.time()):
            # Samples did not come meanwhile.
            self.watched.clear()
            self.triggers.set(self.session.nodes)
        for node, (began, said) in list(self.unsure.items()):
            if now - began > FOLLOWS_S:
                del self.unsure[node]
                texts = self.untraced(node)
                for text in texts:
                    if text not in said:
                        announce(text)
                if self.functions():
                    self.unsure[node] = now + AGAIN_S - FOLLOWS_S, said | set(texts)

    def note_end(self, node: Node, end: End) -> None:
        """Writes a snapshot with the last events of a node, before a new one overwrites them."""
        text = f"dyntrace: {node.show()} has ended, {end.how}"
        self.unsure.pop(node, None)
        if node.node in NAMELESS:
            self.gone += 1
            announce(f"{text}; it has no name, so it can't be found again")
        else:
            self.missing.append(node)
            self.ended = time.monotonic()
            announce(f"{text}; it is recorded again when it is back")
        self.write_pending()
        if self.rate_of_ends.allows(time.time()):
            self.restart_count()
            self.write(Match(END, node.node, end.how, time.time()), self.rate_of_ends)

    def find_again(self) -> None:
        """Replaces nodes that have ended by new ones of the same name and user."""
        found = {(node.node, node.user): node for node in nodes() if node.has_lttng and node.status.name()}
        back = [(old, found[old.node, old.user]) for old in self.missing if (old.node, old.user) in found]
        for old, new in back:
            self.missing.remove(old)
            self.session.exchange(old, new)
        if back:
            self.watched.clear()
            self.triggers.set(self.session.nodes)
        for _, new in back:
            self.unsure[new] = time.monotonic(), set()
            announce(f"dyntrace: {new.show()} is back, and recorded again")

    def untraced(self, node: Node) -> List[str]:
        """Returns messages about the causes that the node can't trace."""
        status, texts = status_now(node), []
        if status.said("following") == "off":
            texts.append(f"dyntrace: {node.show()} traces nothing: in the node, type `dyntrace:follow(#{{}}).`")
        events = [event for cause in self.when.causes for event in matching(cause.event)]
        # A node names the source of several events.
        needed = [*events, *(source for event, source in SOURCES.items() if event in events)]
        lines = status.withheld(["withheld"]) + [line for line in status.withheld(["usual"])
                                                 if line.split(":")[0] in needed]
        texts += [f"dyntrace: {node.show()} can't trace {line}" for line in lines]
        try:
            check_traced(node, self.functions(), status)
        except Failure as failure:
            texts.append(failure.text)
        return texts


def stacks_text(node: Node) -> str:
    """Returns the stacks of a node, or why they can't be read, as a text."""
    try:
        found = stacks_of(node)
    except Failure as failure:
        return f"{failure.text}\n"
    return "\n".join([*shown(found, node, is_file=True), "", *notes(found), ""])


def announce(text: str) -> None:
    """Prints a message; ignores errors, because the output may be a file on a full disk."""
    with contextlib.suppress(OSError):
        say(text)
