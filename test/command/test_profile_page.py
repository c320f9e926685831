"""The page of a profile: its data, also of profiles that are compared, and of deep stacks."""
import collections
import json
import unittest
from typing import Any

from dyntrace_command.profiling.profile_files import Taken, page
from dyntrace_command.profiling.sample_paths import Path


class ProfilePage(unittest.TestCase):
    """What the page reads."""

    def test_compared_page(self) -> None:
        """An earlier profile of half as many samples: its pids differ, one function is new, one is gone."""
        old = collections.Counter({("<0.7.0> shop", "a:b/1"): 2, ("<0.8.0> shop", "a:gone/0"): 1, ("<0.9.0>",): 1})
        now = collections.Counter({Path("<0.70.0> shop", "", ("a:b/1 (last saved)", "a:new/0")): 6,
                                   Path("<0.71.0>", "", ()): 2})
        text = page(now, Taken("t", 1, 8, compared_to=old))
        data = json.JSONDecoder().raw_decode(text, text.index('{"title"'))[0]

        def shown(node: Any) -> Any:
            return (node["name"], node["value"] // 10 ** 9, node["was"] // 10 ** 9, list(map(shown, node["children"])))
        self.assertEqual(("", 8, 8, [
            ("processes without a name", 2, 2, []),
            ("shop", 6, 6, [("a:b/1", 6, 4, [("a:new/0", 6, 0, [])])])]), shown(data["flame"]))
        self.assertEqual({"a:b/1": 4 * 10 ** 9, "a:gone/0": 2 * 10 ** 9, "processes without a name": 2 * 10 ** 9},
                         data["was"])

    def test_deep_page(self) -> None:
        """Stacks that are too deep for the encoder of JSON, in both profiles: the middle is left out."""
        deep = tuple(f"a:f{depth}/0" for depth in range(5000))
        now = collections.Counter({Path("<0.7.0> shop", "", deep): 1})
        for old in (None, collections.Counter({("<0.7.0> shop", *deep): 1})):
            text = page(now, Taken("t", 1, 8, compared_to=old))
            at = json.JSONDecoder().raw_decode(text, text.index('{"title"'))[0]["flame"]
            names = []
            while at["children"]:
                at, = at["children"]
                names.append(at["name"])
            self.assertEqual((301, "...", "a:f4999/0"), (len(names), names[150], names[-1]))
