"""The Erlang code of a VM with JIT: its modules, functions, files and lines, from the list that every such VM keeps
for gdb, whatever its flags.

    descriptor  { u32 version = 1, action; entry *relevant, *first; mutex }      found in the VM's data by its shape
    entry       { entry *next, *prev; char *symbols; u64 size }                   the newest first
    symbols     { u32 kind; u32; ... }
      kind 0    at 8: i32 layout of frames; at 16: the address `normal_exit`, the bottom of every stack
      kind 1    at 8: u64 base; u32 ranges, code_size; u16 length; the module's name; the ranges; each
                { u32 start, end, lines; u16 length; name; the lines } with offsets from the base; each line
                { u32 start, line; u16 length; file }

Lengths include a NUL. The compiler pads the fixed part of each structure; the size of a structure is that of its padded
part and its text together.

OTP 25 keeps the entries of unloaded modules; later releases free them when code is purged, perhaps during this reading.
So the newest entry wins, older ones that overlap it are dropped, and all code must be in executable memory without a
file.
"""
import bisect
import contextlib
import re
import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import MB
from dyntrace_command.node.container import Mapping
from dyntrace_command.node.vm_memory import ADDRESS_MOST, VmMemory, data_of, is_jit_memory

DESCRIPTOR, ENTRY = struct.Struct("<IIQQ"), struct.Struct("<QQQQ")
EMULATOR, MODULE = struct.Struct("<IIiIQ"), struct.Struct("<IIQIIH")
RANGE, LINE = struct.Struct("<IIIH"), struct.Struct("<IIH")
# Sizes with padding.
MODULE_SIZE, RANGE_SIZE, LINE_SIZE = 32, 16, 12

# Bounds: entries; bytes of symbols of a module and of all that are parsed; characters of a name; attempts to read the
# list while it changes.
ENTRIES_MOST, SYMBOLS_MOST, PARSED_MOST, NAME_MOST, ATTEMPTS = 1 << 16, 16 * MB, 128 * MB, 255, 5
# The lowest address that programs map, by default.
LOWEST = 1 << 16

ALIAS = re.compile(r"(?<!\\)'Elixir\.([\w.]+)'(:?)")


class Location(NamedTuple):
    """The code at an address: `kind` is erlang, or fragment for code that functions share and for that around
    functions. The line is 0 if it is unknown."""
    kind: str
    name: str
    file: str = ""
    line: int = 0


class Module(NamedTuple):
    """The code of a loaded module: its addresses, and its symbols."""
    start: int
    end: int
    symbols: int
    size: int


# Functions of a module: start and end of its code; name; offset and number of its lines in the symbols.
Range = Tuple[int, int, str, int, int]


class JitCode:
    """The modules of a VM."""

    def __init__(self, memory: VmMemory) -> None:
        self.memory = memory
        self.parts: List[Mapping] = [part for part in memory.mapped if is_jit_memory(part)]
        if not self.parts:
            raise ValueError("it has no JIT-compiled code: the VM has no JIT")
        self.descriptor = find_descriptor(memory)
        self.normal_exit, self.has_frame_pointers = 0, False
        # By their first addresses, none overlapping.
        self.modules: List[Module] = []
        self.starts: List[int] = []
        self.parsed = 0
        self.ranges: Dict[int, Tuple[bytes, List[Range]]] = {}
        self.read_modules()

    def read_modules(self) -> None:
        """Reads the list, and again if it changes meanwhile. If it changes during every attempt, uses the longest list
        that was read."""
        longest: List[Module] = []
        for _ in range(ATTEMPTS):
            self.modules, self.starts = [], []
            before = self.memory.read(self.descriptor, DESCRIPTOR.size)
            is_whole = self.read_entries(DESCRIPTOR.unpack(before)[3])
            if is_whole and self.memory.read(self.descriptor, DESCRIPTOR.size) == before:
                break
            longest = max(self.modules, longest, key=len)
        else:
            self.modules, self.starts = longest, [one.start for one in longest]
        if not self.normal_exit or not self.modules:
            raise ValueError("the VM's list of its code can't be read")

    def read_entries(self, at: int) -> bool:
        """Reads the entries from this one on; returns whether all of them were valid."""
        seen: Set[int] = set()
        while at and len(seen) < ENTRIES_MOST:
            if at in seen:
                return False
            seen.add(at)
            try:
                at, _, symbols, size = ENTRY.unpack(self.memory.read(at, ENTRY.size))
                self.read_symbols(symbols, size)
            except ValueError:
                return False
        return not at

    def read_symbols(self, symbols: int, size: int) -> None:
        """Reads the beginning of an entry's symbols."""
        if size < EMULATOR.size:
            raise ValueError("an entry is too short")
        head = self.memory.read(symbols, min(size, MODULE.size))
        if head[:4] == b"\0\0\0\0":
            _, _, layout, _, normal_exit = EMULATOR.unpack_from(head)
            if not self.is_code(normal_exit, normal_exit + 1):
                raise ValueError("the bottom of stacks is not in code")
            self.normal_exit, self.has_frame_pointers = normal_exit, layout == 1
            return
        if len(head) < MODULE.size or size > SYMBOLS_MOST:
            raise ValueError("an entry has an impossible size")
        kind, _, base, _, code_size, _ = MODULE.unpack(head)
        if kind != 1 or not self.is_code(base, base + code_size):
            raise ValueError("a module is not in code")
        at = bisect.bisect_left(self.starts, base)
        if (at == len(self.starts) or base + code_size <= self.starts[at]) \
                and (at == 0 or self.modules[at - 1].end <= base):
            self.starts.insert(at, base)
            self.modules.insert(at, Module(base, base + code_size, symbols, size))

    def is_code(self, start: int, end: int) -> bool:
        """Returns whether these addresses are in JIT-compiled code."""
        return start < end and any(part.start <= start and end <= part.end for part in self.parts)

    def bounds(self) -> Tuple[int, int]:
        """Returns the lowest and the highest address of Erlang code."""
        return min(part.start for part in self.parts), max(part.end for part in self.parts)

    def locate(self, address: int) -> Optional[Location]:
        """Returns the code at an address; None if it is in no module. For a return address, pass the address before
        it."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.modules[at].end:
            return None
        module = self.modules[at]
        symbols, ranges = self.ranges_of(module)
        offset = address - module.start
        found = bisect.bisect_right(ranges, (offset + 1,)) - 1
        if found < 0 or offset >= ranges[found][1]:
            return None
        _, _, name, lines_at, lines = ranges[found]
        file, line = line_of(symbols, lines_at, lines, offset)
        return named(name, file, line)

    def ranges_of(self, module: Module) -> Tuple[bytes, List[Range]]:
        """Returns the symbols of a module, and its ranges by their first offsets."""
        if module.start not in self.ranges:
            symbols, ranges = b"", []  # type: bytes, List[Range]
            if self.parsed + module.size <= PARSED_MOST:
                self.parsed += module.size
                try:
                    symbols = self.memory.read(module.symbols, module.size)
                    # The VM may have purged the module since.
                    ranges = ranges_in(symbols, module)
                except (ValueError, struct.error):
                    symbols, ranges = b"", []
            self.ranges[module.start] = symbols, ranges
        return self.ranges[module.start]


def find_descriptor(memory: VmMemory) -> int:
    """Returns the address of the only structure in the VM's data that is a descriptor with a valid list. The list may
    begin in memory that the VM has mapped since the mappings were read."""
    for _ in range(ATTEMPTS):
        found = [at for part in data_of(memory.mapped) for at in descriptors(memory, part)]
        if len(found) == 1:
            return found[0]
        memory.refresh()
    raise ValueError("the VM's list of its code was not found")


def descriptors(memory: VmMemory, part: Mapping) -> Iterator[int]:
    """Yields the addresses in a part of the VM's data that may be those of the descriptor."""
    data = memory.read(part.start, part.end - part.start)
    for action in range(3):
        wanted = struct.pack("<II", 1, action)
        at = data.find(wanted)
        while at >= 0:
            if at % 8 == 0 and at + DESCRIPTOR.size <= len(data) and is_pointer(DESCRIPTOR.unpack_from(data, at)[3]) \
                    and is_descriptor(memory, part.start + at):
                yield part.start + at
            at = data.find(wanted, at + 4)


def is_pointer(word: int) -> bool:
    """Returns whether a word may be the address of an entry or of its symbols."""
    return LOWEST <= word < ADDRESS_MOST and word % 8 == 0


def is_descriptor(memory: VmMemory, at: int) -> bool:
    """Returns whether the descriptor may be at this address. A node that loads code changes the first entry often. The
    entry may be in memory that the VM mapped after the mappings were read."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(ValueError):
            first = DESCRIPTOR.unpack(memory.read(at, DESCRIPTOR.size))[3]
            _, _, symbols, size = ENTRY.unpack(memory.read(first, ENTRY.size))
            if is_pointer(symbols) and EMULATOR.size <= size <= SYMBOLS_MOST:
                memory.check(symbols, size)
                if memory.read(symbols, 4) in (b"\0\0\0\0", b"\1\0\0\0"):
                    return True
    return False


def ranges_in(symbols: bytes, module: Module) -> List[Range]:
    """Returns the ranges of a module's symbols, sorted; raises ValueError or struct.error if they are invalid."""
    kind, _, base, count, code_size, length = MODULE.unpack_from(symbols)
    if kind != 1 or base != module.start or base + code_size != module.end or count > len(symbols) // RANGE_SIZE:
        raise ValueError("the module has changed")
    found: List[Range] = []
    at = MODULE_SIZE + length
    for _ in range(count):
        start, end, lines, length = RANGE.unpack_from(symbols, at)
        name = text_at(symbols, at + RANGE.size, length)
        at += RANGE_SIZE + length
        first = at
        if not start <= end <= code_size or lines > len(symbols) // LINE_SIZE:
            raise ValueError("a range is not in its module")
        for _ in range(lines):
            at += LINE_SIZE + LINE.unpack_from(symbols, at)[2]
        found.append((start, end, name, first, lines))
    # Each at most once: a range that begins in another one does not count.
    found.sort()
    return [one for at, one in enumerate(found) if at == 0 or one[0] >= found[at - 1][1]]


def line_of(symbols: bytes, at: int, lines: int, offset: int) -> Tuple[str, int]:
    """Returns the file and the line of an offset, by the last line that begins before or at it."""
    best = (-1, 0, 0, 0)
    for _ in range(lines):
        start, line, length = LINE.unpack_from(symbols, at)
        if best[0] <= start <= offset:
            best = start, line, at + LINE.size, length
        at += LINE_SIZE + length
    _, line, at, length = best
    return clean(text_at(symbols, at, length)), line


def text_at(symbols: bytes, at: int, length: int) -> str:
    """Returns a text without its NUL, cut to the longest that is shown."""
    return symbols[at:at + min(length, NAME_MOST)].split(b"\0", 1)[0].decode("utf-8", "replace")


def named(name: str, file: str = "", line: int = 0) -> Location:
    """Returns the location of code with this name, as the VM writes it."""
    name = clean(name)
    shared = re.match(r"([^:]*)::(.*)", name)
    if shared:
        is_global = shared.group(1) == "global"
        return Location("fragment", shared.group(2) if is_global else f"{shared.group(1)}:{shared.group(2)}")
    return Location("erlang", spelled(re.sub(r"-CodeInfo\w*$", "", name)), file, line)


def spelled(name: str) -> str:
    """Returns the name of a function; Elixir modules are spelled as in Elixir."""
    return ALIAS.sub(lambda at: at.group(1) + ("." if at.group(2) else ""), name)
