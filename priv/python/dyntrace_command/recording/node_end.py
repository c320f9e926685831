"""How a node ended: the kernel's status, and the reason in its crash dump."""
from typing import Dict, NamedTuple, Sequence

from dyntrace_command.common.terminal import clean
from dyntrace_command.host.process_end import EndWatch
from dyntrace_command.node.crash_dump import CrashDump
from dyntrace_command.node.node import Node

ORDERLY = "exited with status 0"


class End(NamedTuple):
    """The end of a node: its name, and a text such as `killed by SIGKILL`."""
    name: str
    how: str

    def is_orderly(self) -> bool:
        """Returns whether it ended as by `init:stop()`."""
        return self.how == ORDERLY

    def finding(self) -> str:
        """Returns the text of the finding about it; empty if it is not a failure."""
        return "" if self.is_orderly() else f"{self.name} ended: {self.how}"


def ended(ends: Sequence[End]) -> Dict[str, str]:
    """Returns the parameters of the viewer for the findings about these ends."""
    texts = [end.finding() for end in ends if end.finding()]
    return {"ended": "\n".join(texts)} if texts else {}


class NodeWatch:
    """Waits for the end of a node."""

    def __init__(self, node: Node) -> None:
        self.node, self.process, self.dump = node, EndWatch(node.process), CrashDump(node)

    def end(self) -> End:
        """Returns how it has ended."""
        slogan = clean(self.dump.slogan())
        end = End(self.node.show(), self.process.how() + (f"; its crash dump: {slogan}" if slogan else ""))
        self.close()
        return end

    def close(self) -> None:
        """Closes its descriptors."""
        self.process.close()
        self.dump.close()
