"""Programs that this command runs, with bounds for what they print and how long they take.

A program may run as another user, who owns it: that user can stop it, take over its descriptors (pidfd_getfd), write to
them without end, or keep them open after its end. So

- a program gets /dev/null, pipes for its output, and nothing else of this command;
- `run` reads that output up to a number of bytes and a deadline. Once the program has ended, it reads what the pipes
  have, and does not wait for their end. What is left of the program's session is killed.
"""
import contextlib
import io
import os
import select
import signal
import subprocess
import threading
import time
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.sandbox import LIBC, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, close_others, take

# Signals that end this command, and all that it handles.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANDLED = (*ENDING, signal.SIGUSR1)

# Bytes of a program's output that are read, and those of a pipe, which are read once the program has ended.
MOST, PIPE_MOST = 16 << 20, 1 << 20
PIECE = 1 << 16
# Seconds: between two looks at a program, and at one that is about to end; in which one ends at its signal, before it
# is killed.
STEP_S, SHORT_S, PATIENCE_S = 0.1, 0.002, 2
# The status of a program that was ended, because of its time or of its output, and of one that could not be started.
NO_ANSWER, TOO_MUCH, NOT_STARTED = -1000, -1001, 127


def end_with_parent() -> None:
    """For `preexec_fn`: the program ends with this command, also if that one is killed. It does nothing else after
    the fork, when other threads may have held locks."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def until(condition: Callable[[], object], seconds: float, step: float = 0.05) -> bool:
    """Polls; returns whether the condition has become true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


# -- A program -------------------------------------------------------------------------------------------------------

class Program(NamedTuple):
    """A program with its arguments. `identity`, `environment`: those of another user, as whom it runs. It then runs in
    /, because that user sees its current folder. `ends_at`: the signal at which it ends in an orderly way. `held`:
    descriptors that it holds until its end; with these, it goes on if this command is killed."""
    words: Sequence[str]
    identity: Optional[Tuple[int, int]] = None
    environment: Optional[Dict[str, str]] = None
    ends_at: int = signal.SIGTERM
    held: Optional[Sequence[int]] = None


class Started:
    """A program that runs, in a session of its own. Its user may have stopped it before it is the program: nothing here
    waits for that."""

    def __init__(self, program: Program, output: int, errors: int) -> None:
        self.status: Optional[int] = None
        self.ends_at = program.ends_at
        self.pid = self.start(program, output, errors)

    def start(self, program: Program, output: int, errors: int) -> int:
        """Starts it; returns its number."""
        return fork(signal.SIG_DFL, lambda: become(program, output, errors))

    def has_ended(self) -> bool:
        """Returns whether it has ended, with its session: what is left of that is killed."""
        if self.status is None:
            # The number of the session is its own until its status is read.
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return False
            self.signal(signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return True

    def signal(self, number: int) -> None:
        """Sends a signal to its session, which it may not have made yet."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, number)

    def end(self) -> None:
        """Ends it. One that the kernel does not let end is left behind."""
        for number in (self.ends_at, signal.SIGKILL):
            if not self.has_ended():
                self.signal(number)
                until(self.has_ended, PATIENCE_S)


class Surviving(Started):
    """A program of this command's own user that goes on if this command is killed. To start it costs much less than a
    fork of this command."""

    # Those that have not ended, by number.
    running: List[int] = []

    def start(self, program: Program, output: int, errors: int) -> int:
        out, err = (subprocess.DEVNULL if stream < 0 else stream for stream in (output, errors))
        self.process = subprocess.Popen(program.words, env=program.environment, stdin=subprocess.DEVNULL, stdout=out,
                                        stderr=err, pass_fds=program.held or (), start_new_session=True)
        self.running.append(self.process.pid)
        return self.process.pid

    def has_ended(self) -> bool:
        if self.status is None and super().has_ended():
            self.running.remove(self.pid)
            # It would wait for the program itself otherwise.
            self.process.returncode = self.status
        return self.status is not None


def fork(handler: Any, function: Callable[[], None]) -> int:
    """Runs the function in a child, in a session of its own and with this handler of signals; returns its number.
    Signals wait until the child has the handler: none is handled there as if this command had got it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in HANDLED:
                    # What is ignored stays ignored, as after nohup(1).
                    if signal.getsignal(number) != signal.SIG_IGN:
                        signal.signal(number, handler)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                os.setsid()
                function()
            finally:
                os._exit(NOT_STARTED)  # pylint: disable=protected-access
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def become(program: Program, output: int, errors: int) -> None:
    """In a child: becomes the program."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        output, errors = (os.dup(null if stream < 0 else stream) for stream in (output, errors))
        for stream, number in ((null, 0), (output, 1), (errors, 2)):
            os.dup2(stream, number)
        close_others(())
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if program.identity:
            # From here on that user may stop this process, but can't trace it or take its descriptors before the
            # program begins: a process that has changed its user is not dumpable.
            take(*program.identity)
            LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            os.chdir("/")
        # A change of the user clears it.
        end_with_parent()
        os.execvpe(program.words[0], list(program.words), os.environ if program.environment is None
                   else program.environment)
    except OSError as error:
        os.write(2, f"{program.words[0]}: {error.strerror}\n".encode("utf-8", "replace"))


# -- Its output ------------------------------------------------------------------------------------------------------

# What becomes of a stream: it is read, goes where this command's goes, or nowhere; errors may go where the output goes.
READ, SHOWN, DROPPED, MERGED = range(4)


class Ended(NamedTuple):
    """A program that has ended: its exit status, negative if a signal has ended it, and what was read."""
    status: int
    output: str
    errors: str = ""


def run(program: Program, seconds: Optional[float] = None, output: int = READ, errors: int = DROPPED,
        give_up: Optional[Callable[[], object]] = None) -> Ended:
    """Runs a program to its end. After that time, or when `give_up` says so, it is ended: the status is NO_ANSWER. What
    it prints beyond MOST bytes is not kept; another user's program that prints more is ended, too: TOO_MUCH."""
    texts: Dict[int, bytearray] = {}

    def end_of(stream: int, wanted: int) -> int:
        if wanted == READ:
            reading, writing = os.pipe()
            texts[reading] = bytearray()
            return writing
        return stream if wanted == SHOWN else -1
    out = end_of(1, output)
    err = out if errors == MERGED else end_of(2, errors)
    started = None
    try:
        try:
            started = (Started if program.held is None else Surviving)(program, out, err)
        finally:
            for stream in {out, err} - {-1, 1, 2}:
                os.close(stream)
        reason = read_all(started, texts, seconds, give_up, program.identity is not None)
    finally:
        if started:
            started.end()
        for reading in texts:
            os.close(reading)
    read = [text.decode("utf-8", "replace") for text in texts.values()]
    if output != READ:
        read.insert(0, "")
    status = NO_ANSWER if started.status is None else started.status
    return Ended(reason or status, *read)


def read_all(started: Started, texts: Dict[int, bytearray], seconds: Optional[float],
             give_up: Optional[Callable[[], object]], is_bounded: bool) -> int:
    """Reads until the program has ended, or returns why it has to be ended. Others may keep its pipes open or write on:
    only what the pipes have at its end is read then."""
    deadline = None if seconds is None else time.monotonic() + seconds
    is_open, after = set(texts), 0
    while True:
        has_ended = started.has_ended()
        wait = 0 if has_ended else STEP_S if is_open else SHORT_S
        ready = select.select(list(is_open), [], [], wait)[0]
        for stream in ready:
            data = os.read(stream, PIECE)
            if not data:
                is_open.remove(stream)
            if is_bounded and len(texts[stream]) + len(data) > MOST:
                return TOO_MUCH
            texts[stream] += data[:MOST - len(texts[stream])]
            after += len(data) if has_ended else 0
        if has_ended and (not ready or after > PIPE_MOST):
            return 0
        if not has_ended and (deadline is not None and time.monotonic() > deadline or give_up and give_up()):
            return NO_ANSWER


class LastOutput(threading.Thread):
    """Reads what a program prints as long as it runs, so that it does not wait, and keeps the last bytes."""

    def __init__(self, stream: IO[bytes], most: int = 1 << 14, is_first: bool = False) -> None:
        super().__init__(daemon=True)
        self.stream, self.most, self.is_first, self.kept = stream, most, is_first, b""
        self.start()

    def run(self) -> None:
        with self.stream:
            for data in iter(lambda: os.read(self.stream.fileno(), PIECE), b""):
                together = self.kept + data
                self.kept = together[:self.most] if self.is_first else together[-self.most:]

    def text(self) -> str:
        """Returns it, after the program's end."""
        self.join(1)
        return self.kept.decode("utf-8", "replace")


class TimedStream(io.RawIOBase):
    """The output of a program, which ends when `is_over` says so, too: others may keep the pipe open."""

    def __init__(self, stream: IO[bytes], is_over: Callable[[], bool]) -> None:
        super().__init__()
        self.stream, self.is_over = stream, is_over

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Waits for some bytes; returns how many there are, none at the end."""
        while True:
            is_over = self.is_over()
            if select.select([self.stream], [], [], 0 if is_over else STEP_S)[0]:
                data = os.read(self.stream.fileno(), len(buffer))
                buffer[:len(data)] = data
                return len(data)
            if is_over:
                return 0
