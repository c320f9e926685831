"""Endless output of bpftrace."""
import contextlib
import io
import os
import signal
import subprocess
import tracemalloc
import unittest
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.tracers.bpftrace import Bpftrace, Messages, end_bpftrace


class Bounds(unittest.TestCase):
    """Endless output of bpftrace."""

    def test_line(self) -> None:
        """A line that is too long is a failure; any number of short lines is not."""
        reading, writing = os.pipe()
        with open(reading, "rb") as output, open(writing, "wb", buffering=0) as pipe:
            bpftrace = Bpftrace.__new__(Bpftrace)
            bpftrace.process = mock.Mock(stdout=output)
            bpftrace.pieces, bpftrace.size, bpftrace.lost = [], 0, 0
            with mock.patch("dyntrace_command.tracers.bpftrace.LINE_MOST", 100):
                for _ in range(5):
                    pipe.write(b"1" * 60 + b"\n" + b"2" * 20)
                    bpftrace.lines()
                with self.assertRaises(Failure) as raised:
                    pipe.write(b"1" * 90)
                    bpftrace.lines()
        self.assertIn("a line of its output has more than 100 bytes", raised.exception.text)

    def test_end(self) -> None:
        """What is printed while it ends is not kept. A job in the background ignores SIGINT; the script must not."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_DFL))
        script = "trap 'head -c 10000000 /dev/zero; exit 7' INT; echo; while :; do sleep 0.1; done"
        process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertEqual(7, end_bpftrace(process))
        self.assertLess(tracemalloc.get_traced_memory()[1], 2000000)

    def test_message(self) -> None:
        """A message without a newline is shown in pieces."""
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            messages = Messages()
            self.assertEqual(0, messages.start_with(["sh", "-c", "head -c 10000 /dev/zero >&2"]).wait())
            messages.end(failed=False)
        self.assertEqual([4096, 4096, 1808], [line.count("\\x00") for line in shown.getvalue().splitlines()])
