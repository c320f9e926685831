"""The folders whose snapshots `dyntrace snapshot --list` shows."""
import argparse
import os
import tempfile
import unittest
from unittest import mock

from dyntrace_command.cli.subcommands import snapshot_folders
from dyntrace_command.commands import snapshot
from dyntrace_command.common.failures import Failure


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

    def test_unreadable(self) -> None:
        """A folder that can't be read does not hide the others, and the command fails at the end."""
        shown = []

        def show_list(folder: str) -> None:
            shown.append(folder)
            if folder == "of_root":
                raise PermissionError(13, "Permission denied", folder)

        options = argparse.Namespace(list=True, folders=["of_root", "own"], output=None)
        with mock.patch.object(snapshot, "show_list", show_list), mock.patch.object(snapshot, "say") as said:
            with self.assertRaisesRegex(Failure, "unlisted"):
                snapshot.snapshot(options)
        self.assertEqual(shown, ["of_root", "own"])
        said.assert_called_once_with("dyntrace: of_root: Permission denied")
