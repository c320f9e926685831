"""Finds the function at an address of a node: an Erlang function by the VM's own list of its code, a C function by its
file; and the names of processes and BIFs by their addresses.

Everything is read by children with the identity of the node's user. Files are opened when first seen, so that their
names can still be found after the node has ended. The VM's memory can be read only before, and code may be purged and
its memory used again; so `learn` is called during a profile, and the first answer for an address counts.
"""
import bisect
import contextlib
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.failures import reason
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.file_system import LIBRARY_MOST
from dyntrace_command.host.files import read_regular
from dyntrace_command.host.process import in_initial_namespace
from dyntrace_command.host.sandbox import (NO_ANSWER, Answer, Rights, close_all, identity_for, in_child,
                                           isolated)
from dyntrace_command.host.symbols import Functions
from dyntrace_command.node.container import Mapping
from dyntrace_command.node.description import LIBRARY
from dyntrace_command.node.jit_code import JitCode
from dyntrace_command.node.node import ARM64, Node
from dyntrace_command.node.vm_memory import ADDRESS_MOST, VmMemory, is_jit_memory
from dyntrace_command.node.vm_structures import SCHEDULERS_MOST, VmStructures

# A VM with its drivers and libraries has about 20.
FILES_MOST = 200
# Symbols in all files. libcrypto has 10,000, a VM with its static functions 20,000.
SYMBOLS_MOST = 1 << 18

# Seconds to find names, and bytes of the answer; a number that can be an offset in a structure.
NAMES_S, ANSWER_MOST, OFFSET_MOST = 60, 64 << 20, 1 << 16

STATIC = "static function"


class Place(NamedTuple):
    """The code at an address. `kind` is erlang; fragment: code of Erlang that functions share; jit: code of Erlang
    without a name; c; or tracer: dyntrace's own library. `part` is the part of the VM, if known; for a static function
    it is the better name."""
    kind: str
    name: str
    part: Optional[str] = None
    file: str = ""
    line: int = 0

    def frames(self) -> List[str]:
        """Returns its stack frames, the innermost first."""
        part = [f"[{self.part}]"] if self.part else []
        return part if part and self.name.startswith(STATIC) else [self.name, *part]


class VmLayout(NamedTuple):
    """What a sampling program needs to know of a VM: the thread and the address of each scheduler, the bounds of its
    Erlang code, the bottom of every stack, the offsets of the heap and of the called function in a process, and whether
    frames have pointers. `places`: where its structures are; `counts`: how many schedulers of each kind it has."""
    schedulers: List[Tuple[int, int]]
    first: int
    last: int
    normal_exit: int
    heap: int
    current: int
    has_pointers: int
    places: List[Any]
    counts: List[int]


class Names(NamedTuple):
    """Names by words of the VM: processes by their pids, with their pids as text and the functions that they began
    with; BIFs by their export entries; functions by the address of their names."""
    processes: Dict[int, Tuple[str, str, str]]
    bifs: Dict[int, str]
    functions: Dict[int, str]


class Code:
    """The code of a node."""

    def __init__(self, node: Node) -> None:
        self.node, self.inside, self.identity = node, node.inside, identity_for(node.process)
        self.segments: List[Mapping] = []
        self.starts: List[int] = []
        # File descriptors by path; functions by path.
        self.files: Dict[str, int] = {}
        self.functions: Dict[str, Optional[Functions]] = {}
        self.places: Dict[int, Optional[Place]] = {}
        self.names = Names({}, {}, {})
        # Why Erlang functions have no names; empty if they have names.
        self.why = ""
        self.layout = self.read_layout()
        self.refresh()

    def read_layout(self) -> Optional[VmLayout]:
        """Finds the VM's structures; None if they can't be read."""
        try:
            is_numbered = self.node.target[0] == ARM64
            if is_numbered and not in_initial_namespace():
                raise ValueError("on arm64, this command must run in the host's PID namespace")
            said = VmLayout(*isolated(self.node.process, lambda: layout_of(self.inside, is_numbered)).value)
            found = said._replace(
                schedulers=[(below(ADDRESS_MOST, thread), below(ADDRESS_MOST, scheduler))
                            for thread, scheduler in said.schedulers[:SCHEDULERS_MOST]],
                first=below(ADDRESS_MOST, said.first), last=below(ADDRESS_MOST, said.last),
                normal_exit=below(ADDRESS_MOST, said.normal_exit), heap=below(OFFSET_MOST, said.heap),
                current=below(OFFSET_MOST, said.current), has_pointers=below(2, said.has_pointers),
                counts=[below(SCHEDULERS_MOST + 1, count) for count in said.counts])
            if not found.schedulers or found.first >= found.last:
                raise ValueError("its schedulers were not found")
            return found
        except (OSError, ValueError, TypeError) as error:
            self.why = clean(reason(error))
            return None

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

    def close(self) -> None:
        """Closes the files."""
        close_all(list(self.files.values()))

    # Names

    def learn(self, addresses: Iterable[int], pids: Iterable[int] = (), exports: Iterable[int] = (),
              functions: Iterable[int] = ()) -> None:
        """Finds what is at these addresses, unless that is known, and the names of these processes, BIFs and
        functions."""
        known: Sequence[Iterable[int]] = (self.places, *self.names)
        new = [sorted(set(wanted) - set(of)) for wanted, of in zip((addresses, pids, exports, functions), known)]
        if self.layout and any(new):
            with contextlib.suppress(OSError, ValueError, TypeError, OverflowError):
                found, processes, bifs, named = isolated(self.node.process, lambda: self.names_here(*new), NAMES_S,
                                                         ANSWER_MOST).value
                self.places.update((int(at), place_of(*place)) for at, place in found)
                self.names.processes.update((int(word), (clean(str(pid)), clean(str(name)), clean(str(first))))
                                            for word, pid, name, first in processes)
                self.names.bifs.update((int(at), clean(str(name))) for at, name in bifs)
                self.names.functions.update((int(at), clean(str(name))) for at, name in named)

    def names_here(self, addresses: List[int], pids: List[int], exports: List[int], functions: List[int]) -> List[Any]:
        """Does the work of `learn` in a child."""
        assert self.layout
        memory = VmMemory(self.inside)
        code = JitCode(memory)
        located = ((at, code.locate(at)) for at in addresses)
        found = [(at, (where.kind, where.name, None, where.file, where.line)) for at, where in located if where]
        structures = VmStructures(memory, code.normal_exit, self.layout.places)
        processes = []
        for word in pids:
            name, first = "", ""
            with contextlib.suppress(ValueError):
                process = structures.process_of(word)
                name, first = structures.name_of(process), structures.function_at(process + structures.layout.initial)
            processes.append((word, structures.pid(word), name, first))
        return [found, processes, [(at, structures.exported(at)) for at in exports],
                [(at, structures.function_at(at)) for at in functions]]

    def finish(self, addresses: Iterable[int]) -> None:
        """Finds the C functions at the remaining addresses. It works after the node has ended, because its files are
        open."""
        wanted = set(addresses) - self.places.keys()
        with contextlib.suppress(OSError, ValueError, TypeError, OverflowError):
            found = in_child(self.identity, lambda: [(at, self.native(at)) for at in wanted], NAMES_S, ANSWER_MOST,
                             Rights(keep=list(self.files.values()))).value
            self.places.update((int(at), place_of(*place) if place else None) for at, place in found)

    def native(self, address: int) -> Optional[Place]:
        """Returns the code at an address by the mapped files; None if the address is not in code."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.segments[at].end:
            return None
        offset, path = self.segments[at].offset, self.segments[at].path
        if is_jit_memory(self.segments[at]):
            return JIT
        if not path.startswith("/"):
            return Place("c", path)
        functions = self.functions_of(path)
        found = None if functions is None else functions.at(address - self.segments[at].start + offset)
        file = clean(os.path.basename(path.replace(" (deleted)", "")))
        name = clean(found.name) if found and found.name else STATIC if functions is not None else "function"
        return Place("tracer" if file == LIBRARY else "c", f"{name} [{file}]", found.part if found else None)

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


def layout_of(inside: Any, is_numbered: bool) -> List[Any]:
    """Returns the fields of `VmLayout`, in a child. A scheduler's thread is its number or its thread pointer, which
    only on x86-64 is the address of the C library's structure."""
    memory = VmMemory(inside)
    code = JitCode(memory)
    structures = VmStructures(memory, code.normal_exit)
    schedulers = structures.schedulers()
    counts = [sum(one.kind == kind for one in schedulers) for kind in range(3)]
    return [[(one.tid if is_numbered else one.thread, one.address) for one in schedulers], *code.bounds(),
            code.normal_exit, structures.layout.heap, structures.layout.current, int(code.has_frame_pointers),
            structures.places(), counts]


def below(most: int, number: Any) -> int:
    """Returns a number that a child sent, if it is in this range."""
    if not isinstance(number, int) or not 0 <= number < most:
        raise ValueError(NO_ANSWER)
    return number


def place_of(kind: Any, name: Any, part: Any, file: Any, line: Any) -> Place:
    """Returns the place that a child sent. The child may have sent anything."""
    return Place(str(kind), clean(str(name)), None if part is None else clean(str(part)), clean(str(file)),
                 max(0, int(line)))


JIT = Place("jit", "code of Erlang")
