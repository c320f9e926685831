"""Levels as arguments of --when, and the samples that they are compared with."""
import os
import unittest
from typing import List, Tuple

from dyntrace_command.common.trigger_causes import parsed
from dyntrace_command.common.trigger_levels import Watched, examples, level
from dyntrace_command.host.cgroups import memory_limit
from dyntrace_command.host.process import Process


def fired(text: str, samples: List[Tuple[float, str, float]], limit: float = 0) -> List[Tuple[float, str]]:
    """Returns when a level matches these samples: (time, name, value)."""
    watched = Watched(level(text), limit or None)
    found = [(time, watched.note(name, value, time)) for time, name, value in samples]
    return [(time, text) for time, text in found if text]


class Arguments(unittest.TestCase):
    """The form of levels."""

    def test_filters(self) -> None:
        """The samples that each level needs."""
        for text, name, event, condition in [
                ("queue > 10000 for 5s", "queue", "process_sample", "queue > 10000"),
                ("cpu>90% for 10s", "cpu", "vm_counter", 'name == "scheduler_utilization_*"'),
                ("processes > 50000", "processes", "vm_counter", 'name == "processes"'),
                ("atoms > 80%", "atoms", "vm_counter", 'name == "atoms" || name == "atom_limit"'),
                ("memory > 80% for 5s", "memory", "vm_counter", 'name == "memory_total"'),
                ("run_queue > 8 for 3s", "run_queue", "vm_counter", 'name == "run_queue"'),
                ("silence > 5s", "silence", "vm_counter", 'name == "processes"')]:
            cause = parsed(text)
            assert cause and cause.level
            self.assertEqual((cause.name, cause.event, cause.filter), (name, event, condition))

    def test_mistakes(self) -> None:
        """The message names the mistake."""
        for text, message in [
                ("queue > many", "must be like `queue > 10000 for 5s`"),
                ("queue > 5 for 3", "must be like `queue > 10000 for 5s`"),
                ("mailbox > 5",
                 "'mailbox' must be one of memory, cpu, run_queue, processes, ports, atoms, queue, silence"),
                ("queue > 5%", "the unit of queue must be none"),
                ("cpu > 5", "the unit of cpu must be %"),
                ("memory > 5 TB", "the unit of memory must be one of %, kB, MB, GB"),
                ("silence > 5s for 3s", "silence has no `for`: write `silence > 5s`")]:
            with self.assertRaises(ValueError) as raised:
                parsed(text)
            self.assertEqual(str(raised.exception), message)
        for text in examples():
            self.assertTrue(level(text.strip("'").replace("N", "9")))


class Samples(unittest.TestCase):
    """When a level matches."""

    def test_lasts(self) -> None:
        """It has to last, and matches once until it ends."""
        values = [(0, 5), (1, 9), (2, 9), (3, 9), (4, 9), (5, 3), (6, 9), (7, 9), (8, 9)]
        samples = [(float(time), "run_queue", float(value)) for time, value in values]
        self.assertEqual(fired("run_queue > 8 for 2s", samples), [(3, "run_queue 9"), (8, "run_queue 9")])
        self.assertEqual(fired("run_queue > 8", samples), [(1, "run_queue 9"), (6, "run_queue 9")])

    def test_processes(self) -> None:
        """Each process has its own time; without samples, its queue was short."""
        samples = [(0.0, "<0.1.0>", 11.0), (1.0, "<0.2.0>", 11.0), (1.0, "<0.1.0>", 12.0), (2.0, "<0.1.0>", 13.0),
                   (3.0, "<0.2.0>", 14.0), (9.0, "<0.1.0>", 15.0), (10.0, "<0.1.0>", 16.0), (11.0, "<0.1.0>", 17.0)]
        self.assertEqual(fired("queue > 10 for 2s", samples),
                         [(2, "<0.1.0> queue 13"), (3, "<0.2.0> queue 14"), (11, "<0.1.0> queue 17")])

    def test_shares(self) -> None:
        """A share needs the limit; the CPUs are compared on average."""
        self.assertEqual(fired("atoms > 80%", [(0.0, "atoms", 900.0), (0.0, "atom_limit", 1000.0),
                                               (1.0, "atoms", 700.0), (2.0, "atoms", 810.0)]), [(2, "atoms 81%")])
        self.assertEqual(fired("memory > 50%", [(0.0, "memory_total", 4.0), (1.0, "memory_total", 6.0)], 10),
                         [(1, "memory 60%")])
        self.assertEqual(fired("memory > 1kB", [(0.0, "memory_total", 999.0), (1.0, "memory_total", 1001.0)]),
                         [(1, "memory 1.0 kB")])
        self.assertEqual(fired("cpu > 90%", [(0.0, "scheduler_utilization_1", 750.0),
                                             (0.0, "scheduler_utilization_2", 1000.0),
                                             (1.0, "scheduler_utilization_1", 900.0)]), [(1, "cpu 95%")])

    def test_silence(self) -> None:
        """It begins with the first sample, and is reported once."""
        watched = Watched(level("silence > 5s"))
        self.assertEqual(watched.silent(100), "")
        self.assertEqual(watched.note("processes", 1, 100), "")
        self.assertEqual([watched.silent(time) for time in (104, 106, 107)], ["", "no samples for 6 s", ""])
        watched.note("processes", 1, 108)
        self.assertEqual(watched.silent(114), "no samples for 6 s")

    def test_memory_limit(self) -> None:
        """It is at most the memory of the host."""
        host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertTrue(0 < memory_limit(Process(os.getpid())) <= host)


if __name__ == "__main__":
    unittest.main()
