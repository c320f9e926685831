"""The status that a node publishes, as text for users. Its values are untrusted."""
import re
from typing import List, Optional, Sequence, Tuple

from dyntrace_command.common.functions import Function, parsed
from dyntrace_command.common.terminal import clean

# Characters of a value; items of the list.
TEXT_MOST, WITHHELD_MOST = 1000, 20


class Status:
    """The lines (key, value) of a status. It has none if the node's library is older."""

    def __init__(self, lines: Sequence[Tuple[str, str]] = ()) -> None:
        self.lines = [(key, clean(value)[:TEXT_MOST]) for key, value in lines]

    def said(self, key: str) -> Optional[str]:
        """Returns the first value of the key; None if the key is absent."""
        return next((value for said, value in self.lines if said == key), None)

    def name(self) -> Optional[str]:
        """Returns the node's name, if the status has a valid one."""
        name = self.said("node") or ""
        return name if re.fullmatch(r"[^\s@]{1,255}@[^\s@]{1,255}", name) else None

    def is_alone(self) -> Optional[bool]:
        """Returns whether, by its status, no other node is connected; None if the status does not say."""
        connected = self.said("connected")
        return None if connected is None else connected == "0"

    def withheld(self, keys: Sequence[str] = ("withheld", "usual")) -> List[str]:
        """Returns what the node can't trace, with the reasons. `usual` is what a release or a configuration always
        leaves out."""
        return [value for key, value in self.lines if key in keys][:WITHHELD_MOST]

    def functions(self) -> Optional[List[Function]]:
        """Returns the functions that it traces for consumers of calls; None if the status does not list all of them."""
        found = [parsed(value) for key, value in self.lines if key == "function"]
        whole = self.said("functions") == str(len(found)) and None not in found
        return [function for function in found if function] if whole else None
