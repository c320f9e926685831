"""The folder of a flight recorder that writes by itself: a folder per snapshot, named by time and cause, and only so
many of them.

    FOLDER/20261125-031502-crash/cause.json     what it was
    FOLDER/20261125-031502-crash/recording/     LTTng's; as root, it belongs to the daemon's user
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
CAUSE, NEW, RECORDING = "cause.json", ".new", "recording"
# `snapshot --list` locks the folder for a moment.
LOCK_S = 0.5
# Of a recorder in the background.
MESSAGES = "recorder.log"

# Bytes of the file, which escapes characters; characters of a name and of the text.
CAUSE_MOST, NAME_MOST, TEXT_MOST = 200000, 600, 10000

# So many further matches are counted; then a snapshot says that there were more.
COUNTED_MOST = 1000


class Snapshot(NamedTuple):
    """A snapshot: its folder; the name of the cause, the node, the time, what it was; how many matches came after it
    that have no snapshot of their own."""
    path: str
    cause: str
    node: str
    time: float
    text: str
    more: int = 0

    def moment(self) -> str:
        """Returns the time for people."""
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.time))}.{int(self.time % 1 * 1000):03}"

    def show(self) -> str:
        """Returns the moment of the cause as a line."""
        return f"{self.moment()}  {self.cause} in {self.node}{': ' if self.text else ''}{self.text}"

    def counted(self) -> str:
        """Returns the further matches for people."""
        return f"more than {COUNTED_MOST}" if self.more >= COUNTED_MOST else str(self.more)

    def recording(self) -> str:
        """Returns the path of what LTTng writes."""
        return os.path.join(self.path, RECORDING)

    def save(self) -> None:
        """Writes what it was. A snapshot without this file is not complete."""
        path = os.path.join(self.path, CAUSE)
        with open(path + NEW, "w", encoding="utf-8") as file:
            json.dump({"cause": self.cause, "node": self.node, "time": self.time, "text": self.text,
                       "more": self.more}, file)
        os.rename(path + NEW, path)


def snapshot_at(path: str) -> Optional[Snapshot]:
    """Returns the snapshot of a folder, or that a recording belongs to; None if it is none."""
    folder = os.path.abspath(path)
    # Another folder's parent may be everybody's.
    return said_in(folder) or (said_in(os.path.dirname(folder)) if os.path.basename(folder) == RECORDING else None)


def said_in(folder: str) -> Optional[Snapshot]:
    """Returns the snapshot of a folder; None if it is none."""
    # It may be anybody's: numbers that are none, a moment that no calendar has, lists within lists.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        said = json.loads(read_below(folder, CAUSE, CAUSE_MOST).decode("utf-8"))
        found = Snapshot(folder, str(said["cause"])[:NAME_MOST], str(said["node"])[:NAME_MOST], float(said["time"]),
                         str(said["text"])[:TEXT_MOST], int(said["more"]))
        return found if found.moment() else None
    return None


def snapshots(folder: str) -> List[Snapshot]:
    """Returns the snapshots of a folder, the oldest first."""
    found = [said_in(os.path.abspath(os.path.join(folder, name))) for name in os.listdir(folder)
             if NAME.fullmatch(name)]
    return sorted((one for one in found if one), key=lambda one: (one.time, one.path))


class Place:
    """The folder while a recorder writes there, one at a time. `uid`: of a daemon that is another user's: it may reach
    what it writes, and read nothing else."""

    def __init__(self, name: str, keep: int) -> None:
        self.path, self.keep, self.uid = private_folder(name, may_pass=True), keep, -1

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other recorders out, also if this command is killed meanwhile; removes what a killed one has begun."""
        with closing(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
            if not lock(descriptor, LOCK_S):
                raise Failure("recorder_runs", folder=self.path)
            for path in [os.path.join(self.path, name) for name in os.listdir(self.path) if NAME.fullmatch(name)]:
                if is_incomplete(path):
                    remove_tree(path)
            yield

    def open_to(self, uid: Optional[int]) -> None:
        """Lets the daemon of another user reach it. What else is there was closed to that user until now."""
        if uid is not None:
            if any(not NAME.fullmatch(name) and name != MESSAGES for name in os.listdir(self.path)):
                raise Failure("exists", folder=self.path)
            self.uid = uid
            os.chmod(self.path, 0o711)

    @contextlib.contextmanager
    def begun(self, cause: str, node: str, now: float, text: str) -> Iterator[Snapshot]:
        """Makes the folder of a snapshot, which is removed if it can't be written as a whole."""
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
        """Removes the oldest of those that are too many. The clock may have been set back: those of the future are from
        before."""
        now = time.time()
        for old in sorted(snapshots(self.path), key=lambda one: one.time <= now)[:-self.keep]:
            remove_tree(old.path)


def is_incomplete(path: str) -> bool:
    """Returns whether a folder has nothing but what a recorder writes before the cause: others may be there, too. Only
    the recorder's user can change names there: another user's are below RECORDING, which is not looked into."""
    with contextlib.suppress(OSError):
        return not os.path.islink(path) and set(os.listdir(path)) <= {RECORDING, CAUSE + NEW}
    return False


def lock(descriptor: int, seconds: float = 0) -> bool:
    """Locks a folder until the descriptor is closed; returns false if another recorder has it for so long."""
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
