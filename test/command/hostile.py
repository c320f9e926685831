"""Material for tests of the trust boundary: libraries with chosen notes, processes whose output a test chooses, folders
made by another user."""
import os
import signal
import struct
import subprocess
import tempfile
import unittest
from typing import Sequence

from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import STATE
from dyntrace_command.node.container import Container

IS_ROOT = os.geteuid() == 0
HEADER, SECTION = 64, 64
NO_FILE = "not a regular file, or it is too large"
# Where tests map a library, and the address of what they read there.
BASE, SEMAPHORE = 0x10000, 0x2000


def note(name: str, semaphore: int, provider: str = "shop") -> bytes:
    """A note of type stapsdt."""
    texts = f"{provider}\0{name}\0-8@%rax\0".encode()
    return note_of(struct.pack("<QQQ", 0x1000, 0, semaphore) + texts)


def note_of(description: bytes) -> bytes:
    """A note of any type."""
    padding = bytes(-len(description) % 4)
    return struct.pack("<III", 8, len(description), 3) + b"stapsdt\0" + description + padding


def status_note(address: int, kind: int = 1) -> bytes:
    """The note of a status."""
    return struct.pack("<III12sQ", 9, 8, kind, b"dyntrace", address)


def library(notes: Sequence[bytes], section: bytes = b".note.stapsdt") -> bytes:
    """An ELF file with these notes: its header, the names of sections, the notes, the section table."""
    names = b"\0.shstrtab\0" + section + b"\0"
    contents = b"".join(notes)
    sections = b"".join(struct.pack("<IIQQQQ24x", name, 0, 0, 0, offset, length) for name, offset, length in (
        (0, 0, 0), (1, HEADER, len(names)), (11, HEADER + len(names), len(contents))))
    header = bytearray(HEADER)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, HEADER + len(names) + len(contents))
    struct.pack_into("<HHH", header, 0x3a, SECTION, 3, 1)
    return bytes(header) + names + contents + sections


def new_place(test: unittest.TestCase) -> str:
    """Makes a folder that is removed after the test. Python can't remove folders that are nested deeper than its
    stack."""
    place = os.path.realpath(tempfile.mkdtemp(prefix="dyntrace-test-"))
    test.addCleanup(lambda: subprocess.run(["rm", "-rf", place], check=True))
    return place


def make_deep(folder: str, count: int) -> None:
    """Makes that many nested folders."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


def index_of(*contents: int) -> bytes:
    """An index of packets whose contents have these sizes in bits."""
    entries = [struct.pack(">QQQ", 0, 4096, bits) for bits in contents]
    return struct.pack(">IIII", 0xC1F1DCC1, 1, 1, 24) + b"".join(entries)


class Pretender(Container):
    """A process whose files in /proc are those of a folder; `root` in it is the process's file system. The test acts as
    the child that may read it."""

    def __init__(self, folder: str) -> None:
        super().__init__(Process(os.getpid()))
        STATE.is_child = True
        self.dir = folder
        os.makedirs(self.in_root(""), exist_ok=True)

    def in_root(self, path: str) -> str:
        """The path of a file in the process's file system."""
        return os.path.join(self.dir, "root", path.lstrip("/"))

    def says(self, name: str, contents: bytes) -> None:
        """Writes a file of the process's folder in /proc."""
        with open(os.path.join(self.dir, name), "wb") as file:
            file.write(contents)

    def has(self, path: str, contents: bytes) -> None:
        """Writes a file in the process's file system."""
        os.makedirs(os.path.dirname(self.in_root(path)), exist_ok=True)
        with open(self.in_root(path), "wb") as file:
            file.write(contents)


class Boundary(unittest.TestCase):
    """A test with its own folder. A test that blocks fails."""

    def setUp(self) -> None:
        folder = new_place(self)
        self.outside = os.path.join(folder, "secret")
        with open(self.outside, "wb") as file:
            file.write(b"outside")
        self.evil = Pretender(os.path.join(folder, "process"))
        self.evil.has("/hosts", b"inside")
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, self.blocks))
        signal.alarm(20)
        self.addCleanup(signal.alarm, 0)

    def blocks(self, *_: object) -> None:
        """Fails, because the test is blocked."""
        self.fail("it blocks")

    def link(self, target: str, path: str) -> None:
        """Makes a link in the process's file system."""
        os.symlink(target, self.evil.in_root(path))
