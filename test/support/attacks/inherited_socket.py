#!/usr/bin/env python3
"""Runs a process of root that looks like an Erlang node, and whose listening socket was made by another user.

    inherited_socket.py

Prints the number of the process, then `connected` for each connection to the socket.
"""
import os
import socket
import subprocess
import sys
import threading


def listener() -> socket.socket:
    """Returns a socket that the present effective user has made, and that listens on the loopback."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(5)
    return made


def epmd(asked: socket.socket, port: int) -> None:
    """Answers as an epmd that has one node."""
    while True:
        connected, _ = asked.accept()
        connected.recv(10)
        connected.sendall(b"\0\0\0\0" + f"name root at port {port}\n".encode())
        connected.close()


def report(node: socket.socket) -> None:
    """Reports connections."""
    while True:
        node.accept()
        print("connected", flush=True)


def main() -> None:
    """Starts the process, and ends it at the end of standard input."""
    os.seteuid(65534)
    node = listener()
    os.seteuid(0)
    asked = listener()
    environment = {"HOME": "/root", "ERL_EPMD_PORT": str(asked.getsockname()[1])}
    process = subprocess.Popen(["beam.smp", "-c", "while sleep 1; do :; done", "-setcookie", "known"],
                               executable="/bin/sh", env=environment, pass_fds=[node.fileno()])
    print(process.pid, flush=True)
    threading.Thread(target=epmd, args=(asked, node.getsockname()[1]), daemon=True).start()
    threading.Thread(target=report, args=(node,), daemon=True).start()
    sys.stdin.read()
    process.kill()


main()
