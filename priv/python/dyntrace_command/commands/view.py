"""`dyntrace view`: one picture of recordings."""
import argparse

from dyntrace_command.files import checked_output
from dyntrace_command.pictures import draw


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    output = options.output and checked_output(options.output)
    draw(options.folders, output, {} if options.clock_correction else {"clocks": "recorded"})
    if output not in (None, "-"):
        print(output)
