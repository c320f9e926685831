"""A process that takes over the output of another program of the same user, as a malicious user could.

    takeover.py WORD ACT SECONDS FILE

It waits for a process of its user that has WORD in its command line, stops it, and takes its standard output and errors
with pidfd_getfd(2). Then it does ACT: `flood` both, `hold` them, or `kill` the process and hold them. It ends after
SECONDS in all, or with the test. It writes `took` to FILE as soon as it has the streams.
"""
import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from typing import List

PIDFD_OPEN, PIDFD_GETFD = 434, 438
SYSCALL = ctypes.CDLL(None, use_errno=True).syscall


def found(word: bytes) -> List[int]:
    """Returns the user's other processes that have the word in their command lines."""
    pids = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and int(name) != os.getpid() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if word in file.read():
                        pids.append(int(name))
    return pids


def taken(pid: int) -> List[int]:
    """Stops the process and returns its streams that could be taken."""
    os.kill(pid, signal.SIGSTOP)
    process = SYSCALL(PIDFD_OPEN, pid, 0)
    return [mine for mine in (SYSCALL(PIDFD_GETFD, process, stream, 0) for stream in (1, 2)) if mine >= 0]


def has_lost_test() -> bool:
    """Returns whether the test, which holds the other end of standard input, has ended."""
    return bool(select.select([0], [], [], 0)[0]) and os.read(0, 1) == b""


def main(word: str, act: str, seconds: float, file: str) -> None:
    """Takes over the first process that appears."""
    streams: List[int] = []
    pid = 0
    end = time.monotonic() + seconds
    while not streams and time.monotonic() < end and not has_lost_test():
        for pid in found(word.encode()):
            with contextlib.suppress(OSError):
                streams = streams or taken(pid)
    with open(file, "w", encoding="ascii") as taken_over:
        taken_over.write("took")
    if act == "kill":
        os.kill(pid, signal.SIGKILL)
    while time.monotonic() < end and not has_lost_test():
        if act == "flood":
            for stream in streams:
                with contextlib.suppress(OSError):
                    os.write(stream, b"flood\n" * 10000)
        else:
            time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
