"""The causes of `--when`, at which a flight recorder writes a snapshot, as rules of LTTng triggers."""
import re
from typing import List, NamedTuple, Optional, Tuple

from dyntrace_command.common.events import PROVIDER, matching
from dyntrace_command.common.tables import rows
from dyntrace_command.common.trigger_levels import Level, is_level, level


class Cause(NamedTuple):
    """A cause: its name, which is also part of folder names; the event, possibly with a provider or as a pattern; an
    LTTng filter, if not every such event matches; the fields that describe the cause to users; the level with which
    the recorder compares the events, if it does."""
    name: str
    event: str
    filter: str = ""
    fields: Tuple[str, ...] = ("pid",)
    level: Optional[Level] = None


def none_of(field: str, texts: List[str]) -> str:
    """Returns a filter that excludes these texts."""
    return " && ".join(f'{field} != "{text}"' for text in texts)


# LTTng sees only the reason, so these reasons are left out for all processes.
NO_CRASH = none_of("reason", list(dict.fromkeys(reason for _, reason in rows("orderly_exits"))))
ERRORS = " || ".join(f'level == "{level}"' for level in ("error", "critical", "alert", "emergency"))

# The end of a node has no event: the recorder itself notices it.
END = "end"

# dyntrace:snapshot/1.
REQUESTED = Cause("snapshot", "user_mark", 'name == "snapshot"', ("pid", "text"))

# Replaces `crash` in a flight recorder that does not trace processes until a cause fires.
LOGGED_CRASH = Cause("crash", "crash_report", "", ("pid", "text"))

CAUSES = {cause.name: cause for cause in [
    Cause("crash", "process_exit", NO_CRASH, ("pid", "reason")),
    Cause("error", "log", ERRORS, ("pid", "text")),
    Cause("long_gc", "vm_long_gc"),
    Cause("long_schedule", "vm_long_schedule", "", ("id", "started", "stopped")),
    Cause("long_queue", "vm_long_message_queue", 'type == "long"'),
    Cause("busy_port", "vm_busy_*", "", ("pid", "port")),
    Cause(END, ""),
]}

MARK = re.compile(r"mark:([\w.@:/-]{1,200})")
FILTERED = re.compile(rf"(?:{PROVIDER}:)?((?:\w+:)?\w+)\s*(?:/(.+)/)?", re.S)


def parsed(text: str) -> Optional[Cause]:
    """Returns the cause for an argument of `--when`, or None if it is invalid; raises ValueError with the mistake in a
    level."""
    if is_level(text):
        found = level(text)
        return Cause(found.name, found.quantity.event, found.filter(), found.fields(), found)
    marked, filtered = MARK.fullmatch(text), FILTERED.fullmatch(text.strip())
    if marked:
        # Folder names have no other characters.
        name = re.sub(r"[^\w.@-]", "_", marked.group(1), flags=re.ASCII)
        return Cause(f"mark-{name}", "user_mark", f'name == "{marked.group(1)}"', ("pid", "name", "text"))
    if text in CAUSES:
        return CAUSES[text]
    if filtered and matching(filtered.group(1)):
        return Cause(filtered.group(1).split(":")[-1], filtered.group(1), filtered.group(2) or "")
    return None
