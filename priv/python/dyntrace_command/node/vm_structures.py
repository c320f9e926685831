"""The structures of a VM that lead to its processes: its tables of processes and atoms, and its schedulers.

None of them is documented, and stripped VMs have no symbols for them. So each is found in the VM's data by its shape,
and a structure that is not found, or found twice, counts as unknown. The offsets in a process are those of a row of
`PROCESS_LAYOUTS`: the row with which the first processes of the table are valid.

    table of processes   { word *slots, *free; u32 size; size - 1; ... }    a slot is 0 or a process; size - 1 is a u32
                         before OTP 26, and a word since
    table of atoms       { ...; i32 size; i32 limit, entries; atom ***segments }  segments of 1,024 atoms
    schedulers           one array for each kind of scheduler; each has the registers of its Erlang code at 0, and its
                         thread at 32: the address of a structure of the C library (`c_threads`)
"""
import contextlib
import re
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.node.c_threads import thread_number, threads
from dyntrace_command.node.jit_code import spelled
from dyntrace_command.node.vm_memory import VmMemory, data_of

# Bounds: processes; characters of an atom, and atoms that are read; schedulers of a kind, and bytes between two.
SLOTS_MOST, ATOM_MOST, ATOMS_MOST, SCHEDULERS_MOST, STRIDE_MOST = 1 << 27, 255 * 4, 1 << 18, 1024, 1 << 17
# Slots that are read at once; processes with which a layout is checked, and how many of them have to be valid.
SLOTS_AT_ONCE, CHECKED, VALID = 1 << 15, 64, 0.9

# The lowest four bits of a local pid, the lowest six of an atom.
PID_TAG, ATOM_TAG = 0x3, 0xb
# Words of an export entry, in which its name is.
EXPORT_WORDS = 16
# Names of the first two atoms.
FIRST_ATOMS = ("false", "true")

# Offsets in a scheduler: its thread; how it sleeps; its type, its number of each kind, the process and the port that it
# runs; its run queue. The table has, by the offset of the scheduler in its run queue, the offsets of the queue's number
# and length. 160: OTP 27 on arm64.
THREAD_AT, SLEEP_AT, CURRENT_AT, TYPE_AT, PORT_AT, RUN_QUEUE_AT, SCHEDULER_WORDS = 32, 160, 168, 176, 224, 232, 30
RUN_QUEUES = {144: (0, 208), 160: (0, 224), 224: (168, 164)}
RUN_QUEUE_SIZE = 232
KINDS = ("scheduler", "dirty CPU scheduler", "dirty I/O scheduler")

# Flags in a process's state.
FREE, EXITING, IN_RUN_QUEUE, RUNNING, SUSPENDED, COLLECTING, RUNNING_TASKS, DIRTY, DIRTY_TASKS = (
    1 << bit for bit in (10, 11, 14, 15, 16, 17, 21, 29, 30))


class ProcessLayout(NamedTuple):
    """Offsets in a process, and the bits of a pid's number. `lengths`: numbers whose sum is the length of the message
    queue."""
    registered: int
    heap: int
    size: int
    resume: int
    reductions: int
    lengths: Tuple[int, ...]
    initial: int
    current: int
    state: int
    arguments: int
    number_bits: int
    htop: int = 80
    stop: int = 88

    def bytes(self) -> int:
        """Returns how many bytes of a process are read."""
        return max(self.lengths) + 8

    def on_arm64(self) -> "ProcessLayout":
        """Returns the layout on arm64, where no frame pointer follows the top of the stack."""
        return ProcessLayout(self.registered, self.heap - 8, self.size - 8, self.resume - 8, self.reductions - 8,
                             tuple(at - 8 for at in self.lengths), self.initial - 8, self.current - 8, self.state - 8,
                             self.arguments - 8, self.number_bits)


# OTP 25; OTP 27 to 29; on x86-64.
X86_64_LAYOUTS = (
    ProcessLayout(registered=48, heap=128, size=152, resume=256, reductions=280, lengths=(392, 672), initial=448,
                  current=472, state=640, arguments=192, number_bits=15),
    ProcessLayout(registered=32, heap=192, size=216, resume=248, reductions=272, lengths=(336, 376, 656), initial=440,
                  current=464, state=624, arguments=136, number_bits=28),
)
PROCESS_LAYOUTS = (*X86_64_LAYOUTS, *(layout.on_arm64() for layout in X86_64_LAYOUTS))


class Scheduler(NamedTuple):
    """A scheduler: its kind in `KINDS`, its number among these, its thread, the process that it runs (0 for none), and
    the length of its run queue, -1 if unknown."""
    kind: int
    number: int
    tid: int
    process: int
    queue: int
    address: int
    thread: int


class VmStructures:
    """The structures of a VM, found in its memory."""  # pylint: disable=too-many-public-methods

    def __init__(self, memory: VmMemory, normal_exit: int, known: Optional[List[Any]] = None) -> None:
        """Finds the structures; `known` has the value of `places` for this VM, which saves the search."""
        self.memory, self.normal_exit = memory, normal_exit
        self.slots = self.slot_count = self.segments = self.atom_count = 0
        self.arrays: List[int] = []
        self.atoms: Dict[int, str] = {}
        self.tids: Dict[int, int] = {}
        self.layout = PROCESS_LAYOUTS[0]
        # Whether the texts of atoms are binaries, as they are since OTP 28.
        self.is_boxed = False
        if known:
            self.slots, self.slot_count, self.segments, self.atom_count, self.is_boxed, layout = known
            self.layout = PROCESS_LAYOUTS[layout]
        else:
            self.search()

    def search(self) -> None:
        """Finds the structures in the VM's data; raises ValueError without those of processes."""
        self.tids = threads(self.memory.inside)
        tables, atoms = [], []
        for part in data_of(self.memory.mapped):
            words = self.memory.words(part.start, (part.end - part.start) // 8)
            tables += list(self.process_tables(words))
            atoms += list(self.atom_tables(words))
            self.arrays += self.scheduler_arrays(words)
        if len(tables) != 1:
            raise ValueError("the VM's table of processes was not found")
        self.slots, self.slot_count = tables[0]
        if len(atoms) == 1:
            self.segments, self.atom_count, self.is_boxed = atoms[0]
        self.layout = self.find_layout()

    def places(self) -> List[Any]:
        """Returns where the structures are, as a JSON value."""
        return [self.slots, self.slot_count, self.segments, self.atom_count, self.is_boxed,
                PROCESS_LAYOUTS.index(self.layout)]

    # Processes

    def process_tables(self, words: Sequence[int]) -> Iterator[Tuple[int, int]]:
        """Yields (address, number) of the slots of each structure that may be the table of processes. That of ports is
        alike."""
        for at in range(len(words) - 3):
            size = words[at + 2] & 0xffffffff
            if 1024 <= size <= SLOTS_MOST and size & size - 1 == 0 \
                    and size - 1 in (words[at + 2] >> 32, words[at + 3]) \
                    and self.memory.is_mapped(words[at], size * 8) and self.memory.is_mapped(words[at + 1], size * 4):
                first = next(self.addresses(words[at], size), 0)
                if self.memory.is_mapped(first) and self.memory.words(first, 1)[0] & 15 == PID_TAG:
                    yield words[at], size

    def addresses(self, slots: int = 0, count: int = 0) -> Iterator[int]:
        """Yields the addresses in the slots of a table, by default of that of processes."""
        slots, count = slots or self.slots, count or self.slot_count
        for first in range(0, count, SLOTS_AT_ONCE):
            words = self.memory.words(slots + 8 * first, min(SLOTS_AT_ONCE, count - first))
            if any(words):
                yield from filter(None, words)

    def find_layout(self) -> ProcessLayout:
        """Returns the layout of processes."""
        checked = [address for address, _ in zip(self.addresses(), range(CHECKED))]
        for layout in PROCESS_LAYOUTS:
            if sum(self.is_process(address, layout) for address in checked) >= max(1, VALID * len(checked)):
                return layout
        raise ValueError("the VM's release has processes of an unknown layout")

    def is_process(self, address: int, layout: ProcessLayout) -> bool:
        """Returns whether this is a process of that layout."""
        try:
            words = self.memory.words(address, layout.bytes() // 8)
            heap, hend = words[layout.heap // 8:layout.heap // 8 + 2]
            module, function, arity = words[layout.initial // 8:layout.initial // 8 + 3]
            return words[0] & 15 == PID_TAG and heap <= words[layout.htop // 8] <= words[layout.stop // 8] <= hend \
                and hend - heap == 8 * words[layout.size // 8] \
                and self.memory.words(hend - 8, 1)[0] == self.normal_exit \
                and module & 63 == function & 63 == ATOM_TAG and arity < 256
        except ValueError:
            return False

    def process_of(self, word: int) -> int:
        """Returns the address of the process with the pid that this word encodes; raises ValueError if it has ended."""
        index = word >> 32 if self.layout.number_bits < 28 else word >> 4
        address, = self.memory.words(self.slots + 8 * (index & self.slot_count - 1), 1)
        if self.memory.words(address, 1)[0] != word:
            raise ValueError("the process has ended")
        return address

    def name_of(self, address: int) -> str:
        """Returns the registered name of the process at an address; an empty text if it has none."""
        name = self.name_in(address, *self.memory.words(address + self.layout.registered, 1))
        return self.atom(name) if name else ""

    def name_in(self, address: int, registered: int) -> int:
        """Returns the name in the registration of the process at an address, as a word of the VM; 0 if it has none."""
        found = self.memory.words(registered, 5) if registered else (0,) * 5
        return found[4] if found[2] == address else 0

    def function_at(self, address: int) -> str:
        """Returns the function that the VM names at an address: a module, a function and an arity. Returns an empty
        text if it names none."""
        try:
            return self.function(*self.memory.words(address, 3)) if address else ""
        except ValueError:
            return ""

    def function(self, module: int, function: int, arity: int) -> str:
        """Returns a function by the words of its name; an empty text if they are invalid."""
        names = self.atom(module), self.atom(function)
        return spelled(f"{':'.join(names)}/{arity}") if arity < 256 and "?" not in names else ""

    def exported(self, address: int) -> str:
        """Returns the function of an export entry, which has its name after some other words."""
        try:
            words = self.memory.words(address, EXPORT_WORDS)
        except ValueError:
            return ""
        return next((self.function(*words[at:at + 3]) for at in range(3, EXPORT_WORDS - 2)
                     if words[at] & 63 == words[at + 1] & 63 == ATOM_TAG and words[at + 2] < 256), "")

    def pid(self, word: int) -> str:
        """Returns the pid that this word encodes."""
        data, bits = word >> 4, self.layout.number_bits
        if bits < 28:
            # In OTP 25, the index in the table follows the 28 bits of the pid.
            data &= (1 << 28) - 1
        else:
            # The lowest bits are the index: consecutive pids are in different cache lines, of 8 slots each.
            mask = self.slot_count - 1
            data = data & ~mask | data >> 3 & mask >> 3 | (data & 7) << mask.bit_length() - 3
        return f"<0.{data & (1 << bits) - 1}.{data >> bits}>"

    # Atoms

    def atom_tables(self, words: Sequence[int]) -> Iterator[Tuple[int, int, bool]]:
        """Yields the address of the segments and the number of atoms of each structure that may be the table of atoms,
        and whether the texts are binaries."""
        for at in range(2, len(words)):
            limit, entries = words[at - 1] & 0xffffffff, words[at - 1] >> 32
            if 256 < entries <= limit and words[at] % 8 == 0 and self.memory.is_mapped(words[at]):
                for is_boxed in (False, True):
                    with contextlib.suppress(ValueError):
                        if tuple(self.read_atom(words[at], index, is_boxed) for index in range(2)) == FIRST_ATOMS:
                            yield words[at], entries, is_boxed

    def read_atom(self, segments: int, index: int, is_boxed: bool) -> str:
        """Reads the text of an atom; `is_boxed`: it is a binary."""
        segment, = self.memory.words(segments + 8 * (index >> 10), 1)
        address, = self.memory.words(segment + 8 * (index & 1023), 1)
        own, length, _, _, name = struct.unpack_from("<i4xhhiQ", self.memory.read(address, 40), 16)
        if own != index or not 0 <= length <= ATOM_MOST:
            raise ValueError("an atom is invalid")
        if is_boxed:
            if index < len(FIRST_ATOMS) and (name & 3 != 2 or self.boxed_size(name) != length):
                raise ValueError("an atom is invalid")
            # A header, and the size in bits.
            name += 14
        return self.memory.read(name, length).decode("utf-8", "replace") if length else ""

    def boxed_size(self, term: int) -> int:
        """Returns the size of a binary in bytes; -1 if this is not a binary."""
        try:
            header, size = self.memory.words(term - 2, 2)
        except ValueError:
            return -1
        return size // 8 if header & 3 == 0 and size % 8 == 0 else -1

    def atom(self, word: int) -> str:
        """Returns the text of an atom as Erlang writes it; ? if it is unknown."""
        if word & 63 != ATOM_TAG:
            return "?"
        if word not in self.atoms:
            text = ""
            try:
                if word >> 6 < max(self.atom_count, 2) and len(self.atoms) < ATOMS_MOST and self.segments:
                    text = quoted(self.read_atom(self.segments, word >> 6, self.is_boxed))
            except ValueError:
                pass
            self.atoms[word] = text or "?"
        return self.atoms[word]

    # Schedulers

    def scheduler_arrays(self, words: Sequence[int]) -> List[int]:
        """Returns the addresses of the arrays of schedulers."""
        found: List[int] = []
        for word in words:
            if word and word % 64 == 0 and word not in self.arrays + found and self.memory.is_mapped(word, 256):
                kind, number, _ = self.identify(word)
                if kind >= 0 and number == 1:
                    found.append(word)
        return found

    def identify(self, address: int) -> Tuple[int, int, int]:
        """Returns (kind, number, thread) of the scheduler at this address; (-1, 0, 0) if there is none."""
        try:
            words = self.memory.words(address, SCHEDULER_WORDS)
            kind, normal, dirty = words[TYPE_AT // 8] & 0xffffffff, *words[TYPE_AT // 8 + 1:TYPE_AT // 8 + 3]
            if kind < len(KINDS) and (normal, dirty)[kind == 0] == 0 and self.memory.is_mapped(words[0]):
                number, thread = (normal or dirty), words[THREAD_AT // 8]
                tid = self.tids.get(thread_number(self.memory, thread, self.tids), 0)
                if 0 < number <= SCHEDULERS_MOST and tid:
                    return kind, number, tid
        except (ValueError, struct.error):
            pass
        return -1, 0, 0

    def schedulers(self) -> List[Scheduler]:
        """Returns all schedulers, by kind and number."""
        found: Dict[Tuple[int, int], Scheduler] = {}
        for array in self.arrays:
            kind, _, _ = self.identify(array)
            address, stride = array, 0
            for number in range(1, SCHEDULERS_MOST + 1):
                if self.identify(address)[:2] != (kind, number):
                    break
                found.setdefault((kind, number), self.scheduler(address))
                if not stride:
                    stride = next((step for step in range(256, STRIDE_MOST, 64)
                                   if self.memory.is_mapped(array + step, 256)
                                   and self.identify(array + step)[:2] == (kind, 2)), 0)
                    if not stride:
                        break
                address += stride
        return [found[key] for key in sorted(found)]

    def scheduler(self, address: int) -> Scheduler:
        """Returns the scheduler at this address."""
        kind, number, tid = self.identify(address)
        words = self.memory.words(address, SCHEDULER_WORDS)
        queue = self.queue_length(words[RUN_QUEUE_AT // 8], kind, number)
        return Scheduler(kind, number, tid, words[CURRENT_AT // 8], queue, address, words[THREAD_AT // 8])

    def queue_length(self, queue: int, kind: int, number: int) -> int:
        """Returns the length of a run queue; -1 if it is not a valid one."""
        try:
            data = self.memory.read(queue, RUN_QUEUE_SIZE)
        except ValueError:
            return -1
        for place, (number_at, length_at) in RUN_QUEUES.items():
            owner, = struct.unpack_from("<Q", data, place)
            own, = struct.unpack_from("<i", data, number_at)
            owned_by = self.identify(owner)[:2] if owner % 64 == 0 and self.memory.is_mapped(owner, 256) else (-1, 0)
            # All dirty schedulers of a kind share the queue of the first one.
            if owned_by == (kind, 1 if kind else number) and (kind or own == number - 1):
                length, = struct.unpack_from("<i", data, length_at)
                return int(length) if 0 <= length <= SLOTS_MOST else -1
        return -1


def quoted(atom: str) -> str:
    """Returns an atom as Erlang writes it."""
    return atom if re.fullmatch(r"[a-z][\w@]*", atom, re.ASCII) else "'" + clean(atom).replace("'", "\\'") + "'"


def status_of(state: int) -> str:
    """Returns what a process with this state does."""
    if state & EXITING:
        return "exiting"
    if state & (COLLECTING | DIRTY_TASKS):
        return "collecting garbage" if state & COLLECTING else "running"
    if state & (RUNNING | RUNNING_TASKS | DIRTY):
        return "running"
    if state & SUSPENDED:
        return "suspended"
    return "runnable" if state & IN_RUN_QUEUE else "waiting"


def is_running(state: int) -> bool:
    """Returns whether a scheduler may be changing the process's stack."""
    return bool(state & (EXITING | RUNNING | RUNNING_TASKS | COLLECTING | DIRTY_TASKS))
