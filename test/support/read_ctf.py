#!/usr/bin/python3
"""Prints the events of a trace for test_lttng.erl: a line an event, tabs between its parts.

    name    field:type:value ...    strings in hexadecimal, types as the trace declares them
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
        return str(value).encode("utf-8", "surrogateescape").hex()
    return str(int(value))


discarded = 0
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if isinstance(message, bt2._DiscardedEventsMessageConst):
        discarded += message.count or 0
    if not isinstance(message, bt2._EventMessageConst):
        continue
    event = message.event
    name = event.name.split(":")[1]
    fields = event.payload_field
    print(name, *[f"{n}:{declared(fields[n].cls)}:{shown(fields[n])}" for n in fields], sep="\t")
print("#discarded", discarded, sep="\t")
