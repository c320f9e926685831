"""Recordings in the form in which babeltrace2 gets them.

babeltrace2 searches folders itself: it follows links, blocks on pipes, and never returns if links form a cycle. So it
never gets a folder that another user can change, but a mirror of it that belongs to this command. Each file in the
mirror is a link to a descriptor of this command, for a regular file found by a walk (trees.py). Nothing is copied, and
renaming or replacing files meanwhile has no effect. A file may still be truncated, which ends babeltrace2 with SIGBUS.
"""
import contextlib
import errno
import fcntl
import os
import resource
from typing import Callable, Iterator, List, Sequence

from dyntrace_command.common.failures import Failure, user_name
from dyntrace_command.common.terminal import clean, first_of, size
from dyntrace_command.host.children import temporary_folder
from dyntrace_command.host.files import MB, closing
from dyntrace_command.host.trees import ENTRIES_MOST, TOO_DEEP, Entry, tree

METADATA, INDEX = "metadata", ".idx"
# The first byte of CTF 2 metadata.
CTF_2 = b"\x1e"
# Bytes of a metadata file, and of all indexes: babeltrace2 keeps both in memory.
METADATA_MOST, INDEXES_MOST = 16 * MB, 1000 * MB
# The first descriptor of the files. This command waits with select(2), which can't use descriptors from here on, so the
# lower ones stay free for it.
FIRST = 1024
LIMIT_MOST = FIRST + ENTRIES_MOST


class Folder:
    """A folder of the mirror, and the folder of the user that it mirrors."""

    def __init__(self, path: str, typed: str) -> None:
        self.path, self.typed = path, typed
        self.has_files = self.has_metadata = self.is_whole = False
        self.left_out: List[str] = []

    def failure(self, why: str) -> Failure:
        """Returns the failure of a folder that is not passed to babeltrace2."""
        return Failure("large_tree", folder=self.typed, why=why)

    def unreadable(self, entry: Entry) -> Failure:
        """Returns the failure of a file or a folder below it that this user may not read."""
        owner = user_name(entry.status.st_uid) if entry.status else "another user"
        return Failure("unreadable", folder=clean(os.path.join(self.typed, entry.path)), why=entry.why_not, owner=owner)

    def check(self) -> None:
        """Raises Failure if the folder has no recording."""
        if not self.has_files and not self.left_out:
            raise Failure("empty_folder", folder=self.typed)
        if not self.has_metadata:
            raise Failure("no_recording", folder=self.typed)


class Mirror:
    """The folders for babeltrace2. `remarks`: messages about them for the user; `is_ctf_2`: whether one has the format
    of LTTng 2.15 and later. The files stay open until `opened` is closed."""

    def __init__(self, place: str, opened: contextlib.ExitStack) -> None:
        self.place, self.opened = place, opened
        self.folders: List[Folder] = []
        self.remarks: List[str] = []
        self.is_ctf_2 = False
        self.indexes = self.files = 0
        limit = raised_limit(opened)
        self.first = min(FIRST, limit // 4)
        self.files_most = limit - self.first

    def paths(self) -> List[str]:
        """Returns the folders that babeltrace2 can read. It leaves out recordings with empty metadata, to which no data
        has arrived: babeltrace2 would then read none of the recordings."""
        return [folder.path for folder in self.folders if folder.is_whole]

    def typed(self) -> str:
        """Returns the first folder as the user typed it."""
        return self.folders[0].typed

    def as_typed(self, text: str) -> str:
        """Returns a text of babeltrace2 with the mirror's folders replaced by those that the user typed."""
        for folder in self.folders:
            text = text.replace(folder.path, folder.typed)
        return text

    def add(self, typed: str, follows: bool) -> None:
        """Adds a folder; raises Failure if there is no readable recording in it or below it."""
        if not os.path.lexists(typed):
            raise Failure("no_folder", folder=typed)
        if os.path.exists(typed) and not os.path.isdir(typed):
            raise Failure("no_such_kind", folder=typed)
        folder = Folder(os.path.join(self.place, f"{len(self.folders):06}"), typed)
        self.folders.append(folder)
        os.mkdir(folder.path)
        try:
            with tree(typed, follows) as walk:
                for entry in walk:
                    self.add_entry(folder, entry)
        except OSError as error:
            status = None
            with contextlib.suppress(OSError):
                status = os.stat(typed, follow_symlinks=follows)
            raise folder.unreadable(Entry("", status=status, why_not=error.strerror)) from None
        if walk.stopped:
            raise folder.failure(f"it has {walk.stopped}")
        folder.check()
        if folder.left_out:
            self.remarks.append(f"dyntrace: left out of {typed}: {first_of(folder.left_out)}")

    def add_entry(self, folder: Folder, entry: Entry) -> None:
        """Adds an entry of the walk, or records why it was left out."""
        why_not = entry.why_not
        if entry.is_folder() and why_not != TOO_DEEP:
            if why_not:
                raise folder.unreadable(entry)
            why_not = self.made(os.mkdir, os.path.join(folder.path, entry.path))
        elif not why_not:
            folder.has_files = True
            try:
                why_not = self.add_file(folder, entry)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.EINVAL):
                    raise folder.failure("it has more files than this process may open") from None
                why_not = error.strerror
                if entry.name() == METADATA:
                    raise folder.unreadable(entry._replace(why_not=why_not)) from None
        if why_not:
            folder.left_out.append(f"{entry.path} ({why_not})")

    def add_file(self, folder: Folder, entry: Entry) -> str:
        """Adds a regular file; returns the reason if that is impossible, else an empty text."""
        if entry.name() == METADATA:
            folder.has_metadata = True
            if entry.size() > METADATA_MOST:
                raise folder.failure(f"{clean(entry.path)} has {size(entry.size())}")
            begin = entry.read(1)
            if not begin:
                self.remarks.append(f"dyntrace: {clean(os.path.join(folder.typed, os.path.dirname(entry.path)))} ended "
                                    "before its beginning had arrived; it is left out")
                return ""
            folder.is_whole, self.is_ctf_2 = True, self.is_ctf_2 or begin == CTF_2
        elif entry.name().endswith(INDEX):
            self.indexes += entry.size()
        self.files += 1
        if self.indexes > INDEXES_MOST:
            raise folder.failure(f"its indexes have more than {size(INDEXES_MOST)}")
        if self.files > self.files_most:
            raise folder.failure(f"it has more files than this process may open ({self.files_most})")
        with closing(entry.open()) as descriptor:
            kept = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, self.first)
        self.opened.callback(os.close, kept)
        return self.made(os.symlink, f"/proc/{os.getpid()}/fd/{kept}", os.path.join(folder.path, entry.path))

    def made(self, make: Callable[..., None], *paths: str) -> str:
        """Creates a link or a folder; returns the reason if that is impossible, else an empty text."""
        try:
            make(*paths)
        except FileExistsError:
            return "moved while it was read"
        except OSError as error:
            if error.errno not in (errno.ENAMETOOLONG, errno.ENOENT):
                raise Failure("not_writable", folder=self.place, why=error.strerror) from None
            return "its path is too long"
        return ""


def raised_limit(opened: contextlib.ExitStack) -> int:
    """Raises this process's limit of open descriptors until `opened` is closed; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, min(hard if hard != resource.RLIM_INFINITY else LIMIT_MOST, LIMIT_MOST))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    return limit


@contextlib.contextmanager
def mirrored(folders: Sequence[str], follows: bool = True) -> Iterator[Mirror]:
    """Yields the mirror of the recordings for babeltrace2. Raises Failure if there is none, or if one can't be read.
    Unless `follows`, a link in place of a folder is refused: its user may have replaced what this command created."""
    with temporary_folder() as place, contextlib.ExitStack() as opened:
        mirror = Mirror(place, opened)
        for folder in folders:
            mirror.add(folder, follows)
        if not mirror.paths():
            raise Failure("no_recording", folder=" ".join(folders))
        yield mirror
