#!/usr/bin/env python3
"""Runs a set-user-ID program that looks like an Erlang node of root, as a user would do to get root's rights.

    set_user_id.py FOLDER PROGRAM ARGUMENT...

The program has beam.smp as its name, a HOME whose cookie is a link to root's, and an epmd and a listening socket that
this script has made. Prints the program's pid, then `connected` for each connection to that socket.
"""
import os
import pty
import sys

from fake_node import listener, serve


def main() -> None:
    """Starts the program on a terminal, and ends it at the end of standard input."""
    folder, program, *arguments = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.symlink("/root/.erlang.cookie", os.path.join(folder, ".erlang.cookie"))
    node, asked = listener(), listener()
    pid, terminal = pty.fork()
    if pid == 0:
        os.set_inheritable(node.fileno(), True)
        os.execve(program, ["beam.smp", *arguments], {"HOME": folder, "ERL_EPMD_PORT": str(asked.getsockname()[1])})
    # The program waits for a password.
    os.read(terminal, 1)
    print(pid, flush=True)
    serve(node, asked)
    # The program ends with its terminal.
    sys.stdin.read()


main()
