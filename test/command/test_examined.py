"""What the command says of a recording, from the report's numbers."""
import unittest
from typing import Any, Dict, List, Optional, Tuple

from dyntrace_command.examined import Examined, lost_text, of_report
from dyntrace_command.recording import Recorded


def report(lost: Optional[int], gaps: List[Optional[int]], *names: str) -> Dict[str, Any]:
    """A report in JSON with these processes, which were there before."""
    return {"recording": {"events": 17, "lost_events": lost, "lost": [{"count": gap} for gap in gaps]},
            "processes": [{"process": {"name": name}, "initial": "", "began": None} for name in names]}


class Numbers(unittest.TestCase):
    """The terminal says of lost events what the pictures say."""

    def test_lost(self) -> None:
        """None, a number, an unknown one of a flight recorder, and both."""
        cases: List[Tuple[Optional[int], List[Optional[int]], str]] = [
            (0, [], "0"), (251, [251], "251"), (None, [None], "an unknown number"), (7, [7, None], "more than 7")]
        for lost, gaps, text in cases:
            with self.subTest(text):
                self.assertEqual(text, of_report(report(lost, gaps, "init")).lost_text())
        self.assertEqual("?", lost_text(None))

    def test_names(self) -> None:
        """One is enough; who was spawned meanwhile has an initial call in any case."""
        self.assertEqual(Examined(17, 0, False, True), of_report(report(0, [], "", "init")))
        self.assertFalse(of_report(report(0, [], "", "")).has_names)
        self.assertTrue(of_report(report(0, [])).has_names)
        spawned = report(0, [], "")
        spawned["processes"].append({"process": {"name": ""}, "initial": "shop:init/1", "began": 5})
        self.assertFalse(of_report(spawned).has_names)

    def test_summary(self) -> None:
        """What has to be said comes first."""
        self.assertEqual("no names\nrecorded: 17 events, lost 0, 1.5 kB",
                         Recorded(17, "0", 1500, ["no names"]).summary())
        self.assertEqual("recorded: lost ?", Recorded(None, "?", None, []).summary())


if __name__ == "__main__":
    unittest.main()
