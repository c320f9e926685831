"""What the busiest processes of a node run, from a few seconds of CPU samples beside a recording, with bpftrace.

The samples have the functions at the moment of the sample, where a reader of memory has only what a process has saved.
"""
import collections
import contextlib
import os
import select
from typing import Counter, Dict, List, Optional, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.node.code import Code
from dyntrace_command.node.node import Node
from dyntrace_command.node.stack_places import Clause, Activity, agreed, at, is_of_application
from dyntrace_command.profiling.sample_paths import LEFT_OUT, Frame, Located, Paths, Samples
from dyntrace_command.recording.process_stacks import Sampler
from dyntrace_command.tracers.bpftrace import AT_ONCE, Bpftrace, Line, Names, require_bpftrace, require_btf
from dyntrace_command.tracers.scheduler_samples import program

HERTZ = 99
# The priority of bpftrace: while it starts, it must not take the CPU from the node.
NICE = 19


class BusyFunctions(Sampler):
    """The samples of a node. Raises Failure if bpftrace can't take them."""

    def __init__(self, node: Node) -> None:
        self.opened = contextlib.ExitStack()
        self.code = Code(node)
        self.opened.callback(self.code.close)
        self.samples, self.seconds = Samples(), 0
        try:
            if self.code.layout is None:
                raise Failure("no_stacks", node=node.show(), why=self.code.why)
            part, words = program(self.code.layout, AT_ONCE, node.target[0])
            self.bpftrace: Optional[Bpftrace] = self.opened.enter_context(
                Bpftrace(node, part, HERTZ=str(HERTZ), **words))
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.bpftrace.process.pid, NICE)
        except BaseException:
            self.close()
            raise

    def poll(self) -> None:
        """Takes the samples that have arrived."""
        with contextlib.suppress(Failure):
            while self.bpftrace and select.select([self.bpftrace], [], [], 0)[0]:
                for line in self.lines():
                    self.samples.take(line.fields, line.maps)
                    self.seconds += line.fields == ["second"]

    def lines(self) -> List[Line]:
        """Returns the lines that have arrived; raises Failure at the end of bpftrace."""
        assert self.bpftrace
        try:
            return self.bpftrace.lines()
        except Failure:
            self.bpftrace = None
            raise

    def clauses(self) -> List[Tuple[Clause, List[str]]]:
        """Returns clauses about the busiest processes, each with the pids."""
        self.poll()
        self.samples.learn(self.code)
        paths = Paths(self.code, Names())
        exact: Dict[str, Counter[Activity]] = {}
        callers: Dict[str, Counter[Activity]] = {}
        for sample, count in self.samples.of.items():
            path = paths.locate(sample, self.samples.stack(sample.where)) if sample.process else None
            if path and path.pid.startswith("<"):
                for of, activity in zip((exact, callers), activities(path)):
                    of.setdefault(path.pid, collections.Counter())[activity] += count
        samples = self.seconds * HERTZ
        found = dict(agreed(callers, samples)) if samples else {}
        found.update(agreed(exact, samples) if samples else {})
        return [(clause, [pid]) for pid, clause in found.items()]

    def close(self) -> None:
        """Ends bpftrace."""
        with contextlib.suppress(Failure):
            self.opened.close()


def activities(path: Located) -> Tuple[Activity, Activity]:
    """Returns what a process did in a sample: with its innermost function, and with what called that."""
    frames = [frame for frame in path.frames[::-1] if is_function(frame)] if path.stack == "exact" else []
    caller = next((frame for frame in frames if is_of_application(frame.name)), None)
    if not frames:
        return Activity(), Activity()
    inner = Activity("ran ", *at(frames[0]))
    if caller is None or caller == frames[0]:
        return inner, Activity() if caller is None else wide(caller)
    return Activity(f"ran {frames[0].name}, called from ", *at(caller)), wide(caller)


def wide(caller: Frame) -> Activity:
    """Returns that a process ran a function or those that it calls."""
    return Activity("was in or below ", *at(caller))


def is_function(frame: Frame) -> bool:
    """Returns whether a frame is that of an Erlang function."""
    return frame.name[-1:] != "]" and frame.name != LEFT_OUT


def sampler(node: Node) -> Optional[BusyFunctions]:
    """Begins to sample a node; returns None if that is impossible here."""
    with contextlib.suppress(Failure, OSError, ValueError):
        require_bpftrace()
        require_btf("no_types")
        return BusyFunctions(node)
    return None
