"""Posting spans to a collector."""
import contextlib
import http.server
import json
import os
import tempfile
import threading
import time
import unittest
from typing import Dict, Iterator, List, NamedTuple
from unittest import mock

from dyntrace_command.cli.arguments import otlp_url
from dyntrace_command.common.failures import Failure
from dyntrace_command.recording import otlp_collector
from dyntrace_command.recording.otlp_collector import bodies, headers_of, post


class Answer(NamedTuple):
    """What a collector answers, after so many seconds. `drips`: it sends this again and again instead. `reads`: whether
    it reads the request before."""
    status: int = 200
    body: bytes = b"{}"
    after_s: float = 0
    drips: bytes = b""
    reads: bool = True


class Collector(http.server.HTTPServer):
    """A collector on loopback that gives these answers, the last one again and again, and keeps the requests."""
    def __init__(self, answers: List[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.bodies: List[bytes] = []
        self.headers: List[Dict[str, str]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request."""
    server: Collector

    def do_POST(self) -> None:  # pylint: disable=invalid-name
        """The name is that of the library."""
        answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        if answer.reads:
            self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(dict(self.headers))
        time.sleep(answer.after_s)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while answer.drips:
                self.wfile.write(answer.drips)
                time.sleep(0.01)
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:  # pylint: disable=arguments-differ
        """Prints nothing."""


@contextlib.contextmanager
def collector(*answers: Answer) -> Iterator[Collector]:
    """Yields a collector that runs."""
    with Collector(list(answers)) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def spans_file(*lines: int) -> Iterator[str]:
    """Yields a file of the plugin's form with so many spans in each line."""
    spans = [",".join(['{"traceId":"1","spanId":"2","parentSpanId":"3"}'] * number) for number in lines]
    parts = ['{"resource":{},"scopeSpans":[{"spans":[' + text + "]}]}" for text in spans]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.otlp.json")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"resourceSpans":[\n' + "\n,".join(parts) + ("\n" if parts else "") + "]}\n")
        yield path


def url_of(server: Collector) -> str:
    """Returns the collector's URL for traces."""
    return otlp_url(f"http://127.0.0.1:{server.server_port}")


class Posting(unittest.TestCase):
    """Requests, and answers other than success."""

    def test_bounded(self) -> None:
        """Requests have at most as many lines as fit; together they are the file."""
        with spans_file(1, 2, 3, 4) as path, mock.patch.object(otlp_collector, "BODY_MOST", 400):
            found = list(bodies(path))
            with open(path, encoding="ascii") as file:
                whole = json.load(file)["resourceSpans"]
        self.assertEqual([3, 3, 4], [spans for _, spans in found])
        self.assertEqual(whole, [part for body, _ in found for part in json.loads(body)["resourceSpans"]])

    def test_sent(self) -> None:
        """All spans arrive, with the headers of the environment; without spans, no request is sent."""
        with spans_file(1, 2) as path, collector(Answer(202, b"")) as server, \
                mock.patch.object(otlp_collector, "BODY_MOST", 1), \
                mock.patch.dict(os.environ, {otlp_collector.HEADERS: "authorization=Bearer%20x"}):
            self.assertEqual((3, 2, 0, ""), post(path, url_of(server)))
            self.assertEqual([("Bearer x", "application/json")] * 2,
                             [(one["authorization"], one["Content-Type"]) for one in server.headers])
            with spans_file() as empty:
                self.assertEqual((0, 0, 0, ""), post(empty, url_of(server)))
            self.assertEqual(2, len(server.bodies))

    def test_partial(self) -> None:
        """Rejected spans are counted, and the last message is kept."""
        partial = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too \\u001b old"}}'
        with spans_file(3, 3) as path, collector(Answer(200, partial), Answer()) as server, \
                mock.patch.object(otlp_collector, "BODY_MOST", 1):
            self.assertEqual((4, 2, 2, "too \\x1b old"), post(path, url_of(server)))

    def test_impossible_numbers(self) -> None:
        """A collector can reject no more spans than it got, and not fewer than 0."""
        for number, expected in [("-5", (3, 1, 0, "")), ("7", (0, 1, 3, ""))]:
            answer = Answer(200, b'{"partialSuccess":{"rejectedSpans":%s}}' % number.encode())
            with spans_file(3) as path, collector(answer) as server:
                self.assertEqual(expected, post(path, url_of(server)))

    def test_refused(self) -> None:
        """A failure names the URL, the reason, and how many spans were sent before."""
        late = "/v1/traces: no answer within 0.1 s; 3"
        for answer, expected in [
                (Answer(400, b'{"code":3,"message":"bad \\u001b one"}'), "answered 400 Bad Request: bad \\x1b one; 3 "),
                (Answer(503, b"full\nof it"), "answered 503 Service Unavailable: full of it; 3 spans were sent before"),
                (Answer(301, b""), "answered 301 Moved Permanently; 3"),
                (Answer(200, b"<html>"), "answered something other than OTLP; 3"),
                (Answer(200, b'{"partialSuccess":17}'), "answered something other than OTLP; 3"),
                (Answer(200, b"[]"), "answered something other than OTLP; 3"),
                (Answer(200, b"[" * 60000), "answered something other than OTLP; 3"),
                (Answer(200, b'{"partialSuccess":{"rejectedSpans":1e999}}'), "answered something other than OTLP; 3"),
                (Answer(500, b"[" * 60000), "answered 500 Internal Server Error: [[[["),
                (Answer(200, b"{}", 0.5), late),
                (Answer(drips=b"HTTP/1.1 100 Continue\r\n\r\n"), late),
                (Answer(drips=b" "), late)]:
            with spans_file(3, 1) as path, collector(Answer(), answer) as server, \
                    mock.patch.object(otlp_collector, "BODY_MOST", 1), \
                    mock.patch.object(otlp_collector, "TIMEOUT_S", 0.1):
                with self.assertRaises(Failure) as raised:
                    post(path, url_of(server))
                self.assertIn(expected, str(raised.exception.text))
                self.assertIn(url_of(server), raised.exception.text)

    def test_refused_early(self) -> None:
        """A collector answers, and closes the connection, before it has read a large request."""
        with spans_file(200000) as path, collector(Answer(413, b"too large", reads=False)) as server:
            with self.assertRaises(Failure) as raised:
                post(path, url_of(server))
        self.assertIn("answered 413 Request Entity Too Large: too large; 0 spans", raised.exception.text)

    def test_no_collector(self) -> None:
        """No program listens on the port."""
        with collector(Answer()) as server:
            url = url_of(server)
        with spans_file(1) as path, self.assertRaises(Failure) as raised:
            post(path, url)
        self.assertIn("Connection refused; 0 spans were sent before", raised.exception.text)
        with spans_file(1) as path, self.assertRaises(Failure) as raised:
            post(path, otlp_url("http://shop..example"))
        self.assertIn("invalid host name; 0 spans were sent before", raised.exception.text)


class Arguments(unittest.TestCase):
    """The URL and the headers."""

    def test_urls(self) -> None:
        """The path of traces is added once."""
        for text, expected in [("http://h:4318", "http://h:4318/v1/traces"),
                               ("http://h:4318/", "http://h:4318/v1/traces"),
                               ("https://h/a/v1/traces", "https://h/a/v1/traces"),
                               ("http://[::1]:4318/a/", "http://[::1]:4318/a/v1/traces")]:
            self.assertEqual(expected, otlp_url(text))
        for text in ["", "h:4318", "ftp://h", "http://", "http://h:0", "http://h:65536", "http://u:p@h", "http://h/?a",
                     "http://h/a b", "http://h\n"]:
            with self.assertRaisesRegex(Exception, "invalid URL", msg=text):
                otlp_url(text)

    def test_headers(self) -> None:
        """Percent-encoded values; a line break could add a header."""
        self.assertEqual({"a": "b c", "x-d": "e=f"}, headers_of("a=b%20c, x-d=e=f,"))
        for text in ["a", "a b=c", "a=b%0d%0ac", "=b"]:
            with self.assertRaises(Failure, msg=text):
                headers_of(text)


if __name__ == "__main__":
    unittest.main()
