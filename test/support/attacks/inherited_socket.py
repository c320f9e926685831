#!/usr/bin/env python3
"""Runs a process of root that looks like an Erlang node, with a listening socket made by another user.

    inherited_socket.py

Prints the pid of the process, then `connected` for each connection to the socket.
"""
import os
import subprocess
import sys

from fake_node import listener, serve


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
    serve(node, asked)
    sys.stdin.read()
    process.kill()


main()
