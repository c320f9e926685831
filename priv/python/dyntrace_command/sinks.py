"""The kinds of pictures, by the extension of the file: each is made by a component of the plugin for babeltrace2."""
from typing import Dict, NamedTuple


class Sink(NamedTuple):
    """The component `sink.dyntrace.<component>`, its parameters, and what it makes."""
    component: str
    params: Dict[str, str]
    what: str


SINKS = {
    ".html": Sink("html", {}, "a page for the browser"),
    ".pftrace": Sink("perfetto", {}, "a trace for ui.perfetto.dev"),
    ".txt": Sink("report", {}, "the report"),
    ".json": Sink("report", {"format": "json"}, "the report as JSON"),
    ".folded": Sink("flame", {}, "stacks for flame graphs"),
    ".mmd": Sink("sequence", {}, "a sequence diagram for Mermaid"),
}
