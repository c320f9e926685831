"""How the command runs `lttng`, which is replaced by a script here."""
import os
import pwd
import time
import unittest
from typing import List, Optional, Tuple
from unittest import mock

from dyntrace_command.host.execution import NO_ANSWER
from dyntrace_command.tracers import lttng
from hostile import new_place

# Prints where it looks for the daemon, and makes its session the current one.
FAKE = """#!/bin/sh
echo "$LTTNG_HOME"
readlink "$LTTNG_HOME/.lttng"
echo session > "$LTTNG_HOME/.lttngrc"
"""

HANGS = """#!/bin/sh
echo "$LTTNG_HOME" > "$(dirname "$0")/home"
exec sleep 300
"""


class Create(unittest.TestCase):
    """`lttng create` does not change a user's current session, wherever temporary files are."""

    def setUp(self) -> None:
        self.folder = new_place(self)
        self.user = os.path.join(self.folder, "user's home")
        os.mkdir(self.user)

    def create(self, script: str = FAKE, **environment: str) -> Tuple[int, List[str]]:
        """Returns the status and the lines of the program. Empty variables are removed from the environment."""
        path = os.path.join(self.folder, "lttng")
        with open(path, "w", encoding="ascii") as file:
            file.write(script)
        os.chmod(path, 0o700)
        changed = {"LTTNG_HOME": "", "HOME": "", "TMPDIR": "", **environment}
        values = {name: value for name, value in {**os.environ, **changed}.items() if value}
        with mock.patch.dict(os.environ, values, clear=True), mock.patch.object(lttng, "tool", lambda _: path):
            status, output = lttng.Lttng().attempt("create", "session")
        return status, output.splitlines()

    def check(self, link: str, **environment: str) -> None:
        """Checks that the daemon is found through the link, and that nothing is left."""
        status, (home, found) = self.create(**environment)
        self.assertEqual((status, found), (0, link))
        self.assertFalse(os.path.exists(home))
        self.assertEqual(os.listdir(self.user), [])

    def test_home(self) -> None:
        """LTTNG_HOME, HOME, or the home of the user."""
        self.check(self.user + "/.lttng", LTTNG_HOME=self.user, HOME="/nowhere")
        self.check(self.user + "/.lttng", HOME=self.user)
        self.check(pwd.getpwuid(os.getuid()).pw_dir + "/.lttng")

    def test_no_temporary_folder(self) -> None:
        """TMPDIR may name a folder that does not exist."""
        for folder in (self.folder + "/none", "it's no/folder", self.folder):
            self.check(self.user + "/.lttng", HOME=self.user, TMPDIR=folder)

    def test_nowhere(self) -> None:
        """Without any usable folder, the user's own LTTng home is used."""
        tools = os.path.join(self.folder, "tools")
        os.mkdir(tools)
        with open(os.path.join(tools, "mktemp"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(os.path.join(tools, "mktemp"), 0o700)
        status, lines = self.create(LTTNG_HOME=self.user, PATH=f"{tools}:{os.environ['PATH']}")
        self.assertEqual((status, lines), (0, [self.user]))
        self.assertEqual(os.listdir(self.user), [".lttngrc"])

    def test_hangs(self) -> None:
        """A daemon that does not answer leaves neither a folder nor a waiting process."""
        with mock.patch.object(lttng, "ANSWERS_S", 1):
            self.assertEqual(self.create(HANGS, HOME=self.user)[0], NO_ANSWER)
        with open(os.path.join(self.folder, "home"), encoding="ascii") as file:
            home = file.read().strip()
        until = time.monotonic() + 10
        while os.path.exists(home) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(home))


class Daemons(unittest.TestCase):
    """Root looks for the daemons of the nodes' users."""

    @staticmethod
    def homes(*nodes: Tuple[int, str]) -> List[Tuple[Optional[int], str]]:
        """Returns the users and home folders of the daemons, for nodes with these users and home folders."""
        some = [mock.Mock(home=home, **{"process.uid.return_value": uid}) for uid, home in nodes]
        with mock.patch.object(os, "geteuid", lambda: 0):
            return [(daemon.uid, daemon.home) for daemon in lttng.daemons_of_users(some)]

    def test_homes(self) -> None:
        """A user whose nodes have different home folders may have a daemon in each. Root has one daemon."""
        self.assertEqual(self.homes((7, "/a"), (8, "/c"), (0, "/root"), (7, "/b"), (7, "/a")),
                         [(7, "/a"), (7, "/b"), (8, "/c")])

    def test_many_homes(self) -> None:
        """One user can't make root ask for any number of daemons, nor keep it from asking for those of others."""
        found = self.homes(*((7, f"/{number}") for number in range(1000)), (8, "/c"))
        self.assertEqual([uid for uid, _ in found], lttng.MOST_HOMES * [7] + [8])

    def test_ended(self) -> None:
        """A node that has ended meanwhile is left out."""
        ended = mock.Mock(home="/a", **{"process.uid.side_effect": FileNotFoundError})
        with mock.patch.object(os, "geteuid", lambda: 0):
            self.assertEqual(lttng.daemons_of_users([ended]), [])
