"""The folders whose snapshots `dyntrace snapshot --list` shows."""
import os
import tempfile
import unittest

from dyntrace_command.cli.subcommands import snapshot_folders


class SnapshotFolders(unittest.TestCase):
    """The default folder, and those of services."""

    def test_folders(self) -> None:
        """The default folder comes first, whether or not there are services."""
        with tempfile.TemporaryDirectory() as folder:
            default, services = os.path.join(folder, "own"), os.path.join(folder, "services")
            self.assertEqual(snapshot_folders(default, services), [default])
            os.mkdir(services)
            self.assertEqual(snapshot_folders(default, services), [default])
            for name in ("shop", "bank"):
                os.mkdir(os.path.join(services, name))
            self.assertEqual(snapshot_folders(default, services),
                             [os.path.join(services, "bank"), os.path.join(services, "shop")])
            os.mkdir(default)
            self.assertEqual(snapshot_folders(default, services), [default])
