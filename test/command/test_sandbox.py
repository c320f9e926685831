"""The children that read data controlled by other users: their identity, their limits, and their answers."""
import ctypes
import errno
import os
import resource
import signal
import socket
import tempfile
import time
import unittest
from typing import Any, Callable, Dict, Iterator, List
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.host import sandbox
from dyntrace_command.host.process import Identity, Process
from dyntrace_command.host.sandbox import Answer, Child, Rights, check_child, in_child, isolated
from dyntrace_command.node import survey

IS_ROOT = os.geteuid() == 0
NOBODY = Identity(65534, 65534)


def status_lines() -> Dict[str, List[str]]:
    """Returns the kernel's status of this process: {name: values}."""
    with open("/proc/self/status", encoding="ascii") as file:
        return {name: values.split() for name, _, values in (line.partition(":") for line in file)}


def paused() -> List[int]:
    """Waits for a signal."""
    signal.pause()
    return []


def checked() -> List[str]:
    """Checks that this process may read data of others, and returns a value."""
    check_child()
    return ["checked"]


class WhatItMayDo(unittest.TestCase):
    """The rights of a child."""

    @unittest.skipUnless(IS_ROOT, "only root takes the identity of another user")
    def test_identity(self) -> None:
        """All four user and group ids are those of the process. There are no other groups, one capability, and no way
        to gain more."""
        found = in_child(NOBODY, status_lines).value
        self.assertEqual((["65534"] * 4, ["65534"] * 4, []), (found["Uid"], found["Gid"], found["Groups"]))
        self.assertEqual(1 << 19, int(found["CapEff"][0], 16))
        self.assertEqual(1 << 19 | 1 << 2, int(found["CapPrm"][0], 16))
        self.assertEqual(["1"], found["NoNewPrivs"])

    @unittest.skipUnless(IS_ROOT, "only root takes the identity of another user")
    def test_root(self) -> None:
        """The child for a process of root has no other capability of root either."""
        found = in_child(Identity(0, 0), status_lines).value
        self.assertEqual(["0"] * 4, found["Uid"])
        self.assertEqual((1 << 19, 1 << 19 | 1 << 2), (int(found["CapEff"][0], 16), int(found["CapPrm"][0], 16)))

    @unittest.skipUnless(IS_ROOT, "only root takes the identity of another user")
    def test_files_of_others(self) -> None:
        """The child can open the files that its user can open."""
        with tempfile.NamedTemporaryFile() as file:
            for mode, is_read in ((0o600, False), (0o604, True)):
                os.chmod(file.name, mode)
                if is_read:
                    self.assertEqual(0, in_child(NOBODY, lambda: os.path.getsize(os.readlink(
                        f"/proc/self/fd/{os.open(file.name, os.O_RDONLY)}"))).value)
                else:
                    with self.assertRaises(PermissionError):
                        in_child(NOBODY, lambda: os.open(file.name, os.O_RDONLY))

    @unittest.skipUnless(IS_ROOT, "only root takes the identity of another user")
    def test_its_user_cannot_trace_it(self) -> None:
        """A process of the same user can neither take its descriptors nor read its memory."""
        def tried() -> List[int]:
            libc = ctypes.CDLL(None, use_errno=True)
            descriptor = libc.syscall(434, os.getppid(), 0)
            taken = libc.syscall(438, descriptor, 0, 0)
            code = ctypes.get_errno()
            return [taken, code]

        def attacked() -> Any:
            # A process in the state of this child without its protection: it has given up all capabilities.
            sandbox.set_capabilities(0, 0)
            child = os.fork()
            if child == 0:
                os._exit(0 if tried() == [-1, errno.EPERM] else 1)  # pylint: disable=protected-access
            return os.waitpid(child, 0)[1]
        self.assertEqual(0, in_child(NOBODY, attacked).value)

    def test_nothing_is_inherited(self) -> None:
        """The child has only the socket and the given descriptors; the standard ones are /dev/null."""
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)

        def held() -> Dict[str, str]:
            return {name: os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
                    if os.path.lexists(f"/proc/self/fd/{name}")}
        found = in_child(None, held, rights=Rights(keep=[reading])).value
        self.assertEqual({"/dev/null"}, {found.pop(name) for name in "012"})
        self.assertEqual({"socket", "pipe"}, {target.partition(":")[0] for target in found.values()})
        self.assertIn(str(reading), found)
        self.assertNotIn(str(writing), found)

    def test_no_file_is_written(self) -> None:
        """A child can't write files, unless its rights allow it."""
        with tempfile.NamedTemporaryFile() as file:
            def write() -> int:
                with open(file.name, "wb") as written:
                    return written.write(b"x")
            with self.assertRaisesRegex(OSError, "File too large"):
                in_child(None, write)
            self.assertEqual(0, os.path.getsize(file.name))
            self.assertEqual(1, in_child(None, write, rights=Rights(may_write=True)).value)

    def test_memory_and_time(self) -> None:
        """Memory and CPU time are limited."""
        with self.assertRaisesRegex(ValueError, "too much data"):
            in_child(None, lambda: len(bytearray(2 << 30)))
        self.assertEqual([3, 3], in_child(None, lambda: resource.getrlimit(resource.RLIMIT_CPU), 2).value)

    def test_outside(self) -> None:
        """Only a child may touch the files of other users."""
        with mock.patch.object(sandbox.STATE, "is_child", False):
            self.assertRaises(RuntimeError, check_child)
            self.assertEqual(["checked"], in_child(None, checked).value)


class Answers(unittest.TestCase):
    """The answers of a child."""

    def test_errors(self) -> None:
        """Errors of the child are raised here unchanged."""
        def fails(error: Exception) -> Callable[[], Any]:
            def function() -> Any:
                raise error
            return function
        for error, kind, text in ((FileNotFoundError(errno.ENOENT, "no file"), FileNotFoundError, "no file"),
                                  (OSError(0, "it is odd"), OSError, "it is odd"),
                                  (ValueError("bad"), ValueError, "bad"),
                                  (RecursionError("deep"), ValueError, "deep"),
                                  (Failure("node_gone", pid=7, name="x@y"), Failure, "node_gone")):
            with self.subTest(error), self.assertRaisesRegex(kind, text):
                in_child(None, fails(error))
        with self.assertRaises(Failure) as raised:
            in_child(None, fails(Failure("node_gone", pid=7, name="x@y")))
        self.assertIn("process 7 (x@y) has ended", raised.exception.text)

    def test_descriptors(self) -> None:
        """Files that the child has opened, as many as the kernel passes."""
        answer = in_child(None, lambda: Answer("all", [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]))
        self.assertEqual(("all", 200), (answer.value, len(answer.descriptors)))
        for descriptor in answer.descriptors:
            self.assertEqual(os.stat("/dev/null").st_rdev, os.fstat(descriptor).st_rdev)
            self.assertFalse(os.get_inheritable(descriptor))
        sandbox.close_all(answer.descriptors)

    def test_too_much(self) -> None:
        """An answer over the bound is not read."""
        with self.assertRaisesRegex(ValueError, "answer is too large"):
            in_child(None, lambda: "x" * (2 << 20))

    def test_anything(self) -> None:
        """A child that was made to send arbitrary data, or was killed, is an error."""
        for sent in (b"", b"\0", b"\0\0\0\x05hello", b"\0\0\0\x02{}", b"\0\0\0\x02[]", b"\0\0\0\x0b" + b'{"error":1}',
                     b"\0\0\0\x0d" + b'{"error":[1]}', b"\0\0\x10\0" + b"[" * 4096, b"\xff\xff\xff\xff"):
            child = Child.__new__(Child)
            child.socket, theirs = socket.socketpair()
            child.buffer, child.descriptors = bytearray(), []
            theirs.sendall(sent)
            theirs.close()
            with self.subTest(sent[:20]):
                if sent:
                    self.assertRaises(ValueError, child.receive, time.monotonic() + 5)
                else:
                    self.assertIsNone(child.receive(time.monotonic() + 5))
            child.socket.close()
        with self.assertRaises(ValueError):
            in_child(None, lambda: os.kill(os.getpid(), signal.SIGKILL))

    def test_no_answer(self) -> None:
        """A child that does not answer is killed at the deadline, and none is left."""
        pids: List[int] = []
        end = Child.end

        def noted(child: Child) -> None:
            pids.append(child.pid)
            end(child)
        with mock.patch.object(Child, "end", noted), self.assertRaises(TimeoutError):
            in_child(None, paused, 0.2)
        self.assertRaises(ProcessLookupError, os.kill, pids[0], 0)

    def test_abandoned(self) -> None:
        """A child that the kernel does not let end is not waited for."""
        child = Child(None, paused, 5)
        with mock.patch("os.kill"):
            began = time.monotonic()
            child.end()
        self.assertLess(time.monotonic() - began, 2)
        self.assertIn(child.pid, Child.abandoned)
        os.kill(child.pid, signal.SIGKILL)
        while Child.reap():
            pass

    def test_several(self) -> None:
        """A child may yield several answers."""
        def numbers() -> Iterator[int]:
            yield from range(3)
        child = Child(None, numbers, 5)
        self.addCleanup(child.end)
        found = [child.receive(time.monotonic() + 5) for _ in range(4)]
        self.assertEqual([0, 1, 2, None], [answer and answer.value for answer in found])

    def test_left_behind(self) -> None:
        """If children of earlier surveys still wait for a file system, no new child is left behind with them."""
        def process(name: str, state: str, age: float) -> Any:
            identity = Process(os.getpid()).identity()
            return mock.Mock(pid=2 ** 30, **{"name.return_value": name, "status.return_value": (state, 1),
                                             "age.return_value": age, "has_ended.return_value": False,
                                             "identity.return_value": identity})
        left = process("dyntrace-look", "D", 100)
        found = survey.Survey().of([process("beam.smp", "S", 9), left, left])
        self.assertEqual([survey.LEFT], [one.why for one in found])
        for name, state, age in (("dyntrace-look", "D", 5), ("dyntrace-look", "R", 100), ("beam.smp", "D", 100)):
            self.assertFalse(survey.is_left(process(name, state, age)))

    def test_survey(self) -> None:
        """A child of a survey may send values of any type."""
        values: List[Any] = [[], {}, None, "1", 1.5, [[]]]
        for value in values:
            for key in ("at", "pid", "values"):
                with self.subTest(key, value=value), mock.patch.object(survey, "look", lambda *_, k=key, v=value: [
                        {k: v}, {k: v, "pid": v}]):
                    self.assertEqual([], survey.Survey().of([Process(os.getpid())]))


class Identities(unittest.TestCase):
    """The owner of a process."""

    def process(self, uids: str, gids: str) -> Process:
        """A process with these ids."""
        folder = tempfile.TemporaryDirectory(prefix="dyntrace-test-")
        self.addCleanup(folder.cleanup)
        process = Process(os.getpid())
        process.dir = folder.name
        with open(f"{folder.name}/status", "w", encoding="ascii") as file:
            file.write(f"Name:\tx\\nUid:\t7\t7\t7\t7\nUid:\t{uids}\nGid:\t{gids}\n")
        return process

    def test_one(self) -> None:
        """All four ids are equal."""
        self.assertEqual(Identity(1000, 100), self.process("1000\t1000\t1000\t1000", "100\t100\t100\t100").identity())
        own = Process(os.getpid()).identity()
        self.assertEqual((os.getuid(), os.getgid()), own)

    def test_several(self) -> None:
        """Set-user-ID and set-group-ID programs are refused, whichever of the four ids differs."""
        for number in range(4):
            ids = ["1000"] * 4
            ids[number] = "0"
            for uids, gids, kind in ((ids, ["1000"] * 4, "users"), (["1000"] * 4, ids, "groups")):
                with self.subTest((uids, gids)), self.assertRaisesRegex(OSError, f"several {kind}"):
                    self.process("\t".join(uids), "\t".join(gids)).identity()

    @unittest.skipUnless(IS_ROOT, "only root takes the identity of another user")
    def test_before_and_after(self) -> None:
        """An answer does not count if the process has ended or changed its user before it arrives."""
        process = Process(os.getpid())
        self.assertEqual(1, isolated(process, lambda: 1).value)
        with mock.patch.object(Process, "identity", side_effect=[Identity(0, 0), NOBODY]), \
                self.assertRaisesRegex(OSError, "its user has changed"):
            isolated(process, lambda: 1)
        with mock.patch.object(Process, "has_ended", return_value=True), self.assertRaises(ProcessLookupError):
            isolated(process, lambda: 1)
