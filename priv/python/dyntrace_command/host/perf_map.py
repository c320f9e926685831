"""The perf map of a node's Erlang code, which the VM writes if it was started with `+JPperf map`.

A line has an address and a size, both in hexadecimal, and a name. Lines of newly loaded code are appended and lines of
unloaded code remain, so a later line takes precedence. The node's user can write anything there: the work is bounded,
and invalid lines are skipped.
"""
import bisect
import itertools
import re
from typing import Dict, Iterable, Tuple

from dyntrace_command.common.terminal import clean

# The map of a small node has 1 MB, that of a large one 10 MB.
MAP_MOST = 64 * 1000 * 1000
# Bytes of a function; the address space of a process; characters of a name.
SIZE_MOST, ADDRESS_MOST, NAME_MOST = 1 << 24, 1 << 56, 255
# Sampled addresses that all lines together may cover. Each of many overlapping lines may cover all of them.
COVERED_MOST = 10 ** 7
# A line has about 50 bytes in the map of a large node.
LINES_MOST = 1 << 21

LINE = re.compile(rb"^(?:0x)?([0-9a-f]{1,16}) (?:0x)?([0-9a-f]{1,8}) ([^\r\n]{1,1024})\r?$", re.M)
ALIAS = re.compile(r"(?<!\\)'Elixir\.([\w.]+)'(:?)")


def names_of(contents: bytes, addresses: Iterable[int]) -> Dict[int, Tuple[bool, str]]:
    """Returns {address: (whether it is an Erlang function, its name)} of the addresses that the map covers."""
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
    """Returns whether it is a function, and its usual name. Code that functions share has a name given by the VM."""
    name = clean(name[:NAME_MOST])
    name = name[1:] if name.startswith("$") else name
    shared = re.match(r"([^:]*)::(.*)", name)
    if shared:
        return False, f"{shared.group(2)} [code of the VM]" if shared.group(1) == "global" else f"{shared.group(1)}:"
    return True, spelled(re.sub(r"-CodeInfo\w*$", "", name))


def spelled(name: str) -> str:
    """Returns the name of a function; Elixir modules are spelled as in Elixir."""
    return ALIAS.sub(lambda at: at.group(1) + ("." if at.group(2) else ""), name)


def is_bottom(name: str) -> bool:
    """Returns whether this is the outermost frame of every Erlang stack: a stack without it is incomplete."""
    return name.startswith("erts_beamasm:")
