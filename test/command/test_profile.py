"""Profiles without a node: functions of libraries, samples as paths, tables and files."""
import collections
import gzip
import json
import struct
import time
import types
import unittest
from typing import Any, Counter, Dict, Optional, Sequence, Tuple
from unittest import mock

from dyntrace_command.common.outputs import PROFILE_FILES
from dyntrace_command.host.symbols import Functions
from dyntrace_command.node.code import JIT, Names, Place, place_of
from dyntrace_command.profiling import sample_paths, waiting_paths
from dyntrace_command.profiling.profile_files import WRITERS, Taken, folded, page, speedscope, tree
from dyntrace_command.profiling.pprof import pprof
from dyntrace_command.profiling.profile_tables import certainty, hottest, stack_kinds, summarized, tables
from dyntrace_command.profiling.sample_paths import (
    BIF, BUSY, COLLECTION, ERLANG, IN_C, IN_ERLANG, LAST_SAVED, LEFT_OUT, NIF, NO_STACK, OTHER, OTHERS, PORT, TRACING,
    UNKNOWN, Frame, Located, Path, Paths, Sample, Samples, by_function, sample_of)
from dyntrace_command.profiling.waiting_paths import add, sample_all
from dyntrace_command.tracers.bpftrace import Names as NodeNames

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


# A return address leads to the code before it, so code that is called from is one below the address in a stack.
PLACES: Dict[int, Optional[Place]] = {
    11: Place("erlang", "lists:sort/1", None, "lists.erl", 512), 21: Place("erlang", "shop:pay/1", None, "shop.erl", 7),
    31: Place("erlang", "erts_beamasm:normal_exit/0"), 41: Place("c", "md5 [beam.smp]"), 51: JIT,
    61: Place("c", "static function [beam.smp]", "garbage collection"), 71: Place("tracer", "fire [dyntrace.so]"),
    81: Place("c", "erts_garbage_collect [beam.smp]", "garbage collection"),
    91: Place("fragment", "garbage_collect"), 101: Place("fragment", "call_light_bif_shared"),
    111: Place("fragment", "call_nif_shared"), 121: Place("fragment", "plus_body_shared"),
    131: Place("fragment", "process_main")}
SORT, PAY, EXIT, COLLECT, LIGHT_BIF, CALL_NIF, MAIN = 12, 22, 32, 92, 102, 112, 132
WORD = 0x93


def code_of() -> Any:
    """A node's code."""
    return types.SimpleNamespace(
        places=PLACES, layout=types.SimpleNamespace(normal_exit=EXIT),
        names=Names({WORD: ("<0.9.0>", "", "shop:init/1")}, {7: "erlang:md5/1"}, {8: "crypto:hash/2"}))


def sampled(stack: Sequence[int], **values: Any) -> Sample:
    """A sample of a scheduler."""
    fields: Dict[str, Any] = {"thread": "erts_sched_1", "process": WORD, "where": 1, "how": IN_ERLANG, "returns_to": 0,
                              "export": 0, "called": 0, "doing": 0, "stack": tuple(stack), "kernel": ()}
    return Sample(**{**fields, **values})


def located(stack: Sequence[int], saved: Sequence[int] = (PAY, EXIT), **values: Any) -> Located:
    """The place of a sample of a process with this stack."""
    names = NodeNames()
    names.learn(["name", "<0.9.0>", "shop:init/1", "till"])
    return Paths(code_of(), names).locate(sampled(stack, **values), tuple(saved))


def path(stack: Sequence[int], saved: Sequence[int] = (PAY, EXIT), **values: Any) -> Tuple[str, ...]:
    """The names of its frames."""
    found = located(stack, saved, **values)
    return (found.root, *(frame.name for frame in found.frames))


class PathsOfSamples(unittest.TestCase):
    """Samples as paths."""

    def test_keys(self) -> None:
        """Keys as bpftrace 0.17 prints them, with addresses only, and escaped twice; numbers with and without a sign;
        other keys are ignored."""
        for line in ("\n\t7f01 0x7f01 ([unknown])\n\t7f02 0x7f02 ([unknown])\n", "\n7f01\n7f02\n",
                     "\\n7f01\\n7f02\\n"):
            for where in ("-2", "18446744073709551614"):
                self.assertEqual(Sample("1_scheduler", 3, 2 ** 64 - 2, 1, 4, 5, 6, 8, (0x7f01, 0x7f02), ("do_it",)),
                                 sample_of(f"1_scheduler,3,{where},1,4,5,6,8,{line},\n\tffffffff81444bb4 do_it+12\n"))
        none = "0,0,0,0,0,0,0"
        self.assertEqual(sampled((), thread="x", process=0, where=0, how=0, kernel=("do_it", "ffff")),
                         sample_of(f"x,{none},,\n\tffffffff81444bb4do_it+12\n\tffff\n"))
        self.assertEqual("x,y", (sample_of(f"x,y,{none},,") or sampled(())).thread)
        for key in ("nothing", "x,-,0,0,0,0,0,0,,", "x,0,0,0,0,0,0,,"):
            self.assertIsNone(sample_of(key))

    def test_hostile_keys(self) -> None:
        """The names of threads may look like stacks: the result is a sample or none, in bounded time."""
        began = time.process_time()
        for name in ("x,\nab", "x,\nab\x0bzz\n,", "x,\n \n", "x," + "\naaa" * 15, "," * 63, ",\n" * 31, "1," * 31):
            for rest in (",\n\t7f00\n,\n\tffffffff81444bb4 do_it+12\n", "\n!,\n\t7f00\n,\n", ",,"):
                sample_of(f"{name},0,0,0,0,0,0,0{rest}")
                sample_of(f"s,{name}{rest}")
        self.assertLess(time.process_time() - began, 1)

    def test_erlang(self) -> None:
        """In Erlang code, the innermost function is that of the instruction; kernel frames come last."""
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "lists:sort/1", "b [kernel]", "a [kernel]"),
                         path([11, 99], kernel=("a", "b")))
        found = located([11])
        self.assertEqual((Frame("shop:pay/1", "shop.erl", 7), Frame("lists:sort/1", "lists.erl", 512)), found.frames)
        self.assertEqual((ERLANG, "exact"), (found.activity, found.stack))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "plus_body_shared [code of the VM]"), path([121]))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "[code of Erlang]"), path([51]))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", UNKNOWN), path([99]))

    def test_called(self) -> None:
        """The shared code that has called C code says what the process does; BIFs and NIFs have names."""
        cases: Sequence[Tuple[int, Dict[str, Any], str, Tuple[str, ...]]] = (
            (COLLECT, {}, COLLECTION, ("[garbage collection]", "md5 [beam.smp]")),
            (LIGHT_BIF, {"export": 7, "called": 8}, BIF, ("erlang:md5/1", "md5 [beam.smp]")),
            (CALL_NIF, {"export": 7, "called": 8}, NIF, ("crypto:hash/2", "md5 [beam.smp]")),
            (CALL_NIF, {}, NIF, ("md5 [beam.smp]",)),
            (SORT, {"export": 7, "called": 8}, ERLANG, ("lists:sort/1", "md5 [beam.smp]")),
            (MAIN, {}, OTHER, ("md5 [beam.smp]",)))
        for returns_to, values, activity, frames in cases:
            with self.subTest(returns_to):
                found = located([41, 99], how=IN_C, returns_to=returns_to, **values)
                self.assertEqual((activity, ("shop:pay/1", *frames)),
                                 (found.activity, tuple(frame.name for frame in found.frames)))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "crypto:hash/2", "md5 [beam.smp]"),
                         path([41], how=IN_C, called=8, thread="erts_dcpus_1"))

    def test_stacks(self) -> None:
        """A stack that may be that of an earlier call is marked, and one without its bottom is missing."""
        found = located([41], how=LAST_SAVED)
        self.assertEqual(("shop:pay/1 (last saved)", "last saved"), (found.frames[0].name, found.stack))
        self.assertEqual("exact", located([41], how=LAST_SAVED, returns_to=MAIN).stack)
        # Erlang code that has switched to the stack of C code.
        self.assertEqual(["last saved", "last saved", "exact"],
                         [located([at], how=IN_C, returns_to=SORT).stack for at in (11, 121, 41)])
        self.assertEqual("missing", located([11], saved=(PAY,)).stack)
        self.assertEqual(("<0.9.0> till", NO_STACK, "lists:sort/1"), path([11], saved=()))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", LEFT_OUT, UNKNOWN, "lists:sort/1"),
                         path([11], saved=(99, 0, PAY, EXIT)))

    def test_replaced_heap(self) -> None:
        """A stack ends at its bottom, also if the words of another heap follow."""
        self.assertEqual(path([11]), path([11], saved=(PAY, EXIT, 99, 0, SORT, PAY, EXIT)))
        self.assertEqual("exact", located([11], saved=(PAY, EXIT, 99)).stack)

    def test_parts(self) -> None:
        """Static functions have the name of their part, once."""
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "[garbage collection]"),
                         path([61], how=IN_C, returns_to=COLLECT))
        self.assertEqual(("<0.9.0> till", "shop:pay/1", "[garbage collection]", "erts_garbage_collect [beam.smp]"),
                         path([61, 81], how=IN_C, returns_to=COLLECT))

    def test_outside(self) -> None:
        """Threads without a process, with old and new names, and the cost of tracing itself."""
        for thread, root in (("erts_sched_2", "[schedulers: ports, scheduling, spinning]"),
                             ("2_dirty_cpu_sch", "[dirty CPU schedulers]"),
                             ("10_dirty_cpu_sc", "[dirty CPU schedulers]"),
                             ("10_dirty_io_sch", "[dirty I/O schedulers]"), ("0_poller", "[polling for I/O]"),
                             ("a\x1bb", "[thread a\\x1bb]")):
            with self.subTest(thread):
                self.assertEqual((root, "md5 [beam.smp]"), path([41], process=0, thread=thread))
        self.assertEqual((TRACING, "fire [dyntrace.so]"), path([71]))
        self.assertEqual([PORT, BUSY, OTHER],
                         [located([41], process=0, doing=doing).activity for doing in (256, 9, 0)])
        self.assertEqual("", located([41], process=0, thread="0_poller").activity)

    def test_names(self) -> None:
        """A process has the name that the node reports, else the registered one, else the function that it began."""
        for name, first, root in (("till", "shop:init/1", "<0.9.0> till"), ("", "shop:init/1", "<0.9.0> shop:init/1"),
                                  ("", "proc_lib:init_p/5", "<0.9.0>")):
            code = code_of()
            code.names.processes[WORD] = ("<0.9.0>", name, first)
            self.assertEqual(root, Paths(code, NodeNames()).locate(sampled([11]), (EXIT,)).root)

    def test_many_frames(self) -> None:
        """The number of stacks and that of their frames are limited."""
        samples = Samples()
        with mock.patch.object(sample_paths, "STACKS_MOST", 3), mock.patch.object(sample_paths, "FRAMES_MOST", 5):
            for number in range(1, 9):
                for frame in range(2):
                    samples.take(["frame", str(number), str(frame), "7"], {})
        self.assertEqual([(7, 7), (7, 7), (7,), ()], [samples.stack(number) for number in range(1, 5)])

    def test_hostile_reader(self) -> None:
        """Places that a child sends have no escapes, and lines are not negative."""
        self.assertEqual(Place("erlang", "\\x1b[2J", None, "\\x07", 0), place_of("erlang", "\x1b[2J", None, "\a", -1))

    def test_lost(self) -> None:
        """Samples that the kernel has counted but not delivered are missing; a stack ends at a frame that is lost."""
        samples = Samples()
        samples.take([], {"stacks0": {"x,0,0,0,0,0,0,0,,": 3, "nothing": 1}, "all0": {"samples": 5}})
        self.assertEqual(({0: 5}, {0: 2}), (samples.all, samples.missing()))
        for frame in ("0", "1", "3"):
            samples.take(["frame", "-2", frame, "17"], {})
        self.assertEqual((17, 17), samples.stack(2 ** 64 - 2))


FOUND: Counter[Located] = collections.Counter({
    Located("<0.9.0> till", "<0.9.0>", (Frame("shop:pay/1", "shop.erl", 7), Frame("lists:sort/1", "lists.erl", 512)), 0,
            ERLANG, "exact"): 60,
    Located("<0.9.0> till", "<0.9.0>", (Frame("shop:pay/1", "shop.erl", 8), Frame("a;b"), Frame("c [kernel]")), 0, BIF,
            "last saved"): 30,
    Located("[polling for I/O]", "", (), 0, "", ""): 10})
PATHS = by_function(FOUND)

TAKEN = Taken("a title", 100, 1)


class Shown(unittest.TestCase):
    """Tables and files."""

    def test_tables(self) -> None:
        """Shares, own and total time, hottest paths."""
        schedulers, processes, functions = tables(summarized(FOUND, 100, 1, [2, 0, 0]))
        self.assertEqual([["SCHEDULERS", "CPU", "SHARE"], ["Erlang code", "0.60 s", "30.0 %"],
                          ["BIFs", "0.30 s", "15.0 %"], ["sleep, or not on a CPU", "", "55.0 %"]], schedulers)
        self.assertEqual("stacks: 66.7 % exact, 33.3 % last saved, 0.0 % missing", certainty(stack_kinds(FOUND)))
        self.assertEqual([["SHARE", "CPU", "PROCESS", "HOTTEST PATH"],
                          ["90.0 %", "0.90 s", "<0.9.0> till", "shop:pay/1 > lists:sort/1  60.0 %"],
                          ["10.0 %", "0.10 s", "[polling for I/O]", ""]], processes)
        self.assertEqual([["60.0 %", "60.0 %", "lists:sort/1", "<0.9.0> till > shop:pay/1  60.0 %"],
                          ["30.0 %", "30.0 %", "[kernel]", "<0.9.0> till > shop:pay/1 > a;b  30.0 %"],
                          ["10.0 %", "10.0 %", "[polling for I/O]", ""],
                          ["0.0 %", "90.0 %", "shop:pay/1", ""], ["0.0 %", "30.0 %", "a;b", ""]], functions[1:])

    def test_many(self) -> None:
        """The remaining entries share one row."""
        many: Counter[Located] = collections.Counter({
            Located(f"<0.{n}.0>", f"<0.{n}.0>", (Frame("a:b/1"),), 0, ERLANG, "exact"): 1 for n in range(50)})
        self.assertEqual(["76.0 %", "", "38 more", ""], tables(summarized(many, 99, 1, []))[0][-1])

    def test_hottest(self) -> None:
        """The path goes from callee to callee, and ends where most samples do."""
        self.assertEqual((("a", "b"), 9), hottest(collections.Counter({("a", "b"): 5, ("a", "b", "c"): 4, ("x",): 8})))
        self.assertEqual(((), 0), hottest(collections.Counter()))

    def test_kinds(self) -> None:
        """Each format that the command allows is written."""
        self.assertEqual(set(PROFILE_FILES), set(WRITERS))

    def test_folded(self) -> None:
        """One line per path."""
        self.assertIn("<0.9.0> till;shop:pay/1;a:b;c [kernel] 30\n", folded(PATHS, TAKEN))

    def test_speedscope(self) -> None:
        """Frames are referenced by number; weights are in ns."""
        profile = json.loads(speedscope(PATHS, TAKEN))
        of: Optional[Dict[str, object]] = profile["profiles"][0]
        assert of
        self.assertEqual((10 ** 9, [3 * 10 ** 8, 6 * 10 ** 8, 10 ** 8]), (of["endValue"], of["weights"]))
        self.assertEqual(3, len(profile["profiles"][0]["samples"]))

    def test_pprof(self) -> None:
        """Functions with files, and each text once; pprof itself reads it in profile_SUITE."""
        profile = gzip.decompress(pprof(FOUND, 100, 1))
        for text, count in ((b"shop:pay/1", 1), (b"shop.erl", 1), (b"<0.9.0> till", 1), (b"[polling for I/O]", 1)):
            self.assertEqual(count, profile.count(text))

    def test_waiting(self) -> None:
        """Snapshots of all processes: their number, the time of each, and what is left out of a snapshot."""
        frames = [["gen_server:loop/7", "gen_server.erl", 871], ["shop:sell/1", "shop.erl", 9]]
        group = {"status": "waiting", "consistent": True, "count": 3, "frames": [[0, 2], [1, 1]], "servers": []}
        found: Counter[Located] = collections.Counter()
        for second in range(2):
            add(found, {"processes": 5, "groups": [group], "frames": frames}, second)
        sell, loop = Frame("shop:sell/1", "shop.erl", 9), Frame("gen_server:loop/7", "gen_server.erl", 871)
        self.assertEqual({(place, second): count for place, count in (("[waiting]", 3), (OTHERS, 2))
                          for second in range(2)}, {(one.root, one.second): count for one, count in found.items()})
        self.assertIn(Located("[waiting]", "", (sell, loop, loop), 1, "", "exact"), found)
        # Two snapshots in 20 seconds: each process counts for ten.
        taken = Taken("a title", 0.1, 20, 2)
        self.assertEqual(30 * 10 ** 9, taken.ns(3))
        self.assertIn('"profile": {"snapshots": 2, "seconds": 20, "processes": "5.0"}',
                      page(by_function(found), taken))
        profile = gzip.decompress(pprof(found, taken.hertz, taken.seconds, "wall"))
        self.assertEqual((1, 0), (profile.count(b"wall"), profile.count(b"cpu")))

    def test_awaited(self) -> None:
        """The process whose reply is awaited is named if most of a group await it."""
        group = {"status": "waiting", "consistent": True, "count": 3, "frames": []}
        for servers, root in (([["<0.9.0>", "till", 2], ["<0.8.0>", None, 1]], "[waiting for till]"),
                              ([["<0.9.0>", None, 3]], "[waiting for <0.9.0>]"),
                              ([["<0.9.0>", "till", 1]], "[waiting]"),
                              ([["<0.9.0>", "\x1b[2J", 3]], "[waiting for \\x1b[2J]")):
            found: Counter[Located] = collections.Counter()
            add(found, {"processes": 3, "groups": [{**group, "servers": servers}], "frames": []}, 0)
            self.assertEqual([root], [one.root for one in found])

    def test_waiting_bounds(self) -> None:
        """Many long stacks, and values of a hostile child."""
        found: Counter[Located] = collections.Counter()
        group = {"status": "waiting", "consistent": True, "count": 1, "servers": [],
                 "frames": [[0, 10 ** 9]] * 400}
        with mock.patch.object(waiting_paths, "KEPT_MOST", 3):
            for number in range(9):
                add(found, {"processes": 1, "groups": [group], "frames": [[f"a:b/{number}", "", 0]]}, 0)
        self.assertEqual([1000, 1000, 1000, 0], [len(one.frames) for one in found])
        self.assertEqual([1, 1, 1, 6], list(found.values()))

    def test_node_ends(self) -> None:
        """The snapshots before the end of the node are kept."""
        node: Any = mock.Mock()
        node.lives.side_effect = [True, True, False]
        node.isolated.side_effect = [{"processes": 0, "groups": [], "frames": [], "unread": 3}, ProcessLookupError()]
        with mock.patch.object(waiting_paths, "PERIOD_S", 0):
            waiting = sample_all(node, 9)
        self.assertEqual((1, 3), (waiting.snapshots, waiting.unread))

    def test_page(self) -> None:
        """The data does not end the page's script."""
        root = tree([(["a", "b"], 2), (["a"], 1)], TAKEN)
        self.assertEqual((30000000, 10000000, 20000000),
                         (root["value"], root["children"][0]["own"], root["children"][0]["children"][0]["value"]))
        text = page(collections.Counter({Path("</script><x>", "", ()): 1}), TAKEN)
        self.assertNotIn("</script><x>", text)
        self.assertIn("\\u003c/script>\\u003cx>", text)
