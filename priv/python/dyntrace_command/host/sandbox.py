"""A child process in which this command examines what another user controls: the boundary of root's trust.

Root examines processes of all users. Their memory, files, arguments and servers may be anything: a link to a file that
only root may read, text without an end, a page of memory whose read never returns. So this command does not touch them
itself. It forks a child, which

- has the user and the group of the process that it examines, and no other group: it can open only what that user may
  open, so a link to another user's file is useless;
- keeps one capability, CAP_SYS_PTRACE, which it needs to read that process in /proc, and can raise a second one, which
  is used only to open files of /proc themselves (`opening_proc`);
- cannot gain privileges, is not dumpable (so the user whose identity it has can neither trace it nor take its
  descriptors), writes no file unless it is created for that, and has limits of CPU time and memory;
- inherits no descriptors except a socket to this command and those that it is given.

It answers in JSON of a bounded size, which this command reads up to a deadline. Then the child is killed. If the kernel
can't kill it, because a file system does not answer, it is left behind: the command does not wait for it.

The identity of the examined process must be the same before and after: see `Process.identity`.
"""
import codecs
import contextlib
import ctypes
import errno
import heapq  # pylint: disable=unused-import
import json
import os
import resource
import signal
import socket
import struct
import time
import types
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, NoReturn, Optional, Sequence

from dyntrace_command.common.failures import FAILURES, Failure, reason
from dyntrace_command.host.process import Identity, Process

LIBC = ctypes.CDLL(None, use_errno=True)
# Loaded now, and heapq for Counter.most_common, because the user of a child may not be able to read this command's
# Python.
for _encoding in ("ascii", "latin-1", "idna"):
    codecs.lookup(_encoding)
# Options of prctl(2).
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NAME, PR_SET_NO_NEW_PRIVS = 1, 4, 8, 15, 38
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAPABILITY_VERSION = 1 << 2, 1 << 19, 0x20080522
# Namespaces that a child can enter, with their flags for setns(2).
NAMESPACES = {"net": 0x40000000, "uts": 0x04000000}

# Seconds that a child may take, bytes of its answer, and bytes of memory in addition to those of this command.
SECONDS, ANSWER_MOST, MEMORY_MOST = 5.0, 1 << 20, 1 << 30
# Why nothing is known if a child did not answer, or not as it should.
NO_ANSWER = "its reader process did not answer"
# The kernel's limit of descriptors in a message.
DESCRIPTORS_MOST = 253
LENGTH = struct.Struct(">I")
# The process name of a child.
CHILD_NAME = "dyntrace-look"
TEXT_MOST = 1000


# Whether this process is such a child, which functions that access files or memory of other users check; and whether it
# examines another user than the one who runs the command.
STATE = types.SimpleNamespace(is_child=False, is_foreign=False)


class Rights(NamedTuple):
    """What a child may do in addition to reading: use the descriptors in `keep`, see the network and the host name of a
    process (`enter`), write files as its user."""
    keep: Sequence[int] = ()
    enter: Optional[Process] = None
    may_write: bool = False


class Answer(NamedTuple):
    """A child's answer: a JSON value, and descriptors of files that it has opened."""
    value: Any
    descriptors: Sequence[int] = ()


class Child:
    """A child that runs a function, which yields answers."""

    # Running children, and PIDs of killed ones that have not ended yet.
    living: List["Child"] = []
    abandoned: List[int] = []

    def __init__(self, identity: Optional[Identity], function: Callable[[], Iterable[Any]], seconds: float = SECONDS,
                 rights: Rights = Rights()) -> None:
        self.socket, theirs = socket.socketpair()
        self.buffer, self.descriptors = bytearray(), []  # type: bytearray, List[int]
        self.pid = os.fork()
        if self.pid == 0:
            run_child(theirs, identity, function, seconds, rights)
        self.living.append(self)
        theirs.close()

    def fileno(self) -> int:
        """Returns the socket's descriptor, for select."""
        return self.socket.fileno()

    def receive(self, deadline: float, most: int = ANSWER_MOST) -> Optional[Answer]:
        """Returns the next answer; None at the end. Raises the child's exception, or TimeoutError."""
        head = self.read(LENGTH.size, deadline)
        if not head:
            return None
        size, = LENGTH.unpack(head)
        if size > most:
            raise ValueError("its answer is too large")
        body = self.read(size, deadline)
        try:
            message = json.loads(body.decode("ascii"))
        except (ValueError, RecursionError):
            raise ValueError(NO_ANSWER) from None
        received, self.descriptors = self.descriptors, []
        if not isinstance(message, dict) or "value" not in message:
            close_all(received)
            raise raised(message.get("error") if isinstance(message, dict) else None)
        return Answer(message["value"], received)

    def read(self, count: int, deadline: float) -> bytes:
        """Returns that many bytes; an empty value at the end."""
        while len(self.buffer) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("it does not answer in time")
            self.socket.settimeout(left)
            try:
                data, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(DESCRIPTORS_MOST * 4),
                                                            socket.MSG_CMSG_CLOEXEC)
            except socket.timeout:
                raise TimeoutError("it does not answer in time") from None
            for level, kind, sent in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self.descriptors += [number for number, in struct.iter_unpack("i", sent[:len(sent) // 4 * 4])]
            if not data:
                if self.buffer:
                    raise ValueError("its reader process ended early")
                return b""
            self.buffer += data
        read = bytes(self.buffer[:count])
        del self.buffer[:count]
        return read

    def end(self) -> None:
        """Kills it. If it does not end, it is left behind: it holds no descriptor of this command."""
        self.socket.close()
        close_all(self.descriptors)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self in self.living:
            self.living.remove(self)
        self.abandoned.append(self.pid)
        deadline = time.monotonic() + 0.05
        while self.reap() and time.monotonic() < deadline:
            time.sleep(0.001)

    @classmethod
    def reap(cls) -> bool:
        """Reaps killed children; returns whether some have not ended yet."""
        for pid in list(cls.abandoned):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            cls.abandoned.remove(pid)
        return bool(cls.abandoned)


def in_child(identity: Optional[Identity], function: Callable[[], Any], seconds: float = SECONDS,
             most: int = ANSWER_MOST, rights: Rights = Rights()) -> Answer:
    """Runs the function in a child with this identity (None: that of this command), and returns its answer. Raises the
    function's exceptions: OSError, ValueError, Failure; and TimeoutError if there is no answer in time."""
    child = Child(identity, lambda: [function()], seconds, rights)
    try:
        answer = child.receive(time.monotonic() + seconds, most)
        if answer is None:
            raise ValueError("its reader process ended early")
        return answer
    finally:
        child.end()


def isolated(process: Process, function: Callable[[], Any], seconds: float = SECONDS, most: int = ANSWER_MOST,
             rights: Rights = Rights()) -> Answer:
    """Does the same with the identity of a process, which the function examines. Raises OSError unless the process had
    this identity before and after."""
    identity = identity_for(process)
    answer = in_child(identity, function, seconds, most, rights)
    try:
        check_same(process, identity)
    except BaseException:
        close_all(answer.descriptors)
        raise
    return answer


def identity_for(process: Process) -> Optional[Identity]:
    """Returns the identity for the child that examines a process; None without root, which alone can change
    identity."""
    identity = process.identity()
    return identity if os.geteuid() == 0 else None


def check_same(process: Process, identity: Optional[Identity]) -> None:
    """Raises OSError if the process has ended or has another identity now."""
    if process.has_ended():
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    if identity_for(process) != identity:
        raise OSError(0, "its user has changed")


def check_child() -> None:
    """Raises RuntimeError outside of a child, which would be a bug in this command."""
    if not STATE.is_child:
        raise RuntimeError("only a child may touch what another user controls")


def close_all(descriptors: Iterable[int]) -> None:
    """Closes descriptors."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


# -- In the child ------------------------------------------------------------------------------------------------------

def run_child(connected: socket.socket, identity: Optional[Identity], function: Callable[[], Iterable[Any]],
              seconds: float, rights: Rights) -> NoReturn:
    """Drops what the child does not need, runs the function and sends its answers. Does not return."""
    status = 1
    try:
        STATE.is_child, STATE.is_foreign = True, identity is not None and identity.uid != os.geteuid()
        # Signals are for the command, which ends the child.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        LIBC.prctl(PR_SET_NAME, CHILD_NAME.encode())
        leave_terminal()
        close_others({connected.fileno(), *rights.keep})

        def prepared() -> Iterable[Any]:
            if rights.enter is not None:
                enter_namespaces(rights.enter)
            drop(identity)
            limit(seconds, rights.may_write)
            return function()
        send_all(connected, prepared)
        status = 0
    finally:
        os._exit(status)  # pylint: disable=protected-access


def leave_terminal() -> None:
    """Replaces the standard streams with /dev/null: a child that is left behind must not hold a pipe or a terminal."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)


def close_others(kept: Iterable[int]) -> None:
    """Closes all descriptors except the standard streams and these."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


def enter_namespaces(process: Process) -> None:
    """Enters the network and UTS namespaces of a process, where they differ from this command's."""
    for kind, flag in NAMESPACES.items():
        if not process.shares(kind):
            with open(f"{process.dir}/ns/{kind}", "rb") as file:
                if LIBC.setns(file.fileno(), flag) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if process.has_ended():
        raise ProcessLookupError(errno.ESRCH, "it has ended")


def take(user: int, group: int) -> None:
    """Changes to another user permanently, with this group only."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def drop(identity: Optional[Identity]) -> None:
    """Changes to that user. Root's child keeps only the capabilities that it needs to read /proc."""
    if os.geteuid() == 0 and identity is not None:
        LIBC.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        take(*identity)
        set_capabilities(CAP_SYS_PTRACE, CAP_SYS_PTRACE | CAP_DAC_READ_SEARCH)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    # After the change of user, which clears this setting.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def limit(seconds: float, may_write: bool) -> None:
    """Sets resource limits, unless lower ones are already set."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    wanted = {resource.RLIMIT_CPU: int(seconds) + 1, resource.RLIMIT_AS: used + MEMORY_MOST, resource.RLIMIT_CORE: 0}
    if not may_write:
        wanted[resource.RLIMIT_FSIZE] = 0
    for kind, most in wanted.items():
        _, hard = resource.getrlimit(kind)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


def send_all(connected: socket.socket, function: Callable[[], Iterable[Any]]) -> None:
    """Sends the function's answers, or its exception."""
    try:
        for answer in function():
            value, descriptors = answer if isinstance(answer, Answer) else (answer, ())
            send(connected, {"value": value}, descriptors)
    except Exception as error:  # pylint: disable=broad-except
        send(connected, {"error": described(error)}, ())


def send(connected: socket.socket, message: Any, descriptors: Sequence[int]) -> None:
    """Sends a message, with the descriptors attached to its first byte."""
    data = json.dumps(message).encode("ascii")
    data = LENGTH.pack(len(data)) + data
    if descriptors:
        packed = struct.pack(f"{len(descriptors)}i", *descriptors)
        connected.sendmsg([data[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
        data = data[1:]
    connected.sendall(data)


def set_capabilities(effective: int, permitted: int) -> None:
    """Sets the capabilities of this process, except those that it lacks: a container may have taken them from root."""
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    LIBC.capget(header, sets)
    has = struct.unpack("=6I", sets.raw)[1]
    if LIBC.capset(header, struct.pack("=6I", effective & has, permitted & has, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def opening_proc() -> Iterator[None]:
    """Lets the child open files in /proc/PID that belong to root because the process is not dumpable, for example
    because its program has capabilities. Use it only for paths without a link that the process controls."""
    if os.geteuid() == 0:
        yield
        return
    set_capabilities(CAP_SYS_PTRACE | CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE | CAP_DAC_READ_SEARCH)
    try:
        yield
    finally:
        set_capabilities(CAP_SYS_PTRACE, CAP_SYS_PTRACE | CAP_DAC_READ_SEARCH)


# -- Errors ------------------------------------------------------------------------------------------------------------

def described(error: Exception) -> List[Any]:
    """Returns an exception as a JSON value."""
    if isinstance(error, Failure):
        return ["Failure", error.key, {name: str(value)[:TEXT_MOST] for name, value in error.values.items()}]
    if isinstance(error, OSError):
        return ["OSError", error.errno or 0, reason(error)[:TEXT_MOST]]
    if isinstance(error, MemoryError):
        return ["ValueError", "it has too much data to read"]
    return ["ValueError", (str(error) or type(error).__name__)[:TEXT_MOST]]


def raised(described_error: Any) -> Exception:
    """Returns the exception that a child sent. The child may be compromised and send anything."""
    with contextlib.suppress(TypeError, ValueError, KeyError, IndexError, AttributeError):
        kind, *rest = described_error
        if kind == "Failure" and rest[0] in FAILURES:
            return Failure(rest[0], **{str(name): str(value) for name, value in rest[1].items()})
        if kind == "OSError":
            return OSError(int(rest[0]), str(rest[1]))
        return ValueError(str(rest[0]))
    return ValueError(NO_ANSWER)
