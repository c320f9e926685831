"""`dyntrace view`: one picture of recordings."""
import argparse
from typing import Optional

from dyntrace_command.examined import NAMELESS, examine
from dyntrace_command.files import checked_output
from dyntrace_command.pictures import draw
from dyntrace_command.recording import check_recording
from dyntrace_command.snapshots import snapshot_at
from dyntrace_command.terminal import clean, say


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    output = options.output and checked_output(options.output)
    for folder in options.folders:
        check_recording(folder)
    found = examine(options.folders)
    if found and not found.has_names:
        say(NAMELESS)
    tell_causes(options, output)
    clocks = {} if options.clock_correction else {"clocks": "recorded"}
    draw(options.folders, output, {**clocks, **options.params})
    if output not in (None, "-"):
        print(output)


def tell_causes(options: argparse.Namespace, output: Optional[str]) -> None:
    """Begins with the moments of the snapshots' causes: above the report, as the title of a page, else as a message."""
    causes = [clean(one.show()) for one in map(snapshot_at, options.folders) if one]
    if not causes:
        return
    if output in (None, "-"):
        print("\n".join(causes) + "\n", flush=True)
        return
    say("\n".join(causes))
    if str(output).endswith(".html"):
        options.params = {"title": causes[0][:200], **options.params}
