"""The builds of the library on this host, and the one that a node needs."""
import contextlib
import functools
import glob
import os
from typing import Dict, Iterable, List, NamedTuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.host.elf import Target, read_target
from dyntrace_command.host.file_system import LIBRARY_MOST
from dyntrace_command.host.files import read_regular
from dyntrace_command.host.tools import OWN, own_data, own_version
from dyntrace_command.node.description import LIBRARY
from dyntrace_command.node.node import Node

MACHINES = {62: "x86-64", 183: "arm64"}


class Build(NamedTuple):
    """A build: its target, the folder of its libraries, and the folder of its modules."""
    target: Target
    folder: str
    ebin: str

    def files(self) -> Dict[str, str]:
        """Returns {path in the application's folder: file}."""
        found = sorted(glob.glob(glob.escape(self.ebin) + "/*.beam")) + [f"{self.ebin}/dyntrace.app"]
        libraries = sorted(glob.glob(glob.escape(self.folder) + "/dyntrace*.so"))
        folder = application_folder()
        return {**{f"{folder}/ebin/{os.path.basename(path)}": path for path in found},
                **{f"{folder}/priv/{os.path.basename(path)}": path for path in libraries}}

    def contents(self) -> Dict[str, bytes]:
        """Returns {path in the application's folder: contents}."""
        return {path: read_regular(file, LIBRARY_MOST) for path, file in self.files().items()}


def application_folder() -> str:
    """Returns the name of the application's folder."""
    return f"dyntrace-{own_version()}"


def modules_in(paths: Iterable[str]) -> List[str]:
    """Returns the names of the modules among the files of a build."""
    return [os.path.basename(path)[:-len(".beam")] for path in paths if path.endswith(".beam")]


def ebin() -> str:
    """Returns the folder of the modules: the installed one, or the one of rebar3 or Mix, or the one of `make`."""
    for folder in (own_data("ebin"), os.path.join(os.path.dirname(OWN), "ebin"),
                   os.path.join(os.path.dirname(OWN), "_build", "default", "lib", "dyntrace", "ebin")):
        if os.path.isfile(os.path.join(folder, "dyntrace.app")):
            return folder
    raise Failure("load_not_built", places=OWN)


@functools.lru_cache(maxsize=None)
def builds() -> List[Build]:
    """Returns the builds of this host."""
    found = []
    for library in [own_data(LIBRARY), *sorted(glob.glob(glob.escape(own_data("builds")) + f"/*/{LIBRARY}"))]:
        with contextlib.suppress(OSError, ValueError):
            found.append(Build(read_target(read_regular(library, LIBRARY_MOST)), os.path.dirname(library), ebin()))
    return found


def build_for(node: Node) -> Build:
    """Returns a build for the node's machine and C library. Only the node knows the version of erl_nif in its VM, so
    this is the build for the oldest version."""
    machine, libc = node.target
    all_builds = builds()
    if not all_builds:
        raise Failure("load_not_built", places=OWN)
    fitting = [build for build in all_builds if (build.target.machine, build.target.libc) == (machine, libc)]
    if not fitting:
        raise Failure("load_no_build", pid=node.pid, name=node.node, wanted=described(machine, libc),
                      found=", ".join(described(*build.target[:2]) for build in all_builds))
    return min(fitting, key=lambda build: build.target.nif)


def described(machine: int, libc: str) -> str:
    """Returns a machine and a C library as text for users."""
    return f"{libc} on {MACHINES.get(machine, f'machine {machine}')}"
