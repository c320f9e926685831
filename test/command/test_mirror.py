"""The view that babeltrace2 gets of folders that another user can change."""
import os
import resource
import unittest
from typing import Dict, List
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.host.execution import Program, run
from dyntrace_command.recording import mirror as module
from dyntrace_command.recording import rendering
from dyntrace_command.recording.mirror import FIRST, METADATA_MOST, Mirror, mirrored
from dyntrace_command.recording.recording import has_events
from hostile import make_deep, new_place


class Mirrors(unittest.TestCase):
    """A folder of recordings."""

    def setUp(self) -> None:
        self.place = new_place(self)
        self.root = f"{self.place}/recordings"
        self.write("host/ust/metadata", "metadata")
        self.write("host/ust/events_0", "stream")
        self.write("host/ust/index/events_0.idx", "index")

    def write(self, path: str, text: str) -> None:
        """Writes a file below it."""
        os.makedirs(os.path.dirname(f"{self.root}/{path}"), exist_ok=True)
        with open(f"{self.root}/{path}", "w", encoding="utf-8") as file:
            file.write(text)

    def failure(self, *folders: str) -> str:
        """Returns the text of the failure."""
        with self.assertRaises(Failure) as raised, mirrored(folders or [self.root]):
            self.fail("there is one")
        return raised.exception.text


class Contents(Mirrors):
    """The contents of a mirror."""

    def test_whole(self) -> None:
        """Another program sees the same names and contents; nothing is left afterwards."""
        before = os.listdir("/proc/self/fd")
        with mirrored([self.root]) as mirror:
            self.assertEqual({"host/ust/metadata": "metadata", "host/ust/events_0": "stream",
                              "host/ust/index/events_0.idx": "index"}, contents(mirror))
            self.assertEqual([], mirror.remarks)
            place = mirror.paths()[0]
            self.assertEqual(0o700, os.stat(mirror.place).st_mode & 0o777)
            self.assertEqual(f"ERROR: {self.root}/host/ust", mirror.as_typed(f"ERROR: {place}/host/ust"))
        self.assertFalse(os.path.exists(place))
        self.assertEqual(before, os.listdir("/proc/self/fd"))

    def test_descriptors(self) -> None:
        """The descriptors of files are above the range of select(2), as far as the limit allows."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with mirrored([self.root]) as mirror:
            links = [os.readlink(os.path.join(path, name)) for path, _, names in os.walk(mirror.paths()[0])
                     for name in names]
            self.assertGreaterEqual(min(int(link.rpartition("/")[2]) for link in links), min(FIRST, hard // 4))
        self.assertEqual((256, hard), resource.getrlimit(resource.RLIMIT_NOFILE))

    def test_left_out(self) -> None:
        """Links, pipes and sockets are left out, with a remark."""
        secret = f"{self.place}/secret"
        with open(secret, "w", encoding="ascii"):
            pass
        for name in "abc":
            os.symlink(".", f"{self.root}/{name}")
        os.symlink(secret, f"{self.root}/host/ust/events_1")
        for name in ("host/ust/index/events_1.idx", "host/ust/events_2", "host/\x1b"):
            os.mkfifo(f"{self.root}/{name}")
        with mirrored([self.root]) as mirror:
            self.assertEqual({"host/ust/metadata", "host/ust/events_0", "host/ust/index/events_0.idx"},
                             set(contents(mirror)))
            self.assertEqual(1, len(mirror.remarks))
            remark = mirror.remarks[0]
        self.assertRegex(remark, f"^dyntrace: left out of {self.root}: .* \\(a (link|pipe)\\), .*, and 2 more$")
        self.assertNotIn("\x1b", remark)

    def test_replaced(self) -> None:
        """A file that is replaced afterwards, and a folder that is moved away, have no effect."""
        with mirrored([self.root]) as mirror:
            os.unlink(f"{self.root}/host/ust/events_0")
            os.symlink("/etc/passwd", f"{self.root}/host/ust/events_0")
            os.rename(f"{self.root}/host", f"{self.place}/host")
            os.symlink("/etc", f"{self.root}/host")
            self.assertEqual("stream", contents(mirror)["host/ust/events_0"])

    def test_link_typed(self) -> None:
        """The user may name a recording by a link."""
        os.symlink(self.root, f"{self.place}/latest")
        with mirrored([f"{self.place}/latest", f"{self.root}/host"]) as mirror:
            self.assertEqual(2, len(mirror.paths()))
            self.assertEqual(f"in {self.place}/latest/x", mirror.as_typed(f"in {mirror.paths()[0]}/x"))
            self.assertEqual(f"{self.place}/latest", mirror.typed())

    def test_link_instead(self) -> None:
        """A folder that this command has made and a user has replaced by a link is not followed."""
        os.symlink(self.root, f"{self.place}/own")
        with self.assertRaises(Failure) as raised, mirrored([f"{self.place}/own"], follows=False):
            self.fail("it is followed")
        self.assertEqual("unreadable", raised.exception.key)
        self.assertTrue(has_events(f"{self.place}/own"))
        self.assertFalse(has_events(f"{self.place}/nothing"))

    def test_begin_is_missing(self) -> None:
        """A recording without a description of events is left out; at least one other must remain."""
        self.write("late/ust/metadata", "")
        with mirrored([self.root, f"{self.root}/late"]) as mirror:
            self.assertEqual(1, len(mirror.paths()))
            self.assertNotIn("late/ust/metadata", contents(mirror))
            remark = f"dyntrace: {self.root}/late/ust ended before its beginning had arrived; it is left out"
            self.assertEqual([remark] * 2, [text.replace("/late/./", "/late/") for text in mirror.remarks])
        self.assertIn("no LTTng recording in", self.failure(f"{self.root}/late"))

    def test_format(self) -> None:
        """The format of LTTng 2.15 and later."""
        with mirrored([self.root]) as mirror:
            self.assertFalse(mirror.is_ctf_2)
        self.write("host/ust/metadata", "\x1e{}")
        with mirrored([self.root]) as mirror:
            self.assertTrue(mirror.is_ctf_2)


class Refused(Mirrors):
    """Folders that can't be read as a recording."""

    def test_deep(self) -> None:
        """Nested folders."""
        make_deep(self.root, 2000)
        self.assertRegex(self.failure(), f"{self.root} can't be read as a recording: it has more than 20 levels of "
                                         "folders\n  next: ")

    def test_many(self) -> None:
        """More names than the limit; more files than the process may open."""
        with mock.patch("dyntrace_command.host.trees.ENTRIES_MOST", 3):
            self.assertIn("it has more than 3 files and folders", self.failure())
        for number in range(60):
            self.write(f"host/{number}", "")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        with mock.patch.object(module, "raised_limit", lambda _: 64):
            self.assertIn("it has more files than this process may open (48)", self.failure())
        self.assertEqual(limits, resource.getrlimit(resource.RLIMIT_NOFILE))

    def test_large(self) -> None:
        """An endless description of events, or endless indexes."""
        os.truncate(f"{self.root}/host/ust/index/events_0.idx", 2 << 30)
        self.assertIn("its indexes have more than 1.0 GB", self.failure())
        os.truncate(f"{self.root}/host/ust/metadata", METADATA_MOST + 1)
        self.assertIn("host/ust/metadata has 16.0 MB", self.failure())

    def test_pipe(self) -> None:
        """A pipe in place of the description of events."""
        os.unlink(f"{self.root}/host/ust/metadata")
        os.mkfifo(f"{self.root}/host/ust/metadata")
        self.assertIn("no LTTng recording in", self.failure())


class Shortened(Mirrors):
    """A file is truncated while babeltrace2 reads it."""

    def test_signal(self) -> None:
        """babeltrace2 is killed by SIGBUS; the message names the cause."""
        killed = f"{self.place}/babeltrace2"
        with open(killed, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho ERROR: x >&2\nkill -BUS $$\n")
        os.chmod(killed, 0o755)

        def command(*_: object) -> List[str]:
            return [killed]
        with mock.patch.object(rendering, "view_command", command), mirrored([self.root]) as mirror, \
                self.assertRaises(Failure) as raised:
            rendering.draw(mirror, None, {})
        self.assertIn(f"a file of {self.root} was truncated while babeltrace2 read it", raised.exception.text)


def contents(mirror: Mirror) -> Dict[str, str]:
    """Returns what another program reads below the first folder: {path: text}"""
    place = mirror.paths()[0]
    listed = run(Program(["find", "-L", place, "-type", "f", "-printf", "%P\n"]), 20).output.splitlines()
    return {path: run(Program(["cat", f"{place}/{path}"]), 20).output for path in listed}
