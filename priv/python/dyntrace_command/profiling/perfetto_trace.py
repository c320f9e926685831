"""A profile as a trace for ui.perfetto.dev: one thread for each Erlang process, and one for each label of samples
without a process (such as `[polling for I/O]`), with a callstack per sample.

Only the second of each sample is known, so the samples of a path are spread evenly over it. Field numbers are those of
Perfetto's trace.proto.
"""
import itertools
from typing import Counter, Dict, Hashable, Iterable, List, Sequence, Tuple, TypeVar

from dyntrace_command.profiling.protobuf import Field, message
from dyntrace_command.profiling.sample_paths import Path

NS = 1000000000

# The node's PID, and the sequence of all packets. Thread IDs follow the PID.
PID, SEQUENCE = 1, 1
STATE_CLEARED, NEEDS_STATE = 1, 2

One = TypeVar("One", bound=Hashable)

# Field numbers of a packet; of a track; of interned data.
TIME, INTERNED, FLAGS, TRACK, PERF_SAMPLE = 8, 12, 13, 60, 66
UUID, PROCESS, THREAD = 1, 3, 4
NAMES, FRAMES, STACKS, PATHS, MAPPINGS = 5, 6, 7, 17, 19


def callstacks(paths: "Counter[Path]", title: str) -> bytes:
    """Returns the trace."""
    threads = numbered((path.root for path in paths), PID + 1)
    stacks = numbered(map(stack_of, paths), 1)
    found = [packet((FLAGS, STATE_CLEARED), (INTERNED, interned(list(stacks), title))),
             packet((TRACK, message((UUID, PID), (PROCESS, message((1, PID), (6, title))))))]
    found += [packet((TRACK, message((UUID, tid), (THREAD, message((1, PID), (2, tid), (5, root))))))
              for root, tid in threads.items()]
    found += [packet((FLAGS, NEEDS_STATE), (TIME, ns),
                     (PERF_SAMPLE, message((2, PID), (3, threads[path.root]), (4, stacks[stack_of(path)]))))
              for ns, path in moments(paths)]
    return b"".join(found)


def stack_of(path: Path) -> Tuple[str, ...]:
    """Returns the frames from the outermost in; a path without frames has its root as the only one."""
    return path.frames or (path.root,)


def moments(paths: "Counter[Path]") -> List[Tuple[int, Path]]:
    """Returns the samples in the order of their times, in ns."""
    return sorted(((path.second * NS + (2 * number + 1) * NS // (2 * count), path)
                   for path, count in paths.items() for number in range(count)), key=lambda one: one[0])


def numbered(values: Iterable[One], first: int) -> Dict[One, int]:
    """Assigns consecutive numbers, starting at `first`, to the distinct values."""
    counter = itertools.count(first)
    return {value: next(counter) for value in dict.fromkeys(values)}


def interned(stacks: Sequence[Tuple[str, ...]], title: str) -> bytes:
    """Returns the interned texts, frames and stacks, numbered in order. Each frame must refer to a mapping."""
    names = numbered((name for stack in stacks for name in stack), 1)
    return message(
        *((NAMES, message((1, number), (2, name))) for name, number in names.items()),
        *((FRAMES, message((1, number), (2, number), (3, 1), (4, number))) for number in names.values()),
        *((STACKS, message((1, number), *((2, names[name]) for name in stack)))
          for number, stack in enumerate(stacks, 1)),
        (PATHS, message((1, 1), (2, title))), (MAPPINGS, message((1, 1), (7, 1))))


def packet(*fields: Field) -> bytes:
    """Returns a packet of the trace."""
    return message((1, message((10, SEQUENCE), *fields)))
