"""The table of subcommands, and the parser that it makes.

A new subcommand is a row here and a module in `commands`. The row names its function by module and name, so that only
the modules of the subcommand that runs are loaded. The man page and the completion have the same names.
"""
import argparse
import importlib
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dyntrace_command import VERSION
from dyntrace_command.cli import arguments
from dyntrace_command.common.columns import COUNTED, SAMPLED
from dyntrace_command.common.events import ALL, EVENT_GROUPS, OF_ALL, OF_CLUSTER, ON_REQUEST
from dyntrace_command.common.outputs import CONTENTS, PARAMS, PROFILE_FILES, SINKS, chosen, described, value_of
from dyntrace_command.common.relay_address import RELAY_PORT
from dyntrace_command.common.trigger_causes import CAUSES

AT_MOST, KEEP = "10/hour", 20
SNAPSHOTS = "dyntrace-snapshots"

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5"

DESCRIPTION = "Shows what the Erlang nodes of this host do: `dyntrace report` after ten seconds as a page, " \
    "`dyntrace top` live."
STATUSES = "Exit status: 0 success, 1 failed, 2 wrong arguments, 3 not allowed, 4 something is missing on the host, " \
    "5 no such node or it is not ready, 6 no room, 130 interrupted before there was a result."


class Argument(NamedTuple):
    """An argument's names, and its settings for argparse."""
    names: Tuple[str, ...]
    settings: Dict[str, Any]


class Subcommand(NamedTuple):
    """A row: the help, the arguments, and the function as `module.function` in the package `commands`."""
    help: str
    arguments: List[Argument]
    function: str

    def run(self, options: argparse.Namespace) -> Optional[int]:
        """Loads the function's module, calls it, and returns the exit status; None is success."""
        module, function = self.function.split(".")
        loaded = importlib.import_module("dyntrace_command.commands." + module)
        run: Callable[[argparse.Namespace], Optional[int]] = getattr(loaded, function)
        return run(options)


def argument(*names: str, **settings: Any) -> Argument:
    """Returns an argument, written as for argparse."""
    return Argument(names, settings)


def for_seconds(default: Optional[float], what: str) -> Argument:
    """Returns the argument --seconds."""
    return argument("--seconds", type=arguments.seconds, default=default, metavar="N", help=what)


NODE_HELP = "a node's name, the part before @, or its process number; not needed if only one node of the host has " \
    "dyntrace"
NODE = argument("node", nargs="?", metavar="NODE", help=NODE_HELP)
UNPREPARED = argument("node", metavar="NODE", help="a node's name, the part before @, or its process number")


def events(but: str = "") -> Argument:
    """Returns the argument --events of a subcommand whose default leaves out this, too."""
    return argument("--events", type=arguments.event_groups, default=[], metavar="GROUP,...",
                    help=f"record only these: {', '.join(EVENT_GROUPS)}; the default leaves out "
                    f"{', '.join(OF_ALL + ON_REQUEST)}{but}; {ALL} leaves out {', '.join(ON_REQUEST)} alone")


FUNCTIONS = argument("--functions", type=arguments.functions, default=[], metavar="MODULE:FUNCTION/ARITY,...",
                     help="of calls, record only those of these functions, which the node has to trace; without /ARITY "
                     "all arities, with the function _ the whole module")

PICTURES = "; ".join(f"{extension}: {sink.what}" for extension, sink in SINKS.items())
PROFILES = "; ".join(f"{extension}: {what}" for extension, what in PROFILE_FILES.items())
# Options that set parameters of pictures; kinds of pictures may share one.
OF_PICTURES = [argument(option, action="append", metavar=value_of(option), help=described(option))
               for option in dict.fromkeys(param.option for param in PARAMS)]

SUBCOMMANDS = {
    "nodes": Subcommand("the Erlang VMs of this host, and who traces them", [
        argument("--json", action="store_true", help="print JSON")],
        "nodes.show_nodes"),
    "report": Subcommand("record for ten seconds, then write a page with names and findings", [
        NODE,
        for_seconds(10, "how long to record (default: 10)"),
        events(f" and, of a node without other nodes, {', '.join(OF_CLUSTER)} but for the sends"), FUNCTIONS,
        argument("-o", "--output", type=arguments.sink_file, metavar="FILE", help="the page, or another kind of "
                 "picture by the extension; - is the report on the terminal (default: NODE-TIME.html)"),
        argument("--contents", choices=["shape", "full"], default="shape", help=CONTENTS),
        argument("--load", action="store_true", help="load the library into the node before, and unload it after"),
        argument("--keep", metavar="FOLDER", help="keep the recording there")],
        "report.report"),
    "load": Subcommand("load the library into a node that nobody has prepared, while it runs", [UNPREPARED],
                       "load.load"),
    "unload": Subcommand("leave a node as it was before `dyntrace load`", [UNPREPARED], "load.unload"),
    "run": Subcommand("run a shipped bpftrace script on a node; without a script, list them", [
        argument("script", nargs="?", metavar="SCRIPT", help="the script's name, or the path of a file, which has a /; "
                 "the arguments after -- are the script's"),
        NODE,
        for_seconds(None, "end after N seconds (default: at Ctrl-C)")],
        "run.run"),
    "record": Subcommand("record nodes with LTTng into a folder", [
        argument("nodes", nargs="*", metavar="NODE", help=NODE_HELP),
        for_seconds(None, "end after N seconds (default: at Ctrl-C)"),
        argument("--snapshot", action="store_true", help="keep only the latest events, in memory, and write them at "
                 "the end, at Enter and at SIGUSR1"),
        argument("--when", type=arguments.cause, action="append", metavar="CAUSE", help="with --snapshot: write "
                 f"one at each {', '.join(CAUSES)}, mark:NAME or 'EVENT /FILTER/'; may be given again"),
        argument("--at-most", type=arguments.at_most, metavar="N/hour", help="write at most so many snapshots per "
                 f"hour, minute or day (default: {AT_MOST})"),
        argument("--keep", type=arguments.kept, metavar="N", help=f"keep the N latest snapshots (default: {KEEP})"),
        argument("--detach", action="store_true", help="with --when: go on in the background, without this shell"),
        events(), FUNCTIONS,
        argument("--to", type=arguments.relay_url, metavar="URL", help="send it to a `dyntrace relay`, such as "
                 "net://HOST"),
        argument("-o", "--output", metavar="FOLDER", help="where to write it (default: dyntrace-NODE-TIME; with --when "
                 f"{SNAPSHOTS})"),
        argument("--quiet", action="store_true", help="no progress")],
        "record.record"),
    "snapshot": Subcommand("let all flight recorders of this host, and of others by ssh, write now", [
        argument("hosts", nargs="*", type=arguments.host_name, metavar="HOST", help="a further host: the command runs "
                 "there, by ssh"),
        argument("-o", "--output", metavar="FOLDER", help="where to write them, a folder per host; - is a tar on "
                 "standard output (default: dyntrace-snapshot-TIME)"),
        argument("--list", action="store_true", help="list those that a recorder has written by itself, into the "
                 f"folder of -o (default: {SNAPSHOTS})"),
        argument("--ssh", metavar="COMMAND", type=arguments.program, default=os.environ.get("DYNTRACE_SSH", SSH),
                 help=f"the program that runs a command on a host (default: {SSH})")],
        "snapshot.snapshot"),
    "top": Subcommand("the busiest processes, live, each second", [
        NODE,
        for_seconds(None, "end after N seconds (default: at q or Ctrl-C)"),
        argument("--sort", choices=[*SAMPLED, *COUNTED],
                 help="the column to sort by (default: reductions; with --exact, run)"),
        argument("--rows", type=arguments.rows, metavar="N", help="rows (default: the terminal's height, else 20)"),
        argument("--exact", action="store_true", help="count every event instead of taking samples: run time, "
                 "messages, collections. A busy node may lose half of its throughput meanwhile")],
        "top.top"),
    "profile": Subcommand("sample which functions use the CPUs, by process", [
        NODE,
        for_seconds(10, "how long to sample (default: 10). A busy node without +JPperf map loses a tenth of its "
                    "throughput meanwhile, one that mostly exchanges messages up to two thirds"),
        argument("--hz", type=arguments.hertz, default=99, metavar="N", help="samples per second and CPU (default: "
                 "99)"),
        argument("--process", metavar="PROCESS", default="", help="only this one, by its name or pid"),
        argument("-o", "--output", type=arguments.profile_file, metavar="FILE", help=f"{PROFILES} (default: tables on "
                 "the terminal)")],
        "profile.profile"),
    "request": Subcommand("follow one request through processes, as a timeline", [
        NODE,
        argument("label", nargs="?", metavar="LABEL", help="the label of its seq_trace token"),
        argument("--next", type=arguments.function, metavar="MODULE:FUNCTION", help="the next request that calls this "
                 "function, inferred from its messages; the node has to trace the function"),
        for_seconds(60, "how long to wait for it (default: 60)")],
        "request.request"),
    "relay": Subcommand("receive the recordings of other hosts, until Ctrl-C", [
        argument("-o", "--output", metavar="FOLDER", default="dyntrace-relay",
                 help="where to write them (default: dyntrace-relay)"),
        argument("--listen", type=arguments.listen_address, metavar="ADDRESS", default="127.0.0.1",
                 help="the address to listen on (default: 127.0.0.1, this host alone): there is neither encryption nor "
                 "a password"),
        argument("--port", type=arguments.relay_port, metavar="N", default=RELAY_PORT,
                 help=f"the first of three ports (default: {RELAY_PORT})")],
        "relay.relay"),
    "view": Subcommand("make one picture of recordings", [
        argument("folders", nargs="+", metavar="FOLDER", help="a recording, or a folder with some"),
        argument("-o", "--output", type=arguments.sink_file, metavar="FILE", help=f"{PICTURES} (default: the report on "
                 "the terminal)"),
        argument("--no-clock-correction", dest="clock_correction", action="store_false", help="leave the times of "
                 "several hosts as they are recorded"),
        *OF_PICTURES],
        "view.view"),
}


def parser() -> argparse.ArgumentParser:
    """Returns the parser that the table makes."""
    main_parser = argparse.ArgumentParser(prog="dyntrace", description=DESCRIPTION, epilog=STATUSES)
    main_parser.add_argument("--version", action="version", version=f"dyntrace {VERSION}")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    for name, row in SUBCOMMANDS.items():
        sub = commands.add_parser(name, help=row.help, description=row.help[0].upper() + row.help[1:] + ".")
        for names, settings in row.arguments:
            sub.add_argument(*names, **settings)
    return main_parser


def check_when(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks the options of --when, and sets their defaults."""
    if options.when is None:
        if options.at_most or options.keep or options.detach:
            whole.error("record: --at-most, --keep and --detach are for --when")
        return
    if not options.snapshot or options.to:
        whole.error("record: --when is for --snapshot" + (", and not for --to" if options.to else ""))
    options.at_most = options.at_most or arguments.at_most(AT_MOST)
    options.keep = options.keep or KEEP
    options.output = options.output or SNAPSHOTS


def check_snapshot(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks what fits together, and sets the default of --list."""
    if options.hosts and options.output == "-":
        whole.error("snapshot: -o - is for this host alone")
    if options.list:
        if options.hosts or options.output == "-":
            whole.error("snapshot: --list is of a folder of this host")
        options.output = options.output or SNAPSHOTS


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parses the words. The arguments of a script come after --; a single argument of `request` is the label."""
    extra: Sequence[str] = []
    if words[:1] == ["run"] and "--" in words:
        at = words.index("--")
        words, extra = words[:at], words[at + 1:]
    whole = parser()
    options = whole.parse_args(words)
    if options.command == "run":
        options.arguments = extra
    if options.command == "view":
        given = {of.names[0]: getattr(options, of.names[0].strip("-")) for of in OF_PICTURES}
        try:
            options.params = chosen(options.output, {option: values for option, values in given.items() if values})
        except ValueError as mistake:
            whole.error(f"view: {mistake}")
    if options.command == "top" and options.sort not in (None, *(COUNTED if options.exact else SAMPLED)):
        whole.error(f"top: --sort {options.sort} is a column {'without' if options.exact else 'of'} --exact")
    if options.command == "report" and options.load and options.node is None:
        whole.error("report: --load needs NODE")
    if options.command == "snapshot":
        check_snapshot(options, whole)
    if options.command == "record":
        check_when(options, whole)
    if options.command == "request":
        if options.label is None and options.next is None:
            options.node, options.label = None, options.node
        if (options.label is None) == (options.next is None):
            whole.error("request: name a LABEL, or a function: --next MODULE:FUNCTION")
    return options
