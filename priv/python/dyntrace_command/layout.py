"""Where the memory of a node has the process that a thread runs, as the node says in its status (c_src/layout.h). A
program that samples reads it there, so the node need not be traced for that.

The node may say anything: the numbers are bounded, and the kernel reads the node's own memory by them, or nothing.
"""
import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from dyntrace_command.bpftrace import BTF
from dyntrace_command.code import Code
from dyntrace_command.node import Node
from dyntrace_command.status import Status

# Bytes within a structure; frames of a saved stack; parts of the memory with Erlang's code that a program compares
# with, most of it in the largest.
WITHIN, SAVED_MOST, PARTS_MOST = 1 << 16, 48, 16


class Layout(NamedTuple):
    """The places, in bytes, and the bits of a word that are a pid's number and serial, the lowest first."""
    slot: int
    current: int
    frame: int
    number: List[int]
    serial: List[int]

    def pid(self, word: int) -> str:
        """Returns the process that the VM holds as this word; - if it is none."""
        return f"<0.{picked(word, self.number)}.{picked(word, self.serial)}>" if word else "-"

    def words(self, code: Code) -> Dict[str, str]:
        """Returns the texts of the program's placeholders."""
        parts = sorted(code.erlang(), key=lambda part: part.start - part.end)[:PARTS_MOST]
        outside = [f'(reg("ip") < {part.start} || reg("ip") >= {part.end})' for part in parts]
        return {"SLOT": str(self.slot), "CURRENT": str(self.current), "FRAME": str(self.frame),
                "SAVED": str(SAVED_MOST), "OUTSIDE": " && ".join(outside or ["1"])}


def picked(word: int, bits: List[int]) -> int:
    """Returns the number that these bits of the word make."""
    return sum((word >> bit & 1) << at for at, bit in enumerate(bits))


def parsed(text: str) -> Optional[Layout]:
    """Returns the layout of a line of the status; None if it is none."""
    found = re.fullmatch(r"(\d{1,5}) (\d{1,5}) (\d{1,5}) ((?:\d\d?,)*\d\d?) ((?:\d\d?,)*\d\d?)", text, re.ASCII)
    if not found:
        return None
    slot, current, frame = (int(place) for place in found.groups()[:3])
    number, serial = ([int(bit) for bit in bits.split(",")] for bits in found.groups()[3:])
    is_possible = max(slot, current, frame) < WITHIN and max(number + serial) < 64
    return Layout(slot, current, frame, number, serial) if is_possible else None


def layout_of(node: Node, code: Code) -> Tuple[Optional[Layout], str]:
    """Returns the layout of a node whose memory can be read; else None and why it has to be traced."""
    why = "its functions have no names" if code.why else why_here()
    return (None, why) if why else usable(node.status)


def why_here() -> str:
    """Returns why no node's memory can be read here; an empty text if it can."""
    return "" if os.path.exists(BTF) else f"the kernel has no {BTF}"


def usable(status: Status) -> Tuple[Optional[Layout], str]:
    """Returns the layout that a node says, and an empty text; else None and what is missing."""
    layout = parsed(status.said("layout") or "")
    if layout is None:
        return None, "where its memory has the process that a thread runs is not known"
    return (layout, "") if layout.frame else (None, "its stacks have no frames")
