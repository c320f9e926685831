"""The parameters of the sinks as options of `dyntrace view`."""
import os
import re
import subprocess
import tempfile
import unittest
import unittest.mock
from typing import Dict, List, Set, Tuple

from dyntrace_command.commands.view import of_rows
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.outputs import (PARAMS, SET_BY_COMMAND, SINKS, Param, checked, chosen, quoted, sink_of,
                                             written)
from dyntrace_command.host.tools import own_data
from dyntrace_command.recording.parquet import converted
from dyntrace_command.recording.snapshots import Snapshot


class Options(unittest.TestCase):
    """The parameters that options set, and refused options."""

    def test_values(self) -> None:
        """Each sink gets the parameters that its component has, in the form that the component reads."""
        cases: List[Tuple[str, Dict[str, List[str]], str]] = [
            ("x.mmd", {"--process": ["shop", "<0.9.0>"], "--limit": ["17"]}, 'processes="shop,<0.9.0>" limit=17'),
            ("x.mmd", {"--from": ["0.5"], "--to": ["2"]}, 'from="0.5" to="2"'),
            ("x.folded", {"--what": ["waits"], "--by": ["initial"]}, 'what="waits" by="initial"'),
            ("x.html", {"--messages": ["17"], "--rows": ["5"]}, "messages=17 processes=5"),
            ("x.pftrace", {"--messages": ["no"]}, 'messages="no"'),
            ("x.parquet", {"--release": ["1.4"], "--contents": ["full"]}, 'release="1.4" contents="full"'),
            ("-", {"--top": ["3"]}, "top=3")]
        for output, given, expected in cases:
            _, sink = sink_of(output)
            params = chosen(output, given)
            self.assertEqual(expected, " ".join(written(sink, name, value) for name, value in params.items()))

    def test_names_of_users(self) -> None:
        """A name stays one string in babeltrace2's parameters, regardless of its characters."""
        for text, expected in [('a"b', r'"a\"b"'), ("a\\", '"a\\\\"'), ('",path="/etc/x', r'"\",path=\"/etc/x"')]:
            self.assertEqual(expected, quoted(text))
            _, sink = sink_of("x.mmd")
            self.assertEqual("label=" + expected, written(sink, "label", text))

    def test_extensions(self) -> None:
        """The longest extension counts, so a profile for speedscope is not taken for the report as JSON."""
        for output, expected in [("x.speedscope.json", ".speedscope.json"), ("a.b.json", ".json"), ("-", ".txt"),
                                 ("folder.html/x.folded", ".folded")]:
            self.assertEqual(expected, sink_of(output)[0])

    def test_refused(self) -> None:
        """Parameters that an output format does not have, and invalid values, are refused."""
        for output, option, value, message in [
                ("x.html", "--process", "shop", "--process is for .mmd; .html has --title, --rows"),
                ("x.mmd", "--what", "waits", "--what is for .folded .speedscope.json; .mmd has --process"),
                ("x.folded", "--what", "wait", "'wait' must be one of calls, waits"),
                ("x.mmd", "--from", "soon", "invalid number of seconds: 'soon'"),
                ("x.mmd", "--limit", "0", "'0' must be a number from 1 to 100000"),
                ("x.html", "--messages", "no", "'no' must be a number from 0")]:
            with self.assertRaises(ValueError) as raised:
                chosen(output, {option: [value]})
            self.assertIn(message, str(raised.exception))
        with self.assertRaisesRegex(ValueError, "--label is given twice"):
            chosen("x.mmd", {"--label": ["1", "2"]})


class Components(unittest.TestCase):
    """The table agrees with the components' own parameters."""

    def test_all(self) -> None:
        """The options are those that `babeltrace2 help` lists, with their words and limits."""
        try:
            place = own_data("babeltrace2")
            listed = {sink.component: described(place, sink.component) for sink in SINKS.values()}
        except (Failure, OSError):
            self.skipTest("neither babeltrace2 nor the plugin is here")
        for component, has in listed.items():
            own = {param.name: param for param in PARAMS if param.component == component}
            self.assertEqual(set(has), set(own) | (SET_BY_COMMAND & set(has)), component)
            for name, param in own.items():
                self.check(param, has[name])

    def check(self, param: Param, expected: str) -> None:
        """Compares with the help: "one of calls, waits", "an integer from 1 to 200", "a boolean", "a string"."""
        if param.most:
            self.assertEqual(f"an integer from {param.least} to {param.most}", expected, param.option)
        elif param.words == ("yes", "no"):
            self.assertEqual("a boolean", expected, param.option)
        elif param.words:
            self.assertEqual("one of " + ", ".join(param.words), expected, param.option)
        else:
            self.assertEqual("a string", expected, param.option)
        for word in param.words:
            self.assertEqual(word, checked(param, word))


class Causes(unittest.TestCase):
    """The causes of snapshots, as a parameter of rows."""

    def test_length(self) -> None:
        """The causes of hundreds of snapshots fit into an argument of a program, even if all is quoted."""
        for text in ("a" * 400, "\u00e9" * 400, '"' * 400):
            of = [Snapshot("", "crash", f"shop@web{n}", 1.79e9 + n, text) for n in range(400)]
            for count in (1, 50, 400):
                params = of_rows([f"snapshots/{one.node}" for one in of[:count]], of[:count])
                self.assertLess(sum(len(quoted(value).encode()) for value in params.values()), 128 << 10)
                lines = [line.split("\t") for line in params["snapshots"].split("\n")]
                self.assertEqual([["1790000000000000000", "crash", "shop@web0"], count], [lines[0][:3], len(lines)])
                self.assertTrue(all(text.startswith(line[3]) and len(line[3]) > 30 for line in lines))
            self.assertEqual(text[:300], of_rows([], of[:1])["snapshots"].split("\t")[3])


class Parquet(unittest.TestCase):
    """The conversion by DuckDB."""

    def test_failure(self) -> None:
        """If it fails after it has read all rows, its message is reported, and no file is written."""
        with tempfile.TemporaryDirectory() as place, \
                unittest.mock.patch.dict(os.environ, {"PATH": f"{place}:{os.environ['PATH']}"}):
            program, output = os.path.join(place, "duckdb"), os.path.join(place, "x.parquet")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho 'IO Error: No space left' >&2\nexit 1\n")
            os.chmod(program, 0o700)
            with self.assertRaises(Failure) as raised, converted(output):
                pass
            self.assertEqual("IO Error: No space left", raised.exception.values["output"])
            self.assertFalse(os.path.exists(output))


def described(place: str, component: str) -> Dict[str, str]:
    """Returns the parameters in a component's help, with their possible values."""
    text = subprocess.run(["babeltrace2", f"--plugin-path={place}", "help", f"sink.dyntrace.{component}"], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    found: Set[Tuple[str, str]] = set(re.findall(r'^ +(\w+) \((.*?)(?:, "[^"]*" if it is not given)?\)$', text, re.M))
    return dict(found)
