"""The man page and the completion, which tools/from_parser makes."""
import os
import re
import shutil
import subprocess
import unittest
from typing import List

from dyntrace_command.cli.subcommands import SUBCOMMANDS
from dyntrace_command.common.outputs import SINKS

PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def made(template: str) -> str:
    """Returns what the tool makes of a template."""
    return subprocess.run([os.path.join(PROJECT, "tools", "from_parser"),
                           os.path.join(PROJECT, "priv", "share", template)],
                          check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def options_of(name: str) -> List[str]:
    """Returns all names of a subcommand's options."""
    return [option for of in SUBCOMMANDS[name].arguments for option in of.names if option.startswith("-")]


class ManPage(unittest.TestCase):
    """The man page."""

    def setUp(self) -> None:
        self.page = made("dyntrace.1.in")

    def test_all(self) -> None:
        """Each subcommand has a section with all of its options; nothing of the template is left."""
        sections = dict(re.findall(r"^\.SS dyntrace (\w+)(.*?)(?=^\.S[SH])", self.page, re.M | re.S))
        self.assertEqual(set(SUBCOMMANDS), set(sections))
        for name, section in sections.items():
            found = re.findall(r"^\.TP\n(.*)", section, re.M)
            listed = [option.replace("\\", "") for line in found
                      for option in re.findall(r"\\fB((?:\\-|[a-z])+)", line)]
            self.assertEqual(options_of(name), listed)
        for extension in SINKS:
            self.assertIn(extension + ":", sections["view"])
        self.assertNotRegex(self.page, r'(?m)^\.\\" @')

    def test_roff(self) -> None:
        """Programs that show man pages read it without warnings."""
        checks = [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]]
        checks = [check for check in checks if shutil.which(check[0])]
        if not checks:
            self.skipTest("neither groff nor mandoc is here")
        for check in checks:
            done = subprocess.run(check, input=self.page, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, check=False)
            self.assertEqual((0, ""), (done.returncode, done.stdout), check[0])


class Completion(unittest.TestCase):
    """The completion of bash."""

    def setUp(self) -> None:
        self.text = made("dyntrace.bash.in")
        # Called instead of the command, for the names of scripts and nodes.
        self.text += '\ndyntrace() { [ "$1" = run ] && echo "exits  What exits." || echo "PID"; }\n'

    def words(self, *line: str) -> List[str]:
        """Returns what bash offers for the last word of a command line, of which `dyntrace` is left out."""
        script = self.text + 'COMP_WORDS=(dyntrace "$@"); COMP_CWORD=$#; _dyntrace; printf "%s\\n" "${COMPREPLY[@]}"'
        return subprocess.run(["bash", "-c", script, "bash", *line], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True, cwd=PROJECT).stdout.split()

    def test_all(self) -> None:
        """Each subcommand has all of its options."""
        self.assertEqual(sorted([*SUBCOMMANDS, "--help", "--version"]), sorted(self.words("")))
        self.assertEqual(["record", "relay", "report", "request"], self.words("re"))
        for name in SUBCOMMANDS:
            long = [option for option in options_of(name) if option.startswith("--")]
            self.assertEqual([*long, "--help"], self.words(name, "-"))

    def test_values(self) -> None:
        """Words of an option; files and folders; nothing where anything may follow."""
        for line, expected in [(["view", "x", "--what", ""], ["calls", "waits"]), (["top", "--sort", "q"], ["queue"]),
                               (["record", "--when", "cr"], ["crash"]), (["report", "--events", "al"], ["all"]),
                               (["view", "-o", "READ"], ["README.md"]), (["record", "-o", "viewe"], ["viewer"]),
                               (["report", "--keep", "viewe"], ["viewer"]), (["record", "--keep", ""], []),
                               (["top", "--seconds", ""], []), (["view", "viewe"], ["viewer"]),
                               (["run", ""], ["exits"]), (["run", "./READ"], ["./README.md"])]:
            self.assertEqual(expected, self.words(*line), line)
