"""Programs that this command starts, and how they end: with the command, whatever ends it.

A child of its own gets a signal from the kernel (`end_with_parent`). What only a command can undo, such as a session of
LTTng, has a `Guard`: a shell that waits for the end of this command.
"""
import contextlib
import ctypes
import signal
import subprocess
import tempfile
import threading
import time
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional

PRCTL = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """For `preexec_fn`: the program ends with this command, also if that one is killed. It does nothing else after
    the fork, when other threads may have held locks."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)


def until(condition: Callable[[], object], seconds: float) -> bool:
    """Polls; returns whether the condition has become true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Guard:
    """Runs a command if this one is killed: its standard input ends then. Later guards come first: they hold the pipes
    of those before them."""

    standing: List["Guard"] = []

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(["/bin/sh", "-c", 'read done || exec "$@"', "guard", *command],
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True, pass_fds=self.descriptors())
        assert self.process.stdin
        self.pipe = self.process.stdin
        self.standing.append(self)

    @classmethod
    def descriptors(cls) -> List[int]:
        """Returns the pipes of all guards: a program that inherits them holds the guards back until its end."""
        return [guard.pipe.fileno() for guard in cls.standing]

    def act(self) -> None:
        """Runs its command now, beside this one."""
        self.standing.remove(self)
        self.pipe.close()

    def release(self) -> None:
        """Ends the guard; its command is not run."""
        self.standing.remove(self)
        with contextlib.suppress(OSError):
            self.pipe.write(b"done\n")
            self.pipe.close()
        self.process.wait()


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Yields a folder that is removed at the end, also if this command is killed."""
    with tempfile.TemporaryDirectory(prefix="dyntrace-") as temporary:
        guard = Guard("rm", "-rf", "--", temporary)
        try:
            yield temporary
        finally:
            guard.release()


class Interrupted:
    """Ctrl-C, and signals that would end the command: they set `happened`, so that the work ends instead. SIGUSR1 sets
    `snapshot`."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.happened = threading.Event()
        self.snapshot = threading.Event()
        self.before: Dict[int, Any] = {}

    def __enter__(self) -> "Interrupted":
        self.before = {number: signal.signal(number, self.note) for number in (*self.SIGNALS, signal.SIGUSR1)}
        return self

    def note(self, number: int, _: Optional[FrameType]) -> None:
        """Handles a signal."""
        (self.snapshot if number == signal.SIGUSR1 else self.happened).set()

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
