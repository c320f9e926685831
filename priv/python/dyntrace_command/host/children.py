"""Child processes that outlive this command. They undo its work, however it ends.

Work that only another command can undo, such as destroying an LTTng session, has a `Guard`: a child that waits for this
command to end. A program that must end before the guards act, such as a running `lttng`, holds their pipes if it runs
as this command's user; otherwise a keeper runs it and holds them. Guards and keepers are children of this command with
its user. Programs that they run as another user inherit nothing from them.
"""
import contextlib
import math
import os
import select
import shutil
import signal
import struct
import tempfile
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Sequence

from dyntrace_command.common.terminal import Screen, say
from dyntrace_command.host.execution import (DROPPED, ENDING, HANDLED, MERGED, NO_ANSWER, PATIENCE_S, PIECE, SHORT_S,
                                             STEP_S, Ended, Program, Surviving, fork, run, until)
from dyntrace_command.host.sandbox import LIBC, PR_SET_NAME, Child, close_others, leave_terminal
from dyntrace_command.host.trees import remove_tree

STATUS = struct.Struct("=i")
# Seconds that a guard's program may take: the system gives up a lost connection to a relay after about 15 minutes.
GUARDED_S = 1200
# Seconds that this command waits for its guards.
GUARDS_S = 5
# Written to the signal pipe to end the handling of signals; it is not a signal number.
OVER = b"\0"


# -- Children that outlive this command ------------------------------------------------------------------------------

def forked(name: bytes, kept: Sequence[int], function: Callable[[], None],
           at_signal: Callable[[int], None] = lambda _: None) -> int:
    """Runs the function in a child that holds only these descriptors. Signals that end this command do not end the
    child, because a service manager sends them to both: the child calls `at_signal` instead."""
    def child() -> None:
        LIBC.prctl(PR_SET_NAME, name)
        leave_terminal()
        os.chdir("/")
        close_others(kept)
        function()
    # Not SIG_IGN, because the programs that the child starts would inherit it.
    return fork(lambda number, _: at_signal(number), child)


def has_gone(pid: int) -> bool:
    """Returns whether a child has ended; reaps it if so."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    return True


class Guard:
    """A child that runs a program if this command is killed: it waits until a pipe is closed. Guards act in reverse
    order, because later guards hold the pipes of earlier ones."""

    standing: List["Guard"] = []

    def __init__(self, program: Program, seconds: Optional[float] = GUARDED_S) -> None:
        reading, self.pipe = os.pipe()
        self.pid = forked(b"dyntrace-guard", [reading, *self.descriptors()],
                          lambda: self.guard(reading, program, seconds))
        os.close(reading)
        self.standing.append(self)

    @staticmethod
    def guard(reading: int, program: Program, seconds: Optional[float]) -> None:
        """In the child: waits, and runs the program unless it was released."""
        if os.read(reading, 1) == b"":
            run(program, seconds, output=DROPPED)

    @classmethod
    def descriptors(cls) -> List[int]:
        """Returns the pipes of all guards. A child that holds them delays the guards until it ends."""
        return [guard.pipe for guard in cls.standing]

    def act(self) -> None:
        """Runs the program now, in the background."""
        self.standing.remove(self)
        os.close(self.pipe)

    def release(self) -> None:
        """Ends the guard without running its program."""
        if self in self.standing:
            self.standing.remove(self)
            with contextlib.suppress(OSError):
                os.write(self.pipe, b"d")
            os.close(self.pipe)
            until(lambda: has_gone(self.pid), GUARDS_S, SHORT_S)


# PIDs of the keepers that are still running.
KEEPERS: List[int] = []


def run_kept(program: Program, seconds: float, give_up: Optional[Callable[[], object]] = None) -> Ended:
    """Runs a program as `run` does, with output and errors merged. If this command is killed meanwhile, the program
    continues until its end or deadline, and the guards act after it: a program of this user holds their pipes itself; a
    program of another user, who could take them over, is run by a keeper. SIGTERM ends either."""
    timeout = shutil.which("timeout")
    if program.identity is None and timeout:
        # If this command is gone, timeout(1) ends the program.
        limited = [timeout, f"--kill-after={PATIENCE_S}", str(math.ceil(seconds) + PATIENCE_S), *program.words]
        held = program._replace(words=limited, held=Guard.descriptors())
        return run(held, seconds, errors=MERGED, give_up=give_up)
    reading, writing = os.pipe()
    received: List[int] = []
    try:
        try:
            keeper = forked(b"dyntrace-keeper", [writing, *Guard.descriptors()],
                            lambda: keep(program, seconds, writing, lambda: signal.SIGTERM in received),
                            received.append)
        finally:
            os.close(writing)
        KEEPERS.append(keeper)
        try:
            return answer_of(keeper, reading, time.monotonic() + seconds + 3 * PATIENCE_S, give_up)
        finally:
            if not until(lambda: has_gone(keeper), STEP_S, SHORT_S):
                os.kill(keeper, signal.SIGTERM)
                if not until(lambda: has_gone(keeper), 3 * PATIENCE_S):
                    os.kill(keeper, signal.SIGKILL)
            KEEPERS.remove(keeper)
    finally:
        os.close(reading)


def keep(program: Program, seconds: float, writing: int, is_stopped: Callable[[], bool]) -> None:
    """In the keeper: runs the program and sends its result."""
    ended = run(program, seconds, errors=MERGED, give_up=is_stopped)
    with os.fdopen(writing, "wb") as stream:
        stream.write(STATUS.pack(ended.status) + ended.output.encode("utf-8", "replace"))


def answer_of(keeper: int, reading: int, deadline: float, give_up: Optional[Callable[[], object]]) -> Ended:
    """Returns the result that a keeper sends. The keeper is trusted, and the output of its program is bounded."""
    data = bytearray()
    is_stopped = False
    while time.monotonic() < deadline:
        if not is_stopped and give_up and give_up():
            is_stopped = True
            os.kill(keeper, signal.SIGTERM)
        if not select.select([reading], [], [], STEP_S)[0]:
            continue
        piece = os.read(reading, PIECE)
        if not piece:
            break
        data += piece
    if len(data) < STATUS.size:
        return Ended(NO_ANSWER, "")
    return Ended(STATUS.unpack_from(data)[0], data[STATUS.size:].decode("utf-8", "replace"))


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Yields a folder that is removed at the end, even if this command is killed."""
    temporary = tempfile.mkdtemp(prefix="dyntrace-")
    guard = Guard(Program(["rm", "-rf", "--", temporary]))
    try:
        yield temporary
    finally:
        if remove_tree(temporary):
            guard.release()
        else:
            # Another user is still writing to it, or has filled it with more than can be removed in time.
            guard.act()


# -- Signals ---------------------------------------------------------------------------------------------------------

class Interrupted:
    """Handles Ctrl-C and the signals that would end the command. The first one sets `happened`, so that the work stops
    in an orderly way. A second one, or LIMIT_S without an end, ends the command at once, wherever it waits; the guards
    undo its work. SIGUSR1 sets `snapshot`.

    A separate thread handles them: Python runs its signal handlers in the main thread, between bytecode instructions,
    and that thread may be blocked.
    """

    # Seconds after the first signal: before this, another one is ignored, because a terminal, or timeout(1), may send
    # it twice; then the command says that it is still ending; then it ends at once. LTTng writes its buffers meanwhile.
    SECOND_S, SLOW_S, LIMIT_S = 0.5, 5, 150

    def __init__(self) -> None:
        self.happened = threading.Event()
        self.snapshot = threading.Event()
        self.before: Dict[int, Any] = {}
        self.is_ending = False
        self.reading = self.writing = self.former = -1
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self) -> "Interrupted":
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        self.former = signal.set_wakeup_fd(self.writing)
        self.before = {number: signal.signal(number, self.wait_for_end) for number in HANDLED}
        self.thread.start()
        return self

    def wait_for_end(self, *_: object) -> None:
        """Handler in the main thread: does nothing, but blocks while `end` runs, so that it does not interfere with the
        guards."""
        while self.is_ending:
            time.sleep(1)

    def watch(self) -> None:
        """Handles the signals. Runs in a separate thread."""
        first, number, is_said = 0.0, 0, False
        while True:
            since = time.monotonic() - first if number else 0
            if number and since > self.LIMIT_S:
                self.end(number)
            if number and since > self.SLOW_S and not is_said:
                is_said = True
                threading.Thread(target=say, daemon=True, args=[
                    "dyntrace: still ending; a second Ctrl-C ends it at once, without what is not written yet"]).start()
            if not select.select([self.reading], [], [], STEP_S * 5)[0]:
                continue
            came = os.read(self.reading, 1)
            if came == OVER:
                return
            if came[0] == signal.SIGUSR1:
                self.snapshot.set()
            elif came[0] in ENDING and not number:
                first, number = time.monotonic(), came[0]
                self.happened.set()
            elif came[0] in ENDING and time.monotonic() - first > self.SECOND_S:
                self.end(came[0])

    def end(self, number: int) -> NoReturn:
        """Ends the command. Restores the terminal and starts the guards. Waits a few seconds for them; they finish by
        themselves after that."""
        self.is_ending = True
        os.kill(os.getpid(), number)
        # Writing to a stopped terminal would block.
        restored = threading.Thread(target=Screen.restore_all, daemon=True)
        restored.start()
        restored.join(1)
        for keeper in [*KEEPERS, *Surviving.running]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGTERM)
        # The node refuses the connection of the guard that unloads the library while a child of this command is
        # connected.
        for child in Child.living[:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        guards = Guard.standing[::-1]
        for guard in guards:
            with contextlib.suppress(ValueError, OSError):
                guard.act()
        until(lambda: all(has_gone(guard.pid) for guard in guards), GUARDS_S)
        os._exit(128 + number)  # pylint: disable=protected-access

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.former)
        # The thread first handles the signals that arrived before.
        os.write(self.writing, OVER)
        self.thread.join()
        os.close(self.writing)
        os.close(self.reading)
