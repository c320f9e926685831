"""Values on the command line. Each function checks one kind: it is the `type` of arguments in the table."""
import argparse
import contextlib
import os
import re
import shlex
from typing import TYPE_CHECKING, List, Union

from dyntrace_command.common import trigger_causes
from dyntrace_command.common.events import ALL, EVENT_GROUPS
from dyntrace_command.common.functions import ANY, Function, parsed
from dyntrace_command.common.outputs import PROFILE_FILES, SINKS
from dyntrace_command.common.relay_address import relay_address
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
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def rows(text: str) -> int:
    """Checks --rows."""
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def kept(text: str) -> int:
    """Checks --keep."""
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of snapshots")
    return int(text)


def function(text: str) -> str:
    """Checks --next."""
    found = parsed(text)
    if found is None or found.name == ANY or "/" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODULE:FUNCTION")
    return found.show()


def functions(text: str) -> List[Function]:
    """Checks --functions."""
    found = [(word, parsed(word)) for word in text.split(",")]
    wrong = [word for word, of in found if of is None]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not MODULE:FUNCTION/ARITY")
    return [of for _, of in found if of is not None]


def event_groups(text: str) -> List[str]:
    """Checks --events."""
    chosen = text.split(",")
    wrong = [group for group in chosen if group not in (ALL, *EVENT_GROUPS)]
    if wrong:
        raise argparse.ArgumentTypeError(f"no group {wrong[0]!r}: there are {ALL}, {', '.join(EVENT_GROUPS)}")
    return chosen


def cause(text: str) -> trigger_causes.Cause:
    """Checks --when."""
    found = trigger_causes.parsed(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(trigger_causes.CAUSES)}, mark:NAME, EVENT, "
                                         "'EVENT /FILTER/'")
    return found


def at_most(text: str) -> AtMost:
    """Checks --at-most."""
    found = re.fullmatch(r"([1-9]\d{0,3})/(\w+)", text, re.ASCII)
    if not found or found.group(2) not in SPANS:
        raise argparse.ArgumentTypeError(f"{text!r} is not N/hour, N/minute or N/day")
    return AtMost(int(found.group(1)), SPANS[found.group(2)])


def sink_file(name: str) -> str:
    """Checks -o of a picture."""
    if name != "-" and os.path.splitext(name)[1] not in SINKS:
        raise argparse.ArgumentTypeError(f"{name!r}: the name must end in one of {' '.join(SINKS)}")
    return name


def profile_file(name: str) -> str:
    """Checks -o of a profile."""
    if os.path.splitext(name)[1] not in PROFILE_FILES:
        raise argparse.ArgumentTypeError(f"{name!r}: the name must end in one of {' '.join(PROFILE_FILES)}")
    return name


def hertz(text: str) -> int:
    """Checks --hz. More would be felt by the node."""
    if not re.fullmatch(r"[1-9]\d{0,3}", text) or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


def host_name(text: str) -> str:
    """Checks HOST, which must not look like an option of ssh, and names a folder."""
    if not re.fullmatch(r"(?:\w[\w.-]*@)?[\w\[][\w.:\[\]-]*", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a host")
    return text


def program(text: str) -> List[str]:
    """Checks --ssh: a program and its arguments, as a shell splits them."""
    with contextlib.suppress(ValueError):
        words = shlex.split(text)
        if words:
            return words
    raise argparse.ArgumentTypeError(f"{text!r} is no program with arguments")


def listen_address(text: str) -> "Union[ipaddress.IPv4Address, ipaddress.IPv6Address]":
    """Checks --listen. The module is loaded here, since one subcommand of nine needs it."""
    import ipaddress  # pylint: disable=import-outside-toplevel
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.strip("[]"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no address of IP, such as 10.0.0.5") from None


def relay_port(text: str) -> int:
    """Checks --port; two more ports follow it."""
    if not re.fullmatch(r"[1-9]\d{0,4}", text) or int(text) > 65533:
        raise argparse.ArgumentTypeError(f"{text!r} is no port between 1 and 65533")
    return int(text)


def relay_url(text: str) -> str:
    """Checks --to, a URL of LTTng."""
    if relay_address(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no URL of a relay, such as net://HOST or net://HOST:5342:5343")
    return text
