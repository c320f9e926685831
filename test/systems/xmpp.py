#!/usr/bin/python3
"""A client of ejabberd: xmpp.py RESOURCE [option=number...]

Opens connections of `alice` and `bob`, with resources of that name and a number. Prints `ready`, and then each alice
sends to the bob with her number until standard input has a line or ends. Then prints its counts, as lines
`name number`.

    pairs=N    connections of each of the two (3)
    rate=N     messages per second and pair (10)
    count=N    ends after that many messages of each pair (0: no end)
    storm=1    no messages, but connections that read the greeting and close, at that rate (0)
"""
import base64
import contextlib
import socket
import ssl
import sys
import threading
import time

from load import Load

ADDRESS = ("127.0.0.1", 5222)
DRAIN_S = 60
TIMEOUT_S = 60
OPEN = (b"<stream:stream to='localhost' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        b"version='1.0'>")
TLS = b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
AUTH = b"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>%s</auth>"
BIND = b"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>%s</resource></bind></iq>"
MESSAGE = b"<message to='bob@localhost/%s' type='chat' id='%d'><body>message %d</body></message>"


class Stream:
    """A stream of XMPP."""

    def __init__(self, user, resource):
        self.socket = socket.create_connection(ADDRESS, TIMEOUT_S)
        self.buffer = b""
        self.ask(OPEN, b"</stream:features>")
        self.ask(TLS, b"<proceed")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)
        self.ask(OPEN, b"</stream:features>")
        self.ask(AUTH % base64.b64encode(b"\0%s\0secret" % user), b"<success")
        self.ask(OPEN, b"</stream:features>")
        self.ask(BIND % resource, b"</iq>")
        self.ask(b"<presence/>", b"<presence")

    def ask(self, request, answer):
        """Sends, and reads until the answer has arrived."""
        self.socket.sendall(request)
        self.buffer = b""
        while answer not in self.buffer:
            self.read()

    def read(self):
        """Reads the data that has arrived."""
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data

    def close(self):
        """Ends the stream. If unread data were left, the last message could be lost with the connection."""
        self.socket.settimeout(TIMEOUT_S)
        self.socket.sendall(b"</stream:stream>")
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(65536):
                pass
        self.socket.close()


class Pairs(Load):
    """Senders, each with a receiver."""

    def __init__(self, name, arguments):
        super().__init__({"pairs": 3, "rate": 10, "count": 0, "storm": 0}, arguments)
        self.resources = [b"%s%d" % (name.encode(), number) for number in range(self.options["pairs"])]
        self.opened = threading.Barrier(2 * len(self.resources) + 1)

    def connect(self, user, resource):
        """Returns an open stream."""
        self.count("connections")
        return Stream(user, resource)

    def visit(self):
        """Opens a stream, and closes it."""
        self.count("connections")
        with socket.create_connection(ADDRESS, TIMEOUT_S) as visitor:
            visitor.sendall(OPEN)
            while b"</stream:features>" not in visitor.recv(65536):
                pass

    def send(self, resource):
        """Sends at the rate."""
        stream = self.connect(b"alice", resource)
        self.opened.wait()
        due, sent = time.monotonic(), 0
        while not self.stopped.wait(max(0, due - time.monotonic())):
            due += 1 / self.options["rate"]
            if self.options["storm"]:
                self.visit()
                continue
            sent += 1
            stream.socket.sendall(MESSAGE % (resource, sent, sent))
            self.count("sent")
            if sent == self.options["count"]:
                break
        self.ended.wait()
        stream.close()

    def receive(self, resource):
        """Counts the messages."""
        stream = self.connect(b"bob", resource)
        self.opened.wait()
        stream.buffer = b""
        stream.socket.settimeout(0.1)
        while not self.ended.is_set():
            try:
                stream.read()
            except socket.timeout:
                continue
            # The last message may be incomplete.
            whole = stream.buffer.split(b"</message>")
            self.count("delivered", len(whole) - 1)
            stream.buffer = whole[-1]
        stream.close()

    def work(self):
        """Runs the pairs. All messages are received at the end."""
        threads = [self.start(target, resource) for resource in self.resources for target in (self.send, self.receive)]
        self.opened.wait()
        self.ready()
        if not self.options["count"]:
            sys.stdin.readline()
            self.stopped.set()
        deadline = time.monotonic() + DRAIN_S
        wanted = self.options["pairs"] * self.options["count"]
        while (self.counted("sent") < wanted or self.counted("delivered") < self.counted("sent")) \
                and time.monotonic() < deadline:
            time.sleep(0.01)
        self.ended.set()
        for thread in threads:
            thread.join()
        self.finish()


Pairs(sys.argv[1], sys.argv[2:]).work()
