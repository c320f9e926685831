#!/usr/bin/python3
"""A client of ejabberd: xmpp.py RESOURCE [option=number...]

Opens connections of `alice` and `bob`, with resources of that name and a number. Prints `ready`, and lets each alice
send to the bob with her number until a line or the end of its standard input. Prints what it has counted then, as
lines `name number`.

    pairs=N    connections of each of the two (3)
    rate=N     messages per second and pair (10)
    count=N    ends after so many messages of each pair (0: no end)
    storm=1    each message by a new connection (0)
"""
import base64
import os
import socket
import ssl
import sys
import threading
import time
import traceback

DEFAULTS = {"pairs": 3, "rate": 10, "count": 0, "storm": 0}
DRAIN_S = 60
TIMEOUT_S = 60
OPEN = (b"<stream:stream to='localhost' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        b"version='1.0'>")
TLS = b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
AUTH = b"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>%s</auth>"
BIND = b"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>%s</resource></bind></iq>"
MESSAGE = b"<message to='bob@localhost/%s' type='chat' id='%d'><body>message %d</body></message>"

options = {**DEFAULTS, **{name: int(value) for name, value in (option.split("=") for option in sys.argv[2:])}}
stopped, ended = threading.Event(), threading.Event()
lock = threading.Lock()
counts = {"sent": 0, "delivered": 0, "connections": 0}


def count(name, by=1):
    """Counts some more."""
    with lock:
        counts[name] += by


class Connection:
    """A stream of XMPP."""

    def __init__(self, user, resource):
        count("connections")
        self.socket = socket.create_connection(("127.0.0.1", 5222), TIMEOUT_S)
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
        self.ask(b"<presence/>", b"</presence>", b"/>")

    def ask(self, request, *answers):
        """Sends, and reads until an answer has come."""
        self.socket.sendall(request)
        self.buffer = b""
        while not any(answer in self.buffer for answer in answers):
            self.read()

    def read(self):
        """Reads what has come."""
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data

    def close(self):
        """Ends the stream."""
        self.socket.sendall(b"</stream:stream>")
        self.socket.close()


def send(resource, opened):
    """Sends at the rate."""
    connection = Connection(b"alice", resource)
    opened.wait()
    due, sent = time.monotonic(), 0
    while not stopped.wait(max(0, due - time.monotonic())):
        if options["storm"]:
            connection.close()
            connection = Connection(b"alice", resource)
        sent += 1
        connection.socket.sendall(MESSAGE % (resource, sent, sent))
        count("sent")
        if sent == options["count"]:
            break
        due += 1 / options["rate"]
    ended.wait()
    connection.close()


def receive(resource, opened):
    """Counts the messages."""
    connection = Connection(b"bob", resource)
    opened.wait()
    connection.buffer = b""
    connection.socket.settimeout(0.1)
    while not ended.is_set():
        try:
            connection.read()
        except socket.timeout:
            continue
        # The last one may be here in part.
        whole = connection.buffer.split(b"</message>")
        count("delivered", len(whole) - 1)
        connection.buffer = whole[-1]
    connection.close()


def run(target, *arguments):
    """Runs a thread; its failure ends the program."""
    try:
        target(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main():
    """Runs the clients until the end of the input."""
    opened = threading.Barrier(2 * options["pairs"] + 1)
    threads = [threading.Thread(target=run, args=(target, b"%s%d" % (sys.argv[1].encode(), n), opened))
               for n in range(options["pairs"]) for target in (send, receive)]
    for thread in threads:
        thread.start()
    opened.wait()
    print("ready", flush=True)
    if not options["count"]:
        sys.stdin.readline()
        stopped.set()
    deadline = time.monotonic() + DRAIN_S
    wanted = options["pairs"] * options["count"]
    while (counts["sent"] < wanted or counts["delivered"] < counts["sent"]) and time.monotonic() < deadline:
        time.sleep(0.01)
    ended.set()
    for thread in threads:
        thread.join()
    for name, number in counts.items():
        print(name, number)
    print("end", flush=True)


main()
