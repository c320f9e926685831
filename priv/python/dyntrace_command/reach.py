"""How a node is reached: its distribution's socket and what its cookie may be, all from /proc.

It runs in a child with the identity of the node's user (`sandbox`), which reads only cookies that this user may read.
So the proof of a cookie goes only to the user whose cookie it is: the socket was created by the same
user, is the node's own, and no other process listens on its port (`check_listener`).
"""
import contextlib
import re
import socket
from typing import Callable, Iterator, List, NamedTuple, Optional, Pattern

from dyntrace_command.description import RELEASES
from dyntrace_command.distribution import Connection, Refused
from dyntrace_command.failures import Failure, reason
from dyntrace_command.node import Node
from dyntrace_command.process import Listener, listening
from dyntrace_command.terminal import clean

PROTOCOLS = ("inet_tcp", "inet6_tcp")
# A wrong cookie is a line in the node's log.
COOKIES_MOST = 5
CONNECT_S = 10
# A cookie in a file of its own, and among the arguments of a release.
WHOLE_FILE = re.compile(r"\A\s*(\S{1,255})\s*\Z")
VM_ARGS = re.compile(r"^[ \t]*-setcookie[ \t]+(\S{1,255})[ \t]*$", re.MULTILINE)


class Way(NamedTuple):
    """The socket that the node's distribution listens on, and the cookies that it may have, the likeliest first."""
    listener: Listener
    cookies: List[str]


def way_to(node: Node) -> Way:
    """Returns the way to a node; raises Failure if there is none."""
    arguments = before_extra(node.inside.arguments())
    protocols = values(arguments, "-proto_dist")
    if protocols and protocols[-1] not in PROTOCOLS:
        raise Failure("load_tls" if "tls" in protocols[-1] else "load_protocol", pid=node.pid, name=node.node,
                      protocol=clean(protocols[-1]))
    listener = find_listener(node, arguments)
    cookies = list(dict.fromkeys(find_cookies(node, arguments)))[:COOKIES_MOST]
    if not cookies:
        raise Failure("load_no_cookie", pid=node.pid, name=node.node, owner=node.user)
    return Way(listener, cookies)


# -- Its socket --------------------------------------------------------------------------------------------------------

def find_listener(node: Node, arguments: List[str]) -> Listener:
    """Returns the one of its sockets that epmd has by the node's name; without an epmd, the one with the port that its
    arguments or its environment name, or its only one."""
    listeners = list(node.inside.listens())
    names = node.inside.registered() if listeners else {}
    known = [one for one in listeners if one.port in names]
    is_named = "name" in node.arguments or "sname" in node.arguments
    if not known and is_named:
        ports = fixed_ports(node, arguments)
        known = [one for one in listeners if one.port in ports] or (listeners if len(listeners) == 1 else [])
    if not known:
        raise Failure("load_no_port" if is_named and listeners else "load_no_distribution", pid=node.pid,
                      name=node.node)
    return known[0]


def fixed_ports(node: Node, arguments: List[str]) -> range:
    """Returns the ports that it may listen on, by its arguments or its environment."""
    wanted = [values(arguments, "-erl_epmd_port"), [node.inside.environment().get("ERL_DIST_PORT", "")],
              values(arguments, "inet_dist_listen_min")]
    numbers = [int(text) for found in wanted for text in found[-1:] if re.fullmatch(r"[1-9]\d{0,4}", text)]
    if not numbers:
        return range(0)
    last = values(arguments, "inet_dist_listen_max")[-1:]
    most = int(last[0]) if last and re.fullmatch(r"[1-9]\d{0,4}", last[0]) else numbers[0]
    return range(numbers[0], max(numbers[0], most) + 1)


# -- Its cookie --------------------------------------------------------------------------------------------------------

def find_cookies(node: Node, arguments: List[str]) -> Iterator[str]:
    """Yields what its cookie may be."""
    yield from (cookie for cookie in values(arguments, "-setcookie") if cookie)
    environment = node.inside.environment()
    if environment.get("RELEASE_COOKIE"):
        yield environment["RELEASE_COOKIE"]
    releases = node.arguments.get("root", "") + "/releases"
    yield from cookie_in(node.inside.read_text, f"{releases}/COOKIE", WHOLE_FILE)
    versions: List[str] = []
    with contextlib.suppress(OSError):
        versions = node.inside.list_folder(releases)[:RELEASES]
    for version in versions:
        yield from cookie_in(node.inside.read_text, f"{releases}/{version}/vm.args", VM_ARGS)
    home = (values(arguments, "-home") or [environment.get("HOME", "")])[-1]
    for folder in (home, environment.get("XDG_CONFIG_HOME", f"{home}/.config") + "/erlang"):
        yield from cookie_in(node.inside.read_cookie, f"{folder}/.erlang.cookie", WHOLE_FILE)


def cookie_in(read: Callable[[str], str], path: str, form: Pattern[str]) -> Iterator[str]:
    """Yields the cookie of a file, if it can be read and has that form."""
    with contextlib.suppress(OSError):
        found = form.search(read(path))
        if found:
            yield found.group(1).strip("'\"")


# -- Its arguments -----------------------------------------------------------------------------------------------------

def before_extra(arguments: List[str]) -> List[str]:
    """Returns the emulator's own arguments."""
    return arguments[:arguments.index("-extra")] if "-extra" in arguments else arguments


def values(arguments: List[str], key: str) -> List[str]:
    """Returns the values of the key, which is a flag, or a parameter of one (-kernel KEY VALUE). A flag with two values
    is another one: -setcookie NODE COOKIE is for a single node."""
    found = []
    for at, argument in enumerate(arguments[:-1]):
        if argument == key and (not key.startswith("-") or at + 2 >= len(arguments)
                                or arguments[at + 2].startswith(("-", "+"))):
            found.append(arguments[at + 1])
    return found


# -- The connection ----------------------------------------------------------------------------------------------------

def connect(node: Node, way: Way) -> Connection:
    """Returns a connection by the first cookie that the node accepts. Raises Failure."""
    refused: Optional[Refused] = None
    for cookie in way.cookies:
        try:
            connected = socket_to(way.listener)
            check_listener(node, way.listener)
            return Connection(connected, own_name(node), cookie, CONNECT_S)
        except Refused as error:
            refused = error
            if error.key != "load_wrong_cookie":
                break
        except (OSError, EOFError, ValueError) as error:
            raise no_answer(node, error) from None
    assert refused
    raise Failure(refused.key, pid=node.pid, name=node.node, why=refused.why, owner=node.user)


def own_name(node: Node) -> str:
    """Returns the name of this side. It is the same each time, since names are atoms, and nodes keep these; so no
    second command can be connected at the same time. Its host does not exist (RFC 2606): a node that answers when this
    command has gone connects to nobody, and proves its cookie to nobody. src/application/dyntrace_status.erl has the
    names, too."""
    return "dyntrace_load@dyntrace.invalid" if "." in node.node.partition("@")[2] else "dyntrace_load@invalid"


def socket_to(listener: Listener) -> socket.socket:
    """Connects to the socket, in the node's network, which this child has entered."""
    # Where IPv6 sockets have no IPv4 address, 127.0.0.1 with this port may be another program's.
    addresses = {"0.0.0.0": ["127.0.0.1"], "::": ["::1", "127.0.0.1"]}.get(listener.address, [listener.address])
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, listener.port), CONNECT_S)
    return socket.create_connection((addresses[-1], listener.port), CONNECT_S)


def check_listener(node: Node, listener: Listener) -> None:
    """Raises Failure unless all that listens on the port in the node's network is the node's own: a connection to the
    port is one to the node then. Call it once connected, before anything is sent."""
    check_lives(node)
    own = {one.inode for one in node.inside.listens(is_fresh=True)}
    here = {one.inode for one in listening(node.process.dir) if one.port == listener.port}
    if listener.inode not in here or not here <= own:
        raise Failure("load_other_socket", pid=node.pid, name=node.node)


def check_lives(node: Node) -> None:
    """Raises Failure if the node has ended: its number may be another process's."""
    if not node.lives():
        raise Failure("node_gone", pid=node.pid, name=node.node)


def no_answer(node: Node, error: BaseException) -> Failure:
    """Returns the failure of a node that does not answer. One that can read no file loads no code, and its answer may
    need code that is not loaded yet."""
    if not node.lives():
        return Failure("node_gone", pid=node.pid, name=node.node)
    with contextlib.suppress(OSError, ValueError):
        blocked = node.inside.blocked_dirty_io() if isinstance(error, socket.timeout) else []
        if blocked:
            return Failure("load_dirty_io", pid=node.pid, name=node.node, schedulers=len(blocked),
                           where=", ".join(sorted(set(blocked))))
    return Failure("load_no_answer", pid=node.pid, name=node.node, why=reason(error))
