"""Runs programs with limits on their output and their time.

A program may run as another user, who owns it: that user can stop it, take over its descriptors (pidfd_getfd), write to
them without end, or keep them open after the program has ended. Therefore:

- a program gets /dev/null, pipes for its output, and no other descriptor of this command;
- `run` reads that output up to a number of bytes and a deadline. Once the program has ended, it reads what is left in
  the pipes and does not wait for their end. Remaining processes of the program's session are killed.
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

from dyntrace_command.host.sandbox import LIBC, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, close_others, take

# Signals that end this command; all signals that it handles.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANDLED = (*ENDING, signal.SIGUSR1)

# Bytes read of a program's output; bytes read of a pipe once the program has ended.
MOST, PIPE_MOST = 16 << 20, 1 << 20
PIECE = 1 << 16
# Seconds between two checks of a program; between two checks of one that is about to end; from its signal until it is
# killed.
STEP_S, SHORT_S, PATIENCE_S = 0.1, 0.002, 2
# The status of a program that was ended because of its time or of its output, and of one that could not be started.
NO_ANSWER, TOO_MUCH, NOT_STARTED = -1000, -1001, 127


def end_with_parent() -> None:
    """For `preexec_fn`: ends the program when this command ends, even if it is killed. It does nothing else after the
    fork, because other threads may have held locks."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def killed_with_parent() -> None:
    """Does the same for a program that may miss SIGTERM."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def until(condition: Callable[[], object], seconds: float, step: float = 0.05) -> bool:
    """Polls; returns whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


# -- A program -------------------------------------------------------------------------------------------------------

class Program(NamedTuple):
    """A program with its arguments. `identity` and `environment`: those of the user to run it as. It then runs in /,
    because that user can see its current folder. `ends_at`: the signal that ends it in an orderly way. `held`:
    descriptors that it keeps open until it ends; with these, it continues if this command is killed."""
    words: Sequence[str]
    identity: Optional[Tuple[int, int]] = None
    environment: Optional[Dict[str, str]] = None
    ends_at: int = signal.SIGTERM
    held: Optional[Sequence[int]] = None


class Started:
    """A running program, in its own session. Its user may stop the child even before it executes the program, so
    nothing here waits for that."""

    def __init__(self, program: Program, output: int, errors: int) -> None:
        self.status: Optional[int] = None
        self.ends_at = program.ends_at
        self.pid = self.start(program, output, errors)

    def start(self, program: Program, output: int, errors: int) -> int:
        """Starts it; returns its PID."""
        return fork(signal.SIG_DFL, lambda: become(program, output, errors))

    def has_ended(self) -> bool:
        """Returns whether it has ended. Kills the remaining processes of its session."""
        if self.status is None:
            # The PID, and so the session's ID, is not reused until its status is read.
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return False
            self.signal(signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return True

    def signal(self, number: int) -> None:
        """Sends a signal to its session, or to the process if the session does not exist yet."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, number)
                return

    def end(self) -> None:
        """Ends it. If the kernel cannot kill it, it is left behind."""
        for number in (self.ends_at, signal.SIGKILL):
            if not self.has_ended():
                self.signal(number)
                until(self.has_ended, PATIENCE_S)


class Surviving(Started):
    """A program of this command's own user that continues if this command is killed. Starting it costs much less than a
    fork of this command."""

    # PIDs of those that have not ended.
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
    """Runs the function in a child, in a new session and with this signal handler; returns its PID. Signals are blocked
    until the child has the handler, so that the child does not handle one with this command's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in HANDLED:
                    # Ignored signals stay ignored, as nohup(1) requires.
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
    """In a child: executes the program."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        output, errors = (os.dup(null if stream < 0 else stream) for stream in (output, errors))
        for stream, number in ((null, 0), (output, 1), (errors, 2)):
            os.dup2(stream, number)
        close_others(())
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if program.identity:
            # From here on, that user may stop this process, but can't trace it or take its descriptors before the
            # program starts: a process that has changed its user is not dumpable.
            take(*program.identity)
            LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            os.chdir("/")
        # After the change of user, which clears this setting.
        LIBC.prctl(PR_SET_PDEATHSIG, program.ends_at)
        os.execvpe(program.words[0], list(program.words), os.environ if program.environment is None
                   else program.environment)
    except OSError as error:
        os.write(2, f"{program.words[0]}: {error.strerror}\n".encode("utf-8", "replace"))


# -- Its output ------------------------------------------------------------------------------------------------------

# Destinations of a stream: read by this command, this command's own stream, discarded, or (errors) merged with the
# output.
READ, SHOWN, DROPPED, MERGED = range(4)


class Ended(NamedTuple):
    """A program that has ended: its exit status, negative if a signal ended it, and its output."""
    status: int
    output: str
    errors: str = ""


def run(program: Program, seconds: Optional[float] = None, output: int = READ, errors: int = DROPPED,
        give_up: Optional[Callable[[], object]] = None) -> Ended:
    """Runs a program to its end. After `seconds`, or when `give_up` returns true, it is ended with the status
    NO_ANSWER. Output beyond MOST bytes is discarded; a program of another user that exceeds them is ended with
    TOO_MUCH."""
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
    """Reads until the program has ended, or returns why it has to be ended. Other processes may keep its pipes open or
    continue to write, so after its end only what the pipes contain then is read."""
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
    """Drains a program's output while it runs, so that it does not block, and keeps the last bytes (the first ones if
    `is_first`)."""

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
        """Returns the text, after the program has ended."""
        self.join(1)
        return self.kept.decode("utf-8", "replace")


class TimedStream(io.RawIOBase):
    """A program's output that also ends when `is_over` returns true: other processes may keep the pipe open."""

    def __init__(self, stream: IO[bytes], is_over: Callable[[], bool]) -> None:
        super().__init__()
        self.stream, self.is_over = stream, is_over

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Waits for input; returns the number of bytes read, 0 at the end."""
        while True:
            is_over = self.is_over()
            if select.select([self.stream], [], [], 0 if is_over else STEP_S)[0]:
                data = os.read(self.stream.fileno(), len(buffer))
                buffer[:len(data)] = data
                return len(data)
            if is_over:
                return 0
