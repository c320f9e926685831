"""`dyntrace load` and `dyntrace unload`: a node that nobody has prepared, made observable while it runs."""
import argparse

from dyntrace_command.common.terminal import say
from dyntrace_command.node.loading import load_whole, unload_whole
from dyntrace_command.node.node import find_node


def load(options: argparse.Namespace) -> None:
    """Loads the library into a node, and says what to do next."""
    node = find_node(options.node)
    print(f"{node.show()} has dyntrace now, from its folder {load_whole(node)}")
    say(f"next: `dyntrace report {node.pid}`; in the end `dyntrace unload {node.pid}`")


def unload(options: argparse.Namespace) -> None:
    """Leaves a node as it was before `dyntrace load`."""
    node = find_node(options.node)
    print(f"{node.show()} is as it was; its folder {unload_whole(node).folder} is removed")
