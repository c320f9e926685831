"""bpftrace's programs, its output, and its termination."""
import contextlib
import io
import shlex
import signal
import subprocess
import unittest
from typing import Dict, List, Optional, Tuple
from unittest import mock

from dyntrace_command.commands.run import check_symbols, program_for, with_place
from dyntrace_command.common.failures import Failure
from dyntrace_command.host.process import in_initial_namespace
from dyntrace_command.top.from_events import Counted
from dyntrace_command.top.from_samples import QUIET, Sampled
from dyntrace_command.tracers.bpftrace import (Bpftrace, Line, Messages, Names, begins_with, condition_of,
                                               lost_events, messages_of, place_in_row, program_text, text)


class Stuck:
    """A process that the kernel does not let end."""

    pid, returncode, stdout = 4711, None, None

    def __init__(self) -> None:
        self.signals: List[signal.Signals] = []

    def poll(self) -> Optional[int]:
        """The process is running."""
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Records the signal."""
        self.signals.append(number)

    def wait(self, timeout: float) -> None:
        """The process does not end."""
        raise subprocess.TimeoutExpired("bpftrace", timeout)


class NotEnded(unittest.TestCase):
    """The kernel is still detaching a bpftrace that was killed."""

    def setUp(self) -> None:
        self.stuck = Stuck()
        self.bpftrace = Bpftrace.__new__(Bpftrace)
        self.bpftrace.process = self.stuck  # type: ignore[assignment]
        self.signals = [signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL]

    def test_is_the_failure(self) -> None:
        """It is the failure if nothing else failed."""
        with self.assertRaises(Failure) as raised:
            with self.bpftrace:
                pass
        self.assertEqual(1, raised.exception.status)
        self.assertIn("bpftrace (process 4711) was killed and has not ended yet\n  next: wait", raised.exception.text)
        self.assertEqual(self.signals, self.stuck.signals)

    def test_is_said_beside_an_earlier_one(self) -> None:
        """If there was an earlier failure, that one is raised, and this one is printed."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaisesRegex(ValueError, "before"), self.bpftrace:
            raise ValueError("before")
        self.assertIn("bpftrace (process 4711) was killed and has not ended yet\n  next: wait", said.getvalue())
        self.assertEqual(self.signals, self.stuck.signals)


class Standard(unittest.TestCase):
    """bpftrace's messages beside the results, and when it fails."""

    LIMIT = "ERROR: Unknown error -1: couldn't set RLIMIT_MEMLOCK for bpftrace. If your program is not loading, you " \
        "can try \"ulimit -l 8192\" to fix the problem"
    SYMBOLS = "Could not read symbols from /sys/kernel/debug/tracing/available_events: No such file or directory"
    REAL = "ERROR: Error attaching probe: 'usdt:/x:a:b'"

    def said(self, script: str) -> str:
        """The messages that are shown of a program's output."""
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            messages = Messages()
            status = messages.start_with(["/bin/sh", "-c", script]).wait()
            messages.end(failed=status != 0)
        return shown.getvalue()

    def test_noise(self) -> None:
        """Noise is not shown, unless it may be the cause of a failure."""
        printed = "".join(f"echo {shlex.quote(line)} >&2; " for line in (self.LIMIT, "", self.SYMBOLS, self.REAL))
        self.assertEqual(f"{self.REAL}\n", self.said(printed))
        self.assertEqual(f"{self.REAL}\n{self.LIMIT}\n{self.SYMBOLS}\n", self.said(printed + "exit 1"))
        self.assertEqual("\\x1b[31m evil\n", self.said("printf '\\033[31m evil' >&2"))

    def test_failure(self) -> None:
        """The message names the real cause, if it is known."""
        self.assertEqual([self.REAL], messages_of([self.LIMIT, self.REAL, self.SYMBOLS]))
        self.assertEqual([self.LIMIT], messages_of([self.LIMIT]))


class Row(unittest.TestCase):
    """The probe by which a program requests names."""

    def place(self, taken: Dict[str, bool]) -> Optional[str]:
        """The probe that is chosen if these are taken. Other probes don't count."""
        others = {"org_erlang_dyntrace:dump_start": True, "shop:dump_wanted5": False,
                  "org_erlang_dyntrace:dump_wantedx": False, "org_erlang_dyntrace:dump_wanted7000": False}
        node = mock.Mock()
        node.probes.return_value = {**others, **{f"org_erlang_dyntrace:dump_wanted{n}": is_taken
                                                 for n, is_taken in taken.items()}}
        node.show.return_value = "shop@db (1)"
        return place_in_row(node)

    def test_free(self) -> None:
        """A free probe is chosen at random. The first one is chosen last, because scripts that are started by hand
        use it."""
        row = {"": False, "1": True, "2": False, "29": False}
        self.assertEqual({"2", "29"}, {self.place(row) for _ in range(100)})
        self.assertEqual("", self.place({"": False, "1": True}))

    def test_taken(self) -> None:
        """If all are taken, the command says so. An earlier library has no such probes, which is not reported."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertIsNone(self.place({}))
            self.assertEqual("", said.getvalue())
            self.assertIsNone(self.place({"": True, "1": True}))
        self.assertIn("shop@db (1) has 2 tracers that request names", said.getvalue())

    def test_of_a_script(self) -> None:
        """The number becomes the argument that the script names, unless the user has given that argument."""
        node = mock.Mock()
        node.probes.return_value = {"org_erlang_dyntrace:dump_wanted9": False}
        cases: List[Tuple[str, List[str], List[str]]] = [
            ("$2", [], ["9"]), ("$3", ["tea"], ["tea", "9"]), ("$2", ["8"], ["8"]), ("$3", [], []), ("", [], []),
            ("4", [], [])]
        for wanted, arguments, result in cases:
            with self.subTest(wanted=wanted, arguments=arguments):
                script = f"usdt:$1:org_erlang_dyntrace:dump_wanted{wanted} {{ }}\n"
                self.assertEqual(result, with_place(script, arguments, node))

    def test_of_a_condition(self) -> None:
        """The condition is in each block of a script."""
        script = "".join(f"usdt:$1:org_erlang_dyntrace:dump_wanted{n} {{ }}\n" for n in ("$2", 4))
        self.assertEqual(script.replace("{ }", "{ if (!(pid == 7)) { return; } }"),
                         program_for("mine.bt", script, "pid == 7"))

    def test_of_names_of_functions(self) -> None:
        """A script that needs names of functions is refused if bpftrace can't be kept from reading the node's files."""
        script = "usdt:x:y:z { print(ustack); }"
        with mock.patch("dyntrace_command.commands.run.help_text", lambda _: "BPFTRACE_NO_USER_SYMBOLS [default: 0]"):
            check_symbols("mine.bt", script, "bpftrace")
        with mock.patch("dyntrace_command.commands.run.help_text", lambda _: "BPFTRACE_CACHE_USER_SYMBOLS"):
            check_symbols("mine.bt", "usdt:x:y:z { print(ustack(raw)); }", "bpftrace")
            with self.assertRaises(Failure) as raised:
                check_symbols("mine.bt", script, "bpftrace")
        self.assertIn("mine.bt looks up function names (line 1 has ustack)", raised.exception.text)

    def test_of_an_unsure_script(self) -> None:
        """A script that can't be limited for certain fails, instead of running unlimited."""
        with self.assertRaises(Failure) as raised:
            program_for("mine.bt", "BEGIN {", "pid == 7")
        self.assertIn("mine.bt can't be limited to one node: line 1 has an unexpected end of the script",
                      raised.exception.text)


class Condition(unittest.TestCase):
    """The condition that a thread belongs to the node."""

    def condition(self, is_initial: bool, btf: str = "/dev/null") -> str:
        """Returns the condition for process 41, which has pid 7 in its own namespace."""
        node = mock.Mock(pid=41)
        node.process.inner_pid.return_value, node.process.namespace.return_value = 7, "pid:[4026532000]"
        with mock.patch("dyntrace_command.tracers.bpftrace.in_initial_namespace", lambda: is_initial), \
                mock.patch("dyntrace_command.tracers.bpftrace.BTF", btf):
            return condition_of(node)

    def test_initial(self) -> None:
        """In the initial namespace, pids are the kernel's, and BTF is not needed."""
        self.assertEqual("pid == 41", self.condition(True, "/nowhere"))

    def test_other(self) -> None:
        """Otherwise, the condition has the pid in the node's own namespace, and that namespace."""
        condition = self.condition(False)
        self.assertEqual(2, condition.count("->nr == 7 && "))
        self.assertEqual(2, condition.count("->ns->ns.inum == 4026532000)"))
        self.assertNotIn("pid ==", condition)

    def test_order(self) -> None:
        """The cast is directly before the first member, because versions from 0.23 on refuse anything else."""
        self.assertEqual(4, self.condition(False).count("((struct upid *)kptr("))

    def test_foreign_proc(self) -> None:
        """If /proc belongs to another namespace, its pids are not the kernel's."""
        with mock.patch("dyntrace_command.host.process.os.readlink", side_effect=FileNotFoundError):
            self.assertFalse(in_initial_namespace())

    def test_without_btf(self) -> None:
        """Without BTF, the command refuses."""
        with self.assertRaisesRegex(Failure, "no_btf"):
            self.condition(False, "/nowhere")


SAMPLING = ["HERTZ", "MODE", "FRAMES"]


class Programs(unittest.TestCase):
    """Texts from users and nodes within a program."""

    def test_words(self) -> None:
        """All placeholders are replaced in one pass: a text that looks like a placeholder is unchanged."""
        program = program_text("names+token_messages", {"LIB": "usdt:x", "ONLY": "pid == 1", "LABEL": "ONLY LIB",
                                               "ASK": "usdt:x:dump_wanted3"})
        # The probe that is attached last: bpftrace before 0.27 begins with the last one.
        self.assertIn("usdt:x:dump_wanted3 { }\nusdt:x:process_identity", program)
        self.assertIn('usdt:x:seq_trace_send /pid == 1 && str(arg0) == "ONLY LIB"/', program)
        self.assertIn("usdt:x:process_identity /pid == 1 && ", program)
        self.assertIn("usdt:x:port_identity /pid == 1/", program)

    def test_each_is_filled(self) -> None:
        """No placeholder is left."""
        places = ["SCHEDULERS", "CURRENT", "SLEEP", "PORT", "KIND", "HEAP", "STOP", "CALLED", "FIRST", "LAST", "WORDS",
                  "INNER", "SPAN", "POINTERS"]
        programs: Dict[str, List[str]] = {
            "names+event_sums": ["MOST"], "names+process_samples": [], "names+token_messages": ["LABEL"],
            "names+candidate_messages": ["ENTRY"],
            "at_once+samples_x86_64+stack_samples+sample_counts": SAMPLING + places,
            "dumped_names+samples_arm64+stack_samples+sample_counts": ["KERNEL_STACK", *SAMPLING, *places]}
        for name, words in programs.items():
            with self.subTest(name):
                program = program_text(name, {word: "filled" for word in ["LIB", "ONLY", "ASK", *words]})
                self.assertEqual([], [word for word in ("LIB", "ONLY", "ASK", *words) if word in program.split()])
                self.assertNotRegex(program, r"\b(LIB|ONLY|ASK|MOST|LABEL|ENTRY)\b")

    def test_texts_stay_texts(self) -> None:
        """No text ends its string literal."""
        self.assertEqual('\\"; exit(); //\\\\\\n', text('"; exit(); //\\\n'))
        self.assertEqual('(str(arg1, 3) == "é/" || str(arg1, 4) == "é/")', begins_with("arg1", "é/"))


class Output(unittest.TestCase):
    """bpftrace's output, with texts from the node."""

    def test_lines(self) -> None:
        """Printed lines and maps are parsed; other lines are ignored."""
        self.assertEqual((["send", "1", "x"], {}), Line.of({"type": "printf", "data": "send\t1\tx\n"}))
        self.assertEqual(([], {"run": {"<0.1.0>": 7}}), Line.of({"type": "map", "data": {"@run": {"<0.1.0>": 7}}}))
        others: List[object] = [None, [], 17, {}, {"type": "printf"}, {"type": "printf", "data": 17}, {"type": "map"},
                                {"type": "attached_probes", "data": {"probes": 3}}]
        for message in others:
            with self.subTest(message):
                self.assertEqual(([], {}), Line.of(message))

    def test_names(self) -> None:
        """A registered name takes precedence over an initial call. Names have no control characters and a limited
        length."""
        names = Names()
        self.assertFalse(names.learn(["name", "<0.1.0>"]))
        self.assertFalse(names.learn([]))
        self.assertTrue(names.learn(["name", "<0.1.0>", "shop:init/1", ""]))
        self.assertEqual("<0.1.0> shop:init/1", names.show("<0.1.0>"))
        names.learn(["name", "<0.1.0>", "", "evil\x1b[31m"])
        self.assertEqual("<0.1.0> evil\\x1b[31m", names.show("<0.1.0>"))
        with mock.patch.object(Names, "LIMIT", 2):
            for number in range(10):
                names.learn(["name", str(number), "", "x"])
        self.assertLessEqual(len(names.of), 3)

    def test_lost_events(self) -> None:
        """Lost events are counted."""
        self.assertEqual(17, lost_events({"type": "lost_events", "data": {"events": 17}}))
        others: List[object] = [None, {"type": "lost_events"}, {"type": "map", "data": {"events": 17}},
                                {"type": "lost_events", "data": {"events": "17"}}]
        self.assertEqual([0, 0, 0, 0], [lost_events(message) for message in others])


class Frames(unittest.TestCase):
    """The frames of `dyntrace top --exact`, one per second."""

    FRAME = Line(["frame"], {})
    ROW = Line([], {"run": {"<0.1.0>": 7}})

    def setUp(self) -> None:
        node = mock.Mock()
        node.show.return_value = "shop@vm (1)"
        self.top = Counted(node, None, False)

    def after(self, line: Line) -> bool:
        """Feeds the line and returns whether a frame is due."""
        self.top.take(line)
        return self.top.due()

    def test_wait_for_names(self) -> None:
        """Data from before the names is in no frame, because its rows would have no names."""
        self.assertEqual([False, False], [self.after(line) for line in (self.ROW, self.FRAME)])
        self.top.take(Line(["name", "<0.1.0>", "shop:init/1", ""], {}))
        self.assertEqual([False, True], [self.after(line) for line in (self.ROW, self.FRAME)])
        *_, row = self.top.lines(9)
        self.assertRegex(row, r"^ +7 .* <0\.1\.0> shop:init/1$")

    def test_without_names(self) -> None:
        """If no names arrive, two frames are left out."""
        self.assertEqual([False, False, True], [self.after(self.FRAME) for _ in range(3)])


class SampledFrames(unittest.TestCase):
    """The frames of `dyntrace top` from samples."""

    def setUp(self) -> None:
        self.now = 100.0
        node = mock.Mock()
        node.show.return_value = "shop@vm (1)"
        self.top = Sampled(node, "growth", False)
        self.top.take(Line(["name", "<0.1.0>", "shop:init/1", ""], {}))
        clock = mock.patch("dyntrace_command.top.from_samples.time.monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)

    def sample(self, pid: str, memory: int, reductions: int = 1000) -> None:
        """Feeds an event of a sample."""
        self.top.take(Line(["sample", pid, "3", str(memory), str(reductions), "gen_server:loop/7", "waiting"], {}))

    def frame(self) -> List[str]:
        """Returns the PIDs of the frame that is due."""
        self.now += QUIET
        rows = self.top.lines(9)[2:] if self.top.due() else []
        return [word for row in rows for word in row.split() if word[0] == "<"]

    def test_first_sample(self) -> None:
        """A frame without reductions says nothing if there was no sample before."""
        self.sample("<0.1.0>", 1000, 0)
        self.assertEqual([], self.frame())
        self.sample("<0.1.0>", 1000, 0)
        self.assertEqual(["<0.1.0>"], self.frame())

    def test_own(self) -> None:
        """The processes of dyntrace are shown on request."""
        self.top.take(Line(["name", "<0.2.0>", "dyntrace_ports:ports/2", ""], {}))
        for own, pids in ((False, ["<0.1.0>"]), (True, ["<0.1.0>", "<0.2.0>"])):
            self.top.own = own
            for pid in ("<0.1.0>", "<0.2.0>"):
                self.sample(pid, 1000)
            self.assertEqual(pids, self.frame())

    def test_whole_when_quiet(self) -> None:
        """A frame is due once, when the sample's events stop arriving, and never without a sample."""
        self.assertFalse(self.top.due())
        self.sample("<0.1.0>", 1000)
        self.assertFalse(self.top.due())
        self.now += QUIET
        self.assertEqual([True, False], [self.top.due(), self.top.due()])

    def test_whole_between_counters(self) -> None:
        """Counters that arrive more often than samples do not delay a frame; nor do incomplete samples."""
        for ends, frames in ((True, 1), (False, 2)):
            self.sample("<0.1.0>", 1000)
            due = []
            for _ in range(45):
                self.now += QUIET / 2
                self.counter()
                if not ends:
                    self.sample("<0.1.0>", 1000)
                due.append(self.top.due())
            self.assertEqual(frames, due.count(True))

    def counter(self) -> None:
        """Feeds an event of a counter."""
        self.top.take(Line(["counter", "run_queue", "1"], {}))

    def test_growth(self) -> None:
        """Memory growth is relative to the previous sample; a process that was not in it has not grown."""
        for memory in (5000, 9000):
            self.sample("<0.1.0>", memory)
            if memory == 9000:
                self.sample("<0.2.0>", 2600)
            self.now += QUIET
            self.assertTrue(self.top.due())
        self.assertEqual(["      1000         3    9.0 kB   +4.0 kB  <0.1.0> shop:init/1  waiting gen_server:loop/7",
                          "      1000         3    2.6 kB       0 B  <0.2.0>              waiting gen_server:loop/7"],
                         self.top.lines(9)[2:])

    def test_counters(self) -> None:
        """The head shows the counters, and reductions from the second sample on."""
        for at, reductions in enumerate((1000, 4000)):
            for name, value in (("processes", 80), ("scheduler_utilization_1", 500), ("scheduler_utilization_2", 100),
                                ("run_queue", 2), ("memory_total", 15800000), ("reductions", reductions)):
                self.top.take(Line(["counter", name, str(value)], {}))
            self.sample("<0.1.0>", 1000)
            self.now += QUIET
            self.assertTrue(self.top.due())
            self.assertRegex(self.top.lines(9)[0], "  80 processes, schedulers 30 %, run queue 2, memory 15.8 MB" +
                             (", 3000 reductions" if at else "") + "$")
