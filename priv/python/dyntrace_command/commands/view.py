"""`dyntrace view`: one picture of recordings."""
import argparse

from dyntrace_command.examined import NAMELESS, examine
from dyntrace_command.files import checked_output
from dyntrace_command.pictures import draw
from dyntrace_command.recording import check_recording
from dyntrace_command.terminal import say


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    output = options.output and checked_output(options.output)
    for folder in options.folders:
        check_recording(folder)
    found = examine(options.folders)
    if found and not found.has_names:
        say(NAMELESS)
    clocks = {} if options.clock_correction else {"clocks": "recorded"}
    draw(options.folders, output, {**clocks, **options.params})
    if output not in (None, "-"):
        print(output)
