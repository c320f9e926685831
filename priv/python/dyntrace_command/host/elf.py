"""ELF notes of a shared library: the addresses of its probes' semaphores and of its status; its target.

The bytes come from a container, so they may be anything. Every number in them is an offset or a size that may be out of
range: reading then fails, and is never slow. ELF notes are untrusted: they apply only to the file that contains them.
"""
import contextlib
import functools
import struct
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

# The library has about 2,000.
NOTES_MOST = 1 << 16

# struct Elf64_Ehdr: e_shoff; e_shentsize, e_shnum and e_shstrndx.
SECTIONS_AT, SECTION_NUMBERS_AT = 0x28, 0x3a

# Sizes of name and description, type, the name padded.
STATUS_NOTE = struct.pack("<III12s", 9, 8, 1, b"dyntrace")
NIF_NOTE = struct.pack("<III12s", 9, 8, 2, b"dyntrace")


class Target(NamedTuple):
    """The target of a build: the machine, the C library, and the oldest version of erl_nif."""
    machine: int
    libc: str
    nif: Tuple[int, int]


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """Converts the exceptions of numbers that are out of range to ValueError."""
    try:
        yield
    except (IndexError, OverflowError, struct.error) as error:
        raise ValueError(str(error)) from None


# Cached, because the nodes of a host share their library.
@functools.lru_cache(maxsize=1)
@checked()
def read_semaphores(elf: bytes) -> Dict[int, str]:
    """Returns {address: provider:name} of the probes with a semaphore; raises only ValueError."""
    offset, length = find_section(elf, b".note.stapsdt\0")
    return dict(notes(elf, offset, offset + length))


@checked()
def read_status_address(elf: bytes) -> Optional[int]:
    """Returns the address of the status (see c_src/status.h); None for a library without one, such as that of OTP's own
    dyntrace. Raises only ValueError."""
    offset, length = find_section(elf, b".note.dyntrace\0")
    if length == 0:
        return None
    if elf[offset:offset + len(STATUS_NOTE)] != STATUS_NOTE:
        raise ValueError("the library's status has an unknown type")
    address, = struct.unpack_from("<Q", elf, offset + len(STATUS_NOTE))
    return int(address)


def read_machine(elf: bytes) -> int:
    """Returns the machine, e_machine; 0 if the file is not 64-bit."""
    return int(struct.unpack_from("<H", elf, 0x12)[0]) if elf[:5] == b"\x7fELF\x02" and len(elf) >= 0x14 else 0


@checked()
def read_target(elf: bytes) -> Target:
    """Returns the target of a library of this project; raises only ValueError."""
    offset, length = find_section(elf, b".dynstr\0")
    libc = "glibc" if b"\0libc.so.6\0" in elf[offset:offset + length] else "musl"
    offset, length = find_section(elf, b".note.dyntrace.nif\0")
    if length == 0 or elf[offset:offset + len(NIF_NOTE)] != NIF_NOTE:
        raise ValueError("the library does not state the VM that it was built for")
    major, minor = struct.unpack_from("<II", elf, offset + len(NIF_NOTE))
    return Target(read_machine(elf), libc, (major, minor))


def find_section(elf: bytes, wanted: bytes) -> Tuple[int, int]:
    """Returns (offset, length) of the section; (0, 0) if no section has this name."""
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError("the library is not 64-bit")
    table, = struct.unpack_from("<Q", elf, SECTIONS_AT)
    entry, count, names = struct.unpack_from("<HHH", elf, SECTION_NUMBERS_AT)
    # struct Elf64_Shdr: sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size
    sections = [struct.unpack_from("<IIQQQQ", elf, table + i * entry) for i in range(count)]
    for name, _, _, _, offset, length in sections:
        if elf.startswith(wanted, sections[names][4] + name):
            return offset, length
    return 0, 0


def notes(elf: bytes, at: int, end: int) -> Iterator[Tuple[int, str]]:
    """Yields (address, provider:name) for each note whose probe has a semaphore."""
    for _ in range(NOTES_MOST):
        if at >= end:
            return
        name_size, size, _ = struct.unpack_from("<III", elf, at)
        at += 12 + padded(name_size)
        if at + size > end:
            raise ValueError("a note is longer than its section")
        # The site, the section .stapsdt.base, the semaphore; then texts: provider, name, operands.
        _, _, semaphore = struct.unpack_from("<QQQ", elf, at)
        provider, name = elf[at + 24:at + size].split(b"\0")[:2]
        if semaphore:
            yield semaphore, f"{provider.decode()}:{name.decode()}"
        at += padded(size)
    raise ValueError("the library has too many notes")


def padded(size: int) -> int:
    """Rounds up: parts of a note start at multiples of four bytes."""
    return size + 3 & ~3
