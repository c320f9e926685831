"""Recordings as a tar: packed while they may still change, and unpacked from a host that is not trusted.

The user of a node's session daemon can change a recording while it is packed, and a host may send anything, without
end. Only regular files with plain names are packed and unpacked, into an empty folder. Their number and total size are
bounded, also by the free space on disk. The sender leaves out what the receiver would refuse.
"""
import contextlib
import os
import re
import tarfile
from typing import BinaryIO, List, Sequence, Set

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import MB, RESERVE, check_room
from dyntrace_command.host.trees import Entry, tree

BYTES_MOST = 8 << 30
FILES_MOST = 10000
NAMES_OF_PATH = 20
NAME = re.compile(r"[\w@+:,=-][\w@+:,=.-]{0,200}", re.ASCII)
BLOCK = tarfile.BLOCKSIZE
# The largest file time that a tar can hold, in seconds.
TIME_MOST = 8 ** 11 - 1


class Allowance:
    """How many more bytes and files a tar, or a part of it, may contain."""

    def __init__(self, size: int = BYTES_MOST, files: int = FILES_MOST) -> None:
        self.bytes, self.files = size, files

    def share_of(self, count: int) -> "Allowance":
        """Takes one of `count` equal shares and returns it."""
        share = Allowance(self.bytes // count, self.files // count)
        self.give_back(Allowance(-share.bytes, -share.files))
        return share

    def give_back(self, rest: "Allowance") -> None:
        """Adds the unused rest of a share."""
        self.bytes, self.files = self.bytes + rest.bytes, self.files + rest.files

    def take(self, size: int) -> bool:
        """Counts a file; returns whether it is within the limits."""
        if not 0 <= size <= self.bytes or self.files < 1:
            return False
        self.bytes, self.files = self.bytes - size, self.files - 1
        return True


def are_plain(names: Sequence[str]) -> bool:
    """Returns whether a path made of these names is allowed in a tar."""
    return len(names) <= NAMES_OF_PATH and all(map(NAME.fullmatch, names))


# -- Packing -----------------------------------------------------------------------------------------------------------

class Padded:  # pylint: disable=too-few-public-methods
    """A file padded to its expected size, because another process may truncate it while it is packed."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.is_shorter = file, False

    def read(self, count: int) -> bytes:
        """Returns `count` bytes."""
        data = b""
        with contextlib.suppress(OSError):
            data = self.file.read(count)
        self.is_shorter = self.is_shorter or len(data) < count
        return data.ljust(count, b"\0")


class Packer:
    """Packs the current regular files below a folder, as files below `name`, within the bounds of `most`. `left_out`
    lists what was skipped or changed, each with the reason."""

    def __init__(self, tar: tarfile.TarFile, name: str, most: Allowance) -> None:
        self.tar, self.name, self.most = tar, name, most
        self.left_out: List[str] = []
        # Paths of files, and of the folders above them: a file that is moved during the walk may appear twice.
        self.files: Set[str] = set()
        self.folders: Set[str] = set()

    def pack(self, folder: str) -> None:
        """Packs a folder."""
        with tree(folder, seconds=float("inf")) as walk:
            for entry in walk:
                why_not = entry.why_not or ("" if entry.is_folder() else self.pack_file(entry))
                if why_not:
                    self.left_out.append(f"{entry.path} ({why_not})")
            if walk.stopped:
                self.left_out.append(f"the rest ({walk.stopped})")

    def pack_file(self, entry: Entry) -> str:
        """Packs a regular file. Returns the reason if it was skipped or changed, else an empty text."""
        names = [self.name, *entry.path.split("/")]
        above = {"/".join(names[:count]) for count in range(1, len(names))}
        member = tarfile.TarInfo("/".join(names))
        if not are_plain(names):
            return "not a plain name"
        if member.name in self.files | self.folders or above & self.files:
            return "moved while it was read"
        try:
            descriptor = entry.open()
        except OSError as error:
            return error.strerror
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            member.size, member.mtime = status.st_size, min(max(0, int(status.st_mtime)), TIME_MOST)
            member.mode = 0o600
            try:
                member.tobuf(tarfile.USTAR_FORMAT)
            except ValueError:
                return "its name is too long, or its size too large"
            if not self.most.take(member.size):
                return "too large, or too many files"
            self.files.add(member.name)
            self.folders |= above
            padded = Padded(file)
            self.tar.addfile(member, padded)  # type: ignore[arg-type]
        return "truncated, padded with zeros" if padded.is_shorter else ""


# -- Unpacking ---------------------------------------------------------------------------------------------------------

def unpack(stream: BinaryIO, folder: str) -> int:
    """Unpacks a tar from another host; returns the number of files. Raises Failure if the tar is invalid."""
    files, most = 0, Allowance()
    while True:
        header = read_exactly(stream, BLOCK)
        if not header.strip(b"\0"):
            stream.read(tarfile.RECORDSIZE - BLOCK)
            return files
        try:
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise Failure("bad_stream", why=str(error)) from None
        names = member.name.rstrip("/").split("/")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or member.name.startswith("/") \
                or not are_plain(names):
            raise Failure("bad_stream", why=f"{clean(ascii(member.name))} is not a plain file or folder below it")
        if not most.take(member.size):
            raise Failure("bad_stream", why="it is too large")
        files += 1
        path = os.path.join(folder, *names)
        if member.type == tarfile.DIRTYPE:
            os.makedirs(path, mode=0o700, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            unpack_file(stream, path, member.size)


def unpack_file(stream: BinaryIO, path: str, count: int) -> None:
    """Writes a file. It cannot follow a link, because only this function creates the contents of the folder."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        for at in range(0, count, MB):
            check_room(os.path.dirname(path), RESERVE, "; nothing of this host is kept")
            file.write(read_exactly(stream, min(MB, count - at)))
    read_exactly(stream, -count % BLOCK)


def read_exactly(stream: BinaryIO, count: int) -> bytes:
    """Returns `count` bytes; raises Failure if the stream ends early."""
    data = stream.read(count) if count else b""
    if len(data) < count:
        raise Failure("cut_stream")
    return data
