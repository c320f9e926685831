"""Which events are recorded: the default, `all`, and groups by name."""
import unittest
from typing import Set

from dyntrace_command.cli.arguments import event_groups
from dyntrace_command.common.events import EVENT_GROUPS, LIVES, NAMES, matching, of_groups, of_report

OF_ALL = {"port_scheduled", "message_receive"}
FILES = {"file_call", "file_return"}
ON_REQUEST = {"function_duration", *FILES, *matching("org_erlang_otp:driver_*"), *matching("org_erlang_otp:carrier_*")}
EVERY = {name for names in EVENT_GROUPS.values() for name in names}


def events(text: str) -> Set[str]:
    """The events for a value of --events."""
    return set(of_groups(event_groups(text)))


class Events(unittest.TestCase):
    """Groups of events."""

    def test_default(self) -> None:
        """The default contains everything that findings need."""
        self.assertEqual(EVERY - OF_ALL - ON_REQUEST, set(of_groups([])))

    def test_all(self) -> None:
        """`all` also works together with a group."""
        self.assertEqual(EVERY - ON_REQUEST, events("all"))
        self.assertEqual(events("all") | FILES, events("all,files"))

    def test_report(self) -> None:
        """For a node that is alone, no deliveries are recorded; each event occurs once."""
        self.assertEqual(of_groups([]), of_groups(of_report(False)))
        self.assertEqual(set(of_groups([])) - {"message_delivery"}, set(of_groups(of_report(True))))
        self.assertEqual(1, of_groups(["messages", "sends"]).count("message_send"))

    def test_named(self) -> None:
        """Only the named groups."""
        collections = {f"gc_{kind}_{end}" for kind in ("minor", "major") for end in ("start", "end")}
        self.assertEqual({"message_receive", *collections}, events("gc,receives"))

    def test_groups(self) -> None:
        """Names and lives are recorded always, so they are not to choose from."""
        self.assertEqual(EVERY & set(NAMES + LIVES), set())
        self.assertIn("process_exit", LIVES)
        self.assertIn("withheld", NAMES)

    def test_matching(self) -> None:
        """Events by name, by pattern, and of another provider only with its name."""
        self.assertEqual(["vm_busy_port", "vm_busy_dist_port"], matching("vm_busy_*"))
        self.assertEqual(["process_exit"], matching("process_exit"))
        self.assertEqual([], matching("driver_*"))
