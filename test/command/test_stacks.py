"""What `dyntrace stacks` prints of a snapshot."""
import copy
import time
import unittest
from typing import Any, Dict, Iterator, List
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.node import why_untraced
from dyntrace_command.node.called_servers import CalledServers
from dyntrace_command.node.stack_snapshot import Captured, Snapshot, Stack
from dyntrace_command.node.stack_text import GROUPS, checked, notes, shown
from dyntrace_command.node.status import Status
from dyntrace_command.node.why_untraced import untraced

NODE: Any = mock.Mock(**{"show.return_value": "shop@host (7)", "isolated.return_value": 9})
SNAPSHOT: Dict[str, Any] = {
    "frames": [["shop:pay/1", "/src/shop.erl", 11], ["proc_lib:init_p/5", "", 0]],
    "processes": 3, "running": 1, "inconsistent": 0, "unread": 0, "more_groups": 0,
    "schedulers": [
        {"kind": "scheduler", "number": 1, "queue": 6, "process": "<0.90.0>", "name": "till", "stays": True,
         "seconds": 0.031, "thread": 12, "state": "S", "waits_in": "do_epoll_wait", "frames": [[0, 1]]}],
    "groups": [{"count": 2, "queue": 3, "longest": 3, "names": ["cart"], "pids": ["<0.91.0>", "<0.92.0>"],
                "servers": [["<0.93.0>", "stock", 1], ["<0.94.0>", None, 1]],
                "status": "waiting", "consistent": True, "frames": [[0, 2], [1, 1]]}]}


def printed(found: Any) -> List[str]:
    """All that is printed."""
    whole = checked(found, NODE)
    return [*shown(whole, NODE, ""), *notes(whole)]


def parts(found: Any) -> Iterator[Any]:
    """The objects of a snapshot."""
    yield from (found, found["schedulers"][0], found["groups"][0])


class Stacks(unittest.TestCase):
    """The text of a snapshot."""

    def test_text(self) -> None:
        """A scheduler, then a group of processes."""
        self.assertEqual([
            "stacks of shop@host (7): 3 processes", "",
            "scheduler 1, run queue 6: <0.90.0> till, waits in the kernel (do_epoll_wait), in the same call for at "
            "least 0.03 s",
            "    shop:pay/1  shop.erl:11", "",
            "2 waiting, 3 messages queued, at most 3 each: cart, <0.92.0>",
            "    awaits a reply from <0.93.0> stock (1), <0.94.0> (1)",
            "    shop:pay/1  shop.erl:11  (2 times)", "    proc_lib:init_p/5",
            "1 process was running: a running process has the stack that it saved last"],
            printed(copy.deepcopy(SNAPSHOT)))

    def test_awaited(self) -> None:
        """The server is named if only its caller is shown, although it is read before or after the caller."""
        pids = {1: "<0.91.0>", 2: "<0.93.0>", 3: "<0.94.0>"}
        processes = {pid: Captured(pid, 10 * pid, "waiting", True, 0, "", Stack(0, (), True), called)
                     for pid, called in ((1, (20,)), (2, ()), (3, (20,)))}
        for name, order in (("cart", (1, 2)), ("till", (2, 3))):
            snapshot: Any = Snapshot.__new__(Snapshot)
            structures = mock.Mock(pid=pids.get, atom={10: "cart", 20: "stock", 30: "till"}.get,
                                   **{"addresses.return_value": order})
            snapshot.wanted, snapshot.until, snapshot.structures = name, time.monotonic() + 60, structures
            snapshot.processes = snapshot.running = snapshot.inconsistent = 0
            snapshot.servers = CalledServers(mock.Mock(), mock.Mock(**{"bounds.return_value": (0, 1)}), structures)
            with mock.patch.object(Snapshot, "capture", lambda _, address: processes[address]):
                groups = list(snapshot.groups().values())
            self.assertEqual([([name], [("<0.93.0>", "stock", 1)])],
                             [(group["names"], snapshot.servers.most_called(group["servers"], 5)) for group in groups])

    def test_groups(self) -> None:
        """A terminal gets the first groups, a file all that were read."""
        found = copy.deepcopy(SNAPSHOT)
        found["groups"] = [{**SNAPSHOT["groups"][0], "names": [f"cart_{n}"]} for n in range(GROUPS + 2)]
        found["more_groups"] = 5
        whole = checked(found, NODE)
        heads = [line for line in shown(whole, NODE) if line.startswith("2 waiting")]
        self.assertEqual((GROUPS, True), (len(heads), heads[-1].endswith(f"cart_{GROUPS - 1}, <0.92.0>")))
        self.assertEqual("7 more groups; --json lists the largest", list(shown(whole, NODE))[-1])
        lines = list(shown(whole, NODE, is_file=True))
        self.assertIn(f"2 waiting, 3 messages queued, at most 3 each: cart_{GROUPS + 1}, <0.92.0>", lines)
        self.assertEqual("5 more groups", lines[-1])

    def test_untraced(self) -> None:
        """A node without events: its schedulers are busy while processes wait, or nothing is known."""
        def failure(found: Any, following: str = "on") -> str:
            with mock.patch.multiple(why_untraced, status_now=lambda _: Status([("following", following)]),
                                     read_schedulers=lambda _: copy.deepcopy(found)):
                return untraced(NODE, 6).text
        scheduler = SNAPSHOT["schedulers"][0]
        self.assertIn("nothing was traced within 6 s: 6 processes of shop@host (7) could run but waited for a "
                      "scheduler; running: <0.90.0> till in shop:pay/1\n", failure(SNAPSHOT))
        for many, text in ((2, "12 processes of shop@host (7)"), (3, "shop:pay/1 and 1 more\n")):
            self.assertIn(text, failure({**SNAPSHOT, "schedulers": [dict(scheduler) for _ in range(many)]}))
        hostile = {**scheduler, "stays": False, "queue": 1, "name": "\x1b[2J" * 1000, "process": "\x1b[3J" * 1000}
        text = failure({**SNAPSHOT, "schedulers": [hostile]})
        self.assertIn("1 process of shop@host (7)", text)
        self.assertEqual((False, True), ("\x1b" in text, len(text) < 3000))
        not_started = "the application dyntrace has not started"
        changes: List[Dict[str, Any]] = [{"queue": 0}, {"process": None}, {"kind": "dirty I/O scheduler"},
                                         {"queue": 10 ** 4000}]
        for change in changes:
            self.assertIn(not_started, failure({**SNAPSHOT, "schedulers": [{**scheduler, **change}]}))
        self.assertIn(not_started, failure({}))
        self.assertIn(not_started, failure(SNAPSHOT, "off"))

    def test_hostile_reader(self) -> None:
        """Whatever the child sends in place of a value, what is printed has no escapes."""
        for value in ("\x1b[2J", ["\x1b[2J"], [["\x1b[2J", "\x1b[2J", 1]], float("inf"), {}):
            for number, part in enumerate(parts(SNAPSHOT)):
                for key in part:
                    found = copy.deepcopy(SNAPSHOT)
                    list(parts(found))[number][key] = value
                    try:
                        text = "".join(printed(found))
                    except (Failure, TypeError):
                        continue
                    self.assertNotIn("\x1b", text, key)

    def test_missing_values(self) -> None:
        """The child may leave out any value; only the name of a process is optional."""
        for number, part in enumerate(parts(SNAPSHOT)):
            for key in set(part) - {"name", "thread"}:
                found = copy.deepcopy(SNAPSHOT)
                del list(parts(found))[number][key]
                with self.assertRaisesRegex(Failure, "no_stacks", msg=key):
                    printed(found)
