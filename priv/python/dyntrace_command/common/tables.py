"""Tables that programs in other languages read, too: lines of columns, separated by tabs, with comments after #."""
import os
from typing import List


def rows(name: str) -> List[List[str]]:
    """Returns the rows of a table of this folder."""
    with open(os.path.join(os.path.dirname(__file__), name + ".tsv"), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
