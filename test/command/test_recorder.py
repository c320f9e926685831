"""A flight recorder without a daemon: when it traces, when it writes, and what it says."""
import contextlib
import tempfile
import time
import types
import unittest
from typing import Any, Iterator, List
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.functions import Function
from dyntrace_command.common.trigger_causes import LOGGED_CRASH, parsed
from dyntrace_command.common.trigger_rate import AtMost
from dyntrace_command.recording import recorder
from dyntrace_command.recording.node_end import End
from dyntrace_command.recording.recorder import Recorder, When
from dyntrace_command.recording.session import Session, Wanted
from dyntrace_command.recording.snapshots import COUNTED_MOST, RecorderFolder

SILENCE: Any = parsed("silence > 5s")
MANY: Any = parsed("processes > 5000")
NODE: Any = mock.Mock(node="shop@host", **{"show.return_value": "shop@host (7)"})


class FakeSession:
    """A session that notes what is done with it; `fails` has the actions that the daemon refuses."""

    def __init__(self) -> None:
        self.nodes, self.buffers, self.wanted = [NODE], 0, Wanted(traces_on_demand=True)
        self.done: List[str] = []
        self.fails: List[str] = []

    def note(self, action: str) -> None:
        """Notes an action."""
        self.done.append(action)
        if action in self.fails:
            raise Failure("lttng", tool="lttng", output="no answer")

    def trace(self, is_on: bool) -> None:
        """Starts or stops recording the events of trace flags."""
        self.note("trace" if is_on else "stop")

    def take_snapshot(self, _: str) -> None:
        """Writes a snapshot."""
        self.note("write")

    def begin_tracing(self) -> float:
        """As in a session."""
        session: Any = self
        return Session.begin_tracing(session)

    @staticmethod
    def nodes_that_ended() -> List[Any]:
        """No node ends."""
        return []


class FakeTriggers:
    """Triggers that count how often they are set."""

    def __init__(self) -> None:
        self.are_set, self.times = True, 0

    def pause(self) -> None:
        """Removes them."""
        self.are_set = False

    def set(self, _: Any) -> None:
        """Sets them."""
        self.are_set = True
        self.times += 1

    @staticmethod
    def has_ended() -> bool:
        """The program runs."""
        return False


class Recorders(unittest.TestCase):
    """A recorder that traces processes on demand."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.said: List[str] = []
        for name, value in (("announce", self.said.append), ("check_room", lambda *_: None)):
            patch = mock.patch.object(recorder, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.session, self.triggers = FakeSession(), FakeTriggers()
        session, triggers = self.session, self.triggers  # type: Any, Any
        self.recorder = Recorder(session, triggers, RecorderFolder(folder.name, 20),
                                 When([LOGGED_CRASH], AtMost(10, 3600), 20))

    def match(self, count: int = 1) -> None:
        """So many processes crash."""
        for _ in range(count):
            self.recorder.match(LOGGED_CRASH, NODE, "boom")

    def test_on_demand(self) -> None:
        """Processes are traced from the first match on, until the only snapshot is written."""
        self.match(3)
        self.assertEqual((["trace"], 2), (self.session.done, self.recorder.more))
        self.recorder.write_pending()
        self.recorder.write_pending()
        self.assertEqual(["trace", "write", "stop"], self.session.done)
        self.assertEqual(1, len(self.recorder.rate.times))

    def test_level(self) -> None:
        """The snapshot of a level has the stacks of the node, read at the match."""
        with self.read_stacks():
            self.recorder.match(MANY, NODE, "processes 6000")
        self.recorder.write_pending()
        self.assertEqual(["trace", "write", "stop"], self.session.done)
        self.assertEqual("stacks of shop\n1 waiting\n\n1 changed\n", self.stacks())

    def test_node_hangs(self) -> None:
        """A node that hangs can't be traced: the snapshot is written at once, with the stacks of the node."""
        with self.read_stacks():
            self.recorder.match(SILENCE, NODE, "silent", hangs=True)
        self.assertEqual((["write"], None), (self.session.done, self.recorder.pending))
        self.assertEqual("stacks of shop\n1 waiting\n\n1 changed\n", self.stacks())

    @staticmethod
    @contextlib.contextmanager
    def read_stacks() -> Iterator[None]:
        """The stacks of a node can be read."""
        with mock.patch.object(recorder, "stacks_of", return_value={}), \
                mock.patch.object(recorder, "shown", return_value=["stacks of shop", "1 waiting"]), \
                mock.patch.object(recorder, "notes", return_value=["1 changed"]):
            yield

    def test_no_stacks(self) -> None:
        """If the stacks of a node that hangs can't be read, the snapshot says why."""
        failure = Failure("no_stacks", node="shop", why="it has no JIT")
        with mock.patch.object(recorder, "stacks_of", side_effect=failure):
            self.recorder.match(SILENCE, NODE, "silent", hangs=True)
        self.assertEqual(f"{failure.text}\n", self.stacks())

    def test_no_level(self) -> None:
        """The snapshot of another cause has no stacks."""
        self.match()
        self.recorder.write_pending()
        assert self.recorder.last
        self.assertEqual("", self.recorder.last.stacks())

    def stacks(self) -> str:
        """The stacks in the last snapshot."""
        assert self.recorder.last
        with open(self.recorder.last.stacks(), encoding="utf-8") as file:
            return file.read()

    def test_no_answer(self) -> None:
        """If the daemon does not say that it records the events, the snapshot is written, and they are stopped."""
        self.session.fails = ["trace"]
        self.match()
        self.assertTrue(self.recorder.pending and self.recorder.pending[1] <= time.monotonic())
        self.recorder.write_pending()
        self.assertEqual((["trace", "write", "stop"], None), (self.session.done, self.recorder.pending))

    def test_no_room(self) -> None:
        """No process is traced for a snapshot that can't be written."""
        with mock.patch.object(recorder, "check_room", side_effect=Failure("disk_full", folder="", free="", kept="")):
            self.match()
        self.assertEqual(([], None), (self.session.done, self.recorder.pending))
        self.assertIn("no snapshot of crash", self.said[0])

    def test_storm(self) -> None:
        """After a thousand matches, triggers stay off until the snapshot is written and the limit allows another."""
        self.match(COUNTED_MOST + 1)
        self.recorder.poll()
        self.assertEqual((False, 0), (self.triggers.are_set, self.triggers.times))
        self.recorder.write_pending()
        self.recorder.poll()
        self.assertEqual(0, self.triggers.times)
        with mock.patch.object(time, "time", return_value=time.time() + 60):
            self.recorder.poll()
        self.assertEqual((True, 1), (self.triggers.are_set, self.triggers.times))

    def test_untraced(self) -> None:
        """The source `log` reports the events of `crash`."""
        lines = {"withheld": [], "usual": ["log: the option log is off", "vm_long_message_queue: since OTP 27"]}
        status = types.SimpleNamespace(said=lambda _: "on", withheld=lambda keys: lines[keys[0]],
                                       functions=lambda: [Function("shop", "sell", "1")])
        long_call = parsed("call:shop:sell/2 > 5s")
        assert long_call
        self.recorder.when = self.recorder.when._replace(causes=[LOGGED_CRASH, long_call])
        with mock.patch.object(recorder, "status_now", lambda _: status), \
                mock.patch.object(time, "monotonic", return_value=time.monotonic() + 7) as clock:
            self.recorder.poll()
            self.assertEqual("dyntrace: shop@host (7) can't trace log: the option log is off", self.said[0])
            self.assertRegex(self.said[1], r"shop@host \(7\) traces shop:sell/1, not shop:sell/2;")
            # The status is read again, because the node may clear the pattern later. Nothing is said twice.
            lines["withheld"] = ["shop:sell/2: over the call budget"]
            self.recorder.poll()
            self.assertEqual(2, len(self.said))
            clock.return_value += 61
            self.recorder.poll()
        self.assertEqual(["dyntrace: shop@host (7) can't trace shop:sell/2: over the call budget"], self.said[2:])

    def test_pending_first(self) -> None:
        """A snapshot that is due is written before that of a node's end."""
        self.match()
        self.recorder.note_end(NODE, End("shop@host", "killed"))
        self.assertEqual(["trace", "write", "stop", "write"], self.session.done)
