"""The tools: each runs a subcommand that only looks at nodes, in a child process, and returns its JSON.

A tool offers some of the subcommand's arguments: none that writes files, loads code into a node, or has a report show
the contents of messages. Input schemas are made from the table of subcommands; output schemas are those of --json.
"""
import collections
import json
import re
from typing import Any, Callable, Counter, Dict, List, NamedTuple, Tuple

from dyntrace_command.cli import arguments
from dyntrace_command.cli.subcommands import SUBCOMMANDS, Argument
from dyntrace_command.common.columns import SAMPLED
from dyntrace_command.common.json_output import ROWS_LEFT_OUT, schema
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.execution import NO_ANSWER, READ, Program, run
from dyntrace_command.host.tools import own_program

# Seconds in addition to the tool's own: bpftrace takes some to attach, babeltrace2 to read a recording.
MORE_S = 90
# The objects of a list in a result: the first number with which the result has at most RESULT_MOST characters.
LISTED_MOST, RESULT_MOST = (50, 20, 10, 5, 2), 60000
# Characters of the command's messages.
MESSAGES_MOST = 4000
# Characters of a text among the arguments, and texts of a list.
TEXT_MOST, TEXTS_MOST = 1000, 20

Schema = Dict[str, Any]


class Tool(NamedTuple):
    """The subcommand and its fixed options; the arguments on offer; default and maximum of --seconds; the effect on the
    node; overrides of the argument schemas and of the description; whether it only looks at nodes."""
    words: Tuple[str, ...]
    offered: Tuple[str, ...]
    seconds: Tuple[int, int]
    effect: str
    changed: Dict[str, Schema] = {}
    what: str = ""
    only_looks: bool = True

    @property
    def prints_lines(self) -> bool:
        """Returns whether the command prints JSON Lines."""
        return self.words == ("top",)


LOOKS = "It reads files and the memory of processes, and changes nothing in a node."
TRACES = "It loads no code into the node; the dyntrace application must be running there, and traces during the " \
    "call."

TOOLS = {
    "nodes": Tool(("nodes",), (), (0, 0), LOOKS),
    "stacks": Tool(("stacks",), ("node", "--process"), (0, 0), LOOKS),
    "profile": Tool(("profile",), ("node", "--seconds", "--hz", "--process", "--wall"), (5, 60),
                    "It samples the node from outside, and changes nothing in it."),
    "top": Tool(("top",), ("node", "--seconds", "--sort", "--rows", "--own"), (3, 40), TRACES,
                {"--sort": {"enum": [*SAMPLED], "description": "the column to sort by (default: reductions)"},
                 "--rows": {"description": "number of processes (default: 20)"}}, only_looks=False),
    "report": Tool(("report",), ("nodes", "--seconds"), (10, 60), TRACES,
                   what="record nodes for some seconds; the report has findings and tables", only_looks=False),
    "request": Tool(("request",), ("node", "label", "--next", "--seconds"), (30, 300),
                    TRACES + " The result contains texts of messages.", only_looks=False),
    "compare": Tool(("compare",), ("before", "after"), (0, 0), "It reads files."),
    "snapshot_list": Tool(("snapshot", "--list"), ("--output",), (0, 0), "It reads the folders of recorders.",
                          {"--output": {"description": "the folder of a recorder to look into; nothing is written"}},
                          "list the snapshots of flight recorders"),
}

TEXT = {"type": "string", "maxLength": TEXT_MOST}
# Schemas of the values that are not texts, by what checks them on the command line.
SCHEMAS: Dict[Any, Schema] = {
    arguments.seconds: {"type": "number", "exclusiveMinimum": 0},
    arguments.rows: {"type": "integer", "minimum": 1, "maximum": 9999},
    arguments.hertz: {"type": "integer", "minimum": 1, "maximum": 1000}}
# The Python types of values.
TYPES: Dict[str, Tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list,)}


class InvalidArguments(Exception):
    """The arguments of a tool do not conform to its schema."""


# -- Schemas ---------------------------------------------------------------------------------------------------------

def arguments_of(tool: Tool) -> Dict[str, Argument]:
    """Returns the arguments that a tool offers, by the names of their properties."""
    found = {of.names[-1]: of for of in SUBCOMMANDS[tool.words[0]].arguments}
    return {name.strip("-"): found[name] for name in tool.offered}


def schema_of(tool: Tool, of: Argument) -> Schema:
    """Returns the schema of an argument."""
    found = dict(SCHEMAS.get(of.settings.get("type"), TEXT), description=of.settings["help"])
    if of.settings.get("action") == "store_true":
        found = {"type": "boolean", "description": of.settings["help"]}
    elif of.settings.get("nargs") == "*":
        found = {"type": "array", "items": TEXT, "maxItems": TEXTS_MOST, "description": of.settings["help"]}
    elif of.names[-1] == "--seconds":
        default, most = tool.seconds
        found.update(maximum=most, default=default, description=f"for how many seconds (default: {default})")
    return {**found, **tool.changed.get(of.names[-1], {})}


def input_schema(tool: Tool) -> Schema:
    """Returns the schema of a tool's arguments."""
    found = arguments_of(tool)
    required = [name for name, of in found.items() if of.names[0] == name and "nargs" not in of.settings]
    return {"type": "object", "properties": {name: schema_of(tool, of) for name, of in found.items()},
            "required": required, "additionalProperties": False}


def output_schema(tool: Tool) -> Schema:
    """Returns the schema of a tool's result. The lines of `top` are a list."""
    found = {key: value for key, value in schema(tool.words[0]).items() if key != "$schema"}
    if tool.prints_lines:
        found = {"type": "object", "properties": {"frames": {"type": "array", "items": found}}, "required": ["frames"]}
    if "oneOf" in found:
        return {**found, "oneOf": [with_rows_left_out(one) for one in found["oneOf"]]}
    return with_rows_left_out(found)


def with_rows_left_out(of: Schema) -> Schema:
    """Returns the schema of an object whose lists may be shortened."""
    return {**of, "properties": {**of["properties"], ROWS_LEFT_OUT: {
        "type": "object", "additionalProperties": {"type": "integer"},
        "description": "how many rows at the end of each list are left out, if any are"}}}


def descriptions() -> List[Dict[str, Any]]:
    """Returns the tools as `tools/list` sends them."""
    return [{"name": name,
             "description": f"{tool.what or SUBCOMMANDS[tool.words[0]].help}. {tool.effect}",
             "inputSchema": input_schema(tool), "outputSchema": output_schema(tool),
             "annotations": {"readOnlyHint": tool.only_looks, "openWorldHint": False}} for name, tool in TOOLS.items()]


# -- Calls -----------------------------------------------------------------------------------------------------------

def command_line(tool: Tool, given: Any) -> List[str]:
    """Returns the words of the command; raises InvalidArguments. No value is taken for an option."""
    schemas, found = input_schema(tool), arguments_of(tool)
    if not isinstance(given, dict):
        raise InvalidArguments("the arguments are not an object")
    if "nodes" in found and "node" in given and "nodes" not in given:
        # As the other tools call it.
        given = {**{name: value for name, value in given.items() if name != "node"}, "nodes": [given["node"]]}
    for name in schemas["required"]:
        if name not in given:
            raise InvalidArguments(f"{name} is missing")
    if tool.words == ("request",) and ("label" in given) == ("next" in given):
        raise InvalidArguments("give either label or next")
    options, operands = [*tool.words, "--json"], []
    if tool.seconds[0]:
        given = {"seconds": tool.seconds[0], **given}
    for name, value in given.items():
        if name not in found:
            raise InvalidArguments(f"unknown argument {clean(str(name))}, must be one of {', '.join(found) or 'none'}")
        check(name, value, schemas["properties"][name])
        if found[name].names[0] == name:
            operands.append((list(found).index(name), value if isinstance(value, list) else [value]))
        elif not isinstance(value, bool):
            options.append(f"--{name}={value}")
        elif value:
            options.append(f"--{name}")
    return options + (["--", *(word for _, words in sorted(operands) for word in words)] if operands else [])


def check(name: str, value: Any, wanted: Schema) -> None:
    """Raises InvalidArguments if the value does not conform to this schema of an argument."""
    kind = wanted.get("type", "string")
    is_of_type = isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not is_of_type or value not in wanted.get("enum", [value]):
        raise InvalidArguments(f"{name} must be {'one of ' + ', '.join(wanted['enum']) if 'enum' in wanted else kind}")
    if kind in ("number", "integer") and not wanted.get("minimum", 0) <= value <= wanted["maximum"]:
        raise InvalidArguments(f"{name} must be between {wanted.get('minimum', 0)} and {wanted['maximum']}")
    if kind == "string" and (len(value) > TEXT_MOST or re.search("[\0\ud800-\udfff]", value)):
        raise InvalidArguments(f"{name} is too long, or contains a NUL or a surrogate")
    for item in value if kind == "array" else []:
        check(name, item, TEXT)


def call(tool: Tool, given: Any, is_cancelled: Callable[[], bool]) -> Dict[str, Any]:
    """Runs the command and returns its result as `tools/call` sends it."""
    try:
        words = command_line(tool, given)
    except InvalidArguments as error:
        return failed(str(error))
    seconds = given.get("seconds", tool.seconds[0]) + MORE_S
    done = run(Program([*own_program(), *words]), seconds, errors=READ, give_up=is_cancelled)
    messages = clean(done.errors[:MESSAGES_MOST].replace("\n", " / "))
    if done.status == NO_ANSWER:
        return failed(f"the command was stopped because it did not finish within {seconds:g} s. {messages}")
    try:
        if not done.output.strip():
            raise ValueError("no output")
        lines = [json.loads(line) for line in done.output.splitlines()] if tool.prints_lines \
            else [json.loads(done.output)]
    except ValueError:
        return failed(f"the command exited with status {done.status} and returned no result. {messages}")
    if done.status and "error" in lines[-1]:
        return failed(json.dumps(lines[-1]))
    return result({"frames": lines} if tool.prints_lines else lines[0], messages)


def failed(text: str) -> Dict[str, Any]:
    """Returns the result of a command that has failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def result(document: Dict[str, Any], messages: str) -> Dict[str, Any]:
    """Returns a result of bounded size. A second text has the command's messages."""
    for most in LISTED_MOST:
        left_out: Counter[str] = collections.Counter()
        cut = first(document, most, "", left_out)
        if left_out:
            cut = {ROWS_LEFT_OUT: dict(left_out), **cut}
        text = json.dumps(cut)
        if len(text) <= RESULT_MOST:
            break
    else:
        return failed(f"the result has more than {RESULT_MOST} characters; ask for less, such as a single process")
    return {"content": [{"type": "text", "text": part} for part in (text, messages) if part],
            "structuredContent": cut, "isError": False}


def first(value: Any, most: int, path: str, left_out: "Counter[str]") -> Any:
    """Returns a value with at most so many objects in each list; counts those that are left out."""
    if isinstance(value, dict):
        return {key: first(of, most, f"{path}.{key}" if path else key, left_out) for key, of in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > most and isinstance(value[0], dict):
        left_out[path] += len(value) - most
        value = value[:most]
    return [first(of, most, path, left_out) for of in value]
