"""The start of the program: where it imports from, which files it leaves, which subcommands it has."""
import importlib
import inspect
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import unittest
from typing import Dict, List, Optional, Tuple

import dyntrace_command
from dyntrace_command.cli.subcommands import SUBCOMMANDS
from dyntrace_command.host.tools import own_version
from hostile import new_place

PACKAGE = pathlib.Path(dyntrace_command.__file__).resolve().parent
PROGRAM = PACKAGE.parent.parent / "bin" / "dyntrace"
DESCRIPTION = PROGRAM.parent.parent.parent / "src" / "dyntrace.app.src"
HELP = (0, f"dyntrace {own_version()}\n", "")
NOBODY = 65534


class Installed(unittest.TestCase):
    """A copy of the program, as in priv."""

    def setUp(self) -> None:
        self.place = pathlib.Path(new_place(self))
        # Other users may read it, unlike what new_place makes.
        self.place.chmod(0o755)
        self.own = self.place / "priv"
        (self.own / "bin").mkdir(parents=True)
        self.program = pathlib.Path(shutil.copy2(str(PROGRAM), str(self.own / "bin")))
        shutil.copytree(str(PACKAGE), str(self.own / "python" / PACKAGE.name),
                        ignore=shutil.ignore_patterns("__pycache__"))
        (self.place / "src").mkdir()
        shutil.copy2(str(DESCRIPTION), str(self.place / "src"))
        self.traps = self.place / "traps"
        self.traps.mkdir()

    def trap(self, folder: pathlib.Path) -> None:
        """Modules with the names of Python's and the package's modules, which report that they were imported."""
        for name in ("json", "typing", "argparse", "stat", "os", "sys", "subprocess", "site", "sitecustomize",
                     "failures", "dyntrace", "dyntrace_command"):
            (folder / f"{name}.py").write_text(f"raise SystemExit('trapped by {name}')\n")

    def run_program(self, program: Optional[pathlib.Path] = None, argument: str = "--version",
                    environment: Optional[Dict[str, str]] = None, uid: int = 0) -> Tuple[int, str, str]:
        """(exit status, output, messages) of the program, run in the folder of the traps."""
        def become() -> None:
            if uid:
                os.setgid(uid)
                os.setuid(uid)
        done = subprocess.run([str(program or self.program), argument], cwd=str(self.traps), check=False,
                              env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              preexec_fn=become)
        return done.returncode, done.stdout, done.stderr

    def files(self) -> List[str]:
        """All files of the copy."""
        return sorted(str(path.relative_to(self.own)) for path in self.own.rglob("*"))

    def test_through_links(self) -> None:
        """Through a link to the program, and a link to its folder."""
        for link, target in (("dyntrace-link", self.program), ("folder", self.own)):
            (self.place / link).symlink_to(target)
        for program in (self.place / "dyntrace-link", self.place / "folder" / "bin" / "dyntrace"):
            with self.subTest(program):
                self.assertEqual(HELP, self.run_program(program))

    def test_below_a_prefix(self) -> None:
        """Installed as by `make install`."""
        (self.own / "lib" / "dyntrace").mkdir(parents=True)
        (self.own / "python").rename(self.own / "lib" / "dyntrace" / "python")
        (self.place / "src" / DESCRIPTION.name).rename(self.own / "lib" / "dyntrace" / DESCRIPTION.name)
        self.assertEqual(HELP, self.run_program())

    def test_in_a_release(self) -> None:
        """A release has the application's description, but not its source."""
        (self.place / "src").rename(self.place / "ebin")
        (self.place / "ebin" / DESCRIPTION.name).rename(self.place / "ebin" / "dyntrace.app")
        self.assertEqual(HELP, self.run_program())

    def test_without_description(self) -> None:
        """A pipe in its place, which has no writer, does not delay the command."""
        (self.place / "src" / DESCRIPTION.name).unlink()
        self.assertEqual((0, "dyntrace unknown\n", ""), self.run_program())
        os.mkfifo(str(self.place / "src" / DESCRIPTION.name))
        self.assertEqual((0, "dyntrace unknown\n", ""), self.run_program())

    def test_imports_nothing_else(self) -> None:
        """It does not import from the current folder, the program's folder, PYTHONPATH, or the user's folder."""
        self.trap(self.traps)
        self.trap(self.program.parent)
        self.trap(self.own)
        site = self.traps / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        site.mkdir(parents=True)
        self.trap(site)
        (site / "evil.pth").write_text("import os; os.write(2, b'trapped by evil.pth')\n")
        for path in (".", "", str(self.traps)):
            environment = {"PYTHONPATH": path, "PYTHONUSERBASE": str(self.traps), "PYTHONSTARTUP": "json.py"}
            for argument in ("--version", "nodes"):
                with self.subTest(path=path, argument=argument):
                    _, printed, messages = self.run_program(argument=argument, environment=environment)
                    self.assertNotIn("trapped", printed + messages)
                    self.assertNotIn("Traceback", messages)

    def test_hides_no_module(self) -> None:
        """The folder that it imports from contains only the package."""
        self.assertEqual([PACKAGE.name], [path.name for path in PACKAGE.parent.iterdir()])

    def test_leaves_nothing(self) -> None:
        """No subcommand leaves compiled modules."""
        before = self.files()
        for argument in ("--version", "nodes", "run"):
            self.run_program(argument=argument)
        self.assertEqual(before, self.files())

    def test_read_only(self) -> None:
        """As root, who may write the files, and as another user, who may not."""
        for path in [self.own, *self.own.rglob("*")]:
            path.chmod(0o555 if path.is_dir() or path == self.program else 0o444)
        self.assertEqual(HELP, self.run_program())
        if os.geteuid() == 0:
            self.assertEqual(HELP, self.run_program(uid=NOBODY))
        for path in [self.own, *self.own.rglob("*")]:
            path.chmod(0o755)

    def test_where_all_users_may_write(self) -> None:
        """A package that another user may have written is not run."""
        self.own.chmod(0o1777)
        status, printed, messages = self.run_program()
        self.assertEqual((4, ""), (status, printed))
        self.assertIn(f", or all users may write to {self.own}\n  next: install the whole command", messages)

    def test_alone(self) -> None:
        """Without its package."""
        shutil.rmtree(str(self.own / "python"))
        status, printed, messages = self.run_program()
        self.assertEqual((4, ""), (status, printed))
        self.assertIn(f"is not in {self.own}/python or {self.own}/lib/dyntrace/python, ", messages)


class Table(unittest.TestCase):
    """The table of subcommands."""

    def test_functions(self) -> None:
        """Each row's function exists and takes the options."""
        for name, row in SUBCOMMANDS.items():
            with self.subTest(name):
                module, function = row.function.split(".")
                found = getattr(importlib.import_module(f"dyntrace_command.{row.package}.{module}"), function)
                self.assertEqual(["options"], list(inspect.signature(found).parameters))

    def test_modules(self) -> None:
        """Each module of a subcommand has a row."""
        modules = {path.stem for path in (PACKAGE / "commands").glob("*.py")} - {"__init__"}
        self.assertEqual(modules, {row.function.split(".")[0] for row in SUBCOMMANDS.values()
                                   if row.package == "commands"})

    def test_program_is_executable(self) -> None:
        """All users may execute it."""
        self.assertEqual(0o555, stat.S_IMODE(PROGRAM.stat().st_mode) & 0o555)


class Streams(unittest.TestCase):
    """Standard streams whose encoding lacks characters."""

    def test_escapes(self) -> None:
        """Characters are escaped instead of raising an error. In isolated mode, Python takes the encoding only from the
        locale."""
        line = "from dyntrace_command.cli.main import open_streams; open_streams(); print('caf\\xe9 \\u2192')"
        for encoding, expected in (("ascii", b"caf\\xe9 \\u2192\n"), ("latin-1", b"caf\xe9 \\u2192\n")):
            environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(PACKAGE.parent),
                           "PYTHONDONTWRITEBYTECODE": "1"}
            with self.subTest(encoding):
                self.assertEqual(expected, subprocess.check_output([sys.executable, "-c", line], env=environment))
