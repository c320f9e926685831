"""The Erlang VMs of this host: their properties, and the selection of one by its name.

All information comes from /proc, read by children of this command (`survey`, `sandbox`). The nodes themselves are not
asked, so a node that hangs is shown too.
"""
import contextlib
import os
import re
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.events import OF_FUNCTIONS
from dyntrace_command.common.failures import Failure, user_name
from dyntrace_command.common.functions import Function
from dyntrace_command.common.terminal import clean, say
from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import ANSWER_MOST, NO_ANSWER, SECONDS, Answer, Rights, isolated
from dyntrace_command.node.container import Container
from dyntrace_command.node.description import NOT_READABLE, More
from dyntrace_command.node.status import Status
from dyntrace_command.node.survey import Found, Survey, all_processes

# Fields that are unknown if the process can't be read.
FIELDS = ("library", "status", "node", "otp", "container", "version", "consumers")


# The numbers of machines in ELF.
X86_64, ARM64 = 62, 183


class Consumers(NamedTuple):
    """The consumers of a node: its enabled probes, and the users whose LTTng records it."""
    usdt: List[str]
    lttng: List[str]


class Node:
    """An Erlang VM. A field that can't be determined is None, and `unknown` has the reason under the field's name.

    `container`: its name, None on the host. `library`: the path in the node's own file system, None if it is not
    loaded; `replaced`: whether it was replaced on disk since. `version` is that of dyntrace, `otp` the OTP release.
    `inside` is for functions that run in a child (`isolated`).
    """

    def __init__(self, process: Process, values: Optional[Dict[str, Any]], why: str = "") -> None:
        self.process, self.pid, self.inside = process, process.pid, Container(process)
        self.descriptor: Optional[int] = None
        self.user = user_of(process)
        self.found = found = {} if values is None else values
        self.unknown: Dict[str, str] = dict.fromkeys(FIELDS, clean(why)) if values is None else found["unknown"]
        self.arguments: Dict[str, str] = found.get("arguments", {})
        self.library: Optional[str] = found.get("library")
        self.replaced = bool(found.get("replaced"))
        self.status = Status(found.get("status", []))
        self.node: str = found.get("node", "?")
        self.otp: Optional[str] = found.get("otp")
        self.container: Optional[str] = found.get("container")
        self.version: Optional[str] = found.get("version")
        self.consumers: Optional[Consumers] = None
        if found.get("usdt") is not None:
            self.consumers = Consumers(found["usdt"], sorted({user_of(Process(pid)) for pid in found["lttng"]}))

    @property
    def removed(self) -> bool:
        """Whether no file has the path of the loaded library any more."""
        return bool(self.found.get("removed"))

    @property
    def has_lttng(self) -> bool:
        """Whether LTTng's tracepoints are loaded."""
        return bool(self.found.get("has_lttng"))

    @property
    def target(self) -> Tuple[int, str]:
        """The machine of its program, as ELF numbers it, and its C library."""
        return int(self.found.get("machine", 0)), str(self.found.get("libc", "?"))

    def without_stacks(self) -> Optional[str]:
        """Returns why its Erlang stacks can't be read; None if they probably can, or if that is unknown."""
        machine, _ = self.target
        if "library" in self.unknown or not machine:
            return None
        if machine not in (X86_64, ARM64):
            return "this requires x86-64 or arm64"
        return None if self.found.get("jit") else "the VM has no JIT"

    @property
    def home(self) -> str:
        """The folder in which LTTng finds its user's session daemon."""
        return str(self.found.get("home", ""))

    @property
    def more(self) -> Any:
        """The further values that the survey collected."""
        return self.found.get("more")

    def as_json(self) -> Dict[str, object]:
        """Returns an object of what `dyntrace nodes --json` prints; its keys are an interface."""
        return {"pid": self.pid, "container": self.container, "node": self.node, "guessed": is_guessed(self),
                "otp": self.otp, "version": self.version, "consumers": self.consumers and self.consumers._asdict(),
                "user": self.user, "library": self.library, "following": self.status.said("following"),
                "alone": self.status.is_alone(), "withheld": self.status.withheld(),
                "without_stacks": self.without_stacks(),
                "unknown": self.unknown}

    def is_named(self, name: str) -> bool:
        """Returns whether the name is its full name, the part before @, or its PID."""
        return name in (self.node, self.node.partition("@")[0], str(self.pid))

    def show(self) -> str:
        """Returns its name as text for users."""
        return f"{self.node} ({self.pid})"

    def label(self) -> str:
        """Returns its name for use in file names."""
        name = self.node if self.node != "nonode@nohost" else str(self.pid)
        return re.sub(r"[^A-Za-z0-9_.@-]", "_", name)[:64]

    def lives(self) -> bool:
        """Returns whether it still runs; false if another process has its PID now."""
        return not self.process.has_ended()

    def isolated(self, function: Callable[[], Any], seconds: float = SECONDS, rights: Rights = Rights(),
                 most: int = ANSWER_MOST) -> Any:
        """Runs a function that examines the node in a child with the identity of the node's user; returns its value,
        which has at most so many bytes."""
        return isolated(self.process, function, seconds, most, rights).value

    # The library

    def handle(self) -> str:
        """Returns a path of the library for tracers. It always leads to the same file, regardless of what the node's
        user or container does to names in their file system, and has no character that is special to bpftrace."""
        assert self.library
        library: str = self.library
        if self.descriptor is None:
            try:
                self.descriptor, = isolated(
                    self.process, lambda: Answer(None, [self.inside.open_regular(library)])).descriptors
            except ValueError as error:
                # Its child was killed, or has sent no descriptor.
                raise Failure("not_readable", pid=self.pid, name=self.node, why=error) from None
        if not self.lives():
            raise Failure("node_gone", pid=self.pid, name=self.node)
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def outside(self) -> str:
        """Returns the path of the library as seen from this host."""
        assert self.library
        library = self.library
        return f"{self.process.dir}/root{self.isolated(lambda: self.inside.paths(library)[-1])}"

    def probes(self) -> Dict[str, bool]:
        """Returns {provider:name: whether it is enabled now}; empty if that can't be read."""
        if self.library:
            library: str = self.library
            with contextlib.suppress(OSError, ValueError):
                found: Dict[str, bool] = self.isolated(lambda: self.inside.probes(library, self.inside.mappings()))
                return found
        return {}


def user_of(process: Process) -> str:
    """Returns the name of a process's user; ? if it has ended."""
    with contextlib.suppress(OSError, ValueError):
        return user_name(process.uid())
    return "?"


def is_guessed(node: Node) -> bool:
    """Returns whether part of its name comes neither from the node nor from its command line: epmd does not know
    hosts."""
    said = node.arguments.get("name") or node.arguments.get("sname") or ""
    return node.status.name() is None and "@" not in said and node.node not in ("?", "nonode@nohost")


def status_now(node: Node) -> Status:
    """Returns its current status, empty if that can't be read. What it can't trace changes while consumers are
    attached."""
    with contextlib.suppress(OSError, ValueError):
        lines = node.isolated(lambda: node.inside.status(node.library, node.inside.mappings()))
        return Status(lines)
    return Status()


def check_traced(node: Node, asked: Sequence[Function], status: Optional[Status] = None,
                 groups: Sequence[str] = ()) -> None:
    """Raises Failure if, by its own status, it does not trace one of the functions. Says if it traces no function at
    all, but one of these groups of events requires that. `status`: a newer one."""
    traced = (status or node.status).functions()
    missing = [function for function in asked if traced is not None and not any(map(function.is_in, traced))]
    if missing:
        raise Failure("untraced_functions", node=node.show(), functions=", ".join(each.show() for each in missing),
                      traced=", ".join(each.show() for each in traced or [])[:200] or "no function",
                      terms=", ".join(each.erlang() for each in asked))
    lacking = [group for group in groups if group in OF_FUNCTIONS]
    if traced == [] and lacking:
        say(Failure("no_calls", node=node.show(), groups=", ".join(lacking)).text)


def nodes(more: Optional[More] = None) -> List[Node]:
    """Returns the Erlang VMs of this host."""
    return [node_of(found) for found in Survey(None, more).of(all_processes())]


def node_of(found: Found) -> Node:
    """Returns the node for a result of the survey."""
    try:
        return Node(*found)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Node(found.process, None, NO_ANSWER)


def pick(name: Optional[str]) -> Node:
    """Returns the selected node. Raises Failure if none or several match, or if tracers can't attach to it."""
    if name is not None:
        return with_library(find_node(name))
    found = nodes()
    having = [node for node in found if node.library]
    if having:
        return one_of(having, None)
    if not found:
        raise Failure("no_vm")
    return with_library(found[0])


def find_node(name: str) -> Node:
    """Returns the node of that name, prepared or not. Nodes of other names are not examined."""
    if re.fullmatch(r"[1-9]\d{0,9}", name, re.ASCII):
        numbered = Survey().of([Process(int(name))])
        if numbered:
            return node_of(numbered[0])
    found = [node_of(one) for one in Survey(name).of(all_processes())]
    return one_of([node for node in found if node.is_named(name)], name)


def one_of(found: List[Node], name: Optional[str]) -> Node:
    """Returns the only node of the list; raises Failure if it has none or several."""
    if not found:
        raise Failure("no_such_node", node=name)
    if len(found) > 1:
        raise Failure("several_nodes" if name is None else "same_name", node=name, command=sys.argv[1],
                      nodes=", ".join(node.show() for node in found), first=found[0].pid)
    return found[0]


def with_library(node: Node) -> Node:
    """Returns the node; raises Failure if tracers can't attach to it."""
    if node.library is None:
        check_readable(node)
        raise Failure("no_library", pid=node.pid, name=node.node)
    if node.removed:
        raise Failure("removed", pid=node.pid, library=node.library)
    if node.replaced:
        raise Failure("replaced", pid=node.pid)
    if node.process.is_stopped():
        raise Failure("stopped", pid=node.pid, name=node.node)
    return node


def check_readable(node: Node) -> None:
    """Raises Failure if the mappings of the process are unknown."""
    why = node.unknown.get("library")
    if why == NOT_READABLE:
        raise Failure("other_user", pid=node.pid, owner=node.user)
    if why is not None:
        raise Failure("not_readable", pid=node.pid, name=node.node, why=why)
