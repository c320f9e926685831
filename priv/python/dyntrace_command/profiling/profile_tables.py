"""A profile as tables or JSON: the busiest processes and functions, with the hottest path of each."""
import collections
import itertools
from typing import Any, Counter, Dict, List, NamedTuple, Sequence, Set, Tuple

from dyntrace_command.profiling.sample_paths import ACTIVITIES, LEFT_OUT, Located, Path, by_function

# Rows of a table of processes or functions; as JSON.
ROWS, JSON_ROWS = 12, 200
# How many of the outermost and innermost frames of a path are shown; characters of a frame.
ENDS, NAME = (2, 3), 60

Frames = Tuple[str, ...]

# How a stack is known; the row of schedulers that were not sampled.
STACKS = ("exact", "last saved", "missing")
ASLEEP = "sleep, or not on a CPU"


class Row(NamedTuple):
    """A process or function: its samples; those with the functions that it calls; its hottest path, and the samples of
    that path."""
    name: str
    own: int
    total: int
    path: Frames
    path_count: int


class Ranked(NamedTuple):
    """The first rows; the number of the others, and their samples."""
    rows: List[Row]
    others: int
    others_count: int


class Profile(NamedTuple):
    """What the tables show. `schedulers`: the samples of each activity, and those in which schedulers were not on a
    CPU; empty if the number of schedulers is unknown. `stacks`: the samples of processes by how their stacks are known.
    """
    hertz: int
    seconds: int
    samples: int
    stacks: "Counter[str]"
    schedulers: Dict[str, int]
    processes: Ranked
    functions: Ranked


def summarized(located: "Counter[Located]", hertz: int, seconds: int, counts: Sequence[int],
               most: int = ROWS) -> Profile:
    """Returns what the tables show, with so many rows. `counts`: the numbers of schedulers, if they are known."""
    paths = by_function(located)
    return Profile(hertz, seconds, sum(located.values()), stack_kinds(located),
                   schedulers(located, sum(counts) * hertz * seconds) if counts else {},
                   processes(paths, most), functions(paths, most))


def tables(profile: Profile) -> List[List[List[str]]]:
    """Returns the tables, each with its header row first: what the schedulers did, if their numbers are known;
    processes (or labels of samples without one); functions."""
    total, hertz, first = profile.samples, profile.hertz, []
    if profile.schedulers:
        whole = sum(profile.schedulers.values())
        first = [[["SCHEDULERS", "CPU", "SHARE"]] + [
            [name, "" if name == ASLEEP else cpu(count, hertz), percent(count, whole)]
            for name, count in profile.schedulers.items()]]
    return [*first, [["SHARE", "CPU", "PROCESS", "HOTTEST PATH"]] + [
        [percent(row.own, total), cpu(row.own, hertz), row.name, shown(row.path, row.path_count, total)]
        for row in profile.processes.rows] + rest(profile.processes, total),
            [["OWN", "TOTAL", "FUNCTION", "HOTTEST PATH TO IT"]] + [
        [percent(row.own, total), percent(row.total, total), cut(row.name), shown(row.path, row.path_count, total)]
        for row in profile.functions.rows] + rest(profile.functions, total)]


def as_json(profile: Profile) -> Dict[str, Any]:
    """Returns the same as values."""
    def seconds(count: int) -> float:
        return round(count / profile.hertz, 3)
    return {
        "seconds": profile.seconds, "samples_per_second": profile.hertz, "samples": profile.samples,
        "stacks": stacks_as_json(profile.stacks),
        "schedulers": [{"activity": name, "samples": count, "seconds": seconds(count)}
                       for name, count in profile.schedulers.items()],
        "processes": [{"process": row.name, "samples": row.own, "cpu_seconds": seconds(row.own),
                       "path": list(row.path), "path_samples": row.path_count} for row in profile.processes.rows],
        "more_processes": profile.processes.others,
        "functions": [{"function": row.name, "own_samples": row.own, "own_cpu_seconds": seconds(row.own),
                       "total_samples": row.total, "total_cpu_seconds": seconds(row.total),
                       "path": list(row.path), "path_samples": row.path_count} for row in profile.functions.rows],
        "more_functions": profile.functions.others}


def schedulers(located: "Counter[Located]", total: int) -> Dict[str, int]:
    """Returns what the schedulers did. A scheduler that was not sampled slept, or waited for a CPU or in the kernel."""
    of: Counter[str] = collections.Counter()
    for one, count in located.items():
        of[one.activity] += count
    found = {name: of[name] for name in ACTIVITIES if of[name]}
    return {**found, ASLEEP: max(0, total - sum(found.values()))}


def stack_kinds(located: "Counter[Located]") -> "Counter[str]":
    """Returns how many samples of processes have an exact stack, a last saved one, and none."""
    of: Counter[str] = collections.Counter()
    for one, count in located.items():
        of[one.stack] += count
    return of


def stacks_as_json(kinds: "Counter[str]") -> Dict[str, int]:
    """Returns the same as values."""
    return {kind.replace(" ", "_") + "_samples": kinds[kind] for kind in STACKS}


def certainty(kinds: "Counter[str]") -> str:
    """Returns the same as shares."""
    total = sum(kinds[kind] for kind in STACKS)
    return "stacks: " + ", ".join(f"{percent(kinds[kind], total)} {kind}" for kind in STACKS)


def processes(paths: "Counter[Path]", most: int) -> Ranked:
    """Returns the busiest processes."""
    of: Dict[str, Counter[Frames]] = collections.defaultdict(collections.Counter)
    for path, count in paths.items():
        of[path.root][one_kernel(path.frames)] += count
    counts = collections.Counter({root: sum(frames.values()) for root, frames in of.items()})
    return ranked([Row(root, count, count, *hottest(of[root])) for root, count in busiest(counts, most)], counts)


def functions(paths: "Counter[Path]", most: int) -> Ranked:
    """Returns the busiest functions: own time, and total time with callees."""
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
    rows = [Row(name, count, whole[name] or count, *hottest(above[name])) for name, count in busiest(own, most)]
    listed: Set[str] = {row.name for row in rows}
    # Functions with little time of their own that call expensive ones.
    return ranked(rows, own, [Row(name, own[name], count, (), 0) for name, count in whole.most_common(most)
                              if name not in listed and total > count > total / 20])


def one_kernel(frames: Frames) -> Frames:
    """Returns the frames with those of the kernel merged into one."""
    native = [name for name in frames if not name.endswith(" [kernel]")]
    return (*native, "[kernel]") if len(native) < len(frames) else frames


def busiest(counts: "Counter[str]", most: int) -> List[Tuple[str, int]]:
    """Returns the first rows; rows with equal counts are sorted by name, so the order is stable."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


def ranked(rows: List[Row], counts: "Counter[str]", further: Sequence[Row] = ()) -> Ranked:
    """Returns the rows with the number and the samples of those that are not listed. `further`: rows in addition to
    the busiest ones."""
    return Ranked([*rows, *further], len(counts) - len(rows), sum(counts.values()) - sum(row.own for row in rows))


def rest(found: Ranked, total: int) -> List[List[str]]:
    """Returns a row for those that are not listed."""
    return [[percent(found.others_count, total), "", f"{found.others} more", ""]] if found.others else []


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
