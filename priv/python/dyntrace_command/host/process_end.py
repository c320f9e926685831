"""How a process ends: the kernel's status of it, and whether memory ran out.

The status belongs to the parent of a process. Since Linux 6.15, a descriptor of the process (pidfd) has it, too.
Before, only a process that its parent has not waited for yet shows it, to its own user and to root.
"""
import contextlib
import fcntl
import os
import re
import signal
import struct
import time
from typing import Iterator, Optional

from dyntrace_command.host.cgroups import TEXT_MOST, memory_files
from dyntrace_command.host.process import Process

# <linux/pidfd.h>: the request PIDFD_GET_INFO, its structure up to the exit code, and the bit for the exit code.
GET_INFO, INFO, EXIT = 0xC040FF0B, "=QQ11Ii", 1 << 3
# Seconds after the end in which the parent usually waits for it.
PARENT_S = 0.5
STEP_S = 0.01
# The field exit_code of /proc/PID/stat, counted after the name.
STAT_FIELD = 49

# The counters of the two versions of cgroups.
KILLS = re.compile(r"^oom_kill (\d+)$", re.M)
# Records of the kernel's log.
RECORDS_MOST, RECORD_MOST = 10000, 8192


class EndWatch:
    """Notices the end of a process at once, and says how it ended. `descriptor` becomes readable then; it is -1 if the
    kernel or Python has no such descriptors."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.descriptor = self.log = -1
        with contextlib.suppress(OSError, AttributeError):
            self.descriptor = os.pidfd_open(process.pid)  # type: ignore[attr-defined]
        if self.descriptor != -1 and process.has_ended():
            # Another process may have its PID.
            os.close(self.descriptor)
            self.descriptor = -1
        # Only root may read it.
        with contextlib.suppress(OSError):
            self.log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.log, 0, os.SEEK_END)
        self.counters = list(counters_of(process))
        self.kills = self.count_kills()

    def how(self) -> str:
        """Returns how the process has ended."""
        status = self.status()
        if status is None:
            return "the kernel does not say how"
        if not os.WIFSIGNALED(status):
            return f"exited with status {os.WEXITSTATUS(status)}"
        number = os.WTERMSIG(status)
        return f"killed by {number == signal.SIGKILL and self.out_of_memory() or signal_name(number)}"

    def status(self) -> Optional[int]:
        """Returns the status that its parent gets from `wait`, or None."""
        deadline = time.monotonic() + PARENT_S
        while True:
            status = self.status_of_descriptor()
            if status is not None or time.monotonic() >= deadline:
                return self.status_of_zombie() if status is None else status
            time.sleep(STEP_S)

    def status_of_descriptor(self) -> Optional[int]:
        """Returns the status once the parent has waited for the process."""
        info = bytearray(struct.pack(INFO, EXIT, *[0] * 13))
        with contextlib.suppress(OSError, ValueError):
            fcntl.ioctl(self.descriptor, GET_INFO, info)
            mask, *_, status = struct.unpack(INFO, info)
            return status if mask & EXIT else None
        return None

    def status_of_zombie(self) -> Optional[int]:
        """Returns the status if its parent has not waited for it."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            if self.process.status() == ("Z", self.process.began) and os.geteuid() in (0, self.process.uid()):
                with open(f"{self.process.dir}/stat", "rb") as file:
                    return int(file.read().rsplit(b")", 1)[1].split()[STAT_FIELD])
        return None

    def out_of_memory(self) -> str:
        """Returns a text if the kernel killed it because memory ran out."""
        killed = re.compile(rb"Killed process %d \(" % self.process.pid)
        if any(killed.search(record) for record in self.records()):
            return "the kernel, because memory ran out"
        if self.count_kills() > self.kills:
            return "SIGKILL, and the kernel killed a process of its cgroup because memory ran out"
        return ""

    def records(self) -> Iterator[bytes]:
        """Yields the new records of the kernel's log."""
        with contextlib.suppress(OSError):
            for _ in range(RECORDS_MOST):
                with contextlib.suppress(BrokenPipeError):
                    yield os.read(self.log, RECORD_MOST)

    def count_kills(self) -> int:
        """Returns how many processes of its cgroup were killed because memory ran out."""
        return sum(map(kills, self.counters))

    def close(self) -> None:
        """Closes its descriptors."""
        for descriptor in [self.descriptor, self.log, *self.counters]:
            if descriptor != -1:
                os.close(descriptor)
        self.descriptor, self.log, self.counters = -1, -1, []


def signal_name(number: int) -> str:
    """Returns the name of a signal."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def counters_of(process: Process) -> Iterator[int]:
    """Yields open files that count the processes of its cgroups that the kernel killed because memory ran out. They are
    opened before its end, because the cgroup may be removed then."""
    for path in memory_files(process, "memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            yield os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def kills(counter: int) -> int:
    """Returns the value of a counter, 0 if it is gone."""
    with contextlib.suppress(OSError):
        found = KILLS.search(os.pread(counter, TEXT_MOST, 0).decode("ascii", "replace"))
        return int(found.group(1)) if found else 0
    return 0
