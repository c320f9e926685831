"""A comparison of reports as a table, JSON, and a page."""
import html
from typing import Any, Callable, Dict, List, Sequence

from dyntrace_command.common.terminal import clean, plural, size
from dyntrace_command.recording.report_comparison import Change, Comparison, FindingChange
from dyntrace_command.recording.report_numbers import Recorded

HEADER = ["CHANGE", "WHAT", "OF", "BEFORE", "AFTER", "SAMPLES"]
FINDING_HEADER = ["FINDING", "SEVERITY", "TEXT"]


def duration(ns: float) -> str:
    """Returns a duration with a unit: `1.5 ms`."""
    for unit in ("ns", "us", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


SHOW: Dict[str, Callable[[float], str]] = {
    "per_second": lambda value: f"{value:.3g}/s" if value < 100 else f"{value:.0f}/s",
    "share": lambda value: f"{100 * value:.3g} %",
    "ns": duration,
    "bytes": size,
}


def shown(value: float, unit: str) -> str:
    """Returns a value with its unit."""
    return SHOW[unit](value) if unit in SHOW else f"{value:.3g}"


def cells(row: Change) -> List[str]:
    """Returns a row of the table."""
    factor = f"{row.factor:.3g}x " if row.factor else ""
    return [factor + row.change, row.measure.what, f"{row.node} {row.name}".strip(), shown(row.before, row.unit),
            shown(row.after, row.unit), f"{row.before_samples}, {row.after_samples}"]


def summary(comparison: Comparison) -> str:
    """Returns how many changes there are."""
    changes = plural(len(comparison.changes), "change") if comparison.changes else "no change"
    texts = [f"{changes} beyond noise in {plural(comparison.compared, 'number')} compared"]
    if comparison.not_compared:
        texts.append(f"recorded only once, so not compared: {', '.join(comparison.not_compared)}")
    if comparison.incomplete:
        texts.append(f"shortened by `dyntrace mcp`, so not compared: {', '.join(comparison.incomplete)}")
    return "; ".join(texts)


def table(comparison: Comparison) -> List[List[str]]:
    """Returns the table of changes, its header first."""
    return [HEADER] + [cells(row) for row in comparison.changes]


def finding_table(comparison: Comparison) -> List[List[str]]:
    """Returns the table of findings, its header first."""
    return [FINDING_HEADER] + [finding_cells(row) for row in comparison.findings]


def finding_cells(row: FindingChange) -> List[str]:
    """Returns a row of the table of findings."""
    severity = " -> ".join(filter(None, (row.before_severity, row.after_severity)))
    return [row.change, severity, row.text]


def as_json(before: Recorded, after: Recorded, comparison: Comparison) -> Dict[str, Any]:
    """Returns the comparison as values."""
    return {
        **{name: {"source": of.source, "nodes": of.nodes, "seconds": of.report["recording"]["seconds"],
                  "traced_seconds": round(of.traced_seconds, 9)}
           for name, of in (("before", before), ("after", after))},
        "changes": [{"change": row.change, "measure": row.measure.name, "node": row.node, "name": row.name,
                     "factor": row.factor, "unit": row.unit, "before": row.before, "after": row.after,
                     "before_samples": row.before_samples, "after_samples": row.after_samples}
                    for row in comparison.changes],
        "findings": [dict(row._asdict()) for row in comparison.findings],
        "compared": comparison.compared, "not_compared": comparison.not_compared,
        "incomplete": comparison.incomplete}


# -- As a page -------------------------------------------------------------------------------------------------------

# Nothing on the page is executed or loaded.
PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 1.5em; color-scheme: light dark; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ padding: .25em .8em; text-align: left; border-bottom: 1px solid #8884; overflow-wrap: anywhere; }}
.number {{ text-align: right; white-space: nowrap; }}
.more td:first-child {{ color: #c33; }}
.less td:first-child {{ color: #283; }}
</style>
<h1>{title}</h1>
{body}
</html>
"""


def page(before: Recorded, after: Recorded, comparison: Comparison) -> str:
    """Returns the page, with both recordings side by side."""
    both = (before, after)
    head = html_table(["", "BEFORE", "AFTER"], [
        ("", ["recording", *(of.source for of in both)]),
        ("", ["nodes", *(", ".join(of.nodes) for of in both)]),
        ("", ["traced", *(f"{of.traced_seconds:.1f} s" for of in both)])], 0)
    rows = html_table(HEADER, [("less" if row.rank()[0] else "more", cells(row)) for row in comparison.changes], 3)
    found = html_table(FINDING_HEADER, [("less" if row.change == "gone" else "more", finding_cells(row))
                                        for row in comparison.findings], 9)
    parts = [head, f"<p>{html.escape(summary(comparison))}</p>", rows if comparison.changes else "",
             f"<h2>Findings</h2>\n{found}" if comparison.findings else ""]
    return PAGE.format(title=html.escape(f"{before.source} and {after.source}"), body="\n".join(filter(None, parts)))


def html_table(header: Sequence[str], rows: Sequence[Any], numbers_from: int) -> str:
    """Returns a table. A row has a class and its cells; the columns from `numbers_from` on are numbers, if it is not
    0."""
    def line(tag: str, texts: Sequence[str], kind: str = "") -> str:
        marks = [' class="number"' if 0 < numbers_from <= at else "" for at in range(len(texts))]
        inner = "".join(f"<{tag}{mark}>{html.escape(clean(text))}</{tag}>" for mark, text in zip(marks, texts))
        return f'<tr class="{kind}">{inner}</tr>'
    return "\n".join(["<table>", line("th", header), *(line("td", texts, kind) for kind, texts in rows), "</table>"])
