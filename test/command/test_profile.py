"""Profiles without a node: the map of Erlang's code, functions of libraries, samples as paths, tables and files."""
import collections
import json
import random
import struct
import time
import unittest
from typing import Counter, Dict, Optional, Sequence, Tuple

from dyntrace_command.common.outputs import PROFILE_FILES
from dyntrace_command.host.perf_map import COVERED_MOST, names_of
from dyntrace_command.host.symbols import Functions
from dyntrace_command.node.code import JIT, Place
from dyntrace_command.node.status import Status
from dyntrace_command.profiling.profile_files import WRITERS, Taken, folded, page, speedscope, tree
from dyntrace_command.profiling.profile_tables import hottest, tables
from dyntrace_command.profiling.sample_paths import TRACING, UNKNOWN, Path, Sample, Samples, path_of, sample_of
from dyntrace_command.tracers.bpftrace import Names
from dyntrace_command.tracers.current_process import SAVED_MOST, Layout, parsed, usable

# CPU time in seconds. Resolving each address of each line would take hours.
SECONDS_MOST = 30


class Maps(unittest.TestCase):
    """For any map, the names of some addresses are found in bounded time."""

    def test_names(self) -> None:
        """A line has three fields; a later line overrides an earlier one."""
        found = names_of(b"0x1000 10 $lists:sort/1\n2000 20 $shop:pay/2\n2010 8 $shop:new/1\n", [0xfff, 0x1000, 0x100f,
                                                                                              0x1010, 0x2008, 0x2010])
        self.assertEqual({0x1000: (True, "lists:sort/1"), 0x100f: (True, "lists:sort/1"), 0x2008: (True, "shop:pay/2"),
                          0x2010: (True, "shop:new/1")}, found)

    def test_spelling(self) -> None:
        """Elixir's spelling; parts of functions; code outside of functions; control characters."""
        for name, spelled in (("$'Elixir.Shop.Cart':init/1", (True, "Shop.Cart.init/1")),
                              ("$lists:sort/1-CodeInfoPrologue", (True, "lists:sort/1")),
                              ("$global::call_nif_shared", (False, "call_nif_shared [code of the VM]")),
                              ("$lists::codeFooter", (False, "lists:")),
                              ("$a:'\x1b[2J'/0", (True, "a:'\\x1b[2J'/0"))):
            with self.subTest(name):
                self.assertEqual({1: spelled}, names_of(f"1 1 {name}\n".encode(), [1]))

    def test_absurd_lines(self) -> None:
        """Absurd lines are skipped, and the others count."""
        lines = (b"", b"x 10 a", b"1000 0 a", b"1000 ffffffff a", b"ffffffffffffffff 10 a", b"1000 -1 a", b"1000 10",
                 b"1000 10 ", b"10000000000000000 10 a", b"\0" * 100, b"1000 10 " + b"n" * 5000)
        self.assertEqual({0x1000: (True, "kept")}, names_of(b"\n".join((*lines, b"1000 10 kept", *lines)), [0x1000]))

    def test_garbled(self) -> None:
        """Any bytes."""
        chance = random.Random(1)
        for _ in range(200):
            names_of(bytes(chance.choice(b"0123456789abcdef x\n\r\xff$") for _ in range(300)), range(0, 4096, 7))

    def test_time(self) -> None:
        """Reading ends in time, also if all lines cover all addresses, or if a long text has no lines."""
        began = time.process_time()
        names_of(b"0 1000000 a\n" * 200000, range(COVERED_MOST // 1000))
        names_of(b"1" * 20000000, [1])
        self.assertLess(time.process_time() - began, SECONDS_MOST)


def library(symbols: Sequence[Tuple[str, int, int]], table: bytes = b".dynsym") -> bytes:
    """An ELF file whose code is at memory address 0x2000 and file offset 0x1000, with these (name, address, size)."""
    names, entries = b"\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, address, size in symbols:
        entries += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, address, size)
        names += name.encode() + b"\0"
    texts = b".strtab" if table == b".symtab" else b".dynstr"
    sections = b"\0.shstrtab\0" + table + b"\0" + texts + b"\0"
    parts = [(1, sections), (11, entries), (12 + len(table), names)]
    header, rows = bytearray(64), struct.pack("<IIQQQQ24x", 0, 0, 0, 0, 0, 0)
    body = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x2000, 0, 0x1000, 0x1000, 0)
    for part in parts:
        rows += struct.pack("<IIQQQQ24x", part[0], 0, 0, 0, 64 + len(body), len(part[1]))
        body += part[1]
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<QQ", header, 0x20, 64, 64 + len(body))
    struct.pack_into("<HHHHH", header, 0x36, 56, 1, 64, len(parts) + 1, 1)
    return bytes(header) + body + rows


def overlapping(elf: bytes) -> bytes:
    """The same file, with each byte loaded 256 times."""
    copied = bytearray(elf + elf[64:64 + 56] * 256)
    struct.pack_into("<Q", copied, 0x20, len(elf))
    struct.pack_into("<H", copied, 0x38, 256)
    return bytes(copied)


GC = [("erts_init_gc", 0x2000, 0x10), ("erts_garbage_collect", 0x2100, 0x10), ("erts_schedule", 0x2200, 0x10),
      ("_Z19beam_jit_call_bif_xP7process", 0x2300, 8)]


class Libraries(unittest.TestCase):
    """Functions by their offset in a file."""

    def test_functions(self) -> None:
        """In a stripped file and in one that is not stripped."""
        for table in (b".dynsym", b".symtab"):
            functions = Functions(library(GC, table), 100)
            self.assertEqual(("erts_schedule", None), functions.at(0x1205))
            self.assertEqual(("beam_jit_call_bif_x", None), (functions.at(0x1300).name, functions.at(0x1300).part))

    def test_saved(self) -> None:
        """Only a saved stack that is complete, or too deep, is used: the one that was saved before the sample."""
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "lists:sort/1 (last saved)", "md5 [beam.smp]"),
                         path([4], saved=[1, 2, 3]))
        self.assertEqual(("<0.9.0> till", "lists:sort/1", "shop:pay/1"), path([2, 1, 3], saved=[1, 2, 3]))
        self.assertEqual(SAVED_MOST + 2, len(path([4], saved=[2] * SAVED_MOST)))
        for stack in ([1, 2], [1, 99, 3], [1, 4, 3], [99], [1, 5, 3]):
            with self.subTest(stack):
                self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", "md5 [beam.smp]"), path([4], saved=stack))

    def test_parts(self) -> None:
        """A static function between two of the collector's is part of the collector; one at its edge may not be."""
        functions = Functions(library(GC), 100)
        self.assertEqual([("erts_init_gc", "garbage collection"), (None, "garbage collection"), (None, None),
                          (None, None)],
                         [tuple(functions.at(at)) for at in (0x1008, 0x1050, 0x1150, 0x1400)])
        self.assertEqual((None, None), tuple(functions.at(0)))

    def test_hostile(self) -> None:
        """Each byte and each word is replaced by extreme values, and the file is truncated at each byte: functions or a
        ValueError."""
        elf = library(GC)
        for length in range(len(elf)):
            self.read(elf[:length])
        for width in (1, 4, 8):
            for at in range(5, len(elf) - width):
                for value in (b"\0", b"\x7f", b"\xff"):
                    self.read(elf[:at] + value * width + elf[at + width:])

    def test_many(self) -> None:
        """If all parts have the same addresses, a function belongs to one of them; too many symbols are an error."""
        self.assertEqual(len(GC), len(Functions(overlapping(library(GC)), 100)))
        with self.assertRaises(ValueError):
            Functions(library(GC), len(GC))

    def read(self, elf: bytes) -> None:
        """Reads the file. No other exception is raised."""
        try:
            Functions(elf, 100).at(0x1205)
        except ValueError:
            pass


PLACES: Dict[int, Place] = {
    1: Place("erlang", "lists:sort/1"), 2: Place("erlang", "shop:pay/1"),
    3: Place("erlang", "erts_beamasm:normal_exit/0"), 4: Place("c", "md5 [beam.smp]"), 5: JIT,
    6: Place("c", "static function [beam.smp]", "garbage collection"), 7: Place("tracer", "fire [dyntrace.so]"),
    8: Place("c", "erts_garbage_collect [beam.smp]", "garbage collection")}


def path(stack: Sequence[int], process: str = "<0.9.0>", kernel: Sequence[str] = (),
         thread: str = "erts_sched_1", saved: Sequence[int] = ()) -> Tuple[str, ...]:
    """The path of a sample."""
    names = Names()
    names.learn(["name", "<0.9.0>", "shop:init/1", "till"])
    found: Path = path_of(Sample(thread, process, "shop:loop/1", tuple(stack), tuple(kernel)), PLACES.get, names,
                          tuple(saved))
    return (found.root, *found.frames)


class Paths(unittest.TestCase):
    """Samples as paths."""

    def test_keys(self) -> None:
        """Keys as bpftrace 0.17 prints them, with addresses only, and escaped twice; other keys are ignored."""
        for line in ("\n\t7f01 0x7f01 ([unknown])\n\t7f02 0x7f02 ([unknown])\n", "\n7f01\n7f02\n", "\\n7f01\\n7f02\\n"):
            self.assertEqual(Sample("1_scheduler", "<0.9.0>", "a:'b,c'/1", (0x7f01, 0x7f02), ("do_it",)),
                             sample_of(f"1_scheduler,<0.9.0>,a:'b,c'/1,{line},\n\tffffffff81444bb4 do_it+12\n"))
        self.assertEqual(Sample("x", "-", "", (), ("do_it", "ffff")),
                         sample_of("x,-,,,\n\tffffffff81444bb4do_it+12\n\tffff\n"))
        self.assertEqual(Sample("x", "-", "", (), ()), sample_of("x,-,,,"))
        self.assertEqual(Sample("x,y", "", "", (), ()), sample_of("x,y,,,,"))
        self.assertIsNone(sample_of("nothing"))

    def test_hostile_keys(self) -> None:
        """The node's texts may look like stacks: the result is a sample or none, in bounded time."""
        began = time.process_time()
        for name in ("x,\nab", "x,\nab\x0bzz\n,", "x,\n \n", "x," + "\naaa" * 15, "," * 63, ",\n" * 31):
            for rest in (",\n\t7f00\n,\n\tffffffff81444bb4 do_it+12\n", "\n!,\n\t7f00\n,\n", ",,"):
                sample_of(f"s,-,{name}{rest}")
                sample_of(f"s,{name[:31]},{name}{rest}")
        self.assertLess(time.process_time() - began, 1)

    def test_erlang(self) -> None:
        """Complete stacks, also below C functions; kernel frames come last."""
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "lists:sort/1"), path([1, 2, 3]))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "lists:sort/1", "md5 [beam.smp]", "b [kernel]", "a [kernel]"),
                         path([4, 1, 2, 3], kernel=["a", "b"]))

    def test_without_frame_pointers(self) -> None:
        """Callers are not guessed: an incomplete chain, or one that leaves the code, is dropped."""
        for stack in ([4, 1, 2], [4], [4, 99, 1, 2, 3]):
            with self.subTest(stack):
                self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", "md5 [beam.smp]"), path(stack))
        self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", UNKNOWN), path([99]))
        self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", "[code of Erlang]"), path([5, 5]))

    def test_parts(self) -> None:
        """Static functions have the name of their part, once."""
        self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", "[garbage collection]"), path([6]))
        self.assertEqual(("<0.9.0> till", "shop:loop/1 (resumed)", "[garbage collection]",
                          "erts_garbage_collect [beam.smp]"), path([6, 8]))

    def test_outside(self) -> None:
        """Threads without a process, with old and new names, and the cost of tracing itself."""
        for thread, process, root in (("erts_sched_2", "-", "[schedulers: ports, scheduling, spinning]"),
                                      ("2_dirty_cpu_sch", "-", "[dirty CPU schedulers]"),
                                      ("10_dirty_cpu_sc", "-", "[dirty CPU schedulers]"),
                                      ("10_dirty_io_sch", "-", "[dirty I/O schedulers]"),
                                      ("erts_dcpus_1", "", "[dirty CPU schedulers; process unknown]"),
                                      ("0_poller", "", "[polling for I/O]"), ("a\x1bb", "", "[thread a\\x1bb]")):
            with self.subTest(thread):
                self.assertEqual((root, "md5 [beam.smp]"), path([4], process, thread=thread))
        self.assertEqual((TRACING, "fire [dyntrace.so]"), path([7]))
        # A process that can't be traced, and a node that traces nothing.
        for process in ("-", ""):
            self.assertEqual(("[schedulers: ports, scheduling, spinning; process unknown]", "shop:pay/1",
                              "lists:sort/1"), path([1, 2, 3], process))

    def test_lost(self) -> None:
        """Samples that the kernel has counted but not delivered are missing."""
        samples = Samples()
        samples.take([], {"stacks0": {"x,-,,,": 3, "nothing": 1}, "all0": {"samples": 5}})
        self.assertEqual(({0: 5}, {0: 2}), (samples.all, samples.missing()))


class Layouts(unittest.TestCase):
    """A node's description of its memory, and words of that memory."""

    TEXT = "856 168 96 4,5,6,7 36,37"

    def test_parsed(self) -> None:
        """Only numbers that can be offsets in a structure and bits of a word are accepted."""
        self.assertEqual(Layout(856, 168, 96, [4, 5, 6, 7], [36, 37]), parsed(self.TEXT))
        for wrong in ("", "856", self.TEXT + " 1", self.TEXT + ",64", "x" + self.TEXT, "99999 1 1 4 5", "-1 1 1 4 5",
                      "1 1 1 4; 5", "1 1 1 4 "):
            with self.subTest(wrong):
                self.assertIsNone(parsed(wrong))

    def test_usable(self) -> None:
        """A node is traced if its description is incomplete, and the command says why."""
        for text, what in ((self.TEXT, ""), (self.TEXT.replace("96", "0"), "its stacks have no frames"),
                           ("1 2", "its status does not say where its memory names the process that a thread runs")):
            with self.subTest(text):
                layout, why = usable(Status([("layout", text)]))
                self.assertEqual((what, what == ""), (why, layout is not None))
        self.assertIsNone(usable(Status())[0])

    def test_pids(self) -> None:
        """The bits of a number may be at any positions; the word 0 means no process."""
        layout = Layout(8, 8, 8, [7, 8, 4], [63])
        self.assertEqual(["<0.0.0>", "<0.1.0>", "<0.6.0>", "<0.5.1>", "-"],
                         [layout.pid(word) for word in (3, 0x83, 0x113, 0x8000000000000093, 0)])

    def test_samples(self) -> None:
        """Depending on its version, bpftrace prints words with or without a sign."""
        layout = Layout(8, 8, 8, [4, 5], [63])
        for process, saved in (("-9223372036854775757", "-2"), ("9223372036854775859", "18446744073709551614")):
            samples = Samples(layout)
            samples.take([], {"stacks0": {f"x,{process},{saved},\n7f01\n,": 1}})
            samples.take(["frame", "18446744073709551614", "0", "17"], {})
            samples.take(["frame", "18446744073709551614", "1", "18"], {})
            samples.take(["frame", "18446744073709551614", "3", "20"], {})
            self.assertEqual([Sample("x", "<0.3.1>", "", (0x7f01,), (), 2 ** 64 - 2)], list(samples.of))
            self.assertEqual((17, 18), samples.stack(2 ** 64 - 2))
        self.assertEqual(Sample("x", "-", "", (), ()), sample_of("x,0,0,,", layout))


FOUND: Counter[Path] = collections.Counter({
    Path("<0.9.0> till", "<0.9.0>", ("shop:pay/1", "lists:sort/1")): 60,
    Path("<0.9.0> till", "<0.9.0>", ("shop:pay/1", "a;b", "c [kernel]")): 30,
    Path("[polling for I/O]", "", ()): 10})

TAKEN = Taken("a title", 100, 1)


class Shown(unittest.TestCase):
    """Tables and files."""

    def test_tables(self) -> None:
        """Shares, own and total time, hottest paths."""
        processes, functions = tables(FOUND, 100)
        self.assertEqual([["SHARE", "CPU", "PROCESS", "HOTTEST PATH"],
                          ["90.0 %", "0.90 s", "<0.9.0> till", "shop:pay/1 > lists:sort/1  60.0 %"],
                          ["10.0 %", "0.10 s", "[polling for I/O]", ""]], processes)
        self.assertEqual([["60.0 %", "60.0 %", "lists:sort/1", "<0.9.0> till > shop:pay/1  60.0 %"],
                          ["30.0 %", "30.0 %", "[kernel]", "<0.9.0> till > shop:pay/1 > a;b  30.0 %"],
                          ["10.0 %", "10.0 %", "[polling for I/O]", ""],
                          ["0.0 %", "90.0 %", "shop:pay/1", ""], ["0.0 %", "30.0 %", "a;b", ""]], functions[1:])

    def test_many(self) -> None:
        """The remaining entries share one row."""
        many: Counter[Path] = collections.Counter({Path(f"<0.{n}.0>", f"<0.{n}.0>", ("a:b/1",)): 1 for n in range(50)})
        self.assertEqual(["76.0 %", "", "38 more", ""], tables(many, 99)[0][-1])

    def test_hottest(self) -> None:
        """The path goes from callee to callee, and ends where most samples do."""
        self.assertEqual((("a", "b"), 9), hottest(collections.Counter({("a", "b"): 5, ("a", "b", "c"): 4, ("x",): 8})))
        self.assertEqual(((), 0), hottest(collections.Counter()))

    def test_kinds(self) -> None:
        """Each format that the command allows is written."""
        self.assertEqual(set(PROFILE_FILES), set(WRITERS))

    def test_folded(self) -> None:
        """One line per path."""
        self.assertIn("<0.9.0> till;shop:pay/1;a:b;c [kernel] 30\n", folded(FOUND, TAKEN))

    def test_speedscope(self) -> None:
        """Frames are referenced by number; weights are in ns."""
        profile = json.loads(speedscope(FOUND, TAKEN))
        of: Optional[Dict[str, object]] = profile["profiles"][0]
        assert of
        self.assertEqual((10 ** 9, [3 * 10 ** 8, 6 * 10 ** 8, 10 ** 8]), (of["endValue"], of["weights"]))
        self.assertEqual(3, len(profile["profiles"][0]["samples"]))

    def test_page(self) -> None:
        """The data does not end the page's script."""
        root = tree([(["a", "b"], 2), (["a"], 1)], TAKEN)
        self.assertEqual((30000000, 10000000, 20000000),
                         (root["value"], root["children"][0]["own"], root["children"][0]["children"][0]["value"]))
        text = page(collections.Counter({Path("</script><x>", "", ()): 1}), TAKEN)
        self.assertNotIn("</script><x>", text)
        self.assertIn("\\u003c/script>\\u003cx>", text)
