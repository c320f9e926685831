"""What the command says about a recording, from the report's numbers."""
import json
import unittest
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.recording import recording_contents
from dyntrace_command.recording.recording import Recorded
from dyntrace_command.recording.recording_contents import Examined, examine, findings_text, lost_text, of_report
from dyntrace_command.recording.rendering import said


def report(lost: Optional[int], gaps: List[Optional[int]]) -> Dict[str, Any]:
    """A report in JSON."""
    return {"recording": {"events": 17, "lost_events": lost, "lost": [{"count": gap} for gap in gaps]}, "findings": []}


class Numbers(unittest.TestCase):
    """The terminal reports lost events in the same words as the viewer's output."""

    def test_lost(self) -> None:
        """No lost events, a number, an unknown number of a flight recorder, and both."""
        cases: List[Tuple[Optional[int], List[Optional[int]], str]] = [
            (0, [], "0"), (251, [251], "251"), (None, [None], "an unknown number"), (7, [7, None], "more than 7")]
        for lost, gaps, text in cases:
            with self.subTest(text):
                self.assertEqual(text, of_report(report(lost, gaps), []).lost_text())
        self.assertEqual("?", lost_text(None))

    def test_said(self) -> None:
        """The plugin's messages to users, with the next step; babeltrace2's other output is ignored."""
        error = "11-25 WARNING\ndyntrace: no names\n  next: wait\ndyntrace: nothing: \x1b\nCAUSED BY x\n  next: no\n"
        self.assertEqual(["dyntrace: no names\n  next: wait", "dyntrace: nothing: \\x1b"], said(error))
        self.assertEqual(Examined(17, 0, False, ["no names"], None, "Findings: none"),
                         of_report(report(0, []), ["no names"]))

    def test_examined(self) -> None:
        """The numbers are those of the same command as for the output; without its tools, they are unknown."""
        mirror: Any = mock.Mock(**{"as_typed": str})
        command = ["/bin/echo", json.dumps(report(3, []))]
        with mock.patch.object(recording_contents, "view_command", return_value=command) as viewed:
            self.assertEqual(Examined(17, 3, False, [], None, "Findings: none"), examine(mirror))
            examine(mirror, page={"path": "x.html"})
        self.assertEqual([mock.call(mirror, None, {"format": "json"}),
                          mock.call(mirror, "x.html", {"path": "x.html", "report": "yes"})], viewed.mock_calls)
        missing = Failure("no_plugin", places="", folder="")
        with mock.patch.object(recording_contents, "view_command", side_effect=missing):
            self.assertIsNone(examine(mirror))

    def test_summary(self) -> None:
        """Important remarks come first."""
        self.assertEqual("no names\nrecorded: 17 events, lost 0, 1.5 kB",
                         Recorded(17, "0", 1500, ["no names"]).summary())
        self.assertEqual("recorded: lost ?", Recorded(None, "?", None, []).summary())


class Findings(unittest.TestCase):
    """The terminal shows the findings as the report does."""

    def test_lines(self) -> None:
        """Long texts are wrapped between words, and a rule's next step is shown once."""
        finding = {"severity": "high", "rule": "crashes", "next": "see the table", "text": "<0.1.0> crashed: badarg"}
        found = [{**finding, "text": 11 * "atom_no_9," + "atom,last"}, finding,
                 {**finding, "severity": "medium", "text": 10 * "nine-char " + "and \x1b[2J the end"},
                 {**finding, "severity": "low", "rule": "other", "text": 200 * "x"},
                 {**finding, "severity": "low", "text": "x" + 11 * "atom_no_9,"}]
        self.assertEqual(["Findings",
                          "  high    " + 11 * "atom_no_9,",
                          "          atom,last",
                          "          next: see the table",
                          "  high    <0.1.0> crashed: badarg",
                          "  medium  " + 10 * "nine-char " + "and",
                          "          \\x1b[2J the end",
                          "  low     " + 110 * "x",
                          "          " + 90 * "x",
                          "          next: see the table",
                          "  low     x" + 10 * "atom_no_9,",
                          "          atom_no_9,"], findings_text(found).split("\n"))
