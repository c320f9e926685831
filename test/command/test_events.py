"""Which events are recorded: the default, `all`, and groups by name."""
import unittest
from typing import Set

from dyntrace_command.cli.arguments import event_groups
from dyntrace_command.common.events import EVENT_GROUPS, of_groups, of_report

OF_ALL = {"port_scheduled", "message_receive"}
ON_REQUEST = {"org_erlang_otp:driver_*", "file_*", "org_erlang_otp:carrier_*"}
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
        self.assertEqual(events("all") | {"file_*"}, events("all,files"))

    def test_report(self) -> None:
        """For a node that is alone, no deliveries are recorded; each event occurs once."""
        self.assertEqual(of_groups([]), of_groups(of_report(False)))
        self.assertEqual(set(of_groups([])) - {"message_delivery"}, set(of_groups(of_report(True))))
        self.assertEqual(1, of_groups(["messages", "sends"]).count("message_send"))

    def test_named(self) -> None:
        """Only the named groups."""
        self.assertEqual({"message_receive", "gc_*"}, events("gc,receives"))


if __name__ == "__main__":
    unittest.main()
