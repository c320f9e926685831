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
    "not_readable": (FAILED, "process {pid} ({name}) can't be read: {why}",
                     "`dyntrace nodes` shows what is known of it; SECURITY.md says what root reads of a process"),
    "no_tracefs": (MISSING, "no tracefs is mounted at /sys/kernel/tracing, and this version of bpftrace needs it",
                   "as root: `mount -t tracefs tracefs /sys/kernel/tracing`"),
    "no_tool": (MISSING, "{tool} is not installed on this host",
                "install the package {package} (Debian, Ubuntu), or the one of that name elsewhere"),
    "old_tool": (MISSING, "{tool} {version} is too old: {needed} or later is needed {why}",
                 "install a later {package}"),
    "no_plugin": (MISSING, "the plugin for babeltrace2 is not in {places}",
                  "build dyntrace where libbabeltrace2-dev, libglib2.0-dev and pkg-config are, or take the recording "
                  "to a host that has it: `dyntrace view {folder}` needs no node"),
    "no_btf": (MISSING, "the kernel has no {path}, which bpftrace needs to trace one process from within a PID "
               "namespace",
               "run the command on the host, or in a container with the host's processes (`docker run --pid=host`, "
               "`hostPID`)"),
    "unsure_script": (FAILED, "{script} can't be limited to one node: {why}",
                      "change the script; docs/perf.md has the restrictions"),
    "symbols": (NOT_ALLOWED, "{script} asks for names of functions ({why}): for them, this version of bpftrace opens "
                "files as root that the node's user chooses",
                "write `ustack(raw)`, which prints addresses; `dyntrace profile` shows names"),
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
                   "`dyntrace load {pid}`; or in the node, type `application:ensure_all_started(dyntrace).`, and if "
                   "that is an error, add the dependency dyntrace and restart the node"),
    "stopped": (NO_NODE, "process {pid} ({name}) is stopped, by a signal or a debugger: it traces nothing",
                "let it run on: `kill -CONT {pid}`"),
    "node_gone": (NO_NODE, "process {pid} ({name}) has ended", "`dyntrace nodes` lists the VMs of this host"),
    "replaced": (NO_NODE, "the library of process {pid} was replaced on disk: tracers would attach to the new file",
                 "in the node, type `l(dyntrace).`"),
    "not_started": (NO_NODE, "nothing was traced within {seconds} s: the application dyntrace has not started in the "
                    "node, or does not follow consumers",
                    "in the node, type `application:ensure_all_started(dyntrace).`, then `dyntrace:follow(#{{}}).`"),
    "no_descriptors": (NO_NODE, "process {pid} ({name}) has no free file descriptor, and without one it can't open the "
                       "tracer's buffers",
                       "raise the limit of the running process: `prlimit --pid {pid} --nofile=65536`"),
    "no_request": (NO_NODE, "no message with the label {label} was sent within {seconds} s",
                   "give a process a token, in the node: `seq_trace:set_token(label, {label}), "
                   "seq_trace:set_token(send, true), seq_trace:set_token('receive', true).`"),
    "no_samples": (NO_NODE, "{who} used no CPU within {seconds} s, as far as samples tell",
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
    "large_tree": (FAILED, "{folder} can't be read as a recording: {why}",
                   "name the folder of one recording, which has the file `metadata`"),
    "shortened": (FAILED, "a file of {folder} was shortened while babeltrace2 read it",
                  "view a copy, which no other program can change: `cp -r`"),
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
    "way_of_others": (NOT_ALLOWED, "{folder}, above what root would write, {why}: a link could take the place of that",
                      "name a folder of root's, which the node's user can reach: `-o /var/lib/dyntrace`"),
    "temporary_of_others": (NOT_ALLOWED, "{folder}, in the path of TMPDIR, {why}: another user could replace root's "
                            "temporary files", "`unset TMPDIR`, or set it to a folder of root's"),
    "not_writable": (FAILED, "{folder} can't be written: {why}", "write elsewhere: `-o FILE`"),
    # Loading the library into a node that nobody has prepared
    "load_no_distribution": (NO_NODE, "process {pid} ({name}) has no distribution (-sname, -name), so nobody can ask "
                             "it to load anything", "add the dependency dyntrace and restart the node"),
    "load_tls": (NO_NODE, "process {pid} ({name}) has distribution by TLS (-proto_dist {protocol}), and this "
                 "command does not use its certificates", "load the library by hand, docs/load.md"),
    "load_protocol": (NO_NODE, "process {pid} ({name}) has distribution by {protocol}, and this command speaks "
                      "inet_tcp and inet6_tcp", "load the library by hand, docs/load.md"),
    "load_no_port": (NO_NODE, "the port of the distribution of process {pid} ({name}) is unknown: no epmd has it, nor "
                     "do -erl_epmd_port, inet_dist_listen_min or ERL_DIST_PORT tell it",
                     "start epmd; then type in the node `erl_epmd:register_node(NAME, PORT).`"),
    "load_no_cookie": (NO_NODE, "no cookie of process {pid} ({name}) is in its arguments, its environment, its release "
                       "or the home folder of {owner}", "write it to the file .erlang.cookie there, with mode 600"),
    "load_wrong_cookie": (NOT_ALLOWED, "process {pid} ({name}) has another cookie than its arguments, its environment, "
                          "its release and the home folder of {owner} tell",
                          "write it to the file .erlang.cookie there, with mode 600"),
    "load_old_otp": (NO_NODE, "process {pid} ({name}) runs OTP {otp}; dyntrace requires {oldest} or later",
                     "update the node's OTP"),
    "load_old_node": (NO_NODE, "process {pid} ({name}) has the distribution protocol of an OTP before 23",
                      "update the node's OTP"),
    "load_old_nif": (NO_NODE, "the VM of process {pid} ({name}) has version {version} of erl_nif; this host's build "
                     "requires {needed}", "build dyntrace with an OTP that is not later than the node's"),
    "load_no_build": (MISSING, "process {pid} ({name}) requires a build for {wanted}; this host has: {found}",
                      "make one, docs/load.md"),
    "load_not_built": (MISSING, "no build of the library is beside this command, in {places}",
                       "`make`, then `make install`"),
    "load_no_place": (NO_NODE, "no folder of process {pid} ({name}) can have the library: {reasons}",
                      "mount a file system there that can be written and is not noexec"),
    "load_twice": (NO_NODE, "`dyntrace load` has loaded the library into process {pid} ({name}) already",
                   "`dyntrace report {pid}`, or `dyntrace unload {pid}`"),
    "load_prepared": (NO_NODE, "process {pid} ({name}) has dyntrace on its own code path",
                      "in the node, type `application:ensure_all_started(dyntrace).`"),
    "load_none": (NO_NODE, "process {pid} ({name}) has no dyntrace", "`dyntrace load {pid}`"),
    "load_not_ours": (NO_NODE, "the dyntrace of process {pid} ({name}) does not come from `dyntrace load` on this host",
                      "in the node, type `application:stop(dyntrace).`"),
    "load_busy": (FAILED, "another `dyntrace load` or `unload` is connected to process {pid} ({name})",
                  "try again when it has ended"),
    "load_not_allowed": (NOT_ALLOWED, "process {pid} ({name}) lets in only some nodes (`net_kernel:allow/1`)",
                         "load the library by hand, docs/load.md"),
    "load_refused": (FAILED, "process {pid} ({name}) refuses the connection: {why}", "look at the node's log"),
    "load_failed": (FAILED, "process {pid} ({name}) can't load the library: {why}",
                    "docs/load.md has the usual causes; `dyntrace unload {pid}` removes what may remain"),
    "load_no_answer": (FAILED, "process {pid} ({name}) does not answer: {why}", "look at the node's log"),
    "load_dirty_io": (FAILED, "process {pid} ({name}) does not answer: it can't read files, so it loads no code, "
                      "because all of its {schedulers} dirty I/O schedulers wait in the kernel ({where})",
                      "find what they wait for: a file system that hangs, or a pipe; +SDio N gives the node more of "
                      "these schedulers"),
    "load_other_socket": (NOT_ALLOWED, "the port of the distribution of process {pid} ({name}) is not its own socket "
                          "alone: another process listens there, too",
                          "as root, `ss -ltnp` shows the programs that listen on that port"),
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
    # A flight recorder that writes by itself
    "recorder_runs": (FAILED, "another recorder writes into {folder}", "name another folder: `-o FOLDER`"),
    "no_snapshot_folder": (FAILED, "there is no folder {folder}", "name the folder of `dyntrace record --when`: `-o "
                           "FOLDER`"),
    "recorder_daemon_gone": (FAILED, "the session daemon has ended, and with it the events that were in memory; "
                             "snapshots remain",
                             "start the recorder again; docs/recorder.md has a unit of systemd that does so"),
    "recorder_listener_gone": (FAILED, "the program that LTTng notifies of causes was killed; snapshots remain",
                               "start the recorder again; docs/recorder.md has a unit of systemd that does so"),
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
        self.key, self.values = key, values
        values.setdefault("user", user_name(os.geteuid()))
        values.setdefault("command", " ".join(sys.argv[1:]))
        self.status, cause, step = FAILURES[key]
        self.cause = cause.format(**values)
        self.text = f"dyntrace: {self.cause}\n  next: {step.format(**values)}"


def reason(error: BaseException) -> str:
    """Returns why something failed, without the number and the file that an OSError has."""
    return str(getattr(error, "strerror", None) or error)


def user_name(uid: int) -> str:
    """Returns the name of a user; the number if it has no account here, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
