"""The snapshots of hosts: each host, this one too, is a command that writes a tar to its standard output."""
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
from dyntrace_command.recording.recording_contents import said

SNAPSHOT_S = 600
# Seconds in which a host's command ends that has sent all, or was killed.
ENDS_S = 5
# Of a host's messages; they may have no end.
MESSAGES_MOST = 4096


class Host(NamedTuple):
    """A name, the command that sends its snapshot, and whether it may have no flight recorder."""
    name: str
    command: List[str]
    is_optional: bool


class Collected(threading.Thread):
    """The snapshot of a host, into a folder of its name: whole, or not at all. `failure` is why it is not there;
    `is_skipped`: as nothing records on a host that need not."""

    def __init__(self, host: Host, folder: str) -> None:
        super().__init__(daemon=True)
        self.host = host
        self.target = os.path.join(folder, host.name)
        self.partial = os.path.join(folder, f".{host.name}.part")
        self.failure: Optional[Failure] = None
        self.process: "Optional[subprocess.Popen[bytes]]" = None
        self.ended_by, self.ended = "", 0.0
        # What the host's command has said although it has sent a snapshot.
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
        """Runs the host's command and unpacks what it sends."""
        os.mkdir(self.partial, mode=0o700)
        process = self.process = self.started()
        assert process.stdout and process.stderr
        messages = LastOutput(process.stderr, MESSAGES_MOST, is_first=True)
        timer = threading.Timer(SNAPSHOT_S, lambda: self.end(f"nothing whole has come within {SNAPSHOT_S} s"))
        timer.daemon = True
        timer.start()
        wrong, files = None, 0
        stream = process.stdout
        try:
            files = unpack(cast(BinaryIO, io.BufferedReader(TimedStream(stream, self.is_over))), self.partial)
        except Failure as failure:
            wrong = failure
        finally:
            # Whoever still sends is not read any more.
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
        """Starts the host's command, which ends with this one."""
        command = self.host.command
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    start_new_session=True, preexec_fn=end_with_parent)
        except OSError as error:
            raise Failure("no_ssh", tool=command[0], why=error.strerror) from None

    def of_host(self, status: int, printed: str) -> Failure:
        """Returns the failure that the host's command has printed, else one with its output."""
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
        """Returns whether nothing more is read: what it has started may keep its output open."""
        return bool(self.ended_by) and time.monotonic() > self.ended + 1

    def end(self, why: str) -> None:
        """Ends the host's command; the first reason counts."""
        self.ended, self.ended_by = self.ended or time.monotonic(), self.ended_by or why
        if self.process and self.process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)


def in_a_line(printed: str) -> str:
    """Returns the lines of a host as one, cleaned."""
    return clean(" / ".join(line.strip() for line in printed.splitlines() if line.strip()))
