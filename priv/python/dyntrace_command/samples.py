"""Samples of a node's threads, and the paths that they are of: process, functions of Erlang, of C, of the kernel.

What runs in C has no whole stack in a VM that is compiled without frame pointers, as those of Debian are. Such a path
has the stack that the process has saved when it called C, or the function in which the scheduler took the process up,
each marked so, in place of Erlang's stack: no caller is guessed.
"""
import collections
import itertools
import re
from typing import Callable, Counter, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.bpftrace import Names
from dyntrace_command.code import Code, Place
from dyntrace_command.layout import SAVED_MOST, Layout
from dyntrace_command.perf_map import is_bottom, spelled
from dyntrace_command.terminal import clean

# Different samples that are kept. A node that runs for an hour has fewer, but where those of each second count apart.
KEPT_MOST = 200000
# Saved stacks that are kept, each of some kB.
SAVED_STACKS_MOST = 20000
# Frames that bpftrace keeps of a stack.
FRAMES_MOST = 64

# bpftrace's keys of a map: the names of threads and functions may have anything in them, also lines of a stack. There
# is one way to match a line, so what matches nothing is found out soon.
STACK = r"(?:\n(?:[ \t]*[0-9a-f][^\n]*\n)*)?"
ADDRESS = re.compile(r"^[ \t]*([0-9a-f]{1,16})", re.M)
KEY = re.compile(rf"(.*?),(<[\d.]+>|-|-?\d*),(.*?),({STACK}),({STACK})", re.S)

UNKNOWN, TRACING, OTHERS = "[unknown code]", "[dyntrace's own probes]", "[more than can be kept]"
NO_STACK = "[no stack]"

# Threads of the VM, by OTP's names for them before and since OTP 26, of which the kernel keeps 15 letters; what they do
# without a process.
THREADS = (
    (r"\d+_scheduler|erts_sched_\d+", "[schedulers: ports, scheduling, spinning]"),
    (r"\d+_dirty_cpu_s\w*|erts_dcpus_\d+", "[dirty CPU schedulers]"),
    (r"\d+_dirty_io_s\w*|erts_dios_\d+", "[dirty I/O schedulers]"),
    (r"\d+_aux|erts_aux_\d+", "[auxiliary thread: memory, timers, waking]"),
    (r"\d+_poller|erts_poll_\d+", "[polling for I/O]"),
    (r"async_\d+|erts_async_\d+", "[asynchronous jobs of drivers]"),
    (r"sys_\w+|erts_\w+|beam\.smp", "[other threads of the VM]"),
)


class Sample(NamedTuple):
    """What a thread did: its name, its process (- is none, an empty text unknown), the function in which the scheduler
    took that up, the addresses of its stack and the functions of the kernel's, each the innermost first, the number of
    the stack that the process has saved, and the second in which it was taken, if that is wanted."""
    thread: str
    process: str
    function: str
    stack: Tuple[int, ...]
    kernel: Tuple[str, ...]
    saved: int = 0
    second: int = 0


class Samples:
    """The samples that have come."""

    def __init__(self, layout: Optional[Layout] = None, has_seconds: bool = False) -> None:
        # Of a node that is not traced.
        self.layout = layout
        self.has_seconds, self.second = has_seconds, 0
        self.of: Counter[Sample] = collections.Counter()
        # {number: {frame: address}}
        self.saved: Dict[int, Dict[int, int]] = {}
        # Those that the kernel has taken, by second.
        self.all: Counter[int] = collections.Counter()

    def take(self, fields: List[str], maps: Dict[str, Dict[str, int]]) -> None:
        """Takes a line of bpftrace, or its maps."""
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
        """Returns the pids of the processes that are in two of a hundred samples at least."""
        counts: Counter[str] = collections.Counter()
        for sample, count in self.of.items():
            counts[sample.process] += count
        return {pid for pid, count in counts.items() if pid.startswith("<") and count * 50 >= sum(self.all.values())}

    def stack(self, number: int) -> Tuple[int, ...]:
        """Returns the addresses of a saved stack, as far as they have come."""
        frames = self.saved.get(number, {})
        return tuple(frames[frame] for frame in itertools.takewhile(frames.__contains__, itertools.count()))

    def missing(self) -> "Counter[int]":
        """Returns how many samples the kernel has taken that are not here, by second."""
        here: Counter[int] = collections.Counter()
        for sample, count in self.of.items():
            here[sample.second] += count
        return self.all - here


def sample_of(key: str, layout: Optional[Layout] = None, second: int = 0) -> Optional[Sample]:
    """Returns the sample of a key of the map; None if it is none. With a layout, processes are words of the VM, and
    saved stacks are numbers."""
    # Since bpftrace 0.20, keys are escaped twice.
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
    """Returns a word, which some versions of bpftrace print with a sign, some without."""
    return int(text) % (1 << 64) if re.fullmatch(r"-?\d{1,20}", text, re.ASCII) else 0


def symbol(line: str) -> str:
    """Returns the function of a line of the kernel's stack; bpftrace 0.27 writes no space after the address."""
    found = re.match(r"\s*[0-9a-f]{16}\s*([^+\s]+)", line)
    return clean(found.group(1) if found else line.strip())


class Path(NamedTuple):
    """Where a sample was: the process or what stands in its place, its pid if it is one, frames from the outermost; and
    in which second, if that is wanted."""
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
    """Returns the path of a sample, which has saved that stack."""
    native, erlang = frames_of(sample, place)
    kernel = [f"{name} [kernel]" for name in sample.kernel[::-1]]
    if is_tracing(sample, place):
        return Path(TRACING, "", tuple(native + kernel), sample.second)
    if not sample.process.startswith("<"):
        return Path(thread_of(sample, bool(erlang)), "", tuple(erlang + native + kernel), sample.second)
    erlang = erlang or saved_frames(saved, place)
    if not erlang and sample.function:
        erlang = [f"{clean(spelled(sample.function))} (taken up)"]
    return Path(names.show(sample.process), sample.process, tuple(erlang + native + kernel), sample.second)


def frames_of(sample: Sample, place: Callable[[int], Optional[Place]]) -> Tuple[List[str], List[str]]:
    """Returns the frames of C and those of Erlang, each from the outermost. A chain of frames ends where it leaves the
    code; Erlang's frames beyond C count only if their stack is whole, since without frame pointers the chain may
    lead anywhere."""
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
    """Returns the frames of a saved stack from the outermost, the innermost marked; none if it is not whole, since
    parts of it have been used again."""
    found = [place(address) for address in stack]
    names = [at.name for at in found if at and at.kind == "erlang"]
    if not names or len(names) < len(found) or not (is_bottom(names[-1]) or len(names) >= SAVED_MOST):
        return []
    names[0] += " (last saved)"
    return [name for name in names[::-1] if not is_bottom(name)]


def dedup(names: List[str]) -> Iterator[str]:
    """Yields the names but for those of a part of the VM that has been named."""
    seen: Set[str] = set()
    for name in names:
        if name not in seen or not name.startswith("["):
            yield name
        seen.add(name)


def is_tracing(sample: Sample, place: Callable[[int], Optional[Place]]) -> bool:
    """Returns whether a thread did what it does because it is traced."""
    return any(name.startswith("uprobe_") for name in sample.kernel) \
        or any(found and found.kind == "tracer" for found in map(place, sample.stack))


def thread_of(sample: Sample, runs_erlang: bool) -> str:
    """Returns what a thread without a process does. One that runs functions of Erlang has one, which told nothing."""
    name = next((title for pattern, title in THREADS if re.fullmatch(pattern, sample.thread)), None)
    if name is None:
        return f"[thread {clean(sample.thread)}]"
    # One that has taken up no process since may have run one all the time.
    is_known = sample.process == "-" and not runs_erlang
    return name if is_known or "schedulers" not in name else f"{name[:-1]}; process unknown]"
