"""The tools of `dyntrace mcp` and the messages of the protocol."""
import json
import os
import subprocess
import sys
import unittest
from typing import Any, Dict, List
from unittest import mock

from dyntrace_command.common.json_output import schema
from dyntrace_command.host.execution import NO_ANSWER, Ended
from dyntrace_command.mcp import tools
from dyntrace_command.mcp.tools import TOOLS, InvalidArguments, call, command_line, input_schema, output_schema, result

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(tools.__file__)), "..", "..", "bin", "dyntrace")


def never() -> bool:
    """Nothing is cancelled."""
    return False


class Tools(unittest.TestCase):
    """Command lines and results."""

    def test_command_lines(self) -> None:
        """Values stay values: none is taken for an option."""
        for name, given, expected in (
                ("nodes", {}, "nodes --json"),
                ("top", {"node": "--exact", "rows": 3}, "top --json --seconds=3 --rows=3 -- --exact"),
                ("profile", {"wall": True, "seconds": 0.5, "process": "-x"},
                 "profile --json --seconds=0.5 --wall --process=-x"),
                ("profile", {"wall": False}, "profile --json --seconds=5"),
                ("request", {"label": "17", "node": "shop"}, "request --json --seconds=30 -- shop 17"),
                ("report", {"nodes": ["a", "b"]}, "report --json --seconds=10 -- a b"),
                ("report", {"seconds": 2, "node": "-a"}, "report --json --seconds=2 -- -a"),
                ("compare", {"after": "-b", "before": "a"}, "compare --json -- a -b"),
                ("snapshot_list", {"output": "/x"}, "snapshot --list --json --output=/x")):
            self.assertEqual(expected, " ".join(command_line(TOOLS[name], given)))

    def test_invalid(self) -> None:
        """Arguments that the input schema does not allow."""
        invalid: List[Any] = [
            ("stacks", {}), ("stacks", []), ("stacks", {"node": 7}), ("stacks", {"node": "a\0"}),
            ("top", {"exact": True}), ("top", {"seconds": 61}), ("top", {"seconds": True}), ("top", {"sort": "sent"}),
            ("top", {"rows": 1.5}), ("report", {"nodes": "shop"}), ("report", {"nodes": [7]}),
            ("report", {"node": ["a"]}), ("report", {"node": "a", "nodes": ["b"]}), ("stacks", {"nodes": ["a"]}),
            ("report", {"load": True}),
            ("stacks", {"node": "\ud800"}), ("top", {"seconds": -1}), ("request", {"node": "shop"}),
            ("request", {"label": "42", "next": "m:f"}), ("report", {"contents": "full"}),
            ("profile", {"output": "/x"}), ("stacks", {"node": "x" * 2000})]
        for name, given in invalid:
            with self.assertRaises(InvalidArguments, msg=str(given)):
                command_line(TOOLS[name], given)
            self.assertTrue(call(TOOLS[name], given, never)["isError"])

    def test_schemas(self) -> None:
        """Required arguments, limits, and what a tool says about its own arguments."""
        self.assertEqual(["node"], input_schema(TOOLS["stacks"])["required"])
        top = input_schema(TOOLS["top"])
        for name, tool in TOOLS.items():
            found = output_schema(tool)
            for one in found.get("oneOf", [found]):
                self.assertIn("rows_left_out", one["properties"], name)
            self.assertNotIn("rows_left_out", json.dumps(schema(tool.words[0])))
        self.assertEqual((40, ["reductions", "queue", "memory", "growth"], []),
                         (top["properties"]["seconds"]["maximum"], top["properties"]["sort"]["enum"], top["required"]))

    def test_results(self) -> None:
        """A result of a command, its errors, and commands without a result."""
        for ended, expected in (
                (Ended(0, '{"nodes": []}', "a\nb"), (False, '{"nodes": []}', "a / b")),
                (Ended(5, '{"error": {"name": "no_vm"}}', "x"), (True, '{"error": {"name": "no_vm"}}')),
                (Ended(1, '{"nodes": []}', ""), (False, '{"nodes": []}')),
                (Ended(-9, "", "it\x1b[2J"),
                 (True, "the command exited with status -9 and returned no result. it\\x1b[2J")),
                (Ended(NO_ANSWER, "", ""), (True, "the command was stopped because it did not finish within 90 s. "))):
            with mock.patch.object(tools, "run", lambda *_, ended=ended, **__: ended):
                found = call(TOOLS["nodes"], {}, never)
            self.assertEqual(expected, (found["isError"], *(part["text"] for part in found["content"])))
        with mock.patch.object(tools, "run", lambda *_, **__: Ended(1, "", "")):
            self.assertTrue(call(TOOLS["top"], {}, never)["isError"])

    def test_size(self) -> None:
        """Lists of objects are cut until the result is small enough, and what is left out is counted; other lists are
        whole."""
        rows = [{"name": "x" * 1000, "steps": list(range(100))} for _ in range(200)]
        found = result({"of": {"rows": rows}}, "")
        self.assertEqual(20, len(found["structuredContent"]["of"]["rows"]))
        self.assertEqual({"of.rows": 180}, found["structuredContent"]["rows_left_out"])
        self.assertEqual([json.dumps(found["structuredContent"])], [part["text"] for part in found["content"]])
        frames = [{"processes": [{"pid": "x"}] * 60}] * 2
        self.assertEqual({"frames.processes": 20}, result({"frames": frames}, "")["structuredContent"]["rows_left_out"])
        self.assertEqual(["nodes"], list(result({"nodes": rows[:2]}, "")["structuredContent"]))
        self.assertEqual(100, len(found["structuredContent"]["of"]["rows"][0]["steps"]))
        self.assertTrue(result({"text": "x" * 70000}, "")["isError"])


class Messages(unittest.TestCase):
    """The protocol, without a client."""

    def setUp(self) -> None:
        self.server = subprocess.Popen([sys.executable, "-IS", PROGRAM, "mcp"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, universal_newlines=True)

    def tearDown(self) -> None:
        assert self.server.stdin and self.server.stdout
        self.server.stdin.close()
        self.assertEqual(0, self.server.wait(20))
        self.server.stdout.close()

    def asked(self, *lines: str) -> List[Dict[str, Any]]:
        """Returns the answers to these messages, and to a last ping."""
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write("\n".join([*lines, '{"id": "end", "method": "ping"}']) + "\n")
        self.server.stdin.flush()
        found: List[Dict[str, Any]] = []
        while not found or found[-1]["id"] != "end":
            found.append(json.loads(self.server.stdout.readline()))
        return found[:-1]

    def test_errors(self) -> None:
        """Messages that are not requests, and requests that the server does not have."""
        for line, code in (("nonsense", -32700), ("[" * 100000, -32700), ("[]", -32600), ('{"id": 1}', -32600),
                           ('{"id": [], "method": "ping"}', -32600), ('{"id": 1, "method": "x"}', -32601),
                           ('{"id": 1, "method": "tools/call", "params": 7}', -32602),
                           ('{"id": 1, "method": "tools/call", "params": {"name": []}}', -32602),
                           ("x" * (2 << 20), -32600)):
            self.assertEqual([code], [answer["error"]["code"] for answer in self.asked(line)], line[:60])
        self.asked('{"id": 1, "method": "tools/call", "params": {"name": "stacks", "id": {}}}')
        assert self.server.stdout
        answer = json.loads(self.server.stdout.readline())
        self.assertEqual((1, True), (answer["id"], answer["result"]["isError"]))
        self.assertEqual([], self.asked('{"method": "notifications/initialized"}', '{"id": 1, "result": {}}', ""))

    def test_versions(self) -> None:
        """The client's version, or the latest one."""
        for wanted, expected in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
            request = {"id": 1, "method": "initialize", "params": {"protocolVersion": wanted}}
            self.assertEqual([expected], [answer["result"]["protocolVersion"]
                                          for answer in self.asked(json.dumps(request))])

    def test_end(self) -> None:
        """The end of the input ends a running tool."""
        self.asked('{"id": 1, "method": "tools/call", "params": {"name": "top", "arguments": {"seconds": 40}}}')
