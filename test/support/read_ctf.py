#!/usr/bin/python3
"""Prints the events of a trace for test_lttng.erl: a line an event, tabs between its parts.

    name    field:type:value ...    strings in hexadecimal, types as the trace declares them

With --declared: the events that the trace declares, whether they are in it or not.

    name    field:type ...
"""
import sys

import bt2


def declared(cls):
    if isinstance(cls, bt2._StringFieldClassConst):
        return "string"
    signed = isinstance(cls, bt2._SignedIntegerFieldClassConst)
    return ("int" if signed else "uint") + str(cls.field_value_range)


def shown(value):
    if isinstance(value, bt2._StringFieldConst):
        # babeltrace2 2.0 may return the text of an earlier event for an empty one, with the right length.
        return str(value).encode("utf-8", "surrogateescape").hex() if len(value) else ""
    return str(int(value))


def print_declared(stream_class):
    for number in stream_class:
        event = stream_class[number]
        fields = event.payload_field_class
        print(event.name.split(":")[1], *[f"{n}:{declared(fields[n].field_class)}" for n in fields], sep="\t")


def print_events(folder):
    discarded = 0
    for message in bt2.TraceCollectionMessageIterator(folder):
        if isinstance(message, bt2._DiscardedEventsMessageConst):
            discarded += message.count or 0
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event
        name = event.name.split(":")[1]
        fields = event.payload_field
        print(name, *[f"{n}:{declared(fields[n].cls)}:{shown(fields[n])}" for n in fields], sep="\t")
    print("#discarded", discarded, sep="\t")


if sys.argv[1] == "--declared":
    for message in bt2.TraceCollectionMessageIterator(sys.argv[2]):
        if isinstance(message, bt2._StreamBeginningMessageConst):
            print_declared(message.stream.cls)
else:
    print_events(sys.argv[1])
