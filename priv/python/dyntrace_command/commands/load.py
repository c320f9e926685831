"""`dyntrace load` and `dyntrace unload`: adds the library to a running node, and removes it again."""
import argparse

from dyntrace_command.common.terminal import say
from dyntrace_command.node.loading import load_whole, unload_whole
from dyntrace_command.node.node import find_node


def load(options: argparse.Namespace) -> None:
    """Loads the library into a node, and prints the next step."""
    node = find_node(options.node)
    print(f"{node.show()} has loaded dyntrace from its folder {load_whole(node)}")
    say(f"next: `dyntrace report {node.pid}`; when done, `dyntrace unload {node.pid}`")


def unload(options: argparse.Namespace) -> None:
    """Undoes `dyntrace load`."""
    node = find_node(options.node)
    print(f"{node.show()} has unloaded dyntrace; its folder {unload_whole(node).folder} is removed")
