"""The folders whose snapshots `dyntrace snapshot --list` shows."""
import argparse
import io
import os
import sys
import tempfile
import unittest
from typing import List
from unittest import mock

from dyntrace_command.cli.subcommands import parsed, snapshot_folders
from dyntrace_command.commands import snapshot
from dyntrace_command.common.failures import Failure
from dyntrace_command.recording.snapshots import Snapshot


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

    def test_without_option(self) -> None:
        """A folder without -o would be a host."""
        for words, hint in ([["night"], "`dyntrace snapshot --list -o night`"], [["./night"], "-o names a folder"],
                            [["-o", "-"], "`dyntrace snapshot --list -o FOLDER`"]):
            with mock.patch.object(sys, "stderr", io.StringIO()) as errors, self.assertRaises(SystemExit):
                parsed(["snapshot", "--list", *words])
            self.assertIn(hint, errors.getvalue())

    def test_unreadable(self) -> None:
        """A folder that can't be read does not hide the others, and the command fails at the end."""
        def snapshots(folder: str) -> List[Snapshot]:
            if folder.endswith("of_root"):
                raise PermissionError(13, "Permission denied", folder)
            return []

        with tempfile.TemporaryDirectory() as place:
            folders = [os.path.join(place, name) for name in ("of_root", "own")]
            for folder in folders:
                os.mkdir(folder)
            options = argparse.Namespace(list=True, folders=folders, output=None, json=False)
            with mock.patch.object(snapshot, "snapshots", snapshots), mock.patch.object(snapshot, "say") as said, \
                    mock.patch.object(snapshot, "print_table") as table:
                self.assertEqual(Failure("unlisted").status, snapshot.snapshot(options))
        table.assert_called_once()
        self.assertEqual([f"dyntrace: {folders[0]}: Permission denied", f"no recorder writes into {folders[1]}",
                          Failure("unlisted").text], [call.args[0] for call in said.call_args_list])
