"""`dyntrace record`: records nodes with LTTng into a folder or to a relay, or in memory until a cause fires."""
import argparse
import os
from typing import List, Optional, Sequence

from dyntrace_command.common.terminal import say
from dyntrace_command.common.trigger_causes import CAUSES, LOGGED_CRASH, REQUESTED, Cause
from dyntrace_command.host.files import new_folder, numbered_folder
from dyntrace_command.host.trees import remove_empty
from dyntrace_command.node.node import Node, check_traced, pick
from dyntrace_command.recording.daemonize import detach, ready
from dyntrace_command.recording.recorder import When, keep_recording
from dyntrace_command.recording.recording import file_stem, record_nodes
from dyntrace_command.recording.session import Wanted
from dyntrace_command.recording.snapshots import MESSAGES


def record(options: argparse.Namespace) -> None:
    """Records and prints the folder. Removes the folder if nothing was recorded."""
    if options.when:
        record_when(options)
        return
    chosen = chosen_nodes(options)
    folder = None if options.to else folder_for(options.output, chosen)
    wanted = Wanted(folder, options.to, options.events, options.snapshot, options.functions,
                    traces_on_demand=options.snapshot and not is_full(options))
    try:
        recorded = record_nodes(chosen, wanted, options.seconds, options.quiet)
    except BaseException:
        remove_empty(folder)
        raise
    if folder:
        print(folder)
    say(recorded.summary())
    if options.to:
        say(f"the recording is on the collector: {options.to}")


def record_when(options: argparse.Namespace) -> None:
    """Keeps events in memory, and writes a snapshot at each cause."""
    pipe = detach() if options.detach else None
    if options.detach and pipe is None:
        return
    chosen = chosen_nodes(options)
    folder = os.path.abspath(options.output)
    causes = causes_of(options)
    wanted = Wanted(folder, None, options.events, True, options.functions, causes, not is_full(options))

    def begun() -> None:
        if pipe is not None:
            say(f"running in the background: process {os.getpid()}; `kill {os.getpid()}` ends it; its messages are in "
                f"{os.path.join(folder, MESSAGES)}")
            ready(pipe, folder)
    keep_recording(chosen, wanted, When(causes, options.at_most, options.keep), options.seconds, begun)


def causes_of(options: argparse.Namespace) -> List[Cause]:
    """Returns the causes that have events, each once: LTTng rejects an event with the same filter as another one."""
    return list(dict.fromkeys(LOGGED_CRASH if cause == CAUSES["crash"] and not is_full(options) else cause
                              for cause in [*options.when, REQUESTED] if cause.event))


def is_full(options: argparse.Namespace) -> bool:
    """Returns whether a flight recorder always records events that require trace flags."""
    return bool(options.full or options.events or options.functions)


def chosen_nodes(options: argparse.Namespace) -> Sequence[Node]:
    """Returns the nodes that the options name."""
    chosen = [pick(name) for name in options.nodes] or [pick(None)]
    functions = [*options.functions, *(cause.function for cause in options.when or [] if cause.function)]
    for node in chosen:
        check_traced(node, functions, groups=options.events)
    return chosen


def folder_for(output: Optional[str], chosen: Sequence[Node]) -> str:
    """Makes the folder of `-o`, or one named after the nodes and the time; returns its path."""
    return new_folder(output) if output else numbered_folder(f"dyntrace-{file_stem(chosen)}")
