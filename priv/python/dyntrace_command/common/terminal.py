"""Output for users: messages, tables, numbers, a progress line, a full screen.

Results go to standard output, messages to standard error. Texts from nodes, containers and other hosts go through
`clean` before they reach a terminal.
"""
import contextlib
import os
import shutil
import sys
import termios
import tty
from typing import Any, Callable, List, Optional, Sequence, TextIO


def say(text: str) -> None:
    """Prints a message on standard error."""
    print(text, file=sys.stderr, flush=True)


def clean(text: str) -> str:
    """Returns the text with control characters escaped, so that it can't change the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def last_lines(output: str) -> str:
    """Returns the last two lines of a program's output as one line, cleaned."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return clean(" / ".join(lines[-2:])) or "no output"


def first_of(texts: Sequence[str], most: int = 5) -> str:
    """Returns the first texts of a list as one line, cleaned, and the number of the others."""
    others = len(texts) - most
    return ", ".join(clean(text)[:200] for text in texts[:most]) + (f", and {others} more" if others > 0 else "")


def size(count: float) -> str:
    """Returns a number of bytes with a unit: `1.5 MB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def plural(count: int, noun: str) -> str:
    """Returns `1 host`, `2 hosts`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows with columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def may_read_terminal() -> bool:
    """Returns whether standard input is a terminal and this command is in its foreground. The kernel stops a background
    process that reads."""
    with contextlib.suppress(OSError):
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    return False


def draws(stream: TextIO) -> bool:
    """Returns whether the stream is a terminal on which lines can be overwritten."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Progress:
    """A progress line, overwritten on a terminal; elsewhere one line per second."""

    def __init__(self, quiet: bool = False) -> None:
        self.terminal = draws(sys.stderr)
        self.quiet = quiet
        self.open = False

    def show(self, text: str) -> None:
        """Shows the text in place of the previous line."""
        if self.quiet:
            return
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self.open = True
        else:
            say(text)

    def end(self) -> None:
        """Ends the line; call it before another message."""
        if self.open:
            sys.stderr.write("\n")
            self.open = False


# Returns the lines of a frame with at most that many rows.
Frame = Callable[[int], List[str]]


class Screen:
    """A full screen on a terminal; elsewhere plain lines. `rows` limits a frame regardless of the terminal's height."""

    # Lines that are not rows of a frame: its head, its titles, the help.
    OTHER_LINES = 3
    # Rows without a terminal.
    ROWS = 20
    # The screens to restore.
    drawn: List["Screen"] = []

    def __init__(self, rows: Optional[int], help_line: str) -> None:
        self.rows, self.help_line = rows, help_line
        self.terminal = draws(sys.stdout)
        self.keyboard = self.terminal and sys.stdin.isatty()
        self.before: Any = None

    def __enter__(self) -> "Screen":
        self.drawn.append(self)
        if self.keyboard:
            self.before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        if self.terminal:
            # The alternate screen, without a cursor and without line wrap, which wide characters could cause.
            sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[JAttaching... q quits.")
            sys.stdout.flush()
        return self

    def keys(self) -> List[TextIO]:
        """Returns the streams to select on. When one is ready, `key` does not wait."""
        return [sys.stdin] if self.keyboard else []

    @staticmethod
    def key() -> str:
        """Waits for a key and returns it, or q at the end of the input."""
        return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace") or "q"

    def show(self, frame: Frame) -> None:
        """Draws the frame."""
        if self.terminal:
            width, height = shutil.get_terminal_size()
            lines = [*frame(max(1, min(self.rows or height, height - self.OTHER_LINES))), self.help_line]
            sys.stdout.write("\x1b[H\x1b[J" + "\r\n".join(line[:width] for line in lines))
        else:
            sys.stdout.write("\n".join(frame(self.rows or self.ROWS)) + "\n\n")
        sys.stdout.flush()

    RESTORED = "\x1b[?7h\x1b[?25h\x1b[?1049l"

    def __exit__(self, *_: object) -> None:
        self.drawn.remove(self)
        if self.terminal:
            sys.stdout.write(self.RESTORED)
            sys.stdout.flush()
        if self.keyboard:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self.before)

    @classmethod
    def restore_all(cls) -> None:
        """Restores the terminal for a command that ends at once. Avoids its streams, which another thread may hold."""
        for screen in cls.drawn:
            if screen.keyboard and screen.before:
                termios.tcsetattr(0, termios.TCSANOW, screen.before)
            if screen.terminal:
                os.write(1, cls.RESTORED.encode("ascii"))
