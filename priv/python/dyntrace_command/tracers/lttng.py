"""LTTng: the session daemons of this host's users, and the one with which nodes are registered.

Commands to a daemon run as its user. Each has a time limit, because a daemon may hang: the command then fails (`do`) or
goes on without the answer (`attempt`). If a user has no daemon, one is started for the time of the recording.
"""
import contextlib
import os
import pwd
import re
import signal
import subprocess
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from dyntrace_command.common.failures import Failure, user_name
from dyntrace_command.common.terminal import last_lines, size
from dyntrace_command.host.children import Guard, run_kept
from dyntrace_command.host.execution import MOST, NO_ANSWER, PATIENCE_S, TOO_MUCH, LastOutput, Program, until
from dyntrace_command.host.tools import tool
from dyntrace_command.node.node import Node, nodes
from dyntrace_command.node.why_untraced import starved

# How long an LTTng command may take: at the end of a recording, it writes the buffers.
ANSWERS_S = 60
# A daemon that was started here closes a connection after this time without an answer. It is also the timeout of the
# next command to a daemon that has not answered one.
NETWORK_S = 10
# Seconds between polls of a daemon that is starting, or that waits for a node to register: each poll runs a program.
POLL_S = 0.25
# The maximum number of home folders in which a user's daemons are looked for: each may take ANSWERS_S.
MOST_HOMES = 10
# LTTng's library retries five seconds after a daemon has ended.
REGISTERED_S = 8

# `lttng create` makes the new session the user's current one, in the file .lttngrc of LTTNG_HOME, which also has the
# folder of the user's daemon. To keep the user's current session, `lttng create` runs with a temporary LTTNG_HOME. It
# is removed even when SIGTERM ends `lttng`; the second SIGTERM, which timeout(1) sends, must not end the removal. If it
# can't be made, the recording is more important than the current session. The first argument is the user's LTTNG_HOME.
APART = ["/bin/sh", "-c", """
trap : TERM
user=$1
shift
if home=$(mktemp -d 2>/dev/null || TMPDIR=/tmp mktemp -d 2>/dev/null); then
    ln -s "$user/.lttng" "$home" && LTTNG_HOME=$home "$@"
else
    "$@"
fi
status=$?
trap '' TERM
[ -z "$home" ] || rm -rf "$home"
exit $status""", "apart"]

# Other commands may record with the daemon in the meantime: it ends after their sessions.
END_DAEMON = 'while "$1" --no-sessiond --mi=xml list | grep -q "<session>"; do sleep 1; done; kill "$0"'


class Lttng:
    """The session daemon of a user, with commands that run as that user; by default of the user of this command."""

    def __init__(self, uid: Optional[int] = None, home: str = "") -> None:
        self.uid = uid
        self.own_daemon: "Optional[subprocess.Popen[bytes]]" = None
        self.guard: Optional[Guard] = None
        self.identity: Optional[Tuple[int, int]] = None
        self.environment: Optional[Dict[str, str]] = None
        self.answers_s = ANSWERS_S
        # LTTng looks for the daemon's folder here.
        self.home = home or os.environ.get("LTTNG_HOME") or os.path.expanduser("~")
        if uid is not None:
            group = uid
            with contextlib.suppress(KeyError):
                group = pwd.getpwuid(uid).pw_gid
            self.identity = uid, group
            # The user can read the environment of these programs, so it has nothing else.
            self.environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "LTTNG_HOME": home}

    def show(self) -> str:
        """Returns the daemon's name in messages."""
        return f"the daemon of {user_name(os.geteuid() if self.uid is None else self.uid)}"

    def program(self, *words: str) -> Program:
        """Returns a program that runs as the daemon's user."""
        return Program(words, self.identity, self.environment)

    def attempt(self, *arguments: str, give_up: Optional[Callable[[], bool]] = None) -> Tuple[int, str]:
        """Runs `lttng` and returns (status, output). The daemon handles one command at a time, and may hang on a relay
        that is gone: then the status is NO_ANSWER, after a timeout or when `give_up` returns true."""
        apart = [*APART, self.home] if arguments[0] == "create" else []
        status, output, _ = run_kept(self.program(*apart, tool("lttng"), "--no-sessiond", *arguments), self.answers_s,
                                     give_up)
        if status == NO_ANSWER:
            self.answers_s = min(self.answers_s, NETWORK_S)
            return NO_ANSWER, "the session daemon does not answer"
        if status == TOO_MUCH:
            return NO_ANSWER, f"the output has more than {size(MOST)}"
        self.answers_s = ANSWERS_S
        return status, output

    def do(self, *arguments: str, give_up: Optional[Callable[[], bool]] = None) -> str:
        """Runs `lttng` and returns its output; raises Failure if it fails."""
        status, output = self.attempt(*arguments, give_up=give_up)
        if status != 0:
            raise Failure("lttng", tool="lttng " + " ".join(arguments), output=last_lines(output))
        return output

    def answers(self) -> bool:
        """Returns whether the daemon runs."""
        return self.attempt("list")[0] == 0

    def knows(self, pid: int) -> bool:
        """Returns whether a process is registered. `pid` is the number that the daemon sees, also of a process in a
        container."""
        _, output = self.attempt("--mi=xml", "list", "--userspace")
        return str(pid) in re.findall(r"<pid>\s*<id>(\d+)</id>", output)

    def start_daemon(self) -> None:
        """Starts the daemon for the time of this recording. Nodes register with it by themselves."""
        environment = {**os.environ, "LTTNG_NETWORK_SOCKET_TIMEOUT": str(NETWORK_S * 1000)}
        daemon = subprocess.Popen([tool("lttng-sessiond"), "--no-kernel"], env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        assert daemon.stdout
        messages = LastOutput(daemon.stdout)
        # The guard ends the daemon after the sessions of other commands.
        guard = Guard(Program(["/bin/sh", "-c", END_DAEMON, str(daemon.pid), tool("lttng")]), seconds=None)
        until(lambda: self.answers() or daemon.poll() is not None, 10, POLL_S)
        if daemon.poll() is not None:
            output = messages.text()
            guard.release()
            # Another command may have started one at the same time.
            if "already running" not in output or not until(self.answers, 10, POLL_S):
                raise Failure("no_daemon", output=last_lines(output))
            return
        self.own_daemon, self.guard = daemon, guard

    def stop_daemon(self) -> None:
        """Ends the daemon if it was started here. If other commands record with it, the guard ends it later."""
        if self.own_daemon is None or self.guard is None:
            return
        if "<session>" in self.attempt("--mi=xml", "list")[1]:
            self.guard.act()
            return
        self.own_daemon.terminate()
        try:
            self.own_daemon.wait(NETWORK_S + 5)
        except subprocess.TimeoutExpired:
            # Kills the consumer daemon, too. The daemon waits for a node that is stopped, or hangs on a connection.
            os.killpg(self.own_daemon.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.own_daemon.wait(PATIENCE_S)
        self.guard.release()


@contextlib.contextmanager
def daemon_of(chosen: Sequence[Node]) -> Iterator[Lttng]:
    """Yields the daemon with which the nodes are registered: that of this command's user or, for root, that of the
    nodes' user."""
    tool("lttng")
    for node in chosen:
        if os.geteuid() not in (0, node.process.uid()):
            raise Failure("other_user", pid=node.pid, owner=node.user)
        if not node.has_lttng:
            raise Failure("no_lttng", pid=node.pid, name=node.node)
    own = Lttng()
    running = [daemon for daemon in [own, *daemons_of_users(chosen)] if daemon.answers()]
    found = registered(chosen, running)
    if found:
        yield found
        return
    # Starts a daemon for the time of the recording if the user has none.
    if own in running:
        raise unregistered(chosen, running)
    try:
        own.start_daemon()
        if not registered(chosen, [own]):
            raise unregistered(chosen, [*running, own])
        yield own
    finally:
        own.stop_daemon()


def daemons_here() -> List[Lttng]:
    """Returns the running daemons of this command's user and, for root, of the users who have nodes."""
    return [daemon for daemon in [Lttng(), *daemons_of_users(nodes())] if daemon.answers()]


def daemons_of_users(some: Sequence[Node]) -> List[Lttng]:
    """Returns, for root, the daemons of the nodes' users, even those that do not run. A user whose nodes have different
    home folders may have a daemon in each."""
    homes: Dict[int, Dict[str, None]] = {}
    if os.geteuid() == 0:
        for node in some:
            # The node may have ended.
            with contextlib.suppress(OSError, KeyError):
                homes.setdefault(node.process.uid(), {})[home_of(node)] = None
    return [Lttng(uid, home) for uid, found in homes.items() if uid != 0 for home in list(found)[:MOST_HOMES]]


def home_of(node: Node) -> str:
    """Returns the home folder of the node's user, where LTTng finds the daemon."""
    return node.home or pwd.getpwuid(node.process.uid()).pw_dir


def registered(chosen: Sequence[Node], daemons: Sequence[Lttng]) -> Optional[Lttng]:
    """Waits for a daemon with which all the nodes are registered, and returns it; None after a timeout."""
    pids = [node.pid for node in chosen]
    found: List[Lttng] = []

    def is_found() -> bool:
        found.extend(daemon for daemon in daemons if all(map(daemon.knows, pids)))
        return bool(found) or not daemons
    until(is_found, REGISTERED_S, POLL_S)
    return found[0] if found else None


def unregistered(chosen: Sequence[Node], asked: Sequence[Lttng]) -> Failure:
    """Returns the failure of the first node that is not registered with any daemon."""
    unknown = [node for node in chosen if not any(daemon.knows(node.pid) for daemon in asked)] or chosen
    return starved(unknown[0]) or Failure("not_registered", pid=unknown[0].pid, name=unknown[0].node,
                                          daemons=", ".join(dict.fromkeys(daemon.show() for daemon in asked)))
