"""What is installed on the host: other programs, in supported versions, and the data of this package."""
import contextlib
import functools
import os
import re
import shutil
import sys
from typing import List, NamedTuple, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.host.execution import Program, run
from dyntrace_command.host.files import read_regular

# Seconds that a tool may take to print its version.
VERSION_S = 10

Version = Tuple[int, ...]


class Tool(NamedTuple):
    """A tool's package in Debian, and the minimum version, if any, with the reason."""
    package: str
    needed: Version = ()
    why: str = ""


TOOLS = {
    "bpftrace": Tool("bpftrace", (0, 17), "to read USDT probes with semaphores"),
    "lttng": Tool("lttng-tools", (2, 13), "for the tracepoints"),
    "lttng-relayd": Tool("lttng-tools", (2, 13), "for the tracepoints"),
    "lttng-sessiond": Tool("lttng-tools", (2, 13), "for the tracepoints"),
    "babeltrace2": Tool("babeltrace2", (2, 0), "to load plugins"),
}


@functools.lru_cache(maxsize=None)
def tool(name: str) -> str:
    """Returns the tool's path; raises Failure if it is missing or too old."""
    about = TOOLS[name]
    path = shutil.which(name)
    if path is None:
        raise Failure("no_tool", tool=name, package=about.package)
    if about.needed and tool_version(path) < about.needed:
        raise Failure("old_tool", tool=name, version=shown(tool_version(path)), needed=shown(about.needed),
                      why=about.why, package=about.package)
    return path


@functools.lru_cache(maxsize=None)
def tool_version(path: str) -> Version:
    """Returns (major, minor). A version that can't be read counts as new enough."""
    output = run(Program([path, "--version"]), VERSION_S).output
    # Some tools print their own path first, which may contain numbers.
    found = re.search(r"\b[vV]?(\d+)\.(\d+)", output.replace(path, ""))
    return (int(found.group(1)), int(found.group(2))) if found else (99, 0)


def shown(version: Version) -> str:
    """Returns a version as text."""
    return ".".join(map(str, version))


# The parent of this package's folder: priv, or lib/dyntrace below the prefix of `make install`.
OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))


def own_data(*path: str) -> str:
    """Returns the path of a file or folder that is installed with this package."""
    return os.path.join(OWN, *path)


# Where the application's description with the version is: after `make install`, in a checkout, in a release.
DESCRIPTIONS = ("dyntrace.app.src", "../src/dyntrace.app.src", "../ebin/dyntrace.app")
DESCRIPTION_MOST = 1 << 16


@functools.lru_cache(maxsize=None)
def own_version() -> str:
    """Returns the version of this package."""
    for path in DESCRIPTIONS:
        with contextlib.suppress(OSError):
            found = re.search(rb'{vsn, *"([\w.+-]{1,40})"}', read_regular(own_data(path), DESCRIPTION_MOST))
            if found:
                return found.group(1).decode("ascii")
    return "unknown"


def own_program() -> List[str]:
    """Returns the command line that starts this command again."""
    return [sys.executable, "-IS", os.path.realpath(sys.argv[0])]
