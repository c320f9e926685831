"""The threads of a VM, by the C library's structures: glibc and musl have a structure for each thread, whose address is
the thread's identity (`pthread_self`)."""
import re
from typing import Container as Numbers
from typing import Dict, NamedTuple, Tuple

from dyntrace_command.node.container import THREADS_MOST, Container
from dyntrace_command.node.vm_memory import VmMemory


class ThreadLayout(NamedTuple):
    """Offsets in a C library's structure of a thread: the thread's number; words with the structure's own address; and
    a circular list of threads, with the offset at which its pointers lead into the next and the previous structure, if
    it is needed to recognize the structure."""
    number: int
    own: Tuple[int, ...] = ()
    next: int = 0
    previous: int = 0
    linked: int = 0


# glibc on x86-64 and arm64; musl since 1.2 on x86-64 and arm64.
THREAD_LAYOUTS = (
    ThreadLayout(720, own=(0, 16)),
    ThreadLayout(208, next=192, previous=200, linked=192),
    ThreadLayout(48, own=(0,), next=24, previous=16),
    ThreadLayout(32, own=(0,), next=16, previous=8),
)


def thread_number(memory: VmMemory, thread: int, known: Numbers[int]) -> int:
    """Returns the number that a thread has in its own PID namespace, one of the known numbers; 0 if this is not the
    structure of a thread."""
    numbers = (number_in(memory, thread, layout) for layout in THREAD_LAYOUTS)
    return next((number for number in numbers if number in known), 0) if thread % 8 == 0 else 0


def number_in(memory: VmMemory, thread: int, layout: ThreadLayout) -> int:
    """Returns the number in a structure of a thread; 0 if it has another layout."""
    if not memory.is_mapped(thread, layout.number + 8):
        return 0
    words = memory.words(thread, layout.number // 8 + 1)
    node, following, previous = thread + layout.linked, words[layout.next // 8], words[layout.previous // 8]
    if any(words[at // 8] != thread for at in layout.own) \
            or layout.next and not (leads_to(memory, following - layout.linked + layout.previous, node)
                                    and leads_to(memory, previous - layout.linked + layout.next, node)):
        return 0
    return words[layout.number // 8] & 0xffffffff


def leads_to(memory: VmMemory, address: int, to: int) -> bool:
    """Returns whether there is a pointer at `address` to `to`."""
    return address % 8 == 0 and memory.is_mapped(address) and memory.words(address, 1)[0] == to


def threads(inside: Container) -> Dict[int, int]:
    """Returns {number of a thread in its own PID namespace: the number here} of the VM's schedulers."""
    found: Dict[int, int] = {}
    for name in inside.task_names()[:THREADS_MOST]:
        status = inside.text(f"task/{name}/status")
        own = re.search(r"^NSpid:.*\b(\d+)$", status, re.M)
        found[int(own.group(1)) if own else int(name)] = int(name)
    return found
