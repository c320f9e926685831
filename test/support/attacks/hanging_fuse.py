#!/usr/bin/env python3
"""Runs a process that looks like an Erlang node, with memory on a FUSE file system that stops answering.

    hanging_fuse.py FOLDER LIBRARY OFFSET

Runs as a user with its own user and mount namespaces, who may open /dev/fuse. LIBRARY is a file dyntrace.so on any file
system. The process maps it, and maps a file of FOLDER, where it mounts the FUSE file system, over all of it except the
first page. It prints its pid once it waits for the page at OFFSET itself. From then on, no request is answered until
standard input ends.
"""
import ctypes
import mmap
import os
import struct
import sys
import threading

# From linux/fuse.h: operations, and the formats of messages.
LOOKUP, GETATTR, OPEN, READ, RELEASE, INIT, FORGET = 1, 3, 14, 15, 18, 26, 2
HEADER, ANSWER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
ROOT, FILE = 1, 2
SIZE, PAGE, MAP_FIXED = 16 << 20, 4096, 16


class Server:
    """Serves one file until it hangs."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_hanging = False

    def attributes(self, node: int) -> bytes:
        """Returns the attributes of the folder or the file."""
        size, mode = (0, 0o40755) if node == ROOT else (SIZE, 0o100755)
        return ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def run(self) -> None:
        """Answers requests."""
        while True:
            request = os.read(self.descriptor, 1 << 17)
            _, operation, unique, node, _, _, _, _ = HEADER.unpack_from(request)
            if self.is_hanging or operation == FORGET:
                continue
            body = request[HEADER.size:]
            answer, error = self.answer(operation, node, body)
            os.write(self.descriptor, ANSWER.pack(ANSWER.size + len(answer), error, unique) + answer)

    def answer(self, operation: int, node: int, body: bytes) -> "tuple[bytes, int]":
        """Returns the answer and the error for one request."""
        if operation == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0), 0
        if operation == LOOKUP and body.rstrip(b"\0") == b"page":
            return struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + self.attributes(FILE), 0
        if operation == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node), 0
        if operation == OPEN:
            return struct.pack("<QII", 1, 0, 0), 0
        if operation == READ:
            return bytes(struct.unpack_from("<8xQI", body)[1]), 0
        if operation == RELEASE:
            return b"", 0
        return b"", -38


def mount(folder: str, descriptor: int) -> None:
    """Mounts the file system."""
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"fuse", folder.encode(), b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def map_over(library: str, path: str) -> int:
    """Maps the library, and the file at that path over it. Returns the address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with open(library, "rb") as file, open(path, "rb") as over:
        address = libc.mmap(None, SIZE, mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), 0)
        libc.mmap(address + PAGE, SIZE - PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE | MAP_FIXED, over.fileno(), PAGE)
    return int(address)


def main() -> None:
    """Maps in this process. The server is a child that ends with standard input; the kernel then answers all requests
    with an error."""
    folder, library, offset = sys.argv[1:]
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    mount(folder, descriptor)
    stops, stop = os.pipe()
    if os.fork() == 0:
        os.close(stop)
        server = Server(descriptor)
        threading.Thread(target=server.run, daemon=True).start()
        os.read(stops, 1)
        server.is_hanging = True
        sys.stdin.read()
        os._exit(0)  # pylint: disable=protected-access
    os.close(descriptor)
    address = map_over(library, os.path.join(folder, "page")) + int(offset)
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("beam.smp")
    os.write(stop, b"1")
    # A function that does not block Python's other threads.
    reads = ctypes.CDLL(None).strnlen
    threading.Thread(target=reads, args=(ctypes.c_void_p(address), ctypes.c_size_t(1)), daemon=True).start()
    print(os.getpid(), flush=True)
    os.wait()
    os._exit(0)  # pylint: disable=protected-access


main()
