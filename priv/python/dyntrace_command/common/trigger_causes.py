"""The causes of `--when`, at which a flight recorder writes a snapshot, as rules of LTTng triggers."""
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common import functions
from dyntrace_command.common.contents import hide
from dyntrace_command.common.events import PROVIDER, matching
from dyntrace_command.common.tables import rows
from dyntrace_command.common.trigger_levels import Level, is_level, level


# A field of function_duration, which is shown in milliseconds.
DURATION = "duration"
# Fields that are shown only if another field is empty.
INSTEAD = {"text": "reason", "initial": "name"}


class Cause(NamedTuple):
    """A cause: its name, which is also part of folder names; the event, possibly with a provider or as a pattern; an
    LTTng filter, if not every such event matches; the fields that describe the cause to users; the level with which
    the recorder compares the events, if it does; the function whose calls the node has to trace, if any: then only the
    matching events are recorded."""
    name: str
    event: str
    filter: str = ""
    fields: Tuple[str, ...] = ("pid",)
    level: Optional[Level] = None
    function: Optional[functions.Function] = None

    def text(self, values: Sequence[str]) -> str:
        """Returns a description without contents. Any program of the node's user may have written the values."""
        shown = {field: value for field, value in zip(self.fields, values) if value}
        return " ".join(milliseconds(value) if field == DURATION else hide(value) for field, value in shown.items()
                        if INSTEAD.get(field) not in shown)


def milliseconds(value: str) -> str:
    """Returns a duration in nanoseconds as a text."""
    if not re.fullmatch(r"\d{1,20}", value, re.ASCII):
        return ""
    number = int(value) / 1e6
    return f"{number:.3g} ms" if number < 999.5 else f"{number:.0f} ms"


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
LOGGED_CRASH = Cause("crash", "crash_report", "", ("pid", "name", "initial", "reason", "text"))

CAUSES = {cause.name: cause for cause in [
    Cause("crash", "process_exit", NO_CRASH, ("pid", "reason")),
    Cause("error", "log", ERRORS, ("pid", "text")),
    Cause("long_gc", "vm_long_gc"),
    Cause("long_schedule", "vm_long_schedule", "", ("id", "started", "stopped")),
    Cause("long_queue", "vm_long_message_queue", 'type == "long"'),
    Cause("busy_port", "vm_busy_*", "", ("pid", "port")),
    Cause(END, ""),
]}

NS = {"us": 10 ** 3, "ms": 10 ** 6, "s": 10 ** 9}
CALL = "call:"
LONG_CALL = re.compile(r"call:(\S+)\s*>\s*(\d{1,9}(?:\.\d{1,6})?)\s*(us|ms|s)", re.ASCII)

# The maximum length of a cause's name, which is a part of a folder's name.
NAME_MOST = 200
MARK = re.compile(rf"mark:([\w.@:/-]{{1,{NAME_MOST}}})")
FILTERED = re.compile(rf"(?:{PROVIDER}:)?((?:\w+:)?\w+)\s*(?:/(.+)/)?", re.S)


def parsed(text: str) -> Optional[Cause]:
    """Returns the cause for an argument of `--when`, or None if it is invalid; raises ValueError with the mistake in a
    level or a call."""
    if text.startswith(CALL):
        return long_call(text)
    if is_level(text):
        found = level(text)
        return Cause(found.name, found.quantity.event, found.filter(), found.fields(), found)
    marked, filtered = MARK.fullmatch(text), FILTERED.fullmatch(text.strip())
    if marked:
        name = marked.group(1)
        return Cause(f"mark-{folder_name(name)}", "user_mark", f'name == "{name}"', ("pid", "name", "text"))
    if text in CAUSES:
        return CAUSES[text]
    if filtered and matching(filtered.group(1)):
        return Cause(filtered.group(1).split(":")[-1], filtered.group(1), filtered.group(2) or "")
    return None


def long_call(text: str) -> Cause:
    """Returns the cause for `call:MODULE:FUNCTION/ARITY > 500ms`; raises ValueError with the mistake."""
    found = LONG_CALL.fullmatch(text.strip())
    function = functions.parsed(found.group(1)) if found else None
    if not found or not function:
        raise ValueError("must be like `call:shop_cart:add/2 > 500ms`, with us, ms or s")
    limit = round(float(found.group(2)) * NS[found.group(3)])
    name = folder_name(function.show().replace("'", "").replace("/", "-"))[:NAME_MOST]
    return Cause(f"call-{name}", "function_duration", f"({functions.event_filter([function])}) && {DURATION} > {limit}",
                 ("pid", "entry", DURATION), function=function)


def folder_name(text: str) -> str:
    """Returns the text with only those characters that names of folders may have."""
    return re.sub(r"[^\w.@-]", "_", text, flags=re.ASCII)
