"""The servers whose replies processes await, read from the stacks of the callers.

A process waits for a reply in gen:do_call/4. If it waits with a timeout, the frame of that function has the server's
pid. The frame of its caller, gen_server:call/3, has the server as the call named it, by a pid or a registered name. It
has the request, too, so a word counts only if it is the only pid or registered name in that frame.
"""
import collections
import re
from typing import Counter, Dict, List, Optional, Tuple

from dyntrace_command.node.jit_code import JitCode
from dyntrace_command.node.vm_memory import VmMemory
from dyntrace_command.node.vm_structures import ATOM_TAG, PID_TAG, VmStructures

WAITS, CALLS = re.compile(r"gen:do_call/\d+"), re.compile(r"gen_(server|statem):call\w*/\d+")
# Bounds: words of both frames; words that may name the server; distinct servers that are counted in a group.
WORDS_MOST, NAMED_MOST, SERVERS_MOST = 64, 8, 1000

# Words of which one may name a server: its pid, or its registered name.
Named = Tuple[int, ...]


class CalledServers:
    """The servers that the processes of a VM call, by their pids as words of the VM."""

    def __init__(self, memory: VmMemory, code: JitCode, structures: VmStructures) -> None:
        self.memory, self.code, self.structures = memory, code, structures
        self.low, self.high = code.bounds()
        # The functions at addresses of code.
        self.functions: Dict[int, str] = {0: ""}
        # The pids and names of registered processes.
        self.pids: Dict[int, int] = {}
        self.names: Dict[int, int] = {}

    def register(self, pid: int, name: int) -> None:
        """Adds a registered process."""
        self.pids[name], self.names[pid] = pid, name

    def named(self, stop: int, hend: int, resume: int) -> Named:
        """Returns the words of a stack that may name the server, if its process waits for a reply; raises ValueError if
        the stack can't be read."""
        if not WAITS.fullmatch(self.function(resume)):
            return ()
        frames: List[List[int]] = [[], []]
        at = 0
        for word in self.memory.words(stop, min((hend - stop) // 8, WORDS_MOST)):
            if not (self.low <= word < self.high and not word & 3):
                frames[at].append(word)
            elif at == 0 and CALLS.fullmatch(self.function(word, 1)):
                at = 1
            else:
                break
        pids = [word for word in frames[0] if word & 15 == PID_TAG]
        return tuple(pids[:1] or {word: None for word in frames[1] if word & 15 == PID_TAG
                                  or word & 63 == ATOM_TAG})[:NAMED_MOST]

    def function(self, address: int, before: int = 0) -> str:
        """Returns the function at an address; for a return address, pass 1 for `before`."""
        if address not in self.functions:
            where = self.code.locate(address - before)
            self.functions[address] = where.name if where else ""
        return self.functions[address]

    def add(self, of: "Counter[Named]", words: Named) -> None:
        """Counts a process whose stack has these words."""
        if words and (words in of or len(of) < SERVERS_MOST):
            of[words] += 1

    def most_called(self, of: "Counter[Named]", most: int) -> List[Tuple[str, Optional[str], int]]:
        """Returns the servers that were counted most often: the pid and the name of each, and how often."""
        found: Counter[int] = collections.Counter()
        for words, times in of.items():
            pids = {word if word & 15 == PID_TAG else self.pids.get(word, 0) for word in words} - {0}
            if len(pids) == 1:
                found[pids.pop()] += times
        return [(self.structures.pid(pid), self.structures.atom(self.names[pid]) if pid in self.names else None, times)
                for pid, times in found.most_common(most)]
