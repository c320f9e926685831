"""Records nodes: finds the daemon with which they are registered, and records until the folder is complete. Also
inspects LTTng folders.

While LTTng records, its events can't be read: it writes their description when the session stops. Until then, the index
of the packets shows whether there are events.
"""
import contextlib
import os
import re
import select
import shutil
import struct
import sys
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import Progress, may_read_terminal, say, size
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.execution import Program, run
from dyntrace_command.host.files import MB, NEEDED_AT_START, RESERVE, check_room, has_room, own_folder
from dyntrace_command.host.trees import folder_size, remove_tree, tree
from dyntrace_command.node.node import Node, status_now
from dyntrace_command.node.why_untraced import untraced
from dyntrace_command.recording.node_end import End, ended
from dyntrace_command.recording.mirror import Mirror, mirrored
from dyntrace_command.recording.process_stacks import ProcessStacks, params_of, save
from dyntrace_command.recording.recording_contents import EXAMINED_S, examine, lost_text
from dyntrace_command.recording.session import TRACED_S, Session, Wanted, buffer_size
from dyntrace_command.tracers.lttng import daemon_of

# Seconds without an event after which the node is considered not to follow.
PATIENCE = 6
# Seconds for counting the events of a recording that a signal has ended.
EXAMINED_AFTER_SIGNAL_S = 60

# LTTng index files: a header, then an entry per packet, in big endian: offset, size, and the content's size in bits.
INDEX_HEADER, INDEX_ENTRY, INDEX_MAGIC = ">IIII", ">QQQ", 0xC1F1DCC1
# The maximum number of bytes to read of one index, and of all: the first packets are enough.
INDEX_MOST, INDEXES_MOST = MB, 32 * MB
# Seconds between two reads of samples.
POLL_S = 0.25
# Seconds for one inspection of a folder during the recording.
LOOK_S = 0.5
# Reading a recording takes a second per 10 MB or so. From this size on, a line says that it is read.
SAID_FROM = 20 * MB
# The header of a packet without events has about 90 bytes.
EMPTY_BITS = 128 * 8


class Recorded(NamedTuple):
    """The numbers of a recording, None if unknown: events, lost events as a text, bytes. `remarks` are messages about
    it. `findings` is a text, empty if the recording could not be read in time. `params`: what the viewer has to know in
    addition to the recording. `has_page`: whether the page is written."""
    events: Optional[int]
    lost: str
    bytes: Optional[int]
    remarks: List[str]
    findings: str = ""
    params: Dict[str, str] = {}
    has_page: bool = False

    def summary(self) -> str:
        """Returns the remarks, then the numbers as a line."""
        parts = [] if self.events is None else [f"{self.events} events"]
        parts.append(f"lost {self.lost}")
        if self.bytes is not None:
            parts.append(size(self.bytes))
        return "\n".join([*self.remarks, "recorded: " + ", ".join(parts)])


def file_stem(chosen: Sequence[Node]) -> str:
    """Returns nodes and time, for file names."""
    return "-".join([*(node.label() for node in chosen[:3]), time.strftime("%Y%m%d-%H%M%S")])


def record_nodes(chosen: Sequence[Node], wanted: Wanted, seconds: Optional[float], quiet: bool = False,
                 stacks: Optional[ProcessStacks] = None) -> Recorded:
    """Records for that many seconds, or until Ctrl-C, and reads these stacks at the end. The recording is complete,
    however it ends. Raises Failure if there are no events."""
    if wanted.folder:
        check_room(wanted.folder, NEEDED_AT_START)
    buffer_size(1)
    with Interrupted() as interrupted, daemon_of(chosen) as daemon:
        if wanted.folder and daemon.uid is not None:
            with own_folder(wanted.folder, is_empty=True) as descriptor:
                os.fchown(descriptor, daemon.uid, -1)
        with stacks or ProcessStacks([]) as read, Session(daemon, chosen, wanted) as session:
            return Watch(session, interrupted, read, quiet).follow(seconds)


class Watch:
    """Watches a session until its end, and shows progress every second."""

    def __init__(self, session: Session, interrupted: Interrupted, stacks: ProcessStacks, quiet: bool) -> None:
        self.session, self.interrupted, self.stacks, self.quiet = session, interrupted, stacks, quiet
        self.progress = Progress(quiet)
        self.began = self.stopped = time.monotonic()
        self.has_come = False
        # Why no event has arrived until now, although the recording goes on.
        self.held_up: Optional[Failure] = None
        # When the requested snapshot is written, in monotonic time.
        self.due: Optional[float] = None
        self.ends: List[End] = []

    def lasts(self) -> float:
        """Returns the seconds since the start."""
        return time.monotonic() - self.began

    def follow(self, seconds: Optional[float]) -> Recorded:
        """Watches until the time is over, until Ctrl-C, or until all nodes have ended."""
        if not self.quiet:
            say(self.introduction(seconds))
        try:
            while not self.interrupted.happened.is_set() and (seconds is None or self.lasts() < seconds) \
                    and self.session.watches:
                if seconds is not None:
                    self.stacks.sample(seconds - self.lasts())
                self.wait(1 if seconds is None else min(1, max(0, seconds - self.lasts())))
                self.look()
        finally:
            self.progress.end()
        if self.session.wanted.snapshot:
            self.session.take_snapshot()
        self.stacks.end(is_early=self.interrupted.happened.is_set())
        # The nodes report what they leave out only while they are recorded.
        withheld = [f"{node.show()} could not trace {text}" for node in self.session.nodes
                    for text in status_now(node).withheld(["withheld"])]
        self.session.stop()
        self.stopped = time.monotonic()
        return self.result(withheld, self.stacks.text())

    def introduction(self, seconds: Optional[float]) -> str:
        """Returns a sentence that says what is recorded, and until when."""
        names = ", ".join(node.show() for node in self.session.nodes)
        end = f"{seconds:g} s, or until Ctrl-C" if seconds else "until Ctrl-C"
        how = f"the latest events of {names} are kept in memory; a snapshot is written on Enter and at the end" \
            if self.session.wanted.snapshot else f"recording {names}"
        return f"{how}: {end}"

    def wait(self, seconds: float) -> None:
        """Waits for at most a second. In snapshot mode, Enter or SIGUSR1 writes the buffers."""
        if not self.session.wanted.snapshot:
            deadline, pause = time.monotonic() + seconds, POLL_S if self.stacks.samplers else seconds
            while not self.interrupted.happened.wait(min(pause, max(0, deadline - time.monotonic()))) \
                    and time.monotonic() < deadline:
                self.stacks.poll()
            return
        # Polls, because signals do not interrupt select (PEP 475).
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.interrupted.happened.is_set():
            terminal = [sys.stdin] if may_read_terminal() else []
            ready, _, _ = select.select(terminal, [], [], min(0.1, seconds))
            if ready and not sys.stdin.readline():
                return
            if ready or self.interrupted.snapshot.is_set():
                self.interrupted.snapshot.clear()
                self.begin_snapshot()
            if self.due is not None and time.monotonic() >= self.due:
                self.due = None
                self.write_snapshot()
                self.session.trace(False)

    def begin_snapshot(self) -> None:
        """Writes the buffers. If processes are traced on demand, they are traced for a while first."""
        if not self.session.wanted.traces_on_demand:
            self.write_snapshot()
        elif self.due is None:
            self.due = self.session.begin_tracing()
            if self.due > time.monotonic():
                say(f"processes are traced for {TRACED_S} s, then a snapshot is written")

    def write_snapshot(self) -> None:
        """Writes the buffers."""
        self.session.take_snapshot()
        say(f"snapshot written to {self.session.wanted.folder or self.session.wanted.url}")

    def look(self) -> None:
        """Checks the relay, the nodes, the daemon, the disk, and whether there are events."""
        session, folder = self.session, self.session.wanted.folder
        lasts = self.lasts()
        session.check_relay()
        for node, end in session.nodes_that_ended():
            self.progress.end()
            self.ends.append(end)
            say(f"dyntrace: {node.show()} has ended after {lasts:.1f} s, {end.how}; the recording has its events until "
                "then")
        lost = session.lost()
        if lost is None:
            raise Failure("daemon_gone", folder=folder or "FOLDER")
        parts = [f"{lasts:5.1f} s"] + ([] if session.wanted.snapshot else [f"lost {lost} events"])
        if folder and not session.wanted.snapshot:
            parts.append(size(folder_size(folder, LOOK_S)))
            if not has_room(folder):
                session.stop()
                check_room(folder, RESERVE, "; the recording ends here and is complete until now")
            self.has_come = self.has_come or lasts > PATIENCE and has_events(folder)
            if lasts > PATIENCE and not self.has_come:
                self.check_started(folder)
        self.progress.show("  ".join(parts))

    def is_late(self) -> bool:
        """Returns whether there is no more time to count events: some time after the first signal."""
        return self.interrupted.happened.is_set() and time.monotonic() - self.stopped > EXAMINED_AFTER_SIGNAL_S

    def result(self, withheld: List[str], stacks: str) -> Recorded:
        """Counts the events after the end of the recording."""
        params = {**ended(self.ends), **params_of(stacks)}
        lasts, lost, folder = self.lasts(), self.session.lost(), self.session.wanted.folder
        if folder is None:
            return Recorded(None, lost_text(lost), None, withheld)
        found, events, remarks, may_have = None, None, [], has_events(folder)
        # After a first Ctrl-C, the next one ends this command at once, so the page is written later.
        page = None if self.interrupted.happened.is_set() else self.session.wanted.page
        total = folder_size(folder)
        if not self.quiet and total > SAID_FROM:
            say(f"reading {size(total)}")
        try:
            with mirrored([folder], follows=False) as mirror:
                remarks = mirror.remarks
                # Events that were in memory have no index.
                found = examine(mirror, self.is_late, params, page) if may_have else None
                if page and may_have and found is None:
                    if self.interrupted.happened.is_set():
                        raise KeyboardInterrupt
                    # The page can't be written: writing it alone, later, shows why.
                    page, found = None, examine(mirror, self.is_late, params)
                events = found.events if found else count_events(mirror, self.is_late)
        except Failure as failure:
            if failure.key not in ("empty_folder", "no_recording"):
                # There may be a recording, but its user has changed the folder so that it can't be read.
                remarks, may_have = [f"dyntrace: the events are not counted: {failure.cause}"], True
        if not events and (events == 0 or not may_have):
            remove_tree(folder)
            raise self.held_up or self.untraced(lasts)
        if stacks:
            save(folder, stacks)
        return Recorded(events, found.lost_text() if found else lost_text(lost), total,
                        remarks + (found.said if found else []) + withheld, found.findings if found else "",
                        params, bool(found and page))

    def check_started(self, folder: str) -> None:
        """Ends a recording without events, unless dyntrace waits for a scheduler of the node."""
        if self.held_up:
            return
        failure = self.untraced(self.lasts())
        # Finding the reason takes time, in which events may have arrived.
        self.has_come = has_events(folder)
        if self.has_come:
            return
        if failure.key != "held_up":
            self.session.stop()
            remove_tree(folder)
            raise failure
        self.held_up = failure
        self.progress.end()
        say(f"dyntrace: {failure.cause}; the recording goes on")

    def untraced(self, lasts: float) -> Failure:
        """Returns the failure of a recording without events."""
        return untraced(self.session.nodes[0], f"{lasts:.0f}")


# -- A folder of LTTng -------------------------------------------------------------------------------------------------

def count_events(mirror: Mirror, give_up: Callable[[], object]) -> Optional[int]:
    """Returns the number of events of a complete recording, or None without babeltrace2 or if it takes too long."""
    if shutil.which("babeltrace2") is None:
        return None
    done = run(Program(["babeltrace2", *mirror.paths(), "--component=sink.utils.counter", "--params=step=+0"]),
               EXAMINED_S, give_up=give_up)
    found = re.findall(r"^ *(\d+) Event messages?", done.output, re.M) if done.status == 0 else []
    return int(found[-1]) if found else None


def has_events(folder: str) -> bool:
    """Returns whether a packet with events was written; a session writes twice per second. Returns True, too, if the
    folder is too large to search or was replaced."""
    left = INDEXES_MOST
    if not os.path.lexists(folder):
        return False
    with contextlib.suppress(OSError), tree(folder, seconds=LOOK_S) as walk:
        for entry in walk:
            if entry.is_file() and entry.name().endswith(".idx"):
                with contextlib.suppress(OSError):
                    index = entry.read(min(left, INDEX_MOST))
                    left -= len(index)
                    if left <= 0 or any(content > EMPTY_BITS for content in packets(index)):
                        return True
        return bool(walk.stopped)
    return True


def packets(index: bytes) -> Iterator[int]:
    """Yields the sizes of the packets' contents, in bits."""
    start, least = struct.calcsize(INDEX_HEADER), struct.calcsize(INDEX_ENTRY)
    if len(index) < start:
        return
    magic, _, _, length = struct.unpack_from(INDEX_HEADER, index)
    if magic == INDEX_MAGIC and length >= least:
        for at in range(start, len(index) - length + 1, length):
            yield struct.unpack_from(INDEX_ENTRY, index, at)[2]
