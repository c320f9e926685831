"""Finds the function at an address of a node: an Erlang function by the perf map that the node writes, a C function by
its file.

The files belong to the node. They are opened when first seen, so that names can still be found after the node has
ended.
"""
import bisect
import contextlib
import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.failures import reason
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.file_system import LIBRARY_MOST
from dyntrace_command.host.files import read_regular
from dyntrace_command.host.perf_map import MAP_MOST, names_of
from dyntrace_command.host.sandbox import Answer, Rights, close_all, identity_for, in_child, isolated
from dyntrace_command.host.symbols import Functions
from dyntrace_command.node.container import Mapping
from dyntrace_command.node.description import LIBRARY
from dyntrace_command.node.node import Node

# A VM with its drivers and libraries has about 20.
FILES_MOST = 200
# Symbols in all files. libcrypto has 10,000, a VM with its static functions 20,000.
SYMBOLS_MOST = 1 << 18

# Seconds to find the names of all addresses, and bytes of the answer.
NAMES_S, ANSWER_MOST = 60, 64 << 20

STATIC = "static function"

# Values of +JPperf with which a node writes no map.
WITHOUT_MAP = ("false", "dump", "fp", "no_fp")


class Place(NamedTuple):
    """The code at an address. `kind` is erlang; jit: Erlang code without a name; c; or tracer: dyntrace's own library.
    `part` is the part of the VM, if known; for a static function it is the better name."""
    kind: str
    name: str
    part: Optional[str] = None

    def frames(self) -> List[str]:
        """Returns its stack frames, the innermost first."""
        part = [f"[{self.part}]"] if self.part else []
        return part if part and self.name.startswith(STATIC) else [self.name, *part]


class Code:
    """The code of a node. Its files are opened and read by children with the identity of the node's user."""

    def __init__(self, node: Node) -> None:
        self.node, self.inside, self.identity = node, node.inside, identity_for(node.process)
        self.segments: List[Mapping] = []
        self.starts: List[int] = []
        # File descriptors by path; functions by path; the descriptor and the path of the perf map.
        self.files: Dict[str, int] = {}
        self.functions: Dict[str, Optional[Functions]] = {}
        self.map: Optional[int] = None
        self.path = ""
        # Why Erlang functions have no names (empty if they have), and what to do about it.
        self.why, self.step = "", ""
        flag = node.arguments.get("JPperf")
        if flag is None or flag in WITHOUT_MAP:
            self.why = "it was not started with `+JPperf map`"
            self.step = "add the line `+JPperf map` to vm.args (rel/vm.args.eex of Elixir), and restart the node"
        else:
            self.open_map()
        self.refresh()

    def open_map(self) -> None:
        """Opens the perf map. Requires that the node says that it writes one, because an earlier process with the same
        PID may have left a map."""
        folder = self.node.arguments.get("JPperfdirectory", "/tmp")
        self.path = f"{folder}/perf-{self.node.process.inner_pid()}.map"
        try:
            self.map, = isolated(self.node.process, lambda: Answer(
                None, [self.inside.open_regular(self.path, MAP_MOST)])).descriptors
        except (OSError, ValueError) as error:
            self.unreadable(reason(error))

    def refresh(self) -> None:
        """Finds the files with code that are mapped now, and opens them. Call it again at the end, when more may be
        loaded."""
        with contextlib.suppress(OSError, ValueError):
            answer = isolated(self.node.process, self.open_files)
            segments, paths = answer.value
            self.segments = [Mapping(*segment) for segment in segments]
            self.starts = [segment.start for segment in self.segments]
            self.files.update(zip(paths, answer.descriptors))

    def open_files(self) -> Answer:
        """Returns, in a child, the mappings that have code, and the paths and descriptors of the new files."""
        segments = [part for part in self.inside.mappings() if "x" in part.permissions]
        opened: Dict[str, int] = {}
        for path in {part.path for part in segments if part.path.startswith("/")} - set(self.files):
            with contextlib.suppress(OSError, ValueError):
                if len(self.files) + len(opened) < FILES_MOST:
                    opened[path] = self.inside.open_regular(path)
        return Answer([segments, list(opened)], list(opened.values()))

    def descriptors(self) -> List[int]:
        """Returns the descriptors of all files."""
        return [*self.files.values(), *([] if self.map is None else [self.map])]

    def close(self) -> None:
        """Closes the files."""
        close_all(self.descriptors())

    def places(self, addresses: Iterable[int]) -> Dict[int, Place]:
        """Returns {address: Place} for the addresses that lie in code. It works after the node has ended, because its
        files are open."""
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
        """Does the work of `places` in a child. Returns the places as a list, and the reason if the map can't be
        read."""
        contents, why = b"", ""
        try:
            contents = b"" if self.map is None else read_regular(f"/proc/self/fd/{self.map}", MAP_MOST)
        except OSError as error:
            why = reason(error)
        found = {address: self.native(address) for address in wanted}
        for address, (is_function, name) in names_of(contents, wanted).items():
            # The node writes the map, so it is not trusted to rename code that lies in a file.
            if found[address] is None or found[address] == JIT:
                found[address] = Place("erlang" if is_function else "c", name)
        return [(address, place) for address, place in found.items() if place], why

    def unreadable(self, why: str) -> None:
        """Records why the map can't be read."""
        self.why = f"its map {clean(self.path)} can't be read: {clean(why)}"
        self.step = "check this path in the node's own file system"

    def native(self, address: int) -> Optional[Place]:
        """Returns the code at an address by the mapped files; None if the address is not in code."""
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
        """Returns the mappings that contain Erlang code."""
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
    """Returns whether this is JIT-compiled code: the VM maps it from memory, or from a file without a name."""
    return not path or path.startswith(("/memfd:", "//anon"))


JIT = Place("jit", "code of Erlang")
