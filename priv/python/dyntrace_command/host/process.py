"""What the kernel reports about a process in /proc: its state, its users, its namespaces, the sockets of its network.

Of these values the process controls only its name, and reading them never blocks on it. Values that a process controls,
such as its arguments, and reads that may block, such as those of its memory, are left to `container`, in a child
process of this command.
"""
import contextlib
import os
import re
import socket
import struct
from typing import List, NamedTuple, Optional, Tuple

from dyntrace_command.common.failures import user_name

# The kernel's names of the four IDs in /proc/PID/status.
KINDS_OF_ID = ("real", "effective", "saved", "file system")


class Identity(NamedTuple):
    """A user and a group."""
    uid: int
    gid: int


class Listener(NamedTuple):
    """A listening TCP socket: its port, the inode by which processes refer to it, its address, and the user that
    created it."""
    port: int
    inode: str
    address: str
    uid: int = -1


class Process:
    """A process of this host, with its PID as this command sees it. PIDs are reused, so the start time is part of its
    identity."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.dir = f"/proc/{pid}"
        self.began = self.begin()

    def begin(self) -> Optional[int]:
        """Returns its start time in clock ticks; None if it has ended."""
        with contextlib.suppress(OSError, IndexError):
            state, began = self.status()
            return None if state in "ZX" else began
        return None

    def has_ended(self) -> bool:
        """Returns whether it has ended; also true if another process has its PID now."""
        return self.began is None or self.begin() != self.began

    def status(self) -> Tuple[str, int]:
        """Returns (the letter of its state, its start time)."""
        with open(f"{self.dir}/stat", "rb") as file:
            # The name, in brackets, may contain any character.
            fields = file.read().decode("utf-8", "replace").rsplit(")", 1)[1].split()
        return fields[0], int(fields[19])

    def age(self) -> float:
        """Returns how many seconds ago it started."""
        with open("/proc/uptime", encoding="ascii") as file:
            return float(file.read().split()[0]) - self.status()[1] / os.sysconf("SC_CLK_TCK")

    def is_stopped(self) -> bool:
        """Returns whether a signal or a debugger has stopped it."""
        return self.status()[0] in "Tt"

    def name(self) -> str:
        """Returns the name of its main thread, at most 15 characters."""
        with contextlib.suppress(OSError), open(f"{self.dir}/comm", "rb") as file:
            return file.read().decode("utf-8", "replace").rstrip("\n")
        return ""

    def ids(self, kind: str) -> List[int]:
        """Returns its real, effective, saved and file system ID, of kind Uid or Gid."""
        with open(f"{self.dir}/status", "rb") as file:
            # Line ends in the name are escaped.
            found = re.search(rb"^%s:((?:\t\d+){4})$" % kind.encode(), file.read(), re.M)
        if not found:
            raise ValueError("the kernel does not report the process's owner")
        return [int(number) for number in found.group(1).split()]

    def uid(self) -> int:
        """Returns the UID of its effective user."""
        return self.ids("Uid")[1]

    def identity(self) -> Identity:
        """Returns its user and group. Raises OSError if it has several: the user who starts a set-user-ID program
        controls its texts, while the program may read the files of another user."""
        uids, gids = self.ids("Uid"), self.ids("Gid")
        if len(set(uids)) == len(set(gids)) == 1:
            return Identity(uids[0], gids[0])
        ids = uids if len(set(uids)) > 1 else gids
        raise OSError(0, f"it has the rights of several {'users' if ids is uids else 'groups'}: " + ", ".join(
            f"{kind} {user_name(number) if ids is uids else number}" for kind, number in zip(KINDS_OF_ID, ids)))

    def inner_pid(self) -> int:
        """Returns its PID in its own PID namespace."""
        with open(f"{self.dir}/status", "rb") as file:
            found = re.search(rb"^NSpid:.*\b(\d+)$", file.read(), re.M)
        return int(found.group(1)) if found else self.pid

    def namespace(self, kind: str) -> Optional[str]:
        """Returns its namespace of this kind; None if it may not be read."""
        return namespace(self.dir, kind)

    def shares(self, kind: str) -> bool:
        """Returns whether it is in this command's namespace, or its namespace may not be read."""
        return self.namespace(kind) in (None, namespace("/proc/self", kind))


def namespace(folder: str, kind: str) -> Optional[str]:
    """Returns a namespace of the process with this folder in /proc; None if it may not be read."""
    with contextlib.suppress(OSError):
        return os.readlink(f"{folder}/ns/{kind}")
    return None


def listening(folder: str = "/proc/self") -> List[Listener]:
    """Returns the listening sockets in the network of the process with this folder in /proc."""
    found = []
    for table in ("tcp", "tcp6"):
        # tcp6 does not exist on a host without IPv6.
        with contextlib.suppress(FileNotFoundError), open(f"{folder}/net/{table}", encoding="ascii") as file:
            for row in (line.split() for line in file.read().splitlines()[1:]):
                if row[3] == "0A":
                    address, port = row[1].rsplit(":", 1)
                    found.append(Listener(int(port, 16), row[9], ip_address(address), int(row[7])))
    return found


def ip_address(digits: str) -> str:
    """Parses an address that the kernel writes as words in the machine's byte order."""
    words = bytes.fromhex(digits)
    packed = b"".join(struct.pack("!I", word) for word in struct.unpack(f"={len(words) // 4}I", words))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def in_initial_namespace() -> bool:
    """Returns whether PIDs are the same here as in the kernel, and so in bpftrace."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    # /proc belongs to another namespace, in which this command has no PID.
    return False
