"""Searches all processes of this host for Erlang VMs, with a child process for each user, several at a time.

A process can block its child, even forever if a file system of its user does not answer. That child is left behind, and
another one examines the user's other processes. One deadline applies to the whole search.
"""
import contextlib
import os
import select
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.host.process import Identity, Process
from dyntrace_command.host.sandbox import CHILD_NAME, NO_ANSWER, Child, Rights, check_same, identity_for
from dyntrace_command.node.description import More, look

# Seconds for everything; seconds without an answer about one process; processes of a user that may fail to answer.
ALL_S, ONE_S, STALLS_MOST = 10.0, 2.0, 2
# Children at a time.
CHILDREN_MOST = 8
# Prefix of the name of a VM's main thread. A process that can't be read is listed if its name starts with it.
VM_NAME = "beam."

NO_ANSWER = "it does not answer: a file system that hangs is the usual cause"
GIVEN_UP = "other processes of its user do not answer"
LEFT = f"{STALLS_MOST} earlier attempts to read processes of its user still wait for a file system"
TOO_LATE = f"reading all processes took more than {ALL_S:g} s"


class Found(NamedTuple):
    """An Erlang VM: its description, or the reason why there is none."""
    process: Process
    values: Optional[Dict[str, Any]]
    why: str = ""


class Job:
    """The processes of a user that a child examines. `enter`: one of them, whose network and UTS namespaces the child
    has to enter for all of them."""

    def __init__(self, identity: Optional[Identity], processes: List[Process], enter: Optional[Process] = None,
                 stalls: int = 0) -> None:
        self.identity, self.processes, self.enter, self.stalls = identity, processes, enter, stalls
        self.by_pid = {process.pid: process for process in processes}
        self.child: Optional[Child] = None
        self.at: Optional[int] = None
        self.until = 0.0

    def start(self, name: Optional[str], more: Optional[More]) -> None:
        """Starts the child."""
        is_host = self.enter is None and os.geteuid() == 0
        self.child = Child(self.identity, lambda: look(self.processes, name, more, is_host), ALL_S,
                           Rights(enter=self.enter))
        self.until = time.monotonic() + ONE_S

    def check_runs(self) -> None:
        """Extends the deadline if the child is running, or waits for a CPU of a busy host; else raises TimeoutError."""
        assert self.child
        if Process(self.child.pid).status()[0] != "R":
            raise TimeoutError(NO_ANSWER)
        self.until = time.monotonic() + ONE_S

    def rest(self) -> List[Process]:
        """Returns the processes after the one being examined."""
        pids = list(self.by_pid)
        return self.processes[pids.index(self.at) + 1:] if self.at in self.by_pid else []


class Survey:
    """The search. `name`: the name of the wanted VM, if only one is wanted; `more`: finds further values, in the
    child."""

    def __init__(self, name: Optional[str] = None, more: Optional[More] = None) -> None:
        self.name, self.more = name, more
        self.found: Dict[int, Found] = {}
        self.waiting: List[Job] = []
        self.running: List[Job] = []
        # Processes in other namespaces than this command's, by identity and namespaces.
        self.elsewhere: Dict[Any, List[Process]] = {}

    def of(self, processes: Iterable[Process]) -> List[Found]:
        """Returns the VMs among the processes, in the order of their PIDs."""
        deadline = time.monotonic() + ALL_S
        self.sort(processes)
        try:
            while (self.waiting or self.running or self.elsewhere) and time.monotonic() < deadline:
                self.start()
                self.receive(min(deadline, *(job.until for job in self.running)))
        finally:
            for job in self.running:
                self.end(job)
        for job in [*self.running, *self.waiting]:
            self.miss(job.rest() if job in self.running else job.processes, TOO_LATE)
            self.miss([job.by_pid[job.at]] if job.at in job.by_pid else [], TOO_LATE)
        for group in self.elsewhere.values():
            self.miss(group, TOO_LATE)
        return [self.found[pid] for pid in sorted(self.found)]

    def sort(self, processes: Iterable[Process]) -> None:
        """Creates a job for each user."""
        groups: Dict[Optional[Identity], List[Process]] = {}
        for process in processes:
            try:
                groups.setdefault(identity_for(process), []).append(process)
            except (OSError, ValueError) as error:
                self.miss([process], reason(error))
        for identity, group in groups.items():
            # Otherwise, repeated surveys would leave more and more children behind.
            if sum(map(is_left, group)) >= STALLS_MOST:
                self.miss(group, LEFT)
            else:
                self.waiting.append(Job(identity, group))

    def start(self) -> None:
        """Starts waiting jobs, up to the limit; those of other namespaces come last."""
        if not self.waiting and not self.running:
            self.waiting = [Job(key[0], group, group[0]) for key, group in self.elsewhere.items()]
            self.elsewhere.clear()
        while self.waiting and len(self.running) < CHILDREN_MOST:
            job = self.waiting.pop(0)
            self.running.append(job)
            job.start(self.name, self.more)

    def receive(self, until: float) -> None:
        """Processes the answers that have arrived, and gives up on children that have not answered in time."""
        ready, _, _ = select.select([job.child for job in self.running], [], [], max(0, until - time.monotonic()))
        for job in list(self.running):
            try:
                if job.child in ready:
                    self.take(job)
                elif time.monotonic() >= job.until:
                    job.check_runs()
            except (OSError, ValueError, Failure) as error:
                self.give_up(job, NO_ANSWER if isinstance(error, TimeoutError) else reason(error))

    def take(self, job: Job) -> None:
        """Processes the next answer of a child."""
        assert job.child
        answer = job.child.receive(job.until)
        job.until = time.monotonic() + ONE_S
        if answer is None:
            if job.at != 0:
                raise ValueError("its reader process ended early")
            self.end(job)
            self.running.remove(job)
            return
        message: Dict[str, Any] = answer.value if isinstance(answer.value, dict) else {}
        at, pid = message.get("at"), message.get("pid")
        process = job.by_pid.get(pid) if isinstance(pid, int) else None
        if isinstance(at, int):
            job.at = at
        elif process is None:
            raise ValueError(NO_ANSWER)
        elif "values" in message:
            self.keep(process, job.identity, message["values"])
        else:
            key = (job.identity, process.namespace("net"), process.namespace("uts"))
            self.elsewhere.setdefault(key, []).append(process)

    def keep(self, process: Process, identity: Optional[Identity], values: Dict[str, Any]) -> None:
        """Stores a description, if it still belongs to the process."""
        try:
            check_same(process, identity)
            self.found[process.pid] = Found(process, values)
        except ProcessLookupError:
            pass
        except (OSError, ValueError) as error:
            self.miss([process], reason(error))

    def give_up(self, job: Job, why: str) -> None:
        """Abandons the child together with the process that it was examining; another child examines the rest."""
        self.end(job)
        self.running.remove(job)
        self.miss([job.by_pid[job.at]] if job.at in job.by_pid else job.processes, why)
        rest = job.rest()
        if job.stalls + 1 >= STALLS_MOST:
            self.miss(rest, GIVEN_UP)
        elif rest:
            self.waiting.append(Job(job.identity, rest, job.enter, job.stalls + 1))

    def miss(self, processes: Iterable[Process], why: str) -> None:
        """Lists the processes that look like a VM, without a description."""
        for process in processes:
            if process.pid not in self.found and process.name().startswith(VM_NAME) and not process.has_ended():
                self.found[process.pid] = Found(process, None, why)

    @staticmethod
    def end(job: Job) -> None:
        """Ends a job's child."""
        if job.child:
            job.child.end()


def is_left(process: Process) -> bool:
    """Returns whether the process is a child of an earlier survey that the kernel can't kill."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        if process.name() == CHILD_NAME and process.status()[0] == "D":
            return process.age() > ALL_S
    return False


def all_processes() -> List[Process]:
    """Returns all processes of this host."""
    found = []
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        with contextlib.suppress(OSError):
            found.append(Process(int(name)))
    return found
