"""File trees that another user can change while they are read, packed or removed.

The daemon of a node's user writes recordings into a folder that belongs to that user; a recording that is viewed may
come from any user. Possible attacks, and what prevents them:

- **A link** in place of a file or a folder, before the walk or during it. Each name is opened relative to its open
  folder, without following links, and the checks use the resulting descriptor. No path is used twice.
- **A pipe or a device**, which would block or have side effects. Names are opened with O_PATH, which reads nothing;
  only regular files are then opened for reading.
- **A file system that does not answer** (FUSE), mounted below the folder. The walk stays on the mount of its root, and
  recognizes another one before it accesses that file system.
- **Endlessly many or nested folders, names or bytes.** Depth, count and time have bounds; a level takes two descriptors
  and no space on Python's stack.
"""
import contextlib
import os
import secrets
import stat
import time
from typing import Iterator, List, NamedTuple, Optional, Tuple

from dyntrace_command.host.files import closing, read_at_most

# Levels of folders, and the number of names in all of them.
DEPTH_MOST, ENTRIES_MOST = 20, 100000
# Seconds of a walk, and of a removal.
WALK_S, REMOVAL_S = 10, 30

TOO_DEEP = "too deep"
KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
         stat.S_IFBLK: "a device"}


class Entry(NamedTuple):
    """A name below the root of a tree. `descriptor` is open (O_PATH) until the walk continues. `why_not` is empty for
    usable regular files and folders, else it says why the entry is left out."""
    path: str
    descriptor: int = -1
    status: Optional[os.stat_result] = None
    why_not: str = ""

    def is_folder(self) -> bool:
        """Returns whether it is a folder that could be opened."""
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    def is_file(self) -> bool:
        """Returns whether it is a regular file."""
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    def size(self) -> int:
        """Returns the size of a regular file in bytes, 0 for others."""
        return self.status.st_size if self.status and self.is_file() else 0

    def name(self) -> str:
        """Returns the last name of its path."""
        return os.path.basename(self.path)

    def open(self) -> int:
        """Opens exactly this regular file for reading."""
        return os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)

    def read(self, most: int) -> bytes:
        """Returns the first bytes of this regular file."""
        with closing(self.open()) as file:
            return read_at_most(file, most)


def mount_of(descriptor: int) -> str:
    """Returns the ID of the mount in which a file was opened. Each bind mount has its own."""
    with closing(os.open(f"/proc/self/fdinfo/{descriptor}", os.O_RDONLY)) as info:
        return next(line.split()[1] for line in os.read(info, 4096).decode().split("\n") if line.startswith("mnt_id:"))


def entry_of(folder: int, mount: str, path: str) -> Optional[Entry]:
    """Opens the last name of the path in its open folder; returns None if it no longer exists."""
    try:
        descriptor = os.open(os.path.basename(path), os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Entry(path, why_not=error.strerror)
    try:
        # Before any other access to that file system.
        if mount_of(descriptor) != mount:
            return Entry(path, descriptor, None, "on another file system")
        status = os.fstat(descriptor)
        return Entry(path, descriptor, status, KINDS.get(stat.S_IFMT(status.st_mode), ""))
    except BaseException:
        os.close(descriptor)
        raise


class Level:
    """A folder that the walk has entered: its descriptor, its path below the root, and its names."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor, self.path = os.dup(descriptor), path
        try:
            # os.scandir() of Python 3.6 takes no descriptor. This path leads to the open folder, even if it was
            # renamed.
            self.names = os.scandir(f"/proc/self/fd/{self.descriptor}")
        except BaseException:
            os.close(self.descriptor)
            raise

    def next_path(self) -> Optional[str]:
        """Returns the path of the next name; None at the end."""
        with contextlib.suppress(StopIteration):
            return os.path.join(self.path, next(self.names).name)
        return None

    def close(self) -> None:
        """Closes it."""
        self.names.close()
        os.close(self.descriptor)


class Walk:
    """The entries below an open folder, without the folder itself. It can be iterated over once. Afterwards, `stopped`
    names the bound that made the walk incomplete, if any."""

    def __init__(self, root: int, seconds: float = WALK_S) -> None:
        self.root, self.until = root, time.monotonic() + seconds
        self.stopped = ""

    def __iter__(self) -> Iterator[Entry]:
        mount, count, levels = mount_of(self.root), 0, [Level(self.root, "")]
        try:
            while levels:
                path = levels[-1].next_path()
                if path is None:
                    levels.pop().close()
                    continue
                count += 1
                if count > ENTRIES_MOST or time.monotonic() > self.until:
                    self.stopped = f"more than {ENTRIES_MOST} files and folders" if count > ENTRIES_MOST \
                        else "more files and folders than can be looked at in time"
                    return
                entry = entry_of(levels[-1].descriptor, mount, path)
                if entry:
                    try:
                        yield self.enter(levels, entry)
                    finally:
                        if entry.descriptor != -1:
                            os.close(entry.descriptor)
        finally:
            for level in levels:
                level.close()

    def enter(self, levels: List[Level], entry: Entry) -> Entry:
        """Enters a folder; returns the entry, with the reason if that is impossible."""
        if entry.is_folder():
            if len(levels) > DEPTH_MOST:
                self.stopped = f"more than {DEPTH_MOST} levels of folders"
                return entry._replace(why_not=TOO_DEEP)
            try:
                levels.append(Level(entry.descriptor, entry.path))
            except OSError as error:
                return entry._replace(why_not=error.strerror)
        return entry


@contextlib.contextmanager
def tree(folder: str, follows: bool = False, seconds: float = WALK_S) -> Iterator[Walk]:
    """Yields a walk below a folder. The last name of its path may be a link if `follows`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if follows else os.O_NOFOLLOW)
    with closing(os.open(folder, flags)) as root:
        yield Walk(root, seconds)


def read_below(folder: str, name: str, most: int) -> bytes:
    """Returns the contents of a regular file in a folder; raises OSError if it is of another kind or too large."""
    with closing(os.open(folder, os.O_PATH | os.O_DIRECTORY)) as place:
        entry = entry_of(place, mount_of(place), name)
        if entry is None or entry.descriptor == -1:
            raise OSError(0, "it can't be opened", name)
        with closing(entry.descriptor):
            if not entry.is_file() or entry.size() > most:
                raise OSError(0, "it is not a regular file, or it is too large", name)
            return entry.read(most)


def folder_size(folder: str, seconds: float = WALK_S) -> int:
    """Returns the total size in bytes of all visible files below it, within the bounds of a walk."""
    with contextlib.suppress(OSError), tree(folder, seconds=seconds) as walk:
        return sum(entry.size() for entry in walk)
    return 0


def has_files(folder: str) -> bool:
    """Returns whether there may be anything but folders below it."""
    with contextlib.suppress(FileNotFoundError), tree(folder) as walk:
        return any(entry.why_not or not entry.is_folder() for entry in walk)
    return False


# -- Removal -----------------------------------------------------------------------------------------------------------

def remove_empty(folder: Optional[str]) -> None:
    """Removes the folder if there are no files below it."""
    with contextlib.suppress(OSError):
        if folder and not has_files(folder):
            remove_tree(folder)


def remove_tree(folder: str) -> bool:
    """Removes a folder with all its contents, as far as that is possible within REMOVAL_S; returns whether it is gone.
    Nested folders are first moved up to the top level, so any depth takes few descriptors. A link or a mount that
    another user puts in place of a folder is never entered."""
    until = time.monotonic() + REMOVAL_S
    above, name = os.path.split(os.path.abspath(folder))
    try:
        with closing(os.open(above, os.O_RDONLY | os.O_DIRECTORY)) as place:
            with closing(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)) as root:
                while remove_names(root, root, until):
                    pass
            os.rmdir(name, dir_fd=place)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_names(root: int, folder: int, until: float) -> bool:
    """Removes the files in an open folder. Moves its subfolders to the root or, in the root, empties and removes them.
    Returns whether there may be more to do."""
    is_changed = False
    for name in names_in(folder):
        if time.monotonic() > until:
            raise OSError(0, "it takes too long")
        with contextlib.suppress(OSError):
            try:
                os.unlink(name, dir_fd=folder)
            except IsADirectoryError:
                if folder == root:
                    remove_folder(root, name, until)
                else:
                    os.rename(name, f"dyntrace-{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=root)
            is_changed = True
    return is_changed


def names_in(folder: int) -> Tuple[str, ...]:
    """Returns some of the names in an open folder; the next call sees changes made meanwhile."""
    with os.scandir(f"/proc/self/fd/{folder}") as entries:
        return tuple(entry.name for _, entry in zip(range(1000), entries))


def remove_folder(root: int, name: str, until: float) -> None:
    """Empties a folder in the root, and removes it."""
    with closing(os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)) as found:
        if mount_of(found) == mount_of(root):
            while remove_names(root, found, until):
                pass
    os.rmdir(name, dir_fd=root)
