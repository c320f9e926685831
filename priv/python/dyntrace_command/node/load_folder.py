"""A folder in the file system of a node for the library that `dyntrace load` installs there. It is created, filled and
removed in a child with the identity of the node's user (`sandbox`).

Its parent is writable by all users, so another user may have put anything there. All operations therefore use
descriptors: a folder is created, then opened without following a link, and must belong to this user and be on the same
mount. Files are always created, never opened if they exist. The folder's name contains the PID and the start time of
the node's process. Only a folder with such a name is removed, and only files in it that this command can have written,
in their places.
"""
import contextlib
import errno
import os
import re
import stat
from typing import Dict, Iterator, List, Optional, Pattern, Sequence, Set

from dyntrace_command.common.failures import reason
from dyntrace_command.common.terminal import size
from dyntrace_command.host.files import MB, closing
from dyntrace_command.host.process import Process
from dyntrace_command.host.trees import mount_of
from dyntrace_command.node.container import Container
from dyntrace_command.node.description import LOADED_NAME, PARENTS

NEEDED = 16 * MB
# Names that may be removed.
PACKAGE, SUBFOLDER = re.compile(r"dyntrace-[\w.+-]{1,40}"), re.compile(r"ebin|priv")
FILE = re.compile(r"[\w.]+\.(?:beam|app|so)")


def new_name(process: Process) -> str:
    """Returns a new folder name for a process."""
    return f"dyntrace-load-{process.pid}-{process.began}-{os.urandom(4).hex()}"


def is_for(name: str, process: Process) -> bool:
    """Returns whether a folder's name belongs to the process."""
    found = re.fullmatch(LOADED_NAME, name)
    return found is not None and (int(found.group(1)), int(found.group(2))) == (process.pid, process.began)


def why_not(inside: Container, parent: str) -> Optional[str]:
    """Returns why the library can't be put there; None if it can."""
    try:
        with closing(inside.open(parent)) as descriptor:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return "it is not a folder"
            about = os.fstatvfs(descriptor)
            if about.f_flag & os.ST_RDONLY:
                return "its file system is read-only"
            if about.f_flag & os.ST_NOEXEC:
                return "its file system is mounted noexec"
            if not os.access(f"/proc/self/fd/{descriptor}", os.W_OK | os.X_OK):
                return "it can't be written"
            free = about.f_bavail * about.f_frsize
            return None if free >= NEEDED else f"it has {size(free)} free"
    except OSError as error:
        return reason(error)


class LoadFolder:
    """A folder below a parent in the file system of a node. It can be removed even after the node has ended."""

    def __init__(self, inside: Container, parent: str, name: str) -> None:
        self.path, self.name = f"{parent}/{name}", name
        self.parent = inside.open(parent)

    def close(self) -> None:
        """Closes the parent; leaves the folder as it is."""
        os.close(self.parent)

    def fill(self, files: Dict[str, bytes]) -> None:
        """Creates the folder with these files, {path below it: contents}."""
        os.mkdir(self.name, 0o700, dir_fd=self.parent)
        with closing(own_below(self.parent, self.name)) as folder:
            if os.listdir(f"/proc/self/fd/{folder}"):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), self.path)
            for path, contents in files.items():
                write_below(folder, path.split("/"), contents)

    def modules(self) -> List[str]:
        """Returns the modules in it; none if the folder does not exist."""
        found: List[str] = []
        with contextlib.suppress(OSError), closing(own_below(self.parent, self.name)) as folder:
            for package in filter(PACKAGE.fullmatch, os.listdir(f"/proc/self/fd/{folder}")):
                with closing(own_below(folder, package)) as inner, closing(own_below(inner, "ebin")) as ebin:
                    found += os.listdir(f"/proc/self/fd/{ebin}")
        return sorted(name[:-len(".beam")] for name in found if FILE.fullmatch(name) and name.endswith(".beam"))

    def remove(self) -> None:
        """Removes it. Raises OSError if it belongs to another user, or contains something that this command did not
        write."""
        with contextlib.suppress(FileNotFoundError):
            remove_below(self.parent, self.name, (PACKAGE, SUBFOLDER))


def own_below(parent: int, name: str) -> int:
    """Returns a descriptor of a folder; raises OSError if it is a link, belongs to another user, or is a mount."""
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", name)
        if mount_of(descriptor) != mount_of(parent):
            raise PermissionError(errno.EPERM, "another file system is mounted there", name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_below(parent: int, name: str, below: Sequence[Pattern[str]]) -> None:
    """Removes a folder with the subfolders that match `below`, one pattern per level; the last level contains files."""
    with closing(own_below(parent, name)) as folder:
        for inner in os.listdir(f"/proc/self/fd/{folder}"):
            if below and below[0].fullmatch(inner):
                remove_below(folder, inner, below[1:])
            elif not below and FILE.fullmatch(inner):
                os.unlink(inner, dir_fd=folder)
    os.rmdir(name, dir_fd=parent)


def write_below(folder: int, names: List[str], contents: bytes) -> None:
    """Writes a file to a path below a folder, and creates missing folders."""
    if names[1:]:
        with contextlib.suppress(FileExistsError):
            os.mkdir(names[0], 0o700, dir_fd=folder)
        with closing(own_below(folder, names[0])) as below:
            write_below(below, names[1:], contents)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(names[0], flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(contents)


def leftovers(inside: Container, bare: Process, used: Set[str]) -> Iterator[LoadFolder]:
    """Yields this user's folders whose nodes have ended, and those of `bare`, a node without dyntrace. `used` has the
    names that this user's nodes have mapped: those nodes may have other PIDs in this command's namespace."""
    for parent in PARENTS:
        names: List[str] = []
        with contextlib.suppress(OSError):
            names = inside.list_folder(parent)
        for name in names:
            found = re.fullmatch(LOADED_NAME, name)
            if found and name not in used and (is_for(name, bare)
                                               or Process(int(found.group(1))).began != int(found.group(2))):
                with contextlib.suppress(OSError):
                    place = LoadFolder(inside, parent, name)
                    with contextlib.suppress(OSError), closing(own_below(place.parent, name)):
                        yield place
                    place.close()
