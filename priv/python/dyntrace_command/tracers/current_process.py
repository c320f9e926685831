"""Where a node's memory names the process that a thread runs, according to the node's status (c_src/layout.h). A
sampling program reads it there, so the node need not be traced.

The node's status is untrusted: the numbers are bounded, and the kernel uses them to read only the node's own memory.
"""
import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from dyntrace_command.node.code import Code
from dyntrace_command.node.node import Node
from dyntrace_command.node.status import Status
from dyntrace_command.tracers.bpftrace import BTF

# Bounds: offset within a structure; frames of a saved stack; mappings of Erlang code that a program compares with, the
# largest first.
WITHIN, SAVED_MOST, PARTS_MOST = 1 << 16, 48, 16


class Layout(NamedTuple):
    """Byte offsets, and the bits of a word that form a pid's number and serial, the lowest first."""
    slot: int
    current: int
    frame: int
    number: List[int]
    serial: List[int]

    def pid(self, word: int) -> str:
        """Returns the pid that this word of the VM encodes; - for no process."""
        return f"<0.{picked(word, self.number)}.{picked(word, self.serial)}>" if word else "-"

    def words(self, code: Code) -> Dict[str, str]:
        """Returns the values of the program's placeholders."""
        parts = sorted(code.erlang(), key=lambda part: part.start - part.end)[:PARTS_MOST]
        outside = [f'(reg("ip") < {part.start} || reg("ip") >= {part.end})' for part in parts]
        return {"SLOT": str(self.slot), "CURRENT": str(self.current), "FRAME": str(self.frame),
                "SAVED": str(SAVED_MOST), "OUTSIDE": " && ".join(outside or ["1"])}


def picked(word: int, bits: List[int]) -> int:
    """Returns the number formed by these bits of the word."""
    return sum((word >> bit & 1) << at for at, bit in enumerate(bits))


def parsed(text: str) -> Optional[Layout]:
    """Parses the layout from the status; returns None if it is invalid."""
    found = re.fullmatch(r"(\d{1,5}) (\d{1,5}) (\d{1,5}) ((?:\d\d?,)*\d\d?) ((?:\d\d?,)*\d\d?)", text, re.ASCII)
    if not found:
        return None
    slot, current, frame = (int(place) for place in found.groups()[:3])
    number, serial = ([int(bit) for bit in bits.split(",")] for bits in found.groups()[3:])
    is_possible = max(slot, current, frame) < WITHIN and max(number + serial) < 64
    return Layout(slot, current, frame, number, serial) if is_possible else None


def layout_of(node: Node, code: Code) -> Tuple[Optional[Layout], str]:
    """Returns the layout of a node whose memory can be read; else None, and why it has to be traced."""
    why = "its functions have no names" if code.why else why_here()
    return (None, why) if why else usable(node.status)


def why_here() -> str:
    """Returns why the memory of nodes can't be read on this host; an empty text if it can."""
    return "" if os.path.exists(BTF) else f"the kernel has no {BTF}"


def usable(status: Status) -> Tuple[Optional[Layout], str]:
    """Returns the layout from the node's status, and an empty text; else None, and what is missing."""
    layout = parsed(status.said("layout") or "")
    if layout is None:
        return None, "its status does not say where its memory names the process that a thread runs"
    return (layout, "") if layout.frame else (None, "its stacks have no frames")
