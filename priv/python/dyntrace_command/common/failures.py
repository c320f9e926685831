"""The failures that the command reports, each with an exit status, a cause and a next step.

Code that can't go on raises `Failure(key, ...)` with the values for the row's placeholders. `main` prints the text and
exits with the status.
"""
import os
import pwd
import sys
from typing import Dict, Tuple

NOT_ALLOWED, MISSING, NO_NODE, NO_ROOM, FAILED, WRONG_ARGUMENTS, INTERRUPTED = 3, 4, 5, 6, 1, 2, 130

# Exit statuses: what each means, for the help, and more about it, for the man page.
STATUSES = {
    0: ("success", ""),
    FAILED: ("failed", "a tool, daemon, relay or host failed, or a folder already exists, can't be written or is not "
             "a recording"),
    WRONG_ARGUMENTS: ("wrong arguments", ""),
    NOT_ALLOWED: ("not allowed", "you are not root, the node, folder or recording belongs to another user, or the "
                  "kernel is locked down"),
    MISSING: ("something is missing on the host", "a tool or a later version of it, tracefs, /dev/shm, the plugin, a "
              "script"),
    NO_NODE: ("no such node or it is not ready", "its library is not loaded, the application has not started, or the "
              "node is stopped or has ended"),
    NO_ROOM: ("not enough space", "the disk or /dev/shm is full"),
    INTERRUPTED: ("interrupted before there was a result", ""),
}

FAILURES: Dict[str, Tuple[int, str, str]] = {
    # key: (exit status, cause, next step)
    "not_root": (NOT_ALLOWED, "bpftrace needs root, and you are {user}",
                 "run `sudo dyntrace {command}`; `dyntrace record` and `dyntrace report` need no root for your own "
                 "nodes"),
    "lockdown": (NOT_ALLOWED, "the kernel is locked down (confidentiality): BPF programs can't read memory",
                 "use LTTng, which works under lockdown: `dyntrace record`, `dyntrace report`"),
    "other_user": (NOT_ALLOWED, "process {pid} belongs to {owner}, and you are {user}",
                   "run the command as that user or as root: `sudo dyntrace {command}`"),
    "not_readable": (FAILED, "process {pid} ({name}) can't be read: {why}",
                     "`dyntrace nodes` shows what can be read; SECURITY.md lists what root reads of a process"),
    "no_tracefs": (MISSING, "tracefs is not mounted at /sys/kernel/tracing, and this version of bpftrace needs it",
                   "as root: `mount -t tracefs tracefs /sys/kernel/tracing`"),
    "no_tool": (MISSING, "{tool} is not installed on this host",
                "install the package {package} (Debian, Ubuntu), or its equivalent on other systems"),
    "old_tool": (MISSING, "{tool} {version} is too old: {needed} or later is needed {why}",
                 "install a later {package}"),
    "no_plugin": (MISSING, "the plugin for babeltrace2 is not in {places}",
                  "build dyntrace on a host that has libbabeltrace2-dev, libglib2.0-dev and pkg-config, or copy the "
                  "recording to a host that has the plugin: `dyntrace view {folder}` needs no node"),
    "no_btf": (MISSING, "the kernel has no {path}, which bpftrace needs to trace one process from within a PID "
               "namespace",
               "run the command on the host, or in a container that shares the host's PID namespace (`docker run "
               "--pid=host`, `hostPID`)"),
    "no_types": (MISSING, "the kernel has no {path}, which bpftrace needs to read the stacks of threads",
                 "use a kernel with CONFIG_DEBUG_INFO_BTF, such as Debian's, or `dyntrace profile --wall`, which "
                 "does not need it"),
    "unsure_script": (FAILED, "{script} can't be limited to one node: {why}",
                      "change the script; docs/perf.md lists the restrictions"),
    "symbols": (NOT_ALLOWED, "{script} looks up function names ({why}): for that, this version of bpftrace opens, as "
                "root, files that the node's user chooses",
                "write `ustack(raw)`, which prints addresses; `dyntrace profile` shows names"),
    "no_script": (MISSING, "no such script: {script}", "`dyntrace run` lists the scripts"),
    "no_scripts": (MISSING, "no scripts in {places}",
                   "run `make` in the sources or `make install`, or name a script's file"),
    "no_vm": (NO_NODE, "no Erlang VM is visible in /proc on this host",
              "start the node; if you are in a container, run this command on the host, or share the host's PID "
              "namespace (`docker run --pid=host`, `hostPID`); run it as root if /proc hides the processes of other "
              "users (hidepid)"),
    "no_such_node": (NO_NODE, "no Erlang VM matches {node}", "`dyntrace nodes` lists the VMs of this host"),
    "several_nodes": (NO_NODE, "several nodes have dyntrace: {nodes}", "name one: `dyntrace {command} {first}`"),
    "same_name": (NO_NODE, "several nodes are called {node}: {nodes}", "name one by its process number: `dyntrace "
                  "{command} {first}`"),
    "no_library": (NO_NODE, "process {pid} ({name}) has not loaded dyntrace's library",
                   "run `dyntrace load {pid}`; or in the node, type `application:ensure_all_started(dyntrace).`; if "
                   "that fails, add dyntrace as a dependency and restart the node"),
    "stopped": (NO_NODE, "process {pid} ({name}) is stopped by a signal or a debugger, so it traces nothing",
                "resume it: `kill -CONT {pid}`"),
    "node_gone": (NO_NODE, "process {pid} ({name}) has ended", "`dyntrace nodes` lists the VMs of this host"),
    "replaced": (NO_NODE, "the library of process {pid} was replaced on disk: tracers would attach to the new file",
                 "in the node, type `l(dyntrace).`"),
    "removed": (NO_NODE, "the library of process {pid} was removed from disk: {library}",
                "if it was upgraded, restart the node, which then loads the new version"),
    "not_started": (NO_NODE, "nothing was traced within {seconds} s: the application dyntrace has not started in the "
                    "node, or does not follow consumers",
                    "in the node, type `application:ensure_all_started(dyntrace).`, then `dyntrace:follow(#{{}}).`"),
    "held_up": (NO_NODE, "nothing was traced within {seconds} s: {waiting} of {node} could run but waited for a "
                "scheduler; running: {runs}",
                "run `dyntrace stacks {pid}` to see what the schedulers run, and end or repair these processes"),
    "no_descriptors": (NO_NODE, "process {pid} ({name}) has no free file descriptor, so it can't open the tracer's "
                       "buffers",
                       "raise the limit of the running process: `prlimit --pid {pid} --nofile=65536`"),
    "no_request": (NO_NODE, "no message with the label {label} was sent within {seconds} s",
                   "in the node, give a process a token: `seq_trace:set_token(label, {label}), "
                   "seq_trace:set_token(send, true), seq_trace:set_token('receive', true).`"),
    "no_samples": (NO_NODE, "no samples: {who} used no CPU within {seconds} s",
                   "sample for longer (`--seconds 60`) or more often (`--hz 999`) while it works; without --process, "
                   "the profile is of the whole node"),
    "no_stacks": (FAILED, "the stacks of {node} can't be read: {why}",
                  "docs/stacks.md lists the VMs that are supported"),
    "no_profile": (FAILED, "{file} is not a profile: {why}",
                   "--compare needs a file written by `dyntrace profile NODE -o NAME.folded`"),
    "no_report": (FAILED, "{file} can't be compared: {why}",
                  "name a recording, or a report of this version: `dyntrace view RECORDING -o NAME.json`"),
    "no_process": (NO_NODE, "{node} has no process {process}",
                   "give a registered name, or a pid such as '<0.90.0>'; `dyntrace stacks` without --process shows "
                   "all processes"),
    "no_call": (NO_NODE, "no call of {function} was traced within {seconds} s",
                "if the function was called, the node does not trace it: in the node, type "
                "`dyntrace:follow(#{{functions => [{term}]}}).`"),
    "untraced_functions": (NO_NODE, "{node} traces {traced}, not {functions}; only the node itself can change "
                           "that", "in the node, type `dyntrace:follow(#{{functions => [{terms}]}}).`, which replaces "
                           "the functions that it traces now; then record again"),
    "no_calls": (NO_NODE, "{node} traces no function, so there will be no events of {groups}",
                 "in the node, type `dyntrace:follow(#{{functions => [{{Module, Function, Arity}}]}}).`, or set the "
                 "option `functions`; `--functions MODULE:FUNCTION/ARITY` selects from these functions"),
    "no_lttng": (NO_NODE, "process {pid} ({name}) has not loaded LTTng's tracepoints",
                 "where the node runs, install LTTng's library (Debian 12: liblttng-ust1, later: liblttng-ust1t64); if "
                 "it is installed, type `dyntrace:info().` in the node: `backends` says why `lttng` is missing"),
    "not_registered": (NO_NODE, "process {pid} ({name}) is not registered with a session daemon; asked: {daemons}",
                       "in the node, type `dyntrace:info().`: `backends` says what prevents LTTng; a node in a "
                       "container needs the host's /dev/shm and /var/run/lttng (docs/production.md)"),
    "no_daemon": (FAILED, "LTTng's session daemon can't be started: {output}",
                  "start it by hand and read its messages: `lttng-sessiond --no-kernel`"),
    "daemon_gone": (FAILED, "the session daemon ended during the recording",
                    "view what it has written: `dyntrace view {folder}`; then record again"),
    "lttng": (FAILED, "`{tool}` failed: {output}", "run the same command by hand; see docs/lttng.md"),
    "bpftrace": (FAILED, "bpftrace failed: {output}", "docs/perf.md explains bpftrace's messages"),
    "not_ended": (FAILED, "bpftrace (process {pid}) was killed and has not ended yet",
                  "wait: the kernel is still detaching it, and its probes stay enabled until then; `ps -o stat,wchan "
                  "{pid}` shows where it is"),
    "babeltrace2": (FAILED, "babeltrace2 failed: {output}",
                    "check that the recording is complete: `babeltrace2 {folder}` prints its events"),
    "no_duckdb": (MISSING, "DuckDB, which converts the rows to Parquet, is not installed",
                  "install the program `duckdb` or the Python module `duckdb`; or name a file that ends in .jsonl, "
                  "which DuckDB can read"),
    "duckdb": (FAILED, "DuckDB failed: {output}", "name a file that ends in .jsonl, and read it with DuckDB: "
               "docs/fleet.md"),
    "no_folder": (FAILED, "no such folder: {folder}", "name the folder that `dyntrace record` printed"),
    "no_such_kind": (FAILED, "{folder} is a file; an LTTng recording is a folder",
                     "name the folder that `dyntrace record` printed"),
    "unreadable": (NOT_ALLOWED, "{folder} can't be read: {why}; it belongs to {owner}, and you are {user}",
                   "view it as its owner or as root: `sudo dyntrace view {folder}`"),
    "empty_folder": (FAILED, "{folder} is empty", "name the folder that `dyntrace record` printed"),
    "large_tree": (FAILED, "{folder} can't be read as a recording: {why}",
                   "name the folder of one recording, which has the file `metadata`"),
    "shortened": (FAILED, "a file of {folder} was truncated while babeltrace2 read it",
                  "view a copy that no other program can change: `cp -r`"),
    "no_recording": (FAILED, "no LTTng recording in {folder}: the file `metadata` is missing or empty",
                     "name the folder that `dyntrace record` printed"),
    "not_listening": (FAILED, "can't listen on port {port} of {address}: {why}",
                      "choose another address or port: `--listen ADDRESS:PORT`"),
    "exists": (FAILED, "{folder} exists and is not empty", "name another folder (for report: `--keep`)"),
    "disk_full": (NO_ROOM, "not enough space in {folder}: {free} free{kept}",
                  "free some space there, or record elsewhere: `-o FOLDER`"),
    "no_shm": (NO_ROOM, "/dev/shm has {free} free, too little for LTTng's buffers",
               "free some space in /dev/shm, or enlarge it: `mount -o remount,size=256M /dev/shm`"),
    "no_shm_folder": (MISSING, "there is no /dev/shm, where LTTng keeps its buffers",
                      "as root: `mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm`"),
    "not_yours": (NOT_ALLOWED, "the folder {folder} belongs to {owner}, who could read the recording",
                  "name a folder that does not exist yet: `-o FOLDER`"),
    "way_of_others": (NOT_ALLOWED, "root's output would go through {folder}, which {why}: another user could redirect "
                      "it with a link",
                      "name a folder that belongs to root and that the node's user can reach: "
                      "`-o /var/lib/dyntrace`"),
    "temporary_of_others": (NOT_ALLOWED, "root's temporary files (TMPDIR) would go through {folder}, which {why}: "
                            "another user could redirect them with a link",
                            "`unset TMPDIR`, or set it to a folder that belongs to root"),
    "not_writable": (FAILED, "{folder} can't be written: {why}", "write elsewhere: `-o FILE`"),
    # Loading the library into a running node
    "load_no_distribution": (NO_NODE, "process {pid} ({name}) has no distribution (-sname, -name), so it can't be "
                             "asked to load anything", "add dyntrace as a dependency and restart the node"),
    "load_tls": (NO_NODE, "process {pid} ({name}) uses distribution over TLS (-proto_dist {protocol}), and this "
                 "command does not use its certificates", "load the library by hand; see docs/load.md"),
    "load_protocol": (NO_NODE, "process {pid} ({name}) uses distribution over {protocol}; this command supports "
                      "inet_tcp and inet6_tcp", "load the library by hand; see docs/load.md"),
    "load_no_port": (NO_NODE, "the distribution port of process {pid} ({name}) is unknown: it is not in epmd, and none "
                     "of -erl_epmd_port, inet_dist_listen_min and ERL_DIST_PORT names a port on which it listens",
                     "start epmd; then type in the node `erl_epmd:register_node(NAME, PORT).`"),
    "load_no_cookie": (NO_NODE, "process {pid} ({name}) has no cookie in its arguments, its environment, its release "
                       "or the home folder of {owner}",
                       "write the cookie to the file .erlang.cookie in that home folder, with mode 600"),
    "load_wrong_cookie": (NOT_ALLOWED, "process {pid} ({name}) rejects the cookies from its arguments, its "
                          "environment, its release and the home folder of {owner}",
                          "write its cookie to the file .erlang.cookie in that home folder, with mode 600"),
    "load_old_otp": (NO_NODE, "process {pid} ({name}) runs OTP {otp}; dyntrace requires {oldest} or later",
                     "update the node's OTP"),
    "load_old_node": (NO_NODE, "process {pid} ({name}) uses the distribution protocol of an OTP before 23",
                      "update the node's OTP"),
    "load_old_nif": (NO_NODE, "the VM of process {pid} ({name}) has version {version} of erl_nif; this host's build "
                     "requires {needed}", "build dyntrace with an OTP that is not later than the node's"),
    "load_no_build": (MISSING, "process {pid} ({name}) requires a build for {wanted}; this host has: {found}",
                      "make such a build; see docs/load.md"),
    "load_not_built": (MISSING, "no build of the library in {places}, beside this command",
                       "run `make`, then `make install`"),
    "load_no_place": (NO_NODE, "no folder of process {pid} ({name}) can hold the library: {reasons}",
                      "mount a file system there that is writable and not noexec"),
    "load_twice": (NO_NODE, "`dyntrace load` has already loaded the library into process {pid} ({name})",
                   "run `dyntrace report {pid}`, or `dyntrace unload {pid}`"),
    "load_prepared": (NO_NODE, "process {pid} ({name}) has dyntrace on its own code path",
                      "in the node, type `application:ensure_all_started(dyntrace).`"),
    "load_none": (NO_NODE, "process {pid} ({name}) has not loaded dyntrace", "`dyntrace load {pid}` loads it"),
    "load_not_ours": (NO_NODE, "the dyntrace of process {pid} ({name}) was not loaded by `dyntrace load` on this host",
                      "in the node, type `application:stop(dyntrace).`"),
    "load_busy": (FAILED, "another `dyntrace load` or `unload` is connected to process {pid} ({name})",
                  "try again when it has ended"),
    "load_not_allowed": (NOT_ALLOWED, "process {pid} ({name}) accepts only some nodes (`net_kernel:allow/1`)",
                         "load the library by hand; see docs/load.md"),
    "load_refused": (FAILED, "process {pid} ({name}) refuses the connection: {why}", "check the node's log"),
    "load_failed": (FAILED, "process {pid} ({name}) can't load the library: {why}",
                    "docs/load.md lists the usual causes; `dyntrace unload {pid}` removes anything that is left"),
    "load_no_answer": (FAILED, "process {pid} ({name}) does not answer: {why}", "check the node's log"),
    "load_dirty_io": (FAILED, "process {pid} ({name}) does not answer: it can't read files to load code, because all "
                      "of its {schedulers} dirty I/O schedulers are blocked in the kernel ({where})",
                      "look for what blocks them, such as a file system that hangs or a pipe; +SDio N gives the node "
                      "more of these schedulers"),
    "load_other_socket": (NOT_ALLOWED, "another process also listens on the distribution port of process {pid} "
                          "({name})",
                          "as root, `ss -ltnp` shows the programs that listen on that port"),
    # Several hosts
    "open_folder": (FAILED, "{folder} is open to other users (mode {mode}): they could read the recordings",
                    "name another folder, or restrict this one: `chmod 700 {folder}`"),
    "port_in_use": (FAILED, "port {port} of {address} is in use, perhaps by another relay",
                    "`ss -ltnp` shows by which program; or use other ports: `dyntrace relay --port {other}`"),
    "no_address": (FAILED, "can't listen on {address}: {why}",
                   "`ip address` lists the addresses of this host; without --listen, the relay listens on loopback"),
    "relay_ended": (FAILED, "lttng-relayd has ended: {output}",
                    "view what has arrived: `dyntrace view {folder}`; then start the relay again"),
    "no_relay": (FAILED, "no relay answers at {host}, port {port}: {why}",
                 "on the collector, start `dyntrace relay`; it listens on loopback and prints how to reach it by ssh"),
    "relay_gone": (FAILED, "the connection to the relay at {host} was lost after {seconds} s; {lost}",
                   "on the collector, view what has arrived: `dyntrace view FOLDER`; then record again, or without "
                   "--to"),
    # The collector of OpenTelemetry
    "otlp_refused": (FAILED, "can't send spans to {url}: {why}; {sent} spans were sent before",
                     "start a collector that receives OTLP over HTTP, usually on port 4318: `--otlp http://HOST:4318`"),
    "otlp_status": (FAILED, "{url} answered {answer}; {sent} spans were sent before",
                    "check the URL, without /v1/traces, and the collector's log; OTEL_EXPORTER_OTLP_HEADERS sets "
                    "headers, such as a token"),
    "otlp_rejected": (FAILED, "{url} rejected {rejected} of {spans} spans: {message}", "check the collector's log"),
    "otlp_headers": (FAILED, "{variable} is not valid", "set it to NAME=VALUE,... with percent-encoded values"),
    "no_recorder": (NO_NODE, "no flight recorder was found on this host",
                    "start one: `dyntrace record --snapshot`; only root finds those of all users"),
    # A flight recorder that writes by itself
    "recorder_runs": (FAILED, "another recorder writes into {folder}", "name another folder: `-o FOLDER`"),
    "no_snapshot_folder": (FAILED, "no such folder: {folder}", "name the folder of `dyntrace record --when`: `-o "
                           "FOLDER`"),
    "unlisted": (FAILED, "not all folders could be read", "run the command as the user of these recorders, or as root"),
    "recorder_daemon_gone": (FAILED, "the session daemon has ended, and the events in memory are lost; snapshots "
                             "remain",
                             "start the recorder again; docs/recorder.md has a systemd unit that does so"),
    "recorder_listener_gone": (FAILED, "the program that receives LTTng's notifications was killed; snapshots remain",
                               "start the recorder again; docs/recorder.md has a systemd unit that does so"),
    "no_ssh": (MISSING, "{tool} can't be started: {why}", "install openssh-client, or name another program: --ssh"),
    "bad_stream": (FAILED, "not a valid snapshot stream: {why}", "on that host, try `dyntrace snapshot`"),
    "cut_stream": (FAILED, "the snapshot stream ended early", "on that host, try `dyntrace snapshot`"),
    "host": (FAILED, "{host} did not send a snapshot: {output}", "try it by hand: `{by_hand}`"),
    "incomplete": (FAILED, "no snapshot from {hosts}", "the others are in {folder}: `dyntrace view {folder}`"),
    "no_snapshots": (FAILED, "no snapshot from {hosts}", "see the message of each host above"),
    "terminal": (FAILED, "a snapshot can't be written to a terminal", "name a folder: `-o FOLDER`"),
}


class Failure(Exception):
    """A row of the table. `values` fill the placeholders of its texts; `user` and `command` have defaults."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key, self.values = key, values
        values.setdefault("user", user_name(os.geteuid()))
        values.setdefault("command", " ".join(sys.argv[1:]))
        self.status, cause, step = FAILURES[key]
        self.cause = cause.format(**values)
        self.step = step.format(**values)
        self.text = f"dyntrace: {self.cause}\n  next: {self.step}"


def reason(error: BaseException) -> str:
    """Returns why something failed; of an OSError, without its number and file."""
    return str(getattr(error, "strerror", None) or error)


def user_name(uid: int) -> str:
    """Returns the name of a user, or its number if it has no account here, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
