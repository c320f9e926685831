"""The differences between two profiles, as a table of functions: how their shares of all samples have changed."""
import collections
import re
from typing import Counter, Dict, List, NamedTuple, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import read_regular
from dyntrace_command.profiling.profile_files import exact, frame, stacks
from dyntrace_command.profiling.sample_paths import LEFT_OUT, Path

# Bytes of a file with folded stacks; rows of the table; the change in points that is listed, in percent of all samples.
FILE_MOST, ROWS, LEAST = 64 << 20, 20, 0.5

LINE = re.compile(r"(.*) (\d{1,12})")


class Shares(NamedTuple):
    """Shares of functions in percent: own, and total, with the functions that they call."""
    own: Dict[str, float]
    total: Dict[str, float]


def folded_paths(path: str) -> "Counter[Tuple[str, ...]]":
    """Returns the stacks in a file that `-o NAME.folded` has written; raises Failure if the file is not one."""
    found: Counter[Tuple[str, ...]] = collections.Counter()
    try:
        text = read_regular(path, FILE_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise Failure("no_profile", file=path, why=error.strerror) from None
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if not match:
            raise Failure("no_profile", file=path, why="a line has no number of samples")
        found[tuple(map(clean, match.group(1).split(";")))] += int(match.group(2))
    if not sum(found.values()):
        raise Failure("no_profile", file=path, why="it has no samples")
    return found


def stacks_of(paths: "Counter[Path]") -> "Counter[Tuple[str, ...]]":
    """Returns the same stacks of a profile as a file of folded stacks has them."""
    found: Counter[Tuple[str, ...]] = collections.Counter()
    for stack, count in stacks(paths):
        found[tuple(map(frame, stack))] += count
    return found


def shares(sampled: "Counter[Tuple[str, ...]]") -> Shares:
    """Returns the shares of functions. Processes are not among them: their pids differ between profiles."""
    all_samples = sum(sampled.values())
    own: Counter[str] = collections.Counter()
    total: Counter[str] = collections.Counter()
    for (root, *frames), count in sampled.items():
        names = [exact(name) for name in frames] or [root]
        own[names[-1]] += count
        for name in set(names) - {LEFT_OUT}:
            total[name] += count
    return Shares(*({name: 100 * count / all_samples for name, count in of.items()} for of in (own, total)))


def changes(old: "Counter[Tuple[str, ...]]", new: "Counter[Tuple[str, ...]]") -> List[List[str]]:
    """Returns the table, its header first: the functions whose shares have changed most, in points."""
    before, now = shares(old), shares(new)
    rows = []
    for name in sorted(before.total.keys() | now.total.keys()):
        own, total = ((of_now.get(name, 0) - of_before.get(name, 0))
                      for of_before, of_now in zip(before, now))
        rows.append((max(abs(own), abs(total)), own, total, name))
    rows.sort(key=lambda row: (-row[0], row[3]))
    return [["OWN", "TOTAL", "WAS", "IS", "FUNCTION"]] + [
        [f"{own:+.1f}", f"{total:+.1f}", f"{before.total.get(name, 0):.1f} %", f"{now.total.get(name, 0):.1f} %", name]
        for change, own, total, name in rows[:ROWS] if change >= LEAST]
