"""`dyntrace record`: nodes, with LTTng, into a folder or to a relay."""
import argparse

from dyntrace_command.files import new_folder, remove_empty
from dyntrace_command.node import pick
from dyntrace_command.recording import file_stem, record_nodes
from dyntrace_command.session import Wanted
from dyntrace_command.terminal import say


def record(options: argparse.Namespace) -> None:
    """Records, and prints the folder, which is removed if nothing was recorded."""
    chosen = [pick(name) for name in options.nodes] or [pick(None)]
    folder = None if options.to else new_folder(options.output or f"dyntrace-{file_stem(chosen)}")
    wanted = Wanted(folder, options.to, options.events, options.snapshot)
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
