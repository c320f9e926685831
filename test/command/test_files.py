"""Files and folders that the command makes."""
import concurrent.futures
import os
import stat
import tempfile
import unittest
from typing import Callable, Iterator, Tuple
from unittest import mock

from dyntrace_command.failures import Failure
from dyntrace_command.files import checked_output, new_file, numbered_folder
from dyntrace_command.recording import check_recording


class Numbered(unittest.TestCase):
    """Folders of commands that begin in the same second."""

    def test_at_once(self) -> None:
        """Each has its own, which its owner alone can read."""
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as place:
            path = os.path.join(place, "recording")
            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                made = list(threads.map(numbered_folder, [path] * 8))
            self.assertEqual([path, *(f"{path}-{number}" for number in range(2, 9))], sorted(made))
            self.assertEqual({0o700}, {stat.S_IMODE(os.stat(folder).st_mode) for folder in made})

    def test_nowhere(self) -> None:
        """No number helps there."""
        with self.assertRaisesRegex(Failure, "not_writable"):
            numbered_folder("/proc/nowhere")


class Outputs(unittest.TestCase):
    """What is wrong with the place of a file is found before the work for it."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="dyntrace-test-")
        self.addCleanup(folder.cleanup)
        self.place = os.path.realpath(folder.name)

    def test_can_be_written(self) -> None:
        """The absolute path; nothing is left there, and what is there stays."""
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
        """Each with its own reason."""
        for path, why in ((self.place, "it is a folder"),
                          (f"{self.place}/no/page.html", f"there is no folder {self.place}/no"),
                          (f"{self.place}/{'x' * 300}.html", "File name too long"),
                          ("/proc/page.html", "No such file or directory")):
            with self.subTest(path), self.assertRaises(Failure) as raised:
                checked_output(path)
            self.assertIn(f"can't be written: {why}\n  next: write elsewhere", raised.exception.text)

    def test_same_second(self) -> None:
        """Each has a file of its own; it stays if somebody has written it."""
        page = f"{self.place}/page.html"
        with new_file(page) as first, new_file(page) as second:
            self.assertEqual((page, f"{self.place}/page-2.html"), (first, second))
            with open(second, "w", encoding="ascii") as file:
                file.write("page")
        self.assertEqual(["page-2.html"], os.listdir(self.place))

    def test_folder_was_removed(self) -> None:
        """The current one."""
        self.addCleanup(os.chdir, os.getcwd())
        os.mkdir(f"{self.place}/gone")
        os.chdir(f"{self.place}/gone")
        os.rmdir(f"{self.place}/gone")
        with self.assertRaisesRegex(Failure, "not_writable"):
            checked_output("page.html")


class Recordings(unittest.TestCase):
    """Why a folder has no recording."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="dyntrace-test-")
        self.addCleanup(folder.cleanup)
        self.place = os.path.realpath(folder.name)

    def failure(self, folder: str) -> Tuple[int, str]:
        """The exit status and the text."""
        with self.assertRaises(Failure) as raised:
            check_recording(folder)
        return raised.exception.status, raised.exception.text

    def test_causes(self) -> None:
        """Each apart."""
        self.assertIn(f"there is no folder {self.place}/no\n", self.failure(f"{self.place}/no")[1])
        self.assertIn(f"{self.place} is empty\n", self.failure(self.place)[1])
        os.mkdir(f"{self.place}/ust")
        self.assertIn(f"{self.place} is empty\n", self.failure(self.place)[1])
        with open(f"{self.place}/ust/other", "w", encoding="ascii"):
            pass
        self.assertIn(f"{self.place} has no recording of LTTng: ", self.failure(self.place)[1])
        self.assertIn("other is a file; ", self.failure(f"{self.place}/ust/other")[1])
        with open(f"{self.place}/ust/metadata", "w", encoding="ascii"):
            pass
        check_recording(self.place)

    def test_not_allowed(self) -> None:
        """A folder below it is closed. Root may read all."""
        refusal = PermissionError(13, "Permission denied", self.place)

        def walk(_: str, onerror: Callable[[OSError], None]) -> Iterator[object]:
            onerror(refusal)
            return iter(())
        with mock.patch("os.walk", walk):
            status, text = self.failure(self.place)
        self.assertEqual(3, status)
        self.assertIn(f"{self.place} can't be read: Permission denied; it belongs to ", text)
        self.assertIn(f"\n  next: look at it as its owner or as root: `sudo dyntrace view {self.place}`", text)


if __name__ == "__main__":
    unittest.main()
