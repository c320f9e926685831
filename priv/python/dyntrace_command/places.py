"""A folder of this command's in the file system of a node, for the library that `dyntrace load` takes there: what root
writes where a container rules, and removes.

The folder is below one that everybody may write to, which others may fill, or replace with links. So:

- The way to the parent is walked by `Container.open`, without links that lead out. From there on all is done by
  descriptors: a folder is made, then opened without following a link, and must be this user's own.
- A user with a namespace of mounts can mount any folder of the host over another. So a folder must be in the same mount
  as the one above it.
- Files are made new, never opened where one is. Others may read them and not write.
- A name has the number and the start of the node's process, so that nobody can have another node's folder removed by
  naming it. Only a folder of such a name that belongs to this user is removed, and in it only what was written, where
  it was written.
"""
import contextlib
import errno
import os
import re
import shutil
import stat
from typing import Dict, Iterator, List, Optional, Pattern, Sequence, Set

from dyntrace_command.container import Container
from dyntrace_command.files import MB, closing
from dyntrace_command.process import Process
from dyntrace_command.terminal import size

# The first that will do is taken.
PARENTS = ("/tmp", "/var/tmp", "/dev/shm", "/run")
NAME = r"dyntrace-load-(\d{1,9})-(\d{1,19})-[0-9a-f]{8}"
FOLDER = re.compile(rf"({'|'.join(PARENTS)})/({NAME})/dyntrace-[\w.+-]{{1,40}}/(?:ebin|priv)/[\w.]+")
NEEDED = 16 * MB
# What is removed.
PACKAGE, SUBFOLDER = re.compile(r"dyntrace-[\w.+-]{1,40}"), re.compile(r"ebin|priv")
FILE = re.compile(r"[\w.]+\.(?:beam|app|so)")


def new_name(process: Process) -> str:
    """Returns a name for a folder of a process."""
    return f"dyntrace-load-{process.pid}-{process.began}-{os.urandom(4).hex()}"


def is_for(name: str, process: Process) -> bool:
    """Returns whether a folder's name is one for the process."""
    found = re.fullmatch(NAME, name)
    return found is not None and (int(found.group(1)), int(found.group(2))) == (process.pid, process.began)


def why_not(inside: Container, parent: str) -> Optional[str]:
    """Returns why a library can't be there; None if it can."""
    try:
        with closing(inside.open(parent)) as descriptor:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return "it is no folder"
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
        return error.strerror or str(error)


class Place:
    """A folder below a parent in the file system of a node. It can be removed also when the node has ended."""

    def __init__(self, inside: Container, parent: str, name: str) -> None:
        self.path, self.name = f"{parent}/{name}", name
        self.parent = inside.open(parent)

    def close(self) -> None:
        """Leaves it as it is."""
        os.close(self.parent)

    def fill(self, files: Dict[str, str], is_private: bool) -> None:
        """Makes the folder with these files, {path below it: file to copy}."""
        os.mkdir(self.name, 0o700, dir_fd=self.parent)
        with closing(own_below(self.parent, self.name)) as folder:
            if os.listdir(f"/proc/self/fd/{folder}"):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), self.path)
            for path, source in files.items():
                write_below(folder, path.split("/"), source)
            os.fchmod(folder, 0o700 if is_private else 0o755)

    def modules(self) -> List[str]:
        """Returns the modules that are in it; none if it is not there."""
        found: List[str] = []
        with contextlib.suppress(OSError), closing(own_below(self.parent, self.name)) as folder:
            for package in filter(PACKAGE.fullmatch, os.listdir(f"/proc/self/fd/{folder}")):
                with closing(own_below(folder, package)) as inner, closing(own_below(inner, "ebin")) as ebin:
                    found += os.listdir(f"/proc/self/fd/{ebin}")
        return sorted(name[:-len(".beam")] for name in found if FILE.fullmatch(name) and name.endswith(".beam"))

    def remove(self) -> None:
        """Removes it; raises OSError if it is another's, or if it has something that was not written by this
        command."""
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


def mount_of(descriptor: int) -> str:
    """Returns the number of the mount that a file was opened in: each bind mount has one of its own."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        return next(line for line in file if line.startswith("mnt_id:"))


def remove_below(parent: int, name: str, below: Sequence[Pattern[str]]) -> None:
    """Removes a folder that has, level by level, folders of these names; files are in the last."""
    with closing(own_below(parent, name)) as folder:
        for inner in os.listdir(f"/proc/self/fd/{folder}"):
            if below and below[0].fullmatch(inner):
                remove_below(folder, inner, below[1:])
            elif not below and FILE.fullmatch(inner):
                os.unlink(inner, dir_fd=folder)
    os.rmdir(name, dir_fd=parent)


def write_below(folder: int, names: List[str], source: str) -> None:
    """Copies a file to a path below a folder, with the folders on the way."""
    if names[1:]:
        with contextlib.suppress(FileExistsError):
            os.mkdir(names[0], 0o700, dir_fd=folder)
        with closing(own_below(folder, names[0])) as below:
            os.fchmod(below, 0o755)
            write_below(below, names[1:], source)
        return
    descriptor = os.open(names[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with open(descriptor, "wb") as copy, open(source, "rb") as original:
        shutil.copyfileobj(original, copy)
        os.fchmod(copy.fileno(), 0o644)


def leftovers(inside: Container, bare: Process, used: Set[str]) -> Iterator[Place]:
    """Yields the folders of this user there whose nodes have ended, and those of a node that has no dyntrace. `used`:
    names that nodes of this host have in their memory, which this command may know by other numbers."""
    for parent in PARENTS:
        names: List[str] = []
        with contextlib.suppress(OSError):
            names = inside.list_folder(parent)
        for name in names:
            found = re.fullmatch(NAME, name)
            if found and name not in used and (is_for(name, bare)
                                               or Process(int(found.group(1))).began != int(found.group(2))):
                with contextlib.suppress(OSError):
                    place = Place(inside, parent, name)
                    with contextlib.suppress(OSError), closing(own_below(place.parent, name)):
                        yield place
                    place.close()
