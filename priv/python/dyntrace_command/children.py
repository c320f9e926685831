"""What outlives this command, and how it ends: with all that it has done undone, whatever ends it.

What only a command can undo, such as a session of LTTng, has a `Guard`: a child that waits for the end of this command.
What has to end before the guards act, such as a running `lttng`, holds their pipes if it has this command's user;
another user's program is run by a keeper, which holds them. Guards and keepers are children of this command that have
its user: what they start as another user gets nothing of theirs.
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

from dyntrace_command.execution import (DROPPED, ENDING, HANDLED, MERGED, NO_ANSWER, PATIENCE_S, PIECE, SHORT_S, STEP_S,
                                        Ended, Program, Surviving, fork, run, until)
from dyntrace_command.sandbox import LIBC, PR_SET_NAME, Child, close_others, leave_terminal
from dyntrace_command.terminal import Screen, say
from dyntrace_command.trees import remove_tree

STATUS = struct.Struct("=i")
# Seconds that the program of a guard may take: the system gives up a lost connection to a relay after some 15 minutes.
GUARDED_S = 1200
# Seconds that this command waits for its guards.
GUARDS_S = 5
# No number of a signal: the end of handling them.
OVER = b"\0"


# -- What outlives this command --------------------------------------------------------------------------------------

def forked(name: bytes, kept: Sequence[int], function: Callable[[], None],
           at_signal: Callable[[int], None] = lambda _: None) -> int:
    """Runs the function in a child that holds these descriptors, and no others. No signal that ends this command ends
    the child, because what stops a service sends it to both: it is passed to `at_signal`."""
    def child() -> None:
        LIBC.prctl(PR_SET_NAME, name)
        leave_terminal()
        os.chdir("/")
        close_others(kept)
        function()
    # Not SIG_IGN, which the programs would inherit that it starts.
    return fork(lambda number, _: at_signal(number), child)


def has_gone(pid: int) -> bool:
    """Returns whether a child has ended, and forgets it then."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    return True


class Guard:
    """Runs a program if this command is killed: a child that waits for the end of a pipe. Later guards come first: they
    hold the pipes of those before them."""

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
        """Returns the pipes of all guards: a child that holds them holds the guards back until its end."""
        return [guard.pipe for guard in cls.standing]

    def act(self) -> None:
        """Runs its program now, beside this one."""
        self.standing.remove(self)
        os.close(self.pipe)

    def release(self) -> None:
        """Ends the guard; its program is not run."""
        if self in self.standing:
            self.standing.remove(self)
            with contextlib.suppress(OSError):
                os.write(self.pipe, b"d")
            os.close(self.pipe)
            until(lambda: has_gone(self.pid), GUARDS_S, SHORT_S)


# The keepers that have not ended.
KEEPERS: List[int] = []


def run_kept(program: Program, seconds: float, give_up: Optional[Callable[[], object]] = None) -> Ended:
    """Runs a program as `run` does, output and errors together. If this command is killed meanwhile, the program goes
    on to its end or deadline, and the guards act after it: a program of this user holds their pipes; one of another
    user, who could take them, is in the hands of a keeper. SIGTERM ends either."""
    timeout = shutil.which("timeout")
    if program.identity is None and timeout:
        # Without this command, timeout(1) ends it.
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
    """In the keeper: runs the program and sends what has become of it."""
    ended = run(program, seconds, errors=MERGED, give_up=is_stopped)
    with os.fdopen(writing, "wb") as stream:
        stream.write(STATUS.pack(ended.status) + ended.output.encode("utf-8", "replace"))


def answer_of(keeper: int, reading: int, deadline: float, give_up: Optional[Callable[[], object]]) -> Ended:
    """Returns what a keeper sends. It is this command's own, and its program bounded."""
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
    """Yields a folder that is removed at the end, also if this command is killed."""
    temporary = tempfile.mkdtemp(prefix="dyntrace-")
    guard = Guard(Program(["rm", "-rf", "--", temporary]))
    try:
        yield temporary
    finally:
        if remove_tree(temporary):
            guard.release()
        else:
            # Another user still fills it, or has filled it with more than this command waits for.
            guard.act()


# -- Signals ---------------------------------------------------------------------------------------------------------

class Interrupted:
    """Ctrl-C, and signals that would end the command. The first one sets `happened`, so that the work ends instead. A
    second one, or LIMIT_S without an end, ends the command at once, wherever it waits: the guards undo its work.
    SIGUSR1 sets `snapshot`.

    A thread handles them: Python's own handlers run in the main thread, between two of its steps, and that thread may
    wait for something that does not answer.
    """

    # Seconds after the first signal: until another one is a second one, because a terminal, or timeout(1), may send it
    # twice; until the command says that it is still ending; until it ends at once. LTTng writes its buffers meanwhile.
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
        """In the main thread: goes on, unless the command ends at once. It must not interfere with the guards."""
        while self.is_ending:
            time.sleep(1)

    def watch(self) -> None:
        """Handles the signals, in a thread of its own."""
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
        """Ends the command. The terminal is restored, and guards undo the rest: what they can in a few seconds, and the
        rest by themselves."""
        self.is_ending = True
        os.kill(os.getpid(), number)
        # A terminal that was stopped takes no text.
        restored = threading.Thread(target=Screen.restore_all, daemon=True)
        restored.start()
        restored.join(1)
        for keeper in [*KEEPERS, *Surviving.running]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGTERM)
        # A node refuses the guard that unloads it while a child of this command is connected with it.
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
        # The thread handles the signals first that came before.
        os.write(self.writing, OVER)
        self.thread.join()
        os.close(self.writing)
        os.close(self.reading)
