#!/usr/bin/python3
"""A client of RabbitMQ: amqp.py QUEUE [option=number...]

Declares the queue, prints `ready` when all its connections are open, and publishes until standard input has a line or
ends. Then prints its counts, as lines `name number`.

    producers=N    connections that publish, and wait for the confirmation of each message (1)
    consumers=N    connections that consume and acknowledge (1)
    rate=N         messages per second and producer (50)
    count=N        ends after that many messages of each producer (0: no end)
    storm=1        a new connection for each message (0)
    work=N         milliseconds that a consumer needs for a message (0); unprocessed messages are deleted at the end
"""
import sys
import threading
import time

import pika

from load import Load

DRAIN_S = 60
# Heartbeats are off, because a waiting connection would miss them and be closed.
NO_HEARTBEATS = 0


class Clients(Load):
    """Producers and consumers of one queue."""

    def __init__(self, queue, arguments):
        super().__init__({"producers": 1, "consumers": 1, "rate": 50, "count": 0, "storm": 0, "work": 0}, arguments)
        self.queue = queue
        self.opened = threading.Barrier(self.options["producers"] + self.options["consumers"] + 1)

    def connect(self):
        """Returns an open connection."""
        self.count("connections")
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", heartbeat=NO_HEARTBEATS))

    def ask(self, question):
        """Calls it on a separate connection."""
        connection = self.connect()
        question(connection.channel())
        connection.close()

    def producer(self):
        """Returns a connection, and its channel with confirmations."""
        connection = self.connect()
        channel = connection.channel()
        channel.confirm_delivery()
        return connection, channel

    def produce(self):
        """Publishes at the rate."""
        connection, channel = self.producer()
        self.opened.wait()
        due, published = time.monotonic(), 0
        while not self.stopped.wait(max(0, due - time.monotonic())):
            if self.options["storm"]:
                connection.close()
                connection, channel = self.producer()
            channel.basic_publish("", self.queue, b"x" * 100)
            self.count("published")
            published += 1
            if published == self.options["count"]:
                break
            due += 1 / self.options["rate"]
        connection.close()

    def consume(self):
        """Acknowledges each message."""
        connection = self.connect()
        channel = connection.channel()
        channel.basic_qos(prefetch_count=100)
        self.opened.wait()
        for method, _, _ in channel.consume(self.queue, inactivity_timeout=0.1):
            if method:
                time.sleep(self.options["work"] / 1000)
                channel.basic_ack(method.delivery_tag)
                self.count("delivered")
            if self.ended.is_set():
                break
        channel.cancel()
        connection.close()

    def work(self):
        """Runs the clients. All messages are consumed at the end."""
        self.ask(lambda channel: channel.queue_declare(self.queue))
        producers = [self.start(self.produce) for _ in range(self.options["producers"])]
        consumers = [self.start(self.consume) for _ in range(self.options["consumers"])]
        self.opened.wait()
        self.ready()
        if not self.options["count"]:
            sys.stdin.readline()
            self.stopped.set()
        for thread in producers:
            thread.join()
        deadline = time.monotonic() + (0 if self.options["work"] else DRAIN_S)
        while self.counted("delivered") < self.counted("published") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.ended.set()
        for thread in consumers:
            thread.join()
        if self.options["work"]:
            self.ask(lambda channel: channel.queue_delete(self.queue))
        self.finish()


Clients(sys.argv[1], sys.argv[2:]).work()
