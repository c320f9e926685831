"""bpftrace: checks that it can run here, limits it to a node, runs a program of this package, and ends it.

The kernel attaches probes to a file, and so to every node that has mapped the same library. Each program therefore has
a condition that selects the node's process. bpftrace's option -p is not used: with it, bpftrace opens paths that the
process chooses, as root.
"""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from dyntrace_command.common.events import PROVIDER
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean, last_lines, say
from dyntrace_command.host.execution import MERGED, LastOutput, Program, killed_with_parent, run
from dyntrace_command.host.process import in_initial_namespace
from dyntrace_command.host.tools import tool, tool_version
from dyntrace_command.node.node import Node

PROGRAMS = os.path.join(os.path.dirname(__file__), "programs")

# The probe array by which a tracer requests names: a consumer that attaches to one of them gets a dump of all names.
ROW = "dump_wanted"

# The first part of a program that needs no names, and so no library.
AT_ONCE = "at_once"

# Bytes of a bpftrace string. A shorter text is not truncated.
STRING_BYTES = 63

# Bytes of bpftrace's messages that are kept, and the longest line of its output, which may contain a whole map.
ERRORS_MOST, LINE_MOST = 1 << 20, 64 << 20
# Characters of a message that are shown as one line.
MESSAGE_MOST = 1 << 12
# Seconds that `bpftrace --help` may take.
HELP_S = 10


# -- Whether it can run ------------------------------------------------------------------------------------------------

def require_bpftrace() -> str:
    """Returns the path of bpftrace; raises Failure if it can't run here."""
    if os.geteuid() != 0:
        raise Failure("not_root")
    with contextlib.suppress(OSError), open("/sys/kernel/security/lockdown", encoding="ascii") as file:
        if "[confidentiality]" in file.read():
            raise Failure("lockdown")
    path = tool("bpftrace")
    if tool_version(path) >= (0, 27) and not has_tracefs():
        raise Failure("no_tracefs")
    return path


def has_tracefs() -> bool:
    """Returns whether a tracefs is mounted: newer versions of bpftrace do not start without it."""
    return any(os.path.isdir(f"{folder}/events") for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))


def quiet_option(bpftrace: str) -> List[str]:
    """Returns the option that hides warnings: they concern the scripts and differ between versions."""
    return ["--no-warnings"] if "--no-warnings" in help_text(bpftrace) else []


def help_text(bpftrace: str) -> str:
    """Returns bpftrace's help: its options and the environment variables that it reads."""
    return run(Program([bpftrace, "--help"]), HELP_S, errors=MERGED).output


# Disables symbol lookup in user space. Newer versions of bpftrace do not read this variable.
NO_SYMBOLS = "BPFTRACE_NO_USER_SYMBOLS"


def environment_of() -> Dict[str, str]:
    """Returns the environment of every bpftrace. Symbol lookup is off because bpftrace would read the node's files,
    which may be pipes, as root."""
    return {**os.environ, NO_SYMBOLS: "1"}


# Messages on standard error about bpftrace itself or the host, not about the results. A comment says why each is
# harmless. They are shown only if bpftrace fails.
NOISE = [
    # A container or an unprivileged kernel enforces this limit. Newer kernels do not apply it to BPF.
    re.compile(r"couldn't set RLIMIT_MEMLOCK"),
    # Without a tracefs, bpftrace lacks the kernel's functions and events. Probes of a library do not need them.
    re.compile(r"Could not read symbols from /"),
    re.compile(r"/sys/kernel/(debug/)?tracing\b.*No such file"),
    # bpftrace has not found a tracefs. The kernel detaches the probes when bpftrace ends.
    re.compile(r"^ERROR: failed to detach probe: "),
    re.compile(r"^\s*$"),
]


def is_noise(line: str) -> bool:
    """Returns whether this line of bpftrace is harmless."""
    return any(pattern.search(line) for pattern in NOISE)


def messages_of(lines: Sequence[str]) -> List[str]:
    """Returns the lines that are not noise, or all lines if there are no others: the cause is then among them."""
    return [line for line in lines if not is_noise(line)] or list(lines)


class Messages(threading.Thread):
    """Shows a bpftrace's standard error line by line, without the noise, which is kept for `end`."""

    # Lines of noise that are kept; bpftrace may repeat a message many times.
    MOST = 100

    def __init__(self) -> None:
        super().__init__(daemon=True)
        # A separate pipe: the code that waits for bpftrace to end reads the pipes that Popen creates.
        self.reading, self.writing = os.pipe()
        self.noise: List[str] = []

    def start_with(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Starts the command, which ends when this one does, and reads its messages. bpftrace misses a signal that
        arrives while it prints; when it is killed, the kernel detaches its programs."""
        try:
            process = subprocess.Popen(command, env=environment_of(), stderr=self.writing,
                                       preexec_fn=killed_with_parent)
        finally:
            os.close(self.writing)
        self.start()
        return process

    def run(self) -> None:
        with open(self.reading, encoding="utf-8", errors="replace") as stream:
            for line in iter(lambda: stream.readline(MESSAGE_MOST), ""):
                if not is_noise(line):
                    say(clean(line.rstrip("\n")))
                elif len(self.noise) < self.MOST:
                    self.noise.append(line.rstrip("\n"))

    def end(self, failed: bool) -> None:
        """Waits for the last line; also shows the noise if bpftrace has failed."""
        self.join(1)
        for line in filter(None, self.noise if failed else []):
            say(clean(line))


# -- One process of several --------------------------------------------------------------------------------------------

# The kernel's type information (BTF), which a program needs to read kernel structures.
BTF = "/sys/kernel/btf/vmlinux"

# The PID of a process in its own PID namespace is in the last element of an array after `struct pid`. Before Linux 6.5,
# the structure includes the first element.
# bpftrace 0.23 and later resolve the type of a nested member only if a cast stands directly before the first one.
LEADER = "((struct task_struct *)curtask)->group_leader->thread_pid"
UPID = f"((struct upid *)kptr((uint64){LEADER} + sizeof(struct pid) + " \
    f"sizeof(struct upid) * ({LEADER}->level{{before}})))"


def require_btf(failure: str) -> None:
    """Raises this failure if the kernel has no type information."""
    if not os.path.exists(BTF):
        raise Failure(failure, path=BTF)


def condition_of(node: Node) -> str:
    """Returns the bpftrace condition that selects the node's threads. Outside the initial PID namespace, versions of
    bpftrace differ in the meaning of `pid`, so the condition reads the kernel's own structures there."""
    if in_initial_namespace():
        return f"pid == {node.pid}"
    require_btf("no_btf")
    number, found = node.process.inner_pid(), re.fullmatch(r"pid:\[(\d+)\]", node.process.namespace("pid") or "")
    if not found:
        raise Failure("node_gone", pid=node.pid, name=node.node)
    places = (UPID.format(before=before) for before in ("", " - 1"))
    return "(" + " || ".join(f"({place}->nr == {number} && {place}->ns->ns.inum == {found.group(1)})"
                             for place in places) + ")"


# -- Names for each tracer ---------------------------------------------------------------------------------------------

def place_in_row(node: Node) -> Optional[str]:
    """Returns the suffix of an unused probe of the array: a number, or an empty text for the first probe, which scripts
    started by hand use. None if all are in use. The choice is random because another command may be choosing at the
    same time."""
    row = {name[len(f"{PROVIDER}:{ROW}"):]: enabled for name, enabled in node.probes().items()
           if re.fullmatch(rf"{PROVIDER}:{ROW}(\d\d?)?", name, re.ASCII)}
    free = sorted(number for number, enabled in row.items() if not enabled)
    if row and not free:
        say(f"dyntrace: {node.show()} has {len(row)} tracers that request names, which is the maximum: names of "
            "existing processes may be missing")
    return random.choice([number for number in free if number] or free) if free else None


# -- A program ---------------------------------------------------------------------------------------------------------

def text(value: str) -> str:
    """Returns the text escaped for a string literal of a program."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def begins_with(argument: str, prefix: str) -> str:
    """Returns a condition of a program. The length in str() excludes the NUL in bpftrace 0.17 and includes it in later
    versions. strncmp() requires a literal, and 0.27 does not accept one."""
    length = len(prefix.encode())
    return "(" + " || ".join(f'str({argument}, {n}) == "{text(prefix)}"' for n in (length, length + 1)) + ")"


def program_text(name: str, words: Dict[str, str]) -> str:
    """Returns a program of this package, joined from several parts with a + between them. The first part handles names;
    `ready`, which every program needs, is inserted after it, unless it is AT_ONCE. `words` maps placeholders to their
    values."""
    parts = []
    names, *others = name.split("+")
    for part in [names, *([] if names == AT_ONCE else ["ready"]), *others]:
        with open(os.path.join(PROGRAMS, part + ".bt"), encoding="utf-8") as file:
            parts.append(file.read())
    # All at once, because the user's text may contain one of the placeholders.
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: words[found.group()], "".join(parts))


class Bpftrace:
    """A program of this package on one node; its output arrives line by line, as JSON.

    In the program, LIB is replaced by the library, ONLY by the condition that selects the node's process, and ASK by a
    probe that requests names. `words` has the values of all other placeholders.
    """

    def __init__(self, node: Node, program: str, **words: str) -> None:
        self.node, self.path = node, require_bpftrace()
        words["ONLY"] = condition_of(node)
        if not program.startswith(AT_ONCE):
            library = f'usdt:"{node.handle()}":{PROVIDER}'
            number = place_in_row(node)
            # If no probe is free, use one that requests nothing.
            words.update(LIB=library, ASK="BEGIN" if number is None else f"{library}:{ROW}{number}")
        environment = {**environment_of(), "BPFTRACE_MAP_KEYS_MAX": "65536", "BPFTRACE_MAX_MAP_KEYS": "65536"}
        self.process = subprocess.Popen(
            [self.path, "-f", "json", "-e", program_text(program, words)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=killed_with_parent)
        self.errors: List[str] = []
        # Events that were lost because bpftrace's buffers were full.
        self.lost = 0
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        # Pieces of an incomplete line: a line with a map may have many MB.
        self.pieces: List[bytes] = []
        self.size = 0

    def __enter__(self) -> "Bpftrace":
        return self

    def read_errors(self) -> None:
        """Reads standard error. Runs in a separate thread."""
        assert self.process.stderr
        errors = self.process.stderr.fileno()
        kept = b""
        for data in iter(lambda: os.read(errors, 1 << 16), b""):
            kept += data[:ERRORS_MOST - len(kept)]
        self.errors = kept.decode("utf-8", "replace").splitlines()

    def fileno(self) -> int:
        """Returns the descriptor of its output, for select."""
        assert self.process.stdout
        return self.process.stdout.fileno()

    def lines(self) -> List["Line"]:
        """Returns the lines that have arrived; call it when select reports output."""
        read = os.read(self.fileno(), 1 << 16)
        if not read:
            raise self.ended()
        *whole, rest = read.split(b"\n")
        if whole:
            whole[0] = b"".join([*self.pieces, whole[0]])
            self.pieces.clear()
        self.pieces.append(rest)
        self.size = len(rest) if whole else self.size + len(rest)
        if self.size > LINE_MOST:
            raise Failure("bpftrace", output=f"a line of its output has more than {LINE_MOST} bytes")
        found = []
        for line in whole:
            with contextlib.suppress(ValueError):
                message = json.loads(line.decode("utf-8", "replace"))
                self.lost += lost_events(message)
                found.append(Line.of(message))
        return found

    def ended(self) -> Failure:
        """Returns the failure for a bpftrace that has closed its output."""
        self.process.wait()
        self.reader.join()
        messages = messages_of(self.errors)
        # Warnings may come after the errors.
        output = last_lines("\n".join([line for line in messages if "ERROR" in line][:1] or messages))
        return Failure("bpftrace", output=output)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            end_bpftrace(self.process)
        except Failure as failure:
            if kind is None:
                raise
            say(failure.text)


class Line(NamedTuple):
    """A line of a program's output: the fields of a printed line, or maps by name."""
    fields: List[str]
    maps: Dict[str, Dict[str, int]]

    @classmethod
    def of(cls, message: Any) -> "Line":
        """Parses a JSON message of bpftrace; returns an empty line for an unexpected message."""
        kind, data = (message.get("type"), message.get("data")) if isinstance(message, dict) else (None, None)
        if kind == "printf" and isinstance(data, str):
            return cls(data.rstrip("\n").split("\t"), {})
        if kind == "map" and isinstance(data, dict):
            return cls([], {name[1:]: values for name, values in data.items() if isinstance(values, dict)})
        return cls([], {})


def lost_events(message: Any) -> int:
    """Returns how many events this JSON message reports as lost; 0 for other kinds of messages."""
    data = message.get("data") if isinstance(message, dict) and message.get("type") == "lost_events" else None
    count = data.get("events") if isinstance(data, dict) else None
    return count if isinstance(count, int) else 0


def end_bpftrace(process: "subprocess.Popen[bytes]") -> int:
    """Ends bpftrace and returns its exit status. It prints its results on SIGINT, which it occasionally misses, and it
    detaches slowly from a busy node."""
    if process.stdout and process.poll() is None:
        # Drain its remaining output, so that bpftrace does not block on a full pipe.
        LastOutput(process.stdout, 1)
    for number, patience in ((signal.SIGINT, 5), (signal.SIGINT, 30), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        if process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
    if process.returncode is None:
        raise Failure("not_ended", pid=process.pid)
    return process.returncode


class Names:
    """The names of processes that the `names` program has printed so far."""

    LIMIT = 500000

    def __init__(self) -> None:
        self.of: Dict[str, str] = {}

    def learn(self, fields: List[str]) -> bool:
        """Stores the name on a line of the `names` program; returns whether it was such a line."""
        if fields[:1] != ["name"] or len(fields) != 4:
            return False
        if len(self.of) > self.LIMIT:
            self.of.clear()
        self.of[fields[1]] = fields[3] or fields[2] or self.of.get(fields[1], "")
        return True

    def as_json(self, pid: str) -> Dict[str, Optional[str]]:
        """Returns a PID with its name, which is None if it is unknown. A message may be sent to a name."""
        is_pid = pid.startswith("<")
        return {"pid": pid if is_pid else None, "name": self.of.get(pid) or None if is_pid else pid}

    def show(self, pid: str) -> str:
        """Returns a PID with its name."""
        name = self.of.get(pid)
        return clean(f"{pid} {name}" if name else pid)
