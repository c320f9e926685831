"""The memory of a process's cgroups, in both versions of cgroups."""
import contextlib
import os
from typing import Iterator, List

from dyntrace_command.host.files import closing, read_at_most
from dyntrace_command.host.process import Process

CGROUPS = "/sys/fs/cgroup"
TEXT_MOST = 65536


def memory_files(process: Process, name: str, name_of_1: str) -> List[str]:
    """Returns where a file of its cgroup may be: its names in version 2 and in version 1."""
    rows = [line.split(":", 2) for line in text_of(f"{process.dir}/cgroup").split("\n")]
    places = [("", "", name), ("", "/unified", name), ("memory", "/memory", name_of_1)]
    return [f"{CGROUPS}{folder}{row[2]}/{file}" for row in rows if len(row) == 3 for controllers, folder, file in places
            if controllers == row[1]]


def memory_limit(process: Process) -> float:
    """Returns how many bytes of memory it may use: those of the host, or the limit of its cgroup or one above."""
    host = float(text_of("/proc/meminfo").split()[1]) * 1024
    return min([host, *(float(limit) for path in memory_files(process, "memory.max", "memory.limit_in_bytes")
                        for limit in limits(path))])


def limits(path: str) -> Iterator[str]:
    """Yields the limits in a file of that name, and in those of the cgroups above."""
    folder, name = os.path.split(path)
    while folder.startswith(CGROUPS):
        limit = text_of(f"{folder}/{name}").strip()
        if limit.isdigit():
            yield limit
        folder = os.path.dirname(folder)


def text_of(path: str) -> str:
    """Returns the text of a file of the kernel; empty if it can't be read."""
    with contextlib.suppress(OSError), closing(os.open(path, os.O_RDONLY)) as file:
        return read_at_most(file, TEXT_MOST).decode("utf-8", "replace")
    return ""
