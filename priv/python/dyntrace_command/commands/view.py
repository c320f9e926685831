"""`dyntrace view`: converts recordings to one report, page or trace."""
import argparse
import os
from typing import Dict, Optional, Sequence
from urllib.parse import quote

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.outputs import OTLP_FILE, sink_of
from dyntrace_command.common.terminal import clean, say
from dyntrace_command.common.trigger_causes import END
from dyntrace_command.host.children import temporary_folder
from dyntrace_command.host.files import checked_output
from dyntrace_command.recording.mirror import Mirror, mirrored
from dyntrace_command.recording.node_end import End, ended
from dyntrace_command.recording.otlp_collector import post
from dyntrace_command.recording.recording_contents import examine
from dyntrace_command.recording.process_stacks import saved
from dyntrace_command.recording.rendering import draw
from dyntrace_command.recording.snapshots import Snapshot, snapshot_at

# Seconds around a cause in the page's address.
BEFORE_S, AFTER_S = 0.5, 0.1
# Characters of a cause in a row, and of its text. Bytes of all rows: they are an argument of babeltrace2, which Linux
# limits to 128 KiB, and quotes double them at worst.
CAUSE_MOST, TEXT_MOST, CAUSES_MOST = 100, 300, 50000


def view(options: argparse.Namespace) -> None:
    """Prints the report, or makes a file and prints its name."""
    output = options.output and checked_output(options.output)
    with mirrored(options.folders) as mirror:
        for text in mirror.remarks:
            say(text)
        causes = [one for one in map(snapshot_at, options.folders) if one]
        show_causes(options, mirror, output, causes)
        params = {} if options.clock_correction else {"clocks": "recorded"}
        if options.json:
            params["format"] = "json"
        if sink_of(output)[1].component == "rows":
            params.update(of_rows(options.folders, causes))
        params.update(saved(options.folders))
        params.update(ended([End(clean(one.node), clean(one.text)) for one in causes if one.cause == END]))
        if options.otlp:
            send(mirror, {**params, **options.params}, options.otlp)
            return
        for text in draw(mirror, output, {**params, **options.params}):
            say(text)
    if output not in (None, "-"):
        print(output)


def send(mirror: Mirror, params: Dict[str, str], url: str) -> None:
    """Sends the spans to a collector, and prints their number."""
    with temporary_folder() as folder:
        file = os.path.join(folder, OTLP_FILE)
        for text in draw(mirror, file, params):
            say(text)
        sent = post(file, url)
    if sent.rejected:
        raise Failure("otlp_rejected", url=url, rejected=sent.rejected, spans=sent.spans + sent.rejected,
                      message=sent.message or "no reason given")
    if sent.message:
        say(f"dyntrace: {url} says: {sent.message}")
    print(f"sent {sent.spans} spans to {url}")


def of_rows(folders: Sequence[str], causes: Sequence[Snapshot]) -> Dict[str, str]:
    """Returns the parameters of rows: the name of the recording, and the causes of snapshots."""
    heads = [f"{round(one.time * 1e6)}000\t{clean(one.cause)[:CAUSE_MOST]}\t{clean(one.node)[:CAUSE_MOST]}\t"
             for one in causes]
    # With many causes, the texts are shortened.
    most = max(0, CAUSES_MOST - sum(len(head.encode()) for head in heads)) // max(1, len(causes))
    texts = [clean(one.text)[:TEXT_MOST].encode()[:most].decode("utf-8", "ignore") for one in causes]
    return {"recording": clean(" ".join(folders)), "snapshots": "\n".join(map("".join, zip(heads, texts)))}


def show_causes(options: argparse.Namespace, mirror: Mirror, output: Optional[str],
                causes: Sequence[Snapshot]) -> None:
    """Shows the causes of snapshots with their times: above the report, as the title of a page and an address that
    opens it there, or as a message."""
    if not causes:
        return
    found = examine(mirror)
    after = None if found is None or found.begin is None else max(0, causes[0].time - found.begin / 1e9)
    lines = [clean(one.show()) for one in causes]
    if after is not None:
        lines[0] += f", {after:.3f} s after the first event"
    lines += [f"stacks of {clean(one.node)} at that time: {clean(one.stacks())}" for one in causes if one.stacks()]
    if output in (None, "-") and not options.json:
        print("\n".join(lines) + "\n", flush=True)
        return
    say("\n".join(lines))
    if str(output).endswith(".html"):
        options.params = {"title": clean(causes[0].show())[:200], **options.params}
        if after is not None:
            say(f"to open the page at that time: file://{quote(str(output))}#t={max(0, after - BEFORE_S):.3f},"
                f"{after + AFTER_S:.3f}")
