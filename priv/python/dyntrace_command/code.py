"""What runs at an address of a node: a function of Erlang, by the map that the node writes; one of C, by its file.

The files are the node's own and are opened when they are seen first, so that the names are there when the node has
ended meanwhile.
"""
import bisect
import contextlib
import os
from typing import Dict, Iterable, List, NamedTuple, Optional

from dyntrace_command.container import LIBRARY_MOST, Segment
from dyntrace_command.files import read_regular
from dyntrace_command.node import LIBRARY, Node
from dyntrace_command.perf_map import MAP_MOST, names_of
from dyntrace_command.symbols import Functions
from dyntrace_command.terminal import clean

# A VM with its drivers and libraries has some twenty.
FILES_MOST = 200
# Symbols of all of them. libcrypto has 10,000, a VM with its static functions 20,000.
SYMBOLS_MOST = 1 << 18

STATIC = "static function"

# Values of +JPperf with which a node writes no map.
WITHOUT_MAP = ("false", "dump", "fp", "no_fp")


class Place(NamedTuple):
    """What is at an address. `kind` is erlang, jit: code of Erlang without a name, c, tracer: dyntrace's own library.
    `part`: the part of the VM, if that is known; it is the better name of a static function."""
    kind: str
    name: str
    part: Optional[str] = None

    def frames(self) -> List[str]:
        """Returns its frames of a stack, the innermost first."""
        part = [f"[{self.part}]"] if self.part else []
        return part if part and self.name.startswith(STATIC) else [self.name, *part]


class Code:
    """The code of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.segments: List[Segment] = []
        self.starts: List[int] = []
        self.files: Dict[str, int] = {}
        self.functions: Dict[str, Optional[Functions]] = {}
        self.map: Optional[int] = None
        self.path = ""
        # Why there are no names of Erlang's functions, empty if there are, and what to do.
        self.why, self.step = "", ""
        self.open_map()
        self.refresh()

    def open_map(self) -> None:
        """Opens the map. An earlier process of the same number may have left one, so the node must say that it writes
        it."""
        flag = self.node.arguments.get("JPperf")
        if flag is None or flag in WITHOUT_MAP:
            self.why = "it was not started with `+JPperf map`"
            self.step = "add the line `+JPperf map` to vm.args (rel/vm.args.eex of Elixir), and restart the node"
            return
        try:
            folder = self.node.arguments.get("JPperfdirectory", "/tmp")
            self.path = f"{folder}/perf-{self.node.inside.inner_pid()}.map"
            self.map = self.node.inside.open_regular(self.path, MAP_MOST)
        except (OSError, ValueError) as error:
            self.unreadable(error)

    def refresh(self) -> None:
        """Reads which files have code now: call it again at the end, when more may be loaded."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            self.segments = self.node.inside.code()
            self.starts = [segment.start for segment in self.segments]
        for path in {segment.path for segment in self.segments if segment.path.startswith("/")} - set(self.files):
            with contextlib.suppress(OSError, ValueError):
                if len(self.files) < FILES_MOST:
                    self.files[path] = self.node.inside.open_regular(path)

    def close(self) -> None:
        """Closes the files."""
        for descriptor in [*self.files.values(), *([] if self.map is None else [self.map])]:
            os.close(descriptor)

    def places(self, addresses: Iterable[int]) -> Dict[int, Place]:
        """Returns {address: what is there} of those that lie in code."""
        wanted = set(addresses)
        found = {address: self.native(address) for address in wanted}
        for address, (is_function, name) in names_of(self.read_map(), wanted).items():
            # The map is the node's text: it does not rename what lies in a file.
            if found[address] is None or found[address] == JIT:
                found[address] = Place("erlang" if is_function else "c", name)
        return {address: place for address, place in found.items() if place}

    def read_map(self) -> bytes:
        """Returns the map as it is now."""
        if self.map is None:
            return b""
        try:
            return read_regular(f"/proc/self/fd/{self.map}", MAP_MOST)
        except OSError as error:
            self.unreadable(error)
            return b""

    def unreadable(self, error: Exception) -> None:
        """Notes why the map can't be read."""
        self.why = f"its map {clean(self.path)} can't be read: {clean(getattr(error, 'strerror', None) or str(error))}"
        self.step = "look what is there, in the node's own file system"

    def native(self, address: int) -> Optional[Place]:
        """Returns what is at an address by the mappings of files; None if it is in no code."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.segments[at].end:
            return None
        _, _, offset, path = self.segments[at]
        if is_memory(path):
            return JIT
        if not path.startswith("/"):
            return Place("c", path)
        functions = self.functions_of(path)
        found = None if functions is None else functions.at(address - self.segments[at].start + offset)
        file = clean(os.path.basename(path.replace(" (deleted)", "")))
        name = clean(found.name) if found and found.name else STATIC if functions is not None else "function"
        return Place("tracer" if file == LIBRARY else "c", f"{name} [{file}]", found.part if found else None)

    def erlang(self) -> List[Segment]:
        """Returns the parts of the memory that have code of Erlang."""
        return [segment for segment in self.segments if is_memory(segment.path)]

    def functions_of(self, path: str) -> Optional[Functions]:
        """Returns the functions of a file; None if it can't be read."""
        if path not in self.functions:
            self.functions[path] = None
            with contextlib.suppress(OSError, ValueError):
                if path in self.files:
                    self.functions[path] = self.read_functions(self.files[path])
        return self.functions[path]

    def read_functions(self, descriptor: int) -> Functions:
        """Returns the functions of a file; raises OSError or ValueError if it can't be read."""
        known = sum(len(functions) for functions in self.functions.values() if functions is not None)
        return Functions(read_regular(f"/proc/self/fd/{descriptor}", LIBRARY_MOST), SYMBOLS_MOST - known)


def is_memory(path: str) -> bool:
    """Returns whether it is code that the VM has compiled: it maps that from memory, or from a file without a name."""
    return not path or path.startswith(("/memfd:", "//anon"))


JIT = Place("jit", "code of Erlang")
