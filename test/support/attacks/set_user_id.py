#!/usr/bin/env python3
"""Runs a set-user-ID program that looks like an Erlang node of root, as its user would to be given root's rights.

    set_user_id.py FOLDER PROGRAM ARGUMENT...

The program has beam.smp as its name, a HOME whose cookie is a link to root's, an epmd of this script's, and a listening
socket that this script has made. Prints the program's number, then `connected` for each connection to that socket.
"""
import os
import pty
import socket
import sys
import threading


def listener() -> socket.socket:
    """Returns a socket that listens on the loopback."""
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
    """Starts the program on a terminal, and ends it at the end of standard input."""
    folder, program, *arguments = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.symlink("/root/.erlang.cookie", os.path.join(folder, ".erlang.cookie"))
    node, asked = listener(), listener()
    port, epmd_port = (one.getsockname()[1] for one in (node, asked))
    pid, terminal = pty.fork()
    if pid == 0:
        os.set_inheritable(node.fileno(), True)
        os.execve(program, ["beam.smp", *arguments], {"HOME": folder, "ERL_EPMD_PORT": str(epmd_port)})
    # It waits for a password.
    os.read(terminal, 1)
    print(pid, flush=True)
    threading.Thread(target=epmd, args=(asked, port), daemon=True).start()
    threading.Thread(target=report, args=(node,), daemon=True).start()
    # The program ends with its terminal.
    sys.stdin.read()


main()
