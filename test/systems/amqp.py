#!/usr/bin/python3
"""A client of RabbitMQ: amqp.py QUEUE [option=number...]

Declares the queue, prints `ready` when all its connections are open, and publishes until a line or the end of its
standard input. Prints what it has counted then, as lines `name number`.

    producers=N    connections that publish, and wait for the confirmation of each message (1)
    consumers=N    connections that consume and acknowledge (1)
    rate=N         messages per second and producer (50)
    count=N        ends publishing after so many messages of each producer (0: no end)
    size=N         bytes of a message (100)
    work_ms=N      how long a consumer takes for a message (0)
    prefetch=N     messages that a consumer gets before it acknowledges (100)
    drain=1        at the end, all messages are consumed; 0: the queue is deleted with them (1)
    storm=1        each message by a new connection (0)
"""
import os
import sys
import threading
import time
import traceback

import pika

DEFAULTS = {"producers": 1, "consumers": 1, "rate": 50, "count": 0, "size": 100, "work_ms": 0, "prefetch": 100,
            "drain": 1, "storm": 0}
DRAIN_S = 60

queue = sys.argv[1]
options = {**DEFAULTS, **{name: int(value) for name, value in (option.split("=") for option in sys.argv[2:])}}
stopped, ended = threading.Event(), threading.Event()
lock = threading.Lock()
counts = {"published": 0, "delivered": 0, "connections": 0}


def count(name):
    """Counts one more."""
    with lock:
        counts[name] += 1


def connect(name):
    """Returns an open connection with this name."""
    count("connections")
    return pika.BlockingConnection(pika.ConnectionParameters(
        "127.0.0.1", heartbeat=0, client_properties={"connection_name": name}))


def publish(channel):
    """Publishes a message and waits for its confirmation."""
    channel.basic_publish("", queue, b"x" * options["size"])
    count("published")


def channel_of(connection):
    """Returns a channel with confirmations."""
    channel = connection.channel()
    channel.confirm_delivery()
    return channel


def produce(number, opened):
    """Publishes at the rate."""
    connection = connect(f"producer {number} of {queue}")
    channel = channel_of(connection)
    opened.wait()
    due, published = time.monotonic(), 0
    while not stopped.wait(max(0, due - time.monotonic())):
        if options["storm"]:
            connection.close()
            connection = connect(f"producer {number} of {queue}")
            channel = channel_of(connection)
        publish(channel)
        published += 1
        if published == options["count"]:
            break
        due += 1 / options["rate"]
    connection.close()


def consume(number, opened):
    """Acknowledges each message after the work."""
    connection = connect(f"consumer {number} of {queue}")
    channel = connection.channel()
    channel.basic_qos(prefetch_count=options["prefetch"])
    opened.wait()
    for method, _, _ in channel.consume(queue, inactivity_timeout=0.1):
        if method:
            stopped.wait(options["work_ms"] / 1000)
            channel.basic_ack(method.delivery_tag)
            count("delivered")
        if ended.is_set():
            break
    channel.cancel()
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
    setup = connect("setup")
    setup.channel().queue_declare(queue)
    opened = threading.Barrier(options["producers"] + options["consumers"] + 1)
    producers = [threading.Thread(target=run, args=(produce, n, opened)) for n in range(options["producers"])]
    consumers = [threading.Thread(target=run, args=(consume, n, opened)) for n in range(options["consumers"])]
    for thread in producers + consumers:
        thread.start()
    opened.wait()
    print("ready", flush=True)
    if options["count"]:
        for thread in producers:
            thread.join()
    else:
        sys.stdin.readline()
    stopped.set()
    for thread in producers:
        thread.join()
    deadline = time.monotonic() + DRAIN_S
    while options["drain"] and counts["delivered"] < counts["published"] and time.monotonic() < deadline:
        time.sleep(0.01)
    ended.set()
    for thread in consumers:
        thread.join()
    if not options["drain"]:
        setup.channel().queue_delete(queue)
    setup.close()
    for name, number in counts.items():
        print(name, number)
    print("end", flush=True)


main()
