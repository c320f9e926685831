#!/usr/bin/env python3
"""Runs processes that look like Erlang nodes, each with its own epmd, which sends a byte now and then.

    slow_epmds.py COUNT

Prints `ready` once all of them run.
"""
import os
import socket
import subprocess
import sys
import threading
import time


def drip(asked: socket.socket) -> None:
    """Answers slowly and endlessly."""
    while True:
        connected, _ = asked.accept()
        threading.Thread(target=drip_to, args=(connected,), daemon=True).start()


def drip_to(connected: socket.socket) -> None:
    """Sends bytes without ever completing a line."""
    try:
        while True:
            connected.sendall(b".")
            time.sleep(0.1)
    except OSError:
        pass


def main() -> None:
    """Starts the processes."""
    started = []
    for _ in range(int(sys.argv[1])):
        asked = socket.socket()
        asked.bind(("127.0.0.1", 0))
        asked.listen(5)
        threading.Thread(target=drip, args=(asked,), daemon=True).start()
        environment = {**os.environ, "ERL_EPMD_PORT": str(asked.getsockname()[1])}
        started.append(subprocess.Popen(["beam.smp", "100"], executable="/bin/sleep", env=environment))
    print("ready", flush=True)
    sys.stdin.read()
    for process in started:
        process.kill()


main()
