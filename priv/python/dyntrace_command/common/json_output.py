"""What --json prints: one document, or one per line. The folder `schemas` has a JSON Schema of each.

`put` prints ASCII, so texts of nodes can't change the terminal.
"""
import functools
import json
import os
from typing import Any, Dict, Optional

# The key of a shortened result of `dyntrace mcp`: the rows that are left out of each list, by the path of its keys.
ROWS_LEFT_OUT = "rows_left_out"

SCHEMAS = os.path.join(os.path.dirname(__file__), "schemas")


def put(document: Dict[str, Any], is_line: bool = False) -> None:
    """Prints a document, or a line of JSON Lines."""
    print(json.dumps(document, indent=None if is_line else 2), flush=True)


def put_error(status: int, name: str, cause: str, step: Optional[str] = None) -> None:
    """Prints the document in place of a result: the exit status, the failure's name and cause, and the next step."""
    try:
        put({"error": {"exit_status": status, "name": name, "cause": cause, "next": step}}, is_line=True)
    except OSError:
        # The message on standard error remains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@functools.lru_cache(maxsize=None)
def schema(name: str) -> Dict[str, Any]:
    """Returns a schema by the name of its file, which is that of the subcommand."""
    with open(os.path.join(SCHEMAS, name + ".json"), encoding="utf-8") as file:
        found: Dict[str, Any] = json.load(file)
        return found
