"""The events that can be recorded, by group: names of LTTng events."""
import fnmatch
from typing import List, Sequence

from dyntrace_command.common.event_groups import GROUPS

# The provider of events that are named without one.
PROVIDER = "org_erlang_dyntrace"

# These are always recorded: output without names is useless, and so is output that hides what is missing.
NAMES, LIVES = GROUPS["names"], GROUPS["lives"]

# While these are recorded, the node limits what tracing costs it.
LIMITS = GROUPS["limits"]

# The events of names that require trace flags, and those for sampled processes, which do not.
TRACED_NAMES, SAMPLED_NAMES = ["process_identity", "port_identity"], GROUPS["sampled_names"]

# The groups to choose from.
EVENT_GROUPS = {group: events for group, events in GROUPS.items()
                if group not in ("names", "sampled_names", "limits", "lives")}

ALL = "all"

# Groups that the default leaves out: no finding needs them, and they are a third of the events of a busy node.
# message_receive has less information than message_delivery.
OF_ALL = ["port_scheduling", "receives"]

# `report` also leaves these out, except the sends, if the node is not connected to others. Deliveries are about half of
# the cost of a recording, and mostly follow from the sends and from when processes run. Messages from other nodes
# appear only as deliveries.
OF_CLUSTER = ["messages"]

# Groups with events of the functions that a node is configured to trace.
OF_FUNCTIONS = ["calls", "durations"]

# Groups that require no trace flags. A flight recorder records only these until a cause fires.
UNTRACED = ["requests", "annotations", "counters", "samples", "log", "vm"]

# Groups that `all` leaves out, too: no finding needs them, and they cost the node more than the events.
ON_REQUEST = ["durations", "drivers", "files", "memory"]


def of_groups(groups: Sequence[str]) -> List[str]:
    """Returns the events of these groups, one of which may be `all`; without groups, those of the default."""
    names = [name for group, names in EVENT_GROUPS.items() if is_of(group, groups) for name in names]
    return list(dict.fromkeys(names))


def of_report(is_alone: bool) -> List[str]:
    """Returns the default groups of `report`. `is_alone`: the node is not connected to others."""
    return [group for group in EVENT_GROUPS if is_of(group, []) and not (is_alone and group in OF_CLUSTER)]


def is_of(group: str, chosen: Sequence[str]) -> bool:
    """Returns whether the choice includes the group."""
    if not chosen:
        return group not in OF_ALL + ON_REQUEST
    return group in chosen or (ALL in chosen and group not in ON_REQUEST)


def full_name(event: str) -> str:
    """Returns the name of an event with its provider."""
    return event if ":" in event else f"{PROVIDER}:{event}"


def matching(pattern: str) -> List[str]:
    """Returns the events that match a pattern, possibly with a provider."""
    return fnmatch.filter(dict.fromkeys(event for events in GROUPS.values() for event in events), pattern)
