"""Snapshots as tar archives, of folders that other users change at the same time."""
import io
import os
import tarfile
import tempfile
import unittest
from typing import Any, Dict, List, Tuple
from unittest import mock

from dyntrace_command.commands import snapshot
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import first_of
from dyntrace_command.recording.archive import NAMES_OF_PATH, Allowance, Packer, unpack
from hostile import make_deep, new_place

GB = 1 << 30


class Packed(unittest.TestCase):
    """Everything that is packed is accepted by the receiver, regardless of what the owner of a folder does."""

    def setUp(self) -> None:
        self.place = new_place(self)
        self.root, self.other = f"{self.place}/0-night", f"{self.place}/other"
        self.write(f"{self.root}/ust/metadata", b"metadata")
        self.write(f"{self.other}/secret", b"secret")

    def write(self, path: str, contents: bytes) -> None:
        """Writes a file."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(contents)

    def packed(self, most: Allowance) -> Tuple[Dict[str, bytes], List[str]]:
        """Packs the root and then a harmless folder, and unpacks both; returns ({path: contents}, the omitted
        paths)."""
        self.write(f"{self.place}/1-good/ust/metadata", b"good")
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
            packer = Packer(tar, "0-night", most)
            packer.pack(self.root)
            good = Packer(tar, "1-good", Allowance())
            good.pack(f"{self.place}/1-good")
        self.assertEqual([], good.left_out)
        stream.seek(0)
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as folder:
            unpack(stream, folder)
            found = {}
            for path, _, names in os.walk(folder):
                for name in names:
                    with open(os.path.join(path, name), "rb") as file:
                        found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
        self.assertEqual(b"good", found.pop("1-good/ust/metadata"))
        return found, packer.left_out

    def test_plain(self) -> None:
        """Files in folders."""
        self.write(f"{self.root}/ust/index/events_0.idx", b"x" * 1000)
        self.assertEqual(({"0-night/ust/metadata": b"metadata", "0-night/ust/index/events_0.idx": b"x" * 1000}, []),
                         self.packed(Allowance()))

    def test_not_packed(self) -> None:
        """Links, pipes, hidden and non-ASCII names, long names, deep paths, and a file of 9 GB are left out; the rest
        is packed."""
        os.symlink("/etc", f"{self.root}/link")
        os.symlink("/etc/shadow", f"{self.root}/ust/link")
        os.mkfifo(f"{self.root}/pipe")
        for name in (".hidden", "käse", "new\nline", "a" * 150 + "/" + "b" * 150, "x" * 202):
            self.write(f"{self.root}/{name}", b"bad")
        self.write(os.path.join(self.root, *"d" * NAMES_OF_PATH), b"deep")
        with open(f"{self.root}/large", "wb") as file:
            file.truncate(9 * GB)
        found, left_out = self.packed(Allowance())
        self.assertEqual({"0-night/ust/metadata": b"metadata"}, found)
        whys = {path: why for path, _, why in (text.partition(" (") for text in left_out)}
        self.assertEqual({"link": "a link)", "ust/link": "a link)", "pipe": "a pipe)", ".hidden": "not a plain name)",
                          "käse": "not a plain name)", "new\nline": "not a plain name)",
                          "a" * 150 + "/" + "b" * 150: "its name is too long, or its size too large)",
                          "x" * 202: "not a plain name)", "/".join("d" * NAMES_OF_PATH): "not a plain name)",
                          "large": "its name is too long, or its size too large)"}, whys)
        self.assertEqual(r"new\x0aline, a, and 1 more", first_of(["new\nline", "a", "b"], 2))

    def test_deep(self) -> None:
        """Endlessly nested folders."""
        make_deep(self.root, 2000)
        found, left_out = self.packed(Allowance())
        self.assertEqual({"0-night/ust/metadata": b"metadata"}, found)
        self.assertEqual("the rest (more than 20 levels of folders)", left_out[-1])

    def test_bounds(self) -> None:
        """At most as many bytes and files as the share allows."""
        for number in range(10):
            self.write(f"{self.root}/{number}", b"x" * 100)
        found, left_out = self.packed(Allowance(10000, 3))
        self.assertEqual((3, 8), (len(found), len(left_out)))
        os.unlink(f"{self.root}/ust/metadata")
        found, left_out = self.packed(Allowance(399, 100))
        self.assertEqual((3, 7), (len(found), len(left_out)))

    def test_swapped(self) -> None:
        """A folder becomes a link while a file in it is packed, and a file one while its folder is read."""
        self.write(f"{self.root}/ust/secret", b"own")
        add = tarfile.TarFile.addfile
        swapped: List[str] = []

        def swap(tar: tarfile.TarFile, member: tarfile.TarInfo, file: Any) -> None:
            if not swapped:
                swapped.append(member.name)
                os.rename(f"{self.root}/ust", f"{self.place}/moved")
                os.symlink(self.other, f"{self.root}/ust")
            add(tar, member, file)
        with mock.patch.object(tarfile.TarFile, "addfile", swap):
            found, _ = self.packed(Allowance())
        self.assertEqual(1, len(swapped))
        self.assertNotIn(b"secret", found.values())
        self.assertEqual({"0-night/ust/metadata": b"metadata", "0-night/ust/secret": b"own"}, found)

    def test_swapped_before(self) -> None:
        """The file is replaced between the reading of its name and its opening."""
        opened = os.open

        def swap(name: str, *arguments: Any, **options: Any) -> int:
            if name == "metadata" and os.path.isdir(f"{self.root}/ust"):
                os.rename(f"{self.root}/ust/metadata", f"{self.place}/moved")
                os.symlink(f"{self.other}/secret", f"{self.root}/ust/metadata")
            return opened(name, *arguments, **options)
        with mock.patch("os.open", swap), mock.patch.object(self, "write"):
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode="w|") as tar:
                packer = Packer(tar, "0-night", Allowance())
                packer.pack(self.root)
        self.assertEqual(["ust/metadata (a link)"], packer.left_out)
        self.assertNotIn(b"secret", stream.getvalue())

    def test_changed_size(self) -> None:
        """A file is truncated or extended while it is packed: the other files keep their positions."""
        self.write(f"{self.root}/ust/events_0", b"x" * 100000)
        add = tarfile.TarFile.addfile
        for size, expected in ((1000, b"x" * 1000 + bytes(99000)), (200000, b"x" * 100000)):
            def change(tar: tarfile.TarFile, member: tarfile.TarInfo, file: Any) -> None:
                if member.name.endswith("events_0"):
                    os.truncate(f"{self.root}/ust/events_0", size)  # pylint: disable=cell-var-from-loop
                add(tar, member, file)
            with self.subTest(size), mock.patch.object(tarfile.TarFile, "addfile", change):
                found, left_out = self.packed(Allowance())
                self.assertEqual(expected, found["0-night/ust/events_0"])
                self.assertEqual(["ust/events_0 (truncated, padded with zeros)"] if size < 100000 else [],
                                 left_out)
            self.write(f"{self.root}/ust/events_0", b"x" * 100000)

    def test_moved(self) -> None:
        """A file is found twice, or a folder replaces a file: the receiver would refuse them."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w|") as tar:
            packer = Packer(tar, "0-night", Allowance())
            packer.pack(self.root)
            packer.pack(self.root)
            os.rename(f"{self.root}/ust", f"{self.root}/metadata")
            os.mkdir(f"{self.root}/ust")
            os.rename(f"{self.root}/metadata", f"{self.root}/ust/metadata")
            packer.pack(self.root)
        self.assertEqual(["ust/metadata (moved while it was read)", "ust/metadata/metadata (moved while it was read)"],
                         packer.left_out)
        stream.seek(0)
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as folder:
            self.assertEqual(1, unpack(stream, folder))


class Sent(unittest.TestCase):
    """The recorders of all users on a host."""

    def test_shares(self) -> None:
        """The unused share of a recorder goes to those after it; no recorder takes the share of another."""
        most = Allowance(900, 90)
        small = most.share_of(3)
        self.assertEqual((300, 30, 600, 60), (small.bytes, small.files, most.bytes, most.files))
        self.assertTrue(small.take(100))
        self.assertFalse(small.take(201))
        self.assertFalse(small.take(-1))
        most.give_back(small)
        self.assertEqual((800, 89), (most.bytes, most.files))
        large = most.share_of(2)
        self.assertEqual((400, 44, 400, 45), (large.bytes, large.files, most.bytes, most.files))

    def test_order(self) -> None:
        """The smallest snapshot is packed first, so that a large one can't use up the space."""
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as place:
            for name, count in (("0-large", 700), ("1-small", 10), ("2-middle", 90)):
                os.mkdir(f"{place}/{name}")
                for number in range(10):
                    with open(f"{place}/{name}/{number}", "wb") as file:
                        file.write(bytes(count))
            stream, said = io.BytesIO(), io.StringIO()
            with tarfile.open(fileobj=stream, mode="w|") as tar, mock.patch("sys.stderr", said), \
                    mock.patch.object(snapshot, "Allowance", lambda: Allowance(3000, 100)):
                snapshot.pack_all(tar, {f"{place}/0-large": "la\x1brge", f"{place}/1-small": "small",
                                        f"{place}/2-middle": "middle"})
            stream.seek(0)
            with tarfile.open(fileobj=stream) as tar:
                names = tar.getnames()
        counts = {name: len([one for one in names if one.startswith(name)])
                  for name in ("0-large", "1-small", "2-middle")}
        self.assertEqual({"0-large": 2, "1-small": 10, "2-middle": 10}, counts)
        self.assertRegex(said.getvalue(), r"^dyntrace: left out of the snapshot of la\\x1brge: \d \(too large, or too "
                                          r"many files\), .*, and 3 more\n$")

    def test_one_fails(self) -> None:
        """If one snapshot fails, the others are written."""
        def do(*words: str) -> None:
            if words[2] == "--session=bad":
                raise Failure("lttng", tool="lttng", output="no")
        daemon = mock.Mock(uid=None, do=do)
        with tempfile.TemporaryDirectory(prefix="dyntrace-test-") as place:
            folders, failures = snapshot.written([(daemon, name) for name in ("good", "bad", "l" * 300)], place)
            self.assertEqual(["good", "l" * 300], list(folders.values()))
            self.assertEqual(["lttng"], [failure.key for failure in failures])
