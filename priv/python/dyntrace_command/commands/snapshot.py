"""`dyntrace snapshot`: collects a snapshot from each flight recorder of this host, and of others by ssh."""
import argparse
import os
import re
import socket
import sys
import tarfile
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.json_output import put
from dyntrace_command.common.terminal import clean, first_of, print_table, say, size
from dyntrace_command.host.children import Interrupted, temporary_folder
from dyntrace_command.host.files import NEEDED_AT_START, check_room, private_folder
from dyntrace_command.host.tools import own_program, tool
from dyntrace_command.host.trees import folder_size, remove_empty
from dyntrace_command.recording.archive import Allowance, Packer
from dyntrace_command.recording.hosts import Collected, Host
from dyntrace_command.recording.session import flight_recorders
from dyntrace_command.recording.snapshots import Snapshot, is_recorded_into, snapshots
from dyntrace_command.tracers.lttng import Lttng, daemons_here

ARGUMENTS = ["snapshot", "-o", "-"]

# The maximum lengths of a cause's text in the list, and of a session's name in the tar archive.
TEXT_MOST, NAME_MOST = 80, 60


def snapshot(options: argparse.Namespace) -> Optional[int]:
    """Collects into one folder per host; with `-o -`, writes those of this host to standard output."""
    if options.list:
        return show_lists(options.folders, options.json)
    if options.output == "-":
        send()
    else:
        collect(options)
    return None


class Listed(NamedTuple):
    """The folder of a recorder: its snapshots with their bytes, the oldest first; whether the recorder still runs; why
    the folder can't be read, None if it can."""
    folder: str
    snapshots: List[Tuple[Snapshot, int]] = []
    is_recorded: bool = False
    why: Optional[str] = None

    def as_json(self) -> Dict[str, object]:
        """Returns the object that --json prints."""
        return {"folder": self.folder, "unreadable": self.why, "recorder_runs": self.is_recorded,
                "snapshots": [{"time_ns": round(one.time * 1e6) * 1000, "cause": one.cause, "node": one.node,
                               "more": one.more, "size_bytes": size_bytes, "folder": one.path, "text": one.text}
                              for one, size_bytes in self.snapshots]}

    def show(self) -> None:
        """Prints a table."""
        if self.why is not None:
            say(f"dyntrace: {clean(self.folder)}: {self.why}")
            return
        rows = [[one.moment(), clean(one.cause), clean(one.node), one.counted(), size(size_bytes),
                 os.path.basename(one.path), clean(one.text)[:TEXT_MOST]] for one, size_bytes in self.snapshots]
        print_table([["TIME", "CAUSE", "NODE", "MORE", "SIZE", "FOLDER", "WHAT"], *rows])
        say(f"{'a recorder' if self.is_recorded else 'no recorder'} writes into {self.folder}")


def show_lists(folders: Sequence[str], has_json: bool) -> Optional[int]:
    """Prints the snapshots in each folder; an unreadable folder does not hide the others."""
    found = [listed(folder) for folder in folders]
    if has_json:
        put({"folders": [one.as_json() for one in found]})
    else:
        for one in found:
            one.show()
    if all(one.why is None for one in found):
        return None
    failure = Failure("unlisted")
    say(failure.text)
    return failure.status


def listed(folder: str) -> Listed:
    """Returns the snapshots in a folder."""
    if not os.path.isdir(folder):
        raise Failure("no_snapshot_folder", folder=folder)
    path = os.path.abspath(folder)
    try:
        return Listed(path, [(one, folder_size(one.path)) for one in snapshots(folder)], is_recorded_into(folder))
    except OSError as error:
        return Listed(path, why=reason(error))


def collect(options: argparse.Namespace) -> None:
    """Collects from all hosts at once. This host need not have nodes."""
    own = Host(socket.gethostname(), own_program() + ARGUMENTS, is_optional=bool(options.hosts))
    others = [Host(name, [*options.ssh, name, "dyntrace", *ARGUMENTS], name == own.name and own.is_optional)
              for name in options.hosts]
    # Each host once. If this host's name is given, it is reached by ssh, too.
    hosts = {host.name: host for host in [own, *others]}
    folder = private_folder(options.output or "dyntrace-snapshot-" + time.strftime("%Y%m%d-%H%M%S"))
    if os.listdir(folder):
        raise Failure("exists", folder=folder)
    check_room(folder, NEEDED_AT_START)
    with Interrupted() as interrupted:
        collected = [Collected(host, folder) for host in hosts.values()]
        while any(one.is_alive() for one in collected):
            time.sleep(0.1)
            if interrupted.happened.is_set():
                for one in collected:
                    one.end("interrupted")
        for one in collected:
            one.join()
    if not options.hosts and collected[0].failure:
        remove_empty(folder)
        raise collected[0].failure
    for one in collected:
        say(one.show())
    failed = [one.host.name for one in collected if one.failure and not one.is_skipped]
    if all(one.failure for one in collected):
        remove_empty(folder)
        raise Failure("no_snapshots", hosts=", ".join(failed) or "any host")
    print(folder)
    if failed:
        raise Failure("incomplete", hosts=", ".join(failed), folder=folder)


def send() -> None:
    """Takes a snapshot of each flight recorder of this host, and writes the files to standard output as a tar archive.
    If one recorder fails, or its user has changed the files, the others are still packed."""
    tool("lttng")
    if sys.stdout.isatty():
        raise Failure("terminal")
    recorders = [(daemon, name) for daemon in daemons_here() for name in flight_recorders(daemon)]
    if not recorders:
        raise Failure("no_recorder")
    # A collector kills this command when it gets Ctrl-C.
    with temporary_folder() as temporary:
        os.chmod(temporary, 0o711)
        folders, failures = written(recorders, temporary)
        if not folders:
            raise failures[0]
        for failure in failures:
            say(failure.text)
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
            pack_all(tar, folders)


def written(recorders: Sequence[Tuple[Lttng, str]], temporary: str) -> Tuple[Dict[str, str], List[Failure]]:
    """Takes a snapshot of each recorder into a folder; returns {folder: session} and the failures."""
    folders: Dict[str, str] = {}
    failures = []
    for number, (daemon, name) in enumerate(recorders):
        folder = os.path.join(temporary, f"{number}-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:NAME_MOST]}")
        os.mkdir(folder, mode=0o700)
        if daemon.uid is not None:
            os.chown(folder, daemon.uid, -1, follow_symlinks=False)
        try:
            daemon.do("snapshot", "record", f"--session={name}", f"file://{folder}")
            folders[folder] = name
        except Failure as failure:
            failures.append(failure)
    return folders, failures


def pack_all(tar: tarfile.TarFile, folders: Dict[str, str]) -> None:
    """Packs the folders, the smallest first. Larger folders get the unused shares of smaller ones."""
    most = Allowance()
    for number, folder in enumerate(sorted(folders, key=folder_size)):
        share = most.share_of(len(folders) - number)
        packer = Packer(tar, os.path.basename(folder), share)
        packer.pack(folder)
        most.give_back(share)
        if packer.left_out:
            say(f"dyntrace: left out of the snapshot of {clean(folders[folder])}: {first_of(packer.left_out)}")
