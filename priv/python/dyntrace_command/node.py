"""The Erlang VMs of this host: what is known of each, and which one is meant.

All comes from /proc: the command asks no node for anything, so a node that hangs is shown too.
"""
import contextlib
import os
import re
import socket
import sys
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from dyntrace_command.container import Container, Mapping, lttng_consumers
from dyntrace_command.failures import Failure, user_name
from dyntrace_command.functions import Function
from dyntrace_command.places import FOLDER
from dyntrace_command.process import Process, processes
from dyntrace_command.status import Status
from dyntrace_command.terminal import clean

LIBRARY = "dyntrace.so"
PROVIDER = "org_erlang_dyntrace"
# Folders of `releases` in which the release's version is looked for.
RELEASES = 20

Value = TypeVar("Value")


class Consumers(NamedTuple):
    """Who traces a node: its enabled probes, and the users whose LTTng records it."""
    usdt: List[str]
    lttng: List[str]


class Node:
    """An Erlang VM. Where something can't be known it is None, and `unknown` has the reason by the field's name.

    `container`: its name, None on the host. `library`: the path in the node's own file system, None if it is not
    loaded; `replaced`: it has been replaced on disk since. `version` is dyntrace's, `otp` the release's.
    """

    def __init__(self, process: Process, arguments: List[str]) -> None:
        self.process, self.pid = process, process.pid
        self.inside = Container(process)
        self.descriptor: Optional[int] = None
        self.arguments = erl_arguments(arguments)
        self.unknown: Dict[str, str] = {}
        self.user = user_name(process.uid())
        no_mappings: List[Mapping] = []
        self.mapped = self.known("library", self.inside.mappings, no_mappings)
        self.library, self.replaced = self.find_library()
        self.status = self.known("status", lambda: Status(self.inside.status(self.library, self.mapped)), Status())
        self.node = self.known("node", self.find_name, "?")
        self.otp = self.known("otp", self.find_otp, None)
        self.container = self.known("container", self.find_container, None)
        self.version: Optional[str] = None
        self.consumers: Optional[Consumers] = None
        if self.library:
            library = self.library
            self.version = self.known("version", lambda: self.find_version(library), None)
            self.consumers = self.known("consumers", lambda: self.find_consumers(library), None)

    def known(self, field: str, find: Callable[[], Value], default: Value) -> Value:
        """Returns what `find` does; if that fails, the default, with the reason in `unknown`."""
        try:
            return find()
        except PermissionError:
            self.unknown[field] = "only its user and root may read it"
        except (OSError, ValueError, IndexError, OverflowError) as error:
            self.unknown[field] = clean(str(error))
        return default

    def as_json(self) -> Dict[str, object]:
        """Returns what `dyntrace nodes --json` prints; the names are an interface."""
        return {"pid": self.pid, "container": self.container, "node": self.node, "guessed": is_guessed(self),
                "otp": self.otp, "version": self.version, "consumers": self.consumers and self.consumers._asdict(),
                "user": self.user, "library": self.library, "following": self.status.said("following"),
                "alone": self.status.is_alone(), "withheld": self.status.withheld(), "unknown": self.unknown}

    def is_named(self, name: str) -> bool:
        """Returns whether this is its name, the part before @, or its number."""
        return name in (self.node, self.node.partition("@")[0], str(self.pid))

    def show(self) -> str:
        """Returns its name for people."""
        return f"{self.node} ({self.pid})"

    def label(self) -> str:
        """Returns its name for names of files."""
        name = self.node if self.node != "nonode@nohost" else str(self.pid)
        return re.sub(r"[^A-Za-z0-9_.@-]", "_", name)[:64]

    def lives(self) -> bool:
        """Returns false also if another process has its number now."""
        return not self.process.has_ended()

    # The library

    def files(self, name: str) -> List[Tuple[str, bool]]:
        """Returns [(path, whether it was replaced since)] of the mapped files of this name."""
        mapped = [(path.replace(" (deleted)", ""), path.endswith(" (deleted)")) for _, _, path in self.mapped]
        return [(path, replaced) for path, replaced in mapped if os.path.basename(path) == name]

    def find_library(self) -> Tuple[Optional[str], bool]:
        """Returns one of files(); (None, False) if none is mapped."""
        # After an upgrade two files are mapped: the one that is still there is the one to attach to.
        # What `dyntrace unload` has removed stays mapped until the node ends.
        found = [(path, replaced) for path, replaced in self.files(LIBRARY) if not replaced or not FOLDER.search(path)]
        whole = [(path, replaced) for path, replaced in found if not replaced]
        return (whole or found)[-1] if found else (None, False)

    def handle(self, alone: bool = False) -> str:
        """Returns a path of the library for tracers. It leads to one file, whatever the node's user or container makes
        of the names in their file system, and has no character that means something to bpftrace.

        For a tracer of this node alone, bpftrace with -p, the path begins with the node's root if that has mounts of
        its own: bpftrace would put it before any other path. That name is checked now, and bpftrace opens it later."""
        assert self.library
        if self.descriptor is None:
            self.descriptor = self.inside.open_regular(self.library)
        if not self.lives():
            raise Failure("node_gone", pid=self.pid, name=self.node)
        if alone and not self.process.shares("mnt"):
            return self.plain_path(self.descriptor)
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def plain_path(self, descriptor: int) -> str:
        """Returns the path outside if it leads to that file and has no special character; else raises Failure."""
        path, why = self.outside(), "its path has a link or an unusual character"
        try:
            if re.fullmatch(r"[\w./@+~-]+", path, re.ASCII) and os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return path
        except OSError as error:
            why = f"its path can't be opened: {error.strerror}"
        raise Failure("not_alone", pid=self.pid, name=self.node, why=why)

    def outside(self) -> str:
        """Returns the path by which people find the library on this host."""
        assert self.library
        return f"{self.process.dir}/root{self.inside.paths(self.library)[-1]}"

    def find_version(self, library: str) -> str:
        """Returns dyntrace's version from the application's description, else from the name of its folder."""
        application = os.path.dirname(os.path.dirname(library))
        for name in ("ebin/dyntrace.app", "src/dyntrace.app.src"):
            with contextlib.suppress(OSError):
                text = self.inside.read_text(os.path.join(application, name))
                found = re.search(r'{\s*vsn\s*,\s*"([\w.+-]{1,40})"', text)
                if found:
                    return found.group(1)
        found = re.search(r"/dyntrace-([\w.+-]{1,40})/priv/", library)
        if not found:
            raise ValueError("no dyntrace.app is beside the library")
        return found.group(1)

    # Its name

    def find_name(self) -> str:
        """Returns the node's name: what it says itself; without the library, what the command line says, else epmd."""
        said = self.status.name()
        if said:
            return said
        long = self.arguments.get("name")
        name = long or self.arguments.get("sname")
        if name is None or name == "undefined":
            return self.name_of_epmd() or "nonode@nohost"
        return clean(name if "@" in name else f"{name}@{self.host(bool(long))}")

    def host(self, whole: bool) -> str:
        """Returns the name of the node's host, as far as it is known without asking the network."""
        name = socket.gethostname() if self.process.shares("uts") else self.inside.hostname()
        if not whole:
            return name.split(".")[0]
        return name if "." in name else "?"

    def name_of_epmd(self) -> Optional[str]:
        """Returns the name of a node that has started its distribution later: epmd has it by the port that it listens
        on."""
        # epmd first: to be refused costs less than the list of a network's sockets, for which the kernel takes 10 ms.
        names = self.inside.registered()
        ports = [one.port for one in self.process.listens()] if names else []
        found = [names[port] for port in ports if port in names]
        return clean(f"{found[0]}@{self.host(False)}") if found else None

    # Its release

    def find_otp(self) -> str:
        """Returns the release of OTP from OTP_VERSION, else from the number of erts, which is the release's less 12."""
        releases = self.arguments.get("root", "") + "/releases"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in self.inside.list_folder(releases)[:RELEASES]:
                with contextlib.suppress(OSError):
                    text = self.inside.read_text(f"{releases}/{name}/OTP_VERSION")
                    if re.fullmatch(r"[\w.+-]{1,40}\n?", text):
                        return text.strip()
        for path in (self.arguments.get("bindir", ""), self.known("otp", self.inside.executable, "")):
            found = re.search(r"/erts-(\d+)(?:\.\d+)*/", path + "/")
            if found:
                return str(int(found.group(1)) + 12)
        raise ValueError("neither an OTP_VERSION nor the number of erts is in its paths")

    def find_container(self) -> Optional[str]:
        """Returns the container's name or `yes`; None if it shares this command's file system and processes."""
        if self.process.namespace("mnt") is None:
            raise PermissionError
        if self.process.shares("mnt") and self.process.shares("pid"):
            return None
        found = re.search(r"([0-9a-f]{12})[0-9a-f]{52}|machine\.slice/[^/]*?-([^/]+?)\.scope|/lxc[./]([^/\s]+)",
                          self.inside.text("cgroup"))
        return clean(next(filter(None, found.groups()))) if found else "yes"

    # Its consumers

    def find_consumers(self, library: str) -> Consumers:
        """Returns its consumers."""
        probes = self.inside.probes(library, self.mapped)
        return Consumers(sorted(name for name, enabled in probes.items() if enabled), self.lttng_users())

    def probes(self) -> Dict[str, bool]:
        """Returns {provider:name: whether it is enabled now}; empty if that can't be read."""
        none: Dict[str, bool] = {}
        if self.library is None:
            return none
        library = self.library
        return self.known("consumers", lambda: self.inside.probes(library, self.mapped), none)

    def lttng_users(self) -> List[str]:
        """Returns the users whose daemons have buffers of a session in the process."""
        users = set()
        for pid in lttng_consumers(self.mapped):
            try:
                users.add(user_name(Process(pid).uid()))
            except OSError:
                users.add("?")
        return sorted(users)


def is_guessed(node: Node) -> bool:
    """Returns whether a part of its name is told neither by the node nor by its command line: epmd knows no host."""
    told = node.arguments.get("name") or node.arguments.get("sname") or ""
    return node.status.name() is None and "@" not in told and node.node not in ("?", "nonode@nohost")


def status_now(node: Node) -> Status:
    """Returns what it says now; nothing if that can't be read. What it can't trace changes while consumers are
    attached."""
    with contextlib.suppress(OSError, ValueError, IndexError, OverflowError):
        return Status(node.inside.status(node.library, node.mapped))
    return Status()


def check_traced(node: Node, asked: Sequence[Function]) -> None:
    """Raises Failure if it says that it does not trace one of the functions."""
    traced = node.status.functions()
    missing = [function for function in asked if traced is not None and not any(map(function.is_in, traced))]
    if missing:
        raise Failure("untraced_functions", node=node.show(), functions=", ".join(each.show() for each in missing),
                      traced=", ".join(each.show() for each in traced or [])[:200] or "no function",
                      terms=", ".join(each.erlang() for each in asked))


def erl_arguments(arguments: List[str]) -> Dict[str, str]:
    """Returns the emulator's options that have a value; an application's own come after -extra."""
    if "-extra" in arguments:
        arguments = arguments[:arguments.index("-extra")]
    wanted = {"-" + name: name for name in ("root", "bindir", "name", "sname", "boot", "JPperf", "JPperfdirectory")}
    return {wanted[key]: value for key, value in zip(arguments, arguments[1:]) if key in wanted}


def nodes() -> List[Node]:
    """Returns the Erlang VMs of this host, found by their program's name or by the mapped library."""
    found = []
    for process in processes():
        with contextlib.suppress(OSError, IndexError):
            inside = Container(process)
            arguments = inside.arguments()
            program = os.path.basename(arguments[0])
            if re.fullmatch(r"beam(\.\w+)*", program) or inside.text("comm").startswith("beam.") \
                    or "/" + LIBRARY in inside.text("maps"):
                found.append(Node(process, arguments))
    return found


def pick(name: Optional[str]) -> Node:
    """Returns the one node that is meant; raises Failure if there is none or several, or tracers can't attach to it."""
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
    """Returns the node of that name, prepared or not."""
    found = nodes()
    # Another node may have this number as its name.
    numbered = [node for node in found if str(node.pid) == name]
    return one_of(numbered or [node for node in found if node.is_named(name)], name)


def one_of(found: List[Node], name: Optional[str]) -> Node:
    """Returns the only one of them."""
    if not found:
        raise Failure("no_such_node", node=name)
    if len(found) > 1:
        raise Failure("several_nodes" if name is None else "same_name", node=name, command=sys.argv[1],
                      nodes=", ".join(node.show() for node in found), first=found[0].pid)
    return found[0]


def with_library(node: Node) -> Node:
    """Returns the node if tracers can attach to it."""
    if node.library is None:
        key = "other_user" if "library" in node.unknown else "no_library"
        raise Failure(key, pid=node.pid, name=node.node, owner=node.user)
    if node.replaced:
        raise Failure("replaced", pid=node.pid)
    if node.process.is_stopped():
        raise Failure("stopped", pid=node.pid, name=node.node)
    return node
