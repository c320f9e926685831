"""Values on the command line. Each function checks one kind, as the `type` of arguments in the table of subcommands."""
import argparse
import contextlib
import re
import shlex
from typing import TYPE_CHECKING, List, Tuple, Union

from dyntrace_command.common import trigger_causes
from dyntrace_command.common.events import ALL, EVENT_GROUPS
from dyntrace_command.common.functions import ANY, Function, parsed
from dyntrace_command.common.outputs import OTLP_PATH, OTLP_URL, PROFILE_FILES, SINKS, extension_of
from dyntrace_command.common.relay_address import relay_address
from dyntrace_command.common.trigger_levels import examples
from dyntrace_command.common.trigger_rate import SPANS, AtMost

if TYPE_CHECKING:
    import ipaddress


def seconds(text: str) -> float:
    """Checks --seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 10**6:
        raise argparse.ArgumentTypeError(f"invalid number of seconds: {text!r}")
    return value


def number_of(what: str, text: str) -> int:
    """Checks a number from 1 to 9999."""
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"invalid number of {what}: {text!r}")
    return int(text)


def rows(text: str) -> int:
    """Checks --rows."""
    return number_of("rows", text)


def snapshot_count(text: str) -> int:
    """Checks --keep."""
    return number_of("snapshots", text)


def function(text: str) -> Function:
    """Checks --next."""
    found = parsed(text)
    if found is None or found.name == ANY:
        raise argparse.ArgumentTypeError(f"invalid function: {text!r}, must be MODULE:FUNCTION/ARITY")
    return found


def functions(text: str) -> List[Function]:
    """Checks --functions."""
    found = [(word, parsed(word)) for word in text.split(",")]
    wrong = [word for word, of in found if of is None]
    if wrong:
        raise argparse.ArgumentTypeError(f"invalid function: {wrong[0]!r}, must be MODULE:FUNCTION/ARITY")
    return [of for _, of in found if of is not None]


def event_groups(text: str) -> List[str]:
    """Checks --events."""
    chosen = text.split(",")
    wrong = [group for group in chosen if group not in (ALL, *EVENT_GROUPS)]
    if wrong:
        raise argparse.ArgumentTypeError(f"invalid group: {wrong[0]!r}, must be one of {ALL}, "
                                         f"{', '.join(EVENT_GROUPS)}")
    return chosen


def cause(text: str) -> trigger_causes.Cause:
    """Checks --when."""
    try:
        found = trigger_causes.parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"invalid cause: {text!r}: {error}") from error
    if found is None:
        raise argparse.ArgumentTypeError(f"invalid cause: {text!r}, must be one of {', '.join(trigger_causes.CAUSES)}, "
                                         "mark:NAME, 'call:MODULE:FUNCTION/ARITY > Nms', EVENT, 'EVENT /FILTER/', "
                                         f"{', '.join(examples())}")
    return found


def at_most(text: str) -> AtMost:
    """Checks --at-most."""
    found = re.fullmatch(r"([1-9]\d{0,3})/(\w+)", text, re.ASCII)
    if not found or found.group(2) not in SPANS:
        raise argparse.ArgumentTypeError(f"invalid rate: {text!r}, must be N/hour, N/minute or N/day")
    return AtMost(int(found.group(1)), SPANS[found.group(2)])


def sink_file(name: str) -> str:
    """Checks -o of `dyntrace view` and `report`."""
    if name != "-" and not extension_of(name, SINKS):
        raise argparse.ArgumentTypeError(f"invalid file name: {name!r}, must end in one of {' '.join(SINKS)}")
    return name


def page_file(name: str) -> str:
    """Checks -o of `dyntrace compare`."""
    if not name.endswith(".html"):
        raise argparse.ArgumentTypeError(f"invalid file name: {name!r}, must end in .html")
    return name


def profile_file(name: str) -> str:
    """Checks -o of `dyntrace profile`."""
    if not extension_of(name, PROFILE_FILES):
        raise argparse.ArgumentTypeError(f"invalid file name: {name!r}, must end in one of {' '.join(PROFILE_FILES)}")
    return name


def hertz(text: str) -> int:
    """Checks --hz. A higher rate would slow the node down."""
    if not re.fullmatch(r"[1-9]\d{0,3}", text) or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"invalid rate: {text!r}, must be a number from 1 to 1000")
    return int(text)


def host_name(text: str) -> str:
    """Checks HOST. It must not look like an option of ssh, and is also the name of a folder."""
    if not re.fullmatch(r"(?:\w[\w.-]*@)?[\w\[][\w.:\[\]-]*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"invalid host name: {text!r}; -o names a folder" if "/" in text
                                         else f"invalid host name: {text!r}")
    return text


def program(text: str) -> List[str]:
    """Checks --ssh: a program and its arguments, split as a shell does."""
    with contextlib.suppress(ValueError):
        words = shlex.split(text)
        if words:
            return words
    raise argparse.ArgumentTypeError(f"invalid command: {text!r}")


def listen_address(text: str) -> "Union[ipaddress.IPv4Address, ipaddress.IPv6Address]":
    """Checks --listen. The module is loaded here because only one subcommand needs it."""
    import ipaddress  # pylint: disable=import-outside-toplevel
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.strip("[]"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid IP address: {text!r}") from None


def listen_endpoint(text: str) -> "Tuple[Union[ipaddress.IPv4Address, ipaddress.IPv6Address], int]":
    """Checks --listen of `dyntrace top`. Without an address, it is that of this host only."""
    address, _, port = text.rpartition(":")
    if not re.fullmatch(r"[1-9]\d{0,4}", port, re.ASCII) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"invalid port: {port!r}, must be like 127.0.0.1:9568")
    return listen_address(address or "localhost"), int(port)


def otlp_url(text: str) -> str:
    """Checks --otlp, and returns the URL for traces. It has no name and password, which other users would see."""
    found = re.fullmatch(r"https?://(?:\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::([1-9]\d{0,4}))?(?:/[\w./~%-]*)?", text, re.ASCII)
    if not found or int(found.group(1) or 1) > 65535:
        raise argparse.ArgumentTypeError(f"invalid URL: {text!r}, must be like {OTLP_URL}")
    base = text.rstrip("/")
    return base if base.endswith(OTLP_PATH) else base + OTLP_PATH


def relay_port(text: str) -> int:
    """Checks --port, the first of three ports."""
    if not re.fullmatch(r"[1-9]\d{0,4}", text) or int(text) > 65533:
        raise argparse.ArgumentTypeError(f"invalid port: {text!r}, must be between 1 and 65533")
    return int(text)


def relay_url(text: str) -> str:
    """Checks --to, a URL of LTTng."""
    if relay_address(text) is None:
        raise argparse.ArgumentTypeError(f"invalid relay URL: {text!r}, must be like net://HOST or "
                                         "net://HOST:5342:5343")
    return text
