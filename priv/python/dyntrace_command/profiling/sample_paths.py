"""Samples of a node's threads, and the paths that they represent: process, Erlang functions, C functions, kernel
functions; and what the scheduler did.

C code has no complete stack in a VM that is compiled without frame pointers, such as Debian's. So C functions are only
those at the top of the stack, and Erlang's stack is read from the memory of the process.
"""
import collections
import itertools
import re
from typing import Callable, Counter, Dict, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.node.code import Code, Place
from dyntrace_command.node.container import DIRTY_IO
from dyntrace_command.tracers.bpftrace import Names

# Distinct samples that are kept. A node that runs for an hour has fewer, unless those of each second count separately.
KEPT_MOST = 200000
# Stacks that are kept, and frames of all of them, each of about 100 bytes.
STACKS_MOST, FRAMES_MOST = 50000, 2000000

# The keys of bpftrace's map. Names of threads and functions may contain anything, including lines of a stack. The
# pattern matches a line in only one way, so a key that does not match is rejected quickly.
STACK = r"(?:\n(?:[ \t]*[0-9a-f][^\n]*\n)*)?"
ADDRESS = re.compile(r"^[ \t]*([0-9a-f]{1,16})", re.M)
NUMBER = r"(-?\d{1,20})"
KEY = re.compile(rf"(.*?),{','.join([NUMBER] * 7)},({STACK}),({STACK})", re.S)

UNKNOWN, TRACING, OTHERS = "[unknown code]", "[dyntrace's own probes]", "[more than can be kept]"
NO_STACK, LEFT_OUT = "[no stack]", "..."
# The mark of the innermost frame of a stack that may be that of an earlier call.
SAVED = " (last saved)"

# Threads of the VM, by their names before and since OTP 26, truncated by the kernel to 15 characters; and what they do
# when they run no process.
THREADS = (
    (r"\d+_scheduler|erts_sched_\d+", "[schedulers: ports, scheduling, spinning]"),
    (r"\d+_dirty_cpu_s\w*|erts_dcpus_\d+", "[dirty CPU schedulers]"),
    (DIRTY_IO.pattern, "[dirty I/O schedulers]"),
    (r"\d+_aux|erts_aux_\d+", "[auxiliary thread: memory, timers, waking]"),
    (r"\d+_poller|erts_poll_\d+", "[polling for I/O]"),
    (r"async_\d+|erts_async_\d+", "[asynchronous jobs of drivers]"),
    (r"sys_\w+|erts_\w+|beam\.smp", "[other threads of the VM]"),
)
SCHEDULER, DIRTY = re.compile(THREADS[0][0]), re.compile(f"{THREADS[1][0]}|{THREADS[2][0]}")

# How the top of a stack was found (samples_x86_64.bt).
IN_ERLANG, IN_C, LAST_SAVED = 1, 2, 3
# What a scheduler does without a process: it runs a port, or it waits for work.
RUNS_PORT, WAITS = 256, 8

ERLANG, COLLECTION, BIF, NIF, PORT, BUSY, OTHER = ("Erlang code", "garbage collection", "BIFs", "NIFs", "ports",
                                                   "busy wait", "other work")
ACTIVITIES = (ERLANG, COLLECTION, BIF, NIF, PORT, OTHER, BUSY)
# Code that functions share, by which a process has called C code.
FRAGMENTS = (
    (re.compile(r"garbage_collect"), COLLECTION),
    (re.compile(r"call_(light_)?bif\w*|dispatch_bif|bif_\w+"), BIF),
    (re.compile(r"call_nif\w*|dispatch_nif"), NIF),
    (re.compile(r"process_main|i_test_yield\w*|dispatch_return|\w*wait\w*"), OTHER),
)


class Sample(NamedTuple):
    """A sample of a thread: its name; its process as a word of the VM, 0 for none; the number of the process's stack,
    and how its top was found; the address in Erlang code to which C code returns, the export entry of the last BIF, and
    the name of the last function that is not Erlang code; what the scheduler does without a process; the addresses
    of the thread's stack and the functions of the kernel stack, each the innermost first; and the second in which
    it was taken, if requested."""
    thread: str
    process: int
    where: int
    how: int
    returns_to: int
    export: int
    called: int
    doing: int
    stack: Tuple[int, ...]
    kernel: Tuple[str, ...]
    second: int = 0


class Samples:
    """The samples received so far."""

    def __init__(self, has_seconds: bool = False) -> None:
        self.has_seconds, self.second = has_seconds, 0
        self.of: Counter[Sample] = collections.Counter()
        # {number: {frame: address}}
        self.frames: Dict[int, Dict[int, int]] = {}
        self.frame_count = 0
        # Number of samples that the kernel has taken, by second.
        self.all: Counter[int] = collections.Counter()

    def take(self, fields: List[str], maps: Dict[str, Dict[str, int]]) -> None:
        """Processes a line of bpftrace, or its maps."""
        if fields[:1] == ["frame"] and len(fields) == 4:
            number, frame, address = map(word, fields[1:])
            stack = self.frames.get(number, {})
            if frame in stack or self.frame_count >= FRAMES_MOST or not stack and len(self.frames) >= STACKS_MOST:
                return
            self.frames.setdefault(number, stack)[frame] = address
            self.frame_count += 1
        for name, counts in maps.items():
            if name.startswith("all"):
                self.all[self.second] += counts.get("samples", 0)
            elif name.startswith("stacks"):
                self.count(counts)
        if fields == ["second"] and self.has_seconds:
            self.second += 1

    def count(self, counts: Dict[str, int]) -> None:
        """Counts the samples of a map."""
        for key, count in counts.items():
            sample = sample_of(key, self.second)
            if sample and (sample in self.of or len(self.of) < KEPT_MOST):
                self.of[sample] += count

    def busy(self) -> Set[int]:
        """Returns the processes that have at least two percent of the samples."""
        counts: Counter[int] = collections.Counter()
        for sample, count in self.of.items():
            counts[sample.process] += count
        return {process for process, count in counts.items() if process and count * 50 >= sum(self.all.values())}

    def stack(self, number: int) -> Tuple[int, ...]:
        """Returns the return addresses of a stack, the innermost first, as far as they have arrived."""
        frames = self.frames.get(number, {})
        return tuple(frames[frame] for frame in itertools.takewhile(frames.__contains__, itertools.count()))

    def learn(self, code: Code) -> None:
        """Finds the Erlang functions and the processes of the samples while the node lives."""
        code.learn(self.addresses(), {one.process for one in self.of if one.process},
                   {one.export for one in self.of if one.export}, {one.called for one in self.of if one.called})

    def addresses(self) -> Set[int]:
        """Returns all addresses at which code is to be found."""
        found = {address - 1 for frames in self.frames.values() for address in frames.values() if address}
        for one in self.of:
            found.update(one.stack)
            found.add(one.returns_to - 1)
        return found

    def missing(self) -> "Counter[int]":
        """Returns, by second, how many of the samples that the kernel has taken are missing here."""
        here: Counter[int] = collections.Counter()
        for sample, count in self.of.items():
            here[sample.second] += count
        return self.all - here


def sample_of(key: str, second: int = 0) -> Optional[Sample]:
    """Parses a key of the map; returns None if it is invalid."""
    # Since version 0.20, bpftrace escapes keys twice.
    found = KEY.fullmatch(key.replace("\\n", "\n").replace("\\t", "\t"))
    if not found:
        return None
    thread, *numbers, stack, kernel = found.groups()
    process, where, how, returns_to, export, called, doing = map(word, numbers)
    return Sample(thread, process, where, how, returns_to, export, called, doing,
                  tuple(int(address, 16) for address in ADDRESS.findall(stack)),
                  tuple(symbol(line) for line in kernel.split("\n") if line), second)


def word(text: str) -> int:
    """Parses a word, which versions of bpftrace print signed or unsigned."""
    return int(text) % (1 << 64) if re.fullmatch(r"-?\d{1,20}", text, re.ASCII) else 0


def symbol(line: str) -> str:
    """Returns the function on a line of the kernel stack; bpftrace 0.27 prints no space after the address."""
    found = re.match(r"\s*[0-9a-f]{16}\s*([^+\s]+)", line)
    return clean(found.group(1) if found else line.strip())


class Frame(NamedTuple):
    """A function, and the place in its source, if known."""
    name: str
    file: str = ""
    line: int = 0


class Located(NamedTuple):
    """The place of a sample: its process, or a label if it has none; the pid of the process; its frames from the
    outermost in; the second, if requested; what the scheduler did, empty for other threads; whether the stack is that
    of the sample (exact), may be that of an earlier call (last saved), or is incomplete (missing)."""
    root: str
    pid: str
    frames: Tuple[Frame, ...]
    second: int
    activity: str
    stack: str


class Path(NamedTuple):
    """A path of functions, without places in the source."""
    root: str
    pid: str
    frames: Tuple[str, ...]
    second: int = 0


def by_function(located: "Counter[Located]") -> "Counter[Path]":
    """Returns how often each path of functions was sampled."""
    found: Counter[Path] = collections.Counter()
    for one, count in located.items():
        found[Path(one.root, one.pid, tuple(frame.name for frame in one.frames), one.second)] += count
    return found


def paths(samples: Samples, code: Code, names: Names) -> "Counter[Located]":
    """Returns how often each place was sampled."""
    samples.learn(code)
    code.finish(samples.addresses())
    stacks = {number: samples.stack(number) for number in samples.frames}
    found: Counter[Located] = collections.Counter()
    paths_of = Paths(code, names)
    for sample, count in samples.of.items():
        found[paths_of.locate(sample, stacks.get(sample.where, ()))] += count
    for second, count in samples.missing().items():
        found[Located(OTHERS, "", (), second, "", "")] += count
    return found


class Paths:
    """Turns samples into paths, by the names that a node's code has."""

    def __init__(self, code: Code, names: Names) -> None:
        self.place: Callable[[int], Optional[Place]] = code.places.get
        self.known, self.names = code.names, names
        self.normal_exit = code.layout.normal_exit if code.layout else 0

    def locate(self, sample: Sample, stack: Tuple[int, ...]) -> Located:
        """Returns the place of a sample of a process with this stack."""
        kernel = [Frame(f"{name} [kernel]") for name in sample.kernel[::-1]]
        native, inner = self.top(sample)
        if self.is_tracing(sample):
            return Located(TRACING, "", (*native, *kernel), sample.second, OTHER, "")
        if not sample.process:
            return Located(thread_of(sample), "", (*native, *kernel), sample.second, self.idle(sample), "")
        activity, called = self.call(sample)
        frames, is_whole = self.erlang(stack)
        certainty = "missing" if not is_whole else "last saved" if self.is_uncertain(sample, activity) else "exact"
        if certainty == "last saved" and frames:
            frames[-1] = frames[-1]._replace(name=frames[-1].name + SAVED)
        if certainty == "missing" and not frames:
            frames = [Frame(NO_STACK)]
        pid, name = self.process(sample.process)
        return Located(f"{pid} {name}".strip(), pid, (*frames, *inner, *called, *native, *kernel), sample.second,
                       activity, certainty)

    def process(self, process: int) -> Tuple[str, str]:
        """Returns the pid of a process, and its name or the function that it began with."""
        pid, name, first = self.known.processes.get(process, (f"process {process:#x}", "", ""))
        return pid, clean(self.names.of.get(pid) or name or ("" if first.startswith("proc_lib:init_p/") else first))

    def top(self, sample: Sample) -> Tuple[List[Frame], List[Frame]]:
        """Returns the C frames and the innermost Erlang frame, each from the outermost in. The chain of C frames ends
        at the first address outside of C code."""
        native: List[str] = []
        inner: List[Frame] = []
        for number, address in enumerate(sample.stack):
            found = self.place(address)
            if found is None:
                native += [UNKNOWN] if number == 0 else []
                break
            if is_erlang(found):
                if number == 0:
                    inner = [shown(found)]
                break
            native += found.frames()
        return [Frame(name) for name in dedup(native[::-1])], inner

    def call(self, sample: Sample) -> Tuple[str, List[Frame]]:
        """Returns what a process does, and the frame of the BIF or of the part of the VM that it has called."""
        function = self.known.functions.get(sample.called, "")
        if DIRTY.fullmatch(sample.thread):
            return NIF, [Frame(clean(function))] if function else []
        first = self.place(sample.stack[0]) if sample.stack else None
        if sample.how == IN_ERLANG or not sample.returns_to:
            return ERLANG, []
        caller = self.place(sample.returns_to - 1)
        activity = next((activity for pattern, activity in FRAGMENTS
                         if caller and caller.kind == "fragment" and pattern.fullmatch(caller.name)), ERLANG)
        if activity == BIF and caller and "light" in caller.name:
            function = self.known.bifs.get(sample.export, "")
        if activity in (BIF, NIF) and function:
            return activity, [Frame(clean(function))]
        if activity == COLLECTION and (first is None or first.part != COLLECTION):
            return activity, [Frame(f"[{COLLECTION}]")]
        if activity == ERLANG and caller and caller.kind == "erlang":
            # The call site of an instruction that calls C code.
            return activity, [shown(caller)]
        return activity, []

    def is_uncertain(self, sample: Sample, activity: str) -> bool:
        """Returns whether the stack may be that of an earlier call. A process that is being scheduled has saved it.
        Erlang code that is not on its own stack is about to call C code, or has just called it."""
        first = self.place(sample.stack[0]) if sample.stack else None
        return activity != OTHER and (sample.how == LAST_SAVED or sample.how == IN_C and is_erlang(first))

    def erlang(self, stack: Tuple[int, ...]) -> Tuple[List[Frame], bool]:
        """Returns the frames of a stack from the outermost in, and whether they reach the bottom. While a garbage
        collection replaces the heap, the top may belong to the old one and the end to the new one: the stack ends at
        the first bottom."""
        if self.normal_exit and self.normal_exit in stack:
            stack = stack[:stack.index(self.normal_exit) + 1]
        is_whole = bool(stack) and stack[-1] == self.normal_exit
        frames = []
        for address in stack[:-1] if is_whole else stack:
            found = self.place(address - 1) if address else None
            if found and found.kind == "erlang":
                frames.append(shown(found))
            elif not found or found.kind != "fragment":
                frames.append(Frame(UNKNOWN if address else LEFT_OUT))
        return frames[::-1], is_whole

    def idle(self, sample: Sample) -> str:
        """Returns what a scheduler without a process does; an empty text for other threads."""
        if sample.doing == RUNS_PORT:
            return PORT
        if SCHEDULER.fullmatch(sample.thread) or DIRTY.fullmatch(sample.thread):
            return BUSY if sample.doing & WAITS else OTHER
        return ""

    def is_tracing(self, sample: Sample) -> bool:
        """Returns whether the thread was executing tracing code."""
        return any(name.startswith("uprobe_") for name in sample.kernel) \
            or any(found and found.kind == "tracer" for found in map(self.place, sample.stack))


def is_erlang(found: Optional[Place]) -> bool:
    """Returns whether this is code of Erlang."""
    return found is not None and found.kind in ("erlang", "fragment", "jit")


def shown(found: Place) -> Frame:
    """Returns the frame of code of Erlang."""
    if found.kind == "fragment":
        return Frame(f"{found.name} [code of the VM]")
    return Frame(f"[{found.name}]") if found.kind == "jit" else Frame(found.name, found.file, found.line)


def dedup(names: List[str]) -> List[str]:
    """Returns the names, without repetitions of a part of the VM."""
    seen: Set[str] = set()
    found = []
    for name in names:
        if name not in seen or not name.startswith("["):
            found.append(name)
        seen.add(name)
    return found


def thread_of(sample: Sample) -> str:
    """Returns the activity of a thread without a process."""
    name = next((title for pattern, title in THREADS if re.fullmatch(pattern, sample.thread)), None)
    return name or f"[thread {clean(sample.thread)}]"
