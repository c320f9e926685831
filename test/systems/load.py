"""What the clients of services have in common: options, counts, and threads whose failure ends the program."""
import os
import sys
import threading
import traceback


class Load:
    """A program that works until a line or the end of its standard input, or until it has done its work."""

    def __init__(self, defaults, arguments):
        given = (argument.split("=") for argument in arguments)
        self.options = {**defaults, **{name: int(value) for name, value in given}}
        self.counts = {}
        self.lock = threading.Lock()
        # No more is sent; nothing more is awaited.
        self.stopped, self.ended = threading.Event(), threading.Event()

    def count(self, name, number=1):
        """Counts some more."""
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + number

    def counted(self, name):
        """Returns how many there were until now."""
        return self.counts.get(name, 0)

    def start(self, target, *arguments):
        """Starts a thread."""
        thread = threading.Thread(target=self.run, args=(target, arguments))
        thread.start()
        return thread

    @staticmethod
    def run(target, arguments):
        """Runs in a thread. Others may wait for it for ever."""
        try:
            target(*arguments)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # pylint: disable=protected-access

    @staticmethod
    def ready():
        """Says that all connections are open."""
        print("ready", flush=True)

    def finish(self):
        """Says what was counted."""
        for name, number in self.counts.items():
            print(name, number)
        print("end", flush=True)
