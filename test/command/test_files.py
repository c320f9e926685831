"""Files and folders that the command makes."""
import concurrent.futures
import glob
import os
import shutil
import stat
import tempfile
import unittest
from typing import Any, Callable, Optional, Tuple
from unittest import mock

from dyntrace_command.common.failures import Failure
from dyntrace_command.host import files
from dyntrace_command.host.files import (check_temporary, checked_output, new_file, new_folder, numbered_folder,
                                         private_folder, write_file)
from dyntrace_command.recording.mirror import mirrored
from hostile import new_place


class Numbered(unittest.TestCase):
    """Folders of commands that begin in the same second."""

    def test_at_once(self) -> None:
        """Each command has its own folder, which only its owner can read."""
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as place:
            path = os.path.join(place, "recording")
            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                made = list(threads.map(numbered_folder, [path] * 8))
            self.assertEqual([path, *(f"{path}-{number}" for number in range(2, 9))], sorted(made))
            self.assertEqual({0o700}, {stat.S_IMODE(os.stat(folder).st_mode) for folder in made})

    def test_nowhere(self) -> None:
        """If the place is not writable, no other number is tried."""
        with self.assertRaisesRegex(Failure, "not_writable"):
            numbered_folder("/proc/nowhere")


@unittest.skipUnless(os.geteuid() == 0, "not root")
class Ways(unittest.TestCase):
    """Root makes no folder where another user could put a link in its place, before or while it is made."""

    def setUp(self) -> None:
        self.place = new_place(self)
        os.mkdir(f"{self.place}/theirs")
        os.mkdir(f"{self.place}/target", 0o700)

    def made_by(self) -> Tuple[Callable[[str], str], ...]:
        """Returns the functions that make folders."""
        return new_folder, numbered_folder, private_folder, lambda path: private_folder(path, may_pass=True)

    def test_invalid_user_of_sudo(self) -> None:
        """No other user is trusted then."""
        os.chown(f"{self.place}/theirs", 65534, -1)
        for user in ("", "x", "-1"):
            with self.subTest(user), mock.patch.dict(os.environ, SUDO_UID=user), \
                    self.assertRaisesRegex(Failure, "way_of_others"):
                new_folder(f"{self.place}/theirs/new")
        with mock.patch.dict(os.environ, SUDO_UID="65534"):
            new_folder(f"{self.place}/theirs/new")

    def test_of_another(self) -> None:
        """A folder of another user, and one that is world-writable, also further up; also through links."""
        os.makedirs(f"{self.place}/theirs/root")
        os.symlink(f"{self.place}/theirs", f"{self.place}/link")
        for mode, owner in ((0o755, 65534), (0o777, 0)):
            os.chmod(f"{self.place}/theirs", mode)
            os.chown(f"{self.place}/theirs", owner, -1)
            for make in self.made_by():
                for path in ("theirs/new", "theirs/root/new", "link/new"):
                    with self.subTest(make=make, path=path), self.assertRaisesRegex(Failure, "way_of_others"):
                        make(f"{self.place}/{path}")
            self.assertEqual(["root"], os.listdir(f"{self.place}/theirs"))
        os.chmod(f"{self.place}/theirs", 0o1777)
        for number, make in enumerate(self.made_by()):
            self.assertEqual(f"{self.place}/theirs/new{number}", make(f"{self.place}/theirs/new{number}"))

    def test_temporary(self) -> None:
        """Temporary files of root's command, and of its programs, are never in a folder of another user."""
        with mock.patch.dict(os.environ, {"TMPDIR": f"{self.place}/theirs"}):
            check_temporary()
            os.chown(f"{self.place}/theirs", 65534, -1)
            self.assertRaisesRegex(Failure, "temporary_of_others", check_temporary)
            os.environ["TMPDIR"] = f"{self.place}/target/../theirs"
            self.assertRaisesRegex(Failure, "temporary_of_others", check_temporary)

    def test_meanwhile(self) -> None:
        """A missing parent folder is made by another user, or as a link, before root makes it."""
        function = os.mkdir
        for number, make in enumerate(self.made_by()):
            above, target = f"{self.place}/above{number}", f"{self.place}/target/{number}"

            def taken(path: str, *arguments: int, **options: int) -> None:
                with mock.patch("os.mkdir", function):
                    if not os.path.lexists(above):  # pylint: disable=cell-var-from-loop
                        os.mkdir(target)  # pylint: disable=cell-var-from-loop
                        os.chown(target, 65534, -1)  # pylint: disable=cell-var-from-loop
                        os.symlink(target, above)  # pylint: disable=cell-var-from-loop
                    function(path, *arguments, **options)
            with self.subTest(make=make), mock.patch("os.mkdir", taken), self.assertRaises(Failure) as raised:
                make(f"{above}/new")
            self.assertIn(raised.exception.key, ("way_of_others", "not_writable"))

    def test_replaced(self) -> None:
        """The folder that was made is replaced afterwards."""
        for make in self.made_by():
            path, check = f"{self.place}/new", files.check_way

            def replaced(folder: str, made: Optional[int] = None) -> None:
                if made is not None:
                    os.rename(path, f"{self.place}/moved")  # pylint: disable=cell-var-from-loop
                    os.mkdir(path)  # pylint: disable=cell-var-from-loop
                check(folder, made)  # pylint: disable=cell-var-from-loop
            with self.subTest(make=make), mock.patch.object(files, "check_way", replaced), \
                    self.assertRaisesRegex(Failure, "way_of_others"):
                make(path)
            os.rmdir(path)
            os.rmdir(f"{self.place}/moved")


class Outputs(unittest.TestCase):
    """Problems with an output path are found before the work begins."""

    def setUp(self) -> None:
        self.place = new_place(self)

    def test_can_be_written(self) -> None:
        """Returns the absolute path; no file is left there, and an existing file is unchanged."""
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.place)
        self.assertEqual(f"{self.place}/page.html", checked_output("page.html"))
        self.assertEqual([], os.listdir(self.place))
        with open("page.html", "w", encoding="ascii") as file:
            file.write("old")
        self.assertEqual(f"{self.place}/page.html", checked_output("page.html"))
        with open("page.html", encoding="ascii") as file:
            self.assertEqual("old", file.read())
        self.assertEqual("-", checked_output("-"))
        self.assertEqual("/dev/full", checked_output("/dev/full"))

    def test_can_not(self) -> None:
        """Each path has a different reason."""
        for path, why in ((self.place, "it is a folder"),
                          (f"{self.place}/no/page.html", f"there is no folder {self.place}/no"),
                          (f"{self.place}/{'x' * 300}.html", "File name too long"),
                          ("/proc/page.html", "No such file or directory")):
            with self.subTest(path), self.assertRaises(Failure) as raised:
                checked_output(path)
            self.assertIn(f"can't be written: {why}\n  next: write elsewhere", raised.exception.text)

    def test_same_second(self) -> None:
        """Each command has its own file, which stays if it has been written."""
        page = f"{self.place}/page.html"
        with new_file(page) as first, new_file(page) as second:
            self.assertEqual((page, f"{self.place}/page-2.html"), (first, second))
            with open(second, "w", encoding="ascii") as file:
                file.write("page")
        self.assertEqual(["page-2.html"], os.listdir(self.place))

    def test_folder_was_removed(self) -> None:
        """The current folder was removed."""
        self.addCleanup(os.chdir, os.getcwd())
        os.mkdir(f"{self.place}/gone")
        os.chdir(f"{self.place}/gone")
        os.rmdir(f"{self.place}/gone")
        with self.assertRaisesRegex(Failure, "not_writable"):
            checked_output("page.html")


class Written(unittest.TestCase):
    """A file in a folder that another user may own."""

    def setUp(self) -> None:
        self.place = new_place(self)
        self.path = f"{self.place}/profile.html"
        self.addCleanup(os.umask, os.umask(0o077))

    def contents(self) -> str:
        """Returns the contents of the file."""
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def test_prepared(self) -> None:
        """Anything at the path is replaced, also a link; the mode follows the umask."""
        secret = f"{self.place}/secret"
        for name in ("file", "link", "nothing"):
            if name == "file":
                os.close(os.open(self.path, os.O_CREAT, 0o666))
                os.chmod(self.path, 0o666)
            elif name == "link":
                os.symlink(secret, self.path)
            with self.subTest(name):
                write_file(self.path, "profile é")
                self.assertEqual("profile é", self.contents())
                self.assertEqual(0o100600, os.lstat(self.path).st_mode)
                self.assertEqual(["profile.html"], os.listdir(self.place))
            os.unlink(self.path)

    def test_replaced_meanwhile(self) -> None:
        """The file is replaced before or after it gets its name, or its folder is: no success is reported, and no part
        is left."""
        rename = os.rename

        def before(part: str, name: str, **folders: int) -> None:
            os.unlink(f"{self.place}/{part}")
            with open(f"{self.place}/{part}", "w", encoding="ascii") as file:
                file.write("of another")
            rename(part, name, **folders)

        def after(part: str, name: str, **folders: int) -> None:
            rename(part, name, **folders)
            os.unlink(self.path)
            os.symlink("/etc/passwd", self.path)

        def folder(part: str, name: str, **folders: int) -> None:
            rename(self.place, self.place + ".taken")
            self.addCleanup(shutil.rmtree, self.place + ".taken")
            os.mkdir(self.place)
            rename(part, name, **folders)

        for attack in (before, after, folder):
            with self.subTest(attack.__name__), mock.patch("os.rename", attack), \
                    self.assertRaises(Failure) as raised:
                write_file(self.path, b"profile")
            self.assertIn("can't be written: ", raised.exception.text)
            self.assertEqual([], glob.glob(f"{self.place}/*.part"))

    def test_special(self) -> None:
        """A device is written to directly; a pipe of another user is not opened, because that would wait for a
        reader."""
        write_file("/dev/null", b"profile")
        with self.assertRaises(Failure) as raised:
            write_file("/dev/full", b"profile")
        self.assertIn("No space left", raised.exception.text)
        os.mkfifo(self.path)
        with mock.patch("os.stat", of_another), self.assertRaises(Failure) as raised:
            write_file(self.path, b"profile")
        self.assertIn("a device or a pipe of another user", raised.exception.text)

    def test_new_file(self) -> None:
        """An empty file that another process has put at the same path is not removed."""
        with new_file(self.path) as path:
            os.unlink(path)
            with open(path, "wb"):
                pass
        self.assertEqual(["profile.html"], os.listdir(self.place))


def of_another(*arguments: Any, **options: Any) -> os.stat_result:
    """Returns the status of a file, with another user as its owner."""
    found = os.lstat(*arguments, dir_fd=options["dir_fd"])
    return os.stat_result((*found[:4], 65534, *found[5:10]))


class Recordings(unittest.TestCase):
    """The reasons why a folder has no recording."""

    def setUp(self) -> None:
        self.place = new_place(self)

    def failure(self, folder: str) -> Tuple[int, str]:
        """The exit status and the text."""
        with self.assertRaises(Failure) as raised:
            with mirrored([folder]):
                self.fail("there is none")
        return raised.exception.status, raised.exception.text

    def test_causes(self) -> None:
        """Each cause has its own failure."""
        self.assertIn(f"no such folder: {self.place}/no\n", self.failure(f"{self.place}/no")[1])
        self.assertIn(f"{self.place} is empty\n", self.failure(self.place)[1])
        os.mkdir(f"{self.place}/ust")
        self.assertIn(f"{self.place} is empty\n", self.failure(self.place)[1])
        with open(f"{self.place}/ust/other", "w", encoding="ascii"):
            pass
        self.assertIn(f"no LTTng recording in {self.place}: ", self.failure(self.place)[1])
        self.assertIn("other is a file; ", self.failure(f"{self.place}/ust/other")[1])
        with open(f"{self.place}/ust/metadata", "w", encoding="ascii"):
            pass
        self.assertIn(f"no LTTng recording in {self.place}: ", self.failure(self.place)[1])
        with open(f"{self.place}/ust/metadata", "w", encoding="ascii") as file:
            file.write("text")
        with mirrored([self.place]) as mirror:
            self.assertEqual(["ust"], os.listdir(mirror.paths()[0]))

    def test_not_allowed(self) -> None:
        """A subfolder is not accessible. Root may read everything."""
        os.mkdir(f"{self.place}/ust")
        scandir = os.scandir

        def closed(path: str) -> Any:
            if path.startswith("/proc/") and os.readlink(path) == f"{self.place}/ust":
                raise PermissionError(13, "Permission denied", path)
            return scandir(path)
        with mock.patch("os.scandir", closed):
            status, text = self.failure(self.place)
        self.assertEqual(3, status)
        self.assertIn(f"{self.place}/ust can't be read: Permission denied; it belongs to ", text)
        self.assertIn(f"\n  next: view it as its owner or as root: `sudo dyntrace view {self.place}", text)
