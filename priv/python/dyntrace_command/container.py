"""What a process says of itself, and what is in its files. It runs in a child process of this command (`sandbox`), with
the rights of the process's own user.

A node's user, and the users of its container, choose all that is read here. What they may try, and what prevents it:

- **A link that leads out.** The kernel resolves a link below /proc/PID/root in the file system of the process that opens
  it. So `open_below` walks the path name by name and resolves links and `..` below the process's root, as the process
  itself would. What lies outside, the child may not open anyway.
- **Another file a moment later.** What is opened is a descriptor, and stays the file that was checked.
- **A pipe, a device, a file without an end.** A pipe blocks its reader, and to open a device may have effects. The walk
  opens with O_PATH, which reads nothing; only regular files are then opened to read, up to a bound.
- **A file system that does not answer**, such as a dead NFS server, or FUSE with a malicious server: even a look at a
  name may never return. Of other users' processes, files on such file systems are refused.
- **Memory that does not answer**, for the same reason. Only memory of the library's own file is read, and memory without
  a file that follows it.
- **Text without an end.** Command line, environment, mappings and folders are read up to a bound. Longer ones count as
  unreadable.
- **A file that is not a library.** Its notes are offsets and sizes: `elf` fails on those that lead nowhere.
- **A fake map of code.** `perf_map` reads a bounded file, skips lines that can't be true, and takes from it only names,
  which are cleaned, of addresses that no file has.
- **A fake epmd.** The node chooses the port, so anything may answer. Reading ends after a second, or 1 MB.
- **Names that change the terminal or a bpftrace program.** Text is decoded with replacements and shown by `clean`;
  versions must have a known form. A tracer gets the path of a descriptor.

Errors are OSError (PermissionError: only its user and root may read it) and ValueError.
"""
import contextlib
import errno
import itertools
import os
import re
import socket
import stat
import struct
import time
from typing import AbstractSet, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from dyntrace_command.elf import read_machine, read_semaphores, read_status_address
from dyntrace_command.files import MB, check_regular, closing, read_regular
from dyntrace_command.process import Listener, Process, listening
from dyntrace_command.sandbox import check_child, opening_proc

# Bounds of a walk: links, as in the kernel; the names of a path, with those of its links.
LINKS, NAMES_OF_PATH = 40, 200
LIBRARY_MOST = 64 * MB
# Bytes of a file in /proc: the kernel allows 65,530 mappings, with a line each. Names in a folder.
TEXT_MOST = 32 * MB
FOLDER_MOST = 10000
# struct dt_status in c_src/status.h. It is written in less than a microsecond.
STATUS_SIZE, STATUS_TEXT, STATUS_LAYOUT, STATUS_TRIES = 4096, 12, 1, 100
# Seconds for one epmd, and for all that a child asks.
EPMD_S, ALL_EPMDS_S = 1, 1.5
# Types of file systems that another machine, or a program, serves.
REMOTE = re.compile(r"fuse\b.*|nfs\d?|cifs|smb\d|9p|ceph|afs|coda|lustre|gfs2|ocfs2|orangefs|ncpfs")
COOKIE_MODES = (0o400, 0o600)


class Mapping(NamedTuple):
    """A part of the memory of a process, and of the file that is mapped there; the path is empty if there is none."""
    start: int
    end: int
    permissions: str
    offset: int
    device: str
    inode: int
    path: str


class Container:
    """A process as it shows itself: its texts, and the file system that it sees."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.dir = process.dir
        # Mounts and devices of file systems that may not answer; None until they are asked for.
        self.remote: Optional[Tuple[Set[str], Set[str]]] = None
        self.asking_epmd = 0.0

    # Its texts

    def open_proc(self, name: str) -> int:
        """Opens a file of the process in /proc, which must not be a link."""
        check_child()
        with opening_proc():
            return os.open(f"{self.dir}/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def text(self, name: str) -> str:
        """Returns the text of a file of the process in /proc."""
        with open(self.open_proc(name), "rb") as file:
            read = file.read(TEXT_MOST + 1)
        if len(read) > TEXT_MOST:
            raise OSError(0, f"its {name} is too large")
        return read.decode("utf-8", "replace")

    def arguments(self) -> List[str]:
        """Returns its command line."""
        return self.text("cmdline").split("\0")[:-1]

    def environment(self) -> Dict[str, str]:
        """Returns the environment that it was started with; an empty one where that may not be read."""
        with contextlib.suppress(OSError):
            pairs = (pair.partition("=") for pair in self.text("environ").split("\0") if "=" in pair)
            return {name: value for name, _, value in pairs}
        return {}

    def executable(self) -> str:
        """Returns the path of its program."""
        check_child()
        return os.readlink(f"{self.dir}/exe")

    def mappings(self) -> List[Mapping]:
        """Returns the parts of its memory in the order of their addresses."""
        found = []
        for line in self.text("maps").split("\n"):
            parts = line.split(None, 5)
            if len(parts) >= 5:
                start, end = (int(address, 16) for address in parts[0].split("-"))
                found.append(Mapping(start, end, parts[1], int(parts[2], 16), parts[3], int(parts[4]),
                                     "".join(parts[5:])))
        return found

    # Its sockets

    def listens(self) -> Iterator[Listener]:
        """Yields the TCP sockets that it listens on, and that its own user created: one that it has inherited leads to
        whatever program of another user accepts there, too."""
        sockets = set()
        with contextlib.suppress(OSError), closing(self.open_proc("fd")) as folder:
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(name, dir_fd=folder))
        uid = self.process.uid()
        with contextlib.suppress(OSError):
            yield from (one for one in listening(self.dir) if f"socket:[{one.inode}]" in sockets and one.uid == uid)

    def free_descriptors(self) -> int:
        """Returns how many more files it may open."""
        found = re.search(r"^Max open files +(\d+)", self.text("limits"), re.M)
        with closing(self.open_proc("fd")) as folder:
            return int(found.group(1)) - len(os.listdir(folder)) if found else 1

    def registered(self) -> Dict[int, str]:
        """Returns {TCP port: name} of the epmd in its network; empty if this child is in another network."""
        number = self.environment().get("ERL_EPMD_PORT", "4369")
        if not self.process.shares("net") or not re.fullmatch(r"[1-9]\d{0,4}", number, re.ASCII):
            return {}
        began = time.monotonic()
        try:
            return epmd_names(int(number), min(EPMD_S, ALL_EPMDS_S - self.asking_epmd))
        finally:
            self.asking_epmd += time.monotonic() - began

    # Its files

    def remote_mounts(self) -> Tuple[Set[str], Set[str]]:
        """Returns (numbers of mounts, devices) of file systems that may not answer. This command's own user may use
        them."""
        if self.remote is None:
            found = []
            if self.process.uid() != os.getuid() or os.getuid() != 0:
                rows = (line.split(" ") for line in self.text("mountinfo").split("\n"))
                found = [row for row in rows if "-" in row and REMOTE.fullmatch(row[row.index("-") + 1])]
            self.remote = {row[0] for row in found}, {row[2] for row in found}
        return self.remote

    def paths(self, path: str) -> List[str]:
        """Returns what a path of a mapping may be in the process's own file system: the path begins with the process's
        root where that is a folder of this command's file system."""
        root = ""
        with contextlib.suppress(OSError):
            root = os.readlink(f"{self.dir}/root").rstrip("/")
        return [path, path[len(root):]] if root and path.startswith(root + "/") else [path]

    def open(self, path: str) -> int:
        """Returns a descriptor of a file of the process's own file system, which reads nothing (O_PATH)."""
        *others, last = self.paths(path)
        for other in others:
            with contextlib.suppress(FileNotFoundError):
                return self.open_below(other)
        return self.open_below(last)

    def open_below(self, path: str, has_foreign_links: bool = True) -> int:
        """Does the same for a path that begins at the process's root."""
        check_child()
        return open_below(f"{self.dir}/root", path, self.remote_mounts()[0], has_foreign_links)

    def open_regular(self, path: str, most: int = LIBRARY_MOST) -> int:
        """Does the same as `open` for a regular file of at most `most` bytes, by default a library's: tracers open that
        by the descriptor."""
        descriptor = self.open(path)
        try:
            check_regular(descriptor, most)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def read_file(self, path: str, most: int) -> bytes:
        """Returns the contents of a regular file of at most `most` bytes."""
        with closing(self.open_regular(path, most)) as descriptor:
            return read_regular(f"/proc/self/fd/{descriptor}", most)

    def read_text(self, path: str) -> str:
        """Returns the text of a file of a few lines."""
        return self.read_file(path, MB).decode("utf-8", "replace")

    def read_cookie(self, path: str) -> str:
        """Returns the text of a file that has a user's cookie. As OTP demands, it is a regular file that no other user
        can read. It belongs to the user, and no link of another user but root leads to it."""
        with closing(self.open_below(path, has_foreign_links=False)) as descriptor:
            check_regular(descriptor, MB)
            status = os.fstat(descriptor)
            if status.st_uid != self.process.uid() or stat.S_IMODE(status.st_mode) not in COOKIE_MODES:
                raise PermissionError(errno.EPERM, "it is not a file of its user with mode 400 or 600", path)
            return read_regular(f"/proc/self/fd/{descriptor}", MB).decode("utf-8", "replace")

    def check_program(self) -> None:
        """Raises OSError if its program is set-user-ID or set-group-ID: the user who started it chose its arguments,
        its environment and its descriptors."""
        check_child()
        if os.stat(f"{self.dir}/exe").st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise OSError(0, "its program is set-user-ID or set-group-ID")

    def machine(self) -> int:
        """Returns the machine of its program, as the program's header says; 0 if it is not of 64 bits."""
        # The kernel runs regular files only.
        check_child()
        with open(f"{self.dir}/exe", "rb") as file:
            return read_machine(file.read(64))

    def list_folder(self, path: str) -> List[str]:
        """Returns the names in a folder, FOLDER_MOST of them at most."""
        with closing(self.open(path)) as descriptor, os.scandir(f"/proc/self/fd/{descriptor}") as entries:
            return sorted(entry.name for entry in itertools.islice(entries, FOLDER_MOST))

    # Its library

    def probes(self, library: str, mapped: Sequence[Mapping]) -> Dict[str, bool]:
        """Returns {provider:name: whether its semaphore is raised}: tracers write it into the process's memory."""
        semaphores = read_semaphores(self.read_file(library, LIBRARY_MOST))
        if not semaphores:
            return {}
        first, last = min(semaphores), max(semaphores)
        if last - first > MB:
            raise ValueError("the library's semaphores are not in one place")
        values = self.memory(library, mapped, first, last - first + 2)
        return {name: struct.unpack_from("<H", values, address - first)[0] != 0
                for address, name in semaphores.items()}

    def status(self, library: Optional[str], mapped: Sequence[Mapping]) -> List[Tuple[str, str]]:
        """Returns the lines (key, value) that the node says of itself; none without a library, or if that is of an
        earlier version. They are texts of the node: no key need be there, and a value may be anything."""
        address = read_status_address(self.read_file(library, LIBRARY_MOST)) if library else None
        if library is None or address is None:
            return []
        for _ in range(STATUS_TRIES):
            block = self.memory(library, mapped, address, STATUS_SIZE)
            layout, version, size = struct.unpack_from("<III", block)
            if layout != STATUS_LAYOUT:
                raise ValueError("its status has another layout")
            if version % 2 == 0:
                text = block[STATUS_TEXT:STATUS_TEXT + size].decode("utf-8", "replace")
                return [(key, value) for key, found, value in (line.partition(": ") for line in text.split("\n"))
                        if found]
        raise ValueError("its status is just being written")

    def memory(self, library: str, mapped: Sequence[Mapping], address: int, count: int) -> bytes:
        """Returns `count` bytes of its memory at an address of the library."""
        parts = parts_of(library, mapped)
        if not parts:
            raise ValueError("the library is not mapped")
        if parts[0].device in self.remote_mounts()[1]:
            raise OSError(0, "its library is on a file system that may not answer (FUSE or network)")
        address += parts[0].start - parts[0].offset
        check_covered(parts, address, count)
        with open(self.open_proc("mem"), "rb") as memory:
            memory.seek(address)
            read = memory.read(count)
        if len(read) < count:
            raise ValueError("the process's memory ends before that address")
        return read


def parts_of(library: str, mapped: Sequence[Mapping]) -> List[Mapping]:
    """Returns the parts of the memory that are the library's: of one file, and those without a file that follow it. The
    first one has the lowest address, from which the library's own addresses count."""
    first = min((part for part in mapped if part.path == library), key=lambda part: part.start - part.offset,
                default=None)
    found: List[Mapping] = []
    for part in mapped if first else []:
        is_file = (part.path, part.device, part.inode) == (library, first.device, first.inode) if first else False
        if is_file or found and part.inode == 0 and not part.path and part.start == found[-1].end:
            found.append(part)
    return sorted(found, key=lambda part: part != first)


def check_covered(parts: Sequence[Mapping], address: int, count: int) -> None:
    """Raises ValueError unless all these addresses are in the parts."""
    at = address
    for part in sorted(parts, key=lambda part: part.start):
        if part.start <= at < part.end:
            at = part.end
    if not 0 <= address < at or at < address + count:
        raise ValueError("that address is not in the library's memory")


def lttng_consumers(mapped: Sequence[Mapping]) -> Set[int]:
    """Returns the pids of LTTng's daemons that have buffers in the process, by the buffers' names."""
    found = (re.search(r"/shm-ust-consumer-(\d{1,9})(?!\d)", mapping.path) for mapping in mapped)
    return {int(one.group(1)) for one in found if one}


def open_below(root: str, path: str, refused: AbstractSet[str] = frozenset(), has_foreign_links: bool = True) -> int:
    """Returns a descriptor (O_PATH) of the file that has this path for a process whose root is `root`. It enters none of
    the refused mounts; without `has_foreign_links` it follows only links of root, and none as the last name."""
    folders = [os.open(root, os.O_PATH | os.O_DIRECTORY)]
    names, links = path.split("/")[::-1], 0
    try:
        check_mount(folders[-1], refused)
        while names:
            target = enter(folders, names.pop(), has_foreign_links, not names)
            check_mount(folders[-1], refused)
            if target is not None:
                links += 1
                names += target.split("/")[::-1]
            if links > LINKS or len(folders) + len(names) > NAMES_OF_PATH:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.dup(folders[-1])
    finally:
        for folder in folders:
            os.close(folder)


def check_mount(descriptor: int, refused: AbstractSet[str]) -> None:
    """Raises OSError if the file is in one of these mounts."""
    if refused and mount_of(descriptor) in refused:
        raise OSError(0, "it is on a file system that may not answer (FUSE or network)")


def mount_of(descriptor: int) -> str:
    """Returns the number of the mount in which a file was opened: each bind mount has one of its own."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        return next(line.split()[1] for line in file if line.startswith("mnt_id:"))


def enter(folders: List[int], name: str, has_foreign_links: bool = True, is_last: bool = False) -> Optional[str]:
    """Takes a step of the walk. `folders` are descriptors from the root to the present place. If the name is a link,
    returns its target, which the walk has to follow from the place that is then the last."""
    if name in ("", "."):
        return None
    if name == "..":
        # The root's parent is the root.
        if len(folders) > 1:
            os.close(folders.pop())
        return None
    folders.append(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folders[-1]))
    status = os.fstat(folders[-1])
    if not stat.S_ISLNK(status.st_mode):
        return None
    with closing(folders.pop()) as link:
        if not has_foreign_links and (is_last or status.st_uid != 0):
            raise OSError(errno.ELOOP, "a link leads there", name)
        target = os.readlink("", dir_fd=link)
    while target.startswith("/") and len(folders) > 1:
        os.close(folders.pop())
    return target


def epmd_names(port: int, seconds: float = EPMD_S) -> Dict[int, str]:
    """Returns {TCP port: name} of the nodes that are registered with the epmd of this process's network; empty if epmd
    does not answer."""
    answer, deadline = b"", time.monotonic() + seconds
    with contextlib.suppress(OSError, OverflowError, ValueError), \
            socket.create_connection(("127.0.0.1", port), timeout=max(seconds, 0.001)) as epmd:
        epmd.sendall(b"\0\1n")
        while len(answer) < MB and time.monotonic() < deadline:
            epmd.settimeout(max(deadline - time.monotonic(), 0.001))
            piece = epmd.recv(4096)
            if not piece:
                break
            answer += piece
    return {int(number): name for name, number in
            re.findall(r"^name (\S+) at port (\d{1,5})$", answer[4:].decode("utf-8", "replace"), re.M)}
