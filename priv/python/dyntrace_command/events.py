"""What may be recorded, by groups: names and patterns of LTTng's events."""
from typing import Iterable, List

EVENT_GROUPS = {
    "scheduling": ["process_scheduled", "port_scheduled"],
    "messages": ["message_send", "message_receive", "message_delivery"],
    "calls": ["function_*"],
    "files": ["file_*"],
    "gc": ["gc_*"],
    "ports": ["port_*", "org_erlang_otp:driver_*"],
    "requests": ["seq_trace_*"],
    "annotations": ["user_*"],
    "counters": ["vm_counter"],
    "samples": ["process_sample"],
    "log": ["log"],
    "vm": ["vm_long_*", "vm_large_*", "vm_busy_*", "node_up", "node_down"],
    "memory": ["org_erlang_otp:carrier_*"],
}

# Groups that are recorded only where they are named: pictures show nothing of them, and their sources cost something.
ON_REQUEST = ["files", "memory"]

# These are recorded always: a picture without names helps nobody, nor one that hides what it lacks.
NAMES = ["process_identity", "port_identity", "node_identity", "dump_*", "withheld"]
LIVES = ["process_spawn", "process_exit", "process_register", "process_link"]


def of_all() -> List[str]:
    """Returns the events that are recorded where no group is named: of the provider of trace events alone."""
    return [name for name in of_groups(group for group in EVENT_GROUPS if group not in ON_REQUEST) if ":" not in name]


def of_groups(groups: Iterable[str]) -> List[str]:
    """Returns the events of these groups."""
    return [name for group in groups for name in EVENT_GROUPS[group]]
