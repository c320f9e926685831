"""Prints the stacks of a VM for arm64 in user-mode emulation, as JSON: emulated.py PID

The memory of the VM is at the same addresses in the emulator, which protects pages whose code it has translated, and
makes others executable only when the VM does. So this program joins the parts of the VM's memory for code, which are
those around executable ones; all else is read as from any VM.
"""
import json
import sys
from typing import Any, Dict, List

from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import isolated
from dyntrace_command.node.container import Container, Mapping
from dyntrace_command.node.stack_snapshot import Snapshot
from dyntrace_command.node.vm_memory import is_jit_memory


class Emulated(Container):
    """A VM in an emulator."""

    def mappings(self) -> List[Mapping]:
        found: List[Mapping] = []
        for part in super().mappings():
            last = found[-1] if found else part
            if last.end == part.start and not last.path + part.path and (is_jit_memory(last) or is_jit_memory(part)) \
                    and last.permissions[0] == part.permissions[0] == "r":
                found[-1] = last._replace(end=part.end, permissions="rwxp")
            else:
                found.append(part)
        return found


def taken(pid: int) -> Dict[str, Any]:
    """Returns a snapshot, in a child."""
    snapshot = Snapshot(Emulated(Process(pid)))
    found = snapshot.take()
    for one in [*found["groups"], *found["schedulers"]]:
        one["frames"] = [[*found["frames"][number], times] for number, times in one["frames"]]
    return {**found, "modules": len(snapshot.code.modules)}


print(json.dumps(isolated(Process(int(sys.argv[1])), lambda: taken(int(sys.argv[1])), 120, 64 << 20).value, indent=1))
