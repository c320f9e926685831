"""What runs at an address of a node: a function of Erlang, by the map that the node writes; one of C, by its file.

The files are the node's own and are opened when they are seen first, so that the names are there when the node has
ended meanwhile.
"""
import bisect
import contextlib
import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.container import Mapping
from dyntrace_command.description import LIBRARY
from dyntrace_command.failures import reason
from dyntrace_command.file_system import LIBRARY_MOST
from dyntrace_command.files import read_regular
from dyntrace_command.node import Node
from dyntrace_command.perf_map import MAP_MOST, names_of
from dyntrace_command.sandbox import Answer, Rights, close_all, identity_for, in_child, isolated
from dyntrace_command.symbols import Functions
from dyntrace_command.terminal import clean

# A VM with its drivers and libraries has some twenty.
FILES_MOST = 200
# Symbols of all of them. libcrypto has 10,000, a VM with its static functions 20,000.
SYMBOLS_MOST = 1 << 18

# Seconds to find the names of all addresses, and bytes of the answer.
NAMES_S, ANSWER_MOST = 60, 64 << 20

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
    """The code of a node. Its files are opened and read by children with the identity of the node's user."""

    def __init__(self, node: Node) -> None:
        self.node, self.inside, self.identity = node, node.inside, identity_for(node.process)
        self.segments: List[Mapping] = []
        self.starts: List[int] = []
        # Descriptors by the path; that of the map, with its path.
        self.files: Dict[str, int] = {}
        self.functions: Dict[str, Optional[Functions]] = {}
        self.map: Optional[int] = None
        self.path = ""
        # Why there are no names of Erlang's functions, empty if there are, and what to do.
        self.why, self.step = "", ""
        flag = node.arguments.get("JPperf")
        if flag is None or flag in WITHOUT_MAP:
            self.why = "it was not started with `+JPperf map`"
            self.step = "add the line `+JPperf map` to vm.args (rel/vm.args.eex of Elixir), and restart the node"
        else:
            self.open_map()
        self.refresh()

    def open_map(self) -> None:
        """Opens the map. An earlier process of the same number may have left one, so the node must say that it writes
        it."""
        folder = self.node.arguments.get("JPperfdirectory", "/tmp")
        self.path = f"{folder}/perf-{self.node.process.inner_pid()}.map"
        try:
            self.map, = isolated(self.node.process, lambda: Answer(
                None, [self.inside.open_regular(self.path, MAP_MOST)])).descriptors
        except (OSError, ValueError) as error:
            self.unreadable(reason(error))

    def refresh(self) -> None:
        """Finds out which files have code now, and opens them: call it again at the end, when more may be loaded."""
        with contextlib.suppress(OSError, ValueError):
            answer = isolated(self.node.process, self.open_files)
            segments, paths = answer.value
            self.segments = [Mapping(*segment) for segment in segments]
            self.starts = [segment.start for segment in self.segments]
            self.files.update(zip(paths, answer.descriptors))

    def open_files(self) -> Answer:
        """Returns, in a child, the mappings that have code, and the paths and descriptors of the files that are new."""
        segments = [part for part in self.inside.mappings() if "x" in part.permissions]
        opened: Dict[str, int] = {}
        for path in {part.path for part in segments if part.path.startswith("/")} - set(self.files):
            with contextlib.suppress(OSError, ValueError):
                if len(self.files) + len(opened) < FILES_MOST:
                    opened[path] = self.inside.open_regular(path)
        return Answer([segments, list(opened)], list(opened.values()))

    def descriptors(self) -> List[int]:
        """Returns those of all files."""
        return [*self.files.values(), *([] if self.map is None else [self.map])]

    def close(self) -> None:
        """Closes the files."""
        close_all(self.descriptors())

    def places(self, addresses: Iterable[int]) -> Dict[int, Place]:
        """Returns {address: what is there} of those that lie in code. The node may have ended: its files are open."""
        wanted = set(addresses)
        try:
            found, why = in_child(self.identity, lambda: self.places_here(wanted), NAMES_S, ANSWER_MOST,
                                  Rights(keep=self.descriptors())).value
        except (OSError, ValueError) as error:
            found, why = [], reason(error)
        if why:
            self.unreadable(why)
        return {int(address): Place(*place) for address, place in found}

    def places_here(self, wanted: Set[int]) -> Tuple[List[Tuple[int, Place]], str]:
        """Returns the same in a child, as a list, and why the map can't be read."""
        contents, why = b"", ""
        try:
            contents = b"" if self.map is None else read_regular(f"/proc/self/fd/{self.map}", MAP_MOST)
        except OSError as error:
            why = reason(error)
        found = {address: self.native(address) for address in wanted}
        for address, (is_function, name) in names_of(contents, wanted).items():
            # The map is the node's text: it does not rename what lies in a file.
            if found[address] is None or found[address] == JIT:
                found[address] = Place("erlang" if is_function else "c", name)
        return [(address, place) for address, place in found.items() if place], why

    def unreadable(self, why: str) -> None:
        """Notes why the map can't be read."""
        self.why = f"its map {clean(self.path)} can't be read: {clean(why)}"
        self.step = "look what is there, in the node's own file system"

    def native(self, address: int) -> Optional[Place]:
        """Returns what is at an address by the mappings of files; None if it is in no code."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.segments[at].end:
            return None
        offset, path = self.segments[at].offset, self.segments[at].path
        if is_memory(path):
            return JIT
        if not path.startswith("/"):
            return Place("c", path)
        functions = self.functions_of(path)
        found = None if functions is None else functions.at(address - self.segments[at].start + offset)
        file = clean(os.path.basename(path.replace(" (deleted)", "")))
        name = clean(found.name) if found and found.name else STATIC if functions is not None else "function"
        return Place("tracer" if file == LIBRARY else "c", f"{name} [{file}]", found.part if found else None)

    def erlang(self) -> List[Mapping]:
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
