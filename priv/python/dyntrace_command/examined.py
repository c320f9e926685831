"""What a recording has, as the report counts it, so that the terminal says the numbers of every picture: its events,
those that were lost, and what the plugin says of it."""
import json
import re
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from dyntrace_command.execution import READ, Program, run
from dyntrace_command.mirror import Mirror
from dyntrace_command.terminal import clean
from dyntrace_command.tools import own_data


# Seconds: a recording of a billion events takes some twelve minutes.
EXAMINED_S = 3600


class Examined(NamedTuple):
    """The numbers of events; `is_unknown`: more were lost, and nobody knows how many. `said`: what the plugin says.
    `begin`: when the first event was, in nanoseconds of the system's clock."""
    events: int
    lost: int
    is_unknown: bool
    said: List[str]
    begin: Optional[int] = None

    def lost_text(self) -> str:
        """Returns the number of lost events for people."""
        return lost_text(self.lost, self.is_unknown)


def lost_text(lost: Optional[int], is_unknown: bool = False) -> str:
    """Returns a number of lost events for people."""
    if lost is None:
        return "?"
    if is_unknown:
        return f"more than {lost}" if lost else "an unknown number"
    return str(lost)


def examine(mirror: Mirror, give_up: Optional[Callable[[], object]] = None) -> Optional[Examined]:
    """Returns what the recordings have; None without babeltrace2 or its plugin, or if it can't read them in time."""
    if shutil.which("babeltrace2") is None:
        return None
    done = run(Program(["babeltrace2", f"--plugin-path={own_data('babeltrace2')}", *mirror.paths(),
                        "--component=sink.dyntrace.report", '--params=format="json",path="-"']),
               EXAMINED_S, errors=READ, give_up=give_up)
    if done.status != 0:
        return None
    try:
        return of_report(json.loads(done.output), said(mirror.as_typed(done.errors)))
    except (ValueError, KeyError, TypeError):
        return None


def of_report(report: Dict[str, Any], texts: List[str]) -> Examined:
    """Returns what a report in JSON says, with the texts of the plugin."""
    recording = report["recording"]
    return Examined(recording["events"], recording["lost_events"] or 0,
                    any(gap["count"] is None for gap in recording["lost"]), texts, recording.get("begin"))


def said(error: str) -> List[str]:
    """Returns what the plugin says to people on standard error: why there is nothing to show, that there are no
    names, and what to do."""
    texts = re.findall(r"^dyntrace: .*(?:\n  next: .*)?", error, re.M)
    return ["\n".join(map(clean, text.split("\n"))) for text in texts]
