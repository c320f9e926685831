"""Limits a bpftrace script to one process.

The kernel attaches probes to a file, so a block of a USDT probe runs for every process that has mapped the library.
`limited` inserts a statement at the start of each of these blocks that returns for other processes. To do that, it
splits the script into attach points and blocks. It refuses a script that bpftrace might split differently.
"""
import re
from typing import List, NamedTuple, Set, Tuple

# Characters of a script. It is a single argument of bpftrace, which the kernel limits to 128 KB.
MOST = 100000

# Probe types that do not attach to a file of user space: their blocks are left alone. Blocks of all other types, also
# unknown ones, get the condition.
OTHERS: Set[str] = set(
    "BEGIN END begin end self bench test interval i profile p kprobe k kretprobe kr kfunc f kretfunc fr fentry fexit "
    "tracepoint t rawtracepoint rt software s hardware h iter it watchpoint w asyncwatchpoint aw".split())

# Declarations have braces, too: types, and functions, which blocks call only after the condition.
DECLARATION = re.compile(r"(struct|union|enum|fn|subprog|macro)\s+\w|config\s*=\s*$|typedef\s")
# Statements that end with a semicolon instead of a block. An `import` is refused: it would add probes that are not seen
# here.
STATEMENT = re.compile(r"$|(struct|union|enum|typedef|let)\b")

TOKEN = re.compile(r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<string> "(?:[^"\\]|\\.)*" )
  | (?P<directive> \#[^\n]* )
  | (?P<other> . )""", re.VERBOSE | re.DOTALL)

# Text before a comment. In `usdt:/lib/*/x.so:` the characters `/*` belong to a path.
BEFORE_COMMENT = re.compile(r"(^|[\s;{}(),\"]|\*/)$")

# A macro must be a number or a simple term, and must not redefine a word of the condition, so that it changes neither
# blocks nor the condition.
MACRO = re.compile(r"#\s*define\s+(\w+)(\s[\w\s.()+*%<>|&~^-]*)?$", re.ASCII)
INCLUDE = re.compile(r'#\s*include\s*[<"][\w./+-]+[>"]\s*$', re.ASCII)

# Words that make bpftrace look up names of functions in user space. Addresses (`raw`) need no lookup.
LOOKUP = re.compile(r"(?<![\w@$.>])(usym|ustack|func)\b(?!\s*\(\s*raw\b)", re.ASCII)


class Unsure(ValueError):
    """A script whose blocks can't be determined; the text has the reason and the line number."""


class Block(NamedTuple):
    """A block's attach points, without comments and with empty strings, and the position of its opening brace."""
    header: str
    start: int


def limited(script: str, condition: str) -> str:
    """Returns the script, with the blocks of USDT probes limited by the condition, an expression. Line numbers do not
    change. Raises Unsure."""
    if len(script) > MOST:
        raise Unsure(f"it has more than {MOST} characters")
    words = set(re.findall(r"[A-Za-z_]\w*", condition)) | {"if", "return"}
    pieces, done = [], 0
    for block in blocks(script, words):
        if is_limited(block.header):
            if re.search(r"\+\+|--|(?<![=!<>])=(?!=)", block.header):
                raise unsure(script, block.start, "an assignment in a predicate")
            pieces += [script[done:block.start + 1], f" if (!({condition})) {{ return; }}"]
            done = block.start + 1
    return "".join([*pieces, script[done:]])


def lookup(script: str) -> str:
    """Returns the first word of a script that makes bpftrace look up names of functions, with its line; an empty text
    if the script has no such word."""
    code = TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token.group()) if token.lastgroup in ("comment", "string") else
                     token.group(), script)
    found = LOOKUP.search(code)
    return f"line {code.count(chr(10), 0, found.start()) + 1} has {found.group(1)}" if found else ""


def is_limited(header: str) -> bool:
    """Returns whether a block with these attach points belongs to probes of a library."""
    if DECLARATION.match(header):
        return False
    # The predicate may contain commas, and the part after one looks like an unknown type; only the first types are
    # certain.
    points = [point.strip() for point in re.split(r"\s/", header)[0].split(",")]
    return not all(re.split(r"[:\s/]", point)[0] in OTHERS for point in points)


def blocks(script: str, words: Set[str]) -> List[Block]:
    """Returns the top-level blocks of a script."""
    found: List[Block] = []
    header: List[str] = []
    depth = 0
    for kind, text, at in tokens(script, words):
        if kind != "other":
            header.append('""' if kind == "string" else " ")
        elif text == "{":
            if depth == 0:
                found.append(Block("".join(header).strip(), at))
            depth += 1
        elif text == "}":
            depth -= 1
            if depth < 0:
                raise unsure(script, at, "a } without a {")
            header.clear()
        elif text == ";" and depth == 0:
            if not STATEMENT.match("".join(header).strip()):
                raise unsure(script, at, "a statement outside of blocks")
            header.clear()
        else:
            header.append(text)
    if depth or "".join(header).strip():
        raise unsure(script, len(script), "an unexpected end of the script")
    return found


def tokens(script: str, words: Set[str]) -> List[Tuple[str, str, int]]:
    """Returns (kind, text, position) of comments, strings, preprocessor lines, and other characters."""
    found = []
    for token in TOKEN.finditer(script):
        kind, text, at = str(token.lastgroup), token.group(), token.start()
        line = script[script.rfind("\n", 0, at) + 1:at]
        if kind == "comment" and not BEFORE_COMMENT.search(line):
            raise unsure(script, at, "a comment that may be a path: quote paths, and write a space before a comment")
        if kind == "directive":
            check_directive(script, at, line, text, words)
        if kind == "other" and (text in "\"'`\0\r" or script.startswith("/*", at)):
            raise unsure(script, at, f"{text!r}, which is unterminated or unknown")
        found.append((kind, text, at))
    return found


def check_directive(script: str, at: int, line: str, text: str, words: Set[str]) -> None:
    """Raises Unsure for a preprocessor line that might change blocks or the condition."""
    if at == 0 and text.startswith("#!"):
        return
    macro = MACRO.match(text)
    if line.strip() or not (INCLUDE.match(text) or macro and macro.group(1) not in words):
        raise unsure(script, at, "a preprocessor line that is neither #include nor a simple #define")


def unsure(script: str, at: int, what: str) -> Unsure:
    """Returns the error with the line number."""
    number = script.count("\n", 0, at) + 1
    return Unsure(f"line {number} has {what}")
