"""Code shared by both kinds of `dyntrace top`: frames of a node's processes, with their names."""
import time
from typing import Any, Dict, List, Optional

from dyntrace_command.node.node import Node
from dyntrace_command.tracers.bpftrace import Line, Names

# The node sends its names within a second, or not at all.
NAMELESS_FRAMES = 2


class Frames:
    """The successive frames of a node. Subclasses parse the lines and draw the frames."""

    # Set by subclasses: the program and its placeholders, the columns, the keys that sort by them, and the help.
    program = ""
    words: Dict[str, str] = {}
    columns: Dict[str, str] = {}
    keys: Dict[str, str] = {}
    help = ""

    def __init__(self, node: Node, sort: Optional[str], own: bool) -> None:
        """`own`: also show the processes of dyntrace."""
        self.node, self.sort, self.own = node, sort or next(iter(self.columns)), own
        self.names = Names()
        # Seconds since bpftrace attached; number of complete frames; whether the node has sent anything.
        self.seconds = self.count = 0
        self.seen = False

    def take(self, line: Line) -> None:
        """Processes a line of bpftrace."""
        raise NotImplementedError

    def whole(self) -> bool:
        """Returns whether a frame has been completed since the last call."""
        raise NotImplementedError

    def due(self) -> bool:
        """Returns whether there is a frame to show. The first ones wait for names."""
        if not self.whole():
            return False
        self.count += 1
        return bool(self.names.of) or self.count > NAMELESS_FRAMES

    def lines(self, rows: int) -> List[str]:
        """Returns the lines of the frame that is due."""
        raise NotImplementedError

    def values(self, rows: int) -> Dict[str, Any]:
        """Returns the values of the frame that is due: the totals, and the processes."""
        raise NotImplementedError

    def as_json(self, rows: int) -> Dict[str, Any]:
        """Returns the object that --json prints for the frame that is due."""
        return {"node": self.node.node, "pid": self.node.pid, "time_ns": round(time.time() * 1e9), **self.values(rows)}

    def is_shown(self, pid: str) -> bool:
        """Returns whether a process belongs to the node, or those of dyntrace are shown, too."""
        return self.own or not self.names.of.get(pid, "").startswith("dyntrace_")

    def head(self, text: str) -> List[str]:
        """Returns the first two lines: the node, and the column titles."""
        return [f"dyntrace top  {self.node.show()}  {time.strftime('%H:%M:%S')}  {text}",
                "".join(f"{title:>10}" for title in self.columns.values()) + "  PROCESS"]

    def press(self, key: str) -> None:
        """Sorts by the key's column, if it has one."""
        self.sort = self.keys.get(key, self.sort)
