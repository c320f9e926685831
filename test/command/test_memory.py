"""The memory at the addresses of a library's notes: semaphores and status."""
import os
import struct
from typing import List, Optional
from unittest import mock

from hostile import BASE, NO_FILE, SEMAPHORE, Boundary, library, note, status_note

from dyntrace_command.common.functions import Function
from dyntrace_command.host.files import closing
from dyntrace_command.host.sandbox import STATE
from dyntrace_command.host.trees import mount_of
from dyntrace_command.node.container import Mapping
from dyntrace_command.node.status import Status


class Semaphores(Boundary):
    """Reads the memory at the addresses of a library's notes."""

    def setUp(self) -> None:
        super().setUp()
        self.mapped = [Mapping(BASE + 0x1000, BASE + 0x4000, "rw-p", 0x1000, "08:01", 17, "/lib/dyntrace.so")]
        self.evil.has("/lib/dyntrace.so", library([note("pay", SEMAPHORE), note("cancel", SEMAPHORE + 2)]))

    def remembers(self, values: bytes, address: int = BASE + SEMAPHORE) -> None:
        """Sets the process's memory."""
        self.evil.says("mem", b"")
        with open(os.path.join(self.evil.dir, "mem"), "r+b") as file:
            file.seek(address)
            file.write(values)

    def enabled(self) -> List[str]:
        """The enabled probes."""
        return [name for name, enabled in self.evil.probes("/lib/dyntrace.so", self.mapped).items() if enabled]

    def test_raised(self) -> None:
        """The probes whose semaphores are not zero."""
        self.remembers(struct.pack("<HH", 0, 3))
        self.assertEqual(["shop:cancel"], self.enabled())

    def test_library_that_is_none(self) -> None:
        """A pipe, a link to the outside, and a text instead of a library."""
        self.remembers(bytes(4))
        path = self.evil.in_root("lib/dyntrace.so")
        os.unlink(path)
        os.mkfifo(path)
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.enabled()
        os.unlink(path)
        os.symlink(self.outside, path)
        with self.assertRaises(FileNotFoundError):
            self.enabled()
        os.unlink(path)
        self.evil.has("/lib/dyntrace.so", b"#!/bin/sh\n")
        with self.assertRaisesRegex(ValueError, "not 64-bit"):
            self.enabled()

    def test_absurd_addresses(self) -> None:
        """Addresses that are far apart, far away, negative, or after the end of the memory."""
        self.remembers(bytes(4))
        for first, second in ((0, 2**40), (2**64 - 2, 2**64 - 4), (2**62, 2**62 + 2), (SEMAPHORE, SEMAPHORE + 0x8000)):
            self.evil.has("/lib/dyntrace.so", library([note("pay", first or 1), note("cancel", second)]))
            with self.subTest(first=first), self.assertRaises((ValueError, OSError)):
                self.enabled()
        self.mapped = [Mapping(0, 2**40, "rw-p", 2**62, "08:01", 17, "/lib/dyntrace.so")]
        with self.assertRaises((ValueError, OSError)):
            self.enabled()

    def test_memory_of_other_files(self) -> None:
        """Memory is read only where the library's own file, or anonymous memory after it, is mapped."""
        self.remembers(struct.pack("<HH", 1, 1))
        code = Mapping(BASE, BASE + 0x1000, "r-xp", 0, "08:01", 17, "/lib/dyntrace.so")
        data = BASE + SEMAPHORE, BASE + SEMAPHORE + 0x1000, "rw-p"
        between = Mapping(BASE + 0x1000, BASE + SEMAPHORE, "rw-p", 0, "00:00", 0, "")
        for last, found in ((Mapping(*data, 0x2000, "08:01", 17, "/lib/dyntrace.so"), True),
                            (Mapping(*data, 0, "00:00", 0, ""), True),
                            (Mapping(*data, 0x2000, "00:2f", 17, "/lib/dyntrace.so"), False),
                            (Mapping(*data, 0x2000, "08:01", 18, "/lib/dyntrace.so"), False),
                            (Mapping(*data, 0x2000, "08:01", 17, "/other"), False),
                            (Mapping(*data, 0, "00:01", 5, "/memfd:x (deleted)"), False)):
            self.mapped = [code, between, last]
            with self.subTest(last):
                if found:
                    self.assertEqual(["shop:cancel", "shop:pay"], sorted(self.enabled()))
                else:
                    self.assertRaisesRegex(ValueError, "not in the library's memory", self.enabled)
        self.mapped = [code, Mapping(*data, 0, "00:00", 0, "")]
        self.assertRaisesRegex(ValueError, "not in the library's memory", self.enabled)

    def test_remote_file_systems(self) -> None:
        """For a process of another user, nothing on FUSE or on a network file system is read."""
        self.remembers(struct.pack("<HH", 1, 1))
        root = self.evil.in_root("")
        with closing(os.open(root, os.O_PATH)) as descriptor:
            mount = mount_of(descriptor)
        for kind, number, device, is_read in (("ext4", mount, "08:01", True), ("fuse.sshfs", mount, "0:9", False),
                                              ("fuse", "9999", "08:01", False), ("nfs4", mount, "0:9", False),
                                              ("9p", "9999", "08:01", False), ("tmpfs", mount, "08:01", True)):
            self.evil.says("mountinfo", f"{number} 1 {device} / / rw shared:1 - {kind} x rw\n".encode())
            self.evil.remote = None
            with self.subTest((kind, number)), mock.patch.object(STATE, "is_foreign", True):
                if is_read:
                    self.assertEqual(2, len(self.enabled()))
                else:
                    self.assertRaisesRegex(OSError, "may not answer", self.enabled)
            self.evil.remote = None
            self.assertEqual(2, len(self.enabled()))

    def test_library_that_is_not_mapped(self) -> None:
        """The library has been replaced meanwhile."""
        self.mapped = []
        with self.assertRaises(ValueError):
            self.enabled()


class StatusOfNode(Boundary):
    """Reads the status at its address."""

    def setUp(self) -> None:
        super().setUp()
        self.mapped = [Mapping(BASE, BASE + 0x4000, "rw-p", 0, "08:01", 17, "/lib/dyntrace.so")]
        self.evil.has("/lib/dyntrace.so", library([status_note(SEMAPHORE)], b".note.dyntrace"))

    def says(self, text: bytes, version: int = 2, layout: int = 1, size: Optional[int] = None) -> Status:
        """The status, with this text in the memory."""
        block = struct.pack("<III", layout, version, len(text) if size is None else size) + text
        self.evil.says("mem", bytes(BASE + SEMAPHORE) + block.ljust(4096, b"\0"))
        return Status(self.evil.status("/lib/dyntrace.so", self.mapped))

    def test_texts(self) -> None:
        """Texts as the node writes them."""
        status = self.says(b"node: shop@db1\nfollowing: on\nwithheld: vm_long_gc: taken\nwithheld: call: too many\n")
        self.assertEqual(("shop@db1", "on", ["vm_long_gc: taken", "call: too many"]),
                         (status.name(), status.said("following"), status.withheld()))

    def test_functions(self) -> None:
        """The traced functions. They are unknown if the node does not report them, or if the text is cut."""
        self.assertIsNone(self.says(b"following: off\n").functions())
        self.assertEqual([], self.says(b"functions: 0\n").functions())
        said = b"functions: 2\nfunction: shop:price/1\nfunction: 'Elixir.Shop':_/_\n"
        self.assertEqual([Function("shop", "price", "1"), Function("'Elixir.Shop'", "_")], self.says(said).functions())
        for cut in (said[:-10], said[:45], said.replace(b":price", b" pay")):
            self.assertIsNone(self.says(cut).functions(), cut)

    def test_other_library(self) -> None:
        """A library that is not dyntrace's has no such note."""
        self.evil.has("/lib/dyntrace.so", library([note("pay", SEMAPHORE)]))
        status = self.says(b"node: shop@db1\n")
        self.assertEqual((None, []), (status.name(), status.withheld()))

    def test_names_that_are_none(self) -> None:
        """A text of the node that is not a valid name is not used as one, and texts are escaped for the terminal."""
        for name in (b"", b"shop", b"shop@", b"@db1", b"a b@c", b"a@b@c", b"x" * 300 + b"@y", b"\x1b[2J @x"):
            with self.subTest(name):
                self.assertIsNone(self.says(b"node: " + name + b"\n").name())
        self.assertEqual(["\\x1b]0;x\\x07"], self.says(b"withheld: \x1b]0;x\x07\n").withheld())
        self.assertEqual("shop\ufffd@db1", self.says(b"node: shop\xff@db1\n").name())

    def test_bounds(self) -> None:
        """Wrong sizes, endless lines, any number of lines."""
        self.assertEqual("a@b", self.says(b"node: a@b\n", size=2**32 - 1).name())
        self.assertLessEqual(len(self.says(b"withheld: " + b"x" * 4000).withheld()[0]), 1000)
        self.assertEqual(20, len(self.says(b"withheld: x\n" * 300).withheld()))

    def test_never_written(self) -> None:
        """Another layout; a version that stays odd; a note of another kind; memory that ends."""
        with self.assertRaisesRegex(ValueError, "an unknown layout"):
            self.says(b"node: a@b\n", layout=2)
        with self.assertRaisesRegex(ValueError, "being written"):
            self.says(b"node: a@b\n", version=3)
        self.evil.has("/lib/dyntrace.so", library([status_note(SEMAPHORE, 7)], b".note.dyntrace"))
        with self.assertRaisesRegex(ValueError, "an unknown type"):
            self.says(b"node: a@b\n")
        for address in (2**40, 2**63, 2**64 - 1):
            self.evil.has("/lib/dyntrace.so", library([status_note(address)], b".note.dyntrace"))
            with self.subTest(address), self.assertRaises((ValueError, OSError)):
                self.says(b"node: a@b\n")
