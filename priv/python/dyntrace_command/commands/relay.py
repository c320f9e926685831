"""`dyntrace relay`: receives the recordings of other hosts, until Ctrl-C."""
import argparse
import contextlib
import errno
import ipaddress
import os
import signal
import socket
import subprocess
from typing import Dict, Sequence, Set, Union

from dyntrace_command.common.failures import Failure, user_name
from dyntrace_command.common.relay_address import RELAY_PORT
from dyntrace_command.common.terminal import Progress, clean, last_lines, plural, say, size
from dyntrace_command.host.children import Interrupted
from dyntrace_command.host.execution import LastOutput, end_with_parent, until
from dyntrace_command.host.files import NEEDED_AT_START, RESERVE, check_room, has_room, private_folder
from dyntrace_command.host.process import listening
from dyntrace_command.host.tools import tool
from dyntrace_command.host.trees import tree

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

LOOPBACK: Dict[int, Address] = {4: ipaddress.ip_address("127.0.0.1"), 6: ipaddress.ip_address("::1")}


def relay(options: argparse.Namespace) -> None:
    """Receives recordings into one folder per host."""
    # The last of the three ports is for live readers, on this host only.
    address, ports = options.listen, range(options.port, options.port + 3)
    lttng_relayd = tool("lttng-relayd")
    folder = private_folder(options.output)
    check_room(folder, NEEDED_AT_START)
    for port in ports:
        check_port(address if port != ports[2] else LOOPBACK[address.version], port)
    with Relay(lttng_relayd, folder, address, ports) as running, Interrupted() as interrupted:
        say(how_to_reach(address, ports))
        progress, seen = Progress(), Arrived(folder)
        try:
            while not interrupted.happened.wait(1):
                if running.process.poll() is not None:
                    raise Failure("relay_ended", output=running.messages(), folder=folder)
                seen = show_arriving(seen, progress)
                if not has_room(folder):
                    running.stop()
                    check_room(folder, RESERVE, "; the relay ends here, and what has arrived until now is kept")
        finally:
            progress.end()
    Arrived(folder).show()


# -- lttng-relayd ------------------------------------------------------------------------------------------------------

class Relay:
    """lttng-relayd, which ends with this command."""

    def __init__(self, path: str, folder: str, address: Address, ports: Sequence[int]) -> None:
        control, data, live = ports
        self.process = subprocess.Popen(
            [path, f"--output={folder}", "--group-output-by-host",
             f"--control-port={listening_url(address, control)}", f"--data-port={listening_url(address, data)}",
             f"--live-port={listening_url(LOOPBACK[address.version], live)}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=end_with_parent)
        assert self.process.stdout
        self.last = LastOutput(self.process.stdout)
        until(lambda: self.process.poll() is not None or listens({control, data}), 5)

    def messages(self) -> str:
        """Returns its last messages."""
        return last_lines(self.last.text())

    def stop(self) -> None:
        """Ends it, after it has written what it received."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(10)

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def listens(ports: Set[int]) -> bool:
    """Returns whether each of the ports has a listener, or True if that can't be determined."""
    with contextlib.suppress(OSError):
        return ports <= {one.port for one in listening()}
    return True


def check_port(address: Address, port: int) -> None:
    """Raises Failure if the address can't be listened on: lttng-relayd would exit with status 0."""
    with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((str(address), port))
            tried.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Failure("port_in_use", port=port, address=address, other=port + 10) from None
            raise Failure("no_address", address=f"{address} (port {port})", why=error.strerror) from None


def listening_url(address: Address, port: int) -> str:
    """Returns the address in the syntax of lttng-relayd."""
    return f"tcp6://[{address}]:{port}" if address.version == 6 else f"tcp://{address}:{port}"


def how_to_reach(address: Address, ports: Sequence[int]) -> str:
    """Returns the instructions for the other hosts."""
    control, data, _ = ports
    shown = f"[{address}]" if address.version == 6 else str(address)
    suffix = "" if control == RELAY_PORT else f":{control}:{data}"
    host = socket.gethostname() if address.is_unspecified else shown
    to = f"{'net6' if address.version == 6 else 'net'}://{host}{suffix}"
    lines = [f"the relay listens on {address}, ports {control} and {data}, until Ctrl-C"]
    if address.is_loopback:
        through = " ".join(f"{{0}} {port}:{shown}:{port}" for port in (control, data))
        this_host = f"{user_name(os.geteuid())}@{socket.gethostname()}"
        lines += [f"  on this host:                        dyntrace record --to {to}",
                  f"  to let in a host by ssh, type here:  ssh -N {through.format('-R')} HOST",
                  f"  or there:                            ssh -N {through.format('-L')} {this_host}",
                  f"  then, on that host:                  dyntrace record --to {to}"]
    else:
        lines += ["  any host that reaches this address can send: connections are neither encrypted nor authenticated",
                  f"  on each host:  dyntrace record --to {to}"]
    return "\n".join(lines)


# -- Arrivals ----------------------------------------------------------------------------------------------------------

class Arrived:
    """The recordings that have arrived until now: {HOST/RECORDING: bytes}"""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        found: Dict[str, int] = {}
        # Other hosts choose the names.
        with contextlib.suppress(OSError), tree(folder, follows=True) as walk:
            for entry in walk:
                host, _, rest = entry.path.partition("/")
                if rest and (entry.is_folder() or "/" in rest):
                    name = f"{host}/{rest.partition('/')[0]}"
                    found[name] = found.get(name, 0) + entry.size()
        self.sizes = dict(sorted(found.items()))

    def in_all(self) -> str:
        """Returns the totals as a line."""
        hosts = len({name.split("/")[0] for name in self.sizes})
        return f"{plural(len(self.sizes), 'recording')} of {plural(hosts, 'host')}, {size(sum(self.sizes.values()))}"

    def show(self) -> None:
        """Prints all recordings."""
        for name, count in self.sizes.items():
            print(f"{size(count):>9}  {clean(name)}")
        say(f"{self.in_all()}; next: `dyntrace view {self.folder}`" if self.sizes else "nothing has arrived")


def show_arriving(seen: Arrived, progress: Progress) -> Arrived:
    """Prints the name of each new recording, and the totals; returns what has arrived."""
    found = Arrived(seen.folder)
    for name in found.sizes.keys() - seen.sizes.keys():
        progress.end()
        say(f"arriving: {clean(name)}")
    if found.sizes != seen.sizes:
        progress.show(found.in_all())
    return found
