"""Prints the notifications of LTTng triggers, each as a line of JSON: [name of the trigger, [captured texts]].

The arguments are the names of the triggers. It prints `null` once it has subscribed to them. It ends with the session
daemon, and the kernel ends it with the command. It is a separate program, because it runs as the daemon's user; it
imports nothing from this package, which that user may not be able to read. liblttng-ctl is present, because the program
`lttng` needs it.
"""
import ctypes
import json
import sys
import time
from typing import Any, List, Optional, Tuple

UNSIGNED, SIGNED, STRING, DROPPED, INTERRUPTED, ALREADY = 0, 1, 5, 1, 2, -3
NUMBERS = {UNSIGNED: ("lttng_event_field_value_unsigned_int_get_value", ctypes.c_uint64),
           SIGNED: ("lttng_event_field_value_signed_int_get_value", ctypes.c_int64)}
TEXT_MOST = 300

# A busy daemon may close a connection (seen with LTTng 2.16).
TRIES, BETWEEN_S = 5, 0.5


class Library:
    """liblttng-ctl, with opaque pointers."""

    def __init__(self) -> None:
        self.calls = ctypes.CDLL("liblttng-ctl.so.0")

    def do(self, name: str, *arguments: Any) -> int:
        """Calls a function that returns a status."""
        return int(self.calls[name](*arguments))

    def pointer(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls a function that returns a pointer."""
        called = self.calls[name]
        called.restype = ctypes.c_void_p
        return ctypes.c_void_p(called(*arguments))

    def through(self, name: str, kind: Any, *arguments: Any) -> Tuple[int, Any]:
        """Calls a function that returns a value through its last argument; returns (status, value)."""
        value = kind()
        return self.do(name, *arguments, ctypes.byref(value)), value

    def channel(self, names: List[str]) -> Optional[ctypes.c_void_p]:
        """Returns a notification channel of these triggers; None if the daemon lacks a trigger or refuses the
        channel."""
        endpoint = ctypes.c_void_p.in_dll(self.calls, "lttng_session_daemon_notification_endpoint")
        channel = self.pointer("lttng_notification_channel_create", endpoint)
        if channel and self.subscribe(channel, names) == len(names):
            return channel
        self.do("lttng_notification_channel_destroy", channel)
        return None

    def name_of(self, trigger: ctypes.c_void_p) -> str:
        """Returns a trigger's name."""
        _, name = self.through("lttng_trigger_get_name", ctypes.c_char_p, trigger)
        return (name.value or b"").decode("utf-8", "replace")

    def subscribe(self, channel: ctypes.c_void_p, names: List[str]) -> int:
        """Subscribes to the conditions of these triggers; returns how many there are."""
        _, triggers = self.through("lttng_list_triggers", ctypes.c_void_p)
        _, count = self.through("lttng_triggers_get_count", ctypes.c_uint, triggers)
        found = 0
        for index in range(count.value):
            trigger = self.pointer("lttng_triggers_get_at_index", triggers, index)
            if self.name_of(trigger) in names:
                condition = self.pointer("lttng_trigger_get_const_condition", trigger)
                found += self.do("lttng_notification_channel_subscribe", channel, condition) in (0, ALREADY)
        return found

    def captured(self, notification: ctypes.c_void_p) -> List[str]:
        """Returns the captured texts; a text is empty if the event does not have the field."""
        evaluation = self.pointer("lttng_notification_get_evaluation", notification)
        status, values = self.through("lttng_evaluation_event_rule_matches_get_captured_values", ctypes.c_void_p,
                                      evaluation)
        if status != 0:
            return []
        _, count = self.through("lttng_event_field_value_array_get_length", ctypes.c_uint, values)
        return [self.text(values, index) for index in range(count.value)]

    def text(self, values: ctypes.c_void_p, index: int) -> str:
        """Returns one of the captured values; an empty text if it is neither a string nor an integer."""
        status, value = self.through("lttng_event_field_value_array_get_element_at_index", ctypes.c_void_p, values,
                                     index)
        kind = self.do("lttng_event_field_value_get_type", value) if status == 0 else -1
        if kind in NUMBERS:
            return str(self.through(*NUMBERS[kind], value)[1].value)
        if kind != STRING:
            return ""
        _, text = self.through("lttng_event_field_value_string_get_value", ctypes.c_char_p, value)
        return (text.value or b"").decode("utf-8", "replace")[:TEXT_MOST]


def main(names: List[str]) -> str:
    """Prints notifications until the daemon ends; returns the reason as a message."""
    library = Library()
    for _ in range(TRIES):
        channel = library.channel(names)
        if channel:
            break
        time.sleep(BETWEEN_S)
    else:
        return "the session daemon does not accept a notification channel for the triggers"
    print("null", flush=True)
    while True:
        status, notification = library.through("lttng_notification_channel_get_next_notification", ctypes.c_void_p,
                                               channel)
        if status in (DROPPED, INTERRUPTED):
            continue
        if status != 0:
            return "the session daemon has ended"
        name = library.name_of(library.pointer("lttng_notification_get_trigger", notification))
        if name in names:
            print(json.dumps([name, library.captured(notification)]), flush=True)
        library.do("lttng_notification_destroy", notification)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
