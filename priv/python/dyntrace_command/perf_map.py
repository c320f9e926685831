"""The map of a node's Erlang code, which the VM writes for perf if it was started with `+JPperf map`.

A line has an address, a size, both in hexadecimal, and a name. Code that is loaded appends its lines and code that is
removed leaves its own, so the later line wins. The node's user can write anything there: the work is bounded, and a
line that can't be one is skipped.
"""
import bisect
import itertools
import re
from typing import Dict, Iterable, Tuple

from dyntrace_command.terminal import clean

# A small node has 1 MB, a large one ten.
MAP_MOST = 64 * 1000 * 1000
# Bytes of a function; addresses of processes; letters of a name.
SIZE_MOST, ADDRESS_MOST, NAME_MOST = 1 << 24, 1 << 56, 255
# Addresses of samples that all lines together cover. Lines that overlap again and again may cover them all.
COVERED_MOST = 10 ** 7
# Of a large map, a line has 50 bytes.
LINES_MOST = 1 << 21

LINE = re.compile(rb"^(?:0x)?([0-9a-f]{1,16}) (?:0x)?([0-9a-f]{1,8}) ([^\r\n]{1,1024})\r?$", re.M)
ALIAS = re.compile(r"(?<!\\)'Elixir\.([\w.]+)'(:?)")


def names_of(contents: bytes, addresses: Iterable[int]) -> Dict[int, Tuple[bool, str]]:
    """Returns {address: (whether it is a function of Erlang, its name)} of those that the map covers."""
    wanted = sorted(set(addresses))
    found: Dict[int, bytes] = {}
    covered = 0
    for line in itertools.islice(LINE.finditer(contents), LINES_MOST):
        start, size = int(line.group(1), 16), int(line.group(2), 16)
        if not 0 < size <= SIZE_MOST or start + size > ADDRESS_MOST:
            continue
        begin, end = bisect.bisect_left(wanted, start), bisect.bisect_left(wanted, start + size)
        covered += end - begin
        if covered > COVERED_MOST:
            break
        for address in wanted[begin:end]:
            found[address] = line.group(3)
    spellings = {name: spelling(name.decode("utf-8", "replace")) for name in set(found.values())}
    return {address: spellings[name] for address, name in found.items()}


def spelling(name: str) -> Tuple[bool, str]:
    """Returns whether it is a function, and its name as people know it. Code that functions share has a name of the
    VM's own."""
    name = clean(name[:NAME_MOST])
    name = name[1:] if name.startswith("$") else name
    shared = re.match(r"([^:]*)::(.*)", name)
    if shared:
        return False, f"{shared.group(2)} [code of the VM]" if shared.group(1) == "global" else f"{shared.group(1)}:"
    return True, spelled(re.sub(r"-CodeInfo\w*$", "", name))


def spelled(name: str) -> str:
    """Returns the name of a function with Elixir's names in Elixir's spelling."""
    return ALIAS.sub(lambda at: at.group(1) + ("." if at.group(2) else ""), name)


def is_bottom(name: str) -> bool:
    """Returns whether it is where all stacks of Erlang begin: only a stack that ends there is whole."""
    return name.startswith("erts_beamasm:")
