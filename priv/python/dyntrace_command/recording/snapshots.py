"""The folder of a flight recorder with causes. It has a folder per snapshot, named by time and cause; their number is
limited.

    FOLDER/20261125-031502-crash/cause.json     the cause
    FOLDER/20261125-031502-crash/recording/     written by LTTng; as root, it belongs to the daemon's user
    FOLDER/20261125-031502-silence/stacks.txt   the stacks of a node that hangs
"""
import contextlib
import fcntl
import json
import os
import re
import time
from typing import Iterator, List, NamedTuple, Optional

from dyntrace_command.common.failures import Failure
from dyntrace_command.host.files import closing, numbered_folder, private_folder
from dyntrace_command.host.trees import read_below, remove_tree

NAME = re.compile(r"\d{8}-\d{6}-[\w.@-]+", re.ASCII)
CAUSE, NEW, RECORDING, STACKS = "cause.json", ".new", "recording", "stacks.txt"
# Seconds to wait for the lock, which `snapshot --list` takes briefly.
LOCK_S = 0.5
# The log of a recorder in the background.
MESSAGES = "recorder.log"

# The maximum bytes of the file, in which characters are escaped; characters of a name, and of the text.
CAUSE_MOST, NAME_MOST, TEXT_MOST = 200000, 600, 10000

# The maximum number of further matches that are counted.
COUNTED_MOST = 1000


class Snapshot(NamedTuple):
    """A snapshot: its folder; the name of the cause, the node, the time, a description; and the number of matches after
    it that have no snapshot of their own."""
    path: str
    cause: str
    node: str
    time: float
    text: str
    more: int = 0

    def moment(self) -> str:
        """Returns the time as a text."""
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.time))}.{int(self.time % 1 * 1000):03}"

    def show(self) -> str:
        """Returns a line with the time and the cause."""
        return f"{self.moment()}  {self.cause} in {self.node}{': ' if self.text else ''}{self.text}"

    def counted(self) -> str:
        """Returns the number of further matches as a text."""
        return f"more than {COUNTED_MOST}" if self.more >= COUNTED_MOST else str(self.more)

    def recording(self) -> str:
        """Returns the path of LTTng's recording."""
        return os.path.join(self.path, RECORDING)

    def stacks(self) -> str:
        """Returns the path of the stacks, "" if it has none."""
        path = os.path.join(self.path, STACKS)
        return path if os.path.isfile(path) else ""

    def save_stacks(self, text: str) -> None:
        """Writes the stacks of a node."""
        with open(os.path.join(self.path, STACKS), "w", encoding="utf-8") as file:
            file.write(text)

    def save(self) -> None:
        """Writes the file cause.json. A snapshot without this file is incomplete."""
        path = os.path.join(self.path, CAUSE)
        with open(path + NEW, "w", encoding="utf-8") as file:
            json.dump({"cause": self.cause, "node": self.node, "time": self.time, "text": self.text,
                       "more": self.more}, file)
        os.rename(path + NEW, path)


def snapshot_at(path: str) -> Optional[Snapshot]:
    """Returns the snapshot in a folder, or the one that a recording belongs to; None if there is none."""
    folder = os.path.abspath(path)
    # The parents of other folders may be writable to any user.
    return said_in(folder) or (said_in(os.path.dirname(folder)) if os.path.basename(folder) == RECORDING else None)


def said_in(folder: str) -> Optional[Snapshot]:
    """Returns the snapshot in a folder, or None if there is none."""
    # The file is untrusted: it may have invalid numbers, dates that do not exist, or deeply nested lists.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        said = json.loads(read_below(folder, CAUSE, CAUSE_MOST).decode("utf-8"))
        found = Snapshot(folder, str(said["cause"])[:NAME_MOST], str(said["node"])[:NAME_MOST], float(said["time"]),
                         str(said["text"])[:TEXT_MOST], int(said["more"]))
        return found if found.moment() else None
    return None


def snapshots(folder: str) -> List[Snapshot]:
    """Returns the snapshots in a folder, the oldest first."""
    found = [said_in(os.path.abspath(os.path.join(folder, name))) for name in os.listdir(folder)
             if NAME.fullmatch(name)]
    return sorted((one for one in found if one), key=lambda one: (one.time, one.path))


class RecorderFolder:
    """The folder of a running recorder; a folder has at most one. `uid` is the daemon's user if it is another one: that
    user may reach the files that the daemon writes, and read nothing else."""

    def __init__(self, name: str, keep: int) -> None:
        self.path, self.keep, self.uid = private_folder(name, may_pass=True), keep, -1

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Excludes other recorders until this command ends; removes incomplete snapshots of a killed recorder."""
        with closing(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
            if not lock(descriptor, LOCK_S):
                raise Failure("recorder_runs", folder=self.path)
            for path in [os.path.join(self.path, name) for name in os.listdir(self.path) if NAME.fullmatch(name)]:
                if is_incomplete(path):
                    remove_tree(path)
            yield

    def open_to(self, uid: Optional[int]) -> None:
        """Lets the daemon of another user reach the folder. Refuses a folder with other files, which that user could
        not reach until now."""
        if uid is not None:
            if any(not NAME.fullmatch(name) and name != MESSAGES for name in os.listdir(self.path)):
                raise Failure("exists", folder=self.path)
            self.uid = uid
            os.chmod(self.path, 0o711)

    @contextlib.contextmanager
    def begun(self, cause: str, node: str, now: float, text: str) -> Iterator[Snapshot]:
        """Makes the folder of a snapshot. Removes the folder if the snapshot can't be completed."""
        stem = os.path.join(self.path, time.strftime("%Y%m%d-%H%M%S-", time.localtime(now)) + cause)
        begun = Snapshot(numbered_folder(stem), cause, node, now, text)
        try:
            os.mkdir(begun.recording(), mode=0o700)
            if self.uid != -1:
                os.chmod(begun.path, 0o711)
                os.chown(begun.recording(), self.uid, -1, follow_symlinks=False)
            yield begun
        except BaseException:
            remove_tree(begun.path)
            raise

    def prune(self) -> None:
        """Removes the oldest snapshots beyond the limit. If the clock was set back, snapshots with times in the future
        are the oldest."""
        now = time.time()
        for old in sorted(snapshots(self.path), key=lambda one: one.time <= now)[:-self.keep]:
            remove_tree(old.path)


def is_incomplete(path: str) -> bool:
    """Returns whether a folder has only what a recorder writes before the cause; other folders must not be removed.
    Only the recorder's user can change names there: another user's are below RECORDING, which is not searched."""
    with contextlib.suppress(OSError):
        return not os.path.islink(path) and set(os.listdir(path)) <= {RECORDING, CAUSE + NEW}
    return False


def lock(descriptor: int, seconds: float = 0) -> bool:
    """Locks a folder until the descriptor is closed; returns False if another recorder holds the lock that long."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.1)


def is_recorded_into(folder: str) -> bool:
    """Returns whether a recorder writes into the folder now."""
    with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
        return not lock(descriptor)
