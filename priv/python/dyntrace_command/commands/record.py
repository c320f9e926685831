"""`dyntrace record`: nodes, with LTTng, into a folder or to a relay."""
import argparse
from typing import Optional, Sequence

from dyntrace_command.files import new_folder, numbered_folder, remove_empty
from dyntrace_command.node import Node, check_traced, pick
from dyntrace_command.recording import file_stem, record_nodes
from dyntrace_command.session import Wanted
from dyntrace_command.terminal import say


def record(options: argparse.Namespace) -> None:
    """Records, and prints the folder, which is removed if nothing was recorded."""
    chosen = [pick(name) for name in options.nodes] or [pick(None)]
    for node in chosen:
        check_traced(node, options.functions)
    folder = None if options.to else folder_for(options.output, chosen)
    wanted = Wanted(folder, options.to, options.events, options.snapshot, options.functions)
    try:
        recorded = record_nodes(chosen, wanted, options.seconds, options.quiet)
    except BaseException:
        remove_empty(folder)
        raise
    if folder:
        print(folder)
    say(recorded.summary())
    if options.to:
        say(f"it is on the collector: {options.to}")


def folder_for(output: Optional[str], chosen: Sequence[Node]) -> str:
    """Makes the folder that `-o` names, or one that is named after nodes and time; returns its path."""
    return new_folder(output) if output else numbered_folder(f"dyntrace-{file_stem(chosen)}")
