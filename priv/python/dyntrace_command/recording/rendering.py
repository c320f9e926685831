"""Converts recordings to the output formats, by babeltrace2 with this project's plugin."""
import glob
import os
import re
import shutil
import signal
from typing import Callable, Dict, List, Optional

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.outputs import PARQUET, arguments_of, sink_of
from dyntrace_command.common.terminal import clean, last_lines, size
from dyntrace_command.host.execution import READ, SHOWN, Program, run
from dyntrace_command.host.files import checked_output
from dyntrace_command.host.tools import own_data, tool, tool_version
from dyntrace_command.recording.mirror import Mirror
from dyntrace_command.recording.parquet import converted


def draw(mirror: Mirror, output: Optional[str], params: Dict[str, str]) -> List[str]:
    """Converts the recordings to one file in the format of its extension; without a file, or with -, prints the report.
    Returns the plugin's messages to users."""
    extension, _ = sink_of(output)
    if output is None or extension != PARQUET:
        return rendered(mirror, output, params)
    require_viewer(mirror.typed())
    with converted(output) as conversion:
        return rendered(mirror, output, {**params, "path": conversion.rows}, conversion.has_ended)


def rendered(mirror: Mirror, output: Optional[str], params: Dict[str, str],
             give_up: Optional[Callable[[], object]] = None) -> List[str]:
    """Runs babeltrace2, which writes the output, or the file of the parameter `path`."""
    # At this signal, the plugin leaves no partial file.
    done = run(Program(view_command(mirror, output, params), ends_at=signal.SIGINT), output=SHOWN, errors=READ,
               give_up=give_up)
    # The reader of standard output may have ended: `dyntrace view FOLDER | head`.
    if done.status in (0, -signal.SIGPIPE):
        return said(mirror.as_typed(done.errors))
    if done.status == -signal.SIGBUS:
        raise Failure("shortened", folder=mirror.typed())
    raise failure_of(mirror.as_typed(done.errors), mirror.typed(), output)


def require_viewer(folder: str) -> str:
    """Returns the plugin's folder; raises Failure if babeltrace2 or the plugin is missing."""
    tool("babeltrace2")
    place = own_data("babeltrace2")
    if not glob.glob(os.path.join(glob.escape(place), "*.so")):
        raise Failure("no_plugin", places=place, folder=folder)
    return place


def view_command(mirror: Mirror, output: Optional[str], params: Dict[str, str]) -> List[str]:
    """Returns the command line of babeltrace2; raises Failure if it is too old for the recordings."""
    babeltrace2 = tool("babeltrace2")
    place = require_viewer(mirror.typed())
    if tool_version(babeltrace2) < (2, 1) and mirror.is_ctf_2:
        raise Failure("old_tool", tool="babeltrace2", version="2.0", needed="2.1", package="babeltrace2",
                      why="for recordings of LTTng 2.15")
    _, sink = sink_of(output)
    return [babeltrace2, f"--plugin-path={place}", *mirror.paths(),
            *arguments_of(sink, {"path": output or "-", **params})]


def said(error: str) -> List[str]:
    """Returns the plugin's messages on standard error: why there is nothing to show, that names are missing, and what
    to do."""
    texts = re.findall(r"^dyntrace: .*(?:\n  next: .*)?", error, re.M)
    return ["\n".join(map(clean, text.split("\n"))) for text in texts]


def failure_of(errors: str, folder: str, output: Optional[str]) -> Failure:
    """Returns the failure that babeltrace2's messages describe."""
    is_full = "No space left" in errors
    if output is None or output == "-":
        if is_full:
            return Failure("not_writable", folder="standard output", why="no space left")
    else:
        where = os.path.dirname(os.path.abspath(output))
        if is_full:
            return Failure("disk_full", folder=where, free=size(shutil.disk_usage(where).free), kept="")
        try:
            # The folder of the output may have been removed meanwhile.
            checked_output(output)
        except Failure as failure:
            return failure
    causes = re.findall(r"^(?:CAUSED BY|ERROR:).*\n +(.*)", errors, re.M) or [errors]
    return Failure("babeltrace2", output=last_lines(causes[-1]), folder=folder)
