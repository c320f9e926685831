"""The bpftrace program that samples the threads of a VM with their Erlang stacks, from the VM's own memory."""
import os
from typing import Dict, Optional, Tuple

from dyntrace_command.host.tools import tool, tool_version
from dyntrace_command.node.code import VmLayout
from dyntrace_command.node.node import ARM64, X86_64
from dyntrace_command.node.vm_structures import CURRENT_AT, PORT_AT, PROCESS_LAYOUTS, SLEEP_AT, TYPE_AT

# bpftrace has a stack mode without symbol lookup from this version on.
RAW_SINCE = (0, 21)
# Words of a stack that a sample reads, and how many of them are the innermost ones. From RAW_SINCE on, the kernel
# rejects the code that bpftrace generates for more words as too complex; that for frames with pointers is longer.
OLD_WORDS, NEW_WORDS, POINTED_WORDS = (1024, 896), (256, 192), (160, 120)
# C frames that bpftrace keeps.
FRAMES_MOST = 64
# The part of the program that knows the machine's registers.
REGISTERS = {X86_64: "samples_x86_64", ARM64: "samples_arm64"}
# Bytes of a thread's stack in an arm64 kernel, unless its pages are larger.
KERNEL_STACK = 16384


def program(layout: Optional[VmLayout], names: str, machine: int) -> Tuple[str, Dict[str, str]]:
    """Returns the program for a machine, as ELF numbers it, and the values of its placeholders; `names` is the part
    that receives names. Without a VM, samples have no processes."""
    is_new = tool_version(tool("bpftrace")) >= RAW_SINCE
    has_pointers = layout.has_pointers if layout else 0
    words, inner = OLD_WORDS if not is_new else POINTED_WORDS if has_pointers else NEW_WORDS
    schedulers = layout.schedulers if layout else [(0, 0)]
    return f"{names}+{REGISTERS.get(machine, REGISTERS[X86_64])}+stack_samples+sample_counts", {
        "SCHEDULERS": " ".join(f"@schedulers[(uint64){thread}] = (uint64){at};" for thread, at in schedulers),
        "CURRENT": str(CURRENT_AT), "SLEEP": str(SLEEP_AT), "PORT": str(PORT_AT), "KIND": str(TYPE_AT),
        "HEAP": str(layout.heap if layout else 0), "CALLED": str(layout.current if layout else 0),
        "POINTERS": str(has_pointers),
        "STOP": str(PROCESS_LAYOUTS[0].stop), "WORDS": str(words),
        "INNER": str(inner), "FIRST": str(layout.first if layout else 1), "LAST": str(layout.last if layout else 1),
        "SPAN": str(layout.last - layout.first if layout else 0), "MODE": "raw" if is_new else "perf",
        "FRAMES": str(FRAMES_MOST), "KERNEL_STACK": str(max(KERNEL_STACK, os.sysconf("SC_PAGESIZE")))}
