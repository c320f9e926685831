"""The crash dump of a node: why the VM says that it ended.

The VM writes it as it ends, so its folder is opened before. The node's user controls the file.
"""
import contextlib
import os
import re
import time

from dyntrace_command.common.contents import hide
from dyntrace_command.host.files import closing
from dyntrace_command.host.sandbox import Answer, isolated
from dyntrace_command.host.trees import entry_of, mount_of
from dyntrace_command.node.container import Container
from dyntrace_command.node.node import Node

# The slogan is the third line.
READ_MOST, SLOGAN_MOST = 8192, 300
SLOGAN = re.compile(rb"=erl_crash_dump:.*?\nSlogan: ([^\n]*)", re.S)


class CrashDump:
    """The file that a node will write if it crashes."""

    def __init__(self, node: Node) -> None:
        self.since = time.time()
        self.folder, self.name = -1, ""
        with contextlib.suppress(OSError, ValueError, TypeError):
            answer = isolated(node.process, lambda: opened(node.inside))
            self.folder, self.name = answer.descriptors[0], str(answer.value)

    def slogan(self) -> str:
        """Returns the reason in the dump, without contents; empty if the node has written none."""
        with contextlib.suppress(OSError, ValueError):
            entry = entry_of(self.folder, mount_of(self.folder), self.name)
            if entry is None or entry.descriptor == -1:
                return ""
            with closing(entry.descriptor):
                if entry.status and entry.is_file() and entry.status.st_mtime >= self.since:
                    found = SLOGAN.match(entry.read(READ_MOST))
                    return hide(found.group(1).decode("utf-8", "replace").strip())[:SLOGAN_MOST] if found else ""
        return ""

    def close(self) -> None:
        """Closes its folder."""
        if self.folder != -1:
            os.close(self.folder)
            self.folder = -1


def opened(inside: Container) -> Answer:
    """Returns the name of the file, and a descriptor of its folder. Runs in a child."""
    named = inside.environment().get("ERL_CRASH_DUMP") or "erl_crash.dump"
    folder, name = os.path.split(os.path.join(os.readlink(f"{inside.dir}/cwd"), named))
    return Answer(name, [inside.open(folder)])
