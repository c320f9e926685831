"""bpftrace: whether it can run here, on which nodes, a program of this package with its output, and its end.

The kernel attaches to a file, so to all nodes that have mapped the same library. Each program has the condition that
the process is the node's. bpftrace's option -p is not used: with it, bpftrace opens paths that the process chooses, as
root.
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

from dyntrace_command.execution import MERGED, LastOutput, Program, end_with_parent, run
from dyntrace_command.failures import Failure
from dyntrace_command.node import PROVIDER, Node
from dyntrace_command.terminal import clean, last_lines, say
from dyntrace_command.tools import tool, tool_version

PROGRAMS = os.path.join(os.path.dirname(__file__), "programs")

# The row of probes by which a tracer asks for names.
ROW = "dump_wanted"

# Bytes of a string of bpftrace. A shorter text is whole.
STRING_BYTES = 63

# Bytes that are kept of a bpftrace's messages, and of a line of its output, which may have a whole map.
ERRORS_MOST, LINE_MOST = 1 << 20, 64 << 20
# Characters of a message that are shown as one line.
MESSAGE_MOST = 1 << 12
# Seconds that its help may take.
HELP_S = 10


# -- Whether it can run ------------------------------------------------------------------------------------------------

def require_bpftrace() -> str:
    """Returns bpftrace's path; raises Failure if it can't run here."""
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
    """Returns whether a tracefs is mounted: later versions don't start without it."""
    return any(os.path.isdir(f"{folder}/events") for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))


def quiet_option(bpftrace: str) -> List[str]:
    """Returns the option against warnings: they are about the scripts, and differ between versions."""
    return ["--no-warnings"] if "--no-warnings" in help_text(bpftrace) else []


def help_text(bpftrace: str) -> str:
    """Returns what bpftrace prints of its options and of the environment variables that it reads."""
    return run(Program([bpftrace, "--help"]), HELP_S, errors=MERGED).output


# Against names of functions of user space. Later versions of bpftrace do not read it.
NO_SYMBOLS = "BPFTRACE_NO_USER_SYMBOLS"


def environment_of() -> Dict[str, str]:
    """Returns the environment of each bpftrace. It would read files of the node as root for names of functions: the
    map of the node's code may be a pipe."""
    return {**os.environ, NO_SYMBOLS: "1"}


# What bpftrace says on standard error of itself and of the host, and not of the results: each with the reason why it is
# no failure. It is shown where bpftrace fails after all.
NOISE = [
    # A container or an unprivileged kernel keeps the limit. Later kernels do not use it for BPF.
    re.compile(r"couldn't set RLIMIT_MEMLOCK"),
    # Without a tracefs, bpftrace does not know the kernel's own functions and events. Probes of a library need none.
    re.compile(r"Could not read symbols from /"),
    re.compile(r"/sys/kernel/(debug/)?tracing\b.*No such file"),
    # It has found no tracefs there. The kernel detaches what bpftrace has attached, when bpftrace ends.
    re.compile(r"^ERROR: failed to detach probe: "),
    re.compile(r"^\s*$"),
]


def is_noise(line: str) -> bool:
    """Returns whether it is a line of bpftrace that says nothing of the results."""
    return any(pattern.search(line) for pattern in NOISE)


def messages_of(lines: Sequence[str]) -> List[str]:
    """Returns the lines that are no noise; all if there are no others, since they tell the cause then."""
    return [line for line in lines if not is_noise(line)] or list(lines)


class Messages(threading.Thread):
    """Shows what a bpftrace says on standard error, line by line, but for the noise, which it keeps."""

    # Lines that are kept; a bpftrace may say the same again and again.
    MOST = 100

    def __init__(self) -> None:
        super().__init__(daemon=True)
        # A pipe of its own: what waits for the end of bpftrace reads the pipes that Popen makes.
        self.reading, self.writing = os.pipe()
        self.noise: List[str] = []

    def start_with(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Starts the command, which ends with this one, and reads its messages."""
        try:
            process = subprocess.Popen(command, env=environment_of(), stderr=self.writing, preexec_fn=end_with_parent)
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
        """Waits for the last line; shows the noise, too, if bpftrace has failed."""
        self.join(1)
        for line in filter(None, self.noise if failed else []):
            say(clean(line))


# -- One process of several --------------------------------------------------------------------------------------------

# The kernel's description of its structures, by which a program reads them.
BTF = "/sys/kernel/btf/vmlinux"

# The kernel's number of a process in its own PID namespace is the last one of an array behind `struct pid`. Before
# 6.5 the structure includes the first element.
# Versions from 0.23 on know the type of a member's member only where a cast stands directly before the first one.
LEADER = "((struct task_struct *)curtask)->group_leader->thread_pid"
UPID = f"((struct upid *)kptr((uint64){LEADER} + sizeof(struct pid) + " \
    f"sizeof(struct upid) * ({LEADER}->level{{before}})))"


def in_initial_namespace() -> bool:
    """Returns whether processes have the same numbers here as in the kernel, so for bpftrace."""
    with contextlib.suppress(FileNotFoundError):
        return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    # /proc is that of another namespace, in which this command has no number.
    return False


def condition_of(node: Node) -> str:
    """Returns the condition of a program that a thread is the node's. In other PID namespaces than the initial one
    versions of bpftrace differ in what `pid` is, so the condition reads the kernel's own structures there."""
    if in_initial_namespace():
        return f"pid == {node.pid}"
    if not os.path.exists(BTF):
        raise Failure("no_btf", path=BTF)
    number, found = node.process.inner_pid(), re.fullmatch(r"pid:\[(\d+)\]", node.process.namespace("pid") or "")
    if not found:
        raise Failure("node_gone", pid=node.pid, name=node.node)
    places = (UPID.format(before=before) for before in ("", " - 1"))
    return "(" + " || ".join(f"({place}->nr == {number} && {place}->ns->ns.inum == {found.group(1)})"
                             for place in places) + ")"


# -- Names for each ----------------------------------------------------------------------------------------------------

def place_in_row(node: Node) -> Optional[str]:
    """Returns the end of the name of a probe of the row that nobody is attached to: a number, or an empty text for the
    first one, which scripts have that are started by hand. None if there is none. By chance, since another command may
    be looking, too."""
    row = {name[len(f"{PROVIDER}:{ROW}"):]: enabled for name, enabled in node.probes().items()
           if re.fullmatch(rf"{PROVIDER}:{ROW}(\d\d?)?", name, re.ASCII)}
    free = sorted(number for number, enabled in row.items() if not enabled)
    if row and not free:
        say(f"dyntrace: {node.show()} has {len(row)} tracers that have asked for names, as many as can ask: names of "
            "processes that are there already may be missing")
    return random.choice([number for number in free if number] or free) if free else None


# -- A program ---------------------------------------------------------------------------------------------------------

def text(value: str) -> str:
    """Returns the text as it is written within a string of a program."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def begins_with(argument: str, prefix: str) -> str:
    """Returns a condition of a program. The length in str() is without the NUL in bpftrace 0.17, with it in later
    versions. strncmp() wants a literal, and does not take one in 0.27."""
    length = len(prefix.encode())
    return "(" + " || ".join(f'str({argument}, {n}) == "{text(prefix)}"' for n in (length, length + 1)) + ")"


def program_text(name: str, words: Dict[str, str]) -> str:
    """Returns a program of this package, of several parts with a + between them. After the first one, for names, stands
    the one that all have. `words` replace the placeholders."""
    parts = []
    names, *others = name.split("+")
    for part in [names, "ready", *others]:
        with open(os.path.join(PROGRAMS, part + ".bt"), encoding="utf-8") as file:
            parts.append(file.read())
    # All at once: a text of the user's may have one of the words.
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: words[found.group()], "".join(parts))


class Bpftrace:
    """A program of this package on one node; its output comes line by line, as JSON.

    In the program, LIB stands for the library, ONLY for the condition that the process is the node's, and ASK for a
    probe that asks for names; `words` has the texts of all other placeholders.
    """

    def __init__(self, node: Node, program: str, **words: str) -> None:
        self.node, self.path = node, require_bpftrace()
        library = f'usdt:"{node.handle()}":{PROVIDER}'
        only = condition_of(node)
        number = place_in_row(node)
        # Where nobody can be asked, a probe that asks nobody.
        words.update(LIB=library, ONLY=only, ASK="BEGIN" if number is None else f"{library}:{ROW}{number}")
        environment = {**environment_of(), "BPFTRACE_MAP_KEYS_MAX": "65536", "BPFTRACE_MAX_MAP_KEYS": "65536"}
        self.process = subprocess.Popen(
            [self.path, "-f", "json", "-e", program_text(program, words)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=end_with_parent)
        self.errors: List[str] = []
        # Events that had no room on their way.
        self.lost = 0
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        # Pieces of a line that is not whole: one with a map may have many MB.
        self.pieces: List[bytes] = []
        self.size = 0

    def __enter__(self) -> "Bpftrace":
        return self

    def read_errors(self) -> None:
        """Reads its messages, in a thread of its own."""
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
        """Returns the lines that have come; call it when select says that there are some."""
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
        """Returns the failure of a bpftrace that has closed its output."""
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
    """A line of a program's output: the fields of a printed line, or maps by their names."""
    fields: List[str]
    maps: Dict[str, Dict[str, int]]

    @classmethod
    def of(cls, message: Any) -> "Line":
        """Makes a line of bpftrace's JSON; an empty one of an unexpected message."""
        kind, data = (message.get("type"), message.get("data")) if isinstance(message, dict) else (None, None)
        if kind == "printf" and isinstance(data, str):
            return cls(data.rstrip("\n").split("\t"), {})
        if kind == "map" and isinstance(data, dict):
            return cls([], {name[1:]: values for name, values in data.items() if isinstance(values, dict)})
        return cls([], {})


def lost_events(message: Any) -> int:
    """Returns how many events bpftrace says it has lost in a message of JSON; most are about something else."""
    data = message.get("data") if isinstance(message, dict) and message.get("type") == "lost_events" else None
    count = data.get("events") if isinstance(data, dict) else None
    return count if isinstance(count, int) else 0


def end_bpftrace(process: "subprocess.Popen[bytes]") -> int:
    """Ends bpftrace and returns its exit status. It prints its results at a Ctrl-C, of which it misses one now and
    then, and detaches slowly from a busy node."""
    if process.stdout and process.poll() is None:
        # What it still prints into a pipe must not fill it, and is not kept.
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
    """The names of processes, as far as the program for names has printed them."""

    LIMIT = 500000

    def __init__(self) -> None:
        self.of: Dict[str, str] = {}

    def learn(self, fields: List[str]) -> bool:
        """Learns from a line for names; returns whether it was one."""
        if fields[:1] != ["name"] or len(fields) != 4:
            return False
        if len(self.of) > self.LIMIT:
            self.of.clear()
        self.of[fields[1]] = fields[3] or fields[2] or self.of.get(fields[1], "")
        return True

    def show(self, pid: str) -> str:
        """Returns a pid with its name."""
        name = self.of.get(pid)
        return clean(f"{pid} {name}" if name else pid)
