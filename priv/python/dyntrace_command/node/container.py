"""What a process reveals about itself, and the contents of its files. All of it is read in a child process of this
command (`sandbox`), with the rights of the process's own user.

The node's user, and the users of its container, control everything that is read here. Possible attacks, and what
prevents them (for files, see `file_system`):

- **Memory that does not answer**, because its file is on a file system that hangs. Memory of such files is not read,
  and a child that hangs is abandoned.
- **Text without an end.** Command line, environment, mappings and folders are read up to a bound. Longer ones count as
  unreadable.
- **A file that is not a library.** Its notes contain offsets and sizes: `elf` fails if they are out of range.
- **Hostile memory.** `vm_memory` reads only what is mapped, and the readers of the VM's structures check each pointer
  and size, and bound all work.
- **A fake epmd.** The node chooses the port, so anything may answer. Reading ends after 0.7 seconds, or 1 MB.
- **Names that affect the terminal or a bpftrace program.** Text is decoded with replacements and shown by `clean`;
  versions must match a pattern. A tracer gets the library as the path of a descriptor.

Errors are OSError (PermissionError: only its user and root may read it) and ValueError.
"""
import contextlib
import os
import re
import socket
import stat
import struct
import time
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from dyntrace_command.host.elf import read_machine, read_semaphores, read_status_address
from dyntrace_command.host.file_system import LIBRARY_MOST, FileSystem, check_mount
from dyntrace_command.host.files import MB, closing
from dyntrace_command.host.process import Listener, listening
from dyntrace_command.host.sandbox import check_child

# struct dt_status in c_src/status.h. The node writes it in less than a microsecond.
STATUS_SIZE, STATUS_TEXT, STATUS_LAYOUT, STATUS_TRIES = 4096, 12, 1, 100
# The highest UID of a system user, such as that of Debian's epmd. A program of any other user may be listening on
# epmd's port.
SYSTEM_UID_MOST = 999
# Seconds for one epmd, and for all epmds that a child asks.
EPMD_S, ALL_EPMDS_S = 0.7, 1.0
# Names of the threads of dirty I/O schedulers, before and since OTP 26, truncated by the kernel to 15 characters; the
# maximum number of threads of a VM that are checked.
DIRTY_IO, THREADS_MOST = re.compile(r"\d+_dirty_io_s\w*|erts_dios_\d+"), 10000


class Mapping(NamedTuple):
    """A mapping in a process's memory, and its place in the mapped file; the path is empty for anonymous memory."""
    start: int
    end: int
    permissions: str
    offset: int
    device: str
    inode: int
    path: str


class Container(FileSystem):
    """A process as it presents itself: its texts, its sockets, its memory, and the file system that it sees."""

    # Shared by all processes that this child reads: the seconds spent on epmds, the answer of each epmd, and the
    # sockets of each network.
    waited_for_epmds = 0.0
    epmds: Dict[int, Dict[int, str]] = {}
    networks: Dict[Optional[str], List[Listener]] = {}

    def arguments(self) -> List[str]:
        """Returns its command line."""
        return self.text("cmdline").split("\0")[:-1]

    def environment(self) -> Dict[str, str]:
        """Returns the environment that it was started with; empty if that may not be read."""
        with contextlib.suppress(OSError):
            pairs = (pair.partition("=") for pair in self.text("environ").split("\0") if "=" in pair)
            return {name: value for name, _, value in pairs}
        return {}

    def executable(self) -> str:
        """Returns the path of its program."""
        check_child()
        return os.readlink(f"{self.dir}/exe")

    def mappings(self) -> List[Mapping]:
        """Returns its mappings in the order of their addresses."""
        found = []
        for line in self.text("maps").split("\n"):
            parts = line.split(None, 5)
            if len(parts) >= 5:
                start, end = (int(address, 16) for address in parts[0].split("-"))
                found.append(Mapping(start, end, parts[1], int(parts[2], 16), parts[3], int(parts[4]),
                                     "".join(parts[5:])))
        return found

    def task_names(self) -> List[str]:
        """Returns the numbers of its threads."""
        with closing(self.open_proc("task")) as folder:
            return os.listdir(folder)

    def blocked_dirty_io(self) -> List[str]:
        """Returns the kernel functions in which its dirty I/O schedulers wait, if all of them are blocked; nothing if
        one is idle or runs. An idle one waits for a futex."""
        found = []
        for name in self.task_names()[:THREADS_MOST]:
            if DIRTY_IO.fullmatch(self.text(f"task/{name}/comm").strip()):
                found.append(self.text(f"task/{name}/wchan").strip())
        return found if all(re.fullmatch(r"(?!.*futex)[a-z_]\w*", where) for where in found) else []

    # Its sockets

    def listens(self, is_fresh: bool = False) -> Iterator[Listener]:
        """Yields the TCP sockets that it listens on and that its own user created. Another user's program may also
        accept connections on an inherited socket."""
        own = set()
        with contextlib.suppress(OSError), closing(self.open_proc("fd")) as folder:
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    own.add(os.readlink(name, dir_fd=folder))
        uid = self.process.uid()
        with contextlib.suppress(OSError):
            yield from (one for one in self.sockets(is_fresh) if f"socket:[{one.inode}]" in own and one.uid == uid)

    def free_descriptors(self) -> int:
        """Returns how many more files it may open."""
        found = re.search(r"^Max open files +(\d+)", self.text("limits"), re.M)
        with closing(self.open_proc("fd")) as folder:
            return int(found.group(1)) - len(os.listdir(folder)) if found else 1

    def registered(self) -> Dict[int, str]:
        """Returns {TCP port: name} from the epmd of its network; empty if there is no epmd, if this child is in another
        network, or if another user's program listens on that port. Raises OSError if epmd does not answer in time."""
        number = self.environment().get("ERL_EPMD_PORT", "4369")
        if not self.process.shares("net") or not re.fullmatch(r"[1-9]\d{0,4}", number, re.ASCII):
            return {}
        port, uid = int(number), self.process.uid()
        owners = {one.uid for one in self.sockets() if one.port == port}
        if not owners or any(owner != uid and owner > SYSTEM_UID_MOST for owner in owners):
            return {}
        began = time.monotonic()
        try:
            if port not in self.epmds:
                self.epmds[port] = epmd_names(port, min(EPMD_S, ALL_EPMDS_S - self.waited_for_epmds))
            return self.epmds[port]
        finally:
            Container.waited_for_epmds += time.monotonic() - began

    def sockets(self, is_fresh: bool = False) -> List[Listener]:
        """Returns the listening sockets of its network. The kernel takes milliseconds to list them, so a survey reads
        them once."""
        network = self.process.namespace("net")
        if is_fresh or network not in self.networks:
            self.networks[network] = listening(self.dir)
        return self.networks[network]

    # Its program

    def open_program(self) -> int:
        """Returns a descriptor of its program, opened with O_PATH."""
        check_child()
        descriptor = os.open(f"{self.dir}/exe", os.O_PATH)
        try:
            check_mount(descriptor, self.remote_mounts()[0])
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def has_other_rights(self) -> bool:
        """Returns whether its program is set-user-ID or set-group-ID: the user who started it then controls its
        arguments, its environment and its descriptors."""
        with closing(self.open_program()) as descriptor:
            return bool(os.fstat(descriptor).st_mode & (stat.S_ISUID | stat.S_ISGID))

    def machine(self) -> int:
        """Returns the machine of its program from the ELF header; 0 if it is not 64-bit."""
        # The kernel executes only regular files.
        with closing(self.open_program()) as descriptor, open(f"/proc/self/fd/{descriptor}", "rb") as file:
            return read_machine(file.read(64))

    # Its library

    def probes(self, library: str, mapped: Sequence[Mapping]) -> Dict[str, bool]:
        """Returns {provider:name: whether its semaphore is raised}. Tracers raise semaphores in the process's
        memory."""
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
        """Returns the lines (key, value) of the node's status; none without dyntrace's library. The node controls
        them: any key may be absent, and a value may be anything."""
        address = read_status_address(self.read_file(library, LIBRARY_MOST)) if library else None
        if library is None or address is None:
            return []
        for _ in range(STATUS_TRIES):
            block = self.memory(library, mapped, address, STATUS_SIZE)
            layout, version, size = struct.unpack_from("<III", block)
            if layout != STATUS_LAYOUT:
                raise ValueError("its status has an unknown layout")
            if version % 2 == 0:
                text = block[STATUS_TEXT:STATUS_TEXT + size].decode("utf-8", "replace")
                return [(key, value) for key, found, value in (line.partition(": ") for line in text.split("\n"))
                        if found]
        raise ValueError("its status is being written")

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
    """Returns the mappings of the library: those of its file, and the anonymous ones that follow them. The first one
    has the lowest address, to which the library's own addresses are relative."""
    first = min((part for part in mapped if part.path == library), key=lambda part: part.start - part.offset,
                default=None)
    found: List[Mapping] = []
    for part in mapped if first else []:
        is_file = (part.path, part.device, part.inode) == (library, first.device, first.inode) if first else False
        if is_file or found and part.inode == 0 and not part.path and part.start == found[-1].end:
            found.append(part)
    return sorted(found, key=lambda part: part != first)


def check_covered(parts: Sequence[Mapping], address: int, count: int) -> None:
    """Raises ValueError unless the parts contain all these addresses."""
    at = address
    for part in sorted(parts, key=lambda part: part.start):
        if part.start <= at < part.end:
            at = part.end
    if not 0 <= address < at or at < address + count:
        raise ValueError("that address is not in the library's memory")


def lttng_consumers(mapped: Sequence[Mapping]) -> Set[int]:
    """Returns the PIDs of LTTng's consumer daemons whose buffers the process has mapped, taken from the buffers'
    names."""
    found = (re.search(r"/shm-ust-consumer-(\d{1,9})(?!\d)", mapping.path) for mapping in mapped)
    return {int(one.group(1)) for one in found if one}


def epmd_names(port: int, seconds: float = EPMD_S) -> Dict[int, str]:
    """Returns {TCP port: name} of the nodes that are registered with the epmd of this process's network; empty without
    an epmd. Raises OSError if it names no node in time."""
    answer, deadline = b"", time.monotonic() + seconds
    is_whole = False
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=max(seconds, 0.001)) as epmd:
            epmd.sendall(b"\0\1n")
            while len(answer) < MB and not is_whole:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                epmd.settimeout(left)
                piece = epmd.recv(4096)
                is_whole = not piece
                answer += piece
    except socket.timeout:
        pass
    except (OSError, OverflowError):
        return {}
    found = re.findall(r"^name (\S+) at port (\d{1,5})$", answer[4:].decode("utf-8", "replace"), re.M)
    if not is_whole and not found:
        raise OSError(0, f"the epmd at port {port} does not answer")
    return {int(number): name for name, number in found}
