"""The comparison of two reports: what is noise, what matters, the order of changes, texts and the page."""
import itertools
import random
import unittest
from typing import Any, Dict, List

from dyntrace_command.commands.compare import checked_comparison
from dyntrace_command.common.failures import Failure
from dyntrace_command.recording.comparison_tables import as_json, duration, finding_table, page, shown, summary, table
from dyntrace_command.recording.report_comparison import compared, counts_differ, levels_differ, quantiles_differ
from dyntrace_command.recording.report_numbers import Count, Level, Quantile, Recorded, check

KINDS = ["scheduling", "sends", "deliveries", "collections", "spawns", "exits", "calls", "telemetry", "spans"]
TOTALS = ("run_ns", "runs", "collecting_ns", "collections", "sent", "received", "started", "crashed")


def total(name: str, **numbers: Any) -> Dict[str, Any]:
    """The row of a name. Counts are steady, unless a deviation is given."""
    row = {"node": "shop@vm", "name": name, "samples": 0}
    for column in TOTALS:
        row[column] = numbers.get(column, 0)
        deviation = column[:-3] + "_deviation_ns" if column.endswith("_ns") else column + "_deviation"
        row[deviation] = numbers.get(deviation, 0)
    return {**row, **numbers}


def server(p50: float, spread: float, count: int = 1000) -> Dict[str, Any]:
    """The row of a server whose calls take so long."""
    row: Dict[str, Any] = {"node": "shop@vm", "server": "shop_db", "request": "{get,_}", "count": count,
                           "count_deviation": 0, "timeouts": 0}
    for prefix in ("", "worked_"):
        row[f"{prefix}durations"] = count
        for quantile in ("p50", "p99"):
            row.update({f"{prefix}{quantile}_ns": p50, f"{prefix}{quantile}_lower_ns": p50 - spread,
                        f"{prefix}{quantile}_upper_ns": p50 + spread})
    return row


def recorded(*totals: Dict[str, Any], seconds: float = 10, **tables: Any) -> Recorded:
    """A recording of one node."""
    recording = {"seconds": seconds, "untraced_ns": 0, "kinds": tables.pop("kinds", KINDS),
                 "nodes": [{"node": "shop@vm", "traced_ns": seconds * 1e9}]}
    return Recorded("shop", {"version": 1, "recording": recording, "totals": list(totals), "findings": [],
                             "processes": [], **{name: [] for name in ("servers", "calls", "telemetry", "spans",
                                                                       "counters")}, **tables})


def changes(before: Recorded, after: Recorded) -> List[Any]:
    """The changes as tuples."""
    return [(row.measure.name, row.name, row.change, row.factor and round(row.factor, 3))
            for row in compared(before, after).changes]


class Noise(unittest.TestCase):
    """The tests of single numbers."""

    def test_counts(self) -> None:
        """Five standard deviations, and a factor of 1.25."""
        for before, after, differ in [((100, 0, 10), (200, 0, 10), True), ((100, 0, 10), (150, 0, 10), False),
                                      ((0, 0, 10), (24, 0, 10), False), ((0, 0, 10), (25, 5, 10), False),
                                      ((0, 0, 10), (25, 0, 10), True), ((0, 0, 10), (40, 6, 10), True),
                                      ((10000, 0, 10), (12000, 0, 10), False), ((10000, 0, 10), (13000, 0, 10), True),
                                      # At the same rate, the lengths do not matter.
                                      ((1000, 0, 10), (100, 0, 1), False), ((1000, 0, 10), (200, 0, 1), True),
                                      # Bursts; smaller deviations.
                                      ((100, 40, 10), (200, 60, 10), False), ((1000, 50, 10), (2000, 90, 10), True)]:
            with self.subTest(before=before, after=after):
                self.assertEqual(counts_differ(Count(*before, 0), Count(*after, 0)), differ)
                self.assertEqual(counts_differ(Count(*after, 0), Count(*before, 0)), differ)

    def test_times(self) -> None:
        """Times have no deviation of their own, only that of the slices."""
        self.assertFalse(counts_differ(Count(1e9, 2e8, 10, 0), Count(2e9, 2e8, 10, 0), True))
        self.assertTrue(counts_differ(Count(1e9, 5e7, 10, 0), Count(2e9, 5e7, 10, 0), True))
        self.assertFalse(counts_differ(Count(1e9, 0, 10, 0), Count(1.4e9, 0, 10, 0), True))

    def test_random_processes(self) -> None:
        """Of 1,000 pairs of random counts with the same rate, none differs; with twice the rate, all do."""
        numbers = random.Random(1)

        def counted(rate: float) -> Count:
            slices = [sum(numbers.random() < rate / 1000 for _ in range(1000)) for _ in range(10)]
            mean = sum(slices) / 10
            deviation = (10 * sum((of - mean) ** 2 for of in slices) / 9) ** 0.5
            return Count(sum(slices), deviation, 10, 0)
        same = [counted(30) for _ in range(100)]
        twice = [counted(60) for _ in range(20)]
        self.assertEqual([], [(a, b) for a, b in zip(same, same[1:]) if counts_differ(a, b)])
        self.assertEqual([], [(a, b) for a, b in zip(same, twice) if not counts_differ(a, b)])

    def test_quantiles(self) -> None:
        """The limits must not overlap; without one, a few durations decide nothing."""
        base = Quantile(100, 90, 110, 100, 10)
        for other, differ in [(Quantile(200, 150, 250, 100, 10), True), (Quantile(200, 105, 250, 100, 10), False),
                              (Quantile(140, 130, 150, 100, 10), False), (Quantile(200, None, 250, 8, 1), False),
                              (Quantile(50, 40, 60, 100, 10), True), (Quantile(50, 40, None, 8, 10), False)]:
            self.assertEqual((quantiles_differ(base, other), quantiles_differ(other, base)), (differ, differ), other)

    def test_levels(self) -> None:
        """The mean must be above all samples of the other recording."""
        base = Level(100, 150, 10)
        for other, differ in [(Level(160, 170, 10), True), (Level(140, 400, 10), False), (Level(160, 170, 3), False),
                              (Level(160, 170, 7), False), (Level(260, 270, 7), True),
                              (Level(70, 80, 10), True), (Level(95, 99, 10), False)]:
            self.assertEqual((levels_differ(base, other), levels_differ(other, base)), (differ, differ), other)


class Compared(unittest.TestCase):
    """Whole reports."""

    def test_order(self) -> None:
        """Increases come first, then the largest factor; the measure decides between equals."""
        before = recorded(total("a", sent=1000, started=1000), total("b", sent=1000), total("c", sent=900),
                          servers=[server(1e6, 1e4)])
        after = recorded(total("a", sent=3000, started=3000), total("b", sent=100), total("d", crashed=50),
                         servers=[server(6e6, 1e4)])
        self.assertEqual([("crashes", "d", "new", None), ("call_work_p50", "shop_db {get,_}", "slower", 6.0),
                          ("call_p50", "shop_db {get,_}", "slower", 6.0), ("sent", "a", "more", 3.0),
                          ("started", "a", "more", 3.0), ("sent", "c", "gone", None), ("sent", "b", "fewer", 10.0)],
                         changes(before, after))
        self.assertEqual([], changes(after, after))
        self.assertEqual([], changes(recorded(total("", sent=1000), total("dyntrace_autotracer", sent=1000)),
                                     recorded()))

    def test_what_matters(self) -> None:
        """A small share of all messages, short times and small memory are not listed; crashes always are."""
        large = total("large", sent=100000, run_ns=5e9)
        small = {"run_ns": 1e6, "samples": 10, "memory_mean_bytes": 1e5, "memory_max_bytes": 1e5, "queue_mean": 1,
                 "queue_max": 1}
        grown = {"run_ns": 5e7, "samples": 10, "memory_mean_bytes": 5e5, "memory_max_bytes": 5e5, "queue_mean": 9,
                 "queue_max": 9}
        self.assertEqual([("crashes", "small", "new", None)],
                         changes(recorded(large, total("small", sent=100, **small)),
                                 recorded(large, total("small", sent=900, crashed=30, **grown))))
        self.assertEqual([("queue", "small", "larger", 100.0), ("memory", "small", "larger", 100.0)],
                         [change for change in changes(
                             recorded(total("small", **small)),
                             recorded(total("small", **{**grown, "memory_mean_bytes": 1e7, "queue_mean": 100})))
                          if change[0] != "run"][::-1])
        self.assertEqual([], changes(recorded(servers=[server(1e5, 1e3, 100)]),
                                     recorded(servers=[server(4e5, 1e3, 100)])))

    def test_pauses(self) -> None:
        """Rates are per traced second; those of spans, which are recorded in pauses, per second of the recording."""
        def paused(sent: int, spans: int, seconds: float, traced: float) -> Recorded:
            span = {"node": "shop@vm", "name": "checkout", "count": spans, "failed": spans // 10, "durations": 0}
            for quantile in ("p50", "p99"):
                span.update({f"{quantile}_ns": None, f"{quantile}_lower_ns": None, f"{quantile}_upper_ns": None})
            of = recorded(total("a", sent=sent), seconds=seconds, spans=[span])
            of.report["recording"]["nodes"][0]["traced_ns"] = traced * 1e9
            of.report["recording"]["untraced_ns"] = (seconds - traced) * 1e9
            return of
        self.assertEqual([], changes(paused(1000, 1000, 10, 10), paused(1000, 5000, 50, 10)))
        self.assertEqual([("spans", "checkout", "more", 5.0), ("failures", "checkout", "more", 5.0)],
                         sorted(changes(paused(1000, 1000, 10, 10), paused(1000, 25000, 50, 10)), reverse=True))

    def test_lengths_and_kinds(self) -> None:
        """Rates do not depend on the length. Kinds of one recording only are named, not listed as gone."""
        self.assertEqual([], changes(recorded(total("a", sent=1000)), recorded(total("a", sent=3000), seconds=30)))
        found = compared(recorded(total("a", sent=1000, received=1000)),
                         recorded(total("a", sent=1000, received=None),
                                  kinds=[kind for kind in KINDS if kind != "deliveries"]))
        self.assertEqual(([], ["deliveries"]), (found.changes, found.not_compared))
        self.assertIn("recorded only once, so not compared: deliveries", summary(found))

    def test_shortened(self) -> None:
        """Tables that lack rows are not compared, but named; nor are findings of processes whose kind is unknown."""
        def finding(name: str) -> Dict[str, Any]:
            return {"severity": "high", "rule": "crashes", "text": f"{name} crashed",
                    "process": {"name": name, "number": 7}}
        processes = [{"process": {"number": 7}, "initial": "shop:init/1"}]
        whole = recorded(total("a", sent=1000), servers=[server(1e6, 1e4)], processes=processes,
                         findings=[finding("shop"), finding("")])
        short = recorded(servers=[server(6e6, 1e4)], rows_left_out={"totals": 1, "processes": 1, "log": 3})
        for before, after, word, change in ((whole, short, "slower", "gone"), (short, whole, "faster", "new")):
            found = compared(before, after)
            self.assertEqual({("call_work_p50", word), ("call_p50", word)},
                             {(row.measure.name, row.change) for row in found.changes})
            self.assertEqual([(change, "shop crashed")], [(row.change, row.text) for row in found.findings])
            self.assertEqual(["processes", "totals"], as_json(before, after, found)["incomplete"])
            self.assertIn("shortened by `dyntrace mcp`, so not compared: processes, totals", summary(found))
        short = recorded(rows_left_out={"findings": 1})
        self.assertEqual([], compared(whole, short).findings)
        damaged = recorded(rows_left_out=7)
        self.assertRaises(Failure, checked_comparison, whole, damaged)

    def test_nodes(self) -> None:
        """Nodes are compared by name if one of the recordings has several. Those traced too briefly are not compared,
        because they have no deviations."""
        def beside(seconds: float) -> Recorded:
            of = recorded(total("a", sent=1000), total("b", node="till@vm", sent=1000, sent_deviation=None))
            of.report["recording"]["nodes"].append({"node": "till@vm", "traced_ns": seconds * 1e9})
            return of
        of_both = recorded(total("a", sent=1000), total("b", node="till@vm", sent=1000))
        of_both.report["recording"]["nodes"].append({"node": "till@vm", "traced_ns": 10e9})
        for late in (beside(0.4), beside(1)):
            self.assertEqual(([], []), (changes(of_both, late), changes(late, of_both)))
        single = recorded(total("a", sent=1000))
        self.assertEqual([("sent", "b", "new", None)], changes(single, of_both))
        # Of the only node, which was traced briefly: a recording of the machine is longer.
        brief = recorded(total("a", sent=100, sent_deviation=None))
        brief.report["recording"]["nodes"][0]["traced_ns"] = 4e8
        self.assertEqual(([], []), (changes(single, brief), changes(brief, single)))

    def test_findings(self) -> None:
        """Findings that are new, gone or of another severity, by rule and name; not by pid or text. A healthy system
        has low ones, too."""
        def finding(rule: str, severity: str, name: str, text: str = "text") -> Dict[str, Any]:
            return {"rule": rule, "severity": severity, "text": text, "process": {"name": name, "number": 1}}
        found = compared(recorded(findings=[finding("busy", "medium", "a"), finding("queue", "high", "a"),
                                            finding("crash", "high", "b", "<0.1.0> b")]),
                         recorded(findings=[finding("busy", "high", "a"), finding("memory", "medium", "c"),
                                            finding("wait", "low", "c"),
                                            finding("crash", "high", "b", "<0.9.0> b")]))
        self.assertEqual([("severity", "busy", "medium", "high"), ("new", "memory", None, "medium"),
                          ("gone", "queue", "high", None)],
                         [(row.change, row.rule, row.before_severity, row.after_severity) for row in found.findings])
        self.assertEqual(["severity", "medium -> high", "text"], finding_table(found)[1])

    def test_near_limit(self) -> None:
        """A server that is slow in one of the recordings is listed if its requests, their durations or rates differ."""
        def slow(node: str = "shop@vm", severity: str = "medium") -> Dict[str, Any]:
            return {"rule": "slow_server", "severity": severity, "text": "text",
                    "process": {"name": "shop_db", "number": 1, "node": node}}

        def of(p50: float, p99: float, **other: Any) -> Dict[str, Any]:
            return {**server(p50, p50 / 10), "p99_ns": p99, "p99_lower_ns": p99 / 2, "p99_upper_ns": None, **other}
        base = of(2e6, 8e6)
        reported: Dict[str, Any] = {**base, "request": "{report,_}"}
        for name, before, after, is_listed in [
                ("near the limit", [base], [of(2e6, 12e6)], False),
                ("p99 by a factor", [base], [of(2e6, 30e6)], True),
                ("p50 by a factor", [base], [of(4e6, 12e6)], True),
                ("another server", [base], [of(2e6, 12e6, server="shop_db_2")], True),
                ("no calls before", [], [of(2e6, 12e6)], True),
                ("a slow request is new", [base], [base, of(5e8, 5e8, request="{report,_}")], True),
                ("a slow request is more frequent", [base, {**reported, "p50_ns": 5e8, "count": 2}],
                 [base, {**reported, "p50_ns": 5e8, "count": 500}], True),
                ("p99 is new", [{**base, "p99_ns": None}], [of(2e6, 5e8)], True)]:
            with self.subTest(name=name):
                one, other = recorded(servers=before), recorded(servers=after, findings=[slow()])
                for was, now, word in ((one, other, "new"), (other, one, "gone")):
                    self.assertEqual([word] if is_listed else [], [row.change for row in compared(was, now).findings])
        # More severe, and the same name on a node that has joined.
        one, other = (recorded(servers=[base], findings=[slow(severity=severity)]) for severity in ("medium", "high"))
        self.assertEqual(["severity"], [row.change for row in compared(one, other).findings])
        other = recorded(servers=[base, {**base, "node": "till@vm"}], findings=[slow("till@vm")])
        other.report["recording"]["nodes"].append({"node": "till@vm", "traced_ns": 1e10})
        self.assertEqual(["new"], [row.change for row in compared(recorded(servers=[base]), other).findings])

    def test_check(self) -> None:
        """What can't be compared."""
        self.assertEqual("", check(recorded()))
        self.assertIn("traced for 0.5 s", check(recorded(seconds=0.5)))
        self.assertIn("version 2", check(Recorded("x", {**recorded().report, "version": 2})))

    def test_damaged(self) -> None:
        """Values of other types are damage, or are shown as text; they do not end the command with an exception."""
        def finding(text: Any, severity: Any = "high") -> Dict[str, Any]:
            return {"rule": "busy", "severity": severity, "text": text, "process": {"name": "a", "number": 1}}
        level: Dict[str, Any] = {"samples": 10, "memory_mean_bytes": 1e8, "memory_max_bytes": 1e8, "queue_mean": 1,
                                 "queue_max": 1}
        counter: Dict[str, Any] = {"node": "", "name": "memory", "unit": "bytes", "mean": 1e8, "max": 1e8,
                                   "samples": 10}
        base = recorded(total("a", **level), counters=[counter])
        for bad in (recorded(findings=[finding(7)]), recorded(findings=[finding("text", True)]),
                    recorded(total("a", **{**level, "memory_mean_bytes": [[]]})),
                    recorded(counters=[{**counter, "max": {}}])):
            with self.assertRaises(Failure):
                checked_comparison(base, bad)
        odd = recorded(telemetry=[{**server(1e6, 1e4), "name": name, "failed": 0} for name in (7, "a")],
                       counters=[{**counter, "unit": [], "mean": 1e9, "max": 1e9}])
        odd.report["recording"]["nodes"][0]["node"] = 7
        for one, other in itertools.permutations((base, odd)):
            found = checked_comparison(one, other)
            self.assertTrue(table(found) and as_json(one, other, found) and page(one, other, found))

    def test_texts(self) -> None:
        """Values have units; recorded names are escaped on the page."""
        self.assertEqual(["999 ns", "1.5 us", "12.3 ms", "3.2 s"], [duration(ns) for ns in (999, 1500, 12.34e6, 3.2e9)])
        self.assertEqual(["12.3/s", "1234/s", "15 %", "1.0 MB", "7"],
                         [shown(*value) for value in ((12.34, "per_second"), (1234.1, "per_second"), (.15, "share"),
                                                      (1e6, "bytes"), (7, "messages"))])
        before, after = recorded(total("<b>", sent=1000)), recorded(total("<b>", sent=2000))
        found = compared(before, after)
        self.assertEqual(["2x more", "messages sent", "<b>", "100/s", "200/s", "1000, 2000"], table(found)[1])
        text = page(before, after, found)
        self.assertIn("<td>&lt;b&gt;</td>", text)
        self.assertNotIn("<b>", text)
        self.assertEqual((1000, 2000), tuple(as_json(before, after, found)["changes"][0][f"{side}_samples"]
                                             for side in ("before", "after")))


if __name__ == "__main__":
    unittest.main()
