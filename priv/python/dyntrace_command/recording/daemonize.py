"""Moves a command to the background once it works, without its shell and terminal."""
import contextlib
import os
import signal
import sys
from typing import Optional

from dyntrace_command.host.execution import ENDING
from dyntrace_command.recording.snapshots import MESSAGES


def detach() -> Optional[int]:
    """Continues in a child process with its own session, and returns the pipe for `ready`. In the process that the
    shell started, returns None once the child is ready; if the child fails before, exits with its status."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        return writing
    os.close(writing)

    def pass_on(number: int, _: object) -> None:
        # The child ends in bounded time, or at once after a second signal.
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
    for number in ENDING:
        signal.signal(number, pass_on)
    if not os.read(reading, 1):
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        # From here on, the child's number may be another process's, and a signal would change this process's status.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        _, status = os.waitpid(child, 0)
        sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    return None


def ready(pipe: int, folder: str) -> None:
    """Releases the shell. From here on, messages go to a file in the folder, not to the terminal."""
    log = os.open(os.path.join(folder, MESSAGES), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for stream, replaced in ((null, 0), (log, 1), (log, 2)):
        os.dup2(stream, replaced)
    for descriptor in (log, null):
        os.close(descriptor)
    # Does not keep the current folder busy.
    os.chdir("/")
    os.write(pipe, b"1")
    os.close(pipe)
