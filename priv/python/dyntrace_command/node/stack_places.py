"""What the processes of a VM do, in one clause for each: the innermost function of its stack, and the first function
outside of OTP's general modules, with file and line. Read from the VM's memory by a child of this command.

Before the snapshot, the processes on schedulers are sampled for a while. In memory, a running process has the stack
that it saved last; its innermost function is in a register of the CPU. So a clause about a running process names the
caller on that stack or, if the stack is empty, the function in which the process gave up its scheduler last. The two
belong to different moments, so a clause has only one of them, and only if most samples agree. A NIF that stays on its
scheduler is known, and so is the function of a process on a dirty scheduler.
"""
import collections
import contextlib
import functools
import heapq
import re
import time
from typing import Any, Counter, Dict, Iterator, List, NamedTuple, Optional, Tuple

from dyntrace_command.node.container import Container
from dyntrace_command.node.jit_code import Location
from dyntrace_command.node.stack_snapshot import STAYS_S, Captured, Snapshot, begins
from dyntrace_command.node.vm_structures import Scheduler

# Seconds for which a sample observes whether a native function stays; and the pause after a sample, as a multiple of
# its CPU time: sampling uses at most a tenth of a CPU.
PERIOD_S, PAUSE = STAYS_S, 9
# A process of which samples are reported has at least so many, and at least this part of all.
SAMPLES_LEAST, SHARE_LEAST = 5, 0.25
# Seconds for the snapshot. Processes that are not read in time are left out.
SNAPSHOT_S = 6.0
# Bounds: processes with samples, and kinds of samples of each; frames of a stack that are searched; addresses of code
# and names that are cached; distinct clauses, processes of all, and those of each that are reported.
SAMPLED_MOST, KINDS_MOST, LOOKED_MOST, CACHED_MOST, NAMES_MOST = 500, 50, 200, 100000, 10000
CLAUSES_MOST, LISTED_MOST, PIDS_MOST = 5000, 200000, 200

# General modules of OTP and Elixir, whose functions work for their callers.
GENERAL = re.compile(r"""
    gen|gen_\w+|supervisor\w*|proc_lib|sys|timer|timer_server|rpc|erpc|global|pg|error_handler|application\w*
    |lists|maps|sets|ord\w+|dict|gb_\w+|array|queue|proplists|string|binary|unicode\w*|re|rand|random|math|calendar|json
    |io|io_lib\w*|file|file_\w+|prim_\w+|raw_file_\w+|filename|filelib|erl_\w+|code|code_server|ram_file|disk_log\w*
    |erlang|erts_\w+|init|ets|dets\w*|persistent_term|atomics|counters|qlc|mnesia\w*|logger\w*|os|net|inet\w*|socket
    |gen_tcp\w*|gen_udp\w*|ssl\w*|tls\w*|dtls\w*|crypto|public_key|pubkey\w*|zlib|base64|httpc\w*|http\w+_\w+|user\w*
    |Enum|Stream|Enumerable(\.\w+)*|Map|MapSet|Keyword|List|Tuple|String|Range|Access|Regex|Integer|Float|Kernel(\.\w+)*
    |GenServer|Agent(\.\w+)*|Task(\.\w+)*|Process|Registry(\.\w+)*|(Dynamic|Partition)?Supervisor(\.\w+)*
    |IO(\.\w+)*|File(\.\w+)*|System|Logger(\.\w+)*|Code|Inspect(\.\w+)*|Collectable(\.\w+)*|Node|Port|URI|Base|JSON""",
                     re.VERBOSE)
# Where servers wait for the next message.
IDLE = re.compile(r"gen_(server|event|statem|fsm):\w*(loop|fetch_msg|hibernate)\w*/\d+|proc_lib:(hibernate|wake_up)/\d+"
                  r"|erlang:hibernate/\d+")
MODULE = re.compile(r"(?:((?:[A-Z]\w*\.)*[A-Z]\w*)\.|([^:]*):).*")

# What a process does whose innermost function is unknown.
CALLED = "ran functions called from "
# What it did, as the viewer (summary/process_stacks.h) names the kinds: in most samples, or at the end.
RAN, RUNS, WAITS = "ran", "runs", "waits"
VERBS = {"waiting": (WAITS, "waited in"), "suspended": (WAITS, "was suspended in"),
         "runnable": (RUNS, "was ready to run in")}


class Clause(NamedTuple):
    """What a process did, and whether in samples or at the end."""
    kind: str
    text: str


class Activity(NamedTuple):
    """What a process did in a sample: a phrase, a function, and its file and line; empty if that is unknown."""
    phrase: str = ""
    function: str = ""
    line: str = ""


class StackPlaces(Snapshot):
    """The clauses about the processes of a VM."""

    def __init__(self, inside: Container) -> None:
        super().__init__(inside)
        # The code at addresses.
        self.cached: Dict[int, Optional[Location]] = {}
        self.schedulers = [one.address for one in self.structures.schedulers()]

    def found(self, until: float) -> Dict[str, Any]:
        """Returns the clauses as a JSON value, after sampling until this monotonic time: [kind, text, [pid]] each, the
        most important first."""
        found = self.sampled(until)
        self.until = time.monotonic() + SNAPSHOT_S
        return {"clauses": [[clause.kind, clause.text, pids] for clause, pids in [*found, *self.at_end()]]}

    # Samples

    def sampled(self, until: float) -> List[Tuple[Clause, List[str]]]:
        """Samples the processes on schedulers."""
        samples = 0
        ran: Dict[int, Counter[Activity]] = {}
        while time.monotonic() < until:
            began = time.process_time()
            staying = self.staying()
            for process in self.on_schedulers():
                activity = self.at_work(process, staying.get(process.pid, ""))
                if process.pid in ran or len(ran) < SAMPLED_MOST:
                    of = ran.setdefault(process.pid, collections.Counter())
                    if activity in of or len(of) < KINDS_MOST:
                        of[activity] += 1
            samples += 1
            time.sleep(PAUSE * (time.process_time() - began))
        return [(clause, [self.structures.pid(pid)]) for pid, clause in agreed(ran, samples)]

    # The snapshot

    def at_end(self) -> List[Tuple[Clause, List[str]]]:
        """Reads all processes; returns clauses about those that do not wait for their next message. Those that run,
        have messages in their queues, or are suspended come first."""
        staying, listed = self.staying(), 0
        found: Dict[Clause, List[Tuple[int, int]]] = {}
        for address in self.structures.addresses():
            if time.monotonic() > self.until or listed >= LISTED_MOST:
                break
            process = self.capture(address)
            clause = process and self.clause(process, staying)
            if process is None or not clause or clause not in found and len(found) >= CLAUSES_MOST:
                continue
            found.setdefault(clause, []).append((process.queue + (process.status != "waiting"), process.pid))
            listed += 1
        longest = [(clause, heapq.nlargest(PIDS_MOST, processes)) for clause, processes in found.items()]
        return [(clause, [self.structures.pid(pid) for _, pid in processes])
                for clause, processes in sorted(longest, key=lambda item: -item[1][0][0])]

    def busy_schedulers(self) -> List[Scheduler]:
        """Returns the schedulers that run a process now."""
        found = []
        for address in self.schedulers:
            with contextlib.suppress(ValueError):
                found.append(self.structures.scheduler(address))
        return [one for one in found if one.process]

    def on_schedulers(self) -> Iterator[Captured]:
        """Yields the processes that run now."""
        for one in self.busy_schedulers():
            process = self.capture(one.process)
            if process and process.status == "running":
                yield process

    def staying(self) -> Dict[int, str]:
        """Returns the native functions in which processes stay on normal schedulers for a while."""
        found = {}
        before = [(one, self.place(one)) for one in self.busy_schedulers()]
        time.sleep(PERIOD_S)
        for one, place in before:
            if place and self.place(one) == place:
                process = self.capture(one.process)
                if process:
                    found[process.pid] = self.native_call(one, place)
        return found

    def clause(self, process: Captured, staying: Dict[int, str]) -> Optional[Clause]:
        """Returns what a process does; None if that is not worth mentioning, or unknown."""
        if process.status == "running":
            text = "".join(self.at_work(process, staying.get(process.pid, "")))
            return Clause(RUNS, text) if text else None
        frames = list(self.frames_of(process))
        if process.function:
            frames.insert(0, Location("erlang", process.function))
        if not process.is_consistent or process.status not in VERBS or not frames or not frames[0].name:
            return None
        kind, verb = VERBS[process.status]
        caller = next((frame for frame in frames if is_of_application(frame.name)), None)
        if process.status == "waiting" and caller is None and IDLE.fullmatch(frames[0].name):
            return None
        return Clause(kind, f"{verb} {place_of(frames[0], caller)}")

    def at_work(self, process: Captured, call: str) -> Activity:
        """Returns what a process does that runs, in this native function if it is known."""
        caller = next((frame for frame in self.frames_of(process) if is_of_application(frame.name)), None)
        function = call or process.function
        if function:
            return Activity(f"ran {function}, called from ", *at(caller)) if caller else Activity("ran ", function)
        if caller:
            return Activity(CALLED, *at(caller))
        saved = self.located(process.saved) if process.saved else None
        is_known = saved is not None and saved.kind == "erlang" and not begins(saved)
        return Activity("was last saved in ", *at(saved)) if is_known else Activity()

    def frames_of(self, process: Captured) -> Iterator[Location]:
        """Yields the innermost frames of a stack, without the function that it calls; a frame of unknown code has no
        name."""
        stack = process.stack
        if stack.resume:
            where = self.located(stack.resume)
            if where is None or where.kind == "erlang" and not begins(where):
                yield where or Location("unknown", "")
        for address in stack.returns[:LOOKED_MOST]:
            where = self.located(address - 1)
            if where is None or where.kind == "erlang":
                yield where or Location("unknown", "")

    def located(self, address: int) -> Optional[Location]:
        """Returns the code at an address."""
        if address not in self.cached:
            if len(self.cached) >= CACHED_MOST:
                self.cached.clear()
            self.cached[address] = self.code.locate(address)
        return self.cached[address]


def agreed(ran: Dict[Any, "Counter[Activity]"], samples: int) -> Iterator[Tuple[Any, Clause]]:
    """Yields clauses about the processes that ran in many samples, if most of these agree, about the line or at least
    about the function; the busiest first."""
    for process, of in sorted(ran.items(), key=lambda item: -sum(item[1].values())):
        total = sum(of.values())
        functions: Counter[Activity] = collections.Counter()
        for activity, count in of.items():
            functions[activity._replace(line="")] += count
        if total < max(SAMPLES_LEAST, SHARE_LEAST * samples):
            continue
        for activity, count in [*of.most_common(1), *functions.most_common(1)]:
            if activity.function and 2 * count > total:
                yield process, Clause(RAN, f"{''.join(activity)} in {count} of {samples} samples")
                break


def place_of(inner: Location, caller: Optional[Location]) -> str:
    """Returns the innermost function, and what called it."""
    return "".join(at(inner) if caller is None or caller == inner else (f"{inner.name}, called from ", *at(caller)))


def at(frame: Any) -> Tuple[str, str]:
    """Returns the function of a frame with `name`, `file` and `line`; and its file and line, after a space."""
    return frame.name, f" ({frame.file.rpartition('/')[2]}:{frame.line})" if frame.line else ""


@functools.lru_cache(maxsize=NAMES_MOST)
def is_of_application(name: str) -> bool:
    """Returns whether a function is outside of the general modules of OTP and Elixir."""
    found = MODULE.fullmatch(name)
    return found is not None and not GENERAL.fullmatch((found.group(1) or found.group(2)).strip("'"))
