"""A connection to a node, as a hidden node makes one: the handshake of the distribution protocol, and calls.
https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html

The command speaks the protocol itself. So no program of the node's file system runs, its cookie comes to no command
line, environment or file, and nothing listens or is registered with epmd. A connection is one of a socket that the
kernel has told to be the node's own (`Process.listeners`), but the node may answer anything: terms are read by `terms`,
messages have a bound, each call has a time limit.
"""
import hashlib
import os
import socket
import struct
import time
from typing import Optional, Tuple

from dyntrace_command.terminal import clean
from dyntrace_command.terms import Atom, Opaque, Term, decode, encode, text

# DFLAG_* that OTP 25 and later require: bits of what this side understands. Without DFLAG_PUBLISHED it is hidden,
# without DFLAG_DIST_HDR_ATOM_CACHE and DFLAG_FRAGMENTS each message is whole.
FLAGS = sum(1 << bit for bit in (2, 4, 7, 8, 9, 10, 11, 16, 17, 18, 24, 25, 34, 36))
PASS_THROUGH, VERSION = 112, 131
REG_SEND, SEND = 6, 2
MESSAGE_MOST = 1 << 20
# Seconds that all calls of a connection may take: the node may answer each one late.
CONNECTION_S = 180
# Characters of what a node says why it refuses.
WHY_MOST = 500


class Refused(Exception):
    """The node refuses: `key` is a row of the failures, `why` for people."""

    def __init__(self, key: str, why: str = "") -> None:
        super().__init__(why)
        self.key, self.why = key, clean(why[:WHY_MOST])


class Connection:
    """A connection to a node, for calls. Errors are OSError and ValueError, Refused where the node says no, and
    TimeoutError."""

    def __init__(self, connected: socket.socket, own_name: str, cookie: str, seconds: float) -> None:
        self.socket = connected
        self.end = time.monotonic() + CONNECTION_S
        self.deadline = time.monotonic() + seconds
        self.received = bytearray()
        self.creation = int.from_bytes(os.urandom(4), "big") | 1 << 31
        self.own_name = own_name
        self.calls = 0
        self.flags, self.node = self.greet(cookie)

    def close(self) -> None:
        """Ends it."""
        self.socket.close()

    # The handshake, whose messages have a length of two bytes

    def greet(self, cookie: str) -> Tuple[int, str]:
        """Introduces this side, and answers the node's challenge. Returns the node's flags and name."""
        name = self.own_name.encode()
        self.send(">H", struct.pack(">cQIH", b"N", FLAGS, self.creation, len(name)) + name)
        status = self.receive(">H").decode("latin-1")
        if status != "sok":
            if status == "salive":
                self.send(">H", b"sfalse")
            raise Refused({"salive": "load_busy", "snot_allowed": "load_not_allowed"}.get(status, "load_refused"),
                          status[1:])
        challenge = self.receive(">H")
        if challenge[:1] != b"N":
            raise Refused("load_old_node")
        if len(challenge) < 19:
            raise ValueError("the node's challenge has another form")
        flags, number, _creation, size = struct.unpack_from(">QIIH", challenge, 1)
        mine = int.from_bytes(os.urandom(4), "big")
        self.send(">H", struct.pack(">cI", b"r", mine) + digest(cookie, number))
        try:
            answer = self.receive(">H")
        except (EOFError, ConnectionError):
            raise Refused("load_wrong_cookie") from None
        if answer != b"a" + digest(cookie, mine):
            raise Refused("load_wrong_cookie")
        return flags, challenge[19:19 + size].decode("utf-8", "replace")

    # Calls

    def call(self, module: str, function: str, *arguments: Term, seconds: float = 10) -> Term:
        """Returns what the function returns in the node. Raises Refused if it raises there."""
        self.deadline = time.monotonic() + seconds
        self.calls += 1
        name = encode(Atom(self.own_name))
        own = Opaque(b"\x58" + name + struct.pack(">III", self.calls, 0, self.creation))
        control = (REG_SEND, own, Atom(""), Atom("rex"))
        message = (own, (Atom("call"), Atom(module), Atom(function), list(arguments), Atom("user")))
        self.send(">I", b"".join((bytes([PASS_THROUGH, VERSION]), encode(control), bytes([VERSION]), encode(message))))
        while True:
            answer = self.answer(self.receive(">I"))
            if answer is not None:
                return checked(answer[0], f"{module}:{function}/{len(arguments)}")

    def answer(self, received: bytes) -> Optional[Tuple[Term]]:
        """Returns the answer to the latest call as (Answer,); None if it is another message."""
        if not received:
            # A tick, which is answered by one.
            self.send(">I", b"")
            return None
        if received[:2] != bytes([PASS_THROUGH, VERSION]):
            raise ValueError("the node's messages have another form")
        control, at = decode(received, 2)
        if not isinstance(control, tuple) or len(control) < 3 or control[0] != SEND \
                or not self.is_to_latest(control[2]):
            return None
        message, _ = decode(received, at + 1)
        if isinstance(message, tuple) and len(message) == 2 and message[0] == "rex":
            return (message[1],)
        return None

    def is_to_latest(self, receiver: Term) -> bool:
        """Returns whether a message is for the caller of the latest call: each call has a pid of its own."""
        return isinstance(receiver, Opaque) and receiver.encoded[-12:] == struct.pack(">III", self.calls, 0,
                                                                                      self.creation)

    # Messages

    def send(self, length: str, message: bytes) -> None:
        """Sends a message with its length before it."""
        self.socket.settimeout(self.left())
        self.socket.sendall(struct.pack(length, len(message)) + message)

    def receive(self, length: str) -> bytes:
        """Returns a message."""
        begin = struct.calcsize(length)
        self.wait_for(begin)
        size, = struct.unpack_from(length, self.received)
        if size > MESSAGE_MOST:
            raise ValueError("the node sends a message without a usual size")
        self.wait_for(begin + size)
        message = bytes(self.received[begin:begin + size])
        del self.received[:begin + size]
        return message

    def wait_for(self, count: int) -> None:
        """Receives until as many bytes are there. They stay there at a timeout: the next call goes on with them."""
        while len(self.received) < count:
            self.socket.settimeout(self.left())
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise EOFError("the node has closed the connection")
            self.received += piece

    def left(self) -> float:
        """Returns the seconds that are left."""
        left = min(self.deadline, self.end) - time.monotonic()
        if left <= 0:
            raise socket.timeout("the node does not answer in time")
        return left


def checked(answer: Term, what: str) -> Term:
    """Returns the answer of a call unless the call failed there."""
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == "badrpc":
        raise Refused("load_failed", f"{what} failed: {shown(answer[1])}")
    return answer


def shown(term: Term) -> str:
    """Returns a term for people, as far as it is made of atoms, texts and numbers."""
    if isinstance(term, Opaque):
        return "..."
    if isinstance(term, tuple):
        return "{" + ",".join(map(shown, term)) + "}"
    if isinstance(term, list) and not all(isinstance(c, int) and 31 < c < 127 for c in term):
        return "[" + ",".join(map(shown, term)) + "]"
    return text(term)


def digest(cookie: str, challenge: int) -> bytes:
    """Returns the proof that this side has the cookie."""
    return hashlib.new("md5", cookie.encode("latin-1", "replace") + str(challenge).encode()).digest()
