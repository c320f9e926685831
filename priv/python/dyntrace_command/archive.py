"""Recordings as a tar: written as they are now, and read from a host that is not trusted.

A host may send anything, without end. Only regular files and folders with plain names are unpacked, into a folder that
has nothing else; not more of them, and of bytes, than a bound, and no more than the disk has room for.
"""
import contextlib
import os
import re
import stat
import tarfile
from typing import BinaryIO

from dyntrace_command.failures import Failure
from dyntrace_command.files import MB, RESERVE, check_room
from dyntrace_command.terminal import clean

BYTES_MOST = 8 << 30
FILES_MOST = 10000
NAMES_OF_PATH = 20
NAME = re.compile(r"[\w@+:,=-][\w@+:,=.-]{0,200}", re.ASCII)
BLOCK = tarfile.BLOCKSIZE


def pack(tar: tarfile.TarFile, folder: str, name: str) -> None:
    """Packs the plain files below the folder as they are now: those of another user's daemon may be links."""
    for path, _, files in os.walk(folder):
        for file_name in files:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                opened = os.open(os.path.join(path, file_name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with open(opened, "rb") as file:
                    status = os.fstat(opened)
                    if stat.S_ISREG(status.st_mode):
                        packed = os.path.join(name, os.path.relpath(path, folder), file_name)
                        member = tarfile.TarInfo(os.path.normpath(packed))
                        member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), 0o600
                        tar.addfile(member, file)


def unpack(stream: BinaryIO, folder: str) -> int:
    """Unpacks a tar of somebody else; returns the number of files. Raises Failure if it is not such a tar."""
    total = files = 0
    while True:
        header = read_exactly(stream, BLOCK)
        if not header.strip(b"\0"):
            stream.read(tarfile.RECORDSIZE - BLOCK)
            return files
        try:
            member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise Failure("bad_stream", why=str(error)) from None
        parts = member.name.rstrip("/").split("/")
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE) or member.name.startswith("/") \
                or not all(map(NAME.fullmatch, parts)):
            raise Failure("bad_stream", why=f"{clean(ascii(member.name))} is no plain file or folder below it")
        total, files = total + member.size, files + 1
        if total > BYTES_MOST or files > FILES_MOST or member.size < 0 or len(parts) > NAMES_OF_PATH:
            raise Failure("bad_stream", why="it is too large")
        path = os.path.join(folder, *parts)
        if member.type == tarfile.DIRTYPE:
            os.makedirs(path, mode=0o700, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            unpack_file(stream, path, member.size)


def unpack_file(stream: BinaryIO, path: str, count: int) -> None:
    """Writes a file. No link is there that could be followed: all below the folder comes from here."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        for at in range(0, count, MB):
            check_room(os.path.dirname(path), RESERVE, "; nothing of this host is kept")
            file.write(read_exactly(stream, min(MB, count - at)))
    read_exactly(stream, -count % BLOCK)


def read_exactly(stream: BinaryIO, count: int) -> bytes:
    """Returns `count` bytes; raises Failure if the stream ends before."""
    data = stream.read(count) if count else b""
    if len(data) < count:
        raise Failure("cut_stream")
    return data
