"""Describes an Erlang VM from outside, in a child process of this command (`sandbox`).

A description is a dictionary of plain values, of bounded size. The child sends it, and `node` reads it.
"""
import contextlib
import os
import re
import socket
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

from dyntrace_command.common.failures import reason
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.process import Process
from dyntrace_command.node.container import Container, Mapping, lttng_consumers
from dyntrace_command.node.status import Status
from dyntrace_command.node.vm_memory import is_jit_memory

LIBRARY, LTTNG_LIBRARY = "dyntrace.so", "dyntrace_lttng.so"
PROGRAM = re.compile(r"beam(\.\w+)*")
# Where `dyntrace load` puts the library in the node's file system: parent, folder, then the application's subfolders.
PARENTS = ("/tmp", "/var/tmp", "/dev/shm", "/run")
LOADED_NAME = r"dyntrace-load-(\d{1,9})-(\d{1,19})-[0-9a-f]{8}"
LOADED = re.compile(rf"({'|'.join(PARENTS)})/({LOADED_NAME})/dyntrace-[\w.+-]{{1,40}}/(?:ebin|priv)/[\w.]+")
LIBCS = {"glibc": r"libc[.-](so\.6|2\..*\.so)", "musl": r"ld-musl-.*|libc\.musl-.*"}
# Options of the emulator whose values are used.
OPTIONS = ("root", "bindir", "name", "sname", "boot")
# How many subfolders of `releases` are searched.
RELEASES = 20
# Characters of a value; no path is longer.
VALUE_MOST = 4096

NOT_READABLE = "only its user and root may read it"

Value = TypeVar("Value")


class Description:
    """An Erlang VM as its process presents it. A field that can't be determined is None, and `unknown` has the reason
    under the field's name."""

    def __init__(self, process: Process, arguments: List[str]) -> None:
        self.process, self.inside = process, Container(process)
        self.arguments = erl_arguments(arguments)
        self.unknown: Dict[str, str] = {}
        no_mappings: List[Mapping] = []
        self.mapped = self.known("library", self.read_mappings, no_mappings)
        self.library, self.replaced = find_library(self.mapped)
        self.removed = self.replaced and self.is_removed()
        no_lines: List[Tuple[str, str]] = []
        readable = None if self.removed else self.library
        self.status = self.known("status", lambda: self.inside.status(readable, self.mapped), no_lines)

    def known(self, field: str, find: Callable[[], Value], default: Value) -> Value:
        """Returns the result of `find`; if that fails, the default, and records the reason in `unknown`."""
        try:
            return find()
        except PermissionError:
            self.unknown[field] = NOT_READABLE
        except (OSError, ValueError, IndexError, OverflowError, MemoryError) as error:
            self.unknown[field] = clean(reason(error))[:VALUE_MOST]
        return default

    def values(self) -> Dict[str, Any]:
        """Returns the description."""
        return {
            "arguments": {key: value[:VALUE_MOST] for key, value in self.arguments.items()},
            "library": self.library, "replaced": self.replaced, "removed": self.removed, "status": self.status,
            "node": self.known("node", self.find_name, "?")[:VALUE_MOST],
            "otp": self.known("otp", self.find_otp, None),
            "container": self.known("container", self.find_container, None),
            "version": self.known("version", self.find_version, None) if self.library else None,
            "usdt": self.known("consumers", self.find_usdt, None) if self.library else None,
            "lttng": sorted(lttng_consumers(self.mapped)),
            "has_lttng": bool(files(LTTNG_LIBRARY, self.mapped)), "libc": libc_of(self.mapped),
            "machine": self.known("machine", self.inside.machine, 0), "jit": any(map(is_jit_memory, self.mapped)),
            "home": self.known("home", self.find_home, ""),
            "unknown": self.unknown}

    # Its library

    def read_mappings(self) -> List[Mapping]:
        """Returns its mappings, if its program has only the rights of the user who started it."""
        if self.inside.has_other_rights():
            raise OSError(0, "its program is set-user-ID or set-group-ID")
        return self.inside.mappings()

    def find_home(self) -> str:
        """Returns the folder in which LTTng finds its user's session daemon; an empty text if there is none."""
        environment = self.inside.environment()
        return (environment.get("LTTNG_HOME") or environment.get("HOME") or "")[:VALUE_MOST]

    def find_version(self) -> str:
        """Returns dyntrace's version from the application's description, else from the name of its folder."""
        application = re.sub(r"/priv/(builds/[^/]+/)?[^/]*$", "", self.library or "")
        for name in ("ebin/dyntrace.app", "src/dyntrace.app.src"):
            with contextlib.suppress(OSError):
                text = self.inside.read_text(os.path.join(application, name))
                found = re.search(r'{\s*vsn\s*,\s*"([\w.+-]{1,40})"', text)
                if found:
                    return found.group(1)
        found = re.search(r"/dyntrace-([\w.+-]{1,40})/priv/", self.library or "")
        if not found:
            raise ValueError("there is no dyntrace.app beside the library")
        return found.group(1)

    def is_removed(self) -> bool:
        """Returns whether no file has the path of the library: an upgrade may have removed its folder."""
        try:
            os.close(self.inside.open(self.library or ""))
        except OSError as error:
            return isinstance(error, FileNotFoundError)
        return False

    def find_usdt(self) -> List[str]:
        """Returns the names of its enabled probes."""
        if self.removed:
            raise ValueError("its library was removed from disk")
        probes = self.inside.probes(self.library or "", self.mapped)
        return sorted(name for name, is_enabled in probes.items() if is_enabled)

    # Its name

    def find_name(self) -> str:
        """Returns the node's name: from its status; without the library, from the command line, else from epmd."""
        said = Status(self.status).name()
        if said:
            return said
        long = self.arguments.get("name")
        name = long or self.arguments.get("sname")
        if name is None or name == "undefined":
            return self.name_of_epmd() or "nonode@nohost"
        return clean(name if "@" in name else f"{name}@{self.host(bool(long))}")

    def host(self, is_long: bool) -> str:
        """Returns the host part of the node's name, as far as it is known without a network query."""
        name = socket.gethostname() if self.process.shares("uts") else self.inside.environment().get("HOSTNAME", "?")
        if not is_long:
            return name.split(".")[0]
        return name if "." in name else "?"

    def name_of_epmd(self) -> Optional[str]:
        """Returns the name of a node that started its distribution later. It is found in epmd by the port that the node
        listens on."""
        # epmd first: a refused connection costs less than listing a network's sockets, for which the kernel takes 10
        # ms.
        names = self.inside.registered()
        ports = [one.port for one in self.inside.listens()] if names else []
        found = [names[port] for port in ports if port in names]
        return clean(f"{found[0]}@{self.host(False)}") if found else None

    # Its release

    def find_otp(self) -> str:
        """Returns the OTP release from OTP_VERSION, else from the version of erts, whose major number is the release's
        minus 12."""
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
        raise ValueError("its paths have neither an OTP_VERSION nor a version of erts")

    def find_container(self) -> Optional[str]:
        """Returns the container's name or `yes`; None if it shares this command's mount and PID namespaces."""
        if self.process.namespace("mnt") is None:
            raise PermissionError
        if self.process.shares("mnt") and self.process.shares("pid"):
            return None
        found = re.search(r"([0-9a-f]{12})[0-9a-f]{52}|machine\.slice/[^/]*?-([^/]+?)\.scope|/lxc[./]([^/\s]+)",
                          self.inside.text("cgroup"))
        return clean(next(filter(None, found.groups())))[:VALUE_MOST] if found else "yes"


def find_library(mapped: Sequence[Mapping]) -> Tuple[Optional[str], bool]:
    """Returns the path of the mapped library, and whether it was replaced on disk since; (None, False) if none is
    mapped."""
    # After an upgrade, two files are mapped: tracers attach to the one that still exists. A library that `dyntrace
    # unload` has removed stays mapped until the node ends.
    found = [(path, replaced) for path, replaced in files(LIBRARY, mapped) if not replaced or not LOADED.search(path)]
    whole = [(path, replaced) for path, replaced in found if not replaced]
    return (whole or found)[-1] if found else (None, False)


def files(name: str, mapped: Sequence[Mapping]) -> List[Tuple[str, bool]]:
    """Returns [(path, whether it was replaced since)] of the mapped files with this name."""
    found = [(re.sub(r" \(deleted\)$", "", part.path), part.path.endswith(" (deleted)")) for part in mapped]
    return [(path, replaced) for path, replaced in found if os.path.basename(path) == name]


def libc_of(mapped: Sequence[Mapping]) -> str:
    """Returns the C library that a process has mapped."""
    names = {os.path.basename(part.path) for part in mapped}
    return next((libc for libc, pattern in LIBCS.items() if any(re.fullmatch(pattern, name) for name in names)), "?")


def erl_arguments(arguments: List[str]) -> Dict[str, str]:
    """Returns the emulator's options that have a value; the application's own options follow -extra."""
    if "-extra" in arguments:
        arguments = arguments[:arguments.index("-extra")]
    wanted = {"-" + name: name for name in OPTIONS}
    return {wanted[key]: value for key, value in zip(arguments, arguments[1:]) if key in wanted}


# -- The look at many processes ----------------------------------------------------------------------------------------

# Adds further values to the description of a VM.
More = Callable[[Process, Dict[str, Any]], Any]


def look(processes: Sequence[Process], name: Optional[str], more: Optional[More],
         is_host: bool) -> Iterator[Dict[str, Any]]:
    """Yields, for each process, first its PID as a sign of progress, then its description if it is an Erlang VM. If a
    name is wanted, VMs whose command line has another name are skipped. On the host, root's child does not describe VMs
    of other network or UTS namespaces, but only reports their PIDs. At the end it reports process 0."""
    for process in processes:
        yield {"at": process.pid}
        with contextlib.suppress(OSError, IndexError, ValueError):
            inside = Container(process)
            if is_refused(inside):
                continue
            arguments = inside.arguments()
            if is_vm(inside, arguments) and (name is None or may_have(name, erl_arguments(arguments))):
                if is_host and not (process.shares("net") and process.shares("uts")):
                    yield {"pid": process.pid}
                    continue
                values = Description(process, arguments).values()
                if more is not None:
                    values["more"] = more(process, values)
                yield {"pid": process.pid, "values": values}
    yield {"at": 0}


def is_refused(inside: Container) -> bool:
    """Returns whether the process certainly runs a set-user-ID program, or no program, as kernel threads do."""
    try:
        return inside.has_other_rights()
    except FileNotFoundError:
        return True
    except OSError:
        # It may still be a VM, whose description then has the reason.
        return False


def is_vm(inside: Container, arguments: List[str]) -> bool:
    """Returns whether it is an Erlang VM, judged by its program's name or by the mapped library."""
    if not arguments:
        return False
    return bool(PROGRAM.fullmatch(os.path.basename(arguments[0]))) or inside.text("comm").startswith("beam.") \
        or "/" + LIBRARY in inside.text("maps")


def may_have(name: str, arguments: Dict[str, str]) -> bool:
    """Returns whether a VM with these arguments may have this name, with or without the host."""
    own = arguments.get("name") or arguments.get("sname")
    return own in (None, "undefined") or str(own).partition("@")[0] == name.partition("@")[0]
