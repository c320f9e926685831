"""The memory of an Erlang VM, read by a child process of this command (`sandbox`) from /proc/PID/mem.

The node controls every byte. A read is limited to readable mappings, never touches memory whose file is on a file
system that may not answer, and raises ValueError instead of returning too few bytes. The readers of structures
(`jit_code`, `vm_structures`) trust nothing: each pointer, size and count is checked before it is used, and all work is
bounded.
"""
import bisect
import os
import struct
from typing import List, Sequence, Tuple

from dyntrace_command.host.files import MB
from dyntrace_command.node.container import Container, Mapping

# Bytes of one read; how often the mappings are read again, because the VM has mapped more memory since.
READ_MOST, REFRESHES_MOST = 64 * MB, 50
# An address that a process can have: 47 bits on x86-64, 48 on arm64.
ADDRESS_MOST = 1 << 48


class VmMemory:
    """The memory of a VM, for a child of this command."""

    def __init__(self, inside: Container) -> None:
        self.inside = inside
        self.refreshes = 0
        self.mapped: List[Mapping] = []
        self.starts: List[int] = []
        # The bounds of the last mapping that was read.
        self.start, self.end = 0, 0
        self.refresh()
        self.descriptor = inside.open_proc("mem")

    def refresh(self) -> None:
        """Reads the mappings again."""
        refused = self.inside.remote_mounts()[1]
        self.mapped = [part for part in self.inside.mappings()
                       if part.permissions.startswith("r") and part.device not in refused]
        self.starts = [part.start for part in self.mapped]

    def read(self, address: int, count: int) -> bytes:
        """Returns `count` bytes; raises ValueError if they can't be read."""
        if not (self.start <= address and address + count <= self.end):
            self.check(address, count)
        try:
            read = os.pread(self.descriptor, count, address)
        except OSError:
            raise ValueError("its memory has changed") from None
        if len(read) != count:
            raise ValueError("its memory has changed")
        return read

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        """Returns `count` words of eight bytes; raises ValueError if they can't be read."""
        return struct.unpack(f"<{count}Q", self.read(address, 8 * count))

    def check(self, address: int, count: int) -> None:
        """Raises ValueError unless the mappings contain all these bytes."""
        if not 0 < address <= address + count < ADDRESS_MOST or count > READ_MOST:
            raise ValueError("a pointer in its memory leads nowhere")
        if not self.covers(address, count):
            self.refreshes += 1
            if self.refreshes <= REFRESHES_MOST:
                self.refresh()
            if self.refreshes > REFRESHES_MOST or not self.covers(address, count):
                raise ValueError("a pointer in its memory leads nowhere")

    def covers(self, address: int, count: int) -> bool:
        """Returns whether adjacent mappings contain all these bytes."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.mapped[at].end:
            return False
        start, end = self.mapped[at].start, self.mapped[at].end
        while end < address + count:
            at += 1
            if at == len(self.mapped) or self.mapped[at].start != end:
                return False
            end = self.mapped[at].end
        self.start, self.end = start, end
        return True

    def is_mapped(self, address: int, count: int = 8) -> bool:
        """Returns whether these bytes may be read, without reading the mappings again."""
        return 0 < address < ADDRESS_MOST and self.covers(address, count)


def data_of(mapped: Sequence[Mapping]) -> List[Mapping]:
    """Returns the mappings of the VM's own data: the writable ones of its program, and the anonymous one that follows
    them."""
    program = next((part.path for part in mapped if is_program(part.path)), None)
    found: List[Mapping] = []
    for part in mapped if program else []:
        follows = found and not part.path and part.start == found[-1].end
        if part.permissions.startswith("rw") and (part.path == program or follows):
            found.append(part)
    if not found:
        raise ValueError("its program is not mapped")
    return found


def is_program(path: str) -> bool:
    """Returns whether this is the VM's program."""
    return os.path.basename(path.replace(" (deleted)", "")).startswith("beam")


def is_jit_memory(part: Mapping) -> bool:
    """Returns whether this is JIT-compiled code: the VM maps it from memory, or from a file without a name."""
    return "x" in part.permissions and (not part.path or part.path.startswith(("/memfd:", "//anon")))
