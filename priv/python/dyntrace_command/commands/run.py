"""`dyntrace run`: runs a bpftrace script on a node.

Scripts come from this package's installation or from a path that the user names, never from the folder of a node's
library: a container must not choose what root runs.
"""
import argparse
import glob
import os
import re
import shlex
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Set

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import clean, say
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.tools import own_data
from dyntrace_command.node.node import Node, pick, status_now
from dyntrace_command.tracers.bpftrace import (NO_SYMBOLS, ROW, Messages, condition_of, end_bpftrace, help_text,
                                               place_in_row, quiet_option, require_bpftrace)
from dyntrace_command.tracers.bpftrace_script import MOST, Unsure, limited, lookup

# bpftrace takes seconds to attach. If other consumers have enabled the same probes, its attachment can't be observed.
ATTACHED_S = 10
# Seconds between two reads of the node's status.
LOOK_S = 0.5


def run(options: argparse.Namespace) -> int:
    """Runs the script, or lists the scripts; returns bpftrace's exit status."""
    if options.script is None:
        list_scripts(options.json)
        return 0
    script = find_script(options.script)
    bpftrace = require_bpftrace()
    node = pick(options.node)
    library, text = node.handle(), text_of(script)
    end = with_place(text, options.arguments, node)
    program = program_for(script, text, condition_of(node))
    check_symbols(script, text, bpftrace)
    say(clean(f"dyntrace: {script} on {node.show()}: the library {node.outside()}" +
              (f", arguments {' '.join(map(shlex.quote, end))}" if end else "") +
              "; each block is limited to this process"))
    sys.stdout.flush()
    before = node.probes()
    messages = Messages()
    process = messages.start_with([bpftrace, *quiet_option(bpftrace), *(["-f", "json"] if options.json else []),
                                   "-e", program, library, *end])
    with Interrupted() as interrupted:
        if options.seconds:
            wait_for(process, interrupted, ATTACHED_S, lambda: node.probes() != before)
        wait_for(process, interrupted, options.seconds, watch(node))
        if not node.lives():
            say(f"dyntrace: {node.show()} has ended")
        status = end_bpftrace(process)
    messages.end(failed=status != 0)
    return status


def text_of(script: str) -> str:
    """Returns the text of a script, cut one character beyond the limit; replaces invalid UTF-8."""
    with open(script, encoding="utf-8", errors="replace", newline="") as file:
        return file.read(MOST + 1).replace("\r\n", "\n")


def program_for(script: str, text: str, condition: str) -> str:
    """Returns the text of the script with the condition on its blocks."""
    try:
        return limited(text, condition)
    except Unsure as error:
        raise Failure("unsure_script", script=script, why=error) from error


def check_symbols(script: str, text: str, bpftrace: str) -> None:
    """Raises Failure if bpftrace would look up function names for the script, in files that the node chooses."""
    why = lookup(text)
    if why and NO_SYMBOLS not in help_text(bpftrace):
        raise Failure("symbols", script=script, why=why)


def with_place(text: str, arguments: List[str], node: Node) -> List[str]:
    """Returns the arguments of a script after the library. A script that requests names has `dump_wanted$2`: unless the
    user gave that argument, it is the number of a free probe."""
    found = re.search(rf":{ROW}\$([2-9])\b", text, re.ASCII)
    if not found or len(arguments) != int(found.group(1)) - 2:
        return arguments
    return [*arguments, *filter(None, [place_in_row(node)])]


def watch(node: Node) -> Callable[[], bool]:
    """Returns a function that returns whether the node has ended. The function also prints, once, each event that the
    node can't trace for the script."""
    said: Set[str] = set()
    looked = time.monotonic()

    def has_ended() -> bool:
        nonlocal looked
        if time.monotonic() - looked > LOOK_S:
            looked = time.monotonic()
            for text in status_now(node).withheld():
                if text not in said:
                    say(f"dyntrace: {node.show()} can't trace {text}")
                    said.add(text)
        return not node.lives()
    return has_ended


def wait_for(process: "subprocess.Popen[bytes]", interrupted: Interrupted, seconds: Optional[float],
             is_done: Callable[[], bool]) -> None:
    """Waits until the process ends, until Ctrl-C, until the time is over, or until `is_done`."""
    end = time.monotonic() + seconds if seconds else None
    while process.poll() is None and not interrupted.happened.is_set() and not is_done() \
            and (end is None or time.monotonic() < end):
        interrupted.happened.wait(0.1)


def scripts() -> Dict[str, str]:
    """Returns {name: path} of the shipped scripts."""
    folder = own_data("bpftrace")
    found = sorted(glob.glob(os.path.join(glob.escape(folder), "*.bt")))
    if not found:
        raise Failure("no_scripts", places=folder)
    return {os.path.basename(path)[:-3]: path for path in found}


def list_scripts(has_json: bool) -> None:
    """Prints each script with the first line of its comment."""
    found = {name: first_line(path) for name, path in scripts().items()}
    if has_json:
        put({"scripts": [{"name": name, "description": description} for name, description in found.items()]})
        return
    width = max(map(len, found))
    for name, description in found.items():
        print(f"{name:<{width}}  {description}")


def first_line(path: str) -> str:
    """Returns the first line of the first comment."""
    with open(path, encoding="utf-8") as file:
        return next((line[3:].strip() for line in file if line.startswith(" * ")), "")


def find_script(name: str) -> str:
    """Returns the path of a shipped script, or of a file if the name has a /."""
    if "/" in name:
        if os.path.isfile(name):
            return name
        raise Failure("no_script", script=name)
    name = name[:-3] if name.endswith(".bt") else name
    found = scripts()
    if name not in found:
        raise Failure("no_script", script=name)
    return found[name]
