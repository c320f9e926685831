"""Files and folders that the command makes."""
import concurrent.futures
import os
import stat
import tempfile
import unittest

from dyntrace_command.failures import Failure
from dyntrace_command.files import numbered_folder


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


if __name__ == "__main__":
    unittest.main()
