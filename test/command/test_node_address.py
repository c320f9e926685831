"""How to reach a node: its cookie, its ports, and attacks in their place."""
import contextlib
import os
import socket
import struct
import threading
import unittest
from typing import Callable, Dict, List, Sequence, Tuple
from unittest import mock

from hostile import Pretender, new_place

from dyntrace_command.common.external_terms import Atom
from dyntrace_command.common.failures import Failure
from dyntrace_command.host.distribution import Connection, Refused
from dyntrace_command.host.elf import Target
from dyntrace_command.host.process import Listener, Process, ip_address
from dyntrace_command.node import node as node_module
from dyntrace_command.node.container import Container, Mapping
from dyntrace_command.node.description import erl_arguments, libc_of
from dyntrace_command.node.loading import Plan, check_node
from dyntrace_command.node.node import Node
from dyntrace_command.node.node_address import find_cookies, fixed_ports, values, way_to


class Reach(unittest.TestCase):
    """A node with texts that a test chooses."""

    def setUp(self) -> None:
        self.evil = Pretender(os.path.join(new_place(self), "process"))
        self.environment: Dict[str, str] = {}

    def node(self, *arguments: str) -> Node:
        """A node with these arguments."""
        node = Node(Process(os.getpid()), {"arguments": erl_arguments(["beam.smp", *arguments]), "unknown": {}})
        node.inside = self.evil
        self.evil.says("cmdline", "\0".join(["beam.smp", *arguments, ""]).encode())
        self.evil.says("environ", "\0".join(f"{name}={value}" for name, value in self.environment.items()).encode())
        return node

    def cookies(self, *arguments: str) -> List[str]:
        """The candidates for the node's cookie."""
        return list(find_cookies(self.node(*arguments), list(arguments)))

    def test_cookies(self) -> None:
        """All sources of cookies, in their order."""
        self.environment = {"RELEASE_COOKIE": "two"}
        self.evil.has("/app/releases/COOKIE", b"three\n")
        self.evil.has("/app/releases/1.0/vm.args", b"-name x@y\n## -setcookie old\n-setcookie 'four'\n+K true\n")
        for path, contents in (("/home/me/.erlang.cookie", b"five"),
                               ("/home/me/.config/erlang/.erlang.cookie", b"six")):
            self.evil.has(path, contents)
            os.chmod(self.evil.in_root(path), 0o400)
        self.assertEqual(["one", "two", "three", "four", "five", "six"],
                         self.cookies("-setcookie", "one", "-root", "/app", "-home", "/home/me"))

    def test_what_is_no_cookie(self) -> None:
        """A file of several words, one that is too long, a link to the outside, a pipe."""
        for contents in (b"root:x:0:0\ndaemon:x:1:1\n", b"a b", b"x" * 256, b""):
            self.evil.has("/home/.erlang.cookie", contents)
            self.assertEqual([], self.cookies("-home", "/home"))
        os.unlink(self.evil.in_root("/home/.erlang.cookie"))
        os.symlink("/etc/hostname", self.evil.in_root("/home/.erlang.cookie"))
        self.assertEqual([], self.cookies("-home", "/home"))
        os.unlink(self.evil.in_root("/home/.erlang.cookie"))
        os.mkfifo(self.evil.in_root("/home/.erlang.cookie"))
        self.assertEqual([], self.cookies("-home", "/home"))

    def test_cookie_as_otp_demands(self) -> None:
        """A regular file of the node's user, which no other user can read. Only links that root has made may lead to
        it."""
        path = self.evil.in_root("/home/.erlang.cookie")
        self.evil.has("/home/.erlang.cookie", b"secret")
        for mode, found in ((0o400, ["secret"]), (0o600, ["secret"]), (0o440, []), (0o604, []), (0o700, []),
                            (0o4600, [])):
            os.chmod(path, mode)
            self.assertEqual(found, self.cookies("-home", "/home"), oct(mode))
        os.chmod(path, 0o600)
        with mock.patch.object(Process, "uid", return_value=os.geteuid() + 1):
            self.assertEqual([], self.cookies("-home", "/home"))
        os.mkdir(self.evil.in_root("/other"))
        os.symlink("/home/.erlang.cookie", self.evil.in_root("/other/.erlang.cookie"))
        self.assertEqual([], self.cookies("-home", "/other"))
        os.symlink("home", self.evil.in_root("/linked"))
        owner = os.geteuid()
        for uid, found in ((0, ["secret"]), (12345, [])):
            if owner == 0:
                os.lchown(self.evil.in_root("/linked"), uid, -1)
            self.assertEqual(found if owner == 0 else [], self.cookies("-home", "/linked"), uid)

    def test_values(self) -> None:
        """A flag with one value, and parameters of flags."""
        arguments = ["-setcookie", "other@host", "x", "-setcookie", "y", "-kernel", "inet_dist_listen_min", "9100"]
        self.assertEqual(["y"], values(arguments, "-setcookie"))
        self.assertEqual(["9100"], values(arguments, "inet_dist_listen_min"))
        self.assertEqual([], values(["-setcookie"], "-setcookie"))

    def test_ports(self) -> None:
        """Ports in arguments and environment."""
        cases: List[Tuple[Dict[str, str], List[str], range]] = [
            ({}, ["-erl_epmd_port", "9000", "-x"], range(9000, 9001)),
            ({"ERL_DIST_PORT": "9001"}, [], range(9001, 9002)),
            ({}, ["inet_dist_listen_min", "9100", "inet_dist_listen_max", "9105"], range(9100, 9106)),
            ({"ERL_DIST_PORT": "99999999"}, ["inet_dist_listen_min", "-1"], range(0))]
        for environment, arguments, ports in cases:
            self.environment = environment
            self.assertEqual(ports, fixed_ports(self.node(*arguments), arguments))

    def test_no_way(self) -> None:
        """Each reason for a failure."""
        cases: List[Tuple[List[str], str]] = [
            ([], "load_no_distribution"), (["-proto_dist", "inet_tls", "-x"], "load_tls"),
            (["-proto_dist", "inet_other", "-x"], "load_protocol")]
        for arguments, key in cases:
            self.fails(key, way_to, self.node(*arguments))
        with mock.patch.object(Container, "listens", return_value=[Listener(1, "1", ""), Listener(2, "2", "")]):
            self.fails("load_no_port", way_to, self.node("-sname", "x"))
        with mock.patch.object(Container, "listens", return_value=[Listener(1, "1", "")]):
            self.fails("load_no_cookie", way_to, self.node("-sname", "x"))

    def fails(self, key: str, function: Callable[..., object], *arguments: object) -> None:
        """Checks that the function raises this failure."""
        with self.assertRaises(Failure) as raised:
            function(*arguments)
        self.assertEqual(key, raised.exception.key)

    def test_old(self) -> None:
        """An old OTP, an old erl_nif."""
        node = self.node()
        node.otp = "24.3.4"
        self.fails("load_old_otp", Plan, node)
        connection, build = mock.Mock(call=mock.Mock(return_value=list(b"2.16"))), mock.Mock(target=Target(62, "glibc",
                                                                                                          (2, 17)))
        self.fails("load_old_nif", check_node, node, build, connection)

    def test_no_library(self) -> None:
        """The child that opens the library was killed."""
        node = self.node()
        node.library = "/dyntrace.so"
        with mock.patch.object(node_module, "isolated", side_effect=ValueError("its reader was ended")):
            self.fails("not_readable", node.handle)

    def test_libc(self) -> None:
        """glibc before and after 2.34, musl with and without Alpine's link; a static library."""
        for name, libc in (("libc.so.6", "glibc"), ("libc-2.31.so", "glibc"), ("ld-musl-x86_64.so.1", "musl"),
                           ("libc.musl-aarch64.so.1", "musl"), ("libcrypto.so.3", "?")):
            self.assertEqual(libc, libc_of([Mapping(0, 1, "r-xp", 0, "08:01", 1, "/lib/" + name)]))

    def test_without_stacks(self) -> None:
        """The stacks of VMs with JIT can probably be read on two machines, with any C library."""
        node = self.node()
        for machine, libc, jit, why in ((62, "glibc", True, None), (183, "musl", True, None), (62, "?", True, None),
                                        (183, "glibc", False, "has no JIT"), (243, "glibc", True, "x86-64 or arm64"),
                                        (0, "?", False, None)):
            node.found.update(machine=machine, libc=libc, jit=jit)
            self.assertRegex(str(node.without_stacks()), why or "^None$")

    def test_addresses(self) -> None:
        """Addresses as the kernel writes them."""
        self.assertEqual("127.0.0.1", ip_address(struct.pack("=I", int.from_bytes(b"\x7f\0\0\1", "big")).hex()))
        self.assertEqual("::", ip_address("0" * 32))


class Nodes(unittest.TestCase):
    """Programs that answer in place of a node."""

    def answered(self, answers: Sequence[bytes]) -> Connection:
        """A connection to a program that sends these answers."""
        own, other = socket.socketpair()
        self.addCleanup(own.close)
        self.addCleanup(other.close)
        sender = threading.Thread(target=self.send, args=(other, b"".join(answers)))
        sender.start()
        self.addCleanup(sender.join)
        return Connection(own, "own@host", "cookie", 2)

    @staticmethod
    def send(to: socket.socket, answer: bytes) -> None:
        """Sends the answer, whether it is read or not."""
        with contextlib.suppress(OSError):
            to.sendall(answer)
            to.shutdown(socket.SHUT_WR)

    def test_refused(self) -> None:
        """Refused by the status, or by the proof of the cookie."""
        challenge = b"N" + struct.pack(">QIIH", 0, 1, 1, 1) + b"x"
        for answers, key in (([b"salive"], "load_busy"), ([b"snot_allowed"], "load_not_allowed"),
                             ([b"snok"], "load_refused"), ([b"sok", b"nold"], "load_old_node"),
                             ([b"sok", challenge], "load_wrong_cookie"),
                             ([b"sok", challenge, b"a" + bytes(16)], "load_wrong_cookie")):
            with self.subTest(key), self.assertRaises(Refused) as raised:
                self.answered([struct.pack(">H", len(answer)) + answer for answer in answers])
            self.assertEqual(key, raised.exception.key)
        with self.assertRaises(Refused) as raised:
            self.answered([b"\0\x06s\x1b[31m"])
        self.assertEqual("\\x1b[31m", raised.exception.why)

    def test_anything(self) -> None:
        """No bytes, too few, too many: each is a known error."""
        cases: List[List[bytes]] = [[], [b"\0"], [b"\0\x03sok", b"\0\x02N\0"], [os.urandom(1000)],
                                    [b"\xff\xff" + b"x" * 70000]]
        for answers in cases:
            with self.subTest(answers), self.assertRaises((OSError, EOFError, ValueError, Refused)):
                self.answered(answers)

    def test_messages(self) -> None:
        """Ticks, other messages, one with an unusual size, invalid terms."""
        for message, error in ((struct.pack(">I", 1 << 31), ValueError), (b"\0\0\0\x01x", ValueError),
                               (b"\0\0\0\x04\x70\x83\x00\x00", ValueError),
                               (b"\0\0\0\x04\x70\x83\x68\x00", EOFError), (b"\0\0\0\0" * 3, EOFError)):
            own, other = socket.socketpair()
            connection = Connection.__new__(Connection)
            connection.socket, connection.calls, connection.creation, connection.own_name = own, 0, 1, "own@host"
            connection.end, connection.received = float("inf"), bytearray()
            other.sendall(message)
            other.shutdown(socket.SHUT_WR)
            with self.subTest(message), self.assertRaises(error):
                connection.call("erlang", "node", Atom("x"), seconds=2)
            own.close()
            other.close()
