"""What the kernel says of a process, in /proc: its state, its user, its namespaces, the sockets of its network.

A process can't forge these values. Those that it chooses, such as its arguments, are read in `container`.
"""
import contextlib
import ctypes
import os
import socket
import struct
from typing import Iterator, List, NamedTuple, Optional, Tuple

# Of setns(2).
CLONE_NEWNET = 0x40000000


class Listener(NamedTuple):
    """A TCP socket that listens: its port, the inode that processes know it by, its address."""
    port: int
    inode: str
    address: str


class Process:
    """A process of this host, by its number as this command sees it. Numbers are used again: a process is its number
    and its start."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.dir = f"/proc/{pid}"
        self.began = self.begin()

    def begin(self) -> Optional[int]:
        """Returns its start in the kernel's ticks; None if it has ended."""
        with contextlib.suppress(OSError, IndexError):
            state, began = self.status()
            return None if state in "ZX" else began
        return None

    def has_ended(self) -> bool:
        """Returns whether it has ended, also if another process has its number now."""
        return self.began is None or self.begin() != self.began

    def status(self) -> Tuple[str, int]:
        """Returns (a letter for its state, its start)."""
        with open(f"{self.dir}/stat", "rb") as file:
            # Its name, in brackets, may have anything in it.
            fields = file.read().decode("utf-8", "replace").rsplit(")", 1)[1].split()
        return fields[0], int(fields[19])

    def is_stopped(self) -> bool:
        """Returns whether a signal or a debugger has stopped it."""
        return self.status()[0] in "Tt"

    def uid(self) -> int:
        """Returns the number of its user."""
        return self.ids()[0]

    def ids(self) -> Tuple[int, int]:
        """Returns its effective user and group."""
        status = os.stat(self.dir)
        return status.st_uid, status.st_gid

    @contextlib.contextmanager
    def files_as_user(self) -> Iterator[None]:
        """Lets this command open only those files meanwhile that the user of the process may open. Only root may open
        others."""
        if os.geteuid() != 0:
            yield
            return
        (uid, gid), groups, libc = self.ids(), os.getgroups(), ctypes.CDLL(None)
        os.setgroups([])
        libc.setfsgid(gid)
        libc.setfsuid(uid)
        try:
            # They tell no failure, but return the number before.
            if (libc.setfsuid(-1), libc.setfsgid(-1)) != (uid, gid):
                raise PermissionError("the files of another user can't be opened as that user")
            yield
        finally:
            libc.setfsuid(0)
            libc.setfsgid(os.getegid())
            os.setgroups(groups)

    def namespace(self, kind: str) -> Optional[str]:
        """Returns its namespace of a kind; None if it may not be read."""
        return namespace(self.dir, kind)

    def shares(self, kind: str) -> bool:
        """Returns whether it has this command's namespace, or the namespace may not be read."""
        return self.namespace(kind) in (None, namespace("/proc/self", kind))

    def listens(self) -> Iterator[Listener]:
        """Yields the TCP sockets that it listens on."""
        sockets = set()
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"{self.dir}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"{self.dir}/fd/{descriptor}"))
        with contextlib.suppress(OSError):
            yield from (one for one in listening(self.dir) if f"socket:[{one.inode}]" in sockets)

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Lets this command be in the network of the process meanwhile: sockets that are made then stay there. Only
        root may enter another one."""
        if self.shares("net"):
            yield
            return
        with open("/proc/self/ns/net", "rb") as own, open(f"{self.dir}/ns/net", "rb") as other:
            enter_network(other.fileno())
            try:
                yield
            finally:
                leave_network(own.fileno())


def processes() -> Iterator[Process]:
    """Yields all processes of this host in the order of their numbers."""
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        yield Process(int(name))


def namespace(folder: str, kind: str) -> Optional[str]:
    """Returns a namespace of the process with this folder in /proc; None if it may not be read."""
    with contextlib.suppress(OSError):
        return os.readlink(f"{folder}/ns/{kind}")
    return None


def enter_network(descriptor: int) -> None:
    """Enters a network; raises OSError if that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def leave_network(own: int) -> None:
    """Enters its own network again. In a foreign one this command must do nothing more, so no caller may go on."""
    try:
        enter_network(own)
    except OSError as error:
        raise SystemExit(f"dyntrace: can't return into its own network: {error.strerror}") from None


def listening(folder: str = "/proc/self") -> List[Listener]:
    """Returns the sockets that listen in the network of the process of this folder of /proc."""
    found = []
    for table in ("tcp", "tcp6"):
        # A host without IPv6 has one.
        with contextlib.suppress(FileNotFoundError), open(f"{folder}/net/{table}", encoding="ascii") as file:
            rows = [line.split() for line in file.read().splitlines()[1:]]
            for row in rows:
                if row[3] == "0A":
                    address, port = row[1].rsplit(":", 1)
                    found.append(Listener(int(port, 16), row[9], ip_address(address)))
    return found


def ip_address(digits: str) -> str:
    """Returns the address that the kernel writes as words in the machine's byte order."""
    words = bytes.fromhex(digits)
    packed = b"".join(struct.pack("!I", word) for word in struct.unpack(f"={len(words) // 4}I", words))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
