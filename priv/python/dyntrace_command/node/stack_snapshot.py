"""The stacks of all processes of a VM and what its schedulers run, read from its memory by a child of this command.

The VM is neither asked nor stopped, so a stack may change while it is read. So its process is read before and after the
stack, which is consistent if the process was not running, and neither ran nor changed in between. A word of a
stack is a return address if its lowest two bits are 0 and it is in JIT-compiled code; the VM's own stack traces use the
same rule. Frame pointers, which a VM with `+JPperf true` has, may be between the addresses of its code, but point into
the same stack. The last word of each stack is the same address, `normal_exit`.

Reading ends after a number of processes, words and seconds. The answer has at most a number of groups and frames.
"""
import collections
import contextlib
import itertools
import re
import struct
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.node.called_servers import CalledServers, Named
from dyntrace_command.node.container import Container
from dyntrace_command.node.jit_code import JitCode, Location
from dyntrace_command.node.node import Node
from dyntrace_command.node.vm_memory import VmMemory
from dyntrace_command.node.vm_structures import (DIRTY, FREE, KINDS, PID_TAG, Scheduler, VmStructures, is_running,
                                                  status_of)

# Bounds: words of a stack; seconds; attempts to read a stack while it changes; groups and frames of a stack in the
# answer; names and pids of a group.
WORDS_MOST, SECONDS_MOST, ATTEMPTS, GROUPS_MOST, FRAMES_MOST, NAMES_MOST = 1 << 14, 20.0, 3, 1000, 400, 5
# Seconds for the child that reads a snapshot, and for one that reads only schedulers; bytes of an answer.
READ_S, SCHEDULERS_S, ANSWER_MOST = 60, 5, 64 << 20
# Words at the bottom of a stack with more than WORDS_MOST.
OUTER_WORDS = 1 << 10
# Distinct stacks that are kept. Processes with further ones are only counted.
STACKS_MOST = 200000
# Seconds for which a scheduler has to stay at the same place in C code to count as staying there: a process that runs
# Erlang code is rescheduled within a few milliseconds.
STAYS_S = 0.03

# The fragments from which a process calls a NIF.
NIF_FRAGMENTS = re.compile(r"call_nif\w*|dispatch_nif\w*")
# The code with which a process begins.
RUN = "erts_beamasm:run_process"
# The empty list.
NIL = 0x3b
UNKNOWN, GAP = Location("unknown", "[unknown code]"), Location("gap", "...")


class Stack(NamedTuple):
    """The stack of a process: where it continues, 0 if it runs; its return addresses, the innermost first; whether they
    reach the bottom."""
    resume: int
    returns: Tuple[int, ...]
    is_whole: bool


class Captured(NamedTuple):
    """A process: its pid and name as words of the VM (0 for no name), what it does, whether its stack is consistent,
    the length of its message queue, the function that it calls or begins, if that is not Erlang code at work, the words
    of which one names the server whose reply it awaits, and the address at which it has last saved its place."""
    pid: int
    name: int
    status: str
    is_consistent: bool
    queue: int
    function: str
    stack: Stack
    server: Named
    saved: int = 0


class Snapshot:
    """A snapshot of a VM. `wanted`: the name or pid of the only process to show."""

    def __init__(self, inside: Container, wanted: str = "") -> None:
        self.wanted = wanted
        self.memory = VmMemory(inside)
        self.code = JitCode(self.memory)
        self.structures = VmStructures(self.memory, self.code.normal_exit)
        self.layout = self.structures.layout
        self.low, self.high = self.code.bounds()
        self.words = struct.Struct(f"<{self.layout.bytes() // 8}Q")
        self.until = time.monotonic() + SECONDS_MOST
        self.running = self.inconsistent = self.unread = self.processes = 0
        # The shared code at which processes continue, empty for a function.
        self.resumed: Dict[int, str] = {0: ""}
        self.servers = CalledServers(self.memory, self.code, self.structures)
        self.locations: Dict[Tuple[str, str, int], int] = {}

    def take(self, has_groups: bool = True) -> Dict[str, Any]:
        """Returns the snapshot as a JSON value, without groups of processes if they are not wanted."""
        began = time.monotonic()
        before = [(one, self.place(one)) for one in self.structures.schedulers()]
        groups = self.groups() if has_groups else {}
        time.sleep(max(0.0, STAYS_S - (time.monotonic() - began)))
        schedulers = [self.scheduler_as_json(one, place, time.monotonic() - began) for one, place in before]
        # The stacks of processes that stay in one call are right.
        self.running -= min(self.running, sum(one["stays"] for one in schedulers))
        listed = sorted(groups.items(), key=lambda item: (-item[1]["count"], -item[1]["queue"]))
        answer = {"schedulers": [] if self.wanted else schedulers,
                  "groups": [self.group_as_json(key, group) for key, group in listed[:GROUPS_MOST]],
                  "more_groups": max(0, len(listed) - GROUPS_MOST), "processes": self.processes,
                  "running": self.running, "inconsistent": self.inconsistent, "unread": self.unread}
        answer["frames"] = list(self.locations)
        return answer

    # Processes

    def groups(self) -> Dict[Any, Dict[str, Any]]:
        """Returns the processes with equal stacks that do the same."""
        found: Dict[Any, Dict[str, Any]] = {}
        for address in self.structures.addresses():
            if time.monotonic() > self.until:
                self.unread += 1
                continue
            process = self.capture(address)
            if process and process.name:
                # The wanted process may call it.
                self.servers.register(process.pid, process.name)
            if process is None or not self.is_wanted(process):
                continue
            self.processes += 1
            self.running += process.status == "running"
            self.inconsistent += not process.is_consistent and process.status != "running"
            self.add(found, process)
        return found

    def add(self, found: Dict[Any, Dict[str, Any]], process: Captured) -> None:
        """Adds a process to its group."""
        key: Any = (process.status, process.is_consistent, process.function, process.stack)
        if key not in found and len(found) >= STACKS_MOST:
            key = None
        group = found.setdefault(key, {"count": 0, "queue": 0, "longest": 0, "names": [], "pids": [],
                                       "servers": collections.Counter()})
        group["count"] += 1
        group["queue"] += process.queue
        group["longest"] = max(group["longest"], process.queue)
        if process.name and len(group["names"]) < NAMES_MOST:
            group["names"].append(self.structures.atom(process.name))
        self.servers.add(group["servers"], process.server)
        if len(group["pids"]) < NAMES_MOST:
            group["pids"].append(self.structures.pid(process.pid))

    def is_wanted(self, process: Captured) -> bool:
        """Returns whether the process is to be shown."""
        return not self.wanted or self.wanted == self.structures.pid(process.pid) \
            or bool(process.name) and self.wanted in (self.structures.atom(process.name),
                                                      self.structures.atom(process.name).strip("'"))

    def capture(self, address: int) -> Optional[Captured]:
        """Returns the process at an address; None if there is none any more."""
        for attempt in range(ATTEMPTS):
            try:
                words = self.words.unpack(self.memory.read(address, self.words.size))
                state = words[self.layout.state // 8] & 0xffffffff
                if words[0] & 15 != PID_TAG or state & FREE:
                    return None
                stack = self.stack(words, is_running(state))
                server = self.servers.named(*self.bounds(words), stack.resume)
                again = self.words.unpack(self.memory.read(address, self.words.size))
            except ValueError:
                if attempt < ATTEMPTS - 1:
                    continue
                return self.without_stack(address)
            is_same = self.identity(words) == self.identity(again)
            if is_same or is_running(state) or attempt == ATTEMPTS - 1:
                return self.captured(address, words, stack, is_same and stack.is_whole)._replace(
                    server=server if is_same else ())
        return None

    def without_stack(self, address: int) -> Optional[Captured]:
        """Returns a process whose stack changes whenever it is read; None if there is no process."""
        try:
            words = self.words.unpack(self.memory.read(address, self.words.size))
        except ValueError:
            words = (0,) * (self.words.size // 8)
        if words[0] & 15 != PID_TAG:
            self.unread += 1
            return None
        return self.captured(address, words, Stack(0, (), False), False)

    def captured(self, address: int, words: Tuple[int, ...], stack: Stack, is_same: bool) -> Captured:
        """Returns a process by its words."""
        state = words[self.layout.state // 8] & 0xffffffff
        name = 0
        with contextlib.suppress(ValueError):
            name = self.structures.name_in(address, words[self.layout.registered // 8])
        lengths = [words[at // 8] for at in self.layout.lengths]
        queue = sum(lengths) if all(length < 1 << 40 for length in lengths) else 0
        return Captured(words[0], name, status_of(state), is_same and not is_running(state), queue,
                        self.other_function(words, state, stack), stack, (), words[self.layout.resume // 8])

    def other_function(self, words: Tuple[int, ...], state: int, stack: Stack) -> str:
        """Returns the function that a process calls on a dirty scheduler, or the one with which it will begin, as a new
        or a hibernating process does."""
        if state & DIRTY:
            return self.structures.function_at(words[self.layout.current // 8])
        if stack.resume not in self.resumed:
            where = self.code.locate(stack.resume) if stack.resume else None
            self.resumed[stack.resume] = where.name if where and (where.kind == "fragment" or begins(where)) else ""
        name = self.resumed[stack.resume]
        if name.startswith(RUN):
            with contextlib.suppress(ValueError):
                module, function, arguments = self.memory.words(words[self.layout.arguments // 8], 3)
                return self.structures.function(module, function, self.length(arguments))
        return self.structures.function_at(words[self.layout.current // 8]) if name else ""

    def length(self, term: int) -> int:
        """Returns the length of a list of arguments; raises ValueError if it is not a list."""
        for length in range(256):
            if term == NIL:
                return length
            if term & 3 != 1:
                break
            term = self.memory.words(term - 1, 2)[1]
        raise ValueError("not a list of arguments")

    def identity(self, words: Tuple[int, ...]) -> Tuple[int, ...]:
        """Returns what differs if a process has run in between."""
        layout = self.layout
        return (words[0], words[layout.htop // 8], words[layout.stop // 8], words[layout.heap // 8],
                words[layout.resume // 8], words[layout.reductions // 8])

    def bounds(self, words: Tuple[int, ...]) -> Tuple[int, int]:
        """Returns the top and the bottom of a process's stack."""
        return words[self.layout.stop // 8], words[self.layout.heap // 8 + 1]

    def stack(self, words: Tuple[int, ...], runs: bool) -> Stack:
        """Reads the stack of a process; raises ValueError if it is invalid."""
        heap, (stop, hend) = words[self.layout.heap // 8], self.bounds(words)
        if not heap <= stop < hend or (hend - stop) % 8 or hend - heap != 8 * words[self.layout.size // 8]:
            raise ValueError("a stack is not in its heap")
        size = (hend - stop) // 8
        found = self.memory.words(stop, min(size, WORDS_MOST))
        if size > WORDS_MOST:
            found += (self.low, *self.memory.words(hend - 8 * OUTER_WORDS, OUTER_WORDS))
        low, high = self.low, self.high
        # A list is faster than a generator.  pylint: disable-next=consider-using-generator
        returns = tuple([word for word in found if low <= word < high and not word & 3 and not stop <= word <= hend])
        is_whole = found[-1] == self.code.normal_exit
        resume = 0 if runs else words[self.layout.resume // 8]
        return Stack(resume if low <= resume < high else 0, returns[:-1] if is_whole else returns, is_whole)

    def group_as_json(self, key: Any, group: Dict[str, Any]) -> Dict[str, Any]:
        """Returns a group with its frames."""
        group = {**group, "servers": self.servers.most_called(group["servers"], NAMES_MOST)}
        if key is None:
            return {**group, "status": "?", "consistent": False, "frames": []}
        status, is_consistent, function, stack = key
        return {**group, "status": status, "consistent": is_consistent, "frames": self.frames(stack, function)}

    def frames(self, stack: Stack, function: str) -> List[List[int]]:
        """Returns the frames of a stack, the innermost first: the number of each, and how often it is repeated."""
        found = []
        if function:
            found.append(Location("erlang", function))
        if stack.resume:
            where = self.code.locate(stack.resume)
            if where is None or where.kind == "erlang" and not begins(where):
                found.append(where or UNKNOWN)
        found += [GAP if address == self.low else self.code.locate(address - 1) or UNKNOWN for address in stack.returns]
        runs = [(where, len(list(same))) for where, same in itertools.groupby(found) if where.kind != "fragment"]
        if len(runs) > FRAMES_MOST:
            runs[FRAMES_MOST // 2:-(FRAMES_MOST // 2)] = [(GAP, 1)]
        return [[self.number(where), times] for where, times in runs]

    def number(self, location: Location) -> int:
        """Returns the number of a frame in the answer."""
        return self.locations.setdefault((location.name, location.file, location.line), len(self.locations))

    # Schedulers

    def place(self, scheduler: Scheduler) -> Tuple[int, ...]:
        """Returns what does not change while a scheduler stays in one call of C code: the process, its counters and its
        stack, and the return address of the call."""
        if not scheduler.process:
            return ()
        try:
            words = self.words.unpack(self.memory.read(scheduler.process, self.words.size))
            registers, = self.memory.words(scheduler.address, 1)
            called_from = self.memory.words(registers - 8, 1)[0] if scheduler.kind == 0 else 0
            return (*self.identity(words), called_from)
        except ValueError:
            return ()

    def scheduler_as_json(self, before: Scheduler, place: Tuple[int, ...], seconds: float) -> Dict[str, Any]:
        """Returns what a scheduler runs, and whether it has stayed there for these seconds."""
        found: Dict[str, Any] = {"kind": KINDS[before.kind], "number": before.number, "queue": before.queue,
                                 "process": None, "stays": False, "frames": [], **self.thread(before.tid)}
        try:
            now = self.structures.scheduler(before.address)
        except ValueError:
            return found
        found["queue"] = now.queue
        process = self.capture(now.process) if now.process else None
        if process is None:
            return found
        stays = bool(place) and now.process == before.process and self.place(now) == place
        call = self.native_call(now, place) if stays else ""
        return {**found, "process": self.structures.pid(process.pid), "stays": stays,
                "name": self.structures.atom(process.name) if process.name else None, "queue_of_process": process.queue,
                "seconds": round(seconds, 3), "frames": self.frames(process.stack._replace(resume=0), call)}

    def native_call(self, scheduler: Scheduler, place: Tuple[int, ...]) -> str:
        """Returns the NIF that a scheduler runs; an empty text if it runs none."""
        if scheduler.kind == 0:
            where = self.code.locate(place[-1] - 1)
            if where is None or where.kind != "fragment" or not NIF_FRAGMENTS.fullmatch(where.name):
                return ""
        with contextlib.suppress(ValueError):
            return self.structures.function_at(*self.memory.words(scheduler.process + self.layout.current, 1))
        return ""

    def thread(self, tid: int) -> Dict[str, Any]:
        """Returns what the kernel reports about a thread: its state, and the kernel function in which it waits."""
        state, waits_in = "?", ""
        with contextlib.suppress(OSError, IndexError):
            state = self.memory.inside.text(f"task/{tid}/stat").rsplit(")", 1)[1].split()[0]
            waits_in = self.memory.inside.text(f"task/{tid}/wchan").strip() if state != "R" else ""
        return {"thread": tid, "state": clean(state), "waits_in": clean(waits_in) if waits_in != "0" else ""}


def begins(where: Optional[Location]) -> bool:
    """Returns whether a process that continues there begins with the function in its argument registers."""
    return where is not None and where.name.startswith(RUN)


def read_snapshot(node: Node, wanted: str = "") -> Any:
    """Returns what a child says is a snapshot of a node; raises OSError or ValueError if the memory can't be read."""
    return node.isolated(lambda: snapshot_of(node.inside, wanted), READ_S, most=ANSWER_MOST)


def read_schedulers(node: Node) -> Any:
    """Returns what a child says that the schedulers of a node run, as a snapshot without groups; raises OSError or
    ValueError if the memory can't be read."""
    return node.isolated(lambda: Snapshot(node.inside).take(has_groups=False), SCHEDULERS_S)


def snapshot_of(inside: Container, wanted: str = "") -> Dict[str, Any]:
    """Returns a snapshot as a JSON value; raises OSError or ValueError if the memory can't be read."""
    return Snapshot(inside, wanted).take()
