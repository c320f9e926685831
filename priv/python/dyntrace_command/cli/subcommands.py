"""The table of subcommands, and the parser built from it.

A new subcommand needs a row here and a module in `commands`. The row names the function as text, so that only the
modules of the subcommand that runs are loaded. tools/from_parser makes the man page and the completion from it.
"""
import argparse
import importlib
import os
import sys
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from dyntrace_command.cli import arguments
from dyntrace_command.common.columns import COUNTED, SAMPLED
from dyntrace_command.common.events import ALL, EVENT_GROUPS, OF_ALL, OF_CLUSTER, ON_REQUEST
from dyntrace_command.common.failures import STATUSES, WRONG_ARGUMENTS
from dyntrace_command.common.json_output import put_error
from dyntrace_command.common.outputs import (CONTENTS, OTLP_FILE, OTLP_URL, PARAMS, PROFILE_FILES, SINKS, chosen,
                                             described, value_of, words_of)
from dyntrace_command.common.relay_address import RELAY_PORT
from dyntrace_command.common.trigger_causes import CAUSES, END
from dyntrace_command.host.tools import own_version

AT_MOST, KEEP = "10/hour", 20
# The default folder of flight recorders, and the one in which each recorder of systemd has a folder.
SNAPSHOTS, OF_SERVICES = "dyntrace-snapshots", "/var/lib/dyntrace"

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5"

DESCRIPTION = "Shows what the Erlang nodes of this host do. `dyntrace report` records for ten seconds and writes a " \
    "page, `dyntrace top` shows the busiest processes live."
STATUS_HELP = f"Exit status: {', '.join(f'{status} {what}' for status, (what, _) in STATUSES.items())}."


class Argument(NamedTuple):
    """The names of an argument, its settings for argparse, and words that the completion offers beside `choices`."""
    names: Tuple[str, ...]
    settings: Dict[str, Any]
    words: Tuple[str, ...]


class Subcommand(NamedTuple):
    """A row: help text, arguments, and the function as `module.function` in a package."""
    help: str
    arguments: List[Argument]
    function: str
    package: str = "commands"

    def run(self, options: argparse.Namespace) -> Optional[int]:
        """Loads the module, calls the function, and returns the exit status; None is success."""
        module, function = self.function.split(".")
        loaded = importlib.import_module(f"dyntrace_command.{self.package}.{module}")
        run: Callable[[argparse.Namespace], Optional[int]] = getattr(loaded, function)
        return run(options)


def argument(*names: str, words: Sequence[str] = (), **settings: Any) -> Argument:
    """Returns an argument; takes the parameters of argparse's `add_argument`."""
    return Argument(names, settings, tuple(words))


def for_seconds(default: Optional[float], what: str) -> Argument:
    """Returns the argument --seconds."""
    return argument("--seconds", type=arguments.seconds, default=default, metavar="N", help=what)


NODE_HELP = "the node's name, the part of it before the @, or its process number; not needed if only one node of " \
    "the host has dyntrace"
NODE = argument("node", nargs="?", metavar="NODE", help=NODE_HELP)
NODES = argument("nodes", nargs="*", metavar="NODE", help=NODE_HELP)
JSON = argument("--json", action="store_true", help="print JSON (docs/json.md)")
UNPREPARED = argument("node", metavar="NODE", help="the node's name, the part of it before the @, or its "
                      "process number")


def events(but: str = "") -> Argument:
    """Returns the argument --events; `but` names what else the subcommand's default leaves out."""
    return argument("--events", type=arguments.event_groups, default=[], words=(ALL, *EVENT_GROUPS),
                    metavar="GROUP,...",
                    help=f"record only these groups: {', '.join(EVENT_GROUPS)}; the default leaves out "
                    f"{', '.join(OF_ALL + ON_REQUEST)}{but}; {ALL} leaves out only {', '.join(ON_REQUEST)}")


FUNCTIONS = argument("--functions", type=arguments.functions, default=[], metavar="MODULE:FUNCTION/ARITY,...",
                     help="record only the calls of these functions, which the node has to trace; without /ARITY all "
                     "arities, with _ as FUNCTION the whole module")

PICTURES = "; ".join(f"{extension}: {sink.what}" for extension, sink in SINKS.items())
PROFILES = "; ".join(f"{extension}: {what}" for extension, what in PROFILE_FILES.items())
# Options that set parameters of output formats. Several formats may have the same option.
OF_PICTURES = [argument(option, action="append", words=words_of(option), metavar=value_of(option),
                        help=described(option))
               for option in dict.fromkeys(param.option for param in PARAMS)]

SUBCOMMANDS = {
    "nodes": Subcommand("list the Erlang VMs of this host, and their consumers", [
        JSON],
        "nodes.show_nodes"),
    "report": Subcommand("record for ten seconds, then write a page with findings", [
        NODES,
        for_seconds(10, "how long to record (default: 10)"),
        events(f" and, if the node is not connected to others, {', '.join(OF_CLUSTER)} except the sends"), FUNCTIONS,
        argument("-o", "--output", type=arguments.sink_file, metavar="FILE", help="the output file, whose "
                 "extension selects the format; - prints the report on the terminal (default: NODE-TIME.html)"),
        argument("--full", action="store_true", help="trace processes all the time; by default, and without --events "
                 "or --functions, tracing pauses when it has cost 5 %% of the CPU time that the node uses"),
        argument("--contents", choices=["shape", "full"], default="shape", help=CONTENTS),
        argument("--load", action="store_true", help="load the library into the nodes first, and unload it at the end"),
        argument("--keep", metavar="FOLDER", help="keep the recording in this folder"),
        argument("--json", action="store_true", help="print the report as JSON, instead of writing a file")],
        "report.report"),
    "load": Subcommand("load the library into a running node that does not have it", [UNPREPARED],
                       "load.load"),
    "unload": Subcommand("undo `dyntrace load`", [UNPREPARED], "load.unload"),
    "run": Subcommand("run a bpftrace script on a node; without a script, list the shipped ones", [
        argument("script", nargs="?", metavar="SCRIPT", help="the name of a shipped script, or the path of a file, "
                 "which has a /; arguments after -- are passed to the script"),
        NODE,
        for_seconds(None, "end after N seconds (default: at Ctrl-C)"),
        argument("--json", action="store_true", help="print the scripts as JSON; of a running script, a line of JSON "
                 "for each message of bpftrace")],
        "run.run"),
    "record": Subcommand("record nodes with LTTng into a folder", [
        NODES,
        for_seconds(None, "end after N seconds (default: at Ctrl-C)"),
        argument("--snapshot", action="store_true", help="keep only the latest events, in memory; write them at the "
                 "end, on Enter and on SIGUSR1"),
        argument("--when", type=arguments.cause, action="append", words=(*CAUSES, "mark:", "call:"), metavar="CAUSE",
                 help=f"with --snapshot: write a snapshot at each {', '.join(CAUSES)}, mark:NAME, 'EVENT /FILTER/', "
                 "after a long call of a function that the node traces, such as 'call:shop_cart:add/2 > 500ms', or "
                 f"when a level lasts, such as 'queue > 10000 for 5s'; may be repeated. {END} is always included"),
        argument("--at-most", type=arguments.at_most, metavar="N/hour", help="write at most N snapshots per hour, "
                 f"minute or day (default: {AT_MOST})"),
        argument("--keep", type=arguments.snapshot_count, metavar="N",
                 help=f"keep the N latest snapshots (default: {KEEP})"),
        argument("--detach", action="store_true", help="with --when: continue in the background, and write "
                 "messages to recorder.log in the folder"),
        argument("--full", action="store_true", help="with --snapshot: trace processes all the time, which costs "
                 "more. Without --full, --events and --functions, the recorder keeps samples, counters, logs and "
                 "events of the VM, and traces processes for some seconds after each cause"),
        events(), FUNCTIONS,
        argument("--to", type=arguments.relay_url, metavar="URL", help="send the recording to a `dyntrace "
                 "relay`, such as net://HOST or net://HOST:5342:5343"),
        argument("-o", "--output", metavar="FOLDER", help="where to write (default: dyntrace-NODE-TIME; with --when "
                 f"{SNAPSHOTS})"),
        argument("--quiet", action="store_true", help="show no progress")],
        "record.record"),
    "snapshot": Subcommand("collect a snapshot from each flight recorder of this host, and of others by ssh", [
        argument("hosts", nargs="*", type=arguments.host_name, metavar="HOST", help="another host, on which the "
                 "command runs by ssh"),
        argument("-o", "--output", metavar="FOLDER", help="where to write them, one folder per host; - writes a tar "
                 "archive to standard output (default: dyntrace-snapshot-TIME)"),
        argument("--list", action="store_true", help="list the snapshots that a recorder with a cause has written "
                 f"into the folder of -o (default: {SNAPSHOTS} or, if there is none, the folders in {OF_SERVICES})"),
        argument("--ssh", metavar="COMMAND", type=arguments.program, default=os.environ.get("DYNTRACE_SSH", SSH),
                 help=f"the program that runs a command on another host (default: {SSH})"),
        argument("--json", action="store_true", help="with --list: print JSON")],
        "snapshot.snapshot"),
    "top": Subcommand("show the busiest processes live, each second", [
        NODE,
        for_seconds(None, "end after N seconds (default: at q or Ctrl-C)"),
        argument("--sort", choices=[*SAMPLED, *COUNTED],
                 help="the column to sort by (default: reductions; with --exact, run)"),
        argument("--rows", type=arguments.rows, metavar="N", help="number of rows (default: the terminal's, else 20)"),
        argument("--exact", action="store_true", help="count every event instead of sampling: run time, messages, "
                 "garbage collections. A busy node may lose half of its throughput during that time"),
        argument("--own", action="store_true", help="also show the processes of dyntrace"),
        argument("--json", action="store_true", help="print a line of JSON each second"),
        argument("--openmetrics", action="store_true", help="print one sample in OpenMetrics format and exit"),
        argument("--listen", type=arguments.listen_endpoint, metavar="ADDRESS:PORT", help="with --openmetrics: serve "
                 "the latest sample by HTTP, for Prometheus. With an address of the network instead of 127.0.0.1, "
                 "anyone who can connect to it can read the names and the load of processes")],
        "top.top"),
    "profile": Subcommand("sample which functions use the CPUs, per process", [
        NODE,
        for_seconds(10, "how long to sample (default: 10)"),
        argument("--hz", type=arguments.hertz, default=99, metavar="N", help="samples per second and CPU, at most "
                 "1000 (default: 99)"),
        argument("--process", metavar="PROCESS", default="", help="only this process, by name or pid"),
        argument("--wall", action="store_true", help="sample all processes, including those that wait, up to four "
                 "times per second"),
        argument("--compare", metavar="FILE", help="also show how the shares of functions differ from those of an "
                 "earlier profile, written with `-o NAME.folded`"),
        argument("-o", "--output", type=arguments.profile_file, metavar="FILE", help=f"{PROFILES} (default: print "
                 "tables on the terminal)"),
        JSON],
        "profile.profile"),
    "stacks": Subcommand("print the stacks of all processes and schedulers; works on a node that hangs", [
        UNPREPARED,
        argument("--process", metavar="PROCESS", default="", help="only this process, by name or pid, with its whole "
                 "stack"),
        JSON],
        "stacks.stacks"),
    "request": Subcommand("follow one request through processes, as a timeline", [
        NODE,
        argument("label", nargs="?", metavar="LABEL", help="the label of its seq_trace token"),
        argument("--next", type=arguments.function, metavar="MODULE:FUNCTION/ARITY", help="follow the next "
                 "request that calls this function, inferred from its messages; the node has to trace the function; "
                 "without /ARITY all arities"),
        for_seconds(60, "how long to wait for the request (default: 60)"),
        JSON],
        "request.request"),
    "relay": Subcommand("receive the recordings of other hosts, until Ctrl-C", [
        argument("-o", "--output", metavar="FOLDER", default="dyntrace-relay",
                 help="where to write the recordings (default: dyntrace-relay)"),
        argument("--listen", type=arguments.listen_address, metavar="ADDRESS", default="127.0.0.1",
                 help="the address to listen on (default: 127.0.0.1, only this host); connections are neither "
                 "encrypted nor authenticated"),
        argument("--port", type=arguments.relay_port, metavar="N", default=RELAY_PORT,
                 help=f"the first of three consecutive ports (default: {RELAY_PORT})")],
        "relay.relay"),
    "view": Subcommand("convert recordings to one report, page or trace", [
        argument("folders", nargs="+", metavar="FOLDER", help="a recording, or a folder that contains recordings"),
        argument("-o", "--output", type=arguments.sink_file, metavar="FILE", help=f"{PICTURES} (default: print the "
                 "report on the terminal)"),
        argument("--no-clock-correction", dest="clock_correction", action="store_false", help="do not correct the "
                 "clocks of several hosts"),
        argument("--json", action="store_true", help="print the report as JSON"),
        argument("--otlp", type=arguments.otlp_url, metavar="URL", help="send spans to a collector of "
                 f"OpenTelemetry, such as {OTLP_URL}, instead of writing a file"),
        *OF_PICTURES],
        "view.view"),
    "compare": Subcommand("show what differs between two recordings or reports by more than noise", [
        argument("before", metavar="BEFORE", help="a recording, or a report as JSON (`-o NAME.json`)"),
        argument("after", metavar="AFTER", help="another one"),
        argument("-o", "--output", type=arguments.page_file, metavar="FILE", help=".html: also write a page with both "
                 "side by side"),
        JSON],
        "compare.compare"),
    "mcp": Subcommand("serve commands as tools for AI assistants (Model Context Protocol on standard input "
                      "and output)", [], "server.serve", "mcp"),
}


class Parser(argparse.ArgumentParser):
    """A parser that reports wrong arguments as JSON, too, if --json is among them."""

    def error(self, message: str) -> NoReturn:
        if "--json" in sys.argv:
            put_error(WRONG_ARGUMENTS, "wrong_arguments", message, f"`{self.prog} --help` lists the arguments")
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Returns a parser for the table."""
    main_parser = Parser(prog="dyntrace", description=DESCRIPTION, epilog=STATUS_HELP)
    main_parser.add_argument("--version", action="version", version=f"dyntrace {own_version()}")
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    for name, row in SUBCOMMANDS.items():
        sub = commands.add_parser(name, help=row.help, description=row.help[0].upper() + row.help[1:] + ".")
        for of in row.arguments:
            sub.add_argument(*of.names, **of.settings)
    return main_parser


def check_report(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks what is loaded, and that the report goes to one place."""
    if options.load and not options.nodes:
        whole.error("report: --load requires NODE")
    check_json(options, whole)


def check_json(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks that a report goes to one place."""
    if options.json and options.output:
        whole.error(f"{options.command}: --json excludes -o; `-o FILE.json` writes the same into a file")


def check_compare(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks that the comparison goes to one place."""
    if options.json and options.output:
        whole.error("compare: --json excludes -o")


def check_view(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Sets the parameters of the output format."""
    check_json(options, whole)
    if options.otlp and (options.json or options.output):
        whole.error("view: --otlp excludes --json and -o; `-o FILE.otlp.json` writes the same into a file")
    given = {of.names[0]: getattr(options, of.names[0].strip("-")) for of in OF_PICTURES}
    try:
        options.params = chosen(OTLP_FILE if options.otlp else options.output,
                                {option: values for option, values in given.items() if values})
    except ValueError as mistake:
        whole.error(f"view: {mistake}")


def check_top(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks that the frames have the column to sort by, and how they are shown."""
    if options.openmetrics and (options.exact or options.json):
        whole.error("top: --openmetrics excludes --exact and --json")
    if options.listen and not options.openmetrics:
        whole.error("top: --listen requires --openmetrics")
    if options.sort not in (None, *(COUNTED if options.exact else SAMPLED)):
        whole.error(f"top: --sort {options.sort} works only {'without' if options.exact else 'with'} --exact")


def check_profile(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks which arguments are given together."""
    if options.wall and (options.process or options.compare):
        whole.error("profile: --wall takes neither --process nor --compare")


def check_request(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks what selects the request: a single argument is the label."""
    if options.label is None and options.next is None:
        options.node, options.label = None, options.node
    if (options.label is None) == (options.next is None):
        whole.error("request: give either a LABEL or --next MODULE:FUNCTION/ARITY")


def check_record(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks the options that go with --when, and sets their defaults."""
    if options.full and not options.snapshot:
        whole.error("record: --full requires --snapshot")
    if options.when is None:
        if options.at_most or options.keep or options.detach:
            whole.error("record: --at-most, --keep and --detach require --when")
        return
    if not options.snapshot or options.to:
        whole.error("record: --when requires --snapshot" + (", and excludes --to" if options.to else ""))
    options.at_most = options.at_most or arguments.at_most(AT_MOST)
    options.keep = options.keep or KEEP
    options.output = options.output or SNAPSHOTS


def snapshot_folders(default: str, of_services: str) -> List[str]:
    """Returns the default folder or, if it does not exist, those of the recorders that systemd has started."""
    if not os.path.isdir(default) and os.path.isdir(of_services):
        return [os.path.join(of_services, name) for name in sorted(os.listdir(of_services))] or [default]
    return [default]


def check_snapshot(options: argparse.Namespace, whole: argparse.ArgumentParser) -> None:
    """Checks which arguments are given together, and sets the folders of --list."""
    if options.hosts and options.output == "-":
        whole.error("snapshot: -o - works only without HOST")
    if options.json and not options.list:
        whole.error("snapshot: --json requires --list")
    if options.list:
        if options.hosts or options.output == "-":
            whole.error("snapshot: --list takes neither HOST nor -o -; it lists the folder of -o: `dyntrace snapshot "
                        f"--list -o {options.hosts[0] if options.hosts else 'FOLDER'}`")
        options.folders = [options.output] if options.output else snapshot_folders(SNAPSHOTS, OF_SERVICES)


CHECKS = {"compare": check_compare, "profile": check_profile, "record": check_record, "report": check_report,
          "request": check_request, "snapshot": check_snapshot, "top": check_top, "view": check_view}


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parses the command line. Arguments of a script follow --."""
    extra: Sequence[str] = []
    if words[:1] == ["run"] and "--" in words:
        at = words.index("--")
        words, extra = words[:at], words[at + 1:]
    whole = parser()
    options = whole.parse_args(words)
    if options.command == "run":
        options.arguments = extra
    if options.command in CHECKS:
        CHECKS[options.command](options, whole)
    return options
