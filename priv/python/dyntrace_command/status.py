"""What a node says of itself: the texts of its status, for people. Any of them may be anything."""
import re
from typing import List, Optional, Sequence, Tuple

from dyntrace_command.functions import Function, parsed
from dyntrace_command.terminal import clean

# Of one text, and of the list.
TEXT_MOST, WITHHELD_MOST = 1000, 20


class Status:
    """The lines (key, value) of a status. A node whose library is of an earlier version has none."""

    def __init__(self, lines: Sequence[Tuple[str, str]] = ()) -> None:
        self.lines = [(key, clean(value)[:TEXT_MOST]) for key, value in lines]

    def said(self, key: str) -> Optional[str]:
        """Returns the first value of the key; None if there is none."""
        return next((value for said, value in self.lines if said == key), None)

    def name(self) -> Optional[str]:
        """Returns the node's name, if it says one that can be a name."""
        name = self.said("node") or ""
        return name if re.fullmatch(r"[^\s@]{1,255}@[^\s@]{1,255}", name) else None

    def is_alone(self) -> Optional[bool]:
        """Returns whether it says that no other node is connected with it; None if it says nothing of that."""
        connected = self.said("connected")
        return None if connected is None else connected == "0"

    def withheld(self, keys: Sequence[str] = ("withheld", "usual")) -> List[str]:
        """Returns what it can't trace, with the reasons. `usual` is what a release or a configuration always leaves
        out."""
        return [value for key, value in self.lines if key in keys][:WITHHELD_MOST]

    def functions(self) -> Optional[List[Function]]:
        """Returns the functions that it traces for consumers of calls; None if it does not say, or not all."""
        found = [parsed(value) for key, value in self.lines if key == "function"]
        whole = self.said("functions") == str(len(found)) and None not in found
        return [function for function in found if function] if whole else None
