"""What may make a flight recorder write: the causes of `--when`, as rules of LTTng's triggers."""
import fnmatch
import re
from typing import List, NamedTuple, Optional, Tuple

from dyntrace_command.common.events import EVENT_GROUPS, LIVES, NAMES, of_groups


class Cause(NamedTuple):
    """A cause: its name, which names of folders have; the event, with its provider or a pattern; a filter of LTTng, if
    not every such event is one; the fields that tell people what it was."""
    name: str
    event: str
    filter: str = ""
    fields: Tuple[str, ...] = ("pid",)


def none_of(field: str, *texts: str) -> str:
    """Returns a filter."""
    return " && ".join(f'{field} != "{text}"' for text in texts)


# Orderly ends; processes that another one has killed; files that `file:open` could not open; results of `erpc`, as
# texts and as shapes; ends of connections to other nodes. The pictures know more, such as who has killed it:
# viewer/model/entities/ends.c.
NO_CRASH = none_of("reason", "normal", "shutdown", "{shutdown,*", "killed", "enoent", "eacces", "eexist", "eisdir",
                   "enotdir", "{#Ref<*", "{reference(),*", "connection_closed", "disconnect", "remarked",
                   "net_kernel_terminated")
ERRORS = " || ".join(f'level == "{level}"' for level in ("error", "critical", "alert", "emergency"))

CAUSES = {cause.name: cause for cause in [
    Cause("crash", "process_exit", NO_CRASH, ("pid", "reason")),
    Cause("error", "log", ERRORS, ("pid", "text")),
    Cause("long_gc", "vm_long_gc"),
    Cause("long_schedule", "vm_long_schedule", "", ("id", "started", "stopped")),
    Cause("long_queue", "vm_long_message_queue", 'type == "long"'),
    Cause("busy_port", "vm_busy_*", "", ("pid", "port")),
]}

MARK = re.compile(r"mark:([\w.@:/-]{1,200})")
FILTERED = re.compile(r"(?:org_erlang_dyntrace:)?((?:\w+:)?\w+)\s*(?:/(.+)/)?", re.S)


def parsed(text: str) -> Optional[Cause]:
    """Returns the cause of a word of `--when`; None if it is none."""
    marked, filtered = MARK.fullmatch(text), FILTERED.fullmatch(text.strip())
    if marked:
        # Folders' names have no other letters.
        name = re.sub(r"[^\w.@-]", "_", marked.group(1), flags=re.ASCII)
        return Cause(f"mark-{name}", "user_mark", f'name == "{marked.group(1)}"', ("pid", "name", "text"))
    if text in CAUSES:
        return CAUSES[text]
    if filtered and is_recorded(filtered.group(1), [*NAMES, *LIVES, *of_groups(list(EVENT_GROUPS))]):
        return Cause(filtered.group(1).split(":")[-1], filtered.group(1), filtered.group(2) or "")
    return None


def is_recorded(event: str, patterns: List[str]) -> bool:
    """Returns whether one of these patterns has the event, or all events of its pattern."""
    return any(fnmatch.fnmatchcase(event, pattern) for pattern in patterns)
