"""An LTTng recording session: its channels, events and snapshots, and its removal however this command ends."""
import os
import re
import shutil
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.events import (EVENT_GROUPS, LIMITS, LIVES, NAMES, PROVIDER, SAMPLED_NAMES, TRACED_NAMES,
                                            UNTRACED, full_name, matching, of_groups)
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.functions import Function, event_filter
from dyntrace_command.common.terminal import say, size
from dyntrace_command.common.trigger_causes import Cause
from dyntrace_command.host.children import Guard
from dyntrace_command.host.execution import NO_ANSWER
from dyntrace_command.host.tools import tool
from dyntrace_command.node.node import Node
from dyntrace_command.recording.node_end import End, NodeWatch
from dyntrace_command.tracers.lttng import NETWORK_S, Lttng
from dyntrace_command.tracers.relay_link import RelayLink

CONTEXTS = ["vpid", "vtid", "procname"]

# LTTng writes the buffers twice per second, even if they are not full.
WRITE_US = 500000

# Buffers of a channel per CPU.
BUFFERS = 8

# The channel of a flight recorder with the events that require trace flags. It is disabled until a cause fires.
TRACED = "traced"
# How long a flight recorder traces processes after a cause, before it writes the snapshot.
TRACED_S = 5


class Wanted(NamedTuple):
    """What to record: the folder on this host or the URL of the relay; the groups of events (by default those of
    `of_groups`); whether to keep only the latest events, in memory; the functions whose calls are recorded (by default
    all); the causes, whose events are added; whether processes are traced only on demand (Session.trace); whether the
    node limits what tracing costs it; and the parameters of the page that is written of the recording (by default
    none)."""
    folder: Optional[str] = None
    url: Optional[str] = None
    groups: Sequence[str] = ()
    snapshot: bool = False
    functions: Sequence[Function] = ()
    causes: Sequence[Cause] = ()
    traces_on_demand: bool = False
    limits_cost: bool = False
    page: Optional[Dict[str, str]] = None


class Session:
    """A session that is destroyed at the end, even if this command is killed."""

    def __init__(self, daemon: Lttng, chosen: Sequence[Node], wanted: Wanted) -> None:
        self.daemon, self.nodes, self.wanted = daemon, chosen, wanted
        # Containers that send to one relay may have the same host name and process number.
        self.name = f"dyntrace-{os.getpid()}-{time.strftime('%H%M%S')}-{os.urandom(2).hex()}"
        self.of_session = ("-u", "-s", self.name)
        self.stopped = False
        self.relay = RelayLink(wanted.url) if wanted.url else None
        # The nodes that have not ended.
        self.watches: Dict[int, NodeWatch] = {}
        self.buffers = 0
        self.guard: Optional[Guard] = None

    def __enter__(self) -> "Session":
        self.watches = {node.pid: NodeWatch(node) for node in self.nodes}
        self.guard = Guard(self.daemon.program(tool("lttng"), "--no-sessiond", "destroy", self.name))
        try:
            self.daemon.do("create", self.name, *self.where(), *(["--snapshot"] if self.wanted.snapshot else []))
            self.fill()
            self.daemon.do("start", self.name)
        except BaseException:
            self.__exit__()
            if self.relay and self.relay.is_gone():
                raise self.relay.closed() from None
            raise
        return self

    def where(self) -> List[str]:
        """Returns the options of `lttng create`."""
        if self.wanted.url is None:
            return [f"--output={self.wanted.folder}"]
        # With --live, LTTng sends the description of the events during the recording. Without it, a recording whose
        # end is missing can't be read.
        return [f"--set-url={self.wanted.url}", *([] if self.wanted.snapshot else [f"--live={WRITE_US}"])]

    def fill(self) -> None:
        """Adds channels with events and contexts, and limits the session to the nodes."""
        channels = self.channels()
        of_session = self.of_session
        each = buffer_size(len(channels))
        self.buffers = all_buffers(each, len(channels))
        for channel, events in channels.items():
            self.daemon.do("enable-channel", *of_session, f"--subbuf-size={each}",
                           f"--num-subbuf={BUFFERS}", *self.mode(), channel)
            if channel == TRACED:
                self.trace(False)
            self.daemon.do("enable-event", *of_session, "-c", channel, ",".join(events))
            if self.wanted.functions and channel == "events":
                calls = with_provider(EVENT_GROUPS["calls"])
                self.daemon.do("enable-event", *of_session, "-c", channel, ",".join(calls),
                               f"--filter={event_filter(self.wanted.functions)}")
            if channel == "events":
                self.add_long_calls(channel)
            for context in CONTEXTS:
                self.daemon.do("add-context", *of_session, "-c", channel, "-t", context)
        pids = ",".join(str(node.pid) for node in self.nodes)
        self.daemon.do("track", *of_session, f"--vpid={pids}")

    def add_long_calls(self, channel: str) -> None:
        """Adds the calls that are causes, but not the other calls of these functions."""
        for cause in self.wanted.causes:
            if cause.function:
                self.daemon.do("enable-event", *self.of_session, "-c", channel, full_name(cause.event),
                               f"--filter={cause.filter}")

    def trace(self, is_on: bool) -> None:
        """Starts or stops recording the events that require trace flags."""
        self.daemon.do("enable-channel" if is_on else "disable-channel", *self.of_session, TRACED)

    def begin_tracing(self) -> float:
        """Starts recording the events that require trace flags; returns when to write them, in monotonic time."""
        try:
            self.trace(True)
            return time.monotonic() + TRACED_S
        except Failure:
            # Written at once, without these events. The daemon may record them later: that is stopped as usual.
            return time.monotonic()

    def mode(self) -> List[str]:
        """Returns a channel's options. The timer switches buffers that are not full; in memory, it would discard older
        ones."""
        if self.wanted.snapshot:
            return ["--overwrite"]
        return ["--discard"] if self.wanted.url else ["--discard", f"--switch-timer={WRITE_US}"]

    def channels(self) -> Dict[str, List[str]]:
        """Returns {channel: events}, without the events that have a filter."""
        if self.wanted.traces_on_demand:
            return self.channels_on_demand()
        events = of_groups(self.wanted.groups)
        self.add_causes(events, NAMES + LIVES)
        if self.wanted.functions:
            events = [name for name in events if name not in EVENT_GROUPS["calls"]]
        if self.wanted.limits_cost:
            # Processes that are spawned during a pause have no process_identity.
            events += LIMITS + SAMPLED_NAMES
        if self.wanted.snapshot:
            # Names have separate buffers, because the events of a busy node would soon overwrite them.
            return {"events": with_provider(LIVES + events), "names": with_provider(NAMES)}
        return {"events": with_provider(NAMES + LIVES + events)}

    def channels_on_demand(self) -> Dict[str, List[str]]:
        """Returns {channel: events} if processes are traced on demand. Each channel has separate buffers, so that the
        events of a busy node do not overwrite the samples of the time before."""
        names = SAMPLED_NAMES + [name for name in NAMES if name not in TRACED_NAMES]
        events = of_groups(UNTRACED)
        self.add_causes(events, names)
        traced = [name for name in TRACED_NAMES + LIVES + of_groups([]) if name not in names + events]
        return {"events": with_provider(events), "names": with_provider(names), TRACED: with_provider(traced)}

    def add_causes(self, events: List[str], others: Sequence[str]) -> None:
        """Adds the events of the causes, except long calls (`add_long_calls`). LTTng accepts each event once."""
        for cause in self.wanted.causes:
            if cause.function:
                continue
            events += [event for event in matching(cause.event) if event not in [*others, *events]]

    def lost(self) -> Optional[int]:
        """Returns the number of discarded events, or None if the daemon does not answer."""
        status, output = self.daemon.attempt("--mi=xml", "list", self.name)
        return sum(map(int, re.findall(r"<discarded_events>(\d+)<", output))) if status == 0 else None

    def stop(self) -> None:
        """Stops recording, once. LTTng then writes the description of the events."""
        if not self.stopped:
            self.stopped = True
            self.do("stop", self.name)

    def take_snapshot(self, folder: Optional[str] = None) -> None:
        """Writes the buffers of a flight recorder into the session's folder or another one."""
        self.do("snapshot", "record", f"--session={self.name}", *([f"file://{folder}"] if folder else []))

    def exchange(self, old: Node, new: Node) -> None:
        """Replaces a node that has ended by another one."""
        # The new node may have the same process number.
        self.watches[new.pid] = NodeWatch(new)
        if new.pid != old.pid:
            self.do("track", "-u", "-s", self.name, f"--vpid={new.pid}")
            self.do("untrack", "-u", "-s", self.name, f"--vpid={old.pid}")
        self.nodes = [new if node is old else node for node in self.nodes]

    def do(self, *arguments: str) -> str:
        """Runs an LTTng command that writes buffers, possibly to a relay."""
        try:
            return self.daemon.do(*arguments, give_up=self.relay.is_gone if self.relay else None)
        finally:
            self.check_relay()

    def check_relay(self) -> None:
        """Raises Failure if the relay is gone."""
        if self.relay and self.relay.is_gone():
            raise self.relay_gone(self.relay)

    def relay_gone(self, relay: RelayLink) -> Failure:
        """Ends the recording, and returns the failure with the number of discarded events."""
        self.stopped = True
        lost = self.lost()
        began = time.monotonic()
        self.daemon.attempt("stop", "--no-wait", self.name, give_up=lambda: time.monotonic() - began > NETWORK_S)
        return Failure("relay_gone", host=relay.host, seconds=f"{relay.lasted():.1f}",
                       lost=("the number of discarded events is unknown" if lost is None else
                             f"{lost} events were discarded because the buffers were full") +
                       "; events in transit, of half a second or more, are lost, too, and not counted")

    def nodes_that_ended(self) -> List[Tuple[Node, End]]:
        """Returns the nodes that have ended since the last call, and how."""
        return [(watch.node, self.watches.pop(pid).end()) for pid, watch in list(self.watches.items())
                if not watch.node.lives()]

    def ends(self) -> List[int]:
        """Returns descriptors that become readable when a node ends, if the kernel has such descriptors."""
        return [watch.process.descriptor for watch in self.watches.values() if watch.process.descriptor != -1]

    def __exit__(self, *_: object) -> None:
        for watch in self.watches.values():
            watch.close()
        hangs = self.relay is not None and self.relay.is_gone()
        began = time.monotonic()
        status, _output = self.daemon.attempt("destroy", *(["--no-wait"] if hangs else []), self.name,
                                              give_up=lambda: hangs and time.monotonic() - began > NETWORK_S)
        assert self.guard
        if status != NO_ANSWER:
            self.guard.release()
            return
        # The guard destroys the session when the daemon answers again.
        self.guard.act()
        if self.daemon.own_daemon is None:
            say(f"dyntrace: {self.daemon.show()} hangs on the lost connection until the system closes it, after "
                "about 15 minutes; then the session is removed. Nodes are not traced meanwhile.")


def with_provider(names: Sequence[str]) -> List[str]:
    """Returns the names with the provider."""
    return list(map(full_name, names))


def all_buffers(each: int, channels: int) -> int:
    """Returns the total bytes of all buffers, if one has `each` bytes."""
    return each * BUFFERS * (os.cpu_count() or 1) * channels


def buffer_size(channels: int) -> int:
    """Returns the bytes of one buffer. Together, the buffers take at most a quarter of the free space in /dev/shm."""
    if not os.path.isdir("/dev/shm"):
        raise Failure("no_shm_folder")
    free = shutil.disk_usage("/dev/shm").free
    wanted = 4 << 20
    while all_buffers(wanted, channels) > free // 4:
        wanted //= 2
    if wanted < 64 << 10:
        raise Failure("no_shm", free=size(free))
    return wanted


def flight_recorders(daemon: Lttng) -> List[str]:
    """Returns the names of the daemon's sessions that keep the latest events of nodes in memory."""
    _, output = daemon.attempt("--mi=xml", "list")
    found = re.findall(r"<session>\s*<name>([^<]*)</name>(.*?)</session>", output, re.S)
    return [name for name, rest in found if "<snapshot_mode>1<" in rest and "<enabled>true<" in rest
            and PROVIDER in daemon.attempt("--mi=xml", "list", name)[1]]
