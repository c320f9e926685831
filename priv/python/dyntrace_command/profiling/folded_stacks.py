"""Folded stacks: each stack as its names from the outermost in, with the number of its samples."""
import collections
import re
from typing import Counter, List, Tuple

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import read_regular
from dyntrace_command.profiling.sample_paths import SAVED, Path

# Bytes of a file.
FILE_MOST = 64 << 20

LINE = re.compile(r"(.*) (\d{1,12})")


def stacks(paths: "Counter[Path]") -> List[Tuple[List[str], int]]:
    """Returns the paths in the order of their frames."""
    return sorted(([path.root, *path.frames], count) for path, count in paths.items())


def frame(name: str) -> str:
    """Returns a name without the separator of frames, as viewer/flame/flame_sink.c writes it."""
    return name.replace(";", ":")


def exact(name: str) -> str:
    """Returns the name of a frame without the remark that its stack may be an earlier one."""
    return name[:-len(SAVED)] if name.endswith(SAVED) else name


def folded_paths(path: str) -> "Counter[Tuple[str, ...]]":
    """Returns the stacks in a file that `-o NAME.folded` has written; raises Failure if the file is not one."""
    found: Counter[Tuple[str, ...]] = collections.Counter()
    try:
        text = read_regular(path, FILE_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise Failure("no_profile", file=path, why=error.strerror) from None
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if not match:
            raise Failure("no_profile", file=path, why="a line has no number of samples")
        found[tuple(map(clean, match.group(1).split(";")))] += int(match.group(2))
    if not sum(found.values()):
        raise Failure("no_profile", file=path, why="it has no samples")
    return found


def stacks_of(paths: "Counter[Path]") -> "Counter[Tuple[str, ...]]":
    """Returns the same stacks of a profile as a file of folded stacks has them."""
    found: Counter[Tuple[str, ...]] = collections.Counter()
    for stack, count in stacks(paths):
        found[tuple(map(frame, stack))] += count
    return found
