"""`dyntrace top`: shows the busiest processes of a node live, each second."""
import argparse
import select
import time
from typing import Dict, Type

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import Screen
from dyntrace_command.host.children import Interrupted
from dyntrace_command.node.node import pick
from dyntrace_command.node.why_untraced import untraced
from dyntrace_command.recording.recording import PATIENCE
from dyntrace_command.top.frames import Frames
from dyntrace_command.top.from_events import Counted
from dyntrace_command.top.from_samples import Sampled
from dyntrace_command.tracers.bpftrace import Bpftrace

# By --exact.
KINDS: Dict[bool, Type[Frames]] = {False: Sampled, True: Counted}


def top(options: argparse.Namespace) -> None:
    """Shows frames until q, Ctrl-C, or until the time is over."""
    node = pick(options.node)
    kind = KINDS[options.exact]
    with Bpftrace(node, kind.program, **kind.words) as bpftrace, Interrupted() as interrupted, \
            Screen(options.rows, kind.help) as screen:
        frames = kind(node, options.sort, options.own)
        # The time starts with the first frame: bpftrace takes seconds to attach.
        end = None
        while not interrupted.happened.is_set() and (end is None or time.monotonic() < end):
            if end is None and options.seconds and frames.count:
                end = time.monotonic() + options.seconds
            ready, _, _ = select.select([bpftrace, *screen.keys()], [], [], 0.2)
            for line in bpftrace.lines() if bpftrace in ready else []:
                frames.take(line)
                if frames.due():
                    screen.show(frames.lines)
            if frames.due():
                screen.show(frames.lines)
            if not node.lives():
                raise Failure("node_gone", pid=node.pid, name=node.node)
            if frames.seconds > PATIENCE and not frames.seen:
                raise untraced(node, PATIENCE)
            if len(ready) > (bpftrace in ready):
                key = screen.key()
                if key == "q":
                    break
                frames.press(key)
