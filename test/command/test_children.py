"""How this command ends, and which processes outlive it: guards, keepers, signals."""
import contextlib
import os
import pty
import pwd
import signal
import subprocess
import sys
import termios
import time
import unittest
from typing import IO, List, Optional, Tuple

from dyntrace_command.host.execution import until
from hostile import new_place

HEAD = "import os, sys, time\nfrom dyntrace_command.host.children import *\n" \
       "from dyntrace_command.host.execution import *\n" \
       "def says(text, file): return Program(['/bin/sh', '-c', f'echo {text} >> {file}'])\n"

# A command whose main thread waits for a pipe without a writer.
WAITS = """
class Waits:
    def __init__(self, path): self.path = path
reading, writing = os.pipe()
with temporary_folder() as folder, Interrupted() as interrupted:
    guard = Guard(says('guard', sys.argv[1]))
    print(folder, flush=True)
    interrupted.happened.wait()
    print('first', flush=True)
    os.read(reading, 1)
"""


class Commands(unittest.TestCase):
    """A command that is ended in various ways."""

    def setUp(self) -> None:
        self.folder = new_place(self)
        os.chmod(self.folder, 0o777)
        self.file = os.path.join(self.folder, "file")

    def start(self, text: str) -> "subprocess.Popen[str]":
        """Starts a command with this code."""
        process = subprocess.Popen([sys.executable, "-c", HEAD + text, self.file], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, universal_newlines=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process: "subprocess.Popen[str]") -> None:
        """Ends the command in any case."""
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream
            stream.close()

    @staticmethod
    def line(process: "subprocess.Popen[str]") -> str:
        """Returns the command's next line."""
        assert process.stdout
        return process.stdout.readline().strip()

    def written(self) -> List[str]:
        """Returns the lines of the file."""
        with contextlib.suppress(FileNotFoundError), open(self.file, encoding="ascii") as file:
            return file.read().split("\n")[:-1]
        return []

    def await_written(self, *lines: str) -> None:
        """Waits for these lines."""
        until(lambda: self.written() == list(lines), 10)
        self.assertEqual(list(lines), self.written())


class Guards(Commands):
    """Guards act after the end of the command, however it ends, and after processes that have to end first."""

    def test_killed(self) -> None:
        """The later guard acts first, and a released guard does not act. Signals that end the command do not end the
        guards."""
        process = self.start("guards = [Guard(says(n, sys.argv[1])) for n in range(3)]\nguards[1].release()\n"
                             "print(*[guard.pid for guard in guards], flush=True)\ntime.sleep(300)\n")
        first, released, last = map(int, self.line(process).split())
        self.assertFalse(os.path.exists(f"/proc/{released}"))
        for pid in (first, last):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(pid, number)
        process.kill()
        self.await_written("2", "0")

    def test_after_the_program(self) -> None:
        """A keeper's program continues when the command is killed, and the guard acts after it."""
        process = self.start("guard = Guard(says('guard', sys.argv[1]))\n"
                             "run_kept(Program(['/bin/sh', '-c', f'echo runs >> {sys.argv[1]}; read x < '\n"
                             "                  f'{sys.argv[1]}.pipe; echo ends >> {sys.argv[1]}']), 60)\n")
        os.mkfifo(self.file + ".pipe")
        self.await_written("runs")
        process.kill()
        process.wait()
        self.assertEqual(["runs"], self.written())
        with open(self.file + ".pipe", "wb") as pipe:
            pipe.write(b"\n")
        self.await_written("runs", "ends", "guard")

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_another_user(self) -> None:
        """If another user owns the program of a keeper or a guard, it does not inherit a guard's pipe."""
        user = tuple(pwd.getpwnam("nobody")[2:4])
        process = self.start(f"first = Guard(says('first', sys.argv[1]))\n"
                             f"shows = Program(['/bin/sh', '-c', f'exec ls -m /proc/self/fd >> {{sys.argv[1]}}'], "
                             f"{user}, dict(os.environ))\nopen(sys.argv[1], 'w'); os.chmod(sys.argv[1], 0o666)\n"
                             "second = Guard(shows)\nprint(run_kept(shows, 60).status, flush=True)\n")
        self.assertEqual("0", self.line(process))
        process.wait()
        # ls opens the folder itself.
        self.await_written("0, 1, 2, 3", "0, 1, 2, 3", "first")

    def answers(self, identity: str, pids: str, killed: int, head: str = "") -> None:
        """Shows that it returns the program's output, or no answer: the program takes too long, or is given up. What
        runs it is killed: that is the status."""
        process = self.start(
            f"import threading\n{head}"
            f"def program(text): return Program(['/bin/sh', '-c', text], {identity})\n"
            f"def kill():\n    until(lambda: {pids}, 10); os.kill({pids}[0], 9)\n"
            f"print(run_kept(program('echo out; echo err >&2; exit 3'), 60))\n"
            f"print(run_kept(program('exec sleep 300'), 0.5).status, "
            f"run_kept(program('exec sleep 300'), 60, lambda: True).status)\n"
            f"threading.Thread(target=kill).start()\nprint(run_kept(program('exec sleep 300'), 60).status, {pids})\n"
            f"print(run_kept(Program(['/no/program'], {identity}), 60).status)\n")
        self.assertEqual(f"Ended(status=3, output='out\\nerr\\n', errors='')\n-1000 -1000\n{killed} []\n127\n",
                         process.communicate(timeout=60)[0])

    def test_of_this_user(self) -> None:
        """A program that runs as this user."""
        self.answers("None", "Surviving.running", -9)

    def test_without_timeout(self) -> None:
        """Where the host has no timeout(1), a keeper bounds it."""
        self.answers("None", "KEEPERS", -1000, "import shutil\nshutil.which = lambda _: None\n")

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_keeper(self) -> None:
        """A program with another identity, run by a keeper."""
        self.answers("(0, 0)", "KEEPERS", -1000)


class Signals(Commands):
    """The first signal ends the work, the second one ends the command."""

    def second(self, number: int, text: str = WAITS) -> Tuple[int, float]:
        """Sends a signal, and a second one once the first has had its effect; returns (status, seconds)."""
        process = self.start(text)
        folder = self.line(process)
        self.assertTrue(os.path.isdir(folder))
        process.send_signal(number)
        self.assertEqual("first", self.line(process))
        began = time.monotonic()
        # Two signals within half a second count as one.
        while process.poll() is None and time.monotonic() - began < 30:
            process.send_signal(number)
            time.sleep(0.7)
        took = time.monotonic() - began
        self.assertEqual(["guard"], self.written())
        self.assertFalse(os.path.exists(folder))
        return process.returncode, took

    def test_second(self) -> None:
        """The command ends at once, although its main thread is blocked, and the guards have acted."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                status, took = self.second(number)
                self.assertEqual(128 + number, status)
                self.assertLess(took, 10)
                os.unlink(self.file)

    def test_a_program_hangs(self) -> None:
        """Guards do not wait for a program that the command waits for: it is killed."""
        hangs = WAITS.replace("os.read(reading, 1)", "run_kept(Program(['/bin/sh', '-c', 'trap \"\" TERM; sleep 300; "
                                                     "sleep 300']), 300)")
        status, took = self.second(signal.SIGINT, hangs)
        self.assertEqual(130, status)
        self.assertLess(took, 15)

    def test_detached(self) -> None:
        """The process that the shell waits for passes signals on to the detached one."""
        status, _ = self.second(signal.SIGTERM, "from dyntrace_command.recording.daemonize import detach\n"
                                "if detach() is None: sys.exit(0)\n" + WAITS)
        self.assertEqual(128 + signal.SIGTERM, status)

    def test_limit(self) -> None:
        """One signal is sufficient if nothing follows."""
        process = self.start("Interrupted.LIMIT_S = 1\n" + WAITS)
        self.line(process)
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        self.assertEqual((128 + signal.SIGTERM, ["guard"]), (process.returncode, self.written()))

    def test_slow(self) -> None:
        """The command says that it is still ending."""
        process = self.start("Interrupted.SLOW_S = 0.1\n" + WAITS)
        self.line(process)
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        self.assertEqual("dyntrace: still ending; a second Ctrl-C ends it at once, without what is not written yet\n",
                         process.stderr.readline())

    def test_first(self) -> None:
        """A signal within the block is handled; one after the block has its usual effect."""
        process = self.start("with Interrupted() as interrupted:\n    print('ready', flush=True)\n"
                             "    interrupted.snapshot.wait()\n    print(interrupted.happened.is_set(), flush=True)\n"
                             "    interrupted.happened.wait()\ntry:\n    print('after', flush=True)\n"
                             "    time.sleep(300)\nexcept KeyboardInterrupt:\n    print('as ever', flush=True)\n")
        self.assertEqual("ready", self.line(process))
        process.send_signal(signal.SIGUSR1)
        self.assertEqual("False", self.line(process))
        for text in ("after", "as ever"):
            process.send_signal(signal.SIGINT)
            self.assertEqual(text, self.line(process))
        self.assertEqual(0, process.wait(30))

    def test_main_thread_stops(self) -> None:
        """The work stops before the guards undo it."""
        process = self.start("Interrupted.SECOND_S = 0\nact = f'echo guard >> {sys.argv[1]}; sleep 1'\n"
                             "with Interrupted():\n    guard = Guard(Program(['/bin/sh', '-c', act]))\n"
                             "    print('ready', flush=True)\n    while True:\n        file = open(sys.argv[1], 'a')\n"
                             "        file.write('work\\n')\n        file.close()\n        time.sleep(0.01)\n")
        self.line(process)
        self.assertTrue(until(lambda: "work" in self.written(), 10))
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(130, process.wait(30))
        # A step that has begun is finished.
        self.assertLess(len(self.written()) - self.written().index("guard"), 4)

    def test_terminal(self) -> None:
        """The terminal is restored, although the main thread hangs."""
        text = HEAD + "from dyntrace_command.common.terminal import Screen\n" \
            "with Interrupted() as interrupted, Screen(None, ''):\n" \
            "    interrupted.happened.wait()\n    os.read(os.pipe()[0], 1)\n"
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-c", text])
        with open(terminal, "r+b", buffering=0) as stream:
            before = termios.tcgetattr(stream)
            shown = read_until(stream, b"q quits.")
            self.assertNotEqual(before, termios.tcgetattr(stream))
            ended: Optional[int] = None
            deadline = time.monotonic() + 30
            while ended is None and time.monotonic() < deadline:
                os.kill(pid, signal.SIGINT)
                time.sleep(0.1)
                found, status = os.waitpid(pid, os.WNOHANG)
                ended = os.WEXITSTATUS(status) if found else None
            self.assertEqual(130, ended)
            shown += read_until(stream, b"\x1b[?1049l")
            self.assertTrue(shown.endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l"))
            self.assertEqual(before, termios.tcgetattr(stream))


def read_until(stream: IO[bytes], text: bytes) -> bytes:
    """Reads a terminal until this text appears, or its program ends."""
    data = b""
    with contextlib.suppress(OSError):
        while text not in data:
            data += stream.read(1000)
    return data
