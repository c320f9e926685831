"""`dyntrace report`: records for some seconds, prints the findings and writes a page."""
import argparse
import contextlib
import os
import time
from typing import Iterator, Sequence

from dyntrace_command.common.events import of_report
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import say
from dyntrace_command.host.children import temporary_folder
from dyntrace_command.host.files import checked_output, new_file, new_folder
from dyntrace_command.node.loading import loaded
from dyntrace_command.node.node import Node, check_traced
from dyntrace_command.profiling.busy_functions import sampler
from dyntrace_command.recording.mirror import mirrored
from dyntrace_command.recording.process_stacks import ProcessStacks
from dyntrace_command.recording.recording import file_stem, record_nodes
from dyntrace_command.recording.rendering import draw, require_viewer
from dyntrace_command.recording.session import Wanted


def report(options: argparse.Namespace) -> None:
    """Records nodes and writes the output file, by default a page."""
    # Checks for the plugin and the output file before the recording, not after it.
    require_viewer("RECORDING")
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(loaded(name, options.load)) for name in options.nodes or [None]]
        chosen = list({node.pid: node for node in found}.values())
        output = stack.enter_context(output_of(options, chosen))
        temporary = stack.enter_context(temporary_folder())
        for node in chosen:
            check_traced(node, options.functions, groups=options.events)
        folder = new_folder(options.keep or os.path.join(temporary, "recording"))
        if folder == output:
            os.rmdir(folder)
            raise Failure("not_writable", folder=output, why="--keep names the same path")
        os.chmod(temporary, 0o711)
        is_alone = len(chosen) == 1 and chosen[0].status.is_alone() is True
        if is_alone and not options.events:
            say("single node: message deliveries are inferred (use --events all to record them)")
        params = {"contents": options.contents}
        if options.json:
            params["format"] = "json"
        if output.endswith(".html"):
            params["title"] = f"{', '.join(node.node for node in chosen)}, {time.strftime('%Y-%m-%d %H:%M:%S')}"
        wanted = Wanted(folder, groups=options.events or of_report(is_alone), functions=options.functions,
                        limits_cost=not (options.full or options.events or options.functions or len(chosen) > 1),
                        page={**params, "path": output} if output.endswith(".html") else None)
        recorded = record_nodes(chosen, wanted, options.seconds, stacks=ProcessStacks(chosen, sampler))
        summary = recorded.summary()
        say(summary)
        if output != "-" and not output.endswith(".txt") and recorded.findings:
            print(recorded.findings, flush=True)
        if not recorded.has_page:
            with mirrored([folder], follows=False) as mirror:
                for text in [*mirror.remarks, *draw(mirror, output, {**params, **recorded.params})]:
                    if text not in summary:
                        say(text)
        if output != "-":
            print(output)


@contextlib.contextmanager
def output_of(options: argparse.Namespace, chosen: Sequence[Node]) -> Iterator[str]:
    """Yields the absolute path of the output file, by default of a page in the current folder; `-` for the terminal."""
    if options.json:
        yield "-"
        return
    if options.output:
        yield checked_output(options.output)
        return
    with new_file(checked_output(f"{file_stem(chosen)}.html")) as page:
        yield page
