"""The boundary of root's trust: what containers may try, and what comes of it."""
import contextlib
import os
import signal
import socket
import stat
import struct
import tempfile
import unittest
from typing import List, Optional
from unittest import mock

from hostile import Pretender, library, note, status_note

from dyntrace_command import container
from dyntrace_command.container import FOLDER_MOST, LIBRARY_MOST, TEXT_MOST, Mapping, epmd_names, lttng_consumers
from dyntrace_command.files import check_regular, closing, read_regular
from dyntrace_command.description import Description
from dyntrace_command.functions import Function
from dyntrace_command.node import Node
from dyntrace_command.process import Process
from dyntrace_command.sandbox import State
from dyntrace_command.status import Status

IS_ROOT = os.geteuid() == 0
NO_FILE = "not a regular file of a usual size"
BASE, SEMAPHORE = 0x10000, 0x2000


class Boundary(unittest.TestCase):
    """A folder of its own; whatever blocks ends a test."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="dyntrace-test-")
        self.addCleanup(folder.cleanup)
        self.outside = os.path.join(folder.name, "secret")
        with open(self.outside, "wb") as file:
            file.write(b"outside")
        self.evil = Pretender(os.path.join(folder.name, "process"))
        self.evil.has("/hosts", b"inside")
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, self.blocks))
        signal.alarm(20)
        self.addCleanup(signal.alarm, 0)

    def blocks(self, *_: object) -> None:
        """Something waits for what never comes."""
        self.fail("it blocks")

    def link(self, target: str, path: str) -> None:
        """A link in its file system."""
        os.symlink(target, self.evil.in_root(path))


class Files(Boundary):
    """Files of its file system."""

    def test_links_stay_inside(self) -> None:
        """Absolute ones, those that climb, through folders."""
        os.makedirs(self.evil.in_root("a/b"))
        self.link("/hosts", "absolute")
        self.link("../" * 10 + "hosts", "a/b/up")
        self.link("/a", "folder")
        self.link("/../../hosts", "above")
        for path in ("/hosts", "hosts", "/absolute", "/a/b/up", "/folder/b/up", "/a/b/../../../hosts", "//./hosts",
                     "/above"):
            with self.subTest(path):
                self.assertEqual(b"inside", self.evil.read_file(path, 100))

    def test_links_do_not_lead_out(self) -> None:
        """By the path of this test's own file, which root could read."""
        self.link(self.outside, "out")
        self.link("../../secret", "climbs")
        for path in ("/out", "/climbs", self.outside):
            with self.subTest(path), self.assertRaises(FileNotFoundError):
                self.evil.read_file(path, 100)

    def test_links_without_end(self) -> None:
        """Loops, chains, paths of many names, links that grow."""
        self.link("loop", "loop")
        self.link("grows/grows", "grows")
        for number in range(50):
            self.link(f"chain{number + 1}", f"chain{number}")
        os.makedirs(self.evil.in_root("a/b"))
        for path in ("/loop", "/grows", "/chain0", "/a" + "/b/.." * 300):
            with self.subTest(path[:20]), self.assertRaisesRegex(OSError, "Too many levels"):
                self.evil.read_file(path, 100)

    def test_pipe(self) -> None:
        """It does not block, and is not even opened: who writes still finds no reader."""
        os.mkfifo(self.evil.in_root("pipe"))
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.read_file("/pipe", 100)
        with self.assertRaises(OSError):
            os.open(self.evil.in_root("pipe"), os.O_WRONLY | os.O_NONBLOCK)

    def test_socket_and_folder(self) -> None:
        """Neither is a file to read."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.evil.in_root("socket"))
            for path in ("/socket", "/"):
                with self.subTest(path), self.assertRaisesRegex(OSError, NO_FILE):
                    self.evil.read_file(path, 100)

    @unittest.skipUnless(IS_ROOT, "only root makes devices")
    def test_devices(self) -> None:
        """Endless ones, and those whose opening has effects."""
        for name, kind, number in (("null", stat.S_IFCHR, (1, 3)), ("zero", stat.S_IFCHR, (1, 5)),
                                   ("watchdog", stat.S_IFCHR, (10, 130)), ("disk", stat.S_IFBLK, (7, 0))):
            os.mknod(self.evil.in_root(name), kind | 0o600, os.makedev(*number))
            with mock.patch.object(container, "read_regular") as opened, self.subTest(name), \
                    self.assertRaisesRegex(OSError, NO_FILE):
                self.evil.read_file("/" + name, 100)
            opened.assert_not_called()

    def test_huge_file(self) -> None:
        """A sparse one."""
        with open(self.evil.in_root("huge"), "wb") as file:
            file.truncate(1 << 40)
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.read_file("/huge", LIBRARY_MOST)
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.open_regular("/huge")

    def test_file_that_grows(self) -> None:
        """After it was checked."""
        path = self.evil.in_root("grows")
        self.evil.has("/grows", b"small")

        def grow(descriptor: int, most: int) -> None:
            check_regular(descriptor, most)
            with open(path, "ab") as file:
                file.write(b"x" * 1000)
        with mock.patch("dyntrace_command.files.check_regular", grow):
            self.assertEqual(100, len(read_regular(path, 100)))

    def test_exchanged_file(self) -> None:
        """The descriptor is that of the file that was checked."""
        self.evil.has("/library", b"checked")
        with closing(self.evil.open_regular("/library")) as descriptor:
            os.unlink(self.evil.in_root("library"))
            self.link(self.outside, "library")
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:
                self.assertEqual(b"checked", file.read())

    def test_no_descriptor_is_left(self) -> None:
        """Whatever the walk has found."""
        self.link("loop", "loop")
        os.mkfifo(self.evil.in_root("pipe"))
        before = os.listdir("/proc/self/fd")
        for path in ("/hosts", "/loop", "/pipe", "/none", "/hosts/below", "/../../hosts"):
            with contextlib.suppress(OSError):
                os.close(self.evil.open_regular(path))
            with contextlib.suppress(OSError):
                self.evil.read_file(path, 100)
            with contextlib.suppress(OSError):
                self.evil.list_folder(path)
        self.assertEqual(before, os.listdir("/proc/self/fd"))

    def test_huge_folder(self) -> None:
        """Some of its names."""
        os.mkdir(self.evil.in_root("many"))
        for number in range(20):
            self.evil.has(f"/many/{number:02}", b"")
        with mock.patch.object(container, "FOLDER_MOST", 10):
            self.assertEqual(10, len(self.evil.list_folder("/many")))
        self.assertEqual([f"{number:02}" for number in range(20)], self.evil.list_folder("/many"))
        self.assertGreater(FOLDER_MOST, 20)


class Texts(Boundary):
    """What it says of itself."""

    def test_huge_texts(self) -> None:
        """Command line, environment and mappings without end."""
        for name in ("cmdline", "environ", "maps", "cgroup"):
            self.evil.says(name, b"")
            os.truncate(os.path.join(self.evil.dir, name), TEXT_MOST + 1)
            with self.subTest(name), self.assertRaisesRegex(OSError, "is too large"):
                self.evil.text(name)
        self.assertEqual({}, self.evil.environment())

    def test_mappings(self) -> None:
        """Paths with blanks, line ends as the kernel writes them, bytes that are no text; no path."""
        self.evil.says("maps", b"00001000-00002000 r-xp 00000100 08:01 17    /a b/dyntrace.so\n"
                       b"00002000-00003000 rw-p 00000000 00:00 0 \n"
                       b"00003000-00004000 r--p 00000000 08:01 18    /x\\012y/\xff\x1b[31m.so (deleted)\n")
        self.assertEqual([Mapping(0x1000, 0x2000, "r-xp", 0x100, "08:01", 17, "/a b/dyntrace.so"),
                          Mapping(0x2000, 0x3000, "rw-p", 0, "00:00", 0, ""),
                          Mapping(0x3000, 0x4000, "r--p", 0, "08:01", 18, "/x\\012y/\ufffd\x1b[31m.so (deleted)")],
                         self.evil.mappings())

    def test_mappings_that_are_none(self) -> None:
        """The kernel writes no such lines."""
        self.evil.says("maps", b"here-there r-xp nowhere 08:01 17 /dyntrace.so\n")
        with self.assertRaises(ValueError):
            self.evil.mappings()

    def test_arguments_and_environment(self) -> None:
        """Without an end, without values, with none at all."""
        self.evil.says("cmdline", b"beam.smp\0-sname\0\xff\n\0left over")
        self.assertEqual(["beam.smp", "-sname", "\ufffd\n"], self.evil.arguments())
        self.evil.says("environ", b"HOME=/x=y\0nothing\0=\0\xff=1\0HOME=/last")
        self.assertEqual({"HOME": "/last", "": "", "\ufffd": "1"}, self.evil.environment())
        self.evil.says("cmdline", b"")
        self.assertEqual([], self.evil.arguments())

    def test_names_for_the_terminal(self) -> None:
        """Names, releases and versions have no control characters, no line ends and no paths."""
        values = Description(Process(os.getpid()),
                             ["beam.smp", "-sname", "evil\x1b[31m\nroot@\u202ehost", "-root", "/x\n"]).values()
        self.assertEqual("evil\\x1b[31m\\x0aroot@\\x202ehost", values["node"])
        self.assertTrue(values["unknown"]["otp"].isprintable())
        values["node"] = "../../etc/\0x@y"
        self.assertRegex(Node(Process(os.getpid()), values).label(), r"^[A-Za-z0-9_.@-]+$")

    def test_versions(self) -> None:
        """Of a known form only."""
        described = Description(Process(os.getpid()), ["beam.smp", "-root", "/otp"])
        described.inside = self.evil
        self.evil.has("/otp/releases/27/OTP_VERSION", b"27.1\x1b[31m\n")
        with self.assertRaises(ValueError):
            described.find_otp()
        self.evil.has("/otp/releases/26/OTP_VERSION", b"26.2.1\n")
        self.assertEqual("26.2.1", described.find_otp())
        described.library = "/app/priv/dyntrace.so"
        self.evil.has("/app/ebin/dyntrace.app", b'{vsn, "1.0\x1b[31m"}')
        with self.assertRaises(ValueError):
            described.find_version()
        self.evil.has("/app/src/dyntrace.app.src", b'{vsn, "1.0"}')
        self.assertEqual("1.0", described.find_version())

    def test_buffers_of_lttng(self) -> None:
        """Their names have a number of a process."""
        mapped = [Mapping(0, 1, "rw-s", 0, "00:18", 7, f"/dev/shm/shm-ust-consumer-{number} (deleted)")
                  for number in ("17", "9" * 40, "x")]
        self.assertEqual({17}, lttng_consumers(mapped))

    def test_epmd_that_is_none(self) -> None:
        """Ports that are none, or on which nobody listens."""
        for port in (-1, 0, 65536, 2**70):
            with self.subTest(port):
                self.assertEqual({}, epmd_names(port))


class Semaphores(Boundary):
    """The memory that is read at the addresses of a library's notes."""

    def setUp(self) -> None:
        super().setUp()
        self.mapped = [Mapping(BASE + 0x1000, BASE + 0x4000, "rw-p", 0x1000, "08:01", 17, "/lib/dyntrace.so")]
        self.evil.has("/lib/dyntrace.so", library([note("pay", SEMAPHORE), note("cancel", SEMAPHORE + 2)]))

    def remembers(self, values: bytes, address: int = BASE + SEMAPHORE) -> None:
        """Its memory."""
        self.evil.says("mem", b"")
        with open(os.path.join(self.evil.dir, "mem"), "r+b") as file:
            file.seek(address)
            file.write(values)

    def enabled(self) -> List[str]:
        """The enabled probes."""
        return [name for name, enabled in self.evil.probes("/lib/dyntrace.so", self.mapped).items() if enabled]

    def test_raised(self) -> None:
        """Those that are not zero."""
        self.remembers(struct.pack("<HH", 0, 3))
        self.assertEqual(["shop:cancel"], self.enabled())

    def test_library_that_is_none(self) -> None:
        """A pipe, a link out, a text."""
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
        with self.assertRaisesRegex(ValueError, "not of 64 bits"):
            self.enabled()

    def test_absurd_addresses(self) -> None:
        """Far apart, far away, below zero, behind the memory's end."""
        self.remembers(bytes(4))
        for first, second in ((0, 2**40), (2**64 - 2, 2**64 - 4), (2**62, 2**62 + 2), (SEMAPHORE, SEMAPHORE + 0x8000)):
            self.evil.has("/lib/dyntrace.so", library([note("pay", first or 1), note("cancel", second)]))
            with self.subTest(first=first), self.assertRaises((ValueError, OSError)):
                self.enabled()
        self.mapped = [Mapping(0, 2**40, "rw-p", 2**62, "08:01", 17, "/lib/dyntrace.so")]
        with self.assertRaises((ValueError, OSError)):
            self.enabled()

    def test_memory_of_other_files(self) -> None:
        """Memory is read where the library's own file is mapped, and where no file is that follows it."""
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
        """Of another user, nothing on FUSE or of a network is read."""
        self.remembers(struct.pack("<HH", 1, 1))
        root = self.evil.in_root("")
        with closing(os.open(root, os.O_PATH)) as descriptor:
            mount = container.mount_of(descriptor)
        for kind, number, device, is_read in (("ext4", mount, "08:01", True), ("fuse.sshfs", mount, "0:9", False),
                                              ("fuse", "9999", "08:01", False), ("nfs4", mount, "0:9", False),
                                              ("9p", "9999", "08:01", False), ("tmpfs", mount, "08:01", True)):
            self.evil.says("mountinfo", f"{number} 1 {device} / / rw shared:1 - {kind} x rw\n".encode())
            self.evil.remote = None
            with self.subTest((kind, number)), mock.patch.object(State, "is_foreign", True):
                if is_read:
                    self.assertEqual(2, len(self.enabled()))
                else:
                    self.assertRaisesRegex(OSError, "may not answer", self.enabled)
            self.evil.remote = None
            self.assertEqual(2, len(self.enabled()))

    def test_library_that_is_not_mapped(self) -> None:
        """It has been replaced meanwhile."""
        self.mapped = []
        with self.assertRaises(ValueError):
            self.enabled()


class StatusOfNode(Boundary):
    """What is read at the address of a status."""

    def setUp(self) -> None:
        super().setUp()
        self.mapped = [Mapping(BASE, BASE + 0x4000, "rw-p", 0, "08:01", 17, "/lib/dyntrace.so")]
        self.evil.has("/lib/dyntrace.so", library([status_note(SEMAPHORE)], b".note.dyntrace"))

    def says(self, text: bytes, version: int = 2, layout: int = 1, size: Optional[int] = None) -> Status:
        """The status, with this in the memory."""
        block = struct.pack("<III", layout, version, len(text) if size is None else size) + text
        self.evil.says("mem", bytes(BASE + SEMAPHORE) + block.ljust(4096, b"\0"))
        return Status(self.evil.status("/lib/dyntrace.so", self.mapped))

    def test_texts(self) -> None:
        """As the node writes them."""
        status = self.says(b"node: shop@db1\nfollowing: on\nwithheld: vm_long_gc: taken\nwithheld: call: too many\n")
        self.assertEqual(("shop@db1", "on", ["vm_long_gc: taken", "call: too many"]),
                         (status.name(), status.said("following"), status.withheld()))

    def test_functions(self) -> None:
        """Those that it traces: none is known if it does not say, or if the text is cut."""
        self.assertIsNone(self.says(b"following: off\n").functions())
        self.assertEqual([], self.says(b"functions: 0\n").functions())
        said = b"functions: 2\nfunction: shop:price/1\nfunction: 'Elixir.Shop':_/_\n"
        self.assertEqual([Function("shop", "price", "1"), Function("'Elixir.Shop'", "_")], self.says(said).functions())
        for cut in (said[:-10], said[:45], said.replace(b":price", b" pay")):
            self.assertIsNone(self.says(cut).functions(), cut)

    def test_earlier_library(self) -> None:
        """It has no such note."""
        self.evil.has("/lib/dyntrace.so", library([note("pay", SEMAPHORE)]))
        status = self.says(b"node: shop@db1\n")
        self.assertEqual((None, []), (status.name(), status.withheld()))

    def test_names_that_are_none(self) -> None:
        """No text of a node is believed to be a name, or goes to the terminal as it is."""
        for name in (b"", b"shop", b"shop@", b"@db1", b"a b@c", b"a@b@c", b"x" * 300 + b"@y", b"\x1b[2J @x"):
            with self.subTest(name):
                self.assertIsNone(self.says(b"node: " + name + b"\n").name())
        self.assertEqual(["\\x1b]0;x\\x07"], self.says(b"withheld: \x1b]0;x\x07\n").withheld())
        self.assertEqual("shop\ufffd@db1", self.says(b"node: shop\xff@db1\n").name())

    def test_bounds(self) -> None:
        """Sizes that lie, lines without end, lines without number."""
        self.assertEqual("a@b", self.says(b"node: a@b\n", size=2**32 - 1).name())
        self.assertLessEqual(len(self.says(b"withheld: " + b"x" * 4000).withheld()[0]), 1000)
        self.assertEqual(20, len(self.says(b"withheld: x\n" * 300).withheld()))

    def test_never_written(self) -> None:
        """Another layout; a version that stays odd; a note of another kind; memory that ends."""
        with self.assertRaisesRegex(ValueError, "another layout"):
            self.says(b"node: a@b\n", layout=2)
        with self.assertRaisesRegex(ValueError, "being written"):
            self.says(b"node: a@b\n", version=3)
        self.evil.has("/lib/dyntrace.so", library([status_note(SEMAPHORE, 7)], b".note.dyntrace"))
        with self.assertRaisesRegex(ValueError, "another kind"):
            self.says(b"node: a@b\n")
        for address in (2**40, 2**63, 2**64 - 1):
            self.evil.has("/lib/dyntrace.so", library([status_note(address)], b".note.dyntrace"))
            with self.subTest(address), self.assertRaises((ValueError, OSError)):
                self.says(b"node: a@b\n")


if __name__ == "__main__":
    unittest.main()
