"""The kinds of pictures, by the extension of the file: each is made by a component of the plugin for babeltrace2, with
parameters of its own, which are options of `dyntrace view`."""
import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple


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
    ".speedscope": Sink("flame", {"format": "speedscope"}, "the same for speedscope.app"),
    ".mmd": Sink("sequence", {}, "a sequence diagram for Mermaid"),
}


# Those of `dyntrace profile`, which has samples and no recording.
PROFILE_FILES = {
    ".html": "a flame graph for the browser",
    ".folded": SINKS[".folded"].what,
    ".json": "a profile for speedscope.app",
    ".speedscope": "the same",
    ".pftrace": SINKS[".pftrace"].what,
}


class Param(NamedTuple):
    """A parameter of a component, and the option that sets it: `words` are all that it may be, `most` makes it an
    integer between `least` and that, else it is a text."""
    option: str
    component: str
    name: str
    metavar: str
    help: str
    words: Tuple[str, ...] = ()
    least: int = 0
    most: int = 0


YES_NO = ("yes", "no")
CONTENTS = "exit reasons and log lines with the shape of binaries, strings and long numbers, or as recorded"

# Those of the components' tables, viewer/*/sink.c, but for what the command sets itself: SET_BY_COMMAND.
PARAMS = [
    Param("--process", "sequence", "processes", "NAME", "a name or pid: all messages of one, those between several"),
    Param("--label", "sequence", "label", "LABEL", "only messages with this label of seq_trace"),
    Param("--from", "sequence", "from", "SECONDS", "only from then on, after the first event"),
    Param("--to", "sequence", "to", "SECONDS", "only until then"),
    Param("--limit", "sequence", "limit", "N", "so many messages and exits", (), 1, 100000),
    Param("--what", "flame", "what", "", "what the time is of", ("calls", "waits")),
    Param("--by", "flame", "by", "", "what a stack starts with", ("process", "initial", "none")),
    Param("--top", "report", "top", "N", "rows per table of the text", (), 1, 2147483647),
    Param("--title", "html", "title", "TEXT", "the page's title"),
    Param("--rows", "html", "processes", "N", "rows of the timeline", (), 1, 10000),
    Param("--intervals", "html", "intervals", "N", "intervals of the timeline", (), 100, 10000000),
    Param("--messages", "html", "messages", "N", "messages of the timeline", (), 0, 1000000),
    Param("--messages", "perfetto", "messages", "", "messages as arrows, and mailboxes", YES_NO),
    Param("--waiting", "perfetto", "waiting", "", "where processes wait", YES_NO),
    Param("--text", "perfetto", "text", "", "texts of messages, arguments and values", YES_NO),
    *(Param("--contents", component, "contents", "", CONTENTS, ("shape", "full"))
      for component in sorted({sink.component for sink in SINKS.values()})),
]
SET_BY_COMMAND = {"path", "format", "clocks"}


def sink_of(output: Optional[str]) -> Tuple[str, Sink]:
    """Returns the extension of the picture that is written to the file, and its sink; without a file the report's."""
    extension = ".txt" if output in (None, "-") else os.path.splitext(str(output))[1]
    return extension, SINKS[extension]


def options_of(component: str) -> List[str]:
    """Returns the options that a kind of picture has."""
    return [param.option for param in PARAMS if param.component == component]


def extensions_of(component: str) -> str:
    """Returns the extensions of a kind of picture."""
    return " ".join(extension for extension, sink in SINKS.items() if sink.component == component)


def described(option: str) -> str:
    """Returns what the option sets, for each kind of picture that has it."""
    kinds: Dict[str, List[str]] = {}
    for param in PARAMS:
        if param.option == option:
            kinds.setdefault(param.help, []).append(extensions_of(param.component))
    return "; ".join(f"{' '.join(extensions)}: {what}" for what, extensions in kinds.items())


def value_of(option: str) -> str:
    """Returns what the option's value may be, for the help."""
    values = [param.metavar or "|".join(param.words) for param in PARAMS if param.option == option]
    return "|".join(dict.fromkeys(values))


def chosen(output: Optional[str], given: Dict[str, List[str]]) -> Dict[str, str]:
    """Returns the parameters of the picture, as the given options set them; raises ValueError with the user's
    mistake."""
    extension, sink = sink_of(output)
    return dict(set_by(option, values, extension, sink) for option, values in given.items())


def set_by(option: str, values: List[str], extension: str, sink: Sink) -> Tuple[str, str]:
    """Returns the parameter that an option sets, and its value."""
    for param in PARAMS:
        if param.option == option and param.component == sink.component:
            if len(values) > 1 and option != "--process":
                raise ValueError(f"{option} is given twice")
            return param.name, checked(param, ",".join(values))
    kinds = " ".join(extensions_of(param.component) for param in PARAMS if param.option == option)
    raise ValueError(f"{option} is for {kinds}; {extension} has {', '.join(options_of(sink.component))}")


def checked(param: Param, text: str) -> str:
    """Returns the value; raises ValueError if it is none of this parameter."""
    if param.words and text not in param.words:
        raise ValueError(f"{param.option}: {text!r} is none of {', '.join(param.words)}")
    if param.most and not (re.fullmatch(r"\d{1,10}", text, re.ASCII) and param.least <= int(text) <= param.most):
        raise ValueError(f"{param.option}: {text!r} is no number from {param.least} to {param.most}")
    if param.metavar == "SECONDS" and not re.fullmatch(r"\d{1,9}(\.\d+)?", text, re.ASCII):
        raise ValueError(f"{param.option}: {text!r} is no number of seconds")
    return text


def written(sink: Sink, name: str, value: str) -> str:
    """Returns the parameter as babeltrace2 reads it: integers bare, all else as a string."""
    is_number = any(param.most for param in PARAMS if (param.component, param.name) == (sink.component, name))
    return f"{name}={value if is_number else quoted(value)}"


def quoted(text: str) -> str:
    """Returns the text as a string of babeltrace2's parameters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
