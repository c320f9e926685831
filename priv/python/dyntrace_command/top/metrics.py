"""`dyntrace top --openmetrics`: a sample of a node as metrics, for Prometheus and other monitoring systems."""
import collections
from typing import DefaultDict, Dict, Iterator, List, NamedTuple, Set, Tuple

from dyntrace_command.common.terminal import clean
from dyntrace_command.top.from_samples import Process, Sampled

# Values of the label `name`, over the life of the command. Later names share the value OTHERS.
NAMES_MOST, OTHERS = 500, "(others)"
# Characters of a label's value; rows without --rows.
LABEL_MOST, ROWS = 200, 20

# The media types: OpenMetrics, and the format that came before it, in which counters have the suffix _total in their
# descriptions, too.
OPENMETRICS, PLAIN = "application/openmetrics-text; version=1.0.0; charset=utf-8", "text/plain; version=0.0.4"


class Metric(NamedTuple):
    """A metric: its name after `dyntrace_`, a description, whether it is a counter, and what its values are divided by.
    """
    name: str
    help: str
    is_counter: bool = False
    unit: int = 1


Label = Tuple[str, str]
NUMBERED = "scheduler"

# The metrics of the node's counters (docs/counters.md), each with a label for counters that share a metric. The number
# of a scheduler is a label, too.
LIMITS = Metric("limit", "Maximum number of processes, ports, atoms and open files.")
MEMORY = Metric("memory_bytes", "Memory by kind. The total is the sum of processes and system, which include the rest.")
USED = Metric("scheduler_utilization_ratio", "The share of the sample interval in which a scheduler was active.",
              unit=1000)
RUN_QUEUE = Metric("run_queue_length", "Processes and ports that wait for a scheduler of this kind.")
COUNTERS: Dict[str, Tuple[Metric, List[Label]]] = {
    "processes": (Metric("processes", "Processes."), []),
    "ports": (Metric("ports", "Ports."), []),
    "atoms": (Metric("atoms", "Atoms."), []),
    "ets_tables": (Metric("ets_tables", "ETS tables."), []),
    "connected_nodes": (Metric("connected_nodes", "Other nodes that are connected."), []),
    "open_files": (Metric("open_files", "Open file descriptors."), []),
    **{name: (LIMITS, [("of", of)]) for name, of in (
        ("process_limit", "processes"), ("port_limit", "ports"), ("atom_limit", "atoms"),
        ("open_files_limit", "open_files"))},
    "cpu_quota": (Metric("cpu_quota_ratio", "The quota of the cgroup, in CPUs.", unit=1000), []),
    "cpu_throttled": (Metric("cpu_throttled_seconds", "Time for which the CPU quota throttled the cgroup.", True,
                             10**6), []),
    "memory_limit": (Metric("memory_limit_bytes", "The limit of the cgroup or the host."), []),
    "reductions": (Metric("reductions", "Reductions.", True), []),
    "context_switches": (Metric("context_switches", "Context switches of schedulers.", True), []),
    "gc_count": (Metric("garbage_collections", "Garbage collections.", True), []),
    "gc_reclaimed": (Metric("garbage_collection_reclaimed_words", "Words reclaimed by garbage collections.", True), []),
    "io_input": (Metric("io_input_bytes", "Bytes received through ports.", True), []),
    "io_output": (Metric("io_output_bytes", "Bytes sent through ports.", True), []),
    "run_queue": (RUN_QUEUE, [("kind", "normal")]),
    "run_queue_dirty_cpu": (RUN_QUEUE, [("kind", "dirty_cpu")]),
    "run_queue_dirty_io": (RUN_QUEUE, [("kind", "dirty_io")]),
    "scheduler_utilization_": (USED, [("kind", "normal")]),
    "dirty_cpu_utilization_": (USED, [("kind", "dirty_cpu")]),
    "dirty_io_utilization_": (USED, [("kind", "dirty_io")]),
    **{f"memory_{kind}": (MEMORY, [("kind", kind)]) for kind in (
        "total", "processes", "processes_used", "system", "atom", "atom_used", "binary", "code", "ets")},
}

# The metrics of the busiest processes, summed by name.
PROCESSES = {
    "reductions": Metric("process_reductions", "Reductions of the processes with this name since the previous sample."),
    "queue": Metric("process_message_queue_length", "Messages in the queues of the processes with this name."),
    "memory": Metric("process_memory_bytes", "Memory of the processes with this name."),
}
SAMPLED = Metric("process_samples", "Processes with this name in the sample, which has the busiest and largest ones.")


class Metrics:
    """The metrics of a node. `rows`: how many names of processes they have, at most."""

    def __init__(self, node: str, rows: int) -> None:
        self.node, self.rows = node, rows
        self.names: Set[str] = set()

    def text(self, frames: Sampled, is_openmetrics: bool) -> str:
        """Returns the metrics of the frame that is due."""
        found: DefaultDict[Metric, List[str]] = collections.defaultdict(list)
        for metric, labels, value in [*counters(frames), *self.processes(frames)]:
            texts = [f'{name}="{escaped(text)}"' for name, text in [("node", self.node), *labels]]
            number = value if metric.unit == 1 else value / metric.unit
            suffix = "_total" if metric.is_counter else ""
            found[metric].append(f"dyntrace_{metric.name}{suffix}{{{','.join(texts)}}} {number}")
        lines = []
        for metric, samples in found.items():
            name = f"dyntrace_{metric.name}" + ("_total" if metric.is_counter and not is_openmetrics else "")
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {'counter' if metric.is_counter else 'gauge'}",
                      *samples]
        return "\n".join([*lines, *(["# EOF"] if is_openmetrics else [])]) + "\n"

    def processes(self, frames: Sampled) -> Iterator[Tuple[Metric, List[Label], int]]:
        """Yields the samples of the busiest processes by name, in the order of --sort."""
        of: DefaultDict[str, List[Process]] = collections.defaultdict(list)
        for pid, process in frames.leading(len(frames.processes)):
            name = (frames.names.of.get(pid) or "(no name)")[:LABEL_MOST]
            if name not in self.names and len(self.names) >= NAMES_MOST:
                name = OTHERS
            if name in of or len(of) < self.rows:
                self.names.add(name)
                of[name].append(process)
        for metric, value in [*((metric, key) for key, metric in PROCESSES.items()), (SAMPLED, "")]:
            for name, processes in of.items():
                yield metric, [("name", name)], sum(getattr(one, value) if value else 1 for one in processes)


def counters(frames: Sampled) -> Iterator[Tuple[Metric, List[Label], int]]:
    """Yields the samples of the node's counters; unknown ones, of a later version, are left out."""
    for name, value in sorted(frames.counters.items()):
        stem = name.rstrip("0123456789")
        number = name[len(stem):]
        if stem in COUNTERS and bool(number) == stem.endswith("_"):
            metric, labels = COUNTERS[stem]
            yield metric, [*labels, *([(NUMBERED, number)] if number else [])], value


def escaped(text: str) -> str:
    """Returns the value of a label."""
    return clean(text)[:LABEL_MOST].replace("\\", "\\\\").replace('"', '\\"')
