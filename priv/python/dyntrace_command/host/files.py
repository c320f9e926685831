"""Files that other users can reach: reads them safely, and creates files that only their owner can read.

The folders may belong to a node's user or to a daemon of another user, who may put links, pipes, devices or endless
files there.
"""
import contextlib
import errno
import itertools
import mmap
import os
import secrets
import shutil
import stat
import tempfile
from typing import Iterator, Optional, Union

from dyntrace_command.common.failures import Failure, user_name
from dyntrace_command.common.terminal import size
from dyntrace_command.host.execution import PIECE

MB = 1000 * 1000

# Free bytes that a recording needs at its start, and those that it leaves to others.
NEEDED_AT_START = 64 * MB
RESERVE = 24 * MB

NOT_OURS = "it belongs to another user, or another process has replaced it"


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Closes the descriptor at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_regular(descriptor: int, most: int) -> None:
    """Raises OSError unless it is a regular file of at most `most` bytes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        raise OSError(0, "it is not a regular file, or it is too large")


def read_regular(path: str, most: int) -> bytes:
    """Returns the contents of another user's file. Only a regular file is opened for reading: a pipe would block, and
    opening a device may have side effects."""
    with closing(os.open(path, os.O_PATH)) as found:
        check_regular(found, most)
        with closing(os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)) as file:
            return read_at_most(file, most)


def read_at_most(descriptor: int, most: int) -> bytes:
    """Returns the rest of the file from its current offset, at most `most` bytes. It is read in pieces, because
    allocating a buffer of that size would cost more than reading, even for a few bytes."""
    read = bytearray()
    while len(read) < most:
        piece = os.read(descriptor, min(PIECE, most - len(read)))
        if not piece:
            break
        read += piece
    return bytes(read)


def new_folder(path: str) -> str:
    """Creates an empty folder that only its owner may read, because messages contain passwords; returns its absolute
    path."""
    folder = os.path.abspath(path)
    check_way(folder)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with own_folder(folder, is_empty=True) as descriptor:
            os.fchmod(descriptor, 0o700)
            check_way(folder, descriptor)
    except OSError as error:
        raise Failure("not_writable", folder=folder, why=error.strerror) from None
    return folder


def numbered_folder(path: str) -> str:
    """Creates a folder of that name, or of that name and a number if it exists; returns its absolute path. Commands
    that start in the same second thus get different folders."""
    for number in itertools.count(1):
        folder = os.path.abspath(path if number == 1 else f"{path}-{number}")
        check_way(folder)
        try:
            os.mkdir(folder, mode=0o700)
            with own_folder(folder, is_empty=True) as descriptor:
                check_way(folder, descriptor)
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            raise Failure("not_writable", folder=folder, why=error.strerror) from None
    raise AssertionError("numbers do not end")


@contextlib.contextmanager
def own_folder(folder: str, is_empty: bool = False) -> Iterator[int]:
    """Yields a descriptor of the folder. Raises Failure or OSError if another user owns it, if it is a link, or if it
    is not empty and has to be."""
    with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)) as descriptor:
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid():
            raise Failure("not_yours", folder=folder, owner=user_name(owner))
        if is_empty and os.listdir(descriptor):
            raise Failure("exists", folder=folder)
        yield descriptor


def private_folder(name: str, may_pass: bool = False) -> str:
    """Creates a folder, or reuses one that no other user can read, with its contents; returns its absolute path,
    without links. `may_pass`: others may traverse it to reach what is theirs."""
    folder = os.path.realpath(name)
    check_way(folder)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with own_folder(folder) as descriptor:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if mode & (0o066 if may_pass else 0o077):
                raise Failure("open_folder", folder=folder, mode=f"{mode:o}")
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=descriptor):
                raise Failure("not_writable", folder=folder, why=f"you are {user_name(os.geteuid())}")
            check_way(folder, descriptor)
    except OSError as error:
        raise Failure("not_writable", folder=folder, why=error.strerror) from None
    return folder


def check_way(folder: str, made: Optional[int] = None) -> None:
    """Raises Failure if another user owns a folder on the path, or may write to one: that user could replace it by a
    link at any time. With the descriptor of the new folder, also raises it if the path now leads elsewhere. Checks only
    if this command runs as root. The user of sudo is trusted."""
    if os.geteuid() != 0:
        return
    path, *names = os.path.realpath(folder).split("/")
    with contextlib.ExitStack() as opened:
        place = opened.enter_context(closing(os.open("/", os.O_PATH | os.O_DIRECTORY)))
        for name in filter(None, names):
            check_place(place, path or "/")
            path += f"/{name}"
            try:
                place = opened.enter_context(closing(os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=place)))
            except FileNotFoundError:
                break
            except OSError as error:
                raise Failure("not_writable", folder=folder, why=error.strerror) from None
        if made is not None and not os.path.samestat(os.fstat(place), os.fstat(made)):
            raise Failure("way_of_others", folder=path, why="was replaced")


def check_temporary() -> None:
    """Raises Failure if another user could replace temporary files of root's command, or of a program that it runs."""
    try:
        check_way(os.path.join(os.environ.get("TMPDIR", "/tmp"), "dyntrace"))
    except Failure as failure:
        raise Failure("temporary_of_others", **failure.values) from None


def check_place(place: int, path: str) -> None:
    """Raises Failure if a user other than root, or the one of sudo, may replace entries of the folder."""
    status = os.fstat(place)
    if stat.S_ISLNK(status.st_mode):
        raise Failure("way_of_others", folder=path, why="was replaced by a link")
    if str(status.st_uid) not in ("0", os.environ.get("SUDO_UID")):
        raise Failure("way_of_others", folder=path, why=f"belongs to {user_name(status.st_uid)}")
    if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        raise Failure("way_of_others", folder=path, why=f"is open to all (mode {stat.S_IMODE(status.st_mode):o})")


def checked_output(path: str) -> str:
    """Returns the absolute path of a file after checking that its folder is writable; `-` is returned unchanged. The
    file may be written only after long work, so problems are reported before."""
    if path == "-":
        return path
    try:
        path = os.path.abspath(path)
    except FileNotFoundError:
        raise Failure("not_writable", folder=path, why="the current folder was removed") from None
    folder = os.path.dirname(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise Failure("not_writable", folder=path, why=error.strerror) from None
    if stat.S_ISDIR(mode):
        raise Failure("not_writable", folder=path, why="it is a folder")
    if not stat.S_ISREG(mode):
        # A pipe or a device is written to in place; trying that might have side effects.
        return path
    if not os.path.isdir(folder):
        raise Failure("not_writable", folder=path, why=f"there is no folder {folder}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return path
    except OSError as error:
        raise Failure("not_writable", folder=folder, why=error.strerror) from None


@contextlib.contextmanager
def new_file(path: str) -> Iterator[str]:
    """Yields an empty file of that name, or of that name and a number if it exists: commands that start in the same
    second thus use different files. It is removed at the end if it is still empty and has not been replaced."""
    stem, extension = os.path.splitext(path)
    for number in itertools.count(2):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            break
        except FileExistsError:
            path = f"{stem}-{number}{extension}"
    with closing(descriptor):
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                if leads_to(None, path, descriptor) and os.fstat(descriptor).st_size == 0:
                    os.unlink(path)


def leads_to(folder: Optional[int], name: str, descriptor: int) -> bool:
    """Returns whether the name leads to the open file, without links, and the file is this user's."""
    there, mine = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(descriptor)
    return os.path.samestat(there, mine) and mine.st_uid == os.geteuid()


Contents = Union[bytes, mmap.mmap]


def write_file(path: str, text: Union[str, Contents]) -> None:
    """Writes a file atomically: it is complete or absent, as in viewer/shared/file.c, which explains why. Raises
    Failure if that is impossible."""
    folder, name = os.path.split(path)
    contents = text.encode() if isinstance(text, str) else text
    try:
        with closing(os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)) as place:
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=place, follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
                    write_special(place, name, found, contents)
                    return
            replace(place, path, contents)
    except OSError as error:
        raise Failure("not_writable", folder=path, why=error.strerror) from None


def write_special(place: int, name: str, found: os.stat_result, contents: Contents) -> None:
    """Writes to a device or a pipe in place, unless it belongs to another user."""
    if found.st_uid not in (0, os.geteuid()):
        raise OSError(errno.EPERM, "it is a device or a pipe of another user")
    with open(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY, dir_fd=place), "wb") as file:
        if not os.path.samestat(os.fstat(file.fileno()), found):
            raise OSError(errno.EPERM, NOT_OURS)
        file.write(contents)


def replace(place: int, path: str, contents: Contents) -> None:
    """Writes a temporary file in the open folder, and renames it when it is complete."""
    part, name = f"dyntrace-{secrets.token_hex(8)}.part", os.path.basename(path)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(contents)
            file.flush()
            if not leads_to(place, part, descriptor):
                raise OSError(errno.EPERM, NOT_OURS)
            mask = os.umask(0)
            os.umask(mask)
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o666 & ~mask)
            os.rename(part, name, src_dir_fd=place, dst_dir_fd=place)
            if not leads_to(None, path, descriptor):
                raise OSError(errno.EPERM, NOT_OURS)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=place)
        raise


def has_room(folder: str) -> bool:
    """Returns whether a recording may continue in the folder."""
    return shutil.disk_usage(folder).free >= RESERVE


def check_room(folder: str, needed: int, kept: str = "") -> None:
    """Raises Failure unless `needed` bytes are free; `kept` says which part of the work is kept."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failure("disk_full", folder=folder, free=size(free), kept=kept)
