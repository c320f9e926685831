"""The counts and findings of a recording, taken from the report so that the terminal shows the same as every output
format: its events, the lost events, the findings, and the plugin's messages."""
import json
import re
import signal
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.execution import READ, Program, run
from dyntrace_command.recording.mirror import Mirror
from dyntrace_command.recording.rendering import said, view_command

# Seconds: a recording of a billion events takes about twelve minutes.
EXAMINED_S = 3600
# The width of a report.
COLUMNS = 120


class Examined(NamedTuple):
    """The numbers of events. `is_unknown`: an unknown number of events was lost in addition. `said`: the plugin's
    messages. `begin`: the time of the first event, in nanoseconds of the system's clock. `findings`: as text."""
    events: int
    lost: int
    is_unknown: bool
    said: List[str]
    begin: Optional[int] = None
    findings: str = ""

    def lost_text(self) -> str:
        """Returns the number of lost events as text."""
        return lost_text(self.lost, self.is_unknown)


def lost_text(lost: Optional[int], is_unknown: bool = False) -> str:
    """Returns a number of lost events as text."""
    if lost is None:
        return "?"
    if is_unknown:
        return f"more than {lost}" if lost else "an unknown number"
    return str(lost)


def examine(mirror: Mirror, give_up: Optional[Callable[[], object]] = None, params: Optional[Dict[str, str]] = None,
            page: Optional[Dict[str, str]] = None) -> Optional[Examined]:
    """Returns the counts of the recordings; None without babeltrace2 or its plugin, or if they can't be read in time.
    With the parameters of a page, writes the page in the same pass."""
    output, own = (page["path"], {**page, "report": "yes"}) if page else (None, {"format": "json"})
    try:
        command = view_command(mirror, output, {**own, **(params or {})})
    except Failure:
        return None
    # At this signal, the plugin leaves no partial page.
    done = run(Program(command, ends_at=signal.SIGINT), EXAMINED_S, errors=READ, give_up=give_up)
    if done.status != 0:
        return None
    try:
        return of_report(json.loads(done.output), said(mirror.as_typed(done.errors)))
    except (ValueError, KeyError, TypeError):
        return None


def of_report(report: Dict[str, Any], texts: List[str]) -> Examined:
    """Extracts the counts from a report in JSON, with the plugin's messages."""
    recording = report["recording"]
    return Examined(recording["events"], recording["lost_events"] or 0,
                    any(gap["count"] is None for gap in recording["lost"]), texts, recording.get("begin"),
                    findings_text(report["findings"]))


def findings_text(findings: List[Dict[str, str]]) -> str:
    """Returns the findings as the report shows them. Only the first one of a rule has its next step."""
    lines = ["Findings" if findings else "Findings: none"]
    shown = set()
    for one in findings:
        lines.append(wrapped(f"  {one['severity']:8}", one["text"]))
        if one["rule"] not in shown:
            lines.append(wrapped("          next: ", one["next"]))
        shown.add(one["rule"])
    return "\n".join(lines)


def wrapped(prefix: str, text: str) -> str:
    """Returns the text after a prefix, in lines that end between words or between the elements of a term, with further
    lines indented by the prefix's length."""
    lines, indent, rest, room = [], "", prefix + clean(text), COLUMNS
    while len(rest) > room:
        gaps = [gap.start() for gap in re.finditer(r" |(?<=,)(?!$)", rest[:room + 1])]
        end = gaps[-1] if gaps and gaps[-1] > room // 2 else room
        lines.append(indent + rest[:end])
        indent, rest, room = " " * len(prefix), rest[end:], COLUMNS - len(prefix)
        if rest.startswith(" "):
            rest = rest[1:]
    return "\n".join([*lines, indent + rest])
