"""`dyntrace view`: one picture of recordings."""
import argparse

from dyntrace_command.files import checked_output
from dyntrace_command.pictures import draw
from dyntrace_command.recording import check_recording
from dyntrace_command.terminal import say


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    output = options.output and checked_output(options.output)
    for folder in options.folders:
        check_recording(folder)
    clocks = {} if options.clock_correction else {"clocks": "recorded"}
    for text in draw(options.folders, output, {**clocks, **options.params}):
        say(text)
    if output not in (None, "-"):
        print(output)
