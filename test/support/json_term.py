#!/usr/bin/python3
"""Converts files of JSON to a list of terms in Erlang's external format: json_term.py FILE... OTP before 27 can't read
JSON.

Objects become maps with binaries as keys, strings binaries, null the atom.
"""
import json
import struct
import sys


def head(tag, number, form=">BI"):
    return struct.pack(form, tag, number)


def atom(name):
    return head(119, len(name), ">BB") + name


def integer(value):
    if -2**31 <= value < 2**31:
        return struct.pack(">Bi", 98, value)
    size = (abs(value).bit_length() + 7) // 8
    return struct.pack(">BBB", 110, size, value < 0) + abs(value).to_bytes(size, "little")


def term(value):
    if value is None:
        return atom(b"null")
    if isinstance(value, bool):
        return atom(b"true" if value else b"false")
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return struct.pack(">Bd", 70, value)
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return head(109, len(text)) + text
    if isinstance(value, list):
        return (head(108, len(value)) + b"".join(map(term, value)) if value else b"") + b"j"
    return head(116, len(value)) + b"".join(term(key) + term(member) for key, member in value.items())


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


sys.stdout.buffer.write(b"\x83" + term([load(path) for path in sys.argv[1:]]))
