"""Programs that print endlessly, that do not end, or that belong to other users."""
import contextlib
import functools
import io
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Iterator, List, Tuple
from unittest import mock

from dyntrace_command.host import execution
from dyntrace_command.host.execution import (MERGED, NOT_STARTED, NO_ANSWER, READ, TOO_MUCH, LastOutput, Program,
                                             TimedStream, run, until)

FLOOD = "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n"
# Longer than any of these tests waits.
LONG = "300"


def script(text: str) -> Program:
    """A shell script as a program."""
    return Program(["/bin/sh", "-c", text])


def other_user() -> Tuple[int, int]:
    """The user and group of an unprivileged user without files."""
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kills a process if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Run(unittest.TestCase):
    """`run` ends, regardless of what the program does."""

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Fails if the block takes longer. The limit is generous, because a blocked test would wait forever."""
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, seconds)

    def test_streams(self) -> None:
        """Status, output and errors: separate, merged, or discarded."""
        both = script("echo out; echo err >&2; exit 3")
        self.assertEqual((3, "out\n", ""), run(both))
        self.assertEqual((3, "out\n", "err\n"), run(both, errors=READ))
        self.assertEqual((3, "out\nerr\n", ""), run(both, errors=MERGED))
        self.assertEqual((-9, "", ""), run(script("kill -9 $$")))
        self.assertEqual((NOT_STARTED, "/nowhere/x: No such file or directory\n", ""),
                         run(Program(["/nowhere/x"]), errors=MERGED))

    def test_flood(self) -> None:
        """Only part of the output is read, and the program is killed at its deadline."""
        with mock.patch.object(execution, "MOST", 100000), self.within(20):
            status, output, _ = run(Program([sys.executable, "-c", FLOOD]), 1)
        self.assertEqual((NO_ANSWER, 100000), (status, len(output)))

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_flood_of_another_user(self) -> None:
        """A flooding program of another user is killed at once, and its output is no longer read."""
        with mock.patch.object(execution, "MOST", 100000), self.within(20):
            status, output, _ = run(Program(["/usr/bin/python3", "-c", FLOOD], other_user(), {}), 60)
        self.assertEqual(TOO_MUCH, status)
        self.assertLessEqual(len(output), 100000)

    def test_open_pipe(self) -> None:
        """A process that the program leaves behind keeps the pipe open, or floods it."""
        for left in (f"exec sleep {LONG}", "exec yes"):
            with self.subTest(left), self.within(20):
                status, output, _ = run(script(f"setsid sh -c 'echo $$; {left}' & sleep 0.5; exit 7"))
            pid = int(output.split()[0])
            self.addCleanup(kill, pid)
            self.assertEqual(7, status)
            self.assertTrue(left.endswith("yes") or is_alive(pid))

    def test_session(self) -> None:
        """Remaining processes of the program's session are killed."""
        status, output, _ = run(script(f"sleep {LONG} & echo $!"))
        self.assertEqual(0, status)
        self.assertTrue(until(lambda: not is_alive(int(output)), 10))

    def test_ignores_sigterm(self) -> None:
        """A program that does not end is killed after its time, or when the caller gives up."""
        stubborn = script(f"trap '' TERM; echo $$; while :; do sleep {LONG}; done")
        soon = time.monotonic() + 8
        for seconds, give_up in ((4, None), (None, lambda: time.monotonic() > soon)):
            with self.subTest(seconds), self.within(20):
                status, output, _ = run(stubborn, seconds, give_up=give_up)
            self.assertEqual(NO_ANSWER, status)
            self.assertFalse(is_alive(int(output)))

    def test_ends_at(self) -> None:
        """A program gets the signal at which it ends in an orderly way. A job in the background ignores this one, and
        so would the program."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_DFL))
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "orderly")
            waits = script(f"trap ': > {file}; exit' INT; while :; do sleep 0.1; done")
            self.assertEqual(NO_ANSWER, run(waits._replace(ends_at=signal.SIGINT), 5).status)
            self.assertTrue(os.path.exists(file))

    def test_stopped_on_the_way(self) -> None:
        """The user stops the process as soon as it has that user's identity, before it executes the program."""
        with mock.patch.object(execution, "take", lambda *_: os.kill(os.getpid(), signal.SIGSTOP)), self.within(20):
            self.assertEqual(NO_ANSWER, run(Program(["/bin/true"], (0, 0)), 0.5).status)

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_another_user(self) -> None:
        """The program has that user's identity, the given environment, / as its folder, and no descriptor of this
        command."""
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        shows = "grep -E '^(Uid|Groups|NoNewPrivs)' /proc/self/status; env | grep -v PWD; readlink /proc/self/cwd; " \
                "ls /proc/$$/fd | xargs; readlink /proc/$$/fd/0"
        uid = other_user()[0]
        self.assertEqual(f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGroups:\t \nNoNewPrivs:\t1\nONE=1\n/\n0 1 2\n/dev/null\n",
                         run(Program(["/bin/sh", "-c", shows], other_user(), {"ONE": "1"})).output)


class Streams(unittest.TestCase):
    """The output of programs that keep running."""

    def test_last_output(self) -> None:
        """The first or the last bytes are retained, out of any number."""
        for is_first, kept in ((True, "1\n2\n3"), (False, "8\n99999\n"[-5:])):
            with subprocess.Popen(["seq", "99999"], stdout=subprocess.PIPE) as process:
                assert process.stdout
                self.assertEqual(kept, LastOutput(process.stdout, 5, is_first).text())

    def test_timed_stream(self) -> None:
        """The stream ends with the pipe, or when its condition says so: here, once there is some output."""
        for text in ("echo x", f"echo x; exec sleep {LONG}"):
            came: List[bool] = []
            with subprocess.Popen(["/bin/sh", "-c", text], stdout=subprocess.PIPE) as process:
                assert process.stdout
                stream = io.BufferedReader(TimedStream(process.stdout, functools.partial(bool, came)))
                self.assertEqual(b"x\n", stream.peek())
                came.append(True)
                self.assertEqual(b"x\n", stream.read())
                process.kill()
