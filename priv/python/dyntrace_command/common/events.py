"""What may be recorded, by groups: names and patterns of LTTng's events."""
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

# Groups that are left out where none is named: no finding needs them, and they have a third of the events of a busy
# node. message_receive tells less than message_delivery.
OF_ALL = ["port_scheduling", "receives"]

# `report` of a node without other nodes leaves these out as well, but for the sends: where processes send and run tells
# most of it, and deliveries are about half of what a recording costs. Deliveries alone tell what other nodes send.
OF_CLUSTER = ["messages"]

# Groups that `all` leaves out, too: no finding needs them, and the node does more than tell events for them.
ON_REQUEST = ["drivers", "files", "memory"]

# These are recorded always: a picture without names helps nobody, nor one that hides what it lacks.
NAMES = ["process_identity", "port_identity", "node_identity", "dump_*", "withheld"]
LIVES = ["process_spawn", "process_exit", "process_register", "process_link"]


def of_groups(groups: Sequence[str]) -> List[str]:
    """Returns the events of these groups, one of which may be `all`; where none is named, those of the default."""
    names = [name for group, names in EVENT_GROUPS.items() if is_of(group, groups) for name in names]
    return list(dict.fromkeys(names))


def of_report(is_alone: bool) -> List[str]:
    """Returns the groups of the default of `report`, for a node that is alone or is, or may be, one of several."""
    return [group for group in EVENT_GROUPS if is_of(group, []) and not (is_alone and group in OF_CLUSTER)]


def is_of(group: str, chosen: Sequence[str]) -> bool:
    """Returns whether the group is one of those chosen."""
    if not chosen:
        return group not in OF_ALL + ON_REQUEST
    return group in chosen or (ALL in chosen and group not in ON_REQUEST)
