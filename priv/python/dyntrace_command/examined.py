"""What a recording has, as the report counts it, so that the terminal says the numbers of every picture: its events,
those that were lost, and whether its processes have names."""
import json
import shutil
import subprocess
from typing import Any, Dict, List, NamedTuple, Optional

from dyntrace_command.children import end_with_parent
from dyntrace_command.tools import own_data

NAMELESS = "dyntrace: the recording has no names of processes: the node has told none meanwhile\n" \
    "  next: record for some seconds more; if there are none then, in the node, let the option `probes` have " \
    "process_identity"


class Examined(NamedTuple):
    """The numbers of events; `is_unknown`: more were lost, and nobody knows how many. `has_names`: some process that
    was there before the recording has one, or there was none. `begin`: when the first event was, in nanoseconds of the
    system's clock."""
    events: int
    lost: int
    is_unknown: bool
    has_names: bool
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


def examine(folders: List[str]) -> Optional[Examined]:
    """Returns what the recordings have; None without babeltrace2 or its plugin, or if that can't read them."""
    if shutil.which("babeltrace2") is None:
        return None
    done = subprocess.run(["babeltrace2", f"--plugin-path={own_data('babeltrace2')}", *folders,
                           "--component=sink.dyntrace.report", '--params=format="json",path="-"'], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=end_with_parent)
    if done.returncode != 0:
        return None
    try:
        return of_report(json.loads(done.stdout.decode("utf-8", "replace")))
    except (ValueError, KeyError, TypeError):
        return None


def of_report(report: Dict[str, Any]) -> Examined:
    """Returns what a report in JSON says."""
    recording = report["recording"]
    earlier = [row for row in report["processes"] if row["began"] is None]
    return Examined(recording["events"], recording["lost_events"] or 0,
                    any(gap["count"] is None for gap in recording["lost"]),
                    not earlier or any(row["process"]["name"] or row["initial"] for row in earlier),
                    recording.get("begin"))
