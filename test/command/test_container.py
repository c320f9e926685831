"""The boundary of root's trust: attacks by containers, and their results."""
import contextlib
import os
import socket
import stat
import unittest
from typing import List, Tuple
from unittest import mock

from hostile import IS_ROOT, NO_FILE, Boundary

from dyntrace_command.host import file_system
from dyntrace_command.host.file_system import FOLDER_MOST, LIBRARY_MOST, TEXT_MOST
from dyntrace_command.host.files import check_regular, closing, read_regular
from dyntrace_command.host.process import Listener, Process
from dyntrace_command.node.container import Container, Mapping, epmd_names, lttng_consumers
from dyntrace_command.node.description import Description
from dyntrace_command.node.node import Node


class Files(Boundary):
    """Files in the container's file system."""

    def test_links_stay_inside(self) -> None:
        """Absolute links, links with `..`, links through folders."""
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
        """Links to the path of this test's own file, which root could read."""
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
        """Reading a pipe does not block. The pipe is not even opened, so a writer still finds no reader."""
        os.mkfifo(self.evil.in_root("pipe"))
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.read_file("/pipe", 100)
        with self.assertRaises(OSError):
            os.open(self.evil.in_root("pipe"), os.O_WRONLY | os.O_NONBLOCK)

    def test_socket_and_folder(self) -> None:
        """Sockets and folders are not readable files."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.evil.in_root("socket"))
            for path in ("/socket", "/"):
                with self.subTest(path), self.assertRaisesRegex(OSError, NO_FILE):
                    self.evil.read_file(path, 100)

    @unittest.skipUnless(IS_ROOT, "only root makes devices")
    def test_devices(self) -> None:
        """Endless devices, and devices with side effects on opening."""
        for name, kind, number in (("null", stat.S_IFCHR, (1, 3)), ("zero", stat.S_IFCHR, (1, 5)),
                                   ("watchdog", stat.S_IFCHR, (10, 130)), ("disk", stat.S_IFBLK, (7, 0))):
            os.mknod(self.evil.in_root(name), kind | 0o600, os.makedev(*number))
            with mock.patch.object(file_system, "read_regular") as opened, self.subTest(name), \
                    self.assertRaisesRegex(OSError, NO_FILE):
                self.evil.read_file("/" + name, 100)
            opened.assert_not_called()

    def test_huge_file(self) -> None:
        """A sparse file."""
        with open(self.evil.in_root("huge"), "wb") as file:
            file.truncate(1 << 40)
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.read_file("/huge", LIBRARY_MOST)
        with self.assertRaisesRegex(OSError, NO_FILE):
            self.evil.open_regular("/huge")

    def test_file_that_grows(self) -> None:
        """The file grows after it was checked."""
        path = self.evil.in_root("grows")
        self.evil.has("/grows", b"small")

        def grow(descriptor: int, most: int) -> None:
            check_regular(descriptor, most)
            with open(path, "ab") as file:
                file.write(b"x" * 1000)
        with mock.patch("dyntrace_command.host.files.check_regular", grow):
            self.assertEqual(100, len(read_regular(path, 100)))

    def test_exchanged_file(self) -> None:
        """The descriptor belongs to the file that was checked."""
        self.evil.has("/library", b"checked")
        with closing(self.evil.open_regular("/library")) as descriptor:
            os.unlink(self.evil.in_root("library"))
            self.link(self.outside, "library")
            with open(f"/proc/self/fd/{descriptor}", "rb") as file:
                self.assertEqual(b"checked", file.read())

    def test_no_descriptor_is_left(self) -> None:
        """The walk leaves no descriptor open, regardless of what it finds."""
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
        """Only some of its names are read."""
        os.mkdir(self.evil.in_root("many"))
        for number in range(20):
            self.evil.has(f"/many/{number:02}", b"")
        with mock.patch.object(file_system, "FOLDER_MOST", 10):
            self.assertEqual(10, len(self.evil.list_folder("/many")))
        self.assertEqual([f"{number:02}" for number in range(20)], self.evil.list_folder("/many"))
        self.assertGreater(FOLDER_MOST, 20)


class Texts(Boundary):
    """Texts from the container's processes."""

    def test_huge_texts(self) -> None:
        """Endless command lines, environments and mappings."""
        for name in ("cmdline", "environ", "maps", "cgroup"):
            self.evil.says(name, b"")
            os.truncate(os.path.join(self.evil.dir, name), TEXT_MOST + 1)
            with self.subTest(name), self.assertRaisesRegex(OSError, "is too large"):
                self.evil.text(name)
        self.assertEqual({}, self.evil.environment())

    def test_mappings(self) -> None:
        """Paths with blanks, newlines as the kernel writes them, bytes that are not UTF-8; no path."""
        self.evil.says("maps", b"00001000-00002000 r-xp 00000100 08:01 17    /a b/dyntrace.so\n"
                       b"00002000-00003000 rw-p 00000000 00:00 0 \n"
                       b"00003000-00004000 r--p 00000000 08:01 18    /x\\012y/\xff\x1b[31m.so (deleted)\n")
        self.assertEqual([Mapping(0x1000, 0x2000, "r-xp", 0x100, "08:01", 17, "/a b/dyntrace.so"),
                          Mapping(0x2000, 0x3000, "rw-p", 0, "00:00", 0, ""),
                          Mapping(0x3000, 0x4000, "r--p", 0, "08:01", 18, "/x\\012y/\ufffd\x1b[31m.so (deleted)")],
                         self.evil.mappings())

    def test_mappings_that_are_none(self) -> None:
        """Lines that the kernel does not write."""
        self.evil.says("maps", b"here-there r-xp nowhere 08:01 17 /dyntrace.so\n")
        with self.assertRaises(ValueError):
            self.evil.mappings()

    def test_arguments_and_environment(self) -> None:
        """Texts without an end, without values, or empty."""
        self.evil.says("cmdline", b"beam.smp\0-sname\0\xff\n\0left over")
        self.assertEqual(["beam.smp", "-sname", "\ufffd\n"], self.evil.arguments())
        self.evil.says("environ", b"HOME=/x=y\0nothing\0=\0\xff=1\0HOME=/last")
        self.assertEqual({"HOME": "/last", "": "", "\ufffd": "1"}, self.evil.environment())
        self.evil.says("cmdline", b"")
        self.assertEqual([], self.evil.arguments())

    def test_names_for_the_terminal(self) -> None:
        """Names, releases and versions contain no control characters, newlines or paths."""
        values = Description(Process(os.getpid()),
                             ["beam.smp", "-sname", "evil\x1b[31m\nroot@\u202ehost", "-root", "/x\n"]).values()
        self.assertEqual("evil\\x1b[31m\\x0aroot@\\x202ehost", values["node"])
        self.assertTrue(values["unknown"]["otp"].isprintable())
        values["node"] = "../../etc/\0x@y"
        self.assertRegex(Node(Process(os.getpid()), values).label(), r"^[A-Za-z0-9_.@-]+$")

    def test_versions(self) -> None:
        """Only versions of a known form are accepted."""
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
        """The names of LTTng's buffers contain a pid."""
        mapped = [Mapping(0, 1, "rw-s", 0, "00:18", 7, f"/dev/shm/shm-ust-consumer-{number} (deleted)")
                  for number in ("17", "9" * 40, "x")]
        self.assertEqual({17}, lttng_consumers(mapped))

    def test_epmd_of_others(self) -> None:
        """Names count only if root, or the process's own user, listens on epmd's port."""
        self.evil.says("environ", b"ERL_EPMD_PORT=4369\0")
        own = os.geteuid()
        cases: List[Tuple[List[int], bool]] = [
            ([0], True), ([102], True), ([own], True), ([own + 1000], False), ([65534], False), ([0, 65534], False),
            ([], False)]
        for owners, is_used in cases:
            listeners = [Listener(4369, "1", "127.0.0.1", owner) for owner in owners]
            with self.subTest(owners), mock.patch.object(Container, "sockets", return_value=listeners), \
                    mock.patch.dict(Container.epmds, {4369: {7: "shop"}}):
                self.assertEqual({7: "shop"} if is_used else {}, self.evil.registered())

    def test_epmd_that_is_none(self) -> None:
        """Invalid ports, and ports on which nothing listens."""
        for port in (-1, 0, 65536, 2**70):
            with self.subTest(port):
                self.assertEqual({}, epmd_names(port))
