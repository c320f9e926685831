"""A connection to a node, made as a hidden node: the handshake of the distribution protocol, and calls.
https://www.erlang.org/doc/apps/erts/erl_dist_protocol.html

The command speaks the protocol itself. So it runs no program from the node's file system, puts the cookie into no
command line, environment or file, does not listen, and does not register with epmd. It connects only to a socket that,
according to the kernel, is the node's own (`Container.listens`). The node may still answer anything: `external_terms`
decodes the answers safely, messages are bounded, and each call has a time limit.
"""
import hashlib
import os
import socket
import struct
import time
from typing import Optional, Tuple

from dyntrace_command.common.external_terms import Atom, Opaque, Term, decode, encode, text
from dyntrace_command.common.terminal import clean

# DFLAG_* that OTP 25 and later require, as the capabilities of this side. Without DFLAG_PUBLISHED it is hidden; without
# DFLAG_DIST_HDR_ATOM_CACHE and DFLAG_FRAGMENTS each message is complete.
FLAGS = sum(1 << bit for bit in (2, 4, 7, 8, 9, 10, 11, 16, 17, 18, 24, 25, 34, 36))
PASS_THROUGH, VERSION = 112, 131
REG_SEND, SEND = 6, 2
MESSAGE_MOST = 1 << 20
# Seconds for all calls of a connection: the node may delay each answer.
CONNECTION_S = 180
# Characters of the node's reason for a refusal.
WHY_MOST = 500


class Refused(Exception):
    """The node refuses. `key` is a row of the failures, `why` the reason for users."""

    def __init__(self, key: str, why: str = "") -> None:
        super().__init__(why)
        self.key, self.why = key, clean(why[:WHY_MOST])


class Connection:
    """A connection to a node, for calls. Errors are OSError, ValueError, TimeoutError, and Refused if the node
    refuses."""

    def __init__(self, connected: socket.socket, own_name: str, cookie: str, seconds: float) -> None:
        self.socket = connected
        self.end = time.monotonic() + CONNECTION_S
        self.deadline = time.monotonic() + seconds
        self.received = bytearray()
        self.creation = int.from_bytes(os.urandom(4), "big") | 1 << 31
        self.own_name = own_name
        self.calls = 0
        self.greet(cookie)

    def close(self) -> None:
        """Closes it."""
        self.socket.close()

    # The handshake. Its messages have a length of two bytes

    def greet(self, cookie: str) -> None:
        """Sends this side's name, answers the node's challenge, and checks the node's answer to its own."""
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
            raise ValueError("the node's challenge has an unknown format")
        # After the node's flags.
        number, = struct.unpack_from(">I", challenge, 9)
        mine = int.from_bytes(os.urandom(4), "big")
        self.send(">H", struct.pack(">cI", b"r", mine) + digest(cookie, number))
        try:
            answer = self.receive(">H")
        except (EOFError, ConnectionError):
            raise Refused("load_wrong_cookie") from None
        if answer != b"a" + digest(cookie, mine):
            raise Refused("load_wrong_cookie")

    # Calls

    def call(self, module: str, function: str, *arguments: Term, seconds: float = 10) -> Term:
        """Calls the function in the node and returns its value. Raises Refused if it fails there."""
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
        """Returns the answer to the latest call as (Answer,); None for another message."""
        if not received:
            # A tick, which is answered by a tick.
            self.send(">I", b"")
            return None
        if received[:2] != bytes([PASS_THROUGH, VERSION]):
            raise ValueError("the node's messages have an unknown format")
        control, at = decode(received, 2)
        if not isinstance(control, tuple) or len(control) < 3 or control[0] != SEND \
                or not self.is_to_latest(control[2]):
            return None
        message, _ = decode(received, at + 1)
        if isinstance(message, tuple) and len(message) == 2 and message[0] == "rex":
            return (message[1],)
        return None

    def is_to_latest(self, receiver: Term) -> bool:
        """Returns whether a message is addressed to the latest call: each call uses a new pid."""
        return isinstance(receiver, Opaque) and receiver.encoded[-12:] == struct.pack(">III", self.calls, 0,
                                                                                      self.creation)

    # Messages

    def send(self, length: str, message: bytes) -> None:
        """Sends a message, preceded by its length."""
        self.socket.settimeout(self.left())
        self.socket.sendall(struct.pack(length, len(message)) + message)

    def receive(self, length: str) -> bytes:
        """Returns a message."""
        begin = struct.calcsize(length)
        self.wait_for(begin)
        size, = struct.unpack_from(length, self.received)
        if size > MESSAGE_MOST:
            raise ValueError("the node sends a message that is too large")
        self.wait_for(begin + size)
        message = bytes(self.received[begin:begin + size])
        del self.received[:begin + size]
        return message

    def wait_for(self, count: int) -> None:
        """Receives until `count` bytes are buffered. They stay buffered at a timeout, for the next call."""
        while len(self.received) < count:
            self.socket.settimeout(self.left())
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise EOFError("the node has closed the connection")
            self.received += piece

    def left(self) -> float:
        """Returns the seconds until the deadline."""
        left = min(self.deadline, self.end) - time.monotonic()
        if left <= 0:
            raise socket.timeout("the node does not answer in time")
        return left


def checked(answer: Term, what: str) -> Term:
    """Returns the answer of a call; raises Refused if the call failed in the node."""
    if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == "badrpc":
        raise Refused("load_failed", f"{what} failed: {shown(answer[1])}")
    return answer


def shown(term: Term) -> str:
    """Returns a term as text for users; parts other than atoms, texts and numbers are shown as `...`."""
    if isinstance(term, Opaque):
        return "..."
    if isinstance(term, tuple):
        return "{" + ",".join(map(shown, term)) + "}"
    if isinstance(term, list) and not all(isinstance(c, int) and 31 < c < 127 for c in term):
        return "[" + ",".join(map(shown, term)) + "]"
    return text(term)


def digest(cookie: str, challenge: int) -> bytes:
    """Returns the proof that this side knows the cookie."""
    return hashlib.new("md5", cookie.encode("latin-1", "replace") + str(challenge).encode()).digest()
