"""Folders that another user changes while they are walked, read or removed."""
import contextlib
import os
import resource
import threading
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

from dyntrace_command.host import trees
from dyntrace_command.host.trees import (DEPTH_MOST, ENTRIES_MOST, folder_size, read_below, remove_empty, remove_tree,
                                         tree)
from dyntrace_command.recording.recording import EMPTY_BITS, has_events
from hostile import index_of, make_deep, new_place


class Trees(unittest.TestCase):
    """A folder of the test, and one beside it, whose contents must stay untouched."""

    def setUp(self) -> None:
        self.place = new_place(self)
        self.root, self.other = f"{self.place}/root", f"{self.place}/other"
        for path in (self.root, self.other):
            os.mkdir(path)
        self.write(f"{self.other}/secret", b"secret")

    def write(self, path: str, contents: bytes = b"x") -> str:
        """Writes a file; returns its path."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(contents)
        return path

    def walked(self) -> Dict[str, str]:
        """Returns the paths below the root, each with its description."""
        with tree(self.root) as walk:
            return {entry.path: entry.why_not for entry in walk}


class Walks(Trees):
    """Which entries are found, and which are not entered."""

    def test_found(self) -> None:
        """Files and folders, with their sizes; also hidden ones, and names that are not valid text."""
        self.write(f"{self.root}/a/b/c", b"123")
        self.write(f"{self.root}/.hidden")
        os.mkdir(os.fsencode(self.root) + b"/\xff\n")
        self.assertEqual({"a": "", "a/b": "", "a/b/c": "", ".hidden": "", "\udcff\n": ""}, self.walked())
        self.assertEqual(4, folder_size(self.root))
        with tree(self.root) as walk:
            self.assertEqual([b"12"], [entry.read(2) for entry in walk if entry.name() == "c"])
            self.assertEqual("", walk.stopped)

    def test_special(self) -> None:
        """Links, pipes and sockets are reported, and neither followed nor opened."""
        for name, target in (("self", "."), ("up", ".."), ("file", f"{self.other}/secret"), ("none", "none")):
            os.symlink(target, f"{self.root}/{name}")
        os.mkfifo(f"{self.root}/pipe")
        self.assertEqual({**dict.fromkeys(("self", "up", "file", "none"), "a link"), "pipe": "a pipe"}, self.walked())
        self.assertEqual(0, folder_size(self.root))

    def test_swapped(self) -> None:
        """A folder is replaced by a link after it was found, and a file before it is opened: the walk continues in the
        original folder, and reads the original file."""
        self.write(f"{self.root}/a/secret", b"own")
        read = []
        with tree(self.root) as walk:
            for entry in walk:
                if entry.path == "a":
                    os.rename(f"{self.root}/a", f"{self.place}/moved")
                    os.symlink(self.other, f"{self.root}/a")
                elif entry.path == "a/secret":
                    os.rename(f"{self.place}/moved/secret", f"{self.place}/moved/own")
                    os.symlink(f"{self.other}/secret", f"{self.place}/moved/secret")
                    read.append(entry.read(10))
        self.assertEqual([b"own"], read)

    def test_swapped_before(self) -> None:
        """Replaced between the reading of the name and the look at the entry."""
        self.write(f"{self.root}/a/secret")
        look = trees.entry_of

        def swapped(folder: int, mount: str, path: str) -> Any:
            if path == "a":
                os.rename(f"{self.root}/a", f"{self.place}/moved")
                os.symlink(self.other, f"{self.root}/a")
            return look(folder, mount, path)
        with mock.patch.object(trees, "entry_of", swapped):
            self.assertEqual({"a": "a link"}, self.walked())

    def test_swapped_always(self) -> None:
        """Replaced by another program as fast as possible."""
        self.write(f"{self.root}/a/secret")
        with swapping(f"{self.root}/a", self.other):
            for _ in range(300):
                with tree(self.root) as walk:
                    read = [entry.read(10) for entry in walk if entry.is_file()]
                self.assertNotIn(b"secret", read)

    def test_deep(self) -> None:
        """Deeper than the limit: the upper levels are found, with few descriptors."""
        make_deep(self.root, 2000)
        before = os.listdir("/proc/self/fd")
        with tree(self.root) as walk:
            found = [entry.why_not for entry in walk]
            self.assertEqual(f"more than {DEPTH_MOST} levels of folders", walk.stopped)
        self.assertEqual([""] * DEPTH_MOST + ["too deep"], found)
        self.assertEqual(before, os.listdir("/proc/self/fd"))

    def test_many(self) -> None:
        """More names than the limit, and more than the time allows."""
        for number in range(20):
            self.write(f"{self.root}/{number}")
        with mock.patch.object(trees, "ENTRIES_MOST", 7), tree(self.root) as walk:
            self.assertEqual((7, "more than 7 files and folders"), (len(list(walk)), walk.stopped))
        with tree(self.root, seconds=-1) as walk:
            self.assertEqual(([], "more files and folders than can be looked at in time"), (list(walk), walk.stopped))
        self.assertGreaterEqual(ENTRIES_MOST, 10000)

    def test_other_mount(self) -> None:
        """Other mounts below the folder are not accessed."""
        self.write(f"{self.root}/a/b")
        stat, mount = os.fstat, trees.mount_of

        def mount_of(descriptor: int) -> str:
            return "fuse" if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/a") else mount(descriptor)

        def fstat(descriptor: int) -> os.stat_result:
            self.assertNotEqual("fuse", mount_of(descriptor))
            return stat(descriptor)
        with mock.patch.object(trees, "mount_of", mount_of), mock.patch("os.fstat", fstat):
            self.assertEqual({"a": "on another file system"}, self.walked())

    def test_read_below(self) -> None:
        """Only a regular file of a usual size is read."""
        self.write(f"{self.root}/file", b"text")
        os.symlink("file", f"{self.root}/link")
        os.mkfifo(f"{self.root}/pipe")
        self.assertEqual(b"text", read_below(self.root, "file", 4))
        for name, most in (("file", 3), ("link", 9), ("pipe", 9), ("none", 9)):
            with self.subTest(name), self.assertRaises(OSError):
                read_below(self.root, name, most)


class Events(Trees):
    """Whether a recording has events, in a folder with arbitrary contents."""

    def test_indexes(self) -> None:
        """The sizes of packets in indexes, each of which is read up to a limit."""
        path = f"{self.root}/ust/index/events_0.idx"
        for contents, expected in ((b"", False), (b"x" * 1000, False), (index_of(), False),
                                   (index_of(EMPTY_BITS), False), (index_of(EMPTY_BITS, EMPTY_BITS + 8), True)):
            with self.subTest(contents[:20]):
                self.write(path, contents)
                self.assertEqual(expected, has_events(self.root))
        self.assertEqual((16, 24), tuple(map(len, (index_of(), index_of(1)[16:]))))

    def test_links(self) -> None:
        """Links to parent folders, through which a search that followed them would never end; pipes."""
        for name in "abcdefgh":
            os.symlink(".", f"{self.root}/{name}")
        os.mkfifo(f"{self.root}/x.idx")
        self.assertFalse(within(20, lambda: has_events(self.root)))
        self.write(f"{self.root}/y.idx", index_of(EMPTY_BITS + 8))
        self.assertTrue(has_events(self.root))

    def test_sparse(self) -> None:
        """Sparse indexes of 256 MB each: only a little of them is read."""
        for number in range(20):
            with open(f"{self.root}/{number}.idx", "wb") as file:
                file.write(index_of())
                file.truncate(250 * 1000 * 1000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with mock.patch("dyntrace_command.recording.recording.LOOK_S", 600):
            self.assertFalse(has_events(self.root))
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 100 * 1000)

    def test_unknown(self) -> None:
        """If the search is incomplete, there may be events."""
        make_deep(self.root, 50)
        self.assertTrue(has_events(self.root))
        self.assertFalse(has_events(f"{self.place}/none"))


class Removals(Trees):
    """Only the folder is removed."""

    def test_all(self) -> None:
        """With files, folders, links and pipes."""
        self.write(f"{self.root}/a/b/c")
        os.symlink(self.other, f"{self.root}/a/link")
        os.mkfifo(f"{self.root}/pipe")
        self.assertTrue(remove_tree(self.root))
        self.assertEqual(["other"], os.listdir(self.place))
        self.assertEqual(["secret"], os.listdir(self.other))
        self.assertTrue(remove_tree(self.root))

    def test_deep(self) -> None:
        """Nested deeper than Python's stack and the number of descriptors."""
        make_deep(self.root, 3000)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
        self.assertTrue(remove_tree(self.root))
        self.assertEqual(["other"], os.listdir(self.place))

    def test_link(self) -> None:
        """A link in place of the folder."""
        os.rmdir(self.root)
        os.symlink(self.other, self.root)
        self.assertFalse(remove_tree(self.root))
        self.assertEqual(["secret"], os.listdir(self.other))

    def test_swapped(self) -> None:
        """A folder is replaced by a link at each step of the removal."""
        for step in ("unlink", "open", "scandir", "rmdir"):
            self.write(f"{self.root}/a/b/c")
            function = getattr(os, step)

            def swap(*arguments: Any, **options: Any) -> Any:
                if not os.path.exists(f"{self.place}/moved") and os.path.exists(f"{self.root}/a"):
                    os.rename(f"{self.root}/a", f"{self.place}/moved")
                    os.symlink(self.other, f"{self.root}/a")
                return function(*arguments, **options)  # pylint: disable=cell-var-from-loop
            with self.subTest(step):
                with mock.patch(f"os.{step}", swap):
                    remove_tree(self.root)
                self.assertTrue(os.path.exists(f"{self.place}/moved"))
                self.assertEqual(["secret"], os.listdir(self.other))
                remove_tree(f"{self.place}/moved")
                self.assertTrue(remove_tree(self.root))
                os.mkdir(self.root)

    def test_swapped_always(self) -> None:
        """Replaced by another program as fast as possible."""
        for _ in range(100):
            self.write(f"{self.root}/a/b/c")
            with swapping(f"{self.root}/a", self.other):
                remove_tree(self.root)
            self.assertEqual(["secret"], os.listdir(self.other))
            os.makedirs(self.root, exist_ok=True)

    def test_without_end(self) -> None:
        """The removal ends at its deadline, even if something is left."""
        self.write(f"{self.root}/a")
        with mock.patch.object(trees, "REMOVAL_S", -1):
            self.assertFalse(remove_tree(self.root))
        self.assertTrue(remove_tree(self.root))

    def test_empty(self) -> None:
        """A folder that contains only folders is removed; one with a file, or with other entries, is not."""
        os.makedirs(f"{self.root}/a/b")
        remove_empty(self.root)
        self.assertFalse(os.path.exists(self.root))
        self.write(f"{self.root}/a/b/c")
        remove_empty(self.root)
        self.assertTrue(os.path.exists(f"{self.root}/a/b/c"))
        os.unlink(f"{self.root}/a/b/c")
        os.symlink("c", f"{self.root}/a/b/c")
        remove_empty(self.root)
        self.assertTrue(os.path.lexists(f"{self.root}/a/b/c"))
        remove_empty(None)


class swapping(threading.Thread):  # pylint: disable=invalid-name
    """Replaces a folder by a link, and the link by the folder, until the end."""

    def __init__(self, folder: str, target: str) -> None:
        super().__init__(daemon=True)
        self.folder, self.target, self.is_over = folder, target, threading.Event()

    def run(self) -> None:
        aside = self.folder + ".aside"
        while not self.is_over.is_set():
            with contextlib.suppress(OSError):
                os.rename(self.folder, aside)
                os.symlink(self.target, self.folder)
                os.unlink(self.folder)
                os.rename(aside, self.folder)

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        self.join()


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """Returns the result of a function that ends in time."""
    results: List[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0]
