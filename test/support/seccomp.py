#!/usr/bin/python3
"""Runs a program with a seccomp filter that forbids mapping the code segment of a library. The filter recognizes the
system call by length and offset, because it is otherwise like those for other libraries.

    seccomp.py LIBRARY PROGRAM [ARGUMENT...]
"""
import ctypes
import os
import struct
import sys
from typing import Tuple

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM = 0x7fff0000, 0x00050001
MMAP = {"x86_64": 9, "aarch64": 222}[os.uname().machine]
PROT_EXEC, PAGE = 4, 4096


def code_of(path: str) -> Tuple[int, int]:
    """Returns the length and the offset that the dynamic linker maps as code."""
    with open(path, "rb") as file:
        elf = file.read()
    offset: int = struct.unpack_from("<Q", elf, 0x20)[0]
    size, count = struct.unpack_from("<HH", elf, 0x36)
    for at in range(offset, offset + size * count, size):
        kind, flags, begin, address, _, length = struct.unpack_from("<IIQQQQ", elf, at)
        if kind == 1 and flags & 1:
            return (address + length + PAGE - 1) // PAGE * PAGE - address // PAGE * PAGE, begin // PAGE * PAGE
    raise ValueError(path)


def main() -> None:
    """Sets the filter and becomes the program."""
    length, begin = code_of(sys.argv[1])
    # struct seccomp_data: nr at 0, args[1] at 24, args[2] at 32, args[5] at 56. A jump skips that many instructions.
    steps = [(LOAD, 0, 0, 0), (EQUAL, 0, 7, MMAP), (LOAD, 0, 0, 24), (EQUAL, 0, 5, length), (LOAD, 0, 0, 56),
             (EQUAL, 0, 3, begin), (LOAD, 0, 0, 32), (ANY_BIT, 0, 1, PROT_EXEC), (RETURN, 0, 0, EPERM),
             (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("<H6xQ", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0):
        sys.exit("no seccomp")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
