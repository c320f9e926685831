"""A profile for pprof, with files and lines: `go tool pprof -top FILE`. Field numbers are those of pprof's
profile.proto.

Each sample has the label `process`. A path without frames has its label as the only one.
"""
import gzip
from typing import Counter, Dict, Hashable, List, Tuple, TypeVar

from dyntrace_command.profiling.protobuf import Field, message
from dyntrace_command.profiling.sample_paths import Frame, Located

NS = 1000000000

# Field numbers of a profile.
SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRING, DURATION, PERIOD_TYPE, PERIOD = 1, 2, 4, 5, 6, 10, 11, 12

Key = TypeVar("Key", bound=Hashable)


# pylint: disable-next=too-many-locals
def pprof(located: "Counter[Located]", hertz: float, seconds: int, kind: str = "cpu") -> bytes:
    """Returns the profile, compressed. `kind`: the kind of time that samples represent."""
    texts: Dict[str, int] = {"": 0}
    functions: Dict[Tuple[str, str], int] = {}
    locations: Dict[Frame, int] = {}
    samples: List[Field] = []
    for one, count in sorted(located.items()):
        # The innermost first.
        stack = [(1, number(locations, frame, 1)) for frame in (one.frames or (Frame(one.root),))[::-1]]
        label = message((1, number(texts, "process")), (2, number(texts, one.root)))
        samples.append((SAMPLE, message(*stack, (2, count), (2, round(count * NS / hertz)), (3, label))))
    places: List[Field] = []
    for frame, at in locations.items():
        function = number(functions, (frame.name, frame.file), 1)
        places.append((LOCATION, message((1, at), (4, message((1, function), (2, frame.line))))))
    places += [(FUNCTION, message((1, at), (2, number(texts, name)), (4, number(texts, file))))
               for (name, file), at in functions.items()]
    count_type = message((1, number(texts, "samples")), (2, number(texts, "count")))
    time_type = message((1, number(texts, kind)), (2, number(texts, "nanoseconds")))
    return gzip.compress(message(
        (SAMPLE_TYPE, count_type), (SAMPLE_TYPE, time_type), *samples, *places, *((STRING, text) for text in texts),
        (DURATION, seconds * NS), (PERIOD_TYPE, time_type), (PERIOD, round(NS / hertz))))


def number(numbers: Dict[Key, int], key: Key, first: int = 0) -> int:
    """Returns the number of a key; a new one gets the next number."""
    return numbers.setdefault(key, len(numbers) + first)
