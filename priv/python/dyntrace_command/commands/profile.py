"""`dyntrace profile`: samples a node's threads to show which functions and processes use the CPUs.

The node is not traced, and needs neither a flag nor dyntrace: names and stacks are read from its memory.
"""
import argparse
import collections
import contextlib
import math
import select
import time
from typing import Any, Counter, Dict, Optional, Set

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.json_output import put
from dyntrace_command.common.outputs import PROFILE_FILES, extension_of
from dyntrace_command.common.terminal import clean, plural, print_table, say
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.files import checked_output, write_file
from dyntrace_command.node.code import Code
from dyntrace_command.node.node import Node, check_readable, find_node, pick
from dyntrace_command.profiling import profile_comparison, waiting_paths
from dyntrace_command.profiling.folded_stacks import folded_paths, stacks_of
from dyntrace_command.profiling.profile_comparison import changes
from dyntrace_command.profiling.profile_files import TIMED, WRITERS, Taken
from dyntrace_command.profiling.profile_tables import (JSON_ROWS, ROWS, Profile, as_json, certainty,
                                                      stack_kinds, summarized, tables)
from dyntrace_command.profiling.sample_paths import Located, Samples, by_function, paths
from dyntrace_command.profiling.waiting_paths import sample_all
from dyntrace_command.tracers.bpftrace import AT_ONCE, Bpftrace, Names, require_bpftrace, require_btf
from dyntrace_command.tracers.scheduler_samples import program

# Seconds to wait for the names that a second bpftrace requests.
NEW_S = 15
# Seconds until names are looked up for the first time, and the maximum between lookups; the interval doubles.
FIRST_LEARN_S, LEARN_S = 1, 8


def profile(options: argparse.Namespace) -> None:
    """Samples for some seconds, then prints tables or writes a file."""
    output = checked_output(options.output) if options.output else None
    kind = extension_of(output or "", PROFILE_FILES)
    if options.wall:
        wall(options, output, kind)
        return
    require_bpftrace()
    old = folded_paths(options.compare) if options.compare else None
    node = readable_node(options.node)
    if node.process.is_stopped():
        raise Failure("stopped", pid=node.pid, name=node.node)
    require_btf("no_types")
    with contextlib.closing(Code(node)) as code:
        if code.why:
            say(f"dyntrace: {node.show()} is sampled without Erlang stacks, functions or processes: {code.why}")
        samples, names = Samples(kind == TIMED), Names()
        seconds = sample(node, options, code, samples, names)
        code.refresh()
        found = chosen(paths(samples, code, names), names, options.process)
        counts = code.layout.counts if code.layout else []
    if not found:
        who = f"process {options.process} of {node.show()}" if options.process else node.show()
        raise Failure("no_samples", who=who, seconds=seconds)
    taken = Taken(title_of(node, "CPU samples"), options.hz, seconds, compared_to=old)
    if output:
        write_file(output, WRITERS[kind](found, taken))
    changed = changes(old, stacks_of(by_function(found))) if old else []
    summary = summarized(found, options.hz, seconds, [] if options.process else counts,
                         JSON_ROWS if options.json else ROWS)
    if options.json:
        put({**head(node, output), **as_json(summary), "changes": [row._asdict() for row in changed]})
        return
    if output:
        print(output)
    if old:
        print(f"changes since {options.compare}, in points of all samples:\n")
        print_table(profile_comparison.table(changed))
    if not output and not old:
        show(node, summary, taken)


def show(node: Node, summary: Profile, taken: Taken) -> None:
    """Prints the tables."""
    print(f"profile of {node.show()}: {plural(summary.seconds, 'second')}, {summary.samples} samples at "
          f"{summary.hertz} Hz = {taken.cpus(summary.samples)} CPUs; {certainty(summary.stacks)}")
    for rows in tables(summary):
        print()
        print_table(rows)


def title_of(node: Node, what: str) -> str:
    """Returns the title of a file."""
    return f"{node.node}, {what}, {time.strftime('%Y-%m-%d %H:%M:%S')}"


def head(node: Node, output: Optional[str]) -> Dict[str, Any]:
    """Returns the first values of the JSON."""
    return {"node": node.node, "pid": node.pid, "file": output}


def wall(options: argparse.Namespace, output: Optional[str], kind: str) -> None:
    """Samples all processes, then prints a table or writes a file."""
    node = readable_node(options.node)
    say(f"sampling all processes of {node.show()}: {options.seconds:g} s, or until Ctrl-C")
    try:
        waiting = sample_all(node, options.seconds, kind == TIMED)
    except (OSError, ValueError) as error:
        raise Failure("no_stacks", node=node.show(), why=clean(reason(error))) from None
    if not node.lives():
        say(f"dyntrace: {node.show()} ended during the sampling")
    if waiting.unread:
        say(f"dyntrace: processes that could not be read: {waiting.unread} per snapshot, on average")
    if output:
        taken = Taken(title_of(node, "all processes"), waiting.snapshots / waiting.seconds, round(waiting.seconds),
                      waiting.snapshots)
        write_file(output, WRITERS[kind](waiting.of, taken))
    if options.json:
        put({**head(node, output), **waiting_paths.as_json(waiting)})
        return
    if output:
        print(output)
        return
    print(f"processes of {node.show()}: {plural(waiting.snapshots, 'snapshot')} in {waiting.seconds:.1f} s; "
          f"{certainty(stack_kinds(waiting.of))}\n")
    print_table(waiting_paths.table(waiting))


def readable_node(name: str) -> Node:
    """Returns the node of that name, with or without dyntrace; without a name, the only node that has dyntrace."""
    node = find_node(name) if name else pick(None)
    check_readable(node)
    return node


def sample(node: Node, options: argparse.Namespace, code: Code, samples: Samples, names: Names) -> int:
    """Takes samples until the time is over, Ctrl-C, or the end of the node; returns the seconds sampled."""
    wanted, taken, learn = math.ceil(options.seconds), 0, FIRST_LEARN_S
    names_part = "dumped_names" if node.library and not node.replaced else AT_ONCE
    part, words = program(code.layout, names_part, node.target[0])
    with Bpftrace(node, part, HERTZ=str(options.hz), **words) as bpftrace, Interrupted() as interrupted:
        while taken < wanted and not interrupted.happened.is_set():
            if not node.lives():
                # Its last samples arrive within a second.
                wanted = min(wanted, taken + 1)
            for line in bpftrace.lines() if select.select([bpftrace], [], [], 0.2)[0] else []:
                names.learn(line.fields)
                if taken < wanted:
                    samples.take(line.fields, line.maps)
                    taken += line.fields == ["second"]
                if line.fields == ["ready"]:
                    say(f"sampling {node.show()}: {plural(wanted, 'second')}, or until Ctrl-C")
            if taken >= learn:
                learn = taken + min(taken, LEARN_S)
                samples.learn(code)
    samples.learn(code)
    if names.of and node.lives() and not busy_pids(samples, code) <= names.of.keys():
        # The profile is useful even if some names are missing.
        with contextlib.suppress(Failure):
            name_new(node, names)
    if not node.lives():
        say(f"dyntrace: {node.show()} ended during the sampling")
    return taken


def busy_pids(samples: Samples, code: Code) -> Set[str]:
    """Returns the pids of the busiest processes."""
    return {code.names.processes[process][0] for process in samples.busy() & code.names.processes.keys()}


def name_new(node: Node, names: Names) -> None:
    """Requests the names of new processes: each program that requests names gets all names."""
    until = time.monotonic() + NEW_S
    with Bpftrace(node, "dumped_names") as bpftrace, Interrupted() as interrupted:
        while time.monotonic() < until and node.lives() and not interrupted.happened.is_set():
            for line in bpftrace.lines() if select.select([bpftrace], [], [], 0.2)[0] else []:
                names.learn(line.fields)
                until = 0 if line.fields == ["ready"] else until


def chosen(found: "Counter[Located]", names: Names, process: str) -> "Counter[Located]":
    """Returns the paths of the process with this pid or name; all paths if `process` is empty."""
    if not process:
        return found
    return collections.Counter({path: count for path, count in found.items() if path.pid and process in (
        path.pid, names.of.get(path.pid), path.root.partition(" ")[2])})
