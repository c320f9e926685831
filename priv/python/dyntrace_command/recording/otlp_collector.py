"""Posts spans to a collector of OpenTelemetry: OTLP over HTTP, in JSON.

The plugin writes a request whose lines are parts of it (viewer/otlp/otlp_writer.h). They are sent in requests of about
BODY_MOST bytes, so neither this command nor the collector holds the whole recording in memory.
"""
import contextlib
import http.client
import json
import os
import re
import socket
import threading
from typing import Dict, Iterator, List, NamedTuple, Tuple
from urllib.parse import unquote, urlsplit

from dyntrace_command.common.failures import Failure
from dyntrace_command.common.terminal import clean
from dyntrace_command.host.files import MB

BODY_MOST, ANSWER_MOST, SHOWN_MOST = MB, MB // 16, 300
TIMEOUT_S = 10
# The environment variable of OpenTelemetry's exporters: NAME=VALUE,... with percent-encoded values.
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"

BEGIN, END = b'{"resourceSpans":[', b"]}"
PART, SPAN = b'{"resource":', b'"spanId":'


class Sent(NamedTuple):
    """What the collector has accepted, what it has rejected, and its last message about that."""
    spans: int = 0
    requests: int = 0
    rejected: int = 0
    message: str = ""


def bodies(path: str) -> Iterator[Tuple[bytes, int]]:
    """Yields the requests, each with the number of its spans."""
    parts: List[bytes] = []
    size = spans = 0
    with open(path, "rb") as file:
        for line in file:
            part = line.strip().lstrip(b",")
            if not part.startswith(PART):
                continue
            if parts and size + len(part) > BODY_MOST:
                yield BEGIN + b",".join(parts) + END, spans
                parts, size, spans = [], 0, 0
            parts.append(part)
            size += len(part)
            # In texts, quotes are escaped as \u0022.
            spans += part.count(SPAN)
    if parts:
        yield BEGIN + b",".join(parts) + END, spans


def headers_of(text: str) -> Dict[str, str]:
    """Returns the headers in the value of the environment variable; raises Failure if it is not valid."""
    headers = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, value = pair.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not re.fullmatch(r"[\w-]+", name, re.ASCII) or not re.fullmatch(r"[\x20-\x7e]*", value):
            raise Failure("otlp_headers", variable=HEADERS)
        headers[name] = value
    return headers


def post(path: str, url: str) -> Sent:
    """Posts the spans of a file; raises Failure if the collector does not accept a request."""
    headers = {**headers_of(os.environ.get(HEADERS, "")), "Content-Type": "application/json"}
    sent = Sent()
    for body, spans in bodies(path):
        rejected, message = accepted(url, headers, body, spans, sent)
        sent = Sent(sent.spans + spans - rejected, sent.requests + 1, sent.rejected + rejected, message or sent.message)
    return sent


def accepted(url: str, headers: Dict[str, str], body: bytes, spans: int, before: Sent) -> Tuple[int, str]:
    """Posts a request with so many spans. Returns the number of rejected spans, and the collector's message."""
    status, reason, answer = answer_to(url, headers, body, before)
    if status // 100 != 2:
        text = message_of(answer)
        raise Failure("otlp_status", url=url, answer=clean(f"{status} {reason}" + (f": {text}" if text else "")),
                      sent=before.spans)
    try:
        partial = json.loads(answer.decode() or "{}").get("partialSuccess") or {}
        rejected = max(0, min(spans, int(partial.get("rejectedSpans", 0))))
        return rejected, clean(str(partial.get("errorMessage", "")))[:SHOWN_MOST]
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        raise Failure("otlp_status", url=url, answer="something other than OTLP", sent=before.spans) from None


def answer_to(url: str, headers: Dict[str, str], body: bytes, before: Sent) -> Tuple[int, str, bytes]:
    """Returns status, reason and body of the answer to a request."""
    place = urlsplit(url)
    make = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    connection = make(place.hostname or "", place.port, timeout=TIMEOUT_S)
    is_late = threading.Event()
    late = f"no answer within {TIMEOUT_S} s"
    try:
        connection.connect()
        # A collector may refuse a request before it has read all of it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", place.path, body, headers)
        with shut_down_later(connection.sock, is_late):
            answer = connection.getresponse()
            found = answer.status, answer.reason, answer.read(ANSWER_MOST)
        if not is_late.is_set():
            return found
        why = late
    except socket.timeout:
        why = late
    except http.client.HTTPException as error:
        why = late if is_late.is_set() else f"it does not speak HTTP ({type(error).__name__})"
    except OSError as error:
        why = late if is_late.is_set() else error.strerror or str(error)
    except UnicodeError:
        why = "invalid host name"
    finally:
        connection.close()
    raise Failure("otlp_refused", url=url, why=clean(why), sent=before.spans)


@contextlib.contextmanager
def shut_down_later(connected: socket.socket, is_late: threading.Event) -> Iterator[None]:
    """Shuts the connection down after TIMEOUT_S: the timeout of a socket begins again with each byte."""
    def shut_down() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)
    timer = threading.Timer(TIMEOUT_S, shut_down)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def message_of(answer: bytes) -> str:
    """Returns what a refusing collector says: the message of a google.rpc.Status, or a text."""
    text = answer.decode("utf-8", "replace")
    try:
        text = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return " ".join(text.split())[:SHOWN_MOST]
