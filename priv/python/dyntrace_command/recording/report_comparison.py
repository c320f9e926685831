"""What differs between two reports by more than noise.

Rates are per second of traced time, so neither the lengths of the recordings nor pauses of tracing matter. A number
without data in one of the recordings is not compared. A change must pass a test of noise, and matter (docs/compare.md).
"""
import math
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.recording.report_numbers import (SECONDS_LEAST, Count, Key, Level, Numbers, Quantile,
                                                         Recorded, Row)

# How many standard deviations two counts must be apart. Their measured variance is an estimate, and extended.
DEVIATIONS, EXTENDED = 5, 1.5
# The factors by which counts and levels, and times, must differ.
FACTOR, TIME_FACTOR = 1.25, 1.5
# What matters: a change by this share of all counts of the measure; of run time, by this share of a CPU; of durations,
# by this share of the time in total, or by so many ns each; of memory in bytes; of a queue; of another level.
SHARE, SHARE_OF_TIME, NS, BYTES, QUEUE, NUMBER = 0.01, 0.01, 1e6, 1e6, 10, 5
# Samples of a level in each recording. With fewer than SAMPLES_ENOUGH, memory that goes up and down could be in its
# upper half during one of the recordings, so its factor must be larger.
SAMPLES_LEAST, SAMPLES_ENOUGH, FACTOR_OF_FEW = 4, 8, 2.5
# The factor of durations behind a finding: with few calls, the limits of a quantile are unknown.
FACTOR_OF_FINDING = 2.5
# The rank of what is new or gone, and of larger factors.
RANK_MOST = 100.0


class Measure(NamedTuple):
    """What is compared: its name in JSON, in tables, the unit of its values, and what more and less of it is called."""
    name: str
    what: str
    unit: str
    more: str
    less: str


SLOWER, BUSIER, LARGER, MORE = ("slower", "faster"), ("busier", "less busy"), ("larger", "smaller"), ("more", "fewer")

MEASURES = {row[0]: Measure(row[0], row[1], row[2], *row[3]) for row in [
    # In the order in which changes by the same factor are listed.
    ("crashes", "crashes", "per_second", MORE),
    ("timeouts", "timeouts of calls", "per_second", MORE),
    ("failures", "failures", "per_second", MORE),
    ("call_work_p50", "work per call, p50", "ns", SLOWER),
    ("call_p50", "calls to it, p50", "ns", SLOWER),
    ("call_p99", "calls to it, p99", "ns", SLOWER),
    ("telemetry_p50", "telemetry, p50", "ns", SLOWER),
    ("telemetry_p99", "telemetry, p99", "ns", SLOWER),
    ("span_p50", "span, p50", "ns", SLOWER),
    ("span_p99", "span, p99", "ns", SLOWER),
    ("function_p50", "function, p50", "ns", SLOWER),
    ("function_p99", "function, p99", "ns", SLOWER),
    ("memory", "memory, mean", "bytes", LARGER),
    ("queue", "message queue, mean", "messages", LARGER),
    ("counter", "counter, mean", "", LARGER),
    ("run", "run time", "share", BUSIER),
    ("collecting", "garbage collection", "share", BUSIER),
    ("sent", "messages sent", "per_second", MORE),
    ("received", "messages received", "per_second", MORE),
    ("calls", "calls to it", "per_second", MORE),
    ("telemetry", "telemetry", "per_second", MORE),
    ("spans", "spans", "per_second", MORE),
    ("functions", "calls of the function", "per_second", MORE),
    ("started", "processes started", "per_second", MORE),
    ("runs", "runs", "per_second", MORE),
]}
ORDER = {name: at for at, name in enumerate(MEASURES)}


class Change(NamedTuple):
    """A change, with the values of both recordings and the samples behind them. `factor` is None if one is 0."""
    measure: Measure
    node: str
    name: str
    change: str
    factor: Optional[float]
    before: float
    after: float
    before_samples: int
    after_samples: int
    unit: str

    def rank(self) -> Tuple[bool, float, int, str, str]:
        """Returns what to sort by: increases first, then by factor."""
        is_less = self.change in (self.measure.less, "gone")
        return is_less, -min(self.factor or RANK_MOST, RANK_MOST), ORDER[self.measure.name], self.node, self.name


class FindingChange(NamedTuple):
    """A finding of one recording only, or with another severity."""
    change: str
    rule: str
    before_severity: Optional[str]
    after_severity: Optional[str]
    text: str


class FindingKey(NamedTuple):
    """What a finding is about: the node is "" if there is only one, and the process is a name or an initial call."""
    rule: str
    node: str
    process: str


class Comparison(NamedTuple):
    """The changes; the number of what was compared; the kinds of data of one recording only; the tables of which a
    report lacks rows, which are not compared either."""
    changes: List[Change]
    findings: List[FindingChange]
    compared: int
    not_compared: List[str]
    incomplete: List[str]


# -- Noise -----------------------------------------------------------------------------------------------------------

def variance(count: Count, is_time: bool) -> float:
    """Returns the variance of a count, which is at least that of a Poisson process; times have no such limit."""
    return max(EXTENDED * count.deviation ** 2, 0 if is_time else count.total)


def counts_differ(before: Count, after: Count, is_time: bool = False) -> bool:
    """Returns whether two rates differ by more than noise."""
    noise = math.sqrt(sum(variance(of, is_time) / of.seconds ** 2 for of in (before, after)))
    return is_factor(before.rate, after.rate, TIME_FACTOR if is_time else FACTOR) \
        and abs(after.rate - before.rate) >= DEVIATIONS * noise


def quantiles_differ(before: Quantile, after: Quantile) -> bool:
    """Returns whether two quantiles differ by more than noise: their limits do not overlap."""
    low, high = (before, after) if before.ns <= after.ns else (after, before)
    return low.upper is not None and high.lower is not None and low.upper < high.lower \
        and is_factor(low.ns, high.ns, TIME_FACTOR)


def levels_differ(before: Level, after: Level) -> bool:
    """Returns whether one mean is above all samples of the other recording."""
    low, high = (before, after) if before.mean <= after.mean else (after, before)
    samples = min(low.samples, high.samples)
    return samples >= SAMPLES_LEAST and high.mean > low.most \
        and is_factor(low.mean, high.mean, FACTOR if samples >= SAMPLES_ENOUGH else FACTOR_OF_FEW)


def is_factor(before: float, after: float, least: float) -> bool:
    """Returns whether two values differ by this factor."""
    return max(before, after) >= least * min(before, after) and before != after


# The kinds of recorded data that a measure needs; without them, its absence is not a change.
NEEDS = {"run": "scheduling", "runs": "scheduling", "collecting": "collections",
         "sent": "sends", "received": "deliveries", "started": "spawns", "crashes": "exits", "calls": "sends",
         "timeouts": "sends", "functions": "calls", "telemetry": "telemetry", "spans": "spans", "failures": ""}
TIMES = ("run", "collecting")
# The findings about durations, and the measures of these durations.
DURATIONS = {"slow_server": ("call_p50", "call_p99")}
# Counts that matter even if they are a small share.
ALWAYS = ("crashes", "timeouts", "failures")


def compared(before: Recorded, after: Recorded) -> Comparison:
    """Returns the changes, the largest first. The reports must be valid (`check`)."""
    is_single = max(len(before.nodes), len(after.nodes)) <= 1
    incomplete = before.incomplete | after.incomplete
    old, new = Numbers(before, is_single, incomplete), Numbers(after, is_single, incomplete)
    changes = [*count_changes(old, new), *quantile_changes(old, new), *level_changes(old, new)]
    return Comparison(sorted(changes, key=Change.rank),
                      [] if "findings" in incomplete else finding_changes(old, new),
                      len(old.keys() | new.keys()), sorted((before.kinds ^ after.kinds) & set(NEEDS.values())),
                      sorted(incomplete))


def count_changes(old: Numbers, new: Numbers) -> Iterator[Change]:
    """Returns the changes of counts and of times."""
    kinds = old.recorded.kinds & new.recorded.kinds
    for measure in sorted(old.counts.keys() | new.counts.keys()):
        if NEEDS[measure] and NEEDS[measure] not in kinds:
            continue
        of_old, of_new = old.counts.get(measure, {}), new.counts.get(measure, {})
        is_time = measure in TIMES
        least = SHARE_OF_TIME * 1e9 if is_time else 0 if measure in ALWAYS \
            else SHARE * max(sum(count.rate for count in of.values()) for of in (of_old, of_new))
        for key in sorted(of_old.keys() | of_new.keys()):
            before = of_old.get(key) or Count(0, 0, old.recorded.seconds(key[0], measure), 0)
            after = of_new.get(key) or Count(0, 0, new.recorded.seconds(key[0], measure), 0)
            # A node may have joined late, so that its deviations are unknown.
            if min(before.seconds, after.seconds) < SECONDS_LEAST:
                continue
            if counts_differ(before, after, is_time) and abs(after.rate - before.rate) >= least:
                unit = 1e-9 if is_time else 1
                yield change(measure, key, (before.rate * unit, before.samples), (after.rate * unit, after.samples))


def quantile_changes(old: Numbers, new: Numbers) -> Iterator[Change]:
    """Returns the changes of durations. That of the 99th percentile is listed only if the median has not changed."""
    changed: Set[Tuple[str, Key]] = set()
    for measure in sorted(old.quantiles.keys() & new.quantiles.keys()):
        kind = measure[:-len("_p50")]
        for key in sorted(old.quantiles[measure].keys() & new.quantiles[measure].keys()):
            before, after = old.quantiles[measure][key], new.quantiles[measure][key]
            longer = abs(after.ns - before.ns)
            matters = longer >= NS or longer * min(before.per_second, after.per_second) >= SHARE_OF_TIME * 1e9
            if matters and quantiles_differ(before, after) and (kind, key) not in changed:
                changed.add((kind, key))
                yield change(measure, key, (before.ns, before.samples), (after.ns, after.samples))


LEVELS_LEAST = {"memory": BYTES, "queue": QUEUE, "counter": NUMBER}


def level_changes(old: Numbers, new: Numbers) -> Iterator[Change]:
    """Returns the changes of sampled levels."""
    for measure in sorted(old.levels.keys() & new.levels.keys()):
        for key in sorted(old.levels[measure].keys() & new.levels[measure].keys()):
            before, after = old.levels[measure][key], new.levels[measure][key]
            unit = new.units.get(key, "") if measure == "counter" else MEASURES[measure].unit
            least = BYTES if unit == "bytes" else LEVELS_LEAST[measure]
            if levels_differ(before, after) and abs(after.mean - before.mean) >= least:
                yield change(measure, key, (before.mean, before.samples), (after.mean, after.samples), unit)


def change(measure: str, key: Key, before: Tuple[float, int], after: Tuple[float, int], unit: str = "") -> Change:
    """Returns a change of values, each with its samples."""
    of = MEASURES[measure]
    low, high = sorted((before[0], after[0]))
    word = of.more if after[0] > before[0] else of.less
    if not low and of.unit == "per_second":
        word = "new" if after[0] else "gone"
    return Change(of, *key, word, high / low if low else None, before[0], after[0], before[1], after[1],
                  unit or of.unit)


def finding_changes(old: Numbers, new: Numbers) -> List[FindingChange]:
    """Returns the findings that only one report has, or that have another severity. Of the findings of a rule about
    processes of the same name, the most severe one counts. If a report lacks processes, the initial calls of those
    without a name are unknown, so their findings are left out."""
    only_named = "processes" in old.recorded.incomplete | new.recorded.incomplete
    of_old, of_new = findings(old, only_named), findings(new, only_named)
    rows = []
    for key in dict.fromkeys([*of_new, *of_old]):
        was, now = of_old.get(key), of_new.get(key)
        if was and now:
            is_noise = was["severity"] == now["severity"]
        else:
            is_noise = durations_are_unchanged(key, old, new)
        if not is_noise:
            word = "new" if not was else "gone" if not now else "severity"
            rows.append(FindingChange(word, key.rule, was["severity"] if was else None,
                                      now["severity"] if now else None, (now or was or {})["text"]))
    return rows


def durations_are_unchanged(finding: FindingKey, old: Numbers, new: Numbers) -> bool:
    """Returns whether a finding is about the durations of calls to a server, and both reports have the same requests to
    it, with about the same durations and rates: then one report is just above the limit of the rule, the other below.
    """
    before, after = (durations(finding, of) for of in (old, new))
    if not before or before.keys() != after.keys():
        return False
    rates = [[of.counts.get("calls", {}).get(key) for of in (old, new)] for key in {key for _, key in before}]
    return not any(is_factor(before[row].ns, after[row].ns, FACTOR_OF_FINDING)
                   or quantiles_differ(before[row], after[row]) for row in before) \
        and all(was and now and not counts_differ(was, now) for was, now in rates)


def durations(finding: FindingKey, of: Numbers) -> Dict[Tuple[str, Key], Quantile]:
    """Returns the quantiles that a finding about a server is about, by measure and key."""
    return {(measure, key): quantile
            for measure in DURATIONS.get(finding.rule, ()) for key, quantile in of.quantiles.get(measure, {}).items()
            if key[0] == finding.node and key[1].startswith(f"{finding.process} ")}


def findings(of: Numbers, only_named: bool) -> Dict[FindingKey, Row]:
    """Returns the findings that are not low, by what they are about; a report lists the most severe first."""
    found: Dict[FindingKey, Row] = {}
    initial = {row["process"]["number"]: row["initial"] for row in of.recorded.report["processes"]}
    for row in of.recorded.report["findings"]:
        if not all(isinstance(row[name], str) for name in ("severity", "rule", "text")):
            raise TypeError("a finding has other texts")
        if row["severity"] == "low":
            continue
        process = row["process"] or {"name": "", "number": None, "node": ""}
        if row["process"] and only_named and not process["name"]:
            continue
        node = "" if of.is_single else str(process["node"])
        found.setdefault(FindingKey(row["rule"], node, process["name"] or initial.get(process["number"], "")), row)
    return found
