"""The text of a bpftrace script: its blocks, and a condition in each block that a file's probes run.

The kernel attaches to a file, so the probes of a library fire in all processes that have mapped it. A script is limited
to one process by a condition before the block's own one. What this module does not recognize it refuses: bpftrace might
read it as a block that has no condition.
"""
import re
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

# Kinds of probes on places in files, which have a path as their second part; and all others.
OF_FILES = {"usdt", "U", "uprobe", "u", "uretprobe", "ur"}
OTHERS = {"BEGIN", "END", "begin", "end", "interval", "i", "profile", "p", "kprobe", "k", "kretprobe", "kr", "kfunc",
          "f", "kretfunc", "fr", "fentry", "fexit", "tracepoint", "t", "rawtracepoint", "rt", "software", "s",
          "hardware", "h", "watchpoint", "w", "asyncwatchpoint", "aw", "iter", "it", "self", "test", "bench"}
# Definitions before the blocks, by how they end.
TYPES, BLOCKS, STATEMENTS = {"struct", "union", "enum"}, {"config", "fn", "macro", "subprog"}, {"let"}

STRING = r'"(?:[^"\\\n]|\\[^\n])*"'
PIECE = re.compile(rf"(?P<skipped>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>{STRING})|(?P<word>[@$]?\w+)|(?P<odd>\"|/\*|['#])|"
                   "(?P<sign>.)", re.S | re.A)
POINT = re.compile(rf'(?:{STRING}|[^\s,;{{}}"\'#])+', re.A)
POINT_OF_FILE = re.compile(rf'\w+:(?:{STRING}|[^":]+)(?::(?:{STRING}|[^":/]+))+', re.A)
DEFINITION = re.compile(r"#\s*define\s+(\w+)(.*)", re.A)

# What looks up names of functions in the files of a process.
LOOKS_UP = re.compile(r"(?:usym|func)$|ustack$(?!)", re.A)


class Unclear(Exception):
    """A script that can't be limited to one process: the number of a line, and why."""

    def __init__(self, text: str, at: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = text.count("\n", 0, at) + 1, why


class Insertion(NamedTuple):
    """A text that is inserted before a place of the script."""
    at: int
    text: str


class Piece(NamedTuple):
    """A word or a sign of the code, with its place."""
    at: int
    text: str


def limited(text: str, condition: str) -> List[Insertion]:
    """Returns what makes the blocks of a script run only if the condition holds, in the order of the text."""
    return Script(text, condition).insertions


def inserted(text: str, insertions: List[Insertion]) -> str:
    """Returns the text with the insertions."""
    pieces, before = [], 0
    for at, new in insertions:
        pieces += [text[before:at], new]
        before = at
    return "".join([*pieces, text[before:]])


def sed_of(text: str, insertions: List[Insertion]) -> List[str]:
    """Returns the same as commands of sed, which count bytes (LC_ALL=C). Later places of a line come first: they do not
    move those before them."""
    commands = []
    for at, new in reversed(insertions):
        start = text.rfind("\n", 0, at) + 1
        column = len(text[start:at].encode("utf-8", "surrogateescape"))
        commands.append(f"{text.count(chr(10), 0, at) + 1}s~^.{{{column}}}~&{re.sub(r'([&~])', r'[\1]', new)}~")
    return commands


class Script:
    """A script, read from its start to its end."""

    def __init__(self, text: str, condition: str) -> None:
        self.text, self.condition = text, condition
        self.insertions: List[Insertion] = []
        self.at = 0
        self.read()

    def unclear(self, why: str, at: int = -1) -> Unclear:
        """Returns the exception for a place, the current one by default."""
        return Unclear(self.text, self.at if at < 0 else at, why)

    def read(self) -> None:
        """Reads all that stands outside blocks, and the blocks."""
