"""Loads the library into a node that was not prepared, and unloads it: the calls that the node gets, step by step.

All of this runs in a child with the identity of the node's user, in the node's network, so it has no more rights than
that user. The child may write files, because the library goes into a folder of that user.

A node in embedded mode does not load modules on demand. So all modules are loaded before the application starts, except
`dyntrace`: the application itself makes sure that OTP's module of that name is replaced.
"""
import contextlib
import os
import re
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

from dyntrace_command.common.external_terms import Atom, Term, text
from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean, plural, say
from dyntrace_command.host.children import Guard, Interrupted
from dyntrace_command.host.distribution import CONNECTION_S, Connection, Refused, shown
from dyntrace_command.host.execution import Program
from dyntrace_command.host.process import Process
from dyntrace_command.host.sandbox import Rights
from dyntrace_command.host.tools import own_program, shown as shown_version
from dyntrace_command.node.container import Container
from dyntrace_command.node.description import LOADED, PARENTS
from dyntrace_command.node.library_builds import Build, application_folder, build_for, modules_in
from dyntrace_command.node.load_folder import LoadFolder, is_for, leftovers, new_name, why_not
from dyntrace_command.node.node import Node, check_readable, find_node, pick
from dyntrace_command.node.node_address import Way, check_lives, connect, no_answer, way_to
from dyntrace_command.node.survey import all_processes

OLDEST_OTP = 25
# Not named in the application's description, because OTP may have a module of this name.
OURS = "dyntrace"
# Names of modules that are accepted from the node, and their number; the module by which a loaded dyntrace is found.
MODULE, MODULES_MOST, LAST = re.compile(r"dyntrace_[a-z_]{1,60}"), 200, "dyntrace_app"
# Seconds to load all modules; to start or stop the application; to purge all modules. For each purged module the VM
# asks every process: this takes 8 s per module beside 1,000 busy processes.
LOAD_S, START_S, PURGE_S = 20, 20, 5
# Seconds for everything: a connection, and the work before and after it.
ALL_S = CONNECTION_S + 20
# Persistent term with the path of OTP's module that was replaced.
REPLACED = (Atom("dyntrace"), Atom("replaced_module"))
PERSISTENT = [REPLACED, *((Atom("dyntrace"), Atom(key)) for key in ("mapped", "text", "library"))]


class Plan:
    """The preconditions of loading, as far as a child can check them in /proc. Raises Failure if loading is
    impossible."""

    def __init__(self, node: Node) -> None:
        try:
            if node.process.is_stopped():
                raise Failure("stopped", pid=node.pid, name=node.node)
            self.node = node
            self.check_release()
            self.build = build_for(node)
            self.way = way_to(node)
            self.parent = self.find_parent()
        except PermissionError:
            raise Failure("other_user", pid=node.pid, owner=node.user) from None
        except (OSError, ValueError) as error:
            raise no_answer(node, error) from None

    def check_release(self) -> None:
        """Checks the VM's release, if it is known."""
        found = re.match(r"\d+", self.node.otp or "")
        if found and int(found.group()) < OLDEST_OTP:
            raise Failure("load_old_otp", pid=self.node.pid, name=self.node.node, otp=self.node.otp, oldest=OLDEST_OTP)

    def find_parent(self) -> str:
        """Returns the parent of the library's folder."""
        reasons = {parent: why_not(self.node.inside, parent) for parent in PARENTS}
        for parent, reason in reasons.items():
            if reason is None:
                return parent
        raise Failure("load_no_place", pid=self.node.pid, name=self.node.node,
                      reasons="; ".join(f"{parent}: {reason}" for parent, reason in reasons.items()))


def obstacle(process: Process, values: Dict[str, Any]) -> Optional[str]:
    """Returns, in a child with this description, why the library can't be loaded, as far as that is known without
    asking the node; None if it can be loaded, or already is."""
    node = Node(process, values)
    if not is_bare(node):
        return None
    try:
        Plan(node)
        return None
    except Failure as failure:
        return failure.cause


def is_bare(node: Node) -> bool:
    """Returns whether it has no library; false if that is unknown."""
    return node.library is None and "library" not in node.unknown


def as_its_user(node: Node, function: Callable[[], Any]) -> Any:
    """Runs a function that connects to the node, in its network, and may write files there; returns its value. Raises
    Failure."""
    check_readable(node)
    try:
        return node.isolated(function, ALL_S, Rights(enter=node.process, may_write=True))
    except (OSError, ValueError) as error:
        raise no_answer(node, error) from None


@contextlib.contextmanager
def asking(node: Node, way: Way) -> Iterator[Connection]:
    """Yields a connection to the node. Converts errors to Failure."""
    connection = connect(node, way)
    try:
        yield connection
    except Refused as refused:
        raise Failure(refused.key, pid=node.pid, name=node.node, why=refused.why) from None
    except (OSError, EOFError, ValueError) as error:
        raise no_answer(node, error) from None
    finally:
        connection.close()


# -- Loading -----------------------------------------------------------------------------------------------------------

def load(node: Node) -> str:
    """Loads the library and starts the application. Returns the library's folder in the node's file system. If a step
    fails, the earlier steps are undone, as far as the node answers."""
    check_readable(node)
    # Read the build here, because the node's user may not be able to read it.
    contents = build_for(node).contents()
    return str(as_its_user(node, lambda: load_here(node, contents)))


def load_here(node: Node, contents: Dict[str, bytes]) -> str:
    """Does the same in the child, with these files."""
    plan = Plan(node)
    with asking(node, plan.way) as connection:
        check_node(node, plan.build, connection)
        sweep(node)
        place = LoadFolder(node.inside, plan.parent, new_name(node.process))
        folder = f"{place.path}/{application_folder()}"
        try:
            # The folder is open now. If the node still lives, it is this node's folder.
            check_lives(node)
            place.fill(contents)
            try:
                start(connection, modules_in(contents), folder)
            except BaseException:
                with contextlib.suppress(Refused, OSError, EOFError, ValueError):
                    stop(connection, f"{folder}/ebin", modules_in(contents))
                raise
        except BaseException:
            place.remove()
            raise
        finally:
            place.close()
    return place.path


def check_node(node: Node, build: Build, connection: Connection) -> None:
    """Raises Failure if the node already has dyntrace, or can't run this build."""
    version = text(connection.call("erlang", "system_info", Atom("nif_version")))[:20]
    found = re.fullmatch(r"(\d+)\.(\d+)", version)
    if not found or (int(found.group(1)), int(found.group(2))) < build.target.nif:
        raise Failure("load_old_nif", pid=node.pid, name=node.node, version=clean(version),
                      needed=shown_version(build.target.nif))
    where = connection.call("code", "where_is_file", "dyntrace_app.beam")
    if where != "non_existing" and not is_only_installed(text(where), connection) \
            or connection.call("code", "is_loaded", Atom("dyntrace_app")) != "false":
        key = "load_twice" if LOADED.match(text(where)) else "load_prepared"
        raise Failure(key, pid=node.pid, name=node.node)


def is_only_installed(where: str, connection: Connection) -> bool:
    """Returns whether the application is in OTP's own folder, as the package erlang-dyntrace installs it for all nodes,
    and the node does not use it."""
    installed = text(connection.call("code", "lib_dir"))
    return where.startswith(f"{installed}/dyntrace-") and \
        connection.call("application", "get_key", Atom(OURS), Atom("vsn")) == "undefined"


def start(connection: Connection, names: List[str], folder: str) -> None:
    """Loads all modules, then starts the application."""
    before = connection.call("code", "is_loaded", Atom(OURS))
    if isinstance(before, tuple) and len(before) == 2:
        connection.call("persistent_term", "put", REPLACED, text(before[1]))
    expect("true", connection.call("code", "add_patha", f"{folder}/ebin"))
    modules = [Atom(name) for name in names if name != OURS]
    expect("ok", connection.call("code", "ensure_modules_loaded", modules, seconds=LOAD_S))
    expect("ok", connection.call("dyntrace_module", "load", seconds=LOAD_S))
    expect("loaded", connection.call("dyntrace", "library"))
    expect("ok", connection.call("application", "ensure_all_started", Atom("dyntrace"), seconds=START_S))


def expect(wanted: str, answer: Term) -> None:
    """Raises Refused unless the answer, or its first element, is this atom."""
    first = answer[0] if isinstance(answer, tuple) and answer else answer
    if first != wanted:
        raise Refused("load_failed", shown(answer))


# -- Unloading ---------------------------------------------------------------------------------------------------------

class Unloaded(NamedTuple):
    """The folder that was removed, and the modules whose old code could not be purged in time."""
    folder: str
    not_purged: List[str]


def unload(node: Node) -> Unloaded:
    """Stops the application; removes its modules, its code path and its files."""
    folder, not_purged = as_its_user(node, lambda: unload_here(node))
    return Unloaded(str(folder), [str(name) for name in not_purged])


def unload_here(node: Node) -> Unloaded:
    """Does the same in the child."""
    with asking(node, way_to(node)) as connection:
        where = connection.call("code", "which", Atom("dyntrace_app"))
        if where == "non_existing":
            sweep(node)
            raise Failure("load_none", pid=node.pid, name=node.node)
        found = LOADED.fullmatch(text(where))
        if not found or not is_for(found.group(2), node.process):
            raise Failure("load_not_ours", pid=node.pid, name=node.node)
        place = LoadFolder(node.inside, found.group(1), found.group(2))
        try:
            check_lives(node)
            # A load that was killed may not have started the application, and /tmp may have been emptied.
            not_purged = stop(connection, os.path.dirname(text(where)), place.modules() or listed_modules(connection))
            place.remove()
        finally:
            place.close()
    return Unloaded(place.path, not_purged)


def listed_modules(connection: Connection) -> List[str]:
    """Returns the application's modules according to the node."""
    answer = connection.call("application", "get_key", Atom("dyntrace"), Atom("modules"))
    names = answer[1] if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], list) else []
    return [OURS, *[name for name in map(text, names[:MODULES_MOST]) if MODULE.fullmatch(name)]]


def stop(connection: Connection, ebin: str, modules: List[str]) -> List[str]:
    """Stops the application, then removes its modules and its code path. Returns the modules whose old code remains."""
    # If the application controller hangs, the modules are removed anyway.
    with contextlib.suppress(socket.timeout):
        connection.call("application", "stop", Atom("dyntrace"), seconds=START_S)
        connection.call("application", "unload", Atom("dyntrace"))
    replaced = connection.call("persistent_term", "get", REPLACED, Atom("none"))
    connection.call("code", "del_path", ebin)
    # OTP's module is the old code of this one.
    connection.call("code", "purge", Atom(OURS), seconds=PURGE_S)
    # LAST is deleted last: if `unload` is killed, a later one finds the remaining modules by it.
    for name in sorted(modules, key=LAST.__eq__):
        connection.call("code", "delete", Atom(name))
    not_purged = purge(connection, modules)
    if isinstance(replaced, list) and replaced:
        connection.call("code", "load_abs", re.sub(r"\.beam$", "", text(replaced)))
    for key in PERSISTENT:
        connection.call("persistent_term", "erase", key)
    return not_purged


def purge(connection: Connection, modules: List[str]) -> List[str]:
    """Purges modules until PURGE_S is over; returns the others. Their code no longer runs. It takes memory until the
    node ends or dyntrace is loaded again, and is listed only by erlang:loaded/0."""
    deadline = time.monotonic() + PURGE_S
    for at, name in enumerate(modules):
        try:
            connection.call("code", "purge", Atom(name), seconds=deadline - time.monotonic())
        except socket.timeout:
            return modules[at:]
    return []


def sweep(node: Node) -> None:
    """Removes the folders of this user's nodes that have ended, and those that a killed load into this node has left.
    Call it only while the node has no dyntrace."""
    for place in leftovers(node.inside, node.process, names_in_memory()):
        with contextlib.suppress(OSError):
            place.remove()


def names_in_memory() -> Set[str]:
    """Returns the names of the folders from which this user's processes have mapped files."""
    found: Set[str] = set()
    for process in all_processes():
        with contextlib.suppress(OSError, ValueError):
            if process.uid() == os.geteuid():
                found.update(at.group(2) for part in Container(process).mappings()
                             for at in [LOADED.search(part.path)] if at)
    return found


# -- For subcommands: a load or an unload is not left half done ------------------------------------------------------

@contextlib.contextmanager
def unloaded_if_killed(node: Node) -> Iterator[None]:
    """Unloads the library if this command is killed meanwhile."""
    guard = Guard(Program([*own_program(), "unload", str(node.pid)]))
    try:
        yield
    finally:
        guard.release()


def load_whole(node: Node) -> str:
    """Loads the library and returns its folder. Unloads it after a Ctrl-C, or if this command is killed."""
    with Interrupted() as interrupted, unloaded_if_killed(node):
        folder = load(node)
        if interrupted.happened.is_set():
            unload(node)
            raise KeyboardInterrupt
    return folder


def unload_whole(node: Node) -> Unloaded:
    """Unloads the library without being interrupted, and reports what is left."""
    with Interrupted():
        unloaded = unload(node)
    if unloaded.not_purged:
        say(f"the old code of {plural(len(unloaded.not_purged), 'module')} stays in the memory of {node.show()}, "
            "unused: the node has too many or too busy processes to purge it in time")
    return unloaded


@contextlib.contextmanager
def loaded(name: Optional[str], is_wanted: bool) -> Iterator[Node]:
    """Yields the selected node. If `is_wanted` and it has no library, the library is loaded, and unloaded at the end,
    even if this command is killed."""
    node = find_node(name) if is_wanted and name else pick(name)
    if node.library:
        yield pick(name)
        return
    with unloaded_if_killed(node):
        load_whole(node)
        try:
            yield pick(str(node.pid))
        finally:
            if node.lives():
                unload_whole(node)
