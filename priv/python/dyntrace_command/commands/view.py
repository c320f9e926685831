"""`dyntrace view`: one picture of recordings."""
import argparse

from dyntrace_command.pictures import draw


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    clocks = {} if options.clock_correction else {"clocks": "recorded"}
    draw(options.folders, options.output, {**clocks, **options.params})
    if options.output not in (None, "-"):
        print(options.output)
