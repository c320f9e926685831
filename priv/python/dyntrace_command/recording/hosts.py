"""The snapshots of hosts. For each host, this one included, a command writes a tar archive to standard output."""
import contextlib
import io
import os
import shlex
import signal
import subprocess
import threading
import time
from typing import BinaryIO, List, NamedTuple, Optional, cast

from dyntrace_command.common.failures import MISSING, NO_NODE, Failure
from dyntrace_command.common.terminal import clean, size
from dyntrace_command.host.execution import LastOutput, TimedStream, end_with_parent
from dyntrace_command.host.trees import folder_size, remove_tree
from dyntrace_command.recording.archive import unpack
from dyntrace_command.recording.rendering import said

SNAPSHOT_S = 600
# Seconds that a host's command has to end after its output or after it was killed.
ENDS_S = 5
# The maximum length of a host's messages, which may be endless.
MESSAGES_MOST = 4096


class Host(NamedTuple):
    """A name, the command that sends the host's snapshot, and whether the host may have no flight recorder."""
    name: str
    command: List[str]
    is_optional: bool


class Collected(threading.Thread):
    """Collects the snapshot of a host into a folder of its name: all of it or nothing. `failure` is why there is none;
    `is_skipped` if the host has no flight recorder and needs none."""

    def __init__(self, host: Host, folder: str) -> None:
        super().__init__(daemon=True)
        self.host = host
        self.target = os.path.join(folder, host.name)
        self.partial = os.path.join(folder, f".{host.name}.part")
        self.failure: Optional[Failure] = None
        self.process: "Optional[subprocess.Popen[bytes]]" = None
        self.ended_by, self.ended = "", 0.0
        # Messages of a host's command that has sent a snapshot.
        self.said: List[str] = []
        self.is_skipped = False
        self.start()

    def run(self) -> None:
        try:
            self.collect()
        except Failure as failure:
            self.failure = failure
        except OSError as error:
            self.failure = Failure("not_writable", folder=self.partial, why=error.strerror)
        if self.failure:
            remove_tree(self.partial)

    def show(self) -> str:
        """Returns the result as a line."""
        if self.is_skipped:
            return f"{self.host.name}: no flight recorder"
        if self.failure:
            return f"{self.host.name}: {self.failure.text}"
        return "\n  ".join([f"{self.host.name}: {size(folder_size(self.target))}", *self.said])

    def collect(self) -> None:
        """Runs the host's command and unpacks its output."""
        os.mkdir(self.partial, mode=0o700)
        process = self.process = self.started()
        assert process.stdout and process.stderr
        messages = LastOutput(process.stderr, MESSAGES_MOST, is_first=True)
        timer = threading.Timer(SNAPSHOT_S, lambda: self.end(f"no complete snapshot within {SNAPSHOT_S} s"))
        timer.daemon = True
        timer.start()
        wrong, files = None, 0
        stream = process.stdout
        try:
            files = unpack(cast(BinaryIO, io.BufferedReader(TimedStream(stream, self.is_over))), self.partial)
        except Failure as failure:
            wrong = failure
        finally:
            # A command that still sends gets SIGPIPE.
            stream.close()
            timer.cancel()
        status = self.finish(process)
        self.is_skipped = self.host.is_optional and status in (NO_NODE, MISSING)
        if status != 0 and (wrong is None or wrong.key == "cut_stream" or self.ended_by):
            raise self.of_host(status, messages.text())
        if wrong or files == 0:
            raise wrong or Failure("bad_stream", why="it has no files")
        self.said = said(messages.text())
        os.rename(self.partial, self.target)

    def started(self) -> "subprocess.Popen[bytes]":
        """Starts the host's command, which ends when this one does."""
        command = self.host.command
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    start_new_session=True, preexec_fn=end_with_parent)
        except OSError as error:
            raise Failure("no_ssh", tool=command[0], why=error.strerror) from None

    def of_host(self, status: int, printed: str) -> Failure:
        """Returns the failure that the host's command has printed, or else a failure with its output."""
        failure = Failure("host", host=self.host.name, by_hand=" ".join(map(shlex.quote, self.host.command[:-2])),
                          output=self.ended_by or in_a_line(printed) or f"exit status {status}")
        if printed.startswith("dyntrace: ") and not self.ended_by:
            failure.text, failure.status = "\n".join(map(clean, printed.rstrip().split("\n"))), status
        return failure

    def finish(self, process: "subprocess.Popen[bytes]") -> int:
        """Returns the exit status; ends a command that does not end by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(ENDS_S)
        self.end("it did not end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(ENDS_S)
        return -signal.SIGKILL

    def is_over(self) -> bool:
        """Returns whether to stop reading: programs that the command started may keep its output open."""
        return bool(self.ended_by) and time.monotonic() > self.ended + 1

    def end(self, why: str) -> None:
        """Ends the host's command; keeps the first reason."""
        self.ended, self.ended_by = self.ended or time.monotonic(), self.ended_by or why
        if self.process and self.process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)


def in_a_line(printed: str) -> str:
    """Returns the lines of a host as one line, cleaned."""
    return clean(" / ".join(line.strip() for line in printed.splitlines() if line.strip()))
