"""A profile as tables: the busiest processes and functions, with the hottest path of each."""
import collections
import itertools
from typing import Counter, Dict, List, Sequence, Set, Tuple

from dyntrace_command.profiling.sample_paths import ACTIVITIES, LEFT_OUT, Located, Path, by_function

ROWS = 12
# How many of the outermost and innermost frames of a path are shown; characters of a frame.
ENDS, NAME = (2, 3), 60

Frames = Tuple[str, ...]


def tables(located: "Counter[Located]", hertz: int, seconds: int, counts: Sequence[int]) -> List[List[List[str]]]:
    """Returns the tables, each with its header row first: what the schedulers did, if their numbers are known;
    processes (or labels of samples without one); functions."""
    paths = by_function(located)
    first = [schedulers(located, hertz, seconds, counts)] if counts else []
    return [*first, processes(paths, hertz), functions(paths)]


def schedulers(located: "Counter[Located]", hertz: int, seconds: int, counts: Sequence[int]) -> List[List[str]]:
    """Returns the table of what the schedulers did. A scheduler that was not sampled slept, or waited for a CPU or in
    the kernel."""
    total = max(1, sum(counts) * hertz * seconds)
    of: Counter[str] = collections.Counter()
    for one, count in located.items():
        of[one.activity] += count
    rows = [["SCHEDULERS", "CPU", "SHARE"]]
    rows += [[name, cpu(of[name], hertz), percent(of[name], total)] for name in ACTIVITIES if of[name]]
    rest_of = max(0, total - sum(of[name] for name in ACTIVITIES))
    return rows + [["sleep, or not on a CPU", "", percent(rest_of, total)]]


def certainty(located: "Counter[Located]") -> str:
    """Returns which shares of the samples of processes have an exact stack, a last saved one, and none."""
    of: Counter[str] = collections.Counter()
    for one, count in located.items():
        of[one.stack] += count
    total = of["exact"] + of["last saved"] + of["missing"]
    return "stacks: " + ", ".join(f"{percent(of[kind], total)} {kind}" for kind in ("exact", "last saved", "missing"))


def processes(paths: "Counter[Path]", hertz: int) -> List[List[str]]:
    """Returns the table of processes."""
    total = sum(paths.values())
    of: Dict[str, Counter[Frames]] = collections.defaultdict(collections.Counter)
    for path, count in paths.items():
        of[path.root][one_kernel(path.frames)] += count
    counts = collections.Counter({root: sum(frames.values()) for root, frames in of.items()})
    rows = [["SHARE", "CPU", "PROCESS", "HOTTEST PATH"]]
    for root, count in busiest(counts):
        rows.append([percent(count, total), cpu(count, hertz), root, shown(*hottest(of[root]), total)])
    return rows + rest(counts, total)


def functions(paths: "Counter[Path]") -> List[List[str]]:
    """Returns the table of functions: own time, and total time with callees."""
    total = sum(paths.values())
    own: Counter[str] = collections.Counter()
    whole: Counter[str] = collections.Counter()
    above: Dict[str, Counter[Frames]] = collections.defaultdict(collections.Counter)
    for path, count in paths.items():
        frames = one_kernel(path.frames)
        own[frames[-1] if frames else path.root] += count
        for name in set(frames) - {LEFT_OUT}:
            whole[name] += count
        if frames:
            above[frames[-1]][(path.root, *frames[:-1])] += count
    rows = [["OWN", "TOTAL", "FUNCTION", "HOTTEST PATH TO IT"]]
    listed: Set[str] = set()
    for name, count in busiest(own):
        listed.add(name)
        rows.append([percent(count, total), percent(whole[name] or count, total), cut(name),
                     shown(*hottest(above[name]), total)])
    # Functions with little time of their own that call expensive ones.
    for name, count in whole.most_common(ROWS):
        if name not in listed and total > count > total / 20:
            rows.append([percent(own[name], total), percent(count, total), cut(name), ""])
    return rows + rest(own, total)


def one_kernel(frames: Frames) -> Frames:
    """Returns the frames with those of the kernel merged into one."""
    native = [name for name in frames if not name.endswith(" [kernel]")]
    return (*native, "[kernel]") if len(native) < len(frames) else frames


def busiest(counts: "Counter[str]") -> List[Tuple[str, int]]:
    """Returns the first rows; rows with equal counts are sorted by name, so the order is stable."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:ROWS]


def rest(counts: "Counter[str]", total: int) -> List[List[str]]:
    """Returns a row for those that are not listed."""
    others = len(counts) - ROWS
    if others <= 0:
        return []
    share = total - sum(count for _, count in busiest(counts))
    return [[percent(share, total), "", f"{others} more", ""]]


def hottest(of: "Counter[Frames]") -> Tuple[Frames, int]:
    """Returns the hottest path and the number of its samples. Starting at the outermost frame, it follows the callee
    with the most samples, until most samples end."""
    depth, taken = 0, of
    while True:
        following: Counter[str] = collections.Counter()
        for frames, count in taken.items():
            following[frames[depth] if depth < len(frames) else ""] += count
        name, _ = max(following.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if not name:
            break
        taken = collections.Counter({frames: count for frames, count in taken.items()
                                     if frames[depth:depth + 1] == (name,)})
        depth += 1
    return next(iter(taken), ())[:depth], sum(taken.values())


def shown(frames: Frames, count: int, total: int) -> str:
    """Returns a path as text, with its share."""
    # A recursive function is shown once.
    names = ends([name for name, _ in itertools.groupby(frames)])
    return f"{' > '.join(map(cut, names))}  {percent(count, total)}" if names else ""


def ends(names: Sequence[str]) -> Sequence[str]:
    """Returns the outermost and the innermost names of a path; the others are left out."""
    first, last = ENDS
    return names if len(names) <= first + last else [*names[:first], LEFT_OUT, *names[-last:]]


def cut(name: str) -> str:
    """Returns a name shortened to fit a table."""
    return name if len(name) <= NAME else name[:NAME - 3] + "..."


def percent(count: int, total: int) -> str:
    """Returns a share."""
    return f"{100 * count / total if total else 0:.1f} %"


def cpu(count: int, hertz: int) -> str:
    """Returns the CPU time that this number of samples represents."""
    return f"{count / hertz:.2f} s"
