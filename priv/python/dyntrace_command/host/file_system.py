"""The file system that a process sees, read in a child process of this command (`sandbox`). Possible attacks by the
users of that file system, and what prevents them:

- **A link that leads out.** The kernel resolves a link below /proc/PID/root in the file system of the process that
  opens it. So `open_below` walks the path name by name and resolves links and `..` below the process's root, as the
  process itself would. The child has no right to open files outside of it anyway.
- **A file that is replaced after the check.** The walk opens a descriptor, which stays the file that was checked.
- **A pipe, a device, an endless file.** A pipe blocks its reader, and opening a device may have side effects. The walk
  uses O_PATH, which reads nothing; only regular files are then opened for reading, up to a bound.
- **A file system that does not answer**, such as a dead NFS server, or FUSE with a malicious server: even a lookup of a
  name may never return. Files of other users' processes on such file systems are refused.
"""
import contextlib
import errno
import itertools
import os
import re
import stat
from typing import AbstractSet, List, Optional, Set, Tuple

from dyntrace_command.host.files import MB, check_regular, closing, read_at_most, read_regular
from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import STATE, check_child, opening_proc
from dyntrace_command.host.trees import mount_of

# Bounds of a walk: links, as in the kernel; names in a path, including those of its links.
LINKS, NAMES_OF_PATH = 40, 200
LIBRARY_MOST = 64 * MB
# Bytes of a file in /proc: the kernel allows 65,530 mappings, one per line. Below: names in a folder.
TEXT_MOST = 32 * MB
FOLDER_MOST = 10000
COOKIE_MODES = (0o400, 0o600)
# Types of file systems that another machine or a program provides.
REMOTE = re.compile(r"fuse\b.*|nfs\d?|cifs|smb\d|9p|ceph|afs|coda|lustre|gfs2|ocfs2|orangefs|ncpfs")


class FileSystem:
    """The file system of a process, and the process's own files in /proc."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.dir = process.dir
        # Mounts and devices of file systems that may not answer; None until first used.
        self.remote: Optional[Tuple[Set[str], Set[str]]] = None

    # Its texts

    def open_proc(self, name: str) -> int:
        """Opens a file of the process in /proc, which must not be a link."""
        check_child()
        with opening_proc():
            return os.open(f"{self.dir}/{name}", os.O_RDONLY | os.O_CLOEXEC)

    def text(self, name: str) -> str:
        """Returns the text of a file of the process in /proc."""
        with closing(self.open_proc(name)) as file:
            read = read_at_most(file, TEXT_MOST + 1)
        if len(read) > TEXT_MOST:
            raise OSError(0, f"its {name} is too large")
        return read.decode("utf-8", "replace")

    def remote_mounts(self) -> Tuple[Set[str], Set[str]]:
        """Returns (mount IDs, devices) of file systems that may not answer. For processes of the user who runs this
        command nothing is refused, because a hang affects only that user."""
        if self.remote is None:
            found = []
            if STATE.is_foreign:
                rows = (line.split(" ") for line in self.text("mountinfo").split("\n"))
                found = [row for row in rows if "-" in row and REMOTE.fullmatch(row[row.index("-") + 1])]
            self.remote = {row[0] for row in found}, {row[2] for row in found}
        return self.remote

    def paths(self, path: str) -> List[str]:
        """Returns the possible paths, in the process's own file system, of a mapping. The kernel prefixes the path with
        the process's root if that is a folder in this command's file system."""
        root = ""
        with contextlib.suppress(OSError):
            root = os.readlink(f"{self.dir}/root").rstrip("/")
        return [path, path[len(root):]] if root and path.startswith(root + "/") else [path]

    def open(self, path: str) -> int:
        """Returns a descriptor (O_PATH) of a file in the process's own file system."""
        *others, last = self.paths(path)
        for other in others:
            # It need not exist there, nor may this user enter the folders above: in a chroot below /root, for example.
            with contextlib.suppress(OSError):
                return self.open_below(other)
        return self.open_below(last)

    def open_below(self, path: str, has_foreign_links: bool = True) -> int:
        """Does the same for a path that starts at the process's root."""
        check_child()
        return open_below(f"{self.dir}/root", path, self.remote_mounts()[0], has_foreign_links)

    def open_regular(self, path: str, most: int = LIBRARY_MOST) -> int:
        """Does the same as `open`, for a regular file of at most `most` bytes; the default is a library's bound.
        Tracers open the library through this descriptor."""
        descriptor = self.open(path)
        try:
            check_regular(descriptor, most)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def read_file(self, path: str, most: int) -> bytes:
        """Returns the contents of a regular file of at most `most` bytes."""
        with closing(self.open_regular(path, most)) as descriptor:
            return read_regular(f"/proc/self/fd/{descriptor}", most)

    def read_text(self, path: str) -> str:
        """Returns the text of a file of a few lines."""
        return self.read_file(path, MB).decode("utf-8", "replace")

    def read_cookie(self, path: str) -> str:
        """Returns the text of a cookie file. As OTP requires, it must be a regular file that no other user can read. It
        must also belong to the process's user, and the path may contain links of root only."""
        with closing(self.open_below(path, has_foreign_links=False)) as descriptor:
            check_regular(descriptor, MB)
            status = os.fstat(descriptor)
            if status.st_uid != self.process.uid() or stat.S_IMODE(status.st_mode) not in COOKIE_MODES:
                raise PermissionError(errno.EPERM, "it is not a file of its user with mode 400 or 600", path)
            return read_regular(f"/proc/self/fd/{descriptor}", MB).decode("utf-8", "replace")

    def list_folder(self, path: str) -> List[str]:
        """Returns the names in a folder, at most FOLDER_MOST."""
        with closing(self.open(path)) as descriptor, os.scandir(f"/proc/self/fd/{descriptor}") as entries:
            return sorted(entry.name for entry in itertools.islice(entries, FOLDER_MOST))


def open_below(root: str, path: str, refused: AbstractSet[str] = frozenset(), has_foreign_links: bool = True) -> int:
    """Returns a descriptor (O_PATH) of the file that has this path for a process whose root is `root`. It enters no
    refused mount. Without `has_foreign_links`, it follows only links owned by root, and none as the last name."""
    folders = [os.open(root, os.O_PATH | os.O_DIRECTORY)]
    names, links = path.split("/")[::-1], 0
    try:
        check_mount(folders[-1], refused)
        while names:
            target = enter(folders, names.pop(), refused, has_foreign_links, not names)
            if target is not None:
                links += 1
                names += target.split("/")[::-1]
            if links > LINKS or len(folders) + len(names) > NAMES_OF_PATH:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.dup(folders[-1])
    finally:
        for folder in folders:
            os.close(folder)


def check_mount(descriptor: int, refused: AbstractSet[str]) -> None:
    """Raises OSError if the file is on one of these mounts."""
    if refused and mount_of(descriptor) in refused:
        raise OSError(0, "it is on a file system that may not answer (FUSE or network)")


def enter(folders: List[int], name: str, refused: AbstractSet[str], has_foreign_links: bool,
          is_last: bool) -> Optional[str]:
    """Takes one step of the walk. `folders` are the descriptors from the root to the current folder. If the name is a
    link, returns its target, which the walk then resolves relative to the last of `folders`."""
    if name in ("", "."):
        return None
    if name == "..":
        # The root's parent is the root.
        if len(folders) > 1:
            os.close(folders.pop())
        return None
    folders.append(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folders[-1]))
    # Before any other access to that file system.
    check_mount(folders[-1], refused)
    status = os.fstat(folders[-1])
    if not stat.S_ISLNK(status.st_mode):
        return None
    with closing(folders.pop()) as link:
        if not has_foreign_links and (is_last or status.st_uid != 0):
            raise OSError(errno.ELOOP, "a link leads there", name)
        target = os.readlink("", dir_fd=link)
    while target.startswith("/") and len(folders) > 1:
        os.close(folders.pop())
    return target
