"""The schedulers and threads of VMs with each C library and on each machine."""
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from typing import List, Tuple
from unittest import mock

from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import isolated
from dyntrace_command.node import stack_snapshot
from dyntrace_command.node.c_threads import THREAD_LAYOUTS, ThreadLayout, thread_number, threads
from dyntrace_command.node.container import Container
from dyntrace_command.node.stack_snapshot import Snapshot
from dyntrace_command.node.vm_memory import VmMemory
from dyntrace_command.node.vm_structures import PROCESS_LAYOUTS, ProcessLayout
from test_vm_memory import CODE, FUNCTIONS, Image

# A program that prints the identity and the number of a thread, its compilers, and the emulators that run it.
SOURCE = os.path.join(os.path.dirname(__file__), "../support/thread/thread.c")
BUILDS: List[Tuple[List[str], List[str]]] = [
    (["cc", "-pthread"], []), (["musl-gcc"], []),
    (["aarch64-linux-gnu-gcc", "-static", "-pthread"], ["qemu-aarch64-static"])]


class Threads(unittest.TestCase):
    """The numbers of threads."""

    def test_images(self) -> None:
        """The schedulers of VMs with each C library, and processes of each release and machine."""
        for thread in THREAD_LAYOUTS:
            for process in PROCESS_LAYOUTS:
                with self.subTest(thread=thread, process=process):
                    self.taken(thread, process)

    def taken(self, thread: ThreadLayout, process: ProcessLayout) -> None:
        """Checks a snapshot of a VM that has one scheduler and one process."""
        image = Image()
        image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        image.add_tables("shop", "init", "till")
        image.add_scheduler(image.add_process(1, 0x13, [CODE + 0x10c], process), thread)
        with mock.patch.object(stack_snapshot, "VmMemory", lambda inside: image):
            found = Snapshot(image.inside).take()
        image.file.close()
        self.assertEqual([77], [one["thread"] for one in found["schedulers"]])
        self.assertEqual([(1, True)], [(one["count"], one["consistent"]) for one in found["groups"]])

    def test_broken_list(self) -> None:
        """Where a list of threads identifies the structure, it must be consistent."""
        for layout in THREAD_LAYOUTS[1:]:
            for at in (layout.next, layout.previous):
                image = Image()
                thread = image.add_thread(layout)
                self.assertEqual(5, thread_number(image, thread, {5}))
                self.assertEqual(0, thread_number(image, thread, {6}))
                for word in (0, 8, thread + 64, 1 << 63, (1 << 64) - 8):
                    image.write(thread + at, struct.pack("<Q", word))
                    self.assertEqual(0, thread_number(image, thread, {5}))
                image.file.close()

    def test_real(self) -> None:
        """The thread of a real program: for glibc, for musl, and for arm64 in an emulator."""
        for compiler, emulator in BUILDS:
            if None in map(shutil.which, (compiler[0], *emulator)):
                continue
            with self.subTest(compiler), tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "thread")
                subprocess.run([*compiler, "-o", program, SOURCE], check=True)
                with subprocess.Popen([*emulator, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                    assert process.stdin and process.stdout
                    thread, number = map(int, process.stdout.readline().split())
                    self.assertEqual([number, 0], numbers(process.pid, thread))


def numbers(pid: int, thread: int) -> List[int]:
    """The numbers in the structures at this address and behind it."""
    def read() -> List[int]:
        inside = Container(Process(pid))
        memory, known = VmMemory(inside), threads(inside)
        return [thread_number(memory, at, known) for at in (thread, thread + 8)]
    found: List[int] = isolated(Process(pid), read).value
    return found
