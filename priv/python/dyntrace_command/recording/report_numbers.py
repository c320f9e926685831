"""The numbers of a report (the JSON of viewer/summary/summary_json.c) that can be compared: counts, quantiles of
durations, and levels, each with what is known about its noise."""
import re
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from dyntrace_command.common.json_output import ROWS_LEFT_OUT

VERSION = 1
# Traced seconds of a recording: with fewer, the deviations of counts are unknown.
SECONDS_LEAST = 1.1
# Counters that are totals or limits, and those of single schedulers.
NOT_LEVELS = re.compile(r".*_\d+|.*_limit|cpu_quota|cpu_throttled|reductions|context_switches|gc_\w+|io_\w+")

# The table of the program's own spans.
SPANS = "spans"
# The tables that are compared; the findings of unnamed processes have their initial calls from `processes`.
COMPARED = {"totals", "servers", "telemetry", SPANS, "calls", "counters", "findings", "processes"}

Row = Dict[str, Any]
# A node, "" if there is only one, and a name.
Key = Tuple[str, str]


class Recorded(NamedTuple):
    """A report, and what it is of."""
    source: str
    report: Row

    @property
    def kinds(self) -> Set[str]:
        """Returns the kinds of recorded data."""
        return set(self.report["recording"]["kinds"])

    @property
    def incomplete(self) -> Set[str]:
        """Returns the tables that lack rows, because `dyntrace mcp` has shortened the report."""
        return COMPARED & set(self.report.get(ROWS_LEFT_OUT, {}))

    @property
    def nodes(self) -> List[str]:
        """Returns the names of the nodes."""
        return [str(row["node"]) for row in self.report["recording"]["nodes"]]

    @property
    def traced_seconds(self) -> float:
        """Returns the time in which processes were traced."""
        recording = self.report["recording"]
        return float((recording["seconds"] or 0) - recording["untraced_ns"] / 1e9)

    def seconds(self, node: str, table: str = "") -> float:
        """Returns the same of a node, of the only one for ""; of the recording if the node is unknown. Spans are
        recorded also while processes are not traced."""
        if table == SPANS:
            return float(self.report["recording"]["seconds"] or 0)
        rows = self.report["recording"]["nodes"]
        traced = sum(row["traced_ns"] for row in rows if node in (row["node"], "") and (node or len(rows) == 1)) / 1e9
        return float(traced or self.traced_seconds)


class Count(NamedTuple):
    """A number of events, or ns, with its standard deviation, in a time in seconds; `samples`: the events behind it."""
    total: float
    deviation: float
    seconds: float
    samples: int

    @property
    def rate(self) -> float:
        """Returns the number per second."""
        return self.total / self.seconds


class Quantile(NamedTuple):
    """A quantile in ns, the limits between which it is by its sample, and the durations behind it and per second."""
    ns: float
    lower: Optional[float]
    upper: Optional[float]
    samples: int
    per_second: float


class Level(NamedTuple):
    """Samples of a level."""
    mean: float
    most: float
    samples: int


def deviation_of(column: str) -> str:
    """Returns the column with the standard deviation of another one; a unit remains at the end."""
    return f"{column[:-3]}_deviation_ns" if column.endswith("_ns") else f"{column}_deviation"


class Numbers:
    """The numbers of a report by measure and key. `is_single`: there is only one node, so keys have none.
    `but`: the tables without which the report is read."""

    def __init__(self, recorded: Recorded, is_single: bool, but: Set[str]) -> None:
        self.recorded = recorded
        self.is_single = is_single
        self.counts: Dict[str, Dict[Key, Count]] = {}
        self.quantiles: Dict[str, Dict[Key, Quantile]] = {}
        self.levels: Dict[str, Dict[Key, Level]] = {}
        self.units: Dict[Key, str] = {}
        report = {**recorded.report, **{table: [] for table in but}}
        for row in report["totals"]:
            # Without a name, these are events before the names; and dyntrace's own processes work during a recording.
            if row["name"] and not row["name"].startswith("dyntrace_"):
                self.add_total(row)
        for row in report["servers"]:
            self.add_calls("call", "calls", row)
            self.quantile("call_work_p50", row, "worked_p50")
            self.count("timeouts", row, "timeouts")
        for table, measure in (("telemetry", "telemetry"), (SPANS, "span")):
            for row in report[table]:
                self.add_calls(measure, table, {**row, "table": table})
                self.count("failures", {**row, "table": table}, "failed")
        for row in report["calls"]:
            self.add_calls("function", "functions", row)
        for row in report["counters"]:
            if not NOT_LEVELS.fullmatch(row["name"]) and row["mean"] is not None:
                self.units[self.key(row)] = str(row["unit"])
                self.levels.setdefault("counter", {})[self.key(row)] = Level(
                    float(row["mean"]), float(row["max"]), row["samples"])

    def keys(self) -> Set[Tuple[str, Key]]:
        """Returns the measures with their keys."""
        found: Set[Tuple[str, Key]] = set()
        for measure, counts in self.counts.items():
            found.update((measure, key) for key in counts)
        for measure, quantiles in self.quantiles.items():
            found.update((measure, key) for key in quantiles)
        for measure, levels in self.levels.items():
            found.update((measure, key) for key in levels)
        return found

    def key(self, row: Row) -> Key:
        """Returns the key of a row: that of a server has its request."""
        name = f"{row['server']} {row['request']}" if "server" in row else row.get("entry") or row["name"]
        return "" if self.is_single else str(row.get("node", "")), str(name)

    def count(self, measure: str, row: Row, column: str, samples: str = "") -> None:
        """Adds a count, unless the recording does not have it. `samples` is the column of the events behind it, by
        default its own."""
        total, deviation = row[column], row.get(deviation_of(column), 0)
        if total is not None and deviation is not None:
            self.counts.setdefault(measure, {})[self.key(row)] = Count(
                float(total), float(deviation), self.recorded.seconds(row.get("node", ""), row.get("table", "")),
                row[samples or column])

    def quantile(self, measure: str, row: Row, column: str) -> None:
        """Adds a quantile, if there are durations. The prefix of its column is that of their number."""
        if row[f"{column}_ns"] is None:
            return
        durations = row[f"{column[:-len('p50')]}durations"]
        lower, upper = (None if limit is None else float(limit)
                        for limit in (row[f"{column}_lower_ns"], row[f"{column}_upper_ns"]))
        self.quantiles.setdefault(measure, {})[self.key(row)] = Quantile(
            float(row[f"{column}_ns"]), lower, upper, durations,
            durations / self.recorded.seconds(row.get("node", ""), row.get("table", "")))

    def add_calls(self, measure: str, counted: str, row: Row) -> None:
        """Adds a row with a count and durations."""
        self.count(counted, row, "count")
        self.quantile(f"{measure}_p50", row, "p50")
        self.quantile(f"{measure}_p99", row, "p99")

    def add_total(self, row: Row) -> None:
        """Adds what processes of a name did."""
        self.count("run", row, "run_ns", "runs")
        self.count("collecting", row, "collecting_ns", "collections")
        # The number of collections depends on the history of a heap; what matters is their time.
        for column in ("runs", "sent", "received", "started"):
            self.count(column, row, column)
        self.count("crashes", row, "crashed")
        if row["samples"]:
            for measure, unit in (("memory", "_bytes"), ("queue", "")):
                self.levels.setdefault(measure, {})[self.key(row)] = Level(
                    float(row[f"{measure}_mean{unit}"]), float(row[f"{measure}_max{unit}"]), row["samples"])


def check(recorded: Recorded) -> str:
    """Returns why a report can't be compared, or an empty text."""
    report = recorded.report
    if not isinstance(report, dict) or not isinstance(report.get("recording"), dict):
        return "it has no recording"
    if report.get("version") != VERSION:
        return f"it has version {report.get('version')!r} of the format, and this command reads version {VERSION}"
    if "totals" not in report or "servers" not in report:
        return "an earlier version of dyntrace wrote it, without the numbers that a comparison needs"
    if recorded.traced_seconds < SECONDS_LEAST:
        return f"processes were traced for {recorded.traced_seconds:.1f} s, and {SECONDS_LEAST} s are needed; record " \
            "longer, or with --full"
    return ""
