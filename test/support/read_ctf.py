#!/usr/bin/python3
"""Prints the events of a trace for test_lttng.erl: one line per event, with its parts separated by tabs.

    name    field:type:value ...    strings in hexadecimal, types as declared by the trace

With --declared: the events that the trace declares, whether it contains them or not.

    name    field:type ...
"""
import sys

import bt2


def declared(cls):
    if isinstance(cls, bt2._StringFieldClassConst):
        return "string"
    signed = isinstance(cls, bt2._SignedIntegerFieldClassConst)
    return ("int" if signed else "uint") + str(cls.field_value_range)


# babeltrace2 before 2.0.5 returns the text of an earlier event for a string of length 0.
def shown(value):
    if isinstance(value, bt2._StringFieldConst):
        return (str(value) if len(value) > 0 else "").encode("utf-8", "surrogateescape").hex()
    return str(int(value))


def print_declared(stream_class):
    for number in stream_class:
        event = stream_class[number]
        fields = event.payload_field_class
        print(event.name.split(":")[1], *[f"{n}:{declared(fields[n].field_class)}" for n in fields], sep="\t")


def types_of(event):
    return [(name, declared(field.cls)) for name, field in event.payload_field.items()]


def print_events(folder):
    discarded = 0
    types = {}
    for message in bt2.TraceCollectionMessageIterator(folder):
        if isinstance(message, bt2._DiscardedEventsMessageConst):
            discarded += message.count or 0
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event
        kind = event.cls.addr
        if kind not in types:
            types[kind] = (event.name.split(":")[1], types_of(event))
        name, declarations = types[kind]
        fields = event.payload_field
        print(name, *[f"{n}:{declaration}:{shown(fields[n])}" for n, declaration in declarations], sep="\t")
    print("#discarded", discarded, sep="\t")


if sys.argv[1] == "--declared":
    for message in bt2.TraceCollectionMessageIterator(sys.argv[2]):
        if isinstance(message, bt2._StreamBeginningMessageConst):
            print_declared(message.stream.cls)
else:
    print_events(sys.argv[1])
