"""The URL of a relay."""
import re
from typing import NamedTuple, Optional

RELAY_PORT = 5342
RELAY_URL = re.compile(r"(?:net|tcp)6?://(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)"
                       r"(?::(?P<control>\d+))?(?::(?P<data>\d+))?/?")


class RelayAddress(NamedTuple):
    """The host and the ports of a relay."""
    host: str
    control: int
    data: int


def relay_address(url: str) -> Optional[RelayAddress]:
    """Returns the address in an LTTng URL, or None if the URL is invalid."""
    found = RELAY_URL.fullmatch(url)
    if not found:
        return None
    ports = int(found.group("control") or RELAY_PORT), int(found.group("data") or RELAY_PORT + 1)
    return RelayAddress(found.group("host").strip("[]"), *ports) if max(ports) <= 65535 else None
