"""A profile as a file: folded stacks, a profile for speedscope, a page with a flame graph, a trace for Perfetto."""
import json
from typing import Any, Counter, Dict, List, Sequence, Tuple

from dyntrace_command.samples import Path
from dyntrace_command.tools import own_data

NS = 1000000000
# Where the page's template takes its data: viewer/page/template.c fills the same.
PLACE = "@DATA@"


def folded(paths: "Counter[Path]", _title: str, _hertz: int) -> str:
    """Returns a line per path: its frames with ';' between them, a space, the number of samples."""
    return "".join(f"{';'.join(map(frame, stack))} {count}\n" for stack, count in stacks(paths))


def frame(name: str) -> str:
    """Returns a name without what separates frames, as viewer/flame/write.c writes it."""
    return name.replace(";", ":")


def speedscope(paths: "Counter[Path]", title: str, hertz: int) -> str:
    """Returns the JSON of speedscope: a profile of samples with their weights."""
    numbers: Dict[str, int] = {}
    samples, weights = [], []
    for stack, count in stacks(paths):
        samples.append([numbers.setdefault(name, len(numbers)) for name in stack])
        weights.append(count * NS // hertz)
    return json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "dyntrace", "name": title,
        "activeProfileIndex": 0, "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [{"type": "sampled", "name": title, "unit": "nanoseconds", "startValue": 0,
                      "endValue": sum(weights), "samples": samples, "weights": weights}]}) + "\n"


def page(paths: "Counter[Path]", title: str, hertz: int) -> str:
    """Returns the page of recordings with the flame graph alone."""
    with open(own_data("babeltrace2", "page.html"), encoding="utf-8") as file:
        begin, _, end = file.read().partition(PLACE)
    data = {"title": title, "flame": tree(list(stacks(paths)), hertz), "profile": {"hertz": hertz}}
    # Within a script, no text may end it.
    return begin + json.dumps(data).replace("<", "\\u003c") + end


def tree(found: Sequence[Tuple[List[str], int]], hertz: int) -> Dict[str, Any]:
    """Returns the stacks as the page reads them: {name, value, own, children}, in ns."""
    root: Dict[str, Any] = {"name": "", "value": 0, "own": 0, "children": {}}
    for stack, count in found:
        at, ns = root, count * NS // hertz
        at["value"] += ns
        for name in stack:
            at = at["children"].setdefault(name, {"name": name, "value": 0, "own": 0, "children": {}})
            at["value"] += ns
        at["own"] += ns
    return listed(root)


def listed(root: Dict[str, Any]) -> Dict[str, Any]:
    """Turns the children into lists, in place, without recursion: stacks are as deep as samples."""
    waiting = [root]
    while waiting:
        at = waiting.pop()
        at["children"] = list(at["children"].values())
        waiting += at["children"]
    return root


def stacks(paths: "Counter[Path]") -> List[Tuple[List[str], int]]:
    """Returns the paths in the order of their frames."""
    return sorted(([path.root, *path.frames], count) for path, count in paths.items())


WRITERS = {".folded": folded, ".json": speedscope, ".speedscope": speedscope, ".html": page}
