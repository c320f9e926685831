"""Texts for people: messages, tables, numbers, a line of progress, a screen that is drawn over.

Results go to standard output, messages to standard error. Texts of nodes, containers and other hosts go through `clean`
before a terminal sees them.
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
    """Returns the text with control characters as escapes, so that it can't change the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def last_lines(output: str) -> str:
    """Returns the last two lines of a program's output as one, cleaned."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return clean(" / ".join(lines[-2:])) or "it has printed nothing"


def first_of(texts: Sequence[str], most: int = 5) -> str:
    """Returns the first texts of a list as a line, cleaned, and the number of the others."""
    others = len(texts) - most
    return ", ".join(clean(text)[:200] for text in texts[:most]) + (f", and {others} more" if others > 0 else "")


def size(count: float) -> str:
    """Returns a number of bytes as people write it: `1.5 MB`."""
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
    """Returns whether standard input is a terminal and this command is in its foreground: one in the background would
    be stopped if it read."""
    with contextlib.suppress(OSError):
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    return False


def draws(stream: TextIO) -> bool:
    """Returns whether the stream is a terminal that can be written over."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Progress:
    """A line that is written over on a terminal, a line per second elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self.terminal = draws(sys.stderr)
        self.quiet = quiet
        self.open = False

    def show(self, text: str) -> None:
        """Shows the text in place of the line before."""
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


# The lines of a frame with at most that many rows.
Frame = Callable[[int], List[str]]


class Screen:
    """A terminal that is drawn over; elsewhere plain lines. `rows` limits a frame, whatever the terminal's height."""

    # Lines of the terminal that are not rows of a frame: its head, its titles, the help.
    OTHER_LINES = 3
    # Rows where there is no terminal.
    ROWS = 20
    # Those that have to be restored.
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
            # The alternate screen, without a cursor, and without a second line for a wide character that has no room.
            sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[JAttaching... q quits.")
            sys.stdout.flush()
        return self

    def keys(self) -> List[TextIO]:
        """Returns what to select on: once it is ready, `key` does not wait."""
        return [sys.stdin] if self.keyboard else []

    @staticmethod
    def key() -> str:
        """Waits for a key and returns it; returns q at the end of the input."""
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
        """Restores the terminal for a command that ends at once, while another thread may hold its streams."""
        for screen in cls.drawn:
            if screen.keyboard and screen.before:
                termios.tcsetattr(0, termios.TCSANOW, screen.before)
            if screen.terminal:
                os.write(1, cls.RESTORED.encode("ascii"))
