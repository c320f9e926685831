"""Samples of a node's threads, and the paths that they represent: process, Erlang functions, C functions, kernel
functions.

C code has no complete stack in a VM that is compiled without frame pointers, such as Debian's. In place of Erlang's
stack, such a path has the stack that the process saved when it called C, or the function at which the scheduler resumed
the process. Both are marked as such; no caller is guessed.
"""
import collections
import itertools
import re
from typing import Callable, Counter, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.host.perf_map import is_bottom, spelled
from dyntrace_command.node.code import Code, Place
from dyntrace_command.node.container import DIRTY_IO
from dyntrace_command.tracers.bpftrace import Names
from dyntrace_command.tracers.current_process import SAVED_MOST, Layout

# Distinct samples that are kept. A node that runs for an hour has fewer, unless those of each second count separately.
KEPT_MOST = 200000
# Saved stacks that are kept, each of some kB.
SAVED_STACKS_MOST = 20000
# Frames of a stack that bpftrace keeps.
FRAMES_MOST = 64

# The keys of bpftrace's map. Names of threads and functions may contain anything, including lines of a stack. The
# pattern matches a line in only one way, so a key that does not match is rejected quickly.
STACK = r"(?:\n(?:[ \t]*[0-9a-f][^\n]*\n)*)?"
ADDRESS = re.compile(r"^[ \t]*([0-9a-f]{1,16})", re.M)
KEY = re.compile(rf"(.*?),(<[\d.]+>|-|-?\d*),(.*?),({STACK}),({STACK})", re.S)

UNKNOWN, TRACING, OTHERS = "[unknown code]", "[dyntrace's own probes]", "[more than can be kept]"
NO_STACK = "[no stack]"

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


class Sample(NamedTuple):
    """A sample of a thread: its name; its process (- for none, an empty text for unknown); the function at which the
    scheduler resumed the process; the addresses of its stack and the functions of the kernel stack, each the innermost
    first; the number of the stack that the process has saved; and the second in which it was taken, if requested."""
    thread: str
    process: str
    function: str
    stack: Tuple[int, ...]
    kernel: Tuple[str, ...]
    saved: int = 0
    second: int = 0


class Samples:
    """The samples received so far."""

    def __init__(self, layout: Optional[Layout] = None, has_seconds: bool = False) -> None:
        # Set for a node that is not traced.
        self.layout = layout
        self.has_seconds, self.second = has_seconds, 0
        self.of: Counter[Sample] = collections.Counter()
        # {number: {frame: address}}
        self.saved: Dict[int, Dict[int, int]] = {}
        # Number of samples that the kernel has taken, by second.
        self.all: Counter[int] = collections.Counter()

    def take(self, fields: List[str], maps: Dict[str, Dict[str, int]]) -> None:
        """Processes a line of bpftrace, or its maps."""
        if fields[:1] == ["frame"]:
            number, frame, address = map(word, fields[1:])
            if number in self.saved or len(self.saved) < SAVED_STACKS_MOST:
                self.saved.setdefault(number, {})[frame] = address
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
            sample = sample_of(key, self.layout, self.second)
            if sample and (sample in self.of or len(self.of) < KEPT_MOST):
                self.of[sample] += count

    def busy(self) -> Set[str]:
        """Returns the pids of the processes that have at least two percent of the samples."""
        counts: Counter[str] = collections.Counter()
        for sample, count in self.of.items():
            counts[sample.process] += count
        return {pid for pid, count in counts.items() if pid.startswith("<") and count * 50 >= sum(self.all.values())}

    def stack(self, number: int) -> Tuple[int, ...]:
        """Returns the addresses of a saved stack, as far as they have arrived."""
        frames = self.saved.get(number, {})
        return tuple(frames[frame] for frame in itertools.takewhile(frames.__contains__, itertools.count()))

    def missing(self) -> "Counter[int]":
        """Returns, by second, how many of the samples that the kernel has taken are missing here."""
        here: Counter[int] = collections.Counter()
        for sample, count in self.of.items():
            here[sample.second] += count
        return self.all - here


def sample_of(key: str, layout: Optional[Layout] = None, second: int = 0) -> Optional[Sample]:
    """Parses a key of the map; returns None if it is invalid. With a layout, processes are words of the VM, and saved
    stacks are numbers."""
    # Since version 0.20, bpftrace escapes keys twice.
    found = KEY.fullmatch(key.replace("\\n", "\n").replace("\\t", "\t"))
    if not found:
        return None
    thread, process, function, stack, kernel = found.groups()
    saved = 0
    if layout:
        process, saved, function = layout.pid(word(process)), word(function), ""
    return Sample(thread, process, function, tuple(int(address, 16) for address in ADDRESS.findall(stack)),
                  tuple(symbol(line) for line in kernel.split("\n") if line), saved, second)


def word(text: str) -> int:
    """Parses a word, which versions of bpftrace print signed or unsigned."""
    return int(text) % (1 << 64) if re.fullmatch(r"-?\d{1,20}", text, re.ASCII) else 0


def symbol(line: str) -> str:
    """Returns the function on a line of the kernel stack; bpftrace 0.27 prints no space after the address."""
    found = re.match(r"\s*[0-9a-f]{16}\s*([^+\s]+)", line)
    return clean(found.group(1) if found else line.strip())


class Path(NamedTuple):
    """The place of a sample: its process, or a label if it has none; the pid of the process; frames from the outermost
    in; and the second, if requested."""
    root: str
    pid: str
    frames: Tuple[str, ...]
    second: int = 0


def paths(samples: Samples, code: Code, names: Names) -> "Counter[Path]":
    """Returns how often each path was sampled."""
    saved = {number: samples.stack(number) for number in samples.saved}
    stacks = [*(sample.stack for sample in samples.of), *saved.values()]
    places = code.places({address for stack in stacks for address in stack})
    found: Counter[Path] = collections.Counter()
    for sample, count in samples.of.items():
        found[path_of(sample, places.get, names, saved.get(sample.saved, ()))] += count
    for second, count in samples.missing().items():
        found[Path(OTHERS, "", (), second)] += count
    return found


def path_of(sample: Sample, place: Callable[[int], Optional[Place]], names: Names,
            saved: Tuple[int, ...] = ()) -> Path:
    """Returns the path of a sample with this saved stack."""
    native, erlang = frames_of(sample, place)
    kernel = [f"{name} [kernel]" for name in sample.kernel[::-1]]
    if is_tracing(sample, place):
        return Path(TRACING, "", tuple(native + kernel), sample.second)
    if not sample.process.startswith("<"):
        return Path(thread_of(sample, bool(erlang)), "", tuple(erlang + native + kernel), sample.second)
    erlang = erlang or saved_frames(saved, place)
    if not erlang and sample.function:
        erlang = [f"{clean(spelled(sample.function))} (resumed)"]
    return Path(names.show(sample.process), sample.process, tuple(erlang + native + kernel), sample.second)


def frames_of(sample: Sample, place: Callable[[int], Optional[Place]]) -> Tuple[List[str], List[str]]:
    """Returns the C frames and the Erlang frames, each from the outermost in. The chain of frames ends at the first
    address outside of code. Erlang frames beyond C frames count only if their stack is complete, because without frame
    pointers the chain may lead anywhere."""
    native: List[str] = []
    erlang: List[str] = []
    for number, address in enumerate(sample.stack):
        found = place(address)
        if found is None:
            native += [UNKNOWN] if number == 0 else []
            break
        if found.kind == "erlang":
            erlang.append(found.name)
        elif erlang:
            break
        elif found.kind == "jit":
            native.append(f"[{found.name}]")
            break
        else:
            native += found.frames()
    is_whole = bool(erlang) and (is_bottom(erlang[-1]) or len(sample.stack) >= FRAMES_MOST)
    if native and not is_whole:
        erlang = []
    if not sample.stack and not sample.kernel:
        native = [NO_STACK]
    return list(dedup(native[::-1])), [name for name in erlang[::-1] if not is_bottom(name)]


def saved_frames(stack: Tuple[int, ...], place: Callable[[int], Optional[Place]]) -> List[str]:
    """Returns the frames of a saved stack from the outermost in, with the innermost one marked. Returns nothing if the
    stack is incomplete, because parts of it have been reused."""
    found = [place(address) for address in stack]
    names = [at.name for at in found if at and at.kind == "erlang"]
    if not names or len(names) < len(found) or not (is_bottom(names[-1]) or len(names) >= SAVED_MOST):
        return []
    names[0] += " (last saved)"
    return [name for name in names[::-1] if not is_bottom(name)]


def dedup(names: List[str]) -> Iterator[str]:
    """Yields the names, without repetitions of a part of the VM."""
    seen: Set[str] = set()
    for name in names:
        if name not in seen or not name.startswith("["):
            yield name
        seen.add(name)


def is_tracing(sample: Sample, place: Callable[[int], Optional[Place]]) -> bool:
    """Returns whether the thread was executing tracing code."""
    return any(name.startswith("uprobe_") for name in sample.kernel) \
        or any(found and found.kind == "tracer" for found in map(place, sample.stack))


def thread_of(sample: Sample, runs_erlang: bool) -> str:
    """Returns the activity of a thread without a process. If it runs Erlang functions, it has a process that is
    unknown."""
    name = next((title for pattern, title in THREADS if re.fullmatch(pattern, sample.thread)), None)
    if name is None:
        return f"[thread {clean(sample.thread)}]"
    # A scheduler that has resumed no process since bpftrace attached may have run the same one all the time.
    is_known = sample.process == "-" and not runs_erlang
    return name if is_known or "schedulers" not in name else f"{name[:-1]}; process unknown]"
