"""What a process says of itself, and what is in its files: the boundary of root's trust.

This command runs as root and looks at processes of anybody, in containers of anybody. A container's users make what is
in it: they can lie, and they can try to let root do their work. So whatever a process or its container chooses is read
here, and the rest of the command sees only what these functions return. The user of a node is not trusted either, in a
container or not.

What such users may try, and what prevents it:

- **A link that leads out.** The kernel follows a link below /proc/PID/root into the file system of the process that
  opens it: root's. So `open_below` walks the path name by name, never follows a link by the kernel, and resolves links
  and `..` below the process's root, as the process itself would.
- **Another file a moment later.** What is opened is a descriptor, and stays the file that was checked.
- **A pipe, a device, a file without end.** A pipe blocks its reader, and to open a device may have effects. The walk
  opens with O_PATH, which reads nothing; only regular files are then opened to read, and no more of them than a bound.
- **Texts without end.** Command line, environment, mappings and folders are read up to a bound as well. A text that is
  longer counts as unreadable.
- **A library that is none.** Its notes are offsets and sizes: `elf` fails on those that lead nowhere. Which memory is
  read depends on them, within bounds; the kernel decides whether it may be read, and only whether values are zero is
  told.
- **A map of code that is none.** The node's user writes it. `perf_map` reads a bounded file, skips lines that can't be
  true, and takes from it only names, which are cleaned, of addresses that no file has.
- **A file that only root may read, in the place of the node's cookie.** `read_as_user` opens it, and
  the folders on the way, as the node's user.
- **An epmd that is none.** The node chooses the port, so anything may answer. Reading ends after a second, or 1 MB.
- **Names that change the terminal or a bpftrace program.** Texts are decoded with replacements and shown by `clean`;
  versions must have a known form. A tracer never gets such a path: it gets that of a descriptor, or one of harmless
  characters.

What root writes below such a root, and removes there, is in `places`.

Errors are OSError (PermissionError: only its user and root may read it) and ValueError.
"""
import contextlib
import errno
import functools
import itertools
import os
import re
import socket
import stat
import struct
import subprocess
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from dyntrace_command.elf import read_machine, read_semaphores, read_status_address
from dyntrace_command.files import MB, check_regular, closing, read_regular
from dyntrace_command.process import Process

# Bounds of a walk: links, as in the kernel; the names of a path, with those of its links.
LINKS, NAMES_OF_PATH = 40, 200
LIBRARY_MOST = 64 * MB
# Bytes of a file in /proc: the kernel allows 65,530 mappings, with a line each. Names of a folder.
TEXT_MOST = 32 * MB
FOLDER_MOST = 10000
# struct dt_status in c_src/status.h. It is written in less than a microsecond.
STATUS_SIZE, STATUS_TEXT, STATUS_LAYOUT, STATUS_TRIES = 4096, 12, 1, 100


class Mapping(NamedTuple):
    """A part of a file in the memory of a process."""
    start: int
    offset: int
    path: str


class Segment(NamedTuple):
    """A part of the memory of a process that has code, and the path of its file; an empty one if it has none."""
    start: int
    end: int
    offset: int
    path: str


class Container:
    """A process as it shows itself: its texts, and the file system that it sees."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.dir = process.dir

    # Its texts

    def text(self, name: str) -> str:
        """Returns the text of a file of the process in /proc."""
        with open(f"{self.dir}/{name}", "rb") as file:
            read = file.read(TEXT_MOST + 1)
        if len(read) > TEXT_MOST:
            raise OSError(f"its {name} has no usual size")
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
        return os.readlink(f"{self.dir}/exe")

    def mappings(self) -> List[Mapping]:
        """Returns the mappings of files."""
        found = []
        for line in self.text("maps").split("\n"):
            parts = line.split(None, 5)
            if len(parts) == 6:
                found.append(Mapping(int(parts[0].split("-")[0], 16), int(parts[2], 16), parts[5]))
        return found

    def code(self) -> List[Segment]:
        """Returns the parts of its memory that have code, in the order of their addresses."""
        found = []
        for line in self.text("maps").split("\n"):
            parts = line.split(None, 5)
            if len(parts) >= 5 and "x" in parts[1]:
                start, end = (int(address, 16) for address in parts[0].split("-"))
                found.append(Segment(start, end, int(parts[2], 16), "".join(parts[5:])))
        return found

    def inner_pid(self) -> int:
        """Returns the number that it has in its own namespace of processes."""
        found = re.search(r"^NSpid:.*\b(\d+)$", self.text("status"), re.M)
        return int(found.group(1)) if found else self.process.pid

    def hostname(self) -> str:
        """Returns the host name in its container, or ? where that is unknown."""
        with contextlib.suppress(OSError):
            asked = subprocess.run(["nsenter", f"--target={self.process.pid}", "--uts", "hostname"], check=False,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   universal_newlines=True)
            if asked.returncode == 0:
                return asked.stdout.strip()
        return self.environment().get("HOSTNAME", "?")

    def registered(self) -> Dict[int, str]:
        """Returns {TCP port: name} of the epmd in its network; empty if that may not be entered."""
        number = self.environment().get("ERL_EPMD_PORT", "4369")
        with contextlib.suppress(OSError), self.process.network():
            return epmd_names(int(number), self.process.namespace("net"))
        return {}

    # Its files

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
                return open_below(f"{self.dir}/root", other)
        return open_below(f"{self.dir}/root", last)

    def open_regular(self, path: str, most: int = LIBRARY_MOST) -> int:
        """Does the same for a regular file of at most `most` bytes, by default a library's: tracers open that by the
        descriptor."""
        descriptor = self.open(path)
        try:
            check_regular(descriptor, most)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def read_file(self, path: str, most: int) -> bytes:
        """Returns the contents of a regular file of at most `most` bytes."""
        with closing(self.open(path)) as descriptor:
            # A device is not even opened: that alone may have effects.
            check_regular(descriptor, most)
            return read_regular(f"/proc/self/fd/{descriptor}", most)

    def read_text(self, path: str) -> str:
        """Returns the text of a file of a few lines."""
        return self.read_file(path, MB).decode("utf-8", "replace")

    def read_as_user(self, path: str) -> str:
        """Returns the text of a file of a few lines if the user of the process may read it."""
        with self.process.files_as_user():
            return self.read_text(path)

    def machine(self) -> int:
        """Returns the machine of its program, as the program's header says; 0 if it is not of 64 bits."""
        # The kernel runs regular files only.
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
        base = base_of(library, mapped)
        first, last = min(semaphores), max(semaphores)
        if last - first > MB:
            raise ValueError("the library's semaphores are not in one place")
        values = self.memory(base + first, last - first + 2)
        return {name: struct.unpack_from("<H", values, address - first)[0] != 0
                for address, name in semaphores.items()}

    def status(self, library: Optional[str], mapped: Sequence[Mapping]) -> List[Tuple[str, str]]:
        """Returns the lines (key, value) that the node says of itself; none without a library, or if that is of an
        earlier version. They are texts of the node: no key need be there, and a value may be anything."""
        address = read_status_address(self.read_file(library, LIBRARY_MOST)) if library else None
        if library is None or address is None:
            return []
        for _ in range(STATUS_TRIES):
            block = self.memory(base_of(library, mapped) + address, STATUS_SIZE)
            layout, version, size = struct.unpack_from("<III", block)
            if layout != STATUS_LAYOUT:
                raise ValueError("its status has another layout")
            if version % 2 == 0:
                text = block[STATUS_TEXT:STATUS_TEXT + size].decode("utf-8", "replace")
                return [(key, value) for key, found, value in (line.partition(": ") for line in text.split("\n"))
                        if found]
        raise ValueError("its status is just being written")

    def memory(self, address: int, count: int) -> bytes:
        """Returns `count` bytes of its memory."""
        with open(f"{self.dir}/mem", "rb") as memory:
            try:
                memory.seek(address)
            except OverflowError as error:
                raise ValueError(str(error)) from None
            read = memory.read(count)
        if len(read) < count:
            raise ValueError("the process's memory ends before that address")
        return read


def base_of(library: str, mapped: Sequence[Mapping]) -> int:
    """Returns where the library's address 0 is mapped; raises ValueError if it is not."""
    return min(start - offset for start, offset, path in mapped if path == library)


def lttng_consumers(mapped: Sequence[Mapping]) -> Set[int]:
    """Returns the pids of LTTng's daemons that have buffers in the process, by the buffers' names."""
    found = (re.search(r"/shm-ust-consumer-(\d{1,9})(?!\d)", mapping.path) for mapping in mapped)
    return {int(one.group(1)) for one in found if one}


def open_below(root: str, path: str) -> int:
    """Returns a descriptor (O_PATH) of the file that has this path for a process whose root is `root`."""
    folders = [os.open(root, os.O_PATH | os.O_DIRECTORY)]
    names, links = path.split("/")[::-1], 0
    try:
        while names:
            target = enter(folders, names.pop())
            if target is not None:
                links += 1
                names += target.split("/")[::-1]
            if links > LINKS or len(folders) + len(names) > NAMES_OF_PATH:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.dup(folders[-1])
    finally:
        for folder in folders:
            os.close(folder)


def enter(folders: List[int], name: str) -> Optional[str]:
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
    if not stat.S_ISLNK(os.fstat(folders[-1]).st_mode):
        return None
    with closing(folders.pop()) as link:
        target = os.readlink("", dir_fd=link)
    while target.startswith("/") and len(folders) > 1:
        os.close(folders.pop())
    return target


@functools.lru_cache(maxsize=None)
def epmd_names(port: int, _network: Optional[str] = None) -> Dict[int, str]:
    """Returns {TCP port: name} of the nodes that are registered with the epmd of the network in which this command is
    now, which has this name where it is another one than the host's; empty if epmd does not answer."""
    answer, deadline = b"", time.monotonic() + 1
    with contextlib.suppress(OSError, OverflowError), \
            socket.create_connection(("127.0.0.1", port), timeout=1) as epmd:
        epmd.sendall(b"\0\1n")
        while len(answer) < MB and time.monotonic() < deadline:
            piece = epmd.recv(4096)
            if not piece:
                break
            answer += piece
    return {int(number): name for name, number in
            re.findall(r"^name (\S+) at port (\d{1,5})$", answer[4:].decode("utf-8", "replace"), re.M)}
