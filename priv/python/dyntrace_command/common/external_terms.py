"""Erlang's external term format, as far as calls to nodes need it:
https://www.erlang.org/doc/apps/erts/erl_ext_dist.html

An atom is an `Atom`, a list a list, a tuple a tuple, a binary bytes, an integer an int. A string is a list of integers,
as in Erlang; `text` converts it. Other terms, such as pids, are `Opaque` and can only be sent back.

Received data is untrusted: reading raises only ValueError, and is never slow.
"""
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

# Nesting of terms.
DEPTH_MOST = 200
# Bytes of an integer: Python takes minutes to convert a large one to text.
INTEGER_MOST = 32

Term = Any


class Atom(str):
    """An atom."""


class Opaque(NamedTuple):
    """The bytes of a term that this command does not decode and can only send back."""
    encoded: bytes


def encode(term: Term) -> bytes:
    """Returns the bytes of a term, without the version byte."""
    encoded = next(row[1] for row in FORMS if isinstance(term, row[0]))
    return encoded(term)


def encode_atom(atom: Atom) -> bytes:
    """Returns the bytes of an atom."""
    name: bytes = atom.encode()
    return struct.pack(">BH", 118, len(name)) + name


def encode_list(terms: List[Term]) -> bytes:
    """Returns the bytes of a list."""
    return struct.pack(">BI", 108, len(terms)) + b"".join(map(encode, terms)) + b"\x6a" if terms else b"\x6a"


# Python treats an Opaque as a tuple and an Atom as a str: the first matching row is used.
FORMS: List[Tuple[type, Callable[[Any], bytes]]] = [
    (Opaque, lambda term: bytes(term.encoded)),
    (Atom, encode_atom),
    (str, lambda term: encode_list([ord(c) for c in term])),
    (int, lambda term: struct.pack(">Bi", 98, term)),
    (bytes, lambda term: b"".join((struct.pack(">BI", 109, len(term)), term))),
    (tuple, lambda term: struct.pack(">BB", 104, len(term)) + b"".join(map(encode, term))),
    (list, encode_list),
]


def decode(message: bytes, at: int = 0) -> Tuple[Term, int]:
    """Returns (the term at that position, the position after it)."""
    try:
        return Reader(message).read(at, 0)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"a term can't be read: {error!r}") from None


class Reader:
    """Reads the terms of a message, with a table that has a row per tag."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        # {tag: (format of its size, reader of the rest)}
        self.rows: Dict[int, Tuple[str, Callable[[int, int, int, int], Tuple[Term, int]]]] = {
            100: (">H", self.atom), 118: (">H", self.atom), 119: (">B", self.atom), 115: (">B", self.atom),
            97: (">B", self.number), 98: (">i", self.number), 110: (">B", self.big), 111: (">I", self.big),
            104: (">B", self.tuple), 105: (">I", self.tuple), 106: ("", self.nil), 107: (">H", self.string),
            108: (">I", self.list), 109: (">I", self.binary), 116: (">I", self.map),
            # Pids, ports and references: the node's name, then numbers. Floats, funs and bitstrings: bytes.
            88: ("", self.of_node(lambda _: 12)), 103: ("", self.of_node(lambda _: 9)),
            89: ("", self.of_node(lambda _: 8)), 120: ("", self.of_node(lambda _: 12)),
            90: (">H", self.of_node(lambda words: 4 + 4 * words)),
            114: (">H", self.of_node(lambda words: 1 + 4 * words)),
            70: ("", self.bytes_of(lambda _: 8)), 112: (">I", self.bytes_of(lambda size: size - 4)),
            77: (">I", self.bytes_of(lambda size: size + 1)), 113: ("", self.export),
        }

    def read(self, at: int, depth: int) -> Tuple[Term, int]:
        """Returns a term and the position after it."""
        if depth > DEPTH_MOST:
            raise ValueError("its terms are nested too deeply")
        form, go_on = self.rows[self.message[at]]
        size, = struct.unpack_from(form, self.message, at + 1) if form else (0,)
        return go_on(size, at + 1 + struct.calcsize(form), at, depth + 1)

    def slice(self, at: int, end: int) -> bytes:
        """Returns a slice; raises ValueError if it is out of range."""
        if not at <= end <= len(self.message):
            raise ValueError("a term is longer than its message")
        return self.message[at:end]

    def several(self, count: int, at: int, depth: int) -> Tuple[List[Term], int]:
        """Returns `count` terms and the position after them. Each has at least one byte."""
        if count > len(self.message) - at:
            raise ValueError("a term is longer than its message")
        found = []
        for _ in range(count):
            term, at = self.read(at, depth)
            found.append(term)
        return found, at

    def atom(self, size: int, at: int, begin: int, _: int) -> Tuple[Term, int]:
        """An atom. All kinds are UTF-8 except the two oldest."""
        encoding = "latin-1" if self.message[begin] in (100, 115) else "utf-8"
        return Atom(self.slice(at, at + size).decode(encoding)), at + size

    @staticmethod
    def number(value: int, at: int, _begin: int, _: int) -> Tuple[Term, int]:
        """A small integer."""
        return value, at

    def big(self, size: int, at: int, begin: int, _: int) -> Tuple[Term, int]:
        """A large integer: a sign, then its bytes."""
        if size > INTEGER_MOST:
            return Opaque(self.slice(begin, at + 1 + size)), at + 1 + size
        value = int.from_bytes(self.slice(at + 1, at + 1 + size), "little")
        return -value if self.message[at] else value, at + 1 + size

    def tuple(self, size: int, at: int, _begin: int, depth: int) -> Tuple[Term, int]:
        """A tuple."""
        found, at = self.several(size, at, depth)
        return tuple(found), at

    @staticmethod
    def nil(_size: int, at: int, _begin: int, _: int) -> Tuple[Term, int]:
        """The empty list."""
        return [], at

    def string(self, size: int, at: int, _begin: int, _: int) -> Tuple[Term, int]:
        """A list of bytes."""
        return list(self.slice(at, at + size)), at + size

    def list(self, size: int, at: int, _begin: int, depth: int) -> Tuple[Term, int]:
        """A list; the tail of an improper one is dropped."""
        found, at = self.several(size, at, depth)
        _tail, at = self.read(at, depth)
        return found, at

    def binary(self, size: int, at: int, _begin: int, _: int) -> Tuple[Term, int]:
        """A binary."""
        return self.slice(at, at + size), at + size

    def map(self, size: int, at: int, begin: int, depth: int) -> Tuple[Term, int]:
        """A map, which is not decoded."""
        _found, at = self.several(2 * size, at, depth)
        return Opaque(self.slice(begin, at)), at

    def of_node(self, count: Callable[[int], int]) -> Callable[[int, int, int, int], Tuple[Term, int]]:
        """Returns a reader of terms with a node's name and `count` bytes."""
        def go_on(size: int, at: int, begin: int, depth: int) -> Tuple[Term, int]:
            _name, at = self.read(at, depth)
            return Opaque(self.slice(begin, at + count(size))), at + count(size)
        return go_on

    def bytes_of(self, count: Callable[[int], int]) -> Callable[[int, int, int, int], Tuple[Term, int]]:
        """Returns a reader of terms with `count` bytes."""
        def go_on(size: int, at: int, begin: int, _: int) -> Tuple[Term, int]:
            self.slice(at, at + count(size))
            return Opaque(self.slice(begin, at + count(size))), at + count(size)
        return go_on

    def export(self, _size: int, at: int, begin: int, depth: int) -> Tuple[Term, int]:
        """A fun M:F/A."""
        _found, at = self.several(3, at, depth)
        return Opaque(self.slice(begin, at)), at


def text(term: Term) -> str:
    """Returns the text of a string, a binary or an atom; Python's representation of other terms."""
    if isinstance(term, bytes):
        return term.decode("utf-8", "replace")
    if isinstance(term, list) and all(isinstance(c, int) and 0 <= c < 0x110000 for c in term):
        return "".join(map(chr, term))
    return term if isinstance(term, str) else repr(term)
