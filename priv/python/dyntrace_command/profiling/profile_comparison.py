"""The differences between two profiles, as a table of functions: how their shares of all samples have changed."""
import collections
from typing import Counter, Dict, List, NamedTuple, Sequence, Tuple

from dyntrace_command.profiling.folded_stacks import exact
from dyntrace_command.profiling.sample_paths import LEFT_OUT

# Rows of the table; the change in points that is listed, in percent of all samples.
ROWS, LEAST = 20, 0.5


class Shares(NamedTuple):
    """Shares of functions in percent: own, and total, with the functions that they call."""
    own: Dict[str, float]
    total: Dict[str, float]


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


class Change(NamedTuple):
    """How the shares of a function have changed, in points, and its total shares in percent."""
    function: str
    own_change_points: float
    total_change_points: float
    total_was_percent: float
    total_is_percent: float


def changes(old: "Counter[Tuple[str, ...]]", new: "Counter[Tuple[str, ...]]") -> List[Change]:
    """Returns the functions whose shares have changed most."""
    before, now = shares(old), shares(new)
    rows = []
    for name in sorted(before.total.keys() | now.total.keys()):
        own, total = ((of_now.get(name, 0) - of_before.get(name, 0))
                      for of_before, of_now in zip(before, now))
        rows.append((max(abs(own), abs(total)),
                     Change(name, own, total, before.total.get(name, 0), now.total.get(name, 0))))
    rows.sort(key=lambda row: (-row[0], row[1].function))
    return [row for change, row in rows[:ROWS] if change >= LEAST]


def table(rows: Sequence[Change]) -> List[List[str]]:
    """Returns the table, its header first."""
    return [["OWN", "TOTAL", "WAS", "IS", "FUNCTION"]] + [
        [f"{row.own_change_points:+.1f}", f"{row.total_change_points:+.1f}", f"{row.total_was_percent:.1f} %",
         f"{row.total_is_percent:.1f} %", row.function] for row in rows]
