"""The files that root writes and removes below a root folder that a container controls."""
import os
import subprocess
import unittest
from typing import List
from unittest import mock

from hostile import Pretender, new_place

from dyntrace_command.host.process import Process
from dyntrace_command.node.load_folder import LoadFolder, is_for, leftovers, new_name, why_not

FILES = ("dyntrace-0.1.0/ebin/dyntrace.beam", "dyntrace-0.1.0/priv/dyntrace.so")


class Below(unittest.TestCase):
    """A process whose root is a separate folder."""

    def setUp(self) -> None:
        folder = new_place(self)
        self.outside = os.path.join(folder, "outside")
        os.mkdir(self.outside)
        self.evil = Pretender(os.path.join(folder, "process"))
        os.mkdir(self.evil.in_root("tmp"))
        self.name = new_name(self.evil.process)

    def place(self) -> LoadFolder:
        """A folder below its /tmp."""
        place = LoadFolder(self.evil, "/tmp", self.name)
        self.addCleanup(place.close)
        return place

    def filled(self) -> LoadFolder:
        """The same, with files."""
        place = self.place()
        place.fill({path: b"library" for path in FILES})
        return place

    def there(self) -> List[str]:
        """All files below the process's root."""
        return sorted(os.path.relpath(os.path.join(path, name), self.evil.in_root(""))
                      for path, _, names in os.walk(self.evil.in_root("")) for name in names)

    def test_files(self) -> None:
        """Only the process's user can read the files; nothing remains."""
        place = self.filled()
        self.assertEqual([f"tmp/{self.name}/{path}" for path in FILES], self.there())
        for path, folders, names in os.walk(self.evil.in_root(place.path)):
            for name in [".", *folders]:
                self.assertEqual(0o700, os.stat(os.path.join(path, name)).st_mode & 0o7777)
            for name in names:
                self.assertEqual(0o600, os.stat(os.path.join(path, name)).st_mode & 0o7777)
        self.assertEqual(["dyntrace"], place.modules())
        place.remove()
        self.assertEqual([], os.listdir(self.evil.in_root("tmp")))
        self.assertEqual([], place.modules())

    def test_what_is_there(self) -> None:
        """A folder or a link of that name already exists."""
        path = self.evil.in_root(f"tmp/{self.name}")
        os.mkdir(path)
        with self.assertRaises(FileExistsError):
            self.filled()
        os.rmdir(path)
        os.symlink(self.outside, path)
        with self.assertRaises(FileExistsError):
            self.filled()
        self.assertEqual([], os.listdir(self.outside))

    def test_parent_that_leads_out(self) -> None:
        """The parent leads to the folder with that path inside the root: here to itself."""
        os.rmdir(self.evil.in_root("tmp"))
        os.symlink(self.outside, self.evil.in_root("tmp"))
        with self.assertRaises(OSError):
            self.place()
        self.assertIsNotNone(why_not(self.evil, "/tmp"))
        self.assertEqual([], os.listdir(self.outside))

    def test_exchanged(self) -> None:
        """A link in place of the folder, and links in it: their targets stay."""
        kept = os.path.join(self.outside, "dyntrace.beam")
        with open(kept, "wb"):
            pass
        path = self.evil.in_root(f"tmp/{self.name}")
        os.symlink(self.outside, path)
        with self.assertRaises(OSError):
            self.place().remove()
        os.unlink(path)
        os.mkdir(path)
        os.symlink(self.outside, path + "/ebin")
        with self.assertRaises(OSError):
            self.place().remove()
        self.assertTrue(os.path.exists(kept))

    def test_what_is_not_ours(self) -> None:
        """Files of other users stay, with their folder; a folder of another user is not touched."""
        place = self.filled()
        self.evil.has(f"{place.path}/passwd", b"")
        with self.assertRaises(OSError):
            place.remove()
        self.assertEqual([f"tmp/{self.name}/passwd"], self.there())
        with mock.patch("os.geteuid", return_value=os.geteuid() + 1), self.assertRaises(PermissionError):
            place.remove()

    def test_other_folders(self) -> None:
        """Files in unexpected subfolders stay; a folder that is not new is not filled."""
        place = self.filled()
        self.evil.has(f"{place.path}/lib/dyntrace.beam", b"")
        with self.assertRaises(OSError):
            place.remove()
        self.assertEqual([f"tmp/{self.name}/lib/dyntrace.beam"], self.there())
        with mock.patch("os.mkdir"), self.assertRaises(OSError):
            place.fill({path: b"library" for path in FILES})
        self.assertEqual([f"tmp/{self.name}/lib/dyntrace.beam"], self.there())

    @unittest.skipIf(os.geteuid() != 0, "only root mounts")
    def test_mounted(self) -> None:
        """A user with a mount namespace has mounted another folder over it: the contents of that folder stay."""
        place = self.filled()
        kept = os.path.join(self.outside, "dyntrace-1", "ebin", "dyntrace.beam")
        os.makedirs(os.path.dirname(kept))
        with open(kept, "wb"):
            pass
        path = self.evil.in_root(place.path)
        for at in (path, path + "/dyntrace-0.1.0"):
            subprocess.run(["mount", "--bind", self.outside, at], check=True)
            try:
                with self.assertRaises(PermissionError):
                    place.remove()
            finally:
                subprocess.run(["umount", at], check=True)
        self.assertTrue(os.path.exists(kept))
        place.remove()

    def test_names(self) -> None:
        """A name belongs to one process."""
        self.assertTrue(is_for(self.name, self.evil.process))
        self.assertFalse(is_for(self.name, Process(1)))
        self.assertFalse(is_for("../" + self.name, self.evil.process))

    def test_leftovers(self) -> None:
        """Folders of processes that have ended, and of the node, unless a node has mapped their files."""
        ended = "dyntrace-load-1-99999999-0123abcd"
        other = new_name(Process(os.getppid()))
        for name in (self.name, other, ended, "dyntrace-load-x", "other"):
            os.mkdir(self.evil.in_root("tmp/" + name))
        both = {ended, self.name}
        for used in (both, {ended}, {self.name}, both - both):
            self.assertEqual(both - used, {place.name for place in leftovers(self.evil, self.evil.process, used)})

    def test_why_not(self) -> None:
        """Each reason why a folder can't be used."""
        self.assertIsNone(why_not(self.evil, "/tmp"))
        self.evil.has("/file", b"")
        self.assertEqual("it is not a folder", why_not(self.evil, "/file"))
        free = os.statvfs("/")
        for changed, reason in (({"f_flag": os.ST_RDONLY}, "read-only"), ({"f_flag": os.ST_NOEXEC}, "noexec"),
                                ({"f_bavail": 0}, "has 0 B free")):
            about = mock.Mock(**{"f_flag": 0, "f_bavail": free.f_bavail, "f_frsize": free.f_frsize, **changed})
            with self.subTest(reason), mock.patch("os.fstatvfs", return_value=about):
                self.assertRegex(why_not(self.evil, "/tmp") or "", reason)
