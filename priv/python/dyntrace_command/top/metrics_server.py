"""The HTTP server of `dyntrace top --openmetrics --listen`. It serves one request after the other, each for a limited
time, so a client cannot tie up memory or threads."""
import contextlib
import http.server
import ipaddress
import socket
import socketserver
import threading
import time
from typing import Any, Callable, Dict, Tuple, Union

from dyntrace_command.common.failures import Failure, reason
from dyntrace_command.top.metrics import OPENMETRICS, PLAIN

# Seconds that a request may take.
REQUEST_S = 5
# Seconds after which a sample is too old to serve: the node may hang.
STALE_S = 15


# The address and the port to listen on.
Endpoint = Tuple[Union[ipaddress.IPv4Address, ipaddress.IPv6Address], int]


def url(endpoint: Endpoint) -> str:
    """Returns the URL of the metrics."""
    address, port = endpoint
    return f"http://{f'[{address}]' if address.version == 6 else address}:{port}/metrics"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the latest metrics."""

    server: "MetricsServer"

    def setup(self) -> None:
        """Limits the time of the request."""
        super().setup()
        self.limit = threading.Timer(REQUEST_S, self.end)
        self.limit.daemon = True
        self.limit.start()

    def end(self) -> None:
        """Ends a request that takes too long."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """The request has ended."""
        self.limit.cancel()
        super().finish()

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        """Clients that do not ask for OpenMetrics get the older format."""
        is_openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
        text = self.server.texts.get(is_openmetrics)
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "not found; the metrics are at /metrics")
        elif text is None or time.monotonic() - self.server.updated > STALE_S:
            self.send_error(503, "no recent sample")
        else:
            data = text.encode("utf-8", "replace")
            self.send_response(200)
            self.send_header("Content-Type", OPENMETRICS if is_openmetrics else PLAIN)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:  # pylint: disable=arguments-differ
        """Requests are not logged."""


class MetricsServer(http.server.HTTPServer):
    """Listens; raises Failure if it can't. `texts`: the latest metrics, by whether they are OpenMetrics."""

    def __init__(self, endpoint: Endpoint) -> None:
        address, port = endpoint
        self.address_family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        self.texts: Dict[bool, str] = {}
        self.updated = 0.0
        try:
            super().__init__((str(address), port), Handler)
        except OSError as error:
            raise Failure("not_listening", address=address, port=port, why=reason(error)) from None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self) -> None:
        """Does not look up the name of the host, which may take long."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, *_: Any) -> None:
        """A client may close its connection at any time."""

    def update(self, text: Callable[[bool], str]) -> None:
        """Replaces the metrics."""
        self.texts = {kind: text(kind) for kind in (False, True)}
        self.updated = time.monotonic()
