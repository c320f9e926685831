"""Common parts of the services' clients: options, counts, and threads whose failure ends the program."""
import os
import sys
import threading
import traceback


class Load:
    """A program that works until standard input has a line or ends, or until its work is done."""

    def __init__(self, defaults, arguments):
        given = (argument.split("=") for argument in arguments)
        self.options = {**defaults, **{name: int(value) for name, value in given}}
        self.counts = {}
        self.lock = threading.Lock()
        # No more messages are sent, and no more are awaited.
        self.stopped, self.ended = threading.Event(), threading.Event()

    def count(self, name, number=1):
        """Counts some more."""
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + number

    def counted(self, name):
        """Returns the count so far."""
        return self.counts.get(name, 0)

    def start(self, target, *arguments):
        """Starts a thread."""
        thread = threading.Thread(target=self.run, args=(target, arguments))
        thread.start()
        return thread

    @staticmethod
    def run(target, arguments):
        """Runs in a thread. A failure ends the program, because other threads may wait for this one forever."""
        try:
            target(*arguments)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # pylint: disable=protected-access

    @staticmethod
    def ready():
        """Reports that all connections are open."""
        print("ready", flush=True)

    def finish(self):
        """Prints the counts."""
        for name, number in self.counts.items():
            print(name, number)
        print("end", flush=True)
