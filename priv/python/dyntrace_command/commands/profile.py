"""`dyntrace profile`: samples a node's threads to show which functions and processes use the CPUs."""
import argparse
import collections
import contextlib
import math
import select
import time
from typing import Counter, Dict, Optional, Set, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.outputs import PROFILE_FILES, extension_of
from dyntrace_command.common.terminal import plural, print_table, say
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.files import checked_output, write_file
from dyntrace_command.host.tools import tool, tool_version
from dyntrace_command.node.code import Code
from dyntrace_command.node.node import Node, pick, untraced
from dyntrace_command.profiling.profile_files import TIMED, WRITERS, Taken
from dyntrace_command.profiling.profile_tables import tables
from dyntrace_command.profiling.sample_paths import FRAMES_MOST, Path, Samples, paths
from dyntrace_command.tracers.bpftrace import Bpftrace, Names
from dyntrace_command.tracers.current_process import Layout, layout_of

# bpftrace has a stack mode without symbol lookup from this version on.
RAW_SINCE = (0, 21)

# Seconds to wait for names after the last sample, and for a second bpftrace that gets them.
NAMED_S, NEW_S = 5, 15


def profile(options: argparse.Namespace) -> None:
    """Samples for some seconds, then prints tables or writes a file."""
    node = pick(options.node)
    output = checked_output(options.output) if options.output else None
    kind = extension_of(output or "", PROFILE_FILES)
    with contextlib.closing(Code(node)) as code:
        layout, why = layout_of(node, code)
        samples, names = Samples(layout, kind == TIMED), Names()
        if layout is None:
            say(f"dyntrace: {node.show()} is traced while it is sampled, which reduces its throughput: {why}")
        seconds = sample(node, options, program(layout, code), samples, names)
        code.refresh()
        found = chosen(paths(samples, code, names), names, options.process)
    if code.why:
        say(f"dyntrace: {node.show()} has no names of functions: {code.why}. There are no Erlang stacks: each "
            "process has only the function in which a scheduler resumed it\n"
            f"  next: {code.step}")
    if seconds and not is_traced(samples, names):
        say(untraced(node, seconds).text)
    if not found:
        who = f"process {options.process} of {node.show()}" if options.process else node.show()
        raise Failure("no_samples", who=who, seconds=seconds)
    taken = Taken(f"{node.node}, CPU samples, {time.strftime('%Y-%m-%d %H:%M:%S')}", options.hz, seconds)
    if output:
        write_file(output, WRITERS[kind](found, taken))
        print(output)
        return
    total = sum(found.values())
    print(f"profile of {node.show()}: {plural(seconds, 'second')}, {total} samples at {options.hz} Hz = "
          f"{taken.cpus(total)} CPUs")
    for table in tables(found, options.hz):
        print()
        print_table(table)


def program(layout: Optional[Layout], code: Code) -> Tuple[str, Dict[str, str]]:
    """Returns the bpftrace program and the values of its placeholders. Without a layout, the node has to be traced."""
    mode = "raw" if tool_version(tool("bpftrace")) >= RAW_SINCE else "perf"
    words = {"MODE": mode, "FRAMES": str(FRAMES_MOST)}
    if layout:
        return "dumped_names+untraced_samples+sample_counts", {**words, **layout.words(code)}
    return "names+traced_samples+sample_counts", words


def sample(node: Node, options: argparse.Namespace, how: Tuple[str, Dict[str, str]], samples: Samples,
           names: Names) -> int:
    """Takes samples until the time is over, Ctrl-C, or the end of the node; returns the seconds sampled."""
    wanted, taken = math.ceil(options.seconds), 0
    # After the last sample: the processes whose names are awaited, and the deadline.
    busy: Optional[Set[str]] = None
    named_until = 0.0
    with Bpftrace(node, how[0], HERTZ=str(options.hz), **how[1]) as bpftrace, Interrupted() as interrupted:
        while not interrupted.happened.is_set():
            if not node.lives():
                # Its last samples arrive within a second.
                wanted = min(wanted, taken + 1)
            if taken >= wanted:
                # A busy node is late to emit names.
                if busy is None:
                    busy, named_until = samples.busy(), time.monotonic() + NAMED_S
                if samples.layout or names.of.keys() >= busy or not node.lives() or time.monotonic() > named_until:
                    break
            for line in bpftrace.lines() if select.select([bpftrace], [], [], 0.2)[0] else []:
                names.learn(line.fields)
                if taken < wanted:
                    samples.take(line.fields, line.maps)
                    taken += line.fields == ["second"]
                if line.fields == ["ready"]:
                    say(f"sampling {node.show()}: {plural(wanted, 'second')}, or until Ctrl-C")
    if samples.layout and busy is not None and not names.of.keys() >= busy and node.lives():
        # The profile is useful even if some names are missing.
        with contextlib.suppress(Failure):
            name_new(node, names)
    if not node.lives():
        say(f"dyntrace: {node.show()} ended during the sampling")
    return taken


def name_new(node: Node, names: Names) -> None:
    """Requests the names of new processes in a node that is not traced: each program that requests names gets all
    names."""
    until = time.monotonic() + NEW_S
    with Bpftrace(node, "dumped_names") as bpftrace, Interrupted() as interrupted:
        while time.monotonic() < until and node.lives() and not interrupted.happened.is_set():
            for line in bpftrace.lines() if select.select([bpftrace], [], [], 0.2)[0] else []:
                names.learn(line.fields)
                until = 0 if line.fields == ["ready"] else until


def is_traced(samples: Samples, names: Names) -> bool:
    """Returns whether the node has emitted events. Without them, there are samples, but they have no processes."""
    return bool(names.of) or any(sample.process for sample in samples.of)


def chosen(found: "Counter[Path]", names: Names, process: str) -> "Counter[Path]":
    """Returns the paths of the process with this pid or name; all paths if `process` is empty."""
    if not process:
        return found
    return collections.Counter({path: count for path, count in found.items()
                                if path.pid and process in (path.pid, names.of.get(path.pid))})
