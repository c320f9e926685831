"""The metrics of `dyntrace top --openmetrics`, and the server."""
import ipaddress
import os
import re
import socket
import time
import unittest
import urllib.error
import urllib.request
from typing import Any, Tuple
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.top import metrics, metrics_server
from dyntrace_command.top.from_samples import Process, Sampled
from dyntrace_command.top.metrics import COUNTERS, OTHERS, Metrics
from dyntrace_command.top.metrics_server import MetricsServer, url

PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

LOOPBACK = ipaddress.ip_address("127.0.0.1")


def frames(*names: str, **counters: int) -> Sampled:
    """A sample of processes with these names, the first of which is the busiest."""
    found = Sampled(mock.Mock(), None, False)
    for number, name in enumerate(names):
        found.names.of[f"<0.{number}.0>"] = name
        found.processes[f"<0.{number}.0>"] = Process(1000 - number, 1, 10, 0, "waiting", "")
    found.counters = counters
    return found


class Text(unittest.TestCase):
    """The text of a sample."""

    def test_counters(self) -> None:
        """Units, labels and types; unknown counters are left out. The older format names counters differently."""
        sample = frames(reductions=7, cpu_throttled=1500000, scheduler_utilization_12=250, run_queue_1=3, new_one=1,
                        memory_total=9, scheduler_utilization_=5)
        lines = Metrics("shop@vm", 9).text(sample, True).splitlines()
        self.assertEqual(['dyntrace_cpu_throttled_seconds_total{node="shop@vm"} 1.5',
                          'dyntrace_memory_bytes{node="shop@vm",kind="total"} 9',
                          'dyntrace_reductions_total{node="shop@vm"} 7',
                          'dyntrace_scheduler_utilization_ratio{node="shop@vm",kind="normal",scheduler="12"} 0.25'],
                         sorted(line for line in lines if line[0] != "#"))
        self.assertIn("# TYPE dyntrace_reductions counter", lines)
        self.assertEqual("# EOF", lines[-1])
        older = Metrics("shop@vm", 9).text(sample, False).splitlines()
        self.assertIn("# TYPE dyntrace_reductions_total counter", older)
        self.assertNotIn("# EOF", older)

    def test_documented(self) -> None:
        """Each counter of docs/counters.md has a metric of its kind, except the run queues of single schedulers."""
        with open(os.path.join(PROJECT, "docs", "counters.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (level|total) \|", file.read(), re.M)
        documented = {re.sub("_N$", "_", name): kind == "total" for name, kind in rows}
        del documented["run_queue_"]
        self.assertEqual(documented, {name: metric.is_counter for name, (metric, _) in COUNTERS.items()})

    def test_names(self) -> None:
        """Processes with one name are summed, within the number of rows."""
        text = Metrics("n", 2).text(frames("till", "cart", "till", "oven"), True)
        self.assertIn('dyntrace_process_reductions{node="n",name="till"} 1998\n', text)
        self.assertIn('dyntrace_process_samples{node="n",name="till"} 2\n', text)
        self.assertNotIn("oven", text)

    def test_bounded_names(self) -> None:
        """New names of a node that registers ever new ones share a value, however long the command runs."""
        with mock.patch.object(metrics, "NAMES_MOST", 3):
            shown = Metrics("n", 2)
            for number in range(10):
                text = shown.text(frames(f"worker_{number}", f"other_{number}"), True)
        self.assertIn(f'dyntrace_process_samples{{node="n",name="{OTHERS}"}} 2\n', text)
        self.assertEqual(4, len(shown.names))

    def test_hostile_names(self) -> None:
        """A name stays within its label."""
        text = Metrics("n", 2).text(frames('a"} 1\nb\\' + "x" * 1000), True)
        self.assertIn('name="a\\"} 1\\\\x0ab\\\\xxx', text)
        self.assertLess(len(text), 2000)


class Server(unittest.TestCase):
    """The HTTP server."""

    def setUp(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = MetricsServer((LOOPBACK, self.port))
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def get(self, accept: str = "") -> Tuple[int, str, str]:
        """Returns status, media type and body."""
        request = urllib.request.Request(url((LOOPBACK, self.port)), headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, "", error.reason

    def test_formats(self) -> None:
        """The format that the client asks for; none before the first sample."""
        self.assertEqual((503, "", "no recent sample"), self.get())
        self.server.update(lambda is_openmetrics: "new\n" if is_openmetrics else "old\n")
        self.assertEqual((200, metrics.PLAIN, "old\n"), self.get())
        self.assertEqual((200, metrics.OPENMETRICS, "new\n"), self.get("application/openmetrics-text;version=1.0.0"))
        with mock.patch.object(metrics_server, "STALE_S", -1):
            self.assertEqual((503, "", "no recent sample"), self.get())

    def test_slow_client(self) -> None:
        """A client that sends a byte at a time keeps others waiting for a limited time."""
        self.server.update(lambda _: "old\n")
        with mock.patch.object(metrics_server, "REQUEST_S", 0.3), \
                socket.create_connection(("127.0.0.1", self.port)) as slow:
            slow.sendall(b"G")
            time.sleep(0.1)
            slow.sendall(b"E")
            self.assertEqual(200, self.get()[0])

    def test_taken(self) -> None:
        """A port that is in use."""
        with self.assertRaises(Failure) as raised:
            MetricsServer((LOOPBACK, self.port))
        self.assertIn(f"can't listen on port {self.port} of 127.0.0.1", raised.exception.text)

    def test_url(self) -> None:
        """Addresses of both versions."""
        sixth: Any = ipaddress.ip_address("::1")
        self.assertEqual("http://[::1]:9568/metrics", url((sixth, 9568)))
