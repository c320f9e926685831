"""The output formats, by the extension of the file. A component of the plugin for babeltrace2 writes each format; its
parameters are options of `dyntrace view`."""
import os
import re
from typing import Container, Dict, List, NamedTuple, Optional, Tuple


class Sink(NamedTuple):
    """The component `sink.dyntrace.<component>`, its parameters, and a description of its output."""
    component: str
    params: Dict[str, str]
    what: str


PARQUET = ".parquet"
SINKS = {
    ".html": Sink("html", {}, "a page for the browser"),
    ".pftrace": Sink("perfetto", {}, "a trace for ui.perfetto.dev"),
    ".txt": Sink("report", {}, "the report"),
    ".json": Sink("report", {"format": "json"}, "the report as JSON"),
    ".folded": Sink("flame", {}, "stacks for flame graphs"),
    ".speedscope.json": Sink("flame", {"format": "speedscope"}, "the same for speedscope.app"),
    ".otlp.json": Sink("otlp", {}, "spans for OpenTelemetry"),
    ".mmd": Sink("sequence", {}, "a sequence diagram for Mermaid"),
    ".jsonl": Sink("rows", {}, "flat rows for databases"),
    PARQUET: Sink("rows", {}, "the same rows, converted by DuckDB"),
}

# The file of the spans that `dyntrace view --otlp` sends, an example of a collector's URL, and the path for traces.
OTLP_FILE, OTLP_URL, OTLP_PATH = "spans.otlp.json", "http://localhost:4318", "/v1/traces"

# The formats of `dyntrace profile`, which works on samples, not on a recording.
PROFILE_FILES = {
    ".html": "a flame graph for the browser",
    ".folded": SINKS[".folded"].what,
    ".speedscope.json": SINKS[".speedscope.json"].what,
    ".pftrace": SINKS[".pftrace"].what,
    ".pb.gz": "a profile for pprof, with files and lines",
}


def extension_of(name: str, extensions: Container[str]) -> str:
    """Returns which of these extensions a file name has: `.speedscope.json` rather than `.json`; "" if it has none."""
    base, last = os.path.splitext(name)
    return next((found for found in (os.path.splitext(base)[1] + last, last) if found in extensions), "")


class Param(NamedTuple):
    """A parameter of a component, and the option that sets it. Its value is one of `words`; without them, an integer
    from `least` to `most`; without both, a text."""
    option: str
    component: str
    name: str
    metavar: str
    help: str
    words: Tuple[str, ...] = ()
    least: int = 0
    most: int = 0


YES_NO = ("yes", "no")
CONTENTS = "exit reasons and log lines with only the shape of binaries, strings and long numbers, or as recorded"

# The parameters of the components, viewer/*/*_sink.c, except those that the command sets itself: SET_BY_COMMAND.
PARAMS = [
    Param("--process", "sequence", "processes", "NAME", "a name or pid: all messages of one, or those between several"),
    Param("--label", "sequence", "label", "LABEL", "only messages with this seq_trace label"),
    Param("--from", "sequence", "from", "SECONDS", "start this long after the first event"),
    Param("--to", "sequence", "to", "SECONDS", "end this long after the first event"),
    Param("--limit", "sequence", "limit", "N", "at most N messages and exits", (), 1, 100000),
    Param("--what", "flame", "what", "", "whether times are of calls or of waits", ("calls", "waits")),
    Param("--by", "flame", "by", "", "the root of each stack", ("process", "initial", "none")),
    Param("--top", "report", "top", "N", "rows per table", (), 1, 2147483647),
    Param("--width", "report", "width", "N", "columns of the tables; 0: the terminal's", (), 0, 2147483647),
    Param("--title", "html", "title", "TEXT", "title of the page"),
    Param("--rows", "html", "processes", "N", "maximum number of rows in the timeline", (), 1, 10000),
    Param("--intervals", "html", "intervals", "N", "maximum number of intervals in the timeline", (), 100, 10000000),
    Param("--messages", "html", "messages", "N", "maximum number of messages in the timeline", (), 0, 1000000),
    Param("--messages", "perfetto", "messages", "", "show messages as arrows, and mailboxes", YES_NO),
    Param("--waiting", "perfetto", "waiting", "", "show where processes wait", YES_NO),
    Param("--recording", "rows", "recording", "NAME", "the column `recording` (default: the folders)"),
    Param("--release", "rows", "release", "VERSION", "the column `release`: what the nodes ran"),
    Param("--text", "perfetto", "text", "", "show texts of messages, arguments and values", YES_NO),
    *(Param("--contents", component, "contents", "", CONTENTS, ("shape", "full"))
      for component in sorted({sink.component for sink in SINKS.values()})),
]
SET_BY_COMMAND = {"path", "format", "report", "clocks", "ended", "stacks", "snapshots"}


def sink_of(output: Optional[str]) -> Tuple[str, Sink]:
    """Returns the extension of the output file and its sink; without a file, those of the report."""
    extension = ".txt" if output in (None, "-") else extension_of(str(output), SINKS)
    return extension, SINKS[extension]


def options_of(component: str) -> List[str]:
    """Returns the options of an output format."""
    return [param.option for param in PARAMS if param.component == component]


def extensions_of(component: str) -> str:
    """Returns the extensions of an output format."""
    return " ".join(extension for extension, sink in SINKS.items() if sink.component == component)


def described(option: str) -> str:
    """Returns the help text of an option, for each output format that has it."""
    kinds: Dict[str, List[str]] = {}
    for param in PARAMS:
        if param.option == option:
            kinds.setdefault(param.help, []).append(extensions_of(param.component))
    return "; ".join(f"{' '.join(extensions)}: {what}" for what, extensions in kinds.items())


def value_of(option: str) -> str:
    """Returns the placeholder for the option's value in the help text."""
    values = [param.metavar or "|".join(param.words) for param in PARAMS if param.option == option]
    return "|".join(dict.fromkeys(values))


def words_of(option: str) -> List[str]:
    """Returns the words among which the option's value is, for each output format that has it."""
    return list(dict.fromkeys(word for param in PARAMS if param.option == option for word in param.words))


def chosen(output: Optional[str], given: Dict[str, List[str]]) -> Dict[str, str]:
    """Returns the parameters that the given options set; raises ValueError with a message about a wrong option."""
    extension, sink = sink_of(output)
    return dict(set_by(option, values, extension, sink) for option, values in given.items())


def set_by(option: str, values: List[str], extension: str, sink: Sink) -> Tuple[str, str]:
    """Returns the name of the parameter that an option sets, and its value."""
    for param in PARAMS:
        if param.option == option and param.component == sink.component:
            if len(values) > 1 and option != "--process":
                raise ValueError(f"{option} is given twice")
            return param.name, checked(param, ",".join(values))
    kinds = " ".join(extensions_of(param.component) for param in PARAMS if param.option == option)
    raise ValueError(f"{option} is for {kinds}; {extension} has {', '.join(options_of(sink.component))}")


def checked(param: Param, text: str) -> str:
    """Returns the value; raises ValueError if it is not valid for this parameter."""
    if param.words and text not in param.words:
        raise ValueError(f"{param.option}: {text!r} must be one of {', '.join(param.words)}")
    if param.most and not (re.fullmatch(r"\d{1,10}", text, re.ASCII) and param.least <= int(text) <= param.most):
        raise ValueError(f"{param.option}: {text!r} must be a number from {param.least} to {param.most}")
    if param.metavar == "SECONDS" and not re.fullmatch(r"\d{1,9}(\.\d+)?", text, re.ASCII):
        raise ValueError(f"{param.option}: invalid number of seconds: {text!r}")
    return text


def arguments_of(sink: Sink, params: Dict[str, str]) -> List[str]:
    """Returns the arguments of babeltrace2 for an output with these parameters."""
    texts = [written(sink, name, value) for name, value in {**sink.params, **params}.items()]
    return [f"--component=sink.dyntrace.{sink.component}", "--params=" + ",".join(texts)]


def written(sink: Sink, name: str, value: str) -> str:
    """Returns the parameter in the syntax of babeltrace2: integers bare, other values as strings."""
    is_number = any(param.most for param in PARAMS if (param.component, param.name) == (sink.component, name))
    return f"{name}={value if is_number else quoted(value)}"


def quoted(text: str) -> str:
    """Returns the text as a string in babeltrace2's parameter syntax."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
