"""A profile as a file: folded stacks, profiles for speedscope and pprof, a page with a flame graph, a trace for
Perfetto."""
import collections
import json
import re
from typing import Any, Callable, Counter, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from dyntrace_command.host.tools import own_data
from dyntrace_command.profiling.folded_stacks import exact, frame, stacks, stacks_of
from dyntrace_command.profiling.perfetto_trace import NS, callstacks
from dyntrace_command.profiling.pprof import pprof
from dyntrace_command.profiling.profile_comparison import shares
from dyntrace_command.profiling.sample_paths import LEFT_OUT, Located, Path, by_function

# The only format that uses the time of each sample.
TIMED = ".pftrace"

# The placeholder for the data in the page's template; viewer/page/page_sink.c uses the same.
PLACE = "@DATA@"

# The pid of a process, or its address if the pid is unknown, before its name.
PID = re.compile(r"^(?:<[\d.]+>|process 0x[0-9a-f]+) ?")

# Frames of a stack on a page: the encoder of JSON is recursive.
DEPTH_MOST = 300


class Taken(NamedTuple):
    """How a profile was taken. `snapshots` is their number if all processes were sampled, not the threads on CPUs.
    `compared_to`: the stacks of an earlier profile, for a page that shows the change."""
    title: str
    hertz: float
    seconds: int
    snapshots: int = 0
    compared_to: Optional["Counter[Tuple[str, ...]]"] = None

    def ns(self, count: int) -> int:
        """Returns the time that this number of samples represents."""
        return round(count * NS / self.hertz)

    def cpus(self, count: int) -> str:
        """Returns how many CPUs were used."""
        return f"{count / self.hertz / max(self.seconds, 1):.2f}"


Writer = Callable[[Counter[Located], Taken], Union[str, bytes]]


def folded(paths: "Counter[Path]", _: Taken) -> str:
    """Returns one line per path: its frames separated by ';', a space, and the number of samples."""
    return "".join(f"{';'.join(map(frame, stack))} {count}\n" for stack, count in stacks(paths))


def speedscope(paths: "Counter[Path]", taken: Taken) -> str:
    """Returns speedscope's JSON: a profile of samples with their weights."""
    numbers: Dict[str, int] = {}
    samples, weights = [], []
    for stack, count in stacks(paths):
        samples.append([numbers.setdefault(name, len(numbers)) for name in stack])
        weights.append(taken.ns(count))
    return json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "dyntrace", "name": taken.title,
        "activeProfileIndex": 0, "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [{"type": "sampled", "name": taken.title, "unit": "nanoseconds", "startValue": 0,
                      "endValue": sum(weights), "samples": samples, "weights": weights}]}) + "\n"


def page(paths: "Counter[Path]", taken: Taken) -> str:
    """Returns the page that shows recordings, with the flame graph only."""
    with open(own_data("babeltrace2", "page.html"), encoding="utf-8") as file:
        begin, _, end = file.read().partition(PLACE)
    total = sum(paths.values())
    data: Dict[str, Any] = {
        "title": taken.title,
        "profile": {"hertz": taken.hertz, "seconds": taken.seconds, "samples": total, "cpus": taken.cpus(total)}}
    data.update(compared(paths, taken, taken.compared_to) if taken.compared_to
                else {"flame": tree(stacks(paths), taken)})
    if taken.snapshots:
        data["profile"] = {"snapshots": taken.snapshots, "seconds": taken.seconds,
                           "processes": f"{total / taken.snapshots:.1f}"}
    # Prevents any text from closing the script element.
    return begin + json.dumps(data).replace("<", "\\u003c") + end


def tree(found: Sequence[Tuple[List[str], int]], taken: Taken) -> Dict[str, Any]:
    """Returns the stacks as the page reads them: {name, value, own, children}, in ns."""
    return listed(tree_by_name(found, taken))


def tree_by_name(found: Iterable[Tuple[Sequence[str], int]], taken: Taken, **more: int) -> Dict[str, Any]:
    """Returns the tree with the children of each node by their names. `more`: further values of each node."""
    root: Dict[str, Any] = {"name": "", "value": 0, "own": 0, **more, "children": {}}
    for stack, count in found:
        at, ns = root, taken.ns(count)
        at["value"] += ns
        for name in bounded(stack):
            at = at["children"].setdefault(name, {"name": name, "value": 0, "own": 0, **more, "children": {}})
            at["value"] += ns
        at["own"] += ns
    return root


def bounded(stack: Sequence[str]) -> Sequence[str]:
    """Returns a stack without its middle if it is too deep for a page."""
    return stack if len(stack) <= DEPTH_MOST else [*stack[:DEPTH_MOST // 2], LEFT_OUT, *stack[-DEPTH_MOST // 2:]]


def compared(paths: "Counter[Path]", taken: Taken, old: "Counter[Tuple[str, ...]]") -> Dict[str, Any]:
    """Returns the tree with `was` in each node, its `value` in the earlier profile, scaled to the same number of
    samples; and {function: the same}, also for functions that are gone. Processes of one kind are merged, because pids
    differ between profiles."""
    now, before = comparable(stacks_of(paths)), comparable(old)
    root = tree_by_name(sorted(now.items()), taken, was=0)
    scale = sum(now.values()) / sum(before.values())
    for stack, count in before.items():
        at, ns = root, round(taken.ns(count) * scale)
        at["was"] += ns
        for name in bounded(stack):
            if name not in at["children"]:
                break
            at = at["children"][name]
            at["was"] += ns
    functions = {name: round(root["value"] * share / 100) for name, share in shares(before).total.items()}
    return {"flame": listed(root), "was": functions}


def comparable(found: "Counter[Tuple[str, ...]]") -> "Counter[Tuple[str, ...]]":
    """Returns stacks without what differs between profiles of the same work."""
    of: Counter[Tuple[str, ...]] = collections.Counter()
    for (root, *frames), count in found.items():
        of[(PID.sub("", root) or "processes without a name", *map(exact, frames))] += count
    return of


def listed(root: Dict[str, Any]) -> Dict[str, Any]:
    """Turns the children into lists, in place, without recursion, because stacks may be deep."""
    waiting = [root]
    while waiting:
        at = waiting.pop()
        at["children"] = list(at["children"].values())
        waiting += at["children"]
    return root


def trace(paths: "Counter[Path]", taken: Taken) -> bytes:
    """Returns a Perfetto trace."""
    return callstacks(paths, taken.title)


def of_functions(write: Callable[["Counter[Path]", Taken], Union[str, bytes]]) -> Writer:
    """Returns a writer for a format without lines of source files."""
    return lambda located, taken: write(by_function(located), taken)


WRITERS: Dict[str, Writer] = {
    ".folded": of_functions(folded), ".speedscope.json": of_functions(speedscope), ".html": of_functions(page),
    TIMED: of_functions(trace), ".pb.gz": lambda located, taken: pprof(located, taken.hertz, taken.seconds,
                                                                         "wall" if taken.snapshots else "cpu")}
