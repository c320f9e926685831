"""How a process ended, and the reason in a node's crash dump."""
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest
from typing import List

from dyntrace_command.host.cgroups import CGROUPS
from dyntrace_command.host.process import Process
from dyntrace_command.host.process_end import EndWatch, kills
from dyntrace_command.node.crash_dump import CrashDump

# Linux 6.15 says how a process ended that is not a child of this command.
SAYS_HOW = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 15) and hasattr(os, "pidfd_open")
UNKNOWN = "the kernel does not say how"


def end_of(program: List[str]) -> str:
    """Returns how a grandchild ended that prints its PID and then waits for a line."""
    with subprocess.Popen(["sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh", *program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as parent:
        assert parent.stdin and parent.stdout
        watch = EndWatch(Process(int(parent.stdout.readline())))
        try:
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            if watch.descriptor != -1:
                select.select([watch.descriptor], [], [])
            parent.wait()
            return watch.how()
        finally:
            watch.close()


class Ends(unittest.TestCase):
    """Ends by exit and by signals."""

    def test_status(self) -> None:
        """The status is that of a program, or the name of a signal."""
        for line, how in [("exit 3", "exited with status 3"), ("exit 0", "exited with status 0"),
                          ("kill -KILL $$", "killed by SIGKILL"), ("kill -SEGV $$", "killed by SIGSEGV")]:
            with self.subTest(line):
                found = end_of(["sh", "-c", f"echo $$; read _; {line}"])
                self.assertEqual(found, how if SAYS_HOW else UNKNOWN)

    def test_zombie(self) -> None:
        """A parent that does not wait leaves the status in /proc."""
        with subprocess.Popen(["sh", "-c", "read _; exit 5"], stdin=subprocess.PIPE) as child:
            watch = EndWatch(Process(child.pid))
            assert child.stdin
            child.stdin.close()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            self.assertEqual(watch.how(), "exited with status 5")
            watch.close()

    def test_gone(self) -> None:
        """A process that has ended before has no descriptor: another one may have its PID."""
        child = subprocess.Popen(["sleep", "100"])
        process = Process(child.pid)
        child.kill()
        child.wait()
        watch = EndWatch(process)
        self.assertEqual((watch.descriptor, watch.how()), (-1, UNKNOWN))
        watch.close()

    @unittest.skipUnless(os.access(f"{CGROUPS}/memory", os.W_OK), "cgroups of version 1 can't be made here")
    def test_out_of_memory(self) -> None:
        """The kernel kills a process that exceeds the limit of its cgroup."""
        group = f"{CGROUPS}/memory/dyntrace-test-{os.getpid()}"
        os.mkdir(group)
        try:
            with open(f"{group}/memory.limit_in_bytes", "w", encoding="ascii") as file:
                file.write("30M")
            program = (f"import os\nopen('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n"
                       "print(os.getpid(), flush=True)\ninput()\nbytearray(100 << 20)")
            found = end_of([sys.executable, "-IS", "-c", program])
            # Only root may read the kernel's log.
            self.assertIn(found, ["killed by the kernel, because memory ran out",
                                  "killed by SIGKILL, and the kernel killed a process of its cgroup because memory ran "
                                  "out"])
        finally:
            os.rmdir(group)

    def test_counter(self) -> None:
        """Both formats; a file without the counter."""
        for text, count in [(b"low 0\noom 2\noom_kill 1\noom_group_kill 0\n", 1),
                            (b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3), (b"oom_kill x\n", 0), (b"", 0)]:
            with tempfile.TemporaryFile() as file:
                file.write(text)
                file.flush()
                self.assertEqual(kills(file.fileno()), count)


class CrashDumps(unittest.TestCase):
    """The slogan of a crash dump."""

    def slogan(self, text: bytes, since: float = 0, name: str = "erl_crash.dump") -> str:
        """Returns the slogan of a file with this text, written now."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "erl_crash.dump"), "wb") as file:
                file.write(text)
            dump = CrashDump.__new__(CrashDump)
            dump.since, dump.name = since, name
            dump.folder = os.open(folder, os.O_PATH | os.O_DIRECTORY)
            try:
                return dump.slogan()
            finally:
                dump.close()

    def test_slogan(self) -> None:
        """It is the third line; contents are hidden, and a file of any size is read in part."""
        head = b"=erl_crash_dump:0.5\nFri Nov 27 23:00:00 2026\nSlogan: "
        for text, slogan in [(b"out of tea\nSystem version: x\n", "out of tea"),
                             (b'Kernel pid terminated (application_controller) ("shop secret")\n',
                              "Kernel pid terminated (application_controller) ([11 characters])"),
                             (b"tea " * 100000, ("tea " * 75)), (b"\xff\n", "\ufffd")]:
            self.assertEqual(self.slogan(head + text), slogan)
        self.assertEqual(self.slogan(b"Slogan: not a dump\n"), "")

    def test_not_its_own(self) -> None:
        """An older file, no file, or no folder."""
        head = b"=erl_crash_dump:0.5\nFri\nSlogan: old\n"
        self.assertEqual(self.slogan(head), "old")
        self.assertEqual(self.slogan(head, since=time.time() + 100), "")
        self.assertEqual(self.slogan(head, name="other.dump"), "")
        dump = CrashDump.__new__(CrashDump)
        dump.since, dump.folder, dump.name = 0, -1, "x"
        self.assertEqual(dump.slogan(), "")


if __name__ == "__main__":
    unittest.main()
