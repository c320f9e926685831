"""What the processes of recorded nodes did at the end of the recording, by their stacks, for the findings.

A child of this command reads each node's memory: samples of the running processes until the end, and then all
processes. CPU samples of a process are exact, so they replace the other samples. The result is a parameter of the
viewer and a file of the recording, with a line for all processes of a node that did the same:

    NODE <tab> its process number, in its own namespace <tab> kind <tab> what they did <tab> PID PID ...

A node whose stacks can't be read has no lines, and there is no message: its findings name no functions.
"""
import contextlib
import os
import re
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.outputs import quoted
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import closing
from dyntrace_command.host.process import Identity
from dyntrace_command.host.sandbox import Child, check_same, identity_for
from dyntrace_command.host.trees import read_below
from dyntrace_command.node.node import Node
from dyntrace_command.node.stack_places import RAN, RUNS, SNAPSHOT_S, WAITS, Clause, StackPlaces

# The file in the folder of a recording, beside LTTng's.
FILE = "stacks.tsv"
# Bytes of all lines, as an argument of babeltrace2, of which the kernel allows 128 KiB; characters of a clause.
LINES_MOST, CLAUSE_MOST = 100000, 300
# Seconds before the end at which sampling of memory and of the CPUs begins: bpftrace needs some seconds to start. Nodes
# whose CPUs are sampled.
SAMPLED_S, PROFILED_S, PROFILED_MOST = 3.0, 6.5, 2
# Seconds for a child to find the VM's structures, and of CPU time.
FIND_S, READ_S = 5.0, 30.0
# Bytes of a child's answer.
ANSWER_MOST = 8 << 20
PID = re.compile(r"<0\.\d{1,10}\.\d{1,10}>", re.ASCII)
LINE = re.compile(rf"[^\t]{{1,255}}\t\d{{1,10}}\t({RAN}|{RUNS}|{WAITS})\t[^\t]{{1,{CLAUSE_MOST}}}"
                  rf"\t{PID.pattern}( {PID.pattern})*", re.ASCII)


class Reading(NamedTuple):
    """A child that reads a node: the node's process number in its namespace, and its identity."""
    node: Node
    number: int
    identity: Optional[Identity]
    child: Child


class Sampler:
    """Samples the CPUs of a node."""

    def poll(self) -> None:
        """Takes the samples that have arrived; to be called several times per second."""

    def clauses(self) -> List[Tuple[Clause, List[str]]]:
        """Returns clauses about the busiest processes, each with the pids."""
        return []

    def close(self) -> None:
        """Ends the sampling."""


def no_sampler(_: Node) -> Optional[Sampler]:
    """Samples nothing."""
    return None


class ProcessStacks:
    """The children that read the nodes of a recording."""

    def __init__(self, nodes: Sequence[Node], sampler: Callable[[Node], Optional[Sampler]] = no_sampler) -> None:
        self.nodes = [node for node in nodes if not node.without_stacks()]
        self.readings: Dict[int, Reading] = {}
        # Begins to sample the CPUs of a node, if that is possible; the samplers, None before.
        self.sampler = sampler
        self.samplers: Optional[Dict[int, Sampler]] = None

    def __enter__(self) -> "ProcessStacks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the children and the samplers."""
        self.stop_reading()
        for sampler in (self.samplers or {}).values():
            sampler.close()
        self.samplers = {}

    def stop_reading(self) -> None:
        """Ends the children."""
        for reading in self.readings.values():
            reading.child.end()
        self.readings.clear()

    def sample(self, left: float) -> None:
        """Begins to sample when few enough seconds are left until the end."""
        if self.samplers is None and left <= PROFILED_S:
            found = [(node.pid, self.sampler(node)) for node in self.nodes[:PROFILED_MOST]]
            self.samplers = {pid: sampler for pid, sampler in found if sampler}
        if not self.readings and left <= SAMPLED_S:
            self.begin(time.monotonic() + left)

    def poll(self) -> None:
        """Takes samples; to be called several times per second."""
        for sampler in (self.samplers or {}).values():
            sampler.poll()

    def begin(self, until: float) -> None:
        """Starts the children, which sample until this monotonic time, and then read all processes."""
        for node in self.nodes:
            with contextlib.suppress(OSError, ValueError):
                identity, number = identity_for(node.process), node.process.inner_pid()
                child = Child(identity, places_of(node, until), READ_S)
                self.readings[node.pid] = Reading(node, number, identity, child)

    def end(self, is_early: bool) -> None:
        """Begins to read all processes, if that has not begun; `is_early`: before the end that `sample` was given."""
        if is_early:
            self.stop_reading()
        if not self.readings:
            self.begin(0)

    def text(self) -> str:
        """Returns the lines; waits for the children."""
        deadline = time.monotonic() + FIND_S + SNAPSHOT_S
        lines: List[str] = []
        for reading in self.readings.values():
            with contextlib.suppress(Failure, OSError, ValueError, KeyError, TypeError, AttributeError):
                answer = reading.child.receive(deadline, ANSWER_MOST)
                check_same(reading.node.process, reading.identity)
                clauses = [*self.exact(reading.node), *(answer.value["clauses"] if answer else [])]
                lines += bounded(lines_of(reading, clauses), LINES_MOST // len(self.nodes))
        self.close()
        return "\n".join(lines)

    def exact(self, node: Node) -> List[Tuple[str, str, List[str]]]:
        """Returns the clauses from samples of the CPUs. The viewer uses the first line of a kind about a process."""
        sampler = (self.samplers or {}).get(node.pid)
        return [(*clause, pids) for clause, pids in sampler.clauses()] if sampler else []


def places_of(node: Node, until: float) -> Any:
    """Returns the function of a child that reads a node."""
    return lambda: [StackPlaces(node.inside).found(until)]


def lines_of(reading: Reading, clauses: Sequence[Any]) -> Iterator[str]:
    """Yields the lines of a node. The child may have sent anything."""
    for kind, text, pids in clauses:
        yield "\t".join([clean(reading.node.node), str(reading.number), str(kind), clean(str(text))[:CLAUSE_MOST],
                         " ".join(map(str, pids))])


def bounded(lines: Iterator[str], most: int) -> Iterator[str]:
    """Yields the valid ones of these lines, up to that many bytes."""
    for line in lines:
        if LINE.fullmatch(line) and line == "\t".join(map(clean, line.split("\t"))):
            most -= len(quoted(line).encode()) + 1
            if most < 0:
                return
            yield line


def save(folder: str, text: str) -> None:
    """Writes the lines into the folder of a recording, which may belong to the daemon's user."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with contextlib.suppress(OSError), closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)) as place:
        with open(os.open(FILE, flags, 0o600, dir_fd=place), "w", encoding="utf-8") as file:
            os.fchown(file.fileno(), os.fstat(place).st_uid, -1)
            file.write(text)


def params_of(text: str) -> Dict[str, str]:
    """Returns the parameters of the viewer for these lines."""
    return {"stacks": text} if text else {}


def saved(folders: Sequence[str]) -> Dict[str, str]:
    """Returns the parameters of the viewer for the lines in recordings, which may have been changed."""
    lines: List[str] = []
    for folder in folders:
        with contextlib.suppress(OSError, ValueError):
            text = read_below(folder, FILE, LINES_MOST).decode("utf-8")
            lines += bounded(iter(text.split("\n")), LINES_MOST // len(folders))
    return params_of("\n".join(lines))
