#!/usr/bin/python3
"""Counts the message_send events of a recorded trace by sender and receiver.

usage: who_talks.py TRACE [TOP]

    TRACE   the folder into which LTTng recorded
    TOP     the number of pairs to show, 20 by default

Needs babeltrace2's Python (Debian: python3-bt2). Output, the busiest pair first:

    messages  from            to
        1204  <0.90.0>        <0.91.0>
         602  <0.91.0>        logger
"""
import collections
import sys

try:
    import bt2
except ImportError:
    sys.exit("who_talks.py: the module bt2 is missing for " + sys.executable + " (Debian: python3-bt2)")

EVENT = "org_erlang_dyntrace:message_send"


def pairs(trace):
    for message in bt2.TraceCollectionMessageIterator(trace):
        if isinstance(message, bt2._EventMessageConst) and message.event.name == EVENT:
            fields = message.event.payload_field
            yield str(fields["from"]), str(fields["to"])


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    top = int(sys.argv[2]) if len(sys.argv) == 3 else 20
    print(f"{'messages':>8}  {'from':<14}  to")
    for (sender, receiver), count in collections.Counter(pairs(sys.argv[1])).most_common(top):
        print(f"{count:>8}  {sender:<14}  {receiver}")


main()
