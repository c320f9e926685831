"""The events that can be recorded, by group: names and patterns of LTTng events."""
from typing import List, Sequence

EVENT_GROUPS = {
    "scheduling": ["process_scheduled"],
    "port_scheduling": ["port_scheduled"],
    "messages": ["message_send", "message_delivery"],
    "sends": ["message_send"],
    "receives": ["message_receive"],
    "calls": ["function_*"],
    "files": ["file_*"],
    "gc": ["gc_*"],
    "ports": ["port_open", "port_exit", "port_link"],
    "drivers": ["org_erlang_otp:driver_*"],
    "requests": ["seq_trace_*"],
    "annotations": ["user_*"],
    "counters": ["vm_counter"],
    "samples": ["process_sample"],
    "log": ["log"],
    "vm": ["vm_long_*", "vm_large_*", "vm_busy_*", "node_up", "node_down"],
    "memory": ["org_erlang_otp:carrier_*"],
}

ALL = "all"

# Groups that the default leaves out: no finding needs them, and they are a third of the events of a busy node.
# message_receive has less information than message_delivery.
OF_ALL = ["port_scheduling", "receives"]

# `report` also leaves these out, except the sends, if the node is not connected to others. Deliveries are about half of
# the cost of a recording, and mostly follow from the sends and from when processes run. Messages from other nodes
# appear only as deliveries.
OF_CLUSTER = ["messages"]

# Groups that `all` leaves out, too: no finding needs them, and they cost the node more than the events.
ON_REQUEST = ["drivers", "files", "memory"]

# These are always recorded: output without names is useless, and so is output that hides what is missing.
NAMES = ["process_identity", "port_identity", "node_identity", "dump_*", "withheld"]
LIVES = ["process_spawn", "process_exit", "process_register", "process_link"]


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
