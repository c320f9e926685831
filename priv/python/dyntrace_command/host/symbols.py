"""Finds the function at an offset in an ELF file, and the part of the VM that it belongs to.

As in `elf`, the bytes come from a container and may be anything: reading fails with ValueError, and is never slow. The
VM of a release may be stripped. What remains are the symbols for the dynamic linker: in a VM, all functions that are
not static. A static function lies between other functions of its source file, so if both neighbours belong to one part
of the VM, it does too.
"""
import bisect
import re
import struct
from typing import Iterator, List, NamedTuple, Optional, Tuple

from dyntrace_command.host.elf import checked, find_section

SEGMENTS_MOST, NAME_MOST = 256, 200

# struct Elf64_Ehdr: e_phoff; e_phentsize and e_phnum. struct Elf64_Phdr: p_type of a loaded segment.
SEGMENTS_AT, SEGMENT_NUMBERS_AT, PT_LOAD = 0x20, 0x36, 1
# struct Elf64_Sym: st_name, st_info, st_other, st_shndx, st_value, st_size; types in st_info: function, indirect
# function.
SYMBOL, KINDS = struct.Struct("<IBBHQQ"), (2, 10)

# Parts of the VM, each with a pattern for the functions of its source file that are not static.
PARTS = {
    "garbage collection": re.compile(
        r"erts_(garbage_collect\w*|gc_\w+|init_gc|process_gc_info|next_heap_size|heap_sizes|offset_(off_)?heap\w*"
        r"|deallocate_young_generation|copy_one_frag|sub_binary_to_heap_binary|max_heap_size\w*)"),
}


class Function(NamedTuple):
    """A function: its name, None for a static one of a stripped file; the part of the VM that it belongs to."""
    name: Optional[str]
    part: Optional[str]


class Functions:
    """The functions of a file that has at most `most` symbols."""

    def __init__(self, elf: bytes, most: int) -> None:
        with checked():
            self.found = sorted(functions(elf, most))
        self.starts = [start for start, _, _ in self.found]

    def __len__(self) -> int:
        return len(self.found)

    def at(self, offset: int) -> Function:
        """Returns the function at an offset in the file."""
        at = bisect.bisect_right(self.starts, offset) - 1
        if at < 0:
            return Function(None, None)
        start, size, name = self.found[at]
        if offset < start + size:
            return Function(name, part_of(name))
        beside = [part_of(other) for _, _, other in self.found[at:at + 2]]
        return Function(None, beside[0] if beside == beside[:1] * 2 else None)


def part_of(name: str) -> Optional[str]:
    """Returns the part of the VM that a function belongs to."""
    return next((part for part, pattern in PARTS.items() if pattern.fullmatch(name)), None)


def functions(elf: bytes, most: int) -> Iterator[Tuple[int, int, str]]:
    """Yields (offset in the file, size, name) of its functions; for a stripped file those for the dynamic linker."""
    segments = sorted(loaded(elf))
    for table, texts in ((b".symtab\0", b".strtab\0"), (b".dynsym\0", b".dynstr\0")):
        offset, length = find_section(elf, table)
        if length > most * SYMBOL.size:
            raise ValueError("the file has too many symbols")
        if length:
            names, size = find_section(elf, texts)
            yield from in_table(elf[offset:offset + length], elf[names:names + size], segments)
            return


def in_table(table: bytes, names: bytes, segments: List[Tuple[int, int, int]]) -> Iterator[Tuple[int, int, str]]:
    """Yields the functions in a symbol table."""
    starts = [begin for begin, _, _ in segments]
    for name, info, _, section, address, size in SYMBOL.iter_unpack(table[:len(table) // SYMBOL.size * SYMBOL.size]):
        at = bisect.bisect_right(starts, address) - 1
        if info & 15 in KINDS and section and size and at >= 0 and address < segments[at][1]:
            begin, _, offset = segments[at]
            text = names[name:name + NAME_MOST].split(b"\0", 1)[0]
            yield address - begin + offset, size, plain(text.decode("utf-8", "replace"))


def loaded(elf: bytes) -> Iterator[Tuple[int, int, int]]:
    """Yields (first address, end address, offset in the file) of each loaded segment."""
    table, = struct.unpack_from("<Q", elf, SEGMENTS_AT)
    entry, count = struct.unpack_from("<HH", elf, SEGMENT_NUMBERS_AT)
    for number in range(min(count, SEGMENTS_MOST)):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", elf, table + number * entry)
        if kind == PT_LOAD:
            yield address, address + size, offset


def plain(name: str) -> str:
    """Returns a C++ name without its types: the VM's JIT compiler is written in C++."""
    found = re.match(r"_Z(\d{1,3})(\w+)", name)
    return found.group(2)[:int(found.group(1))] if found else name
