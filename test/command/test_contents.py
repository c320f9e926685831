"""The texts of triggers: how an exit reason or a log line is shown."""
import os
import random
import time
import unittest
from unittest import mock

from dyntrace_command.common.contents import hide
from dyntrace_command.common.trigger_causes import CAUSES
from dyntrace_command.recording.triggers import Triggers

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/contents.tsv")


class Contents(unittest.TestCase):
    """The shape of binaries, strings and long numbers."""

    def test_examples(self) -> None:
        """The same as in the viewer's output."""
        with open(EXAMPLES, encoding="utf-8") as file:
            examples = [line.rstrip("\n").split("\t") for line in file]
        self.assertGreater(len(examples), 20)
        for text, shape in examples:
            with self.subTest(text):
                self.assertEqual(shape, hide(text))

    def test_keys(self) -> None:
        """A key of random bytes is never shown, wherever its text is cut."""
        chance = random.Random(17)
        for _ in range(200):
            key = [chance.randrange(100, 256) for _ in range(40)]
            for form in ("{key,<<%s>>}", "{key,[%s]}", "crashed: {{a,<<%s>>},[{m,f,1,[]}]}"):
                text = form % ",".join(map(str, key))
                shown = hide(text[:chance.randrange(text.index("<<") + 12 if "<<" in text else 20, len(text))] + "...")
                self.assertNotRegex(shown, r"\d{3},\d{3}")

    def test_hostile(self) -> None:
        """Long texts with unclosed parts are read in linear time."""
        begun = time.process_time()
        for text in ("<<", '<<"', '"\\', "1,", "-----BEGIN", "#Ref<", "{file,\"", "a1", "<1."):
            hide(text * 20000)
        self.assertLess(time.process_time() - begun, 5)

    def test_triggers(self) -> None:
        """The text of a cause, which the recorder prints and writes to cause.json."""
        triggers = Triggers.__new__(Triggers)
        triggers.names, triggers.of = ["crash"], [(CAUSES["crash"], mock.Mock())]
        fired = triggers.parsed(b'["crash", ["<0.9.0>", "{key,<<48,130,4>>,13407807929942597}"]]')
        self.assertEqual("<0.9.0> {key,<<3 bytes>>,integer()}", fired.text if fired else None)
