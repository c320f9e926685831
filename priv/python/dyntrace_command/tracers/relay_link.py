"""A connection to a relay, which detects that the relay or the network is gone."""
import socket
import time
from typing import Optional

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.common.relay_address import relay_address
from dyntrace_command.host.execution import until


class RelayLink:
    """A connection of this command to the relay, on which nothing is sent. It ends when the relay or the network does.
    LTTng's commands do not detect that, and hang."""

    # Seconds to connect; seconds of idle time before the first keepalive probe; seconds between probes; the number of
    # probes.
    CONNECT, IDLE, BETWEEN, QUESTIONS = 5, 2, 1, 3

    def __init__(self, url: str) -> None:
        address = relay_address(url)
        assert address
        self.host, self.port = address.host, address.control
        self.gone_at: Optional[float] = None
        self.connect(address.data).close()
        self.socket = self.connect(address.control)
        # A tunnel accepts every connection, and closes it if the relay does not listen.
        if until(self.is_gone, 0.5):
            raise self.closed()
        self.began = time.monotonic()

    def closed(self) -> Failure:
        """Returns the failure of a connection that ends at once."""
        return Failure("no_relay", host=self.host, port=self.port, why="the connection was closed at once")

    def connect(self, port: int) -> socket.socket:
        """Returns a connection with keepalive probes."""
        try:
            connected = socket.create_connection((self.host, port), timeout=self.CONNECT)
        except (OSError, UnicodeError) as error:
            raise Failure("no_relay", host=self.host, port=port, why=reason(error)) from None
        for level, option, value in ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, self.IDLE),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, self.BETWEEN),
                                     (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, self.QUESTIONS)):
            connected.setsockopt(level, option, value)
        connected.setblocking(False)
        return connected

    def is_gone(self) -> bool:
        """Returns whether the relay or the network is gone."""
        if self.gone_at is None:
            try:
                gone = self.socket.recv(4096) == b""
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            self.gone_at = time.monotonic() if gone else None
        return self.gone_at is not None

    def lasted(self) -> float:
        """Returns the seconds that the connection has lasted."""
        return (self.gone_at or time.monotonic()) - self.began
