"""What processes did at the end of a recording: its clauses, its lines, and its file."""
import collections
import os
import tempfile
import time
import unittest
from typing import Any, Counter, Dict, List
from unittest import mock

from dyntrace_command.common.outputs import quoted
from dyntrace_command.node.jit_code import Location
from dyntrace_command.node.stack_places import Clause, Activity, StackPlaces, agreed, is_of_application, place_of
from dyntrace_command.node.stack_snapshot import Captured, Stack
from dyntrace_command.profiling.busy_functions import activities
from dyntrace_command.profiling.sample_paths import Frame, Located
from dyntrace_command.recording import process_stacks
from dyntrace_command.recording.process_stacks import FILE, LINES_MOST, ProcessStacks, bounded, save, saved

CODE = {number: Location("erlang", name, file, line) for number, (name, file, line) in enumerate([
    ("gen:do_call/4", "gen.erl", 237), ("gen_server:call/3", "gen_server.erl", 381),
    ("shop:add/2", "/src/shop.erl", 17),
    ("gen_server:loop/7", "gen_server.erl", 871), ("proc_lib:init_p_do_apply/3", "proc_lib.erl", 240)], 1)}
PID = "<0.90.0>"


def places() -> StackPlaces:
    """A reader that finds the functions of CODE at the addresses of their numbers."""
    reader: Any = StackPlaces.__new__(StackPlaces)
    reader.cached, reader.code = {}, mock.Mock(locate=CODE.get)
    return reader  # type: ignore


def process(status: str, resume: int, *returns: int, function: str = "", saved_at: int = 0,
            is_consistent: bool = True) -> Captured:
    """A process with this stack: a return address is after the call."""
    stack = Stack(resume, tuple(one + 1 for one in returns), True)
    return Captured(7, 0, status, is_consistent, 0, function, stack, (), saved_at)


class Clauses(unittest.TestCase):
    """What is said about a process."""

    def test_snapshot(self) -> None:
        """The innermost function, and what called it."""
        text = "gen:do_call/4, called from shop:add/2 (shop.erl:17)"
        for expected, given in [
                (Clause("waits", f"waited in {text}"), process("waiting", 1, 2, 3, 5)),
                (Clause("waits", f"was suspended in {text}"), process("suspended", 1, 2, 3, 5)),
                (Clause("runs", f"was ready to run in {text}"), process("runnable", 1, 2, 3, 5)),
                (Clause("waits", "waited in shop:add/2 (shop.erl:17)"), process("waiting", 3, 5)),
                # Without a function outside of OTP.
                (Clause("waits", "waited in gen:do_call/4 (gen.erl:237)"), process("waiting", 1, 2, 5)),
                # On a dirty scheduler; running Erlang code, whose function is unknown; with an empty stack.
                (Clause("runs", "ran file:x/1, called from shop:add/2 (shop.erl:17)"),
                 process("running", 0, 2, 3, 5, function="file:x/1", is_consistent=False)),
                (Clause("runs", "ran functions called from shop:add/2 (shop.erl:17)"),
                 process("running", 0, 2, 3, 5, is_consistent=False)),
                (Clause("runs", "was last saved in shop:add/2 (shop.erl:17)"),
                 process("running", 0, saved_at=3, is_consistent=False)),
                # It waits for the next message; it changed meanwhile; unknown code; it exits.
                (None, process("waiting", 4, 5)), (None, process("waiting", 1, 2, 3, is_consistent=False)),
                (None, process("waiting", 99, 2, 3)), (None, process("exiting", 1, 2, 3)),
                (None, process("running", 0, 99, is_consistent=False))]:
            self.assertEqual(expected, places().clause(given, {}))

    def test_samples(self) -> None:
        """Most samples have to agree, about the line or the function."""
        line, other = Activity("ran ", "shop:add/2", " (shop.erl:17)"), Activity("ran ", "shop:add/2", " (shop.erl:18)")
        for expected, given in [
                (["ran shop:add/2 (shop.erl:17) in 10 of 40 samples"], {line: 10, other: 9}),
                (["ran shop:add/2 in 20 of 40 samples"], {line: 10, other: 10}),
                ([], {line: 10, Activity("ran ", "shop:rank/2"): 10}),
                ([], {Activity(): 30, line: 10}), ([], {line: 9})]:
            counted: Counter[Activity] = collections.Counter(given)
            self.assertEqual(expected, [clause.text for _, clause in agreed({PID: counted}, 40)])

    def test_cpu_samples(self) -> None:
        """The innermost Erlang function of a sample, and what called it."""
        shop, sort = Frame("shop:add/2", "/src/shop.erl", 17), Frame("lists:sort/1", "lists.erl", 3)
        for expected, frames in [
                (["ran lists:sort/1, called from shop:add/2 (shop.erl:17)", "was in or below shop:add/2 (shop.erl:17)"],
                 [shop, sort, Frame("[garbage collection]"), Frame("x [kernel]")]),
                (["ran shop:add/2 (shop.erl:17)", "was in or below shop:add/2 (shop.erl:17)"], [sort, shop]),
                (["ran lists:sort/1 (lists.erl:3)", ""], [sort]), (["", ""], [Frame("x [kernel]")])]:
            found = activities(Located("", PID, tuple(frames), 0, "", "exact"))
            self.assertEqual(expected, ["".join(activity) for activity in found])
        self.assertEqual((Activity(), Activity()), activities(Located("", PID, (shop,), 0, "", "last saved")))

    def test_special(self) -> None:
        """Functions that work for their callers are those of general modules."""
        for name, expected in [
                ("shop:add/2", True), ("shop:-add/2-fun-0-/1", True), ("'my shop':add/2", True),
                ("Shop.Cart.add/2", True), ("gen_server:call/3", False), ("lists:-map/2-fun-0-/1", False),
                ("Enum.map/2", False), ("Task.Supervised.invoke_mfa/2", False), ("", False), ("[unknown code]", False)]:
            self.assertEqual((name, expected), (name, is_of_application(name)))

    def test_place(self) -> None:
        """A function that is its own caller is named once."""
        self.assertEqual("shop:add/2 (shop.erl:17)", place_of(CODE[3], CODE[3]))


class Lines(unittest.TestCase):
    """The lines of a recording."""

    def text_of(self, answer: Any) -> List[str]:
        """The lines that an answer of a node's child leads to."""
        node: Any = mock.Mock(pid=7, node="shop@host\n")
        node.without_stacks.return_value = None
        child = mock.Mock()
        child.receive.return_value = mock.Mock(value=answer)
        with mock.patch.object(process_stacks, "Child", return_value=child), \
                mock.patch.object(process_stacks, "identity_for"), mock.patch.object(process_stacks, "check_same"):
            node.process.inner_pid.return_value = 8
            with ProcessStacks([node]) as stacks:
                stacks.begin(time.monotonic())
                text = stacks.text()
        child.end.assert_called_once()
        return text.split("\n") if text else []

    def test_hostile_answers(self) -> None:
        """A child may send anything: lines are valid, bounded and without control characters."""
        answers: List[Any] = [None, 7, [], {}, {"clauses": 7}, {"clauses": [7]}, {"clauses": [["ran"]]},
                              {"clauses": [["sleeps", "x", [PID]]]}, {"clauses": [["ran", "x", []]]},
                              {"clauses": [["ran", "x", ["0"]]]}, {"clauses": [["ran", "", [PID]]]}]
        for answer in answers:
            self.assertEqual([], self.text_of(answer), answer)
        text = "a\\x0ab\\x09\\x1b" + "é" * 286
        self.assertEqual([f"shop@host\\x0a\t8\tran\t{text}\t{PID} {PID}"],
                         self.text_of({"clauses": [["ran", "a\nb\t\x1b" + "é" * 1000, [PID, PID]]]}))
        found = self.text_of({"clauses": [["ran", f"\\{n}", [PID] * 100] for n in range(1000)]})
        self.assertTrue(50 < len(found) < 150 and len(quoted("\n".join(found))) < LINES_MOST)

    def test_unreadable(self) -> None:
        """No child is started for a node whose stacks can't be read."""
        node: Dict[str, Any] = {"without_stacks.return_value": "the VM has no JIT"}
        with mock.patch.object(process_stacks, "Child") as child, ProcessStacks([mock.Mock(**node)]) as stacks:
            stacks.sample(1)
            stacks.end(is_early=True)
            self.assertEqual("", stacks.text())
        child.assert_not_called()

    def test_file(self) -> None:
        """The file of a recording is read as it was written, unless it was changed."""
        line = f"shop@host\t8\twaits\twaited in 'a\\\\b':c/1\t{PID}"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, FILE)
            save(folder, line)
            self.assertEqual({"stacks": line}, saved([folder]))
            # It is not overwritten, nor is a link followed.
            save(folder, "other")
            self.assertEqual({"stacks": f"{line}\n{line}"}, saved([folder, folder]))
            os.remove(path)
            os.symlink("/etc/passwd", path)
            self.assertEqual({}, saved([folder]))
            os.remove(path)
            for text in ("", "x" * (LINES_MOST + 1), line.replace("waited", "\x1b"), line.replace("\t", " ")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual({}, saved([folder]))
            with open(path, "wb") as raw:
                raw.write(b"\xff")
            self.assertEqual({}, saved([folder]))
        self.assertEqual({}, saved(["/nowhere"]))

    def test_bounds(self) -> None:
        """The first lines that fit."""
        line = f"shop@host\t8\tran\tran x\t{PID}"
        self.assertEqual([line] * 2, list(bounded(iter([line] * 5), 2 * (len(quoted(line)) + 1))))


if __name__ == "__main__":
    unittest.main()
