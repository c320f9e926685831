"""How to connect to a node: its distribution socket and the candidates for its cookie, all from /proc.

This runs in a child with the identity of the node's user (`sandbox`), which reads only cookies that this user may read.
So proof of a cookie goes only to the user who owns it: the socket was created by the same user, belongs to the node,
and no other process listens on its port (`check_listener`).
"""
import contextlib
import re
import socket
from typing import Callable, Iterator, List, NamedTuple, Optional, Pattern

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.distribution import Connection, Refused
from dyntrace_command.host.process import Listener, listening
from dyntrace_command.node.description import RELEASES
from dyntrace_command.node.node import Node

PROTOCOLS = ("inet_tcp", "inet6_tcp")
# Each wrong cookie writes a line to the node's log.
COOKIES_MOST = 5
CONNECT_S = 10
# A cookie file, and the option in a release's vm.args.
WHOLE_FILE = re.compile(r"\A\s*(\S{1,255})\s*\Z")
VM_ARGS = re.compile(r"^[ \t]*-setcookie[ \t]+(\S{1,255})[ \t]*$", re.MULTILINE)


class Way(NamedTuple):
    """The node's listening distribution socket, and the candidates for its cookie, the most likely first."""
    listener: Listener
    cookies: List[str]


def way_to(node: Node) -> Way:
    """Returns how to connect to a node; raises Failure if that is impossible."""
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
    """Returns the socket that epmd has registered under the node's name. Without an epmd, returns the one on the port
    that its arguments or its environment specify, or its only one."""
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
    """Returns the ports on which it may listen, from its arguments and its environment."""
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
    """Yields the candidates for its cookie."""
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
    """Yields the cookie in a file, if the file can be read and matches the pattern."""
    with contextlib.suppress(OSError):
        found = form.search(read(path))
        if found:
            yield found.group(1).strip("'\"")


# -- Its arguments -----------------------------------------------------------------------------------------------------

def before_extra(arguments: List[str]) -> List[str]:
    """Returns the arguments before -extra, which are those of the emulator."""
    return arguments[:arguments.index("-extra")] if "-extra" in arguments else arguments


def values(arguments: List[str], key: str) -> List[str]:
    """Returns the values of the key, which is a flag or the parameter of one (-kernel KEY VALUE). A flag with two
    values does not count: -setcookie NODE COOKIE is for a single node."""
    found = []
    for at, argument in enumerate(arguments[:-1]):
        if argument == key and (not key.startswith("-") or at + 2 >= len(arguments)
                                or arguments[at + 2].startswith(("-", "+"))):
            found.append(arguments[at + 1])
    return found


# -- The connection ----------------------------------------------------------------------------------------------------

def connect(node: Node, way: Way) -> Connection:
    """Returns a connection, made with the first cookie that the node accepts. Raises Failure."""
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
    """Returns the name of this side. It is always the same, because nodes store names as atoms, which are never freed;
    so two commands cannot be connected to a node at the same time. Its host does not exist (RFC 2606): if the node
    answers after this command has ended, it connects to nothing and proves its cookie to no other host.
    src/application/dyntrace_status.erl has the same names."""
    return "dyntrace_load@dyntrace.invalid" if "." in node.node.partition("@")[2] else "dyntrace_load@invalid"


def socket_to(listener: Listener) -> socket.socket:
    """Connects to the socket, in the node's network, which this child has entered."""
    # If the node's IPv6 socket does not accept IPv4, 127.0.0.1 with this port may belong to another program.
    addresses = {"0.0.0.0": ["127.0.0.1"], "::": ["::1", "127.0.0.1"]}.get(listener.address, [listener.address])
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, listener.port), CONNECT_S)
    return socket.create_connection((addresses[-1], listener.port), CONNECT_S)


def check_listener(node: Node, listener: Listener) -> None:
    """Raises Failure unless all sockets that listen on the port in the node's network are the node's own. A connection
    to the port then leads to the node. Call it after connecting, before sending anything."""
    check_lives(node)
    own = {one.inode for one in node.inside.listens(is_fresh=True)}
    here = {one.inode for one in listening(node.process.dir) if one.port == listener.port}
    if listener.inode not in here or not here <= own:
        raise Failure("load_other_socket", pid=node.pid, name=node.node)


def check_lives(node: Node) -> None:
    """Raises Failure if the node has ended: another process may have its PID."""
    if not node.lives():
        raise Failure("node_gone", pid=node.pid, name=node.node)


def no_answer(node: Node, error: BaseException) -> Failure:
    """Returns the failure of a node that does not answer. Blocked dirty I/O schedulers are a special case: the node
    then can't read files, and so can't load the code that an answer may need."""
    if not node.lives():
        return Failure("node_gone", pid=node.pid, name=node.node)
    with contextlib.suppress(OSError, ValueError):
        blocked = node.inside.blocked_dirty_io() if isinstance(error, socket.timeout) else []
        if blocked:
            return Failure("load_dirty_io", pid=node.pid, name=node.node, schedulers=len(blocked),
                           where=", ".join(sorted(set(blocked))))
    return Failure("load_no_answer", pid=node.pid, name=node.node, why=reason(error))
