"""Memory images of VMs, valid and hostile: the list of code, the tables of processes and atoms, schedulers, stacks."""
import os
import random
import struct
import tempfile
import time
import unittest
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

from dyntrace_command.node import jit_code, stack_snapshot
from dyntrace_command.node.c_threads import THREAD_LAYOUTS, ThreadLayout
from dyntrace_command.node.container import Mapping
from dyntrace_command.node.jit_code import JitCode, Location
from dyntrace_command.node.stack_snapshot import Snapshot
from dyntrace_command.node.vm_memory import VmMemory
from dyntrace_command.node.vm_structures import PROCESS_LAYOUTS, ProcessLayout

# CPU time in seconds that no image may take.
SECONDS_MOST = 10

DATA, CODE, HEAP, TABLE, SIZE = 0x100000, 0x200000, 0x300000, 0x400000, 0x40000
NORMAL_EXIT = CODE + 0x10
SLOTS = 1024
Module = Tuple[int, List[Tuple[int, int, str, List[Tuple[int, int, str]]]]]


class Image(VmMemory):
    """The memory of a VM: parts of a file without holes."""

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self.file = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        os.truncate(self.file.fileno(), TABLE + SIZE)
        self.descriptor = self.file.fileno()
        self.refreshes, self.start, self.end = 0, 0, 0
        self.mapped = [Mapping(DATA, DATA + 0x2000, "rw-p", 0, "0:0", 1, "/bin/beam.smp"),
                       Mapping(CODE, CODE + SIZE, "r-xs", 0, "0:0", 2, "/memfd:vmem (deleted)"),
                       Mapping(HEAP, HEAP + SIZE, "rw-p", 0, "0:0", 0, ""),
                       Mapping(TABLE, TABLE + SIZE, "rw-p", 0, "0:0", 0, "")]
        self.starts = [part.start for part in self.mapped]
        self.inside = mock.Mock()
        self.inside.task_names.return_value = ["77"]
        self.inside.text.side_effect = {"task/77/status": "NSpid:\t77\t5\n", "task/77/stat": "77 (a) b) S 1",
                                        "task/77/wchan": "do_epoll_wait"}.__getitem__
        # The next free address of the heap.
        self.free = HEAP + 64
        self.entries: List[int] = []
        self.add_entry(struct.pack("<IIiIQ", 0, 0, 1, 0, NORMAL_EXIT))

    def refresh(self) -> None:
        pass

    def write(self, address: int, data: bytes) -> None:
        """Changes the memory."""
        os.pwrite(self.descriptor, data, address)

    def add(self, data: bytes) -> int:
        """Puts data on the heap, at a multiple of 64."""
        at, self.free = self.free, (self.free + len(data) + 127) // 64 * 64
        self.write(at, data)
        return at

    def add_words(self, *words: int) -> int:
        """Puts words on the heap."""
        return self.add(struct.pack(f"<{len(words)}Q", *words))

    def add_entry(self, symbols: bytes, size: Optional[int] = None) -> int:
        """Adds an entry to the list of code, in front."""
        first = self.entries[-1] if self.entries else 0
        at = self.add_words(first, 0, self.add(symbols), len(symbols) if size is None else size)
        self.entries.append(at)
        self.write(DATA + 64, struct.pack("<IIQQ", 1, 1, at, at))
        return at

    def add_module(self, base: int, size: int, functions: Dict[str, Tuple[int, int]], file: str = "shop.erl") -> int:
        """Adds a module with functions, each with two lines: its start's, and one more from 8 bytes later on."""
        return self.add_entry(symbols_of(base, size, functions, file))

    def add_process(self, slot: int, word: int, stack: List[int], layout: ProcessLayout = PROCESS_LAYOUTS[0],
                    **fields: int) -> int:
        """Adds a process, by default of OTP 25, that waits in the function at CODE + 0x104."""
        words = [0] * 90
        heap = self.add_words(*[0] * 8, *stack, NORMAL_EXIT)
        hend = heap + 8 * (9 + len(stack))
        values = {0: word, layout.htop: heap, layout.stop: heap + 64, layout.heap: heap, layout.heap + 8: hend,
                  layout.size: 9 + len(stack), layout.resume: CODE + 0x104, layout.initial: atom(2),
                  layout.initial + 8: atom(3), layout.initial + 16: 2,
                  **{getattr(layout, name): value for name, value in fields.items()}}
        for offset, value in values.items():
            words[offset // 8] = value
        at = self.add_words(*words)
        self.write(TABLE + 8 * slot, struct.pack("<Q", at))
        return at

    def add_tables(self, *names: str) -> None:
        """Adds the tables of processes and atoms."""
        self.write(DATA + 1024, struct.pack("<QQII", TABLE, TABLE + SIZE // 2, SLOTS, SLOTS - 1))
        atoms = [self.add(struct.pack("<QQi4xhhiQ", 0, 0, index, len(name), 0, 0, self.add(name.encode())))
                 for index, name in enumerate(("false", "true", *names))]
        segments = self.add_words(self.add_words(*atoms))
        self.write(DATA + 2048, struct.pack("<iiiiQ", 0, 1024, 1 << 20, 300, segments))

    def add_thread(self, layout: ThreadLayout) -> int:
        """Adds a thread with the number 5, in a list with another one."""
        thread, other = self.add(bytes(1024)), self.add(bytes(1024))
        for one, another, number in ((thread, other, 5), (other, thread, 99)):
            for at in layout.own:
                self.write(one + at, struct.pack("<Q", one))
            for at in (layout.next, layout.previous) if layout.next else ():
                self.write(one + at, struct.pack("<Q", another + layout.linked))
            self.write(one + layout.number, struct.pack("<I", number))
        return thread

    def add_scheduler(self, process: int, layout: ThreadLayout = THREAD_LAYOUTS[0]) -> None:
        """Adds the only scheduler."""
        thread = self.add_thread(layout)
        registers = self.add(bytes(128)) + 64
        scheduler = self.add(bytes(256))
        queue = self.add(bytes(256))
        for at, value in ((0, registers), (32, thread), (168, process), (176, 0), (184, 1), (232, queue)):
            self.write(scheduler + at, struct.pack("<Q", value))
        self.write(queue + 144, struct.pack("<Q", scheduler))
        self.write(queue + 208, struct.pack("<i", 6))
        self.write(DATA + 4096, struct.pack("<Q", scheduler))


def symbols_of(base: int, size: int, functions: Dict[str, Tuple[int, int]], file: str = "shop.erl") -> bytes:
    """The symbols of a module."""
    text = struct.pack("<IIQIIH", 1, 0, base, len(functions), size, 5) + b"shop\0" + bytes(6)
    for name, (start, end) in functions.items():
        encoded = name.encode() + b"\0"
        text += struct.pack("<IIIH", start, end, 2, len(encoded)) + encoded + bytes(2)
        for at, line in ((start, 10), (start + 8, 11)):
            text += struct.pack("<IIH", at, line, len(file) + 1) + file.encode() + b"\0" + bytes(2)
    return text


def atom(index: int) -> int:
    """The word of an atom."""
    return index << 6 | 0xb


FUNCTIONS = {"shop:pay/1": (0, 64), "'Elixir.Shop.Cart':add/2-CodeInfoPrologue": (64, 128)}


class Codes(unittest.TestCase):
    """The list of code."""

    def setUp(self) -> None:
        self.image = Image()
        self.began = time.process_time()

    def tearDown(self) -> None:
        self.image.file.close()
        self.assertLess(time.process_time() - self.began, SECONDS_MOST)

    def located(self, address: int) -> Optional[Location]:
        """What is at an address."""
        return JitCode(self.image).locate(address)

    def test_names(self) -> None:
        """Functions with their lines; Elixir's spelling; shared code; nothing outside of functions."""
        self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        self.image.add_module(CODE + 0x400, 0x40, {"global::call_nif_shared": (0, 32), "shop::codeHeader": (32, 64)})
        code = JitCode(self.image)
        self.assertEqual((NORMAL_EXIT, True), (code.normal_exit, code.has_frame_pointers))
        for address, expected in ((0x100, Location("erlang", "shop:pay/1", "shop.erl", 10)),
                                  (0x107, Location("erlang", "shop:pay/1", "shop.erl", 10)),
                                  (0x13f, Location("erlang", "shop:pay/1", "shop.erl", 11)),
                                  (0x140, Location("erlang", "Shop.Cart.add/2", "shop.erl", 10)),
                                  (0x400, Location("fragment", "call_nif_shared")),
                                  (0x420, Location("fragment", "shop:codeHeader")),
                                  (0xff, None), (0x180, None), (0x200, None), (0x440, None)):
            with self.subTest(hex(address)):
                self.assertEqual(expected, code.locate(CODE + address))

    def test_newest(self) -> None:
        """An older module that overlaps a newer one has been unloaded."""
        self.image.add_module(CODE + 0x100, 0x200, {"shop:old/0": (0, 0x200)})
        self.image.add_module(CODE + 0x200, 0x200, {"shop:new/0": (0, 0x200)})
        code = JitCode(self.image)
        self.assertEqual("shop:new/0", (code.locate(CODE + 0x210) or Location("", "")).name)
        self.assertIsNone(code.locate(CODE + 0x110))

    def test_escapes(self) -> None:
        """Names can't change the terminal."""
        self.image.add_module(CODE + 0x100, 0x100, {"a:'\x1b[2J'/0": (0, 64)}, "\x1b]0;x")
        self.assertEqual(Location("erlang", "a:'\\x1b[2J'/0", "\\x1b]0;x", 10), self.located(CODE + 0x100))

    def test_circle(self) -> None:
        """A list that is a circle ends, and what was read before counts."""
        entry = self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        self.image.write(self.image.entries[0], struct.pack("<Q", entry))
        self.assertEqual("shop:pay/1", (self.located(CODE + 0x100) or Location("", "")).name)

    def test_long_list(self) -> None:
        """A list has at most a number of entries."""
        with mock.patch.object(jit_code, "ENTRIES_MOST", 3):
            for at in range(5):
                self.image.add_module(CODE + 0x1000 * (at + 1), 0x100, FUNCTIONS)
            with self.assertRaisesRegex(ValueError, "can't be read"):
                JitCode(self.image)

    def test_absurd_entries(self) -> None:
        """Sizes of 4 GB, modules outside of code, symbols that end early, pointers to nowhere."""
        symbols = symbols_of(CODE + 0x100, 0x100, FUNCTIONS)
        for made, size in ((symbols, 1 << 32), (symbols, 1 << 62), (symbols_of(HEAP, 0x100, FUNCTIONS), None),
                           (symbols_of(CODE + SIZE - 8, 0x100, FUNCTIONS), None), (symbols[:20], None),
                           (struct.pack("<I", 7) + symbols[4:], None)):
            image = Image()
            image.add_entry(made, size)
            with self.subTest(size), self.assertRaises(ValueError):
                JitCode(image)
            image.file.close()

    def test_absurd_ranges(self) -> None:
        """A module with impossible numbers has no functions; the others have theirs."""
        symbols = symbols_of(CODE + 0x100, 0x100, FUNCTIONS)
        for at, value in ((16, 0xffffffff), (24, 0xffff), (37 + 4, 0xffffffff), (37 + 8, 0xffffffff),
                          (37 + 12, 0xffff)):
            image = Image()
            image.add_module(CODE + 0x1000, 0x100, {"shop:right/0": (0, 64)})
            image.add_entry(symbols[:at] + struct.pack("<I", value)[:2 if value == 0xffff else 4]
                            + symbols[at + (2 if value == 0xffff else 4):])
            code = JitCode(image)
            self.assertEqual([None, "shop:right/0"],
                             [where and where.name for where in map(code.locate, (CODE + 0x100, CODE + 0x1000))])
            image.file.close()

    def test_overlapping_ranges(self) -> None:
        """Of two functions that overlap, the first one counts."""
        self.image.add_module(CODE + 0x100, 0x100, {"a:a/0": (0, 64), "b:b/0": (32, 128), "c:c/0": (64, 96)})
        code = JitCode(self.image)
        self.assertEqual(["a:a/0", None, None],
                         [where and where.name for where in (code.locate(CODE + at) for at in (0x120, 0x150, 0x170))])

    def test_changing(self) -> None:
        """A list that changes at each read is read a bounded number of times; that it is inconsistent does no harm."""
        self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        read, count = self.image.read, [0]

        def changing(address: int, size: int) -> bytes:
            if address == DATA + 64:
                count[0] += 1
                self.image.write(DATA + 64, struct.pack("<IIQ", 1, count[0] % 3, count[0]))
            return read(address, size)
        with mock.patch.object(self.image, "read", changing):
            self.assertEqual("shop:pay/1", (self.located(CODE + 0x100) or Location("", "")).name)
        self.assertEqual(1 + 2 * jit_code.ATTEMPTS, count[0])

    def test_garbled(self) -> None:
        """Any bytes in the list: names or ValueError."""
        chance = random.Random(1)
        self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        for _ in range(300):
            at = chance.randrange(HEAP, self.image.free)
            self.image.write(at, bytes(chance.choice(b"\0\1\x7f\xff") for _ in range(chance.choice((1, 4, 8)))))
            try:
                code = JitCode(self.image)
            except ValueError:
                self.image.file.close()
                self.image = Image()
                self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
                continue
            for address in range(CODE, CODE + 0x300, 0x11):
                code.locate(address)

    def test_several(self) -> None:
        """Two lists, or none, are not guessed."""
        self.image.write(DATA + 512, self.image.read(DATA + 64, 24))
        with self.assertRaisesRegex(ValueError, "was not found"):
            JitCode(self.image)
        self.image.write(DATA, bytes(1024))
        with self.assertRaisesRegex(ValueError, "was not found"):
            JitCode(self.image)

    def test_no_jit(self) -> None:
        """A VM without JIT."""
        del self.image.mapped[1]
        with self.assertRaisesRegex(ValueError, "the VM has no JIT"):
            JitCode(self.image)


class Dumps(unittest.TestCase):
    """Snapshots of processes."""

    def setUp(self) -> None:
        self.image = Image()
        self.image.add_module(CODE + 0x100, 0x100, FUNCTIONS)
        self.image.add_tables("shop", "init", "till")

    def tearDown(self) -> None:
        self.image.file.close()

    def taken(self, wanted: str = "") -> Dict[str, Any]:
        """The snapshot, with the names of frames."""
        with mock.patch.object(stack_snapshot, "VmMemory", lambda inside: self.image):
            found = Snapshot(self.image.inside, wanted).take()
        for one in [*found["groups"], *found["schedulers"]]:
            one["frames"] = [(*found["frames"][number], times) for number, times in one["frames"]]
        return found

    def test_groups(self) -> None:
        """Equal stacks are one group; repeated frames are counted; names and queues."""
        stack = [0x3b, CODE + 0x141, CODE + 0x10c, CODE + 0x10c, CODE + 0x150]
        self.image.add_process(1, 0x13, stack)
        process = self.image.add_process(2, 0x23, stack)
        registered = self.image.add_words(0, 0, process, 0, atom(4))
        self.image.write(process + PROCESS_LAYOUTS[0].registered, struct.pack("<Q", registered))
        self.image.write(process + PROCESS_LAYOUTS[0].lengths[0], struct.pack("<Q", 3))
        found = self.taken()
        group, = found["groups"]
        self.assertEqual((2, 3, 3, ["till"], ["<0.1.0>", "<0.2.0>"], "waiting", True),
                         tuple(group[key] for key in ("count", "queue", "longest", "names", "pids", "status",
                                                      "consistent")))
        # The second word is not a return address: its lowest bits are not 0.
        self.assertEqual([("shop:pay/1", "shop.erl", 10, 1), ("shop:pay/1", "shop.erl", 11, 2),
                          ("Shop.Cart.add/2", "shop.erl", 11, 1)], group["frames"])
        self.assertEqual(1, self.taken("till")["processes"])
        self.assertEqual(1, self.taken("<0.1.0>")["processes"])
        self.assertEqual(0, self.taken("no_such_process")["processes"])

    def test_schedulers(self) -> None:
        """Which process a scheduler runs, how long its run queue is, and in which kernel function its thread waits."""
        self.image.add_scheduler(self.image.add_process(1, 0x13, [CODE + 0x10c], state=1 << 15))
        scheduler, = self.taken()["schedulers"]
        self.assertEqual(("scheduler", 1, 6, "<0.1.0>", "S", "do_epoll_wait", True),
                         tuple(scheduler[key] for key in ("kind", "number", "queue", "process", "state", "waits_in",
                                                          "stays")))
        self.assertEqual([("shop:pay/1", "shop.erl", 11, 1)], scheduler["frames"])

    def test_hostile_processes(self) -> None:
        """Stacks outside of heaps, heaps of 4 GB, names without an end: the other processes are shown."""
        for slot in range(1, 61):
            self.image.add_process(slot, slot << 4 | 3, [CODE + 0x10c])
        self.image.add_process(71, 0x473, [CODE + 0x10c], stop=8)
        self.image.add_process(72, 0x483, [CODE + 0x10c], size=1 << 29)
        self.image.write(TABLE + 8 * 73, struct.pack("<Q", 0xdead0000))
        self.image.write(TABLE + 8 * 74, struct.pack("<Q", 1 << 63))
        process = self.image.add_process(75, 0x4b3, [CODE + 0x10c])
        self.image.write(process + PROCESS_LAYOUTS[0].registered, struct.pack("<Q", self.image.add_words(
            0, 0, process, 0, atom(1 << 30))))
        found = self.taken()
        # Two have no valid stack, and two are not processes.
        self.assertEqual((63, 2, 2), (found["processes"], found["inconsistent"], found["unread"]))

    def test_changing(self) -> None:
        """A process that runs while it is read is marked."""
        process = self.image.add_process(1, 0x13, [CODE + 0x10c])
        self.image.add_process(2, 0x23, [CODE + 0x10c])
        read, count = self.image.read, [0]

        def changing(address: int, size: int) -> bytes:
            if address == process and size > 100:
                count[0] += 1
                self.image.write(process + PROCESS_LAYOUTS[0].reductions, struct.pack("<Q", count[0]))
            return read(address, size)
        with mock.patch.object(self.image, "read", changing):
            found = self.taken()
        self.assertEqual((2, 1), (found["processes"], found["inconsistent"]))

    def test_unknown_layout(self) -> None:
        """A release whose processes are not valid by any layout is not guessed."""
        self.image.add_process(1, 0x13, [CODE + 0x10c], heap=8)
        with self.assertRaisesRegex(ValueError, "unknown layout"):
            self.taken()

    def test_garbled(self) -> None:
        """Any bytes: a snapshot, or ValueError."""
        chance = random.Random(2)
        for _ in range(60):
            self.image.file.close()
            self.setUp()
            self.image.add_scheduler(self.image.add_process(1, 0x13, [CODE + 0x10c] * 20))
            self.image.add_process(2, 0x23, [CODE + 0x10c])
            for _ in range(10):
                at = chance.choice((chance.randrange(HEAP, self.image.free), DATA + chance.randrange(0x2000)))
                self.image.write(at, bytes(chance.choice(b"\0\1\x7f\xff") for _ in range(chance.choice((1, 4, 8)))))
            try:
                self.taken()
            except ValueError:
                pass

    def test_frame_pointers(self) -> None:
        """A frame pointer, an address in the same stack, is not a return address, even if it is between two parts of
        the code."""
        self.image.mapped.append(Mapping(TABLE + SIZE, TABLE + 2 * SIZE, "r-xs", 0, "0:0", 2, "/memfd:vmem (deleted)"))
        process = self.image.add_process(1, 0x13, [CODE + 0x10c, 0, 0, CODE + 0x150])
        stop, = struct.unpack("<Q", self.image.read(process + PROCESS_LAYOUTS[0].stop, 8))
        self.image.write(stop + 8, struct.pack("<QQ", stop + 16, stop + 32))
        group, = self.taken()["groups"]
        self.assertEqual(["shop:pay/1", "shop:pay/1", "Shop.Cart.add/2"], [name for name, *_ in group["frames"]])
