"""The failures that the command reports: each has an exit status, a cause and a next step.

Whoever finds that the command can't go on raises `Failure(key, ...)` with the values that the row's texts name. `main`
prints the text and ends with the status. The man page lists the statuses.
"""
import os
import pwd
import sys
from typing import Dict, Tuple

NOT_ALLOWED, MISSING, NO_NODE, NO_ROOM, FAILED = 3, 4, 5, 6, 1

FAILURES: Dict[str, Tuple[int, str, str]] = {
    # key: (exit status, cause, next step)
    "not_root": (NOT_ALLOWED, "bpftrace needs root, and you are {user}",
                 "run `sudo dyntrace {command}`; `dyntrace record` and `dyntrace report` need no root for your own "
                 "nodes"),
    "lockdown": (NOT_ALLOWED, "the kernel is locked down (confidentiality): no program may read memory by BPF",
                 "use LTTng, which needs nothing of the kernel: `dyntrace record`, `dyntrace report`"),
    "other_user": (NOT_ALLOWED, "process {pid} belongs to {owner}, and you are {user}",
                   "run the command as its user or as root: `sudo dyntrace {command}`"),
    "no_tracefs": (MISSING, "no tracefs is mounted at /sys/kernel/tracing, and this version of bpftrace needs it",
                   "as root: `mount -t tracefs tracefs /sys/kernel/tracing`"),
    "no_tool": (MISSING, "{tool} is not installed on this host",
                "install the package {package} (Debian, Ubuntu), or the one of that name elsewhere"),
    "old_tool": (MISSING, "{tool} {version} is too old: {needed} or later is needed {why}",
                 "install a later {package}"),
    "no_plugin": (MISSING, "the plugin for babeltrace2 is not in {places}",
                  "build dyntrace where libbabeltrace2-dev, libglib2.0-dev and pkg-config are, or take the recording "
                  "to a host that has it: `dyntrace view {folder}` needs no node"),
    "no_script": (MISSING, "there is no script {script}", "`dyntrace run` lists the scripts"),
    "no_scripts": (MISSING, "the scripts are not in {places}", "install them: `make install`, or name a script's file"),
    "no_vm": (NO_NODE, "no Erlang VM runs on this host, as far as /proc shows",
              "start the node; in a container, start this command on the host (`docker run --pid=host`, `hostPID`); as "
              "root, where /proc hides the processes of others (hidepid)"),
    "no_such_node": (NO_NODE, "there is no Erlang VM {node}", "`dyntrace nodes` lists the VMs of this host"),
    "several_nodes": (NO_NODE, "several nodes have dyntrace: {nodes}", "name one: `dyntrace {command} {first}`"),
    "same_name": (NO_NODE, "several nodes are called {node}: {nodes}", "name one by its number: `dyntrace {command} "
                  "{first}`"),
    "no_library": (NO_NODE, "process {pid} ({name}) has not loaded dyntrace's library",
                   "in the node, type `application:ensure_all_started(dyntrace).`; if that is an error, add the "
                   "dependency dyntrace and restart the node"),
    "not_alone": (FAILED, "bpftrace can't trace process {pid} ({name}) alone: other nodes share its library, and {why}",
                  "use LTTng, which traces one node: `dyntrace record {pid}`, `dyntrace report {pid}`"),
    "stopped": (NO_NODE, "process {pid} ({name}) is stopped, by a signal or a debugger: it traces nothing",
                "let it run on: `kill -CONT {pid}`"),
    "node_gone": (NO_NODE, "process {pid} ({name}) has ended", "`dyntrace nodes` lists the VMs of this host"),
    "replaced": (NO_NODE, "the library of process {pid} was replaced on disk: tracers would attach to the new file",
                 "in the node, type `l(dyntrace).`"),
    "not_started": (NO_NODE, "nothing was traced within {seconds} s: the application dyntrace has not started in the "
                    "node, or does not follow consumers",
                    "in the node, type `application:ensure_all_started(dyntrace).`, then `dyntrace:follow(#{{}}).`"),
    "no_request": (NO_NODE, "no message with the label {label} was sent within {seconds} s",
                   "give a process a token, in the node: `seq_trace:set_token(label, {label}), "
                   "seq_trace:set_token(send, true), seq_trace:set_token('receive', true).`"),
    "no_samples": (NO_NODE, "{name} used no CPU within {seconds} s, as far as samples tell{process}",
                   "sample for longer (`--seconds 60`) or more often (`--hz 999`) while it works; without --process, "
                   "all of the node is shown"),
    "no_call": (NO_NODE, "no call of {function} was traced within {seconds} s",
                "if it was called, let the node trace it: type "
                "`dyntrace:follow(#{{functions => [{{{module}, {name}, '_'}}]}}).`"),
    "untraced_functions": (NO_NODE, "{node} traces {traced}, not {functions}; only the node itself can change "
                           "that", "in the node, type `dyntrace:follow(#{{functions => [{terms}]}}).`, which replaces "
                           "the present ones; then record again"),
    "no_lttng": (NO_NODE, "process {pid} ({name}) has not loaded LTTng's tracepoints",
                 "in the node, type `dyntrace:info().`: `backends` says why `lttng` is missing"),
    "not_registered": (NO_NODE, "no session daemon knows process {pid} ({name}); asked: {daemons}",
                       "in the node, type `dyntrace:info().`: `backends` says what prevents LTTng; a node in a "
                       "container needs the host's /dev/shm and /var/run/lttng, docs/production.md"),
    "no_daemon": (FAILED, "LTTng's session daemon can't be started: {output}",
                  "start it by hand and read its messages: `lttng-sessiond --no-kernel`"),
    "daemon_gone": (FAILED, "the session daemon has ended during the recording",
                    "look at what it has written: `dyntrace view {folder}`; then record again"),
    "lttng": (FAILED, "`{tool}` failed: {output}", "try the same by hand, docs/lttng.md"),
    "bpftrace": (FAILED, "bpftrace failed: {output}", "docs/perf.md explains bpftrace's messages"),
    "not_ended": (FAILED, "bpftrace (process {pid}) was killed and has not ended yet",
                  "wait: the kernel still detaches it, and the probes stay enabled until then; `ps -o stat,wchan "
                  "{pid}` shows where it is"),
    "babeltrace2": (FAILED, "babeltrace2 failed: {output}",
                    "is it a whole recording? `babeltrace2 {folder}` prints its events"),
    "no_folder": (FAILED, "there is no folder {folder}", "name the folder that `dyntrace record` has printed"),
    "no_such_kind": (FAILED, "{folder} is a file; a recording of LTTng is a folder",
                     "name the folder that `dyntrace record` has printed"),
    "unreadable": (NOT_ALLOWED, "{folder} can't be read: {why}; it belongs to {owner}, and you are {user}",
                   "look at it as its owner or as root: `sudo dyntrace view {folder}`"),
    "empty_folder": (FAILED, "{folder} is empty", "name the folder that `dyntrace record` has printed"),
    "no_recording": (FAILED, "{folder} has no recording of LTTng: no file `metadata` with text is below it",
                     "name the folder that `dyntrace record` has printed"),
    "exists": (FAILED, "{folder} exists and is not empty", "name another folder (of report: `--keep`)"),
    "disk_full": (NO_ROOM, "{folder} has {free} free{kept}", "make room there, or record elsewhere: `-o FOLDER`"),
    "no_shm": (NO_ROOM, "/dev/shm has {free} free, too little for LTTng's buffers",
               "make room in /dev/shm, or mount a larger one: `mount -o remount,size=256M /dev/shm`"),
    "no_shm_folder": (MISSING, "there is no /dev/shm, where LTTng has its buffers",
                      "as root: `mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm`"),
    "not_yours": (NOT_ALLOWED, "the folder {folder} belongs to {owner}, who could read the recording",
                  "name a folder that does not exist yet: `-o FOLDER`"),
    "not_writable": (FAILED, "{folder} can't be written: {why}", "write elsewhere: `-o FILE`"),
    # Several hosts
    "open_folder": (FAILED, "{folder} is open to others (mode {mode}): they could read the recordings",
                    "name another folder, or close it: `chmod 700 {folder}`"),
    "port_in_use": (FAILED, "port {port} of {address} is in use, perhaps by another relay",
                    "`ss -ltnp` shows by which program; or use other ports: `dyntrace relay --port {other}`"),
    "no_address": (FAILED, "{address} can't be listened on: {why}",
                   "`ip address` lists the addresses of this host; without --listen it is loopback"),
    "relay_ended": (FAILED, "lttng-relayd has ended: {output}",
                    "look at what has arrived: `dyntrace view {folder}`; then start the relay again"),
    "no_relay": (FAILED, "no relay answers at {host}, port {port}: {why}",
                 "on the collector, start `dyntrace relay`; it listens on loopback and prints how to reach it by ssh"),
    "relay_gone": (FAILED, "the connection to the relay at {host} was lost after {seconds} s; {lost}",
                   "on the collector, look at what has arrived: `dyntrace view FOLDER`; then record again, or without "
                   "--to"),
    "no_recorder": (NO_NODE, "no flight recorder runs on this host, as far as you may see",
                    "start one: `dyntrace record --snapshot`; as root, those of all users are found"),
    "no_ssh": (MISSING, "{tool} can't be started: {why}", "install openssh-client, or name another program: --ssh"),
    "bad_stream": (FAILED, "what came is no snapshot: {why}", "on that host, try `dyntrace snapshot`"),
    "cut_stream": (FAILED, "the snapshot ended in the middle", "on that host, try `dyntrace snapshot`"),
    "host": (FAILED, "{host} has sent no snapshot: {output}", "try it by hand: `{by_hand}`"),
    "incomplete": (FAILED, "no snapshot of {hosts}", "the others are in {folder}: `dyntrace view {folder}`"),
    "no_snapshots": (FAILED, "no snapshot of {hosts}", "see above for each host"),
    "terminal": (FAILED, "a snapshot is not written to a terminal", "name a folder: `-o FOLDER`"),
}


class Failure(Exception):
    """A row of the table. `values` fill its texts; `user` and `command` are filled in where they are not given."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key = key
        values.setdefault("user", user_name(os.geteuid()))
        values.setdefault("command", " ".join(sys.argv[1:]))
        self.status, cause, step = FAILURES[key]
        self.text = f"dyntrace: {cause.format(**values)}\n  next: {step.format(**values)}"


def user_name(uid: int) -> str:
    """Returns the name of a user; the number if it has no account here, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
